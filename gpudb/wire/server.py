"""The server: sockets, TLS, back-pressure, limits, cancel requests. The only asyncio here.

A connection is accepted as a raw socket. What comes before the startup packet is read there:
direct TLS is seen by peeking at one byte, SSLRequest and GSSENCRequest in exactly eight bytes.
Then asyncio takes the socket over, with or without TLS, and a task drives a Conversation: engine
calls run in a pool of threads, one call a connection at a time. A thread that has produced
OUTPUT_IN_FLIGHT_BYTES which the client has not taken returns to the pool until there is room.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import itertools
import logging
import os
import secrets
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from gpudb import errors
from gpudb.wire import auth, messages
from gpudb.wire.backend import Backend, IdleLimit
from gpudb.wire.conversation import Conversation
from gpudb.wire.protocol import FatalError, Protocol
from gpudb.wire.startup import AuthenticationMethod, Peer, Policy

CONNECTIONS_MAX = 100
"""Sessions at a time, as PostgreSQL's max_connections by default."""
UNAUTHENTICATED_MAX = 100
"""Connections that have no session yet; more wait in the listen queue."""
AUTHENTICATION_TIMEOUT_SECONDS = 60.0
INPUT_BUFFERED_BYTES_MAX = 1 << 20
"""Input that waits for the engine; beyond it the socket is not read (unless a message needs it)."""
OUTPUT_IN_FLIGHT_BYTES = 1 << 18
"""Output on its way from a worker thread to the socket."""
WRITE_HIGH_BYTES = 1 << 17
WRITE_LOW_BYTES = 1 << 15
LISTEN_BACKLOG = 256
STOP_TIMEOUT_SECONDS = 5.0
CONTROL_THREADS = 4
"""Threads for cancel requests and opening of sessions, apart from those that run queries."""
ALPN = "postgresql"
_TLS_HANDSHAKE_BYTE = 0x16

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where to listen and whom to let in. ``port`` 0 takes a free one (see Server.port)."""

    host: str = "127.0.0.1"
    port: int = 5432
    unix_directory: str = ""
    method: AuthenticationMethod = "scram-sha-256"
    certificate_file: str = ""
    key_file: str = ""
    is_tls_required: bool = False
    connections_max: int = CONNECTIONS_MAX
    authentication_timeout_seconds: float = AUTHENTICATION_TIMEOUT_SECONDS
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))


def tls_context(certificate_file: str, key_file: str) -> ssl.SSLContext:
    """A server context for TLS 1.2 and newer that knows PostgreSQL's ALPN name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate_file, key_file or None)
    context.set_alpn_protocols([ALPN])
    return context


