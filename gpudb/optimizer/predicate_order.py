"""The order of filters, and those that zone maps understand."""

from __future__ import annotations

from collections.abc import Sequence

from gpudb import expr
from gpudb.expr import Expr
from gpudb.optimizer.cost import (
    CALL_NANOSECONDS,
    PREDICATE_NANOSECONDS,
    TEXT_CALL_NANOSECONDS,
)
from gpudb.optimizer.estimate import Estimator
from gpudb.optimizer.properties import may_raise
from gpudb.sqltype import STRINGS
from gpudb.tree import walk

_COMPARISONS = frozenset({"=", "<", "<=", ">", ">="})


def predicate_cost(node: Expr) -> float:
    """Expected nanoseconds a row."""
    total = 0.0
    for part in walk(node, Expr):
        if isinstance(part, expr.Call):
            is_text = any(item.type.oid in STRINGS for item in part.arguments)
            if is_text and part.function.operator not in _COMPARISONS:
                total += TEXT_CALL_NANOSECONDS
            elif part.function.operator in _COMPARISONS:
                total += PREDICATE_NANOSECONDS * (2.0 if is_text else 1.0)
            else:
                total += CALL_NANOSECONDS
        elif isinstance(part, expr.InList):
            total += PREDICATE_NANOSECONDS * len(part.items)
        elif not isinstance(part, expr.ColumnRef | expr.Literal | expr.Parameter):
            total += PREDICATE_NANOSECONDS
    return max(total, PREDICATE_NANOSECONDS)


def ordered(predicates: Sequence[Expr], estimator: Estimator) -> tuple[Expr, ...]:
    """Infallible predicates by cost per row removed, then fallible ones in their order."""
    if len(predicates) < 2:
        return tuple(predicates)
    safe = [part for part in predicates if not may_raise(part)]
    unsafe = [part for part in predicates if may_raise(part)]

    def rank(part: Expr) -> float:
        return predicate_cost(part) / max(1.0 - estimator.selectivity(part), 1e-3)

    return (*sorted(safe, key=rank), *unsafe)


def _is_bound(node: Expr) -> bool:
    if isinstance(node, expr.Cast):
        return not may_raise(node) and _is_bound(node.argument)
    return isinstance(node, expr.Literal | expr.Parameter)


def _is_zone_filter(node: Expr) -> bool:
    match node:
        case expr.Call(arguments=(left, right)) if node.function.operator in _COMPARISONS:
            if isinstance(left, expr.ColumnRef):
                return _is_bound(right)
            return isinstance(right, expr.ColumnRef) and _is_bound(left)
        case expr.InList():
            return isinstance(node.argument, expr.ColumnRef) and all(map(_is_bound, node.items))
        case expr.IsNull():
            return isinstance(node.argument, expr.ColumnRef)
        case _:
            return False


def zone_filters(predicates: Sequence[Expr]) -> tuple[Expr, ...]:
    """Those predicates that bounds of a zone can refute: a column against constants."""
    return tuple(part for part in predicates if _is_zone_filter(part))
