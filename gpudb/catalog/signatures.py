"""Functions, operators and casts as overload resolution sees them.

Built-in rows are PostgreSQL's pg_proc, pg_operator and pg_cast; gpudb's own functions and those
that users made join them by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from gpudb.catalog import builtin
from gpudb.catalog import functions as registry
from gpudb.catalog.objects import SCHEMA_GPUDB, SCHEMA_PG_CATALOG, FunctionDef

if TYPE_CHECKING:
    from gpudb.catalog.catalog import CatalogSnapshot
    from gpudb.catalog.search_path import SearchPath

_LANGUAGE_SQL = 14
_FIRST_OWN_OID = 15000


@dataclass(frozen=True, slots=True)
class Signature:
    """A function. ``arguments`` are its inputs; ``outputs`` (name, type) its OUT columns.

    ``kind`` is prokind; ``variadic`` the element type of a VARIADIC last argument (ANY for
    VARIADIC "any"), 0 without; ``defaults`` the SQL texts of the last arguments' defaults;
    ``body`` the SQL text of a function in language SQL.
    """

    oid: int
    name: str
    schema: int
    kind: str
    arguments: tuple[int, ...]
    result: int
    key: str
    is_strict: bool = True
    volatility: str = "i"
    returns_set: bool = False
    variadic: int = 0
    defaults: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    outputs: tuple[tuple[str, int], ...] = ()
    body: str | None = None
    is_user_defined: bool = False


@dataclass(frozen=True, slots=True)
class OperatorSignature:
    """An operator; ``left`` is 0 for a prefix operator, ``function`` the OID of its function."""

    oid: int
    name: str
    schema: int
    left: int
    right: int
    result: int
    function: int
    commutator: int
    negator: int


@dataclass(frozen=True, slots=True)
class CastSignature:
    """A pg_cast row: ``context`` e, a or i; ``method`` f (function), i (text I/O), b (binary)."""

    function: int
    context: str
    method: str


def aggregate_key(name: str, arguments: Iterable[int]) -> str:
    """The registry key of an aggregate: ``sum(int4)``, ``count()``."""
    types = builtin.types()
    return f"{name}({','.join(types[oid].name for oid in arguments)})"


@cache
def _procedures() -> tuple[dict[str, list[int]], list[tuple[Any, ...]], dict[int, int]]:
    table = builtin.table("pg_proc")
    columns = (
        "oid", "proname", "pronamespace", "prokind", "proargtypes", "prorettype", "prosrc",
        "proisstrict", "provolatile", "proretset", "provariadic", "pronargdefaults",
        "proargnames", "proargmodes", "proallargtypes", "prolang",
    )  # fmt: skip
    rows = list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))
    names: dict[str, list[int]] = {}
    oids: dict[int, int] = {}
    for index, row in enumerate(rows):
        names.setdefault(row[1], []).append(index)
        oids[row[0]] = index
    return names, rows, oids


@cache
def _built(index: int) -> Signature:
    row = _procedures()[1][index]
    (oid, name, schema, kind, arguments, result, source, is_strict, volatility, returns_set,
     variadic, default_count, all_names, modes, all_types, language) = row  # fmt: skip
    arguments = tuple(arguments)
    is_sql = language == _LANGUAGE_SQL
    key = aggregate_key(name, arguments) if kind == "a" or is_sql else source
    all_names = tuple(all_names or ())
    outputs: tuple[tuple[str, int], ...] = ()
    names = all_names
    if modes:
        named = all_names or ("",) * len(modes)
        names = tuple(n for n, m in zip(named, modes, strict=True) if m in "ibv")
        outputs = tuple(
            (n, t) for n, m, t in zip(named, modes, all_types, strict=True) if m in "obt"
        )
    defaults = _default_texts(oid)[-default_count:] if default_count else ()
    return Signature(
        oid, name, schema, kind, arguments, result, key, is_strict, volatility, returns_set,
        variadic, defaults, names, outputs, source if is_sql else None,
    )  # fmt: skip


def _default_texts(oid: int) -> tuple[str, ...]:
    texts = []
    for part in builtin.function_texts()[oid][0].split(", "):
        _, found, text = part.partition(" DEFAULT ")
        if found:
            texts.append(text)
    return tuple(texts)


@cache
def _own() -> dict[str, list[Signature]]:
    found: dict[str, list[Signature]] = {}
    for number, item in enumerate(registry.OWN):
        schema = SCHEMA_GPUDB if item.schema == "gpudb" else SCHEMA_PG_CATALOG
        signature = Signature(
            _FIRST_OWN_OID + number, item.name, schema, "f", item.argument_oids,
            item.result_oid, item.key, item.is_strict, item.volatility, item.returns_set,
        )  # fmt: skip
        found.setdefault(item.name, []).append(signature)
    return found


def _user(item: FunctionDef) -> Signature:
    inputs = tuple(a for a in item.arguments if a.mode in "ibv")
    outputs = tuple((a.name, a.type_oid) for a in item.arguments if a.mode in "obt")
    variadic = inputs[-1].type_oid if inputs and inputs[-1].mode == "v" else 0
    return Signature(
        item.oid,
        item.name,
        item.schema,
        item.kind,
        item.input_types(),
        item.return_type,
        "",
        item.is_strict,
        item.volatility,
        item.returns_set,
        variadic,
        tuple(a.default for a in inputs if a.default is not None),
        tuple(a.name for a in inputs),
        outputs,
        item.body,
        is_user_defined=True,
    )


def functions_named(
    snapshot: CatalogSnapshot, name: str, schemas: tuple[int, ...]
) -> tuple[Signature, ...]:
    """The functions of that name in the given schemas, nearer schemas first."""
    built = [_built(i) for i in _procedures()[0].get(name, ())]
    built += _own().get(name, [])
    found: list[Signature] = []
    for schema in schemas:
        found.extend(s for s in built if s.schema == schema)
        found.extend(_user(f) for f in snapshot.functions_in(schema, name))
    return tuple(found)


def function_by_oid(oid: int) -> Signature:
    """A built-in function."""
    return _built(_procedures()[2][oid])


def search_schemas(
    snapshot: CatalogSnapshot, schema: str, path: SearchPath
) -> tuple[int, ...] | None:
    """Where to look for a function: the named schema or the path; None for no such schema."""
    if not schema:
        return path.function_schemas()
    found = snapshot.schema(schema)
    return None if found is None else (found.oid,)


@cache
def _operators() -> tuple[dict[str, tuple[OperatorSignature, ...]], dict[int, OperatorSignature]]:
    table = builtin.table("pg_operator")
    columns = (
        "oid", "oprname", "oprnamespace", "oprleft", "oprright", "oprresult", "oprcode",
        "oprcom", "oprnegate",
    )  # fmt: skip
    names: dict[str, list[OperatorSignature]] = {}
    oids: dict[int, OperatorSignature] = {}
    for row in zip(*(table.column(name).to_pylist() for name in columns), strict=True):
        signature = OperatorSignature(*row)
        oids[signature.oid] = signature
        names.setdefault(signature.name, []).append(signature)
    return {name: tuple(found) for name, found in names.items()}, oids


def operators_named(name: str) -> tuple[OperatorSignature, ...]:
    return _operators()[0].get(name, ())


def operator_by_oid(oid: int) -> OperatorSignature:
    return _operators()[1][oid]


@cache
def casts() -> dict[tuple[int, int], CastSignature]:
    """pg_cast by (source, target)."""
    table = builtin.table("pg_cast")
    columns = ("castsource", "casttarget", "castfunc", "castcontext", "castmethod")
    rows = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
    return {(s, t): CastSignature(f, c, m) for s, t, f, c, m in rows}


@cache
def preferred_types() -> frozenset[int]:
    table = builtin.table("pg_type")
    flags = zip(
        table.column("oid").to_pylist(), table.column("typispreferred").to_pylist(), strict=True
    )
    return frozenset(oid for oid, is_preferred in flags if is_preferred)


@cache
def aggregate_kinds() -> dict[int, tuple[str, int]]:
    """(aggkind, number of direct arguments) of each built-in aggregate by OID."""
    table = builtin.table("pg_aggregate")
    columns = ("aggfnoid", "aggkind", "aggnumdirectargs")
    rows = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
    return {function: (kind, direct) for function, kind, direct in rows}
