"""Window calls: OVER, named windows, frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog import signatures
from gpudb.catalog.type_system import Context
from gpudb.expr import (
    DEFAULT_FRAME,
    BoundKind,
    ColumnRef,
    Expr,
    Frame,
    FrameBound,
    FrameExclusion,
    FrameUnit,
    SortKey,
    WindowCall,
)
from gpudb.optimizer import logical
from gpudb.optimizer.binder import aggregates, calls, coercion, expressions, operators, ordering
from gpudb.optimizer.binder.scope import Clause, Scope
from gpudb.optimizer.parser import position, start_position
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.calls import BoundCall
    from gpudb.optimizer.binder.state import Binder

_ALLOWED = frozenset((Clause.OTHER, Clause.TARGET, Clause.ORDER_BY, Clause.DISTINCT_ON))
_BOUNDS = {kind.value.lower(): kind for kind in BoundKind}
_FRAME_CLAUSES = {
    FrameUnit.ROWS: Clause.FRAME_ROWS,
    FrameUnit.RANGE: Clause.FRAME_RANGE,
    FrameUnit.GROUPS: Clause.FRAME_GROUPS,
}
_INTERVAL_OFFSETS = frozenset(
    (t.DATE, t.TIME, t.TIMETZ, t.TIMESTAMP, t.TIMESTAMPTZ, t.INTERVAL)
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A window: what OVER (...) or the WINDOW clause says."""

    partition_by: tuple[Expr, ...]
    order_by: tuple[SortKey, ...]
    frame: Frame
    has_frame: bool


def bind_window_call(binder: Binder, scope: Scope, call: BoundCall) -> Expr:
    """A window function or aggregate with OVER; its value is a column of Window."""
    node, at = call.node, position(call.node)
    signature = call.resolved.signature
    is_aggregate = signature.kind == "a"
    _check(call, at, is_aggregate)
    calls.require_implemented(binder, signature, at)
    if scope.clause not in _ALLOWED:
        where = scope.clause.value
        raise errors.WindowingError(
            f"window functions are not allowed in {where}", position=at
        )
    condition = aggregates.bind_filter(binder, scope, node)
    ids: set[int] = set()
    for part in call.arguments if condition is None else (*call.arguments, condition):
        ids |= binder.references(part)
    nested = ids & scope.window_ids.keys()
    if nested:
        raise errors.WindowingError(
            "window function calls cannot be nested", position=scope.window_ids[min(nested)]
        )
    nested = ids & scope.set_ids.keys()
    if nested:
        raise errors.FeatureNotSupported(
            "window function calls cannot contain set-returning function calls",
            hint=calls.SETS_HINT,
            position=scope.set_ids[min(nested)],
        )
    definition = _over(binder, scope, node.args["over"])
    function = binder.function(
        signature, tuple(a.type.oid for a in call.arguments), call.resolved.result,
        is_variadic=call.is_variadic,
    )  # fmt: skip
    found = WindowCall(
        function,
        call.arguments,
        SqlType(call.resolved.result),
        definition.partition_by,
        definition.order_by,
        definition.frame,
        is_aggregate,
        condition,
        bool(node.args.get("star")),
        at,
    )
    field = binder.field(call.name, found.type)
    binder.own(scope, field.id, call.name)
    scope.window_items.append(logical.WindowItem(field, found))
    scope.window_ids[field.id] = at
    return binder.at(ColumnRef(field.id, field.type, field.name), at)


def _check(call: BoundCall, at: int, is_aggregate: bool) -> None:
    node = call.node
    kind, _ = signatures.aggregate_kinds().get(call.resolved.signature.oid, ("n", 0))
    if kind != "n":
        raise errors.FeatureNotSupported(
            f"OVER is not supported for ordered-set aggregate {call.name}", position=at
        )
    aggregates.check_star(call, at)
    if node.args.get("distinct"):
        raise errors.FeatureNotSupported(
            "DISTINCT is not implemented for window functions", position=at
        )
    if node.args.get("order"):
        raise errors.FeatureNotSupported(
            "aggregate ORDER BY is not implemented for window functions", position=at
        )
    if node.args.get("star") and not is_aggregate:
        raise errors.WrongObjectType(
            f"{call.name}(*) specified, but {call.name} is not an aggregate function",
            position=at,
        )
    if node.args.get("filter") is not None and not is_aggregate:
        raise errors.FeatureNotSupported(
            "FILTER is not implemented for non-aggregate window functions", position=at
        )


def _over(binder: Binder, scope: Scope, node: exp.Expression) -> Definition:
    if node.args.get("is_reference"):
        return _named(binder, scope, node.args["alias"], position(node))
    return define(binder, scope, node)


