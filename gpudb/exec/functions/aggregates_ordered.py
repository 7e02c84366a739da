"""Aggregates that keep their rows: array_agg, string_agg, JSON, percentiles, mode, rank.

Rows come in the order of the call (exec.functions.collected sorts them for ORDER BY); ordered-set
aggregates sort here by their WITHIN GROUP keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gpudb import errors, sqltype
from gpudb.catalog.functions import aggregate
from gpudb.catalog.types.arrays import ArrayType
from gpudb.catalog.types.base import ArrayValue
from gpudb.catalog.types.json_text import canonical, quote
from gpudb.catalog.types.records import RecordType
from gpudb.column import Column, expand, from_values, integer_column, take_rows, to_values
from gpudb.exec.conversions import data_type
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.aggregates import Aggregate, GroupRows
from gpudb.exec.functions.collected import Kept, add_kept, kept_rows
from gpudb.exec.functions.document_build import renderer
from gpudb.kernels.concat import concat
from gpudb.kernels.order import OrderKey, ordering_words, permutation, sort_rows, starts_of_runs
from gpudb.sqltype import BIGINT

Positions = npt.NDArray[np.int64]


class Gathering(Aggregate):
    """Keeps all rows; ``values_of`` sees the rows of one group."""

    is_ordered = True

    def partial(self, rows: GroupRows) -> Kept:
        return kept_rows(rows)

    def merge(self, state: Any, part: Any, ids: Tensor, groups: int) -> Any:
        return add_kept(state, part, ids)

    def grouped(self, state: Any, groups: int) -> tuple[tuple[Column, ...], Positions]:
        """The columns in group order, and where each group begins (G + 1)."""
        if state is None or not state.rows:
            return (), np.zeros(groups + 1, np.int64)
        ids, columns, rows = state.joined()
        index = self.order(ids, columns, rows)
        begins = np.zeros(groups + 1, np.int64)
        np.cumsum(np.bincount(ids.numpy(), minlength=groups), out=begins[1:])
        return tuple(take_rows(c, index, rows) for c in columns), begins

    def order(self, ids: Tensor, columns: Sequence[Column], rows: int) -> Tensor:
        """The rows group by group, within a group as they came."""
        return torch.sort(ids, stable=True).indices

    def made(self, values: list[Any]) -> Column:
        """The result column of one value per group."""
        return from_values(self.type, data_type(self.type.oid, self.context).layout, values)

    def result(self, state: Any, groups: int) -> Column:
        columns, begins = self.grouped(state, groups)
        lists = [to_values(column) for column in columns]
        found: list[Any] = []
        for start, stop in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
            if start == stop:
                found.append(None)
            else:
                found.append(self.value([values[start:stop] for values in lists]))
        return self.made(found)

    def value(self, lists: list[list[Any]]) -> Any:
        """The value of a group with rows, from its argument lists."""
        raise NotImplementedError


@aggregate("array_agg(anynonarray)")
class ArrayAgg(Gathering):
    """The values as an array, NULLs included."""

    skips_nulls = False

    def value(self, lists: list[list[Any]]) -> Any:
        element = data_type(self.type.oid, self.context).element_oid
        return ArrayValue.of(element, tuple(lists[0]))


@aggregate("array_agg(anyarray)", fallible=True)
class ArrayOfArrays(Gathering):
    """Arrays of the same lengths as one array of one more dimension."""

    skips_nulls = False

    def value(self, lists: list[list[Any]]) -> Any:
        parts = lists[0]
        if any(part is None for part in parts):
            raise errors.NullValueNotAllowed("cannot accumulate null arrays")
        if any(not part.items for part in parts):
            raise errors.ArraySubscriptError("cannot accumulate empty arrays")
        first = parts[0]
        if any(part.lengths != first.lengths for part in parts):
            raise errors.ArraySubscriptError(
                "cannot accumulate arrays of different dimensionality"
            )
        items = tuple(item for part in parts for item in part.items)
        return ArrayValue(
            first.element_oid, items, (len(parts), *first.lengths), (1, *first.lower_bounds)
        )


@aggregate("string_agg(text,text)", "string_agg(bytea,bytea)")
class StringAgg(Gathering):
    """The values with each one's delimiter before it, but for the first; NULLs are left out."""

    skips_nulls = False

    def value(self, lists: list[list[Any]]) -> Any:
        empty: Any = b"" if self.type.oid == sqltype.BYTEA else ""
        pieces: list[Any] = []
        for value, delimiter in zip(*lists, strict=True):
            if value is None:
                continue
            if pieces and delimiter is not None:
                pieces.append(delimiter)
            elif pieces:
                pieces.append(empty)
            pieces.append(value)
        return empty.join(pieces) if pieces else None


