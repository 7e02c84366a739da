"""Strings: concatenation, lengths, parts, padding, trimming, quoting, hashes."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from gpudb import errors, sqltype
from gpudb.catalog.functions import scalar
from gpudb.catalog.types import ArrayValue
from gpudb.catalog.types.strings import padded
from gpudb.column import Column, all_valid, byte_strings, integer_column, integers
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import column_of, evaluate, rowwise
from gpudb.kernels import text as texts
from gpudb.layout import Kind
from gpudb.optimizer.keywords import KEY_WORDS
from gpudb.sqltype import TEXT_TYPE, SqlType

_INTEGER = SqlType(sqltype.INT4)
TEXT_BYTES_MAX = 2**30 - 1
"""PostgreSQL's limit of one value."""


def too_long() -> errors.SqlError:
    return errors.ProgramLimitExceeded("requested length too large")


# --- concatenation and lengths ---


@scalar("textcat", "byteacat", "bitcat", examples=(("'Post' || 'greSQL'", "PostgreSQL"),))
def concatenate(context: EvaluationContext, left: Column, right: Column) -> Column:
    is_text = left.type.oid in sqltype.STRINGS
    type_ = TEXT_TYPE if is_text else replace(left.type, typmod=-1)
    if left.rows == 1 or right.rows == 1:
        one_dictionary = Kind.DICTIONARY in (left.layout.kind, right.layout.kind)
        if one_dictionary or left.rows == right.rows:
            return evaluate(context, lambda a, b: a + b, (left, right), type_)
    rows = max(left.rows, right.rows)
    return texts.joined((left, right), type_, rows, all_valid(left, right))


@scalar(
    "textlen", "bpcharlen", examples=(("length('jose')", "4"),)
)
def length(context: EvaluationContext, column: Column) -> Column:
    """Characters."""
    if column.layout.kind is Kind.DICTIONARY:
        return evaluate(context, len, (column,), _INTEGER)
    found = torch.from_numpy(texts.character_lengths(column))
    return integer_column(_INTEGER, found, column.valid)


@scalar(
    "textoctetlen", "byteaoctetlen", "bpcharoctetlen",
    examples=(("octet_length('jose')", "4"),),
)
def octet_length(context: EvaluationContext, column: Column) -> Column:
    found = torch.from_numpy(texts.buffers(with_padding(context, column))[1].astype(np.int32))
    return integer_column(_INTEGER, found, column.valid)


def with_padding(context: EvaluationContext, column: Column) -> Column:
    """A char(n) column with the blanks that its values lack; any other column as it is."""
    typmod = column.type.typmod
    if column.type.oid != sqltype.BPCHAR or typmod < 0:
        return column
    return evaluate(context, lambda value: padded(value, typmod), (column,), TEXT_TYPE)


@scalar("bit_length(text)", "bit_length(bytea)", examples=(("bit_length('jose')", "32"),))
def bit_length(context: EvaluationContext, column: Column) -> Column:
    octets = octet_length(context, column)
    return integer_column(_INTEGER, octets.data[0] * 8, column.valid)


# --- case ---


def _initcap(value: str) -> str:
    parts = []
    in_word = False
    for character in value:
        parts.append(character.lower() if in_word else character.upper())
        in_word = character.isalnum()
    return "".join(parts)


def _one_to_one(change: Callable[[str], str]) -> Callable[[str], str]:
    """Case mapping as C libraries do it: a character whose mapping is longer stays."""

    def mapped(value: str) -> str:
        if value.isascii():
            return change(value)
        found = change(value)
        if len(found) == len(value):
            return found
        return "".join(c if len(change(c)) != 1 else change(c) for c in value)

    return mapped


rowwise("lower", examples=(("lower('TOM')", "tom"),))(_one_to_one(str.lower))
rowwise("upper", examples=(("upper('tom')", "TOM"),))(_one_to_one(str.upper))
rowwise("initcap", examples=(("initcap('hi THOMAS')", "Hi Thomas"),))(_initcap)


# --- parts ---


