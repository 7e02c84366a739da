"""What a transaction does to the catalog: a list of typed changes.

A change is applied to a snapshot (``CatalogSnapshot.apply``) to show a session its own work, and
handed to ``Store.commit`` to make it durable. Segment and object ids in it are final: they come
from blocks that the store reserved durably, so a gap may appear but never a reuse.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpudb.catalog.objects import (
    CatalogObject,
    Comment,
    Constraint,
    Database,
    DeleteVector,
    DomainType,
    EnumType,
    FunctionDef,
    Model,
    ObjectClass,
    Relation,
    RelationStatistics,
    Role,
    Schema,
    SegmentRef,
)


@dataclass(frozen=True, slots=True)
class Create:
    """A new object; its oid must be unused."""

    object: CatalogObject


@dataclass(frozen=True, slots=True)
class Replace:
    """A new definition of an existing object (ALTER, GRANT, CREATE OR REPLACE)."""

    object: CatalogObject


@dataclass(frozen=True, slots=True)
class Drop:
    """The end of an object and of what cannot live without it.

    A relation takes its constraints, indexes, data, statistics and comments along; what other
    objects need of it (``CatalogSnapshot.dependents``) is the caller's to drop or refuse.
    """

    class_id: ObjectClass
    oid: int


@dataclass(frozen=True, slots=True)
class SetComment:
    """COMMENT ON; an empty text removes it."""

    comment: Comment


@dataclass(frozen=True, slots=True)
class SetStatistics:
    statistics: RelationStatistics


@dataclass(frozen=True, slots=True)
class AddSegments:
    """New rows. Segments whose row0 is -1 get the next row numbers of the table."""

    relation: int
    segments: tuple[SegmentRef, ...]


@dataclass(frozen=True, slots=True)
class EndSegments:
    """Segments that no later snapshot shows, with their delete vectors."""

    relation: int
    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SetDeletes:
    """A new cumulative delete vector of one segment.

    When another commit changed the segment's vector since the transaction's base snapshot, a
    plain DELETE with no row in common is merged, anything else fails with 40001.
    """

    relation: int
    segment: int
    vector: DeleteVector
    is_plain_delete: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """The end of every row of a table."""

    relation: int


Change = (
    Create
    | Replace
    | Drop
    | SetComment
    | SetStatistics
    | AddSegments
    | EndSegments
    | SetDeletes
    | Truncate
)

DEFINITIONS = (Create, Replace, Drop, SetComment, SetStatistics)
"""Changes that give the catalog a new version; the others only move data."""

_CLASSES: dict[type, ObjectClass] = {
    Database: ObjectClass.DATABASE,
    Schema: ObjectClass.SCHEMA,
    Role: ObjectClass.ROLE,
    Relation: ObjectClass.RELATION,
    Constraint: ObjectClass.CONSTRAINT,
    EnumType: ObjectClass.TYPE,
    DomainType: ObjectClass.TYPE,
    FunctionDef: ObjectClass.FUNCTION,
    Model: ObjectClass.MODEL,
}


def class_of(item: CatalogObject) -> ObjectClass:
    """The class of an object, from its Python type."""
    return _CLASSES[type(item)]
