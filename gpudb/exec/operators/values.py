"""VALUES and SELECT without FROM."""

from __future__ import annotations

from collections.abc import Iterator

from gpudb.column import Batch, Column, expand, null_column
from gpudb.exec.builder import Builder, Stream, builds
from gpudb.exec.conversions import data_type
from gpudb.exec.eager import ONE_ROW
from gpudb.exec.pipeline import OnceSource
from gpudb.kernels.concat import concat
from gpudb.optimizer.logical import Field
from gpudb.optimizer.physical import ValuesScan


def empty_columns(builder: Builder, fields: tuple[Field, ...]) -> tuple[Column, ...]:
    """Columns without rows in the layouts of their types."""
    return tuple(
        null_column(f.type, data_type(f.type.oid, builder.context).layout, 0) for f in fields
    )


@builds(ValuesScan)
def build_values(builder: Builder, node: ValuesScan) -> Stream:
    runners = [builder.runner(row, ()) for row in node.rows] if node.fields else []
    batch_rows = builder.batch_rows
    builder.leaf_rows += len(node.rows)

    def rows() -> Iterator[Batch]:
        if not node.fields:
            yield Batch((), len(node.rows), len(node.rows))
            return
        for start in range(0, len(runners), batch_rows):
            pieces = [runner.evaluate(ONE_ROW) for runner in runners[start : start + batch_rows]]
            columns = [
                expand(concat([(c, 1) for c in column]), len(pieces)) for column in zip(*pieces)
            ]
            yield Batch.of(columns, len(pieces), (0, start))

    return Stream.of(node.fields, OnceSource(rows, len(node.rows)))
