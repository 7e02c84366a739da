"""numeric: decimal.Decimal whose exponent is minus the display scale."""

from __future__ import annotations

import decimal
import re
import struct
from decimal import Decimal

from gpudb import errors, layout, sqltype
from gpudb.catalog.types.base import DataType, HostValue, TypeContext
from gpudb.catalog.types.integers import syntax_error
from gpudb.sqltype import numeric_precision_scale, numeric_typmod

WHOLE_DIGITS_MAX = 131072
SCALE_MAX = 16383
PRECISION_MAX = 1000

EXACT = decimal.Context(
    prec=400_000, rounding=decimal.ROUND_HALF_UP, Emin=-999_999, Emax=999_999, traps=[]
)
"""Arithmetic that never rounds a numeric; quantize rounds half away from zero."""

_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_SPECIAL = {
    "nan": Decimal("NaN"), "infinity": Decimal("Infinity"), "+infinity": Decimal("Infinity"),
    "-infinity": Decimal("-Infinity"), "inf": Decimal("Infinity"), "+inf": Decimal("Infinity"),
    "-inf": Decimal("-Infinity"),
}


def overflow() -> errors.SqlError:
    return errors.NumericValueOutOfRange("value overflows numeric format")


def rounded(value: Decimal, scale: int) -> Decimal:
    """A finite value with ``scale`` decimals, rounded half away from zero; scale may be < 0."""
    if scale < 0:
        step = value.quantize(Decimal((0, (1,), -scale)), context=EXACT)
        return step.quantize(Decimal(1), context=EXACT)
    return value.quantize(Decimal((0, (1,), -scale)), context=EXACT)


def display_scale(value: Decimal) -> int:
    """The number of decimals shown; 0 for NaN and infinities."""
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def unsigned_zero(value: Decimal) -> Decimal:
    """The value; numeric knows no minus zero."""
    return value.copy_abs() if value.is_zero() and value.is_signed() else value


def parse_numeric(text: str) -> Decimal:
    """The value that ``text`` denotes; 22P02, or 22003 beyond numeric's format."""
    word = text.strip(" \t\n\r\f\v")
    special = _SPECIAL.get(word.lower())
    if special is not None:
        return special
    match = _NUMBER.fullmatch(word)
    if match is None or not (match[2] or match[3]):
        raise syntax_error("numeric", text)
    sign, whole, fraction = match[1], match[2] or "", match[3] or ""
    power = match[4] or "0"
    if len(power) > 10 or abs(int(power)) > 1_000_000_000:
        raise syntax_error("numeric", text)
    return _assembled(sign, whole + fraction, int(power) - len(fraction))


def _assembled(sign: str, digits: str, exponent: int) -> Decimal:
    significant = digits.lstrip("0")
    if not significant:
        if -exponent > SCALE_MAX:
            raise overflow()
        return Decimal((0, (0,), min(exponent, 0)))
    if len(significant) + exponent > WHOLE_DIGITS_MAX or -exponent > SCALE_MAX:
        raise overflow()
    if exponent > 0:
        significant, exponent = significant + "0" * exponent, 0
    value = EXACT.create_decimal(sign + significant)
    return value.scaleb(exponent, context=EXACT) if exponent else value


def format_numeric(value: Decimal) -> str:
    """Plain digits with the display scale; NaN, Infinity."""
    if not value.is_finite():
        return "NaN" if value.is_nan() else ("-Infinity" if value < 0 else "Infinity")
    if value.is_zero() and value.is_signed():
        value = value.copy_negate()
    return format(value, "f")


def fit(value: Decimal, typmod: int) -> Decimal:
    """The value rounded to numeric(precision, scale); 22003 when it has too many digits."""
    if typmod < 0 or value.is_nan():
        return value
    precision, scale = numeric_precision_scale(typmod)
    if value.is_infinite():
        raise errors.NumericValueOutOfRange(
            "numeric field overflow",
            detail=f"A field with precision {precision}, scale {scale} cannot hold an infinite "
            "value.",
        )
    found = rounded(value, scale)
    if not found.is_zero() and found.adjusted() >= precision - scale:
        power = precision - scale
        raise errors.NumericValueOutOfRange(
            "numeric field overflow",
            detail=f"A field with precision {precision}, scale {scale} must round to an absolute "
            f"value less than {f'10^{power}' if power else '1'}.",
        )
    return found


