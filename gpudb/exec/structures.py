"""Arrays and rows in expressions, and membership in lists of constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from gpudb import errors, sqltype
from gpudb.catalog.types.base import ArrayValue, RecordValue
from gpudb.column import (
    Column,
    boolean_column,
    byte_strings,
    from_values,
    host_column,
    integers,
    take_rows,
    to_values,
)
from gpudb.exec.conversions import data_type
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.program import Step
from gpudb.expr import Subscript
from gpudb.layout import Kind
from gpudb.sqltype import BOOLEAN, SqlType

ARRAY_DIMENSIONS_MAX = 6
ARRAY_ITEMS_MAX = 134_217_727

Compare = Callable[[EvaluationContext, Column, Column], Column]


# --- lists of constants ------------------------------------------------------------


def in_constants(argument: Column, items: Sequence[Column]) -> Column | None:
    """``argument = any of items`` for integers and text against several constants, by set.

    None where the general way must be taken.
    """
    if len(items) < 3 or any(item.rows != 1 for item in items) or argument.rows == 1:
        return None
    present = [i for i in items if i.valid is None or bool(i.valid[0])]
    kind = argument.layout.kind
    if kind is Kind.INT and all(item.layout.kind is Kind.INT for item in present):
        if argument.type.oid not in sqltype.INTEGERS and any(
            item.type.oid != argument.type.oid for item in present
        ):
            return None
        wanted = np.array([int(integers(item)[0]) for item in present], np.int64)
        found = torch.from_numpy(np.isin(integers(argument).cpu().numpy(), wanted))
    elif kind in (Kind.TEXT, Kind.DICTIONARY) and argument.type.oid != sqltype.BPCHAR:
        strings = {byte_strings(item)[0] for item in present}
        found = _in_strings(argument, strings)
    else:
        return None
    valid = argument.valid
    if len(present) < len(items):
        valid = found if valid is None else found & valid
    return boolean_column(BOOLEAN, found, valid)


def _in_strings(argument: Column, strings: set[bytes]) -> torch.Tensor:
    dictionary = argument.dictionary
    if dictionary is not None:
        table = torch.tensor([entry in strings for entry in dictionary.values()] or [False])
        return table.index_select(0, argument.data[0].to(torch.int64))
    return torch.tensor([value in strings for value in byte_strings(argument)], dtype=torch.bool)


def joint_rows(context: EvaluationContext, arguments: Sequence[Column]) -> int:
    """The rows of a result: one when all arguments are constants."""
    return 1 if all(column.rows == 1 for column in arguments) else context.rows


# --- arrays ------------------------------------------------------------


def item_columns(value: ArrayValue, context: EvaluationContext) -> list[Column]:
    """The elements of an array as constants."""
    type_ = SqlType(value.element_oid)
    kind = data_type(type_.oid, context.query).layout
    return [from_values(type_, kind, [item]) for item in value.items]


def compare_elements(
    context: EvaluationContext, argument: Column, array: Column, compare: Compare, *, is_any: bool
) -> Column:
    """ANY or ALL of a comparison with the elements of each row's array."""
    values = to_values(array, context.rows)
    counts = torch.tensor([0 if v is None else len(v.items) for v in values], dtype=torch.int64)
    flat = [item for v in values if v is not None for item in v.items]
    oid = next((v.element_oid for v in values if v is not None), sqltype.TEXT)
    type_ = SqlType(oid)
    elements = from_values(type_, data_type(oid, context.query).layout, flat)
    owner = torch.repeat_interleave(torch.arange(context.rows), counts, output_size=len(flat))
    active = context.active
    inner = EvaluationContext(
        context.query, len(flat),
        None if active is None else active.expand(context.rows).index_select(0, owner),
        context.device, context.errors, context.row_offset, context.position,
    )
    true = torch.zeros(context.rows, dtype=torch.bool)
    unknown = torch.zeros(context.rows, dtype=torch.bool)
    if flat:
        left = take_rows(argument, owner, context.rows)
        result = compare(inner, left, elements)
        hit = result.data[0] if is_any else ~result.data[0]
        known = torch.ones(len(flat), dtype=torch.bool)
        if result.valid is not None:
            known = result.valid.expand(len(flat))
        true[owner[(hit & known).expand(len(flat))]] = True
        unknown[owner[~known]] = True
    is_null = torch.tensor([v is None for v in values], dtype=torch.bool)
    valid = ~is_null & (true | ~unknown)
    return boolean_column(BOOLEAN, true if is_any else ~true, valid)


