"""The system views give PostgreSQL's own rows when PostgreSQL runs them.

Needs a PostgreSQL 15 server: GPUDB_TEST_POSTGRES holds its connection string. A scratch database
with one object of each kind is made there; every view of our SQL files is created in a schema
beside PostgreSQL's and must show the same rows, columns and types.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from gpudb.catalog import builtin

psycopg = pytest.importorskip("psycopg")

DSN = os.environ.get("GPUDB_TEST_POSTGRES", "")
pytestmark = pytest.mark.skipif(not DSN, reason="GPUDB_TEST_POSTGRES names no server")

SCRATCH = "gpudb_system_views_scratch"
OWN = "own_views"

STATEMENTS = """
create type mood as enum ('sad', 'ok');
create domain posint as int default 5 constraint pos check (value > 0);
create domain label as varchar(7) collate "C";
create type pair as (a int, b varchar(9));
create table parent(id int primary key, name varchar(20) not null default 'x',
    price numeric(12,2), m mood, u text unique, arr int[], n numeric, c char(3) collate "C",
    constraint chk check (price > 0));
create table child(id bigserial, pid int references parent(id) on delete cascade,
    t timestamptz(3), i interval day to second(2), d posint, g int generated always as identity,
    twice int generated always as (1 + 1) stored, primary key (id, g));
alter table child drop column t;
create view v as select id, name from parent where price > 1;
create materialized view mv as select count(*) n from parent;
create index on parent (lower(name), price desc) where price > 5;
create sequence s increment by 2 minvalue 0 maxvalue 100 start 4 cache 3 cycle;
create function f(x int, out y text, variadic z int[] default null) language sql as 'select 1';
create procedure p(inout a int) language sql as 'select 1';
grant select on parent to public;
"""

# Shown otherwise on purpose: views are not updatable here, nothing counts scans, and the
# extensions on offer are those that are installed.
DIFFERENT = {
    "tables": {"is_insertable_into"},
    "views": {"is_updatable", "is_insertable_into"},
    "columns": {"is_updatable"},
}
UNCOUNTED = ("pg_stat", "pg_available")


@pytest.fixture(scope="module")
def connection() -> Iterator[object]:
    with psycopg.connect(DSN, autocommit=True) as server:
        server.execute(f"drop database if exists {SCRATCH}")
        server.execute(f"create database {SCRATCH} template template0")
        with psycopg.connect(DSN, dbname=SCRATCH, autocommit=True) as scratch:
            scratch.execute(STATEMENTS)
            scratch.execute(f"create schema {OWN}")
            _create_views(scratch)
            yield scratch
        server.execute(f"drop database {SCRATCH}")


def _create_views(scratch: psycopg.Connection) -> None:
    for (schema, name), query in builtin.view_definitions().items():
        if schema != "gpudb":
            body = query.replace("information_schema.", f"{OWN}.")
            scratch.execute(f"create view {OWN}.raw_{name} as {body}")
            casts = ", ".join(f'"{c}"::{t} as "{c}"' for c, t in _columns(scratch, schema, name))
            scratch.execute(f"create view {OWN}.{name} as select {casts} from {OWN}.raw_{name}")


def _columns(scratch: psycopg.Connection, schema: str, name: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = scratch.execute(
        "select attname, format_type(atttypid, atttypmod) from pg_attribute "
        "where attrelid = %s::regclass and attnum > 0 order by attnum",
        (f"{schema}.{name}",),
    ).fetchall()
    return found


VIEWS = sorted(key for key in builtin.view_definitions() if key[0] != "gpudb")


@pytest.mark.parametrize(("schema", "name"), VIEWS)
def test_view_has_the_columns_of_postgresql(
    connection: psycopg.Connection, schema: str, name: str
) -> None:
    expected = _columns(connection, schema, name)
    own = _columns(connection, OWN, f"raw_{name}")
    assert [column for column, _ in own] == [column for column, _ in expected]
    relation = builtin.relation_in(builtin.schema_names()[schema], name)
    assert relation is not None
    assert [c.name for c in relation.columns] == [column for column, _ in expected]


@pytest.mark.parametrize(("schema", "name"), VIEWS)
def test_view_has_the_rows_of_postgresql(
    connection: psycopg.Connection, schema: str, name: str
) -> None:
    if name.startswith(UNCOUNTED):
        pytest.skip("shows what only PostgreSQL counts")
    skipped = DIFFERENT.get(name, set())
    names = [f't."{c}"' for c, _ in _columns(connection, schema, name) if c not in skipped]

    def rows(source: str) -> Counter[str]:
        found = connection.execute(
            f"select row({', '.join(names)})::text from {source}.{name} t "
            f"where t::text not like '%{OWN}%' and t::text not like '%raw\\_%'"
        ).fetchall()
        return Counter(text for (text,) in found)

    assert rows(OWN) == rows(schema)