class NumericType(DataType):
    def __init__(self) -> None:
        super().__init__(
            sqltype.NUMERIC, "numeric", "numeric", array_oid=1231, category="N",
            layout=layout.DECIMAL64,
        )

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        return fit(parse_numeric(text), typmod)

    def format(self, value: HostValue, context: TypeContext) -> str:
        return format_numeric(value)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        return fit(receive_numeric(raw), typmod)

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return send_numeric(value)

    def typmod_in(self, modifiers: tuple[int | str, ...]) -> int:
        numbers = [int(m) for m in modifiers]
        if len(numbers) not in (1, 2):
            raise errors.InvalidParameterValue("invalid NUMERIC type modifier")
        precision, scale = numbers[0], numbers[1] if len(numbers) == 2 else 0
        if not 1 <= precision <= PRECISION_MAX:
            raise errors.InvalidParameterValue(
                f"NUMERIC precision {precision} must be between 1 and {PRECISION_MAX}"
            )
        if not -1000 <= scale <= 1000:
            raise errors.InvalidParameterValue(
                f"NUMERIC scale {scale} must be between -1000 and 1000"
            )
        return numeric_typmod(precision, scale)

    def typmod_out(self, typmod: int) -> str:
        if typmod < 0:
            return ""
        precision, scale = numeric_precision_scale(typmod)
        return f"({precision},{scale})"

    def apply_typmod(self, value: HostValue, typmod: int, *, is_explicit: bool) -> HostValue:
        return fit(value, typmod)

    def sort_key(self, value: HostValue) -> tuple[bool, Decimal]:
        return (True, Decimal(0)) if value.is_nan() else (False, value)


def send_numeric(value: Decimal) -> bytes:
    """PostgreSQL's binary form: digits of base 10000, weight, sign, display scale."""
    if not value.is_finite():
        sign = 0xC000 if value.is_nan() else (0xF000 if value < 0 else 0xD000)
        scale = 0 if value.is_nan() else 0x20  # PostgreSQL shows bits of the sign there
        return struct.pack(">hhHH", 0, 0, sign, scale)
    scale = display_scale(value)
    whole, _, fraction = format(value.copy_abs(), "f").partition(".")
    whole = whole.lstrip("0")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    text = whole + fraction
    digits = [int(text[i : i + 4]) for i in range(0, len(text), 4)]
    weight = len(whole) // 4 - 1
    while digits and digits[0] == 0:
        digits.pop(0)
        weight -= 1
    while digits and digits[-1] == 0:
        digits.pop()
    sign = 0x4000 if value < 0 else 0
    head = struct.pack(">hhHH", len(digits), weight if digits else 0, sign, scale)
    return head + struct.pack(f">{len(digits)}h", *digits)


def receive_numeric(raw: bytes) -> Decimal:
    """The value of PostgreSQL's binary form; 22P03 for a malformed one."""
    if len(raw) < 8:
        raise errors.ProtocolViolation("insufficient data left in message")
    count, weight, sign, scale = struct.unpack(">HhHH", raw[:8])
    if sign not in (0, 0x4000, 0xC000, 0xD000, 0xF000):
        raise errors.InvalidBinaryRepresentation('invalid sign in external "numeric" value')
    if scale > SCALE_MAX:
        raise errors.InvalidBinaryRepresentation('invalid scale in external "numeric" value')
    if len(raw) < 8 + 2 * count:
        raise errors.ProtocolViolation("insufficient data left in message")
    digits = struct.unpack(f">{count}h", raw[8 : 8 + 2 * count])
    if any(not 0 <= d <= 9999 for d in digits):
        raise errors.InvalidBinaryRepresentation('invalid digit in external "numeric" value')
    if sign in (0xC000, 0xD000, 0xF000):
        return Decimal({0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}[sign])
    unscaled = EXACT.create_decimal("".join(f"{d:04d}" for d in digits) or "0")
    value = unscaled.scaleb(4 * (weight - count + 1), context=EXACT)
    if sign == 0x4000:
        value = value.copy_negate()
    if not value.is_zero() and value.adjusted() >= WHOLE_DIGITS_MAX:
        raise overflow()
    return value.quantize(
        Decimal((0, (1,), -scale)), rounding=decimal.ROUND_DOWN, context=EXACT
    )


TYPES: tuple[DataType, ...] = (NumericType(),)
