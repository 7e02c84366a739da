"""Rows that are kept: the sink that collects a stream and the batches it gives back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpudb.column import Batch, Column, compact, slice_rows, take_rows
from gpudb.exec.builder import Builder
from gpudb.exec.memory import Reservation
from gpudb.exec.operators.values import empty_columns
from gpudb.exec.pipeline import Piece, Sink
from gpudb.kernels.concat import concat
from gpudb.kernels.select import bytes_of
from gpudb.optimizer.logical import Field


class CollectSink(Sink):
    """Keeps all rows in sequence; ``columns`` once it is finished."""

    def __init__(
        self, builder: Builder, fields: tuple[Field, ...], purpose: str
    ) -> None:
        self._empty = empty_columns(builder, fields)
        self._batches: list[Batch] = []
        self._purpose = purpose
        self._reservation: Reservation | None = builder.context.reservation
        self.rows = 0
        self.bytes = 0
        self.columns: tuple[Column, ...] = ()

    def prepare(self, batch: Batch) -> Batch:
        return compact(batch)

    def push(self, item: Any) -> bool:
        batch: Batch = item
        size = sum(bytes_of(column) for column in batch.columns)
        if self._reservation is not None:
            self._reservation.require(size, self._purpose)
        self.bytes += size
        self._batches.append(batch)
        self.rows += batch.rows
        return True

    def finish(self) -> None:
        self.columns = joined(self._batches, self._empty)
        self._batches = []
        if self.metrics is not None:
            self.metrics.bytes += self.bytes

    def batches(self) -> list[Batch]:
        """The rows as they came, before ``finish``."""
        return self._batches


def joined(batches: list[Batch], empty: tuple[Column, ...]) -> tuple[Column, ...]:
    """The columns of compact batches, end to end."""
    if not batches:
        return empty
    return tuple(
        concat([(batch.columns[i], batch.rows) for batch in batches])
        for i in range(len(batches[0].columns))
    )


def pieces(columns: tuple[Column, ...], rows: int, batch_rows: int) -> Iterator[Piece]:
    """Pieces of kept rows, in order."""
    for number, start in enumerate(range(0, rows, batch_rows)):
        stop = min(start + batch_rows, rows)

        def piece(number: int = number, start: int = start, stop: int = stop) -> Iterator[Batch]:
            cut = tuple(slice_rows(c, start, stop) for c in columns)
            yield Batch.of(cut, stop - start, (number, 0))

        yield piece


def ordered_pieces(
    columns: tuple[Column, ...], index: Any, batch_rows: int, total: int
) -> Iterator[Piece]:
    """Pieces of kept rows in the order of ``index`` (int64), gathered piece by piece."""
    rows = index.shape[0]
    for number, start in enumerate(range(0, rows, batch_rows)):
        part = index[start : start + batch_rows]

        def piece(number: int = number, part: Any = part) -> Iterator[Batch]:
            cut = tuple(take_rows(c, part, total) for c in columns)
            yield Batch.of(cut, part.shape[0], (number, 0))

        yield piece
