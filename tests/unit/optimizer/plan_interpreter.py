"""What plans mean: a naive interpreter of both algebras, row by row, for tests of the optimizer.

A row is a dict from field id to value. Dependent joins and subqueries are evaluated by running
their plan once for every outer row, as the definitions say; nothing here is clever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any

from gpudb import expr
from gpudb.expr import Expr, SubqueryKind, Truth
from gpudb.optimizer import logical, physical
from gpudb.optimizer.logical import JoinKind, SetKind

Row = dict[int, Any]
Tables = Mapping[int, Sequence[tuple[Any, ...]]]


class CardinalityViolation(Exception):
    """More than one row where one is allowed (21000)."""


class DivisionByZero(Exception):
    """22012."""


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise DivisionByZero
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "/": _divide,
}


def _conjunction(values: list[Any]) -> Any:
    return False if False in values else None if None in values else True


def _disjunction(values: list[Any]) -> Any:
    return True if True in values else None if None in values else False


def _aggregate(name: str, values: list[Any], rows: int, is_star: bool) -> Any:
    if is_star:
        return rows
    present = [item for item in values if item is not None]
    if name == "count":
        return len(present)
    if name == "array_agg":
        return tuple(values) if values else None
    if not present:
        return None
    return {"sum": sum, "min": min, "max": max}[name](present)


class Interpreter:
    """``env`` holds the outer row of a dependent evaluation."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.shared: dict[int, list[tuple[Any, ...]]] = {}
        self.work: dict[int, list[tuple[Any, ...]]] = {}

    # Expressions

    def value(self, node: Expr, row: Row) -> Any:
        return getattr(self, "_" + type(node).__name__.lower())(node, row)

    def _columnref(self, node: expr.ColumnRef, row: Row) -> Any:
        return row[node.id]

    def _literal(self, node: expr.Literal, row: Row) -> Any:
        return tuple(node.value.items) if hasattr(node.value, "items") else node.value

    def _call(self, node: expr.Call, row: Row) -> Any:
        values = [self.value(item, row) for item in node.arguments]
        return None if None in values else BINARY[node.function.operator](*values)

    def _and(self, node: expr.And, row: Row) -> Any:
        found = []
        for item in node.arguments:
            found.append(self.value(item, row))
            if found[-1] is False:
                return False
        return _conjunction(found)

    def _or(self, node: expr.Or, row: Row) -> Any:
        found = []
        for item in node.arguments:
            found.append(self.value(item, row))
            if found[-1] is True:
                return True
        return _disjunction(found)

    def _not(self, node: expr.Not, row: Row) -> Any:
        value = self.value(node.argument, row)
        return None if value is None else not value

    def _isnull(self, node: expr.IsNull, row: Row) -> Any:
        return (self.value(node.argument, row) is None) != node.is_negated

    def _booleantest(self, node: expr.BooleanTest, row: Row) -> Any:
        wanted = {Truth.TRUE: True, Truth.FALSE: False, Truth.UNKNOWN: None}[node.truth]
        return (self.value(node.argument, row) is wanted) != node.is_negated

    def _distinctfrom(self, node: expr.DistinctFrom, row: Row) -> Any:
        return (self.value(node.left, row) != self.value(node.right, row)) != node.is_negated

    def _case(self, node: expr.Case, row: Row) -> Any:
        for arm in node.arms:
            if self.value(arm.condition, row) is True:
                return self.value(arm.result, row)
        return None if node.default is None else self.value(node.default, row)

    def _coalesce(self, node: expr.Coalesce, row: Row) -> Any:
        for item in node.arguments:
            value = self.value(item, row)
            if value is not None:
                return value
        return None

    def _subquery(self, node: expr.Subquery, row: Row) -> Any:
        plan: Any = node.plan
        rows = self.run(plan, row)
        first = plan.fields[0].id if plan.fields else 0
        if node.kind is SubqueryKind.EXISTS:
            return bool(rows)
        if node.kind is SubqueryKind.SCALAR:
            if len(rows) > 1:
                raise CardinalityViolation
            return rows[0][first] if rows else None
        if node.kind is SubqueryKind.ARRAY:
            return tuple(item[first] for item in rows)
        assert node.comparison is not None
        tests = [self.value(node.comparison, {**row, **item}) for item in rows]
        return (_disjunction if node.kind is SubqueryKind.ANY else _conjunction)(tests)

    # Plans

    def run(self, plan: Any, env: Row) -> list[Row]:
        """The plan's rows; each holds its fields only."""
        return getattr(self, "_" + type(plan).__name__.lower())(plan, env)

    def result(self, plan: Any) -> list[tuple[Any, ...]]:
        """The rows of a whole statement."""
        return self._tuples(plan, {})

    def _tuples(self, plan: Any, env: Row) -> list[tuple[Any, ...]]:
        ids = [item.id for item in plan.fields]
        return [tuple(row[item] for item in ids) for row in self.run(plan, env)]

    def _named(self, fields: Any, rows: Sequence[tuple[Any, ...]]) -> list[Row]:
        return [
            {item.id: value for item, value in zip(fields, row, strict=True)} for row in rows
        ]

    def _kept(self, rows: list[Row], predicates: Any, env: Row) -> list[Row]:
        return [
            row for row in rows
            if all(self.value(item, {**env, **row}) is True for item in predicates)
        ]

    def _scan(self, plan: Any, env: Row) -> list[Row]:
        rows = [
            {item.id: stored[item.attnum - 1] for item in plan.fields}
            for stored in self.tables[plan.table_oid]
        ]
        return self._kept(rows, plan.filters, env)

    _tablescan = _systemscan = _scan

    def _values(self, plan: Any, env: Row) -> list[Row]:
        rows = [tuple(self.value(item, env) for item in row) for row in plan.rows]
        return self._named(plan.fields, rows)

    _valuesscan = _values

    def _filter(self, plan: Any, env: Row) -> list[Row]:
        predicates = plan.predicates if hasattr(plan, "predicates") else (plan.predicate,)
        return self._kept(self.run(plan.input, env), predicates, env)

    def _project(self, plan: Any, env: Row) -> list[Row]:
        return [
            {a.field.id: self.value(a.expression, {**env, **row}) for a in plan.assignments}
            for row in self.run(plan.input, env)
        ]

    def _join(self, plan: Any, env: Row) -> list[Row]:
        left = self.run(plan.left, env)
        right = self.run(plan.right, env)

        def test(row: Row) -> Any:
            return self.value(plan.condition, {**env, **row})

        return self._joined(plan, left, lambda _: right, test)

    def _apply(self, plan: Any, env: Row) -> list[Row]:
        def test(row: Row) -> Any:
            return self.value(plan.condition, {**env, **row})

        left = self.run(plan.left, env)
        return self._joined(plan, left, lambda row: self.run(plan.right, {**env, **row}), test)

    def _joined(
        self,
        plan: Any,
        left: list[Row],
        right_of: Callable[[Row], list[Row]],
        test: Callable[[Row], Any],
    ) -> list[Row]:
        kind = plan.kind
        found: list[Row] = []
        matched_right: set[int] = set()
        right: list[Row] = []
        right_fields = plan.build.fields if hasattr(plan, "build") else plan.right.fields
        left_fields = plan.probe.fields if hasattr(plan, "probe") else plan.left.fields
        padding = {item.id: None for item in right_fields}
        for row in left:
            right = right_of(row)
            tests = [test({**row, **other}) for other in right]
            matches = [i for i, value in enumerate(tests) if value is True]
            matched_right.update(matches)
            if kind is JoinKind.SEMI or kind is JoinKind.ANTI:
                if bool(matches) == (kind is JoinKind.SEMI):
                    found.append(row)
                continue
            if kind is JoinKind.MARK:
                found.append({**row, plan.mark.id: _disjunction(tests)})
                continue
            if kind is JoinKind.SINGLE and len(matches) > 1:
                raise CardinalityViolation
            found.extend({**row, **right[i]} for i in matches)
            if not matches and kind in (JoinKind.LEFT, JoinKind.FULL, JoinKind.SINGLE):
                found.append({**row, **padding})
        if kind in (JoinKind.RIGHT, JoinKind.FULL):
            nothing = {item.id: None for item in left_fields}
            right = right_of({})
            found.extend(
                {**nothing, **row} for i, row in enumerate(right) if i not in matched_right
            )
        return found

    def _hashjoin(self, plan: physical.HashJoin, env: Row) -> list[Row]:
        build = self.run(plan.build, env)

        def test(row: Row) -> Any:
            parts: list[Any] = []
            keys = zip(plan.probe_keys, plan.build_keys, plan.null_safe, strict=True)
            for one, other, null_safe in keys:
                left, right = self.value(one, row), self.value(other, row)
                if null_safe:
                    parts.append(left == right)
                elif left is None or right is None:
                    parts.append(None if plan.is_null_aware else False)
                else:
                    parts.append(left == right)
            value = _conjunction(parts)
            if value is False or plan.residual is None:
                return value
            return _conjunction([value, self.value(plan.residual, row)])

        probe = self.run(plan.probe, env)
        if probe and build:  # hashing evaluates the keys of all rows
            for keys, rows in ((plan.probe_keys, probe), (plan.build_keys, build)):
                for row in rows:
                    for key in keys:
                        self.value(key, row)
        return self._joined(plan, probe, lambda _: build, test)

    def _nestedloopjoin(self, plan: physical.NestedLoopJoin, env: Row) -> list[Row]:
        build = self.run(plan.build, env)
        return self._joined(
            plan,
            self.run(plan.probe, env),
            lambda _: build,
            lambda row: self.value(plan.condition, {**env, **row}),
        )

    def _aggregate(self, plan: Any, env: Row) -> list[Row]:
        rows = [{**env, **row} for row in self.run(plan.input, env)]
        sets = plan.grouping_sets or (tuple(range(len(plan.keys))),)
        found = []
        for chosen in sets:
            groups: dict[tuple[Any, ...], list[Row]] = {} if chosen else {(): []}
            for row in rows:
                key = tuple(self.value(plan.keys[i].expression, row) for i in chosen)
                groups.setdefault(key, []).append(row)
            for key, members in groups.items():
                made: Row = {item.field.id: None for item in plan.keys}
                made.update({plan.keys[i].field.id: v for i, v in zip(chosen, key, strict=True)})
                for item in plan.items:
                    made[item.field.id] = self._aggregated(item.call, members)
                found.append(made)
        return found

    _hashaggregate = _aggregate

    def _aggregated(self, call: expr.AggregateCall, members: list[Row]) -> Any:
        if call.filter is not None:
            members = [row for row in members if self.value(call.filter, row) is True]
        if call.order_by:
            members = self._sorted(members, call.order_by, {})
        values = [self.value(call.arguments[0], row) for row in members if call.arguments]
        if call.is_distinct:
            values = list(dict.fromkeys(values))
        return _aggregate(call.function.name, values, len(members), call.is_star)

    def _sorted(self, rows: list[Row], keys: Sequence[expr.SortKey], env: Row) -> list[Row]:
        def compare(one: Row, other: Row) -> int:
            for key in keys:
                left = self.value(key.expression, {**env, **one})
                right = self.value(key.expression, {**env, **other})
                if left == right:
                    continue
                if left is None or right is None:
                    return -1 if (left is None) == key.nulls_first else 1
                return -1 if (left < right) != key.is_descending else 1
            return 0

        return sorted(rows, key=cmp_to_key(compare))

    def _sort(self, plan: Any, env: Row) -> list[Row]:
        return self._sorted(self.run(plan.input, env), plan.keys, env)

    def _topn(self, plan: physical.TopN, env: Row) -> list[Row]:
        rows = self._sorted(self.run(plan.input, env), plan.keys, env)
        return self._limited(plan, rows, env)

    def _limit(self, plan: Any, env: Row) -> list[Row]:
        rows = self.run(plan.input, env)
        keys = getattr(plan, "ties", ())
        if getattr(plan, "with_ties", False):
            keys = plan.input.keys
        found = self._limited(plan, rows, env)
        if keys and found:
            start = len(found) + (self.value(plan.offset, env) if plan.offset is not None else 0)
            last = [self.value(key.expression, found[-1]) for key in keys]
            for row in rows[start:]:
                if [self.value(key.expression, row) for key in keys] != last:
                    break
                found.append(row)
        return found

    def _limited(self, plan: Any, rows: list[Row], env: Row) -> list[Row]:
        offset = None if plan.offset is None else self.value(plan.offset, env)
        limit = None if plan.limit is None else self.value(plan.limit, env)
        rows = rows[offset or 0 :]
        return rows if limit is None else rows[:limit]

    def _distinct(self, plan: Any, env: Row) -> list[Row]:
        ids = [item.id for item in plan.fields]
        seen: dict[tuple[Any, ...], Row] = {}
        for row in self.run(plan.input, env):
            key = tuple(
                self.value(item, {**env, **row}) for item in plan.on
            ) if plan.on else tuple(row[item] for item in ids)
            seen.setdefault(key, row)
        return list(seen.values())

    _distincton = _distinct

    def _window(self, plan: Any, env: Row) -> list[Row]:
        rows = self.run(plan.input, env)
        found = [dict(row) for row in rows]
        for item in plan.items:
            parts: dict[tuple[Any, ...], list[int]] = {}
            for index, row in enumerate(rows):
                scope = {**env, **row}
                key = tuple(self.value(e, scope) for e in item.call.partition_by)
                parts.setdefault(key, []).append(index)
            for members in parts.values():
                self._number(item, [rows[i] for i in members], [found[i] for i in members], env)
        return found

    def _number(
        self, item: logical.WindowItem, rows: list[Row], targets: list[Row], env: Row
    ) -> None:
        tagged = [{**row, -1: place} for place, row in enumerate(rows)]
        ordered = self._sorted(tagged, item.call.order_by, env)
        name = item.call.function.name
        previous: Any = None
        rank = 0
        for number, row in enumerate(ordered, 1):
            keys = [self.value(key.expression, {**env, **row}) for key in item.call.order_by]
            if number == 1 or keys != previous:
                rank, previous = number, keys
            value = number if name == "row_number" else rank
            if name == "count":
                value = len(rows)
            targets[row[-1]][item.field.id] = value

    def _setoperation(self, plan: Any, env: Row) -> list[Row]:
        left, right = self._tuples(plan.left, env), self._tuples(plan.right, env)
        if plan.kind is SetKind.UNION:
            rows = left + right
        else:
            rest = list(right)
            rows = []
            for row in left:
                matched = row in rest
                if matched and plan.is_all:
                    rest.remove(row)
                if matched == (plan.kind is SetKind.INTERSECT):
                    rows.append(row)
        return self._named(plan.fields, rows if plan.is_all else list(dict.fromkeys(rows)))

    def _with(self, plan: Any, env: Row) -> list[Row]:
        definitions = plan.shared if hasattr(plan, "shared") else plan.definitions
        for item in definitions:
            self.shared[item.id] = self._tuples(item.plan, env)
        return self.run(plan.input, env)

    def _sharedref(self, plan: Any, env: Row) -> list[Row]:
        return self._named(plan.fields, self.shared[plan.id])

    _sharedscan = _sharedref

    def _recursive(self, plan: Any, env: Row) -> list[Row]:
        found = self._tuples(plan.base, env)
        if not plan.is_all:
            found = list(dict.fromkeys(found))
        current = found
        while current:
            self.work[plan.id] = current
            current = self._tuples(plan.step, env)
            if not plan.is_all:
                current = [row for row in dict.fromkeys(current) if row not in found]
            found = found + current
        return self._named(plan.fields, found)

    _recursiveunion = _recursive

    def _worktable(self, plan: Any, env: Row) -> list[Row]:
        return self._named(plan.fields, self.work[plan.id])

    _worktablescan = _worktable

    def _series(self, call: Expr, scope: Row) -> list[Any]:
        assert isinstance(call, expr.Call)
        low, high = (self.value(item, scope) for item in call.arguments)
        return [] if low is None or high is None else list(range(low, high + 1))

    def _tablefunction(self, plan: Any, env: Row) -> list[Row]:
        values = self._series(plan.calls[0], env)
        field = plan.outputs[0][0]
        rows = [{field.id: value} for value in values]
        if plan.ordinality is not None:
            for number, row in enumerate(rows, 1):
                row[plan.ordinality.id] = number
        return rows

    _functionscan = _tablefunction

    def _projectset(self, plan: Any, env: Row) -> list[Row]:
        found = []
        for row in self.run(plan.input, env):
            columns = [self._series(a.expression, {**env, **row}) for a in plan.calls]
            for place in range(max((len(column) for column in columns), default=0)):
                made = dict(row)
                for item, column in zip(plan.calls, columns, strict=True):
                    made[item.field.id] = column[place] if place < len(column) else None
                found.append(made)
        return found
