"""real and double precision: shortest round-trip text, IEEE binary form."""

from __future__ import annotations

import math
import re
import struct

import numpy as np

from gpudb import errors, layout, sqltype
from gpudb.catalog.types.base import DataType, HostValue, TypeContext
from gpudb.catalog.types.integers import check_length, syntax_error
from gpudb.layout import Layout

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_HEX = re.compile(r"[+-]?0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?(?:[pP][+-]?[0-9]+)?", re.ASCII)
_SPECIAL = {
    "nan": math.nan, "infinity": math.inf, "+infinity": math.inf, "-infinity": -math.inf,
    "inf": math.inf, "+inf": math.inf, "-inf": -math.inf,
}
_SPACES = " \t\n\r\f\v"


def _place(digits: str, exponent: int, last_plain: int) -> str:
    """Digits d1d2d3... times 10**exponent (of d1): plain or in PostgreSQL's e notation."""
    if -4 <= exponent < last_plain:
        if exponent < 0:
            return "0." + "0" * (-exponent - 1) + digits
        if len(digits) <= exponent + 1:
            return digits + "0" * (exponent + 1 - len(digits))
        return digits[: exponent + 1] + "." + digits[exponent + 1 :]
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _shortest(text: str, last_plain: int) -> str:
    """Re-place Python's or numpy's shortest digits."""
    sign = "-" if text[0] == "-" else ""
    mantissa, _, power = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    exponent = len(whole) - 1 + int(power or 0)
    stripped = digits.lstrip("0")
    if not stripped:
        return sign + "0"
    exponent -= len(digits) - len(stripped)
    return sign + _place(stripped.rstrip("0"), exponent, last_plain)


def format_float(value: float, *, is_single: bool = False, extra_digits: int = 1) -> str:
    """PostgreSQL's text of a float: shortest round-trip when extra_float_digits > 0."""
    if math.isnan(value):
        return "NaN"
    if value in (math.inf, -math.inf):
        return "Infinity" if value > 0 else "-Infinity"
    if extra_digits > 0:
        if is_single:
            return _shortest(np.format_float_scientific(np.float32(value), unique=True), 6)
        return _shortest(repr(float(value)), 15)
    digits = max((6 if is_single else 15) + extra_digits, 1)
    return f"{value:.{digits}g}"


def to_single(value: float) -> float:
    """The value rounded to single precision (infinite beyond its range)."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def parse_float(text: str, sql_name: str, *, is_single: bool) -> float:
    """The float that ``text`` denotes; 22P02, or 22003 when it over- or underflows."""
    word = text.strip(_SPACES)
    special = _SPECIAL.get(word.lower())
    if special is not None:
        return special
    if _NUMBER.fullmatch(word):
        value = float(word)
    elif _HEX.fullmatch(word):
        value = float.fromhex(word)
    else:
        raise syntax_error(sql_name, text)
    if is_single:
        value = to_single(value)
    lost = value == 0 and any(c in "123456789" for c in re.split("[eE]", word)[0])
    if math.isinf(value) or lost:
        raise errors.NumericValueOutOfRange(f'"{text}" is out of range for type {sql_name}')
    return value


class FloatType(DataType):
    def __init__(self, oid: int, name: str, sql_name: str, array_oid: int, length: int) -> None:
        super().__init__(
            oid, name, sql_name, array_oid=array_oid, length=length, category="N",
            is_preferred=length == 8, layout=Layout(layout.Kind.FLOAT, length),
        )
        self._code = ">f" if length == 4 else ">d"

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        return parse_float(text, self.sql_name, is_single=self.length == 4)

    def format(self, value: HostValue, context: TypeContext) -> str:
        return format_float(
            value, is_single=self.length == 4, extra_digits=context.extra_float_digits
        )

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        check_length(raw, self.length)
        return struct.unpack(self._code, raw)[0]

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return struct.pack(self._code, value)

    def sort_key(self, value: HostValue) -> tuple[bool, float]:
        return (True, 0.0) if math.isnan(value) else (False, value)


TYPES: tuple[DataType, ...] = (
    FloatType(sqltype.FLOAT4, "float4", "real", 1021, 4),
    FloatType(sqltype.FLOAT8, "float8", "double precision", 1022, 8),
)
