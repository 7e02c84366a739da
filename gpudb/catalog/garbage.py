"""Which rows and files nobody can see any more, and how they go.

A row whose end is at or below the oldest readable snapshot is dead: ``collect`` deletes it and
notes its file in ``trash``. ``disposable`` lists the files that may be unlinked now;
``forget`` removes them from the list afterwards. Unlinking a missing file counts as done, so
every step may be repeated after a crash.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import apsw

from gpudb.catalog.sqlite import run, transaction


class Garbage:
    """Garbage collection of one store; ``oldest`` yields the oldest snapshot still readable."""

    def __init__(
        self, connection: apsw.Connection, lock: threading.RLock, oldest: Callable[[], int]
    ) -> None:
        self._connection = connection
        self._lock = lock
        self._oldest = oldest

    def collect(self) -> int:
        """Delete dead rows; yields how many files went to the trash."""
        with transaction(self._connection, self._lock):
            horizon = self._oldest()
            moved = 0
            for table in ("segment", "delete_vector"):
                dead = run(
                    self._connection,
                    f'SELECT path FROM {table} WHERE "end" <= ? AND path IS NOT NULL',
                    (horizon,),
                )
                for (path,) in dead:
                    run(
                        self._connection,
                        "INSERT OR IGNORE INTO trash VALUES (?, ?)",
                        (path, horizon),
                    )
                moved += len(dead)
                run(self._connection, f'DELETE FROM {table} WHERE "end" <= ?', (horizon,))
            run(self._connection, 'DELETE FROM object WHERE "end" <= ?', (horizon,))
            run(
                self._connection,
                "DELETE FROM place WHERE segment NOT IN (SELECT id FROM segment)",
            )
            run(
                self._connection,
                "DELETE FROM snapshot WHERE id < ? AND id < (SELECT max(id) FROM snapshot)",
                (horizon,),
            )
            return moved

    def disposable(self) -> list[str]:
        """Paths (relative to the data directory) that no snapshot shows: unlink them."""
        with self._lock:
            rows = run(
                self._connection,
                "SELECT path FROM trash WHERE after_snapshot <= ? ORDER BY 1",
                (self._oldest(),),
            )
            return [path for (path,) in rows]

    def forget(self, paths: Iterable[str]) -> None:
        """Drop unlinked files from the trash."""
        with transaction(self._connection, self._lock):
            for path in paths:
                run(self._connection, "DELETE FROM trash WHERE path = ?", (path,))
