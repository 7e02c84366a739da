"""Rules for LOCK, VACUUM, ANALYZE, REINDEX, CLUSTER, LOAD, DO, CALL, EXPLAIN and COPY."""

from __future__ import annotations

from collections.abc import Callable

from gpudb.optimizer.lexer import Kind, Token
from gpudb.optimizer.parser import ChangeReader
from gpudb.optimizer.statements import pieces
from gpudb.optimizer.statements.nodes import (
    Call,
    Checkpoint,
    Cluster,
    Copy,
    Do,
    Explain,
    Load,
    Lock,
    Option,
    QualifiedName,
    QueryStatement,
    Reindex,
    Relation,
    Slice,
    Statement,
    Vacuum,
)


def lock(r: ChangeReader) -> Statement:
    r.expect("lock")
    r.accept("table")
    tables = pieces.relations(r)
    mode = "access exclusive"
    if r.accept("in"):
        words: list[str] = []
        while r.token.key in ("access", "row", "share", "update", "exclusive"):
            words.append(r.advance().key)
        mode = " ".join(words)
        if mode not in _LOCK_MODES:
            r.fail()
        r.expect("mode")
    return Lock(tables, mode, r.accept("nowait"))


_LOCK_MODES = frozenset(
    (
        "access share",
        "row share",
        "row exclusive",
        "share update exclusive",
        "share",
        "share row exclusive",
        "exclusive",
        "access exclusive",
    )
)


def vacuum(r: ChangeReader) -> Statement:
    start = r.advance()
    options: list[Option] = []
    is_analyze = start.key in ("analyze", "analyse")
    if r.token.key == "(":
        options += pieces.generic_options(r)
    elif is_analyze:
        if r.accept("verbose"):
            options.append(Option("verbose"))
    else:
        for word in ("full", "freeze", "verbose", "analyze"):
            if r.accept(word) or (word == "analyze" and r.accept("analyse")):
                options.append(Option(word))
    tables: list[Relation] = []
    if not r.at_end():
        tables.append(_vacuum_table(r))
        while r.accept(","):
            tables.append(_vacuum_table(r))
    return Vacuum(tuple(options), tuple(tables), is_analyze)


def _vacuum_table(r: ChangeReader) -> Relation:
    found = pieces.relation(r)
    columns = r.parenthesized_names() if r.token.key == "(" else ()
    return Relation(found.name, found.only, columns)


def reindex(r: ChangeReader) -> Statement:
    r.expect("reindex")
    options = pieces.generic_options(r) if r.token.key == "(" else ()
    kind = r.choose("index", "table", "schema", "database", "system")
    if r.accept("concurrently"):
        options = (*options, Option("concurrently"))
    if kind in ("index", "table"):
        return Reindex(kind, r.table_name(), options)
    start = r.token
    return Reindex(kind, QualifiedName((r.name(),), r.position(start)), options)


def cluster(r: ChangeReader) -> Statement:
    r.expect("cluster")
    options: tuple[Option, ...] = ()
    if r.token.key == "(":
        options = pieces.generic_options(r)
    elif r.accept("verbose"):
        options = (Option("verbose"),)
    if r.at_end():
        return Cluster(options=options)
    name = r.table_name()
    if r.accept("on"):
        return Cluster(r.table_name(), name.name, options)
    return Cluster(name, r.name() if r.accept("using") else "", options)


def checkpoint(r: ChangeReader) -> Statement:
    r.expect("checkpoint")
    return Checkpoint()


def load(r: ChangeReader) -> Statement:
    r.expect("load")
    return Load(r.string())


def do(r: ChangeReader) -> Statement:
    r.expect("do")
    language = "plpgsql"
    body: str | None = None
    start = r.token
    while not r.at_end():
        if r.accept("language"):
            language = r.non_reserved_or_string()
        else:
            body = r.string()
    if body is None:
        if start.kind is Kind.END:
            r.fail()
        raise r.error_at(start, "no inline code specified")
    return Do(language, body)


