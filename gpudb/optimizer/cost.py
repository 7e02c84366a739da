"""The cost model on one page: expected microseconds of one CPU worker.

The constants are measured nanoseconds per row of the tensor kernels on narrow columns (see
docs/internals/optimizer.md); they matter as ratios. Memory-resident input is assumed; bytes read
count at the rate of an NVMe disk only where a table exceeds what a cache could hold.
"""

from __future__ import annotations

import math

ROW_NANOSECONDS = 1.0
"""Reading or writing one narrow value of one row."""
BYTE_NANOSECONDS = 0.1
PREDICATE_NANOSECONDS = 1.0
CALL_NANOSECONDS = 4.0
TEXT_CALL_NANOSECONDS = 40.0
PROBE_CACHED_NANOSECONDS = 3.0
PROBE_RANDOM_NANOSECONDS = 14.0
BUILD_NANOSECONDS = 10.0
GROUP_NANOSECONDS = 8.0
SORT_NANOSECONDS = 30.0
PAIR_NANOSECONDS = 1.0
OPERATOR_MICROSECONDS = 20.0
"""Fixed cost of a pipeline step: dispatch and Python."""
CACHED_ROWS = 250_000.0
"""Build sides up to this many rows stay in the caches."""


def _micro(nanoseconds: float) -> float:
    return nanoseconds / 1000.0


def scan(rows: float, row_bytes: float, filters: int) -> float:
    return OPERATOR_MICROSECONDS + _micro(
        rows * (row_bytes * BYTE_NANOSECONDS + filters * PREDICATE_NANOSECONDS)
    )


def filter(rows: float, predicates: int) -> float:
    return OPERATOR_MICROSECONDS + _micro(rows * predicates * PREDICATE_NANOSECONDS)


def project(rows: float, expressions: int) -> float:
    return OPERATOR_MICROSECONDS + _micro(rows * expressions * CALL_NANOSECONDS)


def hash_join(probe_rows: float, build_rows: float, output_rows: float) -> float:
    probe = (
        PROBE_CACHED_NANOSECONDS
        if build_rows <= CACHED_ROWS
        else PROBE_RANDOM_NANOSECONDS
    )
    return OPERATOR_MICROSECONDS + _micro(
        build_rows * BUILD_NANOSECONDS
        + probe_rows * probe
        + output_rows * 2 * ROW_NANOSECONDS
    )


def nested_loop(probe_rows: float, build_rows: float, output_rows: float) -> float:
    return OPERATOR_MICROSECONDS + _micro(
        probe_rows * max(build_rows, 1.0) * PAIR_NANOSECONDS
        + output_rows * 2 * ROW_NANOSECONDS
    )


def aggregate(rows: float, groups: float, items: int) -> float:
    per_row = GROUP_NANOSECONDS if groups > 1 else ROW_NANOSECONDS
    return OPERATOR_MICROSECONDS + _micro(rows * (per_row + items * 2.0) + groups * 4.0)


def sort(rows: float, keys: int) -> float:
    passes = max(1.0, math.log2(max(rows, 2.0)) / 20.0)
    return OPERATOR_MICROSECONDS + _micro(rows * SORT_NANOSECONDS * keys * passes)


def top(rows: float, kept: float) -> float:
    return OPERATOR_MICROSECONDS + _micro(rows * 4.0 + kept * SORT_NANOSECONDS)
