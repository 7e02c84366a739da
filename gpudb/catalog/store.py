"""The durable catalog: one SQLite file, one connection, one writer.

WAL mode with synchronous=FULL: when ``commit`` returns the change survives kill -9 and power
loss. Every write runs in BEGIN IMMEDIATE under one lock. Rows carry the snapshots of their begin
and end, so that a pinned old snapshot can be loaded again after a restart. The server holds a
flock on the data directory; nobody else opens the file while it runs.

Order of a commit with data: the segment files are written, synced and renamed first (storage),
then ``commit``; a crash in between leaves files that the next start sweeps (``is_orphan``).
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from gpudb import errors
from gpudb.catalog.bootstrap import initial_changes
from gpudb.catalog.catalog import CatalogSnapshot
from gpudb.catalog.changes import Change, Create, Drop
from gpudb.catalog.conflicts import check_dependents, reconcile
from gpudb.catalog.garbage import Garbage
from gpudb.catalog.loader import load
from gpudb.catalog.objects import FIRST_USER_OID, ObjectClass
from gpudb.catalog.sequences import Sequences
from gpudb.catalog.sqlite import run, transaction
from gpudb.catalog.writer import Writer

FORMAT_VERSION = 1
BLOCK = 1000
"""OIDs and segment ids are reserved durably in blocks of this size."""
FILE_NAME = "catalog.db"
LOCK_NAME = "gpudb.lock"
CHECKPOINT_PAGES = 4000
BUSY_TIMEOUT_MS = 5000

_POSTGRES_EPOCH_SECONDS = 946684800
_SEGMENT_FILE = re.compile(r"(\d+)-[0-9a-f]{32}\.(?:seg|del)")

_TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value ANY) STRICT;
CREATE TABLE snapshot(id INTEGER PRIMARY KEY, at INTEGER NOT NULL, note TEXT NOT NULL) STRICT;
CREATE TABLE object(
    class INTEGER NOT NULL, key TEXT NOT NULL, begin INTEGER NOT NULL, "end" INTEGER,
    body ANY NOT NULL, PRIMARY KEY(class, key, begin)) STRICT, WITHOUT ROWID;
CREATE INDEX object_end ON object("end") WHERE "end" IS NOT NULL;
CREATE TABLE segment(
    id INTEGER PRIMARY KEY, relation INTEGER NOT NULL, begin INTEGER NOT NULL, "end" INTEGER,
    rows INTEGER NOT NULL, bytes INTEGER NOT NULL, path TEXT, row0 INTEGER NOT NULL,
    level INTEGER NOT NULL, schema_version INTEGER NOT NULL, footer_offset INTEGER NOT NULL,
    footer_length INTEGER NOT NULL, footer_checksum INTEGER NOT NULL,
    columns BLOB NOT NULL, image BLOB) STRICT;
CREATE INDEX segment_relation ON segment(relation);
CREATE INDEX segment_end ON segment("end") WHERE "end" IS NOT NULL;
CREATE TABLE delete_vector(
    segment INTEGER NOT NULL, begin INTEGER NOT NULL, "end" INTEGER, rows INTEGER NOT NULL,
    encoding TEXT NOT NULL, data BLOB NOT NULL, path TEXT,
    PRIMARY KEY(segment, begin)) STRICT, WITHOUT ROWID;
CREATE INDEX delete_vector_end ON delete_vector("end") WHERE "end" IS NOT NULL;
CREATE TABLE place(
    segment INTEGER NOT NULL, node INTEGER NOT NULL,
    PRIMARY KEY(segment, node)) STRICT, WITHOUT ROWID;
CREATE TABLE sequence(
    oid INTEGER PRIMARY KEY, last_value INTEGER NOT NULL, is_called INTEGER NOT NULL) STRICT;
CREATE TABLE trash(path TEXT PRIMARY KEY, after_snapshot INTEGER NOT NULL) STRICT;
CREATE TABLE pin(
    id TEXT PRIMARY KEY, snapshot INTEGER NOT NULL, until INTEGER, note TEXT NOT NULL) STRICT;
"""


def now_microseconds() -> int:
    """The time as timestamptz counts it: microseconds since 2000-01-01 UTC."""
    return time.time_ns() // 1000 - _POSTGRES_EPOCH_SECONDS * 1_000_000


