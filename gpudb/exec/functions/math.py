"""Functions of double precision: rounding, roots, logarithms, trigonometry, random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from gpudb import errors, sqltype
from gpudb.catalog.functions import scalar
from gpudb.column import Column, float_column, null_column
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import Examples, rowwise
from gpudb.layout import HOST
from gpudb.sqltype import SqlType

_DOUBLE = SqlType(sqltype.FLOAT8)


def _overflow() -> errors.SqlError:
    return errors.NumericValueOutOfRange("value out of range: overflow")


def _underflow() -> errors.SqlError:
    return errors.NumericValueOutOfRange("value out of range: underflow")


def _out_of_range() -> errors.SqlError:
    return errors.NumericValueOutOfRange("input is out of range")


# --- rounding, over whole columns ---


def _vector(*keys: str, examples: Examples = ()) -> Callable[..., None]:
    def register(function: Callable[[Tensor], Tensor]) -> None:
        def body(context: EvaluationContext, column: Column) -> Column:
            values = function(column.data[0].to(torch.float64))
            return float_column(_DOUBLE, values, column.valid)

        scalar(*keys, examples=examples)(body)

    return register


_vector("dceil", examples=(("ceil(-42.8::float8)", "-42"),))(torch.ceil)
_vector("dfloor", examples=(("floor(-42.8::float8)", "-43"),))(torch.floor)
_vector("dround", examples=(("round(42.5::float8)", "42"),))(torch.round)
_vector("dtrunc", examples=(("trunc(42.8::float8)", "42"),))(torch.trunc)
_vector("dsign")(torch.sign)
_vector("radians")(lambda values: values * (math.pi / 180.0))


@rowwise("degrees", examples=(("degrees(0.5)", "28.64788975654116"),))
def degrees(value: float) -> float:
    return value / (math.pi / 180.0)


# --- value by value, with PostgreSQL's errors ---


@rowwise("dsqrt", examples=(("sqrt(2::float8)", "1.4142135623730951"),))
def square_root(value: float) -> float:
    if value < 0:
        raise errors.InvalidArgumentForPowerFunction(
            "cannot take square root of a negative number"
        )
    return math.sqrt(value)


@rowwise("dcbrt", examples=(("cbrt(8.0)", "2"),))
def cube_root(value: float) -> float:
    return math.cbrt(value)


@rowwise("dexp", examples=(("exp(1::float8)", "2.718281828459045"),))
def exponential(value: float) -> float:
    try:
        found = math.exp(value)
    except OverflowError:
        raise _overflow() from None
    if found == 0 and value != -math.inf:
        raise _underflow()
    return found


def _check_logarithm(value: float) -> None:
    if value == 0:
        raise errors.InvalidArgumentForLogarithm("cannot take logarithm of zero")
    if value < 0:
        raise errors.InvalidArgumentForLogarithm("cannot take logarithm of a negative number")


@rowwise("dlog1", examples=(("ln(2::float8)", "0.6931471805599453"),))
def natural_logarithm(value: float) -> float:
    _check_logarithm(value)
    return math.log(value)


@rowwise("dlog10", examples=(("log(100::float8)", "2"),))
def common_logarithm(value: float) -> float:
    _check_logarithm(value)
    return math.log10(value)


@rowwise("dpow", examples=(("power(9::float8, 3)", "729"),))
def power(base: float, exponent: float) -> float:
    if math.isnan(base) or math.isnan(exponent):
        return 1.0 if exponent == 0 or base == 1 else math.nan
    if base == 0 and exponent < 0:
        raise errors.InvalidArgumentForPowerFunction(
            "zero raised to a negative power is undefined"
        )
    if base < 0 and math.isfinite(exponent) and exponent != math.floor(exponent):
        raise errors.InvalidArgumentForPowerFunction(
            "a negative number raised to a non-integer power yields a complex result"
        )
    try:
        found = math.pow(base, exponent)
    except OverflowError:
        raise _overflow() from None
    if found == 0 and base != 0 and math.isfinite(base) and math.isfinite(exponent):
        raise _underflow()
    return found


def _finite(function: Callable[[float], float]) -> Callable[[float], float]:
    def call(value: float) -> float:
        if math.isnan(value):
            return value
        if math.isinf(value):
            raise _out_of_range()
        return function(value)

    return call


def _within_one(function: Callable[[float], float]) -> Callable[[float], float]:
    def call(value: float) -> float:
        if math.isnan(value):
            return value
        if not -1 <= value <= 1:
            raise _out_of_range()
        return function(value)

    return call


def _cotangent(value: float) -> float:
    tangent = math.tan(value)
    return math.copysign(math.inf, tangent) if tangent == 0 else 1 / tangent


def _sine_degrees(value: float) -> float:
    """Exact at multiples of 30 and 90 degrees."""
    rest = math.fmod(value, 360.0)
    sign = -1.0 if rest < 0 else 1.0
    rest = abs(rest)
    if rest > 180:
        rest, sign = 360 - rest, -sign
    rest = min(rest, 180 - rest)
    exact = {0.0: 0.0, 30.0: 0.5, 90.0: 1.0}
    found = exact.get(rest, math.sin(math.radians(rest)))
    return sign * found


def _cosine_degrees(value: float) -> float:
    rest = abs(math.fmod(value, 360.0))
    rest = 360 - rest if rest > 180 else rest
    sign = 1.0
    if rest > 90:
        rest, sign = 180 - rest, -1.0
    exact = {0.0: 1.0, 60.0: 0.5, 90.0: 0.0}
    return sign * exact.get(rest, math.cos(math.radians(rest)))


def _tangent_degrees(value: float) -> float:
    sine, cosine = _sine_degrees(value), _cosine_degrees(value)
    if abs(math.fmod(value, 180.0)) in (45.0, 135.0):
        return 1.0 if (sine > 0) == (cosine > 0) else -1.0
    if cosine == 0:
        return math.copysign(math.inf, sine)
    return sine / cosine + 0.0


def _cotangent_degrees(value: float) -> float:
    tangent = _tangent_degrees(value)
    if tangent == 0:
        return math.inf
    return 1 / tangent if math.isfinite(tangent) else 0.0


_ANGLES: dict[float, float] = {-1.0: -90.0, -0.5: -30.0, 0.0: 0.0, 0.5: 30.0, 1.0: 90.0}


def _arc_sine_degrees(value: float) -> float:
    return _ANGLES.get(value, math.degrees(math.asin(value)))


def _arc_cosine_degrees(value: float) -> float:
    found = {-1.0: 180.0, -0.5: 120.0, 0.0: 90.0, 0.5: 60.0, 1.0: 0.0}
    return found.get(value, math.degrees(math.acos(value)))


for _key, _function in (
    ("dsin", math.sin), ("dcos", math.cos), ("dtan", math.tan), ("dcot", _cotangent),
    ("dsind", _sine_degrees), ("dcosd", _cosine_degrees), ("dtand", _tangent_degrees),
    ("dcotd", _cotangent_degrees),
):
    rowwise(_key)(_finite(_function))
for _key, _function in (
    ("dasin", math.asin), ("dacos", math.acos), ("dasind", _arc_sine_degrees),
    ("dacosd", _arc_cosine_degrees),
):
    rowwise(_key)(_within_one(_function))
rowwise("datan")(math.atan)
rowwise("datand")(lambda value: math.degrees(math.atan(value)))
rowwise("datan2")(math.atan2)
rowwise("datan2d")(lambda y, x: math.degrees(math.atan2(y, x)))
rowwise("dasinh")(math.asinh)
rowwise("dtanh")(math.tanh)


def _saturating(function: Callable[[float], float]) -> Callable[[float], float]:
    def call(value: float) -> float:
        try:
            return function(value)
        except OverflowError:
            return math.copysign(math.inf, value) if function is math.sinh else math.inf

    return call


rowwise("dsinh")(_saturating(math.sinh))
rowwise("dcosh")(_saturating(math.cosh))


@rowwise("dacosh")
def hyperbolic_arc_cosine(value: float) -> float:
    if value < 1:
        raise _out_of_range()
    return math.acosh(value)


@rowwise("datanh")
def hyperbolic_arc_tangent(value: float) -> float:
    if not (math.isnan(value) or -1 <= value <= 1):
        raise _out_of_range()
    if abs(value) == 1:
        return math.copysign(math.inf, value)
    return math.atanh(value)


rowwise("dpi", examples=(("pi()", "3.141592653589793"),))(lambda: math.pi)


@rowwise("width_bucket_float8", examples=(("width_bucket(5.35::float8, 0.024, 10.06, 5)", "3"),))
def width_bucket(operand: float, low: float, high: float, count: int) -> int:
    """The number of the equal-width bucket; 0 below, count + 1 above."""
    kind = errors.InvalidArgumentForWidthBucketFunction
    if count <= 0:
        raise kind("count must be greater than zero")
    if math.isnan(operand) or math.isnan(low) or math.isnan(high):
        raise kind("operand, lower bound, and upper bound cannot be NaN")
    if math.isinf(low) or math.isinf(high):
        raise kind("lower and upper bounds must be finite")
    if low == high:
        raise kind("lower bound cannot equal upper bound")
    if low > high:
        operand, low, high = -operand, -low, -high
    if operand < low:
        return 0
    if operand >= high:
        if count >= 2**31 - 1:
            raise errors.NumericValueOutOfRange("integer out of range")
        return count + 1
    return min(int((operand - low) / (high - low) * count), count - 1) + 1


# --- random numbers: a counter-based generator, so that rows are reproducible for a seed ---

_GOLDEN = 0x9E3779B97F4A7C15


def random_words(seed: int, first: int, rows: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """64 random bits for each row number, by SplitMix64 on seed and row."""
    counter = np.arange(first + 1, first + rows + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed = counter * np.uint64(_GOLDEN) + np.uint64(seed % 2**64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


@scalar("drandom")
def random(context: EvaluationContext) -> Column:
    """One number in [0, 1) per row."""
    seed = context.query.seed + context.position * 7919
    words = random_words(seed, context.row_offset, max(context.rows, 1))
    values = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return float_column(_DOUBLE, torch.from_numpy(values))


@scalar("setseed", fallible=True)
def set_seed(context: EvaluationContext, column: Column) -> Column:
    """Seeds the session's random numbers; -1 to 1."""
    value = float(column.data[0][0])
    if math.isnan(value) or not -1 <= value <= 1:
        everywhere = torch.ones(1, dtype=torch.bool)
        context.report_where(everywhere, errors.InvalidParameterValue(
            f"setseed parameter {value:g} is out of allowed range [-1,1]"
        ))
    elif context.query.session is not None:
        context.query.session.set_seed(int(value * (2**31 - 1)))
    return null_column(SqlType(sqltype.VOID), HOST)
