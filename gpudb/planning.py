"""From a parsed query to a physical plan: bind, optimize, cache.

A plan is kept under everything it depends on: the text, parameter types, the catalog's version
(definitions and statistics), the search path, the user and the planning settings. Data changes
only make its estimates old.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpudb.catalog import privileges
from gpudb.catalog.catalog import CatalogSnapshot
from gpudb.catalog.objects import ColumnStatistics, ConstraintKind
from gpudb.catalog.statistics import from_segments
from gpudb.expr import Expr, Literal
from gpudb.optimizer import parser
from gpudb.optimizer.binder import bind_query
from gpudb.optimizer.binder.context import BindContext, BoundQuery
from gpudb.optimizer.optimizer import optimize
from gpudb.optimizer.physical import Physical
from gpudb.result import ResultField

if TYPE_CHECKING:
    from gpudb.database import Database
    from gpudb.optimizer.statements import nodes
    from gpudb.session import Session

PLANS_MAX = 512
PLANNERS_MAX = 2
"""Statements that are planned at the same time: planning holds the interpreter lock."""
PLANNING_SETTINGS = ("gpudb.optimizer",)


@dataclass(frozen=True, slots=True)
class Planned:
    """A statement ready to run. ``result_fields`` None when it returns no rows."""

    physical: Physical
    bound: BoundQuery
    result_fields: tuple[ResultField, ...] | None

    @property
    def parameter_oids(self) -> tuple[int, ...]:
        return self.bound.parameter_types


@dataclass(frozen=True, slots=True)
class Analysed:
    """What Describe tells: parameter types and result fields (None: no rows)."""

    parameter_oids: tuple[int, ...]
    result_fields: tuple[ResultField, ...] | None


def result_fields(bound: BoundQuery) -> tuple[ResultField, ...] | None:
    """The fields that the client sees."""
    if bound.kind in ("select", "values", "table") or bound.has_returning:
        return bound.fields
    return None


class CatalogStatistics:
    """The optimizer's view of one snapshot's tables (optimizer.statistics.StatisticsSource)."""

    def __init__(self, snapshot: CatalogSnapshot) -> None:
        self._snapshot = snapshot

    def rows(self, table_oid: int) -> float | None:
        relation = self._snapshot.relation_by_oid(table_oid)
        if relation is None or relation.is_system:
            return None
        return float(self._snapshot.data(table_oid).rows())

    def column(self, table_oid: int, attnum: int) -> ColumnStatistics | None:
        """What ANALYZE found; without it the bounds of the segments."""
        analyzed = self._snapshot.statistics(table_oid)
        found = None if analyzed is None else analyzed.column(attnum)
        if found is not None:
            return found
        data = self._snapshot.data(table_oid)
        if not data.segments:
            return None
        return from_segments(table_oid, data, (attnum,)).column(attnum)

    def unique_keys(self, table_oid: int) -> tuple[tuple[int, ...], ...]:
        kinds = (ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE)
        return tuple(
            c.columns for c in self._snapshot.constraints(table_oid)
            if c.kind in kinds and not c.is_deferrable
        )

    def is_not_null(self, table_oid: int, attnum: int) -> bool:
        relation = self._snapshot.relation_by_oid(table_oid)
        column = None if relation is None else relation.column_by_attnum(attnum)
        return column is not None and column.not_null

    def is_system(self, table_oid: int) -> bool:
        relation = self._snapshot.relation_by_oid(table_oid)
        return relation is not None and (relation.is_system or relation.kind == "S")

    def table_name(self, table_oid: int) -> str:
        relation = self._snapshot.relation_by_oid(table_oid)
        return "" if relation is None else relation.name


class Planner:
    """Plans statements for all sessions of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._plans: OrderedDict[tuple[Any, ...], Planned] = OrderedDict()
        self._lock = threading.Lock()
        self._turns = threading.Semaphore(PLANNERS_MAX)

    def plan(
        self, session: Session, query: nodes.QueryStatement, parameter_oids: tuple[int, ...]
    ) -> Planned:
        """The plan of a query under the session's settings; checks privileges (42501)."""
        snapshot = session.catalog
        key = self._key(session, query, parameter_oids)
        with self._lock:
            found = self._plans.get(key)
            if found is not None:
                self._plans.move_to_end(key)
        if found is None:
            with self._turns:
                found = self._make(session, query, parameter_oids)
            with self._lock:
                self._plans[key] = found
                while len(self._plans) > PLANS_MAX:
                    self._plans.popitem(last=False)
        self._check_privileges(session, snapshot, found.bound)
        return found

    def bind(
        self, session: Session, query: nodes.QueryStatement, parameter_oids: tuple[int, ...]
    ) -> BoundQuery:
        """Analyse a query without planning it."""
        tree = parser.parse_query(query.query)
        return bind_query(tree, session.catalog, self.context(session, parameter_oids))

    def context(self, session: Session, parameter_oids: tuple[int, ...] = ()) -> BindContext:
        return BindContext(
            path=session.path(),
            user=session.user,
            parameter_types=parameter_oids,
            type_context=session.type_context(),
            file_schema=self._database.file_schema(session),
        )

    def _make(
        self, session: Session, query: nodes.QueryStatement, parameter_oids: tuple[int, ...]
    ) -> Planned:
        bound = self.bind(session, query, parameter_oids)
        physical = self.optimize(session, bound)
        return Planned(physical, bound, result_fields(bound))

    def optimize(self, session: Session, bound: BoundQuery) -> Physical:
        """The physical plan of a bound query."""
        statistics = CatalogStatistics(session.catalog)

        def fold(expression: Expr) -> Literal | None:
            return self._database.fold(session, expression)

        return optimize(bound.plan, statistics, session.settings, fold=fold)

    def _key(
        self, session: Session, query: nodes.QueryStatement, parameter_oids: tuple[int, ...]
    ) -> tuple[Any, ...]:
        settings = session.settings
        return (
            query.query.text, query.query.offset, parameter_oids, session.catalog.version,
            session.path(), session.user, session.database_oid,
            settings.text("TimeZone"), settings.text("DateStyle"), settings.text("IntervalStyle"),
            *(settings.text(name) for name in PLANNING_SETTINGS),
        )

    def _check_privileges(self, session: Session, snapshot: Any, bound: BoundQuery) -> None:
        role = snapshot.role(session.user).oid
        letter = {"insert": "a", "update": "w", "delete": "d"}.get(bound.kind, "w")
        wanted = [(oid, role, "r") for oid in bound.read]
        wanted += [(oid, role, letter) for oid in bound.written]
        wanted += [(oid, owner, "r") for oid, owner in bound.read_by_views]
        for oid, holder, privilege in wanted:
            relation = snapshot.relation_by_oid(oid)
            if relation is not None:
                privileges.check_relation(snapshot, holder, relation, privilege)
