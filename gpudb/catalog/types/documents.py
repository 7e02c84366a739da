"""json (a checked text, kept as written) and jsonb (its canonical text)."""

from __future__ import annotations

from gpudb import errors, sqltype
from gpudb.catalog.types import json_text
from gpudb.catalog.types.base import DataType, HostValue, TypeContext
from gpudb.catalog.types.strings import TextType, decode_utf8


class JsonType(TextType):
    def __init__(self) -> None:
        super().__init__(sqltype.JSON, "json", "json", array_oid=199, category="U")

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        json_text.check_json(text)
        return text

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        return self.parse(decode_utf8(raw), typmod, context)


class JsonbType(TextType):
    def __init__(self) -> None:
        super().__init__(sqltype.JSONB, "jsonb", "jsonb", array_oid=3807, category="U")

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        return json_text.canonical(text)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        if raw[:1] != b"\1":
            raise errors.InternalError(
                f"unsupported jsonb version number {raw[0] if raw else 0}"
            )
        return json_text.canonical(decode_utf8(raw[1:]))

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return b"\1" + str(value).encode()

    def sort_key(self, value: HostValue) -> HostValue:
        return json_text.sort_key(json_text.load(value))


TYPES: tuple[DataType, ...] = (JsonType(), JsonbType())
