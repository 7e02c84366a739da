"""Accumulators against what PostgreSQL 15 answered (aggregate_answers.json).

A case is a registry key, the columns (direct arguments, arguments, ORDER BY keys: type and one
text a row), the directions of the ORDER BY keys, the group of each row, the number of groups, the
result's type and the answer: ["ok", a text or null per group] or [SQLSTATE, message].
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gpudb import errors
from gpudb.catalog import types
from gpudb.catalog.types import TypeContext
from gpudb.column import Column, from_values, slice_rows, take_rows, to_values
from gpudb.exec.context import QueryContext
from gpudb.exec.functions import accumulators
from gpudb.expr import AggregateCall, ColumnRef, Function, SortKey, Volatility
from gpudb.sqltype import SqlType

accumulators.load()
CASES = json.loads(Path(__file__).with_name("aggregate_answers.json").read_text())
SETTINGS = TypeContext()


def data_type(name: str) -> types.DataType:
    found = types.by_name(name)
    assert found is not None, name
    return found


def column(name: str, texts: list[str | None]) -> Column:
    kind = data_type(name)
    values = [None if text is None else kind.parse(text, -1, SETTINGS) for text in texts]
    return from_values(SqlType(kind.oid), kind.layout, values)


class Case:
    def __init__(self, raw: dict[str, Any]) -> None:
        self.key: str = raw["key"]
        self.direct = [column(name, texts) for name, texts in raw.get("direct", [])]
        self.columns = [column(name, texts) for name, texts in raw["columns"]]
        self.order: list[list[bool]] = raw.get("order", [])
        self.ids = np.array(raw["ids"], np.int64)
        self.groups: int = raw["groups"]
        self.result = data_type(raw["result"])
        self.answer: list[Any] = raw["answer"]

    def make(self) -> Any:
        keys = self.columns[len(self.columns) - len(self.order) :]
        order = tuple(
            SortKey(ColumnRef(i, key.type), descending, nulls_first)
            for i, (key, (descending, nulls_first)) in enumerate(
                zip(keys, self.order, strict=True)
            )
        )
        arguments = tuple(
            ColumnRef(i, c.type)
            for i, c in enumerate(self.columns[: len(self.columns) - len(self.order)])
        )
        name = self.key.split("(")[0]
        function = Function(
            0, name, self.key, (), self.result.oid, False, Volatility.IMMUTABLE, False
        )
        call = AggregateCall(
            function, arguments, SqlType(self.result.oid), order_by=order,
            direct=tuple(ColumnRef(100 + i, c.type) for i, c in enumerate(self.direct)),
            is_star=self.key == "count()",
        )
        return accumulators.ACCUMULATORS[self.key].body(call, QueryContext(None, {}))

    def part(self, start: int, stop: int) -> list[Column]:
        rows = len(self.ids)
        if rows == 1 and stop == start:
            return [take_rows(c, torch.zeros(0, dtype=torch.int64), 2) for c in self.columns]
        return [*self.direct, *(slice_rows(c, start, stop) for c in self.columns)]

    def check(self, compute: Any) -> None:
        if self.answer[0] != "ok":
            with pytest.raises(errors.SqlError) as caught:
                compute()
            assert [caught.value.sqlstate, caught.value.message] == self.answer
            return
        found = compute()
        assert found.type.oid == self.result.oid
        assert found.rows == self.groups
        texts = [
            None if value is None else self.result.format(value, SETTINGS)
            for value in to_values(found)
        ]
        assert texts == self.answer[1]


NAMES = [f"{number}-{case['key']}" for number, case in enumerate(CASES)]


@pytest.mark.parametrize("raw", CASES, ids=NAMES)
def test_whole(raw: dict[str, Any]) -> None:
    case = Case(raw)

    def compute() -> Column:
        state = case.make()
        rows = len(case.ids)
        state.update(case.ids, case.groups, case.part(0, rows), rows)
        assert state.bytes >= 0
        return state.finish(case.groups)

    case.check(compute)


@pytest.mark.parametrize("raw", CASES, ids=NAMES)
def test_batches(raw: dict[str, Any]) -> None:
    """Batches of two rows, with only the groups that have appeared."""
    case = Case(raw)

    def compute() -> Column:
        state = case.make()
        for start in range(0, len(case.ids), 2):
            stop = min(start + 2, len(case.ids))
            groups = int(case.ids[:stop].max()) + 1
            state.update(case.ids[start:stop], groups, case.part(start, stop), stop - start)
        return state.finish(case.groups)

    case.check(compute)


@pytest.mark.parametrize("raw", CASES, ids=NAMES)
def test_merged(raw: dict[str, Any]) -> None:
    """Halves in accumulators with their own group numbers, merged in order."""
    case = Case(raw)
    if raw.get("is_sequential"):
        pytest.skip("the last digits follow the order of additions")

    def compute() -> Column:
        whole = case.make()
        rows = len(case.ids)
        for start, stop in ((0, rows // 2), (rows // 2, rows)):
            numbers, own = np.unique(case.ids[start:stop], return_inverse=True)
            numbers, own = numbers[::-1].copy(), len(numbers) - 1 - own
            part = case.make()
            part.update(own, len(numbers), case.part(start, stop), stop - start)
            whole.merge(part, numbers, case.groups)
        return whole.finish(case.groups)

    case.check(compute)
