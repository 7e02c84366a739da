"""Tables as the executor sees them: TableReader for scans, TableWriter for new rows.

A reader is opened on a snapshot: the segments visible there in insertion order, minus delete
vectors, minus zones that the filters exclude. A morsel is a piece of one segment; ``read`` gives
its columns as stored (narrow, borrowed from the cache) and the rows that are not deleted. While a
segment is being computed the next ones are loaded in the background.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gpudb import sqltype
from gpudb.catalog import types
from gpudb.catalog.objects import ColumnDef, DeleteVector, Relation, SegmentRef, TableData
from gpudb.catalog.store import Store
from gpudb.catalog.types.base import TypeContext
from gpudb.column import (
    Batch,
    Column,
    compact,
    from_values,
    integer_column,
    null_column,
    slice_rows,
    to_host,
)
from gpudb.errors import SqlError
from gpudb.kernels.concat import concat
from gpudb.sqltype import SqlType
from gpudb.storage.cache import ColumnCache
from gpudb.storage.io_scheduler import IoScheduler
from gpudb.storage.segment import ZONE_ROWS, SegmentWriter, load_columns
from gpudb.storage.zones import ZoneFilter, surviving_zones

PREFETCH_SEGMENTS = 2
"""Segments that are loaded ahead of the one being read."""
LOADER_THREADS = 2
SEGMENT_ROWS_DEFAULT = 1 << 20
SEGMENT_ROWS_MAX = 1 << 22

MASKS_MAX = 256
"""Decoded delete vectors that are kept."""

CTID = -1
XMIN = -2
CMIN = -3
XMAX = -4
CMAX = -5
TABLEOID = -6
_ROW_ID_BITS = 22
"""Enough for a position in a segment; the 26 that a tid has left number the segments."""


@dataclass(frozen=True, slots=True)
class Morsel:
    """Rows [first, first + rows) of the reader's segment number ``segment``."""

    segment: int
    first: int
    rows: int


def row_id(segment_id: int, position: int) -> int:
    """What ctid holds: segment id and position in it."""
    return (segment_id << _ROW_ID_BITS) | position


def split_row_ids(values: npt.NDArray[np.int64]) -> dict[int, npt.NDArray[np.int32]]:
    """Sorted distinct positions by segment id."""
    segments, positions = values >> _ROW_ID_BITS, values & ((1 << _ROW_ID_BITS) - 1)
    return {
        int(segment): np.unique(positions[segments == segment]).astype(np.int32)
        for segment in np.unique(segments)
    }


def deleted_mask(vector: DeleteVector, rows: int, root: Path) -> npt.NDArray[np.bool_]:
    """The deleted rows of a segment as a mask."""
    data = vector.data if vector.path is None else (root / vector.path).read_bytes()
    if vector.encoding == "bitmap":
        bits = np.frombuffer(data, np.uint8)
        return np.unpackbits(bits, count=rows, bitorder="little").view(np.bool_)
    mask = np.zeros(rows, np.bool_)
    mask[np.frombuffer(data, np.int32)] = True
    return mask


