"""Scans of stored and system tables.

A table scan reads the columns of its filters first and the others only for batches of which rows
are left. What its reader needs: see gpudb.storage.table.TableReader. Filters published by hash
joins (min, max and a bitmap of the build keys) take part as soon as they are known.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from gpudb import sqltype
from gpudb.catalog.objects import Relation, RelationKind
from gpudb.catalog.system import SessionInfo, SystemCatalog, SystemRows
from gpudb.column import (
    Batch,
    Column,
    boolean_column,
    float_column,
    from_values,
    integer_column,
    integers,
)
from gpudb.exec.builder import Builder, Stream, builds, positions
from gpudb.exec.context import QueryContext
from gpudb.exec.conversions import data_type
from gpudb.exec.eager import Predicates, evaluate_constant, selected
from gpudb.exec.operators.project import FilterOperator
from gpudb.exec.pipeline import OnceSource, Piece, Source
from gpudb.exec.program import is_constant, is_volatile
from gpudb.expr import Call, Cast, ColumnRef, Expr, InList, IsNull
from gpudb.kernels.select import rows_of
from gpudb.layout import Kind
from gpudb.optimizer.logical import Field
from gpudb.optimizer.physical import SystemScan, TableScan
from gpudb.sqltype import SqlType
from gpudb.storage.zones import ZoneFilter

BITMAP_DOMAIN_MAX = 1 << 24
"""The largest key domain for which a join publishes a bitmap besides min and max."""
ROW_ID_ATTNUM = -1

_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Reader(Protocol):
    """What a scan needs of an open table (storage.table.TableReader)."""

    rows: int

    def morsels(self, batch_rows: int) -> list[Any]: ...

    def read(
        self, morsel: Any, columns: tuple[int, ...]
    ) -> tuple[tuple[Column, ...], Tensor | None]: ...


@dataclass(slots=True)
class DynamicFilter:
    """What a finished build side tells the probe side's scan about a key.

    ``low`` and ``high`` bound the key's integers (None = unknown); ``bitmap`` bool over [low, high]
    says which occur. ``is_ready`` once the build side is finished.
    """

    is_ready: bool = False
    is_empty: bool = False
    low: int | None = None
    high: int | None = None
    bitmap: Tensor | None = None

    def select(self, batch: Batch, column: Column) -> Batch:
        """The rows of a batch whose value (``column``: of the selected rows) may match."""
        if not self.is_ready or self.low is None or self.high is None:
            return batch
        if column.layout.kind is not Kind.INT or column.rows != batch.rows:
            return batch
        lo, hi = column.lo, column.hi
        values = integers(column)
        inside: Tensor | None = None
        if lo is None or hi is None or lo < self.low or hi > self.high:
            numbers = values.numpy()
            inside = torch.from_numpy((numbers >= self.low) & (numbers <= self.high))
        if self.bitmap is not None:
            place = values - self.low
            if inside is not None:
                place = place.clamp(0, self.bitmap.shape[0] - 1)
            hit = self.bitmap.index_select(0, place)
            inside = hit if inside is None else inside & hit
        if column.valid is not None:
            inside = column.valid if inside is None else inside & column.valid
        return batch if inside is None else selected(batch, rows_of(inside))


class TableSource(Source):
    """The morsels of a table, pruned by zone maps, filtered, with late materialization."""

    def __init__(self, builder: Builder, node: TableScan, attnums: tuple[int, ...]) -> None:
        self._context = builder.context
        self._storage = builder.storage
        self._node = node
        self._attnums = attnums
        self._batch_rows = builder.batch_rows
        self._zone_filters = zone_filters(node, builder.context)
        at = positions(node.fields)
        self._predicates = Predicates(node.filters, at, builder.context)
        self._dynamic = [
            (builder.filters[number], at[field])
            for number, field in node.dynamic_filters
            if number in builder.filters
        ]
        self._reader: Reader = self._open(self._zone_filters)
        self.rows_max = self._reader.rows
        early = {*self._predicates.inputs, *(column for _, column in self._dynamic)}
        self._early = tuple(sorted(early))
        self._late = tuple(i for i in range(len(attnums)) if i not in early)
        self._pieces: Iterator[tuple[int, Any]] | None = None

    def _open(self, filters: Sequence[ZoneFilter]) -> Reader:
        reader: Reader = self._storage.open_table(
            self._context.snapshot, self._node.table_oid, self._attnums, tuple(filters)
        )
        return reader

    def poll(self) -> Piece | None:
        if self._pieces is None:
            self._pieces = self._start()
        found = next(self._pieces, None)
        if found is None:
            return None
        number, morsel = found
        return lambda: self._read(number, morsel)

    def _start(self) -> Iterator[tuple[int, Any]]:
        extra = []
        for item, column in self._dynamic:
            if item.is_empty:
                return iter(())
            attnum = self._attnums[column]
            if item.is_ready and item.low is not None and attnum > 0:
                extra.append(ZoneFilter(attnum, ">=", item.low))
                extra.append(ZoneFilter(attnum, "<=", item.high))
        if extra:
            self._reader = self._open((*self._zone_filters, *extra))
        return iter(enumerate(self._reader.morsels(self._batch_rows)))

    def _read(self, number: int, morsel: Any) -> Iterator[Batch]:
        columns: list[Column | None] = [None] * len(self._attnums)
        capacity = morsel.rows
        early, selection = self._reader.read(morsel, self._early)
        for index, column in zip(self._early, early, strict=True):
            columns[index] = column
        rows = capacity if selection is None else selection.shape[0]
        placeholder = boolean_column(sqltype.BOOLEAN, torch.zeros(1, dtype=torch.bool))
        known = tuple(placeholder if c is None else c for c in columns)
        batch = Batch(known, rows, capacity, selection, (number, 0))
        for item, index in self._dynamic:
            batch = _by_dynamic_filter(batch, item, index)
        batch = self._predicates.select(batch)
        if not batch.rows:
            return
        late, _ = self._reader.read(morsel, self._late) if self._late else ((), None)
        for index, column in zip(self._late, late, strict=True):
            columns[index] = column
        yield Batch(
            tuple(c for c in columns if c is not None), batch.rows, capacity, batch.selection,
            batch.sequence,
        )


def _by_dynamic_filter(batch: Batch, item: DynamicFilter, index: int) -> Batch:
    from gpudb.column import take_rows

    if not batch.rows:
        return batch
    column = batch.columns[index]
    if batch.selection is not None:
        column = take_rows(column, batch.selection, batch.capacity)
    return item.select(batch, column)


def zone_filters(node: TableScan, context: QueryContext) -> list[ZoneFilter]:
    """The filters that zone maps understand, with their constants evaluated."""
    fields = {item.id: item for item in node.fields}
    found = []
    for expression in node.zone_filters:
        item = _zone_filter(expression, fields, context)
        if item is not None:
            found.append(item)
    return found


def _zone_filter(
    node: Expr, fields: dict[int, Field], context: QueryContext
) -> ZoneFilter | None:
    if isinstance(node, IsNull) and isinstance(node.argument, ColumnRef):
        field = fields.get(node.argument.id)
        if field is None or field.attnum <= 0:
            return None
        return ZoneFilter(field.attnum, "not null" if node.is_negated else "null")
    if isinstance(node, InList) and isinstance(node.argument, ColumnRef):
        field = fields.get(node.argument.id)
        if field is None or field.attnum <= 0 or not all(
            _is_same_domain(field.type, item) for item in node.items
        ):
            return None
        values = tuple(evaluate_constant(item, context) for item in node.items)
        return ZoneFilter(field.attnum, "in", tuple(v for v in values if v is not None))
    if not isinstance(node, Call) or node.function.operator not in _MIRRORED:
        return None
    if len(node.arguments) != 2:
        return None
    left, right = node.arguments
    operator = node.function.operator
    if not isinstance(left, ColumnRef):
        left, right, operator = right, left, _MIRRORED[operator]
    if not isinstance(left, ColumnRef):
        return None
    field = fields.get(left.id)
    if field is None or field.attnum <= 0 or not _is_same_domain(field.type, right):
        return None
    return ZoneFilter(field.attnum, operator, evaluate_constant(right, context))


def _is_same_domain(type_: SqlType, constant: Expr) -> bool:
    """Whether a constant's host value compares with bounds of a column of the type."""
    if not is_constant(constant) or is_volatile(constant) or isinstance(constant, Cast):
        return False
    other = constant.type.oid
    if type_.oid in sqltype.INTEGERS:
        return other in sqltype.INTEGERS
    if type_.oid == sqltype.BPCHAR:
        return False
    strings = (sqltype.TEXT, sqltype.VARCHAR, sqltype.NAME)
    return type_.oid == other or (type_.oid in strings and other in strings)


