"""The maps behind a snapshot and the builder that derives the next ones.

Maps are plain dicts that nobody mutates once a snapshot holds them: a builder copies a map the
first time it writes to it, so applying an INSERT copies only the map of table data.
"""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass, field
from typing import Any

from gpudb import errors
from gpudb.catalog import builtin
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
    Constraint,
    Database,
    DomainType,
    EnumType,
    FunctionDef,
    Model,
    ObjectClass,
    Persistence,
    Relation,
    RelationKind,
    RelationStatistics,
    Role,
    Schema,
    TableData,
)
from gpudb.catalog.type_entries import TypeEntry, entries_of

_GONE = "could not serialize access due to concurrent update"


@dataclass(slots=True)
class CatalogMaps:
    """Objects by OID, and the indexes over them that look-ups use."""

    databases: dict[int, Database] = field(default_factory=dict)
    schemas: dict[int, Schema] = field(default_factory=dict)
    roles: dict[int, Role] = field(default_factory=dict)
    relations: dict[int, Relation] = field(default_factory=dict)
    constraints: dict[int, Constraint] = field(default_factory=dict)
    user_types: dict[int, EnumType | DomainType] = field(default_factory=dict)
    functions: dict[int, FunctionDef] = field(default_factory=dict)
    models: dict[int, Model] = field(default_factory=dict)
    comments: dict[tuple[int, int, int], Comment] = field(default_factory=dict)
    statistics: dict[int, RelationStatistics] = field(default_factory=dict)
    data: dict[int, TableData] = field(default_factory=dict)
    schema_names: dict[tuple[int, str], int] = field(default_factory=dict)
    relation_names: dict[tuple[int, str], int] = field(default_factory=dict)
    types: dict[int, TypeEntry] = field(default_factory=dict)
    type_names: dict[tuple[int, str], int] = field(default_factory=dict)
    function_names: dict[tuple[int, str], tuple[int, ...]] = field(default_factory=dict)
    constraints_of: dict[int, tuple[int, ...]] = field(default_factory=dict)
    indexes_of: dict[int, tuple[int, ...]] = field(default_factory=dict)


_COLLECTIONS = {
    ObjectClass.DATABASE: "databases",
    ObjectClass.SCHEMA: "schemas",
    ObjectClass.ROLE: "roles",
    ObjectClass.RELATION: "relations",
    ObjectClass.CONSTRAINT: "constraints",
    ObjectClass.TYPE: "user_types",
    ObjectClass.FUNCTION: "functions",
    ObjectClass.MODEL: "models",
}


def collection(maps: CatalogMaps, class_id: ObjectClass) -> dict[int, Any]:
    """The map of all user objects of a class."""
    found: dict[int, Any] = getattr(maps, _COLLECTIONS[class_id])
    return found


