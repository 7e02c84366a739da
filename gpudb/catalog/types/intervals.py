"""interval: (months, days, microseconds), its inputs and the four output styles."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from gpudb import errors, layout, sqltype
from gpudb.catalog.types.base import DataType, HostValue, TypeContext
from gpudb.catalog.types.calendar import DAY_MICROSECONDS
from gpudb.catalog.types.datetime_fields import (
    WORD_MAX,
    Field,
    FieldError,
    FieldKind,
    Problem,
    clock,
    cut,
    refusal,
)
from gpudb.catalog.types.datetimes import PRECISION_MAX, round_microseconds
from gpudb.catalog.types.integers import check_length

FULL_RANGE = 0x7FFF
FULL_PRECISION = 0xFFFF
RANGE_BITS = {"MONTH": 1, "YEAR": 2, "DAY": 3, "HOUR": 10, "MINUTE": 11, "SECOND": 12}
_MONTH_DAYS = 30
_SECOND = 1_000_000


def _units() -> dict[str, str]:
    spellings = {
        "century": "c cent centuries century", "day": "d day days",
        "decade": "dec decade decades decs", "hour": "h hour hours hr hrs",
        "microsecond": "microsecon us usec usecond useconds usecs",
        "millennium": "mil millennia millennium mils",
        "millisecond": "millisecon ms msec msecond mseconds msecs",
        "minute": "m min mins minute minutes", "month": "mon mons month months",
        "quarter": "qtr quarter", "second": "s sec second seconds secs",
        "week": "w week weeks", "year": "y year years yr yrs", "ago": "ago",
    }
    return {w[:WORD_MAX]: unit for unit, words in spellings.items() for w in words.split()}


UNITS = _units()
_MONTHS_OF = {"month": 1, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}
_MICROSECONDS_OF = {
    "microsecond": 1, "millisecond": 1000, "second": _SECOND, "minute": 60 * _SECOND,
    "hour": 3600 * _SECOND,
}
_SIGNED_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:-([0-9]+)|(\.[0-9]*))?", re.ASCII)


@dataclass(slots=True)
class _Sum:
    months: int = 0
    days: int = 0
    microseconds: int = 0
    seen: set[str] = field(default_factory=set)

    def add_microseconds(self, value: int, fraction: float, scale: int) -> None:
        self.microseconds += value * scale + round(fraction * scale)

    def add_days(self, value: int, fraction: float, scale: int) -> None:
        self.days += value * scale
        rest = fraction * scale
        whole = int(rest)
        self.days += whole
        self.add_microseconds(0, rest - whole, DAY_MICROSECONDS)

    def add(self, unit: str, value: int, fraction: float) -> None:
        """Add value + fraction of a unit; fractions spill to smaller units as in PostgreSQL."""
        if unit in _MICROSECONDS_OF:
            self.add_microseconds(value, fraction, _MICROSECONDS_OF[unit])
        elif unit == "day":
            self.add_days(value, fraction, 1)
        elif unit == "week":
            self.add_days(value, fraction, 7)
        elif unit == "month":
            self.months += value
            self.add_days(0, fraction, _MONTH_DAYS)
        elif unit in _MONTHS_OF:
            months = _MONTHS_OF[unit]
            self.months += value * months + round(fraction * months)
        else:
            raise FieldError

    def note(self, *names: str) -> None:
        if self.seen.intersection(names):
            raise FieldError
        self.seen.update(names)


def _range_fields(typmod: int) -> frozenset[str]:
    mask = (typmod >> 16) & 0x7FFF if typmod >= 0 else FULL_RANGE
    if mask == FULL_RANGE:
        return frozenset()
    return frozenset(name for name, bit in RANGE_BITS.items() if mask & (1 << bit))


def _rightmost_unit(fields: frozenset[str]) -> str:
    for name in ("SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR"):
        if name in fields:
            return name.lower()
    return "second"


class _Reader:
    """Reads an interval's fields from the right, so that units stand before their numbers."""

    def __init__(self, ranges: frozenset[str], is_negative: bool) -> None:
        self.sum = _Sum()
        self.unit = ""
        self.is_before = False
        self.ranges = ranges
        self.is_negative = is_negative

    def read(self, item: Field) -> None:
        if item.kind is FieldKind.TIME:
            self._time(item.text)
        elif item.kind is FieldKind.ZONE and ":" in item.text[1:]:
            self._time(item.text[1:], is_minus=item.text[0] == "-")
        elif item.kind in (FieldKind.ZONE, FieldKind.DATE, FieldKind.NUMBER):
            self._number(item.text)
        else:
            self._word(item.text)

    def _time(self, text: str, *, is_minus: bool = False) -> None:
        value = clock(
            text, is_interval=True, minutes_first=self.ranges == {"MINUTE", "SECOND"}
        )
        if is_minus or self.is_negative:
            value = -value
        self.sum.microseconds += value
        self.sum.note("hour", "minute", "second", "millisecond", "microsecond")
        self.unit = "day"

    def _word(self, text: str) -> None:
        if text == "@":
            return
        unit = UNITS.get(text[:WORD_MAX])
        if unit is None:
            raise FieldError
        if unit == "ago":
            self.is_before = True
        else:
            self.unit = unit

    def _number(self, text: str) -> None:
        match = _SIGNED_NUMBER.fullmatch(text)
        if match is None or not (match[2] or match[4]):
            raise FieldError
        unit = self.unit or _rightmost_unit(self.ranges)
        value = int(match[2] or 0)
        fraction = float("0" + match[4] + "0") if match[4] else 0.0
        if match[3] is not None:
            if int(match[3]) >= 12:
                raise FieldError(Problem.RANGE)
            value, unit = value * 12 + int(match[3]), "month"
        if value >= 2**63:
            raise FieldError(Problem.RANGE)
        if match[1] == "-" or self.is_negative:
            value, fraction = -value, -fraction
        self.sum.add(unit, value, fraction)
        if unit == "second" and fraction:
            self.sum.note("second", "millisecond", "microsecond")
        else:
            self.sum.note(unit)
        self.unit = "day" if unit == "hour" else unit if not match[3] else "month"


