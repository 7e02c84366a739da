"""Dependent joins become joins (after Neumann and Kemper, Unnesting Arbitrary Queries, BTW 2015).

Two ways. *Pull-up*: correlated conditions that stand in filters below operators that let them
through move into the join's condition; below an aggregate, a window or a limit only equalities do,
and their inner side becomes a grouping key. *Domain*: where that is not possible, the distinct
values of the outer columns are joined into the right side at its leaves, travel up through its
operators as further columns, and meet the left side again in the join's condition (IS NOT DISTINCT
FROM).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpudb.expr import (
    DEFAULT_FRAME,
    BooleanTest,
    Call,
    Case,
    CaseArm,
    Expr,
    IsNull,
    Literal,
    Truth,
    WindowCall,
    references,
)
from gpudb.optimizer import functions, logical
from gpudb.optimizer.logical import Apply, Assignment, Field, Join, JoinKind, Plan, field_ids
from gpudb.optimizer.logical_facts import (
    is_count,
    is_single_row,
    keys_of,
    keys_under,
    yields_at_most_one_row,
)
from gpudb.optimizer.properties import (
    conjoin,
    equality_sides,
    is_null_when,
    is_true,
    is_volatile,
    may_raise,
    returns_set,
    split,
    substitute,
)
from gpudb.optimizer.rules.context import RuleContext
from gpudb.optimizer.rules.domain import Domain, same_values
from gpudb.optimizer.rules.numbering import limited
from gpudb.optimizer.rules.shape import exact_inputs, exactly, fresh_copy, passed
from gpudb.optimizer.rules.sharing import is_pure
from gpudb.sqltype import BIGINT, BOOLEAN
from gpudb.tree import children, map_children

TRUE = Literal(True, BOOLEAN)
_LEFT_ONLY = (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK)


def decorrelate(plan: Plan, context: RuleContext) -> Plan:
    """No Apply is left afterwards."""
    return _Decorrelator(context).plan(plan)


@dataclass(slots=True)
class Pulled:
    """A plan whose correlated conditions were taken out; they read its columns and outer ones.

    ``defaults``: what columns are for an outer row without a group (count is 0, not NULL).
    ``late``: columns computed above the join, from the plan's and the outer ones (scalar only).
    """

    plan: Plan
    conditions: list[Expr]
    is_scalar: bool = False
    defaults: dict[int, Expr] | None = None
    late: tuple[Assignment, ...] = ()


class _Decorrelator:
    def __init__(self, context: RuleContext) -> None:
        self._context = context

    def plan(self, plan: Plan) -> Plan:
        rebuilt: Plan = exact_inputs(plan, map_children(plan, Plan, self.plan))
        return self._apply(rebuilt) if isinstance(rebuilt, Apply) else rebuilt

    def _apply(self, apply: Apply) -> Plan:
        outer = logical.free_ids(apply.right) & field_ids(apply.left)
        if not outer:
            kind = apply.kind
            if kind is JoinKind.SINGLE and yields_at_most_one_row(
                apply.right, self._context.statistics
            ):
                kind = JoinKind.LEFT
            return exactly(
                Join(kind, apply.left, apply.right, apply.condition, apply.mark), apply.fields
            )
        direct = _direct(apply)
        if direct is not None:
            return exactly(direct, apply.fields)
        if not is_pure(apply.right):
            return exactly(self._by_row(apply), apply.fields)
        pulled = None
        if not outer & self._context.guards and not _crosses(apply.right):
            pulled = self._pull(apply.right, outer)
        if pulled is not None and not (pulled.is_scalar and _needs_domain(apply)):
            return exactly(self._joined(apply, pulled), apply.fields)
        return exactly(self._by_domain(apply, outer), apply.fields)

    def _joined(self, apply: Apply, pulled: Pulled) -> Plan:
        conditions: list[Expr] = list(pulled.conditions)
        if apply.kind is JoinKind.MARK:
            conditions = [BooleanTest(item, Truth.TRUE) for item in conditions]
        if not pulled.is_scalar:
            kind = apply.kind
            if kind is JoinKind.SINGLE and self._is_unique(pulled, conditions):
                kind = JoinKind.LEFT
            condition = conjoin([*conditions, apply.condition])
            return Join(kind, apply.left, pulled.plan, condition, apply.mark)
        found = self._defaulted(apply.left, pulled, conditions)
        if apply.kind is JoinKind.INNER and not is_true(apply.condition):
            return logical.Filter(found, apply.condition)
        return found

    def _is_unique(self, pulled: Pulled, conditions: list[Expr]) -> bool:
        """Whether the conditions leave at most one row of the right side, by a key of it."""
        keys = keys_of(pulled.plan, self._context.statistics)
        left = keys_under(tuple(conditions), keys, field_ids(pulled.plan))
        return frozenset[int]() in left

    def _defaulted(self, left: Plan, pulled: Pulled, conditions: list[Expr]) -> Plan:
        """A scalar aggregate has a row for every outer row: where it found no group, defaults."""
        source, values = pulled.plan, passed(pulled.plan.fields)
        if pulled.defaults:
            present = self._context.new_field("present", BOOLEAN)
            source = logical.Project(source, (*values, Assignment(present, TRUE)))
            absent = IsNull(present.ref)
            values = tuple(
                item if default is None else Assignment(
                    item.field,
                    Case((CaseArm(absent, default),), item.expression, item.field.type),
                )
                for item in values
                for default in [pulled.defaults.get(item.field.id)]
            )
        joined: Plan = Join(JoinKind.LEFT, left, source, conjoin(conditions))
        if pulled.defaults:
            joined = logical.Project(joined, (*passed(left.fields), *values))
        if pulled.late:
            joined = logical.Project(joined, (*passed(left.fields), *pulled.late))
        return joined

    # Pull-up

    def _pull(self, plan: Plan, outer: frozenset[int]) -> Pulled | None:
        if not logical.free_ids(plan) & outer:
            return Pulled(plan, [])
        match plan:
            case logical.Filter():
                return self._pull_filter(plan, outer)
            case logical.Project():
                return self._pull_project(plan, outer)
            case logical.Aggregate():
                return self._pull_aggregate(plan, outer)
            case Join():
                return self._pull_join(plan, outer)
            case logical.Sort():
                return self._pull_sort(plan, outer)
            case logical.Distinct():
                return self._pull_distinct(plan, outer)
            case logical.Limit():
                return self._pull_limit(plan, outer)
        return None

    def _pull_filter(self, plan: logical.Filter, outer: frozenset[int]) -> Pulled | None:
        below = self._pull(plan.input, outer)
        if below is None:
            return None
        if below.is_scalar:
            return None
        taken, own = _divided(plan.predicate, below.conditions, outer)
        rebuilt = logical.Filter(below.plan, conjoin(own)) if own else below.plan
        return Pulled(rebuilt, taken)

    def _pull_project(self, plan: logical.Project, outer: frozenset[int]) -> Pulled | None:
        below = self._pull(plan.input, outer)
        if below is None:
            return None
        is_bound = any(logical.free_ids(item.expression) & outer for item in plan.assignments)
        is_fixed = is_bound or may_raise(plan)
        if below.is_scalar and (is_fixed or below.late):
            known = {item.field.id: item.expression for item in below.late}
            return replace(below, late=tuple(substitute(item, known) for item in plan.assignments))
        if is_bound or (is_fixed and below.conditions):
            return None
        assignments = list(plan.assignments)
        have = {item.field.id for item in assignments}
        for item in below.plan.fields:
            needed = any(item.id in references(c) for c in below.conditions)
            if needed and item.id not in have:
                assignments.append(Assignment(item, item.ref))
        rebuilt = logical.Project(below.plan, tuple(assignments))
        if not below.is_scalar:
            return Pulled(rebuilt, below.conditions)
        defaults = dict(below.defaults or {})
        found: dict[int, Expr] = {}
        for assigned in plan.assignments:
            empty = _value_of_empty(assigned.expression, below.plan, defaults)
            if empty is not None:
                found[assigned.field.id] = empty
        return Pulled(rebuilt, below.conditions, True, found)

    def _pull_aggregate(self, plan: logical.Aggregate, outer: frozenset[int]) -> Pulled | None:
        if plan.grouping_sets or self._own_free(plan, outer):
            return None
        below = self._pull(plan.input, outer)
        if below is None or below.is_scalar or (below.conditions and may_raise(plan)):
            return None
        keys = list(plan.keys)
        conditions = []
        for part in below.conditions:
            key = self._key(part, below.plan, keys)
            if key is None:
                return None
            conditions.append(key)
        rebuilt = replace(plan, input=below.plan, keys=tuple(keys))
        if plan.keys:
            return Pulled(rebuilt, conditions)
        zero = {
            item.field.id: Literal(0, item.field.type)
            for item in plan.items if is_count(item)
        }
        return Pulled(rebuilt, conditions, True, dict(zero))

    def _key(self, part: Expr, source: Plan, keys: list[Assignment]) -> Expr | None:
        """An equality with its inner side as a grouping key (added to ``keys``)."""
        sides = equality_sides(part)
        if sides is None or not isinstance(part, Call):
            return None
        inner_ids = field_ids(source)
        for number, side in enumerate(sides):
            other = sides[1 - number]
            if references(side) <= inner_ids and not references(other) & inner_ids:
                known = next((k for k in keys if k.expression == side), None)
                if known is None:
                    known = Assignment(self._context.new_field("key", side.type), side)
                    keys.append(known)
                arguments = list(part.arguments)
                arguments[number] = known.field.ref
                return replace(part, arguments=tuple(arguments))
        return None

    def _pull_join(self, plan: Join, outer: frozenset[int]) -> Pulled | None:
        if plan.kind is JoinKind.INNER:
            left, right = self._pull(plan.left, outer), self._pull(plan.right, outer)
            if left is None or right is None or left.is_scalar or right.is_scalar:
                return None
            pulled = [*left.conditions, *right.conditions]
            taken, own = _divided(plan.condition, pulled, outer)
            return Pulled(Join(plan.kind, left.plan, right.plan, conjoin(own)), taken)
        if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
            return None
        if logical.free_ids(plan.right) & outer or logical.free_ids(plan.condition) & outer:
            return None
        left = self._pull(plan.left, outer)
        if left is None or left.is_scalar:
            return None
        if left.conditions and (plan.kind is JoinKind.SINGLE or may_raise(plan.condition)):
            return None
        return Pulled(replace(plan, left=left.plan), left.conditions)

    def _pull_sort(self, plan: logical.Sort, outer: frozenset[int]) -> Pulled | None:
        if self._own_free(plan, outer):
            return None
        below = self._pull(plan.input, outer)
        if below is None or below.is_scalar:
            return below
        if below.conditions and may_raise(plan):
            return None
        return replace(below, plan=replace(plan, input=below.plan))

    def _pull_distinct(self, plan: logical.Distinct, outer: frozenset[int]) -> Pulled | None:
        if self._own_free(plan, outer):
            return None
        below = self._pull(plan.input, outer)
        if below is None or below.is_scalar:
            return None
        found = self._as_keys(below)
        if found is None:
            return None
        source, conditions, keys = found
        on = (*plan.on, *(key.ref for key in keys)) if plan.on else ()
        if not plan.on:
            wanted = (*plan.fields, *(k for k in keys if k.id not in field_ids(plan)))
            source = exactly(source, wanted)
        return Pulled(logical.Distinct(source, on), conditions)

    def _as_keys(self, below: Pulled) -> tuple[Plan, list[Expr], list[Field]] | None:
        """The plan with a column for the inner side of each equality; None for other conditions."""
        keys: list[Assignment] = []
        conditions = []
        for part in below.conditions:
            key = self._key(part, below.plan, keys)
            if key is None:
                return None
            conditions.append(key)
        source = logical.Project(below.plan, (*passed(below.plan.fields), *keys))
        return source, conditions, [key.field for key in keys]

    def _pull_limit(self, plan: logical.Limit, outer: frozenset[int]) -> Pulled | None:
        below = self._pull(plan.input, outer)
        if below is None or below.is_scalar or self._own_free(plan, outer):
            return None
        found = self._as_keys(below)
        if found is None:
            return None
        source, conditions, keys = found
        return Pulled(limited(plan, source, keys, self._context), conditions)

    def _own_free(self, plan: Plan, outer: frozenset[int]) -> bool:
        """Whether the node's own expressions read outer columns."""
        return any(logical.free_ids(item) & outer for item in children(plan, Expr))

    # The domain

    def _by_row(self, apply: Apply) -> Plan:
        """A volatile right side runs anew for each left row: the domain is the rows' numbers."""
        number = self._context.new_field("number", BIGINT)
        call = WindowCall(functions.ROW_NUMBER, (), BIGINT, (), (), DEFAULT_FRAME)
        numbered = logical.Window(apply.left, (logical.WindowItem(number, call),))
        outer = logical.free_ids(apply.right) & field_ids(apply.left)
        return self._by_domain(replace(apply, left=numbered), outer | {number.id})

    def _by_domain(self, apply: Apply, outer: frozenset[int]) -> Plan:
        wanted = [item for item in apply.left.fields if item.id in outer]
        guards = tuple(item.ref for item in wanted if item.id in self._context.guards)
        left = apply.left
        definitions: list[logical.SharedDefinition] = []
        source = left
        if not _is_cheap(left):
            copied, _ = fresh_copy(left, self._context)
            shared = logical.SharedDefinition(self._context.new_id(), copied, "outer")
            source = logical.SharedRef(shared.id, left.fields)
            left = source
            definitions.append(shared)
        domain = source if not guards else logical.Filter(source, conjoin(guards))
        if definitions:
            narrow, _ = fresh_copy(exactly(domain, wanted), self._context)
            distinct = logical.SharedDefinition(
                self._context.new_id(), logical.Distinct(narrow), "domain"
            )
            definitions.append(distinct)
            domain = logical.SharedRef(distinct.id, tuple(wanted))
        pushed = Domain(self._context, domain, wanted, is_distinct=bool(definitions))
        right, columns = pushed.push(apply.right)
        same = [same_values(item.ref, columns[item.id].ref) for item in wanted]
        condition = conjoin([*same, apply.condition])
        joined = Join(apply.kind, left, right, condition, apply.mark)
        return logical.With(tuple(definitions), joined) if definitions else joined


