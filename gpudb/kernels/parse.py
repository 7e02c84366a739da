"""Columns from texts: whole columns of plain spellings at once, odd ones value by value.

Used by COPY FROM and casts from text. A byte string is ``data[start : start + length]``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import torch

from gpudb import layout, sqltype
from gpudb.catalog import types
from gpudb.catalog.types.base import TypeContext
from gpudb.catalog.types.calendar import DAY_MICROSECONDS
from gpudb.catalog.types.strings import decode_utf8
from gpudb.column import Column, boolean_column, float_column, from_values, integer_column
from gpudb.errors import SqlError
from gpudb.sqltype import SqlType

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Problems = list[tuple[int, SqlError]]
Vector = Callable[[Integers, Integers, Bytes], tuple[npt.NDArray[Any], Mask]]

_INTEGER_DIGITS_MAX = 18
_LIMITS = {sqltype.INT2: 2**15, sqltype.INT4: 2**31, sqltype.INT8: 2**63, sqltype.OID: 2**32}
_DTYPES = {sqltype.INT2: np.int16, sqltype.INT4: np.int32, sqltype.DATE: np.int32}


def is_fast(type_: SqlType) -> bool:
    """Whether columns of the type are read faster than value by value."""
    return type_.oid in _READERS or type_.oid in (
        sqltype.NUMERIC, sqltype.FLOAT4, sqltype.FLOAT8, sqltype.TEXT, sqltype.VARCHAR
    )


def parse_column(
    type_: SqlType,
    starts: npt.NDArray[Any],
    lengths: npt.NDArray[Any],
    data: Bytes,
    valid: Mask | None,
    context: TypeContext,
) -> tuple[Column, Problems]:
    """The column and the (row, error) of each text that denotes no value, in row order."""
    starts, lengths = starts.astype(np.int64), lengths.astype(np.int64)
    if valid is not None:
        lengths = np.where(valid, lengths, 0)
    match type_.oid:
        case sqltype.NUMERIC:
            return _numerics(type_, starts, lengths, data, valid, context)
        case sqltype.FLOAT4 | sqltype.FLOAT8:
            return _floats(type_, starts, lengths, data, valid, context)
        case sqltype.TEXT | sqltype.VARCHAR:
            return _texts(type_, starts, lengths, data, valid, context)
    reader = _READERS.get(type_.oid)
    if reader is None:
        return _one_by_one(type_, starts, lengths, data, valid, context)
    values, good = reader(starts, lengths, data)
    limit = _LIMITS.get(type_.oid)
    if limit is not None:
        low = 0 if type_.oid == sqltype.OID else -limit
        good = good & (values >= low) & (values < limit)
    if valid is not None:
        good = good | ~valid
    problems = _patch(type_, values, good, (starts, lengths, data), context)
    dtype = _DTYPES.get(type_.oid)
    numbers = torch.from_numpy(values if dtype is None else values.astype(dtype))
    mask = None if valid is None else torch.from_numpy(valid)
    if type_.oid == sqltype.BOOL:
        return boolean_column(type_, numbers.to(torch.bool), mask), problems
    return integer_column(type_, numbers, mask), problems


def _patch(
    type_: SqlType, values: npt.NDArray[Any], good: Mask,
    source: tuple[Integers, Integers, Bytes], context: TypeContext,
) -> Problems:
    """Fill the rows the fast reader refused with what the type's own parser says."""
    problems: Problems = []
    starts, lengths, data = source
    parser = types.get(type_.oid)
    for row in np.flatnonzero(~good).tolist():
        raw = data[starts[row] : starts[row] + lengths[row]].tobytes()
        try:
            values[row] = parser.parse(decode_utf8(raw), type_.typmod, context)
        except SqlError as problem:
            values[row] = 0
            problems.append((row, problem))
    return problems


def _one_by_one(
    type_: SqlType, starts: Integers, lengths: Integers, data: Bytes, valid: Mask | None,
    context: TypeContext,
) -> tuple[Column, Problems]:
    parser = types.get(type_.oid)
    raw = data.tobytes()
    values: list[Any] = [None] * len(starts)
    problems: Problems = []
    spans = zip(starts.tolist(), lengths.tolist(), strict=True)
    for row, (start, length) in enumerate(spans):
        if valid is not None and not valid[row]:
            continue
        try:
            text = decode_utf8(raw[start : start + length])
            values[row] = parser.parse(text, type_.typmod, context)
        except SqlError as problem:
            problems.append((row, problem))
    return from_values(type_, parser.layout, values), problems


def _matrix(starts: Integers, lengths: Integers, data: Bytes, width: int) -> tuple[Bytes, Mask]:
    """The first ``width`` bytes of every string (0 past its end) and which bytes are inside."""
    columns = np.arange(width)
    inside = columns < lengths[:, None]
    if not len(data):
        return np.zeros((len(starts), width), np.uint8), inside
    places = np.where(inside, starts[:, None] + columns, 0)
    cells = data[places]
    cells[~inside] = 0
    return cells, inside


