"""Runs physical plans: pipelines on the scheduler's workers, or inline for small ones.

``Executor.run`` gives a ResultStream at once. A plan whose sources are small runs on the consumer's
thread, as it takes batches; others run on the workers, which stop when the stream is full and go on
when the consumer has taken a batch.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from gpudb.column import Batch, batch_to_host
from gpudb.exec.builder import BATCH_ROWS_DEFAULT, Builder, load_operators, setting
from gpudb.exec.context import QueryContext
from gpudb.exec.eager import evaluate_constant
from gpudb.exec.memory import MemoryPool
from gpudb.exec.metrics import QueryMetrics
from gpudb.exec.pipeline import Pipeline, Progress, Sink, finish
from gpudb.exec.program import is_volatile
from gpudb.exec.scheduler import QUANTUM_SECONDS, PipelineRun, Scheduler, run_inline
from gpudb.expr import Expr
from gpudb.optimizer.explain import NodeMetrics
from gpudb.optimizer.physical import Physical
from gpudb.result import HostBatch, ResultField, ResultStream
from gpudb.tree import walk

INLINE_ROWS_MAX = 65_536
"""A plan that reads at most this many rows runs on the calling thread."""


class ResultSink(Sink):
    """Puts host batches into the result stream."""

    def __init__(self, stream: ResultStream) -> None:
        self._stream = stream

    def prepare(self, batch: Batch) -> HostBatch:
        return batch_to_host(batch)

    def push(self, item: Any) -> bool:
        return self._stream.put(item)

    @property
    def is_done(self) -> bool:
        return self._stream.is_closed


class InlineStream(ResultStream):
    """A stream whose query runs on the consumer's thread, while it asks for batches."""

    def __init__(self, fields: tuple[ResultField, ...]) -> None:
        super().__init__(fields)
        self._steps: Iterator[None] | None = None
        self._release: Any = None

    def start(self, steps: Iterator[None], release: Any) -> None:
        self._steps = steps
        self._release = release

    def next(self) -> HostBatch | None:
        """The next batch; runs the query until there is one. Raises the query's error."""
        try:
            while not self._batches and self._steps is not None:
                next(self._steps)
        except StopIteration:
            self._end()
        except BaseException:
            self._end()
            raise
        return self._batches.popleft() if self._batches else None

    def close(self) -> None:
        super().close()
        self._end()

    def _end(self) -> None:
        steps, self._steps = self._steps, None
        self._done = True
        if steps is not None and self._release is not None:
            self._release()


class QueryRun:
    """A query on the scheduler: its pipelines, one after the other."""

    def __init__(
        self, pipelines: list[Pipeline], context: QueryContext, stream: ResultStream, workers: int
    ) -> None:
        self.events = 0
        self._pipelines = pipelines
        self._context = context
        self._stream = stream
        self._workers = workers
        self._number = 0
        self._run: PipelineRun | None = None
        self._lock = threading.Lock()
        self._is_over = False

    def step(self) -> Progress:
        """Advance some task for a quantum."""
        try:
            return self._step()
        except BaseException as error:  # carried to the consumer, who raises it
            self.fail(error)
            return Progress.DONE

    def fail(self, error: BaseException) -> None:
        """End the query with an error."""
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
        self._release()
        self._stream.fail(error)

    def _step(self) -> Progress:
        if self._is_over:
            return Progress.DONE
        if self._stream.is_closed:
            self._end()
            return Progress.DONE
        self._context.check()
        run = self._current()
        if run is None:
            return Progress.DONE
        task = run.take()
        if task is None:
            return self._advance(run)
        return run.put_back(task, task.run(QUANTUM_SECONDS))

    def _current(self) -> PipelineRun | None:
        with self._lock:
            if self._run is None and self._number < len(self._pipelines):
                self._run = PipelineRun(
                    self._pipelines[self._number], self._context, self._workers
                )
            return self._run

    def _advance(self, run: PipelineRun) -> Progress:
        """Go to the next pipeline when everything of this one is done."""
        if not run.take_finish():
            return Progress.WAIT
        finish(run.pipeline.sink)
        with self._lock:
            self._number += 1
            self._run = None
            is_last = self._number == len(self._pipelines)
        if is_last:
            self._end()
            return Progress.DONE
        return Progress.MORE

    def _end(self) -> None:
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
        self._release()
        self._stream.finish()

    def _release(self) -> None:
        if self._context.reservation is not None:
            self._context.reservation.release()