def _decode(text: str, typmod: int, style: str) -> tuple[int, int, int]:
    fields = cut(text)
    signs = [f for f in fields if f.text[0] in "+-"]
    is_negative = (
        style == "sql_standard" and bool(fields) and fields[0].text[0] == "-" and len(signs) == 1
    )
    reader = _Reader(_range_fields(typmod), is_negative)
    for item in reversed(fields):
        reader.read(item)
    found = reader.sum
    if not found.seen:
        raise FieldError
    sign = -1 if reader.is_before else 1
    return sign * found.months, sign * found.days, sign * found.microseconds


_ISO_PART = re.compile(r"([+-]?[0-9]*(?:\.[0-9]*)?)([A-Z])", re.ASCII)
_ISO_PARTS = re.compile(r"(?:[+-]?[0-9]*(?:\.[0-9]*)?[A-Z])*", re.ASCII)
_ISO_DATE_UNITS = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME_UNITS = {"H": "hour", "M": "minute", "S": "second"}
_ISO_LONG = re.compile(
    r"P(-?[0-9]+)(?:-(-?[0-9]+)(?:-(-?[0-9]+))?)?(?:T(-?[0-9]+)(?::(-?[0-9]+)(?::(-?[0-9]+)"
    r"(\.[0-9]*)?)?)?)?",
    re.ASCII,
)


def _decode_iso(text: str) -> tuple[int, int, int]:
    """ISO 8601: P1Y2M3DT4H5M6S or P0001-02-03T04:05:06."""
    if len(text) < 2 or text[0] != "P":
        raise FieldError
    date, _, time = text[1:].partition("T")
    found = _Sum()
    if _ISO_PARTS.fullmatch(date) and _ISO_PARTS.fullmatch(time):
        for part, units in ((date, _ISO_DATE_UNITS), (time, _ISO_TIME_UNITS)):
            for number, letter in _ISO_PART.findall(part):
                _add_iso(found, number, units.get(letter))
        return found.months, found.days, found.microseconds
    match = _ISO_LONG.fullmatch(text)
    if match is None:
        raise FieldError
    names = ("year", "month", "day", "hour", "minute", "second")
    for unit, number in zip(names, match.groups()[:6], strict=True):
        if number is not None:
            found.add(unit, int(number), 0.0)
    if match[7]:
        found.add("second", 0, float("0" + match[7] + "0"))
    return found.months, found.days, found.microseconds


def _add_iso(found: _Sum, number: str, unit: str | None) -> None:
    digits = number.lstrip("+-")
    if unit is None or not digits or digits == ".":
        raise FieldError
    whole, dot, fraction = digits.partition(".")
    sign = -1 if number[0] == "-" else 1
    part = float("0." + (fraction or "0")) if dot else 0.0
    found.add(unit, sign * int(whole or 0), sign * part)


