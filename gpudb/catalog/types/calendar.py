"""Days since 2000-01-01 and proleptic Gregorian dates, in Python integers of any size.

Years are astronomical: 0 is 1 BC.
"""

from __future__ import annotations

DAY_MICROSECONDS = 86_400_000_000
DATE_INFINITY = 2**31 - 1
DATE_MINUS_INFINITY = -(2**31)
TIMESTAMP_INFINITY = 2**63 - 1
TIMESTAMP_MINUS_INFINITY = -(2**63)
JULIAN_OF_2000 = 2451545
DATE_MIN = -JULIAN_OF_2000
DATE_END = 2147483494 - JULIAN_OF_2000
TIMESTAMP_MIN = -211813488000000000
TIMESTAMP_END = 9223371331200000000

MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)
DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def days_of(year: int, month: int, day: int) -> int:
    """Days since 2000-01-01; ``day`` may lie outside of the month."""
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146097 + day_of_era - 730425


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of days since 2000-01-01."""
    era, day_of_era = divmod(days + 730425, 146097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_length(year: int, month: int) -> int:
    return 29 if month == 2 and is_leap(year) else _MONTH_LENGTHS[month - 1]


def weekday(days: int) -> int:
    """0 = Sunday ... 6 = Saturday."""
    return (days + 6) % 7


def split_timestamp(microseconds: int) -> tuple[int, int]:
    """Days since 2000-01-01 and microseconds of the day."""
    return divmod(microseconds, DAY_MICROSECONDS)


def is_finite_date(days: int) -> bool:
    return days not in (DATE_INFINITY, DATE_MINUS_INFINITY)


def is_finite_timestamp(microseconds: int) -> bool:
    return microseconds not in (TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY)


def add_months(days: int, months: int) -> int:
    """The date moved by months, its day cut to the month's length."""
    year, month, day = civil(days)
    total = year * 12 + month - 1 + months
    year, month = total // 12, total % 12 + 1
    return days_of(year, month, min(day, month_length(year, month)))


def iso_week(days: int) -> tuple[int, int]:
    """ISO year and week of a date."""
    thursday = days - (days + 5) % 7 + 3
    year = civil(thursday)[0]
    return year, (thursday - days_of(year, 1, 1)) // 7 + 1


def iso_week_start(year: int, week: int) -> int:
    """The Monday of an ISO week, in days since 2000-01-01."""
    fourth = days_of(year, 1, 4)
    return fourth - (fourth + 5) % 7 + (week - 1) * 7
