"""Embedded use from the command line: run SQL on a data directory, set passwords."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from gpudb.database import Database, Options
from gpudb.embedded import Connection
from gpudb.errors import SqlError


def run(data: Path, text: str, output: TextIO, problems: TextIO, *, threads: int = 0) -> int:
    """Run statements, print their results as aligned tables; the exit status."""
    try:
        database = Database(data, Options(threads=threads))
    except SqlError as error:
        print(f"gpudb: {error.message}", file=problems)
        for note in (error.detail, error.hint):
            if note:
                print(note, file=problems)
        return 2
    try:
        connection = Connection(database)
        try:
            for result in connection.run_script(text):
                print(result.rendered(), file=output)
        except SqlError as error:
            print(f"{error.severity}:  {error.message}", file=problems)
            for label, note in (("DETAIL", error.detail), ("HINT", error.hint)):
                if note:
                    print(f"{label}:  {note}", file=problems)
            return 1
        finally:
            connection.close()
    finally:
        database.close()
    return 0


def set_password(data: Path, role: str, password: str) -> None:
    """Store a SCRAM verifier for the role."""
    database = Database(data)
    try:
        connection = Connection(database)
        quoted = role.replace('"', '""')
        secret = password.replace("'", "''")
        list(connection.run_script(f"ALTER ROLE \"{quoted}\" PASSWORD '{secret}'"))
        connection.close()
    finally:
        database.close()
