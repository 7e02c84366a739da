"""ALTER TABLE and renames, owners and schemas of objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpudb import errors
from gpudb.catalog.changes import Drop, Replace
from gpudb.catalog.objects import (
    ColumnDef,
    ConstraintKind,
    EnumLabel,
    EnumType,
    ObjectClass,
    Relation,
    RelationKind,
)
from gpudb.commands import Done, Result, handles, naming
from gpudb.commands.roles import require_role
from gpudb.commands.table_builder import TableBuilder
from gpudb.commands.tables import drop_object
from gpudb.optimizer.statements import nodes

if TYPE_CHECKING:
    from gpudb.session import Session

Action = Callable[["Session", Relation, nodes.AlterAction], Relation]
_ACTIONS: dict[str, Action] = {}


def _action(*kinds: str) -> Callable[[Action], Action]:
    def add(action: Action) -> Action:
        for kind in kinds:
            _ACTIONS[kind] = action
        return action

    return add


@handles(nodes.AlterTable)
def alter_table(session: Session, statement: nodes.AlterTable) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)
    if statement.kind == "type":
        return _alter_type(session, statement)
    relation = naming.find_relation(session, statement.table.name)
    if relation is None and statement.if_exists:
        session.notice(
            "NOTICE", "00000", f'relation "{statement.table.name.name}" does not exist, skipping'
        )
        return Done(statement.tag)
    relation = naming.require_relation(session, statement.table.name)
    naming.require_owner(session, relation)
    for item in statement.actions:
        action = _ACTIONS.get(item.kind)
        if action is None:
            raise errors.FeatureNotSupported(
                f"ALTER {statement.kind.upper()} ... {item.kind.upper()} is not supported"
            )
        if relation.kind != RelationKind.TABLE and item.kind not in ("owner", "set options"):
            raise errors.WrongObjectType(f'"{relation.name}" is not a table')
        relation = action(session, relation, item)
    return Done(statement.tag)


def _store(session: Session, relation: Relation) -> Relation:
    assert session.transaction is not None
    session.transaction.change(Replace(relation))
    return relation


def _column(relation: Relation, name: str) -> ColumnDef:
    column = relation.column(name)
    if column is None:
        raise errors.UndefinedColumn(
            f'column "{name}" of relation "{relation.name}" does not exist'
        )
    return column


def _with_column(session: Session, relation: Relation, column: ColumnDef) -> Relation:
    columns = tuple(column if c.attnum == column.attnum else c for c in relation.columns)
    return _store(session, replace(relation, columns=columns))


@_action("add column")
def add_column(session: Session, relation: Relation, item: nodes.AlterAction) -> Relation:
    """Rows that exist show the default's value, computed now; it must be constant for them."""
    assert item.definition is not None and session.transaction is not None
    name = item.definition.name
    if relation.column(name) is not None:
        if not item.if_not_exists:
            raise errors.DuplicateColumn(
                f'column "{name}" of relation "{relation.name}" already exists'
            )
        session.notice(
            "NOTICE", "42701",
            f'column "{name}" of relation "{relation.name}" already exists, skipping',
        )
        return relation
    builder = _builder(session, relation)
    builder.columns = list(relation.columns)
    builder.add_column(item.definition)
    column = builder.columns[-1]
    has_rows = session.catalog.data(relation.oid).rows() > 0
    if has_rows and (column.generated or column.identity):
        raise errors.FeatureNotSupported(
            "adding a generated or identity column to a table with rows is not supported"
        )
    if has_rows and column.default is not None:
        value = session.database.evaluate(
            session, nodes.Slice(column.default), column.type_oid, typmod=column.typmod
        )
        column = replace(column, missing=session.database.text_of(session, column, value))
    if has_rows and column.not_null and column.missing is None:
        raise errors.NotNullViolation(
            f'column "{name}" of relation "{relation.name}" contains null values'
        )
    changed = replace(relation, columns=(*relation.columns, column))
    session.database.check_defaults(session, changed)
    session.transaction.change(*builder.sequences, Replace(changed))
    for constraint, owner in builder.constraints:
        _add(session, changed, builder, constraint, owner)
    return changed


def _builder(session: Session, relation: Relation) -> TableBuilder:
    return TableBuilder(
        session, relation.oid, relation.schema, relation.name, relation.persistence, relation.owner
    )


def _add(
    session: Session,
    relation: Relation,
    builder: TableBuilder,
    constraint: nodes.Constraint,
    column: str = "",
) -> None:
    assert session.transaction is not None
    changes = builder.constraint_changes(relation, constraint, column)
    session.transaction.change(*changes)
    made: Any = changes[-1]
    session.database.check_constraint(session, relation, made.object)


