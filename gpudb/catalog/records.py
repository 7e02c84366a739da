"""How catalog objects lie in the SQLite file: JSON for definitions, msgpack for numbers.

Definitions are JSON so that ``sqlite3 catalog.db`` shows them; statistics and segment columns
hold bytes, NaN and infinities, which JSON cannot. Decoders ignore unknown fields and fill
missing ones with defaults, so a field may be added without a new format version.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gpudb.catalog.objects import (
    CatalogObject,
    Comment,
    Constraint,
    Database,
    DomainType,
    EnumType,
    FunctionDef,
    Model,
    ObjectClass,
    Relation,
    RelationStatistics,
    Role,
    Schema,
    SegmentColumn,
)

_JSON_DECODERS: dict[ObjectClass, msgspec.json.Decoder[Any]] = {
    ObjectClass.DATABASE: msgspec.json.Decoder(Database),
    ObjectClass.SCHEMA: msgspec.json.Decoder(Schema),
    ObjectClass.ROLE: msgspec.json.Decoder(Role),
    ObjectClass.RELATION: msgspec.json.Decoder(Relation),
    ObjectClass.CONSTRAINT: msgspec.json.Decoder(Constraint),
    ObjectClass.FUNCTION: msgspec.json.Decoder(FunctionDef),
    ObjectClass.MODEL: msgspec.json.Decoder(Model),
    ObjectClass.COMMENT: msgspec.json.Decoder(Comment),
}
_ENUM = msgspec.json.Decoder(EnumType)
_DOMAIN = msgspec.json.Decoder(DomainType)
_STATISTICS = msgspec.msgpack.Decoder(RelationStatistics)
_COLUMNS = msgspec.msgpack.Decoder(tuple[SegmentColumn, ...])
_to_json = msgspec.json.Encoder()
_to_msgpack = msgspec.msgpack.Encoder()


def encode_object(item: CatalogObject | Comment) -> str:
    return _to_json.encode(item).decode()


def decode_object(class_id: ObjectClass, body: str) -> Any:
    """The object of a row of table ``object`` (statistics excepted)."""
    if class_id == ObjectClass.TYPE:
        return (_DOMAIN if '"base_type":' in body else _ENUM).decode(body)
    return _JSON_DECODERS[class_id].decode(body)


def encode_statistics(statistics: RelationStatistics) -> bytes:
    return _to_msgpack.encode(statistics)


def decode_statistics(body: bytes) -> RelationStatistics:
    return _STATISTICS.decode(body)


def encode_columns(columns: tuple[SegmentColumn, ...]) -> bytes:
    return _to_msgpack.encode(columns)


def decode_columns(body: bytes) -> tuple[SegmentColumn, ...]:
    return _COLUMNS.decode(body)