def _named(binder: Binder, scope: Scope, name: str, at: int) -> Definition:
    found = scope.windows.get(name)
    if found is None:
        raise errors.UndefinedObject(f'window "{name}" does not exist', position=at)
    if isinstance(found, Definition):
        return found
    definition = define(binder, scope, found)
    scope.windows[name] = definition
    return definition


def define(binder: Binder, scope: Scope, node: exp.Expression) -> Definition:
    """A window specification. Raises WindowingError (42P20)."""
    at = position(node)
    base_name = node.args.get("base")
    base = None if base_name is None else _named(binder, scope, base_name, at)
    with binder.clause(scope, Clause.PARTITION_BY):
        partition = tuple(
            _partition_key(binder, scope, item) for item in node.args.get("partition_by") or ()
        )
    with binder.clause(scope, Clause.WINDOW_ORDER):
        order = tuple(
            ordering.sort_key(binder, expressions.bind(binder, scope, item.args["this"]), item)
            for item in node.args.get("order") or ()
        )
    spec = node.args.get("spec")
    if base is not None:
        if partition:
            raise errors.WindowingError(
                f'cannot override PARTITION BY clause of window "{base_name}"', position=at
            )
        if order and base.order_by:
            raise errors.WindowingError(
                f'cannot override ORDER BY clause of window "{base_name}"', position=at
            )
        if base.has_frame:
            hint = "" if order or spec is not None else "Omit the parentheses in this OVER clause."
            raise errors.WindowingError(
                f'cannot copy window "{base_name}" because it has a frame clause',
                hint=hint,
                position=at,
            )
        partition, order = base.partition_by, order or base.order_by
    frame = DEFAULT_FRAME if spec is None else _frame(binder, scope, spec, order, at)
    return Definition(partition, order, frame, spec is not None)


def _partition_key(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    value = coercion.settled(binder, expressions.bind(binder, scope, node))
    operators.require_equality(binder, value, start_position(node))
    return value


def _frame(
    binder: Binder, scope: Scope, node: exp.Expression, order: tuple[SortKey, ...], at: int
) -> Frame:
    unit = FrameUnit(node.args["kind"].upper())
    start_kind = _BOUNDS[node.args["start_side"]]
    end_kind = _BOUNDS[node.args["end_side"]]
    has_offset = any(
        kind in (BoundKind.PRECEDING, BoundKind.FOLLOWING) for kind in (start_kind, end_kind)
    )
    if unit is FrameUnit.RANGE and has_offset and len(order) != 1:
        raise errors.WindowingError(
            "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
            position=at,
        )
    if unit is FrameUnit.GROUPS and not order:
        raise errors.WindowingError(
            "GROUPS mode requires an ORDER BY clause", position=at
        )
    start = FrameBound(start_kind, _offset(binder, scope, node.args.get("start"), unit, order))
    end = FrameBound(end_kind, _offset(binder, scope, node.args.get("end"), unit, order))
    exclusion = FrameExclusion((node.args.get("exclude") or "no others").upper())
    return Frame(unit, start, end, exclusion)


def _offset(
    binder: Binder,
    scope: Scope,
    node: exp.Expression | None,
    unit: FrameUnit,
    order: tuple[SortKey, ...],
) -> Expr | None:
    if node is None:
        return None
    at = start_position(node)
    with binder.clause(scope, _FRAME_CLAUSES[unit]):
        value = expressions.bind(binder, scope, node)
    if any(binder.owner(id_) is scope for id_ in binder.references(value)):
        raise errors.InvalidColumnReference(
            f"argument of {unit.value} must not contain variables", position=at
        )
    if unit is not FrameUnit.RANGE:
        return coercion.bigint(binder, value, unit.value, at)
    key = binder.types.base(order[0].expression.type.oid)
    target = _offset_type(key, value.type.oid)
    if not target:
        raise errors.FeatureNotSupported(
            "RANGE with offset PRECEDING/FOLLOWING is not supported for column type"
            f" {binder.types.name(key)}",
            position=at,
        )
    found = coercion.to_type(
        binder, value, SqlType(target), Context.IMPLICIT, at
    )
    if found is None:
        raise errors.FeatureNotSupported(
            "RANGE with offset PRECEDING/FOLLOWING is not supported for column type"
            f" {binder.types.name(key)} and offset type {binder.types.name(value.type.oid)}",
            hint="Cast the offset value to an appropriate type.",
            position=at,
        )
    return found


def _offset_type(key: int, offset: int) -> int:
    """The type of a RANGE offset over a key's type, 0 when there is none."""
    if key in _INTERVAL_OFFSETS:
        return t.INTERVAL
    if key in t.FLOATS:
        return t.FLOAT8
    if key == t.NUMERIC:
        return t.NUMERIC
    if key in t.INTEGERS:
        return offset if offset in t.INTEGERS else key
    return 0
