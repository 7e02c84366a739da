"""Aggregates over collected rows: DISTINCT, ORDER BY in an aggregate.

The rows of all groups are kept with their group numbers. At the end duplicates go, the rest is
sorted, and the inner aggregate sees each group's rows in that order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gpudb.column import Column, expand, integer_column, take_rows
from gpudb.exec.context import QueryContext
from gpudb.exec.functions.aggregates import Aggregate, GroupRows
from gpudb.expr import AggregateCall
from gpudb.kernels.concat import concat
from gpudb.kernels.group import KeyTable
from gpudb.kernels.order import OrderKey, sort_rows
from gpudb.kernels.select import keep
from gpudb.sqltype import BIGINT


@dataclass(slots=True)
class Kept:
    """Pieces of rows: group numbers, argument columns, rows."""

    pieces: list[tuple[Tensor, tuple[Column, ...], int]] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(rows for _, _, rows in self.pieces)

    def joined(self) -> tuple[Tensor, tuple[Column, ...], int]:
        """All rows as one piece."""
        rows = self.rows
        ids = torch.cat([ids for ids, _, _ in self.pieces])
        width = len(self.pieces[0][1])
        columns = tuple(
            expand(concat([(columns[i], count) for _, columns, count in self.pieces]), rows)
            for i in range(width)
        )
        return ids, columns, rows


def kept_rows(rows: GroupRows) -> Kept:
    """The rows of a batch, in memory of their own."""
    if not rows.rows:
        return Kept()
    ids = torch.zeros(rows.rows, dtype=torch.int64) if rows.ids is None else rows.ids
    return Kept([(ids, tuple(keep(c, rows.rows) for c in rows.columns), rows.rows)])


def add_kept(state: Kept | None, part: Kept, ids: Tensor) -> Kept:
    """Append a part's rows; its group i is ``ids[i]`` in the whole."""
    state = state or Kept()
    for own, columns, rows in part.pieces:
        state.pieces.append((ids.index_select(0, own), columns, rows))
    return state


def distinct(ids: Tensor, columns: tuple[Column, ...], rows: int) -> Tensor:
    """The first row of each distinct (group, values)."""
    table = KeyTable(len(columns) + 1)
    low, high = (int(ids.min()), int(ids.max())) if rows else (0, 0)
    group = integer_column(BIGINT, ids, lo=low, hi=high)
    _, first = table.insert([group, *columns], rows)
    return torch.from_numpy(first)


class Collected(Aggregate):
    """An aggregate call with DISTINCT or ORDER BY, around the plain aggregate."""

    is_ordered = True

    def __init__(self, inner: Aggregate, call: AggregateCall, context: QueryContext) -> None:
        super().__init__(call, context)
        self.skips_nulls = inner.skips_nulls
        self._inner = inner
        self._width = 0 if call.is_star else len(call.arguments)

    def partial(self, rows: GroupRows) -> Any:
        kept = kept_rows(rows)
        if not self.call.is_distinct or not kept.pieces:
            return kept
        ids, columns, count = kept.pieces[0]
        first = distinct(ids, columns[: self._width], count)
        cut = tuple(take_rows(c, first, count) for c in columns)
        return Kept([(ids.index_select(0, first), cut, first.shape[0])])

    def merge(self, state: Any, part: Any, ids: Tensor, groups: int) -> Any:
        return add_kept(state, part, ids)

    def result(self, state: Any, groups: int) -> Column:
        empty_ids = torch.zeros(0, dtype=torch.int64)
        if state is None or not state.rows:
            part = self._inner.partial(GroupRows((), empty_ids, groups, 0)) if (
                self._width == 0
            ) else self._without_rows(groups)
            return self._inner.result(
                self._inner.merge(None, part, torch.arange(groups), groups), groups
            )
        ids, columns, rows = state.joined()
        if self.call.is_distinct:
            index = distinct(ids, columns[: self._width], rows)
            ids = ids.index_select(0, index)
            columns = tuple(take_rows(c, index, rows) for c in columns)
            rows = index.shape[0]
        if self._inner.is_ordered:
            index = self._order(ids, columns, rows)
            ids = ids.index_select(0, index)
            columns = tuple(take_rows(c, index, rows) for c in columns)
        part = self._inner.partial(GroupRows(columns[: self._width], ids, groups, rows))
        whole = self._inner.merge(None, part, torch.arange(groups), groups)
        return self._inner.result(whole, groups)

    def _without_rows(self, groups: int) -> Any:
        from gpudb.column import null_column
        from gpudb.exec.conversions import data_type

        columns = tuple(
            null_column(a.type, data_type(a.type.oid, self.context).layout, 0)
            for a in self.call.arguments
        )
        ids = torch.zeros(0, dtype=torch.int64)
        return self._inner.partial(GroupRows(columns, ids, groups, 0))

    def _order(self, ids: Tensor, columns: tuple[Column, ...], rows: int) -> Tensor:
        keys = [OrderKey(integer_column(BIGINT, ids))]
        for key, column in zip(self.call.order_by, columns[self._width :], strict=True):
            keys.append(OrderKey(column, key.is_descending, key.nulls_first))
        if self.call.is_distinct:
            keys.extend(OrderKey(column) for column in columns[: self._width])
        return sort_rows(keys, rows)
