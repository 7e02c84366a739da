"""Dates and times from text, as flexibly as PostgreSQL reads them.

``decode`` reads dates and timestamps, ``decode_time`` times of day; both walk over the fields of
datetime_fields.cut and keep what was found in a ``_Reading``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpudb import errors
from gpudb.catalog.types import zones
from gpudb.catalog.types.calendar import civil, days_of, month_length
from gpudb.catalog.types.datetime_fields import (
    Field,
    FieldError,
    FieldKind,
    Problem,
    Token,
    clock,
    cut,
    fraction_microseconds,
    integer,
    word_meaning,
    zone_offset,
)

_DATE = frozenset({"year", "month", "day"})
_JULIAN_EPOCH_DAYS = 2451545
_NUMBER = re.compile(r"([0-9]+)(\.[0-9]*)?", re.ASCII)
_DAY_MICROSECONDS = 86_400_000_000


@dataclass(slots=True)
class Moment:
    """What a text denotes: ``special`` (infinity, -infinity, epoch) or a local date and time.

    ``offset`` is seconds east where the text says so; ``zone`` a named zone.
    """

    special: str = ""
    days: int = 0
    microseconds: int = 0
    offset: int | None = None
    zone: zones.Zone | None = None
    has_time: bool = True
    has_date: bool = True


@dataclass(slots=True)
class _Reading:
    order: str
    now: int
    session_zone: zones.Zone
    year: int = 0
    month: int = 0
    day: int = 0
    day_of_year: int = 0
    microseconds: int = 0
    seen: set[str] = field(default_factory=set)
    is_short_year: bool = False
    is_julian: bool = False
    is_bc: bool = False
    meridiem: str = ""
    label: str = ""
    has_text_month: bool = False
    offset: int | None = None
    zone: zones.Zone | None = None
    abbreviation: str = ""
    special: str = ""

    def add(self, *names: str) -> None:
        """Note fields as found; none may come twice."""
        if self.seen.intersection(names):
            raise FieldError
        self.seen.update(names)

    @property
    def has_date(self) -> bool:
        return self.seen >= _DATE

    def set_civil(self, days: int) -> None:
        self.year, self.month, self.day = civil(days)

    def take_label(self) -> str:
        label, self.label = self.label, ""
        return label


def decode(
    text: str, *, order: str, now: int, session_zone: zones.Zone
) -> Moment:
    """The moment a date or timestamp text denotes; FieldError, or 22023 for unknown zones."""
    reading = _Reading(order, now, session_zone)
    fields = cut(text)
    for item in fields:
        _DECODERS[item.kind](reading, item)
    if reading.label:
        raise FieldError
    if reading.special in ("infinity", "-infinity", "epoch"):
        return Moment(special=reading.special)
    _validate_date(reading)
    _apply_meridiem(reading)
    if not reading.has_date:
        raise FieldError
    if "daylight" in reading.seen and reading.zone is not None:
        raise FieldError
    return Moment(
        days=days_of(reading.year, reading.month, reading.day),
        microseconds=reading.microseconds, offset=reading.offset, zone=reading.zone,
        has_time="time" in reading.seen,
    )


def _decode_date_field(reading: _Reading, item: Field) -> None:
    text = item.text
    if reading.label == "julian":
        match = re.match(r"[0-9]+", text)
        if match is None:
            raise FieldError
        reading.take_label()
        reading.set_civil(integer(match[0]) - _JULIAN_EPOCH_DAYS)
        reading.is_julian = True
        reading.offset = zone_offset(text[match.end() :])
        reading.add("year", "month", "day", "time", "zone")
        return
    if not reading.label and not reading.has_date:
        _decode_date(reading, text)
        return
    if reading.label and reading.take_label() != "time":
        raise FieldError
    if not text[0].isdigit():
        _name_zone(reading, text)
        return
    if "time" in reading.seen:
        raise FieldError
    digits, dash, rest = text.partition("-")
    if not dash:
        raise FieldError
    reading.offset = zone_offset(dash + rest)
    _decode_run(reading, digits)
    reading.add("zone")


def _name_zone(reading: _Reading, text: str) -> None:
    found = zones.zone(text)
    if found is None:
        raise errors.InvalidParameterValue(f'time zone "{text}" not recognized')
    reading.zone = found
    reading.add("zone")


def _decode_date(reading: _Reading, text: str) -> None:
    """A field that holds a whole date, separated by punctuation."""
    parts = re.findall(r"[0-9]+|[A-Za-z]+", text)
    numbers = []
    for part in parts:
        if part.isdigit():
            numbers.append(part)
            continue
        meaning = word_meaning(part.lower())
        if meaning is not None and meaning[0] is Token.IGNORED:
            continue
        if meaning is None or meaning[0] is not Token.MONTH:
            raise FieldError
        reading.add("month")
        reading.month = int(meaning[1])
        reading.has_text_month = True
    if not numbers and not parts:
        raise FieldError
    for number in numbers:
        _decode_number(reading, number)
    if not reading.has_date and not reading.seen & {"day_of_year"}:
        raise FieldError


def _decode_time_field(reading: _Reading, item: Field) -> None:
    if reading.label and reading.take_label() != "time":
        raise FieldError
    reading.microseconds = clock(item.text)
    reading.add("time")


def _decode_zone_field(reading: _Reading, item: Field) -> None:
    reading.offset = zone_offset(item.text)
    reading.add("zone")


def _decode_number_field(reading: _Reading, item: Field) -> None:
    text = item.text
    if reading.label:
        _decode_labelled(reading, reading.take_label(), text)
        return
    whole, dot, _ = text.partition(".")
    if dot and not reading.seen & _DATE:
        _decode_date(reading, text)
    elif (dot and len(whole) > 2) or (
        len(text) >= 6 and not (reading.has_date and "time" in reading.seen)
    ):
        _decode_run(reading, text)
    else:
        _decode_number(reading, text)


def _decode_labelled(reading: _Reading, label: str, text: str) -> None:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise FieldError
    if label == "julian":
        reading.set_civil(integer(match[1]) - _JULIAN_EPOCH_DAYS)
        reading.is_julian = True
        reading.add("year", "month", "day")
        if match[2]:
            reading.microseconds = round(float("0" + match[2] + "0") * _DAY_MICROSECONDS)
            reading.add("time")
    elif label == "time":
        reading.seen, before = reading.seen | _DATE, set(reading.seen)
        reading.seen.discard("time")
        if "time" in before:
            raise FieldError
        _decode_run(reading, text)
        reading.seen = before | {"time"}
    else:
        raise FieldError


def _decode_run(reading: _Reading, text: str) -> None:
    """Run-together digits: yyyymmdd, yymmdd, hhmmss[.f] or hhmm."""
    digits, dot, fraction = text.partition(".")
    if not digits.isdigit() and digits:
        raise FieldError
    if not dot and not reading.has_date and len(digits) >= 6:
        reading.add("year", "month", "day")
        reading.day = int(digits[-2:])
        reading.month = int(digits[-4:-2])
        reading.year = integer(digits[:-4])
        reading.is_short_year = len(digits) == 6
        return
    microseconds = fraction_microseconds(dot + fraction) if dot else 0
    if "time" in reading.seen or len(digits) not in (4, 6):
        raise FieldError
    hours, minutes = int(digits[:2]), int(digits[2:4])
    seconds = int(digits[4:] or 0)
    total = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + microseconds
    if minutes > 59 or seconds > 60 or total > _DAY_MICROSECONDS:
        raise FieldError(Problem.RANGE)
    reading.microseconds = total
    reading.add("time")


def _decode_number(reading: _Reading, text: str) -> None:
    """One number, whose meaning follows from what was found before and from DateStyle."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise FieldError
    value = integer(match[1])
    if match[2]:
        if len(match[1]) > 2:
            _decode_run(reading, text)
            return
        fraction_microseconds(match[2])
    dated = reading.seen & _DATE
    if len(text) == 3 and dated == {"year"} and 1 <= value <= 366:
        reading.day_of_year = value
        reading.add("day_of_year", "month", "day")
        return
    if dated == _DATE:
        _decode_run(reading, text)
        return
    name = _number_meaning(reading, dated, len(text))
    if name == "day after year":
        reading.day, reading.year = reading.year, value
        reading.is_short_year = False
        reading.add("day")
        return
    setattr(reading, name, value)
    reading.add(name)
    if name == "year":
        reading.is_short_year = len(text) <= 2


