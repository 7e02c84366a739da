"""The text or binary form of one column of a host batch, as the wire and COPY send it.

``encode_column`` picks a vectorized kernel by type and layout. Where there is none, every value
becomes its host value and goes through ``DataType.format`` or ``send``: the reference, which
small results take always.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from gpudb import errors, sqltype
from gpudb.catalog.types.base import DataType
from gpudb.catalog.types.strings import padded
from gpudb.kernels import encode
from gpudb.kernels.encode import Array, Slots
from gpudb.layout import Kind
from gpudb.result import HostColumn
from gpudb.wire.backend import Codec

NARROW_BYTES = 64
"""Values up to this width always go through byte matrices."""
MATRIX_BYTES = 1024
"""Wider ones do if a matrix of them is at least half full and no wider than this."""
DAY_OFFSETS_MAX = 1 << 16
"""Days whose offset from UTC is remembered, over all time zones."""

TEXT = 0
BINARY = 1
_EPOCH = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_DECIMAL_SCALE_MAX = 18

_RAW_TEXT = frozenset({
    sqltype.TEXT, sqltype.VARCHAR, sqltype.NAME, sqltype.JSON, sqltype.JSONB, sqltype.UNKNOWN,
    sqltype.CSTRING, sqltype.REFCURSOR, sqltype.BIT, sqltype.VARBIT,
})  # fmt: skip
_RAW_BINARY = frozenset({
    sqltype.TEXT, sqltype.VARCHAR, sqltype.NAME, sqltype.JSON, sqltype.BYTEA, sqltype.UNKNOWN,
    sqltype.CSTRING, sqltype.REFCURSOR,
})  # fmt: skip
_PLAIN_INTEGERS = frozenset({
    sqltype.INT2, sqltype.INT4, sqltype.INT8, sqltype.OID, sqltype.XID, sqltype.CID,
})  # fmt: skip
_FIXED_BINARY = {
    sqltype.INT2: ">i2", sqltype.INT4: ">i4", sqltype.INT8: ">i8", sqltype.OID: ">u4",
    sqltype.XID: ">u4", sqltype.CID: ">u4", sqltype.DATE: ">i4", sqltype.TIME: ">i8",
    sqltype.TIMESTAMP: ">i8", sqltype.TIMESTAMPTZ: ">i8", sqltype.FLOAT4: ">f4",
    sqltype.FLOAT8: ">f8",
} | dict.fromkeys(sqltype.REG_TYPES, ">u4")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cells:
    """The encoded values of R rows: ``parts`` to be set one behind the other, or ``values``.

    Where ``valid`` is false, the row is NULL and its cell must be ignored.
    """

    valid: npt.NDArray[np.bool_] | None
    parts: tuple[Slots, ...] = ()
    values: list[bytes | None] | None = None


def encode_column(column: HostColumn, type_oid: int, format_code: int, codec: Codec) -> Cells:
    """The cells of a column; ``type_oid`` is the type it is described with."""
    parts = None
    if column.rows:
        select = _text_parts if format_code == TEXT else _binary_parts
        parts = select(column, type_oid, codec)
    if parts is not None:
        return Cells(column.valid, parts)
    return of_values(encode_values(column, type_oid, format_code, codec))


def of_values(values: list[bytes | None]) -> Cells:
    """Cells of byte strings; a matrix if they are short."""
    rows = len(values)
    lengths = np.fromiter((0 if v is None else len(v) for v in values), np.int64, rows)
    valid = np.fromiter((v is not None for v in values), np.bool_, rows)
    known = None if bool(valid.all()) else valid
    width = int(lengths.max()) if rows else 0
    if not _is_narrow(width, int(lengths.sum()), rows):
        return Cells(known, values=values)
    data = np.frombuffer(b"".join(v for v in values if v is not None), np.uint8)
    starts = np.cumsum(lengths) - lengths
    return Cells(known, (encode.gather_bytes(data, starts, lengths.astype(np.int32), width),))


def _is_narrow(width: int, total: int, rows: int) -> bool:
    return width <= NARROW_BYTES or (width <= MATRIX_BYTES and width * rows <= 2 * total)


# --- vectorized: text ---------------------------------------------------------------------------


def _text_parts(column: HostColumn, oid: int, codec: Codec) -> tuple[Slots, ...] | None:
    match column.layout.kind:
        case Kind.BOOL if oid == sqltype.BOOL:
            letters = np.where(column.data[0], np.uint8(116), np.uint8(102))
            return (encode.whole(letters.reshape(-1, 1)),)
        case Kind.INT:
            return _integer_text(integers(column), oid, codec)
        case Kind.FLOAT if codec.context.extra_float_digits > 0:
            return _float_text(column, oid, codec)
        case Kind.DECIMAL | Kind.DECIMAL128 if oid == sqltype.NUMERIC:
            found = _small_decimals(column)
            return None if found is None else (encode.decimal_text(*found),)
        case Kind.TEXT | Kind.DICTIONARY:
            return _string_text(column, oid, codec)
        case Kind.UUID if oid == sqltype.UUID:
            return (encode.uuid_text(*_zeroed(column)),)
        case _:
            return None


def _integer_text(
    values: npt.NDArray[np.int64], oid: int, codec: Codec
) -> tuple[Slots, ...] | None:
    if oid in _PLAIN_INTEGERS:
        return (encode.integer_text(values),)
    is_iso = codec.context.date_style == "ISO"
    if oid == sqltype.DATE and is_iso and _is_within(values, 1):
        return (encode.date_text(values),)
    if oid == sqltype.TIME:
        return (encode.time_text(values),)
    if oid == sqltype.TIMESTAMP and is_iso and _is_within(values, encode.DAY_MICROSECONDS):
        return (encode.timestamp_text(values),)
    if oid == sqltype.TIMESTAMPTZ and is_iso and _is_within(values, encode.DAY_MICROSECONDS):
        offsets = utc_offsets(values, codec.context.time_zone)
        local = encode.timestamp_text(values + offsets * 1_000_000)
        return (local, _offset_text(offsets))
    return None


def _is_within(values: npt.NDArray[np.int64], unit: int) -> bool:
    """Whether all days have four-digit years, also after a shift by a time zone."""
    low, high = int(values.min()) // unit, int(values.max()) // unit
    return low >= encode.FIRST_DAY + 2 and high <= encode.LAST_DAY - 2


def utc_offsets(
    microseconds: npt.NDArray[np.int64], zone: datetime.tzinfo
) -> npt.NDArray[np.int64]:
    """Seconds east of Greenwich at each instant."""
    if zone is datetime.UTC or getattr(zone, "key", "") in ("UTC", "Etc/UTC"):
        return np.zeros(len(microseconds), np.int64)
    days, inverse = np.unique(microseconds // encode.DAY_MICROSECONDS, return_inverse=True)
    by_day = [_day_offset(zone, day) for day in days.tolist()]
    offsets = np.array([0 if each is None else each for each in by_day], np.int64)[inverse]
    is_mixed = np.array([each is None for each in by_day], np.bool_)[inverse]
    for row in np.flatnonzero(is_mixed).tolist():
        offsets[row] = _offset_at(zone, int(microseconds[row]))
    return offsets


@functools.lru_cache(DAY_OFFSETS_MAX)
def _day_offset(zone: datetime.tzinfo, day: int) -> int | None:
    """The offset of a whole UTC day; None if it changes within."""
    start = day * encode.DAY_MICROSECONDS
    first = _offset_at(zone, start)
    last = _offset_at(zone, start + encode.DAY_MICROSECONDS - 1)
    return first if first == last else None


def _offset_at(zone: datetime.tzinfo, microseconds: int) -> int:
    instant = _EPOCH + datetime.timedelta(microseconds=microseconds)
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def _offset_text(offsets: npt.NDArray[np.int64]) -> Slots:
    known, inverse = np.unique(offsets, return_inverse=True)
    texts = [_offset_name(each).encode() for each in known.tolist()]
    width = max(map(len, texts))
    table = np.frombuffer(b"".join(text.ljust(width) for text in texts), np.uint8)
    lengths = np.array([len(text) for text in texts], np.int16)
    return Slots(table.reshape(-1, width)[inverse], 0, lengths[inverse])


def _offset_name(seconds: int) -> str:
    hours, rest = divmod(abs(seconds), 3600)
    minutes, rest = divmod(rest, 60)
    shown = f"{'-' if seconds < 0 else '+'}{hours:02}"
    if minutes or rest:
        shown += f":{minutes:02}"
    return shown + (f":{rest:02}" if rest else "")


def _float_text(column: HostColumn, oid: int, codec: Codec) -> tuple[Slots, ...] | None:
    if oid not in sqltype.FLOATS:
        return None
    values = _zeroed(column)[0]
    is_single = oid == sqltype.FLOAT4
    slots, is_short = encode.float_text(values.astype(np.float64), is_single=is_single)
    if bool(is_short.all()):
        return (slots,)
    long = np.flatnonzero(~is_short)
    return (_patched(slots, long, _long_floats(values[long], codec.type_of(oid), codec)),)


def _long_floats(values: Array, type_: DataType, codec: Codec) -> list[bytes]:
    """Texts of floats one by one; Python's repr of most doubles has PostgreSQL's form."""
    magnitudes = np.abs(values)
    if type_.oid == sqltype.FLOAT8:
        texts = " ".join(map(repr, values.tolist())).encode().split(b" ")
        is_plain = magnitudes >= encode.PLAIN_FLOAT_MIN
        is_plain &= magnitudes < encode.PLAIN_FLOAT_END
        is_plain &= values != np.trunc(values)  # repr would add .0
        others = np.flatnonzero(~is_plain)
    else:
        texts = [b""] * len(values)
        others = np.arange(len(values))
    for row, value in zip(others.tolist(), values[others].tolist(), strict=True):
        texts[row] = type_.format(value, codec.context).encode()
    return texts


def _patched(slots: Slots, rows: Array, texts: list[bytes]) -> Slots:
    """Slots with the texts of some rows replaced."""
    count, width = slots.matrix.shape
    widest = max(width, max(map(len, texts)))
    matrix = np.empty((count, widest), np.uint8)
    matrix[:, :width] = slots.matrix
    joined = b"".join(text.ljust(widest) for text in texts)
    matrix[rows] = np.frombuffer(joined, np.uint8).reshape(-1, widest)
    first = np.broadcast_to(np.asarray(slots.first, np.int16), count).copy()
    last = np.broadcast_to(np.asarray(slots.last, np.int16), count).copy()
    first[rows] = 0
    last[rows] = [len(text) for text in texts]
    return Slots(matrix, first, last)


def _string_text(column: HostColumn, oid: int, codec: Codec) -> tuple[Slots, ...] | None:
    is_raw = oid in _RAW_TEXT or (oid == sqltype.BPCHAR and column.typmod < 4)
    if is_raw:
        raw = _gathered(column)
        if raw is None or (codec.encoding != "utf-8" and bool((raw.matrix > 127).any())):
            return None
        return (raw,)
    if oid == sqltype.BYTEA and codec.context.bytea_output == "hex":
        raw = _gathered(column)
        return None if raw is None else (encode.hex_text(raw),)
    return None


def _gathered(column: HostColumn) -> Slots | None:
    """The strings in a matrix, if they are short enough for one."""
    start, length, data = string_positions(column)
    width = int(length.max())
    if not _is_narrow(width, int(length.sum()), column.rows):
        return None
    return encode.gather_bytes(data, start, length, width)


# --- vectorized: binary -------------------------------------------------------------------------


def _binary_parts(column: HostColumn, oid: int, codec: Codec) -> tuple[Slots, ...] | None:
    match column.layout.kind:
        case Kind.BOOL if oid == sqltype.BOOL:
            return (encode.whole(column.data[0].astype(np.uint8).reshape(-1, 1)),)
        case Kind.INT if oid in _FIXED_BINARY:
            return (encode.whole(encode.big_endian(integers(column), _FIXED_BINARY[oid])),)
        case Kind.FLOAT if oid in sqltype.FLOATS:
            return (encode.whole(encode.big_endian(column.data[0], _FIXED_BINARY[oid])),)
        case Kind.DECIMAL | Kind.DECIMAL128 if oid == sqltype.NUMERIC:
            found = _small_decimals(column)
            return None if found is None else encode.numeric_bytes(*found)
        case Kind.TEXT | Kind.DICTIONARY:
            return _string_binary(column, oid, codec)
        case Kind.UUID if oid == sqltype.UUID:
            return (encode.whole(encode.uuid_bytes(*_zeroed(column))),)
        case Kind.INTERVAL if oid == sqltype.INTERVAL:
            return (encode.whole(encode.interval_bytes(*column.data)),)
        case _:
            return None


def _string_binary(column: HostColumn, oid: int, codec: Codec) -> tuple[Slots, ...] | None:
    is_raw = oid in _RAW_BINARY or (oid == sqltype.BPCHAR and column.typmod < 4)
    if not is_raw and oid != sqltype.JSONB:
        return None
    raw = _gathered(column)
    if raw is None:
        return None
    is_text = oid != sqltype.BYTEA
    if is_text and codec.encoding != "utf-8" and bool((raw.matrix > 127).any()):
        return None
    if oid == sqltype.JSONB:
        return (encode.whole(np.ones((column.rows, 1), np.uint8)), raw)
    return (raw,)


# --- buffers ------------------------------------------------------------------------------------


def integers(column: HostColumn) -> npt.NDArray[np.int64]:
    """The values of an INT or DECIMAL column (unscaled); 0 where NULL."""
    values: npt.NDArray[np.int64] = column.data[0].astype(np.int64)
    if column.step != 1:
        values *= column.step
    if column.base:
        values += column.base
    if column.valid is not None:
        values[~column.valid] = 0
    return values


def _zeroed(column: HostColumn) -> tuple[Array, ...]:
    """The row-aligned buffers with 0 under NULL."""
    if column.valid is None:
        return column.data
    return tuple(np.where(column.valid, each, each.dtype.type(0)) for each in column.data)


def _small_decimals(
    column: HostColumn,
) -> tuple[npt.NDArray[np.int64], int, npt.NDArray[np.int16] | None] | None:
    """Scaled int64 values, scale and row scales; None if some value needs more."""
    if column.scale > _DECIMAL_SCALE_MAX:
        return None
    if column.layout.kind is Kind.DECIMAL:
        values = integers(column)
    else:
        low, high = _zeroed(column)[:2]
        if bool((high != low >> 63).any()):
            return None
        values = low
    shown = None
    if column.layout.has_row_scale:
        shown = column.data[-1].astype(np.int16)
        if column.valid is not None:
            shown[~column.valid] = 0
    return values, column.scale, shown


def string_positions(
    column: HostColumn,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Start, length (0 where NULL) and bytes of a TEXT or DICTIONARY column."""
    if column.layout.kind is Kind.DICTIONARY:
        assert column.dictionary is not None
        codes = column.data[0]
        offsets, data = column.dictionary.offsets, column.dictionary.data
        if len(offsets) == 1:  # no entries: every row is NULL
            zeros = np.zeros(column.rows, np.int64)
            return zeros, zeros.astype(np.int32), data
        start = offsets[codes]
        length = (offsets[1:][codes] - start).astype(np.int32)
    else:
        start, length, data = column.data
    if column.valid is not None:
        length = np.where(column.valid, length, np.int32(0))
        start = np.where(column.valid, start, np.int64(0))
    return start, length, data