def checked(months: int, days: int, microseconds: int) -> tuple[int, int, int]:
    """The interval, or 22008 when a field leaves its range."""
    if not (
        -(2**31) <= months < 2**31 and -(2**31) <= days < 2**31
        and -(2**63) <= microseconds < 2**63
    ):
        raise errors.DatetimeFieldOverflow("interval out of range")
    return months, days, microseconds


def parse_interval(text: str, typmod: int, style: str) -> tuple[int, int, int]:
    """The interval a text denotes; 22007, 22008, 22015."""
    try:
        try:
            parts = _decode(text, typmod, style)
        except FieldError as problem:
            if problem.problem is not Problem.FORMAT:
                raise
            parts = _decode_iso(text.strip())
    except FieldError as problem:
        found = problem.problem
        found = Problem.INTERVAL_RANGE if found is Problem.RANGE else found
        raise refusal(found, text, "interval") from None
    months, days, microseconds = parts
    if not -(2**31) <= months < 2**31:
        raise errors.DatetimeFieldOverflow("interval out of range")
    if not (
        -(2**31) <= days < 2**31
        and -(2**63) <= microseconds < 2**63
    ):
        raise refusal(Problem.INTERVAL_RANGE, text, "interval")
    return fit_interval(parts, typmod)


def fit_interval(value: tuple[int, int, int], typmod: int) -> tuple[int, int, int]:
    """The interval cut to the fields and the precision of a type modifier."""
    if typmod < 0:
        return value
    months, days, microseconds = value
    fields, precision = _range_fields(typmod), typmod & 0xFFFF
    if fields:
        last = _rightmost_unit(fields)
        if last == "year":
            months, days, microseconds = _cut(months, 12), 0, 0
        elif last == "month":
            days, microseconds = 0, 0
        elif last == "day":
            microseconds = 0
        elif last in ("hour", "minute"):
            microseconds = _cut(microseconds, _MICROSECONDS_OF[last])
    if precision != FULL_PRECISION:
        microseconds = round_microseconds(microseconds, precision)
    return months, days, microseconds


def _cut(value: int, unit: int) -> int:
    return value - value % unit if value >= 0 else -((-value) - (-value) % unit)


def _truncated(value: int, unit: int) -> tuple[int, int]:
    """Quotient and remainder with the sign of the value."""
    quotient = abs(value) // unit
    signed = quotient if value >= 0 else -quotient
    return signed, value - signed * unit


@dataclass(frozen=True, slots=True)
class IntervalFields:
    years: int
    months: int
    days: int
    hours: int
    minutes: int
    microseconds: int

    @classmethod
    def of(cls, value: tuple[int, int, int]) -> IntervalFields:
        years, months = _truncated(value[0], 12)
        hours, rest = _truncated(value[2], 3600 * _SECOND)
        minutes, rest = _truncated(rest, 60 * _SECOND)
        return cls(years, months, value[1], hours, minutes, rest)

    @property
    def parts(self) -> tuple[int, ...]:
        return (
            self.years, self.months, self.days, self.hours, self.minutes, self.microseconds
        )


def _seconds(microseconds: int, width: int) -> str:
    whole, fraction = divmod(abs(microseconds), _SECOND)
    text = f"{whole:0{width}d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def _format_postgres(parts: IntervalFields) -> str:
    found: list[str] = []
    is_before = False
    names = ((parts.years, "year"), (parts.months, "mon"), (parts.days, "day"))
    for value, unit in names:
        if value:
            plus = "+" if is_before and value > 0 else ""
            found.append(f"{plus}{value} {unit}{'' if value == 1 else 's'}")
            is_before = value < 0
    has_time = parts.hours or parts.minutes or parts.microseconds
    if has_time or not found:
        is_minus = parts.hours < 0 or parts.minutes < 0 or parts.microseconds < 0
        sign = "-" if is_minus else "+" if is_before else ""
        found.append(
            f"{sign}{abs(parts.hours):02d}:{abs(parts.minutes):02d}:"
            f"{_seconds(parts.microseconds, 2)}"
        )
    return " ".join(found)


def _format_verbose(parts: IntervalFields) -> str:
    text, is_before, is_zero = "@", False, True
    units = ("year", "mon", "day", "hour", "min")
    for value, unit in zip(parts.parts, units, strict=False):
        if not value:
            continue
        shown = value
        if is_zero:
            is_before, shown = value < 0, abs(value)
        elif is_before:
            shown = -value
        is_zero = False
        text += f" {shown} {unit}{'' if shown == 1 else 's'}"
    if parts.microseconds:
        text += " "
        if parts.microseconds < 0:
            if is_zero:
                is_before = True
            elif not is_before:
                text += "-"
        elif is_before:
            text += "-"
        plural = "" if abs(parts.microseconds) == _SECOND else "s"
        text += f"{_seconds(parts.microseconds, 1)} sec{plural}"
        is_zero = False
    if is_zero:
        text += " 0"
    return text + " ago" if is_before else text


