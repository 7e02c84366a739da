"""Columns and batches in the engine: device tensors with validity, SQL type and layout.

A column has R rows, or one row that stands for every row (a *constant*): torch broadcasts it in
arithmetic, and ``expand`` writes it out where rows are needed. The buffers are those of
layout.py; ``valid`` bool (R or 1), None = no NULL. Elements of invalid rows are arbitrary but
harmless (dictionary codes in range, text positions in bounds).

``lo`` and ``hi`` are facts: proven bounds of the logical integers (scaled integers of a decimal)
of the valid rows, from segment metadata and interval arithmetic. None = not known.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gpudb import layout
from gpudb.layout import Dictionary, Kind, Layout
from gpudb.result import HostBatch, HostColumn
from gpudb.sqltype import SqlType

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
_ELEMENTS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    type: SqlType
    layout: Layout
    data: tuple[Tensor, ...]
    valid: Tensor | None = None
    base: int = 0
    step: int = 1
    scale: int = 0
    lo: int | None = None
    hi: int | None = None
    dictionary: Dictionary | None = None
    objects: npt.NDArray[np.object_] | None = None

    @property
    def rows(self) -> int:
        return len(self.objects) if self.objects is not None else self.data[0].shape[0]

    @property
    def device(self) -> torch.device:
        return self.data[0].device if self.data else torch.device("cpu")


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Columns of ``capacity`` rows, of which ``selection`` (row ids, in order) or the first
    ``rows`` count; ``rows`` is the number of rows that count, an int, or a device scalar whose
    upper bound is ``capacity``. ``sequence`` = (segment ordinal, first row) orders batches as
    the rows were inserted. A batch of a scan is borrowed: it dies when push() returns unless
    ``keep`` copied it.
    """

    columns: tuple[Column, ...]
    rows: int
    capacity: int
    selection: Tensor | None = None
    sequence: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, columns: Sequence[Column], rows: int, sequence: tuple[int, int] = (0, 0)) -> Batch:
        return cls(tuple(columns), rows, rows, None, sequence)


# --- reading logical values ------------------------------------------------------------------


def integers(column: Column) -> Tensor:
    """The logical values as int64 (R): integers, dates, times, OIDs, scaled decimals."""
    values = column.data[0]
    if column.step == 1 and column.base == 0:
        return values if values.dtype == torch.int64 else values.to(torch.int64)
    wide = values.to(torch.int64)
    if column.step != 1:
        wide = wide * column.step
    return wide + column.base if column.base else wide


def raw_integers(column: Column) -> Tensor:
    """Like ``integers`` but as narrow as stored when neither base nor step applies."""
    return column.data[0] if column.step == 1 and column.base == 0 else integers(column)


def floats(column: Column) -> Tensor:
    """The values of a FLOAT column as float64 (R)."""
    return column.data[0].to(torch.float64)


def booleans(column: Column) -> Tensor:
    """The values of a BOOL column, bool (R); garbage where invalid."""
    return column.data[0]


def validity(column: Column, rows: int) -> Tensor:
    """The validity written out, bool (rows)."""
    if column.valid is None:
        return torch.ones(rows, dtype=torch.bool, device=column.device)
    return column.valid.expand(rows) if column.valid.shape[0] != rows else column.valid


def all_valid(*columns: Column) -> Tensor | None:
    """The conjunction of the validities (broadcast), None when no column has NULLs."""
    found: Tensor | None = None
    for column in columns:
        if column.valid is not None:
            found = column.valid if found is None else found & column.valid
    return found


# --- making columns ---------------------------------------------------------------------------


def integer_column(
    type: SqlType,
    values: Tensor,
    valid: Tensor | None = None,
    *,
    lo: int | None = None,
    hi: int | None = None,
) -> Column:
    """A column of integers (or dates, times, OIDs) over a signed or uint8 tensor."""
    return Column(type, Layout(Kind.INT, values.element_size()), (values,), valid, lo=lo, hi=hi)


