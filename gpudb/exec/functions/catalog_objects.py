"""Functions over catalog objects: privileges as rows, descriptions, definitions, enums, locks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from gpudb import errors, sqltype
from gpudb.catalog import aclitems, system_data, types
from gpudb.catalog.functions import scalar
from gpudb.catalog.object_names import ObjectNames
from gpudb.catalog.objects import Relation
from gpudb.catalog.privileges import format_item
from gpudb.catalog.types import ArrayValue
from gpudb.column import Column, from_values
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.catalog_info import names_of, snapshot_of
from gpudb.exec.functions.rowwise import rowwise
from gpudb.exec.functions.sets import rowset
from gpudb.exec.functions.system import void
from gpudb.sqltype import SqlType

_HALF = 1 << 32
_KIND_WORDS = {"r": "table", "v": "view", "m": "materialized view", "i": "index",
               "S": "sequence", "c": "composite type"}

# --- privileges ---


@rowwise("acldefault_sql", needs_context=True, result=1034)
def default_privileges(context: EvaluationContext, kind: str, owner: int) -> ArrayValue:
    snapshot = snapshot_of(context)
    items = aclitems.default_items(kind, owner)
    return ArrayValue.of(sqltype.ACLITEM, tuple(format_item(snapshot, item) for item in items))


@rowset("aclexplode", results=(sqltype.OID, sqltype.OID, sqltype.TEXT, sqltype.BOOL),
        needs_context=True)
def privilege_rows(context: EvaluationContext, items: ArrayValue) -> Iterable[tuple[Any, ...]]:
    snapshot = snapshot_of(context)
    parsed = tuple(aclitems.parse_item(snapshot, str(item)) for item in items.items)
    return aclitems.exploded(parsed)


# --- descriptions ---


def _relation_text(names: ObjectNames, relation: Relation, attnum: int) -> str:
    text = f"{_KIND_WORDS.get(str(relation.kind), 'relation')} {names.relation_text(relation.oid)}"
    if not attnum:
        return text
    column = relation.column_by_attnum(attnum)
    return f"column {column.name if column else '?'} of {text}"


def _constraint_text(context: EvaluationContext, oid: int) -> str | None:
    found = snapshot_of(context).constraint_by_oid(oid)
    if found is None:
        return None
    text = f"constraint {found.name}"
    if not found.relation:
        return text
    return f"{text} on table {names_of(context).relation_text(found.relation)}"


@rowwise("pg_describe_object", needs_context=True)
def object_text(context: EvaluationContext, class_id: int, oid: int, subid: int) -> str | None:
    """The object as dependency messages name it; NULL where there is no such object."""
    snapshot, names = snapshot_of(context), names_of(context)
    catalog = snapshot.relation_by_oid(class_id)
    if not class_id or catalog is None:
        return None
    match catalog.name:
        case "pg_class":
            relation = snapshot.relation_by_oid(oid)
            return None if relation is None else _relation_text(names, relation, subid)
        case "pg_proc":
            text = names.procedure_text(oid)
            return None if text is None else f"function {text}"
        case "pg_type":
            entry = snapshot.type(oid)
            return None if entry is None else f"type {names.type_text(oid)}"
        case "pg_constraint":
            return _constraint_text(context, oid)
        case "pg_namespace":
            schema = snapshot.schema_by_oid(oid)
            return None if schema is None else f"schema {schema.name}"
        case "pg_authid":
            role = snapshot.role_by_oid(oid)
            return None if role is None else f"role {role.name}"
        case "pg_database":
            database = snapshot.database_by_oid(oid)
            return None if database is None else f"database {database.name}"
        case "pg_language":
            name = {12: "internal", 13: "c", 14: "sql"}.get(oid, "plpgsql")
            return f"language {name}"
        case "pg_extension":
            return "extension plpgsql"
    raise errors.FeatureNotSupported(f"descriptions of objects of {catalog.name} are not supported")


@rowwise("pg_get_functiondef", needs_context=True)
def function_definition(context: EvaluationContext, oid: int) -> str | None:
    """The CREATE FUNCTION of a user's function; the built-in ones have no SQL form here."""
    found = snapshot_of(context).function_by_oid(oid)
    if found is None:
        if names_of(context).function_text(oid) is None:
            return None
        raise errors.FeatureNotSupported("definitions of built-in functions are not supported")
    raise errors.FeatureNotSupported("definitions of functions are not supported")


@rowset("pg_partition_tree",
        results=(sqltype.REGCLASS, sqltype.REGCLASS, sqltype.BOOL, sqltype.INT4))
def partition_tree(oid: int) -> Iterable[tuple[Any, ...]]:
    """Nothing: no relation is partitioned."""
    return ()


rowwise("pg_partition_root", result=sqltype.REGCLASS)(lambda oid: None)


rowset("pg_timezone_names", needs_context=True,
       results=(sqltype.TEXT, sqltype.TEXT, sqltype.INTERVAL, sqltype.BOOL))(
    lambda context: system_data.pg_timezone_names(snapshot_of(context))
)


