"""What many statements share: queries and expressions as slices, option lists, object names."""

from __future__ import annotations

from gpudb import errors
from gpudb.optimizer.lexer import Kind, Token
from gpudb.optimizer.parser import ChangeReader, remember
from gpudb.optimizer.statements.nodes import (
    ObjectName,
    Option,
    QualifiedName,
    QueryStatement,
    Relation,
    Slice,
    TypeName,
)
from gpudb.optimizer.statements.parameters import argument_types

_KINDS = {
    "values": "values",
    "insert": "insert",
    "update": "update",
    "delete": "delete",
    "merge": "merge",
}
QUERY_STARTS = frozenset(("select", "values", "table", "with", "("))
CHANGE_STARTS = frozenset(("insert", "update", "delete", "merge"))


def query_statement(r: ChangeReader, *, changes: bool = True) -> QueryStatement:
    """A query, or with ``changes`` also INSERT, UPDATE, DELETE, MERGE; its tree is remembered."""
    start = r.token
    if start.key not in QUERY_STARTS and not (changes and start.key in CHANGE_STARTS):
        r.fail()
    tree = r.preparable() if changes else r.query()
    source = r.slice_from(start)
    remember(source, tree)
    return QueryStatement(source, _KINDS.get(tree.key, "select"))


def parenthesized_query(r: ChangeReader) -> QueryStatement:
    """``( query )``, without the parentheses."""
    r.expect("(")
    found = query_statement(r, changes=False)
    r.expect(")")
    return found


def expression_slice(r: ChangeReader) -> Slice:
    start = r.token
    r.expression()
    return r.slice_from(start)


def b_expression_slice(r: ChangeReader) -> Slice:
    start = r.token
    r.b_expression()
    return r.slice_from(start)


def parenthesized_expression(r: ChangeReader) -> Slice:
    r.expect("(")
    found = expression_slice(r)
    r.expect(")")
    return found


def skip_parentheses(r: ChangeReader) -> Slice:
    """Everything from an opening parenthesis to the one that closes it."""
    start = r.token
    r.expect("(")
    depth = 1
    while depth:
        if r.at_end():
            r.fail()
        key = r.advance().key
        depth += (key == "(") - (key == ")")
    return r.slice_from(start)


def rest(r: ChangeReader) -> Slice:
    """Everything up to the end of the statement."""
    start = r.token
    while not r.at_end():
        r.advance()
    return r.slice_from(start)


def if_exists(r: ChangeReader) -> bool:
    return r.accept("if", "exists")


def if_not_exists(r: ChangeReader) -> bool:
    return r.accept("if", "not", "exists")


def drop_behavior(r: ChangeReader) -> bool:
    """CASCADE or RESTRICT; True for CASCADE."""
    return r.accept_any("cascade", "restrict") == "cascade"


def collation(r: ChangeReader) -> QualifiedName | None:
    return r.qualified_name() if r.accept("collate") else None


def relation(r: ChangeReader) -> Relation:
    """``[ONLY] name [*]``"""
    only = r.accept("only")
    enclosed = only and r.accept("(")
    name = r.table_name()
    if enclosed:
        r.expect(")")
    else:
        r.accept("*")
    return Relation(name, only)


def relations(r: ChangeReader) -> tuple[Relation, ...]:
    found = [relation(r)]
    while r.accept(","):
        found.append(relation(r))
    return tuple(found)


def qualified_names(r: ChangeReader) -> tuple[QualifiedName, ...]:
    found = [r.qualified_name()]
    while r.accept(","):
        found.append(r.qualified_name())
    return tuple(found)


def role_name(r: ChangeReader) -> str:
    """A role's name; CURRENT_USER and its like come as those words."""
    word = r.accept_any("current_user", "current_role", "session_user")
    if word:
        return word
    token = r.token
    name = r.non_reserved()
    if name in ("public", "none") and token.kind is Kind.WORD:
        raise errors.ReservedName(f'role name "{name}" is reserved', position=r.position(token))
    return name


def role_names(r: ChangeReader) -> tuple[str, ...]:
    found = [role_name(r)]
    while r.accept(","):
        found.append(role_name(r))
    return tuple(found)


