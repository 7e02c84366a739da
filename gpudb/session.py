"""One client: its settings, transaction, prepared statements and portals.

Implements wire.backend.Session. Methods are called by one thread at a time, except ``cancel``.
A statement runs in the current transaction; outside a block there is an implicit one, which ends
with the query string (simple protocol) or with Sync (extended protocol).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpudb import commands, errors
from gpudb.catalog import search_path, types
from gpudb.catalog.changes import Change, Drop, Truncate
from gpudb.catalog.objects import ObjectClass
from gpudb.catalog.search_path import SearchPath
from gpudb.catalog.store import now_microseconds
from gpudb.catalog.types.base import TypeContext
from gpudb.column import Batch
from gpudb.commands import Done, Rows
from gpudb.exec.context import CancelToken, QueryContext
from gpudb.optimizer import statements
from gpudb.optimizer.statements import nodes
from gpudb.portal import Portal
from gpudb.result import ResultField
from gpudb.settings import PYTHON_CODECS, REPORTED, SessionSettings
from gpudb.transaction import Transaction
from gpudb.wire.backend import (
    Codec,
    CommandOutcome,
    ConnectionInfo,
    Description,
    EmptyOutcome,
    IdleLimit,
    Notice,
    Notification,
    Outcome,
    RowsOutcome,
    StatementDescription,
    TransactionStatus,
    expand_result_formats,
)
from gpudb.wire.messages import FieldDescription

if TYPE_CHECKING:
    from gpudb.database import Database

PREPARED_MAX = 10_000
PORTALS_MAX = 10_000
NOTICES_MAX = 10_000
_LOG = logging.getLogger("gpudb.session")
_ALLOWED_IN_FAILED = (nodes.Rollback, nodes.Commit, nodes.RollbackToSavepoint)


@dataclass(slots=True)
class Prepared:
    """A prepared statement; ``statement`` is parsed, planning is the database's cache."""

    name: str
    text: str
    statement: Any
    parameter_oids: tuple[int, ...]
    fields: tuple[ResultField, ...] | None
    prepared_microseconds: int = 0
    is_from_sql: bool = False


