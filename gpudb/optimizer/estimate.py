"""Cardinality estimates: selectivities of predicates and distinct counts of expressions.

The formulas are those of PostgreSQL's planner (most common values, equi-depth histograms,
distinct counts, default selectivities). Column statistics are kept by field id for the whole
statement; a derived column takes those of the column it comes from. Nothing here is a fact.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gpudb import expr
from gpudb.expr import Expr
from gpudb.optimizer.logical import Field
from gpudb.optimizer.statistics import StatisticsSource
from gpudb.sqltype import (
    BOOL,
    BPCHAR,
    CHAR,
    DATE,
    FLOAT4,
    INT2,
    INT4,
    NAME,
    NUMERIC,
    OID,
    STRINGS,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
    numeric_precision_scale,
)

FIRST_PLANNER_ID = 1 << 24
"""Ids of columns that the planner adds count from here, beyond those of rules."""
DEFAULT_ROWS = 1000.0
DEFAULT_EQUALITY = 0.005
DEFAULT_INEQUALITY = 1.0 / 3.0
DEFAULT_RANGE = 0.005
DEFAULT_LIKE = 0.01
DEFAULT_PREDICATE = 0.25
DEFAULT_DISTINCT = 200.0
DEFAULT_SET_ROWS = 100.0
MINIMUM_SELECTIVITY = 1e-7
LIKE_SAMPLES = 10
DAMPING = (1.0, 1.0, 0.7, 0.5, 0.35)
"""Exponents for conjuncts, most selective first: predicates are seldom independent."""

_WIDTHS = {BOOL: 1, CHAR: 1, INT2: 2, INT4: 4, FLOAT4: 4, DATE: 4, OID: 4, NAME: 16}
_TIMESTAMPS = frozenset({TIMESTAMP, TIMESTAMPTZ})
_DAY_MICROSECONDS = 86_400_000_000
_LIKE_SUFFIXES = ("like", "nlike", "iclike", "icnlike", "regexeq", "regexne")
_OPERATORS = {"<": True, "<=": True, ">": False, ">=": False}
_COMMUTED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


@dataclass(frozen=True, slots=True)
class ColumnEstimate:
    """A column's statistics in the number domain of catalog.objects.ColumnStatistics."""

    distinct: float = 0.0
    null_fraction: float = 0.0
    width: float = 8.0
    low: Any = None
    high: Any = None
    common_values: tuple[Any, ...] = ()
    common_fractions: tuple[float, ...] = ()
    histogram: tuple[Any, ...] = ()
    type: SqlType | None = None


def default_width(type_: SqlType) -> float:
    """Bytes of a value without statistics."""
    if type_.oid in STRINGS and type_.oid != NAME:
        return float(min(type_.typmod - 4, 32)) if type_.typmod > 4 else 24.0
    return float(_WIDTHS.get(type_.oid, 8))


def domain_value(value: Any, type_: SqlType, literal_oid: int = 0) -> Any:
    """A literal's host value in the number domain of a column of ``type_``; None if unknown."""
    if value is None:
        return None
    if literal_oid in _TIMESTAMPS and type_.oid == DATE:
        return value / _DAY_MICROSECONDS
    if literal_oid == DATE and type_.oid in _TIMESTAMPS:
        return value * _DAY_MICROSECONDS
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        return value.rstrip(" ").encode() if type_.oid == BPCHAR else value.encode()
    if isinstance(value, int | float | Decimal) and type_.oid == NUMERIC:
        if type_.typmod < 0 or not Decimal(value).is_finite():
            return None
        return float(Decimal(value).scaleb(numeric_precision_scale(type_.typmod)[1]))
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() else None
    return value if isinstance(value, int | float | bytes) else None


def _constant(node: Expr) -> expr.Literal | None:
    while isinstance(node, expr.Cast) and not node.is_text_io:
        node = node.argument
    return node if isinstance(node, expr.Literal) else None


def _is_constant(node: Expr) -> bool:
    return not expr.references(node)


def _column(node: Expr) -> expr.ColumnRef | None:
    while isinstance(node, expr.Cast) and not node.is_text_io:
        node = node.argument
    return node if isinstance(node, expr.ColumnRef) else None


def _text_number(value: bytes, prefix: int) -> float:
    """The value's bytes after ``prefix`` as a fraction, to interpolate between two texts."""
    total, scale = 0.0, 1.0
    for byte in value[prefix : prefix + 8]:
        scale /= 256.0
        total += byte * scale
    return total


