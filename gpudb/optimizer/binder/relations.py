"""Relations by name and their rows: scans, expanded views."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb.catalog import resolution
from gpudb.catalog.objects import (
    SCHEMA_INFORMATION_SCHEMA,
    SCHEMA_PG_CATALOG,
    SEQUENCE_COLUMNS,
    ColumnDef,
    Relation,
    RelationKind,
)
from gpudb.catalog.search_path import SearchPath
from gpudb.catalog.type_system import Context
from gpudb.expr import Cast
from gpudb.optimizer import logical, parser
from gpudb.optimizer.binder import coercion
from gpudb.optimizer.binder.scope import Scope
from gpudb.optimizer.binder.state import VIEW_DEPTH_MAX
from gpudb.optimizer.parser import position
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

PATH_OPTION = "search_path"
"""The option of a view that holds the OIDs of the schemas its names were looked up in."""
_NOT_ROWS = {
    RelationKind.INDEX: "indexes",
    RelationKind.COMPOSITE: "composite types",
}


def find(binder: Binder, node: exp.Expression) -> Relation:
    """The relation a Table node names. Raises UndefinedTable (42P01)."""
    name, schema, database = (
        node.args["this"],
        node.args.get("db"),
        node.args.get("catalog"),
    )
    at = position(node)
    found: Relation | None
    if schema is None:
        found = binder.snapshot.resolve_relation(name, binder.context.path)
    else:
        _check_database(binder, database, f"{database}.{schema}.{name}", at)
        found = binder.snapshot.relation(_schema_name(binder, schema), name)
    if found is None:
        shown = f"{schema}.{name}" if schema else name
        raise errors.UndefinedTable(f'relation "{shown}" does not exist', position=at)
    kinds = _NOT_ROWS.get(RelationKind(found.kind))
    if kinds is not None:
        raise errors.WrongObjectType(
            f'cannot open relation "{name}"',
            detail=f"This operation is not supported for {kinds}.",
            position=at,
        )
    return found


def _schema_name(binder: Binder, name: str) -> str:
    if name == "pg_temp" and binder.context.path.temporary:
        schema = binder.snapshot.schema_by_oid(binder.context.path.temporary)
        return name if schema is None else schema.name
    return name


def _check_database(binder: Binder, database: str | None, shown: str, at: int) -> None:
    if database is None:
        return
    current = binder.snapshot.database_by_oid(binder.snapshot.database)
    if current is not None and current.name != database:
        raise errors.FeatureNotSupported(
            f'cross-database references are not implemented: "{shown}"', position=at
        )


def rows(binder: Binder, relation: Relation, alias: str) -> tuple[logical.Plan, int]:
    """The plan that yields a relation's rows and the scan's key (0 for a view)."""
    note_read(binder, relation.oid)
    if relation.definition is not None and relation.kind == RelationKind.VIEW:
        return _view(binder, relation), 0
    if relation.kind == RelationKind.MATERIALIZED_VIEW and not relation.is_populated:
        raise errors.ObjectNotInPrerequisiteState(
            f'materialized view "{relation.name}" has not been populated',
            hint="Use the REFRESH MATERIALIZED VIEW command.",
        )
    return scan(binder, relation, alias)


def note_read(binder: Binder, oid: int) -> None:
    if binder.view_depth:
        binder.read_by_views.add((oid, binder.view_owner))
    else:
        binder.read.add(oid)


def scan(binder: Binder, relation: Relation, alias: str) -> tuple[logical.Plan, int]:
    """The scan of all live columns; rules drop those that nothing reads."""
    fields = tuple(
        binder.field(
            column.name, SqlType(column.type_oid, column.typmod), relation.oid, column.attnum
        )
        for column in _scanned(relation)
    )
    key = binder.new_id()
    binder.scan_keys[id(fields)] = (fields, key)
    return logical.Scan(relation.oid, relation.name, fields, alias=alias), key


def _scanned(relation: Relation) -> tuple[ColumnDef, ...]:
    is_sequence = relation.kind == RelationKind.SEQUENCE
    return SEQUENCE_COLUMNS if is_sequence else tuple(relation.live_columns())


def _view(binder: Binder, relation: Relation) -> logical.Plan:
    """The view's query under the view's columns."""
    from gpudb.optimizer.binder import queries

    assert relation.definition is not None
    if binder.view_depth >= VIEW_DEPTH_MAX:
        raise errors.StatementTooComplex("stack depth limit exceeded")
    tree = parser.parse_query(relation.definition)
    with _inside_view(binder, relation):
        try:
            plan = queries.bind(binder, Scope(), tree).plan
        except errors.SqlError as error:
            error.position = 0
            raise
    columns = relation.live_columns()
    if len(columns) != len(plan.fields):
        raise errors.InvalidTableDefinition(
            f'view "{relation.name}" has {len(columns)} columns but its query yields'
            f" {len(plan.fields)}"
        )
    assignments = []
    for column, field in zip(columns, plan.fields, strict=True):
        target = SqlType(column.type_oid, column.typmod)
        value = coercion.coerce(binder, field.ref, target.oid, Context.EXPLICIT)
        if value.type != target and isinstance(value, Cast):
            value = coercion.with_typmod(binder, value, target.typmod, is_explicit=True)
        new = binder.field(column.name, value.type, relation.oid, column.attnum)
        assignments.append(logical.Assignment(new, value))
    return logical.Project(plan, tuple(assignments))


def _view_path(relation: Relation, path: SearchPath) -> SearchPath:
    if relation.is_system:
        schemas = (SCHEMA_PG_CATALOG, SCHEMA_INFORMATION_SCHEMA)
        own = (relation.schema,) if relation.schema not in schemas else ()
        return SearchPath((*schemas, *own), schemas)
    stored = relation.option(PATH_OPTION)
    if stored is None:
        return path
    oids = tuple(int(text) for text in stored.split(",") if text)
    return SearchPath(oids, oids, temporary=path.temporary)


@contextmanager
def _inside_view(binder: Binder, relation: Relation) -> Iterator[None]:
    """Names as the view's maker saw them, privileges of its owner."""
    kept = (
        binder.context, binder.resolver, binder.types, binder.view_owner,
        binder.inlined_arguments,
    )  # fmt: skip
    path = _view_path(relation, binder.context.path)
    binder.context = replace(binder.context, path=path)
    binder.resolver = resolution.resolver(binder.snapshot, path)
    binder.types = binder.resolver.types
    binder.view_owner = relation.owner
    binder.inlined_arguments = []
    binder.view_depth += 1
    try:
        yield
    finally:
        (binder.context, binder.resolver, binder.types, binder.view_owner,
         binder.inlined_arguments) = kept  # fmt: skip
        binder.view_depth -= 1
