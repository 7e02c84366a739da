"""Results as Python objects and Arrow tables."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from gpudb import sqltype as t
from gpudb.catalog import types
from gpudb.catalog.types.base import ArrayValue, RecordValue
from gpudb.column import from_host, to_values
from gpudb.result import HostBatch, ResultField

_EPOCH = datetime.datetime(2000, 1, 1)
_EPOCH_DATE = _EPOCH.date().toordinal()
_DAY_MICROSECONDS = 86_400_000_000


def _date(days: int) -> datetime.date | str:
    try:
        return datetime.date.fromordinal(_EPOCH_DATE + days)
    except (ValueError, OverflowError):
        return types.get(t.DATE).format(days, types.TypeContext())


def _time(microseconds: int) -> datetime.time:
    return (_EPOCH + datetime.timedelta(microseconds=microseconds % _DAY_MICROSECONDS)).time()


def _timestamp(microseconds: int) -> datetime.datetime | str:
    try:
        return _EPOCH + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        return types.get(t.TIMESTAMP).format(microseconds, types.TypeContext())


def _timestamptz(microseconds: int) -> datetime.datetime | str:
    found = _timestamp(microseconds)
    return found if isinstance(found, str) else found.replace(tzinfo=datetime.UTC)


def _interval(parts: tuple[int, int, int]) -> datetime.timedelta:
    months, days, microseconds = parts
    return datetime.timedelta(days=months * 30 + days, microseconds=microseconds)


_CONVERTERS: dict[int, Callable[[Any], Any]] = {
    t.DATE: _date,
    t.TIME: _time,
    t.TIMESTAMP: _timestamp,
    t.TIMESTAMPTZ: _timestamptz,
    t.INTERVAL: _interval,
    t.UUID: lambda raw: uuid.UUID(bytes=raw),
}


def to_python(oid: int, value: Any) -> Any:
    """The customary Python object of a host value; None for NULL."""
    if value is None:
        return None
    if isinstance(value, ArrayValue):
        return _nested(value, [to_python(value.element_oid, item) for item in value.items])
    if isinstance(value, RecordValue):
        pairs = zip(value.type_oids, value.values, strict=True)
        return tuple(to_python(item_oid, item) for item_oid, item in pairs)
    convert = _CONVERTERS.get(oid)
    return value if convert is None else convert(value)


def _nested(value: ArrayValue, items: list[Any]) -> list[Any]:
    for length in reversed(value.lengths[1:]):
        items = [items[i : i + length] for i in range(0, len(items), length)]
    return items


_ARROW: dict[int, pa.DataType] = {
    t.BOOL: pa.bool_(), t.INT2: pa.int16(), t.INT4: pa.int32(), t.INT8: pa.int64(),
    t.OID: pa.uint32(), t.FLOAT4: pa.float32(), t.FLOAT8: pa.float64(), t.BYTEA: pa.binary(),
    t.DATE: pa.date32(), t.TIME: pa.time64("us"), t.TIMESTAMP: pa.timestamp("us"),
    t.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
}


def arrow_type(oid: int, typmod: int) -> pa.DataType:
    """The Arrow type of a column: numeric(p,s) as decimal, what has no match as text."""
    if oid == t.NUMERIC and typmod >= 0:
        precision, scale = t.numeric_precision_scale(typmod)
        return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)
    return _ARROW.get(oid, pa.string())


def to_arrow_table(fields: Sequence[ResultField], batches: Sequence[HostBatch]) -> pa.Table:
    """The whole result as an Arrow table."""
    arrays = []
    for index, item in enumerate(fields):
        kind = arrow_type(item.type_oid, item.typmod)
        codec = types.get(item.type_oid)
        context = types.TypeContext()
        values: list[Any] = []
        for batch in batches:
            values.extend(to_values(from_host(batch.columns[index])))
        if kind == pa.string():
            shown = [None if v is None else codec.format(v, context) for v in values]
        else:
            shown = [to_python(item.type_oid, v) for v in values]
        arrays.append(pa.array(shown, kind))
    schema = pa.schema(
        [(item.name, array.type) for item, array in zip(fields, arrays, strict=True)]
    )
    return pa.Table.from_arrays(arrays, schema=schema)
