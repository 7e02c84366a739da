"""Exact decimal arithmetic on columns: int64, two-limb 128-bit, Python decimals beyond.

A 128-bit number is (low, high): int64 tensors, ``low`` read as unsigned, two's complement. The
``add``, ``multiply`` ... of columns choose the cheapest layout that their bounds prove to fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import torch
from torch import Tensor

from gpudb.column import (
    INT64_MAX,
    INT64_MIN,
    Column,
    all_valid,
    decimal_column,
    decimals,
    from_values,
    integers,
)
from gpudb.layout import (
    DECIMAL64,
    DECIMAL64_ROW_SCALE,
    DECIMAL128,
    DECIMAL128_ROW_SCALE,
    Kind,
)
from gpudb.sqltype import SqlType

LIMIT_128 = 10**37
"""Two limbs hold magnitudes below; PostgreSQL's longer numerics are Python decimals."""
_SIGN = -(2**63)
_MASK32 = 0xFFFFFFFF
Wide = tuple[Tensor, Tensor]


# --- 128-bit integers ---


def widen(values: Tensor) -> Wide:
    """int64 to 128 bits."""
    return values, values >> 63


def _unsigned_less(left: Tensor, right: Tensor) -> Tensor:
    return (left ^ _SIGN) < (right ^ _SIGN)


def add_wide(left: Wide, right: Wide) -> Wide:
    low = left[0] + right[0]
    carry = _unsigned_less(low, left[0]).to(torch.int64)
    return low, left[1] + right[1] + carry


def negate_wide(value: Wide) -> Wide:
    low = -value[0]
    return low, ~value[1] + (value[0] == 0).to(torch.int64)


def subtract_wide(left: Wide, right: Wide) -> Wide:
    return add_wide(left, negate_wide(right))


def _multiply_unsigned(left: Tensor, right: Tensor) -> Wide:
    """The 128-bit product of two int64 read as unsigned."""
    left_low, left_high = left & _MASK32, (left >> 32) & _MASK32
    right_low, right_high = right & _MASK32, (right >> 32) & _MASK32
    low = left_low * right_low
    middle = left_high * right_low + ((low >> 32) & _MASK32)
    other = left_low * right_high + (middle & _MASK32)
    high = left_high * right_high + ((middle >> 32) & _MASK32) + ((other >> 32) & _MASK32)
    return (other << 32) | (low & _MASK32), high


def multiply_narrow(left: Tensor, right: Tensor) -> Wide:
    """The 128-bit product of two signed int64."""
    low, high = _multiply_unsigned(left, right)
    high = high - torch.where(left < 0, right, 0) - torch.where(right < 0, left, 0)
    return low, high


def multiply_wide(left: Wide, right: Wide) -> Wide:
    """The product modulo 2**128; right for whatever fits."""
    low, high = _multiply_unsigned(left[0], right[0])
    return low, high + left[0] * right[1] + left[1] * right[0]


def sign_wide(value: Wide) -> Tensor:
    """int8: -1, 0, 1."""
    is_zero = (value[0] == 0) & (value[1] == 0)
    return torch.where(is_zero, 0, torch.where(value[1] < 0, -1, 1)).to(torch.int8)


def compare_wide(left: Wide, right: Wide) -> Tensor:
    """int8: the sign of left - right."""
    greater = (left[1] > right[1]) | (
        (left[1] == right[1]) & _unsigned_less(right[0], left[0])
    )
    less = (left[1] < right[1]) | ((left[1] == right[1]) & _unsigned_less(left[0], right[0]))
    return greater.to(torch.int8) - less.to(torch.int8)


def constant_wide(value: int, like: Tensor) -> Wide:
    """A Python integer as a one-row number on the device of ``like``."""
    low, high = value & (2**64 - 1), value >> 64
    low = low - 2**64 if low >= 2**63 else low
    return (
        torch.tensor([low], dtype=torch.int64, device=like.device),
        torch.tensor([high], dtype=torch.int64, device=like.device),
    )


