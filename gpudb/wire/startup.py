"""From the first byte to the session: version negotiation, authentication, parameters.

``Handshake`` answers each message of the start with bytes; when it is through, ``session`` is
there. Everything that goes wrong is a FatalError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from gpudb import errors
from gpudb.wire import auth, messages
from gpudb.wire.backend import Backend, ConnectionInfo, Session
from gpudb.wire.messages import (
    AuthenticationOk,
    AuthenticationResponse,
    AuthenticationSasl,
    AuthenticationSaslContinue,
    AuthenticationSaslFinal,
    BackendKeyData,
    EncryptionRequest,
    NegotiateProtocolVersion,
    ParameterStatus,
    SaslInitialResponse,
    StartupMessage,
)
from gpudb.wire.protocol import FatalError, Message, Protocol

AuthenticationMethod = Literal["trust", "scram-sha-256"]

_FALSE = frozenset({"", "0", "f", "fa", "fal", "fals", "false", "n", "no", "of", "off"})
_OPTION = re.compile(r"(?:--|-c\s*)(?P<name>[^=\s]+)=(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Peer:
    """What the server knows of a connection before its session exists.

    ``end_point`` is the certificate hash for channel binding (None without TLS). ``refusal`` is
    asked when the client wants a session, and gives the error it gets instead (too many
    connections, shutting down).
    """

    process_id: int
    secret_key: bytes
    host: str = ""
    port: int = 0
    is_tls: bool = False
    end_point: bytes | None = None
    refusal: Callable[[], errors.SqlError | None] = lambda: None


@dataclass(frozen=True, slots=True)
class Policy:
    """How clients prove who they are; ``secret`` seeds the mock verifiers of unknown roles."""

    method: AuthenticationMethod
    secret: bytes


class Handshake:
    """The start of one connection."""

    def __init__(
        self,
        protocol: Protocol,
        backend: Backend,
        *,
        policy: Policy,
        peer: Peer,
        terminate: Callable[[errors.SqlError], None],
    ) -> None:
        self._protocol = protocol
        self._backend = backend
        self._policy = policy
        self._peer = peer
        self._terminate = terminate
        self._parameters: dict[str, str] = {}
        self._scram: ScramExchange | None = None
        self.session: Session | None = None

    def answer(self, message: Message) -> Iterator[bytes]:
        """What to send for a message of the start; raises FatalError."""
        try:
            if isinstance(message, StartupMessage):
                yield from self._start(message)
            elif isinstance(message, EncryptionRequest):
                # Encryption is negotiated before the bytes come here, or not offered at all.
                yield b"N"
                self._protocol.encryption_answered()
            elif isinstance(message, AuthenticationResponse):
                yield from self._authenticate(message)
            else:
                raise errors.ProtocolViolation("unexpected message during startup")
        except errors.SqlError as error:
            raise FatalError(error) from error

    def _start(self, message: StartupMessage) -> Iterator[bytes]:
        refusal = self._peer.refusal()
        if refusal is not None:
            raise refusal
        unknown = tuple(key for key, _ in message.parameters if key.startswith("_pq_."))
        if message.minor > 0 or unknown:
            yield NegotiateProtocolVersion(messages.PROTOCOL_3_0, unknown).encode()
        self._parameters = startup_parameters(message)
        if self._policy.method == "trust":
            yield from self._open()
            return
        user = self._parameters["user"]
        self._scram = ScramExchange(
            auth.ScramServer(
                user,
                self._backend.verifier(user),
                secret=self._policy.secret,
                end_point=self._peer.end_point,
            )
        )
        yield AuthenticationSasl(self._scram.server.mechanisms).encode()

    def _authenticate(self, message: AuthenticationResponse) -> Iterator[bytes]:
        assert self._scram is not None
        answer = self._scram.step(message.body)
        if self._scram.is_done:
            yield AuthenticationSaslFinal(answer).encode()
            yield from self._open()
        else:
            yield AuthenticationSaslContinue(answer).encode()

    def _open(self) -> Iterator[bytes]:
        yield AuthenticationOk().encode()
        peer = self._peer
        connection = ConnectionInfo(
            peer.process_id, peer.host, peer.port, peer.is_tls, self._terminate
        )
        session = self._backend.open_session(self._parameters, connection)
        self.session = session
        self._protocol.authenticated()
        for name, value in session.parameter_status().items():
            yield ParameterStatus(name, value).encode()
        yield BackendKeyData(peer.process_id, peer.secret_key).encode()


class ScramExchange:
    """The client's messages of one SCRAM exchange, in their order."""

    def __init__(self, server: auth.ScramServer) -> None:
        self.server = server
        self.is_done = False
        self._mechanism: str | None = None
        self._has_first = False

    def step(self, body: bytes) -> bytes:
        """The server's answer to the next message; ``is_done`` after the last one."""
        data: bytes | None = body
        if self._mechanism is None:
            initial = SaslInitialResponse.decode(body)
            self._mechanism = initial.mechanism.decode("utf-8", "replace")
            data = initial.data
        if data is None:  # the client waits for an empty challenge
            return b""
        if not self._has_first:
            self._has_first = True
            return self.server.first(self._mechanism, data)
        self.is_done = True
        return self.server.final(data)


def startup_parameters(message: StartupMessage) -> dict[str, str]:
    """User, database and settings of a startup packet; ``options`` become settings.

    Protocol options and ``replication=false`` are left out. Raises 28000 without a user, 0A000
    for a replication connection, 42601 for command-line options other than settings.
    """
    given = {key: value for key, value in message.parameters if not key.startswith("_pq_.")}
    user = given.pop("user", "")
    if not user:
        raise errors.InvalidAuthorizationSpecification(
            "no PostgreSQL user name specified in startup packet"
        )
    if given.pop("replication", "").lower() not in _FALSE:
        raise errors.FeatureNotSupported("replication connections are not supported")
    parameters = {"user": user, "database": given.pop("database", "") or user}
    for name, value in split_options(given.pop("options", "")):
        parameters[name] = value
    return parameters | given


def split_options(options: str) -> list[tuple[str, str]]:
    """The settings in a command line such as ``-c geqo=off --search_path=a\\ b``.

    A backslash takes the next character literally; dashes in names stand for underscores.
    """
    words = _words(options)
    found: list[tuple[str, str]] = []
    position = 0
    while position < len(words):
        word = words[position]
        if word == "-c" and position + 1 < len(words):
            position += 1
            word = "-c" + words[position]
        match = _OPTION.fullmatch(word)
        if match is None:
            raise errors.SyntaxError(f"invalid command-line argument for server process: {word}")
        found.append((match["name"].replace("-", "_"), match["value"]))
        position += 1
    return found


def _words(text: str) -> list[str]:
    words: list[str] = []
    word: list[str] | None = None
    characters = iter(text)
    for char in characters:
        if char.isspace():
            if word is not None:
                words.append("".join(word))
            word = None
            continue
        word = [] if word is None else word
        word.append(next(characters, "") if char == "\\" else char)
    if word is not None:
        words.append("".join(word))
    return words
