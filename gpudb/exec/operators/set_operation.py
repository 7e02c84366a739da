"""UNION ALL, INTERSECT and EXCEPT.

INTERSECT and EXCEPT number the right side's rows by key and count them; a left row that is number k
among its equals is kept when k < count (INTERSECT ALL) or k >= count (EXCEPT ALL); without ALL only
the first of its equals can be kept, and any count is enough.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

from gpudb.column import take_rows
from gpudb.exec.builder import Builder, Stream, builds
from gpudb.exec.operators.collect import CollectSink, pieces
from gpudb.exec.pipeline import LazySource, Piece
from gpudb.kernels.group import KeyTable
from gpudb.optimizer.logical import SetKind
from gpudb.optimizer.physical import SetOperation

Ids = npt.NDArray[np.int64]


def occurrences(ids: Ids) -> Ids:
    """How many earlier rows have the same id (R)."""
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, len(ids)])
    found = np.empty(len(ids), np.int64)
    found[order] = np.arange(len(ids)) - np.repeat(starts, lengths)
    return found


@builds(SetOperation)
def build_set_operation(builder: Builder, node: SetOperation) -> Stream:
    if node.kind is SetKind.UNION:
        left, right = builder.build(node.left), builder.build(node.right)
        return Stream(node.fields, [*left.branches, *right.branches])
    sinks = []
    for side in (node.left, node.right):
        stream = builder.build(side)
        sink = CollectSink(builder, side.fields, "a set operation")
        builder.close(stream, sink)
        sinks.append(sink)
    left_sink, right_sink = sinks
    batch_rows = builder.batch_rows

    def start() -> Iterator[Piece]:
        kept = _kept(node, left_sink, right_sink)
        index = torch.from_numpy(kept)
        columns = tuple(take_rows(c, index, left_sink.rows) for c in left_sink.columns)
        return pieces(columns, len(kept), batch_rows)

    return Stream.of(node.fields, LazySource(start))


def _kept(node: SetOperation, left: CollectSink, right: CollectSink) -> Ids:
    """The left rows that the operation keeps, in order."""
    if not left.rows:
        return np.zeros(0, np.int64)
    if not left.columns:
        ids = np.zeros(left.rows, np.int64)
        counts = np.array([right.rows])
    else:
        table = KeyTable(len(left.columns), expected_rows=left.rows)
        ids, _ = table.insert(left.columns, left.rows)
        counts = np.zeros(table.size, np.int64)
        if right.rows:
            found = table.find(right.columns, right.rows)
            counts += np.bincount(found[found >= 0], minlength=table.size)
    number = occurrences(ids)
    present = counts[ids]
    is_intersect = node.kind is SetKind.INTERSECT
    if node.is_all:
        keep = number < present if is_intersect else number >= present
    else:
        keep = (number == 0) & ((present > 0) if is_intersect else (present == 0))
    return np.flatnonzero(keep)
