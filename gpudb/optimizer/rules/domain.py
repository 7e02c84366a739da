"""The domain of a correlated plan: the distinct outer values, joined in at its leaves.

The values travel up through the operators as further columns; what an operator does for all rows
it then does for each of the values (Neumann and Kemper, Unnesting Arbitrary Queries, BTW 2015).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpudb import errors
from gpudb.catalog import builtin
from gpudb.expr import (
    DEFAULT_FRAME,
    Coalesce,
    DistinctFrom,
    Expr,
    FieldSelect,
    Literal,
    WindowCall,
)
from gpudb.optimizer import functions, logical
from gpudb.optimizer.logical import Assignment, Field, Join, JoinKind, Plan
from gpudb.optimizer.logical_facts import (
    is_count,
)
from gpudb.optimizer.properties import (
    conjoin,
    substitute,
)
from gpudb.optimizer.rules.context import RuleContext
from gpudb.optimizer.rules.grouping_sets import has_empty_set, without_empty_sets
from gpudb.optimizer.rules.numbering import limited
from gpudb.optimizer.rules.shape import exactly, fresh_copy, passed
from gpudb.sqltype import BIGINT, BOOLEAN
from gpudb.tree import map_children, walk

TRUE = Literal(True, BOOLEAN)
Columns = dict[int, Field]
"""The domain's columns in a plan, by the id of the outer column."""


class Domain:
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
        same = [same_values(columns[key].ref, others[key].ref) for key in columns]
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
        same = [same_values(outer[key].ref, columns[key].ref) for key in outer]
        joined = Join(JoinKind.LEFT, domain, grouped, conjoin(same))
        own = tuple(
            Assignment(
                item.field,
                Coalesce((item.field.ref, Literal(0, item.field.type)), item.field.type)
                if is_count(item) else item.field.ref,
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


def same_values(left: Expr, right: Expr) -> Expr:
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
