"""Rules for CREATE FUNCTION and CREATE PROCEDURE."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpudb.optimizer.parser import ChangeReader
from gpudb.optimizer.statements import pieces
from gpudb.optimizer.statements.nodes import (
    CreateFunction,
    Option,
    SetVariable,
    Slice,
    Statement,
    TypeName,
)
from gpudb.optimizer.statements.parameters import parameters, table_columns
from gpudb.optimizer.statements.transactions import set_rest


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
    found = parameters(r)
    returns: TypeName | None = None
    if not is_procedure and r.accept("returns"):
        if r.accept("table"):
            found += table_columns(r)
            returns = TypeName("record", "pg_catalog", is_set=True)
        else:
            returns = r.type_name()
    body = _body(r)
    return CreateFunction(
        name,
        found,
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
