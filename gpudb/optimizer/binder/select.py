"""SELECT: from its clauses to one plan, in the order in which SQL evaluates them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb.expr import ColumnRef, Expr, SortKey
from gpudb.optimizer import logical
from gpudb.optimizer.binder import (
    expressions,
    from_clause,
    grouping,
    operators,
    ordering,
    queries,
    recursion,
    targets,
    windows,
)
from gpudb.optimizer.binder.scope import Clause, Scope
from gpudb.optimizer.binder.targets import Target, Targets
from gpudb.optimizer.parser import position, start_position

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder


def bind_select(
    binder: Binder, scope: Scope, node: exp.Expression, *, keep_unknown: bool
) -> logical.Plan:
    """The plan of a SELECT without its WITH clause."""
    plan: logical.Plan = logical.Values((), ((),))
    if node.args.get("from_"):
        plan = from_clause.bind_from(binder, scope, node.args["from_"])
    _name_windows(scope, node)
    outputs = targets.bind_targets(
        binder, scope, node.args.get("expressions") or [], keep_unknown=keep_unknown
    )
    plan = _filtered(binder, scope, node, plan)
    having = _having(binder, scope, node)
    sort_numbers = _sort_numbers(binder, scope, node, outputs)
    groups = None
    if node.args.get("group"):
        groups = grouping.bind_groups(binder, scope, node, outputs)
    on_numbers = _distinct_on(binder, scope, node, outputs, sort_numbers)
    _check_distinct(binder, node, outputs, sort_numbers)
    _check_windows(binder, scope)
    if groups is not None or scope.aggregates or node.args.get("having") is not None:
        if scope.reads_work_table:
            recursion.refuse_aggregates(
                min(scope.aggregate_ids.values(), default=position(node))
            )
        plan = _grouped(binder, scope, plan, groups or grouping.Groups(), outputs, having)
    if scope.window_items:
        plan = logical.Window(plan, tuple(scope.window_items))
    plan = with_sets(binder, plan, list(scope.set_calls.values()))
    plan, fields = projected(binder, scope, plan, outputs.items)
    return _ordered(
        binder, scope, node, plan, (fields, outputs.visible()), (sort_numbers, on_numbers)
    )


def _name_windows(scope: Scope, node: exp.Expression) -> None:
    for window in node.args.get("windows") or ():
        name = window.args["alias"]
        if name in scope.windows:
            raise errors.WindowingError(
                f'window "{name}" is already defined', position=position(window)
            )
        scope.windows[name] = window


def _check_windows(binder: Binder, scope: Scope) -> None:
    """Bind the named windows that nothing uses, for their errors."""
    for name, window in list(scope.windows.items()):
        if not isinstance(window, windows.Definition):
            scope.windows[name] = windows.define(binder, scope, window)


def _filtered(
    binder: Binder, scope: Scope, node: exp.Expression, plan: logical.Plan
) -> logical.Plan:
    where = node.args.get("where")
    if where is None:
        return plan
    with binder.clause(scope, Clause.WHERE):
        predicate = expressions.condition(binder, scope, where, "WHERE")
    return logical.Filter(plan, predicate)


def _having(binder: Binder, scope: Scope, node: exp.Expression) -> Expr | None:
    having = node.args.get("having")
    if having is None:
        return None
    with binder.clause(scope, Clause.HAVING):
        return expressions.condition(binder, scope, having, "HAVING")


SortNumbers = list[tuple[int, exp.Expression]]


def _sort_numbers(
    binder: Binder, scope: Scope, node: exp.Expression, outputs: Targets
) -> SortNumbers:
    """The target number of each ORDER BY item."""
    found = []
    for item in node.args.get("order") or ():
        found.append(
            (outputs.entry(binder, scope, item.args["this"], Clause.ORDER_BY), item)
        )
    return found


def _distinct_on(
    binder: Binder,
    scope: Scope,
    node: exp.Expression,
    outputs: Targets,
    sort_numbers: SortNumbers,
) -> list[int]:
    distinct = node.args.get("distinct")
    on = None if distinct is None else distinct.args.get("on")
    if not on:
        return []
    found: list[int] = []
    for item in on:
        number = outputs.entry(binder, scope, item, Clause.DISTINCT_ON)
        operators.require_equality(
            binder, outputs.items[number].expression, start_position(item)
        )
        if number not in found:
            found.append(number)
    is_past = False
    for number, sort_node in sort_numbers:
        if number not in found:
            is_past = True
        elif is_past:
            raise errors.InvalidColumnReference(
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                position=start_position(sort_node.args["this"]),
            )
    sorted_on = {number for number, _ in sort_numbers} & set(found)
    if is_past and len(sorted_on) < len(found):
        missing = next(i for i, number in enumerate(found) if number not in sorted_on)
        raise errors.InvalidColumnReference(
            "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
            position=start_position(on[missing]),
        )
    return found


def _check_distinct(
    binder: Binder, node: exp.Expression, outputs: Targets, sort_numbers: SortNumbers
) -> None:
    distinct = node.args.get("distinct")
    if distinct is None or distinct.args.get("on"):
        return
    for number, item in sort_numbers:
        if outputs.items[number].is_junk:
            raise errors.InvalidColumnReference(
                "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                position=start_position(item.args["this"]),
            )
    for number in range(len(outputs.items)):
        outputs.settle(binder, number)
        value = outputs.items[number].expression
        operators.require_equality(binder, value, binder.position(value))


def _grouped(
    binder: Binder,
    scope: Scope,
    plan: logical.Plan,
    keys: grouping.Groups,
    outputs: Targets,
    having: Expr | None,
) -> logical.Plan:
    """The Aggregate with HAVING above; targets, windows and sets are rewritten over it."""
    plan = _sets_of_keys(binder, scope, plan, keys)
    grouped = grouping.GroupedScope(binder, scope, keys)
    items = grouped.items()
    values = grouped.rewrite_outputs([item.expression for item in outputs.items])
    outputs.items = [
        replace(item, expression=value) for item, value in zip(outputs.items, values, strict=True)
    ]
    predicate = None if having is None else grouped.rewrite(having)
    scope.window_items = [
        replace(item, call=grouped.rewrite_call(item.call)) for item in scope.window_items
    ]
    scope.set_calls = {
        call: replace(item, expression=grouped.rewrite_call(item.expression))
        for call, item in scope.set_calls.items()
    }
    plan = logical.Aggregate(
        plan, tuple(grouped.assignments), items, tuple(keys.sets or ())
    )
    return plan if predicate is None else logical.Filter(plan, predicate)


def _sets_of_keys(
    binder: Binder, scope: Scope, plan: logical.Plan, keys: grouping.Groups
) -> logical.Plan:
    """Set-returning calls that are grouped by run below the Aggregate."""
    ids: set[int] = set()
    for key in keys.keys:
        ids |= binder.references(key)
    wanted = {
        call: item for call, item in scope.set_calls.items() if item.field.id in ids
    }
    if not wanted:
        return plan
    for call, item in wanted.items():
        del scope.set_calls[call]
        scope.set_ids.pop(item.field.id, None)
    return with_sets(binder, plan, list(wanted.values()))


def with_sets(
    binder: Binder, plan: logical.Plan, calls: list[logical.Assignment]
) -> logical.Plan:
    """The plan with set-returning calls run in lockstep; nested ones in layers."""
    while calls:
        waiting = {item.field.id for item in calls}
        ready = [c for c in calls if not binder.references(c.expression) & waiting]
        plan = logical.ProjectSet(plan, tuple(ready))
        calls = [c for c in calls if not any(c is r for r in ready)]
    return plan


def projected(
    binder: Binder, scope: Scope, plan: logical.Plan, items: list[Target]
) -> tuple[logical.Plan, list[logical.Field]]:
    """The Project of the targets and the field of each; columns of this level keep their id."""
    used: set[int] = set()
    assignments = []
    for item in items:
        value = item.expression
        if (
            isinstance(value, ColumnRef)
            and value.id not in used
            and binder.owner(value.id) is scope
        ):
            origin = binder.origins.get(value.id, (0, 0))
            output = logical.Field(value.id, item.name, value.type, *origin)
        else:
            output = binder.field_like(item.name, value)
        used.add(output.id)
        assignments.append(logical.Assignment(output, value))
    fields = [assignment.field for assignment in assignments]
    return logical.Project(plan, tuple(assignments)), fields


def _ordered(
    binder: Binder,
    scope: Scope,
    node: exp.Expression,
    plan: logical.Plan,
    outputs: tuple[list[logical.Field], int],
    numbers: tuple[SortNumbers, list[int]],
) -> logical.Plan:
    """DISTINCT, ORDER BY and LIMIT over the projection; junk columns are dropped last."""
    fields, visible = outputs
    sort_numbers, on_numbers = numbers
    if node.args.get("distinct") is not None and not on_numbers:
        plan = logical.Distinct(plan)
    if sort_numbers:
        keys: list[SortKey] = []
        for number, item in sort_numbers:
            key = ordering.sort_key(binder, fields[number].ref, item)
            if all(key.expression != known.expression for known in keys):
                keys.append(key)
        plan = logical.Sort(plan, tuple(keys))
    if on_numbers:
        plan = logical.Distinct(plan, tuple(fields[number].ref for number in on_numbers))
    plan = queries.limited(binder, scope, node, plan)
    if visible < len(fields):
        kept = tuple(
            logical.Assignment(fields[number], fields[number].ref) for number in range(visible)
        )
        plan = logical.Project(plan, kept)
    return plan
