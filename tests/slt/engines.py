"""What records run against: a database in this process, or a server by psycopg."""

from __future__ import annotations

import tempfile
import tomllib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

INTEGERS = {20, 21, 23, 26}
NUMBERS = {700, 701, 1700}
STATEMENT_SECONDS_MAX = 30
"""A statement that runs longer fails with 57014, so that its record is named."""
TIMES = {1082, 1083, 1114, 1184, 1266, 1186}


def type_letter(oid: int) -> str:
    """The letter of a column's type in a query's header."""
    for letter, oids in (("I", INTEGERS), ("R", NUMBERS), ("D", TIMES), ("B", {16})):
        if oid in oids:
            return letter
    return "T"


@dataclass(frozen=True, slots=True)
class Config:
    """A tests/configs/*.toml: settings of the engine; ``is_extended``: prepare every statement."""

    name: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    threads: int = 0
    is_extended: bool = False


def read_config(path: Path) -> Config:
    """The configuration of a file."""
    found = tomllib.loads(path.read_text("utf-8"))
    return Config(
        path.stem,
        {name: str(value) for name, value in found.get("settings", {}).items()},
        found.get("threads", 0),
        found.get("protocol", "simple") == "extended",
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """Rows as texts with column type OIDs, or a command tag, or an error."""

    rows: list[tuple[str | None, ...]] = field(default_factory=list)
    oids: tuple[int, ...] = ()
    tag: str = ""
    sqlstate: str = ""
    message: str = ""


class Engine(Protocol):
    name: str

    def run(self, sql: str) -> Outcome: ...

    def close(self) -> None: ...


class Embedded:
    """A new database in a temporary directory of this process."""

    name = "gpudb"

    def __init__(self, config: Config) -> None:
        import gpudb

        self.config = config
        self._directory = tempfile.TemporaryDirectory(prefix="gpudb-slt-")
        self._connection = gpudb.connect(
            self._directory.name,
            threads=config.threads,
            settings={"statement_timeout": str(STATEMENT_SECONDS_MAX * 1000), **config.settings},
        )

    def run(self, sql: str) -> Outcome:
        from gpudb.errors import SqlError

        cursor = self._connection.cursor()
        try:
            if self.config.is_extended:
                cursor.execute(sql.replace("%", "%%"), ())
            else:
                cursor.execute(sql)
        except SqlError as error:
            return Outcome(sqlstate=error.sqlstate, message=error.message)
        except Exception as error:  # a fault of the engine fails this record, not the run
            return Outcome(sqlstate="XX000", message=f"{type(error).__name__}: {error}")
        result = cursor.result
        if result is None:
            return Outcome()
        oids = tuple(item.type_oid for item in result.fields or ())
        return Outcome(result.texts(), oids, result.tag)

    def close(self) -> None:
        self._connection.close()
        self._directory.cleanup()


class Server:
    """A new database on a server, or a new schema where it has no CREATE DATABASE."""

    def __init__(self, dsn: str, config: Config) -> None:
        import psycopg

        self.config = config
        self._dsn = dsn
        self._database = f"slt_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(dsn, autocommit=True) as connection:
            row = connection.execute("SELECT version()").fetchone()
            assert row is not None
            self.name = "postgresql" if row[0].startswith("PostgreSQL") else "gpudb"
            connection.execute(f"CREATE DATABASE {self._database}")
        self._connection = psycopg.connect(dsn, autocommit=True, dbname=self._database)
        self._connection.execute("SET TimeZone TO 'UTC'")
        self._connection.execute(f"SET statement_timeout TO '{STATEMENT_SECONDS_MAX}s'".encode())
        if self.name == "gpudb":
            for name, value in config.settings.items():
                self._connection.execute("SELECT set_config(%s, %s, false)", (name, value))

    def run(self, sql: str) -> Outcome:
        from psycopg import pq

        link = self._connection.pgconn
        text = sql.encode()
        result = link.exec_params(text, None) if self.config.is_extended else link.exec_(text)
        if result.status == pq.ExecStatus.FATAL_ERROR:
            return Outcome(sqlstate=_field(result, "SQLSTATE"),
                           message=_field(result, "MESSAGE_PRIMARY"))  # fmt: skip
        tag = (result.command_status or b"").decode()
        rows = [
            tuple(_text(result.get_value(row, column)) for column in range(result.nfields))
            for row in range(result.ntuples)
        ]
        return Outcome(rows, tuple(result.ftype(i) for i in range(result.nfields)), tag)

    def close(self) -> None:
        import psycopg

        self._connection.close()
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {self._database}")


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _field(result: Any, name: str) -> str:
    from psycopg import pq

    return (result.error_field(pq.DiagnosticField[name]) or b"").decode()


def open_engine(dsn: str, config: Config) -> Engine:
    """The server of a DSN, or a database in this process."""
    return Server(dsn, config) if dsn else Embedded(config)
