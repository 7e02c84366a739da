"""Filters move towards the tables: through projections, joins, groupings, windows, set operations.

A conjunct that may raise or is volatile stays where it was written, unless the rows it sees are the
same. An outer join becomes an inner one below a conjunct that NULLs of its other side can't pass.
What all arms of an OR have in common comes out of it, and an OR over both sides of a join implies
one over each side.
"""

from __future__ import annotations

from dataclasses import replace

from gpudb.expr import BooleanTest, ColumnRef, Expr, Or, Truth, conjuncts, references
from gpudb.optimizer import logical
from gpudb.optimizer.logical import Join, JoinKind, Plan, field_ids
from gpudb.optimizer.properties import (
    conjoin,
    is_movable,
    rejects_nulls,
    split,
    substitute,
)
from gpudb.optimizer.rules.context import RuleContext
from gpudb.optimizer.rules.shape import exact_inputs, exactly
from gpudb.tree import map_children

IMPLIED_ARMS_MAX = 16
"""Longer disjunctions are not split over the sides of a join."""


def push_filters(plan: Plan, context: RuleContext) -> Plan:
    """Every filter as near to its tables as it may be."""
    return exactly(_push(plan, []), plan.fields)


def _push(plan: Plan, parts: list[Expr]) -> Plan:
    match plan:
        case logical.Filter():
            own = [item for part in split(plan.predicate) for item in factored(part)]
            return _push(plan.input, [*own, *parts])
        case logical.Project():
            return _through_project(plan, parts)
        case Join():
            return _through_join(plan, parts)
        case logical.Aggregate():
            return _through_aggregate(plan, parts)
        case logical.Window():
            return _through_window(plan, parts)
        case logical.Sort():
            return replace(plan, input=_push(plan.input, parts))
        case logical.Distinct() if not plan.on:
            moving, staying = _divided(parts)
            return _above(
                replace(plan, input=exactly(_push(plan.input, moving), plan.input.fields)), staying
            )
        case logical.SetOperation():
            return _through_set(plan, parts)
        case logical.With():
            definitions = tuple(
                replace(item, plan=exactly(_push(item.plan, []), item.plan.fields))
                for item in plan.definitions
            )
            return logical.With(definitions, _push(plan.input, parts))
        case logical.Scan():
            filters = tuple(dict.fromkeys((*plan.filters, *parts)))
            return replace(plan, filters=filters) if parts else plan
    rebuilt = exact_inputs(plan, map_children(plan, Plan, lambda child: _push(child, [])))
    return _above(rebuilt, parts)


def _above(plan: Plan, parts: list[Expr]) -> Plan:
    return logical.Filter(plan, conjoin(parts)) if parts else plan


def _divided(parts: list[Expr]) -> tuple[list[Expr], list[Expr]]:
    """What may move and what must stay."""
    return [p for p in parts if is_movable(p)], [p for p in parts if not is_movable(p)]


def factored(part: Expr) -> list[Expr]:
    """The conjuncts that all arms of an OR share, and the OR of what is left."""
    if not isinstance(part, Or):
        return [part]
    arms = [list(conjuncts(arm)) for arm in part.arguments]
    common = [item for item in arms[0] if all(item in arm for arm in arms[1:])]
    if not common or any(not is_movable(item) for item in common):
        return [part]
    rest = [[item for item in arm if item not in common] for arm in arms]
    if any(not arm for arm in rest):
        return common
    return [*common, Or(tuple(conjoin(arm) for arm in rest))]


def _through_project(plan: logical.Project, parts: list[Expr]) -> Plan:
    values = {item.field.id: item.expression for item in plan.assignments}
    moving: list[Expr] = []
    staying: list[Expr] = []
    for part in parts:
        used = [values[i] for i in references(part) if i in values]
        plain = all(isinstance(item, ColumnRef) for item in used)
        if plain or (is_movable(part) and all(is_movable(item) for item in used)):
            moving.append(substitute(part, values))
        else:
            staying.append(part)
    return _above(replace(plan, input=_push(plan.input, moving)), staying)