@rowset("pg_available_extensions", results=(sqltype.NAME, sqltype.TEXT, sqltype.TEXT))
def available_extensions() -> Iterable[tuple[Any, ...]]:
    """The one that every PostgreSQL database has; clients look for it."""
    return (("plpgsql", "1.0", "PL/pgSQL procedural language"),)


@rowwise("oidvectortypes", needs_context=True)
def type_names(context: EvaluationContext, oids: ArrayValue) -> str:
    snapshot = snapshot_of(context)
    return ", ".join(types.format_type(int(oid), -1, snapshot) for oid in oids.items)


def _expanded_types(columns: Sequence[Column]) -> tuple[int, ...]:
    return types.get(columns[0].type.oid).element_oid, sqltype.INT4


@rowset("_pg_expandarray(anyarray)", results=_expanded_types)
def expanded_array(array: ArrayValue) -> Iterable[tuple[Any, ...]]:
    """The items of an array with their numbers from 1."""
    return ((item, number) for number, item in enumerate(array.items, 1))


# --- enums ---


def _labels(context: EvaluationContext, column: Column) -> tuple[str, ...]:
    data_type = types.get(column.type.oid, context.query.snapshot)
    return tuple(getattr(data_type, "positions", ()))


def _one(context: EvaluationContext, oid: int, value: Any) -> Column:
    layout = types.get(oid, context.query.snapshot).layout
    return from_values(SqlType(oid), layout, [value])


@scalar("enum_first")
def first_label(context: EvaluationContext, column: Column) -> Column:
    return _one(context, column.type.oid, next(iter(_labels(context, column)), None))


@scalar("enum_last")
def last_label(context: EvaluationContext, column: Column) -> Column:
    return _one(context, column.type.oid, next(iter(reversed(_labels(context, column))), None))


@scalar("enum_range_all")
def label_range(context: EvaluationContext, column: Column) -> Column:
    oid = column.type.oid
    array_oid = types.get(oid, context.query.snapshot).array_oid
    return _one(context, array_oid, ArrayValue.of(oid, _labels(context, column)))


# --- advisory locks ---


class LockHolder(Protocol):
    """What the lock functions ask of the session."""

    def take_advisory(
        self, key: tuple[int, int, int], *, is_shared: bool, is_of_transaction: bool, waits: bool
    ) -> bool: ...

    def release_advisory(self, key: tuple[int, int, int], *, is_shared: bool) -> bool: ...

    def release_advisory_locks(self, *, is_of_transaction: bool) -> None: ...


def _holder(context: EvaluationContext) -> LockHolder:
    session: LockHolder | None = context.query.session
    if session is None:
        raise errors.FeatureNotSupported("this function needs a session")
    return session


def _key(numbers: tuple[int, ...]) -> tuple[int, int, int]:
    """The lock's key: a bigint and a pair of integers never meet."""
    if len(numbers) == 1:
        return (*divmod(numbers[0] % (_HALF * _HALF), _HALF), 1)
    return (numbers[0] % _HALF, numbers[1] % _HALF, 2)


def _register_lock(name: str, suffix: str, *, is_shared: bool, is_of_transaction: bool) -> None:
    def lock(context: EvaluationContext, *numbers: int) -> str:
        _holder(context).take_advisory(
            _key(numbers), is_shared=is_shared, is_of_transaction=is_of_transaction, waits=True
        )
        return ""

    def attempt(context: EvaluationContext, *numbers: int) -> bool:
        return _holder(context).take_advisory(
            _key(numbers), is_shared=is_shared, is_of_transaction=is_of_transaction, waits=False
        )

    rowwise(f"pg_advisory_{name}_{suffix}", needs_context=True, is_volatile=True)(lock)
    rowwise(f"pg_try_advisory_{name}_{suffix}", needs_context=True, is_volatile=True)(attempt)


def _register_unlock(name: str, suffix: str, *, is_shared: bool) -> None:
    def unlock(context: EvaluationContext, *numbers: int) -> bool:
        return _holder(context).release_advisory(_key(numbers), is_shared=is_shared)

    rowwise(f"pg_advisory_{name}_{suffix}", needs_context=True, is_volatile=True)(unlock)


for _suffix in ("int8", "int4"):
    _register_lock("lock", _suffix, is_shared=False, is_of_transaction=False)
    _register_lock("lock_shared", _suffix, is_shared=True, is_of_transaction=False)
    _register_lock("xact_lock", _suffix, is_shared=False, is_of_transaction=True)
    _register_lock("xact_lock_shared", _suffix, is_shared=True, is_of_transaction=True)
    _register_unlock("unlock", _suffix, is_shared=False)
    _register_unlock("unlock_shared", _suffix, is_shared=True)


@scalar("pg_advisory_unlock_all")
def unlock_all(context: EvaluationContext) -> Column:
    """Gives up the session's advisory locks."""
    _holder(context).release_advisory_locks(is_of_transaction=False)
    return void()