def _span(length_: int, start: int, count: int | None) -> tuple[int, int]:
    """The slice of substr(start, count); 22011 for a negative count."""
    if count is None:
        return max(start - 1, 0), length_
    if count < 0:
        raise errors.SubstringError("negative substring length not allowed")
    end = start + count
    return max(start - 1, 0), max(end - 1, 0)


def substring(value: Any, start: int, count: int | None = None) -> Any:
    """SQL's substring of text or bytes; positions count from 1, those before are empty."""
    first, last = _span(len(value), start, count)
    return value[first:last]


@scalar(
    "text_substr", "text_substr_no_len", fallible=True,
    examples=(("substr('alphabet', 3, 2)", "ph"), ("substring('Thomas' from 3)", "omas")),
)
def substring_column(
    context: EvaluationContext, column: Column, start: Column, count: Column | None = None
) -> Column:
    """Without copying where the text is ASCII and the positions are constants."""
    numbers = [c for c in (start, count) if c is not None]
    is_simple = column.layout.kind is Kind.TEXT and column.rows > 1
    if is_simple and all(c.rows == 1 and c.valid is None for c in numbers):
        limits = [int(integers(c)[0]) for c in numbers]
        is_fine = len(limits) == 1 or limits[1] >= 0
        if is_fine and texts.is_ascii(column):
            first, last = _span(2**31, *limits) if len(limits) == 2 else (
                max(limits[0] - 1, 0), 2**31
            )
            starts, lengths, data = column.data
            kept = (lengths.to(torch.int64).clamp_max(last) - first).clamp_min(0)
            moved = torch.where(kept > 0, starts + first, starts)
            return replace(column, type=TEXT_TYPE, data=(moved, kept.to(torch.int32), data))
    return evaluate(context, substring, (column, *numbers), TEXT_TYPE)


rowwise("bytea_substr", "bytea_substr_no_len", "bitsubstr", "bitsubstr_no_len")(substring)


@rowwise("textpos", examples=(("position('om' in 'Thomas')", "3"),))
def position(value: str, wanted: str) -> int:
    return value.find(wanted) + 1


@rowwise("byteapos", "bitposition")
def position_of_bytes(value: Any, wanted: Any) -> int:
    return int(value.find(wanted)) + 1


@rowwise("text_left", examples=(("left('abcde', -2)", "abc"),))
def left(value: str, count: int) -> str:
    return value[:count]


@rowwise("text_right", examples=(("right('abcde', 2)", "de"),))
def right(value: str, count: int) -> str:
    if count >= 0:
        return value[-count:] if count else ""
    return value[-count:]


@rowwise("split_part", examples=(("split_part('abc~@~def~@~ghi', '~@~', 2)", "def"),))
def split_part(value: str, separator: str, field: int) -> str:
    if field == 0:
        raise errors.InvalidParameterValue("field position must not be zero")
    parts = value.split(separator) if separator else [value]
    if not value:
        return ""
    index = field - 1 if field > 0 else len(parts) + field
    return parts[index] if 0 <= index < len(parts) else ""


def overlay(value: Any, new: Any, start: int, count: int | None = None) -> Any:
    """The value with ``count`` positions from ``start`` replaced by ``new``."""
    if start <= 0:
        raise errors.SubstringError("negative substring length not allowed")
    length_ = len(new) if count is None else count
    return substring(value, 1, start - 1) + new + substring(value, start + length_)


rowwise(
    "textoverlay", "textoverlay_no_len", "byteaoverlay", "byteaoverlay_no_len", "bitoverlay",
    "bitoverlay_no_len",
)(overlay)


# --- padding, trimming, replacing ---


