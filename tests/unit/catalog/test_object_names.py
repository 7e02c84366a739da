"""regclass and its kin: names as PostgreSQL 15 reads and shows them."""

from __future__ import annotations

from typing import Any

import pytest
from catalog_sample import sample_snapshot

from gpudb import errors
from gpudb.catalog.catalog import CatalogSnapshot
from gpudb.catalog.changes import Create
from gpudb.catalog.object_names import ObjectNames, split_name
from gpudb.catalog.objects import ColumnDef, Relation, Schema
from gpudb.catalog.search_path import resolve


def names(*schemas: str, at: CatalogSnapshot | None = None) -> ObjectNames:
    snapshot = at or sample_snapshot()
    return ObjectNames(snapshot, resolve(snapshot, schemas or ("public",), user="postgres"))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Pg_Class", ["pg_class"]),
        ('"Odd ""one"" "', ['Odd "one" ']),
        (" a . B ", ["a", "b"]),
        ("x" * 70, ["x" * 63]),
    ],
)
def test_names_are_split_as_identifiers(text: str, parts: list[str]) -> None:
    assert split_name(text) == parts


@pytest.mark.parametrize("text", ["", "a b", '"a', "a.", ".a", '""'])
def test_broken_names_are_refused(text: str) -> None:
    with pytest.raises(errors.InvalidName, match="invalid name syntax"):
        split_name(text)


@pytest.mark.parametrize(
    ("kind", "text", "oid"),
    [
        ("regclass", "pg_class", 1259),
        ("regclass", "pg_catalog.pg_class", 1259),
        ("regclass", "postgres.pg_catalog.pg_class", 1259),
        ("regclass", "parent", 16445),
        ("regtype", "integer", 23),
        ("regtype", "int[]", 1007),
        ("regtype", "_int4", 1007),
        ("regtype", "timestamp with time zone", 1184),
        ("regtype", "numeric(10,2)", 1700),
        ("regtype", "char", 1042),
        ("regtype", '"char"', 18),
        ("regtype", "float(24)", 700),
        ("regtype", "character varying (5) []", 1015),
        ("regtype", "interval day to second", 1186),
        ("regtype", "mood", 16433),
        ("regtype", "public.mood[]", 16432),
        ("regproc", "int4recv", 2406),
        ("regproc", "f", 16481),
        ("regprocedure", "upper(text)", 871),
        ("regprocedure", "f(int, text)", 16481),
        ("regoperator", "=(int4,int4)", 96),
        ("regoperator", "-(NONE,int4)", 558),
        ("regnamespace", "public", 2200),
        ("regrole", "postgres", 10),
        ("regcollation", '"C"', 950),
        ("regconfig", "English", 13141),
    ],
)
def test_names_are_found(kind: str, text: str, oid: int) -> None:
    found = names().lookup(kind, text)
    if kind == "regconfig":  # initdb numbers text search objects anew in each minor version
        assert names().lookup(kind, found) == "english"
    else:
        assert found == oid


@pytest.mark.parametrize(
    ("kind", "oid", "text"),
    [
        ("regclass", 1259, "pg_class"),
        ("regclass", 99999, None),
        ("regtype", 1007, "integer[]"),
        ("regtype", 18, '"char"'),
        ("regtype", 16433, "mood"),
        ("regproc", 2406, "int4recv"),
        ("regproc", 2105, "pg_catalog.avg"),
        ("regprocedure", 2105, "avg(double precision)"),
        ("regprocedure", 871, "upper(text)"),
        ("regoper", 96, "pg_catalog.="),
        ("regoperator", 96, "=(integer,integer)"),
        ("regoperator", 558, "-(NONE,integer)"),
        ("regnamespace", 2200, "public"),
        ("regrole", 10, "postgres"),
        ("regcollation", 950, '"C"'),
    ],
)
def test_oids_show_as_names(kind: str, oid: int, text: str | None) -> None:
    assert names().lookup(kind, oid) == text


@pytest.mark.parametrize(
    ("kind", "text", "error", "message"),
    [
        ("regclass", "nosuch", errors.UndefinedTable, 'relation "nosuch" does not exist'),
        ("regclass", "no.such", errors.InvalidSchemaName, 'schema "no" does not exist'),
        (
            "regclass",
            "pg_catalog.nosuch",
            errors.UndefinedTable,
            'relation "pg_catalog.nosuch" does not exist',
        ),
        (
            "regclass",
            "a.b.c.d",
            errors.SyntaxError,
            "improper relation name (too many dotted names): a.b.c.d",
        ),
        (
            "regclass",
            "other.pg_catalog.pg_class",
            errors.FeatureNotSupported,
            'cross-database references are not implemented: "other.pg_catalog.pg_class"',
        ),
        ("regtype", "nosuch", errors.UndefinedObject, 'type "nosuch" does not exist'),
        ("regproc", "nosuch", errors.UndefinedFunction, 'function "nosuch" does not exist'),
        ("regproc", "lower", errors.AmbiguousFunction, 'more than one function named "lower"'),
        (
            "regprocedure",
            "lower()",
            errors.UndefinedFunction,
            'function "lower()" does not exist',
        ),
        (
            "regprocedure",
            "upper",
            errors.InvalidTextRepresentation,
            "expected a left parenthesis",
        ),
        (
            "regprocedure",
            "upper(text",
            errors.InvalidTextRepresentation,
            "expected a right parenthesis",
        ),
        ("regprocedure", "upper(no)", errors.UndefinedObject, 'type "no" does not exist'),
        ("regoper", "=", errors.AmbiguousFunction, "more than one operator named ="),
        ("regoper", "@@@@", errors.UndefinedFunction, "operator does not exist: @@@@"),
        ("regoperator", "=(int4)", errors.UndefinedParameter, "missing argument"),
        ("regnamespace", "a.b", errors.InvalidName, "invalid name syntax"),
        ("regrole", "nosuch", errors.UndefinedObject, 'role "nosuch" does not exist'),
        (
            "regcollation",
            "C",
            errors.UndefinedObject,
            'collation "c" for encoding "UTF8" does not exist',
        ),
        (
            "regconfig",
            "nosuch",
            errors.UndefinedObject,
            'text search configuration "nosuch" does not exist',
        ),
    ],
)
def test_what_is_missing_is_told_as_postgresql_does(
    kind: str, text: str, error: type[errors.SqlError], message: str
) -> None:
    with pytest.raises(error) as raised:
        names().lookup(kind, text)
    assert raised.value.message == message and type(raised.value) is error


def shadowed() -> CatalogSnapshot:
    columns = (ColumnDef(1, "a", 23),)
    changes: Any = (
        Create(Schema(20000, 5, "Odd", 10)),
        Create(Relation(20001, 20000, "parent", "r", columns, row_type=20002)),
    )
    return sample_snapshot().apply(changes)


def test_hidden_relations_show_their_schema() -> None:
    at = shadowed()
    assert names("Odd", "public", at=at).lookup("regclass", 16445) == "public.parent"
    assert names("public", at=at).lookup("regclass", 20001) == '"Odd".parent'
    assert names("Odd", at=at).relation_is_visible(20001) is True
    assert names("public", at=at).type_is_visible(20002) is False
    assert names().relation_is_visible(99999) is None
    assert names().function_is_visible(871) is True
    assert names().operator_is_visible(96) is True