def _direct(apply: Apply) -> Plan | None:
    """A right side of expressions or set-returning calls alone, computed beside the left rows."""
    right = apply.right
    if isinstance(right, logical.TableFunction):
        if apply.kind is not JoinKind.INNER or right.ordinality is not None:
            return None
        if any(len(outputs) != 1 for outputs in right.outputs):
            return None
        pairs = zip(right.outputs, right.calls, strict=True)
        calls = tuple(Assignment(outputs[0], call) for outputs, call in pairs)
        is_set = [returns_set(item.expression) for item in calls]
        if all(is_set):
            made: Plan = logical.ProjectSet(apply.left, calls)
        elif len(calls) == 1:
            made = logical.Project(apply.left, (*passed(apply.left.fields), *calls))
        else:
            return None
    elif isinstance(right, logical.Project) and is_single_row(right.input):
        if apply.kind in _LEFT_ONLY:
            return None
        if apply.kind is not JoinKind.INNER and not is_true(apply.condition):
            return None
        made = logical.Project(apply.left, (*passed(apply.left.fields), *right.assignments))
    else:
        return None
    return made if is_true(apply.condition) else logical.Filter(made, apply.condition)


def _needs_domain(apply: Apply) -> bool:
    """Whether the join must see the aggregate's row even where it found no group."""
    return apply.kind in _LEFT_ONLY or (
        apply.kind is JoinKind.LEFT and not is_true(apply.condition)
    )


