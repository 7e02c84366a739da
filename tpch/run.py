"""Runs the 22 queries over the wire and compares with DuckDB and PostgreSQL 15."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import pq

from tpch import compare, data
from tpch.compare import Answer


@dataclass(frozen=True, slots=True)
class Verdict:
    """``problem`` is empty for a right answer; ``references`` names what it was compared with."""

    number: int
    seconds: float
    rows: int
    references: tuple[str, ...]
    problem: str


def execute(link: psycopg.Connection, text: str) -> Answer:
    """A query's answer exactly as the server sends it in text format."""
    result = link.pgconn.exec_(text.encode())
    if result.status != pq.ExecStatus.TUPLES_OK:
        raise psycopg.DatabaseError(result.get_error_message())
    columns = range(result.nfields)
    names = tuple((result.fname(i) or b"").decode() for i in columns)
    rows = [
        tuple(_decoded(result.get_value(row, i)) for i in columns) for row in range(result.ntuples)
    ]
    return Answer(names, tuple(result.ftype(i) for i in columns), rows)


def _decoded(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def check(
    link: psycopg.Connection, reference: Any, scale: float, numbers: Sequence[int]
) -> Iterator[Verdict]:
    """A verdict a query, against DuckDB's connection and, where committed, PostgreSQL's text."""
    for number in numbers:
        text = data.query(number, scale)
        started = time.perf_counter()
        try:
            answer = execute(link, text)
        except psycopg.Error as error:
            seconds = time.perf_counter() - started
            yield Verdict(number, seconds, 0, (), str(error).strip())
            continue
        seconds = time.perf_counter() - started
        problems = []
        problem = compare.with_values(answer, reference.execute(text).fetchall(), number)
        if problem:
            problems.append(f"DuckDB: {problem}")
        references = ["DuckDB"]
        file = data.answer_file(scale, number)
        if file.exists():
            references.append("PostgreSQL")
            expected = compare.from_text(file.read_text("utf-8"))
            problem = compare.with_text(answer, expected, number)
            if problem:
                problems.append(f"PostgreSQL: {problem}")
        yield Verdict(number, seconds, len(answer.rows), tuple(references), "; ".join(problems))


def write_answers(link: psycopg.Connection, scale: float) -> int:
    """Write the server's answers as the committed ones; the number of files."""
    for number in data.QUERIES:
        file = data.answer_file(scale, number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(compare.to_text(execute(link, data.query(number, scale))), "utf-8")
    return len(data.QUERIES)
