"""Accumulators: the state of one aggregate call over many groups, batch after batch.

An accumulator is made for one call (``ACCUMULATORS[key].body(call, query)``), takes batches with
the group number of each row, merges with accumulators of other parts of the input, and ends as
the column of the groups. ``load`` imports the modules that register the accumulators here;
``install`` puts them into the registry of aggregates.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gpudb.catalog import functions
from gpudb.catalog.functions import Implementation
from gpudb.column import Column, all_valid, expand, null_column, take_rows
from gpudb.exec.context import QueryContext
from gpudb.exec.conversions import data_type
from gpudb.expr import AggregateCall
from gpudb.kernels.select import is_all, rows_of

Ids = npt.NDArray[np.int64]
Rows = tuple[Tensor, tuple[Column, ...], int]
"""Group numbers int64 (R), columns of R rows, R."""

MODULES = (
    "numeric", "floats", "extremes", "bits", "statistics", "collected", "ordered",
)
"""The modules ``accumulators_<name>`` that register accumulators."""


class Accumulator(Protocol):
    """State of one aggregate call over groups 0..G-1, batch after batch, in row order."""

    def update(self, ids: Ids, groups: int, columns: Sequence[Column], rows: int) -> None:
        """Add a batch: ``ids`` (R) the group of each row, ``groups`` the groups so far.

        ``columns`` are the direct arguments (constants), the arguments, and the ORDER BY keys of
        the call (for aggregates that depend on order), R rows or 1 each. FILTER and DISTINCT are
        done; NULL arguments are not: strict aggregates skip them here.
        """

    def merge(self, other: Self, mapping: Ids, groups: int) -> None:
        """Add ``other``, whose group g is ``mapping[g]`` here and whose rows come after."""

    def finish(self, groups: int) -> Column:
        """Exactly ``groups`` rows; NULL where PostgreSQL gives none."""

    @property
    def bytes(self) -> int:
        """The memory taken, about."""


Make = Callable[[AggregateCall, QueryContext], Accumulator]
ACCUMULATORS: dict[str, Implementation] = {}


def accumulator(*keys: str, fallible: bool = False) -> Callable[[type], type]:
    """Register a class (or factory) ``make(call, query) -> Accumulator`` under keys."""

    def add(make: type) -> type:
        for key in keys:
            assert key not in ACCUMULATORS, f"{key} is registered twice"
            ACCUMULATORS[key] = Implementation(key, make, fallible)
        return make

    return add


def load() -> None:
    """Import every module that registers accumulators."""
    for name in MODULES:
        importlib.import_module(f"gpudb.exec.functions.accumulators_{name}")


def install() -> None:
    """Make the accumulators what computes aggregates: enter them in catalog.functions."""
    load()
    for key, found in ACCUMULATORS.items():
        functions.aggregate(key, fallible=found.is_fallible)(found.body)


class Base:
    """What accumulators share: the call, its query, and the rows without NULL arguments."""

    def __init__(self, call: AggregateCall, query: QueryContext) -> None:
        self.call = call
        self.query = query
        self.type = call.type

    def nulls(self, groups: int) -> Column:
        """``groups`` NULLs of the result's type."""
        return null_column(self.type, data_type(self.type.oid, self.query).layout, groups)


def present_rows(ids: Ids, columns: Sequence[Column], rows: int, strict: int) -> Rows:
    """The rows in which none of the first ``strict`` columns is NULL, written out."""
    owner = torch.from_numpy(ids)
    wide = tuple(expand(column, rows) for column in columns)
    valid = all_valid(*wide[:strict])
    if valid is None or is_all(valid):
        return owner, wide, rows
    index = rows_of(valid)
    cut = tuple(take_rows(column, index, rows) for column in wide)
    return owner.index_select(0, index), cut, index.shape[0]


def presence(counts: Tensor) -> Tensor | None:
    """bool (G): the groups with rows; None when all have some."""
    valid = counts > 0
    return None if is_all(valid) else valid
