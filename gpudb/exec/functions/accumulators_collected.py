"""Aggregates that collect their rows: string_agg, array_agg and the JSON aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from gpudb import errors, sqltype
from gpudb.catalog.types import ArrayValue
from gpudb.catalog.types.arrays import ArrayType
from gpudb.catalog.types.json_text import canonical, quote
from gpudb.catalog.types.records import RecordType
from gpudb.column import (
    Column,
    byte_strings,
    bytes_column,
    host_column,
    integer_column,
    take_rows,
    text_column,
    to_values,
    validity,
)
from gpudb.exec.context import QueryContext
from gpudb.exec.conversions import data_type
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.accumulators import Base, Ids, accumulator, present_rows
from gpudb.exec.functions.document_build import renderer
from gpudb.expr import AggregateCall
from gpudb.kernels.concat import concat
from gpudb.kernels.order import OrderKey, sort_rows
from gpudb.kernels.select import bytes_of, keep
from gpudb.sqltype import BIGINT


@dataclass(frozen=True, slots=True)
class Ordered:
    """Rows sorted by group and within it: group g has rows [starts[g], starts[g + 1])."""

    direct: tuple[Column, ...]
    arguments: tuple[Column, ...]
    keys: tuple[Column, ...]
    ids: Tensor
    starts: list[int]
    rows: int


class Collecting(Base):
    """Keeps the rows; ``strict`` is how many leading arguments must not be NULL."""

    strict = 0

    def __init__(self, call: AggregateCall, query: QueryContext) -> None:
        super().__init__(call, query)
        self._pieces: list[tuple[Tensor, tuple[Column, ...], int]] = []
        self._bytes = 0

    @property
    def bytes(self) -> int:
        return self._bytes

    def update(self, ids: Ids, groups: int, columns: Sequence[Column], rows: int) -> None:
        direct = len(self.call.direct)
        rolled = (*columns[direct:], *columns[:direct])
        owner, wide, count = present_rows(ids, rolled, rows, self.strict)
        if count:
            self._append(owner.clone(), tuple(keep(column, count) for column in wide), count)

    def merge(self, other: Self, mapping: Ids, groups: int) -> None:
        owner = torch.from_numpy(mapping)
        for ids, columns, rows in other._pieces:
            self._append(owner.index_select(0, ids), columns, rows)

    def _append(self, ids: Tensor, columns: tuple[Column, ...], rows: int) -> None:
        self._pieces.append((ids, columns, rows))
        self._bytes += 8 * rows + sum(map(bytes_of, columns))

    def ordered(self, groups: int) -> Ordered | None:
        """The rows in the order of the call, None when there are none."""
        if not self._pieces:
            return None
        ids = torch.cat([owner for owner, _, _ in self._pieces])
        rows = ids.shape[0]
        width = len(self._pieces[0][1])
        columns = [
            concat([(columns[i], count) for _, columns, count in self._pieces])
            for i in range(width)
        ]
        direct = len(self.call.direct)
        first_key = width - direct - len(self.call.order_by)
        order = [OrderKey(integer_column(BIGINT, ids))]
        for key, column in zip(self.call.order_by, columns[first_key:], strict=False):
            order.append(OrderKey(column, key.is_descending, key.nulls_first))
        index = sort_rows(order, rows)
        ids = ids.index_select(0, index)
        placed = tuple(take_rows(column, index, rows) for column in columns)
        starts = np.searchsorted(ids.numpy(), np.arange(groups + 1))
        return Ordered(
            placed[width - direct :], placed[:first_key], placed[first_key : width - direct],
            ids, starts.tolist(), rows,
        )


@accumulator("string_agg(text,text)", "string_agg(bytea,bytea)")
class StringAggregate(Collecting):
    """Each value but the first after its own delimiter; a NULL delimiter is empty."""

    strict = 1

    def finish(self, groups: int) -> Column:
        found = self.ordered(groups)
        if found is None:
            return self.nulls(groups)
        values = byte_strings(found.arguments[0])
        delimiters = self._delimiters(found)
        results: list[bytes | None] = []
        is_uniform = len(set(delimiters)) == 1
        for group in range(groups):
            start, stop = found.starts[group], found.starts[group + 1]
            if start == stop:
                results.append(None)
            elif is_uniform:
                results.append(delimiters[0].join(values[start:stop]))
            else:
                rest = (delimiters[i] + values[i] for i in range(start + 1, stop))
                results.append(values[start] + b"".join(rest))
        return bytes_column(self.type, results)

    @staticmethod
    def _delimiters(found: Ordered) -> list[bytes]:
        column = found.arguments[1]
        texts = byte_strings(column)
        if column.valid is None:
            return texts
        valid = validity(column, found.rows).tolist()
        return [text if ok else b"" for text, ok in zip(texts, valid, strict=True)]


@accumulator("array_agg(anynonarray)")
class ArrayAggregate(Collecting):
    """An array of the values, NULLs kept."""

    def finish(self, groups: int) -> Column:
        found = self.ordered(groups)
        if found is None:
            return self.nulls(groups)
        element = data_type(self.type.oid, self.query).element_oid
        values = to_values(found.arguments[0])
        return host_column(self.type, [
            ArrayValue.of(element, tuple(values[start:stop])) if start < stop else None
            for start, stop in zip(found.starts, found.starts[1:], strict=False)
        ])


@accumulator("array_agg(anyarray)", fallible=True)
class ArrayOfArrays(Collecting):
    """An array of one dimension more; the arrays must be alike."""

    def finish(self, groups: int) -> Column:
        found = self.ordered(groups)
        if found is None:
            return self.nulls(groups)
        values = to_values(found.arguments[0])
        return host_column(self.type, [
            _stacked(values[start:stop]) if start < stop else None
            for start, stop in zip(found.starts, found.starts[1:], strict=False)
        ])


def _stacked(arrays: list[ArrayValue | None]) -> ArrayValue:
    items: list[Any] = []
    first: ArrayValue | None = None
    for array in arrays:
        if array is None:
            raise errors.NullValueNotAllowed("cannot accumulate null arrays")
        if not array.lengths:
            raise errors.ArraySubscriptError("cannot accumulate empty arrays")
        first = first or array
        if (array.lengths, array.lower_bounds) != (first.lengths, first.lower_bounds):
            raise errors.ArraySubscriptError(
                "cannot accumulate arrays of different dimensionality"
            )
        items.extend(array.items)
    assert first is not None
    return ArrayValue(
        first.element_oid, tuple(items), (len(arrays), *first.lengths), (1, *first.lower_bounds)
    )


class JsonCollecting(Collecting):
    """JSON of the rows of each group, from the rows' own JSON."""

    is_jsonb = False

    def finish(self, groups: int) -> Column:
        found = self.ordered(groups)
        if found is None:
            return self.nulls(groups)
        parts = self.parts(found)
        texts = [
            self.joined(parts[start:stop]) if start < stop else None
            for start, stop in zip(found.starts, found.starts[1:], strict=False)
        ]
        if self.is_jsonb:
            texts = [None if text is None else canonical(text) for text in texts]
        return text_column(self.type, texts)

    def rendered(self, column: Column, rows: int) -> list[str]:
        render = renderer(
            column.type.oid, EvaluationContext(self.query, rows), is_jsonb=self.is_jsonb
        )
        return [render(value) for value in to_values(column)]

    def parts(self, found: Ordered) -> list[str]:
        """The JSON of each row."""
        raise NotImplementedError

    def joined(self, parts: list[str]) -> str:
        """The JSON of one group."""
        raise NotImplementedError


