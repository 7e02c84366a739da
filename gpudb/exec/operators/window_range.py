"""RANGE with an offset: the rows whose sort key lies within a distance of the current row's.

Each row's limit (key - offset or key + offset, by in_range's rules for the type) becomes an integer
in the same order as the keys, and a binary search among the partition's rows finds the edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gpudb import errors, sqltype
from gpudb.catalog import functions, types
from gpudb.catalog.types.numeric import EXACT
from gpudb.column import (
    INT64_MAX,
    Column,
    decimals,
    expand,
    integers,
    to_values,
    validity,
)
from gpudb.exec.context import QueryContext
from gpudb.exec.evaluation import EvaluationContext
from gpudb.kernels import decimal_math
from gpudb.kernels.order import dense_ranks, float_order, interval_spans
from gpudb.layout import Kind

Positions = npt.NDArray[np.int64]
Span = tuple[Positions, Positions]
_TIMES = (sqltype.DATE, sqltype.TIMESTAMP, sqltype.TIMESTAMPTZ)


@dataclass(frozen=True, slots=True)
class Limits:
    """Keys and limits as integers in the keys' order (int64 R each); ``is_below`` and
    ``is_above`` (bool R): the limit lies beyond all values of int64.
    """

    keys: Tensor
    limits: Tensor
    is_below: Tensor | None = None
    is_above: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Direction:
    """Which edge of the frame is wanted, PRECEDING or FOLLOWING, and how the keys run."""

    is_preceding: bool
    is_end: bool
    is_descending: bool

    @property
    def adds(self) -> bool:
        """Whether the limit is key + offset."""
        return self.is_preceding == self.is_descending

    @property
    def opens_up(self) -> bool:
        """Whether the frame reaches up to the limit, not down to it."""
        return self.is_end != self.is_descending


def range_edge(
    column: Column, offset: Column, span: Span, query: QueryContext, *, direction: Direction
) -> Positions:
    """The edge (R) in [low, high) of each row's frame: its first row, or the row after its last;
    arbitrary for NULL keys. 22013 for a negative offset, unless every key is NULL.
    """
    low, high = (torch.from_numpy(bound) for bound in span)
    rows = low.shape[0]
    if not bool(validity(column, rows).any()):
        return span[0]
    found = _limits(column, offset, query, direction)
    keys, limits = found.keys, found.limits
    before, after = found.is_below, found.is_above
    if direction.is_descending:
        keys, limits, before, after = ~keys, ~limits, after, before
    edge = _search(keys, limits, low, high, is_after=direction.is_end)
    if before is not None:
        edge = torch.where(before, low, edge)
    if after is not None:
        edge = torch.where(after, high, edge)
    return edge.numpy()


def _search(keys: Tensor, limits: Tensor, low: Tensor, high: Tensor, *, is_after: bool) -> Tensor:
    """The first position in [low, high) whose key is >= the limit, or > where ``is_after``."""
    last = keys.shape[0] - 1
    while bool((low < high).any()):
        middle = (low + high) // 2
        value = keys.index_select(0, middle.clamp(max=last))
        goes_right = (value <= limits if is_after else value < limits) & (low < high)
        low = torch.where(goes_right, middle + 1, low)
        high = torch.where(goes_right, high, middle)
    return low


def _limits(
    column: Column, offset: Column, query: QueryContext, direction: Direction
) -> Limits:
    adds, opens_up = direction.adds, direction.opens_up
    kind, oid = column.layout.kind, column.type.oid
    step = to_values(offset)[0]
    if kind is Kind.FLOAT:
        return _float_limits(column, float(step), adds=adds, opens_up=opens_up)
    if oid == sqltype.NUMERIC:
        return _numeric_limits(column, step, adds=adds, opens_up=opens_up)
    if oid in _TIMES:
        _check_interval(step)
        return _moment_limits(column, offset, query, adds=adds)
    if kind is Kind.INTERVAL:
        _check_interval(step)
        return _interval_limits(column, offset, adds=adds)
    if oid in (sqltype.TIME, sqltype.TIMETZ):
        _check(step[2] >= 0)
        if oid == sqltype.TIMETZ:
            return _zoned_limits(column, step[2], adds=adds)
        return _integer_limits(integers(column), step[2], adds=adds)
    if kind is Kind.INT:
        _check(step >= 0)
        return _integer_limits(integers(column), step, adds=adds)
    raise errors.FeatureNotSupported("RANGE with offset is not supported for this column type")


def _check(is_usable: bool) -> None:
    if not is_usable:
        raise errors.InvalidPrecedingOrFollowingSize(
            "invalid preceding or following size in window function"
        )


def _check_interval(step: tuple[int, int, int]) -> None:
    months, days, micros = step
    _check((months * 30 + days) * 86_400_000_000 + micros >= 0)


def _integer_limits(values: Tensor, step: int, *, adds: bool) -> Limits:
    """``step`` >= 0; any Python integer."""
    if step > INT64_MAX:
        everywhere = torch.ones_like(values, dtype=torch.bool)
        return Limits(
            values, values, None if adds else everywhere, everywhere if adds else None
        )
    if adds:
        limits = values + step
        return Limits(values, limits, is_above=limits < values)
    limits = values - step
    return Limits(values, limits, is_below=limits > values)


def _float_limits(column: Column, step: float, *, adds: bool, opens_up: bool) -> Limits:
    _check(step >= 0)
    values = column.data[0].to(torch.float64)
    limits = values + step if adds else values - step
    if step == float("inf"):
        is_opposite = values == (float("-inf") if adds else float("inf"))
        limits = torch.where(is_opposite, float("inf") if opens_up else float("-inf"), limits)
    return Limits(float_order(values), float_order(limits))


def _numeric_limits(column: Column, step: Decimal, *, adds: bool, opens_up: bool) -> Limits:
    _check(not step.is_nan() and step >= 0)
    exponent = step.as_tuple().exponent
    if column.layout.kind is Kind.DECIMAL and isinstance(exponent, int):
        factor = 10 ** max(-exponent - column.scale, 0)
        scale = max(column.scale, -exponent)
        values = integers(column)
        largest = max(-int(values.min()), int(values.max()))
        if largest * factor <= INT64_MAX:
            whole = int(step.scaleb(scale, context=EXACT))
            return _integer_limits(values * factor, whole, adds=adds)
    keys = [Decimal(0) if value is None else value for value in decimals(column)]
    limits = [_moved(value, step, adds=adds, opens_up=opens_up) for value in keys]
    return _ranked([_sortable(v) for v in keys], [_sortable(v) for v in limits])


def _moved(value: Decimal, step: Decimal, *, adds: bool, opens_up: bool) -> Decimal:
    if value.is_nan():
        return value
    if value.is_infinite() and step.is_infinite() and (value < 0) == adds:
        return Decimal("Infinity") if opens_up else Decimal("-Infinity")
    return decimal_math.add(value, step if adds else -step)


def _sortable(value: Decimal) -> tuple[int, Decimal]:
    return (1, Decimal(0)) if value.is_nan() else (0, value)


def _ranked(keys: list[Any], limits: list[Any]) -> Limits:
    """Sortable Python values as ranks in their common order."""
    ranks = torch.from_numpy(dense_ranks([*keys, *limits]))
    return Limits(ranks[: len(keys)], ranks[len(keys) :])


def _interval_limits(column: Column, offset: Column, *, adds: bool) -> Limits:
    keys = interval_spans(column)
    step = interval_spans(offset)[0]
    return _ranked(keys, [key + step if adds else key - step for key in keys])


def _zoned_limits(column: Column, micros: int, *, adds: bool) -> Limits:
    sort_key = types.get(column.type.oid).sort_key
    values = to_values(column)
    some = next(value for value in values if value is not None)
    present = [some if value is None else value for value in values]
    shift = micros if adds else -micros
    moved = [(time + shift, zone) for time, zone in present]
    return _ranked([sort_key(value) for value in present], [sort_key(value) for value in moved])


def _moment_limits(
    column: Column, offset: Column, query: QueryContext, *, adds: bool
) -> Limits:
    """Dates count as timestamps at midnight."""
    rows = column.rows
    context = EvaluationContext(query, rows, column.valid)
    moments = column
    if column.type.oid == sqltype.DATE:
        moments = functions.SCALARS["date_timestamp"].body(context, column)
    family = "timestamptz" if column.type.oid == sqltype.TIMESTAMPTZ else "timestamp"
    body = functions.SCALARS[f"{family}_{'pl' if adds else 'mi'}_interval"].body
    moved = expand(body(context, moments, offset), rows)
    if context.errors.error is not None:
        raise context.errors.error
    return Limits(integers(moments), integers(moved))
