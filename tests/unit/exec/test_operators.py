"""Operators end to end, at hostile batch sizes, inline and on workers."""

from __future__ import annotations

from decimal import Decimal

import pytest
from plans import (
    BOOL,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    MemoryStorage,
    aggregate,
    call,
    literal,
    new_field,
    ref,
    run,
)

from gpudb import errors
from gpudb.expr import SortKey
from gpudb.optimizer import physical
from gpudb.optimizer.logical import Assignment, JoinKind, SetKind

CONFIGURATIONS = [(1, 1), (1, 3), (2, 1), (2, 2), (2, 7), (1, 262144), (2, 262144)]


@pytest.fixture(params=CONFIGURATIONS, ids=lambda c: f"threads{c[0]}-rows{c[1]}")
def how(request):
    threads, rows = request.param
    return {"threads": threads, "batch_rows": rows}


@pytest.fixture
def storage():
    return MemoryStorage()


def numbers(storage, values, oid=1, name="a", type=INT4):
    return storage.add(oid, {name: (type, values)})


def test_values(how):
    fields = (new_field("a", INT4), new_field("b", TEXT))
    rows = tuple((literal(i), literal(None if i == 2 else f"t{i}", TEXT)) for i in range(5))
    plan = physical.ValuesScan(fields, rows)
    assert run(plan, **how) == [(0, "t0"), (1, "t1"), (2, None), (3, "t3"), (4, "t4")]


def test_filter_project(storage, how):
    scan = numbers(storage, [5, None, 3, 8, 1, 9])
    a = ref(scan, "a")
    kept = physical.Filter(scan, (call("int4gt", a, literal(2)), call("int4lt", a, literal(9))))
    out = new_field("b", INT4)
    plan = physical.Project(kept, (Assignment(out, call("int4pl", a, a)),))
    assert run(plan, storage, **how) == [(10,), (6,), (16,)]


def test_scan_filters(storage, how):
    scan = storage.add(1, {"a": (INT4, [1, 2, 3, 4]), "b": (TEXT, ["x", "y", None, "z"])})
    from dataclasses import replace

    plan = replace(scan, filters=(call("int4ge", ref(scan, "a"), literal(2)),))
    assert run(plan, storage, **how) == [(2, "y"), (3, None), (4, "z")]


def test_group_by(storage, how):
    scan = storage.add(1, {
        "g": (TEXT, ["x", "y", None, "x", "y", "x", None]),
        "v": (INT4, [1, 2, 3, None, 5, 6, 7]),
    })
    key = Assignment(new_field("g", TEXT), ref(scan, "g"))
    v = ref(scan, "v")
    items = (
        aggregate("count", type=INT8), aggregate("count", v, type=INT8, declared="any"),
        aggregate("sum", v, type=INT8), aggregate("avg", v, type=NUMERIC),
        aggregate("min", v, type=INT4), aggregate("max", v, type=INT4),
    )
    plan = physical.HashAggregate(scan, (key,), items)
    assert run(plan, storage, **how) == [
        ("x", 3, 2, 7, Decimal("3.5000000000000000"), 1, 6),
        ("y", 2, 2, 7, Decimal("3.5000000000000000"), 2, 5),
        (None, 2, 2, 10, Decimal("5.0000000000000000"), 3, 7),
    ]


def test_aggregate_without_rows(storage, how):
    scan = numbers(storage, [])
    a = ref(scan, "a")
    items = (
        aggregate("count", type=INT8), aggregate("sum", a, type=INT8),
        aggregate("avg", a, type=NUMERIC), aggregate("min", a, type=INT4),
    )
    assert run(physical.HashAggregate(scan, (), items), storage, **how) == [(0, None, None, None)]
    key = Assignment(new_field("a", INT4), a)
    assert run(physical.HashAggregate(scan, (key,), items), storage, **how) == []


def test_distinct_and_filter_in_aggregates(storage, how):
    scan = numbers(storage, [3, 1, 3, None, 2, 1])
    a = ref(scan, "a")
    positive = call("int4gt", a, literal(1))
    items = (
        aggregate("count", a, type=INT8, declared="any", is_distinct=True),
        aggregate("sum", a, type=INT8, is_distinct=True),
        aggregate("count", type=INT8, filter=positive),
        aggregate("sum", a, type=INT8, filter=positive),
    )
    assert run(physical.HashAggregate(scan, (), items), storage, **how) == [(3, 6, 3, 8)]


