"""Filters and projections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpudb.column import Batch
from gpudb.exec.builder import Builder, Stream, builds, positions
from gpudb.exec.eager import Predicates, Runner
from gpudb.exec.pipeline import Operator
from gpudb.expr import ColumnRef
from gpudb.optimizer.logical import Assignment
from gpudb.optimizer.physical import Filter, Project


class FilterOperator(Operator):
    """Selects the rows for which all conjuncts are true; copies nothing."""

    def __init__(self, predicates: Predicates) -> None:
        self._predicates = predicates

    def push(self, batch: Batch) -> Iterator[Batch]:
        found = self._predicates.select(batch)
        if found.rows:
            yield found


class PickOperator(Operator):
    """Reorders columns."""

    def __init__(self, columns: Sequence[int]) -> None:
        self._columns = tuple(columns)

    def push(self, batch: Batch) -> Iterator[Batch]:
        yield replace(batch, columns=tuple(batch.columns[i] for i in self._columns))


class ProjectOperator(Operator):
    """Computes expressions; the selection is applied to what they read."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def push(self, batch: Batch) -> Iterator[Batch]:
        yield Batch.of(self._runner.evaluate(batch), batch.rows, batch.sequence)


def projection(builder: Builder, assignments: Sequence[Assignment], input_: Stream) -> Operator:
    """The operator that computes assignments from a stream's rows."""
    at = positions(input_.fields)
    expressions = [item.expression for item in assignments]
    if all(isinstance(item, ColumnRef) for item in expressions):
        return PickOperator([at[e.id] for e in expressions if isinstance(e, ColumnRef)])
    return ProjectOperator(builder.runner(expressions, input_.fields))


@builds(Filter)
def build_filter(builder: Builder, node: Filter) -> Stream:
    stream = builder.build(node.input)
    predicates = Predicates(node.predicates, positions(stream.fields), builder.context)
    return stream.then(FilterOperator(predicates), stream.fields)


@builds(Project)
def build_project(builder: Builder, node: Project) -> Stream:
    stream = builder.build(node.input)
    return stream.then(projection(builder, node.assignments, stream), node.fields)
