"""The tables, the generated Parquet files and the query texts."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from decimal import Decimal
from importlib import resources
from pathlib import Path

import click

TABLES = (
    "region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem",
)  # fmt: skip
QUERIES = tuple(range(1, 23))
Q11_FRACTION = Decimal("0.0001")


def scale_text(scale: float) -> str:
    """A scale factor as folder names and answers show it: 1, 0.1, 0.01."""
    return format(Decimal(str(scale)).normalize(), "f")


def cache_directory(data: Path, scale: float) -> Path:
    """Where the Parquet files of a data directory's scale factor lie, beside the directory."""
    return data.with_name(data.name + ".tpch") / f"sf{scale_text(scale)}"


def parquet_file(directory: Path, table: str) -> Path:
    return directory / f"{table}.parquet"


def generate(data: Path, scale: float) -> Path:
    """Generate the Parquet files unless they are there; their folder."""
    directory = cache_directory(data, scale)
    if all(parquet_file(directory, table).exists() for table in TABLES):
        return directory
    click.echo(f"generating TPC-H SF {scale_text(scale)} in {directory}", err=True)
    partial = directory.with_name(directory.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    command = [generator(), "parquet", "-s", scale_text(scale), "--output-dir", str(partial)]
    subprocess.run(command, check=True)
    shutil.rmtree(directory, ignore_errors=True)
    partial.rename(directory)
    return directory


def generator() -> str:
    """The path of tpchgen-cli, beside the interpreter or on PATH."""
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if (folder / "tpchgen-cli").exists():
            return str(folder / "tpchgen-cli")
    found = shutil.which("tpchgen-cli")
    if found is None:
        raise click.ClickException('tpchgen-cli is not installed: pip install "tpchgen-cli>=2"')
    return found


def schema() -> str:
    """The CREATE TABLE statements."""
    return resources.files("tpch").joinpath("schema.sql").read_text("utf-8")


def query(number: int, scale: float) -> str:
    """A query's text with the validation parameters; Q11's fraction depends on the scale."""
    text = resources.files("tpch").joinpath(f"queries/q{number:02}.sql").read_text("utf-8")
    fraction = Q11_FRACTION / Decimal(str(scale))
    return text.replace(":fraction", format(fraction.normalize(), "f")).strip()


def answer_file(scale: float, number: int) -> Path:
    """Where PostgreSQL's answer is kept, whether it is or not."""
    folder = Path(__file__).parent / "answers" / f"sf{scale_text(scale)}"
    return folder / f"q{number:02}.txt"
