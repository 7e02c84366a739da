"""Window frames: the range of rows that each row's aggregate or first_value sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gpudb import errors, sqltype
from gpudb.catalog import functions
from gpudb.column import Column, expand, floats, integers, to_values, validity
from gpudb.exec.context import QueryContext
from gpudb.exec.evaluation import EvaluationContext
from gpudb.expr import BoundKind, Frame, FrameUnit
from gpudb.kernels import decimal_math
from gpudb.layout import Kind

Positions = npt.NDArray[np.int64]

_INTERVAL_ADD = {
    sqltype.DATE: ("date_pl_interval", "date_mi_interval"),
    sqltype.TIMESTAMP: ("timestamp_pl_interval", "timestamp_mi_interval"),
    sqltype.TIMESTAMPTZ: ("timestamptz_pl_interval", "timestamptz_mi_interval"),
    sqltype.TIME: ("time_pl_interval", "time_mi_interval"),
    sqltype.INTERVAL: ("interval_pl", "interval_mi"),
}


class Frames:
    """Computes frame bounds of sorted rows, given partitions and peers."""

    def __init__(
        self, context: QueryContext, frame: Frame, rows: int,
        partition: tuple[Positions, Positions], peers: tuple[Positions, Positions, Positions],
    ) -> None:
        self._context = context
        self._frame = frame
        self._rows = rows
        self._begin, self._end = partition
        self._peer_begin, self._peer_end, self._peer_group = peers

    def bounds(
        self, start: Column | None, end: Column | None, key: Column | None, *, is_descending: bool
    ) -> tuple[Positions, Positions]:
        """[begin, end) of each row's frame; ``start`` and ``end`` are offsets, ``key`` the
        ordering's column (for RANGE with an offset).
        """
        self._check(start, "starting")
        self._check(end, "ending")
        frame = self._frame
        first = self._bound(frame.start.kind, start, key, is_descending, is_start=True)
        last = self._bound(frame.end.kind, end, key, is_descending, is_start=False)
        begin = np.clip(first, self._begin, self._end)
        return begin, np.maximum(np.clip(last, self._begin, self._end), begin)

    def _check(self, offset: Column | None, which: str) -> None:
        if offset is None or not self._rows:
            return
        if offset.valid is not None and not bool(offset.valid.all()):
            raise errors.NullValueNotAllowed(f"frame {which} offset must not be null")
        if self._frame.unit is FrameUnit.RANGE:
            if _is_negative(offset):
                raise errors.InvalidPrecedingOrFollowingSize(
                    "invalid preceding or following size in window function"
                )
        elif bool((integers(offset) < 0).any()):
            raise errors.InvalidPrecedingOrFollowingSize(
                f"frame {which} offset must not be negative"
            )

    def _bound(
        self, kind: BoundKind, offset: Column | None, key: Column | None, descending: bool,
        *, is_start: bool,
    ) -> Positions:
        if kind is BoundKind.UNBOUNDED_PRECEDING:
            return self._begin
        if kind is BoundKind.UNBOUNDED_FOLLOWING:
            return self._end
        own = np.arange(self._rows)
        if kind is BoundKind.CURRENT_ROW:
            if self._frame.unit is FrameUnit.ROWS:
                return own if is_start else own + 1
            return self._peer_begin if is_start else self._peer_end
        assert offset is not None
        forward = kind is BoundKind.FOLLOWING
        if self._frame.unit is FrameUnit.RANGE:
            assert key is not None
            return self._range(offset, key, descending, forward, is_start=is_start)
        distance = np.broadcast_to(integers(offset).numpy(), self._rows)
        distance = np.minimum(distance, self._rows + 1)
        signed = distance if forward else -distance
        if self._frame.unit is FrameUnit.ROWS:
            return own + signed if is_start else own + signed + 1
        return self._groups(signed, is_start=is_start)

    def _groups(self, signed: Positions, *, is_start: bool) -> Positions:
        """The begin or end of the peer group ``signed`` groups away."""
        starts = np.flatnonzero(np.r_[True, self._peer_begin[1:] != self._peer_begin[:-1]])
        ends = np.r_[starts[1:], self._rows]
        ordinal = np.searchsorted(starts, self._peer_begin)
        first = ordinal - self._peer_group
        last = np.searchsorted(starts, self._end - 1, "right") - 1
        wanted = ordinal + signed
        place = np.clip(wanted, first, last)
        if is_start:
            return np.where(wanted > last, self._end, starts[place])
        return np.where(wanted < first, self._begin, ends[place])

    def _range(
        self, offset: Column, key: Column, descending: bool, forward: bool, *, is_start: bool
    ) -> Positions:
        """The rows whose key is within the offset; NULL keys see their NULL peers only."""
        wide = expand(key, self._rows)
        valid = validity(wide, self._rows).numpy()
        adds = forward != descending
        values, targets = _keys_and_targets(
            self._context, wide, expand(offset, self._rows), adds=adds
        )
        low, high = self._valid_range(valid)
        is_before: Callable[[Any, Any], Any]
        if is_start:
            is_before = np.greater if descending else np.less
        else:
            is_before = np.greater_equal if descending else np.less_equal
        found = _search(values, targets, low, high, is_before)
        return np.where(valid, found, self._peer_begin if is_start else self._peer_end)

    def _valid_range(self, valid: npt.NDArray[np.bool_]) -> tuple[Positions, Positions]:
        """The rows of each partition whose key is not NULL (they are together)."""
        nulls = np.r_[0, np.cumsum(~valid)]
        first_is_null = ~valid[np.minimum(self._begin, self._rows - 1)]
        count = nulls[self._end] - nulls[self._begin]
        low = np.where(first_is_null, self._begin + count, self._begin)
        high = np.where(first_is_null, self._end, self._end - count)
        return low, high


def _is_negative(offset: Column) -> bool:
    match offset.layout.kind:
        case Kind.INT | Kind.DECIMAL:
            return bool((integers(offset) < 0).any())
        case Kind.FLOAT:
            values = floats(offset)
            return bool((values < 0).any()) or bool(values.isnan().any())
        case Kind.INTERVAL:
            from gpudb.kernels.order import interval_spans

            return any(span < 0 for span in interval_spans(offset))
        case _:
            return any(v is not None and (v.is_nan() or v < 0) for v in to_values(offset))


def _keys_and_targets(
    context: QueryContext, key: Column, offset: Column, *, adds: bool
) -> tuple[Any, Any]:
    """The keys, and each key plus (or minus) its offset, as comparable arrays."""
    if offset.layout.kind is Kind.INTERVAL and key.type.oid in _INTERVAL_ADD:
        return _temporal(context, key, offset, adds=adds)
    if key.layout.kind is Kind.FLOAT:
        values = floats(key).numpy()
        values = np.where(np.isnan(values), np.inf, values)
        distance = floats(offset).numpy() if offset.layout.kind is Kind.FLOAT else (
            integers(offset).to(torch.float64).numpy()
        )
        return values, values + distance if adds else values - distance
    if key.layout.kind is Kind.INT:
        values = integers(key).numpy()
        distance = integers(offset).numpy()
        moved = values + distance if adds else values - distance
        overflow = moved < values if adds else moved > values
        limit = np.iinfo(np.int64).max if adds else np.iinfo(np.int64).min
        return values, np.where(overflow, limit, moved)
    numbers = [_number(v) for v in to_values(key)]
    distances = [_number(v) for v in to_values(offset)]
    combine = decimal_math.add if adds else decimal_math.subtract
    moved_objects = [combine(a, b) for a, b in zip(numbers, distances, strict=True)]
    return _objects(numbers), _objects(moved_objects)


def _number(value: Any) -> Any:
    if value is None:
        return decimal_math.scaled(0, 0)
    if value.is_nan():
        return type(value)("Infinity")
    return value


def _objects(values: list[Any]) -> Any:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def _temporal(context: QueryContext, key: Column, offset: Column, *, adds: bool) -> tuple[Any, Any]:
    body = functions.SCALARS[_INTERVAL_ADD[key.type.oid][0 if adds else 1]].body
    rows = key.rows
    evaluation = EvaluationContext(context, rows, key.valid)
    moved = expand(body(evaluation, key, offset), rows)
    if evaluation.errors.error is not None:
        raise evaluation.errors.error
    if key.layout.kind is Kind.INTERVAL:
        from gpudb.kernels.order import interval_spans

        return _objects(interval_spans(key)), _objects(interval_spans(moved))
    values = integers(key).numpy()
    if key.type.oid == sqltype.DATE:
        values = values * 86_400_000_000
    return values, integers(moved).numpy()


def _search(
    values: Any, targets: Any, low: Positions, high: Positions,
    is_before: Callable[[Any, Any], Any],
) -> Positions:
    """The first position in [low, high) whose value is not before the target (R), by bisection."""
    low, high = low.copy(), high.copy()
    while True:
        is_open = low < high
        if not is_open.any():
            return low
        middle = (low + high) // 2
        safe = np.minimum(middle, len(values) - 1)
        before = np.asarray(is_before(values[safe], targets), bool) & is_open
        low = np.where(before, middle + 1, low)
        high = np.where(is_open & ~before, middle, high)
