"""Variance, standard deviation, correlation and regression.

Of integers and numerics exact (count, sum, sum of squares), rounded once as PostgreSQL rounds; of
floats by Youngs and Cramer's sums, in row order within a batch, combined in sequence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gpudb import errors
from gpudb.catalog.functions import aggregate
from gpudb.catalog.types.numeric import EXACT, display_scale
from gpudb.column import (
    Column,
    floats,
    from_values,
    host_column,
    integer_column,
    integers,
    to_values,
)
from gpudb.exec.functions.aggregates import (
    Aggregate,
    ExactState,
    GroupRows,
    exact_decimals,
    exact_state,
    expanded,
    merge_exact,
)
from gpudb.kernels import decimal as decimals
from gpudb.kernels import decimal_math, reduce
from gpudb.layout import DECIMAL64, DECIMAL128, FLOAT64, Kind
from gpudb.sqltype import NUMERIC_TYPE

Floats = npt.NDArray[np.float64]
SEQUENTIAL_GROUPS_MAX = 1024
"""Up to so many groups a batch's sums are formed in row order, exactly as PostgreSQL forms them."""

# --- exact ------------------------------------------------------------


@dataclass(slots=True)
class Moments:
    """Exact sums of the values and of their squares."""

    values: ExactState
    squares: ExactState


def _squared(column: Column) -> Column:
    """The squares of a numeric column: exact, twice the scale."""
    if column.layout.kind in (Kind.INT, Kind.DECIMAL) and not column.layout.has_row_scale:
        values = integers(column)
        product = decimals.multiply_narrow(values, values)
        return Column(NUMERIC_TYPE, DECIMAL128, product, scale=2 * column.scale)
    squares = [decimal_math.multiply(Decimal(v), Decimal(v)) for v in to_values(column)]
    return host_column(NUMERIC_TYPE, squares)


