"""What the optimizer makes of a query means the same as the query: on random nested queries over
small tables with NULLs and duplicates, the interpreted plan before = the interpreted plan after.
"""

from __future__ import annotations

from collections import Counter

import pytest
from logical_builder import Statistics
from plan_interpreter import CardinalityViolation, DivisionByZero, Interpreter
from random_queries import Generator

from gpudb.expr import Subquery
from gpudb.optimizer.logical import Plan, free_ids
from gpudb.optimizer.optimizer import optimize
from gpudb.tree import Node, children

SEEDS_A_TEST = 25
SIZES = (10.0, 1e4, 1e6)
"""Pretended table sizes, so that join orders and build sides vary."""


def run_closed(node: Node, interpreter: Interpreter) -> None:
    """Run every uncorrelated part once: the optimizer may, even where no row asks for it."""
    if isinstance(node, Plan) and not free_ids(node):
        interpreter.run(node, {})
    if isinstance(node, Subquery):
        run_closed(node.plan, interpreter)
    for child in children(node, Node):
        run_closed(child, interpreter)


def check(seed: int, depth: int, *, is_wild: bool = False) -> bool:
    """Whether the query ran; False where it raises by itself."""
    made = Generator(seed, depth=depth, is_wild=is_wild)
    plan = made.statement()
    rows = {table.oid: table.rows for table in made.tables}
    sizes = {table.oid: made.random.choice(SIZES) for table in made.tables}
    try:
        wanted = Interpreter(rows).result(plan)
        run_closed(plan, Interpreter(rows))
    except (CardinalityViolation, DivisionByZero):
        return False
    planned = optimize(plan, Statistics(made.tables, sizes), {})
    found = Interpreter(rows).result(planned)
    assert Counter(found) == Counter(wanted), f"seed {seed}, depth {depth}"
    return True


@pytest.mark.parametrize("block", range(10))
def test_random_queries_keep_their_meaning(block: int) -> None:
    seeds = range(block * SEEDS_A_TEST, (block + 1) * SEEDS_A_TEST)
    ran = sum(check(seed, 1) for seed in seeds)
    assert ran > SEEDS_A_TEST / 2


@pytest.mark.parametrize("block", range(4))
def test_divisions_see_no_more_rows(block: int) -> None:
    """A query that does not divide by zero as written does not after optimizing."""
    seeds = range(block * 50, (block + 1) * 50)
    assert sum(check(seed, 0, is_wild=True) for seed in seeds) > 25


def test_deeper_queries_keep_their_meaning() -> None:
    assert sum(check(seed, 2) for seed in DEEP) == len(DEEP)


DEEP = (1000, 1003, 1005, 1008, 1011, 1013)
