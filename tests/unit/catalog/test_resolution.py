"""Overload resolution against choices that PostgreSQL 15 makes."""

from __future__ import annotations

import pytest

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog import search_path
from gpudb.catalog.catalog import CatalogSnapshot
from gpudb.catalog.resolution import resolver
from gpudb.catalog.type_system import Context, Path

_SNAPSHOT = CatalogSnapshot.empty()
RESOLVER = resolver(_SNAPSHOT, search_path.resolve(_SNAPSHOT, ["public"], user="postgres"))


@pytest.mark.parametrize(
    ("name", "left", "right", "key"),
    [
        ("+", t.INT4, t.INT8, "int48pl"),
        ("+", t.INT4, t.NUMERIC, "numeric_add"),
        ("+", t.UNKNOWN, t.INT4, "int4pl"),
        ("||", t.UNKNOWN, t.UNKNOWN, "textcat"),
        ("||", t.INT4_ARRAY, t.INT4, "array_append"),
        ("||", t.INT4_ARRAY, t.UNKNOWN, "array_cat"),
        ("=", t.VARCHAR, t.UNKNOWN, "texteq"),
        ("=", t.REGCLASS, t.UNKNOWN, "oideq"),
        ("=", t.CHAR, t.UNKNOWN, "chareq"),
        ("-", t.DATE, t.UNKNOWN, "date_mi"),
        ("-", t.TIMESTAMPTZ, t.INTERVAL, "timestamptz_mi_interval"),
        ("~", t.NAME, t.UNKNOWN, "nameregexeq"),
        ("*", t.INTERVAL, t.INT4, "interval_mul"),
        ("-", 0, t.INT4, "int4um"),
        ("@", 0, t.UNKNOWN, "float8abs"),
        ("=", t.INT2VECTOR, t.INT2VECTOR, "array_eq"),
    ],
)
def test_operator(name: str, left: int, right: int, key: str) -> None:
    assert RESOLVER.operator(name, left, right).function.key == key


@pytest.mark.parametrize(
    ("name", "arguments", "key", "result"),
    [
        ("sum", (t.INT4,), "sum(int4)", t.INT8),
        ("count", (), "count()", t.INT8),
        ("max", (t.VARCHAR,), "max(text)", t.TEXT),
        ("lower", (t.UNKNOWN,), "lower", t.TEXT),
        ("abs", (t.UNKNOWN,), "float8abs", t.FLOAT8),
        ("round", (t.NUMERIC, t.INT4), "numeric_round", t.NUMERIC),
        ("date_trunc", (t.UNKNOWN, t.DATE), "timestamptz_trunc", t.TIMESTAMPTZ),
        ("array_agg", (t.NAME,), "array_agg(anynonarray)", t.NAME_ARRAY),
        ("unnest", (t.INT4_ARRAY,), "array_unnest", t.INT4),
        ("generate_series", (t.INT4, t.INT8), "generate_series_int8", t.INT8),
        ("lag", (t.INT4, t.INT4, t.UNKNOWN), "window_lag_with_offset_and_default", t.INT4),
    ],
)
def test_function(name: str, arguments: tuple[int, ...], key: str, result: int) -> None:
    found = RESOLVER.function(name, arguments)
    assert (found.signature.key, found.result) == (key, result)


def test_variadic_arguments_are_packed() -> None:
    found = RESOLVER.function("json_extract_path", (t.JSON, t.UNKNOWN, t.UNKNOWN))
    assert found.packed == 2
    assert found.types == (t.JSON, t.TEXT, t.TEXT)


def test_any_variadic_arguments_stay_apart() -> None:
    found = RESOLVER.function("concat", (t.UNKNOWN, t.INT4))
    assert found.packed == 0


def test_named_arguments_and_defaults() -> None:
    found = RESOLVER.function("make_interval", (t.INT4,), argument_names=("days",))
    assert found.sources == (None, None, None, 0, None, None, None)


def test_a_call_may_be_a_cast() -> None:
    assert RESOLVER.function("int4", (t.UNKNOWN,)).cast_to == t.INT4


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("round", (t.FLOAT8, t.INT4), "function round(double precision, integer) does not exist"),
        ("nosuch", (t.UNKNOWN,), "function nosuch(unknown) does not exist"),
    ],
)
def test_unknown_function(name: str, arguments: tuple[int, ...], message: str) -> None:
    with pytest.raises(errors.UndefinedFunction) as caught:
        RESOLVER.function(name, arguments)
    assert caught.value.message == message
    assert "explicit type casts" in caught.value.hint


def test_ambiguous_operator() -> None:
    with pytest.raises(errors.AmbiguousFunction, match="operator is not unique"):
        RESOLVER.operator("+", t.UNKNOWN, t.UNKNOWN)


def test_undetermined_polymorphic_type() -> None:
    with pytest.raises(errors.DatatypeMismatch, match="polymorphic type"):
        RESOLVER.function("array_length", (t.UNKNOWN, t.INT4))


@pytest.mark.parametrize(
    ("source", "target", "context", "path"),
    [
        (t.INT4, t.INT8, Context.IMPLICIT, Path.FUNCTION),
        (t.INT8, t.INT4, Context.IMPLICIT, None),
        (t.INT8, t.INT4, Context.ASSIGNMENT, Path.FUNCTION),
        (t.VARCHAR, t.TEXT, Context.IMPLICIT, Path.RELABEL),
        (t.INT4, t.TEXT, Context.IMPLICIT, None),
        (t.INT4, t.TEXT, Context.ASSIGNMENT, Path.TEXT_IO),
        (t.TEXT, t.INT4, Context.ASSIGNMENT, None),
        (t.TEXT, t.INT4, Context.EXPLICIT, Path.TEXT_IO),
        (t.INT4_ARRAY, t.INT8_ARRAY, Context.IMPLICIT, Path.ARRAY),
        (t.INT2VECTOR, t.INT2_ARRAY, Context.IMPLICIT, Path.RELABEL),
        (t.BOOL, t.NUMERIC, Context.EXPLICIT, None),
    ],
)
def test_conversion(source: int, target: int, context: Context, path: Path | None) -> None:
    found = RESOLVER.types.conversion(source, target, context)
    assert (None if found is None else found.path) is path


@pytest.mark.parametrize(
    ("oids", "common"),
    [
        ((t.UNKNOWN, t.UNKNOWN), t.TEXT),
        ((t.INT4, t.UNKNOWN, t.INT8), t.INT8),
        ((t.INT4, t.NUMERIC), t.NUMERIC),
        ((t.VARCHAR, t.BPCHAR), t.VARCHAR),
        ((t.DATE, t.TIMESTAMPTZ), t.TIMESTAMPTZ),
        ((t.INT4, t.TEXT), 0),
    ],
)
def test_common_type(oids: tuple[int, ...], common: int) -> None:
    assert RESOLVER.types.common(oids) == common
