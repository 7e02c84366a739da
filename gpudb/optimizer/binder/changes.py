"""INSERT, UPDATE and DELETE: target columns, defaults, generated columns, RETURNING."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog.objects import ColumnDef, Relation, RelationKind
from gpudb.catalog.type_system import Context
from gpudb.expr import Expr, Literal
from gpudb.optimizer import logical, parser
from gpudb.optimizer.binder import (
    coercion,
    columns,
    defaults,
    expressions,
    from_clause,
    queries,
    relations,
    select,
    sets,
    subqueries,
    targets,
)
from gpudb.optimizer.binder.scope import Clause, Item, NamedColumn, Scope
from gpudb.optimizer.parser import position, start_position
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder


def bind(binder: Binder, scope: Scope, node: exp.Expression) -> logical.Plan:
    """The plan of a data-modifying statement; with RETURNING a Project above it."""
    if isinstance(node, exp.Insert):
        return _bind_insert(binder, scope, node)
    if isinstance(node, exp.Update):
        return _bind_update(binder, scope, node)
    if isinstance(node, exp.Delete):
        return _bind_delete(binder, scope, node)
    raise errors.FeatureNotSupported("MERGE is not supported", position=position(node))


def _target(binder: Binder, node: exp.Expression, verb: str) -> Relation:
    """The table to change. Raises WrongObjectType (42809) for what is no table."""
    found = relations.find(binder, node)
    at = position(node)
    if found.is_system:
        raise errors.InsufficientPrivilege(
            f'permission denied: "{found.name}" is a system catalog', position=at
        )
    if found.kind == RelationKind.VIEW:
        raise errors.FeatureNotSupported(
            f'cannot {verb} view "{found.name}"',
            detail="Views cannot be changed.",
        )
    if found.kind == RelationKind.MATERIALIZED_VIEW:
        raise errors.WrongObjectType(f'cannot change materialized view "{found.name}"')
    if found.kind != RelationKind.TABLE:
        raise errors.WrongObjectType(f'cannot change sequence "{found.name}"')
    binder.written.add(found.oid)
    return found


def _column(table: Relation, node: exp.Expression) -> ColumnDef:
    """The column that a target names."""
    at = position(node)
    if not isinstance(node, exp.Column):
        raise errors.FeatureNotSupported(
            "assignment to array elements and fields is not supported", position=at
        )
    name = node.args["this"]
    found = table.column(name)
    if found is not None:
        return found
    if name in columns.SYSTEM_COLUMNS:
        raise errors.FeatureNotSupported(
            f'cannot assign to system column "{name}"', position=at
        )
    raise errors.UndefinedColumn(
        f'column "{name}" of relation "{table.name}" does not exist', position=at
    )


def assign(
    binder: Binder, value: Expr, column: ColumnDef, at: int
) -> Expr:
    """The value as the column's type. Raises DatatypeMismatch (42804)."""
    target = SqlType(column.type_oid, column.typmod)
    found = coercion.to_type(binder, value, target, Context.ASSIGNMENT, at)
    if found is None:
        raise errors.DatatypeMismatch(
            f'column "{column.name}" is of type {binder.types.name(column.type_oid)} but'
            f" expression is of type {binder.types.name(value.type.oid)}",
            hint="You will need to rewrite or cast the expression.",
            position=at,
        )
    return found


def _is_default(node: exp.Expression) -> bool:
    return isinstance(node, exp.Var) and node.args["this"] == "default"


# INSERT


@dataclass(frozen=True, slots=True)
class _Insertion:
    table: Relation
    wanted: tuple[ColumnDef, ...]
    overriding: str


def _bind_insert(binder: Binder, scope: Scope, node: exp.Expression) -> logical.Plan:
    table = _target(binder, node.args["this"], "insert into")
    if node.args.get("conflict") is not None:
        raise errors.FeatureNotSupported(
            "ON CONFLICT is not supported", position=position(node.args["conflict"])
        )
    insertion = _Insertion(
        table, _target_columns(table, node), node.args.get("overriding") or ""
    )
    source = node.args.get("expression")
    given: dict[int, Expr]
    plan: logical.Plan
    if source is None:
        plan, given = logical.Values((), ((),)), {}
    elif isinstance(source, exp.Values) and not _has_options(source):
        plan, given = _inserted_values(binder, scope, source, node, insertion)
    else:
        plan, given = _inserted_query(binder, scope, source, node, insertion)
    plan, fields = _complete(binder, scope, plan, table, given)
    result: logical.Plan = logical.Insert(table.oid, plan, tuple(fields))
    alias, _ = from_clause.alias_of(node.args["this"])
    named = tuple(
        NamedColumn(column.name, field.ref)
        for column, field in zip(table.live_columns(), fields, strict=True)
    )
    item = Item(
        alias or table.name, named, 0 if alias else table.schema, table, table.row_type
    )
    from_clause.own_columns(binder, scope, item.name, fields)
    scope.items = [item]
    return _returning(binder, scope, node, result)


