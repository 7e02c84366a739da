"""Set-returning functions: ``@rowset`` over Python generators, generate_series, unnest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np
import torch

from gpudb import errors, sqltype
from gpudb.catalog import functions, types
from gpudb.catalog.functions import set_returning
from gpudb.catalog.types import ArrayValue
from gpudb.catalog.types.calendar import is_finite_timestamp
from gpudb.catalog.types.intervals import span
from gpudb.column import Column, expand, integer_column, integers, to_values, validity
from gpudb.errors import SqlError
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import Examples, column_of, is_strict
from gpudb.exec.functions.text import split
from gpudb.exec.functions.timestamps import add_interval, add_interval_in_zone
from gpudb.kernels import decimal_math
from gpudb.sqltype import SqlType

Body = TypeVar("Body", bound=Callable[..., Any])
SetResult = tuple[torch.Tensor, tuple[Column, ...]]
RowRule = Callable[[Sequence[Column]], tuple[int, ...]]


def rowset(
    *keys: str,
    results: tuple[int, ...] | RowRule,
    needs_context: bool = False,
    examples: Examples = (),
) -> Callable[[Body], Body]:
    """Register a generator over host values as a set-returning function.

    ``results`` are the types of the output columns (or how they follow from the arguments); with
    several, the generator yields tuples.
    """

    def register(function: Body) -> Body:
        for key in keys:

            def body(
                context: EvaluationContext, *columns: Column, key: str = key
            ) -> SetResult:
                oids = results if isinstance(results, tuple) else results(columns)
                call = (lambda *a: function(context, *a)) if needs_context else function
                return _rows_of(context, call, columns, oids, is_strict(key))

            functions.set_returning(key, fallible=True, examples=examples)(body)
        return function

    return register


def _rows_of(
    context: EvaluationContext,
    function: Callable[..., Iterable[Any]],
    columns: Sequence[Column],
    oids: tuple[int, ...],
    strict: bool,
) -> SetResult:
    rows = context.rows
    lists = [to_values(c) * rows if c.rows == 1 and rows != 1 else to_values(c) for c in columns]
    counts = np.zeros(rows, np.int64)
    found: list[Any] = []
    for row, arguments in enumerate(zip(*lists, strict=True) if lists else ((),) * rows):
        if not context.is_active(row):
            continue
        if strict and any(a is None for a in arguments):
            continue
        try:
            items = list(function(*arguments))
        except SqlError as problem:
            context.report_row(row, problem)
            continue
        counts[row] = len(items)
        found.extend(items)
    if len(oids) == 1:
        parts = [found]
    else:
        parts = [[item[i] for item in found] for i in range(len(oids))]
    made = tuple(column_of(SqlType(oid), part) for oid, part in zip(oids, parts, strict=True))
    return torch.from_numpy(counts), made


# --- generate_series ---

_SERIES_ROWS_MAX = 2**31


def _series(oid: int, bits: int) -> Callable[..., SetResult]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def body(
        context: EvaluationContext, start: Column, stop: Column, step: Column | None = None
    ) -> SetResult:
        columns = (start, stop) if step is None else (start, stop, step)
        rows = context.rows
        numbers = [integers(expand(c, rows)) for c in columns]
        firsts, lasts = numbers[0], numbers[1]
        steps = numbers[2] if step is not None else torch.ones(1, dtype=torch.int64)
        valid = torch.ones(rows, dtype=torch.bool)
        for column in columns:
            valid = valid & validity(column, rows)
        if context.active is not None:
            valid = valid & context.active
        context.report_where(
            valid & (steps == 0), errors.InvalidParameterValue("step size cannot equal zero")
        )
        return _expand_series(firsts, lasts, steps.expand(rows), valid, (oid, low, high))

    return body


def _expand_series(
    firsts: torch.Tensor, lasts: torch.Tensor, steps: torch.Tensor, valid: torch.Tensor,
    kind: tuple[int, int, int],
) -> SetResult:
    counts = []
    rows = zip(firsts.tolist(), lasts.tolist(), steps.tolist(), valid.tolist(), strict=True)
    for first, last, step, ok in rows:
        counts.append(max(0, (last - first) // step + 1) if ok and step else 0)
    total = sum(counts)
    if total > _SERIES_ROWS_MAX:
        raise errors.ProgramLimitExceeded("generate_series makes too many rows in one batch")
    repeated = torch.tensor(counts, dtype=torch.int64)
    index = torch.repeat_interleave(torch.arange(len(counts)), repeated, output_size=total)
    before = torch.cumsum(repeated, 0) - repeated
    place = torch.arange(total) - before[index]
    values = firsts[index] + place * steps[index]
    oid, low, high = kind
    bounded = (int(values.min()), int(values.max())) if total else (low, high)
    column = integer_column(SqlType(oid), values, lo=bounded[0], hi=bounded[1])
    return repeated, (column,)


set_returning("generate_series_int4", "generate_series_step_int4", fallible=True)(
    _series(sqltype.INT4, 32)
)
set_returning("generate_series_int8", "generate_series_step_int8", fallible=True)(
    _series(sqltype.INT8, 64)
)


@rowset("generate_series_numeric", "generate_series_step_numeric", results=(sqltype.NUMERIC,))
def numeric_series(start: Decimal, stop: Decimal, step: Decimal = Decimal(1)) -> Iterable[Decimal]:
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        if not value.is_finite():
            what = "NaN" if value.is_nan() else "infinity"
            label = "step size" if name == "step" else f"{name} value"
            raise errors.InvalidParameterValue(f"{label} cannot be {what}")
    if step.is_zero():
        raise errors.InvalidParameterValue("step size cannot equal zero")
    current = start
    while (current <= stop) if step > 0 else (current >= stop):
        yield current
        current = decimal_math.add(current, step)


@rowset(
    "generate_series_timestamp", results=(sqltype.TIMESTAMP,), needs_context=True
)
def timestamp_series(
    context: EvaluationContext, start: int, stop: int, step: tuple[int, int, int]
) -> Iterable[int]:
    return _time_series(start, stop, step, lambda at: add_interval(at, step))


@rowset(
    "generate_series_timestamptz", results=(sqltype.TIMESTAMPTZ,), needs_context=True
)
def timestamptz_series(
    context: EvaluationContext, start: int, stop: int, step: tuple[int, int, int]
) -> Iterable[int]:
    zone = context.query.types.time_zone
    return _time_series(start, stop, step, lambda at: add_interval_in_zone(at, step, zone))


def _time_series(
    start: int, stop: int, step: tuple[int, int, int], following: Callable[[int], int]
) -> Iterable[int]:
    direction = span(step)
    if direction == 0:
        raise errors.InvalidParameterValue("step size cannot equal zero")
    if not is_finite_timestamp(start):
        return
    current = start
    while (current <= stop) if direction > 0 else (current >= stop):
        yield current
        current = following(current)


# --- arrays ---


@rowset(
    "array_unnest", results=lambda columns: (types.get(columns[0].type.oid).element_oid,)
)
def unnest(array: ArrayValue) -> Iterable[Any]:
    return array.items


@rowset("generate_subscripts", "generate_subscripts_nodir", results=(sqltype.INT4,))
def generate_subscripts(array: ArrayValue, dimension: int, is_reversed: bool = False) -> Any:
    if not 1 <= dimension <= len(array.lengths):
        return ()
    low = array.lower_bounds[dimension - 1]
    found = range(low, low + array.lengths[dimension - 1])
    return reversed(found) if is_reversed else found


@rowset("text_to_table", "text_to_table_null", results=(sqltype.TEXT,))
def string_to_table(
    value: str | None, separator: str | None, null_text: str | None = None
) -> Iterable[str | None]:
    found: list[str | None] = split(value, separator, null_text) or []
    return found
