"""JSON texts: PostgreSQL's validation messages, and jsonb's values and canonical form.

A jsonb value in Python: None, bool, Decimal, str, list, dict (keys in jsonb's order).
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, NoReturn

from gpudb import errors
from gpudb.catalog.types.numeric import format_numeric, parse_numeric, unsigned_zero

DEPTH_MAX = 6000
_CONTEXT_WIDTH = 50
_SPACES = " \t\n\r"
_WORD = re.compile(r"[A-Za-z0-9_\x80-\U0010ffff$]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_NUMBER_RUN = re.compile(r"[-+.A-Za-z0-9_\x80-\U0010ffff$]+")
_ESCAPES = frozenset('"\\/bfnrtu')


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def check_json(text: str) -> None:
    """Raise 22P02 with PostgreSQL's detail unless ``text`` is one JSON value."""
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        _Checker(text).check()


class _Checker:
    """Finds the first fault of a text, as PostgreSQL's parser words it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def check(self) -> None:
        self._value()
        self._skip()
        if self.at < len(self.text):
            self._expected("end of input")

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _SPACES:
            self.at += 1

    def fail(
        self, detail: str, end: int, *,
        error: type[errors.SqlError] = errors.InvalidTextRepresentation,
        message: str = "invalid input syntax for type json",
    ) -> NoReturn:
        """Raise with the line up to ``end`` as context."""
        line_start = self.text.rfind("\n", 0, end) + 1
        number = self.text.count("\n", 0, end) + 1
        start = line_start
        while end - start > _CONTEXT_WIDTH:
            start += 1
        prefix = "..." if start > line_start else ""
        suffix = "..." if end < len(self.text) and self.text[end] not in "\r\n" else ""
        raise error(
            message, detail=detail,
            context=f"JSON data, line {number}: {prefix}{self.text[start:end]}{suffix}",
        )

    def _token(self) -> tuple[str, int]:
        """The text and the end of the token at the position; lexical faults are raised."""
        self._skip()
        text, at = self.text, self.at
        if at >= len(text):
            self.fail("The input string ended unexpectedly.", at)
        character = text[at]
        if character in "{}[],:":
            return character, at + 1
        if character == '"':
            return "string", self._string_end()
        if character == "-" or character.isdigit():
            return "number", self._number_end()
        word = _WORD.match(text, at)
        if word is None:
            self.fail(f'Token "{character}" is invalid.', at + 1)
        if word[0] not in ("true", "false", "null"):
            self.fail(f'Token "{word[0]}" is invalid.', word.end())
        return word[0], word.end()

    def _number_end(self) -> int:
        run = _NUMBER_RUN.match(self.text, self.at)
        match = _NUMBER.match(self.text, self.at)
        assert run is not None
        if match is None or match.end() != run.end():
            self.fail(f'Token "{run[0]}" is invalid.', run.end())
        return match.end()

    def _string_end(self) -> int:
        text, at = self.text, self.at + 1
        while at < len(text):
            character = text[at]
            if character == '"':
                return at + 1
            if ord(character) < 32:
                self.fail(f"Character with value 0x{ord(character):02x} must be escaped.", at)
            if character == "\\":
                at = self._escape_end(at)
            else:
                at += 1
        self.fail(f'Token "{text[self.at :]}" is invalid.', len(text))

    def _escape_end(self, at: int) -> int:
        text = self.text
        letter = text[at + 1 : at + 2]
        if not letter:
            self.fail(f'Token "{text[self.at :]}" is invalid.', len(text))
        if letter not in _ESCAPES:
            self.fail(f'Escape sequence "\\{letter}" is invalid.', at + 2)
        if letter != "u":
            return at + 2
        digits = text[at + 2 : at + 6]
        for i, digit in enumerate(digits):
            if digit not in "0123456789abcdefABCDEF":
                self.fail('"\\u" must be followed by four hexadecimal digits.', at + 3 + i)
        if len(digits) < 4:
            self.fail(f'Token "{text[self.at :]}" is invalid.', len(text))
        return at + 6

    def _expected(self, what: str) -> NoReturn:
        token, end = self._token()
        shown = self.text[self.at : end] if token in ("string", "number") else token
        self.fail(f'Expected {what}, but found "{shown}".', end)

    def _take(self, *wanted: str) -> str | None:
        token, end = self._token()
        if token not in wanted:
            return None
        self.at = end
        return token

    def _value(self) -> None:
        if self._take("string", "number", "true", "false", "null"):
            return
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise errors.StatementTooComplex("stack depth limit exceeded")
        if self._take("{"):
            self._object()
        elif self._take("["):
            self._array()
        else:
            self._expected("JSON value")
        self.depth -= 1

    def _object(self) -> None:
        if self._take("}"):
            return
        is_first = True
        while True:
            if not self._take("string"):
                self._expected('string or "}"' if is_first else "string")
            if not self._take(":"):
                self._expected('":"')
            self._value()
            is_first = False
            if self._take("}"):
                return
            if not self._take(","):
                self._expected('"," or "}"')

    def _array(self) -> None:
        if self._take("]"):
            return
        while True:
            self._value()
            if self._take("]"):
                return
            if not self._take(","):
                self._expected('"," or "]"')


def key_order(key: str) -> tuple[int, bytes]:
    """jsonb orders keys by their length in bytes, then by bytes."""
    raw = key.encode()
    return len(raw), raw


def _ordered(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The last value of each key, keys in jsonb's order."""
    last = dict(pairs)
    return {key: last[key] for key in sorted(last, key=key_order)}