def _is_cheap(plan: Plan) -> bool:
    """Whether the plan may as well be run again as kept: a table read, at most."""
    while isinstance(plan, logical.Filter | logical.Project):
        if any(is_volatile(item) for item in children(plan, Expr)):
            return False
        plan = plan.input
    return isinstance(
        plan, logical.Scan | logical.Values | logical.SharedRef | logical.WorkTable
    ) and is_pure(plan)


def _divided(
    condition: Expr, pulled: list[Expr], outer: frozenset[int]
) -> tuple[list[Expr], list[Expr]]:
    """What of a condition is taken up with ``pulled``, and what stays.

    A conjunct that may raise goes where those before it went: it must not see more rows.
    """
    taken: list[Expr] = list(pulled)
    own: list[Expr] = []
    for part in split(condition):
        is_outer = bool(logical.free_ids(part) & outer)
        (taken if is_outer or (taken and may_raise(part)) else own).append(part)
    return taken, own


def _crosses(plan: Plan) -> bool:
    """Whether only outer columns link parts of the join below: pulled up, it were a product."""
    while isinstance(
        plan, logical.Project | logical.Aggregate | logical.Sort | logical.Distinct | logical.Limit
    ):
        plan = plan.input
    leaves: list[frozenset[int]] = []
    conditions: list[Expr] = []
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if isinstance(node, logical.Filter):
            conditions.extend(split(node.predicate))
            waiting.append(node.input)
        elif isinstance(node, Join) and node.kind is JoinKind.INNER:
            conditions.extend(split(node.condition))
            waiting.extend((node.left, node.right))
        else:
            leaves.append(field_ids(node))
    groups = list(leaves)
    used = [frozenset(references(item)) for item in conditions]
    for ids in used:
        linked = [group for group in groups if group & ids]
        if len(linked) > 1:
            groups = [g for g in groups if g not in linked]
            groups.append(frozenset().union(*linked))
    inner = frozenset().union(*leaves)
    outside = [ids for ids in used if ids - inner]
    return sum(any(group & ids for ids in outside) for group in groups) > 1


def _value_of_empty(
    expression: Expr, source: Plan, defaults: dict[int, Expr]
) -> Expr | None:
    """The expression for an outer row without a group; None when it is NULL like its columns."""
    nulls = field_ids(source) - defaults.keys()
    used = references(expression)
    if not used & defaults.keys() and is_null_when(expression, nulls):
        return None
    mapping: dict[int, Expr] = dict(defaults)
    for item in source.fields:
        if item.id in nulls:
            mapping[item.id] = Literal(None, item.type)
    result: Expr = substitute(expression, mapping)
    return result

