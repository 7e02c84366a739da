"""Writes the changes of one commit as rows, inside the store's transaction."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from gpudb.catalog import records
from gpudb.catalog.catalog import CatalogSnapshot
from gpudb.catalog.changes import (
    AddSegments,
    Change,
    Create,
    Drop,
    EndSegments,
    Replace,
    SetComment,
    SetDeletes,
    SetStatistics,
    Truncate,
    class_of,
)
from gpudb.catalog.objects import (
    CatalogObject,
    Comment,
    DeleteVector,
    DomainType,
    ObjectClass,
    Relation,
    RelationKind,
    SegmentRef,
)
from gpudb.catalog.sequences import Sequences
from gpudb.catalog.sqlite import run


class Writer:
    """Rows from ``before`` to ``after``, the snapshots around the commit.

    A row that begins and ends within one snapshot (created and dropped by the same
    transaction) was never visible and is removed again.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        before: CatalogSnapshot,
        after: CatalogSnapshot,
        sequences: Sequences,
    ) -> None:
        self._connection = connection
        self._sequences = sequences
        self._before = before
        self._after = after
        self._id = after.id

    def write(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._write(change)
        for table in ("object", "delete_vector"):
            run(
                self._connection,
                f'DELETE FROM {table} WHERE "end" = ? AND begin = ?',
                (self._id, self._id),
            )

    def _write(self, change: Change) -> None:
        match change:
            case Create(item):
                self._put(class_of(item), str(item.oid), records.encode_object(item))
                self._create_sequence(item)
            case Replace(item):
                self._put(class_of(item), str(item.oid), records.encode_object(item))
            case Drop(class_id, oid):
                self._drop(class_id, oid)
            case SetComment(comment):
                self._put_comment(comment)
            case SetStatistics(statistics):
                body = records.encode_statistics(statistics)
                self._put(ObjectClass.STATISTICS, str(statistics.relation), body)
            case AddSegments(relation, segments):
                self._add_segments(relation, segments)
            case EndSegments(_, segment_ids):
                for segment in segment_ids:
                    self._end_segment(segment)
            case SetDeletes(relation, segment, vector):
                if segment in self._after.data(relation).deletes:
                    self._put_vector(segment, vector)
            case Truncate(relation):
                self._end_table(relation)

    # Objects

    def _end(self, class_id: int, key: str) -> None:
        run(
            self._connection,
            'UPDATE object SET "end" = ? WHERE class = ? AND key = ? AND "end" IS NULL',
            (self._id, class_id, key),
        )

    def _put(self, class_id: int, key: str, body: str | bytes) -> None:
        self._end(class_id, key)
        run(
            self._connection,
            "INSERT OR REPLACE INTO object VALUES (?, ?, ?, NULL, ?)",
            (class_id, key, self._id, body),
        )

    def _put_comment(self, comment: Comment) -> None:
        key = f"{comment.class_id}.{comment.oid}.{comment.subid}"
        if comment.text:
            self._put(ObjectClass.COMMENT, key, records.encode_object(comment))
        else:
            self._end(ObjectClass.COMMENT, key)

    def _create_sequence(self, item: CatalogObject) -> None:
        if isinstance(item, Relation) and item.sequence is not None:
            last_value, is_called = self._sequences.current(item)
            run(
                self._connection,
                "INSERT INTO sequence VALUES (?, ?, ?)",
                (item.oid, last_value, int(is_called)),
            )

    def _drop(self, class_id: ObjectClass, oid: int) -> None:
        self._end(class_id, str(oid))
        run(
            self._connection,
            'UPDATE object SET "end" = ? WHERE class = ? AND key >= ? AND key < ? '
            'AND "end" IS NULL',
            (self._id, ObjectClass.COMMENT, f"{int(class_id)}.{oid}.", f"{int(class_id)}.{oid}/"),
        )
        if class_id == ObjectClass.RELATION:
            self._drop_relation(oid)
        elif class_id == ObjectClass.TYPE:
            item = self._before.object(ObjectClass.TYPE, oid)
            if isinstance(item, DomainType):
                for constraint in self._before.domain_constraints(oid):
                    self._drop(ObjectClass.CONSTRAINT, constraint.oid)

    def _drop_relation(self, oid: int) -> None:
        self._end(ObjectClass.STATISTICS, str(oid))
        self._end_table(oid)
        for row in self._parts(oid):
            self._drop(*row)
        relation = self._before.relation_by_oid(oid)
        if relation is None or relation.kind == RelationKind.SEQUENCE:
            run(self._connection, "DELETE FROM sequence WHERE oid = ?", (oid,))

    def _parts(self, oid: int) -> list[tuple[ObjectClass, int]]:
        """Indexes and constraints of a table, also those that this commit created."""
        found = run(
            self._connection,
            'SELECT class, key FROM object WHERE "end" IS NULL AND ('
            "(class = ? AND json_extract(body, '$.index.table') = ?) OR "
            "(class = ? AND json_extract(body, '$.relation') = ?))",
            (ObjectClass.RELATION, oid, ObjectClass.CONSTRAINT, oid),
        )
        return [(ObjectClass(class_id), int(key)) for class_id, key in found]

    # Data

    def _add_segments(self, relation: int, segments: tuple[SegmentRef, ...]) -> None:
        """Segments with the row0 that ``after`` gave them; skips those already ended again."""
        placed = {s.id: s for s in self._after.data(relation).segments}
        for segment in segments:
            final = placed.get(segment.id)
            if final is not None:
                self._insert_segment(final)

    def _insert_segment(self, segment: SegmentRef) -> None:
        run(
            self._connection,
            "INSERT INTO segment VALUES (?,?,?,NULL,?,?,?,?,?,?,?,?,?,?,?)",
            (
                segment.id,
                segment.relation,
                self._id,
                segment.rows,
                segment.size_bytes,
                segment.path,
                segment.row0,
                segment.level,
                segment.schema_version,
                segment.footer_offset,
                segment.footer_length,
                segment.footer_checksum,
                records.encode_columns(segment.columns),
                segment.image,
            ),
        )

    def _end_segment(self, segment: int) -> None:
        for table, key in (("segment", "id"), ("delete_vector", "segment")):
            run(
                self._connection,
                f'UPDATE {table} SET "end" = ? WHERE {key} = ? AND "end" IS NULL',
                (self._id, segment),
            )

    def _end_table(self, relation: int) -> None:
        for (segment,) in run(
            self._connection,
            'SELECT id FROM segment WHERE relation = ? AND "end" IS NULL',
            (relation,),
        ):
            self._end_segment(segment)

    def _put_vector(self, segment: int, vector: DeleteVector) -> None:
        run(
            self._connection,
            'UPDATE delete_vector SET "end" = ? WHERE segment = ? AND "end" IS NULL',
            (self._id, segment),
        )
        run(
            self._connection,
            "INSERT OR REPLACE INTO delete_vector VALUES (?, ?, NULL, ?, ?, ?, ?)",
            (segment, self._id, vector.rows, vector.encoding, vector.data, vector.path),
        )
