"""Byte strings of columns: comparison, literal search, gathering.

A TEXT column is (start, length) into a byte buffer; comparisons read eight bytes of every
undecided row at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gpudb import jit, layout
from gpudb.column import Column
from gpudb.layout import Kind
from gpudb.sqltype import SqlType

_WORD = 8
Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]


def buffers(column: Column) -> tuple[Positions, Positions, Bytes]:
    """Starts, lengths and bytes of a TEXT or DICTIONARY column, on the host."""
    if column.layout.kind is Kind.DICTIONARY:
        assert column.dictionary is not None
        codes = column.data[0].cpu().numpy().astype(np.int64)
        offsets = column.dictionary.offsets
        if len(offsets) < 2:
            empty = np.zeros(len(codes), np.int64)
            return empty, empty.copy(), np.zeros(0, np.uint8)
        return offsets[codes], offsets[codes + 1] - offsets[codes], column.dictionary.data
    starts = column.data[0].cpu().numpy().astype(np.int64)
    lengths = column.data[1].cpu().numpy().astype(np.int64)
    return starts, lengths, column.data[2].cpu().numpy()


def _words(
    starts: Positions, lengths: Positions, data: Bytes, offset: int
) -> npt.NDArray[np.uint64]:
    """Eight bytes of every string from ``offset``, big-endian, zeros past its end."""
    if not len(data):
        return np.zeros(len(starts), np.uint64)
    columns = np.arange(offset, offset + _WORD)
    places = starts[:, None] + columns
    inside = columns < lengths[:, None]
    gathered = data[np.where(inside, places, 0)]
    gathered[~inside] = 0
    return gathered.view(">u8").ravel().astype(np.uint64)


def compare(left: Column, right: Column) -> Tensor:
    """int8 (R): the sign of the byte order; a prefix is less."""
    one, two = buffers(left), buffers(right)
    rows = max(len(one[0]), len(two[0]))
    signs = np.zeros(rows, np.int8)
    index = np.arange(rows)
    offset = 0
    while len(index):
        first, second = _selected(one, index), _selected(two, index)
        a, b = _words(*first, offset), _words(*second, offset)
        signs[index] = (a > b).astype(np.int8) - (a < b).astype(np.int8)
        offset += _WORD
        open_rows = (a == b) & (first[1] > offset) & (second[1] > offset)
        ended = (a == b) & ~open_rows
        lengths = np.sign(first[1] - second[1])
        signs[index[ended]] = lengths[ended]
        index = index[open_rows]
    return torch.from_numpy(signs)


def _selected(
    parts: tuple[Positions, Positions, Bytes], index: Positions
) -> tuple[Positions, Positions, Bytes]:
    starts, lengths, data = parts
    if len(starts) == 1:
        rows = len(index)
        return np.broadcast_to(starts, rows), np.broadcast_to(lengths, rows), data
    return starts[index], lengths[index], data


def equal(left: Column, right: Column) -> Tensor:
    """bool (R): the same bytes."""
    one, two = buffers(left), buffers(right)
    same = np.asarray(one[1] == two[1])
    rows = max(len(one[0]), len(two[0]))
    same = np.broadcast_to(same, rows).copy()
    index = np.flatnonzero(same)
    offset = 0
    while len(index):
        first, second = _selected(one, index), _selected(two, index)
        agree = _words(*first, offset) == _words(*second, offset)
        same[index[~agree]] = False
        offset += _WORD
        index = index[agree & (first[1] > offset)]
    return torch.from_numpy(same)


def packed(column: Column) -> tuple[Positions, Bytes]:
    """Offsets (R + 1) and bytes with one zero byte after every string, in row order."""
    starts, lengths, data = buffers(column)
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths + 1, out=offsets[1:])
    joined = np.zeros(int(offsets[-1]), np.uint8)
    total = int(lengths.sum())
    if total:
        rows = np.repeat(np.arange(len(starts)), lengths)
        within = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        joined[offsets[rows] + within] = data[starts[rows] + within]
    return offsets, joined


@jit.kernel("void(int64[::1], int64[::1], uint8[::1], uint8[::1], int64[::1], boolean[::1])")
def _in_order(starts, lengths, data, literals, bounds, found):  # type: ignore[no-untyped-def]
    """Whether a string is first literal, anything, next literal, anything ... last literal."""
    last = bounds.shape[0] - 2
    head, tail = bounds[1], bounds[last + 1] - bounds[last]
    for row in range(starts.shape[0]):
        at, stop = starts[row], starts[row] + lengths[row]
        matches = stop - at >= head + tail
        k = 0
        while matches and k < head:
            matches = data[at + k] == literals[k]
            k += 1
        stop -= tail
        k = 0
        while matches and k < tail:
            matches = data[stop + k] == literals[bounds[last] + k]
            k += 1
        at += head
        number = 1
        while matches and number < last:
            first, size = bounds[number], bounds[number + 1] - bounds[number]
            limit = stop - size
            is_found = size == 0
            if size:
                lead = literals[first]
                while at <= limit:
                    if data[at] == lead:
                        k = 1
                        while k < size and data[at + k] == literals[first + k]:
                            k += 1
                        if k == size:
                            is_found = True
                            break
                    at += 1
            matches = is_found
            at += size
            number += 1
        found[row] = matches


def holds_in_order(column: Column, literals: Sequence[bytes]) -> Tensor | None:
    """bool (R): whether each string is the literals in order with anything between them.

    The first literal begins the string, the last (of at least two) ends it. None when the rows
    are too few for a compiled loop.
    """
    if not _in_order.is_worthwhile(column.rows):
        return None
    starts, lengths, data = buffers(column)
    starts, lengths = np.ascontiguousarray(starts), np.ascontiguousarray(lengths)
    bounds = np.zeros(len(literals) + 1, np.int64)
    np.cumsum([len(literal) for literal in literals], out=bounds[1:])
    found = np.empty(len(starts), bool)
    _in_order(starts, lengths, _writable(data), _writable(b"".join(literals)), bounds, found)
    return torch.from_numpy(found)


def _writable(data: Bytes | bytes) -> Bytes:
    """The bytes as an array that compiled loops take."""
    array = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
    return array if array.flags.writeable else array.copy()


def contains(column: Column, literal: bytes) -> Tensor:
    """bool (R): whether each string holds the literal."""
    compiled = holds_in_order(column, (b"", literal, b""))
    if compiled is not None:
        return compiled
    starts, lengths, data = buffers(column)
    rows = len(starts)
    found = np.zeros(rows, bool)
    if not literal:
        return torch.ones(rows, dtype=torch.bool)
    if not rows:
        return torch.from_numpy(found)
    is_ordered = bool((starts[1:] >= starts[:-1] + lengths[:-1]).all())
    if not is_ordered:
        offsets, joined = packed(column)
        starts, data = offsets[:-1], joined
    raw = data.tobytes()
    hits = _positions(raw, literal, int(starts[0]), int(starts[-1] + lengths[-1]))
    index = np.searchsorted(starts, hits, "right") - 1
    inside = hits + len(literal) <= starts[index] + lengths[index]
    found[index[inside]] = True
    return torch.from_numpy(found)


def _positions(raw: bytes, literal: bytes, start: int, stop: int) -> Positions:
    """Where the literal occurs, overlapping occurrences included."""
    found = []
    at = raw.find(literal, start, stop)
    while at >= 0:
        found.append(at)
        at = raw.find(literal, at + 1, stop)
    return np.array(found, np.int64)


def starts_with(column: Column, literal: bytes) -> Tensor:
    """bool (R): whether each string begins with the literal."""
    starts, lengths, data = buffers(column)
    return torch.from_numpy(_matches_at(starts, lengths, data, literal))


def ends_with(column: Column, literal: bytes) -> Tensor:
    """bool (R): whether each string ends with the literal."""
    starts, lengths, data = buffers(column)
    shifted = starts + lengths - len(literal)
    return torch.from_numpy(_matches_at(np.maximum(shifted, 0), lengths, data, literal))


def _matches_at(
    places: Positions, lengths: Positions, data: Bytes, literal: bytes
) -> npt.NDArray[np.bool_]:
    found = lengths >= len(literal)
    for i, byte in enumerate(literal):
        index = np.flatnonzero(found)
        if not len(index):
            break
        found[index] = data[places[index] + i] == byte
    return found


def is_ascii(column: Column) -> bool:
    """Whether every byte of the column's strings is ASCII."""
    _, _, data = buffers(column)
    return not len(data) or int(data.max()) < 128


