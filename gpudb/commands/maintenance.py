"""VACUUM, ANALYZE, LOCK and the other commands that keep a PostgreSQL server in shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gpudb import errors
from gpudb.catalog.changes import SetStatistics
from gpudb.catalog.objects import (
    ColumnDef,
    ColumnStatistics,
    Relation,
    RelationKind,
    RelationStatistics,
)
from gpudb.catalog.statistics import (
    SAMPLE_ROWS,
    ColumnSample,
    column_statistics,
    sample_positions,
)
from gpudb.catalog.store import now_microseconds
from gpudb.column import Column, byte_strings, integers, take_rows, validity
from gpudb.commands import Done, Result, handles, naming
from gpudb.kernels.concat import concat
from gpudb.layout import Kind
from gpudb.optimizer.statements import nodes

if TYPE_CHECKING:
    from gpudb.session import Session

ANALYZE_BATCH_ROWS = 1 << 18
_ANALYZABLE = (Kind.INT, Kind.DECIMAL, Kind.FLOAT, Kind.TEXT, Kind.DICTIONARY, Kind.BOOL)


@handles(nodes.Vacuum)
def vacuum(session: Session, statement: nodes.Vacuum) -> Result:
    options = {option.name.lower() for option in statement.options}
    if not statement.is_analyze and session.is_block:
        raise errors.ActiveSqlTransaction("VACUUM cannot run inside a transaction block")
    tables = [naming.require_relation(session, item.name) for item in statement.tables]
    if not tables:
        kinds = (RelationKind.TABLE, RelationKind.MATERIALIZED_VIEW)
        tables = [r for r in session.catalog.relations() if r.kind in kinds]
    if statement.is_analyze or "analyze" in options:
        for index, table in enumerate(tables):
            names = statement.tables[index].columns if statement.tables else ()
            analyze(session, table, names)
    return Done(statement.tag)


def analyze(session: Session, table: Relation, names: tuple[str, ...] = ()) -> None:
    """Sample the table and store its statistics; columns that are not named keep theirs."""
    assert session.transaction is not None
    for name in names:
        if table.column(name) is None:
            raise errors.UndefinedColumn(
                f'column "{name}" of relation "{table.name}" does not exist'
            )
    wanted = [c for c in table.live_columns() if not names or c.name in names]
    data = session.catalog.data(table.oid)
    found = [s for c in wanted if (s := _sample(session, table, c)) is not None]
    old = session.catalog.statistics(table.oid)
    done = {s.attnum for s in found}
    kept = () if old is None else tuple(s for s in old.columns if s.attnum not in done)
    session.transaction.change(
        SetStatistics(
            RelationStatistics(
                table.oid, float(data.rows()), data.size_bytes(), (*kept, *found),
                now_microseconds(),
            )
        )
    )


def _sample(session: Session, table: Relation, column: ColumnDef) -> ColumnStatistics | None:
    """Statistics of one column from a sample of its rows; None for types without an order here."""
    storage = session.database.storage
    reader = storage.open_table(session.catalog, table.oid, (column.attnum,))
    total = sum(segment.rows for segment in reader.segments)
    if not total:
        return None
    positions = sample_positions(total, SAMPLE_ROWS)
    pieces: list[tuple[Column, int]] = []
    start = 0
    for morsel in reader.morsels(ANALYZE_BATCH_ROWS):
        stop = start + morsel.rows
        low, high = np.searchsorted(positions, (start, stop))
        if low < high:
            (piece,), _ = reader.read(morsel, (0,))
            pieces.append(_rows(piece, positions[low:high] - start, morsel.rows))
        start = stop
    whole = concat(pieces)
    if whole.layout.kind not in _ANALYZABLE:
        return None
    rows = sum(count for _, count in pieces)
    valid = validity(whole, rows).numpy()
    sample = ColumnSample(
        column.attnum, rows, int(rows - np.count_nonzero(valid)), _values(whole, valid),
        scale=whole.scale,
    )
    return column_statistics(sample, float(reader.rows))


def _rows(column: Column, positions: Any, rows: int) -> tuple[Column, int]:
    return take_rows(column, torch.from_numpy(positions), rows), len(positions)


def _values(column: Column, valid: Any) -> Any:
    """The sampled non-null values in the domain of ColumnStatistics."""
    match column.layout.kind:
        case Kind.INT | Kind.DECIMAL:
            return integers(column).numpy()[valid]
        case Kind.FLOAT | Kind.BOOL:
            return column.data[0].numpy()[valid]
    texts = byte_strings(column)
    return [text for text, ok in zip(texts, valid.tolist(), strict=True) if ok]


@handles(nodes.Lock)
def lock(session: Session, statement: nodes.Lock) -> Result:
    """Checked, then granted: readers never block, and writers lock what they write."""
    if not session.is_block:
        raise errors.NoActiveSqlTransaction("LOCK TABLE can only be used in transaction blocks")
    for item in statement.tables:
        relation = naming.require_relation(session, item.name)
        if relation.kind not in (RelationKind.TABLE, RelationKind.VIEW):
            raise errors.WrongObjectType(f'"{relation.name}" is not a table or view')
    return Done(statement.tag)


@handles(nodes.Reindex, nodes.Cluster, nodes.Checkpoint)
def nothing_to_do(session: Session, statement: Any) -> Result:
    """There are no index files to rebuild, no heap to order, no buffers to write back."""
    if isinstance(statement, nodes.Checkpoint) and not session.is_superuser():
        raise errors.InsufficientPrivilege(
            "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT"
        )
    return Done(statement.tag)
