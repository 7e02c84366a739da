"""RANGE frames with an offset, by type, against PostgreSQL's answers."""

from __future__ import annotations

import pytest
from plans import INT4, INT8, Literal, MemoryStorage, literal, new_field, ref, run

from gpudb import errors
from gpudb.catalog import types
from gpudb.catalog.types.base import TypeContext
from gpudb.expr import (
    BoundKind,
    Frame,
    FrameBound,
    FrameUnit,
    Function,
    SortKey,
    Volatility,
    WindowCall,
)
from gpudb.optimizer import physical
from gpudb.optimizer.logical import WindowItem
from gpudb.sqltype import SqlType

OIDS = {
    types.get(oid).name: oid
    for oid in (20, 21, 23, 700, 701, 1082, 1083, 1114, 1184, 1186, 1266, 1700)
}
# Of CASES: keys, offset type, offset, frame, whether descending with NULLs last, expected. Bit i of
# a row's expected number says that row i is in its frame.
KEYS = {
    "int4": [
        "-2147483648", "1", "2", "2", "5", "9", "2147483647", None, None,
    ],
    "int8": [
        "-9223372036854775808", "-9223372036854775807", "0", "1", "9223372036854775807", None,
    ],
    "int2": [
        "-32768", "1", "3", "32767", None,
    ],
    "float8": [
        "-Infinity", "-1", "0", "-0", "0.5", "2", "Infinity", "NaN", "NaN", None,
    ],
    "float4": [
        "-1", "0.1", "0.2", "0.3", "NaN", None,
    ],
    "numeric": [
        "1.0", "1.00", "1.5", "2.25", "-3", None,
    ],
    "numeric with infinities": [
        "-Infinity", "1.0", "2", "Infinity", "NaN", None,
    ],
    "date": [
        "-infinity", "2020-01-30", "2020-01-31", "2020-02-29", "2020-03-01", "infinity", None,
    ],
    "timestamp": [
        "2020-01-30 10:00", "2020-01-31 09:00", "2020-02-29 10:00", "2020-03-01 00:00",
        "infinity", None,
    ],
    "timestamptz": [
        "2020-01-30 10:00+00", "2020-01-31 09:00+00", "2020-02-29 10:00+00",
        "2020-03-01 00:00+00", None,
    ],
    "time": [
        "00:30", "01:00", "12:00", "23:30", "23:59:59", None,
    ],
    "timetz": [
        "00:30+00", "01:00+01", "12:00+00", "23:30-02", None,
    ],
    "interval": [
        "1 day", "24 hours", "30 days", "1 month", "32 days", None,
    ],
}
AROUND = "x preceding and x following"
AFTER = "x following and unbounded following"
CASES = [
    ("int4", "int4", "2", AROUND, False, [1, 14, 14, 14, 16, 32, 64, 384, 384]),
    ("int4", "int4", "2", AFTER, True, [384, 385, 385, 385, 399, 415, 447, 384, 384]),
    ("int4", "int4", "2147483647", AROUND, False, [1, 126, 126, 126, 126, 126, 126, 384, 384]),
    ("int4", "int4", "2147483647", AFTER, True, [384, 385, 385, 385, 385, 385, 385, 384, 384]),
    ("int8", "int8", "1", AROUND, False, [3, 3, 12, 12, 16, 32]),
    ("int8", "int8", "1", AFTER, True, [32, 33, 35, 39, 47, 32]),
    ("int8", "int8", "9223372036854775807", AROUND, False, [3, 7, 30, 28, 28, 32]),
    ("int8", "int8", "9223372036854775807", AFTER, True, [32, 32, 35, 35, 39, 32]),
    ("int2", "int8", "2", AROUND, False, [1, 6, 6, 8, 16]),
    ("int2", "int8", "2", AFTER, True, [16, 17, 19, 23, 16]),
    ("int2", "int8", "99999999999", AROUND, False, [15, 15, 15, 15, 16]),
    ("int2", "int8", "99999999999", AFTER, True, [16, 16, 16, 16, 16]),
    ("float8", "float8", "1", AROUND, False, [1, 14, 30, 30, 28, 32, 64, 384, 384, 512]),
    ("float8", "float8", "1", AFTER, True, [513, 513, 515, 515, 515, 543, 639, 1023, 1023, 512]),
    ("float8", "float8", "Infinity", AROUND, False,
     [127, 127, 127, 127, 127, 127, 127, 384, 384, 512]),
    ("float8", "float8", "Infinity", AFTER, True,
     [513, 513, 513, 513, 513, 513, 639, 1023, 1023, 512]),
    ("float8", "float8", "0", AROUND, False, [1, 2, 12, 12, 16, 32, 64, 384, 384, 512]),
    ("float8", "float8", "0", AFTER, True, [513, 515, 527, 527, 543, 575, 639, 1023, 1023, 512]),
    ("float4", "float8", "0.1", AROUND, False, [1, 2, 4, 8, 16, 32]),
    ("float4", "float8", "0.1", AFTER, True, [32, 33, 35, 39, 63, 32]),
    ("numeric", "numeric", "0.5", AROUND, False, [7, 7, 7, 8, 16, 32]),
    ("numeric", "numeric", "0.5", AFTER, True, [48, 48, 51, 55, 32, 32]),
    ("numeric", "numeric", "1.250", AROUND, False, [15, 15, 15, 15, 16, 32]),
    ("numeric", "numeric", "1.250", AFTER, True, [48, 48, 48, 51, 32, 32]),
    ("numeric with infinities", "numeric", "1", AROUND, False, [1, 6, 6, 8, 16, 32]),
    ("numeric with infinities", "numeric", "1", AFTER, True, [33, 33, 35, 47, 63, 32]),
    ("numeric with infinities", "numeric", "Infinity", AROUND, False, [15, 15, 15, 15, 16, 32]),
    ("numeric with infinities", "numeric", "Infinity", AFTER, True, [33, 33, 33, 47, 63, 32]),
    ("date", "interval", "1 month", AROUND, False, [1, 14, 14, 30, 24, 32, 64]),
    ("date", "interval", "1 month", AFTER, True, [65, 65, 65, 65, 71, 127, 64]),
    ("date", "interval", "1 day", AROUND, False, [1, 6, 6, 24, 24, 32, 64]),
    ("date", "interval", "1 day", AFTER, True, [65, 65, 67, 71, 79, 127, 64]),
    ("date", "interval", "1 day 12 hours", AROUND, False, [1, 6, 6, 24, 24, 32, 64]),
    ("date", "interval", "1 day 12 hours", AFTER, True, [65, 65, 65, 71, 71, 127, 64]),
    ("timestamp", "interval", "1 month", AROUND, False, [7, 7, 15, 12, 16, 32]),
    ("timestamp", "interval", "1 month", AFTER, True, [32, 32, 32, 35, 63, 32]),
    ("timestamp", "interval", "25 hours", AROUND, False, [3, 3, 12, 12, 16, 32]),
    ("timestamp", "interval", "25 hours", AFTER, True, [32, 32, 35, 35, 63, 32]),
    ("timestamptz", "interval", "1 month", AROUND, False, [7, 7, 15, 12, 16]),
    ("timestamptz", "interval", "1 month", AFTER, True, [16, 16, 16, 19, 16]),
    ("timestamptz", "interval", "25 hours", AROUND, False, [3, 3, 12, 12, 16]),
    ("timestamptz", "interval", "25 hours", AFTER, True, [16, 16, 19, 19, 16]),
    ("time", "interval", "1 hour", AROUND, False, [3, 3, 4, 24, 24, 32]),
    ("time", "interval", "1 hour", AFTER, True, [32, 32, 35, 39, 39, 32]),
    ("time", "interval", "1 day 30 minutes", AROUND, False, [3, 3, 4, 24, 24, 32]),
    ("time", "interval", "1 day 30 minutes", AFTER, True, [32, 33, 35, 39, 39, 32]),
    ("timetz", "interval", "1 hour", AROUND, False, [3, 3, 4, 8, 16]),
    ("timetz", "interval", "1 hour", AFTER, True, [16, 16, 19, 23, 16]),
    ("interval", "interval", "1 day", AROUND, False, [3, 3, 12, 12, 16, 32]),
    ("interval", "interval", "1 day", AFTER, True, [32, 32, 35, 35, 47, 32]),
    ("interval", "interval", "1 month", AROUND, False, [15, 15, 31, 31, 28, 32]),
    ("interval", "interval", "1 month", AFTER, True, [32, 32, 32, 32, 35, 32]),
]


