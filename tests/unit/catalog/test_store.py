"""The durable catalog: commits, conflicts, restarts, garbage, identifiers."""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gpudb import errors
from gpudb.catalog import conflicts
from gpudb.catalog.catalog import TransactionCatalog
from gpudb.catalog.changes import (
    AddSegments,
    Change,
    Create,
    Drop,
    EndSegments,
    Replace,
    SetComment,
    SetDeletes,
    SetStatistics,
    Truncate,
)
from gpudb.catalog.objects import (
    SCHEMA_PUBLIC,
    BufferRef,
    ColumnDef,
    ColumnStatistics,
    Comment,
    Constraint,
    ConstraintKind,
    DeleteVector,
    DomainType,
    EnumLabel,
    EnumType,
    FunctionArgument,
    FunctionDef,
    ObjectClass,
    Reference,
    Relation,
    RelationKind,
    RelationStatistics,
    Schema,
    SegmentColumn,
    SegmentRef,
    SequenceOptions,
    ZoneMap,
)
from gpudb.catalog.store import FORMAT_VERSION, Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "data")
    yield opened
    opened.close()


def reopened(store: Store) -> Store:
    store.close()
    return Store.open(store.directory)


def table(store: Store, name: str = "t", schema: int = SCHEMA_PUBLIC) -> Relation:
    columns = (ColumnDef(1, "a", 23), ColumnDef(2, "b", 25, default="'x'::text"))
    return Relation(
        store.allocate_oid(),
        schema,
        name,
        RelationKind.TABLE,
        columns,
        row_type=store.allocate_oid(),
        array_type=store.allocate_oid(),
    )


def segment(
    store: Store, relation: Relation, rows: int = 10, path: str | None = None
) -> SegmentRef:
    zones = ZoneMap(65536, "int64", b"\0" * 8, b"\1" * 8)
    column = SegmentColumn(
        1, "for", b"\x80", (BufferRef(4096, rows, 4096, 7),), 0, 3, -5, 2**62, zones
    )
    text = SegmentColumn(2, "text", b"", (), 1, None, b"a\xff", None, None)
    return SegmentRef(
        store.allocate_segment_id(), relation.oid, rows, 4096, (column, text), path, image=b"\0i"
    )


def with_table(store: Store, *segment_rows: int) -> tuple[Relation, list[SegmentRef]]:
    relation = table(store)
    segments = [segment(store, relation, rows) for rows in segment_rows]
    store.commit([Create(relation), AddSegments(relation.oid, tuple(segments))], store.published)
    return relation, segments


def test_a_new_directory_holds_what_initdb_makes(store: Store) -> None:
    snapshot = store.published
    assert {d.name for d in snapshot.databases()} == {"postgres", "template0", "template1"}
    role = snapshot.role("postgres")
    assert role is not None and role.oid == 10 and role.is_superuser
    names = {schema.name for schema in snapshot.schemas()}
    assert names == {"public", "pg_catalog", "information_schema", "pg_toast", "gpudb"}
    assert store.check() == []


def test_objects_survive_a_restart_unchanged(store: Store) -> None:
    relation, _ = with_table(store, 10, 20)
    enum = EnumType(
        store.allocate_oid(), 2200, "mood", 10, store.allocate_oid(), (EnumLabel(1, 'a":', 1.0),)
    )
    domain = DomainType(store.allocate_oid(), 2200, "d", 10, store.allocate_oid(), 23)
    check = Constraint(
        store.allocate_oid(), 2200, "c", ConstraintKind.CHECK, domain=domain.oid, check="VALUE > 0"
    )
    function = FunctionDef(
        store.allocate_oid(), 2200, "f", 10, "sql", (FunctionArgument("x", 23),), 23, "select x"
    )
    sequence = Relation(
        store.allocate_oid(), 2200, "s", RelationKind.SEQUENCE, (), sequence=SequenceOptions()
    )
    statistics = RelationStatistics(
        relation.oid, 30.0, 8192, (ColumnStatistics(1, 0.5, 3, 4, -1.5, float("inf"), (b"x",)),)
    )
    items = (enum, domain, check, function, sequence)
    store.commit(
        [
            *(Create(item) for item in items),
            SetStatistics(statistics),
            SetComment(Comment(ObjectClass.RELATION, relation.oid, 2, "it's\n")),
        ],
        store.published,
    )
    before = store.published
    after = reopened(store).published
    assert after.id == before.id
    assert after.relation("public", "t") == relation
    assert after.user_type(enum.oid) == enum
    assert after.user_type(domain.oid) == domain
    assert after.domain_constraints(domain.oid) == (check,)
    assert after.functions_in(2200, "f") == (function,)
    assert after.relation_by_oid(sequence.oid) == sequence
    assert after.statistics(relation.oid) == statistics
    assert after.comment(ObjectClass.RELATION, relation.oid, 2) == "it's\n"
    assert after.data(relation.oid) == before.data(relation.oid)
    assert [s.row0 for s in after.data(relation.oid).segments] == [0, 10]
    assert after.data(relation.oid).rows() == 30


