"""bit(n) and bit varying(n): strings of 0 and 1."""

from __future__ import annotations

import struct

from gpudb import errors, layout, sqltype
from gpudb.catalog.types.base import DataType, HostValue, TypeContext

_LENGTH_MAX = 83886080


class BitType(DataType):
    def __init__(self, oid: int, name: str, sql_name: str, array_oid: int) -> None:
        super().__init__(
            oid, name, sql_name, array_oid=array_oid, category="V", is_preferred=oid == 1562,
            layout=layout.TEXT,
        )
        self.is_varying = oid == sqltype.VARBIT

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        digits, is_hex = text, False
        if text[:1] in ("b", "B"):
            digits = text[1:]
        elif text[:1] in ("x", "X"):
            digits, is_hex = text[1:], True
        allowed = "0123456789abcdefABCDEF" if is_hex else "01"
        for digit in digits:
            if digit not in allowed:
                kind = "hexadecimal" if is_hex else "binary"
                raise errors.InvalidTextRepresentation(f'"{digit}" is not a valid {kind} digit')
        bits = "".join(f"{int(d, 16):04b}" for d in digits) if is_hex else digits
        return self.apply_typmod(bits, typmod, is_explicit=False)

    def format(self, value: HostValue, context: TypeContext) -> str:
        return str(value)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        (length,) = struct.unpack(">i", raw[:4])
        if length < 0 or len(raw) != 4 + (length + 7) // 8:
            raise errors.InvalidBinaryRepresentation("invalid length in external bit string")
        bits = "".join(f"{byte:08b}" for byte in raw[4:])[:length]
        return self.apply_typmod(bits, typmod, is_explicit=False)

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return struct.pack(">i", len(value)) + to_bytes(value)

    def typmod_in(self, modifiers: tuple[int | str, ...]) -> int:
        length = int(modifiers[0])
        name = "bit varying" if self.is_varying else "bit"
        if length < 1:
            raise errors.InvalidParameterValue(f"length for type {name} must be at least 1")
        if length > _LENGTH_MAX:
            raise errors.InvalidParameterValue(
                f"length for type {name} cannot exceed {_LENGTH_MAX}"
            )
        return length

    def typmod_out(self, typmod: int) -> str:
        return f"({typmod})" if typmod >= 0 else ""

    def apply_typmod(self, value: HostValue, typmod: int, *, is_explicit: bool) -> HostValue:
        if typmod <= 0 or (len(value) <= typmod if self.is_varying else len(value) == typmod):
            return value
        if is_explicit:
            return value[:typmod] if self.is_varying else value[:typmod].ljust(typmod, "0")
        if self.is_varying:
            raise errors.StringDataRightTruncation(
                f"bit string too long for type bit varying({typmod})"
            )
        raise errors.StringDataLengthMismatch(
            f"bit string length {len(value)} does not match type bit({typmod})"
        )

    def sort_key(self, value: HostValue) -> tuple[bytes, int]:
        return to_bytes(value), len(value)


def to_bytes(bits: str) -> bytes:
    """The bits in bytes, filled up with zeros."""
    wide = bits.ljust(-(-len(bits) // 8) * 8, "0")
    return int(wide or "0", 2).to_bytes(len(wide) // 8, "big")


TYPES: tuple[DataType, ...] = (
    BitType(sqltype.BIT, "bit", "bit", 1561),
    BitType(sqltype.VARBIT, "varbit", "bit varying", 1563),
)
