"""Whole-column encoding equals value-by-value encoding, which equals PostgreSQL's forms."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_fakes import (
    batch_of,
    int_column,
    row_values,
    split_messages,
    text_column,
    type_of,
)

from gpudb import errors, layout, sqltype
from gpudb.catalog.types.base import ArrayValue, TypeContext
from gpudb.result import HostBatch, HostColumn
from gpudb.wire import cells, rows
from gpudb.wire.backend import Codec
from gpudb.wire.messages import FieldDescription
from gpudb.wire.rows import RowEncoder

ROME = ZoneInfo("Europe/Rome")
KATHMANDU = ZoneInfo("Asia/Kathmandu")


def encoded(
    columns: Sequence[HostColumn], codes: Sequence[int], codec: Codec, *, small_rows: int = 0
) -> list[list[bytes | None]]:
    """The values of every DataRow, whole-column encoded unless ``small_rows`` says otherwise."""
    fields = [
        FieldDescription("c", column.type_oid, format=code)
        for column, code in zip(columns, codes, strict=True)
    ]
    old, rows.SMALL_ROWS = rows.SMALL_ROWS, small_rows
    try:
        data = b"".join(RowEncoder(fields, codec).encode(batch_of(*columns)))
    finally:
        rows.SMALL_ROWS = old
    found = split_messages(data)
    assert {kind for kind, _ in found} <= {"D"}
    return [row_values(body) for _, body in found]


def check(column: HostColumn, *, codec: Codec | None = None, codes: Sequence[int] = (0, 1)) -> None:
    """Both ways give the same, next to a neighbour that would show a shifted byte."""
    codec = codec or Codec(type_of)
    neighbour = int_column([7] * column.rows)
    for code in codes:
        whole = encoded((column, neighbour), (code, 0), codec)
        single = encoded((column, neighbour), (code, 0), codec, small_rows=1 << 30)
        assert whole == single
        assert all(row[1] == b"7" for row in whole)


def texts(column: HostColumn, **context: Any) -> list[str | None]:
    codec = Codec(type_of, TypeContext(**context))
    found = encoded((column,), (0,), codec)
    return [None if value is None else value.decode() for (value,) in found]


def column_of(
    oid: int, lay: layout.Layout, *data: np.ndarray[Any, Any], **more: Any
) -> HostColumn:
    return HostColumn(oid, -1, lay, len(data[0]), data, **more)


# --- properties ---------------------------------------------------------------------------------

FLAGS = st.lists(st.booleans(), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([(21, 2), (23, 4), (20, 8), (26, 4)]), FLAGS)
def test_integers(data: st.DataObject, kind: tuple[int, int], valid: list[bool]) -> None:
    oid, width = kind
    limit = 1 << (8 * width - 1)
    low = 0 if oid == sqltype.OID else -limit
    values = data.draw(
        st.lists(st.integers(low, limit - 1), min_size=len(valid), max_size=len(valid))
    )
    column = column_of(
        oid, layout.Layout(layout.Kind.INT, width), np.array(values, f"i{width}"),
        valid=np.array(valid),
    )  # fmt: skip
    check(column)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 255), min_size=1, max_size=40), st.integers(-1000, 10**12))
def test_narrow_integers_with_base_and_step(values: list[int], base: int) -> None:
    check(column_of(20, layout.UINT8, np.array(values, np.uint8), base=base, step=5))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(width=64), min_size=1, max_size=40), st.booleans())
def test_doubles(values: list[float], is_rounded: bool) -> None:
    data = np.array(values)
    if is_rounded:
        data = np.round(data, 3)
    check(column_of(sqltype.FLOAT8, layout.FLOAT64, data))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(width=32), min_size=1, max_size=40), st.booleans())
def test_singles(values: list[float], is_rounded: bool) -> None:
    data = np.array(values, np.float32)
    if is_rounded:
        data = np.round(data, 2)
    check(column_of(sqltype.FLOAT4, layout.FLOAT32, data))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=40),
    st.sampled_from([1e-9, 1e-4, 0.01, 0.1, 0.25, 1.0, 10.0, 1e6, 1e11]),
    st.booleans(),
)
def test_short_floats(values: list[int], unit: float, is_single: bool) -> None:
    data = np.array(values) * unit
    if is_single:
        check(column_of(sqltype.FLOAT4, layout.FLOAT32, data.astype(np.float32)))
    else:
        check(column_of(sqltype.FLOAT8, layout.FLOAT64, data))


@settings(max_examples=80, deadline=None)
@given(
    st.data(),
    st.lists(st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-999, 999), min_size=1,
             max_size=30),
    st.integers(0, 18), st.booleans(), st.booleans(),
)  # fmt: skip
def test_decimals(
    data: st.DataObject, values: list[int], scale: int, has_row_scale: bool, is_wide: bool
) -> None:
    buffers = [np.array(values, np.int64)]
    if is_wide:
        buffers.append(buffers[0] >> 63)
    if has_row_scale:
        shown = data.draw(
            st.lists(st.integers(0, scale), min_size=len(values), max_size=len(values))
        )
        units = [10 ** (scale - each) for each in shown]
        cut = [v // u * u for v, u in zip(values, units, strict=True)]
        cut = [v if v >= -(2**63) else 0 for v in cut]
        buffers[0] = np.array(cut, np.int64)
        if is_wide:
            buffers[1] = buffers[0] >> 63
        buffers.append(np.array(shown, np.int16))
    kind = layout.Kind.DECIMAL128 if is_wide else layout.Kind.DECIMAL
    check(column_of(sqltype.NUMERIC, layout.Layout(kind, 8, has_row_scale), *buffers, scale=scale))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-(10**37), 10**37), min_size=1, max_size=30), st.integers(0, 25))
def test_wide_decimals(values: list[int], scale: int) -> None:
    low = np.array([v & (1 << 64) - 1 for v in values], np.uint64).view(np.int64)
    high = np.array([v >> 64 for v in values], np.int64)
    column = column_of(sqltype.NUMERIC, layout.DECIMAL128, low, high, scale=scale)
    check(column)
    expected = [str(Decimal(v).scaleb(-scale)) for v in values]
    if all("E" not in each for each in expected) and max(map(abs, values)) < 10**27:
        assert texts(column) == [each.replace("-0", "-0") for each in expected]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.none() | st.text(max_size=12) | st.text(min_size=50, max_size=90), min_size=1,
             max_size=40),
    st.sampled_from([sqltype.TEXT, sqltype.VARCHAR, sqltype.JSONB]),
)  # fmt: skip
def test_strings(values: list[str | None], oid: int) -> None:
    check(text_column([None if v is None else v.encode() for v in values], oid))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=80), min_size=1, max_size=40))
def test_bytea(values: list[bytes | None]) -> None:
    column = text_column(values, sqltype.BYTEA)
    check(column)
    check(column, codec=Codec(type_of, TypeContext(bytea_output="escape")))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), FLAGS)
def test_dictionary(codes: list[int], flags: list[bool]) -> None:
    entries = layout.Dictionary.of([b"AIR", b"", b"x" * 100, "é".encode()], is_sorted=False)
    valid = np.resize(np.array(flags), len(codes))
    column = column_of(
        sqltype.TEXT, layout.DICTIONARY8, np.array(codes, np.uint8), dictionary=entries,
        valid=valid,
    )  # fmt: skip
    check(column)


DAYS = st.integers(-730_119, 2_921_939)


@settings(max_examples=60, deadline=None)
@given(st.lists(DAYS | st.sampled_from([2**31 - 1, -(2**31), 5_000_000]), min_size=1, max_size=40))
def test_dates(days: list[int]) -> None:
    check(column_of(sqltype.DATE, layout.INT32, np.array(days, np.int32)))


@settings(max_examples=60, deadline=None)
@given(st.lists(DAYS, min_size=1, max_size=40))
def test_dates_against_the_calendar(days: list[int]) -> None:
    epoch = datetime.date(2000, 1, 1)
    expected = [(epoch + datetime.timedelta(day)).isoformat() for day in days]
    assert texts(column_of(sqltype.DATE, layout.INT32, np.array(days, np.int32))) == expected


MICROSECONDS = st.integers(-(10**16), 10**17) | st.integers(0, 10**9).map(lambda n: n * 10**6)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(MICROSECONDS, min_size=1, max_size=40),
    st.sampled_from([sqltype.TIMESTAMP, sqltype.TIMESTAMPTZ]),
    st.sampled_from([ZoneInfo("UTC"), ROME, KATHMANDU, ZoneInfo("America/New_York")]),
)
def test_timestamps(values: list[int], oid: int, zone: datetime.tzinfo) -> None:
    column = column_of(oid, layout.INT64, np.array(values))
    check(column, codec=Codec(type_of, TypeContext(time_zone=zone)))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 86_400_000_000), min_size=1, max_size=40))
def test_times(values: list[int]) -> None:
    check(column_of(sqltype.TIME, layout.INT64, np.array(values)))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 2), min_size=1, max_size=30))
def test_uuids(values: list[tuple[int, int]]) -> None:
    halves = np.array(values, np.int64)
    check(column_of(sqltype.UUID, layout.UUID, halves[:, 0].copy(), halves[:, 1].copy()))


# --- examples from PostgreSQL -------------------------------------------------------------------


def test_float_texts() -> None:
    values = [1e14, 1e15, 123456789012345.0, 1234567890123456.0, 123456789012345678.0, 0.0001,
              0.00001, 1.5e-5, 1e20, -0.0, float("nan"), float("-inf"), 1e100, 5e-324, 0.1, 100.0,
              2.5, -1234.56]  # fmt: skip
    assert texts(column_of(sqltype.FLOAT8, layout.FLOAT64, np.array(values))) == [
        "100000000000000", "1e+15", "123456789012345", "1.234567890123456e+15",
        "1.2345678901234568e+17", "0.0001", "1e-05", "1.5e-05", "1e+20", "-0", "NaN", "-Infinity",
        "1e+100", "5e-324", "0.1", "100", "2.5", "-1234.56",
    ]  # fmt: skip
    singles = [1e5, 1e6, 123456, 1234567, 0.0001, 1e20, 0.1, 3.4028235e38, 1e-45, 16777216]
    assert texts(column_of(sqltype.FLOAT4, layout.FLOAT32, np.array(singles, np.float32))) == [
        "100000", "1e+06", "123456", "1.234567e+06", "0.0001", "1e+20", "0.1", "3.4028235e+38",
        "1e-45", "1.6777216e+07",
    ]  # fmt: skip


def test_timestamptz_texts() -> None:
    def at(*parts: int) -> int:
        moment = datetime.datetime(*parts, tzinfo=datetime.UTC)  # type: ignore[misc]
        epoch = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
        return (moment - epoch) // datetime.timedelta(microseconds=1)

    column = column_of(
        sqltype.TIMESTAMPTZ, layout.INT64,
        np.array([at(2024, 7, 1, 12, 0, 0, 123456), at(1850, 1, 1),
                  at(2024, 7, 1, 12, 0, 0, 100000), at(2024, 3, 31, 0, 59, 59),
                  at(2024, 3, 31, 1)]),
    )  # fmt: skip
    assert texts(column, time_zone=ROME) == [
        "2024-07-01 14:00:00.123456+02", "1850-01-01 00:49:56+00:49:56",
        "2024-07-01 14:00:00.1+02", "2024-03-31 01:59:59+01", "2024-03-31 03:00:00+02",
    ]  # fmt: skip
    assert texts(column, time_zone=KATHMANDU)[0] == "2024-07-01 17:45:00.123456+05:45"


@pytest.mark.parametrize(
    ("unscaled", "scale", "expected"),
    [
        (12345678, 3, "0003000100000003000109291a7c"),
        (-12, 5, "0002ffff40000005000107d0"),
        (0, 0, "0000000000000000"),
        (100000, 0, "0001000100000000000a"),
        (110, 2, "0002000000000002000103e8"),
    ],
)
def test_numeric_binary(unscaled: int, scale: int, expected: str) -> None:
    column = column_of(
        sqltype.NUMERIC, layout.DECIMAL64, np.array([unscaled], np.int64), scale=scale
    )
    if (unscaled, scale) == (-12, 5):
        column = replace(column, data=(np.array([-12]),), scale=5)
    assert encoded((column,), (1,), Codec(type_of)) == [[bytes.fromhex(expected)]]


def test_padded_characters() -> None:
    column = replace(text_column([b"ab", "é".encode(), None] * 20, sqltype.BPCHAR), typmod=9)
    assert texts(column)[:3] == ["ab   ", "é    ", None]
    check(column)


def test_host_objects() -> None:
    objects = np.empty(30, object)
    objects[:] = [ArrayValue.of(23, (1, None, 3))] * 30
    column = HostColumn(sqltype.INT4_ARRAY, -1, layout.HOST, 30, (), objects=objects)
    assert texts(column) == ["{1,NULL,3}"] * 30
    check(column)


def test_other_client_encodings() -> None:
    codec = Codec(type_of, encoding="latin-1")
    column = text_column(["é".encode()] * 30)
    assert encoded((column,), (0,), codec)[0] == [b"\xe9"]
    assert encoded((column,), (1,), codec)[0] == [b"\xe9"]
    with pytest.raises(errors.UntranslatableCharacter, match="0xe2 0x82 0xac in encoding"):
        encoded((text_column(["€".encode()] * 30),), (0,), codec)


# --- framing ------------------------------------------------------------------------------------


def test_wide_and_narrow_columns_interleave() -> None:
    wide: list[bytes | None] = [b"w" * (n * 200) if n % 3 else None for n in range(40)]
    columns = (
        int_column(list(range(40))), text_column(wide), int_column([None, 5] * 20),
        text_column(list(reversed(wide))),
    )  # fmt: skip
    found = encoded(columns, (0, 0, 1, 0), Codec(type_of))
    assert found == [
        [b"%d" % n, wide[n], struct.pack("!i", 5) if n % 2 else None, wide[39 - n]]
        for n in range(40)
    ]


def test_no_columns() -> None:
    data = b"".join(RowEncoder((), Codec(type_of)).encode(HostBatch((), 50)))
    assert data == b"D\0\0\0\6\0\0" * 50


def test_all_null_column() -> None:
    check(text_column([None] * 30))
    check(int_column([None] * 30))


def test_pieces_are_bounded() -> None:
    column = text_column([b"x" * 1000] * 5000)
    encoder = RowEncoder([FieldDescription("c", 25)], Codec(type_of))
    sizes = [len(piece) for piece in encoder.encode(batch_of(column))]
    assert sum(sizes) == 5000 * 1011
    assert max(sizes) < 1.1 * rows.PIECE_BYTES


def test_string_positions_skip_nulls_in_any_buffer_state() -> None:
    column = HostColumn(
        25, -1, layout.TEXT, 30,
        (np.full(30, 10**12), np.full(30, 10**6, np.int32), np.zeros(0, np.uint8)),
        np.zeros(30, np.bool_),
    )  # fmt: skip
    assert cells.string_positions(column)[1].sum() == 0
    assert texts(column) == [None] * 30
