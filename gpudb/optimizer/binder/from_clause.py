"""FROM: tables, subqueries, joins, LATERAL, alias column lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog.type_system import Context
from gpudb.expr import Coalesce, ColumnRef, Expr, Literal, conjunction
from gpudb.optimizer import logical
from gpudb.optimizer.binder import coercion, expressions, operators
from gpudb.optimizer.binder.scope import Clause, Item, NamedColumn, Scope
from gpudb.optimizer.parser import position
from gpudb.sqltype import RECORD, SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

TRUE = Literal(True, t.BOOLEAN)
JOIN_KINDS = {
    "cross": logical.JoinKind.INNER,
    "inner": logical.JoinKind.INNER,
    "left": logical.JoinKind.LEFT,
    "right": logical.JoinKind.RIGHT,
    "full": logical.JoinKind.FULL,
}


@dataclass(slots=True)
class Source:
    """A bound table reference: its plan, what names see of it, the columns that a join merges.

    ``outer`` are the ids of columns beside it that it reads (LATERAL).
    """

    plan: logical.Plan
    items: list[Item]
    columns: tuple[NamedColumn, ...]
    outer: set[int] = field(default_factory=set)


def bind_from(
    binder: Binder, scope: Scope, nodes: Sequence[exp.Expression]
) -> logical.Plan:
    """The plan of a FROM list; the scope's items are what it makes visible."""
    plan: logical.Plan | None = None
    with binder.clause(scope, Clause.FROM_SUBQUERY):
        for node in nodes:
            source = bind_item(binder, scope, node)
            check_names(scope.items, source.items)
            for item in source.items:
                item.is_lateral_only, item.is_lateral_ok = True, True
            scope.items = [*scope.items, *source.items]
            plan = source.plan if plan is None else _cross(plan, source)
    for item in scope.items:
        item.is_lateral_only, item.is_lateral_ok = False, True
    assert plan is not None
    return plan


def _cross(plan: logical.Plan, source: Source) -> logical.Plan:
    kind = logical.JoinKind.INNER
    if source.outer & logical.field_ids(plan):
        return logical.Apply(kind, plan, source.plan, TRUE)
    return logical.Join(kind, plan, source.plan, TRUE)


def check_names(known: Sequence[Item], new: Sequence[Item]) -> None:
    """42712 when two items of FROM have one name."""
    for item in new:
        if not item.has_visible_name:
            continue
        for other in known:
            if other.name != item.name or not other.has_visible_name:
                continue
            if other.schema and item.schema and other.schema != item.schema:
                continue
            raise errors.DuplicateAlias(
                f'table name "{item.name}" specified more than once'
            )


def bind_item(binder: Binder, scope: Scope, node: exp.Expression) -> Source:
    """One table reference."""
    if isinstance(node, exp.Table):
        return _bind_table(binder, scope, node)
    if isinstance(node, exp.Join):
        return _bind_join(binder, scope, node)
    if isinstance(node, exp.Subquery):
        return _bind_subquery(binder, scope, node)
    from gpudb.optimizer.binder import table_functions

    assert isinstance(node, exp.TableFromRows), node
    return table_functions.bind(binder, scope, node)


def own_columns(
    binder: Binder, scope: Scope, name: str, fields: Sequence[logical.Field]
) -> None:
    """Note that FROM of this scope yields the columns."""
    for item in fields:
        binder.own(scope, item.id, f"{name}.{item.name}" if name else item.name)


def alias_of(node: exp.Expression) -> tuple[str, list[str]]:
    """The alias and its column names; "" without one."""
    alias = node.args.get("alias")
    if alias is None:
        return "", []
    return alias.args["this"] or "", list(alias.args.get("columns") or ())


def named_columns(
    fields: Sequence[logical.Field], names: Sequence[str], table: str
) -> tuple[NamedColumn, ...]:
    """The columns under their aliases. Raises InvalidColumnReference for too many aliases."""
    if len(names) > len(fields):
        raise errors.InvalidColumnReference(
            f'table "{table}" has {len(fields)} columns available but'
            f" {len(names)} columns specified"
        )
    found = [NamedColumn(f.name, f.ref) for f in fields]
    for number, name in enumerate(names):
        found[number] = NamedColumn(name, found[number].expression)
    return tuple(found)


