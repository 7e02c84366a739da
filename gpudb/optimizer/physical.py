"""The physical algebra: what the planner chooses and the executor runs. Frozen, torch-free.

``estimate`` on every node holds estimates only; nothing that correctness rests on. Expressions
refer to field ids as in the logical plan. Join children: ``probe`` streams, ``build`` is
finished first.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from gpudb.expr import Expr, SortKey
from gpudb.optimizer.logical import (
    AggregateItem,
    Assignment,
    Field,
    JoinKind,
    SetKind,
    WindowItem,
)
from gpudb.tree import Node, children


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the planner expects: rows out, bytes out, cost in microseconds (own and inputs')."""

    rows: float = 0.0
    bytes: float = 0.0
    cost: float = 0.0


NO_ESTIMATE = Estimate()


class Distribution(enum.Enum):
    """Where the rows of an operator's output are, over the ranks."""

    SINGLE = "single"
    PARTITIONED = "partitioned"
    BROADCAST = "broadcast"


@dataclass(frozen=True, slots=True)
class Physical(Node):
    """A physical operator. ``fields`` are its output columns in order."""

    is_part: ClassVar[bool] = False

    if TYPE_CHECKING:

        @property
        def fields(self) -> tuple[Field, ...]: ...

        @property
        def estimate(self) -> Estimate: ...

    @property
    def inputs(self) -> tuple[Physical, ...]:
        return tuple(children(self, Physical))


@dataclass(frozen=True, slots=True)
class TableScan(Physical):
    """A stored table. ``filters``: conjuncts evaluated in the scan, cheapest and most selective
    first; ``zone_filters`` those of them that zone maps understand (comparison with a constant).
    ``dynamic_filters``: (filter id, field id) pairs published by hash joins above.
    """

    table_oid: int
    name: str
    alias: str
    fields: tuple[Field, ...]
    filters: tuple[Expr, ...] = ()
    zone_filters: tuple[Expr, ...] = ()
    dynamic_filters: tuple[tuple[int, int], ...] = ()
    estimate: Estimate = NO_ESTIMATE


@dataclass(frozen=True, slots=True)
class SystemScan(Physical):
    """A system relation, from the catalog snapshot."""

    table_oid: int
    name: str
    alias: str
    fields: tuple[Field, ...]
    filters: tuple[Expr, ...] = ()
    estimate: Estimate = NO_ESTIMATE


@dataclass(frozen=True, slots=True)
class FileScan(Physical):
    format: str
    paths: tuple[str, ...]
    fields: tuple[Field, ...]
    options: tuple[tuple[str, str], ...] = ()
    filters: tuple[Expr, ...] = ()
    estimate: Estimate = NO_ESTIMATE


@dataclass(frozen=True, slots=True)
class ValuesScan(Physical):
    fields: tuple[Field, ...]
    rows: tuple[tuple[Expr, ...], ...]
    estimate: Estimate = NO_ESTIMATE


@dataclass(frozen=True, slots=True)
class FunctionScan(Physical):
    calls: tuple[Expr, ...]
    outputs: tuple[tuple[Field, ...], ...]
    ordinality: Field | None = None
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        flat = tuple(item for group in self.outputs for item in group)
        return flat if self.ordinality is None else (*flat, self.ordinality)


@dataclass(frozen=True, slots=True)
class Filter(Physical):
    input: Physical
    predicates: tuple[Expr, ...]
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Project(Physical):
    input: Physical
    assignments: tuple[Assignment, ...]
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(item.field for item in self.assignments)


@dataclass(frozen=True, slots=True)
class ProjectSet(Physical):
    input: Physical
    calls: tuple[Assignment, ...]
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, *(item.field for item in self.calls))


@dataclass(frozen=True, slots=True)
class HashJoin(Physical):
    """Equality of probe_keys[i] and build_keys[i] (NULL matches nothing unless null_safe[i]), and
    ``residual`` over both sides. ``kind`` is seen from the probe side (LEFT keeps probe rows,
    RIGHT build rows; SEMI, ANTI, MARK, SINGLE are of the probe side). For MARK,
    ``is_null_aware`` makes the mark NULL where a NULL key could have matched (IN); then keys
    are compared as one row value. ``is_build_left``: the build side is the left logical input,
    so that output columns are build's, then probe's. ``dynamic_filters``: (filter id, key index)
    published from the finished build side.
    """

    kind: JoinKind
    probe: Physical
    build: Physical
    probe_keys: tuple[Expr, ...]
    build_keys: tuple[Expr, ...]
    residual: Expr | None = None
    null_safe: tuple[bool, ...] = ()
    mark: Field | None = None
    is_null_aware: bool = False
    is_build_left: bool = False
    dynamic_filters: tuple[tuple[int, int], ...] = ()
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return _join_fields(
            self.kind, self.probe, self.build, self.mark, self.is_build_left
        )


