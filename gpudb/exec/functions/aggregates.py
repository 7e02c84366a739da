"""Aggregates: count, sum, avg, min, max, bool_and, bit_and and their like.

An Aggregate is made for one call of a query. ``partial`` reduces the rows of one batch to a state
of ``groups`` groups, ``merge`` adds such a state to the whole one, in sequence, and ``result`` is
the column of the groups. Rows come without those that FILTER or a NULL argument excludes, so a
group may be in a state without any row: its result is what PostgreSQL gives for no input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import torch
from torch import Tensor

from gpudb import errors, sqltype
from gpudb.catalog.functions import aggregate
from gpudb.catalog.types.numeric import EXACT
from gpudb.column import (
    Column,
    booleans,
    decimal_column,
    floats,
    from_values,
    host_column,
    integer_column,
    integers,
    take,
    to_values,
)
from gpudb.exec.context import QueryContext
from gpudb.expr import AggregateCall
from gpudb.kernels import decimal as decimals
from gpudb.kernels import decimal_math, order, reduce
from gpudb.kernels.concat import concat
from gpudb.layout import DECIMAL64, FLOAT32, FLOAT64, INT64, Kind, Layout
from gpudb.sqltype import SqlType


@dataclass(frozen=True, slots=True)
class GroupRows:
    """Rows for an aggregate: argument columns (``rows`` rows or constants) and group numbers.

    ``ids`` int64 (R), None when there is one group; ``known`` is shared by the aggregates of a
    batch (and keeps the tensors alive whose identity is the key).
    """

    columns: tuple[Column, ...]
    ids: Tensor | None
    groups: int
    rows: int
    known: dict[int, Tensor] = field(default_factory=dict)

    def count(self) -> Tensor:
        """The rows of each group, int64 (G); computed once for aggregates over the same rows."""
        key = id(self.ids) if self.ids is not None else self.rows
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = reduce.count(self.ids, self.groups, self.rows)
        return found


class Aggregate:
    """One aggregate call. ``skips_nulls``: rows with a NULL argument never reach it;
    ``is_ordered``: its result depends on the order of the rows; ``is_ordered_set``: it sorts them
    itself (WITHIN GROUP) and gets the direct arguments after the others.
    """

    skips_nulls = True
    is_ordered = False
    is_ordered_set = False

    def __init__(self, call: AggregateCall, context: QueryContext) -> None:
        self.call = call
        self.context = context
        self.type: SqlType = call.type

    def partial(self, rows: GroupRows) -> Any:
        """The state of the rows' groups."""
        raise NotImplementedError

    def merge(self, state: Any, part: Any, ids: Tensor, groups: int) -> Any:
        """``state`` (None at first) with a part added whose group i is number ``ids[i]``."""
        raise NotImplementedError

    def result(self, state: Any, groups: int) -> Column:
        """The value of each group."""
        raise NotImplementedError


class Tensors(Aggregate):
    """An aggregate whose state is tensors (G) that merge by addition."""

    def merge(self, state: Any, part: Any, ids: Tensor, groups: int) -> Any:
        if state is None:
            state = tuple(torch.zeros(0, dtype=p.dtype) for p in part)
        return tuple(
            reduce.grown(whole, groups).scatter_add_(0, ids, piece)
            for whole, piece in zip(state, part, strict=True)
        )


@aggregate("count()", "count(any)")
class Count(Tensors):
    """count(*) and count(x)."""

    def partial(self, rows: GroupRows) -> Any:
        return (rows.count(),)

    def result(self, state: Any, groups: int) -> Column:
        counts = state[0]
        high = int(counts.max()) if groups else 0
        return integer_column(self.type, counts, lo=0, hi=high)


def presence(counts: Tensor) -> Tensor | None:
    """bool (G): the groups with rows; None when all have some."""
    valid = counts > 0
    return None if bool(valid.all()) else valid


def expanded(column: Column, rows: int) -> Column:
    """The argument with its rows written out."""
    from gpudb.column import expand

    return expand(column, rows)


# --- exact sums ------------------------------------------------------------