def boolean_or_string(r: ChangeReader) -> str:
    """TRUE, FALSE, ON, a word that is not reserved, or a string."""
    return r.accept_any("true", "false", "on") or r.non_reserved_or_string()


def at_number(r: ChangeReader) -> bool:
    token = r.token
    return token.kind in (Kind.INTEGER, Kind.DECIMAL) or token.key in ("+", "-")


# --- option lists ---------------------------------------------------------------------------------


def generic_options(r: ChangeReader) -> tuple[Option, ...]:
    """``(name [value], ...)`` of EXPLAIN, COPY, VACUUM: values are words, numbers, lists, ``*``."""
    r.expect("(")
    found = [_generic_option(r)]
    while r.accept(","):
        found.append(_generic_option(r))
    r.expect(")")
    return tuple(found)


def _generic_option(r: ChangeReader) -> Option:
    start = r.token
    name = r.accept_any("analyze", "analyse") or r.label()
    return Option("analyze" if name == "analyse" else name, _generic_value(r), r.position(start))


def _generic_value(r: ChangeReader) -> str | tuple[str, ...] | None:
    if r.token.key in (",", ")"):
        return None
    if r.accept("*"):
        return "*"
    if r.accept("("):
        items = [boolean_or_string(r)]
        while r.accept(","):
            items.append(boolean_or_string(r))
        r.expect(")")
        return tuple(items)
    return r.number_text() if at_number(r) else boolean_or_string(r)


def definition_list(r: ChangeReader) -> tuple[Option, ...]:
    """``(name [= value], ...)`` of WITH and of CREATE TYPE; names may be qualified."""
    r.expect("(")
    found = [_definition(r)]
    while r.accept(","):
        found.append(_definition(r))
    r.expect(")")
    return tuple(found)


def _definition(r: ChangeReader) -> Option:
    start = r.token
    name = r.label()
    if r.accept("."):
        name += "." + r.label()
    value = definition_value(r) if r.accept("=") else None
    return Option(name, value, r.position(start))


def definition_value(r: ChangeReader) -> str:
    """A string, number, operator, type name or word, as text."""
    token = r.token
    if token.kind is Kind.STRING:
        return r.advance().value
    if token.kind in (Kind.INTEGER, Kind.DECIMAL):
        return r.number_text()
    if token.kind is Kind.OPERATOR:
        r.advance()
        follows = r.token.kind in (Kind.INTEGER, Kind.DECIMAL)
        if token.key in ("+", "-") and follows:
            return ("-" if token.key == "-" else "") + r.number_text()
        return token.key
    return _word_or_type(r, token)


def _word_or_type(r: ChangeReader, token: Token) -> str:
    following = r.peek().key
    if token.kind is Kind.WORD and following in (",", ")", ""):
        return r.advance().value
    if r.accept("none"):
        return "none"
    start = r.token
    r.type_name()
    return r.slice_from(start).text


def reloptions(r: ChangeReader) -> tuple[Option, ...]:
    """``WITH (...)``, or nothing."""
    return definition_list(r) if r.accept("with") else ()


# --- objects --------------------------------------------------------------------------------------


def object_name(r: ChangeReader) -> ObjectName:
    return ObjectName(r.qualified_name())


def function_object(r: ChangeReader, *, is_aggregate: bool = False) -> ObjectName:
    """A function's name with its argument types, if they are given."""
    name = function_path(r)
    if r.token.key != "(":
        return ObjectName(name)
    start = r.token
    types = argument_types(r, is_aggregate=is_aggregate)
    return ObjectName(name, r.slice_from(start), argument_types=types)


def function_path(r: ChangeReader) -> QualifiedName:
    """A function's possibly qualified name."""
    start = r.token
    if r.peek().key == ".":
        return r.qualified_name()
    return QualifiedName((r.type_or_function_name(),), r.position(start))


def type_object(r: ChangeReader) -> ObjectName:
    """A type's name (for a key-word type its catalog name)."""
    start = r.token
    found: TypeName = r.type_name(allow_set=False)
    parts = (found.schema, found.name) if found.schema else (found.name,)
    return ObjectName(QualifiedName(parts, r.position(start)))
