"""The records of a file, and a file's text with new expectations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SORTS = ("nosort", "rowsort", "valuesort")
SQLSTATE = re.compile(r"[0-9A-Z]{5}\Z")
HASHED = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})\Z")
SEPARATOR = "----"


class SyntaxProblem(Exception):
    """A file that does not follow the format."""


@dataclass(slots=True)
class Record:
    """``first`` to ``last`` are its lines, counted from 1. ``expected`` None: no ---- there."""

    kind: str
    first: int
    last: int
    sql: str = ""
    outcome: str = "ok"
    error: str = ""
    count: int = -1
    types: str = ""
    sort: str = "nosort"
    label: str = ""
    expected: list[str] | None = None
    skip_if: list[str] = field(default_factory=list)
    only_if: list[str] = field(default_factory=list)
    value: int = 0

    def applies_to(self, names: Sequence[str]) -> bool:
        """Whether the record counts for an engine that goes by these names."""
        if any(name in names for name in self.skip_if):
            return False
        return not self.only_if or any(name in names for name in self.only_if)


def read(path: Path) -> list[Record]:
    """The records of a file; SyntaxProblem with file and line."""
    lines = path.read_text("utf-8").split("\n")
    try:
        return list(_parse(lines))
    except SyntaxProblem as problem:
        raise SyntaxProblem(f"{path}:{problem}") from None


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    block: list[str] = []
    for number, line in enumerate([*lines, ""], start=1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _parse(lines: Sequence[str]) -> Iterator[Record]:
    skip_if: list[str] = []
    only_if: list[str] = []
    for first, block in _blocks(lines):
        index = 0
        while index < len(block):
            words = block[index].split()
            if block[index].startswith("#"):
                index += 1
            elif words[0] in ("skipif", "onlyif"):
                (skip_if if words[0] == "skipif" else only_if).append(words[1])
                index += 1
            else:
                break
        if index == len(block):
            continue
        record = _record(block[index:], first + index)
        record.skip_if, record.only_if = skip_if, only_if
        skip_if, only_if = [], []
        yield record


def _record(block: list[str], first: int) -> Record:
    words = block[0].split()
    last = first + len(block) - 1
    if words[0] in ("halt", "hash-threshold"):
        value = int(words[1]) if len(words) > 1 else 0
        return Record(words[0], first, last, value=value)
    if words[0] not in ("statement", "query"):
        raise SyntaxProblem(f"{first}: unknown record {words[0]!r}")
    body = block[1:]
    expected = None
    if SEPARATOR in body:
        cut = body.index(SEPARATOR)
        body, expected = body[:cut], body[cut + 1 :]
    record = Record(words[0], first, last, sql="\n".join(body), expected=expected)
    if not record.sql.strip():
        raise SyntaxProblem(f"{first}: a record without SQL")
    if words[0] == "query" and words[1:2] != ["error"]:
        _query_header(record, words[1:])
    else:
        _statement_header(record, block[0].split(None, 2)[1:])
    return record


def _query_header(record: Record, words: list[str]) -> None:
    if words and words[0] not in SORTS:
        record.types = words.pop(0)
    if words and words[0] in SORTS:
        record.sort = words.pop(0)
    record.label = words[0] if words else ""


def _statement_header(record: Record, words: list[str]) -> None:
    record.kind = "statement"
    record.outcome = words[0] if words else "ok"
    if record.outcome not in ("ok", "count", "error"):
        raise SyntaxProblem(f"{record.first}: unknown outcome {record.outcome!r}")
    if record.outcome == "count":
        record.count = int(words[1])
    elif record.outcome == "error":
        record.error = words[1] if len(words) > 1 else ""


def header(record: Record) -> str:
    """The first line of a statement or query."""
    if record.kind == "query":
        sort = record.sort if record.sort != "nosort" or record.label else ""
        return " ".join(word for word in ("query", record.types, sort, record.label) if word)
    rest = {"ok": "", "count": str(record.count), "error": record.error}[record.outcome]
    return f"statement {record.outcome} {rest}".rstrip()


def rewrite(path: Path, records: Sequence[Record]) -> None:
    """Write the file with the records' headers and expectations, all else as it was."""
    lines = path.read_text("utf-8").split("\n")
    for record in sorted(records, key=lambda item: -item.first):
        text = [header(record), *record.sql.split("\n")]
        if record.expected is not None:
            text += [SEPARATOR, *record.expected]
        lines[record.first - 1 : record.last] = text
    path.write_text("\n".join(lines), "utf-8")
