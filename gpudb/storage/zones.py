"""Zone maps: which zones of a segment can hold a row that a filter accepts.

A filter is understood when it compares a column with a constant: ``=``, ``<``, ``<=``, ``>``,
``>=``, IS [NOT] NULL, an IN list of constants. The constant is turned into the domain of the
bounds (scaled integers for decimals). NaN is greater than every number; what is not understood
keeps every zone.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from gpudb.catalog.objects import SegmentColumn, SegmentRef, ZoneMap
from gpudb.storage.encoding.base import Parameters

_DECODER = msgspec.msgpack.Decoder(Parameters)


@dataclass(frozen=True, slots=True)
class ZoneFilter:
    """``column operator value``; operators are those of the module's docstring, ``in`` (values),
    ``null`` and ``not null``. ``value`` is a host value of the column's type.
    """

    attnum: int
    operator: str
    value: Any = None


Mask = npt.NDArray[np.bool_]


def surviving_zones(segment: SegmentRef, filters: Sequence[ZoneFilter], zone_rows: int) -> Mask:
    """One flag a zone of ``zone_rows`` rows: False = no row of it can pass all filters."""
    count = -(-segment.rows // zone_rows)
    keep = np.ones(count, np.bool_)
    for item in filters:
        column = segment.column(item.attnum)
        if column is not None:
            keep &= _test(column, segment.rows, item, count)
    return keep


def _test(column: SegmentColumn, rows: int, item: ZoneFilter, count: int) -> Any:
    if item.operator == "null":
        return _nulls(column, count) > 0 if column.nulls else False
    if item.operator == "not null":
        return column.nulls < rows
    if column.nulls == rows:
        return False
    if column.low is None or column.high is None:
        return True
    low, high = _bounds(column, count)
    if item.operator == "in":
        keep: Any = False
        for value in item.value:
            keep = keep | _compare(low, high, "=", _domain(column, value), column.has_nan)
        return keep
    return _compare(low, high, item.operator, _domain(column, item.value), column.has_nan)


def _nulls(column: SegmentColumn, count: int) -> Any:
    if column.zones is not None and column.zones.nulls:
        return np.frombuffer(column.zones.nulls, np.int32)
    return np.full(count, column.nulls, np.int32)


def _bounds(column: SegmentColumn, count: int) -> tuple[Any, Any]:
    zones: ZoneMap | None = column.zones
    if zones is None or len(zones.low) // 8 != count:
        return column.low, column.high
    return np.frombuffer(zones.low, zones.dtype), np.frombuffer(zones.high, zones.dtype)


def _domain(column: SegmentColumn, value: Any) -> Any:
    """The value in the domain of the column's bounds; None when it has no place there."""
    if isinstance(column.low, bytes):
        return value.encode() if isinstance(value, str) else value
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            return float(value)
        return value.scaleb(_DECODER.decode(column.parameters).scale)
    return value


def _compare(low: Any, high: Any, operator: str, value: Any, has_nan: bool) -> Any:
    if value is None:
        return False
    if isinstance(value, float) and math.isnan(value):
        return has_nan if operator in ("=", ">=") else operator in ("<", "<=")
    if isinstance(value, decimal.Decimal):
        floor, ceiling = int(value.to_integral_value(decimal.ROUND_FLOOR)), int(
            value.to_integral_value(decimal.ROUND_CEILING)
        )
    else:
        floor = ceiling = value
    match operator:
        case "=":
            return (low <= floor) & (high >= ceiling) if floor == ceiling else False
        case "<":
            return low < ceiling
        case "<=":
            return low <= floor
        case ">":
            return (high > floor) | has_nan
        case ">=":
            return (high >= ceiling) | has_nan
    return True
