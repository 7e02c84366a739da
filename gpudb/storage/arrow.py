"""Arrow arrays to columns and back: how Parquet and CSV files come in and go out."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import torch

from gpudb import errors, layout
from gpudb import sqltype as t
from gpudb.catalog import types
from gpudb.catalog.types.base import ArrayValue, TypeContext
from gpudb.column import (
    Column,
    boolean_column,
    decimal_column,
    dictionary_column,
    float_column,
    from_values,
    host_column,
    integer_column,
    to_values,
)
from gpudb.layout import Dictionary, Kind
from gpudb.sqltype import SqlType

UNIX_EPOCH_DAYS = 10957
UNIX_EPOCH_MICROSECONDS = UNIX_EPOCH_DAYS * 86_400_000_000
_UNITS = {"s": 1_000_000, "ms": 1000, "us": 1}
DICTIONARY_ENTRIES_MAX = 65536


def sql_type(kind: pa.DataType) -> SqlType:
    """The SQL type that an Arrow type is read as; 0A000 for what has none."""
    if pa.types.is_decimal(kind):
        precision, scale = kind.precision, kind.scale
        return SqlType(t.NUMERIC, t.numeric_typmod(precision, scale))
    if pa.types.is_timestamp(kind):
        return SqlType(t.TIMESTAMPTZ if kind.tz else t.TIMESTAMP)
    if pa.types.is_dictionary(kind):
        return sql_type(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        element = sql_type(kind.value_type)
        array = types.get(element.oid).array_oid if element.oid not in _ARRAYS else element.oid
        return SqlType(array)
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return SqlType(t.JSON)
    if pa.types.is_fixed_size_binary(kind):
        return SqlType(t.UUID if kind.byte_width == 16 and _is_uuid(kind) else t.BYTEA)
    if isinstance(kind, pa.ExtensionType):
        return SqlType(t.UUID) if _is_uuid(kind) else sql_type(kind.storage_type)
    for test, oid in _SIMPLE:
        if test(kind):
            return SqlType(oid)
    raise errors.FeatureNotSupported(f"columns of Arrow type {kind} are not supported")


def _is_uuid(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.ExtensionType) and kind.extension_name == "arrow.uuid"


_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], int], ...] = (
    (pa.types.is_boolean, t.BOOL), (pa.types.is_int8, t.INT2), (pa.types.is_int16, t.INT2),
    (pa.types.is_uint8, t.INT2), (pa.types.is_int32, t.INT4), (pa.types.is_uint16, t.INT4),
    (pa.types.is_int64, t.INT8), (pa.types.is_uint32, t.INT8), (pa.types.is_uint64, t.NUMERIC),
    (pa.types.is_float16, t.FLOAT4), (pa.types.is_float32, t.FLOAT4),
    (pa.types.is_float64, t.FLOAT8), (pa.types.is_date, t.DATE), (pa.types.is_time, t.TIME),
    (pa.types.is_string, t.TEXT), (pa.types.is_large_string, t.TEXT),
    (pa.types.is_string_view, t.TEXT), (pa.types.is_binary, t.BYTEA),
    (pa.types.is_large_binary, t.BYTEA), (pa.types.is_binary_view, t.BYTEA),
    (pa.types.is_duration, t.INTERVAL), (pa.types.is_null, t.TEXT),
)
_ARRAYS = frozenset({t.BOOL_ARRAY, t.INT2_ARRAY, t.INT4_ARRAY, t.INT8_ARRAY, t.TEXT_ARRAY,
                     t.FLOAT8_ARRAY, t.NUMERIC_ARRAY})


# --- in ---------------------------------------------------------------------------------------


def to_column(array: pa.Array) -> Column:
    """The array as a column of ``sql_type(array.type)``."""
    kind = array.type
    type = sql_type(kind)
    if isinstance(kind, pa.ExtensionType):
        array, kind = array.storage, array.storage.type
    valid = _validity(array)
    if pa.types.is_dictionary(kind):
        return _dictionary(array, type, valid)
    if pa.types.is_decimal(kind):
        return _decimal(array, type, valid)
    if type.oid in (t.TEXT, t.BYTEA):
        return _bytes(array, type, valid)
    if pa.types.is_boolean(kind):
        values = np.array(array.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)
        return boolean_column(type, torch.from_numpy(values), valid)
    if pa.types.is_floating(kind):
        wide = array.cast(pa.float32() if type.oid == t.FLOAT4 else pa.float64())
        dtype = np.dtype(np.float32 if type.oid == t.FLOAT4 else np.float64)
        return float_column(type, torch.from_numpy(_numbers(wide, dtype)), valid)
    if pa.types.is_date(kind):
        days = _numbers(array.cast(pa.date32()).view(pa.int32()), np.dtype(np.int32))
        return _bounded(type, days - UNIX_EPOCH_DAYS, valid)
    if pa.types.is_timestamp(kind):
        return _timestamps(array, type, valid)
    if pa.types.is_time(kind):
        micros = array.cast(pa.time64("us")).view(pa.int64())
        return _bounded(type, _numbers(micros, np.dtype(np.int64)), valid)
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return _bounded(type, _numbers(array, _integer_dtype(type.oid)), valid)
    if type.oid == t.UUID:
        return from_values(type, layout.UUID, array.to_pylist())
    return _objects(array, type, valid)


def _integer_dtype(oid: int) -> np.dtype[Any]:
    return np.dtype({t.INT2: np.int16, t.INT4: np.int32}.get(oid, np.int64))


def _validity(array: pa.Array) -> torch.Tensor | None:
    if not array.null_count:
        return None
    return torch.from_numpy(np.array(array.is_valid().to_numpy(zero_copy_only=False), np.bool_))


def _numbers(array: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The values as a writable array; 0 where NULL."""
    filled = array.fill_null(0) if array.null_count else array
    return np.array(filled.to_numpy(zero_copy_only=False), dtype)


