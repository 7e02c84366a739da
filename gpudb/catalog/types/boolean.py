"""boolean."""

from __future__ import annotations

from gpudb import errors, layout, sqltype
from gpudb.catalog.types.base import DataType, HostValue, TypeContext


def parse_boolean(text: str) -> bool | None:
    """The truth value that a spelling or a unique prefix of one denotes; None for another text."""
    word = text.strip(" \t\n\r\f\v").lower()
    if not word:
        return None
    if word in ("1", "on"):
        return True
    if word in ("0", "off", "of"):
        return False
    if "true".startswith(word) or "yes".startswith(word):
        return True
    if "false".startswith(word) or "no".startswith(word):
        return False
    return None


class BooleanType(DataType):
    def __init__(self) -> None:
        super().__init__(
            sqltype.BOOL, "bool", "boolean", array_oid=1000, length=1, category="B",
            is_preferred=True, layout=layout.BOOL,
        )

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        value = parse_boolean(text)
        if value is None:
            raise errors.InvalidTextRepresentation(
                f'invalid input syntax for type boolean: "{text}"'
            )
        return value

    def format(self, value: HostValue, context: TypeContext) -> str:
        return "t" if value else "f"

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        if len(raw) != 1:
            raise errors.InvalidBinaryRepresentation("incorrect binary data format")
        return raw != b"\0"

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return b"\1" if value else b"\0"


TYPES: tuple[DataType, ...] = (BooleanType(),)
