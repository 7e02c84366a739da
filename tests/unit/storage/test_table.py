"""Tables over a real catalog: rows come back, deletes hide them, rollback leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gpudb import layout, sqltype
from gpudb.catalog.changes import Create, Replace
from gpudb.catalog.objects import SCHEMA_PUBLIC, ColumnDef, Relation
from gpudb.catalog.store import Store
from gpudb.column import Batch, from_values, take_rows, to_values
from gpudb.sqltype import SqlType
from gpudb.storage.table import CTID, Storage, row_id
from gpudb.storage.zones import ZoneFilter
from gpudb.transaction import Transaction

COLUMNS = (ColumnDef(1, "a", sqltype.INT8), ColumnDef(2, "b", sqltype.TEXT))


class Engine:
    def __init__(self, path: Path) -> None:
        self.store = Store.open(path)
        self.storage = Storage(
            path, epoch=self.store.epoch, allocate_segment=self.store.allocate_segment_id,
            cache_bytes=1 << 20,
        )

    def transaction(self) -> Transaction:
        return Transaction(
            self.store, self.storage, database_oid=self.store.published.database, temporary=(),
            isolation="read committed", is_read_only=False, started_microseconds=0,
        )

    def create(self, **options: str) -> int:
        oid = self.store.allocate_oid()
        made = self.transaction()
        made.change(
            Create(
                Relation(
                    oid, SCHEMA_PUBLIC, f"t{oid}", "r", COLUMNS, options=tuple(options.items()),
                    row_type=self.store.allocate_oid(), array_type=self.store.allocate_oid(),
                )
            )
        )
        made.commit()
        return oid

    def insert(self, into: Transaction, table: int, values: list[int]) -> None:
        writer = into.writes.writer(table)
        columns = (
            from_values(SqlType(sqltype.INT8), layout.INT64, values),
            from_values(SqlType(sqltype.TEXT), layout.TEXT, [f"v{v}" for v in values]),
        )
        writer.append(Batch.of(columns, len(values)))
        into.writes.add(table, writer.finish())

    def rows(self, snapshot: object, table: int, batch_rows: int = 1000) -> list[tuple[int, str]]:
        reader = self.storage.open_table(snapshot, table, (1, 2))
        found: list[tuple[int, str]] = []
        for morsel in reader.morsels(batch_rows):
            columns, selection = reader.read(morsel, (0, 1))
            if selection is not None:
                columns = tuple(take_rows(c, selection, morsel.rows) for c in columns)
                count = len(selection)
            else:
                count = morsel.rows
            found.extend(zip(*(to_values(c, count) for c in columns), strict=True))
        assert len(found) == reader.rows
        return found

    def close(self) -> None:
        self.storage.close()
        self.store.close()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = Engine(tmp_path)
    yield made
    made.close()


def expected(values: list[int]) -> list[tuple[int, str]]:
    return [(v, f"v{v}") for v in values]


@pytest.mark.parametrize("batch_rows", [1, 3, 1000])
def test_rows_come_back_in_order(engine: Engine, batch_rows: int) -> None:
    table = engine.create(segment_rows="1024")
    writing = engine.transaction()
    engine.insert(writing, table, list(range(3000)))
    engine.insert(writing, table, [-1, -2])
    assert engine.rows(writing.snapshot, table)[-1] == (-2, "v-2")
    assert engine.rows(engine.store.published, table) == []
    writing.commit()
    values = [*range(3000), -1, -2]
    assert engine.rows(engine.store.published, table, batch_rows) == expected(values)
    assert len(engine.store.published.data(table).segments) == 4


def test_rollback_leaves_no_file(engine: Engine, tmp_path: Path) -> None:
    table = engine.create()
    writing = engine.transaction()
    engine.insert(writing, table, list(range(5000)))
    assert list(tmp_path.glob("seg/*/*.seg"))
    writing.rollback()
    assert not list(tmp_path.glob("seg/*/*.seg"))
    assert engine.rows(engine.store.published, table) == []


def test_savepoint_takes_its_files_along(engine: Engine, tmp_path: Path) -> None:
    table = engine.create()
    writing = engine.transaction()
    engine.insert(writing, table, list(range(2000)))
    writing.savepoint("s")
    engine.insert(writing, table, list(range(2000, 4000)))
    writing.rollback_to("s")
    assert len(list(tmp_path.glob("seg/*/*.seg"))) == 1
    writing.commit()
    assert engine.rows(engine.store.published, table) == expected(list(range(2000)))


def test_deleted_rows_disappear(engine: Engine) -> None:
    table = engine.create()
    writing = engine.transaction()
    engine.insert(writing, table, list(range(10)))
    writing.commit()
    segment = engine.store.published.data(table).segments[0].id
    deleting = engine.transaction()
    ids = np.array([row_id(segment, 3), row_id(segment, 7), row_id(segment, 3)])
    assert deleting.writes.delete(table, ids, is_plain=True) == 2
    assert deleting.writes.delete(table, ids[:1], is_plain=True) == 0
    kept = [v for v in range(10) if v not in (3, 7)]
    assert engine.rows(deleting.snapshot, table, 4) == expected(kept)
    assert engine.rows(engine.store.published, table) == expected(list(range(10)))
    deleting.commit()
    assert engine.rows(engine.store.published, table, 2) == expected(kept)


def test_row_ids_name_rows(engine: Engine) -> None:
    table = engine.create()
    writing = engine.transaction()
    engine.insert(writing, table, [5, 6])
    writing.commit()
    reader = engine.storage.open_table(engine.store.published, table, (CTID, 1))
    (morsel,) = reader.morsels(10)
    (ids, _), _ = reader.read(morsel, (0, 1))
    segment = engine.store.published.data(table).segments[0].id
    assert to_values(ids, 2) == [row_id(segment, 0), row_id(segment, 1)]


def test_facts_and_pruning(engine: Engine) -> None:
    table = engine.create(segment_rows="1024")
    writing = engine.transaction()
    engine.insert(writing, table, list(range(3000)))
    writing.commit()
    reader = engine.storage.open_table(
        engine.store.published, table, (1, 2), [ZoneFilter(1, ">", 2500)]
    )
    assert reader.bounds(0) == (0, 2999)
    assert reader.bounds(1) == (None, None)
    assert not reader.has_nulls(0)
    assert [m.segment for m in reader.morsels(10_000)] == [2]
    assert reader.morsels_pruned == 2


def test_orphans_are_swept_at_the_next_start(tmp_path: Path) -> None:
    first = Engine(tmp_path)
    table = first.create()
    writing = first.transaction()
    first.insert(writing, table, list(range(2000)))
    (tmp_path / "tmp" / "left").write_bytes(b"x")
    first.close()
    (tmp_path / "seg" / "other.txt").write_text("not ours")
    second = Engine(tmp_path)
    assert second.storage.sweep(second.store) == 2
    assert not list(tmp_path.glob("seg/*/*.seg"))
    assert (tmp_path / "seg" / "other.txt").exists()
    second.close()


def test_a_column_added_later_shows_its_missing_value(engine: Engine) -> None:
    table = engine.create()
    writing = engine.transaction()
    engine.insert(writing, table, [1, 2])
    writing.commit()
    relation = engine.store.published.relation_by_oid(table)
    assert relation is not None
    changed = replace(relation, columns=(*COLUMNS, ColumnDef(3, "c", sqltype.INT4, missing="7")))
    adding = engine.transaction()
    adding.change(Replace(changed))
    adding.commit()
    reader = engine.storage.open_table(engine.store.published, table, (3,))
    (morsel,) = reader.morsels(10)
    (column,), _ = reader.read(morsel, (0,))
    assert to_values(column, 2) == [7, 7]
    assert torch.equal(column.data[0], torch.tensor([7], dtype=column.data[0].dtype))
