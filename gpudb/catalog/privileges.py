"""Who may do what: roles, grants, and PostgreSQL's default privileges.

Letters as in aclitem: r SELECT, a INSERT, w UPDATE, d DELETE, D TRUNCATE, x REFERENCES,
t TRIGGER, U USAGE, C CREATE, c CONNECT, T TEMPORARY, X EXECUTE. Superusers pass every check.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpudb import errors
from gpudb.catalog.objects import (
    ROLE_PUBLIC,
    Acl,
    AclItem,
    CatalogObject,
    ColumnDef,
    Database,
    DomainType,
    EnumType,
    FunctionDef,
    Model,
    Relation,
    RelationKind,
    Role,
    Schema,
)

if TYPE_CHECKING:
    from gpudb.catalog.catalog import CatalogSnapshot

ROLE_READ_ALL_DATA = 6181
ROLE_WRITE_ALL_DATA = 6182
ROLE_DATABASE_OWNER = 6171

TABLE_PRIVILEGES = "arwdDxt"
SEQUENCE_PRIVILEGES = "rwU"

PRIVILEGE_LETTERS = {
    "SELECT": "r",
    "INSERT": "a",
    "UPDATE": "w",
    "DELETE": "d",
    "TRUNCATE": "D",
    "REFERENCES": "x",
    "TRIGGER": "t",
    "USAGE": "U",
    "CREATE": "C",
    "CONNECT": "c",
    "TEMPORARY": "T",
    "TEMP": "T",
    "EXECUTE": "X",
}

_KIND_WORDS = {
    RelationKind.VIEW: "view",
    RelationKind.MATERIALIZED_VIEW: "materialized view",
    RelationKind.SEQUENCE: "sequence",
    RelationKind.INDEX: "index",
}


def roles_of(snapshot: CatalogSnapshot, role: int) -> frozenset[int]:
    """The role and all roles whose privileges it uses (pg_has_role ... USAGE)."""
    return _reachable(snapshot, role, only_inherited=True)


def memberships_of(snapshot: CatalogSnapshot, role: int) -> frozenset[int]:
    """The role and all roles it may SET ROLE to (pg_has_role ... MEMBER)."""
    return _reachable(snapshot, role, only_inherited=False)


def _reachable(snapshot: CatalogSnapshot, role: int, *, only_inherited: bool) -> frozenset[int]:
    found = {role}
    waiting = [role]
    while waiting:
        current = snapshot.role_by_oid(waiting.pop())
        if current is None or (only_inherited and not current.inherits):
            continue
        parents = {m.role for m in current.member_of}
        database = snapshot.database_by_oid(snapshot.database)
        if database is not None and database.owner == current.oid:
            parents.add(ROLE_DATABASE_OWNER)
        waiting.extend(parents - found)
        found |= parents
    return frozenset(found)


def is_superuser(snapshot: CatalogSnapshot, role: int) -> bool:
    found = snapshot.role_by_oid(role)
    return found is not None and found.is_superuser


def owner_of(item: CatalogObject) -> int:
    """The owning role; a role owns itself, a constraint belongs to its table's owner (0 here)."""
    if isinstance(item, Role):
        return item.oid
    return int(getattr(item, "owner", 0))


def is_owner(snapshot: CatalogSnapshot, role: int, item: CatalogObject) -> bool:
    """True for the owner, members of the owning role and superusers."""
    return is_superuser(snapshot, role) or owner_of(item) in roles_of(snapshot, role)


def default_acl(item: CatalogObject) -> tuple[AclItem, ...]:
    """The privileges of an object without an acl of its own (acldefault)."""
    owner = owner_of(item)
    match item:
        case Relation(kind=RelationKind.SEQUENCE):
            return (AclItem(owner, owner, SEQUENCE_PRIVILEGES),)
        case Relation():
            return (AclItem(owner, owner, TABLE_PRIVILEGES),)
        case Database():
            return (AclItem(ROLE_PUBLIC, owner, "Tc"), AclItem(owner, owner, "CTc"))
        case Schema():
            return (AclItem(owner, owner, "UC"),)
        case FunctionDef():
            return (AclItem(ROLE_PUBLIC, owner, "X"), AclItem(owner, owner, "X"))
        case EnumType() | DomainType():
            return (AclItem(ROLE_PUBLIC, owner, "U"), AclItem(owner, owner, "U"))
        case Model():
            return (AclItem(owner, owner, TABLE_PRIVILEGES),)
        case _:
            return ()


def effective_acl(item: CatalogObject) -> tuple[AclItem, ...]:
    acl: Acl = getattr(item, "acl", None)
    return default_acl(item) if acl is None else acl


def _granted(items: Iterable[AclItem], roles: frozenset[int], letter: str) -> bool:
    return any(
        letter in item.privileges and (item.grantee == ROLE_PUBLIC or item.grantee in roles)
        for item in items
    )


def _system_relation_access(item: Relation, letter: str) -> bool | None:
    """Built-ins without acl: everybody reads catalogs; only superusers write them."""
    if item.is_system and item.acl is None:
        return letter == "r" and item.kind in ("r", "v")
    return None


def has_privilege(snapshot: CatalogSnapshot, role: int, item: CatalogObject, letter: str) -> bool:
    """True when ``role`` holds the privilege on the whole object, by any way."""
    if is_superuser(snapshot, role):
        return True
    roles = roles_of(snapshot, role)
    if isinstance(item, Relation):
        if letter == "r" and ROLE_READ_ALL_DATA in roles:
            return True
        if letter in "awd" and ROLE_WRITE_ALL_DATA in roles and not item.is_system:
            return True
        known = _system_relation_access(item, letter)
        if known is not None:
            return known
    if isinstance(item, Schema) and letter == "U":
        if not roles.isdisjoint((ROLE_READ_ALL_DATA, ROLE_WRITE_ALL_DATA)):
            return True
        if item.database == 0 and item.acl is None:
            return True
    return _granted(effective_acl(item), roles, letter)