def _has_options(node: exp.Expression) -> bool:
    return any(node.args.get(key) for key in ("order", "limit", "offset", "with_"))


def _target_columns(table: Relation, node: exp.Expression) -> tuple[ColumnDef, ...]:
    nodes = node.args.get("columns")
    if not nodes:
        return table.live_columns()
    found: list[ColumnDef] = []
    for item in nodes:
        column = _column(table, item)
        if any(column.attnum == other.attnum for other in found):
            raise errors.DuplicateColumn(
                f'column "{column.name}" specified more than once', position=position(item)
            )
        found.append(column)
    return tuple(found)


def _check_count(count: int, node: exp.Expression, insertion: _Insertion, at: int) -> None:
    if count > len(insertion.wanted):
        raise errors.SyntaxError(
            "INSERT has more expressions than target columns", position=at
        )
    if node.args.get("columns") and count < len(insertion.wanted):
        raise errors.SyntaxError(
            "INSERT has more target columns than expressions",
            position=position(node.args["columns"][count]),
        )


def _inserted_values(
    binder: Binder,
    scope: Scope,
    source: exp.Expression,
    node: exp.Expression,
    insertion: _Insertion,
) -> tuple[logical.Plan, dict[int, Expr]]:
    """VALUES rows in the target's types; DEFAULT stands for the column's default."""
    row_nodes = source.args["expressions"]
    count = len(row_nodes[0].args["expressions"])
    rows: list[tuple[Expr, ...]] = []
    clause = Clause.TARGET if len(row_nodes) == 1 else Clause.VALUES
    with binder.clause(scope, clause):
        for row_node in row_nodes:
            items = row_node.args["expressions"]
            if any(isinstance(i, exp.Column | exp.Dot) for i in items):
                rows.append(_expanded_row(binder, scope, items, node, insertion))
                continue
            if len(items) != count:
                raise errors.SyntaxError(
                    "VALUES lists must all be the same length",
                    position=start_position(items[0]),
                )
            over = min(len(insertion.wanted), count - 1)
            _check_count(count, node, insertion, start_position(items[over]))
            rows.append(
                tuple(
                    _inserted_item(binder, scope, item, column, insertion)
                    for item, column in zip(items, insertion.wanted, strict=False)
                )
            )
    wanted = insertion.wanted[: len(rows[0])]
    fields = tuple(
        binder.field(c.name, rows[0][number].type) for number, c in enumerate(wanted)
    )
    given: dict[int, Expr] = {
        column.attnum: field.ref
        for column, field in zip(wanted, fields, strict=True)
        if not column.generated
    }
    if scope.aggregates:
        raise errors.GroupingError(
            "aggregate functions are not allowed in VALUES",
            position=min(scope.aggregate_ids.values()),
        )
    if scope.window_items:
        raise errors.WindowingError(
            "window functions are not allowed in VALUES",
            position=min(scope.window_ids.values()),
        )
    if not scope.set_calls:
        return logical.Values(fields, tuple(rows)), given
    sets_plan = select.with_sets(
        binder, logical.Values((), ((),)), list(scope.set_calls.values())
    )
    assignments = tuple(
        logical.Assignment(field, value) for field, value in zip(fields, rows[0], strict=True)
    )
    return logical.Project(sets_plan, assignments), given


def _expanded_row(
    binder: Binder,
    scope: Scope,
    items: list[exp.Expression],
    node: exp.Expression,
    insertion: _Insertion,
) -> tuple[Expr, ...]:
    values = list(expressions.bind_list(binder, scope, items))
    _check_count(len(values), node, insertion, start_position(items[0]))
    return tuple(
        assign(binder, value, column, binder.position(value))
        for value, column in zip(values, insertion.wanted, strict=False)
    )


def _inserted_item(
    binder: Binder,
    scope: Scope,
    node: exp.Expression,
    column: ColumnDef,
    insertion: _Insertion,
) -> Expr:
    if _is_default(node):
        if column.generated:
            return Literal(None, SqlType(column.type_oid))
        return defaults.value(binder, insertion.table, column)
    _check_always(column, insertion.overriding, node)
    if column.identity and insertion.overriding == "user":
        return defaults.value(binder, insertion.table, column)
    value = expressions.bind(binder, scope, node)
    return assign(binder, value, column, start_position(node))


def _check_always(column: ColumnDef, overriding: str, node: exp.Expression | None) -> None:
    del node
    message = f'cannot insert a non-DEFAULT value into column "{column.name}"'
    if column.generated:
        raise errors.GeneratedAlways(
            message, detail=f'Column "{column.name}" is a generated column.'
        )
    if column.identity == "a" and not overriding:
        raise errors.GeneratedAlways(
            message,
            detail=f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.',
            hint="Use OVERRIDING SYSTEM VALUE to override.",
        )


