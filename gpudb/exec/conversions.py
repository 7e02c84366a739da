"""Casts, type modifiers and the values of current_user and its like."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from gpudb import errors, sqltype
from gpudb.catalog import functions, types
from gpudb.catalog.types.base import ArrayValue, DataType
from gpudb.column import (
    Column,
    expand,
    from_values,
    host_column,
    integer_column,
    null_column,
    to_values,
)
from gpudb.exec.context import QueryContext
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions import conversion
from gpudb.expr import Cast, Function, Literal
from gpudb.sqltype import BOOLEAN, INTEGER, SqlType

_DAY_MICROSECONDS = 86_400_000_000


def data_type(oid: int, context: QueryContext) -> DataType:
    """The type of an OID, user-defined ones from the query's snapshot."""
    if types.is_known(oid):
        return types.get(oid)
    return types.get(oid, context.snapshot)


def cast(context: EvaluationContext, node: Cast, column: Column) -> Column:
    """The column converted as the node says; NULL stays NULL."""
    if column.valid is not None and column.rows == 1 and not bool(column.valid[0]):
        return null_column(node.type, data_type(node.type.oid, context.query).layout)
    source_element = data_type(column.type.oid, context.query).element_oid
    target_element = data_type(node.type.oid, context.query).element_oid
    is_elementwise = source_element and target_element and (
        node.function.argument_oids[0] == source_element if node.function is not None
        else node.is_text_io or node.type.typmod != -1
    )
    if is_elementwise and column.objects is not None:
        return _by_element(context, node, column, (source_element, target_element))
    if node.function is not None:
        return _by_function(context, node, node.function, column)
    if node.is_text_io:
        return _by_text(context, node, column)
    relabelled = replace(column, type=SqlType(node.type.oid))
    source = node.argument.type
    if node.type.typmod != -1 and (node.type != source or column.rows == 0):
        relabelled = with_typmod(context, relabelled, node.type, is_explicit=node.is_explicit)
    return replace(relabelled, type=node.type)


def _by_element(
    context: EvaluationContext, node: Cast, column: Column, oids: tuple[int, int]
) -> Column:
    """An array converted element by element."""
    source, target = oids
    values = to_values(column)
    items = [item for value in values if value is not None for item in value.items]
    owner = [row for row, v in enumerate(values) if v is not None for _ in v.items]
    flat = from_values(SqlType(source), data_type(source, context.query).layout, items)
    active = None
    if context.active is not None:
        active = context.active.expand(len(values))[torch.tensor(owner, dtype=torch.int64)]
    inner = EvaluationContext(
        context.query, len(items), active, context.device, context.errors, context.row_offset,
        context.position,
    )
    element = Cast(
        Literal(None, SqlType(source)), SqlType(target, node.type.typmod), node.function,
        node.is_explicit, node.is_text_io,
    )
    done = iter(to_values(cast(inner, element, flat), len(items)) if items else ())
    found = [
        None if v is None else ArrayValue(
            target, tuple(next(done) for _ in v.items), v.lengths, v.lower_bounds
        )
        for v in values
    ]
    return host_column(node.type, found)


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
    converted: Column = replace(result, type=node.type)
    return converted


def _by_text(context: EvaluationContext, node: Cast, column: Column) -> Column:
    """Output of the source type, then input of the target."""
    inner = context.narrowed(column.valid)
    target = node.type
    if column.type.oid in (*sqltype.STRINGS, sqltype.UNKNOWN, sqltype.CSTRING):
        found = conversion.from_text(inner, column, target)
    elif target.oid in sqltype.STRINGS:
        found = conversion.to_text(inner, column, SqlType(target.oid))
        if target.typmod != -1:
            found = with_typmod(context, found, target, is_explicit=node.is_explicit)
    else:
        text = conversion.to_text(inner, column, sqltype.TEXT_TYPE)
        found = conversion.from_text(inner, text, target)
    if column.valid is not None and found.valid is None:
        found = replace(expand(found, column.rows), valid=column.valid)
    return replace(found, type=target)


def with_typmod(
    context: EvaluationContext, column: Column, type_: SqlType, *, is_explicit: bool
) -> Column:
    """The column coerced to a length, precision or scale; 22001, 22003 where it can't be."""
    inner = context.narrowed(column.valid)
    found = conversion.with_modifier(inner, column, type_, is_explicit=is_explicit)
    return replace(found, type=type_)


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
