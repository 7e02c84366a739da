"""Physical layouts: how the values of a column lie in memory, on disk and on the wire.

Frozen, hashable and free of torch, so that catalog, programs, columns, results and wire share
them. Every row-aligned buffer is a one-dimensional array; R is the number of rows.

=============  =======================================================================
kind           buffers
=============  =======================================================================
BOOL           bool (R)
INT            uint8 | int16 | int32 | int64 (R); value = base + step * element
FLOAT          float32 | float64 (R)
DECIMAL        int64 or narrower (R), value = (base + step * element) / 10**scale
DECIMAL128     low int64 (R) (its bits read unsigned), high int64 (R); two's complement
TEXT           start int64 (R), length int32 (R), bytes uint8 (B): UTF-8 or raw bytes
DICTIONARY     code uint8 | int16 | int32 (R) into an immutable Dictionary
INTERVAL       months int32 (R), days int32 (R), microseconds int64 (R)
UUID           high int64 (R), low int64 (R): the 16 bytes big-endian, each half signed
HOST           no buffers; numpy object array (R) of Python values
=============  =======================================================================

DECIMAL and DECIMAL128 with ``has_row_scale`` carry one more buffer: int16 (R), the number of
decimals that PostgreSQL would display for the row (at most ``scale``); without it every row
displays ``scale`` decimals. Never unsigned beyond 8 bits: torch on CPU lacks most operations
on uint16/32/64.
"""

from __future__ import annotations

import enum
import itertools
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


class Kind(enum.Enum):
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    DECIMAL = "decimal"
    DECIMAL128 = "decimal128"
    TEXT = "text"
    DICTIONARY = "dictionary"
    INTERVAL = "interval"
    UUID = "uuid"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Layout:
    """Kind, element width in bytes (of the first buffer) and whether rows carry a scale."""

    kind: Kind
    width: int = 8
    has_row_scale: bool = False


BOOL = Layout(Kind.BOOL, 1)
UINT8 = Layout(Kind.INT, 1)
INT16 = Layout(Kind.INT, 2)
INT32 = Layout(Kind.INT, 4)
INT64 = Layout(Kind.INT, 8)
FLOAT32 = Layout(Kind.FLOAT, 4)
FLOAT64 = Layout(Kind.FLOAT, 8)
DECIMAL64 = Layout(Kind.DECIMAL, 8)
DECIMAL64_ROW_SCALE = Layout(Kind.DECIMAL, 8, True)
DECIMAL128 = Layout(Kind.DECIMAL128, 8)
DECIMAL128_ROW_SCALE = Layout(Kind.DECIMAL128, 8, True)
TEXT = Layout(Kind.TEXT, 8)
DICTIONARY8 = Layout(Kind.DICTIONARY, 1)
DICTIONARY16 = Layout(Kind.DICTIONARY, 2)
DICTIONARY32 = Layout(Kind.DICTIONARY, 4)
INTERVAL = Layout(Kind.INTERVAL, 4)
UUID = Layout(Kind.UUID, 8)
HOST = Layout(Kind.HOST, 8)

_dictionary_ids = itertools.count(1)


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Immutable distinct byte strings, numbered from 0; identity decides equality.

    ``offsets`` int64 (D + 1) into ``data`` uint8; ``is_sorted`` says that code order is byte
    order, so that comparisons may run on codes. Values are distinct, never NULL.
    """

    offsets: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    is_sorted: bool
    id: int = field(default_factory=lambda: next(_dictionary_ids))
    cache: dict[object, object] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def values(self) -> list[bytes]:
        """The entries as bytes, computed once."""
        found = self.cache.get("values")
        if found is None:
            raw = self.data.tobytes()
            ends = self.offsets.tolist()
            found = [raw[a:b] for a, b in itertools.pairwise(ends)]
            self.cache["values"] = found
        return found  # type: ignore[return-value]

    @classmethod
    def of(cls, values: list[bytes], *, is_sorted: bool) -> Dictionary:
        """A dictionary of distinct byte strings in the given order."""
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum([len(v) for v in values], out=offsets[1:])
        return cls(offsets, np.frombuffer(b"".join(values), np.uint8), is_sorted)
