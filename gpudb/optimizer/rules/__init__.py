"""The rewrite rules, each run once, in this order.

A rule is a plain function (plan, RuleContext) -> plan in a module of its own; it returns the very
plan it was given when it has nothing to do. Adding a rule is one file and one line here.
"""

from __future__ import annotations

from collections.abc import Callable

from gpudb.optimizer.logical import Plan
from gpudb.optimizer.rules.context import RuleContext
from gpudb.optimizer.rules.decorrelation import decorrelate
from gpudb.optimizer.rules.folding import fold_constants
from gpudb.optimizer.rules.pruning import prune_columns
from gpudb.optimizer.rules.pushdown import push_filters
from gpudb.optimizer.rules.sharing import inline_shared
from gpudb.optimizer.rules.subqueries import remove_subqueries

Rule = Callable[[Plan, RuleContext], Plan]

RULES: tuple[Rule, ...] = (
    fold_constants,
    inline_shared,
    remove_subqueries,
    decorrelate,
    push_filters,
    prune_columns,
)
