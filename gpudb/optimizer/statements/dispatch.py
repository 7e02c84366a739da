"""A message to statements: the first key word of each decides which rule reads it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from gpudb import errors
from gpudb.optimizer.lexer import Token, split, tokenize_to_error
from gpudb.optimizer.parser import ChangeReader, reader_for
from gpudb.optimizer.statements import (
    alterations,
    cursors,
    definitions,
    functions,
    maintenance,
    models,
    objects,
    pieces,
    roles,
    sequences,
    tables,
    transactions,
)
from gpudb.optimizer.statements.nodes import (
    AlterAction,
    AlterDatabase,
    AlterSequence,
    AlterTable,
    CreateTableAs,
    ObjectName,
    Option,
    QualifiedName,
    Relation,
    Slice,
    Statement,
    Unsupported,
)

CACHED_SCRIPTS_MAX = 256
CACHED_SCRIPT_MAX = 64 * 1024
"""Characters of a message whose statements are kept."""

Rule = Callable[[ChangeReader], Statement]


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A statement and its own text, with the offset of that text in the message."""

    statement: Statement
    source: Slice


_SCRIPTS: OrderedDict[str, tuple[ParsedStatement, ...]] = OrderedDict()


def parse_script(text: str) -> tuple[ParsedStatement, ...]:
    """The statements of a message; none for spaces and comments only.

    Everything is checked, queries too, before anything is returned, as PostgreSQL does. Raises
    SyntaxError (42601) with a position in the whole message, FeatureNotSupported (0A000).
    """
    found = _SCRIPTS.get(text)
    if found is not None:
        return found
    tokens, broken = tokenize_to_error(text)
    try:
        found = tuple(_parse(text, statement) for statement in split(tokens))
    except errors.SyntaxError as error:
        if broken is None or error.position != tokens[-1].start + 1:
            raise
        raise broken from None
    except RecursionError:
        raise errors.StatementTooComplex("stack depth limit exceeded") from None
    if broken is not None:
        raise broken
    if len(text) <= CACHED_SCRIPT_MAX:
        _SCRIPTS[text] = found
        while len(_SCRIPTS) > CACHED_SCRIPTS_MAX:
            _SCRIPTS.popitem(last=False)
    return found


def parse_statement(text: str) -> Statement:
    """The only statement of a text; raises SyntaxError when there is not exactly one."""
    found = parse_script(text)
    if len(found) != 1:
        raise errors.SyntaxError("cannot insert multiple commands into a prepared statement")
    return found[0].statement


def _parse(text: str, tokens: list[Token]) -> ParsedStatement:
    r = reader_for(text, tokens)
    statement = statement_rule(r)
    r.expect_end()
    start, end = tokens[0].start, tokens[-2].end
    return ParsedStatement(statement, Slice(text[start:end], start))


def statement_rule(r: ChangeReader) -> Statement:
    """The statement at the cursor."""
    key = r.token.key
    if key in pieces.QUERY_STARTS:
        at = tables.find_into(r.tokens)
        return pieces.query_statement(r) if at < 0 else tables.select_into(r, at)
    if key in pieces.CHANGE_STARTS:
        return pieces.query_statement(r)
    rule = _RULES.get(key)
    if rule is None:
        r.fail()
    return rule(r)


def _explain(r: ChangeReader) -> Statement:
    return maintenance.explain(r, _explainable)


def _explainable(r: ChangeReader) -> Statement:
    key = r.token.key
    if key in pieces.QUERY_STARTS or key in pieces.CHANGE_STARTS:
        return pieces.query_statement(r)
    if key in ("create", "declare", "execute", "refresh", "train"):
        statement = statement_rule(r)
        if key != "create" or isinstance(statement, CreateTableAs):
            return statement
    raise r.failure()


def _copy(r: ChangeReader) -> Statement:
    is_model = r.peek().key == "model" and r.peek(2).key not in ("from", "to", "(", ".")
    return models.copy_model(r) if is_model else maintenance.copy(r)


# --- CREATE ---------------------------------------------------------------------------------------


