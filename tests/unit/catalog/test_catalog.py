"""Snapshots: look-ups, search path, databases, types and dependencies."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from catalog_sample import sample_snapshot

from gpudb import errors
from gpudb.catalog import builtin
from gpudb.catalog.catalog import CatalogSnapshot, TransactionCatalog, require_relation
from gpudb.catalog.changes import AddSegments, Create, Drop, Replace, SetDeletes
from gpudb.catalog.conflicts import delete_vector, positions
from gpudb.catalog.objects import (
    ColumnDef,
    Constraint,
    Database,
    DomainType,
    EnumType,
    FunctionDef,
    ObjectClass,
    Reference,
    Relation,
    Schema,
    SegmentRef,
)
from gpudb.catalog.search_path import resolve


def table(oid: int, name: str, schema: int = 2200, **options: object) -> Relation:
    columns = (ColumnDef(1, "a", 23),)
    return Relation(oid, schema, name, "r", columns, **options)  # type: ignore[arg-type]


def test_built_ins_are_there_without_any_object() -> None:
    snapshot = CatalogSnapshot.empty()
    relation = snapshot.relation("pg_catalog", "pg_class")
    assert relation is not None and relation.oid == 1259 and relation.is_system
    assert [c.name for c in relation.columns][:3] == ["oid", "relname", "relnamespace"]
    view = snapshot.relation("information_schema", "columns")
    assert view is not None and view.kind == "v" and view.definition is not None
    assert len(view.columns) == 44
    assert snapshot.comment(1259, 0) is None
    entry = snapshot.type(1007)
    assert entry is not None and entry.is_array and entry.element == 23


def test_every_system_view_lists_the_columns_of_its_relation() -> None:
    for schema, name in builtin.view_definitions():
        relation = builtin.relation_in(builtin.schema_names()[schema], name)
        assert relation is not None and relation.kind == "v", name


def test_apply_leaves_the_old_snapshot_as_it_was() -> None:
    before = sample_snapshot()
    after = before.apply((Create(table(20000, "new")),))
    assert before.relation("public", "new") is None
    assert after.relation("public", "new") is not None
    assert after.version != before.version
    row = SegmentRef(1, 20000, 5, 0, ())
    with_data = after.apply((AddSegments(20000, (row,)),))
    assert with_data.version == after.version
    assert with_data.data(20000).rows() == 5 and after.data(20000).rows() == 0


def test_the_path_decides_which_relation_a_name_means() -> None:
    snapshot = sample_snapshot().apply(
        (
            Create(Schema(20000, 5, "s", 10)),
            Create(Schema(20001, 5, "pg_temp_1", 10)),
            Create(table(20002, "parent", 20000)),
            Create(table(20003, "pg_class", 20000)),
        )
    )
    path = resolve(snapshot, ("s", "public"), user="postgres")
    assert path.schemas == (11, 20000, 2200) and path.creation == 20000
    assert path.explicit == (20000, 2200)
    found = snapshot.resolve_relation("parent", path)
    assert found is not None and found.oid == 20002
    system = snapshot.resolve_relation("pg_class", path)
    assert system is not None and system.oid == 1259
    last = resolve(snapshot, ("s", "pg_catalog"), user="postgres")
    own = snapshot.resolve_relation("pg_class", last)
    assert own is not None and own.oid == 20003


def test_user_schema_and_temporary_schema_in_the_path() -> None:
    snapshot = sample_snapshot().apply(
        (Create(Schema(20000, 5, "alice", 10)), Create(Schema(20001, 5, "pg_temp_1", 10)))
    )
    path = resolve(snapshot, ("$user", "public"), user="alice", temporary=20001)
    assert path.schemas == (20001, 11, 20000, 2200)
    assert path.function_schemas() == (11, 20000, 2200)
    assert path.explicit == (20000, 2200)
    missing = resolve(snapshot, ("$user", "nosuch"), user="bob")
    assert missing.schemas == (11,) and missing.creation == 0
    named = resolve(snapshot, ("public", "pg_temp"), user="bob", temporary=20001)
    assert named.schemas == (11, 2200, 20001) and named.creation == 2200


def test_each_database_has_its_own_schemas() -> None:
    snapshot = sample_snapshot().apply(
        (
            Create(Database(20000, "other", 10)),
            Create(Schema(20001, 20000, "public", 10)),
            Create(table(20002, "parent", 20001)),
        )
    )
    other = snapshot.in_database(20000)
    mine, theirs = snapshot.relation("public", "parent"), other.relation("public", "parent")
    assert mine is not None and mine.oid == 16445
    assert theirs is not None and theirs.oid == 20002
    assert [r.oid for r in other.relations()] == [20002]
    assert other.relation("pg_catalog", "pg_class") is not None


def test_types_follow_their_owners() -> None:
    snapshot = sample_snapshot()
    row, array = snapshot.type_in(2200, "parent"), snapshot.type_in(2200, "_parent")
    assert row is not None and (row.kind, row.relation) == ("c", 16445)
    assert array is not None and array.element == row.oid
    domain = snapshot.type_in(2200, "posint")
    assert domain is not None and (domain.kind, domain.category) == ("d", "N")
    renamed = snapshot.relation("public", "parent")
    assert renamed is not None
    after = snapshot.apply(
        (
            Drop(ObjectClass.RELATION, 16458),
            Replace(table(16445, "other", row_type=16447, array_type=16446)),
        )
    )
    assert after.type_in(2200, "parent") is None and after.type_in(2200, "other") is not None


def test_an_array_type_gives_way_to_a_type_of_its_name() -> None:
    snapshot = sample_snapshot().apply(
        (
            Create(EnumType(20000, 2200, "_x", 10, 20001, ())),
            Create(EnumType(20002, 2200, "x", 10, 20003, ())),
        )
    )
    array = snapshot.type(20003)
    assert array is not None and array.name == "___x"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (Create(table(20000, "parent")), errors.DuplicateTable, 'relation "parent" already'),
        (
            Create(EnumType(20000, 2200, "parent", 10, 0, ())),
            errors.DuplicateObject,
            'type "parent" already exists',
        ),
        (Create(Schema(20000, 5, "public", 10)), errors.DuplicateSchema, 'schema "public"'),
        (Create(Database(20000, "postgres", 10)), errors.DuplicateDatabase, "already exists"),
        (
            Create(Constraint(20000, 2200, "chk", "c", 16445)),
            errors.DuplicateObject,
            'constraint "chk" for relation "parent" already exists',
        ),
        (Create(table(20000, "t", 29999)), errors.SerializationFailure, "concurrent"),
        (Drop(ObjectClass.RELATION, 29999), errors.SerializationFailure, "concurrent"),
    ],
)
def test_changes_that_do_not_fit_are_refused(
    change: Create | Drop, error: type[errors.SqlError], message: str
) -> None:
    with pytest.raises(error, match=message):
        sample_snapshot().apply((change,))


def test_functions_of_one_name_differ_in_their_arguments() -> None:
    snapshot = sample_snapshot()
    f = snapshot.function_by_oid(16481)
    assert f is not None
    same = FunctionDef(20000, 2200, "f", 10, "sql", f.arguments, 25, "")
    with pytest.raises(errors.DuplicateFunction, match="already exists with same argument types"):
        snapshot.apply((Create(same),))
    other = FunctionDef(20000, 2200, "f", 10, "sql", f.arguments[:1], 25, "")
    path = resolve(snapshot, ("public",), user="postgres")
    after = snapshot.apply((Create(other),))
    assert [f.oid for f in after.resolve_functions("f", path)] == [16481, 20000]


def test_dependents_follow_views_keys_types_and_sequences() -> None:
    snapshot = sample_snapshot()

    def oids(class_id: ObjectClass, oid: int, subid: int = 0) -> set[int]:
        return {item.oid for item in snapshot.dependents(class_id, oid, subid)}

    assert oids(ObjectClass.RELATION, 16445) == {16466, 16471, 16475}
    assert oids(ObjectClass.RELATION, 16458) == {16456, 16457}
    assert oids(ObjectClass.RELATION, 16445, 3) == {16449, 16471, 16479}
    assert oids(ObjectClass.RELATION, 16456) == {16458}
    assert oids(ObjectClass.TYPE, 16433) == {16445}
    assert oids(ObjectClass.TYPE, 16440) == {16458}
    domain = DomainType(20000, 2200, "d", 10, 20001, 16440)
    function = FunctionDef(
        20002,
        2200,
        "g",
        10,
        "sql",
        (),
        23,
        "",
        references=(Reference(ObjectClass.FUNCTION, 16481),),
    )
    later = snapshot.apply((Create(domain), Create(function)))
    assert domain in later.dependents(ObjectClass.TYPE, 16440)
    assert later.dependents(ObjectClass.FUNCTION, 16481) == (function,)


def test_missing_relations_are_told_by_schema_and_name() -> None:
    snapshot = sample_snapshot()
    with pytest.raises(errors.InvalidSchemaName, match='schema "x" does not exist'):
        require_relation(snapshot, "x", "t")
    with pytest.raises(errors.UndefinedTable, match=r'"public\.t" does not exist'):
        require_relation(snapshot, "public", "t")


def test_a_refreshed_transaction_keeps_both_deletes() -> None:
    base = sample_snapshot().apply((AddSegments(16445, (SegmentRef(1, 16445, 10, 0, ()),)),), id=1)
    transaction = TransactionCatalog(base)
    mine = delete_vector(np.array([1], np.int32), 10)
    transaction.apply(SetDeletes(16445, 1, mine, is_plain_delete=True))
    theirs = delete_vector(np.array([5], np.int32), 10)
    newer = base.apply((SetDeletes(16445, 1, theirs),), id=2)
    seen = transaction.refresh(newer)
    assert positions(seen.data(16445).deletes[1]).tolist() == [1, 5]
    later = newer.apply((SetDeletes(16445, 1, delete_vector(np.array([1, 5]), 10)),), id=3)
    with pytest.raises(errors.SerializationFailure):
        transaction.refresh(later)


def test_the_built_in_file_knows_what_gpudb_sql_declares() -> None:
    text = (Path(builtin.__file__).parent / "gpudb.sql").read_text()
    tables = re.findall(r"CREATE TABLE gpudb\.(\w+) \((.*?)\n\);", text, re.DOTALL)
    assert len(tables) == text.count("\nCREATE TABLE gpudb.")
    for name, body in tables:
        relation = CatalogSnapshot.empty().relation("gpudb", name)
        assert relation is not None, "run generate_builtin"
        declared = [line.split()[0] for line in body.strip().splitlines()]
        assert [column.name for column in relation.columns] == declared
