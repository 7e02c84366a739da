"""Segments: what was written is what is read, in every layout; damage is noticed."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import torch

from gpudb import errors, layout, sqltype
from gpudb.catalog.objects import ColumnDef, Relation, SegmentRef
from gpudb.column import Column, from_values, to_host, to_values
from gpudb.sqltype import SqlType
from gpudb.storage.io_scheduler import IoScheduler
from gpudb.storage.segment import ZONE_ROWS, SegmentWriter, load_columns
from gpudb.storage.zones import ZoneFilter, surviving_zones

CASES: dict[str, tuple[int, layout.Layout, list[Any]]] = {
    "uint8 frame": (sqltype.INT4, layout.INT32, [0, 255, None, 7]),
    "int16 frame": (sqltype.INT8, layout.INT64, [10**12, 10**12 + 60000, None]),
    "int32 frame": (sqltype.INT8, layout.INT64, [-(10**15), -(10**15) + 2**32 - 1]),
    "int64 limits": (sqltype.INT8, layout.INT64, [-(2**63), 2**63 - 1, 0, None]),
    "step": (sqltype.INT8, layout.INT64, [1000 * i for i in range(300)]),
    "constant": (sqltype.INT4, layout.INT32, [42] * 5),
    "all null": (sqltype.INT4, layout.INT32, [None] * 5),
    "all null text": (sqltype.TEXT, layout.TEXT, [None] * 3),
    "bool": (sqltype.BOOL, layout.BOOL, [True, False, None]),
    "float": (sqltype.FLOAT8, layout.FLOAT64, [1.5, -0.0, math.inf, -math.inf, None]),
    "decimal": (sqltype.NUMERIC, layout.DECIMAL64, [Decimal("1.10"), Decimal("-2.25"), None]),
    "decimal scales": (sqltype.NUMERIC, layout.DECIMAL64, [Decimal("1.1"), Decimal(2), None]),
    "decimal 128": (sqltype.NUMERIC, layout.DECIMAL64, [Decimal("1" * 30), Decimal(-1), None]),
    "dictionary": (sqltype.TEXT, layout.TEXT, ["b", "a", None, "b"] * 40),
    "text": (sqltype.TEXT, layout.TEXT, [f"row {i} é" for i in range(50)] + [None, ""]),
    "long text": (sqltype.TEXT, layout.TEXT, ["x" * 1000, "y", None]),
    "bytea": (sqltype.BYTEA, layout.TEXT, [b"\x00\xff", b"", None]),
    "interval": (sqltype.INTERVAL, layout.INTERVAL, [(1, -2, 3), None]),
    "uuid": (sqltype.UUID, layout.UUID, [bytes(range(16)), b"\xff" * 16, None]),
}


def write(tmp_path: Path, column: Column, rows: int) -> tuple[SegmentRef, ColumnDef]:
    definition = ColumnDef(1, "c", column.type.oid)
    writer = SegmentWriter(tmp_path, 1, itertools.count(1).__next__)
    segment = writer.write(77, rows, [(definition, to_host(column, rows))])
    writer.finish()
    return segment, definition


def read(tmp_path: Path, segment: SegmentRef, type: SqlType) -> Column:
    io = IoScheduler(2)
    try:
        return load_columns(tmp_path, io, segment, [(segment.columns[0], type)])[0]
    finally:
        io.close()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("is_large", [False, True])
def test_round_trip(tmp_path: Path, name: str, is_large: bool) -> None:
    oid, kind, values = CASES[name]
    if is_large:
        values = values * (2000 // len(values) + 1)
    column = from_values(SqlType(oid), kind, values)
    segment, _ = write(tmp_path, column, len(values))
    assert (segment.path is not None) == (is_large or segment.image is None)
    loaded = read(tmp_path, segment, SqlType(oid))
    assert to_values(loaded, len(values)) == values
    assert segment.columns[0].nulls == values.count(None)


def test_narrow_without_decoding() -> None:
    column = from_values(SqlType(sqltype.INT8), layout.INT64, [5, 200, 17])
    from gpudb.storage import encoding

    encoded = encoding.encode(to_host(column, 3))
    assert (encoded.parameters.width, encoded.parameters.base, encoded.parameters.step) == (1, 0, 1)
    assert (encoded.low, encoded.high) == (5, 200)


def test_flipped_byte_is_noticed(tmp_path: Path) -> None:
    values = list(range(3000))
    segment, _ = write(tmp_path, from_values(SqlType(sqltype.INT4), layout.INT32, values), 3000)
    assert segment.path is not None
    path = tmp_path / segment.path
    content = bytearray(path.read_bytes())
    content[segment.columns[0].buffers[0].offset + 100] ^= 1
    path.write_bytes(content)
    with pytest.raises(errors.DataCorrupted, match=path.name):
        read(tmp_path, segment, SqlType(sqltype.INT4))
    path.unlink()
    with pytest.raises(errors.DataCorrupted, match="missing"):
        read(tmp_path, segment, SqlType(sqltype.INT4))


def test_relation_helpers() -> None:
    relation = Relation(1, 2, "t", "r", (ColumnDef(1, "a", sqltype.INT4),))
    assert relation.column("a") is relation.column_by_attnum(1)


def zones(tmp_path: Path, type: int, column: Column, rows: int, *filters: ZoneFilter) -> list[bool]:
    segment, _ = write(tmp_path, column, rows)
    flags: list[bool] = surviving_zones(segment, filters, ZONE_ROWS).tolist()
    return flags


def test_zones_of_integers(tmp_path: Path) -> None:
    rows = 3 * ZONE_ROWS
    type = SqlType(sqltype.INT8)
    column = Column(type, layout.INT64, (torch.arange(rows),))

    def check(operator: str, value: Any) -> list[bool]:
        return zones(tmp_path, sqltype.INT8, column, rows, ZoneFilter(1, operator, value))

    assert check("<", ZONE_ROWS) == [True, False, False]
    assert check("<=", ZONE_ROWS) == [True, True, False]
    assert check("=", ZONE_ROWS) == [False, True, False]
    assert check(">", 2 * ZONE_ROWS - 1) == [False, False, True]
    assert check(">=", 2 * ZONE_ROWS - 1) == [False, True, True]
    assert check("in", [1, rows - 1]) == [True, False, True]
    assert check("=", -1) == [False, False, False]
    assert check("=", 2**70) == [False, False, False]
    assert check("null", None) == [False, False, False]
    assert check("not null", None) == [True, True, True]
    assert check("=", None) == [False, False, False]


def test_zones_of_decimals(tmp_path: Path) -> None:
    rows = 2 * ZONE_ROWS
    column = Column(SqlType(sqltype.NUMERIC), layout.DECIMAL64, (torch.arange(rows),), scale=2)

    def check(operator: str, text: str) -> list[bool]:
        return zones(
            tmp_path, sqltype.NUMERIC, column, rows, ZoneFilter(1, operator, Decimal(text))
        )

    assert check("<", "655.36") == [True, False]
    assert check("<", "655.365") == [True, True]
    assert check("=", "655.355") == [False, False]
    assert check(">", "655.355") == [False, True]
    assert check(">=", "655.35") == [True, True]
    assert check("<", "NaN") == [True, True]
    assert check("=", "NaN") == [False, False]
    assert check(">", "Infinity") == [False, False]


def test_zones_with_nan_and_nulls(tmp_path: Path) -> None:
    rows = 2 * ZONE_ROWS
    values = torch.zeros(rows, dtype=torch.float64)
    values[ZONE_ROWS:] = -0.0
    values[5] = math.nan
    valid = torch.ones(rows, dtype=torch.bool)
    valid[ZONE_ROWS:] = False
    column = Column(SqlType(sqltype.FLOAT8), layout.FLOAT64, (values,), valid)

    def check(operator: str, value: Any) -> list[bool]:
        return zones(tmp_path, sqltype.FLOAT8, column, rows, ZoneFilter(1, operator, value))

    assert check("=", 0.0)[0]
    assert check("=", math.nan)[0]
    assert check(">", 1.0)[0]
    assert check("<", 0.0) == [False, False]
    assert check("null", None) == [False, True]
