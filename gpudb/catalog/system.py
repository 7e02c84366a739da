"""Rows of the system relations: built-ins, user objects, and what the running server reports.

A system relation without an SQL definition gets its rows here, as whole columns. Built-in rows
are decoded once; rows of user objects are appended for a snapshot and the result is cached by
(relation, catalog version, database). Relations that show data or the running server are made
anew each time; the latter come from *providers*, registered by name (``pg_catalog.pg_locks``),
and are empty without one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpudb.catalog import builtin, system_data, system_objects, system_relations
from gpudb.catalog.catalog import CatalogSnapshot
from gpudb.catalog.objects import ColumnDef, Relation
from gpudb.catalog.types.base import ArrayValue, HostValue

CACHE_ENTRIES_MAX = 64
"""Relations with user rows kept, over all catalog versions."""

_NUMPY_TYPES: dict[int, type[np.generic]] = {
    16: np.bool_,
    20: np.int64,
    21: np.int16,
    23: np.int32,
    24: np.int64,  # regproc
    26: np.int64,  # oid
    28: np.int64,  # xid
    700: np.float32,
    701: np.float64,
    2205: np.int64,
    2206: np.int64,
}
_ARROW_NUMPY: dict[str, type[np.generic]] = {
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "float": np.float32,
    "double": np.float64,
}
_ZERO_BASED = {22: 21, 30: 26}
"""int2vector and oidvector: arrays whose subscripts start at 0, and their element type."""


@dataclass(frozen=True, slots=True)
class SystemColumn:
    """A column of R values.

    ``values`` is a numpy array for fixed-width types (bool, int2/4/8, float4/8; oid, xid and reg*
    as int64), with ``valid`` bool (R) or None when no value is NULL; for all other types a list
    of R host values (catalog.types.base) with None for NULL.
    """

    name: str
    type_oid: int
    typmod: int
    not_null: bool
    values: npt.NDArray[Any] | list[HostValue]
    valid: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class SystemRows:
    """All rows of a system relation. ``is_cached``: the same object until the catalog changes."""

    columns: tuple[SystemColumn, ...]
    rows: int
    is_cached: bool


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What rows may depend on besides the catalog."""

    role: int
    user_name: str
    process_id: int = 0
    temporary_schema: int = 0


Row = Sequence[HostValue]
Provider = Callable[[CatalogSnapshot, SessionInfo], Iterable[Row]]
RowSource = Callable[[CatalogSnapshot], Iterable[Row]]


@cache
def _static_sources() -> Mapping[str, RowSource]:
    """Rows that depend on definitions only, by qualified name."""
    return {**system_relations.SOURCES, **system_objects.SOURCES}


@cache
def _data_sources() -> Mapping[str, RowSource]:
    return system_data.SOURCES


class SystemCatalog:
    """The rows of every system relation of one server; thread-safe."""

    def __init__(self, providers: Mapping[str, Provider] | None = None) -> None:
        self._providers = dict(providers or {})
        self._cache: OrderedDict[tuple[int, int, int], SystemRows] = OrderedDict()
        self._lock = threading.Lock()

    def register(self, name: str, provider: Provider) -> None:
        """Give ``schema.relation`` its rows: sequences of host values in column order."""
        self._providers[name] = provider

    def rows(
        self, relation: Relation, snapshot: CatalogSnapshot, session: SessionInfo
    ) -> SystemRows:
        """All rows of a system relation that has no SQL definition."""
        schema = snapshot.schema_by_oid(relation.schema)
        name = f"{schema.name if schema else ''}.{relation.name}"
        provider = self._providers.get(name)
        if provider is not None:
            return _assembled(relation, provider(snapshot, session), None, is_cached=False)
        source = _data_sources().get(name)
        if source is not None:
            return _assembled(relation, source(snapshot), None, is_cached=False)
        return self._cached(relation, name, snapshot)

    def _cached(self, relation: Relation, name: str, snapshot: CatalogSnapshot) -> SystemRows:
        source = _static_sources().get(name)
        if source is None:
            return _builtin_rows(relation.oid, name)
        key = (relation.oid, snapshot.version, snapshot.database)
        with self._lock:
            found = self._cache.get(key)
            if found is not None:
                self._cache.move_to_end(key)
                return found
        made = _assembled(relation, source(snapshot), name, is_cached=True)
        with self._lock:
            self._cache[key] = made
            if len(self._cache) > CACHE_ENTRIES_MAX:
                self._cache.popitem(last=False)
        return made


