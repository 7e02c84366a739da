"""WITH RECURSIVE: rounds over the rows of the round before, until a round adds nothing."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from gpudb.column import Batch, take_rows
from gpudb.exec.builder import Builder, Stream, builds
from gpudb.exec.operators.collect import CollectSink, pieces
from gpudb.exec.pipeline import LazySource, OnceSource, Piece
from gpudb.exec.scheduler import run_inline
from gpudb.kernels.group import KeyTable
from gpudb.optimizer.physical import RecursiveUnion, WorkTableScan


class _Rounds:
    """Runs the step plan again and again; keeps what was seen when duplicates go."""

    def __init__(self, builder: Builder, node: RecursiveUnion, base: CollectSink) -> None:
        self._builder = builder
        self._node = node
        self._base = base
        self._seen = None if node.is_all else KeyTable(len(node.fields))

    def pieces(self) -> Iterator[Piece]:
        batch = self._new(Batch.of(self._base.columns, self._base.rows))
        while batch.rows:
            yield from pieces(batch.columns, batch.rows, self._builder.batch_rows)
            self._builder.context.check()
            self._builder.work_tables[self._node.id] = [batch]
            batch = self._new(self._round())
        self._builder.work_tables.pop(self._node.id, None)

    def _round(self) -> Batch:
        nested = self._builder.nested()
        stream = nested.build(self._node.step)
        sink = CollectSink(nested, self._node.step.fields, "a recursive query")
        nested.close(stream, sink)
        for _ in run_inline(nested.pipelines, self._builder.context):
            continue
        return Batch.of(sink.columns, sink.rows)

    def _new(self, batch: Batch) -> Batch:
        """The rows that did not come before (all of them for UNION ALL)."""
        if self._seen is None or not batch.rows:
            return batch
        _, first = self._seen.insert(batch.columns, batch.rows)
        index = torch.from_numpy(first)
        columns = [take_rows(c, index, batch.rows) for c in batch.columns]
        return Batch.of(columns, len(first))


@builds(RecursiveUnion)
def build_recursive(builder: Builder, node: RecursiveUnion) -> Stream:
    stream = builder.build(node.base)
    base = CollectSink(builder, node.base.fields, "a recursive query")
    builder.close(stream, base)
    rounds = _Rounds(builder, node, base)
    return Stream.of(node.fields, LazySource(rounds.pieces))


@builds(WorkTableScan)
def build_work_table(builder: Builder, node: WorkTableScan) -> Stream:
    def rows() -> Iterator[Batch]:
        yield from builder.work_tables[node.id]

    return Stream.of(node.fields, OnceSource(rows))
