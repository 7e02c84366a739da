"""CREATE TABLE, CREATE TABLE AS, views, DROP of relations, TRUNCATE."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpudb import errors, sqltype
from gpudb.catalog.changes import Change, Create, Drop, Replace, Truncate, class_of
from gpudb.catalog.objects import (
    ColumnDef,
    ObjectClass,
    Reference,
    Relation,
    RelationKind,
)
from gpudb.commands import Done, Result, handles, naming
from gpudb.commands.table_builder import TableBuilder
from gpudb.optimizer.statements import nodes
from gpudb.result import ResultField

if TYPE_CHECKING:
    from gpudb.session import Session

SEGMENT_OPTIONS = frozenset({"segment_rows", "sort", "distribution"})
_IGNORED_OPTIONS = frozenset({"fillfactor", "parallel_workers", "oids", "user_catalog_table"})


def _skip_existing(session: Session, schema: int, name: str, *, if_not_exists: bool) -> bool:
    """True (with PostgreSQL's notice) when the relation exists and that is fine; 42P07."""
    if session.catalog.relation_in(schema, name) is None:
        return False
    if not if_not_exists:
        raise errors.DuplicateTable(f'relation "{name}" already exists')
    session.notice("NOTICE", "42P07", f'relation "{name}" already exists, skipping')
    return True


def _storage_options(options: tuple[nodes.Option, ...]) -> tuple[tuple[str, str], ...]:
    found = []
    for option in options:
        name = option.name.lower()
        value = "on" if option.value is None else str(option.value)
        if name not in SEGMENT_OPTIONS and name not in _IGNORED_OPTIONS and not name.startswith(
            ("autovacuum_", "toast", "log_autovacuum", "vacuum_")
        ):
            raise errors.InvalidParameterValue(f'unrecognized parameter "{option.name}"')
        if name == "segment_rows" and not (value.isdigit() and 1024 <= int(value) <= 1 << 22):
            raise errors.InvalidParameterValue(
                f'value {value} out of bounds for option "segment_rows"',
                detail='Valid values are between "1024" and "4194304".',
            )
        found.append((name, value))
    return tuple(found)


@handles(nodes.CreateTable)
def create_table(session: Session, statement: nodes.CreateTable) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)
    for what, given in (
        ("table inheritance", statement.inherits), ("partitioning", statement.partition_by),
        ("partitioning", statement.partition_of), ("typed tables", statement.of_type),
    ):
        if given:
            raise errors.FeatureNotSupported(f"{what} is not supported")
    schema = naming.creation_schema(session, statement.name, statement.persistence)
    name = statement.name.name
    if _skip_existing(session, schema, name, if_not_exists=statement.if_not_exists):
        return Done(statement.tag)
    is_temporary = schema == session.temporary_schema and schema != 0
    builder = TableBuilder(
        session, session.database.store.allocate_oid(), schema, name,
        "t" if is_temporary else naming.persistence_letter(statement.persistence),
        session.catalog.role(session.user).oid,
    )
    for element in statement.elements:
        match element:
            case nodes.ColumnDefinition():
                builder.add_column(element)
            case nodes.LikeClause():
                _copy_columns(session, builder, element)
            case nodes.Constraint():
                builder.constraints.append((element, ""))
    table = builder.relation(options=_storage_options(statement.options))
    session.transaction.change(*builder.changes(table))
    session.database.check_defaults(session, table)
    if statement.on_commit in ("drop", "delete rows"):
        session.on_commit_actions[table.oid] = statement.on_commit
    return Done(statement.tag)


def _copy_columns(session: Session, builder: TableBuilder, clause: nodes.LikeClause) -> None:
    source = naming.require_relation(session, clause.table)
    everything = "all" in clause.including
    for column in source.live_columns():
        keep_default = everything or "defaults" in clause.including
        if column.generated:
            keep_default = everything or "generated" in clause.including
        default = column.default if keep_default and not column.identity else None
        builder.columns.append(
            ColumnDef(
                len(builder.columns) + 1, column.name, column.type_oid, column.typmod,
                not_null=column.not_null, default=default,
                default_oid=builder.allocate() if default else 0,
                generated=column.generated if default else "", collation=column.collation,
                dimensions=column.dimensions,
            )
        )