def _create(r: ChangeReader) -> Statement:
    r.expect("create")
    or_replace = r.accept("or", "replace")
    persistence = tables.persistence(r)
    key = r.token.key
    if key in ("view", "recursive"):
        return definitions.create_view(r, or_replace, persistence)
    if key in ("function", "procedure"):
        return functions.create_function(r, or_replace)
    if or_replace or persistence != "permanent":
        if not or_replace and key == "table":
            return tables.create_table(r, persistence)
        if not or_replace and key == "sequence":
            return sequences.create_sequence(r, persistence)
        if not or_replace or key not in _REPLACEABLE:
            r.fail()
    elif key in _CREATE:
        return _CREATE[key](r)
    return _unsupported(r, "CREATE", _UNSUPPORTED_CREATE)


def _unsupported(r: ChangeReader, verb: str, known: tuple[str, ...]) -> Unsupported:
    """A statement of a kind that PostgreSQL has and gpudb has not: named, not read."""
    for kind in known:
        words = kind.split()
        if r.at(*words):
            r.expect(*words)
            pieces.rest(r)
            name = kind.upper().removeprefix("TRUSTED ").removeprefix("PROCEDURAL ")
            return Unsupported(f"{verb} {name}")
    raise r.failure()


_REPLACEABLE = (
    "aggregate",
    "rule",
    "trigger",
    "language",
    "trusted",
    "procedural",
    "transform",
)
_UNSUPPORTED_CREATE = (
    "access method",
    "aggregate",
    "cast",
    "collation",
    "conversion",
    "event trigger",
    "foreign data wrapper",
    "foreign table",
    "trusted procedural language",
    "trusted language",
    "procedural language",
    "language",
    "operator class",
    "operator family",
    "operator",
    "policy",
    "publication",
    "rule",
    "server",
    "statistics",
    "subscription",
    "tablespace",
    "text search parser",
    "text search dictionary",
    "text search template",
    "text search configuration",
    "transform",
    "constraint trigger",
    "trigger",
    "user mapping",
)


def _create_user(r: ChangeReader) -> Statement:
    if r.peek().key == "mapping":
        return _unsupported(r, "CREATE", _UNSUPPORTED_CREATE)
    return roles.create_role(r)


def _create_schema(r: ChangeReader) -> Statement:
    return definitions.create_schema(r, _schema_element)


def _schema_element(r: ChangeReader) -> Statement:
    return roles.grant(r) if r.token.key == "grant" else _create(r)


_CREATE: dict[str, Rule] = {
    "table": lambda r: tables.create_table(r, "permanent"),
    "materialized": definitions.create_materialized_view,
    "unique": definitions.create_index,
    "index": definitions.create_index,
    "sequence": lambda r: sequences.create_sequence(r, "permanent"),
    "schema": _create_schema,
    "database": definitions.create_database,
    "extension": definitions.create_extension,
    "type": definitions.create_type,
    "domain": definitions.create_domain,
    "role": roles.create_role,
    "user": _create_user,
    "group": roles.create_role,
}


# --- ALTER ----------------------------------------------------------------------------------------

_WITH_ACTIONS = frozenset(
    (
        "table",
        "view",
        "materialized view",
        "index",
        "foreign table",
        "type",
        "domain",
        "sequence",
    )
)


def _alter(r: ChangeReader) -> Statement:
    r.expect("alter")
    key = r.token.key
    if key == "system":
        return roles.alter_system(r)
    if key == "default":
        return roles.alter_default_privileges(r)
    kind = objects.object_kind(r)
    if kind in ("role", "user", "group"):
        return _alter_role(r, kind)
    if kind in ("table", "index", "materialized view") and r.accept("all"):
        return _alter_all(r, kind)
    exists = pieces.if_exists(r)
    if kind == "model":
        action = models.alter_model(r)
        if action is not None:
            return action
    if kind in (
        "table",
        "foreign table",
        "view",
        "index",
        "materialized view",
        "sequence",
    ):
        return _alter_relation(r, kind, exists)
    target = objects.object_of(r, kind)
    if kind == "database":
        return _alter_database(r, target.name.name, target)
    general = objects.rename_owner_schema(r, kind, target, exists)
    if general is not None:
        return general
    if kind == "type" and r.at("add", "value"):
        return _add_value(r, target.name)
    if kind in _WITH_ACTIONS:
        return alterations.alter_table(r, kind, Relation(target.name), exists)
    pieces.rest(r)
    return Unsupported(f"ALTER {kind.upper()}")


def _alter_role(r: ChangeReader, kind: str) -> Statement:
    if r.token.key == "mapping":
        pieces.rest(r)
        return Unsupported("ALTER USER MAPPING")
    if r.peek().key == "rename":
        name = objects.object_of(r, "role")
        renamed = objects.rename_owner_schema(r, "role", name, False)
        assert renamed is not None
        return renamed
    return roles.alter_role(r, kind)


