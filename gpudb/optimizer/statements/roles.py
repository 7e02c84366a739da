"""Rules for roles, GRANT, REVOKE, default privileges and ownership."""

from __future__ import annotations

from gpudb.optimizer.lexer import Kind
from gpudb.optimizer.parser import ChangeReader
from gpudb.optimizer.statements import pieces
from gpudb.optimizer.statements.nodes import (
    AlterDefaultPrivileges,
    AlterRole,
    AlterSystem,
    CreateRole,
    Grant,
    GrantRole,
    ObjectName,
    Option,
    Privilege,
    QualifiedName,
    ReassignOwned,
    ResetVariable,
    SetVariable,
    Statement,
)
from gpudb.optimizer.statements.transactions import reset, set_rest

_FLAGS = frozenset(
    flag
    for word in (
        "superuser",
        "createdb",
        "createrole",
        "inherit",
        "login",
        "replication",
        "bypassrls",
    )
    for flag in (word, "no" + word)
)


def create_role(r: ChangeReader) -> Statement:
    """CREATE ROLE, USER or GROUP from that word on."""
    kind = r.choose("role", "user", "group")
    name = pieces.role_name(r)
    r.accept("with")
    return CreateRole(kind, name, _role_options(r))


def _role_options(r: ChangeReader) -> tuple[Option, ...]:
    found: list[Option] = []
    while not r.at_end():
        found.append(_role_option(r))
    return tuple(found)


def _role_option(r: ChangeReader) -> Option:
    start = r.token
    at = r.position(start)
    if r.accept("encrypted"):
        r.expect("password")
        return Option("password", r.string(), at)
    if r.accept("password"):
        return Option("password", None if r.accept("null") else r.string(), at)
    if r.accept("connection", "limit"):
        return Option("connection limit", str(r.signed_integer()), at)
    if r.accept("valid", "until"):
        return Option("valid until", r.string(), at)
    if r.accept("sysid"):
        return Option("sysid", str(r.unsigned_integer()), at)
    if r.accept_any("role", "user", "admin"):
        return Option("admin" if start.key == "admin" else "role", pieces.role_names(r), at)
    if r.accept("in"):
        r.choose("role", "group")
        return Option("in role", pieces.role_names(r), at)
    if start.key == "inherit":
        r.advance()
        return Option("inherit", None, at)
    if start.kind is not Kind.WORD:
        r.fail()
    if start.key not in _FLAGS:
        raise r.error_at(start, f'unrecognized role option "{start.key}"')
    r.advance()
    return Option(start.key, None, at)


def alter_role(r: ChangeReader, kind: str) -> Statement:
    """ALTER ROLE or USER from the name on; ALTER GROUP ... ADD/DROP USER too."""
    name = None if r.accept("all") else pieces.role_name(r)
    if kind == "group" and r.token.key in ("add", "drop"):
        return _alter_group(r, name or "")
    database = ""
    if r.accept("in"):
        r.expect("database")
        database = r.name()
    if r.token.key in ("set", "reset"):
        return AlterRole(name, setting=setting(r), in_database=database)
    if database or name is None:
        r.fail()
    r.accept("with")
    return AlterRole(name, _role_options(r))


def _alter_group(r: ChangeReader, group: str) -> Statement:
    word = r.advance().key
    r.expect("user")
    members = pieces.role_names(r)
    return GrantRole((group,), members, is_revoke=word == "drop")


def setting(r: ChangeReader) -> SetVariable | ResetVariable:
    """SET name ... or RESET name of ALTER ROLE, DATABASE and SYSTEM."""
    if r.accept("set"):
        return set_rest(r)
    return reset(r)


def alter_system(r: ChangeReader) -> Statement:
    r.expect("system")
    return AlterSystem(setting(r))


def reassign(r: ChangeReader) -> Statement:
    r.expect("reassign", "owned", "by")
    roles = pieces.role_names(r)
    r.expect("to")
    return ReassignOwned(roles, pieces.role_name(r))


# --- GRANT and REVOKE -----------------------------------------------------------------------------

_GRANT_KINDS = frozenset(
    (
        "table",
        "sequence",
        "database",
        "domain",
        "function",
        "language",
        "parameter",
        "procedure",
        "routine",
        "schema",
        "tablespace",
        "type",
        "model",
    )
)
_PLURALS = {
    "tables": "table",
    "sequences": "sequence",
    "functions": "function",
    "procedures": "procedure",
    "routines": "routine",
    "types": "type",
    "schemas": "schema",
}


