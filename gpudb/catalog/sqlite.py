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
    """BEGIN IMMEDIATE ... COMMIT; ROLLBACK on any exception.

    Raises DiskFull (53100) or IoError (58030) for what SQLite reports.
    """
    with lock:
        try:
            run(connection, "BEGIN IMMEDIATE")
            yield
            run(connection, "COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                run(connection, "ROLLBACK")
            if isinstance(error, apsw.Error):
                raise _translated(error) from error
            raise


def _translated(error: apsw.Error) -> errors.SqlError:
    if isinstance(error, apsw.FullError):
        return errors.DiskFull(f"could not write the catalog: {error}")
    return errors.IoError(f"could not write the catalog: {error}")