def call(r: ChangeReader) -> Statement:
    r.expect("call")
    start = r.token
    procedure = r.qualified_name()
    if r.token.key != "(":
        r.fail()
    pieces.skip_parentheses(r)
    source = r.slice_from(start)
    end = r.index
    r.seek(r.tokens.index(start))
    r.expression()
    if r.index != end:
        r.fail()
    return Call(procedure, source)


# --- EXPLAIN --------------------------------------------------------------------------------------


def explain(r: ChangeReader, explainable: Callable[[ChangeReader], Statement]) -> Statement:
    r.expect("explain")
    options: tuple[Option, ...] = ()
    if r.token.key == "(" and not r.opens_query() and r.peek().key not in ("(", "select"):
        options = pieces.generic_options(r)
    else:
        if r.accept_any("analyze", "analyse"):
            options = (Option("analyze"),)
        if r.accept("verbose"):
            options = (*options, Option("verbose"))
    return Explain(options, explainable(r))


# --- COPY -----------------------------------------------------------------------------------------


def copy(r: ChangeReader) -> Statement:
    r.expect("copy")
    is_binary = r.accept("binary")
    if r.token.key == "(":
        query = _copied_query(r)
        r.expect("to")
        file, is_program = copy_file(r)
        options = _copy_options(r)
        return Copy(None, query, (), False, file, is_program, options)
    table = r.table_name()
    columns = r.parenthesized_names() if r.token.key == "(" else ()
    is_from = r.choose("from", "to") == "from"
    file, is_program = copy_file(r)
    options = ()
    if r.token.key == "using" or r.token.key == "delimiters":
        options = _using_delimiters(r)
    options += _copy_options(r)
    if is_binary:
        options = (Option("format", "binary"), *options)
    where: Slice | None = None
    where_token = r.token
    if r.accept("where"):
        if not is_from:
            raise r.error_at(where_token, "WHERE clause not allowed with COPY TO")
        where = pieces.expression_slice(r)
    return Copy(table, None, columns, is_from, file, is_program, options, where)


def _copied_query(r: ChangeReader) -> QueryStatement:
    r.expect("(")
    r.into_refusal = "COPY (SELECT INTO) is not supported"
    query = pieces.query_statement(r)
    r.expect(")")
    return query


def copy_file(r: ChangeReader) -> tuple[str | None, bool]:
    start = r.token
    if r.accept("program"):
        return r.string(), True
    word = r.accept_any("stdin", "stdout")
    if word:
        return None, False
    if start.kind is not Kind.STRING:
        r.fail()
    return r.string(), False


def _using_delimiters(r: ChangeReader) -> tuple[Option, ...]:
    start = r.token
    r.accept("using")
    r.expect("delimiters")
    return (Option("delimiter", r.string(), r.position(start)),)


def _copy_options(r: ChangeReader) -> tuple[Option, ...]:
    r.accept("with")
    if r.token.key == "(":
        return pieces.generic_options(r)
    found: list[Option] = []
    while (option := _old_option(r, r.token)) is not None:
        found.append(option)
    return tuple(found)


def _old_option(r: ChangeReader, start: Token) -> Option | None:
    """An option of the syntax before 9.0, as the option it means."""
    word = r.accept_any(
        "binary",
        "freeze",
        "delimiter",
        "null",
        "csv",
        "header",
        "quote",
        "escape",
        "force",
        "encoding",
    )
    at = r.position(start)
    if not word:
        return None
    if word in ("binary", "csv"):
        return Option("format", word, at)
    if word in ("freeze", "header"):
        return Option(word, "true", at)
    if word == "encoding":
        return Option(word, r.string(), at)
    if word != "force":
        r.accept("as")
        return Option(word, r.string(), at)
    if r.accept("quote"):
        columns = ("*",) if r.accept("*") else r.names()
        return Option("force_quote", "*" if columns == ("*",) else columns, at)
    name = "force_not_null" if r.accept("not") else "force_null"
    r.expect("null")
    return Option(name, r.names(), at)
