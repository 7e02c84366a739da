"""Immutable views of the catalog at one moment, and how changes make the next one.

A CatalogSnapshot is what a statement sees: definitions, statistics and the segments of every
table. ``apply`` yields a new snapshot and copies only the maps that change. A transaction's own
uncommitted work is the published snapshot with its changes applied (``TransactionCatalog``).

``id`` numbers committed states (data and definitions). ``version`` changes with definitions and
statistics only, is unique in the process, and is what plans and cached system rows are keyed by.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpudb import errors
from gpudb.catalog import builtin, maps
from gpudb.catalog.changes import DEFINITIONS, Change, SetDeletes
from gpudb.catalog.conflicts import check_constrained, rebased
from gpudb.catalog.maps import CatalogMaps, MapsBuilder
from gpudb.catalog.objects import (
    DATABASE_POSTGRES,
    CatalogObject,
    Constraint,
    ConstraintKind,
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
from gpudb.catalog.search_path import SearchPath
from gpudb.catalog.type_entries import TypeEntry

_versions = itertools.count(1)
_NO_DATA = TableData()


class CatalogSnapshot:
    """The catalog as one database's sessions see it at one moment; never changes."""

    __slots__ = ("_maps", "database", "id", "version")

    def __init__(
        self, content: CatalogMaps, *, id: int, version: int | None = None, database: int
    ) -> None:
        self._maps = content
        self.id = id
        self.version = next(_versions) if version is None else version
        self.database = database

    @classmethod
    def empty(cls) -> CatalogSnapshot:
        """No user objects at all; the built-ins are there."""
        return cls(CatalogMaps(), id=0, database=DATABASE_POSTGRES)

    def in_database(self, oid: int) -> CatalogSnapshot:
        """The same moment seen from another database."""
        if oid == self.database:
            return self
        return CatalogSnapshot(self._maps, id=self.id, version=self.version, database=oid)

    def apply(self, changes: tuple[Change, ...], *, id: int | None = None) -> CatalogSnapshot:
        """The snapshot after ``changes``, in order.

        Raises 42P07, 42710, ... for a taken name, 40001 when an object to change is gone.
        """
        builder = MapsBuilder(self._maps)
        for change in changes:
            builder.apply(change)
        keeps = not any(isinstance(change, DEFINITIONS) for change in changes)
        return CatalogSnapshot(
            builder.maps,
            id=self.id if id is None else id,
            version=self.version if keeps else None,
            database=self.database,
        )

    # Databases and roles

    def databases(self) -> Iterator[Database]:
        return iter(self._maps.databases.values())

    def database_by_oid(self, oid: int) -> Database | None:
        return self._maps.databases.get(oid)

    def database_by_name(self, name: str) -> Database | None:
        return next((d for d in self._maps.databases.values() if d.name == name), None)

    def roles(self) -> Iterator[Role]:
        """All roles: the predefined ones (pg_read_all_data, ...) first."""
        yield from builtin.roles().values()
        yield from self._maps.roles.values()

    def role(self, name: str) -> Role | None:
        return next((r for r in self.roles() if r.name == name), None)

    def role_by_oid(self, oid: int) -> Role | None:
        return self._maps.roles.get(oid) or builtin.roles().get(oid)

    # Schemas

    def schemas(self) -> Iterator[Schema]:
        """The schemas that the current database shows."""
        yield from builtin.schemas().values()
        for schema in self._maps.schemas.values():
            if schema.database in (0, self.database):
                yield schema

    def schema(self, name: str) -> Schema | None:
        oid = self._maps.schema_names.get((self.database, name))
        if oid is None:
            oid = builtin.schema_names().get(name)
        return None if oid is None else self.schema_by_oid(oid)

    def schema_by_oid(self, oid: int) -> Schema | None:
        return self._maps.schemas.get(oid) or builtin.schemas().get(oid)

    # Relations

    def relations(self) -> Iterator[Relation]:
        """User relations of the current database, every kind, without the built-ins."""
        for relation in self._maps.relations.values():
            schema = self._maps.schemas.get(relation.schema)
            if schema is None or schema.database in (0, self.database):
                yield relation

    def relation(self, schema: str, name: str) -> Relation | None:
        found = self.schema(schema)
        return None if found is None else self.relation_in(found.oid, name)

    def relation_in(self, schema: int, name: str) -> Relation | None:
        """The relation of that name in the schema of that OID."""
        oid = self._maps.relation_names.get((schema, name))
        if oid is not None:
            return self._maps.relations[oid]
        return builtin.relation_in(schema, name)

    def relation_by_oid(self, oid: int) -> Relation | None:
        return self._maps.relations.get(oid) or builtin.relation(oid)

    def resolve_relation(self, name: str, path: SearchPath) -> Relation | None:
        """The first relation of that name on the path."""
        for schema in path.schemas:
            found = self.relation_in(schema, name)
            if found is not None:
                return found
        return None

    def indexes(self, table: int) -> tuple[Relation, ...]:
        """The recorded indexes of a table, by OID."""
        return tuple(self._maps.relations[i] for i in self._maps.indexes_of.get(table, ()))

    def constraints(self, relation: int) -> tuple[Constraint, ...]:
        """The constraints of a table, by OID."""
        found = self._maps.constraints_of.get(relation, ())
        return tuple(self._maps.constraints[oid] for oid in found)

    def all_constraints(self) -> Iterator[Constraint]:
        return iter(self._maps.constraints.values())

    def constraint_by_oid(self, oid: int) -> Constraint | None:
        return self._maps.constraints.get(oid)

    def primary_key(self, relation: int) -> Constraint | None:
        for constraint in self.constraints(relation):
            if constraint.kind == ConstraintKind.PRIMARY_KEY:
                return constraint
        return None

    def foreign_keys_to(self, relation: int) -> tuple[Constraint, ...]:
        """Foreign keys of any table that reference this one."""
        return tuple(
            c
            for c in self._maps.constraints.values()
            if c.kind == ConstraintKind.FOREIGN_KEY and c.referenced_table == relation
        )

    def domain_constraints(self, domain: int) -> tuple[Constraint, ...]:
        """CHECKs of a domain in the order PostgreSQL tests them: by name."""
        found = (c for c in self._maps.constraints.values() if c.domain == domain)
        return tuple(sorted(found, key=lambda c: c.name))

    # Data and statistics

    def data(self, relation: int) -> TableData:
        """Segments and delete vectors of a table; empty for other relations."""
        return self._maps.data.get(relation, _NO_DATA)

    def tables_with_data(self) -> Mapping[int, TableData]:
        return self._maps.data

    def statistics(self, relation: int) -> RelationStatistics | None:
        return self._maps.statistics.get(relation)

    def comment(self, class_id: int, oid: int, subid: int = 0) -> str | None:
        """The comment on an object, built-in ones included."""
        found = self._maps.comments.get((class_id, oid, subid))
        if found is not None:
            return found.text
        return builtin.comment(class_id, oid, subid)

    def comments(self) -> Mapping[tuple[int, int, int], Any]:
        """User comments by (class, oid, subid)."""
        return self._maps.comments

    # Types

    def types(self) -> Iterator[TypeEntry]:
        """Types that users made: enums, domains, composites, row types and their arrays."""
        return iter(self._maps.types.values())

    def type(self, oid: int) -> TypeEntry | None:
        return self._maps.types.get(oid) or builtin.types().get(oid)

    def type_in(self, schema: int, name: str) -> TypeEntry | None:
        """The type of that catalog name (int4, not integer) in a schema."""
        oid = self._maps.type_names.get((schema, name))
        if oid is None:
            oid = builtin.type_names().get((schema, name))
        return None if oid is None else self.type(oid)

    def resolve_type(self, name: str, path: SearchPath) -> TypeEntry | None:
        for schema in path.schemas:
            found = self.type_in(schema, name)
            if found is not None:
                return found
        return None

    def user_type(self, oid: int) -> EnumType | DomainType | None:
        return self._maps.user_types.get(oid)

    # Functions and models

    def functions(self) -> Iterator[FunctionDef]:
        return iter(self._maps.functions.values())

    def function_by_oid(self, oid: int) -> FunctionDef | None:
        return self._maps.functions.get(oid)

    def functions_in(self, schema: int, name: str) -> tuple[FunctionDef, ...]:
        """User-defined overloads of a name in one schema."""
        found = self._maps.function_names.get((schema, name), ())
        return tuple(self._maps.functions[oid] for oid in found)

    def resolve_functions(self, name: str, path: SearchPath) -> tuple[FunctionDef, ...]:
        """User-defined overloads on the path, nearer schemas first."""
        return tuple(f for s in path.function_schemas() for f in self.functions_in(s, name))

    def models(self) -> Iterator[Model]:
        return iter(self._maps.models.values())

    def model_in(self, schema: int, name: str) -> Model | None:
        found = (m for m in self._maps.models.values() if (m.schema, m.name) == (schema, name))
        return next(found, None)

    def resolve_model(self, name: str, path: SearchPath) -> Model | None:
        found = (self.model_in(schema, name) for schema in path.schemas)
        return next((m for m in found if m is not None), None)

    # Dependencies

    def object(self, class_id: ObjectClass, oid: int) -> CatalogObject | None:
        """A user object by class and OID."""
        return maps.collection(self._maps, class_id).get(oid)

    def dependents(
        self, class_id: ObjectClass, oid: int, subid: int = 0
    ) -> tuple[CatalogObject, ...]:
        """User objects that need this one, directly (DROP ... RESTRICT refuses, CASCADE takes).

        With a ``subid`` only those that need that column. Constraints, indexes and identity
        sequences of the table itself are not listed: they go with it.
        """
        return maps.dependents(self._maps, class_id, oid, subid)


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A position in a transaction's list of changes."""

    permanent: int
    temporary: int


