"""Window frames: the range of rows that each row's aggregate or first_value sees."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpudb import errors, sqltype
from gpudb.column import Column, expand, integers, validity
from gpudb.exec.context import QueryContext
from gpudb.exec.operators.window_range import Direction, range_edge
from gpudb.expr import BoundKind, Frame, FrameUnit

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
        if self._frame.unit is not FrameUnit.RANGE and bool((integers(offset) < 0).any()):
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
        signed: Positions = distance if forward else -distance
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
        direction = Direction(not forward, not is_start, descending)
        found = range_edge(
            wide, offset, self._valid_range(valid), self._context, direction=direction
        )
        edge = np.where(valid, found, self._peer_begin if is_start else self._peer_end)
        # PostgreSQL's edges never move back; months of unequal length would make them.
        return np.maximum.accumulate(edge)

    def _valid_range(self, valid: npt.NDArray[np.bool_]) -> tuple[Positions, Positions]:
        """The rows of each partition whose key is not NULL (they are together)."""
        nulls = np.r_[0, np.cumsum(~valid)]
        first_is_null = ~valid[np.minimum(self._begin, self._rows - 1)]
        count = nulls[self._end] - nulls[self._begin]
        low = np.where(first_is_null, self._begin + count, self._begin)
        high = np.where(first_is_null, self._end, self._end - count)
        return low, high
