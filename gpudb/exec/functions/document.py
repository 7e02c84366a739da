"""json and jsonb: access, containment, change, construction.

jsonb values are Python values (json_text.load); a json text is cut into pieces without changing
how they are written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from gpudb import errors, sqltype
from gpudb.catalog.types import ArrayValue
from gpudb.catalog.types.json_text import dump, key_order, load, quote
from gpudb.exec.functions.rowwise import rowwise
from gpudb.exec.functions.sets import rowset
from gpudb.kernels.decimal_math import round_to

_SPACES = " \t\n\r"
Pieces = list[tuple[str | None, str]]


# --- json texts, cut into pieces ---


def _value_end(text: str, at: int) -> int:
    """Where the JSON value that starts at ``at`` ends (the text is valid)."""
    character = text[at]
    if character == '"':
        at += 1
        while text[at] != '"':
            at += 2 if text[at] == "\\" else 1
        return at + 1
    if character not in "{[":
        while at < len(text) and text[at] not in ",]} \t\n\r":
            at += 1
        return at
    depth = 0
    while True:
        character = text[at]
        if character == '"':
            at = _value_end(text, at)
            continue
        depth += (character in "{[") - (character in "}]")
        at += 1
        if depth == 0:
            return at


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACES:
        at += 1
    return at


def pieces(text: str) -> Pieces | None:
    """(key or None, text) of the members of an object or array; None for a scalar."""
    at = _skip(text, 0)
    if text[at] not in "{[":
        return None
    is_object = text[at] == "{"
    found: Pieces = []
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        key = None
        if is_object:
            end = _value_end(text, at)
            key = json.loads(text[at:end])
            at = _skip(text, _skip(text, end) + 1)
        end = _value_end(text, at)
        found.append((key, text[at:end]))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def kind_of(text: str) -> str:
    """What json_typeof says."""
    first = text[_skip(text, 0)]
    names = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean",
             "n": "null"}
    return names.get(first, "number")


def as_text(piece: str | None) -> str | None:
    """The ->> form of a JSON text: strings without quotes, null as NULL."""
    if piece is None or piece == "null":
        return None
    if piece[0] == '"':
        found: str = json.loads(piece)
        return found
    return piece


def field(text: str, key: str) -> str | None:
    """The last value of a key of an object."""
    members = pieces(text)
    if members is None or kind_of(text) != "object":
        return None
    return next((value for name, value in reversed(members) if name == key), None)


def element(text: str, index: int) -> str | None:
    members = pieces(text) if kind_of(text) == "array" else None
    if members is None:
        return None
    place = index if index >= 0 else len(members) + index
    return members[place][1] if 0 <= place < len(members) else None


def at_path(text: str, path: ArrayValue) -> str | None:
    current: str | None = text.strip(_SPACES)
    for step in path.items:
        if current is None or step is None:
            return None
        if kind_of(current) == "object":
            current = field(current, step)
        elif re.fullmatch(r"\s*[+-]?[0-9]+\s*", step, re.ASCII):
            current = element(current, int(step))
        else:
            return None
    return current


for _prefix in ("json", "jsonb"):
    rowwise(f"{_prefix}_object_field", examples=((f"'{{\"a\":[1]}}'::{_prefix} -> 'a'", "[1]"),))(
        field
    )
    rowwise(f"{_prefix}_object_field_text")(lambda text, key: as_text(field(text, key)))
    rowwise(f"{_prefix}_extract_path")(at_path)
    rowwise(f"{_prefix}_extract_path_text")(lambda text, path: as_text(at_path(text, path)))
    rowwise(f"{_prefix}_typeof")(kind_of)


def _register_sets(prefix: str, oid: int) -> None:
    name = prefix

    def members(text: str, wanted: str, function: str) -> Pieces:
        kind = kind_of(text)
        if kind != wanted:
            raise _wrong_kind(name, function, kind, wanted)
        found = pieces(text) or []
        if prefix == "jsonb" or wanted == "array":
            return found
        return found

    def array_length(text: str) -> int:
        kind = kind_of(text)
        if kind != "array":
            what = "a non-array" if kind == "object" else "a scalar"
            raise errors.InvalidParameterValue(f"cannot get array length of {what}")
        return len(pieces(text) or ())

    rowwise(f"{prefix}_array_length")(array_length)
    rowset(f"{prefix}_array_elements", results=(oid,))(
        lambda text: [v for _, v in members(text, "array", "elements")]
    )
    rowset(f"{prefix}_array_elements_text", results=(sqltype.TEXT,))(
        lambda text: [as_text(v) for _, v in members(text, "array", "elements_text")]
    )
    rowset(f"{prefix}_each", results=(sqltype.TEXT, oid))(
        lambda text: members(text, "object", "each")
    )
    rowset(f"{prefix}_each_text", results=(sqltype.TEXT, sqltype.TEXT))(
        lambda text: [(k, as_text(v)) for k, v in members(text, "object", "each_text")]
    )
    rowset(f"{prefix}_object_keys", results=(sqltype.TEXT,))(
        lambda text: [k for k, _ in members(text, "object", "object_keys")]
    )


def _wrong_kind(prefix: str, function: str, kind: str, wanted: str) -> errors.SqlError:
    if function.startswith("elements"):
        if prefix == "json":
            what = "a non-array" if kind == "object" else "a scalar"
            return errors.InvalidParameterValue(
                f"cannot call json_array_{function} on {what}"
            )
        what = "an object" if kind == "object" else "a scalar"
        return errors.InvalidParameterValue(f"cannot extract elements from {what}")
    if function == "object_keys":
        what = "an array" if kind == "array" else "a scalar"
        return errors.InvalidParameterValue(f"cannot call {prefix}_object_keys on {what}")
    if prefix == "json" and kind == "array":
        return errors.InvalidParameterValue("cannot deconstruct an array as an object")
    if prefix == "json":
        return errors.InvalidParameterValue("cannot deconstruct a scalar")
    return errors.InvalidParameterValue(f"cannot call {prefix}_{function} on a non-object")


_register_sets("json", sqltype.JSON)
_register_sets("jsonb", sqltype.JSONB)


rowwise("json_array_element")(element)
rowwise("json_array_element_text")(lambda text, index: as_text(element(text, index)))


def jsonb_element(text: str, index: int) -> str | None:
    """Like ``element``; a scalar is the only element of itself."""
    if kind_of(text) not in ("array", "object"):
        return text if index in (0, -1) else None
    return element(text, index)


rowwise("jsonb_array_element")(jsonb_element)
rowwise("jsonb_array_element_text")(lambda text, index: as_text(jsonb_element(text, index)))


# --- jsonb: containment and existence ---


def _holds(left: Any, right: Any) -> bool:
    """jsonb containment of values below the top level."""
    if isinstance(left, dict) and isinstance(right, dict):
        return all(k in left and _holds(left[k], v) for k, v in right.items())
    if isinstance(left, list) and isinstance(right, list):
        return all(any(_holds(item, wanted) for item in left) for wanted in right)
    return type(left) is type(right) and bool(left == right)


def jsonb_contains(left: str, right: str) -> bool:
    one, two = load(left), load(right)
    if isinstance(one, list) and not isinstance(two, (list, dict)):
        return any(_holds(item, two) for item in one)
    return _holds(one, two)


rowwise("jsonb_contains", examples=(("'{\"a\":1,\"b\":2}'::jsonb @> '{\"b\":2}'", "t"),))(
    jsonb_contains
)
rowwise("jsonb_contained")(lambda left, right: jsonb_contains(right, left))


def _exists(value: Any, key: str | None) -> bool:
    if key is None:
        return False
    if isinstance(value, (dict, list)):
        return any(isinstance(k, str) and k == key for k in value)
    return isinstance(value, str) and value == key


rowwise("jsonb_exists")(lambda text, key: _exists(load(text), key))


@rowwise("jsonb_exists_any")
def exists_any(text: str, keys: ArrayValue) -> bool:
    value = load(text)
    return any(_exists(value, key) for key in keys.items)


@rowwise("jsonb_exists_all")
def exists_all(text: str, keys: ArrayValue) -> bool:
    value = load(text)
    return all(key is None or _exists(value, key) for key in keys.items)


# --- jsonb: change ---


@rowwise("jsonb_concat", examples=(("'[1]'::jsonb || '2'", "[1, 2]"),))
def jsonb_concat(left: str, right: str) -> str:
    one, two = load(left), load(right)
    if isinstance(one, dict) and isinstance(two, dict):
        return dump(one | two)
    first = one if isinstance(one, list) else [one]
    return dump(first + (two if isinstance(two, list) else [two]))


def _check_container(value: Any, action: str) -> None:
    if not isinstance(value, (dict, list)):
        raise errors.InvalidParameterValue(f"cannot {action}")


@rowwise("jsonb_delete")
def delete_key(text: str, key: str) -> str:
    return _without(text, {key})


@rowwise("jsonb_delete_array")
def delete_keys(text: str, keys: ArrayValue) -> str:
    return _without(text, {key for key in keys.items if key is not None})


def _without(text: str, keys: set[str]) -> str:
    value = load(text)
    _check_container(value, "delete from scalar")
    if isinstance(value, dict):
        return dump({k: v for k, v in value.items() if k not in keys})
    return dump([item for item in value if not (isinstance(item, str) and item in keys)])


@rowwise("jsonb_delete_idx")
def delete_index(text: str, index: int) -> str:
    value = load(text)
    if isinstance(value, dict):
        raise errors.InvalidParameterValue("cannot delete from object using integer index")
    _check_container(value, "delete from scalar")
    place = index if index >= 0 else len(value) + index
    return dump([item for i, item in enumerate(value) if i != place])


def _place(step: str, depth: int, size: int) -> int:
    """The array index a path step names; 22P02."""
    if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", step, re.ASCII):
        raise errors.InvalidTextRepresentation(
            f'path element at position {depth} is not an integer: "{step}"'
        )
    index = int(step)
    return index if index >= 0 else index + size


def _deleted(value: Any, path: tuple[str, ...], depth: int) -> Any:
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        if step not in value:
            return value
        if not rest:
            return {k: v for k, v in value.items() if k != step}
        return value | {step: _deleted(value[step], rest, depth + 1)}
    if not isinstance(value, list):
        return value
    place = _place(step, depth, len(value))
    if not 0 <= place < len(value):
        return value
    if not rest:
        return value[:place] + value[place + 1 :]
    return [*value[:place], _deleted(value[place], rest, depth + 1), *value[place + 1 :]]


@rowwise("jsonb_delete_path")
def delete_path(text: str, path: ArrayValue) -> str:
    value = load(text)
    _check_container(value, "delete path in scalar")
    return dump(_deleted(value, path.items, 1)) if path.items else text


def _set(value: Any, path: tuple[str, ...], new: Any, creates: bool, depth: int = 1) -> Any:
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        if step not in value:
            return value | {step: new} if creates and not rest else value
        inner = _set(value[step], rest, new, creates, depth + 1) if rest else new
        return value | {step: inner}
    if not isinstance(value, list):
        return value
    place = _place(step, depth, len(value))
    if not 0 <= place < len(value):
        if rest or not creates:
            return value
        return [new, *value] if place < 0 else [*value, new]
    inner = _set(value[place], rest, new, creates, depth + 1) if rest else new
    return [*value[:place], inner, *value[place + 1 :]]


def _checked_path(value: Any, path: ArrayValue) -> tuple[str, ...]:
    _check_container(value, "set path in scalar")
    for number, step in enumerate(path.items, 1):
        if step is None:
            raise errors.NullValueNotAllowed(
                f"path element at position {number} is null"
            )
    return path.items


@rowwise("jsonb_set", examples=(("jsonb_set('{\"a\":1}', '{b}', '2')", '{"a": 1, "b": 2}'),))
def jsonb_set(text: str, path: ArrayValue, new: str, creates: bool = True) -> str:
    value = load(text)
    steps = _checked_path(value, path)
    return dump(_set(value, steps, load(new), creates)) if steps else text


def _inserted(value: Any, path: tuple[str, ...], new: Any, after: bool, depth: int = 1) -> Any:
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        if rest:
            if step not in value:
                return value
            return value | {step: _inserted(value[step], rest, new, after, depth + 1)}
        if step in value:
            raise errors.InvalidParameterValue(
                "cannot replace existing key",
                hint="Try using the function jsonb_set to replace key value.",
            )
        return value | {step: new}
    if not isinstance(value, list):
        return value
    place = _place(step, depth, len(value))
    if rest:
        if not 0 <= place < len(value):
            return value
        inner = _inserted(value[place], rest, new, after, depth + 1)
        return [*value[:place], inner, *value[place + 1 :]]
    at = min(max(place + after, 0), len(value)) if place >= 0 else 0
    return [*value[:at], new, *value[at:]]


@rowwise("jsonb_insert")
def jsonb_insert(text: str, path: ArrayValue, new: str, after: bool = False) -> str:
    value = load(text)
    steps = _checked_path(value, path)
    return dump(_inserted(value, steps, load(new), after)) if steps else text


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _stripped(v) for k, v in value.items() if v is not None}
    return [_stripped(v) for v in value] if isinstance(value, list) else value


rowwise("jsonb_strip_nulls")(lambda text: dump(_stripped(load(text))))


@rowwise("json_strip_nulls")
def json_strip_nulls(text: str) -> str:
    members = pieces(text)
    if members is None:
        return text.strip(_SPACES)
    if kind_of(text) == "array":
        return "[" + ",".join(json_strip_nulls(value) for _, value in members) + "]"
    kept = [f"{quote(k or '')}:{json_strip_nulls(v)}" for k, v in members if v != "null"]
    return "{" + ",".join(kept) + "}"


def _pretty(value: Any, indent: int) -> str:
    pad, inner = " " * indent, " " * (indent + 4)
    if isinstance(value, dict):
        if not value:
            return "{\n" + pad + "}"
        parts = [
            f"{inner}{quote(k)}: {_pretty(value[k], indent + 4)}"
            for k in sorted(value, key=key_order)
        ]
        return "{\n" + ",\n".join(parts) + f"\n{pad}}}"
    if isinstance(value, list):
        if not value:
            return "[\n" + pad + "]"
        parts = [inner + _pretty(item, indent + 4) for item in value]
        return "[\n" + ",\n".join(parts) + f"\n{pad}]"
    return dump(value)


rowwise("jsonb_pretty")(lambda text: _pretty(load(text), 0))


# --- casts ---


def _number(name: str, bits: int) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        value = load(text)
        if not isinstance(value, Decimal):
            raise errors.InvalidParameterValue(f"cannot cast jsonb {_kind(value)} to type {name}")
        if name == "numeric":
            return value
        if name in ("real", "double precision"):
            return float(value)
        number = int(round_to(value, 0))
        if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            raise errors.NumericValueOutOfRange(f"{name} out of range")
        return number

    return convert


def _kind(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", Decimal: "numeric"}
    return names.get(type(value), "null")


for _key, _name, _bits in (
    ("jsonb_int2", "smallint", 16), ("jsonb_int4", "integer", 32), ("jsonb_int8", "bigint", 64),
    ("jsonb_numeric", "numeric", 0), ("jsonb_float4", "real", 0),
    ("jsonb_float8", "double precision", 0),
):
    rowwise(_key)(_number(_name, _bits))


@rowwise("jsonb_bool")
def jsonb_to_bool(text: str) -> bool:
    value = load(text)
    if not isinstance(value, bool):
        raise errors.InvalidParameterValue(f"cannot cast jsonb {_kind(value)} to type boolean")
    return value


