"""Function calls: arguments, resolution, casts written as calls, set-returning calls.

Aggregates and window calls go on to their own modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog import resolution
from gpudb.catalog.resolution import ResolvedFunction
from gpudb.catalog.signatures import Signature
from gpudb.catalog.type_system import Context
from gpudb.expr import ArrayConstruct, Call, ColumnRef, Expr
from gpudb.optimizer import logical, parser
from gpudb.optimizer.binder import (
    aggregates,
    coercion,
    composites,
    expressions,
    sql_functions,
    windows,
)
from gpudb.optimizer.binder.scope import Clause, Scope
from gpudb.optimizer.binder.state import positioned
from gpudb.optimizer.parser import function_name, position
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

SETS_HINT = (
    "You might be able to move the set-returning function into a LATERAL FROM item."
)
_MISPLACED_ORDER_HINT = (
    "No aggregate function matches the given name and argument types. Perhaps you misplaced"
    " ORDER BY; ORDER BY must appear after all regular arguments of the aggregate."
)
_SET_CLAUSES = frozenset(
    (Clause.TARGET, Clause.ORDER_BY, Clause.GROUP_BY, Clause.DISTINCT_ON)
)


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A resolved call before it becomes an expression; ``arguments`` in parameter order."""

    node: exp.Expression
    resolved: ResolvedFunction
    arguments: tuple[Expr, ...]
    is_variadic: bool

    @property
    def name(self) -> str:
        return self.resolved.signature.name