class TableReader:
    """The rows of one table at one snapshot; safe to use from several workers.

    ``attnums`` are the columns asked for, by position; negative ones are system columns.
    """

    def __init__(
        self,
        storage: Storage,
        relation: Relation,
        data: TableData,
        *,
        attnums: tuple[int, ...],
        zone_filters: Sequence[ZoneFilter] = (),
    ) -> None:
        self._storage = storage
        self._relation = relation
        self._data = data
        self._filters = tuple(zone_filters)
        self._columns: list[ColumnDef | int] = []
        for attnum in attnums:
            column = relation.column_by_attnum(attnum) if attnum > 0 else None
            self._columns.append(attnum if column is None else column)
        self.segments = tuple(s for s in data.segments if s.rows)
        self.rows = data.rows()
        self.morsels_pruned = 0
        self._prefetched = -1
        self._lock = threading.Lock()

    # Facts: proven for every visible row.

    def bounds(self, index: int) -> tuple[int | None, int | None]:
        """Bounds of the logical integers of a column over all visible segments."""
        column = self._columns[index]
        if isinstance(column, int):
            return None, None
        lows, highs = [], []
        for segment in self.segments:
            stored = segment.column(column.attnum)
            if stored is None:
                return None, None
            if stored.nulls == segment.rows:
                continue
            if not isinstance(stored.low, int) or not isinstance(stored.high, int):
                return None, None
            lows.append(stored.low)
            highs.append(stored.high)
        return (min(lows), max(highs)) if lows else (None, None)

    def has_nulls(self, index: int) -> bool:
        column = self._columns[index]
        if isinstance(column, int):
            return False
        stored = [segment.column(column.attnum) for segment in self.segments]
        return any(s is None or s.nulls for s in stored)

    # Reading

    def morsels(self, batch_rows: int) -> list[Morsel]:
        """The pieces to read, at most ``batch_rows`` rows each, in insertion order."""
        found: list[Morsel] = []
        for number, segment in enumerate(self.segments):
            keep = surviving_zones(segment, self._filters, ZONE_ROWS)
            for start in range(0, segment.rows, batch_rows):
                stop = min(start + batch_rows, segment.rows)
                if keep[start // ZONE_ROWS : (stop - 1) // ZONE_ROWS + 1].any():
                    found.append(Morsel(number, start, stop - start))
                else:
                    self.morsels_pruned += 1
        return found

    def read(
        self, morsel: Morsel, columns: tuple[int, ...]
    ) -> tuple[tuple[Column, ...], Tensor | None]:
        """Columns (by index into ``attnums``) of a morsel, and the rows that are not deleted.

        The selection is int64 row numbers within the morsel, None = all. Blocks on the disk when
        the segment is not loaded.
        """
        segment = self.segments[morsel.segment]
        self._prefetch(morsel.segment, columns)
        loaded = self._load(segment, columns)
        stop = morsel.first + morsel.rows
        pieces = tuple(self._piece(segment, c, morsel.first, stop) for c in loaded)
        vector = self._data.deletes.get(segment.id)
        if vector is None:
            return pieces, None
        mask = self._storage.deleted(segment, vector)[morsel.first : stop]
        if not mask.any():
            return pieces, None
        return pieces, torch.from_numpy(np.flatnonzero(~mask))

    def _load(self, segment: SegmentRef, columns: tuple[int, ...]) -> list[Column | int]:
        wanted = [self._columns[index] for index in columns]
        stored = [
            c for c in wanted if isinstance(c, ColumnDef) and segment.column(c.attnum) is not None
        ]
        found = dict(
            zip((c.attnum for c in stored), self._storage.load(segment, stored), strict=True)
        )
        result: list[Column | int] = []
        for column in wanted:
            if isinstance(column, int):
                result.append(column)
            elif column.attnum in found:
                result.append(found[column.attnum])
            else:
                result.append(missing_column(column))
        return result

    def _piece(self, segment: SegmentRef, column: Column | int, first: int, stop: int) -> Column:
        if isinstance(column, Column):
            if column.rows == stop - first:
                return column
            return slice_rows(column, first, stop)
        if column == CTID:
            start = row_id(segment.id, first)
            return integer_column(
                SqlType(sqltype.TID), torch.arange(start, start + stop - first),
                lo=start, hi=start + stop - first,
            )
        value = self._relation.oid if column == TABLEOID else 1
        oid = {TABLEOID: sqltype.OID, XMIN: sqltype.XID, XMAX: sqltype.XID}.get(column, sqltype.CID)
        return integer_column(SqlType(oid), torch.tensor([value]), lo=value, hi=value)

    def _prefetch(self, number: int, columns: tuple[int, ...]) -> None:
        with self._lock:
            first = max(self._prefetched, number) + 1
            last = min(number + PREFETCH_SEGMENTS, len(self.segments) - 1)
            self._prefetched = max(self._prefetched, last)
        for ahead in range(first, last + 1):
            self._storage.loader.submit(self._load_quietly, self.segments[ahead], columns)

    def _load_quietly(self, segment: SegmentRef, columns: tuple[int, ...]) -> None:
        """Load ahead; an error is left to the read that needs the segment."""
        with contextlib.suppress(SqlError):
            self._load(segment, columns)


def missing_column(column: ColumnDef) -> Column:
    """What rows older than the column show: a constant."""
    type = SqlType(column.type_oid, column.typmod)
    data_type = types.get(column.type_oid)
    if column.missing is None:
        return null_column(type, data_type.layout)
    value = data_type.parse(column.missing, column.typmod, TypeContext())
    return from_values(type, data_type.layout, [value])


class TableWriter:
    """Collects rows for one table and writes them as segments of up to segment_rows rows.

    ``finish`` gives the segments for AddSegments; ``discard`` deletes what was written.
    """

    def __init__(self, relation: Relation, segments: SegmentWriter) -> None:
        self._relation = relation
        self._writer = segments
        self._columns = relation.live_columns()
        self._batches: list[Batch] = []
        self._pending = 0
        self._segments: list[SegmentRef] = []
        option = relation.option("segment_rows")
        self._segment_rows = int(option) if option else SEGMENT_ROWS_DEFAULT
        self.rows = 0

    def append(self, batch: Batch) -> None:
        """Rows of all live columns in attnum order; the batch is copied if it is borrowed."""
        plain = compact(batch)
        start = 0
        while start < plain.rows:
            count = min(plain.rows - start, self._segment_rows - self._pending)
            piece = tuple(slice_rows(c, start, start + count) for c in plain.columns)
            self._batches.append(Batch.of(piece, count))
            self._pending += count
            start += count
            if self._pending == self._segment_rows:
                self._flush()
        self.rows += plain.rows

    def finish(self) -> tuple[SegmentRef, ...]:
        """Write what is left; all segments of this writer, their names durable."""
        if self._pending:
            self._flush()
        self._writer.finish()
        return tuple(self._segments)

    def discard(self) -> None:
        self._batches.clear()
        self._writer.discard()

    def _flush(self) -> None:
        columns = []
        for index, column in enumerate(self._columns):
            whole = concat([(batch.columns[index], batch.rows) for batch in self._batches])
            host = to_host(whole, self._pending)
            columns.append((column, replace(host, type_oid=column.type_oid, typmod=column.typmod)))
        self._segments.append(self._writer.write(self._relation.oid, self._pending, columns))
        self._batches.clear()
        self._pending = 0


class Storage:
    """The segments of one data directory: cache, reader threads, writers.

    ``allocate_segment`` gives ids that are never used again; ``epoch`` names this server start.
    """

    def __init__(
        self, root: Path, *, epoch: int, allocate_segment: Any, cache_bytes: int
    ) -> None:
        self.root = root
        self.epoch = epoch
        self.cache = ColumnCache(cache_bytes)
        self.io = IoScheduler()
        self.loader = ThreadPoolExecutor(LOADER_THREADS, thread_name_prefix="gpudb-load")
        self._allocate = allocate_segment
        self._masks: dict[tuple[int, int], npt.NDArray[np.bool_]] = {}

    def open_table(
        self,
        snapshot: Any,
        table_oid: int,
        attnums: tuple[int, ...],
        zone_filters: Sequence[ZoneFilter] = (),
    ) -> TableReader:
        """A reader of the table as ``snapshot`` (a CatalogSnapshot) shows it."""
        relation = snapshot.relation_by_oid(table_oid)
        assert relation is not None, table_oid
        data = snapshot.data(table_oid)
        return TableReader(self, relation, data, attnums=attnums, zone_filters=zone_filters)

    def writer(self, relation: Relation) -> TableWriter:
        return TableWriter(relation, SegmentWriter(self.root, self.epoch, self._allocate))

    def load(self, segment: SegmentRef, columns: Sequence[ColumnDef]) -> list[Column]:
        """Whole columns of a segment, from the cache or the disk."""
        by_key = {(segment.id, c.attnum): c for c in columns}

        def read(keys: list[tuple[int, int]]) -> list[Column]:
            wanted = []
            for key in keys:
                column = by_key[key]
                stored = segment.column(column.attnum)
                assert stored is not None
                wanted.append((stored, SqlType(column.type_oid, column.typmod)))
            return load_columns(self.root, self.io, segment, wanted)

        return self.cache.get_many([(segment.id, c.attnum) for c in columns], read)

    def deleted(self, segment: SegmentRef, vector: DeleteVector) -> npt.NDArray[np.bool_]:
        """The mask of a delete vector, cached by segment and number of deleted rows."""
        key = (segment.id, vector.rows)
        mask = self._masks.get(key)
        if mask is None:
            mask = deleted_mask(vector, segment.rows, self.root)
            self._masks[key] = mask
            while len(self._masks) > MASKS_MAX:
                self._masks.pop(next(iter(self._masks)))
        return mask

    def sweep(self, store: Store) -> int:
        """At start, before writers: delete temporary files and unlisted ones of older epochs.

        The number of files deleted. Only names that this engine gives are touched.
        """
        referenced = store.referenced_files()
        count = 0
        for path in (self.root / "tmp").glob("*"):
            path.unlink(missing_ok=True)
            count += 1
        for path in (self.root / "seg").glob("*/*"):
            if store.is_orphan(path.name, referenced):
                path.unlink(missing_ok=True)
                count += 1
        return count

    def close(self) -> None:
        self.loader.shutdown(wait=True, cancel_futures=True)
        self.io.close()
