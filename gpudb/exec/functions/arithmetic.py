"""+ - * / % and bit operations of integers and floats.

Integer bodies take the cheapest way that the bounds of their columns allow: unchecked in the
narrowest sufficient width when the result provably fits, checked in int64 otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gpudb import errors, sqltype
from gpudb.catalog.functions import scalar
from gpudb.column import (
    INT64_MAX,
    INT64_MIN,
    Column,
    all_valid,
    float_column,
    integer_column,
    integers,
)
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import rowwise
from gpudb.sqltype import SqlType


@dataclass(frozen=True, slots=True)
class IntegerRange:
    """The range of an SQL integer type and the name PostgreSQL's error gives it."""

    oid: int
    name: str
    lo: int
    hi: int

    @property
    def error(self) -> errors.SqlError:
        return errors.NumericValueOutOfRange(f"{self.name} out of range")


INT2 = IntegerRange(sqltype.INT2, "smallint", -(2**15), 2**15 - 1)
INT4 = IntegerRange(sqltype.INT4, "integer", -(2**31), 2**31 - 1)
INT8 = IntegerRange(sqltype.INT8, "bigint", INT64_MIN, INT64_MAX)
BY_OID = {item.oid: item for item in (INT2, INT4, INT8)}
_BY_WIDTH = {"2": INT2, "4": INT4, "8": INT8}
PAIRS = ("2", "4", "8", "24", "42", "28", "82", "48", "84")


def result_range(pair: str) -> IntegerRange:
    """The result type of an operator on a pair of widths such as "24"."""
    return _BY_WIDTH[max(pair)]


def bounds_of(column: Column) -> tuple[int, int]:
    """Proven bounds of the values: metadata, else what layout and type can hold."""
    if column.lo is not None and column.hi is not None:
        return column.lo, column.hi
    info = torch.iinfo(column.data[0].dtype)
    ends = (column.base + column.step * info.min, column.base + column.step * info.max)
    lo, hi = min(ends), max(ends)
    declared = BY_OID.get(column.type.oid, INT8)
    return max(lo, declared.lo), min(hi, declared.hi)


def dtype_for(lo: int, hi: int) -> torch.dtype:
    """The narrowest signed type from 16 bits that holds the bounds."""
    for dtype in (torch.int16, torch.int32):
        info = torch.iinfo(dtype)
        if info.min <= lo and hi <= info.max:
            return dtype
    return torch.int64


def values_as(column: Column, dtype: torch.dtype) -> Tensor:
    """The logical values in a type known to hold them and the column's base and step."""
    values = column.data[0]
    if column.base == 0 and column.step == 1:
        return values.to(dtype)
    return integers(column).to(dtype)


Operation = Callable[[Tensor, Tensor], Tensor]


def _unchecked(
    left: Column, right: Column, operation: Operation, lo: int, hi: int, type_: SqlType
) -> Column:
    low = min(lo, bounds_of(left)[0], bounds_of(right)[0])
    high = max(hi, bounds_of(left)[1], bounds_of(right)[1])
    dtype = dtype_for(low, high)
    values = operation(values_as(left, dtype), values_as(right, dtype))
    return integer_column(type_, values, all_valid(left, right), lo=lo, hi=hi)


def _checked(
    context: EvaluationContext, left: Column, right: Column, operation: Operation,
    overflow: Callable[[Tensor, Tensor, Tensor], Tensor], result: IntegerRange,
) -> Column:
    a, b = integers(left), integers(right)
    values = operation(a, b)
    if result is INT8:
        bad = overflow(a, b, values)
    else:
        bad = (values < result.lo) | (values > result.hi)
    valid = all_valid(left, right)
    context.report_where(bad if valid is None else bad & valid, result.error)
    return integer_column(SqlType(result.oid), values, valid)


def _add_overflow(a: Tensor, b: Tensor, total: Tensor) -> Tensor:
    return ((a ^ total) & (b ^ total)) < 0


def _subtract_overflow(a: Tensor, b: Tensor, difference: Tensor) -> Tensor:
    return ((a ^ b) & (a ^ difference)) < 0


