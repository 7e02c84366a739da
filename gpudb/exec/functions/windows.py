"""Window functions: row_number, rank, lag, first_value and their like.

A body gets the WindowRows (rows sorted by partition and order), the call and its argument columns
in that order, and returns the column of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from gpudb import errors
from gpudb.catalog.functions import window
from gpudb.column import (
    Column,
    expand,
    float_column,
    integer_column,
    integers,
    validity,
)
from gpudb.expr import FrameExclusion, WindowCall
from gpudb.kernels.gather import gather_or_null
from gpudb.kernels.select import choose

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WindowRows:
    """R sorted rows. For each row, half-open ranges of positions: its partition [begin, end), its
    peers (equal in the ordering), its frame before exclusion; ``peer_group`` counts the peer groups
    of the partition from 0.
    """

    rows: int
    partition_begin: Positions
    partition_end: Positions
    peer_begin: Positions
    peer_end: Positions
    peer_group: Positions
    frame_begin: Positions
    frame_end: Positions
    exclusion: FrameExclusion

    def number(self) -> Positions:
        """The row's number in its partition, from 0."""
        return np.arange(self.rows) - self.partition_begin


def _bigint(call: WindowCall, values: Positions) -> Column:
    high = int(values.max()) if len(values) else 0
    return integer_column(call.type, torch.from_numpy(values), lo=0, hi=high)


@window("window_row_number")
def row_number(rows: WindowRows, call: WindowCall, columns: Sequence[Column]) -> Column:
    return _bigint(call, rows.number() + 1)


@window("window_rank")
def rank(rows: WindowRows, call: WindowCall, columns: Sequence[Column]) -> Column:
    return _bigint(call, rows.peer_begin - rows.partition_begin + 1)


@window("window_dense_rank")
def dense_rank(rows: WindowRows, call: WindowCall, columns: Sequence[Column]) -> Column:
    return _bigint(call, rows.peer_group + 1)


@window("window_percent_rank")
def percent_rank(rows: WindowRows, call: WindowCall, columns: Sequence[Column]) -> Column:
    before = rows.peer_begin - rows.partition_begin
    others = np.maximum(rows.partition_end - rows.partition_begin - 1, 1)
    return float_column(call.type, torch.from_numpy(before / others))


@window("window_cume_dist")
def cume_dist(rows: WindowRows, call: WindowCall, columns: Sequence[Column]) -> Column:
    until = rows.peer_end - rows.partition_begin
    return float_column(
        call.type, torch.from_numpy(until / (rows.partition_end - rows.partition_begin))
    )


@window("window_ntile", fallible=True)
def ntile(rows: WindowRows, call: WindowCall, columns: Sequence[Column]) -> Column:
    """Buckets as even as possible, the first ones larger; the count is that of the first row."""
    argument = expand(columns[0], rows.rows)
    valid = validity(argument, rows.rows).numpy()[rows.partition_begin]
    buckets = integers(argument).numpy()[rows.partition_begin]
    if bool((valid & (buckets <= 0)).any()):
        raise errors.InvalidArgumentForNtileFunction(
            "argument of ntile must be greater than zero"
        )
    buckets = np.maximum(buckets, 1)
    size, rest = np.divmod(rows.partition_end - rows.partition_begin, buckets)
    number = rows.number()
    large = (size + 1) * rest
    found = np.where(
        number < large, number // (size + 1), rest + (number - large) // np.maximum(size, 1)
    )
    mask = None if valid.all() else torch.from_numpy(valid)
    return integer_column(call.type, torch.from_numpy((found + 1).astype(np.int32)), mask)