def _number_meaning(reading: _Reading, dated: set[str], length: int) -> str:
    is_year = length >= 3 or reading.order == "YMD"
    if not dated:
        if is_year:
            return "year"
        return "day" if reading.order == "DMY" else "month"
    if dated == {"year"} or dated == {"day"}:
        return "month"
    if dated == {"month"}:
        return "year" if reading.has_text_month and is_year else "day"
    if dated == {"year", "month"}:
        if reading.has_text_month and length >= 3 and reading.is_short_year:
            return "day after year"
        return "day"
    if dated == {"month", "day"}:
        return "year"
    raise FieldError


def _decode_word(reading: _Reading, item: Field) -> None:
    word = item.text
    abbreviation = zones.abbreviations().get(word)
    if abbreviation is not None:
        reading.offset = abbreviation[0]
        reading.abbreviation = word
        reading.add("zone")
        return
    meaning = word_meaning(word)
    if meaning is None:
        found = zones.zone(word)
        if found is None:
            raise FieldError
        reading.zone = found
        reading.add("zone")
        return
    token, value = meaning
    match token:
        case Token.IGNORED:
            return
        case Token.RESERVED:
            _decode_reserved(reading, str(value))
        case Token.MONTH:
            _decode_month(reading, int(value))
        case Token.DAYLIGHT:
            if reading.offset is None:
                raise FieldError
            reading.offset += int(value)
            reading.add("daylight")
        case Token.MERIDIEM:
            reading.meridiem = str(value)
            reading.add("meridiem")
        case Token.ERA:
            reading.is_bc = value == "bc"
            reading.add("era")
        case Token.WEEKDAY:
            reading.add("weekday")
        case Token.ISO_TIME | Token.UNIT:
            is_wrong = token is Token.ISO_TIME and not reading.has_date
            if reading.label or is_wrong:
                raise FieldError
            reading.label = str(value)


