"""The objects behind postgres15_sample.json, with the OIDs that PostgreSQL gave them there.

The statements were:

    create type mood as enum ('sad', 'ok', 'happy');
    create domain posint as int default 5 constraint pos check (value > 0);
    create type pair as (a int, b text);
    create table parent(id int primary key, name varchar(20) not null default 'x',
        price numeric(12,2), m mood, u text unique, arr int[],
        constraint chk check (price > 0));
    create table child(id bigserial, pid int references parent(id) on delete cascade,
        ts timestamptz default now(), d posint, c char(3), g int generated always as identity,
        gen int generated always as (1+1) stored, primary key (id, g));
    alter table child drop column ts;
    create view v as select id, name from parent where price > 1;
    create materialized view mv as select count(*) n from parent;
    create index ix on parent (lower(name), price desc) where price > 5;
    create sequence s increment by 2 minvalue 0 maxvalue 100 start 4 cache 3 cycle;
    comment on table parent is 'the parent'; comment on column parent.name is 'a name';
    create function f(x int, y text default 'q') returns int language sql immutable strict
        as 'select x';
    create procedure p(inout a int) language sql as 'select 1';
    create role alice login;
    grant select on parent to alice; grant update (price) on parent to alice;
"""

from __future__ import annotations

from gpudb.catalog.bootstrap import initial_changes
from gpudb.catalog.catalog import CatalogSnapshot
from gpudb.catalog.changes import Change, Create, SetComment
from gpudb.catalog.objects import (
    SEQUENCE_COLUMNS,
    AclItem,
    CatalogObject,
    ColumnDef,
    Comment,
    Constraint,
    DomainType,
    EnumLabel,
    EnumType,
    FunctionArgument,
    FunctionDef,
    IndexDefinition,
    IndexKey,
    ObjectClass,
    Reference,
    Relation,
    Role,
    SequenceOptions,
)

PUBLIC = 2200
OWNER = 10
INT4, INT8, TEXT, VARCHAR, BPCHAR, NUMERIC, INT4_ARRAY = 23, 20, 25, 1043, 1042, 1700, 1007


def _column(table: int, column: int = 0) -> Reference:
    return Reference(ObjectClass.RELATION, table, column)


def _parent() -> list[CatalogObject]:
    columns = (
        ColumnDef(1, "id", INT4, not_null=True),
        ColumnDef(2, "name", VARCHAR, 24, True, "'x'::character varying", default_oid=16448),
        ColumnDef(3, "price", NUMERIC, 786438, acl=(AclItem(16483, OWNER, "w"),)),
        ColumnDef(4, "m", 16433),
        ColumnDef(5, "u", TEXT),
        ColumnDef(6, "arr", INT4_ARRAY),
    )
    acl = (AclItem(OWNER, OWNER, "arwdDxt"), AclItem(16483, OWNER, "r"))
    price = (Reference(ObjectClass.RELATION, 16445, 3),)
    key = IndexDefinition(
        16445, 403, (IndexKey(1),), is_unique=True, is_primary=True, constraint=16453
    )
    unique = IndexDefinition(16445, 403, (IndexKey(5),), is_unique=True, constraint=16455)
    expression = IndexDefinition(
        16445,
        403,
        (IndexKey(0, "lower((name)::text)"), IndexKey(3, is_descending=True, nulls_first=True)),
        predicate="(price > (5)::numeric)",
    )
    shown = (ColumnDef(1, "lower", TEXT), ColumnDef(2, "price", NUMERIC, 786438))
    return [
        Relation(16445, PUBLIC, "parent", "r", columns, row_type=16447, array_type=16446, acl=acl),
        Constraint(16449, PUBLIC, "chk", "c", 16445, columns=(3,), check="x", references=price),
        Relation(16452, PUBLIC, "parent_pkey", "i", (), index=key),
        Constraint(16453, PUBLIC, "parent_pkey", "p", 16445, columns=(1,), index=16452),
        Relation(16454, PUBLIC, "parent_u_key", "i", (), index=unique),
        Constraint(16455, PUBLIC, "parent_u_key", "u", 16445, columns=(5,), index=16454),
        Relation(
            16479,
            PUBLIC,
            "ix",
            "i",
            shown,
            index=expression,
            references=(_column(16445, 2), _column(16445, 3)),
        ),
    ]


