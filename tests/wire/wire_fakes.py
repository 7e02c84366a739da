"""A toy engine behind the real wire: enough statements to drive every message of the protocol.

Statements (separated by ``;``): ``select a, b`` (integers, 'strings', null, $n), ``rows N``,
``mixed N``, ``begin``, ``commit``, ``rollback``, ``set name value``, ``notice text``, ``fail``,
``fail after N``, ``boom`` (not an SqlError), ``sleep seconds``, ``command TAG``, ``copy in``,
``copy out N``, ``commit fails``, ``endless``.
"""

from __future__ import annotations

import re
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpudb import errors, layout, sqltype
from gpudb.catalog import types
from gpudb.catalog.types.base import DataType, TypeContext
from gpudb.result import HostBatch, HostColumn, ResultField, ResultStream
from gpudb.wire import auth, backend
from gpudb.wire.backend import (
    Codec,
    CommandOutcome,
    ConnectionInfo,
    CopyOutOutcome,
    Description,
    EmptyOutcome,
    IdleLimit,
    Notice,
    Notification,
    Outcome,
    RowCursor,
    RowsOutcome,
    StatementDescription,
)
from gpudb.wire.messages import CopyData, FieldDescription

STATUS = {
    "application_name": "", "client_encoding": "UTF8", "DateStyle": "ISO, MDY",
    "integer_datetimes": "on", "IntervalStyle": "postgres", "server_encoding": "UTF8",
    "server_version": "15.18", "session_authorization": "tester",
    "standard_conforming_strings": "on", "TimeZone": "UTC",
}  # fmt: skip
BATCH_ROWS = 1000


def type_of(oid: int) -> DataType:
    return types.get(oid)


def int_column(values: list[int | None], oid: int = sqltype.INT4) -> HostColumn:
    """An integer column; None is NULL."""
    width = type_of(oid).length
    data = np.array([0 if v is None else v for v in values], f"i{width}")
    valid = np.array([v is not None for v in values])
    return HostColumn(
        oid, -1, layout.Layout(layout.Kind.INT, width), len(values), (data,),
        None if valid.all() else valid,
    )  # fmt: skip


def text_column(values: list[bytes | None], oid: int = sqltype.TEXT) -> HostColumn:
    """A column of strings; None is NULL."""
    lengths = np.array([0 if v is None else len(v) for v in values], np.int32)
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    data = np.frombuffer(b"".join(v or b"" for v in values), np.uint8)
    valid = np.array([v is not None for v in values])
    return HostColumn(
        oid, -1, layout.TEXT, len(values), (starts, lengths, data), None if valid.all() else valid
    )


def batch_of(*columns: HostColumn) -> HostBatch:
    return HostBatch(columns, columns[0].rows if columns else 1)


def fields_of(columns: tuple[HostColumn, ...]) -> Description:
    return tuple(
        FieldDescription("?column?", column.type_oid, type_of(column.type_oid).length)
        for column in columns
    )


@dataclass
class Portal:
    sql: str
    values: tuple[bytes | None, ...]
    formats: tuple[int, ...]
    result_formats: tuple[int, ...]
    cursor: RowCursor | None = None
    is_done: bool = False


@dataclass
class FakeCopyIn:
    """Counts the lines it gets; a line ``bad`` is an error."""

    session: FakeSession
    format: int = 0
    column_formats: tuple[int, ...] = (0, 0)
    data: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> None:
        self.data += data
        if b"bad" in self.data:
            raise errors.InvalidTextRepresentation(
                'invalid input syntax for type integer: "bad"', context="COPY t, line 1, column a"
            )

    def finish(self) -> str:
        self.session.copied.append(bytes(self.data))
        return f"COPY {self.data.count(10)}"

    def fail(self, error: errors.SqlError) -> errors.SqlError:
        error.context = f"COPY t, line {self.data.count(10) + 1}"
        return error