def _through_join(plan: Join, parts: list[Expr]) -> Plan:
    left_ids, right_ids = field_ids(plan.left), field_ids(plan.right)
    kind = _simplified(plan.kind, parts, left_ids, right_ids)
    own = [item for part in split(plan.condition) for item in factored(part)]
    to_left: list[Expr] = []
    to_right: list[Expr] = []
    above: list[Expr] = []
    on: list[Expr] = []
    keeps_right = kind in (JoinKind.INNER, JoinKind.RIGHT)
    keeps_left = kind not in (JoinKind.RIGHT, JoinKind.FULL)
    for part in parts:
        used = references(part)
        if not is_movable(part):
            above.append(part)
        elif keeps_left and used <= left_ids:
            to_left.append(part)
        elif keeps_right and used <= right_ids:
            to_right.append(part)
        elif kind is JoinKind.INNER:
            on.append(part)
        else:
            above.append(part)
    for part in own:
        _place_own(part, kind, (left_ids, right_ids), (to_left, to_right, on))
    if kind is JoinKind.INNER:
        for part in list(on):
            to_left += _implied(part, left_ids)
            to_right += _implied(part, right_ids)
    left, right = _push(plan.left, to_left), _push(plan.right, to_right)
    return _above(Join(kind, left, right, conjoin(on), plan.mark), above)


def _place_own(
    part: Expr,
    kind: JoinKind,
    ids: tuple[frozenset[int], frozenset[int]],
    places: tuple[list[Expr], list[Expr], list[Expr]],
) -> None:
    """Put a conjunct of the join's own condition where it may be tested."""
    to_left, to_right, on = places
    used = references(part)
    if not is_movable(part) or not used:
        on.append(part)
    elif used <= ids[1] and kind not in (JoinKind.RIGHT, JoinKind.FULL):
        is_tested = isinstance(part, BooleanTest) and part.truth is Truth.TRUE
        if kind is not JoinKind.MARK:
            to_right.append(part)
        elif isinstance(part, BooleanTest) and is_tested and not part.is_negated:
            to_right.append(part.argument)
        else:
            on.append(part)
    elif used <= ids[0] and kind in (JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI):
        to_left.append(part)
    else:
        on.append(part)


def _simplified(
    kind: JoinKind, parts: list[Expr], left: frozenset[int], right: frozenset[int]
) -> JoinKind:
    """The join kind that the conjuncts above leave of an outer join."""
    needs_left = any(rejects_nulls(part, left) for part in parts)
    needs_right = any(rejects_nulls(part, right) for part in parts)
    if kind is JoinKind.LEFT and needs_right:
        return JoinKind.INNER
    if kind is JoinKind.RIGHT and needs_left:
        return JoinKind.INNER
    if kind is JoinKind.FULL:
        if needs_left and needs_right:
            return JoinKind.INNER
        if needs_left:
            return JoinKind.LEFT
        if needs_right:
            return JoinKind.RIGHT
    return kind


def _implied(part: Expr, ids: frozenset[int]) -> list[Expr]:
    """What an OR over several tables says of one of them alone."""
    if not isinstance(part, Or) or len(part.arguments) > IMPLIED_ARMS_MAX:
        return []
    arms = []
    for arm in part.arguments:
        own = [c for c in conjuncts(arm) if references(c) <= ids and is_movable(c)]
        own = [c for c in own if references(c)]
        if not own:
            return []
        arms.append(conjoin(own))
    return [Or(tuple(arms))]


def _through_aggregate(plan: logical.Aggregate, parts: list[Expr]) -> Plan:
    if plan.grouping_sets or not plan.keys:
        return _above(replace(plan, input=_push(plan.input, [])), parts)
    values = {item.field.id: item.expression for item in plan.keys}
    moving: list[Expr] = []
    staying: list[Expr] = []
    for part in parts:
        can = references(part) <= values.keys() and is_movable(part)
        (moving if can else staying).append(part)
    moved = [substitute(part, values) for part in moving]
    return _above(replace(plan, input=_push(plan.input, moved)), staying)


def _through_window(plan: logical.Window, parts: list[Expr]) -> Plan:
    common: set[int] | None = None
    for item in plan.items:
        own = {e.id for e in item.call.partition_by if isinstance(e, ColumnRef)}
        common = own if common is None else common & own
    moving: list[Expr] = []
    staying: list[Expr] = []
    for part in parts:
        can = references(part) <= (common or set()) and is_movable(part)
        (moving if can else staying).append(part)
    return _above(replace(plan, input=_push(plan.input, moving)), staying)


def _through_set(plan: logical.SetOperation, parts: list[Expr]) -> Plan:
    moving, staying = _divided(parts)
    sides = []
    for side in (plan.left, plan.right):
        names = {
            item.id: own.ref for item, own in zip(plan.columns, side.fields, strict=True)
        }
        moved = [substitute(part, names) for part in moving]
        sides.append(exactly(_push(side, moved), side.fields))
    return _above(replace(plan, left=sides[0], right=sides[1]), staying)