class MapsBuilder:
    """Applies changes to a copy of ``maps`` that shares every map it does not touch."""

    def __init__(self, maps: CatalogMaps) -> None:
        self.maps = copy.copy(maps)
        self._owned: set[str] = set()

    def _own(self, name: str) -> dict[Any, Any]:
        if name not in self._owned:
            self._owned.add(name)
            setattr(self.maps, name, dict(getattr(self.maps, name)))
        owned: dict[Any, Any] = getattr(self.maps, name)
        return owned

    def apply(self, change: Change) -> None:
        """Apply one change; raises Duplicate* for taken names and 40001 for what is gone."""
        match change:
            case Create(item):
                self._create(item)
            case Replace(item):
                self._replace(item)
            case Drop(class_id, oid):
                self._drop(class_id, oid)
            case SetComment(comment):
                self._set_comment(comment)
            case SetStatistics(statistics):
                self._require(statistics.relation)
                self._own("statistics")[statistics.relation] = statistics
            case AddSegments():
                self._add_segments(change)
            case EndSegments(relation, segments):
                self._end_segments(relation, frozenset(segments))
            case SetDeletes():
                self._set_deletes(change)
            case Truncate(relation):
                self._require(relation)
                self._own("data").pop(relation, None)

    # Definitions

    def _create(self, item: CatalogObject) -> None:
        class_id = class_of(item)
        if item.oid in collection(self.maps, class_id):
            raise errors.InternalError(f"oid {item.oid} of {class_id.name} is in use")
        self._check_schema(item)
        self._add_names(item)
        self._own(_COLLECTIONS[class_id])[item.oid] = item

    def _replace(self, item: CatalogObject) -> None:
        class_id = class_of(item)
        old = collection(self.maps, class_id).get(item.oid)
        if old is None:
            raise errors.SerializationFailure(_GONE)
        self._check_schema(item)
        self._remove_names(old)
        self._add_names(item)
        self._own(_COLLECTIONS[class_id])[item.oid] = item

    def _drop(self, class_id: ObjectClass, oid: int) -> None:
        item = collection(self.maps, class_id).get(oid)
        if item is None:
            raise errors.SerializationFailure(_GONE)
        if isinstance(item, Relation):
            self._drop_parts(item)
        if isinstance(item, DomainType):
            for constraint in [c for c in self.maps.constraints.values() if c.domain == oid]:
                self._drop(ObjectClass.CONSTRAINT, constraint.oid)
        self._remove_names(item)
        del self._own(_COLLECTIONS[class_id])[oid]
        gone = [key for key in self.maps.comments if key[0] == class_id and key[1] == oid]
        for key in gone:
            del self._own("comments")[key]

    def _drop_parts(self, relation: Relation) -> None:
        for index in self.maps.indexes_of.get(relation.oid, ()):
            self._drop(ObjectClass.RELATION, index)
        for constraint in self.maps.constraints_of.get(relation.oid, ()):
            self._drop(ObjectClass.CONSTRAINT, constraint)
        for name in ("statistics", "data"):
            if relation.oid in getattr(self.maps, name):
                del self._own(name)[relation.oid]

    def _set_comment(self, comment: Comment) -> None:
        key = (comment.class_id, comment.oid, comment.subid)
        if comment.text:
            self._own("comments")[key] = comment
        else:
            self._own("comments").pop(key, None)

    def _check_schema(self, item: CatalogObject) -> None:
        if isinstance(item, Database | Schema | Role):
            return
        if item.schema not in self.maps.schemas and item.schema not in builtin.schemas():
            raise errors.SerializationFailure(_GONE)

    # Names

    def _add_names(self, item: CatalogObject) -> None:
        match item:
            case Database():
                self._check_free(item, self.maps.databases, errors.DuplicateDatabase)
            case Role():
                self._check_free(item, self.maps.roles, errors.DuplicateObject)
            case Schema():
                self._claim("schema_names", (item.database, item.name), item.oid)
            case Relation():
                self._claim("relation_names", (item.schema, item.name), item.oid)
                self._add_types(item)
                if item.index is not None:
                    self._link("indexes_of", item.index.table, item.oid)
            case Constraint() if item.relation:
                self._check_constraint_name(item)
                self._link("constraints_of", item.relation, item.oid)
            case EnumType() | DomainType():
                self._add_types(item)
            case FunctionDef():
                self._check_signature(item)
                self._link("function_names", (item.schema, item.name), item.oid)
            case _:
                pass

    def _remove_names(self, item: CatalogObject) -> None:
        match item:
            case Schema():
                del self._own("schema_names")[(item.database, item.name)]
            case Relation():
                del self._own("relation_names")[(item.schema, item.name)]
                self._remove_types(item)
                if item.index is not None:
                    self._unlink("indexes_of", item.index.table, item.oid)
            case Constraint() if item.relation:
                self._unlink("constraints_of", item.relation, item.oid)
            case EnumType() | DomainType():
                self._remove_types(item)
            case FunctionDef():
                self._unlink("function_names", (item.schema, item.name), item.oid)
            case _:
                pass

    def _check_free(
        self, item: Database | Role, others: dict[int, Any], error: type[errors.SqlError]
    ) -> None:
        if any(other.name == item.name and oid != item.oid for oid, other in others.items()):
            raise error(f'{type(item).__name__.lower()} "{item.name}" already exists')

    def _claim(self, index: str, key: tuple[int, str], oid: int) -> None:
        if key in getattr(self.maps, index):
            if index == "schema_names":
                raise errors.DuplicateSchema(f'schema "{key[1]}" already exists')
            raise errors.DuplicateTable(f'relation "{key[1]}" already exists')
        self._own(index)[key] = oid

    def _link(self, index: str, key: Any, oid: int) -> None:
        links = self._own(index)
        links[key] = (*links.get(key, ()), oid)

    def _unlink(self, index: str, key: Any, oid: int) -> None:
        links = self._own(index)
        rest = tuple(other for other in links[key] if other != oid)
        if rest:
            links[key] = rest
        else:
            del links[key]

    def _check_constraint_name(self, item: Constraint) -> None:
        for oid in self.maps.constraints_of.get(item.relation, ()):
            if self.maps.constraints[oid].name == item.name:
                table = self.maps.relations[item.relation].name
                raise errors.DuplicateObject(
                    f'constraint "{item.name}" for relation "{table}" already exists'
                )

    def _check_signature(self, item: FunctionDef) -> None:
        for oid in self.maps.function_names.get((item.schema, item.name), ()):
            if self.maps.functions[oid].input_types() == item.input_types():
                raise errors.DuplicateFunction(
                    f'function "{item.name}" already exists with same argument types'
                )

    def _add_types(self, item: Relation | EnumType | DomainType) -> None:
        for entry in entries_of(item):
            name = entry.name
            while (entry.schema, name) in self.maps.type_names:
                if not entry.is_array:
                    raise errors.DuplicateObject(f'type "{name}" already exists')
                name = "_" + name
            entry = dataclasses.replace(entry, name=name, category=self._category(entry))
            self._own("types")[entry.oid] = entry
            self._own("type_names")[(entry.schema, name)] = entry.oid

    def _category(self, entry: TypeEntry) -> str:
        if not entry.base_type:
            return entry.category
        base = self.maps.types.get(entry.base_type) or builtin.types().get(entry.base_type)
        return entry.category if base is None else base.category

    def _remove_types(self, item: Relation | EnumType | DomainType) -> None:
        for entry in entries_of(item):
            old = self._own("types").pop(entry.oid)
            del self._own("type_names")[(old.schema, old.name)]

    # Data

    def _require(self, relation: int) -> None:
        if relation not in self.maps.relations:
            raise errors.SerializationFailure(_GONE)

    def _add_segments(self, change: AddSegments) -> None:
        self._require(change.relation)
        data = self.maps.data.get(change.relation, TableData())
        next_row = data.next_row
        added = []
        is_sorted = True
        for segment in change.segments:
            if segment.row0 < 0:
                segment = dataclasses.replace(segment, row0=next_row)
                next_row += segment.rows
            else:
                is_sorted = False
                next_row = max(next_row, segment.row0 + segment.rows)
            added.append(segment)
        segments = (*data.segments, *added)
        if not is_sorted:
            segments = tuple(sorted(segments, key=lambda s: (s.row0, s.id)))
        self._own("data")[change.relation] = TableData(segments, data.deletes, next_row)

    def _end_segments(self, relation: int, ended: frozenset[int]) -> None:
        data = self.maps.data.get(relation, TableData())
        kept = tuple(s for s in data.segments if s.id not in ended)
        if len(kept) + len(ended) != len(data.segments):
            raise errors.SerializationFailure(_GONE)
        deletes = {id_: v for id_, v in data.deletes.items() if id_ not in ended}
        self._own("data")[relation] = TableData(kept, deletes, data.next_row)

    def _set_deletes(self, change: SetDeletes) -> None:
        data = self.maps.data.get(change.relation, TableData())
        if not any(s.id == change.segment for s in data.segments):
            raise errors.SerializationFailure(_GONE)
        deletes = {**data.deletes, change.segment: change.vector}
        self._own("data")[change.relation] = TableData(data.segments, deletes, data.next_row)


