"""Aggregates against what PostgreSQL 15 answered (aggregate_answers.json).

A case is a registry key, the columns (direct arguments, arguments, ORDER BY keys: type and one
text a row), the directions of the ORDER BY keys, the group of each row, the number of groups, the
result's type and the answer: ["ok", a text or null per group] or [SQLSTATE, message]. Each case
runs as SQL, whole and in batches of two rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpudb import errors
from gpudb.embedded import Connection, connect

CASES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("aggregate_answers.json").read_text()
)
HYPOTHETICAL = ("rank", "dense_rank", "percent_rank", "cume_dist")
ORDERED = ("percentile_cont", "percentile_disc", "mode", *HYPOTHETICAL)


@pytest.fixture(scope="module", params=["262144", "2"])
def connection(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Connection]:
    made = connect(tmp_path_factory.mktemp("data"), threads=2)
    made.sql(f"SET gpudb.batch_rows = {request.param}")
    yield made
    made.close()


def literal(kind: str, text: str | None) -> str:
    if text is None:
        return f"NULL::{kind}"
    return "'" + text.replace("'", "''") + f"'::{kind}"


def query(case: dict[str, Any]) -> str:
    """The case as a statement that gives (group, answer)."""
    direct: list[Any] = case.get("direct", [])
    columns: list[Any] = case["columns"]
    order: list[list[bool]] = case.get("order", [])
    split = len(columns) - len(order)
    names = [f"c{i}" for i in range(len(columns))]
    keys = ", ".join(
        f"{name} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"
        for name, (descending, first) in zip(names[split:], order, strict=True)
    )
    name = case["key"].split("(")[0]
    arguments = ", ".join(names[:split]) or "*"
    if name in ORDERED:
        given = ", ".join(literal(kind, texts[0]) for kind, texts in direct)
        call = f"{name}({given}) WITHIN GROUP (ORDER BY {keys})"
    else:
        call = f"{name}({arguments}" + (f" ORDER BY {keys})" if keys else ")")
    rows = ", ".join(
        "(" + ", ".join([str(group), *(literal(k, t[row]) for k, t in columns)]) + ")"
        for row, group in enumerate(case["ids"])
    )
    listed = ", ".join(["g", *names])
    return f"SELECT g, {call} FROM (VALUES {rows}) AS v({listed}) GROUP BY g ORDER BY g"


def same(kind: str, got: str | None, wanted: str | None) -> bool:
    if got == wanted or got is None or wanted is None or "float" not in kind:
        return got == wanted
    return math.isclose(float(got), float(wanted), rel_tol=1e-12, abs_tol=1e-300)


def runs_as_sql(case: dict[str, Any]) -> bool:
    """Direct arguments that differ by row have no SQL form with constants; no rows, no groups."""
    constant = all(len(set(texts)) == 1 for _, texts in case.get("direct", []))
    return constant and bool(case["ids"]) and (
        case["key"].split("(")[0] not in ORDERED or bool(case.get("order"))
    )


GAPS = {
    91: "sum(float4) adds in double precision",
    151: "inet sorts by its text", 152: "inet sorts by its text", 153: "inet sorts by its text",
    169: "bit_and(bit) is refused", 170: "bit_or(bit) is refused", 171: "bit_xor(bit) is refused",
    322: "lower bounds of accumulated arrays are not compared",
    326: "json_agg breaks the line before a NULL array",
    332: "SQLSTATE of a NULL field name",
    333: "json_object_agg takes arrays as keys", 344: "jsonb_object_agg takes arrays as keys",
}
"""Known differences; a case that starts to pass must leave this list."""


def parameters() -> list[Any]:
    return [
        pytest.param(n, marks=pytest.mark.xfail(reason=GAPS[n], strict=True)) if n in GAPS else n
        for n, case in enumerate(CASES) if runs_as_sql(case)
    ]


@pytest.mark.parametrize("number", parameters())
def test_answers(connection: Connection, number: int) -> None:
    case = CASES[number]
    statement = query(case)
    status, *answer = case["answer"]
    if status != "ok":
        with pytest.raises(errors.SqlError) as caught:
            connection.sql(statement)
        assert (caught.value.sqlstate, caught.value.message) == (status, answer[0])
        return
    rows = connection.sql(statement).texts()
    wanted = [(str(g), answer[0][g]) for g in sorted(set(case["ids"]))]
    assert [g for g, _ in rows] == [g for g, _ in wanted]
    for (_, got), (_, expected) in zip(rows, wanted, strict=True):
        assert same(case["result"], got, expected), (statement, got, expected)
