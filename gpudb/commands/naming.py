"""Names of objects in commands: which schema, which relation, which generated name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudb import errors
from gpudb.catalog.changes import Create
from gpudb.catalog.objects import (
    Persistence,
    Relation,
    RelationKind,
    Schema,
)
from gpudb.optimizer.statements.nodes.base import QualifiedName

if TYPE_CHECKING:
    from gpudb.session import Session

NAME_BYTES_MAX = 63
KIND_WORDS = {
    RelationKind.TABLE: "table",
    RelationKind.VIEW: "view",
    RelationKind.MATERIALIZED_VIEW: "materialized view",
    RelationKind.SEQUENCE: "sequence",
    RelationKind.INDEX: "index",
    RelationKind.COMPOSITE: "type",
}


def temporary_schema(session: Session) -> int:
    """The session's own temporary schema, made at first use."""
    if not session.temporary_schema:
        assert session.transaction is not None
        oid = session.database.store.allocate_oid()
        role = session.catalog.role(session.user)
        name = f"pg_temp_{session.process_id or oid}"
        session.transaction.change(Create(Schema(oid, session.database_oid, name, role.oid)))
        session.temporary_schema = oid
    return session.temporary_schema


def creation_schema(session: Session, name: QualifiedName, persistence: str) -> int:
    """Where a new object goes; 3F000 when there is no such schema or none selected."""
    if persistence == "temporary" or name.schema == "pg_temp":
        if name.schema not in ("", "pg_temp"):
            raise errors.InvalidTableDefinition(
                "cannot create temporary relation in non-temporary schema"
            )
        return temporary_schema(session)
    if name.schema:
        schema = session.catalog.schema(name.schema)
        if schema is None:
            raise errors.InvalidSchemaName(
                f'schema "{name.schema}" does not exist', position=name.position
            )
    else:
        creation = session.path().creation
        schema = session.catalog.schema_by_oid(creation) if creation else None
        if schema is None:
            raise errors.InvalidSchemaName("no schema has been selected to create in")
    if schema.name in ("pg_catalog", "information_schema") and schema.oid < 16384:
        raise errors.InsufficientPrivilege(
            f'permission denied to create "{schema.name}.{name.name}"',
            detail="System catalog modifications are currently disallowed.",
        )
    return int(schema.oid)


def find_relation(session: Session, name: QualifiedName) -> Relation | None:
    """The relation that a name means on the search path, None without one."""
    if name.schema == "pg_temp":
        found = session.catalog.relation_in(session.temporary_schema, name.name)
    elif name.schema:
        found = session.catalog.relation(name.schema, name.name)
    else:
        found = session.catalog.resolve_relation(name.name, session.path())
    return found  # type: ignore[no-any-return]


def require_relation(session: Session, name: QualifiedName) -> Relation:
    """The relation; 3F000, 42P01."""
    found = find_relation(session, name)
    if found is None:
        if name.schema and name.schema != "pg_temp" and session.catalog.schema(name.schema) is None:
            raise errors.InvalidSchemaName(f'schema "{name.schema}" does not exist')
        raise errors.UndefinedTable(f'relation "{name}" does not exist', position=name.position)
    return found


def require_owner(session: Session, relation: Relation) -> None:
    """42501 unless the user owns the relation or is a superuser; 42501 for system ones too."""
    if relation.is_system:
        raise errors.InsufficientPrivilege(
            f'permission denied: "{relation.name}" is a system catalog'
        )
    role = session.catalog.role(session.user)
    if not role.is_superuser and role.oid != relation.owner:
        word = KIND_WORDS[RelationKind(relation.kind)]
        raise errors.InsufficientPrivilege(f"must be owner of {word} {relation.name}")


def fresh_name(session: Session, schema: int, *parts: str) -> str:
    """``a_b_label`` as PostgreSQL makes names of constraints and indexes: cut to 63 bytes, numbered
    when it is taken.
    """
    *names, label = parts
    for number in range(1000):
        suffix = f"_{label}{number or ''}"
        name = _fit(names, NAME_BYTES_MAX - len(suffix)) + suffix
        if session.catalog.relation_in(schema, name) is None and not any(
            c.name == name and c.schema == schema for c in session.catalog.all_constraints()
        ):
            return name
    raise errors.DuplicateObject(f'no free name for "{"_".join(parts)}"')


def _fit(names: list[str], room: int) -> str:
    parts = [name.encode() for name in names]
    while sum(map(len, parts)) + len(parts) - 1 > room:
        longest = max(range(len(parts)), key=lambda i: len(parts[i]))
        parts[longest] = parts[longest][:-1]
    return "_".join(part.decode(errors="ignore") for part in parts)


def persistence_letter(word: str) -> str:
    """pg_class.relpersistence of ``permanent``, ``temporary`` or ``unlogged``."""
    return {
        "temporary": Persistence.TEMPORARY, "unlogged": Persistence.UNLOGGED,
    }.get(word, Persistence.PERMANENT)
