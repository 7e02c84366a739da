"""regclass, regtype and the other object identifiers: OIDs that read and show names."""

from __future__ import annotations

from gpudb import errors, layout, sqltype
from gpudb.catalog.types.base import DataType, HostValue, TypeContext
from gpudb.catalog.types.integers import check_length


class ObjectIdType(DataType):
    """An OID whose text is a name; the catalog looks names up (TypeContext.lookup)."""

    def __init__(self, oid: int, name: str, array_oid: int) -> None:
        super().__init__(
            oid, name, name, array_oid=array_oid, length=4, category="N", layout=layout.INT64
        )

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        if text == "-":
            return 0
        if text.isascii() and text.isdigit():
            value = int(text)
            if value >= 1 << 32:
                raise errors.NumericValueOutOfRange(
                    f'value "{text}" is out of range for type oid'
                )
            return value
        if context.lookup is None:
            raise errors.FeatureNotSupported(f"names of type {self.name} are not known here")
        return int(context.lookup(self.name, text))

    def format(self, value: HostValue, context: TypeContext) -> str:
        if value == 0:
            return "-"
        found = None if context.lookup is None else context.lookup(self.name, int(value))
        return str(value) if found is None else str(found)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        check_length(raw, 4)
        return int.from_bytes(raw, "big")

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return int(value).to_bytes(4, "big")


TYPES: tuple[DataType, ...] = (
    ObjectIdType(sqltype.REGPROC, "regproc", 1008),
    ObjectIdType(sqltype.REGPROCEDURE, "regprocedure", 2207),
    ObjectIdType(sqltype.REGOPER, "regoper", 2208),
    ObjectIdType(sqltype.REGOPERATOR, "regoperator", 2209),
    ObjectIdType(sqltype.REGCLASS, "regclass", 2210),
    ObjectIdType(sqltype.REGTYPE, "regtype", 2211),
    ObjectIdType(sqltype.REGCONFIG, "regconfig", 3735),
    ObjectIdType(sqltype.REGDICTIONARY, "regdictionary", 3770),
    ObjectIdType(sqltype.REGNAMESPACE, "regnamespace", 4090),
    ObjectIdType(sqltype.REGROLE, "regrole", 4097),
    ObjectIdType(sqltype.REGCOLLATION, "regcollation", 4192),
)
