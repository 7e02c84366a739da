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

from gpudb import errors, layout
from gpudb.catalog import types
from gpudb.catalog.types import TypeContext
from gpudb.column import (
    Column,
    dictionary_column,
    float_column,
    from_values,
    integer_column,
    slice_rows,
    take_rows,
    to_values,
)
from gpudb.exec.context import QueryContext
from gpudb.exec.functions import accumulators
from gpudb.exec.functions.accumulators_statistics import _add_pairs, _add_values
from gpudb.exec.functions.segments import ExactSums
from gpudb.expr import AggregateCall, ColumnRef, Function, SortKey, Volatility
from gpudb.kernels.decimal import from_integers, to_integers
from gpudb.layout import Dictionary
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
            empty = torch.zeros(0, dtype=torch.int64)
            return [*self.direct, *(take_rows(c, empty, 2) for c in self.columns)]
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
        found: Column = state.finish(case.groups)
        return found

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
        found: Column = state.finish(case.groups)
        return found

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
        found: Column = whole.finish(case.groups)
        return found

    case.check(compute)


def accumulate(key: str, result: str, batches: list[tuple[list[int], list[Column]]]) -> Column:
    """What an aggregate gives over batches."""
    raw = {"key": key, "columns": [], "ids": [], "groups": 0, "result": result, "answer": []}
    state = Case(raw).make()
    groups = 0
    for ids, columns in batches:
        groups = max(groups, *(number + 1 for number in ids))
        state.update(np.array(ids, np.int64), groups, columns, len(ids))
    found: Column = state.finish(groups)
    return found


def test_narrow_integers_constants_and_dictionaries() -> None:
    kind = SqlType(data_type("int4").oid)
    framed = Column(
        kind, layout.UINT8, (torch.tensor([0, 1, 255], dtype=torch.uint8),),
        torch.tensor([True, True, False]), base=1000, step=10,
    )
    constant = integer_column(kind, torch.tensor([-7], dtype=torch.int16))
    batches = [([0, 1, 1], [framed]), ([1, 2], [constant])]
    assert to_values(accumulate("sum(int4)", "int8", batches)) == [1000, 1003, -7]
    assert to_values(accumulate("max(int4)", "int4", batches)) == [1000, 1010, -7]
    assert to_values(accumulate("bit_or(int4)", "int4", batches)) == [1000, -5, -7]
    assert to_values(accumulate("count(any)", "int8", batches)) == [1, 2, 1]
    words = Dictionary.of([b"pear", b"apple", b"fig"], is_sorted=False)
    coded = dictionary_column(
        SqlType(data_type("text").oid), torch.tensor([0, 2, 1], dtype=torch.uint8), words
    )
    plain = column("text", ["grape", "zoo"])
    mixed = [([0, 0, 1], [coded]), ([1, 1], [plain])]
    assert to_values(accumulate("min(text)", "text", mixed)) == ["fig", "apple"]
    assert to_values(accumulate("max(text)", "text", mixed)) == ["pear", "zoo"]
    joined = accumulate(
        "string_agg(text,text)", "text",
        [(ids, [columns[0], column("text", ["+"])]) for ids, columns in mixed],
    )
    assert to_values(joined) == ["pear+fig", "apple+grape+zoo"]


def test_sums_beyond_128_bits_and_carries() -> None:
    sums = ExactSums()
    ids = torch.zeros(4, dtype=torch.int64)
    values = torch.tensor([2**63 - 1, 2**63 - 1, -(2**63), 5])
    for _ in range(3):
        sums.add(ids, 2, values, 2**63)
    assert sums.to_python(2) == [3 * (2**63 + 3), 0]
    sums.scale_by(10**30, 2)
    assert sums.to_python(2) == [3 * (2**63 + 3) * 10**30, 0]
    assert sums.to_int64(2) is None
    assert sums.to_wide(2) is None
    sums.add_wide(ids[:1] + 1, 2, from_integers([-(2**100) - 1]))
    assert sums.to_python(2)[1] == -(2**100) - 1
    other = ExactSums()
    other.add(ids, 1, -values, 2**63)
    other.merge(sums, torch.tensor([2, 0]), 3)
    assert other.to_python(3) == [
        -(2**100) - 1 - 3 * (2**63 + 1), 0, 3 * (2**63 + 3) * 10**30,
    ]


@pytest.mark.parametrize("number", [0, 5, -5, 2**63 - 1, -(2**63), 2**64, -(2**64) - 7, 2**120])
def test_exact_sums_come_back(number: int) -> None:
    sums = ExactSums()
    sums.add_wide(torch.zeros(1, dtype=torch.int64), 1, from_integers([number]))
    assert sums.to_python(1) == [number]
    narrow, wide = sums.to_int64(1), sums.to_wide(1)
    assert (narrow is not None) == (-(2**63) <= number < 2**63)
    assert narrow is None or narrow.tolist() == [number]
    assert wide is None or to_integers(wide) == [number]
    assert sums.to_python(1) == [number]


def test_bigint_overflow_is_refused() -> None:
    sums = ExactSums()
    sums.add(torch.zeros(3, dtype=torch.int64), 1, torch.full((3,), 2**62), 2**62)
    state = Case({
        "key": "sum(int4)", "columns": [], "ids": [], "groups": 1, "result": "int8", "answer": [],
    }).make()
    state.state.sums = sums
    with pytest.raises(errors.NumericValueOutOfRange, match="bigint out of range"):
        state.finish(1)


def test_compiled_and_plain_loops_agree() -> None:
    generator = np.random.default_rng(5)
    rows, groups = 20_000, 40
    ids = generator.integers(0, groups, rows)
    x, y = generator.normal(size=rows), generator.normal(size=rows)
    for kernel, arguments, width in ((_add_values, (x,), 3), (_add_pairs, (y, x), 6)):
        compiled, plain = np.zeros((groups, width)), np.zeros((groups, width))
        assert kernel(ids, *arguments, compiled) == kernel.loop(ids, *arguments, plain) == 0
        assert (compiled == plain).all()


def test_extremes_of_many_batches_shrink() -> None:
    generator = np.random.default_rng(6)
    state = Case({
        "key": "max(float8)", "columns": [], "ids": [], "groups": 1, "result": "float8",
        "answer": [],
    }).make()
    best = np.full(3000, -np.inf)
    kind = SqlType(data_type("float8").oid)
    for _ in range(40):
        ids, values = generator.integers(0, 3000, 4000), generator.normal(size=4000)
        np.maximum.at(best, ids, values)
        state.update(ids, 3000, [float_column(kind, torch.from_numpy(values))], 4000)
    assert to_values(state.finish(3000)) == best.tolist()
    assert state.bytes < 40 * 4000 * 16
