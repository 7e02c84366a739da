"""text, varchar, char(n), name, "char", unknown, cstring, bytea: strings of characters or bytes."""

from __future__ import annotations

import re

from gpudb import errors, layout, sqltype
from gpudb.catalog.types.base import DataType, HostValue, TypeContext
from gpudb.catalog.types.integers import check_length

LENGTH_MAX = 10 * 1024 * 1024
NAME_BYTES_MAX = 63
_HEADER = 4


def decode_utf8(raw: bytes) -> str:
    """The text of UTF-8 bytes; 22021 for invalid ones and for NUL."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as problem:
        width = min(_expected_width(raw[problem.start]), len(raw) - problem.start)
        shown = " ".join(f"0x{b:02x}" for b in raw[problem.start : problem.start + width])
        raise errors.CharacterNotInRepertoire(
            f'invalid byte sequence for encoding "UTF8": {shown}'
        ) from None
    if "\0" in text:
        raise errors.CharacterNotInRepertoire('invalid byte sequence for encoding "UTF8": 0x00')
    return text


def _expected_width(lead: int) -> int:
    if lead < 0xC0:
        return 1
    return 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4 if lead < 0xF8 else 1


class TextType(DataType):
    """text and what is stored just like it."""

    def __init__(
        self, oid: int, name: str, sql_name: str, *, array_oid: int = 0, length: int = -1,
        category: str = "S", is_preferred: bool = False, element_oid: int = 0,
    ) -> None:
        super().__init__(
            oid, name, sql_name, array_oid=array_oid, length=length, category=category,
            is_preferred=is_preferred, layout=layout.TEXT, element_oid=element_oid,
        )

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        return self.apply_typmod(text, typmod, is_explicit=False)

    def format(self, value: HostValue, context: TypeContext) -> str:
        return str(value)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        return self.apply_typmod(decode_utf8(raw), typmod, is_explicit=False)

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return self.format(value, context).encode()

    def sort_key(self, value: HostValue) -> bytes:
        return str(value).encode()


class LengthType(TextType):
    """varchar(n) and char(n): the type modifier is n + 4."""

    def typmod_in(self, modifiers: tuple[int | str, ...]) -> int:
        if len(modifiers) != 1:
            raise errors.InvalidParameterValue("invalid type modifier")
        length = int(modifiers[0])
        if length < 1:
            raise errors.InvalidParameterValue(
                f"length for type {self._short_name} must be at least 1"
            )
        if length > LENGTH_MAX:
            raise errors.InvalidParameterValue(
                f"length for type {self._short_name} cannot exceed {LENGTH_MAX}"
            )
        return length + _HEADER

    def typmod_out(self, typmod: int) -> str:
        return f"({typmod - _HEADER})" if typmod >= _HEADER else ""

    @property
    def _short_name(self) -> str:
        return "char" if self.oid == sqltype.BPCHAR else "varchar"

    def _too_long(self, length: int) -> errors.SqlError:
        return errors.StringDataRightTruncation(
            f"value too long for type {self.sql_name}({length})"
        )


class VarcharType(LengthType):
    def apply_typmod(self, value: HostValue, typmod: int, *, is_explicit: bool) -> HostValue:
        length = typmod - _HEADER
        if typmod < _HEADER or len(value) <= length:
            return value
        if not is_explicit and value[length:].strip(" "):
            raise self._too_long(length)
        return value[:length]


class BpcharType(LengthType):
    """char(n): host values lack the padding, which output restores from the type modifier."""

    def apply_typmod(self, value: HostValue, typmod: int, *, is_explicit: bool) -> HostValue:
        length = typmod - _HEADER
        kept = value.rstrip(" ")
        if typmod < _HEADER or len(kept) <= length:
            return kept
        if not is_explicit:
            raise self._too_long(length)
        return kept[:length].rstrip(" ")

    def sort_key(self, value: HostValue) -> bytes:
        return str(value).rstrip(" ").encode()


def padded(value: str, typmod: int) -> str:
    """A char(n) value with its padding."""
    return value.ljust(typmod - _HEADER) if typmod >= _HEADER else value


def clip_name(text: str) -> str:
    """An identifier cut to 63 bytes at a character's border."""
    raw = text.encode()
    return text if len(raw) <= NAME_BYTES_MAX else raw[:NAME_BYTES_MAX].decode(errors="ignore")