def parsed(name, text):
    return None if text is None else types.get(OIDS[name]).parse(text, -1, TypeContext())


def bound(text, offset):
    *_, direction = words = text.split()
    if words[0] == "unbounded":
        return FrameBound(BoundKind["UNBOUNDED_" + direction.upper()])
    return FrameBound(BoundKind[direction.upper()], offset)


def masks(name, keys, offset, frame, *, is_descending):
    """For each row, the rows of its frame as bits."""
    storage = MemoryStorage()
    scan = storage.add(1, {
        "bit": (INT4, [1 << i for i in range(len(keys))]),
        "k": (SqlType(OIDS[name]), [parsed(name, key) for key in keys]),
    })
    order = (SortKey(ref(scan, "k"), is_descending, False),)
    start, end = (bound(part, offset) for part in frame.split(" and "))
    function = Function(0, "sum", "sum(int4)", (23,), 20, False, Volatility.IMMUTABLE, True)
    call = WindowCall(
        function, (ref(scan, "bit"),), INT8, (), order, Frame(FrameUnit.RANGE, start, end), True
    )
    plan = physical.Window(scan, (), order, (WindowItem(new_field("sum", INT8), call),))
    return [row[-1] or 0 for row in sorted(run(plan, storage), key=lambda row: row[0])]


@pytest.mark.parametrize(
    ("name", "offset_type", "offset", "frame", "is_descending", "expected"), CASES
)
def test_range(name, offset_type, offset, frame, is_descending, expected):
    given = Literal(parsed(offset_type, offset), SqlType(OIDS[offset_type]))
    type_name = "numeric" if name == "numeric with infinities" else name
    assert masks(type_name, KEYS[name], given, frame, is_descending=is_descending) == expected


@pytest.mark.parametrize(("name", "key", "offset_type", "offset"), [
    ("int4", "1", "int4", "-1"),
    ("float8", "1", "float8", "NaN"),
    ("numeric", "1", "numeric", "-0.5"),
    ("timestamp", "2020-01-01", "interval", "-1 day"),
    ("time", "12:00", "interval", "1 day -1 hour"),
])
def test_negative_offset(name, key, offset_type, offset):
    given = Literal(parsed(offset_type, offset), SqlType(OIDS[offset_type]))
    with pytest.raises(errors.InvalidPrecedingOrFollowingSize, match="invalid preceding"):
        masks(name, [key], given, AROUND, is_descending=False)
    only_nulls = masks(name, [None], given, AROUND, is_descending=False)
    assert only_nulls == [1]


def test_null_offset():
    with pytest.raises(errors.NullValueNotAllowed, match="frame starting offset must not be null"):
        masks(
            "int4", ["1"], literal(None), AROUND, is_descending=False
        )