def is_temporary(maps: CatalogMaps, change: Change) -> bool:
    """True for changes of objects that only this session sees (in its temporary schema)."""
    match change:
        case Create(item) | Replace(item):
            return _is_temporary_object(maps, item)
        case Drop(class_id, oid):
            dropped = collection(maps, class_id).get(oid)
            return dropped is not None and _is_temporary_object(maps, dropped)
        case SetComment(comment):
            if comment.class_id not in _COLLECTIONS:
                return False
            subject = collection(maps, ObjectClass(comment.class_id)).get(comment.oid)
            return subject is not None and _is_temporary_object(maps, subject)
        case SetStatistics(statistics):
            return _is_temporary_relation(maps, statistics.relation)
        case AddSegments() | EndSegments() | SetDeletes() | Truncate():
            return _is_temporary_relation(maps, change.relation)


def _is_temporary_relation(maps: CatalogMaps, oid: int) -> bool:
    relation = maps.relations.get(oid)
    return relation is not None and relation.persistence == Persistence.TEMPORARY


def _is_temporary_object(maps: CatalogMaps, item: CatalogObject) -> bool:
    if isinstance(item, Schema):
        return item.name.startswith("pg_temp_")
    if isinstance(item, Relation):
        return item.persistence == Persistence.TEMPORARY
    if isinstance(item, Constraint) and item.relation:
        return _is_temporary_relation(maps, item.relation)
    if isinstance(item, Database | Role):
        return False
    schema = maps.schemas.get(item.schema)
    return schema is not None and schema.name.startswith("pg_temp_")


