"""to_char of dates, times and intervals; to_date and to_timestamp."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpudb import errors
from gpudb.catalog.types import zones
from gpudb.catalog.types.calendar import (
    DAY_MICROSECONDS,
    DAY_NAMES,
    MONTH_NAMES,
    civil,
    days_of,
    is_finite_timestamp,
    iso_week,
    iso_week_start,
    month_length,
    weekday,
)
from gpudb.catalog.types.intervals import IntervalFields
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import rowwise
from gpudb.exec.functions.templates import ROMAN_MONTHS, Token, ordinal, tokens
from gpudb.exec.functions.timestamps import Interval, checked_timestamp, to_utc

_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class _Moment:
    """The fields that patterns show."""

    year: int
    month: int
    day: int
    microseconds: int
    days: int | None
    east: int | None = None
    zone: str = ""

    @property
    def shown_year(self) -> int:
        return self.year if self.days is None or self.year > 0 else 1 - self.year

    @property
    def hour(self) -> int:
        return _toward_zero(self.microseconds, 3600 * _SECOND)

    @property
    def minute(self) -> int:
        return _toward_zero(self.microseconds, 60 * _SECOND) % 60 if self.microseconds >= 0 else (
            -(-self.microseconds // (60 * _SECOND) % 60)
        )

    @property
    def second(self) -> int:
        rest = abs(self.microseconds) // _SECOND % 60
        return rest if self.microseconds >= 0 else -rest

    @property
    def fraction(self) -> int:
        return abs(self.microseconds) % _SECOND


def _toward_zero(value: int, unit: int) -> int:
    return value // unit if value >= 0 else -(-value // unit)


def _number(value: int, width: int, token: Token) -> str:
    text = str(value) if not token.fills else f"{'-' if value < 0 else ''}{abs(value):0{width}d}"
    return text + (ordinal(value, token.ordinal) if token.ordinal else "")


def _cased(name: str, pattern: str, width: int, token: Token) -> str:
    text = name.upper() if pattern.isupper() else name.lower() if pattern.islower() else name
    return text.ljust(width) if token.fills and width else text


def _meridiem(moment: _Moment, pattern: str) -> str:
    letter = "p" if moment.hour % 24 >= 12 else "a"
    text = f"{letter}.m." if "." in pattern else f"{letter}m"
    return text.upper() if pattern.isupper() else text


def _era(moment: _Moment, pattern: str) -> str:
    text = "bc" if moment.year <= 0 else "ad"
    text = f"{text[0]}.{text[1]}." if "." in pattern else text
    return text.upper() if pattern.isupper() else text


def _time_text(moment: _Moment, token: Token) -> str | None:
    pattern = token.pattern
    match pattern:
        case "HH24":
            return _number(moment.hour, 2, token)
        case "HH" | "HH12":
            hour = moment.hour
            return _number(12 if hour % 12 == 0 else (hour % 12 if hour >= 0 else -(-hour % 12)),
                           2, token)
        case "MI":
            return _number(moment.minute, 2, token)
        case "SS":
            return _number(moment.second, 2, token)
        case "MS":
            return _number(moment.fraction // 1000, 3, token)
        case "US":
            return _number(moment.fraction, 6, token)
        case "SSSS" | "SSSSS":
            return _number(moment.microseconds // _SECOND, 0, token)
        case _ if pattern[:2] == "FF":
            digits = int(pattern[2])
            return _number(moment.fraction // 10 ** (6 - digits), digits, token)
        case _ if pattern.upper().replace(".", "") in ("AM", "PM"):
            return _meridiem(moment, pattern)
        case "TZ" | "tz":
            return moment.zone.lower() if pattern == "tz" else moment.zone
        case "TZH" | "TZM" | "OF":
            return _offset_text(moment.east or 0, pattern)
        case _:
            return None


def _offset_text(east: int, pattern: str) -> str:
    hours, minutes = divmod(abs(east) // 60, 60)
    sign = "-" if east < 0 else "+"
    if pattern == "TZM":
        return f"{minutes:02d}"
    text = f"{sign}{hours:02d}"
    return text + (f":{minutes:02d}" if pattern == "OF" and minutes else "")


def _year_text(moment: _Moment, token: Token) -> str:
    pattern = token.pattern
    year = moment.shown_year
    if pattern[0] == "I" and moment.days is not None:
        year = iso_week(moment.days)[0]
        year = year if year > 0 else 1 - year
    if pattern == "Y,YYY":
        text = f"{year // 1000},{year % 1000:03d}"
        return text + (ordinal(year, token.ordinal) if token.ordinal else "")
    width = len(pattern)
    if width < 4:
        year %= 10**width
    return _number(year, width, token)


def _date_text(moment: _Moment, token: Token) -> str | None:
    pattern = token.pattern
    upper = pattern.upper()
    if upper in ("Y,YYY", "YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "I"):
        return _year_text(moment, token)
    if upper.replace(".", "") in ("AD", "BC"):
        return _era(moment, pattern)
    match upper:
        case "MM":
            return _number(moment.month, 2, token)
        case "DD":
            return _number(moment.day, 2, token)
        case "Q":
            return _number((moment.month - 1) // 3 + 1, 1, token) if moment.month else ""
        case "CC":
            year = moment.year
            century = (year + 99) // 100 if moment.days is None or year > 0 else (
                -((99 - (year - 1)) // 100)
            )
            return _number(century, 2, token)
        case "RM":
            if not moment.month:
                return ""
            name = ROMAN_MONTHS[moment.month - 1]
            return _cased(name, pattern, 4, token)
        case "MONTH" if moment.month:
            return _cased(MONTH_NAMES[moment.month - 1], pattern, 9, token)
        case "MON" if moment.month:
            return _cased(MONTH_NAMES[moment.month - 1][:3], pattern, 0, token)
        case _:
            return None if moment.days is None else _day_text(moment, token, moment.days)


def _day_text(moment: _Moment, token: Token, days: int) -> str | None:
    pattern = token.pattern
    of_year = days - days_of(moment.year, 1, 1) + 1
    match pattern.upper():
        case "DAY":
            return _cased(DAY_NAMES[weekday(days)], pattern, 9, token)
        case "DY":
            return _cased(DAY_NAMES[weekday(days)][:3], pattern, 0, token)
        case "DDD":
            return _number(of_year, 3, token)
        case "IDDD":
            return _number(days - iso_week_start(iso_week(days)[0], 1) + 1, 3, token)
        case "D":
            return _number(weekday(days) + 1, 1, token)
        case "ID":
            return _number(weekday(days) or 7, 1, token)
        case "WW":
            return _number((of_year - 1) // 7 + 1, 2, token)
        case "IW":
            return _number(iso_week(days)[1], 2, token)
        case "W":
            return _number((moment.day - 1) // 7 + 1, 1, token)
        case "J":
            return _number(days + 2451545, 0, token)
        case _:
            return None


def _render(moment: _Moment, template: str) -> str | None:
    if not template:
        return None
    parts = []
    for token in tokens(template):
        if not token.pattern:
            parts.append(token.text)
            continue
        text = _time_text(moment, token)
        if text is None:
            text = _date_text(moment, token)
        parts.append(text or "")
    return "".join(parts)


def _moment_of(local: int, *, east: int | None = None, zone: str = "") -> _Moment:
    days, rest = divmod(local, DAY_MICROSECONDS)
    year, month, day = civil(days)
    return _Moment(year, month, day, rest, days, east, zone)


@rowwise(
    "timestamp_to_char",
    examples=(("to_char(timestamp '2002-04-20 17:31:12.66', 'HH12:MI:SS')", "05:31:12"),),
)
def timestamp_text(value: int, template: str) -> str | None:
    return _render(_moment_of(value), template) if is_finite_timestamp(value) else None


@rowwise("timestamptz_to_char", needs_context=True)
def timestamptz_text(context: EvaluationContext, value: int, template: str) -> str | None:
    if not is_finite_timestamp(value):
        return None
    zone = context.query.types.time_zone
    seconds = value // _SECOND
    east = zones.offset_at(zone, seconds)
    name = zones.abbreviation_at(zone, seconds)
    return _render(_moment_of(value + east * _SECOND, east=east, zone=name), template)


@rowwise("interval_to_char", examples=(("to_char(interval '15h 2m 12s', 'HH24:MI:SS')",
                                        "15:02:12"),))
def interval_text(value: Interval, template: str) -> str | None:
    parts = IntervalFields.of(value)
    return _render(_Moment(parts.years, parts.months, parts.days, value[2], None), template)


# --- reading ---


@dataclass(slots=True)
class _Fields:
    values: dict[str, int] = field(default_factory=dict)
    is_pm: bool | None = None
    is_bc: bool = False
    east: int | None = None
    zone: str = ""


_WIDTHS = {
    "YYYY": 4, "IYYY": 4, "YYY": 3, "IYY": 3, "YY": 2, "IY": 2, "Y": 1, "I": 1, "MM": 2, "DD": 2,
    "DDD": 3, "IDDD": 3, "D": 1, "ID": 1, "HH": 2, "HH12": 2, "HH24": 2, "MI": 2, "SS": 2,
    "MS": 3, "US": 6, "SSSS": 5, "SSSSS": 5, "WW": 2, "IW": 2, "W": 1, "CC": 2, "J": 7, "Q": 1,
    "FF1": 1, "FF2": 2, "FF3": 3, "FF4": 4, "FF5": 5, "FF6": 6, "TZH": 2, "TZM": 2,
}
_NAMES = {"HH": "hour12", "HH12": "hour12", "HH24": "hour", "MI": "minute", "SS": "second",
          "MM": "month", "DD": "day", "DDD": "doy", "D": "dow", "WW": "week", "IW": "isoweek",
          "W": "month_week", "CC": "century", "J": "julian", "SSSS": "day_second",
          "SSSSS": "day_second", "ID": "isodow", "IDDD": "isodoy"}


class _Reader:
    """Reads a text along a template."""

    def __init__(self, text: str, template: str) -> None:
        self.text = text
        self.at = 0
        self.tokens = tokens(template)
        self.fields = _Fields()

    def read(self) -> _Fields:
        for place, token in enumerate(self.tokens):
            if not token.pattern:
                self._separator(token.text)
                continue
            if self.at >= len(self.text.rstrip()):
                break
            self._pattern(token, self._is_bounded(place))
        return self.fields

    def _is_bounded(self, place: int) -> bool:
        """Whether the next token is a number too, so that the width counts."""
        following = self.tokens[place + 1 : place + 2]
        return bool(following) and following[0].pattern in _WIDTHS

    def _skip_spaces(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _separator(self, text: str) -> None:
        for character in text:
            if character.isspace():
                self._skip_spaces()
                continue
            current = self.text[self.at : self.at + 1]
            if (current and (character == current or not (
                character.isalnum() or current.isalnum()
            ))) or (character.isalnum() and current):
                self.at += 1

    def _pattern(self, token: Token, is_bounded: bool) -> None:
        pattern = token.pattern
        upper = pattern.upper().replace(".", "")
        self._skip_spaces()
        if upper in ("AM", "PM"):
            self.fields.is_pm = self._word(("am", "pm"), pattern) == 1
        elif upper in ("AD", "BC"):
            self.fields.is_bc = self._word(("ad", "bc"), pattern) == 1
        elif upper == "MONTH":
            self._store("month", self._word([m.lower() for m in MONTH_NAMES], pattern) + 1)
        elif upper == "MON":
            self._store("month", self._word([m[:3].lower() for m in MONTH_NAMES], pattern) + 1)
        elif upper == "DAY":
            self._word([d.lower() for d in DAY_NAMES], pattern)
        elif upper == "DY":
            self._word([d[:3].lower() for d in DAY_NAMES], pattern)
        elif upper == "RM":
            roman = sorted(range(12), key=lambda i: -len(ROMAN_MONTHS[i]))
            found = self._word([ROMAN_MONTHS[i].lower() for i in roman], pattern)
            self._store("month", roman[found] + 1)
        elif pattern in ("TZ", "tz", "OF"):
            self._zone()
        else:
            self._numeric(token, is_bounded)

    def _word(self, words: list[str] | tuple[str, ...], pattern: str) -> int:
        rest = self.text[self.at :].lower()
        plain = rest.replace(".", "") if "." in pattern else rest
        for place, word in enumerate(words):
            if plain.startswith(word):
                self.at += len(pattern) if "." in pattern else len(word)
                return place
        shown = self.text[self.at : self.at + len(pattern)]
        raise errors.InvalidDatetimeFormat(
            f'invalid value "{shown}" for "{pattern}"',
            detail="The given value did not match any of the allowed values for this field.",
        )

    def _zone(self) -> None:
        match = re.compile(r"[+-][0-9]{1,2}(?::?[0-9]{2})?|[A-Za-z]+").match(self.text, self.at)
        if match is None:
            return
        self.at = match.end()
        if match[0][0] in "+-":
            digits = match[0][1:].replace(":", "")
            hours, minutes = (int(digits[:2]), int(digits[2:] or 0))
            east = (hours * 60 + minutes) * 60
            self.fields.east = -east if match[0][0] == "-" else east
            return
        known = zones.abbreviations().get(match[0].lower())
        if known is None:
            raise errors.InvalidDatetimeFormat(
                f'invalid value "{match[0]}" for "TZ"'
            )
        self.fields.east = known[0]

    def _numeric(self, token: Token, is_bounded: bool) -> None:
        pattern = token.pattern
        if pattern == "Y,YYY":
            match = re.compile(r"([0-9]+),([0-9]{3})").match(self.text, self.at)
            if match is None:
                raise errors.InvalidDatetimeFormat('invalid input string for "Y,YYY"')
            self.at = match.end()
            self._store("year", int(match[1]) * 1000 + int(match[2]))
            return
        width = _WIDTHS[pattern]
        limit = f"{{1,{width}}}" if is_bounded or pattern[:2] in ("FF", "MS", "US") else "+"
        match = re.compile(rf"[+-]?[0-9]{limit}").match(self.text, self.at)
        if match is None:
            shown = self.text[self.at : self.at + width]
            raise errors.InvalidDatetimeFormat(
                f'invalid value "{shown}" for "{pattern}"', detail="Value must be an integer."
            )
        self.at = match.end()
        if token.ordinal:
            self.at += 2
        self._number_field(pattern, match[0])

    def _number_field(self, pattern: str, digits: str) -> None:
        value = int(digits)
        count = len(digits.lstrip("+-"))
        match pattern:
            case "YYYY" | "YYY" | "YY" | "Y" | "IYYY" | "IYY" | "IY" | "I":
                if len(pattern) < 4 and count < 4:
                    value = _full_year(value, count)
                self._store("isoyear" if pattern[0] == "I" else "year", value)
            case "MS":
                self._store("millisecond", value * 10 ** (3 - count))
            case "TZH":
                self.fields.east = value * 3600
            case "TZM":
                east = self.fields.east or 0
                self.fields.east = east + (-value if east < 0 else value) * 60
            case _ if pattern == "US" or pattern[:2] == "FF":
                self._store("fraction", value * 10 ** (6 - count))
            case "Q":
                pass
            case _:
                self._store(_NAMES[pattern], value)

    def _store(self, name: str, value: int) -> None:
        known = self.fields.values.get(name)
        if known is not None and known != value:
            raise errors.InvalidDatetimeFormat(
                f'conflicting values for "{name}" field in formatting string',
                detail="This value contradicts a previous setting for the same field type.",
            )
        self.fields.values[name] = value


def _full_year(value: int, digits: int) -> int:
    """Years of fewer digits, nearest to 2020."""
    if digits == 3:
        return value + 1000 if value >= 520 else value + 2000
    if digits == 2 or digits == 1:
        return value + 2000 if value < 70 else value + 1900
    return value


def _out_of_range(text: str) -> errors.SqlError:
    return errors.DatetimeFieldOverflow(f'date/time field value out of range: "{text}"')


def _days(fields: _Fields, text: str) -> int:
    """The date of the fields; what is missing is 0001-01-01 BC's."""
    found = fields.values
    if "julian" in found:
        return found["julian"] - 2451545
    if "isoyear" in found:
        start = iso_week_start(found["isoyear"], found.get("isoweek", 1))
        if "isodoy" in found:
            return iso_week_start(found["isoyear"], 1) + found["isodoy"] - 1
        return start + found.get("isodow", 1) - 1
    year = found.get("year")
    if year is None and "century" in found:
        year = found["century"] * 100 - 99
    year = 0 if year is None else year
    if fields.is_bc:
        year = 1 - year
    if "doy" in found:
        return days_of(year, 1, 1) + found["doy"] - 1
    if "week" in found:
        return days_of(year, 1, 1) + (found["week"] - 1) * 7
    month, day = found.get("month", 1), found.get("day", 1)
    if not 1 <= month <= 12 or not 1 <= day <= month_length(year, month):
        raise _out_of_range(text)
    return days_of(year, month, day)