class TransactionCatalog:
    """The catalog of one transaction: a published snapshot plus its own uncommitted changes.

    Changes of temporary objects stay in the session (``temporary``) and are never committed to
    the store; the session passes them on to its next transaction.
    """

    def __init__(self, base: CatalogSnapshot, temporary: tuple[Change, ...] = ()) -> None:
        self.base = base
        self.permanent: list[Change] = []
        self.temporary: list[Change] = list(temporary)
        self._current: CatalogSnapshot | None = None if temporary else base

    @property
    def snapshot(self) -> CatalogSnapshot:
        """What the transaction sees now."""
        if self._current is None:
            self._current = self.base.apply((*self.permanent, *self.temporary))
        return self._current

    def apply(self, *changes: Change) -> CatalogSnapshot:
        """Add changes; they are visible in the returned snapshot. Raises as snapshot.apply."""
        now = self.snapshot
        for change in changes:
            is_temporary = maps.is_temporary(now._maps, change)
            after = now.apply((change,))
            (self.temporary if is_temporary else self.permanent).append(change)
            now = self._current = after
        return now

    def refresh(self, base: CatalogSnapshot) -> CatalogSnapshot:
        """Move to a newer published snapshot (READ COMMITTED, next statement).

        Own deletes are merged with those committed meanwhile; 40001 where both deleted a row
        or where rows committed meanwhile could break a constraint checked before.
        """
        if base is not self.base:
            if base.id != self.base.id:
                check_constrained(self.permanent, self.base, base)
                self.permanent = [
                    rebased(c, self.base, base) if isinstance(c, SetDeletes) else c
                    for c in self.permanent
                ]
            self.base = base
            self._current = None if self.permanent or self.temporary else base
        return self.snapshot

    def savepoint(self) -> Savepoint:
        return Savepoint(len(self.permanent), len(self.temporary))

    def rollback_to(self, point: Savepoint) -> None:
        del self.permanent[point.permanent :]
        del self.temporary[point.temporary :]
        self._current = None


def require_relation(snapshot: CatalogSnapshot, schema: str, name: str) -> Relation:
    """The relation, or 3F000 / 42P01 as PostgreSQL words them."""
    if snapshot.schema(schema) is None:
        raise errors.InvalidSchemaName(f'schema "{schema}" does not exist')
    found = snapshot.relation(schema, name)
    if found is None:
        raise errors.UndefinedTable(f'relation "{schema}.{name}" does not exist')
    return found


def is_temporary(relation: Relation) -> bool:
    return relation.persistence == Persistence.TEMPORARY


def has_storage(relation: Relation) -> bool:
    """True for what owns segments: tables and materialized views."""
    return relation.kind in (RelationKind.TABLE, RelationKind.MATERIALIZED_VIEW)
