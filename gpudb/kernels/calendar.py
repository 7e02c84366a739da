"""Calendar arithmetic on tensors: days since 2000-01-01 (int64, R) and civil dates."""

from __future__ import annotations

import torch
from torch import Tensor

_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _quotient(values: Tensor, divisor: int) -> Tensor:
    return torch.div(values, divisor, rounding_mode="floor")


def civil(days: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Year (astronomical), month and day."""
    shifted = days.to(torch.int64) + 730425
    era = _quotient(shifted, 146097)
    of_era = shifted - era * 146097
    inner = of_era - _quotient(of_era, 1460) + _quotient(of_era, 36524)
    year_of_era = _quotient(inner - _quotient(of_era, 146096), 365)
    before = 365 * year_of_era + _quotient(year_of_era, 4) - _quotient(year_of_era, 100)
    of_year = of_era - before
    month_index = _quotient(5 * of_year + 2, 153)
    day = of_year - _quotient(153 * month_index + 2, 5) + 1
    month = torch.where(month_index < 10, month_index + 3, month_index - 9)
    return year_of_era + era * 400 + (month <= 2), month, day


def days_of(year: Tensor, month: Tensor, day: Tensor) -> Tensor:
    """Days since 2000-01-01."""
    shifted = year - (month <= 2).to(torch.int64)
    era = _quotient(shifted, 400)
    of_era = shifted - era * 400
    of_year = _quotient(153 * ((month + 9) % 12) + 2, 5) + day - 1
    total = of_era * 365 + _quotient(of_era, 4) - _quotient(of_era, 100) + of_year
    return era * 146097 + total - 730425


def month_lengths(year: Tensor, month: Tensor) -> Tensor:
    table = torch.tensor(_MONTH_LENGTHS, dtype=torch.int64, device=year.device)
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    return table[month - 1] + ((month == 2) & is_leap)


def add_months(days: Tensor, months: Tensor | int) -> Tensor:
    """Dates moved by months, the day cut to the month's length."""
    year, month, day = civil(days)
    total = year * 12 + month - 1 + months
    year = _quotient(total, 12)
    month = total - year * 12 + 1
    return days_of(year, month, torch.minimum(day, month_lengths(year, month)))


def weekday(days: Tensor) -> Tensor:
    """0 = Sunday ... 6 = Saturday."""
    return (days + 6) % 7


def day_of_year(days: Tensor, year: Tensor) -> Tensor:
    first = torch.ones_like(year)
    return days - days_of(year, first, first) + 1


def iso_week(days: Tensor) -> tuple[Tensor, Tensor]:
    """ISO year and week."""
    thursday = days - (days + 5) % 7 + 3
    year = civil(thursday)[0]
    first = torch.ones_like(year)
    return year, _quotient(thursday - days_of(year, first, first), 7) + 1