def _inserted_query(
    binder: Binder,
    scope: Scope,
    source: exp.Expression,
    node: exp.Expression,
    insertion: _Insertion,
) -> tuple[logical.Plan, dict[int, Expr]]:
    inner = Scope(parent=scope)
    plan = queries.bind(binder, inner, source, keep_unknown=True).plan
    count = len(plan.fields)
    items = source.args.get("expressions") or [source]
    over = min(len(insertion.wanted), len(items) - 1)
    _check_count(count, node, insertion, start_position(items[over]))
    wanted = insertion.wanted[:count]
    if any(field.type.oid == t.UNKNOWN for field in plan.fields):
        types = [SqlType(c.type_oid, c.typmod) for c in wanted]
        plan = sets.retyped(binder, plan, types)
    plan = from_clause.distinct_names(binder, plan)
    given: dict[int, Expr] = {}
    for number, (column, field) in enumerate(zip(wanted, plan.fields, strict=True)):
        _check_always(column, insertion.overriding, None)
        if column.identity and insertion.overriding == "user":
            continue
        at = start_position(items[min(number, len(items) - 1)])
        given[column.attnum] = assign(binder, field.ref, column, at)
    return plan, given


def _complete(
    binder: Binder,
    scope: Scope,
    plan: logical.Plan,
    table: Relation,
    given: dict[int, Expr],
) -> tuple[logical.Plan, list[logical.Field]]:
    """The plan with all columns of the table in order: defaults, then generated columns."""
    assignments = []
    for column in table.live_columns():
        value = given.get(column.attnum)
        if value is None:
            if column.generated:
                value = Literal(None, SqlType(column.type_oid, column.typmod))
            else:
                value = defaults.value(binder, table, column)
        field = binder.field(column.name, value.type, table.oid, column.attnum)
        assignments.append(logical.Assignment(field, value))
    plan = logical.Project(plan, tuple(assignments))
    return _generated(binder, scope, plan, table, [a.field for a in assignments])


def _generated(
    binder: Binder,
    scope: Scope,
    plan: logical.Plan,
    table: Relation,
    fields: list[logical.Field],
) -> tuple[logical.Plan, list[logical.Field]]:
    """The plan with its generated columns computed from the others."""
    live = table.live_columns()
    if not any(column.generated for column in live):
        return plan, fields
    del scope
    inner = Scope(clause=Clause.GENERATED)
    named = tuple(NamedColumn(c.name, f.ref) for c, f in zip(live, fields, strict=True))
    inner.items = [Item(table.name, named, table.schema, table)]
    result: list[logical.Field] = []
    replaced: dict[int, logical.Assignment] = {}
    for column, field in zip(live, fields, strict=True):
        if not column.generated:
            result.append(field)
            continue
        node = parser.parse_expression(column.default or "null")
        value = assign(binder, expressions.bind(binder, inner, node), column, 0)
        new = binder.field(column.name, value.type, table.oid, column.attnum)
        replaced[field.id] = logical.Assignment(new, value)
        result.append(new)
    assignments = tuple(
        replaced.get(f.id) or logical.Assignment(f, f.ref) for f in plan.fields
    )
    return logical.Project(plan, assignments), result


def _returning(
    binder: Binder, scope: Scope, node: exp.Expression, plan: logical.Plan
) -> logical.Plan:
    nodes = node.args.get("returning")
    if not nodes:
        return plan
    outputs = targets.bind_targets(binder, scope, nodes, clause=Clause.RETURNING)
    return select.projected(binder, scope, plan, outputs.items)[0]


# UPDATE and DELETE


def _changed_rows(
    binder: Binder, scope: Scope, node: exp.Expression, verb: str
) -> tuple[Relation, Item, logical.Plan]:
    """The target joined with FROM or USING; the scope sees both."""
    table = _target(binder, node.args["this"], verb)
    source = from_clause.bind_item(binder, scope, node.args["this"])
    item = source.items[0]
    plan = source.plan
    scope.items = [item]
    others = node.args.get("from_") or node.args.get("using")
    if others:
        item.is_lateral_only, item.is_lateral_ok = True, False
        before = scope.items
        scope.items = []
        joined = from_clause.bind_from(binder, scope, others)
        from_clause.check_names(before, scope.items)
        item.is_lateral_only, item.is_lateral_ok = False, True
        scope.items = [*before, *scope.items]
        plan = logical.Join(logical.JoinKind.INNER, plan, joined, from_clause.TRUE)
    return table, item, plan


