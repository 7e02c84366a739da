"""Grouped reductions: rows with group numbers to one value per group. Deterministic on the CPU.

``ids`` int64 (R) are group numbers in [0, groups); None = there is one group.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gpudb.column import INT64_MAX, INT64_MIN, Column, integers
from gpudb.kernels import decimal
from gpudb.layout import Kind

_LOW = 0xFFFFFFFF
_SAFE = 1 << 62

Limbs = list[Tensor]
"""An exact sum as base-2**32 digits (G each), lowest first; the digits are not normalized."""


def total(values: Tensor, ids: Tensor | None, groups: int) -> Tensor:
    """The sums (G) of int64 or float64 values; int64 wraps."""
    if ids is None:
        return values.sum().reshape(1) if values.shape[0] else values.new_zeros(1)
    if values.dtype == torch.float64:
        return torch.zeros(groups, dtype=torch.float64).scatter_add_(0, ids, values)
    wide = values.to(torch.int64)
    return torch.zeros(groups, dtype=torch.int64).scatter_add_(0, ids, wide)


def count(ids: Tensor | None, groups: int, rows: int) -> Tensor:
    """The rows per group, int64 (G)."""
    if ids is None:
        return torch.tensor([rows])
    return torch.bincount(ids, minlength=groups) if rows else torch.zeros(
        groups, dtype=torch.int64
    )


def extreme(
    values: Tensor, ids: Tensor | None, groups: int, *, is_greatest: bool
) -> Tensor:
    """The least or greatest int64 per group; the neutral element where a group is empty."""
    neutral = INT64_MIN if is_greatest else INT64_MAX
    if ids is None:
        if not values.shape[0]:
            return torch.tensor([neutral])
        return (values.max() if is_greatest else values.min()).reshape(1)
    found = torch.full((groups,), neutral, dtype=torch.int64)
    kind = "amax" if is_greatest else "amin"
    return found.scatter_reduce_(0, ids, values, kind, include_self=True)


def grown(values: Tensor, groups: int, fill: float = 0) -> Tensor:
    """The tensor lengthened to ``groups`` elements."""
    missing = groups - values.shape[0]
    if missing <= 0:
        return values
    return torch.cat((values, torch.full((missing,), fill, dtype=values.dtype)))


def exact_sums(column: Column, ids: Tensor | None, groups: int, rows: int) -> Limbs:
    """The exact sums of an INT, DECIMAL or DECIMAL128 column without NULLs."""
    if column.layout.kind is Kind.DECIMAL128:
        low, high = decimal.wide(column)
        parts = [low & _LOW, (low >> 32) & _LOW, high & _LOW, high >> 32]
        return [total(part, ids, groups) for part in parts]
    values = integers(column)
    if _bound(column, values) * max(rows, 1) < _SAFE:
        return split(total(values, ids, groups))
    return [total(values & _LOW, ids, groups), total(values >> 32, ids, groups)]


def _bound(column: Column, values: Tensor) -> int:
    """A bound of the magnitudes, from facts or from the values."""
    if column.lo is not None and column.hi is not None:
        return max(abs(column.lo), abs(column.hi))
    if not values.shape[0]:
        return 0
    return max(abs(int(values.min())), abs(int(values.max())))


def split(sums: Tensor) -> Limbs:
    """int64 sums as two digits."""
    return [sums & _LOW, sums >> 32]


def add_limbs(into: Limbs, part: Limbs, ids: Tensor, groups: int) -> Limbs:
    """Add the sums of a part's groups, which are numbered ``ids`` in the whole, in place.

    A part's lower digits are below 2**32, so that 2**31 parts can be added before digits overflow.
    """
    size = max(len(into), len(part))
    left = into if len(into) == size else _padded(into, size)
    right = _padded(normalized(part), size)
    return [
        grown(a, groups).scatter_add_(0, ids, b) for a, b in zip(left, right, strict=True)
    ]


def _padded(limbs: Limbs, size: int) -> Limbs:
    """The same numbers in more digits: the sign moves up."""
    if len(limbs) == size:
        return limbs
    low, high = limbs[0], limbs[1]
    carried = high + (low >> 32)
    sign = carried >> 32
    return [low & _LOW, carried & _LOW, sign & _LOW, sign >> 32]


def normalized(limbs: Limbs) -> Limbs:
    """All digits but the last in [0, 2**32)."""
    found = []
    carry: Tensor | int = 0
    for limb in limbs[:-1]:
        here = limb + carry
        found.append(here & _LOW)
        carry = here >> 32
    return [*found, limbs[-1] + carry]


def to_int64(limbs: Limbs) -> Tensor | None:
    """The sums as int64 (G), None when one does not fit."""
    parts = normalized(limbs)
    if len(parts) == 4:
        sign = parts[1] << 32 >> 63
        if bool(((parts[2] | (parts[3] << 32)) != sign).any()):
            return None
        return (parts[1] << 32) | parts[0]
    high = parts[1]
    if high.shape[0] and (int(high.max()) >= 2**31 or int(high.min()) < -(2**31)):
        return None
    return (high << 32) | parts[0]


def to_python(limbs: Limbs) -> list[int]:
    """The sums as Python integers."""
    columns = [part.tolist() for part in limbs]
    return [
        sum(digit << (32 * place) for place, digit in enumerate(digits))
        for digits in zip(*columns, strict=True)
    ]


def best_rows(
    words: Sequence[Tensor], ids: Tensor | None, groups: int, *, is_greatest: bool
) -> Tensor:
    """The row (G) whose words are least or greatest in its group, -1 for empty groups.

    Words are most significant first. Among equal ones the last: PostgreSQL's min and max keep it.
    """
    rows = words[0].shape[0]
    owner = torch.zeros(rows, dtype=torch.int64) if ids is None else ids
    alive = torch.arange(rows)
    for word in words:
        here = word.index_select(0, alive)
        own = owner.index_select(0, alive)
        best = extreme(here, own, groups, is_greatest=is_greatest)
        same = here == best.index_select(0, own)
        alive = alive[same]
    found = extreme(alive, owner.index_select(0, alive), groups, is_greatest=True)
    return found.clamp(min=-1)


def first_rows(owner: Tensor, groups: int) -> Tensor:
    """The first row of each group, -1 for empty ones."""
    rows = torch.arange(owner.shape[0])
    found = extreme(rows, owner, groups, is_greatest=False)
    return torch.where(found == INT64_MAX, -1, found)
