"""Rebuilding whole plans: every expression in them, subqueries' plans included."""

from __future__ import annotations

from collections.abc import Callable

from gpudb.expr import Expr
from gpudb.optimizer import logical
from gpudb.tree import map_children


def map_expressions(plan: logical.Plan, function: Callable[[Expr], Expr]) -> logical.Plan:
    """The plan with ``function`` applied to each topmost expression of each of its nodes.

    ``function`` itself goes down into an expression's parts and its subqueries.
    """
    rebuilt: logical.Plan = map_children(
        plan, logical.Plan, lambda child: map_expressions(child, function)
    )
    mapped: logical.Plan = map_children(rebuilt, Expr, function)
    return mapped
