"""Casts, type modifiers and the values of current_user and its like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from gpudb import errors, sqltype
from gpudb.catalog import functions, types
from gpudb.catalog.types.base import DataType
from gpudb.column import (
    Column,
    expand,
    from_values,
    integer_column,
    null_column,
    take,
    text_column,
    to_values,
)
from gpudb.exec.context import QueryContext
from gpudb.exec.evaluation import EvaluationContext
from gpudb.expr import Cast, Function
from gpudb.layout import Kind
from gpudb.sqltype import BOOLEAN, INTEGER, SqlType

_DAY_MICROSECONDS = 86_400_000_000
_MEMO_MAX = 65_536


def data_type(oid: int, context: QueryContext) -> DataType:
    """The type of an OID, user-defined ones from the query's snapshot."""
    if types.is_known(oid):
        return types.get(oid)
    return types.get(oid, context.snapshot)


def cast(context: EvaluationContext, node: Cast, column: Column) -> Column:
    """The column converted as the node says; NULL stays NULL."""
    if column.valid is not None and column.rows == 1 and not bool(column.valid[0]):
        return null_column(node.type, data_type(node.type.oid, context.query).layout)
    if node.function is not None:
        return _by_function(context, node, node.function, column)
    if node.is_text_io:
        return _by_text(context, node, column)
    relabelled = replace(column, type=SqlType(node.type.oid))
    source = node.argument.type
    if node.type.typmod != -1 and (node.type != source or column.rows == 0):
        relabelled = with_typmod(context, relabelled, node.type, is_explicit=node.is_explicit)
    return replace(relabelled, type=node.type)


def _by_function(
    context: EvaluationContext, node: Cast, function: Function, column: Column
) -> Column:
    found = functions.SCALARS.get(function.key)
    if found is None:
        if len(function.argument_oids) > 1:
            plain = replace(column, type=SqlType(node.type.oid))
            done = with_typmod(context, plain, node.type, is_explicit=node.is_explicit)
            return replace(done, type=node.type)
        raise errors.FeatureNotSupported(f"function {function.name} is not supported")
    inner = context.narrowed(column.valid) if function.is_strict else context
    extra = []
    if len(function.argument_oids) > 1:
        extra.append(integer_column(INTEGER, torch.tensor([node.type.typmod])))
    if len(function.argument_oids) > 2:
        extra.append(from_values(BOOLEAN, types.get(sqltype.BOOL).layout, [node.is_explicit]))
    result = found.body(inner, column, *extra)
    if function.is_strict and column.valid is not None:
        wide = expand(result, column.rows) if result.rows == 1 else result
        both = column.valid if wide.valid is None else wide.valid & column.valid
        result = replace(wide, valid=both)
    if node.type.typmod != -1 and not extra:
        result = with_typmod(
            context, replace(result, type=SqlType(node.type.oid)), node.type,
            is_explicit=node.is_explicit,
        )
    return replace(result, type=node.type)


def _by_text(context: EvaluationContext, node: Cast, column: Column) -> Column:
    """Output of the source type, then input of the target, once per distinct value."""
    source = data_type(column.type.oid, context.query)
    target = data_type(node.type.oid, context.query)
    settings = context.query.types
    is_string = node.type.oid in (sqltype.TEXT, sqltype.VARCHAR) and node.type.typmod == -1
    from_string = column.type.oid in (*sqltype.STRINGS, sqltype.UNKNOWN, sqltype.CSTRING)

    def convert(value: Any) -> Any:
        text = value if from_string else source.format(value, settings)
        return text if is_string else target.parse(text, node.type.typmod, settings)

    return map_values(context, column, node.type, convert)


def map_values(
    context: EvaluationContext, column: Column, type_: SqlType, convert: Callable[[Any], Any]
) -> Column:
    """``convert`` of each valid value, errors reported for active rows; NULL stays NULL."""
    kind = data_type(type_.oid, context.query).layout
    dictionary = column.dictionary
    if dictionary is not None and column.rows > len(dictionary) and column.valid is None:
        codes = column.data[0].to(torch.int64)
        entries = replace(column, data=(torch.arange(len(dictionary)),))
        used, first = np.unique(_active_codes(context, codes), return_index=True)
        results: list[Any] = [None] * len(dictionary)
        values = to_values(entries)
        rows = _active_rows(context, len(codes))
        for code, row in zip(used.tolist(), rows[first].tolist(), strict=True):
            results[code] = _converted(context, convert, values[code], row)
        return take(expand(from_values(type_, kind, results), len(results)), codes)
    memo: dict[Any, Any] = {}
    found: list[Any] = []
    for row, value in enumerate(to_values(column)):
        if value is None or not context.is_active(row):
            found.append(None)
            continue
        key = repr(value) if isinstance(value, float) else value
        try:
            known = memo.get(key, memo)
        except TypeError:
            known = key = memo
        if known is memo:
            known = _converted(context, convert, value, row)
            if key is not memo and len(memo) < _MEMO_MAX:
                memo[key] = known
        found.append(known)
    return from_values(type_, kind, found)


