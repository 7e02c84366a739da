"""The comparison of TPC-H answers notices what is wrong."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from tpch import compare, data
from tpch.compare import Answer

NAMES = ("k", "revenue", "x", "y")


def answer(*rows: tuple[str | None, ...], oids: tuple[int, ...] = (20, 1700, 1042, 25)) -> Answer:
    return Answer(NAMES, oids, list(rows))


@pytest.mark.parametrize(
    ("text", "value", "is_padded", "same"),
    [
        ("1.50", Decimal("1.5"), False, True),
        ("1.51", Decimal("1.5"), False, False),
        ("2", 2, False, True),
        ("2.0000000001", 2, False, False),
        ("0.33333333333", 1 / 3, False, True),
        ("0.3333333", 1 / 3, False, False),
        ("a  ", "a", True, True),
        ("a  ", "a", False, False),
        ("1995-01-01", date(1995, 1, 1), False, True),
        (None, None, False, True),
        (None, 0, False, False),
        ("0", None, False, False),
    ],
)
def test_values(text: str | None, value: object, is_padded: bool, same: bool) -> None:
    assert compare.is_same(text, value, is_padded=is_padded) is same


def test_order_and_counts_matter() -> None:
    rows = [("1", "2.0", "a ", "x"), ("2", "1.0", "b", "y")]
    right = [(1, Decimal(2), "a", "x"), (2, Decimal(1), "b", "y")]
    assert compare.with_values(answer(*rows), right, 1) == ""
    assert compare.with_values(answer(*reversed(rows)), right, 1) != ""
    assert compare.with_values(answer(rows[0]), right, 1) == "1 rows, not 2"


def test_ties_may_come_in_any_order() -> None:
    rows = [("1", "5", "a", "x"), ("2", "5", "b", "y"), ("3", "4", "c", "z")]
    other = [rows[1], rows[0], rows[2]]
    assert compare.with_text(answer(*other), answer(*rows), 5) == ""
    assert compare.with_text(answer(*other), answer(*rows), 1) != ""
    moved = [rows[2], rows[0], rows[1]]
    assert compare.with_text(answer(*moved), answer(*rows), 5) != ""


def test_answer_files_keep_texts() -> None:
    original = answer(("1", None, "\\N", "a\tb\\t\n"))
    assert compare.from_text(compare.to_text(original)).rows == original.rows


@pytest.mark.parametrize("scale", [0.01, 0.1])
def test_committed_answers_are_complete(scale: float) -> None:
    for number in data.QUERIES:
        found = compare.from_text(data.answer_file(scale, number).read_text("utf-8"))
        assert found.rows
        assert all(len(row) == len(found.names) for row in found.rows)


def test_fraction_of_query_11_follows_the_scale() -> None:
    assert "* 0.0001\n" in data.query(11, 1)
    assert "* 0.001\n" in data.query(11, 0.1)
    assert "* 0.00001\n" in data.query(11, 10)
