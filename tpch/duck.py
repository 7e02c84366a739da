"""DuckDB with the same tables, as the reference of answers and speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tpch import data


def open_database(files: Path, *, threads: int = 0, file: Path | None = None) -> Any:
    """A connection to native tables of schema.sql's types; in memory without ``file``."""
    import duckdb

    settings: dict[str, Any] = {"threads": threads} if threads else {}
    link = duckdb.connect(str(file) if file else ":memory:", config=settings)
    link.execute("SET enable_progress_bar = false")
    tables = {row[0] for row in link.execute("SHOW TABLES").fetchall()}
    if "lineitem" not in tables:
        fill(link, files)
    return link


def fill(link: Any, files: Path) -> None:
    link.execute("BEGIN")
    for statement in data.schema().split(";"):
        if statement.strip():
            link.execute(statement)
    for table in data.TABLES:
        path = str(data.parquet_file(files, table)).replace("'", "''")
        link.execute(f"INSERT INTO {table} SELECT * FROM read_parquet('{path}')")
    link.execute("COMMIT")
    link.execute("CHECKPOINT")
