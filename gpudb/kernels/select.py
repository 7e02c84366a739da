"""Selections: masks to row ids, and choosing rows of several columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gpudb.column import Column, expand, integers, take_rows
from gpudb.kernels import decimal
from gpudb.kernels.concat import concat
from gpudb.layout import DECIMAL64, DECIMAL64_ROW_SCALE, INT64, Kind


def rows_of(mask: Tensor) -> Tensor:
    """The row ids where ``mask`` (bool R) is true, int64 in order.

    numpy on the CPU: torch.nonzero takes 18 times as long at half density.
    """
    if mask.device.type == "cpu":
        return torch.from_numpy(np.flatnonzero(mask.numpy()))
    return mask.nonzero().squeeze(1)


def is_all(mask: Tensor) -> bool:
    """Whether every element is true."""
    return bool(mask.numpy().all()) if mask.device.type == "cpu" else bool(mask.all())


def is_any(mask: Tensor) -> bool:
    """Whether some element is true."""
    return bool(mask.numpy().any()) if mask.device.type == "cpu" else bool(mask.any())


def true_mask(column: Column, rows: int) -> Tensor:
    """bool (rows): where a BOOL column is true (neither false nor NULL)."""
    value = column.data[0] if column.valid is None else column.data[0] & column.valid
    return value.expand(rows) if value.shape[0] != rows else value


def keep(column: Column, rows: int) -> Column:
    """The column in memory of its own, ``rows`` rows written out; text bytes are packed."""
    wide = expand(column, rows)
    if wide.layout.kind is Kind.TEXT:
        return _packed_text(wide)
    valid = None if wide.valid is None else wide.valid.clone()
    return replace(wide, data=tuple(buffer.clone() for buffer in wide.data), valid=valid)


def _packed_text(column: Column) -> Column:
    starts, lengths, data = column.data
    total = int(lengths.sum(dtype=torch.int64)) if lengths.shape[0] else 0
    if total * 2 > data.shape[0]:
        return replace(column, data=(starts.clone(), lengths.clone(), data.clone()))
    wide = lengths.to(torch.int64)
    ends = wide.cumsum(0)
    new_starts = ends - wide
    shift = torch.repeat_interleave(starts - new_starts, wide, output_size=total)
    packed = data.index_select(0, shift + torch.arange(total, device=data.device))
    return replace(column, data=(new_starts, lengths.clone(), packed))


def bytes_of(column: Column) -> int:
    """The memory that the column's buffers take; a guess for Python objects."""
    size = sum(buffer.shape[0] * buffer.element_size() for buffer in column.data)
    if column.valid is not None:
        size += column.valid.shape[0]
    if column.objects is not None:
        size += 64 * len(column.objects)
    return size


def choose(columns: Sequence[Column], choice: Tensor, rows: int) -> Column:
    """Row i of column number ``choice[i]`` (int64 R); constants stand for every row."""
    fast = _choose_numbers(columns, choice, rows)
    if fast is not None:
        return fast
    starts, total = [], 0
    for column in columns:
        starts.append(total)
        total += column.rows
    joined = expand(concat([(column, column.rows) for column in columns]), total)
    offsets = torch.tensor(starts, device=choice.device).index_select(0, choice)
    strides = torch.tensor([int(c.rows > 1 or rows == 1) for c in columns], device=choice.device)
    own = torch.arange(rows, device=choice.device) * strides.index_select(0, choice)
    return take_rows(joined, offsets + own, joined.rows)


def _choose_numbers(columns: Sequence[Column], choice: Tensor, rows: int) -> Column | None:
    """``choose`` for plain numbers, without the copy of a concatenation."""
    if len(columns) > 3:
        return None
    if all(c.layout.kind is Kind.DECIMAL for c in columns):
        return _choose_decimals(columns, choice, rows)
    first = columns[0]
    kind = first.layout.kind
    if kind not in (Kind.INT, Kind.FLOAT, Kind.BOOL) or any(
        c.layout.kind is not kind for c in columns
    ):
        return None
    is_integer = kind is Kind.INT
    parts = [integers(c) if is_integer else c.data[0] for c in columns]
    if len({part.dtype for part in parts}) > 1:
        return None
    values = _chosen(parts, choice, rows)
    valid = _chosen_valid(columns, choice, rows)
    lo, hi = joint_bounds(columns) if is_integer else (None, None)
    layout = INT64 if is_integer else first.layout
    return replace(
        first, layout=layout, data=(values,), valid=valid, base=0, step=1, lo=lo, hi=hi
    )


def _chosen(parts: Sequence[Tensor], choice: Tensor, rows: int) -> Tensor:
    values = parts[0].expand(rows)
    for number, part in enumerate(parts[1:], 1):
        values = torch.where(choice == number, part, values)
    return values


def _chosen_valid(columns: Sequence[Column], choice: Tensor, rows: int) -> Tensor | None:
    if all(c.valid is None for c in columns):
        return None
    ones = torch.ones(1, dtype=torch.bool, device=choice.device)
    return _chosen([ones if c.valid is None else c.valid for c in columns], choice, rows)


def _choose_decimals(columns: Sequence[Column], choice: Tensor, rows: int) -> Column | None:
    """Scaled integers at the largest scale, each row with its own display scale."""
    scale = max(c.scale for c in columns)
    aligned = [decimal.rescaled(c, scale) for c in columns]
    present = [c for c in aligned if c is not None and c.layout.kind is Kind.DECIMAL]
    if len(present) < len(columns):
        return None
    values = _chosen([integers(c) for c in present], choice, rows)
    valid = _chosen_valid(present, choice, rows)
    lo, hi = joint_bounds(present)
    if not any(c.layout.has_row_scale for c in present):
        return Column(
            columns[0].type, DECIMAL64, (values,), valid, scale=scale, lo=lo, hi=hi
        )
    shown = [
        c.data[-1] if c.layout.has_row_scale else torch.tensor([scale], dtype=torch.int16)
        for c in present
    ]
    return Column(
        columns[0].type, DECIMAL64_ROW_SCALE, (values, _chosen(shown, choice, rows)), valid,
        scale=scale, lo=lo, hi=hi,
    )


def joint_bounds(columns: Sequence[Column]) -> tuple[int | None, int | None]:
    """Bounds that hold for all columns; None when one of them is unknown."""
    lows = [column.lo for column in columns]
    highs = [column.hi for column in columns]
    lo = min((v for v in lows if v is not None), default=None)
    hi = max((v for v in highs if v is not None), default=None)
    return (None if None in lows else lo), (None if None in highs else hi)


def numbers(tensor: Tensor) -> npt.NDArray[np.int64]:
    """An int64 tensor as a contiguous numpy array on the host."""
    return np.ascontiguousarray(tensor.cpu().numpy())