@accumulator("json_agg(anyelement)", fallible=True)
class JsonArray(JsonCollecting):
    separator = ", "

    def parts(self, found: Ordered) -> list[str]:
        column = found.arguments[0]
        kind = data_type(column.type.oid, self.query)
        self.separator = ", \n " if isinstance(kind, ArrayType | RecordType) else ", "
        return self.rendered(column, found.rows)

    def joined(self, parts: list[str]) -> str:
        if self.separator == ", ":
            return "[" + ", ".join(parts) + "]"
        rest = (", " + part if part == "null" else self.separator + part for part in parts[1:])
        return "[" + parts[0] + "".join(rest) + "]"


@accumulator("jsonb_agg(anyelement)", fallible=True)
class JsonbArray(JsonArray):
    is_jsonb = True


@accumulator("json_object_agg(any,any)", fallible=True)
class JsonObject(JsonCollecting):
    def parts(self, found: Ordered) -> list[str]:
        keys, values = found.arguments[:2]
        kind = data_type(keys.type.oid, self.query)
        if isinstance(kind, ArrayType | RecordType) or kind.oid in (sqltype.JSON, sqltype.JSONB):
            raise errors.InvalidParameterValue(
                "key value must be scalar, not array, composite, or json"
            )
        if keys.valid is not None and not bool(keys.valid.all()):
            raise errors.InvalidParameterValue("field name must not be null")
        names = (
            text if text.startswith('"') else quote(text)
            for text in self.rendered(keys, found.rows)
        )
        texts = self.rendered(values, found.rows)
        return [f"{name} : {text}" for name, text in zip(names, texts, strict=True)]

    def joined(self, parts: list[str]) -> str:
        return "{ " + ", ".join(parts) + " }"


@accumulator("jsonb_object_agg(any,any)", fallible=True)
class JsonbObject(JsonObject):
    is_jsonb = True
