"""money, and types of PostgreSQL's inside: tid, pg_lsn, aclitem."""

from __future__ import annotations

import re

from gpudb import errors, layout, sqltype
from gpudb.catalog.types.base import DataType, HostValue, TypeContext
from gpudb.catalog.types.integers import check_length, range_error, syntax_error
from gpudb.catalog.types.strings import TextType

_MONEY = re.compile(r"\s*(\(|[+-])?\s*\$?\s*([+-])?([0-9,]*)(?:\.([0-9]*))?\s*(\)|-)?\s*", re.ASCII)


class MoneyType(DataType):
    """Cents; the locale is C's: $, commas and two decimals."""

    def __init__(self) -> None:
        super().__init__(
            sqltype.MONEY, "money", "money", array_oid=791, length=8, category="N",
            layout=layout.INT64,
        )

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        match = _MONEY.fullmatch(text)
        if match is None or not (match[3] or match[4]):
            raise syntax_error("money", text)
        whole, fraction = match[3].replace(",", "") or "0", (match[4] or "")
        cents = int(whole) * 100 + int(fraction[:2].ljust(2, "0"))
        cents += fraction[2:3] >= "5"
        is_minus = "-" in (match[1], match[2], match[5]) or match[1] == "("
        value = -cents if is_minus else cents
        if not -(2**63) <= value < 2**63:
            raise range_error("money", text)
        return value

    def format(self, value: HostValue, context: TypeContext) -> str:
        whole, cents = divmod(abs(value), 100)
        return f"{'-' if value < 0 else ''}${whole:,}.{cents:02d}"

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        check_length(raw, 8)
        return int.from_bytes(raw, "big", signed=True)

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return int(value).to_bytes(8, "big", signed=True)


class TidType(DataType):
    """(block, offset), held as block * 65536 + offset."""

    def __init__(self) -> None:
        super().__init__(
            sqltype.TID, "tid", "tid", array_oid=1010, length=6, layout=layout.INT64
        )

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        match = re.fullmatch(r"\s*\(([0-9]+),([0-9]+)\)\s*", text, re.ASCII)
        if match is None or int(match[1]) >= 2**32 or int(match[2]) >= 2**16:
            raise syntax_error("tid", text)
        return int(match[1]) << 16 | int(match[2])

    def format(self, value: HostValue, context: TypeContext) -> str:
        return f"({value >> 16},{value & 0xFFFF})"

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        check_length(raw, 6)
        return int.from_bytes(raw, "big")

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return int(value).to_bytes(6, "big")


class LsnType(DataType):
    def __init__(self) -> None:
        super().__init__(sqltype.PG_LSN, "pg_lsn", "pg_lsn", array_oid=3221, length=8)

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        match = re.fullmatch(r"([0-9a-fA-F]{1,8})/([0-9a-fA-F]{1,8})", text)
        if match is None:
            raise syntax_error("pg_lsn", text)
        return (int(match[1], 16) << 32) | int(match[2], 16)

    def format(self, value: HostValue, context: TypeContext) -> str:
        return f"{value >> 32:X}/{value & 0xFFFFFFFF:X}"

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        check_length(raw, 8)
        return int.from_bytes(raw, "big")

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return int(value).to_bytes(8, "big")


class AclItemType(TextType):
    """``grantee=privileges/grantor``."""

    def __init__(self) -> None:
        super().__init__(sqltype.ACLITEM, "aclitem", "aclitem", array_oid=1034, category="U")

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        match = re.fullmatch(r"(?:(?:group|user)\s+)?(.*?)=([a-zA-Z*]*)(?:/(.*))?", text.strip())
        if match is None:
            raise errors.InvalidTextRepresentation('missing "=" sign')
        for letter in match[2].replace("*", ""):
            if letter not in "arwdDxtXUCTcsAm":
                raise errors.InvalidTextRepresentation(
                    'invalid mode character: must be one of "arwdDxtXUCTcsA"'
                )
        return f"{match[1]}={match[2]}/{match[3] or 'postgres'}"


TYPES: tuple[DataType, ...] = (MoneyType(), TidType(), LsnType(), AclItemType())
