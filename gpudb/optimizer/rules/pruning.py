"""Columns that nobody reads are not computed, joined along or read from tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpudb.expr import Expr, references
from gpudb.optimizer import logical
from gpudb.optimizer.logical import Join, Plan, field_ids
from gpudb.optimizer.rules.context import RuleContext
from gpudb.optimizer.rules.shape import exact_inputs, exactly
from gpudb.tree import children, map_children


def prune_columns(plan: Plan, context: RuleContext) -> Plan:
    """The plan reading only the columns that its result needs."""
    return exactly(_prune(plan, field_ids(plan)), plan.fields)


def _used(*nodes: Any) -> frozenset[int]:
    found: frozenset[int] = frozenset()
    for node in nodes:
        found |= references(node)
    return found


def _prune(plan: Plan, needed: frozenset[int]) -> Plan:
    match plan:
        case logical.Scan():
            wanted = needed | _used(*plan.filters)
            columns = tuple(item for item in plan.columns if item.id in wanted)
            return plan if len(columns) == len(plan.columns) else replace(plan, columns=columns)
        case logical.Project():
            kept = tuple(item for item in plan.assignments if item.field.id in needed)
            return logical.Project(_prune(plan.input, _used(*kept)), kept)
        case logical.Filter():
            return replace(plan, input=_prune(plan.input, needed | _used(plan.predicate)))
        case Join():
            wanted = needed | _used(plan.condition)
            return replace(
                plan,
                left=_prune(plan.left, wanted & field_ids(plan.left)),
                right=_prune(plan.right, wanted & field_ids(plan.right)),
            )
        case logical.Aggregate():
            items = tuple(item for item in plan.items if item.field.id in needed)
            if not plan.keys and not items:
                items = plan.items[:1]
            return replace(
                plan, input=_prune(plan.input, _used(*plan.keys, *items)), items=items
            )
        case logical.Window():
            kept_items = tuple(item for item in plan.items if item.field.id in needed)
            if not kept_items:
                return _prune(plan.input, needed)
            return replace(
                plan, input=_prune(plan.input, needed | _used(*kept_items)), items=kept_items
            )
        case logical.Sort():
            return replace(plan, input=_prune(plan.input, needed | _used(*plan.keys)))
        case logical.Limit():
            return replace(plan, input=_prune(plan.input, needed))
        case logical.ProjectSet():
            return replace(plan, input=_prune(plan.input, needed | _used(*plan.calls)))
        case logical.With():
            definitions = tuple(
                replace(item, plan=exactly(_prune(item.plan, field_ids(item.plan)),
                                           item.plan.fields))
                for item in plan.definitions
            )
            return logical.With(definitions, _prune(plan.input, needed))
    return _all_columns(plan)


def _all_columns(plan: Plan) -> Plan:
    """Nodes that read their inputs as a whole or by position."""
    own: frozenset[int] = frozenset()
    for expression in children(plan, Expr):
        own |= references(expression)
    rebuilt = map_children(plan, Plan, lambda child: _prune(child, field_ids(child) | own))
    found: Plan = exact_inputs(plan, rebuilt)
    return found
