"""Operators and casts of dates, times, timestamps and intervals.

Scalar rules are functions of Python integers; the operators that queries run over many rows have
tensor bodies beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gpudb import errors, sqltype
from gpudb.catalog.functions import scalar
from gpudb.catalog.types import zones
from gpudb.catalog.types.calendar import (
    DATE_END,
    DATE_INFINITY,
    DATE_MIN,
    DATE_MINUS_INFINITY,
    DAY_MICROSECONDS,
    TIMESTAMP_END,
    TIMESTAMP_INFINITY,
    TIMESTAMP_MIN,
    TIMESTAMP_MINUS_INFINITY,
    add_months,
    is_finite_date,
    is_finite_timestamp,
)
from gpudb.catalog.types.intervals import checked
from gpudb.column import Column, all_valid, integer_column, integers, to_values
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import Examples, evaluate, rowwise
from gpudb.kernels import calendar
from gpudb.sqltype import SqlType

Interval = tuple[int, int, int]
_SECOND = 1_000_000
_DATE, _TIMESTAMP = SqlType(sqltype.DATE), SqlType(sqltype.TIMESTAMP)


def date_out_of_range() -> errors.SqlError:
    return errors.DatetimeFieldOverflow("date out of range")


def timestamp_out_of_range() -> errors.SqlError:
    return errors.DatetimeFieldOverflow("timestamp out of range")


def checked_date(days: int) -> int:
    if not DATE_MIN <= days < DATE_END:
        raise date_out_of_range()
    return days


def checked_timestamp(value: int) -> int:
    if not TIMESTAMP_MIN <= value < TIMESTAMP_END:
        raise timestamp_out_of_range()
    return value


# --- scalar rules ---


def add_interval(value: int, step: Interval) -> int:
    """timestamp + interval: months first (days cut to the month), then days, then time."""
    if not is_finite_timestamp(value):
        return value
    months, days, microseconds = step
    if months or days:
        date, rest = divmod(value, DAY_MICROSECONDS)
        if months:
            date = add_months(date, months)
        value = (date + days) * DAY_MICROSECONDS + rest
        if not TIMESTAMP_MIN <= value < TIMESTAMP_END:
            raise timestamp_out_of_range()
    return checked_timestamp(value + microseconds)


def add_interval_in_zone(value: int, step: Interval, zone: zones.Zone) -> int:
    """timestamptz + interval: months and days go by local time, the rest by elapsed time."""
    if not is_finite_timestamp(value):
        return value
    months, days, microseconds = step
    if months or days:
        local = to_local(value, zone)
        local = add_interval(local, (months, days, 0))
        value = to_utc(local, zone)
    return checked_timestamp(value + microseconds)


def to_local(value: int, zone: zones.Zone) -> int:
    """The local timestamp of a moment."""
    if not is_finite_timestamp(value):
        return value
    return value + zones.offset_at(zone, value // _SECOND) * _SECOND


def to_utc(value: int, zone: zones.Zone) -> int:
    """The moment of a local timestamp."""
    if not is_finite_timestamp(value):
        return value
    return value - zones.offset_of_local(zone, value // _SECOND) * _SECOND


def negated(step: Interval) -> Interval:
    return checked(-step[0], -step[1], -step[2])


def date_to_timestamp(days: int) -> int:
    if days == DATE_INFINITY:
        return TIMESTAMP_INFINITY
    if days == DATE_MINUS_INFINITY:
        return TIMESTAMP_MINUS_INFINITY
    value = days * DAY_MICROSECONDS
    if value >= TIMESTAMP_END:
        raise errors.DatetimeFieldOverflow("date out of range for timestamp")
    return value


def timestamp_to_date(value: int) -> int:
    if value == TIMESTAMP_INFINITY:
        return DATE_INFINITY
    if value == TIMESTAMP_MINUS_INFINITY:
        return DATE_MINUS_INFINITY
    return value // DAY_MICROSECONDS


# --- dates ---


def _shift_days(sign: int) -> Callable[..., Column]:
    def body(context: EvaluationContext, dates: Column, counts: Column) -> Column:
        days, shifts = integers(dates), integers(counts)
        moved = days + sign * shifts
        valid = all_valid(dates, counts)
        endless = (days == DATE_INFINITY) | (days == DATE_MINUS_INFINITY)
        bad = ((moved < DATE_MIN) | (moved >= DATE_END)) & ~endless
        context.report_where(bad if valid is None else bad & valid, date_out_of_range())
        return integer_column(_DATE, torch.where(endless, days, moved), valid)

    return body


scalar("date_pli", fallible=True, examples=(("date '2001-09-28' + 7", "2001-10-05"),))(
    _shift_days(1)
)
scalar("date_mii", fallible=True, examples=(("date '2001-10-01' - 7", "2001-09-24"),))(
    _shift_days(-1)
)


@scalar("integer_pl_date(int4,date)", fallible=True)
def integer_plus_date(context: EvaluationContext, count: Column, date: Column) -> Column:
    return _shift_days(1)(context, date, count)


@scalar("date_mi", fallible=True, examples=(("date '2001-10-01' - date '2001-09-28'", "3"),))
def subtract_dates(context: EvaluationContext, left: Column, right: Column) -> Column:
    one, two = integers(left), integers(right)
    valid = all_valid(left, right)
    bad = (one.abs() >= DATE_INFINITY) | (two.abs() >= DATE_INFINITY)
    context.report_where(
        bad if valid is None else bad & valid,
        errors.DatetimeFieldOverflow("cannot subtract infinite dates"),
    )
    return integer_column(SqlType(sqltype.INT4), one - two, valid)


def _constant_interval(column: Column) -> Interval | None:
    """The interval of a constant column that is not NULL."""
    if column.rows != 1:
        return None
    found: Interval | None = to_values(column)[0]
    return found


def _add_to_timestamps(
    context: EvaluationContext, values: Tensor, valid: Tensor | None, step: Interval,
    type_: SqlType,
) -> Column:
    """Timestamps plus one interval; infinities stay."""
    endless = (values == TIMESTAMP_INFINITY) | (values == TIMESTAMP_MINUS_INFINITY)
    safe = torch.where(endless, 0, values)
    months, days, microseconds = step
    if months:
        dates = torch.div(safe, DAY_MICROSECONDS, rounding_mode="floor")
        rest = safe - dates * DAY_MICROSECONDS
        safe = calendar.add_months(dates, months) * DAY_MICROSECONDS + rest
    moved = safe + days * DAY_MICROSECONDS + microseconds
    bad = ((moved < TIMESTAMP_MIN) | (moved >= TIMESTAMP_END)) & ~endless
    context.report_where(bad if valid is None else bad & valid, timestamp_out_of_range())
    return integer_column(type_, torch.where(endless, values, moved), valid)


def _fits(step: Interval) -> bool:
    """Whether adding the interval to any timestamp stays inside int64."""
    return abs(step[0]) < 12_000 and abs(step[1]) < 4_000_000 and abs(step[2]) < 2**60


def _timestamp_shift(sign: int, *, of_date: bool) -> Callable[..., Column]:
    def exact(value: int, step: Interval) -> int:
        moved = step if sign > 0 else negated(step)
        return add_interval(date_to_timestamp(value) if of_date else value, moved)

    def body(context: EvaluationContext, column: Column, step: Column) -> Column:
        constant = _constant_interval(step)
        if constant is None or not _fits(constant) or column.rows == 1:
            return evaluate(context, exact, (column, step), _TIMESTAMP)
        shift = (sign * constant[0], sign * constant[1], sign * constant[2])
        values = integers(column)
        if of_date:
            values = _date_values(context, column)
        return _add_to_timestamps(context, values, all_valid(column, step), shift, _TIMESTAMP)

    return body


def _date_values(context: EvaluationContext, column: Column) -> Tensor:
    """Dates as timestamps."""
    days = integers(column)
    high, low = days == DATE_INFINITY, days == DATE_MINUS_INFINITY
    bad = (days * 1 >= TIMESTAMP_END // DAY_MICROSECONDS) & ~high
    context.report_where(
        bad if column.valid is None else bad & column.valid,
        errors.DatetimeFieldOverflow("date out of range for timestamp"),
    )
    safe = torch.where(high | low | bad, 0, days) * DAY_MICROSECONDS
    return torch.where(
        high, TIMESTAMP_INFINITY, torch.where(low, TIMESTAMP_MINUS_INFINITY, safe)
    )


scalar(
    "date_pl_interval", fallible=True,
    examples=(("date '2001-01-31' + interval '1 month'", "2001-02-28 00:00:00"),),
)(_timestamp_shift(1, of_date=True))
scalar("date_mi_interval", fallible=True)(_timestamp_shift(-1, of_date=True))
scalar("timestamp_pl_interval", fallible=True)(_timestamp_shift(1, of_date=False))
scalar("timestamp_mi_interval", fallible=True)(_timestamp_shift(-1, of_date=False))


def _swapped(body: Callable[..., Column]) -> Callable[..., Column]:
    def call(context: EvaluationContext, left: Column, right: Column) -> Column:
        return body(context, right, left)

    return call


scalar("interval_pl_date(interval,date)", fallible=True)(
    _swapped(_timestamp_shift(1, of_date=True))
)
scalar("interval_pl_timestamp(interval,timestamp)", fallible=True)(
    _swapped(_timestamp_shift(1, of_date=False))
)


@rowwise("timestamptz_pl_interval", needs_context=True)
def timestamptz_plus(context: EvaluationContext, value: int, step: Interval) -> int:
    return add_interval_in_zone(value, step, context.query.types.time_zone)


@rowwise("timestamptz_mi_interval", needs_context=True)
def timestamptz_minus(context: EvaluationContext, value: int, step: Interval) -> int:
    return add_interval_in_zone(value, negated(step), context.query.types.time_zone)


@rowwise("interval_pl_timestamptz(interval,timestamptz)", needs_context=True)
def interval_plus_timestamptz(context: EvaluationContext, step: Interval, value: int) -> int:
    return add_interval_in_zone(value, step, context.query.types.time_zone)


@rowwise(
    "timestamp_mi",
    examples=(("timestamp '2001-09-29 03:00' - timestamp '2001-07-27 12:00'",
               "63 days 15:00:00"),),
)
def subtract_timestamps(left: int, right: int) -> Interval:
    if not (is_finite_timestamp(left) and is_finite_timestamp(right)):
        raise errors.DatetimeFieldOverflow("cannot subtract infinite timestamps")
    difference = left - right
    if not -(2**63) <= difference < 2**63:
        raise errors.DatetimeFieldOverflow("interval out of range")
    return justify_hours((0, 0, difference))


@rowwise("datetime_timestamp")
def date_plus_time(first: int, second: int) -> int:
    return checked_timestamp(first * DAY_MICROSECONDS + second)


@rowwise("timedate_pl(time,date)")
def time_plus_date(time: int, date: int) -> int:
    return date_plus_time(date, time)


# --- times ---


@rowwise("time_pl_interval")
def time_plus(time: int, step: Interval) -> int:
    return (time + step[2]) % DAY_MICROSECONDS


@rowwise("interval_pl_time(interval,time)")
def interval_plus_time(step: Interval, time: int) -> int:
    return time_plus(time, step)


@rowwise("time_mi_interval")
def time_minus(time: int, step: Interval) -> int:
    return (time - step[2]) % DAY_MICROSECONDS


@rowwise("time_mi_time")
def subtract_times(left: int, right: int) -> Interval:
    return 0, 0, left - right


@rowwise("timetz_pl_interval")
def timetz_plus(time: tuple[int, int], step: Interval) -> tuple[int, int]:
    return (time[0] + step[2]) % DAY_MICROSECONDS, time[1]


@rowwise("timetz_mi_interval")
def timetz_minus(time: tuple[int, int], step: Interval) -> tuple[int, int]:
    return (time[0] - step[2]) % DAY_MICROSECONDS, time[1]


@rowwise("interval_pl_timetz(interval,timetz)")
def interval_plus_timetz(step: Interval, time: tuple[int, int]) -> tuple[int, int]:
    return timetz_plus(time, step)


@rowwise("datetimetz_timestamptz")
def date_plus_timetz(date: int, time: tuple[int, int]) -> int:
    return checked_timestamp(date * DAY_MICROSECONDS + time[0] + time[1] * _SECOND)


@rowwise("timetzdate_pl(timetz,date)")
def timetz_plus_date(time: tuple[int, int], date: int) -> int:
    return date_plus_timetz(date, time)


# --- intervals ---


@rowwise("interval_pl")
def add_intervals(left: Interval, right: Interval) -> Interval:
    return checked(left[0] + right[0], left[1] + right[1], left[2] + right[2])


@rowwise("interval_mi")
def subtract_intervals(left: Interval, right: Interval) -> Interval:
    return checked(left[0] - right[0], left[1] - right[1], left[2] - right[2])


rowwise("interval_um")(negated)


def _cascaded(months: float, days: float, microseconds: float) -> Interval:
    """Whole months and days; fractions of months become days, those of days time."""
    whole_months, whole_days = int(months), int(days)
    spilled = _rounded6((months - whole_months) * 30)
    extra = int(spilled)
    seconds = (days - whole_days + spilled - extra) * 86400
    seconds = _rounded6(seconds)
    if abs(seconds) >= 86400:
        extra += int(seconds / 86400)
        seconds -= int(seconds / 86400) * 86400
    total = _rint(microseconds + seconds * _SECOND)
    return checked(whole_months, whole_days + extra, total)


def _rounded6(value: float) -> float:
    return _rint(value * 1_000_000.0) / 1_000_000.0


def _rint(value: float) -> int:
    if math.isnan(value) or math.isinf(value):
        raise errors.DatetimeFieldOverflow("interval out of range")
    return round(value)


@rowwise("interval_mul", examples=(("interval '1 day' * 3.5", "3 days 12:00:00"),))
def multiply_interval(step: Interval, factor: float) -> Interval:
    if math.isnan(factor) or math.isinf(factor):
        raise errors.DatetimeFieldOverflow("interval out of range")
    return _cascaded(step[0] * factor, step[1] * factor, step[2] * factor)


@rowwise("mul_d_interval")
def multiply_by_interval(factor: float, step: Interval) -> Interval:
    return multiply_interval(step, factor)


@rowwise("interval_div", examples=(("interval '1 hour' / 1.5", "00:40:00"),))
def divide_interval(step: Interval, divisor: float) -> Interval:
    if divisor == 0:
        raise errors.DivisionByZero("division by zero")
    return _cascaded(step[0] / divisor, step[1] / divisor, step[2] / divisor)


def _carry(upper: int, lower: int, unit: int) -> tuple[int, int]:
    """Whole units moved from ``lower`` to ``upper``, toward zero."""
    whole = abs(lower) // unit * (1 if lower >= 0 else -1)
    return upper + whole, lower - whole * unit


@rowwise("interval_justify_hours", examples=(("justify_hours('27 hours')", "1 day 03:00:00"),))
def justify_hours(step: Interval) -> Interval:
    months, days, time = step
    days, time = _carry(days, time, DAY_MICROSECONDS)
    if days > 0 > time:
        days, time = days - 1, time + DAY_MICROSECONDS
    elif days < 0 < time:
        days, time = days + 1, time - DAY_MICROSECONDS
    return checked(months, days, time)


@rowwise("interval_justify_days", examples=(("justify_days('35 days')", "1 mon 5 days"),))
def justify_days(step: Interval) -> Interval:
    months, days, time = step
    months, days = _carry(months, days, 30)
    if months > 0 > days:
        months, days = months - 1, days + 30
    elif months < 0 < days:
        months, days = months + 1, days - 30
    return checked(months, days, time)


@rowwise(
    "interval_justify_interval",
    examples=(("justify_interval('1 mon -1 hour')", "29 days 23:00:00"),),
)
def justify_interval(step: Interval) -> Interval:
    months, days, time = step
    days, time = _carry(days, time, DAY_MICROSECONDS)
    months, days = _carry(months, days, 30)
    if months > 0 and (days < 0 or (days == 0 and time < 0)):
        months, days = months - 1, days + 30
    elif months < 0 and (days > 0 or (days == 0 and time > 0)):
        months, days = months + 1, days - 30
    if days > 0 > time:
        days, time = days - 1, time + DAY_MICROSECONDS
    elif days < 0 < time:
        days, time = days + 1, time - DAY_MICROSECONDS
    return checked(months, days, time)


rowwise("interval_finite", result=sqltype.BOOL)(lambda step: True)
rowwise("date_finite")(is_finite_date)
rowwise("timestamp_finite", result=sqltype.BOOL)(is_finite_timestamp)


# --- casts ---


@scalar("date_timestamp", fallible=True)
def dates_to_timestamps(context: EvaluationContext, column: Column) -> Column:
    return integer_column(_TIMESTAMP, _date_values(context, column), column.valid)


@scalar("timestamp_date")
def timestamps_to_dates(context: EvaluationContext, column: Column) -> Column:
    values = integers(column)
    days = torch.div(values, DAY_MICROSECONDS, rounding_mode="floor")
    days = torch.where(values == TIMESTAMP_INFINITY, DATE_INFINITY, days)
    days = torch.where(values == TIMESTAMP_MINUS_INFINITY, DATE_MINUS_INFINITY, days)
    return integer_column(_DATE, days.to(torch.int32), column.valid)


_Zoned = Callable[[Any, zones.Zone], Any]


def _in_session_zone(key: str, function: _Zoned, examples: Examples = ()) -> None:
    def call(context: EvaluationContext, value: Any) -> Any:
        return function(value, context.query.types.time_zone)

    rowwise(key, needs_context=True, examples=examples)(call)


def _date_to_moment(days: int, zone: zones.Zone) -> int:
    if not is_finite_date(days):
        return date_to_timestamp(days)
    return checked_timestamp(to_utc(date_to_timestamp(days), zone))


def _time_of(value: int) -> int | None:
    return value % DAY_MICROSECONDS if is_finite_timestamp(value) else None


_in_session_zone("date_timestamptz", _date_to_moment)
_in_session_zone("timestamp_timestamptz", lambda v, zone: _moment_or_error(v, zone))
_in_session_zone("timestamptz_timestamp", to_local)
_in_session_zone("timestamptz_date", lambda v, zone: timestamp_to_date(to_local(v, zone)))
_in_session_zone("timestamptz_time", lambda v, zone: _time_of(to_local(v, zone)))
rowwise("timestamp_time")(_time_of)
rowwise("time_interval")(lambda time: (0, 0, time))
rowwise("interval_time")(lambda step: step[2] % DAY_MICROSECONDS)
rowwise("timetz_time")(lambda time: time[0])


def _moment_or_error(value: int, zone: zones.Zone) -> int:
    return value if not is_finite_timestamp(value) else checked_timestamp(to_utc(value, zone))


@rowwise("time_timetz", needs_context=True)
def time_to_timetz(context: EvaluationContext, time: int) -> tuple[int, int]:
    settings = context.query.types
    today = to_local(context.query.now_microseconds, settings.time_zone) // DAY_MICROSECONDS
    east = zones.offset_of_local(settings.time_zone, today * 86400 + time // _SECOND)
    return time, -east


@rowwise("timestamptz_timetz", needs_context=True)
def timestamptz_to_timetz(context: EvaluationContext, value: int) -> tuple[int, int] | None:
    if not is_finite_timestamp(value):
        return None
    east = zones.offset_at(context.query.types.time_zone, value // _SECOND)
    return (value + east * _SECOND) % DAY_MICROSECONDS, -east


@rowwise("timestamptz(date,time)", needs_context=True)
def moment_of_date_and_time(context: EvaluationContext, date: int, time: int) -> int:
    local = date_plus_time(date, time)
    return _moment_or_error(local, context.query.types.time_zone)


# --- AT TIME ZONE ---


def named_zone(name: str) -> zones.Zone:
    """The zone of a name, an abbreviation or an offset; 22023."""
    found = zones.zone(name)
    abbreviation = zones.abbreviations().get(name.lower())
    if abbreviation is not None:
        return zones.fixed(abbreviation[0], name.upper())
    if found is None:
        raise errors.InvalidParameterValue(f'time zone "{name}" not recognized')
    return found


def interval_zone(step: Interval) -> zones.Zone:
    if step[0] or step[1]:
        raise errors.InvalidParameterValue(
            "interval time zone must not include months or days"
        )
    return zones.fixed(step[2] // _SECOND)


@rowwise("timestamp_zone")
def local_to_moment(name: str, value: int) -> int:
    return _moment_or_error(value, named_zone(name))


@rowwise("timestamptz_zone")
def moment_to_local(name: str, value: int) -> int:
    return to_local(value, named_zone(name))


@rowwise("timestamp_izone")
def local_to_moment_by_interval(step: Interval, value: int) -> int:
    return _moment_or_error(value, interval_zone(step))


@rowwise("timestamptz_izone")
def moment_to_local_by_interval(step: Interval, value: int) -> int:
    return to_local(value, interval_zone(step))


def _rezoned(time: tuple[int, int], east: int) -> tuple[int, int]:
    moved = (time[0] + (time[1] + east) * _SECOND) % DAY_MICROSECONDS
    return moved, -east


@rowwise("timetz_zone", needs_context=True)
def timetz_at_zone(
    context: EvaluationContext, name: str, time: tuple[int, int]
) -> tuple[int, int]:
    now = context.query.now_microseconds // _SECOND
    return _rezoned(time, zones.offset_at(named_zone(name), now))


@rowwise("timetz_izone")
def timetz_at_interval(step: Interval, time: tuple[int, int]) -> tuple[int, int]:
    if step[0] or step[1]:
        interval_zone(step)
    return _rezoned(time, step[2] // _SECOND)


# --- OVERLAPS ---


def _overlap(start1: Any, end1: Any, start2: Any, end2: Any) -> bool | None:
    """SQL's OVERLAPS of two periods whose ends may stand in either order; NULLs three-valued."""
    if start1 is None:
        start1, end1 = end1, None
    elif end1 is not None and start1 > end1:
        start1, end1 = end1, start1
    if start2 is None:
        start2, end2 = end2, None
    elif end2 is not None and start2 > end2:
        start2, end2 = end2, start2
    if start1 is None or start2 is None:
        return None
    if start1 == start2:
        return True if end1 is not None and end2 is not None else None
    first_end, later = (end2, start1) if start1 > start2 else (end1, start2)
    latest_end = end1 if start1 > start2 else end2
    if first_end is None:
        return None
    if later < first_end:
        return True
    if latest_end is None:
        return None
    return False


