"""The doors of the binder: statements, single expressions, type names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog.objects import ColumnDef, Relation
from gpudb.catalog.type_system import Context
from gpudb.expr import ColumnRef, Expr, Subquery
from gpudb.optimizer import logical, parser
from gpudb.optimizer.binder import coercion, expressions, queries, typenames
from gpudb.optimizer.binder.context import BindContext, BoundQuery
from gpudb.optimizer.binder.scope import Clause, Item, NamedColumn, Scope
from gpudb.optimizer.binder.state import Binder
from gpudb.optimizer.statements.nodes.base import Slice, TypeName
from gpudb.result import ResultField
from gpudb.sqltype import SqlType
from gpudb.tree import Node, children, map_children

if TYPE_CHECKING:
    from gpudb.catalog.catalog import CatalogSnapshot

_KINDS = {
    exp.Insert: "insert",
    exp.Update: "update",
    exp.Delete: "delete",
    exp.Merge: "merge",
}


def bind_query(
    tree: exp.Expression, snapshot: CatalogSnapshot, context: BindContext
) -> BoundQuery:
    """The logical plan of a query or DML statement and what a client is told of it.

    Raises PostgreSQL's analysis errors, and FeatureNotSupported (0A000) for what gpudb lacks.
    """
    binder = Binder(snapshot, context)
    try:
        plan = queries.bind(binder, Scope(), tree, is_top=True).plan
    except RecursionError:
        raise errors.StatementTooComplex("stack depth limit exceeded") from None
    kind = _KINDS.get(type(tree), "select")
    has_returning = bool(tree.args.get("returning"))
    plan = finished(binder, plan)
    fields: tuple[ResultField, ...] = ()
    if kind == "select" or has_returning:
        fields = tuple(_result_field(binder, field) for field in plan.fields)
    return BoundQuery(
        plan,
        fields,
        _parameters(binder),
        kind,
        has_returning,
        binder.volatile_count > 0,
        frozenset(binder.read),
        frozenset(binder.written),
        frozenset(binder.read_by_views),
        binder.uses_session_values,
    )


def _result_field(binder: Binder, field: logical.Field) -> ResultField:
    """Domains are told as their base types, as PostgreSQL does."""
    oid, typmod = binder.types.base_and_typmod(field.type.oid, field.type.typmod)
    return ResultField(field.name, oid, typmod, field.table_oid, field.attnum)


def _parameters(binder: Binder) -> tuple[int, ...]:
    for number, oid in enumerate(binder.parameter_types, 1):
        if oid in (0, t.UNKNOWN):
            raise errors.IndeterminateDatatype(
                f"could not determine data type of parameter ${number}"
            )
    return tuple(binder.parameter_types)


def finished(binder: Binder, plan: logical.Plan) -> logical.Plan:
    """The plan with the system columns that were asked for in its scans."""
    if not binder.system_columns:
        return plan
    extra: dict[int, tuple[logical.Field, ...]] = {}
    for fields, key in binder.scan_keys.values():
        wanted = binder.system_columns.get(key)
        if wanted:
            extra[id(fields)] = tuple(wanted)

    def widen(node: Node) -> Node:
        if isinstance(node, logical.Scan):
            wanted = extra.get(id(node.columns))
            if wanted:
                return replace(node, columns=(*node.columns, *wanted))
            return node
        if isinstance(node, Subquery):
            widened: Node = map_children(replace(node, plan=widen(node.plan)), Expr, widen)
            return widened
        rebuilt: Node = map_children(node, logical.Plan, widen)
        if any(True for _ in children(rebuilt, Expr)):
            rebuilt = map_children(rebuilt, Expr, widen)
        return rebuilt

    found = widen(plan)
    assert isinstance(found, logical.Plan)
    return found


# Single expressions


def bind_scalar(
    source: Slice | str,
    snapshot: CatalogSnapshot,
    context: BindContext,
    target: SqlType | None = None,
    *,
    table: Relation | None = None,
    columns: Sequence[ColumnDef] = (),
) -> Expr:
    """The bound expression of a text: DEFAULT, generated column, EXECUTE argument.

    With ``table`` its columns may be named (ids are their attnums); otherwise names of
    ``columns`` are refused as PostgreSQL refuses them in DEFAULT. ``target`` is the type it is
    assigned to. Raises DatatypeMismatch (42804) when it cannot be assigned.
    """
    binder = Binder(snapshot, context)
    node = parser.parse_expression(source)
    scope = Scope()
    if table is not None:
        table_scope(binder, scope, table)
        scope.clause = Clause.GENERATED
    else:
        scope.clause = Clause.DEFAULT
    value = _bound(binder, scope, node, refused=table is None)
    del columns
    return assigned(binder, value, target, node)


def assigned(
    binder: Binder, value: Expr, target: SqlType | None, node: exp.Expression
) -> Expr:
    if target is None:
        return coercion.settled(binder, value)
    found = coercion.to_type(
        binder, value, target, Context.ASSIGNMENT, parser.start_position(node)
    )
    if found is None:
        raise errors.DatatypeMismatch(
            f"expression is of type {binder.types.name(value.type.oid)} but"
            f" {binder.types.name(target.oid)} is required",
            hint="You will need to rewrite or cast the expression.",
            position=parser.start_position(node),
        )
    return found


def _bound(binder: Binder, scope: Scope, node: exp.Expression, *, refused: bool) -> Expr:
    for found in node.find_all(exp.Subquery, exp.Exists):
        what = scope.clause.value
        raise errors.FeatureNotSupported(
            f"cannot use subquery in {_singular(what)}", position=parser.position(found)
        )
    if refused:
        for column in node.find_all(exp.Column):
            what = _singular(scope.clause.value)
            raise errors.FeatureNotSupported(
                f"cannot use column reference in {what}", position=parser.position(column)
            )
    return expressions.bind(binder, scope, node)


def _singular(what: str) -> str:
    return what.removesuffix("s") if what.islower() or what.startswith("DEFAULT") else what


def table_scope(binder: Binder, scope: Scope, table: Relation) -> None:
    """Make a table's columns visible under ids that are their attnums."""
    columns = []
    for column in table.live_columns():
        binder.own(scope, column.attnum, f"{table.name}.{column.name}")
        ref = ColumnRef(column.attnum, SqlType(column.type_oid, column.typmod), column.name)
        columns.append(NamedColumn(column.name, ref))
    scope.items = [
        Item(table.name, tuple(columns), table.schema, table, table.row_type or t.RECORD)
    ]


def bound_columns(
    source: Slice | str, snapshot: CatalogSnapshot, context: BindContext, table: Relation
) -> tuple[int, ...]:
    """The attnums that a CHECK expression over a table reads; raises what binding it raises."""
    binder = Binder(snapshot, context)
    node = parser.parse_expression(source)
    scope = Scope(clause=Clause.CHECK)
    table_scope(binder, scope, table)
    value = _bound(binder, scope, node, refused=False)
    value = coercion.boolean(binder, value, "CHECK", parser.start_position(node))
    return tuple(sorted(binder.references(value)))


def resolve_type_name(
    name: TypeName, snapshot: CatalogSnapshot, context: BindContext
) -> SqlType:
    """The type that a type name means. Raises UndefinedObject (42704)."""
    return typenames.resolve(Binder(snapshot, context), name)
