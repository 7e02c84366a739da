"""Whole segments: encoding and writing them, loading columns of them.

A segment is a file ``seg/<relation>/<epoch>-<uuid>.seg``, or an image (the same buffers without
padding) inside the catalog when it is small.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from gpudb import errors
from gpudb.catalog.objects import ColumnDef, SegmentColumn, SegmentRef, ZoneMap
from gpudb.column import Column
from gpudb.layout import Kind
from gpudb.result import HostColumn
from gpudb.sqltype import SqlType
from gpudb.storage import encoding, format
from gpudb.storage.encoding import Encoded
from gpudb.storage.encoding.base import Bytes, Parameters, Stored, logical_integers
from gpudb.storage.file import sync_directory, write_durably
from gpudb.storage.io_scheduler import IoScheduler

ZONE_ROWS = 65536
IMAGE_ROWS_MAX = 1000
IMAGE_BYTES_MAX = 65536
_DECODER = msgspec.msgpack.Decoder(Parameters)

Columns = Sequence[tuple[ColumnDef, HostColumn]]


def zone_map(column: HostColumn) -> ZoneMap | None:
    """Bounds and NULL counts per ZONE_ROWS rows of a number column; None for one zone or others.

    NaN counts as no bound: the segment's ``has_nan`` says that there may be some.
    """
    rows = column.rows
    if rows <= ZONE_ROWS or column.layout.kind not in (Kind.INT, Kind.DECIMAL, Kind.FLOAT):
        return None
    values: Any
    low_fill: Any
    high_fill: Any
    if column.layout.kind is Kind.FLOAT:
        values = column.data[0].astype(np.float64)
        low_fill, high_fill = np.inf, -np.inf
        invalid = np.isnan(values)
    else:
        values = logical_integers(column)
        low_fill, high_fill = np.iinfo(np.int64).max, np.iinfo(np.int64).min
        invalid = np.zeros(rows, np.bool_)
    is_null = np.zeros(rows, np.bool_) if column.valid is None else ~column.valid
    starts = np.arange(0, rows, ZONE_ROWS)
    nulls = np.add.reduceat(is_null, starts, dtype=np.int32)
    invalid |= is_null
    if invalid.any():
        low = np.minimum.reduceat(np.where(invalid, low_fill, values), starts)
        high = np.maximum.reduceat(np.where(invalid, high_fill, values), starts)
    else:
        low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    return ZoneMap(ZONE_ROWS, values.dtype.str, low.tobytes(), high.tobytes(), nulls.tobytes())


def encode_columns(columns: Columns) -> list[tuple[int, Encoded, ZoneMap | None]]:
    """Every column encoded, narrow fixed-width ones first in the file, text last."""
    encoded = [(c.attnum, encoding.encode(data), zone_map(data)) for c, data in columns]
    return sorted(encoded, key=lambda item: sum(b.nbytes for b in item[1].buffers) > 8 << 20)


class SegmentWriter:
    """Writes segments of one transaction; ``finish`` makes their names durable.

    ``allocate`` gives segment ids. Files written and not committed are deleted by ``discard``.
    """

    def __init__(self, root: Path, epoch: int, allocate: Callable[[], int]) -> None:
        self._root = root
        self._epoch = epoch
        self._allocate = allocate
        self._directories: set[Path] = set()
        self.paths: list[Path] = []

    def write(self, relation: int, rows: int, columns: Columns) -> SegmentRef:
        """A segment of at least one row: an image when small, else a file (fsynced, renamed)."""
        encoded = encode_columns(columns)
        if rows <= IMAGE_ROWS_MAX:
            image = self._image(relation, rows, encoded)
            if image is not None:
                return image
        return self._file(relation, rows, columns, encoded)

    def _image(
        self, relation: int, rows: int, encoded: list[tuple[int, Encoded, ZoneMap | None]]
    ) -> SegmentRef | None:
        placed = format.place(encoded, start=0, alignment=format.IMAGE_ALIGNMENT)
        if placed.end > IMAGE_BYTES_MAX:
            return None
        image = bytearray(placed.end)
        for offset, piece in placed.pieces:
            image[offset : offset + piece.nbytes] = piece.tobytes()
        return SegmentRef(
            self._allocate(), relation, rows, placed.end, placed.columns, image=bytes(image)
        )

    def _file(
        self,
        relation: int,
        rows: int,
        columns: Columns,
        encoded: list[tuple[int, Encoded, ZoneMap | None]],
    ) -> SegmentRef:
        placed = format.place(encoded, start=format.HEADER_BYTES, alignment=format.ALIGNMENT)
        type_of = {c.attnum: c.type_oid for c, _ in columns}
        oids = [type_of[column.attnum] for column in placed.columns]
        footer = format.footer_bytes(relation, rows, placed.columns, oids)
        size = placed.end + format.aligned(len(footer))
        name = f"{self._epoch}-{uuid.uuid4().hex}.seg"
        directory = self._root / "seg" / str(relation)
        if not directory.exists():
            directory.mkdir(parents=True, exist_ok=True)
            self._directories.add(directory.parent)
        (self._root / "tmp").mkdir(exist_ok=True)
        pieces: list[tuple[int, Bytes | bytes]] = [
            (0, format.header_bytes()), *placed.pieces, (placed.end, footer),
        ]
        target = directory / name
        write_durably(self._root / "tmp" / name, target, pieces, size)
        self._directories.add(directory)
        self.paths.append(target)
        return SegmentRef(
            self._allocate(), relation, rows, size, placed.columns,
            path=str(target.relative_to(self._root)), footer_offset=placed.end,
            footer_length=len(footer), footer_checksum=format.checksum(footer),
        )

    def finish(self) -> None:
        """Make the names of the written files durable; before the catalog commit."""
        for directory in sorted(self._directories, reverse=True):
            sync_directory(directory)
        self._directories.clear()

    def discard(self) -> None:
        """The transaction rolls back: delete the files."""
        for path in self.paths:
            path.unlink(missing_ok=True)
        self.paths.clear()


def load_columns(
    root: Path,
    io: IoScheduler,
    segment: SegmentRef,
    columns: Sequence[tuple[SegmentColumn, SqlType]],
) -> list[Column]:
    """Columns of a segment, read and verified; XX001 naming the file when a buffer is damaged."""
    wanted = [buffer for column, _ in columns for buffer in column.buffers]
    if segment.image is not None:
        image = np.frombuffer(bytearray(segment.image), np.uint8)
        loaded = [image[b.offset : b.offset + b.length] for b in wanted]
    elif wanted:
        assert segment.path is not None
        loaded = io.read(root / segment.path, wanted)
    else:
        loaded = []
    for reference, data in zip(wanted, loaded, strict=True):
        if format.checksum(data) != reference.checksum:
            raise errors.DataCorrupted(
                f'checksum mismatch in segment file "{segment.path or segment.id}"',
                detail=f"The buffer at offset {reference.offset} is damaged.",
            )
    return _decode_all(segment, columns, loaded)


def _decode_all(
    segment: SegmentRef, columns: Sequence[tuple[SegmentColumn, SqlType]], loaded: list[Bytes]
) -> list[Column]:
    decoded: list[Column] = []
    start = 0
    for column, type in columns:
        buffers = tuple(loaded[start : start + len(column.buffers)])
        start += len(column.buffers)
        parameters = _DECODER.decode(column.parameters)
        stored = Stored(type, segment.rows, parameters, buffers, column.low, column.high)
        decoded.append(encoding.decode(column.encoding, stored))
    return decoded
