"""INSERT, UPDATE, DELETE: rows into the transaction's write set.

A statement never sees its own rows: readers were opened on its snapshot, and what is written
becomes part of the table when the input has ended. A node yields the rows it wrote (INSERT) or its
input's rows, for RETURNING; a root whose rows are only counted (QueryContext.counted) keeps none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from gpudb import errors
from gpudb.column import Batch, Column, integers, take_rows
from gpudb.exec.builder import Builder, Stream, builds, positions
from gpudb.exec.operators.collect import CollectSink, pieces
from gpudb.exec.pipeline import LazySource, OnceSource, Piece, Sink
from gpudb.optimizer.physical import DeleteRows, InsertRows, UpdateRows
from gpudb.storage.writes import WriteSet


def _writes(builder: Builder) -> WriteSet:
    found: WriteSet | None = builder.context.own_writes
    if found is None:
        raise errors.FeatureNotSupported("this statement cannot write")
    return found


class CountingInsertSink(Sink):
    """Writes rows as they come; knows only how many."""

    def __init__(self, builder: Builder, node: InsertRows) -> None:
        self._set = _writes(builder)
        self._table = node.table_oid
        self._writer = self._set.writer(node.table_oid)
        self.rows = 0

    def push(self, item: Any) -> bool:
        batch: Batch = item
        self._writer.append(batch)
        self.rows += batch.rows
        return True

    def finish(self) -> None:
        self._set.add(self._table, self._writer.finish())


class InsertSink(CollectSink):
    """Writes all rows as segments when the input has ended."""

    def __init__(self, builder: Builder, node: InsertRows) -> None:
        super().__init__(builder, node.fields, "rows to insert")
        self._set = _writes(builder)
        self._table = node.table_oid

    def finish(self) -> None:
        super().finish()
        if not self.rows:
            return
        writer = self._set.writer(self._table)
        writer.append(Batch.of(self.columns, self.rows))
        self._set.add(self._table, writer.finish())


@builds(InsertRows)
def build_insert(builder: Builder, node: InsertRows) -> Stream:
    if builder.context.counted is node:
        counting = CountingInsertSink(builder, node)
        builder.close(builder.build(node.input), counting)
        return Stream.of(
            node.fields, OnceSource(lambda: iter((Batch((), counting.rows, counting.rows),)))
        )
    sink = InsertSink(builder, node)
    return _after(builder, builder.build(node.input), sink, node)


class DeleteSink(CollectSink):
    """Deletes the rows named by a column of ctids; rows named twice count once."""

    def __init__(self, builder: Builder, node: DeleteRows | UpdateRows) -> None:
        super().__init__(builder, node.input.fields, "rows to change")
        self._set = _writes(builder)
        self._table = node.table_oid
        self._row_id = positions(node.input.fields)[node.row_id.id]
        self._is_plain = isinstance(node, DeleteRows)

    def finish(self) -> None:
        super().finish()
        self._keep_first()
        if self.rows:
            ids = integers(self.columns[self._row_id]).cpu().numpy()
            self._set.delete(self._table, np.broadcast_to(ids, self.rows), is_plain=self._is_plain)

    def _keep_first(self) -> None:
        """The first row of each ctid: a join may find a row several times, it changes once."""
        if self.rows < 2:
            return
        ids = np.broadcast_to(
            integers(self.columns[self._row_id]).cpu().numpy(), self.rows
        )
        first = np.sort(np.unique(ids, return_index=True)[1])
        if len(first) == self.rows:
            return
        index = torch.from_numpy(first)
        self.columns = tuple(take_rows(c, index, self.rows) for c in self.columns)
        self.rows = len(first)


@builds(DeleteRows)
def build_delete(builder: Builder, node: DeleteRows) -> Stream:
    sink = DeleteSink(builder, node)
    return _after(builder, builder.build(node.input), sink, node)


class UpdateSink(DeleteSink):
    """Deletes the old rows and writes the new ones."""

    def __init__(self, builder: Builder, node: UpdateRows) -> None:
        super().__init__(builder, node)
        at = positions(node.input.fields)
        self._new = [at[item.id] for item in node.columns]

    def finish(self) -> None:
        super().finish()
        if not self.rows:
            return
        writer = self._set.writer(self._table)
        columns: list[Column] = [self.columns[number] for number in self._new]
        writer.append(Batch.of(columns, self.rows))
        self._set.add(self._table, writer.finish())


@builds(UpdateRows)
def build_update(builder: Builder, node: UpdateRows) -> Stream:
    sink = UpdateSink(builder, node)
    return _after(builder, builder.build(node.input), sink, node)


def _after(builder: Builder, stream: Stream, sink: CollectSink, node: Any) -> Stream:
    """The rows that the sink kept, once it has written."""
    builder.close(stream, sink)
    batch_rows = builder.batch_rows

    def start() -> Iterator[Piece]:
        return pieces(sink.columns, sink.rows, batch_rows)

    return Stream.of(node.fields, LazySource(start))
