"""Golden plans: the 22 queries of TPC-H, and for each rule the statements that show what it does.

``--rewrite-golden`` writes what is found as the new expectation: look at the difference.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from frozen import ROOT, Explainer  # noqa: E402

QUERIES = sorted((ROOT / "tpch" / "queries").glob("q*.sql"))
RULES = sorted((HERE / "rules").glob("*.txt"))
SEPARATOR = "----"


@pytest.fixture(scope="module")
def explainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explainer]:
    made = Explainer(tmp_path_factory.mktemp("plans"))
    yield made
    made.close()


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_tpch_plan(path: Path, explainer: Explainer, request: pytest.FixtureRequest) -> None:
    query = path.read_text().replace(":fraction", "0.001")
    found = explainer.text(query) + "\n"
    golden = HERE / "tpch" / f"{path.stem}.txt"
    if request.config.getoption("--rewrite-golden"):
        golden.write_text(found)
    assert found == golden.read_text()


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_rule_plans(path: Path, explainer: Explainer, request: pytest.FixtureRequest) -> None:
    """A file holds blocks of a statement, a line of dashes and its plan, parted by empty lines."""
    blocks = re.split(r"\n{2,}", path.read_text().strip())
    statements = [block.split(f"\n{SEPARATOR}")[0] for block in blocks]
    found = [f"{item}\n{SEPARATOR}\n{explainer.text(item)}" for item in statements]
    if request.config.getoption("--rewrite-golden"):
        path.write_text("\n\n".join(found) + "\n")
    assert found == re.split(r"\n{2,}", path.read_text().strip())


def test_every_rule_has_a_golden_file() -> None:
    from gpudb.optimizer.rules import RULES as known

    assert {rule.__name__ for rule in known} <= {path.stem for path in RULES}
