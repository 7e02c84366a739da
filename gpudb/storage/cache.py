"""Loaded columns of segments, shared by all queries: least recently used go first.

An entry may be dropped at any time; who holds the Column keeps its memory alive. One loader a
column: others wait for it. A failed load is forgotten, so that the next query tries again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future

from gpudb.column import Column

Key = tuple[int, int]
"""Segment id and attnum."""


def column_bytes(column: Column) -> int:
    """What a column holds in memory (the dictionary included, objects estimated)."""
    size = sum(buffer.untyped_storage().nbytes() for buffer in column.data)
    if column.valid is not None:
        size += column.valid.nbytes
    if column.dictionary is not None:
        size += column.dictionary.data.nbytes + column.dictionary.offsets.nbytes
    if column.objects is not None:
        size += 100 * len(column.objects)
    return size


class ColumnCache:
    """At most ``bytes_max`` bytes of columns (one more column while it is being added)."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.bytes = 0
        self.hits = 0
        self.misses = 0
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, tuple[Column, int]] = OrderedDict()
        self._loading: dict[Key, Future[Column]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Column | None:
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            self.hits += 1
            return found[0]

    def get_many(
        self, keys: list[Key], load: Callable[[list[Key]], list[Column]]
    ) -> list[Column]:
        """The columns of the keys; ``load`` is called once for those that nobody has or loads."""
        columns: dict[Key, Column] = {}
        waiting: dict[Key, Future[Column]] = {}
        own: dict[Key, Future[Column]] = {}
        with self._lock:
            for key in keys:
                found = self._entries.get(key)
                if found is not None:
                    self._entries.move_to_end(key)
                    self.hits += 1
                    columns[key] = found[0]
                elif key in self._loading:
                    waiting[key] = self._loading[key]
                elif key not in own:
                    own[key] = self._loading[key] = Future()
                    self.misses += 1
        if own:
            self._load(own, columns, load)
        for key, future in waiting.items():
            columns[key] = future.result()
        return [columns[key] for key in keys]

    def _load(
        self,
        own: dict[Key, Future[Column]],
        columns: dict[Key, Column],
        load: Callable[[list[Key]], list[Column]],
    ) -> None:
        try:
            loaded = load(list(own))
        except BaseException as error:
            with self._lock:
                for key in own:
                    del self._loading[key]
            for future in own.values():
                future.set_exception(error)
            raise
        with self._lock:
            for (key, future), column in zip(own.items(), loaded, strict=True):
                size = column_bytes(column)
                self._entries[key] = (column, size)
                self.bytes += size
                columns[key] = column
                del self._loading[key]
                future.set_result(column)
            self._evict()

    def _evict(self) -> None:
        while self.bytes > self.bytes_max and len(self._entries) > 1:
            _, (_, size) = self._entries.popitem(last=False)
            self.bytes -= size

    def forget(self, segments: set[int]) -> None:
        """Drop the columns of segments that no snapshot shows any more."""
        with self._lock:
            for key in [k for k in self._entries if k[0] in segments]:
                self.bytes -= self._entries.pop(key)[1]

    def shrink(self, bytes_wanted: int) -> int:
        """Give memory back; the bytes that were freed."""
        freed = 0
        with self._lock:
            while freed < bytes_wanted and self._entries:
                _, (_, size) = self._entries.popitem(last=False)
                self.bytes -= size
                freed += size
        return freed
