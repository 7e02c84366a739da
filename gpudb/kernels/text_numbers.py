"""Distinct byte strings numbered 0, 1, 2 ... in order of appearance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpudb import jit

Positions = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]

_SLOTS_MIN = 1024


@jit.kernel("void(int64[::1], int32[::1], Array(uint8, 1, 'C', readonly=True), int64[::1])")
def _hash(starts, lengths, data, hashes):  # type: ignore[no-untyped-def]
    """A hash of each byte string, eight bytes at a step."""
    for row in range(starts.shape[0]):
        state = np.int64(lengths[row]) * 0x5851F42D4C957F2D
        position = starts[row]
        end = position + lengths[row]
        while position + 8 <= end:
            word = np.int64(0)
            for k in range(8):
                word |= np.int64(data[position + k]) << (8 * k)
            state = (state ^ word) * 0x2545F4914F6CDD1D
            state ^= state >> 29
            position += 8
        word = np.int64(0)
        shift = 0
        while position < end:
            word |= np.int64(data[position]) << shift
            shift += 8
            position += 1
        state = (state ^ word) * 0x2545F4914F6CDD1D
        hashes[row] = state ^ (state >> 32)


@jit.kernel(
    "UniTuple(int64, 3)(int64[::1], int32[::1], Array(uint8, 1, 'C', readonly=True), int64[::1],"
    " int32[::1], int64[::1], int64[::1], uint8[::1], int64, int64, int64, boolean, int64[::1])"
)
def _number(  # type: ignore[no-untyped-def]
    starts, lengths, data, hashes, slots, known_hashes, known_ends, pool,
    count, used, start, is_new, ids,
):
    """Number rows from ``start`` until the table is half full; (strings, pool bytes, next row)."""
    mask = slots.shape[0] - 1
    limit = slots.shape[0] // 2
    for row in range(start, starts.shape[0]):
        if count >= limit or used + lengths[row] > pool.shape[0]:
            if is_new:
                return count, used, row
        code = hashes[row] & mask
        found = -1
        while True:
            entry = slots[code]
            if entry < 0:
                break
            if known_hashes[entry] == hashes[row]:
                begin = known_ends[entry]
                if known_ends[entry + 1] - begin == lengths[row]:
                    same = True
                    source = starts[row]
                    for k in range(lengths[row]):
                        if pool[begin + k] != data[source + k]:
                            same = False
                            break
                    if same:
                        found = entry
                        break
            code = (code + 1) & mask
        if found < 0 and is_new:
            slots[code] = count
            known_hashes[count] = hashes[row]
            source = starts[row]
            for k in range(lengths[row]):
                pool[used + k] = data[source + k]
            used += lengths[row]
            found = count
            count += 1
            known_ends[count] = used
        ids[row] = found
    return count, used, starts.shape[0]


class TextNumbers:
    """A growing set of byte strings. Small batches go through a dict, large ones compiled loops."""

    def __init__(self) -> None:
        self._dict: dict[bytes, int] | None = {}
        self._count = 0
        self._used = 0
        self._slots = np.empty(0, np.int32)
        self._hashes = np.empty(0, np.int64)
        self._ends = np.zeros(1, np.int64)
        self._pool = np.empty(0, np.uint8)

    def __len__(self) -> int:
        return self._count if self._dict is None else len(self._dict)

    @property
    def bytes(self) -> int:
        if self._dict is not None:
            return 120 * len(self._dict)
        return self._slots.nbytes + self._hashes.nbytes + self._ends.nbytes + self._pool.nbytes

    def insert(self, starts: Positions, lengths: Lengths, data: Bytes) -> Positions:
        """The numbers (R) of byte strings, new ones included."""
        if self._dict is not None:
            if not _number.is_worthwhile(len(starts)):
                known = self._dict
                raw = data.tobytes()
                return np.fromiter(
                    (
                        known.setdefault(raw[a : a + n], len(known))
                        for a, n in zip(starts.tolist(), lengths.tolist(), strict=True)
                    ),
                    np.int64, len(starts),
                )
            self._compile()
        return self._run(starts, lengths, data, is_new=True)

    def find(self, starts: Positions, lengths: Lengths, data: Bytes) -> Positions:
        """The numbers (R) of byte strings, -1 for unknown ones."""
        if self._dict is not None:
            if not _number.is_worthwhile(len(starts)):
                get = self._dict.get
                raw = data.tobytes()
                return np.fromiter(
                    (
                        get(raw[a : a + n], -1)
                        for a, n in zip(starts.tolist(), lengths.tolist(), strict=True)
                    ),
                    np.int64, len(starts),
                )
            self._compile()
        return self._run(starts, lengths, data, is_new=False)

    def _compile(self) -> None:
        """From the dict to open addressing."""
        assert self._dict is not None
        values = list(self._dict)
        self._dict = None
        lengths = np.fromiter(map(len, values), np.int32, len(values))
        starts = np.zeros(len(values), np.int64)
        if len(values):
            np.cumsum(lengths[:-1], out=starts[1:])
        self._resize(_SLOTS_MIN, 1 << 14)
        self._run(starts, lengths, np.frombuffer(b"".join(values), np.uint8), is_new=True)

    def _run(
        self, starts: Positions, lengths: Lengths, data: Bytes, *, is_new: bool
    ) -> Positions:
        starts = np.ascontiguousarray(starts)
        lengths = np.ascontiguousarray(lengths)
        data = np.ascontiguousarray(data)
        hashes = np.empty(len(starts), np.int64)
        _hash(starts, lengths, data, hashes)
        ids = np.empty(len(starts), np.int64)
        row = 0
        while True:
            self._count, self._used, row = _number(
                starts, lengths, data, hashes, self._slots, self._hashes, self._ends, self._pool,
                self._count, self._used, row, is_new, ids,
            )
            if row >= len(starts):
                return ids
            slots = len(self._slots)
            is_full = self._count >= slots // 2
            need = self._used + int(lengths[row])
            pool = max(2 * len(self._pool), need) if need > len(self._pool) else len(self._pool)
            self._resize(slots * 4 if is_full else slots, pool)

    def _resize(self, slots: int, pool: int) -> None:
        if pool > len(self._pool):
            grown = np.empty(pool, np.uint8)
            grown[: self._used] = self._pool[: self._used]
            self._pool = grown
        if slots == len(self._slots):
            return
        hashes = np.empty(slots // 2 + 1, np.int64)
        hashes[: self._count] = self._hashes[: self._count]
        ends = np.zeros(slots // 2 + 2, np.int64)
        ends[: self._count + 1] = self._ends[: self._count + 1]
        self._hashes, self._ends = hashes, ends
        self._slots = np.full(slots, -1, np.int32)
        mask = slots - 1
        codes = hashes[: self._count] & mask
        _place(self._slots, codes)


@jit.kernel("void(int32[::1], int64[::1])")
def _place_loop(slots, codes):  # type: ignore[no-untyped-def]
    """Put entry numbers into empty slots by linear probing."""
    mask = slots.shape[0] - 1
    for entry in range(codes.shape[0]):
        code = codes[entry]
        while slots[code] >= 0:
            code = (code + 1) & mask
        slots[code] = entry


def _place(slots: npt.NDArray[np.int32], codes: Positions) -> None:
    if len(codes):
        _place_loop(slots, np.ascontiguousarray(codes))
