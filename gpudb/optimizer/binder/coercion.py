"""Conversions of expressions: implicit, assignment and explicit; common types.

The rules are those of PostgreSQL's parse_coerce.c; which conversions exist is catalog.type_system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog import signatures
from gpudb.catalog.objects import DomainType
from gpudb.catalog.type_system import Context, Conversion, Path
from gpudb.expr import Cast, Expr, Function, Literal, Parameter, RowConstruct
from gpudb.optimizer.binder import literals
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

_SAME_HOST_VALUES = (
    frozenset((t.TEXT, t.VARCHAR, t.JSON)),
    t.REG_TYPES | {t.OID},
)


def coerce(
    binder: Binder, expression: Expr, oid: int, context: Context, position: int = 0
) -> Expr:
    """The expression as a value of the type; the conversion must be known to exist."""
    source = expression.type.oid
    if source == oid:
        return expression
    if oid == t.ANY or (oid in t.POLYMORPHIC and source != t.UNKNOWN):
        return settled(binder, expression)
    if binder.types.is_domain(oid):
        return _to_domain(binder, expression, oid, context, position)
    if source == t.UNKNOWN:
        return _from_unknown(binder, expression, oid, position)
    if isinstance(expression, Literal):
        folded = _folded(binder, expression, oid)
        if folded is not None:
            return folded
    conversion = binder.types.conversion(source, oid, context)
    if conversion is None:
        return _composite(binder, expression, oid, context, position)
    is_explicit = context is Context.EXPLICIT
    if conversion.path is Path.RELABEL:
        return Cast(expression, SqlType(oid), is_explicit=is_explicit, position=position)
    function = _cast_function(binder, conversion, source, oid)
    is_text_io = conversion.path is Path.TEXT_IO
    return Cast(expression, SqlType(oid), function, is_explicit, is_text_io, position)


def _cast_function(
    binder: Binder, conversion: Conversion, source: int, oid: int
) -> Function | None:
    if conversion.path is Path.ARRAY:
        source, oid = binder.types.element(source), binder.types.element(oid)
        inner = binder.types.conversion(source, oid, Context.EXPLICIT)
        if inner is None or inner.path is not Path.FUNCTION:
            return None
        conversion = inner
    if not conversion.function:
        return None
    signature = signatures.function_by_oid(conversion.function)
    return binder.function(signature, signature.arguments, signature.result)


def _from_unknown(binder: Binder, expression: Expr, oid: int, position: int) -> Expr:
    if isinstance(expression, Literal):
        if expression.value is None:
            return Literal(None, SqlType(oid))
        at = binder.position(expression) or position
        found = literals.from_text(binder, expression.value, SqlType(oid), at)
        return binder.at(found, at)
    if isinstance(expression, Parameter):
        return binder.infer_parameter(
            expression, oid, binder.position(expression) or position
        )
    return Cast(expression, SqlType(oid), is_text_io=True, position=position)


def _folded(binder: Binder, literal: Literal, oid: int) -> Expr | None:
    if literal.value is None:
        return Literal(None, SqlType(oid))
    for family in _SAME_HOST_VALUES:
        if literal.type.oid in family and oid in family:
            return Literal(literal.value, SqlType(oid))
    found = literals.converted_number(literal, oid)
    return None if found is None else binder.at(found, binder.position(literal))


def _composite(
    binder: Binder, expression: Expr, oid: int, context: Context, position: int
) -> Expr:
    """A row as a value of a composite type, or a composite as a record."""
    if oid in (t.RECORD, t.RECORDARRAY):
        return Cast(expression, SqlType(oid), position=position)
    entry = binder.types.entry(oid)
    relation = binder.snapshot.relation_by_oid(entry.relation) if entry.relation else None
    if relation is None or not isinstance(expression, RowConstruct):
        raise cannot_cast(binder, expression.type.oid, oid, position)
    columns = relation.live_columns()
    if len(columns) != len(expression.items):
        many = "Too many" if len(expression.items) > len(columns) else "Too few"
        error = cannot_cast(binder, t.RECORD, oid, position)
        error.detail = f"Input has {many.lower()} columns."
        raise error
    items = []
    for item, column in zip(expression.items, columns, strict=True):
        target = SqlType(column.type_oid, column.typmod)
        converted = to_type(binder, item, target, context, position)
        if converted is None:
            raise cannot_cast(binder, t.RECORD, oid, position)
        items.append(converted)
    names = tuple(column.name for column in columns)
    return RowConstruct(tuple(items), SqlType(oid), names)


def _to_domain(
    binder: Binder, expression: Expr, oid: int, context: Context, position: int
) -> Expr:
    base, typmod = binder.types.base_and_typmod(oid, -1)
    value = coerce(binder, expression, base, context, position)
    value = with_typmod(binder, value, typmod, is_explicit=context is Context.EXPLICIT)
    _check_unconstrained(binder, oid, position)
    if isinstance(value, Literal):
        return replace(value, type=SqlType(oid))
    return Cast(value, SqlType(oid), is_explicit=context is Context.EXPLICIT, position=position)


def _check_unconstrained(binder: Binder, oid: int, position: int) -> None:
    current = oid
    while isinstance(domain := binder.snapshot.user_type(current), DomainType):
        if domain.not_null or binder.snapshot.domain_constraints(current):
            raise errors.FeatureNotSupported(
                f"values of domain {binder.types.name(oid)} with constraints are not supported",
                position=position,
            )
        current = domain.base_type


def with_typmod(
    binder: Binder, expression: Expr, typmod: int, *, is_explicit: bool, position: int = 0
) -> Expr:
    """The expression fitted to a length, precision or scale; -1 leaves it."""
    if typmod < 0 or expression.type.typmod == typmod:
        return expression
    if isinstance(expression, Literal):
        fitted = literals.with_typmod(binder, expression, typmod, is_explicit=is_explicit)
        return binder.at(fitted, binder.position(expression))
    target = SqlType(expression.type.oid, typmod)
    return Cast(expression, target, is_explicit=is_explicit, position=position)


def to_type(
    binder: Binder, expression: Expr, target: SqlType, context: Context, position: int = 0
) -> Expr | None:
    """The expression as a value of the type with its modifier, None when that is not allowed."""
    if not binder.types.can_coerce(expression.type.oid, target.oid, context):
        return None
    is_explicit = context is Context.EXPLICIT
    if (
        isinstance(expression, Literal)
        and target.oid == t.INTERVAL
        and expression.type.oid == t.UNKNOWN
        and expression.value is not None
    ):
        at = binder.position(expression) or position
        return literals.from_text(binder, expression.value, target, at)
    value = coerce(binder, expression, target.oid, context, position)
    if target.typmod >= 0 and target.oid == t.RECORD:
        return value
    return with_typmod(
        binder, value, target.typmod, is_explicit=is_explicit, position=position
    )


def cannot_cast(binder: Binder, source: int, target: int, position: int) -> errors.SqlError:
    return errors.CannotCoerce(
        f"cannot cast type {binder.types.name(source)} to {binder.types.name(target)}",
        position=position,
    )


def explicit(binder: Binder, expression: Expr, target: SqlType, position: int) -> Expr:
    """``expression::target``. Raises CannotCoerce (42846)."""
    found = to_type(binder, expression, target, Context.EXPLICIT, position)
    if found is None:
        raise cannot_cast(binder, expression.type.oid, target.oid, position)
    return found


def settled(binder: Binder, expression: Expr) -> Expr:
    """The expression; text where its type (or that of a row's field) is still unknown."""
    if isinstance(expression, RowConstruct):
        items = tuple(settled(binder, item) for item in expression.items)
        return replace(expression, items=items)
    if expression.type.oid != t.UNKNOWN:
        return expression
    return coerce(binder, expression, t.TEXT, Context.IMPLICIT, binder.position(expression))


def boolean(binder: Binder, expression: Expr, what: str, position: int) -> Expr:
    """The expression as a condition. Raises DatatypeMismatch (42804) naming ``what``."""
    if expression.type.oid == t.BOOL:
        return expression
    found = to_type(binder, expression, t.BOOLEAN, Context.ASSIGNMENT, position)
    if found is None:
        raise errors.DatatypeMismatch(
            f"argument of {what} must be type boolean, not type"
            f" {binder.types.name(expression.type.oid)}",
            position=binder.position(expression) or position,
        )
    return found


def bigint(binder: Binder, expression: Expr, what: str, position: int) -> Expr:
    """The expression as a bigint, for LIMIT and OFFSET."""
    found = to_type(binder, expression, t.BIGINT, Context.ASSIGNMENT, position)
    if found is None:
        raise errors.DatatypeMismatch(
            f"argument of {what} must be type bigint, not type"
            f" {binder.types.name(expression.type.oid)}",
            position=binder.position(expression) or position,
        )
    return found


def common_type(
    binder: Binder, expressions: Sequence[Expr], what: str, positions: Sequence[int]
) -> SqlType:
    """The type that all values take, with the modifier they agree on; 42804 naming ``what``."""
    oids = [expression.type.oid for expression in expressions]
    try:
        chosen = binder.types.common(oids, what)
    except errors.DatatypeMismatch as error:
        error.position = _mismatch(binder, oids, positions)
        raise
    typmods = {e.type.typmod for e in expressions}
    if len(typmods) == 1 and all(oid == chosen for oid in oids):
        return SqlType(chosen, typmods.pop())
    return SqlType(chosen)


def _mismatch(binder: Binder, oids: Sequence[int], positions: Sequence[int]) -> int:
    known = [i for i, oid in enumerate(oids) if oid != t.UNKNOWN]
    first = binder.types.category(oids[known[0]])
    return next(
        (positions[i] for i in known if binder.types.category(oids[i]) != first), 0
    )


def to_common(
    binder: Binder, expression: Expr, target: SqlType, what: str, position: int
) -> Expr:
    """The expression in the common type (no length coercion). Raises CannotCoerce (42846)."""
    if expression.type == target:
        return expression
    if not binder.types.can_coerce(expression.type.oid, target.oid):
        raise errors.CannotCoerce(
            f"{what} could not convert type {binder.types.name(expression.type.oid)}"
            f" to {binder.types.name(target.oid)}",
            position=position,
        )
    return coerce(binder, expression, target.oid, Context.IMPLICIT, position)
