"""Window functions: one sort by partition and order, then every call over the sorted rows.

Aggregates over frames: once per partition where every frame is the whole partition; by differences
of prefix sums where the state is an exact sum; by a tree of blocks for least, greatest and float
sums; else by gathering each frame's rows, a bounded number at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gpudb import errors
from gpudb.catalog import functions
from gpudb.column import Batch, Column, expand, take_rows
from gpudb.exec.builder import Builder, Stream, builds, positions
from gpudb.exec.eager import Predicates
from gpudb.exec.functions.aggregates import (
    Aggregate,
    Count,
    ExactState,
    ExactSum,
    ExtremeAggregate,
    FloatSum,
    GroupRows,
    Tensors,
)
from gpudb.exec.functions.windows import WindowRows, frame_position, frame_size
from gpudb.exec.operators.aggregate import Input, make_aggregate
from gpudb.exec.operators.collect import CollectSink, pieces
from gpudb.exec.operators.frames import Frames
from gpudb.exec.operators.joins import ranges
from gpudb.exec.pipeline import LazySource, Piece
from gpudb.expr import (
    AggregateCall,
    BoundKind,
    Expr,
    FrameExclusion,
    SortKey,
    WindowCall,
)
from gpudb.kernels import order, reduce
from gpudb.kernels.concat import concat
from gpudb.kernels.gather import gather_or_null
from gpudb.kernels.order import OrderKey
from gpudb.optimizer.logical import Field
from gpudb.optimizer.physical import Window

Positions = npt.NDArray[np.int64]
PAIRS_MAX = 1 << 20
"""Rows of frames that are gathered at a time."""


class WindowSink(CollectSink):
    """Keeps all rows; at the end sorts them and computes the calls."""

    def __init__(self, builder: Builder, node: Window, fields: tuple[Field, ...]) -> None:
        super().__init__(builder, fields, "a window")
        self._builder = builder
        self._node = node
        self._fields = fields
        self._keys = builder.runner(
            [*node.partition_by, *(key.expression for key in node.order_by)], fields
        )

    def finish(self) -> None:
        super().finish()
        if not self.rows:
            from gpudb.exec.operators.values import empty_columns

            self.columns = empty_columns(self._builder, self._node.fields)
            return
        batch = Batch.of(self.columns, self.rows)
        keys = [expand(column, self.rows) for column in self._keys.evaluate(batch)]
        width = len(self._node.partition_by)
        partition = [OrderKey(column) for column in keys[:width]]
        ordering = [
            OrderKey(column, key.is_descending, key.nulls_first)
            for key, column in zip(self._node.order_by, keys[width:], strict=True)
        ]
        index = order.sort_rows([*partition, *ordering], self.rows)
        columns = tuple(take_rows(c, index, self.rows) for c in self.columns)
        sorted_keys = [take_rows(c, index, self.rows) for c in keys]
        calls = Calls(
            self._builder, self._fields, Batch.of(columns, self.rows), sorted_keys[:width],
            list(zip(self._node.order_by, sorted_keys[width:], strict=True)),
        )
        self.columns = (*columns, *(calls.compute(item.call) for item in self._node.items))


class Calls:
    """Computes window calls over sorted rows."""

    def __init__(
        self, builder: Builder, fields: tuple[Field, ...], batch: Batch,
        partition: Sequence[Column], ordering: Sequence[tuple[SortKey, Column]],
    ) -> None:
        self._builder = builder
        self._fields = fields
        self._batch = batch
        self._ordering = ordering
        rows = batch.rows
        by_partition = order.ordering_words([OrderKey(c) for c in partition], rows)
        by_order = order.ordering_words([OrderKey(c) for _, c in ordering], rows)
        starts = order.starts_of_runs(by_partition, rows).numpy()
        peers = order.starts_of_runs([*by_partition, *by_order], rows).numpy() | starts
        self._begin, self._end, self._partition = _runs(starts)
        self._peer_begin, self._peer_end, peer = _runs(peers)
        self._peer_group = peer - peer[self._begin]

    def compute(self, call: WindowCall) -> Column:
        """The column of a call, in sorted order."""
        rows = self._rows(call)
        if call.is_aggregate:
            found = self._aggregate(call, rows)
        else:
            body = functions.WINDOWS.get(call.function.key)
            if body is None:
                raise errors.FeatureNotSupported(
                    f"window function {call.function.name} is not supported"
                )
            found = body.body(rows, call, self._evaluate(call.arguments))
        from dataclasses import replace

        return replace(expand(found, self._batch.rows), type=call.type)

    def _evaluate(self, expressions: Sequence[Expr]) -> tuple[Column, ...]:
        runner = self._builder.runner(expressions, self._fields)
        return runner.evaluate(self._batch)

    def _rows(self, call: WindowCall) -> WindowRows:
        count = self._batch.rows
        frame = call.frame
        frames = Frames(
            self._builder.context, frame, count, (self._begin, self._end),
            (self._peer_begin, self._peer_end, self._peer_group),
        )
        offsets = [
            None if bound.offset is None else self._evaluate([bound.offset])[0]
            for bound in (frame.start, frame.end)
        ]
        key = self._ordering[0][1] if self._ordering else None
        is_descending = bool(self._ordering) and self._ordering[0][0].is_descending
        begin, end = frames.bounds(offsets[0], offsets[1], key, is_descending=is_descending)
        return WindowRows(
            count, self._begin, self._end, self._peer_begin, self._peer_end, self._peer_group,
            begin, end, frame.exclusion,
        )

    # Aggregates

    def _aggregate(self, call: WindowCall, rows: WindowRows) -> Column:
        plain = AggregateCall(
            call.function, call.arguments, call.type, filter=call.filter, is_star=call.is_star
        )
        aggregate = make_aggregate(plain, self._builder)
        arguments = () if call.is_star else call.arguments
        condition = None
        if call.filter is not None:
            condition = Predicates(
                [call.filter], positions(self._fields), self._builder.context
            )
        source = Input(
            aggregate, self._builder.runner(arguments, self._fields), len(arguments), condition
        )
        if _is_whole(call):
            return self._per_partition(source)
        if rows.exclusion is FrameExclusion.NO_OTHERS:
            fast = self._by_ranges(source, rows)
            if fast is not None:
                return fast
        return self._by_pairs(source, rows)

    def _per_partition(self, source: Input) -> Column:
        ids = torch.from_numpy(self._partition)
        groups = int(self._partition[-1]) + 1
        aggregate = source.aggregate
        part = aggregate.partial(source.rows(self._batch, ids, groups))
        state = aggregate.merge(None, part, torch.arange(groups), groups)
        column = expand(aggregate.result(state, groups), groups)
        return take_rows(column, ids, groups)

    def _by_ranges(self, source: Input, rows: WindowRows) -> Column | None:
        """Aggregates of whose state ranges can be combined without visiting their rows."""
        count = self._batch.rows
        aggregate = source.aggregate
        own = source.rows(self._batch, torch.arange(count), count)
        if isinstance(aggregate, FloatSum):
            sums, counts, infinities = aggregate.partial(own)
            tree = block_sums(sums.numpy(), rows.frame_begin, rows.frame_end)
            exact = [_differences(part, rows) for part in (counts, infinities)]
            return aggregate.result((torch.from_numpy(tree), *exact), count)
        if isinstance(aggregate, (Tensors, Count)):
            parts = aggregate.partial(own)
            return aggregate.result(tuple(_differences(p, rows) for p in parts), count)
        if isinstance(aggregate, ExactSum):
            return self._exact_ranges(aggregate, own, rows)
        if isinstance(aggregate, ExtremeAggregate) and own.rows:
            return _extreme_ranges(aggregate, own, rows)
        return None

    def _exact_ranges(
        self, aggregate: ExactSum, own: GroupRows, rows: WindowRows
    ) -> Column | None:
        state = aggregate.partial(own)
        if state.host:
            return None
        limbs = [_differences(limb, rows) for limb in reduce.normalized(state.limbs)]
        counts = _differences(state.counts, rows)
        if bool((state.shown == state.scale).logical_or(state.counts == 0).all()):
            shown = torch.where(counts > 0, state.scale, 0)
        else:
            shown = torch.from_numpy(
                block_extremes(state.shown.numpy(), rows.frame_begin, rows.frame_end)
            ).clamp(min=0)
        ranged = ExactState(limbs, counts, state.scale, shown, {})
        return aggregate.result(ranged, rows.rows)

    def _by_pairs(self, source: Input, rows: WindowRows) -> Column:
        """Every frame's rows gathered, a bounded number at a time."""
        aggregate = source.aggregate
        numbered = source.rows(self._batch, torch.arange(self._batch.rows), self._batch.rows)
        sizes = frame_size(rows)
        found: list[tuple[Column, int]] = []
        start = 0
        while start < rows.rows:
            total = np.cumsum(sizes[start:])
            stop = start + max(1, int(np.searchsorted(total, PAIRS_MAX, "right")))
            stop = min(stop, rows.rows)
            column = self._frames_of(aggregate, numbered, rows, (start, stop))
            found.append((column, stop - start))
            start = stop
            self._builder.context.check()
        return expand(concat(found), rows.rows)

    def _frames_of(
        self, aggregate: Aggregate, numbered: GroupRows, rows: WindowRows, part: tuple[int, int]
    ) -> Column:
        start, stop = part
        groups = stop - start
        sizes = frame_size(rows)[start:stop]
        owner, place = _pairs(rows, sizes, start)
        keep = _kept_places(numbered, self._batch.rows)
        if keep is not None:
            place = keep[place]
            owner, place = owner[place >= 0], place[place >= 0]
        index = torch.from_numpy(place)
        columns = tuple(take_rows(c, index, numbered.rows) for c in numbered.columns)
        given = GroupRows(columns, torch.from_numpy(owner), groups, len(owner))
        state = aggregate.merge(None, aggregate.partial(given), torch.arange(groups), groups)
        return aggregate.result(state, groups)


