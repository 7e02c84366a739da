"""Plain fixed-width buffers: booleans (a byte each), floats, 128-bit decimals, intervals, UUIDs."""

from __future__ import annotations

import numpy as np
import torch

from gpudb.column import Column, buffer_types
from gpudb.layout import Kind, Layout
from gpudb.result import HostColumn
from gpudb.storage.encoding.base import (
    Encoded,
    Parameters,
    Stored,
    column_of,
    flat,
    null_count,
)

NAME = "plain"
_KINDS = (Kind.BOOL, Kind.FLOAT, Kind.DECIMAL128, Kind.INTERVAL, Kind.UUID)
_NUMPY = {
    torch.bool: np.bool_, torch.uint8: np.uint8, torch.int16: np.int16, torch.int32: np.int32,
    torch.int64: np.int64, torch.float32: np.float32, torch.float64: np.float64,
}


def encode(column: HostColumn) -> Encoded | None:
    if column.layout.kind not in _KINDS:
        return None
    low: int | float | None = None
    high: int | float | None = None
    has_nan = False
    if column.layout.kind is Kind.FLOAT:
        present = column.data[0] if column.valid is None else column.data[0][column.valid]
        numbers = present[~np.isnan(present)]
        has_nan = len(numbers) < len(present)
        if len(numbers):
            low, high = float(numbers.min()), float(numbers.max())
    parameters = Parameters(
        column.layout.kind.value, column.layout.width, column.layout.has_row_scale,
        scale=column.scale,
    )
    buffers = tuple(flat(buffer) for buffer in column.data)
    return Encoded(NAME, parameters, buffers, null_count(column), low, high, has_nan)


def decode(stored: Stored) -> Column:
    parameters = stored.parameters
    layout = Layout(Kind(parameters.kind), parameters.width, parameters.has_row_scale)
    data = tuple(
        torch.from_numpy(buffer.view(_NUMPY[dtype]))[: stored.rows]
        for buffer, dtype in zip(stored.buffers, buffer_types(layout), strict=False)
    )
    return column_of(stored, layout, data)
