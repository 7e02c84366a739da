"""to_json, json_build_*, row_to_json and json_object: JSON from SQL values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpudb import errors, sqltype
from gpudb.catalog import types
from gpudb.catalog.functions import scalar
from gpudb.catalog.types import ArrayValue, RecordValue, TypeContext
from gpudb.catalog.types.arrays import ArrayType
from gpudb.catalog.types.datetime_text import format_date, format_timestamp
from gpudb.catalog.types.json_text import canonical, quote
from gpudb.catalog.types.records import RecordType
from gpudb.column import Column
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import evaluate, rowwise
from gpudb.sqltype import SqlType

_NUMBERS = sqltype.NUMBERS
Renderer = Callable[[Any], str]


def renderer(oid: int, context: EvaluationContext, *, is_jsonb: bool) -> Renderer:
    """The JSON text of a value of a type; NULL is null."""
    snapshot, settings = context.query.snapshot, context.query.types
    data_type = types.get(oid, snapshot)

    def plain(value: Any) -> str:
        if value is None:
            return "null"
        if oid == sqltype.BOOL:
            return "true" if value else "false"
        text = data_type.format(value, settings)
        if oid in _NUMBERS:
            is_number = text not in ("NaN", "Infinity", "-Infinity")
            return text if is_number else quote(text)
        if oid in (sqltype.JSON, sqltype.JSONB):
            return text
        return quote(_moment(oid, value, settings) or text)

    if isinstance(data_type, ArrayType):
        inner = renderer(data_type.element.oid, context, is_jsonb=is_jsonb)
        return lambda value: "null" if value is None else _array(value, inner)
    if isinstance(data_type, RecordType):
        return lambda value: "null" if value is None else _record(
            value, data_type, context, is_jsonb=is_jsonb
        )
    return plain


def _moment(oid: int, value: Any, settings: TypeContext) -> str | None:
    """Dates and timestamps in ISO 8601 with T and a full offset."""
    iso = TypeContext(settings.time_zone)
    if oid == sqltype.DATE:
        return format_date(value, iso)
    if oid == sqltype.TIMESTAMP:
        return format_timestamp(value, iso).replace(" ", "T", 1)
    if oid != sqltype.TIMESTAMPTZ:
        return None
    text = format_timestamp(value, iso, zone=settings.time_zone).replace(" ", "T", 1)
    return text + ":00" if text[-3:-2] in "+-" else text


def _array(value: ArrayValue, inner: Renderer) -> str:
    texts = [inner(item) for item in value.items]
    for length in reversed(value.lengths):
        texts = [
            "[" + ",".join(texts[i : i + length]) + "]" for i in range(0, len(texts), length)
        ]
    return texts[0] if texts else "[]"


def _record(
    value: RecordValue, data_type: RecordType, context: EvaluationContext, *, is_jsonb: bool
) -> str:
    names = _field_names(data_type, context, len(value.values))
    parts = []
    for name, oid, item in zip(names, value.type_oids, value.values, strict=True):
        parts.append(f"{quote(name)}:{renderer(oid, context, is_jsonb=is_jsonb)(item)}")
    return "{" + ",".join(parts) + "}"


def _field_names(data_type: RecordType, context: EvaluationContext, count: int) -> list[str]:
    snapshot = context.query.snapshot
    entry = None if snapshot is None else snapshot.type(data_type.oid)
    relation = None if entry is None or not entry.relation else snapshot.relation_by_oid(
        entry.relation
    )
    if relation is not None:
        return [c.name for c in relation.columns if not c.is_dropped]
    return [f"f{i}" for i in range(1, count + 1)]


def _to_json(*, is_jsonb: bool) -> Callable[..., Column]:
    type_ = SqlType(sqltype.JSONB if is_jsonb else sqltype.JSON)

    def body(context: EvaluationContext, column: Column, *_: Column) -> Column:
        render = renderer(column.type.oid, context, is_jsonb=is_jsonb)
        call = (lambda value: canonical(render(value))) if is_jsonb else render
        return evaluate(context, call, (column,), type_)

    return body


scalar("to_json", "array_to_json", "row_to_json", fallible=True)(_to_json(is_jsonb=False))
scalar("to_jsonb", fallible=True)(_to_json(is_jsonb=True))


def _build(*, is_object: bool, is_jsonb: bool) -> Callable[..., Column]:
    type_ = SqlType(sqltype.JSONB if is_jsonb else sqltype.JSON)
    gap = " : " if not is_jsonb else ":"

    def body(context: EvaluationContext, *columns: Column) -> Column:
        renders = [renderer(c.type.oid, context, is_jsonb=is_jsonb) for c in columns]
        if is_object and len(columns) % 2:
            name = "jsonb_build_object" if is_jsonb else "json_build_object"
            raise errors.InvalidParameterValue(
                "argument list must have even number of elements",
                hint=f"The arguments of {name}() must consist of alternating keys and values.",
            )

        def build(*values: Any) -> str:
            if is_object:
                pairs = [
                    _object_key(values, renders, i, is_jsonb=is_jsonb) + gap
                    + renders[i + 1](values[i + 1])
                    for i in range(0, len(values), 2)
                ]
                text = "{" + ", ".join(pairs) + "}"
            else:
                parts = [render(v) for render, v in zip(renders, values, strict=True)]
                text = "[" + ", ".join(parts) + "]"
            return canonical(text) if is_jsonb else text

        return evaluate(context, build, columns, type_, strict=False)

    return body


def _object_key(
    values: tuple[Any, ...], renders: list[Renderer], place: int, *, is_jsonb: bool
) -> str:
    if values[place] is None:
        if is_jsonb:
            raise errors.InvalidParameterValue(f"argument {place + 1}: key must not be null")
        raise errors.InvalidParameterValue(
            f"argument {place + 1} cannot be null",
            hint="Object keys should be text.",
        )
    text = renders[place](values[place])
    return text if text.startswith('"') else quote(text)


for _prefix, _is_jsonb in (("json", False), ("jsonb", True)):
    for _shape, _is_object in (("object", True), ("array", False)):
        scalar(
            f"{_prefix}_build_{_shape}", f"{_prefix}_build_{_shape}_noargs", fallible=True
        )(_build(is_object=_is_object, is_jsonb=_is_jsonb))


def _object_text(keys: list[Any], values: list[Any]) -> str:
    pairs = []
    for key, value in zip(keys, values, strict=True):
        if key is None:
            raise errors.NullValueNotAllowed("null value not allowed for object key")
        pairs.append(f"{quote(key)} : {'null' if value is None else quote(value)}")
    return "{" + ", ".join(pairs) + "}"


def json_object(array: ArrayValue) -> str:
    """An object from an array of alternating keys and values."""
    if len(array.lengths) > 2:
        raise errors.ArraySubscriptError("wrong number of array subscripts")
    if len(array.lengths) == 2 and array.lengths[1] != 2:
        raise errors.ArraySubscriptError("array must have two columns")
    if len(array.items) % 2:
        raise errors.ArraySubscriptError("array must have even number of elements")
    return _object_text(list(array.items[::2]), list(array.items[1::2]))


def json_object_of(keys: ArrayValue, values: ArrayValue) -> str:
    if len(keys.items) != len(values.items):
        raise errors.ArraySubscriptError("mismatched array dimensions")
    return _object_text(list(keys.items), list(values.items))


rowwise("json_object")(json_object)
rowwise("json_object_two_arg")(json_object_of)
rowwise("jsonb_object")(lambda array: canonical(json_object(array)))
rowwise("jsonb_object_two_arg")(lambda keys, values: canonical(json_object_of(keys, values)))
