"""Rules for CREATE TABLE, CREATE TABLE AS, SELECT INTO and column definitions."""

from __future__ import annotations

from dataclasses import replace

from gpudb.optimizer.lexer import Kind, Token
from gpudb.optimizer.parser import ChangeReader, reader_for
from gpudb.optimizer.statements import cursors, pieces
from gpudb.optimizer.statements.nodes import (
    ColumnDefinition,
    Constraint,
    CreateTable,
    CreateTableAs,
    Execute,
    LikeClause,
    Option,
    QualifiedName,
    QueryStatement,
    References,
    Slice,
    Statement,
    TableElement,
)
from gpudb.optimizer.statements.sequences import sequence_options

_LIKE_WORDS = (
    "comments",
    "compression",
    "constraints",
    "defaults",
    "identity",
    "generated",
    "indexes",
    "statistics",
    "storage",
)


def persistence(r: ChangeReader) -> str:
    """TEMP, TEMPORARY, UNLOGGED with LOCAL or GLOBAL before it."""
    if r.token.key in ("local", "global") and r.peek().key in ("temp", "temporary"):
        r.advance()
    word = r.accept_any("temp", "temporary", "unlogged")
    return {"": "permanent", "unlogged": "unlogged"}.get(word, "temporary")


def create_table(r: ChangeReader, kind: str) -> Statement:
    """CREATE TABLE from the word TABLE on."""
    r.expect("table")
    exists_ok = pieces.if_not_exists(r)
    name = r.table_name()
    if r.accept("of"):
        return _typed_table(r, name, kind, exists_ok)
    if r.accept("partition"):
        r.expect("of")
        return _partition(r, name, kind, exists_ok)
    if r.token.key == "(" and not _is_column_list_of_as(r):
        r.advance()
        elements = () if r.token.key == ")" else _elements(r)
        r.expect(")")
        inherits: tuple[QualifiedName, ...] = ()
        if r.accept("inherits"):
            r.expect("(")
            inherits = pieces.qualified_names(r)
            r.expect(")")
        table = CreateTable(name, elements, kind, exists_ok, inherits)
        return _table_options(r, table)
    return _table_as(r, name, kind, exists_ok)


def _is_column_list_of_as(r: ChangeReader) -> bool:
    """Whether the parenthesis opens CREATE TABLE AS's column names: only names and commas."""
    ahead = 1
    while r.peek(ahead).kind in (Kind.WORD, Kind.QUOTED) and r.peek(ahead + 1).key == ",":
        ahead += 2
    if r.peek(ahead + 1).key != ")":
        return False
    return r.peek(ahead + 2).key in (
        "as",
        "with",
        "without",
        "on",
        "tablespace",
        "using",
    )


def _table_options(r: ChangeReader, table: CreateTable) -> CreateTable:
    if r.token.key == "partition":
        start = r.advance()
        r.expect("by")
        r.name()
        pieces.skip_parentheses(r)
        table = replace(table, partition_by=r.slice_from(start))
    method, options, on_commit, tablespace = _storage(r)
    return replace(
        table,
        access_method=method,
        options=options,
        on_commit=on_commit,
        tablespace=tablespace,
    )


def _storage(r: ChangeReader) -> tuple[str, tuple[Option, ...], str, str]:
    """USING, WITH, ON COMMIT, TABLESPACE."""
    method = r.name() if r.accept("using") else ""
    options: tuple[Option, ...] = ()
    if r.accept("without"):
        r.expect("oids")
    elif r.accept("with"):
        options = pieces.definition_list(r)
    on_commit = ""
    if r.accept("on", "commit"):
        on_commit = r.choose("drop", "delete", "preserve")
        if on_commit != "drop":
            r.expect("rows")
    tablespace = r.name() if r.accept("tablespace") else ""
    return method, options, on_commit, tablespace


def _typed_table(r: ChangeReader, name: QualifiedName, kind: str, exists_ok: bool) -> Statement:
    of_type = r.qualified_name()
    elements = _typed_elements(r)
    table = CreateTable(name, elements, kind, exists_ok, of_type=of_type)
    return _table_options(r, table)


def _partition(r: ChangeReader, name: QualifiedName, kind: str, exists_ok: bool) -> Statement:
    parent = r.qualified_name()
    elements = _typed_elements(r)
    bound = partition_bound(r)
    table = CreateTable(name, elements, kind, exists_ok, partition_of=parent, partition_bound=bound)
    return _table_options(r, table)


def partition_bound(r: ChangeReader) -> Slice:
    """DEFAULT or FOR VALUES ..., as text."""
    start = r.token
    if r.accept("default"):
        return r.slice_from(start)
    r.expect("for", "values")
    word = r.choose("in", "from", "with")
    if word == "with":
        _hash_bound(r)
        return r.slice_from(start)
    _bound_values(r)
    if word == "from":
        r.expect("to")
        _bound_values(r)
    return r.slice_from(start)


def _hash_bound(r: ChangeReader) -> None:
    r.expect("(")
    while True:
        r.non_reserved()
        r.unsigned_integer()
        if not r.accept(","):
            break
    r.expect(")")


