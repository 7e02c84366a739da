"""Order: columns as words whose integer order is SQL's order, and stable sorts over them.

Every sort key becomes one or several int64 words (most significant first); words of small range
are packed into one, so that most sorts are one radix sort. NULLs are placed by a word of their
own; NaN is the greatest number and equals itself; text goes by bytes (collation C).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gpudb import keys, sqltype
from gpudb.catalog import types
from gpudb.column import Column, decimals, expand, integers, to_values
from gpudb.kernels.concat import concat
from gpudb.kernels.key_words import trimmed_lengths
from gpudb.layout import Dictionary, Kind

_SIGN = -(2**63)
_PREFIX_BYTES_MAX = 64
"""Longer strings are sorted as Python objects."""
_WORD_BITS_MAX = 63


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One key of an ordering over a column."""

    column: Column
    is_descending: bool = False
    nulls_first: bool = False


def float_order(values: Tensor) -> Tensor:
    """float64 (R) as int64 in SQL's order: -0 = 0, NaN greatest."""
    plain = torch.where(values == 0, torch.zeros_like(values), values)
    bits = plain.view(torch.int64)
    flipped = torch.where(bits < 0, bits ^ 0x7FFFFFFFFFFFFFFF, bits)
    return torch.where(values.isnan(), torch.full_like(flipped, 2**63 - 1), flipped)


def words(column: Column) -> list[Tensor]:
    """int64 words (R each) that order the valid rows ascending, most significant first."""
    match column.layout.kind:
        case Kind.INT:
            return [integers(column)]
        case Kind.BOOL:
            return [column.data[0].to(torch.int64)]
        case Kind.DECIMAL:
            return [integers(column)]
        case Kind.DECIMAL128:
            return [column.data[1], column.data[0] ^ _SIGN]
        case Kind.FLOAT:
            return [float_order(column.data[0].to(torch.float64))]
        case Kind.UUID:
            return [half ^ _SIGN for half in column.data]
        case Kind.DICTIONARY:
            return [_dictionary_ranks(column)]
        case Kind.TEXT:
            return _text_words(column)
        case Kind.INTERVAL:
            return _interval_words(column)
        case Kind.HOST:
            return [_object_ranks(column)]


def _dictionary_ranks(column: Column) -> Tensor:
    dictionary = column.dictionary
    assert dictionary is not None
    codes = column.data[0].to(torch.int64)
    is_padded = column.type.oid == sqltype.BPCHAR
    if (dictionary.is_sorted and not is_padded) or not len(dictionary):
        return codes
    ranks = entry_ranks(dictionary, is_padded=is_padded)
    return torch.from_numpy(ranks).to(codes.device).index_select(0, codes)


def entry_ranks(dictionary: Dictionary, *, is_padded: bool) -> npt.NDArray[np.int64]:
    """The rank of each entry among the entries in byte order; kept with the dictionary."""
    key = ("ranks", is_padded)
    found = dictionary.cache.get(key)
    if found is None:
        values = dictionary.values()
        if is_padded:
            values = [value.rstrip(b" ") for value in values]
        found = dense_ranks(values)
        dictionary.cache[key] = found
    return found  # type: ignore[return-value]


def dense_ranks(values: Sequence[object]) -> npt.NDArray[np.int64]:
    """Ranks 0, 1 ... of sortable values, equal ones sharing a rank."""
    ordered = sorted(set(values))  # type: ignore[type-var]
    position = {value: rank for rank, value in enumerate(ordered)}
    return np.fromiter((position[v] for v in values), np.int64, len(values))


def _text_words(column: Column) -> list[Tensor]:
    """Big-endian eight-byte pieces, then the length."""
    lengths = column.data[1].to(torch.int64)
    valid = column.valid
    if column.type.oid == sqltype.BPCHAR:
        trimmed = trimmed_lengths(*(buffer.numpy() for buffer in column.data))
        lengths = torch.from_numpy(trimmed).to(torch.int64)
    longest = int(lengths.max()) if lengths.shape[0] else 0
    if longest > _PREFIX_BYTES_MAX:
        raw = column.data[2].numpy().tobytes()
        pairs = zip(column.data[0].tolist(), lengths.tolist(), strict=True)
        values = [raw[start : start + length] for start, length in pairs]
        if valid is not None:
            values = [v if ok else b"" for v, ok in zip(values, valid.tolist(), strict=True)]
        return [torch.from_numpy(dense_ranks(values))]
    found = []
    starts, data = column.data[0], column.data[2]
    padded = torch.cat((data, torch.zeros(8, dtype=torch.uint8, device=data.device)))
    for piece in range(0, longest, 8):
        word = torch.zeros_like(lengths)
        for k in range(min(8, longest - piece)):
            inside = lengths > piece + k
            position = torch.where(inside, starts + (piece + k), data.shape[0])
            byte = padded.index_select(0, position).to(torch.int64)
            word |= byte << (8 * (7 - k))
        found.append(word ^ _SIGN)
    return [*found, lengths]


