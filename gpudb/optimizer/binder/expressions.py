"""Expressions: from syntax nodes to typed expressions, one small function per kind of node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.expr import (
    And,
    ArrayConstruct,
    Call,
    Case,
    CaseArm,
    Coalesce,
    Expr,
    Extreme,
    Literal,
    Not,
    Or,
    RowConstruct,
    SessionValue,
)
from gpudb.optimizer.binder import (
    aggregates,
    calls,
    coercion,
    columns,
    composites,
    literals,
    operators,
    sql_functions,
    subqueries,
    typenames,
)
from gpudb.optimizer.binder.scope import Scope
from gpudb.optimizer.parser import position, start_position, type_name
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

_COLLATIONS = frozenset(("c", "posix", "default", "ucs_basic", "c.utf-8", "c.utf8"))
_KNOWN_PROVIDERS = "only the collations default, C and POSIX are supported"
_SESSION_TYPES = {
    "current_date": t.DATE,
    "current_time": t.TIMETZ,
    "current_timestamp": t.TIMESTAMPTZ,
    "localtime": t.TIME,
    "localtimestamp": t.TIMESTAMP,
}


def bind(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    """The bound expression of a node; unknown literals and parameters stay unknown."""
    rule = _rules().get(type(node))
    if rule is None:
        raise errors.FeatureNotSupported(
            f"{type(node).__name__} is not supported here", position=position(node)
        )
    return rule(binder, scope, node)


def bind_list(
    binder: Binder, scope: Scope, nodes: list[exp.Expression]
) -> Iterator[Expr]:
    """The bound expressions with ``t.*`` expanded (rows, VALUES, ROW(...))."""
    for node in nodes:
        if isinstance(node, exp.Column) and isinstance(node.args["this"], exp.Star):
            for _, value in columns.expand_star(binder, scope, node):
                yield value
        elif isinstance(node, exp.Dot) and isinstance(node.args["expression"], exp.Star):
            for _, value in composites.expand(binder, scope, node):
                yield value
        else:
            yield bind(binder, scope, node)


@contextmanager
def without_sets(scope: Scope, what: str) -> Iterator[None]:
    """Refuse set-returning calls inside CASE and COALESCE, as PostgreSQL does."""
    before, scope.no_sets_in = scope.no_sets_in, what
    try:
        yield
    finally:
        scope.no_sets_in = before


def condition(
    binder: Binder, scope: Scope, node: exp.Expression, what: str
) -> Expr:
    """A boolean expression for WHERE, HAVING, ON, ..."""
    value = bind(binder, scope, node)
    return coercion.boolean(binder, value, what, start_position(node))


def _null(binder: Binder, _scope: Scope, node: exp.Expression) -> Expr:
    return binder.at(Literal(None, t.UNKNOWN_TYPE), position(node))


def _boolean(_binder: Binder, _scope: Scope, node: exp.Expression) -> Expr:
    return Literal(bool(node.args["this"]), t.BOOLEAN)


def _literal(binder: Binder, _scope: Scope, node: exp.Expression) -> Expr:
    return literals.bind_literal(binder, node)


def _bits(binder: Binder, _scope: Scope, node: exp.Expression) -> Expr:
    text = node.args["this"]
    prefix = "x" if isinstance(node, exp.HexString) else "b"
    return literals.from_text(binder, prefix + text, SqlType(t.BIT), position(node))


def _parameter(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    if binder.inlined_arguments:
        return sql_functions.argument(binder, scope, node.args["this"], position(node))
    found = binder.parameter(node.args["this"], position(node))
    return binder.at(found, position(node))


def _and(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    return And(
        tuple(condition(binder, scope, item, "AND") for item in node.args["expressions"])
    )


def _or(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    return Or(
        tuple(condition(binder, scope, item, "OR") for item in node.args["expressions"])
    )


def _not(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    return Not(condition(binder, scope, node.args["this"], "NOT"))


def _cast(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    target = typenames.resolve(binder, type_name(node))
    operand = node.args["this"]
    at = position(node)
    if isinstance(operand, exp.Array) and operand.args.get("query") is None:
        base, typmod = binder.types.base_and_typmod(target.oid, target.typmod)
        if binder.types.element(base):
            value = _array_items(binder, scope, operand, base)
            target = SqlType(target.oid, typmod if base == target.oid else -1)
            return coercion.explicit(binder, value, target, at)
    value = bind(binder, scope, operand)
    found = coercion.explicit(binder, value, target, at)
    return binder.at(found, start_position(node)) if found is not value else found


# Conditional expressions


def _case(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    with without_sets(scope, "CASE"):
        subject = None
        if node.args.get("this") is not None:
            subject = bind(binder, scope, node.args["this"])
            if subject.type.oid == t.UNKNOWN:
                subject = coercion.settled(binder, subject)
        conditions: list[Expr] = []
        results: list[Expr] = []
        positions: list[int] = []
        for arm in node.args["ifs"]:
            conditions.append(_arm_condition(binder, scope, arm, subject))
            results.append(bind(binder, scope, arm.args["true"]))
            positions.append(start_position(arm.args["true"]))
        default_node = node.args.get("default")
        default: Expr = Literal(None, t.UNKNOWN_TYPE)
        default_at = 0
        if default_node is not None:
            default = bind(binder, scope, default_node)
            default_at = start_position(default_node)
    target = coercion.common_type(
        binder, [default, *results], "CASE", [default_at, *positions]
    )
    arms = tuple(
        CaseArm(test, coercion.to_common(binder, value, target, "CASE/WHEN", at))
        for test, value, at in zip(conditions, results, positions, strict=True)
    )
    otherwise = None
    if default_node is not None:
        otherwise = coercion.to_common(binder, default, target, "CASE/ELSE", default_at)
    return Case(arms, otherwise, target)


def _arm_condition(
    binder: Binder, scope: Scope, arm: exp.Expression, subject: Expr | None
) -> Expr:
    test_node = arm.args["this"]
    if subject is None:
        return condition(binder, scope, test_node, "CASE/WHEN")
    value = bind(binder, scope, test_node)
    found = operators.apply(binder, "=", subject, value, start_position(test_node))
    return coercion.boolean(binder, found, "CASE/WHEN", start_position(test_node))


def _converted_items(
    binder: Binder, scope: Scope, nodes: list[exp.Expression], what: str
) -> tuple[tuple[Expr, ...], SqlType]:
    values = [bind(binder, scope, node) for node in nodes]
    positions = [start_position(node) for node in nodes]
    target = coercion.common_type(binder, values, what, positions)
    items = tuple(
        coercion.to_common(binder, value, target, what, at)
        for value, at in zip(values, positions, strict=True)
    )
    return items, target


def _coalesce(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    with without_sets(scope, "COALESCE"):
        items, target = _converted_items(
            binder, scope, node.args["expressions"], "COALESCE"
        )
    return Coalesce(items, target)


def _extreme(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    is_greatest = isinstance(node, exp.Greatest)
    what = "GREATEST" if is_greatest else "LEAST"
    items, target = _converted_items(binder, scope, node.args["expressions"], what)
    if binder.resolver.find_operator("<", target.oid, target.oid) is None:
        raise errors.UndefinedFunction(
            "could not identify a comparison function for type"
            f" {binder.types.name(target.oid)}",
            position=position(node),
        )
    return Extreme(is_greatest, items, target)


def _nullif(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    at = position(node)
    left = bind(binder, scope, node.args["this"])
    right = bind(binder, scope, node.args["expression"])
    test = operators.apply(binder, "=", left, right, at)
    if test.type.oid != t.BOOL:
        raise errors.DatatypeMismatch(
            "NULLIF requires = operator to yield boolean", position=at
        )
    value = test.arguments[0] if isinstance(test, Call) else left
    return Case((CaseArm(test, Literal(None, value.type)),), value, value.type)


# Arrays and rows


def _array(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    if node.args.get("query") is not None:
        return subqueries.bind_array(binder, scope, node)
    return _array_items(binder, scope, node, 0)


def _array_items(
    binder: Binder, scope: Scope, node: exp.Expression, array_oid: int
) -> Expr:
    """ARRAY[...]; with ``array_oid`` the items are cast to its elements."""
    at = position(node)
    item_nodes: list[exp.Expression] = node.args["expressions"]
    if not item_nodes:
        if not array_oid:
            raise errors.IndeterminateDatatype(
                "cannot determine type of empty array",
                hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
                position=at,
            )
        return ArrayConstruct((), SqlType(array_oid))
    values: list[Expr] = []
    is_nested = False
    for item in item_nodes:
        if isinstance(item, exp.Array) and item.args.get("query") is None:
            values.append(_array_items(binder, scope, item, array_oid))
            is_nested = True
        else:
            value = bind(binder, scope, item)
            is_nested |= bool(binder.types.element(value.type.oid))
            values.append(value)
    if array_oid:
        target = SqlType(array_oid if is_nested else binder.types.element(array_oid))
        items = tuple(
            coercion.explicit(binder, value, target, start_position(n))
            for value, n in zip(values, item_nodes, strict=True)
        )
        return ArrayConstruct(items, SqlType(array_oid), is_nested)
    positions = [start_position(item) for item in item_nodes]
    target = coercion.common_type(binder, values, "ARRAY", positions)
    items = tuple(
        coercion.to_common(binder, value, target, "ARRAY", item_at)
        for value, item_at in zip(values, positions, strict=True)
    )
    oid = target.oid if is_nested else binder.types.array(target.oid)
    if not oid:
        raise errors.UndefinedObject(
            f"could not find array type for data type {binder.types.name(target.oid)}",
            position=at,
        )
    return ArrayConstruct(items, SqlType(oid), is_nested)


def _row(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    items = tuple(bind_list(binder, scope, node.args["expressions"]))
    names = tuple(f"f{number}" for number in range(1, len(items) + 1))
    return binder.at(RowConstruct(items, SqlType(t.RECORD), names), position(node))


# Names of the session, collations, DEFAULT


def _session_value(binder: Binder, _scope: Scope, node: exp.Expression) -> Expr:
    name = node.args["this"]
    if name == "default":
        raise errors.SyntaxError(
            "DEFAULT is not allowed in this context", position=position(node)
        )
    binder.uses_session_values = True
    oid = _SESSION_TYPES.get(name, t.NAME)
    precision = node.args.get("precision")
    typmod = -1 if precision is None else min(precision, 6)
    return SessionValue(name, SqlType(oid, typmod))


def _collate(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    value = bind(binder, scope, node.args["this"])
    at = position(node)
    if value.type.oid == t.UNKNOWN:
        value = coercion.settled(binder, value)
    element = binder.types.element(value.type.oid) or value.type.oid
    if binder.types.category(element) != "S":
        raise errors.DatatypeMismatch(
            "collations are not supported by type"
            f" {binder.types.name(value.type.oid)}",
            position=at,
        )
    check_collation(node.args["collation"].parts, at)
    return value


def check_collation(parts: tuple[str, ...], at: int) -> None:
    """Accept the collations that order by bytes; 0A000 for others."""
    if parts[-1].lower() not in _COLLATIONS:
        raise errors.FeatureNotSupported(
            f'collation "{parts[-1]}" is not supported', detail=_KNOWN_PROVIDERS, position=at
        )


_Rule = Callable[["Binder", Scope, exp.Expression], Expr]


@cache
def _rules() -> dict[type[exp.Expression], _Rule]:
    return {
        exp.Literal: _literal,
        exp.BitString: _bits,
        exp.HexString: _bits,
        exp.Null: _null,
        exp.Boolean: _boolean,
        exp.Parameter: _parameter,
        exp.Column: columns.bind_column,
        exp.Anonymous: calls.bind_call,
        exp.Operator: operators.bind_operator,
        exp.Cast: _cast,
        exp.And: _and,
        exp.Or: _or,
        exp.Not: _not,
        exp.Is: operators.bind_is,
        exp.NullSafeEQ: operators.bind_distinct,
        exp.NullSafeNEQ: operators.bind_distinct,
        exp.In: operators.bind_in,
        exp.Between: operators.bind_between,
        exp.Like: operators.bind_pattern,
        exp.ILike: operators.bind_pattern,
        exp.SimilarTo: operators.bind_pattern,
        exp.Case: _case,
        exp.Coalesce: _coalesce,
        exp.Greatest: _extreme,
        exp.Least: _extreme,
        exp.Nullif: _nullif,
        exp.Array: _array,
        exp.Tuple: _row,
        exp.Exists: subqueries.bind_exists,
        exp.Subquery: subqueries.bind_scalar,
        exp.Bracket: composites.bind_subscript,
        exp.Dot: composites.bind_field,
        exp.Collate: _collate,
        exp.Var: _session_value,
        exp.Grouping: aggregates.bind_grouping,
    }
