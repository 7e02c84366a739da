"""The server over sockets: negotiation, TLS, limits, cancel, back-pressure, broken clients."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from wire_fakes import report, shown, split_messages
from wire_running import Running

from gpudb import errors
from gpudb.wire.backend import IdleLimit
from gpudb.wire.messages import (
    CancelRequest,
    EncryptionRequest,
    Parse,
    Query,
    StartupMessage,
    Sync,
    Terminate,
)

SSL_REQUEST = EncryptionRequest(80877103).encode()
GSS_REQUEST = EncryptionRequest(80877104).encode()
STARTUP = StartupMessage(3 << 16, (("user", "tester"), ("database", "db"))).encode()
Start = Callable[..., Running]


class Raw:
    """A client on a bare socket."""

    def __init__(self, port: int, sock: socket.socket | None = None) -> None:
        self.socket = sock or socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(10)
        self._read = bytearray()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def exactly(self, count: int) -> bytes:
        while len(self._read) < count:
            piece = self.socket.recv(1 << 20)
            if not piece:
                break
            self._read += piece
        data = bytes(self._read[:count])
        del self._read[:count]
        return data

    def message(self) -> bytes:
        header = self.exactly(5)
        return header + self.exactly(struct.unpack("!I", header[1:])[0] - 4)

    def until(self, kind: bytes) -> bytes:
        data = bytearray()
        while True:
            message = self.message()
            data += message
            if message[:1] == kind:
                return bytes(data)

    def rest(self) -> bytes:
        """Everything up to the end of the connection."""
        try:
            while piece := self.socket.recv(1 << 20):
                self._read += piece
        except ConnectionResetError:
            pass
        return self.exactly(len(self._read))

    def login(self, data: bytes = STARTUP) -> int:
        """The process id."""
        self.send(data)
        for kind, body in split_messages(self.until(b"Z")):
            if kind == "K":
                self.key = body[4:]
                return int(struct.unpack_from("!I", body)[0])
        raise AssertionError("no BackendKeyData")


def wait_for(condition: Callable[[], Any], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# --- the start ----------------------------------------------------------------------------------


def test_encryption_requests_in_several_rounds(server: Running) -> None:
    for requests in ([], [SSL_REQUEST], [GSS_REQUEST], [GSS_REQUEST, SSL_REQUEST]):
        client = Raw(server.port)
        for request in requests:
            client.send(request)
            assert client.exactly(1) == b"N"
        client.login()
        client.send(Query(b"select 1").encode())
        assert shown(client.until(b"Z")) == "T(?column?:23/0) D(1) C(SELECT 1) Z(I)"


def test_startup_in_single_bytes(server: Running) -> None:
    client = Raw(server.port)
    for byte in SSL_REQUEST:
        client.send(bytes((byte,)))
    assert client.exactly(1) == b"N"
    for byte in STARTUP[:-1]:
        client.send(bytes((byte,)))
    client.login(STARTUP[-1:])


def test_bytes_pipelined_behind_ssl_request_are_refused(server: Running) -> None:
    client = Raw(server.port)
    client.send(SSL_REQUEST + STARTUP)
    assert client.rest() == b""
    assert not server.backend.sessions


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\0\0\0\0\0", b"\xff" * 64, b"\x16\x03\1\0\1\0",
     b"\0\0\0\x09", b"\0\0\0\x08\x04\xd2\x16"],
)  # fmt: skip
def test_garbage_at_the_start(server: Running, data: bytes) -> None:
    client = Raw(server.port)
    client.send(data)
    with contextlib.suppress(OSError):  # the server may have closed it already
        client.socket.shutdown(socket.SHUT_WR)
    client.rest()
    Raw(server.port).login()


def test_startup_timeout(run_server: Start) -> None:
    server = run_server(authentication_timeout_seconds=0.2)
    slow, silent = Raw(server.port), Raw(server.port)
    slow.send(SSL_REQUEST)
    assert slow.exactly(1) == b"N"
    assert slow.rest() == b""
    assert silent.rest() == b""
    client = Raw(server.port)
    client.login()
    time.sleep(0.4)
    client.send(Query(b"select 1").encode())
    assert shown(client.until(b"Z")).endswith("Z(I)")


def test_connection_limit(run_server: Start) -> None:
    server = run_server(connections_max=2)
    first, second = Raw(server.port), Raw(server.port)
    first.login()
    process_id = second.login()
    third = Raw(server.port)
    third.send(STARTUP)
    data = third.rest()
    assert report(split_messages(data)[0][1])["M"] == "sorry, too many clients already"
    assert shown(data) == "E(FATAL 53300)"
    second.send(Query(b"sleep 10").encode())
    wait_for(lambda: "sleep 10" in server.backend.sessions[1].calls)
    Raw(server.port).send(CancelRequest(process_id, second.key).encode())
    assert shown(second.until(b"Z")) == "E(ERROR 57014) Z(I)"
    first.send(Terminate().encode())
    assert first.rest() == b""

    def is_let_in() -> bool:
        client = Raw(server.port)
        client.send(STARTUP)
        return client.message()[:1] == b"R"

    wait_for(is_let_in)


# --- TLS ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_tls(run_server: Start, certificate: tuple[str, str], loop: str) -> None:
    server = run_server(loop, certificate_file=certificate[0], key_file=certificate[1])
    context = ssl.create_default_context(cafile=certificate[0])

    def login(sock: ssl.SSLSocket) -> None:
        client = Raw(server.port, sock)
        client.login()
        client.send(Query(b"rows 20000").encode())
        assert client.until(b"Z").count(b"D\0\0\0") >= 20000

    client = Raw(server.port)
    client.send(GSS_REQUEST)
    assert client.exactly(1) == b"N"
    client.send(SSL_REQUEST)
    assert client.exactly(1) == b"S"
    login(context.wrap_socket(client.socket, server_hostname="localhost"))
    assert server.backend.sessions[-1].connection.is_tls

    context.set_alpn_protocols(["postgresql"])
    direct = socket.create_connection(("127.0.0.1", server.port))
    wrapped = context.wrap_socket(direct, server_hostname="localhost")
    assert wrapped.selected_alpn_protocol() == "postgresql"
    login(wrapped)
    Raw(server.port).login()
    assert not server.backend.sessions[-1].connection.is_tls


def test_tls_can_be_required(run_server: Start, certificate: tuple[str, str]) -> None:
    server = run_server(
        certificate_file=certificate[0], key_file=certificate[1], is_tls_required=True
    )
    client = Raw(server.port)
    client.send(STARTUP)
    assert shown(client.rest()) == "E(FATAL 28000)"
    with psycopg.connect(server.conninfo(sslmode="require")) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_scram_with_channel_binding(run_server: Start, certificate: tuple[str, str]) -> None:
    server = run_server(
        method="scram-sha-256", certificate_file=certificate[0], key_file=certificate[1]
    )
    more = {"sslmode": "require", "channel_binding": "require"}
    with psycopg.connect(server.conninfo(**more)) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.conninfo(**more, password="wrong"))
    with psycopg.connect(server.conninfo()) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


# --- in the session -----------------------------------------------------------------------------


def test_wrong_cancel_keys_do_nothing(server: Running) -> None:
    client = Raw(server.port)
    process_id = client.login()
    client.send(Query(b"sleep 0.3").encode())
    for number, key in ((process_id, b"\0\0\0\0"), (process_id, b"x" * 32), (1, client.key)):
        cancel = Raw(server.port)
        cancel.send(CancelRequest(number, key).encode())
        assert cancel.rest() == b""
    assert shown(client.until(b"Z")) == "C(SLEEP) Z(I)"


def test_cancel_after_an_ssl_request(server: Running) -> None:
    client = Raw(server.port)
    process_id = client.login()
    client.send(Query(b"sleep 10").encode())
    wait_for(lambda: server.backend.sessions[0].calls)
    cancel = Raw(server.port)
    cancel.send(SSL_REQUEST)
    assert cancel.exactly(1) == b"N"
    cancel.send(CancelRequest(process_id, client.key).encode())
    assert cancel.rest() == b""
    assert shown(client.until(b"Z")) == "E(ERROR 57014) Z(I)"
    client.send(Query(b"select 1").encode())
    assert shown(client.until(b"Z")).endswith("Z(I)")


def test_disconnect_cancels_the_query(server: Running) -> None:
    client = Raw(server.port)
    client.login()
    client.send(Query(b"sleep 30").encode())
    session = server.backend.sessions[0]
    wait_for(lambda: session.calls)
    client.socket.close()
    wait_for(lambda: session.is_closed)
    assert [type(each) for each in session.failures] == [errors.QueryCanceled]


def test_disconnect_in_the_middle_of_a_result(server: Running) -> None:
    client = Raw(server.port)
    client.login()
    client.send(Query(b"endless").encode())
    client.exactly(1 << 20)
    client.socket.close()
    session = server.backend.sessions[0]
    wait_for(lambda: session.is_closed)


def test_a_client_that_does_not_read_stops_the_producer(server: Running) -> None:
    client = Raw(server.port)
    process_id = client.login()
    client.send(Query(b"endless").encode())
    client.message()
    assert server.server is not None
    connection = server.server.connections[process_id]
    seen = [-1, -2]
    wait_for(lambda: seen.append(connection._produced_bytes) or time.sleep(0.2)
             or seen[-1] == seen[-2], 20)  # fmt: skip
    assert connection._produced_bytes < 32 << 20
    other = Raw(server.port)
    other.login()
    other.send(Query(b"select 1").encode())
    assert shown(other.until(b"Z")).endswith("Z(I)")
    Raw(server.port).send(CancelRequest(process_id, client.key).encode())
    data = client.until(b"Z")
    assert shown(data[-200:][data[-200:].index(b"E\0\0\0") :]) == "E(ERROR 57014) Z(I)"


def test_pipelined_input_beyond_the_buffer(server: Running) -> None:
    client = Raw(server.port)
    client.login()
    count = 3000
    big = Query(b"command " + b"A" * 2000).encode()

    def feed() -> None:
        for _ in range(count):
            client.send(big)
        client.send(Terminate().encode())

    thread = threading.Thread(target=feed)
    thread.start()
    kinds = [kind for kind, _ in split_messages(client.rest())]
    thread.join()
    assert kinds == ["C", "Z"] * count


def test_large_messages(server: Running) -> None:
    client = Raw(server.port)
    client.login()
    text = b"x" * (8 << 20)
    client.send(Query(b"select '" + text + b"'").encode())
    kind, body = split_messages(client.until(b"Z"))[1]
    assert kind == "D"
    assert body[6:] == text


def test_copy_in_many_messages(server: Running) -> None:
    client = Raw(server.port)
    client.login()
    client.send(Query(b"copy in").encode())
    assert shown(client.message()) == "G(0,2)"
    client.send(b"".join(b"d\0\0\0\x0a%05d\n" % n for n in range(50_000)) + b"c\0\0\0\4")
    assert shown(client.until(b"Z")) == "C(COPY 50000) Z(I)"


@pytest.mark.parametrize(
    "data", [b"y\0\0\0\4", b"Q\0\0\0\1", b"\0" * 100, b"\xff" * 100, Parse(b"", b"x").encode()[:9]]
)
def test_malformed_bytes_only_end_their_connection(server: Running, data: bytes) -> None:
    client, other = Raw(server.port), Raw(server.port)
    client.login()
    other.login()
    client.send(data)
    with contextlib.suppress(OSError):  # the server may have closed it already
        client.socket.shutdown(socket.SHUT_WR)
    client.rest()
    other.send(Query(b"select 1").encode())
    assert shown(other.until(b"Z")).endswith("Z(I)")
    wait_for(lambda: server.backend.sessions[0].is_closed)


def test_random_bytes_never_hurt_others(run_server: Start) -> None:
    server = run_server()
    other = Raw(server.port)
    other.login()
    for number in range(60):
        client = Raw(server.port)
        if number % 2:
            client.login()
        try:
            client.send(os.urandom(1 + number * 7))
            client.socket.shutdown(socket.SHUT_WR)
            client.rest()
        except OSError:
            pass
        client.socket.close()
    other.send(Query(b"select 1").encode() + Sync().encode())
    assert shown(other.until(b"Z")).endswith("Z(I)")
    wait_for(lambda: all(each.is_closed for each in server.backend.sessions[1:]))


def test_terminate_from_the_session(server: Running) -> None:
    client = Raw(server.port)
    client.login()
    client.send(Query(b"terminate").encode())
    assert shown(client.rest()).endswith("E(FATAL 57P01)")
    wait_for(lambda: server.backend.sessions[0].is_closed)


def test_idle_limit(run_server: Start) -> None:
    server = run_server()
    error = errors.IdleSessionTimeout("terminating connection due to idle-session timeout")
    server.backend.limit = IdleLimit(0.2, error)
    client = Raw(server.port)
    client.login()
    client.send(Query(b"sleep 0.4").encode())
    assert shown(client.until(b"Z")) == "C(SLEEP) Z(I)"
    assert shown(client.rest()) == "E(FATAL 57P05)"


def test_graceful_stop(server: Running) -> None:
    idle, busy = Raw(server.port), Raw(server.port)
    idle.login()
    busy.login()
    busy.send(Query(b"sleep 30").encode())
    wait_for(lambda: server.backend.sessions[1].calls)
    server.stop()
    assert shown(idle.rest()) == "E(FATAL 57P01)"
    assert shown(busy.rest()).endswith("E(FATAL 57P01)")
    assert all(each.is_closed for each in server.backend.sessions)


def test_unix_socket(run_server: Start, tmp_path: Any) -> None:
    server = run_server(unix_directory=str(tmp_path))
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(str(tmp_path / f".s.PGSQL.{server.port}"))
    Raw(0, sock).login()
    server.stop()
    assert not list(tmp_path.iterdir())
