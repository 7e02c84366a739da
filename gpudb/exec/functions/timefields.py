"""extract, date_part, date_trunc, date_bin, age, make_*, and the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gpudb import errors, sqltype
from gpudb.catalog.functions import scalar
from gpudb.catalog.types import format_type, zones
from gpudb.catalog.types.calendar import (
    DATE_END,
    DATE_INFINITY,
    DATE_MIN,
    DATE_MINUS_INFINITY,
    DAY_MICROSECONDS,
    TIMESTAMP_INFINITY,
    TIMESTAMP_MINUS_INFINITY,
    civil,
    days_of,
    is_finite_date,
    is_finite_timestamp,
    iso_week,
    month_length,
    weekday,
)
from gpudb.catalog.types.datetime_fields import WORD_MAX, FieldError, Problem, zone_offset
from gpudb.catalog.types.intervals import UNITS, IntervalFields, checked, span
from gpudb.catalog.types.numeric import display_scale
from gpudb.column import (
    Column,
    all_valid,
    byte_strings,
    decimal_column,
    float_column,
    integer_column,
    integers,
)
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import Examples, evaluate, rowwise
from gpudb.exec.functions.timestamps import (
    Interval,
    checked_timestamp,
    date_to_timestamp,
    named_zone,
    to_local,
    to_utc,
)
from gpudb.kernels import calendar, decimal_math
from gpudb.sqltype import NUMERIC_TYPE, SqlType

EPOCH_2000_SECONDS = 946684800
_SECOND = 1_000_000
_FLOAT = SqlType(sqltype.FLOAT8)
_MONOTONIC = frozenset({
    "year", "decade", "century", "millennium", "epoch", "isoyear", "julian",
})
_OTHER_FIELDS = frozenset({
    "dow", "doy", "isodow", "isoyear", "julian", "epoch", "timezone", "timezone_hour",
    "timezone_minute",
})
_SPELLINGS = {
    "timezone_h": "timezone_hour", "timezone_m": "timezone_minute", "mm": "minute", "j": "julian",
    "jd": "julian",
}


def field_name(text: str) -> str | None:
    """The field that a word names; None for an unknown word."""
    word = text.lower()
    if word in _OTHER_FIELDS:
        return word
    found = UNITS.get(word[:WORD_MAX]) or _SPELLINGS.get(word[:WORD_MAX])
    return None if found == "ago" else found


def _unit_error(text: str, oid: int) -> errors.SqlError:
    """22023 for an unknown word, 0A000 for a field that the type doesn't have."""
    known = field_name(text) is not None
    kind = errors.FeatureNotSupported if known else errors.InvalidParameterValue
    what = "not supported" if known else "not recognized"
    return kind(f'unit "{text.lower()}" {what} for type {format_type(oid)}')


# --- fields of one value: (unscaled integer, scale) ---

Part = tuple[int, int]


def _century(year: int) -> int:
    return (year + 99) // 100 if year > 0 else -((99 - (year - 1)) // 100)


def _millennium(year: int) -> int:
    return (year + 999) // 1000 if year > 0 else -((999 - (year - 1)) // 1000)


def _decade(year: int) -> int:
    return year // 10 if year >= 0 else -((8 - (year - 1)) // 10)


def date_field(name: str, days: int) -> int | None:
    """A field of a date; None for fields a date lacks."""
    year, month, day = civil(days)
    match name:
        case "year":
            return year if year > 0 else year - 1
        case "month":
            return month
        case "day":
            return day
        case "quarter":
            return (month - 1) // 3 + 1
        case "decade":
            return _decade(year)
        case "century":
            return _century(year)
        case "millennium":
            return _millennium(year)
        case "dow":
            return weekday(days)
        case "isodow":
            return weekday(days) or 7
        case "doy":
            return days - days_of(year, 1, 1) + 1
        case "week":
            return iso_week(days)[1]
        case "isoyear":
            found = iso_week(days)[0]
            return found if found > 0 else found - 1
        case _:
            return None


def time_field(name: str, microseconds: int) -> Part | None:
    """A field of a time of day."""
    seconds, fraction = divmod(microseconds, _SECOND)
    match name:
        case "hour":
            return seconds // 3600, 0
        case "minute":
            return seconds // 60 % 60, 0
        case "second":
            return (seconds % 60) * _SECOND + fraction, 6
        case "millisecond":
            return (seconds % 60) * _SECOND + fraction, 3
        case "microsecond":
            return (seconds % 60) * _SECOND + fraction, 0
        case _:
            return None