class JsonAggregate(Gathering):
    skips_nulls = False

    def renderers(self) -> list[Any]:
        context = EvaluationContext(self.context, 1)
        is_jsonb = self.type.oid == sqltype.JSONB
        return [
            renderer(item.type.oid, context, is_jsonb=is_jsonb) for item in self.call.arguments
        ]

    def finished(self, text: str) -> str:
        return canonical(text) if self.type.oid == sqltype.JSONB else text


@aggregate("json_agg(anyelement)", "jsonb_agg(anyelement)", fallible=True)
class JsonAgg(JsonAggregate):
    """The values as a JSON array; NULL is null."""

    def value(self, lists: list[list[Any]]) -> Any:
        kind = data_type(self.call.arguments[0].type.oid, self.context)
        between = ", \n " if isinstance(kind, (ArrayType, RecordType)) else ", "
        render = self.renderers()[0]
        return self.finished("[" + between.join(map(render, lists[0])) + "]")


@aggregate("json_object_agg(any,any)", "jsonb_object_agg(any,any)", fallible=True)
class JsonObjectAgg(JsonAggregate):
    """Keys and values as a JSON object."""

    def value(self, lists: list[list[Any]]) -> Any:
        key_render, value_render = self.renderers()
        pairs = []
        for key, value in zip(*lists, strict=True):
            if key is None:
                is_json = self.type.oid == sqltype.JSON
                raise errors.NullValueNotAllowed(
                    "field name must not be null"
                ) if is_json else errors.InvalidParameterValue("field name must not be null")
            text = key_render(key)
            name = text if text.startswith('"') else quote(text)
            pairs.append(f"{name} : {value_render(value)}")
        return self.finished("{ " + ", ".join(pairs) + " }")


# --- ordered sets ------------------------------------------------------------


class OrderedSet(Gathering):
    """Rows sorted by the WITHIN GROUP keys. Columns: the sorted arguments, then the direct ones."""

    is_ordered_set = True
    is_ordered = False

    def order(self, ids: Tensor, columns: Sequence[Column], rows: int) -> Tensor:
        keys = [OrderKey(integer_column(BIGINT, ids))]
        for key, column in zip(self.call.order_by, columns, strict=False):
            keys.append(OrderKey(column, key.is_descending, key.nulls_first))
        return sort_rows(keys, rows)


def _fraction(value: float) -> float:
    if not 0 <= value <= 1:
        shown = "NaN" if math.isnan(value) else f"{value:g}"
        raise errors.NumericValueOutOfRange(f"percentile value {shown} is not between 0 and 1")
    return value


class Percentile(OrderedSet):
    """One percentile, or one for each element of an array."""

    skips_nulls = True

    def value(self, lists: list[list[Any]]) -> Any:
        values, wanted = lists[0], lists[-1][0]
        if wanted is None:
            return None
        if not isinstance(wanted, ArrayValue):
            return self.at(values, _fraction(wanted))
        found = tuple(
            None if part is None else self.at(values, _fraction(part)) for part in wanted.items
        )
        element = data_type(self.type.oid, self.context).element_oid
        return ArrayValue(element, found, wanted.lengths, wanted.lower_bounds)

    def at(self, values: list[Any], fraction: float) -> Any:
        raise NotImplementedError


@aggregate(
    "percentile_disc(float8,anyelement)", "percentile_disc(_float8,anyelement)", fallible=True
)
class PercentileDisc(Percentile):
    """The first value whose position reaches the fraction."""

    def at(self, values: list[Any], fraction: float) -> Any:
        return values[max(math.ceil(fraction * len(values)), 1) - 1]


@aggregate(
    "percentile_cont(float8,float8)", "percentile_cont(float8,interval)",
    "percentile_cont(_float8,float8)", "percentile_cont(_float8,interval)", fallible=True,
)
class PercentileCont(Percentile):
    """Interpolated between the values around the position."""

    def at(self, values: list[Any], fraction: float) -> Any:
        place = fraction * (len(values) - 1)
        low, high = math.floor(place), math.ceil(place)
        if low == high:
            return values[low]
        part = place - low
        if isinstance(values[low], tuple):
            return self._interval(values[low], values[high], part)
        return values[low] + (values[high] - values[low]) * part

    def _interval(self, low: Any, high: Any, part: float) -> Any:
        from gpudb.catalog import functions
        from gpudb.column import float_column

        kind = data_type(sqltype.INTERVAL, self.context).layout
        type_ = sqltype.SqlType(sqltype.INTERVAL)
        gap = from_values(type_, kind, [tuple(h - v for v, h in zip(low, high, strict=True))])
        factor = float_column(sqltype.DOUBLE, torch.tensor([part], dtype=torch.float64))
        context = EvaluationContext(self.context, 1)
        scaled = functions.SCALARS["interval_mul"].body(context, gap, factor)
        total = functions.SCALARS["interval_pl"].body(
            context, from_values(type_, kind, [low]), scaled
        )
        return to_values(total)[0]


