"""The fields of a date/time text: how PostgreSQL cuts a string and names its words.

The grammar is that of PostgreSQL's manual, appendix B ("Date/Time Support").
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from gpudb import errors

FIELDS_MAX = 25
WORD_MAX = 10
"""Words are compared by their first ten characters."""


class FieldKind(enum.Enum):
    NUMBER = "number"
    DATE = "date"
    TIME = "time"
    ZONE = "zone"
    WORD = "word"
    SIGNED_WORD = "signed word"


@dataclass(frozen=True, slots=True)
class Field:
    text: str
    kind: FieldKind


class Problem(enum.Enum):
    """What is wrong with a text."""

    FORMAT = "format"
    RANGE = "range"
    MONTH_OR_DAY = "month or day"
    INTERVAL_RANGE = "interval range"
    ZONE_RANGE = "zone range"


class FieldError(Exception):
    """A problem with a text; ``refusal`` makes PostgreSQL's error of it."""

    def __init__(self, problem: Problem = Problem.FORMAT) -> None:
        super().__init__(problem.value)
        self.problem = problem


def refusal(problem: Problem, text: str, type_name: str) -> errors.SqlError:
    """The error PostgreSQL raises for a problem."""
    match problem:
        case Problem.RANGE:
            return errors.DatetimeFieldOverflow(f'date/time field value out of range: "{text}"')
        case Problem.MONTH_OR_DAY:
            return errors.DatetimeFieldOverflow(
                f'date/time field value out of range: "{text}"',
                hint='Perhaps you need a different "datestyle" setting.',
            )
        case Problem.INTERVAL_RANGE:
            return errors.IntervalFieldOverflow(f'interval field value out of range: "{text}"')
        case Problem.ZONE_RANGE:
            return errors.InvalidTimeZoneDisplacementValue(
                f'time zone displacement out of range: "{text}"'
            )
        case Problem.FORMAT:
            return errors.InvalidDatetimeFormat(
                f'invalid input syntax for type {type_name}: "{text}"'
            )


class Token(enum.Enum):
    """What a word of a date means."""

    MONTH = enum.auto()
    WEEKDAY = enum.auto()
    MERIDIEM = enum.auto()
    ERA = enum.auto()
    UNIT = enum.auto()
    ISO_TIME = enum.auto()
    RESERVED = enum.auto()
    IGNORED = enum.auto()
    DAYLIGHT = enum.auto()


def _words() -> dict[str, tuple[Token, str | int]]:
    found: dict[str, tuple[Token, str | int]] = {}
    months = (
        "jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july",
        "aug august", "sep sept september", "oct october", "nov november", "dec december",
    )
    days = (
        "sun sunday", "mon monday", "tue tues tuesday", "wed weds wednesday",
        "thu thur thurs thursday", "fri friday", "sat saturday",
    )
    for number, spellings in enumerate(months, 1):
        found.update(dict.fromkeys(spellings.split(), (Token.MONTH, number)))
    for number, spellings in enumerate(days):
        found.update(dict.fromkeys(spellings.split(), (Token.WEEKDAY, number)))
    for word in ("now", "today", "tomorrow", "yesterday", "epoch", "allballs"):
        found[word] = (Token.RESERVED, word)
    found["infinity"] = (Token.RESERVED, "infinity")
    found["-infinity"] = (Token.RESERVED, "-infinity")
    units = {
        "d": "day", "h": "hour", "m": "month", "mm": "minute", "s": "second", "y": "year",
        "j": "julian", "jd": "julian", "julian": "julian", "dow": "dow", "doy": "doy",
        "isodow": "isodow", "isoyear": "isoyear",
    }
    found.update({w: (Token.UNIT, unit) for w, unit in units.items()})
    found.update({w: (Token.MERIDIEM, w) for w in ("am", "pm")})
    found.update({w: (Token.ERA, w) for w in ("ad", "bc")})
    found.update({w: (Token.IGNORED, w) for w in ("at", "on")})
    found["t"] = (Token.ISO_TIME, "time")
    found["dst"] = (Token.DAYLIGHT, 3600)
    return {w[:WORD_MAX]: meaning for w, meaning in found.items()}


WORDS = _words()


def word_meaning(word: str) -> tuple[Token, str | int] | None:
    return WORDS.get(word[:WORD_MAX])


