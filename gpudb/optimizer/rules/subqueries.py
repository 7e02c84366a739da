"""Subqueries in expressions become dependent joins (Apply) below the node that holds them.

EXISTS and = ANY as conjuncts of a filter become SEMI and ANTI joins; anywhere else a MARK join
gives a boolean column. x op ALL (q) is NOT (NOT (x op y) for ANY y of q). A scalar subquery is a
SINGLE join. ARRAY(q) collects q into an array.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpudb import errors, sqltype
from gpudb.catalog.types.base import ArrayValue
from gpudb.expr import (
    AggregateCall,
    And,
    BooleanTest,
    Case,
    CaseArm,
    Coalesce,
    Expr,
    IsNull,
    Literal,
    Not,
    Or,
    Subquery,
    SubqueryKind,
    Truth,
)
from gpudb.optimizer import functions, logical
from gpudb.optimizer.logical import Apply, Field, JoinKind, Plan
from gpudb.optimizer.logical_facts import plan_may_raise, yields_one_row
from gpudb.optimizer.properties import conjoin, is_volatile, split
from gpudb.optimizer.rules.context import RuleContext
from gpudb.optimizer.rules.numbering import Numbering, sort_keys
from gpudb.optimizer.rules.shape import exact_inputs, exactly, with_values
from gpudb.sqltype import BOOLEAN
from gpudb.tree import Node, children, map_children, walk

TRUE = Literal(True, BOOLEAN)
Guards = tuple[Expr, ...]


def remove_subqueries(plan: Plan, context: RuleContext) -> Plan:
    """No expression holds a subquery afterwards."""
    return _Remover(context).plan(plan)


def holds_subquery(node: Node) -> bool:
    """Whether an expression of the plan node itself (or the expression) has a subquery in it."""
    if isinstance(node, Expr):
        return any(isinstance(part, Subquery) for part in walk(node, Expr))
    return any(holds_subquery(item) for item in children(node, Expr))


class _Remover:
    def __init__(self, context: RuleContext) -> None:
        self._context = context

    def plan(self, plan: Plan) -> Plan:
        rebuilt: Plan = exact_inputs(plan, map_children(plan, Plan, self.plan))
        if not holds_subquery(rebuilt):
            return rebuilt
        match rebuilt:
            case logical.Filter():
                return self._filter(rebuilt)
            case logical.Join() | Apply():
                return self._join(rebuilt)
            case logical.Values():
                return self._values(rebuilt)
            case logical.TableFunction():
                return self._function(rebuilt)
            case logical.Limit():
                return self._limit(rebuilt)
        return self._above_input(rebuilt)

    def _above_input(self, plan: Any) -> Plan:
        """A node with one input: the applies go between it and the input."""
        fields = plan.fields
        holder = [plan.input]
        changed = map_children(plan, Expr, lambda item: self._replaced(item, holder))
        rebuilt = map_children(changed, Plan, lambda _: holder[0])
        return exactly(rebuilt, fields)

    def _filter(self, plan: logical.Filter) -> Plan:
        current = [plan.input]
        kept: list[Expr] = []
        for part in split(plan.predicate):
            if not holds_subquery(part):
                kept.append(part)
                continue
            direct = self._direct(part, current[0])
            if direct is not None:
                current[0] = direct
                continue
            kept.append(self._replaced(part, current))
        plain = [part for part in kept if not _reads(part, current[0], plan.input)]
        result = current[0]
        if plain and _is_chain(current[0], plan.input):
            result = _with_input(current[0], plan.input, logical.Filter(plan.input, conjoin(plain)))
            kept = [part for part in kept if part not in plain]
        if kept:
            result = logical.Filter(result, conjoin(kept))
        return exactly(result, plan.fields)

    def _direct(self, part: Expr, current: Plan) -> Plan | None:
        """A conjunct that is just [NOT] EXISTS or = ANY, as a semi or anti join."""
        negated = isinstance(part, Not)
        inner = part.argument if isinstance(part, Not) else part
        if not isinstance(inner, Subquery):
            return None
        plan = self.plan(_plan_of(inner))
        if inner.kind is SubqueryKind.EXISTS:
            kind = JoinKind.ANTI if negated else JoinKind.SEMI
            return Apply(kind, current, plan, TRUE)
        if inner.kind is SubqueryKind.ANY and not negated:
            assert inner.comparison is not None
            if holds_subquery(inner.comparison):
                return None
            return Apply(JoinKind.SEMI, current, plan, inner.comparison)
        return None

    def _limit(self, plan: logical.Limit) -> Plan:
        """Computed bounds: the input's rows numbered in their order, compared with the bounds."""
        fields = plan.fields
        order = sort_keys(plan.input)
        numbering = Numbering(plan, order, self._context)
        holder = [numbering.over(plan.input, ())]
        tests = [self._replaced(item, holder) for item in numbering.tests]
        kept: Plan = logical.Filter(holder[0], conjoin(tests))
        return exactly(logical.Sort(kept, order) if order else kept, fields)

    def _replaced(
        self, expression: Expr, current: list[Plan], guards: Guards = ()
    ) -> Expr:
        """The expression with columns of applies over ``current[0]`` for its subqueries.

        ``guards`` are true on the rows where the expression is evaluated at all.
        """
        if not holds_subquery(expression):
            return expression
        match expression:
            case Subquery():
                return self._column(expression, current, guards)
            case And() | Or() | Coalesce():
                return self._sequence(expression, current, guards)
            case Case():
                return self._case(expression, current, guards)
        changed = map_children(
            expression, Expr, lambda item: self._replaced(item, current, guards)
        )
        assert isinstance(changed, Expr)
        return changed

    def _sequence(
        self, expression: And | Or | Coalesce, current: list[Plan], guards: Guards
    ) -> Expr:
        made: list[Expr] = []
        for item in expression.arguments:
            new = self._replaced(item, current, guards)
            made.append(new)
            match expression:
                case And():
                    guards = (*guards, BooleanTest(new, Truth.FALSE, True))
                case Or():
                    guards = (*guards, BooleanTest(new, Truth.TRUE, True))
                case Coalesce():
                    guards = (*guards, IsNull(new))
        return replace(expression, arguments=tuple(made))

    def _case(self, expression: Case, current: list[Plan], guards: Guards) -> Expr:
        arms: list[CaseArm] = []
        for arm in expression.arms:
            condition = self._replaced(arm.condition, current, guards)
            chosen = (*guards, BooleanTest(condition, Truth.TRUE))
            arms.append(CaseArm(condition, self._replaced(arm.result, current, chosen)))
            guards = (*guards, BooleanTest(condition, Truth.TRUE, True))
        default = expression.default
        if default is not None:
            default = self._replaced(default, current, guards)
        return Case(tuple(arms), default, expression.type)

    def _column(self, subquery: Subquery, current: list[Plan], guards: Guards) -> Expr:
        plan = self.plan(_plan_of(subquery))
        if subquery.kind is SubqueryKind.ARRAY:
            plan = self._array(subquery, plan)
        is_single = subquery.kind is SubqueryKind.SCALAR and not yields_one_row(plan)
        if guards and (is_single or plan_may_raise(plan)):
            plan = self._guarded(plan, current, guards)
        match subquery.kind:
            case SubqueryKind.SCALAR:
                current[0] = Apply(JoinKind.SINGLE, current[0], plan, TRUE)
                return plan.fields[0].ref
            case SubqueryKind.ARRAY:
                current[0] = Apply(JoinKind.SINGLE, current[0], plan, TRUE)
                return Coalesce((plan.fields[0].ref, _empty_array(subquery)), subquery.type)
            case SubqueryKind.EXISTS:
                mark = self._mark(current, plan, TRUE)
                return BooleanTest(mark.ref, Truth.TRUE)
        assert subquery.comparison is not None
        comparison = self._replaced(subquery.comparison, current, guards)
        if subquery.kind is SubqueryKind.ALL:
            return Not(self._mark(current, plan, Not(comparison)).ref)
        return self._mark(current, plan, comparison).ref

    def _guarded(self, plan: Plan, current: list[Plan], guards: Guards) -> Plan:
        """A plan that may raise, without any row where the guards are not all true."""
        condition = conjoin(guards)
        if is_volatile(condition):
            return plan
        guard = self._context.new_field("guard", BOOLEAN)
        self._context.guards.add(guard.id)
        if not isinstance(condition, BooleanTest | IsNull):
            condition = BooleanTest(condition, Truth.TRUE)
        value = logical.Assignment(guard, condition)
        current[0] = with_values(current[0], (value,))
        return logical.Filter(_guard_leaves(plan, guard), guard.ref)

    def _mark(self, current: list[Plan], plan: Plan, condition: Expr) -> Field:
        mark = self._context.new_field("mark", BOOLEAN)
        current[0] = Apply(JoinKind.MARK, current[0], plan, condition, mark)
        return mark

    def _array(self, subquery: Subquery, plan: Plan) -> Plan:
        source = plan.fields[0]
        function = functions.array_agg(source.type.oid, subquery.type.oid)
        call = AggregateCall(function, (source.ref,), subquery.type)
        field = self._context.new_field("array", subquery.type)
        return logical.Aggregate(plan, (), (logical.AggregateItem(field, call),))

    # Nodes without exactly one input

    def _join(self, plan: logical.Join | Apply) -> Plan:
        if plan.kind is JoinKind.INNER:
            crossed = type(plan)(plan.kind, plan.left, plan.right, TRUE, plan.mark)
            return exactly(self._filter(logical.Filter(crossed, plan.condition)), plan.fields)
        left_free = logical.field_ids(plan.left)
        sides = [plan.left, plan.right]
        outer: list[Expr] = []
        for part in split(plan.condition):
            if not holds_subquery(part):
                outer.append(part)
                continue
            side = 0 if not logical.free_ids(part) & logical.field_ids(plan.right) else 1
            if side == 1 and logical.free_ids(part) & left_free:
                raise errors.FeatureNotSupported(
                    "a subquery over both sides of an outer join's condition is not supported"
                )
            holder = [sides[side]]
            outer.append(self._replaced(part, holder))
            sides[side] = holder[0]
        made = type(plan)(plan.kind, sides[0], sides[1], conjoin(outer), plan.mark)
        return exactly(made, plan.fields)

    def _values(self, plan: logical.Values) -> Plan:
        """Rows with subqueries: projections over one empty row, put together again."""
        made: list[Plan] = []
        for row in plan.rows:
            holder: list[Plan] = [logical.Values((), ((),))]
            cells = [self._replaced(item, holder) for item in row]
            fields = [self._context.copy_of(item) for item in plan.columns]
            made.append(
                logical.Project(
                    holder[0],
                    tuple(logical.Assignment(f, c) for f, c in zip(fields, cells, strict=True)),
                )
            )
        result = made[0]
        for other in made[1:]:
            columns = tuple(self._context.copy_of(item) for item in plan.columns)
            result = logical.SetOperation(logical.SetKind.UNION, True, result, other, columns)
        return _renamed(result, plan.columns)

    def _function(self, plan: logical.TableFunction) -> Plan:
        """Arguments with subqueries: the calls become set-returning columns over the applies."""
        holder: list[Plan] = [logical.Values((), ((),))]
        calls = []
        for call, outputs in zip(plan.calls, plan.outputs, strict=True):
            if len(outputs) != 1 or plan.ordinality is not None:
                raise errors.FeatureNotSupported(
                    "subqueries in arguments of this function in FROM are not supported"
                )
            calls.append(logical.Assignment(outputs[0], self._replaced(call, holder)))
        return exactly(logical.ProjectSet(holder[0], tuple(calls)), plan.fields)


