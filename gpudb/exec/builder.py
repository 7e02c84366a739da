"""From a physical plan to pipelines: each operator module registers how its node is built.

``build`` gives a Stream: the branches whose batches are the node's rows, columns in the order of
``node.fields``. A node that must see all its input first (a build side, a sort) closes its input's
stream with a sink (``close``) and starts a new stream from what the sink kept.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gpudb import errors
from gpudb.column import Batch
from gpudb.exec.context import QueryContext
from gpudb.exec.eager import Runner, evaluate_constant
from gpudb.exec.metrics import QueryMetrics
from gpudb.exec.pipeline import (
    Branch,
    Operator,
    Pipeline,
    Sink,
    Source,
)
from gpudb.exec.program import compile_program
from gpudb.expr import Expr
from gpudb.optimizer.logical import Field
from gpudb.optimizer.physical import Physical

OPERATOR_MODULES = (
    "aggregate", "exchange", "function_scan", "hash_join", "limit", "nested_loop", "project",
    "project_set", "recursive", "scan", "set_operation", "shared", "sort", "values", "window",
    "write",
)
"""Every module of exec/operators that builds plan nodes."""
BATCH_ROWS_DEFAULT = 262_144

Builds = Callable[["Builder", Any], "Stream"]
BUILDERS: dict[type[Physical], Builds] = {}
B = TypeVar("B", bound=Builds)


def builds(node: type[Physical]) -> Callable[[B], B]:
    """Register a function as what builds nodes of a class."""

    def register(function: B) -> B:
        BUILDERS[node] = function
        return function

    return register


def load_operators() -> None:
    """Import every operator module."""
    for name in OPERATOR_MODULES:
        importlib.import_module(f"gpudb.exec.operators.{name}")


def positions(fields: Sequence[Field]) -> dict[int, int]:
    """Field id to column number."""
    return {item.id: number for number, item in enumerate(fields)}


@dataclass(slots=True)
class Stream:
    """Branches that yield the rows of a node, one after the other."""

    fields: tuple[Field, ...]
    branches: list[Branch]

    @classmethod
    def of(cls, fields: tuple[Field, ...], source: Source) -> Stream:
        return cls(fields, [Branch(source)])

    def then(self, operator: Operator, fields: tuple[Field, ...]) -> Stream:
        """The stream with an operator at the end of every branch."""
        for branch in self.branches:
            branch.operators.append(operator)
        return Stream(fields, self.branches)


@dataclass(slots=True)
class Builder:
    """Builds the pipelines of one query, in the order in which they run."""

    context: QueryContext
    storage: Any = None
    system: Any = None
    metrics: QueryMetrics = field(default_factory=QueryMetrics)
    pipelines: list[Pipeline] = field(default_factory=list)
    shared: dict[int, Any] = field(default_factory=dict)
    work_tables: dict[int, list[Batch]] = field(default_factory=dict)
    filters: dict[int, Any] = field(default_factory=dict)
    leaf_rows: int = 0
    device: str = "cpu"

    @property
    def batch_rows(self) -> int:
        return int(setting(self.context, "gpudb.batch_rows", BATCH_ROWS_DEFAULT))

    def build(self, node: Physical) -> Stream:
        """The stream of a node; 0A000 for one that nothing builds."""
        found = BUILDERS.get(type(node))
        if found is None:
            raise errors.FeatureNotSupported(
                f"execution of {type(node).__name__} is not supported"
            )
        before = len(self.pipelines)
        stream = found(self, node)
        metrics = self.metrics.of(node)
        for branch in stream.branches:
            if branch.operators and branch.operators[-1].metrics is None:
                branch.operators[-1].metrics = metrics
            elif not branch.operators and branch.source.metrics is None:
                branch.source.metrics = metrics
            else:
                branch.operators.append(Counted(metrics))
        for pipeline in self.pipelines[before:]:
            if pipeline.sink.metrics is None:
                pipeline.sink.metrics = metrics
        return stream

    def close(self, stream: Stream, sink: Sink) -> None:
        """Let a stream end in a sink."""
        self.pipelines.append(Pipeline([b.copy() for b in stream.branches], sink))

    def runner(self, expressions: Sequence[Expr], fields: Sequence[Field]) -> Runner:
        """What computes expressions over rows of ``fields``."""
        return Runner(compile_program(expressions, positions(fields)), self.context)

    def constant(self, expression: Expr) -> Any:
        """The host value of an expression without columns."""
        return evaluate_constant(expression, self.context)

    def nested(self) -> Builder:
        """A builder for a plan that runs within this query (a round of a recursion)."""
        return Builder(
            self.context, self.storage, self.system, self.metrics,
            shared=dict(self.shared), work_tables=self.work_tables, filters=dict(self.filters),
        )


class Counted(Operator):
    """Passes batches on and counts them for a source's node."""

    def __init__(self, metrics: Any) -> None:
        self.metrics = metrics

    def push(self, batch: Batch) -> Iterator[Batch]:
        yield batch


def setting(context: QueryContext, name: str, default: Any) -> Any:
    """A setting of the query, or the default where the context has none."""
    try:
        found = context.settings[name]
    except KeyError:
        return default
    return default if found is None else found
