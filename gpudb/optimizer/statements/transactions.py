"""Rules for transactions and settings: BEGIN, COMMIT, SAVEPOINT, SET, RESET, SHOW, DISCARD."""

from __future__ import annotations

from gpudb.optimizer.lexer import Kind
from gpudb.optimizer.parser import ChangeReader
from gpudb.optimizer.statements import pieces
from gpudb.optimizer.statements.nodes import (
    Begin,
    Commit,
    Discard,
    PreparedTransaction,
    ReleaseSavepoint,
    ResetVariable,
    Rollback,
    RollbackToSavepoint,
    Savepoint,
    SetConstraints,
    SetTransaction,
    SetTransactionSnapshot,
    SetVariable,
    ShowVariable,
    Statement,
    TransactionModes,
)

_MODE_WORDS = frozenset(("isolation", "read", "deferrable", "not"))


def begin(r: ChangeReader) -> Statement:
    r.expect("begin")
    r.accept_any("work", "transaction")
    return Begin(_optional_modes(r))


def start(r: ChangeReader) -> Statement:
    r.expect("start", "transaction")
    return Begin(_optional_modes(r), is_start=True)


def _optional_modes(r: ChangeReader) -> TransactionModes:
    return transaction_modes(r) if r.token.key in _MODE_WORDS else TransactionModes()


def transaction_modes(r: ChangeReader) -> TransactionModes:
    """At least one mode; commas between them may be left out, the last of a kind holds."""
    isolation: str | None = None
    read_only: bool | None = None
    deferrable: bool | None = None
    while True:
        word = r.choose(*_MODE_WORDS)
        if word == "isolation":
            r.expect("level")
            isolation = _isolation(r)
        elif word == "read":
            read_only = r.choose("only", "write") == "only"
        else:
            if word == "not":
                r.expect("deferrable")
            deferrable = word == "deferrable"
        if not r.accept(",") and r.token.key not in _MODE_WORDS:
            return TransactionModes(isolation, read_only, deferrable)


def _isolation(r: ChangeReader) -> str:
    word = r.choose("read", "repeatable", "serializable")
    if word == "read":
        return "read " + r.choose("committed", "uncommitted")
    if word == "repeatable":
        r.expect("read")
        return "repeatable read"
    return word


def _chain(r: ChangeReader) -> bool:
    if not r.accept("and"):
        return False
    chained = not r.accept("no")
    r.expect("chain")
    return chained


def commit(r: ChangeReader) -> Statement:
    word = r.choose("commit", "end")
    if word == "commit" and r.accept("prepared"):
        return PreparedTransaction("COMMIT PREPARED", r.string())
    r.accept_any("work", "transaction")
    return Commit(_chain(r))


def rollback(r: ChangeReader) -> Statement:
    word = r.choose("rollback", "abort")
    if word == "rollback" and r.accept("prepared"):
        return PreparedTransaction("ROLLBACK PREPARED", r.string())
    r.accept_any("work", "transaction")
    if word == "rollback" and r.accept("to"):
        if r.token.key == "savepoint" and r.peek().kind in (Kind.WORD, Kind.QUOTED):
            r.advance()
        return RollbackToSavepoint(r.name())
    return Rollback(_chain(r))


def savepoint(r: ChangeReader) -> Statement:
    r.expect("savepoint")
    return Savepoint(r.name())


def release(r: ChangeReader) -> Statement:
    r.expect("release")
    if r.token.key == "savepoint" and r.peek().kind in (Kind.WORD, Kind.QUOTED):
        r.advance()
    return ReleaseSavepoint(r.name())


# --- settings -------------------------------------------------------------------------------------


def variable_name(r: ChangeReader) -> str:
    """``name[.name ...]``"""
    return str(r.qualified_name())


