"""Reads a snapshot out of the catalog's SQLite file."""

from __future__ import annotations

from typing import Any

import apsw

from gpudb.catalog import records
from gpudb.catalog.catalog import CatalogSnapshot
from gpudb.catalog.changes import Create
from gpudb.catalog.maps import CatalogMaps, MapsBuilder
from gpudb.catalog.objects import (
    DATABASE_POSTGRES,
    DeleteVector,
    ObjectClass,
    SegmentRef,
    TableData,
)
from gpudb.catalog.sqlite import run

_ORDER = (
    ObjectClass.DATABASE,
    ObjectClass.ROLE,
    ObjectClass.SCHEMA,
    ObjectClass.TYPE,
    ObjectClass.RELATION,
    ObjectClass.CONSTRAINT,
    ObjectClass.FUNCTION,
    ObjectClass.MODEL,
)
_VISIBLE = 'begin <= :id AND ("end" IS NULL OR "end" > :id)'
_SEGMENT_FIELDS = (
    "id, relation, rows, bytes, columns, path, image, footer_offset, footer_length, "
    "footer_checksum, row0, level, schema_version"
)


def load(connection: apsw.Connection, snapshot_id: int, *, is_current: bool) -> CatalogSnapshot:
    """The snapshot of that id; ``is_current`` reads what has no end, the last one."""
    visible = '"end" IS NULL' if is_current else _VISIBLE
    values = {} if is_current else {"id": snapshot_id}
    builder = MapsBuilder(CatalogMaps())
    objects = _read_objects(connection, visible, values)
    for class_id in _ORDER:
        for item in sorted(objects.get(class_id, ()), key=lambda o: o.oid):
            builder.apply(Create(item))
    maps = builder.maps
    for comment in objects.get(ObjectClass.COMMENT, ()):
        maps.comments[(comment.class_id, comment.oid, comment.subid)] = comment
    for statistics in objects.get(ObjectClass.STATISTICS, ()):
        maps.statistics[statistics.relation] = statistics
    maps.data.update(_read_data(connection, visible, values))
    return CatalogSnapshot(maps, id=snapshot_id, database=DATABASE_POSTGRES)


def _read_objects(
    connection: apsw.Connection, visible: str, values: dict[str, Any]
) -> dict[ObjectClass, list[Any]]:
    found: dict[ObjectClass, list[Any]] = {}
    query = f"SELECT class, body FROM object WHERE {visible}"
    for number, body in run(connection, query, values):
        class_id = ObjectClass(number)
        if class_id == ObjectClass.STATISTICS:
            item: Any = records.decode_statistics(body)
        else:
            item = records.decode_object(class_id, body)
        found.setdefault(class_id, []).append(item)
    return found


def _read_data(
    connection: apsw.Connection, visible: str, values: dict[str, Any]
) -> dict[int, TableData]:
    segments: dict[int, list[SegmentRef]] = {}
    owners: dict[int, int] = {}
    query = f"SELECT {_SEGMENT_FIELDS} FROM segment WHERE {visible} ORDER BY relation, row0, id"
    for id_, relation, rows, size, columns, *rest in run(connection, query, values):
        ref = SegmentRef(id_, relation, rows, size, records.decode_columns(columns), *rest)
        segments.setdefault(relation, []).append(ref)
        owners[id_] = relation
    vectors: dict[int, dict[int, DeleteVector]] = {}
    query = f"SELECT segment, rows, encoding, data, path FROM delete_vector WHERE {visible}"
    for segment, rows, encoding, data, path in run(connection, query, values):
        vector = DeleteVector(rows, encoding, data, path)
        vectors.setdefault(owners[segment], {})[segment] = vector
    return {
        relation: TableData(
            tuple(refs), vectors.get(relation, {}), max(s.row0 + s.rows for s in refs)
        )
        for relation, refs in segments.items()
    }
