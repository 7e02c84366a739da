"""What every encoding shares: the encoded form, bounds, validity bitmaps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import torch

from gpudb.column import Column
from gpudb.layout import Dictionary, Layout
from gpudb.result import HostColumn
from gpudb.sqltype import SqlType

Bytes = npt.NDArray[np.uint8]


class Parameters(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that decoding needs besides the buffers; absent parts have their defaults.

    ``kind`` and ``width`` name the decoded layout (layout.Kind's value, bytes an element).
    """

    kind: str
    width: int = 8
    has_row_scale: bool = False
    base: int = 0
    step: int = 1
    scale: int = 0
    has_validity: bool = False
    is_sorted: bool = False
    entries: int = 0
    value: Any = None


@dataclass(frozen=True, slots=True)
class Encoded:
    """``buffers`` are flat byte arrays; the validity bitmap, if any, is the last one.

    ``low`` and ``high`` bound the valid values: integers (scaled for decimals), floats, or bytes
    for text; None = not known or no valid value.
    """

    name: str
    parameters: Parameters
    buffers: tuple[Bytes, ...]
    nulls: int = 0
    low: int | float | bytes | None = None
    high: int | float | bytes | None = None
    has_nan: bool = False
    distinct: int | None = None

    def with_validity(self, bitmap: Bytes) -> Encoded:
        parameters = msgspec.structs.replace(self.parameters, has_validity=True)
        return replace(self, parameters=parameters, buffers=(*self.buffers, bitmap))


@dataclass(frozen=True, slots=True)
class Stored:
    """A loaded encoded column: what ``decode`` takes. ``rows`` in the segment."""

    type: SqlType
    rows: int
    parameters: Parameters
    buffers: tuple[Bytes, ...]
    low: int | float | bytes | None
    high: int | float | bytes | None

    def valid(self) -> torch.Tensor | None:
        if not self.parameters.has_validity:
            return None
        return torch.from_numpy(decode_validity(self.buffers[-1], self.rows))


def flat(array: npt.NDArray[Any]) -> Bytes:
    """The bytes of an array, without a copy when it is contiguous."""
    return np.ascontiguousarray(array).view(np.uint8).reshape(-1)


def encode_validity(column: HostColumn) -> Bytes | None:
    """The validity bitmap (least significant bit first); None when every row is valid."""
    if column.valid is None or bool(column.valid.all()):
        return None
    return np.packbits(column.valid, bitorder="little")


def decode_validity(bitmap: Bytes, rows: int) -> npt.NDArray[np.bool_]:
    return np.unpackbits(bitmap, count=rows, bitorder="little").view(np.bool_)


def logical_integers(column: HostColumn) -> npt.NDArray[np.int64]:
    """The int64 values of an INT or DECIMAL column."""
    values = column.data[0].astype(np.int64, copy=False)
    if column.step != 1:
        values = values * column.step
    return values + column.base if column.base else values


def null_count(column: HostColumn) -> int:
    return 0 if column.valid is None else int(column.rows - np.count_nonzero(column.valid))


def column_of(
    stored: Stored, layout: Layout, data: tuple[torch.Tensor, ...], **facts: Any
) -> Column:
    """The decoded column with its validity, parameters and bounds."""
    parameters = stored.parameters
    dictionary: Dictionary | None = facts.get("dictionary")
    is_number = isinstance(stored.low, int) and isinstance(stored.high, int)
    return Column(
        stored.type, layout, data, stored.valid(), parameters.base, parameters.step,
        parameters.scale,
        stored.low if is_number else None,  # type: ignore[arg-type]
        stored.high if is_number else None,  # type: ignore[arg-type]
        dictionary, facts.get("objects"),
    )