# --- value by value -----------------------------------------------------------------------------


def encode_values(
    column: HostColumn, type_oid: int, format_code: int, codec: Codec
) -> list[bytes | None]:
    """The encoded values of a column, one by one; None for NULL."""
    raw = _raw_strings(column, type_oid, format_code, codec)
    if raw is not None:
        return raw
    type_ = codec.type_of(type_oid)
    values = host_values(column, type_oid)
    if type_oid == sqltype.BPCHAR and column.typmod >= 4:
        values = [None if v is None else padded(v, column.typmod) for v in values]
    one = _text_encoder(type_, codec) if format_code == TEXT else _binary_encoder(type_, codec)
    if column.layout.kind in (Kind.INT, Kind.DICTIONARY):
        one = functools.cache(one)
    return [None if value is None else one(value) for value in values]


def _raw_strings(
    column: HostColumn, oid: int, format_code: int, codec: Codec
) -> list[bytes | None] | None:
    """The strings of a column whose wire form is what is stored; None for other columns."""
    is_stored = column.layout.kind in (Kind.TEXT, Kind.DICTIONARY) and codec.encoding == "utf-8"
    if not is_stored or oid not in (_RAW_TEXT if format_code == TEXT else _RAW_BINARY):
        return None
    strings = byte_strings(*string_positions(column))
    if column.valid is None:
        return list(strings)
    return [v if ok else None for v, ok in zip(strings, column.valid.tolist(), strict=True)]