def decimal_column(
    type: SqlType,
    values: Tensor,
    scale: int,
    valid: Tensor | None = None,
    *,
    lo: int | None = None,
    hi: int | None = None,
) -> Column:
    """A numeric column of scaled integers, all rows with the same display scale."""
    kind = Layout(Kind.DECIMAL, values.element_size())
    return Column(type, kind, (values,), valid, scale=scale, lo=lo, hi=hi)


def boolean_column(type: SqlType, values: Tensor, valid: Tensor | None = None) -> Column:
    return Column(type, layout.BOOL, (values,), valid)


def float_column(type: SqlType, values: Tensor, valid: Tensor | None = None) -> Column:
    return Column(type, Layout(Kind.FLOAT, values.element_size()), (values,), valid)


def host_column(
    type: SqlType, objects: Sequence[Any] | npt.NDArray[np.object_], valid: Tensor | None = None
) -> Column:
    """A HOST column; where ``valid`` is None the NULLs are the Nones among ``objects``."""
    array = np.empty(len(objects), object)
    array[:] = objects
    if valid is None:
        mask = np.fromiter((item is not None for item in objects), bool, len(objects))
        valid = None if mask.all() else torch.from_numpy(mask)
    return Column(type, layout.HOST, (), valid, objects=array)


def bytes_column(type: SqlType, values: Sequence[bytes | None]) -> Column:
    """A TEXT column of byte strings; None = NULL."""
    lengths = np.fromiter((len(v) if v is not None else 0 for v in values), np.int32, len(values))
    starts = np.zeros(len(values), np.int64)
    if len(values):
        np.cumsum(lengths[:-1], out=starts[1:])
    joined = bytearray(b"".join(v for v in values if v is not None))
    buffer = torch.frombuffer(joined, dtype=torch.uint8) if joined else torch.zeros(
        0, dtype=torch.uint8
    )
    mask = np.fromiter((v is not None for v in values), bool, len(values))
    valid = None if mask.all() else torch.from_numpy(mask)
    data = (torch.from_numpy(starts), torch.from_numpy(lengths), buffer)
    return Column(type, layout.TEXT, data, valid)


def text_column(type: SqlType, values: Sequence[str | None]) -> Column:
    """A TEXT column of strings, UTF-8; None = NULL."""
    return bytes_column(type, [None if v is None else v.encode() for v in values])


def dictionary_column(
    type: SqlType, codes: Tensor, dictionary: Dictionary, valid: Tensor | None = None
) -> Column:
    kind = Layout(Kind.DICTIONARY, codes.element_size())
    return Column(type, kind, (codes,), valid, dictionary=dictionary)


def null_column(type: SqlType, kind: Layout, rows: int = 1) -> Column:
    """``rows`` NULLs (a constant by default)."""
    valid = torch.zeros(rows, dtype=torch.bool)
    if kind.kind is Kind.HOST:
        return Column(type, layout.HOST, (), valid, objects=np.full(rows, None, object))
    data = tuple(torch.zeros(rows, dtype=dtype) for dtype in buffer_types(kind))
    if kind.kind is Kind.TEXT:
        data = (data[0], data[1], torch.zeros(0, dtype=torch.uint8))
    dictionary = (
        Dictionary.of([b""], is_sorted=True) if kind.kind is Kind.DICTIONARY else None
    )
    return Column(type, kind, data, valid, dictionary=dictionary)


def buffer_types(kind: Layout) -> tuple[torch.dtype, ...]:
    """The element types of the row-aligned buffers (for TEXT also the byte buffer's)."""
    tail = (torch.int16,) if kind.has_row_scale else ()
    match kind.kind:
        case Kind.BOOL:
            return (torch.bool,)
        case Kind.INT | Kind.DICTIONARY:
            return (_ELEMENTS[kind.width],)
        case Kind.DECIMAL:
            return (_ELEMENTS[kind.width], *tail)
        case Kind.DECIMAL128:
            return (torch.int64, torch.int64, *tail)
        case Kind.FLOAT:
            return (torch.float32 if kind.width == 4 else torch.float64,)
        case Kind.TEXT:
            return (torch.int64, torch.int32, torch.uint8)
        case Kind.INTERVAL:
            return (torch.int32, torch.int32, torch.int64)
        case Kind.UUID:
            return (torch.int64, torch.int64)
        case Kind.HOST:
            return ()


