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
from typing import Any

from gpudb import errors
from gpudb.catalog import builtin
from gpudb.expr import (
    DEFAULT_FRAME,
    BooleanTest,
    Call,
    Case,
    CaseArm,
    Coalesce,
    DistinctFrom,
    Expr,
    FieldSelect,
    IsNull,
    Literal,
    Truth,
    WindowCall,
    references,
)
from gpudb.optimizer import functions, logical
from gpudb.optimizer.logical import Apply, Assignment, Field, Join, JoinKind, Plan, field_ids
from gpudb.optimizer.logical_facts import keys_of, keys_under, yields_at_most_one_row
from gpudb.optimizer.properties import (
    conjoin,
    equality_sides,
    is_null_when,
    is_true,
    is_volatile,
    may_raise,
    split,
    substitute,
)
from gpudb.optimizer.rules.context import RuleContext
from gpudb.optimizer.rules.grouping_sets import has_empty_set, without_empty_sets
from gpudb.optimizer.rules.numbering import limited
from gpudb.optimizer.rules.shape import exact_inputs, exactly, fresh_copy, passed
from gpudb.optimizer.rules.sharing import is_pure
from gpudb.sqltype import BIGINT, BOOLEAN
from gpudb.tree import children, map_children, walk

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
            for item in plan.items if _counts(item)
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
        pushed = _Domain(self._context, domain, wanted, is_distinct=bool(definitions))
        right, columns = pushed.push(apply.right)
        same = [_same(item.ref, columns[item.id].ref) for item in wanted]
        condition = conjoin([*same, apply.condition])
        joined = Join(apply.kind, left, right, condition, apply.mark)
        return logical.With(tuple(definitions), joined) if definitions else joined


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


Columns = dict[int, Field]
"""The domain's columns in a plan, by the id of the outer column."""


