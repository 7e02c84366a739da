"""Sums and counts per group in growing tensors: the state that accumulators are made of."""

from __future__ import annotations

import torch
from torch import Tensor

from gpudb.kernels.decimal import LIMIT_128, Wide

_MASK = 0xFFFFFFFF
_NARROW_MAX = 1 << 62
_PENDING_MAX = 1 << 30
"""So many additions of 32-bit digits can't overflow int64; then carries are moved up."""
_WIDE_MAX = LIMIT_128 >> 64


class Slots:
    """One element per group in a tensor that grows by doubling; new groups hold ``fill``."""

    def __init__(self, dtype: torch.dtype = torch.int64, fill: float = 0) -> None:
        self._fill = fill
        self._data = torch.full((1,), fill, dtype=dtype)

    def view(self, groups: int) -> Tensor:
        """The first ``groups`` elements, writable."""
        missing = groups - self._data.shape[0]
        if missing > 0:
            more = max(missing, self._data.shape[0])
            tail = torch.full((more,), self._fill, dtype=self._data.dtype)
            self._data = torch.cat((self._data, tail))
        return self._data[:groups]

    @property
    def bytes(self) -> int:
        return self._data.shape[0] * self._data.element_size()


def add(into: Tensor, ids: Tensor, values: Tensor) -> None:
    """Add values (R) to the elements (G) of their groups; floats one after the other."""
    if into.shape[0] == 1 and not into.dtype.is_floating_point:
        into += values.sum()
    else:
        into.scatter_add_(0, ids, values)


def count(into: Tensor, ids: Tensor) -> None:
    """Add the rows per group to int64 counts (G)."""
    groups, rows = into.shape[0], ids.shape[0]
    if groups == 1:
        into += rows
    elif groups <= rows:
        into += torch.bincount(ids, minlength=groups)
    else:
        into.scatter_add_(0, ids, torch.ones_like(ids))


class ExactSums:
    """Exact sums of integers per group: int64 while ``bound`` proves it, base-2**32 digits then.

    The digits are signed and not normalized: the sum is that of digit[i] * 2**(32 * i).
    """

    def __init__(self) -> None:
        self._digits = [Slots()]
        self._bound = 0
        self._pending = 0

    @property
    def bytes(self) -> int:
        return sum(digit.bytes for digit in self._digits)

    def add(self, ids: Tensor, groups: int, values: Tensor, magnitude: int) -> None:
        """Add int64 values (R), none beyond ``magnitude``."""
        rows = values.shape[0]
        self._bound += rows * magnitude
        if len(self._digits) == 1:
            if self._bound < _NARROW_MAX:
                add(self._digits[0].view(groups), ids, values)
                return
            self._split(groups)
        self._add_digits(ids, groups, [values & _MASK, values >> 32])

    def add_wide(self, ids: Tensor, groups: int, value: Wide) -> None:
        """Add 128-bit values (R)."""
        if len(self._digits) == 1:
            self._split(groups)
        low, high = value
        self._add_digits(
            ids, groups, [low & _MASK, (low >> 32) & _MASK, high & _MASK, high >> 32]
        )

    def merge(self, other: ExactSums, mapping: Tensor, groups: int) -> None:
        size = mapping.shape[0]
        self._bound += other._bound
        if len(self._digits) == len(other._digits) == 1 and self._bound < _NARROW_MAX:
            add(self._digits[0].view(groups), mapping, other._digits[0].view(size))
            return
        if len(self._digits) == 1:
            self._split(groups)
        if len(other._digits) == 1:
            other._split(size)
        other._carry(size)
        self._add_digits(mapping, groups, [digit.view(size) for digit in other._digits])

    def scale_by(self, factor: int, groups: int) -> None:
        """Multiply every sum."""
        self._bound *= factor
        if len(self._digits) == 1 and self._bound < _NARROW_MAX:
            self._digits[0].view(groups).mul_(factor)
            return
        numbers = [value * factor for value in self.to_python(groups)]
        count = max((abs(n).bit_length() for n in numbers), default=0) // 32 + 2
        self._digits = [Slots() for _ in range(count)]
        for place, digit in enumerate(self._digits):
            is_top = place == count - 1
            parts = [(n >> (32 * place)) & (-1 if is_top else _MASK) for n in numbers]
            digit.view(groups).copy_(torch.tensor(parts, dtype=torch.int64))
        self._pending = 0

    def to_int64(self, groups: int) -> Tensor | None:
        """The sums (G), None when one does not fit."""
        if len(self._digits) == 1:
            return self._digits[0].view(groups).clone()
        low, high = self._limbs(groups)
        return low if high is not None and bool((high == low >> 63).all()) else None

    def to_wide(self, groups: int) -> Wide | None:
        """The sums as 128-bit numbers, None when one is beyond decimal.LIMIT_128."""
        low, high = self._limbs(groups)
        if high is None or bool((high >= _WIDE_MAX).any() | (high < -_WIDE_MAX).any()):
            return None
        return low, high

    def to_python(self, groups: int) -> list[int]:
        columns = [digit.view(groups).tolist() for digit in self._digits]
        return [
            sum(digit << (32 * place) for place, digit in enumerate(digits))
            for digits in zip(*columns, strict=True)
        ]

    def _limbs(self, groups: int) -> tuple[Tensor, Tensor | None]:
        """Low and high 64 bits; None for the high ones when 128 bits don't hold every sum."""
        if len(self._digits) == 1:
            self._split(groups)
        self._carry(groups)
        parts = [digit.view(groups) for digit in self._digits]
        while len(parts) < 4:
            top = parts.pop()
            parts += [top & _MASK, top >> 32]
        sign = (parts[3] << 32) >> 63
        beyond = [
            part != (sign if part is parts[-1] else sign & _MASK) for part in parts[4:]
        ]
        low = parts[0] | (parts[1] << 32)
        if any(bool(mask.any()) for mask in beyond):
            return low, None
        return low, parts[2] | (parts[3] << 32)

    def _split(self, groups: int) -> None:
        narrow = self._digits[0].view(groups)
        self._digits = [Slots(), Slots()]
        self._digits[0].view(groups).copy_(narrow & _MASK)
        self._digits[1].view(groups).copy_(narrow >> 32)

    def _add_digits(self, ids: Tensor, groups: int, parts: list[Tensor]) -> None:
        rows = ids.shape[0]
        if self._pending + rows > _PENDING_MAX:
            self._carry(groups)
        self._pending += rows
        while len(self._digits) < len(parts):
            self._digits.append(Slots())
        for digit, part in zip(self._digits, parts, strict=False):
            add(digit.view(groups), ids, part)

    def _carry(self, groups: int) -> None:
        """Bring all digits but the last into [0, 2**32), with a new last one if that is large."""
        self._pending = 0
        place = 0
        while place < len(self._digits):
            digit = self._digits[place].view(groups)
            if place == len(self._digits) - 1:
                if not bool(((digit >= 2**31) | (digit < -(2**31))).any()):
                    return
                self._digits.append(Slots())
            self._digits[place + 1].view(groups).add_(digit >> 32)
            digit.bitwise_and_(_MASK)
            place += 1