class Session:
    """A session of one user in one database."""

    def __init__(
        self,
        database: Database,
        *,
        user: str,
        database_name: str,
        settings: SessionSettings,
        connection: ConnectionInfo | None = None,
    ) -> None:
        self.database = database
        self.user = user
        self.session_user = user
        self.database_name = database_name
        self.settings = settings
        self.connection = connection
        self.process_id = 0 if connection is None else connection.process_id
        found = database.store.published.database_by_name(database_name)
        assert found is not None
        self.database_oid = found.oid
        self.transaction: Transaction | None = None
        self.is_block = False
        self.is_failed = False
        self.temporary: tuple[Change, ...] = ()
        self.temporary_schema = 0
        self.prepared: dict[str, Prepared] = {}
        self.portals: dict[str, Portal] = {}
        self.notices: list[Notice] = []
        self.notifications: list[Notification] = []
        self.sequence_values: dict[int, int] = {}
        self.on_commit_actions: dict[int, str] = {}
        self.last_sequence = 0
        self.channels: set[str] = set()
        self.advisory_levels: set[bool] = set()
        self.is_multiple = False
        self.query_text = ""
        self.bound_parameters: tuple[tuple[Any, ...], tuple[int, ...]] = ((), ())
        self.query_started = 0
        self.state_changed = now_microseconds()
        self.backend_started = self.state_changed
        self.seed: int | None = None
        self.copied_batches: list[Batch] = []
        self._cancel: CancelToken | None = None
        self._wake: Callable[[], None] | None = None
        self._reported: dict[str, str] = {}

    # What the server asks for

    @property
    def transaction_status(self) -> TransactionStatus:
        if self.is_failed:
            return "E"
        return "T" if self.is_block else "I"

    @property
    def client_encoding(self) -> str:
        return PYTHON_CODECS[self.settings.text("client_encoding")]

    def reported_value(self, name: str) -> str:
        """The text of a reported parameter."""
        if name == "is_superuser":
            return "on" if self.is_superuser() else "off"
        if name == "session_authorization":
            return self.session_user
        return self.settings.show(name)

    def parameter_status(self) -> Mapping[str, str]:
        self._reported = {name: self.reported_value(name) for name in REPORTED}
        return dict(self._reported)

    def drain_status_changes(self) -> list[tuple[str, str]]:
        changed = []
        for name, old in self._reported.items():
            new = self.reported_value(name)
            if new != old:
                changed.append((name, new))
        self._reported.update(changed)
        return changed

    def drain_notices(self) -> list[Notice]:
        notices, self.notices = self.notices, []
        return notices

    def drain_notifications(self) -> list[Notification]:
        if self.is_block:
            return []
        found, self.notifications = self.notifications, []
        return found

    def on_notification(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def receive(self, message: Notification) -> None:
        """Queue a notification of another session, once, and wake the client's connection."""
        if message not in self.notifications:
            self.notifications.append(message)
            if self._wake is not None:
                self._wake()

    def idle_limit(self) -> IdleLimit | None:
        if self.is_block:
            milliseconds = self.settings["idle_in_transaction_session_timeout"]
            error = errors.IdleInTransactionSessionTimeout(
                "terminating connection due to idle-in-transaction timeout"
            )
            return IdleLimit(int(milliseconds) / 1000, error) if milliseconds else None
        milliseconds = self.settings["idle_session_timeout"]
        if not milliseconds:
            return None
        idle = errors.IdleSessionTimeout("terminating connection due to idle-session timeout")
        return IdleLimit(int(milliseconds) / 1000, idle)

    def cancel(self) -> None:
        token = self._cancel
        if token is not None:
            token.cancel()

    def close(self) -> None:
        self._end_transaction(is_commit=False)
        for portal in self.portals.values():
            portal.close()
        self.portals.clear()
        self.release_advisory_locks(is_of_transaction=False)
        self.database.forget(self)

    # Context of a statement

    def notice(
        self, severity: str, sqlstate: str, message: str, *, detail: str = "", hint: str = ""
    ) -> None:
        """Queue a notice when client_min_messages lets it through."""
        order = ("debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice",
                 "warning", "error")
        limit = order.index(str(self.settings["client_min_messages"]))
        level = order.index("debug1" if severity == "DEBUG" else severity.lower()) if (
            severity != "INFO"
        ) else len(order)
        if level >= limit and len(self.notices) < NOTICES_MAX:
            self.notices.append(Notice(severity, sqlstate, message, detail, hint))

    def setting_text(self, name: str) -> str:
        """The canonical text of a setting as pg_settings shows it."""
        transaction = self.transaction
        if transaction is not None and name == "transaction_isolation":
            return transaction.isolation
        if transaction is not None and name == "transaction_read_only":
            return "on" if transaction.is_read_only else "off"
        if name in ("is_superuser", "session_authorization"):
            return self.reported_value(name)
        return self.settings.text(name)

    def state(self) -> str:
        """pg_stat_activity.state."""
        if self._cancel is not None:
            return "active"
        if self.is_failed:
            return "idle in transaction (aborted)"
        return "idle in transaction" if self.is_block else "idle"

    def set_seed(self, seed: int) -> None:
        """setseed(): random() of later statements starts from here."""
        self.seed = seed

    def is_superuser(self, user: str | None = None) -> bool:
        role = self.catalog.role(user or self.user)
        return role is not None and role.is_superuser

    @property
    def catalog(self) -> Any:
        """The snapshot that the current statement sees; the newest one between statements."""
        if self.transaction is not None:
            return self.transaction.snapshot
        published = self.database.store.published.in_database(self.database_oid)
        return published.apply(self.temporary) if self.temporary else published

    def path(self) -> SearchPath:
        """The effective search path."""
        names = search_path.split_names(self.settings.text("search_path"))
        return search_path.resolve(
            self.catalog, names, user=self.user, temporary=self.temporary_schema
        )

    def type_context(self) -> TypeContext:
        """The text-format settings and catalog look-ups."""
        return self.database.type_context(self)

    def query_context(self, parameters: tuple[Any, ...] = ()) -> QueryContext:
        """The context of the statement that runs now."""
        assert self.transaction is not None
        timeout = int(self.settings["statement_timeout"])
        deadline = time.monotonic() + timeout / 1000 if timeout else None
        if self._cancel is None:
            self._cancel = CancelToken()
        return QueryContext(
            snapshot=self.transaction.snapshot,
            settings=self.settings,
            parameters=parameters,
            now_microseconds=self.transaction.started_microseconds,
            statement_microseconds=self.query_started,
            user=self.user,
            session_user=self.session_user,
            database=self.database_name,
            search_path=search_path.split_names(self.settings.text("search_path")),
            seed=self._next_seed(),
            deadline=deadline,
            own_writes=self.transaction.writes,
            types=self.type_context(),
            cancel=self._cancel,
            session=self,
        )

    def _next_seed(self) -> int:
        if self.seed is None:
            return self.database.next_seed()
        self.seed = (self.seed * 6364136223846793005 + 1442695040888963407) % 2**62
        return self.seed

    # Transactions

    def begin_statement(self, statement: Any) -> None:
        """Make sure that a transaction runs and give the statement its snapshot; 25P02."""
        if self.is_failed and not isinstance(statement, _ALLOWED_IN_FAILED):
            raise errors.InFailedSqlTransaction(
                "current transaction is aborted, commands ignored until end of transaction block"
            )
        self.query_started = now_microseconds()
        self.state_changed = self.query_started
        self._cancel = CancelToken()
        if self.transaction is None:
            self.start_transaction()
        elif not self.is_failed:
            assert self.transaction is not None
        if not self.is_failed and self.transaction is not None:
            self.transaction.next_statement()

    def start_transaction(self) -> Transaction:
        """A new transaction with the session's default modes."""
        self.transaction = Transaction(
            self.database.store,
            self.database.storage,
            database_oid=self.database_oid,
            temporary=self.temporary,
            isolation=str(self.settings["default_transaction_isolation"]),
            is_read_only=bool(self.settings["default_transaction_read_only"]),
            started_microseconds=self.query_started or now_microseconds(),
        )
        self.settings.begin()
        return self.transaction

    def end_implicit(self) -> None:
        """Commit the transaction of a statement outside of a block."""
        if not self.is_block:
            self._end_transaction(is_commit=True)

    def end_block(self, *, is_commit: bool) -> None:
        """COMMIT or ROLLBACK of a block."""
        self.is_block = False
        self.is_failed = False
        self._end_transaction(is_commit=is_commit)

    def _end_transaction(self, *, is_commit: bool) -> None:
        transaction = self.transaction
        if transaction is None:
            return
        try:
            if is_commit:
                self._hold_cursors()
                self._apply_on_commit()
                self.temporary = transaction.commit()
            else:
                transaction.rollback()
        except BaseException:
            is_commit = False
            transaction.rollback()
            raise
        finally:
            self.transaction = None
            self.settings.end(is_commit=is_commit)
            self.release_advisory_locks(is_of_transaction=True)
            self._drop_portals()

    def drop_temporary(self) -> None:
        """DISCARD TEMP: drop every temporary relation of the session."""
        assert self.transaction is not None
        for relation in list(self.catalog.relations()):
            if relation.schema == self.temporary_schema and relation.persistence == "t":
                self.transaction.change(Drop(ObjectClass.RELATION, relation.oid))

    def _apply_on_commit(self) -> None:
        """ON COMMIT DROP and DELETE ROWS of temporary tables."""
        assert self.transaction is not None
        for oid, action in list(self.on_commit_actions.items()):
            if self.catalog.relation_by_oid(oid) is None:
                del self.on_commit_actions[oid]
            elif action == "drop":
                self.transaction.change(Drop(ObjectClass.RELATION, oid))
                del self.on_commit_actions[oid]
            elif self.catalog.data(oid).segments:
                self.transaction.change(Truncate(oid))

    def _hold_cursors(self) -> None:
        for portal in self.portals.values():
            if portal.is_holdable:
                portal.hold()

    def _drop_portals(self) -> None:
        """Portals end with their transaction, except held cursors that survived a commit."""
        for name, portal in list(self.portals.items()):
            if not (portal.is_holdable and portal.extra.get("held", True)):
                portal.close()
                del self.portals[name]

    # Advisory locks

    def take_advisory(
        self, key: tuple[int, int, int], *, is_shared: bool, is_of_transaction: bool, waits: bool
    ) -> bool:
        """Lock a key of this database; False when others hold it and the caller won't wait."""
        self.advisory_levels.add(is_of_transaction)
        return self.database.advisory_locks.take(
            id(self), (self.database_oid, *key), is_shared=is_shared,
            is_of_transaction=is_of_transaction,
            check=self.query_context().check if waits else None,
        )

    def release_advisory(self, key: tuple[int, int, int], *, is_shared: bool) -> bool:
        """Unlock a key once; False, with a warning, when the session doesn't hold it."""
        is_held = self.database.advisory_locks.release(
            id(self), (self.database_oid, *key), is_shared=is_shared
        )
        if not is_held:
            kind = "ShareLock" if is_shared else "ExclusiveLock"
            self.notice("WARNING", "01000", f"you don't own a lock of type {kind}")
        return is_held

    def release_advisory_locks(self, *, is_of_transaction: bool) -> None:
        """Give up the locks of the session or of its transaction."""
        if is_of_transaction in self.advisory_levels:
            self.advisory_levels.discard(is_of_transaction)
            self.database.advisory_locks.release_all(
                id(self), is_of_transaction=is_of_transaction
            )

    # Running statements

    def run(
        self,
        statement: Any,
        text: str,
        parameters: tuple[Any, ...] = (),
        *,
        parameter_oids: tuple[int, ...] = (),
    ) -> Any:
        """Run one statement in the current transaction: Done, Rows or a COPY outcome."""
        if isinstance(statement, nodes.QueryStatement):
            return self.database.run_query(self, statement, parameters, parameter_oids)
        if isinstance(statement, nodes.Unsupported):
            raise errors.FeatureNotSupported(f"{statement.what} is not supported")
        handler = commands.HANDLERS.get(type(statement))
        if handler is None:
            raise errors.FeatureNotSupported(f"{statement.tag} is not supported")
        self.bound_parameters = (parameters, parameter_oids)
        return handler(self, statement)

    def simple_query(self, sql: str) -> Iterator[Outcome]:
        self.query_text = sql
        parsed = statements.parse(sql)
        if not parsed:
            yield EmptyOutcome()
            return
        self.is_multiple = len(parsed) > 1
        self.portals.pop("", None)
        for index, statement in enumerate(parsed):
            is_last = index == len(parsed) - 1
            if isinstance(statement, nodes.Empty):
                continue
            self.begin_statement(statement)
            result = self.run(statement, sql)
            yield self._outcome(result, (), commit=is_last)

    def _outcome(self, result: Any, formats: tuple[int, ...], *, commit: bool) -> Outcome:
        """The wire's form of a result; ``commit``: the implicit transaction ends with it."""
        if isinstance(result, Done):
            if commit:
                self.end_implicit()
            self._idle()
            return CommandOutcome(result.tag)
        if isinstance(result, Rows):
            stream = result.stream

            def end(count: int) -> str:
                if commit:
                    self.end_implicit()
                self._idle()
                return result.tag(count)

            codes = expand_result_formats(formats, len(result.fields))
            return RowsOutcome(describe(result.fields, codes), self.codec(), iter(stream), end)
        if commit and hasattr(result, "on_end"):
            result.on_end = self.end_implicit
        return result  # type: ignore[no-any-return]

    def _idle(self) -> None:
        """The statement has ended: nothing is left to cancel."""
        self._cancel = None
        self.state_changed = now_microseconds()

    def codec(self) -> Codec:
        return Codec(self.database.type_of(self.catalog), self.type_context(), self.client_encoding)

    def fail(self, error: Exception) -> errors.SqlError:
        if not isinstance(error, errors.SqlError):
            _LOG.exception("internal error", exc_info=error)
            error = errors.InternalError(f"internal error: {type(error).__name__}: {error}")
        self._idle()
        for portal in self.portals.values():
            portal.extra["held"] = portal.is_holdable and portal.extra.get("survives", False)
        if self.is_block:
            self.is_failed = True
        else:
            self._end_transaction(is_commit=False)
        return error

    # Extended protocol

    def parse(self, name: str, sql: str, param_oids: tuple[int, ...]) -> None:
        self.is_multiple = False
        if name and name in self.prepared:
            raise errors.DuplicatePreparedStatement(f'prepared statement "{name}" already exists')
        parsed = [s for s in statements.parse(sql) if not isinstance(s, nodes.Empty)]
        if len(parsed) > 1:
            raise errors.SyntaxError("cannot insert multiple commands into a prepared statement")
        statement = parsed[0] if parsed else nodes.Empty()
        self.query_text = sql
        if isinstance(statement, nodes.Empty):
            self.prepared[name] = Prepared(name, sql, statement, param_oids, None)
            return
        self.begin_statement(statement)
        self.prepared[name] = self.prepare(name, sql, statement, param_oids)

    def prepare(
        self, name: str, text: str, statement: Any, param_oids: tuple[int, ...]
    ) -> Prepared:
        """Analyse a statement: parameter types and result fields."""
        if len(self.prepared) >= PREPARED_MAX:
            raise errors.ConfigurationLimitExceeded("too many prepared statements")
        fields: tuple[ResultField, ...] | None = None
        if not self.is_failed:
            if isinstance(statement, nodes.QueryStatement):
                analysed = self.database.analyse(self, statement, param_oids)
                param_oids, fields = analysed.parameter_oids, analysed.result_fields
            else:
                inner = commands.inner_query(statement)
                if inner is not None:
                    param_oids = self.database.analyse(self, inner, param_oids).parameter_oids
                fields = self.database.utility_fields(self, statement)
        return Prepared(name, text, statement, param_oids, fields, now_microseconds())

    def bind(
        self,
        portal: str,
        statement: str,
        *,
        formats: tuple[int, ...],
        values: tuple[bytes | None, ...],
        result_formats: tuple[int, ...],
    ) -> None:
        prepared = self.find_prepared(statement)
        if len(values) != len(prepared.parameter_oids):
            raise errors.ProtocolViolation(
                f"bind message supplies {len(values)} parameters, but prepared statement "
                f'"{statement}" requires {len(prepared.parameter_oids)}'
            )
        if portal and portal in self.portals:
            raise errors.DuplicateCursor(f'cursor "{portal}" already exists')
        if self.is_failed and not isinstance(prepared.statement, _ALLOWED_IN_FAILED):
            self.begin_statement(prepared.statement)
        if prepared.fields is not None:
            expand_result_formats(result_formats, len(prepared.fields))
        if self.transaction is None and not isinstance(prepared.statement, nodes.Empty):
            self.begin_statement(prepared.statement)
        parameters = self.decode_parameters(prepared.parameter_oids, formats, values)
        if not portal and "" in self.portals:
            self.portals.pop("").close()
        if len(self.portals) >= PORTALS_MAX:
            raise errors.ConfigurationLimitExceeded("too many portals")
        self.portals[portal] = Portal(
            portal, prepared.statement, prepared.text, parameters,
            parameter_oids=prepared.parameter_oids, result_formats=result_formats,
            fields=prepared.fields, created_microseconds=now_microseconds(),
        )

    def decode_parameters(
        self, oids: tuple[int, ...], formats: tuple[int, ...], values: tuple[bytes | None, ...]
    ) -> tuple[Any, ...]:
        """Host values of the parameters; 22P02, 22P03, 22021."""
        context = self.type_context()
        type_of = self.database.type_of(self.catalog)
        found: list[Any] = []
        for index, (oid, code, raw) in enumerate(zip(oids, formats, values, strict=True), 1):
            if raw is None:
                found.append(None)
            elif code == 1:
                found.append(type_of(oid).receive(raw, -1, context))
            else:
                text = self._decode_text(raw, index)
                found.append(type_of(oid).parse(text, -1, context))
        return tuple(found)

    def _decode_text(self, raw: bytes, index: int) -> str:
        try:
            text = raw.decode(self.client_encoding)
        except UnicodeDecodeError as error:
            byte = " ".join(f"0x{b:02x}" for b in raw[error.start : error.end])
            raise errors.CharacterNotInRepertoire(
                f'invalid byte sequence for encoding "UTF8": {byte}',
                context=f"unnamed portal parameter ${index}",
            ) from None
        if "\0" in text:
            raise errors.CharacterNotInRepertoire(
                'invalid byte sequence for encoding "UTF8": 0x00',
                context=f"unnamed portal parameter ${index}",
            )
        return text

    def find_prepared(self, name: str) -> Prepared:
        """The prepared statement; 26000."""
        found = self.prepared.get(name)
        if found is None:
            what = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise errors.InvalidSqlStatementName(f"{what} does not exist")
        return found

    def find_portal(self, name: str, *, what: str = "portal") -> Portal:
        """The portal or cursor; 34000."""
        found = self.portals.get(name)
        if found is None:
            raise errors.InvalidCursorName(f'{what} "{name}" does not exist')
        return found

    def describe_statement(self, name: str) -> StatementDescription:
        prepared = self.find_prepared(name)
        fields = prepared.fields
        described = None if fields is None else describe(fields, (0,) * len(fields))
        return StatementDescription(prepared.parameter_oids, described)

    def describe_portal(self, name: str) -> Description | None:
        portal = self.find_portal(name)
        if portal.fields is None:
            return None
        codes = self._formats(portal)
        return describe(portal.fields, codes)

    def _formats(self, portal: Portal) -> tuple[int, ...]:
        assert portal.fields is not None
        if portal.is_sql_cursor:
            return (1 if portal.is_binary else 0,) * len(portal.fields)
        return expand_result_formats(portal.result_formats, len(portal.fields))

    def execute(self, portal: str, max_rows: int) -> Outcome:
        found = self.find_portal(portal)
        if isinstance(found.statement, nodes.Empty):
            return EmptyOutcome()
        self.query_text = found.text
        self.begin_statement(found.statement)
        result = self.start_portal(found)
        if result is not None:
            return self._outcome(result, (), commit=False)
        return self._portal_rows(found, max_rows)

    def start_portal(self, portal: Portal) -> Any:
        """Run a portal that has not run yet; what it gives when that is not rows. 55000."""
        if portal.rows is not None:
            return None
        if portal.is_done:
            raise errors.ObjectNotInPrerequisiteState(f'portal "{portal.name}" cannot be run')
        result = self.run(
            portal.statement, portal.text, portal.parameters,
            parameter_oids=portal.parameter_oids,
        )
        if isinstance(result, Rows):
            portal.start(result)
            return None
        portal.is_done = True
        return result

    def _portal_rows(self, portal: Portal, max_rows: int) -> Outcome:
        assert portal.rows is not None and portal.fields is not None
        rows = portal.rows

        def end(count: int) -> str | None:
            self._idle()
            if max_rows > 0 and count == max_rows and not portal.is_done:
                return None
            return rows.tag(count)

        fields = describe(portal.fields, self._formats(portal))
        return RowsOutcome(fields, self.codec(), portal.take(max_rows), end)

    def close_statement(self, name: str) -> None:
        self.prepared.pop(name, None)

    def close_portal(self, name: str) -> None:
        portal = self.portals.pop(name, None)
        if portal is not None:
            portal.close()

    def sync(self) -> None:
        self.end_implicit()


def describe(fields: tuple[ResultField, ...], formats: tuple[int, ...]) -> Description:
    """RowDescription of result fields."""
    found = []
    for item, code in zip(fields, formats, strict=True):
        length = types.get(item.type_oid).length if types.is_known(item.type_oid) else -1
        found.append(
            FieldDescription(
                item.name, item.type_oid, length, item.typmod, item.table_oid, item.attnum, code
            )
        )
    return tuple(found)