def _bounded(type: SqlType, values: npt.NDArray[Any], valid: torch.Tensor | None) -> Column:
    return integer_column(type, torch.from_numpy(np.ascontiguousarray(values)), valid)


def _timestamps(array: pa.Array, type: SqlType, valid: torch.Tensor | None) -> Column:
    raw = _numbers(array.view(pa.int64()), np.dtype(np.int64))
    unit = array.type.unit
    if unit == "ns":
        micros = raw // 1000
    else:
        factor = _UNITS[unit]
        limit = (2**63 - 1) // factor
        if factor > 1 and len(raw) and (raw.max() > limit or raw.min() < -limit):
            raise errors.DatetimeFieldOverflow("timestamp out of range")
        micros = raw * factor
    return _bounded(type, micros - UNIX_EPOCH_MICROSECONDS, valid)


def _decimal(array: pa.Array, type: SqlType, valid: torch.Tensor | None) -> Column:
    kind = array.type
    if kind.precision <= 18:
        wide = array.cast(pa.decimal128(max(kind.precision, 1), kind.scale))
        limbs = np.frombuffer(wide.buffers()[1], np.int64)
        values = limbs[2 * wide.offset : 2 * (wide.offset + len(wide)) : 2].copy()
        if valid is not None:
            values[~valid.numpy()] = 0
        return decimal_column(type, torch.from_numpy(values), kind.scale, valid)
    return from_values(type, layout.DECIMAL64, array.to_pylist())


def _bytes(array: pa.Array, type: SqlType, valid: torch.Tensor | None) -> Column:
    if pa.types.is_null(array.type):
        array = array.cast(pa.large_string())
    wide = array.cast(pa.large_string() if type.oid == t.TEXT else pa.large_binary())
    _, offsets_buffer, data_buffer = wide.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[wide.offset : wide.offset + len(wide) + 1]
    data = np.frombuffer(data_buffer, np.uint8).copy() if data_buffer is not None else np.zeros(
        0, np.uint8
    )
    starts = offsets[:-1].copy()
    lengths = np.diff(offsets).astype(np.int32)
    buffers = (torch.from_numpy(starts), torch.from_numpy(lengths), torch.from_numpy(data))
    return Column(type, layout.TEXT, buffers, valid)


