"""DataRow messages of whole batches: columns are encoded at once and woven into rows.

A batch goes out in pieces of about PIECE_BYTES. ``weave`` sets columns of byte matrices (and
lists of long values) side by side and drops their unused bytes; COPY shares it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpudb.kernels.encode import Array, Slots, big_endian, whole
from gpudb.layout import Kind
from gpudb.result import HostBatch, HostColumn, slice_batch
from gpudb.wire.backend import Codec
from gpudb.wire.cells import (
    Cells,
    encode_column,
    encode_values,
    string_positions,
    without_nulls,
)
from gpudb.wire.messages import FieldDescription

PIECE_BYTES = 1 << 20
"""Encoded rows that are made at once; smaller pieces cost more numpy calls than they save."""
PIECE_ROWS_MAX = 1 << 15
SMALL_ROWS = 24
"""Up to this many rows, value-by-value encoding is faster than whole columns."""
_FIXED_VALUE_BYTES = 12
_HEADER = struct.Struct("!cIH")
_INT32 = struct.Struct("!i")
_NULL_LENGTH = b"\xff\xff\xff\xff"

Strand = Slots | list[bytes | None]
"""One thing a row has: a slot of a byte matrix, or a value of a list (None = nothing)."""


class RowEncoder:
    """Encodes the batches of one result; ``kind`` is D for DataRow, d for rows of binary COPY."""

    def __init__(
        self, fields: Sequence[FieldDescription], codec: Codec, *, kind: bytes = b"D"
    ) -> None:
        self._fields = fields
        self._codec = codec
        self._kind = kind

    def encode(self, batch: HostBatch) -> Iterator[bytes]:
        """The batch's rows as messages, in pieces of whole rows."""
        for piece in pieces(batch):
            yield self._encode_piece(piece)

    def _encode_piece(self, batch: HostBatch) -> bytes:
        if batch.rows <= SMALL_ROWS:
            return self._encode_small(batch)
        columns = [
            encode_column(without_nulls(column), field.type_oid, field.format, self._codec)
            for column, field in zip(batch.columns, self._fields, strict=True)
        ]
        return self._frame(columns, batch.rows)

    def _encode_small(self, batch: HostBatch) -> bytes:
        columns = [
            encode_values(column, field.type_oid, field.format, self._codec)
            for column, field in zip(batch.columns, self._fields, strict=True)
        ]
        out: list[bytes] = []
        count = len(columns)
        for row in zip(*columns, strict=True) if columns else ((),) * batch.rows:
            parts = [
                _NULL_LENGTH if value is None else _INT32.pack(len(value)) + value
                for value in row
            ]
            body = b"".join(parts)
            out.append(_HEADER.pack(self._kind, 6 + len(body), count))
            out.append(body)
        return b"".join(out)

    def _frame(self, columns: list[Cells], rows: int) -> bytes:
        strands: list[Strand] = []
        total: Array | int = 6
        for cells in columns:
            length = cell_lengths(cells, rows)
            total = total + 4 + length
            strands.append(_length_slots(length, cells.valid, rows))
            strands.extend(_null_emptied(cells))
        head = np.empty((rows, 7), np.uint8)
        head[:, 0] = self._kind[0]
        head[:, 1:5] = big_endian(_filled(total, rows), ">i4")
        head[:, 5:] = np.frombuffer(struct.pack("!H", len(columns)), np.uint8)
        return weave([whole(head), *strands], rows)


