"""Rules for CREATE FUNCTION and CREATE PROCEDURE."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpudb.optimizer.lexer import Kind
from gpudb.optimizer.parser import ChangeReader
from gpudb.optimizer.statements import pieces
from gpudb.optimizer.statements.nodes import (
    CreateFunction,
    Option,
    Parameter,
    SetVariable,
    Slice,
    Statement,
    TypeName,
)
from gpudb.optimizer.statements.transactions import set_rest

_MODES = ("in", "out", "inout", "variadic")


@dataclass(slots=True)
class _Body:
    """The options of a function as they are read, in any order."""

    language: str = ""
    text: str = ""
    link_symbol: str = ""
    sql: Slice | None = None
    options: list[Option] = field(default_factory=list)
    settings: list[SetVariable] = field(default_factory=list)


def create_function(r: ChangeReader, or_replace: bool) -> Statement:
    """CREATE [OR REPLACE] FUNCTION or PROCEDURE from that word on."""
    is_procedure = r.choose("function", "procedure") == "procedure"
    name = pieces.function_path(r)
    parameters = _parameters(r)
    returns: TypeName | None = None
    if not is_procedure and r.accept("returns"):
        if r.accept("table"):
            parameters += _table_columns(r)
            returns = TypeName("record", "pg_catalog", is_set=True)
        else:
            returns = r.type_name()
    body = _body(r)
    return CreateFunction(
        name,
        parameters,
        returns,
        body.language or ("sql" if body.sql is not None else ""),
        body.text,
        body.sql,
        body.link_symbol,
        is_procedure,
        or_replace,
        tuple(body.options),
        tuple(body.settings),
    )


def _parameters(r: ChangeReader) -> tuple[Parameter, ...]:
    r.expect("(")
    found: list[Parameter] = []
    if r.token.key != ")":
        found.append(_parameter(r))
        while r.accept(","):
            found.append(_parameter(r))
    r.expect(")")
    return tuple(found)


def _parameter(r: ChangeReader) -> Parameter:
    mode = r.accept_any(*_MODES)
    name = ""
    if _at_name_and_type(r):
        name = r.type_or_function_name()
        mode = mode or r.accept_any(*_MODES)
    if mode == "in" and r.accept("out"):
        mode = "inout"
    kind = r.type_name()
    default = None
    if r.accept("default") or r.accept("="):
        default = pieces.expression_slice(r)
    return Parameter(name, kind, mode or "in", default)


def _at_name_and_type(r: ChangeReader) -> bool:
    """Whether a name stands before the type: two words in a row that are no type together."""
    following = r.peek()
    if following.kind not in (Kind.WORD, Kind.QUOTED):
        return False
    if r.token.key in ("double", "setof") or following.key in ("default", "array"):
        return False
    if r.token.key in ("character", "char", "bit", "national") and following.key in (
        "varying",
        "character",
        "char",
    ):
        return False
    if r.token.key in ("time", "timestamp") and following.key in ("with", "without"):
        return False
    return r.token.key != "interval" or following.key not in (
        "year",
        "month",
        "day",
        "hour",
        "minute",
        "second",
    )


def _table_columns(r: ChangeReader) -> tuple[Parameter, ...]:
    r.expect("(")
    found: list[Parameter] = []
    while True:
        name = r.type_or_function_name()
        found.append(Parameter(name, r.type_name(), "table"))
        if not r.accept(","):
            break
    r.expect(")")
    return tuple(found)


def _body(r: ChangeReader) -> _Body:
    body = _Body()
    while not r.at_end():
        start = r.token
        if r.accept("as"):
            body.text = r.string()
            if r.accept(","):
                body.link_symbol = r.string()
        elif r.accept("language"):
            body.language = r.non_reserved_or_string()
        elif r.accept("return"):
            body.sql = Slice("", 0)
            r.expression()
            body.sql = r.slice_from(start)
        elif r.at("begin", "atomic"):
            body.sql = pieces.rest(r)
        elif r.accept("set"):
            body.settings.append(set_rest(r))
        elif r.accept("transform"):
            body.options.append(Option("transform", pieces.rest(r).text))
        else:
            body.options.append(function_option(r))
    return body


def function_option(r: ChangeReader) -> Option:
    """IMMUTABLE, STRICT, COST n and the other attributes of a function."""
    start = r.token
    at = r.position(start)
    word = r.choose(
        "immutable",
        "stable",
        "volatile",
        "strict",
        "called",
        "returns",
        "external",
        "security",
        "leakproof",
        "not",
        "cost",
        "rows",
        "support",
        "parallel",
        "window",
    )
    if word == "called":
        r.expect("on", "null", "input")
        return Option("called on null input", None, at)
    if word == "returns":
        r.expect("null", "on", "null", "input")
        return Option("strict", None, at)
    if word == "external":
        r.expect("security")
        word = "security"
    if word == "security":
        return Option("security", r.choose("definer", "invoker"), at)
    if word == "not":
        r.expect("leakproof")
        return Option("not leakproof", None, at)
    if word in ("cost", "rows"):
        return Option(word, r.number_text(), at)
    if word == "support":
        return Option(word, str(r.qualified_name()), at)
    if word == "parallel":
        return Option(word, r.name(), at)
    return Option(word, None, at)
