"""PostgreSQL's numeric operations on single Python Decimals: exact digits and result scales.

The scales follow numeric.c's rules, in which a number's *weight* is the power of 10000 of its
first base-10000 digit.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal

from gpudb import errors
from gpudb.catalog.types.numeric import (
    EXACT,
    SCALE_MAX,
    WHOLE_DIGITS_MAX,
    display_scale,
    overflow,
    rounded,
    unsigned_zero,
)

SIGNIFICANT_DIGITS_MIN = 16
DISPLAY_SCALE_MAX = 1000
_RESULT_SCALE_MAX = 2000
_LOG10_E = 0.434294481903252
NAN = Decimal("NaN")
INFINITY = Decimal("Infinity")


def division_by_zero() -> errors.SqlError:
    return errors.DivisionByZero("division by zero")


def checked(value: Decimal) -> Decimal:
    """The value, or 22003 where numeric can't hold it."""
    if value.is_finite() and not value.is_zero() and value.adjusted() >= WHOLE_DIGITS_MAX:
        raise overflow()
    return unsigned_zero(value)


def weight_and_digit(value: Decimal) -> tuple[int, int]:
    """The weight of a finite number and its first base-10000 digit; (0, 0) for zero."""
    if value.is_zero():
        return 0, 0
    weight = value.adjusted() // 4
    digits = value.as_tuple().digits
    places = value.adjusted() - 4 * weight + 1
    first = digits[:places] + (0,) * (places - len(digits))
    return weight, int("".join(map(str, first)))


def unscaled(value: Decimal) -> int:
    """value * 10**scale as an integer."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    number = int(Decimal((0, digits, 0)))
    return -number if sign else number


def scaled(number: int, scale: int) -> Decimal:
    """number / 10**scale with ``scale`` decimals."""
    return EXACT.create_decimal(number).scaleb(-scale, context=EXACT)


def _half_away(numerator: int, denominator: int) -> int:
    """The quotient rounded half away from zero."""
    quotient, rest = divmod(abs(numerator), abs(denominator))
    quotient += 2 * rest >= abs(denominator)
    return -quotient if (numerator < 0) != (denominator < 0) else quotient


def quotient_scale(left: Decimal, right: Decimal) -> int:
    """The number of decimals PostgreSQL gives to left / right."""
    weight1, digit1 = weight_and_digit(left)
    weight2, digit2 = weight_and_digit(right)
    weight = weight1 - weight2 - (digit1 <= digit2)
    scale = max(SIGNIFICANT_DIGITS_MIN - weight * 4, display_scale(left), display_scale(right), 0)
    return min(scale, DISPLAY_SCALE_MAX)


def divide(left: Decimal, right: Decimal) -> Decimal:
    """left / right as PostgreSQL rounds it; 22012."""
    if not (left.is_finite() and right.is_finite()):
        return _divide_special(left, right)
    if right.is_zero():
        raise division_by_zero()
    scale = quotient_scale(left, right)
    shift = scale + display_scale(right) - display_scale(left)
    numerator, denominator = unscaled(left), unscaled(right)
    if shift >= 0:
        numerator *= 10**shift
    else:
        denominator *= 10**-shift
    return checked(scaled(_half_away(numerator, denominator), scale))


def _divide_special(left: Decimal, right: Decimal) -> Decimal:
    if left.is_nan() or right.is_nan():
        return NAN
    if right.is_zero():
        raise division_by_zero()
    if left.is_infinite():
        if right.is_infinite():
            return NAN
        return left if right > 0 else left.copy_negate()
    return Decimal(0)


def divide_truncated(left: Decimal, right: Decimal) -> Decimal:
    """The integer quotient, truncated toward zero."""
    if not (left.is_finite() and right.is_finite()):
        return _divide_special(left, right)
    if right.is_zero():
        raise division_by_zero()
    scale = max(display_scale(left), display_scale(right))
    a = unscaled(left) * 10 ** (scale - display_scale(left))
    b = unscaled(right) * 10 ** (scale - display_scale(right))
    quotient = abs(a) // abs(b)
    return EXACT.create_decimal(-quotient if (a < 0) != (b < 0) else quotient)


def modulo(left: Decimal, right: Decimal) -> Decimal:
    """left - right * trunc(left / right); the sign is the dividend's."""
    if left.is_nan() or right.is_nan():
        return NAN
    if right.is_zero():
        raise division_by_zero()
    if left.is_infinite():
        return NAN
    if right.is_infinite():
        return left
    scale = max(display_scale(left), display_scale(right))
    a = unscaled(left) * 10 ** (scale - display_scale(left))
    b = unscaled(right) * 10 ** (scale - display_scale(right))
    rest = abs(a) % abs(b)
    return scaled(-rest if a < 0 else rest, scale)


