"""Privileges: owners, superusers, grants, roles and PostgreSQL's messages."""

from __future__ import annotations

import dataclasses

import pytest
from catalog_sample import sample_snapshot

from gpudb import errors
from gpudb.catalog import aclitems, privileges
from gpudb.catalog.catalog import CatalogSnapshot
from gpudb.catalog.changes import Create, Replace
from gpudb.catalog.objects import AclItem, Membership, Relation, Role

ALICE, BOB, GROUP = 16483, 20000, 20001


@pytest.fixture(scope="module")
def snapshot() -> CatalogSnapshot:
    member = (Membership(GROUP, 10),)
    return sample_snapshot().apply(
        (
            Create(Role(GROUP, "readers")),
            Create(Role(BOB, "bob", can_login=True, member_of=member)),
            Create(Role(20002, "carol", inherits=False, member_of=member)),
        )
    )


def parent(snapshot: CatalogSnapshot) -> Relation:
    found = snapshot.relation("public", "parent")
    assert found is not None
    return found


def test_superusers_and_owners_pass(snapshot: CatalogSnapshot) -> None:
    for letter in "arwdDxt":
        privileges.check_relation(snapshot, 10, parent(snapshot), letter)
    owned = dataclasses.replace(parent(snapshot), owner=BOB, acl=None)
    assert privileges.is_owner(snapshot, BOB, owned)
    assert privileges.has_privilege(snapshot, BOB, owned, "w")


def test_grants_on_tables_and_columns(snapshot: CatalogSnapshot) -> None:
    relation = parent(snapshot)
    privileges.check_relation(snapshot, ALICE, relation, "r")
    with pytest.raises(errors.InsufficientPrivilege, match="permission denied for table parent"):
        privileges.check_relation(snapshot, ALICE, relation, "w")
    price, name = relation.columns[2], relation.columns[1]
    privileges.check_relation(snapshot, ALICE, relation, "w", [price])
    privileges.check_relation(snapshot, ALICE, relation, "w", [])
    with pytest.raises(errors.InsufficientPrivilege):
        privileges.check_relation(snapshot, ALICE, relation, "w", [price, name])
    assert privileges.has_column_privilege(snapshot, ALICE, relation, price, "w")
    assert not privileges.has_column_privilege(snapshot, ALICE, relation, name, "w")


def test_roles_inherit_or_only_may_become(snapshot: CatalogSnapshot) -> None:
    assert privileges.roles_of(snapshot, BOB) == {BOB, GROUP}
    assert privileges.roles_of(snapshot, 20002) == {20002}
    assert privileges.memberships_of(snapshot, 20002) == {20002, GROUP}
    relation = parent(snapshot)
    acl = privileges.grant(privileges.effective_acl(relation), GROUP, 10, "r")
    after = snapshot.apply((Replace(dataclasses.replace(relation, acl=acl)),))
    assert privileges.has_privilege(after, BOB, parent(after), "r")
    assert not privileges.has_privilege(after, 20002, parent(after), "r")


def test_predefined_roles_read_everything(snapshot: CatalogSnapshot) -> None:
    reader = Role(20005, "reader", member_of=(Membership(privileges.ROLE_READ_ALL_DATA, 10),))
    after = snapshot.apply((Create(reader),))
    assert privileges.has_privilege(after, 20005, parent(after), "r")
    assert not privileges.has_privilege(after, 20005, parent(after), "a")


def test_the_database_owner_owns_public(snapshot: CatalogSnapshot) -> None:
    schema = snapshot.schema("public")
    assert schema is not None
    privileges.check_schema(snapshot, 10, schema, "C")
    privileges.check_schema(snapshot, ALICE, schema, "U")
    with pytest.raises(errors.InsufficientPrivilege, match="permission denied for schema public"):
        privileges.check_schema(snapshot, ALICE, schema, "C")


