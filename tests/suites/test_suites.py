"""Collected suites against a server of this build: pass rates beside PostgreSQL 15's.

GPUDB_SUITES names the folder that holds ``suites``, ``client_sql`` and ``tools`` with their runners
(`make suites`). Each test prints what the runner reports; it fails when the runner breaks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tpch.server import started

pytestmark = [pytest.mark.suites, pytest.mark.timeout(3600)]

SQLITE_SAMPLE = "0.02"
REGRESS_FILES = (
    "boolean", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "strings", "date",
    "time", "timestamp", "timestamptz", "interval", "case", "select", "select_distinct",
    "select_having", "union", "join", "aggregates", "subselect", "window", "groupingsets",
    "insert", "update", "delete", "transactions", "with", "limit",
)


@pytest.fixture(scope="module")
def folder() -> Path:
    found = os.environ.get("GPUDB_SUITES", "")
    if not found or not (Path(found) / "suites").is_dir():
        pytest.skip("GPUDB_SUITES names no folder with suites")
    return Path(found).resolve()


@pytest.fixture(scope="module")
def dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("data")
    with started(data, threads=2, settings=()) as port:
        yield f"host=127.0.0.1 port={port} user=postgres dbname=postgres"


def run_tool(script: Path, *arguments: str, cwd: Path, report: Path) -> Any:
    """The JSON report of a runner; its exit status says only whether all passed."""
    command = [sys.executable, str(script), *arguments, "--json", str(report)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    print(done.stdout[-2000:])
    assert report.exists(), done.stderr[-2000:]
    return json.loads(report.read_text())


def test_bug_cases(folder: Path, dsn: str, tmp_path: Path) -> None:
    run_tool(
        folder / "tools/run_bug_cases.py", "--dsn", dsn, "--cases",
        str(folder / "suites/bug_cases.jsonl"), cwd=tmp_path, report=tmp_path / "out.json",
    )


@pytest.mark.parametrize(
    "suite", ["sqlite", "datafusion", "duckdb", "glaredb", "risinglight", "risingwave"]
)
def test_sqllogictest(folder: Path, dsn: str, tmp_path: Path, suite: str) -> None:
    known = folder / f"suites/pg15_known_failures/{suite}.failed"
    sample = ["--sample", SQLITE_SAMPLE] if suite == "sqlite" else []
    run_tool(
        folder / "tools/slt_runner.py", "--dsn", dsn, str(folder / "suites/slt" / suite),
        "--root", str(folder / "suites/slt"), "--ignore-failed", str(known), "--quiet", *sample,
        cwd=tmp_path, report=tmp_path / "out.json",
    )


def test_postgresql_regression(folder: Path, dsn: str, tmp_path: Path) -> None:
    regress = folder / "suites/pg_regress"
    files = [f"tests/{name}.sql" for name in REGRESS_FILES]
    run_tool(
        folder / "tools/pg_oracle.py", "--golden", "golden.jsonl", "--core", "core.json",
        "--b", dsn, "--fresh-b", "schema", "--prelude", "tests/test_setup.sql",
        "--env", f"PG_ABS_SRCDIR={regress}", "--copy-stdin",
        "--setup", "SET timezone TO 'America/Los_Angeles'", *files,
        cwd=regress, report=tmp_path / "out.json",
    )


@pytest.mark.parametrize("client", ["psql15", "psycopg3", "asyncpg"])
def test_client_statements(folder: Path, dsn: str, tmp_path: Path, client: str) -> None:
    run_tool(
        folder / "tools/client_replay.py", "--dsn", dsn, "--schema",
        str(folder / "client_sql/schema.sql"), str(folder / f"client_sql/{client}.sql"),
        cwd=tmp_path, report=tmp_path / "out.json",
    )