# --- CREATE TABLE AS, materialized views ------------------------------------------------------


def result_columns(
    fields: tuple[ResultField, ...], names: tuple[str, ...], what: str
) -> tuple[ColumnDef, ...]:
    """Columns for the fields of a query; 42601 for too many names, 42701, 42P16."""
    if len(names) > len(fields):
        raise errors.SyntaxError(f"too many column names were specified for {what}")
    columns: list[ColumnDef] = []
    for index, item in enumerate(fields):
        name = names[index] if index < len(names) else item.name
        if any(c.name == name for c in columns):
            raise errors.DuplicateColumn(f'column "{name}" specified more than once')
        oid = sqltype.TEXT if item.type_oid == sqltype.UNKNOWN else item.type_oid
        if oid == sqltype.RECORD:
            raise errors.InvalidTableDefinition(f'column "{name}" has pseudo-type record')
        collation = 100 if oid in (sqltype.TEXT, sqltype.VARCHAR, sqltype.BPCHAR) else 0
        columns.append(ColumnDef(index + 1, name, oid, item.typmod, collation=collation))
    return tuple(columns)


@handles(nodes.CreateTableAs)
def create_table_as(session: Session, statement: nodes.CreateTableAs) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable("CREATE TABLE AS")
    schema = naming.creation_schema(session, statement.name, statement.persistence)
    name = statement.name.name
    if _skip_existing(session, schema, name, if_not_exists=statement.if_not_exists):
        return Done(statement.tag)
    database = session.database
    query, parameters, oids = database.query_of(session, statement.query)
    planned = database.planner.plan(session, query, oids)
    what = "CREATE MATERIALIZED VIEW" if statement.is_materialized_view else "CREATE TABLE AS"
    columns = result_columns(planned.bound.fields, statement.columns, what)
    is_temporary = schema == session.temporary_schema and schema != 0
    is_view = statement.is_materialized_view
    table = Relation(
        database.store.allocate_oid(), schema, name,
        RelationKind.MATERIALIZED_VIEW if is_view else RelationKind.TABLE, columns,
        session.catalog.role(session.user).oid,
        "t" if is_temporary else naming.persistence_letter(statement.persistence),
        definition=query.query.text.strip() if is_view else None,
        options=_storage_options(statement.options),
        row_type=database.store.allocate_oid(), array_type=database.store.allocate_oid(),
        rule_oid=database.store.allocate_oid() if is_view else 0,
        is_populated=statement.with_data,
        references=_references(planned.bound.read) if is_view else (),
    )
    session.transaction.change(Create(table))
    if not statement.with_data:
        return Done(what)
    count = database.fill(session, table, planned, parameters)
    return Done(f"SELECT {count}")


def _references(oids: frozenset[int]) -> tuple[Reference, ...]:
    user = sorted(oid for oid in oids if oid >= sqltype.FIRST_USER_OID)
    return tuple(Reference(ObjectClass.RELATION, oid) for oid in user)


@handles(nodes.RefreshMaterializedView)
def refresh(session: Session, statement: nodes.RefreshMaterializedView) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)
    view = naming.require_relation(session, statement.name)
    if view.kind != RelationKind.MATERIALIZED_VIEW:
        raise errors.WrongObjectType(f'"{view.name}" is not a materialized view')
    naming.require_owner(session, view)
    session.transaction.change(
        Truncate(view.oid), Replace(replace(view, is_populated=statement.with_data))
    )
    if statement.with_data:
        assert view.definition is not None
        query = nodes.QueryStatement(nodes.Slice(view.definition), "select")
        planned = session.database.planner.plan(session, query, ())
        session.database.fill(session, view, planned, ())
    return Done(statement.tag)


# --- views ------------------------------------------------------------------------------------


