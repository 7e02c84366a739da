"""Rows of schemas, roles, databases, functions and dependencies.

As in system_relations, tuples are in PostgreSQL 15's column order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gpudb.catalog import builtin
from gpudb.catalog.catalog import CatalogSnapshot
from gpudb.catalog.objects import (
    Constraint,
    ConstraintKind,
    FunctionDef,
    ObjectClass,
    Reference,
    Relation,
    RelationKind,
)
from gpudb.catalog.system_relations import (
    COMPATIBLE_TRANSACTION,
    Row,
    acl_value,
    vector,
    visible_schemas,
)
from gpudb.catalog.types.base import ArrayValue, HostValue

UTF8_ENCODING = 6
DEFAULT_TABLESPACE = 1663
LC_COLLATE = "C"
LC_CTYPE = "C.UTF-8"

_TEXT = 25
_OID = 26
_CHAR = 18
_ATTRDEF_CLASS = 2604
_REWRITE_CLASS = 2618


def _texts(values: tuple[str, ...]) -> ArrayValue | None:
    return ArrayValue.of(_TEXT, values) if values else None


def pg_namespace(snapshot: CatalogSnapshot) -> Iterator[Row]:
    known = builtin.schemas()
    for schema in snapshot.schemas():
        if schema.oid not in known:
            yield (schema.oid, schema.name, schema.owner, acl_value(snapshot, schema.acl))


def pg_authid(snapshot: CatalogSnapshot) -> Iterator[Row]:
    known = builtin.roles()
    for role in snapshot.roles():
        if role.oid in known:
            continue
        yield (
            role.oid,
            role.name,
            role.is_superuser,
            role.inherits,
            role.can_create_role,
            role.can_create_database,
            role.can_login,
            role.can_replicate,
            role.bypasses_row_security,
            role.connection_limit,
            role.password,
            role.valid_until,
        )


def pg_auth_members(snapshot: CatalogSnapshot) -> Iterator[Row]:
    known = builtin.roles()
    for role in snapshot.roles():
        if role.oid not in known:
            for membership in role.member_of:
                yield (
                    membership.role,
                    role.oid,
                    membership.grantor,
                    membership.has_admin_option,
                )


def pg_database(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for database in snapshot.databases():
        yield (
            database.oid,
            database.name,
            database.owner,
            UTF8_ENCODING,
            "c",
            database.is_template,
            database.allows_connections,
            database.connection_limit,
            COMPATIBLE_TRANSACTION,
            1,
            DEFAULT_TABLESPACE,
            LC_COLLATE,
            LC_CTYPE,
            None,
            None,
            acl_value(snapshot, database.acl),
        )


def pg_db_role_setting(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for role in snapshot.roles():
        if role.settings:
            yield (0, role.oid, _texts(role.settings))
    for database in snapshot.databases():
        if database.settings:
            yield (database.oid, 0, _texts(database.settings))


def pg_shdescription(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for (class_id, oid, _), comment in snapshot.comments().items():
        if class_id in (ObjectClass.ROLE, ObjectClass.DATABASE):
            yield (oid, class_id, comment.text)


# Functions


def pg_proc(snapshot: CatalogSnapshot) -> Iterator[Row]:
    schemas = visible_schemas(snapshot)
    for function in sorted(snapshot.functions(), key=lambda f: f.oid):
        if function.schema in schemas:
            yield _function_row(snapshot, function)


def _variadic_element(snapshot: CatalogSnapshot, function: FunctionDef) -> int:
    for argument in function.arguments:
        if argument.mode == "v":
            entry = snapshot.type(argument.type_oid)
            return 0 if entry is None else entry.element
    return 0


def _argument_arrays(function: FunctionDef) -> tuple[HostValue, HostValue, HostValue]:
    """proallargtypes, proargmodes, proargnames: NULL when they say nothing new."""
    arguments = function.arguments
    all_types: ArrayValue | None = None
    modes: ArrayValue | None = None
    if any(argument.mode != "i" for argument in arguments):
        all_types = ArrayValue.of(_OID, tuple(a.type_oid for a in arguments))
        modes = ArrayValue.of(_CHAR, tuple(a.mode for a in arguments))
    names = None
    if any(argument.name for argument in arguments):
        names = ArrayValue.of(_TEXT, tuple(a.name for a in arguments))
    return (all_types, modes, names)


def _function_row(snapshot: CatalogSnapshot, function: FunctionDef) -> Row:
    inputs = function.input_types()
    defaults = [a.default for a in function.arguments if a.default is not None]
    all_types, modes, names = _argument_arrays(function)
    return (
        function.oid,
        function.name,
        function.schema,
        function.owner,
        builtin.language_oids().get(function.language, 0),
        function.cost,
        function.rows,
        _variadic_element(snapshot, function),
        0,
        function.kind,
        function.is_security_definer,
        function.is_leakproof,
        function.is_strict,
        function.returns_set,
        function.volatility,
        function.parallel,
        len(inputs),
        len(defaults),
        function.return_type,
        vector(_OID, inputs),
        all_types,
        modes,
        names,
        ", ".join(defaults) if defaults else None,
        None,
        "" if function.is_sql_body else function.body,
        None,
        function.body if function.is_sql_body else None,
        _texts(function.settings),
        acl_value(snapshot, function.acl),
    )


# Dependencies


def pg_depend(snapshot: CatalogSnapshot) -> Iterator[Row]:
    """What pg_dump, psql and dbt ask for: owned sequences, views, keys, defaults, types."""
    for relation in snapshot.relations():
        yield from _relation_dependencies(snapshot, relation)
    schemas = visible_schemas(snapshot)
    for constraint in snapshot.all_constraints():
        if constraint.schema in schemas:
            yield from _constraint_dependencies(constraint)
    yield from _type_dependencies(snapshot, schemas)
    for function in snapshot.functions():
        if function.schema in schemas:
            yield (1255, function.oid, 0, 2615, function.schema, 0, "n")
            yield from _references(1255, function.oid, function.references, "n")


def _is_user(oid: int) -> bool:
    return oid >= 16384


def _references(
    class_id: int, oid: int, references: tuple[Reference, ...], kind: str
) -> Iterator[Row]:
    for reference in references:
        if _is_user(reference.oid):
            yield (class_id, oid, 0, int(reference.class_id), reference.oid, reference.subid, kind)


def _relation_dependencies(snapshot: CatalogSnapshot, relation: Relation) -> Iterator[Row]:
    oid = relation.oid
    index = relation.index
    if index is not None:
        if index.constraint:
            yield (1259, oid, 0, 2606, index.constraint, 0, "i")
        else:
            for key in index.keys:
                if key.attnum:
                    yield (1259, oid, 0, 1259, index.table, key.attnum, "a")
            yield from _references(1259, oid, relation.references, "a")
        return
    if relation.kind == RelationKind.COMPOSITE:
        yield (1259, oid, 0, 1247, relation.row_type, 0, "i")
    else:
        yield (1259, oid, 0, 2615, relation.schema, 0, "n")
        if relation.row_type:
            yield (1247, relation.row_type, 0, 1259, oid, 0, "i")
    sequence = relation.sequence
    if sequence is not None and sequence.owner_table:
        kind = "i" if sequence.is_identity else "a"
        yield (1259, oid, 0, 1259, sequence.owner_table, sequence.owner_column, kind)
    yield from _column_dependencies(relation)
    if relation.rule_oid:
        yield (_REWRITE_CLASS, relation.rule_oid, 0, 1259, oid, 0, "i")
        yield (_REWRITE_CLASS, relation.rule_oid, 0, 1259, oid, 0, "n")
        yield from _references(_REWRITE_CLASS, relation.rule_oid, relation.references, "n")


def _column_dependencies(relation: Relation) -> Iterator[Row]:
    for column in relation.live_columns():
        if _is_user(column.type_oid):
            yield (1259, relation.oid, column.attnum, 1247, column.type_oid, 0, "n")
        if column.default_oid:
            kind = "i" if column.generated else "a"
            yield (_ATTRDEF_CLASS, column.default_oid, 0, 1259, relation.oid, column.attnum, kind)
            yield from _references(_ATTRDEF_CLASS, column.default_oid, column.references, "n")


def _constraint_dependencies(item: Constraint) -> Iterator[Row]:
    if item.domain:
        yield (2606, item.oid, 0, 1247, item.domain, 0, "a")
    for attnum in item.columns:
        yield (2606, item.oid, 0, 1259, item.relation, attnum, "a")
    if item.relation and not item.columns:
        yield (2606, item.oid, 0, 1259, item.relation, 0, "a")
    if item.kind == ConstraintKind.FOREIGN_KEY:
        if item.index:
            yield (2606, item.oid, 0, 1259, item.index, 0, "n")
        for attnum in item.referenced_columns:
            yield (2606, item.oid, 0, 1259, item.referenced_table, attnum, "n")
    yield from _references(2606, item.oid, item.references, "n")


def _type_dependencies(snapshot: CatalogSnapshot, schemas: frozenset[int]) -> Iterator[Row]:
    for entry in snapshot.types():
        if entry.schema not in schemas:
            continue
        if entry.is_array:
            yield (1247, entry.oid, 0, 1247, entry.element, 0, "i")
        elif entry.kind in "de" or _is_composite(snapshot, entry.relation):
            yield (1247, entry.oid, 0, 2615, entry.schema, 0, "n")
            if _is_user(entry.base_type):
                yield (1247, entry.oid, 0, 1247, entry.base_type, 0, "n")


def _is_composite(snapshot: CatalogSnapshot, oid: int) -> bool:
    relation = snapshot.relation_by_oid(oid) if oid else None
    return relation is not None and relation.kind == RelationKind.COMPOSITE


SOURCES: dict[str, Callable[[CatalogSnapshot], Iterable[Row]]] = {
    "pg_catalog.pg_namespace": pg_namespace,
    "pg_catalog.pg_authid": pg_authid,
    "pg_catalog.pg_auth_members": pg_auth_members,
    "pg_catalog.pg_database": pg_database,
    "pg_catalog.pg_db_role_setting": pg_db_role_setting,
    "pg_catalog.pg_shdescription": pg_shdescription,
    "pg_catalog.pg_proc": pg_proc,
    "pg_catalog.pg_depend": pg_depend,
}