# --- moving rows ------------------------------------------------------------------------------


def _map_rows(
    column: Column,
    tensor: Callable[[Tensor], Tensor],
    host: Callable[[npt.NDArray[np.object_]], npt.NDArray[np.object_]],
) -> Column:
    is_text = column.layout.kind is Kind.TEXT
    data = tuple(
        buffer if is_text and i == 2 else tensor(buffer) for i, buffer in enumerate(column.data)
    )
    valid = None if column.valid is None else tensor(column.valid)
    objects = None if column.objects is None else host(column.objects)
    return replace(column, data=data, valid=valid, objects=objects)


def take(column: Column, index: Tensor) -> Column:
    """The rows at ``index`` (int32 or int64, in range); a constant stays one."""
    if column.rows == 1 and index.shape[0] != 1:
        return column
    if column.rows == 1:
        return column
    return _map_rows(
        column,
        lambda buffer: buffer.index_select(0, index),
        lambda objects: objects[index.cpu().numpy()],
    )


def take_rows(column: Column, index: Tensor, rows: int) -> Column:
    """The rows at ``index`` of a column that stands for ``rows`` rows (maybe as a constant)."""
    if column.rows == 1 and rows != 1:
        return expand(column, index.shape[0])
    return _map_rows(
        column,
        lambda buffer: buffer.index_select(0, index),
        lambda objects: objects[index.cpu().numpy()],
    )


def expand(column: Column, rows: int) -> Column:
    """The column with ``rows`` rows written out (buffers may be broadcast views)."""
    if column.rows == rows:
        return column
    assert column.rows == 1, (column.rows, rows)
    valid = column.valid
    objects = column.objects
    is_text = column.layout.kind is Kind.TEXT
    return replace(
        column,
        data=tuple(
            buffer if is_text and i == 2 else buffer.expand(rows)
            for i, buffer in enumerate(column.data)
        ),
        valid=None if valid is None else valid.expand(rows),
        objects=None if objects is None else np.repeat(objects, rows),
    )


def slice_rows(column: Column, start: int, stop: int) -> Column:
    """Rows [start, stop); shares memory. A constant stays one unless it has just that row."""
    if column.rows == 1 and stop - start != 1:
        return column
    if column.rows == 1:
        return column
    return _map_rows(column, lambda buffer: buffer[start:stop], lambda objects: objects[start:stop])


def compact(batch: Batch) -> Batch:
    """The batch without a selection, every column with exactly ``rows`` rows."""
    if batch.selection is not None:
        index = batch.selection
        columns = tuple(take_rows(c, index, batch.capacity) for c in batch.columns)
    else:
        columns = tuple(
            expand(c, batch.rows) if c.rows == 1 else slice_rows(c, 0, batch.rows)
            if c.rows != batch.rows else c
            for c in batch.columns
        )
    return Batch.of(columns, batch.rows, batch.sequence)


# --- text -------------------------------------------------------------------------------------


def byte_strings(column: Column) -> list[bytes]:
    """The byte strings of a TEXT or DICTIONARY column; b"" or garbage where invalid."""
    if column.layout.kind is Kind.DICTIONARY:
        assert column.dictionary is not None
        entries = column.dictionary.values()
        return [entries[code] for code in column.data[0].tolist()] if entries else [
            b"" for _ in range(column.rows)
        ]
    raw = column.data[2].cpu().numpy().tobytes()
    starts, lengths = column.data[0].tolist(), column.data[1].tolist()
    return [raw[a : a + n] for a, n in zip(starts, lengths, strict=True)]


def strings(column: Column) -> list[str]:
    """The strings of a TEXT or DICTIONARY column; arbitrary where invalid."""
    return [value.decode("utf-8", "replace") for value in byte_strings(column)]