def _decode_month(reading: _Reading, month: int) -> None:
    can_be_day = "month" in reading.seen and not reading.has_text_month
    if can_be_day and "day" not in reading.seen and 1 <= reading.month <= 31:
        reading.day = reading.month
        reading.add("day")
    else:
        reading.add("month")
    reading.has_text_month = True
    reading.month = month


def _decode_reserved(reading: _Reading, word: str) -> None:
    local = reading.now
    local += zones.offset_at(reading.session_zone, reading.now // 1_000_000) * 1_000_000
    today, rest = divmod(local, _DAY_MICROSECONDS)
    match word:
        case "now":
            reading.set_civil(today)
            reading.microseconds = rest
            reading.offset = (local - reading.now) // 1_000_000
            reading.add("year", "month", "day", "time", "zone")
        case "today" | "yesterday" | "tomorrow":
            shift = {"today": 0, "yesterday": -1, "tomorrow": 1}[word]
            reading.set_civil(today + shift)
            reading.add("year", "month", "day")
        case "allballs":
            reading.microseconds = 0
            reading.offset = 0
            reading.add("time", "zone")
        case _:
            reading.special = word
            reading.add("year", "month", "day", "time", "zone")


_DECODERS = {
    FieldKind.DATE: _decode_date_field,
    FieldKind.TIME: _decode_time_field,
    FieldKind.ZONE: _decode_zone_field,
    FieldKind.NUMBER: _decode_number_field,
    FieldKind.WORD: _decode_word,
    FieldKind.SIGNED_WORD: _decode_word,
}


def _validate_date(reading: _Reading) -> None:
    if "year" in reading.seen and not reading.is_julian:
        if reading.is_bc:
            if reading.year <= 0:
                raise FieldError(Problem.RANGE)
            reading.year = 1 - reading.year
        elif reading.is_short_year:
            reading.year += 2000 if reading.year < 70 else 1900 if reading.year < 100 else 0
        elif reading.year <= 0:
            raise FieldError(Problem.RANGE)
    if "day_of_year" in reading.seen:
        reading.set_civil(days_of(reading.year, 1, 1) + reading.day_of_year - 1)
    if "month" in reading.seen and not 1 <= reading.month <= 12:
        raise FieldError(Problem.MONTH_OR_DAY)
    if "day" in reading.seen and not 1 <= reading.day <= 31:
        raise FieldError(Problem.MONTH_OR_DAY)
    if reading.has_date and reading.day > month_length(reading.year, reading.month):
        raise FieldError(Problem.RANGE)


def _apply_meridiem(reading: _Reading) -> None:
    if not reading.meridiem:
        return
    hours, rest = divmod(reading.microseconds, 3_600_000_000)
    if hours > 12:
        raise FieldError(Problem.RANGE)
    if reading.meridiem == "am" and hours == 12:
        hours = 0
    elif reading.meridiem == "pm" and hours != 12:
        hours += 12
    reading.microseconds = hours * 3_600_000_000 + rest


def decode_time(
    text: str, *, order: str, now: int, session_zone: zones.Zone
) -> Moment:
    """The time of day (and date and zone, if any) of a text; FieldError."""
    reading = _Reading(order, now, session_zone)
    for item in cut(text):
        _decode_time_part(reading, item)
    if reading.label:
        raise FieldError
    if reading.seen & _DATE:
        _validate_date(reading)
    _apply_meridiem(reading)
    if reading.special or "time" not in reading.seen:
        raise FieldError
    has_date = reading.has_date
    days = days_of(reading.year, reading.month, reading.day) if has_date else 0
    return Moment(
        days=days, microseconds=reading.microseconds, offset=reading.offset, zone=reading.zone,
        has_date=has_date,
    )


def _decode_time_part(reading: _Reading, item: Field) -> None:
    kind, text = item.kind, item.text
    if kind is FieldKind.NUMBER and not reading.label and "time" not in reading.seen:
        whole = text.partition(".")[0]
        if "." in text and len(whole) <= 2:
            raise FieldError
        if len(whole) in (4, 6) or "." in text:
            seen, reading.seen = set(reading.seen), reading.seen | _DATE
            _decode_run(reading, text)
            reading.seen = seen | {"time"}
            return
        _decode_number(reading, text)
        return
    if kind is FieldKind.WORD and text == "t" and not reading.label:
        reading.label = "time"
        return
    if kind is FieldKind.DATE and not reading.seen & _DATE and text[0].isdigit():
        digits, dash, rest = text.partition("-")
        if dash and len(digits) in (4, 6) and rest.count("-") == 0:
            reading.offset = zone_offset(dash + rest)
            seen, reading.seen = set(reading.seen), reading.seen | _DATE
            _decode_run(reading, digits)
            reading.seen = seen | {"time"}
            reading.add("zone")
            return
    if kind is FieldKind.DATE and "time" in reading.seen and not text[0].isdigit():
        _name_zone(reading, text)
        return
    _DECODERS[kind](reading, item)
