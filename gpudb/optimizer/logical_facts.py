"""Facts about logical plans that rewrites rest on: keys, NULLs, row counts, free columns."""

from __future__ import annotations

from gpudb import expr
from gpudb.expr import Expr, conjuncts, references
from gpudb.optimizer import logical
from gpudb.optimizer.logical import JoinKind, Plan, field_ids
from gpudb.optimizer.properties import equality_sides, may_raise, rejects_nulls
from gpudb.optimizer.statistics import StatisticsSource
from gpudb.tree import Node, children, walk

Keys = frozenset[frozenset[int]]
"""Sets of columns on which no two rows agree (NULLs count as equal)."""

NO_KEYS: Keys = frozenset()
ONE_ROW: Keys = frozenset({frozenset[int]()})
KEYS_MAX = 8


class FreeIds:
    """Free column ids of plans and expressions, computed once per node."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Node, frozenset[int]]] = {}

    def of(self, node: Node) -> frozenset[int]:
        """The ids that a plan, or an expression with its subqueries, reads from outside."""
        found = self._known.get(id(node))
        if found is not None:
            return found[1]
        free = self._expression(node) if isinstance(node, Expr) else self._plan(node)
        self._known[id(node)] = (node, free)
        return free

    def _expression(self, node: Expr) -> frozenset[int]:
        if isinstance(node, expr.ColumnRef):
            return frozenset((node.id,))
        free: frozenset[int] = frozenset()
        for child in children(node, Expr):
            free |= self._expression(child)
        if isinstance(node, expr.Subquery):
            assert isinstance(node.plan, Plan)
            free = free - field_ids(node.plan) | self.of(node.plan)
        return free

    def _plan(self, node: Node) -> frozenset[int]:
        assert isinstance(node, Plan)
        free: set[int] = set()
        bound: set[int] = set()
        for child in node.inputs:
            free |= self.of(child)
            bound |= field_ids(child)
        for expression in children(node, Expr):
            free |= self._expression(expression)
        if isinstance(node, logical.Scan | logical.Insert):
            bound |= field_ids(node)
        return frozenset(free - bound)


def is_single_row(plan: Plan) -> bool:
    """Whether the plan is one row without columns: SELECT without FROM."""
    return isinstance(plan, logical.Values) and not plan.columns and len(plan.rows) == 1


def is_scalar_aggregate(plan: Plan) -> bool:
    """Whether the plan groups all rows into one, always present."""
    return isinstance(plan, logical.Aggregate) and not plan.keys and not plan.grouping_sets


def yields_one_row(plan: Plan) -> bool:
    """Whether the plan surely yields exactly one row."""
    while isinstance(plan, logical.Project | logical.Sort | logical.Window):
        plan = plan.input
    return is_scalar_aggregate(plan) or (
        isinstance(plan, logical.Values) and len(plan.rows) == 1
    )


def yields_at_most_one_row(plan: Plan, source: StatisticsSource) -> bool:
    return frozenset[int]() in keys_of(plan, source)


def _limit_keys(plan: logical.Limit, source: StatisticsSource) -> Keys:
    limit = plan.limit
    if isinstance(limit, expr.Literal) and isinstance(limit.value, int):
        if limit.value <= 1 and not plan.with_ties:
            return ONE_ROW
    return keys_of(plan.input, source)


def keys_under(predicates: tuple[Expr, ...], keys: Keys, own: frozenset[int]) -> Keys:
    """Keys under equalities with values from outside: the columns so fixed need not be in."""
    fixed: set[int] = set()
    for part in predicates:
        sides = equality_sides(part)
        if sides is None:
            continue
        for one, other in (sides, sides[::-1]):
            if isinstance(one, expr.ColumnRef) and one.id in own and not references(other) & own:
                fixed.add(one.id)
    return frozenset(key - fixed for key in keys) if fixed else keys


def _scan_keys(plan: logical.Scan, source: StatisticsSource) -> Keys:
    ids = {item.attnum: item.id for item in plan.columns}
    keys: set[frozenset[int]] = set()
    for unique in source.unique_keys(plan.table_oid):
        if all(attnum in ids for attnum in unique) and all(
            source.is_not_null(plan.table_oid, attnum) for attnum in unique
        ):
            keys.add(frozenset(ids[attnum] for attnum in unique))
    if -1 in ids:
        keys.add(frozenset((ids[-1],)))
    return keys_under(plan.filters, frozenset(keys), field_ids(plan))


def _join_keys(plan: logical.Join | logical.Apply, source: StatisticsSource) -> Keys:
    left = keys_of(plan.left, source)
    if plan.kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK, JoinKind.SINGLE):
        return left
    right = keys_of(plan.right, source)
    if isinstance(plan, logical.Join) and plan.kind in (JoinKind.INNER, JoinKind.LEFT):
        matched = keys_under(conjuncts(plan.condition), right, field_ids(plan.right))
        if frozenset[int]() in matched:
            return left
    both = {one | other for one in left for other in right}
    if plan.kind is JoinKind.INNER:
        parts = conjuncts(plan.condition)
        matched = keys_under(parts, left, field_ids(plan.left))
        if frozenset[int]() in matched:
            both |= right
    return frozenset(both)


def keys_of(plan: Plan, source: StatisticsSource) -> Keys:
    """Keys of the plan's rows, from enforced constraints and grouping only."""
    match plan:
        case logical.Scan():
            return _scan_keys(plan, source)
        case logical.Values():
            return ONE_ROW if len(plan.rows) <= 1 else NO_KEYS
        case logical.Filter():
            keys = keys_of(plan.input, source)
            return keys_under(conjuncts(plan.predicate), keys, field_ids(plan.input))
        case logical.Project():
            return _project_keys(plan, source)
        case logical.Sort() | logical.Window():
            return keys_of(plan.input, source)
        case logical.Limit():
            return _limit_keys(plan, source)
        case logical.Aggregate():
            if plan.grouping_sets:
                return NO_KEYS
            return frozenset({frozenset(item.field.id for item in plan.keys)})
        case logical.Distinct():
            columns = plan.on or tuple(item.ref for item in plan.fields)
            if all(isinstance(item, expr.ColumnRef) for item in columns):
                own = frozenset(references_of(columns))
                return keys_of(plan.input, source) | {own}
            return keys_of(plan.input, source)
        case logical.Join() | logical.Apply():
            return frozenset(list(_join_keys(plan, source))[:KEYS_MAX])
        case logical.With():
            return keys_of(plan.input, source)
        case logical.SetOperation():
            own = field_ids(plan)
            is_grouped = not plan.is_all
            return frozenset({own}) if is_grouped else NO_KEYS
        case _:
            return NO_KEYS