@builds(TableScan)
def build_table_scan(builder: Builder, node: TableScan) -> Stream:
    attnums = tuple(field.attnum for field in node.fields)
    source = TableSource(builder, node, attnums)
    builder.leaf_rows += source.rows_max or 0
    return Stream.of(node.fields, source)


# --- system relations -----------------------------------------------------------------------------


class SystemColumns:
    """Engine columns of system relations, kept while their rows are the same."""

    RELATIONS_MAX = 256

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[SystemRows, dict[int, Column]]] = OrderedDict()

    def column(self, oid: int, rows: SystemRows, index: int) -> Column:
        """Column ``index`` of the relation, converted once."""
        entry = self._kept.get(oid)
        if entry is None or entry[0] is not rows:
            entry = (rows, {})
            self._kept[oid] = entry
            if len(self._kept) > self.RELATIONS_MAX:
                self._kept.popitem(last=False)
        found = entry[1].get(index)
        if found is None:
            found = entry[1][index] = _system_column(rows, index)
        return found


def _system_column(rows: SystemRows, index: int) -> Column:
    source = rows.columns[index]
    type_ = SqlType(source.type_oid, source.typmod)
    if not isinstance(source.values, np.ndarray):
        from gpudb.catalog import types

        kind = types.get(type_.oid).layout
        return from_values(type_, kind, source.values)
    values = torch.from_numpy(np.array(source.values))
    valid = None if source.valid is None else torch.from_numpy(np.array(source.valid))
    if values.dtype == torch.bool:
        return boolean_column(type_, values, valid)
    if values.is_floating_point():
        return float_column(type_, values, valid)
    if not values.shape[0]:
        return integer_column(type_, values, valid)
    return integer_column(
        type_, values, valid, lo=int(values.min()), hi=int(values.max())
    )


