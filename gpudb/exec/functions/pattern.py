"""LIKE, ILIKE and SIMILAR TO.

A LIKE pattern becomes a ``Shape``: the pieces of literal text between its % signs. Columns of
text are searched in their flat buffer; dictionary columns are decided once per entry.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from gpudb import errors, sqltype
from gpudb.catalog.functions import scalar
from gpudb.column import Column, all_valid, boolean_column, byte_strings, take_rows
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import entrywise, evaluate, rowwise
from gpudb.exec.functions.text import with_padding
from gpudb.kernels import text as texts
from gpudb.layout import Kind
from gpudb.sqltype import BOOLEAN

_PATTERNS_MAX = 1024
_ANY, _ONE = "%", "_"


@dataclass(frozen=True, slots=True)
class Shape:
    """A LIKE pattern: ``pieces`` between % signs; each piece a tuple of characters, None = _.

    ``is_broken``: it ends with a single escape, an error for strings that get there.
    """

    pieces: tuple[tuple[str | None, ...], ...]
    is_broken: bool = False

    @property
    def is_plain(self) -> bool:
        """No _ anywhere."""
        return not self.is_broken and all(None not in piece for piece in self.pieces)

    def literals(self) -> list[bytes]:
        return ["".join(c or "" for c in piece).encode() for piece in self.pieces]


@lru_cache(_PATTERNS_MAX)
def parse_like(pattern: str) -> Shape:
    """The shape of a pattern with backslash escapes."""
    pieces: list[list[str | None]] = [[]]
    is_broken = False
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, None)
            is_broken = escaped is None
            if escaped is not None:
                pieces[-1].append(escaped)
        elif character == _ANY:
            pieces.append([])
        else:
            pieces[-1].append(None if character == _ONE else character)
    return Shape(tuple(tuple(piece) for piece in pieces), is_broken)


@lru_cache(_PATTERNS_MAX)
def like_matcher(pattern: str) -> Callable[[str], bool]:
    """A test of one string against a LIKE pattern."""
    shape = parse_like(pattern)
    source = ".*".join(
        "".join("." if c is None else re.escape(c) for c in piece) for piece in shape.pieces
    )
    compiled = re.compile(source, re.DOTALL)
    if shape.is_broken:
        return functools.partial(_broken_match, re.compile(f"(?:{source}).", re.DOTALL))
    return lambda text: compiled.fullmatch(text) is not None


def _broken_match(reaches_end: re.Pattern[str], text: str) -> bool:
    """A pattern that ends with its escape: 22025 where a string goes on at that place."""
    if reaches_end.match(text):
        raise errors.InvalidEscapeSequence("LIKE pattern must not end with escape character")
    return False


def _plain_matcher(shape: Shape) -> Callable[[bytes], bool]:
    first, *middle = shape.literals()
    if not middle:
        return lambda value: value == first
    last = middle.pop()

    def matches(value: bytes) -> bool:
        if len(value) < len(first) + len(last) or not value.startswith(first):
            return False
        if not value.endswith(last):
            return False
        at, stop = len(first), len(value) - len(last)
        for literal in middle:
            found = value.find(literal, at, stop)
            if found < 0:
                return False
            at = found + len(literal)
        return True

    return matches


def matches_like(column: Column, pattern: str) -> Tensor:
    """bool (R): which strings match; garbage under NULLs."""
    shape = parse_like(pattern)
    if column.layout.kind is Kind.DICTIONARY:
        test = _byte_test(shape, pattern)
        return entrywise(column, lambda entries: np.fromiter(map(test, entries), bool))
    if not shape.is_plain:
        return _matches_one_by_one(column, shape, pattern)
    literals = shape.literals()
    if len(literals) == 1:
        test = _byte_test(shape, pattern)
        constant = texts.text_column(
            column.type, np.zeros(1, np.int64), np.array([len(literals[0])], np.int32),
            np.frombuffer(literals[0], np.uint8), None,
        )
        return texts.equal(column, constant)
    compiled = texts.holds_in_order(column, literals)
    if compiled is not None:
        return compiled
    candidates = None
    filters = [(texts.starts_with, literals[0]), (texts.ends_with, literals[-1])]
    if len(literals) == 3 and not literals[0] and not literals[2]:
        return texts.contains(column, literals[1])
    filters += [(texts.contains, literal) for literal in literals[1:-1]]
    for test_column, literal in filters:
        if literal:
            found = test_column(column, literal)
            candidates = found if candidates is None else candidates & found
    if candidates is None:
        return torch.ones(column.rows, dtype=torch.bool)
    if len([literal for literal in literals if literal]) < 2:
        return candidates
    rows = candidates.nonzero().flatten()
    test = _byte_test(shape, pattern)
    verdicts = list(map(test, byte_strings(take_rows(column, rows, column.rows))))
    candidates[rows] = torch.tensor(verdicts, dtype=torch.bool)
    return candidates


def _byte_test(shape: Shape, pattern: str) -> Callable[[bytes], bool]:
    if shape.is_plain:
        return _plain_matcher(shape)
    test = like_matcher(pattern)
    return lambda value: test(value.decode("utf-8", "replace"))


def _matches_one_by_one(column: Column, shape: Shape, pattern: str) -> Tensor:
    test = _byte_test(shape, pattern)
    return torch.tensor(list(map(test, byte_strings(column))), dtype=torch.bool)


def _like_body(*, negated: bool) -> Callable[..., Column]:
    def body(context: EvaluationContext, column: Column, pattern: Column) -> Column:
        column = with_padding(context, column)
        valid = all_valid(column, pattern)
        if pattern.rows == 1 and (pattern.valid is None or bool(pattern.valid[0])):
            text = byte_strings(pattern)[0].decode()
            if not parse_like(text).is_broken:
                verdicts = matches_like(column, text)
                return boolean_column(BOOLEAN, ~verdicts if negated else verdicts, valid)
        return evaluate(
            context, lambda value, text: like_matcher(text)(value) != negated,
            (column, pattern), BOOLEAN,
        )

    return body


scalar(
    "textlike", "namelike", fallible=True,
    examples=(("'abc' LIKE 'a%'", "t"), ("'abc' LIKE '_b_'", "t"), ("'abc' LIKE 'c'", "f")),
)(_like_body(negated=False))
scalar("textnlike", "namenlike", fallible=True)(_like_body(negated=True))


@lru_cache(_PATTERNS_MAX)
def _insensitive(pattern: str) -> Callable[[str], bool]:
    test = like_matcher(pattern.lower())
    return lambda text: test(text.lower())


rowwise("texticlike", "nameiclike", result=sqltype.BOOL,
        examples=(("'Abc' ILIKE 'aB%'", "t"),))(
    lambda text, pattern: _insensitive(pattern)(text)
)
rowwise("texticnlike", "nameicnlike", result=sqltype.BOOL)(
    lambda text, pattern: not _insensitive(pattern)(text)
)


def _bytes_like(value: bytes, pattern: bytes) -> bool:
    return like_matcher(pattern.decode("latin-1"))(value.decode("latin-1"))


rowwise("bytealike")(_bytes_like)
rowwise("byteanlike")(lambda value, pattern: not _bytes_like(value, pattern))


@rowwise("like_escape", examples=(("like_escape('a#%', '#')", "a\\%"),))
def like_escape(pattern: str, escape: str) -> str:
    """The pattern with backslash for its escape character."""
    if len(escape) > 1:
        raise errors.InvalidEscapeSequence(
            "invalid escape string", hint="Escape string must be empty or one character."
        )
    if not escape:
        return pattern.replace("\\", "\\\\")
    if escape == "\\":
        return pattern
    parts: list[str] = []
    after_escape = False
    for character in pattern:
        if character == escape and not after_escape:
            parts.append("\\")
            after_escape = True
        elif character == "\\" and not after_escape:
            parts.append("\\\\")
        else:
            parts.append(character)
            after_escape = False
    return "".join(parts)


@lru_cache(_PATTERNS_MAX)
def similar_to_regex(pattern: str, escape: str) -> str:
    """The POSIX expression of a SIMILAR TO pattern, as PostgreSQL builds it."""
    if len(escape) > 1:
        raise errors.InvalidEscapeSequence(
            "invalid escape string", hint="Escape string must be empty or one character."
        )
    parts = ["^(?:"]
    in_bracket = False
    quotes = 0
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            following = next(characters, None)
            if following == '"' and not in_bracket:
                parts.append("){1,1}?(" if quotes == 0 else "){1,1}(?:")
                quotes += 1
                if quotes > 2:
                    raise errors.InvalidUseOfEscapeCharacter(
                        "SQL regular expression may not contain more than two escape-"
                        "double-quote separators"
                    )
            elif following is not None:
                parts.append("\\" + following)
        elif in_bracket:
            parts.append("\\\\" if character == "\\" else character)
            in_bracket = character != "]"
        elif character == "[":
            parts.append(character)
            in_bracket = True
        elif character == "%":
            parts.append(".*")
        elif character == "_":
            parts.append(".")
        elif character == "(":
            parts.append("(?:")
        elif character in "\\.^$":
            parts.append("\\" + character)
        else:
            parts.append(character)
    return "".join(parts) + ")$"


rowwise("similar_to_escape_1")(lambda pattern: similar_to_regex(pattern, "\\"))
rowwise("similar_to_escape_2")(similar_to_regex)


@rowwise("similar_escape")
def similar_escape(pattern: str | None, escape: str | None) -> str | None:
    if pattern is None:
        return None
    return similar_to_regex(pattern, "\\" if escape is None else escape)
