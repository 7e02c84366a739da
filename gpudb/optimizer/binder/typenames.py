"""Type names to types: search path, arrays, modifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog.type_entries import TypeEntry
from gpudb.optimizer.binder import literals
from gpudb.optimizer.statements.nodes.base import TypeName
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

_FIELD_BITS = {"month": 1, "year": 2, "day": 3, "hour": 10, "minute": 11, "second": 12}
_FIELD_ORDER = ("year", "month", "day", "hour", "minute", "second")
_FULL_RANGE = 0x7FFF


def resolve(binder: Binder, name: TypeName) -> SqlType:
    """The type a name means. Raises UndefinedObject (42704), 3F000, 0A000 for SETOF."""
    if name.is_set:
        raise errors.SyntaxError(
            "type modifier cannot be applied to SETOF", position=name.position
        )
    entry = find(binder, name)
    if entry is None:
        shown = f"{name.schema}.{name.name}" if name.schema else name.name
        brackets = "[]" if name.bounds else ""
        raise errors.UndefinedObject(
            f'type "{shown}{brackets}" does not exist', position=name.position
        )
    typmod = _typmod(binder, name, entry)
    if not name.bounds or entry.is_array:
        return SqlType(entry.oid, typmod)
    if not entry.array:
        raise errors.UndefinedObject(
            f"could not find array type for data type {binder.types.name(entry.oid)}",
            position=name.position,
        )
    return SqlType(entry.array, typmod)


def find(binder: Binder, name: TypeName) -> TypeEntry | None:
    """The type's row without array bounds, None when there is no such type."""
    if not name.schema:
        return binder.snapshot.resolve_type(name.name, binder.context.path)
    schema = binder.snapshot.schema(name.schema)
    if schema is None:
        raise errors.InvalidSchemaName(
            f'schema "{name.schema}" does not exist', position=name.position
        )
    return binder.snapshot.type_in(schema.oid, name.name)


def _typmod(binder: Binder, name: TypeName, entry: TypeEntry) -> int:
    if entry.oid == t.INTERVAL:
        return _interval_typmod(binder, name)
    if not name.modifiers:
        return -1
    modifiers: tuple[int | str, ...] = tuple(
        int(text) if text.lstrip("-").isdigit() else text for text in name.modifiers
    )
    try:
        return literals.data_type(binder, entry.oid).typmod_in(modifiers)
    except errors.SqlError as error:
        error.position = error.position or name.position
        raise


def _interval_typmod(binder: Binder, name: TypeName) -> int:
    if not name.fields and not name.modifiers:
        return -1
    mask = _FULL_RANGE
    if name.fields:
        first, _, last = name.fields.partition(" to ")
        covered = _FIELD_ORDER[
            _FIELD_ORDER.index(first) : _FIELD_ORDER.index(last or first) + 1
        ]
        mask = sum(1 << _FIELD_BITS[word] for word in covered)
    precision = tuple(int(text) for text in name.modifiers)
    return literals.data_type(binder, t.INTERVAL).typmod_in((mask, *precision))
