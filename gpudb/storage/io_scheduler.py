"""Reads segment buffers in the background: combined ranges, cut into requests, a few in flight.

Neighbouring buffers become one range when the gap between them is at most GAP_BYTES_MAX (reader
combining); a range is read in requests of at most REQUEST_BYTES_MAX by a small pool of threads
shared by all queries. A request's memory belongs to the columns made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from gpudb.catalog.objects import BufferRef
from gpudb.storage.encoding.base import Bytes
from gpudb.storage.file import REQUEST_BYTES_MAX, PosixFile, aligned_buffer
from gpudb.storage.format import aligned

GAP_BYTES_MAX = 32 << 10
"""Measured: merging over a larger gap loses to separate requests."""
RANGE_BYTES_MAX = 64 << 20
READER_THREADS = 4


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes [start, stop) of a file, page-aligned."""

    start: int
    stop: int


def combine(buffers: Sequence[BufferRef]) -> list[Range]:
    """The ranges that cover the buffers, in file order."""
    ranges: list[Range] = []
    for buffer in sorted(buffers, key=lambda b: b.offset):
        if not buffer.length:
            continue
        start, stop = buffer.offset, buffer.offset + aligned(buffer.length)
        last = ranges[-1] if ranges else None
        if last and start - last.stop <= GAP_BYTES_MAX and stop - last.start <= RANGE_BYTES_MAX:
            ranges[-1] = Range(last.start, max(stop, last.stop))
        else:
            ranges.append(Range(start, stop))
    return ranges


class IoScheduler:
    """The pool of reader threads of one process."""

    def __init__(self, threads: int = READER_THREADS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="gpudb-read")
        self.bytes_read = 0
        self.requests = 0

    def read(self, path: Path, buffers: Sequence[BufferRef]) -> list[Bytes]:
        """The contents of the buffers, each a view into the memory of its range; blocks."""
        ranges = combine(buffers)
        memory = [aligned_buffer(r.stop - r.start) for r in ranges]
        file = PosixFile(path)
        try:
            requests: list[Future[None]] = []
            for span, target in zip(ranges, memory, strict=True):
                for start in range(0, len(target), REQUEST_BYTES_MAX):
                    piece = target[start : start + REQUEST_BYTES_MAX]
                    requests.append(self._pool.submit(file.read_into, piece, span.start + start))
                self.bytes_read += len(target)
            self.requests += len(requests)
            wait(requests)
            for request in requests:
                request.result()
        finally:
            file.close()
        return [_view(buffer, ranges, memory) for buffer in buffers]

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def _view(buffer: BufferRef, ranges: list[Range], memory: list[Bytes]) -> Bytes:
    if not buffer.length:
        return aligned_buffer(0)[:0]
    for span, target in zip(ranges, memory, strict=True):
        if span.start <= buffer.offset < span.stop:
            start = buffer.offset - span.start
            return target[start : start + buffer.length]
    raise AssertionError("a buffer outside of the ranges made of it")
