"""COPY's readers do not depend on how the stream is cut; its encoders frame as PostgreSQL does."""

from __future__ import annotations

import csv
import io
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_fakes import batch_of, int_column, split_messages, text_column, type_of

from gpudb import errors
from gpudb.result import ResultField
from gpudb.wire.backend import Codec
from gpudb.wire.copy import CopyFormat, encoder, reader

TEXT = CopyFormat()
CSV = CopyFormat(format="csv", delimiter=",", null="")
BINARY = CopyFormat(format="binary")
FIELDS = (ResultField("a", 23), ResultField("b", 25))
COLUMNS = (int_column([1, 2]), text_column([b"x\ty\\z\n", None]))


def read(data: bytes, size: int, form: CopyFormat) -> list[tuple[bytes | None, ...]]:
    source = reader(form, ["a", "b"], "t")
    blocks = [
        block for i in range(0, len(data), size) for block in source.feed(data[i : i + size])
    ]
    blocks += source.finish()
    rows: list[tuple[bytes | None, ...]] = []
    for block in blocks:
        raw = block.data.tobytes()
        for row in range(block.rows):
            rows.append(
                tuple(
                    raw[column.starts[row] : column.starts[row] + column.lengths[row]]
                    if column.valid is None or column.valid[row]
                    else None
                    for column in block.columns
                )
            )
    return rows


def encoded(form: CopyFormat) -> list[tuple[str, bytes]]:
    made = encoder(FIELDS, form, Codec(type_of))
    return split_messages(made.messages(batch_of(*COLUMNS)) + made.end())


VALUES = st.lists(st.tuples(*[st.text('ab,"\n', min_size=1, max_size=6)] * 2), max_size=8)


@settings(max_examples=100, deadline=None)
@given(VALUES, st.integers(1, 30))
def test_csv_in_any_pieces(rows: list[tuple[str, str]], size: int) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    expected = [(a.encode(), b.encode()) for a, b in rows]
    assert read(text.getvalue().encode(), size, CSV) == expected


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(*[st.none() | st.text("ab\\\t\n\r\b", max_size=6)] * 2), max_size=8),
    st.integers(1, 30),
)
def test_text_round_trip_in_any_pieces(
    rows: list[tuple[str | None, str | None]], size: int
) -> None:
    values = [[None if v is None else v.encode() for v in row] for row in rows]
    columns = [text_column([row[n] for row in values]) for n in range(2)]
    fields = (ResultField("a", 25), ResultField("b", 25))
    data = encoder(fields, TEXT, Codec(type_of)).plain(batch_of(*columns)) if rows else b""
    assert read(data, size, TEXT) == [tuple(row) for row in values]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_binary_round_trip(size: int) -> None:
    made = encoder(FIELDS, BINARY, Codec(type_of))
    data = made.plain(batch_of(*COLUMNS)) + made.plain_end()
    assert read(data, size, BINARY) == [(b"\0\0\0\1", b"x\ty\\z\n"), (b"\0\0\0\2", None)]


def test_text_sends_a_message_a_row() -> None:
    assert encoded(TEXT) == [("d", b"1\tx\\ty\\\\z\\n\n"), ("d", b"2\t\\N\n")]


def test_csv_header_is_its_own_message() -> None:
    form = CopyFormat(format="csv", delimiter=",", null="", header=True)
    assert encoded(form) == [("d", b"a,b\n"), ("d", b'1,"x\ty\\z\n"\n'), ("d", b"2,\n")]


def test_binary_header_goes_with_the_first_row() -> None:
    header = b"PGCOPY\n\xff\r\n\0" + bytes(8)
    assert encoded(BINARY) == [
        ("d", header + b"\0\2\0\0\0\4\0\0\0\1\0\0\0\6x\ty\\z\n"),
        ("d", b"\0\2\0\0\0\4\0\0\0\2\xff\xff\xff\xff"),
        ("d", b"\xff\xff"),
    ]
    empty = encoder(FIELDS, BINARY, Codec(type_of))
    assert split_messages(empty.end()) == [("d", header + b"\xff\xff")]


@pytest.mark.parametrize(
    ("data", "message", "context"),
    [
        (b"1\tx\ty\n", "extra data after last expected column", 'COPY t, line 1: "1\tx\ty"'),
        (b"1\tx\n1\n", 'missing data for column "b"', 'COPY t, line 2: "1"'),
    ],
)
def test_wrong_numbers_of_fields(data: bytes, message: str, context: str) -> None:
    with pytest.raises(errors.BadCopyFileFormat) as caught:
        read(data, 100, TEXT)
    assert (caught.value.message, caught.value.context) == (message, context)


def test_a_long_quoted_field_is_read_in_linear_time() -> None:
    data = b'1,"' + b"line\n" * 40_000 + b'"\n'
    start = time.monotonic()
    assert len(read(data, 1 << 16, CSV)) == 1
    assert time.monotonic() - start < 2
