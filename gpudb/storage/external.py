"""Data files from outside: Parquet and CSV as batches of columns, and writing Parquet.

Several files (a glob) are read one after the other; they must have the same columns by name;
a column that a later file lacks is NULL there.
"""

from __future__ import annotations

import glob as globs
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from gpudb import errors
from gpudb.catalog import types as data_types
from gpudb.column import Batch, Column, null_column
from gpudb.sqltype import SqlType
from gpudb.storage import arrow

BATCH_ROWS = 262_144
FILES_MAX = 100_000


def resolve(pattern: str, roots: Sequence[str], *, must_exist: bool = True) -> tuple[str, ...]:
    """The files a path or glob means, in name order; 42501 outside of ``roots``, 58P01 for none."""
    allowed = [os.path.realpath(root) for root in roots]
    found = sorted(globs.glob(pattern, recursive=True)) if must_exist else [pattern]
    for path in found or [pattern]:
        real = os.path.realpath(path)
        if not any(real == root or real.startswith(root.rstrip("/") + "/") for root in allowed):
            raise errors.InsufficientPrivilege(
                f'permission denied for file "{path}"',
                hint="Files are read and written only below the directories of gpudb.file_roots.",
            )
    if not found:
        raise errors.UndefinedFile(
            f'could not open file "{pattern}" for reading: No such file or directory'
        )
    if len(found) > FILES_MAX:
        raise errors.ProgramLimitExceeded(f"the pattern matches more than {FILES_MAX} files")
    return tuple(found)


def schema(format: str, paths: Sequence[str], options: Mapping[str, str]) -> pa.Schema:
    """The Arrow schema of the first file."""
    try:
        if format == "parquet":
            return pa.parquet.read_schema(paths[0])
        with _open_csv(paths[0], options) as reader:
            return reader.schema
    except (pa.ArrowInvalid, OSError) as error:
        raise _bad_file(paths[0], error) from error


def columns_of(schema: pa.Schema) -> tuple[tuple[str, SqlType], ...]:
    """Names and SQL types of a schema's columns."""
    return tuple((item.name, arrow.sql_type(item.type)) for item in schema)


def batches(
    format: str,
    paths: Sequence[str],
    names: Sequence[str],
    types: Sequence[SqlType],
    options: Mapping[str, str],
) -> Iterator[Batch]:
    """The named columns of all files in order, at most BATCH_ROWS rows a batch."""
    for ordinal, path in enumerate(paths):
        first = 0
        for piece in _record_batches(format, path, names, options):
            columns = [
                _column(piece, name, type) for name, type in zip(names, types, strict=True)
            ]
            yield Batch.of(columns, piece.num_rows, (ordinal, first))
            first += piece.num_rows


def _column(piece: pa.RecordBatch, name: str, type: SqlType) -> Column:
    index = piece.schema.get_field_index(name)
    if index < 0:
        return null_column(type, data_types.get(type.oid).layout)
    column = arrow.to_column(piece.column(index))
    if column.type.oid != type.oid:
        raise errors.DatatypeMismatch(
            f'column "{name}" has another type in another file of the same scan'
        )
    return column


def _record_batches(
    format: str, path: str, names: Sequence[str], options: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    try:
        if format == "parquet":
            with pa.parquet.ParquetFile(path) as file:
                known = [name for name in names if file.schema_arrow.get_field_index(name) >= 0]
                yield from file.iter_batches(BATCH_ROWS, columns=known, use_threads=False)
            return
        with _open_csv(path, options) as reader:
            for piece in reader:
                for start in range(0, piece.num_rows, BATCH_ROWS):
                    yield piece.slice(start, BATCH_ROWS)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise _bad_file(path, error) from error


def _open_csv(path: str, options: Mapping[str, str]) -> Any:
    delimiter = options.get("delim", options.get("sep", options.get("delimiter", ",")))
    has_header = options.get("header", "true").lower() in ("true", "on", "1", "yes")
    return pa.csv.open_csv(
        path,
        read_options=pa.csv.ReadOptions(autogenerate_column_names=not has_header),
        parse_options=pa.csv.ParseOptions(
            delimiter=delimiter, quote_char=options.get("quote", '"') or False,
            newlines_in_values=True,
        ),
        convert_options=pa.csv.ConvertOptions(
            null_values=[options.get("nullstr", "")], strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _bad_file(path: str, error: Exception) -> errors.SqlError:
    if isinstance(error, FileNotFoundError):
        return errors.UndefinedFile(
            f'could not open file "{path}" for reading: No such file or directory'
        )
    if isinstance(error, PermissionError):
        return errors.InsufficientPrivilege(f'could not open file "{path}": Permission denied')
    return errors.BadCopyFileFormat(f'could not read file "{path}": {error}')


class ParquetWriter:
    """Writes batches to one Parquet file, aside and renamed at the end."""

    def __init__(self, path: str, names: Sequence[str], types: Sequence[SqlType]) -> None:
        self._path = Path(path)
        self._aside = self._path.with_name(f".{self._path.name}.partial")
        self._schema = pa.schema(
            [(name, arrow.arrow_type(type)) for name, type in zip(names, types, strict=True)]
        )
        try:
            self._writer = pa.parquet.ParquetWriter(self._aside, self._schema, compression="zstd")
        except OSError as error:
            raise errors.IoError(
                f'could not open file "{path}" for writing: {error.strerror}'
            ) from error

    def append(self, batch: Batch) -> None:
        arrays = [
            arrow.from_column(column, batch.rows).cast(item.type)
            for column, item in zip(batch.columns, self._schema, strict=True)
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def finish(self) -> None:
        self._writer.close()
        self._aside.replace(self._path)

    def discard(self) -> None:
        self._writer.close()
        self._aside.unlink(missing_ok=True)
