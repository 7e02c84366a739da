"""What the server needs of an engine: Backend opens sessions, a Session answers one client.

Everything here is synchronous. The server calls a session's methods in a pool of threads, never
two at a time (another thread may serve the next call), except ``cancel``, which comes from any
thread while another method runs and must return at once. All other methods may block.

Errors are SqlErrors. Whenever a method, the iterator of ``simple_query`` or an outcome raises, and
also when encoding a result fails, the server calls ``Session.fail`` and sends what it returns.

The order of calls for one command:

- simple query: ``simple_query`` and its iterator to the end, each outcome consumed before the
  next is asked for; then ``transaction_status`` for ReadyForQuery. The session keeps the implicit
  transaction of a multi-statement string: it commits when the last statement has ended (inside
  ``RowsOutcome.end`` or before it yields a CommandOutcome), so that a failing commit replaces the
  CommandComplete, and rolls back in ``fail``.
- extended: ``parse``, ``bind``, ``describe_*``, ``execute``, ``close_*`` as they come. After an
  error the server discards messages up to Sync. ``sync`` ends the implicit transaction (commits,
  or rolls back after ``fail``) and destroys portals that do not survive it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from gpudb import errors
from gpudb.catalog.types.base import DataType, TypeContext
from gpudb.result import HostBatch, ResultStream, slice_batch
from gpudb.wire.messages import FieldDescription

TransactionStatus = Literal["I", "T", "E"]
"""Idle, in a transaction block, in a failed transaction block."""

Description = tuple[FieldDescription, ...]


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """What the server knows of a connection.

    ``process_id`` is what pg_backend_pid() shows and BackendKeyData sends. ``terminate`` may be
    called from any thread (pg_terminate_backend): the client gets the error as FATAL and the
    connection ends; a running command is cancelled first.
    """

    process_id: int
    host: str
    port: int
    is_tls: bool
    terminate: Callable[[errors.SqlError], None]


@dataclass(frozen=True, slots=True)
class Codec:
    """How values of a result are written: types by OID, the settings they depend on, charset.

    ``encoding`` is Python's name of client_encoding's codec; rows are UTF-8 inside.
    """

    type_of: Callable[[int], DataType]
    context: TypeContext = field(default_factory=TypeContext)
    encoding: str = "utf-8"


@dataclass(frozen=True, slots=True)
class Notice:
    """A NoticeResponse; severity NOTICE, WARNING, INFO, LOG or DEBUG."""

    severity: str
    sqlstate: str
    message: str
    detail: str = ""
    hint: str = ""
    context: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class Notification:
    """A message on a channel this session listens to."""

    process_id: int
    channel: str
    payload: str


@dataclass(frozen=True, slots=True)
class IdleLimit:
    """How long the client may stay silent now, and the error that ends the connection then."""

    seconds: float
    error: errors.SqlError


@dataclass(frozen=True, slots=True)
class StatementDescription:
    """Parameter types of a prepared statement; ``fields`` None when it returns no rows.

    The fields' formats are 0: a statement has none yet.
    """

    param_oids: tuple[int, ...]
    fields: Description | None


# --- outcomes -----------------------------------------------------------------------------------


@dataclass(slots=True)
class RowsOutcome:
    """Rows, then their tag.

    ``fields`` carry the formats that were bound (0 in a simple query). The server takes all
    ``batches`` and then calls ``end`` once with the number of rows it sent: the command tag, or
    None when an Execute row limit stopped the portal (PortalSuspended). ``batches`` ends by itself
    at the row limit. If something fails in between, ``end`` is not called, but ``Session.fail`` is.
    """

    fields: Description
    codec: Codec
    batches: Iterator[HostBatch]
    end: Callable[[int], str | None]


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """A command without rows: its tag."""

    tag: str


@dataclass(frozen=True, slots=True)
class EmptyOutcome:
    """An empty query string: EmptyQueryResponse."""


class CopyInOutcome(Protocol):
    """COPY ... FROM STDIN: takes the client's bytes (see copy.py for their parsers).

    ``column_formats`` one each, 0 or 1; ``format`` 1 when all is binary.
    """

    @property
    def format(self) -> int: ...

    @property
    def column_formats(self) -> tuple[int, ...]: ...

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream; pieces need not end with a row. May raise."""

    def finish(self) -> str:
        """The stream has ended: load what is left; the command tag, such as ``COPY 3``."""

    def fail(self, error: errors.SqlError) -> errors.SqlError:
        """The client gave up or broke the protocol: the error with its CONTEXT line."""


@dataclass(frozen=True, slots=True)
class CopyOutOutcome:
    """COPY ... TO STDOUT: ``chunks`` are whole CopyData messages, framed (copy.py makes them).

    ``end`` is called once after the last chunk and gives the tag.
    """

    format: int
    column_formats: tuple[int, ...]
    chunks: Iterator[bytes]
    end: Callable[[], str]


Outcome = RowsOutcome | CommandOutcome | EmptyOutcome | CopyInOutcome | CopyOutOutcome


# --- the two protocols --------------------------------------------------------------------------


