"""From a bound logical plan to a verified physical plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpudb.expr import Expr, Literal
from gpudb.optimizer.dynamic_filters import place_dynamic_filters
from gpudb.optimizer.estimate import Estimator
from gpudb.optimizer.logical import Plan
from gpudb.optimizer.physical import Physical
from gpudb.optimizer.planner import Planner
from gpudb.optimizer.rules import RULES
from gpudb.optimizer.rules.context import RuleContext
from gpudb.optimizer.statistics import StatisticsSource
from gpudb.optimizer.verify import verify

Fold = Callable[[Expr], Literal | None]


def rewrite(plan: Plan, context: RuleContext) -> Plan:
    """The plan after all rules, each run once in the order of RULES."""
    for rule in RULES:
        if rule.__name__ in context.disabled:
            continue
        changed = rule(plan, context)
        context.record(rule.__name__, plan, changed)
        plan = changed
    return plan


def optimize(
    plan: Plan,
    statistics: StatisticsSource,
    settings: Mapping[str, Any],
    *,
    fold: Fold | None = None,
    trace: list[tuple[str, Plan]] | None = None,
) -> Physical:
    """The physical plan of a statement.

    ``fold`` evaluates an immutable call on constants, or gives None where that raises (the call
    is kept, to raise at execution if it is reached). ``trace`` receives (rule, plan after it)
    for each rule that changed the plan.
    """
    context = RuleContext.of(plan, statistics, settings, fold=fold, trace=trace)
    rewritten = rewrite(plan, context)
    estimator = Estimator(statistics)
    planned = Planner(estimator).plan_root(rewritten)
    return verify(place_dynamic_filters(planned, estimator))
