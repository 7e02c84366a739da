"""The shapes of bound plans: what becomes a join, a group, a shared plan, a refusal."""

from __future__ import annotations

from typing import TypeVar

import pytest
from binder_sample import SNAPSHOT, bound, sample_context

from gpudb import errors
from gpudb import sqltype as t
from gpudb.expr import Call, Case, ColumnRef, Expr, InList, Literal, Subquery, SubqueryKind
from gpudb.optimizer import logical
from gpudb.optimizer.binder import bind_scalar, bound_columns
from gpudb.tree import walk

P = TypeVar("P", bound=logical.Plan)
E = TypeVar("E", bound=Expr)


def nodes(text: str) -> list[str]:
    return [type(node).__name__ for node in walk(bound(text).plan, logical.Plan)]


def plans(plan: logical.Plan, kind: type[P]) -> list[P]:
    return [node for node in walk(plan, logical.Plan) if isinstance(node, kind)]


def expressions(expression: Expr, kind: type[E]) -> list[E]:
    return [node for node in walk(expression, Expr) if isinstance(node, kind)]


def only(text: str, kind: type[P]) -> P:
    (found,) = plans(bound(text).plan, kind)
    return found


def test_clauses_come_in_the_order_of_evaluation() -> None:
    text = (
        "select b, sum(a), rank() over (order by sum(a)) from t where a > 1 group by b"
        " having count(*) > 2 order by 2 limit 3"
    )
    assert nodes(text) == [
        "Limit", "Sort", "Project", "Window", "Filter", "Aggregate", "Filter", "Scan",
    ]  # fmt: skip


def test_sorting_by_a_hidden_column_drops_it_at_the_end() -> None:
    plan = bound("select a from t order by b").plan
    assert isinstance(plan, logical.Project)
    assert [field.name for field in plan.fields] == ["a"]
    assert isinstance(plan.input, logical.Sort)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("select * from t, lateral (select t.a + 1) s(x)", "Apply"),
        ("select * from t left join lateral generate_series(1, t.a) g on true", "Apply"),
        ("select * from t, (select 1) s(x)", "Join"),
        ("select * from t, lateral (select 1) s(x)", "Join"),
    ],
)
def test_lateral_makes_an_apply_only_when_it_reads_its_left(text: str, kind: str) -> None:
    found = [name for name in nodes(text) if name in ("Apply", "Join")]
    assert found == [kind]


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("with x as (select a from t) select * from x", 0),
        ("with x as (select a from t) select * from x, x y", 2),
        ("with x as materialized (select a from t) select * from x", 1),
        ("with x as not materialized (select a from t) select * from x, x y", 0),
        ("with x as (select random() as r) select * from x", 1),
        ("with x as (select a from t) select 1", 0),
        ("with x as (delete from t returning a) select 1", 0),
    ],
)
def test_common_tables_are_shared_as_postgresql_does(text: str, shared: int) -> None:
    assert nodes(text).count("SharedRef") == shared


def test_a_changing_common_table_runs_without_a_reference() -> None:
    assert "Delete" in nodes("with x as (delete from t returning a) select 1")


def test_inlined_plans_have_their_own_columns() -> None:
    plan = bound("with x as not materialized (select a from t) select * from x, x y").plan
    ids = [f.id for node in plans(plan, logical.Scan) for f in node.fields]
    assert len(ids) == len(set(ids))


def test_in_with_several_constants_is_one_list() -> None:
    filtered = only("select 1 from t where a in (1, 2.5, 3)", logical.Filter)
    assert isinstance(filtered.predicate, InList)
    assert {item.type.oid for item in filtered.predicate.items} == {t.NUMERIC}


def test_not_in_a_subquery_keeps_the_comparison() -> None:
    filtered = only(
        "select 1 from t where (a, b) not in (select a, e from u)", logical.Filter
    )
    (subquery,) = expressions(filtered.predicate, Subquery)
    assert subquery.kind is SubqueryKind.ANY
    assert subquery.comparison is not None


def test_outer_columns_keep_their_ids_in_subqueries() -> None:
    plan = bound("select (select u.e from u where u.a = t.a) from t").plan
    assert isinstance(plan, logical.Project)
    (subquery,) = expressions(plan.assignments[0].expression, Subquery)
    assert isinstance(subquery.plan, logical.Plan)
    (scan,) = plans(plan, logical.Scan)
    assert logical.free_ids(subquery.plan) <= {field.id for field in scan.fields}


def test_columns_that_follow_from_the_key_become_keys() -> None:
    aggregate = only("select a, b, count(*) from t group by a", logical.Aggregate)
    assert [key.field.name for key in aggregate.keys] == ["a", "b"]


def test_grouping_sets_number_their_keys() -> None:
    aggregate = only("select b, sum(a) from t group by rollup(b, c)", logical.Aggregate)
    assert aggregate.grouping_sets == ((0, 1), (0,), ())