def bind_call(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    """A call of any kind."""
    return _bind(binder, scope, node, in_from=False)


def bind_table_call(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    """A call at the top level of FROM, which may return a set."""
    return _bind(binder, scope, node, in_from=True)


def _bind(binder: Binder, scope: Scope, node: exp.Expression, *, in_from: bool) -> Expr:
    at = position(node)
    if node.args.get("within_group") is not None:
        return aggregates.bind_ordered_set(binder, scope, node)
    values, names = _arguments(binder, scope, node)
    _, name = function_name(node)
    is_variadic = bool(node.args.get("variadic"))
    try:
        found = _resolve(binder, node, values, names)
    except errors.UndefinedFunction as error:
        if node.args.get("order"):
            error.hint = _MISPLACED_ORDER_HINT
        raise
    if found is None:
        projected = composites.field(binder, values[0], name)
        assert projected is not None
        return projected
    if found.cast_to:
        return coercion.explicit(binder, values[0], SqlType(found.cast_to), at)
    call = BoundCall(node, found, place_arguments(binder, found, values, at), is_variadic)
    kind = found.signature.kind
    if kind == "p":
        raise errors.WrongObjectType(
            f"{found.signature.name}({binder.types.names(found.types)}) is a procedure",
            hint="To call a procedure, use CALL.",
            position=at,
        )
    if kind == "a":
        if node.args.get("over") is not None:
            return windows.bind_window_call(binder, scope, call)
        return aggregates.bind_aggregate(binder, scope, call)
    if kind == "w":
        if node.args.get("over") is None:
            raise errors.WrongObjectType(
                f"window function {name} requires an OVER clause", position=at
            )
        return windows.bind_window_call(binder, scope, call)
    _check_plain(node, name, at)
    value = make(binder, call.resolved, call.arguments, at, is_variadic=is_variadic)
    if found.signature.returns_set and not in_from:
        return _register_set(binder, scope, value, name, at)
    return value


def _arguments(
    binder: Binder, scope: Scope, node: exp.Expression
) -> tuple[tuple[Expr, ...], tuple[str, ...]]:
    """The bound arguments and the names of the last ones."""
    values: list[Expr] = []
    names: list[str] = []
    nodes = node.args["expressions"]
    resolution.check_count(nodes)
    for item in nodes:
        if isinstance(item, exp.Kwarg):
            name = item.args["this"]
            if name in names:
                raise errors.SyntaxError(
                    f'argument name "{name}" used more than once', position=position(item)
                )
            names.append(name)
            item = item.args["expression"]
        elif names:
            raise errors.SyntaxError(
                "positional argument cannot follow named argument", position=position(item)
            )
        values.append(expressions.bind(binder, scope, item))
    return tuple(values), tuple(names)


def _resolve(
    binder: Binder,
    node: exp.Expression,
    values: tuple[Expr, ...],
    names: tuple[str, ...],
) -> ResolvedFunction | None:
    """The function; None when the call is a field of its one row argument."""
    at = position(node)
    schema, name = function_name(node)
    is_variadic = bool(node.args.get("variadic"))
    oids = tuple(value.type.oid for value in values)
    try:
        return binder.resolver.function(
            name, oids, schema=schema, argument_names=names, is_variadic=is_variadic
        )
    except errors.UndefinedFunction as error:
        if len(values) == 1 and not schema and composites.field(binder, values[0], name):
            return None
        raise positioned(error, at) from None
    except errors.SqlError as error:
        raise positioned(error, at) from None


def place_arguments(
    binder: Binder, found: ResolvedFunction, values: Sequence[Expr], at: int
) -> tuple[Expr, ...]:
    """The arguments in parameter order, converted, defaults filled in, VARIADIC packed."""
    placed: list[Expr] = []
    first_default = len(found.sources) - len(found.signature.defaults)
    for number, (source, oid) in enumerate(zip(found.sources, found.types, strict=True)):
        if source is None:
            text = found.signature.defaults[number - first_default]
            value = expressions.bind(binder, Scope(), parser.parse_expression(text))
        else:
            value = values[source]
        position_ = binder.position(value) or at
        placed.append(coercion.coerce(binder, value, oid, Context.IMPLICIT, position_))
    if found.packed:
        fixed = len(placed) - found.packed
        element = found.types[-1]
        array = ArrayConstruct(tuple(placed[fixed:]), SqlType(binder.types.array(element)))
        placed[fixed:] = [array]
    return tuple(placed)


def _check_plain(node: exp.Expression, name: str, at: int) -> None:
    """42809 for what only aggregates may have."""
    for key, text in (
        ("star", f"{name}(*) specified, but {name} is not an aggregate function"),
        ("distinct", f"DISTINCT specified, but {name} is not an aggregate function"),
        ("order", f"ORDER BY specified, but {name} is not an aggregate function"),
        ("filter", f"FILTER specified, but {name} is not an aggregate function"),
        (
            "over",
            f"OVER specified, but {name} is not a window function nor an aggregate function",
        ),
    ):
        if node.args.get(key):
            raise errors.WrongObjectType(text, position=at)


def make(
    binder: Binder,
    found: ResolvedFunction,
    arguments: tuple[Expr, ...],
    at: int,
    *,
    is_variadic: bool = False,
) -> Expr:
    """The call of a plain function; functions in language SQL are expanded."""
    signature = found.signature
    if signature.body is not None and not binder.context.is_implemented(signature.key):
        return sql_functions.expand(binder, found, arguments, at)
    require_implemented(binder, signature, at)
    oids = tuple(argument.type.oid for argument in arguments)
    function = binder.function(signature, oids, found.result, is_variadic=is_variadic)
    if signature.outputs and found.result == t.RECORD:
        binder.record_fields[signature.oid] = output_fields(found)
    elif len(signature.outputs) == 1:
        binder.single_outputs[signature.oid] = signature.outputs[0][0]
    return Call(function, arguments, SqlType(found.result), at)


def output_fields(found: ResolvedFunction) -> tuple[tuple[str, SqlType], ...]:
    """Names and types of the OUT columns, polymorphic ones taken from the arguments."""
    element = next(
        (
            actual
            for actual, declared in zip(found.types, found.signature.arguments, strict=False)
            if declared in t.POLYMORPHIC
        ),
        0,
    )
    fields = []
    for number, (name, oid) in enumerate(found.signature.outputs, 1):
        actual = oid
        if oid in (t.ANYELEMENT, t.ANYARRAY) and element:
            actual = _ELEMENTS.get(element, element) if oid == t.ANYELEMENT else element
        fields.append((name or f"column{number}", SqlType(actual)))
    return tuple(fields)


_ELEMENTS = {
    t.INT2VECTOR: t.INT2, t.OIDVECTOR: t.OID, t.INT4_ARRAY: t.INT4, t.INT2_ARRAY: t.INT2,
    t.INT8_ARRAY: t.INT8, t.TEXT_ARRAY: t.TEXT, t.OID_ARRAY: t.OID, t.NAME_ARRAY: t.NAME,
}  # fmt: skip


def require_implemented(binder: Binder, signature: Signature, at: int) -> None:
    """0A000 for a function that has no implementation."""
    if signature.is_user_defined or binder.context.is_implemented(signature.key):
        return
    types = binder.types.names(signature.arguments)
    raise errors.FeatureNotSupported(
        f"function {signature.name}({types}) is not supported", position=at
    )


def apply(
    binder: Binder, name: str, values: Sequence[Expr], at: int, schema: str = "pg_catalog"
) -> Expr:
    """A plain function over bound arguments."""
    oids = tuple(value.type.oid for value in values)
    try:
        found = binder.resolver.function(name, oids, schema=schema)
    except errors.SqlError as error:
        raise positioned(error, at) from None
    return make(binder, found, place_arguments(binder, found, values, at), at)


def attribute_call(binder: Binder, scope: Scope, name: str, row: Expr) -> Expr | None:
    """``row.name`` as the function ``name(row)``, None when there is none."""
    del scope
    try:
        found = binder.resolver.function(name, (row.type.oid,))
    except errors.SqlError:
        return None
    if found.cast_to or found.signature.kind != "f":
        return None
    return make(binder, found, place_arguments(binder, found, (row,), 0), 0)


# Set-returning calls


def _register_set(binder: Binder, scope: Scope, call: Expr, name: str, at: int) -> Expr:
    """The column that a set-returning call of the target list yields."""
    if scope.no_sets_in:
        raise errors.FeatureNotSupported(
            f"set-returning functions are not allowed in {scope.no_sets_in}",
            hint=SETS_HINT,
            position=at,
        )
    if scope.clause is Clause.FROM_FUNCTION:
        raise errors.FeatureNotSupported(
            "set-returning functions must appear at top level of FROM", position=at
        )
    if scope.clause not in _SET_CLAUSES:
        where = scope.clause.value or "this context"
        raise errors.FeatureNotSupported(
            f"set-returning functions are not allowed in {where}", position=at
        )
    known = scope.set_calls.get(call)
    if known is None:
        field = binder.field(name, call.type)
        binder.own(scope, field.id, name)
        known = scope.set_calls[call] = logical.Assignment(field, call)
        scope.set_ids[field.id] = at
    if isinstance(call, Call) and call.type.oid == t.RECORD:
        fields = binder.record_fields.get(call.function.oid)
        if fields is not None:
            binder.set_fields[known.field.id] = fields
    return binder.at(ColumnRef(known.field.id, known.field.type, name), at)
