"""Embedded use: DB-API 2.0 (PEP 249) on a data directory in this process, and ``.sql()``.

``gpudb.connect(directory)`` opens a connection; several connections share the directory's engine.
Parameters are written ``%s`` or ``%(name)s`` as in psycopg, or ``$1``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gpudb import errors
from gpudb.catalog import types
from gpudb.column import from_host, to_values
from gpudb.commands import Done, Rows
from gpudb.database import Database, Options
from gpudb.embedded_values import to_arrow_table, to_python
from gpudb.optimizer import statements
from gpudb.optimizer.statements import nodes
from gpudb.result import HostBatch, ResultField

apilevel = "2.0"
threadsafety = 1
paramstyle = "pyformat"

_OPEN: dict[Path, tuple[Database, int]] = {}
_LOCK = threading.Lock()


def connect(
    directory: str | Path, *, threads: int = 0, settings: Mapping[str, str] | None = None
) -> Connection:
    """A connection to the data directory, opening it when this process has not yet.

    Raises LockFileExists when another process (a server) holds it.
    """
    path = Path(directory).resolve()
    with _LOCK:
        database, count = _OPEN.get(path, (None, 0))
        if database is None:
            database = Database(path, Options(threads=threads, settings=settings))
        _OPEN[path] = (database, count + 1)
    return Connection(database, path)


def _release(path: Path) -> None:
    with _LOCK:
        database, count = _OPEN.pop(path)
        if count > 1:
            _OPEN[path] = (database, count - 1)
            return
    database.close()


@dataclass(frozen=True, slots=True)
class Result:
    """A complete result: fields (None for a command without rows), batches, command tag."""

    fields: tuple[ResultField, ...] | None
    batches: tuple[HostBatch, ...]
    tag: str
    context: types.TypeContext

    @property
    def row_count(self) -> int:
        return sum(batch.rows for batch in self.batches)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows as Python values (Decimal, date, datetime, list ...)."""
        return list(self.rows())

    def rows(self) -> Iterator[tuple[Any, ...]]:
        for batch in self.batches:
            columns = [
                [to_python(column.type_oid, value) for value in to_values(from_host(column))]
                for column in batch.columns
            ]
            yield from zip(*columns, strict=True) if columns else [()] * batch.rows

    def texts(self) -> list[tuple[str | None, ...]]:
        """The rows in PostgreSQL's text form, None for NULL."""
        found: list[tuple[str | None, ...]] = []
        for batch in self.batches:
            columns = []
            for column in batch.columns:
                codec = types.get(column.type_oid)
                values = to_values(from_host(column))
                columns.append(
                    [None if v is None else codec.format(v, self.context) for v in values]
                )
            found.extend(zip(*columns, strict=True) if columns else [()] * batch.rows)
        return found

    def arrow(self) -> Any:
        """The result as a pyarrow.Table."""
        return to_arrow_table(self.fields or (), self.batches)

    def df(self) -> Any:
        """The result as a pandas.DataFrame (pandas must be installed)."""
        return self.arrow().to_pandas()

    def rendered(self) -> str:
        """The result as an aligned table with its row count, or the command tag."""
        if self.fields is None:
            return self.tag
        names = [item.name for item in self.fields]
        rows = [["" if v is None else v for v in row] for row in self.texts()]
        widths = [
            max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(names)
        ]
        lines = [" | ".join(n.center(w) for n, w in zip(names, widths, strict=True))]
        lines.append("-+-".join("-" * w for w in widths))
        lines += [
            " | ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)) for row in rows
        ]
        plural = "row" if len(rows) == 1 else "rows"
        return "\n".join([*lines, f"({len(rows)} {plural})"])