def grant(r: ChangeReader) -> Statement:
    r.expect("grant")
    privileges = _privileges(r)
    if r.accept("on"):
        kind, objects, all_in_schema = _grant_target(r)
        r.expect("to")
        grantees = _grantees(r)
        option = r.accept("with", "grant", "option")
        by = _granted_by(r)
        return Grant(
            privileges,
            kind,
            objects,
            grantees,
            False,
            all_in_schema,
            option,
            granted_by=by,
        )
    r.expect("to")
    grantees = pieces.role_names(r)
    admin = r.accept("with", "admin", "option")
    roles = tuple(privilege.name for privilege in privileges)
    return GrantRole(roles, grantees, False, admin, _granted_by(r))


def revoke(r: ChangeReader) -> Statement:
    r.expect("revoke")
    grant_option = r.accept("grant", "option", "for")
    admin_option = r.accept("admin", "option", "for")
    privileges = _privileges(r)
    if r.accept("on"):
        kind, objects, all_in_schema = _grant_target(r)
        r.expect("from")
        grantees = _grantees(r)
        by = _granted_by(r)
        cascade = pieces.drop_behavior(r)
        return Grant(
            privileges,
            kind,
            objects,
            grantees,
            True,
            all_in_schema,
            grant_option,
            by,
            cascade,
        )
    r.expect("from")
    grantees = pieces.role_names(r)
    roles = tuple(privilege.name for privilege in privileges)
    by = _granted_by(r)
    return GrantRole(roles, grantees, True, admin_option, by, pieces.drop_behavior(r))


def _granted_by(r: ChangeReader) -> str:
    return pieces.role_name(r) if r.accept("granted", "by") else ""


def _grantees(r: ChangeReader) -> tuple[str, ...]:
    found = [_grantee(r)]
    while r.accept(","):
        found.append(_grantee(r))
    return tuple(found)


def _grantee(r: ChangeReader) -> str:
    r.accept("group")
    if r.token.key == "public":
        return r.advance().value
    return pieces.role_name(r)


def _privileges(r: ChangeReader) -> tuple[Privilege, ...]:
    if r.accept("all"):
        r.accept("privileges")
        columns = r.parenthesized_names() if r.token.key == "(" else ()
        return (Privilege("all", columns),)
    found = [_privilege(r)]
    while r.accept(","):
        found.append(_privilege(r))
    return tuple(found)


def _privilege(r: ChangeReader) -> Privilege:
    if r.accept("alter", "system"):
        return Privilege("alter system")
    name = r.accept_any("select", "references", "create") or r.name()
    columns = r.parenthesized_names() if r.token.key == "(" else ()
    return Privilege(name, columns)


def _grant_target(r: ChangeReader) -> tuple[str, tuple[ObjectName, ...], bool]:
    if r.accept("all"):
        kind = _PLURALS[r.choose(*_PLURALS)]
        r.expect("in", "schema")
        return kind, tuple(_named(name) for name in r.names()), True
    if r.accept("foreign"):
        kind = "foreign server"
        if not r.accept("server"):
            r.expect("data", "wrapper")
            kind = "foreign data wrapper"
        return kind, tuple(_named(name) for name in r.names()), False
    if r.accept("large"):
        r.expect("object")
        return "large object", _large_objects(r), False
    kind = "table"
    if r.token.key in _GRANT_KINDS and r.peek().kind in (Kind.WORD, Kind.QUOTED):
        kind = r.advance().key
    return kind, _grant_objects(r, kind), False


def _named(name: str) -> ObjectName:
    return ObjectName(QualifiedName((name,)))


def _large_objects(r: ChangeReader) -> tuple[ObjectName, ...]:
    found = [_named(r.number_text())]
    while r.accept(","):
        found.append(_named(r.number_text()))
    return tuple(found)


def _grant_objects(r: ChangeReader, kind: str) -> tuple[ObjectName, ...]:
    has_arguments = kind in ("function", "procedure", "routine")
    rule = pieces.function_object if has_arguments else pieces.object_name
    found = [rule(r)]
    while r.accept(","):
        found.append(rule(r))
    return tuple(found)


def alter_default_privileges(r: ChangeReader) -> Statement:
    r.expect("default", "privileges")
    roles: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    while r.token.key in ("for", "in"):
        if r.accept("in"):
            r.expect("schema")
            schemas = r.names()
        else:
            r.advance()
            r.choose("role", "user")
            roles = pieces.role_names(r)
    return AlterDefaultPrivileges(roles, schemas, _default_grant(r))


def _default_grant(r: ChangeReader) -> Grant:
    is_revoke = r.choose("grant", "revoke") == "revoke"
    option = is_revoke and r.accept("grant", "option", "for")
    privileges = _privileges(r)
    r.expect("on")
    kind = _PLURALS[r.choose(*_PLURALS)]
    r.expect("from" if is_revoke else "to")
    grantees = _grantees(r)
    if not is_revoke:
        option = r.accept("with", "grant", "option")
    cascade = is_revoke and pieces.drop_behavior(r)
    return Grant(privileges, kind, (), grantees, is_revoke, False, option, cascade=cascade)
