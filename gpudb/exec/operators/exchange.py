"""Exchange and transfer in their one-rank form: rows stay where they are."""

from __future__ import annotations

from gpudb import errors
from gpudb.exec.builder import Builder, Stream, builds
from gpudb.optimizer.physical import Exchange, Transfer


@builds(Exchange)
def build_exchange(builder: Builder, node: Exchange) -> Stream:
    """With one rank every distribution holds already."""
    return builder.build(node.input)


@builds(Transfer)
def build_transfer(builder: Builder, node: Transfer) -> Stream:
    if node.device != builder.device:
        raise errors.FeatureNotSupported(
            f"moving batches from {builder.device} to {node.device} is not supported"
        )
    return builder.build(node.input)
