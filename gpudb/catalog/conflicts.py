"""Which concurrent commits may stand side by side, and how two deletes become one.

A transaction's changes were made on its base snapshot; others may have committed since. What
changed is told by comparing objects of the base and the current snapshot: unchanged ones are the
same Python object. insert || insert conflicts only where the table has a key, an insert with
deletes in the table that it references, both because neither statement saw the other's rows when
its constraints were checked; insert conflicts with a change of the table's columns; DDL with DDL
on the same object; delete with compaction of the same segment; deletes on one segment are merged
when both are plain and disjoint. Every conflict is 40001.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpudb import errors
from gpudb.catalog.changes import (
    AddSegments,
    Change,
    Create,
    Drop,
    EndSegments,
    Replace,
    SetDeletes,
    Truncate,
    class_of,
)
from gpudb.catalog.objects import (
    CatalogObject,
    Constraint,
    ConstraintKind,
    DeleteVector,
    ObjectClass,
    SegmentRef,
)

if TYPE_CHECKING:
    from gpudb.catalog.catalog import CatalogSnapshot

POSITIONS_MAX = 4096
"""From this many rows on a vector is written as a bitmap."""

_MESSAGE = "could not serialize access due to concurrent update"
_DELETED = "could not serialize access due to concurrent delete"


def reconcile(
    changes: Sequence[Change], base: CatalogSnapshot, current: CatalogSnapshot
) -> tuple[Change, ...]:
    """The changes to apply on ``current``; SerializationFailure (40001) when they conflict.

    Only the last delete vector of a segment is kept.
    """
    created = {(class_of(c.object), c.object.oid) for c in changes if isinstance(c, Create)}
    last_deletes = {c.segment: c for c in changes if isinstance(c, SetDeletes)}
    kept: list[Change] = []
    for change in changes:
        if isinstance(change, SetDeletes):
            if last_deletes[change.segment] is not change:
                continue
            change = rebased(change, base, current)
        elif current.id != base.id:
            _check(change, base, current, created)
        kept.append(change)
    check_constrained(changes, base, current)
    return tuple(kept)


def check_constrained(
    changes: Sequence[Change], base: CatalogSnapshot, current: CatalogSnapshot
) -> None:
    """40001 when rows committed since ``base`` could break a constraint checked on ``base``."""
    if current.id == base.id:
        return
    for change in changes:
        match change:
            case Create(Constraint() as added) if base.relation_by_oid(added.relation):
                is_broken = _gained(added.relation, base, current) or _can_break(
                    added, base, current
                )
            case AddSegments(relation):
                is_broken = any(
                    _can_break(c, base, current) for c in current.constraints(relation)
                )
            case SetDeletes(relation) | EndSegments(relation) | Truncate(relation):
                is_broken = any(
                    _gained(c.relation, base, current) for c in current.foreign_keys_to(relation)
                )
            case _:
                is_broken = False
        if is_broken:
            raise errors.SerializationFailure(_MESSAGE)


def _can_break(constraint: Constraint, base: CatalogSnapshot, current: CatalogSnapshot) -> bool:
    """Whether what others committed may clash with rows added under the constraint."""
    if constraint.kind in (ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE):
        return _gained(constraint.relation, base, current)
    if constraint.kind == ConstraintKind.FOREIGN_KEY:
        return _lost(constraint.referenced_table, base, current)
    return False


def _gained(relation: int, base: CatalogSnapshot, current: CatalogSnapshot) -> bool:
    before, now = base.data(relation), current.data(relation)
    if before is now:
        return False
    return not {s.id for s in now.segments} <= {s.id for s in before.segments}


def _lost(relation: int, base: CatalogSnapshot, current: CatalogSnapshot) -> bool:
    before, now = base.data(relation), current.data(relation)
    if before is now:
        return False
    return not {s.id for s in before.segments} <= {s.id for s in now.segments} or any(
        before.deletes.get(segment.id) is not now.deletes.get(segment.id)
        for segment in before.segments
    )


def _check(
    change: Change,
    base: CatalogSnapshot,
    current: CatalogSnapshot,
    created: set[tuple[ObjectClass, int]],
) -> None:
    match change:
        case Replace(item) if (class_of(item), item.oid) not in created:
            _check_same(base, current, class_of(item), item.oid)
        case Drop(class_id, oid) if (class_id, oid) not in created:
            _check_same(base, current, class_id, oid)
        case AddSegments(relation) if (ObjectClass.RELATION, relation) not in created:
            _check_columns(base, current, relation)
        case EndSegments(relation, segments):
            for segment in segments:
                if _vector(base, relation, segment) is not _vector(current, relation, segment):
                    raise errors.SerializationFailure(_DELETED)
        case Truncate(relation):
            if base.data(relation) is not current.data(relation):
                raise errors.SerializationFailure(_MESSAGE)
        case _:
            pass


def _check_same(
    base: CatalogSnapshot, current: CatalogSnapshot, class_id: ObjectClass, oid: int
) -> None:
    if base.object(class_id, oid) is not current.object(class_id, oid):
        raise errors.SerializationFailure(_MESSAGE)


def _check_columns(base: CatalogSnapshot, current: CatalogSnapshot, relation: int) -> None:
    before = base.relation_by_oid(relation)
    after = current.relation_by_oid(relation)
    if before is None and after is not None:
        return
    if after is None or before is None or before.columns != after.columns:
        raise errors.SerializationFailure(_MESSAGE)


def check_dependents(changes: Sequence[Change], after: CatalogSnapshot) -> None:
    """40001 when something that a concurrent commit made needs what these changes dropped."""
    for change in changes:
        if not isinstance(change, Drop) or change.class_id not in _HAS_DEPENDENTS:
            continue
        left: tuple[CatalogObject, ...] = after.dependents(change.class_id, change.oid)
        if left:
            raise errors.SerializationFailure(_MESSAGE)


_HAS_DEPENDENTS = frozenset(
    (ObjectClass.SCHEMA, ObjectClass.RELATION, ObjectClass.TYPE, ObjectClass.FUNCTION)
)


# Delete vectors


def positions(vector: DeleteVector) -> npt.NDArray[np.int32]:
    """The deleted rows in ascending order; the vector must not lie in a file."""
    assert vector.path is None, "a delete vector in a file is read by the storage layer"
    if vector.encoding == "positions":
        return np.frombuffer(vector.data, np.int32)
    bits = np.unpackbits(np.frombuffer(vector.data, np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.int32)


def delete_vector(rows: npt.NDArray[np.int32], segment_rows: int) -> DeleteVector:
    """The vector of those rows (ascending, distinct) of a segment of ``segment_rows`` rows."""
    if len(rows) < POSITIONS_MAX:
        return DeleteVector(len(rows), "positions", rows.astype(np.int32).tobytes())
    bits = np.zeros(segment_rows, np.uint8)
    bits[rows] = 1
    return DeleteVector(len(rows), "bitmap", np.packbits(bits, bitorder="little").tobytes())


def _vector(snapshot: CatalogSnapshot, relation: int, segment: int) -> DeleteVector | None:
    return snapshot.data(relation).deletes.get(segment)


def _segment(snapshot: CatalogSnapshot, relation: int, segment: int) -> SegmentRef | None:
    found = (s for s in snapshot.data(relation).segments if s.id == segment)
    return next(found, None)


def rebased(change: SetDeletes, base: CatalogSnapshot, current: CatalogSnapshot) -> SetDeletes:
    """The change made on ``base`` as it is on ``current``: both sets of rows deleted.

    SerializationFailure (40001) when the segment is gone, a row was deleted by both, or the
    change is an UPDATE's and another commit touched the segment.
    """
    before = _vector(base, change.relation, change.segment)
    now = _vector(current, change.relation, change.segment)
    if before is now:
        return change
    segment = _segment(current, change.relation, change.segment)
    if segment is None or now is None or not change.is_plain_delete:
        raise errors.SerializationFailure(_MESSAGE)
    if now.path or change.vector.path or (before is not None and before.path):
        raise errors.SerializationFailure(_DELETED)
    old = np.empty(0, np.int32) if before is None else positions(before)
    mine = np.setdiff1d(positions(change.vector), old, assume_unique=True)
    theirs = positions(now)
    if len(np.intersect1d(mine, theirs, assume_unique=True)):
        raise errors.SerializationFailure(_DELETED)
    merged = delete_vector(np.union1d(mine, theirs).astype(np.int32), segment.rows)
    return SetDeletes(change.relation, change.segment, merged, is_plain_delete=True)
