"""Grouping: key columns to group numbers, batch after batch.

KeyTable numbers the distinct keys of several columns in order of appearance. While the domain of
the key words is small (known from bounds that hold for what was really read) it addresses groups
directly; beyond that it hashes. NULL is a key value of its own; joins mask such rows out before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpudb.column import Column, expand
from gpudb.kernels.hash_table import DirectTable, HashTable
from gpudb.kernels.key_words import KeyEncoder

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

DIRECT_DOMAIN_MIN = 1 << 20
"""A domain up to this size is always addressed directly."""
DIRECT_DOMAIN_MAX = 1 << 27
DIRECT_FACTOR = 8
"""A larger domain is addressed directly up to this many times the rows seen."""


class KeyTable:
    """Distinct keys of ``width`` columns, numbered 0, 1, 2 ... in order of appearance."""

    def __init__(self, width: int, *, expected_rows: int = 0) -> None:
        self._encoders = [KeyEncoder() for _ in range(width)]
        self._lows: list[int] = []
        self._sizes: list[int] = []
        self._direct: DirectTable | None = None
        self._hash: HashTable | None = None
        self._words: list[npt.NDArray[np.int64]] = []
        self._expected = expected_rows
        self._rows = 0
        self.size = 0

    @property
    def bytes(self) -> int:
        table = self._direct or self._hash
        return (table.bytes if table is not None else 0) + sum(w.nbytes for w in self._words)

    def insert(self, columns: Sequence[Column], rows: int) -> tuple[Ids, Ids]:
        """Group numbers of the rows (R), and the first row of each new group, in order."""
        wide = [expand(column, rows) for column in columns]
        words = [e.encode(c) for e, c in zip(self._encoders, wide, strict=True)]
        self._recode()
        self._rows += rows
        nulls = _null_words(wide, rows)
        if self._hash is None and rows and not self._fits(wide, words, nulls):
            self._to_hash()
        if self._hash is not None:
            ids, first = self._hash.insert(_stacked(words, nulls, rows))
            self.size = self._hash.size
            return ids, first
        if self._direct is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        ids, first = self._direct.insert(self._codes([*words, nulls]))
        self.size = self._direct.size
        if len(first):
            self._words.append(_stacked([w[first] for w in words], nulls[first], len(first)))
        return ids, first

    def find(self, columns: Sequence[Column], rows: int) -> Ids:
        """Group numbers of the rows (R), -1 where the key is not in the table."""
        wide = [expand(column, rows) for column in columns]
        words, impossible = [], None
        for encoder, column in zip(self._encoders, wide, strict=True):
            found, never = encoder.look_up(column)
            words.append(found)
            if never is not None and never.any():
                impossible = never if impossible is None else impossible | never
        nulls = _null_words(wide, rows)
        if self._hash is not None:
            ids = self._hash.find(_stacked(words, nulls, rows))
        elif self._direct is not None:
            ids = self._find_direct([*words, nulls])
        else:
            ids = np.full(rows, -1, np.int64)
        return ids if impossible is None else np.where(impossible, -1, ids)

    # The domain

    def _fits(
        self, columns: Sequence[Column], words: Sequence[Ids], nulls: Ids
    ) -> bool:
        """Widen the direct table's domain to the new words; False when it gets too large."""
        bounds = [
            e.bounds(c, w) for e, c, w in zip(self._encoders, columns, words, strict=True)
        ]
        bounds.append((0, 0 if nulls.strides == (0,) else int(nulls.max())))
        lows, sizes = self._lows, self._sizes
        if not lows:
            new_lows = [low for low, _ in bounds]
            new_sizes = [high - low + 1 for low, high in bounds]
        else:
            new_lows = [min(a, low) for a, (low, _) in zip(lows, bounds, strict=True)]
            new_sizes = [
                max(a + n, high + 1) - new
                for a, n, (_, high), new in zip(lows, sizes, bounds, new_lows, strict=True)
            ]
            if new_lows == lows and new_sizes == sizes:
                return True
            new_sizes = [
                n if n == old else n + n // 2 for n, old in zip(new_sizes, sizes, strict=True)
            ]
        domain = 1
        for size in new_sizes:
            domain *= size
        allowed = max(DIRECT_DOMAIN_MIN, DIRECT_FACTOR * max(self._rows, self._expected))
        if domain > min(allowed, DIRECT_DOMAIN_MAX):
            return False
        self._lows, self._sizes = new_lows, new_sizes
        old_words = self._all_words()
        self._direct = DirectTable(domain)
        if len(old_words):
            self._direct.insert(self._codes(list(old_words.T)))
        return True

    def _codes(self, words: Sequence[Ids]) -> Ids:
        """Mixed radix of the words in the domain (R)."""
        codes: Ids | None = None
        for word, low, size in zip(words, self._lows, self._sizes, strict=True):
            if size == 1:
                continue
            shifted = word - low if low else word
            codes = shifted if codes is None else codes * size + shifted
        return np.zeros(len(words[-1]), np.int64) if codes is None else codes

    def _find_direct(self, words: Sequence[Ids]) -> Ids:
        assert self._direct is not None
        inside: Mask | None = None
        clipped = []
        for word, low, size in zip(words, self._lows, self._sizes, strict=True):
            high = low + size - 1
            seen = word[:1] if word.strides == (0,) else word
            if len(seen) and (int(seen.min()) < low or int(seen.max()) > high):
                here = (word >= low) & (word <= high)
                inside = here if inside is None else inside & here
                word = np.where(here, word, low)
            clipped.append(word)
        ids = self._direct.find(self._codes(clipped))
        return ids if inside is None else np.where(inside, ids, -1)

    # Changing form

    def _all_words(self) -> npt.NDArray[np.int64]:
        if self._hash is not None:
            return self._hash.words
        if not self._words:
            return np.empty((0, len(self._encoders) + 1), np.int64)
        if len(self._words) > 1:
            self._words = [np.concatenate(self._words)]
        return self._words[0]

    def _to_hash(self) -> None:
        words = self._all_words()
        self._direct = None
        self._words = []
        self._hash = HashTable(len(self._encoders) + 1, expected=self._expected)
        if len(words):
            self._hash.insert(np.ascontiguousarray(words))

    def _recode(self) -> None:
        """Rewrite stored words where an encoder changed; ids stay."""
        recodings = [encoder.take_recoding() for encoder in self._encoders]
        if all(recoding is None for recoding in recodings):
            return
        words = self._all_words().copy()
        for number, recoding in enumerate(recodings):
            if recoding is not None:
                is_null = words[:, -1] >> number & 1
                words[:, number] = np.where(is_null, 0, recoding(words[:, number]))
        self._direct = None
        self._words = []
        self._lows, self._sizes = [], []
        self._hash = HashTable(len(self._encoders) + 1)
        if len(words):
            self._hash.insert(np.ascontiguousarray(words))


def _null_words(columns: Sequence[Column], rows: int) -> Ids:
    """A word with one bit per column that is NULL (R); one zero, broadcast, without NULLs."""
    if all(column.valid is None for column in columns):
        return np.broadcast_to(np.int64(0), (rows,))
    nulls = np.zeros(rows, np.int64)
    for number, column in enumerate(columns):
        if column.valid is not None:
            nulls |= (~column.valid.cpu().numpy()).astype(np.int64) << number
    return nulls


def _stacked(words: Sequence[Ids], nulls: Ids, rows: int) -> npt.NDArray[np.int64]:
    found = np.empty((rows, len(words) + 1), np.int64)
    for number, word in enumerate(words):
        found[:, number] = word
    found[:, -1] = nulls
    return found