def _text_encoder(type_: DataType, codec: Codec) -> Callable[[Any], bytes]:
    if codec.encoding == "utf-8":
        return lambda value: type_.format(value, codec.context).encode()
    return lambda value: transcoded(type_.format(value, codec.context), codec.encoding)


def _binary_encoder(type_: DataType, codec: Codec) -> Callable[[Any], bytes]:
    if codec.encoding != "utf-8" and type_.oid in _RAW_TEXT | {sqltype.BPCHAR}:
        prefix = b"\x01" if type_.oid == sqltype.JSONB else b""
        return lambda value: prefix + transcoded(value, codec.encoding)
    return lambda value: type_.send(value, codec.context)


def transcoded(text: str, encoding: str) -> bytes:
    """Text in the client's encoding; 22P05 for a character it lacks."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        shown = " ".join(f"0x{byte:02x}" for byte in text[error.start].encode())
        raise errors.UntranslatableCharacter(
            f'character with byte sequence {shown} in encoding "UTF8" has no equivalent in '
            f'encoding "{encoding.upper()}"'
        ) from None


def host_values(column: HostColumn, type_oid: int) -> list[Any]:
    """The host values (see catalog.types.base) of a column; None for NULL."""
    values = _host_values(column, type_oid)
    if column.valid is None:
        return values
    return [v if ok else None for v, ok in zip(values, column.valid.tolist(), strict=True)]


def _host_values(column: HostColumn, type_oid: int) -> list[Any]:
    match column.layout.kind:
        case Kind.BOOL:
            return list(column.data[0].astype(np.bool_).tolist())
        case Kind.INT:
            return list(integers(column).tolist())
        case Kind.FLOAT:
            return list(column.data[0].tolist())
        case Kind.DECIMAL | Kind.DECIMAL128:
            return _decimals(column)
        case Kind.TEXT | Kind.DICTIONARY:
            start, length, data = string_positions(column)
            raws = byte_strings(start, length, data)
            return raws if type_oid == sqltype.BYTEA else [raw.decode() for raw in raws]
        case Kind.INTERVAL:
            months, days, microseconds = (each.tolist() for each in column.data)
            return list(zip(months, days, microseconds, strict=True))
        case Kind.UUID:
            raw = encode.uuid_bytes(*column.data).tobytes()
            return [raw[i : i + 16] for i in range(0, len(raw), 16)]
        case Kind.HOST:
            assert column.objects is not None
            return list(column.objects)


def byte_strings(
    start: npt.NDArray[np.int64], length: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]
) -> list[bytes]:
    """Each string as bytes; only the used range of ``data`` is copied at once."""
    if not len(start):
        return []
    ends = start + length
    low = int(start.min())
    raw = data[low : int(ends.max())].tobytes()
    pairs = zip((start - low).tolist(), (ends - low).tolist(), strict=True)
    return [raw[a:b] for a, b in pairs]


def _decimals(column: HostColumn) -> list[Decimal]:
    if column.layout.kind is Kind.DECIMAL:
        unscaled = integers(column).tolist()
    else:
        low, high = (each.tolist() for each in column.data[:2])
        unscaled = [(h << 64) | (v & 0xFFFF_FFFF_FFFF_FFFF) for v, h in zip(low, high, strict=True)]
    shown = column.data[-1].tolist() if column.layout.has_row_scale else None
    if shown is None:
        return [_decimal(value, column.scale) for value in unscaled]
    return [
        _decimal(value // 10 ** (column.scale - digits), digits)
        for value, digits in zip(unscaled, shown, strict=True)
    ]


def _decimal(unscaled: int, scale: int) -> Decimal:
    """Exact whatever the decimal context's precision is."""
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((1 if unscaled < 0 else 0, digits, -scale))


def without_nulls(column: HostColumn) -> HostColumn:
    """The column with ``valid`` dropped when it is true everywhere."""
    if column.valid is not None and bool(column.valid.all()):
        return replace(column, valid=None)
    return column