def _interval_words(column: Column) -> list[Tensor]:
    """Days of 30-day months, and the microseconds within the day."""
    months, days, micros = (buffer.to(torch.int64) for buffer in column.data)
    whole = torch.div(micros, 86_400_000_000, rounding_mode="floor")
    return [months * 30 + days + whole, micros - whole * 86_400_000_000]


def _object_ranks(column: Column) -> Tensor:
    if column.type.oid == sqltype.NUMERIC:
        values: list[object] = [
            (1, 0) if v is not None and v.is_nan() else (0, 0 if v is None else v)
            for v in decimals(column)
        ]
        return torch.from_numpy(dense_ranks(values))
    sort_key = types.get(column.type.oid).sort_key
    host = to_values(column)
    present = [None if v is None else sort_key(v) for v in host]
    some = next((v for v in present if v is not None), 0)
    filled = [some if v is None else v for v in present]
    try:
        return torch.from_numpy(dense_ranks(filled))
    except TypeError:
        return torch.from_numpy(_ranks_of_unhashable(filled))


def _ranks_of_unhashable(values: list[object]) -> npt.NDArray[np.int64]:
    order = sorted(range(len(values)), key=values.__getitem__)  # type: ignore[arg-type]
    ranks = np.zeros(len(values), np.int64)
    rank = 0
    for position, row in enumerate(order):
        if position and values[order[position - 1]] != values[row]:
            rank += 1
        ranks[row] = rank
    return ranks


def key_words(key: OrderKey, rows: int) -> list[Tensor]:
    """The words of one sort key with its direction and its NULLs."""
    column = expand(key.column, rows)
    found = words(column)
    if key.is_descending:
        found = [~word for word in found]
    if column.valid is None:
        return found
    valid = column.valid
    found = [torch.where(valid, word, torch.zeros_like(word)) for word in found]
    nulls = valid if key.nulls_first else ~valid
    return [nulls.to(torch.int64), *found]


def ordering_words(order: Sequence[OrderKey], rows: int) -> list[Tensor]:
    """All words of an ordering, packed into as few as their ranges allow."""
    found = [word for key in order for word in key_words(key, rows)]
    return _packed(found) if rows else found


def _packed(parts: list[Tensor]) -> list[Tensor]:
    packed: list[Tensor] = []
    bits_used = 0
    for part in parts:
        low, high = int(part.min()), int(part.max())
        bits = (high - low).bit_length()
        if bits == 0:
            continue
        if bits > _WORD_BITS_MAX:
            packed.append(part)
            bits_used = _WORD_BITS_MAX + 1
            continue
        shifted = part - low
        if packed and bits_used + bits <= _WORD_BITS_MAX:
            packed[-1] = (packed[-1] << bits) | shifted
            bits_used += bits
        else:
            packed.append(shifted)
            bits_used = bits
    return packed


def permutation(parts: Sequence[Tensor], rows: int) -> Tensor:
    """The stable order of the rows by words, most significant first, int64 (R)."""
    index: Tensor | None = None
    for part in reversed(parts):
        word = part if index is None else part.index_select(0, index)
        if int(word.max()) < 2**31 and int(word.min()) >= -(2**31):
            word = word.to(torch.int32)
        order = torch.sort(word, stable=True).indices
        index = order if index is None else index.index_select(0, order)
    return torch.arange(rows) if index is None else index


def sort_rows(order: Sequence[OrderKey], rows: int) -> Tensor:
    """The row ids (R) in order, equal rows as they came."""
    if rows <= 1:
        return torch.arange(rows)
    return permutation(ordering_words(order, rows), rows)


def starts_of_runs(parts: Sequence[Tensor], rows: int) -> Tensor:
    """bool (R): where a row of sorted words differs from the row before; row 0 does."""
    starts = torch.zeros(rows, dtype=torch.bool)
    if rows:
        starts[0] = True
    for part in parts:
        starts[1:] |= part[1:] != part[:-1]
    return starts


def compare(left: Column, right: Column, rows: int) -> Tensor:
    """int8 (R): the sign of left - right by the type's default order; garbage at NULLs."""
    if left.layout.kind is Kind.INT and right.layout.kind is Kind.INT:
        a, b = integers(left), integers(right)
        return (a > b).to(torch.int8) - (a < b).to(torch.int8)
    both = concat([(expand(left, rows), rows), (expand(right, rows), rows)])
    sign = torch.zeros(rows, dtype=torch.int8)
    for word in words(both):
        a, b = word[:rows], word[rows:]
        here = (a > b).to(torch.int8) - (a < b).to(torch.int8)
        sign = torch.where(sign == 0, here, sign)
    return sign


def interval_spans(column: Column) -> list[int]:
    """The 128-bit spans of intervals as Python ints (R)."""
    parts = zip(*(buffer.tolist() for buffer in column.data), strict=True)
    return [keys.interval_span(*part) for part in parts]