def from_integers(values: Sequence[int]) -> Wide:
    """Python integers below 2**127 in magnitude."""
    lows, highs = [], []
    for value in values:
        low = value & (2**64 - 1)
        lows.append(low - 2**64 if low >= 2**63 else low)
        highs.append(value >> 64)
    return torch.tensor(lows, dtype=torch.int64), torch.tensor(highs, dtype=torch.int64)


def to_integers(value: Wide) -> list[int]:
    lows, highs = value[0].tolist(), value[1].tolist()
    return [(h << 64) | (low & (2**64 - 1)) for low, h in zip(lows, highs, strict=True)]


# --- columns ---


@dataclass(frozen=True, slots=True)
class Bounds:
    lo: int
    hi: int

    @property
    def fits_64(self) -> bool:
        return self.lo > INT64_MIN and self.hi < INT64_MAX

    @property
    def fits_128(self) -> bool:
        return self.lo > -LIMIT_128 and self.hi < LIMIT_128

    def times(self, factor: int) -> Bounds:
        return Bounds(self.lo * factor, self.hi * factor)

    def plus(self, other: Bounds) -> Bounds:
        return Bounds(self.lo + other.lo, self.hi + other.hi)

    def minus(self, other: Bounds) -> Bounds:
        return Bounds(self.lo - other.hi, self.hi - other.lo)

    def by(self, other: Bounds) -> Bounds:
        corners = [a * b for a in (self.lo, self.hi) for b in (other.lo, other.hi)]
        return Bounds(min(corners), max(corners))


def bounds(column: Column) -> Bounds:
    """Bounds of the scaled integers: the proven ones, else those of the elements present."""
    if column.lo is not None and column.hi is not None:
        return Bounds(column.lo, column.hi)
    if column.layout.kind is Kind.DECIMAL128:
        high = column.data[1]
        if not high.numel():
            return Bounds(0, 0)
        return Bounds(int(high.min()) << 64, (int(high.max()) + 1) << 64)
    values = column.data[0]
    if not values.numel():
        return Bounds(0, 0)
    ends = [column.base + column.step * int(v) for v in (values.min(), values.max())]
    return Bounds(min(ends), max(ends))


def is_host(*columns: Column) -> bool:
    return any(column.layout.kind is Kind.HOST for column in columns)


def wide(column: Column) -> Wide:
    """The scaled integers of a DECIMAL or DECIMAL128 column as 128-bit numbers."""
    if column.layout.kind is Kind.DECIMAL128:
        return column.data[0], column.data[1]
    return widen(integers(column))


def row_scales(column: Column) -> Tensor | int:
    """The display scales: int16 (R), or one number."""
    return column.data[-1] if column.layout.has_row_scale else column.scale


def narrow_column(
    type_: SqlType, values: Tensor, scale: int, valid: Tensor | None, *,
    of: Bounds, scales: Tensor | int | None = None,
) -> Column:
    """A DECIMAL column; ``scales`` the display scales where they differ from ``scale``."""
    if scales is None or isinstance(scales, int):
        return decimal_column(type_, values, scale, valid, lo=of.lo, hi=of.hi)
    scales = scales.to(torch.int16).expand(values.shape[0])
    return Column(
        type_, DECIMAL64_ROW_SCALE, (values.to(torch.int64), scales), valid, scale=scale,
        lo=of.lo, hi=of.hi,
    )


def wide_column(
    type_: SqlType, value: Wide, scale: int, valid: Tensor | None, *,
    of: Bounds, scales: Tensor | int | None = None,
) -> Column:
    """A DECIMAL128 column."""
    low, high = value
    rows = max(low.shape[0], high.shape[0])
    low, high = low.expand(rows), high.expand(rows)
    if scales is None or isinstance(scales, int):
        return Column(
            type_, DECIMAL128, (low, high), valid, scale=scale, lo=of.lo, hi=of.hi
        )
    return Column(
        type_, DECIMAL128_ROW_SCALE, (low, high, scales.to(torch.int16).expand(rows)), valid,
        scale=scale, lo=of.lo, hi=of.hi,
    )


