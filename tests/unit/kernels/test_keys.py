"""The hash of keys is frozen: placement on disk rests on it."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from gpudb import keys


def test_golden_values():
    assert keys.hash_integers(np.array([0, 1, -1, 2**63 - 1], np.int64)).tolist() == GOLDEN_INTEGERS
    assert keys.hash_bytes(b"") == GOLDEN_EMPTY
    assert keys.hash_bytes(b"abc") == 3018304574923447344
    assert keys.hash_decimal(Decimal("1.00")) == 10987425567385530202


GOLDEN_INTEGERS = [
    16294208416658607535, 10451216379200822465, 16490336266968443936, 3055647633038352039,
]
GOLDEN_EMPTY = 14087677454934409008


@pytest.mark.parametrize(("one", "two"), [
    ("1", "1.00"), ("100", "1E2"), ("0", "0.000"), ("0", "-0.0"), ("-2.50", "-2.5"),
    ("123456789012345678901234567890", "123456789012345678901234567890.0"),
])
def test_equal_numerics_hash_equally(one, two):
    assert keys.hash_decimal(Decimal(one)) == keys.hash_decimal(Decimal(two))


def test_equal_floats_hash_equally():
    hashes = keys.hash_floats(np.array([0.0, -0.0, np.nan, -np.nan, 1.0]))
    assert hashes[0] == hashes[1]
    assert hashes[2] == hashes[3]
    assert len(set(hashes.tolist())) == 3


def test_partitions_are_even():
    counts = np.bincount(keys.partition(keys.hash_integers(np.arange(30000)), 3), minlength=3)
    assert counts.min() > 9500


def test_interval_span():
    assert keys.interval_span(1, 0, 0) == keys.interval_span(0, 30, 0)
