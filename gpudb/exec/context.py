"""What a running query knows: its snapshot, settings, parameters, time and limits.

The first group of fields is shipped to ranks; the second is local to the process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpudb import errors
from gpudb.catalog.types.base import HostValue, TypeContext


class CancelToken:
    """Set from any thread; a worker looks at it between kernels. ``reason`` is the error raised."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.reason: errors.SqlError | None = None

    def cancel(self, reason: errors.SqlError | None = None) -> None:
        if self.reason is None:
            self.reason = reason or errors.QueryCanceled("canceling statement due to user request")
        self._event.set()

    @property
    def is_set(self) -> bool:
        return self._event.is_set()


@dataclass(slots=True)
class QueryContext:
    """``parameters`` are host values with NULL as None; times are microseconds since 2000-01-01
    UTC; ``deadline`` is on time.monotonic(), None = no statement_timeout.
    """

    snapshot: Any
    settings: Mapping[str, Any]
    parameters: tuple[HostValue, ...] = ()
    now_microseconds: int = 0
    statement_microseconds: int = 0
    user: str = "postgres"
    session_user: str = "postgres"
    database: str = "postgres"
    search_path: tuple[str, ...] = ("public",)
    seed: int = 0
    deadline: float | None = None
    own_writes: Any = None

    types: TypeContext = field(default_factory=TypeContext)
    cancel: CancelToken = field(default_factory=CancelToken)
    reservation: Any = None
    counted: Any = None
    """The root of a plan whose rows are only counted (DML without RETURNING)."""
    scheduler: Any = None
    session: Any = None
    rank: int = 0
    metrics: Any = None

    def check(self) -> None:
        """Raise 57014 when the query was cancelled or ran past its deadline."""
        if self.cancel.is_set:
            raise self.cancel.reason or errors.QueryCanceled("canceling statement")
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise errors.QueryCanceled("canceling statement due to statement timeout")
