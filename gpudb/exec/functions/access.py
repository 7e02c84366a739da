"""has_*_privilege and pg_has_role: who may do what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpudb import errors
from gpudb.catalog import privileges
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.catalog_info import names_of, snapshot_of
from gpudb.exec.functions.rowwise import rowwise

_TABLE = {"SELECT": "r", "INSERT": "a", "UPDATE": "w", "DELETE": "d", "TRUNCATE": "D",
          "REFERENCES": "x", "TRIGGER": "t", "RULE": ""}
_COLUMN = {"SELECT": "r", "INSERT": "a", "UPDATE": "w", "REFERENCES": "x"}
_LETTERS: dict[str, dict[str, str]] = {
    "table": _TABLE,
    "any_column": _COLUMN,
    "sequence": {"USAGE": "U", "SELECT": "r", "UPDATE": "w"},
    "database": {"CREATE": "C", "CONNECT": "c", "TEMPORARY": "T", "TEMP": "T"},
    "schema": {"CREATE": "C", "USAGE": "U"},
    "function": {"EXECUTE": "X"},
    "type": {"USAGE": "U"},
    "language": {"USAGE": "U"},
    "tablespace": {"CREATE": "C"},
    "foreign_data_wrapper": {"USAGE": "U"},
    "server": {"USAGE": "U"},
}


def _role(context: EvaluationContext, role: int | str) -> int:
    """The OID of a role given by name or OID; 42704."""
    if isinstance(role, int):
        return role
    if role == "public":
        return 0
    found = snapshot_of(context).role(role)
    if found is None:
        raise errors.UndefinedObject(f'role "{role}" does not exist')
    return found.oid


def _wanted(kind: str, text: str) -> list[tuple[str, bool]]:
    """(letter, with grant option) of every privilege that a list names; 22023."""
    found = []
    for part in text.split(","):
        word = part.strip().upper()
        with_option = word.endswith(" WITH GRANT OPTION")
        name = word.removesuffix(" WITH GRANT OPTION").strip()
        if name not in _LETTERS[kind]:
            raise errors.InvalidParameterValue(f'unrecognized privilege type: "{part.strip()}"')
        found.append((_LETTERS[kind][name], with_option))
    return found


def _object(context: EvaluationContext, kind: str, key: int | str) -> Any:
    """The object, None for an unknown OID; unknown names raise."""
    snapshot, names = snapshot_of(context), names_of(context)
    match kind:
        case "table" | "any_column" | "sequence":
            oid = key if isinstance(key, int) else names.relation_oid(key)
            return snapshot.relation_by_oid(oid)
        case "database":
            if isinstance(key, int):
                return snapshot.database_by_oid(key)
            database = snapshot.database_by_name(key)
            if database is None:
                raise errors.InvalidCatalogName(f'database "{key}" does not exist')
            return database
        case "schema":
            if isinstance(key, int):
                return snapshot.schema_by_oid(key)
            schema = snapshot.schema(key)
            if schema is None:
                raise errors.InvalidSchemaName(f'schema "{key}" does not exist')
            return schema
        case "function":
            oid = key if isinstance(key, int) else names.procedure_oid(key)
            return snapshot.function_by_oid(oid) or True
        case "type":
            oid = key if isinstance(key, int) else names.type_oid(key)
            return snapshot.user_type(oid) or (True if snapshot.type(oid) else None)
        case _:
            return True


def _holds(
    context: EvaluationContext, kind: str, role: int, key: int | str, text: str
) -> bool | None:
    found = _object(context, kind, key)
    if found is None:
        return None
    wanted = _wanted(kind, text)
    if found is True:
        return True
    snapshot = snapshot_of(context)
    for letter, _ in wanted:
        if privileges.has_privilege(snapshot, role, found, letter):
            return True
        if kind == "any_column" and any(
            privileges.has_column_privilege(snapshot, role, found, column, letter)
            for column in found.live_columns()
        ):
            return True
    return False


def _register(kind: str) -> None:
    def of_user(context: EvaluationContext, key: int | str, text: str) -> bool | None:
        return _holds(context, kind, _role(context, context.query.user), key, text)

    def of_role(
        context: EvaluationContext, role: int | str, key: int | str, text: str
    ) -> bool | None:
        return _holds(context, kind, _role(context, role), key, text)

    prefix = f"has_{kind}_privilege"
    rowwise(f"{prefix}_id", f"{prefix}_name", needs_context=True)(of_user)
    rowwise(*(f"{prefix}_{a}_{b}" for a in ("id", "name") for b in ("id", "name")),
            needs_context=True)(of_role)


for _kind in _LETTERS:
    _register(_kind)


def _column_privilege(
    context: EvaluationContext, role: int | str, table: int | str, column: int | str, text: str
) -> bool | None:
    relation = _object(context, "table", table)
    if relation is None:
        return None
    if isinstance(column, str):
        found = relation.column(column)
        if found is None:
            raise errors.UndefinedColumn(
                f'column "{column}" of relation "{relation.name}" does not exist'
            )
    else:
        found = relation.column_by_attnum(column)
        if found is None:
            return None
    snapshot, oid = snapshot_of(context), _role(context, role)
    return any(
        privileges.has_column_privilege(snapshot, oid, relation, found, letter)
        for letter, _ in _wanted("any_column", text)
    )


def _register_columns() -> None:
    for table in ("id", "name"):
        for column in ("attnum", "name"):

            def of_user(
                context: EvaluationContext, table: int | str, column: int | str, text: str
            ) -> bool | None:
                return _column_privilege(context, context.query.user, table, column, text)

            rowwise(f"has_column_privilege_{table}_{column}", needs_context=True)(of_user)
            rowwise(*(f"has_column_privilege_{role}_{table}_{column}" for role in ("id", "name")),
                    needs_context=True)(_column_privilege)


_register_columns()


def _has_role(
    context: EvaluationContext, member: int | str, role: int | str, text: str
) -> bool:
    snapshot = snapshot_of(context)
    one, two = _role(context, member), _role(context, role)
    if privileges.is_superuser(snapshot, one):
        return True
    test: dict[str, Callable[[], bool]] = {
        "USAGE": lambda: two in privileges.roles_of(snapshot, one),
        "MEMBER": lambda: two in privileges.memberships_of(snapshot, one),
    }
    for part in text.split(","):
        word = part.strip().upper().split(" WITH ")[0]
        if word not in test:
            raise errors.InvalidParameterValue(f'unrecognized privilege type: "{part.strip()}"')
        if test[word]():
            return True
    return False


rowwise("pg_has_role_id_id", "pg_has_role_id_name", "pg_has_role_name_id",
        "pg_has_role_name_name", needs_context=True)(_has_role)


@rowwise("pg_has_role_id", "pg_has_role_name", needs_context=True)
def user_has_role(context: EvaluationContext, role: int | str, text: str) -> bool:
    return _has_role(context, context.query.user, role, text)