def has_column_privilege(
    snapshot: CatalogSnapshot, role: int, relation: Relation, column: ColumnDef, letter: str
) -> bool:
    """True when the privilege is held on the table or on the column alone."""
    if has_privilege(snapshot, role, relation, letter):
        return True
    return column.acl is not None and _granted(column.acl, roles_of(snapshot, role), letter)


def check_relation(
    snapshot: CatalogSnapshot,
    role: int,
    relation: Relation,
    letter: str,
    columns: Iterable[ColumnDef] | None = None,
) -> None:
    """InsufficientPrivilege (42501) unless ``role`` holds the privilege.

    With ``columns``, grants on each of those columns suffice; with an empty list a grant on any
    column does (SELECT count(*)).
    """
    if has_privilege(snapshot, role, relation, letter):
        return
    if columns is not None:
        roles = roles_of(snapshot, role)
        wanted = list(columns)
        checked = wanted or list(relation.live_columns())
        held = [c.acl is not None and _granted(c.acl, roles, letter) for c in checked]
        if all(held) if wanted else any(held):
            return
    word = _KIND_WORDS.get(RelationKind(relation.kind), "table")
    raise errors.InsufficientPrivilege(f"permission denied for {word} {relation.name}")


def check_schema(snapshot: CatalogSnapshot, role: int, schema: Schema, letter: str = "U") -> None:
    """InsufficientPrivilege (42501) unless ``role`` may use (U) or create in (C) the schema."""
    if not has_privilege(snapshot, role, schema, letter):
        raise errors.InsufficientPrivilege(f"permission denied for schema {schema.name}")


def check_database(snapshot: CatalogSnapshot, role: int, database: Database, letter: str) -> None:
    if not has_privilege(snapshot, role, database, letter):
        raise errors.InsufficientPrivilege(f"permission denied for database {database.name}")


def check_function(snapshot: CatalogSnapshot, role: int, function: FunctionDef) -> None:
    if not has_privilege(snapshot, role, function, "X"):
        word = "procedure" if function.kind == "p" else "function"
        raise errors.InsufficientPrivilege(f"permission denied for {word} {function.name}")


def check_owner(snapshot: CatalogSnapshot, role: int, item: CatalogObject) -> None:
    """InsufficientPrivilege (42501) ``must be owner of ...`` unless ``role`` owns the object."""
    if is_owner(snapshot, role, item):
        return
    word = type(item).__name__.removesuffix("Type").removesuffix("Def").lower()
    if isinstance(item, Relation):
        word = _KIND_WORDS.get(RelationKind(item.kind), "table")
    elif isinstance(item, EnumType | DomainType):
        word = "type"
    raise errors.InsufficientPrivilege(f"must be owner of {word} {item.name}")


# Text form, GRANT and REVOKE


def _quoted(name: str) -> str:
    is_plain = name.replace("_", "a").isalnum() and name.isascii()
    return name if is_plain and name else '"' + name.replace('"', '""') + '"'


def _role_name(snapshot: CatalogSnapshot, oid: int) -> str:
    if oid == ROLE_PUBLIC:
        return ""
    role = snapshot.role_by_oid(oid)
    return str(oid) if role is None else _quoted(role.name)


LETTER_ORDER = "arwdDxtXUCTcsA"
"""The order of the bits of AclMode, which aclitemout follows."""


def format_item(snapshot: CatalogSnapshot, item: AclItem) -> str:
    """The text of an aclitem: ``alice=r*w/postgres``."""
    letters = "".join(
        letter + ("*" if letter in item.grantable else "")
        for letter in LETTER_ORDER
        if letter in item.privileges
    )
    grantee, grantor = (_role_name(snapshot, oid) for oid in (item.grantee, item.grantor))
    return f"{grantee}={letters}/{grantor}"


def _letters(text: str) -> str:
    return "".join(letter for letter in LETTER_ORDER if letter in text)


def grant(
    acl: tuple[AclItem, ...], grantee: int, grantor: int, letters: str, *, with_option: bool = False
) -> tuple[AclItem, ...]:
    """The acl after GRANT; start from ``effective_acl`` so that the owner's rights are listed."""
    result = list(acl)
    found = [i for i, item in enumerate(acl) if (item.grantee, item.grantor) == (grantee, grantor)]
    i = found[0] if found else len(result)
    if not found:
        result.append(AclItem(grantee, grantor, ""))
    old = result[i]
    grantable = old.grantable + (letters if with_option else "")
    result[i] = AclItem(grantee, grantor, _letters(old.privileges + letters), _letters(grantable))
    return tuple(result)


def revoke(
    acl: tuple[AclItem, ...], grantee: int, letters: str, *, option_only: bool = False
) -> tuple[AclItem, ...]:
    """The acl after REVOKE of what any grantor gave to ``grantee``."""
    result = []
    for item in acl:
        if item.grantee == grantee:
            grantable = "".join(x for x in item.grantable if x not in letters)
            kept = "".join(x for x in item.privileges if option_only or x not in letters)
            item = AclItem(grantee, item.grantor, kept, grantable)
        if item.privileges:
            result.append(item)
    return tuple(result)