def _bound_values(r: ChangeReader) -> None:
    r.expect("(")
    r.expressions()
    r.expect(")")


def _typed_elements(r: ChangeReader) -> tuple[TableElement, ...]:
    if not r.accept("("):
        return ()
    found: list[TableElement] = []
    while True:
        if _at_table_constraint(r):
            found.append(table_constraint(r))
        else:
            start = r.token
            column = r.name()
            r.accept("with", "options")
            constraints, _ = column_constraints(r)
            found.append(ColumnDefinition(column, None, constraints, position=r.position(start)))
        if not r.accept(","):
            break
    r.expect(")")
    return tuple(found)


def _table_as(r: ChangeReader, name: QualifiedName, kind: str, exists_ok: bool) -> Statement:
    columns = r.parenthesized_names() if r.token.key == "(" else ()
    method, options, on_commit, tablespace = _storage(r)
    r.expect("as")
    query = query_or_execute(r)
    return CreateTableAs(
        name,
        query,
        columns,
        kind,
        exists_ok,
        access_method=method,
        options=options,
        on_commit=on_commit,
        tablespace=tablespace,
        with_data=with_data(r),
    )


def query_or_execute(r: ChangeReader) -> QueryStatement | Execute:
    if r.token.key == "execute":
        return cursors.execute(r)
    return pieces.query_statement(r, changes=False)


def with_data(r: ChangeReader) -> bool:
    """WITH [NO] DATA; True without it."""
    if not r.accept("with"):
        return True
    has_data = not r.accept("no")
    r.expect("data")
    return has_data


# --- SELECT INTO ----------------------------------------------------------------------------------


def find_into(tokens: list[Token]) -> int:
    """The index of a top-level SELECT's INTO, -1 for none."""
    depth = 0
    for index, token in enumerate(tokens):
        key = token.key
        if key == "(":
            depth += 1
        elif key == ")":
            depth -= 1
        elif depth == 0 and key in ("insert", "merge", "update", "delete"):
            return -1
        elif depth == 0 and key == "into" and tokens[index - 1].key not in ("as", "."):
            return index
    return -1


def select_into(r: ChangeReader, at: int) -> CreateTableAs:
    """SELECT ... INTO table ...: the query is read without the clause, its text blanked."""
    clause = reader_for(r.text, r.tokens, r.shift)
    clause.seek(at)
    clause.expect("into")
    kind = persistence(clause)
    clause.accept("table")
    name = clause.table_name()
    first, last = r.tokens[at].start, r.tokens[clause.index - 1].end
    text = r.text[:first] + " " * (last - first) + r.text[last:]
    tokens = r.tokens[:at] + r.tokens[clause.index :]
    inner = reader_for(text, tokens, r.shift)
    query = pieces.query_statement(inner, changes=False)
    inner.expect_end()
    r.seek(len(r.tokens) - 1)
    return CreateTableAs(name, query, persistence=kind, is_select_into=True)


# --- columns and constraints ----------------------------------------------------------------------


def _elements(r: ChangeReader) -> tuple[TableElement, ...]:
    found = [_element(r)]
    while r.accept(","):
        found.append(_element(r))
    return tuple(found)


def _element(r: ChangeReader) -> TableElement:
    if r.token.key == "like":
        return _like(r)
    if _at_table_constraint(r):
        return table_constraint(r)
    return column_definition(r)


def _at_table_constraint(r: ChangeReader) -> bool:
    return r.token.key in (
        "constraint",
        "check",
        "unique",
        "primary",
        "exclude",
        "foreign",
    ) and (r.token.key != "exclude" or r.peek().key in ("using", "("))


def _like(r: ChangeReader) -> LikeClause:
    r.expect("like")
    table = r.table_name()
    chosen: set[str] = set()
    while (word := r.accept_any("including", "excluding")) != "":
        option = r.choose(*_LIKE_WORDS, "all")
        options = set(_LIKE_WORDS) if option == "all" else {option}
        chosen = chosen | options if word == "including" else chosen - options
    return LikeClause(table, frozenset(chosen))


def column_definition(r: ChangeReader) -> ColumnDefinition:
    start = r.token
    name = r.name()
    column_type = r.type_name()
    storage = compression = ""
    while (word := r.accept_any("storage", "compression")) != "":
        value = r.accept_any("default") or r.name()
        storage, compression = (value, compression) if word == "storage" else (storage, value)
    if r.token.key == "options":
        r.refuse(r.token, "column options are not supported")
    constraints, collation = column_constraints(r)
    return ColumnDefinition(
        name,
        column_type,
        constraints,
        collation,
        storage,
        compression,
        r.position(start),
    )


def column_constraints(
    r: ChangeReader,
) -> tuple[tuple[Constraint, ...], QualifiedName | None]:
    """All constraints of a column, and its COLLATE."""
    found: list[Constraint] = []
    collation: QualifiedName | None = None
    while True:
        start = r.token
        if r.accept("collate"):
            if collation is not None:
                raise r.error_at(start, "multiple COLLATE clauses not allowed")
            collation = r.qualified_name()
            continue
        name = r.name() if r.accept("constraint") else ""
        constraint = _column_constraint(r)
        if constraint is None:
            if name:
                r.fail()
            return tuple(found), collation
        found.append(replace(attributes(r, constraint), name=name, position=r.position(start)))


