"""The composition root: one data directory with its catalog, storage, executor and sessions."""

from __future__ import annotations

import itertools
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpudb import commands, errors, settings
from gpudb.activity import Activity
from gpudb.advisory_locks import AdvisoryLocks
from gpudb.catalog import privileges, types
from gpudb.catalog.object_names import ObjectNames
from gpudb.catalog.objects import ColumnDef, Relation, TableData
from gpudb.catalog.store import Store
from gpudb.catalog.system import SystemCatalog
from gpudb.catalog.types import zones
from gpudb.catalog.types.base import DataType, TypeContext
from gpudb.column import Batch, from_host, to_values
from gpudb.commands import Done, Rows, constraints, files
from gpudb.commands.prepared import execute_arguments
from gpudb.exec import functions
from gpudb.exec.executor import Executor
from gpudb.expr import Expr, Literal
from gpudb.optimizer.binder import bind_query, bind_scalar, bound_columns, resolve_type_name
from gpudb.optimizer.binder.context import FileColumns
from gpudb.optimizer.logical import FileScan, Plan
from gpudb.optimizer.parser import parse_query, parse_type
from gpudb.optimizer.statements import nodes
from gpudb.planning import Analysed, Planned, Planner, result_fields
from gpudb.result import HostBatch, ResultField, ResultStream
from gpudb.session import Session
from gpudb.settings import SessionSettings
from gpudb.sqltype import SqlType
from gpudb.storage.table import Storage
from gpudb.tree import transform
from gpudb.wire.backend import ConnectionInfo, Notification

_PAGE = os.sysconf("SC_PAGE_SIZE")
DEFAULT_CACHE_FRACTION = 4
DEFAULT_MEMORY_FRACTION = 2
ZONE_HOURS_MAX = 15.99


