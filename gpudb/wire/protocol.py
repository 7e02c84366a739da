"""The protocol's input side as a state machine without I/O: bytes in, messages out.

``receive`` takes what the socket gave, ``next_message`` yields what is complete. Which message
types are legal is a table by state; the owner moves the state when it has answered::

    STARTUP --StartupMessage--> AUTHENTICATION --authenticated()--> READY
    READY <--copy_in_started() / copy_in_ended()--> COPY_IN
    READY --discard_until_sync()--> DISCARD --Sync--> READY
    any --FatalError--> CLOSED

What can't be continued raises FatalError. A message whose body is malformed comes out as
``Malformed``, one that breaks into COPY as ``Unexpected``: the owner answers with an error.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass

from gpudb import errors
from gpudb.wire import messages
from gpudb.wire.messages import (
    CancelRequest,
    CopyData,
    CopyDone,
    CopyFail,
    EncryptionRequest,
    FrontendMessage,
    StartupMessage,
)

STARTUP_BYTES_MAX = 10_000
"""A startup packet's length; PostgreSQL's MAX_STARTUP_PACKET_LENGTH."""
AUTHENTICATION_BYTES_MAX = 1_024
"""A SASL message's length; PostgreSQL's PG_MAX_SASL_MESSAGE_LENGTH."""
SMALL_MESSAGE_BYTES_MAX = 10_000
"""Messages that carry a name only; PostgreSQL's PQ_SMALL_MESSAGE_LIMIT."""
MESSAGE_BYTES_MAX = (1 << 30) - 2
"""Messages with a statement, values or COPY data; PostgreSQL's PQ_LARGE_MESSAGE_LIMIT."""
COPY_JOIN_BYTES = 1 << 20
"""CopyData messages are joined up to this size before they go to the engine."""

_LENGTH = struct.Struct("!I")
_HEADER = struct.Struct("!BI")
_COPY_DATA = 0x64


class State(enum.Enum):
    STARTUP = "startup"
    AUTHENTICATION = "authentication"
    READY = "ready"
    COPY_IN = "copy in"
    DISCARD = "discard until Sync"
    CLOSED = "closed"


class FatalError(Exception):
    """The connection must end; a silent one is closed without a message, as PostgreSQL does."""

    def __init__(self, error: errors.SqlError, *, is_silent: bool = False) -> None:
        super().__init__(error.message)
        self.error = error
        self.is_silent = is_silent


@dataclass(frozen=True, slots=True)
class Malformed:
    """A message of a legal type whose body can't be read."""

    kind: bytes
    error: errors.SqlError


@dataclass(frozen=True, slots=True)
class Unexpected:
    """A message that is not allowed during COPY FROM STDIN."""

    kind: bytes


Message = (
    FrontendMessage | StartupMessage | EncryptionRequest | CancelRequest | Malformed | Unexpected
)

_DECODERS = {kind.kind[0]: kind for kind in messages.FRONTEND}
_LARGE = frozenset(b"QPBFd")
_READY_KINDS = frozenset(b"QPBEDCHSFXdcf")
_KINDS = frozenset(_DECODERS)
_IGNORED_IN_READY = frozenset(b"dcf")
_COPY_KINDS = frozenset(b"dcfHS")


