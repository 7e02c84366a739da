"""Rules that take objects of any kind: DROP, COMMENT, TRUNCATE, RENAME, OWNER, SET SCHEMA."""

from __future__ import annotations

from gpudb.optimizer.lexer import Kind
from gpudb.optimizer.parser import ChangeReader
from gpudb.optimizer.statements import pieces
from gpudb.optimizer.statements.nodes import (
    AlterOwner,
    AlterSchema,
    Comment,
    Drop,
    DropOwned,
    ObjectName,
    QualifiedName,
    Rename,
    SecurityLabel,
    Slice,
    Statement,
    Truncate,
)

_TWO_WORDS = {
    "materialized": ("view",),
    "foreign": ("table", "data"),
    "access": ("method",),
    "event": ("trigger",),
    "text": ("search",),
    "operator": ("class", "family"),
    "large": ("object",),
}
_TEXT_SEARCH = ("parser", "dictionary", "template", "configuration")
_WITH_ARGUMENTS = frozenset(("function", "procedure", "routine", "aggregate"))
_ON_TABLE = frozenset(("trigger", "rule", "policy"))
_PLAIN = frozenset(
    (
        "table",
        "sequence",
        "view",
        "index",
        "collation",
        "conversion",
        "schema",
        "statistics",
        "extension",
        "language",
        "database",
        "tablespace",
        "role",
        "user",
        "group",
        "server",
        "publication",
        "subscription",
        "type",
        "domain",
        "constraint",
        "column",
        "cast",
        "operator",
        "transform",
        "model",
        *_WITH_ARGUMENTS,
        *_ON_TABLE,
    )
)


def object_kind(r: ChangeReader) -> str:
    """The words that name a kind of object, in lower case."""
    start = r.token
    r.accept("procedural")
    first = r.token.key
    if first in _TWO_WORDS and r.peek().key in _TWO_WORDS[first]:
        r.advance()
        kind = f"{first} {r.advance().key}"
        if kind == "foreign data":
            r.expect("wrapper")
            kind += " wrapper"
        elif kind == "text search":
            kind += " " + r.choose(*_TEXT_SEARCH)
        return kind
    if first not in _PLAIN:
        r.fail(start if first == "" else r.token)
    r.advance()
    return first


def object_of(r: ChangeReader, kind: str) -> ObjectName:
    """An object of a kind, with what its kind needs to be found."""
    start = r.token
    if kind in _WITH_ARGUMENTS:
        found = pieces.function_object(r, is_aggregate=kind == "aggregate")
        if kind == "aggregate" and found.arguments is None:
            r.fail()
        return found
    if kind in ("type", "domain"):
        return pieces.type_object(r)
    if kind in ("cast", "operator", "transform", "large object"):
        return _as_text(r, kind)
    if kind in ("operator class", "operator family"):
        name = r.qualified_name()
        r.expect("using")
        return ObjectName(name, on=QualifiedName((r.name(),)))
    name = r.qualified_name()
    if kind in _ON_TABLE or kind == "constraint":
        r.expect("on")
        is_domain = kind == "constraint" and r.accept("domain")
        table = r.qualified_name()
        return ObjectName(name, on=table, text="domain" if is_domain else "")
    if kind == "column" and len(name.parts) < 2:
        raise r.error_at(start, "column name must be qualified")
    return ObjectName(name)


def _as_text(r: ChangeReader, kind: str) -> ObjectName:
    """Casts, operators, transforms, large objects: a name and the whole text."""
    start = r.token
    name = QualifiedName((kind,), r.position(start))
    if kind == "large object":
        r.number_text()
    elif kind == "cast":
        pieces.skip_parentheses(r)
    elif kind == "transform":
        r.expect("for")
        r.type_name()
        r.expect("language")
        r.name()
    else:
        parts: list[str] = []
        while r.token.kind is not Kind.OPERATOR:
            parts.append(r.name())
            r.expect(".")
        parts.append(r.advance().key)
        name = QualifiedName(tuple(parts), r.position(start))
        arguments = _operand_types(r)
        return ObjectName(name, arguments, text=r.slice_from(start).text)
    return ObjectName(name, text=r.slice_from(start).text)