def _kept_places(numbered: GroupRows, rows: int) -> Positions | None:
    """Position of each row among those that reach the aggregate, -1 for the others."""
    if numbered.rows == rows or numbered.ids is None:
        return None
    found = np.full(rows, -1)
    found[numbered.ids.numpy()] = np.arange(numbered.rows)
    return found


def _pairs(rows: WindowRows, sizes: Positions, start: int) -> tuple[Positions, Positions]:
    """(row - start, position in its frame's rows) for all rows of the frames."""
    total = int(sizes.sum())
    owners, numbers = [], []
    for owner, number in ranges(np.zeros(len(sizes), np.int64), sizes, max(total, 1)):
        owners.append(owner)
        numbers.append(number)
    if not owners:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    owner, number = owners[0], numbers[0]
    whole = owner + start
    picked = WindowRows(
        len(owner), rows.partition_begin[whole], rows.partition_end[whole],
        rows.peer_begin[whole], rows.peer_end[whole], rows.peer_group[whole],
        rows.frame_begin[whole], rows.frame_end[whole], FrameExclusion.NO_OTHERS,
    )
    if rows.exclusion is FrameExclusion.NO_OTHERS:
        return owner, frame_position(picked, number)
    return owner, _excluding(rows, whole, number)


def _excluding(rows: WindowRows, whole: Positions, number: Positions) -> Positions:
    """Positions of the ``number``-th frame rows of rows ``whole``, exclusion applied."""
    own = whole
    match rows.exclusion:
        case FrameExclusion.CURRENT_ROW:
            holes = (own, own + 1, own + 1, own + 1)
        case FrameExclusion.GROUP:
            end = rows.peer_end[whole]
            holes = (rows.peer_begin[whole], end, end, end)
        case _:
            holes = (rows.peer_begin[whole], own, own + 1, rows.peer_end[whole])
    begin, end = rows.frame_begin[whole], rows.frame_end[whole]
    a, b, c, d = (np.minimum(np.maximum(edge, begin), end) for edge in holes)
    place = begin + number
    place = np.where(place >= a, place + (b - a), place)
    return np.where(place >= c, place + (d - c), place)


