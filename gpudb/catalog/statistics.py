"""Column statistics from samples: distinct counts, common values, histograms, and their merge.

Torch-free. Values are the column's order-preserving numbers (integers, scaled decimals, days,
microseconds, floats) as a numpy array, or a list of bytes for text. A sample should be uniform
over the rows; sizes around SAMPLE_ROWS give histogram errors of a few percent whatever the size
of the table (Chaudhuri, Motwani and Narasayya, SIGMOD 1998).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpudb.catalog.objects import ColumnStatistics, RelationStatistics, TableData

SAMPLE_ROWS = 30_000
HISTOGRAM_BUCKETS = 100
COMMON_VALUES_MAX = 100
TEXT_BYTES_MAX = 64
"""Longer text values are cut in bounds, histograms and common values are not kept of them."""
COMMON_VALUE_FACTOR = 1.25
"""How much more frequent than the average a value must be to count as common."""

MERGED_PARTS_MAX = 1024
"""Beyond this many parts their ranges are not compared one by one."""
BISECTION_STEPS = 60

Values = npt.NDArray[Any] | Sequence[bytes]
Number = int | float | bytes
Floats = npt.NDArray[np.float64]
DistinctPart = tuple[float, Any, Any, int]
"""(distinct, low, high, non-null rows) of a part of a column; bounds None for unknown."""


@dataclass(frozen=True, slots=True)
class ColumnSample:
    """A uniform sample of the non-null values of a column.

    ``nulls`` of ``rows`` sampled rows were NULL; ``average_width`` is in bytes, 0 for unknown.
    """

    attnum: int
    rows: int
    nulls: int
    values: Values
    average_width: float = 0.0
    scale: int = 0


def sample_positions(rows: int, size: int = SAMPLE_ROWS, *, seed: int = 0) -> npt.NDArray[np.int64]:
    """Ascending distinct row numbers of a uniform sample of a table of ``rows`` rows.

    One row from each of ``size`` equal strata: cheap, ordered, and never an accident of clusters.
    """
    if rows <= size:
        return np.arange(rows, dtype=np.int64)
    edges = (np.arange(size + 1, dtype=np.int64) * rows) // size
    random = np.random.default_rng(seed)
    return edges[:-1] + random.integers(0, np.diff(edges))


def column_statistics(sample: ColumnSample, table_rows: float) -> ColumnStatistics:
    """Statistics of a column of ``table_rows`` rows from a sample of it."""
    fraction = sample.nulls / sample.rows if sample.rows else 0.0
    base = ColumnStatistics(
        sample.attnum,
        null_fraction=fraction,
        average_width=sample.average_width or _average_width(sample.values),
        scale=sample.scale,
    )
    count = len(sample.values)
    if count == 0:
        return base
    ordered, counts = _grouped(sample.values)
    present = max(table_rows * (1.0 - fraction), float(count))
    distinct = estimate_distinct(counts, count, present)
    common = _common(counts, count, distinct, is_whole=count >= present)
    fractions = tuple(float(counts[i]) / count * (1.0 - fraction) for i in common)
    return dataclasses.replace(
        base,
        distinct=distinct,
        low=_bound(ordered[0]),
        high=_bound(ordered[-1]),
        common_values=tuple(_plain(ordered[i]) for i in common),
        common_fractions=fractions,
        histogram=_histogram(ordered, counts, frozenset(common)),
        correlation=_correlation(sample.values),
    )


def _average_width(values: Values) -> float:
    if isinstance(values, np.ndarray):
        return float(values.dtype.itemsize)
    return sum(map(len, values)) / len(values) if values else 0.0


def _grouped(values: Values) -> tuple[Any, npt.NDArray[np.int64]]:
    """Distinct values in ascending order (NaN last) and how often each occurs."""
    if isinstance(values, np.ndarray):
        ordered, counts = np.unique(values, return_counts=True)
        return ordered, counts.astype(np.int64)
    tally: dict[bytes, int] = {}
    for value in values:
        tally[value] = tally.get(value, 0) + 1
    keys = sorted(tally)
    return keys, np.array([tally[key] for key in keys], np.int64)


def _plain(value: Any) -> Number:
    return value if isinstance(value, bytes) else value.item()


def _bound(value: Any) -> Number:
    plain = _plain(value)
    return plain[:TEXT_BYTES_MAX] if isinstance(plain, bytes) else plain


def estimate_distinct(counts: npt.NDArray[np.int64], sampled: int, total: float) -> float:
    """Distinct values among ``total`` rows from the counts in a sample of ``sampled`` rows.

    The estimator of Haas and Stokes (1998) that PostgreSQL uses, n d / (n - f1 + f1 n / N), with
    f1 the values seen once. A column whose sample has no duplicate is taken as unique.
    """
    seen = len(counts)
    once = int((counts == 1).sum())
    if sampled >= total:
        return float(seen)
    if once == seen:
        return float(total)
    if once == 0:
        return float(seen)
    estimate = sampled * seen / (sampled - once + once * sampled / total)
    return float(min(max(estimate, seen), total))


def _common(
    counts: npt.NDArray[np.int64], sampled: int, distinct: float, *, is_whole: bool
) -> list[int]:
    """Positions of the common values, most frequent first.

    All values when the sample shows each of a few; else those clearly above the average.
    """
    order = np.argsort(-counts, kind="stable")[:COMMON_VALUES_MAX]
    if len(counts) <= COMMON_VALUES_MAX and (is_whole or distinct <= len(counts)):
        return [int(i) for i in order if counts[i] > 1 or is_whole]
    threshold = max(2.0, COMMON_VALUE_FACTOR * sampled / max(distinct, 1.0))
    return [int(i) for i in order if counts[i] > threshold]


def _histogram(
    ordered: Sequence[Any], counts: npt.NDArray[np.int64], common: frozenset[int]
) -> tuple[Number, ...]:
    """Bounds of buckets of equal weight over the values that are not common."""
    kept = np.array([i for i in range(len(counts)) if i not in common], np.int64)
    if len(kept) < 2:
        return ()
    ends = np.cumsum(counts[kept])
    buckets = min(HISTOGRAM_BUCKETS, len(kept) - 1)
    wanted = 1 + (np.arange(buckets + 1) * (int(ends[-1]) - 1)) // buckets
    positions = kept[np.searchsorted(ends, wanted)]
    return tuple(_bound(ordered[int(i)]) for i in positions)


def _correlation(values: Values) -> float | None:
    """How well the stored order is the value order: -1 to 1, None when all are equal."""
    if not isinstance(values, np.ndarray) or len(values) < 2:
        return None
    ranks = np.empty(len(values), np.float64)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    if values.min() == values.max():
        return None
    return float(np.corrcoef(ranks, np.arange(len(values)))[0, 1])


# Without a sample: what the segments' own metadata says


def from_segments(relation: int, data: TableData, attnums: Iterable[int]) -> RelationStatistics:
    """Statistics from segment metadata alone: exact nulls and bounds, merged distinct counts."""
    columns = tuple(_segments_column(data, attnum) for attnum in attnums)
    return RelationStatistics(relation, float(data.rows()), data.size_bytes(), columns)


def _segments_column(data: TableData, attnum: int) -> ColumnStatistics:
    rows = nulls = stored = 0
    lows: list[Any] = []
    highs: list[Any] = []
    parts: list[DistinctPart] = []
    is_bounded = True
    for segment in data.segments:
        column = segment.column(attnum)
        if column is None:
            continue
        rows += segment.rows
        nulls += column.nulls
        stored += sum(buffer.length for buffer in column.buffers)
        present = segment.rows - column.nulls
        if present == 0:
            continue
        if column.low is None or column.high is None:
            is_bounded = False
        else:
            lows.append(column.low)
            highs.append(column.high)
        distinct = float(column.distinct if column.distinct is not None else present)
        parts.append((distinct, column.low, column.high, present))
    is_bounded = is_bounded and bool(lows)
    return ColumnStatistics(
        attnum,
        null_fraction=nulls / rows if rows else 0.0,
        distinct=merge_distinct(parts),
        average_width=stored / rows if rows else 0.0,
        low=min(lows) if is_bounded else None,
        high=max(highs) if is_bounded else None,
    )


def merge_distinct(parts: Sequence[DistinctPart]) -> float:
    """Distinct values of a union of parts.

    Each part is taken as random draws from a domain spread evenly over its range; the domain's
    size follows from how many duplicates the draws have. Where ranges overlap, parts draw from
    the same domain; disjoint ranges add up. Never below the largest part nor above the sum.
    """
    if not parts:
        return 0.0
    distinct = np.array([part[0] for part in parts], np.float64)
    rows = np.maximum(np.array([part[3] for part in parts], np.float64), distinct)
    domain = _domain_size(distinct, rows)
    is_ranged = all(_is_measurable(part[1]) and _is_measurable(part[2]) for part in parts)
    if is_ranged and len(parts) <= MERGED_PARTS_MAX:
        union = _union_over_ranges(parts, domain, rows)
    else:
        union = float(_expected_distinct(domain.max(), rows.sum()))
    return float(np.clip(union, distinct.max(), distinct.sum()))


def _is_measurable(bound: object) -> bool:
    """Whether lengths up to the bound can be computed: infinite ones have none."""
    return isinstance(bound, int) or (isinstance(bound, float) and math.isfinite(bound))


def _union_over_ranges(parts: Sequence[DistinctPart], domain: Floats, rows: Floats) -> float:
    """Sums over the intervals I between the bounds of the parts P."""
    low_P = np.array([part[1] for part in parts], np.float64)
    high_P = np.array([part[2] for part in parts], np.float64)
    is_whole = all(isinstance(part[1], int) and isinstance(part[2], int) for part in parts)
    high_P = high_P + 1.0 if is_whole else np.nextafter(high_P, np.inf)
    edges = np.unique(np.concatenate([low_P, high_P]))
    lengths_I = np.diff(edges)
    covers_IP = (low_P <= edges[:-1, None]) & (high_P >= edges[1:, None])
    share_IP = covers_IP * lengths_I[:, None] / (high_P - low_P)
    domain_I = (share_IP * domain).max(axis=1)
    if is_whole:
        domain_I = np.minimum(domain_I, lengths_I)
    return float(_expected_distinct(domain_I, (share_IP * rows).sum(axis=1)).sum())


def _expected_distinct(domain: Any, draws: Any) -> Any:
    """Distinct values after ``draws`` draws from ``domain`` values: D (1 - exp(-n / D))."""
    safe = np.maximum(domain, 1e-9)
    return safe * -np.expm1(-draws / safe)


def _domain_size(distinct: Floats, rows: Floats) -> Floats:
    """The inverse of _expected_distinct, by bisection on n / D; large for unique columns."""
    ratio = distinct / np.maximum(rows, 1.0)
    low, high = np.full(len(ratio), 1e-6), np.full(len(ratio), 1e9)
    for _ in range(BISECTION_STEPS):
        middle = np.sqrt(low * high)
        is_above = -np.expm1(-middle) / middle > ratio
        low, high = np.where(is_above, middle, low), np.where(is_above, high, middle)
    domain: Floats = rows / low
    return domain


def merge(relation: int, parts: Sequence[RelationStatistics]) -> RelationStatistics:
    """Statistics of a table from those of its parts (loaders on several workers)."""
    rows = sum(part.rows for part in parts)
    attnums = sorted({column.attnum for part in parts for column in part.columns})
    columns = tuple(_merged_column(attnum, parts, rows) for attnum in attnums)
    size = sum(part.size_bytes for part in parts)
    analyzed = max((part.analyzed_at for part in parts), default=0)
    return RelationStatistics(relation, rows, size, columns, analyzed)


def _merged_column(
    attnum: int, parts: Sequence[RelationStatistics], rows: float
) -> ColumnStatistics:
    found = [(p.rows, c) for p in parts if (c := p.column(attnum)) is not None and p.rows > 0]
    if not found:
        return ColumnStatistics(attnum)
    weight = sum(r for r, _ in found)
    distinct = merge_distinct(
        [(c.distinct, c.low, c.high, math.ceil(r * (1 - c.null_fraction))) for r, c in found]
    )
    lows = [c.low for _, c in found if c.low is not None]
    highs = [c.high for _, c in found if c.high is not None]
    values, fractions = _merged_common(found, weight)
    return ColumnStatistics(
        attnum,
        null_fraction=sum(r * c.null_fraction for r, c in found) / weight,
        distinct=min(distinct, rows),
        average_width=sum(r * c.average_width for r, c in found) / weight,
        low=min(lows, default=None),
        high=max(highs, default=None),
        common_values=values,
        common_fractions=fractions,
        histogram=_merged_histogram(found),
        scale=found[0][1].scale,
    )


def _merged_common(
    found: Sequence[tuple[float, ColumnStatistics]], weight: float
) -> tuple[tuple[Number, ...], tuple[float, ...]]:
    shares: dict[Number, float] = {}
    for rows, column in found:
        for value, fraction in zip(column.common_values, column.common_fractions, strict=True):
            shares[value] = shares.get(value, 0.0) + rows * fraction / weight
    top = sorted(shares.items(), key=lambda item: -item[1])[:COMMON_VALUES_MAX]
    return tuple(value for value, _ in top), tuple(share for _, share in top)


def _merged_histogram(found: Sequence[tuple[float, ColumnStatistics]]) -> tuple[Number, ...]:
    """Bounds of equal weight over the union: each bucket of a part weighs rows / buckets."""
    points: list[tuple[Any, float]] = []
    for rows, column in found:
        bounds = column.histogram
        if len(bounds) >= 2:
            share = rows / (len(bounds) - 1)
            points.append((bounds[0], 0.0))
            points.extend((bound, share) for bound in bounds[1:])
    if len(points) < 2:
        return ()
    points.sort(key=lambda point: point[0])
    ends = np.cumsum([share for _, share in points])
    buckets = min(HISTOGRAM_BUCKETS, len(points) - 1)
    wanted = np.arange(buckets + 1) * (ends[-1] / buckets)
    positions = np.minimum(np.searchsorted(ends, wanted - 1e-9), len(points) - 1)
    merged = [points[int(i)][0] for i in positions]
    merged[0], merged[-1] = points[0][0], points[-1][0]
    return tuple(merged)