class NameType(TextType):
    def apply_typmod(self, value: HostValue, typmod: int, *, is_explicit: bool) -> HostValue:
        return clip_name(value)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        if len(raw) > NAME_BYTES_MAX:
            raise errors.NameTooLong(
                "identifier too long", detail="Identifier must be less than 64 characters."
            )
        return decode_utf8(raw)


class CharType(TextType):
    """"char": one byte; a byte beyond ASCII is written as backslash and three octal digits."""

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        octal = re.fullmatch(r"\\([0-3][0-7][0-7])", text)
        if octal is not None:
            return chr(int(octal[1], 8)) if octal[1] != "000" else ""
        raw = text.encode()[:1]
        return chr(raw[0]) if raw else ""

    def format(self, value: HostValue, context: TypeContext) -> str:
        if value and ord(value) >= 0x80:
            return f"\\{ord(value):03o}"
        return str(value)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        check_length(raw, 1)
        return chr(raw[0]) if raw[0] else ""

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return bytes([ord(value)]) if value else b"\0"


class ByteaType(DataType):
    """bytea: text as \\x and hex digits, or with octal escapes."""

    def __init__(self) -> None:
        super().__init__(
            sqltype.BYTEA, "bytea", "bytea", array_oid=1001, layout=layout.TEXT
        )

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        if text.startswith("\\x"):
            return parse_hex(text[2:])
        return parse_escaped(text)

    def format(self, value: HostValue, context: TypeContext) -> str:
        if context.bytea_output != "escape":
            return "\\x" + str(value.hex())
        return format_escaped(value)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        return bytes(raw)

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return bytes(value)


def parse_hex(text: str) -> bytes:
    """Bytes of hex digits, blanks between pairs allowed; 22023."""
    pairs: list[int] = []
    pending: int | None = None
    for character in text:
        if pending is None and character in " \n\t\r":
            continue
        digit = "0123456789abcdef".find(character.lower()) if character.isascii() else -1
        if digit < 0:
            raise errors.InvalidParameterValue(f'invalid hexadecimal digit: "{character}"')
        if pending is None:
            pending = digit
        else:
            pairs.append(pending * 16 + digit)
            pending = None
    if pending is not None:
        raise errors.InvalidParameterValue("invalid hexadecimal data: odd number of digits")
    return bytes(pairs)


_ESCAPE = re.compile(rb"\\(\\|[0-3][0-7][0-7])?")


def parse_escaped(text: str) -> bytes:
    """Bytes of the traditional format: \\\\ and \\ooo; 22P02 for another backslash."""

    def unescaped(match: re.Match[bytes]) -> bytes:
        if match[1] is None:
            raise errors.InvalidTextRepresentation("invalid input syntax for type bytea")
        return b"\\" if match[1] == b"\\" else bytes([int(match[1], 8)])

    return _ESCAPE.sub(unescaped, text.encode())


def format_escaped(value: bytes) -> str:
    parts = []
    for byte in value:
        if byte == 0x5C:
            parts.append("\\\\")
        elif byte < 0x20 or byte > 0x7E:
            parts.append(f"\\{byte:03o}")
        else:
            parts.append(chr(byte))
    return "".join(parts)


TYPES: tuple[DataType, ...] = (
    TextType(sqltype.TEXT, "text", "text", array_oid=1009, is_preferred=True),
    VarcharType(sqltype.VARCHAR, "varchar", "character varying", array_oid=1015),
    BpcharType(sqltype.BPCHAR, "bpchar", "character", array_oid=1014),
    NameType(sqltype.NAME, "name", "name", array_oid=1003, length=64, element_oid=sqltype.CHAR),
    CharType(sqltype.CHAR, "char", '"char"', array_oid=1002, length=1, category="Z"),
    TextType(sqltype.UNKNOWN, "unknown", "unknown", length=-2, category="X"),
    TextType(sqltype.CSTRING, "cstring", "cstring", array_oid=1263, length=-2, category="P"),
    TextType(sqltype.REFCURSOR, "refcursor", "refcursor", array_oid=2201, category="U"),
    TextType(sqltype.PG_NODE_TREE, "pg_node_tree", "pg_node_tree", category="Z"),
    ByteaType(),
)
