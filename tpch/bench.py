"""Times gpudb and DuckDB in one run: same threads, interleaved, cold once, then hot medians."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tpch import data
from tpch.run import execute


@dataclass(slots=True)
class Timing:
    """Seconds of one query on both sides; the first run of each is the cold one."""

    number: int
    gpudb: list[float] = field(default_factory=list)
    duckdb: list[float] = field(default_factory=list)

    def hot(self, name: str) -> float:
        runs: list[float] = getattr(self, name)
        return statistics.median(runs[1:])

    @property
    def ratio(self) -> float:
        """gpudb's hot time by DuckDB's: below 1 gpudb is faster."""
        return self.hot("gpudb") / self.hot("duckdb")

    def as_json(self) -> dict[str, Any]:
        return {
            "name": f"q{self.number:02}",
            "ratio": self.ratio,
            "gpudb_seconds": self.hot("gpudb"),
            "duckdb_seconds": self.hot("duckdb"),
            "cold_ratio": self.gpudb[0] / self.duckdb[0],
            "gpudb_cold_seconds": self.gpudb[0],
            "duckdb_cold_seconds": self.duckdb[0],
            "gpudb_runs": self.gpudb,
            "duckdb_runs": self.duckdb,
        }


def evict(*paths: Path) -> None:
    """Ask the kernel to drop the files' clean pages, so that the first run reads the disk."""
    for path in paths:
        for file in path.rglob("*") if path.is_dir() else [path]:
            if file.is_file():
                descriptor = os.open(file, os.O_RDONLY)
                try:
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(descriptor)


def timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def measure(
    link: psycopg.Connection, duckdb: Any, *, scale: float, runs: int, numbers: Sequence[int]
) -> Iterator[Timing]:
    """One cold and ``runs`` hot executions of each query on both, A B A B."""
    for number in numbers:
        text = data.query(number, scale)
        timing = Timing(number)
        for _ in range(runs + 1):
            timing.gpudb.append(timed(lambda: execute(link, text)))  # noqa: B023 - called at once
            timing.duckdb.append(timed(lambda: duckdb.execute(text).fetchall()))  # noqa: B023
        yield timing


def summary(timings: Sequence[Timing], *, scale: float, threads: int) -> dict[str, Any]:
    """The JSON document of a run."""
    import duckdb

    queries = [timing.as_json() for timing in timings]
    return {
        "benchmark": "tpch",
        "scale_factor": scale,
        "threads": threads,
        "machine": {"processor": platform.processor() or platform.machine(),
                    "cpus": os.cpu_count(), "system": platform.platform()},
        "python": platform.python_version(),
        "duckdb_version": duckdb.__version__,
        "method": "one process each; DuckDB in process on native tables, gpudb over a loopback"
                  " socket; alternating; the first run of a query is cold (file pages evicted"
                  " before the start), the others' median is hot",
        "geomean_ratio": statistics.geometric_mean(query["ratio"] for query in queries),
        "geomean_cold_ratio": statistics.geometric_mean(q["cold_ratio"] for q in queries),
        "worst_ratio": max(query["ratio"] for query in queries),
        "queries": queries,
    }  # fmt: skip
