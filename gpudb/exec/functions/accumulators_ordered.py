"""Ordered-set and hypothetical-set aggregates: percentiles, mode, rank and its like."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from gpudb import errors
from gpudb.catalog.types import ArrayValue
from gpudb.catalog.types.intervals import checked
from gpudb.column import (
    Column,
    expand,
    float_column,
    from_values,
    integer_column,
    take_rows,
    to_values,
)
from gpudb.exec.conversions import data_type
from gpudb.exec.functions.accumulators import accumulator
from gpudb.exec.functions.accumulators_collected import Collecting, Ordered
from gpudb.exec.functions.timestamps import multiply_interval
from gpudb.kernels.concat import concat
from gpudb.kernels.order import OrderKey, ordering_words, permutation
from gpudb.sqltype import BIGINT

Parts = tuple[int, int, int]
"""Months, days and microseconds of an interval."""


def checked_fraction(value: float) -> float:
    """A percentile's fraction; 22003 outside of [0, 1]."""
    if not 0 <= value <= 1:
        raise errors.NumericValueOutOfRange(
            f"percentile value {_short(value)} is not between 0 and 1"
        )
    return value


def _short(value: float) -> str:
    """The number as C's %g prints it."""
    if math.isfinite(value):
        return format(value, "g")
    return "NaN" if math.isnan(value) else ("-" if value < 0 else "") + "Infinity"


class Percentile(Collecting):
    """The direct argument is a fraction, or an array of them; NULL makes NULL."""

    strict = 1

    def finish(self, groups: int) -> Column:
        found = self.ordered(groups)
        if found is None:
            return self.nulls(groups)
        fractions = to_values(found.direct[0])
        values = to_values(found.arguments[0])
        results: list[Any] = []
        for start, stop in zip(found.starts, found.starts[1:], strict=False):
            if start == stop or fractions[start] is None:
                results.append(None)
            else:
                results.append(self.of_group(values[start:stop], fractions[start]))
        return from_values(self.type, data_type(self.type.oid, self.query).layout, results)

    def of_group(self, values: list[Any], fraction: Any) -> Any:
        """The percentile, or the array of percentiles, of sorted values."""
        if not isinstance(fraction, ArrayValue):
            return self.at(values, checked_fraction(fraction))
        for item in fraction.items:
            if item is not None:
                checked_fraction(item)
        items = tuple(
            None if item is None else self.at(values, item) for item in fraction.items
        )
        element = data_type(self.type.oid, self.query).element_oid
        return ArrayValue(element, items, fraction.lengths, fraction.lower_bounds)

    def at(self, values: list[Any], fraction: float) -> Any:
        raise NotImplementedError


@accumulator(
    "percentile_disc(float8,anyelement)", "percentile_disc(_float8,anyelement)", fallible=True
)
class DiscretePercentile(Percentile):
    """The first value whose position is at least the fraction of the rows."""

    def at(self, values: list[Any], fraction: float) -> Any:
        return values[max(math.ceil(fraction * len(values)), 1) - 1]


class ContinuousPercentile(Percentile):
    """Between the two values around the fraction's position."""

    @staticmethod
    def between(low: Any, high: Any, part: float) -> Any:
        """The value at ``part`` of the way from low to high."""
        raise NotImplementedError

    def at(self, values: list[Any], fraction: float) -> Any:
        position = fraction * (len(values) - 1)
        first = math.floor(position)
        low, high = values[first], values[math.ceil(position)]
        if math.ceil(position) == first:
            return low
        return self.between(low, high, position - first)


@accumulator(
    "percentile_cont(float8,float8)", "percentile_cont(_float8,float8)", fallible=True
)
class FloatPercentile(ContinuousPercentile):
    @staticmethod
    def between(low: float, high: float, part: float) -> float:
        return low + part * (high - low)


@accumulator(
    "percentile_cont(float8,interval)", "percentile_cont(_float8,interval)", fallible=True
)
class IntervalPercentile(ContinuousPercentile):
    @staticmethod
    def between(low: Parts, high: Parts, part: float) -> Parts:
        gap = checked(high[0] - low[0], high[1] - low[1], high[2] - low[2])
        step = multiply_interval(gap, part)
        return checked(low[0] + step[0], low[1] + step[1], low[2] + step[2])


def _changes(words: list[Tensor], rows: int) -> Tensor:
    """bool (R): rows that differ from the one before; the first does."""
    found = torch.zeros(rows, dtype=torch.bool)
    found[:1] = True
    for word in words:
        found[1:] |= word[1:] != word[:-1]
    return found


