"""Utility statements: every kind as the dataclass it becomes."""

from __future__ import annotations

import pytest

from gpudb import errors
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
    QualifiedName,
    QueryStatement,
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
    Unsupported,
    Vacuum,
)


def parse(text: str) -> Statement:
    (statement,) = statements.parse(text)
    return statement


def name(*parts: str) -> QualifiedName:
    return QualifiedName(parts)


def query(text: str, kind: str = "select") -> QueryStatement:
    return QueryStatement(Slice(text), kind)


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "create or replace temp view v (a) with (security_barrier) as select 1 "
            "with local check option",
            nodes.CreateView(
                name("v"),
                query("select 1"),
                ("a",),
                True,
                True,
                options=(Option("security_barrier"),),
                check_option="local",
            ),
        ),
        (
            "create recursive view v (a) as select 1",
            nodes.CreateView(
                name("v"),
                query('WITH RECURSIVE "v" ("a") AS (select 1\n) SELECT "a" FROM "v"'),
                ("a",),
                is_recursive=True,
            ),
        ),
        (
            "refresh materialized view concurrently m with no data",
            nodes.RefreshMaterializedView(name("m"), True, False),
        ),
        (
            "create unique index concurrently if not exists i on t using hash "
            "(a desc nulls last, lower(b) text_ops, (c + 1)) include (d) where e",
            nodes.CreateIndex(
                "i",
                Relation(name("t")),
                (
                    nodes.IndexElement("a", is_descending=True, nulls_first=False),
                    nodes.IndexElement(
                        expression=Slice("lower(b)"), operator_class=name("text_ops")
                    ),
                    nodes.IndexElement(expression=Slice("c + 1")),
                ),
                "hash",
                True,
                True,
                True,
                ("d",),
                where=Slice("e"),
            ),
        ),
        (
            "create schema if not exists s authorization r",
            nodes.CreateSchema("s", "r", True),
        ),
        (
            "create schema s create table t () grant select on t to public",
            nodes.CreateSchema(
                "s",
                elements=(
                    nodes.CreateTable(name("t")),
                    nodes.Grant(
                        (nodes.Privilege("select"),),
                        "table",
                        (nodes.ObjectName(name("t")),),
                        ("public",),
                    ),
                ),
            ),
        ),
        (
            "create database d with owner = o encoding 'UTF8' connection limit -1",
            nodes.CreateDatabase(
                "d",
                (
                    Option("owner", "o"),
                    Option("encoding", "UTF8"),
                    Option("connection limit", "-1"),
                ),
            ),
        ),
        (
            "create sequence s as int increment by 2 no maxvalue start 5 cycle owned by t.a",
            nodes.CreateSequence(
                name("s"),
                (
                    Option("as", "int4"),
                    Option("increment", "2"),
                    Option("no maxvalue"),
                    Option("start", "5"),
                    Option("cycle"),
                    Option("owned by", "t.a"),
                ),
            ),
        ),
        (
            "alter sequence if exists s restart",
            nodes.AlterSequence(name("s"), (Option("restart"),), True),
        ),
        ("create type e as enum ('a', 'b')", nodes.CreateType(name("e"), "enum", ("a", "b"))),
        (
            'create type c as (x int, y text collate "C")',
            nodes.CreateType(
                name("c"),
                "composite",
                attributes=(
                    nodes.ColumnDefinition("x", TypeName("int4", "pg_catalog")),
                    nodes.ColumnDefinition("y", TypeName("text"), collation=name("C")),
                ),
            ),
        ),
        (
            "create type r as range (subtype = float8)",
            nodes.CreateType(name("r"), "range", options=(Option("subtype", "float8"),)),
        ),
        (
            "create domain d as int not null check (value > 0)",
            nodes.CreateDomain(
                name("d"),
                TypeName("int4", "pg_catalog"),
                (
                    nodes.Constraint("not null"),
                    nodes.Constraint("check", expression=Slice("value > 0")),
                ),
            ),
        ),
        (
            "create or replace function s.f(a int, out b text, variadic c int[] default '{}') "
            "returns setof text language sql immutable cost 5 set x = 1 as $$ select 1 $$",
            nodes.CreateFunction(
                name("s", "f"),
                (
                    nodes.Parameter("a", TypeName("int4", "pg_catalog")),
                    nodes.Parameter("b", TypeName("text"), "out"),
                    nodes.Parameter(
                        "c",
                        TypeName("int4", "pg_catalog", bounds=(-1,)),
                        "variadic",
                        Slice("'{}'"),
                    ),
                ),
                TypeName("text", is_set=True),
                "sql",
                " select 1 ",
                or_replace=True,
                options=(Option("immutable"), Option("cost", "5")),
                settings=(SetVariable("x", ("1",)),),
            ),
        ),
        (
            "create procedure p() begin atomic select 1; select 2; end",
            nodes.CreateFunction(
                name("p"),
                (),
                None,
                "sql",
                sql_body=Slice("begin atomic select 1; select 2; end"),
                is_procedure=True,
            ),
        ),
        (
            "create extension if not exists x with schema s cascade",
            nodes.CreateExtension("x", True, (Option("schema", "s"), Option("cascade"))),
        ),
        (
            "create user u with login nocreatedb password 'x' in role a, b",
            nodes.CreateRole(
                "user",
                "u",
                (
                    Option("login"),
                    Option("nocreatedb"),
                    Option("password", "x"),
                    Option("in role", ("a", "b")),
                ),
            ),
        ),
        (
            "alter role r in database d set x to 1",
            nodes.AlterRole("r", setting=SetVariable("x", ("1",)), in_database="d"),
        ),
        ("alter user u password null", nodes.AlterRole("u", (Option("password"),))),
        (
            "alter system set a.b = 'c'",
            nodes.AlterSystem(SetVariable("a.b", ("c",))),
        ),
        (
            "alter database d reset all",
            nodes.AlterDatabase("d", setting=ResetVariable(None)),
        ),
        (
            "grant select (a), update on s.t, u to r, public with grant option",
            nodes.Grant(
                (nodes.Privilege("select", ("a",)), nodes.Privilege("update")),
                "table",
                (nodes.ObjectName(name("s", "t")), nodes.ObjectName(name("u"))),
                ("r", "public"),
                grant_option=True,
            ),
        ),
        (
            "revoke grant option for all privileges on all tables in schema s from r cascade",
            nodes.Grant(
                (nodes.Privilege("all"),),
                "table",
                (nodes.ObjectName(name("s")),),
                ("r",),
                True,
                True,
                True,
                cascade=True,
            ),
        ),
        (
            "grant usage on model m to r",
            nodes.Grant(
                (nodes.Privilege("usage"),), "model", (nodes.ObjectName(name("m")),), ("r",)
            ),
        ),
        (
            "grant a, b to c with admin option",
            nodes.GrantRole(("a", "b"), ("c",), admin_option=True),
        ),
        (
            "alter default privileges for role r in schema s grant select on tables to public",
            nodes.AlterDefaultPrivileges(
                ("r",),
                ("s",),
                nodes.Grant((nodes.Privilege("select"),), "table", (), ("public",)),
            ),
        ),
        ("drop owned by a, current_user cascade", nodes.DropOwned(("a", "current_user"), True)),
        ("reassign owned by a to b", nodes.ReassignOwned(("a",), "b")),
        (
            "comment on column s.t.c is 'x'",
            nodes.Comment("column", nodes.ObjectName(name("s", "t", "c")), "x"),
        ),
        (
            "comment on constraint k on t is null",
            nodes.Comment("constraint", nodes.ObjectName(name("k"), on=name("t")), None),
        ),
        (
            "drop table if exists a, b.c cascade",
            nodes.Drop(
                "table",
                (nodes.ObjectName(name("a")), nodes.ObjectName(name("b", "c"))),
                True,
                True,
            ),
        ),
        (
            "drop function f(int, text), g",
            nodes.Drop(
                "function",
                (
                    nodes.ObjectName(name("f"), Slice("(int, text)")),
                    nodes.ObjectName(name("g")),
                ),
            ),
        ),
        (
            "drop trigger x on t restrict",
            nodes.Drop("trigger", (nodes.ObjectName(name("x"), on=name("t")),)),
        ),
        ("drop user u", nodes.Drop("role", (nodes.ObjectName(name("u")),))),
        (
            "drop model if exists m version 3",
            nodes.Drop("model", (nodes.ObjectName(name("m")),), True, version=3),
        ),
        (
            "alter table if exists s.t rename column a to b",
            nodes.Rename(
                "table", nodes.ObjectName(name("s", "t")), "b", "column", "a", if_exists=True
            ),
        ),
        (
            "alter view v rename to w",
            nodes.Rename("view", nodes.ObjectName(name("v")), "w"),
        ),
        (
            "alter type e rename value 'a' to 'b'",
            nodes.Rename("type", nodes.ObjectName(name("e")), "b", "value", "a"),
        ),
        (
            "alter table t owner to current_user",
            nodes.AlterOwner("table", nodes.ObjectName(name("t")), "current_user", True),
        ),
        (
            "alter function f(int) set schema s",
            nodes.AlterSchema("function", nodes.ObjectName(name("f"), Slice("(int)")), "s"),
        ),
    ],
)
def test_definitions(text: str, expected: Statement) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (
            "add column if not exists a int default 1, drop column b cascade",
            ["add column", "drop column"],
        ),
        ("add constraint k check (a > 0) not valid", ["add constraint"]),
        ("add primary key (a)", ["add constraint"]),
        ("drop constraint if exists k", ["drop constraint"]),
        ("alter a type text using b::text, alter c set data type int", ["alter column type"] * 2),
        ("alter a set default 1, alter a drop default", ["set default", "drop default"]),
        ("alter a set not null, alter b drop not null", ["set not null", "drop not null"]),
        ("alter a set statistics 5, alter a set storage plain", ["set statistics", "set storage"]),
        ("alter a set (n_distinct = 5)", ["set column options"]),
        ("alter a add generated always as identity", ["add identity"]),
        ("alter a set generated by default restart 5", ["set identity"]),
        ("alter a drop identity if exists", ["drop identity"]),
        ("validate constraint k", ["validate constraint"]),
        ("owner to r, set tablespace x", ["owner", "set tablespace"]),
        ("set (fillfactor = 50), reset (fillfactor)", ["set options", "reset options"]),
        ("set logged, set without oids", ["set logged", "set without oids"]),
        ("inherit p, no inherit q", ["inherit", "no inherit"]),
        ("enable row level security", ["enable row level security"]),
        (
            "disable trigger all, enable always trigger x",
            ["disable trigger", "enable always trigger"],
        ),
        ("attach partition p for values in (1)", ["attach partition"]),
        ("detach partition p concurrently", ["detach partition"]),
        ("replica identity using index i", ["replica identity"]),
        ("cluster on i", ["cluster on"]),
    ],
)
def test_alter_table(text: str, kinds: list[str]) -> None:
    statement = parse(f"alter table only t {text}")
    assert isinstance(statement, nodes.AlterTable)
    assert [action.kind for action in statement.actions] == kinds
    assert statement.table == Relation(name("t"), True)