_SPACE = re.compile(r"[ \t\n\r\f\v]+")
_TIME = re.compile(r"[0-9]+:[0-9:.]*", re.ASCII)
_DIGITS = re.compile(r"[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"\.[0-9]*", re.ASCII)
_LETTERS = re.compile(r"[A-Za-z]+")
_PUNCTUATED = re.compile(r"[A-Za-z0-9+\-/_.:]+")
_ZONE = re.compile(r"[+-][ \t\n\r\f\v]*[0-9][0-9:.\-]*")
_SIGNED = re.compile(r"[+-][ \t\n\r\f\v]*[A-Za-z]+")


def _digit_field(text: str, at: int) -> tuple[Field, int]:
    match = _TIME.match(text, at)
    if match is not None:
        return Field(match[0], FieldKind.TIME), match.end()
    digits = _DIGITS.match(text, at)
    assert digits is not None
    end = digits.end()
    delimiter = text[end : end + 1]
    if delimiter not in ("-", "/", "."):
        return Field(digits[0], FieldKind.NUMBER), end
    end += 1
    kind = FieldKind.NUMBER if delimiter == "." else FieldKind.DATE
    more = _DIGITS.match(text, end)
    if more is None:
        pattern = re.compile(rf"[A-Za-z0-9{re.escape(delimiter)}]*")
        tail = pattern.match(text, end)
        assert tail is not None
        if delimiter == "." and not tail[0]:
            return Field(text[at:end], FieldKind.NUMBER), end
        return Field(text[at : tail.end()].lower(), FieldKind.DATE), tail.end()
    end = more.end()
    if text[end : end + 1] == delimiter:
        kind = FieldKind.DATE
        pattern = re.compile(rf"[0-9{re.escape(delimiter)}]*")
        tail = pattern.match(text, end)
        assert tail is not None
        end = tail.end()
    return Field(text[at:end], kind), end


def _letter_field(text: str, at: int) -> tuple[Field, int]:
    match = _LETTERS.match(text, at)
    assert match is not None
    end = match.end()
    following = text[end : end + 1]
    is_date = following in ("-", "/", ".") if following else False
    if following and (following == "+" or following.isdigit()):
        is_date = word_meaning(match[0].lower()) is None
    if not is_date:
        return Field(match[0].lower(), FieldKind.WORD), end
    longer = _PUNCTUATED.match(text, at)
    assert longer is not None
    return Field(longer[0].lower(), FieldKind.DATE), longer.end()


def cut(text: str) -> list[Field]:
    """The fields of a date, time or interval text; FieldError where it has none of a kind."""
    fields: list[Field] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character in " \t\n\r\f\v":
            at += 1
            continue
        if len(fields) >= FIELDS_MAX:
            raise FieldError
        field: Field | None = None
        if "0" <= character <= "9":
            field, at = _digit_field(text, at)
        elif character == ".":
            match = _DECIMAL.match(text, at)
            assert match is not None
            field, at = Field(match[0], FieldKind.NUMBER), match.end()
        elif character.isascii() and character.isalpha():
            field, at = _letter_field(text, at)
        elif character in "+-":
            field, at = _sign_field(text, at)
        elif character.isascii() and character.isprintable():
            at += 1
        else:
            raise FieldError
        if field is not None:
            fields.append(field)
    return fields


def _sign_field(text: str, at: int) -> tuple[Field, int]:
    match = _ZONE.match(text, at)
    if match is not None:
        return Field(_SPACE.sub("", match[0]), FieldKind.ZONE), match.end()
    match = _SIGNED.match(text, at)
    if match is None:
        raise FieldError
    return Field(_SPACE.sub("", match[0]).lower(), FieldKind.SIGNED_WORD), match.end()


def fraction_microseconds(text: str) -> int:
    """Microseconds of a fraction such as ``.5``; "." alone is 0."""
    if text == ".":
        return 0
    if not _DECIMAL.fullmatch(text):
        raise FieldError
    return round(float("0" + text) * 1_000_000)


def integer(text: str) -> int:
    """A C int; FieldError(RANGE) beyond."""
    value = int(text)
    if not -(2**31) <= value < 2**31:
        raise FieldError(Problem.RANGE)
    return value


_CLOCK = re.compile(r"([0-9]+):([0-9]+)(?::([0-9]+)(\.[0-9]*)?|(\.[0-9]*))?", re.ASCII)


def clock(text: str, *, is_interval: bool = False, minutes_first: bool = False) -> int:
    """Microseconds of ``hh:mm[:ss[.f]]`` (or ``mm:ss.f``); hours unbounded for intervals."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise FieldError
    first, second = int(match[1]), integer(match[2])
    if match[5] is not None:
        hours, minutes, seconds = 0, first, second
        fraction = fraction_microseconds(match[5])
    elif match[3] is None:
        hours, minutes, seconds, fraction = first, second, 0, 0
        if minutes_first:
            hours, minutes, seconds = 0, first, second
    else:
        hours, minutes, seconds = first, second, integer(match[3])
        fraction = fraction_microseconds(match[4]) if match[4] else 0
    if minutes > 59 or seconds > 60 or fraction > 1_000_000:
        raise FieldError(Problem.RANGE)
    total = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + fraction
    if not is_interval and (hours > 24 or total > 86_400_000_000):
        raise FieldError(Problem.RANGE)
    if total >= 2**63:
        raise FieldError(Problem.RANGE)
    return total


_OFFSET = re.compile(r"([+-])([0-9]+)(?::([0-9]+)(?::([0-9]+))?)?", re.ASCII)
ZONE_HOURS_MAX = 15


def zone_offset(text: str) -> int:
    """Seconds east of Greenwich of ``+hh[:mm[:ss]]`` or ``+hhmm``."""
    match = _OFFSET.fullmatch(text)
    if match is None:
        raise FieldError
    hours, minutes = integer(match[2]), int(match[3] or 0)
    if match[3] is None and len(text) > 3:
        hours, minutes = divmod(hours, 100)
    seconds = int(match[4] or 0)
    if hours > ZONE_HOURS_MAX or minutes > 59 or seconds > 59:
        raise FieldError(Problem.ZONE_RANGE)
    total = (hours * 60 + minutes) * 60 + seconds
    return -total if match[1] == "-" else total