def _active_rows(context: EvaluationContext, rows: int) -> Any:
    if context.active is None:
        return np.arange(rows)
    return np.flatnonzero(context.active.expand(rows).numpy())


def _active_codes(context: EvaluationContext, codes: torch.Tensor) -> Any:
    return codes.numpy()[_active_rows(context, codes.shape[0])]


def _converted(
    context: EvaluationContext, convert: Callable[[Any], Any], value: Any, row: int
) -> Any:
    try:
        return convert(value)
    except errors.SqlError as problem:
        context.report_row(row, problem)
        return None


def with_typmod(
    context: EvaluationContext, column: Column, type_: SqlType, *, is_explicit: bool
) -> Column:
    """The column coerced to a length, precision or scale; 22001, 22003 where it can't be."""
    length_keys = {sqltype.NUMERIC: "numeric", sqltype.BPCHAR: "bpchar", sqltype.VARCHAR: "varchar"}
    key = length_keys.get(type_.oid, "")
    body = functions.SCALARS.get(key)
    if body is not None:
        modifier = integer_column(INTEGER, torch.tensor([type_.typmod]))
        extra = [modifier]
        if type_.oid != sqltype.NUMERIC:
            extra.append(from_values(BOOLEAN, types.get(sqltype.BOOL).layout, [is_explicit]))
        result = body.body(context.narrowed(column.valid), column, *extra)
        if column.valid is not None:
            result = expand(result, column.rows)
            both = column.valid if result.valid is None else result.valid & column.valid
            result = replace(result, valid=both)
        return replace(result, type=type_)
    kind = data_type(type_.oid, context.query)
    if column.layout.kind in (Kind.INT, Kind.FLOAT, Kind.BOOL) and type_.oid not in (
        sqltype.TIME, sqltype.TIMESTAMP, sqltype.TIMESTAMPTZ
    ):
        return replace(column, type=type_)

    def convert(value: Any) -> Any:
        return kind.apply_typmod(value, type_.typmod, is_explicit=is_explicit)

    return map_values(context, column, type_, convert)


def session_value(name: str, type_: SqlType, context: QueryContext) -> Any:
    """The host value of current_date, current_user and so on."""
    match name:
        case "current_user" | "current_role" | "user":
            return context.user
        case "session_user":
            return context.session_user
        case "current_catalog":
            return context.database
        case "current_schema":
            return _current_schema(context)
    now = context.now_microseconds
    value: Any
    match name:
        case "current_timestamp":
            value = now
        case "localtimestamp":
            value = _local(now, context)
        case "current_date":
            return _local(now, context) // _DAY_MICROSECONDS
        case "localtime":
            value = _local(now, context) % _DAY_MICROSECONDS
        case "current_time":
            local = _local(now, context)
            value = (local % _DAY_MICROSECONDS, (now - local) // 1_000_000)
        case _:
            raise errors.FeatureNotSupported(f"{name} is not supported")
    if type_.typmod != -1:
        value = types.get(type_.oid).apply_typmod(value, type_.typmod, is_explicit=True)
    return value


def _current_schema(context: QueryContext) -> str | None:
    snapshot = context.snapshot
    for name in context.search_path:
        wanted = context.user if name == "$user" else name
        schema = getattr(snapshot, "schema", None)
        if schema is None or schema(wanted) is not None:
            return wanted
    return None


def _local(microseconds: int, context: QueryContext) -> int:
    """UTC microseconds as wall-clock microseconds in the session's time zone."""
    import datetime

    epoch = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
    moment = epoch + datetime.timedelta(microseconds=microseconds)
    offset = moment.astimezone(context.types.time_zone).utcoffset()
    assert offset is not None
    return microseconds + int(offset.total_seconds()) * 1_000_000
