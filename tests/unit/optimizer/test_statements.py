"""Utility statements: every kind as the dataclass it becomes (first half: session and data)."""

from __future__ import annotations

import pytest
from statement_texts import name, parse, query

from gpudb.optimizer import statements
from gpudb.optimizer.statements import nodes
from gpudb.optimizer.statements.nodes import (
    Begin,
    CloseCursor,
    Commit,
    Copy,
    Deallocate,
    DeclareCursor,
    Discard,
    Execute,
    Explain,
    Fetch,
    Listen,
    Lock,
    Notify,
    Option,
    Prepare,
    PreparedTransaction,
    Relation,
    ReleaseSavepoint,
    ResetVariable,
    Rollback,
    RollbackToSavepoint,
    Savepoint,
    SetConstraints,
    SetTransaction,
    SetVariable,
    ShowVariable,
    Slice,
    Statement,
    TransactionModes,
    Truncate,
    TypeName,
    Unlisten,
    Vacuum,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BEGIN", Begin()),
        ("begin work read only", Begin(TransactionModes(is_read_only=True))),
        (
            "start transaction isolation level repeatable read, read write not deferrable",
            Begin(TransactionModes("repeatable read", False, False), is_start=True),
        ),
        (
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
            Begin(TransactionModes("serializable", True, True)),
        ),
        ("commit and chain", Commit(chain=True)),
        ("end transaction and no chain", Commit()),
        ("rollback", Rollback()),
        ("abort work", Rollback()),
        ("rollback to savepoint a", RollbackToSavepoint("a")),
        ('rollback to "A"', RollbackToSavepoint("A")),
        ("savepoint x", Savepoint("x")),
        ("release x", ReleaseSavepoint("x")),
        ("release savepoint savepoint", ReleaseSavepoint("savepoint")),
        ("prepare transaction 'g'", PreparedTransaction("PREPARE TRANSACTION", "g")),
        ("commit prepared 'g'", PreparedTransaction("COMMIT PREPARED", "g")),
        ("set transaction read only", SetTransaction(TransactionModes(is_read_only=True))),
        (
            "set session characteristics as transaction isolation level read committed",
            SetTransaction(TransactionModes("read committed"), is_session=True),
        ),
        ("set constraints all deferred", SetConstraints(None, True)),
        ("set a.b = 1", SetVariable("a.b", ("1",))),
        ("set local x to 'y', z, -1.5", SetVariable("x", ("y", "z", "-1.5"), is_local=True)),
        ("set session x to on", SetVariable("x", ("on",))),
        ("set x to default", SetVariable("x", None)),
        ("set time zone 'UTC'", SetVariable("timezone", ("UTC",))),
        ("set time zone -3", SetVariable("timezone", ("-3",))),
        ("set time zone local", SetVariable("timezone", None)),
        (
            "SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE",
            SetVariable("timezone", ("INTERVAL '+00:00' HOUR TO MINUTE",), is_interval=True),
        ),
        ("set timezone = utc", SetVariable("timezone", ("utc",))),
        ("set names 'utf8'", SetVariable("client_encoding", ("utf8",))),
        ("set role none", SetVariable("role", ("none",))),
        (
            "set session authorization default",
            SetVariable("session_authorization", None),
        ),
        ("set schema 'a'", SetVariable("search_path", ("a",))),
        ("reset all", ResetVariable(None)),
        ("reset time zone", ResetVariable("timezone")),
        ("show transaction isolation level", ShowVariable("transaction_isolation")),
        ("show all", ShowVariable(None)),
        ("show a.b", ShowVariable("a.b")),
        ("discard temporary", Discard("temp")),
        ("deallocate all", Deallocate(None)),
        ("deallocate prepare x", Deallocate("x")),
        (
            "prepare p (int, text[]) as select $1",
            Prepare(
                "p",
                (TypeName("int4", "pg_catalog"), TypeName("text", bounds=(-1,))),
                query("select $1"),
            ),
        ),
        ("execute p(1, f(a, b))", Execute("p", (Slice("1"), Slice("f(a, b)")))),
        ("execute p", Execute("p", ())),
        (
            'declare "c" binary insensitive no scroll cursor with hold for select 1',
            DeclareCursor("c", query("select 1"), True, False, True, True),
        ),
        ("declare c cursor for values (1)", DeclareCursor("c", query("values (1)", "values"))),
        ("fetch c", Fetch("c")),
        ('fetch 50 in "c"', Fetch("c", count=50)),
        ("fetch next from c", Fetch("c")),
        ("fetch prior c", Fetch("c", "backward")),
        ("fetch first in c", Fetch("c", "absolute")),
        ("fetch last in c", Fetch("c", "absolute", -1)),
        ("fetch absolute -2 from c", Fetch("c", "absolute", -2)),
        ("fetch relative 0 c", Fetch("c", "relative", 0)),
        ("fetch all c", Fetch("c", count=None)),
        ("fetch backward all from c", Fetch("c", "backward", None)),
        ("move forward 3 in c", Fetch("c", count=3, is_move=True)),
        ("fetch next", Fetch("next")),
        ("close all", CloseCursor(None)),
        ("close c", CloseCursor("c")),
        ("listen a", Listen("a")),
        ("unlisten *", Unlisten(None)),
        ("notify a, 'b'", Notify("a", "b")),
        (
            "lock table only a, b.c in share row exclusive mode nowait",
            Lock(
                (Relation(name("a"), True), Relation(name("b", "c"))),
                "share row exclusive",
                True,
            ),
        ),
        (
            "vacuum full verbose analyze t (a, b)",
            Vacuum(
                (Option("full"), Option("verbose"), Option("analyze")),
                (Relation(name("t"), columns=("a", "b")),),
            ),
        ),
        (
            "vacuum (analyze, parallel 2, index_cleanup auto) t",
            Vacuum(
                (Option("analyze"), Option("parallel", "2"), Option("index_cleanup", "auto")),
                (Relation(name("t")),),
            ),
        ),
        ("analyze", Vacuum(is_analyze=True)),
        (
            "truncate a, only b restart identity cascade",
            Truncate((Relation(name("a")), Relation(name("b"), True)), True, True),
        ),
        ("checkpoint", nodes.Checkpoint()),
        ("load 'x'", nodes.Load("x")),
        ("do $$ x $$ language sql", nodes.Do("sql", " x ")),
        ("call s.p(1, 'a')", nodes.Call(name("s", "p"), Slice("s.p(1, 'a')"))),
        (
            "reindex table concurrently t",
            nodes.Reindex("table", name("t"), (Option("concurrently"),)),
        ),
        ("cluster t using i", nodes.Cluster(name("t"), "i")),
    ],
)
def test_session_statements(text: str, expected: Statement) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "kind", "tag"),
    [
        ("select 1", "select", "SELECT"),
        ("(select 1)", "select", "SELECT"),
        ("values (1)", "values", "SELECT"),
        ("table t", "select", "SELECT"),
        ("with a as (select 1) insert into t select 2", "insert", "INSERT"),
        ("update t set a = 1", "update", "UPDATE"),
        ("delete from t", "delete", "DELETE"),
        ("merge into t using s on a when matched then delete", "merge", "MERGE"),
    ],
)
def test_query_statements(text: str, kind: str, tag: str) -> None:
    statement = parse(text)
    assert statement == query(text, kind)
    assert statement.tag == tag


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "copy s.t (a, b) from stdin",
            Copy(name("s", "t"), None, ("a", "b"), True),
        ),
        (
            "COPY (select 1) TO STDOUT (FORMAT binary)",
            Copy(None, query("select 1"), (), False, options=(Option("format", "binary"),)),
        ),
        (
            "copy (select 1) to stdout with csv header",
            Copy(
                None,
                query("select 1"),
                (),
                False,
                options=(Option("format", "csv"), Option("header", "true")),
            ),
        ),
        (
            "copy t from stdin with delimiter as '|' null as '' force not null a, b",
            Copy(
                name("t"),
                None,
                (),
                True,
                options=(
                    Option("delimiter", "|"),
                    Option("null", ""),
                    Option("force_not_null", ("a", "b")),
                ),
            ),
        ),
        (
            "copy binary t to '/tmp/x'",
            Copy(name("t"), None, (), False, "/tmp/x", options=(Option("format", "binary"),)),
        ),
        (
            "copy t from program 'cat' with (format 'csv', header, force_quote *, "
            "force_null (a, b)) where a > 1",
            Copy(
                name("t"),
                None,
                (),
                True,
                "cat",
                True,
                (
                    Option("format", "csv"),
                    Option("header"),
                    Option("force_quote", "*"),
                    Option("force_null", ("a", "b")),
                ),
                Slice("a > 1"),
            ),
        ),
        (
            "copy pgbench_accounts from stdin with (freeze on)",
            Copy(name("pgbench_accounts"), None, (), True, options=(Option("freeze", "on"),)),
        ),
        (
            "explain analyze verbose select 1",
            Explain((Option("analyze"), Option("verbose")), query("select 1")),
        ),
        (
            "explain (format json, costs off, analyze) select 1",
            Explain(
                (Option("format", "json"), Option("costs", "off"), Option("analyze")),
                query("select 1"),
            ),
        ),
        ("explain (select 1)", Explain((), query("(select 1)"))),
        ("explain execute p", Explain((), Execute("p", ()))),
    ],
)
def test_copy_and_explain(text: str, expected: Statement) -> None:
    assert parse(text) == expected