def _multiply_overflow(a: Tensor, b: Tensor, product: Tensor) -> Tensor:
    """Exact: the float product decides except next to 2**63, where integers do."""
    near = a.to(torch.float64) * b.to(torch.float64)
    limit = 2.0**63
    bad = near.abs() > limit * (1 + 1e-14)
    unsure = ~bad & (near.abs() >= limit * (1 - 1e-14))
    if bool(unsure.any()):
        wide_a, wide_b = a.expand_as(unsure), b.expand_as(unsure)
        for row in unsure.nonzero().flatten().tolist():
            exact = int(wide_a[row]) * int(wide_b[row])
            bad[row] = not INT64_MIN <= exact <= INT64_MAX
    return bad


def add(
    context: EvaluationContext, left: Column, right: Column, *, result: IntegerRange
) -> Column:
    (a, b), (c, d) = bounds_of(left), bounds_of(right)
    if result.lo <= a + c and b + d <= result.hi:
        return _unchecked(left, right, torch.add, a + c, b + d, SqlType(result.oid))
    return _checked(context, left, right, torch.add, _add_overflow, result)


def subtract(
    context: EvaluationContext, left: Column, right: Column, *, result: IntegerRange
) -> Column:
    (a, b), (c, d) = bounds_of(left), bounds_of(right)
    if result.lo <= a - d and b - c <= result.hi:
        return _unchecked(left, right, torch.sub, a - d, b - c, SqlType(result.oid))
    return _checked(context, left, right, torch.sub, _subtract_overflow, result)


def multiply(
    context: EvaluationContext, left: Column, right: Column, *, result: IntegerRange
) -> Column:
    (a, b), (c, d) = bounds_of(left), bounds_of(right)
    corners = (a * c, a * d, b * c, b * d)
    lo, hi = min(corners), max(corners)
    if result.lo <= lo and hi <= result.hi:
        return _unchecked(left, right, torch.mul, lo, hi, SqlType(result.oid))
    return _checked(context, left, right, torch.mul, _multiply_overflow, result)


def division_by_zero() -> errors.SqlError:
    return errors.DivisionByZero("division by zero")


def _divisor(context: EvaluationContext, left: Column, right: Column) -> Tensor:
    """The divisors with 1 in place of 0; 22012 where a row that counts has 0."""
    b = integers(right)
    is_zero = b == 0
    valid = all_valid(left, right)
    context.report_where(is_zero if valid is None else is_zero & valid, division_by_zero())
    return torch.where(is_zero, 1, b)


def divide(
    context: EvaluationContext, left: Column, right: Column, *, result: IntegerRange
) -> Column:
    """Truncates toward zero; the lowest number by -1 is out of range."""
    a, b = integers(left), _divisor(context, left, right)
    is_minus_one = b == -1
    valid = all_valid(left, right)
    low = bounds_of(left)[0]
    if low <= result.lo and bounds_of(right)[0] <= -1:
        bad = is_minus_one & (a == result.lo)
        context.report_where(bad if valid is None else bad & valid, result.error)
    quotient = torch.div(a, torch.where(is_minus_one, 1, b), rounding_mode="trunc")
    values = torch.where(is_minus_one, -a, quotient)
    largest = max(abs(low), abs(bounds_of(left)[1]))
    return integer_column(
        SqlType(result.oid), values, valid, lo=max(-largest, result.lo),
        hi=min(largest, result.hi),
    )


def modulo(
    context: EvaluationContext, left: Column, right: Column, *, result: IntegerRange
) -> Column:
    """The remainder has the sign of the dividend."""
    a, b = integers(left), _divisor(context, left, right)
    values = torch.fmod(a, torch.where(b == -1, 1, b))
    valid = all_valid(left, right)
    lo, hi = bounds_of(left)
    return integer_column(SqlType(result.oid), values, valid, lo=min(lo, 0), hi=max(hi, 0))


Body = Callable[..., Column]


