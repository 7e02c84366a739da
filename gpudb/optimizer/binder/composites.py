"""Fields of rows and elements of arrays: (row).field, (row).*, array[i], array[i:j]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog.type_system import Context
from gpudb.expr import Call, ColumnRef, Expr, FieldSelect, Literal, RowConstruct, Subscript
from gpudb.optimizer.binder import coercion, columns, expressions, operators
from gpudb.optimizer.binder.scope import Scope
from gpudb.optimizer.parser import position, start_position
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder


def row_fields(binder: Binder, value: Expr) -> tuple[tuple[str, SqlType], ...] | None:
    """Names and types of the fields of a row value, None when it is not a (known) row."""
    if isinstance(value, RowConstruct):
        return tuple(
            (name, item.type) for name, item in zip(value.names, value.items, strict=True)
        )
    entry = binder.snapshot.type(binder.types.base(value.type.oid))
    if entry is not None and entry.kind == "c":
        relation = binder.snapshot.relation_by_oid(entry.relation)
        if relation is not None:
            return tuple(
                (c.name, SqlType(c.type_oid, c.typmod)) for c in relation.live_columns()
            )
    if value.type.oid == t.RECORD:
        if isinstance(value, Call):
            return binder.record_fields.get(value.function.oid)
        if isinstance(value, ColumnRef):
            return binder.set_fields.get(value.id)
    return None


def field(binder: Binder, value: Expr, name: str) -> Expr | None:
    """The field of that name, None when the value has none."""
    fields = row_fields(binder, value)
    for number, (own, type_) in enumerate(fields or ()):
        if own == name:
            if isinstance(value, RowConstruct):
                return value.items[number]
            return FieldSelect(value, number, type_)
    return None


def bind_field(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    """``(value).name``. Raises WrongObjectType (42809), UndefinedColumn (42703)."""
    at = position(node)
    if isinstance(node.args["expression"], exp.Star):
        raise errors.FeatureNotSupported(
            'row expansion via "*" is not supported here', position=at
        )
    name = node.args["expression"].args["this"]
    value = expressions.bind(binder, scope, node.args["this"])
    found = field(binder, value, name)
    if found is not None:
        return found
    from gpudb.optimizer.binder import calls

    called = calls.attribute_call(binder, scope, name, value)
    if called is not None:
        return called
    type_name = binder.types.name(value.type.oid)
    if value.type.oid == t.RECORD:
        raise errors.UndefinedColumn(
            f'could not identify column "{name}" in record data type', position=at
        )
    if binder.types.is_composite(value.type.oid):
        raise errors.UndefinedColumn(
            f'column "{name}" not found in data type {type_name}', position=at
        )
    raise errors.WrongObjectType(
        f"column notation .{name} applied to type {type_name}, which is not a composite type",
        position=start_position(node),
    )


def expand(
    binder: Binder, scope: Scope, node: exp.Expression
) -> list[tuple[str, Expr]]:
    """The fields of ``(value).*``."""
    inner = node.args["this"]
    if isinstance(inner, exp.Column) and inner.args.get("table") is None:
        item = columns.find_item(scope, inner.args["this"], 0)
        if item is not None and columns.find_bare(
            binder, scope, inner.args["this"], position(node)
        ) is None:
            star = exp.Column(this=exp.Star(), table=inner.args["this"])
            star.meta.update(inner.meta)
            return columns.expand_star(binder, scope, star)
    value = expressions.bind(binder, scope, inner)
    fields = row_fields(binder, value)
    if fields is None:
        if value.type.oid == t.RECORD:
            raise errors.FeatureNotSupported(
                "record type has not been registered", position=position(node)
            )
        raise errors.WrongObjectType(
            f"type {binder.types.name(value.type.oid)} is not composite",
            position=position(node),
        )
    if isinstance(value, RowConstruct):
        return [(name, item) for (name, _), item in zip(fields, value.items, strict=True)]
    return [
        (name, FieldSelect(value, number, type_))
        for number, (name, type_) in enumerate(fields)
    ]


def bind_subscript(binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
    """``value[i]``, ``value[i:j]`` over arrays, fixed vectors and jsonb."""
    value = expressions.bind(binder, scope, node.args["this"])
    at = position(node)
    base = binder.types.base(value.type.oid)
    if base == t.JSONB:
        return _json_element(binder, scope, value, node)
    if base == t.NAME:
        return _letter(binder, scope, value, node)
    element = binder.types.subscript_element(base)
    if not element:
        raise errors.DatatypeMismatch(
            f"cannot subscript type {binder.types.name(value.type.oid)} because it does not"
            " support subscripting",
            position=start_position(node),
        )
    subscripts = node.args["expressions"]
    is_slice = any(isinstance(item, exp.Slice) for item in subscripts)
    lowers: list[Expr | None] = []
    uppers: list[Expr | None] = []
    for item in subscripts:
        if isinstance(item, exp.Slice):
            lowers.append(_bound(binder, scope, item.args.get("this")))
            uppers.append(_bound(binder, scope, item.args.get("expression")))
        elif is_slice:
            lowers.append(Literal(1, t.INTEGER))
            uppers.append(_bound(binder, scope, item))
        else:
            lowers.append(_bound(binder, scope, item))
    if len(subscripts) > 6:
        raise errors.ProgramLimitExceeded(
            f"number of array dimensions ({len(subscripts)}) exceeds the maximum allowed (6)",
            position=at,
        )
    if is_slice:
        array = binder.types.array(element) if base in _VECTORS else base
        result = SqlType(array, value.type.typmod)
        return Subscript(value, tuple(lowers), tuple(uppers), result)
    return Subscript(value, tuple(lowers), None, SqlType(element, value.type.typmod))


_VECTORS = (t.INT2VECTOR, t.OIDVECTOR)


def _bound(binder: Binder, scope: Scope, node: exp.Expression | None) -> Expr | None:
    if node is None:
        return None
    value = expressions.bind(binder, scope, node)
    found = coercion.to_type(
        binder, value, t.INTEGER, Context.ASSIGNMENT, start_position(node)
    )
    if found is None:
        raise errors.DatatypeMismatch(
            "array subscript must have type integer", position=start_position(node)
        )
    return found


def _letter(binder: Binder, scope: Scope, value: Expr, node: exp.Expression) -> Expr:
    """``name[i]``: a letter of a name, counted from 0."""
    from gpudb.optimizer.binder import calls

    subscripts = node.args["expressions"]
    lower = None if len(subscripts) != 1 else _bound(binder, scope, subscripts[0])
    if lower is None:
        raise errors.FeatureNotSupported(
            "this subscript of type name is not supported", position=start_position(node)
        )
    at = position(node)
    first = operators.apply(binder, "+", lower, Literal(1, t.INTEGER), at)
    text = coercion.explicit(binder, value, t.TEXT_TYPE, at)
    letter = calls.apply(binder, "substr", [text, first, Literal(1, t.INTEGER)], at)
    return coercion.explicit(binder, letter, SqlType(t.CHAR), at)


def _json_element(
    binder: Binder, scope: Scope, value: Expr, node: exp.Expression
) -> Expr:
    for item in node.args["expressions"]:
        if isinstance(item, exp.Slice):
            raise errors.DatatypeMismatch(
                "jsonb subscript does not support slices", position=start_position(node)
            )
        key = expressions.bind(binder, scope, item)
        target = t.INT4 if key.type.oid in t.INTEGERS else t.TEXT
        key = coercion.coerce(binder, key, target, Context.ASSIGNMENT, start_position(item))
        value = operators.apply(binder, "->", value, key, position(node))
    return value
