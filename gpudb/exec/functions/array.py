"""Arrays: shape, search, change, conversion to text."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

from gpudb import errors, sqltype
from gpudb.catalog import types
from gpudb.catalog.functions import scalar
from gpudb.catalog.types import ArrayValue
from gpudb.catalog.types.arrays import DIMENSIONS_MAX, ITEMS_MAX
from gpudb.column import Column
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import evaluate, result_type, rowwise


def _key(oid: int, snapshot: Any = None) -> Callable[[Any], Any]:
    """A sort key of elements, NULL last."""
    element = types.get(oid, snapshot)
    return lambda item: (True,) if item is None else (False, element.sort_key(item))


# --- shape ---


@rowwise("array_ndims", examples=(("array_ndims(ARRAY[[1,2],[3,4]])", "2"),))
def dimensions(array: ArrayValue) -> int | None:
    return len(array.lengths) or None


@rowwise("array_dims", examples=(("array_dims(ARRAY[[1,2],[3,4]])", "[1:2][1:2]"),))
def bounds_text(array: ArrayValue) -> str | None:
    if not array.lengths:
        return None
    pairs = zip(array.lower_bounds, array.lengths, strict=True)
    return "".join(f"[{low}:{low + length - 1}]" for low, length in pairs)


@rowwise("array_length", examples=(("array_length(ARRAY[1,2,3], 1)", "3"),))
def length(array: ArrayValue, dimension: int) -> int | None:
    return array.lengths[dimension - 1] if 1 <= dimension <= len(array.lengths) else None


@rowwise("array_lower")
def lower(array: ArrayValue, dimension: int) -> int | None:
    known = 1 <= dimension <= len(array.lengths)
    return array.lower_bounds[dimension - 1] if known else None


@rowwise("array_upper", examples=(("array_upper(ARRAY[1,8,3,7], 1)", "4"),))
def upper(array: ArrayValue, dimension: int) -> int | None:
    if not 1 <= dimension <= len(array.lengths):
        return None
    return array.lower_bounds[dimension - 1] + array.lengths[dimension - 1] - 1


@rowwise("array_cardinality", examples=(("cardinality(ARRAY[[1,2],[3,4]])", "4"),))
def cardinality(array: ArrayValue) -> int:
    return len(array.items)


# --- building: the element type comes from the column's type ---


def _with_element(
    *keys: str, fallible: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function that takes the element type's OID before its values; not strict."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for key in keys:

            def body(
                context: EvaluationContext, *columns: Column, key: str = key
            ) -> Column:
                type_ = result_type(key, columns)
                element = types.get(type_.oid, context.query.snapshot).element_oid
                return evaluate(
                    context, lambda *values: function(element, *values), columns, type_,
                    strict=False,
                )

            scalar(key, fallible=fallible)(body)
        return function

    return register


def _not_flat() -> errors.SqlError:
    return errors.DataException("argument must be empty or one-dimensional array")


@_with_element("array_append")
def append(element: int, array: ArrayValue | None, item: Any) -> ArrayValue:
    if array is None or not array.items:
        return ArrayValue.of(element, (item,))
    if len(array.lengths) != 1:
        raise _not_flat()
    return ArrayValue(
        element, (*array.items, item), (array.lengths[0] + 1,), array.lower_bounds
    )


@_with_element("array_prepend")
def prepend(element: int, item: Any, array: ArrayValue | None) -> ArrayValue:
    if array is None or not array.items:
        return ArrayValue.of(element, (item,))
    if len(array.lengths) != 1:
        raise _not_flat()
    return ArrayValue(
        element, (item, *array.items), (array.lengths[0] + 1,), array.lower_bounds
    )


@_with_element("array_cat")
def concatenate(
    element: int, left: ArrayValue | None, right: ArrayValue | None
) -> ArrayValue | None:
    if left is None or right is None:
        return right if left is None else left
    if not left.items or not right.items:
        return right if not left.items else left
    one, two = left.lengths, right.lengths
    items = (*left.items, *right.items)
    if len(one) == len(two) and one[1:] == two[1:]:
        return ArrayValue(element, items, (one[0] + two[0], *one[1:]), left.lower_bounds)
    if len(one) == len(two) + 1 and one[1:] == two:
        return ArrayValue(element, items, (one[0] + 1, *one[1:]), left.lower_bounds)
    if len(two) == len(one) + 1 and two[1:] == one:
        return ArrayValue(element, items, (two[0] + 1, *two[1:]), right.lower_bounds)
    raise errors.ArraySubscriptError(
        "cannot concatenate incompatible arrays",
        detail="Arrays with differing dimensions are not compatible for concatenation."
        if len(one) == len(two)
        else f"Arrays of {len(one)} and {len(two)} dimensions are not compatible for "
        "concatenation.",
    )


@_with_element("array_fill", "array_fill_with_lower_bounds")
def fill(
    element: int, item: Any, lengths: ArrayValue | None, lowers: ArrayValue | None = None
) -> ArrayValue:
    if lengths is None:
        raise errors.NullValueNotAllowed(
            "dimension array or low bound array cannot be null"
        )
    if len(lengths.items) > DIMENSIONS_MAX:
        raise errors.ProgramLimitExceeded(
            f"number of array dimensions ({len(lengths.items)}) exceeds the maximum allowed "
            f"({DIMENSIONS_MAX})"
        )
    if None in lengths.items:
        raise errors.NullValueNotAllowed("dimension values cannot be null")
    count = 1
    for length_ in lengths.items:
        count *= length_
    if not lengths.items or count <= 0:
        return ArrayValue(element, ())
    if count > ITEMS_MAX:
        raise errors.ProgramLimitExceeded(
            f"array size exceeds the maximum allowed ({ITEMS_MAX})"
        )
    starts = tuple(lowers.items) if lowers is not None else (1,) * len(lengths.items)
    return ArrayValue(element, (item,) * count, tuple(lengths.items), starts)


@_with_element("trim_array")
def trim(element: int, array: ArrayValue | None, count: int | None) -> ArrayValue | None:
    if array is None or count is None:
        return None
    size = array.lengths[0] if array.lengths else 0
    if not 0 <= count <= size:
        raise errors.ArraySubscriptError(
            f"number of elements to trim must be between 0 and {size}"
        )
    kept = size - count
    if not kept:
        return ArrayValue(element, ())
    items = array.items[: len(array.items) // size * kept]
    return ArrayValue(element, items, (kept, *array.lengths[1:]), array.lower_bounds)


# --- search ---


@_with_element("array_remove")
def remove(element: int, array: ArrayValue | None, item: Any) -> ArrayValue | None:
    if array is None:
        return None
    if len(array.lengths) > 1:
        raise errors.FeatureNotSupported(
            "removing elements from multidimensional arrays is not supported"
        )
    key = _key(element)
    kept = tuple(i for i in array.items if key(i) != key(item))
    if len(kept) == len(array.items):
        return array
    return ArrayValue(element, kept, (len(kept),), array.lower_bounds) if kept else ArrayValue(
        element, ()
    )


@_with_element("array_replace")
def replace(element: int, array: ArrayValue | None, old: Any, new: Any) -> ArrayValue | None:
    if array is None:
        return None
    key = _key(element)
    items = tuple(new if key(i) == key(old) else i for i in array.items)
    return ArrayValue(element, items, array.lengths, array.lower_bounds)


def _positions(array: ArrayValue, item: Any) -> list[int]:
    if len(array.lengths) > 1:
        raise errors.FeatureNotSupported(
            "searching for elements in multidimensional arrays is not supported"
        )
    key = _key(array.element_oid)
    low = array.lower_bounds[0] if array.lower_bounds else 1
    return [low + i for i, value in enumerate(array.items) if key(value) == key(item)]


@rowwise(
    "array_position", "array_position_start",
    examples=(("array_position(ARRAY['sun','mon','tue'], 'mon')", "2"),),
)
def position(array: ArrayValue | None, item: Any, start: int | None = 1) -> int | None:
    if array is None:
        return None
    if start is None:
        raise errors.NullValueNotAllowed("initial position must not be null")
    return next((p for p in _positions(array, item) if p >= start), None)


@rowwise("array_positions")
def positions(array: ArrayValue | None, item: Any) -> ArrayValue | None:
    if array is None:
        return None
    return ArrayValue.of(sqltype.INT4, tuple(_positions(array, item)))


def contains(left: ArrayValue, right: ArrayValue) -> bool:
    """Every element of right (never a NULL) occurs in left."""
    key = _key(left.element_oid)
    present = {key(item) for item in left.items if item is not None}
    return all(item is not None and key(item) in present for item in right.items)


rowwise("arraycontains", examples=(("ARRAY[1,4,3] @> ARRAY[3,1]", "t"),))(contains)
rowwise("arraycontained")(lambda left, right: contains(right, left))


@rowwise("arrayoverlap", examples=(("ARRAY[1,4,3] && ARRAY[2,1]", "t"),))
def overlaps(left: ArrayValue, right: ArrayValue) -> bool:
    key = _key(left.element_oid)
    present = {key(item) for item in left.items if item is not None}
    return any(item is not None and key(item) in present for item in right.items)


@rowwise("width_bucket_array", examples=(("width_bucket(5, ARRAY[1,3,7])", "2"),))
def width_bucket(operand: Any, thresholds: ArrayValue) -> int:
    if len(thresholds.lengths) > 1:
        raise errors.ArraySubscriptError("thresholds must be one-dimensional array")
    if None in thresholds.items:
        raise errors.NullValueNotAllowed("thresholds array must not contain NULLs")
    key = _key(thresholds.element_oid)
    return bisect.bisect_right([key(item) for item in thresholds.items], key(operand))


# --- text ---


@rowwise("array_to_text", "array_to_text_null", needs_context=True,
         examples=(("array_to_string(ARRAY[1,2,NULL,5], ',', '*')", "1,2,*,5"),))
def to_string(
    context: EvaluationContext, array: ArrayValue | None, separator: str | None,
    null_text: str | None = None,
) -> str | None:
    if array is None or separator is None:
        return None
    element = types.get(array.element_oid, context.query.snapshot)
    settings = context.query.types
    texts = [
        null_text if item is None else element.format(item, settings) for item in array.items
    ]
    return separator.join(text for text in texts if text is not None)