class Store:
    """Opens, loads, commits. Thread-safe: any session's thread may call any method."""

    def __init__(self, directory: Path, connection: apsw.Connection, lock_file: int) -> None:
        self.directory = directory
        self._connection = connection
        self._lock_file = lock_file
        self._lock = threading.RLock()
        self._pins: Counter[int] = Counter()
        self._free: dict[str, list[int]] = {"next_oid": [], "next_segment": []}
        self._start()
        self.garbage = Garbage(connection, self._lock, self.oldest_snapshot)

    @classmethod
    def open(cls, directory: Path) -> Store:
        """The catalog of a data directory, made when it has none.

        Raises LockFileExists (F0001) when a server holds the directory and
        ObjectNotInPrerequisiteState (55000) when a newer gpudb wrote it.
        """
        directory.mkdir(parents=True, exist_ok=True)
        lock_file = lock_directory(directory)
        try:
            connection = _connect(directory / FILE_NAME)
            return cls(directory, connection, lock_file)
        except BaseException:
            os.close(lock_file)
            raise

    def close(self) -> None:
        """Write what sequences hold in memory, checkpoint, release the directory."""
        with self._lock:
            if self._lock_file < 0:
                return
            self.sequences.flush()
            run(self._connection, "PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.close()
            os.close(self._lock_file)
            self._lock_file = -1

    # Start

    def _start(self) -> None:
        tables = run(self._connection, "SELECT count(*) FROM sqlite_schema WHERE type = 'table'")
        if tables[0][0] == 0:
            self._create()
        version = self._meta("format_version")
        if version > FORMAT_VERSION:
            raise errors.ObjectNotInPrerequisiteState(
                "database files are incompatible with server",
                detail=f"The data directory has format version {version}, "
                f"this server reads up to {FORMAT_VERSION}.",
            )
        self.database_uuid = str(self._meta("database_uuid"))
        with self._transaction():
            self._set_meta("epoch", self._meta("epoch") + 1)
        self.epoch = int(self._meta("epoch"))
        last = run(self._connection, "SELECT coalesce(max(id), 0) FROM snapshot")[0][0]
        self.sequences = Sequences(self._connection, self._lock)
        self._published = load(self._connection, last, is_current=True)
        if last == 0:  # new, or the process died between the two steps of its making
            self.commit(initial_changes(), self._published, note="initdb")

    def _create(self) -> None:
        with self._transaction():
            for statement in filter(str.strip, _TABLES.split(";")):
                run(self._connection, statement)
            self._set_meta("format_version", FORMAT_VERSION)
            self._set_meta("database_uuid", str(uuid.uuid4()))
            self._set_meta("epoch", 0)
            self._set_meta("next_oid", FIRST_USER_OID)
            self._set_meta("next_segment", 1)

    def _meta(self, key: str) -> Any:
        return run(self._connection, "SELECT value FROM meta WHERE key = ?", (key,))[0][0]

    def _set_meta(self, key: str, value: int | str) -> None:
        run(self._connection, "INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with transaction(self._connection, self._lock):
            yield

    # Snapshots

    @property
    def published(self) -> CatalogSnapshot:
        """The last committed snapshot. Pin it (``pinned``) before reading its files."""
        return self._published

    def acquire(self) -> CatalogSnapshot:
        """The last committed snapshot, pinned: its files stay until ``release``."""
        with self._lock:
            self._pins[self._published.id] += 1
            return self._published

    def release(self, snapshot: CatalogSnapshot) -> None:
        """Undo one ``acquire``; local snapshots derived from it count as it."""
        with self._lock:
            self._pins[snapshot.id] -= 1
            if self._pins[snapshot.id] <= 0:
                del self._pins[snapshot.id]

    @contextmanager
    def pinned(self) -> Iterator[CatalogSnapshot]:
        snapshot = self.acquire()
        try:
            yield snapshot
        finally:
            self.release(snapshot)

    def oldest_snapshot(self) -> int:
        """The oldest snapshot id that anything may still read: no file it shows may go."""
        with self._lock:
            durable = run(
                self._connection,
                "SELECT min(snapshot) FROM pin WHERE until IS NULL OR until > ?",
                (now_microseconds(),),
            )[0][0]
            active = min(self._pins, default=self._published.id)
            return min(active, self._published.id if durable is None else durable)

    def snapshot_at(self, snapshot_id: int) -> CatalogSnapshot:
        """A past snapshot, loaded from the file; it must be pinned durably (58P01 else)."""
        with self._lock:
            if snapshot_id < self.oldest_snapshot():
                raise errors.UndefinedFile(f"snapshot {snapshot_id} is too old")
            return load(self._connection, snapshot_id, is_current=False)

    def pin_durably(self, name: str, snapshot_id: int, *, until: int | None = None) -> None:
        """Keep a snapshot over restarts, until a time (microseconds since 2000) or unpinned."""
        with self._transaction():
            run(
                self._connection,
                "INSERT OR REPLACE INTO pin VALUES (?, ?, ?, '')",
                (name, snapshot_id, until),
            )

    def unpin_durably(self, name: str) -> None:
        with self._transaction():
            run(self._connection, "DELETE FROM pin WHERE id = ?", (name,))

    # Commits

    def commit(
        self, changes: Sequence[Change], base: CatalogSnapshot, *, note: str = ""
    ) -> CatalogSnapshot:
        """Make changes that were applied to ``base`` durable and publish the new snapshot.

        Raises SerializationFailure (40001) when a commit since ``base`` conflicts, Duplicate*
        when a name was taken meanwhile; then nothing has changed.
        """
        with self._lock:
            current = self._published
            if not changes:
                return current
            final = reconcile(changes, base, current)
            after = current.apply(final, id=current.id + 1)
            if current.id != base.id:
                check_dependents(final, after)
            with self._transaction():
                Writer(self._connection, current, after, self.sequences).write(final)
                run(
                    self._connection,
                    "INSERT INTO snapshot VALUES (?, ?, ?)",
                    (after.id, now_microseconds(), note),
                )
            self._published = after
            self._settle_sequences(final)
            return after

    def _settle_sequences(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if isinstance(change, Create):
                self.sequences.created(change.object.oid)
            elif isinstance(change, Drop) and change.class_id == ObjectClass.RELATION:
                self.sequences.forget(change.oid)

    # Identifiers

    def allocate_oid(self) -> int:
        """An OID that was never given out before, also not before a crash."""
        return self._allocate("next_oid")

    def allocate_segment_id(self) -> int:
        return self._allocate("next_segment")

    def _allocate(self, counter: str) -> int:
        with self._lock:
            free = self._free[counter]
            if not free:
                with self._transaction():
                    first = self._meta(counter)
                    self._set_meta(counter, first + BLOCK)
                free.extend(range(first + BLOCK - 1, first - 1, -1))
            return free.pop()

    def new_file_name(self, suffix: str = "seg") -> str:
        """``<epoch>-<uuid>.<suffix>``: only a later epoch may sweep it when nobody lists it."""
        return f"{self.epoch}-{uuid.uuid4().hex}.{suffix}"

    # Files

    def referenced_files(self) -> set[str]:
        """Names (without folders) of every file that some row still lists, trash included."""
        with self._lock:
            found: set[str] = set()
            for query in (
                "SELECT path FROM segment WHERE path IS NOT NULL",
                "SELECT path FROM delete_vector WHERE path IS NOT NULL",
                "SELECT path FROM trash",
            ):
                rows = run(self._connection, query)
                found.update(path.rsplit("/", 1)[-1] for (path,) in rows)
            return found

    def is_orphan(self, name: str, referenced: set[str]) -> bool:
        """True for a file of an older epoch that no row lists; never for foreign names."""
        match = _SEGMENT_FILE.fullmatch(name)
        return match is not None and int(match[1]) < self.epoch and name not in referenced

    # Placement and backup

    def place(self, segment: int, node: int) -> None:
        with self._transaction():
            run(self._connection, "INSERT OR IGNORE INTO place VALUES (?, ?)", (segment, node))

    def places(self) -> dict[int, tuple[int, ...]]:
        """Nodes by segment id, for segments that were placed."""
        with self._lock:
            found: dict[int, tuple[int, ...]] = {}
            query = "SELECT segment, node FROM place ORDER BY 1, 2"
            for segment, node in run(self._connection, query):
                found[segment] = (*found.get(segment, ()), node)
            return found

    def backup(self, target: Path) -> CatalogSnapshot:
        """Write a consistent copy of the catalog; the caller links the files it lists.

        The returned snapshot is the copy's and is pinned: release it when the links are made.
        """
        with self._lock:
            snapshot = self.acquire()
            self.sequences.flush()
            run(self._connection, "VACUUM INTO ?", (str(target),))
            return snapshot

    def check(self) -> list[str]:
        """SQLite's own integrity check; empty when all is well."""
        with self._lock:
            rows = run(self._connection, "PRAGMA integrity_check")
            return [text for (text,) in rows if text != "ok"]


def lock_directory(directory: Path) -> int:
    """A file descriptor that holds the data directory; close it to let go.

    Raises LockFileExists (F0001) when another process holds it.
    """
    path = directory / LOCK_NAME
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(handle, 32).decode(errors="replace").strip()
        os.close(handle)
        raise errors.LockFileExists(
            f'data directory "{directory}" is in use by another gpudb process',
            detail=f"The process has PID {holder}." if holder else "",
            hint="Stop that server, or connect to it instead.",
        ) from None
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return handle


def _connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    run(connection, "PRAGMA journal_mode = WAL")
    run(connection, "PRAGMA synchronous = FULL")
    run(connection, "PRAGMA foreign_keys = OFF")
    run(connection, f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    return connection