def _assembled(
    relation: Relation, rows: Iterable[Row], builtin_name: str | None, *, is_cached: bool
) -> SystemRows:
    listed = list(rows)
    base = () if builtin_name is None else _builtin_columns(builtin_name, relation.oid)
    if not listed and base:
        return SystemRows(base, len(base[0].values), is_cached)
    turned: Sequence[Sequence[HostValue]]
    turned = list(zip(*listed, strict=True)) if listed else [()] * len(relation.columns)
    assert len(turned) == len(relation.columns), relation.name
    columns = [
        _column(definition, values)
        for definition, values in zip(relation.columns, turned, strict=True)
    ]
    if base:
        columns = [_joined(a, b) for a, b in zip(base, columns, strict=True)]
    count = len(columns[0].values) if columns else 0
    return SystemRows(tuple(columns), count, is_cached)


def _made(
    definition: ColumnDef,
    values: npt.NDArray[Any] | list[HostValue],
    valid: npt.NDArray[np.bool_] | None = None,
) -> SystemColumn:
    return SystemColumn(
        definition.name,
        definition.type_oid,
        definition.typmod,
        definition.not_null,
        values,
        valid,
    )


def _column(definition: ColumnDef, values: Sequence[HostValue]) -> SystemColumn:
    dtype = _NUMPY_TYPES.get(definition.type_oid)
    if dtype is None:
        return _made(definition, list(values))
    if None not in values:
        return _made(definition, np.array(values, dtype))
    valid = np.array([value is not None for value in values], np.bool_)
    return _made(definition, np.array([value or 0 for value in values], dtype), valid)


def _joined(first: SystemColumn, second: SystemColumn) -> SystemColumn:
    values: npt.NDArray[Any] | list[HostValue]
    valid = None
    if isinstance(first.values, np.ndarray):
        values = np.concatenate([first.values, np.asarray(second.values)])
        if first.valid is not None or second.valid is not None:
            valid = np.concatenate([_validity(first), _validity(second)])
    else:
        values = [*first.values, *second.values]
    return SystemColumn(first.name, first.type_oid, first.typmod, first.not_null, values, valid)


def _validity(column: SystemColumn) -> npt.NDArray[np.bool_]:
    return np.ones(len(column.values), np.bool_) if column.valid is None else column.valid


# Built-in rows


@cache
def _builtin_rows(relation_oid: int, name: str) -> SystemRows:
    """A relation to which users add nothing."""
    relation = builtin.relation(relation_oid)
    assert relation is not None
    return _assembled(relation, (), name, is_cached=True)


@cache
def _builtin_columns(name: str, relation_oid: int) -> tuple[SystemColumn, ...]:
    """The rows of builtin.arrow; () for a relation that has none there."""
    short = name.removeprefix("pg_catalog.")
    relation = builtin.relation(relation_oid)
    if relation is None or not builtin.has_table(short):
        return ()
    table = builtin.table(short)
    return tuple(
        _from_arrow(definition, table.column(definition.name)) for definition in relation.columns
    )


def _from_arrow(definition: ColumnDef, column: pa.ChunkedArray) -> SystemColumn:
    dtype = _NUMPY_TYPES.get(definition.type_oid)
    if column.num_chunks == 0:
        return _made(definition, [] if dtype is None else np.empty(0, dtype))
    assert column.num_chunks == 1, "generate_builtin writes one batch a relation"
    array = column.chunk(0)
    if dtype is not None:
        values, valid = _numpy(array)
        return _made(definition, values.astype(dtype), valid)
    if pa.types.is_list(array.type):
        lower = 0 if definition.type_oid in _ZERO_BASED else 1
        element = _ZERO_BASED.get(definition.type_oid)
        if element is None:
            element = builtin.types()[definition.type_oid].element
        return _made(definition, [_array(element, v, lower) for v in array.to_pylist()])
    return _made(definition, array.to_pylist())


def _numpy(array: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """Values and validity; pyarrow's own conversions import its compute module (0.3 s)."""
    span = slice(array.offset, array.offset + len(array))
    validity, data = array.buffers()
    valid = None if validity is None or not array.null_count else _bits(validity)[span]
    if data is None:
        return np.empty(0, np.int64), valid
    if pa.types.is_boolean(array.type):
        return _bits(data)[span], valid
    return np.frombuffer(data, _ARROW_NUMPY[str(array.type)])[span], valid


def _bits(buffer: pa.Buffer) -> npt.NDArray[np.bool_]:
    return np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little").astype(np.bool_)


def _array(element: int, items: list[HostValue] | None, lower: int) -> ArrayValue | None:
    if items is None:
        return None
    if not items:
        return ArrayValue(element, ())
    return ArrayValue(element, tuple(items), (len(items),), (lower,))