@dataclass(slots=True)
class ExactState:
    """Sums of scaled integers: digits at ``scale``, rows per group, display scales, and the rows
    that only Decimals hold (NaN, infinities, huge numbers) apart, by group.
    """

    limbs: list[Tensor]
    counts: Tensor
    scale: int
    shown: Tensor
    host: dict[int, Decimal]


class ExactSum(Aggregate):
    """The exact sum and the count of integers or numerics."""

    def partial(self, rows: GroupRows) -> ExactState:
        return exact_state(expanded(rows.columns[0], rows.rows), rows)

    def merge(self, state: Any, part: Any, ids: Tensor, groups: int) -> Any:
        return merge_exact(state, part, ids, groups)


def exact_state(column: Column, rows: GroupRows) -> ExactState:
    """The exact sums of a column's groups."""
    ids, groups = rows.ids, rows.groups
    counts = rows.count()
    if column.layout.kind is Kind.HOST:
        owner = [0] * rows.rows if ids is None else ids.tolist()
        host: dict[int, Decimal] = {}
        shown = [0] * groups
        for number, value in zip(owner, to_values(column), strict=True):
            host[number] = decimal_math.add(host[number], value) if number in host else value
            if value.is_finite():
                shown[number] = max(shown[number], -int(value.as_tuple().exponent))
        zero = [torch.zeros(groups, dtype=torch.int64) for _ in range(2)]
        return ExactState(zero, counts, 0, torch.tensor(shown, dtype=torch.int64), host)
    limbs = reduce.exact_sums(column, ids, groups, rows.rows)
    if column.layout.has_row_scale:
        scales = column.data[-1].to(torch.int64)
        found = reduce.extreme(scales, ids, groups, is_greatest=True)
        shown_scales = torch.where(counts > 0, found, 0)
    else:
        shown_scales = torch.where(counts > 0, column.scale, 0)
    return ExactState(limbs, counts, column.scale, shown_scales, {})


def merge_exact(
    state: ExactState | None, part: ExactState, ids: Tensor, groups: int
) -> ExactState:
    if state is None:
        empty = torch.zeros(0, dtype=torch.int64)
        state = ExactState([empty, empty.clone()], empty, part.scale, empty, {})
    scale = max(state.scale, part.scale)
    limbs = reduce.add_limbs(_at_scale(state, scale), _at_scale(part, scale), ids, groups)
    counts = reduce.grown(state.counts, groups).scatter_add_(0, ids, part.counts)
    shown = reduce.grown(state.shown, groups).scatter_reduce_(0, ids, part.shown, "amax")
    host = dict(state.host)
    numbers = ids.tolist() if part.host else []
    for group, value in part.host.items():
        number = numbers[group]
        host[number] = decimal_math.add(host[number], value) if number in host else value
    return ExactState(limbs, counts, scale, shown, host)


def _at_scale(state: ExactState, scale: int) -> list[Tensor]:
    if state.scale == scale:
        return state.limbs
    factor = 10 ** (scale - state.scale)
    numbers = [value * factor for value in reduce.to_python(state.limbs)]
    digits = [[(v >> (32 * k)) & 0xFFFFFFFF for v in numbers] for k in range(3)]
    top = [v >> 96 for v in numbers]
    return [torch.tensor(d, dtype=torch.int64) for d in (*digits, top)]


def exact_decimals(state: ExactState, groups: int) -> list[Decimal | None]:
    """The sums as Decimals with their display scale, None for groups without rows."""
    found: list[Decimal | None] = []
    sums = reduce.to_python(state.limbs)
    for number, (value, rows, shown) in enumerate(
        zip(sums, state.counts.tolist(), state.shown.tolist(), strict=True)
    ):
        if not rows:
            found.append(None)
            continue
        exact = decimal_math.scaled(value, state.scale)
        if number in state.host:
            exact = decimal_math.add(exact, state.host[number])
        found.append(_shown(exact, shown))
    return found


def _shown(value: Decimal, scale: int) -> Decimal:
    if not value.is_finite():
        return value
    return value.quantize(Decimal(1).scaleb(-scale), context=EXACT)


@aggregate("sum(int2)", "sum(int4)", fallible=True)
class SumToBigint(ExactSum):
    """sum of int2 and int4: bigint."""

    def result(self, state: ExactState, groups: int) -> Column:
        sums = reduce.to_int64(state.limbs)
        if sums is None:
            raise errors.NumericValueOutOfRange("bigint out of range")
        return integer_column(self.type, sums, presence(state.counts))


@aggregate("sum(int8)", "sum(numeric)", fallible=True)
class SumToNumeric(ExactSum):
    """sum of int8 and numeric: numeric, exact."""

    def result(self, state: ExactState, groups: int) -> Column:
        sums = None if state.host else reduce.to_int64(state.limbs)
        if sums is None:
            return from_values(self.type, DECIMAL64, exact_decimals(state, groups))
        valid = presence(state.counts)
        of = decimals.Bounds(
            int(sums.min()) if groups else 0, int(sums.max()) if groups else 0
        )
        present = state.shown if valid is None else state.shown[valid]
        if bool((present == state.scale).all()):
            return decimals.narrow_column(self.type, sums, state.scale, valid, of=of)
        return decimals.narrow_column(
            self.type, sums, state.scale, valid, of=of, scales=state.shown
        )


@aggregate("avg(int2)", "avg(int4)", "avg(int8)", "avg(numeric)")
class AverageToNumeric(ExactSum):
    """avg of integers and numerics, with the decimals of PostgreSQL's division."""

    def result(self, state: ExactState, groups: int) -> Column:
        quotients = self._divided(state)
        if quotients is not None:
            return quotients
        found: list[Decimal | None] = []
        for value, rows in zip(
            exact_decimals(state, groups), state.counts.tolist(), strict=True
        ):
            found.append(None if value is None else decimal_math.divide(value, Decimal(rows)))
        return from_values(self.type, DECIMAL64, found)


    def _divided(self, state: ExactState) -> Column | None:
        """The quotients column-wise, None when some sum is too large for that."""
        sums = None if state.host else reduce.to_int64(state.limbs)
        if sums is None:
            return None
        of = decimals.Bounds(
            int(sums.min()) if len(sums) else 0, int(sums.max()) if len(sums) else 0
        )
        valid = presence(state.counts)
        left = decimals.narrow_column(
            self.type, sums, state.scale, valid, of=of, scales=state.shown
        )
        return decimals.divide(left, decimal_column(self.type, state.counts, 0))


@aggregate("sum(money)", fallible=True)
class SumMoney(ExactSum):
    def result(self, state: ExactState, groups: int) -> Column:
        sums = reduce.to_int64(state.limbs)
        if sums is None:
            raise errors.NumericValueOutOfRange("money out of range")
        return integer_column(self.type, sums, presence(state.counts))


# --- floats, intervals ------------------------------------------------------------


class FloatSum(Tensors):
    """Sums in float64, batch by batch in sequence."""

    def partial(self, rows: GroupRows) -> Any:
        values = floats(expanded(rows.columns[0], rows.rows))
        counts = rows.count()
        sums = reduce.total(values, rows.ids, rows.groups)
        has_infinity = reduce.total(
            values.isinf().to(torch.int64), rows.ids, rows.groups
        )
        return sums, counts, has_infinity

    def checked(self, sums: Tensor, infinities: Tensor, counts: Tensor, width: int) -> Column:
        values = sums.to(torch.float32) if width == 4 else sums
        if bool((values.isinf() & (infinities == 0)).any()):
            raise errors.NumericValueOutOfRange("value out of range: overflow")
        kind = FLOAT32 if width == 4 else FLOAT64
        return Column(self.type, kind, (values,), presence(counts))


@aggregate("sum(float4)", "sum(float8)", fallible=True)
class SumFloat(FloatSum):
    def result(self, state: Any, groups: int) -> Column:
        width = 4 if self.type.oid == sqltype.FLOAT4 else 8
        return self.checked(state[0], state[2], state[1], width)


@aggregate("avg(float4)", "avg(float8)", fallible=True)
class AverageFloat(FloatSum):
    def result(self, state: Any, groups: int) -> Column:
        means = state[0] / state[1].clamp(min=1)
        return self.checked(means, state[2], state[1], 8)


