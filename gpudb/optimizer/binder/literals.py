"""Constants: from text to host values, folded while binding as PostgreSQL's input functions do."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog import types as data_types
from gpudb.catalog.types import numeric
from gpudb.catalog.types.base import DataType
from gpudb.expr import Expr, Literal
from gpudb.optimizer.parser import position
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

_INT4_LIMIT = 2**31
_INT8_LIMIT = 2**63
_INT2_LIMIT = 2**15
_LIMITS = {t.INT2: _INT2_LIMIT, t.INT4: _INT4_LIMIT, t.INT8: _INT8_LIMIT}


def data_type(binder: Binder, oid: int) -> DataType:
    """The type's record; parsing with one that has no implementation raises 0A000."""
    return data_types.get(oid, binder.snapshot)


def bind_literal(binder: Binder, node: exp.Expression) -> Expr:
    """A number with its type, or an unknown literal that its place will give a type."""
    text: str = node.args["this"]
    if node.args["is_string"]:
        return binder.at(Literal(text, t.UNKNOWN_TYPE), position(node))
    return binder.at(number(text), position(node))


def number(text: str) -> Literal:
    """The value and type of a numeric constant: int4, int8 or numeric by its size."""
    if text.lstrip("-").isdigit():
        value = int(text)
        if -_INT4_LIMIT <= value < _INT4_LIMIT:
            return Literal(value, t.INTEGER)
        if -_INT8_LIMIT <= value < _INT8_LIMIT:
            return Literal(value, t.BIGINT)
    return Literal(numeric.parse_numeric(text), t.NUMERIC_TYPE)


def from_text(binder: Binder, text: str, target: SqlType, position_: int) -> Literal:
    """The constant that ``text`` denotes in a type; the typmod counts for intervals only."""
    oid, typmod = binder.types.base_and_typmod(target.oid, target.typmod)
    record = data_type(binder, oid)
    try:
        value = record.parse(
            text, typmod if oid == t.INTERVAL else -1, binder.context.type_context
        )
    except errors.SqlError as error:
        if not error.position:
            error.position = position_
        raise
    return Literal(value, SqlType(oid, typmod if oid == t.INTERVAL else -1))


def with_typmod(
    binder: Binder, literal: Literal, typmod: int, *, is_explicit: bool
) -> Literal:
    """The constant coerced to a length, precision or scale."""
    value = literal.value
    if value is not None:
        record = data_type(binder, literal.type.oid)
        value = record.apply_typmod(value, typmod, is_explicit=is_explicit)
    return Literal(value, SqlType(literal.type.oid, typmod))


def converted_number(literal: Literal, target: int) -> Literal | None:
    """A numeric constant in another numeric type where that is exact and cheap."""
    value, source = literal.value, literal.type.oid
    if value is None:
        return Literal(None, SqlType(target))
    if source in t.INTEGERS:
        if target in _LIMITS:
            limit = _LIMITS[target]
            return Literal(value, SqlType(target)) if -limit <= value < limit else None
        if target == t.NUMERIC:
            return Literal(Decimal(value), t.NUMERIC_TYPE)
        if target == t.FLOAT8:
            return Literal(float(value), t.DOUBLE)
        if target == t.OID and 0 <= value < 2**32:
            return Literal(value, SqlType(t.OID))
    if source == t.NUMERIC and target == t.FLOAT8 and value.is_finite():
        found = float(value)
        is_normal = not value or 1e-300 < abs(found) < 1e300
        return Literal(found, t.DOUBLE) if is_normal else None
    return None