def rescaled(column: Column, scale: int) -> Column | None:
    """The column with its integers at a larger ``scale`` (same display scales); None when they
    leave 128 bits.
    """
    if scale == column.scale:
        return column
    factor = 10 ** (scale - column.scale)
    target = bounds(column).times(factor)
    shown: Tensor | int = row_scales(column)
    if isinstance(shown, int):
        shown = torch.full((1,), shown, dtype=torch.int16, device=column.device)
    if target.fits_64 and column.layout.kind is Kind.DECIMAL:
        # Only zeros and NULLs stay within 64 bits under a factor that does not fit itself.
        values = integers(column) * (factor if factor < 2**63 else 0)
        return narrow_column(
            column.type, values, scale, column.valid, of=target, scales=shown
        )
    if not target.fits_128:
        return None
    constant = constant_wide(factor if factor < 2**127 else 0, column.data[0])
    value = multiply_wide(wide(column), constant)
    return wide_column(column.type, value, scale, column.valid, of=target, scales=shown)


def compare(left: Column, right: Column) -> Tensor:
    """int8 (R): -1, 0, 1; NaN equals NaN and is greater than everything."""
    if not is_host(left, right):
        scale = max(left.scale, right.scale)
        one, two = rescaled(left, scale), rescaled(right, scale)
        if one is not None and two is not None:
            if one.layout.kind is two.layout.kind is Kind.DECIMAL:
                a, b = integers(one), integers(two)
                return (a > b).to(torch.int8) - (a < b).to(torch.int8)
            return compare_wide(wide(one), wide(two))
    return _compare_host(left, right)


def _host_key(value: Decimal | None) -> tuple[bool, Decimal]:
    if value is None:
        return False, Decimal(0)
    return (True, Decimal(0)) if value.is_nan() else (False, value)


def _compare_host(left: Column, right: Column) -> Tensor:
    one, two = list(map(_host_key, decimals(left))), list(map(_host_key, decimals(right)))
    rows = max(len(one), len(two))
    one, two = one * rows if len(one) == 1 else one, two * rows if len(two) == 1 else two
    signs = [(a > b) - (a < b) for a, b in zip(one, two, strict=True)]
    return torch.tensor(signs, dtype=torch.int8)


def _scales_joined(left: Column, right: Column) -> Tensor | int:
    """The larger display scale of each row."""
    one, two = row_scales(left), row_scales(right)
    if isinstance(one, int) and isinstance(two, int):
        return max(one, two)
    first = one if isinstance(one, Tensor) else torch.full((1,), one, dtype=torch.int16)
    second = two if isinstance(two, Tensor) else torch.full((1,), two, dtype=torch.int16)
    return torch.maximum(first, second)


def add(left: Column, right: Column, *, is_minus: bool = False) -> Column | None:
    """left + right, or left - right; None when Python decimals must do it."""
    if is_host(left, right):
        return None
    scale = max(left.scale, right.scale)
    one, two = rescaled(left, scale), rescaled(right, scale)
    if one is None or two is None:
        return None
    low, high = bounds(one), bounds(two)
    found = low.minus(high) if is_minus else low.plus(high)
    scales = _scales_joined(left, right)
    scales_given = None if isinstance(scales, int) else scales
    valid = all_valid(left, right)
    is_narrow = one.layout.kind is two.layout.kind is Kind.DECIMAL
    if is_narrow and found.fits_64:
        a, b = integers(one), integers(two)
        return narrow_column(
            left.type, a - b if is_minus else a + b, scale, valid, of=found, scales=scales_given
        )
    if not found.fits_128:
        return None
    total = (subtract_wide if is_minus else add_wide)(wide(one), wide(two))
    return wide_column(left.type, total, scale, valid, of=found, scales=scales_given)


