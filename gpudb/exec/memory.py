"""Memory: what queries may keep, counted in bytes.

A query reserves what its sinks keep (build sides, groups, sorted rows). ``grow`` grants or refuses
and never waits; who is refused spills or fails with 53200. Scratch of one batch is not counted.
"""

from __future__ import annotations

import threading

from gpudb import errors

QUERY_MINIMUM_BYTES = 4 << 20
"""What a query gets at once when it is admitted."""


class MemoryPool:
    """The bytes that all queries of a process share."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._lock = threading.Lock()

    def reserve(self, limit_bytes: int = 0) -> Reservation:
        """A query's own account; ``limit_bytes`` 0 = only the pool limits it."""
        return Reservation(self, limit_bytes)

    def take(self, count: int) -> bool:
        """Take bytes from the pool; False when it has not so many left."""
        with self._lock:
            if self.used_bytes + count > self.limit_bytes:
                return False
            self.used_bytes += count
            return True

    def give(self, count: int) -> None:
        with self._lock:
            self.used_bytes -= count


class Reservation:
    """The account of one query; released once."""

    def __init__(self, pool: MemoryPool, limit_bytes: int) -> None:
        self._pool = pool
        self._limit = limit_bytes or pool.limit_bytes
        self.used_bytes = 0
        self.peak_bytes = 0
        self._lock = threading.Lock()

    def grow(self, count: int) -> bool:
        """Reserve ``count`` more bytes, if there are that many."""
        with self._lock:
            if self.used_bytes + count > self._limit or not self._pool.take(count):
                return False
            self.used_bytes += count
            self.peak_bytes = max(self.peak_bytes, self.used_bytes)
            return True

    def require(self, count: int, purpose: str) -> None:
        """Reserve bytes that can't be spilled; 53200 when there are not so many."""
        if not self.grow(count):
            raise errors.OutOfMemory(
                "out of memory",
                detail=f"{purpose} needs {count} more bytes in RAM; {self.used_bytes} of "
                f"{self._limit} bytes are reserved by this query, {self._pool.used_bytes} of "
                f"{self._pool.limit_bytes} by all.",
                hint='Increase the setting "gpudb.memory_limit".',
            )

    def shrink(self, count: int) -> None:
        with self._lock:
            self.used_bytes -= count
        self._pool.give(count)

    def release(self) -> None:
        """Give everything back."""
        with self._lock:
            count, self.used_bytes = self.used_bytes, 0
        self._pool.give(count)
