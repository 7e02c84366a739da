"""How much of real SQL the parsing front takes, against PostgreSQL's own verdicts.

Needs the collected suites: GPUDB_SUITES names their folder.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlglot import exp

from gpudb import errors
from gpudb.optimizer import statements
from gpudb.optimizer.parser import output_name, parse_query
from gpudb.optimizer.statements.nodes import QueryStatement

pytestmark = pytest.mark.suites

JUDGED_OTHERWISE = re.compile(r":'|^:|jsonpath|current of", re.IGNORECASE)
"""psql variables left in the text, jsonpath's own syntax errors, WHERE CURRENT OF (refused)."""


def folder() -> Path:
    path = os.environ.get("GPUDB_SUITES", "")
    if not path or not Path(path).is_dir():
        pytest.skip("GPUDB_SUITES names no folder")
    return Path(path)


def golden() -> Iterator[dict[str, object]]:
    path = folder() / "pg_regress" / "golden.jsonl"
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def captured() -> Iterator[tuple[dict[str, object], str]]:
    """Statements captured from clients: what was noted about each, and its text."""
    for path in sorted((folder().parent / "client_sql").glob("*.sql")):
        note: dict[str, object] | None = None
        lines: list[str] = []
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line.startswith("--@ "):
                note, lines = json.loads(line[4:]), []
            elif line == "--;" and note is not None:
                yield note, "\n".join(lines)
                note = None
            else:
                lines.append(line)


def verdict(text: str) -> str:
    try:
        statements.parse(text)
    except errors.SqlError as error:
        return error.sqlstate
    return ""


def test_client_statements_are_all_taken() -> None:
    found = list(captured())
    assert len(found) > 1000
    misses = [
        text for note, text in found if (verdict(text) == "42601") != (note.get("err") == "42601")
    ]
    assert misses == []


def test_regression_suite_is_judged_as_postgresql_does() -> None:
    misses = []
    for case in golden():
        if JUDGED_OTHERWISE.search(str(case["sql"])):
            continue
        found = verdict(str(case["sql"]))
        message = str(case["message"])
        is_syntax = " at or near " in message or "at end of input" in message
        expected = "42601" if case["sqlstate"] == "42601" and is_syntax else ""
        if found != expected and found != case["sqlstate"]:
            misses.append((case["file"], case["line"], found))
    assert misses == []


def test_output_names_of_the_regression_suite() -> None:
    wrong = []
    checked = 0
    for case in golden():
        if case["kind"] != "rows" or verdict(str(case["sql"])):
            continue
        parsed = statements.parse(str(case["sql"]))
        if len(parsed) != 1 or not isinstance(parsed[0], QueryStatement):
            continue
        tree = parse_query(parsed[0].query)
        while isinstance(tree, exp.SetOperation):
            tree = tree.args["this"]
        targets = tree.args["expressions"] if isinstance(tree, exp.Select) else []
        if not targets or any(target.is_star for target in targets):
            continue
        checked += 1
        if [output_name(target) for target in targets] != case["names"]:
            wrong.append((case["file"], case["line"]))
    assert checked > 3000
    assert wrong == []