def add(left: Decimal, right: Decimal) -> Decimal:
    return checked(EXACT.add(left, right))


def subtract(left: Decimal, right: Decimal) -> Decimal:
    return checked(EXACT.subtract(left, right))


def multiply(left: Decimal, right: Decimal) -> Decimal:
    product = EXACT.multiply(left, right)
    if product.is_finite() and display_scale(product) > SCALE_MAX:
        product = rounded(product, SCALE_MAX)
    return checked(product)


def round_to(value: Decimal, scale: int) -> Decimal:
    """round(value, scale); scale may be negative, the result then shows no decimals."""
    if not value.is_finite():
        return value
    scale = max(min(scale, _RESULT_SCALE_MAX), -_RESULT_SCALE_MAX)
    return checked(rounded(value, scale))


def truncate_to(value: Decimal, scale: int) -> Decimal:
    if not value.is_finite():
        return value
    scale = max(min(scale, _RESULT_SCALE_MAX), -_RESULT_SCALE_MAX)
    number, own = unscaled(value), display_scale(value)
    if scale >= own:
        return scaled(number * 10 ** (scale - own), scale)
    cut = abs(number) // 10 ** (own - scale)
    cut = -cut if number < 0 else cut
    return scaled(cut, scale) if scale >= 0 else EXACT.create_decimal(cut * 10**-scale)


