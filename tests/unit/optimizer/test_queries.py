"""Queries and data-modifying statements: shapes, errors, the cache of trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpudb import errors
from gpudb.optimizer.parser import TreeCache, parse_query, position
from gpudb.optimizer.statements.nodes import Slice

Show = Callable[[Any], str]


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("select", "(select)"),
        ("select from t", "(select from_=[(table t)])"),
        ("select 1 a, b as c, *", "(select [(alias 1 alias=a) (alias b alias=c) *])"),
        ("select all a", "(select [a])"),
        ("select distinct on (a) b", "(select distinct=(distinct on=[a]) [b])"),
        ("select distinct a", "(select distinct=(distinct) [a])"),
        ("table s.t", "(select [*] from_=[(table t db=s)])"),
        ("values (1, default)", "(values [(tuple [1 (var default)])])"),
        (
            "select 1 union select 2 intersect all select 3",
            "(union (select [1]) (intersect (select [2]) (select [3])) distinct)",
        ),
        (
            "select 1 union all select 2 except select 3 order by 1 limit 5 offset 2",
            "(except (union (select [1]) (select [2])) (select [3]) distinct "
            "order=[(ordered 1)] limit=5 offset=2)",
        ),
        (
            "(select 1 limit 1) union (select 2)",
            "(union (select [1] limit=1) (select [2]) distinct)",
        ),
        ("select 1 limit all", "(select [1])"),
        ("select 1 offset 2 rows limit 3", "(select [1] offset=2 limit=3)"),
        ("select 1 fetch first row only", "(select [1] limit=1)"),
        (
            "select a order by a using < fetch next 3 rows with ties",
            "(select [a] order=[(ordered a operator=<)] limit=3 limit_with_ties)",
        ),
        (
            "select 1 for no key update of t skip locked",
            "(select [1] locks=[(lock update strength=no key update tables=[t] wait=skip)])",
        ),
        (
            "select 1 group by a, (), rollup(b), grouping sets ((a, b), cube(c))",
            "(select [1] group=[a (tuple) (rollup [b]) (groupingsets [(tuple [a b]) (cube [c])])])",
        ),
        (
            "select 1 where a having b window w as (order by c)",
            "(select [1] where=a having=b windows=[(window order=[(ordered c)] alias=w)])",
        ),
        (
            "with recursive a(x) as not materialized (select 1), b as (select 2) select 3",
            "(select [3] with_=(with [(cte (select [1]) alias=(tablealias a columns=[x])) "
            "(cte (select [2]) alias=(tablealias b))] recursive))",
        ),
        (
            "with d as (delete from t returning *) select 1",
            "(select [1] with_=(with [(cte (delete (table t) returning=[*]) "
            "alias=(tablealias d))]))",
        ),
    ],
)
def test_queries(show: Show, text: str, tree: str) -> None:
    assert show(parse_query(text)) == tree


@pytest.mark.parametrize(
    ("item", "tree"),
    [
        ("t", "(table t)"),
        ("only (t) as x(a, b)", "(table t only alias=(tablealias x columns=[a b]))"),
        ("a.b.c d", "(table c db=b catalog=a alias=(tablealias d))"),
        (
            "t tablesample system (10) repeatable (1)",
            "(table t sample=(tablesample method=system [10] seed=1))",
        ),
        ("(select 1) x", "(subquery (select [1]) alias=(tablealias x))"),
        ("lateral (select 1) x", "(subquery (select [1]) lateral alias=(tablealias x))"),
        ("f(1)", "(tablefromrows [(anonymous f [1])])"),
        (
            "lateral f(1) with ordinality as x(a, b)",
            "(tablefromrows [(anonymous f [1])] lateral ordinality "
            "alias=(tablealias x columns=[a b]))",
        ),
        (
            "f(1) as x(a int, b text)",
            "(tablefromrows [(anonymous f [1])] alias=(tablealias x "
            "definitions=[(columndef a kind=int4) (columndef b kind=text)]))",
        ),
        (
            "rows from (f(1), g(2) as (a int)) x",
            "(tablefromrows [(anonymous f [1]) (anonymous g [2] "
            "definitions=[(columndef a kind=int4)])] rows_from alias=(tablealias x))",
        ),
        ("f() over", "(tablefromrows [(anonymous f)] alias=(tablealias over))"),
        ("current_date", "(tablefromrows [(var current_date)])"),
        ("a join b on c", "(join left=(table a) (table b) kind=inner on=c)"),
        (
            "a left outer join b using (x, y) as j",
            "(join left=(table a) (table b) kind=left using=[x y] using_alias=j)",
        ),
        ("a natural full join b", "(join left=(table a) (table b) kind=full natural)"),
        (
            "a cross join b right join c on d",
            "(join left=(join left=(table a) (table b) kind=cross) (table c) kind=right on=d)",
        ),
        (
            "a join b join c on x on y",
            "(join left=(table a) (join left=(table b) (table c) kind=inner on=x) kind=inner on=y)",
        ),
        (
            "(a join b on true) as x",
            "(join left=(table a) (table b) kind=inner on=(boolean this=True) "
            "alias=(tablealias x))",
        ),
        (
            "((select 1) union (select 2)) x",
            "(subquery (union (select [1]) (select [2]) distinct) alias=(tablealias x))",
        ),
    ],
)
def test_from_items(show: Show, item: str, tree: str) -> None:
    shown = show(parse_query(f"select from {item}").args["from_"][0])
    assert shown == tree.replace("(boolean this=True)", "(boolean True)")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("insert into t default values", "(insert (table t))"),
        (
            "insert into t as x (a, b[1], c.d) overriding system value values (1, 2, 3)",
            "(insert (table t alias=(tablealias x)) columns=[a (bracket b [1]) "
            "(dot c (identifier d))] overriding=system (values [(tuple [1 2 3])]))",
        ),
        ("insert into t (select 1)", "(insert (table t) (select [1]))"),
        (
            "insert into t select 1 on conflict do nothing returning a as b",
            "(insert (table t) (select [1]) conflict=(onconflict action=nothing) "
            "returning=[(alias a alias=b)])",
        ),
        (
            "insert into t values (1) on conflict (a, lower(b)) where c "
            "do update set x = excluded.x where d",
            "(insert (table t) (values [(tuple [1])]) conflict=(onconflict "
            "conflict_keys=[(ordered a) (ordered (anonymous lower [b]))] index_predicate=c "
            "action=update [(eq x excluded.x)] where=d))",
        ),
        (
            "update only t x set a = 1, (b, c) = (select 2, 3) from s where d returning *",
            "(update (table t only alias=(tablealias x)) [(eq a 1) "
            "(eq (tuple [b c]) (subquery (select [2 3])))] from_=[(table s)] where=d "
            "returning=[*])",
        ),
        (
            "delete from t as x using s where a",
            "(delete (table t alias=(tablealias x)) using=[(table s)] where=a)",
        ),
        (
            "merge into t using s on a when matched and b then update set c = 1 "
            "when matched then delete when not matched then insert (d) values (2) "
            "when not matched then do nothing",
            "(merge (table t) using=(table s) on=a whens=[(when matched condition=b "
            "then=(update [(eq c 1)])) (when matched then=(var delete)) "
            "(when then=(insert columns=[d] (values [(tuple [2])]))) "
            "(when then=(var nothing))])",
        ),
    ],
)
def test_changes(show: Show, text: str, tree: str) -> None:
    assert show(parse_query(text)) == tree


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("select 1 from", "syntax error at end of input", 14),
        ("select distinct from t", 'syntax error at or near "from"', 17),
        ("select 1 where", "syntax error at end of input", 15),
        ("select a from t group", "syntax error at end of input", 22),
        ("select 1 2", 'syntax error at or near "2"', 10),
        ("select 1 from (select 2)", "subquery in FROM must have an alias", 15),
        ("select 1 from (values (2))", "VALUES in FROM must have an alias", 15),
        ("(select 1 order by 1) order by 1", "multiple ORDER BY clauses not allowed", 32),
        ("(select 1 limit 1) limit 1", "multiple LIMIT clauses not allowed", 20),
        ("select 1 limit 1, 2", "LIMIT #,# syntax is not supported", 10),
        ("with a as (select 1) (with b as (select 2) select 3)", None, 0),
        ("select * from rank() over (order by 1)", 'syntax error at or near "order"', 28),
        ("select 1 from a join b", "syntax error at end of input", 23),
        ("select 1 from (a)", 'syntax error at or near ")"', 17),
        ("insert into t (a) default values", 'syntax error at or near "default"', 19),
        ("update t set", "syntax error at end of input", 13),
        ("delete t", 'syntax error at or near "t"', 8),
        ("select 1 into t", "SELECT ... INTO is not allowed here", 15),
        ("select sum(a) over (rows unbounded following)", None, 26),
    ],
)
def test_errors(text: str, message: str | None, at: int) -> None:
    with pytest.raises(errors.SqlError) as caught:
        parse_query(text)
    if message is not None:
        assert (caught.value.message, caught.value.position) == (message, at)


@pytest.mark.parametrize(
    "text",
    [
        "delete from t where current of c",
        "with recursive a as (select 1) cycle x set y using z select 1",
        "select * from xmltable('x' passing y columns z int)",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(errors.FeatureNotSupported):
        parse_query(text)


def test_positions_count_from_the_whole_message() -> None:
    tree = parse_query(Slice("select a", 10))
    assert position(tree.args["expressions"][0]) == 18
    with pytest.raises(errors.SyntaxError) as caught:
        parse_query(Slice("select from from", 10))
    assert caught.value.position == 23


def test_trees_are_cached_and_bounded() -> None:
    assert parse_query("select 42 as kept") is parse_query("select 42 as kept")
    cache = TreeCache(size=2)
    tree = parse_query("select 1")
    for text in ("a", "b", "c"):
        cache.put((text, 0, "query"), tree)
    assert len(cache) == 2
    assert cache.get(("a", 0, "query")) is None
    assert cache.get(("c", 0, "query")) is tree
