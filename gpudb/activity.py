"""Rows of the system relations that only the running server knows: settings, sessions, cursors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gpudb import settings, sqltype
from gpudb.catalog.store import now_microseconds
from gpudb.catalog.system import SessionInfo, SystemCatalog
from gpudb.catalog.types.base import ArrayValue

if TYPE_CHECKING:
    from gpudb.database import Database
    from gpudb.session import Session

Rows = Iterator[tuple[Any, ...]]


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.15g}"


class Activity:
    """Providers for one database; registered with its SystemCatalog."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def register(self, system: SystemCatalog) -> None:
        for name, provider in (
            ("pg_settings", self.settings), ("pg_stat_activity", self.sessions),
            ("pg_cursors", self.cursors), ("pg_prepared_statements", self.prepared),
            ("pg_stat_ssl", self.encryption),
        ):
            system.register(f"pg_catalog.{name}", provider)
        system.register("gpudb.queries", self.queries)
        system.register("gpudb.cache", self.cache)
        system.register("gpudb.devices", self.devices)

    def _session(self, info: SessionInfo) -> Session | None:
        return self._database.sessions.get(info.process_id)

    def settings(self, snapshot: Any, info: SessionInfo) -> Rows:
        """pg_settings: every setting as the asking session has it."""
        session = self._session(info)
        for setting in sorted(settings.registry().values(), key=lambda s: s.name.lower()):
            text = setting.default if session is None else session.setting_text(setting.name)
            default = (
                setting.default if session is None
                else session.settings.default_text(setting.name)
            )
            choices = ArrayValue.of(sqltype.TEXT, setting.choices) if setting.choices else None
            source = "default" if text == default else "session"
            yield (
                setting.name, text, setting.unit or None, setting.category, setting.description,
                setting.extra or None, setting.context, setting.kind, source,
                _number(setting.minimum), _number(setting.maximum), choices, setting.default,
                default, None, None, False,
            )

    def sessions(self, snapshot: Any, info: SessionInfo) -> Rows:
        """pg_stat_activity: what every session does; others' queries only for superusers."""
        asking = snapshot.role_by_oid(info.role)
        for process_id, session in sorted(self._database.sessions.items()):
            role = snapshot.role(session.session_user)
            may_see = asking is not None and (
                asking.is_superuser or session.session_user == info.user_name
            )
            transaction = session.transaction
            started = None if transaction is None else transaction.started_microseconds
            yield (
                session.database_oid, session.database_name, process_id, None,
                0 if role is None else role.oid, session.session_user,
                str(session.settings["application_name"]), None, None, None,
                session.backend_started, started, session.query_started or None,
                session.state_changed, None, None, session.state() if may_see else None, None,
                None, None,
                session.query_text if may_see else "<insufficient privilege>", "client backend",
            )

    def cursors(self, snapshot: Any, info: SessionInfo) -> Rows:
        session = self._session(info)
        for portal in [] if session is None else list(session.portals.values()):
            if portal.name:
                yield (
                    portal.name, portal.text, portal.is_holdable, portal.is_binary,
                    portal.is_scrollable, portal.created_microseconds,
                )

    def prepared(self, snapshot: Any, info: SessionInfo) -> Rows:
        session = self._session(info)
        for item in [] if session is None else list(session.prepared.values()):
            if item.name:
                yield (
                    item.name, item.text, item.prepared_microseconds,
                    ArrayValue.of(sqltype.REGTYPE, item.parameter_oids), item.is_from_sql, 0, 0,
                )

    def encryption(self, snapshot: Any, info: SessionInfo) -> Rows:
        for process_id, session in sorted(self._database.sessions.items()):
            is_tls = session.connection is not None and session.connection.is_tls
            yield (process_id, is_tls, None, None, None, None, None, None)

    def queries(self, snapshot: Any, info: SessionInfo) -> Rows:
        """gpudb.queries: the statement that each session runs now."""
        now = now_microseconds()
        for process_id, session in sorted(self._database.sessions.items()):
            if session.state() != "active":
                continue
            elapsed = (now - session.query_started) / 1_000_000
            yield (
                process_id, process_id, session.user, session.database_name, "active",
                session.query_started, elapsed, None, None, None, None,
                self._database.executor.device, session.query_text,
            )

    def cache(self, snapshot: Any, info: SessionInfo) -> Rows:
        cache = self._database.storage.cache
        yield ("columns", len(cache), cache.bytes, cache.bytes_max, cache.hits, cache.misses)

    def devices(self, snapshot: Any, info: SessionInfo) -> Rows:
        device = self._database.executor.device
        yield (device, device, None, None)
