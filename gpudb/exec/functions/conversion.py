"""Casts between numbers, booleans and strings; conversions through text; type modifiers.

``to_text``, ``from_text`` and ``with_modifier`` are what a Cast without a function does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gpudb import errors, sqltype
from gpudb.catalog import types
from gpudb.catalog.functions import scalar
from gpudb.catalog.types.floats import to_single
from gpudb.catalog.types.numeric import parse_numeric
from gpudb.catalog.types.strings import clip_name, padded
from gpudb.column import (
    Column,
    boolean_column,
    float_column,
    integer_column,
    integers,
    text_column,
    to_values,
)
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.arithmetic import BY_OID, bounds_of
from gpudb.exec.functions.rowwise import evaluate, is_text_layout, relabelled, rowwise
from gpudb.kernels import decimal as decimals
from gpudb.kernels import parse
from gpudb.kernels.decimal_math import round_to, unscaled
from gpudb.kernels.key_words import trimmed_lengths
from gpudb.layout import Kind
from gpudb.sqltype import BOOLEAN, SqlType


def _valid_only(bad: Tensor, column: Column) -> Tensor:
    return bad if column.valid is None else bad & column.valid


# --- integers ---


def _integer_cast(oid: int) -> Callable[[EvaluationContext, Column], Column]:
    result = BY_OID[oid]

    def body(context: EvaluationContext, column: Column) -> Column:
        lo, hi = bounds_of(column)
        if lo < result.lo or hi > result.hi:
            values = integers(column)
            bad = (values < result.lo) | (values > result.hi)
            context.report_where(_valid_only(bad, column), result.error)
        return replace(
            column, type=SqlType(oid), lo=max(lo, result.lo), hi=min(hi, result.hi)
        )

    return body


for _keys, _oid in (
    (("i4toi2", "int82"), sqltype.INT2), (("i2toi4", "int84"), sqltype.INT4),
    (("int28", "int48", "oidtoi8"), sqltype.INT8),
):
    scalar(*_keys, fallible=_oid != sqltype.INT8)(_integer_cast(_oid))


@scalar("i8tooid", fallible=True)
def int8_to_oid(context: EvaluationContext, column: Column) -> Column:
    values = integers(column)
    bad = (values < 0) | (values >= 2**32)
    context.report_where(
        _valid_only(bad, column), errors.NumericValueOutOfRange("OID out of range")
    )
    return relabelled(column, SqlType(sqltype.OID))


@scalar("int4_bool", examples=(("2::bool", "t"),))
def int4_to_bool(context: EvaluationContext, column: Column) -> Column:
    return boolean_column(BOOLEAN, integers(column) != 0, column.valid)


@scalar("bool_int4", examples=(("true::int4", "1"),))
def bool_to_int4(context: EvaluationContext, column: Column) -> Column:
    values = column.data[0].to(torch.int16)
    return integer_column(SqlType(sqltype.INT4), values, column.valid, lo=0, hi=1)


def _integer_to_float(dtype: torch.dtype, oid: int) -> Callable[..., Column]:
    def body(context: EvaluationContext, column: Column) -> Column:
        return float_column(SqlType(oid), integers(column).to(dtype), column.valid)

    return body


scalar("i2tod", "i4tod", "i8tod")(_integer_to_float(torch.float64, sqltype.FLOAT8))
scalar("i2tof", "i4tof", "i8tof")(_integer_to_float(torch.float32, sqltype.FLOAT4))


def _float_to_integer(oid: int) -> Callable[..., Column]:
    result = BY_OID[oid]

    def body(context: EvaluationContext, column: Column) -> Column:
        values = column.data[0].to(torch.float64).round()
        inside = (values >= float(result.lo)) & (values < -float(result.lo))
        context.report_where(_valid_only(~inside, column), result.error)
        whole = torch.where(inside, values, 0.0).to(torch.int64)
        return integer_column(SqlType(oid), whole, column.valid, lo=result.lo, hi=result.hi)

    return body


scalar("dtoi2", "ftoi2", fallible=True)(_float_to_integer(sqltype.INT2))
scalar("dtoi4", "ftoi4", fallible=True, examples=(("2.5::float8::int4", "2"),))(
    _float_to_integer(sqltype.INT4)
)
scalar("dtoi8", "ftoi8", fallible=True)(_float_to_integer(sqltype.INT8))


@scalar("ftod")
def float4_to_float8(context: EvaluationContext, column: Column) -> Column:
    return float_column(
        SqlType(sqltype.FLOAT8), column.data[0].to(torch.float64), column.valid
    )


@scalar("dtof", fallible=True)
def float8_to_float4(context: EvaluationContext, column: Column) -> Column:
    wide = column.data[0]
    values = wide.to(torch.float32)
    bad = values.isinf() & ~wide.isinf()
    context.report_where(
        _valid_only(bad, column), errors.NumericValueOutOfRange("value out of range: overflow")
    )
    lost = (values == 0) & (wide != 0)
    context.report_where(
        _valid_only(lost, column), errors.NumericValueOutOfRange("value out of range: underflow")
    )
    return float_column(SqlType(sqltype.FLOAT4), values, column.valid)


# --- numeric and floats ---


@rowwise("float8_numeric", examples=(("0.1::float8::numeric", "0.1"),))
def float8_to_numeric(value: float) -> Decimal:
    return parse_numeric(f"{value:.15g}")


@rowwise("float4_numeric")
def float4_to_numeric(value: float) -> Decimal:
    return parse_numeric(f"{value:.6g}")


@scalar("numeric_float8", fallible=True)
def numeric_to_float8(context: EvaluationContext, column: Column) -> Column:
    """Exact for up to 2**53 and scales up to 22 (one correctly rounded division), else by text."""
    if column.layout.kind is Kind.DECIMAL and column.scale <= 22:
        found = decimals.bounds(column)
        if found.lo >= -(2**53) and found.hi <= 2**53:
            values = integers(column).to(torch.float64) / float(10**column.scale)
            return float_column(SqlType(sqltype.FLOAT8), values, column.valid)
    return evaluate(context, _exact_float, (column,), SqlType(sqltype.FLOAT8))


def _exact_float(value: Decimal) -> float:
    found = float(value)
    if math.isinf(found) and value.is_finite():
        raise errors.NumericValueOutOfRange(
            f'"{format(value, "f")}" is out of range for type double precision'
        )
    return found


@rowwise("numeric_float4")
def numeric_to_float4(value: Decimal) -> float:
    found = to_single(float(value))
    if math.isinf(found) and value.is_finite():
        raise errors.NumericValueOutOfRange(
            f'"{format(value, "f")}" is out of range for type real'
        )
    return found


@rowwise("int4_cash", "int8_cash")
def integer_to_money(value: int) -> int:
    return _money(value * 100)


@rowwise("numeric_cash")
def numeric_to_money(value: Decimal) -> int:


    return _money(unscaled(round_to(value, 2)))


@rowwise("cash_numeric")
def money_to_numeric(value: int) -> Decimal:
    return Decimal(value).scaleb(-2)


def _money(cents: int) -> int:
    if not -(2**63) <= cents < 2**63:
        raise errors.NumericValueOutOfRange("bigint out of range")
    return cents


# --- strings ---


@scalar("booltext", examples=(("true::text", "true"),))
def bool_to_text(context: EvaluationContext, column: Column) -> Column:
    return evaluate(
        context, lambda value: "true" if value else "false", (column,), SqlType(sqltype.TEXT)
    )


def _relabel(oid: int) -> Callable[..., Column]:
    def body(context: EvaluationContext, column: Column) -> Column:
        return relabelled(column, SqlType(oid))

    return body


scalar("name_text")(_relabel(sqltype.TEXT))
scalar("name_bpchar")(_relabel(sqltype.BPCHAR))
rowwise("char_text")(lambda value: value)
rowwise("char_bpchar")(lambda value: value)
rowwise("text_name", "bpchar_name")(clip_name)


@rowwise("text_char")
def text_to_char(value: str) -> Any:
    found = types.by_name("char")
    assert found is not None
    return found.parse(value, -1, types.TypeContext())


@rowwise("chartoi4", examples=(("'a'::\"char\"::int4", "97"),))
def char_to_int4(value: str) -> int:
    code = ord(value) if value else 0
    return code - 256 if code > 127 else code


@rowwise("i4tochar")
def int4_to_char(value: int) -> str:
    if not -128 <= value <= 127:
        raise errors.NumericValueOutOfRange('"char" out of range')
    return chr(value % 256) if value else ""


@scalar("rtrim1")
def trim_right(context: EvaluationContext, column: Column) -> Column:
    """Without trailing blanks: rtrim(text), and char(n) to text."""
    if is_text_layout(column):
        starts, lengths, data = entry_buffers(column)
        if not _end_in_blank(starts, lengths, data).any():
            return relabelled(column, SqlType(sqltype.TEXT))
        if column.layout.kind is Kind.TEXT:
            shorter = torch.from_numpy(trimmed_lengths(starts, lengths, data))
            parts = (column.data[0], shorter, column.data[2])
            return replace(column, type=SqlType(sqltype.TEXT), data=parts)
    return evaluate(context, lambda value: value.rstrip(" "), (column,), SqlType(sqltype.TEXT))


def _length_coercion(oid: int) -> Callable[..., Column]:
    def body(
        context: EvaluationContext, column: Column, typmod: Column, explicit: Column
    ) -> Column:
        modifier, is_explicit = int(integers(typmod)[0]), bool(explicit.data[0][0])
        return with_modifier(context, column, SqlType(oid, modifier), is_explicit=is_explicit)

    return body


scalar("varchar", fallible=True)(_length_coercion(sqltype.VARCHAR))
scalar("bpchar", fallible=True)(_length_coercion(sqltype.BPCHAR))
scalar("bit", fallible=True)(_length_coercion(sqltype.BIT))
scalar("varbit", fallible=True)(_length_coercion(sqltype.VARBIT))


def _precision_coercion(oid: int) -> Callable[..., Column]:
    def body(context: EvaluationContext, column: Column, typmod: Column) -> Column:
        return with_modifier(context, column, SqlType(oid, int(integers(typmod)[0])))

    return body


for _key, _name in (
    ("numeric", "numeric"), ("time_scale", "time"), ("timetz_scale", "timetz"),
    ("timestamp_scale", "timestamp"), ("timestamptz_scale", "timestamptz"),
    ("interval_scale", "interval"),
):
    _found = types.by_name(_name)
    assert _found is not None
    scalar(_key, fallible=True)(_precision_coercion(_found.oid))


def with_modifier(
    context: EvaluationContext, column: Column, type_: SqlType, *, is_explicit: bool = True
) -> Column:
    """The column coerced to the modifier of ``type_``; 22001, 22003."""
    if type_.typmod < 0:
        return relabelled(column, type_)
    if type_.oid == sqltype.NUMERIC:
        found = _fit_numeric(context, column, type_)
        if found is not None:
            return found
    data_type = types.get(type_.oid, context.query.snapshot)

    def coerce(value: Any) -> Any:
        return data_type.apply_typmod(value, type_.typmod, is_explicit=is_explicit)

    if type_.oid in sqltype.STRINGS and _fits_already(column, type_):
        return relabelled(column, type_)
    return replace(evaluate(context, coerce, (column,), type_), type=type_)


def _fits_already(column: Column, type_: SqlType) -> bool:
    """Whether no string is longer than the type allows (and char(n) has no trailing blank)."""
    limit = type_.typmod - 4
    if type_.oid not in (sqltype.VARCHAR, sqltype.BPCHAR):
        return False
    starts, lengths, data = entry_buffers(column)
    if not len(lengths):
        return True
    if int(lengths.max()) > limit:
        return False
    return type_.oid == sqltype.VARCHAR or not _end_in_blank(starts, lengths, data).any()


def entry_buffers(
    column: Column,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Starts, lengths and bytes of the rows of a TEXT column, of the entries of a DICTIONARY."""
    if column.layout.kind is Kind.TEXT:
        starts, lengths, data = (buffer.cpu().numpy() for buffer in column.data)
        return starts, lengths, data
    dictionary = column.dictionary
    assert dictionary is not None
    return dictionary.offsets[:-1], np.diff(dictionary.offsets), dictionary.data


