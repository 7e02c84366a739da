"""Frame of reference: integers and decimals in 1, 2, 4 or 8 bytes, value = base + step * element.

Base 0 and step 1 are preferred at equal width, since then the engine computes on the stored
elements as they are; 2 and 4 byte elements are signed and based mid-range (torch has no
arithmetic on uint16 and uint32).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from gpudb.column import Column
from gpudb.layout import Kind, Layout
from gpudb.result import HostColumn
from gpudb.storage.encoding.base import (
    Encoded,
    Parameters,
    Stored,
    column_of,
    flat,
    logical_integers,
    null_count,
)

NAME = "for"
STEP_SAMPLE = 4096
"""Values looked at before a greatest common divisor of the whole column is tried."""

_TYPES = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}
_NATURAL = ((1, 0, 255), (2, -(2**15), 2**15 - 1), (4, -(2**31), 2**31 - 1))
_SPANS = ((1, 2**8 - 1, 0), (2, 2**16 - 1, 2**15), (4, 2**32 - 1, 2**31))


def frame(low: int, high: int, step: int) -> tuple[int, int, int]:
    """(width, base, step) of the narrowest frame that holds low..high in multiples of step."""
    natural = next((w for w, a, b in _NATURAL if a <= low and high <= b), 8)
    spans = (high - low) // step
    width, middle = next(((w, m) for w, span, m in _SPANS if spans <= span), (8, 0))
    if width >= natural:
        return natural, 0, 1
    return width, low + middle * step, step


def _common_step(values: npt.NDArray[np.int64], low: int) -> int:
    sample = values[:: max(1, len(values) // STEP_SAMPLE)] - low
    if not len(sample) or int(np.gcd.reduce(sample)) <= 1:
        return 1
    return max(1, int(np.gcd.reduce(values - low)))


def encode(column: HostColumn) -> Encoded | None:
    if column.layout.kind not in (Kind.INT, Kind.DECIMAL):
        return None
    values = logical_integers(column)
    nulls = null_count(column)
    present = values if not nulls else values[column.valid]
    low, high = int(present.min()), int(present.max())
    if nulls:
        values = np.where(column.valid, values, low)  # type: ignore[arg-type]
    step = 1 if high - low > 2**62 or high - low < 256 else _common_step(values, low)
    width, base, step = frame(low, high, step)
    elements = values
    if base or step != 1:
        elements = (values - base) // step if step != 1 else values - base
    parameters = Parameters(
        column.layout.kind.value, width, base=base, step=step, scale=column.scale,
        has_row_scale=column.layout.has_row_scale,
    )
    buffers = [flat(elements.astype(_TYPES[width], copy=False))]
    if column.layout.has_row_scale:
        buffers.append(flat(column.data[1].astype(np.int16, copy=False)))
    return Encoded(NAME, parameters, tuple(buffers), nulls, low, high)


def decode(stored: Stored) -> Column:
    parameters = stored.parameters
    elements = torch.from_numpy(stored.buffers[0].view(_TYPES[parameters.width]))
    layout = Layout(Kind(parameters.kind), parameters.width, parameters.has_row_scale)
    data = [elements[: stored.rows]]
    if parameters.has_row_scale:
        data.append(torch.from_numpy(stored.buffers[1].view(np.int16))[: stored.rows])
    return column_of(stored, layout, tuple(data))