@accumulator("mode(anyelement)")
class Mode(Collecting):
    """The most frequent value, the first in order of those equally frequent."""

    strict = 1

    def finish(self, groups: int) -> Column:
        found = self.ordered(groups)
        if found is None:
            return self.nulls(groups)
        value = found.arguments[0]
        keys = [OrderKey(integer_column(BIGINT, found.ids)), OrderKey(value)]
        firsts = _changes(ordering_words(keys, found.rows), found.rows).nonzero().squeeze(1)
        ends = torch.cat((firsts[1:], torch.tensor([found.rows])))
        lengths = ends - firsts
        owner = found.ids.index_select(0, firsts)
        longest = torch.zeros(groups, dtype=torch.int64)
        longest.scatter_reduce_(0, owner, lengths, "amax")
        is_best = lengths == longest.index_select(0, owner)
        rows = torch.full((groups,), found.rows, dtype=torch.int64)
        rows.scatter_reduce_(0, owner[is_best], firsts[is_best], "amin")
        missing = rows == found.rows
        rows = torch.where(missing, 0, rows)
        taken = expand(take_rows(value, rows, found.rows), groups)
        return Column(
            self.type, taken.layout, taken.data, ~missing, taken.base, taken.step, taken.scale,
            dictionary=taken.dictionary, objects=taken.objects,
        )


class Hypothetical(Collecting):
    """Where a row of the direct arguments would stand among the group's rows."""

    def finish(self, groups: int) -> Column:
        found = self.ordered(groups)
        if found is None:
            zeros = torch.zeros(groups, dtype=torch.int64)
            return self.result(zeros, zeros, zeros, zeros)
        return self.result(*self._places(found, groups))

    def _places(self, found: Ordered, groups: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Per group: rows before the hypothetical one, distinct rows before it, rows not after
        it, rows.
        """
        starts = torch.tensor(found.starts)
        counts = starts[1:] - starts[:-1]
        present = (counts > 0).nonzero().squeeze(1)
        firsts = starts.index_select(0, present)
        rows = found.rows + present.shape[0]
        keys = [OrderKey(integer_column(BIGINT, torch.cat((found.ids, present))))]
        for key, column, direct in zip(
            self.call.order_by, found.keys, found.direct, strict=True
        ):
            added = take_rows(direct, firsts, found.rows)
            joined = concat([(column, found.rows), (added, present.shape[0])])
            keys.append(OrderKey(joined, key.is_descending, key.nulls_first))
        words = ordering_words(keys, rows)
        index = permutation(words, rows)
        ranks = torch.empty(rows, dtype=torch.int64)
        changes = _changes([word.index_select(0, index) for word in words], rows)
        ranks[index] = changes.to(torch.int64).cumsum(0)
        own = torch.zeros(groups, dtype=torch.int64)
        own[present] = ranks[found.rows :]
        real = ranks[: found.rows]
        target = own.index_select(0, found.ids)
        before = torch.zeros(groups, dtype=torch.int64)
        before.scatter_add_(0, found.ids, (real < target).to(torch.int64))
        until = torch.zeros(groups, dtype=torch.int64)
        until.scatter_add_(0, found.ids, (real <= target).to(torch.int64))
        least = own.clone()
        least.scatter_reduce_(0, found.ids, real, "amin")
        return before, own - least, until, counts

    def result(self, before: Tensor, distinct: Tensor, until: Tensor, rows: Tensor) -> Column:
        raise NotImplementedError


@accumulator("rank(any)")
class Rank(Hypothetical):
    def result(self, before: Tensor, distinct: Tensor, until: Tensor, rows: Tensor) -> Column:
        return integer_column(self.type, before + 1)


@accumulator("dense_rank(any)")
class DenseRank(Hypothetical):
    def result(self, before: Tensor, distinct: Tensor, until: Tensor, rows: Tensor) -> Column:
        return integer_column(self.type, distinct + 1)


@accumulator("percent_rank(any)")
class PercentRank(Hypothetical):
    def result(self, before: Tensor, distinct: Tensor, until: Tensor, rows: Tensor) -> Column:
        return float_column(self.type, before.to(torch.float64) / rows.clamp(min=1))


@accumulator("cume_dist(any)")
class CumulativeDistribution(Hypothetical):
    def result(self, before: Tensor, distinct: Tensor, until: Tensor, rows: Tensor) -> Column:
        return float_column(self.type, (until + 1).to(torch.float64) / (rows + 1))