def _end_in_blank(
    starts: npt.NDArray[np.int64], lengths: npt.NDArray[Any], data: npt.NDArray[np.uint8]
) -> npt.NDArray[np.bool_]:
    if not len(data):
        return np.zeros(len(lengths), bool)
    last = np.clip(starts + lengths - 1, 0, len(data) - 1)
    return np.asarray((lengths > 0) & (data[last] == ord(" ")))


def _fit_numeric(context: EvaluationContext, column: Column, type_: SqlType) -> Column | None:
    precision, scale = sqltype.numeric_precision_scale(type_.typmod)
    found = decimals.rounded(column, scale, "round")
    if found is None:
        return None
    bounds = decimals.bounds(found)
    limit = 10**precision
    if bounds.lo <= -limit or bounds.hi >= limit:
        values = integers(found)
        power = precision - scale
        error = errors.NumericValueOutOfRange(
            "numeric field overflow",
            detail=f"A field with precision {precision}, scale {scale} must round to an absolute "
            f"value less than {f'10^{power}' if power else '1'}.",
        )
        if limit < 2**63:
            bad = (values <= -limit) | (values >= limit)
            context.report_where(_valid_only(bad, found), error)
    return replace(
        found, type=type_, lo=max(bounds.lo, 1 - limit), hi=min(bounds.hi, limit - 1)
    )


