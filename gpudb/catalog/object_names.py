"""Names to OIDs and back: what regclass, regproc, regtype and their kin read and show.

``lookup`` is the function that TypeContext asks. Wording and SQLSTATEs are PostgreSQL's
(regproc.c, namespace.c). Names that are not visible on the path are shown with their schema.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from gpudb import errors
from gpudb.catalog import builtin
from gpudb.catalog.search_path import TEMPORARY_ALIAS, SearchPath
from gpudb.catalog.type_entries import TypeEntry
from gpudb.catalog.type_system import TypeSystem, quoted

if TYPE_CHECKING:
    from gpudb.catalog.catalog import CatalogSnapshot

NAME_BYTES_MAX = 63
NAME_PARTS_MAX = 3

_SPACE = " \t\n\r\f\v"
_PART = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s."]+))\s*')
_TYPE_ALIASES = {
    "int": "int4",
    "integer": "int4",
    "smallint": "int2",
    "bigint": "int8",
    "real": "float4",
    "float": "float8",
    "double precision": "float8",
    "decimal": "numeric",
    "dec": "numeric",
    "boolean": "bool",
    "character varying": "varchar",
    "char varying": "varchar",
    "national character varying": "varchar",
    "national char varying": "varchar",
    "nchar varying": "varchar",
    "character": "bpchar",
    "char": "bpchar",
    "national character": "bpchar",
    "national char": "bpchar",
    "nchar": "bpchar",
    "bit varying": "varbit",
    "interval": "interval",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "time without time zone": "time",
    "time with time zone": "timetz",
}
_INTERVAL_FIELDS = re.compile(r"interval (year|month|day|hour|minute|second)( to \w+)?$")
_MODIFIER = re.compile(r"\s*\(\s*(-?\w+(?:\s*,\s*-?\w+)*)\s*\)")
_ARRAY = re.compile(r"(?:\s*\[\s*\d*\s*\])+$|\s+array(?:\s*\[\s*\d+\s*\])?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Named:
    """A function or operator: ``types`` are its argument types (0: no such operand)."""

    oid: int
    schema: int
    name: str
    types: tuple[int, ...]


@cache
def _builtin_functions() -> dict[str, tuple[_Named, ...]]:
    table = builtin.table("pg_proc")
    names = ("oid", "pronamespace", "proname", "proargtypes")
    found: dict[str, list[_Named]] = defaultdict(list)
    for oid, schema, name, types in zip(*(table.column(n).to_pylist() for n in names), strict=True):
        found[name].append(_Named(oid, schema, name, tuple(types)))
    return {name: tuple(items) for name, items in found.items()}


@cache
def _builtin_operators() -> dict[str, tuple[_Named, ...]]:
    table = builtin.table("pg_operator")
    names = ("oid", "oprnamespace", "oprname", "oprleft", "oprright")
    found: dict[str, list[_Named]] = defaultdict(list)
    for oid, schema, name, left, right in zip(
        *(table.column(n).to_pylist() for n in names), strict=True
    ):
        found[name].append(_Named(oid, schema, name, (left, right)))
    return {name: tuple(items) for name, items in found.items()}


@cache
def _by_oid(kind: str) -> dict[int, _Named]:
    source = _builtin_functions() if kind == "function" else _builtin_operators()
    return {item.oid: item for items in source.values() for item in items}


@cache
def _simple(kind: str) -> dict[tuple[int, str], int]:
    """OIDs by (schema, name) of text search objects and collations."""
    table, schema, name = {
        "regconfig": ("pg_ts_config", "cfgnamespace", "cfgname"),
        "regdictionary": ("pg_ts_dict", "dictnamespace", "dictname"),
        "regcollation": ("pg_collation", "collnamespace", "collname"),
    }[kind]
    rows = builtin.table(table)
    columns = [rows.column(column).to_pylist() for column in (schema, name, "oid")]
    return {(s, n): oid for s, n, oid in zip(*columns, strict=True)}


def split_name(text: str) -> list[str]:
    """The parts of a dotted name, unquoted parts in lower case; InvalidName (42602)."""
    parts = []
    at = 0
    while True:
        match = _PART.match(text, at)
        if match is None or (match[1] == ""):
            raise errors.InvalidName("invalid name syntax")
        part = match[2].lower() if match[1] is None else match[1].replace('""', '"')
        parts.append(part.encode()[:NAME_BYTES_MAX].decode(errors="ignore"))
        at = match.end()
        if at == len(text):
            return parts
        if text[at] != ".":
            raise errors.InvalidName("invalid name syntax")
        at += 1


class ObjectNames:
    """Look-ups on one snapshot with one search path."""

    def __init__(self, snapshot: CatalogSnapshot, path: SearchPath) -> None:
        self._snapshot = snapshot
        self._path = path
        self._types = TypeSystem(snapshot, path)

    def lookup(self, kind: str, key: str | int) -> Any:
        """The OID of a name (str), raising what PostgreSQL raises; the text of an OID (int),
        None for an unknown one. ``kind`` is the type's name: regclass, regtype, ...
        """
        if isinstance(key, str):
            return _READERS[kind](self, key)
        return _WRITERS[kind](self, key)

    # Schemas

    def _schema_oid(self, name: str) -> int:
        if name == TEMPORARY_ALIAS and self._path.temporary:
            return self._path.temporary
        schema = self._snapshot.schema(name)
        if schema is None:
            raise errors.InvalidSchemaName(f'schema "{name}" does not exist')
        return schema.oid

    def _qualified(self, text: str) -> tuple[int | None, str]:
        """(schema OID or None, name) of a name with at most a schema."""
        parts = split_name(text)
        if len(parts) == NAME_PARTS_MAX:
            self._check_database(parts)
            parts = parts[1:]
        if len(parts) > NAME_PARTS_MAX:
            raise errors.SyntaxError(
                f"improper qualified name (too many dotted names): {'.'.join(parts)}"
            )
        if len(parts) == 1:
            return None, parts[0]
        return self._schema_oid(parts[0]), parts[1]

    def _check_database(self, parts: list[str]) -> None:
        database = self._snapshot.database_by_oid(self._snapshot.database)
        if database is not None and parts[0] != database.name:
            shown = ".".join(parts)
            raise errors.FeatureNotSupported(
                f"cross-database references are not implemented: {shown}"
            )

    def _shown(self, schema: int, name: str, *, is_visible: bool) -> str:
        if is_visible:
            return quoted(name)
        found = self._snapshot.schema_by_oid(schema)
        return quoted(name) if found is None else f"{quoted(found.name)}.{quoted(name)}"

    # Relations

    def relation_oid(self, text: str) -> int:
        parts = split_name(text)
        if len(parts) > NAME_PARTS_MAX:
            raise errors.SyntaxError(
                f"improper relation name (too many dotted names): {'.'.join(parts)}"
            )
        if len(parts) == NAME_PARTS_MAX:
            database = self._snapshot.database_by_oid(self._snapshot.database)
            if database is not None and parts[0] != database.name:
                raise errors.FeatureNotSupported(
                    f'cross-database references are not implemented: "{".".join(parts)}"'
                )
            parts = parts[1:]
        if len(parts) == 1:
            relation = self._snapshot.resolve_relation(parts[0], self._path)
        else:
            relation = self._snapshot.relation_in(self._schema_oid(parts[0]), parts[1])
        if relation is None:
            raise errors.UndefinedTable(f'relation "{".".join(parts)}" does not exist')
        return relation.oid

    def relation_is_visible(self, oid: int) -> bool | None:
        """Whether its name alone finds the relation; None for an unknown OID."""
        relation = self._snapshot.relation_by_oid(oid)
        if relation is None:
            return None
        found = self._snapshot.resolve_relation(relation.name, self._path)
        return found is not None and found.oid == oid

    def relation_text(self, oid: int) -> str | None:
        relation = self._snapshot.relation_by_oid(oid)
        if relation is None:
            return None
        is_visible = bool(self.relation_is_visible(oid))
        return self._shown(relation.schema, relation.name, is_visible=is_visible)

    # Types

    def type_oid(self, text: str) -> int:
        entry = self._type_entry(text)
        if entry is None:
            raise errors.UndefinedObject(f'type "{text.strip()}" does not exist')
        return entry.oid

    def _type_entry(self, text: str) -> TypeEntry | None:
        array = _ARRAY.search(text)
        base = text[: array.start()] if array else text
        entry = self._base_type(_MODIFIER.sub("", base).strip(_SPACE), base)
        if entry is None or array is None or entry.is_array:
            return entry
        return self._snapshot.type(entry.array) if entry.array else None

    def _base_type(self, text: str, written: str) -> TypeEntry | None:
        words = " ".join(text.lower().split())
        if words == "float" and (found := re.search(r"\(\s*(\d+)", written)) is not None:
            words = "real" if int(found[1]) <= 24 else "float"
        if _INTERVAL_FIELDS.match(words):
            words = "interval"
        alias = _TYPE_ALIASES.get(words)
        if alias is not None:
            return self._snapshot.type(builtin.type_names()[(11, alias)])
        try:
            schema, name = self._qualified(text)
        except errors.InvalidName:
            raise errors.SyntaxError(f'invalid type name "{written.strip()}"') from None
        if schema is None:
            return self._snapshot.resolve_type(name, self._path)
        return self._snapshot.type_in(schema, name)

    def type_is_visible(self, oid: int) -> bool | None:
        entry = self._snapshot.type(oid)
        if entry is None:
            return None
        found = self._snapshot.resolve_type(entry.name, self._path)
        return found is not None and found.oid == oid

    def type_text(self, oid: int) -> str | None:
        return None if self._snapshot.type(oid) is None else self._types.name(oid)

    # Functions

    def _functions(self, schema: int | None, name: str) -> list[_Named]:
        """Functions of a name, in one schema or on the path with hidden ones left out."""
        schemas = self._path.function_schemas() if schema is None else (schema,)
        known = _builtin_functions().get(name, ())
        found: dict[tuple[int, ...], _Named] = {}
        for oid in schemas:
            for item in known:
                if item.schema == oid:
                    found.setdefault(item.types, item)
            for user in self._snapshot.functions_in(oid, name):
                item = _Named(user.oid, user.schema, user.name, user.input_types())
                found.setdefault(item.types, item)
        return list(found.values())

    def _function(self, oid: int) -> _Named | None:
        user = self._snapshot.function_by_oid(oid)
        if user is not None:
            return _Named(user.oid, user.schema, user.name, user.input_types())
        return _by_oid("function").get(oid)

    def function_oid(self, text: str) -> int:
        found = self._functions(*self._qualified(text))
        if not found:
            raise errors.UndefinedFunction(f'function "{text}" does not exist')
        if len(found) > 1:
            raise errors.AmbiguousFunction(f'more than one function named "{text}"')
        return found[0].oid

    def function_text(self, oid: int) -> str | None:
        item = self._function(oid)
        if item is None:
            return None
        found = self._functions(None, item.name)
        is_alone = len(found) == 1 and found[0].oid == oid
        return self._shown(item.schema, item.name, is_visible=is_alone)

    def function_is_visible(self, oid: int) -> bool | None:
        item = self._function(oid)
        if item is None:
            return None
        return any(other.oid == oid for other in self._functions(None, item.name))

    def procedure_oid(self, text: str) -> int:
        name, types = self._signature(text)
        for item in self._functions(*self._qualified(name)):
            if item.types == types:
                return item.oid
        raise errors.UndefinedFunction(f'function "{text}" does not exist')

    def procedure_text(self, oid: int) -> str | None:
        item = self._function(oid)
        if item is None:
            return None
        is_visible = bool(self.function_is_visible(oid))
        name = self._shown(item.schema, item.name, is_visible=is_visible)
        return f"{name}({','.join(self._types.name(type_oid) for type_oid in item.types)})"

    def _signature(self, text: str, *, allows_none: bool = False) -> tuple[str, tuple[int, ...]]:
        """The name and the argument types of ``name(type, type)``."""
        name, parenthesis, rest = text.partition("(")
        if not parenthesis:
            raise errors.InvalidTextRepresentation("expected a left parenthesis")
        body = rest.rstrip(_SPACE)
        if not body.endswith(")"):
            raise errors.InvalidTextRepresentation("expected a right parenthesis")
        body = body[:-1]
        if not body.strip(_SPACE):
            return name, ()
        types = []
        for argument in _split_arguments(body):
            is_none = allows_none and argument.strip(_SPACE).upper() == "NONE"
            types.append(0 if is_none else self.type_oid(argument))
        return name, tuple(types)

    # Operators

    def _operators(self, text: str) -> list[_Named]:
        schema, dot, rest = text.strip(_SPACE).rpartition(".")
        name = rest if dot else text.strip(_SPACE)
        schemas = (self._schema_oid(split_name(schema)[0]),) if dot else self._path.schemas
        return [item for item in _builtin_operators().get(name, ()) if item.schema in schemas]

    def operator_oid(self, text: str) -> int:
        found = self._operators(text)
        if not found:
            raise errors.UndefinedFunction(f"operator does not exist: {text}")
        if len(found) > 1:
            raise errors.AmbiguousFunction(f"more than one operator named {text}")
        return found[0].oid

    def operator_text(self, oid: int) -> str | None:
        item = _by_oid("operator").get(oid)
        if item is None:
            return None
        return item.name if len(self._operators(item.name)) == 1 else f"pg_catalog.{item.name}"

    def operator_signature_oid(self, text: str) -> int:
        name, types = self._signature(text, allows_none=True)
        if len(types) == 1:
            raise errors.UndefinedParameter(
                "missing argument",
                hint="Use NONE to denote the missing argument of a unary operator.",
            )
        if len(types) != 2:
            raise errors.TooManyArguments(
                "too many arguments", hint="Provide two argument types for operator."
            )
        for item in self._operators(name):
            if item.types == types:
                return item.oid
        raise errors.UndefinedFunction(f"operator does not exist: {text}")

    def operator_signature_text(self, oid: int) -> str | None:
        item = _by_oid("operator").get(oid)
        if item is None:
            return None
        types = [self._types.name(type_oid) if type_oid else "NONE" for type_oid in item.types]
        prefix = "" if self._operators(item.name) else "pg_catalog."
        return f"{prefix}{item.name}({','.join(types)})"

    def operator_is_visible(self, oid: int) -> bool | None:
        item = _by_oid("operator").get(oid)
        return None if item is None else item.schema in self._path.schemas

    # Schemas, roles, collations, text search

    def namespace_oid(self, text: str) -> int:
        parts = split_name(text)
        if len(parts) != 1:
            raise errors.InvalidName("invalid name syntax")
        return self._schema_oid(parts[0])

    def namespace_text(self, oid: int) -> str | None:
        schema = self._snapshot.schema_by_oid(oid)
        return None if schema is None else quoted(schema.name)

    def role_oid(self, text: str) -> int:
        parts = split_name(text)
        if len(parts) != 1:
            raise errors.InvalidName("invalid name syntax")
        role = self._snapshot.role(parts[0])
        if role is None:
            raise errors.UndefinedObject(f'role "{parts[0]}" does not exist')
        return role.oid

    def role_text(self, oid: int) -> str | None:
        role = self._snapshot.role_by_oid(oid)
        return None if role is None else quoted(role.name)

    def simple_oid(self, kind: str, text: str) -> int:
        schema, name = self._qualified(text)
        schemas = self._path.schemas if schema is None else (schema,)
        for oid in schemas:
            found = _simple(kind).get((oid, name))
            if found is not None:
                return found
        shown = ".".join(split_name(text))
        message = {
            "regconfig": f'text search configuration "{shown}" does not exist',
            "regdictionary": f'text search dictionary "{shown}" does not exist',
            "regcollation": f'collation "{shown}" for encoding "UTF8" does not exist',
        }[kind]
        raise errors.UndefinedObject(message)

    def simple_text(self, kind: str, oid: int) -> str | None:
        for (schema, name), other in _simple(kind).items():
            if other == oid:
                return self._shown(schema, name, is_visible=schema in self._path.schemas)
        return None


def _split_arguments(text: str) -> list[str]:
    """Cut at commas outside of quotes and parentheses."""
    parts = [""]
    depth = 0
    is_quoted = False
    for letter in text:
        if letter == '"':
            is_quoted = not is_quoted
        depth += (letter == "(") - (letter == ")") if not is_quoted else 0
        if letter == "," and not depth and not is_quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


_READERS: dict[str, Callable[[ObjectNames, str], int]] = {
    "regclass": ObjectNames.relation_oid,
    "regtype": ObjectNames.type_oid,
    "regproc": ObjectNames.function_oid,
    "regprocedure": ObjectNames.procedure_oid,
    "regoper": ObjectNames.operator_oid,
    "regoperator": ObjectNames.operator_signature_oid,
    "regnamespace": ObjectNames.namespace_oid,
    "regrole": ObjectNames.role_oid,
    "regconfig": lambda names, text: names.simple_oid("regconfig", text),
    "regdictionary": lambda names, text: names.simple_oid("regdictionary", text),
    "regcollation": lambda names, text: names.simple_oid("regcollation", text),
}
_WRITERS: dict[str, Callable[[ObjectNames, int], str | None]] = {
    "regclass": ObjectNames.relation_text,
    "regtype": ObjectNames.type_text,
    "regproc": ObjectNames.function_text,
    "regprocedure": ObjectNames.procedure_text,
    "regoper": ObjectNames.operator_text,
    "regoperator": ObjectNames.operator_signature_text,
    "regnamespace": ObjectNames.namespace_text,
    "regrole": ObjectNames.role_text,
    "regconfig": lambda names, oid: names.simple_text("regconfig", oid),
    "regdictionary": lambda names, oid: names.simple_text("regdictionary", oid),
    "regcollation": lambda names, oid: names.simple_text("regcollation", oid),
}