_COLUMNS = SystemColumns()


@builds(SystemScan)
def build_system_scan(builder: Builder, node: SystemScan) -> Stream:
    context = builder.context
    snapshot = context.snapshot
    relation = snapshot.relation_by_oid(node.table_oid)
    if relation.kind == RelationKind.SEQUENCE:
        return _sequence_scan(builder, node, relation)
    catalog: SystemCatalog = builder.system
    role = snapshot.role(context.user)
    session = SessionInfo(
        0 if role is None else role.oid, context.user,
        getattr(context.session, "process_id", 0) or 0,
    )
    system_rows = catalog.rows(relation, snapshot, session)
    numbers = {column.attnum: index for index, column in enumerate(relation.columns)}
    builder.leaf_rows += min(system_rows.rows, 1)

    def rows() -> Iterator[Batch]:
        columns = []
        for field in node.fields:
            if field.attnum in numbers:
                columns.append(_COLUMNS.column(relation.oid, system_rows, numbers[field.attnum]))
            else:
                columns.append(_system_attribute(builder, field, relation.oid, system_rows.rows))
        if system_rows.rows:
            yield Batch(tuple(columns), system_rows.rows, system_rows.rows)

    stream = Stream.of(node.fields, OnceSource(rows, system_rows.rows))
    if node.filters:
        predicates = Predicates(node.filters, positions(node.fields), context)
        stream = stream.then(FilterOperator(predicates), node.fields)
    return stream


def _sequence_scan(builder: Builder, node: SystemScan, relation: Relation) -> Stream:
    """The one row of a sequence."""

    def rows() -> Iterator[Batch]:
        value, is_called = builder.context.session.database.store.sequences.current(relation)
        shown: dict[int, Any] = {1: value, 2: 0, 3: is_called}  # SEQUENCE_COLUMNS
        columns = []
        for field in node.fields:
            if field.attnum in shown:
                kind = data_type(field.type.oid, builder.context).layout
                columns.append(from_values(field.type, kind, [shown[field.attnum]]))
            else:
                columns.append(_system_attribute(builder, field, relation.oid, 1))
        yield Batch(tuple(columns), 1, 1)

    stream = Stream.of(node.fields, OnceSource(rows))
    if node.filters:
        predicates = Predicates(node.filters, positions(node.fields), builder.context)
        stream = stream.then(FilterOperator(predicates), node.fields)
    return stream


def _system_attribute(builder: Builder, field: Field, oid: int, rows: int) -> Column:
    """tableoid, ctid and their like of a relation whose rows are made up."""
    if field.attnum == ROW_ID_ATTNUM:
        return integer_column(field.type, torch.arange(rows), lo=0, hi=max(rows, 1))
    value = oid if field.type.oid == sqltype.OID else 1
    kind = data_type(field.type.oid, builder.context).layout
    return from_values(field.type, kind, [value])
