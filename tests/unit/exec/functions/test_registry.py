"""What is registered: the module list, the keys, and the speed-ups beside the row-wise way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from gpudb import errors
from gpudb.catalog import builtin, functions, types
from gpudb.catalog.signatures import aggregate_key
from gpudb.catalog.types import TypeContext
from gpudb.column import Column, text_column, to_values
from gpudb.exec import functions as package
from gpudb.exec.functions import load
from gpudb.exec.functions.pattern import like_matcher, matches_like
from gpudb.kernels import decimal as decimals
from gpudb.kernels import decimal_math, parse
from gpudb.kernels import text as texts
from gpudb.layout import Dictionary
from gpudb.sqltype import NUMERIC_TYPE, TEXT_TYPE, SqlType


def test_every_module_is_listed() -> None:
    folder = Path(package.__file__).parent
    helpers = {"__init__", "rowwise", "templates"}
    found = {path.stem for path in folder.glob("*.py")} - helpers
    assert found >= set(package.MODULES)


def test_every_scalar_key_is_a_function_of_postgresql() -> None:
    load()
    names = {oid: entry.name for oid, entry in builtin.types().items()}
    keys = set()
    for row in builtin.table("pg_proc").to_pylist():
        keys.add(row["prosrc"])
        if row["prolang"] == 14:
            keys.add(aggregate_key(row["proname"], row["proargtypes"]))
    own = {item.key for item in functions.OWN}
    assert set(functions.SCALARS) - keys - own == set()
    assert names[23] == "int4"


@pytest.mark.parametrize(
    "pattern", ["%b%", "a%", "%c", "abc", "a%c", "_b_", "%", "", "a%b%c", "%ab%bc%", "é%", "%é_"]
)
def test_like_over_columns_equals_the_matcher(pattern: str) -> None:
    values = ["abc", "ab", "", "cab", "aXbXc", "abbc", "éa", "bé", "béx", "c"]
    expected = [like_matcher(pattern)(value) for value in values]
    plain = text_column(TEXT_TYPE, values)
    assert matches_like(plain, pattern).tolist() == expected
    entries = sorted({v.encode() for v in values})
    codes = torch.tensor([entries.index(v.encode()) for v in values], dtype=torch.int32)
    coded = Column(
        TEXT_TYPE, type(plain.layout)(plain.layout.kind.__class__.DICTIONARY, 4), (codes,),
        dictionary=Dictionary.of(entries, is_sorted=True),
    )
    assert matches_like(coded, pattern).tolist() == expected


def test_text_comparison_equals_byte_order() -> None:
    values = [b"", b"a", b"ab", b"abcdefgh", b"abcdefghi", b"abcdefgi", b"\xff", b"a\0b"]
    pairs = [(a, b) for a in values for b in values]
    left = texts.text_column(TEXT_TYPE, *_packed([a for a, _ in pairs]), None)
    right = texts.text_column(TEXT_TYPE, *_packed([b for _, b in pairs]), None)
    expected = [(a > b) - (a < b) for a, b in pairs]
    assert texts.compare(left, right).tolist() == expected
    assert texts.equal(left, right).tolist() == [a == b for a, b in pairs]


def _packed(values: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lengths = np.array([len(v) for v in values], np.int32)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return starts, lengths, np.frombuffer(b"".join(values), np.uint8).copy()


def test_column_arithmetic_equals_single_decimals() -> None:
    generator = np.random.default_rng(7)
    for digits, scale in ((4, 2), (9, 0), (15, 4), (17, 6)):
        left = [_decimal(generator, digits, scale) for _ in range(200)]
        right = [_decimal(generator, 5, 3) or decimal_math.NAN for _ in range(200)]
        right = [r or decimal_math.scaled(1, 3) for r in right]
        one, two = (decimals.from_decimals(NUMERIC_TYPE, side) for side in (left, right))
        for name in ("add", "multiply", "divide"):
            found = getattr(decimals, name)(one, two)
            assert found is not None
            expected = [getattr(decimal_math, name)(a, b) for a, b in zip(left, right, strict=True)]
            assert [str(v) for v in to_values(found)] == [str(v) for v in expected], name


def _decimal(generator: np.random.Generator, digits: int, scale: int):  # type: ignore[no-untyped-def]
    return decimal_math.scaled(int(generator.integers(-(10**digits), 10**digits)), scale)


PARSED = {
    "int4": ["1", "-2147483648", " 7", "+5", "x", "2147483648", ""],
    "int8": ["9223372036854775807", "-1", "99999999999999999999"],
    "numeric": ["1.5", "-0.25", "100", "1e3"],
    "float8": ["1.5", "-1e10", "nan", "x"],
    "date": ["2020-02-29", "2021-02-29", "Jan 8 1999", "0001-01-01"],
    "timestamp": ["2020-02-29 12:34:56.789", "2020-02-29T01:02:03", "2020-02-29", "bad"],
    "bool": ["t", "false", "1", "maybe"],
    "text": ["a", "", "é"],
}


@pytest.mark.parametrize("name", list(PARSED))
def test_parsed_columns_equal_parsed_values(name: str) -> None:
    kind = types.by_name(name)
    assert kind is not None
    values = [text.encode() for text in PARSED[name]]
    starts, lengths, data = _packed(values)
    found, problems = parse.parse_column(
        SqlType(kind.oid), starts, lengths, data, None, TypeContext()
    )
    shown = to_values(found)
    wrong = dict(problems)
    for row, text in enumerate(PARSED[name]):
        try:
            expected = kind.parse(text, -1, TypeContext())
        except errors.SqlError as problem:
            assert wrong[row].message == problem.message
        else:
            assert row not in wrong
            assert kind.format(shown[row], TypeContext()) == kind.format(expected, TypeContext())
