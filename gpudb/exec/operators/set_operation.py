"""UNION ALL, INTERSECT [ALL] and EXCEPT [ALL].

UNION ALL is its inputs' branches, one after the other. The others number distinct rows of both
sides in one table and count them per side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from gpudb.column import Batch, Column, compact, take_rows
from gpudb.exec.builder import Builder, Stream, builds
from gpudb.exec.operators.collect import joined, ordered_pieces
from gpudb.exec.operators.values import empty_columns
from gpudb.exec.pipeline import LazySource, Piece, Sink
from gpudb.kernels.group import KeyTable
from gpudb.kernels.select import bytes_of, keep
from gpudb.optimizer.logical import SetKind
from gpudb.optimizer.physical import SetOperation


class Counts:
    """Distinct rows of both sides: a table, and for each side how often a row occurs."""

    def __init__(self, builder: Builder, node: SetOperation) -> None:
        self.table = KeyTable(len(node.fields))
        self.counts = [np.zeros(0, np.int64), np.zeros(0, np.int64)]
        self.firsts: list[Batch] = []
        self.context = builder.context

    def add(self, side: int, batch: Batch) -> None:
        """Count a compact batch of one side."""
        ids, first = self.table.insert(batch.columns, batch.rows)
        if len(first):
            index = torch.from_numpy(first)
            new = tuple(keep(take_rows(c, index, batch.rows), len(first)) for c in batch.columns)
            if self.context.reservation is not None:
                self.context.reservation.require(sum(map(bytes_of, new)), "a set operation")
            self.firsts.append(Batch.of(new, len(first)))
        for number in range(2):
            missing = self.table.size - len(self.counts[number])
            if missing:
                grown = np.concatenate((self.counts[number], np.zeros(missing, np.int64)))
                self.counts[number] = grown
        self.counts[side] += np.bincount(ids, minlength=self.table.size)

    def repeats(self, node: SetOperation) -> Any:
        """How often each distinct row is in the result."""
        left, right = self.counts
        if node.kind is SetKind.INTERSECT:
            times = np.minimum(left, right)
        elif node.is_all:
            times = np.maximum(left - right, 0)
        else:
            times = np.where(right == 0, left, 0)
        return times if node.is_all else np.minimum(times, 1)


class CountSink(Sink):
    """Counts the rows of one side."""

    def __init__(self, counts: Counts, side: int) -> None:
        self._counts = counts
        self._side = side

    def prepare(self, batch: Batch) -> Batch:
        return compact(batch)

    def push(self, item: Any) -> bool:
        self._counts.add(self._side, item)
        return True


@builds(SetOperation)
def build_set_operation(builder: Builder, node: SetOperation) -> Stream:
    left = builder.build(node.left)
    if node.kind is SetKind.UNION:
        if not node.is_all:
            raise AssertionError("UNION is planned as UNION ALL and a grouping")
        right = builder.build(node.right)
        return Stream(node.fields, [*left.branches, *right.branches])
    counts = Counts(builder, node)
    builder.close(left, CountSink(counts, 0))
    builder.close(builder.build(node.right), CountSink(counts, 1))
    batch_rows = builder.batch_rows
    empty = empty_columns(builder, node.fields)

    def start() -> Iterator[Piece]:
        columns: tuple[Column, ...] = joined(counts.firsts, empty)
        index = np.repeat(np.arange(counts.table.size), counts.repeats(node))
        return ordered_pieces(columns, torch.from_numpy(index), batch_rows, counts.table.size)

    return Stream.of(node.fields, LazySource(start))
