"""Operators: resolution, row values, patterns, IN, BETWEEN, quantified comparisons, IS tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog.resolution import ResolvedFunction
from gpudb.catalog.type_system import Context
from gpudb.expr import (
    And,
    ArrayComparison,
    BooleanTest,
    Call,
    DistinctFrom,
    Expr,
    Function,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    RowConstruct,
    SubqueryKind,
    Truth,
    conjunction,
)
from gpudb.optimizer.binder import coercion, expressions, sql_functions, subqueries
from gpudb.optimizer.binder.scope import Scope
from gpudb.optimizer.binder.state import positioned
from gpudb.optimizer.parser import position, start_position
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

_ROW_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
_STRICT_FORM = {"<=": "<", ">=": ">"}
_PATTERN_OPERATORS: dict[tuple[type[exp.Expression], bool], str] = {
    (exp.Like, False): "~~",
    (exp.Like, True): "!~~",
    (exp.ILike, False): "~~*",
    (exp.ILike, True): "!~~*",
    (exp.SimilarTo, False): "~",
    (exp.SimilarTo, True): "!~",
}


def apply(binder: Binder, name: str, left: Expr | None, right: Expr, at: int) -> Expr:
    """The operator over bound operands; ``left`` None for a prefix operator.

    Raises UndefinedFunction (42883), AmbiguousFunction (42725), 0A000 without implementation.
    """
    left_source = 0 if left is None else left.type.oid
    expanded = _expanded(binder, name, left, right, at)
    if expanded is not None:
        return expanded
    function, left_oid, right_oid, result = _resolved(
        binder, name, left_source, right.type.oid, at
    )
    operand = coercion.coerce(binder, right, right_oid, Context.IMPLICIT, at)
    if left is None:
        return Call(function, (operand,), SqlType(result), at)
    first = coercion.coerce(binder, left, left_oid, Context.IMPLICIT, at)
    return Call(function, (first, operand), SqlType(result), at)


def _expanded(
    binder: Binder, name: str, left: Expr | None, right: Expr, at: int
) -> Expr | None:
    """The body of an operator's function in language SQL; None for other operators."""
    left_oid = 0 if left is None else left.type.oid
    found = binder.resolver.find_operator(name, left_oid, right.type.oid)
    if found is None or found.function.body is None:
        return None
    if binder.context.is_implemented(found.function.key):
        return None
    operand = coercion.coerce(binder, right, found.right, Context.IMPLICIT, at)
    arguments: tuple[Expr, ...] = (operand,)
    if left is not None:
        first = coercion.coerce(binder, left, found.left, Context.IMPLICIT, at)
        arguments = (first, operand)
    types = tuple(argument.type.oid for argument in arguments)
    call = ResolvedFunction(found.function, types, found.result, tuple(range(len(types))))
    return sql_functions.expand(binder, call, arguments, at)


def _resolved(
    binder: Binder, name: str, left: int, right: int, at: int
) -> tuple[Function, int, int, int]:
    try:
        found = binder.resolver.operator(name, left, right)
    except errors.SqlError as error:
        raise positioned(error, at) from None
    signature = found.function
    if not binder.context.is_implemented(signature.key):
        from gpudb.optimizer.binder import calls

        calls.require_implemented(binder, signature, at)
    oids = (found.left, found.right) if left else (found.right,)
    function = binder.function(signature, oids, found.result, operator=name)
    return function, found.left, found.right, found.result


def equality(binder: Binder, oid: int, at: int = 0) -> Function:
    """The equality of a type. Raises UndefinedFunction (42883) as grouping does."""
    found = binder.resolver.find_operator("=", oid, oid)
    if found is None:
        raise errors.UndefinedFunction(
            f"could not identify an equality operator for type {binder.types.name(oid)}",
            position=at,
        )
    return binder.function(
        found.function, (found.left, found.right), found.result, operator="="
    )


def require_equality(binder: Binder, expression: Expr, at: int) -> None:
    """42883 when values of the type cannot be grouped."""
    if isinstance(expression, RowConstruct):
        return
    equality(binder, expression.type.oid, at)


