"""One client's conversation without I/O: bytes in, calls of a session, bytes out.

``receive`` takes input; ``run`` is a generator that answers every complete message and yields
output in pieces of about OUTPUT_BYTES, so that whoever drives it can stop between two pieces while
the client is slow. It holds no more than one piece and one batch. It may run in any thread, one
at a time. After ``is_closed`` the output is the last; ``is_idle`` says that ReadyForQuery was
the last thing sent and nothing came since.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import NoReturn

from gpudb import errors
from gpudb.wire import messages
from gpudb.wire.backend import (
    Backend,
    CommandOutcome,
    CopyInOutcome,
    CopyOutOutcome,
    EmptyOutcome,
    Notice,
    Outcome,
    RowsOutcome,
    Session,
)
from gpudb.wire.messages import (
    BindComplete,
    CloseComplete,
    CommandComplete,
    CopyInResponse,
    CopyOutResponse,
    EmptyQueryResponse,
    ErrorResponse,
    NoData,
    NoticeResponse,
    NotificationResponse,
    ParameterDescription,
    ParameterStatus,
    ParseComplete,
    PortalSuspended,
    ReadyForQuery,
    RowDescription,
    report_fields,
)
from gpudb.wire.protocol import FatalError, Malformed, Message, Protocol, Unexpected
from gpudb.wire.rows import RowEncoder
from gpudb.wire.startup import Handshake, Peer, Policy

OUTPUT_BYTES = 1 << 16
"""Output is handed on when this much has gathered, or when there is no more input."""

_PARSE_COMPLETE = ParseComplete().encode()
_BIND_COMPLETE = BindComplete().encode()
_CLOSE_COMPLETE = CloseComplete().encode()
_NO_DATA = NoData().encode()
_EMPTY_QUERY = EmptyQueryResponse().encode()
_PORTAL_SUSPENDED = PortalSuspended().encode()
_COPY_DONE = messages.CopyDone().encode()
_READY = {status: ReadyForQuery(status).encode() for status in "ITE"}
_ENDS_WITH_READY = frozenset({b"Q", b"F", b"S"})


class Conversation:
    """The protocol of one connection joined to an engine."""

    def __init__(
        self,
        backend: Backend,
        *,
        policy: Policy,
        peer: Peer,
        cancel: Callable[[int, bytes], None],
        terminate: Callable[[errors.SqlError], None],
        protocol: Protocol | None = None,
    ) -> None:
        self.protocol = protocol or Protocol()
        self.session: Session | None = None
        self.is_closed = False
        self.is_idle = False
        self._cancel = cancel
        self._handshake = Handshake(
            self.protocol, backend, policy=policy, peer=peer, terminate=terminate
        )
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._statements: Iterator[Outcome] | None = None
        self._copy: CopyInOutcome | None = None

    def receive(self, data: bytes | bytearray | memoryview) -> None:
        """Take bytes from the client."""
        self.protocol.receive(data)

    @property
    def has_work(self) -> bool:
        """Whether ``run`` would do anything."""
        return self.protocol.has_message and not self.is_closed

    def run(self) -> Generator[bytes, None, None]:
        """Answer all complete messages."""
        try:
            while not self.is_closed and (message := self.protocol.next_message()) is not None:
                self.is_idle = False
                if self.session is None:
                    self._start(message)
                else:
                    yield from self._answer(self.session, message)
        except FatalError as fatal:
            self._refuse(fatal)
        if self._out:
            yield self._taken()

    def fatal_message(self, error: errors.SqlError) -> bytes:
        """The last message to a client whose connection the server ends."""
        return ErrorResponse(report_fields(error, "FATAL")).encode(self._encoding())

    def _start(self, message: Message) -> None:
        if isinstance(message, messages.CancelRequest):
            self._cancel(message.process_id, message.secret_key)
            self.is_closed = True
            return
        for piece in self._handshake.answer(message):
            self._write(piece)
        self.session = self._handshake.session
        if self.session is not None:
            self._ready(self.session)

    def _refuse(self, fatal: FatalError) -> None:
        self.is_closed = True
        if not fatal.is_silent:
            self._write(self.fatal_message(fatal.error))

    # --- messages ---------------------------------------------------------------------------

    def _answer(self, session: Session, message: Message) -> Iterator[bytes]:
        match message:
            case messages.Query():
                yield from self._query(session, message)
            case messages.CopyData() | messages.CopyDone() | messages.CopyFail() | Unexpected():
                yield from self._copy_message(session, message)
            case messages.Sync():
                yield from self._sync(session)
            case messages.Flush():
                if self._out:
                    yield self._taken()
            case messages.Terminate():
                self.is_closed = True
            case messages.FunctionCall():
                unsupported = "fastpath function calls are not supported"
                self._report(session, errors.FeatureNotSupported(unsupported))
                self._ready(session)
            case Malformed():
                self._report(session, message.error)
                if message.kind in _ENDS_WITH_READY:
                    self._ready(session)
                else:
                    self.protocol.discard_until_sync()
            case _:
                yield from self._extended(session, message)

    def _attempt(
        self, session: Session, steps: Iterator[bytes]
    ) -> Generator[bytes, None, bool]:
        """Run the steps of a command; False when they failed, after the error was reported.

        The border where every exception of the engine becomes an ErrorResponse.
        """
        try:
            yield from steps
        except FatalError:
            raise
        except Exception as error:
            self._report(session, error)
            return False
        return True

    def _query(self, session: Session, message: messages.Query) -> Iterator[bytes]:
        yield from self._go_on(session, self._statements_of(session, message))

    def _go_on(self, session: Session, steps: Iterator[bytes]) -> Iterator[bytes]:
        """Run a simple query's steps to its end, or up to a COPY that waits for data."""
        is_done = yield from self._attempt(session, steps)
        if is_done and self._copy is not None:
            return
        self._statements = None
        self._ready(session)

    def _statements_of(self, session: Session, message: messages.Query) -> Iterator[bytes]:
        sql = _decoded(message.sql, session.client_encoding)
        self._statements = iter(session.simple_query(sql))
        yield from self._run_statements(session)

    def _run_statements(self, session: Session) -> Iterator[bytes]:
        assert self._statements is not None
        for outcome in self._statements:
            yield from self._send(session, outcome, is_simple=True)
            if self._copy is not None:
                return

    def _sync(self, session: Session) -> Iterator[bytes]:
        yield from self._attempt(session, _calls(session.sync))
        self._ready(session)

    def _extended(self, session: Session, message: Message) -> Iterator[bytes]:
        if not (yield from self._attempt(session, self._extended_step(session, message))):
            self.protocol.discard_until_sync()

    def _extended_step(self, session: Session, message: Message) -> Iterator[bytes]:
        encoding = session.client_encoding
        match message:
            case messages.Parse(name, sql, param_oids):
                session.parse(_decoded(name, encoding), _decoded(sql, encoding), param_oids)
                self._write(_PARSE_COMPLETE)
            case messages.Bind():
                self._bind(session, message)
            case messages.Describe(target, name):
                if target == b"S":
                    self._describe_statement(session, _decoded(name, encoding))
                else:
                    fields = session.describe_portal(_decoded(name, encoding))
                    self._describe(session, fields)
            case messages.Execute(portal, max_rows):
                outcome = session.execute(_decoded(portal, encoding), max(0, max_rows))
                yield from self._send(session, outcome, is_simple=False)
            case messages.Close(target, name):
                close = session.close_statement if target == b"S" else session.close_portal
                close(_decoded(name, encoding))
                self._write(_CLOSE_COMPLETE)
            case _:
                raise AssertionError(f"no answer to {type(message).__name__}")
        if self._out_bytes >= OUTPUT_BYTES:
            yield self._taken()

    def _bind(self, session: Session, message: messages.Bind) -> None:
        formats = message.param_formats
        wrong = next((code for code in formats if code not in (0, 1)), None)
        if wrong is not None:
            raise errors.InvalidParameterValue(f"unsupported format code: {wrong}")
        count = len(message.values)
        if len(formats) != count:
            formats = (formats[0] if formats else 0,) * count
        session.bind(
            _decoded(message.portal, session.client_encoding),
            _decoded(message.statement, session.client_encoding),
            formats=formats,
            values=message.values,
            result_formats=message.result_formats,
        )
        self._write(_BIND_COMPLETE)

    def _describe_statement(self, session: Session, name: str) -> None:
        description = session.describe_statement(name)
        self._write(ParameterDescription(description.param_oids).encode())
        self._describe(session, description.fields)

    def _describe(
        self, session: Session, fields: tuple[messages.FieldDescription, ...] | None
    ) -> None:
        if fields is None:
            self._write(_NO_DATA)
        else:
            self._write(RowDescription(fields).encode(session.client_encoding))

    # --- COPY FROM STDIN --------------------------------------------------------------------

    def _copy_message(self, session: Session, message: Message) -> Iterator[bytes]:
        copy = self._copy
        assert copy is not None
        if isinstance(message, Unexpected):
            self._break_copy(session, copy, message.kind)
        is_fed = yield from self._attempt(
            session, _calls(lambda: self._copy_step(session, copy, message))
        )
        if is_fed and isinstance(message, messages.CopyData):
            return
        self._copy = None
        self.protocol.copy_in_ended()
        if self._statements is not None:
            rest = self._run_statements(session) if is_fed else None
            yield from self._end_copy_query(session, rest)
        elif not is_fed:
            self.protocol.discard_until_sync()

    def _end_copy_query(self, session: Session, rest: Iterator[bytes] | None) -> Iterator[bytes]:
        """After a COPY within a simple query: its other statements, or its end after an error."""
        if rest is not None:
            yield from self._go_on(session, rest)
        else:
            self._statements = None
            self._ready(session)

    def _copy_step(self, session: Session, copy: CopyInOutcome, message: Message) -> None:
        match message:
            case messages.CopyData(data):
                copy.feed(data)
            case messages.CopyDone():
                self._complete(session, copy.finish())
            case messages.CopyFail(text):
                shown = _decoded(text, session.client_encoding)
                raise copy.fail(errors.QueryCanceled(f"COPY from stdin failed: {shown}"))
            case _:
                raise AssertionError(f"no answer to {type(message).__name__} during COPY")

    def _break_copy(self, session: Session, copy: CopyInOutcome, kind: bytes) -> NoReturn:
        error = copy.fail(
            errors.ProtocolViolation(
                f"unexpected message type 0x{kind[0]:02X} during COPY from stdin"
            )
        )
        self._report(session, error)
        lost = "terminating connection because protocol synchronization was lost"
        raise FatalError(errors.ProtocolViolation(lost))

    # --- outcomes ---------------------------------------------------------------------------

    def _send(self, session: Session, outcome: Outcome, *, is_simple: bool) -> Iterator[bytes]:
        match outcome:
            case RowsOutcome():
                yield from self._send_rows(session, outcome, is_simple=is_simple)
            case CommandOutcome(tag):
                self._complete(session, tag)
            case EmptyOutcome():
                self._write_notices(session)
                self._write(_EMPTY_QUERY)
            case CopyOutOutcome():
                yield from self._send_copy(session, outcome)
            case _:
                self._write_notices(session)
                self._write(CopyInResponse(outcome.format, outcome.column_formats).encode())
                self._copy = outcome
                self.protocol.copy_in_started()

    def _send_rows(
        self, session: Session, outcome: RowsOutcome, *, is_simple: bool
    ) -> Iterator[bytes]:
        if is_simple:
            self._describe(session, outcome.fields)
        encoder = RowEncoder(outcome.fields, outcome.codec)
        rows = 0
        for batch in outcome.batches:
            for piece in encoder.encode(batch):
                self._write(piece)
                if self._out_bytes >= OUTPUT_BYTES:
                    yield self._taken()
            rows += batch.rows
        tag = outcome.end(rows)
        if tag is None:
            self._write_notices(session)
            self._write(_PORTAL_SUSPENDED)
        else:
            self._complete(session, tag)

    def _send_copy(self, session: Session, outcome: CopyOutOutcome) -> Iterator[bytes]:
        self._write(CopyOutResponse(outcome.format, outcome.column_formats).encode())
        for chunk in outcome.chunks:
            self._write(chunk)
            if self._out_bytes >= OUTPUT_BYTES:
                yield self._taken()
        tag = outcome.end()
        self._write(_COPY_DONE)
        self._complete(session, tag)

    def _complete(self, session: Session, tag: str) -> None:
        self._write_notices(session)
        self._write(CommandComplete(tag).encode())

    def notifications(self) -> bytes:
        """What to tell a client that waits between commands; nothing during one."""
        if self.session is None or not self.is_idle:
            return b""
        return _notifications(self.session)

    def _ready(self, session: Session) -> None:
        self._write_notices(session)
        for name, value in session.drain_status_changes():
            self._write(ParameterStatus(name, value).encode())
        self._write(_notifications(session))
        self._write(_READY[session.transaction_status])
        self.is_idle = True

    def _report(self, session: Session, error: Exception) -> None:
        shown = session.fail(error)
        self._write_notices(session)
        self._write(ErrorResponse(report_fields(shown)).encode(session.client_encoding))

    def _write_notices(self, session: Session) -> None:
        for notice in session.drain_notices():
            self._write(NoticeResponse(_notice_fields(notice)).encode(session.client_encoding))

    def _write(self, data: bytes) -> None:
        self._out.append(data)
        self._out_bytes += len(data)

    def _taken(self) -> bytes:
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out = []
        self._out_bytes = 0
        return data

    def _encoding(self) -> str:
        return "utf-8" if self.session is None else self.session.client_encoding


