"""Placement of dynamic filters: a finished build side tells scans below the probe which keys exist.

A filter is advice: a scan that drops rows whose key the build side lacks changes no result, and
one that ignores it is right too. So a filter goes only where every row that it removes would have
found no partner: down the probe side of INNER, SEMI and RIGHT joins, to the scan that the key
column comes from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from gpudb import expr
from gpudb.expr import Expr
from gpudb.optimizer import physical
from gpudb.optimizer.estimate import Estimator
from gpudb.optimizer.logical import Assignment, JoinKind, SetKind
from gpudb.optimizer.physical import Physical
from gpudb.tree import map_children

BUILD_ROWS_MAX = 4_000_000.0
"""A larger build side is not worth a filter."""
USEFUL_SHARE = 0.7
"""The build side must be expected to hold less than this share of the scanned column's values."""

_PUBLISHING = frozenset({JoinKind.INNER, JoinKind.SEMI, JoinKind.RIGHT})

Targets = dict[int, list[tuple[int, int]]]
"""(filter id, field id) pairs by id() of the scan."""


class _Placement:
    def __init__(self, estimator: Estimator) -> None:
        self.estimator = estimator
        self.next_id = 1
        self.targets: Targets = {}
        self.published: dict[int, list[tuple[int, int]]] = {}

    def visit(self, node: Physical) -> None:
        if isinstance(node, physical.HashJoin) and node.kind in _PUBLISHING:
            self._publish(node)
        for child in node.inputs:
            self.visit(child)

    def _publish(self, node: physical.HashJoin) -> None:
        if node.build.estimate.rows > BUILD_ROWS_MAX:
            return
        for index, key in enumerate(node.probe_keys):
            if not isinstance(key, expr.ColumnRef) or node.null_safe[index]:
                continue
            if key.type != node.build_keys[index].type and (
                key.type.oid != node.build_keys[index].type.oid
            ):
                continue
            wanted = self._useful(node, index, _scans(node.probe, key.id))
            if not wanted:
                continue
            filter_id, self.next_id = self.next_id, self.next_id + 1
            self.published.setdefault(id(node), []).append((filter_id, index))
            for scan, item in wanted:
                self.targets.setdefault(id(scan), []).append((filter_id, item))

    def _useful(
        self, node: physical.HashJoin, index: int, found: list[tuple[physical.TableScan, int]]
    ) -> list[tuple[physical.TableScan, int]]:
        """The scans of which the build side's key values are expected to remove rows."""
        held = self.estimator.distinct(node.build_keys[index], node.build.estimate.rows)
        wanted = []
        for scan, item in found:
            column = next(field for field in scan.fields if field.id == item)
            rows = self.estimator.table_rows(scan.table_oid)
            if held < USEFUL_SHARE * self.estimator.distinct(column.ref, rows):
                wanted.append((scan, item))
        return wanted

    def rebuild(self, node: Physical) -> Physical:
        changed: Physical = map_children(node, Physical, self.rebuild)
        if id(node) in self.targets:
            filters = tuple(self.targets[id(node)])
            return _with_filters(changed, filters)
        if id(node) in self.published:
            filters = tuple(self.published[id(node)])
            return _with_filters(changed, filters)
        return changed


def _with_filters(node: Physical, filters: tuple[tuple[int, int], ...]) -> Physical:
    assert isinstance(node, physical.TableScan | physical.HashJoin)
    return dataclasses.replace(node, dynamic_filters=filters)


def _renamed(assignments: Sequence[Assignment], wanted: int) -> int | None:
    for item in assignments:
        if item.field.id == wanted:
            source = item.expression
            return source.id if isinstance(source, expr.ColumnRef) else None
    return None


def _has_column(expressions: Sequence[Expr], wanted: int) -> bool:
    return any(isinstance(item, expr.ColumnRef) and item.id == wanted for item in expressions)


def _scans(node: Physical, wanted: int) -> list[tuple[physical.TableScan, int]]:
    """The scans whose column becomes ``wanted`` in ``node``'s output, row by row removable."""
    match node:
        case physical.TableScan():
            return [(node, wanted)] if any(f.id == wanted for f in node.fields) else []
        case physical.Filter() | physical.Sort():
            return _scans(node.input, wanted)
        case physical.Project():
            source = _renamed(node.assignments, wanted)
            return [] if source is None else _scans(node.input, source)
        case physical.HashAggregate():
            if node.grouping_sets:
                return []
            source = _renamed(node.keys, wanted)
            return [] if source is None else _scans(node.input, source)
        case physical.DistinctOn():
            return _scans(node.input, wanted) if _has_column(node.on, wanted) else []
        case physical.Window():
            return _scans(node.input, wanted) if _has_column(node.partition_by, wanted) else []
        case physical.SetOperation() if node.kind is SetKind.UNION:
            position = [item.id for item in node.fields].index(wanted)
            left, right = node.left.fields[position].id, node.right.fields[position].id
            return _scans(node.left, left) + _scans(node.right, right)
        case physical.HashJoin() | physical.NestedLoopJoin():
            return _scans_below_join(node, wanted)
        case _:
            return []


def _scans_below_join(
    node: physical.HashJoin | physical.NestedLoopJoin, wanted: int
) -> list[tuple[physical.TableScan, int]]:
    if any(item.id == wanted for item in node.probe.fields):
        is_kept = node.kind in (JoinKind.RIGHT, JoinKind.FULL)
        return [] if is_kept else _scans(node.probe, wanted)
    if node.kind in (JoinKind.INNER, JoinKind.RIGHT):
        return _scans(node.build, wanted)
    return []


def place_dynamic_filters(plan: Physical, estimator: Estimator) -> Physical:
    """The plan with filter ids on hash joins and the scans they reach."""
    placement = _Placement(estimator)
    placement.visit(plan)
    return placement.rebuild(plan) if placement.targets else plan
