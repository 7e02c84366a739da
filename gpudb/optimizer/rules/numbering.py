"""LIMIT and OFFSET by row numbers: for each value of some columns, or with computed bounds."""

from __future__ import annotations

from collections.abc import Sequence

from gpudb.expr import (
    DEFAULT_FRAME,
    Call,
    Coalesce,
    ColumnRef,
    Expr,
    Function,
    Literal,
    SortKey,
    WindowCall,
)
from gpudb.optimizer import functions, logical
from gpudb.optimizer.logical import Field, Plan
from gpudb.optimizer.properties import conjoin
from gpudb.optimizer.rules.context import RuleContext
from gpudb.optimizer.rules.shape import exactly
from gpudb.sqltype import BIGINT, BOOLEAN

_MOST = Literal(2**62, BIGINT)
_ZERO = Literal(0, BIGINT)


def sort_keys(plan: Plan) -> tuple[SortKey, ...]:
    """The order of a plan's rows, if it is sorted (or projects something sorted)."""
    while isinstance(plan, logical.Project):
        plan = plan.input
    return plan.keys if isinstance(plan, logical.Sort) else ()


class Numbering:
    """The row numbers that a limit needs; ``tests`` are what its rows pass."""

    def __init__(
        self, limit: logical.Limit, order: tuple[SortKey, ...], context: RuleContext
    ) -> None:
        self._limit = limit
        self._order = order
        self._context = context
        self._items: list[logical.WindowItem] = []
        self.tests: list[Expr] = []

    def _number(self, function: Function, keys: Sequence[Field]) -> ColumnRef:
        field = self._context.new_field("number", BIGINT)
        partition = tuple(key.ref for key in keys)
        call = WindowCall(function, (), BIGINT, partition, self._order, DEFAULT_FRAME)
        self._items.append(logical.WindowItem(field, call))
        return field.ref

    def over(self, source: Plan, keys: Sequence[Field]) -> Plan:
        """``source`` with the numbers as columns; makes the tests."""
        limit, offset = self._limit.limit, self._limit.offset
        first: Expr = _ZERO if offset is None else Coalesce((offset, _ZERO), BIGINT)
        number = self._number(functions.ROW_NUMBER, keys)
        if offset is not None:
            self.tests.append(Call(functions.INT8_GT, (number, first), BOOLEAN))
        if limit is not None:
            last = number
            if self._limit.with_ties:
                last = self._number(functions.RANK, keys)
            end: Expr = Coalesce((limit, _MOST), BIGINT)
            if offset is not None:
                end = Call(functions.INT8_PL, (end, first), BIGINT)
            self.tests.append(Call(functions.INT8_LE, (last, end), BOOLEAN))
        return logical.Window(source, tuple(self._items))


def limited(
    limit: logical.Limit, source: Plan, keys: Sequence[Field], context: RuleContext
) -> Plan:
    """The rows of ``source`` that the limit lets through for each value of ``keys``."""
    numbering = Numbering(limit, sort_keys(source), context)
    numbered = numbering.over(source, keys)
    return exactly(logical.Filter(numbered, conjoin(numbering.tests)), source.fields)
