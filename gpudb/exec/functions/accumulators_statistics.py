"""Variances, standard deviations, covariances and linear regression.

Integers and numerics are exact, from the sums of the values and of their squares; floats follow
the Youngs-Cramer updates row after row, as PostgreSQL does, so that the digits are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Self

import numpy as np
import numpy.typing as npt
import torch

from gpudb import jit
from gpudb.catalog.types.numeric import EXACT, display_scale, rounded
from gpudb.column import Column, decimals, floats, from_values, host_column
from gpudb.exec.context import QueryContext
from gpudb.exec.functions.accumulators import Base, Ids, accumulator, present_rows
from gpudb.exec.functions.accumulators_floats import overflow
from gpudb.exec.functions.accumulators_numeric import NumericSums, as_decimal
from gpudb.expr import AggregateCall
from gpudb.kernels import decimal, decimal_math
from gpudb.layout import DECIMAL64, FLOAT64, INT64

Floats = npt.NDArray[np.float64]

_NUMBERS = ("int2", "int4", "int8", "numeric")
_FLOATS = ("float4", "float8")


# --- exact numbers ---


class NumericVariance(Base):
    """The state of the variances of integers and numerics."""

    is_sample = True
    is_root = False

    def __init__(self, call: AggregateCall, query: QueryContext) -> None:
        super().__init__(call, query)
        self._sums = NumericSums()
        self._squares = NumericSums()

    @property
    def bytes(self) -> int:
        return self._sums.bytes + self._squares.bytes

    def update(self, ids: Ids, groups: int, columns: Sequence[Column], rows: int) -> None:
        owner, (column, *_), _ = present_rows(ids, columns[:1], rows, 1)
        column = as_decimal(column)
        self._sums.add(owner, groups, column)
        self._squares.add(owner, groups, _squared(column))

    def merge(self, other: Self, mapping: Ids, groups: int) -> None:
        owner = torch.from_numpy(mapping)
        self._sums.merge(other._sums, owner, groups)
        self._squares.merge(other._squares, owner, groups)

    def finish(self, groups: int) -> Column:
        found = [
            None if rows < 1 + self.is_sample or total is None or squares is None
            else self._result(rows, total, squares)
            for rows, total, squares in zip(
                self._sums.counts(groups).tolist(), self._sums.values(groups),
                self._squares.values(groups), strict=True,
            )
        ]
        return from_values(self.type, DECIMAL64, found)

    def _result(self, rows: int, total: Decimal, squares: Decimal) -> Decimal:
        if not total.is_finite():
            return decimal_math.NAN
        scale = 2 * display_scale(total)
        numerator = EXACT.subtract(
            EXACT.multiply(Decimal(rows), squares), EXACT.multiply(total, total)
        )
        if numerator <= 0:
            return Decimal(0)
        divisor = Decimal(rows * (rows - 1) if self.is_sample else rows * rows)
        variance = decimal_math.divide(rounded(numerator, scale), divisor)
        return _root(variance) if self.is_root else variance


def _squared(column: Column) -> Column:
    """The squares of a numeric column without NULLs."""
    fast = decimal.multiply(column, column)
    if fast is not None:
        return fast
    values = [
        EXACT.multiply(value, value) for value in decimals(column) if value is not None
    ]
    return host_column(column.type, values)


def _root(value: Decimal) -> Decimal:
    """The square root with as many decimals as the value has."""
    scale = display_scale(value)
    number = decimal_math.unscaled(value) * 10**scale
    root = math.isqrt(number)
    root += number - root * root > root
    return decimal_math.scaled(root, scale)


@accumulator(*(f"{name}({t})" for name in ("variance", "var_samp") for t in _NUMBERS))
class NumericSampleVariance(NumericVariance):
    pass


@accumulator(*(f"var_pop({t})" for t in _NUMBERS))
class NumericPopulationVariance(NumericVariance):
    is_sample = False


@accumulator(*(f"{name}({t})" for name in ("stddev", "stddev_samp") for t in _NUMBERS))
class NumericSampleDeviation(NumericVariance):
    is_root = True


@accumulator(*(f"stddev_pop({t})" for t in _NUMBERS))
class NumericPopulationDeviation(NumericVariance):
    is_sample = False
    is_root = True


# --- floats ---


@jit.kernel("int64(int64[::1], float64[::1], float64[:, ::1])")
def _add_values(ids, values, state):  # type: ignore[no-untyped-def]
    """Add values to rows (N, sum, sum of squared deviations) of ``state``; how many overflow."""
    overflows = 0
    for row in range(ids.shape[0]):
        group = ids[row]
        value = values[row]
        old = state[group, 0]
        before = state[group, 1]
        count = old + 1.0
        total = before + value
        squares = state[group, 2]
        if old > 0.0:
            step = value * count - total
            squares += step * step / (count * old)
            if np.isinf(total) or np.isinf(squares):
                if not np.isinf(before) and not np.isinf(value):
                    overflows += 1
                squares = np.nan
        elif np.isnan(value) or np.isinf(value):
            squares = np.nan
        state[group, 0] = count
        state[group, 1] = total
        state[group, 2] = squares
    return overflows


@jit.kernel("int64(int64[::1], float64[::1], float64[::1], float64[:, ::1])")
def _add_pairs(ids, ys, xs, state):  # type: ignore[no-untyped-def]
    """Add points to rows (N, Sx, Sxx, Sy, Syy, Sxy) of ``state``; how many overflow."""
    overflows = 0
    for row in range(ids.shape[0]):
        here = state[ids[row]]
        x = xs[row]
        y = ys[row]
        old, before_x, before_y = here[0], here[1], here[3]
        count = old + 1.0
        here[0] = count
        here[1] += x
        here[3] += y
        if old > 0.0:
            step_x = x * count - here[1]
            step_y = y * count - here[3]
            scale = 1.0 / (count * old)
            here[2] += step_x * step_x * scale
            here[4] += step_y * step_y * scale
            here[5] += step_x * step_y * scale
            finite_x = not (np.isinf(before_x) or np.isinf(x))
            finite_y = not (np.isinf(before_y) or np.isinf(y))
            if (np.isinf(here[1]) or np.isinf(here[2])) and finite_x:
                overflows += 1
            if (np.isinf(here[3]) or np.isinf(here[4])) and finite_y:
                overflows += 1
            if np.isinf(here[5]) and finite_x and finite_y:
                overflows += 1
            for place in (2, 4, 5):
                if np.isinf(here[place]):
                    here[place] = np.nan
        else:
            if np.isnan(x) or np.isinf(x):
                here[2] = np.nan
                here[5] = np.nan
            if np.isnan(y) or np.isinf(y):
                here[4] = np.nan
                here[5] = np.nan
    return overflows


class Moments(Base):
    """Rows of sums per group, ``width`` each: N, Sx, Sxx (, Sy, Syy, Sxy)."""

    width = 3
    rows_min = 1
    """Groups of fewer rows give NULL."""

    def __init__(self, call: AggregateCall, query: QueryContext) -> None:
        super().__init__(call, query)
        self._state = np.zeros((1, self.width))

    @property
    def bytes(self) -> int:
        return self._state.nbytes

    def _view(self, groups: int) -> Floats:
        missing = groups - len(self._state)
        if missing > 0:
            tail = np.zeros((max(missing, len(self._state)), self.width))
            self._state = np.concatenate((self._state, tail))
        return self._state[:groups]

    def update(self, ids: Ids, groups: int, columns: Sequence[Column], rows: int) -> None:
        arguments = 1 if self.width == 3 else 2
        owner, wide, count = present_rows(ids, columns[:arguments], rows, arguments)
        numbers = [np.ascontiguousarray(floats(column).numpy()) for column in wide]
        state = self._view(groups)
        kernel = _add_values if self.width == 3 else _add_pairs
        run = kernel if kernel.is_worthwhile(count) else kernel.loop
        with np.errstate(all="ignore"):
            if run(np.ascontiguousarray(owner.numpy()), *numbers, state):
                raise overflow()

    def merge(self, other: Self, mapping: Ids, groups: int) -> None:
        mine, theirs = self._view(groups), other._view(len(mapping))
        target = mine[mapping]
        with np.errstate(all="ignore"):
            joined = _combined(target, theirs)
        is_new = (target[:, 0] == 0)[:, None]
        is_none = (theirs[:, 0] == 0)[:, None]
        joined = np.where(is_new, theirs, np.where(is_none, target, joined))
        was_finite = np.isfinite(target) & np.isfinite(theirs)
        if (was_finite & np.isinf(joined)).any():
            raise overflow()
        mine[mapping] = joined

    def finish(self, groups: int) -> Column:
        state = self._view(groups)
        with np.errstate(all="ignore"):
            values, valid = self.values(state)
        valid = valid & (state[:, 0] >= self.rows_min)
        values = np.where(valid, values, 0.0)
        mask = None if valid.all() else torch.from_numpy(valid)
        return Column(self.type, FLOAT64, (torch.from_numpy(values),), mask)

    def values(self, state: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """The results (G) and where they are not NULL."""
        raise NotImplementedError


def _combined(one: Floats, two: Floats) -> Floats:
    """The sums of two disjoint sets of rows, both not empty."""
    found = one + two
    weight = one[:, 0] * two[:, 0] / found[:, 0]
    gap = one[:, 1] / one[:, 0] - two[:, 1] / two[:, 0]
    found[:, 2] += weight * gap * gap
    if found.shape[1] > 3:
        other = one[:, 3] / one[:, 0] - two[:, 3] / two[:, 0]
        found[:, 4] += weight * other * other
        found[:, 5] += weight * gap * other
    return found


class FloatVariance(Moments):
    is_root = False

    def values(self, state: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        found = state[:, 2] / (state[:, 0] - (self.rows_min - 1))
        return np.sqrt(found) if self.is_root else found, np.ones(len(state), np.bool_)


@accumulator(*(f"{name}({t})" for name in ("variance", "var_samp") for t in _FLOATS), fallible=True)
class FloatSampleVariance(FloatVariance):
    rows_min = 2


@accumulator(*(f"var_pop({t})" for t in _FLOATS), fallible=True)
class FloatPopulationVariance(FloatVariance):
    pass


@accumulator(
    *(f"{name}({t})" for name in ("stddev", "stddev_samp") for t in _FLOATS), fallible=True
)
class FloatSampleDeviation(FloatVariance):
    rows_min = 2
    is_root = True


@accumulator(*(f"stddev_pop({t})" for t in _FLOATS), fallible=True)
class FloatPopulationDeviation(FloatVariance):
    is_root = True


class Regression(Moments):
    width = 6
    part: Callable[..., tuple[Floats, npt.NDArray[np.bool_]]]

    def values(self, state: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        return type(self).part(*state.T)


Result = tuple[Floats, npt.NDArray[np.bool_]]


def _always(values: Floats) -> Result:
    return values, np.ones(len(values), np.bool_)


def _sxx(n: Floats, sx: Floats, sxx: Floats, *_: Floats) -> Result:
    return _always(sxx)


def _syy(n: Floats, sx: Floats, sxx: Floats, sy: Floats, syy: Floats, *_: Floats) -> Result:
    return _always(syy)


def _sxy(*sums: Floats) -> Result:
    return _always(sums[5])


def _average_x(n: Floats, sx: Floats, *_: Floats) -> Result:
    return _always(sx / n)


def _average_y(n: Floats, sx: Floats, sxx: Floats, sy: Floats, *_: Floats) -> Result:
    return _always(sy / n)


def _covariance(*sums: Floats) -> Result:
    return _always(sums[5] / sums[0])


def _sample_covariance(*sums: Floats) -> Result:
    return _always(sums[5] / (sums[0] - 1.0))


def _correlation(
    n: Floats, sx: Floats, sxx: Floats, sy: Floats, syy: Floats, sxy: Floats
) -> Result:
    return sxy / np.sqrt(sxx * syy), (sxx != 0) & (syy != 0)


def _determination(
    n: Floats, sx: Floats, sxx: Floats, sy: Floats, syy: Floats, sxy: Floats
) -> Result:
    return np.where(syy == 0, 1.0, (sxy * sxy) / (sxx * syy)), sxx != 0


def _slope(n: Floats, sx: Floats, sxx: Floats, sy: Floats, syy: Floats, sxy: Floats) -> Result:
    return sxy / sxx, sxx != 0


def _intercept(
    n: Floats, sx: Floats, sxx: Floats, sy: Floats, syy: Floats, sxy: Floats
) -> Result:
    return (sy - sx * sxy / sxx) / n, sxx != 0


for _name, _part, _rows in (
    ("regr_sxx", _sxx, 1), ("regr_syy", _syy, 1), ("regr_sxy", _sxy, 1),
    ("regr_avgx", _average_x, 1), ("regr_avgy", _average_y, 1), ("covar_pop", _covariance, 1),
    ("covar_samp", _sample_covariance, 2), ("corr", _correlation, 1),
    ("regr_r2", _determination, 1), ("regr_slope", _slope, 1), ("regr_intercept", _intercept, 1),
):
    accumulator(f"{_name}(float8,float8)", fallible=True)(
        type(_name, (Regression,), {"part": staticmethod(_part), "rows_min": _rows})
    )


@accumulator("regr_count(float8,float8)", fallible=True)
class RegressionCount(Moments):
    width = 6

    def finish(self, groups: int) -> Column:
        counts = torch.from_numpy(self._view(groups)[:, 0].astype(np.int64))
        return Column(self.type, INT64, (counts,))
