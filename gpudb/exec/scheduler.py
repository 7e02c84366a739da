"""Workers: a fixed number of threads that advance queries by tasks, round robin.

A task computes one piece of a pipeline's source and hands its batches to the sink when it is the
piece's turn; ahead of its turn it may keep a few batches and then is put aside. A worker never
waits for a client, another task or memory: a task says More, Wait or Done and the worker turns to
the next query. A query that can't go on leaves the rotation until ``wake``.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from gpudb import errors
from gpudb.column import Batch
from gpudb.exec.context import QueryContext
from gpudb.exec.pipeline import (
    Branch,
    Operator,
    Piece,
    Pipeline,
    Progress,
    apply,
    finish,
    prepare,
    push,
    read,
)

QUANTUM_SECONDS = 0.02
AHEAD_BATCHES_MAX = 8
"""Batches that a task keeps before it is its turn."""
TASKS_PER_WORKER = 2
"""Pieces a pipeline works on at a time, for each worker."""


class Runnable(Protocol):
    """What the scheduler advances: see exec.executor.QueryRun."""

    events: int

    def step(self) -> Progress: ...

    def fail(self, error: BaseException) -> None: ...


class Scheduler:
    """``threads`` workers; started with the first query, stopped by ``close``."""

    def __init__(self, threads: int) -> None:
        self.threads = max(threads, 1)
        self._queue: deque[Runnable] = deque()
        self._condition = threading.Condition()
        self._workers: list[threading.Thread] = []
        self._is_closed = False
        self._queries: set[Runnable] = set()

    def submit(self, query: Runnable) -> None:
        """Put a query into the rotation."""
        with self._condition:
            if not self._workers:
                self._start()
            self._queries.add(query)
            self._queue.append(query)
            self._condition.notify_all()

    def wake(self, query: Runnable) -> None:
        """Something happened that a waiting query may go on after."""
        with self._condition:
            query.events += 1
            if query not in self._queries:
                return
            if query not in self._queue:
                self._queue.append(query)
            self._condition.notify()

    def close(self) -> None:
        """Stop the workers after their present quantum."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
        for worker in self._workers:
            worker.join()
        for query in list(self._queries):
            query.fail(
                errors.AdminShutdown("terminating connection due to administrator command")
            )

    def _start(self) -> None:
        for number in range(self.threads):
            thread = threading.Thread(
                target=self._work, name=f"gpudb-worker-{number}", daemon=True
            )
            self._workers.append(thread)
            thread.start()

    def _work(self) -> None:
        while True:
            with self._condition:
                while not self._queue and not self._is_closed:
                    self._condition.wait()
                if self._is_closed:
                    return
                query = self._queue.popleft()
                self._queue.append(query)
                events = query.events
            progress = query.step()
            with self._condition:
                if progress is Progress.DONE:
                    self._queries.discard(query)
                if progress is Progress.MORE:
                    if query not in self._queue:
                        self._queue.append(query)
                    self._condition.notify()
                elif (progress is Progress.DONE or query.events == events) and (
                    query in self._queue
                ):
                    self._queue.remove(query)