class FakeSession:
    def __init__(self, parameters: Mapping[str, str], connection: ConnectionInfo) -> None:
        self.parameters = dict(parameters)
        self.connection = connection
        self.transaction_status: backend.TransactionStatus = "I"
        self.client_encoding = "utf-8"
        self.statements: dict[str, tuple[str, tuple[int, ...]]] = {}
        self.portals: dict[str, Portal] = {}
        self.changes: list[tuple[str, str]] = []
        self.notices: list[Notice] = []
        self.notifications: list[Notification] = []
        self.cancelled = threading.Event()
        self.copied: list[bytes] = []
        self.failures: list[Exception] = []
        self.calls: list[str] = []
        self.is_closed = False
        self.limit: IdleLimit | None = None

    # --- state ------------------------------------------------------------------------------

    def parameter_status(self) -> Mapping[str, str]:
        return STATUS | {k: v for k, v in self.parameters.items() if k in STATUS}

    def drain_status_changes(self) -> list[tuple[str, str]]:
        found, self.changes = self.changes, []
        return found

    def drain_notices(self) -> list[Notice]:
        found, self.notices = self.notices, []
        return found

    def drain_notifications(self) -> list[Notification]:
        found, self.notifications = self.notifications, []
        return found

    def on_notification(self, wake: Callable[[], None]) -> None:
        self.wake = wake

    def idle_limit(self) -> IdleLimit | None:
        return self.limit

    def cancel(self) -> None:
        self.cancelled.set()

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True

    def fail(self, error: Exception) -> errors.SqlError:
        self.failures.append(error)
        if self.transaction_status == "T":
            self.transaction_status = "E"
        if isinstance(error, errors.SqlError):
            return error
        return errors.InternalError(f"internal error: {error}")

    # --- commands ---------------------------------------------------------------------------

    def simple_query(self, sql: str) -> Iterator[Outcome]:
        self.calls.append(sql)
        statements = [each.strip() for each in sql.split(";") if each.strip()]
        if not statements:
            yield EmptyOutcome()
        for statement in statements:
            yield self._run(statement, Portal(statement, (), (), ()), 0)

    def parse(self, name: str, sql: str, param_oids: tuple[int, ...]) -> None:
        if name and name in self.statements:
            raise errors.DuplicatePreparedStatement(f'prepared statement "{name}" already exists')
        if ";" in sql.rstrip("; "):
            raise errors.SyntaxError("cannot insert multiple commands into a prepared statement")
        count = max((int(n) for n in re.findall(r"\$(\d+)", sql)), default=0)
        oids = (param_oids + (0,) * count)[:count]
        self.statements[name] = (sql.strip(), tuple(oid or sqltype.TEXT for oid in oids))

    def bind(
        self,
        portal: str,
        statement: str,
        *,
        formats: tuple[int, ...],
        values: tuple[bytes | None, ...],
        result_formats: tuple[int, ...],
    ) -> None:
        sql, oids = self._statement(statement)
        if len(values) != len(oids):
            raise errors.ProtocolViolation(
                f"bind message supplies {len(values)} parameters, but prepared statement "
                f'"{statement}" requires {len(oids)}'
            )
        made = Portal(sql, values, formats, result_formats)
        columns = self._columns(sql, made)
        if columns is not None:
            backend.expand_result_formats(result_formats, len(columns))
        self.portals[portal] = made

    def describe_statement(self, name: str) -> StatementDescription:
        sql, oids = self._statement(name)
        columns = self._columns(sql, Portal(sql, (None,) * len(oids), (0,) * len(oids), ()))
        return StatementDescription(oids, None if columns is None else fields_of(columns))

    def describe_portal(self, name: str) -> Description | None:
        portal = self._portal(name)
        columns = self._columns(portal.sql, portal)
        return None if columns is None else self._formatted(columns, portal)

    def execute(self, portal: str, max_rows: int) -> Outcome:
        found = self._portal(portal)
        if found.is_done and found.cursor is None:
            raise errors.ObjectNotInPrerequisiteState(f'portal "{portal}" cannot be run')
        outcome = self._run(found.sql, found, max_rows)
        found.is_done = True
        return outcome

    def close_statement(self, name: str) -> None:
        self.statements.pop(name, None)

    def close_portal(self, name: str) -> None:
        self.portals.pop(name, None)

    def sync(self) -> None:
        self.calls.append("sync")
        if self.transaction_status == "I":
            self.portals.clear()

    # --- the toy ----------------------------------------------------------------------------

    def _statement(self, name: str) -> tuple[str, tuple[int, ...]]:
        if name not in self.statements:
            raise errors.InvalidSqlStatementName(f'prepared statement "{name}" does not exist')
        return self.statements[name]

    def _portal(self, name: str) -> Portal:
        if name not in self.portals:
            raise errors.InvalidCursorName(f'portal "{name}" does not exist')
        return self.portals[name]

    def _formatted(self, columns: tuple[HostColumn, ...], portal: Portal) -> Description:
        codes = backend.expand_result_formats(portal.result_formats, len(columns))
        return tuple(
            replace(each, format=code) for each, code in zip(fields_of(columns), codes, strict=True)
        )

    def _columns(self, sql: str, portal: Portal) -> tuple[HostColumn, ...] | None:
        """One row (or none) that shows the statement's columns; None without rows."""
        word = sql.split(" ")[0].lower()
        if word == "select":
            items = [each.strip() for each in sql[7:].split(",")] if len(sql) > 7 else []
            return tuple(self._item(each, portal) for each in items)
        if word in ("rows", "endless"):
            return (int_column([]),)
        if word == "mixed":
            return mixed_columns(0, 0)
        return (int_column([]),) if sql.startswith("fail after") else None

    def _item(self, item: str, portal: Portal) -> HostColumn:
        if item.startswith("$"):
            value = portal.values[int(item[1:]) - 1]
            return text_column([value])
        if item == "null":
            return text_column([None])
        if item.startswith("'"):
            return text_column([item.strip("'").encode()])
        return int_column([int(item)])

    def _run(self, sql: str, portal: Portal, max_rows: int) -> Outcome:
        if self.transaction_status == "E" and sql.lower() not in ("commit", "rollback"):
            raise errors.InFailedSqlTransaction(
                "current transaction is aborted, commands ignored until end of transaction block"
            )
        columns = self._columns(sql, portal)
        if columns is not None:
            return self._rows(sql, columns, portal, max_rows)
        if not sql:
            return EmptyOutcome()
        word, _, rest = sql.partition(" ")
        return getattr(self, f"_do_{word.lower()}", self._do_unknown)(rest)

    def _rows(
        self, sql: str, columns: tuple[HostColumn, ...], portal: Portal, max_rows: int
    ) -> RowsOutcome:
        if portal.cursor is None:
            stream = _Stream(self._batches(sql, columns))
            portal.cursor = RowCursor(stream)
        cursor = portal.cursor

        def end(rows: int) -> str | None:
            return f"SELECT {rows}" if cursor.is_exhausted else None

        codec = Codec(type_of, TypeContext(), self.client_encoding)
        return RowsOutcome(self._formatted(columns, portal), codec, cursor.take(max_rows), end)

    def _batches(self, sql: str, columns: tuple[HostColumn, ...]) -> Iterator[HostBatch]:
        word, _, rest = sql.partition(" ")
        if word.lower() == "select":
            yield batch_of(*columns)
        elif word in ("rows", "mixed"):
            make: Callable[[int, int], tuple[HostColumn, ...]] = (
                mixed_columns if word == "mixed" else series_columns
            )
            for start in range(0, int(rest), BATCH_ROWS):
                yield batch_of(*make(start, min(BATCH_ROWS, int(rest) - start)))
        elif word == "endless":
            start = 0
            while True:
                if self.cancelled.is_set():
                    self.cancelled.clear()
                    raise errors.QueryCanceled("canceling statement due to user request")
                yield batch_of(*series_columns(start, BATCH_ROWS))
                start += BATCH_ROWS
        else:
            yield batch_of(*series_columns(0, int(rest.split(" ")[1])))
            raise errors.DivisionByZero("division by zero")

    def _do_begin(self, _: str) -> Outcome:
        self.transaction_status = "T"
        return CommandOutcome("BEGIN")

    def _do_commit(self, rest: str) -> Outcome:
        if rest == "fails":
            raise errors.UniqueViolation("duplicate key value violates unique constraint")
        tag = "ROLLBACK" if self.transaction_status == "E" else "COMMIT"
        self.transaction_status = "I"
        return CommandOutcome(tag)

    def _do_rollback(self, _: str) -> Outcome:
        self.transaction_status = "I"
        return CommandOutcome("ROLLBACK")

    def _do_set(self, rest: str) -> Outcome:
        name, _, value = rest.partition(" ")
        if name == "encoding":
            self.client_encoding = value
        self.changes.append((name, value))
        return CommandOutcome("SET")

    def _do_notice(self, text: str) -> Outcome:
        self.notices.append(Notice("WARNING", "01000", text))
        return CommandOutcome("NOTICE")

    def _do_notify(self, text: str) -> Outcome:
        self.notifications.append(Notification(self.connection.process_id, "ch", text))
        return CommandOutcome("NOTIFY")

    def _do_fail(self, _: str) -> Outcome:
        raise errors.DivisionByZero("division by zero")

    def _do_boom(self, _: str) -> Outcome:
        raise RuntimeError("a defect")

    def _do_deallocate(self, _: str) -> Outcome:
        self.statements.clear()
        return CommandOutcome("DEALLOCATE ALL")

    def _do_command(self, tag: str) -> Outcome:
        return CommandOutcome(tag)

    def _do_sleep(self, seconds: str) -> Outcome:
        if self.cancelled.wait(float(seconds)):
            self.cancelled.clear()
            raise errors.QueryCanceled("canceling statement due to user request")
        return CommandOutcome("SLEEP")

    def _do_terminate(self, _: str) -> Outcome:
        self.connection.terminate(
            errors.AdminShutdown("terminating connection due to administrator command")
        )
        time.sleep(0.05)
        return CommandOutcome("TERMINATE")

    def _do_copy(self, rest: str) -> Outcome:
        if rest == "in":
            return FakeCopyIn(self)
        rows = int(rest.split(" ")[1])
        chunks = (CopyData(b"%d\n" % number).encode() for number in range(rows))
        return CopyOutOutcome(0, (0,), chunks, lambda: f"COPY {rows}")

    def _do_unknown(self, rest: str) -> Outcome:
        raise errors.SyntaxError("syntax error", position=1)