def array_construct(
    context: EvaluationContext, step: Step, arguments: Sequence[Column]
) -> Column:
    """ARRAY[...] row by row."""
    element = data_type(step.type.oid, context.query).element_oid
    nested = step.payload.is_nested
    rows = joint_rows(context, arguments)
    lists = [to_values(column, rows) for column in arguments]
    if not lists:
        return host_column(step.type, [ArrayValue(element, ())])
    if not nested:
        values = [ArrayValue.of(element, row) for row in zip(*lists, strict=True)]
        return host_column(step.type, values)
    return host_column(step.type, [_nested(element, row) for row in zip(*lists, strict=True)])


def _nested(element: int, parts: Sequence[ArrayValue | None]) -> ArrayValue:
    present = [ArrayValue(element, ()) if part is None else part for part in parts]
    lengths = {part.lengths for part in present}
    if len(lengths) > 1:
        raise errors.ArraySubscriptError(
            "multidimensional arrays must have array expressions with matching dimensions"
        )
    inner = present[0].lengths
    if not inner:
        return ArrayValue(element, ())
    if len(inner) >= ARRAY_DIMENSIONS_MAX:
        raise errors.ProgramLimitExceeded(
            f"number of array dimensions ({len(inner) + 1}) exceeds the maximum allowed "
            f"({ARRAY_DIMENSIONS_MAX})"
        )
    items = tuple(item for part in present for item in part.items)
    return ArrayValue(element, items, (len(present), *inner), (1,) * (len(inner) + 1))


def subscript(context: EvaluationContext, step: Step, arguments: Sequence[Column]) -> Column:
    """Elements and slices, NULL outside the bounds or for a NULL subscript."""
    node: Subscript = step.payload
    rows = joint_rows(context, arguments)
    lists = [to_values(column, rows) for column in arguments]
    results: list[Any] = []
    for array, *bounds in zip(*lists, strict=True):
        results.append(None if array is None else _subscripted(node, array, bounds))
    return from_values(step.type, data_type(step.type.oid, context.query).layout, results)


def _subscripted(node: Subscript, array: Any, bounds: list[Any]) -> Any:
    if any(bound is None for bound in bounds):
        return None
    if not isinstance(array, ArrayValue):
        items = list(array)
        index = bounds[0]
        return items[index] if 0 <= index < len(items) else None
    queue = iter(bounds)
    lowers = [None if item is None else next(queue) for item in node.lowers]
    if node.uppers is None:
        return _element(array, [int(low) for low in lowers if low is not None])
    uppers = [None if item is None else next(queue) for item in node.uppers]
    return _slice(array, lowers, uppers)


def _element(array: ArrayValue, index: list[int]) -> Any:
    if len(index) != len(array.lengths):
        return None
    position = 0
    for wanted, low, length in zip(index, array.lower_bounds, array.lengths, strict=True):
        if not low <= wanted < low + length:
            return None
        position = position * length + wanted - low
    return array.items[position]


def _slice(array: ArrayValue, lowers: list[Any], uppers: list[Any]) -> ArrayValue:
    empty = ArrayValue(array.element_oid, ())
    if len(lowers) > len(array.lengths):
        return empty
    ranges = []
    for d, (first, length) in enumerate(zip(array.lower_bounds, array.lengths, strict=True)):
        low = lowers[d] if d < len(lowers) and lowers[d] is not None else first
        high = uppers[d] if d < len(uppers) and uppers[d] is not None else first + length - 1
        low, high = max(low, first), min(high, first + length - 1)
        if low > high:
            return empty
        ranges.append((low - first, high - low + 1))
    shaped = np.empty(len(array.items), object)
    shaped[:] = array.items
    cut = shaped.reshape(array.lengths)[tuple(slice(a, a + n) for a, n in ranges)]
    lengths = tuple(n for _, n in ranges)
    return ArrayValue(array.element_oid, tuple(cut.ravel()), lengths, (1,) * len(lengths))


# --- rows ------------------------------------------------------------


def row_construct(context: EvaluationContext, step: Step, arguments: Sequence[Column]) -> Column:
    """ROW(...) as RecordValues."""
    oids = tuple(column.type.oid for column in arguments)
    rows = joint_rows(context, arguments)
    lists = [to_values(column, rows) for column in arguments]
    values = zip(*lists, strict=True) if lists else [()]
    return host_column(step.type, [RecordValue(oids, tuple(row)) for row in values])


def field_select(context: EvaluationContext, step: Step, arguments: Sequence[Column]) -> Column:
    """A field of each record."""
    index = step.payload.index
    values = [None if v is None else v.values[index] for v in to_values(arguments[0])]
    return from_values(step.type, data_type(step.type.oid, context.query).layout, values)