def _timestamp_part(name: str, value: int, local: int, east: int | None) -> Part | None:
    days, rest = divmod(local, DAY_MICROSECONDS)
    found = date_field(name, days)
    if found is not None:
        return found, 0
    part = time_field(name, rest)
    if part is not None:
        return part
    if name == "epoch":
        return value + EPOCH_2000_SECONDS * _SECOND, 6
    if name == "julian":
        return _julian(days + 2451545, rest)
    return None if east is None else _zone_part(name, east)


def _julian(days: int, rest: int) -> Part:
    """Julian day with the fraction that numeric division gives."""
    fraction = decimal_math.divide(Decimal(rest), Decimal(DAY_MICROSECONDS))
    total = decimal_math.add(Decimal(days), fraction)
    return decimal_math.unscaled(total), display_scale(total)


def _zone_part(name: str, east: int) -> Part | None:
    sign, size = (-1, -east) if east < 0 else (1, east)
    match name:
        case "timezone":
            return east, 0
        case "timezone_hour":
            return sign * (size // 3600), 0
        case "timezone_minute":
            return sign * (size // 60 % 60), 0
        case _:
            return None


def _interval_part(name: str, value: Interval) -> Part | None:
    parts = IntervalFields.of(value)
    size = abs(parts.years)
    sign = -1 if parts.years < 0 else 1
    match name:
        case "year":
            return parts.years, 0
        case "decade":
            return sign * (size // 10), 0
        case "century":
            return sign * (size // 100), 0
        case "millennium":
            return sign * (size // 1000), 0
        case "quarter":
            return parts.months // 3 + 1 if parts.months >= 0 else -(-parts.months // 3) + 1, 0
        case "month":
            return parts.months, 0
        case "day":
            return parts.days, 0
        case "hour":
            return parts.hours, 0
        case "minute":
            return parts.minutes, 0
        case "second" | "millisecond" | "microsecond":
            return parts.microseconds, {"second": 6, "millisecond": 3, "microsecond": 0}[name]
        case "epoch":
            days = parts.years * 365.25 + parts.months * 30 + parts.days
            return int(days * 86400) * _SECOND + value[2], 6
        case _:
            return None


def _scaled(part: Part, *, as_float: bool) -> Any:
    number, scale = part
    if as_float:
        return number / 10**scale
    return Decimal(number).scaleb(-scale)


def _endless(name: str, is_positive: bool, *, as_float: bool) -> Any:
    if name not in _MONOTONIC:
        return None
    value = math.inf if is_positive else -math.inf
    return value if as_float else Decimal(value)


def _field_or_error(text: str, oid: int) -> str:
    found = field_name(text)
    if found is None:
        raise _unit_error(text, oid)
    return found


def _part_of(oid: int, *, as_float: bool) -> Callable[..., Any]:
    """The function of one value for a type."""

    def part(context: EvaluationContext, text: str, value: Any) -> Any:
        name = _field_or_error(text, oid)
        if oid == sqltype.DATE and not is_finite_date(value):
            if _date_part(name, 0) is None:
                raise _unit_error(text, oid)
            return _endless(name, value > 0, as_float=as_float)
        if oid in (sqltype.TIMESTAMP, sqltype.TIMESTAMPTZ) and not is_finite_timestamp(value):
            return _endless(name, value > 0, as_float=as_float)
        found = _dispatch(context, oid, name, value)
        if found is None:
            raise _unit_error(text, oid)
        return _scaled(found, as_float=as_float)

    return part


def _dispatch(context: EvaluationContext, oid: int, name: str, value: Any) -> Part | None:
    match oid:
        case sqltype.DATE:
            return _date_part(name, value)
        case sqltype.TIMESTAMP:
            return _timestamp_part(name, value, value, None)
        case sqltype.TIMESTAMPTZ:
            east = zones.offset_at(context.query.types.time_zone, value // _SECOND)
            return _timestamp_part(name, value, value + east * _SECOND, east)
        case sqltype.INTERVAL:
            return _interval_part(name, value)
        case sqltype.TIME:
            return (value, 6) if name == "epoch" else time_field(name, value)
        case _:
            if name == "epoch":
                return value[0] + value[1] * _SECOND, 6
            return time_field(name, value[0]) or _zone_part(name, -value[1])


def _date_part(name: str, days: int) -> Part | None:
    found = date_field(name, days)
    if found is not None:
        return found, 0
    if name == "epoch":
        return days * 86400 + EPOCH_2000_SECONDS, 0
    return (days + 2451545, 0) if name == "julian" else None


# --- fields of columns ---


def _vector_field(name: str, days: Tensor) -> Tensor | None:
    """A field of dates after 1 BC as int64; None where the value-wise way is needed."""
    year, month, day = calendar.civil(days)
    match name:
        case "year":
            return year
        case "month":
            return month
        case "day":
            return day
        case "quarter":
            return torch.div(month - 1, 3, rounding_mode="floor") + 1
        case "decade":
            return torch.div(year, 10, rounding_mode="floor")
        case "century":
            return torch.div(year + 99, 100, rounding_mode="floor")
        case "dow":
            return calendar.weekday(days)
        case "isodow":
            found = calendar.weekday(days)
            return torch.where(found == 0, 7, found)
        case "doy":
            return calendar.day_of_year(days, year)
        case "week":
            return calendar.iso_week(days)[1]
        case "isoyear":
            return calendar.iso_week(days)[0]
        case _:
            return None


def _local_values(context: EvaluationContext, column: Column) -> Tensor:
    """Timestamps in local time."""
    values = integers(column)
    if column.type.oid != sqltype.TIMESTAMPTZ:
        return values
    seconds = torch.div(values, _SECOND, rounding_mode="floor").cpu().numpy()
    offsets = torch.from_numpy(zones.offsets_at(context.query.types.time_zone, seconds))
    return values + offsets.to(values.device) * _SECOND


_FIRST_PLAIN_DAY = days_of(1, 1, 8)


def _vector_part(
    context: EvaluationContext, column: Column, name: str
) -> tuple[Tensor, int] | None:
    """(scaled integers, scale) of a field for every row; None where values need care."""
    values = integers(column)
    if not values.numel():
        return None
    oid = column.type.oid
    endless = (DATE_INFINITY, DATE_MINUS_INFINITY) if oid == sqltype.DATE else (
        TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY
    )
    unit = 1 if oid == sqltype.DATE else DAY_MICROSECONDS
    low, high = int(values.min()), int(values.max())
    if low < _FIRST_PLAIN_DAY * unit or high == endless[0]:
        return None
    if oid == sqltype.DATE:
        if name == "epoch":
            return values * 86400 + EPOCH_2000_SECONDS, 0
        found = _vector_field(name, values)
        return None if found is None else (found, 0)
    if name == "epoch":
        return values + EPOCH_2000_SECONDS * _SECOND, 6
    local = _local_values(context, column)
    days = torch.div(local, DAY_MICROSECONDS, rounding_mode="floor")
    rest = local - days * DAY_MICROSECONDS
    match name:
        case "hour":
            return torch.div(rest, 3600 * _SECOND, rounding_mode="floor"), 0
        case "minute":
            return torch.div(rest, 60 * _SECOND, rounding_mode="floor") % 60, 0
        case "second" | "millisecond" | "microsecond":
            scale = {"second": 6, "millisecond": 3, "microsecond": 0}[name]
            return rest % (60 * _SECOND), scale
        case _:
            found = _vector_field(name, days)
            return None if found is None else (found, 0)


def _extractor(oid: int, *, as_float: bool) -> Callable[..., Column]:
    exact = _part_of(oid, as_float=as_float)

    def body(context: EvaluationContext, unit: Column, column: Column) -> Column:
        found = None
        is_vector = oid in (sqltype.DATE, sqltype.TIMESTAMP, sqltype.TIMESTAMPTZ)
        if is_vector and unit.rows == 1 and unit.valid is None and column.rows > 1:
            name = field_name(byte_strings(unit)[0].decode())
            found = None if name is None else _vector_part(context, column, name)
        type_ = _FLOAT if as_float else NUMERIC_TYPE
        if found is None:
            return evaluate(
                context, lambda text, value: exact(context, text, value), (unit, column), type_
            )
        values, scale = found
        valid = all_valid(unit, column)
        if as_float:
            return float_column(type_, values.to(torch.float64) / 10**scale, valid)
        bounds = (int(values.min()), int(values.max())) if values.numel() else (0, 0)
        return decimal_column(type_, values, scale, valid, lo=bounds[0], hi=bounds[1])

    return body


_EXTRACT_EXAMPLES: dict[str, Examples] = {
    "date": (("extract(year from date '1998-12-01')", "1998"),),
    "timestamp": (("extract(second from timestamp '2001-02-16 20:38:40.12')", "40.120000"),),
    "interval": (("extract(hour from interval '26 hours')", "26"),),
}


def _register_fields() -> None:
    names = {
        "date": sqltype.DATE, "timestamp": sqltype.TIMESTAMP, "timestamptz": sqltype.TIMESTAMPTZ,
        "interval": sqltype.INTERVAL, "time": sqltype.TIME, "timetz": sqltype.TIMETZ,
    }
    for name, oid in names.items():
        scalar(f"extract_{name}", fallible=True, examples=_EXTRACT_EXAMPLES.get(name, ()))(
            _extractor(oid, as_float=False)
        )
        key = "date_part(text,date)" if name == "date" else f"{name}_part"
        scalar(key, fallible=True)(_extractor(oid, as_float=True))


_register_fields()


# --- truncation ---

_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200,
           "millennium": 12000}
_MICROSECONDS = {"microsecond": 1, "millisecond": 1000, "second": _SECOND,
                 "minute": 60 * _SECOND, "hour": 3600 * _SECOND, "day": DAY_MICROSECONDS}


def truncate(name: str, value: int) -> int | None:
    """A finite local timestamp cut to a field; None for a field that can't be cut to."""
    if name in _MICROSECONDS:
        return value - value % _MICROSECONDS[name]
    days = value // DAY_MICROSECONDS
    if name == "week":
        return (days - (days + 5) % 7) * DAY_MICROSECONDS
    if name not in _MONTHS:
        return None
    year, month, _ = civil(days)
    match name:
        case "month":
            pass
        case "quarter":
            month = (month - 1) // 3 * 3 + 1
        case "year":
            month = 1
        case "decade":
            year, month = (year // 10 * 10 if year > 0 else -((8 - (year - 1)) // 10) * 10), 1
        case "century":
            year, month = (year + 99) // 100 * 100 - 99, 1
        case _:
            year, month = (year + 999) // 1000 * 1000 - 999, 1
    return days_of(year, month, 1) * DAY_MICROSECONDS


_NO_UNITS = frozenset({"dow", "doy", "isodow", "isoyear", "julian", "epoch"})
"""Words that name fields but no units to cut to."""


def _truncate_timestamp(text: str, value: int, oid: int) -> int:
    if not is_finite_timestamp(value):
        return value
    name = _field_or_error(text, oid)
    if name in _NO_UNITS:
        raise errors.InvalidParameterValue(
            f'unit "{text.lower()}" not recognized for type {format_type(oid)}'
        )
    found = truncate(name, value)
    if found is None:
        raise _unit_error(text, oid)
    return found


@scalar(
    "timestamp_trunc", fallible=True,
    examples=(("date_trunc('hour', timestamp '2001-02-16 20:38:40')", "2001-02-16 20:00:00"),),
)
def truncate_timestamps(context: EvaluationContext, unit: Column, column: Column) -> Column:
    type_ = SqlType(sqltype.TIMESTAMP)
    if unit.rows == 1 and unit.valid is None and column.rows > 1:
        name = field_name(byte_strings(unit)[0].decode())
        found = None if name is None else _truncated_column(integers(column), name)
        if found is not None:
            return integer_column(type_, found, all_valid(unit, column))
    return evaluate(
        context, lambda text, value: _truncate_timestamp(text, value, sqltype.TIMESTAMP),
        (unit, column), type_,
    )


def _truncated_column(values: Tensor, name: str) -> Tensor | None:
    """Timestamps after the year 1 cut to a field; None where the value-wise way is needed."""
    if not values.numel() or int(values.max()) == TIMESTAMP_INFINITY:
        return None
    if int(values.min()) < _FIRST_PLAIN_DAY * DAY_MICROSECONDS:
        return None
    if name in _MICROSECONDS:
        return values - values % _MICROSECONDS[name]
    days = torch.div(values, DAY_MICROSECONDS, rounding_mode="floor")
    if name == "week":
        return (days - (days + 5) % 7) * DAY_MICROSECONDS
    if name not in ("month", "quarter", "year"):
        return None
    year, month, _ = calendar.civil(days)
    if name == "quarter":
        month = torch.div(month - 1, 3, rounding_mode="floor") * 3 + 1
    elif name == "year":
        month = torch.ones_like(month)
    return calendar.days_of(year, month, torch.ones_like(month)) * DAY_MICROSECONDS


def _truncate_in_zone(text: str, value: int, zone: zones.Zone) -> int:
    local = _truncate_timestamp(text, to_local(value, zone), sqltype.TIMESTAMPTZ)
    if not is_finite_timestamp(value):
        return local
    name = field_name(text)
    if name in ("hour", "minute", "second", "millisecond", "microsecond"):
        return local - zones.offset_at(zone, value // _SECOND) * _SECOND
    return to_utc(local, zone)


@rowwise("timestamptz_trunc", needs_context=True)
def truncate_timestamptz(context: EvaluationContext, text: str, value: int) -> int:
    return _truncate_in_zone(text, value, context.query.types.time_zone)


@rowwise("timestamptz_trunc_zone")
def truncate_timestamptz_in(text: str, value: int, zone: str) -> int:
    return _truncate_in_zone(text, value, named_zone(zone))


@rowwise("interval_trunc", examples=(("date_trunc('hour', interval '3 days 02:47')",
                                      "3 days 02:00:00"),))
def truncate_interval(text: str, value: Interval) -> Interval:
    name = _field_or_error(text, sqltype.INTERVAL)
    months, days, time_ = value
    if name in _MONTHS:
        unit = _MONTHS[name]
        cut = abs(months) // unit * unit
        return (cut if months >= 0 else -cut), 0, 0
    if name == "day":
        return months, days, 0
    if name in _MICROSECONDS:
        unit = _MICROSECONDS[name]
        cut = abs(time_) // unit * unit
        return months, days, cut if time_ >= 0 else -cut
    problem = _unit_error(text, sqltype.INTERVAL)
    if name == "week":
        problem.detail = "Months usually have fractional weeks."
    raise problem


@rowwise("timestamp_bin", "timestamptz_bin")
def bin_timestamp(stride: Interval, value: int, origin: int) -> int:
    if not is_finite_timestamp(value):
        return value
    if not is_finite_timestamp(origin):
        raise errors.DatetimeFieldOverflow("origin out of range")
    if stride[0]:
        raise errors.FeatureNotSupported(
            "timestamps cannot be binned into intervals containing months or years"
        )
    size = span(stride)
    if size <= 0:
        raise errors.DatetimeFieldOverflow("stride must be greater than zero")
    return value - (value - origin) % size


# --- age ---


def age(later: int, earlier: int) -> Interval:
    """The symbolic difference in years, months and days of two local timestamps."""
    if not (is_finite_timestamp(later) and is_finite_timestamp(earlier)):
        raise errors.DatetimeFieldOverflow("interval out of range")
    sign = 1
    if later < earlier:
        later, earlier, sign = earlier, later, -1
    (days1, time1), (days2, time2) = divmod(later, DAY_MICROSECONDS), divmod(
        earlier, DAY_MICROSECONDS
    )
    year1, month1, day1 = civil(days1)
    year2, month2, day2 = civil(days2)
    microseconds, days = time1 - time2, day1 - day2
    months = (year1 - year2) * 12 + month1 - month2
    if microseconds < 0:
        microseconds += DAY_MICROSECONDS
        days -= 1
    while days < 0:
        days += month_length(year2, month2)
        months -= 1
    return checked(sign * months, sign * days, sign * microseconds)


rowwise(
    "timestamp_age",
    examples=(("age(timestamp '2001-04-10', timestamp '1957-06-13')",
               "43 years 9 mons 27 days"),),
)(age)


@rowwise("timestamptz_age", needs_context=True)
def age_in_zone(context: EvaluationContext, later: int, earlier: int) -> Interval:
    zone = context.query.types.time_zone
    return age(to_local(later, zone), to_local(earlier, zone))


def _today(context: EvaluationContext) -> int:
    local = to_local(context.query.now_microseconds, context.query.types.time_zone)
    return local - local % DAY_MICROSECONDS


@rowwise("age(timestamp)", needs_context=True)
def age_today(context: EvaluationContext, value: int) -> Interval:
    return age(_today(context), value)


@rowwise("age(timestamptz)", needs_context=True)
def age_today_in_zone(context: EvaluationContext, value: int) -> Interval:
    return age(_today(context), to_local(value, context.query.types.time_zone))


# --- making values ---


@rowwise("make_date", examples=(("make_date(2013, 7, 15)", "2013-07-15"),))
def make_date(year: int, month: int, day: int) -> int:
    shown = year if year > 0 else year + 1
    if year == 0 or not 1 <= month <= 12 or not 1 <= day <= month_length(shown, month):
        raise errors.DatetimeFieldOverflow(
            f"date field value out of range: {year}-{month:02d}-{day:02d}"
        )
    days = days_of(shown, month, day)
    if not DATE_MIN <= days < DATE_END:
        raise errors.DatetimeFieldOverflow(
            f"date out of range: {year}-{month:02d}-{day:02d}"
        )
    return days


@rowwise("make_time", examples=(("make_time(8, 15, 23.5)", "08:15:23.5"),))
def make_time(hour: int, minute: int, second: float) -> int:
    is_bad = not (0 <= hour <= 24 and 0 <= minute <= 59 and 0 <= second <= 60)
    total = 0 if is_bad else (hour * 60 + minute) * 60 * _SECOND + round(second * _SECOND)
    if is_bad or total > DAY_MICROSECONDS:
        raise errors.DatetimeFieldOverflow(
            f"time field value out of range: {hour}:{minute:02d}:{_short(second)}"
        )
    return total


def _short(second: float) -> str:
    return f"{second:02g}" if second != int(second) else f"{int(second):02d}"


@rowwise(
    "make_timestamp",
    examples=(("make_timestamp(2013, 7, 15, 8, 15, 23.5)", "2013-07-15 08:15:23.5"),),
)
def make_timestamp(
    year: int, month: int, day: int, hour: int, minute: int, second: float
) -> int:
    date = make_date(year, month, day)
    return checked_timestamp(date_to_timestamp(date) + make_time(hour, minute, second))


@rowwise("make_timestamptz", needs_context=True)
def make_timestamptz(context: EvaluationContext, *parts: Any) -> int:
    return to_utc(make_timestamp(*parts), context.query.types.time_zone)


@rowwise("make_timestamptz_at_timezone")
def make_timestamptz_at(*parts: Any) -> int:
    return to_utc(make_timestamp(*parts[:6]), _zone_or_offset(parts[6]))


def _zone_or_offset(text: str) -> zones.Zone:
    """A zone by name; a signed offset counts east of Greenwich, unlike in a POSIX zone."""
    if not text.startswith(("+", "-")):
        return named_zone(text)
    try:
        return zones.fixed(zone_offset(text))
    except FieldError as error:
        raise errors.InvalidParameterValue(
            f'numeric time zone "{text}" out of range' if error.problem is Problem.ZONE_RANGE
            else f'invalid input syntax for type numeric time zone: "{text}"'
        ) from None


@rowwise("make_interval", examples=(("make_interval(days => 10)", "10 days"),))
def make_interval(*parts: Any) -> Interval:
    years, months, weeks, days, hours, minutes, seconds = parts
    if math.isinf(seconds) or math.isnan(seconds):
        raise errors.DatetimeFieldOverflow("interval out of range")
    time_ = (hours * 60 + minutes) * 60 * _SECOND + round(seconds * _SECOND)
    return checked(years * 12 + months, weeks * 7 + days, time_)


@rowwise("float8_timestamptz", examples=())
def from_epoch(seconds: float) -> int:
    """to_timestamp(seconds since 1970)."""
    if math.isnan(seconds):
        raise errors.DatetimeFieldOverflow("timestamp cannot be NaN")
    if math.isinf(seconds):
        return TIMESTAMP_INFINITY if seconds > 0 else TIMESTAMP_MINUS_INFINITY
    value = round((seconds - EPOCH_2000_SECONDS) * _SECOND)
    if not -(2**63) < value < 2**63:
        raise errors.DatetimeFieldOverflow(f'timestamp out of range: "{seconds:g}"')
    return checked_timestamp(value)


# --- the clock ---


def _moment_column(value: int) -> Column:
    values = torch.tensor([value], dtype=torch.int64)
    return integer_column(SqlType(sqltype.TIMESTAMPTZ), values, lo=value, hi=value)


@scalar("now")
def now(context: EvaluationContext) -> Column:
    return _moment_column(context.query.now_microseconds)


@scalar("statement_timestamp")
def statement_timestamp(context: EvaluationContext) -> Column:
    return _moment_column(context.query.statement_microseconds)


def clock_microseconds() -> int:
    """The time now, microseconds since 2000-01-01 UTC."""
    return time.time_ns() // 1000 - EPOCH_2000_SECONDS * _SECOND


@scalar("clock_timestamp")
def clock_timestamp(context: EvaluationContext) -> Column:
    start = clock_microseconds()
    values = np.full(max(context.rows, 1), start, np.int64)
    return integer_column(SqlType(sqltype.TIMESTAMPTZ), torch.from_numpy(values))