rowwise("overlaps_time", "overlaps_timestamp", result=sqltype.BOOL)(_overlap)


@rowwise("overlaps_timetz")
def overlap_timetz(*ends: Any) -> bool | None:
    keys = [None if t is None else (t[0] + t[1] * _SECOND, t[1]) for t in ends]
    return _overlap(*keys)


def _register_overlaps() -> None:
    """The forms of OVERLAPS with lengths in place of ends."""
    shapes = {"ii": (True, True), "ei": (False, True), "ie": (True, False)}
    for name, adder in (
        ("timestamp", add_interval), ("time", time_plus),
    ):
        for first, second in shapes.values():
            types_ = [name, "interval" if first else name, name, "interval" if second else name]
            key = f"overlaps({','.join(types_)})"

            def overlaps(
                a: Any, b: Any, c: Any, d: Any, *,
                adder: Callable[[int, Interval], int] = adder,
                first: bool = first, second: bool = second,
            ) -> bool | None:
                if first:
                    b = None if a is None or b is None else adder(a, b)
                if second:
                    d = None if c is None or d is None else adder(c, d)
                return _overlap(a, b, c, d)

            rowwise(key, result=sqltype.BOOL)(overlaps)
    _register_zoned_overlaps()


def _register_zoned_overlaps() -> None:
    for first, second in ((True, True), (False, True), (True, False)):
        types_ = ["timestamptz", "interval" if first else "timestamptz"]
        types_ += ["timestamptz", "interval" if second else "timestamptz"]

        def overlaps(
            context: EvaluationContext, a: Any, b: Any, c: Any, d: Any, *,
            first: bool = first, second: bool = second,
        ) -> bool | None:
            zone = context.query.types.time_zone
            if first:
                b = None if a is None or b is None else add_interval_in_zone(a, b, zone)
            if second:
                d = None if c is None or d is None else add_interval_in_zone(c, d, zone)
            return _overlap(a, b, c, d)

        rowwise(f"overlaps({','.join(types_)})", result=sqltype.BOOL, needs_context=True)(
            overlaps
        )


_register_overlaps()