def test_a_directory_has_one_owner(store: Store) -> None:
    with pytest.raises(errors.LockFileExists, match="in use by another gpudb process"):
        Store.open(store.directory)


def test_a_newer_format_is_refused(store: Store) -> None:
    store._set_meta("format_version", FORMAT_VERSION + 1)
    store.close()
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match="incompatible"):
        Store.open(store.directory)
    with pytest.raises(errors.ObjectNotInPrerequisiteState):
        Store.open(store.directory)


def test_identifiers_are_never_given_out_twice(store: Store) -> None:
    given = [store.allocate_oid() for _ in range(1500)]
    store.close()
    again = Store.open(store.directory)
    given += [again.allocate_oid() for _ in range(10)]
    assert len(set(given)) == len(given) and min(given) == 16384
    assert again.epoch == store.epoch + 1
    again.close()


def test_a_failed_commit_changes_nothing(store: Store) -> None:
    before = store.published
    relation = table(store)
    with pytest.raises(errors.DuplicateTable, match='relation "t" already exists'):
        store.commit([Create(relation), Create(table(store))], before)
    assert store.published is before
    assert reopened(store).published.relation("public", "t") is None


def test_a_commit_that_the_disk_refuses_changes_nothing(store: Store) -> None:
    relation, _ = with_table(store, 10)
    before = store.published
    store._connection.set_commit_hook(lambda: True)
    with pytest.raises(errors.IoError, match="could not write the catalog"):
        store.commit([AddSegments(relation.oid, (segment(store, relation),))], before)
    store._connection.set_commit_hook(None)
    assert store.published is before
    store.commit([AddSegments(relation.oid, (segment(store, relation),))], before)
    assert reopened(store).published.data(relation.oid).rows() == 20


def test_a_compacted_segment_takes_the_place_of_its_inputs(store: Store) -> None:
    relation, segments = with_table(store, 10, 20, 30)
    merged = dataclasses.replace(segment(store, relation, 30), row0=0)
    changes: list[Change] = [
        EndSegments(relation.oid, (segments[0].id, segments[1].id)),
        AddSegments(relation.oid, (merged,)),
    ]
    store.commit(changes, store.published)
    for snapshot in (store.published, reopened(store).published):
        data = snapshot.data(relation.oid)
        assert [s.id for s in data.segments] == [merged.id, segments[2].id]
        assert data.next_row == 60


def test_inserts_run_side_by_side_in_commit_order(store: Store) -> None:
    relation, _ = with_table(store, 10)
    base = store.published
    for rows in (5, 7):
        store.commit([AddSegments(relation.oid, (segment(store, relation, rows),))], base)
    assert [s.row0 for s in store.published.data(relation.oid).segments] == [0, 10, 15]


def test_insert_conflicts_with_a_changed_table(store: Store) -> None:
    relation, _ = with_table(store, 10)
    base = store.published
    wider = Relation(
        relation.oid,
        relation.schema,
        "t",
        "r",
        (*relation.columns, ColumnDef(3, "c", 20)),
        row_type=relation.row_type,
        array_type=relation.array_type,
    )
    store.commit([Replace(wider)], base)
    with pytest.raises(errors.SerializationFailure):
        store.commit([AddSegments(relation.oid, (segment(store, relation),))], base)
    with pytest.raises(errors.SerializationFailure):
        store.commit([Replace(relation)], base)
    store.commit([Drop(ObjectClass.RELATION, relation.oid)], store.published)
    with pytest.raises(errors.SerializationFailure):
        store.commit([AddSegments(relation.oid, (segment(store, relation),))], base)


