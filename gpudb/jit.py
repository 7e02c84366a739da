"""Compiled loops: the only importer of numba.

``kernel(signature)(loop)`` makes a Kernel of a Python loop over numpy arrays. It is compiled when
it is first needed, without the interpreter lock, for exactly that signature, and kept in an
on-disk cache that only the owner may write. A kernel is never compiled for a handful of rows:
callers ask ``is_worthwhile`` and take the numpy form of the same algorithm otherwise, whose
results are equal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

SMALL_ROWS = 8192
"""Batches below this never cause a compilation."""

_lock = threading.RLock()
_state: dict[str, Any] = {"directory": None, "is_enabled": True, "is_prepared": False}

Loop = TypeVar("Loop", bound=Callable[..., Any])


def configure(*, directory: Path | None = None, is_enabled: bool | None = None) -> None:
    """Set the cache directory and whether loops are compiled at all."""
    if directory is not None:
        _state["directory"] = directory
    if is_enabled is not None:
        _state["is_enabled"] = is_enabled


def _numba() -> Any:
    import numba as module

    numba: Any = module

    if not _state["is_prepared"]:
        directory = _state["directory"] or Path.home() / ".cache" / "gpudb" / "kernels"
        if _own_directory(directory):
            numba.config.CACHE_DIR = str(directory)
            _state["is_cached"] = True
        _state["is_prepared"] = True
    return numba


def _own_directory(directory: Path) -> bool:
    """Make the directory, readable by the owner alone; False when it can't be trusted."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError:
        return False
    return directory.owner() == Path.home().owner() and not status.st_mode & 0o077


class Kernel:
    """A loop that is compiled on demand; call it like the function."""

    def __init__(self, loop: Callable[..., Any], signature: str) -> None:
        self.loop = loop
        self.signature = signature
        self._compiled: Callable[..., Any] | None = None

    def is_worthwhile(self, rows: int) -> bool:
        """Whether to call the kernel for that many rows rather than the numpy form."""
        if not _state["is_enabled"]:
            return False
        return rows >= SMALL_ROWS or (self._compiled is not None and rows > 64)

    def compile(self) -> Callable[..., Any]:
        """The compiled loop."""
        with _lock:
            if self._compiled is None:
                numba = _numba()
                options = {"nogil": True, "cache": bool(_state.get("is_cached"))}
                compiled = numba.njit(self.signature, **options)(self.loop)
                compiled.disable_compile()
                self._compiled = compiled
            return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        compiled = self._compiled
        return (compiled or self.compile())(*arguments)


def kernel(signature: str) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a Kernel of a loop with the given numba signature."""

    def make(loop: Callable[..., Any]) -> Kernel:
        return Kernel(loop, signature)

    return make