class ExactVariance(Aggregate):
    """Variances of integers and numerics."""

    is_sample = True
    is_root = False

    def partial(self, rows: GroupRows) -> Moments:
        column = expanded(rows.columns[0], rows.rows)
        return Moments(exact_state(column, rows), exact_state(_squared(column), rows))

    def merge(self, state: Any, part: Any, ids: Tensor, groups: int) -> Any:
        values = None if state is None else state.values
        squares = None if state is None else state.squares
        return Moments(
            merge_exact(values, part.values, ids, groups),
            merge_exact(squares, part.squares, ids, groups),
        )

    def result(self, state: Moments, groups: int) -> Column:
        found: list[Decimal | None] = []
        for sum_, squares, count in zip(
            exact_decimals(state.values, groups), exact_decimals(state.squares, groups),
            state.values.counts.tolist(), strict=True,
        ):
            if sum_ is None or squares is None or (self.is_sample and count < 2):
                found.append(None)
            else:
                found.append(self._value(sum_, squares, count))
        return from_values(self.type, DECIMAL64, found)

    def _value(self, sum_: Decimal, squares: Decimal, count: int) -> Decimal:
        if not sum_.is_finite():
            return decimal_math.NAN
        exact = EXACT
        spread = exact.subtract(
            exact.multiply(Decimal(count), squares), exact.multiply(sum_, sum_)
        )
        if spread <= 0:
            return Decimal(0)
        divisor = count * (count - 1 if self.is_sample else count)
        variance = decimal_math.divide(spread, Decimal(divisor))
        if not self.is_root:
            return variance
        scale = display_scale(variance)
        radicand = decimal_math.unscaled(variance) * 10**scale
        return decimal_math.scaled((math.isqrt(4 * radicand) + 1) // 2, scale)


_EXACT_NAMES = ("int2", "int4", "int8", "numeric")


@aggregate(*(f"{name}({of})" for name in ("variance", "var_samp") for of in _EXACT_NAMES))
class VarianceSample(ExactVariance):
    pass


@aggregate(*(f"var_pop({of})" for of in _EXACT_NAMES))
class VariancePopulation(ExactVariance):
    is_sample = False


@aggregate(*(f"{name}({of})" for name in ("stddev", "stddev_samp") for of in _EXACT_NAMES))
class DeviationSample(ExactVariance):
    is_root = True


@aggregate(*(f"stddev_pop({of})" for of in _EXACT_NAMES))
class DeviationPopulation(ExactVariance):
    is_sample = False
    is_root = True


# --- floats ------------------------------------------------------------


@dataclass(slots=True)
class FloatMoments:
    """Per group: count, sums, squared deviations; with two arguments also of their product."""

    count: Floats
    sums: list[Floats]
    deviations: list[Floats]


def _groups(ids: Tensor | None, groups: int, rows: int) -> tuple[Any, Any]:
    """The rows ordered by group, and each group's end."""
    if ids is None:
        return np.arange(rows), np.array([rows])
    order = torch.sort(ids, stable=True).indices.numpy()
    return order, np.cumsum(np.bincount(ids.numpy(), minlength=groups))


def _sequential(columns: list[Floats], ids: Tensor | None, groups: int) -> FloatMoments:
    """The sums as row-by-row accumulation gives them."""
    width = len(columns)
    order, ends = _groups(ids, groups, len(columns[0]))
    state = _no_moments(groups, width)
    start = 0
    for group, end in enumerate(ends.tolist()):
        if end > start:
            part = [c[order[start:end]] for c in columns]
            count = np.arange(1.0, end - start + 1)
            running = [np.cumsum(p) for p in part]
            spread = [p * count - r for p, r in zip(part, running, strict=True)]
            with np.errstate(divide="ignore", invalid="ignore"):
                weight = count * (count - 1)
                products = _products(spread, weight, is_pair=width == 2)
            state.count[group] = end - start
            for number in range(width):
                state.sums[number][group] = running[number][-1]
            for number, product in enumerate(products):
                product[0] = _nan_or_zero(part, number)
                state.deviations[number][group] = np.cumsum(product)[-1]
        start = end
    return state


def _nan_or_zero(part: list[Floats], number: int) -> float:
    """The first row adds nothing, but NaN and infinity spoil the deviations."""
    pairs = [(0,), (1,), (0, 1)]
    own = pairs[number] if len(part) == 2 else (0,)
    return 0.0 if all(math.isfinite(part[k][0]) for k in own) else math.nan


def _products(spread: list[Floats], weight: Floats, *, is_pair: bool) -> list[Floats]:
    if not is_pair:
        return [spread[0] * spread[0] / weight]
    scale = 1.0 / weight
    x, y = spread
    return [x * x * scale, y * y * scale, x * y * scale]


def _two_pass(columns: list[Floats], ids: Tensor, groups: int) -> FloatMoments:
    count = np.bincount(ids.numpy(), minlength=groups).astype(np.float64)
    sums = [reduce.total(torch.from_numpy(c), ids, groups).numpy() for c in columns]
    owner = ids.numpy()
    with np.errstate(invalid="ignore"):
        spread = [
            c - (s / np.maximum(count, 1))[owner] for c, s in zip(columns, sums, strict=True)
        ]
        pairs = [(0, 0)] if len(columns) == 1 else [(0, 0), (1, 1), (0, 1)]
        deviations = [
            reduce.total(torch.from_numpy(spread[a] * spread[b]), ids, groups).numpy()
            for a, b in pairs
        ]
    return FloatMoments(count, sums, deviations)


def _no_moments(groups: int, width: int) -> FloatMoments:
    return FloatMoments(
        np.zeros(groups), [np.zeros(groups) for _ in range(width)],
        [np.zeros(groups) for _ in range(1 if width == 1 else 3)],
    )


def _grown(values: Floats, groups: int) -> Floats:
    return np.concatenate((values, np.zeros(groups - len(values))))


class FloatMomentsAggregate(Aggregate):
    """Youngs-Cramer sums of one or two float arguments (in the order y, x)."""

    width = 1

    def partial(self, rows: GroupRows) -> FloatMoments:
        columns = [floats(expanded(c, rows.rows)).numpy() for c in rows.columns[: self.width]]
        if not rows.rows:
            return _no_moments(rows.groups, self.width)
        if rows.ids is None or rows.groups <= SEQUENTIAL_GROUPS_MAX:
            return _sequential(columns, rows.ids, rows.groups)
        return _two_pass(columns, rows.ids, rows.groups)

    def merge(self, state: Any, part: Any, ids: Tensor, groups: int) -> Any:
        if state is None:
            state = _no_moments(0, self.width)
        whole = FloatMoments(
            _grown(state.count, groups), [_grown(s, groups) for s in state.sums],
            [_grown(d, groups) for d in state.deviations],
        )
        at = ids.numpy()
        n1, n2 = whole.count[at], part.count
        total = n1 + n2
        both = (n1 > 0) & (n2 > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = [
                np.where(both, s[at] / n1 - p / n2, 0.0)
                for s, p in zip(whole.sums, part.sums, strict=True)
            ]
            weight = np.where(both, n1 * n2 / total, 0.0)
        pairs = [(0, 0)] if self.width == 1 else [(0, 0), (1, 1), (0, 1)]
        for number, (a, b) in enumerate(pairs):
            whole.deviations[number][at] += part.deviations[number] + gaps[a] * gaps[b] * weight
        for number in range(self.width):
            whole.sums[number][at] += part.sums[number]
        whole.count[at] = total
        return whole

    def result(self, state: FloatMoments, groups: int) -> Column:
        with np.errstate(all="ignore"):
            values, valid = self.value(state)
        mask = None if valid.all() else torch.from_numpy(valid)
        if not np.isfinite(values[valid]).all():
            self._check(state, values, valid)
        return Column(self.type, FLOAT64, (torch.from_numpy(np.asarray(values)),), mask)

    def _check(self, state: FloatMoments, values: Floats, valid: Any) -> None:
        """Overflow is an error unless an input was infinite or NaN."""
        finite = np.isfinite(np.stack(state.sums)).all(axis=0)
        if bool((np.isinf(values) & valid & finite).any()):
            raise errors.NumericValueOutOfRange("value out of range: overflow")

    def value(self, state: FloatMoments) -> tuple[Floats, Any]:
        """The values (G), and which of them are not NULL."""
        raise NotImplementedError


Formula = Callable[[FloatMoments], tuple[Floats, Any]]


def _variance(is_sample: bool, is_root: bool) -> Formula:
    def value(state: FloatMoments) -> tuple[Floats, Any]:
        least = 2 if is_sample else 1
        divisor = state.count - 1 if is_sample else state.count
        found = state.deviations[0] / divisor
        return (np.sqrt(found) if is_root else found), state.count >= least

    return value


def _register(width: int, value: Formula, *keys: str) -> None:
    """An aggregate class for a formula over the sums."""
    made = type(
        "Float" + keys[0].partition("(")[0].title().replace("_", ""),
        (FloatMomentsAggregate,),
        {"width": width, "value": lambda self, state: value(state), "__doc__": keys[0]},
    )
    aggregate(*keys, fallible=True)(made)


def _float_keys(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}({of})" for name in names for of in ("float4", "float8"))


_register(1, _variance(True, False), *_float_keys("variance", "var_samp"))
_register(1, _variance(False, False), *_float_keys("var_pop"))
_register(1, _variance(True, True), *_float_keys("stddev", "stddev_samp"))
_register(1, _variance(False, True), *_float_keys("stddev_pop"))


def _parts(state: FloatMoments) -> tuple[Floats, ...]:
    """N, Sx, Sy, Sxx, Syy, Sxy; the arguments come as (y, x)."""
    sy, sx = state.sums
    syy, sxx, sxy = state.deviations
    return state.count, sx, sy, sxx, syy, sxy


def _regression(
    formula: Callable[..., Floats], least: int = 1, *, needs: str = ""
) -> Formula:
    def value(state: FloatMoments) -> tuple[Floats, Any]:
        parts = _parts(state)
        valid = parts[0] >= least
        if "x" in needs:
            valid = valid & (parts[3] != 0)
        if "y" in needs:
            valid = valid & (parts[4] != 0)
        return formula(*parts), valid

    return value


def _r2(n: Floats, sx: Floats, sy: Floats, sxx: Floats, syy: Floats, sxy: Floats) -> Floats:
    return np.where(syy == 0, 1.0, sxy * sxy / (sxx * syy))


_PAIR = "(float8,float8)"
_FORMULAS: dict[str, Formula] = {
    "regr_sxx": _regression(lambda n, sx, sy, sxx, syy, sxy: sxx),
    "regr_syy": _regression(lambda n, sx, sy, sxx, syy, sxy: syy),
    "regr_sxy": _regression(lambda n, sx, sy, sxx, syy, sxy: sxy),
    "regr_avgx": _regression(lambda n, sx, sy, sxx, syy, sxy: sx / n),
    "regr_avgy": _regression(lambda n, sx, sy, sxx, syy, sxy: sy / n),
    "covar_pop": _regression(lambda n, sx, sy, sxx, syy, sxy: sxy / n),
    "covar_samp": _regression(lambda n, sx, sy, sxx, syy, sxy: sxy / (n - 1), 2),
    "corr": _regression(
        lambda n, sx, sy, sxx, syy, sxy: sxy / np.sqrt(sxx * syy), needs="xy"
    ),
    "regr_r2": _regression(_r2, needs="x"),
    "regr_slope": _regression(lambda n, sx, sy, sxx, syy, sxy: sxy / sxx, needs="x"),
    "regr_intercept": _regression(
        lambda n, sx, sy, sxx, syy, sxy: (sy - sx * sxy / sxx) / n, needs="x"
    ),
}
for _name, _formula in _FORMULAS.items():
    _register(2, _formula, _name + _PAIR)


@aggregate("regr_count(float8,float8)")
class RegressionCount(Aggregate):
    """The rows where both arguments are not NULL."""

    def partial(self, rows: GroupRows) -> Tensor:
        return reduce.count(rows.ids, rows.groups, rows.rows)

    def merge(self, state: Any, part: Any, ids: Tensor, groups: int) -> Any:
        whole = torch.zeros(0, dtype=torch.int64) if state is None else state
        return reduce.grown(whole, groups).scatter_add_(0, ids, part)

    def result(self, state: Any, groups: int) -> Column:
        return replace(integer_column(self.type, state))