def _runs(starts: npt.NDArray[np.bool_]) -> tuple[Positions, Positions, Positions]:
    """For each row the begin and end of its run, and the run's number."""
    begins = np.flatnonzero(starts)
    ends = np.r_[begins[1:], len(starts)]
    number = np.cumsum(starts) - 1
    return begins[number], ends[number], number


def _is_whole(call: WindowCall) -> bool:
    """Whether every frame is the whole partition."""
    frame = call.frame
    if frame.exclusion is not FrameExclusion.NO_OTHERS:
        return False
    if frame.start.kind is not BoundKind.UNBOUNDED_PRECEDING:
        return False
    if frame.end.kind is BoundKind.UNBOUNDED_FOLLOWING:
        return True
    from gpudb.expr import FrameUnit

    is_current = frame.end.kind is BoundKind.CURRENT_ROW
    return is_current and not call.order_by and frame.unit is not FrameUnit.ROWS


def _differences(values: torch.Tensor, rows: WindowRows) -> torch.Tensor:
    """Sums over frames by prefix sums; exact for int64."""
    prefix = torch.cat((torch.zeros(1, dtype=torch.int64), values.to(torch.int64).cumsum(0)))
    begin = torch.from_numpy(rows.frame_begin)
    end = torch.from_numpy(rows.frame_end)
    return prefix.index_select(0, end) - prefix.index_select(0, begin)