class _Domain:
    """Brings the distinct outer values into a plan."""

    def __init__(
        self, context: RuleContext, left: Plan, wanted: list[Field], *, is_distinct: bool
    ) -> None:
        self._context = context
        self._left = left
        self._is_distinct = is_distinct
        self._wanted = wanted
        self._outer = frozenset(item.id for item in wanted)
        self._work_tables: set[int] = set()

    def _new(self) -> tuple[Plan, Columns]:
        """The domain: a copy of the left side's distinct values."""
        copied, renamed = fresh_copy(self._left, self._context)
        columns = {item.id: renamed.get(item.id, item) for item in self._wanted}
        narrow = exactly(copied, list(columns.values()))
        return narrow if self._is_distinct else logical.Distinct(narrow), columns

    def _depends(self, plan: Plan) -> bool:
        """Whether the plan reads outer columns, or the work table of a recursion that does."""
        if logical.free_ids(plan) & self._outer:
            return True
        return bool(self._work_tables) and any(
            isinstance(node, logical.WorkTable) and node.id in self._work_tables
            for node in walk(plan, Plan)
        )

    def push(self, plan: Plan) -> tuple[Plan, Columns]:
        if not self._depends(plan):
            domain, columns = self._new()
            return Join(JoinKind.INNER, domain, plan, TRUE), columns
        method = getattr(self, "_push_" + type(plan).__name__.lower(), None)
        if method is None:
            raise errors.FeatureNotSupported(
                f"correlated subqueries with {type(plan).__name__} are not supported"
            )
        found: tuple[Plan, Columns] = method(plan)
        return found

    def _bound(self, node: Any, columns: Columns) -> Any:
        """An expression (or part) over the domain's columns instead of the outer ones."""
        return substitute(node, {outer: item.ref for outer, item in columns.items()})

    def _push_filter(self, plan: logical.Filter) -> tuple[Plan, Columns]:
        source, columns = self.push(plan.input)
        return logical.Filter(source, self._bound(plan.predicate, columns)), columns

    def _push_project(self, plan: logical.Project) -> tuple[Plan, Columns]:
        source, columns = self.push(plan.input)
        own = tuple(
            Assignment(item.field, self._bound(item.expression, columns))
            for item in plan.assignments
        )
        return logical.Project(source, (*own, *passed(list(columns.values())))), columns

    def _push_projectset(self, plan: logical.ProjectSet) -> tuple[Plan, Columns]:
        source, columns = self.push(plan.input)
        calls = tuple(
            Assignment(item.field, self._bound(item.expression, columns)) for item in plan.calls
        )
        return logical.ProjectSet(source, calls), columns

    def _push_values(self, plan: logical.Values) -> tuple[Plan, Columns]:
        made: list[tuple[Plan, Columns]] = []
        for row in plan.rows:
            domain, columns = self._new()
            cells = [self._bound(item, columns) for item in row]
            own = tuple(
                Assignment(item if len(plan.rows) == 1 else self._context.copy_of(item), cell)
                for item, cell in zip(plan.columns, cells, strict=True)
            )
            made.append(
                (logical.Project(domain, (*own, *passed(list(columns.values())))), columns)
            )
        result, columns = made[0]
        for number, (other, _) in enumerate(made[1:], 2):
            is_last = number == len(made)
            names = plan.columns if is_last else tuple(map(self._context.copy_of, plan.columns))
            renewed = {k: self._context.copy_of(v) for k, v in columns.items()}
            result = logical.SetOperation(
                logical.SetKind.UNION, True, result, other, (*names, *renewed.values())
            )
            columns = renewed
        return result, columns

    def _push_tablefunction(self, plan: logical.TableFunction) -> tuple[Plan, Columns]:
        domain, columns = self._new()
        calls: list[Assignment] = []
        results: list[Assignment] = []
        for call, outputs in zip(plan.calls, plan.outputs, strict=True):
            if len(outputs) == 1:
                made_field = outputs[0]
                results.append(Assignment(made_field, made_field.ref))
            else:  # one record in the select list, taken apart above
                made_field = self._context.new_field("record", call.type)
                results += [
                    Assignment(item, FieldSelect(made_field.ref, number, item.type))
                    for number, item in enumerate(outputs)
                ]
            calls.append(Assignment(made_field, self._bound(call, columns)))
        made: Plan = logical.ProjectSet(domain, tuple(calls))
        if plan.ordinality is not None:
            number_call = WindowCall(
                functions.ROW_NUMBER, (), BIGINT,
                tuple(item.ref for item in columns.values()), (), DEFAULT_FRAME,
            )
            made = logical.Window(made, (logical.WindowItem(plan.ordinality, number_call),))
            results.append(Assignment(plan.ordinality, plan.ordinality.ref))
        if len(results) > len(calls):
            made = logical.Project(made, (*results, *passed(list(columns.values()))))
        return made, columns

    def _push_join(self, plan: Join) -> tuple[Plan, Columns]:
        left_free = self._depends(plan.left)
        right_free = self._depends(plan.right)
        if plan.kind is JoinKind.INNER and not right_free:
            left, columns = self.push(plan.left)
            condition = self._bound(plan.condition, columns)
            return replace(plan, left=left, condition=condition), columns
        if plan.kind is JoinKind.INNER and not left_free:
            right, columns = self.push(plan.right)
            condition = self._bound(plan.condition, columns)
            return replace(plan, right=right, condition=condition), columns
        if plan.kind not in (JoinKind.RIGHT, JoinKind.FULL) and not right_free:
            left, columns = self.push(plan.left)
            condition = self._bound(plan.condition, columns)
            return replace(plan, left=left, condition=condition), columns
        left, columns = self.push(plan.left)
        right, others = self.push(plan.right)
        same = [_same(columns[key].ref, others[key].ref) for key in columns]
        keeping = others if plan.kind is JoinKind.RIGHT else columns
        bound = conjoin([*same, self._bound(plan.condition, keeping)])
        joined = Join(plan.kind, left, right, bound, plan.mark)
        if plan.kind is not JoinKind.FULL:
            return joined, keeping
        merged = {key: self._context.copy_of(item) for key, item in columns.items()}
        both = tuple(
            Assignment(
                merged[key], Coalesce((columns[key].ref, others[key].ref), merged[key].type)
            )
            for key in columns
        )
        return logical.Project(joined, (*passed(plan.fields), *both)), merged

    def _push_aggregate(self, plan: logical.Aggregate) -> tuple[Plan, Columns]:
        if has_empty_set(plan):
            return self.push(without_empty_sets(plan, self._context))
        source, below = self.push(plan.input)
        columns = {key: self._context.copy_of(item) for key, item in below.items()}
        added = tuple(Assignment(columns[key], item.ref) for key, item in below.items())
        keys = tuple(self._bound(item, below) for item in plan.keys)
        items = tuple(self._bound(item, below) for item in plan.items)
        extra = tuple(range(len(keys), len(keys) + len(added)))
        sets = tuple((*one, *extra) for one in plan.grouping_sets)
        grouped = logical.Aggregate(source, (*keys, *added), items, sets)
        if plan.keys or plan.grouping_sets:
            return grouped, columns
        domain, outer = self._new()
        same = [_same(outer[key].ref, columns[key].ref) for key in outer]
        joined = Join(JoinKind.LEFT, domain, grouped, conjoin(same))
        own = tuple(
            Assignment(
                item.field,
                Coalesce((item.field.ref, Literal(0, item.field.type)), item.field.type)
                if _counts(item) else item.field.ref,
            )
            for item in plan.items
        )
        return logical.Project(joined, (*own, *passed(list(outer.values())))), outer

    def _push_window(self, plan: logical.Window) -> tuple[Plan, Columns]:
        source, columns = self.push(plan.input)
        keys = tuple(item.ref for item in columns.values())
        items = []
        for item in plan.items:
            bound = self._bound(item, columns)
            call = replace(bound.call, partition_by=(*bound.call.partition_by, *keys))
            items.append(logical.WindowItem(item.field, call))
        return logical.Window(source, tuple(items)), columns

    def _push_sort(self, plan: logical.Sort) -> tuple[Plan, Columns]:
        source, columns = self.push(plan.input)
        return logical.Sort(source, tuple(self._bound(key, columns) for key in plan.keys)), columns

    def _push_distinct(self, plan: logical.Distinct) -> tuple[Plan, Columns]:
        source, columns = self.push(plan.input)
        if plan.on:
            on = tuple(self._bound(item, columns) for item in plan.on)
            keys = tuple(item.ref for item in columns.values())
            return logical.Distinct(source, (*on, *keys)), columns
        wanted = (*plan.fields, *columns.values())
        return logical.Distinct(exactly(source, wanted)), columns

    def _push_limit(self, plan: logical.Limit) -> tuple[Plan, Columns]:
        source, columns = self.push(plan.input)
        bound = replace(
            plan,
            limit=None if plan.limit is None else self._bound(plan.limit, columns),
            offset=None if plan.offset is None else self._bound(plan.offset, columns),
        )
        return limited(bound, source, list(columns.values()), self._context), columns

    def _push_setoperation(self, plan: logical.SetOperation) -> tuple[Plan, Columns]:
        left, one = self.push(plan.left)
        right, two = self.push(plan.right)
        left = exactly(left, (*plan.left.fields, *one.values()))
        right = exactly(right, (*plan.right.fields, *(two[key] for key in one)))
        columns = {key: self._context.copy_of(item) for key, item in one.items()}
        made = replace(plan, left=left, right=right, columns=(*plan.columns, *columns.values()))
        return made, columns

    def _push_recursive(self, plan: logical.Recursive) -> tuple[Plan, Columns]:
        """One recursion for all outer rows: base, work table and step carry the domain."""
        base, one = self.push(plan.base)
        self._work_tables.add(plan.id)
        step, two = self.push(plan.step)
        self._work_tables.discard(plan.id)
        keys = [item.id for item in self._wanted]
        columns = {key: self._context.copy_of(one[key]) for key in keys}
        made = replace(
            plan,
            base=exactly(base, (*plan.base.fields, *(one[key] for key in keys))),
            step=exactly(step, (*plan.step.fields, *(two[key] for key in keys))),
            columns=(*plan.columns, *columns.values()),
        )
        return made, columns

    def _push_worktable(self, plan: logical.WorkTable) -> tuple[Plan, Columns]:
        columns = {item.id: self._context.copy_of(item) for item in self._wanted}
        return replace(plan, columns=(*plan.columns, *columns.values())), columns

    def _push_with(self, plan: logical.With) -> tuple[Plan, Columns]:
        """Shared plans that depend on the outer row are computed where they are read."""
        kept: list[logical.SharedDefinition] = []
        waiting = list(plan.definitions)
        body: Plan = plan.input
        while waiting:
            definition = waiting.pop(0)
            if not self._depends(definition.plan):
                kept.append(definition)
                continue
            body = _inlined(body, definition, self._context)
            waiting = [
                replace(item, plan=_inlined(item.plan, definition, self._context))
                for item in waiting
            ]
        pushed, columns = self.push(body)
        return (logical.With(tuple(kept), pushed) if kept else pushed), columns