def _format_sql_standard(parts: IntervalFields) -> str:
    values = parts.parts
    has_negative, has_positive = any(v < 0 for v in values), any(v > 0 for v in values)
    if not has_negative and not has_positive:
        return "0"
    has_months = bool(parts.years or parts.months)
    has_time = bool(parts.days or parts.hours or parts.minutes or parts.microseconds)
    years, months, days, hours, minutes, _ = (abs(v) for v in values)
    time = f"{hours}:{minutes:02d}:{_seconds(parts.microseconds, 2)}"
    if (has_negative and has_positive) or (has_months and has_time):
        signs = [
            "-" if any(v < 0 for v in group) else "+"
            for group in (values[:2], values[2:3], values[3:])
        ]
        return f"{signs[0]}{years}-{months} {signs[1]}{days} {signs[2]}{time}"
    sign = "-" if has_negative else ""
    if has_months:
        return f"{sign}{years}-{months}"
    return f"{sign}{days} {time}" if parts.days else sign + time


def _format_iso(parts: IntervalFields) -> str:
    text = "P"
    for value, letter in ((parts.years, "Y"), (parts.months, "M"), (parts.days, "D")):
        text += f"{value}{letter}" if value else ""
    time = ""
    for value, letter in ((parts.hours, "H"), (parts.minutes, "M")):
        time += f"{value}{letter}" if value else ""
    if parts.microseconds:
        sign = "-" if parts.microseconds < 0 else ""
        time += f"{sign}{_seconds(parts.microseconds, 1)}S"
    if time:
        text += "T" + time
    return text if text != "P" else "PT0S"


_STYLES = {
    "postgres": _format_postgres, "postgres_verbose": _format_verbose,
    "sql_standard": _format_sql_standard, "iso_8601": _format_iso,
}


def format_interval(value: tuple[int, int, int], style: str = "postgres") -> str:
    return _STYLES[style](IntervalFields.of(value))


def span(value: tuple[int, int, int]) -> int:
    """Microseconds with months of 30 days and days of 24 hours: what comparison goes by."""
    return (value[0] * 30 + value[1]) * DAY_MICROSECONDS + value[2]


class IntervalType(DataType):
    def __init__(self) -> None:
        super().__init__(
            sqltype.INTERVAL, "interval", "interval", array_oid=1187, length=16, category="T",
            is_preferred=True, layout=layout.INTERVAL,
        )

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        return parse_interval(text, typmod, context.interval_style)

    def format(self, value: HostValue, context: TypeContext) -> str:
        return format_interval(value, context.interval_style)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        check_length(raw, 16)
        microseconds, days, months = struct.unpack(">qii", raw)
        return fit_interval((months, days, microseconds), typmod)

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return struct.pack(">qii", value[2], value[1], value[0])

    def typmod_in(self, modifiers: tuple[int | str, ...]) -> int:
        """(range mask) or (range mask, precision), as PostgreSQL's grammar passes them."""
        mask = int(modifiers[0])
        precision = int(modifiers[1]) if len(modifiers) > 1 else FULL_PRECISION
        if precision < 0:
            raise errors.InvalidParameterValue(
                f"INTERVAL({precision}) precision must not be negative"
            )
        if precision != FULL_PRECISION:
            precision = min(precision, PRECISION_MAX)
        return ((mask & FULL_RANGE) << 16) | precision

    def typmod_out(self, typmod: int) -> str:
        if typmod < 0:
            return ""
        fields, precision = _range_fields(typmod), typmod & 0xFFFF
        order = [n for n in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND") if n in fields]
        text = ""
        if order:
            names = order if len(order) == 1 else [order[0], order[-1]]
            text = " " + " to ".join(n.lower() for n in names)
        return text if precision == FULL_PRECISION else f"{text}({precision})"

    def apply_typmod(self, value: HostValue, typmod: int, *, is_explicit: bool) -> HostValue:
        return fit_interval(value, typmod)

    def sort_key(self, value: HostValue) -> int:
        return span(value)


TYPES: tuple[DataType, ...] = (IntervalType(),)