def pieces(batch: HostBatch) -> Iterator[HostBatch]:
    """The batch cut so that encoded pieces have about PIECE_BYTES."""
    rows = batch.rows
    size = max(1, _row_bytes(batch))
    step = max(1, min(PIECE_ROWS_MAX, PIECE_BYTES // size))
    if rows <= step:
        if rows:
            yield batch
        return
    for start in range(0, rows, step):
        yield slice_batch(batch, start, min(rows, start + step))


def _row_bytes(batch: HostBatch) -> int:
    """An estimate of the encoded bytes of a row."""
    size = 7
    for column in batch.columns:
        size += 4 + _value_bytes(column)
    return size


def _value_bytes(column: HostColumn) -> int:
    if column.layout.kind not in (Kind.TEXT, Kind.DICTIONARY) or not column.rows:
        return _FIXED_VALUE_BYTES
    length = string_positions(column)[1]
    return int(length.sum(dtype=np.int64)) // column.rows


# --- weaving ------------------------------------------------------------------------------------


def cell_lengths(cells: Cells, rows: int) -> Array | int:
    """Bytes of each row's cell, 0 for NULL; an int when all are equal."""
    if cells.values is not None:
        return np.fromiter((0 if v is None else len(v) for v in cells.values), np.int32, rows)
    length: Array | int = 0
    for part in cells.parts:
        length = length + part.lengths()
    if cells.valid is None:
        return length
    return np.where(cells.valid, _filled(length, rows), 0)


def _length_slots(
    length: Array | int, valid: npt.NDArray[np.bool_] | None, rows: int
) -> Slots:
    if isinstance(length, int) and valid is None:
        constant = np.frombuffer(_INT32.pack(length), np.uint8)
        return whole(np.broadcast_to(constant, (rows, 4)))
    shown = _filled(length, rows)
    if valid is not None:
        shown = np.where(valid, shown, -1)
    return whole(big_endian(shown, ">i4"))


def _null_emptied(cells: Cells) -> list[Strand]:
    """The strands of a column's values, with nothing where NULL."""
    if cells.values is not None:
        return [cells.values]
    if cells.valid is None:
        return list(cells.parts)
    return [emptied(part, ~cells.valid) for part in cells.parts]


def emptied(slots: Slots, rows: npt.NDArray[np.bool_]) -> Slots:
    """Slots without any bytes in some rows."""
    first = _filled(slots.first, len(rows))
    last = np.where(rows, first, _filled(slots.last, len(rows)))
    return Slots(slots.matrix, slots.first, last)


def _filled(value: Array | int, rows: int) -> Array:
    return value if isinstance(value, np.ndarray) else np.full(rows, value, np.int32)


def weave(strands: Sequence[Strand], rows: int) -> bytes:
    """For each row its bytes of all strands in order, all rows behind one another."""
    lanes: list[Any] = []
    run: list[Slots] = []
    for strand in strands:
        if isinstance(strand, Slots):
            run.append(strand)
            continue
        lanes.append(_cut(run, rows))
        lanes.append([b"" if value is None else value for value in strand])
        run = []
    if not lanes:
        return _joined(run, rows)[0].tobytes()
    if run:
        lanes.append(_cut(run, rows))
    parts: list[Any] = [None] * (rows * len(lanes))
    for position, lane in enumerate(lanes):
        parts[position :: len(lanes)] = lane
    return b"".join(parts)


def _cut(run: list[Slots], rows: int) -> list[memoryview]:
    """The joined strands of each row as views."""
    flat, length = _joined(run, rows)
    ends = np.cumsum(_filled(length, rows), dtype=np.int64)
    view = memoryview(flat.tobytes())
    starts = (ends - _filled(length, rows)).tolist()
    return [view[a:b] for a, b in zip(starts, ends.tolist(), strict=True)]


def _joined(run: list[Slots], rows: int) -> tuple[npt.NDArray[np.uint8], Array | int]:
    """The bytes of all rows, and how many each row has."""
    width = sum(slots.matrix.shape[1] for slots in run)
    matrix = np.empty((rows, width), np.uint8)
    mask: npt.NDArray[np.bool_] | None = None
    length: Array | int = 0
    position = 0
    for slots in run:
        end = position + slots.matrix.shape[1]
        matrix[:, position:end] = slots.matrix
        length = length + slots.lengths()
        if not _is_whole(slots):
            if mask is None:
                mask = np.ones((rows, width), np.bool_)
            _mark(mask[:, position:end], slots)
        position = end
    return (matrix.reshape(-1) if mask is None else matrix[mask]), length


def _is_whole(slots: Slots) -> bool:
    first, last = slots.first, slots.last
    is_constant = isinstance(first, int) and isinstance(last, int)
    return is_constant and first == 0 and last == slots.matrix.shape[1]


def _mark(mask: npt.NDArray[np.bool_], slots: Slots) -> None:
    """Write which bytes of the matrix belong to the values."""
    columns = np.arange(slots.matrix.shape[1], dtype=np.int16)
    last, first = slots.last, slots.first
    if isinstance(last, int):
        if last < len(columns):
            mask[:, last:] = False
    else:
        np.less(columns, last.astype(np.int16)[:, None], out=mask)
    if isinstance(first, int):
        if first:
            mask[:, :first] = False
    else:
        np.logical_and(mask, columns >= first.astype(np.int16)[:, None], out=mask)
