"""Immutable calls on constants become constants; what would raise is left for execution."""

from __future__ import annotations

from typing import Any

from gpudb.expr import Call, Cast, ColumnRef, Expr, Literal, Not, Subquery, Volatility
from gpudb.optimizer.logical import Field, Plan
from gpudb.optimizer.rules.context import RuleContext
from gpudb.sqltype import BOOLEAN, REG_TYPES
from gpudb.tree import Node, map_children


def fold_constants(plan: Plan, context: RuleContext) -> Plan:
    """The plan with constant expressions evaluated, subqueries included."""
    if context.fold is None:
        return plan
    folder = _Folder(context)
    found: Plan = folder.node(plan)
    return found


class _Folder:
    def __init__(self, context: RuleContext) -> None:
        self._context = context

    def node(self, node: Any) -> Any:
        if isinstance(node, Literal | ColumnRef | Field):
            return node
        if isinstance(node, Subquery):
            node = map_children(node, Plan, self.node)
        rebuilt = map_children(node, Node, self.node)
        return self._folded(rebuilt) if isinstance(rebuilt, Expr) else rebuilt

    def _folded(self, node: Expr) -> Expr:
        match node:
            case Call() if not node.function.returns_set:
                if node.function.volatility is not Volatility.IMMUTABLE:
                    return node
                if not all(isinstance(item, Literal) for item in node.arguments):
                    return node
            case Cast(argument=Literal()):
                # Text of times depends on settings, names of objects on the catalog.
                if node.is_text_io or node.type.oid in REG_TYPES or (
                    node.argument.type.oid in REG_TYPES
                ):
                    return node
                if node.function is not None and (
                    node.function.volatility is not Volatility.IMMUTABLE
                ):
                    return node
            case Not(argument=Literal() as inner):
                return Literal(None if inner.value is None else not inner.value, BOOLEAN)
            case _:
                return node
        assert self._context.fold is not None
        found = self._context.fold(node)
        return node if found is None else found
