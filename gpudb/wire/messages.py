"""The messages of the protocol: a dataclass each, with its type byte, ``encode`` and ``decode``.

Layouts: chapter 55.7 of PostgreSQL's manual. ``decode`` takes the body (what follows the length)
and raises ProtocolViolation (08P01) for a malformed one, worded as PostgreSQL does. Strings of
the frontend are bytes, because their encoding is the session's client_encoding.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import ClassVar, Self

from gpudb import errors

PROTOCOL_3_0 = 3 << 16
CANCEL_REQUEST_CODE = 80877102
SSL_REQUEST_CODE = 80877103
GSSENC_REQUEST_CODE = 80877104

_INT16 = struct.Struct("!h")
_UINT16 = struct.Struct("!H")
_INT32 = struct.Struct("!i")
_UINT32 = struct.Struct("!I")
_HEADER = struct.Struct("!cI")
_FIELD = struct.Struct("!IhIhih")


def frame(kind: bytes, body: bytes) -> bytes:
    """A message: type byte, length (counting itself), body."""
    return _HEADER.pack(kind, len(body) + 4) + body


class _Body:
    """A cursor over a message body; every read checks that the bytes are there."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, count: int) -> bytes:
        end = self.position + count
        if count < 0 or end > len(self.data):
            raise errors.ProtocolViolation("insufficient data left in message")
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def byte(self) -> bytes:
        if self.position >= len(self.data):
            raise errors.ProtocolViolation("no data left in message")
        return self.take(1)

    def int16(self) -> int:
        return int(_INT16.unpack(self.take(2))[0])

    def uint16(self) -> int:
        return int(_UINT16.unpack(self.take(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self.take(4))[0])

    def uint32(self) -> int:
        return int(_UINT32.unpack(self.take(4))[0])

    def string(self) -> bytes:
        end = self.data.find(b"\0", self.position)
        if end < 0:
            raise errors.ProtocolViolation("invalid string in message")
        found = self.data[self.position : end]
        self.position = end + 1
        return found

    def formats(self) -> tuple[int, ...]:
        return tuple(self.int16() for _ in range(self.uint16()))

    def end(self) -> None:
        if self.position != len(self.data):
            raise errors.ProtocolViolation("invalid message format")


# --- frontend: before the session ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartupMessage:
    """Protocol version and the connection's parameters, in the order they were sent."""

    version: int
    parameters: tuple[tuple[str, str], ...]

    @property
    def major(self) -> int:
        return self.version >> 16

    @property
    def minor(self) -> int:
        return self.version & 0xFFFF

    def encode(self) -> bytes:
        pairs = b"".join(
            key.encode() + b"\0" + value.encode() + b"\0" for key, value in self.parameters
        )
        body = _UINT32.pack(self.version) + pairs + b"\0"
        return _UINT32.pack(len(body) + 4) + body

    @classmethod
    def decode_parameters(cls, version: int, body: bytes) -> Self:
        """The message from what follows the version; raises 08P01 without the last zero byte."""
        cursor = _Body(body)
        parameters: list[tuple[str, str]] = []
        while True:
            if cursor.position >= len(body):
                raise errors.ProtocolViolation(
                    "invalid startup packet layout: expected terminator as last byte"
                )
            key = cursor.string()
            if not key:
                break
            value = cursor.string()
            parameters.append((key.decode("utf-8", "replace"), value.decode("utf-8", "replace")))
        if cursor.position != len(body):
            raise errors.ProtocolViolation(
                "invalid startup packet layout: expected terminator as last byte"
            )
        return cls(version, tuple(parameters))


@dataclass(frozen=True, slots=True)
class EncryptionRequest:
    """SSLRequest or GSSENCRequest, by its code."""

    code: int

    def encode(self) -> bytes:
        return struct.pack("!II", 8, self.code)


@dataclass(frozen=True, slots=True)
class CancelRequest:
    process_id: int
    secret_key: bytes

    def encode(self) -> bytes:
        size = 12 + len(self.secret_key)
        return struct.pack("!III", size, CANCEL_REQUEST_CODE, self.process_id) + self.secret_key


# --- frontend: in the session -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Query:
    kind: ClassVar[bytes] = b"Q"
    sql: bytes

    def encode(self) -> bytes:
        return frame(self.kind, self.sql + b"\0")

    @classmethod
    def decode(cls, body: bytes) -> Self:
        cursor = _Body(body)
        sql = cursor.string()
        cursor.end()
        return cls(sql)


@dataclass(frozen=True, slots=True)
class Parse:
    """``param_oids``: 0 = to be inferred; may be shorter than the statement's parameters."""

    kind: ClassVar[bytes] = b"P"
    name: bytes
    sql: bytes
    param_oids: tuple[int, ...] = ()

    def encode(self) -> bytes:
        oids = _UINT16.pack(len(self.param_oids)) + b"".join(map(_UINT32.pack, self.param_oids))
        return frame(self.kind, self.name + b"\0" + self.sql + b"\0" + oids)

    @classmethod
    def decode(cls, body: bytes) -> Self:
        cursor = _Body(body)
        name, sql = cursor.string(), cursor.string()
        oids = tuple(cursor.uint32() for _ in range(cursor.uint16()))
        cursor.end()
        return cls(name, sql, oids)


@dataclass(frozen=True, slots=True)
class Bind:
    """``param_formats`` and ``result_formats``: none (all text), one for all, or one each."""

    kind: ClassVar[bytes] = b"B"
    portal: bytes
    statement: bytes
    param_formats: tuple[int, ...] = ()
    values: tuple[bytes | None, ...] = ()
    result_formats: tuple[int, ...] = ()

    def encode(self) -> bytes:
        parts = [self.portal, b"\0", self.statement, b"\0", _encode_formats(self.param_formats)]
        parts.append(_encode_values(self.values))
        parts.append(_encode_formats(self.result_formats))
        return frame(self.kind, b"".join(parts))

    @classmethod
    def decode(cls, body: bytes) -> Self:
        cursor = _Body(body)
        portal, statement = cursor.string(), cursor.string()
        param_formats = cursor.formats()
        count = cursor.uint16()
        if len(param_formats) > 1 and len(param_formats) != count:
            raise errors.ProtocolViolation(
                f"bind message has {len(param_formats)} parameter formats but {count} parameters"
            )
        values = tuple(_decode_value(cursor) for _ in range(count))
        result_formats = cursor.formats()
        cursor.end()
        return cls(portal, statement, param_formats, values, result_formats)


@dataclass(frozen=True, slots=True)
class Describe:
    """``target``: b"S" a statement, b"P" a portal."""

    kind: ClassVar[bytes] = b"D"
    target: bytes
    name: bytes

    def encode(self) -> bytes:
        return frame(self.kind, self.target + self.name + b"\0")

    @classmethod
    def decode(cls, body: bytes) -> Self:
        return cls(*_decode_target(body, "DESCRIBE"))


@dataclass(frozen=True, slots=True)
class Close:
    """``target``: b"S" a statement, b"P" a portal."""

    kind: ClassVar[bytes] = b"C"
    target: bytes
    name: bytes

    def encode(self) -> bytes:
        return frame(self.kind, self.target + self.name + b"\0")

    @classmethod
    def decode(cls, body: bytes) -> Self:
        return cls(*_decode_target(body, "CLOSE"))


@dataclass(frozen=True, slots=True)
class Execute:
    """``max_rows``: 0 or less = no limit."""

    kind: ClassVar[bytes] = b"E"
    portal: bytes
    max_rows: int = 0

    def encode(self) -> bytes:
        return frame(self.kind, self.portal + b"\0" + _INT32.pack(self.max_rows))

    @classmethod
    def decode(cls, body: bytes) -> Self:
        cursor = _Body(body)
        portal, max_rows = cursor.string(), cursor.int32()
        cursor.end()
        return cls(portal, max_rows)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of the deprecated fast-path interface; the body is not looked at."""

    kind: ClassVar[bytes] = b"F"
    body: bytes

    def encode(self) -> bytes:
        return frame(self.kind, self.body)

    @classmethod
    def decode(cls, body: bytes) -> Self:
        return cls(body)


@dataclass(frozen=True, slots=True)
class CopyData:
    """A piece of a COPY stream (both directions); pieces need not follow rows."""

    kind: ClassVar[bytes] = b"d"
    data: bytes

    def encode(self) -> bytes:
        return frame(self.kind, self.data)

    @classmethod
    def decode(cls, body: bytes) -> Self:
        return cls(body)


@dataclass(frozen=True, slots=True)
class CopyFail:
    kind: ClassVar[bytes] = b"f"
    message: bytes

    def encode(self) -> bytes:
        return frame(self.kind, self.message + b"\0")

    @classmethod
    def decode(cls, body: bytes) -> Self:
        cursor = _Body(body)
        message = cursor.string()
        cursor.end()
        return cls(message)


@dataclass(frozen=True, slots=True)
class AuthenticationResponse:
    """PasswordMessage, SASLInitialResponse or SASLResponse: the context tells which."""

    kind: ClassVar[bytes] = b"p"
    body: bytes

    def encode(self) -> bytes:
        return frame(self.kind, self.body)

    @classmethod
    def decode(cls, body: bytes) -> Self:
        return cls(body)


@dataclass(frozen=True, slots=True)
class SaslInitialResponse:
    """The first SASL answer, read out of an AuthenticationResponse; ``data`` None = absent."""

    mechanism: bytes
    data: bytes | None

    def encode(self) -> bytes:
        data = _INT32.pack(-1) if self.data is None else _INT32.pack(len(self.data)) + self.data
        return frame(b"p", self.mechanism + b"\0" + data)

    @classmethod
    def decode(cls, body: bytes) -> Self:
        cursor = _Body(body)
        mechanism = cursor.string()
        data = _decode_value(cursor)
        cursor.end()
        return cls(mechanism, data)


class _Empty:
    """A message without a body."""

    __slots__ = ()
    kind: ClassVar[bytes]

    def encode(self) -> bytes:
        return frame(self.kind, b"")

    @classmethod
    def decode(cls, body: bytes) -> Self:
        _Body(body).end()
        return cls()


@dataclass(frozen=True, slots=True)
class Flush(_Empty):
    kind: ClassVar[bytes] = b"H"


@dataclass(frozen=True, slots=True)
class Sync(_Empty):
    kind: ClassVar[bytes] = b"S"


@dataclass(frozen=True, slots=True)
class CopyDone(_Empty):
    """The end of a COPY stream (both directions)."""

    kind: ClassVar[bytes] = b"c"


@dataclass(frozen=True, slots=True)
class Terminate(_Empty):
    kind: ClassVar[bytes] = b"X"

    @classmethod
    def decode(cls, body: bytes) -> Self:
        return cls()


FrontendMessage = (
    Query | Parse | Bind | Describe | Close | Execute | FunctionCall | CopyData | CopyFail
    | CopyDone | AuthenticationResponse | Flush | Sync | Terminate
)  # fmt: skip

FRONTEND: tuple[type[FrontendMessage], ...] = (
    Query, Parse, Bind, Describe, Close, Execute, FunctionCall, CopyData, CopyFail, CopyDone,
    AuthenticationResponse, Flush, Sync, Terminate,
)  # fmt: skip


# --- backend ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AuthenticationOk:
    kind: ClassVar[bytes] = b"R"

    def encode(self) -> bytes:
        return frame(self.kind, _UINT32.pack(0))


@dataclass(frozen=True, slots=True)
class AuthenticationCleartextPassword:
    kind: ClassVar[bytes] = b"R"

    def encode(self) -> bytes:
        return frame(self.kind, _UINT32.pack(3))


@dataclass(frozen=True, slots=True)
class AuthenticationSasl:
    kind: ClassVar[bytes] = b"R"
    mechanisms: tuple[str, ...]

    def encode(self) -> bytes:
        names = b"".join(name.encode() + b"\0" for name in self.mechanisms)
        return frame(self.kind, _UINT32.pack(10) + names + b"\0")


@dataclass(frozen=True, slots=True)
class AuthenticationSaslContinue:
    kind: ClassVar[bytes] = b"R"
    data: bytes

    def encode(self) -> bytes:
        return frame(self.kind, _UINT32.pack(11) + self.data)


@dataclass(frozen=True, slots=True)
class AuthenticationSaslFinal:
    kind: ClassVar[bytes] = b"R"
    data: bytes

    def encode(self) -> bytes:
        return frame(self.kind, _UINT32.pack(12) + self.data)


@dataclass(frozen=True, slots=True)
class NegotiateProtocolVersion:
    """The newest version the server speaks (the whole 32 bits) and the options it does not know."""

    kind: ClassVar[bytes] = b"v"
    version: int
    unrecognized: tuple[str, ...]

    def encode(self) -> bytes:
        names = b"".join(name.encode() + b"\0" for name in self.unrecognized)
        counts = struct.pack("!II", self.version, len(self.unrecognized))
        return frame(self.kind, counts + names)


@dataclass(frozen=True, slots=True)
class ParameterStatus:
    kind: ClassVar[bytes] = b"S"
    name: str
    value: str

    def encode(self) -> bytes:
        return frame(self.kind, self.name.encode() + b"\0" + self.value.encode() + b"\0")


@dataclass(frozen=True, slots=True)
class BackendKeyData:
    kind: ClassVar[bytes] = b"K"
    process_id: int
    secret_key: bytes

    def encode(self) -> bytes:
        return frame(self.kind, _UINT32.pack(self.process_id) + self.secret_key)


@dataclass(frozen=True, slots=True)
class ReadyForQuery:
    """``status``: "I" idle, "T" in a transaction block, "E" in a failed one."""

    kind: ClassVar[bytes] = b"Z"
    status: str

    def encode(self) -> bytes:
        return frame(self.kind, self.status.encode())


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """A result column as RowDescription tells it.

    ``type_length`` is pg_type.typlen; ``table_oid`` and ``attnum`` are 0 for computed columns;
    ``format`` is 0 for text, 1 for binary.
    """

    name: str
    type_oid: int
    type_length: int = -1
    typmod: int = -1
    table_oid: int = 0
    attnum: int = 0
    format: int = 0


@dataclass(frozen=True, slots=True)
class RowDescription:
    kind: ClassVar[bytes] = b"T"
    fields: tuple[FieldDescription, ...]

    def encode(self, encoding: str = "utf-8") -> bytes:
        parts = [_UINT16.pack(len(self.fields))]
        for each in self.fields:
            parts.append(each.name.encode(encoding, "replace") + b"\0")
            parts.append(
                _FIELD.pack(
                    each.table_oid,
                    each.attnum,
                    each.type_oid,
                    each.type_length,
                    each.typmod,
                    each.format,
                )
            )
        return frame(self.kind, b"".join(parts))


@dataclass(frozen=True, slots=True)
class DataRow:
    """One row; ``rows.py`` writes whole columns of them without this class."""

    kind: ClassVar[bytes] = b"D"
    values: tuple[bytes | None, ...]

    def encode(self) -> bytes:
        return frame(self.kind, _encode_values(self.values))


@dataclass(frozen=True, slots=True)
class ParameterDescription:
    kind: ClassVar[bytes] = b"t"
    type_oids: tuple[int, ...]

    def encode(self) -> bytes:
        oids = b"".join(map(_UINT32.pack, self.type_oids))
        return frame(self.kind, _UINT16.pack(len(self.type_oids)) + oids)


@dataclass(frozen=True, slots=True)
class CommandComplete:
    kind: ClassVar[bytes] = b"C"
    tag: str

    def encode(self) -> bytes:
        return frame(self.kind, self.tag.encode() + b"\0")


@dataclass(frozen=True, slots=True)
class EmptyQueryResponse(_Empty):
    kind: ClassVar[bytes] = b"I"


@dataclass(frozen=True, slots=True)
class ParseComplete(_Empty):
    kind: ClassVar[bytes] = b"1"


@dataclass(frozen=True, slots=True)
class BindComplete(_Empty):
    kind: ClassVar[bytes] = b"2"


@dataclass(frozen=True, slots=True)
class CloseComplete(_Empty):
    kind: ClassVar[bytes] = b"3"


@dataclass(frozen=True, slots=True)
class NoData(_Empty):
    kind: ClassVar[bytes] = b"n"


@dataclass(frozen=True, slots=True)
class PortalSuspended(_Empty):
    kind: ClassVar[bytes] = b"s"


@dataclass(frozen=True, slots=True)
class CopyInResponse:
    kind: ClassVar[bytes] = b"G"
    format: int
    column_formats: tuple[int, ...]

    def encode(self) -> bytes:
        return frame(self.kind, bytes((self.format,)) + _encode_formats(self.column_formats))


@dataclass(frozen=True, slots=True)
class CopyOutResponse:
    kind: ClassVar[bytes] = b"H"
    format: int
    column_formats: tuple[int, ...]

    def encode(self) -> bytes:
        return frame(self.kind, bytes((self.format,)) + _encode_formats(self.column_formats))


@dataclass(frozen=True, slots=True)
class NotificationResponse:
    kind: ClassVar[bytes] = b"A"
    process_id: int
    channel: str
    payload: str

    def encode(self) -> bytes:
        text = self.channel.encode() + b"\0" + self.payload.encode() + b"\0"
        return frame(self.kind, _UINT32.pack(self.process_id) + text)


@dataclass(frozen=True, slots=True)
class Report:
    """The fields of ErrorResponse and NoticeResponse: (code letter, text), in order."""

    fields: tuple[tuple[str, str], ...] = field(default=())

    def _body(self, encoding: str) -> bytes:
        parts = [
            code.encode() + text.replace("\0", "").encode(encoding, "replace") + b"\0"
            for code, text in self.fields
        ]
        return b"".join(parts) + b"\0"


@dataclass(frozen=True, slots=True)
class ErrorResponse(Report):
    kind: ClassVar[bytes] = b"E"

    def encode(self, encoding: str = "utf-8") -> bytes:
        return frame(self.kind, self._body(encoding))


@dataclass(frozen=True, slots=True)
class NoticeResponse(Report):
    kind: ClassVar[bytes] = b"N"

    def encode(self, encoding: str = "utf-8") -> bytes:
        return frame(self.kind, self._body(encoding))


def report_fields(error: errors.SqlError, severity: str = "") -> tuple[tuple[str, str], ...]:
    """The report of an error: severity, SQLSTATE and message always, the others where set."""
    level = severity or error.severity
    optional = (
        ("D", error.detail), ("H", error.hint),
        ("P", str(error.position) if error.position > 0 else ""),
        ("W", error.context), ("s", error.schema), ("t", error.table), ("c", error.column),
        ("d", error.data_type), ("n", error.constraint),
    )  # fmt: skip
    always = (("S", level), ("V", level), ("C", error.sqlstate), ("M", error.message))
    return always + tuple((code, text) for code, text in optional if text)


def _encode_formats(formats: tuple[int, ...]) -> bytes:
    return _UINT16.pack(len(formats)) + b"".join(map(_INT16.pack, formats))


def _encode_values(values: tuple[bytes | None, ...]) -> bytes:
    parts = [_UINT16.pack(len(values))]
    for value in values:
        parts.append(_INT32.pack(-1) if value is None else _INT32.pack(len(value)) + value)
    return b"".join(parts)


def _decode_value(cursor: _Body) -> bytes | None:
    size = cursor.int32()
    if size == -1:
        return None
    return cursor.take(size)


def _decode_target(body: bytes, what: str) -> tuple[bytes, bytes]:
    cursor = _Body(body)
    target, name = cursor.byte(), cursor.string()
    cursor.end()
    if target not in (b"S", b"P"):
        raise errors.ProtocolViolation(f"invalid {what} message subtype {target[0]}")
    return target, name
