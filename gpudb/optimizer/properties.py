"""Facts about expressions that rules and the planner rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gpudb import expr
from gpudb.expr import Expr, Volatility, references
from gpudb.sqltype import (
    BPCHAR,
    CHAR,
    FLOATS,
    INTEGERS,
    NAME,
    NUMERIC,
    TEXT,
    VARCHAR,
    numeric_precision_scale,
)
from gpudb.tree import Node, children, map_children, walk

_INTEGER_DIGITS = 19
_SAFE_DIGITS = 30_000
"""PostgreSQL's numeric overflows at 131072 digits before the point: not with operands below."""
_BOUNDED_ARITHMETIC = frozenset({"numeric_add", "numeric_sub", "numeric_mul", "numeric_uminus"})
_BOUNDED_AGGREGATES = frozenset({"sum(numeric)", "avg(numeric)", "sum(int8)", "sum(int2)"})
_TEXT_TARGETS = frozenset({TEXT, VARCHAR, BPCHAR, NAME, CHAR})
_INEXACT_EQUALITY = frozenset({600, 601, 602, 603, 604, 628, 718})
"""Geometric types: their = compares areas or lengths with a tolerance."""


def _literal_value(node: Expr) -> Any:
    while isinstance(node, expr.Cast):
        node = node.argument
    return node.value if isinstance(node, expr.Literal) else None


