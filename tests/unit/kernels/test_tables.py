"""Grouping, text numbers, order and exact sums against plain Python."""

from __future__ import annotations

import math
import random
from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudb import jit, sqltype
from gpudb.catalog import types
from gpudb.column import from_values, to_values
from gpudb.kernels import hash_table, order, reduce
from gpudb.kernels.concat import concat
from gpudb.kernels.group import KeyTable
from gpudb.kernels.order import OrderKey
from gpudb.kernels.select import choose, keep
from gpudb.kernels.text_numbers import TextNumbers
from gpudb.sqltype import SqlType

VALUES = {
    sqltype.INT4: st.integers(-5, 5) | st.integers(-(2**31), 2**31 - 1),
    sqltype.INT8: st.integers(-(2**63), 2**63 - 1),
    sqltype.FLOAT8: st.floats() | st.sampled_from([0.0, -0.0, float("nan"), 1.0]),
    sqltype.NUMERIC: st.decimals(-1000, 1000, places=3, allow_nan=False)
    | st.sampled_from([Decimal(1), Decimal("1.00"), Decimal("NaN"), Decimal("1" + "0" * 30)]),
    sqltype.TEXT: st.sampled_from(["", "a", "b", "ab", "é", "longer than eight bytes"]),
    sqltype.BPCHAR: st.sampled_from(["a", "b", "ab"]),
    sqltype.BOOL: st.booleans(),
    sqltype.INTERVAL: st.sampled_from([(1, 0, 0), (0, 30, 0), (0, 0, 5), (0, 1, -7)]),
    sqltype.UUID: st.binary(min_size=16, max_size=16),
    sqltype.DATE: st.integers(-10000, 10000),
}
_OIDS = sorted(VALUES)


def column(oid, values):
    return from_values(SqlType(oid), types.get(oid).layout, values)


def key(oid, value):
    """A Python key that is equal exactly where SQL calls the values equal."""
    if value is None:
        return None
    if oid == sqltype.FLOAT8:
        return "nan" if math.isnan(value) else value + 0.0
    if oid == sqltype.NUMERIC:
        return "nan" if value.is_nan() else value
    if oid == sqltype.INTERVAL:
        return (value[0] * 30 + value[1]) * 86_400_000_000 + value[2]
    return value


def test_key_table_keeps_nulls_when_decimals_are_renumbered():
    table = KeyTable(1)
    first = [Decimal(5), None]
    table.insert([column(sqltype.NUMERIC, first)], 2)
    ids, _ = table.insert([column(sqltype.NUMERIC, [None, Decimal("NaN")])], 2)
    assert ids.tolist() == [1, 2]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_key_table_numbers_in_order_of_appearance(data):
    oids = data.draw(st.lists(st.sampled_from(_OIDS), min_size=1, max_size=3))
    batches = data.draw(st.lists(
        st.lists(st.tuples(*(st.none() | VALUES[o] for o in oids)), max_size=12), max_size=4
    ))
    table = KeyTable(len(oids))
    known = {}
    for rows in batches:
        columns = [column(o, [r[i] for r in rows]) for i, o in enumerate(oids)]
        if not rows:
            continue
        before = len(known)
        ids, first = table.insert(columns, len(rows))
        keys = [tuple(key(o, v) for o, v in zip(oids, r, strict=True)) for r in rows]
        wanted = [known.setdefault(k, len(known)) for k in keys]
        assert ids.tolist() == wanted
        assert [keys[f] for f in first.tolist()] == list(known)[before:]
        assert table.find(columns, len(rows)).tolist() == wanted


def test_compiled_and_plain_tables_agree():
    source = np.random.default_rng(1)
    words = source.integers(-50, 50, (20000, 2))
    plain, compiled = hash_table.HashTable(2), hash_table.HashTable(2)
    jit.configure(is_enabled=False)
    try:
        one = plain.insert(words)
    finally:
        jit.configure(is_enabled=True)
    two = compiled.insert(words)
    assert (one[0] == two[0]).all()
    assert (one[1] == two[1]).all()
    assert (plain.words == compiled.words).all()
    probe = source.integers(-80, 80, (20000, 2))
    assert (plain.find(probe) == compiled.find(probe)).all()