def _scaled(
    starts: Integers, lengths: Integers, data: Bytes, *, allows_point: bool
) -> tuple[Integers, Mask, Integers]:
    """Numbers without their point, whether each is plain, and their decimals."""
    rows = len(starts)
    width = min(int(lengths.max(initial=0)), _INTEGER_DIGITS_MAX + 2)
    cells, inside = _matrix(starts, lengths, data, max(width, 1))
    is_sign = (cells[:, 0] == 45) | (cells[:, 0] == 43)
    digits = cells - np.uint8(48)
    is_digit = (digits < 10) & inside
    is_point = (cells == 46) & inside
    plain = is_digit | ~inside
    plain[:, 0] |= is_sign
    points = is_point.sum(1)
    if allows_point:
        plain |= is_point
    count = is_digit.sum(1)
    good = plain.all(1) & (count > 0) & (count <= _INTEGER_DIGITS_MAX) & (lengths <= width)
    good &= points <= 1
    values = np.zeros(rows, np.int64)
    for column in range(cells.shape[1]):
        used = is_digit[:, column]
        values = np.where(used, values * 10 + digits[:, column], values)
    place = np.where(points > 0, is_point.argmax(1), lengths)
    decimals = np.maximum(lengths - place - 1, 0)
    return np.where(cells[:, 0] == 45, -values, values), good, decimals


def _read_integers(
    starts: Integers, lengths: Integers, data: Bytes
) -> tuple[npt.NDArray[Any], Mask]:
    values, good, _ = _scaled(starts, lengths, data, allows_point=False)
    return values, good


def _numerics(
    type_: SqlType, starts: Integers, lengths: Integers, data: Bytes, valid: Mask | None,
    context: TypeContext,
) -> tuple[Column, Problems]:
    """DECIMAL where every text is plain, of at most 18 digits at the common scale."""
    values, good, decimals = _scaled(starts, lengths, data, allows_point=True)
    if valid is not None:
        good = good | ~valid
        decimals = np.where(valid, decimals, 0)
        values = np.where(valid, values, 0)
    scale = int(decimals.max(initial=0))
    limit = None
    if type_.typmod >= 0:
        precision, scale_wanted = sqltype.numeric_precision_scale(type_.typmod)
        good &= scale <= scale_wanted
        scale, limit = scale_wanted, 10**precision
    is_wide = scale > _INTEGER_DIGITS_MAX or scale < 0 or not good.all()
    if not is_wide:
        factors = 10 ** (scale - decimals)
        room = (2**63 - 1) // factors
        is_wide = bool((np.abs(values) > room).any())
    if is_wide:
        return _one_by_one(type_, starts, lengths, data, valid, context)
    values = values * factors
    if limit is not None and limit < 2**63 and bool((np.abs(values) >= limit).any()):
        return _one_by_one(type_, starts, lengths, data, valid, context)
    shown = decimals if type_.typmod < 0 and bool((decimals != scale).any()) else None
    mask = None if valid is None else torch.from_numpy(valid)
    buffers = [torch.from_numpy(values)]
    kind = layout.DECIMAL64
    if shown is not None:
        buffers.append(torch.from_numpy(shown.astype(np.int16)))
        kind = layout.DECIMAL64_ROW_SCALE
    lo, hi = int(values.min(initial=0)), int(values.max(initial=0))
    return Column(type_, kind, tuple(buffers), mask, scale=scale, lo=lo, hi=hi), []