# --- the host ---------------------------------------------------------------------------------


def to_host(column: Column, rows: int) -> HostColumn:
    """The column on the host, ``rows`` rows written out."""
    wide = expand(column, rows)
    valid = None if wide.valid is None else wide.valid.cpu().numpy()
    return HostColumn(
        wide.type.oid, wide.type.typmod, wide.layout, rows,
        tuple(buffer.cpu().numpy() for buffer in wide.data), valid,
        wide.base, wide.step, wide.scale, wide.dictionary, wide.objects,
    )


def from_host(column: HostColumn) -> Column:
    """The column over the same memory (read-only arrays are copied)."""

    def tensor(array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(array if array.flags.writeable else array.copy())

    valid = None if column.valid is None else tensor(column.valid)
    return Column(
        SqlType(column.type_oid, column.typmod), column.layout,
        tuple(tensor(buffer) for buffer in column.data), valid,
        column.base, column.step, column.scale,
        dictionary=column.dictionary, objects=column.objects,
    )


def batch_to_host(batch: Batch) -> HostBatch:
    """A batch copied to the host without its selection."""
    plain = compact(batch)
    return HostBatch(tuple(to_host(c, plain.rows) for c in plain.columns), plain.rows)


# --- host values (catalog/types/base.py) -------------------------------------------------------


def from_values(type: SqlType, kind: Layout, values: Sequence[Any]) -> Column:
    """A column of host values (None = NULL) in the layout ``kind`` of its type."""
    mask = np.fromiter((v is not None for v in values), bool, len(values))
    valid = None if mask.all() else torch.from_numpy(mask)
    match kind.kind:
        case Kind.BOOL:
            return boolean_column(type, _filled(values, False, torch.bool), valid)
        case Kind.INT:
            bounds = [v for v in values if v is not None]
            return integer_column(
                type, _filled(values, 0, _ELEMENTS[kind.width]), valid,
                lo=min(bounds, default=0), hi=max(bounds, default=0),
            )
        case Kind.FLOAT:
            dtype = torch.float32 if kind.width == 4 else torch.float64
            return float_column(type, _filled(values, 0.0, dtype), valid)
        case Kind.DECIMAL | Kind.DECIMAL128:
            return _from_decimals(type, values, valid)
        case Kind.TEXT | Kind.DICTIONARY:
            return bytes_column(type, [v.encode() if isinstance(v, str) else v for v in values])
        case Kind.INTERVAL:
            parts = [(0, 0, 0) if v is None else v for v in values]
            months, days, micros = zip(*parts, strict=True) if parts else ((), (), ())
            data = (
                torch.tensor(months, dtype=torch.int32), torch.tensor(days, dtype=torch.int32),
                torch.tensor(micros, dtype=torch.int64),
            )
            return Column(type, layout.INTERVAL, data, valid)
        case Kind.UUID:
            halves = [
                (0, 0) if v is None
                else tuple(int.from_bytes(half, "big", signed=True) for half in (v[:8], v[8:]))
                for v in values
            ]
            pair = torch.tensor(halves, dtype=torch.int64).reshape(-1, 2)
            data2 = (pair[:, 0].contiguous(), pair[:, 1].contiguous())
            return Column(type, layout.UUID, data2, valid)
        case Kind.HOST:
            return host_column(type, values, valid)


def _filled(values: Sequence[Any], neutral: Any, dtype: torch.dtype) -> Tensor:
    return torch.tensor([neutral if v is None else v for v in values], dtype=dtype)


def _decimal_parts(value: decimal.Decimal) -> tuple[int, int]:
    """The unscaled integer and the display scale of a finite Decimal."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled = int(decimal.Decimal((0, digits, 0)))
    if exponent > 0:
        unscaled, exponent = unscaled * 10**exponent, 0
    return (-unscaled if sign else unscaled), -exponent


def _from_decimals(type: SqlType, values: Sequence[Any], valid: Tensor | None) -> Column:
    """DECIMAL when all values fit 18 digits at the common scale, DECIMAL128 to 37, else HOST."""
    present = [v for v in values if v is not None]
    if not all(v.is_finite() for v in present):
        return host_column(type, values, valid)
    parts = [(0, 0) if v is None else _decimal_parts(v) for v in values]
    scale = max((s for _, s in parts), default=0)
    scales = {s for v, (_, s) in zip(values, parts, strict=True) if v is not None}
    unscaled = [u * 10 ** (scale - s) for u, s in parts]
    lo, hi = min(unscaled, default=0), max(unscaled, default=0)
    row_scale = len(scales) > 1
    tail = (torch.tensor([s for _, s in parts], dtype=torch.int16),) if row_scale else ()
    if lo > INT64_MIN and hi < INT64_MAX:
        data: tuple[Tensor, ...] = (torch.tensor(unscaled, dtype=torch.int64), *tail)
        kind = layout.DECIMAL64_ROW_SCALE if row_scale else layout.DECIMAL64
        return Column(type, kind, data, valid, scale=scale, lo=lo, hi=hi)
    if lo > -(10**37) and hi < 10**37:
        low = torch.tensor([_signed64(u & (2**64 - 1)) for u in unscaled], dtype=torch.int64)
        high = torch.tensor([u >> 64 for u in unscaled], dtype=torch.int64)
        kind = layout.DECIMAL128_ROW_SCALE if row_scale else layout.DECIMAL128
        return Column(type, kind, (low, high, *tail), valid, scale=scale, lo=lo, hi=hi)
    return host_column(type, values, valid)


def _signed64(bits: int) -> int:
    return bits - 2**64 if bits >= 2**63 else bits


def unscaled_integers(column: Column) -> list[int]:
    """The scaled integers of a DECIMAL or DECIMAL128 column as Python ints at ``column.scale``."""
    if column.layout.kind is Kind.DECIMAL:
        result: list[int] = integers(column).tolist()
        return result
    low, high = column.data[0].tolist(), column.data[1].tolist()
    return [(h << 64) | (v & (2**64 - 1)) for v, h in zip(low, high, strict=True)]


def decimals(column: Column) -> list[decimal.Decimal | None]:
    """The values of a numeric column in any layout as Decimals (exact, display scale kept)."""
    if column.objects is not None:
        return list(column.objects)
    scales = (
        column.data[-1].tolist() if column.layout.has_row_scale else [column.scale] * column.rows
    )
    found: list[decimal.Decimal | None] = []
    for unscaled, scale in zip(unscaled_integers(column), scales, strict=True):
        own = unscaled // 10 ** (column.scale - scale) if scale != column.scale else unscaled
        sign, digits = (1, str(-own)) if own < 0 else (0, str(own))
        found.append(decimal.Decimal((sign, tuple(map(int, digits)), -scale)))
    return found


def to_values(column: Column, rows: int | None = None) -> list[Any]:
    """The host values of a column, None for NULL."""
    wide = column if rows is None else expand(column, rows)
    values: list[Any]
    match wide.layout.kind:
        case Kind.INT:
            values = integers(wide).tolist()
        case Kind.BOOL | Kind.FLOAT:
            values = wide.data[0].tolist()
        case Kind.DECIMAL | Kind.DECIMAL128:
            values = list(decimals(wide))
        case Kind.TEXT | Kind.DICTIONARY:
            values = list(byte_strings(wide)) if wide.type.oid == 17 else list(strings(wide))
        case Kind.INTERVAL:
            values = list(zip(*(buffer.tolist() for buffer in wide.data), strict=True))
        case Kind.UUID:
            values = [
                h.to_bytes(8, "big", signed=True) + v.to_bytes(8, "big", signed=True)
                for h, v in zip(wide.data[0].tolist(), wide.data[1].tolist(), strict=True)
            ]
        case Kind.HOST:
            assert wide.objects is not None
            values = list(wide.objects)
    if wide.valid is None:
        return values
    return [v if ok else None for v, ok in zip(values, wide.valid.tolist(), strict=True)]
