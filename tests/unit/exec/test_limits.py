"""Cancel, deadline, memory, back-pressure and sharing of the workers."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from plans import INT4, MemoryStorage, call, context, literal, ref, run

from gpudb import errors
from gpudb.exec.executor import Executor
from gpudb.expr import SortKey
from gpudb.optimizer import physical
from gpudb.optimizer.logical import JoinKind


def table(rows):
    storage = MemoryStorage()
    return storage, storage.add(1, {"a": (INT4, range(rows))})


def endless(storage, scan):
    """A join of so many pairs, none passing, that it does not end by itself."""
    other = storage.add(2, {"b": (INT4, range(20000))})
    condition = call("int4lt", call("int4pl", ref(scan, "a"), ref(other, "b")), literal(-1))
    return physical.NestedLoopJoin(JoinKind.INNER, scan, other, condition)


@pytest.mark.parametrize("threads", [1, 2])
def test_cancel_ends_a_query_soon(threads):
    storage, scan = table(20000)
    executor = Executor(storage, threads=threads)
    query = context(batch_rows=4096)
    stream = executor.run(endless(storage, scan), query)
    query.cancel.cancel()
    started = time.monotonic()
    with pytest.raises(errors.QueryCanceled):
        stream.next()
    assert time.monotonic() - started < 1.0
    executor.close()


def test_deadline():
    storage, scan = table(20000)
    executor = Executor(storage, threads=2)
    query = context(batch_rows=4096)
    query.deadline = time.monotonic() + 0.05
    with pytest.raises(errors.QueryCanceled, match="statement timeout"):
        list(executor.run(endless(storage, scan), query))
    executor.close()


def test_memory_limit_names_the_setting():
    storage, scan = table(100_000)
    with pytest.raises(errors.OutOfMemory) as problem:
        run(physical.Sort(scan, (SortKey(ref(scan, "a")),)), storage, memory_limit=100)
    assert "gpudb.memory_limit" in problem.value.hint


def test_memory_is_given_back():
    storage, scan = table(10_000)
    executor = Executor(storage, threads=2)
    for threads_rows in (100, 262144):
        plan = physical.Sort(scan, (SortKey(ref(scan, "a")),))
        assert sum(b.rows for b in executor.run(plan, context(batch_rows=threads_rows))) == 10_000
    assert executor.memory.used_bytes == 0
    executor.close()


def test_a_slow_client_does_not_hold_the_workers():
    storage, scan = table(20_000)
    executor = Executor(storage, threads=2)
    slow = [executor.run(scan, context(batch_rows=10)) for _ in range(4)]
    assert all(stream.next().rows == 10 for stream in slow)
    time.sleep(0.05)
    assert sum(b.rows for b in executor.run(scan, context(batch_rows=100))) == 20_000
    assert sum(b.rows for b in slow[0]) == 19_990
    executor.close()
    with pytest.raises(errors.AdminShutdown):
        list(slow[1])


def test_limit_stops_the_source():
    storage, scan = table(20_000)
    plan = physical.Limit(scan, literal(5), None)
    limited = replace(plan)
    executor = Executor(storage, threads=2)
    query = context(batch_rows=10)
    assert sum(b.rows for b in executor.run(limited, query)) == 5
    found = query.metrics.find(scan)
    assert found is not None
    assert found.batches < 100
    executor.close()


def test_metrics_count_rows():
    storage, scan = table(100)
    executor = Executor(storage, threads=1)
    query = context()
    kept = physical.Filter(scan, (call("int4lt", ref(scan, "a"), literal(10)),))
    list(executor.run(kept, query))
    assert query.metrics.find(kept).rows == 10
    assert query.metrics.find(scan).rows == 100
    assert [found.rows for _, found in sorted(executor.metrics(query).items())] == [10, 100]
    executor.close()
