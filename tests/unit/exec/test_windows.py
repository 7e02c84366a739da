"""Window functions against a plain Python reference."""

from __future__ import annotations

import random

import pytest
from plans import FLOAT8, INT4, INT8, TEXT, MemoryStorage, literal, new_field, ref, run

from gpudb.catalog import types
from gpudb.expr import (
    DEFAULT_FRAME,
    BoundKind,
    Frame,
    FrameBound,
    FrameExclusion,
    FrameUnit,
    Function,
    SortKey,
    Volatility,
    WindowCall,
)
from gpudb.optimizer import physical
from gpudb.optimizer.logical import WindowItem


def item(
    key, *arguments, type, scan, frame=DEFAULT_FRAME, partition=(), order=(), is_aggregate=False
):
    function = Function(
        0, key, key, tuple(a.type.oid for a in arguments), type.oid, False,
        Volatility.IMMUTABLE, True,
    )
    if is_aggregate:
        names = ",".join(types.get(a.type.oid).name for a in arguments)
        function = Function(
            0, key, f"{key}({names})", function.argument_oids, type.oid, False,
            Volatility.IMMUTABLE, True,
        )
    call = WindowCall(
        function, arguments, type, partition, order, frame, is_aggregate,
        is_star=is_aggregate and not arguments,
    )
    return WindowItem(new_field(key, type), call)


def rows_of(count, seed):
    source = random.Random(seed)
    return [
        (source.choice(["x", "y", None]), source.choice([1, 2, 3, 5, 8, None]),
         source.choice([10, 20, 30, None]))
        for _ in range(count)
    ]


def key_of(value):
    return (value is None, value if value is not None else 0)


def sorted_rows(rows):
    tagged = [(p, o, v) for p, o, v in rows]
    return sorted(tagged, key=lambda r: ((r[0] is None, r[0] or ""), key_of(r[1])))


def frame_rows(part, i, frame):
    """Positions of row i's frame in its partition, by definition."""
    count = len(part)
    peers = [j for j in range(count) if part[j][1] == part[i][1]]
    groups = []
    for j in range(count):
        if not groups or part[groups[-1][0]][1] != part[j][1]:
            groups.append([j])
        else:
            groups[-1].append(j)
    own_group = next(g for g in range(len(groups)) if i in groups[g])

    def inside(j, bound, is_start):
        kind, n = bound.kind, None if bound.offset is None else bound.offset.value
        if kind in (BoundKind.UNBOUNDED_PRECEDING, BoundKind.UNBOUNDED_FOLLOWING):
            return True
        if frame.unit is FrameUnit.ROWS:
            place, here = j, i
        elif frame.unit is FrameUnit.GROUPS:
            place = next(g for g in range(len(groups)) if j in groups[g])
            here = own_group
        else:
            return in_range(j, kind, n, is_start)
        edge = here + {BoundKind.CURRENT_ROW: 0, BoundKind.PRECEDING: -(n or 0)}.get(kind, n or 0)
        return place >= edge if is_start else place <= edge

    def in_range(j, kind, n, is_start):
        mine, other = part[i][1], part[j][1]
        if kind is BoundKind.CURRENT_ROW:
            return j >= peers[0] if is_start else j <= peers[-1]
        if mine is None:
            return j >= peers[0] if is_start else j <= peers[-1]
        edge = mine - n if kind is BoundKind.PRECEDING else mine + n
        if other is None:
            return is_start
        return other >= edge if is_start else other <= edge

    found = [
        j for j in range(count) if inside(j, frame.start, True) and inside(j, frame.end, False)
    ]
    excluded = {
        FrameExclusion.NO_OTHERS: set(), FrameExclusion.CURRENT_ROW: {i},
        FrameExclusion.GROUP: set(peers), FrameExclusion.TIES: set(peers) - {i},
    }[frame.exclusion]
    return [j for j in found if j not in excluded]


def bound(kind, n=None):
    return FrameBound(kind, None if n is None else literal(n, INT8))