def test_grouping_sets(storage, how):
    scan = storage.add(1, {"a": (INT4, [1, 1, 2]), "b": (INT4, [5, 6, 5])})
    keys = tuple(Assignment(new_field(n, INT4), ref(scan, n)) for n in "ab")
    plan = physical.HashAggregate(
        scan, keys, (aggregate("count", type=INT8),), grouping_sets=((0, 1), (0,), ())
    )
    assert run(plan, storage, **how) == [
        (1, 5, 1), (1, 6, 1), (2, 5, 1), (1, None, 2), (2, None, 1), (None, None, 3),
    ]


def join(storage, kind, left, right, *, residual=None, null_aware=False, how=None, safe=()):
    probe = storage.add(1, {"a": (INT4, left), "i": (INT4, range(len(left)))})
    build = storage.add(2, {"b": (INT4, right), "j": (INT4, range(len(right)))})
    mark = new_field("m", BOOL) if kind is JoinKind.MARK else None
    condition = residual(probe, build) if residual else None
    plan = physical.HashJoin(
        kind, probe, build, (ref(probe, "a"),), (ref(build, "b"),), residual=condition,
        mark=mark, is_null_aware=null_aware, null_safe=safe,
    )
    return run(plan, storage, **how)


LEFT = [1, 2, None, 2, 7, 3]
RIGHT = [2, None, 2, 3, 9]


def expected_join(kind):
    pairs = [
        (a, i, b, j) for i, a in enumerate(LEFT) for j, b in enumerate(RIGHT)
        if a is not None and a == b
    ]
    alone_left = [
        (a, i, None, None) for i, a in enumerate(LEFT) if i not in {p[1] for p in pairs}
    ]
    alone_right = [
        (None, None, b, j) for j, b in enumerate(RIGHT) if j not in {p[3] for p in pairs}
    ]
    found = list(pairs)
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        found += alone_left
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        found += alone_right
    return sorted(found, key=repr)


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL])
def test_join_kinds(storage, how, kind):
    assert sorted(join(storage, kind, LEFT, RIGHT, how=how), key=repr) == expected_join(kind)


def test_semi_anti_mark(storage, how):
    found = join(storage, JoinKind.SEMI, LEFT, RIGHT, how=how)
    assert found == [(2, 1), (2, 3), (3, 5)]
    found = join(storage, JoinKind.ANTI, LEFT, RIGHT, how=how)
    assert found == [(1, 0), (None, 2), (7, 4)]
    found = join(storage, JoinKind.MARK, LEFT, RIGHT, null_aware=True, how=how)
    assert [row[2] for row in found] == [None, True, None, True, None, True]
    found = join(storage, JoinKind.MARK, [1, None], [2], null_aware=True, how=how)
    assert [row[2] for row in found] == [False, None]
    found = join(storage, JoinKind.MARK, [1, None], [], null_aware=True, how=how)
    assert [row[2] for row in found] == [False, False]


def test_single(storage, how):
    assert join(storage, JoinKind.SINGLE, [1, 2], [2, 3], how=how) == [
        (1, 0, None, None), (2, 1, 2, 0),
    ]
    with pytest.raises(errors.CardinalityViolation):
        join(storage, JoinKind.SINGLE, [1, 2], [2, 2], how=how)


def test_null_safe(storage, how):
    found = join(storage, JoinKind.INNER, [None, 1], [1, None, None], safe=(True,), how=how)
    assert sorted(found, key=repr) == [(1, 1, 1, 0), (None, 0, None, 1), (None, 0, None, 2)]


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL, JoinKind.SEMI])
def test_residual(storage, how, kind):
    def residual(probe, build):
        return call("int4lt", ref(probe, "i"), ref(build, "j"))

    found = join(storage, kind, [2, 2, 5], [2, 2, 2], residual=residual, how=how)
    pairs = [(2, 0, 2, 1), (2, 0, 2, 2), (2, 1, 2, 2)]
    wanted = {
        JoinKind.INNER: pairs,
        JoinKind.LEFT: [*pairs, (5, 2, None, None)],
        JoinKind.FULL: [*pairs, (5, 2, None, None), (None, None, 2, 0)],
        JoinKind.SEMI: [(2, 0), (2, 1)],
    }[kind]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)


