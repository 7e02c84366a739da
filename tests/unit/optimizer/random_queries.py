"""Random nested queries over small tables, as logical plans: correlated in every way there is."""

from __future__ import annotations

import random
from typing import Any

from logical_builder import Builder, Table, call, lift, window_function

from gpudb import expr
from gpudb.expr import Expr, SubqueryKind
from gpudb.optimizer import logical
from gpudb.optimizer.logical import Assignment, Field, JoinKind, Plan, SetKind
from gpudb.sqltype import BIGINT, INT4, INT4_ARRAY, INTEGER, SqlType

COMPARISONS = ("=", "=", "=", "<", ">", "<>", "<=")
JOINS = (JoinKind.INNER, JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)
SERIES = expr.Function(
    1067, "generate_series", "generate_series_int4", (INT4, INT4), INT4, True,
    expr.Volatility.IMMUTABLE, False, returns_set=True,
)


def tables(source: random.Random) -> list[Table]:
    """Three tables with NULLs and duplicates; the last has a key."""
    made = []
    for oid, name in enumerate("rst", 1):
        rows = [
            tuple(source.choice((None, 0, 1, 1, 2, 3)) for _ in range(2))
            for _ in range(source.randint(0, 5))
        ]
        if name == "t":
            rows = [(number, row[1]) for number, row in enumerate(rows)]
        made.append(Table(oid, name, ("a", "b"), rows))
    made[2].unique = ((1,),)
    made[2].not_null = frozenset((1,))
    return made