def floor(value: Decimal) -> Decimal:
    if not value.is_finite():
        return value
    return EXACT.create_decimal(unscaled(value) // 10 ** display_scale(value))


def ceiling(value: Decimal) -> Decimal:
    if not value.is_finite():
        return value
    return EXACT.create_decimal(-(-unscaled(value) // 10 ** display_scale(value)))


def trim_scale(value: Decimal) -> Decimal:
    """Without trailing zeros after the point."""
    return rounded(value, min_scale(value)) if value.is_finite() else value


def min_scale(value: Decimal) -> int:
    """The decimals needed to show the value exactly."""
    number, scale = unscaled(value), display_scale(value)
    if number == 0:
        return 0
    while scale > 0 and number % 10 == 0:
        number //= 10
        scale -= 1
    return scale


# --- roots, logarithms, powers ---


def _context(digits: int) -> decimal.Context:
    return decimal.Context(
        prec=max(digits, 30), rounding=decimal.ROUND_HALF_EVEN, Emin=-999_999, Emax=999_999,
        traps=[],
    )


def square_root(value: Decimal) -> Decimal:
    if value.is_nan():
        return value
    if value < 0:
        raise errors.InvalidArgumentForPowerFunction(
            "cannot take square root of a negative number"
        )
    if value.is_infinite():
        return value
    weight = weight_and_digit(value)[0]
    root_weight = weight * 2 + 1 if weight >= 0 else 1 - (1 - weight * 4) // 2
    scale = max(SIGNIFICANT_DIGITS_MIN - root_weight, display_scale(value), 0)
    scale = min(scale, DISPLAY_SCALE_MAX)
    shift = 2 * scale - display_scale(value)
    number = unscaled(value)
    shifted = number * 10**shift if shift >= 0 else number // 10**-shift
    root = math.isqrt(shifted)
    root += shifted - root * root > root
    return scaled(root, scale)


def _to_float(value: Decimal) -> float:
    return float(value)


def exponential(value: Decimal) -> Decimal:
    if value.is_nan():
        return value
    if value.is_infinite():
        return value if value > 0 else Decimal(0)
    power = max(-_RESULT_SCALE_MAX, min(_RESULT_SCALE_MAX, _to_float(value) * _LOG10_E))
    scale = max(SIGNIFICANT_DIGITS_MIN - int(power), display_scale(value), 0)
    scale = min(scale, DISPLAY_SCALE_MAX)
    return exp_to(value, scale)


def exp_to(value: Decimal, scale: int) -> Decimal:
    """e**value with ``scale`` decimals; 22003."""
    if abs(_to_float(value)) >= _RESULT_SCALE_MAX * 3:
        if value > 0:
            raise overflow()
        return scaled(0, scale)
    digits = int(abs(_to_float(value)) * _LOG10_E) + scale + 20
    if value < 0:
        digits = max(scale + 20 - int(abs(_to_float(value)) * _LOG10_E), 30)
    return checked(rounded(_context(digits).exp(value), scale))


def log_weight(value: Decimal) -> int:
    """The decimal weight of ln(value), as numeric.c estimates it."""
    if value <= 0:
        return 0
    if Decimal("0.9") <= value <= Decimal("1.1"):
        rest = EXACT.subtract(value, Decimal(1))
        if rest.is_zero():
            return 0
        weight, digit = weight_and_digit(rest)
        return weight * 4 + int(math.log10(digit))
    weight, _ = weight_and_digit(value)
    digits = value.as_tuple().digits
    places = value.adjusted() - 4 * weight + 1 + 4
    if len([d for d in digits[places - 4 :] if d]) == 0:
        first = weight_and_digit(value)[1]
        estimate = math.log(first) + weight * 4 * 2.302585092994046
    else:
        lead = digits[:places] + (0,) * (places - len(digits))
        estimate = math.log(int("".join(map(str, lead)))) + (weight - 1) * 4 * 2.302585092994046
    return int(math.log10(abs(estimate)))


def _check_logarithm(value: Decimal) -> None:
    if value.is_zero():
        raise errors.InvalidArgumentForLogarithm("cannot take logarithm of zero")
    if value < 0:
        raise errors.InvalidArgumentForLogarithm("cannot take logarithm of a negative number")


def natural_log(value: Decimal) -> Decimal:
    if value.is_nan():
        return value
    _check_logarithm(value)
    if value.is_infinite():
        return value
    scale = max(SIGNIFICANT_DIGITS_MIN - log_weight(value), display_scale(value), 0)
    scale = min(scale, DISPLAY_SCALE_MAX)
    return unsigned_zero(rounded(_context(scale + 30).ln(value), scale))


def logarithm(base: Decimal, value: Decimal) -> Decimal:
    """The logarithm of value to the base; 2201E, 22012."""
    if base.is_nan() or value.is_nan():
        return NAN
    _check_logarithm(base)
    _check_logarithm(value)
    if base.is_infinite() or value.is_infinite():
        if base.is_infinite():
            return NAN if value.is_infinite() else Decimal(0)
        return INFINITY
    weight = log_weight(value) - log_weight(base)
    scale = max(SIGNIFICANT_DIGITS_MIN - weight, display_scale(base), display_scale(value), 0)
    scale = min(scale, DISPLAY_SCALE_MAX)
    context = _context(scale + abs(log_weight(value)) + abs(log_weight(base)) + 40)
    divisor = context.ln(base)
    if divisor.is_zero():
        raise division_by_zero()
    return unsigned_zero(rounded(context.divide(context.ln(value), divisor), scale))


def power(base: Decimal, exponent: Decimal) -> Decimal:
    """base ** exponent; 2201F, 22003."""
    if not (base.is_finite() and exponent.is_finite()):
        return _power_special(base, exponent)
    is_integer = exponent == exponent.to_integral_value(context=EXACT)
    if base.is_zero() and exponent < 0:
        raise errors.InvalidArgumentForPowerFunction(
            "zero raised to a negative power is undefined"
        )
    if base < 0 and not is_integer:
        raise errors.InvalidArgumentForPowerFunction(
            "a negative number raised to a non-integer power yields a complex result"
        )
    if is_integer and abs(int(exponent)) < 2**31:
        scale = max(SIGNIFICANT_DIGITS_MIN, display_scale(base), 0)
        return _integer_power(base, int(exponent), min(scale, DISPLAY_SCALE_MAX))
    if base.is_zero():
        return scaled(0, SIGNIFICANT_DIGITS_MIN)
    return _real_power(base, exponent)


def _integer_power(base: Decimal, exponent: int, scale: int) -> Decimal:
    if exponent == 0:
        return scaled(10**scale, scale)
    if base.is_zero():
        return scaled(0, scale)
    estimate = exponent * (math.log10(float(base.copy_abs().scaleb(-base.adjusted())))
                           + base.adjusted())
    if estimate > WHOLE_DIGITS_MAX:
        raise overflow()
    if estimate + 1 < -scale:
        return scaled(0, scale)
    digits = int(abs(estimate)) + scale + 30 if estimate > 0 else scale + 30
    context = _context(digits + len(str(exponent)))
    return checked(rounded(context.power(base, Decimal(exponent)), scale))


def _real_power(base: Decimal, exponent: Decimal) -> Decimal:
    if base < 0:
        sign = -1 if int(exponent) % 2 else 1
        base = base.copy_abs()
    else:
        sign = 1
    size = _to_float(_context(40).multiply(_context(40).ln(base), exponent))
    if abs(size) > _RESULT_SCALE_MAX * 3.01:
        if size > 0:
            raise overflow()
        return scaled(0, DISPLAY_SCALE_MAX)
    estimate = size * _LOG10_E
    scale = max(
        SIGNIFICANT_DIGITS_MIN - int(estimate), display_scale(base), display_scale(exponent), 0
    )
    scale = min(scale, DISPLAY_SCALE_MAX)
    context = _context(scale + int(abs(estimate)) + 40)
    value = rounded(context.power(base, exponent), scale)
    return checked(value.copy_negate() if sign < 0 else value)


def _power_special(base: Decimal, exponent: Decimal) -> Decimal:
    if exponent.is_zero() or (base.is_finite() and base == 1):
        return Decimal(1)
    if base.is_nan() or exponent.is_nan():
        return NAN
    if base.is_zero() and exponent < 0:
        raise errors.InvalidArgumentForPowerFunction(
            "zero raised to a negative power is undefined"
        )
    if exponent.is_infinite():
        size = base.copy_abs()
        if size == 1:
            return Decimal(1)
        return INFINITY if (size > 1) == (exponent > 0) else Decimal(0)
    is_integer = exponent == exponent.to_integral_value(context=EXACT)
    if base < 0 and not is_integer:
        raise errors.InvalidArgumentForPowerFunction(
            "a negative number raised to a non-integer power yields a complex result"
        )
    if exponent < 0:
        return Decimal(0)
    is_odd = is_integer and int(exponent) % 2 == 1
    return INFINITY.copy_negate() if base < 0 and is_odd else INFINITY


def factorial(value: int) -> Decimal:
    if value < 0:
        raise errors.NumericValueOutOfRange("factorial of a negative number is undefined")
    if value > 32177:
        raise overflow()
    return EXACT.create_decimal(math.factorial(value))


def greatest_divisor(left: Decimal, right: Decimal) -> Decimal:
    scale, a, b = _common(left, right)
    return NAN if scale < 0 else scaled(math.gcd(a, b), scale)


def least_multiple(left: Decimal, right: Decimal) -> Decimal:
    scale, a, b = _common(left, right)
    return NAN if scale < 0 else checked(scaled(math.lcm(a, b), scale))


def _common(left: Decimal, right: Decimal) -> tuple[int, int, int]:
    """The common scale (-1 for special values) and both integers at it."""
    if not (left.is_finite() and right.is_finite()):
        return -1, 0, 0
    scale = max(display_scale(left), display_scale(right))
    a = unscaled(left) * 10 ** (scale - display_scale(left))
    b = unscaled(right) * 10 ** (scale - display_scale(right))
    return scale, a, b