UNBOUNDED, CURRENT = bound(BoundKind.UNBOUNDED_PRECEDING), bound(BoundKind.CURRENT_ROW)
FRAMES = [
    DEFAULT_FRAME,
    Frame(FrameUnit.ROWS, UNBOUNDED, CURRENT),
    Frame(FrameUnit.ROWS, bound(BoundKind.PRECEDING, 2), bound(BoundKind.FOLLOWING, 1)),
    Frame(FrameUnit.ROWS, bound(BoundKind.FOLLOWING, 1), bound(BoundKind.UNBOUNDED_FOLLOWING)),
    Frame(FrameUnit.ROWS, bound(BoundKind.PRECEDING, 3), bound(BoundKind.PRECEDING, 2)),
    Frame(FrameUnit.GROUPS, bound(BoundKind.PRECEDING, 1), bound(BoundKind.FOLLOWING, 1)),
    Frame(FrameUnit.GROUPS, bound(BoundKind.FOLLOWING, 1), bound(BoundKind.FOLLOWING, 2)),
    Frame(FrameUnit.RANGE, bound(BoundKind.PRECEDING, 1), bound(BoundKind.FOLLOWING, 2)),
    Frame(FrameUnit.RANGE, CURRENT, bound(BoundKind.UNBOUNDED_FOLLOWING)),
    Frame(FrameUnit.ROWS, UNBOUNDED, bound(BoundKind.UNBOUNDED_FOLLOWING),
          FrameExclusion.CURRENT_ROW),
    Frame(FrameUnit.ROWS, bound(BoundKind.PRECEDING, 2), bound(BoundKind.FOLLOWING, 2),
          FrameExclusion.GROUP),
    Frame(FrameUnit.RANGE, UNBOUNDED, CURRENT, FrameExclusion.TIES),
]


@pytest.mark.parametrize("number", range(len(FRAMES)))
@pytest.mark.parametrize("batch_rows", [1, 3, 1000])
def test_frames(number, batch_rows):
    frame = FRAMES[number]
    rows = rows_of(40, number)
    storage = MemoryStorage()
    scan = storage.add(1, {
        "p": (TEXT, [r[0] for r in rows]), "o": (INT4, [r[1] for r in rows]),
        "v": (INT4, [r[2] for r in rows]),
    })
    p, o, v = (ref(scan, n) for n in "pov")
    common = {
        "scan": scan, "frame": frame, "partition": (p,), "order": (SortKey(o),),
    }
    items = (
        item("count", type=INT8, is_aggregate=True, **common),
        item("sum", v, type=INT8, is_aggregate=True, **common),
        item("min", v, type=INT4, is_aggregate=True, **common),
        item("max", v, type=INT4, is_aggregate=True, **common),
        item("window_first_value", v, type=INT4, **common),
        item("window_last_value", v, type=INT4, **common),
        item("window_nth_value", v, literal(2), type=INT4, **common),
    )
    plan = physical.Window(scan, (p,), (SortKey(o),), items)
    found = run(plan, storage, batch_rows=batch_rows)
    ordered = sorted_rows(rows)
    assert [r[:3] for r in found] == ordered
    for row, wanted in zip(found, expected(ordered, frame), strict=True):
        assert row[3:] == wanted


def expected(ordered, frame):
    for p in ("x", "y", None):
        part = [r for r in ordered if r[0] == p]
        for i in range(len(part)):
            inside = frame_rows(part, i, frame)
            values = [part[j][2] for j in inside]
            some = [value for value in values if value is not None]
            yield (
                len(inside), sum(some) if some else None, min(some, default=None),
                max(some, default=None), values[0] if values else None,
                values[-1] if values else None, values[1] if len(values) > 1 else None,
            )


def test_ranking():
    storage = MemoryStorage()
    scan = storage.add(1, {"o": (INT4, [3, 1, 1, 2, 3])})
    o = ref(scan, "o")
    common = {"scan": scan, "order": (SortKey(o),)}
    items = (
        item("window_row_number", type=INT8, **common),
        item("window_rank", type=INT8, **common),
        item("window_dense_rank", type=INT8, **common),
        item("window_percent_rank", type=FLOAT8, **common),
        item("window_cume_dist", type=FLOAT8, **common),
        item("window_ntile", literal(2), type=INT4, **common),
        item("window_lag", o, type=INT4, **common),
        item("window_lead_with_offset_and_default", o, literal(2), literal(0), type=INT4, **common),
    )
    plan = physical.Window(scan, (), (SortKey(o),), items)
    assert run(plan, storage) == [
        (1, 1, 1, 1, 0.0, 0.4, 1, None, 2),
        (1, 2, 1, 1, 0.0, 0.4, 1, 1, 3),
        (2, 3, 3, 2, 0.5, 0.6, 1, 1, 3),
        (3, 4, 4, 3, 0.75, 1.0, 2, 2, 0),
        (3, 5, 4, 3, 0.75, 1.0, 2, 3, 0),
    ]