def test_everybody_reads_the_catalog_and_only_superusers_write_it(
    snapshot: CatalogSnapshot,
) -> None:
    pg_class = snapshot.relation("pg_catalog", "pg_class")
    authid = snapshot.relation("pg_catalog", "pg_authid")
    assert pg_class is not None and authid is not None
    privileges.check_relation(snapshot, ALICE, pg_class, "r")
    for relation, letter in ((pg_class, "a"), (authid, "r")):
        with pytest.raises(errors.InsufficientPrivilege):
            privileges.check_relation(snapshot, ALICE, relation, letter)


def test_owner_checks_name_the_kind_of_object(snapshot: CatalogSnapshot) -> None:
    view = snapshot.relation("public", "v")
    enum = snapshot.user_type(16433)
    assert view is not None and enum is not None
    with pytest.raises(errors.InsufficientPrivilege, match="must be owner of view v"):
        privileges.check_owner(snapshot, ALICE, view)
    with pytest.raises(errors.InsufficientPrivilege, match="must be owner of type mood"):
        privileges.check_owner(snapshot, ALICE, enum)


def test_grant_and_revoke_as_aclitems(snapshot: CatalogSnapshot) -> None:
    acl = privileges.grant((AclItem(10, 10, "arwdDxt"),), ALICE, 10, "wr", with_option=True)
    acl = privileges.grant(acl, 0, 10, "r")

    def shown() -> list[str]:
        return [privileges.format_item(snapshot, item) for item in acl]

    assert shown() == ["postgres=arwdDxt/postgres", "alice=r*w*/postgres", "=r/postgres"]
    acl = privileges.revoke(acl, ALICE, "w", option_only=True)
    assert shown()[1] == "alice=r*w/postgres"
    acl = privileges.revoke(acl, ALICE, "rw")
    assert shown() == ["postgres=arwdDxt/postgres", "=r/postgres"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("c", []),
        ("r", ["postgres=arwdDxt/postgres"]),
        ("d", ["=Tc/postgres", "postgres=CTc/postgres"]),
        ("n", ["postgres=UC/postgres"]),
        ("T", ["=U/postgres", "postgres=U/postgres"]),
    ],
)
def test_default_privileges(snapshot: CatalogSnapshot, kind: str, expected: list[str]) -> None:
    items = aclitems.default_items(kind, 10)
    assert [privileges.format_item(snapshot, item) for item in items] == expected


@pytest.mark.parametrize("text", ["=r*w/postgres", "alice=arwdDxtXUCTcsA/postgres"])
def test_aclitems_read_what_they_show(snapshot: CatalogSnapshot, text: str) -> None:
    assert privileges.format_item(snapshot, aclitems.parse_item(snapshot, text)) == text


def test_quoted_role_names_in_aclitems(snapshot: CatalogSnapshot) -> None:
    at = snapshot.apply((Create(Role(20010, 'o"dd =')),))
    text = '"o""dd ="=r/postgres'
    item = aclitems.parse_item(at, text)
    assert item == AclItem(20010, 10, "r")
    assert privileges.format_item(at, item) == text


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("postgres", errors.InvalidTextRepresentation, 'unrecognized key word: "postgres"'),
        ("=q/postgres", errors.InvalidTextRepresentation, "invalid mode character"),
        ("nosuch=r/postgres", errors.UndefinedObject, 'role "nosuch" does not exist'),
    ],
)
def test_broken_aclitems(
    snapshot: CatalogSnapshot, text: str, error: type[errors.SqlError], message: str
) -> None:
    with pytest.raises(error, match=message):
        aclitems.parse_item(snapshot, text)


def test_exploded_items_follow_postgresql() -> None:
    items = (AclItem(0, 10, "wr", "r"),)
    assert list(aclitems.exploded(items)) == [
        (10, 0, "SELECT", True),
        (10, 0, "UPDATE", False),
    ]


def test_lists_of_privileges() -> None:
    found = aclitems.parse_privileges(" select with grant option ,INSERT", "arwd")
    assert found == [("r", True), ("a", False)]
    with pytest.raises(errors.InvalidParameterValue, match='unrecognized privilege type: "foo"'):
        aclitems.parse_privileges("SELECT, foo", "arwd")
    with pytest.raises(errors.InvalidParameterValue):
        aclitems.parse_privileges("USAGE", "arwd")