def _column_constraint(r: ChangeReader) -> Constraint | None:
    word = r.token.key
    if word == "not" and r.peek().key not in ("deferrable", "valid"):
        r.expect("not", "null")
        return Constraint("not null")
    if word in ("null", "unique"):
        r.advance()
        return Constraint("null") if word == "null" else _key_options(r, "unique")
    if word == "primary":
        r.expect("primary", "key")
        return _key_options(r, "primary key")
    if word == "check":
        r.advance()
        expression = pieces.parenthesized_expression(r)
        return Constraint("check", expression=expression, no_inherit=r.accept("no", "inherit"))
    if word == "default":
        r.advance()
        return Constraint("default", expression=pieces.b_expression_slice(r))
    if word == "generated":
        return _generated(r)
    if word == "references":
        return Constraint("references", references=references(r))
    return None


def _generated(r: ChangeReader) -> Constraint:
    r.expect("generated")
    when = r.choose("always", "by")
    if when == "by":
        r.expect("default")
    r.expect("as")
    if r.accept("identity"):
        identity = "always" if when == "always" else "by default"
        options = sequence_options(r, parenthesized=True) if r.token.key == "(" else ()
        return Constraint("identity", identity=identity, options=options)
    start = r.token
    expression = pieces.parenthesized_expression(r)
    if when != "always":
        raise r.error_at(start, "for a generated column, GENERATED ALWAYS must be specified")
    r.expect("stored")
    return Constraint("generated", expression=expression)


def _key_options(r: ChangeReader, kind: str, columns: tuple[str, ...] = ()) -> Constraint:
    """What follows UNIQUE and PRIMARY KEY: NULLS [NOT] DISTINCT, columns, INCLUDE, WITH, index."""
    not_distinct = False
    if kind == "unique" and r.accept("nulls"):
        not_distinct = r.accept("not")
        r.expect("distinct")
    if columns == ("*",):
        columns = r.parenthesized_names()
    include = r.parenthesized_names() if columns and r.accept("include") else ()
    options = pieces.definition_list(r) if r.accept("with") else ()
    if r.accept("using", "index"):
        r.expect("tablespace")
        options = (*options, Option("tablespace", r.name()))
    return Constraint(
        kind,
        columns=columns,
        include=include,
        options=options,
        nulls_not_distinct=not_distinct,
    )


def references(r: ChangeReader) -> References:
    r.expect("references")
    table = r.table_name()
    columns = r.parenthesized_names() if r.token.key == "(" else ()
    match = r.choose("full", "partial", "simple") if r.accept("match") else "simple"
    actions = {"delete": "no action", "update": "no action"}
    while r.accept("on"):
        event = r.choose("delete", "update")
        actions[event] = _key_action(r)
    return References(table, columns, match, actions["delete"], actions["update"])


def _key_action(r: ChangeReader) -> str:
    word = r.choose("no", "restrict", "cascade", "set")
    if word == "no":
        r.expect("action")
        return "no action"
    if word != "set":
        return word
    action = "set " + r.choose("null", "default")
    if r.token.key == "(":
        r.refuse(r.token, "column lists of foreign key actions are not supported")
    return action


def attributes(r: ChangeReader, constraint: Constraint) -> Constraint:
    """DEFERRABLE, INITIALLY, NOT VALID, NO INHERIT behind a constraint."""
    while True:
        if r.accept("not", "deferrable"):
            constraint = replace(constraint, deferrable=False)
        elif r.accept("deferrable"):
            constraint = replace(constraint, deferrable=True)
        elif r.accept("initially"):
            deferred = r.choose("deferred", "immediate") == "deferred"
            constraint = replace(constraint, initially_deferred=deferred)
        elif r.accept("not", "valid"):
            constraint = replace(constraint, not_valid=True)
        elif r.accept("no", "inherit"):
            constraint = replace(constraint, no_inherit=True)
        else:
            return constraint


def table_constraint(r: ChangeReader) -> Constraint:
    start = r.token
    name = r.name() if r.accept("constraint") else ""
    word = r.choose("check", "unique", "primary", "foreign", "exclude")
    if word == "check":
        constraint = Constraint("check", expression=pieces.parenthesized_expression(r))
    elif word == "foreign":
        r.expect("key")
        columns = r.parenthesized_names()
        constraint = Constraint("foreign key", columns=columns, references=references(r))
    elif word == "exclude":
        body = r.token
        if r.accept("using"):
            r.name()
        pieces.skip_parentheses(r)
        while r.token.key in ("include", "with", "where", "using"):
            r.advance()
            pieces.skip_parentheses(r)
        constraint = Constraint("exclude", expression=r.slice_from(body))
    else:
        if word == "primary":
            r.expect("key")
        kind = "unique" if word == "unique" else "primary key"
        if r.accept("using", "index"):
            constraint = Constraint(kind, index=r.name())
        else:
            constraint = _key_options(r, kind, ("*",))
    return replace(attributes(r, constraint), name=name, position=r.position(start))
