"""Utility statements: every kind as the dataclass it becomes (second half)."""

from __future__ import annotations

import pytest
from statement_texts import name, parse, query

from gpudb import errors
from gpudb.optimizer import statements
from gpudb.optimizer.statements import nodes
from gpudb.optimizer.statements.nodes import (
    Copy,
    Option,
    Relation,
    ResetVariable,
    SetVariable,
    Slice,
    Statement,
    TypeName,
    Unsupported,
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