def dependents(
    maps: CatalogMaps, class_id: ObjectClass, oid: int, subid: int = 0
) -> tuple[CatalogObject, ...]:
    """User objects that need the given one directly, its own parts left out."""
    found: dict[tuple[ObjectClass, int], CatalogObject] = {}

    def note(item: CatalogObject) -> None:
        found[(class_of(item), item.oid)] = item

    if class_id == ObjectClass.SCHEMA:
        for name in ("relations", "user_types", "functions", "models"):
            for item in getattr(maps, name).values():
                if item.schema == oid and not (isinstance(item, Relation) and item.index):
                    note(item)
        return tuple(found.values())
    type_oids = _type_oids(maps, class_id, oid) if not subid else frozenset()
    for item in _referencing(maps):
        if _needs(item, class_id, oid, subid) or (type_oids and _uses_type(item, type_oids)):
            note(item)
    found.pop((class_id, oid), None)
    return tuple(found.values())


def _type_oids(maps: CatalogMaps, class_id: ObjectClass, oid: int) -> frozenset[int]:
    if class_id == ObjectClass.TYPE:
        item = maps.user_types.get(oid)
        return frozenset(() if item is None else (item.oid, item.array_type))
    if class_id == ObjectClass.RELATION:
        relation = maps.relations.get(oid)
        if relation is not None and relation.row_type:
            return frozenset((relation.row_type, relation.array_type))
    return frozenset()


def _referencing(maps: CatalogMaps) -> list[CatalogObject]:
    return [
        *maps.relations.values(),
        *maps.constraints.values(),
        *maps.user_types.values(),
        *maps.functions.values(),
    ]


def _references(item: CatalogObject) -> list[tuple[int, int, int]]:
    own = getattr(item, "references", ())
    found = [(r.class_id, r.oid, r.subid) for r in own]
    if isinstance(item, Relation):
        for column in item.columns:
            found.extend((r.class_id, r.oid, r.subid) for r in column.references)
        sequence = item.sequence
        if sequence is not None and sequence.owner_table:
            found.append((ObjectClass.RELATION, sequence.owner_table, sequence.owner_column))
    return found


def _needs(item: CatalogObject, class_id: ObjectClass, oid: int, subid: int) -> bool:
    if isinstance(item, Constraint):
        if class_id == ObjectClass.RELATION and item.relation == oid and not subid:
            return False
        if _is_key_of(item, class_id, oid, subid):
            return True
    if isinstance(item, Relation) and item.index is not None and item.index.table == oid:
        if not subid or class_id != ObjectClass.RELATION:
            return False
        if any(key.attnum == subid for key in item.index.keys):
            return True
    for other_class, other_oid, other_subid in _references(item):
        if (other_class, other_oid) == (class_id, oid) and (not subid or other_subid == subid):
            return True
    return False


def _is_key_of(item: Constraint, class_id: ObjectClass, oid: int, subid: int) -> bool:
    if class_id != ObjectClass.RELATION:
        return False
    if item.referenced_table == oid and (not subid or subid in item.referenced_columns):
        return True
    return bool(subid) and item.relation == oid and subid in item.columns


def _uses_type(item: CatalogObject, type_oids: frozenset[int]) -> bool:
    if isinstance(item, Relation):
        return item.kind != RelationKind.INDEX and any(
            c.type_oid in type_oids for c in item.live_columns()
        )
    if isinstance(item, DomainType):
        return item.base_type in type_oids
    if isinstance(item, FunctionDef):
        used = {item.return_type, *(a.type_oid for a in item.arguments)}
        return not type_oids.isdisjoint(used)
    return False
