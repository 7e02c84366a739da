"""The segment file: buffers at 4 KiB boundaries, then a footer, all checksummed (xxh3-64).

=========  ==================================================================================
offset     content
=========  ==================================================================================
0          header, HEADER_BYTES: magic, format version
4096 ...   the buffers, each at an ALIGNMENT boundary, zero-padded to one
footer     msgpack of Footer, at an ALIGNMENT boundary, padded
=========  ==================================================================================

The catalog knows the footer's place, length and checksum, and repeats what it says: queries never
parse it (a file can be read without the catalog by searching its last block for the magic). An
*image* is the same in memory, with buffers aligned to 8, for small inserts kept in the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import xxhash

from gpudb.catalog.objects import BufferRef, SegmentColumn, ZoneMap
from gpudb.storage.encoding import Encoded
from gpudb.storage.encoding.base import Bytes

MAGIC = b"GPUDBSEG"
VERSION = 1
ALIGNMENT = 4096
HEADER_BYTES = 4096
IMAGE_ALIGNMENT = 8


class FooterColumn(msgspec.Struct, frozen=True):
    attnum: int
    type_oid: int
    encoding: str
    parameters: bytes
    buffers: tuple[tuple[int, int, int], ...]
    """(offset, length, checksum) of each."""
    nulls: int


class Footer(msgspec.Struct, frozen=True):
    version: int
    relation: int
    rows: int
    columns: tuple[FooterColumn, ...]
    magic: bytes = MAGIC


@dataclass(frozen=True, slots=True)
class Placed:
    """Buffers with their places: ``pieces`` are (offset, bytes) in file order, ``end`` past all."""

    columns: tuple[SegmentColumn, ...]
    pieces: tuple[tuple[int, Bytes], ...]
    end: int


def checksum(data: Any) -> int:
    """The xxh3-64 of a buffer, as a signed 64-bit integer (SQLite's)."""
    value = xxhash.xxh3_64_intdigest(data)
    return value - 2**64 if value >= 2**63 else value


def aligned(size: int, alignment: int = ALIGNMENT) -> int:
    return -(-size // alignment) * alignment


def place(
    columns: Sequence[tuple[int, Encoded, ZoneMap | None]], *, start: int, alignment: int
) -> Placed:
    """Lay the buffers of (attnum, encoded column, zones) out from ``start``."""
    placed: list[SegmentColumn] = []
    pieces: list[tuple[int, Bytes]] = []
    offset = start
    for attnum, encoded, zones in columns:
        references = []
        for buffer in encoded.buffers:
            size = buffer.nbytes
            references.append(BufferRef(offset, size, size, checksum(buffer)))
            pieces.append((offset, buffer))
            offset += aligned(size, alignment)
        placed.append(
            SegmentColumn(
                attnum, encoded.name, msgspec.msgpack.encode(encoded.parameters),
                tuple(references), encoded.nulls, encoded.distinct, encoded.low, encoded.high,
                zones, encoded.has_nan,
            )
        )
    return Placed(tuple(placed), tuple(pieces), offset)


def footer_bytes(
    relation: int, rows: int, columns: Sequence[SegmentColumn], type_oids: Sequence[int]
) -> bytes:
    """The encoded footer."""
    entries = tuple(
        FooterColumn(
            column.attnum, oid, column.encoding, column.parameters,
            tuple((b.offset, b.length, b.checksum) for b in column.buffers), column.nulls,
        )
        for column, oid in zip(columns, type_oids, strict=True)
    )
    return msgspec.msgpack.encode(Footer(VERSION, relation, rows, entries))


def header_bytes() -> bytes:
    return (MAGIC + VERSION.to_bytes(4, "little")).ljust(HEADER_BYTES, b"\0")
