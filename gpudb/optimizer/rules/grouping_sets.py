"""Grouping sets taken apart: the empty set as an aggregate of its own."""

from __future__ import annotations

from dataclasses import replace

from gpudb.expr import Grouping, Literal
from gpudb.optimizer import logical
from gpudb.optimizer.logical import Assignment, Plan
from gpudb.optimizer.rules.context import RuleContext
from gpudb.optimizer.rules.shape import fresh_copy


def has_empty_set(plan: logical.Aggregate) -> bool:
    """Whether one of its sets yields a row even without any input."""
    return any(not chosen for chosen in plan.grouping_sets)


def _total(plan: logical.Aggregate) -> Plan:
    """The one row of the empty set: keys are NULL, GROUPING has all its bits."""
    calls = tuple(item for item in plan.items if not isinstance(item.call, Grouping))
    grouped = logical.Aggregate(plan.input, (), calls)
    values = [Assignment(item.field, Literal(None, item.field.type)) for item in plan.keys]
    for item in plan.items:
        if isinstance(item.call, Grouping):
            bits = (1 << len(item.call.arguments)) - 1
            values.append(Assignment(item.field, Literal(bits, item.field.type)))
        else:
            values.append(Assignment(item.field, item.field.ref))
    return logical.Project(grouped, tuple(values))


def without_empty_sets(plan: logical.Aggregate, context: RuleContext) -> Plan:
    """The aggregate as UNION ALL of its other sets and one total for each empty set.

    The input is repeated in each: for the rare case that it is correlated.
    """
    chosen = tuple(item for item in plan.grouping_sets if item)
    parts: list[Plan] = [replace(plan, grouping_sets=chosen)] if chosen else []
    parts += [_total(plan)] * (len(plan.grouping_sets) - len(chosen))
    result, _ = fresh_copy(parts[0], context)
    for part in parts[1:]:
        copied, _ = fresh_copy(part, context)
        columns = tuple(context.copy_of(item) for item in plan.fields)
        result = logical.SetOperation(logical.SetKind.UNION, True, result, copied, columns)
    named = zip(plan.fields, result.fields, strict=True)
    return logical.Project(result, tuple(Assignment(new, old.ref) for new, old in named))
