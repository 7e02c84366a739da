"""Functions in language SQL, expanded where they are called.

PostgreSQL keeps the bodies of some built-ins as parsed trees; the texts here say the same. Bodies
of users' functions are queries over $n and the arguments' names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog.resolution import ResolvedFunction
from gpudb.expr import Case, CaseArm, Expr, IsNull, Literal, Or, Subquery, SubqueryKind
from gpudb.optimizer import logical, parser
from gpudb.optimizer.binder import coercion, expressions
from gpudb.optimizer.binder.scope import Scope
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

EXPANSION_DEPTH_MAX = 32
"""Functions in language SQL that call each other; deeper ones fail with 54001."""

_OVERLAPS_INTERVAL_BOTH = "($1, $1 + $2) overlaps ($3, $3 + $4)"
_OVERLAPS_INTERVAL_LAST = "($1, $2) overlaps ($3, $3 + $4)"
_OVERLAPS_INTERVAL_FIRST = "($1, $1 + $2) overlaps ($3, $4)"
BODIES = {
    "lpad(text,int4)": "lpad($1, $2, ' ')",
    "rpad(text,int4)": "rpad($1, $2, ' ')",
    "timestamptz(date,time)": "($1 + $2)::timestamptz",
    "obj_description(oid,name)": "(select description from pg_catalog.pg_description"
    " where objoid = $1 and classoid = (select oid from pg_catalog.pg_class"
    " where relname = $2 and relnamespace = 11) and objsubid = 0)",
    "obj_description(oid)": "(select description from pg_catalog.pg_description"
    " where objoid = $1 and objsubid = 0)",
    "col_description(oid,int4)": "(select description from pg_catalog.pg_description"
    " where objoid = $1 and classoid = 1259 and objsubid = $2)",
    "shobj_description(oid,name)": "(select description from pg_catalog.pg_shdescription"
    " where objoid = $1 and classoid = (select oid from pg_catalog.pg_class"
    " where relname = $2 and relnamespace = 11))",
    "quote_literal(anyelement)": "quote_literal($1::text)",
    "quote_nullable(anyelement)": "quote_nullable($1::text)",
    "timedate_pl(time,date)": "$2 + $1",
    "timetzdate_pl(timetz,date)": "$2 + $1",
    "integer_pl_date(int4,date)": "$2 + $1",
    "interval_pl_time(interval,time)": "$2 + $1",
    "interval_pl_date(interval,date)": "$2 + $1",
    "interval_pl_timetz(interval,timetz)": "$2 + $1",
    "interval_pl_timestamp(interval,timestamp)": "$2 + $1",
    "interval_pl_timestamptz(interval,timestamptz)": "$2 + $1",
    "int8pl_inet(int8,inet)": "$2 + $1",
    "numeric_pl_pg_lsn(numeric,pg_lsn)": "$2 + $1",
    "date_part(text,date)": "date_part($1, $2::timestamp without time zone)",
    "age(timestamptz)": "age(current_date::timestamptz, $1)",
    "age(timestamp)": "age(current_date::timestamp, $1)",
    "log10(numeric)": "log(10, $1)",
    "log(numeric)": "log(10, $1)",
    "round(numeric)": "round($1, 0)",
    "trunc(numeric)": "trunc($1, 0)",
    "bit_length(bytea)": "octet_length($1) * 8",
    "bit_length(text)": "octet_length($1) * 8",
    "bit_length(bit)": "length($1)",
    "textanycat(text,anynonarray)": "$1 || $2::text",
    "anytextcat(anynonarray,text)": "$1::text || $2",
    "substring(text,text,text)": "substring($1, similar_to_escape($2, $3))",
    "pg_relation_size(regclass)": "pg_relation_size($1, 'main')",
    "overlaps(timestamptz,interval,timestamptz,interval)": _OVERLAPS_INTERVAL_BOTH,
    "overlaps(timestamptz,timestamptz,timestamptz,interval)": _OVERLAPS_INTERVAL_LAST,
    "overlaps(timestamptz,interval,timestamptz,timestamptz)": _OVERLAPS_INTERVAL_FIRST,
    "overlaps(timestamp,interval,timestamp,interval)": _OVERLAPS_INTERVAL_BOTH,
    "overlaps(timestamp,timestamp,timestamp,interval)": _OVERLAPS_INTERVAL_LAST,
    "overlaps(timestamp,interval,timestamp,timestamp)": _OVERLAPS_INTERVAL_FIRST,
    "overlaps(time,interval,time,interval)": _OVERLAPS_INTERVAL_BOTH,
    "overlaps(time,time,time,interval)": _OVERLAPS_INTERVAL_LAST,
    "overlaps(time,interval,time,time)": _OVERLAPS_INTERVAL_FIRST,
}


def expand(
    binder: Binder, found: ResolvedFunction, arguments: tuple[Expr, ...], at: int
) -> Expr:
    """The function's body over the arguments. 0A000 for bodies that cannot be expanded."""
    signature = found.signature
    if signature.returns_set:
        raise _refusal(binder, found, at)
    if len(binder.inlined_arguments) >= EXPANSION_DEPTH_MAX:
        raise errors.StatementTooComplex("stack depth limit exceeded", position=at)
    body = signature.body if signature.is_user_defined else BODIES.get(signature.key)
    if body is None:
        raise _refusal(binder, found, at)
    binder.inlined_arguments.append((arguments, signature.names))
    try:
        if signature.is_user_defined:
            value = _user_body(binder, body)
        else:
            value = expressions.bind(binder, Scope(), parser.parse_expression(body))
        value = coercion.explicit(binder, value, SqlType(found.result), 0)
    except errors.SqlError as error:
        error.position = at
        raise
    finally:
        binder.inlined_arguments.pop()
    if signature.is_user_defined and signature.is_strict and arguments:
        is_missing: Expr = Or(tuple(IsNull(argument) for argument in arguments))
        return Case((CaseArm(is_missing, Literal(None, value.type)),), value, value.type)
    return value


