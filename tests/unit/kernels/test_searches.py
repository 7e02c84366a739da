"""Compiled searches and row lists give what the plain forms give."""

from __future__ import annotations

import numpy as np
import pytest

from gpudb import jit, sqltype
from gpudb.column import text_column
from gpudb.exec.functions.pattern import like_matcher, matches_like
from gpudb.kernels import hash_table
from gpudb.sqltype import SqlType

ROWS = 2 * jit.SMALL_ROWS


@pytest.mark.parametrize(
    "pattern", ["ab%", "%ab", "%ab%", "%a%b%", "a%b", "ab%ab", "%", "%%", "%aab%ab%", "a%b%a"]
)
def test_like_over_many_rows(pattern: str) -> None:
    rng = np.random.default_rng(1)
    values = [
        "".join(rng.choice(list("abc"), rng.integers(0, 7))) for _ in range(ROWS)
    ]
    column = text_column(SqlType(sqltype.TEXT), values)
    test = like_matcher(pattern)
    assert matches_like(column, pattern).tolist() == [test(value) for value in values]


@pytest.mark.parametrize("rows", [0, 5, ROWS])
def test_row_lists_keep_the_order(rows: int) -> None:
    ids = np.random.default_rng(2).integers(0, 7, rows)
    offsets, listed = hash_table.row_lists(ids, 8)
    assert listed.tolist() == np.argsort(ids, kind="stable").tolist()
    assert np.diff(offsets).tolist() == np.bincount(ids, minlength=8).tolist()


def test_a_hash_table_grows_with_one_batch_of_any_size() -> None:
    words = np.arange(3 * ROWS + 1, dtype=np.int64).reshape(-1, 1) * 7919
    table = hash_table.HashTable(1)
    ids, first = table.insert(words)
    assert ids.tolist() == first.tolist() == list(range(len(words)))
    assert table.find(words[::-1].copy()).tolist() == list(range(len(words)))[::-1]
