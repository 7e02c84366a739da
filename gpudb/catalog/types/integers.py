"""smallint, integer, bigint, and the unsigned oid, xid, cid, xid8."""

from __future__ import annotations

import re

from gpudb import errors, layout, sqltype
from gpudb.catalog.types.base import DataType, HostValue, TypeContext
from gpudb.layout import Layout

_INTEGER = re.compile(r"[ \t\n\r\f\v]*([+-]?[0-9]+)[ \t\n\r\f\v]*", re.ASCII)
_UNSIGNED = re.compile(
    r"[ \t\n\r\f\v]*([+-]?)(0[xX][0-9a-fA-F]+|[0-9]+)[ \t\n\r\f\v]*", re.ASCII
)


def syntax_error(sql_name: str, text: str) -> errors.SqlError:
    return errors.InvalidTextRepresentation(f'invalid input syntax for type {sql_name}: "{text}"')


def range_error(sql_name: str, text: str) -> errors.SqlError:
    return errors.NumericValueOutOfRange(f'value "{text}" is out of range for type {sql_name}')


def check_length(raw: bytes, length: int) -> None:
    """Raise 22P03 or 08P01 unless a fixed-size binary value has its size."""
    if len(raw) < length:
        raise errors.ProtocolViolation("insufficient data left in message")
    if len(raw) > length:
        raise errors.InvalidBinaryRepresentation("incorrect binary data format")


class IntegerType(DataType):
    """A signed integer of ``length`` bytes."""

    def __init__(self, oid: int, name: str, sql_name: str, array_oid: int, length: int) -> None:
        super().__init__(
            oid, name, sql_name, array_oid=array_oid, length=length, category="N",
            layout=Layout(layout.Kind.INT, length),
        )
        self.low = -(1 << (8 * length - 1))
        self.high = (1 << (8 * length - 1)) - 1

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        match = _INTEGER.fullmatch(text)
        if match is None:
            raise syntax_error(self.sql_name, text)
        if len(match[1]) > 4000:
            raise range_error(self.sql_name, text)
        value = int(match[1])
        if not self.low <= value <= self.high:
            raise range_error(self.sql_name, text)
        return value

    def format(self, value: HostValue, context: TypeContext) -> str:
        return str(value)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        check_length(raw, self.length)
        return int.from_bytes(raw, "big", signed=True)

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return int(value).to_bytes(self.length, "big", signed=True)


class UnsignedType(DataType):
    """oid and its kin: text as strtoul reads it (a minus sign wraps around)."""

    def __init__(
        self, oid: int, name: str, array_oid: int, length: int, *, is_number: bool = False
    ) -> None:
        super().__init__(
            oid, name, name, array_oid=array_oid, length=length,
            category="N" if is_number else "U", is_preferred=is_number, layout=layout.INT64,
        )

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        match = _UNSIGNED.fullmatch(text)
        if match is None:
            if self.category == "N":
                raise syntax_error(self.sql_name, text)
            return 0
        digits = match[2]
        value = int(digits, 16 if digits[:2] in ("0x", "0X") else 10)
        if match[1] == "-":
            value = -value
        bits = 8 * self.length
        if not -(1 << bits) < value < (1 << bits) or (
            bits == 32 and value < 0 and value < -(1 << 31)
        ):
            raise range_error(self.sql_name, text)
        return value % (1 << bits)

    def format(self, value: HostValue, context: TypeContext) -> str:
        return str(value)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        check_length(raw, self.length)
        return int.from_bytes(raw, "big")

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return int(value).to_bytes(self.length, "big")


TYPES: tuple[DataType, ...] = (
    IntegerType(sqltype.INT2, "int2", "smallint", 1005, 2),
    IntegerType(sqltype.INT4, "int4", "integer", 1007, 4),
    IntegerType(sqltype.INT8, "int8", "bigint", 1016, 8),
    UnsignedType(sqltype.OID, "oid", 1028, 4, is_number=True),
    UnsignedType(sqltype.XID, "xid", 1011, 4),
    UnsignedType(sqltype.CID, "cid", 1012, 4),
    UnsignedType(sqltype.XID8, "xid8", 271, 8),
)