def _calls(action: Callable[[], None]) -> Iterator[bytes]:
    """An action as steps without output."""
    action()
    return
    yield b""


def _decoded(text: bytes, encoding: str) -> str:
    """Text of the client; 22021 with the first bytes that are not in the encoding."""
    try:
        return text.decode(encoding)
    except UnicodeDecodeError as error:
        wrong = text[error.start : error.start + _sequence_length(text[error.start])]
        shown = " ".join(f"0x{byte:02x}" for byte in wrong)
        name = "UTF8" if encoding == "utf-8" else encoding.upper()
        raise errors.CharacterNotInRepertoire(
            f'invalid byte sequence for encoding "{name}": {shown}'
        ) from None


def _sequence_length(first: int) -> int:
    """The length of the UTF-8 sequence its first byte announces; 1 for a byte that starts none."""
    for bits, prefix, length in ((0xE0, 0xC0, 2), (0xF0, 0xE0, 3), (0xF8, 0xF0, 4)):
        if first & bits == prefix:
            return length
    return 1


def _notifications(session: Session) -> bytes:
    return b"".join(
        NotificationResponse(note.process_id, note.channel, note.payload).encode()
        for note in session.drain_notifications()
    )


def _notice_fields(notice: Notice) -> tuple[tuple[str, str], ...]:
    optional = (
        ("D", notice.detail),
        ("H", notice.hint),
        ("P", str(notice.position) if notice.position > 0 else ""),
        ("W", notice.context),
    )
    always = (
        ("S", notice.severity), ("V", notice.severity), ("C", notice.sqlstate),
        ("M", notice.message),
    )  # fmt: skip
    return always + tuple((code, text) for code, text in optional if text)
