"""Arithmetic of numeric: scaled integers where bounds allow, Python decimals otherwise."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from gpudb import errors, sqltype
from gpudb.catalog.functions import scalar
from gpudb.catalog.types.numeric import EXACT, display_scale
from gpudb.column import Column, all_valid, decimal_column, integer_column, integers
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import Examples, evaluate, rowwise
from gpudb.kernels import decimal as kernel
from gpudb.kernels import decimal_math
from gpudb.layout import Kind
from gpudb.sqltype import NUMERIC_TYPE, SqlType

Binary = Callable[[Decimal, Decimal], Decimal]


def _host(
    context: EvaluationContext, function: Callable[..., Decimal], *columns: Column
) -> Column:
    return evaluate(context, function, columns, NUMERIC_TYPE)


@scalar("numeric_add", fallible=True, examples=(("1.5 + 2.25", "3.75"),))
def add(context: EvaluationContext, left: Column, right: Column) -> Column:
    return kernel.add(left, right) or _host(context, decimal_math.add, left, right)


@scalar("numeric_sub", fallible=True, examples=(("1.5 - 2.25", "-0.75"),))
def subtract(context: EvaluationContext, left: Column, right: Column) -> Column:
    found = kernel.add(left, right, is_minus=True)
    return found or _host(context, decimal_math.subtract, left, right)


@scalar("numeric_mul", fallible=True, examples=(("1.5 * 2.25", "3.375"),))
def multiply(context: EvaluationContext, left: Column, right: Column) -> Column:
    return kernel.multiply(left, right) or _host(context, decimal_math.multiply, left, right)


@scalar(
    "numeric_div", fallible=True,
    examples=(("7.0 / 2", "3.5000000000000000"), ("1.0 / 3", "0.33333333333333333333")),
)
def divide(context: EvaluationContext, left: Column, right: Column) -> Column:
    if right.layout.kind is Kind.DECIMAL:
        is_zero = integers(right) == 0
        valid = all_valid(left, right)
        is_bad = is_zero if valid is None else is_zero & valid
        if not kernel.is_host(left):
            context.report_where(is_bad, decimal_math.division_by_zero())
    found = kernel.divide(left, right)
    return found or _host(context, decimal_math.divide, left, right)


@scalar("numeric_uminus", examples=(("-(1.5)", "-1.5"),))
def negate(context: EvaluationContext, column: Column) -> Column:
    return kernel.negate(column) or _host(context, _negated, column)


def _negated(value: Decimal) -> Decimal:
    return value if value.is_zero() or value.is_nan() else value.copy_negate()


@scalar("numeric_uplus")
def same(context: EvaluationContext, column: Column) -> Column:
    return column


@scalar("numeric_abs", examples=(("abs(-17.4)", "17.4"),))
def absolute(context: EvaluationContext, column: Column) -> Column:
    if column.layout.kind is Kind.DECIMAL:
        found = kernel.bounds(column)
        largest = max(abs(found.lo), abs(found.hi))
        lowest = 0 if found.lo <= 0 <= found.hi else min(abs(found.lo), abs(found.hi))
        tail = kernel.row_scales(column)
        return kernel.narrow_column(
            NUMERIC_TYPE, integers(column).abs(), column.scale, column.valid,
            of=kernel.Bounds(lowest, largest), scales=tail,
        )
    return _host(context, Decimal.copy_abs, column)


def _rounder(mode: str, exact: Callable[[Decimal, int], Decimal]) -> Callable[..., Column]:
    def body(context: EvaluationContext, column: Column, digits: Column | None = None) -> Column:
        if digits is None or digits.rows == 1:
            scale = 0 if digits is None else int(integers(digits)[0])
            found = kernel.rounded(column, scale, mode)
            if found is not None:
                if digits is not None and digits.valid is not None:
                    valid = all_valid(column, digits)
                    found = Column(
                        found.type, found.layout, found.data, valid, scale=found.scale,
                        lo=found.lo, hi=found.hi,
                    )
                return found
        if digits is None:
            return _host(context, lambda value: exact(value, 0), column)
        return _host(context, exact, column, digits)

    return body


scalar(
    "numeric_round", "round(numeric)", fallible=True,
    examples=(("round(42.4382, 2)", "42.44"), ("round(-2.5)", "-3")),
)(_rounder("round", decimal_math.round_to))
scalar(
    "numeric_trunc", "trunc(numeric)",
    examples=(("trunc(42.4382, 2)", "42.43"), ("trunc(-42.8)", "-42")),
)(_rounder("trunc", decimal_math.truncate_to))
scalar("numeric_ceil", examples=(("ceil(-42.8)", "-42"),))(
    _rounder("ceil", lambda value, scale: decimal_math.ceiling(value))
)
scalar("numeric_floor", examples=(("floor(-42.8)", "-43"),))(
    _rounder("floor", lambda value, scale: decimal_math.floor(value))
)

_EXACT: dict[str, tuple[Callable[..., object], Examples]] = {
    "numeric_mod": (decimal_math.modulo, (("7.5 % 2", "1.5"),)),
    "numeric_div_trunc": (decimal_math.divide_truncated, (("div(9.0, 4)", "2"),)),
    "numeric_sqrt": (decimal_math.square_root, (("sqrt(2.0)", "1.414213562373095"),)),
    "numeric_exp": (decimal_math.exponential, (("exp(1.0)", "2.7182818284590452"),)),
    "numeric_ln": (decimal_math.natural_log, (("ln(2.0)", "0.6931471805599453"),)),
    "numeric_log": (decimal_math.logarithm, (("log(2.0, 64.0)", "6.0000000000000000"),)),
    "numeric_power": (decimal_math.power, (("2.0 ^ 3", "8.0000000000000000"),)),
    "numeric_fac": (decimal_math.factorial, (("factorial(5)", "120"),)),
    "numeric_gcd": (decimal_math.greatest_divisor, (("gcd(1071.0, 462)", "21.0"),)),
    "numeric_lcm": (decimal_math.least_multiple, (("lcm(1071.0, 462)", "23562.0"),)),
    "numeric_trim_scale": (decimal_math.trim_scale, (("trim_scale(8.4100)", "8.41"),)),
    "numeric_inc": (lambda value: decimal_math.add(value, Decimal(1)), ()),
}
for _key, (_function, _examples) in _EXACT.items():
    rowwise(_key, examples=_examples)(_function)


@rowwise("log(numeric)", "log10(numeric)", examples=(("log(100.0)", "2.0000000000000000"),))
def log10(value: Decimal) -> Decimal:
    return decimal_math.logarithm(Decimal(10), value)


@rowwise("numeric_scale", examples=(("scale(8.4100)", "4"),))
def scale_of(value: Decimal) -> int | None:
    return display_scale(value) if value.is_finite() else None


@rowwise("numeric_min_scale", examples=(("min_scale(8.4100)", "2"),))
def min_scale_of(value: Decimal) -> int | None:
    return decimal_math.min_scale(value) if value.is_finite() else None


@rowwise("numeric_sign", examples=(("sign(-8.4)", "-1"),))
def sign(value: Decimal) -> Decimal:
    if value.is_nan():
        return value
    return Decimal(0) if value.is_zero() else Decimal(1 if value > 0 else -1)


@rowwise("width_bucket_numeric", examples=(("width_bucket(5.35, 0.024, 10.06, 5)", "3"),))
def width_bucket(operand: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    """The number of the equal-width bucket; 0 below, count + 1 above."""
    if count <= 0:
        raise errors.InvalidArgumentForWidthBucketFunction("count must be greater than zero")
    if operand.is_nan() or low.is_nan() or high.is_nan():
        raise errors.InvalidArgumentForWidthBucketFunction(
            "operand, lower bound, and upper bound cannot be NaN"
        )
    if low.is_infinite() or high.is_infinite():
        raise errors.InvalidArgumentForWidthBucketFunction(
            "lower and upper bounds must be finite"
        )
    if low == high:
        raise errors.InvalidArgumentForWidthBucketFunction(
            "lower bound cannot equal upper bound"
        )
    if low > high:
        operand, low, high = operand.copy_negate(), low.copy_negate(), high.copy_negate()
    if operand < low:
        return 0
    if operand >= high:
        return _bucket(count + 1)
    ratio = EXACT.multiply(EXACT.subtract(operand, low), Decimal(count))
    return _bucket(int(decimal_math.divide_truncated(ratio, EXACT.subtract(high, low))) + 1)


def _bucket(number: int) -> int:
    if number > 2**31 - 1:
        raise errors.NumericValueOutOfRange("integer out of range")
    return number


def _from_integers(context: EvaluationContext, column: Column) -> Column:
    values = integers(column)
    return decimal_column(
        NUMERIC_TYPE, values, 0, column.valid, lo=column.lo, hi=column.hi
    )


scalar("int2_numeric", "int4_numeric", "int8_numeric")(_from_integers)


def _to_integers(oid: int, name: str, bits: int) -> Callable[..., Column]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    error = errors.NumericValueOutOfRange(f"{name} out of range")

    def exact(value: Decimal) -> int:
        if not value.is_finite():
            kind = "NaN" if value.is_nan() else "infinity"
            raise errors.FeatureNotSupported(f"cannot convert {kind} to {name}")
        number = int(decimal_math.round_to(value, 0))
        if not low <= number <= high:
            raise error
        return number

    def body(context: EvaluationContext, column: Column) -> Column:
        found = kernel.rounded(column, 0, "round")
        if found is None:
            return evaluate(context, exact, (column,), SqlType(oid))
        values = integers(found)
        bad = (values < low) | (values > high)
        context.report_where(bad if column.valid is None else bad & column.valid, error)
        bounds = kernel.bounds(found)
        return integer_column(
            SqlType(oid), values, column.valid, lo=max(bounds.lo, low), hi=min(bounds.hi, high)
        )

    return body


scalar("numeric_int2", fallible=True)(_to_integers(sqltype.INT2, "smallint", 16))
scalar("numeric_int4", fallible=True, examples=(("(2.5)::int4", "3"),))(
    _to_integers(sqltype.INT4, "integer", 32)
)
scalar("numeric_int8", fallible=True)(_to_integers(sqltype.INT8, "bigint", 64))