@dataclass(frozen=True, slots=True)
class NestedLoopJoin(Physical):
    """Any condition; the build side is finished and kept, probe batches meet it block by block."""

    kind: JoinKind
    probe: Physical
    build: Physical
    condition: Expr
    mark: Field | None = None
    is_build_left: bool = False
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return _join_fields(
            self.kind, self.probe, self.build, self.mark, self.is_build_left
        )


def _join_fields(
    kind: JoinKind,
    probe: Physical,
    build: Physical,
    mark: Field | None,
    is_build_left: bool,
) -> tuple[Field, ...]:
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return probe.fields
    if kind is JoinKind.MARK:
        assert mark is not None
        return (*probe.fields, mark)
    if is_build_left:
        return (*build.fields, *probe.fields)
    return (*probe.fields, *build.fields)


class AggregateMode(enum.Enum):
    SINGLE = "single"
    PARTIAL = "partial"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class HashAggregate(Physical):
    """Grouping by any means that facts allow (direct address, hash, sort); also DISTINCT."""

    input: Physical
    keys: tuple[Assignment, ...]
    items: tuple[AggregateItem, ...]
    grouping_sets: tuple[tuple[int, ...], ...] = ()
    mode: AggregateMode = AggregateMode.SINGLE
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*(k.field for k in self.keys), *(i.field for i in self.items))


@dataclass(frozen=True, slots=True)
class Sort(Physical):
    input: Physical
    keys: tuple[SortKey, ...]
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class TopN(Physical):
    input: Physical
    keys: tuple[SortKey, ...]
    limit: Expr
    offset: Expr | None = None
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Limit(Physical):
    """``ties``: the sort keys of WITH TIES, empty otherwise."""

    input: Physical
    limit: Expr | None
    offset: Expr | None
    ties: tuple[SortKey, ...] = ()
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class DistinctOn(Physical):
    """The first row of each group of ``on``, in input order."""

    input: Physical
    on: tuple[Expr, ...]
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Window(Physical):
    """Calls with one partitioning and ordering; rows leave in (partition, order) order."""

    input: Physical
    partition_by: tuple[Expr, ...]
    order_by: tuple[SortKey, ...]
    items: tuple[WindowItem, ...]
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, *(item.field for item in self.items))


@dataclass(frozen=True, slots=True)
class SetOperation(Physical):
    """UNION ALL streams; the other kinds group (UNION is planned as UNION ALL and a grouping)."""

    kind: SetKind
    is_all: bool
    left: Physical
    right: Physical
    fields: tuple[Field, ...]
    estimate: Estimate = NO_ESTIMATE


@dataclass(frozen=True, slots=True)
class RecursiveUnion(Physical):
    id: int
    base: Physical
    step: Physical
    is_all: bool
    fields: tuple[Field, ...]
    estimate: Estimate = NO_ESTIMATE


@dataclass(frozen=True, slots=True)
class WorkTableScan(Physical):
    id: int
    fields: tuple[Field, ...]
    estimate: Estimate = NO_ESTIMATE


@dataclass(frozen=True, slots=True)
class SharedPlan(Node):
    id: int
    plan: Physical
    name: str = ""


@dataclass(frozen=True, slots=True)
class With(Physical):
    """Shared plans, each run once and kept, then the input."""

    shared: tuple[SharedPlan, ...]
    input: Physical
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class SharedScan(Physical):
    id: int
    name: str
    fields: tuple[Field, ...]
    estimate: Estimate = NO_ESTIMATE


@dataclass(frozen=True, slots=True)
class Exchange(Physical):
    """Moves rows between ranks: by hash of ``keys``, to all, or to one."""

    input: Physical
    distribution: Distribution
    keys: tuple[Expr, ...] = ()
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Transfer(Physical):
    """Moves batches to another device ("cpu", "cuda:0")."""

    input: Physical
    device: str
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class InsertRows(Physical):
    """Writes the input's columns (positionally the table's, in attnum order); yields them."""

    table_oid: int
    name: str
    input: Physical
    fields: tuple[Field, ...]
    checks: tuple[Expr, ...] = ()
    estimate: Estimate = NO_ESTIMATE


@dataclass(frozen=True, slots=True)
class DeleteRows(Physical):
    table_oid: int
    name: str
    input: Physical
    row_id: Field
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class UpdateRows(Physical):
    table_oid: int
    name: str
    input: Physical
    row_id: Field
    columns: tuple[Field, ...]
    checks: tuple[Expr, ...] = field(default=())
    estimate: Estimate = NO_ESTIMATE

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields
