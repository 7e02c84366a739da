"""count, and exact sums and averages of integers, numerics, money and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Self

import torch
from torch import Tensor

from gpudb import errors
from gpudb.catalog.types.numeric import rounded
from gpudb.column import (
    Column,
    decimal_column,
    decimals,
    from_values,
    integer_column,
    integers,
)
from gpudb.exec.context import QueryContext
from gpudb.exec.functions.accumulators import Base, Ids, accumulator, presence, present_rows
from gpudb.exec.functions.segments import ExactSums, Slots, count
from gpudb.exec.functions.timestamps import divide_interval
from gpudb.expr import AggregateCall
from gpudb.kernels import decimal, decimal_math
from gpudb.kernels.select import is_all
from gpudb.layout import DECIMAL64, INTERVAL, Kind
from gpudb.sqltype import SqlType


@accumulator("count()", "count(any)")
class Count(Base):
    """count(*) and count(x)."""

    def __init__(self, call: AggregateCall, query: QueryContext) -> None:
        super().__init__(call, query)
        self._counts = Slots()

    @property
    def bytes(self) -> int:
        return self._counts.bytes

    def update(self, ids: Ids, groups: int, columns: Sequence[Column], rows: int) -> None:
        strict = 0 if self.call.is_star else min(1, len(columns))
        owner, _, _ = present_rows(ids, columns[:strict], rows, strict)
        count(self._counts.view(groups), owner)

    def merge(self, other: Self, mapping: Ids, groups: int) -> None:
        added = other._counts.view(len(mapping))
        self._counts.view(groups).scatter_add_(0, torch.from_numpy(mapping), added)

    def finish(self, groups: int) -> Column:
        counts = self._counts.view(groups).clone()
        return integer_column(self.type, counts, lo=0, hi=int(counts.max()) if groups else 0)


class NumericSums:
    """Exact sums of integer or numeric columns per group, with display scales and row counts.

    ``host`` holds by group the sums of what only Python decimals hold: NaN, infinities and
    numbers beyond 128 bits. While every row displays ``scale`` decimals no scales are kept.
    """

    def __init__(self) -> None:
        self.sums = ExactSums()
        self.scale = 0
        self.host: dict[int, Decimal] = {}
        self._counts = Slots()
        self._shown: Slots | None = None
        self._is_empty = True

    @property
    def bytes(self) -> int:
        shown = 0 if self._shown is None else self._shown.bytes
        return self.sums.bytes + self._counts.bytes + shown + 128 * len(self.host)

    def counts(self, groups: int) -> Tensor:
        return self._counts.view(groups)

    def add(self, ids: Tensor, groups: int, column: Column) -> None:
        """Add the rows of a column without NULLs, written out."""
        if not column.rows:
            return
        if column.layout.kind is Kind.HOST:
            self._add_host(ids, groups, decimals(column))
            return
        self._show(ids, groups, decimal.row_scales(column))
        count(self._counts.view(groups), ids)
        if column.scale > self.scale:
            self.sums.scale_by(10 ** (column.scale - self.scale), groups)
            self.scale = column.scale
        fitted = column
        if column.scale < self.scale:
            rescaled = decimal.rescaled(
                replace(column, layout=replace(column.layout, kind=Kind.DECIMAL))
                if column.layout.kind is Kind.INT else column, self.scale
            )
            if rescaled is None:
                self._add_decimals(ids.tolist(), decimals(as_decimal(column)))
                return
            fitted = rescaled
        if fitted.layout.kind is Kind.DECIMAL128:
            self.sums.add_wide(ids, groups, decimal.wide(fitted))
        else:
            of = decimal.bounds(fitted)
            self.sums.add(ids, groups, integers(fitted), max(abs(of.lo), abs(of.hi)))

    def merge(self, other: NumericSums, mapping: Tensor, groups: int) -> None:
        size = mapping.shape[0]
        if other._is_empty:
            return
        uniform = other._shown is None and (self._is_empty or self.scale == other.scale)
        if not (uniform and self._shown is None):
            mine, theirs = self._shown_slots(groups), other._shown_slots(size)
            mine.view(groups).scatter_reduce_(0, mapping, theirs.view(size), "amax")
        scale = max(self.scale, other.scale)
        for part, number in ((self, groups), (other, size)):
            if part.scale < scale:
                part.sums.scale_by(10 ** (scale - part.scale), number)
                part.scale = scale
        self._is_empty = False
        self._counts.view(groups).scatter_add_(0, mapping, other._counts.view(size))
        self.sums.merge(other.sums, mapping, groups)
        self._add_decimals(mapping[list(other.host)].tolist(), list(other.host.values()))

    def column(self, type_: SqlType, groups: int) -> Column:
        """The sums as a numeric column, NULL for groups without rows."""
        if not self.host:
            fast = self._fast_column(type_, groups)
            if fast is not None:
                return fast
        return from_values(type_, DECIMAL64, self.values(groups))

    def values(self, groups: int) -> list[Decimal | None]:
        """The sums as Decimals with their display scales, None for groups without rows."""
        counts = self._counts.view(groups).tolist()
        shown = [self.scale] * groups if self._shown is None else (
            self._shown.view(groups).tolist()
        )
        found: list[Decimal | None] = []
        for group, number in enumerate(self.sums.to_python(groups)):
            if not counts[group]:
                found.append(None)
                continue
            value = rounded(decimal_math.scaled(number, self.scale), shown[group])
            extra = self.host.get(group)
            found.append(value if extra is None else decimal_math.add(value, extra))
        return found

    def _fast_column(self, type_: SqlType, groups: int) -> Column | None:
        valid = presence(self._counts.view(groups))
        shown = None if self._shown is None else self._shown.view(groups).clone()
        narrow = self.sums.to_int64(groups)
        if narrow is not None:
            lo, hi = (int(narrow.min()), int(narrow.max())) if groups else (0, 0)
            of = decimal.Bounds(lo, hi)
            if of.fits_64:
                return decimal.narrow_column(
                    type_, narrow, self.scale, valid, of=of, scales=shown
                )
        wide = self.sums.to_wide(groups)
        if wide is None:
            return None
        limit = decimal.LIMIT_128 - 1
        return decimal.wide_column(
            type_, wide, self.scale, valid, of=decimal.Bounds(-limit, limit), scales=shown
        )

    def _show(self, ids: Tensor, groups: int, scales: Tensor | int) -> None:
        """Note the display scales of rows."""
        if self._shown is None and isinstance(scales, int) and (
            self._is_empty or scales == self.scale
        ):
            self._is_empty = False
            self.scale = scales
            return
        shown = self._shown_slots(groups).view(groups)
        self._is_empty = False
        source = torch.as_tensor(scales).to(torch.int64).expand(ids.shape[0])
        shown.scatter_reduce_(0, ids, source, "amax")

    def _shown_slots(self, groups: int) -> Slots:
        if self._shown is None:
            self._shown = Slots()
            here = self._shown.view(groups)
            here.copy_(torch.where(self._counts.view(groups) > 0, self.scale, 0))
        return self._shown

    def _add_host(self, ids: Tensor, groups: int, values: list[Decimal | None]) -> None:
        self._shown_slots(groups)
        self._is_empty = False
        count(self._counts.view(groups), ids)
        self._add_decimals(ids.tolist(), values)

    def _add_decimals(self, ids: list[int], values: Sequence[Decimal | None]) -> None:
        for group, value in zip(ids, values, strict=True):
            if value is not None:
                known = self.host.get(group)
                self.host[group] = value if known is None else decimal_math.add(known, value)


def as_decimal(column: Column) -> Column:
    """An integer column as a numeric one."""
    if column.layout.kind is not Kind.INT:
        return column
    return decimal_column(
        column.type, integers(column), 0, column.valid, lo=column.lo, hi=column.hi
    )


class NumericAccumulator(Base):
    """The state of sums and averages of integers and numerics."""

    def __init__(self, call: AggregateCall, query: QueryContext) -> None:
        super().__init__(call, query)
        self.state = NumericSums()

    @property
    def bytes(self) -> int:
        return self.state.bytes

    def update(self, ids: Ids, groups: int, columns: Sequence[Column], rows: int) -> None:
        owner, (column, *_), _ = present_rows(ids, columns[:1], rows, 1)
        self.state.add(owner, groups, column)

    def merge(self, other: Self, mapping: Ids, groups: int) -> None:
        self.state.merge(other.state, torch.from_numpy(mapping), groups)


class IntegerSum(NumericAccumulator):
    """Sums that stay integers of 64 bits; 22003 where one does not fit."""

    overflow = "bigint out of range"

    def finish(self, groups: int) -> Column:
        sums = self.state.sums.to_int64(groups)
        if sums is None:
            raise errors.NumericValueOutOfRange(self.overflow)
        lo, hi = (int(sums.min()), int(sums.max())) if groups else (0, 0)
        return integer_column(
            self.type, sums, presence(self.state.counts(groups)), lo=lo, hi=hi
        )


@accumulator("sum(int2)", "sum(int4)", fallible=True)
class BigintSum(IntegerSum):
    """sum of int2 and int4: bigint."""


@accumulator("sum(money)", fallible=True)
class MoneySum(IntegerSum):
    overflow = "money out of range"


@accumulator("sum(int8)", "sum(numeric)", fallible=True)
class NumericSum(NumericAccumulator):
    """sum of int8 and numeric: numeric, with the largest display scale of the group's rows."""

    def finish(self, groups: int) -> Column:
        return self.state.column(self.type, groups)


@accumulator("avg(int2)", "avg(int4)", "avg(int8)", "avg(numeric)", fallible=True)
class NumericAverage(NumericAccumulator):
    """avg of integers and numerics, with the decimals of PostgreSQL's division."""

    def finish(self, groups: int) -> Column:
        sums = self.state.column(self.type, groups)
        counts = self.state.counts(groups)
        divisor = decimal_column(
            self.type, counts.clamp(min=1), 0, lo=1, hi=max(int(counts.max()), 1) if groups else 1
        )
        fast = decimal.divide(sums, divisor) if groups else sums
        if fast is not None:
            return fast
        found = [
            None if value is None else decimal_math.divide(value, Decimal(number))
            for value, number in zip(self.state.values(groups), counts.tolist(), strict=True)
        ]
        return from_values(self.type, DECIMAL64, found)


class IntervalAccumulator(Base):
    """Exact sums of months, days and microseconds."""

    def __init__(self, call: AggregateCall, query: QueryContext) -> None:
        super().__init__(call, query)
        self._parts = tuple(ExactSums() for _ in range(3))
        self._counts = Slots()

    @property
    def bytes(self) -> int:
        return self._counts.bytes + sum(part.bytes for part in self._parts)

    def update(self, ids: Ids, groups: int, columns: Sequence[Column], rows: int) -> None:
        owner, (column, *_), _ = present_rows(ids, columns[:1], rows, 1)
        count(self._counts.view(groups), owner)
        for sums, part in zip(self._parts, column.data, strict=True):
            largest = int(part.to(torch.float64).abs().max()) + 1024 if part.shape[0] else 0
            sums.add(owner, groups, part.to(torch.int64), largest)

    def merge(self, other: Self, mapping: Ids, groups: int) -> None:
        owner = torch.from_numpy(mapping)
        self._counts.view(groups).scatter_add_(0, owner, other._counts.view(len(mapping)))
        for sums, added in zip(self._parts, other._parts, strict=True):
            sums.merge(added, owner, groups)

    def totals(self, groups: int) -> Column:
        """The sums; 22008 beyond interval."""
        parts = []
        for sums, dtype in zip(self._parts, (torch.int32, torch.int32, torch.int64), strict=True):
            part = sums.to_int64(groups)
            if part is None or not is_all(part.to(dtype) == part):
                raise errors.DatetimeFieldOverflow("interval out of range")
            parts.append(part.to(dtype))
        data = tuple(parts)
        return Column(self.type, INTERVAL, data, presence(self._counts.view(groups)))


@accumulator("sum(interval)", fallible=True)
class IntervalSum(IntervalAccumulator):
    def finish(self, groups: int) -> Column:
        return self.totals(groups)


@accumulator("avg(interval)", fallible=True)
class IntervalAverage(IntervalAccumulator):
    """The sum divided as intervals are: fractions of months become days, those of days time."""

    def finish(self, groups: int) -> Column:
        sums = self.totals(groups)
        counts = self._counts.view(groups).tolist()
        parts = zip(*(buffer.tolist() for buffer in sums.data), strict=True)
        found = [
            divide_interval(value, float(rows)) if rows else None
            for value, rows in zip(parts, counts, strict=True)
        ]
        return from_values(self.type, INTERVAL, found)
