"""What differs between two answers of a query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import Any

RELATIVE_ERROR_MAX = 1e-9
BPCHAR = 1042
SORT_KEYS = {3: (1, 2), 5: (1,), 10: (2,), 11: (1,), 18: (4, 3)}
"""Columns that ORDER BY names where these don't identify a row: ties may come in any order."""

Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """Column names, type OIDs and the rows in text form (None for NULL)."""

    names: tuple[str, ...]
    oids: tuple[int, ...]
    rows: list[tuple[str | None, ...]]


def by_ties(rows: Sequence[Row], number: int) -> list[Row]:
    """The rows with those that tie in the query's order sorted by their text."""
    keys = SORT_KEYS.get(number)
    if keys is None:
        return list(rows)
    found: list[Row] = []
    for _, tied in groupby(rows, lambda row: [str(row[key]) for key in keys]):
        found += sorted(tied, key=lambda row: [str(value) for value in row])
    return found


def with_text(answer: Answer, expected: Answer, number: int) -> str:
    """The first difference to PostgreSQL's text, empty when there is none."""
    if answer.names != expected.names:
        return f"columns {answer.names}, not {expected.names}"
    mine, theirs = by_ties(answer.rows, number), by_ties(expected.rows, number)
    if len(mine) != len(theirs):
        return f"{len(mine)} rows, not {len(theirs)}"
    for index, (left, right) in enumerate(zip(mine, theirs, strict=True)):
        if tuple(left) != tuple(right):
            return f"row {index + 1}: {left}, not {right}"
    return ""


def with_values(answer: Answer, expected: Sequence[Row], number: int) -> str:
    """The first difference to DuckDB's values: numbers exactly, its floats within 1e-9."""
    if len(answer.rows) != len(expected):
        return f"{len(answer.rows)} rows, not {len(expected)}"
    is_padded = [oid == BPCHAR for oid in answer.oids]
    mine = by_ties(answer.rows, number)
    theirs = by_ties(expected, number)
    for index, (left, right) in enumerate(zip(mine, theirs, strict=True)):
        for column, (text, value) in enumerate(zip(left, right, strict=True)):
            if not is_same(text, value, is_padded=is_padded[column]):
                name = answer.names[column]
                return f"row {index + 1}, {name}: {text!r}, not {value!r}"
    return ""


def is_same(text: str | None, value: Any, *, is_padded: bool) -> bool:
    if text is None or value is None:
        return text is None and value is None
    if isinstance(value, float):
        return math.isclose(float(text), value, rel_tol=RELATIVE_ERROR_MAX)
    if isinstance(value, (int, Decimal)):
        return Decimal(text) == value
    if isinstance(value, str):
        return text.rstrip(" ") == value.rstrip(" ") if is_padded else text == value
    return text == str(value)


def to_text(answer: Answer) -> str:
    """The file form of an answer: COPY's text format with a header."""
    lines = ["\t".join(answer.names)]
    lines += ["\t".join("\\N" if v is None else escape(v) for v in row) for row in answer.rows]
    return "\n".join(lines) + "\n"


def from_text(text: str) -> Answer:
    """An answer of a file, without types."""
    lines = text.rstrip("\n").split("\n")
    rows = [
        tuple(None if v == "\\N" else unescape(v) for v in line.split("\t")) for line in lines[1:]
    ]
    return Answer(tuple(lines[0].split("\t")), (), rows)


def escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def unescape(value: str) -> str:
    parts = value.split("\\\\")
    return "\\".join(part.replace("\\t", "\t").replace("\\n", "\n") for part in parts)