def vector(*rows: int) -> DeleteVector:
    return conflicts.delete_vector(np.array(rows, np.int32), 10)


def test_disjoint_deletes_merge_and_common_rows_conflict(store: Store) -> None:
    relation, (first,) = with_table(store, 10)
    base = store.published
    store.commit([SetDeletes(relation.oid, first.id, vector(1, 3), True)], base)
    store.commit([SetDeletes(relation.oid, first.id, vector(2), True)], base)
    merged = store.published.data(relation.oid).deletes[first.id]
    assert conflicts.positions(merged).tolist() == [1, 2, 3]
    assert store.published.data(relation.oid).rows() == 7
    with pytest.raises(errors.SerializationFailure):
        store.commit([SetDeletes(relation.oid, first.id, vector(3, 4), True)], base)
    with pytest.raises(errors.SerializationFailure):
        store.commit([SetDeletes(relation.oid, first.id, vector(5), False)], base)
    again = reopened(store)
    assert again.published.data(relation.oid).deletes == {first.id: merged}
    again.close()


def test_compaction_conflicts_with_a_delete(store: Store) -> None:
    relation, (first,) = with_table(store, 10)
    base = store.published
    store.commit([SetDeletes(relation.oid, first.id, vector(1), True)], base)
    with pytest.raises(errors.SerializationFailure):
        store.commit([EndSegments(relation.oid, (first.id,))], base)
    store.commit([EndSegments(relation.oid, (first.id,))], store.published)
    assert store.published.data(relation.oid).rows() == 0
    assert store.published.data(relation.oid).deletes == {}


def test_a_large_vector_becomes_a_bitmap() -> None:
    rows = np.arange(0, 20000, 3, dtype=np.int32)
    made = conflicts.delete_vector(rows, 20000)
    assert made.encoding == "bitmap" and len(made.data) == 2500
    assert (conflicts.positions(made) == rows).all()


def test_truncate_and_drop_in_the_transaction_that_created(store: Store) -> None:
    relation = table(store)
    other = table(store, "u")
    one, two = segment(store, relation), segment(store, relation, 4)
    store.commit(
        [
            Create(relation),
            AddSegments(relation.oid, (one,)),
            Truncate(relation.oid),
            AddSegments(relation.oid, (two,)),
            Create(other),
            Drop(ObjectClass.RELATION, other.oid),
        ],
        store.published,
    )
    again = reopened(store)
    assert [s.id for s in again.published.data(relation.oid).segments] == [two.id]
    assert again.published.relation("public", "u") is None
    again.close()


def test_dropping_a_table_takes_its_parts(store: Store) -> None:
    relation, _ = with_table(store, 3)
    key = Constraint(store.allocate_oid(), 2200, "t_pkey", "p", relation.oid, columns=(1,))
    comment = Comment(ObjectClass.RELATION, relation.oid, 0, "x")
    constraint_comment = Comment(ObjectClass.CONSTRAINT, key.oid, 0, "y")
    changes: list[Change] = [Create(key), SetComment(comment), SetComment(constraint_comment)]
    store.commit(changes, store.published)
    store.commit([Drop(ObjectClass.RELATION, relation.oid)], store.published)
    for snapshot in (store.published, reopened(store).published):
        assert snapshot.constraint_by_oid(key.oid) is None
        assert dict(snapshot.comments()) == {}
        assert snapshot.data(relation.oid).segments == ()
        assert snapshot.type(relation.row_type) is None


def test_a_drop_conflicts_with_what_came_to_need_it(store: Store) -> None:
    schema = Schema(store.allocate_oid(), 5, "s", 10)
    store.commit([Create(schema)], store.published)
    base = store.published
    store.commit([Create(table(store, schema=schema.oid))], base)
    with pytest.raises(errors.SerializationFailure):
        store.commit([Drop(ObjectClass.SCHEMA, schema.oid)], base)


