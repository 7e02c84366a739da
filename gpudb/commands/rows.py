"""Small results that commands make themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpudb.catalog import types
from gpudb.column import Batch, batch_to_host, from_values
from gpudb.commands import Rows
from gpudb.result import ResultField, ResultStream
from gpudb.sqltype import TEXT, SqlType


def rows_of(
    fields: tuple[ResultField, ...], rows: Sequence[tuple[Any, ...]], *, tag: str
) -> Rows:
    """A finished result of host values; the tag has no count unless it ends with a space."""
    columns = [
        from_values(
            SqlType(item.type_oid, item.typmod),
            types.get(item.type_oid).layout,
            [row[index] for row in rows],
        )
        for index, item in enumerate(fields)
    ]
    batch = batch_to_host(Batch.of(columns, len(rows)))
    stream = ResultStream.of(fields, [batch] if rows else [])
    return Rows(fields, stream, lambda count: f"{tag}{count}" if tag.endswith(" ") else tag)


def text_rows(names: tuple[str, ...], rows: Sequence[tuple[Any, ...]], *, tag: str) -> Rows:
    """A finished result of text columns."""
    return rows_of(tuple(ResultField(name, TEXT) for name in names), rows, tag=tag)
