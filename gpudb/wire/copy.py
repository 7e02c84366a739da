"""COPY's formats: rows to framed CopyData messages, and bytes to columns of fields.

Text and CSV go out as one CopyData message a row; binary sends its header together with the first
row. Coming in, ``reader`` takes pieces of any size and yields blocks of whole rows: where each
field lies in a byte array. Fields that need no unescaping are never copied. Errors are
PostgreSQL's, with the line in their context.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gpudb import errors
from gpudb.result import HostBatch, ResultField
from gpudb.wire.backend import Codec
from gpudb.wire.cells import TEXT, encode_values
from gpudb.wire.messages import FieldDescription
from gpudb.wire.rows import RowEncoder

BINARY_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
BINARY_HEADER = BINARY_SIGNATURE + struct.pack("!ii", 0, 0)
BINARY_TRAILER = struct.pack("!h", -1)
LINE_BYTES_MAX = 1 << 30
"""A row that has not ended after this many bytes is an error, not a reason to buffer on."""
_SHOWN_CHARACTERS = 100

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class CopyFormat:
    """What COPY's options come to. ``force_quote`` names columns, None = all; the other lists are
    column numbers. ``header_names`` must be the first line (HEADER MATCH).
    """

    format: str = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] | None = ()
    force_not_null: tuple[int, ...] = ()
    force_null: tuple[int, ...] = ()
    header_names: tuple[str, ...] = ()


# --- out --------------------------------------------------------------------------------------


class Encoder(Protocol):
    """``messages`` and ``end`` are framed for the wire, ``plain`` and ``plain_end`` for a file."""

    def messages(self, batch: HostBatch) -> bytes: ...

    def end(self) -> bytes: ...

    def plain(self, batch: HostBatch) -> bytes: ...

    def plain_end(self) -> bytes: ...


def encoder(fields: Sequence[ResultField], format: CopyFormat, codec: Codec) -> Encoder:
    """The encoder of a format."""
    if format.format == "binary":
        return _BinaryEncoder(fields, codec)
    return _LineEncoder(fields, format, codec)


def message(body: bytes) -> bytes:
    """A CopyData message."""
    return b"d" + struct.pack("!i", len(body) + 4) + body


_ESCAPES = {
    ord("\\"): "\\\\", ord("\b"): "\\b", ord("\f"): "\\f", ord("\n"): "\\n", ord("\r"): "\\r",
    ord("\t"): "\\t", ord("\v"): "\\v",
}


class _LineEncoder:
    """Text and CSV: a line a row."""

    def __init__(self, fields: Sequence[ResultField], format: CopyFormat, codec: Codec) -> None:
        self._fields = fields
        self._format = format
        self._codec = codec
        self._delimiter = format.delimiter.encode(codec.encoding)
        self._null = format.null.encode(codec.encoding)
        self._is_started = not format.header
        forced = format.force_quote
        self._forced = [forced is None or item.name in forced for item in fields]
        self._specials = (format.delimiter + format.quote + "\r\n").encode()
        table = dict(_ESCAPES)
        table[ord(format.delimiter)] = "\\" + format.delimiter
        if format.delimiter == "\t":
            table[ord("\t")] = "\\t"
        self._escapes = {bytes([code]): text.encode() for code, text in table.items()}

    def messages(self, batch: HostBatch) -> bytes:
        return b"".join(map(message, self._lines(batch)))

    def end(self) -> bytes:
        return b"" if self._is_started else message(self._header())

    def plain(self, batch: HostBatch) -> bytes:
        return b"".join(self._lines(batch))

    def plain_end(self) -> bytes:
        return b"" if self._is_started else self._header()

    def _header(self) -> bytes:
        self._is_started = True
        names = [item.name.encode(self._codec.encoding) for item in self._fields]
        write = self._csv if self._format.format == "csv" else self._text
        return self._delimiter.join(write(name, False) for name in names) + b"\n"

    def _lines(self, batch: HostBatch) -> Iterator[bytes]:
        if not self._is_started:
            yield self._header()
        write = self._csv if self._format.format == "csv" else self._text
        columns = []
        for column, item, force in zip(batch.columns, self._fields, self._forced, strict=True):
            values = encode_values(column, item.type_oid, TEXT, self._codec)
            columns.append([self._null if v is None else write(v, force) for v in values])
        if not columns:
            yield from [b"\n"] * batch.rows
            return
        if len(columns) == 1 and self._format.format == "csv":
            columns[0] = [b'"\\."' if v == b"\\." else v for v in columns[0]]
        join = self._delimiter.join
        for row in zip(*columns, strict=True):
            yield join(row) + b"\n"

    def _text(self, value: bytes, _: bool) -> bytes:
        if not any(raw in value for raw in self._escapes):
            return value
        value = value.replace(b"\\", b"\\\\")
        for raw, escaped in self._escapes.items():
            if raw != b"\\":
                value = value.replace(raw, escaped)
        return value

    def _csv(self, value: bytes, force: bool) -> bytes:
        needs = force or value == self._null or any(byte in value for byte in self._specials)
        if not needs:
            return value
        quote, escape = self._format.quote.encode(), self._format.escape.encode()
        if escape != quote:
            value = value.replace(escape, escape + escape)
        return quote + value.replace(quote, escape + quote) + quote


class _BinaryEncoder:
    """Binary: rows as length-prefixed fields; header with the first row, then the trailer."""

    def __init__(self, fields: Sequence[ResultField], codec: Codec) -> None:
        described = [
            FieldDescription(item.name, item.type_oid, -1, item.typmod, format=1)
            for item in fields
        ]
        self._rows = RowEncoder(described, codec, kind=b"d")
        self._is_started = False

    def messages(self, batch: HostBatch) -> bytes:
        framed = b"".join(self._rows.encode(batch))
        if self._is_started or not framed:
            return framed
        self._is_started = True
        (length,) = struct.unpack_from("!i", framed, 1)
        first = framed[5 : 1 + length]
        return message(BINARY_HEADER + first) + framed[1 + length :]

    def end(self) -> bytes:
        return message(self.plain_end())

    def plain(self, batch: HostBatch) -> bytes:
        framed = b"".join(self._rows.encode(batch))
        parts = [] if self._is_started else [BINARY_HEADER]
        self._is_started = True
        position = 0
        while position < len(framed):
            (length,) = struct.unpack_from("!i", framed, position + 1)
            parts.append(framed[position + 5 : position + 1 + length])
            position += 1 + length
        return b"".join(parts)

    def plain_end(self) -> bytes:
        head = b"" if self._is_started else BINARY_HEADER
        return head + BINARY_TRAILER


# --- in ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FieldColumn:
    """Fields of one column: int64 (R) positions and lengths; ``valid`` bool (R), None = no NULL."""

    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    valid: npt.NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True)
class FieldRows:
    """Some rows: their fields in ``data``, and the line on which each begins (from 1)."""

    rows: int
    data: npt.NDArray[np.uint8]
    columns: tuple[FieldColumn, ...]
    lines: npt.NDArray[np.int64]
    last_line: int


class Reader(Protocol):
    def feed(self, data: bytes) -> Iterator[FieldRows]: ...

    def finish(self) -> Iterator[FieldRows]: ...


def reader(format: CopyFormat, names: Sequence[str], table: str) -> Reader:
    """The reader of a format for the columns ``names`` of ``table``."""
    if format.format == "binary":
        return BinaryReader(names, table)
    return LineReader(format, names, table)


class LineReader:
    """Text and CSV."""

    def __init__(self, format: CopyFormat, names: Sequence[str], table: str) -> None:
        self._format = format
        self._names = tuple(names)
        self._table = table
        self._rest = b""
        self._line = 0
        self._is_header_due = format.header or bool(format.header_names)
        self._is_ended = False
        self._eol: bytes | None = None
        self._delimiter = format.delimiter.encode()
        self._is_csv = format.format == "csv"

    def feed(self, data: bytes) -> Iterator[FieldRows]:
        if self._is_ended:
            return
        block = self._rest + data
        end = self._last_end(block)
        if end <= 0:
            self._rest = block
            if len(block) > LINE_BYTES_MAX:
                raise errors.ProgramLimitExceeded("a line of COPY data is too long")
            return
        self._rest = block[end:]
        yield from self._rows(block[:end])

    def finish(self) -> Iterator[FieldRows]:
        block, self._rest = self._rest, b""
        if not block or self._is_ended:
            return
        if self._is_csv and self._open_quote(block):
            raise self._error("unterminated CSV quoted field", self._line + 1, block)
        yield from self._rows(block + (self._eol or b"\n"))

    # Where lines end

    def _line_end(self, block: bytes) -> bytes:
        """The kind of line end, decided by the first one."""
        if self._eol is None:
            newline, carriage = block.find(b"\n"), block.find(b"\r")
            if carriage >= 0 and (newline < 0 or carriage < newline):
                self._eol = b"\r\n" if block[carriage + 1 : carriage + 2] == b"\n" else b"\r"
                if newline < 0 and carriage == len(block) - 1:
                    self._eol = None  # the other half may follow
                    return b"\n"
            elif newline >= 0:
                self._eol = b"\n"
        return self._eol or b"\n"

    def _last_end(self, block: bytes) -> int:
        """The end of the last whole row; 0 when there is none."""
        eol = self._line_end(block)
        if self._is_csv:
            ends = self._unquoted(block, eol)
            return int(ends[-1]) + len(eol) if len(ends) else 0
        end = block.rfind(eol)
        while end >= 0:
            if not _is_escaped(block, end):
                return end + len(eol)
            end = block.rfind(eol, 0, end)
        return 0

    def _open_quote(self, block: bytes) -> bool:
        """Whether a quoted field is open at the end of the block."""
        quote, escape = self._format.quote.encode(), self._format.escape.encode()
        if quote == escape:
            return block.count(quote) % 2 == 1
        is_open = False
        position = 0
        while position < len(block):
            byte = block[position : position + 1]
            if is_open and byte == escape and block[position + 1 : position + 2] in (
                quote, escape,
            ):
                position += 1
            elif byte == quote:
                is_open = not is_open
            position += 1
        return is_open

    # Rows

    def _rows(self, block: bytes) -> Iterator[FieldRows]:
        if b"\0" in block:
            line = self._line + 1 + block[: block.index(b"\0")].count(b"\n")
            raise errors.CharacterNotInRepertoire(
                'invalid byte sequence for encoding "UTF8": 0x00',
                context=f"COPY {self._table}, line {line}",
            )
        eol = self._eol or b"\n"
        ends = self._unquoted(block, eol)
        starts = np.r_[0, ends[:-1] + len(eol)].astype(np.int64)
        block, starts, ends = self._until_marker(block, starts, ends)
        self._check_line_ends(block, eol)
        marks = np.frombuffer(block, np.uint8) == ord(b"\n" if eol == b"\r\n" else eol)
        newlines = np.cumsum(marks)
        lines = self._line + 1 + np.r_[0, newlines[starts[1:] - 1]] if len(starts) else (
            np.zeros(0, np.int64)
        )
        if len(ends):
            self._line += int(newlines[-1])
        if self._is_header_due and len(starts):
            self._header(block[int(starts[0]) : int(ends[0])])
            starts, ends, lines = starts[1:], ends[1:], lines[1:]
        if len(starts):
            yield self._fields(block, starts, ends, lines)

    def _unquoted(self, block: bytes, mark: bytes) -> npt.NDArray[np.int64]:
        """Positions of a mark that is neither escaped nor inside quotes."""
        data = np.frombuffer(block, np.uint8)
        found = np.flatnonzero(data == mark[0])
        if len(mark) == 2:
            found = found[data[np.minimum(found + 1, len(data) - 1)] == mark[1]]
        if not self._is_csv:
            if b"\\" not in block:
                return found
            escaped = [_is_escaped(block, p) for p in found.tolist()]
            return found[~np.array(escaped, np.bool_)] if escaped else found
        quote = self._format.quote.encode()
        if quote not in block:
            return found
        inside = self._inside_quotes(block)
        return found[~inside[found]]

    def _inside_quotes(self, block: bytes) -> npt.NDArray[np.bool_]:
        """bool (B): whether a byte stands in a quoted field."""
        data = np.frombuffer(block, np.uint8)
        quote, escape = self._format.quote.encode(), self._format.escape.encode()
        toggles = data == quote[0]
        if escape != quote and escape in block:
            toggles = toggles.copy()
            is_open, position = False, 0
            while position < len(block):
                byte = block[position]
                if is_open and byte == escape[0] and block[position + 1 : position + 2] in (
                    quote, escape,
                ):
                    toggles[position + 1] = False
                    position += 1
                elif byte == quote[0]:
                    is_open = not is_open
                position += 1
        return (np.cumsum(toggles) % 2).astype(np.bool_)

    def _until_marker(
        self, block: bytes, starts: Array, ends: Array
    ) -> tuple[bytes, Array, Array]:
        r"""The lines before ``\.``, which ends the data."""
        if b"\\." not in block:
            return block, starts, ends
        for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            if block[start:end] == b"\\.":
                self._is_ended = True
                self._rest = b""
                return block[:start], starts[:number], ends[:number]
        return block, starts, ends

    def _check_line_ends(self, block: bytes, eol: bytes) -> None:
        """Bare carriage returns or newlines that are not this file's line ends are errors."""
        if eol == b"\r\n" or b"\r" not in block:
            return
        if eol == b"\n" and not self._is_csv:
            position = next(
                (p for p in _positions(block, b"\r") if not _is_escaped(block, p)), None
            )
        elif eol == b"\n":
            inside = self._inside_quotes(block)
            position = next((p for p in _positions(block, b"\r") if not inside[p]), None)
        else:
            return
        if position is None:
            return
        line = self._line + 1 + block[:position].count(b"\n")
        what = "unquoted carriage return" if self._is_csv else "literal carriage return"
        hint = (
            "Use quoted CSV field to represent carriage return." if self._is_csv
            else 'Use "\\r" to represent carriage return.'
        )
        raise errors.BadCopyFileFormat(
            f"{what} found in data", hint=hint, context=f"COPY {self._table}, line {line}"
        )

    def _header(self, line: bytes) -> None:
        self._is_header_due = False
        names = self._format.header_names
        if not names:
            return
        found = self._texts(line)
        if len(found) != len(names):
            raise errors.BadCopyFileFormat(
                f"wrong number of fields in header line: got {len(found)}, expected {len(names)}",
                context=f"COPY {self._table}, line 1: \"{_shown(line)}\"",
            )
        for number, (got, wanted) in enumerate(zip(found, names, strict=True), 1):
            if got != wanted:
                raise errors.BadCopyFileFormat(
                    f"column name mismatch in header line field {number}: got "
                    f'"{got}", expected "{wanted}"',
                    context=f"COPY {self._table}, line 1: \"{_shown(line)}\"",
                )

    def _texts(self, line: bytes) -> list[str]:
        block = line + b"\n"
        cuts = self._unquoted(block, self._delimiter)
        edges = [0, *(cuts + 1).tolist()], [*cuts.tolist(), len(line)]
        found = []
        for a, b in zip(*edges, strict=True):
            raw = block[a:b]
            value = self._dequoted(raw) if self._is_csv else _unescaped(raw)
            found.append(value.decode("utf-8", "replace"))
        return found

    # Fields

    def _fields(
        self, block: bytes, starts: Array, ends: Array, lines: npt.NDArray[np.int64]
    ) -> FieldRows:
        rows, width = len(starts), len(self._names)
        cuts = self._unquoted(block, self._delimiter)
        cuts = cuts[(cuts >= starts[0]) & (cuts < ends[-1])]
        counts = np.searchsorted(cuts, ends) - np.searchsorted(cuts, starts)
        if width == 0:
            counts = np.where(ends > starts, 1, 0)
        wrong = np.flatnonzero(counts != max(width - 1, 0))
        if len(wrong):
            row = int(wrong[0])
            self._wrong_count(
                int(counts[row]), block[int(starts[row]) : int(ends[row])], int(lines[row])
            )
        grid = cuts.reshape(rows, width - 1) if width > 1 else np.zeros((rows, 0), np.int64)
        data = np.frombuffer(block, np.uint8)
        special = self._specials(data)
        extra = bytearray()
        columns = []
        for number in range(width):
            first = starts if number == 0 else grid[:, number - 1] + 1
            last = ends if number == width - 1 else grid[:, number]
            columns.append(self._column(block, number, first, last, special, extra))
        whole = np.concatenate([data, np.frombuffer(bytes(extra), np.uint8)]) if extra else data
        return FieldRows(rows, whole, tuple(columns), lines, self._line)

    def _specials(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64] | None:
        """Running count of bytes that call for unescaping or dequoting; None without any."""
        marks = data == ord(self._format.quote if self._is_csv else "\\")
        return np.r_[0, np.cumsum(marks)] if marks.any() else None

    def _column(
        self,
        block: bytes,
        number: int,
        first: Array,
        last: Array,
        special: npt.NDArray[np.int64] | None,
        extra: bytearray,
    ) -> FieldColumn:
        starts, lengths = first.astype(np.int64), (last - first).astype(np.int64)
        null = self._format.null.encode()
        is_null = _equals(block, starts, lengths, null)
        quoted = np.zeros(len(starts), np.bool_)
        if special is not None:
            touched = np.flatnonzero(special[last] > special[first])
            for row in touched.tolist():
                if not self._is_csv and is_null[row]:
                    continue
                raw = block[int(starts[row]) : int(starts[row] + lengths[row])]
                value = self._dequoted(raw) if self._is_csv else _unescaped(raw)
                quoted[row] = self._is_csv
                starts[row], lengths[row] = len(block) + len(extra), len(value)
                if self._is_csv:
                    is_null[row] = number in self._format.force_null and value == null
                extra += value
        if number in self._format.force_not_null:
            is_null[:] = False
        valid = None if not is_null.any() else ~is_null
        return FieldColumn(starts, lengths, valid)

    def _dequoted(self, raw: bytes) -> bytes:
        """A CSV field without its quotes."""
        quote, escape = self._format.quote.encode(), self._format.escape.encode()
        inner = raw[1:-1]
        if len(raw) >= 2 and raw[:1] == quote == raw[-1:] and (
            quote not in inner and escape not in inner
        ):
            return inner
        found = bytearray()
        is_open, position = False, 0
        while position < len(raw):
            byte = raw[position : position + 1]
            following = raw[position + 1 : position + 2]
            if is_open and byte == escape and following in (quote, escape) and following:
                found += following
                position += 1
            elif byte == quote:
                is_open = not is_open
            else:
                found += byte
            position += 1
        return bytes(found)

    # Errors

    def _wrong_count(self, delimiters: int, line: bytes, number: int) -> None:
        if delimiters + 1 > len(self._names) or not self._names:
            raise self._error("extra data after last expected column", number, line)
        missing = self._names[delimiters + 1]
        raise self._error(f'missing data for column "{missing}"', number, line)

    def _error(self, text: str, line: int, content: bytes) -> errors.SqlError:
        return errors.BadCopyFileFormat(
            text, context=f'COPY {self._table}, line {line}: "{_shown(content)}"'
        )


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."