@aggregate("mode(anyelement)")
class Mode(OrderedSet):
    """The most frequent value, the first in order among equally frequent ones."""

    skips_nulls = True

    def result(self, state: Any, groups: int) -> Column:
        columns, begins = self.grouped(state, groups)
        place = np.full(groups, -1, np.int64)
        if columns:
            rows = columns[0].rows
            words = ordering_words([OrderKey(columns[0])], rows)
            starts = starts_of_runs(words, rows).numpy()
            starts[begins[:-1][begins[:-1] < rows]] = True
            first = np.flatnonzero(starts)
            length = np.diff(np.r_[first, rows])
            group = np.searchsorted(begins, first, "right") - 1
            best = np.lexsort((first, -length, group))
            own, where = np.unique(group[best], return_index=True)
            place[own] = first[best[where]]
        if not columns:
            return self.made([None] * groups)
        from gpudb.kernels.gather import gather_or_null

        return gather_or_null(columns[0], torch.from_numpy(place))


class Hypothetical(OrderedSet):
    """Where a row made of the direct arguments would stand among the group's rows."""

    skips_nulls = False

    def standing(
        self, state: Any, groups: int
    ) -> tuple[Positions, Positions, Positions, Positions]:
        """For each group: rows before, rows before or equal (itself counted), distinct keys before,
        rows.
        """
        width = len(self.call.order_by)
        ids, columns, rows = state.joined()
        whole = torch.cat((ids, torch.arange(groups)))
        first = _first_rows(ids, groups)
        keys = [OrderKey(integer_column(BIGINT, whole))]
        for key, column, direct in zip(
            self.call.order_by, columns[:width], columns[width:], strict=True
        ):
            own = take_rows(direct, first, rows)
            both = expand(concat([(column, rows), (own, groups)]), rows + groups)
            keys.append(OrderKey(both, key.is_descending, key.nulls_first))
        index = permutation(ordering_words(keys, rows + groups), rows + groups)
        group_words = ordering_words(keys[:1], rows + groups)
        words = ordering_words(keys, rows + groups)
        begins = starts_of_runs([w.index_select(0, index) for w in group_words], rows + groups)
        peers = starts_of_runs([w.index_select(0, index) for w in words], rows + groups)
        place = np.empty(rows + groups, np.int64)
        place[index.numpy()] = np.arange(rows + groups)
        return _standing(begins.numpy(), (peers | begins).numpy(), place[rows:], groups)

    def result(self, state: Any, groups: int) -> Column:
        if state is None or not state.rows:
            zero = np.zeros(groups, np.int64)
            return self.made([self.number(0, 1, 0, 0) for _ in zero])
        parts = self.standing(state, groups)
        return self.made([self.number(*part) for part in zip(*(p.tolist() for p in parts))])

    def number(self, before: int, until: int, distinct: int, rows: int) -> Any:
        raise NotImplementedError


def _first_rows(ids: Tensor, groups: int) -> Tensor:
    """The first row of each group (row 0 for groups without rows)."""
    found = torch.full((groups,), ids.shape[0], dtype=torch.int64)
    found.scatter_reduce_(0, ids, torch.arange(ids.shape[0]), "amin")
    return torch.where(found == ids.shape[0], 0, found)


def _standing(
    begins: Any, peers: Any, place: Positions, groups: int
) -> tuple[Positions, Positions, Positions, Positions]:
    starts = np.flatnonzero(begins)
    ends = np.r_[starts[1:], len(begins)]
    peer_starts = np.flatnonzero(peers)
    peer_ends = np.r_[peer_starts[1:], len(peers)]
    own = np.searchsorted(peer_starts, place, "right") - 1
    group = np.searchsorted(starts, place, "right") - 1
    first_peer = np.searchsorted(peer_starts, starts[group])
    return (
        peer_starts[own] - starts[group], peer_ends[own] - starts[group], own - first_peer,
        ends[group] - starts[group] - 1,
    )


@aggregate("rank(any)")
class HypotheticalRank(Hypothetical):
    def number(self, before: int, until: int, distinct: int, rows: int) -> Any:
        return before + 1


@aggregate("dense_rank(any)")
class HypotheticalDenseRank(Hypothetical):
    def number(self, before: int, until: int, distinct: int, rows: int) -> Any:
        return distinct + 1


@aggregate("percent_rank(any)")
class HypotheticalPercentRank(Hypothetical):
    def number(self, before: int, until: int, distinct: int, rows: int) -> Any:
        return before / rows if rows else 0.0


@aggregate("cume_dist(any)")
class HypotheticalCumeDist(Hypothetical):
    def number(self, before: int, until: int, distinct: int, rows: int) -> Any:
        return until / (rows + 1)