@handles(nodes.CreateView)
def create_view(session: Session, statement: nodes.CreateView) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)
    persistence = "temporary" if statement.is_temporary else "permanent"
    schema = naming.creation_schema(session, statement.name, persistence)
    name = statement.name.name
    old = session.catalog.relation_in(schema, name)
    if old is not None and not statement.or_replace:
        raise errors.DuplicateTable(f'relation "{name}" already exists')
    if old is not None and old.kind != RelationKind.VIEW:
        raise errors.WrongObjectType(f'"{name}" is not a view')
    if statement.check_option:
        raise errors.FeatureNotSupported("WITH CHECK OPTION is not supported")
    query = statement.query
    if statement.is_recursive:
        names = ", ".join(_quote(c) for c in statement.columns)
        shown = _quote(name)
        text = (
            f"WITH RECURSIVE {shown}({names}) AS ({query.query.text}) SELECT {names} FROM {shown}"
        )
        query = nodes.QueryStatement(nodes.Slice(text), "select")
    bound = session.database.planner.bind(session, query, ())
    columns = result_columns(bound.fields, statement.columns, "CREATE VIEW")
    store = session.database.store
    view = Relation(
        store.allocate_oid() if old is None else old.oid, schema, name, RelationKind.VIEW, columns,
        session.catalog.role(session.user).oid if old is None else old.owner,
        "t" if statement.is_temporary else "p",
        definition=query.query.text.strip(),
        options=tuple((o.name, str(o.value)) for o in statement.options),
        row_type=store.allocate_oid() if old is None else old.row_type,
        array_type=store.allocate_oid() if old is None else old.array_type,
        rule_oid=store.allocate_oid() if old is None else old.rule_oid,
        references=_references(bound.read), acl=None if old is None else old.acl,
    )
    if old is None:
        session.transaction.change(Create(view))
    else:
        _check_replacement(old, view)
        session.transaction.change(Replace(view))
    return Done(statement.tag)


def _check_replacement(old: Relation, new: Relation) -> None:
    if len(new.columns) < len(old.columns):
        raise errors.InvalidTableDefinition("cannot drop columns from view")
    for before, after in zip(old.columns, new.columns, strict=False):
        if before.name != after.name:
            raise errors.InvalidTableDefinition(
                f'cannot change name of view column "{before.name}" to "{after.name}"',
                hint="Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
            )
        if (before.type_oid, before.typmod) != (after.type_oid, after.typmod):
            raise errors.InvalidTableDefinition(
                f'cannot change data type of view column "{before.name}"'
            )


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# --- DROP and TRUNCATE of relations -----------------------------------------------------------

DROP_KINDS = {
    "table": (RelationKind.TABLE,),
    "view": (RelationKind.VIEW,),
    "materialized view": (RelationKind.MATERIALIZED_VIEW,),
    "sequence": (RelationKind.SEQUENCE,),
    "index": (RelationKind.INDEX,),
}


def drop_relations(session: Session, statement: nodes.Drop) -> None:
    """DROP TABLE | VIEW | MATERIALIZED VIEW | SEQUENCE | INDEX."""
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)
    for item in statement.objects:
        relation = naming.find_relation(session, item.name)
        if relation is None:
            _missing(session, statement, item.name)
            continue
        if RelationKind(relation.kind) not in DROP_KINDS[statement.kind]:
            article = "an" if statement.kind == "index" else "a"
            word = naming.KIND_WORDS[RelationKind(relation.kind)]
            hint_article = "an" if word == "index" else "a"
            raise errors.WrongObjectType(
                f'"{relation.name}" is not {article} {statement.kind}',
                hint=f"Use DROP {word.upper()} to remove {hint_article} {word}.",
            )
        naming.require_owner(session, relation)
        drop_object(session, ObjectClass.RELATION, relation, cascade=statement.cascade)


def _missing(session: Session, statement: nodes.Drop, name: nodes.QualifiedName) -> None:
    if name.schema and name.schema != "pg_temp" and session.catalog.schema(name.schema) is None:
        message, state = f'schema "{name.schema}" does not exist', "3F000"
        if not statement.if_exists:
            raise errors.InvalidSchemaName(message)
    else:
        shown = name.name if statement.if_exists else str(name)
        message, state = f'{statement.kind} "{shown}" does not exist', "00000"
        if not statement.if_exists:
            kind = errors.UndefinedObject if statement.kind == "index" else errors.UndefinedTable
            raise kind(message)
    session.notice("NOTICE", state, f"{message}, skipping")


