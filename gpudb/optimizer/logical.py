"""The logical algebra: what the binder makes and the rules rewrite. Frozen, torch-free.

Every plan yields rows of ``fields``; a field's id is unique within the statement and is how
expressions refer to it (ColumnRef.id). A plan whose expressions read ids that its inputs do not
yield is *dependent* (correlated); the only node that supplies such ids is Apply, and the
decorrelation rule leaves neither Apply nor Subquery expressions behind.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar

from gpudb.expr import (
    AggregateCall,
    ColumnRef,
    Expr,
    Grouping,
    SortKey,
    Subquery,
    WindowCall,
    references,
)
from gpudb.sqltype import SqlType
from gpudb.tree import Node, children, walk


@dataclass(frozen=True, slots=True)
class Field(Node):
    """An output column. ``table_oid`` and ``attnum`` say which table column it is, if any."""

    id: int
    name: str
    type: SqlType
    table_oid: int = 0
    attnum: int = 0

    @property
    def ref(self) -> ColumnRef:
        return ColumnRef(self.id, self.type, self.name)


@dataclass(frozen=True, slots=True)
class Plan(Node):
    """A logical operator."""

    is_part: ClassVar[bool] = False

    @property
    def fields(self) -> tuple[Field, ...]:
        raise AssertionError(type(self).__name__)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return tuple(children(self, Plan))


@dataclass(frozen=True, slots=True)
class Scan(Plan):
    """Rows of a stored or system table. ``columns`` are the fields read; a system attribute has
    a negative attnum (tableoid -6, ctid -1, xmin -3). ``filters`` are pushed conjuncts.
    """

    table_oid: int
    name: str
    columns: tuple[Field, ...]
    filters: tuple[Expr, ...] = ()
    alias: str = ""

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class Values(Plan):
    """Literal rows; no columns and one row is the input of SELECT without FROM."""

    columns: tuple[Field, ...]
    rows: tuple[tuple[Expr, ...], ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class TableFunction(Plan):
    """Set-returning calls in FROM, zipped row by row (ROWS FROM), NULL-padded to the longest.

    ``outputs`` holds the fields of each call: one, or several for a record-returning function.
    ``calls`` may be any expression: one that is not set-returning yields one row.
    """

    calls: tuple[Expr, ...]
    outputs: tuple[tuple[Field, ...], ...]
    ordinality: Field | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        flat = tuple(field for group in self.outputs for field in group)
        return flat if self.ordinality is None else (*flat, self.ordinality)


@dataclass(frozen=True, slots=True)
class FileScan(Plan):
    """read_parquet or read_csv: ``format``, resolved paths, options as key-value pairs."""

    format: str
    paths: tuple[str, ...]
    columns: tuple[Field, ...]
    options: tuple[tuple[str, str], ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class Assignment(Node):
    """An output field and the expression that computes it."""

    field: Field
    expression: Expr


@dataclass(frozen=True, slots=True)
class Project(Plan):
    """Exactly the assigned fields; passing a column on unchanged keeps its id."""

    input: Plan
    assignments: tuple[Assignment, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(item.field for item in self.assignments)


@dataclass(frozen=True, slots=True)
class ProjectSet(Plan):
    """The input's fields and set-returning calls in lockstep: as many rows as the longest set,
    shorter ones NULL-padded, none when all sets are empty (PostgreSQL 10 and later).
    """

    input: Plan
    calls: tuple[Assignment, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, *(item.field for item in self.calls))


@dataclass(frozen=True, slots=True)
class Filter(Plan):
    input: Plan
    predicate: Expr

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


class JoinKind(enum.Enum):
    INNER = "Inner"
    LEFT = "Left"
    RIGHT = "Right"
    FULL = "Full"
    SEMI = "Semi"  # left rows with a match
    ANTI = "Anti"  # left rows without a match (condition never true)
    MARK = "Mark"  # left rows and a boolean: true, or NULL/false as SQL's IN defines
    SINGLE = "Single"  # left join that raises 21000 on a second match


@dataclass(frozen=True, slots=True)
class Join(Plan):
    """A join; CROSS is INNER on TRUE. ``mark`` is the boolean field of a MARK join:
    true if the condition is true for some right row, else NULL if it is NULL for some, else false.
    """

    kind: JoinKind
    left: Plan
    right: Plan
    condition: Expr
    mark: Field | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return self.left.fields
        if self.kind is JoinKind.MARK:
            assert self.mark is not None
            return (*self.left.fields, self.mark)
        return (*self.left.fields, *self.right.fields)


@dataclass(frozen=True, slots=True)
class Apply(Plan):
    """A dependent join (LATERAL, correlated subqueries): right is evaluated per left row."""

    kind: JoinKind
    left: Plan
    right: Plan
    condition: Expr
    mark: Field | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        return Join(self.kind, self.left, self.right, self.condition, self.mark).fields


@dataclass(frozen=True, slots=True)
class AggregateItem(Node):
    field: Field
    call: AggregateCall | Grouping


@dataclass(frozen=True, slots=True)
class Aggregate(Plan):
    """Groups by ``keys`` (assignments over the input); no keys and no sets = one group always.

    ``grouping_sets`` are index tuples into ``keys``; keys absent from a row's set are NULL.
    """

    input: Plan
    keys: tuple[Assignment, ...]
    items: tuple[AggregateItem, ...]
    grouping_sets: tuple[tuple[int, ...], ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*(k.field for k in self.keys), *(i.field for i in self.items))


@dataclass(frozen=True, slots=True)
class WindowItem(Node):
    field: Field
    call: WindowCall


@dataclass(frozen=True, slots=True)
class Window(Plan):
    input: Plan
    items: tuple[WindowItem, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, *(item.field for item in self.items))


@dataclass(frozen=True, slots=True)
class Sort(Plan):
    """Stable for equal keys (insertion order)."""

    input: Plan
    keys: tuple[SortKey, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Limit(Plan):
    """``limit`` and ``offset`` are bigint expressions without columns; NULL = none.
    ``with_ties``: also the rows equal to the last one by ``keys`` (of the Sort below).
    """

    input: Plan
    limit: Expr | None
    offset: Expr | None
    with_ties: bool = False

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Distinct(Plan):
    """Distinct rows by ``on`` (all fields when empty); the first row of each in input order."""

    input: Plan
    on: tuple[Expr, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


class SetKind(enum.Enum):
    UNION = "Union"
    INTERSECT = "Intersect"
    EXCEPT = "Except"


@dataclass(frozen=True, slots=True)
class SetOperation(Plan):
    """Columns correspond by position and have equal types (the binder casts); new field ids."""

    kind: SetKind
    is_all: bool
    left: Plan
    right: Plan
    columns: tuple[Field, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class Recursive(Plan):
    """WITH RECURSIVE: base, then step over the previous round (WorkTable of the same id)."""

    id: int
    base: Plan
    step: Plan
    is_all: bool
    columns: tuple[Field, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class WorkTable(Plan):
    id: int
    columns: tuple[Field, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class SharedDefinition(Node):
    """A plan computed once (a CTE used twice or MATERIALIZED, the outer domain)."""

    id: int
    plan: Plan
    name: str = ""


@dataclass(frozen=True, slots=True)
class With(Plan):
    """``input`` may hold SharedRefs to the definitions; a later one may refer to earlier ones."""

    definitions: tuple[SharedDefinition, ...]
    input: Plan

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class SharedRef(Plan):
    """The rows of a shared plan under new field ids, column by column."""

    id: int
    columns: tuple[Field, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class Insert(Plan):
    """Rows for all columns of the table in attnum order (defaults filled by the binder).

    ``columns`` are the target's fields in that order; RETURNING is a Project above, reading them.
    """

    table_oid: int
    input: Plan
    columns: tuple[Field, ...]
    checks: tuple[Expr, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class Delete(Plan):
    """Deletes the rows whose ctid the input yields in ``row_id``; yields the input's fields."""

    table_oid: int
    input: Plan
    row_id: Field

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Update(Plan):
    """Replaces the row of ``row_id`` by ``columns`` (all columns in attnum order)."""

    table_oid: int
    input: Plan
    row_id: Field
    columns: tuple[Field, ...]
    checks: tuple[Expr, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


def field_ids(plan: Plan) -> frozenset[int]:
    """The ids that a plan yields."""
    return frozenset(field.id for field in plan.fields)


def free_ids(plan: Node) -> frozenset[int]:
    """The ids that a plan (or an expression with subqueries) reads but does not produce itself."""
    if isinstance(plan, Expr):
        free = set(references(plan))
        for node in walk(plan, Expr):
            if isinstance(node, Subquery):
                inner = free_ids(node.plan)
                free |= inner
                if node.comparison is not None and isinstance(node.plan, Plan):
                    free -= field_ids(node.plan)
        return frozenset(free)
    assert isinstance(plan, Plan)
    free_plan: set[int] = set()
    bound: set[int] = set()
    for child in plan.inputs:
        free_plan |= free_ids(child)
        bound |= field_ids(child)
    if isinstance(plan, With):
        for definition in plan.definitions:
            bound |= field_ids(definition.plan)
    for expression in children(plan, Expr):
        free_plan |= free_ids(expression)
    if isinstance(plan, Scan):
        bound |= field_ids(plan)
    return frozenset(free_plan - bound)