def _positions(block: bytes, mark: bytes) -> Iterator[int]:
    position = block.find(mark)
    while position >= 0:
        yield position
        position = block.find(mark, position + 1)


def _is_escaped(block: bytes, position: int) -> bool:
    """Whether an odd number of backslashes stands before the position."""
    count = 0
    while position > count and block[position - count - 1] == 0x5C:
        count += 1
    return count % 2 == 1


def _equals(
    block: bytes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], text: bytes
) -> npt.NDArray[np.bool_]:
    """bool (R): which fields are exactly ``text``."""
    same: npt.NDArray[np.bool_] = lengths == len(text)
    if not text or not same.any():
        return same
    data = np.frombuffer(block, np.uint8)
    rows = np.flatnonzero(same)
    for offset, byte in enumerate(text):
        rows = rows[data[starts[rows] + offset] == byte]
    found = np.zeros(len(starts), np.bool_)
    found[rows] = True
    return found


_SIMPLE = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_OCTAL = b"01234567"
_HEX = b"0123456789abcdefABCDEF"


def _unescaped(raw: bytes) -> bytes:
    """A field of the text format without its backslashes."""
    if b"\\" not in raw:
        return raw
    found = bytearray()
    position = 0
    while position < len(raw):
        byte = raw[position : position + 1]
        position += 1
        if byte != b"\\" or position >= len(raw):
            found += byte
            continue
        code = raw[position : position + 1]
        position += 1
        if code in _SIMPLE:
            found += _SIMPLE[code]
        elif code in _OCTAL:
            stop = position
            while stop < position + 2 and raw[stop : stop + 1] in _OCTAL and stop < len(raw):
                stop += 1
            found.append(int(raw[position - 1 : stop], 8) & 0xFF)
            position = stop
        elif code == b"x" and raw[position : position + 1] in _HEX and position < len(raw):
            stop = position
            while stop < position + 2 and raw[stop : stop + 1] in _HEX and stop < len(raw):
                stop += 1
            found.append(int(raw[position:stop], 16))
            position = stop
        else:
            found += code
    return bytes(found)