def test_create_table() -> None:
    statement = parse(
        "create unlogged table if not exists s.t (a int primary key, b numeric(10,2) not null "
        'default 1 + 2 check (b > 0), c text collate "C" constraint u unique, '
        "d int generated always as (a * 2) stored, e int generated by default as identity "
        "(start 5), f int references o (x) on delete cascade deferrable initially deferred, "
        "like l including all excluding indexes, constraint k primary key (a, b) include (c), "
        "foreign key (a) references o match full, check (a <> b) no inherit) "
        "with (fillfactor = 70, toast.x = on) tablespace ts"
    )
    assert isinstance(statement, nodes.CreateTable)
    assert (statement.persistence, statement.if_not_exists) == ("unlogged", True)
    assert statement.options == (Option("fillfactor", "70"), Option("toast.x", "on"))
    assert statement.tablespace == "ts"
    columns = [e for e in statement.elements if isinstance(e, nodes.ColumnDefinition)]
    assert [column.name for column in columns] == list("abcdef")
    assert columns[1].type == TypeName("numeric", "pg_catalog", ("10", "2"))
    assert [c.kind for c in columns[1].constraints] == ["not null", "default", "check"]
    assert columns[1].constraints[1].expression == Slice("1 + 2")
    assert columns[1].constraints[2].expression == Slice("b > 0")
    assert columns[2].collation == name("C")
    assert columns[2].constraints[0].name == "u"
    assert columns[3].constraints[0].expression == Slice("a * 2")
    identity = columns[4].constraints[0]
    assert (identity.identity, identity.options) == ("by default", (Option("start", "5"),))
    foreign = columns[5].constraints[0]
    assert foreign.references == nodes.References(name("o"), ("x",), on_delete="cascade")
    assert (foreign.deferrable, foreign.initially_deferred) == (True, True)
    like = statement.elements[6]
    assert isinstance(like, nodes.LikeClause)
    assert "defaults" in like.including
    assert "indexes" not in like.including
    key, reference, check = statement.elements[7:]
    assert isinstance(key, nodes.Constraint)
    assert (key.name, key.columns, key.include) == ("k", ("a", "b"), ("c",))
    assert isinstance(reference, nodes.Constraint)
    assert reference.references == nodes.References(name("o"), match="full")
    assert isinstance(check, nodes.Constraint)
    assert check.no_inherit


