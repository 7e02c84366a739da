"""Set-returning calls in the select list, in lockstep."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gpudb import errors
from gpudb.catalog import functions
from gpudb.catalog.types.base import RecordValue
from gpudb.column import (
    Batch,
    Column,
    compact,
    expand,
    from_values,
    null_column,
    take_rows,
    to_values,
)
from gpudb.exec.builder import Builder, Stream, builds
from gpudb.exec.conversions import data_type
from gpudb.exec.eager import row_offset
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.pipeline import Operator
from gpudb.expr import Call, Expr
from gpudb.optimizer.logical import Field
from gpudb.optimizer.physical import ProjectSet

SetRows = tuple[Tensor, Sequence[Column]]
"""Rows made per input row, int64 (R), and the output columns, row after row."""


class SetCall:
    """A call in a set-returning place: a set function, or any expression as a set of one row."""

    def __init__(self, builder: Builder, call: Expr, fields: Sequence[Field]) -> None:
        self.context = builder.context
        self.call = call
        self.is_set = isinstance(call, Call) and call.function.returns_set
        arguments = call.arguments if isinstance(call, Call) and self.is_set else (call,)
        self._runner = builder.runner(arguments, fields)

    def rows(self, batch: Batch) -> SetRows:
        """What the call makes of each row of a batch without a selection."""
        columns = self._runner.evaluate(batch)
        if not isinstance(self.call, Call) or not self.is_set:
            return torch.ones(batch.rows, dtype=torch.int64), columns
        function = self.call.function
        found = functions.SETS.get(function.key)
        if found is None:
            raise errors.FeatureNotSupported(f"function {function.name} is not supported")
        context = EvaluationContext(
            self.context, batch.rows, row_offset=row_offset(batch), position=self.call.position
        )
        counts, made = found.body(context, *columns)
        if context.errors.error is not None:
            raise context.errors.error
        return counts, made


def copies(counts: Tensor) -> tuple[Tensor, Tensor]:
    """For rows repeated ``counts`` (int64 R) times: the row of each copy, and its number in it."""
    total = int(counts.sum())
    rows = torch.repeat_interleave(torch.arange(len(counts)), counts, output_size=total)
    starts = torch.cumsum(counts, 0) - counts
    return rows, torch.arange(total) - starts.index_select(0, rows)


def aligned(builder: Builder, made: SetRows, rows: Tensor, number: Tensor) -> list[Column]:
    """Output ``number`` of input row ``rows`` of a call; NULL past the end of its set."""
    counts, columns = made
    starts = torch.cumsum(counts, 0) - counts
    present = number < counts.index_select(0, rows)
    index = torch.where(present, starts.index_select(0, rows) + number, 0)
    total = int(counts.sum())
    found = []
    for column in columns:
        if not total:
            kind = data_type(column.type.oid, builder.context).layout
            found.append(null_column(column.type, kind, len(rows)))
            continue
        taken = take_rows(column, index, total)
        if not bool(present.all()):
            valid = present if taken.valid is None else taken.valid & present
            taken = replace(taken, valid=valid)
        found.append(taken)
    return found


def as_record(builder: Builder, call: SetCall, made: SetRows) -> SetRows:
    """In a select list a call is one column: several output columns make a record."""
    counts, columns = made
    if len(columns) == 1:
        return made
    oids = tuple(column.type.oid for column in columns)
    values = zip(*(to_values(expand(c, int(counts.sum()))) for c in columns), strict=True)
    records = [RecordValue(oids, tuple(row)) for row in values]
    type_ = call.call.type
    kind = data_type(type_.oid, builder.context).layout
    return counts, (from_values(type_, kind, records),)


class ProjectSetOperator(Operator):
    def __init__(self, builder: Builder, node: ProjectSet) -> None:
        self._builder = builder
        self._calls = [
            SetCall(builder, item.expression, node.input.fields) for item in node.calls
        ]
        self._batch_rows = builder.batch_rows

    def push(self, batch: Batch) -> Iterator[Batch]:
        plain = compact(batch)
        sets = [as_record(self._builder, call, call.rows(plain)) for call in self._calls]
        lengths = [
            made[0] for call, made in zip(self._calls, sets, strict=True) if call.is_set
        ]
        rows, number = copies(functools.reduce(torch.maximum, lengths))
        for start in range(0, len(rows), self._batch_rows):
            here, nth = (part[start : start + self._batch_rows] for part in (rows, number))
            columns = [take_rows(column, here, plain.rows) for column in plain.columns]
            for call, made in zip(self._calls, sets, strict=True):
                if call.is_set:
                    columns += aligned(self._builder, made, here, nth)
                else:
                    columns += [take_rows(column, here, plain.rows) for column in made[1]]
            yield Batch.of(columns, len(here), (batch.sequence[0], batch.sequence[1] + start))


@builds(ProjectSet)
def build_project_set(builder: Builder, node: ProjectSet) -> Stream:
    return builder.build(node.input).then(ProjectSetOperator(builder, node), node.fields)