def references_of(expressions: tuple[Expr, ...]) -> set[int]:
    found: set[int] = set()
    for item in expressions:
        found |= references(item)
    return found


def _project_keys(plan: logical.Project, source: StatisticsSource) -> Keys:
    renamed: dict[int, int] = {}
    for item in plan.assignments:
        if isinstance(item.expression, expr.ColumnRef):
            renamed.setdefault(item.expression.id, item.field.id)
    return frozenset(
        frozenset(renamed[item] for item in key)
        for key in keys_of(plan.input, source)
        if all(item in renamed for item in key)
    )


def not_null_ids(plan: Plan, source: StatisticsSource) -> frozenset[int]:
    """Columns that surely hold no NULL, from enforced constraints, filters and joins."""
    match plan:
        case logical.Scan():
            own = frozenset(
                item.id
                for item in plan.columns
                if item.attnum < 0 or source.is_not_null(plan.table_oid, item.attnum)
            )
            return own | _rejecting(plan.filters, plan)
        case logical.Filter():
            found = not_null_ids(plan.input, source)
            return found | _rejecting(conjuncts(plan.predicate), plan.input)
        case logical.Project():
            below = not_null_ids(plan.input, source)
            return frozenset(
                item.field.id for item in plan.assignments if is_not_null(item.expression, below)
            )
        case logical.Sort() | logical.Window() | logical.Limit() | logical.Distinct():
            return not_null_ids(plan.input, source)
        case logical.ProjectSet() | logical.With():
            return not_null_ids(plan.input, source)
        case logical.Aggregate() if not plan.grouping_sets:
            below = not_null_ids(plan.input, source)
            keys = {item.field.id for item in plan.keys if is_not_null(item.expression, below)}
            counts = {item.field.id for item in plan.items if is_count(item)}
            return frozenset(keys | counts)
        case logical.Join() | logical.Apply():
            return _join_not_null(plan, source)
        case _:
            return frozenset()


def _rejecting(predicates: tuple[Expr, ...], plan: Plan) -> frozenset[int]:
    found: set[int] = set()
    for part in predicates:
        for item in references(part) & field_ids(plan):
            if item not in found and rejects_nulls(part, frozenset((item,))):
                found.add(item)
    return frozenset(found)


def _join_not_null(plan: logical.Join | logical.Apply, source: StatisticsSource) -> frozenset[int]:
    left = not_null_ids(plan.left, source)
    if plan.kind in (JoinKind.ANTI, JoinKind.MARK, JoinKind.LEFT, JoinKind.SINGLE):
        return left
    if plan.kind is JoinKind.FULL:
        return frozenset()
    right = not_null_ids(plan.right, source)
    if plan.kind is JoinKind.RIGHT:
        return right
    rejected = _rejecting(conjuncts(plan.condition), plan)
    return left | rejected if plan.kind is JoinKind.SEMI else left | right | rejected


def is_count(item: logical.AggregateItem) -> bool:
    """Whether the aggregate of no rows is 0 rather than NULL."""
    call = item.call
    return isinstance(call, expr.AggregateCall) and call.function.name in ("count", "regr_count")


def is_not_null(node: Expr, ids: frozenset[int]) -> bool:
    """Whether an expression is surely not NULL where the columns ``ids`` are not."""
    match node:
        case expr.ColumnRef():
            return node.id in ids
        case expr.Literal():
            return node.value is not None
        case expr.IsNull() | expr.BooleanTest() | expr.DistinctFrom():
            return True
        case expr.Coalesce():
            return any(is_not_null(item, ids) for item in node.arguments)
        case expr.Cast() if node.function is None and not node.is_text_io:
            return is_not_null(node.argument, ids)
        case _:
            return False


def plan_may_raise(plan: Plan) -> bool:
    """Whether running a plan can raise an SQL error."""
    for node in walk(plan, Plan):
        if isinstance(node, logical.Join | logical.Apply) and node.kind is JoinKind.SINGLE:
            return True
        if may_raise(node):
            return True
        if isinstance(node, logical.Insert | logical.Update | logical.Delete):
            return True
    return False
