"""Grouping and aggregation, DISTINCT, grouping sets.

Every batch is reduced on its own, in parallel (group numbers within the batch, a partial state for
each aggregate); the partial groups are merged into the whole in sequence. So the order of groups
(first appearance), array_agg and float sums do not depend on the number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gpudb import errors
from gpudb.catalog import functions
from gpudb.column import (
    Batch,
    Column,
    all_valid,
    expand,
    integer_column,
    null_column,
    take_rows,
)
from gpudb.exec.builder import Builder, Stream, builds, positions
from gpudb.exec.conversions import data_type
from gpudb.exec.eager import Predicates, Runner, selected
from gpudb.exec.functions.aggregates import Aggregate, GroupRows
from gpudb.exec.functions.collected import Collected
from gpudb.exec.operators.collect import pieces
from gpudb.exec.operators.values import empty_columns
from gpudb.exec.pipeline import LazySource, Piece, Sink
from gpudb.expr import AggregateCall, ColumnRef, Expr, Grouping
from gpudb.kernels.concat import concat
from gpudb.kernels.group import KeyTable
from gpudb.kernels.select import bytes_of, is_all, keep, rows_of
from gpudb.optimizer.logical import AggregateItem, Field
from gpudb.optimizer.physical import AggregateMode, HashAggregate
from gpudb.sqltype import BIGINT


def make_aggregate(call: AggregateCall, builder: Builder) -> Aggregate:
    """What computes an aggregate call; 0A000 when nothing does."""
    found = functions.AGGREGATES.get(call.function.key)
    if found is None:
        raise errors.FeatureNotSupported(
            f"aggregate function {call.function.name} is not supported"
        )
    inner: Aggregate = found.body(call, builder.context)
    if inner.is_ordered_set:
        return inner
    if call.is_distinct or (call.order_by and inner.is_ordered):
        return Collected(inner, call, builder.context)
    return inner


@dataclass(slots=True)
class Input:
    """How one aggregate gets its rows: FILTER, then arguments (and sort keys) over the rest."""

    aggregate: Aggregate
    runner: Runner
    arguments: int
    filter: Predicates | None

    def rows(
        self, batch: Batch, ids: Tensor | None, groups: int,
        known: dict[int, Tensor] | None = None,
    ) -> GroupRows:
        """The rows that reach the aggregate. ``known``: see GroupRows."""
        given = ids
        if self.filter is not None:
            base = Batch(batch.columns, batch.rows, batch.capacity, batch.selection)
            numbered = _numbered(base)
            kept = self.filter.select(numbered)
            if kept.rows != batch.rows:
                rows = kept.columns[-1].data[0].index_select(0, kept.selection) if (
                    kept.selection is not None
                ) else kept.columns[-1].data[0]
                ids = None if ids is None else ids.index_select(0, rows)
                batch = selected(batch, rows)
        columns = self.runner.evaluate(batch)
        rows_left = batch.rows
        if self.aggregate.skips_nulls:
            valid = all_valid(*columns[: self.arguments])
            if valid is not None:
                columns, ids, rows_left = _valid_rows(columns, ids, rows_left, valid)
        if known is not None and ids is given and rows_left == batch.rows:
            return GroupRows(columns, ids, groups, rows_left, known)
        return GroupRows(columns, ids, groups, rows_left)


def _numbered(batch: Batch) -> Batch:
    """The batch compacted, with the row numbers as one more column."""
    from gpudb.column import compact

    plain = compact(batch)
    numbers = integer_column(BIGINT, torch.arange(plain.rows))
    return Batch.of((*plain.columns, numbers), plain.rows)


def _valid_rows(
    columns: tuple[Column, ...], ids: Tensor | None, rows: int, valid: Tensor
) -> tuple[tuple[Column, ...], Tensor | None, int]:
    if valid.shape[0] == 1 and rows != 1:
        valid = valid.expand(rows)
    if is_all(valid):
        return columns, ids, rows
    index = rows_of(valid)
    cut = tuple(take_rows(c, index, rows) if c.rows != 1 or rows == 1 else c for c in columns)
    ids = None if ids is None else ids.index_select(0, index)
    return cut, ids, index.shape[0]


@dataclass(slots=True)
class GroupingSet:
    """The groups of one grouping set so far."""

    keys: tuple[int, ...]
    table: KeyTable
    key_pieces: list[tuple[tuple[Column, ...], int]] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)
    groups: int = 0


@dataclass(slots=True)
class Partial:
    """One batch's groups of one grouping set: key columns (G rows) and a state per aggregate."""

    keys: tuple[Column, ...]
    groups: int
    states: list[Any]