def test_direct_tables_agree():
    codes = np.random.default_rng(2).integers(0, 900, 20000)
    plain, compiled = hash_table.DirectTable(1000), hash_table.DirectTable(1000)
    jit.configure(is_enabled=False)
    try:
        one = plain.insert(codes)
    finally:
        jit.configure(is_enabled=True)
    two = compiled.insert(codes)
    assert (one[0] == two[0]).all()
    assert (one[1] == two[1]).all()


def test_text_numbers_agree():
    source = random.Random(3)
    values = [str(source.randrange(3000)).encode() * source.randrange(1, 4) for _ in range(20000)]
    lengths = np.fromiter(map(len, values), np.int32)
    starts = np.zeros(len(values), np.int64)
    np.cumsum(lengths[:-1], out=starts[1:])
    data = np.frombuffer(b"".join(values), np.uint8)
    known: dict[bytes, int] = {}
    wanted = [known.setdefault(v, len(known)) for v in values]
    table = TextNumbers()
    assert table.insert(starts[:50], lengths[:50], data).tolist() == wanted[:50]
    assert table.insert(starts, lengths, data).tolist() == wanted
    assert table.find(starts, lengths, data).tolist() == wanted


@pytest.mark.parametrize("oid", _OIDS)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_order(oid, data):
    values = data.draw(st.lists(st.none() | VALUES[oid], max_size=20))
    descending, nulls_first = data.draw(st.booleans()), data.draw(st.booleans())
    made = OrderKey(column(oid, values), descending, nulls_first)
    found = order.sort_rows([made], len(values)).tolist()
    sort_key = types.get(oid).sort_key

    def python_key(i):
        return sort_key(values[i]) if values[i] is not None else None

    present = [i for i in range(len(values)) if values[i] is not None]
    present.sort(key=python_key, reverse=False)
    if descending:
        present = sorted(range(len(values)), key=lambda i: i)
        present = [i for i in present if values[i] is not None]
        present.sort(key=lambda i: python_key(i), reverse=True)
    nulls = [i for i in range(len(values)) if values[i] is None]
    assert found == (nulls + present if nulls_first else present + nulls)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30), st.integers(1, 4))
@settings(deadline=None)
def test_exact_sums(values, groups):
    ids = [i % groups for i in range(len(values))]
    whole = column(sqltype.INT8, values)
    limbs = reduce.exact_sums(whole, torch.tensor(ids), groups, len(values))
    limbs = reduce.add_limbs(
        [torch.zeros(0, dtype=torch.int64)] * 2, limbs, torch.arange(groups), groups
    )
    wanted = [sum(v for v, i in zip(values, ids, strict=True) if i == g) for g in range(groups)]
    assert reduce.to_python(limbs) == wanted
    narrow = reduce.to_int64(limbs)
    fits = all(-(2**63) <= w < 2**63 for w in wanted)
    assert (narrow is not None) == fits
    if narrow is not None:
        assert narrow.tolist() == wanted


@pytest.mark.parametrize("oid", _OIDS)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_choose_keep_concat(oid, data):
    rows = data.draw(st.integers(1, 8))
    lists = [
        data.draw(st.lists(st.none() | VALUES[oid], min_size=rows, max_size=rows)) for _ in range(2)
    ]
    choice = data.draw(st.lists(st.integers(0, 1), min_size=rows, max_size=rows))
    columns = [column(oid, values) for values in lists]
    chosen = choose(columns, torch.tensor(choice), rows)
    wanted = [lists[c][i] for i, c in enumerate(choice)]
    assert list(map(str, to_values(chosen, rows))) == list(map(str, wanted))
    kept = keep(columns[0], rows)
    assert list(map(str, to_values(kept))) == list(map(str, lists[0]))
    both = concat([(c, rows) for c in columns])
    assert list(map(str, to_values(both))) == list(map(str, lists[0] + lists[1]))
