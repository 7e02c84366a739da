"""One transaction: its catalog view, its writes, its savepoints, and how it ends.

READ COMMITTED takes a new base snapshot for every statement, REPEATABLE READ (and SERIALIZABLE,
which runs as it) keeps the first one. Base snapshots are pinned in the store while in use, so
that their files stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpudb import errors
from gpudb.catalog.catalog import CatalogSnapshot, Savepoint, TransactionCatalog
from gpudb.catalog.changes import Change
from gpudb.catalog.store import Store
from gpudb.storage.table import Storage
from gpudb.storage.writes import WriteSet

SAVEPOINTS_MAX = 10_000


@dataclass(slots=True)
class _Mark:
    name: str
    point: Savepoint
    writers: int


class Transaction:
    """``on_commit`` callbacks run after a successful commit, in order (NOTIFY, file removal)."""

    def __init__(
        self,
        store: Store,
        storage: Storage,
        *,
        database_oid: int,
        temporary: tuple[Change, ...],
        isolation: str,
        is_read_only: bool,
        started_microseconds: int,
    ) -> None:
        self._store = store
        self._database_oid = database_oid
        self.isolation = isolation
        self.is_read_only = is_read_only
        self.started_microseconds = started_microseconds
        self._pinned = store.acquire()
        self.catalog = TransactionCatalog(self._pinned.in_database(database_oid), temporary)
        self.writes = WriteSet(storage, self.catalog)
        self._marks: list[_Mark] = []
        self.on_commit: list[Callable[[], None]] = []
        self.is_finished = False
        self.has_run = False

    @property
    def snapshot(self) -> CatalogSnapshot:
        return self.catalog.snapshot

    def next_statement(self) -> CatalogSnapshot:
        """The snapshot of the statement that starts now."""
        if self.has_run and self.isolation != "read committed":
            return self.snapshot
        self.has_run = True
        newest = self._store.acquire()
        old, self._pinned = self._pinned, newest
        snapshot = self.catalog.refresh(newest.in_database(self._database_oid))
        self._store.release(old)
        return snapshot

    def change(self, *changes: Change) -> CatalogSnapshot:
        """Apply definitions or data changes; 25006 when the transaction is read only."""
        return self.catalog.apply(*changes)

    def require_writable(self, command: str) -> None:
        """25006 for a command that writes in a read-only transaction."""
        if self.is_read_only:
            raise errors.ReadOnlySqlTransaction(
                f"cannot execute {command} in a read-only transaction"
            )

    # Savepoints

    def savepoint(self, name: str) -> None:
        if len(self._marks) >= SAVEPOINTS_MAX:
            raise errors.ProgramLimitExceeded("too many savepoints in one transaction")
        self._marks.append(_Mark(name, self.catalog.savepoint(), len(self.writes.writers)))

    def release(self, name: str) -> None:
        """Forget the savepoint and all after it; 3B001 when there is none."""
        del self._marks[self._find(name) :]

    def rollback_to(self, name: str) -> None:
        """Undo everything since the savepoint, which stays; 3B001 when there is none."""
        index = self._find(name)
        mark = self._marks[index]
        del self._marks[index + 1 :]
        self.catalog.rollback_to(mark.point)
        self.writes.discard_from(mark.writers)

    def has_savepoint(self, name: str) -> bool:
        return any(mark.name == name for mark in self._marks)

    def _find(self, name: str) -> int:
        for index in range(len(self._marks) - 1, -1, -1):
            if self._marks[index].name == name:
                return index
        raise errors.InvalidSavepointSpecification(f'savepoint "{name}" does not exist')

    # The end

    def commit(self) -> tuple[Change, ...]:
        """Make the changes durable; the changes of temporary objects that live on.

        On an error (40001 ...) nothing is committed and the files are gone.
        """
        assert not self.is_finished
        try:
            if self.catalog.permanent:
                self._store.commit(tuple(self.catalog.permanent), self.catalog.base)
        except BaseException:
            self.rollback()
            raise
        self._finish()
        for callback in self.on_commit:
            callback()
        return tuple(self.catalog.temporary)

    def rollback(self) -> None:
        if not self.is_finished:
            self.writes.discard_from(0)
            self._finish()

    def _finish(self) -> None:
        self.is_finished = True
        self._store.release(self._pinned)
