"""Columns laid end to end: pieces of one type in any of its layouts become one column.

The result has the narrowest layout that holds all pieces: integers keep their frame when it is
common, dictionaries their codes when the dictionary is the same, decimals the largest scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from gpudb import layout
from gpudb.column import (
    Column,
    decimals,
    expand,
    from_values,
    host_column,
    integers,
    to_values,
    validity,
)
from gpudb.kernels import decimal
from gpudb.layout import Kind, Layout


def concat(pieces: Sequence[tuple[Column, int]]) -> Column:
    """The column of all pieces in order; each is (column, rows it stands for)."""
    columns = [expand(column, rows) for column, rows in pieces if rows] or [pieces[0][0]]
    if len(columns) == 1:
        return columns[0]
    kinds = {column.layout.kind for column in columns}
    if (Kind.HOST in kinds and len(kinds) > 1) or (kinds - {Kind.TEXT, Kind.DICTIONARY} and (
        len(kinds) > 1 and kinds != {Kind.DECIMAL, Kind.DECIMAL128}
    )):
        return _as_objects(columns)
    if Kind.HOST in kinds:
        objects = np.concatenate([c.objects for c in columns if c.objects is not None])
        return replace(columns[0], objects=objects, valid=_valid(columns), lo=None, hi=None)
    if kinds <= {Kind.TEXT, Kind.DICTIONARY}:
        return _text(columns)
    if kinds == {Kind.INT}:
        return _integers(columns)
    if kinds <= {Kind.DECIMAL, Kind.DECIMAL128}:
        return _decimals(columns)
    data = tuple(torch.cat(parts) for parts in zip(*(c.data for c in columns), strict=True))
    return replace(columns[0], data=data, valid=_valid(columns), lo=None, hi=None)


def _valid(columns: Sequence[Column]) -> Tensor | None:
    if all(column.valid is None for column in columns):
        return None
    return torch.cat([validity(column, column.rows) for column in columns])


def _bounds(columns: Sequence[Column]) -> tuple[int | None, int | None]:
    lows = [column.lo for column in columns]
    highs = [column.hi for column in columns]
    lo = None if any(v is None for v in lows) else min(v for v in lows if v is not None)
    hi = None if any(v is None for v in highs) else max(v for v in highs if v is not None)
    return lo, hi


def _as_objects(columns: Sequence[Column]) -> Column:
    values = [value for column in columns for value in to_values(column)]
    return host_column(columns[0].type, values, _valid(columns))


def _integers(columns: Sequence[Column]) -> Column:
    first = columns[0]
    lo, hi = _bounds(columns)
    if all((c.base, c.step) == (first.base, first.step) for c in columns):
        widest = max((c.data[0].dtype for c in columns), key=lambda t: t.itemsize)
        data = torch.cat([c.data[0].to(widest) for c in columns])
        kind = Layout(Kind.INT, widest.itemsize)
        return replace(first, layout=kind, data=(data,), valid=_valid(columns), lo=lo, hi=hi)
    data = torch.cat([integers(c) for c in columns])
    return replace(
        first, layout=layout.INT64, data=(data,), valid=_valid(columns),
        base=0, step=1, lo=lo, hi=hi,
    )


def _decimals(columns: Sequence[Column]) -> Column:
    first = columns[0]
    scale = max(c.scale for c in columns)
    is_plain = all(
        c.scale == scale and c.layout.kind is Kind.DECIMAL and not c.layout.has_row_scale
        for c in columns
    )
    lo, hi = _bounds(columns)
    if is_plain:
        same = all((c.base, c.step) == (first.base, first.step) for c in columns)
        if same and len({c.data[0].dtype for c in columns}) == 1:
            data = torch.cat([c.data[0] for c in columns])
            return replace(first, data=(data,), valid=_valid(columns), lo=lo, hi=hi)
        data = torch.cat([integers(c) for c in columns])
        return replace(
            first, layout=layout.DECIMAL64, data=(data,), valid=_valid(columns),
            base=0, step=1, lo=lo, hi=hi,
        )
    same_limbs = all(
        c.scale == scale and c.layout == first.layout and c.layout.kind is Kind.DECIMAL128
        for c in columns
    )
    if same_limbs:
        limbs = tuple(torch.cat(parts) for parts in zip(*(c.data for c in columns), strict=True))
        return replace(first, data=limbs, valid=_valid(columns), lo=lo, hi=hi)
    return _rescaled(columns)


def _rescaled(columns: Sequence[Column]) -> Column:
    """Decimals of several scales or with display scales of their rows."""
    scale = max(c.scale for c in columns)
    aligned = [decimal.rescaled(c, scale) for c in columns]
    narrow = [c for c in aligned if c is not None and c.layout.kind is Kind.DECIMAL]
    if len(narrow) == len(columns):
        shown = [
            c.data[-1] if c.layout.has_row_scale
            else torch.full((c.rows,), scale, dtype=torch.int16) for c in narrow
        ]
        lo, hi = _bounds(narrow)
        data = (torch.cat([integers(c) for c in narrow]), torch.cat(shown))
        return Column(
            columns[0].type, layout.DECIMAL64_ROW_SCALE, data, _valid(narrow), scale=scale,
            lo=lo, hi=hi,
        )
    values = [
        value if ok else None
        for column in columns
        for value, ok in zip(
            decimals(column), validity(column, column.rows).tolist(), strict=True
        )
    ]
    return from_values(columns[0].type, layout.DECIMAL64, values)


def _text(columns: Sequence[Column]) -> Column:
    first = columns[0]
    same = all(c.dictionary is not None and c.dictionary is first.dictionary for c in columns)
    if same:
        widest = max((c.data[0].dtype for c in columns), key=lambda t: t.itemsize)
        codes = torch.cat([c.data[0].to(widest) for c in columns])
        kind = Layout(Kind.DICTIONARY, widest.itemsize)
        return replace(first, layout=kind, data=(codes,), valid=_valid(columns))
    plain = [as_text(column) for column in columns]
    starts, lengths, buffers, shift = [], [], [], 0
    shared: dict[int, int] = {}
    for column in plain:
        key = column.data[2].data_ptr()
        if key not in shared or not len(column.data[2]):
            shared[key] = shift
            buffers.append(column.data[2])
            shift += len(column.data[2])
        starts.append(column.data[0] + shared[key])
        lengths.append(column.data[1])
    data = (torch.cat(starts), torch.cat(lengths), torch.cat(buffers))
    return Column(first.type, layout.TEXT, data, _valid(columns))


def as_text(column: Column) -> Column:
    """A DICTIONARY column as TEXT over the dictionary's own bytes; a TEXT column as it is."""
    if column.layout.kind is not Kind.DICTIONARY:
        return column
    assert column.dictionary is not None
    offsets = torch.from_numpy(np.array(column.dictionary.offsets))
    codes = column.data[0].to(torch.int32)
    starts = offsets[:-1].index_select(0, codes)
    lengths = (offsets[1:] - offsets[:-1]).to(torch.int32).index_select(0, codes)
    data = (starts, lengths, torch.from_numpy(np.array(column.dictionary.data)))
    return Column(column.type, layout.TEXT, data, column.valid)
