"""Regenerates ``builtin.arrow`` from a PostgreSQL 15 server whose initdb used the C collation.

    python -m gpudb.catalog.generate_builtin "host=... user=postgres"

Reads the rows that initdb made (OIDs below 16384) of every relation in pg_catalog out of a
scratch database. The schema ``gpudb`` is described by ``gpudb.sql``: its tables and views are
created in the scratch database, so that PostgreSQL itself says their columns and types, and get
OIDs from 16000 on. The file is one Arrow table (relation, rows) of nested zstd streams.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.feather

from gpudb.catalog.objects import FIRST_USER_OID, ROLE_POSTGRES, SCHEMA_GPUDB

SCRATCH = "gpudb_builtin_scratch"
HERE = Path(__file__).parent

_ARROW = {
    "bool": (pa.bool_(), ""),
    "int2": (pa.int16(), ""),
    "int4": (pa.int32(), ""),
    "int8": (pa.int64(), ""),
    "oid": (pa.int64(), "::int8"),
    "xid": (pa.int64(), "::text::int8"),
    "regproc": (pa.int64(), "::oid::int8"),
    "float4": (pa.float32(), ""),
    "float8": (pa.float64(), ""),
    "int2vector": (pa.list_(pa.int16()), "::int2[]"),
    "_int2": (pa.list_(pa.int16()), ""),
    "oidvector": (pa.list_(pa.int64()), "::oid[]::int8[]"),
    "_oid": (pa.list_(pa.int64()), "::int8[]"),
    "_text": (pa.list_(pa.string()), ""),
    "_char": (pa.list_(pa.string()), "::text[]"),
    "_aclitem": (pa.list_(pa.string()), "::text[]"),
    "_float4": (pa.list_(pa.float32()), ""),
}
_TEXT = (pa.string(), "::text")

# Rows of these come from the objects of each installation, not from the file.
_SKIPPED = {"pg_database", "pg_statistic", "pg_shdepend", "pg_largeobject", "pg_attrdef"}

# A rewrite rule's parse tree means nothing outside PostgreSQL.
_OVERRIDES = {("pg_rewrite", "ev_action"): "''"}

_FILTERS = {
    "pg_class": "c.oid < 16384",
    "pg_attribute": "c.attrelid < 16384",
    "pg_authid": f"c.oid <> {ROLE_POSTGRES} and c.oid < 16384",
    "pg_auth_members": "c.member < 16384",
    "pg_namespace": "c.oid < 16384 and c.oid <> 2200",
}


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    data: pa.Table


def _columns(connection: psycopg.Connection, relation: str) -> list[tuple[str, str]]:
    return connection.execute(
        "select a.attname, t.typname from pg_attribute a join pg_type t on t.oid = a.atttypid "
        "where a.attrelid = %s::regclass and a.attnum > 0 order by a.attnum",
        (relation,),
    ).fetchall()


def _has_oid(columns: Iterable[tuple[str, str]]) -> bool:
    return any(name == "oid" for name, _ in columns)


def _query(relation: str, columns: list[tuple[str, str]]) -> str:
    short = relation.split(".")[-1]
    items = []
    for name, type_name in columns:
        override = _OVERRIDES.get((short, name))
        items.append(override or f'c."{name}"{_ARROW.get(type_name, _TEXT)[1]}')
    condition = _FILTERS.get(short) or ("c.oid < 16384" if _has_oid(columns) else "true")
    order = (
        "c.oid" if _has_oid(columns) else ", ".join(str(i + 1) for i in range(min(3, len(columns))))
    )
    if relation.startswith("information_schema"):
        order = "1"
    return f"select {', '.join(items)} from {relation} c where {condition} order by {order}"


def _table_of(name: str, columns: list[tuple[str, str]], rows: list[tuple[object, ...]]) -> _Table:
    arrays = {}
    for i, (column, type_name) in enumerate(columns):
        arrays[column] = pa.array([row[i] for row in rows], _ARROW.get(type_name, _TEXT)[0])
    return _Table(name, pa.table(arrays))


def _read_relation(connection: psycopg.Connection, relation: str) -> _Table:
    columns = _columns(connection, relation)
    rows = connection.execute(_query(relation, columns)).fetchall()
    return _table_of(relation.removeprefix("pg_catalog."), columns, rows)


def _relations(connection: psycopg.Connection) -> list[str]:
    found = connection.execute(
        "select n.nspname || '.' || c.relname from pg_class c join pg_namespace n "
        "on n.oid = c.relnamespace where c.relkind = 'r' and c.oid < 16384 order by 1"
    ).fetchall()
    return [name for (name,) in found if name.split(".")[1] not in _SKIPPED]


def _function_texts(connection: psycopg.Connection) -> _Table:
    """What pg_get_function_* print for built-ins, whose defaults are parse trees."""
    rows = connection.execute(
        "select oid::int8, pg_get_function_arguments(oid), "
        "pg_get_function_identity_arguments(oid), pg_get_function_result(oid) "
        "from pg_proc where oid < 16384 order by oid"
    ).fetchall()
    names = ("oid", "arguments", "identity_arguments", "result")
    types = ("int8", "text", "text", "text")
    return _table_of("function_texts", list(zip(names, types, strict=True)), rows)


def _abbreviations(connection: psycopg.Connection) -> _Table:
    rows = connection.execute(
        "select abbrev, extract(epoch from utc_offset)::int4, is_dst "
        "from pg_timezone_abbrevs order by 1"
    ).fetchall()
    columns = [("abbrev", "text"), ("utc_offset", "int4"), ("is_dst", "bool")]
    return _table_of("timezone_abbrevs", columns, rows)


def _remap(table: _Table, mapping: dict[int, int], columns: tuple[str, ...]) -> _Table:
    data = table.data
    for name in columns:
        index = data.schema.get_field_index(name)
        values = [mapping.get(value, value) for value in data.column(index).to_pylist()]
        data = data.set_column(index, name, pa.array(values, pa.int64()))
    return _Table(table.name, data)


def _zeroed(table: _Table, columns: tuple[str, ...]) -> _Table:
    data = table.data
    for name in columns:
        index = data.schema.get_field_index(name)
        zeros = pa.array([0] * data.num_rows, data.schema.field(index).type)
        data = data.set_column(index, name, zeros)
    return _Table(table.name, data)


def _own_schema(connection: psycopg.Connection) -> dict[str, _Table]:
    """Rows of pg_class, pg_attribute and pg_namespace for the schema gpudb."""
    connection.execute("create schema gpudb")
    connection.execute((HERE / "gpudb.sql").read_text())
    found = connection.execute(
        "select c.oid::int8 from pg_class c where relnamespace = 'gpudb'::regnamespace "
        "and relkind in ('r', 'v') order by relkind, relname"
    ).fetchall()
    schema = connection.execute("select 'gpudb'::regnamespace::oid::int8").fetchone()
    assert schema is not None
    mapping = {oid: SCHEMA_GPUDB + 100 + i for i, (oid,) in enumerate(found)}
    mapping[schema[0]] = SCHEMA_GPUDB
    oids = ", ".join(str(oid) for oid in mapping)
    result = {}
    for name, key in (("pg_class", "oid"), ("pg_attribute", "attrelid"), ("pg_namespace", "oid")):
        columns = _columns(connection, name)
        base = _query(name, columns).split(" where ")[0]
        rows = connection.execute(f"{base} where c.{key} in ({oids}) order by c.{key}").fetchall()
        table = _table_of(name, columns, rows)
        references = ("oid", "relnamespace") if name == "pg_class" else (key,)
        result[name] = _remap(table, mapping, references)
    result["pg_class"] = _zeroed(
        result["pg_class"], ("reltype", "reltoastrelid", "relfilenode", "relpages")
    )
    return result


def _packed(tables: list[_Table]) -> pa.Table:
    streams = []
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 19))
    for table in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.data.schema, options=options) as writer:
            writer.write_table(table.data.combine_chunks())
        streams.append(sink.getvalue().to_pybytes())
    names = pa.array([table.name for table in tables])
    return pa.table({"relation": names, "rows": pa.array(streams, pa.binary())})


def generate(dsn: str, target: Path) -> None:
    """Write the file; the scratch database is made and dropped on the server at ``dsn``."""
    with psycopg.connect(dsn, autocommit=True) as server:
        server.execute(f"drop database if exists {SCRATCH}")
        server.execute(f"create database {SCRATCH} template template0")
        try:
            with psycopg.connect(dsn, dbname=SCRATCH, autocommit=True) as connection:
                tables = _all_tables(connection)
        finally:
            server.execute(f"drop database {SCRATCH}")
    pyarrow.feather.write_feather(_packed(tables), str(target), compression="uncompressed")


def _all_tables(connection: psycopg.Connection) -> list[_Table]:
    tables = {t.name: t for t in (_read_relation(connection, r) for r in _relations(connection))}
    for table in (_function_texts(connection), _abbreviations(connection)):
        tables[table.name] = table
    for name, extra in _own_schema(connection).items():
        tables[name] = _Table(name, pa.concat_tables([tables[name].data, extra.data]))
    assert max(tables["pg_class"].data.column("oid").to_pylist()) < FIRST_USER_OID
    return [tables[name] for name in sorted(tables)]


if __name__ == "__main__":
    generate(sys.argv[1], HERE / "builtin.arrow")