def _shifted(
    rows: WindowRows, call: WindowCall, columns: Sequence[Column], direction: int
) -> Column:
    """The value ``offset`` rows away in the partition, else the default."""
    value = expand(columns[0], rows.rows)
    offset = np.ones(rows.rows, np.int64)
    known = np.ones(rows.rows, bool)
    if len(columns) > 1:
        column = expand(columns[1], rows.rows)
        offset = integers(column).numpy()
        known = validity(column, rows.rows).numpy()
    target = np.arange(rows.rows) + direction * offset
    inside = (target >= rows.partition_begin) & (target < rows.partition_end)
    found = gather_or_null(value, torch.from_numpy(np.where(inside & known, target, -1)))
    if len(columns) < 3:
        return found
    outside = torch.from_numpy((known & ~inside).astype(np.int64))
    return choose([found, expand(columns[2], rows.rows)], outside, rows.rows)


@window("window_lag", "window_lag_with_offset", "window_lag_with_offset_and_default")
def lag(rows: WindowRows, call: WindowCall, columns: Sequence[Column]) -> Column:
    return _shifted(rows, call, columns, -1)


@window("window_lead", "window_lead_with_offset", "window_lead_with_offset_and_default")
def lead(rows: WindowRows, call: WindowCall, columns: Sequence[Column]) -> Column:
    return _shifted(rows, call, columns, 1)


# --- positions in the frame ------------------------------------------------------------


def _holes(rows: WindowRows) -> tuple[Positions, Positions, Positions, Positions]:
    """The excluded ranges within the frame: [a, b) and [c, d), in order, maybe empty."""
    own = np.arange(rows.rows)
    match rows.exclusion:
        case FrameExclusion.CURRENT_ROW:
            ranges = (own, own + 1, own + 1, own + 1)
        case FrameExclusion.GROUP:
            ranges = (rows.peer_begin, rows.peer_end, rows.peer_end, rows.peer_end)
        case FrameExclusion.TIES:
            ranges = (rows.peer_begin, own, own + 1, rows.peer_end)
        case _:
            ranges = (own, own, own, own)
    a, b, c, d = (
        np.minimum(np.maximum(edge, rows.frame_begin), rows.frame_end) for edge in ranges
    )
    return a, b, c, d


def frame_position(rows: WindowRows, number: Positions) -> Positions:
    """The position of row ``number`` (from 0) of each frame, exclusion applied; -1 outside."""
    if rows.exclusion is FrameExclusion.NO_OTHERS:
        place = rows.frame_begin + number
        return np.where((number >= 0) & (place < rows.frame_end), place, -1)
    a, b, c, d = _holes(rows)
    place = rows.frame_begin + number
    place = np.where(place >= a, place + (b - a), place)
    place = np.where(place >= c, place + (d - c), place)
    return np.where((number >= 0) & (place < rows.frame_end), place, -1)


def frame_size(rows: WindowRows) -> Positions:
    """The rows of each frame, exclusion applied."""
    size: Positions = np.maximum(rows.frame_end - rows.frame_begin, 0)
    if rows.exclusion is FrameExclusion.NO_OTHERS:
        return size
    a, b, c, d = _holes(rows)
    left: Positions = size - (b - a) - (d - c)
    return left


def _at(column: Column, rows: WindowRows, place: Positions) -> Column:
    return gather_or_null(expand(column, rows.rows), torch.from_numpy(place))


@window("window_first_value")
def first_value(rows: WindowRows, call: WindowCall, columns: Sequence[Column]) -> Column:
    return _at(columns[0], rows, frame_position(rows, np.zeros(rows.rows, np.int64)))


@window("window_last_value")
def last_value(rows: WindowRows, call: WindowCall, columns: Sequence[Column]) -> Column:
    return _at(columns[0], rows, frame_position(rows, frame_size(rows) - 1))


@window("window_nth_value", fallible=True)
def nth_value(rows: WindowRows, call: WindowCall, columns: Sequence[Column]) -> Column:
    argument = expand(columns[1], rows.rows)
    number = integers(argument).numpy()
    known = validity(argument, rows.rows).numpy()
    if bool((known & (number <= 0)).any()):
        raise errors.InvalidArgumentForNthValueFunction(
            "argument of nth_value must be greater than zero"
        )
    place = frame_position(rows, number - 1)
    return _at(columns[0], rows, np.where(known, place, -1))