class Protocol:
    """The state of one connection's input."""

    def __init__(self) -> None:
        self.state = State.STARTUP
        self._buffer = bytearray()
        self._encryption_codes_seen: set[int] = set()
        self._is_encryption_pending = False

    @property
    def buffered_bytes(self) -> int:
        return len(self._buffer)

    @property
    def has_message(self) -> bool:
        """Whether ``next_message`` may give one: the first message is complete, or is wrong."""
        buffer = self._buffer
        header = 0 if self.state is State.STARTUP else 1
        if len(buffer) < header + 4:
            return bool(buffer) and header == 1 and buffer[0] not in _KINDS
        length = int(_LENGTH.unpack_from(buffer, header)[0])
        if self.state is State.STARTUP:
            limit = STARTUP_BYTES_MAX
        elif self.state is State.AUTHENTICATION:
            limit = AUTHENTICATION_BYTES_MAX
        else:
            limit = _limit(buffer[0])
        is_wrong = length > limit or (header == 1 and buffer[0] not in _KINDS)
        return is_wrong or len(buffer) >= header + length

    def receive(self, data: bytes | bytearray | memoryview) -> None:
        """Take bytes from the client."""
        if self.state is not State.CLOSED:
            self._buffer += data

    def next_message(self) -> Message | None:
        """The next complete message, None when more bytes are needed; raises FatalError."""
        try:
            return self._next()
        except FatalError:
            self.close()
            raise

    # --- transitions ------------------------------------------------------------------------

    def encryption_answered(self) -> None:
        """The one byte that answers an EncryptionRequest was sent."""
        if self._buffer:
            self.close()
            raise FatalError(
                errors.ProtocolViolation(
                    "received unencrypted data after SSL request",
                    detail="This could be either a client-software bug or evidence of an "
                    "attempted man-in-the-middle attack.",
                ),
                is_silent=True,
            )
        self._is_encryption_pending = False

    def authenticated(self) -> None:
        assert self.state is State.AUTHENTICATION
        self.state = State.READY

    def copy_in_started(self) -> None:
        assert self.state is State.READY
        self.state = State.COPY_IN

    def copy_in_ended(self) -> None:
        assert self.state is State.COPY_IN
        self.state = State.READY

    def discard_until_sync(self) -> None:
        assert self.state is State.READY
        self.state = State.DISCARD

    def close(self) -> None:
        self.state = State.CLOSED
        self._buffer.clear()

    # --- reading ----------------------------------------------------------------------------

    def _next(self) -> Message | None:
        match self.state:
            case State.STARTUP:
                return self._next_startup()
            case State.AUTHENTICATION:
                return self._next_authentication()
            case State.READY:
                return self._next_ready()
            case State.COPY_IN:
                return self._next_copy()
            case State.DISCARD:
                return self._next_discarding()
            case State.CLOSED:
                return None

    def _next_startup(self) -> Message | None:
        if len(self._buffer) < 4:
            return None
        length = _LENGTH.unpack_from(self._buffer)[0]
        if not 8 <= length <= STARTUP_BYTES_MAX:
            raise FatalError(
                errors.ProtocolViolation("invalid length of startup packet"), is_silent=True
            )
        if len(self._buffer) < length:
            return None
        code = _LENGTH.unpack_from(self._buffer, 4)[0]
        body = bytes(self._buffer[8:length])
        del self._buffer[:length]
        if self._is_encryption_pending:
            raise FatalError(errors.ProtocolViolation("no answer to an encryption request yet"))
        if code == messages.CANCEL_REQUEST_CODE:
            return self._cancel_request(body)
        is_encryption = code in (messages.SSL_REQUEST_CODE, messages.GSSENC_REQUEST_CODE)
        if is_encryption and code not in self._encryption_codes_seen:
            return self._encryption_request(code, body)
        if code >> 16 != 3:
            raise FatalError(
                errors.FeatureNotSupported(
                    f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}: "
                    "server supports 3.0 to 3.0"
                )
            )
        try:
            startup = StartupMessage.decode_parameters(code, body)
        except errors.ProtocolViolation as error:
            raise FatalError(error) from None
        self.state = State.AUTHENTICATION
        return startup

    def _cancel_request(self, body: bytes) -> CancelRequest:
        if not 8 <= len(body) <= 4 + 256:
            raise FatalError(
                errors.ProtocolViolation("invalid length of query cancel packet"), is_silent=True
            )
        process_id = _LENGTH.unpack_from(body)[0]
        self.close()
        return CancelRequest(process_id, body[4:])

    def _encryption_request(self, code: int, body: bytes) -> EncryptionRequest:
        if body:
            raise FatalError(
                errors.ProtocolViolation("invalid length of startup packet"), is_silent=True
            )
        self._encryption_codes_seen.add(code)
        self._is_encryption_pending = True
        return EncryptionRequest(code)

    def _next_authentication(self) -> Message | None:
        if not self._buffer:
            return None
        if self._buffer[0] != 0x70:
            raise FatalError(
                errors.ProtocolViolation(
                    f"expected SASL response, got message type {self._buffer[0]}"
                )
            )
        taken = self._take(AUTHENTICATION_BYTES_MAX)
        return None if taken is None else messages.AuthenticationResponse(taken[1])

    def _next_ready(self) -> Message | None:
        while self._buffer:
            kind = self._legal_kind(_READY_KINDS)
            taken = self._take(_limit(kind))
            if taken is None:
                return None
            if kind in _IGNORED_IN_READY:  # what is left of a COPY that failed
                continue
            return _decode(*taken)
        return None

    def _next_discarding(self) -> Message | None:
        while self._buffer:
            kind = self._legal_kind(_READY_KINDS)
            taken = self._take(_limit(kind))
            if taken is None:
                return None
            if kind == 0x53:
                self.state = State.READY
                return _decode(*taken)
            if kind == 0x58:
                return messages.Terminate()
        return None

    def _next_copy(self) -> Message | None:
        while self._buffer:
            kind = self._buffer[0]
            if kind not in _COPY_KINDS:
                return Unexpected(bytes((kind,)))
            if kind == _COPY_DATA:
                data = self._copy_data()
                return None if data is None else CopyData(data)
            taken = self._take(_limit(kind))
            if taken is None:
                return None
            if kind in (0x63, 0x66):
                return _decode(*taken)
        return None

    def _copy_data(self) -> bytes | None:
        """The payloads of the complete CopyData messages at the front, joined."""
        buffer = self._buffer
        parts: list[bytes] = []
        position, size, joined = 0, len(buffer), 0
        while position + 5 <= size and buffer[position] == _COPY_DATA and joined < COPY_JOIN_BYTES:
            length = _LENGTH.unpack_from(buffer, position + 1)[0]
            if not 4 <= length <= MESSAGE_BYTES_MAX:
                raise FatalError(errors.ProtocolViolation("invalid message length"))
            end = position + 1 + length
            if end > size:
                break
            parts.append(bytes(buffer[position + 5 : end]))
            joined += length - 4
            position = end
        del buffer[:position]
        return b"".join(parts) if parts else None

    def _legal_kind(self, kinds: frozenset[int]) -> int:
        kind = self._buffer[0]
        if kind not in kinds:
            raise FatalError(errors.ProtocolViolation(f"invalid frontend message type {kind}"))
        return kind

    def _take(self, limit: int) -> tuple[int, bytes] | None:
        """Type and body of the message at the front, if it is complete."""
        buffer = self._buffer
        if len(buffer) < 5:
            return None
        kind, length = _HEADER.unpack_from(buffer)
        if not 4 <= length <= limit:
            raise FatalError(errors.ProtocolViolation("invalid message length"))
        end = length + 1
        if len(buffer) < end:
            return None
        body = bytes(buffer[5:end])
        del buffer[:end]
        return kind, body


def _limit(kind: int) -> int:
    return MESSAGE_BYTES_MAX if kind in _LARGE else SMALL_MESSAGE_BYTES_MAX


def _decode(kind: int, body: bytes) -> FrontendMessage | Malformed:
    try:
        return _DECODERS[kind].decode(body)
    except errors.SqlError as error:
        return Malformed(bytes((kind,)), error)


__all__ = [
    "CopyData",
    "CopyDone",
    "CopyFail",
    "FatalError",
    "Malformed",
    "Message",
    "Protocol",
    "State",
    "Unexpected",
]
