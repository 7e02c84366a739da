"""Expressions: precedence, shapes, names, positions, as PostgreSQL 15 answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpudb import errors
from gpudb.optimizer.parser import (
    function_name,
    output_name,
    parse_expression,
    parse_expressions,
    parse_query,
    parse_type,
    position,
    source_text,
    start_position,
)

Show = Callable[[Any], str]


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1 + 2 * 3", "(+ 1 (* 2 3))"),
        ("1 - 2 - 3", "(- (- 1 2) 3)"),
        ("2 ^ 3 ^ 4", "(^ (^ 2 3) 4)"),
        ("- a ^ 2", "(^ (- a) 2)"),
        ("-2 ^ 2", "(^ -2 2)"),
        ("- a::int", "(- (cast a to=int4))"),
        ("a || b + c", "(|| a (+ b c))"),
        ("a || b || c", "(|| (|| a b) c)"),
        ("@ a + b", "(@ (+ a b))"),
        ("@ -5", "(@ -5)"),
        ("|/ 4 + 1", "(|/ (+ 4 1))"),
        ("a !~ b", "(!~ a b)"),
        ("a <> b", "(<> a b)"),
        ("a != b", "(<> a b)"),
        ("a operator(pg_catalog.+) b * c", "(pg_catalog.+ a (* b c))"),
        ("not a = b", "(not (= a b))"),
        ("not a and b", "(and [(not a) b])"),
        ("a or b and c or d", "(or [a (and [b c]) d])"),
        ("a = b is null", "(is (= a b) test=null)"),
        ("a is null = b", None),
        ("a = b in (c)", "(= a (in b [c]))"),
        ("a + 1 in (1, 2)", "(in (+ a 1) [1 2])"),
        ("a not in (1)", "(in a [1] negated)"),
        ("a between 1 and 2 and b", "(and [(between a low=1 high=2) b])"),
        ("a not between symmetric 1 and 2", "(between a low=1 high=2 symmetric negated)"),
        ("a like b || c", "(like a (|| b c))"),
        ("a not like 'x' escape 'y'", "(like a 'x' escape='y' negated)"),
        ("a ilike b", "(ilike a b)"),
        ("a similar to b", "(similarto a b)"),
        ("a is not distinct from b", "(nullsafeeq a b)"),
        ("a is distinct from b", "(nullsafeneq a b)"),
        ("a is not unknown", "(is a test=unknown negated)"),
        ("a isnull", "(is a test=null)"),
        ("a = any (b)", "(= a (any b))"),
        ("a <> all (array[1, 2])", "(<> a (all (array [1 2])))"),
        ("a like any (b)", "(like a (any b))"),
        ('a collate "C" < b', "(< (collate a collation=C) b)"),
        ("a at time zone 'UTC' at time zone b", None),
        ("a[1][2:3]", "(bracket a [1 (slice 2 3)])"),
        ("a[:2]", "(bracket a [(slice 2)])"),
        ("(a).b.c", "(dot (dot a (identifier b)) (identifier c))"),
        ("(f(x)).*", "(dot (anonymous f [x]) *)"),
        ("t.a[1].b", "(dot (bracket t.a [1]) (identifier b))"),
        ("$1::int", "(cast (parameter 1) to=int4)"),
        ("($1)[1]", "(bracket (parameter 1) [1])"),
        ("x::regtype[]", "(cast x to=regtype[])"),
        ("x::timestamp(3) with time zone", "(cast x to=timestamptz(3))"),
        ("x::double precision", "(cast x to=float8)"),
        ("x::character varying(10)", "(cast x to=varchar(10))"),
        ("x::char", "(cast x to=bpchar(1))"),
        ("char 'x'", "(cast 'x' to=bpchar)"),
        ('x::"char"', "(cast x to=char)"),
        ("x::interval day to second(3)", "(cast x to=interval(3) day to second)"),
        ("interval '1' day", "(cast '1' to=interval day)"),
        ("interval(3) '1'", "(cast '1' to=interval(3))"),
        ("int8 '3'", "(cast '3' to=int8)"),
        ("date '2020-01-01'", "(cast '2020-01-01' to=date)"),
        ("numeric(3,1) '2.5'", "(cast '2.5' to=numeric(3,1))"),
        ("pg_catalog.int4 '5'", "(cast '5' to=int4)"),
        ("varchar(3) 'abc'", "(cast 'abc' to=varchar(3))"),
        ("cast(a as pg_catalog.int4)", "(cast a to=int4)"),
        ("(1, 2)", "(tuple [1 2])"),
        ("row(1)", "(tuple [1] explicit)"),
        ("row()", "(tuple explicit)"),
        ("array[[1],[2]]", "(array [(array [1]) (array [2])])"),
        ("case when a then 1 end", "(case ifs=[(if a true=1)])"),
        ("case a when 1 then 2 else 3 end", "(case a ifs=[(if 1 true=2)] default=3)"),
        ("coalesce(a, 1)", "(coalesce [a 1])"),
        ("nullif(a, 1)", "(nullif a 1)"),
        ("count(*)", "(anonymous count star)"),
        ("count(distinct a)", "(anonymous count [a] distinct)"),
        ("f(variadic a)", "(anonymous f [a] variadic)"),
        ("f(x => 1, y := 2)", "(anonymous f [(kwarg x 1) (kwarg y 2)])"),
        ("len(a)", "(anonymous len [a])"),
        ("s.f()", "(anonymous f schema=s)"),
        ("extract(year from a)", None),
        ("left('a', 1)", "(anonymous left ['a' 1])"),
        ("b'01'", "(bitstring 01)"),
        ("x'1F'", "(hexstring 1F)"),
        ("current_timestamp(2)", "(var current_timestamp precision=2)"),
        ("((a))", "a"),
        ("user", "(var user)"),
        ("t.*", "t.*"),
        ("a = -1", "(= a -1)"),
        ("a -1", "(- a 1)"),
    ],
)
def test_shape(show: Show, text: str, tree: str | None) -> None:
    if tree is None:
        parse_expression(text)
    else:
        assert show(parse_expression(text)) == tree


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("extract(year from a)", "(anonymous extract schema=pg_catalog ['year' a] syntax)"),
        ("position(a in b)", "(anonymous position schema=pg_catalog [b a] syntax)"),
        ("substring(a from 2 for 3)", "(anonymous substring schema=pg_catalog [a 2 3] syntax)"),
        (
            "substring(a for 3)",
            "(anonymous substring schema=pg_catalog [a 1 (cast 3 to=int4)] syntax)",
        ),
        (
            "substring(a similar b escape '#')",
            "(anonymous substring schema=pg_catalog [a b '#'] syntax)",
        ),
        ("substring(a, 2)", "(anonymous substring [a 2])"),
        ("trim(a)", "(anonymous btrim schema=pg_catalog [a] syntax)"),
        ("trim(leading 'x' from a)", "(anonymous ltrim schema=pg_catalog [a 'x'] syntax)"),
        ("trim(trailing from a)", "(anonymous rtrim schema=pg_catalog [a] syntax)"),
        ("overlay(a placing b from 1)", "(anonymous overlay schema=pg_catalog [a b 1] syntax)"),
        ("a at time zone 'x'", "(anonymous timezone schema=pg_catalog ['x' a] syntax)"),
        ("(a, b) overlaps (c, d)", "(anonymous overlaps schema=pg_catalog [a b c d] syntax)"),
        ("a is nfc normalized", "(anonymous is_normalized schema=pg_catalog [a 'NFC'] syntax)"),
        (
            "collation for (a)",
            "(anonymous pg_collation_for schema=pg_catalog [a] syntax)",
        ),
    ],
)
def test_calls_of_sql_syntax(show: Show, text: str, call: str) -> None:
    assert show(parse_expression(text)) == call


def test_call_clauses(show: Show) -> None:
    text = (
        "f(a order by b desc nulls first) filter (where c) over (w partition by d rows 1 preceding)"
    )
    assert show(parse_expression(text)) == (
        "(anonymous f [a] order=[(ordered b desc nulls_first)] filter=c "
        "over=(window base=w partition_by=[d] spec=(windowspec kind=rows start=1 "
        "start_side=preceding end_side=current row)))"
    )
    node = parse_expression("f(a order by b nulls last, c)")
    flags = [item.args["nulls_first"] for item in node.args["order"]]
    assert flags == [False, None]
    assert show(parse_expression("p(0.5) within group (order by a)")) == (
        "(anonymous p [0.5] within_group=[(ordered a)])"
    )
    assert show(parse_expression("rank() over w")) == (
        "(anonymous rank over=(window alias=w is_reference))"
    )


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("a", "a"),
        ("t.a", "a"),
        ("1", "?column?"),
        ("-1", "?column?"),
        ("a + b", "?column?"),
        ("f(x)", "f"),
        ("s.f(x)", "f"),
        ("now()", "now"),
        ("len(x)", "len"),
        ("pow(1, 2)", "pow"),
        ("true", "?column?"),
        ("'x'::int8", "int8"),
        ("cast(1 as bigint)", "int8"),
        ("a::text", "a"),
        ("f(a)::text", "f"),
        ("interval '1' day", "interval"),
        ("(a).b", "b"),
        ("(a)[1]", "a"),
        ("(array[1,2])[1]", "array"),
        ("array(select 1)", "array"),
        ("row(1, 2)", "row"),
        ("(1, 2)", "row"),
        ("exists (select 1)", "exists"),
        ("case when a then 1 else 2 end", "case"),
        ("case when a then 1 else f(2) end", "f"),
        ("case when a then 1 else 2::int8 end", "case"),
        ("coalesce(a, b)", "coalesce"),
        ("greatest(1, 2)", "greatest"),
        ("nullif(1, 2)", "nullif"),
        ("trim(a)", "btrim"),
        ("extract(year from a)", "extract"),
        ("a at time zone 'x'", "timezone"),
        ("current_user", "current_user"),
        ("current_schema()", "current_schema"),
        ("(select 1 as x)", "x"),
        ("(select a from t)", "a"),
        ("(values (1))", "column1"),
        ("(a.*)::text", "a"),
        ('a collate "C"', "a"),
        ("a is null", "?column?"),
        ("$1", "?column?"),
        ("grouping(a)", "grouping"),
        ("x as select", "select"),
        ('x "Y z"', "Y z"),
    ],
)
def test_output_names(target: str, name: str) -> None:
    query = parse_query(f"select {target}")
    assert output_name(query.args["expressions"][0]) == name


def test_positions_and_texts() -> None:
    text = "select a + f(b)::int, 'é' || c"
    first, second = parse_query(text).args["expressions"]
    assert (position(first), start_position(first)) == (10, 8)
    assert source_text(first, text) == "a + f(b)::int"
    cast = first.args["expression"]
    assert (position(cast), start_position(cast)) == (16, 12)
    assert function_name(cast.args["this"]) == ("", "f")
    assert (position(second), start_position(second.args["expression"])) == (27, 30)


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("1 < 2 < 3", 'syntax error at or near "<"', 7),
        ("1 between 1 and 2 between 3 and 4", 'syntax error at or near "between"', 19),
        ("array[1,2][1]", 'syntax error at or near "["', 11),
        ("a +", "syntax error at end of input", 4),
        ("(1", "syntax error at end of input", 3),
        ("1)", 'syntax error at or near ")"', 2),
        ("f(a,)", 'syntax error at or near ")"', 5),
        ("select", 'syntax error at or near "select"', 1),
        ("a b", 'syntax error at or near "b"', 3),
        ("case end", 'syntax error at or near "end"', 6),
        ("x like", "syntax error at end of input", 7),
        ("$1$2", 'syntax error at or near "$2"', 3),
        ("cast(a int)", 'syntax error at or near "int"', 8),
        ("{", 'syntax error at or near "{"', 1),
        ("a.*.b", 'improper use of "*"', 1),
        ("left", "syntax error at end of input", 5),
        ("float(54) '1'", "precision for type float must be less than 54 bits", 7),
    ],
)
def test_errors(text: str, message: str, at: int) -> None:
    with pytest.raises(errors.SqlError) as caught:
        parse_expression(text)
    assert (caught.value.message, caught.value.position) == (message, at)


@pytest.mark.parametrize("text", ["xmlelement(name a)", "a is document", "a::t%type"])
def test_refused(text: str) -> None:
    with pytest.raises(errors.FeatureNotSupported):
        parse_expression(text)


def test_depth_is_bounded_and_chains_are_not() -> None:
    for text in ("(" * 5000 + "1" + ")" * 5000, "not " * 5000 + "a", "-" + " -" * 5000 + "1"):
        with pytest.raises(errors.StatementTooComplex):
            parse_expression(text)
    chain = parse_expression(" and ".join(["a"] * 3000))
    assert len(chain.args["expressions"]) == 3000
    parse_expression(" + ".join(["a"] * 3000))
    parse_expression("(" * 50 + "select 1" + ") + 1" * 50)


def test_lists_and_types(show: Show) -> None:
    assert show(parse_expressions("1, (2), f(3, 4)")) == "[1 2 (anonymous f [3 4])]"
    assert show(parse_type("timestamp with time zone[]")) == "timestamptz[]"
    with pytest.raises(errors.SyntaxError):
        parse_type("int int")
