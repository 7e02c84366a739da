"""The data types: one file a family; a type's record gives its codecs, layout and order.

``get`` finds a type by OID. Arrays of the built-in types are derived from their elements; enums,
domains, composites and arrays of them come from a catalog snapshot (``get(oid, snapshot)``).
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from gpudb import errors, sqltype
from gpudb.catalog.types import (
    arrays,
    bits,
    boolean,
    datetimes,
    documents,
    floats,
    integers,
    internals,
    intervals,
    network,
    numeric,
    object_ids,
    records,
    strings,
    uuids,
)
from gpudb.catalog.types.base import (
    ArrayValue,
    DataType,
    HostValue,
    RecordValue,
    TypeContext,
)

if TYPE_CHECKING:
    from gpudb.catalog.catalog import CatalogSnapshot
    from gpudb.catalog.type_entries import TypeEntry

__all__ = [
    "ArrayValue", "DataType", "HostValue", "RecordValue", "TypeContext", "array_of", "by_name",
    "format_type", "get", "is_known",
]

FAMILIES = (
    boolean, integers, floats, numeric, strings, datetimes, intervals, uuids, documents, bits,
    network, object_ids, internals,
)
_USER_TYPES_MAX = 1024


class _OpaqueType(DataType):
    """A type of the catalog without an implementation: it has a name, no values."""


@cache
def _builtin() -> dict[int, DataType]:
    found: dict[int, DataType] = {}
    for family in FAMILIES:
        found.update({item.oid: item for item in family.TYPES})
    found.update({item.oid: item for item in arrays.vector_types(found)})
    record = records.RecordType(sqltype.RECORD, "record", get, array_oid=sqltype.RECORDARRAY)
    found[record.oid] = record
    found[sqltype.VOID] = records.VoidType()
    for item in list(found.values()):
        if item.array_oid:
            found[item.array_oid] = arrays.ArrayType(item.array_oid, item)
    for name in (
        "any", "anyarray", "anyelement", "anynonarray", "anyenum", "anyrange", "anymultirange",
        "anycompatible", "anycompatiblearray", "anycompatiblenonarray", "anycompatiblerange",
        "anycompatiblemultirange", "internal", "trigger",
    ):
        oid = getattr(sqltype, name.upper())
        found[oid] = _OpaqueType(oid, name, f'"{name}"' if name == "any" else name, category="P")
    return found


@cache
def _names() -> dict[str, DataType]:
    return {item.name: item for item in _builtin().values()}


def by_name(name: str) -> DataType | None:
    """The built-in type of a catalog name (int4, _text)."""
    return _names().get(name)


def is_known(oid: int) -> bool:
    """Whether a built-in type of that OID is implemented."""
    return oid in _builtin()


def get(oid: int, snapshot: CatalogSnapshot | None = None) -> DataType:
    """The type of an OID; user-defined ones need the snapshot. 42704 for an unknown OID."""
    found = _builtin().get(oid)
    if found is not None:
        return found
    entry = _entry(oid, snapshot)
    if entry is None:
        raise errors.UndefinedObject(f"type with OID {oid} does not exist")
    if entry.kind == "d":
        return get(entry.base_type, snapshot)
    if entry.is_array:
        return arrays.ArrayType(oid, get(entry.element, snapshot), delimiter=entry.delimiter)
    if entry.kind == "c":
        return _composite(entry, snapshot)
    return _from_entry(entry)


def _entry(oid: int, snapshot: CatalogSnapshot | None) -> TypeEntry | None:
    if snapshot is not None:
        return snapshot.type(oid)
    from gpudb.catalog import builtin

    return builtin.types().get(oid)


@lru_cache(_USER_TYPES_MAX)
def _from_entry(entry: TypeEntry) -> DataType:
    if entry.kind == "e":
        labels = getattr(entry.source, "labels", ())
        ordered = sorted(labels, key=lambda item: item.sort_order)
        return records.EnumDataType(
            entry.oid, entry.name, tuple(item.label for item in ordered), array_oid=entry.array
        )
    return _OpaqueType(
        entry.oid, entry.name, entry.name, array_oid=entry.array, category=entry.category
    )


def _composite(entry: TypeEntry, snapshot: CatalogSnapshot | None) -> DataType:
    relation = entry.source
    if relation is None and snapshot is not None:
        relation = snapshot.relation_by_oid(entry.relation)
    columns = getattr(relation, "columns", ())
    fields = tuple((c.type_oid, c.typmod) for c in columns if not c.is_dropped)
    return records.RecordType(
        entry.oid, entry.name, lambda oid: get(oid, snapshot), array_oid=entry.array,
        fields=fields,
    )


def array_of(oid: int, snapshot: CatalogSnapshot | None = None) -> int:
    """The OID of the array type of an element type, 0 without one."""
    return get(oid, snapshot).array_oid


def format_type(oid: int, typmod: int = -1, snapshot: CatalogSnapshot | None = None) -> str:
    """The SQL name of a type with its modifier, such as ``timestamp(3) without time zone``.

    Names of user-defined types are not qualified here.
    """
    if oid == 0:
        return "-"
    try:
        found = get(oid, snapshot)
    except errors.UndefinedObject:
        return "???"
    if isinstance(found, arrays.ArrayType):
        return format_type(found.element.oid, typmod, snapshot) + "[]"
    if typmod == -1 or not found.typmod_out(typmod):
        return "bpchar" if oid == sqltype.BPCHAR and typmod == -2 else found.sql_name
    first, space, rest = found.sql_name.partition(" ")
    if oid in (sqltype.TIME, sqltype.TIMETZ, sqltype.TIMESTAMP, sqltype.TIMESTAMPTZ):
        return first + found.typmod_out(typmod) + space + rest
    return found.sql_name + found.typmod_out(typmod)