class BinaryReader:
    """The binary format."""

    def __init__(self, names: Sequence[str], table: str) -> None:
        self._names = tuple(names)
        self._table = table
        self._rest = b""
        self._is_started = False
        self._is_ended = False
        self._row = 0

    def feed(self, data: bytes) -> Iterator[FieldRows]:
        block = self._rest + data
        position = 0
        if not self._is_started:
            if len(block) < len(BINARY_SIGNATURE) + 8:
                self._rest = block
                return
            position = self._start(block)
            if position < 0:
                self._rest = block
                return
        yield from self._tuples(block, position)

    def finish(self) -> Iterator[FieldRows]:
        if not self._is_started or (self._rest and not self._is_ended):
            raise self._error("unexpected EOF in COPY data")
        return iter(())

    def _start(self, block: bytes) -> int:
        if not block.startswith(BINARY_SIGNATURE):
            raise errors.BadCopyFileFormat("COPY file signature not recognized")
        flags, extension = map(int, struct.unpack_from("!ii", block, len(BINARY_SIGNATURE)))
        if flags & (1 << 16):
            raise errors.BadCopyFileFormat("invalid COPY file header (WITH OIDS)")
        if flags & ~0xFFFF:
            raise errors.BadCopyFileFormat("unrecognized critical flags in COPY file header")
        if extension < 0:
            raise errors.BadCopyFileFormat("invalid COPY file header (missing length)")
        start = len(BINARY_HEADER) + extension
        if len(block) < start:
            return -1
        self._is_started = True
        return start

    def _tuples(self, block: bytes, position: int) -> Iterator[FieldRows]:
        width = len(self._names)
        starts: list[list[int]] = [[] for _ in range(width)]
        lengths: list[list[int]] = [[] for _ in range(width)]
        first_row = self._row
        while not self._is_ended:
            after = self._tuple(block, position, starts, lengths)
            if after < 0:
                break
            position = after
        self._rest = block[position:]
        rows = self._row - first_row
        if not rows:
            return
        columns = []
        for number in range(width):
            size = np.array(lengths[number][:rows], np.int64)
            valid = None if bool((size >= 0).all()) else size >= 0
            columns.append(
                FieldColumn(np.array(starts[number][:rows], np.int64), np.maximum(size, 0), valid)
            )
        lines = np.arange(first_row + 1, self._row + 1, dtype=np.int64)
        yield FieldRows(rows, np.frombuffer(block, np.uint8), tuple(columns), lines, self._row)

    def _tuple(
        self, block: bytes, position: int, starts: list[list[int]], lengths: list[list[int]]
    ) -> int:
        """Read one tuple; the position after it, -1 when it is not all there."""
        if len(block) < position + 2:
            return -1
        (count,) = struct.unpack_from("!h", block, position)
        if count == -1:
            self._is_ended = True
            return position + 2
        if count != len(self._names):
            self._row += 1
            raise self._error(f"row field count is {count}, expected {len(self._names)}")
        place: int = position + 2
        found: list[tuple[int, int]] = []
        for _ in range(count):
            if len(block) < place + 4:
                return -1
            size = int(struct.unpack_from("!i", block, place)[0])
            place += 4
            if size < -1:
                raise self._error("invalid field size")
            if len(block) < place + max(size, 0):
                return -1
            found.append((place, size))
            place += max(size, 0)
        for number, (start, size) in enumerate(found):
            starts[number].append(start)
            lengths[number].append(size)
        self._row += 1
        return place

    def _error(self, text: str) -> errors.SqlError:
        return errors.BadCopyFileFormat(
            text, context=f"COPY {self._table}, line {max(self._row, 1)}"
        )