def to_text(context: EvaluationContext, column: Column, type_: SqlType) -> Column:
    """The output text of every value, as a column of the string type ``type_``."""
    oid = column.type.oid
    if oid in sqltype.STRINGS or oid in (sqltype.UNKNOWN, sqltype.CSTRING, sqltype.JSON,
                                         sqltype.JSONB):
        return with_modifier(context, column, type_)
    data_type = types.get(oid, context.query.snapshot)
    settings = context.query.types
    if column.layout.kind is Kind.INT and oid in sqltype.INTEGERS and column.rows > 1:
        texts = np.char.mod("%d", integers(column).cpu().numpy())
        found = text_column(type_, texts.tolist())
        return with_modifier(context, replace(found, valid=column.valid), type_)
    found = evaluate(
        context, lambda value: data_type.format(value, settings), (column,), type_
    )
    return with_modifier(context, found, type_)


def from_text(context: EvaluationContext, column: Column, type_: SqlType) -> Column:
    """The values that strings denote; the type's input errors."""
    if column.layout.kind is Kind.TEXT and column.rows > 1 and parse.is_fast(type_):
        starts, lengths, data = (buffer.cpu().numpy() for buffer in column.data)
        valid = None if column.valid is None else column.valid.cpu().numpy()
        found, problems = parse.parse_column(
            type_, starts, lengths, data, valid, context.query.types
        )
        for row, problem in problems:
            context.report_row(row, problem)
        return found
    data_type = types.get(type_.oid, context.query.snapshot)
    settings = context.query.types
    modifier = type_.typmod if type_.oid == sqltype.INTERVAL else -1
    found = evaluate(
        context, lambda value: data_type.parse(value, modifier, settings), (column,), type_
    )
    return with_modifier(context, found, type_)


def output_text(context: EvaluationContext, column: Column) -> list[str | None]:
    """The output text of each row of a column (char(n) padded), None for NULL."""
    data_type = types.get(column.type.oid, context.query.snapshot)
    settings = context.query.types
    texts = [None if v is None else data_type.format(v, settings) for v in to_values(column)]
    if column.type.oid == sqltype.BPCHAR:
        return [None if t is None else padded(t, column.type.typmod) for t in texts]
    return texts


@rowwise("xid8toxid")
def xid8_to_xid(value: int) -> int:
    return value & 0xFFFFFFFF


@scalar("text_regclass", fallible=True)
def text_to_regclass(context: EvaluationContext, column: Column) -> Column:
    return from_text(context, column, SqlType(sqltype.REGCLASS))


