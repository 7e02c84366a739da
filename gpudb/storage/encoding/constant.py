"""Constants: no buffer at all when every row is NULL, or all valid rows have one integer value."""

from __future__ import annotations

import numpy as np
import torch

from gpudb.column import Column, expand, null_column
from gpudb.layout import Kind, Layout
from gpudb.result import HostColumn
from gpudb.storage.encoding.base import (
    Encoded,
    Parameters,
    Stored,
    column_of,
    logical_integers,
    null_count,
)

NAME = "const"


def encode(column: HostColumn) -> Encoded | None:
    nulls = null_count(column)
    kind = column.layout.kind
    if nulls == column.rows:
        has_scale = column.layout.has_row_scale
        parameters = Parameters(kind.value, column.layout.width, has_scale, scale=column.scale)
        return Encoded(NAME, parameters, (), nulls)
    if kind not in (Kind.INT, Kind.DECIMAL) or nulls or column.layout.has_row_scale:
        return None
    values = logical_integers(column)
    first = int(values[0])
    if first != int(values[-1]) or not bool(np.all(values == first)):
        return None
    parameters = Parameters(kind.value, 1, base=first, scale=column.scale)
    return Encoded(NAME, parameters, (), 0, first, first)


def decode(stored: Stored) -> Column:
    parameters = stored.parameters
    layout = Layout(Kind(parameters.kind), parameters.width, parameters.has_row_scale)
    if stored.low is None:
        return expand(null_column(stored.type, layout), stored.rows)
    elements = torch.zeros(1, dtype=torch.uint8).expand(stored.rows)
    return column_of(stored, Layout(layout.kind, 1), (elements,))
