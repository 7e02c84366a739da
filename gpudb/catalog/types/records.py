"""Row values (composite types and record), void, and the pseudo types that only name arguments."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from gpudb import errors, layout, sqltype
from gpudb.catalog.types.base import DataType, HostValue, RecordValue, TypeContext

_SPACES = " \t\n\r\v\f"
TypeLookup = Callable[[int], DataType]


def _malformed(text: str, detail: str) -> errors.SqlError:
    return errors.InvalidTextRepresentation(f'malformed record literal: "{text}"', detail=detail)


def _anonymous() -> errors.SqlError:
    return errors.FeatureNotSupported("input of anonymous composite types is not implemented")


def _cut(text: str) -> list[str | None]:
    """The fields of ``(a,"b c",)``; None where nothing stands."""
    at = len(text) - len(text.lstrip(_SPACES))
    if text[at : at + 1] != "(":
        raise _malformed(text, "Missing left parenthesis.")
    at += 1
    fields: list[str | None] = []
    while True:
        if text[at : at + 1] in (",", ")"):
            fields.append(None)
        else:
            field, at = _field(text, at)
            fields.append(field)
        if text[at] == ")":
            break
        at += 1
    if text[at + 1 :].strip(_SPACES):
        raise _malformed(text, "Junk after right parenthesis.")
    return fields


def _field(text: str, at: int) -> tuple[str, int]:
    parts: list[str] = []
    in_quotes = False
    while True:
        if at >= len(text):
            raise _malformed(text, "Unexpected end of input.")
        character = text[at]
        if character in ",)" and not in_quotes:
            return "".join(parts), at
        at += 1
        if character == "\\":
            if at >= len(text):
                raise _malformed(text, "Unexpected end of input.")
            parts.append(text[at])
            at += 1
        elif character == '"':
            if in_quotes and text[at : at + 1] == '"':
                parts.append('"')
                at += 1
            else:
                in_quotes = not in_quotes
        else:
            parts.append(character)


_QUOTED = re.compile(r'["\\(), \t\n\r\v\f]')


class RecordType(DataType):
    """A row value; ``fields`` are the (type OID, typmod) of a composite type's columns."""

    def __init__(
        self, oid: int, name: str, lookup: TypeLookup, *, array_oid: int = 0,
        fields: tuple[tuple[int, int], ...] | None = None,
    ) -> None:
        super().__init__(
            oid, name, name, array_oid=array_oid, category="P" if fields is None else "C",
            layout=layout.HOST,
        )
        self.lookup = lookup
        self.fields = fields

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        if self.fields is None:
            raise _anonymous()
        found = _cut(text)
        if len(found) == 1 and found[0] is None and not self.fields:
            found = []
        if len(found) != len(self.fields):
            few = len(found) < len(self.fields)
            raise _malformed(text, "Too few columns." if few else "Too many columns.")
        values = tuple(
            None if item is None else self.lookup(oid).parse(item, mod, context)
            for item, (oid, mod) in zip(found, self.fields, strict=True)
        )
        return RecordValue(tuple(oid for oid, _ in self.fields), values)

    def format(self, value: HostValue, context: TypeContext) -> str:
        return "(" + ",".join(self._texts(value, context)) + ")"

    def _texts(self, value: RecordValue, context: TypeContext) -> list[str]:
        texts = []
        for oid, item in zip(value.type_oids, value.values, strict=True):
            if item is None:
                texts.append("")
                continue
            text = self.lookup(oid).format(item, context)
            if not text or _QUOTED.search(text):
                text = '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'
            texts.append(text)
        return texts

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        if self.fields is None:
            raise _anonymous()
        (count,) = struct.unpack(">i", raw[:4])
        if count != len(self.fields):
            raise errors.DatatypeMismatch(
                f"wrong number of columns: {count}, expected {len(self.fields)}"
            )
        values: list[HostValue] = []
        at = 4
        for oid, mod in self.fields:
            _, length = struct.unpack(">Ii", raw[at : at + 8])
            at += 8
            if length < 0:
                values.append(None)
            else:
                values.append(self.lookup(oid).receive(raw[at : at + length], mod, context))
                at += length
        return RecordValue(tuple(oid for oid, _ in self.fields), tuple(values))

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        parts = [struct.pack(">i", len(value.values))]
        for oid, item in zip(value.type_oids, value.values, strict=True):
            if item is None:
                parts.append(struct.pack(">Ii", oid, -1))
            else:
                raw = self.lookup(oid).send(item, context)
                parts.append(struct.pack(">Ii", oid, len(raw)) + raw)
        return b"".join(parts)

    def sort_key(self, value: HostValue) -> HostValue:
        return tuple(
            (True,) if item is None else (False, self.lookup(oid).sort_key(item))
            for oid, item in zip(value.type_oids, value.values, strict=True)
        )


class VoidType(DataType):
    def __init__(self) -> None:
        super().__init__(sqltype.VOID, "void", "void", length=4, category="P")

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        return None

    def format(self, value: HostValue, context: TypeContext) -> str:
        return ""

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        return None

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return b""


class EnumDataType(DataType):
    """An enum of the catalog; values are labels, ordered as they were declared."""

    def __init__(
        self, oid: int, name: str, labels: tuple[str, ...], *, array_oid: int = 0
    ) -> None:
        super().__init__(
            oid, name, name, array_oid=array_oid, length=4, category="E", layout=layout.TEXT
        )
        self.positions = {label: i for i, label in enumerate(labels)}

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        if text not in self.positions:
            raise errors.InvalidTextRepresentation(
                f'invalid input value for enum {self.sql_name}: "{text}"'
            )
        return text

    def format(self, value: HostValue, context: TypeContext) -> str:
        return str(value)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        return self.parse(raw.decode(), typmod, context)

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return str(value).encode()

    def sort_key(self, value: HostValue) -> int:
        return self.positions[value]
