"""What can be converted to what: categories, domains, arrays, casts, common types.

The rules are those of PostgreSQL's parse_coerce.c and of the manual's chapter "Type Conversion".
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog import signatures
from gpudb.catalog.objects import SCHEMA_PG_CATALOG

if TYPE_CHECKING:
    from gpudb.catalog.catalog import CatalogSnapshot
    from gpudb.catalog.search_path import SearchPath
    from gpudb.catalog.type_entries import TypeEntry


class Context(enum.IntEnum):
    """How much conversion a place allows; a cast of a weaker context applies everywhere."""

    IMPLICIT = 0
    ASSIGNMENT = 1
    EXPLICIT = 2


class Path(enum.Enum):
    """The means of a conversion."""

    RELABEL = "relabel"
    FUNCTION = "function"
    ARRAY = "array"
    TEXT_IO = "text"


@dataclass(frozen=True, slots=True)
class Conversion:
    """``function`` is the cast function's OID for Path.FUNCTION, else 0."""

    path: Path
    function: int = 0


UNDETERMINED = -2
_VECTORS = (t.INT2VECTOR, t.OIDVECTOR)
_EXACT_FAMILY = frozenset((t.ANYELEMENT, t.ANYARRAY, t.ANYNONARRAY, t.ANYENUM))
_CONTEXTS = {"i": Context.IMPLICIT, "a": Context.ASSIGNMENT, "e": Context.EXPLICIT}
SQL_NAMES = {
    t.BOOL: "boolean",
    t.CHAR: '"char"',
    t.INT2: "smallint",
    t.INT4: "integer",
    t.INT8: "bigint",
    t.FLOAT4: "real",
    t.FLOAT8: "double precision",
    t.NUMERIC: "numeric",
    t.BPCHAR: "character",
    t.VARCHAR: "character varying",
    t.TIME: "time without time zone",
    t.TIMETZ: "time with time zone",
    t.TIMESTAMP: "timestamp without time zone",
    t.TIMESTAMPTZ: "timestamp with time zone",
    t.BIT: "bit",
    t.VARBIT: "bit varying",
    t.INTERVAL: "interval",
    t.ANY: '"any"',
}


