"""concat, concat_ws and format: functions of arguments of any type, by their output texts."""

from __future__ import annotations

import re
from typing import Any

from gpudb import errors, sqltype
from gpudb.catalog import types
from gpudb.catalog.functions import scalar
from gpudb.catalog.types.strings import padded
from gpudb.column import Column
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import evaluate
from gpudb.exec.functions.text import quote_identifier, quote_literal
from gpudb.sqltype import TEXT_TYPE


class _Writer:
    """Output texts of the arguments' types."""

    def __init__(self, context: EvaluationContext, columns: tuple[Column, ...]) -> None:
        self.settings = context.query.types
        snapshot = context.query.snapshot
        self.columns = columns
        self.types = [types.get(column.type.oid, snapshot) for column in columns]

    def text(self, place: int, value: Any) -> str:
        text = self.types[place].format(value, self.settings)
        column = self.columns[place]
        return padded(text, column.type.typmod) if column.type.oid == sqltype.BPCHAR else text


@scalar("text_concat", examples=(("concat('abcde', 2, NULL, 22)", "abcde222"),))
def concat(context: EvaluationContext, *columns: Column) -> Column:
    writer = _Writer(context, columns)

    def join(*values: Any) -> str:
        return "".join(writer.text(i, v) for i, v in enumerate(values) if v is not None)

    return evaluate(context, join, columns, TEXT_TYPE, strict=False)


@scalar("text_concat_ws", examples=(("concat_ws(',', 'abcde', 2, NULL, 22)", "abcde,2,22"),))
def concat_with(context: EvaluationContext, *columns: Column) -> Column:
    writer = _Writer(context, columns)

    def join(separator: str | None, *values: Any) -> str | None:
        if separator is None:
            return None
        return separator.join(
            writer.text(i, v) for i, v in enumerate(values, 1) if v is not None
        )

    return evaluate(context, join, columns, TEXT_TYPE, strict=False)


_SPECIFIER = re.compile(r"%(?:(%)|(?:([0-9]+)\$)?(-*)(?:(\*)(?:([0-9]+)\$)?|([0-9]+))?(.)?)",
                        re.DOTALL)


class _Formatter:
    """One evaluation of format()."""

    def __init__(self, writer: _Writer, values: tuple[Any, ...]) -> None:
        self.writer = writer
        self.values = values
        self.place = 0

    def _argument(self, number: str | None) -> Any:
        if number is not None:
            self.place = int(number)
            if self.place == 0:
                raise errors.InvalidParameterValue(
                    "format specifies argument 0, but arguments are numbered from 1"
                )
        else:
            self.place += 1
        if self.place >= len(self.values):
            raise errors.InvalidParameterValue("too few arguments for format()")
        return self.values[self.place]

    def replace(self, match: re.Match[str]) -> str:
        percent, number, flags, star, star_number, width_text, letter = match.groups()
        if percent:
            return "%"
        width = int(width_text or 0)
        if star:
            width = int(self._argument(star_number) or 0)
        if letter is None:
            raise errors.InvalidParameterValue(
                "unterminated format() type specifier",
                hint='For a single "%" use "%%".',
            )
        if letter not in "sIL":
            raise errors.InvalidParameterValue(
                f'unrecognized format() type specifier "{letter}"',
                hint='For a single "%" use "%%".',
            )
        text = self._text(self._argument(number), letter)
        is_left = bool(flags) or width < 0
        return text.ljust(abs(width)) if is_left else text.rjust(abs(width))

    def _text(self, value: Any, letter: str) -> str:
        if value is None:
            if letter == "I":
                raise errors.NullValueNotAllowed(
                    "null values cannot be formatted as an SQL identifier"
                )
            return "NULL" if letter == "L" else ""
        text = self.writer.text(self.place, value)
        if letter == "I":
            return quote_identifier(text)
        return quote_literal(text) if letter == "L" else text


@scalar("text_format", "text_format_nv", fallible=True,
        examples=(("format('Hello %s, %1$s', 'World')", "Hello World, World"),))
def format_text(context: EvaluationContext, *columns: Column) -> Column:
    writer = _Writer(context, columns)

    def fill(template: str | None, *values: Any) -> str | None:
        if template is None:
            return None
        return _SPECIFIER.sub(_Formatter(writer, (template, *values)).replace, template)

    return evaluate(context, fill, columns, TEXT_TYPE, strict=False)