def test_alter_actions_hold_their_parts() -> None:
    statement = parse("alter table t alter column a type numeric(5) using a + 1")
    assert isinstance(statement, nodes.AlterTable)
    (action,) = statement.actions
    assert action.name == "a"
    assert action.type == TypeName("numeric", "pg_catalog", ("5",))
    assert action.expression == Slice("a + 1")
    statement = parse("alter type e add value if not exists 'x' before 'y'")
    assert isinstance(statement, nodes.AlterTable)
    (action,) = statement.actions
    assert (action.value, action.position_word, action.name) == ("x", "before", "y")
    assert action.if_not_exists


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("create trigger x before insert on t execute function f()", "CREATE TRIGGER"),
        ("create aggregate a (int) (sfunc = f, stype = int)", "CREATE AGGREGATE"),
        ("create operator + (leftarg = int, function = f)", "CREATE OPERATOR"),
        ("create or replace rule r as on insert to t do nothing", "CREATE RULE"),
        ("create policy p on t", "CREATE POLICY"),
        ("create foreign data wrapper w", "CREATE FOREIGN DATA WRAPPER"),
        ("create user mapping for u server s", "CREATE USER MAPPING"),
        ("alter policy p on t to r", "ALTER POLICY"),
        ("import foreign schema s from server x into y", "IMPORT FOREIGN SCHEMA"),
    ],
)
def test_unsupported_statements_are_named(text: str, what: str) -> None:
    assert parse(text) == Unsupported(what)


