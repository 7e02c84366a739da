"""Tables that number distinct keys: key words (R, K) to ids 0, 1, 2 ... in order of appearance.

A key is K int64 words whose equality is the equality of the key (kernels.key_words makes them).
``insert`` numbers keys, new ones included; ``find`` gives -1 for unknown keys. Three forms with
the same answers: DirectTable (one array slot per value of a small domain), open addressing in a
compiled loop, and a Python dict where few rows make a compilation not worth while.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpudb import jit

Ids = npt.NDArray[np.int64]
Words = npt.NDArray[np.int64]

_SLOTS_MIN = 1024
_EXPECTED_MAX = 1 << 19
"""Room is made for up to that many keys before they are seen."""


@jit.kernel(
    "UniTuple(int64, 2)(int64[:, ::1], int32[::1], int64[:, ::1], int64, int64, int64[::1],"
    " int64[::1])"
)
def _insert(words, slots, stored, count, start, ids, first):  # type: ignore[no-untyped-def]
    """Number rows from ``start`` until the table is half full; (keys, next row)."""
    rows, width = words.shape
    mask = slots.shape[0] - 1
    limit = slots.shape[0] // 2
    for row in range(start, rows):
        if count >= limit:
            return count, row
        code = words[row, 0]
        for k in range(1, width):
            code = (code ^ (code >> 31)) * 0x5851F42D4C957F2D + words[row, k]
        code = (code ^ (code >> 32)) * 0x2545F4914F6CDD1D
        code = (code ^ (code >> 29)) & mask
        while True:
            entry = slots[code]
            if entry < 0:
                slots[code] = count
                for k in range(width):
                    stored[count, k] = words[row, k]
                first[count] = row
                ids[row] = count
                count += 1
                break
            same = True
            for k in range(width):
                if stored[entry, k] != words[row, k]:
                    same = False
                    break
            if same:
                ids[row] = entry
                break
            code = (code + 1) & mask
    return count, rows


@jit.kernel("void(int64[:, ::1], int32[::1], int64[:, ::1], int64[::1])")
def _find(words, slots, stored, ids):  # type: ignore[no-untyped-def]
    """The ids of keys, -1 for unknown ones."""
    rows, width = words.shape
    mask = slots.shape[0] - 1
    for row in range(rows):
        code = words[row, 0]
        for k in range(1, width):
            code = (code ^ (code >> 31)) * 0x5851F42D4C957F2D + words[row, k]
        code = (code ^ (code >> 32)) * 0x2545F4914F6CDD1D
        code = (code ^ (code >> 29)) & mask
        found = -1
        while True:
            entry = slots[code]
            if entry < 0:
                break
            same = True
            for k in range(width):
                if stored[entry, k] != words[row, k]:
                    same = False
                    break
            if same:
                found = entry
                break
            code = (code + 1) & mask
        ids[row] = found


class HashTable:
    """Distinct keys of K words, numbered in order of appearance; about ``expected`` of them."""

    def __init__(self, width: int, *, expected: int = 0) -> None:
        self.width = width
        self._slots_first = max(_SLOTS_MIN, 2 << min(expected, _EXPECTED_MAX).bit_length())
        self.size = 0
        self._stored: Words = np.empty((_SLOTS_MIN // 2, width), np.int64)
        self._dict: dict[Any, int] | None = {}
        self._slots = np.empty(0, np.int32)

    @property
    def words(self) -> Words:
        """The keys (size, K) in id order."""
        return self._stored[: self.size]

    @property
    def bytes(self) -> int:
        slots = 80 * self.size if self._dict is not None else self._slots.nbytes
        return self._stored.nbytes + slots

    def insert(self, words: Words) -> tuple[Ids, Ids]:
        """Ids of the rows (R), and the first row of each new key, in id order."""
        if self._dict is not None and not _insert.is_worthwhile(len(words)):
            return self._insert_small(words)
        if self._dict is not None:
            self._dict = None
            self._rebuild(self._slots_first)
        ids = np.empty(len(words), np.int64)
        before, start = self.size, 0
        firsts = []
        while True:
            first = np.empty(len(self._slots) // 2 + 1, np.int64)
            old = self.size
            self.size, start = _insert(
                words, self._slots, self._stored, self.size, start, ids, first
            )
            firsts.append(first[old : self.size])
            if start >= len(words):
                break
            self._rebuild(max(len(self._slots) * 4, 1 << len(words).bit_length()))
        assert self.size - before == sum(map(len, firsts))
        return ids, np.concatenate(firsts)

    def find(self, words: Words) -> Ids:
        """Ids of the rows (R), -1 where the key is unknown."""
        if self._dict is None:
            ids = np.empty(len(words), np.int64)
            _find(words, self._slots, self._stored, ids)
            return ids
        if _find.is_worthwhile(len(words)) and len(words) > 4 * jit.SMALL_ROWS:
            self._dict = None
            self._rebuild(_SLOTS_MIN)
            return self.find(words)
        get = self._dict.get
        return np.fromiter((get(key, -1) for key in _python_keys(words)), np.int64, len(words))

    def _insert_small(self, words: Words) -> tuple[Ids, Ids]:
        assert self._dict is not None
        known = self._dict
        ids = np.empty(len(words), np.int64)
        first = []
        for row, key in enumerate(_python_keys(words)):
            found = known.get(key)
            if found is None:
                found = known[key] = len(known)
                first.append(row)
            ids[row] = found
        new = np.array(first, np.int64)
        self._reserve(len(known))
        self._stored[self.size : len(known)] = words[new]
        self.size = len(known)
        return ids, new

    def _reserve(self, count: int) -> None:
        if count > len(self._stored):
            grown = np.empty((max(count, 2 * len(self._stored)), self.width), np.int64)
            grown[: self.size] = self._stored[: self.size]
            self._stored = grown

    def _rebuild(self, slots: int) -> None:
        while slots // 2 <= self.size:
            slots *= 2
        old = self._stored[: self.size].copy()
        self._slots = np.full(slots, -1, np.int32)
        self._stored = np.empty((slots // 2 + 1, self.width), np.int64)
        scratch = np.empty(slots // 2 + 1, np.int64)
        ids = np.empty(len(old), np.int64)
        _insert(old, self._slots, self._stored, 0, 0, ids, scratch)


def _python_keys(words: Words) -> list[Any]:
    return words[:, 0].tolist() if words.shape[1] == 1 else list(map(tuple, words.tolist()))


@jit.kernel("int64(int64[::1], int32[::1], int64, int64[::1], int64[::1])")
def _insert_direct(codes, table, count, ids, first):  # type: ignore[no-untyped-def]
    """Number codes by one look-up each; the new number of codes."""
    new = 0
    for row in range(codes.shape[0]):
        found = table[codes[row]]
        if found < 0:
            found = count
            table[codes[row]] = count
            first[new] = row
            new += 1
            count += 1
        ids[row] = found
    return count


class DirectTable:
    """Distinct codes of a domain [0, size of domain), numbered in order of appearance."""

    def __init__(self, domain: int) -> None:
        self.size = 0
        self._ids = np.full(domain, -1, np.int32)
        self._first = np.empty(0, np.int32)

    @property
    def bytes(self) -> int:
        return self._ids.nbytes + self._first.nbytes

    def insert(self, codes: Ids) -> tuple[Ids, Ids]:
        """Ids of the codes (R), and the first row of each new code, in id order."""
        if _insert_direct.is_worthwhile(len(codes)):
            numbers = np.empty(len(codes), np.int64)
            fresh_rows = np.empty(min(len(codes), len(self._ids) - self.size), np.int64)
            before = self.size
            self.size = _insert_direct(
                np.ascontiguousarray(codes), self._ids, self.size, numbers, fresh_rows
            )
            return numbers, fresh_rows[: self.size - before].copy()
        ids = self._ids[codes]
        unknown = ids < 0
        if not unknown.any():
            return ids.astype(np.int64), np.empty(0, np.int64)
        rows = np.flatnonzero(unknown)
        fresh = codes[rows]
        if len(self._first) != len(self._ids):
            self._first = np.empty(len(self._ids), np.int32)
        order = np.arange(len(fresh), dtype=np.int32)
        self._first[fresh[::-1]] = order[::-1]
        first = rows[self._first[fresh] == order]
        count = len(first)
        self._ids[codes[first]] = np.arange(self.size, self.size + count, dtype=np.int32)
        self.size += count
        return self._ids[codes].astype(np.int64), first

    def find(self, codes: Ids) -> Ids:
        """Ids of the codes (R) in the domain, -1 for unknown ones."""
        return self._ids.take(codes).astype(np.int64)


@jit.kernel("void(int64[::1], int64[::1], int64[::1])")
def _list_rows(ids, ends, rows):  # type: ignore[no-untyped-def]
    """Rows by id, in order within an id; ``ends`` come in as the starts of the lists."""
    for row in range(ids.shape[0]):
        at = ends[ids[row]]
        rows[at] = row
        ends[ids[row]] = at + 1


def row_lists(ids: Ids, size: int) -> tuple[Ids, Ids]:
    """Where each id's list starts (size + 1), and the rows (R) of the ids one after the other."""
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(ids, minlength=size), out=offsets[1:])
    if not _list_rows.is_worthwhile(len(ids)):
        return offsets, np.argsort(ids, kind="stable")
    rows = np.empty(len(ids), np.int64)
    _list_rows(np.ascontiguousarray(ids), offsets[:-1].copy(), rows)
    return offsets, rows
