"""SET, RESET, SHOW, DISCARD."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudb import errors, settings
from gpudb.commands import Done, Result, describes, handles
from gpudb.commands.rows import rows_of
from gpudb.optimizer.statements import nodes
from gpudb.result import ResultField
from gpudb.sqltype import TEXT

if TYPE_CHECKING:
    from gpudb.session import Session

LIST_SETTINGS = frozenset({
    "search_path", "datestyle", "temp_tablespaces", "session_preload_libraries",
    "local_preload_libraries", "shared_preload_libraries", "listen_addresses", "log_destination",
    "synchronous_standby_names", "unix_socket_directories", "wal_consistency_checking",
    "createrole_self_grant", "gpudb.file_roots",
})
"""Settings whose several values are joined by commas; others take one."""


@handles(nodes.SetVariable)
def set_variable(session: Session, statement: nodes.SetVariable) -> Result:
    name = statement.name.lower()
    if statement.is_local and not session.is_block:
        session.notice("WARNING", "25P01", "SET LOCAL can only be used in transaction blocks")
    if statement.from_current:
        values: tuple[str, ...] | None = (session.settings.text(name),)
    else:
        values = statement.values
    if name in ("role", "session_authorization"):
        _set_user(session, name, values, is_local=statement.is_local)
    elif name.startswith("transaction_"):
        _set_transaction_mode(session, name, values)
    elif values is None:
        assign(session, name, session.settings.default_text(name), is_local=statement.is_local)
    else:
        if len(values) > 1 and name not in LIST_SETTINGS:
            raise errors.InvalidParameterValue(f"SET {statement.name} takes only one argument")
        text = _joined(name, values)
        assign(session, name, text, is_local=statement.is_local)
    return Done(statement.tag)


def _joined(name: str, values: tuple[str, ...]) -> str:
    if name == "search_path":
        return ", ".join(_quoted(value) for value in values)
    return ", ".join(values)


def _quoted(name: str) -> str:
    """A schema name as search_path shows it."""
    if name and all(c.islower() or c.isdigit() or c == "_" for c in name) and not name[0].isdigit():
        return name
    return '"' + name.replace('"', '""') + '"'


def assign(session: Session, name: str, text: str, *, is_local: bool) -> None:
    """Set a setting after checking that the session may; 42704, 22023, 42501, 55P02."""
    setting = settings.registry().get(name)
    if setting is not None:
        check_context(session, setting)
    session.settings.assign(name, text, is_local=is_local)


def check_context(session: Session, setting: settings.Setting) -> None:
    """55P02 for what a session can't change, 42501 for what only superusers may."""
    match setting.context:
        case "internal":
            raise errors.CantChangeRuntimeParam(f'parameter "{setting.name}" cannot be changed')
        case "postmaster":
            raise errors.CantChangeRuntimeParam(
                f'parameter "{setting.name}" cannot be changed without restarting the server'
            )
        case "sighup":
            raise errors.CantChangeRuntimeParam(
                f'parameter "{setting.name}" cannot be changed now'
            )
        case "backend" | "superuser-backend":
            raise errors.CantChangeRuntimeParam(
                f'parameter "{setting.name}" cannot be set after connection start'
            )
        case "superuser" if not session.is_superuser():
            raise errors.InsufficientPrivilege(
                f'permission denied to set parameter "{setting.name}"'
            )


def _set_user(
    session: Session, name: str, values: tuple[str, ...] | None, *, is_local: bool
) -> None:
    if values is None or (name == "role" and values[0].lower() == "none"):
        session.user = session.session_user
        session.settings.assign("role", "none", is_local=is_local)
        return
    role = session.catalog.role(values[0])
    if role is None:
        raise errors.InvalidParameterValue(f'role "{values[0]}" does not exist')
    if name == "role":
        if not session.is_superuser(session.session_user) and role.name != session.session_user:
            raise errors.InsufficientPrivilege(f'permission denied to set role "{role.name}"')
        session.user = role.name
        session.settings.assign("role", role.name, is_local=is_local)
        return
    if not session.is_superuser(session.session_user) and role.name != session.session_user:
        raise errors.InsufficientPrivilege("permission denied to set session authorization")
    session.user = session.session_user = role.name


def _set_transaction_mode(session: Session, name: str, values: tuple[str, ...] | None) -> None:
    assert session.transaction is not None
    text = (values or (session.settings.default_text("default_" + name),))[0]
    text = settings.canonical(settings.find(name), text)
    if name == "transaction_isolation":
        session.transaction.isolation = text
    elif name == "transaction_read_only":
        session.transaction.is_read_only = text == "on"
    session.settings.assign(name, text, is_local=True)


@handles(nodes.ResetVariable)
def reset_variable(session: Session, statement: nodes.ResetVariable) -> Result:
    if statement.name is None:
        session.settings.reset_all()
        session.user = session.session_user
    elif statement.name.lower() in ("role", "session_authorization"):
        _set_user(session, statement.name.lower(), None, is_local=False)
    else:
        setting = settings.registry().get(statement.name.lower())
        if setting is not None:
            check_context(session, setting)
        session.settings.reset(statement.name)
    return Done(statement.tag)


def show_text(session: Session, name: str) -> str:
    """What SHOW displays for a setting; 42704."""
    key = name.lower()
    match key:
        case "session_authorization":
            return session.session_user
        case "is_superuser":
            return "on" if session.is_superuser() else "off"
        case "transaction_isolation" if session.transaction is not None:
            return session.transaction.isolation
        case "transaction_read_only" if session.transaction is not None:
            return "on" if session.transaction.is_read_only else "off"
    return session.settings.show(key)


@describes(nodes.ShowVariable)
def show_fields(_: Session, statement: nodes.ShowVariable) -> tuple[ResultField, ...]:
    if statement.name is None:
        return tuple(ResultField(name, TEXT) for name in ("name", "setting", "description"))
    known = settings.registry().get(statement.name.lower())
    return (ResultField(statement.name if known is None else known.name, TEXT),)


@handles(nodes.ShowVariable)
def show_variable(session: Session, statement: nodes.ShowVariable) -> Result:
    if statement.name is None:
        rows: list[tuple[str, ...]] = [
            (s.name, show_text(session, s.name), s.description)
            for s in sorted(settings.registry().values(), key=lambda s: s.name.lower())
        ]
    else:
        rows = [(show_text(session, statement.name),)]
    return rows_of(show_fields(session, statement), rows, tag="SHOW")


@handles(nodes.Discard)
def discard(session: Session, statement: nodes.Discard) -> Result:
    if statement.target == "all":
        if session.is_block or session.is_multiple:
            raise errors.ActiveSqlTransaction("DISCARD ALL cannot run inside a transaction block")
        for portal in session.portals.values():
            portal.close()
        session.portals.clear()
        session.user = session.session_user
        session.settings.reset_all()
        session.prepared.clear()
        session.channels.clear()
        session.release_advisory_locks(is_of_transaction=False)
    if statement.target in ("all", "temp", "temporary"):
        session.drop_temporary()
    if statement.target in ("all", "sequences"):
        session.sequence_values.clear()
        session.last_sequence = 0
    return Done(statement.tag)