class _Stream(ResultStream):
    """A stream that makes its batches when they are asked for."""

    def __init__(self, batches: Iterator[HostBatch]) -> None:
        super().__init__(())
        self._made = batches

    def next(self) -> HostBatch | None:
        return next(self._made, None)


def series_columns(start: int, rows: int) -> tuple[HostColumn, ...]:
    return (int_column(list(range(start, start + rows))),)


def mixed_columns(start: int, rows: int) -> tuple[HostColumn, ...]:
    numbers = list(range(start, start + rows))
    return (
        int_column(numbers, sqltype.INT8),
        text_column([None if n % 7 == 0 else b"row %d" % n for n in numbers]),
        int_column([None if n % 5 == 0 else -n for n in numbers]),
    )


class FakeBackend:
    """Lets in every user but ``nobody``; the database ``missing`` does not exist."""

    def __init__(self, password: str = "secret") -> None:
        self.sessions: list[FakeSession] = []
        self._verifier = auth.make_verifier(password)
        self.limit: IdleLimit | None = None

    def verifier(self, user: str) -> str | None:
        return None if user == "nobody" else self._verifier

    def open_session(
        self, parameters: Mapping[str, str], connection: ConnectionInfo
    ) -> FakeSession:
        if parameters["user"] == "nobody":
            raise errors.InvalidAuthorizationSpecification('role "nobody" does not exist')
        if parameters["database"] == "missing":
            raise errors.InvalidCatalogName('database "missing" does not exist')
        if "nosuchguc" in parameters:
            raise errors.UndefinedObject('unrecognized configuration parameter "nosuchguc"')
        session = FakeSession(parameters, connection)
        session.limit = self.limit
        self.sessions.append(session)
        return session


