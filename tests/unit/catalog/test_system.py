"""System relations: the same rows as PostgreSQL 15 shows for the same objects."""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from catalog_sample import sample_snapshot

from gpudb.catalog import builtin
from gpudb.catalog.catalog import CatalogSnapshot
from gpudb.catalog.changes import Create, SetStatistics
from gpudb.catalog.objects import ColumnStatistics, RelationStatistics, Role
from gpudb.catalog.system import SessionInfo, SystemCatalog, SystemRows
from gpudb.catalog.types.base import ArrayValue

SESSION = SessionInfo(10, "postgres")
SAMPLE = json.loads((Path(__file__).parent / "postgres15_sample.json").read_text())


@cache
def snapshot() -> CatalogSnapshot:
    return sample_snapshot()


def rows_of(name: str, at: CatalogSnapshot | None = None) -> SystemRows:
    seen = at or snapshot()
    schema, _, relation = name.rpartition(".")
    found = seen.relation(schema or "pg_catalog", relation)
    assert found is not None
    return SystemCatalog().rows(found, seen, SESSION)


def text(value: Any, type_oid: int) -> str | None:
    """PostgreSQL's text of a catalog value."""
    if value is None:
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, ArrayValue):
        items = [str(item) for item in value.items]
        return " ".join(items) if type_oid in (22, 30) else "{" + ",".join(items) + "}"
    if isinstance(value, float | np.floating):
        return f"{value:g}"
    return str(value)


def shown(rows: SystemRows, names: list[str]) -> list[list[str | None]]:
    columns = []
    for name in names:
        column = next(c for c in rows.columns if c.name == name)
        valid = column.valid if column.valid is not None else [True] * rows.rows
        columns.append(
            [
                text(v, column.type_oid) if ok else None
                for v, ok in zip(column.values, valid, strict=True)
            ]
        )
    return [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("relation", sorted(SAMPLE))
def test_user_objects_show_as_in_postgresql(relation: str) -> None:
    expected = SAMPLE[relation]
    got = shown(rows_of(relation), expected["columns"])
    wanted = {tuple(map(str, row)) for row in expected["rows"]}
    assert wanted - {tuple(map(str, row)) for row in got} == set()


@pytest.mark.parametrize("relation", sorted(SAMPLE))
def test_no_user_rows_that_postgresql_lacks(relation: str) -> None:
    expected = SAMPLE[relation]
    base = CatalogSnapshot.empty()
    builtin_rows = {tuple(map(str, r)) for r in shown(rows_of(relation, base), expected["columns"])}
    got = {tuple(map(str, row)) for row in shown(rows_of(relation), expected["columns"])}
    extra = got - builtin_rows - {tuple(map(str, row)) for row in expected["rows"]}
    initial = {row for row in extra if "postgres" in row and relation == "pg_authid"}
    assert extra - initial == set()


def test_every_relation_without_a_definition_has_its_columns() -> None:
    catalog = SystemCatalog()
    for relation in builtin.relations().values():
        if relation.kind in ("r", "v") and relation.definition is None:
            rows = catalog.rows(relation, snapshot(), SESSION)
            names = [column.name for column in rows.columns]
            assert names == [column.name for column in relation.columns]
            assert all(len(column.values) == rows.rows for column in rows.columns)


@pytest.mark.parametrize(
    ("relation", "count"),
    [("pg_type", 611), ("pg_proc", 3244), ("pg_operator", 799), ("pg_cast", 229)],
)
def test_built_in_rows_are_complete(relation: str, count: int) -> None:
    assert rows_of(relation, CatalogSnapshot.empty()).rows == count


def test_values_of_a_built_in_row() -> None:
    rows = rows_of("pg_type", CatalogSnapshot.empty())
    column = {c.name: c.values for c in rows.columns}
    at = list(column["oid"]).index(23)
    receive = int(column["typreceive"][at])
    assert builtin.function_names()[receive] == (11, "int4recv")
    assert (column["typname"][at], column["typlen"][at], column["typarray"][at]) == (
        "int4",
        4,
        1007,
    )


def test_rows_are_cached_per_catalog_version() -> None:
    catalog = SystemCatalog()
    seen = snapshot()
    relation = seen.relation("pg_catalog", "pg_class")
    assert relation is not None
    first = catalog.rows(relation, seen, SESSION)
    assert first.is_cached and catalog.rows(relation, seen, SESSION) is first
    later = seen.apply((Create(Role(99999, "bob")),))
    assert catalog.rows(relation, later, SESSION) is not first


def test_a_provider_gives_a_relation_its_rows() -> None:
    catalog = SystemCatalog()
    seen = snapshot()
    relation = seen.relation("pg_catalog", "pg_prepared_statements")
    assert relation is not None
    assert catalog.rows(relation, seen, SESSION).rows == 0
    row = ("p", "select 1", 0, ArrayValue(2206, ()), True, 0, 0)
    catalog.register("pg_catalog.pg_prepared_statements", lambda at, session: [row])
    rows = catalog.rows(relation, seen, SESSION)
    assert rows.rows == 1 and not rows.is_cached


def test_statistics_show_in_pg_stats() -> None:
    statistics = RelationStatistics(
        16445,
        1000.0,
        81920,
        (
            ColumnStatistics(1, 0.0, 1000, 4.0, 1, 1000, histogram=(1, 500, 1000)),
            ColumnStatistics(
                3, 0.5, 3, 8.0, 100, 300, (150,), (0.25,), scale=2, histogram=(100, 300)
            ),
        ),
    )
    seen = snapshot().apply((SetStatistics(statistics),))
    names = ["attname", "null_frac", "n_distinct", "most_common_vals", "histogram_bounds"]
    assert shown(rows_of("pg_stats", seen), names) == [
        ["id", "0", "-1", None, "{1,500,1000}"],
        ["price", "0.5", "3", "{1.50}", "{1.00,3.00}"],
    ]
    sizes = shown(rows_of("pg_class", seen), ["relname", "relpages", "reltuples"])
    assert ["parent", "10", "1000"] in sizes


def test_objects_of_other_databases_are_hidden() -> None:
    seen = snapshot().in_database(1)
    names = {row[0] for row in shown(rows_of("pg_class", seen), ["relname"])}
    assert "parent" not in names and "pg_class" in names
    schemas = shown(rows_of("pg_namespace", seen), ["nspname"])
    assert schemas.count(["public"]) == 1


def test_first_rows_of_the_large_relations_come_quickly() -> None:
    started = time.perf_counter()
    for relation in ("pg_class", "pg_attribute", "pg_type", "pg_proc", "pg_depend"):
        rows_of(relation)
    assert time.perf_counter() - started < 2.0
