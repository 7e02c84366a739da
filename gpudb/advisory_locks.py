"""Advisory locks: numbers that sessions lock by agreement, held by session or by transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from gpudb import errors

LOCKS_MAX = 1_000_000
"""Keys that may be locked at the same time; 53200 beyond."""
_WAIT_SECONDS = 0.05
"""How often a waiting session looks whether it was cancelled."""

Key = tuple[int, int, int, int]
"""(database, first half, second half, 1 for a bigint key or 2 for two integers)."""


@dataclass(slots=True)
class _Held:
    """How often each owner holds a key; an owner is (session, is of the transaction)."""

    shared: dict[tuple[int, bool], int] = field(default_factory=dict)
    exclusive: dict[tuple[int, bool], int] = field(default_factory=dict)


class AdvisoryLocks:
    """The locks of all sessions of a server."""

    def __init__(self) -> None:
        self._held: dict[Key, _Held] = {}
        self._waiting: dict[int, frozenset[int]] = {}
        self._changed = threading.Condition()

    def take(
        self,
        session: int,
        key: Key,
        *,
        is_shared: bool,
        is_of_transaction: bool,
        check: Callable[[], None] | None,
    ) -> bool:
        """Lock a key; waits while others hold it, calling ``check`` (which raises to stop).

        Without ``check`` it gives False at once instead. Raises DeadlockDetected (40P01) when
        those who hold it wait for this session.
        """
        with self._changed:
            while blockers := self._blockers(session, key, is_shared):
                if check is None:
                    return False
                self._waiting[session] = blockers
                try:
                    self._refuse_deadlock(session)
                    self._changed.wait(_WAIT_SECONDS)
                finally:
                    del self._waiting[session]
                check()
            if key not in self._held and len(self._held) >= LOCKS_MAX:
                raise errors.OutOfMemory("out of shared memory")
            held = self._held.setdefault(key, _Held())
            counts = held.shared if is_shared else held.exclusive
            owner = (session, is_of_transaction)
            counts[owner] = counts.get(owner, 0) + 1
            return True

    def _blockers(self, session: int, key: Key, is_shared: bool) -> frozenset[int]:
        held = self._held.get(key)
        if held is None:
            return frozenset()
        owners = set(held.exclusive) if is_shared else {*held.exclusive, *held.shared}
        return frozenset(owner for owner, _ in owners if owner != session)

    def _refuse_deadlock(self, session: int) -> None:
        seen: set[int] = set()
        todo = list(self._waiting[session])
        while todo:
            other = todo.pop()
            if other == session:
                raise errors.DeadlockDetected("deadlock detected")
            if other not in seen:
                seen.add(other)
                todo.extend(self._waiting.get(other, ()))

    def release(self, session: int, key: Key, *, is_shared: bool) -> bool:
        """Give up one session-level hold; False when there is none."""
        with self._changed:
            held = self._held.get(key)
            counts = {} if held is None else held.shared if is_shared else held.exclusive
            owner = (session, False)
            if owner not in counts:
                return False
            counts[owner] -= 1
            if not counts[owner]:
                del counts[owner]
                self._forget_if_free(key)
            return True

    def release_all(self, session: int, *, is_of_transaction: bool) -> None:
        """Give up everything that a session (or its transaction) holds."""
        owner = (session, is_of_transaction)
        with self._changed:
            for key, held in list(self._held.items()):
                if held.shared.pop(owner, 0) or held.exclusive.pop(owner, 0):
                    self._forget_if_free(key)

    def _forget_if_free(self, key: Key) -> None:
        held = self._held[key]
        if not held.shared and not held.exclusive:
            del self._held[key]
        self._changed.notify_all()