@_action("drop column")
def drop_column(session: Session, relation: Relation, item: nodes.AlterAction) -> Relation:
    column = relation.column(item.name)
    if column is None and item.if_exists:
        session.notice(
            "NOTICE", "00000",
            f'column "{item.name}" of relation "{relation.name}" does not exist, skipping',
        )
        return relation
    column = _column(relation, item.name)
    for constraint in session.catalog.constraints(relation.oid):
        if column.attnum in constraint.columns:
            drop_object(session, ObjectClass.CONSTRAINT, constraint, cascade=item.cascade)
    dropped = replace(
        column, is_dropped=True, name=f"........pg.dropped.{column.attnum}........",
        not_null=False, default=None,
    )
    return _with_column(session, relation, dropped)


@_action("set default", "drop default")
def set_default(session: Session, relation: Relation, item: nodes.AlterAction) -> Relation:
    column = _column(relation, item.name)
    if column.identity:
        raise errors.SyntaxError(
            f'column "{column.name}" of relation "{relation.name}" is an identity column'
        )
    if column.generated:
        raise errors.SyntaxError(
            f'column "{column.name}" of relation "{relation.name}" is a generated column'
        )
    text = None if item.expression is None else item.expression.text
    oid = session.database.store.allocate_oid() if text is not None else 0
    changed = replace(column, default=text, default_oid=oid)
    session.database.check_defaults(
        session,
        replace(relation, columns=tuple(
            changed if c.attnum == column.attnum else c for c in relation.columns
        )),
    )
    return _with_column(session, relation, changed)


@_action("set not null", "drop not null")
def set_not_null(session: Session, relation: Relation, item: nodes.AlterAction) -> Relation:
    column = _column(relation, item.name)
    wanted = item.kind == "set not null"
    if not wanted:
        primary = session.catalog.primary_key(relation.oid)
        if primary is not None and column.attnum in primary.columns:
            raise errors.InvalidTableDefinition(f'column "{column.name}" is in a primary key')
    elif session.database.has_nulls(session, relation, column):
        raise errors.NotNullViolation(
            f'column "{column.name}" of relation "{relation.name}" contains null values'
        )
    return _with_column(session, relation, replace(column, not_null=wanted))


@_action("add constraint")
def add_constraint(session: Session, relation: Relation, item: nodes.AlterAction) -> Relation:
    assert item.constraint is not None and session.transaction is not None
    constraint = item.constraint
    if constraint.name and any(
        c.name == constraint.name for c in session.catalog.constraints(relation.oid)
    ):
        raise errors.DuplicateObject(
            f'constraint "{constraint.name}" for relation "{relation.name}" already exists'
        )
    if constraint.kind == "primary key":
        if session.catalog.primary_key(relation.oid) is not None:
            raise errors.InvalidTableDefinition(
                f'multiple primary keys for table "{relation.name}" are not allowed'
            )
        for name in constraint.columns:
            column = _column(relation, name)
            if session.database.has_nulls(session, relation, column):
                raise errors.NotNullViolation(
                    f'column "{name}" of relation "{relation.name}" contains null values'
                )
            relation = _with_column(session, relation, replace(column, not_null=True))
    _add(session, relation, _builder(session, relation), constraint)
    return relation


@_action("drop constraint")
def drop_constraint(session: Session, relation: Relation, item: nodes.AlterAction) -> Relation:
    assert session.transaction is not None
    for constraint in session.catalog.constraints(relation.oid):
        if constraint.name == item.name:
            keys = (ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE)
            drop_object(session, ObjectClass.CONSTRAINT, constraint, cascade=item.cascade)
            if constraint.kind in keys and session.catalog.relation_by_oid(constraint.index):
                session.transaction.change(Drop(ObjectClass.RELATION, constraint.index))
            return relation
    message = f'constraint "{item.name}" of relation "{relation.name}" does not exist'
    if not item.if_exists:
        raise errors.UndefinedObject(message)
    session.notice("NOTICE", "00000", f"{message}, skipping")
    return relation


@_action("owner")
def change_owner(session: Session, relation: Relation, item: nodes.AlterAction) -> Relation:
    return _store(session, replace(relation, owner=require_role(session, item.value).oid))


@_action("set options")
def set_options(session: Session, relation: Relation, item: nodes.AlterAction) -> Relation:
    given = {o.name.lower(): "on" if o.value is None else str(o.value) for o in item.options}
    kept = [(name, value) for name, value in relation.options if name not in given]
    return _store(session, replace(relation, options=(*kept, *given.items())))


@_action("set statistics", "set storage", "set compression", "cluster on", "set without cluster")
def keep(session: Session, relation: Relation, item: nodes.AlterAction) -> Relation:
    """How PostgreSQL's heap stores values has no counterpart here; the columns are checked."""
    if item.name and item.kind.startswith("set"):
        _column(relation, item.name)
    return relation


# --- renames, owners, schemas -----------------------------------------------------------------


@handles(nodes.Rename)
def rename(session: Session, statement: nodes.Rename) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)
    if statement.kind in ("table", "view", "materialized view", "sequence", "index"):
        _rename_relation(session, statement)
        return Done(statement.tag)
    item = _named(session, statement.kind, statement.object)
    session.transaction.change(Replace(replace(item, name=statement.new_name)))
    return Done(statement.tag)


