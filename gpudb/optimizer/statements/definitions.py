"""Rules for CREATE of views, indexes, schemas, databases, types, domains, extensions."""

from __future__ import annotations

from collections.abc import Callable

from gpudb.optimizer.lexer import Kind
from gpudb.optimizer.parser import ChangeReader
from gpudb.optimizer.statements import pieces, tables
from gpudb.optimizer.statements.nodes import (
    ColumnDefinition,
    CreateDatabase,
    CreateDomain,
    CreateExtension,
    CreateIndex,
    CreateSchema,
    CreateTableAs,
    CreateType,
    CreateView,
    IndexElement,
    Option,
    QualifiedName,
    QueryStatement,
    RefreshMaterializedView,
    Slice,
    Statement,
)


def create_view(r: ChangeReader, or_replace: bool, persistence: str) -> Statement:
    """CREATE VIEW from RECURSIVE or VIEW on."""
    recursive = r.accept("recursive")
    r.expect("view")
    name = r.table_name()
    columns = r.parenthesized_names() if recursive or r.token.key == "(" else ()
    options = pieces.reloptions(r)
    r.expect("as")
    r.into_refusal = "views must not contain SELECT INTO"
    query = pieces.query_statement(r, changes=False)
    check = ""
    if r.accept("with"):
        check = r.accept_any("cascaded", "local") or "cascaded"
        r.expect("check", "option")
    if recursive:
        query = _recursive_query(name.name, columns, query)
    is_temporary = persistence == "temporary"
    return CreateView(name, query, columns, or_replace, is_temporary, recursive, options, check)


def _recursive_query(name: str, columns: tuple[str, ...], query: QueryStatement) -> QueryStatement:
    """CREATE RECURSIVE VIEW's query as the WITH RECURSIVE it stands for."""
    quoted = ", ".join(_quoted(column) for column in columns)
    text = (
        f"WITH RECURSIVE {_quoted(name)} ({quoted}) AS ({query.query.text}\n)"
        f" SELECT {quoted} FROM {_quoted(name)}"
    )
    return QueryStatement(Slice(text, query.query.offset), "select")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def create_materialized_view(r: ChangeReader) -> Statement:
    r.expect("materialized", "view")
    exists_ok = pieces.if_not_exists(r)
    name = r.table_name()
    columns = r.parenthesized_names() if r.token.key == "(" else ()
    method = r.name() if r.accept("using") else ""
    options = pieces.reloptions(r)
    tablespace = r.name() if r.accept("tablespace") else ""
    r.expect("as")
    query = pieces.query_statement(r, changes=False)
    return CreateTableAs(
        name,
        query,
        columns,
        if_not_exists=exists_ok,
        is_materialized_view=True,
        access_method=method,
        options=options,
        tablespace=tablespace,
        with_data=tables.with_data(r),
    )


def refresh(r: ChangeReader) -> Statement:
    r.expect("refresh", "materialized", "view")
    concurrently = r.accept("concurrently")
    return RefreshMaterializedView(r.table_name(), concurrently, tables.with_data(r))


def create_index(r: ChangeReader) -> Statement:
    """CREATE INDEX from UNIQUE or INDEX on."""
    unique = r.accept("unique")
    r.expect("index")
    concurrently = r.accept("concurrently")
    exists_ok = pieces.if_not_exists(r)
    name = "" if not exists_ok and r.token.key == "on" else r.name()
    r.expect("on")
    table = pieces.relation(r)
    method = r.name() if r.accept("using") else "btree"
    r.expect("(")
    elements = [_index_element(r)]
    while r.accept(","):
        elements.append(_index_element(r))
    r.expect(")")
    include = r.parenthesized_names() if r.accept("include") else ()
    not_distinct = False
    if r.accept("nulls"):
        not_distinct = r.accept("not")
        r.expect("distinct")
    options = pieces.reloptions(r)
    tablespace = r.name() if r.accept("tablespace") else ""
    where = pieces.expression_slice(r) if r.accept("where") else None
    return CreateIndex(
        name,
        table,
        tuple(elements),
        method,
        unique,
        concurrently,
        exists_ok,
        include,
        not_distinct,
        options,
        tablespace,
        where,
    )


