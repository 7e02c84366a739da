"""COPY: tables and queries to and from text, CSV, binary and Parquet.

COPY FROM collects parsed columns into batches and runs them through an INSERT plan whose source is
those batches, so that defaults, generated columns, casts and constraints are INSERT's own; a chunk
is at most a segment's worth of rows. COPY TO streams a query's batches through the encoders.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudb import errors
from gpudb.catalog.objects import ColumnDef, Relation, RelationKind
from gpudb.column import Batch, from_host
from gpudb.commands import Done, Result, Rows, files, handles, naming
from gpudb.commands.constraints import quoted, table_name
from gpudb.commands.copy_input import CopyInput
from gpudb.commands.copy_options import CopyOptions, copy_options
from gpudb.optimizer.statements import nodes
from gpudb.sqltype import SqlType
from gpudb.storage.external import ParquetWriter
from gpudb.wire import copy as framing
from gpudb.wire.backend import CopyOutOutcome

if TYPE_CHECKING:
    from gpudb.session import Session

READ_BYTES = 1 << 20


@handles(nodes.Copy)
def copy(session: Session, statement: nodes.Copy) -> Result:
    options = copy_options(statement)
    if statement.is_program:
        raise errors.FeatureNotSupported("COPY to or from a program is not supported")
    return _copy_from(session, statement, options) if statement.is_from else _copy_to(
        session, statement, options
    )


def _columns(table: Relation, names: tuple[str, ...], *, is_from: bool) -> list[ColumnDef]:
    if not names:
        return [c for c in table.live_columns() if not c.generated]
    found: list[ColumnDef] = []
    for name in names:
        column = table.column(name)
        if column is None:
            raise errors.UndefinedColumn(
                f'column "{name}" of relation "{table.name}" does not exist'
            )
        if column in found:
            raise errors.DuplicateColumn(f'column "{name}" specified more than once')
        if column.generated and is_from:
            raise errors.InvalidColumnReference(
                f'column "{name}" is a generated column',
                detail="Generated columns cannot be used in COPY.",
            )
        found.append(column)
    return found


# --- FROM -------------------------------------------------------------------------------------


def _copy_from(session: Session, statement: nodes.Copy, options: CopyOptions) -> Result:
    assert session.transaction is not None and statement.table is not None
    session.transaction.require_writable("COPY FROM")
    table = naming.require_relation(session, statement.table)
    if table.kind != RelationKind.TABLE:
        word = naming.KIND_WORDS[RelationKind(table.kind)]
        raise errors.WrongObjectType(f'cannot copy to {word} "{table.name}"')
    session.database.require_privilege(session, table, "INSERT")
    columns = _columns(table, statement.columns, is_from=True)
    if options.format == "parquet":
        return _copy_from_parquet(session, statement, table, columns)
    copying = CopyInput(session, table, columns, options, statement.where)
    if statement.file is None:
        return copying
    (path,) = files.allowed_paths(session, statement.file)
    try:
        with Path(path).open("rb") as source:
            while data := source.read(READ_BYTES):
                copying.feed(data)
    except OSError as error:
        raise errors.IoError(f'could not read file "{path}": {error.strerror}') from error
    return Done(copying.finish())


def _copy_from_parquet(
    session: Session, statement: nodes.Copy, table: Relation, columns: list[ColumnDef]
) -> Result:
    if statement.file is None:
        raise errors.FeatureNotSupported("COPY FROM STDIN in Parquet format is not supported")
    path = statement.file.replace("'", "''")
    listed = ", ".join(quoted(column.name) for column in columns)
    where = f" WHERE {statement.where.text}" if statement.where is not None else ""
    text = (
        f"INSERT INTO {table_name(session.catalog, table)} ({listed}) "
        f"SELECT {listed} FROM read_parquet('{path}'){where}"
    )
    query = nodes.QueryStatement(nodes.Slice(text), "insert")
    done = session.database.run_query(session, query)
    return Done("COPY " + done.tag.rsplit(" ", 1)[-1])  # type: ignore[union-attr]


# --- TO ---------------------------------------------------------------------------------------


def _copy_to(session: Session, statement: nodes.Copy, options: CopyOptions) -> Result:
    query = statement.query or _table_query(session, statement)
    rows = session.run(query, session.query_text)
    if not isinstance(rows, Rows):
        raise errors.FeatureNotSupported("COPY query must have a RETURNING clause")
    if statement.file is not None:
        (path,) = files.allowed_paths(session, statement.file, must_exist=False)
        return Done(f"COPY {_write_file(session, rows, options, path)}")
    if options.format == "parquet":
        raise errors.FeatureNotSupported("COPY TO STDOUT in Parquet format is not supported")
    counted = _Counted(_chunks(session, rows, options))
    code = 1 if options.format == "binary" else 0
    return CopyOutOutcome(
        code, (code,) * len(rows.fields), iter(counted), lambda: f"COPY {counted.rows}"
    )


def _table_query(session: Session, statement: nodes.Copy) -> nodes.QueryStatement:
    assert statement.table is not None
    table = naming.require_relation(session, statement.table)
    if table.kind != RelationKind.TABLE:
        word = naming.KIND_WORDS[RelationKind(table.kind)]
        raise errors.WrongObjectType(
            f'cannot copy from {word} "{table.name}"', hint="Try the COPY (SELECT ...) TO variant."
        )
    columns = _columns(table, statement.columns, is_from=False)
    listed = ", ".join(quoted(column.name) for column in columns)
    text = f"SELECT {listed} FROM {table_name(session.catalog, table)}"
    return nodes.QueryStatement(nodes.Slice(text), "select")


class _Counted:
    """Chunks of framed rows, and how many rows they held."""

    def __init__(self, chunks: Iterator[tuple[int, bytes]]) -> None:
        self._chunks = chunks
        self.rows = 0

    def __iter__(self) -> Iterator[bytes]:
        for rows, data in self._chunks:
            self.rows += rows
            yield data


def _chunks(
    session: Session, rows: Rows, options: CopyOptions
) -> Iterator[tuple[int, bytes]]:
    """(rows, framed CopyData messages) of a result."""
    encoder = framing.encoder(rows.fields, framing_options(options, rows), session.codec())
    for batch in rows.stream:
        yield batch.rows, encoder.messages(batch)
    yield 0, encoder.end()


def framing_options(options: CopyOptions, rows: Rows) -> Any:
    """The encoder's options of COPY's options."""
    names = {item.name for item in rows.fields}
    for name in options.force_quote or ():
        if name not in names:
            raise errors.UndefinedColumn(f'column "{name}" does not exist')
    return framing.CopyFormat(
        format=options.format, delimiter=options.delimiter, null=options.null,
        header=options.header != "off", quote=options.quote, escape=options.escape,
        force_quote=options.force_quote,
    )


def _write_file(session: Session, rows: Rows, options: CopyOptions, path: str) -> int:
    count = 0
    if options.format == "parquet":
        names = [item.name for item in rows.fields]
        kinds = [SqlType(item.type_oid, item.typmod) for item in rows.fields]
        writer = ParquetWriter(path, names, kinds)
        try:
            for batch in rows.stream:
                columns = [from_host(column) for column in batch.columns]
                writer.append(Batch.of(columns, batch.rows))
                count += batch.rows
            writer.finish()
        except BaseException:
            writer.discard()
            raise
        return count
    encoder = framing.encoder(rows.fields, framing_options(options, rows), session.codec())
    try:
        with Path(path).open("wb") as target:
            for batch in rows.stream:
                target.write(encoder.plain(batch))
                count += batch.rows
            target.write(encoder.plain_end())
    except OSError as error:
        raise errors.IoError(f'could not write file "{path}": {error.strerror}') from error
    return count