def test_slices_say_where_they_stand() -> None:
    text = "select 1; create table t (a int default now(), b int)"
    _, parsed = statements.parse_script(text)
    assert parsed.source == Slice("create table t (a int default now(), b int)")
    assert parsed.source.offset == 10
    assert isinstance(parsed.statement, nodes.CreateTable)
    column = parsed.statement.elements[0]
    assert isinstance(column, nodes.ColumnDefinition)
    default = column.constraints[0].expression
    assert default is not None
    assert text[default.offset : default.offset + 5] == "now()"
    assert column.position == text.index("a int") + 1


def test_create_table_as() -> None:
    assert parse("create temp table t (a) on commit drop as select 1 with no data") == (
        nodes.CreateTableAs(
            name("t"), query("select 1"), ("a",), "temporary", on_commit="drop", with_data=False
        )
    )
    assert parse("create table t as execute p(1)") == nodes.CreateTableAs(
        name("t"), Execute("p", (Slice("1"),))
    )
    assert parse("create materialized view if not exists m as select 1") == nodes.CreateTableAs(
        name("m"), query("select 1"), if_not_exists=True, is_materialized_view=True
    )
    into = parse("select a into temp table s.t from u")
    assert into == nodes.CreateTableAs(
        name("s", "t"),
        query("select a " + " " * len("into temp table s.t") + " from u"),
        persistence="temporary",
        is_select_into=True,
    )
