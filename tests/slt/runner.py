"""Runs the records of a file and compares, or completes them with what the engine answers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.slt import records
from tests.slt.engines import Config, Engine, Outcome, open_engine, type_letter
from tests.slt.records import HASHED, SQLSTATE, Record

ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
SHOWN_LINES_MAX = 40
NO_COLUMNS = "(no columns)"


def value_text(value: str | None) -> str:
    """A value as a file shows it."""
    if value is None:
        return "NULL"
    if value == "":
        return "(empty)"
    if value in ("NULL", "(empty)"):
        return "\\" + value
    return value.translate(ESCAPES)


def result_lines(outcome: Outcome, sort: str, threshold: int) -> list[str]:
    """A result's lines under a sort mode; one hash line above the threshold of values."""
    rows = [[value_text(value) for value in row] for row in outcome.rows]
    if sort == "rowsort":
        rows.sort()
    values = [value for row in rows for value in row]
    if sort == "valuesort":
        values.sort()
    if threshold and len(values) > threshold:
        digest = hashlib.md5("".join(f"{value}\n" for value in values).encode())
        return [f"{len(values)} values hashing to {digest.hexdigest()}"]
    return values if sort == "valuesort" else ["\t".join(row) or NO_COLUMNS for row in rows]


@dataclass(slots=True)
class Report:
    """``failures``: line and what differs."""

    path: Path
    passed: int = 0
    skipped: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)

    def text(self) -> str:
        return "\n\n".join(f"{self.path}:{line}: {what}" for line, what in self.failures)


def run_file(
    path: Path,
    *,
    dsn: str = "",
    config: Config | None = None,
    line: int = 0,
    is_completing: bool = False,
) -> Report:
    """Run a file in a new database. ``line``: check that record alone, after the statements
    before it. ``is_completing``: write the answers into the file.
    """
    config = config or Config()
    found = records.read(path)
    engine = open_engine(dsn, config)
    try:
        run = Run(engine, [engine.name, config.name], Report(path), is_completing)
        run.all(found, line)
    finally:
        engine.close()
    if is_completing:
        records.rewrite(path, [item for item in found if item.kind in ("statement", "query")])
    return run.report


@dataclass(slots=True)
class Run:
    """One pass over the records of a file."""

    engine: Engine
    names: Sequence[str]
    report: Report
    is_completing: bool = False
    threshold: int = 0
    labels: dict[str, list[str]] = field(default_factory=dict)

    def all(self, found: Sequence[Record], line: int) -> None:
        for record in found:
            if line and record.first > line:
                break
            if record.kind == "hash-threshold":
                self.threshold = record.value
            elif not record.applies_to(self.names):
                self.report.skipped += 1
            elif record.kind == "halt":
                break
            elif line and not record.first <= line <= record.last:
                if record.kind == "statement":
                    self.engine.run(record.sql)
            else:
                self.one(record)

    def one(self, record: Record) -> None:
        outcome = self.engine.run(record.sql)
        if self.is_completing:
            complete(record, outcome, self.threshold)
        problem = self.compare(record, outcome)
        if problem:
            self.report.failures.append((record.first, f"{problem}\n{record.sql}"))
        else:
            self.report.passed += 1

    def compare(self, record: Record, outcome: Outcome) -> str:
        """What differs, or nothing."""
        if record.outcome == "error":
            return compare_error(record, outcome)
        if outcome.sqlstate:
            return f"unexpected error {outcome.sqlstate}: {outcome.message}"
        if record.outcome == "count":
            return compare_count(record, outcome)
        return self.compare_rows(record, outcome) if record.kind == "query" else ""

    def compare_rows(self, record: Record, outcome: Outcome) -> str:
        letters = "".join(type_letter(oid) for oid in outcome.oids)
        if len(letters) != len(record.types) or any(
            mine not in ("?", theirs) for mine, theirs in zip(record.types, letters, strict=True)
        ):
            return f"column types are {letters}, not {record.types}"
        expected = record.expected or []
        is_hashed = len(expected) == 1 and HASHED.match(expected[0]) is not None
        lines = result_lines(outcome, record.sort, 1 if is_hashed else 0)
        if record.label and self.labels.setdefault(record.label, lines) != lines:
            return f"the result differs from another of label {record.label}"
        return "" if lines == expected else difference(expected, lines)


def compare_error(record: Record, outcome: Outcome) -> str:
    if not outcome.sqlstate:
        return f"expected error {record.error}, but it succeeded"
    got = f"error {outcome.sqlstate}: {outcome.message}"
    if SQLSTATE.match(record.error):
        if outcome.sqlstate != record.error:
            return f"expected error {record.error}, got {got}"
    elif not re.search(record.error, outcome.message):
        return f"expected an error like {record.error!r}, got {got}"
    expected = "\n".join(record.expected or [])
    if expected and expected != outcome.message:
        return f"expected the message {expected!r}, got {got}"
    return ""


def compare_count(record: Record, outcome: Outcome) -> str:
    word = outcome.tag.rsplit(" ", 1)[-1]
    return "" if word == str(record.count) else f"tag {outcome.tag!r}, not {record.count} rows"


def difference(expected: Sequence[str], got: Sequence[str]) -> str:
    lines = [f"expected {len(expected)} lines, got {len(got)}"]
    for index in range(max(len(expected), len(got))):
        mine = expected[index] if index < len(expected) else None
        theirs = got[index] if index < len(got) else None
        if mine == theirs:
            continue
        lines += [f"  - {mine}"] if mine is not None else []
        lines += [f"  + {theirs}"] if theirs is not None else []
        if len(lines) > SHOWN_LINES_MAX:
            return "\n".join([*lines, "  ..."])
    return "\n".join(lines)


def complete(record: Record, outcome: Outcome, threshold: int) -> None:
    """Make the record expect this outcome."""
    if outcome.sqlstate:
        record.kind, record.outcome = "statement", "error"
        record.error = outcome.sqlstate
        lines = outcome.message.split("\n")
        record.expected = lines if all(line.strip() for line in lines) else None
    elif record.kind == "query":
        record.types = "".join(type_letter(oid) for oid in outcome.oids)
        record.expected = result_lines(outcome, record.sort, threshold)
    else:
        record.expected = None
        if record.outcome == "count":
            record.count = int(outcome.tag.rsplit(" ", 1)[-1])
        else:
            record.outcome = "ok"
