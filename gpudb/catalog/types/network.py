"""inet, cidr, macaddr, macaddr8: host values are PostgreSQL's output texts."""

from __future__ import annotations

import ipaddress
import re

from gpudb import errors, layout, sqltype
from gpudb.catalog.types.base import DataType, HostValue, TypeContext
from gpudb.catalog.types.integers import syntax_error

Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface
_MASK = re.compile(r"[0-9]{1,3}", re.ASCII)
_FAMILY = {4: 2, 6: 3}


def interface(text: str) -> Interface:
    """The address and mask of an inet text."""
    return ipaddress.ip_interface(text)


def _parse(text: str, name: str, *, is_cidr: bool) -> Interface:
    address, slash, mask = text.partition("/")
    if slash and not _MASK.fullmatch(mask):
        raise syntax_error(name, text)
    if is_cidr and ":" not in address and address.count(".") < 3:
        parts = [p for p in address.split(".") if p]
        if not slash and parts and all(p.isdigit() for p in parts):
            slash, mask = "/", str(_class_mask(parts))
        address = ".".join(parts + ["0"] * (4 - len(parts)))
    try:
        found = ipaddress.ip_interface(address + slash + mask)
    except ValueError:
        raise syntax_error(name, text) from None
    if is_cidr and found.ip != found.network.network_address:
        raise errors.InvalidTextRepresentation(
            f'invalid cidr value: "{text}"', detail="Value has bits set to right of mask."
        )
    return found


def _class_mask(parts: list[str]) -> int:
    first = int(parts[0])
    by_class = 8 if first < 128 else 16 if first < 192 else 24 if first < 224 else 4
    return max(by_class, 8 * len(parts))


class InetType(DataType):
    def __init__(self, oid: int, name: str, array_oid: int) -> None:
        super().__init__(
            oid, name, name, array_oid=array_oid, category="I", is_preferred=name == "inet",
            layout=layout.TEXT,
        )
        self.is_cidr = oid == sqltype.CIDR

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        return self.show(_parse(text, self.name, is_cidr=self.is_cidr))

    def show(self, value: Interface) -> str:
        """The text: inet leaves a full mask out."""
        is_full = value.network.prefixlen == value.max_prefixlen
        return str(value.ip) if is_full and not self.is_cidr else str(value)

    def format(self, value: HostValue, context: TypeContext) -> str:
        return str(value)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        if len(raw) not in (8, 20):
            raise errors.InvalidBinaryRepresentation(
                f'invalid length in external "{self.name}" value'
            )
        address = ipaddress.ip_address(raw[4:])
        return self.show(ipaddress.ip_interface(f"{address}/{raw[1]}"))

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        found = interface(value)
        packed = found.ip.packed
        head = (_FAMILY[found.version], found.network.prefixlen, self.is_cidr, len(packed))
        return bytes(head) + packed

    def sort_key(self, value: HostValue) -> tuple[int, bytes, int, bytes]:
        found = interface(value)
        network = found.network
        return found.version, network.network_address.packed, network.prefixlen, found.ip.packed


_MAC = {
    6: re.compile(
        r"(?:[0-9a-f]{1,2}([:-])(?:[0-9a-f]{1,2}\1){4}[0-9a-f]{1,2}|[0-9a-f]{6}[:-][0-9a-f]{6}"
        r"|[0-9a-f]{4}[.-][0-9a-f]{4}[.-][0-9a-f]{4}|[0-9a-f]{12})",
        re.ASCII,
    ),
    8: re.compile(
        r"(?:[0-9a-f]{2}(?:[:-][0-9a-f]{2}){7}|[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}|[0-9a-f]{16}"
        r"|[0-9a-f]{12}|[0-9a-f]{4}(?:[.:][0-9a-f]{4}){3}|[0-9a-f]{8}[:-][0-9a-f]{8})",
        re.ASCII,
    ),
}


class MacType(DataType):
    """A hardware address of six or eight bytes."""

    def __init__(self, oid: int, name: str, array_oid: int, length: int) -> None:
        super().__init__(
            oid, name, name, array_oid=array_oid, length=length, layout=layout.TEXT
        )

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        word = text.strip().lower()
        if not _MAC[self.length].fullmatch(word):
            raise syntax_error(self.name, text)
        parts = re.split("[:-]", word)
        digits = "".join(p.rjust(2, "0") if len(parts) > 3 else p for p in parts).replace(".", "")
        raw = bytes.fromhex(digits)
        if len(raw) < self.length:
            raw = raw[:3] + b"\xff\xfe" + raw[3:]
        return raw.hex(":")

    def format(self, value: HostValue, context: TypeContext) -> str:
        return str(value)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        if len(raw) != self.length:
            raise errors.InvalidBinaryRepresentation("incorrect binary data format")
        return raw.hex(":")

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return bytes.fromhex(value.replace(":", ""))


TYPES: tuple[DataType, ...] = (
    InetType(sqltype.INET, "inet", 1041),
    InetType(sqltype.CIDR, "cidr", 651),
    MacType(sqltype.MACADDR, "macaddr", 1040, 6),
    MacType(774, "macaddr8", 775, 8),
)