class TypeSystem:
    """Facts about types at one catalog version; answers are kept."""

    def __init__(self, snapshot: CatalogSnapshot, path: SearchPath) -> None:
        self.snapshot = snapshot
        self.path = path
        self._conversions: dict[tuple[int, int, Context], Conversion | None] = {}
        self._bases: dict[int, int] = {}

    def entry(self, oid: int) -> TypeEntry:
        """The type's row; 42704 for a type that is gone."""
        found = self.snapshot.type(oid)
        if found is None:
            raise errors.UndefinedObject(f"type with OID {oid} does not exist")
        return found

    def category(self, oid: int) -> str:
        return self.entry(self.base(oid)).category

    def is_preferred(self, oid: int) -> bool:
        return oid in signatures.preferred_types()

    def base(self, oid: int) -> int:
        """The type under a domain; the type itself otherwise."""
        found = self._bases.get(oid)
        if found is None:
            found = oid
            while (entry := self.snapshot.type(found)) is not None and entry.kind == "d":
                found = entry.base_type
            self._bases[oid] = found
        return found

    def is_domain(self, oid: int) -> bool:
        return self.base(oid) != oid

    def base_and_typmod(self, oid: int, typmod: int) -> tuple[int, int]:
        """The base type of a domain and the type modifier that the domain sets."""
        while (entry := self.snapshot.type(oid)) is not None and entry.kind == "d":
            if entry.typmod >= 0:
                typmod = entry.typmod
            oid = entry.base_type
        return oid, typmod

    def element(self, oid: int) -> int:
        """The element type of a true array (or domain over one), else 0."""
        entry = self.snapshot.type(self.base(oid))
        return entry.element if entry is not None and entry.is_array else 0

    def subscript_element(self, oid: int) -> int:
        """The type of a subscripted value, fixed vectors included; 0 when not subscriptable."""
        oid = self.base(oid)
        if oid == t.INT2VECTOR:
            return t.INT2
        if oid == t.OIDVECTOR:
            return t.OID
        return self.element(oid)

    def array(self, element: int) -> int:
        """The array type over an element type, 0 without one."""
        entry = self.snapshot.type(element)
        return 0 if entry is None else entry.array

    def is_composite(self, oid: int) -> bool:
        entry = self.snapshot.type(self.base(oid))
        return entry is not None and entry.kind == "c"

    def is_enum(self, oid: int) -> bool:
        entry = self.snapshot.type(self.base(oid))
        return entry is not None and entry.kind == "e"

    # Names

    def name(self, oid: int, typmod: int = -1) -> str:
        """The type as messages show it (format_type)."""
        known = SQL_NAMES.get(oid)
        if known is not None:
            return known
        entry = self.snapshot.type(oid)
        if entry is None:
            return "???" if oid else "-"
        if entry.is_array and oid not in _VECTORS:
            return self.name(entry.element) + "[]"
        name = quoted(entry.name)
        if entry.schema == SCHEMA_PG_CATALOG or self._is_visible(entry):
            return name
        schema = self.snapshot.schema_by_oid(entry.schema)
        return name if schema is None else f"{quoted(schema.name)}.{name}"

    def _is_visible(self, entry: TypeEntry) -> bool:
        found = self.snapshot.resolve_type(entry.name, self.path)
        return found is not None and found.oid == entry.oid

    def names(self, oids: Sequence[int]) -> str:
        return ", ".join(self.name(oid) for oid in oids)

    # Conversions

    def conversion(self, source: int, target: int, context: Context) -> Conversion | None:
        """How ``source`` becomes ``target``, None when ``context`` does not allow it."""
        key = (source, target, context)
        if key in self._conversions:
            return self._conversions[key]
        found = self._conversions[key] = self._conversion(*key)
        return found

    def _conversion(self, source: int, target: int, context: Context) -> Conversion | None:
        source, target = self.base(source), self.base(target)
        if source == target:
            return Conversion(Path.RELABEL)
        cast = signatures.casts().get((source, target))
        if cast is not None:
            if _CONTEXTS[cast.context] > context:
                return None
            if cast.method == "f":
                return Conversion(Path.FUNCTION, cast.function)
            return Conversion(Path.TEXT_IO if cast.method == "i" else Path.RELABEL)
        from_element, to_element = self.element(source), self.element(target)
        if from_element and to_element and target not in _VECTORS:
            inner = self.conversion(from_element, to_element, context)
            if inner is not None:
                is_relabel = inner.path is Path.RELABEL
                return Conversion(Path.RELABEL if is_relabel else Path.ARRAY)
        if context >= Context.ASSIGNMENT and self.entry(target).category == "S":
            return Conversion(Path.TEXT_IO)
        if context >= Context.EXPLICIT and self.entry(source).category == "S":
            return Conversion(Path.TEXT_IO)
        return None

    def can_coerce(self, source: int, target: int, context: Context = Context.IMPLICIT) -> bool:
        """Whether one value can be converted; polymorphic targets are taken for possible."""
        if source == target or target == t.ANY or target in t.POLYMORPHIC:
            return True
        if source == t.UNKNOWN:
            return True
        if self.conversion(source, target, context) is not None:
            return True
        if source == t.RECORD:
            return self.is_composite(target)
        if target == t.RECORD:
            return self.is_composite(source)
        if target == t.RECORDARRAY:
            element = self.element(source)
            return bool(element) and self.is_composite(element)
        return False

    def can_coerce_all(
        self, sources: Sequence[int], targets: Sequence[int], context: Context = Context.IMPLICIT
    ) -> bool:
        """Whether every source can become its target, polymorphic ones agreeing."""
        is_generic = False
        for source, target in zip(sources, targets, strict=True):
            if target in t.POLYMORPHIC:
                is_generic = True
            if not self.can_coerce(source, target, context):
                return False
        return not is_generic or self.polymorphic(sources, targets, 0) is not None

    # Common types

    def common(self, oids: Sequence[int], what: str = "") -> int:
        """The type that UNION, CASE, ... give values of these types; TEXT for unknowns only.

        Raises DatatypeMismatch (42804) naming ``what``; with no ``what`` answers 0 instead.
        """
        first = oids[0]
        if first != t.UNKNOWN and all(oid == first for oid in oids):
            return first
        chosen = self.base(first)
        category = self.category(chosen)
        for oid in oids[1:]:
            other = self.base(oid)
            if other in (t.UNKNOWN, chosen):
                continue
            if chosen == t.UNKNOWN:
                chosen, category = other, self.category(other)
            elif self.category(other) != category:
                if not what:
                    return 0
                raise errors.DatatypeMismatch(
                    f"{what} types {self.name(chosen)} and {self.name(other)} cannot be matched"
                )
            elif (
                not self.is_preferred(chosen)
                and self.can_coerce(chosen, other)
                and not self.can_coerce(other, chosen)
            ):
                chosen = other
        return t.TEXT if chosen == t.UNKNOWN else chosen

    def polymorphic(
        self, actual: Sequence[int], declared: Sequence[int], result: int
    ) -> tuple[tuple[int, ...], int] | None:
        """The declared types with polymorphic ones replaced, and the result type.

        None when the actual types do not agree. Unknown arguments take part as PostgreSQL says:
        they follow the others, and are text where there are none.
        """
        exact = self._exact_family(actual, declared)
        if exact is None:
            return None
        common = self._common_family(actual, declared)
        if common is None:
            return None
        replaced = []
        for source, target in zip(actual, declared, strict=True):
            new = self._replacement(target, exact, common)
            if new is None:
                return None
            if new and source != t.UNKNOWN and not self._suits(source, target, new):
                return None
            replaced.append(new or target)
        if result in t.POLYMORPHIC:
            chosen = self._replacement(result, exact, common)
            if chosen is None:
                return None
            result = chosen or result
        return tuple(replaced), result

    def _suits(self, source: int, target: int, new: int) -> bool:
        if target == t.ANYARRAY:
            return source == new or self.element(source) == self.element(new)
        if target in _EXACT_FAMILY:
            return self.base(source) == self.base(new) or source == new
        return self.can_coerce(source, new)

    def _replacement(self, target: int, exact: int, common: int) -> int | None:
        """The type for a polymorphic one; 0 to leave the type as it is, None when there is none."""
        if target not in t.POLYMORPHIC:
            return 0
        if exact == UNDETERMINED and target in _EXACT_FAMILY:
            return 0
        if target in (t.ANYELEMENT, t.ANYNONARRAY, t.ANYENUM):
            return exact or None
        if target == t.ANYARRAY:
            if exact == -1:
                return t.ANYARRAY
            return self.array(exact) or None if exact else None
        if target in (t.ANYCOMPATIBLE, t.ANYCOMPATIBLENONARRAY):
            return common or None
        if target == t.ANYCOMPATIBLEARRAY:
            return self.array(common) or None if common else None
        return None

    def _exact_family(self, actual: Sequence[int], declared: Sequence[int]) -> int | None:
        """The element type of the anyelement family: 0 when not used, -1 for anyarray itself,
        UNDETERMINED when all its arguments are unknown.
        """
        element = 0
        is_used = needs_non_array = needs_enum = False
        for source, target in zip(actual, declared, strict=True):
            if target not in _EXACT_FAMILY:
                continue
            is_used = True
            needs_non_array |= target == t.ANYNONARRAY
            needs_enum |= target == t.ANYENUM
            if source == t.UNKNOWN:
                continue
            if target == t.ANYARRAY:
                if source == t.ANYARRAY:
                    return -1
                candidate = self.element(source)
                if not candidate:
                    return None
            else:
                candidate = source
            if element and candidate != element:
                return None
            element = candidate
        if not is_used:
            return 0
        if not element:
            return UNDETERMINED
        if needs_non_array and self.element(element):
            return None
        if needs_enum and not self.is_enum(element):
            return None
        return element

    def _common_family(self, actual: Sequence[int], declared: Sequence[int]) -> int | None:
        """The common type of the anycompatible family (0: not used)."""
        members: list[int] = []
        needs_non_array = False
        for source, target in zip(actual, declared, strict=True):
            if target in (t.ANYCOMPATIBLE, t.ANYCOMPATIBLENONARRAY):
                members.append(source)
                needs_non_array |= target == t.ANYCOMPATIBLENONARRAY
            elif target == t.ANYCOMPATIBLEARRAY:
                if source == t.UNKNOWN:
                    members.append(source)
                    continue
                element = self.element(source)
                if not element:
                    return None
                members.append(element)
        if not members:
            return 0
        known = [oid for oid in members if oid != t.UNKNOWN]
        chosen = self.common(known) if known else t.TEXT
        if not chosen or (needs_non_array and self.element(chosen)):
            return None
        return chosen


def quoted(name: str) -> str:
    """The identifier with quotes where SQL needs them."""
    is_plain = name.isascii() and name.replace("_", "a").replace("$", "a").isalnum()
    if is_plain and name == name.lower() and not name[0].isdigit():
        return name
    return '"' + name.replace('"', '""') + '"'
