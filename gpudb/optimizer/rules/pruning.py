"""Columns that nobody reads are not computed, joined along or read from tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpudb.expr import Expr, references
from gpudb.optimizer import logical
from gpudb.optimizer.logical import Join, Plan, field_ids
from gpudb.optimizer.rules.context import RuleContext
from gpudb.optimizer.rules.shape import POSITIONAL, exact_inputs, exactly
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
            return _prune_with(plan, needed)
    return _all_columns(plan)


def _all_columns(plan: Plan) -> Plan:
    """Nodes that read their inputs as a whole or by position."""
    own: frozenset[int] = frozenset()
    for expression in children(plan, Expr):
        own |= references(expression)
    rebuilt = map_children(plan, Plan, lambda child: _prune(child, field_ids(child) | own))
    found: Plan = exact_inputs(plan, rebuilt)
    return found


def _prune_with(plan: logical.With, needed: frozenset[int]) -> Plan:
    """Shared plans yield only the columns that some reader reads."""
    body = _prune(plan.input, needed)
    kept: list[logical.SharedDefinition] = []
    for definition in reversed(plan.definitions):
        readers = [body, *(item.plan for item in kept)]
        places = sorted(
            set().union(*(_read_below(item, definition.id, field_ids(item)) for item in readers))
        )
        fields = tuple(definition.plan.fields[place] for place in places)
        pruned = exactly(_prune(definition.plan, frozenset(f.id for f in fields)), fields)
        if len(places) < len(definition.plan.fields):
            body = _narrowed(body, definition.id, places)
            kept = [
                replace(item, plan=_narrowed(item.plan, definition.id, places)) for item in kept
            ]
        kept.append(replace(definition, plan=pruned))
    return logical.With(tuple(reversed(kept)), body)


def _read_below(plan: Plan, shared: int, needed: frozenset[int]) -> set[int]:
    """The columns of a shared plan that a pruned plan reads, by place."""
    if isinstance(plan, logical.SharedRef):
        if plan.id != shared:
            return set()
        return {place for place, item in enumerate(plan.columns) if item.id in needed}
    found: set[int] = set()
    own = _used(*children(plan, Expr))
    passes = not isinstance(plan, logical.Project | logical.Aggregate)
    for child in plan.inputs:
        wanted = own | needed if passes else own
        if isinstance(plan, POSITIONAL) or (
            isinstance(plan, logical.With) and child is not plan.input
        ):
            wanted = field_ids(child)
        found |= _read_below(child, shared, wanted)
    return found


def _narrowed(plan: Plan, shared: int, places: list[int]) -> Plan:
    """The plan with fewer columns in its references to a shared plan."""
    if isinstance(plan, logical.SharedRef) and plan.id == shared:
        return replace(plan, columns=tuple(plan.columns[place] for place in places))
    changed: Plan = map_children(plan, Plan, lambda child: _narrowed(child, shared, places))
    return changed