def _rename_relation(session: Session, statement: nodes.Rename) -> None:
    assert session.transaction is not None
    relation = naming.find_relation(session, statement.object.name)
    if relation is None and statement.if_exists:
        session.notice(
            "NOTICE", "00000", f'relation "{statement.object.name.name}" does not exist, skipping'
        )
        return
    relation = naming.require_relation(session, statement.object.name)
    naming.require_owner(session, relation)
    if statement.member_kind == "constraint":
        for constraint in session.catalog.constraints(relation.oid):
            if constraint.name == statement.member:
                renamed = replace(constraint, name=statement.new_name)
                session.transaction.change(Replace(renamed))
                return
        raise errors.UndefinedObject(
            f'constraint "{statement.member}" for table "{relation.name}" does not exist'
        )
    if statement.member:
        column = _column(relation, statement.member)
        if relation.column(statement.new_name) is not None:
            raise errors.DuplicateColumn(
                f'column "{statement.new_name}" of relation "{relation.name}" already exists'
            )
        _with_column(session, relation, replace(column, name=statement.new_name))
        return
    if session.catalog.relation_in(relation.schema, statement.new_name) is not None:
        raise errors.DuplicateTable(f'relation "{statement.new_name}" already exists')
    _store(session, replace(relation, name=statement.new_name))


def _named(session: Session, kind: str, target: nodes.ObjectName) -> Any:
    """The object of another kind; 42704, 3F000."""
    name = target.name.name
    match kind:
        case "schema":
            found = session.catalog.schema(name)
            missing: errors.SqlError = errors.InvalidSchemaName(f'schema "{name}" does not exist')
        case "role" | "user" | "group":
            return require_role(session, name)
        case "database":
            found = session.catalog.database_by_name(name)
            missing = errors.InvalidCatalogName(f'database "{name}" does not exist')
        case "type" | "domain":
            entry = session.catalog.resolve_type(name, session.path())
            found = None if entry is None else entry.source
            missing = errors.UndefinedObject(f'type "{name}" does not exist')
        case _:
            raise errors.FeatureNotSupported(f"ALTER {kind.upper()} is not supported")
    if found is None:
        raise missing
    return found


@handles(nodes.AlterOwner)
def alter_owner(session: Session, statement: nodes.AlterOwner) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)
    owner = require_role(session, statement.owner).oid
    if statement.kind in ("table", "view", "materialized view", "sequence", "index"):
        item: Any = naming.require_relation(session, statement.object.name)
        naming.require_owner(session, item)
    else:
        item = _named(session, statement.kind, statement.object)
    session.transaction.change(Replace(replace(item, owner=owner)))
    return Done(statement.tag)


@handles(nodes.AlterSchema)
def alter_schema(session: Session, statement: nodes.AlterSchema) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)
    relation = naming.require_relation(session, statement.object.name)
    naming.require_owner(session, relation)
    schema = session.catalog.schema(statement.schema)
    if schema is None:
        raise errors.InvalidSchemaName(f'schema "{statement.schema}" does not exist')
    if session.catalog.relation_in(schema.oid, relation.name) is not None:
        raise errors.DuplicateTable(
            f'relation "{relation.name}" already exists in schema "{schema.name}"'
        )
    _store(session, replace(relation, schema=schema.oid))
    for index in session.catalog.indexes(relation.oid):
        _store(session, replace(index, schema=schema.oid))
    return Done(statement.tag)


# --- ALTER TYPE -------------------------------------------------------------------------------


def _alter_type(session: Session, statement: nodes.AlterTable) -> Result:
    """ALTER TYPE ... ADD VALUE of enums."""
    assert session.transaction is not None
    entry = session.catalog.resolve_type(statement.table.name.name, session.path())
    if entry is None:
        raise errors.UndefinedObject(f'type "{statement.table.name}" does not exist')
    for item in statement.actions:
        if item.kind != "add value" or not isinstance(entry.source, EnumType):
            raise errors.FeatureNotSupported(f"ALTER TYPE ... {item.kind.upper()} is not supported")
        _add_value(session, entry.source, item)
    return Done(statement.tag)


def _add_value(session: Session, enum: EnumType, item: nodes.AlterAction) -> None:
    assert session.transaction is not None
    labels = sorted(enum.labels, key=lambda label: label.sort_order)
    names = [label.label for label in labels]
    if item.value in names:
        if item.if_not_exists:
            session.notice(
                "NOTICE", "42710", f'enum label "{item.value}" already exists, skipping'
            )
            return
        raise errors.DuplicateObject(f'enum label "{item.value}" already exists')
    position = len(names)
    if item.position_word:
        if item.name not in names:
            raise errors.InvalidParameterValue(f'"{item.name}" is not an existing enum label')
        position = names.index(item.name) + (item.position_word == "after")
    before = labels[position - 1].sort_order if position else labels[0].sort_order - 2
    after = labels[position].sort_order if position < len(labels) else before + 2
    made = EnumLabel(
        session.database.store.allocate_oid(), item.value, (before + after) / 2
    )
    session.transaction.change(Replace(replace(enum, labels=(*enum.labels, made))))