class Generator:
    """``depth`` bounds nesting; ``is_wild`` allows divisions, which may raise."""

    def __init__(self, seed: int, *, depth: int = 2, is_wild: bool = False) -> None:
        self.is_wild = is_wild
        self.random = random.Random(seed)
        self.builder = Builder()
        self.tables = tables(self.random)
        self.depth = depth

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def integers(self, fields: Any) -> list[Field]:
        return [item for item in fields if item.type.oid in (INT4, 20)]

    def operand(self, own: list[Field], outer: list[Field]) -> Expr:
        pool = own if not outer or (own and self.chance(0.65)) else outer
        if not pool or self.chance(0.15):
            return lift(self.random.randint(0, 3))
        column = self.random.choice(pool).ref
        if self.is_wild and self.chance(0.25):
            divisor = self.random.choice([*own, *outer]).ref
            return call("/", column, divisor)
        if self.chance(0.1):
            return call("+", column, 1)
        if self.chance(0.05):
            return expr.Coalesce((column, lift(1)), INTEGER)
        return column

    def comparison(self, own: list[Field], outer: list[Field]) -> Expr:
        symbol = self.random.choice(COMPARISONS)
        left = self.operand(own, [])
        right = self.operand(own, outer)
        made = call(symbol, left, right)
        if self.chance(0.08):
            return expr.IsNull(left, self.chance(0.5))
        if self.chance(0.08):
            return expr.Or((made, call("=", self.operand(own, outer), 1)))
        return made

    def predicate(self, own: list[Field], outer: list[Field], depth: int) -> Expr:
        parts = [self.comparison(own, outer) for _ in range(self.random.randint(1, 2))]
        if depth > 0 and self.chance(0.7):
            inner = self.subquery_test(own, [*own, *outer], depth)
            if self.chance(0.25):
                inner = expr.Or((inner, self.comparison(own, outer)))
            if self.chance(0.2):
                inner = expr.Not(inner)
            parts.append(inner)
        self.random.shuffle(parts)
        return parts[0] if len(parts) == 1 else expr.And(tuple(parts))

    def subquery_test(self, own: list[Field], outer: list[Field], depth: int) -> Expr:
        choice = self.random.choice(("exists", "any", "any", "all", "scalar"))
        if choice == "scalar":
            value = self.scalar(outer, depth - 1)
            return call(self.random.choice(COMPARISONS), self.operand(own, []), value)
        plan = self.query(outer, depth - 1)
        if choice == "exists":
            return self.builder.subquery(SubqueryKind.EXISTS, plan)
        first = self.integers(plan.fields)[0]
        symbol = self.random.choice(COMPARISONS)
        comparison = call(symbol, self.operand(own, []), first)
        kind = SubqueryKind.ANY if choice == "any" else SubqueryKind.ALL
        return self.builder.subquery(kind, plan, comparison)

    def scalar(self, outer: list[Field], depth: int) -> Expr:
        """A scalar subquery: of one row, or (seldom) of any number."""
        plan = self.query(outer, depth, scalar=not self.chance(0.2))
        if len(plan.fields) != 1:
            first = self.integers(plan.fields)[0]
            plan = logical.Project(plan, (Assignment(first, first.ref),))
        return expr.Subquery(SubqueryKind.SCALAR, plan, plan.fields[0].type)

    def source(self, outer: list[Field], depth: int) -> Plan:
        plan: Plan = self.leaf(outer)
        while self.chance(0.35):
            kind = self.random.choice(JOINS)
            is_lateral = depth > 0 and self.chance(0.4) and kind in (
                JoinKind.INNER, JoinKind.LEFT
            )
            own = self.integers(plan.fields)
            if is_lateral:
                right = self.query([*own, *outer], depth - 1)
            else:
                right = self.leaf(outer) if self.chance(0.7) else self.query(outer, 0)
            columns = [*own, *self.integers(right.fields)]
            condition = self.comparison(columns, outer if kind is not JoinKind.FULL else [])
            if self.chance(0.2):
                condition = lift(True)
            make = self.builder.apply if is_lateral else self.builder.join
            plan = make(kind, plan, right, condition)
        return plan

    def leaf(self, outer: list[Field]) -> Plan:
        if outer and self.chance(0.08):
            field = self.builder.field("n")
            arguments = (lift(0), self.random.choice(outer).ref)
            series = expr.Call(SERIES, arguments, INTEGER)
            ordinality = self.builder.field("o", BIGINT) if self.chance(0.3) else None
            return logical.TableFunction((series,), ((field,),), ordinality)
        if self.chance(0.07):
            columns = (self.builder.field("v"),)
            rows = tuple((self.operand([], outer),) for _ in range(self.random.randint(1, 2)))
            return logical.Values(columns, rows)
        return self.builder.scan(self.random.choice(self.tables))

    def query(self, outer: list[Field], depth: int, *, scalar: bool = False) -> Plan:
        """A query block; ``scalar``: one row and one column at most."""
        plan = self.source(outer, depth)
        if self.chance(0.75):
            own = self.integers(plan.fields)
            plan = logical.Filter(plan, self.predicate(own, outer, depth))
        if scalar:
            if self.chance(0.75):
                return self.finished_scalar(plan, outer, depth)
            return self.limited(self.projected(plan, outer, depth, count=1), lift(1))
        if self.chance(0.2):
            plan = self.grouped(plan, outer)
        elif self.chance(0.1):
            plan = self.windowed(plan, outer)
        plan = self.projected(plan, outer, depth)
        if self.chance(0.15):
            plan = logical.Distinct(plan)
        if depth > 0 and self.chance(0.15):
            plan = self.combined(plan, outer, depth)
        if self.chance(0.15):
            limit = lift(self.random.randint(0, 2))
            plan = self.limited(plan, limit)
        return plan

    def finished_scalar(self, plan: Plan, outer: list[Field], depth: int) -> Plan:
        own = self.integers(plan.fields)
        name = self.random.choice(("count*", "count", "sum", "min", "max"))
        argument = self.operand(own, outer if self.chance(0.2) else [])
        grouped = self.builder.aggregate(plan, v=(name, argument))
        result: Plan = grouped
        field = grouped.items[0].field
        if self.chance(0.15):
            result = logical.Filter(result, self.comparison([field], outer))
        if self.chance(0.3):
            value = call("+", field.ref, self.operand([], outer))
            if self.chance(0.3):
                value = expr.Coalesce((field.ref, lift(7)), BIGINT)
            result = self.builder.project(result, v=value)
        return result

    def grouped(self, plan: Plan, outer: list[Field]) -> Plan:
        own = self.integers(plan.fields)
        keys = [self.operand(own, outer if self.chance(0.2) else []) for _ in range(2)]
        keys = keys[: self.random.randint(0, 2)]
        made = self.builder.aggregate(
            plan,
            keys,
            c=("count*", None),
            s=(self.random.choice(("sum", "max", "count")), self.operand(own, outer)),
        )
        if keys and self.chance(0.25):
            sets = self.random.choice((((0,), ()), ((0,),), (tuple(range(len(keys))), ())))
            made = logical.Aggregate(made.input, made.keys, made.items, sets)
        if self.chance(0.3):
            return logical.Filter(made, self.comparison(self.integers(made.fields), outer))
        return made

    def windowed(self, plan: Plan, outer: list[Field]) -> Plan:
        own = self.integers(plan.fields)
        if not own:
            return plan
        field = self.builder.field("w", BIGINT)
        keys = tuple(expr.SortKey(item.ref) for item in own)
        partition = (self.random.choice(own).ref,) if self.chance(0.5) else ()
        function = window_function(self.random.choice(("row_number", "rank")))
        windowed = expr.WindowCall(
            function, (), BIGINT, partition, keys, expr.DEFAULT_FRAME
        )
        return logical.Window(plan, (logical.WindowItem(field, windowed),))

    def projected(
        self, plan: Plan, outer: list[Field], depth: int, *, count: int = 0
    ) -> Plan:
        own = self.integers(plan.fields)
        items: list[Assignment] = []
        for _ in range(count or self.random.randint(1, 2)):
            if depth > 0 and self.chance(0.3):
                value = self.scalar([*own, *outer], depth - 1)
            elif depth > 0 and self.chance(0.1):
                value = self.conditional(own, outer, depth)
            else:
                value = self.operand(own, outer if self.chance(0.3) else [])
            items.append(Assignment(self.builder.field("p", value.type), value))
        return logical.Project(plan, tuple(items))

    def conditional(self, own: list[Field], outer: list[Field], depth: int) -> Expr:
        test = self.comparison(own, outer)
        if self.chance(0.5):
            test = self.subquery_test(own, [*own, *outer], depth)
        value = self.scalar([*own, *outer], depth - 1)
        return expr.Case((expr.CaseArm(test, value),), lift(9), INTEGER)

    def combined(self, plan: Plan, outer: list[Field], depth: int) -> Plan:
        width = len(plan.fields)
        source = self.projected(self.source(outer, 0), outer, 0, count=width)
        same = [self.builder.field("q", item.type) for item in plan.fields]
        cast = zip(same, source.fields, strict=True)
        other = logical.Project(source, tuple(Assignment(f, o.ref) for f, o in cast))
        columns = tuple(self.builder.field("u", item.type) for item in plan.fields)
        kind = self.random.choice(list(SetKind))
        return logical.SetOperation(kind, self.chance(0.5), plan, other, columns)

    def limited(self, plan: Plan, limit: Expr) -> Plan:
        keys = tuple(
            expr.SortKey(item.ref, self.chance(0.3), self.chance(0.3)) for item in plan.fields
        )
        offset = lift(1) if self.chance(0.2) else None
        return logical.Limit(logical.Sort(plan, keys), limit, offset)

    def array(self, outer: list[Field], depth: int) -> Expr:
        plan = self.query(outer, depth)
        first = self.integers(plan.fields)[0]
        narrow = logical.Project(plan, (Assignment(first, first.ref),))
        ordered = logical.Sort(narrow, (expr.SortKey(first.ref),))
        return expr.Subquery(SubqueryKind.ARRAY, ordered, SqlType(INT4_ARRAY))

    def statement(self) -> Plan:
        """A whole query; sometimes with an array subquery or a shared plan."""
        plan = self.query([], self.depth)
        own = self.integers(plan.fields)
        if not self.is_wild and self.chance(0.15):
            value = self.array(own, 1)
            field = self.builder.field("arr", value.type)
            plan = logical.Project(
                plan, (*(Assignment(f, f.ref) for f in plan.fields), Assignment(field, value))
            )
        return plan


