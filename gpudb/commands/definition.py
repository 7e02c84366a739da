"""CREATE and DROP of schemas, types, indexes, databases; COMMENT; the dispatcher of DROP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpudb import errors
from gpudb.catalog.changes import Create, SetComment
from gpudb.catalog.objects import (
    ColumnDef,
    Comment,
    Database,
    DomainType,
    EnumLabel,
    EnumType,
    IndexDefinition,
    IndexKey,
    ObjectClass,
    Relation,
    RelationKind,
    Schema,
)
from gpudb.commands import Done, Result, handles, naming
from gpudb.commands.roles import drop_role
from gpudb.commands.table_builder import BTREE_METHOD
from gpudb.commands.tables import DROP_KINDS, drop_object, drop_relations
from gpudb.optimizer.statements import nodes

if TYPE_CHECKING:
    from gpudb.session import Session

INDEX_METHODS = {"btree": 403, "hash": 405, "gist": 783, "gin": 2742, "spgist": 4000, "brin": 3580}
LABEL_BYTES_MAX = 63


def _owner(session: Session) -> int:
    return int(session.catalog.role(session.user).oid)


def _writable(session: Session, statement: Any) -> None:
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)


@handles(nodes.CreateSchema)
def create_schema(session: Session, statement: nodes.CreateSchema) -> Result:
    _writable(session, statement)
    assert session.transaction is not None
    name = statement.name or statement.authorization
    if session.catalog.schema(name) is not None:
        if not statement.if_not_exists:
            raise errors.DuplicateSchema(f'schema "{name}" already exists')
        session.notice("NOTICE", "42P06", f'schema "{name}" already exists, skipping')
        return Done(statement.tag)
    if name.startswith("pg_"):
        raise errors.ReservedName(
            f'unacceptable schema name "{name}"',
            detail='The prefix "pg_" is reserved for system schemas.',
        )
    owner = _owner(session)
    if statement.authorization:
        role = session.catalog.role(statement.authorization)
        if role is None:
            raise errors.UndefinedObject(f'role "{statement.authorization}" does not exist')
        owner = role.oid
    oid = session.database.store.allocate_oid()
    session.transaction.change(Create(Schema(oid, session.database_oid, name, owner)))
    if statement.elements:
        session.settings.begin(" schema elements")
        session.settings.assign("search_path", f'"{name}", {session.settings.text("search_path")}')
        try:
            for element in statement.elements:
                session.run(element, session.query_text)
        finally:
            session.settings.rollback_to(" schema elements")
            session.settings.release(" schema elements")
    return Done(statement.tag)


@handles(nodes.CreateDatabase)
def create_database(session: Session, statement: nodes.CreateDatabase) -> Result:
    if session.is_block:
        raise errors.ActiveSqlTransaction("CREATE DATABASE cannot run inside a transaction block")
    _writable(session, statement)
    assert session.transaction is not None
    if session.catalog.database_by_name(statement.name) is not None:
        raise errors.DuplicateDatabase(f'database "{statement.name}" already exists')
    store = session.database.store
    database = Database(store.allocate_oid(), statement.name, _owner(session))
    public = Schema(store.allocate_oid(), database.oid, "public", _owner(session))
    session.transaction.change(Create(database), Create(public))
    return Done(statement.tag)


@handles(nodes.CreateType)
def create_type(session: Session, statement: nodes.CreateType) -> Result:
    _writable(session, statement)
    assert session.transaction is not None
    schema = naming.creation_schema(session, statement.name, "permanent")
    name = statement.name.name
    if session.catalog.type_in(schema, name) is not None:
        raise errors.DuplicateObject(f'type "{name}" already exists')
    allocate = session.database.store.allocate_oid
    if statement.kind == "enum":
        labels = _labels(statement.labels, allocate)
        item: Any = EnumType(allocate(), schema, name, _owner(session), allocate(), labels)
    elif statement.kind == "composite":
        item = Relation(
            allocate(), schema, name, RelationKind.COMPOSITE,
            tuple(
                _attribute(session, number, attribute)
                for number, attribute in enumerate(statement.attributes, 1)
            ),
            _owner(session), row_type=allocate(), array_type=allocate(),
        )
    else:
        raise errors.FeatureNotSupported(f"CREATE TYPE of kind {statement.kind} is not supported")
    session.transaction.change(Create(item))
    return Done(statement.tag)


def _labels(labels: tuple[str, ...], allocate: Callable[[], int]) -> tuple[EnumLabel, ...]:
    for label in labels:
        if len(label.encode()) > LABEL_BYTES_MAX:
            raise errors.InvalidName(
                f'invalid enum label "{label}"', detail="Labels must be 63 bytes or less."
            )
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise errors.UniqueViolation(
            'duplicate key value violates unique constraint "pg_enum_typid_label_index"',
            detail=f"The label {twice} is given twice.",
        )
    return tuple(EnumLabel(allocate(), label, float(i)) for i, label in enumerate(labels, 1))


def _attribute(session: Session, number: int, attribute: nodes.ColumnDefinition) -> ColumnDef:
    assert attribute.type is not None
    type = session.database.type_name(session, attribute.type)
    return ColumnDef(number, attribute.name, type.oid, type.typmod)


@handles(nodes.CreateDomain)
def create_domain(session: Session, statement: nodes.CreateDomain) -> Result:
    _writable(session, statement)
    assert session.transaction is not None
    if any(c.kind == "check" for c in statement.constraints):
        raise errors.FeatureNotSupported("domains with CHECK constraints are not supported")
    schema = naming.creation_schema(session, statement.name, "permanent")
    name = statement.name.name
    if session.catalog.type_in(schema, name) is not None:
        raise errors.DuplicateObject(f'type "{name}" already exists')
    base = session.database.type_name(session, statement.type)
    kinds = {c.kind: c for c in statement.constraints}
    if "not null" in kinds:
        raise errors.FeatureNotSupported("domains with NOT NULL constraints are not supported")
    default = kinds["default"].expression if "default" in kinds else None
    store = session.database.store
    session.transaction.change(
        Create(
            DomainType(
                store.allocate_oid(), schema, name, _owner(session), store.allocate_oid(),
                base.oid, base.typmod, default=None if default is None else default.text,
            )
        )
    )
    return Done(statement.tag)


@handles(nodes.CreateIndex)
def create_index(session: Session, statement: nodes.CreateIndex) -> Result:
    """Recorded and shown; queries never read it. A unique one would have to be enforced."""
    _writable(session, statement)
    assert session.transaction is not None
    table = naming.require_relation(session, statement.table.name)
    if table.kind not in (RelationKind.TABLE, RelationKind.MATERIALIZED_VIEW):
        raise errors.WrongObjectType(f'cannot create index on relation "{table.name}"')
    naming.require_owner(session, table)
    if statement.is_unique:
        raise errors.FeatureNotSupported(
            "CREATE UNIQUE INDEX is not supported",
            hint="Use ALTER TABLE ... ADD CONSTRAINT ... UNIQUE.",
        )
    if statement.method not in INDEX_METHODS:
        raise errors.UndefinedObject(f'access method "{statement.method}" does not exist')
    keys, columns = _index_keys(table, statement)
    shown = [c.name for c in columns] or ["expr"]
    name = statement.name or naming.fresh_name(session, table.schema, table.name, *shown, "idx")
    if session.catalog.relation_in(table.schema, name) is not None:
        if statement.if_not_exists:
            session.notice("NOTICE", "42P07", f'relation "{name}" already exists, skipping')
            return Done(statement.tag)
        raise errors.DuplicateTable(f'relation "{name}" already exists')
    index = Relation(
        session.database.store.allocate_oid(), table.schema, name, RelationKind.INDEX, columns,
        table.owner, table.persistence,
        index=IndexDefinition(
            table.oid, INDEX_METHODS.get(statement.method, BTREE_METHOD), keys,
            predicate=None if statement.where is None else statement.where.text,
        ),
    )
    session.transaction.change(Create(index))
    session.notice(
        "NOTICE", "00000", f'index "{name}" is recorded but not used: scans prune by zone maps'
    )
    return Done(statement.tag)


def _index_keys(
    table: Relation, statement: nodes.CreateIndex
) -> tuple[tuple[IndexKey, ...], tuple[ColumnDef, ...]]:
    keys: list[IndexKey] = []
    columns: list[ColumnDef] = []
    for number, element in enumerate(statement.elements, 1):
        descending = element.is_descending
        first = descending if element.nulls_first is None else element.nulls_first
        if element.column:
            column = table.column(element.column)
            if column is None:
                raise errors.UndefinedColumn(f'column "{element.column}" does not exist')
            keys.append(IndexKey(column.attnum, is_descending=descending, nulls_first=first))
            columns.append(ColumnDef(number, column.name, column.type_oid, column.typmod))
        else:
            assert element.expression is not None
            keys.append(
                IndexKey(0, element.expression.text, is_descending=descending, nulls_first=first)
            )
            columns.append(ColumnDef(number, "expr", 25))
    return tuple(keys), tuple(columns)


# --- COMMENT ----------------------------------------------------------------------------------


@handles(nodes.Comment)
def comment(session: Session, statement: nodes.Comment) -> Result:
    _writable(session, statement)
    assert session.transaction is not None
    class_id, oid, subid = _commented(session, statement)
    text = statement.comment or ""
    session.transaction.change(SetComment(Comment(class_id, oid, subid, text)))
    return Done(statement.tag)


def _commented(session: Session, statement: nodes.Comment) -> tuple[int, int, int]:
    """(class OID, object OID, sub-object number) of what COMMENT ON names."""
    name = statement.object.name
    match statement.kind:
        case "table" | "view" | "materialized view" | "index" | "sequence":
            relation = naming.require_relation(session, name)
            return ObjectClass.RELATION, relation.oid, 0
        case "column":
            relation = naming.require_relation(session, nodes.QualifiedName(name.parts[:-1]))
            column = relation.column(name.parts[-1])
            if column is None:
                raise errors.UndefinedColumn(
                    f'column "{name.parts[-1]}" of relation "{relation.name}" does not exist'
                )
            return ObjectClass.RELATION, relation.oid, column.attnum
        case "schema":
            schema = session.catalog.schema(name.name)
            if schema is None:
                raise errors.InvalidSchemaName(f'schema "{name.name}" does not exist')
            return ObjectClass.SCHEMA, schema.oid, 0
        case "database":
            database = session.catalog.database_by_name(name.name)
            if database is None:
                raise errors.InvalidCatalogName(f'database "{name.name}" does not exist')
            return ObjectClass.DATABASE, database.oid, 0
        case "role":
            role = session.catalog.role(name.name)
            if role is None:
                raise errors.UndefinedObject(f'role "{name.name}" does not exist')
            return ObjectClass.ROLE, role.oid, 0
        case "type" | "domain":
            entry = session.catalog.resolve_type(name.name, session.path())
            if entry is None:
                raise errors.UndefinedObject(f'type "{name}" does not exist')
            return ObjectClass.TYPE, entry.oid, 0
        case "constraint":
            assert statement.object.on is not None
            relation = naming.require_relation(session, statement.object.on)
            for constraint in session.catalog.constraints(relation.oid):
                if constraint.name == name.name:
                    return ObjectClass.CONSTRAINT, constraint.oid, 0
            raise errors.UndefinedObject(
                f'constraint "{name.name}" for table "{relation.name}" does not exist'
            )
    raise errors.FeatureNotSupported(f"COMMENT ON {statement.kind.upper()} is not supported")


# --- DROP -------------------------------------------------------------------------------------


@handles(nodes.Drop)
def drop(session: Session, statement: nodes.Drop) -> Result:
    _writable(session, statement)
    if statement.kind in DROP_KINDS:
        drop_relations(session, statement)
        return Done(statement.tag)
    dropper = _DROPPERS.get(statement.kind)
    if dropper is None:
        raise errors.FeatureNotSupported(f"{statement.tag} is not supported")
    for item in statement.objects:
        dropper(session, statement, item.name)
    return Done(statement.tag)


def _drop_schema(session: Session, statement: nodes.Drop, name: nodes.QualifiedName) -> None:
    schema = session.catalog.schema(name.name)
    if schema is None:
        if not statement.if_exists:
            raise errors.InvalidSchemaName(f'schema "{name.name}" does not exist')
        session.notice("NOTICE", "00000", f'schema "{name.name}" does not exist, skipping')
        return
    if schema.oid < 16384 and schema.name != "public":
        raise errors.DependentObjectsStillExist(
            f"cannot drop schema {schema.name} because it is required by the database system"
        )
    drop_object(session, ObjectClass.SCHEMA, schema, cascade=statement.cascade)


def _drop_type(session: Session, statement: nodes.Drop, name: nodes.QualifiedName) -> None:
    if name.schema:
        schema = session.catalog.schema(name.schema)
        entry = None if schema is None else session.catalog.type_in(schema.oid, name.name)
    else:
        entry = session.catalog.resolve_type(name.name, session.path())
    if entry is None:
        if not statement.if_exists:
            raise errors.UndefinedObject(f'type "{name}" does not exist')
        session.notice("NOTICE", "00000", f'type "{name}" does not exist, skipping')
        return
    if entry.source is None:
        raise errors.DependentObjectsStillExist(
            f"cannot drop type {entry.name} because it is required by the database system"
        )
    is_composite = isinstance(entry.source, Relation)
    if is_composite and entry.source.kind != RelationKind.COMPOSITE:
        raise errors.DependentObjectsStillExist(
            f"cannot drop type {entry.name} because table {entry.name} requires it",
            hint=f"You can drop table {entry.name} instead.",
        )
    kind = ObjectClass.RELATION if is_composite else ObjectClass.TYPE
    drop_object(session, kind, entry.source, cascade=statement.cascade)


def _drop_database(session: Session, statement: nodes.Drop, name: nodes.QualifiedName) -> None:
    if session.is_block:
        raise errors.ActiveSqlTransaction("DROP DATABASE cannot run inside a transaction block")
    database = session.catalog.database_by_name(name.name)
    if database is None:
        if not statement.if_exists:
            raise errors.InvalidCatalogName(f'database "{name.name}" does not exist')
        session.notice("NOTICE", "00000", f'database "{name.name}" does not exist, skipping')
        return
    if database.oid == session.database_oid:
        raise errors.ObjectInUse("cannot drop the currently open database")
    drop_object(session, ObjectClass.DATABASE, database, cascade=True)


_DROPPERS: dict[str, Callable[[Session, nodes.Drop, nodes.QualifiedName], None]] = {
    "schema": _drop_schema,
    "type": _drop_type,
    "domain": _drop_type,
    "database": _drop_database,
    "role": drop_role,
    "user": drop_role,
    "group": drop_role,
}
