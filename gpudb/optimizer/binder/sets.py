"""UNION, INTERSECT, EXCEPT and VALUES: one type for each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog.type_system import Context
from gpudb.expr import Expr, Literal, Parameter, SortKey
from gpudb.optimizer import logical
from gpudb.optimizer.binder import coercion, expressions, operators, ordering, queries
from gpudb.optimizer.binder.scope import Clause, Scope
from gpudb.optimizer.parser import position, start_position
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

_KINDS: dict[type[exp.Expression], logical.SetKind] = {
    exp.Union: logical.SetKind.UNION,
    exp.Intersect: logical.SetKind.INTERSECT,
    exp.Except: logical.SetKind.EXCEPT,
}


def bind_set_operation(
    binder: Binder, scope: Scope, node: exp.Expression, *, keep_unknown: bool
) -> logical.Plan:
    del keep_unknown
    plan = _operation(binder, scope, node)
    plan = sorted_by_outputs(
        binder, plan, node, "UNION/INTERSECT/EXCEPT", is_values=False
    )
    return queries.limited(binder, scope, node, plan)


def _operation(binder: Binder, scope: Scope, node: exp.Expression) -> logical.Plan:
    kind = _KINDS[type(node)]
    what = kind.name
    left = _arm(binder, scope, node.args["this"])
    right = _arm(binder, scope, node.args["expression"])
    at = _arm_position(node.args["expression"])
    if len(left.fields) != len(right.fields):
        raise errors.SyntaxError(
            f"each {what} query must have the same number of columns", position=at
        )
    types = []
    for one, other in zip(left.fields, right.fields, strict=True):
        common = _common(binder, one.type, other.type, what, at)
        is_all = not node.args.get("distinct")
        if not is_all:
            operators.equality(binder, common.oid, at)
        types.append(common)
    left = with_types(binder, left, types, what, at)
    right = with_types(binder, right, types, what, at)
    columns = tuple(
        binder.field(field.name, type_)
        for field, type_ in zip(left.fields, types, strict=True)
    )
    return logical.SetOperation(kind, not node.args.get("distinct"), left, right, columns)


def _arm(binder: Binder, scope: Scope, node: exp.Expression) -> logical.Plan:
    inner = Scope(parent=scope)
    with binder.deeper(), binder.clause(scope, Clause.OTHER):
        return queries.bind(binder, inner, node, keep_unknown=True).plan


def _arm_position(node: exp.Expression) -> int:
    items = node.args.get("expressions") or ()
    return start_position(items[0]) if items else position(node)


def _common(
    binder: Binder, left: SqlType, right: SqlType, what: str, at: int
) -> SqlType:
    try:
        oid = binder.types.common([left.oid, right.oid], what)
    except errors.DatatypeMismatch as error:
        error.position = at
        raise
    typmod = left.typmod if left.typmod == right.typmod and left.oid == right.oid else -1
    return SqlType(oid, typmod)


def with_types(
    binder: Binder, plan: logical.Plan, types: Sequence[SqlType], what: str, at: int
) -> logical.Plan:
    """The plan with its columns converted; unknown literals are converted where they stand."""
    fields = plan.fields
    if any(field.type.oid == t.UNKNOWN for field in fields):
        plan = retyped(binder, plan, types)
        fields = plan.fields
    if all(f.type.oid == type_.oid for f, type_ in zip(fields, types, strict=True)):
        return plan
    assignments = []
    for field, type_ in zip(fields, types, strict=True):
        value = coercion.to_common(binder, field.ref, SqlType(type_.oid), what, at)
        output = field if value is field.ref else binder.field_like(field.name, value)
        if field.type.oid == type_.oid:
            output, value = field, field.ref
        assignments.append(logical.Assignment(output, value))
    return logical.Project(plan, tuple(assignments))


def retyped(
    binder: Binder, plan: logical.Plan, types: Sequence[SqlType]
) -> logical.Plan:
    """The plan with columns of unknown type computed in the given types, at their origin."""
    if isinstance(plan, logical.Project):
        wanted = dict(zip((f.id for f in plan.fields), types, strict=True))
        if all(
            isinstance(a.expression, Literal | Parameter)
            for a in plan.assignments
            if a.field.type.oid == t.UNKNOWN
        ):
            assignments = tuple(
                _retyped(binder, item, wanted[item.field.id]) for item in plan.assignments
            )
            return replace(plan, assignments=assignments)
        return replace(plan, input=retyped(binder, plan.input, _inner(plan, types)))
    if isinstance(plan, logical.Limit | logical.Sort | logical.Distinct | logical.With):
        return replace(plan, input=retyped(binder, plan.input, types))
    if isinstance(plan, logical.Values):
        return _retyped_values(binder, plan, types)
    return plan


def _inner(plan: logical.Project, types: Sequence[SqlType]) -> list[SqlType]:
    wanted = dict(zip((f.id for f in plan.fields), types, strict=True))
    return [wanted.get(field.id, field.type) for field in plan.input.fields]


def _retyped(
    binder: Binder, item: logical.Assignment, type_: SqlType
) -> logical.Assignment:
    if item.field.type.oid != t.UNKNOWN:
        return item
    value = coercion.coerce(
        binder,
        item.expression,
        type_.oid,
        Context.IMPLICIT,
        binder.position(item.expression),
    )
    return logical.Assignment(replace(item.field, type=value.type), value)


def _retyped_values(
    binder: Binder, plan: logical.Values, types: Sequence[SqlType]
) -> logical.Plan:
    rows = []
    for row in plan.rows:
        rows.append(
            tuple(
                coercion.coerce(
                    binder, value, type_.oid, Context.IMPLICIT, binder.position(value)
                )
                if column.type.oid == t.UNKNOWN
                else value
                for value, column, type_ in zip(row, plan.columns, types, strict=True)
            )
        )
    columns = tuple(
        replace(column, type=SqlType(type_.oid)) if column.type.oid == t.UNKNOWN else column
        for column, type_ in zip(plan.columns, types, strict=True)
    )
    return logical.Values(columns, tuple(rows))


def sorted_by_outputs(
    binder: Binder, plan: logical.Plan, node: exp.Expression, what: str, *, is_values: bool
) -> logical.Plan:
    """ORDER BY by output names and positions only."""
    keys: list[SortKey] = []
    for item in node.args.get("order") or ():
        field = _output(plan, item.args["this"], what, is_values=is_values)
        keys.append(ordering.sort_key(binder, field.ref, item))
    return logical.Sort(plan, tuple(keys)) if keys else plan


def _output(
    plan: logical.Plan, node: exp.Expression, what: str, *, is_values: bool
) -> logical.Field:
    at = start_position(node)
    if isinstance(node, exp.Literal):
        text = node.args["this"]
        if node.args["is_string"] or not text.lstrip("-").isdigit():
            raise errors.SyntaxError("non-integer constant in ORDER BY", position=at)
        if not 0 < int(text) <= len(plan.fields):
            raise errors.InvalidColumnReference(
                f"ORDER BY position {text} is not in select list", position=at
            )
        return plan.fields[int(text) - 1]
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        name = node.args["this"]
        found = [field for field in plan.fields if field.name == name]
        if len(found) > 1:
            raise errors.AmbiguousColumn(f'ORDER BY "{name}" is ambiguous', position=at)
        if found:
            return found[0]
        raise errors.UndefinedColumn(f'column "{name}" does not exist', position=at)
    if is_values:
        raise errors.FeatureNotSupported(
            "ORDER BY expressions over VALUES are not supported", position=at
        )
    raise errors.FeatureNotSupported(
        f"invalid {what} ORDER BY clause",
        detail="Only result column names can be used, not expressions or functions.",
        hint="Add the expression/function to every SELECT, or move the UNION into a FROM clause.",
        position=at,
    )


# VALUES


def bind_values(
    binder: Binder, scope: Scope, node: exp.Expression, *, keep_unknown: bool
) -> logical.Plan:
    """VALUES as a query; columns are named column1, column2, ..."""
    rows = value_rows(binder, scope, node)
    plan = values_plan(binder, node, rows, keep_unknown=keep_unknown)
    ordered = sorted_by_outputs(binder, plan, node, "VALUES", is_values=True)
    return queries.limited(binder, scope, node, ordered)


def value_rows(
    binder: Binder, scope: Scope, node: exp.Expression
) -> list[tuple[Expr, ...]]:
    """The bound rows. Raises SyntaxError when they are of different lengths."""
    rows: list[tuple[Expr, ...]] = []
    with binder.clause(scope, Clause.VALUES):
        for row_node in node.args["expressions"]:
            row = tuple(expressions.bind_list(binder, scope, row_node.args["expressions"]))
            if rows and len(row) != len(rows[0]):
                raise errors.SyntaxError(
                    "VALUES lists must all be the same length",
                    position=start_position(row_node.args["expressions"][0]),
                )
            rows.append(row)
    return rows


def values_plan(
    binder: Binder,
    node: exp.Expression,
    rows: list[tuple[Expr, ...]],
    *,
    keep_unknown: bool,
) -> logical.Plan:
    """The rows with one type a column."""
    columns: list[logical.Field] = []
    converted: list[list[Expr]] = []
    for number in range(len(rows[0])):
        values = [row[number] for row in rows]
        is_unknown = all(value.type.oid == t.UNKNOWN for value in values)
        if keep_unknown and is_unknown:
            target = t.UNKNOWN_TYPE
        else:
            positions = [
                start_position(row.args["expressions"][number])
                if number < len(row.args["expressions"])
                else 0
                for row in node.args["expressions"]
            ]
            target = coercion.common_type(binder, values, "VALUES", positions)
            values = [
                coercion.to_common(binder, value, target, "VALUES", at)
                for value, at in zip(values, positions, strict=True)
            ]
        columns.append(binder.field(f"column{number + 1}", target))
        converted.append(values)
    return logical.Values(tuple(columns), tuple(zip(*converted, strict=True)))
