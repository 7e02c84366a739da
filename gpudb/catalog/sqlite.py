"""Statements on the catalog's SQLite connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from gpudb import errors


def run(
    connection: apsw.Connection, statement: str, values: Sequence[Any] | dict[str, Any] = ()
) -> list[tuple[Any, ...]]:
    """One statement, read to its end: SQLite runs lazily and unread rows stop what follows."""
    return list(connection.execute(statement, values))


@contextmanager
def transaction(connection: apsw.Connection, lock: threading.RLock) -> Iterator[None]:
    """BEGIN IMMEDIATE ... COMMIT; ROLLBACK on any exception."""
    with lock:
        run(connection, "BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            run(connection, "ROLLBACK")
            raise
        _commit(connection)


def _commit(connection: apsw.Connection) -> None:
    try:
        run(connection, "COMMIT")
    except apsw.Error as error:
        if connection.in_transaction:
            run(connection, "ROLLBACK")
        raise errors.IoError(f"could not write the catalog: {error}") from error