def _inlined(plan: Plan, definition: logical.SharedDefinition, context: RuleContext) -> Plan:
    """The plan with copies of a shared plan in the place of its references."""
    def replaced(node: Plan) -> Plan:
        if isinstance(node, logical.SharedRef) and node.id == definition.id:
            copied, renamed = fresh_copy(definition.plan, context)
            return logical.Project(
                copied,
                tuple(
                    Assignment(new, renamed.get(old.id, old).ref)
                    for new, old in zip(node.columns, definition.plan.fields, strict=True)
                ),
            )
        changed: Plan = map_children(node, Plan, replaced)
        return changed

    return replaced(plan)


def _same(left: Expr, right: Expr) -> Expr:
    """Equality in which NULLs are equal."""
    equality = functions.equality_of(left.type.oid, is_array=_is_array(left.type.oid))
    if equality is None:
        raise errors.FeatureNotSupported(
            "correlation by a column of a type without equality is not supported"
        )
    return DistinctFrom(equality, left, right, True)


def _is_array(oid: int) -> bool:
    entry = builtin.types().get(oid)
    return entry is not None and entry.is_array


def _counts(item: logical.AggregateItem) -> bool:
    """Whether the aggregate of no rows is 0 (count) and not NULL."""
    return getattr(item.call, "function", None) is not None and (
        item.call.function.name in ("count", "regr_count")  # type: ignore[union-attr]
    )


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