def _index_element(r: ChangeReader) -> IndexElement:
    start = r.token
    column = ""
    expression = None
    if start.key == "(":
        expression = pieces.parenthesized_expression(r)
    elif r.at_column_name() and r.peek().key not in ("(", "."):
        column = r.name()
    else:
        r.primary()
        expression = r.slice_from(start)
    collation = pieces.collation(r)
    operator_class = None
    if r.at_column_name() and r.token.key not in ("nulls", "include"):
        operator_class = r.qualified_name()
        if r.token.key == "(":
            pieces.definition_list(r)
    descending = r.accept_any("asc", "desc") == "desc"
    nulls_first = r.choose("first", "last") == "first" if r.accept("nulls") else None
    return IndexElement(column, expression, collation, operator_class, descending, nulls_first)


def create_schema(r: ChangeReader, element: Callable[[ChangeReader], Statement]) -> Statement:
    r.expect("schema")
    exists_ok = pieces.if_not_exists(r)
    name = ""
    if r.token.key != "authorization":
        name = r.name()
    owner = pieces.role_name(r) if r.accept("authorization") else ""
    elements: list[Statement] = []
    at = r.token
    while r.token.key in ("create", "grant"):
        elements.append(element(r))
    if exists_ok and elements:
        r.refuse(at, "CREATE SCHEMA IF NOT EXISTS cannot include schema elements")
    return CreateSchema(name or owner, owner, exists_ok, tuple(elements))


def create_database(r: ChangeReader) -> Statement:
    r.expect("database")
    name = r.name()
    r.accept("with")
    return CreateDatabase(name, database_options(r))


def database_options(r: ChangeReader) -> tuple[Option, ...]:
    """``name [=] value`` pairs up to the end of the statement."""
    found: list[Option] = []
    while not r.at_end():
        start = r.token
        name = r.accept_any("connection") and "connection"
        if name:
            r.expect("limit")
            name = "connection limit"
        else:
            name = r.label()
        r.accept("=")
        value: str | None = None
        if not r.accept("default"):
            value = r.number_text() if pieces.at_number(r) else pieces.boolean_or_string(r)
        found.append(Option(name, value, r.position(start)))
    return tuple(found)


def create_extension(r: ChangeReader) -> Statement:
    r.expect("extension")
    exists_ok = pieces.if_not_exists(r)
    name = r.name()
    r.accept("with")
    found: list[Option] = []
    while (word := r.accept_any("schema", "version", "cascade")) != "":
        value = None if word == "cascade" else r.non_reserved_or_string()
        found.append(Option(word, value))
    return CreateExtension(name, exists_ok, tuple(found))


def create_type(r: ChangeReader) -> Statement:
    r.expect("type")
    name = r.qualified_name()
    if r.at_end():
        return CreateType(name, "shell")
    if r.token.key == "(":
        return CreateType(name, "base", options=pieces.definition_list(r))
    r.expect("as")
    if r.accept("enum"):
        return CreateType(name, "enum", labels=_labels(r))
    if r.accept("range"):
        return CreateType(name, "range", options=pieces.definition_list(r))
    r.expect("(")
    attributes: list[ColumnDefinition] = []
    while r.token.key != ")":
        start = r.token
        attribute = r.name()
        kind = r.type_name()
        collation = pieces.collation(r)
        attributes.append(
            ColumnDefinition(attribute, kind, (), collation, position=r.position(start))
        )
        if not r.accept(","):
            break
        if r.token.key == ")":
            r.fail()
    r.expect(")")
    return CreateType(name, "composite", attributes=tuple(attributes))


def _labels(r: ChangeReader) -> tuple[str, ...]:
    r.expect("(")
    labels: list[str] = []
    if r.token.kind is Kind.STRING:
        labels.append(r.string())
        while r.accept(","):
            labels.append(r.string())
    r.expect(")")
    return tuple(labels)


def create_domain(r: ChangeReader) -> Statement:
    r.expect("domain")
    name: QualifiedName = r.qualified_name()
    r.accept("as")
    base = r.type_name()
    constraints, collation = tables.column_constraints(r)
    return CreateDomain(name, base, constraints, collation)
