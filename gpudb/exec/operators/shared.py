"""Plans computed once (CTEs used twice, the domain of a decorrelated subquery)."""

from __future__ import annotations

from collections.abc import Iterator

from gpudb.exec.builder import Builder, Stream, builds
from gpudb.exec.operators.collect import CollectSink, pieces
from gpudb.exec.pipeline import LazySource, Piece
from gpudb.optimizer.physical import SharedScan, With


@builds(With)
def build_with(builder: Builder, node: With) -> Stream:
    """Each shared plan ends in a sink of its own, before what reads it."""
    for item in node.shared:
        stream = builder.build(item.plan)
        sink = CollectSink(builder, item.plan.fields, f"common table expression {item.name}")
        builder.close(stream, sink)
        builder.shared[item.id] = sink
    return builder.build(node.input)


@builds(SharedScan)
def build_shared_scan(builder: Builder, node: SharedScan) -> Stream:
    sink: CollectSink = builder.shared[node.id]
    batch_rows = builder.batch_rows

    def start() -> Iterator[Piece]:
        return pieces(sink.columns, sink.rows, batch_rows)

    return Stream.of(node.fields, LazySource(start))
