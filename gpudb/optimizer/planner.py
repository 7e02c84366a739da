"""From the logical plan to a physical one: implementations, join order and estimates.

The logical plan holds neither Apply nor Subquery expressions any more. Every method plans one
kind of node; regions of joins go to join_order. Column order below an operator that reads its
input by position (set operations, shared plans, inserts, the result) is restored by a Project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gpudb import expr
from gpudb.expr import Expr, conjuncts, references
from gpudb.optimizer import cost, join_order, joins, logical, physical
from gpudb.optimizer.estimate import DEFAULT_ROWS, DEFAULT_SET_ROWS, Estimator
from gpudb.optimizer.join_order import filtered
from gpudb.optimizer.joins import with_columns
from gpudb.optimizer.logical import Assignment, Field, Plan, SetKind
from gpudb.optimizer.physical import Estimate, Physical
from gpudb.optimizer.predicate_order import ordered, zone_filters
from gpudb.optimizer.properties import is_true
from gpudb.sqltype import BIGINT

TOP_ROWS = 1 << 20
"""A limit up to this is planned as TopN; beyond, as a sort."""
RECURSION_FACTOR = 10.0


class Planner:
    """Plans one statement."""

    def __init__(self, estimator: Estimator) -> None:
        self.estimator = estimator
        self.source = estimator.source
        self._shared: dict[int, Physical] = {}
        self._work_rows: dict[int, float] = {}
        self._methods: dict[type[Plan], Callable[[Any], Physical]] = {
            logical.Scan: self._scan,
            logical.Values: self._values,
            logical.TableFunction: self._table_function,
            logical.FileScan: self._file_scan,
            logical.Project: self._project,
            logical.ProjectSet: self._project_set,
            logical.Filter: self._filter,
            logical.Join: self._join,
            logical.Aggregate: self._aggregate,
            logical.Window: self._window,
            logical.Sort: self._sort,
            logical.Limit: self._limit,
            logical.Distinct: self._distinct,
            logical.SetOperation: self._set_operation,
            logical.Recursive: self._recursive,
            logical.WorkTable: self._work_table,
            logical.With: self._with,
            logical.SharedRef: self._shared_ref,
            logical.Insert: self._insert,
            logical.Delete: self._delete,
            logical.Update: self._update,
        }

    def plan_root(self, plan: Plan) -> Physical:
        """The physical plan of a statement, yielding the logical plan's fields in order."""
        return with_columns(self.plan(plan), plan.fields)

    def plan(self, plan: Plan) -> Physical:
        """The physical plan; its columns may come in another order."""
        return self._methods[type(plan)](plan)

    def _positional(self, plan: Plan) -> Physical:
        return with_columns(self.plan(plan), plan.fields)

    def _estimate(self, rows: float, fields: Iterable[Field], cost_: float) -> Estimate:
        return Estimate(rows, rows * self.estimator.row_width(fields), cost_)

    def _scan(self, plan: logical.Scan) -> Physical:
        rows = self.estimator.table_rows(plan.table_oid)
        self.estimator.add_scan(plan.columns, rows)
        filters = ordered(plan.filters, self.estimator)
        width = self.estimator.row_width(plan.columns)
        kept = rows * self.estimator.selectivity_of_all(filters) if filters else rows
        kept = max(kept, min(1.0, rows))
        estimate = Estimate(kept, kept * width, cost.scan(rows, width, len(filters)))
        if self.source.is_system(plan.table_oid):
            return physical.SystemScan(
                plan.table_oid, plan.name, plan.alias, plan.columns, filters, estimate
            )
        return physical.TableScan(
            plan.table_oid,
            plan.name,
            plan.alias,
            plan.columns,
            filters,
            zone_filters(filters),
            estimate=estimate,
        )

    def _values(self, plan: logical.Values) -> Physical:
        rows = float(len(plan.rows))
        for index, item in enumerate(plan.columns):
            values = {row[index] for row in plan.rows}
            self.estimator.add_distinct(item, float(len(values)))
        estimate = self._estimate(rows, plan.columns, cost.project(rows, len(plan.columns)))
        return physical.ValuesScan(plan.columns, plan.rows, estimate)

    def _table_function(self, plan: logical.TableFunction) -> Physical:
        rows = max((self._set_rows(call) for call in plan.calls), default=1.0)
        for item in plan.fields:
            self.estimator.add_distinct(item, rows)
        estimate = self._estimate(rows, plan.fields, cost.project(rows, len(plan.calls)))
        return physical.FunctionScan(plan.calls, plan.outputs, plan.ordinality, estimate)

    @staticmethod
    def _set_rows(call: Expr) -> float:
        if not isinstance(call, expr.Call) or not call.function.returns_set:
            return 1.0
        if call.function.name == "generate_series" and len(call.arguments) == 2:
            bounds = [a.value for a in call.arguments if isinstance(a, expr.Literal)]
            if len(bounds) == 2 and all(isinstance(b, int) for b in bounds):
                return float(max(bounds[1] - bounds[0] + 1, 0))
        return DEFAULT_SET_ROWS

    def _file_scan(self, plan: logical.FileScan) -> Physical:
        rows = DEFAULT_ROWS * 100
        estimate = self._estimate(rows, plan.columns, cost.scan(rows, 8.0 * len(plan.columns), 0))
        return physical.FileScan(
            plan.format, plan.paths, plan.columns, plan.options, estimate=estimate
        )

    def _project(self, plan: logical.Project) -> Physical:
        source = self.plan(plan.input)
        rows = source.estimate.rows
        for item in plan.assignments:
            self.estimator.add_alias(item.field, item.expression, rows)
        computed = sum(1 for a in plan.assignments if not isinstance(a.expression, expr.ColumnRef))
        own = cost.project(rows, computed) if computed else 0.0
        estimate = self._estimate(rows, plan.fields, source.estimate.cost + own)
        return physical.Project(source, plan.assignments, estimate)

    def _project_set(self, plan: logical.ProjectSet) -> Physical:
        source = self.plan(plan.input)
        each = max((self._set_rows(item.expression) for item in plan.calls), default=1.0)
        rows = source.estimate.rows * each
        for item in plan.calls:
            self.estimator.add_distinct(item.field, each)
        own = cost.project(rows, len(plan.calls))
        estimate = self._estimate(rows, plan.fields, source.estimate.cost + own)
        return physical.ProjectSet(source, plan.calls, estimate)

    def _filter(self, plan: logical.Filter) -> Physical:
        if join_order.is_region(plan):
            return self._region(plan)
        source = self.plan(plan.input)
        parts = tuple(part for part in conjuncts(plan.predicate) if not is_true(part))
        if not parts:
            return source
        if isinstance(source, physical.FileScan):
            return self._filtered_file(source, parts)
        return filtered(self.estimator, source, ordered(parts, self.estimator))

    def _filtered_file(self, source: physical.FileScan, parts: tuple[Expr, ...]) -> Physical:
        filters = ordered((*source.filters, *parts), self.estimator)
        rows = source.estimate.rows * self.estimator.selectivity_of_all(filters)
        estimate = self._estimate(rows, source.fields, source.estimate.cost)
        return physical.FileScan(
            source.format, source.paths, source.fields, source.options, filters, estimate
        )

    def _join(self, plan: logical.Join) -> Physical:
        if join_order.is_region(plan):
            return self._region(plan)
        left, right = self.plan(plan.left), self.plan(plan.right)
        return joins.join(self.estimator, plan.kind, left, right, plan.condition, plan.mark)

    def _region(self, plan: Plan) -> Physical:
        return join_order.order_joins(plan, self.estimator, self.plan)

    def _aggregate(self, plan: logical.Aggregate) -> Physical:
        source = self.plan(plan.input)
        rows = source.estimate.rows
        expressions = [item.expression for item in plan.keys]
        groups = self._group_count(plan, expressions, rows)
        for key in plan.keys:
            self.estimator.add_alias(key.field, key.expression, rows)
        for item in plan.items:
            self.estimator.add_distinct(item.field, groups)
        own = cost.aggregate(rows, groups, len(plan.items)) * max(len(plan.grouping_sets), 1)
        estimate = self._estimate(groups, plan.fields, source.estimate.cost + own)
        return physical.HashAggregate(
            source, plan.keys, plan.items, plan.grouping_sets, estimate=estimate
        )

    def _group_count(
        self, plan: logical.Aggregate, expressions: Sequence[Expr], rows: float
    ) -> float:
        if not plan.grouping_sets:
            return self.estimator.groups(expressions, rows)
        return sum(
            self.estimator.groups([expressions[index] for index in chosen], rows)
            for chosen in plan.grouping_sets
        )

    def _window(self, plan: logical.Window) -> Physical:
        """One physical node for each (partition, order), most keys first."""
        groups: dict[tuple[Any, ...], list[logical.WindowItem]] = {}
        for item in plan.items:
            groups.setdefault((item.call.partition_by, item.call.order_by), []).append(item)
        source = self.plan(plan.input)
        for item in plan.items:
            self.estimator.add_distinct(item.field, source.estimate.rows)
        for (partition, order), items in groups.items():
            rows = source.estimate.rows
            own = cost.sort(rows, max(len(partition) + len(order), 1))
            own += cost.project(rows, len(items))
            fields = (*source.fields, *(item.field for item in items))
            estimate = self._estimate(rows, fields, source.estimate.cost + own)
            source = physical.Window(source, partition, order, tuple(items), estimate)
        return source

    def _sort(self, plan: logical.Sort) -> Physical:
        source = self.plan(plan.input)
        own = cost.sort(source.estimate.rows, len(plan.keys))
        estimate = self._estimate(source.estimate.rows, source.fields, source.estimate.cost + own)
        return physical.Sort(source, plan.keys, estimate)

    def _limit(self, plan: logical.Limit) -> Physical:
        kept = _row_bound(plan)
        ties: tuple[expr.SortKey, ...] = ()
        if isinstance(plan.input, logical.Sort):
            if kept is not None and kept <= TOP_ROWS and not plan.with_ties:
                return self._top(plan, plan.input, float(kept))
            ties = plan.input.keys if plan.with_ties else ()
        source = self.plan(plan.input)
        rows = source.estimate.rows if kept is None else min(source.estimate.rows, float(kept))
        share = rows / source.estimate.rows if source.estimate.rows > 0 else 1.0
        blocking = isinstance(source, physical.Sort | physical.HashAggregate)
        own = source.estimate.cost * (1.0 if blocking else share)
        estimate = self._estimate(rows, source.fields, own)
        return physical.Limit(source, plan.limit, plan.offset, ties, estimate)

    def _top(self, plan: logical.Limit, sort: logical.Sort, kept: float) -> Physical:
        assert plan.limit is not None
        source = self.plan(sort.input)
        rows = min(source.estimate.rows, kept)
        own = cost.top(source.estimate.rows, kept)
        estimate = self._estimate(rows, source.fields, source.estimate.cost + own)
        return physical.TopN(source, sort.keys, plan.limit, plan.offset, estimate)

    def _distinct(self, plan: logical.Distinct) -> Physical:
        source = self.plan(plan.input)
        if not plan.on:
            return self._grouped(source, source.fields)
        rows = self.estimator.groups(plan.on, source.estimate.rows)
        own = cost.aggregate(source.estimate.rows, rows, 0)
        estimate = self._estimate(rows, source.fields, source.estimate.cost + own)
        return physical.DistinctOn(source, plan.on, estimate)

    def _grouped(self, source: Physical, fields: tuple[Field, ...]) -> Physical:
        """The distinct rows of ``source``; a relation without columns has one at most."""
        if not fields:
            return physical.Limit(source, expr.Literal(1, BIGINT), None, (), source.estimate)
        rows = self.estimator.groups([item.ref for item in fields], source.estimate.rows)
        own = cost.aggregate(source.estimate.rows, rows, 0)
        estimate = self._estimate(rows, fields, source.estimate.cost + own)
        keys = tuple(Assignment(item, item.ref) for item in fields)
        return physical.HashAggregate(source, keys, (), estimate=estimate)

    def _set_operation(self, plan: logical.SetOperation) -> Physical:
        left, right = self._positional(plan.left), self._positional(plan.right)
        one, other = left.estimate.rows, right.estimate.rows
        rows = one + other
        if plan.kind is SetKind.INTERSECT:
            rows = min(one, other) / 2
        elif plan.kind is SetKind.EXCEPT:
            rows = one / 2
        for item, source in zip(plan.columns, left.fields, strict=True):
            self.estimator.add_alias(item, source.ref, rows)
        is_streamed = plan.kind is SetKind.UNION
        total = left.estimate.cost + right.estimate.cost
        own = 0.0 if is_streamed else cost.aggregate(one + other, rows, 0)
        node = physical.SetOperation(
            plan.kind,
            plan.is_all or is_streamed,
            left,
            right,
            plan.columns,
            self._estimate(rows, plan.columns, total + own),
        )
        if is_streamed and not plan.is_all:
            return self._grouped(node, plan.columns)
        return node

    def _recursive(self, plan: logical.Recursive) -> Physical:
        base = self._positional(plan.base)
        self._work_rows[plan.id] = base.estimate.rows
        for item, source in zip(plan.columns, base.fields, strict=True):
            self.estimator.add_distinct(item, self.estimator.distinct(source.ref, 1e9))
        step = self._positional(plan.step)
        rows = base.estimate.rows + step.estimate.rows * RECURSION_FACTOR
        total = base.estimate.cost + step.estimate.cost * RECURSION_FACTOR
        estimate = self._estimate(rows, plan.columns, total)
        return physical.RecursiveUnion(
            plan.id, base, step, plan.is_all, plan.columns, estimate
        )

    def _work_table(self, plan: logical.WorkTable) -> Physical:
        rows = self._work_rows.get(plan.id, DEFAULT_ROWS)
        estimate = self._estimate(rows, plan.columns, cost.OPERATOR_MICROSECONDS)
        return physical.WorkTableScan(plan.id, plan.columns, estimate)

    def _with(self, plan: logical.With) -> Physical:
        shared: list[physical.SharedPlan] = []
        for definition in plan.definitions:
            planned = self._positional(definition.plan)
            self._shared[definition.id] = planned
            shared.append(physical.SharedPlan(definition.id, planned, definition.name))
        source = self.plan(plan.input)
        total = source.estimate.cost + sum(item.plan.estimate.cost for item in shared)
        estimate = Estimate(source.estimate.rows, source.estimate.bytes, total)
        return physical.With(tuple(shared), source, estimate)

    def _shared_ref(self, plan: logical.SharedRef) -> Physical:
        source = self._shared[plan.id]
        rows = source.estimate.rows
        for item, original in zip(plan.columns, source.fields, strict=True):
            self.estimator.add_alias(item, original.ref, rows)
        estimate = self._estimate(rows, plan.columns, cost.OPERATOR_MICROSECONDS)
        return physical.SharedScan(plan.id, "", plan.columns, estimate)

    def _insert(self, plan: logical.Insert) -> Physical:
        source = self._positional(plan.input)
        estimate = source.estimate
        name = self.source.table_name(plan.table_oid)
        return physical.InsertRows(
            plan.table_oid, name, source, plan.columns, plan.checks, estimate
        )

    def _delete(self, plan: logical.Delete) -> Physical:
        source = self.plan(plan.input)
        name = self.source.table_name(plan.table_oid)
        return physical.DeleteRows(plan.table_oid, name, source, plan.row_id, source.estimate)

    def _update(self, plan: logical.Update) -> Physical:
        source = self.plan(plan.input)
        name = self.source.table_name(plan.table_oid)
        return physical.UpdateRows(
            plan.table_oid, name, source, plan.row_id, plan.columns, plan.checks, source.estimate
        )


def _row_bound(plan: logical.Limit) -> int | None:
    """The most rows a limit lets through, skipped ones included; None if not constant."""
    if not isinstance(plan.limit, expr.Literal) or not isinstance(plan.limit.value, int):
        return None
    if plan.offset is None:
        return max(plan.limit.value, 0)
    if isinstance(plan.offset, expr.Literal):
        return max(plan.limit.value, 0) + max(plan.offset.value or 0, 0)
    return None


def reads(plan: Physical) -> frozenset[int]:
    """The ids that a node's own expressions read."""
    return references(plan)
