"""Joins on any condition: the build side is kept, probe batches meet it block by block."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpudb.column import Batch
from gpudb.exec.builder import Builder, Stream, builds
from gpudb.exec.eager import Runner
from gpudb.exec.operators.collect import CollectSink
from gpudb.exec.operators.joins import KEEPS_BUILD, Join, Pairs, ranges
from gpudb.exec.pipeline import Branch, LazySource
from gpudb.expr import Literal
from gpudb.optimizer.logical import Field
from gpudb.optimizer.physical import NestedLoopJoin


class NestedLoop(Join):
    """Every probe row meets every build row."""

    def __init__(
        self, builder: Builder, node: NestedLoopJoin, *, probe_fields: tuple[Field, ...],
        build_fields: tuple[Field, ...], build: CollectSink, residual: Runner | None,
    ) -> None:
        super().__init__(
            builder, kind=node.kind, fields=(probe_fields, build_fields), build=build,
            residual=residual, is_build_left=node.is_build_left,
        )

    def candidates(self, batch: Batch) -> Iterator[Pairs]:
        count = self.build.rows
        if not count:
            return
        starts = np.zeros(batch.rows, np.int64)
        counts = np.full(batch.rows, count, np.int64)
        for rows, positions in ranges(starts, counts, self.batch_rows):
            self._context.check()
            yield rows, positions


class KeptSide(CollectSink):
    """The build side; tells its join when it is finished."""

    join: NestedLoop | None = None

    def finish(self) -> None:
        super().finish()
        if self.join is not None:
            self.join.prepare_marks()


@builds(NestedLoopJoin)
def build_nested_loop(builder: Builder, node: NestedLoopJoin) -> Stream:
    build_stream = builder.build(node.build)
    side = KeptSide(builder, build_stream.fields, "the inner side of a nested loop")
    builder.close(build_stream, side)
    stream = builder.build(node.probe)
    residual = None
    if not (isinstance(node.condition, Literal) and node.condition.value is True):
        residual = builder.runner([node.condition], (*stream.fields, *build_stream.fields))
    probe = NestedLoop(
        builder, node, probe_fields=stream.fields, build_fields=build_stream.fields,
        build=side, residual=residual,
    )
    side.join = probe
    output = stream.then(probe, node.fields)
    if node.kind in KEEPS_BUILD:
        output.branches.append(Branch(LazySource(probe.unmatched), is_barrier=True))
    return output
