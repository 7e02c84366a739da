"""Scopes: what names mean at one query level.

A scope holds the items of FROM as names see them. Joins hide the columns of their sides behind
their own (merged) columns, as in PostgreSQL: a side stays visible by its name only.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gpudb.expr import Expr
from gpudb.sqltype import RECORD

if TYPE_CHECKING:
    from sqlglot import exp

    from gpudb.catalog.objects import Relation
    from gpudb.optimizer import logical
    from gpudb.optimizer.binder.cte import CommonTable
    from gpudb.optimizer.binder.windows import Definition


class Clause(enum.Enum):
    """The clause an expression stands in; the value completes "... not allowed in"."""

    OTHER = ""
    TARGET = "SELECT"
    WHERE = "WHERE"
    HAVING = "HAVING"
    GROUP_BY = "GROUP BY"
    ORDER_BY = "ORDER BY"
    DISTINCT_ON = "DISTINCT ON"
    LIMIT = "LIMIT"
    OFFSET = "OFFSET"
    JOIN_ON = "JOIN conditions"
    JOIN_USING = "JOIN/USING"
    FROM_SUBQUERY = "FROM clause of their own query level"
    FROM_FUNCTION = "functions in FROM"
    FILTER = "FILTER"
    PARTITION_BY = "window PARTITION BY"
    WINDOW_ORDER = "window ORDER BY"
    FRAME_RANGE = "window RANGE"
    FRAME_ROWS = "window ROWS"
    FRAME_GROUPS = "window GROUPS"
    VALUES = "VALUES"
    UPDATE = "UPDATE"
    RETURNING = "RETURNING"
    MERGE_WHEN = "MERGE WHEN conditions"
    DEFAULT = "DEFAULT expressions"
    GENERATED = "column generation expressions"
    CHECK = "check constraints"
    INDEX = "index expressions"
    EXECUTE = "EXECUTE parameters"


class NamedColumn(NamedTuple):
    """A column as names see it; usually a ColumnRef, COALESCE for a merged column of FULL JOIN."""

    name: str
    expression: Expr


@dataclass(slots=True)
class Item:
    """An item of FROM (PostgreSQL's nsitem).

    ``name`` "" is an unnamed join. ``is_scalar``: a function that yields one plain column, so
    that its name stands for the value. ``system`` makes a system column's reference.
    """

    name: str
    columns: tuple[NamedColumn, ...]
    schema: int = 0
    relation: Relation | None = None
    row_type: int = RECORD
    is_scalar: bool = False
    has_visible_name: bool = True
    has_visible_columns: bool = True
    is_lateral_only: bool = False
    is_lateral_ok: bool = True
    scan_key: int = 0
    _index: dict[str, int] | None = None

    def find(self, name: str) -> int:
        """The number of the column, -1 for none, -2 when several have the name."""
        index = self._index
        if index is None:
            index = self._index = {}
            for number, column in enumerate(self.columns):
                index[column.name] = -2 if column.name in index else number
        return index.get(name, -1)


@dataclass(slots=True)
class Scope:
    """One query level.

    ``hidden`` are items of FROM that cannot be seen now, for hints. ``aggregate_ids`` and
    ``window_ids`` are the fields that stand for its aggregates and window calls in its
    expressions (with their positions); ``captured`` the ids of outer columns that it
    and its subqueries read.
    """

    parent: Scope | None = None
    items: list[Item] = field(default_factory=list)
    hidden: list[Item] = field(default_factory=list)
    clause: Clause = Clause.OTHER
    tables: dict[str, CommonTable] = field(default_factory=dict)
    windows: dict[str, exp.Expression | Definition] = field(default_factory=dict)
    aggregates: dict[Expr, logical.AggregateItem] = field(default_factory=dict)
    aggregate_ids: dict[int, int] = field(default_factory=dict)
    window_items: list[logical.WindowItem] = field(default_factory=list)
    window_ids: dict[int, int] = field(default_factory=dict)
    set_calls: dict[Expr, logical.Assignment] = field(default_factory=dict)
    set_ids: dict[int, int] = field(default_factory=dict)
    allows_sets: bool = False
    no_sets_in: str = ""
    has_group: bool = False
    is_lateral_active: bool = False
    reads_work_table: bool = False
    captured: set[int] = field(default_factory=set)

    def column_named(self, name: str) -> list[tuple[Item, int]]:
        """The visible columns of that name; a column number of -2 is ambiguous in itself."""
        found = []
        for item in self.items:
            if not item.has_visible_columns:
                continue
            if item.is_lateral_only and not self.is_lateral_active:
                continue
            number = item.find(name)
            if number != -1:
                found.append((item, number))
        return found
