"""Plans built by hand over tables in memory, and how tests run them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gpudb import sqltype
from gpudb.catalog import builtin, functions, types
from gpudb.column import Column, from_host, from_values, slice_rows, to_values
from gpudb.exec import functions as bodies
from gpudb.exec.context import QueryContext
from gpudb.exec.executor import Executor
from gpudb.expr import AggregateCall, Call, ColumnRef, Expr, Function, Literal, Volatility
from gpudb.optimizer.logical import AggregateItem, Field
from gpudb.optimizer.physical import Physical, TableScan
from gpudb.sqltype import SqlType

bodies.load()
_ids = itertools.count(1)
INT4, INT8 = SqlType(sqltype.INT4), SqlType(sqltype.INT8)
TEXT, NUMERIC = SqlType(sqltype.TEXT), SqlType(sqltype.NUMERIC)
FLOAT8, BOOL = SqlType(sqltype.FLOAT8), SqlType(sqltype.BOOL)


def new_field(name: str, type: SqlType, attnum: int = 0, table: int = 0) -> Field:
    return Field(next(_ids), name, type, table, attnum)


def literal(value: Any, type: SqlType = INT4) -> Literal:
    return Literal(value, type)


def _procedures() -> dict[tuple[str, tuple[int, ...]], tuple[int, str, int, bool, str]]:
    table = builtin.table("pg_proc").select(
        ["oid", "proname", "prosrc", "proargtypes", "prorettype", "proisstrict", "provolatile"]
    )
    found = {}
    for oid, name, source, arguments, result, strict, volatile in zip(
        *(c.to_pylist() for c in table.columns), strict=True
    ):
        found[name, tuple(arguments)] = (oid, source, result, strict, volatile)
    return found


_PROCEDURES = _procedures()
_RESULTS = {"eq": BOOL, "lt": BOOL, "gt": BOOL, "le": BOOL, "ge": BOOL, "ne": BOOL}


def call(name: str, *arguments: Expr, type: SqlType | None = None, operator: str = "") -> Call:
    """A call of a built-in function by name, for the arguments' exact types."""
    oids = tuple(a.type.oid for a in arguments)
    oid, source, result, strict, volatile = _PROCEDURES[name, oids]
    function = Function(
        oid, name, source, oids, result, strict, Volatility(volatile),
        functions.is_fallible(source), operator,
    )
    return Call(function, arguments, type or SqlType(result))


def aggregate(
    name: str, *arguments: Expr, type: SqlType, declared: str | None = None, **options: Any
) -> AggregateItem:
    """An aggregate item; ``declared`` are the argument types of its key."""
    names = declared if declared is not None else ",".join(
        types.get(a.type.oid).name for a in arguments
    )
    function = Function(
        0, name, f"{name}({names})", tuple(a.type.oid for a in arguments), type.oid,
        False, Volatility.IMMUTABLE, True,
    )
    item = AggregateCall(function, arguments, type, is_star=not arguments, **options)
    return AggregateItem(new_field(name, type), item)


@dataclass
class MemoryReader:
    """A table in memory as storage.table.TableReader shows one."""

    columns: tuple[Column, ...]
    rows: int
    deleted: frozenset[int] = frozenset()

    def morsels(self, batch_rows: int) -> list[Any]:
        return [
            Piece(0, start, min(batch_rows, self.rows - start))
            for start in range(0, self.rows, batch_rows)
        ]

    def read(self, morsel: Any, columns: tuple[int, ...]) -> Any:
        stop = morsel.first + morsel.rows
        found = tuple(slice_rows(self.columns[i], morsel.first, stop) for i in columns)
        if not self.deleted:
            return found, None
        left = [r for r in range(morsel.rows) if morsel.first + r not in self.deleted]
        if len(left) == morsel.rows:
            return found, None
        return found, torch.tensor(left, dtype=torch.int64)


@dataclass(frozen=True)
class Piece:
    segment: int
    first: int
    rows: int


@dataclass
class MemoryStorage:
    """Tables by OID: names, types and values."""

    tables: dict[int, tuple[Column, ...]] = field(default_factory=dict)
    opened: list[Any] = field(default_factory=list)

    def open_table(self, snapshot: Any, oid: int, attnums: Any, filters: Any = ()) -> MemoryReader:
        self.opened.append(filters)
        columns = self.tables[oid]
        rows = columns[0].rows if columns else 0
        return MemoryReader(tuple(columns[a - 1] for a in attnums), rows)

    def add(self, oid: int, columns: dict[str, tuple[SqlType, Sequence[Any]]]) -> TableScan:
        """Store a table; the scan of all its columns."""
        made = []
        fields = []
        for number, (name, (type, values)) in enumerate(columns.items(), 1):
            made.append(from_values(type, types.get(type.oid).layout, list(values)))
            fields.append(new_field(name, type, number, oid))
        self.tables[oid] = tuple(made)
        return TableScan(oid, f"t{oid}", f"t{oid}", tuple(fields))


def context(**settings: Any) -> QueryContext:
    """A query context; ``batch_rows=3`` sets gpudb.batch_rows."""
    return QueryContext(None, {f"gpudb.{name}": value for name, value in settings.items()})


def run(
    plan: Physical, storage: MemoryStorage | None = None, *, threads: int = 1, **settings: Any
) -> list[tuple[Any, ...]]:
    """The rows of a plan as tuples of host values."""
    executor = Executor(storage, threads=threads)
    try:
        rows: list[tuple[Any, ...]] = []
        for batch in executor.run(plan, context(**settings)):
            columns = [to_values(from_host(c)) for c in batch.columns]
            rows.extend(zip(*columns, strict=True) if columns else [()] * batch.rows)
        return rows
    finally:
        executor.close()


def ref(scan: Physical, name: str) -> ColumnRef:
    return next(f.ref for f in scan.fields if f.name == name)