def _like_is_safe(call: expr.Call) -> bool:
    pattern = _literal_value(call.arguments[1])
    if not isinstance(pattern, str):
        return False
    return (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 0


def _substring_is_safe(call: expr.Call) -> bool:
    start, length = (_literal_value(item) for item in call.arguments[1:3])
    return isinstance(start, int) and isinstance(length, int) and 0 <= length < 1 << 30


def _unit_is_safe(call: expr.Call) -> bool:
    return _literal_value(call.arguments[0]) in (
        "year",
        "month",
        "day",
        "quarter",
        "week",
    )


def _divisor_is_safe(call: expr.Call) -> bool:
    divisor = _literal_value(call.arguments[1])
    return isinstance(divisor, int) and divisor not in (0, -1)


_SAFE: dict[str, Callable[[expr.Call], bool]] = {
    "textlike": _like_is_safe,
    "textnlike": _like_is_safe,
    "bpcharlike": _like_is_safe,
    "bpcharnlike": _like_is_safe,
    "namelike": _like_is_safe,
    "namenlike": _like_is_safe,
    "texticlike": _like_is_safe,
    "texticnlike": _like_is_safe,
    "text_substr": _substring_is_safe,
    "extract_date": _unit_is_safe,
    "extract_timestamp": _unit_is_safe,
    "timestamp_part": _unit_is_safe,
    "int2div": _divisor_is_safe,
    "int4div": _divisor_is_safe,
    "int8div": _divisor_is_safe,
    "int2mod": _divisor_is_safe,
    "int4mod": _divisor_is_safe,
    "int8mod": _divisor_is_safe,
}
"""Fallible functions that cannot raise for some constant arguments, by key."""


def _numeric_digits(node: Expr) -> int | None:
    """A bound of a number's decimal digits, from declared precisions; None if there is none."""
    while isinstance(node, expr.Cast) and node.type.typmod < 0:
        node = node.argument
    if node.type.oid in INTEGERS:
        return _INTEGER_DIGITS
    if node.type.oid != NUMERIC:
        return None
    if node.type.typmod >= 0:
        precision, scale = numeric_precision_scale(node.type.typmod)
        return precision + abs(scale)
    if isinstance(node, expr.Literal):
        return len(str(node.value))
    if isinstance(node, expr.Call) and node.function.key in _BOUNDED_ARITHMETIC:
        parts = [_numeric_digits(item) for item in node.arguments]
        known = [item for item in parts if item is not None]
        return sum(known) + 1 if len(known) == len(parts) else None
    return None


def _arithmetic_is_safe(call: expr.Call | expr.AggregateCall | expr.WindowCall) -> bool:
    digits = [_numeric_digits(item) for item in call.arguments]
    return all(item is not None and item < _SAFE_DIGITS for item in digits)


def _cast_may_raise(cast: expr.Cast) -> bool:
    if cast.is_text_io:
        return cast.type.oid not in _TEXT_TARGETS
    if cast.function is not None:
        return cast.function.is_fallible
    return (
        cast.type.typmod >= 0
        and cast.type != cast.argument.type
        and not (cast.is_explicit and cast.type.oid in _TEXT_TARGETS)
    )


def _node_may_raise(node: Expr) -> bool:
    if isinstance(node, expr.Call):
        if not node.function.is_fallible:
            return False
        if node.function.key in _BOUNDED_ARITHMETIC and _arithmetic_is_safe(node):
            return False
        safe = _SAFE.get(node.function.key)
        return safe is None or not safe(node)
    if isinstance(node, expr.Cast):
        return _cast_may_raise(node)
    if isinstance(node, expr.AggregateCall | expr.WindowCall):
        if node.function.key in _BOUNDED_AGGREGATES and _arithmetic_is_safe(node):
            return False
        return node.function.is_fallible
    if isinstance(node, expr.ArrayComparison):
        return node.function.is_fallible
    return isinstance(node, expr.Subquery)


def may_raise(node: Node) -> bool:
    """Whether evaluating the expression (or the expressions of a part or plan) can raise."""
    if isinstance(node, Expr):
        return _node_may_raise(node) or any(
            may_raise(child) for child in children(node, Expr)
        )
    return any(may_raise(child) for child in children(node, Expr))


def is_volatile(node: Node) -> bool:
    """Whether two evaluations in one statement may differ."""
    if isinstance(node, expr.Call) and node.function.volatility is Volatility.VOLATILE:
        return True
    if isinstance(node, expr.Subquery):
        return any(
            is_volatile(part)
            for plan in walk(node.plan, Node)
            for part in children(plan, Expr)
        )
    return any(is_volatile(child) for child in children(node, Expr))


def is_movable(node: Expr) -> bool:
    """Whether it may be evaluated on more rows, or more often, than written."""
    return not may_raise(node) and not is_volatile(node)


def returns_set(node: Expr) -> bool:
    """Whether a set-returning call is inside."""
    return any(
        isinstance(part, expr.Call) and part.function.returns_set
        for part in walk(node, Expr)
    )


def substitute(node: Any, mapping: Mapping[int, Expr]) -> Any:
    """The expression (or part) with the columns of ``mapping`` replaced."""
    if not mapping:
        return node
    if isinstance(node, expr.ColumnRef):
        return mapping.get(node.id, node)
    if isinstance(node, expr.Literal):
        return node
    return map_children(node, Expr, lambda child: substitute(child, mapping))


def is_true(node: Expr) -> bool:
    return isinstance(node, expr.Literal) and node.value is True


def is_false_or_null(node: Expr) -> bool:
    """A condition that no row passes."""
    return isinstance(node, expr.Literal) and node.value in (False, None)


def conjoin(parts: Iterable[Expr]) -> Expr:
    """The conjunction of ``parts`` without TRUE and without repetitions, in order."""
    kept: dict[Expr, None] = {}
    for part in parts:
        for item in expr.conjuncts(part):
            if not is_true(item):
                kept.setdefault(item)
    return expr.conjunction(tuple(kept))


def split(condition: Expr) -> list[Expr]:
    """The conjuncts of a condition; none for TRUE."""
    return [part for part in expr.conjuncts(condition) if not is_true(part)]


def equality_sides(node: Expr) -> tuple[Expr, Expr] | None:
    """Both sides of a hashable equality of values of one type (or of two integer types)."""
    if not isinstance(node, expr.Call) or node.function.operator != "=":
        return None
    if len(node.arguments) != 2 or not _is_exact(node.function):
        return None
    return node.arguments[0], node.arguments[1]


def _is_exact(function: expr.Function) -> bool:
    """Whether equality by the function is that of hashing and grouping."""
    left, right = function.argument_oids
    if left in _INEXACT_EQUALITY:
        return False
    return left == right or (left in INTEGERS and right in INTEGERS)


def equality_between(
    node: Expr, left_ids: frozenset[int], right_ids: frozenset[int]
) -> tuple[Expr, Expr, bool] | None:
    """(left side, right side, null_safe) of an equality whose sides read one input each."""
    sides: tuple[Expr, Expr] | None
    null_safe = False
    if isinstance(node, expr.DistinctFrom):
        if not node.is_negated or not _is_exact(node.equality):
            return None
        sides, null_safe = (node.left, node.right), True
    else:
        sides = equality_sides(node)
    if sides is None:
        return None
    first, second = references(sides[0]), references(sides[1])
    if not first or not second:
        return None
    if first <= left_ids and second <= right_ids:
        return sides[0], sides[1], null_safe
    if first <= right_ids and second <= left_ids:
        return sides[1], sides[0], null_safe
    return None


def is_null_when(node: Expr, ids: frozenset[int]) -> bool:
    """Whether the value is surely NULL on rows where all columns of ``ids`` are NULL."""
    match node:
        case expr.ColumnRef():
            return node.id in ids
        case expr.Literal():
            return node.value is None
        case expr.Call():
            return node.function.is_strict and any(
                is_null_when(item, ids) for item in node.arguments
            )
        case expr.Cast() | expr.Not() | expr.FieldSelect():
            return is_null_when(node.argument, ids)
        case expr.InList():
            return is_null_when(node.argument, ids)
        case expr.ArrayComparison():
            return node.function.is_strict and is_null_when(node.argument, ids)
        case expr.Coalesce() | expr.Extreme() | expr.And() | expr.Or():
            return all(is_null_when(item, ids) for item in node.arguments)
        case expr.Case():
            return _case_is_null_when(node, ids)
        case _:
            return False


def _case_is_null_when(node: expr.Case, ids: frozenset[int]) -> bool:
    results = [arm.result for arm in node.arms if not rejects_nulls(arm.condition, ids)]
    if node.default is not None:
        results.append(node.default)
    return all(is_null_when(result, ids) for result in results)


def rejects_nulls(node: Expr, ids: frozenset[int]) -> bool:
    """Whether the condition is surely not true on rows where all columns of ``ids`` are NULL."""
    match node:
        case expr.And():
            return any(rejects_nulls(item, ids) for item in node.arguments)
        case expr.Or():
            return all(rejects_nulls(item, ids) for item in node.arguments)
        case expr.Literal():
            return node.value is not True
        case expr.IsNull():
            return node.is_negated and is_null_when(node.argument, ids)
        case expr.BooleanTest():
            return _test_rejects_nulls(node, ids)
        case expr.DistinctFrom():
            return _distinct_rejects_nulls(node, ids)
        case _:
            return is_null_when(node, ids)


def _test_rejects_nulls(node: expr.BooleanTest, ids: frozenset[int]) -> bool:
    if node.truth is expr.Truth.TRUE and not node.is_negated:
        return rejects_nulls(node.argument, ids)
    passes_null = (node.truth is expr.Truth.UNKNOWN) != node.is_negated
    return not passes_null and is_null_when(node.argument, ids)


def _distinct_rejects_nulls(node: expr.DistinctFrom, ids: frozenset[int]) -> bool:
    other = node.right if is_null_when(node.left, ids) else node.left
    if not is_null_when(node.left, ids) and not is_null_when(node.right, ids):
        return False
    if node.is_negated:
        return isinstance(other, expr.Literal) and other.value is not None
    return isinstance(other, expr.Literal) and other.value is None


def is_exact_number(oid: int) -> bool:
    return oid in INTEGERS or oid == NUMERIC


def is_number(oid: int) -> bool:
    return is_exact_number(oid) or oid in FLOATS