def _refusal(binder: Binder, found: ResolvedFunction, at: int) -> errors.SqlError:
    types = binder.types.names(found.signature.arguments)
    return errors.FeatureNotSupported(
        f"function {found.signature.name}({types}) is not supported", position=at
    )


def _user_body(binder: Binder, body: str) -> Expr:
    """A user's function: its one query's first row."""
    tree = parser.parse_query(body)
    if isinstance(tree, exp.Select) and not any(
        tree.args.get(key) for key in ("from_", "where", "group", "having", "limit", "with_")
    ):
        targets = tree.args["expressions"]
        if len(targets) == 1:
            target = targets[0]
            inner = target.args["this"] if isinstance(target, exp.Alias) else target
            if not isinstance(inner, exp.Star):
                return expressions.bind(binder, Scope(), inner)
    from gpudb.optimizer.binder import queries

    inner_scope = Scope()
    bound = queries.bind(binder, inner_scope, tree)
    if len(bound.plan.fields) != 1:
        raise errors.FeatureNotSupported("functions that return rows are not supported")
    plan = logical.Limit(bound.plan, Literal(1, t.BIGINT), None)
    binder.note_captured(plan, frozenset(inner_scope.captured))
    return Subquery(SubqueryKind.SCALAR, plan, plan.fields[0].type)


def argument(binder: Binder, scope: Scope, index: int, at: int) -> Expr:
    """$index of the body being expanded."""
    arguments = binder.inlined_arguments[-1][0]
    if not 0 < index <= len(arguments):
        raise errors.UndefinedParameter(f"there is no parameter ${index}", position=at)
    return _noted(binder, scope, arguments[index - 1])


def named_argument(binder: Binder, scope: Scope, name: str) -> Expr | None:
    """The argument of that name of the body being expanded."""
    arguments, names = binder.inlined_arguments[-1]
    if name and name in names:
        return _noted(binder, scope, arguments[names.index(name)])
    return None


def _noted(binder: Binder, scope: Scope, value: Expr) -> Expr:
    """The caller's expression, noted as outer in every scope of the body."""
    ids = binder.references(value)
    level: Scope | None = scope
    while level is not None:
        level.captured |= ids
        level = level.parent
    return value