class Connection:
    """DB-API connection; a transaction begins with the first statement and ends with commit()."""

    def __init__(self, database: Database, path: Path | None = None) -> None:
        self._database = database
        self._path = path
        self.session = database.open_session({"user": "postgres", "database": "postgres"})
        self.autocommit = True
        self._closed = False

    def cursor(self) -> Cursor:
        return Cursor(self)

    def execute(self, sql: str, parameters: Any = None) -> Cursor:
        """A new cursor that has executed the statement."""
        return self.cursor().execute(sql, parameters)

    def sql(self, text: str) -> Result:
        """Run one statement and take its whole result."""
        found = list(self.run_script(text))
        return found[-1] if found else Result(None, (), "", self.session.type_context())

    def run_script(self, text: str) -> Iterator[Result]:
        """Run every statement of a text as the simple query protocol does."""
        session = self.session
        session.query_text = text
        parsed = [s for s in statements.parse(text) if not isinstance(s, nodes.Empty)]
        session.is_multiple = len(parsed) > 1
        for index, statement in enumerate(parsed):
            yield self._run(statement, text, (), (), is_last=index == len(parsed) - 1)

    def _run(
        self,
        statement: Any,
        text: str,
        parameters: tuple[Any, ...],
        oids: tuple[int, ...],
        *,
        is_last: bool,
    ) -> Result:
        session = self.session
        try:
            session.begin_statement(statement)
            if not self.autocommit and not isinstance(statement, (nodes.Begin, nodes.Commit)):
                session.is_block = True
            result = session.run(statement, text, parameters, parameter_oids=oids)
            context = session.type_context()
            if isinstance(result, Rows):
                batches = tuple(result.stream)
                tag = result.tag(sum(batch.rows for batch in batches))
                found = Result(result.fields, batches, tag, context)
            elif isinstance(result, Done):
                found = Result(None, (), result.tag, context)
            else:
                raise errors.FeatureNotSupported("COPY with STDIN or STDOUT needs a server")
            if is_last:
                session.end_implicit()
            return found
        except Exception as error:
            raise session.fail(error) from error

    def commit(self) -> None:
        if self.session.transaction is not None:
            self.session.end_block(is_commit=not self.session.is_failed)

    def rollback(self) -> None:
        if self.session.transaction is not None:
            self.session.end_block(is_commit=False)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.session.close()
            if self._path is not None:
                _release(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.commit()
        else:
            self.rollback()
        self.close()


class Cursor:
    """DB-API cursor."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.result: Result | None = None
        self._rows: list[tuple[Any, ...]] = []
        self._next = 0

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        if self.result is None or self.result.fields is None:
            return None
        return [(f.name, f.type_oid, None, None, None, None, None) for f in self.result.fields]

    @property
    def rowcount(self) -> int:
        if self.result is None:
            return -1
        last = self.result.tag.rsplit(" ", 1)[-1]
        return int(last) if last.isdigit() else -1

    @property
    def statusmessage(self) -> str | None:
        return None if self.result is None else self.result.tag

    def execute(self, sql: str, parameters: Any = None) -> Cursor:
        """Run statements; with parameters just one."""
        if parameters is None:
            for result in self.connection.run_script(sql):
                self.result = result
        else:
            self.result = self._execute_with(sql, parameters)
        self._rows = [] if self.result is None else self.result.fetchall()
        self._next = 0
        return self

    def _execute_with(self, sql: str, parameters: Any) -> Result:
        session = self.connection.session
        text, values = numbered(sql, parameters)
        try:
            session.parse("", text, ())
            prepared = session.prepared[""]
            texts = tuple(None if v is None else parameter_text(v) for v in values)
            formats = (0,) * len(texts)
            raw = tuple(None if t is None else t.encode() for t in texts)
            decoded = session.decode_parameters(prepared.parameter_oids, formats, raw)
        except errors.SqlError as error:
            raise session.fail(error) from None
        return self.connection._run(
            prepared.statement, text, decoded, prepared.parameter_oids, is_last=True
        )

    def executemany(self, sql: str, rows: Sequence[Any]) -> Cursor:
        for parameters in rows:
            self.execute(sql, parameters)
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        if self._next >= len(self._rows):
            return None
        self._next += 1
        return self._rows[self._next - 1]

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        start = self._next
        self._next = min(start + (size or self.arraysize), len(self._rows))
        return self._rows[start : self._next]

    def fetchall(self) -> list[tuple[Any, ...]]:
        start, self._next = self._next, len(self._rows)
        return self._rows[start:]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchall())

    def close(self) -> None:
        self._rows = []

    def setinputsizes(self, sizes: Any) -> None:
        """Required by PEP 249; does nothing."""

    def setoutputsize(self, size: Any, column: Any = None) -> None:
        """Required by PEP 249; does nothing."""


def numbered(sql: str, parameters: Any) -> tuple[str, tuple[Any, ...]]:
    """The text with ``$n`` for ``%s`` or ``%(name)s``, and the values in order."""
    values: list[Any] = []
    pieces: list[str] = []
    names: dict[str, int] = {}
    rest = sql
    while "%" in rest:
        before, _, after = rest.partition("%")
        pieces.append(before)
        if after.startswith("%"):
            pieces.append("%")
            rest = after[1:]
        elif after.startswith("("):
            name, _, tail = after[1:].partition(")")
            if name not in names:
                names[name] = len(names) + 1
                values.append(parameters[name])
            pieces.append(f"${names[name]}")
            rest = tail[1:]
        else:
            values.append(parameters[len(values)])
            pieces.append(f"${len(values)}")
            rest = after[1:]
    pieces.append(rest)
    if not values and not isinstance(parameters, Mapping):
        values = list(parameters)
    return "".join(pieces), tuple(values)


def parameter_text(value: Any) -> str:
    """A Python value in PostgreSQL's text form."""
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, (list, tuple)):
        items = ("NULL" if v is None else _array_item(v) for v in value)
        return "{" + ",".join(items) + "}"
    return str(value)


def _array_item(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return parameter_text(value)
    text = parameter_text(value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
