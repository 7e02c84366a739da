"""Results on the host: numpy columns and the bounded stream between engine and wire.

The same layouts as in the engine (see layout.py), in numpy arrays, so that the wire encodes
whole columns. No torch here: a process that only speaks the protocol stays small.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpudb.layout import Dictionary, Kind, Layout

QUEUED_BATCHES_MAX = 4
"""Batches that wait between producer and consumer; the producer is told to wait beyond."""


@dataclass(frozen=True, slots=True)
class HostColumn:
    """One column of R rows: see layout.py for the buffers; ``valid`` bool (R), None = no NULL.

    The elements under an invalid row are arbitrary (but in range for dictionary codes and
    text positions).
    """

    type_oid: int
    typmod: int
    layout: Layout
    rows: int
    data: tuple[npt.NDArray[Any], ...]
    valid: npt.NDArray[np.bool_] | None = None
    base: int = 0
    step: int = 1
    scale: int = 0
    dictionary: Dictionary | None = None
    objects: npt.NDArray[np.object_] | None = None


@dataclass(frozen=True, slots=True)
class HostBatch:
    columns: tuple[HostColumn, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class ResultField:
    """A column of a result as RowDescription tells it; table_oid 0 for computed columns."""

    name: str
    type_oid: int
    typmod: int = -1
    table_oid: int = 0
    attnum: int = 0


class ResultStream:
    """A bounded queue of host batches with an end, an error and a consumer that may leave.

    One producer, one consumer. The producer calls ``put`` (False = full or closed: come back
    when ``on_space`` is called), then ``finish`` or ``fail``. The consumer iterates; ``close``
    tells the producer to stop (``is_closed``).
    """

    def __init__(self, fields: tuple[ResultField, ...]) -> None:
        self.fields = fields
        self._batches: deque[HostBatch] = deque()
        self._condition = threading.Condition()
        self._done = False
        self._error: BaseException | None = None
        self.is_closed = False
        self.on_space: Callable[[], None] | None = None

    @classmethod
    def of(cls, fields: tuple[ResultField, ...], batches: list[HostBatch]) -> ResultStream:
        """A finished stream of the given batches."""
        stream = cls(fields)
        stream._batches.extend(batches)
        stream._done = True
        return stream

    def has_space(self) -> bool:
        return len(self._batches) < QUEUED_BATCHES_MAX or self.is_closed

    def put(self, batch: HostBatch) -> bool:
        """Queue a batch; False when the queue is full (nothing is queued then)."""
        with self._condition:
            if self.is_closed:
                return True
            if len(self._batches) >= QUEUED_BATCHES_MAX:
                return False
            self._batches.append(batch)
            self._condition.notify()
            return True

    def finish(self) -> None:
        with self._condition:
            self._done = True
            self._condition.notify_all()

    def fail(self, error: BaseException) -> None:
        with self._condition:
            self._error = error
            self._done = True
            self._condition.notify_all()

    def close(self) -> None:
        """The consumer wants no more; queued batches are dropped."""
        with self._condition:
            self.is_closed = True
            self._batches.clear()
            self._condition.notify_all()
        if self.on_space is not None:
            self.on_space()

    def next(self) -> HostBatch | None:
        """The next batch, waiting for it; None at the end. Raises what the producer failed with."""
        with self._condition:
            while not self._batches and not self._done and not self.is_closed:
                self._condition.wait()
            batch = self._batches.popleft() if self._batches else None
            error = self._error if batch is None else None
        if error is not None:
            raise error
        if batch is not None and self.on_space is not None:
            self.on_space()
        return batch

    def __iter__(self) -> Iterator[HostBatch]:
        while (batch := self.next()) is not None:
            yield batch


def slice_column(column: HostColumn, start: int, stop: int) -> HostColumn:
    """Rows [start, stop) of a column; shares memory."""
    data = tuple(
        buffer if column.layout.kind is Kind.TEXT and i == 2 else buffer[start:stop]
        for i, buffer in enumerate(column.data)
    )
    valid = None if column.valid is None else column.valid[start:stop]
    objects = None if column.objects is None else column.objects[start:stop]
    return HostColumn(
        column.type_oid, column.typmod, column.layout, stop - start, data, valid,
        column.base, column.step, column.scale, column.dictionary, objects,
    )


def slice_batch(batch: HostBatch, start: int, stop: int) -> HostBatch:
    """Rows [start, stop) of a batch; shares memory."""
    return HostBatch(tuple(slice_column(c, start, stop) for c in batch.columns), stop - start)
