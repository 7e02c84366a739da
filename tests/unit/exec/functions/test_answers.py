"""Scalar functions against what PostgreSQL 15 answered (answers.json).

A case is a registry key, its arguments as (type, text) and the answer: ["ok", text or null] or
[SQLSTATE, message]. Every case runs as a constant and as a column of three rows.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import torch

from gpudb import errors
from gpudb.catalog import functions, types
from gpudb.catalog.types import TypeContext
from gpudb.catalog.types.strings import padded
from gpudb.column import Column, expand, from_values, take, to_values
from gpudb.exec.context import QueryContext
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions import load
from gpudb.exec.functions.rowwise import is_strict
from gpudb.sqltype import SqlType

CASES = json.loads(Path(__file__).with_name("answers.json").read_text())
SETTINGS = TypeContext(ZoneInfo("America/Los_Angeles"))


@cache
def groups() -> dict[str, list[Any]]:
    """The cases by key."""
    found: dict[str, list[Any]] = {}
    for case in CASES:
        found.setdefault(case[0], []).append(case)
    return found


def data_type(name: str) -> types.DataType:
    plain = name.strip('"')
    found = types.by_name("_" + plain[:-2] if plain.endswith("[]") else plain)
    assert found is not None, name
    return found


def column(type_name: str, text: str | None) -> Column:
    kind = data_type(type_name)
    value = None if text is None else kind.parse(text, -1, SETTINGS)
    return from_values(SqlType(kind.oid), kind.layout, [value])


def run(key: str, columns: list[Column], rows: int) -> list[str | None]:
    """The answer of one evaluation (of its first row)."""
    context = EvaluationContext(QueryContext(None, {}, types=SETTINGS), rows)
    strict = is_strict(key)
    if strict and any(c.valid is not None and not c.valid.all() for c in columns):
        return ["ok", None]
    result = functions.SCALARS[key].body(context, *columns)
    if context.errors.error is not None:
        assert context.errors.row == 0
        return [context.errors.error.sqlstate, context.errors.error.message]
    shown = types.get(result.type.oid)
    values = to_values(expand(result, rows))
    texts = [None if v is None else shown.format(v, SETTINGS) for v in values]
    assert len(set(texts)) == 1
    text = texts[0]
    if text is not None and shown.name == "bpchar":
        text = padded(text, result.type.typmod)
    return ["ok", text]


def failures(key: str, rows: int) -> list[str]:
    load()
    found = []
    for _, arguments, expected in groups()[key]:
        try:
            columns = [column(name, text) for name, text in arguments]
        except errors.SqlError as problem:
            got: list[str | None] = [problem.sqlstate, problem.message]
        else:
            if rows > 1:
                index = torch.zeros(rows, dtype=torch.int64)
                columns = [_written_out(c, rows, index) for c in columns]
            got = run(key, columns, rows)
        if key.endswith("cmp"):
            got, expected = sign_of(got), sign_of(expected)
        if not same(got, expected):
            found.append(f"{key}{arguments}: {got}, PostgreSQL says {expected}")
    return found


def sign_of(answer: list[str | None]) -> list[str | None]:
    """Of a comparison only the sign is specified."""
    number = int(str(answer[1]))
    return [answer[0], str((number > 0) - (number < 0))]


def _written_out(one: Column, rows: int, index: torch.Tensor) -> Column:
    pair = expand(one, 2)
    return take(pair, index[:rows])


def same(got: list[str | None], expected: list[str | None]) -> bool:
    """Equal texts; floats of library functions may differ in the last digits."""
    if got == expected:
        return True
    if got[0] != "ok" or expected[0] != "ok" or None in (got[1], expected[1]):
        return False
    if not re.fullmatch(r"-?[0-9.]+(e[+-][0-9]+)?", str(expected[1])) or "." not in str(
        expected[1]
    ):
        return False
    try:
        one, two = float(str(got[1])), float(str(expected[1]))
    except ValueError:
        return False
    return len(str(expected[1])) >= 16 and abs(one - two) <= 4e-16 * abs(two)


@pytest.mark.parametrize("key", sorted({case[0] for case in CASES}))
@pytest.mark.parametrize("rows", [1, 3])
def test_answers(key: str, rows: int) -> None:
    assert failures(key, rows) == []