def multiply(left: Column, right: Column) -> Column | None:
    """left * right; None when Python decimals must do it."""
    if is_host(left, right):
        return None
    found = bounds(left).by(bounds(right))
    scale = left.scale + right.scale
    one, two = row_scales(left), row_scales(right)
    scales = None if isinstance(one, int) and isinstance(two, int) else one + two
    valid = all_valid(left, right)
    is_narrow = left.layout.kind is right.layout.kind is Kind.DECIMAL
    if is_narrow and found.fits_64:
        product = integers(left) * integers(right)
        return narrow_column(left.type, product, scale, valid, of=found, scales=scales)
    if not found.fits_128:
        return None
    if is_narrow:
        value = multiply_narrow(integers(left), integers(right))
    else:
        value = multiply_wide(wide(left), wide(right))
    return wide_column(left.type, value, scale, valid, of=found, scales=scales)


def negate(column: Column) -> Column | None:
    """-column; None for Python decimals."""
    if is_host(column):
        return None
    found = bounds(column)
    found = Bounds(-found.hi, -found.lo)
    tail = column.data[-1:] if column.layout.has_row_scale else ()
    if column.layout.kind is Kind.DECIMAL:
        data = (-integers(column), *tail)
        kind = replace(column.layout, width=8)
        return Column(
            column.type, kind, data, column.valid, scale=column.scale, lo=found.lo, hi=found.hi
        )
    return replace(
        column, data=(*negate_wide(wide(column)), *tail), lo=found.lo, hi=found.hi
    )


