"""The built-in catalog: PostgreSQL 15's own rows and the definitions of the system views.

Rows lie in ``builtin.arrow`` (see generate_builtin), views in ``pg_catalog.sql``,
``information_schema.sql`` and ``gpudb.sql``. Everything is decoded on first use and kept for the
life of the process.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather

from gpudb.catalog.objects import (
    SCHEMA_PG_CATALOG,
    AclItem,
    ColumnDef,
    Membership,
    Relation,
    Role,
    Schema,
)
from gpudb.catalog.type_entries import TypeEntry

_HERE = Path(__file__).parent
_VIEW_FILES = ("pg_catalog.sql", "information_schema.sql", "gpudb.sql")
_VIEW = re.compile(r"^CREATE VIEW (\w+)\.(\w+) AS\n(.*?);$", re.MULTILINE | re.DOTALL)


@cache
def _streams() -> dict[str, bytes]:
    packed = pyarrow.feather.read_table(str(_HERE / "builtin.arrow"))
    names = packed.column("relation").to_pylist()
    return dict(zip(names, packed.column("rows").to_pylist(), strict=True))


@cache
def table(name: str) -> pa.Table:
    """The built-in rows of a relation of pg_catalog, or of ``information_schema.<name>``.

    Also ``function_texts`` and ``timezone_abbrevs``. KeyError for a relation without rows.
    """
    return pa.ipc.open_stream(_streams()[name]).read_all()


def has_table(name: str) -> bool:
    return name in _streams()


def _rows(name: str, *columns: str) -> list[tuple[Any, ...]]:
    lists = [table(name).column(column).to_pylist() for column in columns]
    return list(zip(*lists, strict=True))


@cache
def schemas() -> dict[int, Schema]:
    """pg_catalog, pg_toast, information_schema, gpudb: in every database, never dropped."""
    found = {}
    for oid, name, owner, acl in _rows("pg_namespace", "oid", "nspname", "nspowner", "nspacl"):
        items = None if acl is None else tuple(parse_acl_item(text) for text in acl)
        found[oid] = Schema(oid, 0, name, owner, items)
    return found


@cache
def schema_names() -> dict[str, int]:
    return {schema.name: oid for oid, schema in schemas().items()}


@cache
def roles() -> dict[int, Role]:
    """The predefined roles (pg_monitor, pg_read_all_data, ...)."""
    members: dict[int, list[Membership]] = {}
    for role, member, grantor, admin in _rows(
        "pg_auth_members", "roleid", "member", "grantor", "admin_option"
    ):
        members.setdefault(member, []).append(Membership(role, grantor, admin))
    return {
        oid: Role(oid, name, inherits=inherits, member_of=tuple(members.get(oid, ())))
        for oid, name, inherits in _rows("pg_authid", "oid", "rolname", "rolinherit")
    }


def _role_oid(name: str) -> int:
    if not name:
        return 0
    if name == "postgres":
        return 10
    return next(oid for oid, role in roles().items() if role.name == name)


def parse_acl_item(text: str) -> AclItem:
    """An aclitem of the built-in rows: ``grantee=privileges/grantor``, ``*`` after a grantable."""
    grantee, _, rest = text.partition("=")
    privileges, _, grantor = rest.partition("/")
    letters = privileges.replace("*", "")
    grantable = "".join(a for a, b in itertools.pairwise(privileges) if b == "*")
    return AclItem(_role_oid(grantee), _role_oid(grantor), letters, grantable)


# Relations


@cache
def view_definitions() -> dict[tuple[str, str], str]:
    """The queries of the system views by (schema, name)."""
    found = {}
    for file in _VIEW_FILES:
        for schema, name, query in _VIEW.findall((_HERE / file).read_text()):
            found[(schema, name)] = query
    return found


@cache
def _columns_by_relation() -> dict[int, tuple[ColumnDef, ...]]:
    found: dict[int, list[ColumnDef]] = {}
    names = ("attrelid", "attnum", "attname", "atttypid", "atttypmod", "attnotnull")
    for row in _rows("pg_attribute", *names, "attcollation", "attndims"):
        relation, attnum, name, type_oid, typmod, not_null, collation, dimensions = row
        if attnum > 0:
            column = ColumnDef(
                attnum,
                name,
                type_oid,
                typmod,
                not_null,
                collation=collation,
                dimensions=dimensions,
            )
            found.setdefault(relation, []).append(column)
    return {oid: tuple(sorted(columns, key=lambda c: c.attnum)) for oid, columns in found.items()}


@cache
def _relations() -> dict[int, Relation]:
    columns = _columns_by_relation()
    views = view_definitions()
    names = ("oid", "relnamespace", "relname", "relkind", "reltype", "relisshared", "relacl")
    found = {}
    for oid, schema, name, kind, row_type, is_shared, acl in _rows("pg_class", *names):
        definition = views.get((schemas()[schema].name, name))
        found[oid] = Relation(
            oid,
            schema,
            name,
            kind,
            columns.get(oid, ()),
            definition=definition,
            row_type=row_type,
            is_system=True,
            is_shared=is_shared,
            acl=None if acl is None else tuple(parse_acl_item(text) for text in acl),
        )
    return found


@cache
def _relation_names() -> dict[tuple[int, str], int]:
    return {(r.schema, r.name): r.oid for r in _relations().values()}


def relations() -> dict[int, Relation]:
    """System tables, views, indexes and TOAST tables by OID."""
    return _relations()


def relation(oid: int) -> Relation | None:
    return _relations().get(oid)


def relation_in(schema: int, name: str) -> Relation | None:
    if schema not in schemas():
        return None
    oid = _relation_names().get((schema, name))
    return None if oid is None else _relations()[oid]


# Types, functions, comments


@cache
def types() -> dict[int, TypeEntry]:
    """The built-in types, with arrays, pseudo types and the row types of system relations."""
    names = ("oid", "typnamespace", "typname", "typowner", "typtype", "typcategory", "typelem")
    more = ("typarray", "typrelid", "typbasetype", "typtypmod", "typsubscript", "typdelim")
    subscript = function_oid("array_subscript_handler")
    found = {}
    for *entry, handler, delimiter in _rows("pg_type", *names, *more):
        oid, schema, name, owner, kind, category, element, array, relation, base, typmod = entry
        found[oid] = TypeEntry(
            oid=oid,
            schema=schema,
            name=name,
            owner=owner,
            kind=kind,
            category=category,
            element=element,
            array=array,
            relation=relation,
            base_type=base,
            typmod=typmod,
            is_array=handler == subscript,
            delimiter=delimiter,
        )
    return found


@cache
def type_names() -> dict[tuple[int, str], int]:
    return {(entry.schema, entry.name): oid for oid, entry in types().items()}


@cache
def function_names() -> dict[int, tuple[int, str]]:
    """(schema, name) of each built-in function by OID."""
    return {oid: (s, n) for oid, s, n in _rows("pg_proc", "oid", "pronamespace", "proname")}


@cache
def function_name_counts() -> Counter[str]:
    """How many functions of pg_catalog share a name: regproc qualifies the ambiguous ones."""
    return Counter(name for schema, name in function_names().values() if schema == 11)


@cache
def _function_oids() -> dict[str, int]:
    return {name: oid for oid, (s, name) in function_names().items() if s == SCHEMA_PG_CATALOG}


def function_oid(name: str) -> int:
    """The OID of a function of pg_catalog whose name is not overloaded."""
    return _function_oids()[name]


@cache
def function_texts() -> dict[int, tuple[str, str, str]]:
    """What pg_get_function_arguments, _identity_arguments and _result say of a built-in."""
    names = ("oid", "arguments", "identity_arguments", "result")
    return {oid: (a, i, r) for oid, a, i, r in _rows("function_texts", *names)}


@cache
def language_oids() -> dict[str, int]:
    return dict(_rows("pg_language", "lanname", "oid"))


@cache
def comments() -> dict[tuple[int, int, int], str]:
    names = ("classoid", "objoid", "objsubid", "description")
    return {(c, o, s): text for c, o, s, text in _rows("pg_description", *names)}


def comment(class_id: int, oid: int, subid: int) -> str | None:
    return comments().get((class_id, oid, subid))


def timezone_abbreviations() -> list[tuple[str, int, bool]]:
    """(abbreviation, offset from UTC in seconds, is daylight saving)."""
    return _rows("timezone_abbrevs", "abbrev", "utc_offset", "is_dst")