def _register_integers() -> None:
    bodies: dict[str, Body] = {"pl": add, "mi": subtract, "mul": multiply, "div": divide}
    for pair in PAIRS:
        for suffix, function in bodies.items():
            _register_pair(f"int{pair}{suffix}", function, result_range(pair))
    for width, range_ in _BY_WIDTH.items():
        _register_pair(f"int{width}mod", modulo, range_)
        _register_unary(width, range_)
        _register_bits(width, range_)


def _register_pair(key: str, function: Body, result: IntegerRange) -> None:
    def body(context: EvaluationContext, left: Column, right: Column) -> Column:
        return function(context, left, right, result=result)

    scalar(key, fallible=True, examples=_EXAMPLES.get(key, ()))(body)


_EXAMPLES: dict[str, tuple[tuple[str, str | None], ...]] = {
    "int4pl": (("2 + 3", "5"),),
    "int4mul": (("2 * 3", "6"),),
    "int4div": (("-7 / 2", "-3"),),
    "int4mod": (("-7 % 2", "-1"),),
}


def _register_unary(width: str, result: IntegerRange) -> None:
    type_ = SqlType(result.oid)

    def negate(context: EvaluationContext, column: Column) -> Column:
        return subtract(
            context, integer_column(type_, torch.zeros(1, dtype=torch.int64), lo=0, hi=0),
            column, result=result,
        )

    def absolute(context: EvaluationContext, column: Column) -> Column:
        lo, hi = bounds_of(column)
        values = integers(column)
        if lo <= result.lo:
            bad = values == result.lo
            context.report_where(
                bad if column.valid is None else bad & column.valid, result.error
            )
        largest = min(max(abs(lo), abs(hi)), result.hi)
        return integer_column(type_, values.abs(), column.valid, lo=0, hi=largest)

    def same(context: EvaluationContext, column: Column) -> Column:
        return column

    scalar(f"int{width}um", fallible=True)(negate)
    scalar(f"int{width}abs", fallible=True, examples=_ABS.get(width, ()))(absolute)
    scalar(f"int{width}up")(same)


_ABS: dict[str, tuple[tuple[str, str | None], ...]] = {"4": (("abs(-5)", "5"),)}


def _register_bits(width: str, result: IntegerRange) -> None:
    type_, bits = SqlType(result.oid), {"2": 16, "4": 32, "8": 64}[width]
    operations: dict[str, Operation] = {
        "and": torch.bitwise_and, "or": torch.bitwise_or, "xor": torch.bitwise_xor,
    }
    for suffix, operation in operations.items():

        def combine(
            context: EvaluationContext, left: Column, right: Column, *,
            operation: Operation = operation,
        ) -> Column:
            values = operation(integers(left), integers(right))
            return integer_column(type_, values, all_valid(left, right))

        scalar(f"int{width}{suffix}")(combine)

    def invert(context: EvaluationContext, column: Column) -> Column:
        return integer_column(type_, ~integers(column), column.valid)

    def shift_left(context: EvaluationContext, left: Column, right: Column) -> Column:
        count = integers(right) & (31 if bits < 64 else 63)
        shifted = torch.bitwise_left_shift(integers(left), count)
        if bits < 64:
            sign = 1 << (bits - 1)
            shifted = ((shifted & ((1 << bits) - 1)) ^ sign) - sign
        return integer_column(type_, shifted, all_valid(left, right))

    def shift_right(context: EvaluationContext, left: Column, right: Column) -> Column:
        count = integers(right) & (31 if bits < 64 else 63)
        values = torch.bitwise_right_shift(integers(left), count)
        return integer_column(type_, values, all_valid(left, right))

    scalar(f"int{width}not")(invert)
    scalar(f"int{width}shl")(shift_left)
    scalar(f"int{width}shr")(shift_right)


# --- floats ---------------------------------------------------------------------------------------


def _both(left: Column, right: Column) -> tuple[Tensor, Tensor]:
    one, two = left.data[0], right.data[0]
    if one.dtype != two.dtype:
        return one.to(torch.float64), two.to(torch.float64)
    return one, two


