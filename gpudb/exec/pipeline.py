"""Pipelines: sources of batches, operators that batches pass through, sinks that take them.

A pipeline has one or more branches (UNION ALL, the unmatched rows of a RIGHT join), each a source
and operators; its sink gets the batches of all branches in *sequence*: branch after branch, piece
after piece as the source gave them out, whatever worker computed them. Operators before the first
serial one run in parallel; serial ones (LIMIT, DISTINCT ON) and the sink's ``push`` see the batches
one at a time in sequence. ``prepare`` is the sink's share that runs in parallel.

Pipelines of a query run one after the other: what a later one reads, an earlier one has finished.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpudb.column import Batch
from gpudb.exec.metrics import OperatorMetrics

Piece = Callable[[], Iterator[Batch]]
"""A part of a source's rows, computed when it is called."""


class Progress(enum.Enum):
    """What a task says after a quantum."""

    MORE = "more"
    WAIT = "wait"
    DONE = "done"


class Source:
    """Gives out pieces in order. ``rows_max`` bounds the rows, None = not known."""

    rows_max: int | None = None
    metrics: OperatorMetrics | None = None

    def poll(self) -> Piece | None:
        """The next piece, None at the end. Called under the pipeline's lock."""
        raise NotImplementedError


class Operator:
    """A step of a pipeline without state of its own between batches, unless it is serial."""

    is_serial = False
    metrics: OperatorMetrics | None = None

    def push(self, batch: Batch) -> Iterator[Batch]:
        """The batches that one batch makes, each at most batch_rows rows; may be abandoned."""
        raise NotImplementedError

    @property
    def is_done(self) -> bool:
        """Whether a serial operator needs no further batches."""
        return False


class Sink:
    """Takes the batches of a pipeline in sequence."""

    metrics: OperatorMetrics | None = None

    def prepare(self, batch: Batch) -> Any:
        """What of a batch ``push`` shall get; runs in parallel."""
        return batch

    def push(self, item: Any) -> bool:
        """Take a prepared batch; False = not now, come again."""
        raise NotImplementedError

    def finish(self) -> None:
        """All batches have come."""

    @property
    def is_done(self) -> bool:
        """Whether no further batches are needed."""
        return False


@dataclass(slots=True)
class Branch:
    """``is_barrier``: starts only when everything of the branches before it has arrived."""

    source: Source
    operators: list[Operator] = field(default_factory=list)
    is_barrier: bool = False

    def copy(self) -> Branch:
        return Branch(self.source, list(self.operators), self.is_barrier)

    def split(self) -> tuple[Sequence[Operator], Sequence[Operator]]:
        """The parallel operators and, from the first serial one on, the serial ones."""
        for number, operator in enumerate(self.operators):
            if operator.is_serial:
                return self.operators[:number], self.operators[number:]
        return self.operators, ()


@dataclass(slots=True)
class Pipeline:
    branches: list[Branch]
    sink: Sink

    @property
    def is_done(self) -> bool:
        return self.sink.is_done

    def is_branch_done(self, branch: Branch) -> bool:
        return self.sink.is_done or any(o.is_serial and o.is_done for o in branch.operators)


def apply(operators: Sequence[Operator], batch: Batch, start: int = 0) -> Iterator[Batch]:
    """The batches that come out of the operators from number ``start`` on for one batch."""
    if start == len(operators):
        if batch.rows:
            yield batch
        return
    operator = operators[start]
    metrics = operator.metrics
    outputs = operator.push(batch)
    while True:
        started = time.perf_counter()
        output = next(outputs, None)
        if metrics is not None:
            metrics.add(time.perf_counter() - started, output)
        if output is None:
            return
        if output.rows:
            yield from apply(operators, output, start + 1)


def read(source: Source, piece: Piece) -> Iterator[Batch]:
    """The batches of a piece, measured."""
    metrics = source.metrics
    if metrics is None:
        yield from piece()
        return
    batches = piece()
    while True:
        started = time.perf_counter()
        batch = next(batches, None)
        metrics.add(time.perf_counter() - started, batch)
        if batch is None:
            return
        yield batch


def prepare(sink: Sink, batch: Batch) -> Any:
    """The sink's parallel share of a batch, measured."""
    started = time.perf_counter()
    item = sink.prepare(batch)
    if sink.metrics is not None:
        sink.metrics.seconds += time.perf_counter() - started
    return item


def push(sink: Sink, item: Any) -> bool:
    """Give the sink a prepared batch, measured."""
    started = time.perf_counter()
    is_taken = sink.push(item)
    if sink.metrics is not None:
        sink.metrics.seconds += time.perf_counter() - started
    return is_taken


def finish(sink: Sink) -> None:
    """End the sink's input, measured."""
    started = time.perf_counter()
    sink.finish()
    if sink.metrics is not None:
        sink.metrics.seconds += time.perf_counter() - started


class BatchSource(Source):
    """Batches that are already there."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self._next = 0
        self.rows_max = sum(batch.rows for batch in batches)

    def poll(self) -> Piece | None:
        if self._next >= len(self._batches):
            return None
        batch = self._batches[self._next]
        self._next += 1
        return lambda: iter((batch,))


class LazySource(Source):
    """Pieces that are known only when an earlier pipeline has finished."""

    def __init__(self, make: Callable[[], Iterator[Piece]]) -> None:
        self._make = make
        self._pieces: Iterator[Piece] | None = None

    def poll(self) -> Piece | None:
        if self._pieces is None:
            self._pieces = self._make()
        return next(self._pieces, None)


class OnceSource(Source):
    """One piece: whatever a function yields."""

    def __init__(self, make: Piece, rows_max: int | None = None) -> None:
        self._make: Piece | None = make
        self.rows_max = rows_max

    def poll(self) -> Piece | None:
        found, self._make = self._make, None
        return found
