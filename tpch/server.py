"""A connection to the server under test: one that runs, or one started here."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import psycopg

READY = re.compile(r"gpudb is ready: .*-p (\d+)")
STOP_SECONDS_MAX = 30
OUTPUT_LINES_MAX = 1000


@contextmanager
def connection(
    data: Path, *, dsn: str = "", threads: int = 0, settings: tuple[str, ...] = ()
) -> Iterator[psycopg.Connection]:
    """A connection to the DSN, or to a server of the data directory that lives as long."""
    if dsn:
        with psycopg.connect(dsn, autocommit=True) as link:
            yield link
        return
    with started(data, threads=threads, settings=settings) as port:
        name = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        with psycopg.connect(name, autocommit=True) as link:
            yield link


@contextmanager
def started(data: Path, *, threads: int, settings: tuple[str, ...]) -> Iterator[int]:
    """The port of a server of the data directory, stopped at the end."""
    command = [sys.executable, "-m", "gpudb", "serve", "--data", str(data), "--port", "0"]
    command += ["--threads", str(threads)]
    for setting in settings:
        command += ["--set", setting]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    try:
        yield _wait_until_ready(process)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        found = READY.search(line)
        if found:
            threading.Thread(target=_drain, args=(process,), daemon=True).start()
            return int(found[1])
        lines.append(line)
    raise click.ClickException("the server did not start:\n" + "".join(lines[-OUTPUT_LINES_MAX:]))


def _drain(process: subprocess.Popen[str]) -> None:
    """Pass the server's log on, so that its pipe never fills."""
    assert process.stdout is not None
    for line in process.stdout:
        sys.stderr.write(line)


def is_postgresql(link: psycopg.Connection) -> bool:
    row = link.execute("SELECT version()").fetchone()
    return row is not None and str(row[0]).startswith("PostgreSQL")