def test_train_model() -> None:
    statement = parse(
        "TRAIN MODEL OR NEW VERSION s.m AS gpt2 (layers 48, hidden 1600) PREDICT y, z "
        "TRANSFORM (a + 1 AS b, c AS d) ON (SELECT * FROM t WHERE x = $1) "
        "SPLIT (method hash, fraction 0.2, seed 7) "
        "USING tiles (tile auto, gpu_memory '100GB') "
        "WITH (steps $2, lr 1e-3, early_stop (loss, 3)) "
        "TUNE (lr => RANGE(0.1, 1, log), batch => CHOICE(8, 16)) TRIALS 5 OPTIMIZE loss ASYNC"
    )
    option = nodes.ModelOption
    assert statement == nodes.TrainModel(
        name("s", "m"),
        query("SELECT * FROM t WHERE x = $1"),
        "gpt2",
        (option("layers", "48"), option("hidden", "1600")),
        predict=("y", "z"),
        transform=(nodes.ModelFeature(Slice("a + 1"), "b"), nodes.ModelFeature(Slice("c"), "d")),
        split=(option("method", "hash"), option("fraction", "0.2"), option("seed", "7")),
        engine_options=(option("tile", "auto"), option("gpu_memory", "100GB")),
        options=(
            option("steps", "$2"),
            option("lr", "1e-3"),
            option("early_stop", ("loss", "3")),
        ),
        tune=(
            nodes.TuneParameter("lr", "range", ("0.1", "1", "log")),
            nodes.TuneParameter("batch", "choice", ("8", "16")),
        ),
        trials=5,
        optimize="loss",
        mode="async",
        or_new_version=True,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "train model m from model o version 2 on t using torch",
            nodes.TrainModel(
                name("m"),
                query("TABLE t", "table"),
                from_model=name("o"),
                from_version=2,
                engine="torch",
            ),
        ),
        (
            "evaluate model m on (select 1) with (metrics (auc, f1))",
            nodes.EvaluateModel(
                name("m"),
                query("select 1"),
                options=(nodes.ModelOption("metrics", ("auc", "f1")),),
            ),
        ),
        ("verify model m version 2 steps 5", nodes.VerifyModel(name("m"), 2, 5)),
        ("cancel training 'r1'", nodes.ControlTraining("cancel", "r1")),
        ("alter model m set default version 3", nodes.AlterModel(name("m"), "default version", 3)),
        (
            "alter model m set alias prod for version 3",
            nodes.AlterModel(name("m"), "alias", 3, "prod"),
        ),
        ("alter model m rename to n", nodes.Rename("model", nodes.ObjectName(name("m")), "n")),
        (
            "copy model m version 1 to 'x' (format safetensors)",
            nodes.CopyModel(name("m"), False, 1, "x", (Option("format", "safetensors"),)),
        ),
        ("copy model from stdin", Copy(name("model"), None, (), True)),
        ("explain (analyze) train model m from file 'f' on t", None),
        ("select train, model from model train", None),
    ],
)
def test_model_statements(text: str, expected: Statement | None) -> None:
    statement = parse(text)
    assert expected is None or statement == expected


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("create", "syntax error at end of input", 7),
        ("create foo", 'syntax error at or near "foo"', 8),
        ("foo", 'syntax error at or near "foo"', 1),
        ("begin foo", 'syntax error at or near "foo"', 7),
        ("set a", "syntax error at end of input", 6),
        ("fetch foo bar", 'syntax error at or near "bar"', 11),
        ("create table t (a int not nul)", 'syntax error at or near "nul"', 27),
        ("create table t;", 'syntax error at or near ";"', 15),
        ("drop table", "syntax error at end of input", 11),
        ("drop operator === ()", 'syntax error at or near ")"', 20),
        ("drop aggregate a", "syntax error at end of input", 17),
        ("select 1; select from where; select 2", 'syntax error at or near "where"', 23),
        ("create view v as select 1 +", "syntax error at end of input", 28),
        ("copy t from", "syntax error at end of input", 12),
        ("declare c cursor for insert into t values (1)", 'syntax error at or near "insert"', 22),
        ("create role public", 'role name "public" is reserved', 13),
        ("create role r foo", 'unrecognized role option "foo"', 15),
        ("copy t to stdout where a", "WHERE clause not allowed with COPY TO", 18),
        ("select 1 2 'abc", 'syntax error at or near "2"', 10),
        ("select 1 from t where 'abc", "unterminated quoted string at or near \"'abc\"", 23),
        ("select 1; select 'abc", "unterminated quoted string at or near \"'abc\"", 18),
        ("begin; commit extra", 'syntax error at or near "extra"', 15),
    ],
)
def test_errors(text: str, message: str, at: int) -> None:
    with pytest.raises(errors.SqlError) as caught:
        statements.parse(text)
    assert (caught.value.message, caught.value.position) == (message, at)


def test_nothing_but_comments_is_no_statement() -> None:
    assert statements.parse(" ;; -- ping\n /* x */ ") == ()
    assert len(statements.parse("select 1;;select 2;")) == 2


def test_one_message_many_statements() -> None:
    found = statements.parse("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;")
    assert [statement.tag for statement in found] == [
        "SELECT",
        "CLOSE CURSOR ALL",
        "UNLISTEN",
        "RESET",
    ]


def test_scripts_are_cached() -> None:
    assert statements.parse_script("select 'kept'") is statements.parse_script("select 'kept'")
