"""Invariants of physical plans, checked for every statement; a violation is our own defect."""

from __future__ import annotations

from collections.abc import Iterable

from gpudb import expr
from gpudb.expr import Expr, SortKey
from gpudb.optimizer import physical
from gpudb.optimizer.logical import Field, JoinKind
from gpudb.optimizer.physical import Physical
from gpudb.sqltype import BOOL, INTEGERS
from gpudb.tree import children

MAXIMUM_DEPTH = 900
"""Plans nested deeper are refused before recursion limits would be."""


class _Verifier:
    """``produced`` are ids already made by some node: making one twice is an error."""

    def __init__(self, root: Physical) -> None:
        self.root = root
        self.produced: set[int] = set()
        self.shared: dict[int, int] = {}
        self.tables: dict[int, int] = {}

    def fail(self, node: Physical, message: str) -> None:
        from gpudb.optimizer import explain

        raise AssertionError(f"{message} in {type(node).__name__}\n{explain.text(self.root)}")

    def check(self, node: Physical, depth: int = 0) -> frozenset[int]:
        """The ids that ``node`` yields."""
        if depth > MAXIMUM_DEPTH:
            self.fail(node, "plan too deep")
        if isinstance(node, physical.With):
            for item in node.shared:
                self.check(item.plan, depth + 1)
                self.shared[item.id] = len(item.plan.fields)
            return self.check(node.input, depth + 1)
        if isinstance(node, physical.RecursiveUnion):
            self.tables[node.id] = len(node.fields)
        inputs = [self.check(item, depth + 1) for item in node.inputs]
        supplied = frozenset().union(*inputs)
        self._check_node(node, supplied, inputs)
        yields = frozenset(item.id for item in node.fields)
        if len(yields) != len(node.fields):
            self.fail(node, "a field id is yielded twice")
        for new in yields - supplied:
            if new in self.produced:
                self.fail(node, f"field id {new} is produced twice")
            self.produced.add(new)
        return yields

    def _check_node(
        self, node: Physical, supplied: frozenset[int], inputs: list[frozenset[int]]
    ) -> None:
        match node:
            case physical.TableScan() | physical.SystemScan() | physical.FileScan():
                ids = frozenset(item.id for item in node.fields)
                self._expressions(node, node.filters, ids)
            case physical.InsertRows():
                ids = frozenset(item.id for item in node.fields)
                self._expressions(node, node.checks, ids)
                self._positions(node, node.input.fields, node.fields)
            case physical.HashAggregate():
                # GROUPING names keys of the output, which need not be columns of the input.
                ids = supplied | {key.field.id for key in node.keys}
                self._expressions(node, (key.expression for key in node.keys), supplied)
                for item in node.items:
                    visible = ids if isinstance(item.call, expr.Grouping) else supplied
                    self._expressions(node, children(item, Expr), visible)
            case physical.HashJoin():
                self._hash_join(node, inputs)
            case physical.NestedLoopJoin():
                if node.condition.type.oid != BOOL:
                    self.fail(node, "the condition is not boolean")
                self._expressions(node, (node.condition,), supplied)
                self._mark(node, node.mark)
            case physical.SetOperation():
                self._positions(node, node.left.fields, node.fields)
                self._positions(node, node.right.fields, node.fields)
            case physical.RecursiveUnion():
                self._positions(node, node.base.fields, node.fields)
                self._positions(node, node.step.fields, node.fields)
            case physical.SharedScan():
                if self.shared.get(node.id) != len(node.fields):
                    self.fail(node, f"shared plan {node.id} is unknown or has other columns")
            case physical.WorkTableScan():
                if self.tables.get(node.id) != len(node.fields):
                    self.fail(node, f"work table {node.id} is unknown or has other columns")
            case _:
                self._expressions(node, children(node, Expr), supplied)

    def _expressions(
        self, node: Physical, expressions: Iterable[Expr], supplied: frozenset[int]
    ) -> None:
        for expression in expressions:
            self._expression(node, expression, supplied)

    def _expression(self, node: Physical, expression: Expr, supplied: frozenset[int]) -> None:
        if isinstance(expression, expr.ColumnRef):
            if expression.id not in supplied:
                self.fail(node, f"column {expression.name} #{expression.id} is not supplied")
        elif isinstance(expression, expr.Subquery):
            self.fail(node, "a subquery is left")
        elif not isinstance(expression, expr.Literal):
            for child in children(expression, Expr):
                self._expression(node, child, supplied)

    def _positions(
        self, node: Physical, have: tuple[Field, ...], want: tuple[Field, ...]
    ) -> None:
        if [item.type.oid for item in have] != [item.type.oid for item in want]:
            self.fail(node, "columns do not correspond")

    def _mark(self, node: physical.HashJoin | physical.NestedLoopJoin, mark: Field | None) -> None:
        if (mark is not None) != (node.kind is JoinKind.MARK):
            self.fail(node, "a mark field belongs to mark joins alone")

    def _hash_join(self, node: physical.HashJoin, inputs: list[frozenset[int]]) -> None:
        probe, build = inputs
        self._expressions(node, node.probe_keys, probe)
        self._expressions(node, node.build_keys, build)
        if node.residual is not None:
            self._expression(node, node.residual, probe | build)
        self._mark(node, node.mark)
        count = len(node.probe_keys)
        if not count or count != len(node.build_keys) or count != len(node.null_safe):
            self.fail(node, "keys do not correspond")
        for one, other in zip(node.probe_keys, node.build_keys, strict=True):
            kinds = {one.type.oid, other.type.oid}
            if len(kinds) > 1 and not kinds <= INTEGERS:
                self.fail(node, "key types differ")
        if node.is_null_aware and (node.kind is not JoinKind.MARK or node.residual is not None):
            self.fail(node, "only a mark join without residual is null-aware")
        if node.kind in _PROBE_ONLY and node.is_build_left:
            self.fail(node, "the probe side must be the left one")


_PROBE_ONLY = frozenset({JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK, JoinKind.SINGLE})


def verify(plan: Physical) -> Physical:
    """``plan`` itself; AssertionError with the plan's text when an invariant does not hold."""
    _Verifier(plan).check(plan)
    return plan


def sort_keys(node: Physical) -> tuple[SortKey, ...]:
    """The keys by which a node orders its rows, if it does."""
    match node:
        case physical.Sort() | physical.TopN():
            return node.keys
        case _:
            return ()
