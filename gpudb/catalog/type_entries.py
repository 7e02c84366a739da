"""Rows of pg_type as the catalog needs them: built-in types and those that users made."""

from __future__ import annotations

from dataclasses import dataclass

from gpudb.catalog.objects import DomainType, EnumType, Relation


@dataclass(frozen=True, slots=True)
class TypeEntry:
    """A type. ``kind`` is typtype: 'b' base or array, 'c' composite, 'd' domain, 'e' enum,
    'p' pseudo, 'r' range, 'm' multirange. ``element`` is set for true arrays and for the fixed
    ones (name, point); ``array`` is the OID of its array type, 0 without one.
    """

    oid: int
    schema: int
    name: str
    owner: int
    kind: str
    category: str
    element: int = 0
    array: int = 0
    relation: int = 0
    base_type: int = 0
    typmod: int = -1
    is_array: bool = False
    delimiter: str = ","
    source: EnumType | DomainType | Relation | None = None


def _array_name(name: str) -> str:
    return ("_" + name.encode()[:62].decode(errors="ignore")) if len(name) else "_"


def _pair(entry: TypeEntry) -> tuple[TypeEntry, ...]:
    if not entry.array:
        return (entry,)
    array = TypeEntry(
        oid=entry.array,
        schema=entry.schema,
        name=_array_name(entry.name),
        owner=entry.owner,
        kind="b",
        category="A",
        element=entry.oid,
        is_array=True,
    )
    return (entry, array)


def entries_of(item: EnumType | DomainType | Relation) -> tuple[TypeEntry, ...]:
    """The types an object brings along: itself or its row type, and the array of it."""
    if isinstance(item, Relation):
        if not item.row_type:
            return ()
        return _pair(
            TypeEntry(
                oid=item.row_type,
                schema=item.schema,
                name=item.name,
                owner=item.owner,
                kind="c",
                category="C",
                array=item.array_type,
                relation=item.oid,
                source=item,
            )
        )
    is_enum = isinstance(item, EnumType)
    return _pair(
        TypeEntry(
            oid=item.oid,
            schema=item.schema,
            name=item.name,
            owner=item.owner,
            kind="e" if is_enum else "d",
            category="E" if is_enum else "U",
            array=item.array_type,
            base_type=0 if isinstance(item, EnumType) else item.base_type,
            typmod=-1 if isinstance(item, EnumType) else item.typmod,
            source=item,
        )
    )