def _child() -> list[CatalogObject]:
    nextval = "nextval('child_id_seq'::regclass)"
    sequence = (Reference(ObjectClass.RELATION, 16456),)
    columns = (
        ColumnDef(1, "id", INT8, -1, True, nextval, 16461, references=sequence),
        ColumnDef(2, "pid", INT4),
        ColumnDef(3, "ts", 1184, is_dropped=True),
        ColumnDef(4, "d", 16440),
        ColumnDef(5, "c", BPCHAR, 7),
        ColumnDef(6, "g", INT4, not_null=True, identity="a"),
        ColumnDef(7, "gen", INT4, default="(1 + 1)", default_oid=16463, generated="s"),
    )
    serial = SequenceOptions(owner_table=16458, owner_column=1)
    identity = SequenceOptions(
        INT4, maximum=2147483647, owner_table=16458, owner_column=6, is_identity=True
    )
    key = IndexDefinition(
        16458, 403, (IndexKey(1), IndexKey(6)), is_unique=True, is_primary=True, constraint=16465
    )
    foreign = Constraint(
        16466,
        PUBLIC,
        "child_pid_fkey",
        "f",
        16458,
        columns=(2,),
        index=16452,
        referenced_table=16445,
        referenced_columns=(1,),
        on_delete="c",
    )
    return [
        Relation(16456, PUBLIC, "child_id_seq", "S", SEQUENCE_COLUMNS, sequence=serial),
        Relation(16457, PUBLIC, "child_g_seq", "S", SEQUENCE_COLUMNS, sequence=identity),
        Relation(16458, PUBLIC, "child", "r", columns, row_type=16460, array_type=16459),
        Relation(16464, PUBLIC, "child_pkey", "i", (), index=key),
        Constraint(16465, PUBLIC, "child_pkey", "p", 16458, columns=(1, 6), index=16464),
        foreign,
    ]


def _others() -> list[CatalogObject]:
    labels = (EnumLabel(16434, "sad", 1), EnumLabel(16436, "ok", 2), EnumLabel(16438, "happy", 3))
    parent = [Reference(ObjectClass.RELATION, 16445, attnum) for attnum in (1, 2, 3)]
    view_columns = (ColumnDef(1, "id", INT4), ColumnDef(2, "name", VARCHAR, 24))
    options = SequenceOptions(start=4, increment=2, minimum=0, maximum=100, cache=3, cycles=True)
    pair = (ColumnDef(1, "a", INT4), ColumnDef(2, "b", TEXT))
    arguments = (FunctionArgument("x", INT4), FunctionArgument("y", TEXT, default="'q'::text"))
    return [
        Role(16483, "alice", can_login=True),
        EnumType(16433, PUBLIC, "mood", OWNER, 16432, labels),
        DomainType(16440, PUBLIC, "posint", OWNER, 16439, INT4, default="5"),
        Constraint(16441, PUBLIC, "pos", "c", domain=16440, check="(VALUE > 0)"),
        Relation(16442, PUBLIC, "pair", "c", pair, row_type=16444, array_type=16443),
        Relation(
            16471,
            PUBLIC,
            "v",
            "v",
            view_columns,
            definition="SELECT id, name FROM parent WHERE price > 1",
            row_type=16473,
            array_type=16472,
            rule_oid=16474,
            references=tuple(parent),
        ),
        Relation(
            16475,
            PUBLIC,
            "mv",
            "m",
            (ColumnDef(1, "n", INT8),),
            definition="SELECT count(*) AS n FROM parent",
            row_type=16477,
            array_type=16476,
            rule_oid=16478,
            references=(_column(16445),),
        ),
        Relation(16480, PUBLIC, "s", "S", SEQUENCE_COLUMNS, sequence=options),
        FunctionDef(
            16481,
            PUBLIC,
            "f",
            OWNER,
            "sql",
            arguments,
            INT4,
            "select x",
            volatility="i",
            is_strict=True,
        ),
        FunctionDef(
            16482,
            PUBLIC,
            "p",
            OWNER,
            "sql",
            (FunctionArgument("a", INT4, "b"),),
            2249,
            "select 1",
            kind="p",
        ),
    ]


def sample_changes() -> tuple[Change, ...]:
    """Everything in an order that a session could have made it in."""
    others = _others()
    objects = [*others[:5], *_parent(), *_child(), *others[5:]]
    comments = (
        SetComment(Comment(ObjectClass.RELATION, 16445, 0, "the parent")),
        SetComment(Comment(ObjectClass.RELATION, 16445, 2, "a name")),
    )
    return (*(Create(item) for item in objects), *comments)


def sample_snapshot() -> CatalogSnapshot:
    return CatalogSnapshot.empty().apply((*initial_changes(), *sample_changes()))
