"""Array subscripts: elements and slices of array values, as PostgreSQL has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpudb.catalog.types.base import ArrayValue


def element(array: ArrayValue | None, subscripts: Sequence[int | None]) -> Any:
    """The element, NULL outside of the bounds, for NULL subscripts or the wrong number of them."""
    if array is None or None in subscripts or len(subscripts) != len(array.lengths):
        return None
    position = 0
    for subscript, length, low in zip(
        subscripts, array.lengths, array.lower_bounds, strict=True
    ):
        offset = int(subscript or 0) - low
        if not 0 <= offset < length:
            return None
        position = position * length + offset
    return array.items[position]


def slice_of(
    array: ArrayValue | None,
    lowers: Sequence[int | None],
    uppers: Sequence[int | None],
    has_lower: Sequence[bool],
    has_upper: Sequence[bool],
) -> ArrayValue | None:
    """array[l:u, ...]; missing dimensions are whole, an empty range is the empty array."""
    if array is None:
        return None
    empty = ArrayValue(array.element_oid, ())
    if not array.lengths or len(lowers) > len(array.lengths):
        return empty
    ranges: list[range] = []
    for number, (length, low) in enumerate(zip(array.lengths, array.lower_bounds, strict=True)):
        first, last = low, low + length - 1
        if number < len(lowers):
            lower, upper = lowers[number], uppers[number]
            if (has_lower[number] and lower is None) or (has_upper[number] and upper is None):
                return None
            first = max(first, lower) if lower is not None else first
            last = min(last, upper) if upper is not None else last
        if first > last:
            return empty
        ranges.append(range(first - low, last - low + 1))
    items = _collect(array, ranges)
    lengths = tuple(len(r) for r in ranges)
    return ArrayValue(array.element_oid, items, lengths, (1,) * len(lengths))


def _collect(array: ArrayValue, ranges: Sequence[range]) -> tuple[Any, ...]:
    positions = [0]
    for length, span in zip(array.lengths, ranges, strict=True):
        positions = [p * length + offset for p in positions for offset in span]
    return tuple(array.items[p] for p in positions)