class IntervalSum(Tensors):
    def partial(self, rows: GroupRows) -> Any:
        parts = expanded(rows.columns[0], rows.rows).data
        counts = rows.count()
        return (*(reduce.total(p.to(torch.int64), rows.ids, rows.groups) for p in parts), counts)


@aggregate("sum(interval)", fallible=True)
class SumInterval(IntervalSum):
    def result(self, state: Any, groups: int) -> Column:
        values = [
            (m, d, us) if rows else None
            for m, d, us, rows in zip(*(part.tolist() for part in state), strict=True)
        ]
        for value in values:
            if value is not None and not (
                abs(value[0]) < 2**31 and abs(value[1]) < 2**31
            ):
                raise errors.DatetimeFieldOverflow("interval out of range")
        return from_values(self.type, Layout(Kind.INTERVAL, 4), values)


@aggregate("avg(interval)", fallible=True)
class AverageInterval(IntervalSum):
    """sum / count as interval division does it: fractions of months and days go down."""

    def result(self, state: Any, groups: int) -> Column:
        from gpudb.catalog import functions

        body = functions.SCALARS["interval_div"].body
        from gpudb.column import float_column
        from gpudb.exec.evaluation import EvaluationContext

        counts = state[3]
        sums = SumInterval.result(self, state, groups)  # type: ignore[arg-type]
        divisor = float_column(sqltype.DOUBLE, counts.clamp(min=1).to(torch.float64))
        context = EvaluationContext(self.context, groups)
        found: Column = body(context, sums, divisor)
        return replace(found, type=self.type, valid=presence(counts))


# --- least and greatest ------------------------------------------------------------

_FAST_KINDS = (Kind.INT, Kind.DECIMAL, Kind.BOOL)


class ExtremeAggregate(Aggregate):
    """min and max by the type's default order: the state is the best value of each group."""

    is_greatest = False

    def partial(self, rows: GroupRows) -> Any:
        column = expanded(rows.columns[0], rows.rows)
        if column.layout.kind is Kind.INT:
            best = reduce.extreme(
                integers(column), rows.ids, rows.groups, is_greatest=self.is_greatest
            )
            counts = rows.count()
            return _number_state(column, best, counts > 0)
        if not rows.rows:
            return None
        best = reduce.best_rows(
            order.words(column), rows.ids, rows.groups, is_greatest=self.is_greatest
        )
        return _taken(column, best)

    def merge(self, state: Any, part: Any, ids: Tensor, groups: int) -> Any:
        if part is None:
            return state
        if state is None:
            place = torch.full((groups,), -1, dtype=torch.int64)
            place[ids] = torch.arange(ids.shape[0])
            return _taken(part, place)
        both = concat([(state, state.rows), (part, part.rows)])
        owner = torch.cat((torch.arange(state.rows), ids))
        if both.valid is not None:
            rows = both.valid.nonzero().squeeze(1)
        else:
            rows = torch.arange(both.rows)
        candidates = take(both, rows) if rows.shape[0] != both.rows else both
        if not rows.shape[0]:
            return _taken(both, torch.full((groups,), -1, dtype=torch.int64))
        best = reduce.best_rows(
            order.words(candidates), owner.index_select(0, rows), groups,
            is_greatest=self.is_greatest,
        )
        return _taken(candidates, best)

    def result(self, state: Any, groups: int) -> Column:
        if state is None:
            from gpudb.column import null_column
            from gpudb.exec.conversions import data_type

            kind = data_type(self.type.oid, self.context).layout
            return null_column(self.type, kind, groups)
        short = groups - state.rows
        if short > 0:
            state = _taken(state, torch.cat(
                (torch.arange(state.rows), torch.full((short,), -1, dtype=torch.int64))
            ))
        found: Column = replace(state, type=self.type)
        return found


def _number_state(column: Column, values: Tensor, present: Tensor) -> Column:
    valid = None if bool(present.all()) else present
    safe = values if valid is None else torch.where(present, values, 0)
    return Column(
        column.type, INT64, (safe,), valid, lo=None if valid is not None else column.lo,
        hi=None if valid is not None else column.hi,
    )


