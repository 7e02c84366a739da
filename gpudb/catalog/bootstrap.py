"""What a new data directory holds: the objects that PostgreSQL's initdb makes."""

from __future__ import annotations

from gpudb.catalog.changes import Change, Create
from gpudb.catalog.objects import (
    DATABASE_POSTGRES,
    DATABASE_TEMPLATE0,
    DATABASE_TEMPLATE1,
    ROLE_POSTGRES,
    ROLE_PUBLIC,
    SCHEMA_GPUDB,
    SCHEMA_PUBLIC,
    AclItem,
    CatalogObject,
    Database,
    Role,
    Schema,
)

ROLE_DATABASE_OWNER = 6171
_PUBLIC_SCHEMAS = {
    DATABASE_POSTGRES: SCHEMA_PUBLIC,
    DATABASE_TEMPLATE1: SCHEMA_GPUDB + 1,
    DATABASE_TEMPLATE0: SCHEMA_GPUDB + 2,
}


def public_schema(oid: int, database: int) -> Schema:
    """The schema ``public`` of a new database, with PostgreSQL 15's privileges."""
    acl = (
        AclItem(ROLE_DATABASE_OWNER, ROLE_DATABASE_OWNER, "UC"),
        AclItem(ROLE_PUBLIC, ROLE_DATABASE_OWNER, "U"),
    )
    return Schema(oid, database, "public", ROLE_DATABASE_OWNER, acl)


def initial_changes(superuser: str = "postgres") -> tuple[Change, ...]:
    """The role, the databases and their schema ``public``."""
    role = Role(
        ROLE_POSTGRES,
        superuser,
        is_superuser=True,
        can_create_role=True,
        can_create_database=True,
        can_login=True,
        can_replicate=True,
        bypasses_row_security=True,
    )
    template_acl = (
        AclItem(ROLE_PUBLIC, ROLE_POSTGRES, "c"),
        AclItem(ROLE_POSTGRES, ROLE_POSTGRES, "CTc"),
    )
    databases = (
        Database(DATABASE_POSTGRES, "postgres", ROLE_POSTGRES),
        Database(DATABASE_TEMPLATE1, "template1", ROLE_POSTGRES, True, acl=template_acl),
        Database(DATABASE_TEMPLATE0, "template0", ROLE_POSTGRES, True, False, acl=template_acl),
    )
    schemas = (public_schema(oid, database) for database, oid in _PUBLIC_SCHEMAS.items())
    objects: tuple[CatalogObject, ...] = (role, *databases, *schemas)
    return tuple(Create(item) for item in objects)
