"""Statements that define schemas, types, sequences, functions, roles, privileges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gpudb.optimizer.statements.nodes.base import (
    Option,
    QualifiedName,
    Slice,
    TypeName,
)
from gpudb.optimizer.statements.nodes.relation import (
    ColumnDefinition,
    Constraint,
    ObjectName,
)
from gpudb.optimizer.statements.nodes.session import (
    ResetVariable,
    SetVariable,
)

if TYPE_CHECKING:
    from gpudb.optimizer.statements.nodes import Statement


# --- schemas, types, sequences, functions -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateSchema:
    name: str
    authorization: str = ""
    if_not_exists: bool = False
    elements: tuple[Statement, ...] = ()
    tag: ClassVar[str] = "CREATE SCHEMA"


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    name: str
    options: tuple[Option, ...] = ()
    tag: ClassVar[str] = "CREATE DATABASE"


@dataclass(frozen=True, slots=True)
class AlterDatabase:
    """``setting`` for SET, RESET; else ``options``."""

    name: str
    options: tuple[Option, ...] = ()
    setting: SetVariable | ResetVariable | None = None
    tag: ClassVar[str] = "ALTER DATABASE"


@dataclass(frozen=True, slots=True)
class CreateSequence:
    """Options as written: as, increment, minvalue, maxvalue, start, cache, cycle, owned by.

    NO MINVALUE, NO MAXVALUE and NO CYCLE come with value None, "no minvalue" as name.
    """

    name: QualifiedName
    options: tuple[Option, ...] = ()
    persistence: str = "permanent"
    if_not_exists: bool = False
    tag: ClassVar[str] = "CREATE SEQUENCE"


@dataclass(frozen=True, slots=True)
class AlterSequence:
    name: QualifiedName
    options: tuple[Option, ...] = ()
    if_exists: bool = False
    tag: ClassVar[str] = "ALTER SEQUENCE"


@dataclass(frozen=True, slots=True)
class CreateType:
    """``kind`` is enum, composite, range, base or shell."""

    name: QualifiedName
    kind: str
    labels: tuple[str, ...] = ()
    attributes: tuple[ColumnDefinition, ...] = ()
    options: tuple[Option, ...] = ()
    tag: ClassVar[str] = "CREATE TYPE"


@dataclass(frozen=True, slots=True)
class CreateDomain:
    name: QualifiedName
    type: TypeName
    constraints: tuple[Constraint, ...] = ()
    collation: QualifiedName | None = None
    tag: ClassVar[str] = "CREATE DOMAIN"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A function's parameter; ``mode`` in, out, inout, variadic or table."""

    name: str
    type: TypeName
    mode: str = "in"
    default: Slice | None = None


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """``body`` is the AS string (``link_symbol`` its second), or the SQL body's text."""

    name: QualifiedName
    parameters: tuple[Parameter, ...]
    returns: TypeName | None
    language: str = ""
    body: str = ""
    sql_body: Slice | None = None
    link_symbol: str = ""
    is_procedure: bool = False
    or_replace: bool = False
    options: tuple[Option, ...] = ()
    settings: tuple[SetVariable, ...] = ()

    @property
    def tag(self) -> str:
        return "CREATE PROCEDURE" if self.is_procedure else "CREATE FUNCTION"


@dataclass(frozen=True, slots=True)
class CreateExtension:
    name: str
    if_not_exists: bool = False
    options: tuple[Option, ...] = ()
    tag: ClassVar[str] = "CREATE EXTENSION"


# --- roles and privileges -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateRole:
    """``kind`` is role, user or group. Options in lower case, flags as superuser/nosuperuser."""

    kind: str
    name: str
    options: tuple[Option, ...] = ()
    tag: ClassVar[str] = "CREATE ROLE"


@dataclass(frozen=True, slots=True)
class AlterRole:
    """``name`` None stands for ALL; ``setting`` for SET, RESET, optionally ``in_database``."""

    name: str | None
    options: tuple[Option, ...] = ()
    setting: SetVariable | ResetVariable | None = None
    in_database: str = ""
    tag: ClassVar[str] = "ALTER ROLE"


@dataclass(frozen=True, slots=True)
class AlterSystem:
    setting: SetVariable | ResetVariable
    tag: ClassVar[str] = "ALTER SYSTEM"


@dataclass(frozen=True, slots=True)
class Privilege:
    """``name`` in lower case, "all" for ALL PRIVILEGES; ``columns`` for column privileges."""

    name: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grant:
    """GRANT or REVOKE of privileges; ``all_in_schema``: the objects are schemas.

    ``kind`` is table, sequence, function, schema, database, model, ... Grantees are role names,
    "public" for PUBLIC.
    """

    privileges: tuple[Privilege, ...]
    kind: str
    objects: tuple[ObjectName, ...]
    grantees: tuple[str, ...]
    is_revoke: bool = False
    all_in_schema: bool = False
    grant_option: bool = False
    granted_by: str = ""
    cascade: bool = False

    @property
    def tag(self) -> str:
        return "REVOKE" if self.is_revoke else "GRANT"


@dataclass(frozen=True, slots=True)
class GrantRole:
    roles: tuple[str, ...]
    grantees: tuple[str, ...]
    is_revoke: bool = False
    admin_option: bool = False
    granted_by: str = ""
    cascade: bool = False

    @property
    def tag(self) -> str:
        return "REVOKE ROLE" if self.is_revoke else "GRANT ROLE"


@dataclass(frozen=True, slots=True)
class AlterDefaultPrivileges:
    roles: tuple[str, ...]
    schemas: tuple[str, ...]
    grant: Grant
    tag: ClassVar[str] = "ALTER DEFAULT PRIVILEGES"


@dataclass(frozen=True, slots=True)
class DropOwned:
    roles: tuple[str, ...]
    cascade: bool = False
    tag: ClassVar[str] = "DROP OWNED"


@dataclass(frozen=True, slots=True)
class ReassignOwned:
    roles: tuple[str, ...]
    new_role: str
    tag: ClassVar[str] = "REASSIGN OWNED"