class AggregateSink(Sink):
    """Groups and aggregates; ``columns`` and ``rows`` once finished."""

    def __init__(self, builder: Builder, node: HashAggregate, fields: tuple[Field, ...]) -> None:
        self._node = node
        self._context = builder.context
        self._runner = builder.runner([key.expression for key in node.keys], fields)
        self._inputs = [
            _input(builder, item, fields)
            for item in node.items
            if isinstance(item.call, AggregateCall)
        ]
        every = tuple(range(len(node.keys)))
        self._sets = [
            GroupingSet(
                keys, KeyTable(len(keys), expected_rows=builder.leaf_rows),
                states=[None] * len(self._inputs),
            )
            for keys in (node.grouping_sets or (every,))
        ]
        self._empty = empty_columns(builder, node.fields)
        self._empty_input = Batch.of(empty_columns(builder, fields), 0)
        self._reserved = 0
        self.columns: tuple[Column, ...] = ()
        self.rows = 0

    def prepare(self, batch: Batch) -> list[Partial]:
        keys = [expand(column, batch.rows) for column in self._runner.evaluate(batch)]
        plain = batch
        return [self._partial(item, keys, plain) for item in self._sets]

    def _partial(self, item: GroupingSet, keys: Sequence[Column], batch: Batch) -> Partial:
        if not item.keys:
            states = [i.aggregate.partial(i.rows(batch, None, 1)) for i in self._inputs]
            return Partial((), 1, states)
        own = [keys[number] for number in item.keys]
        table = KeyTable(len(own), expected_rows=batch.rows)
        ids, first = table.insert(own, batch.rows)
        groups = len(first)
        index = torch.from_numpy(first)
        firsts = tuple(take_rows(column, index, batch.rows) for column in own)
        numbers = torch.from_numpy(ids)
        known: dict[int, Tensor] = {}
        states = [
            i.aggregate.partial(i.rows(batch, numbers, groups, known)) for i in self._inputs
        ]
        return Partial(firsts, groups, states)

    def push(self, item: Any) -> bool:
        for target, part in zip(self._sets, item, strict=True):
            self._merge(target, part)
        self._reserve()
        return True

    def _merge(self, target: GroupingSet, part: Partial) -> None:
        if not target.keys:
            ids = torch.zeros(1, dtype=torch.int64)
            target.groups = 1
        else:
            numbers, first = target.table.insert(part.keys, part.groups)
            ids = torch.from_numpy(numbers)
            if len(first):
                index = torch.from_numpy(first)
                new = tuple(
                    keep(take_rows(c, index, part.groups), len(first)) for c in part.keys
                )
                target.key_pieces.append((new, len(first)))
            target.groups = target.table.size
        for number, source in enumerate(self._inputs):
            target.states[number] = source.aggregate.merge(
                target.states[number], part.states[number], ids, target.groups
            )

    def _reserve(self) -> None:
        size = sum(item.table.bytes for item in self._sets)
        if size > self._reserved and self._context.reservation is not None:
            self._context.reservation.require(size - self._reserved, "an aggregate")
            self._reserved = size

    def finish(self) -> None:
        parts = []
        for item in self._sets:
            if not item.keys and item.groups == 0:
                self._merge(item, self._partial(item, (), self._empty_input))
            if item.groups:
                parts.append((self._set_columns(item), item.groups))
        self.rows = sum(groups for _, groups in parts)
        if not parts:
            self.columns = self._empty
            return
        self.columns = tuple(
            expand(concat([(columns[i], groups) for columns, groups in parts]), self.rows)
            for i in range(len(self._node.fields))
        )
        if self.metrics is not None:
            self.metrics.bytes = max(self.metrics.bytes, sum(map(bytes_of, self.columns)))

    def _set_columns(self, item: GroupingSet) -> tuple[Column, ...]:
        """The output columns of one grouping set."""
        found: list[Column] = []
        for number, key in enumerate(self._node.keys):
            if number in item.keys:
                at = item.keys.index(number)
                column = concat([(cut[at], rows) for cut, rows in item.key_pieces])
                found.append(expand(column, item.groups))
            else:
                kind = data_type(key.field.type.oid, self._context).layout
                found.append(null_column(key.field.type, kind, item.groups))
        states = iter(zip(self._inputs, item.states, strict=True))
        for output in self._node.items:
            if isinstance(output.call, Grouping):
                found.append(self._grouping(output, item))
                continue
            source, state = next(states)
            found.append(expand(source.aggregate.result(state, item.groups), item.groups))
        return tuple(found)

    def _grouping(self, output: AggregateItem, item: GroupingSet) -> Column:
        value = 0
        for argument in output.call.arguments:
            value = value * 2 + (self._key_number(argument) not in item.keys)
        values = torch.full((item.groups,), value, dtype=torch.int32)
        return integer_column(output.field.type, values, lo=value, hi=value)

    def _key_number(self, argument: Expr) -> int:
        for number, key in enumerate(self._node.keys):
            is_key = isinstance(argument, ColumnRef) and argument.id == key.field.id
            if is_key or argument == key.expression:
                return number
        raise errors.GroupingError(
            "arguments to GROUPING must be grouping expressions of the associated query level"
        )


def _input(builder: Builder, item: AggregateItem, fields: tuple[Field, ...]) -> Input:
    call = item.call
    assert isinstance(call, AggregateCall)
    aggregate = make_aggregate(call, builder)
    arguments = () if call.is_star else call.arguments
    more: list[Expr] = [key.expression for key in call.order_by]
    if aggregate.is_ordered_set:
        more = list(call.direct)
    runner = builder.runner([*arguments, *more], fields)
    condition = None
    if call.filter is not None:
        condition = Predicates([call.filter], positions(fields), builder.context)
    return Input(aggregate, runner, len(arguments), condition)



@builds(HashAggregate)
def build_aggregate(builder: Builder, node: HashAggregate) -> Stream:
    if node.mode is not AggregateMode.SINGLE:
        raise errors.FeatureNotSupported("partial aggregation is not supported on one rank")
    stream = builder.build(node.input)
    sink = AggregateSink(builder, node, stream.fields)
    builder.close(stream, sink)
    batch_rows = builder.batch_rows

    def start() -> Iterator[Piece]:
        return pieces(sink.columns, sink.rows, batch_rows)

    return Stream.of(node.fields, LazySource(start))
