"""Creates and fills the tables."""

from __future__ import annotations

import io
import time
from pathlib import Path

import click
import psycopg
import pyarrow.csv
import pyarrow.parquet
from psycopg import sql

from tpch import data
from tpch.server import is_postgresql

ORACLE_INDEXES = (
    "CREATE INDEX ON lineitem (l_partkey, l_suppkey)",
    "CREATE INDEX ON lineitem (l_orderkey)",
    "CREATE INDEX ON partsupp (ps_partkey)",
    "CREATE INDEX ON orders (o_custkey)",
    "CREATE INDEX ON orders (o_orderkey)",
)
"""PostgreSQL needs them for its correlated subqueries."""


def loaded_scale(link: psycopg.Connection) -> str | None:
    """The scale factor that the server's tables have, None without tables."""
    row = link.execute("SELECT to_regclass('lineitem')").fetchone()
    if row is None or row[0] is None:
        return None
    row = link.execute("SELECT obj_description('lineitem'::regclass, 'pg_class')").fetchone()
    comment = "" if row is None or row[0] is None else str(row[0])
    return comment.removeprefix("TPC-H SF ") or "unknown"


def ensure(link: psycopg.Connection, directory: Path, scale: float) -> None:
    """Load unless the tables are there; an error when they have another scale factor."""
    found = loaded_scale(link)
    wanted = data.scale_text(scale)
    if found is None:
        load(link, data.generate(directory, scale), scale)
    elif found != wanted:
        raise click.ClickException(f"the tables there are of scale factor {found}, not {wanted}")


def load(link: psycopg.Connection, files: Path, scale: float) -> None:
    """Create and fill all tables in one transaction, then ANALYZE."""
    counts = {
        table: pyarrow.parquet.read_metadata(data.parquet_file(files, table)).num_rows
        for table in data.TABLES
    }
    started = time.perf_counter()
    is_oracle = is_postgresql(link)
    label = f"loading TPC-H SF {data.scale_text(scale)}"
    with (
        link.transaction(),
        click.progressbar(length=sum(counts.values()), label=label) as bar,
    ):
        for statement in data.schema().split(";"):
            if statement.strip():
                link.execute(statement)
        for table in data.TABLES:
            copy = copy_rows if is_oracle else copy_file
            copy(link, table, data.parquet_file(files, table).resolve())
            bar.update(counts[table])
        comment = sql.SQL("COMMENT ON TABLE lineitem IS {}")
        link.execute(comment.format(sql.Literal(f"TPC-H SF {data.scale_text(scale)}")))
        for index in ORACLE_INDEXES if is_oracle else ():
            link.execute(index.encode())
    link.execute("ANALYZE")
    for table, count in counts.items():
        row = link.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table)))
        assert row.fetchone() == (count,), f"{table}: the file has {count} rows"
    click.echo(f"{sum(counts.values()):,} rows in {time.perf_counter() - started:.1f} s", err=True)


def copy_file(link: psycopg.Connection, table: str, file: Path) -> None:
    """Let the server read the Parquet file."""
    statement = sql.SQL("COPY {} FROM {} (FORMAT parquet)")
    link.execute(statement.format(sql.Identifier(table), sql.Literal(str(file))))


def copy_rows(link: psycopg.Connection, table: str, file: Path) -> None:
    """Send the rows as CSV, for a server that reads no Parquet."""
    statement = sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(sql.Identifier(table))
    options = pyarrow.csv.WriteOptions(include_header=False)
    with link.cursor().copy(statement) as copy:
        for batch in pyarrow.parquet.ParquetFile(file).iter_batches():
            buffer = io.BytesIO()
            pyarrow.csv.write_csv(pyarrow.table(batch_columns(batch)), buffer, options)
            copy.write(buffer.getvalue())


def batch_columns(batch: pyarrow.RecordBatch) -> dict[str, pyarrow.Array]:
    """The columns, string views as strings, which the CSV writer takes."""
    return {
        name: column.cast(pyarrow.string())
        if pyarrow.types.is_string_view(column.type)
        else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
