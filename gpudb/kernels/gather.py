"""Gathers that make NULLs: the unmatched side of outer joins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from gpudb.column import Column, null_column, take_rows
from gpudb.layout import Kind


def gather_or_null(column: Column, rows: Tensor) -> Column:
    """The rows of a column at ``rows`` (int64); -1 makes a NULL. The column may have no rows."""
    present = rows >= 0
    if not column.rows:
        empty = null_column(column.type, column.layout)
        zeros = torch.zeros(rows.shape[0], dtype=torch.int64)
        dictionary = column.dictionary if column.dictionary is not None else empty.dictionary
        if column.layout.kind is Kind.DICTIONARY and not len(dictionary or ()):
            dictionary = empty.dictionary
        found = take_rows(replace(empty, valid=None), zeros, 1 if rows.shape[0] == 1 else 2)
        if found.rows != rows.shape[0]:
            found = _repeated(replace(empty, valid=None), rows.shape[0])
        return replace(found, valid=present, dictionary=dictionary, scale=column.scale)
    safe = rows.clamp(min=0)
    found = take_rows(column, safe, column.rows) if column.rows != 1 else _repeated(
        column, rows.shape[0]
    )
    valid = present if found.valid is None else found.valid & present
    return replace(found, valid=valid)


def _repeated(column: Column, rows: int) -> Column:
    from gpudb.column import expand

    if rows == 1:
        return column
    if rows == 0:
        empty = torch.zeros(0, dtype=torch.int64)
        objects = column.objects
        return replace(
            column,
            data=tuple(
                b if column.layout.kind is Kind.TEXT and i == 2 else b.index_select(0, empty)
                for i, b in enumerate(column.data)
            ),
            valid=None if column.valid is None else column.valid[:0],
            objects=None if objects is None else np.empty(0, object),
        )
    return expand(column, rows)
