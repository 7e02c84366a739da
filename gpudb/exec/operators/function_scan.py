"""Functions in FROM: ROWS FROM, WITH ORDINALITY; and data files."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import torch

from gpudb.column import Batch, Column, from_values, integer_column, slice_rows, to_values
from gpudb.exec.builder import Builder, Stream, builds, positions
from gpudb.exec.conversions import data_type
from gpudb.exec.eager import ONE_ROW, Predicates
from gpudb.exec.operators.project import FilterOperator
from gpudb.exec.operators.project_set import SetCall, aligned, copies
from gpudb.exec.pipeline import OnceSource
from gpudb.optimizer.logical import Field
from gpudb.optimizer.physical import FileScan, FunctionScan
from gpudb.sqltype import BIGINT
from gpudb.storage import external


@builds(FunctionScan)
def build_function_scan(builder: Builder, node: FunctionScan) -> Stream:
    calls = [SetCall(builder, call, ()) for call in node.calls]

    def rows() -> Iterator[Batch]:
        sets = []
        for call, outputs in zip(calls, node.outputs, strict=True):
            counts, columns = call.rows(ONE_ROW)
            sets.append((counts, _spread(builder, columns, outputs)))
        row, number = copies(functools.reduce(torch.maximum, (made[0] for made in sets)))
        columns = [c for made in sets for c in aligned(builder, made, row, number)]
        if node.ordinality is not None:
            columns.append(integer_column(BIGINT, number + 1, lo=1, hi=len(row)))
        step = builder.batch_rows
        for start in range(0, len(row), step):
            stop = min(start + step, len(row))
            cut = [slice_rows(column, start, stop) for column in columns]
            yield Batch.of(cut, stop - start, (0, start))

    return Stream.of(node.fields, OnceSource(rows))


def _spread(
    builder: Builder, columns: Sequence[Column], outputs: tuple[Field, ...]
) -> list[Column]:
    """The output columns of a call; a record is taken apart into its fields."""
    if len(columns) == len(outputs):
        return list(columns)
    (records,) = columns
    values = to_values(records)
    found = []
    for number, item in enumerate(outputs):
        kind = data_type(item.type.oid, builder.context).layout
        parts = [None if v is None else v.values[number] for v in values]
        found.append(from_values(item.type, kind, parts))
    return found


@builds(FileScan)
def build_file_scan(builder: Builder, node: FileScan) -> Stream:
    """``batches`` is the format of rows that the session itself hands in (COPY)."""

    def rows() -> Iterator[Batch]:
        if node.format == "batches":
            found: Iterator[Batch] = iter(builder.context.session.copied_batches)
        else:
            found = external.batches(
                node.format, node.paths, [f.name for f in node.fields],
                [f.type for f in node.fields], dict(node.options),
            )
        for batch in found:
            builder.context.check()
            yield from _cut(batch, builder.batch_rows)

    stream = Stream.of(node.fields, OnceSource(rows))
    if node.filters:
        predicates = Predicates(node.filters, positions(node.fields), builder.context)
        stream = stream.then(FilterOperator(predicates), node.fields)
    return stream


def _cut(batch: Batch, step: int) -> Iterator[Batch]:
    for start in range(0, batch.rows, step):
        stop = min(start + step, batch.rows)
        columns = [slice_rows(column, start, stop) for column in batch.columns]
        yield Batch.of(columns, stop - start, (batch.sequence[0], batch.sequence[1] + start))