def character_lengths(column: Column) -> npt.NDArray[np.int32]:
    """The number of characters (UTF-8 lead bytes) of each string."""
    starts, lengths, data = buffers(column)
    if not len(data) or int(data.max()) < 128:
        return lengths.astype(np.int32)
    leads = np.zeros(len(data) + 1, np.int64)
    np.cumsum((data & 0xC0) != 0x80, out=leads[1:])
    return np.asarray(leads[starts + lengths] - leads[starts], np.int32)


def text_column(
    type_: SqlType, starts: Positions, lengths: npt.NDArray[np.int32], data: Bytes,
    valid: Tensor | None,
) -> Column:
    """A TEXT column over host buffers."""
    return Column(
        type_, layout.TEXT,
        (
            torch.from_numpy(np.ascontiguousarray(starts, np.int64)),
            torch.from_numpy(np.ascontiguousarray(lengths, np.int32)),
            torch.from_numpy(data if data.flags.writeable else data.copy()),
        ),
        valid,
    )


def joined(parts: Sequence[Column], type_: SqlType, rows: int, valid: Tensor | None) -> Column:
    """The concatenation of the parts' strings, row by row."""
    pieces = [_expanded(buffers(part), rows) for part in parts]
    lengths = np.sum([p[1] for p in pieces], axis=0) if pieces else np.zeros(rows, np.int64)
    starts = np.zeros(rows, np.int64)
    if rows:
        np.cumsum(lengths[:-1], out=starts[1:])
    out = np.zeros(int(lengths.sum()), np.uint8)
    at = starts.copy()
    for piece_starts, piece_lengths, data in pieces:
        total = int(piece_lengths.sum())
        if total:
            row = np.repeat(np.arange(rows), piece_lengths)
            ends = np.cumsum(piece_lengths)
            within = np.arange(total) - np.repeat(ends - piece_lengths, piece_lengths)
            out[at[row] + within] = data[piece_starts[row] + within]
        at += piece_lengths
    return text_column(type_, starts, lengths.astype(np.int32), out, valid)


def _expanded(
    parts: tuple[Positions, Positions, Bytes], rows: int
) -> tuple[Positions, Positions, Bytes]:
    starts, lengths, data = parts
    if len(starts) == rows:
        return parts
    return np.broadcast_to(starts, rows), np.broadcast_to(lengths, rows), data
