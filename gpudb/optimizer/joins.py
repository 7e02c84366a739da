"""Physical joins: from two planned inputs and a condition to a hash join or a nested loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpudb import expr
from gpudb.expr import Expr, conjuncts
from gpudb.optimizer import cost, physical
from gpudb.optimizer.estimate import Estimator
from gpudb.optimizer.logical import Assignment, Field, JoinKind
from gpudb.optimizer.physical import Estimate, Physical
from gpudb.optimizer.properties import conjoin, equality_between, is_true, may_raise

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
    return _hash_join(estimator, kind, left, right, parts, mark=mark, rows=rows)


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
