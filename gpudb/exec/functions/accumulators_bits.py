"""bool_and, bool_or, every, and the bitwise aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from torch import Tensor

from gpudb import errors
from gpudb.column import (
    Column,
    boolean_column,
    booleans,
    integer_column,
    integers,
    text_column,
    to_values,
)
from gpudb.exec.context import QueryContext
from gpudb.exec.functions.accumulators import Base, Ids, accumulator, presence, present_rows
from gpudb.exec.functions.segments import Slots, add, count
from gpudb.expr import AggregateCall


class BooleanAccumulator(Base):
    """Rows and true rows of each group."""

    def __init__(self, call: AggregateCall, query: QueryContext) -> None:
        super().__init__(call, query)
        self._counts = Slots()
        self._true = Slots()

    @property
    def bytes(self) -> int:
        return self._counts.bytes + self._true.bytes

    def update(self, ids: Ids, groups: int, columns: Sequence[Column], rows: int) -> None:
        owner, (column, *_), _ = present_rows(ids, columns[:1], rows, 1)
        count(self._counts.view(groups), owner)
        add(self._true.view(groups), owner, booleans(column).to(torch.int64))

    def merge(self, other: Self, mapping: Ids, groups: int) -> None:
        owner, size = torch.from_numpy(mapping), len(mapping)
        self._counts.view(groups).scatter_add_(0, owner, other._counts.view(size))
        self._true.view(groups).scatter_add_(0, owner, other._true.view(size))

    def result(self, values: Tensor, groups: int) -> Column:
        return boolean_column(self.type, values, presence(self._counts.view(groups)))


@accumulator("bool_and(bool)", "every(bool)")
class BoolAnd(BooleanAccumulator):
    def finish(self, groups: int) -> Column:
        return self.result(self._true.view(groups) == self._counts.view(groups), groups)


@accumulator("bool_or(bool)")
class BoolOr(BooleanAccumulator):
    def finish(self, groups: int) -> Column:
        return self.result(self._true.view(groups) > 0, groups)


class BitAccumulator(Base):
    """A bitwise reduction of integers: ``operation`` over runs of rows sorted by group."""

    operation: np.ufunc = np.bitwise_and
    neutral = 0

    def __init__(self, call: AggregateCall, query: QueryContext) -> None:
        super().__init__(call, query)
        self._counts = Slots()
        self._values = Slots(fill=self.neutral)

    @property
    def bytes(self) -> int:
        return self._counts.bytes + self._values.bytes

    def update(self, ids: Ids, groups: int, columns: Sequence[Column], rows: int) -> None:
        owner, (column, *_), _ = present_rows(ids, columns[:1], rows, 1)
        count(self._counts.view(groups), owner)
        self._apply(owner, groups, integers(column))

    def _apply(self, ids: Tensor, groups: int, values: Tensor) -> None:
        if not ids.shape[0]:
            return
        owner = ids.numpy()
        index = np.argsort(owner, kind="stable")
        ordered = owner[index]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        reduced = self.operation.reduceat(values.numpy()[index], starts)
        state = self._values.view(groups).numpy()
        targets = ordered[starts]
        state[targets] = self.operation(state[targets], reduced)

    def merge(self, other: Self, mapping: Ids, groups: int) -> None:
        owner, size = torch.from_numpy(mapping), len(mapping)
        self._counts.view(groups).scatter_add_(0, owner, other._counts.view(size))
        self._apply(owner, groups, other._values.view(size))

    def finish(self, groups: int) -> Column:
        valid = presence(self._counts.view(groups))
        return integer_column(self.type, self._values.view(groups).clone(), valid)


_INTEGERS = ("int2", "int4", "int8")


@accumulator(*(f"bit_and({name})" for name in _INTEGERS))
class BitAnd(BitAccumulator):
    operation = np.bitwise_and
    neutral = -1


@accumulator(*(f"bit_or({name})" for name in _INTEGERS))
class BitOr(BitAccumulator):
    operation = np.bitwise_or


@accumulator(*(f"bit_xor({name})" for name in _INTEGERS))
class BitXor(BitAccumulator):
    operation = np.bitwise_xor


class BitStringAccumulator(Base):
    """A bitwise reduction of bit strings of equal length; 22026."""

    verb = "AND"

    @staticmethod
    def operation(left: int, right: int) -> int:
        return left & right

    def __init__(self, call: AggregateCall, query: QueryContext) -> None:
        super().__init__(call, query)
        self._values: dict[int, str] = {}

    @property
    def bytes(self) -> int:
        return 128 * len(self._values)

    def update(self, ids: Ids, groups: int, columns: Sequence[Column], rows: int) -> None:
        owner, (column, *_), _ = present_rows(ids, columns[:1], rows, 1)
        for group, value in zip(owner.tolist(), to_values(column), strict=True):
            self._add(group, value)

    def _add(self, group: int, value: str) -> None:
        known = self._values.get(group)
        if known is None:
            self._values[group] = value
            return
        if len(known) != len(value):
            raise errors.StringDataLengthMismatch(
                f"cannot {self.verb} bit strings of different sizes"
            )
        number = self.operation(int(known or "0", 2), int(value or "0", 2))
        self._values[group] = format(number, f"0{len(value)}b") if value else value

    def merge(self, other: Self, mapping: Ids, groups: int) -> None:
        for group, value in other._values.items():
            self._add(int(mapping[group]), value)

    def finish(self, groups: int) -> Column:
        values = [self._values.get(group) for group in range(groups)]
        return text_column(self.type, values)


@accumulator("bit_and(bit)", fallible=True)
class BitStringAnd(BitStringAccumulator):
    pass


@accumulator("bit_or(bit)", fallible=True)
class BitStringOr(BitStringAccumulator):
    verb = "OR"

    @staticmethod
    def operation(left: int, right: int) -> int:
        return left | right


@accumulator("bit_xor(bit)", fallible=True)
class BitStringXor(BitStringAccumulator):
    verb = "XOR"

    @staticmethod
    def operation(left: int, right: int) -> int:
        return left ^ right
