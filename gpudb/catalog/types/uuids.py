"""uuid: 16 bytes."""

from __future__ import annotations

import re

from gpudb import layout, sqltype
from gpudb.catalog.types.base import DataType, HostValue, TypeContext
from gpudb.catalog.types.integers import check_length, syntax_error

_UUID = re.compile(r"(\{)?(?:[0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}(?(1)\})", re.ASCII)


class UuidType(DataType):
    def __init__(self) -> None:
        super().__init__(
            sqltype.UUID, "uuid", "uuid", array_oid=2951, length=16, layout=layout.UUID
        )

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        if not _UUID.fullmatch(text):
            raise syntax_error("uuid", text)
        return bytes.fromhex(text.strip("{}").replace("-", ""))

    def format(self, value: HostValue, context: TypeContext) -> str:
        digits = value.hex()
        return "-".join(
            (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
        )

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        check_length(raw, 16)
        return bytes(raw)

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return bytes(value)


TYPES: tuple[DataType, ...] = (UuidType(),)
