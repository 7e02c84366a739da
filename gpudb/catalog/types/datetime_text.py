"""Text of dates, times and timestamps in every DateStyle."""

from __future__ import annotations

from gpudb.catalog.types import zones
from gpudb.catalog.types.base import TypeContext
from gpudb.catalog.types.calendar import (
    DATE_INFINITY,
    DATE_MINUS_INFINITY,
    DAY_NAMES,
    MONTH_NAMES,
    TIMESTAMP_INFINITY,
    TIMESTAMP_MINUS_INFINITY,
    civil,
    split_timestamp,
    weekday,
)


def format_time(microseconds: int) -> str:
    """HH:MM:SS with the fraction that is there."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    text = f"{hour:02d}:{minute:02d}:{second:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def format_offset(east: int) -> str:
    """+HH[:MM[:SS]]."""
    sign = "-" if east < 0 else "+"
    minutes, seconds = divmod(abs(east), 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{sign}{hours:02d}"
    if minutes or seconds:
        text += f":{minutes:02d}"
    return f"{text}:{seconds:02d}" if seconds else text


def _year(year: int) -> tuple[int, str]:
    return (year, "") if year > 0 else (1 - year, " BC")


def _date(year: int, month: int, day: int, context: TypeContext) -> str:
    style, is_dmy = context.date_style.upper(), context.date_order == "DMY"
    if style == "ISO":
        return f"{year:04d}-{month:02d}-{day:02d}"
    if style == "GERMAN":
        return f"{day:02d}.{month:02d}.{year:04d}"
    mark = "/" if style == "SQL" else "-"
    first, second = (day, month) if is_dmy else (month, day)
    return f"{first:02d}{mark}{second:02d}{mark}{year:04d}"


def format_date(days: int, context: TypeContext) -> str:
    """The text of a date."""
    if days == DATE_INFINITY:
        return "infinity"
    if days == DATE_MINUS_INFINITY:
        return "-infinity"
    year, month, day = civil(days)
    shown, era = _year(year)
    return _date(shown, month, day, context) + era


def format_timestamp(
    microseconds: int, context: TypeContext, *, zone: zones.Zone | None = None
) -> str:
    """The text of a timestamp; with ``zone`` of a timestamptz (the value is UTC)."""
    if microseconds == TIMESTAMP_INFINITY:
        return "infinity"
    if microseconds == TIMESTAMP_MINUS_INFINITY:
        return "-infinity"
    east, name = 0, ""
    is_iso = context.date_style.upper() == "ISO"
    if zone is not None:
        seconds = microseconds // 1_000_000
        east = zones.offset_at(zone, seconds)
        name = "" if is_iso else zones.abbreviation_at(zone, seconds)
    days, rest = split_timestamp(microseconds + east * 1_000_000)
    year, month, day = civil(days)
    shown, era = _year(year)
    if context.date_style.upper() == "POSTGRES":
        date = f"{DAY_NAMES[weekday(days)][:3]} "
        month_name = MONTH_NAMES[month - 1][:3]
        date += f"{day:02d} {month_name}" if context.date_order == "DMY" else (
            f"{month_name} {day:02d}"
        )
        text = f"{date} {format_time(rest)} {shown:04d}"
    else:
        text = f"{_date(shown, month, day, context)} {format_time(rest)}"
    if zone is not None:
        text += format_offset(east) if is_iso or not name else f" {name}"
    return text + era