# --- reading what the server sends --------------------------------------------------------------


def split_messages(data: bytes) -> list[tuple[str, bytes]]:
    """Type and body of each backend message."""
    found: list[tuple[str, bytes]] = []
    position = 0
    while position < len(data):
        kind = chr(data[position])
        length = struct.unpack_from("!I", data, position + 1)[0]
        found.append((kind, data[position + 5 : position + 1 + length]))
        position += 1 + length
    assert position == len(data), "a message was cut off"
    return found


def report(body: bytes) -> dict[str, str]:
    """The fields of an ErrorResponse or NoticeResponse."""
    return {
        part[:1].decode(): part[1:].decode("utf-8", "replace")
        for part in body.rstrip(b"\0").split(b"\0")
    }


def row_values(body: bytes) -> list[bytes | None]:
    """The values of a DataRow."""
    count = struct.unpack_from("!H", body)[0]
    position = 2
    values: list[bytes | None] = []
    for _ in range(count):
        size = struct.unpack_from("!i", body, position)[0]
        position += 4
        values.append(None if size < 0 else body[position : position + size])
        position += max(size, 0)
    assert position == len(body)
    return values


def shown(data: bytes) -> str:
    """Backend messages as one line, in the manner of a protocol trace."""
    return " ".join(_shown(kind, body) for kind, body in split_messages(data))


