"""Portals: a statement ready to run or running, and how much of its result was taken.

Protocol portals and SQL cursors are the same thing in one namespace. A portal that may go
backwards (SCROLL) or outlive its transaction (WITH HOLD) keeps what it has read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gpudb import errors
from gpudb.commands import Rows
from gpudb.result import HostBatch, ResultField, ResultStream, slice_batch
from gpudb.wire.backend import RowCursor

HELD_ROWS_MAX = 50_000_000
"""Rows that one scrollable or held cursor may keep in memory; 53200 beyond."""


class RowStore:
    """A result that is kept: random access by row number, read from the stream on demand."""

    def __init__(self, stream: ResultStream) -> None:
        self._stream: ResultStream | None = stream
        self._batches: list[HostBatch] = []
        self._starts: list[int] = []
        self.rows = 0

    def read_to(self, row: int | None) -> bool:
        """Have rows up to number ``row`` (None = all); False when the result ends before."""
        while self._stream is not None and (row is None or self.rows < row):
            batch = self._stream.next()
            if batch is None:
                self._stream = None
                break
            self._starts.append(self.rows)
            self._batches.append(batch)
            self.rows += batch.rows
            if self.rows > HELD_ROWS_MAX:
                raise errors.OutOfMemory("the result of a cursor is too large to be kept")
        return row is None or self.rows >= row

    def slices(self, start: int, stop: int) -> Iterator[HostBatch]:
        """Rows [start, stop), which must have been read."""
        for first, batch in zip(self._starts, self._batches, strict=True):
            low, high = max(start, first), min(stop, first + batch.rows)
            if low < high:
                yield slice_batch(batch, low - first, high - first)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


@dataclass(slots=True)
class Portal:
    """``statement`` with its parameters; ``rows`` once it runs and has a result.

    ``position`` counts the rows before the current one boundary: 0 before the first row.
    """

    name: str
    statement: Any
    text: str
    parameters: tuple[Any, ...] = ()
    parameter_oids: tuple[int, ...] = ()
    result_formats: tuple[int, ...] = ()
    fields: tuple[ResultField, ...] | None = None
    rows: Rows | None = None
    cursor: RowCursor | None = None
    store: RowStore | None = None
    position: int = 0
    is_done: bool = False
    is_holdable: bool = False
    is_scrollable: bool = False
    is_binary: bool = False
    is_sql_cursor: bool = False
    created_microseconds: int = 0
    savepoint_depth: int = 0
    tag: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    def start(self, rows: Rows) -> None:
        """The statement runs: take its rows."""
        self.rows = rows
        self.fields = rows.fields
        if self.is_scrollable or self.is_holdable:
            self.store = RowStore(rows.stream)
        else:
            self.cursor = RowCursor(rows.stream)

    def take(self, max_rows: int) -> Iterator[HostBatch]:
        """The next rows forward, at most ``max_rows`` (0 = all)."""
        if self.store is not None:
            start = min(self.position, self.store.rows) if self.is_done else self.position
            stop = None if max_rows <= 0 else start + max_rows
            complete = self.store.read_to(stop)
            end = self.store.rows if stop is None else min(stop, self.store.rows)
            self.is_done = stop is None or not complete
            self.position = self.store.rows + 1 if self.is_done else end
            yield from self.store.slices(start, end)
            return
        if self.cursor is None:
            return
        for batch in self.cursor.take(max_rows):
            self.position += batch.rows
            yield batch
        self.is_done = self.cursor.is_exhausted

    def require_scroll(self) -> None:
        """55000 unless the portal may go backwards."""
        if not self.is_scrollable:
            raise errors.ObjectNotInPrerequisiteState(
                "cursor can only scan forward",
                hint="Declare it with SCROLL option to enable backward scan.",
            )

    def count(self) -> int:
        """The number of rows of the whole result (all of it is read)."""
        assert self.store is not None
        self.store.read_to(None)
        return self.store.rows

    def at(self, row: int) -> Iterator[HostBatch]:
        """Move to a row number and give that row, if it exists."""
        assert self.store is not None
        row = max(row, 0)
        exists = self.store.read_to(row)
        self.position = row if exists else self.store.rows + 1
        return self.current()

    def current(self) -> Iterator[HostBatch]:
        """The current row, if there is one."""
        assert self.store is not None
        if 0 < self.position <= self.store.rows:
            yield from self.store.slices(self.position - 1, self.position)

    def take_back(self, count: int | None) -> Iterator[HostBatch]:
        """Up to ``count`` rows (None = all) before the current one, nearest first."""
        assert self.store is not None
        last = min(self.position - 1, self.store.rows)
        first = 0 if count is None else max(last - count, 0)
        is_short = count is None or last - count < 0
        self.position = 0 if is_short else first + 1
        for row in range(last, first, -1):
            yield from self.store.slices(row - 1, row)

    def hold(self) -> None:
        """Read the rest now: the transaction is about to end."""
        if self.store is not None:
            self.store.read_to(None)

    def close(self) -> None:
        if self.store is not None:
            self.store.close()
        if self.cursor is not None:
            self.cursor.close()