class Session(Protocol):
    """One client's session; see the module's docstring for who calls what when."""

    @property
    def transaction_status(self) -> TransactionStatus: ...

    @property
    def client_encoding(self) -> str:
        """Python's name of the codec of client_encoding, such as ``utf-8``."""

    def parameter_status(self) -> Mapping[str, str]:
        """All reported settings (server_version, client_encoding ...) in the order to send."""

    def drain_status_changes(self) -> list[tuple[str, str]]:
        """Reported settings that changed since the last call; sent before ReadyForQuery."""

    def drain_notices(self) -> list[Notice]:
        """Notices since the last call, oldest first; sent before the statement's completion."""

    def drain_notifications(self) -> list[Notification]:
        """Notifications to deliver now; empty inside a transaction block."""

    def on_notification(self, wake: Callable[[], None]) -> None:
        """Have ``wake`` called, from any thread, whenever a notification arrives."""

    def idle_limit(self) -> IdleLimit | None:
        """The limit on the silence that begins now (idle_in_transaction_session_timeout ...)."""

    def simple_query(self, sql: str) -> Iterator[Outcome]:
        """The outcomes of a string of statements; a lone EmptyOutcome for an empty string."""

    def parse(self, name: str, sql: str, param_oids: tuple[int, ...]) -> None:
        """Prepare a statement; 42P05 if the name is taken ("" is overwritten), 42601 if several."""

    def bind(
        self,
        portal: str,
        statement: str,
        *,
        formats: tuple[int, ...],
        values: tuple[bytes | None, ...],
        result_formats: tuple[int, ...],
    ) -> None:
        """Create a portal ("" replaces the unnamed one).

        ``formats`` has one entry a value, 0 or 1; ``result_formats`` is as sent: see
        ``expand_result_formats``. 26000, 42P03, 08P01 for a wrong number of values, 22P02, 22P03.
        """

    def describe_statement(self, name: str) -> StatementDescription:
        """Parameters and fields of a prepared statement; 26000."""

    def describe_portal(self, name: str) -> Description | None:
        """Fields with the bound formats, None when the portal returns no rows; 34000."""

    def execute(self, portal: str, max_rows: int) -> Outcome:
        """Run a portal on, up to ``max_rows`` rows (0 = all); 34000, 55000."""

    def close_statement(self, name: str) -> None:
        """Forget a prepared statement; not an error if there is none."""

    def close_portal(self, name: str) -> None:
        """Forget a portal; not an error if there is none."""

    def sync(self) -> None:
        """End the implicit transaction of the extended protocol; raises what its commit raises."""

    def fail(self, error: Exception) -> errors.SqlError:
        """The command has failed: abort its transaction; the error to send.

        What is not an SqlError is logged and becomes XX000. Called once an error, also for those
        the session raised itself.
        """

    def cancel(self) -> None:
        """Ask the running command to stop with 57014; from any thread, returns at once.

        Without a running command it does nothing.
        """

    def close(self) -> None:
        """The client is gone: roll back, drop temporary objects. Called exactly once."""


class Backend(Protocol):
    """The engine as the server sees it; its methods may be called from several threads."""

    def verifier(self, user: str) -> str | None:
        """The stored SCRAM verifier of a role, as in pg_authid; None if there is none."""

    def open_session(
        self, parameters: Mapping[str, str], connection: ConnectionInfo
    ) -> Session:
        """A session for an authenticated client.

        ``parameters`` are the startup packet's (user and database are always there, the database
        defaulting to the user), without protocol options. Raises 28000 for an unknown role, 3D000
        for an unknown database, 42704 or 22023 for a wrong setting; all are FATAL then.
        """


# --- for implementers ---------------------------------------------------------------------------


def expand_result_formats(formats: tuple[int, ...], columns: int) -> tuple[int, ...]:
    """One format a column from Bind's list: none = text, one = for all, else one each (08P01)."""
    if any(code not in (0, 1) for code in formats):
        wrong = next(code for code in formats if code not in (0, 1))
        raise errors.InvalidParameterValue(f"unsupported format code: {wrong}")
    if not formats:
        return (0,) * columns
    if len(formats) == 1:
        return formats * columns
    if len(formats) != columns:
        raise errors.ProtocolViolation(
            f"bind message has {len(formats)} result formats but query has {columns} columns"
        )
    return formats


class RowCursor:
    """A result stream that is read in pieces: what a portal keeps between two Executes."""

    def __init__(self, stream: ResultStream) -> None:
        self._stream = stream
        self._rest: HostBatch | None = None
        self.is_exhausted = False

    def take(self, max_rows: int) -> Iterator[HostBatch]:
        """Batches of together at most ``max_rows`` rows (0 or less = all that are left).

        ``is_exhausted`` becomes true only when the stream's end was seen, as in PostgreSQL, where
        a portal that stops exactly at its last row is still suspended.
        """
        wanted = max_rows
        while max_rows <= 0 or wanted > 0:
            batch = self._rest if self._rest is not None else self._stream.next()
            self._rest = None
            if batch is None:
                self.is_exhausted = True
                return
            if max_rows > 0 and wanted < batch.rows:
                self._rest = slice_batch(batch, wanted, batch.rows)
                batch = slice_batch(batch, 0, wanted)
            wanted -= batch.rows
            yield batch

    def close(self) -> None:
        """Tell the producer that no more is wanted."""
        self._rest = None
        self._stream.close()
