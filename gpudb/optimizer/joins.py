"""Physical joins: from two planned inputs and a condition to a hash join or a nested loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpudb import expr
from gpudb.expr import (
    DEFAULT_FRAME,
    Expr,
    IsNull,
    Literal,
    WindowCall,
    conjuncts,
    references,
)
from gpudb.optimizer import cost, physical
from gpudb.optimizer.estimate import Estimator
from gpudb.optimizer.functions import ROW_NUMBER
from gpudb.optimizer.logical import Assignment, Field, JoinKind, WindowItem
from gpudb.optimizer.physical import Estimate, Physical
from gpudb.optimizer.properties import conjoin, equality_between, is_true, may_raise
from gpudb.sqltype import BIGINT, BOOLEAN

REDUCERS = frozenset({JoinKind.SEMI, JoinKind.ANTI})
TURNED_ROWS_MIN = 100_000.0
TURNED_RATIO = 8.0
RESIDUAL_MATCH = 0.5
"""Share of matches assumed to pass a condition on top of key equality."""

_KEEPS_LEFT = frozenset({JoinKind.LEFT, JoinKind.FULL, JoinKind.SINGLE})
_ONE_PER_LEFT = frozenset({JoinKind.MARK, JoinKind.SINGLE})
_SWAPPED = {
    JoinKind.INNER: JoinKind.INNER,
    JoinKind.LEFT: JoinKind.RIGHT,
    JoinKind.RIGHT: JoinKind.LEFT,
    JoinKind.FULL: JoinKind.FULL,
}


@dataclass(slots=True)
class Condition:
    """A join condition taken apart: key pairs (left, right, null_safe) and the rest."""

    keys: list[tuple[Expr, Expr, bool]] = field(default_factory=list)
    rest: list[Expr] = field(default_factory=list)
    is_null_aware: bool = False


def ids_of(plan: Physical) -> frozenset[int]:
    return frozenset(item.id for item in plan.fields)


def take_apart(
    condition: Expr, left: frozenset[int], right: frozenset[int]
) -> Condition:
    """Keys and rest of a condition; a fallible key is only taken where there is no other."""
    result, fallible = Condition(), []
    for part in conjuncts(condition):
        if is_true(part):
            continue
        key = equality_between(part, left, right)
        if key is None:
            result.rest.append(part)
        elif may_raise(part):
            fallible.append((part, key))
        else:
            result.keys.append(key)
    if fallible and not result.keys and not result.rest:
        result.keys = [key for _, key in fallible]
    else:
        result.rest.extend(part for part, _ in fallible)
    return result


def take_apart_mark(
    condition: Expr, left: frozenset[int], right: frozenset[int]
) -> Condition | None:
    """Keys and rest of a mark join's three-valued condition; None = only a nested loop is right.

    An equality under IS TRUE never makes the mark NULL; a plain one does where a NULL key could
    have matched, which the hash join does only when all its keys are such and nothing is left.
    """
    certain: list[tuple[Expr, Expr, bool]] = []
    aware: list[tuple[Expr, Expr, bool]] = []
    rest: list[Expr] = []
    originals: list[Expr] = []
    for part in conjuncts(condition):
        if is_true(part):
            continue
        is_tested = (
            isinstance(part, expr.BooleanTest)
            and part.truth is expr.Truth.TRUE
            and not part.is_negated
        )
        inner = part.argument if isinstance(part, expr.BooleanTest) and is_tested else part
        key = None if may_raise(part) else equality_between(inner, left, right)
        if key is None:
            rest.append(part)
        elif is_tested or key[2]:
            certain.append(key)
        else:
            aware.append(key)
            originals.append(part)
    if certain:
        return Condition(certain, originals + rest)
    if aware and not rest:
        return Condition(aware, [], True)
    return None


def _join_rows(
    estimator: Estimator, kind: JoinKind, left: Physical, right: Physical, condition: Condition
) -> float:
    left_rows, right_rows = left.estimate.rows, right.estimate.rows
    if kind in _ONE_PER_LEFT:
        return left_rows
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        share = 1.0 if right_rows >= 1 else right_rows
        for one, other, _ in condition.keys:
            share *= estimator.match_fraction(one, other, left_rows, right_rows)
        if condition.rest:
            share *= RESIDUAL_MATCH
        share = min(max(share, 0.01), 0.99)
        return left_rows * (share if kind is JoinKind.SEMI else 1.0 - share)
    share = key_selectivity(estimator, condition.keys, left_rows, right_rows)
    if condition.rest:
        share *= estimator.selectivity_of_all(condition.rest)
    rows = left_rows * right_rows * share
    if kind in _KEEPS_LEFT:
        rows = max(rows, left_rows)
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        rows = max(rows, right_rows)
    return rows


def key_selectivity(
    estimator: Estimator,
    keys: Sequence[tuple[Expr, Expr, bool]],
    left_rows: float,
    right_rows: float,
) -> float:
    """The share of pairs that agree in all keys; several keys of one side are not independent."""
    if not keys:
        return 1.0
    if len(keys) == 1:
        return estimator.join_selectivity(keys[0][0], keys[0][1], left_rows, right_rows)
    left_distinct = right_distinct = 1.0
    for one, other, _ in keys:
        left_distinct *= estimator.distinct(one, left_rows)
        right_distinct *= estimator.distinct(other, right_rows)
    left_distinct = min(left_distinct, max(left_rows, 1.0))
    right_distinct = min(right_distinct, max(right_rows, 1.0))
    return 1.0 / max(min(left_distinct, right_distinct), 1.0)


def join(
    estimator: Estimator,
    kind: JoinKind,
    left: Physical,
    right: Physical,
    condition: Expr,
    mark: Field | None = None,
    *,
    rows: float | None = None,
) -> Physical:
    """The physical join of two planned inputs; its output order of columns is its own."""
    left_ids, right_ids = ids_of(left), ids_of(right)
    if kind is JoinKind.MARK:
        parts = take_apart_mark(condition, left_ids, right_ids)
    else:
        parts = take_apart(condition, left_ids, right_ids)
    if parts is None or not parts.keys:
        return _nested_loop(estimator, kind, left, right, condition, mark=mark, rows=rows)
    if rows is None:
        rows = _join_rows(estimator, kind, left, right, parts)
    if kind in REDUCERS and is_turned(left.estimate.rows, right.estimate.rows, parts):
        return _turned(estimator, kind, left, right, parts, rows=rows)
    return _hash_join(estimator, kind, left, right, parts, mark=mark, rows=rows)


def is_turned(left_rows: float, right_rows: float, parts: Condition) -> bool:
    """Whether a semi or anti join should rather build its left side.

    Without a residual a large right side is only a set of keys, cheap to build; with one, its
    rows have to be kept by key, and a dynamic filter from the left side would remove most.
    """
    is_heavy = bool(parts.rest) and right_rows >= TURNED_ROWS_MIN
    return is_heavy and right_rows > TURNED_RATIO * left_rows


def reducer_cost(left_rows: float, right_rows: float, rows: float, parts: Condition) -> float:
    """The cost of a semi or anti join, whichever side it builds."""
    if not parts.keys:
        return cost.nested_loop(left_rows, right_rows, rows)
    if is_turned(left_rows, right_rows, parts):
        return cost.hash_join(right_rows, left_rows, 2 * rows) + cost.aggregate(rows, rows, 0)
    return cost.hash_join(left_rows, right_rows, rows)


def _turned(
    estimator: Estimator,
    kind: JoinKind,
    left: Physical,
    right: Physical,
    parts: Condition,
    *,
    rows: float,
) -> Physical:
    """A semi or anti join by an inner or right join that builds the left side.

    SEMI: left rows are numbered, joined, and each kept once. ANTI: the left rows that the outer
    join pads, told by a column of the right side that is never NULL.
    """
    width = estimator.row_width(left.fields)
    if kind is JoinKind.SEMI:
        number = estimator.new_column("number", BIGINT, left.estimate.rows)
        call = WindowCall(ROW_NUMBER, (), BIGINT, (), (), DEFAULT_FRAME)
        numbered = physical.Window(left, (), (), (WindowItem(number, call),), left.estimate)
        joined = _hash_join(
            estimator, JoinKind.INNER, numbered, right, parts, mark=None, rows=2 * rows
        )
        keys = tuple(Assignment(item, item.ref) for item in (number, *left.fields))
        total = joined.estimate.cost + cost.aggregate(2 * rows, rows, 0)
        grouped = physical.HashAggregate(
            joined, keys, (), estimate=Estimate(rows, rows * (width + 8), total)
        )
        return with_columns(grouped, left.fields)
    match = estimator.new_column("match", BOOLEAN, 1.0)
    used = references(conjoin([*parts.rest, *(key[1] for key in parts.keys)]))
    passed = tuple(Assignment(item, item.ref) for item in right.fields if item.id in used)
    marked = physical.Project(
        right, (*passed, Assignment(match, Literal(True, BOOLEAN))), right.estimate
    )
    joined = _hash_join(estimator, JoinKind.LEFT, left, marked, parts, mark=None, rows=2 * rows)
    estimate = Estimate(rows, rows * width, joined.estimate.cost)
    return with_columns(
        physical.Filter(joined, (IsNull(match.ref),), estimate), left.fields
    )


def _estimate(estimator: Estimator, rows: float, own: float, *sides: Physical) -> Estimate:
    width = sum(estimator.row_width(side.fields) for side in sides)
    return Estimate(rows, rows * width, own + sum(side.estimate.cost for side in sides))


def _hash_join(
    estimator: Estimator,
    kind: JoinKind,
    left: Physical,
    right: Physical,
    parts: Condition,
    *,
    mark: Field | None,
    rows: float,
) -> Physical:
    keys = parts.keys
    build_left = kind in _SWAPPED and left.estimate.rows < right.estimate.rows
    probe, build = (right, left) if build_left else (left, right)
    own = cost.hash_join(probe.estimate.rows, build.estimate.rows, rows)
    null_safe = tuple(key[2] for key in keys)
    left_keys, right_keys = tuple(key[0] for key in keys), tuple(key[1] for key in keys)
    return physical.HashJoin(
        kind=_SWAPPED[kind] if build_left else kind,
        probe=probe,
        build=build,
        probe_keys=right_keys if build_left else left_keys,
        build_keys=left_keys if build_left else right_keys,
        residual=conjoin(parts.rest) if parts.rest else None,
        null_safe=null_safe,
        mark=mark,
        is_null_aware=parts.is_null_aware,
        is_build_left=build_left,
        estimate=_estimate(estimator, rows, own, left, right),
    )


def _nested_loop(
    estimator: Estimator,
    kind: JoinKind,
    left: Physical,
    right: Physical,
    condition: Expr,
    *,
    mark: Field | None,
    rows: float | None,
) -> Physical:
    parts = Condition(rest=[part for part in conjuncts(condition) if not is_true(part)])
    if rows is None:
        rows = _join_rows(estimator, kind, left, right, parts)
    build_left = kind in _SWAPPED and left.estimate.rows < right.estimate.rows
    probe, build = (right, left) if build_left else (left, right)
    own = cost.nested_loop(probe.estimate.rows, build.estimate.rows, rows)
    return physical.NestedLoopJoin(
        kind=_SWAPPED[kind] if build_left else kind,
        probe=probe,
        build=build,
        condition=condition,
        mark=mark,
        is_build_left=build_left,
        estimate=_estimate(estimator, rows, own, left, right),
    )


def with_columns(plan: Physical, fields: Sequence[Field]) -> Physical:
    """``plan`` yielding exactly ``fields``, in order."""
    have = plan.fields
    if len(have) == len(fields) and all(
        one.id == other.id for one, other in zip(have, fields, strict=True)
    ):
        return plan
    assignments = tuple(Assignment(item, item.ref) for item in fields)
    return physical.Project(plan, assignments, plan.estimate)