def _operand_types(r: ChangeReader) -> Slice:
    """``(left, right)`` of an operator; NONE for an operand that it has not."""
    start = r.token
    r.expect("(")
    if not r.accept("none"):
        r.type_name()
    r.expect(",")
    if not r.accept("none"):
        r.type_name()
    r.expect(")")
    return r.slice_from(start)


def drop(r: ChangeReader) -> Statement:
    r.expect("drop")
    if r.accept("owned"):
        r.expect("by")
        return DropOwned(pieces.role_names(r), pieces.drop_behavior(r))
    if r.token.key == "user" and r.peek().key == "mapping":
        return _drop_user_mapping(r)
    kind = object_kind(r)
    if kind in ("constraint", "column", "large object"):
        r.fail(r.tokens[r.index - 1])
    concurrently = kind == "index" and r.accept("concurrently")
    exists = pieces.if_exists(r)
    found = [object_of(r, kind)]
    while kind not in _ON_TABLE and r.accept(","):
        found.append(object_of(r, kind))
    version = None
    if kind == "model" and r.accept("version"):
        version = r.unsigned_integer()
    if kind == "database" and r.token.key in ("with", "("):
        r.accept("with")
        pieces.skip_parentheses(r)
    cascade = pieces.drop_behavior(r)
    kind = {"user": "role", "group": "role"}.get(kind, kind)
    return Drop(kind, tuple(found), exists, cascade, concurrently, version)


def _drop_user_mapping(r: ChangeReader) -> Statement:
    r.expect("user", "mapping")
    exists = pieces.if_exists(r)
    r.expect("for")
    name = QualifiedName((pieces.role_name(r),))
    r.expect("server")
    return Drop("user mapping", (ObjectName(name, on=QualifiedName((r.name(),))),), exists)


def truncate(r: ChangeReader) -> Statement:
    r.expect("truncate")
    r.accept("table")
    tables = pieces.relations(r)
    restart = False
    if r.token.key in ("restart", "continue"):
        restart = r.advance().key == "restart"
        r.expect("identity")
    return Truncate(tables, restart, pieces.drop_behavior(r))


def comment(r: ChangeReader) -> Statement:
    r.expect("comment", "on")
    kind = object_kind(r)
    target = object_of(r, kind)
    r.expect("is")
    text = None if r.accept("null") else r.string()
    return Comment(kind, target, text)


def security_label(r: ChangeReader) -> Statement:
    r.expect("security", "label")
    provider = r.non_reserved_or_string() if r.accept("for") else ""
    r.expect("on")
    kind = object_kind(r)
    target = object_of(r, kind)
    r.expect("is")
    return SecurityLabel(kind, target, None if r.accept("null") else r.string(), provider)


_MEMBERS = {
    "type": ("attribute", "value"),
    "domain": ("constraint",),
}


def rename_owner_schema(
    r: ChangeReader, kind: str, target: ObjectName, if_exists: bool
) -> Statement | None:
    """RENAME, OWNER TO or SET SCHEMA behind an object's name; None when something else follows."""
    if r.accept("rename"):
        return _rename(r, kind, target, if_exists)
    if r.at("owner", "to"):
        r.expect("owner", "to")
        word = r.token.key
        owner = pieces.role_name(r)
        is_keyword = word in ("current_user", "current_role", "session_user")
        return AlterOwner(kind, target, owner, is_keyword)
    if r.at("set", "schema"):
        r.expect("set", "schema")
        return AlterSchema(kind, target, r.name(), if_exists)
    return None


def _rename(r: ChangeReader, kind: str, target: ObjectName, if_exists: bool) -> Rename:
    member_kind = member = ""
    if not r.accept("to"):
        if kind in _MEMBERS:
            member_kind = r.choose(*_MEMBERS[kind])
        else:
            member_kind = r.accept_any("constraint", "column") or "column"
        member = r.string() if member_kind == "value" else r.name()
        r.expect("to")
    new_name = r.string() if member_kind == "value" else r.name()
    cascade = member_kind == "attribute" and pieces.drop_behavior(r)
    return Rename(kind, target, new_name, member_kind, member, if_exists, cascade)