def set_statement(r: ChangeReader) -> Statement:
    r.expect("set")
    if r.accept("constraints"):
        return _constraints(r)
    if r.at("session", "characteristics"):
        r.expect("session", "characteristics", "as", "transaction")
        return SetTransaction(transaction_modes(r), is_session=True)
    is_local = False
    if r.token.key in ("local", "session") and r.peek().key not in (
        "to",
        "=",
        ".",
        "authorization",
    ):
        is_local = r.advance().key == "local"
    if r.accept("transaction"):
        if r.accept("snapshot"):
            return SetTransactionSnapshot(r.string())
        return SetTransaction(transaction_modes(r))
    return set_rest(r, is_local=is_local)


def set_rest(r: ChangeReader, *, is_local: bool = False) -> SetVariable:
    """What follows SET [LOCAL | SESSION] for one variable, also in ALTER ROLE and functions."""
    if r.accept("time", "zone"):
        return _time_zone(r, is_local)
    if r.accept("session", "authorization"):
        return _word_variable(r, "session_authorization", is_local)
    word = r.token.key
    follows = r.peek()
    if follows.key not in ("to", "=", ".", "from"):
        if word == "catalog":
            r.refuse(follows, "current database cannot be changed")
        if r.accept_any("role", "schema"):
            name = {"role": "role", "schema": "search_path"}[word]
            if word == "role":
                return _word_variable(r, name, is_local)
            return SetVariable(name, (r.string(),), is_local)
        if r.accept("names"):
            return _names(r, is_local)
        if r.accept("xml", "option"):
            return SetVariable("xmloption", (r.choose("document", "content"),), is_local)
    name = variable_name(r)
    if r.accept("from", "current"):
        return SetVariable(name, None, is_local, from_current=True)
    r.choose("to", "=")
    if r.accept("default"):
        return SetVariable(name, None, is_local)
    values = [_value(r)]
    while r.accept(","):
        values.append(_value(r))
    return SetVariable(name, tuple(values), is_local)


def _value(r: ChangeReader) -> str:
    return r.number_text() if pieces.at_number(r) else pieces.boolean_or_string(r)


def _names(r: ChangeReader, is_local: bool) -> SetVariable:
    if r.at_end() or r.accept("default"):
        return SetVariable("client_encoding", None, is_local)
    return SetVariable("client_encoding", (r.string(),), is_local)


def _word_variable(r: ChangeReader, name: str, is_local: bool) -> SetVariable:
    if name == "session_authorization" and r.accept("default"):
        return SetVariable(name, None, is_local)
    return SetVariable(name, (r.non_reserved_or_string(),), is_local)


def _time_zone(r: ChangeReader, is_local: bool) -> SetVariable:
    if r.accept_any("default", "local"):
        return SetVariable("timezone", None, is_local)
    if r.token.key == "interval":
        source = r.token
        r.keyword_type(is_constant=True)
        r.string()
        r.interval_fields()
        text = r.slice_from(source).text
        return SetVariable("timezone", (text,), is_local, is_interval=True)
    if pieces.at_number(r):
        return SetVariable("timezone", (r.number_text(),), is_local)
    if r.token.kind is Kind.STRING:
        return SetVariable("timezone", (r.string(),), is_local)
    return SetVariable("timezone", (r.name(),), is_local)


def _constraints(r: ChangeReader) -> SetConstraints:
    names = None if r.accept("all") else pieces.qualified_names(r)
    return SetConstraints(names, r.choose("deferred", "immediate") == "deferred")


def _named_variable(r: ChangeReader) -> str | None:
    """The variable of SHOW and RESET, None for ALL."""
    if r.accept("all"):
        return None
    if r.accept("time", "zone"):
        return "timezone"
    if r.accept("transaction", "isolation"):
        r.expect("level")
        return "transaction_isolation"
    if r.accept("session", "authorization"):
        return "session_authorization"
    return variable_name(r)


def reset(r: ChangeReader) -> ResetVariable:
    r.expect("reset")
    return ResetVariable(_named_variable(r))


def show(r: ChangeReader) -> Statement:
    r.expect("show")
    return ShowVariable(_named_variable(r))


def discard(r: ChangeReader) -> Statement:
    r.expect("discard")
    word = r.choose("all", "plans", "sequences", "temp", "temporary")
    return Discard("temp" if word == "temporary" else word)