def test_dependents_are_found_by_table_and_column(store: Store) -> None:
    relation, _ = with_table(store, 3)
    view = Relation(
        store.allocate_oid(),
        2200,
        "v",
        RelationKind.VIEW,
        (ColumnDef(1, "a", 23),),
        definition="SELECT a FROM public.t",
        references=(Reference(ObjectClass.RELATION, relation.oid, 1),),
    )
    snapshot = store.commit([Create(view)], store.published)
    assert snapshot.dependents(ObjectClass.RELATION, relation.oid) == (view,)
    assert snapshot.dependents(ObjectClass.RELATION, relation.oid, 1) == (view,)
    assert snapshot.dependents(ObjectClass.RELATION, relation.oid, 2) == ()
    assert view in snapshot.dependents(ObjectClass.SCHEMA, SCHEMA_PUBLIC)


def test_old_snapshots_stay_readable_while_pinned(store: Store) -> None:
    relation = table(store)
    first = segment(store, relation, 10, path="seg/1/a.seg")
    store.commit([Create(relation), AddSegments(relation.oid, (first,))], store.published)
    pinned = store.acquire()
    store.commit([Truncate(relation.oid)], store.published)
    assert pinned.data(relation.oid).rows() == 10
    assert store.garbage.collect() == 0
    store.release(pinned)
    assert store.garbage.collect() == 1
    assert store.garbage.disposable() == ["seg/1/a.seg"]
    store.garbage.forget(["seg/1/a.seg"])
    assert store.garbage.disposable() == []


def test_a_durable_pin_survives_restarts(store: Store) -> None:
    relation, segments = with_table(store, 10)
    kept = store.published.id
    store.pin_durably("run-1", kept)
    store.commit([Drop(ObjectClass.RELATION, relation.oid)], store.published)
    again = reopened(store)
    again.garbage.collect()
    old = again.snapshot_at(kept)
    assert old.relation("public", "t") == relation
    assert [s.id for s in old.data(relation.oid).segments] == [segments[0].id]
    again.unpin_durably("run-1")
    again.garbage.collect()
    with pytest.raises(errors.UndefinedFile):
        again.snapshot_at(kept)
    again.close()


def test_only_files_of_older_epochs_are_orphans(store: Store) -> None:
    name = store.new_file_name()
    assert not store.is_orphan(name, set())
    again = reopened(store)
    assert again.is_orphan(name, again.referenced_files())
    assert not again.is_orphan(name, {name})
    assert not again.is_orphan("notes.txt", set())
    again.close()


def test_a_backup_is_a_complete_catalog(store: Store, tmp_path: Path) -> None:
    relation, _ = with_table(store, 10)
    target = tmp_path / "copy"
    target.mkdir()
    store.release(store.backup(target / "catalog.db"))
    copy = Store.open(target)
    assert copy.published.relation("public", "t") == relation
    copy.close()


def sequence(store: Store, **options: object) -> Relation:
    made = Relation(
        store.allocate_oid(),
        2200,
        "s",
        "S",
        (),
        sequence=SequenceOptions(**options),  # type: ignore[arg-type]
    )
    store.commit([Create(made)], store.published)
    return made


def test_sequences_count_over_orderly_restarts(store: Store) -> None:
    made = sequence(store)
    assert store.sequences.current(made) == (1, False)
    assert store.sequences.next_values(made, 40) == list(range(1, 41))
    again = reopened(store)
    assert again.sequences.current(made) == (40, True)
    assert again.sequences.next_value(made) == 41
    again.sequences.set_value(made, 5, is_called=False)
    assert again.sequences.next_value(made) == 5
    again.close()


def test_a_crash_never_repeats_a_value(store: Store) -> None:
    made = sequence(store)
    values = store.sequences.next_values(made, 3)
    store.sequences._states.clear()
    assert store.sequences.next_value(made) > max(values)


def test_values_taken_before_the_commit_count(store: Store) -> None:
    made = Relation(store.allocate_oid(), 2200, "s", "S", (), sequence=SequenceOptions())
    assert store.sequences.next_values(made, 2) == [1, 2]
    store.commit([Create(made)], store.published)
    again = reopened(store)
    assert again.sequences.current(made) == (2, True)
    assert again.sequences.next_value(made) == 3
    again.commit([Drop(ObjectClass.RELATION, made.oid)], again.published)
    assert again.sequences.current(made) == (1, False)
    again.close()


