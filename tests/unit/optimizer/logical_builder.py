"""Logical plans by hand: a few tables, functions and shorthands for tests of rules."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpudb import expr
from gpudb.catalog.objects import ColumnStatistics
from gpudb.expr import Expr, Function, Volatility
from gpudb.optimizer import logical
from gpudb.optimizer.logical import Assignment, Field, JoinKind, Plan
from gpudb.sqltype import BIGINT, BOOL, BOOLEAN, INT4, INT8, INTEGER, SqlType

I = Volatility.IMMUTABLE
OPERATORS: dict[str, tuple[int, str, str, bool]] = {
    "=": (65, "int4eq", "int4eq", False),
    "<>": (144, "int4ne", "int4ne", False),
    "<": (66, "int4lt", "int4lt", False),
    "<=": (149, "int4le", "int4le", False),
    ">": (147, "int4gt", "int4gt", False),
    ">=": (150, "int4ge", "int4ge", False),
    "+": (177, "int4pl", "int4pl", False),
    "*": (141, "int4mul", "int4mul", False),
    "/": (154, "int4div", "int4div", True),
}
"""Integer operators; + and * are declared infallible here, / is not."""


def operator(symbol: str) -> Function:
    oid, name, key, fallible = OPERATORS[symbol]
    result = INT4 if symbol in "+*/" else BOOL
    return Function(oid, name, key, (INT4, INT4), result, True, I, fallible, symbol)


def aggregate_function(name: str) -> Function:
    keys = {"count*": ("count", "count()", ()), "count": ("count", "count(any)", (2276,))}
    real, key, arguments = keys.get(name, (name, f"{name}(int4)", (INT4,)))
    return Function(0, real, key, arguments, INT8, False, I, False)


def window_function(name: str) -> Function:
    return Function(0, name, f"window_{name}", (), INT8, False, I, False)


def call(symbol: str, left: Any, right: Any) -> Expr:
    function = operator(symbol)
    return expr.Call(function, (lift(left), lift(right)), SqlType(function.result_oid))


def lift(value: Any) -> Expr:
    if isinstance(value, Field):
        return value.ref
    if isinstance(value, Expr):
        return value
    return expr.Literal(value, BOOLEAN if isinstance(value, bool) else INTEGER)


def eq(left: Any, right: Any) -> Expr:
    return call("=", left, right)


def both(*parts: Expr) -> Expr:
    return expr.And(parts)


@dataclass
class Table:
    oid: int
    name: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    unique: tuple[tuple[int, ...], ...] = ()
    not_null: frozenset[int] = frozenset()


class Statistics:
    """A StatisticsSource over test tables."""

    def __init__(self, tables: Sequence[Table], rows: Mapping[int, float] | None = None) -> None:
        self.tables = {table.oid: table for table in tables}
        self.counts = dict(rows or {})

    def rows(self, table_oid: int) -> float | None:
        if table_oid in self.counts:
            return self.counts[table_oid]
        table = self.tables.get(table_oid)
        return None if table is None else float(len(table.rows))

    def column(self, table_oid: int, attnum: int) -> ColumnStatistics | None:
        return None

    def unique_keys(self, table_oid: int) -> tuple[tuple[int, ...], ...]:
        table = self.tables.get(table_oid)
        return () if table is None else table.unique

    def is_not_null(self, table_oid: int, attnum: int) -> bool:
        table = self.tables.get(table_oid)
        return table is not None and attnum in table.not_null

    def is_system(self, table_oid: int) -> bool:
        return False

    def table_name(self, table_oid: int) -> str:
        return self.tables[table_oid].name


class Builder:
    """Hands out field ids."""

    def __init__(self) -> None:
        self.ids = itertools.count(1)

    def field(self, name: str, type_: SqlType = INTEGER) -> Field:
        return Field(next(self.ids), name, type_)

    def scan(self, table: Table, alias: str = "") -> logical.Scan:
        fields = tuple(
            Field(next(self.ids), name, INTEGER, table.oid, number)
            for number, name in enumerate(table.columns, 1)
        )
        return logical.Scan(table.oid, table.name, fields, (), alias or table.name)

    def project(self, source: Plan, **expressions: Any) -> logical.Project:
        items = []
        for name, value in expressions.items():
            expression = lift(value)
            if isinstance(value, Field):
                items.append(Assignment(value, expression))
            else:
                items.append(Assignment(self.field(name, expression.type), expression))
        return logical.Project(source, tuple(items))

    def one_row(self) -> logical.Values:
        return logical.Values((), ((),))

    def aggregate(
        self, source: Plan, keys: Sequence[Any] = (), **items: tuple[str, Any]
    ) -> logical.Aggregate:
        assignments = tuple(Assignment(self.field("key"), lift(key)) for key in keys)
        made = []
        for name, (function, argument) in items.items():
            arguments = () if function == "count*" else (lift(argument),)
            made.append(
                logical.AggregateItem(
                    self.field(name, BIGINT),
                    expr.AggregateCall(
                        aggregate_function(function),
                        arguments,
                        BIGINT,
                        is_star=function == "count*",
                    ),
                )
            )
        return logical.Aggregate(source, assignments, tuple(made))

    def subquery(self, kind: expr.SubqueryKind, plan: Plan, comparison: Expr | None = None) -> Expr:
        type_ = plan.fields[0].type if kind is expr.SubqueryKind.SCALAR else BOOLEAN
        return expr.Subquery(kind, plan, type_, comparison)

    def apply(
        self, kind: JoinKind, left: Plan, right: Plan, condition: Expr | None = None
    ) -> logical.Apply:
        return logical.Apply(kind, left, right, lift(True) if condition is None else condition)

    def join(
        self, kind: JoinKind, left: Plan, right: Plan, condition: Expr | None = None
    ) -> logical.Join:
        return logical.Join(kind, left, right, lift(True) if condition is None else condition)


Rows = list[tuple[Any, ...]]
Evaluate = Callable[[Plan], Rows]
