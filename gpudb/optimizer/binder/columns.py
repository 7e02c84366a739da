"""Names to columns: qualified and bare references, whole rows, stars, system columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog.objects import RelationKind
from gpudb.expr import ColumnRef, Expr, Literal, RowConstruct
from gpudb.optimizer.binder import name_hints
from gpudb.optimizer.binder.scope import Item, Scope
from gpudb.optimizer.parser import position
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

SYSTEM_COLUMNS = {
    "ctid": (-1, t.TID),
    "xmin": (-2, t.XID),
    "cmin": (-3, t.CID),
    "xmax": (-4, t.XID),
    "cmax": (-5, t.CID),
    "tableoid": (-6, t.OID),
}
_LATERAL_DETAIL = "The combining JOIN type must be INNER or LEFT for a LATERAL reference."


def bind_column(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    """The value of a (qualified) name.

    Raises UndefinedColumn (42703), UndefinedTable (42P01), AmbiguousColumn (42702).
    """
    name = node.args["this"]
    table = node.args.get("table")
    if table is None:
        return _bare(binder, scope, name, node)
    if isinstance(name, exp.Star):
        item, level = named_item(binder, scope, node, table)
        return whole_row(binder, scope, item, level, position(node))
    return _qualified(binder, scope, node, table, name)


def _bare(binder: Binder, scope: Scope, name: str, node: exp.Expression) -> Expr:
    at = position(node)
    found = find_bare(binder, scope, name, at)
    if found is not None:
        return found
    whole = find_item(scope, name, 0)
    if whole is not None:
        return whole_row(binder, scope, *whole, at)
    if binder.inlined_arguments:
        from gpudb.optimizer.binder import sql_functions

        argument = sql_functions.named_argument(binder, scope, name)
        if argument is not None:
            return argument
    raise name_hints.undefined_column(scope, "", name, at)


def find_bare(binder: Binder, scope: Scope, name: str, at: int) -> Expr | None:
    """The column of that name at the nearest level that has one."""
    level: Scope | None = scope
    while level is not None:
        found = level.column_named(name)
        if len(found) > 1 or (found and found[0][1] == -2):
            raise errors.AmbiguousColumn(
                f'column reference "{name}" is ambiguous', position=at
            )
        if found:
            item, number = found[0]
            _check_lateral(item, at)
            return reference(binder, scope, level, item, number, at)
        if name in SYSTEM_COLUMNS:
            system = _bare_system(binder, scope, level, name, at)
            if system is not None:
                return system
        level = level.parent
    return None


def _bare_system(
    binder: Binder, scope: Scope, level: Scope, name: str, at: int
) -> Expr | None:
    for item in level.items:
        written = _written_tableoid(item, name)
        if written is not None:
            return written
    having = [
        item for item in level.items if item.has_visible_columns and _has_system_columns(item)
    ]
    if len(having) > 1:
        raise errors.AmbiguousColumn(f'column reference "{name}" is ambiguous', position=at)
    return system_column(binder, scope, level, having[0], name, at) if having else None


def _written_tableoid(item: Item, name: str) -> Expr | None:
    """tableoid of a row that INSERT wrote: there is no scan to take it from."""
    relation = item.relation
    if name != "tableoid" or relation is None or relation.kind != RelationKind.TABLE:
        return None
    return None if item.scan_key else Literal(relation.oid, SqlType(t.OID))


def _check_lateral(item: Item, at: int) -> None:
    if item.is_lateral_only and not item.is_lateral_ok:
        raise errors.InvalidColumnReference(
            f'invalid reference to FROM-clause entry for table "{item.name}"',
            detail=_LATERAL_DETAIL,
            position=at,
        )


def _qualified(
    binder: Binder, scope: Scope, node: exp.Expression, table: str, name: str
) -> Expr:
    at = position(node)
    item, level = named_item(binder, scope, node, table)
    number = item.find(name)
    if number == -2:
        raise errors.AmbiguousColumn(f'column reference "{name}" is ambiguous', position=at)
    if number >= 0:
        return reference(binder, scope, level, item, number, at)
    if name in SYSTEM_COLUMNS and _has_system_columns(item):
        return system_column(binder, scope, level, item, name, at)
    written = _written_tableoid(item, name)
    if written is not None:
        return written
    from gpudb.optimizer.binder import calls

    called = calls.attribute_call(binder, scope, name, whole_row(binder, scope, item, level, at))
    if called is not None:
        return called
    raise name_hints.undefined_column(scope, table, name, at)


def named_item(
    binder: Binder, scope: Scope, node: exp.Expression, table: str
) -> tuple[Item, Scope]:
    """The FROM item that a qualifier names. Raises UndefinedTable (42P01)."""
    schema_oid = 0
    schema_name = node.args.get("db")
    catalog = node.args.get("catalog")
    at = position(node)
    if catalog is not None:
        database = binder.snapshot.database_by_oid(binder.snapshot.database)
        if database is not None and database.name != catalog:
            shown = f"{catalog}.{schema_name}.{table}"
            raise errors.FeatureNotSupported(
                f"cross-database references are not implemented: {shown}", position=at
            )
    if schema_name is not None:
        schema = binder.snapshot.schema(schema_name)
        schema_oid = -1 if schema is None else schema.oid
    found = find_item(scope, table, schema_oid, at=at)
    if found is None:
        raise name_hints.missing_from_entry(scope, table, at)
    return found


def find_item(
    scope: Scope, name: str, schema: int, *, at: int = 0
) -> tuple[Item, Scope] | None:
    """The item of that name at the nearest level; ``schema`` -1 matches nothing."""
    level: Scope | None = scope
    while level is not None:
        found = [
            item
            for item in level.items
            if item.name == name
            and item.has_visible_name
            and (not schema or item.schema == schema)
            and (not item.is_lateral_only or level.is_lateral_active)
        ]
        if len(found) > 1:
            raise errors.AmbiguousAlias(
                f'table reference "{name}" is ambiguous', position=at
            )
        if found:
            _check_lateral(found[0], at)
            return found[0], level
        level = level.parent
    return None


def reference(
    binder: Binder, scope: Scope, level: Scope, item: Item, number: int, at: int
) -> Expr:
    """A column of an item, noted as outer in the scopes between."""
    expression = item.columns[number].expression
    if type(expression) is ColumnRef:
        fresh: Expr = ColumnRef(expression.id, expression.type, expression.name)
    else:
        fresh = expression
    if scope is not level:
        note_outer(binder, scope, level, fresh)
    return binder.at(fresh, at)


def note_outer(binder: Binder, scope: Scope, level: Scope, expression: Expr) -> None:
    """Note in the scopes below ``level`` that they read its columns."""
    ids = (
        {expression.id}
        if isinstance(expression, ColumnRef)
        else binder.references(expression)
    )
    inner: Scope | None = scope
    while inner is not None and inner is not level:
        inner.captured |= ids
        inner = inner.parent


def _has_system_columns(item: Item) -> bool:
    relation = item.relation
    return (
        relation is not None
        and bool(item.scan_key)
        and relation.kind in (RelationKind.TABLE, RelationKind.MATERIALIZED_VIEW)
    )


def system_column(
    binder: Binder, scope: Scope, level: Scope, item: Item, name: str, at: int
) -> Expr:
    """ctid, tableoid and their like; the scan is widened when binding ends."""
    attnum, oid = SYSTEM_COLUMNS[name]
    assert item.relation is not None
    wanted = binder.system_columns.setdefault(item.scan_key, [])
    field = next((f for f in wanted if f.attnum == attnum), None)
    if field is None:
        field = binder.field(name, SqlType(oid), item.relation.oid, attnum)
        binder.own(level, field.id, f"{item.name}.{name}")
        wanted.append(field)
    fresh = field.ref
    if scope is not level:
        note_outer(binder, scope, level, fresh)
    return binder.at(fresh, at)


def whole_row(binder: Binder, scope: Scope, item: Item, level: Scope, at: int) -> Expr:
    """The row of an item as one value; the value itself for a function that yields a scalar."""
    if item.is_scalar:
        return reference(binder, scope, level, item, 0, at)
    parts = tuple(
        reference(binder, scope, level, item, number, at)
        for number in range(len(item.columns))
    )
    names = tuple(column.name for column in item.columns)
    return binder.at(RowConstruct(parts, SqlType(item.row_type), names), at)


def expand_star(binder: Binder, scope: Scope, node: exp.Expression) -> list[tuple[str, Expr]]:
    """The named columns of ``*`` (of this level) or ``table.*``."""
    at = position(node)
    if isinstance(node, exp.Star):
        if not scope.items:
            raise errors.SyntaxError(
                "SELECT * with no tables specified is not valid", position=at
            )
        pairs = [(item, scope) for item in scope.items if item.has_visible_columns]
    else:
        pairs = [named_item(binder, scope, node, node.args["table"])]
    return [
        (column.name, reference(binder, scope, level, item, number, at))
        for item, level in pairs
        for number, column in enumerate(item.columns)
    ]