def _taken(column: Column, rows: Tensor) -> Column:
    """The rows of a column at ``rows``, NULL where the number is -1."""
    missing = rows < 0
    if not bool(missing.any()):
        from gpudb.column import take_rows

        return take_rows(column, rows, column.rows)
    from gpudb.kernels.gather import gather_or_null

    return gather_or_null(column, rows)


_ORDERED = (
    "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "money", "text", "bpchar",
    "date", "time", "timetz", "timestamp", "timestamptz", "interval", "inet", "tid", "anyarray",
    "anyenum", "xid8", "pg_lsn",
)


@aggregate(*(f"min({name})" for name in _ORDERED))
class Minimum(ExtremeAggregate):
    is_greatest = False


@aggregate(*(f"max({name})" for name in _ORDERED))
class Maximum(ExtremeAggregate):
    is_greatest = True


# --- booleans and bits ------------------------------------------------------------


class BooleanAggregate(Tensors):
    """Counts rows and true rows."""

    def partial(self, rows: GroupRows) -> Any:
        values = booleans(expanded(rows.columns[0], rows.rows)).to(torch.int64)
        return (
            reduce.total(values, rows.ids, rows.groups),
            rows.count(),
        )


@aggregate("bool_and(bool)", "every(bool)")
class BoolAnd(BooleanAggregate):
    def result(self, state: Any, groups: int) -> Column:
        return Column(
            self.type, Layout(Kind.BOOL, 1), (state[0] == state[1],), presence(state[1])
        )


@aggregate("bool_or(bool)")
class BoolOr(BooleanAggregate):
    def result(self, state: Any, groups: int) -> Column:
        return Column(self.type, Layout(Kind.BOOL, 1), (state[0] > 0,), presence(state[1]))


class BitAggregate(Tensors):
    """Counts, for each bit, the rows that have it: any bitwise reduction follows."""

    bits = 64

    def partial(self, rows: GroupRows) -> Any:
        values = integers(expanded(rows.columns[0], rows.rows))
        counts = rows.count()
        width = {sqltype.INT2: 16, sqltype.INT4: 32}.get(self.type.oid, 64)
        ones = [
            reduce.total((values >> bit) & 1, rows.ids, rows.groups) for bit in range(width)
        ]
        return (counts, *ones)

    def joined(self, state: Any, is_set: Callable[[Tensor, Tensor], Tensor]) -> Column:
        counts, *ones = state
        value = torch.zeros_like(counts)
        for bit, count in enumerate(ones):
            value |= is_set(count, counts).to(torch.int64) << bit
        missing = 64 - len(ones)
        value = (value << missing) >> missing
        return integer_column(self.type, value, presence(counts))


_INTEGER_NAMES = ("int2", "int4", "int8")


@aggregate(*(f"bit_and({name})" for name in _INTEGER_NAMES))
class BitAnd(BitAggregate):
    def result(self, state: Any, groups: int) -> Column:
        return self.joined(state, lambda count, rows: count == rows)


@aggregate(*(f"bit_or({name})" for name in _INTEGER_NAMES))
class BitOr(BitAggregate):
    def result(self, state: Any, groups: int) -> Column:
        return self.joined(state, lambda count, rows: count > 0)


@aggregate(*(f"bit_xor({name})" for name in _INTEGER_NAMES))
class BitXor(BitAggregate):
    def result(self, state: Any, groups: int) -> Column:
        return self.joined(state, lambda count, rows: (count & 1) == 1)


@aggregate("any_value(anyelement)")
class AnyValue(ExtremeAggregate):
    """The first value of each group in sequence."""

    def partial(self, rows: GroupRows) -> Any:
        if not rows.rows:
            return None
        column = expanded(rows.columns[0], rows.rows)
        ids = torch.zeros(rows.rows, dtype=torch.int64) if rows.ids is None else rows.ids
        return _taken(column, reduce.first_rows(ids, rows.groups))


def objects_column(type_: SqlType, values: Sequence[Any]) -> Column:
    """A HOST column, None = NULL."""
    return host_column(type_, list(values))