def _dictionary(array: pa.Array, type: SqlType, valid: torch.Tensor | None) -> Column:
    entries = array.dictionary
    is_bytes = type.oid in (t.TEXT, t.BYTEA)
    if not is_bytes or not 0 < len(entries) <= DICTIONARY_ENTRIES_MAX:
        return to_column(array.dictionary_decode())
    values = entries.cast(pa.large_binary()).to_pylist()
    if None in values or len(set(values)) < len(values):
        return to_column(array.dictionary_decode())
    codes = _numbers(array.indices, np.dtype(np.int32))
    dictionary = Dictionary.of(values, is_sorted=False)
    return dictionary_column(type, torch.from_numpy(codes), dictionary, valid)


def _objects(array: pa.Array, type: SqlType, valid: torch.Tensor | None) -> Column:
    """Lists, structs and what else has no layout: through Python objects."""
    if pa.types.is_nested(array.type) and type.oid != t.JSON:
        element = types.get(type.oid).element_oid
        inner = to_column(_flattened(array))
        items = to_values(inner)
        objects: list[Any] = []
        start = 0
        for length, ok in zip(_list_lengths(array), array.is_valid().to_pylist(), strict=True):
            piece = tuple(items[start : start + length])
            start += length
            objects.append(ArrayValue.of(element, piece) if ok else None)
        return host_column(type, objects, valid)
    values = array.to_pylist()
    if type.oid == t.JSON:
        return from_values(
            type, layout.TEXT, [None if v is None else json.dumps(v, default=str) for v in values]
        )
    if type.oid == t.INTERVAL:
        micros = [None if v is None else (0, v.days, v.seconds * 10**6 + v.microseconds)
                  for v in values]
        return from_values(type, layout.INTERVAL, micros)
    return from_values(
        type, layout.DECIMAL64, [None if v is None else Decimal(v) for v in values]
    )


def _flattened(array: pa.Array) -> pa.Array:
    return array.flatten()


def _list_lengths(array: pa.Array) -> list[int]:
    lengths: list[int | None] = pa.compute.list_value_length(array).to_pylist()
    return [length or 0 for length in lengths]


# --- out --------------------------------------------------------------------------------------


def arrow_type(type: SqlType) -> pa.DataType:
    """The Arrow type that a column is written as; text for what has no better one."""
    if type.oid == t.NUMERIC and type.typmod >= 0:
        precision, scale = t.numeric_precision_scale(type.typmod)
        return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)
    return _OUT.get(type.oid, pa.string())


_OUT: dict[int, pa.DataType] = {
    t.BOOL: pa.bool_(), t.INT2: pa.int16(), t.INT4: pa.int32(), t.INT8: pa.int64(),
    t.OID: pa.int64(), t.FLOAT4: pa.float32(), t.FLOAT8: pa.float64(), t.BYTEA: pa.binary(),
    t.DATE: pa.date32(), t.TIME: pa.time64("us"), t.TIMESTAMP: pa.timestamp("us"),
    t.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
}


def from_column(column: Column, rows: int) -> pa.Array:
    """The first ``rows`` rows as an Arrow array of ``arrow_type``; 22008 for infinite dates."""
    kind = arrow_type(column.type)
    values = to_values(column, rows)
    oid = column.type.oid
    if oid == t.DATE:
        shifted = [None if v is None else _finite(v + UNIX_EPOCH_DAYS, 2**31 - 1) for v in values]
        return pa.array(shifted, pa.int32()).view(kind)
    if oid in (t.TIMESTAMP, t.TIMESTAMPTZ):
        shifted = [
            None if v is None else _finite(v + UNIX_EPOCH_MICROSECONDS, 2**63 - 1) for v in values
        ]
        return pa.array(shifted, pa.int64()).view(kind)
    if oid == t.TIME:
        return pa.array(values, pa.int64()).view(kind)
    if kind == pa.string() and column.layout.kind is not Kind.TEXT:
        codec, context = types.get(oid), TypeContext()
        values = [None if v is None else codec.format(v, context) for v in values]
    return pa.array(values, kind)


def _finite(value: int, limit: int) -> int:
    if not -limit <= value < limit:
        raise errors.DatetimeFieldOverflow("infinite dates and times have no Arrow form")
    return value
