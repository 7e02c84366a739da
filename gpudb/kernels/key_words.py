"""Columns as key words: int64 words that are equal exactly where SQL calls the values equal.

A KeyEncoder belongs to one key column of one table and sees its batches one after the other, in
whatever layouts they come. Integers, booleans, dates are their value; floats their bits with one
zero and one NaN; decimals their scaled integer at the encoder's scale; text, and everything that
has no fixed-size form, a number that the encoder gives to each distinct value. NULL is word 0;
the caller keeps the validities apart.

When a batch does not fit the encoding so far (a larger scale, a 128-bit number), the encoder
changes and says how words given out before must be rewritten (``take_recoding``).
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gpudb import keys, sqltype
from gpudb.catalog import types
from gpudb.column import (
    INT64_MAX,
    Column,
    decimals,
    integers,
    to_values,
)
from gpudb.kernels.text_numbers import TextNumbers
from gpudb.layout import Kind

Words = npt.NDArray[np.int64]
Recoding = Callable[[Words], Words]
NO_MATCH = -1
_BLANK = 32

_DICTIONARIES_MAX = 256
"""Dictionaries whose translation an encoder remembers."""


class KeyEncoder:
    """The words of one key column."""

    def __init__(self) -> None:
        self._scale: int | None = None
        self._values: dict[Any, int] | None = None
        self._texts: TextNumbers | None = None
        self._translations: dict[int, Words] = {}
        self._recoding: Recoding | None = None
        self._magnitude = 0

    def take_recoding(self) -> Recoding | None:
        """How earlier words must be rewritten since the last call, None = not at all."""
        found, self._recoding = self._recoding, None
        return found

    def encode(self, column: Column) -> Words:
        """The words of the rows (R); new values are numbered."""
        return self._words(column, is_new=True)[0]

    def look_up(self, column: Column) -> tuple[Words, npt.NDArray[np.bool_] | None]:
        """The words of the rows, without new numbers, and where no key can be equal."""
        words, impossible = self._words(column, is_new=False)
        return words, impossible

    def bounds(self, column: Column, words: Words) -> tuple[int, int]:
        """The least and greatest of ``words``, from facts where they are known."""
        kind = column.layout.kind
        if kind is Kind.BOOL:
            return 0, 1
        known = column.lo is not None and column.hi is not None and column.valid is None
        if known and kind is Kind.INT:
            assert column.lo is not None and column.hi is not None
            return column.lo, column.hi
        return (int(words.min()), int(words.max())) if len(words) else (0, 0)

    def _words(
        self, column: Column, *, is_new: bool
    ) -> tuple[Words, npt.NDArray[np.bool_] | None]:
        impossible = None
        match column.layout.kind:
            case Kind.BOOL | Kind.INT:
                words = (
                    integers(column) if column.layout.kind is Kind.INT
                    else column.data[0].to(torch.int64)
                ).cpu().numpy()
            case Kind.FLOAT:
                words = keys.float_words(column.data[0].to(torch.float64).cpu().numpy())
            case Kind.DECIMAL if self._values is None:
                words, impossible = self._decimal_words(column, is_new=is_new)
            case Kind.DICTIONARY:
                words = self._dictionary_words(column, is_new=is_new)
            case Kind.TEXT:
                words = self._text_words(column, is_new=is_new)
            case _:
                words = self._object_words(column, is_new=is_new)
        if column.valid is not None:
            words = np.where(column.valid.cpu().numpy(), words, 0)
        return words, impossible

    # Decimals

    def _decimal_words(
        self, column: Column, *, is_new: bool
    ) -> tuple[Words, npt.NDArray[np.bool_] | None]:
        values = integers(column).cpu().numpy()
        if self._scale is None:
            if not is_new:
                return values, None
            self._scale = column.scale
        if column.scale == self._scale:
            if is_new:
                self._note(column, values)
            return values, None
        if column.scale > self._scale:
            power = 10 ** (column.scale - self._scale)
            quotient, rest = np.divmod(values, power) if power <= INT64_MAX else (
                np.zeros_like(values), values
            )
            if column.valid is not None:
                rest = np.where(column.valid.cpu().numpy(), rest, 0)
            if not is_new or not rest.any():
                if is_new:
                    self._note(column, values)
                return quotient, rest != 0
            return self._grown_scale(column, values)
        factor = 10 ** (self._scale - column.scale)
        limit = INT64_MAX // factor
        fits = np.abs(values) <= limit if limit else values == 0
        if is_new:
            self._magnitude = INT64_MAX
        if not is_new or fits.all():
            return np.where(fits, values, 0) * min(factor, INT64_MAX), ~fits
        self._to_values()
        return self._object_words(column, is_new=True), None

    def _note(self, column: Column, values: Words) -> None:
        """Remember how large the words get."""
        if column.lo is not None and column.hi is not None:
            largest = max(abs(column.lo), abs(column.hi))
        else:
            largest = int(np.abs(values).max()) if len(values) else 0
        self._magnitude = max(self._magnitude, largest)

    def _grown_scale(
        self, column: Column, values: Words
    ) -> tuple[Words, npt.NDArray[np.bool_] | None]:
        assert self._scale is not None
        factor = 10 ** (column.scale - self._scale)
        if self._magnitude * factor > INT64_MAX:
            self._to_values()
            return self._object_words(column, is_new=True), None
        self._note(column, values)

        def recode(words: Words) -> Words:
            scaled: Words = words * factor
            return scaled

        self._recoding = recode
        self._scale = column.scale
        return values, None

    def _to_values(self) -> None:
        """From scaled integers to numbered Decimals; earlier words are rewritten."""
        scale = self._scale or 0
        known: dict[Any, int] = {}
        self._values = known

        def recode(words: Words) -> Words:
            numbers = (_decimal_key(decimal.Decimal(w).scaleb(-scale)) for w in words.tolist())
            return _numbered(known, numbers, len(words))

        if self._scale is not None:
            self._recoding = recode

    # Text

    def _dictionary_words(self, column: Column, *, is_new: bool) -> Words:
        dictionary = column.dictionary
        assert dictionary is not None
        table = self._translations.get(dictionary.id)
        if table is None or not is_new:
            entries = _trimmed(column, dictionary.values())
            table = self._numbers(entries, is_new=is_new)
            if is_new:
                if len(self._translations) >= _DICTIONARIES_MAX:
                    self._translations.clear()
                self._translations[dictionary.id] = table
        if not len(table):
            return np.zeros(column.rows, np.int64)
        words: Words = table.take(column.data[0].cpu().numpy())
        return words

    def _text_words(self, column: Column, *, is_new: bool) -> Words:
        texts = self._text_table()
        starts, lengths, data = (buffer.cpu().numpy() for buffer in column.data)
        if column.type.oid == sqltype.BPCHAR:
            lengths = trimmed_lengths(starts, lengths, data)
        return texts.insert(starts, lengths, data) if is_new else texts.find(starts, lengths, data)

    def _numbers(self, values: list[bytes], *, is_new: bool) -> Words:
        texts = self._text_table()
        lengths = np.fromiter(map(len, values), np.int32, len(values))
        starts = np.zeros(len(values), np.int64)
        if len(values):
            np.cumsum(lengths[:-1], out=starts[1:])
        data = np.frombuffer(b"".join(values), np.uint8)
        return texts.insert(starts, lengths, data) if is_new else texts.find(starts, lengths, data)

    def _text_table(self) -> TextNumbers:
        if self._texts is None:
            self._texts = TextNumbers()
        return self._texts

    # Everything else

    def _object_words(self, column: Column, *, is_new: bool) -> Words:
        if self._values is None:
            if self._scale is not None:
                if not is_new:
                    return self._decimal_look_up(column)
                self._to_values()
            else:
                self._values = {}
        assert self._values is not None
        keys_of = _object_keys(column)
        if is_new:
            return _numbered(self._values, keys_of, column.rows)
        get = self._values.get
        return np.fromiter((get(key, NO_MATCH) for key in keys_of), np.int64, column.rows)

    def _decimal_look_up(self, column: Column) -> Words:
        """Numbers of another layout as scaled integers; what does not fit can't be equal."""
        scale = self._scale or 0
        found = np.empty(column.rows, np.int64)
        missing = _Missing(self)
        for row, value in enumerate(decimals(column)):
            found[row] = missing.word(value, scale)
        return found