def _extreme_ranges(
    aggregate: ExtremeAggregate, own: GroupRows, rows: WindowRows
) -> Column:
    column = expand(own.columns[0], own.rows)
    parts = order.words(column)
    index = order.permutation(parts, own.rows)
    changes = order.starts_of_runs([p.index_select(0, index) for p in parts], own.rows)
    dense = np.cumsum(changes.numpy()) - 1
    if not aggregate.is_greatest:
        dense = dense[-1] - dense
    by_value = index.numpy()[np.lexsort((index.numpy(), dense))]
    ranks = np.empty(own.rows, np.int64)
    ranks[by_value] = np.arange(own.rows)
    by_row = np.full(rows.rows, -1)
    assert own.ids is not None
    # Of equal values the last one counts, as in PostgreSQL (1.0 and 1.00 display differently).
    by_row[own.ids.numpy()] = ranks * own.rows + np.arange(own.rows)
    best = block_extremes(by_row, rows.frame_begin, rows.frame_end)
    place = np.where(best >= 0, best % own.rows, -1)
    return gather_or_null(column, torch.from_numpy(place))


def block_extremes(values: Any, begin: Positions, end: Positions) -> Positions:
    """The greatest of values[begin:end] for each row, -1 for an empty range."""
    found: Positions = _blocks(values, begin, end, np.maximum, -1)
    return found


def block_sums(values: Any, begin: Positions, end: Positions) -> Any:
    """The sum of values[begin:end] for each row, without cancellation between rows."""
    with np.errstate(invalid="ignore", over="ignore"):
        return _blocks(values, begin, end, np.add, 0.0)


def _blocks(values: Any, begin: Positions, end: Positions, combine: Any, neutral: Any) -> Any:
    """A segment tree read bottom-up for all ranges at once."""
    size = 1
    while size < len(values):
        size *= 2
    level = np.full(size, neutral, values.dtype)
    level[: len(values)] = values
    left_part = np.full(len(begin), neutral, values.dtype)
    right_part = left_part.copy()
    low, high = begin.copy(), np.maximum(end, begin).copy()
    while True:
        is_open = low < high
        if not is_open.any():
            return combine(left_part, right_part)
        odd_low = is_open & ((low & 1) == 1)
        left_part = np.where(
            odd_low, combine(left_part, level[np.minimum(low, len(level) - 1)]), left_part
        )
        low = np.where(odd_low, low + 1, low)
        odd_high = is_open & ((high & 1) == 1)
        right_part = np.where(
            odd_high, combine(level[np.maximum(high - 1, 0)], right_part), right_part
        )
        high = np.where(odd_high, high - 1, high)
        low, high = low >> 1, high >> 1
        if len(level) == 1:
            return combine(left_part, right_part)
        level = combine(level[0::2], level[1::2])


@builds(Window)
def build_window(builder: Builder, node: Window) -> Stream:
    stream = builder.build(node.input)
    sink = WindowSink(builder, node, stream.fields)
    builder.close(stream, sink)
    batch_rows = builder.batch_rows

    def start() -> Iterator[Piece]:
        return pieces(sink.columns, sink.rows, batch_rows)

    return Stream.of(node.fields, LazySource(start))
