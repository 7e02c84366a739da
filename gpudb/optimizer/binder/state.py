"""The state of binding one statement: ids, parameters, positions, what was read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gpudb import errors
from gpudb.catalog import functions, resolution
from gpudb.catalog.signatures import Signature
from gpudb.expr import (
    ColumnRef,
    Expr,
    Function,
    Literal,
    Parameter,
    Subquery,
    Volatility,
)
from gpudb.optimizer import logical
from gpudb.optimizer.binder.scope import Clause, Scope
from gpudb.sqltype import UNKNOWN, SqlType
from gpudb.tree import children

if TYPE_CHECKING:
    from gpudb.catalog.catalog import CatalogSnapshot
    from gpudb.optimizer.binder.context import BindContext

VIEW_DEPTH_MAX = 64
"""Views within views that are expanded; deeper ones fail with 54001."""
QUERY_DEPTH_MAX = 200
"""Query levels within each other."""
COLUMNS_MAX = 1664
"""Columns of a result (PostgreSQL's MaxTupleAttributeNumber)."""


class Binder:
    """What all binding functions of one statement share."""

    def __init__(self, snapshot: CatalogSnapshot, context: BindContext) -> None:
        self.snapshot = snapshot
        self.context = context
        self.resolver = resolution.resolver(snapshot, context.path)
        self.types = self.resolver.types
        self.parameter_types: list[int] = [
            oid or UNKNOWN for oid in context.parameter_types
        ]
        self.declared_parameters = tuple(bool(oid) for oid in context.parameter_types)
        self.read: set[int] = set()
        self.written: set[int] = set()
        self.read_by_views: set[tuple[int, int]] = set()
        self.view_owner = 0
        self.view_depth = 0
        self.query_depth = 0
        self.volatile_count = 0
        self.uses_session_values = False
        self.system_columns: dict[int, list[logical.Field]] = {}
        self.definitions: list[logical.SharedDefinition] = []
        self.inlined_arguments: list[tuple[tuple[Expr, ...], tuple[str, ...]]] = []
        self._next_id = 1
        self._owners: dict[int, Scope] = {}
        self._positions: dict[int, tuple[Expr, int]] = {}
        self._labels: dict[int, str] = {}
        self._captured: dict[int, tuple[logical.Plan, frozenset[int]]] = {}
        self.origins: dict[int, tuple[int, int]] = {}
        self.scan_keys: dict[int, tuple[tuple[logical.Field, ...], int]] = {}
        self.set_fields: dict[int, tuple[tuple[str, SqlType], ...]] = {}
        self.single_outputs: dict[int, str] = {}
        self.record_fields: dict[int, tuple[tuple[str, SqlType], ...]] = {}

    # Columns

    def new_id(self) -> int:
        found = self._next_id
        self._next_id = found + 1
        return found

    def field(
        self, name: str, type_: SqlType, table_oid: int = 0, attnum: int = 0
    ) -> logical.Field:
        """A new output column."""
        if table_oid:
            self.origins[self._next_id] = (table_oid, attnum)
        return logical.Field(self.new_id(), name, type_, table_oid, attnum)

    def field_like(self, name: str, expression: Expr) -> logical.Field:
        """A new output column for a value; it keeps the origin of a plain column."""
        if isinstance(expression, ColumnRef):
            return self.field(
                name, expression.type, *self.origins.get(expression.id, (0, 0))
            )
        return self.field(name, expression.type)

    def own(self, scope: Scope, id_: int, label: str = "") -> None:
        """Note which scope's FROM (or aggregation) yields a column, and its shown name."""
        self._owners[id_] = scope
        if label:
            self._labels[id_] = label

    def owner(self, id_: int) -> Scope | None:
        return self._owners.get(id_)

    def label(self, id_: int) -> str:
        return self._labels.get(id_, "?")

    # Positions of expressions: kept beside them, since an expression does not know its place

    def at(self, expression: Expr, position: int) -> Expr:
        """Note where an expression stands; answers it."""
        self._positions[id(expression)] = (expression, position)
        return expression

    def position(self, expression: Expr) -> int:
        found = self._positions.get(id(expression))
        if found is not None:
            return found[1]
        own: int = getattr(expression, "position", 0)
        return own

    # Parameters

    def parameter(self, index: int, position: int) -> Parameter:
        """$index with the type known so far (UNKNOWN before it is inferred)."""
        if index < 1 or index > 65535:
            raise errors.UndefinedParameter(
                f"there is no parameter ${index}", position=position
            )
        while len(self.parameter_types) < index:
            self.parameter_types.append(0)
        oid = self.parameter_types[index - 1] or UNKNOWN
        self.parameter_types[index - 1] = oid
        return Parameter(index, SqlType(oid))

    def infer_parameter(
        self, parameter: Parameter, oid: int, position: int
    ) -> Parameter:
        """The parameter with the type its place gives it; 42P08 when places disagree."""
        known = self.parameter_types[parameter.index - 1]
        if known == UNKNOWN:
            self.parameter_types[parameter.index - 1] = oid
        elif known != oid:
            raise errors.AmbiguousParameter(
                f"inconsistent types deduced for parameter ${parameter.index}",
                detail=f"{self.types.name(known)} versus {self.types.name(oid)}",
                position=position,
            )
        return Parameter(parameter.index, SqlType(oid))

    # Functions

    def function(
        self,
        signature: Signature,
        argument_oids: tuple[int, ...],
        result_oid: int,
        *,
        operator: str = "",
        is_variadic: bool = False,
    ) -> Function:
        """The record of a resolved function."""
        if signature.volatility == "v":
            self.volatile_count += 1
        return Function(
            signature.oid,
            signature.name,
            signature.key,
            argument_oids,
            result_oid,
            signature.is_strict,
            Volatility(signature.volatility),
            functions.is_fallible(signature.key),
            operator,
            signature.returns_set,
            is_variadic,
        )

    # Correlation

    def note_captured(self, plan: logical.Plan, ids: frozenset[int]) -> None:
        """Keep which outer columns the plan of a subquery reads."""
        self._captured[id(plan)] = (plan, ids)

    def captured(self, plan: object) -> frozenset[int]:
        found = self._captured.get(id(plan))
        if found is not None:
            return found[1]
        assert isinstance(plan, logical.Plan)
        ids = logical.free_ids(plan)
        self.note_captured(plan, ids)
        return ids

    def references(self, expression: Expr) -> set[int]:
        """The column ids an expression reads, through its subqueries too."""
        found: set[int] = set()
        stack: list[Expr] = [expression]
        while stack:
            node = stack.pop()
            if isinstance(node, ColumnRef):
                found.add(node.id)
            elif not isinstance(node, Literal):
                if isinstance(node, Subquery):
                    inner = self.captured(node.plan)
                    found |= inner
                    if node.comparison is not None:
                        assert isinstance(node.plan, logical.Plan)
                        outer = self.references(node.comparison)
                        found |= outer - logical.field_ids(node.plan)
                    continue
                stack.extend(children(node, Expr))
        return found

    # Errors and limits

    @contextmanager
    def clause(self, scope: Scope, clause: Clause) -> Iterator[None]:
        """Bind expressions of one clause of the scope."""
        before, scope.clause = scope.clause, clause
        try:
            yield
        finally:
            scope.clause = before

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """One query level more; 54001 beyond the bound."""
        self.query_depth += 1
        if self.query_depth > QUERY_DEPTH_MAX:
            raise errors.StatementTooComplex("stack depth limit exceeded")
        try:
            yield
        finally:
            self.query_depth -= 1


def positioned(error: errors.SqlError, position: int) -> errors.SqlError:
    """The error with a position where it has none yet."""
    if not error.position:
        error.position = position
    return error