def require_order(binder: Binder, expression: Expr, at: int) -> None:
    """42883 when values of the type cannot be sorted."""
    oid = expression.type.oid
    if isinstance(expression, RowConstruct) or binder.resolver.find_operator("<", oid, oid):
        return
    raise errors.UndefinedFunction(
        f"could not identify an ordering operator for type {binder.types.name(oid)}",
        hint="Use an explicit ordering operator or modify the query.",
        position=at,
    )


# Binding of operator nodes


def bind_operator(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    name = node.args["operator"]
    left_node, right_node = node.args.get("this"), node.args["expression"]
    at = position(node)
    if isinstance(right_node, exp.Any | exp.All):
        return _quantified(binder, scope, name, left_node, right_node, at)
    if isinstance(left_node, exp.Tuple):
        if isinstance(right_node, exp.Subquery):
            return subqueries.bind_row_comparison(binder, scope, name, left_node, right_node, at)
        if isinstance(right_node, exp.Tuple):
            rows = [row_items(binder, scope, side) for side in (left_node, right_node)]
            return compare_rows(binder, name, rows[0], rows[1], at)
    left_value = None if left_node is None else expressions.bind(binder, scope, left_node)
    right = expressions.bind(binder, scope, right_node)
    if isinstance(left_value, RowConstruct) and isinstance(right, RowConstruct):
        return compare_rows(binder, name, left_value.items, right.items, at)
    return apply(binder, name, left_value, right, at)


def row_items(binder: Binder, scope: Scope, node: exp.Expression) -> tuple[Expr, ...]:
    """The bound items of a row; ``t.*`` is expanded."""
    return tuple(expressions.bind_list(binder, scope, node.args["expressions"]))


def compare_rows(
    binder: Binder, name: str, left: Sequence[Expr], right: Sequence[Expr], at: int
) -> Expr:
    """A comparison of row values as scalar logic."""
    if len(left) != len(right):
        raise errors.SyntaxError("unequal number of entries in row expressions", position=at)
    if not left:
        raise errors.FeatureNotSupported("cannot compare rows of zero length", position=at)
    if name == "!=":
        name = "<>"
    if name not in _ROW_OPERATORS and len(left) > 1:
        raise errors.FeatureNotSupported(
            f"could not determine interpretation of row comparison operator {name}",
            hint="Row comparison operators must be associated with btree operator families.",
            position=at,
        )
    if name in ("=", "<>") or len(left) == 1:
        parts = tuple(
            _compare_items(binder, name, a, b, at) for a, b in zip(left, right, strict=True)
        )
        if len(parts) == 1:
            return parts[0]
        return And(parts) if name == "=" else Or(parts)
    return _lexicographic(binder, name, left, right, at)


def _compare_items(binder: Binder, name: str, left: Expr, right: Expr, at: int) -> Expr:
    if isinstance(left, RowConstruct) and isinstance(right, RowConstruct):
        return compare_rows(binder, name, left.items, right.items, at)
    found = apply(binder, name, left, right, at)
    if found.type.oid != t.BOOL:
        raise errors.DatatypeMismatch(
            "row comparison operator must yield type boolean, not type"
            f" {binder.types.name(found.type.oid)}",
            position=at,
        )
    return found


def _lexicographic(
    binder: Binder, name: str, left: Sequence[Expr], right: Sequence[Expr], at: int
) -> Expr:
    if len(left) == 1:
        return _compare_items(binder, name, left[0], right[0], at)
    strict = _compare_items(binder, _STRICT_FORM.get(name, name), left[0], right[0], at)
    equal = _compare_items(binder, "=", left[0], right[0], at)
    return Or((strict, And((equal, _lexicographic(binder, name, left[1:], right[1:], at)))))


def _quantified(
    binder: Binder,
    scope: Scope,
    name: str,
    left_node: exp.Expression | None,
    right_node: exp.Expression,
    at: int,
) -> Expr:
    """``value operator ANY | ALL (array or subquery)``"""
    assert left_node is not None
    is_any = isinstance(right_node, exp.Any)
    operand = right_node.args["this"]
    if isinstance(operand, exp.Subquery):
        operand = operand.args["this"]
    if isinstance(operand, subqueries.QUERIES):
        kind = SubqueryKind.ANY if is_any else SubqueryKind.ALL
        return subqueries.bind_quantified(binder, scope, (name, kind), left_node, operand, at)
    left = expressions.bind(binder, scope, left_node)
    array = expressions.bind(binder, scope, operand)
    return compare_array(binder, name, left, array, is_any=is_any, at=at)


def compare_array(
    binder: Binder, name: str, left: Expr, array: Expr, *, is_any: bool, at: int
) -> Expr:
    """``left operator ANY | ALL (array)``; an unknown array takes the left side's type."""
    array_oid = array.type.oid
    if array_oid == t.UNKNOWN:
        element = t.UNKNOWN
    else:
        element = binder.types.subscript_element(array_oid)
        if not element:
            raise errors.WrongObjectType(
                "op ANY/ALL (array) requires array on right side", position=at
            )
    function, left_oid, right_oid, result = _resolved(
        binder, name, left.type.oid, element, at
    )
    if result != t.BOOL:
        raise errors.WrongObjectType(
            "op ANY/ALL (array) requires operator to yield boolean", position=at
        )
    if right_oid in t.POLYMORPHIC:
        target = array_oid
    else:
        target = binder.types.array(right_oid)
        if not target:
            raise errors.UndefinedObject(
                f"could not find array type for data type {binder.types.name(right_oid)}",
                position=at,
            )
    return ArrayComparison(
        coercion.coerce(binder, left, left_oid, Context.IMPLICIT, at),
        coercion.coerce(binder, array, target, Context.IMPLICIT, at),
        function,
        is_any,
    )


# Patterns, ranges, lists


def bind_pattern(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    """LIKE, ILIKE, SIMILAR TO with their negations and ESCAPE."""
    negated = bool(node.args.get("negated"))
    name = _PATTERN_OPERATORS[type(node), negated]
    at = position(node)
    left_node, pattern_node = node.args["this"], node.args["expression"]
    if isinstance(pattern_node, exp.Any | exp.All):
        return _quantified(binder, scope, name, left_node, pattern_node, at)
    left = expressions.bind(binder, scope, left_node)
    pattern = expressions.bind(binder, scope, pattern_node)
    escape_node = node.args.get("escape")
    is_similar = isinstance(node, exp.SimilarTo)
    if escape_node is not None or is_similar:
        from gpudb.optimizer.binder import calls

        arguments = [pattern]
        if escape_node is not None:
            arguments.append(expressions.bind(binder, scope, escape_node))
        helper = "similar_to_escape" if is_similar else "like_escape"
        pattern = calls.apply(binder, helper, arguments, at)
    return apply(binder, name, left, pattern, at)


def bind_between(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    at = position(node)
    value_node = node.args["this"]
    low_node, high_node = node.args["low"], node.args["high"]
    if isinstance(value_node, exp.Tuple):
        rows = [row_items(binder, scope, n) for n in (value_node, low_node, high_node)]

        def compare(name: str, left: int, right: int) -> Expr:
            return compare_rows(binder, name, rows[left], rows[right], at)
    else:
        values = [expressions.bind(binder, scope, n) for n in (value_node, low_node, high_node)]

        def compare(name: str, left: int, right: int) -> Expr:
            return apply(binder, name, values[left], values[right], at)

    def within(low: int, high: int) -> Expr:
        return And((compare(">=", 0, low), compare("<=", 0, high)))

    def outside(low: int, high: int) -> Expr:
        return Or((compare("<", 0, low), compare(">", 0, high)))

    if node.args.get("negated"):
        if node.args.get("symmetric"):
            return And((outside(1, 2), outside(2, 1)))
        return outside(1, 2)
    if node.args.get("symmetric"):
        return Or((within(1, 2), within(2, 1)))
    return within(1, 2)


def bind_in(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    """IN over a list or a subquery; NOT IN is its negation."""
    at = position(node)
    query = node.args.get("query")
    if query is not None:
        found = subqueries.bind_quantified(
            binder, scope, ("=", SubqueryKind.ANY), node.args["this"], query, at
        )
    else:
        found = _in_list(binder, scope, node.args["this"], node.args["expressions"], at)
    return Not(found) if node.args.get("negated") else found


def _in_list(
    binder: Binder,
    scope: Scope,
    left_node: exp.Expression,
    item_nodes: list[exp.Expression],
    at: int,
) -> Expr:
    left = expressions.bind(binder, scope, left_node)
    items = [expressions.bind(binder, scope, item) for item in item_nodes]
    if isinstance(left, RowConstruct):
        tests = []
        for item in items:
            if not isinstance(item, RowConstruct):
                tests.append(apply(binder, "=", left, item, at))
                continue
            tests.append(compare_rows(binder, "=", left.items, item.items, at))
        return tests[0] if len(tests) == 1 else Or(tuple(tests))
    constants = [item for item in items if not binder.references(item)]
    unified: set[int] = set()
    common = 0
    if len(constants) > 1:
        common = binder.types.common([left.type.oid, *(c.type.oid for c in constants)])
        if common and binder.types.array(common):
            unified = {id(c) for c in constants}
    parts: dict[tuple[str, int], tuple[Function, Expr, list[Expr]]] = {}
    rest: list[Expr] = []
    for item in items:
        value = item
        if id(item) in unified:
            value = coercion.coerce(binder, item, common, Context.IMPLICIT, at)
        test = apply(binder, "=", left, value, at)
        if not isinstance(test, Call) or test.type.oid != t.BOOL:
            rest.append(coercion.boolean(binder, test, "IN", at))
            continue
        first, second = test.arguments
        key = (test.function.key, first.type.oid)
        known = parts.get(key)
        if known is None or known[1] != first:
            parts[key] = (test.function, first, [second])
        else:
            known[2].append(second)
    for function, first, seconds in parts.values():
        if len(seconds) == 1:
            rest.append(Call(function, (first, seconds[0]), t.BOOLEAN, at))
        else:
            rest.append(InList(first, tuple(seconds), function))
    return rest[0] if len(rest) == 1 else Or(tuple(rest))


# IS tests


def bind_is(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    """IS [NOT] NULL, TRUE, FALSE, UNKNOWN, ISNULL, NOTNULL."""
    test = node.args["test"]
    negated = bool(node.args.get("negated"))
    value = expressions.bind(binder, scope, node.args["this"])
    if test == "null":
        return null_test(binder, value, negated=negated)
    what = f"IS {'NOT ' if negated else ''}{test.upper()}"
    condition = coercion.boolean(binder, value, what, start_position(node.args["this"]))
    return BooleanTest(condition, Truth(test.upper()), negated)


def null_test(binder: Binder, value: Expr, *, negated: bool) -> Expr:
    """IS [NOT] NULL; a row is (not) null when all its fields are."""
    if isinstance(value, RowConstruct):
        return conjunction(tuple(IsNull(item, negated) for item in value.items))
    return IsNull(coercion.settled(binder, value), negated)


def bind_distinct(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    """IS [NOT] DISTINCT FROM"""
    negated = isinstance(node, exp.NullSafeEQ)
    at = position(node)
    left = expressions.bind(binder, scope, node.args["this"])
    right = expressions.bind(binder, scope, node.args["expression"])
    if isinstance(left, RowConstruct) and isinstance(right, RowConstruct):
        if len(left.items) != len(right.items):
            raise errors.SyntaxError(
                "unequal number of entries in row expressions", position=at
            )
        parts = tuple(
            distinct(binder, a, b, negated=False, at=at)
            for a, b in zip(left.items, right.items, strict=True)
        )
        found: Expr = Literal(False, t.BOOLEAN) if not parts else Or(parts)
        return Not(found) if negated else found
    return distinct(binder, left, right, negated=negated, at=at)


def distinct(binder: Binder, left: Expr, right: Expr, *, negated: bool, at: int) -> Expr:
    """The null-safe comparison of two values."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Literal) and one.value is None and one.type.oid == t.UNKNOWN:
            return null_test(binder, other, negated=not negated)
    function, left_oid, right_oid, result = _resolved(
        binder, "=", left.type.oid, right.type.oid, at
    )
    if result != t.BOOL:
        raise errors.DatatypeMismatch(
            "IS DISTINCT FROM requires = operator to yield boolean", position=at
        )
    return DistinctFrom(
        function,
        coercion.coerce(binder, left, left_oid, Context.IMPLICIT, at),
        coercion.coerce(binder, right, right_oid, Context.IMPLICIT, at),
        negated,
    )
