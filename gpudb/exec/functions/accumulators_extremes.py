"""min and max of every ordered type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor

from gpudb.catalog.types import DataType
from gpudb.column import INT64_MAX, INT64_MIN, Column, expand, integers, take_rows, to_values
from gpudb.exec.context import QueryContext
from gpudb.exec.conversions import data_type
from gpudb.exec.functions.accumulators import Base, Ids, accumulator, present_rows
from gpudb.exec.functions.segments import Slots
from gpudb.expr import AggregateCall
from gpudb.kernels import order
from gpudb.kernels.concat import concat
from gpudb.kernels.select import bytes_of, is_all, keep, rows_of
from gpudb.layout import INT64, Kind
from gpudb.sqltype import STRINGS

_PIECE_ROWS_MIN = 1 << 16
"""Candidates are reduced once they are twice the groups, but not while they are so few."""


def best_rows(words: Sequence[Tensor], ids: Tensor, groups: int, *, is_greatest: bool) -> Tensor:
    """The last row of those whose words are greatest (least) in their group; -1 for no row.

    PostgreSQL keeps the later of equal values.
    """
    alive = torch.arange(ids.shape[0])
    owner = ids
    for word in words:
        here = word if alive.shape[0] == word.shape[0] else word.index_select(0, alive)
        if groups == 1:
            kept = here == (here.max() if is_greatest else here.min())
        else:
            best = _reduced(here, owner, groups, is_greatest=is_greatest)
            kept = here == best.index_select(0, owner)
        if not is_all(kept):
            index = rows_of(kept)
            alive, owner = alive.index_select(0, index), owner.index_select(0, index)
    found = torch.full((groups,), -1, dtype=torch.int64)
    return found.scatter_reduce_(0, owner, alive, "amax")


def _reduced(values: Tensor, ids: Tensor, groups: int, *, is_greatest: bool) -> Tensor:
    neutral = INT64_MIN if is_greatest else INT64_MAX
    found = torch.full((groups,), neutral, dtype=torch.int64)
    return found.scatter_reduce_(0, ids, values, "amax" if is_greatest else "amin")


class Extreme(Base):
    """Integers (and decimals of one scale) reduce into int64; of other values the best row of
    each group is kept, as pieces of candidates that are reduced when they are many.
    """

    is_greatest = False

    def __init__(self, call: AggregateCall, query: QueryContext) -> None:
        super().__init__(call, query)
        self._numbers = Slots(fill=INT64_MIN if self.is_greatest else INT64_MAX)
        self._present = Slots(torch.bool)
        self._model: Column | None = None
        self._pieces: list[tuple[Tensor, Column]] = []
        self._rows = 0
        self._bytes = 0

    @property
    def bytes(self) -> int:
        return self._numbers.bytes + self._present.bytes + self._bytes

    def update(self, ids: Ids, groups: int, columns: Sequence[Column], rows: int) -> None:
        owner, (column, *_), count = present_rows(ids, columns[:1], rows, 1)
        if not count:
            return
        if self._takes(column):
            self._model = self._model or _model(column)
            self._reduce(owner, groups, integers(column))
            return
        self._leave_numbers(groups)
        best = best_rows(self._words(column), owner, groups, is_greatest=self.is_greatest)
        found = rows_of(best >= 0)
        rows_found = best.index_select(0, found)
        self._keep(found, keep(take_rows(column, rows_found, count), found.shape[0]), groups)

    def merge(self, other: Self, mapping: Ids, groups: int) -> None:
        owner = torch.from_numpy(mapping)
        size = len(mapping)
        model = other._model
        if model is not None and (self._takes(model)):
            self._model = model
            present = other._present.view(size)
            index = rows_of(present)
            numbers = other._numbers.view(size).index_select(0, index)
            self._reduce(owner.index_select(0, index), groups, numbers)
            return
        other._leave_numbers(size)
        self._leave_numbers(groups)
        for ids, column in other._pieces:
            self._keep(owner.index_select(0, ids), column, groups)

    def finish(self, groups: int) -> Column:
        if self._model is not None:
            present = self._present.view(groups)
            valid = None if is_all(present) else present.clone()
            values = self._numbers.view(groups).clone()
            if valid is not None:
                values = torch.where(valid, values, 0)
            return replace(self._model, type=self.type, data=(values,), valid=valid)
        if not self._pieces:
            return self.nulls(groups)
        self._shrink(groups)
        ids, column = self._pieces[0]
        place = torch.full((groups,), -1, dtype=torch.int64)
        place[ids] = torch.arange(ids.shape[0])
        missing = place < 0
        found = take_rows(column, place.clamp(min=0), column.rows)
        if column.rows == 1 and found.rows != groups:
            found = expand(found, groups)
        return replace(found, type=self.type, valid=~missing if bool(missing.any()) else None)

    def _words(self, column: Column) -> list[Tensor]:
        """Words in the order of the type; text with an order of its own (inet, enums) by rank."""
        kind = data_type(column.type.oid, self.query)
        is_text = column.layout.kind in (Kind.TEXT, Kind.DICTIONARY)
        if not is_text or kind.oid in STRINGS or type(kind).sort_key is DataType.sort_key:
            return order.words(column)
        ranks = order.dense_ranks([kind.sort_key(value) for value in to_values(column)])
        return [torch.from_numpy(ranks)]

    def _takes(self, column: Column) -> bool:
        """Whether the state is, or can become, int64 numbers of this column's form."""
        kind = column.layout.kind
        if self._pieces or kind not in (Kind.INT, Kind.DECIMAL) or column.layout.has_row_scale:
            return False
        model = self._model
        return model is None or (model.layout.kind is kind and model.scale == column.scale)

    def _reduce(self, ids: Tensor, groups: int, values: Tensor) -> None:
        state = self._numbers.view(groups)
        self._present.view(groups).index_fill_(0, ids, True)
        if groups == 1 and values.shape[0]:
            best = values.max() if self.is_greatest else values.min()
            state.copy_(torch.maximum(state, best) if self.is_greatest
                        else torch.minimum(state, best))
        else:
            state.scatter_reduce_(0, ids, values, "amax" if self.is_greatest else "amin")

    def _leave_numbers(self, groups: int) -> None:
        """Turn int64 numbers into candidates."""
        if self._model is None:
            return
        index = rows_of(self._present.view(groups))
        values = self._numbers.view(groups).index_select(0, index)
        model, self._model = self._model, None
        self._keep(index, replace(model, data=(values,)), groups)

    def _keep(self, ids: Tensor, column: Column, groups: int) -> None:
        if not ids.shape[0]:
            return
        self._pieces.append((ids, column))
        self._rows += ids.shape[0]
        self._bytes += bytes_of(column) + 8 * ids.shape[0]
        if self._rows > max(2 * groups, _PIECE_ROWS_MIN):
            self._shrink(groups)

    def _shrink(self, groups: int) -> None:
        """Keep one candidate per group."""
        if len(self._pieces) == 1:
            return
        ids = torch.cat([owner for owner, _ in self._pieces])
        joined = concat([(column, column.rows) for _, column in self._pieces])
        best = best_rows(self._words(joined), ids, groups, is_greatest=self.is_greatest)
        found = rows_of(best >= 0)
        column = take_rows(joined, best.index_select(0, found), joined.rows)
        column = keep(column, found.shape[0])
        self._pieces = [(found, column)]
        self._rows = found.shape[0]
        self._bytes = bytes_of(column) + 8 * found.shape[0]


def _model(column: Column) -> Column:
    """An empty column of int64 elements in the form of this one."""
    empty = torch.zeros(0, dtype=torch.int64)
    kind = replace(INT64, kind=column.layout.kind)
    return Column(column.type, kind, (empty,), scale=column.scale)


_ORDERED = (
    "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "money", "text", "bpchar",
    "date", "time", "timetz", "timestamp", "timestamptz", "interval", "inet", "tid", "anyarray",
    "anyenum", "xid8", "pg_lsn",
)


@accumulator(*(f"min({name})" for name in _ORDERED))
class Minimum(Extreme):
    is_greatest = False


@accumulator(*(f"max({name})" for name in _ORDERED))
class Maximum(Extreme):
    is_greatest = True
