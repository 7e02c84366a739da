"""Sums and averages of floating-point numbers, added in row order as PostgreSQL adds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from gpudb import errors
from gpudb.column import Column, float_column
from gpudb.exec.context import QueryContext
from gpudb.exec.functions.accumulators import Base, Ids, accumulator, presence, present_rows
from gpudb.exec.functions.segments import Slots, count
from gpudb.expr import AggregateCall


def overflow() -> errors.SqlError:
    return errors.NumericValueOutOfRange("value out of range: overflow")


class FloatAccumulator(Base):
    """Sums in ``dtype``, row counts, and which groups met an infinity."""

    dtype = torch.float64

    def __init__(self, call: AggregateCall, query: QueryContext) -> None:
        super().__init__(call, query)
        self._sums = Slots(self.dtype)
        self._counts = Slots()
        self._infinite = Slots(torch.bool)

    @property
    def bytes(self) -> int:
        return self._sums.bytes + self._counts.bytes + self._infinite.bytes

    def update(self, ids: Ids, groups: int, columns: Sequence[Column], rows: int) -> None:
        owner, (column, *_), _ = present_rows(ids, columns[:1], rows, 1)
        values = column.data[0].to(self.dtype)
        count(self._counts.view(groups), owner)
        self._sums.view(groups).scatter_add_(0, owner, values)
        infinite = values.isinf()
        if bool(infinite.any()):
            self._infinite.view(groups).index_fill_(0, owner[infinite], True)

    def merge(self, other: Self, mapping: Ids, groups: int) -> None:
        owner, size = torch.from_numpy(mapping), len(mapping)
        self._counts.view(groups).scatter_add_(0, owner, other._counts.view(size))
        self._sums.view(groups).scatter_add_(0, owner, other._sums.view(size))
        self._infinite.view(groups).index_fill_(0, owner[other._infinite.view(size)], True)

    def totals(self, groups: int) -> tuple[Tensor, Tensor]:
        """Sums and counts (G); 22003 where finite numbers add up to infinity."""
        sums = self._sums.view(groups).clone()
        if bool((sums.isinf() & ~self._infinite.view(groups)).any()):
            raise overflow()
        return sums, self._counts.view(groups)


@accumulator("sum(float8)", fallible=True)
class DoubleSum(FloatAccumulator):
    def finish(self, groups: int) -> Column:
        sums, counts = self.totals(groups)
        return float_column(self.type, sums, presence(counts))


@accumulator("sum(float4)", fallible=True)
class RealSum(DoubleSum):
    """Single precision throughout, as PostgreSQL adds float4."""

    dtype = torch.float32


@accumulator("avg(float4)", "avg(float8)", fallible=True)
class FloatAverage(FloatAccumulator):
    def finish(self, groups: int) -> Column:
        sums, counts = self.totals(groups)
        return float_column(self.type, sums / counts.clamp(min=1), presence(counts))