def test_an_interrupted_creation_is_finished_at_the_next_start(store: Store) -> None:
    with store._transaction():
        for name in ("object", "snapshot"):
            list(store._connection.execute(f"DELETE FROM {name}"))
    again = reopened(store)
    assert again.published.role("postgres") is not None
    again.close()


def test_sequences_end_or_cycle_at_their_bounds(store: Store) -> None:
    made = sequence(store, maximum=2)
    store.sequences.next_values(made, 2)
    with pytest.raises(errors.SequenceGeneratorLimitExceeded, match=r'value of sequence "s" \(2\)'):
        store.sequences.next_value(made)
    with pytest.raises(errors.NumericValueOutOfRange, match=r"setval: value 3 is out of bounds"):
        store.sequences.set_value(made, 3)


def test_a_descending_cycle_returns_to_its_maximum(store: Store) -> None:
    made = sequence(store, maximum=-1, minimum=-2, start=-1, increment=-1, cycles=True)
    assert store.sequences.next_values(made, 4) == [-1, -2, -1, -2]


def test_uncommitted_changes_are_visible_to_their_own_transaction_only(store: Store) -> None:
    transaction = TransactionCatalog(store.published)
    relation = table(store)
    transaction.apply(Create(relation))
    assert transaction.snapshot.relation("public", "t") == relation
    assert store.published.relation("public", "t") is None
    point = transaction.savepoint()
    transaction.apply(Drop(ObjectClass.RELATION, relation.oid))
    assert transaction.snapshot.relation("public", "t") is None
    transaction.rollback_to(point)
    assert transaction.snapshot.relation("public", "t") == relation
    other = table(store, "other")
    store.commit([Create(other)], store.published)
    transaction.refresh(store.published)
    assert transaction.snapshot.relation("public", "other") == other
    store.commit(transaction.permanent, transaction.base)
    assert store.published.relation("public", "t") == relation


def test_temporary_objects_never_reach_the_store(store: Store) -> None:
    transaction = TransactionCatalog(store.published)
    schema = Schema(store.allocate_oid(), 5, "pg_temp_3", 10)
    made = Relation(store.allocate_oid(), schema.oid, "x", "r", (), persistence="t")
    transaction.apply(Create(schema), Create(made))
    transaction.apply(AddSegments(made.oid, (segment(store, made),)))
    assert transaction.permanent == [] and len(transaction.temporary) == 3
    later = TransactionCatalog(store.published, tuple(transaction.temporary))
    assert later.snapshot.data(made.oid).rows() == 10


WRITER = """
    import sys
    from pathlib import Path
    from gpudb.catalog.changes import AddSegments, Create
    from gpudb.catalog.objects import Relation, SegmentRef, ColumnDef
    from gpudb.catalog.store import Store
    store = Store.open(Path(sys.argv[1]))
    found = store.published.relation("public", "t")
    if found is None:
        found = Relation(store.allocate_oid(), 2200, "t", "r", (ColumnDef(1, "a", 23),))
        store.commit([Create(found)], store.published)
    while True:
        ref = SegmentRef(store.allocate_segment_id(), found.oid, 1, 0, (), image=b"x" * 100)
        store.commit([AddSegments(found.oid, (ref,))], store.published)
        sys.stdout.write(f"{ref.id}\\n")
        sys.stdout.flush()
"""


def test_kill_9_loses_no_acknowledged_commit(tmp_path: Path) -> None:
    acknowledged: list[int] = []
    chooser = random.Random(7)
    for _ in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(chooser.uniform(0.0, 0.2))
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read().splitlines()
        writer.wait()
        lines = [first.strip(), *rest]
        acknowledged += [int(line) for line in lines[:-1]]
    opened = Store.open(tmp_path)
    assert opened.check() == []
    relation = opened.published.relation("public", "t")
    assert relation is not None
    data = opened.published.data(relation.oid)
    assert set(acknowledged) <= {s.id for s in data.segments}
    assert [s.row0 for s in data.segments] == list(range(len(data.segments)))
    opened.close()