@pytest.mark.parametrize("kind", list(JoinKind))
def test_nested_loop(storage, how, kind):
    probe = storage.add(1, {"a": (INT4, [1, 3, None])})
    build = storage.add(2, {"b": (INT4, [2, 4, None])})
    mark = new_field("m", BOOL) if kind is JoinKind.MARK else None
    condition = call("int4lt", ref(probe, "a"), ref(build, "b"))
    plan = physical.NestedLoopJoin(kind, probe, build, condition, mark=mark)
    if kind is JoinKind.SINGLE:
        with pytest.raises(errors.CardinalityViolation):
            run(plan, storage, **how)
        return
    pairs = [(1, 2), (1, 4), (3, 4)]
    wanted = {
        JoinKind.INNER: pairs,
        JoinKind.LEFT: [*pairs, (None, None)],
        JoinKind.RIGHT: [*pairs, (None, None)],
        JoinKind.FULL: [*pairs, (None, None), (None, None)],
        JoinKind.SEMI: [(1,), (3,)],
        JoinKind.ANTI: [(None,)],
        JoinKind.MARK: [(1, True), (3, True), (None, None)],
    }[kind]
    assert sorted(run(plan, storage, **how), key=repr) == sorted(wanted, key=repr)


def test_sort_limit(storage, how):
    scan = storage.add(1, {"a": (INT4, [3, None, 1, 2, 3]), "b": (TEXT, list("vwxyz"))})
    a, b = ref(scan, "a"), ref(scan, "b")
    up = physical.Sort(scan, (SortKey(a), SortKey(b, is_descending=True)))
    assert run(up, storage, **how) == [(1, "x"), (2, "y"), (3, "z"), (3, "v"), (None, "w")]
    down = physical.Sort(scan, (SortKey(a, True, True),))
    assert run(down, storage, **how) == [(None, "w"), (3, "v"), (3, "z"), (2, "y"), (1, "x")]
    limit = physical.Limit(up, literal(2, INT8), literal(1, INT8))
    assert run(limit, storage, **how) == [(2, "y"), (3, "z")]
    ties = physical.Limit(physical.Sort(scan, (SortKey(a),)), literal(3, INT8), None, (SortKey(a),))
    assert [row[0] for row in run(ties, storage, **how)] == [1, 2, 3, 3]
    top = physical.TopN(scan, (SortKey(a),), literal(2, INT8), literal(1, INT8))
    assert run(top, storage, **how) == [(2, "y"), (3, "v")]
    plain = physical.Limit(scan, literal(2, INT8), None)
    assert run(plain, storage, **how) == [(3, "v"), (None, "w")]


def test_distinct_on(storage, how):
    scan = storage.add(1, {"a": (INT4, [1, 1, None, 2, None]), "b": (INT4, [1, 2, 3, 4, 5])})
    plan = physical.DistinctOn(scan, (ref(scan, "a"),))
    assert run(plan, storage, **how) == [(1, 1), (None, 3), (2, 4)]


@pytest.mark.parametrize(("kind", "is_all", "wanted"), [
    (SetKind.UNION, True, [1, 2, 2, None, 2, None, None]),
    (SetKind.INTERSECT, False, [2, None]),
    (SetKind.INTERSECT, True, [2, None]),
    (SetKind.EXCEPT, False, [1]),
    (SetKind.EXCEPT, True, [1, 2]),
])
def test_set_operations(storage, how, kind, is_all, wanted):
    left = numbers(storage, [1, 2, 2, None], 1)
    right = numbers(storage, [2, None, None], 2)
    plan = physical.SetOperation(kind, is_all, left, right, (new_field("a", INT4),))
    assert [row[0] for row in run(plan, storage, **how)] == wanted


def test_errors_reach_the_consumer(storage, how):
    scan = numbers(storage, [1, 0, 2])
    quotient = call("int4div", literal(1), ref(scan, "a"))
    plan = physical.Project(scan, (Assignment(new_field("q", INT4), quotient),))
    with pytest.raises(errors.DivisionByZero):
        run(plan, storage, **how)


def test_back_pressure_and_early_stop(storage):
    scan = numbers(storage, list(range(1000)))
    from plans import context

    from gpudb.exec.executor import Executor

    executor = Executor(storage, threads=2)
    stream = executor.run(scan, context(batch_rows=1))
    assert stream.next().rows == 1
    stream.close()
    executor.close()


def test_large_result_in_order(storage):
    scan = numbers(storage, list(range(5000)))
    assert run(scan, storage, threads=2, batch_rows=7) == [(i,) for i in range(5000)]
