"""Window functions that are not aggregates: numbering, ranks, neighbours, values of the frame.

A body takes WindowRows and returns the result for each row in (partition, order) order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gpudb import errors
from gpudb.catalog.functions import window
from gpudb.column import Column, expand, float_column, integer_column, integers, validity
from gpudb.exec.context import QueryContext
from gpudb.kernels import frames
from gpudb.kernels.frames import Partitions, Range
from gpudb.kernels.gather import gather_or_null
from gpudb.kernels.select import choose
from gpudb.sqltype import SqlType


@dataclass(frozen=True, slots=True)
class WindowRows:
    """All rows of a window call, sorted; ``arguments`` have R rows or one. ``ranges`` are the
    rows' frames.
    """

    type: SqlType
    arguments: tuple[Column, ...]
    partitions: Partitions
    ranges: Sequence[Range]
    query: QueryContext

    @property
    def rows(self) -> int:
        return self.partitions.rows


def _counting(window_rows: WindowRows, values: Tensor) -> Column:
    return integer_column(window_rows.type, values, lo=0, hi=window_rows.rows)


@window("window_row_number")
def row_number(rows: WindowRows) -> Column:
    """1, 2, 3 ... in the partition."""
    return _counting(rows, rows.partitions.position - rows.partitions.first + 1)


def _rank(parts: Partitions) -> Tensor:
    return parts.peer_first - parts.first + 1


@window("window_rank")
def rank(rows: WindowRows) -> Column:
    """The row number of the first peer."""
    return _counting(rows, _rank(rows.partitions))


@window("window_dense_rank")
def dense_rank(rows: WindowRows) -> Column:
    """The number of the peer group in the partition."""
    parts = rows.partitions
    return _counting(rows, parts.group - parts.group.index_select(0, parts.first) + 1)


@window("window_percent_rank")
def percent_rank(rows: WindowRows) -> Column:
    """(rank - 1) / (rows - 1), 0 for the only row."""
    parts = rows.partitions
    others = (parts.end - parts.first - 1).clamp(min=1).to(torch.float64)
    return float_column(rows.type, (_rank(parts) - 1).to(torch.float64) / others)


@window("window_cume_dist")
def cume_dist(rows: WindowRows) -> Column:
    """The share of the partition's rows up to the last peer."""
    parts = rows.partitions
    upto = (parts.peer_end - parts.first).to(torch.float64)
    return float_column(rows.type, upto / (parts.end - parts.first).to(torch.float64))


@window("window_ntile", fallible=True)
def ntile(rows: WindowRows) -> Column:
    """The bucket, from 1. The argument counts at the partition's first row where it is not NULL;
    rows before that one get NULL.
    """
    parts = rows.partitions
    argument = expand(rows.arguments[0], rows.rows)
    present = validity(argument, rows.rows)
    here = parts.position
    next_present = torch.where(present, here, rows.rows)
    next_present = next_present.flip(0).cummin(0).values.flip(0)
    origin = next_present.index_select(0, parts.first)
    valid = here >= origin
    buckets = integers(argument).index_select(0, origin.clamp(max=max(rows.rows - 1, 0)))
    if bool((valid & (buckets <= 0)).any()):
        raise errors.InvalidArgumentForNtileFunction("argument of ntile must be greater than zero")
    buckets = torch.where(valid, buckets, 1)
    total = parts.end - parts.first
    size, remainder = total // buckets, total % buckets
    remainder = torch.where(size == 0, 0, remainder)
    size = size.clamp(min=1)
    offset = (here - origin).clamp(min=0)
    in_large = remainder * (size + 1)
    value = torch.where(
        offset < in_large, offset // (size + 1), remainder + (offset - in_large) // size
    )
    values = (value + 1).to(torch.int32)
    return integer_column(rows.type, values, None if bool(valid.all()) else valid)


def _neighbour(rows: WindowRows, direction: int) -> Column:
    """The argument some rows before (-1) or after (1), else the default, else NULL."""
    parts = rows.partitions
    argument = expand(rows.arguments[0], rows.rows)
    offset: Tensor = torch.ones(rows.rows, dtype=torch.int64)
    known: Tensor | None = None
    if len(rows.arguments) > 1:
        given = expand(rows.arguments[1], rows.rows)
        offset, known = integers(given), given.valid
    target = parts.position + direction * offset
    is_inside = (target >= parts.first) & (target < parts.end)
    usable = is_inside if known is None else is_inside & known
    found = gather_or_null(argument, torch.where(usable, target, -1))
    if len(rows.arguments) > 2:
        default = expand(rows.arguments[2], rows.rows)
        takes_default = ~is_inside if known is None else ~is_inside & known
        found = choose([found, default], takes_default.to(torch.int64), rows.rows)
    return replace(found, type=rows.type)


@window(
    "window_lag", "window_lag_with_offset", "window_lag_with_offset_and_default"
)
def lag(rows: WindowRows) -> Column:
    """The argument's value some rows before."""
    return _neighbour(rows, -1)


@window(
    "window_lead", "window_lead_with_offset", "window_lead_with_offset_and_default"
)
def lead(rows: WindowRows) -> Column:
    """The argument's value some rows after."""
    return _neighbour(rows, 1)


def _frame_value(rows: WindowRows, number: Tensor) -> Column:
    """The argument at row ``number`` (from 0) of the frame, NULL where there is none."""
    argument = expand(rows.arguments[0], rows.rows)
    return replace(gather_or_null(argument, frames.nth(rows.ranges, number)), type=rows.type)


@window("window_first_value")
def first_value(rows: WindowRows) -> Column:
    """The argument at the frame's first row."""
    return _frame_value(rows, torch.zeros(rows.rows, dtype=torch.int64))


@window("window_last_value")
def last_value(rows: WindowRows) -> Column:
    """The argument at the frame's last row."""
    return _frame_value(rows, frames.lengths(rows.ranges) - 1)


@window("window_nth_value", fallible=True)
def nth_value(rows: WindowRows) -> Column:
    """The argument at the frame's row number n; NULL for n NULL."""
    given = expand(rows.arguments[1], rows.rows)
    known = validity(given, rows.rows)
    number = integers(given)
    if bool((known & (number <= 0)).any()):
        raise errors.InvalidArgumentForNthValueFunction(
            "argument of nth_value must be greater than zero"
        )
    return _frame_value(rows, torch.where(known, number - 1, -1))