def _guard_leaves(plan: Plan, guard: Field) -> Plan:
    """The plan with the guard at every leaf, so that none of it runs without the guard."""
    if not plan.inputs:
        return logical.Filter(plan, guard.ref)
    guarded: Plan = map_children(plan, Plan, lambda child: _guard_leaves(child, guard))
    return guarded


def _plan_of(subquery: Subquery) -> Plan:
    assert isinstance(subquery.plan, Plan)
    return subquery.plan


def _renamed(plan: Plan, fields: tuple[Field, ...]) -> Plan:
    """The plan's columns under other fields, by position."""
    return logical.Project(
        plan,
        tuple(
            logical.Assignment(new, old.ref) for new, old in zip(fields, plan.fields, strict=True)
        ),
    )


def _reads(part: Expr, current: Plan, base: Plan) -> bool:
    """Whether a conjunct reads columns that the applies added."""
    added = logical.field_ids(current) - logical.field_ids(base)
    return bool(logical.free_ids(part) & added)


def _is_chain(plan: Plan, bottom: Plan) -> bool:
    """Whether only applies, at least one, lie above the bottom: guarded subqueries add others."""
    return isinstance(plan, Apply) and (plan.left is bottom or _is_chain(plan.left, bottom))


def _with_input(plan: Plan, old: Plan, new: Plan) -> Plan:
    """The chain of applies with another bottom."""
    if plan is old:
        return new
    assert isinstance(plan, Apply)
    return Apply(plan.kind, _with_input(plan.left, old, new), plan.right, plan.condition, plan.mark)


def _empty_array(subquery: Subquery) -> Expr:
    element = subquery.plan.fields[0].type.oid  # type: ignore[attr-defined]
    return Literal(ArrayValue(element, ()), sqltype.SqlType(subquery.type.oid))