def _position(value: Any, low: Any, high: Any) -> float:
    """Where value lies between low and high, 0 to 1."""
    if isinstance(value, bytes):
        if not isinstance(low, bytes) or not isinstance(high, bytes):
            return 0.5
        prefix = 0
        while prefix < min(len(low), len(high)) and low[prefix] == high[prefix]:
            prefix += 1
        low, high, value = (_text_number(item, prefix) for item in (low, high, value))
    if isinstance(low, bytes) or isinstance(high, bytes) or high <= low:
        return 0.5
    return float(min(1.0, max(0.0, (value - low) / (high - low))))


def _is_comparable(value: Any, sample: Any) -> bool:
    return value is not None and isinstance(value, bytes) == isinstance(sample, bytes)


class Estimator:
    """Statistics by field id of one statement; ``source`` supplies those of table columns."""

    def __init__(self, source: StatisticsSource) -> None:
        self.source = source
        self._columns: dict[int, ColumnEstimate] = {}
        self._next_id = FIRST_PLANNER_ID

    def table_rows(self, table_oid: int) -> float:
        rows = self.source.rows(table_oid)
        return DEFAULT_ROWS if rows is None else max(float(rows), 1.0)

    def add_scan(self, fields: Iterable[Field], rows: float) -> None:
        """Make the statistics of a scan's columns known."""
        for field in fields:
            found = self.source.column(field.table_oid, field.attnum)
            if found is None:
                if (field.attnum,) in self.source.unique_keys(field.table_oid):
                    self._columns[field.id] = ColumnEstimate(
                        rows, 0.0, default_width(field.type), type=field.type
                    )
                continue
            self._columns[field.id] = ColumnEstimate(
                distinct=max(found.distinct, 1.0),
                null_fraction=found.null_fraction,
                width=found.average_width or default_width(field.type),
                low=found.low,
                high=found.high,
                common_values=found.common_values,
                common_fractions=found.common_fractions,
                histogram=found.histogram,
                type=field.type,
            )

    def add_alias(self, field: Field, source: Expr, rows: float) -> None:
        """Make ``field``, computed by ``source``, known."""
        if field.id in self._columns:
            return
        column = _column(source)
        if column is not None and column.id in self._columns:
            self._columns[field.id] = self._columns[column.id]
        else:
            self._columns[field.id] = ColumnEstimate(
                self.distinct(source, rows), 0.0, default_width(field.type)
            )

    def add_distinct(self, field: Field, distinct: float) -> None:
        """Make a computed column with about ``distinct`` values known."""
        self._columns.setdefault(
            field.id, ColumnEstimate(max(distinct, 1.0), 0.0, default_width(field.type))
        )

    def new_column(self, name: str, type_: SqlType, distinct: float) -> Field:
        """A column that the planner adds to a plan."""
        field = Field(self._next_id, name, type_)
        self._next_id += 1
        self.add_distinct(field, distinct)
        return field

    def width(self, field: Field) -> float:
        found = self._columns.get(field.id)
        return default_width(field.type) if found is None else found.width

    def row_width(self, fields: Iterable[Field]) -> float:
        return sum(self.width(field) for field in fields)

    def null_fraction(self, node: Expr) -> float:
        column = _column(node)
        found = self._columns.get(column.id) if column is not None else None
        return 0.0 if found is None else found.null_fraction

    def distinct(self, node: Expr, rows: float) -> float:
        """Distinct values of an expression over ``rows`` rows."""
        column = _column(node)
        if column is not None:
            found = self._columns.get(column.id)
            if found is None or found.distinct <= 0:
                return max(min(DEFAULT_DISTINCT, rows), 1.0)
            return max(min(found.distinct, rows), 1.0)
        if _is_constant(node):
            return 1.0
        if isinstance(node, expr.Predicate):
            return 2.0
        total = 1.0
        for part in expr.references(node):
            found = self._columns.get(part)
            total *= DEFAULT_DISTINCT if found is None else max(found.distinct, 1.0)
        if isinstance(node, expr.Call) and any(
            word in node.function.key for word in ("extract", "part")
        ):
            total = min(total, 50.0)
        return max(min(total, rows), 1.0)

    def groups(self, keys: Sequence[Expr], rows: float) -> float:
        """How many groups ``rows`` rows make."""
        total = 1.0
        for key in keys:
            total *= self.distinct(key, rows) + (1.0 if self.null_fraction(key) > 0 else 0.0)
        if not keys:
            return 1.0
        if len(keys) > 1 and total > rows / 10.0:
            largest = max(self.distinct(key, rows) for key in keys)
            total = max(largest, min(total, max(rows / 10.0, largest)))
        return max(1.0, min(total, rows))

    def selectivity_of_all(self, predicates: Sequence[Expr]) -> float:
        """The share of rows that pass all predicates."""
        if len(predicates) == 1:
            return self.selectivity(predicates[0])
        ranges: dict[int, list[float]] = {}
        shares: list[float] = []
        for predicate in predicates:
            share = self.selectivity(predicate)
            column = self._range_column(predicate)
            if column is None:
                shares.append(share)
            else:
                ranges.setdefault(column, []).append(share)
        for column_id, parts in ranges.items():
            known = self._columns.get(column_id)
            if len(parts) < 2:
                shares.extend(parts)
            elif known is None or known.low is None:
                shares.append(DEFAULT_RANGE)
            else:
                shares.append(max(sum(parts) - (len(parts) - 1), DEFAULT_RANGE / 10))
        result = 1.0
        for index, share in enumerate(sorted(shares)):
            result *= share ** DAMPING[min(index, len(DAMPING) - 1)]
        return max(result, MINIMUM_SELECTIVITY)

    @staticmethod
    def _range_column(predicate: Expr) -> int | None:
        if not isinstance(predicate, expr.Call) or predicate.function.operator not in _OPERATORS:
            return None
        left, right = predicate.arguments
        column = _column(left) or _column(right)
        other = right if _column(left) else left
        return column.id if column is not None and _is_constant(other) else None

    def selectivity(self, predicate: Expr) -> float:
        """The share of rows for which the predicate is true."""
        share = self._selectivity(predicate)
        return min(1.0, max(share, MINIMUM_SELECTIVITY))

    def _selectivity(self, node: Expr) -> float:
        match node:
            case expr.Literal():
                return 1.0 if node.value is True else 0.0
            case expr.And():
                return self.selectivity_of_all(node.arguments)
            case expr.Or():
                passing = 1.0
                for item in node.arguments:
                    passing *= 1.0 - self.selectivity(item)
                return 1.0 - passing
            case expr.Not():
                return 1.0 - self.selectivity(node.argument)
            case expr.IsNull():
                nulls = self.null_fraction(node.argument)
                if _column(node.argument) is None or nulls == 0.0:
                    nulls = max(nulls, DEFAULT_EQUALITY)
                return 1.0 - nulls if node.is_negated else nulls
            case expr.InList():
                total = sum(self._equality(node.argument, item) for item in node.items)
                return min(total, 1.0)
            case expr.ArrayComparison():
                return self._array(node)
            case expr.DistinctFrom():
                share = self._equality(node.left, node.right)
                return share if node.is_negated else 1.0 - share
            case expr.BooleanTest():
                share = self.selectivity(node.argument)
                return share if (node.truth is expr.Truth.TRUE) != node.is_negated else 1.0 - share
            case expr.Call():
                return self._call(node)
            case expr.ColumnRef():
                return self._boolean_column(node)
            case _:
                return DEFAULT_PREDICATE

    def _boolean_column(self, node: expr.ColumnRef) -> float:
        found = self._columns.get(node.id)
        if found is not None and 1 in found.common_values:
            return found.common_fractions[found.common_values.index(1)]
        return 0.5

    def _array(self, node: expr.ArrayComparison) -> float:
        count = 10.0
        if isinstance(node.array, expr.ArrayConstruct):
            count = float(len(node.array.items))
        elif isinstance(node.array, expr.Literal) and hasattr(node.array.value, "items"):
            count = float(len(node.array.value.items))
        if node.function.operator == "=" and node.is_any:
            column = _column(node.argument)
            found = self._columns.get(column.id) if column is not None else None
            each = 1.0 / found.distinct if found and found.distinct else DEFAULT_EQUALITY
            return min(1.0, count * each)
        return DEFAULT_INEQUALITY

    def _call(self, node: expr.Call) -> float:
        operator = node.function.operator
        if len(node.arguments) != 2:
            return DEFAULT_PREDICATE
        left, right = node.arguments
        if operator == "=":
            return self._equality(left, right)
        if operator == "<>":
            return 1.0 - self._equality(left, right) - self.null_fraction(left)
        if operator in _OPERATORS:
            return self._inequality(operator, left, right)
        if node.function.key.endswith(_LIKE_SUFFIXES):
            return self._like(node)
        return DEFAULT_PREDICATE

    def _equality(self, left: Expr, right: Expr) -> float:
        if _column(left) is None and _column(right) is not None:
            left, right = right, left
        column = _column(left)
        found = self._columns.get(column.id) if column is not None else None
        if _column(right) is not None and column is not None:
            return 1.0 / max(self.distinct(left, 1e12), self.distinct(right, 1e12))
        if found is None or found.distinct <= 0:
            if column is None:
                return 1.0 / max(self.distinct(left, 1e12), 2.0)
            return DEFAULT_EQUALITY
        literal = _constant(right)
        if literal is None or found.type is None:
            return (1.0 - found.null_fraction) / found.distinct
        if literal.value is None:
            return 0.0
        value = domain_value(literal.value, found.type, literal.type.oid)
        if value in found.common_values:
            return found.common_fractions[found.common_values.index(value)]
        if self._is_outside(found, value):
            return 0.0
        rest = 1.0 - found.null_fraction - sum(found.common_fractions)
        return max(rest, 0.0) / max(found.distinct - len(found.common_values), 1.0)

    @staticmethod
    def _is_outside(found: ColumnEstimate, value: Any) -> bool:
        if found.low is None or found.high is None or not _is_comparable(value, found.low):
            return False
        return not found.low <= value <= found.high

    def _inequality(self, operator: str, left: Expr, right: Expr) -> float:
        if _column(left) is None:
            left, right, operator = right, left, _COMMUTED[operator]
        column, literal = _column(left), _constant(right)
        found = self._columns.get(column.id) if column is not None else None
        if found is None or literal is None or found.type is None:
            return DEFAULT_INEQUALITY
        value = domain_value(literal.value, found.type, literal.type.oid)
        if value is None or found.low is None or not _is_comparable(value, found.low):
            return DEFAULT_INEQUALITY
        below = self._share_below(found, value)
        not_null = 1.0 - found.null_fraction
        share = below if _OPERATORS[operator] else not_null - below
        if operator in ("<=", ">="):
            share += not_null / max(found.distinct, 1.0)
        return share

    @staticmethod
    def _share_below(found: ColumnEstimate, value: Any) -> float:
        """The share of rows whose value is below ``value``."""
        common = sum(
            fraction
            for item, fraction in zip(found.common_values, found.common_fractions, strict=True)
            if item < value
        )
        rest = max(1.0 - found.null_fraction - sum(found.common_fractions), 0.0)
        bounds = found.histogram if len(found.histogram) > 1 else (found.low, found.high)
        slot = bisect_left(bounds, value)
        if slot == 0:
            inside = 0.0
        elif slot >= len(bounds):
            inside = 1.0
        else:
            within = _position(value, bounds[slot - 1], bounds[slot])
            inside = (slot - 1 + within) / (len(bounds) - 1)
        return common + rest * inside

    def _like(self, node: expr.Call) -> float:
        column, literal = _column(node.arguments[0]), _constant(node.arguments[1])
        negated = node.function.key.endswith(("nlike", "icnlike", "regexne"))
        found = self._columns.get(column.id) if column is not None else None
        pattern = literal.value if literal is not None else None
        share = DEFAULT_LIKE
        if isinstance(pattern, str) and "regex" not in node.function.key:
            share = self._like_share(found, pattern, "ic" in node.function.key)
        return 1.0 - share if negated else share

    @staticmethod
    def _like_share(found: ColumnEstimate | None, pattern: str, ignores_case: bool) -> float:
        fixed = sum(1 for character in pattern if character not in "%_\\")
        guess = max(0.5 * 0.75**fixed, 0.0005)
        if found is None or not (found.common_values or found.histogram):
            return guess
        sample = [item for item in found.common_values + found.histogram if isinstance(item, bytes)]
        if len(sample) < LIKE_SAMPLES and len(found.common_values) < found.distinct:
            return guess
        source = "".join(
            ".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern
        )
        flags = re.DOTALL | (re.IGNORECASE if ignores_case else 0)
        matcher = re.compile(source.encode(), flags)
        common = sum(
            fraction
            for item, fraction in zip(found.common_values, found.common_fractions, strict=True)
            if isinstance(item, bytes) and matcher.fullmatch(item)
        )
        rest = max(1.0 - found.null_fraction - sum(found.common_fractions), 0.0)
        if not found.histogram:
            return common + rest * (guess if len(found.common_values) < found.distinct else 0.0)
        hits = sum(
            1 for item in found.histogram if isinstance(item, bytes) and matcher.fullmatch(item)
        )
        share = hits / len(found.histogram)
        return common + rest * (share if share > 0 else min(guess, 0.5 / len(found.histogram)))

    def join_selectivity(
        self, left: Expr, right: Expr, left_rows: float, right_rows: float
    ) -> float:
        """The share of pairs with equal keys."""
        distinct = max(self.distinct(left, left_rows), self.distinct(right, right_rows))
        nulls = (1.0 - self.null_fraction(left)) * (1.0 - self.null_fraction(right))
        return nulls / max(distinct, 1.0)

    def match_fraction(self, left: Expr, right: Expr, left_rows: float, right_rows: float) -> float:
        """The share of left rows that find an equal key on the right."""
        left_distinct = self.distinct(left, left_rows)
        right_distinct = self.distinct(right, right_rows)
        return min(1.0, right_distinct / left_distinct) * (1.0 - self.null_fraction(left))