# Tables


def _bind_table(binder: Binder, scope: Scope, node: exp.Expression) -> Source:
    name = node.args["this"]
    at = position(node)
    if node.args.get("sample") is not None:
        raise errors.FeatureNotSupported(
            "TABLESAMPLE is not supported", position=position(node.args["sample"])
        )
    alias, names = alias_of(node)
    shown = alias or name
    if node.args.get("db") is None:
        from gpudb.optimizer.binder import cte

        common = cte.find(scope, name)
        if common is not None:
            plan = cte.reference(binder, common, at)
            scope.reads_work_table |= isinstance(plan, logical.WorkTable)
            fields = plan.fields
            own_columns(binder, scope, shown, fields)
            visible = named_columns(fields, names, shown)
            outer = set(binder.captured(plan)) if common.is_inlined else set()
            return Source(plan, [Item(shown, visible)], visible, outer)
    from gpudb.optimizer.binder import relations

    relation = relations.find(binder, node)
    plan, scan_key = relations.rows(binder, relation, shown)
    own_columns(binder, scope, shown, plan.fields)
    visible = named_columns(plan.fields, names, shown)
    item = Item(
        shown,
        visible,
        0 if alias else relation.schema,
        relation,
        relation.row_type or RECORD,
        scan_key=scan_key,
    )
    return Source(plan, [item], visible)


def _bind_subquery(binder: Binder, scope: Scope, node: exp.Expression) -> Source:
    from gpudb.optimizer.binder import queries

    is_lateral = bool(node.args.get("lateral"))
    inner = Scope(parent=scope)
    before, scope.is_lateral_active = scope.is_lateral_active, is_lateral
    try:
        with binder.deeper():
            plan = queries.bind(binder, inner, node.args["this"]).plan
    finally:
        scope.is_lateral_active = before
    alias, names = alias_of(node)
    plan = distinct_names(binder, plan)
    own_columns(binder, scope, alias, plan.fields)
    visible = named_columns(plan.fields, names, alias)
    captured = frozenset(inner.captured)
    binder.note_captured(plan, captured)
    return Source(plan, [Item(alias, visible)], visible, set(captured))


def distinct_names(binder: Binder, plan: logical.Plan) -> logical.Plan:
    """The plan with a field id for each column, where a query yields one column twice."""
    fields = plan.fields
    if len({f.id for f in fields}) == len(fields):
        return plan
    assignments = tuple(
        logical.Assignment(binder.field_like(f.name, f.ref), f.ref) for f in fields
    )
    return logical.Project(plan, assignments)


# Joins


def _bind_join(binder: Binder, scope: Scope, node: exp.Expression) -> Source:
    kind = JOIN_KINDS[node.args["kind"]]
    left = bind_item(binder, scope, node.args["left"])
    right = _bind_right(binder, scope, node.args["this"], left, kind)
    check_names(left.items, right.items)
    using = _using_names(node, left, right)
    merged: tuple[NamedColumn, ...] = ()
    if using is not None:
        condition, merged = _merge(binder, using, left, right, kind, node)
    elif node.args.get("on") is not None:
        condition = _on(binder, scope, node.args["on"], left, right)
    else:
        condition = TRUE
    join = logical.Join(kind, left.plan, right.plan, condition)
    plan: logical.Plan = join
    if right.outer & logical.field_ids(left.plan):
        plan = logical.Apply(kind, left.plan, right.plan, condition)
    names = {column.name for column in merged}
    visible = (
        *merged,
        *(c for c in left.columns if c.name not in names),
        *(c for c in right.columns if c.name not in names),
    )
    outer = (left.outer | right.outer) - logical.field_ids(plan)
    items = _join_items(node, left, right, visible, merged)
    if len(items) == 1:
        scope.hidden.extend([*left.items, *right.items])
    return Source(plan, items, items[-1].columns, outer)


