"""CREATE/ALTER/DROP ROLE, GRANT, REVOKE, OWNER TO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpudb import errors, settings
from gpudb.catalog import privileges
from gpudb.catalog.changes import Create, Drop, Replace
from gpudb.catalog.objects import (
    ROLE_PUBLIC,
    Membership,
    ObjectClass,
    Relation,
    RelationKind,
    Role,
)
from gpudb.commands import Done, Result, handles, naming
from gpudb.optimizer.statements import nodes
from gpudb.wire import auth

if TYPE_CHECKING:
    from gpudb.session import Session

_FLAGS = {
    "superuser": ("is_superuser", True), "nosuperuser": ("is_superuser", False),
    "createdb": ("can_create_database", True), "nocreatedb": ("can_create_database", False),
    "createrole": ("can_create_role", True), "nocreaterole": ("can_create_role", False),
    "inherit": ("inherits", True), "noinherit": ("inherits", False),
    "login": ("can_login", True), "nologin": ("can_login", False),
    "replication": ("can_replicate", True), "noreplication": ("can_replicate", False),
    "bypassrls": ("bypasses_row_security", True), "nobypassrls": ("bypasses_row_security", False),
}


def require_role(session: Session, name: str) -> Role:
    """The role of a name, also CURRENT_USER and SESSION_USER; 42704."""
    actual = {
        "current_user": session.user, "current_role": session.user,
        "session_user": session.session_user,
    }.get(name, name)
    role = session.catalog.role(actual)
    if role is None:
        raise errors.UndefinedObject(f'role "{name}" does not exist')
    return role  # type: ignore[no-any-return]


def _require_create_role(session: Session, *, is_superuser_role: bool) -> None:
    own = session.catalog.role(session.user)
    if own.is_superuser:
        return
    if is_superuser_role:
        raise errors.InsufficientPrivilege("must be superuser to create superusers")
    if not own.can_create_role:
        raise errors.InsufficientPrivilege("permission denied to create role")


def _with_options(session: Session, role: Role, options: Sequence[nodes.Option]) -> Role:
    seen: set[str] = set()
    for option in options:
        name = option.name.lower()
        base = name.removeprefix("no") if name in _FLAGS else name
        if base in seen:
            raise errors.SyntaxError("conflicting or redundant options", position=option.position)
        seen.add(base)
        if name in _FLAGS:
            field, value = _FLAGS[name]
            role = replace(role, **{field: value})  # type: ignore[arg-type]
        elif name == "password":
            role = replace(role, password=_verifier(option.value))
        elif name == "connection limit":
            role = replace(role, connection_limit=int(str(option.value)))
        elif name == "valid until":
            until = session.database.evaluate_text(session, str(option.value), "timestamptz")
            role = replace(role, valid_until=until)
        elif name not in ("sysid", "in role", "in group", "role", "user", "admin", "encrypted"):
            raise errors.SyntaxError(f'unrecognized role option "{option.name}"')
    return role


def _verifier(value: Any) -> str | None:
    if value is None or value == "":
        return None
    text = str(value)
    return text if text.startswith("SCRAM-SHA-256$") else auth.make_verifier(text)


@handles(nodes.CreateRole)
def create_role(session: Session, statement: nodes.CreateRole) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)
    if statement.name.startswith("pg_") or statement.name in ("public", "none"):
        raise errors.ReservedName(
            f'role name "{statement.name}" is reserved',
            detail='Role names starting with "pg_" are reserved.'
            if statement.name.startswith("pg_") else "",
        )
    if session.catalog.role(statement.name) is not None:
        raise errors.DuplicateObject(f'role "{statement.name}" already exists')
    role = Role(
        session.database.store.allocate_oid(), statement.name,
        can_login=statement.kind == "user",
    )
    role = _with_options(session, role, statement.options)
    _require_create_role(session, is_superuser_role=role.is_superuser)
    session.transaction.change(Create(role))
    for option in statement.options:
        names = option.value if isinstance(option.value, tuple) else (str(option.value),)
        if option.name in ("in role", "in group"):
            for name in names:
                _add_member(session, require_role(session, name), statement.name, is_admin=False)
        elif option.name in ("role", "user", "admin"):
            for name in names:
                made = require_role(session, statement.name)
                _add_member(session, made, name, is_admin=option.name == "admin")
    return Done(statement.tag)


@handles(nodes.AlterRole)
def alter_role(session: Session, statement: nodes.AlterRole) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)
    if statement.name is None or statement.in_database:
        raise errors.FeatureNotSupported(
            "settings for all roles or of a database are not supported"
        )
    role = require_role(session, statement.name)
    only_password = {o.name for o in statement.options} <= {"password", "encrypted"}
    if role.name != session.user or not only_password:
        _require_create_role(session, is_superuser_role=role.is_superuser)
    changed = _with_options(session, role, statement.options)
    if statement.setting is not None:
        changed = replace(changed, settings=_settings(changed.settings, statement.setting))
    session.transaction.change(Replace(changed))
    return Done(statement.tag)


def _settings(
    old: tuple[str, ...], change: nodes.SetVariable | nodes.ResetVariable
) -> tuple[str, ...]:
    if change.name is None:
        return ()
    found = settings.find(change.name) if "." not in change.name else None
    name = change.name if found is None else found.name
    kept = tuple(item for item in old if item.partition("=")[0] != name)
    if isinstance(change, nodes.ResetVariable) or change.values is None:
        return kept
    text = ", ".join(change.values)
    return (*kept, f"{name}={text if found is None else settings.canonical(found, text)}")


def drop_role(session: Session, statement: nodes.Drop, name: nodes.QualifiedName) -> None:
    """DROP ROLE; 2BP01 while the role owns something."""
    assert session.transaction is not None
    role = session.catalog.role(name.name)
    if role is None:
        if not statement.if_exists:
            raise errors.UndefinedObject(f'role "{name.name}" does not exist')
        session.notice("NOTICE", "00000", f'role "{name.name}" does not exist, skipping')
        return
    if role.name == session.user:
        raise errors.ObjectInUse("current user cannot be dropped")
    _require_create_role(session, is_superuser_role=role.is_superuser)
    owned = [r for r in session.catalog.relations() if r.owner == role.oid]
    owned += [s for s in session.catalog.schemas() if s.owner == role.oid]
    if owned:
        shown = "\n".join(f"owner of {getattr(o, 'kind', 'schema')} {o.name}" for o in owned[:20])
        raise errors.DependentObjectsStillExist(
            f'role "{role.name}" cannot be dropped because some objects depend on it', detail=shown
        )
    session.transaction.change(Drop(ObjectClass.ROLE, role.oid))


# --- membership -------------------------------------------------------------------------------


def _add_member(session: Session, group: Role, member: str, *, is_admin: bool) -> None:
    assert session.transaction is not None
    role = require_role(session, member)
    if group.oid in {role.oid} | privileges.memberships_of(session.catalog, group.oid) and (
        role.oid in privileges.memberships_of(session.catalog, group.oid)
    ):
        raise errors.InvalidGrantOperation(
            f'role "{group.name}" is a member of role "{role.name}"'
        )
    own = session.catalog.role(session.user).oid
    kept = tuple(m for m in role.member_of if m.role != group.oid)
    if len(kept) < len(role.member_of):
        session.notice(
            "NOTICE", "00000", f'role "{role.name}" is already a member of role "{group.name}"'
        )
    membership = Membership(group.oid, own, is_admin)
    session.transaction.change(Replace(replace(role, member_of=(*kept, membership))))


@handles(nodes.GrantRole)
def grant_role(session: Session, statement: nodes.GrantRole) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable("GRANT ROLE")
    for group_name in statement.roles:
        group = require_role(session, group_name)
        _require_create_role(session, is_superuser_role=group.is_superuser)
        for member_name in statement.grantees:
            if not statement.is_revoke:
                _add_member(session, group, member_name, is_admin=statement.admin_option)
                continue
            member = require_role(session, member_name)
            kept = tuple(m for m in member.member_of if m.role != group.oid)
            if len(kept) == len(member.member_of):
                session.notice(
                    "WARNING", "00000",
                    f'role "{member.name}" is not a member of role "{group.name}"',
                )
            session.transaction.change(Replace(replace(member, member_of=kept)))
    return Done(statement.tag)


# --- privileges -------------------------------------------------------------------------------

_ALL_LETTERS = {
    "table": "arwdDxt", "sequence": "rwU", "schema": "UC", "database": "CTc", "function": "X",
    "type": "U", "domain": "U", "language": "U",
}


@handles(nodes.Grant)
def grant(session: Session, statement: nodes.Grant) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)
    for item in _granted_objects(session, statement):
        kind = "sequence" if getattr(item, "kind", "") == RelationKind.SEQUENCE else statement.kind
        privileges.check_owner(session.catalog, session.catalog.role(session.user).oid, item)
        for privilege in statement.privileges:
            if privilege.columns:
                item = _grant_columns(session, statement, item, privilege)
                continue
            letters = _letters(privilege.name, kind)
            item = replace(item, acl=_changed(session, statement, item, letters))
        session.transaction.change(Replace(item))
    return Done(statement.tag)


def _letters(name: str, kind: str) -> str:
    allowed = _ALL_LETTERS.get(kind, "")
    if name.lower() in ("all", "all privileges"):
        return allowed
    letter = privileges.PRIVILEGE_LETTERS.get(name.upper())
    if letter is None:
        raise errors.SyntaxError(f'unrecognized privilege type "{name}"')
    if letter not in allowed:
        raise errors.InvalidGrantOperation(
            f"invalid privilege type {name.upper()} for {kind}"
        )
    return letter


def _changed(session: Session, statement: nodes.Grant, item: Any, letters: str) -> Any:
    acl = privileges.effective_acl(item)
    owner = privileges.owner_of(item)
    for name in statement.grantees:
        oid = ROLE_PUBLIC if name == "public" else require_role(session, name).oid
        if statement.is_revoke:
            acl = privileges.revoke(acl, oid, letters, option_only=statement.grant_option)
        else:
            acl = privileges.grant(
                acl, oid, owner, letters, with_option=statement.grant_option
            )
    return acl


def _grant_columns(
    session: Session, statement: nodes.Grant, item: Any, privilege: nodes.Privilege
) -> Any:
    letters = _letters(privilege.name, "table")
    columns = list(item.columns)
    for name in privilege.columns:
        index = next((i for i, c in enumerate(columns) if c.name == name), None)
        if index is None:
            raise errors.UndefinedColumn(
                f'column "{name}" of relation "{item.name}" does not exist'
            )
        acl = columns[index].acl or ()
        for grantee in statement.grantees:
            oid = ROLE_PUBLIC if grantee == "public" else require_role(session, grantee).oid
            if statement.is_revoke:
                acl = privileges.revoke(acl, oid, letters)
            else:
                acl = privileges.grant(acl, oid, item.owner, letters)
        columns[index] = replace(columns[index], acl=acl or None)
    return replace(item, columns=tuple(columns))


def _granted_objects(session: Session, statement: nodes.Grant) -> list[Any]:
    names = [item.name for item in statement.objects]
    if statement.all_in_schema:
        kind = RelationKind.SEQUENCE if statement.kind == "sequence" else None
        oids = [_schema(session, name).oid for name in names]
        return [
            r for r in session.catalog.relations()
            if r.schema in oids and (r.kind == kind if kind else r.kind in "rvm")
        ]
    match statement.kind:
        case "table" | "sequence":
            found: list[Any] = [naming.require_relation(session, name) for name in names]
            for relation in found:
                _check_grantable(relation)
            return found
        case "schema":
            return [_schema(session, name) for name in names]
        case "database":
            databases = [session.catalog.database_by_name(name.name) for name in names]
            for name, database in zip(names, databases, strict=True):
                if database is None:
                    raise errors.InvalidCatalogName(f'database "{name.name}" does not exist')
            return databases
    raise errors.FeatureNotSupported(f"GRANT on {statement.kind} is not supported")


def _check_grantable(relation: Relation) -> None:
    if relation.is_system:
        raise errors.InsufficientPrivilege(
            f'permission denied: "{relation.name}" is a system catalog'
        )
    if relation.kind == RelationKind.INDEX:
        raise errors.WrongObjectType(f'"{relation.name}" is an index')


def _schema(session: Session, name: nodes.QualifiedName) -> Any:
    schema = session.catalog.schema(name.name)
    if schema is None:
        raise errors.InvalidSchemaName(f'schema "{name.name}" does not exist')
    return schema
