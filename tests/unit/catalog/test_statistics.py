"""Statistics from samples and segments: close to the truth, exact when the sample is all."""

from __future__ import annotations

import numpy as np
import pytest

from gpudb.catalog.objects import (
    BufferRef,
    RelationStatistics,
    SegmentColumn,
    SegmentRef,
    TableData,
)
from gpudb.catalog.statistics import (
    ColumnSample,
    column_statistics,
    from_segments,
    merge,
    merge_distinct,
    sample_positions,
)

RANDOM = np.random.default_rng(11)


def test_positions_are_distinct_ascending_and_spread() -> None:
    positions = sample_positions(1_000_000, 1000, seed=3)
    assert len(positions) == 1000 and (np.diff(positions) > 0).all()
    assert positions[0] < 1000 and positions[-1] >= 999_000
    assert sample_positions(10, 1000).tolist() == list(range(10))


def test_a_whole_sample_is_exact() -> None:
    values = np.array([5, 5, 5, 7, 9, 9], np.int32)
    found = column_statistics(ColumnSample(1, 8, 2, values), 8)
    assert found.null_fraction == 0.25 and found.distinct == 3
    assert (found.low, found.high) == (5, 9)
    assert found.common_values == (5, 9, 7)
    assert found.common_fractions == pytest.approx((3 / 8, 2 / 8, 1 / 8))
    assert found.histogram == ()


def test_a_unique_column_is_seen_as_unique() -> None:
    values = RANDOM.permutation(1_000_000)[:30_000]
    found = column_statistics(ColumnSample(1, 30_000, 0, values), 1_000_000)
    assert found.distinct == 1_000_000 and found.common_values == ()
    assert len(found.histogram) == 101
    expected = np.linspace(0, 1_000_000, 101)
    assert np.abs(np.array(found.histogram) - expected).max() < 15_000


@pytest.mark.parametrize("domain", [10, 1000, 20_000, 200_000])
def test_distinct_counts_are_estimated_within_a_factor(domain: int) -> None:
    table = RANDOM.integers(0, domain, 1_000_000)
    values = table[sample_positions(len(table))]
    found = column_statistics(ColumnSample(1, len(values), 0, values), len(table))
    assert domain / 2 <= found.distinct <= domain * 1.5


def test_frequent_values_are_common_and_leave_the_histogram() -> None:
    values = np.concatenate([np.full(9000, 42), RANDOM.integers(0, 1_000_000, 21_000)])
    found = column_statistics(ColumnSample(1, 30_000, 0, values), 3_000_000)
    assert found.common_values[0] == 42
    assert found.common_fractions[0] == pytest.approx(0.3, abs=0.001)
    assert 42 not in found.histogram


def test_text_is_kept_as_bytes_and_cut() -> None:
    values = [b"b", b"a" * 200, b"b", b"c"]
    found = column_statistics(ColumnSample(2, 4, 0, values), 4)
    assert (found.low, found.high) == (b"a" * 64, b"c")
    assert found.distinct == 3 and found.common_values[0] == b"b"


def test_correlation_tells_the_stored_order() -> None:
    ascending = np.arange(1000)
    for values, expected in ((ascending, 1.0), (ascending[::-1], -1.0)):
        found = column_statistics(ColumnSample(1, 1000, 0, values), 1000)
        assert found.correlation == pytest.approx(expected)
    constant = column_statistics(ColumnSample(1, 10, 0, np.zeros(10)), 10)
    assert constant.correlation is None


def test_an_empty_or_null_column_has_no_bounds() -> None:
    empty = np.empty(0, np.int64)
    found = column_statistics(ColumnSample(1, 5, 5, empty), 5)
    assert (found.null_fraction, found.distinct, found.low) == (1.0, 0.0, None)
    assert column_statistics(ColumnSample(1, 0, 0, empty), 0).null_fraction == 0.0


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(100.0, 0, 99, 1000), (100.0, 0, 99, 1000)], 100),
        ([(100.0, 0, 99, 1000), (100.0, 100, 199, 1000)], 200),
        ([(1000.0, 0, 10**9, 1000), (1000.0, 0, 10**9, 1000)], 2000),
        ([(50.0, None, None, 1000), (50.0, None, None, 1000)], 50),
        ([(1.0, 7, 7, 10), (1.0, 7, 7, 10)], 1),
        ([(1.0, 1.5, 1.5, 10), (1.0, 2.5, 2.5, 10)], 2),
        ([], 0),
    ],
)
def test_distinct_counts_of_parts_merge(
    parts: list[tuple[float, object, object, int]], expected: float
) -> None:
    assert merge_distinct(parts) == pytest.approx(expected, rel=0.02)


def test_partial_draws_from_one_domain_merge_to_its_size() -> None:
    domain, rows = 900_000, 1_000_000
    parts = []
    seen: set[int] = set()
    for _ in range(3):
        drawn = np.unique(RANDOM.integers(0, domain * 10, rows) // 10)
        seen.update(drawn.tolist())
        parts.append((float(len(drawn)), 0, 10**9, rows))
    assert merge_distinct(parts) == pytest.approx(len(seen), rel=0.02)


def segment(id_: int, low: int, high: int, nulls: int, distinct: int) -> SegmentRef:
    buffers = (BufferRef(0, 400, 4096, 0),)
    column = SegmentColumn(1, "for", b"", buffers, nulls, distinct, low, high)
    return SegmentRef(id_, 7, 100, 4096, (column,), row0=id_ * 100)


def test_segment_metadata_gives_statistics_without_reading() -> None:
    data = TableData((segment(0, 0, 9, 10, 10), segment(1, 10, 19, 0, 10)), {}, 200)
    found = from_segments(7, data, [1, 2])
    column = found.column(1)
    assert column is not None and found.rows == 200
    assert (column.low, column.high, column.null_fraction) == (0, 19, 0.05)
    assert column.distinct == pytest.approx(20, rel=0.05)
    assert column.average_width == 4.0
    unknown = found.column(2)
    assert unknown is not None and unknown.distinct == 0.0


def test_statistics_of_parts_merge() -> None:
    halves = []
    for low in (0, 500_000):
        values = RANDOM.integers(low, low + 500_000, 30_000)
        values[:3000] = 7
        statistics = column_statistics(ColumnSample(1, 40_000, 10_000, values), 400_000)
        halves.append(RelationStatistics(9, 400_000.0, 1000, (statistics,), low))
    merged = merge(9, halves)
    column = merged.column(1)
    assert column is not None and (merged.rows, merged.size_bytes) == (800_000, 2000)
    assert column.null_fraction == 0.25
    assert column.common_values[0] == 7
    assert column.common_fractions[0] == pytest.approx(0.075, rel=0.02)
    middle = column.histogram[len(column.histogram) // 2]
    assert isinstance(middle, int) and 480_000 < middle < 520_000
