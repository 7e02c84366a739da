"""Aggregate calls: to which query level they belong, their clauses, and GROUPING.

An aggregate in an expression becomes the reference to a column of its level's Aggregate node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog import signatures
from gpudb.catalog.type_system import Context
from gpudb.expr import AggregateCall, Cast, ColumnRef, Expr, Grouping, SortKey
from gpudb.optimizer import logical
from gpudb.optimizer.binder import calls, coercion, columns, expressions, operators, ordering
from gpudb.optimizer.binder.scope import Clause, Scope
from gpudb.optimizer.binder.state import positioned
from gpudb.optimizer.parser import function_name, position, start_position
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.calls import BoundCall
    from gpudb.optimizer.binder.state import Binder

_ALLOWED = frozenset(
    (
        Clause.OTHER,
        Clause.TARGET,
        Clause.HAVING,
        Clause.ORDER_BY,
        Clause.DISTINCT_ON,
        Clause.PARTITION_BY,
        Clause.WINDOW_ORDER,
    )
)


def bind_aggregate(binder: Binder, scope: Scope, call: BoundCall) -> Expr:
    """A plain aggregate; its value is a column of the level it belongs to."""
    node, at = call.node, position(call.node)
    signature = call.resolved.signature
    kind, _ = signatures.aggregate_kinds().get(signature.oid, ("n", 0))
    if kind != "n":
        raise errors.WrongObjectType(
            f"WITHIN GROUP is required for ordered-set aggregate {call.name}", position=at
        )
    check_star(call, at)
    calls.require_implemented(binder, signature, at)
    is_distinct = bool(node.args.get("distinct"))
    order_by = _order_by(binder, scope, call, is_distinct)
    if is_distinct:
        for argument in call.arguments:
            operators.require_equality(binder, argument, at)
    condition = bind_filter(binder, scope, node)
    function = binder.function(
        signature,
        tuple(argument.type.oid for argument in call.arguments),
        call.resolved.result,
        is_variadic=call.is_variadic,
    )
    found = AggregateCall(
        function,
        call.arguments,
        SqlType(call.resolved.result),
        is_distinct,
        condition,
        order_by,
        (),
        bool(node.args.get("star")),
        at,
    )
    return register(binder, scope, found, at)


def check_star(call: BoundCall, at: int) -> None:
    """42809 for ``name(*)`` with arguments needed and ``count()`` without."""
    has_star = bool(call.node.args.get("star"))
    if not call.arguments and not has_star and call.resolved.signature.kind == "a":
        raise errors.WrongObjectType(
            f"{call.name}(*) must be used to call a parameterless aggregate function",
            position=at,
        )


def bind_filter(binder: Binder, scope: Scope, node: exp.Expression) -> Expr | None:
    filter_node = node.args.get("filter")
    if filter_node is None:
        return None
    with binder.clause(scope, Clause.FILTER):
        return expressions.condition(binder, scope, filter_node, "FILTER")


def _order_by(
    binder: Binder, scope: Scope, call: BoundCall, is_distinct: bool
) -> tuple[SortKey, ...]:
    nodes = call.node.args.get("order")
    if not nodes:
        return ()
    keys = []
    for item in nodes:
        value = coercion.settled(binder, expressions.bind(binder, scope, item.args["this"]))
        argument = _same_argument(value, call.arguments)
        if is_distinct and argument is None:
            raise errors.InvalidColumnReference(
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in"
                " argument list",
                position=start_position(item.args["this"]),
            )
        keys.append(ordering.sort_key(binder, value if argument is None else argument, item))
    return tuple(keys)


def _same_argument(value: Expr, arguments: tuple[Expr, ...]) -> Expr | None:
    for argument in arguments:
        if argument == value:
            return argument
        if (
            isinstance(argument, Cast)
            and not argument.is_explicit
            and argument.argument == value
        ):
            return argument
    return None


# Ordered-set aggregates


def bind_ordered_set(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    """``name(direct ...) WITHIN GROUP (ORDER BY ...)``"""
    at = position(node)
    schema, name = function_name(node)
    direct = [expressions.bind(binder, scope, item) for item in node.args["expressions"]]
    order_nodes = node.args["within_group"]
    ordered = [expressions.bind(binder, scope, item.args["this"]) for item in order_nodes]
    if node.args.get("over") is not None:
        raise errors.FeatureNotSupported(
            f"OVER is not supported for ordered-set aggregate {name}", position=at
        )
    values = [*direct, *ordered]
    oids = tuple(value.type.oid for value in values)
    try:
        found = binder.resolver.function(name, oids, schema=schema)
    except errors.SqlError as error:
        raise positioned(error, at) from None
    signature = found.signature
    kind, direct_count = signatures.aggregate_kinds().get(signature.oid, ("", 0))
    if kind not in ("o", "h"):
        if signature.kind == "a":
            text = f"{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
        else:
            text = f"WITHIN GROUP specified, but {name} is not an aggregate function"
        raise errors.WrongObjectType(text, position=at)
    calls.require_implemented(binder, signature, at)
    if kind == "h":
        direct, ordered = _hypothetical(binder, name, direct, ordered, node)
    else:
        if len(direct) != direct_count:
            shown = f"{name}({binder.types.names(oids)})"
            raise errors.UndefinedFunction(
                f"function {shown} does not exist",
                hint=f"There is an ordered-set aggregate {name}, but it requires"
                f" {direct_count} direct arguments, not {len(direct)}.",
                position=at,
            )
        placed = calls.place_arguments(binder, found, values, at)
        direct, ordered = list(placed[: len(direct)]), list(placed[len(direct) :])
    keys = tuple(
        ordering.sort_key(binder, value, item)
        for value, item in zip(ordered, order_nodes, strict=True)
    )
    arguments = tuple(key.expression for key in keys)
    function = binder.function(
        signature, tuple(v.type.oid for v in (*direct, *arguments)), found.result
    )
    aggregate = AggregateCall(
        function,
        arguments,
        SqlType(found.result),
        filter=bind_filter(binder, scope, node),
        order_by=keys,
        direct=tuple(direct),
        position=at,
    )
    return register(binder, scope, aggregate, at)


def _hypothetical(
    binder: Binder, name: str, direct: list[Expr], ordered: list[Expr], node: exp.Expression
) -> tuple[list[Expr], list[Expr]]:
    """The hypothetical row and the sorted columns in common types, pair by pair."""
    at = position(node)
    if len(direct) != len(ordered):
        raise errors.UndefinedFunction(
            f"function {name} does not exist",
            hint=f"To use the hypothetical-set aggregate {name}, the number of hypothetical"
            f" direct arguments (here {len(direct)}) must match the number of ordering"
            f" columns (here {len(ordered)}).",
            position=at,
        )
    new_direct, new_ordered = [], []
    for number, (value, column) in enumerate(zip(direct, ordered, strict=True)):
        places = [at, start_position(node.args["expressions"][number])]
        target = coercion.common_type(binder, [column, value], "WITHIN GROUP", places)
        new_direct.append(coercion.coerce(binder, value, target.oid, Context.IMPLICIT, at))
        new_ordered.append(coercion.coerce(binder, column, target.oid, Context.IMPLICIT, at))
    return new_direct, new_ordered


# Levels


def register(
    binder: Binder, scope: Scope, call: AggregateCall | Grouping, at: int
) -> Expr:
    """The column that stands for an aggregate at its level."""
    ids = binder.references(call)
    level = level_of(binder, scope, ids)
    if isinstance(call, AggregateCall):
        inner: set[int] = set()
        for part in (*call.arguments, *call.direct, *_filter_part(call), *_keys(call)):
            inner |= binder.references(part)
        _check_nesting(level, inner)
    check_clause(level, at, is_grouping=isinstance(call, Grouping))
    known = level.aggregates.get(call)
    if known is None:
        name = call.function.name if isinstance(call, AggregateCall) else "grouping"
        field = binder.field(name, call.type)
        binder.own(level, field.id, name)
        known = level.aggregates[call] = logical.AggregateItem(field, call)
        level.aggregate_ids[field.id] = at
    found = ColumnRef(known.field.id, known.field.type, known.field.name)
    if level is not scope:
        columns.note_outer(binder, scope, level, found)
    return binder.at(found, at)


def _filter_part(call: AggregateCall) -> tuple[Expr, ...]:
    return () if call.filter is None else (call.filter,)


def _keys(call: AggregateCall) -> tuple[Expr, ...]:
    return tuple(key.expression for key in call.order_by)


def level_of(binder: Binder, scope: Scope, ids: Iterable[int]) -> Scope:
    """The innermost level whose columns are read; the current one for none."""
    owners = {id(owner) for owner in map(binder.owner, ids) if owner is not None}
    level: Scope | None = scope
    while owners and level is not None:
        if id(level) in owners:
            return level
        level = level.parent
    return scope


def _check_nesting(level: Scope, ids: set[int]) -> None:
    nested = ids & level.aggregate_ids.keys()
    if nested:
        raise errors.GroupingError(
            "aggregate function calls cannot be nested",
            position=level.aggregate_ids[min(nested)],
        )
    nested = ids & level.window_ids.keys()
    if nested:
        raise errors.GroupingError(
            "aggregate function calls cannot contain window function calls",
            position=level.window_ids[min(nested)],
        )
    nested = ids & level.set_ids.keys()
    if nested:
        raise errors.FeatureNotSupported(
            "aggregate function calls cannot contain set-returning function calls",
            hint=calls.SETS_HINT,
            position=level.set_ids[min(nested)],
        )


def check_clause(level: Scope, at: int, *, is_grouping: bool) -> None:
    """42803 where the level's current clause takes no aggregates."""
    clause = level.clause
    if clause in _ALLOWED:
        return
    what = "grouping operations" if is_grouping else "aggregate functions"
    raise errors.GroupingError(
        f"{what} are not allowed in {clause.value}", position=at
    )


def bind_grouping(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    """``GROUPING(...)``; that its arguments are keys is checked when the groups are known."""
    nodes = node.args["expressions"]
    if len(nodes) > 31:
        raise errors.TooManyArguments(
            "GROUPING must have fewer than 32 arguments", position=position(node)
        )
    items = tuple(expressions.bind(binder, scope, item) for item in nodes)
    at = start_position(nodes[0]) if nodes else position(node)
    return register(binder, scope, Grouping(items, t.INTEGER), at)
