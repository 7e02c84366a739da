"""python -m tpch generate | load | run | bench: each does first what it needs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tpch import bench as benchmark
from tpch import data, duck, load, run, server

SQL_ROOTS = "gpudb.file_roots"


def where(command: Callable[..., None]) -> Callable[..., None]:
    """The options of every command."""
    for option in (
        click.option("--data", "directory", type=click.Path(path_type=Path), default="data",
                     show_default=True, help="Data directory; Parquet goes to DIR.tpch."),
        click.option("--sf", "scale", type=float, default=0.1, show_default=True,
                     help="Scale factor."),
    ):  # fmt: skip
        command = option(command)
    return command


def target(command: Callable[..., None]) -> Callable[..., None]:
    """The options of commands that talk to a server."""
    for option in (
        click.option("--dsn", default="", help="A running server instead of one started here."),
        click.option("--threads", default=0, help="Worker threads; 0 = one a core."),
        click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
                     help="A setting of the server that is started."),
    ):  # fmt: skip
        command = option(command)
    return where(command)


def connected(
    directory: Path, scale: float, dsn: str, threads: int, settings: tuple[str, ...]
) -> Any:
    """A connection to the server, which may read the Parquet files."""
    roots = data.cache_directory(directory, scale).parent.resolve()
    return server.connection(
        directory, dsn=dsn, threads=threads, settings=(f"{SQL_ROOTS}={roots}", *settings)
    )


def chosen(queries: str) -> tuple[int, ...]:
    return tuple(int(item) for item in queries.split(",")) if queries else data.QUERIES


def write_json(file: Path | None, document: dict[str, Any]) -> None:
    if file is not None:
        file.write_text(json.dumps(document, indent=2) + "\n", "utf-8")


@click.group()
def main() -> None:
    """TPC-H on gpudb."""


@main.command()
@where
def generate(directory: Path, scale: float) -> None:
    """Generate the Parquet files."""
    click.echo(data.generate(directory, scale))


@main.command(name="load")
@target
@click.option("--if-empty", is_flag=True, help="Do nothing when the directory has TPC-H tables.")
def load_command(
    directory: Path,
    scale: float,
    dsn: str,
    threads: int,
    settings: tuple[str, ...],
    if_empty: bool,
) -> None:
    """Create and fill the tables."""
    with connected(directory, scale, dsn, threads, settings) as link:
        if not if_empty or load.loaded_scale(link) is None:
            load.ensure(link, directory, scale)


@main.command(name="run")
@target
@click.option("--queries", default="", help="Numbers with commas; all 22 without.")
@click.option("--json", "json_file", type=click.Path(path_type=Path))
def run_command(
    directory: Path,
    scale: float,
    dsn: str,
    threads: int,
    settings: tuple[str, ...],
    queries: str,
    json_file: Path | None,
) -> None:
    """Check the answers of the queries."""
    files = data.generate(directory, scale)
    with connected(directory, scale, dsn, threads, settings) as link:
        load.ensure(link, directory, scale)
        verdicts = []
        with duck.open_database(files) as reference:
            for verdict in run.check(link, reference, scale, chosen(queries)):
                verdicts.append(verdict)
                word = verdict.problem or "ok, as " + " and ".join(verdict.references)
                click.echo(
                    f"q{verdict.number:02}  {verdict.seconds * 1000:9.1f} ms"
                    f"  {verdict.rows:6} rows  {word}"
                )
    failed = [f"q{item.number:02}" for item in verdicts if item.problem]
    click.echo(f"{len(verdicts) - len(failed)} of {len(verdicts)} queries right")
    rows = [{"name": f"q{v.number:02}", "seconds": v.seconds, "rows": v.rows,
             "references": v.references, "problem": v.problem} for v in verdicts]  # fmt: skip
    write_json(json_file, {"scale_factor": scale, "failed": failed, "queries": rows})
    sys.exit(1 if failed else 0)


@main.command()
@target
@click.option("--against", type=click.Choice(["duckdb"]), default="duckdb")
@click.option("--runs", default=5, show_default=True, help="Hot runs of a query on each side.")
@click.option("--queries", default="", help="Numbers with commas; all 22 without.")
@click.option("--json", "json_file", type=click.Path(path_type=Path))
def bench(
    directory: Path,
    scale: float,
    dsn: str,
    threads: int,
    settings: tuple[str, ...],
    against: str,
    runs: int,
    queries: str,
    json_file: Path | None,
) -> None:
    """Compare with another engine's speed."""
    threads = threads or os.cpu_count() or 1
    files = data.generate(directory, scale)
    database = files.with_suffix(".duckdb")
    duck.open_database(files, threads=threads, file=database).close()
    with connected(directory, scale, dsn, threads, settings) as link:
        load.ensure(link, directory, scale)
    benchmark.evict(directory, database)
    timings = []
    with (
        connected(directory, scale, dsn, threads, settings) as link,
        duck.open_database(files, threads=threads, file=database) as other,
    ):
        for timing in benchmark.measure(
            link, other, scale=scale, runs=runs, numbers=chosen(queries)
        ):
            timings.append(timing)
            click.echo(
                f"q{timing.number:02}  gpudb {timing.hot('gpudb') * 1000:8.1f} ms"
                f"  {against} {timing.hot('duckdb') * 1000:8.1f} ms  ratio {timing.ratio:6.2f}"
                f"  cold {timing.gpudb[0] / timing.duckdb[0]:6.2f}"
            )
    document = benchmark.summary(timings, scale=scale, threads=threads)
    click.echo(
        f"geometric mean {document['geomean_ratio']:.2f}"
        f" (cold {document['geomean_cold_ratio']:.2f}), worst {document['worst_ratio']:.2f}"
    )
    write_json(json_file, document)


@main.command()
@where
@click.option("--dsn", required=True, help="A PostgreSQL 15 server.")
def answers(directory: Path, scale: float, dsn: str) -> None:
    """Write a PostgreSQL server's answers into tpch/answers (for maintainers)."""
    with server.connection(directory, dsn=dsn) as link:
        if not server.is_postgresql(link):
            raise click.ClickException("the answers come from PostgreSQL")
        load.ensure(link, directory, scale)
        click.echo(f"{run.write_answers(link, scale)} answers")


if __name__ == "__main__":
    main()