class Task:
    """One piece of a branch on its way to the sink."""

    def __init__(self, run: PipelineRun, branch: Branch, piece: Piece, number: int) -> None:
        self.number = number
        self._run = run
        parallel, self._serial = branch.split()
        self._items = self._compute(parallel, read(branch.source, piece))
        self._ahead: deque[Any] = deque()
        self._is_computed = False
        self.progress = Progress.MORE
        self.is_sink_full = False
        self._output: Iterator[bool] | None = None

    def _compute(
        self, operators: Sequence[Operator], batches: Iterator[Batch]
    ) -> Iterator[Any]:
        sink = self._run.pipeline.sink
        for batch in batches:
            for output in apply(operators, batch):
                self._run.context.check()
                yield output if self._serial else prepare(sink, output)

    def run(self, quantum_seconds: float) -> Progress:
        """Go on for a while; Wait when the sink is full or too much is kept ahead."""
        until = time.monotonic() + quantum_seconds
        while not self._run.has_turn(self):
            if self._is_computed or len(self._ahead) >= AHEAD_BATCHES_MAX:
                return Progress.WAIT
            item = next(self._items, None)
            if item is None:
                self._is_computed = True
            else:
                self._ahead.append(item)
            if time.monotonic() > until:
                return Progress.MORE
        if self._output is None:
            self._output = self._hand_over()
        for is_taken in self._output:
            self.is_sink_full = not is_taken
            if not is_taken:
                return Progress.WAIT
            if time.monotonic() > until:
                return Progress.MORE
        return Progress.DONE

    def _hand_over(self) -> Iterator[bool]:
        """Give all items to the sink, in order; yields whether the last one was taken."""
        while self._ahead:
            yield from self._deliver(self._ahead.popleft())
        if not self._is_computed:
            for item in self._items:
                yield from self._deliver(item)

    def _deliver(self, item: Any) -> Iterator[bool]:
        sink = self._run.pipeline.sink
        if self._run.is_done:
            return
        if not self._serial:
            while not push(sink, item):
                yield False
            yield True
            return
        batch: Batch = item
        for output in apply(self._serial, batch):
            prepared = prepare(sink, output)
            while not push(sink, prepared):
                yield False
            yield True


class PipelineRun:
    """The state of a running pipeline: which tasks run, wait and whose turn it is."""

    def __init__(self, pipeline: Pipeline, context: QueryContext, workers: int) -> None:
        self.pipeline = pipeline
        self.context = context
        self._limit = workers * TASKS_PER_WORKER
        self._branch = 0
        self._given = 0
        self._turn = 0
        self._running: set[Task] = set()
        self._waiting: deque[Task] = deque()
        self._lock = threading.Lock()
        self._is_exhausted = False
        self._is_finishing = False

    @property
    def is_done(self) -> bool:
        return self.pipeline.is_done

    def has_turn(self, task: Task) -> bool:
        return task.number == self._turn

    def take(self) -> Task | None:
        """A task to run now, None when there is none at present."""
        with self._lock:
            for task in self._waiting:
                if self.has_turn(task):
                    self._waiting.remove(task)
                    self._running.add(task)
                    return task
            busy = len(self._running) + len(self._waiting)
            if busy < self._limit:
                fresh = self._next_task()
                if fresh is not None:
                    self._running.add(fresh)
                    return fresh
            for task in self._waiting:
                if task.progress is Progress.MORE:
                    self._waiting.remove(task)
                    self._running.add(task)
                    return task
            return None

    def _next_task(self) -> Task | None:
        branches = self.pipeline.branches
        while self._branch < len(branches):
            branch = branches[self._branch]
            if branch.is_barrier and self._turn != self._given:
                return None
            piece = None if self.pipeline.is_branch_done(branch) else branch.source.poll()
            if piece is not None:
                task = Task(self, branch, piece, self._given)
                self._given += 1
                return task
            self._branch += 1
        self._is_exhausted = True
        return None

    def put_back(self, task: Task, progress: Progress) -> Progress:
        """Note how far a task got; More when it may go on after all (its turn has come)."""
        with self._lock:
            self._running.remove(task)
            task.progress = progress
            if progress is Progress.DONE:
                self._turn += 1
                return Progress.MORE
            self._waiting.append(task)
            if self.has_turn(task) and not task.is_sink_full:
                return Progress.MORE
            return progress

    def take_finish(self) -> bool:
        """True for the one caller that shall finish the sink, when all tasks are done."""
        with self._lock:
            if not self._is_exhausted or self._turn != self._given or self._is_finishing:
                return False
            self._is_finishing = True
            return True


def run_inline(pipelines: Sequence[Pipeline], context: QueryContext) -> Iterator[None]:
    """Run pipelines on this thread; yields after every batch that reached a sink."""
    for pipeline in pipelines:
        sink = pipeline.sink
        for branch in pipeline.branches:
            while not pipeline.is_branch_done(branch):
                piece = branch.source.poll()
                if piece is None:
                    break
                for batch in read(branch.source, piece):
                    context.check()
                    for output in apply(branch.operators, batch):
                        item = prepare(sink, output)
                        while not push(sink, item):
                            yield
                        yield
                    if pipeline.is_branch_done(branch):
                        break
        finish(sink)
