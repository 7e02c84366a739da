"""Files: aligned direct reads, durable writes. POSIX here; kvikio is CUDA's other backend.

Reads use O_DIRECT into page-aligned memory and fall back to buffered reads where the file system
refuses it (tmpfs, some overlays). Writes go to ``tmp/``, are fsynced, renamed to their place, and
the directory is fsynced; any error aborts, a file is never written twice (after a failed fsync a
second one reports false success).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from gpudb import errors
from gpudb.storage.encoding.base import Bytes
from gpudb.storage.format import ALIGNMENT, aligned

REQUEST_BYTES_MAX = 4 << 20
"""A read is cut into requests of this size: 1-4 MiB with several in flight is the measured best."""
_WRITE_BYTES_MAX = 8 << 20


def aligned_buffer(size: int) -> Bytes:
    """Uninitialized page-aligned memory, ``size`` rounded up to whole pages."""
    whole = aligned(size)
    raw = np.empty(whole + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + whole]


class ReadableFile(Protocol):
    """An open file of one backend; offsets, sizes and memory are multiples of ALIGNMENT."""

    def read_into(self, buffer: Bytes, offset: int) -> None:
        """Fill ``buffer`` from ``offset``; 58030 on an I/O error, XX001 past the end."""

    def close(self) -> None: ...


class PosixFile:
    """O_DIRECT where the file system allows it, else buffered."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = _open(path)

    def read_into(self, buffer: Bytes, offset: int) -> None:
        view = buffer.data
        done = 0
        while done < len(view):
            try:
                count = os.preadv(self._descriptor, [view[done:]], offset + done)
            except OSError as error:
                raise errors.IoError(
                    f'could not read file "{self._path.name}": {error.strerror}'
                ) from error
            if count == 0:
                raise errors.DataCorrupted(
                    f'segment file "{self._path.name}" is shorter than the catalog says',
                    detail=f"Nothing is left to read at offset {offset + done}.",
                )
            done += count

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise _open_error(path, error) from error
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _open_error(path, error) from error


def _open_error(path: Path, error: OSError) -> errors.SqlError:
    if error.errno == errno.ENOENT:
        return errors.DataCorrupted(f'segment file "{path.name}" is missing')
    return errors.IoError(f'could not open file "{path.name}": {error.strerror}')


def write_durably(
    temporary: Path, target: Path, pieces: Sequence[tuple[int, Bytes | bytes]], size: int
) -> None:
    """Create ``target`` with the pieces at their offsets and ``size`` bytes, through ``temporary``.

    On return the content is on disk and the name in its directory; the directory itself is
    fsynced by ``sync_directory``, once a transaction. 53100 when the disk is full.
    """
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for offset, piece in pieces:
                _write_all(descriptor, piece, offset)
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise write_error(error, temporary.name) from error


def _write_all(descriptor: int, piece: Bytes | bytes, offset: int) -> None:
    view = memoryview(piece) if isinstance(piece, bytes) else piece.data
    done = 0
    while done < len(view):
        done += os.pwrite(descriptor, view[done : done + _WRITE_BYTES_MAX], offset + done)


def write_error(error: OSError, name: str) -> errors.SqlError:
    """53100 for a full disk or quota, 58030 otherwise."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return errors.DiskFull(
            f'could not write file "{name}": {error.strerror}', hint="Check free disk space."
        )
    return errors.IoError(f'could not write file "{name}": {error.strerror}')


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise write_error(error, path.name) from error
    finally:
        os.close(descriptor)