def _bind_right(
    binder: Binder,
    scope: Scope,
    node: exp.Expression,
    left: Source,
    kind: logical.JoinKind,
) -> Source:
    before = scope.items
    is_ok = kind in (logical.JoinKind.INNER, logical.JoinKind.LEFT)
    states = [(item, item.is_lateral_only, item.is_lateral_ok) for item in left.items]
    for item in left.items:
        item.is_lateral_only, item.is_lateral_ok = True, is_ok
    scope.items = [*before, *left.items]
    try:
        return bind_item(binder, scope, node)
    finally:
        scope.items = before
        for item, only, ok in states:
            item.is_lateral_only, item.is_lateral_ok = only, ok


def _on(
    binder: Binder, scope: Scope, node: exp.Expression, left: Source, right: Source
) -> Expr:
    before, hidden = scope.items, scope.hidden
    scope.items = [*left.items, *right.items]
    scope.hidden = [*hidden, *before]
    for item in scope.items:
        item.is_lateral_only, item.is_lateral_ok = False, True
    try:
        with binder.clause(scope, Clause.JOIN_ON):
            return expressions.condition(binder, scope, node, "JOIN/ON")
    finally:
        scope.items, scope.hidden = before, hidden


def _using_names(node: exp.Expression, left: Source, right: Source) -> list[str] | None:
    if node.args.get("natural"):
        others = {column.name for column in right.columns}
        return [column.name for column in left.columns if column.name in others]
    found: list[str] | None = node.args.get("using")
    return found


def _merge(
    binder: Binder,
    names: list[str],
    left: Source,
    right: Source,
    kind: logical.JoinKind,
    node: exp.Expression,
) -> tuple[Expr, tuple[NamedColumn, ...]]:
    """The condition of USING and its merged columns."""
    at = position(node)
    tests: list[Expr] = []
    merged: list[NamedColumn] = []
    for number, name in enumerate(names):
        if name in names[:number]:
            raise errors.DuplicateColumn(
                f'column name "{name}" appears more than once in USING clause'
            )
        one = _using_column(left, name, "left")
        other = _using_column(right, name, "right")
        test = operators.apply(binder, "=", one, other, at)
        tests.append(coercion.boolean(binder, test, "JOIN/USING", at))
        merged.append(NamedColumn(name, _merged(binder, one, other, kind, at)))
    return conjunction(tuple(tests)), tuple(merged)


def _using_column(source: Source, name: str, side: str) -> Expr:
    found = [column.expression for column in source.columns if column.name == name]
    if not found:
        raise errors.UndefinedColumn(
            f'column "{name}" specified in USING clause does not exist in {side} table'
        )
    if len(found) > 1:
        raise errors.AmbiguousColumn(
            f'common column name "{name}" appears more than once in {side} table'
        )
    return found[0]


def _merged(
    binder: Binder, left: Expr, right: Expr, kind: logical.JoinKind, at: int
) -> Expr:
    target = coercion.common_type(binder, [left, right], "JOIN/USING", [at, at])
    typmod = left.type.typmod if left.type == right.type else -1
    target = SqlType(target.oid, typmod)
    one = coercion.coerce(binder, left, target.oid, Context.IMPLICIT, at)
    other = coercion.coerce(binder, right, target.oid, Context.IMPLICIT, at)
    if kind is logical.JoinKind.FULL:
        return Coalesce((one, other), target)
    if kind is logical.JoinKind.RIGHT:
        return other
    if kind is logical.JoinKind.INNER and not isinstance(one, ColumnRef):
        return other if isinstance(other, ColumnRef) else one
    return one


def _join_items(
    node: exp.Expression,
    left: Source,
    right: Source,
    visible: tuple[NamedColumn, ...],
    merged: tuple[NamedColumn, ...],
) -> list[Item]:
    alias, names = alias_of(node)
    if len(names) > len(visible):
        raise errors.InvalidColumnReference(
            f'column alias list for "{alias}" has too many entries'
        )
    renamed = tuple(
        NamedColumn(names[i] if i < len(names) else column.name, column.expression)
        for i, column in enumerate(visible)
    )
    if alias:
        return [Item(alias, renamed)]
    items = [*left.items, *right.items]
    for item in items:
        item.has_visible_columns = False
    using_alias = node.args.get("using_alias")
    if using_alias:
        shown = Item(using_alias, merged, has_visible_columns=False)
        check_names(items, [shown])
        items.append(shown)
    items.append(Item("", renamed, has_visible_name=False))
    return items