def _alter_all(r: ChangeReader, kind: str) -> Statement:
    r.expect("in", "tablespace")
    pieces.rest(r)
    return Unsupported(f"ALTER {kind.upper()} ALL IN TABLESPACE")


def _alter_relation(r: ChangeReader, kind: str, exists: bool) -> Statement:
    start = r.index
    target = pieces.relation(r)
    name = ObjectName(target.name)
    if r.token.key in ("rename", "set") or r.at("owner", "to"):
        is_schema = r.token.key != "set" or r.peek().key == "schema"
        general = objects.rename_owner_schema(r, kind, name, exists) if is_schema else None
        if general is not None and not r.at(","):
            return general
        r.seek(start)
        pieces.relation(r)
    if kind == "sequence" and r.token.key != "set":
        r.seek(start)
        altered = sequences.alter_sequence(r)
        assert isinstance(altered, AlterSequence)
        return AlterSequence(altered.name, altered.options, exists)
    if kind == "index" and r.accept("depends"):
        pieces.rest(r)
        return Unsupported("ALTER INDEX DEPENDS ON EXTENSION")
    return alterations.alter_table(r, kind, target, exists)


def _alter_database(r: ChangeReader, name: str, target: ObjectName) -> Statement:
    general = objects.rename_owner_schema(r, "database", target, False)
    if general is not None:
        return general
    if r.at("set", "tablespace"):
        r.expect("set", "tablespace")
        return AlterDatabase(name, (Option("tablespace", r.name()),))
    if r.token.key in ("set", "reset"):
        return AlterDatabase(name, setting=roles.setting(r))
    if r.accept("refresh"):
        r.expect("collation", "version")
        return AlterDatabase(name, (Option("refresh collation version"),))
    r.accept("with")
    return AlterDatabase(name, definitions.database_options(r))


def _add_value(r: ChangeReader, name: QualifiedName) -> AlterTable:
    start = r.token
    r.expect("add", "value")
    exists_ok = pieces.if_not_exists(r)
    value = r.string()
    word = r.accept_any("before", "after")
    action = AlterAction(
        "add value",
        value=value,
        position_word=word,
        name=r.string() if word else "",
        if_not_exists=exists_ok,
        position=r.position(start),
    )
    return AlterTable("type", Relation(name), (action,))


def _import(r: ChangeReader) -> Statement:
    r.expect("import", "foreign", "schema")
    pieces.rest(r)
    return Unsupported("IMPORT FOREIGN SCHEMA")


_RULES: dict[str, Rule] = {
    "begin": transactions.begin,
    "start": transactions.start,
    "commit": transactions.commit,
    "end": transactions.commit,
    "rollback": transactions.rollback,
    "abort": transactions.rollback,
    "savepoint": transactions.savepoint,
    "release": transactions.release,
    "set": transactions.set_statement,
    "reset": transactions.reset,
    "show": transactions.show,
    "discard": transactions.discard,
    "prepare": cursors.prepare,
    "execute": cursors.execute,
    "deallocate": cursors.deallocate,
    "declare": cursors.declare,
    "fetch": cursors.fetch,
    "move": cursors.fetch,
    "close": cursors.close,
    "listen": cursors.listen,
    "unlisten": cursors.unlisten,
    "notify": cursors.notify,
    "lock": maintenance.lock,
    "vacuum": maintenance.vacuum,
    "analyze": maintenance.vacuum,
    "analyse": maintenance.vacuum,
    "reindex": maintenance.reindex,
    "cluster": maintenance.cluster,
    "checkpoint": maintenance.checkpoint,
    "load": maintenance.load,
    "do": maintenance.do,
    "call": maintenance.call,
    "explain": _explain,
    "copy": _copy,
    "create": _create,
    "alter": _alter,
    "drop": objects.drop,
    "truncate": objects.truncate,
    "comment": objects.comment,
    "security": objects.security_label,
    "grant": roles.grant,
    "revoke": roles.revoke,
    "reassign": roles.reassign,
    "refresh": definitions.refresh,
    "import": _import,
    "train": models.train,
    "evaluate": models.evaluate,
    "verify": models.verify,
    "cancel": models.control,
    "pause": models.control,
    "resume": models.control,
}
