"""Options of the whole test run and the collection of tests/sql/**/*.slt."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SQL = ROOT / "tests" / "sql"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpudb")
    group.addoption(
        "--gpudb-config",
        default="",
        metavar="FILE",
        help="run tests/sql under the settings of a tests/configs/*.toml",
    )
    group.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write what the plan tests find as the new expectation",
    )
    group.addoption(
        "--slt-dsn",
        default="",
        metavar="DSN",
        help="run tests/sql against this server instead of a new database in the process",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix != ".slt" or SQL not in file_path.parents:
        return None
    from tests.slt.collection import SltFile

    return SltFile.from_parent(parent, path=file_path)


@pytest.fixture
def rewrite_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files shall be rewritten."""
    return bool(request.config.getoption("--rewrite-golden"))