def _arrow_strings(
    starts: Integers, lengths: Integers, data: Bytes, valid: Mask | None
) -> pa.Array:
    """The strings as an Arrow array (copied together)."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    total = int(offsets[-1])
    rows = np.repeat(np.arange(len(starts)), lengths)
    within = np.arange(total) - offsets[:-1][rows] if total else np.zeros(0, np.int64)
    joined = data[starts[rows] + within] if total else np.zeros(0, np.uint8)
    bitmap = None
    if valid is not None:
        bitmap = pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(
        pa.large_string(), len(starts), [bitmap, pa.py_buffer(offsets), pa.py_buffer(joined)]
    )


def _floats(
    type_: SqlType, starts: Integers, lengths: Integers, data: Bytes, valid: Mask | None,
    context: TypeContext,
) -> tuple[Column, Problems]:
    arrow_type = pa.float32() if type_.oid == sqltype.FLOAT4 else pa.float64()
    try:
        found = pyarrow.compute.cast(_arrow_strings(starts, lengths, data, valid), arrow_type)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return _one_by_one(type_, starts, lengths, data, valid, context)
    values = np.array(found.fill_null(0.0).to_numpy(zero_copy_only=False))
    if not np.isfinite(values).all() or bool((values == 0).any() and _has_tiny(lengths)):
        return _one_by_one(type_, starts, lengths, data, valid, context)
    mask = None if valid is None else torch.from_numpy(valid)
    return float_column(type_, torch.from_numpy(values), mask), []


def _has_tiny(lengths: Integers) -> bool:
    """Whether a text is long enough to be an underflowing number (1e-46)."""
    return bool((lengths > 4).any())


def _texts(
    type_: SqlType, starts: Integers, lengths: Integers, data: Bytes, valid: Mask | None,
    context: TypeContext,
) -> tuple[Column, Problems]:
    """The strings where they lie; UTF-8 and the length limit are checked."""
    if type_.oid == sqltype.VARCHAR and type_.typmod >= 0:
        if bool((lengths > type_.typmod - 4).any()):
            return _one_by_one(type_, starts, lengths, data, valid, context)
    if len(data) and (int(data.max()) > 127 or int(data.min()) == 0):
        return _one_by_one(type_, starts, lengths, data, valid, context)
    mask = None if valid is None else torch.from_numpy(valid)
    buffer = data if data.flags.writeable else data.copy()
    buffers = (
        torch.from_numpy(starts), torch.from_numpy(lengths.astype(np.int32)),
        torch.from_numpy(buffer),
    )
    return Column(type_, layout.TEXT, buffers, mask), []


def _number(cells: Bytes, first: int, last: int) -> Integers:
    values = np.zeros(len(cells), np.int64)
    for column in range(first, last):
        values = values * 10 + (cells[:, column] - np.uint8(48))
    return values


def _are_digits(cells: Bytes, *spans: tuple[int, int]) -> Mask:
    columns = [c for first, last in spans for c in range(first, last)]
    return np.asarray(((cells[:, columns] - np.uint8(48)) < 10).all(1))


_MONTH_ENDS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def days_of(year: Integers, month: Integers, day: Integers) -> Integers:
    """Days since 2000-01-01 of proleptic Gregorian dates."""
    shifted = year - (month <= 2)
    era = shifted // 400
    year_of_era = shifted - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return np.asarray(era * 146097 + day_of_era - 730425)


def _read_days(cells: Bytes) -> tuple[Integers, Mask]:
    """YYYY-MM-DD in the first ten bytes."""
    good = _are_digits(cells, (0, 4), (5, 7), (8, 10))
    good &= (cells[:, 4] == 45) & (cells[:, 7] == 45)
    year, month, day = _number(cells, 0, 4), _number(cells, 5, 7), _number(cells, 8, 10)
    good &= (year > 0) & (month >= 1) & (month <= 12) & (day >= 1)
    month = np.where(good, month, 1)
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    good &= day <= _MONTH_ENDS[month] + ((month == 2) & is_leap)
    return days_of(year, month, day), good


def _read_dates(
    starts: Integers, lengths: Integers, data: Bytes
) -> tuple[npt.NDArray[Any], Mask]:
    cells, _ = _matrix(starts, lengths, data, 10)
    days, good = _read_days(cells)
    return days, good & (lengths == 10)


def _read_timestamps(
    starts: Integers, lengths: Integers, data: Bytes
) -> tuple[npt.NDArray[Any], Mask]:
    """YYYY-MM-DD HH:MM:SS[.ffffff] (or with T)."""
    cells, inside = _matrix(starts, lengths, data, 26)
    days, good = _read_days(cells)
    good &= _are_digits(cells, (11, 13), (14, 16), (17, 19))
    good &= ((cells[:, 10] == 32) | (cells[:, 10] == 84)) & (cells[:, 13] == 58)
    good &= (cells[:, 16] == 58) & (lengths >= 19) & (lengths <= 26) & (lengths != 20)
    good &= (lengths == 19) | (cells[:, 19] == 46)
    digits = cells[:, 20:] - np.uint8(48)
    good &= ((digits < 10) | ~inside[:, 20:]).all(1)
    fraction = np.zeros(len(cells), np.int64)
    for column in range(6):
        fraction = fraction * 10 + np.where(inside[:, 20 + column], digits[:, column], 0)
    hour, minute, second = _number(cells, 11, 13), _number(cells, 14, 16), _number(cells, 17, 19)
    good &= (hour < 24) & (minute < 60) & (second < 60)
    seconds = (hour * 60 + minute) * 60 + second
    return days * DAY_MICROSECONDS + seconds * 1_000_000 + fraction, good


def _read_booleans(
    starts: Integers, lengths: Integers, data: Bytes
) -> tuple[npt.NDArray[Any], Mask]:
    cells, _ = _matrix(starts, lengths, data, 1)
    letter = cells[:, 0]
    is_true = (letter == ord("t")) | (letter == ord("1"))
    is_false = (letter == ord("f")) | (letter == ord("0"))
    return is_true.astype(np.int64), (is_true | is_false) & (lengths == 1)


_READERS: dict[int, Vector] = {
    sqltype.INT2: _read_integers, sqltype.INT4: _read_integers, sqltype.INT8: _read_integers,
    sqltype.OID: _read_integers, sqltype.DATE: _read_dates, sqltype.TIMESTAMP: _read_timestamps,
    sqltype.BOOL: _read_booleans,
}