class _Missing:
    """Words for decimals that no stored scaled integer equals: the least int64, never stored."""

    def __init__(self, _: KeyEncoder) -> None:
        self.unused = -(2**63)

    def word(self, value: decimal.Decimal | None, scale: int) -> int:
        if value is None or not value.is_finite():
            return self.unused
        scaled = value.scaleb(scale, keys._EXACT)
        if scaled != scaled.to_integral_value() or abs(scaled) > INT64_MAX:
            return self.unused
        return int(scaled)


def _decimal_key(value: decimal.Decimal) -> Any:
    return "NaN" if value.is_nan() else value


def _object_keys(column: Column) -> Iterable[Any]:
    if column.type.oid == sqltype.NUMERIC:
        return [None if v is None else _decimal_key(v) for v in decimals(column)]
    if column.layout.kind is Kind.INTERVAL:
        parts = zip(*(buffer.tolist() for buffer in column.data), strict=True)
        return [keys.interval_span(*part) for part in parts]
    if column.layout.kind is Kind.UUID:
        return list(zip(column.data[0].tolist(), column.data[1].tolist(), strict=True))
    sort_key = types.get(column.type.oid).sort_key
    return [None if v is None else _hashable(sort_key(v)) for v in to_values(column)]


def _hashable(key: Any) -> Any:
    return tuple(map(_hashable, key)) if isinstance(key, list) else key


def _numbered(known: dict[Any, int], values: Iterable[Any], rows: int) -> Words:
    return np.fromiter((known.setdefault(v, len(known)) for v in values), np.int64, rows)


def trimmed_lengths(
    starts: Words, lengths: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]
) -> npt.NDArray[np.int32]:
    """The lengths without trailing blanks (R)."""
    if not len(data):
        return lengths
    found = lengths.copy()
    while True:
        last = np.maximum(starts + found - 1, 0)
        is_blank = (found > 0) & (data[np.minimum(last, len(data) - 1)] == _BLANK)
        if not is_blank.any():
            return found
        found -= is_blank


def _trimmed(column: Column, values: list[bytes]) -> list[bytes]:
    if column.type.oid == sqltype.BPCHAR:
        return [value.rstrip(b" ") for value in values]
    return values
