"""The rewrite rules, each run once, in this order.

A rule is a plain function (plan, RuleContext) -> plan in a module of its own; it returns the very
plan it was given when it has nothing to do. Adding a rule is one file and one line here.
"""

from __future__ import annotations

from collections.abc import Callable

from gpudb.optimizer.logical import Plan
from gpudb.optimizer.rules.context import RuleContext

Rule = Callable[[Plan, RuleContext], Plan]

RULES: tuple[Rule, ...] = ()
