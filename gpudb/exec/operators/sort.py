"""ORDER BY, with and without a limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from gpudb.column import Batch, Column, compact, expand, take_rows
from gpudb.exec.builder import Builder, Stream, builds
from gpudb.exec.eager import Runner
from gpudb.exec.operators.collect import CollectSink, joined, ordered_pieces
from gpudb.exec.operators.limit import row_count
from gpudb.exec.operators.values import empty_columns
from gpudb.exec.pipeline import LazySource, Piece, Sink
from gpudb.expr import SortKey
from gpudb.kernels.concat import concat
from gpudb.kernels.order import OrderKey, sort_rows
from gpudb.optimizer.logical import Field
from gpudb.optimizer.physical import Sort, TopN


def order_keys(keys: Sequence[SortKey], columns: Sequence[Column]) -> list[OrderKey]:
    """The ordering of computed key columns."""
    return [
        OrderKey(column, key.is_descending, key.nulls_first)
        for key, column in zip(keys, columns, strict=True)
    ]


class SortSink(CollectSink):
    """Keeps rows and their key columns; ``order`` once it is finished."""

    def __init__(
        self, builder: Builder, fields: tuple[Field, ...], keys: Sequence[SortKey]
    ) -> None:
        super().__init__(builder, fields, "a sort")
        self._keys = keys
        self._runner = builder.runner([key.expression for key in keys], fields)
        self._key_columns: list[tuple[tuple[Column, ...], int]] = []
        self.order = torch.zeros(0, dtype=torch.int64)

    def prepare(self, batch: Batch) -> Any:
        plain = compact(batch)
        return plain, self._runner.evaluate(plain)

    def push(self, item: Any) -> bool:
        batch, columns = item
        self._key_columns.append((columns, batch.rows))
        return super().push(batch)

    def finish(self) -> None:
        super().finish()
        if not self.rows:
            return
        columns = [
            expand(concat([(part[i], rows) for part, rows in self._key_columns]), self.rows)
            for i in range(len(self._keys))
        ]
        self._key_columns = []
        self.order = sort_rows(order_keys(self._keys, columns), self.rows)


@builds(Sort)
def build_sort(builder: Builder, node: Sort) -> Stream:
    stream = builder.build(node.input)
    sink = SortSink(builder, stream.fields, node.keys)
    builder.close(stream, sink)
    batch_rows = builder.batch_rows

    def start() -> Iterator[Piece]:
        return ordered_pieces(sink.columns, sink.order, batch_rows, sink.rows)

    return Stream.of(stream.fields, LazySource(start))


class TopSink(Sink):
    """Keeps the first ``count`` rows of an ordering; ties stay in sequence."""

    def __init__(
        self, builder: Builder, fields: tuple[Field, ...], keys: Sequence[SortKey], count: int
    ) -> None:
        self._empty = empty_columns(builder, fields)
        self._keys = keys
        self._runner: Runner = builder.runner([key.expression for key in keys], fields)
        self._count = count
        self._batches: list[Batch] = []
        self._pending = 0
        self._pending_max = max(4 * count, builder.batch_rows)
        self.columns: tuple[Column, ...] = ()
        self.rows = 0

    def prepare(self, batch: Batch) -> Batch:
        return self._first(compact(batch))

    def push(self, item: Any) -> bool:
        batch: Batch = item
        self._batches.append(batch)
        self._pending += batch.rows
        if self._pending > self._pending_max:
            self._merge()
        return True

    def finish(self) -> None:
        self._merge()
        self.columns = joined(self._batches, self._empty)
        self.rows = self._pending

    def _merge(self) -> None:
        if self._batches:
            whole = Batch.of(joined(self._batches, self._empty), self._pending)
            first = self._first(whole)
            self._batches, self._pending = [first], first.rows

    def _first(self, batch: Batch) -> Batch:
        columns = self._runner.evaluate(batch)
        index = sort_rows(order_keys(self._keys, columns), batch.rows)[: self._count]
        cut = tuple(take_rows(c, index, batch.rows) for c in batch.columns)
        return Batch.of(cut, index.shape[0], batch.sequence)


@builds(TopN)
def build_top(builder: Builder, node: TopN) -> Stream:
    stream = builder.build(node.input)
    limit = row_count(builder, node.limit, is_limit=True)
    offset = row_count(builder, node.offset, is_limit=False) or 0
    if limit is None:
        sort = Sort(node.input, node.keys)
        sorted_sink = SortSink(builder, stream.fields, sort.keys)
        builder.close(stream, sorted_sink)
        rest = builder.batch_rows
        return Stream.of(stream.fields, LazySource(lambda: ordered_pieces(
            sorted_sink.columns, sorted_sink.order[offset:], rest, sorted_sink.rows
        )))
    sink = TopSink(builder, stream.fields, node.keys, limit + offset)
    builder.close(stream, sink)
    batch_rows = builder.batch_rows

    def start() -> Iterator[Piece]:
        index = torch.arange(min(offset, sink.rows), sink.rows)
        return ordered_pieces(sink.columns, index, batch_rows, sink.rows)

    return Stream.of(stream.fields, LazySource(start))