def _padding(length_: int, fill: str, missing: int) -> str:
    if length_ > TEXT_BYTES_MAX // 4:
        raise too_long()
    return (fill * (missing // len(fill) + 1))[:missing] if fill and missing > 0 else ""


@rowwise("lpad", "lpad(text,int4)", examples=(("lpad('hi', 5, 'xy')", "xyxhi"),))
def pad_left(value: str, length_: int, fill: str = " ") -> str:
    kept = value[: max(length_, 0)]
    return _padding(length_, fill, length_ - len(kept)) + kept


@rowwise("rpad", "rpad(text,int4)", examples=(("rpad('hi', 5, 'xy')", "hixyx"),))
def pad_right(value: str, length_: int, fill: str = " ") -> str:
    kept = value[: max(length_, 0)]
    return kept + _padding(length_, fill, length_ - len(kept))


@rowwise("btrim", "btrim1", examples=(("btrim('xyxtrimyyx', 'xyz')", "trim"),))
def trim(value: str, characters: str = " ") -> str:
    return value.strip(characters) if characters else value


@rowwise("ltrim", "ltrim1", examples=(("ltrim('zzzytest', 'xyz')", "test"),))
def trim_left(value: str, characters: str = " ") -> str:
    return value.lstrip(characters) if characters else value


@rowwise("rtrim", examples=(("rtrim('testxxzx', 'xyz')", "test"),))
def trim_right(value: str, characters: str = " ") -> str:
    return value.rstrip(characters) if characters else value


rowwise("byteatrim")(lambda value, cut: value.strip(cut) if cut else value)
rowwise("bytealtrim")(lambda value, cut: value.lstrip(cut) if cut else value)
rowwise("byteartrim")(lambda value, cut: value.rstrip(cut) if cut else value)


@rowwise("replace_text", examples=(("replace('abcdefabcdef', 'cd', 'XX')", "abXXefabXXef"),))
def replace_all(value: str, old: str, new: str) -> str:
    return value.replace(old, new) if old else value


@rowwise("translate", examples=(("translate('12345', '143', 'ax')", "a2x5"),))
def translate(value: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for i, character in enumerate(old):
        table.setdefault(ord(character), new[i] if i < len(new) else None)
    return value.translate(table)


@rowwise("repeat", examples=(("repeat('Pg', 4)", "PgPgPgPg"),))
def repeat(value: str, count: int) -> str:
    if len(value) * max(count, 0) > TEXT_BYTES_MAX:
        raise too_long()
    return value * max(count, 0)


rowwise("text_reverse", examples=(("reverse('abcde')", "edcba"),))(lambda value: value[::-1])


@scalar("text_starts_with", examples=(("starts_with('alphabet', 'alph')", "t"),))
def starts_with(context: EvaluationContext, column: Column, prefix: Column) -> Column:
    type_ = SqlType(sqltype.BOOL)
    if prefix.rows == 1 and column.layout.kind is Kind.TEXT and column.rows > 1:
        found = texts.starts_with(column, byte_strings(prefix)[0])
        return Column(
            type_, column_of(type_, [True]).layout, (found,), all_valid(column, prefix)
        )
    return evaluate(context, lambda a, b: a.startswith(b), (column, prefix), type_)


# --- quoting ---

_PLAIN_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)


@rowwise("quote_ident", examples=(("quote_ident('Foo bar')", '"Foo bar"'),))
def quote_identifier(value: str) -> str:
    word = KEY_WORDS.get(value)
    if _PLAIN_IDENTIFIER.fullmatch(value) and (word is None or word.category == "U"):
        return value
    return '"' + value.replace('"', '""') + '"'


@rowwise("quote_literal", examples=(("quote_literal(E'O\\'Reilly')", "'O''Reilly'"),))
def quote_literal(value: str) -> str:
    quoted = "'" + value.replace("'", "''").replace("\\", "\\\\") + "'"
    return "E" + quoted if "\\" in value else quoted


@rowwise("quote_nullable", examples=(("quote_nullable(NULL)", "NULL"),))
def quote_nullable(value: str | None) -> str:
    return "NULL" if value is None else quote_literal(value)


# --- code points, hashes ---


@rowwise("ascii", examples=(("ascii('x')", "120"),))
def code_point(value: str) -> int:
    return ord(value[0]) if value else 0


@rowwise("chr", examples=(("chr(65)", "A"),))
def character(code: int) -> str:
    if code == 0:
        raise errors.ProgramLimitExceeded("null character not permitted")
    if code < 0:
        raise errors.InvalidParameterValue("character number must be positive")
    if code > 0x10FFFF:
        raise errors.ProgramLimitExceeded(f"requested character too large for encoding: {code}")
    if 0xD800 <= code < 0xE000:
        raise errors.ProgramLimitExceeded(f"requested character not valid for encoding: {code}")
    return chr(code)


rowwise("md5_text", examples=(("md5('abc')", "900150983cd24fb0d6963f7d28e17f72"),))(
    lambda value: hashlib.md5(value.encode(), usedforsecurity=False).hexdigest()
)
rowwise("md5_bytea")(lambda value: hashlib.md5(value, usedforsecurity=False).hexdigest())
for _bits in ("224", "256", "384", "512"):
    rowwise(f"sha{_bits}_bytea")(
        lambda value, _bits=_bits: hashlib.new(f"sha{_bits}", value).digest()
    )


@rowwise("to_hex32", examples=(("to_hex(2147483647)", "7fffffff"),))
def to_hex4(value: int) -> str:
    return f"{value & 0xFFFFFFFF:x}"


@rowwise("to_hex64")
def to_hex8(value: int) -> str:
    return f"{value & 0xFFFFFFFFFFFFFFFF:x}"


_UNISTR = re.compile(r"\\(\\|[0-9a-fA-F]{4}|\+[0-9a-fA-F]{6}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})?")


@rowwise("unistr", examples=(("unistr('d\\0061t\\+000061')", "data"),))
def unescape(value: str) -> str:
    def unescaped(match: re.Match[str]) -> str:
        code = match[1]
        if code is None:
            raise errors.SyntaxError("invalid Unicode escape", hint=(
                "Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX."
            ))
        return "\\" if code == "\\" else chr(int(code.lstrip("+uU"), 16))

    return _UNISTR.sub(unescaped, value).encode("utf-16", "surrogatepass").decode("utf-16")


_FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def _form(name: str) -> Any:
    if name.upper() not in _FORMS:
        raise errors.InvalidParameterValue(f"invalid normalization form: {name}")
    return name.upper()


@rowwise("unicode_normalize_func")
def normalize(value: str, form: str) -> str:
    return unicodedata.normalize(_form(form), value)


@rowwise("unicode_is_normalized")
def is_normalized(value: str, form: str) -> bool:
    return unicodedata.is_normalized(_form(form), value)


# --- splitting to arrays and joining ---


def split(value: str | None, separator: str | None, null_text: str | None = None) -> Any:
    """The parts of a text; None for a NULL text. A NULL separator splits characters."""
    if value is None:
        return None
    if not value:
        return []
    if separator is None:
        parts: list[str] = list(value)
    else:
        parts = value.split(separator) if separator else [value]
    return [None if part == null_text else part for part in parts]


@rowwise(
    "text_to_array", "text_to_array_null",
    examples=(("string_to_array('xx~~yy~~zz', '~~', 'yy')", "{xx,NULL,zz}"),),
)
def string_to_array(
    value: str | None, separator: str | None, null_text: str | None = None
) -> ArrayValue | None:
    parts = split(value, separator, null_text)
    return None if parts is None else ArrayValue.of(sqltype.TEXT, tuple(parts))


@rowwise("parse_ident", examples=(("parse_ident('\"SomeSchema\".someTable')",
                                   "{SomeSchema,sometable}"),))
def parse_identifier(value: str, is_strict: bool = True) -> ArrayValue:
    part = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([A-Za-z_\x80-\U0010ffff][\w$]*))\s*(\.)?')
    found: list[str] = []
    at = 0
    while True:
        match = part.match(value, at)
        if match is None:
            raise errors.InvalidParameterValue(
                f'string is not a valid identifier: "{value}"'
            )
        quoted = match[1]
        found.append(quoted.replace('""', '"') if quoted is not None else match[2].lower())
        at = match.end()
        if not match[3]:
            break
    if at < len(value) and is_strict:
        raise errors.InvalidParameterValue(f'string is not a valid identifier: "{value}"')
    return ArrayValue.of(sqltype.TEXT, tuple(found))
