"""COPY FROM as rows come in: bytes to columns, columns to an INSERT plan, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpudb import errors
from gpudb.catalog import types
from gpudb.catalog.objects import ColumnDef, Relation, SegmentRef
from gpudb.column import Batch, Column, from_values
from gpudb.commands import constraints
from gpudb.commands.constraints import quoted, table_name
from gpudb.commands.copy_options import CopyOptions
from gpudb.kernels import parse
from gpudb.optimizer.binder.context import FileColumns
from gpudb.optimizer.statements import nodes
from gpudb.sqltype import SqlType
from gpudb.wire import copy as framing

if TYPE_CHECKING:
    from gpudb.session import Session

CHUNK_ROWS = 1 << 20
"""Rows that are parsed before they are written."""
SOURCE = "copy:"


class CopyInput:
    """What the server feeds with CopyData (wire.backend.CopyInOutcome), and files with pieces."""

    def __init__(
        self,
        session: Session,
        table: Relation,
        columns: list[ColumnDef],
        options: CopyOptions,
        where: nodes.Slice | None,
    ) -> None:
        self.format = 1 if options.format == "binary" else 0
        self.column_formats = (self.format,) * len(columns)
        self.on_end: Callable[[], None] = _nothing
        self._session = session
        self._table = table
        self._columns = columns
        self._options = options
        self._where = where
        self._batches: list[Batch] = []
        self._pending = 0
        self._rows = 0
        self._lines = 0
        before = session.catalog.data(table.oid)
        self._known = {segment.id for segment in before.segments}
        self._reader = framing.reader(
            _reader_format(options, columns), [c.name for c in columns], table.name
        )

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        for rows in self._reader.feed(data):
            self._take(rows)

    def finish(self) -> str:
        """Load what is left, check the constraints; the tag."""
        for rows in self._reader.finish():
            self._take(rows)
        self._write()
        data = self._session.catalog.data(self._table.oid)
        added: tuple[SegmentRef, ...] = tuple(
            s for s in data.segments if s.id not in self._known
        )
        constraints.enforce(self._session, self._table.oid, added)
        self.on_end()
        return f"COPY {self._rows}"

    def fail(self, error: errors.SqlError) -> errors.SqlError:
        """The client gave up: the error with its context line."""
        if not error.context:
            error.context = f"COPY {self._table.name}, line {self._lines + 1}"
        return error

    def _take(self, rows: framing.FieldRows) -> None:
        """Columns of bytes to a batch."""
        context = self._session.type_context()
        columns = []
        for number, column in enumerate(self._columns):
            type = SqlType(column.type_oid, column.typmod)
            field = rows.columns[number]
            if self._options.format == "binary":
                made = self._binary_column(type, field, rows, column)
            else:
                made, problems = parse.parse_column(
                    type, field.starts, field.lengths, rows.data, field.valid, context
                )
                if problems:
                    row, error = problems[0]
                    raise self._located(error, rows, row, column, field)
            columns.append(made)
        self._batches.append(Batch.of(columns, rows.rows))
        self._pending += rows.rows
        self._lines = rows.last_line
        if self._pending >= CHUNK_ROWS:
            self._write()

    def _binary_column(
        self,
        type: SqlType,
        field: framing.FieldColumn,
        rows: framing.FieldRows,
        column: ColumnDef,
    ) -> Column:
        """The values of PostgreSQL's binary forms; 22P03 with the place."""
        codec = types.get(type.oid, self._session.catalog)
        context = self._session.type_context()
        raw = rows.data.tobytes()
        valid = np.ones(rows.rows, np.bool_) if field.valid is None else field.valid
        values: list[Any] = []
        spans = zip(field.starts.tolist(), field.lengths.tolist(), valid.tolist(), strict=True)
        for row, (start, length, is_valid) in enumerate(spans):
            if not is_valid:
                values.append(None)
                continue
            try:
                values.append(codec.receive(raw[start : start + length], type.typmod, context))
            except errors.SqlError as error:
                line = int(rows.lines[row])
                error.context = f"COPY {self._table.name}, line {line}, column {column.name}"
                raise
        return from_values(type, codec.layout, values)

    def _located(
        self,
        error: errors.SqlError,
        rows: framing.FieldRows,
        row: int,
        column: ColumnDef,
        field: framing.FieldColumn,
    ) -> errors.SqlError:
        start, length = int(field.starts[row]), int(field.lengths[row])
        text = rows.data[start : start + length].tobytes().decode("utf-8", "replace")
        line = int(rows.lines[row])
        error.context = (
            f'COPY {self._table.name}, line {line}, column {column.name}: "{text}"'
        )
        return error

    def _write(self) -> None:
        """Insert the collected batches through an INSERT plan whose source they are."""
        if not self._batches:
            return
        session = self._session
        listed = ", ".join(quoted(column.name) for column in self._columns)
        where = f" WHERE {self._where.text}" if self._where is not None else ""
        text = (
            f"INSERT INTO {table_name(session.catalog, self._table)} ({listed}) "
            f"OVERRIDING SYSTEM VALUE SELECT {listed} FROM read_parquet('{SOURCE}'){where}"
        )
        session.copied_batches = self._batches
        try:
            self._rows += session.database.insert_batches(session, text, self._file_columns())
        finally:
            self._batches = []
            session.copied_batches = []
            self._pending = 0

    def _file_columns(self) -> FileColumns:
        return FileColumns(
            (SOURCE,), tuple((c.name, c.type_oid, c.typmod) for c in self._columns)
        )


def _nothing() -> None:
    """The end of a COPY inside of a transaction block."""


def _reader_format(options: CopyOptions, columns: list[ColumnDef]) -> framing.CopyFormat:
    names = [column.name for column in columns]
    for name in (*options.force_not_null, *options.force_null):
        if name not in names:
            raise errors.InvalidColumnReference(f'column "{name}" not referenced by COPY')
    return framing.CopyFormat(
        format=options.format, delimiter=options.delimiter, null=options.null,
        header=options.header != "off", quote=options.quote, escape=options.escape,
        force_not_null=tuple(names.index(name) for name in options.force_not_null),
        force_null=tuple(names.index(name) for name in options.force_null),
        header_names=tuple(names) if options.header == "match" else (),
    )