def memory_bytes() -> int:
    """The machine's memory, or the cgroup's limit when that is lower."""
    total = os.sysconf("SC_PHYS_PAGES") * _PAGE
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text("ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            total = min(total, int(text))
    return total


@dataclass(frozen=True, slots=True)
class Options:
    """How a database is opened; 0 and "auto" take what the machine has."""

    threads: int = 0
    device: str = "auto"
    memory_bytes: int = 0
    cache_bytes: int = 0
    settings: Mapping[str, str] | None = None


class Database:
    """An open data directory. Thread-safe; ``close`` ends all sessions' queries."""

    def __init__(self, directory: Path, options: Options | None = None) -> None:
        options = options or Options()
        self.server_settings = {
            name: settings.canonical(settings.find(name), value)
            for name, value in (options.settings or {}).items()
        }
        functions.load()
        commands.load()
        self.options = options
        self.directory = directory
        self.store = Store.open(directory)
        memory = memory_bytes()
        self.storage = Storage(
            directory,
            epoch=self.store.epoch,
            allocate_segment=self.store.allocate_segment_id,
            cache_bytes=options.cache_bytes or memory // DEFAULT_CACHE_FRACTION,
        )
        self.storage.sweep(self.store)
        self.system = SystemCatalog()
        self.executor = Executor(
            storage=self.storage,
            system=self.system,
            threads=options.threads or os.cpu_count() or 1,
            device=options.device,
            memory_bytes=options.memory_bytes or memory // DEFAULT_MEMORY_FRACTION,
        )
        self.planner = Planner(self)
        Activity(self).register(self.system)
        self.advisory_locks = AdvisoryLocks()
        self.sessions: dict[int, Session] = {}
        self._lock = threading.Lock()
        self._seeds = itertools.count(secrets.randbits(62))
        self._local_ids = itertools.count(1)

    def close(self) -> None:
        for session in list(self.sessions.values()):
            session.cancel()
        self.executor.close()
        self.storage.close()
        self.store.close()

    # Sessions

    def open_session(
        self,
        parameters: Mapping[str, str],
        connection: ConnectionInfo | None = None,
    ) -> Session:
        """A session for an authenticated user; 28000, 3D000, 42704, 22023, 53300."""
        user = parameters.get("user", "postgres")
        name = parameters.get("database") or user
        snapshot = self.store.published
        role = snapshot.role(user)
        if role is None:
            raise errors.InvalidAuthorizationSpecification(f'role "{user}" does not exist')
        if not role.can_login:
            raise errors.InvalidAuthorizationSpecification(
                f'role "{user}" is not permitted to log in'
            )
        database = snapshot.database_by_name(name)
        if database is None:
            raise errors.InvalidCatalogName(f'database "{name}" does not exist')
        if not database.allows_connections:
            raise errors.ObjectNotInPrerequisiteState(
                f'database "{name}" is not currently accepting connections'
            )
        defaults = dict(self.server_settings)
        for item in (*database.settings, *role.settings):
            setting, _, value = item.partition("=")
            defaults[setting] = value
        validators = {"timezone": time_zone_name}
        given = SessionSettings(defaults, validators)
        session = Session(
            self, user=user, database_name=name,
            settings=SessionSettings(startup_settings(given, parameters), validators),
            connection=connection,
        )
        with self._lock:
            if connection is None:
                session.process_id = next(self._local_ids)
            self.sessions[session.process_id] = session
        return session

    def forget(self, session: Session) -> None:
        with self._lock:
            self.sessions.pop(session.process_id, None)

    def verifier(self, user: str) -> str | None:
        role = self.store.published.role(user)
        return None if role is None else role.password

    def notify(self, process_id: int, channel: str, payload: str) -> None:
        """Deliver a message to every session that listens."""
        for session in list(self.sessions.values()):
            if channel in session.channels:
                session.receive(Notification(process_id, channel, payload))

    def next_seed(self) -> int:
        return next(self._seeds) & (2**63 - 1)

    # Types

    def type_of(self, snapshot: Any) -> Callable[[int], DataType]:
        """How OIDs become codecs, user types included."""
        return lambda oid: types.get(oid, snapshot)

    def type_context(self, session: Session) -> TypeContext:
        """The text-format settings of a session."""
        of = session.settings
        style, _, order = of.text("DateStyle").partition(", ")
        zone = zones.zone(of.text("TimeZone"))
        assert zone is not None
        transaction = session.transaction
        return TypeContext(
            time_zone=zone,
            date_style=style,
            date_order=order,
            interval_style=of.text("IntervalStyle"),
            extra_float_digits=int(of["extra_float_digits"]),
            bytea_output=of.text("bytea_output"),
            now_microseconds=0 if transaction is None else transaction.started_microseconds,
            lookup=ObjectNames(session.catalog, session.path()).lookup,
        )

    def type_name(self, session: Session, name: nodes.TypeName) -> SqlType:
        """The type that a type name means; 42704."""
        return resolve_type_name(name, session.catalog, self.planner.context(session))

    # Queries

    def analyse(
        self, session: Session, query: nodes.QueryStatement, parameter_oids: tuple[int, ...]
    ) -> Analysed:
        bound = self.planner.bind(session, query, parameter_oids)
        return Analysed(bound.parameter_types, result_fields(bound))

    def run_query(
        self,
        session: Session,
        query: nodes.QueryStatement,
        parameters: tuple[Any, ...] = (),
        parameter_oids: tuple[int, ...] = (),
    ) -> Done | Rows:
        """Run a query or DML statement; DML runs to its end before this returns."""
        planned = self.planner.plan(session, query, parameter_oids)
        return self.run_planned(session, planned, parameters)

    def run_planned(
        self, session: Session, planned: Planned, parameters: tuple[Any, ...] = ()
    ) -> Done | Rows:
        kind = planned.bound.kind
        is_write = kind in ("insert", "update", "delete", "merge")
        assert session.transaction is not None
        if is_write:
            session.transaction.require_writable(kind.upper())
        context = session.query_context(parameters)
        if is_write and not planned.bound.has_returning:
            context.counted = planned.physical
        stream = self.executor.run(planned.physical, context, planned.bound.fields)
        if not is_write:
            fields = planned.bound.fields
            return Rows(fields, stream, lambda count: f"SELECT {count}")
        before = {oid: session.catalog.data(oid) for oid in planned.bound.written}
        batches = list(stream)
        count = sum(batch.rows for batch in batches)
        for oid, data in before.items():
            self._enforce(session, oid, data, kind)
        tag = f"INSERT 0 {count}" if kind == "insert" else f"{kind.upper()} {count}"
        if not planned.bound.has_returning:
            return Done(tag)
        fields = planned.bound.fields
        return Rows(fields, ResultStream.of(fields, batches), lambda _: tag)

    def _enforce(self, session: Session, oid: int, before: TableData, kind: str) -> None:
        """Check the constraints of a table that a statement wrote."""
        known = {segment.id for segment in before.segments}
        data = session.catalog.data(oid)
        constraints.enforce(session, oid, tuple(s for s in data.segments if s.id not in known))
        if kind != "insert":
            constraints.enforce_removed(session, oid)

    def query(
        self, session: Session, text: str, *, snapshot: Any = None
    ) -> list[tuple[str | None, ...]]:
        """The rows of an internal query in text form, on the current or another snapshot.

        Runs in the session's transaction without privilege checks.
        """
        query = nodes.QueryStatement(nodes.Slice(text), "select")
        context = session.query_context()
        if snapshot is not None:
            context.snapshot = snapshot
        bound = self.planner.bind(session, query, ())
        physical = self.planner.optimize(session, bound)
        found: list[tuple[str | None, ...]] = []
        for batch in self.executor.run(physical, context, bound.fields):
            found.extend(text_rows(batch, context.types, session.catalog))
        return found

    def query_of(
        self, session: Session, source: Any
    ) -> tuple[nodes.QueryStatement, tuple[Any, ...], tuple[int, ...]]:
        """The query, parameters and their types of a query or an EXECUTE (CREATE TABLE AS)."""
        if isinstance(source, nodes.Execute):
            prepared = session.find_prepared(source.name)
            return prepared.statement, execute_arguments(session, source), prepared.parameter_oids
        return source, *session.bound_parameters

    def fill(
        self, session: Session, table: Relation, planned: Planned, parameters: tuple[Any, ...]
    ) -> int:
        """Write a query's rows into a new table; the number of rows."""
        assert session.transaction is not None
        context = session.query_context(parameters)
        writer = session.transaction.writes.writer(table.oid)
        for batch in self.executor.run(planned.physical, context, planned.bound.fields):
            columns = [from_host(column) for column in batch.columns]
            writer.append(Batch.of(columns, batch.rows))
        session.transaction.writes.add(table.oid, writer.finish())
        return writer.rows

    def insert_batches(self, session: Session, text: str, columns: FileColumns) -> int:
        """Run an INSERT over the session's ``copied_batches``; the number of rows.

        ``text`` reads them as read_parquet(...); the plan's file scan becomes a scan of batches.
        Constraints are the caller's to check, once for all chunks.
        """
        context = replace(self.planner.context(session), file_schema=lambda *_: columns)
        tree = parse_query(nodes.Slice(text))
        bound = bind_query(tree, session.catalog, context)
        plan = transform(
            bound.plan, Plan,
            lambda p: replace(p, format="batches") if isinstance(p, FileScan) else p,
        )
        physical = self.planner.optimize(session, replace(bound, plan=plan))
        context_of = session.query_context()
        context_of.counted = physical
        stream = self.executor.run(physical, context_of, bound.fields)
        return sum(batch.rows for batch in stream)

    def utility_fields(
        self, session: Session, statement: Any
    ) -> tuple[ResultField, ...] | None:
        """The fields of a utility statement that returns rows, None otherwise."""
        describe = commands.DESCRIBERS.get(type(statement))
        return None if describe is None else describe(session, statement)

    def evaluate(
        self, session: Session, expression: nodes.Slice, oid: int, *, typmod: int = -1
    ) -> Any:
        """The host value of an expression without columns, coerced to a type."""
        bound = bind_scalar(
            expression, session.catalog, self.planner.context(session), SqlType(oid, typmod)
        )
        return self.executor.evaluate(bound, session.query_context())

    def evaluate_text(self, session: Session, text: str, type_name: str) -> Any:
        """The host value of a text as a type of that catalog name."""
        codec = types.by_name(type_name)
        assert codec is not None
        return codec.parse(text, -1, session.type_context())

    def type_from_text(self, session: Session, text: str) -> SqlType:
        return self.type_name(session, parse_type(text))

    def text_of(self, session: Session, column: ColumnDef, value: Any) -> str | None:
        """A value in the text form that ColumnDef.missing keeps."""
        if value is None:
            return None
        return types.get(column.type_oid, session.catalog).format(value, types.TypeContext())

    def check_defaults(self, session: Session, table: Relation) -> None:
        """Bind every default and generation expression; 42703, 42804 ... at definition."""
        context = self.planner.context(session)
        for column in table.live_columns():
            if column.default is not None:
                type = SqlType(column.type_oid, column.typmod)
                bind_scalar(
                    nodes.Slice(column.default), session.catalog, context, type,
                    table=table if column.generated else None, columns=table.live_columns(),
                )

    def check_columns(
        self, session: Session, table: Relation, expression: nodes.Slice
    ) -> tuple[int, ...]:
        """The attnums that a CHECK expression reads; raises what binding it raises."""
        return bound_columns(
            expression, session.catalog, self.planner.context(session), table
        )

    def check_constraint(self, session: Session, table: Relation, constraint: Any) -> None:
        """Check the rows that a table has against a new constraint."""
        if constraint.is_validated:
            constraints.check(session, table, constraint)

    def has_nulls(self, session: Session, table: Relation, column: ColumnDef) -> bool:
        """Whether any visible row has NULL in the column."""
        name = constraints.table_name(session.catalog, table)
        quoted = constraints.quoted(column.name)
        return bool(self.query(session, f"SELECT 1 FROM {name} WHERE {quoted} IS NULL LIMIT 1"))

    def require_privilege(self, session: Session, relation: Relation, name: str) -> None:
        """42501 unless the user holds the privilege on the relation."""
        role = session.catalog.role(session.user).oid
        letter = privileges.PRIVILEGE_LETTERS[name]
        privileges.check_relation(session.catalog, role, relation, letter)

    def fold(self, session: Session, expression: Expr) -> Literal | None:
        """The constant that an immutable expression is; None when it would raise."""
        try:
            value = self.executor.evaluate(expression, session.query_context())
        except errors.SqlError:
            return None
        return Literal(value, expression.type)

    def file_schema(self, session: Session) -> Callable[..., FileColumns]:
        """How read_parquet and read_csv learn the columns of a file, for this session."""
        return files.schema_reader(session)


def text_rows(
    batch: HostBatch, context: TypeContext, snapshot: Any
) -> list[tuple[str | None, ...]]:
    """The rows of a batch in text form, None for NULL."""
    columns = []
    for column in batch.columns:
        codec = types.get(column.type_oid, snapshot)
        values = to_values(from_host(column))
        columns.append([None if v is None else codec.format(v, context) for v in values])
    return list(zip(*columns, strict=True)) if columns else [()] * batch.rows


def time_zone_name(text: str) -> str | None:
    """The canonical name of a time zone setting; hours east of Greenwich are a zone too."""
    try:
        hours = float(text)
    except ValueError:
        found = zones.zone(text.strip())
        return None if found is None else zones.zone_name(found)
    if abs(hours) > ZONE_HOURS_MAX:
        return None
    minutes = round(abs(hours) * 60)
    shown = f"{minutes // 60:02d}" + (f":{minutes % 60:02d}" if minutes % 60 else "")
    sign, opposite = ("+", "-") if hours >= 0 else ("-", "+")
    return f"<{sign}{shown}>{opposite}{shown}"


def startup_settings(given: SessionSettings, parameters: Mapping[str, str]) -> dict[str, str]:
    """The session's defaults after the startup packet; 42704, 22023."""
    for key, value in parameters.items():
        if key in ("user", "database", "replication"):
            continue
        if key == "options":
            for name, text in command_line_options(value):
                given.assign(name, text)
            continue
        setting = settings.find(key)
        if setting.context in ("internal", "postmaster"):
            raise errors.CantChangeRuntimeParam(f'parameter "{setting.name}" cannot be changed')
        given.assign(key, value)
    return given.assigned()


def command_line_options(text: str) -> list[tuple[str, str]]:
    """``-c name=value`` and ``--name=value`` of the startup packet's options; 42601."""
    words = [w.replace("\\ ", " ") for w in _split_options(text)]
    found: list[tuple[str, str]] = []
    index = 0
    while index < len(words):
        word = words[index]
        if word == "-c" and index + 1 < len(words):
            index += 1
            word = words[index]
        elif word.startswith(("-c", "--")):
            word = word[2:]
        else:
            raise errors.SyntaxError(f"invalid command-line argument for server process: {word}")
        name, equals, value = word.partition("=")
        if not equals:
            raise errors.SyntaxError(f"-c {name} requires a value")
        found.append((name.replace("-", "_"), value))
        index += 1
    return found


def _split_options(text: str) -> list[str]:
    words: list[str] = []
    current = ""
    index = 0
    while index < len(text):
        if text[index] == "\\" and index + 1 < len(text):
            index += 1
            current += text[index]
        elif text[index].isspace():
            if current:
                words.append(current)
            current = ""
        else:
            current += text[index]
        index += 1
    return [*words, current] if current else words