class Executor:
    """Runs plans in one process; ``storage`` opens tables, ``system`` gives system relations."""

    def __init__(
        self,
        storage: Any = None,
        *,
        threads: int = 1,
        device: str = "auto",
        memory_bytes: int = 1 << 32,
        system: Any = None,
    ) -> None:
        load_operators()
        torch.set_num_threads(1)  # workers scale; torch's own threads cost more than they gain
        self.storage = storage
        self.system = system
        self.device = "cpu" if device == "auto" else device
        self.memory = MemoryPool(memory_bytes)
        self.scheduler = Scheduler(threads)

    def run(
        self,
        plan: Physical,
        context: QueryContext,
        fields: tuple[ResultField, ...] | None = None,
    ) -> ResultStream:
        """Start a plan; its rows come out of the stream, its errors too."""
        result = fields if fields is not None else result_fields(plan)
        builder = self._builder(context)
        stream = InlineStream(result)
        output = builder.build(plan)
        builder.metrics.plan = plan
        context.metrics = builder.metrics
        if self._is_inline(plan, builder):
            stream = InlineStream(result)
            builder.close(output, ResultSink(stream))
            release = context.reservation.release
            stream.start(run_inline(builder.pipelines, context), release)
            return stream
        threaded = ResultStream(result)
        builder.close(output, ResultSink(threaded))
        workers = 1 if _has_volatile(plan) else self.scheduler.threads
        builder.metrics.workers = workers
        query = QueryRun(builder.pipelines, context, threaded, workers)
        threaded.on_space = lambda: self.scheduler.wake(query)
        self.scheduler.submit(query)
        return threaded

    def evaluate(self, expression: Expr, context: QueryContext) -> Any:
        """The host value of an expression without columns; raises what it raises."""
        return evaluate_constant(expression, context)

    def metrics(self, context: QueryContext) -> Mapping[int, NodeMetrics] | None:
        """What the query that ran with this context did, by ordinal of its plan's nodes."""
        found: QueryMetrics | None = context.metrics
        return None if found is None else found.by_ordinal()

    def close(self) -> None:
        """Stop the workers; running queries end with 57P01 when they are asked for more."""
        self.scheduler.close()

    def _builder(self, context: QueryContext) -> Builder:
        if context.reservation is None:
            limit = int(setting(context, "gpudb.memory_limit", 0)) * 1024
            context.reservation = self.memory.reserve(limit)
        return Builder(context, self.storage, self.system, device=self.device)

    def _is_inline(self, plan: Physical, builder: Builder) -> bool:
        batch_rows = builder.batch_rows
        if batch_rows < BATCH_ROWS_DEFAULT and self.scheduler.threads > 1:
            return builder.leaf_rows <= batch_rows
        return builder.leaf_rows <= INLINE_ROWS_MAX


def _has_volatile(plan: Physical) -> bool:
    return any(is_volatile(item) for node in walk(plan, Physical) for item in _expressions(node))


def _expressions(node: Physical) -> Iterator[Expr]:
    from gpudb.tree import children

    return children(node, Expr)


def result_fields(plan: Physical) -> tuple[ResultField, ...]:
    """The fields of a plan as a client would see them."""
    return tuple(
        ResultField(f.name, f.type.oid, f.type.typmod, f.table_oid, f.attnum) for f in plan.fields
    )