def describe(session: Session, item: Any) -> str:
    """An object as dependency messages name it."""
    if isinstance(item, Relation):
        word = naming.KIND_WORDS[RelationKind(item.kind)]
        schema = session.catalog.schema_by_oid(item.schema)
        path = session.path().schemas
        qualified = "" if item.schema in path or schema is None else f"{schema.name}."
        return f"{word} {qualified}{item.name}"
    kind = type(item).__name__.lower()
    if kind == "constraint":
        table = session.catalog.relation_by_oid(item.relation)
        return f"constraint {item.name} on table {table.name}"
    word = {"enumtype": "type", "domaintype": "type", "functiondef": "function"}.get(kind, kind)
    return f"{word} {item.name}"


def drop_object(
    session: Session, class_id: ObjectClass, item: Any, *, cascade: bool
) -> None:
    """Drop an object; 2BP01 when others need it and ``cascade`` is not given."""
    assert session.transaction is not None
    dependents = _all_dependents(session, class_id, item)
    listed = [(d, by) for d, by in dependents if not _is_owned_sequence(d, by)]
    if listed and not cascade:
        shown = "\n".join(f"{describe(session, d)} depends on {describe(session, by)}"
                          for d, by in listed)
        raise errors.DependentObjectsStillExist(
            f"cannot drop {describe(session, item)} because other objects depend on it",
            detail=shown, hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )
    if len(listed) == 1:
        session.notice("NOTICE", "00000", f"drop cascades to {describe(session, listed[0][0])}")
    elif listed:
        lines = "\n".join(f"drop cascades to {describe(session, d)}" for d, _ in listed)
        session.notice(
            "NOTICE", "00000", f"drop cascades to {len(listed)} other objects", detail=lines
        )
    changes: list[Change] = [_drop_of(d) for d, _ in reversed(dependents)]
    session.transaction.change(*changes, Drop(class_id, item.oid))


def _is_owned_sequence(item: Any, owner: Any) -> bool:
    """Whether the item is a sequence of a column of the table: it goes along unasked."""
    sequence = item.sequence if isinstance(item, Relation) else None
    return sequence is not None and sequence.owner_table == owner.oid


def _drop_of(item: Any) -> Drop:
    return Drop(class_of(item), item.oid)


def _all_dependents(
    session: Session, class_id: ObjectClass, item: Any
) -> list[tuple[Any, Any]]:
    """What needs the object, directly or not, each with what it needs; in discovery order."""
    found: list[tuple[Any, Any]] = []
    seen = {(class_id, item.oid)}
    waiting = [(class_id, item)]
    while waiting:
        kind, current = waiting.pop(0)
        for dependent in session.catalog.dependents(kind, current.oid):
            key = (class_of(dependent), dependent.oid)
            if key not in seen:
                seen.add(key)
                found.append((dependent, current))
                waiting.append((key[0], dependent))
    return found


@handles(nodes.Truncate)
def truncate(session: Session, statement: nodes.Truncate) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)
    tables = [naming.require_relation(session, item.name) for item in statement.tables]
    for table in tables:
        if table.kind != RelationKind.TABLE:
            raise errors.WrongObjectType(f'"{table.name}" is not a table')
        session.database.require_privilege(session, table, "TRUNCATE")
    oids = {table.oid for table in tables}
    for table in list(tables):
        for constraint in session.catalog.foreign_keys_to(table.oid):
            if constraint.relation in oids:
                continue
            child = session.catalog.relation_by_oid(constraint.relation)
            if not statement.cascade:
                raise errors.FeatureNotSupported(
                    "cannot truncate a table referenced in a foreign key constraint",
                    detail=f'Table "{child.name}" references "{table.name}".',
                    hint=f'Truncate table "{child.name}" at the same time, or use '
                    "TRUNCATE ... CASCADE.",
                )
            session.notice("NOTICE", "00000", f'truncate cascades to table "{child.name}"')
            oids.add(child.oid)
            tables.append(child)
    session.transaction.change(*(Truncate(table.oid) for table in tables))
    if statement.restart_identity:
        _restart_sequences(session, oids)
    return Done(statement.tag)


def _restart_sequences(session: Session, tables: set[int]) -> None:
    for relation in session.catalog.relations():
        options = relation.sequence
        if options is not None and options.owner_table in tables:
            session.database.store.sequences.set_value(relation, options.start, is_called=False)