def _filtered(
    binder: Binder, scope: Scope, node: exp.Expression, item: Item, plan: logical.Plan
) -> tuple[logical.Plan, logical.Field]:
    """The rows that WHERE leaves, each target row once, and the row id's field."""
    where = node.args.get("where")
    if where is not None:
        with binder.clause(scope, Clause.WHERE):
            plan = logical.Filter(plan, expressions.condition(binder, scope, where, "WHERE"))
    columns.system_column(binder, scope, scope, item, "ctid", 0)
    row_id = next(f for f in binder.system_columns[item.scan_key] if f.name == "ctid")
    if node.args.get("from_") or node.args.get("using"):
        plan = logical.Distinct(plan, (row_id.ref,))
    return plan, row_id


def _bind_delete(binder: Binder, scope: Scope, node: exp.Expression) -> logical.Plan:
    table, item, plan = _changed_rows(binder, scope, node, "delete from")
    plan, row_id = _filtered(binder, scope, node, item, plan)
    return _returning(binder, scope, node, logical.Delete(table.oid, plan, row_id))


def _bind_update(binder: Binder, scope: Scope, node: exp.Expression) -> logical.Plan:
    table, item, plan = _changed_rows(binder, scope, node, "update")
    values: dict[int, Expr] = {}
    with binder.clause(scope, Clause.UPDATE):
        for assignment in node.args["expressions"]:
            plan = _assignment(binder, scope, table, assignment, values, plan)
    plan, row_id = _filtered(binder, scope, node, item, plan)
    assignments = [logical.Assignment(f, f.ref) for f in plan.fields]
    if all(a.field.id != row_id.id for a in assignments):
        assignments.append(logical.Assignment(row_id, row_id.ref))
    fields = []
    for number, column in enumerate(table.live_columns()):
        value = values.get(column.attnum) or item.columns[number].expression
        field = binder.field(column.name, value.type, table.oid, column.attnum)
        assignments.append(logical.Assignment(field, value))
        fields.append(field)
    plan = logical.Project(plan, tuple(assignments))
    plan, fields = _generated(binder, scope, plan, table, fields)
    update = logical.Update(table.oid, plan, row_id, tuple(fields))
    from_clause.own_columns(binder, scope, item.name, fields)
    item.columns = tuple(
        NamedColumn(c.name, f.ref) for c, f in zip(item.columns, fields, strict=True)
    )
    return _returning(binder, scope, node, update)


def _assignment(
    binder: Binder,
    scope: Scope,
    table: Relation,
    node: exp.Expression,
    values: dict[int, Expr],
    plan: logical.Plan,
) -> logical.Plan:
    """One ``column = value`` or ``(column, ...) = row``; a row subquery is joined in."""
    target, source = node.args["this"], node.args["expression"]
    if not isinstance(target, exp.Tuple):
        column = _column(table, target)
        _set(values, column, _assigned(binder, scope, table, column, source))
        return plan
    names = target.args["expressions"]
    if isinstance(source, exp.Subquery):
        subplan = subqueries.bind_plan(binder, scope, source.args["this"])
        _check_row(len(names), len(subplan.fields), source)
        kind = logical.JoinKind.SINGLE
        plan = logical.Apply(kind, plan, subplan, from_clause.TRUE)
        for name, field in zip(names, subplan.fields, strict=True):
            column = _column(table, name)
            _check_updatable(column)
            _set(values, column, assign(binder, field.ref, column, position(name)))
        return plan
    if not isinstance(source, exp.Tuple):
        raise errors.FeatureNotSupported(
            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
            position=start_position(source),
        )
    items = source.args["expressions"]
    _check_row(len(names), len(items), source)
    for name, item in zip(names, items, strict=True):
        column = _column(table, name)
        _set(values, column, _assigned(binder, scope, table, column, item))
    return plan


def _check_row(wanted: int, count: int, node: exp.Expression) -> None:
    if wanted != count:
        raise errors.SyntaxError(
            "number of columns does not match number of values", position=position(node)
        )


def _set(values: dict[int, Expr], column: ColumnDef, value: Expr) -> None:
    if column.attnum in values:
        raise errors.SyntaxError(
            f'multiple assignments to same column "{column.name}"'
        )
    values[column.attnum] = value


def _check_updatable(column: ColumnDef) -> None:
    if column.generated or column.identity == "a":
        what = (
            "a generated column"
            if column.generated
            else "an identity column defined as GENERATED ALWAYS"
        )
        raise errors.GeneratedAlways(
            f'column "{column.name}" can only be updated to DEFAULT',
            detail=f'Column "{column.name}" is {what}.',
        )


def _assigned(
    binder: Binder, scope: Scope, table: Relation, column: ColumnDef, node: exp.Expression
) -> Expr:
    if _is_default(node):
        if column.generated:
            return Literal(None, SqlType(column.type_oid, column.typmod))
        return defaults.value(binder, table, column)
    _check_updatable(column)
    value = expressions.bind(binder, scope, node)
    return assign(binder, value, column, start_position(node))