def _time(fields: _Fields, text: str) -> int:
    found = fields.values
    fraction = found.get("fraction", 0) + found.get("millisecond", 0) * 1000
    if "day_second" in found:
        return found["day_second"] * _SECOND + fraction
    hour = found.get("hour", 0)
    if "hour12" in found:
        hour = found["hour12"]
        if not 1 <= hour <= 12:
            raise errors.InvalidDatetimeFormat(
                f'hour "{hour}" is invalid for the 12-hour clock',
                hint="Use the 24-hour clock, or give an hour between 1 and 12.",
            )
        if fields.is_pm is not None:
            hour = hour % 12 + (12 if fields.is_pm else 0)
    minute, second = found.get("minute", 0), found.get("second", 0)
    if not (0 <= hour <= 24 and 0 <= minute < 60 and 0 <= second < 60):
        raise _out_of_range(text)
    return ((hour * 60 + minute) * 60 + second) * _SECOND + fraction


@rowwise("to_date", examples=(("to_date('05 Dec 2000', 'DD Mon YYYY')", "2000-12-05"),))
def to_date(text: str, template: str) -> int:
    return _days(_Reader(text, template).read(), text)


@rowwise("to_timestamp", needs_context=True)
def to_timestamp(context: EvaluationContext, text: str, template: str) -> int:
    fields = _Reader(text, template).read()
    local = _days(fields, text) * DAY_MICROSECONDS + _time(fields, text)
    if fields.east is not None:
        return checked_timestamp(local - fields.east * _SECOND)
    return checked_timestamp(to_utc(local, context.query.types.time_zone))