def test_equal_aggregates_are_computed_once() -> None:
    aggregate = only("select sum(a), sum(a) + 1 from t order by sum(a)", logical.Aggregate)
    assert len(aggregate.items) == 1


def test_constants_that_only_look_equal_stay_apart() -> None:
    aggregate = only("select sum(c * 1.0), sum(c * 1.00) from t", logical.Aggregate)
    assert len(aggregate.items) == 2


def test_nested_sets_run_in_layers() -> None:
    assert nodes("select generate_series(1, generate_series(1, 3))").count("ProjectSet") == 2


def test_views_are_expanded_under_their_own_columns() -> None:
    found = bound("select * from w")
    assert [(f.name, f.table_oid, f.attnum) for f in found.fields] == [
        ("x", 16460, 1), ("n", 16460, 2),
    ]  # fmt: skip
    assert found.read == {16460}
    assert found.read_by_views == {(16410, 10)}


def test_system_columns_widen_the_scan() -> None:
    (scan,) = plans(bound("select ctid, a from t").plan, logical.Scan)
    assert -1 in {field.attnum for field in scan.columns}


def test_insert_fills_all_columns() -> None:
    insert = only("insert into t (b) values ('x'), (default)", logical.Insert)
    assert [field.name for field in insert.fields] == ["a", "b", "c", "d", "f"]
    assert insert.fields == insert.input.fields


def test_update_from_changes_a_row_once() -> None:
    found = nodes("update t set b = u.e from u where u.a = t.a")
    assert found[:3] == ["Update", "Project", "Distinct"]


def test_sql_functions_are_expanded() -> None:
    plan = bound("select round(c) from t").plan
    assert isinstance(plan, logical.Project)
    (call,) = expressions(plan.assignments[0].expression, Call)
    assert call.function.key == "numeric_round"


def test_nullif_is_a_case() -> None:
    plan = bound("select nullif(a, 1) from t").plan
    assert isinstance(plan, logical.Project)
    assert isinstance(plan.assignments[0].expression, Case)


@pytest.mark.parametrize(
    "text",
    [
        "merge into t using u on t.a = u.a when matched then delete",
        "insert into t (a) values (1) on conflict do nothing",
        "select * from t tablesample system (10)",
        "update t set d[1] = 2",
        'select b collate "de_DE" from t',
        "insert into w values (1, 2)",
        "select * from read_parquet('x')",
    ],
)
def test_what_is_missing_is_refused(text: str) -> None:
    with pytest.raises(errors.FeatureNotSupported):
        bound(text)


def test_functions_without_an_implementation_are_refused() -> None:
    from dataclasses import replace

    from gpudb.optimizer import parser
    from gpudb.optimizer.binder import bind_query

    context = replace(sample_context(), is_implemented=lambda key: key != "lower")
    with pytest.raises(errors.FeatureNotSupported, match=r"function lower\(text\)"):
        bind_query(parser.parse_query("select lower('A')"), SNAPSHOT, context)


def test_deep_expressions_are_refused() -> None:
    with pytest.raises(errors.StatementTooComplex):
        bound("select " + "(" * 3000 + "1" + ")" * 3000)


# Parameters


def test_declared_parameter_types_are_kept() -> None:
    assert bound("select $1 + 1, $2", (t.INT8, 0)).parameter_types == (t.INT8, t.TEXT)


def test_a_gap_in_the_parameters_is_indeterminate() -> None:
    with pytest.raises(errors.IndeterminateDatatype, match=r"parameter \$1"):
        bound("select $2::int")


def test_parameters_of_two_types_disagree() -> None:
    with pytest.raises(errors.AmbiguousParameter):
        bound("select ($1, $1) = (1, 'x'::text)")


# Single expressions


def test_scalar_expressions_take_the_target_type() -> None:
    value = bind_scalar("'3'", SNAPSHOT, sample_context(), t.INTEGER)
    assert value == Literal(3, t.INTEGER)
    with pytest.raises(errors.DatatypeMismatch):
        bind_scalar("true", SNAPSHOT, sample_context(), t.INTEGER)


def test_defaults_refuse_columns_and_subqueries() -> None:
    with pytest.raises(errors.FeatureNotSupported, match="cannot use column reference"):
        bind_scalar("a + 1", SNAPSHOT, sample_context(), t.INTEGER)
    with pytest.raises(errors.FeatureNotSupported, match="cannot use subquery"):
        bind_scalar("(select 1)", SNAPSHOT, sample_context(), t.INTEGER)


def test_expressions_over_a_table_name_attnums() -> None:
    table = SNAPSHOT.relation("binder_test", "t")
    assert table is not None
    assert bound_columns("a > 1 and c < 5", SNAPSHOT, sample_context(), table) == (1, 3)
    value = bind_scalar("b", SNAPSHOT, sample_context(), t.TEXT_TYPE, table=table)
    assert value == ColumnRef(2, t.TEXT_TYPE)