class Server:
    """Listens and serves until stopped."""

    def __init__(self, backend: Backend, options: ServerOptions) -> None:
        self.backend = backend
        self.options = options
        self.policy = Policy(options.method, options.secret)
        self.port = options.port
        self.tls: ssl.SSLContext | None = None
        self.end_point: bytes | None = None
        self.connections: dict[int, Connection] = {}
        self.is_stopping = False
        self.threads = ThreadPoolExecutor(options.connections_max, "query")
        self.control_threads = ThreadPoolExecutor(CONTROL_THREADS, "control")
        self._process_ids = itertools.cycle(range(1000, 1 << 22))
        self._unauthenticated = asyncio.Semaphore(UNAUTHENTICATED_MAX)
        self._listeners: list[socket.socket] = []
        self._accepting: set[asyncio.Task[None]] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()
        self._admitted: set[int] = set()
        if options.certificate_file:
            self.tls = tls_context(options.certificate_file, options.key_file)
            pem = Path(options.certificate_file).read_text("ascii")
            start = pem.index("-----BEGIN CERTIFICATE-----")
            end = pem.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----")
            self.end_point = auth.server_end_point(ssl.PEM_cert_to_DER_cert(pem[start:end]))

    async def start(self) -> None:
        """Listen; afterwards ``port`` is the real one."""
        options = self.options
        infos = await asyncio.get_running_loop().getaddrinfo(
            options.host or None, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, _, _, _, address in infos:
            listener = socket.socket(family, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            port = self.port or address[1]
            listener.bind((address[0], port, *address[2:]))
            self.port = listener.getsockname()[1]
            self._listen(listener)
        if options.unix_directory:
            self._listen(_unix_listener(options.unix_directory, self.port))

    def _listen(self, listener: socket.socket) -> None:
        listener.listen(LISTEN_BACKLOG)
        listener.setblocking(False)
        self._listeners.append(listener)
        _spawn(self._accept(listener), self._accepting)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._unauthenticated.acquire()
            try:
                client, address = await loop.sock_accept(listener)
            except OSError as error:  # out of file descriptors, or the peer has left already
                self._unauthenticated.release()
                log.warning("could not accept a connection: %s", error)
                await asyncio.sleep(0.1)
                continue
            client.setblocking(False)
            _spawn(self._serve(client, address), self._serving)

    async def _serve(self, client: socket.socket, address: Any) -> None:
        """One connection from accept to close."""
        release = _once(self._unauthenticated.release)
        process_id = self._new_process_id()
        is_unix = client.family == socket.AF_UNIX
        peer = Peer(
            process_id,
            secrets.token_bytes(4),
            "" if is_unix else str(address[0]),
            -1 if is_unix else int(address[1]),
            refusal=lambda: self._admit(process_id),
        )
        connection = Connection(self, peer, release)
        self.connections[process_id] = connection
        try:
            await connection.serve(client)
        except (TimeoutError, OSError, ssl.SSLError) as error:
            log.debug("connection %d ended: %s", process_id, error)
        finally:
            client.close()
            del self.connections[process_id]
            with self._lock:
                self._admitted.discard(process_id)
            release()

    def _new_process_id(self) -> int:
        return next(each for each in self._process_ids if each not in self.connections)

    def _admit(self, process_id: int) -> errors.SqlError | None:
        """Take one of the places for sessions, or say why there is none; from any thread."""
        with self._lock:
            if self.is_stopping:
                return errors.CannotConnectNow("the database system is shutting down")
            if len(self._admitted) >= self.options.connections_max:
                return errors.TooManyConnections("sorry, too many clients already")
            self._admitted.add(process_id)
            return None

    def cancel(self, process_id: int, secret_key: bytes) -> None:
        """Cancel the command of the session with this key; a wrong key does nothing."""
        connection = self.connections.get(process_id)
        if connection is None or not hmac.compare_digest(connection.secret_key, secret_key):
            log.info("wrong key in cancel request for process %d", process_id)
            return
        connection.cancel()

    async def stop(self) -> None:
        """Refuse new clients, end the sessions with 57P01, and wait for them up to a bound."""
        self.is_stopping = True
        for task in list(self._accepting):
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
        error = errors.AdminShutdown("terminating connection due to administrator command")
        for connection in list(self.connections.values()):
            connection.end(error)
        if self._serving:
            _, late = await asyncio.wait(list(self._serving), timeout=2 * STOP_TIMEOUT_SECONDS)
            for task in late:
                task.cancel()
        self.threads.shutdown(wait=False, cancel_futures=True)
        self.control_threads.shutdown(wait=False, cancel_futures=True)
        if self.options.unix_directory:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_unix_path(self.options.unix_directory, self.port))


class Connection(asyncio.Protocol):
    """One client: the socket's callbacks, and the task that drives its conversation."""

    def __init__(self, server: Server, peer: Peer, on_session: Callable[[], None]) -> None:
        self._server = server
        self._peer = peer
        self._on_session = on_session
        self._loop = asyncio.get_running_loop()
        self._protocol = Protocol()
        self._conversation: Conversation | None = None
        self._transport: asyncio.Transport | None = None
        self._input: list[bytes] = []
        self._input_bytes = 0
        self._wake = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._produced_bytes = 0  # counted by the worker thread
        self._written_bytes = 0  # counted by the event loop
        self._lost = asyncio.Event()
        self._is_lost = False
        self._is_reading_paused = False
        self._final: errors.SqlError | None = None

    @property
    def has_session(self) -> bool:
        return self._conversation is not None and self._conversation.session is not None

    @property
    def secret_key(self) -> bytes:
        return self._peer.secret_key

    def cancel(self) -> None:
        """Cancel the running command, if any; from any thread."""
        conversation = self._conversation
        session = None if conversation is None else conversation.session
        if session is not None:
            session.cancel()

    def end(self, error: errors.SqlError) -> None:
        """End the connection with a FATAL message; from the event loop's thread."""
        if self._final is None:
            self._final = error
        self.cancel()
        self._wake.set()
        self._writable.set()

    def _wake_from_thread(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._wake.set)

    def _end_from_thread(self, error: errors.SqlError) -> None:
        self._loop.call_soon_threadsafe(self.end, error)

    # --- the start --------------------------------------------------------------------------

    async def serve(self, client: socket.socket) -> None:
        """Negotiate encryption on the raw socket, then run the conversation to its end."""
        async with asyncio.timeout(self._server.options.authentication_timeout_seconds) as limit:
            client_tls = await self._negotiate(client)
            if client_tls is None:
                return
            await self._connect(client, is_tls=client_tls)
            await self._run(limit)

    async def _negotiate(self, client: socket.socket) -> bool | None:
        """Whether the client goes on under TLS; None when it is to be dropped."""
        is_unix = client.family == socket.AF_UNIX
        if not is_unix:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        tls = None if is_unix else self._server.tls
        await _readable(self._loop, client)
        first = client.recv(1, socket.MSG_PEEK)
        if not first:
            return None
        if first[0] == _TLS_HANDSHAKE_BYTE:
            return True if tls is not None else None
        while True:
            data = await _exactly(self._loop, client, 8)
            self._protocol.receive(data)
            try:
                message = None if len(data) < 8 else self._protocol.next_message()
            except FatalError:
                return None
            if not isinstance(message, messages.EncryptionRequest):
                return False if len(data) == 8 else None
            is_tls = message.code == messages.SSL_REQUEST_CODE and tls is not None
            if _has_input(client):  # bytes behind the request would be taken as encrypted ones
                return None
            await self._loop.sock_sendall(client, b"S" if is_tls else b"N")
            self._protocol.encryption_answered()
            if is_tls:
                return True

    async def _connect(self, client: socket.socket, *, is_tls: bool) -> None:
        """Hand the socket to asyncio and make the conversation."""
        tls = self._server.tls if is_tls else None
        transport, _ = await self._loop.connect_accepted_socket(lambda: self, client, ssl=tls)
        if is_tls:
            tls_object = transport.get_extra_info("ssl_object")
            chosen = tls_object.selected_alpn_protocol()
            if chosen not in (None, ALPN):
                raise OSError(f"unexpected application protocol {chosen}")
        peer = replace(
            self._peer, is_tls=is_tls, end_point=self._server.end_point if is_tls else None
        )
        is_local = client.family == socket.AF_UNIX
        if self._server.options.is_tls_required and not is_tls and not is_local:
            peer = replace(peer, refusal=_encryption_required)
        self._conversation = Conversation(
            self._server.backend,
            policy=self._server.policy,
            peer=peer,
            cancel=self._server.cancel,
            terminate=self._end_from_thread,
            protocol=self._protocol,
        )
        self._wake.set()

    # --- the task ---------------------------------------------------------------------------

    @property
    def _is_ending(self) -> bool:
        return self._is_lost or self._final is not None

    async def _run(self, limit: asyncio.Timeout) -> None:
        conversation = self._conversation
        assert conversation is not None
        threads = self._server.control_threads
        try:
            while not conversation.is_closed and not self._is_ending:
                self._wake.clear()
                self._move_input(conversation)
                if conversation.has_work:
                    await self._answer(conversation.run(), threads)
                if threads is self._server.control_threads and self.has_session:
                    threads = self._server.threads
                    limit.reschedule(None)
                    assert conversation.session is not None
                    conversation.session.on_notification(self._wake_from_thread)
                    self._on_session()
                if notes := conversation.notifications():
                    self._produced_bytes += len(notes)
                    self._write(notes)
                if not self._input and not conversation.is_closed and not self._is_ending:
                    await self._wait(conversation)
        finally:
            await self._close(conversation)

    def _move_input(self, conversation: Conversation) -> None:
        for data in self._input:
            conversation.receive(data)
        self._input.clear()
        self._input_bytes = 0
        transport = self._transport
        if self._is_reading_paused and transport is not None and not transport.is_closing():
            self._is_reading_paused = False
            transport.resume_reading()

    async def _answer(
        self, output: Generator[bytes, None, None], threads: ThreadPoolExecutor
    ) -> None:
        """Run the conversation's steps in a thread, pausing whenever the client is slow."""
        try:
            while not await self._in_thread(threads, self._step, output):
                await self._writable.wait()
                if self._is_ending:
                    break
        finally:
            output.close()

    async def _in_thread(
        self, threads: ThreadPoolExecutor, call: Callable[..., bool], *arguments: object
    ) -> bool:
        """The call's result; when the task is cancelled, the thread has left the call too."""
        future = self._loop.run_in_executor(threads, call, *arguments)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self.cancel()
            await asyncio.wait([future])
            raise

    def _step(self, output: Generator[bytes, None, None]) -> bool:
        """In a thread: hand output to the loop until too much is in flight; True at the end."""
        for data in output:
            self._produced_bytes += len(data)
            self._loop.call_soon_threadsafe(self._write, data)
            in_flight = self._produced_bytes - self._written_bytes
            if in_flight >= OUTPUT_IN_FLIGHT_BYTES or not self._writable.is_set():
                return False
            if self._is_ending:
                return False
        return True

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._is_lost:
            self._transport.write(data)
        self._written_bytes += len(data)

    async def _wait(self, conversation: Conversation) -> None:
        """Wait for input, an end, or the session's limit on silence."""
        session = conversation.session
        limit: IdleLimit | None = None
        if session is not None and conversation.is_idle:
            limit = session.idle_limit()
        try:
            await asyncio.wait_for(self._wake.wait(), None if limit is None else limit.seconds)
        except TimeoutError:
            if limit is not None and not self._input:
                self.end(limit.error)

    async def _close(self, conversation: Conversation) -> None:
        """Say why, if the server ends it; flush, close the socket, close the session."""
        transport, session = self._transport, conversation.session
        if transport is not None and not self._is_lost:
            if self._final is not None and not conversation.is_closed:
                transport.write(conversation.fatal_message(self._final))
            transport.close()
        conversation.is_closed = True
        if session is not None:
            close = self._loop.run_in_executor(self._server.control_threads, session.close)
            await asyncio.shield(close)
        if transport is None:
            return
        try:
            await asyncio.wait_for(self._lost.wait(), STOP_TIMEOUT_SECONDS)
        except TimeoutError:
            transport.abort()

    # --- callbacks of the transport -----------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of no class of asyncio's, only of their shape.
        self._transport = made = cast(asyncio.Transport, transport)
        made.set_write_buffer_limits(WRITE_HIGH_BYTES, WRITE_LOW_BYTES)

    def data_received(self, data: bytes) -> None:
        self._input.append(data)
        self._input_bytes += len(data)
        if self._input_bytes >= INPUT_BUFFERED_BYTES_MAX and not self._is_reading_paused:
            self._is_reading_paused = True
            assert self._transport is not None
            self._transport.pause_reading()
        self._wake.set()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        self._lost.set()
        self._writable.set()
        self._wake.set()
        self.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()


def _encryption_required() -> errors.SqlError:
    return errors.InvalidAuthorizationSpecification("connection requires encryption")


def _spawn(work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
    """Start a task that is kept in ``tasks`` while it runs; its failure is logged."""

    def finished(task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a connection failed", exc_info=error)

    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(finished)


def _once(action: Callable[[], None]) -> Callable[[], None]:
    """The action, that does nothing from its second call on."""
    left = [action]

    def run() -> None:
        while left:
            left.pop()()

    return run


async def _readable(loop: asyncio.AbstractEventLoop, client: socket.socket) -> None:
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(client, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(client)


async def _exactly(
    loop: asyncio.AbstractEventLoop, client: socket.socket, count: int
) -> bytes:
    """``count`` bytes of a socket, fewer at its end."""
    data = b""
    while len(data) < count:
        piece = await loop.sock_recv(client, count - len(data))
        if not piece:
            break
        data += piece
    return data


def _has_input(client: socket.socket) -> bool:
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


def _unix_path(directory: str, port: int) -> str:
    return os.path.join(directory, f".s.PGSQL.{port}")


def _unix_listener(directory: str, port: int) -> socket.socket:
    path = _unix_path(directory, port)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    return listener


async def serve(backend: Backend, options: ServerOptions, stop: asyncio.Event) -> None:
    """Serve until ``stop`` is set."""
    server = Server(backend, options)
    await server.start()
    log.info("listening on %s, port %d", options.host, server.port)
    try:
        await stop.wait()
    finally:
        await server.stop()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's event loop where it is installed, else asyncio's."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(backend: Backend, options: ServerOptions, on_listening: Callable[[int], None]) -> None:
    """Serve until SIGTERM or SIGINT; ``on_listening`` is told the port. Main thread only."""
    loop = new_event_loop()

    async def main() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        server = Server(backend, options)
        await server.start()
        on_listening(server.port)
        try:
            await stop.wait()
        finally:
            await server.stop()

    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
