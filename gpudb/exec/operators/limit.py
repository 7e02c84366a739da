"""LIMIT, OFFSET, WITH TIES and DISTINCT ON: what depends on the order in which rows come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from gpudb import errors
from gpudb.column import Batch, Column, compact, expand, take_rows
from gpudb.exec.builder import Builder, Stream, builds
from gpudb.exec.eager import Runner, selected
from gpudb.exec.pipeline import Operator
from gpudb.expr import Expr, SortKey
from gpudb.kernels.group import KeyTable
from gpudb.optimizer.physical import DistinctOn, Limit


def row_count(builder: Builder, expression: Expr | None, *, is_limit: bool) -> int | None:
    """The value of LIMIT or OFFSET, None for NULL or none; 2201W, 2201X when negative."""
    if expression is None:
        return None
    value = builder.constant(expression)
    if value is None:
        return None
    if value < 0:
        if is_limit:
            raise errors.InvalidRowCountInLimitClause("LIMIT must not be negative")
        raise errors.InvalidRowCountInResultOffsetClause("OFFSET must not be negative")
    return int(value)


class LimitOperator(Operator):
    """Rows [offset, offset + limit) of what comes."""

    is_serial = True

    def __init__(self, offset: int, limit: int | None) -> None:
        self._skip = offset
        self._left = limit

    @property
    def is_done(self) -> bool:
        return self._left == 0

    def push(self, batch: Batch) -> Iterator[Batch]:
        if self._left == 0:
            return
        start = min(self._skip, batch.rows)
        self._skip -= start
        stop = batch.rows if self._left is None else min(batch.rows, start + self._left)
        if self._left is not None:
            self._left -= stop - start
        if stop > start:
            whole = stop - start == batch.rows
            yield batch if whole else selected(batch, torch.arange(start, stop))


class TiesOperator(Operator):
    """LIMIT WITH TIES over sorted rows: also the rows equal to the last one."""

    is_serial = True

    def __init__(self, offset: int, limit: int, runner: Runner) -> None:
        self._skip = offset
        self._left = limit
        self._runner = runner
        self._last: KeyTable | None = None
        self._is_over = limit == 0

    @property
    def is_done(self) -> bool:
        return self._is_over

    def push(self, batch: Batch) -> Iterator[Batch]:
        if self._is_over:
            return
        plain = compact(batch)
        keys = [expand(c, plain.rows) for c in self._runner.evaluate(plain)]
        start = min(self._skip, plain.rows)
        self._skip -= start
        stop = min(plain.rows, start + self._left)
        self._left -= stop - start
        if self._left == 0:
            if self._last is None and stop:
                self._last = KeyTable(len(keys))
                last = torch.tensor([stop - 1])
                self._last.insert([take_rows(k, last, plain.rows) for k in keys], 1)
            stop = self._with_ties(keys, stop, plain.rows)
        if stop > start:
            yield selected(plain, torch.arange(start, stop))

    def _with_ties(self, keys: Sequence[Column], stop: int, rows: int) -> int:
        assert self._last is not None
        rest = torch.arange(stop, rows)
        if not rest.shape[0]:
            return stop
        ids = self._last.find([take_rows(k, rest, rows) for k in keys], rest.shape[0])
        different = (ids < 0).nonzero()[0]
        if len(different):
            self._is_over = True
            return stop + int(different[0])
        return rows


class DistinctOnOperator(Operator):
    """The first row of every key, as the rows come."""

    is_serial = True

    def __init__(self, runner: Runner, width: int) -> None:
        self._runner = runner
        self._table = KeyTable(width)

    def push(self, batch: Batch) -> Iterator[Batch]:
        keys = self._runner.evaluate(batch)
        _, first = self._table.insert(keys, batch.rows)
        if len(first):
            yield selected(batch, torch.from_numpy(first))


@builds(Limit)
def build_limit(builder: Builder, node: Limit) -> Stream:
    stream = builder.build(node.input)
    limit = row_count(builder, node.limit, is_limit=True)
    offset = row_count(builder, node.offset, is_limit=False) or 0
    if node.ties and limit is not None:
        keys: tuple[SortKey, ...] = node.ties
        runner = builder.runner([key.expression for key in keys], stream.fields)
        return stream.then(TiesOperator(offset, limit, runner), stream.fields)
    return stream.then(LimitOperator(offset, limit), stream.fields)


@builds(DistinctOn)
def build_distinct_on(builder: Builder, node: DistinctOn) -> Stream:
    stream = builder.build(node.input)
    runner = builder.runner(node.on, stream.fields)
    return stream.then(DistinctOnOperator(runner, len(node.on)), stream.fields)
