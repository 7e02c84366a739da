"""Functions computed value by value: ``@rowwise("key")`` over a Python function of host values.

The slow but general way, for the long tail. A dictionary column is computed once per entry that
occurs; equal arguments are computed once where there are few; inactive and NULL rows are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from gpudb import sqltype
from gpudb.catalog import builtin, functions, types
from gpudb.column import (
    Column,
    dictionary_column,
    expand,
    from_values,
    take,
    to_values,
)
from gpudb.errors import SqlError
from gpudb.exec.evaluation import EvaluationContext
from gpudb.layout import Dictionary, Kind
from gpudb.sqltype import SqlType

Body = TypeVar("Body", bound=Callable[..., Any])
Examples = tuple[tuple[str, str | None], ...]
ResultRule = Callable[[Sequence[Column]], SqlType]

_EQUAL_BUT_NOT_SAME = frozenset({
    sqltype.NUMERIC, sqltype.FLOAT4, sqltype.FLOAT8, sqltype.NUMERIC_ARRAY, sqltype.FLOAT8_ARRAY,
})
"""Types with values that are equal but not the same: 1.0 and 1.00, 0 and -0."""
_MEMO_MAX = 4096
"""Distinct argument tuples remembered within one call."""


@cache
def _signatures() -> dict[str, list[tuple[tuple[int, ...], int, bool]]]:
    """(argument types, result, strict) of the built-in functions by key."""
    table = builtin.table("pg_proc").select(
        ["prosrc", "proname", "prolang", "proargtypes", "prorettype", "proisstrict"]
    )
    names = {oid: entry.name for oid, entry in builtin.types().items()}
    found: dict[str, list[tuple[tuple[int, ...], int, bool]]] = {}
    for source, name, language, arguments, result, strict in zip(
        *(c.to_pylist() for c in table.columns), strict=True
    ):
        key = source
        if language == 14:
            key = f"{name}({','.join(names[a] for a in arguments)})"
        found.setdefault(key, []).append((tuple(arguments), result, strict))
    return found


def _polymorphic(declared: int, arguments: tuple[int, ...], columns: Sequence[Column]) -> int:
    """The actual type of a polymorphic result."""
    wants_array = declared in (sqltype.ANYARRAY, sqltype.ANYCOMPATIBLEARRAY)
    for wanted, column in zip(arguments, columns, strict=False):
        actual = column.type.oid
        if wanted not in sqltype.POLYMORPHIC or actual == sqltype.UNKNOWN:
            continue
        is_array = wanted in (sqltype.ANYARRAY, sqltype.ANYCOMPATIBLEARRAY)
        if is_array == wants_array:
            return actual
        if is_array:
            return types.get(actual).element_oid
        return types.get(actual).array_oid
    return sqltype.TEXT


def result_type(key: str, columns: Sequence[Column]) -> SqlType:
    """What a built-in function returns for these arguments."""
    rows = _signatures()[key]
    actual = tuple(column.type.oid for column in columns)
    arguments, result, _ = next((row for row in rows if row[0] == actual), rows[0])
    if result in sqltype.POLYMORPHIC:
        result = _polymorphic(result, arguments, columns)
    return SqlType(result)


def is_strict(key: str) -> bool:
    return _signatures()[key][0][2]


def rowwise(
    *keys: str,
    result: int | None = None,
    needs_context: bool = False,
    is_volatile: bool = False,
    fallible: bool = True,
    examples: Examples = (),
) -> Callable[[Body], Body]:
    """Register a function of host values; NULL is None and comes only to functions that are
    not strict. ``needs_context``: the EvaluationContext is its first argument.
    """

    def register(function: Body) -> Body:
        for key in keys:

            def body(
                context: EvaluationContext, *columns: Column, key: str = key
            ) -> Column:
                type_ = SqlType(result) if result is not None else result_type(key, columns)
                call = function if not needs_context else _bound(function, context)
                return evaluate(
                    context, call, columns, type_,
                    strict=is_strict(key), is_volatile=is_volatile,
                )

            functions.scalar(key, fallible=fallible, examples=examples)(body)
        return function

    return register


def _bound(function: Callable[..., Any], context: EvaluationContext) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        return function(context, *values)

    return call


def evaluate(
    context: EvaluationContext,
    function: Callable[..., Any],
    columns: Sequence[Column],
    type_: SqlType,
    *,
    strict: bool = True,
    is_volatile: bool = False,
) -> Column:
    """The column of ``function`` over the rows of ``columns``; errors go to the slot."""
    varying = [c for c in columns if c.rows != 1]
    if is_volatile:
        return _evaluate_rows(
            context, function, columns, type_, strict, context.rows, remembers=False
        )
    if not varying:
        return _evaluate_rows(context, function, columns, type_, strict, 1)
    if len(varying) == 1 and varying[0].layout.kind is Kind.DICTIONARY:
        dictionary = varying[0].dictionary
        if dictionary is not None and len(dictionary) < varying[0].rows:
            return _evaluate_entries(context, function, columns, type_, strict)
    return _evaluate_rows(context, function, columns, type_, strict, context.rows)


def _active(context: EvaluationContext, rows: int) -> npt.NDArray[np.bool_] | None:
    active = context.active
    if active is None:
        return None
    if active.shape[0] == rows:
        return active.cpu().numpy()
    if rows == 1:
        return np.array([bool(active.any())])
    return np.repeat(active.cpu().numpy(), rows)


def _evaluate_rows(
    context: EvaluationContext,
    function: Callable[..., Any],
    columns: Sequence[Column],
    type_: SqlType,
    strict: bool,
    rows: int,
    *,
    remembers: bool = True,
) -> Column:
    lists = [_values(column, rows) for column in columns]
    active = _active(context, rows)
    results: list[Any] = [None] * rows
    memo: dict[Any, Any] = {}
    is_memoized = remembers and len(columns) > 0 and rows > 1 and not any(
        column.type.oid in _EQUAL_BUT_NOT_SAME for column in columns
    )
    for row, arguments in enumerate(zip(*lists, strict=True) if lists else ((),) * rows):
        if active is not None and not active[row]:
            continue
        if strict and None in arguments and any(a is None for a in arguments):
            continue
        if is_memoized:
            found = memo.get(arguments, memo)
            if found is not memo:
                results[row] = found
                continue
        try:
            value = function(*arguments)
        except SqlError as problem:
            context.report_row(row, problem)
            continue
        results[row] = value
        if is_memoized and len(memo) < _MEMO_MAX:
            memo[arguments] = value
    return column_of(type_, results)


def _values(column: Column, rows: int) -> list[Any]:
    if column.rows == 1 and rows != 1:
        return to_values(column) * rows
    return to_values(column)


def column_of(type_: SqlType, values: list[Any]) -> Column:
    """A column of host values in the layout of the type."""
    return from_values(type_, types.get(type_.oid).layout, values)


def _evaluate_entries(
    context: EvaluationContext,
    function: Callable[..., Any],
    columns: Sequence[Column],
    type_: SqlType,
    strict: bool,
) -> Column:
    """Once per dictionary entry that an active, valid row holds (and once for NULL)."""
    column = next(c for c in columns if c.rows != 1)
    assert column.dictionary is not None
    codes = column.data[0].cpu().numpy().astype(np.int64)
    entries = len(column.dictionary)
    if column.valid is not None:
        codes = np.where(column.valid.cpu().numpy(), codes, entries)
    active = _active(context, len(codes))
    seen_rows = np.arange(len(codes)) if active is None else np.flatnonzero(active)
    seen, first = np.unique(codes[seen_rows], return_index=True)
    values = _entry_values(column)
    constants = [None if c is column else to_values(c)[0] for c in columns]
    place = next(i for i, c in enumerate(columns) if c is column)
    results: list[Any] = [None] * (entries + 1)
    for code, row in zip(seen.tolist(), seen_rows[first].tolist(), strict=True):
        arguments = list(constants)
        arguments[place] = values[code] if code < entries else None
        if strict and any(a is None for a in arguments):
            continue
        try:
            results[code] = function(*arguments)
        except SqlError as problem:
            context.report_row(row, problem)
    return _gathered(type_, results, codes)


def _entry_values(column: Column) -> list[Any]:
    assert column.dictionary is not None
    raw = column.dictionary.values()
    return list(raw) if column.type.oid == sqltype.BYTEA else [v.decode() for v in raw]


def _gathered(type_: SqlType, results: list[Any], codes: npt.NDArray[np.int64]) -> Column:
    """The rows' results from those of the entries."""
    kind = types.get(type_.oid).layout
    if kind.kind is not Kind.TEXT:
        small = column_of(type_, results)
        return take(expand(small, len(results)), torch.from_numpy(codes))
    distinct: dict[bytes, int] = {}
    mapped = np.zeros(len(results), np.int32)
    valid = np.array([r is not None for r in results])
    for i, value in enumerate(results):
        if value is not None:
            raw = value.encode() if isinstance(value, str) else bytes(value)
            mapped[i] = distinct.setdefault(raw, len(distinct))
    dictionary = Dictionary.of(list(distinct) or [b""], is_sorted=False)
    mask = None if valid[np.unique(codes)].all() else torch.from_numpy(valid[codes])
    return dictionary_column(type_, torch.from_numpy(mapped[codes]), dictionary, mask)


def entrywise(
    column: Column, function: Callable[[list[bytes]], npt.NDArray[np.bool_]]
) -> torch.Tensor:
    """bool (R) of a DICTIONARY column: ``function`` decides about each entry."""
    assert column.dictionary is not None
    table = torch.from_numpy(np.asarray(function(column.dictionary.values()), bool))
    if not len(table):
        return torch.zeros(column.rows, dtype=torch.bool)
    return table.to(column.device).index_select(0, column.data[0].to(torch.int32))


def relabelled(column: Column, type_: SqlType) -> Column:
    """The same values under another type."""
    return replace(column, type=type_)


def is_text_layout(column: Column) -> bool:
    return column.layout.kind in (Kind.TEXT, Kind.DICTIONARY)


def constant_value(column: Column) -> Any:
    """The host value of a constant column, None for NULL."""
    return to_values(column)[0]