def _check_float(
    context: EvaluationContext, values: Tensor, valid: Tensor | None,
    may_overflow: Tensor, may_underflow: Tensor | None = None,
) -> None:
    """PostgreSQL's errors where a result became infinite or zero without such an operand."""
    bad = values.isinf() & may_overflow
    context.report_where(
        bad if valid is None else bad & valid,
        errors.NumericValueOutOfRange("value out of range: overflow"),
    )
    if may_underflow is not None:
        bad = (values == 0) & may_underflow
        context.report_where(
            bad if valid is None else bad & valid,
            errors.NumericValueOutOfRange("value out of range: underflow"),
        )


def _float_type(*tensors: Tensor) -> SqlType:
    is_single = all(t.dtype == torch.float32 for t in tensors)
    return SqlType(sqltype.FLOAT4 if is_single else sqltype.FLOAT8)


def _float_add(context: EvaluationContext, left: Column, right: Column) -> Column:
    one, two = _both(left, right)
    values, valid = one + two, all_valid(left, right)
    _check_float(context, values, valid, ~(one.isinf() | two.isinf()))
    return float_column(_float_type(values), values, valid)


def _float_subtract(context: EvaluationContext, left: Column, right: Column) -> Column:
    one, two = _both(left, right)
    values, valid = one - two, all_valid(left, right)
    _check_float(context, values, valid, ~(one.isinf() | two.isinf()))
    return float_column(_float_type(values), values, valid)


def _float_multiply(context: EvaluationContext, left: Column, right: Column) -> Column:
    one, two = _both(left, right)
    values, valid = one * two, all_valid(left, right)
    _check_float(
        context, values, valid, ~(one.isinf() | two.isinf()), (one != 0) & (two != 0)
    )
    return float_column(_float_type(values), values, valid)


def _float_divide(context: EvaluationContext, left: Column, right: Column) -> Column:
    one, two = _both(left, right)
    valid = all_valid(left, right)
    is_zero = (two == 0) & ~one.isnan()
    context.report_where(is_zero if valid is None else is_zero & valid, division_by_zero())
    values = one / two
    _check_float(
        context, values, valid, ~one.isinf() & (two != 0), (one != 0) & ~two.isinf()
    )
    return float_column(_float_type(values), values, valid)


def _register_floats() -> None:
    bodies: dict[str, Body] = {
        "pl": _float_add, "mi": _float_subtract, "mul": _float_multiply, "div": _float_divide,
    }
    for pair in ("4", "8", "48", "84"):
        for suffix, body in bodies.items():
            scalar(f"float{pair}{suffix}", fallible=True)(body)
    for width in ("4", "8"):

        def negate(context: EvaluationContext, column: Column) -> Column:
            return float_column(column.type, -column.data[0], column.valid)

        def absolute(context: EvaluationContext, column: Column) -> Column:
            return float_column(column.type, column.data[0].abs(), column.valid)

        def same(context: EvaluationContext, column: Column) -> Column:
            return column

        scalar(f"float{width}um")(negate)
        scalar(f"float{width}abs")(absolute)
        scalar(f"float{width}up")(same)


def _out_of_range(result: IntegerRange, value: int) -> int:
    if not result.lo <= value <= result.hi:
        raise result.error
    return value


@rowwise("int4gcd", examples=(("gcd(1071, 462)", "21"),))
def gcd4(a: int, b: int) -> int:
    return _out_of_range(INT4, math.gcd(a, b))


@rowwise("int8gcd")
def gcd8(a: int, b: int) -> int:
    return _out_of_range(INT8, math.gcd(a, b))


@rowwise("int4lcm", examples=(("lcm(1071, 462)", "23562"),))
def lcm4(a: int, b: int) -> int:
    return _out_of_range(INT4, math.lcm(a, b))


@rowwise("int8lcm")
def lcm8(a: int, b: int) -> int:
    return _out_of_range(INT8, math.lcm(a, b))


@rowwise("int4inc")
def increment4(value: int) -> int:
    return _out_of_range(INT4, value + 1)


@rowwise("int8inc")
def increment8(value: int) -> int:
    return _out_of_range(INT8, value + 1)


_register_integers()
_register_floats()