def _number(text: str) -> Decimal:
    return unsigned_zero(parse_numeric(text))


_DECODER = json.JSONDecoder(
    object_pairs_hook=_ordered, parse_float=_number, parse_int=_number,
    parse_constant=_refuse_constant,
)


def load(text: str) -> Any:
    """The jsonb value of a JSON text; 22P02, 22P05 for \\u0000."""
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        _Checker(text).check()
        raise errors.InvalidTextRepresentation("invalid input syntax for type json") from None
    if "\\u" in text:
        _check_escapes(text)
    return value


def _check_escapes(text: str) -> None:
    """Refuse \\u0000 and lone surrogates, which no text can hold."""
    is_high = False
    checker = _Checker(text)
    for match in re.finditer(r"\\(?:u([0-9a-fA-F]{4})|.)|(.)", text, re.DOTALL):
        code = int(match[1], 16) if match[1] else -1
        is_low = 0xDC00 <= code < 0xE000
        if is_high != is_low:
            detail = "high surrogate must not follow a high" if 0xD800 <= code < 0xDC00 else (
                "low surrogate must follow a high"
            )
            end = match.end() if match[1] else match.start() + (text[match.start()] == '"')
            checker.fail(f"Unicode {detail} surrogate.", end)
        if code == 0:
            checker.fail(
                "\\u0000 cannot be converted to text.", match.end(),
                error=errors.UntranslatableCharacter,
                message="unsupported Unicode escape sequence",
            )
        is_high = 0xD800 <= code < 0xDC00


def quote(text: str) -> str:
    """A JSON string; only what JSON demands is escaped."""
    return json.dumps(text, ensure_ascii=False)


def dump(value: Any) -> str:
    """jsonb's canonical text of a value."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Decimal):
        return format_numeric(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(dump, value)) + "]"
    assert isinstance(value, dict), type(value)
    pairs = (f"{quote(k)}: {dump(value[k])}" for k in sorted(value, key=key_order))
    return "{" + ", ".join(pairs) + "}"


def canonical(text: str) -> str:
    """jsonb's text of a JSON text."""
    return dump(load(text))


_RANKS: dict[type, int] = {type(None): 0, str: 1, Decimal: 2, bool: 3, list: 4, dict: 5}


def sort_key(value: Any) -> Any:
    """A key that orders jsonb values as its btree does: Object > Array > Boolean > Number >
    String > Null; an empty array sorts before everything.
    """
    rank = _RANKS[type(value)]
    if isinstance(value, bool):
        return rank, value
    if value is None:
        return (rank,)
    if isinstance(value, str):
        return rank, value.encode()
    if isinstance(value, Decimal):
        return rank, value
    if isinstance(value, list):
        if not value:
            return (-1,)
        return rank, len(value), tuple(map(sort_key, value))
    ordered = sorted(value, key=key_order)
    pairs = tuple((key_order(k), sort_key(value[k])) for k in ordered)
    return rank, len(value), pairs