def rounded(column: Column, scale: int, mode: str) -> Column | None:
    """The column with ``scale`` decimals: mode round (half away from zero), trunc, floor, ceil.

    None when Python decimals must do it. Rows showing fewer decimals show ``scale`` afterwards.
    """
    if is_host(column) or column.layout.kind is not Kind.DECIMAL or scale < 0:
        return None
    values = integers(column)
    found = bounds(column)
    if scale >= column.scale:
        factor = 10 ** (scale - column.scale)
        target = found.times(factor)
        if not target.fits_64:
            return None
        return decimal_column(
            column.type, values * factor, scale, column.valid, lo=target.lo, hi=target.hi
        )
    divisor = 10 ** (column.scale - scale)
    if divisor >= 2**62 or not Bounds(found.lo - divisor, found.hi + divisor).fits_64:
        return None
    if mode == "floor":
        quotient = torch.div(values, divisor, rounding_mode="floor")
    elif mode == "ceil":
        quotient = -torch.div(-values, divisor, rounding_mode="floor")
    elif mode == "trunc":
        quotient = torch.div(values, divisor, rounding_mode="trunc")
    else:
        half = torch.where(values < 0, -(divisor // 2), divisor // 2)
        quotient = torch.div(values + half, divisor, rounding_mode="trunc")
    low, high = found.lo // divisor - 1, found.hi // divisor + 1
    return decimal_column(column.type, quotient, scale, column.valid, lo=low, hi=high)


def from_decimals(type_: SqlType, values: Sequence[Decimal | None]) -> Column:
    """The column of numeric host values in the narrowest layout."""
    return from_values(type_, DECIMAL64, values)


# --- division ---

_DIVISOR_MAX = 2**62 // 10
_QUOTIENT_SCALE_MAX = 30
_POWERS = [10**n for n in range(19)]


def _weights(values: Tensor, scale: int) -> tuple[Tensor, Tensor]:
    """Per row the weight (power of 10000) and the first base-10000 digit of values / 10**scale."""
    size = values.abs()
    powers = torch.tensor(_POWERS, dtype=torch.int64, device=values.device)
    exponents = torch.searchsorted(powers, size, right=True) - 1
    exponents = exponents.clamp_min(0)
    weight = torch.div(exponents - scale, 4, rounding_mode="floor")
    shift = 4 * weight + scale
    down = powers[shift.clamp(0, 18)]
    up = powers[(-shift).clamp(0, 18)]
    digit = torch.where(
        shift >= 0, torch.div(size, down, rounding_mode="floor"), size * up
    )
    is_zero = size == 0
    return torch.where(is_zero, 0, weight), torch.where(is_zero, 0, digit)


def quotient_scales(left: Column, right: Column) -> Tensor:
    """The decimals PostgreSQL gives to each row's quotient (zero divisors count as 1)."""
    divisor = integers(right)
    weight1, digit1 = _weights(integers(left), left.scale)
    weight2, digit2 = _weights(torch.where(divisor == 0, 1, divisor), right.scale)
    weight = weight1 - weight2 - (digit1 <= digit2).to(torch.int64)
    shown = _scales_joined(left, right)
    if isinstance(shown, Tensor):
        shown = shown.to(torch.int64)
    least = torch.as_tensor(shown, dtype=torch.int64, device=weight.device)
    return torch.maximum(16 - 4 * weight, least).clamp(0, 1000)


def divide(left: Column, right: Column) -> Column | None:
    """left / right with PostgreSQL's scales, rounded half away from zero; zero divisors count as
    1. None when Python decimals must do it.
    """
    if is_host(left, right) or not left.layout.kind is right.layout.kind is Kind.DECIMAL:
        return None
    divisors = bounds(right)
    largest = max(abs(divisors.lo), abs(divisors.hi), 1)
    if largest >= _DIVISOR_MAX or not bounds(left).fits_64:
        return None
    scales = quotient_scales(left, right)
    rows = scales.shape[0]
    valid = all_valid(left, right)
    kept = scales if valid is None else torch.where(valid, scales, 0)
    top = int(kept.max()) if rows else 0
    lowest = int(scales.min()) if rows else 0
    if top > _QUOTIENT_SCALE_MAX or lowest + right.scale - left.scale < 0:
        return None
    scales = scales.clamp_max(top)
    numerator = integers(left).expand(rows)
    denominator = integers(right).expand(rows)
    denominator = torch.where(denominator == 0, 1, denominator)
    low = torch.zeros(rows, dtype=torch.int64, device=scales.device)
    high = torch.zeros_like(low)
    greatest = 0
    for scale in sorted(set(scales.tolist())):
        index = (scales == scale).nonzero().flatten()
        value = _long_division(
            numerator[index].abs(), denominator[index].abs(),
            scale + right.scale - left.scale, largest,
        )
        value = multiply_wide(value, constant_wide(10 ** (top - scale), low))
        if bool((value[1] < 0).any()):
            return None
        greatest = max(greatest, int(value[1].max()) if len(index) else 0)
        low[index], high[index] = value
    if greatest >= LIMIT_128 >> 64:
        return None
    is_negative = (numerator < 0) != (denominator < 0)
    minus = negate_wide((low, high))
    low, high = torch.where(is_negative, minus[0], low), torch.where(is_negative, minus[1], high)
    return _quotient_column(left.type, (low, high), top, scales, greatest, valid)


def _quotient_column(
    type_: SqlType, value: Wide, scale: int, scales: Tensor, greatest: int, valid: Tensor | None
) -> Column:
    """The narrowest column of the quotients; ``greatest`` bounds the high limbs' magnitude."""
    shown = None if bool((scales == scale).all()) else scales
    is_narrow = greatest == 0 and bool((value[1] == value[0] >> 63).all())
    if is_narrow:
        limit = INT64_MAX - 1
        return narrow_column(
            type_, value[0], scale, valid, of=Bounds(-limit, limit), scales=shown
        )
    limit = (greatest + 1) << 64
    return wide_column(type_, value, scale, valid, of=Bounds(-limit, limit), scales=shown)


def _long_division(numerator: Tensor, denominator: Tensor, digits: int, largest: int) -> Wide:
    """round(numerator * 10**digits / denominator) of non-negative int64, as 128 bits."""
    quotient = torch.div(numerator, denominator, rounding_mode="floor")
    rest = numerator - quotient * denominator
    total: Wide = widen(quotient)
    chunk_max = max(1, len(str((2**63 - 1) // largest)) - 1)
    while digits > 0:
        chunk = min(chunk_max, digits, 18)
        rest = rest * 10**chunk
        part = torch.div(rest, denominator, rounding_mode="floor")
        rest = rest - part * denominator
        total = add_wide(multiply_wide(total, constant_wide(10**chunk, rest)), widen(part))
        digits -= chunk
    up = (rest * 2 >= denominator).to(torch.int64)
    return add_wide(total, widen(up))
