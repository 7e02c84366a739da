"""Shared plans that are read once are put where they are read."""

from __future__ import annotations

from dataclasses import replace

from gpudb.expr import Expr, Subquery
from gpudb.optimizer import logical
from gpudb.optimizer.logical import Assignment, Plan
from gpudb.optimizer.properties import is_volatile
from gpudb.optimizer.rules.context import RuleContext
from gpudb.tree import Node, children, map_children


def inline_shared(plan: Plan, context: RuleContext) -> Plan:
    """WITH queries without side effects that have a single reader are inlined."""
    rebuilt: Plan = map_children(plan, Plan, lambda child: inline_shared(child, context))
    if not isinstance(rebuilt, logical.With):
        return rebuilt
    body: Node = rebuilt.input
    kept: list[logical.SharedDefinition] = []
    for definition in reversed(rebuilt.definitions):
        readers = _readers(body, definition.id) + sum(
            _readers(item.plan, definition.id) for item in kept
        )
        if readers != 1 or not is_pure(definition.plan):
            kept.append(definition)
            continue
        body = _placed(body, definition)
        kept = [replace(item, plan=_placed(item.plan, definition)) for item in kept]
    assert isinstance(body, Plan)
    return logical.With(tuple(reversed(kept)), body) if kept else body


def _readers(node: Node, shared: int) -> int:
    """How often a shared plan is read, subqueries included."""
    count = 1 if isinstance(node, logical.SharedRef) and node.id == shared else 0
    if isinstance(node, Subquery):
        count += _readers(node.plan, shared)
    return count + sum(_readers(child, shared) for child in children(node, Node))


def is_pure(plan: Plan) -> bool:
    """Whether the plan yields the same rows each time it is run, and changes nothing."""
    if isinstance(plan, logical.Insert | logical.Update | logical.Delete):
        return False
    if any(is_volatile(item) for item in children(plan, Expr)):
        return False
    return all(is_pure(child) for child in plan.inputs)


def _placed(node: Node, definition: logical.SharedDefinition) -> Plan:
    def replaced(item: Node) -> Node:
        if isinstance(item, logical.SharedRef) and item.id == definition.id:
            return logical.Project(
                definition.plan,
                tuple(
                    Assignment(new, old.ref)
                    for new, old in zip(item.columns, definition.plan.fields, strict=True)
                ),
            )
        changed: Node = map_children(item, Node, replaced)
        return changed

    found = replaced(node)
    assert isinstance(found, Plan)
    return found
