"""Subqueries in expressions: scalar, EXISTS, ANY, ALL, ARRAY, row comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.expr import Expr, RowConstruct, Subquery, SubqueryKind
from gpudb.optimizer import logical
from gpudb.optimizer.binder import expressions, operators
from gpudb.optimizer.binder.scope import Scope
from gpudb.optimizer.parser import position
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

QUERIES = (exp.Select, exp.SetOperation, exp.Values)


def bind_plan(binder: Binder, scope: Scope, node: exp.Expression) -> logical.Plan:
    """The plan of a subquery below ``scope``; which outer columns it reads is noted."""
    from gpudb.optimizer.binder import queries

    inner = Scope(parent=scope)
    with binder.deeper():
        plan = queries.bind(binder, inner, node).plan
    binder.note_captured(plan, frozenset(inner.captured))
    return plan


def bind_scalar(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    """``(SELECT ...)`` as a value. Raises SyntaxError for several columns."""
    query = node.args["this"]
    while isinstance(query, exp.Subquery):
        query = query.args["this"]
    plan = bind_plan(binder, scope, query)
    if len(plan.fields) != 1:
        raise errors.SyntaxError(
            "subquery must return only one column", position=position(node)
        )
    return Subquery(SubqueryKind.SCALAR, plan, plan.fields[0].type)


def bind_exists(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    plan = bind_plan(binder, scope, node.args["this"])
    return Subquery(SubqueryKind.EXISTS, plan, t.BOOLEAN)


def bind_array(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    """``ARRAY(SELECT ...)``; a query of arrays makes an array of one more dimension."""
    plan = bind_plan(binder, scope, node.args["query"])
    if len(plan.fields) != 1:
        raise errors.SyntaxError(
            "subquery must return only one column", position=position(node)
        )
    element = plan.fields[0].type.oid
    array = element if binder.types.element(element) else binder.types.array(element)
    if not array:
        raise errors.UndefinedObject(
            f"could not find array type for data type {binder.types.name(element)}",
            position=position(node),
        )
    return Subquery(SubqueryKind.ARRAY, plan, SqlType(array))


def bind_quantified(
    binder: Binder,
    scope: Scope,
    comparison: tuple[str, SubqueryKind],
    left_node: exp.Expression,
    query: exp.Expression,
    at: int,
) -> Expr:
    """``value operator ANY | ALL (SELECT ...)``; ``comparison`` is the operator and which."""
    name, kind = comparison
    left = expressions.bind(binder, scope, left_node)
    items = left.items if isinstance(left, RowConstruct) else (left,)
    plan = bind_plan(binder, scope, query)
    right = tuple(field.ref for field in plan.fields)
    if len(right) < len(items):
        raise errors.SyntaxError("subquery has too few columns", position=at)
    if len(right) > len(items):
        raise errors.SyntaxError("subquery has too many columns", position=at)
    test = operators.compare_rows(binder, name, items, right, at)
    return Subquery(kind, plan, t.BOOLEAN, test)


def bind_row_comparison(
    binder: Binder,
    scope: Scope,
    name: str,
    left_node: exp.Expression,
    right_node: exp.Expression,
    at: int,
) -> Expr:
    """``(a, b) operator (SELECT x, y ...)``: the query yields at most one row.

    Bound as a scalar subquery whose one column is the comparison: no row gives NULL.
    """
    left = operators.row_items(binder, scope, left_node)
    plan = bind_plan(binder, scope, right_node.args["this"])
    if len(plan.fields) != len(left):
        few = "few" if len(plan.fields) < len(left) else "many"
        raise errors.SyntaxError(f"subquery has too {few} columns", position=at)
    right = tuple(field.ref for field in plan.fields)
    comparison = operators.compare_rows(binder, name, left, right, at)
    field = binder.field("comparison", t.BOOLEAN)
    outer = binder.captured(plan)
    for item in left:
        outer |= binder.references(item)
    compared = logical.Project(plan, (logical.Assignment(field, comparison),))
    binder.note_captured(compared, frozenset(outer))
    return Subquery(SubqueryKind.SCALAR, compared, t.BOOLEAN)