def _shown(kind: str, body: bytes) -> str:
    simple: dict[str, Callable[[bytes], Any]] = {
        "Z": lambda b: b.decode(),
        "C": lambda b: b[:-1].decode(),
        "S": lambda b: "=".join(b.decode().split("\0")[:2]),
        "R": lambda b: str(struct.unpack_from("!I", b)[0]),
        "E": lambda b: " ".join(report(b)[k] for k in "SC"),
        "N": lambda b: " ".join(report(b)[k] for k in "SC"),
        "D": lambda b: ",".join("NULL" if v is None else v.decode() for v in row_values(b)),
        "T": lambda b: ",".join(_fields(b)),
        "t": lambda b: ",".join(map(str, struct.unpack_from(f"!{(len(b) - 2) // 4}I", b, 2))),
        "G": lambda b: f"{b[0]},{struct.unpack_from('!H', b, 1)[0]}",
        "H": lambda b: f"{b[0]},{struct.unpack_from('!H', b, 1)[0]}",
        "d": lambda b: b.decode().replace("\n", "|"),
        "v": lambda b: f"{struct.unpack_from('!I', b)[0]:#x}," + b[8:].decode().replace("\0", ";"),
    }
    text = simple[kind](body) if kind in simple else ""
    return f"{kind}({text})" if text else kind


def _fields(body: bytes) -> list[str]:
    fields: list[str] = []
    position = 2
    while position < len(body):
        end = body.index(b"\0", position)
        oid, code = struct.unpack_from("!6xI6xh", body, end + 1)
        fields.append(f"{body[position:end].decode()}:{oid}/{code}")
        position = end + 19
    return fields


def result_fields(columns: tuple[HostColumn, ...]) -> tuple[ResultField, ...]:
    return tuple(ResultField("c", column.type_oid, column.typmod) for column in columns)
