"""Rules for prepared statements, cursors and notifications."""

from __future__ import annotations

from gpudb.optimizer.lexer import Kind
from gpudb.optimizer.parser import ChangeReader
from gpudb.optimizer.statements import pieces
from gpudb.optimizer.statements.nodes import (
    CloseCursor,
    Deallocate,
    DeclareCursor,
    Execute,
    Fetch,
    Listen,
    Notify,
    Prepare,
    PreparedTransaction,
    Slice,
    Statement,
    TypeName,
    Unlisten,
)


def prepare(r: ChangeReader) -> Statement:
    r.expect("prepare")
    if r.token.key == "transaction" and r.peek().kind is Kind.STRING:
        r.advance()
        return PreparedTransaction("PREPARE TRANSACTION", r.string())
    name = r.name()
    types: list[TypeName] = []
    if r.accept("("):
        types.append(r.type_name())
        while r.accept(","):
            types.append(r.type_name())
        r.expect(")")
    r.expect("as")
    return Prepare(name, tuple(types), pieces.query_statement(r))


def execute(r: ChangeReader) -> Execute:
    r.expect("execute")
    name = r.name()
    arguments: list[Slice] = []
    if r.accept("("):
        arguments.append(pieces.expression_slice(r))
        while r.accept(","):
            arguments.append(pieces.expression_slice(r))
        r.expect(")")
    return Execute(name, tuple(arguments))


def deallocate(r: ChangeReader) -> Statement:
    r.expect("deallocate")
    if r.token.key == "prepare" and r.peek().kind in (Kind.WORD, Kind.QUOTED):
        r.advance()
    return Deallocate(None if r.accept("all") else r.name())


def declare(r: ChangeReader) -> Statement:
    r.expect("declare")
    name = r.name()
    binary = False
    scroll: bool | None = None
    insensitive: bool | None = None
    while (word := r.accept_any("binary", "insensitive", "asensitive", "scroll", "no")) != "":
        if word == "binary":
            binary = True
        elif word == "no":
            r.expect("scroll")
            scroll = False
        elif word == "scroll":
            scroll = True
        else:
            insensitive = word == "insensitive"
    r.expect("cursor")
    hold = False
    if r.token.key in ("with", "without") and r.peek().key == "hold":
        hold = r.advance().key == "with"
        r.advance()
    r.expect("for")
    query = pieces.query_statement(r, changes=False)
    return DeclareCursor(name, query, binary, scroll, insensitive, hold)


_SINGLE = {
    "next": ("forward", 1),
    "prior": ("backward", 1),
    "first": ("absolute", 1),
    "last": ("absolute", -1),
}


def fetch(r: ChangeReader) -> Statement:
    is_move = r.choose("fetch", "move") == "move"
    direction, count = _direction(r)
    return Fetch(r.name(), direction, count, is_move)


def _direction(r: ChangeReader) -> tuple[str, int | None]:
    """The direction and count, up to the cursor's name."""
    word = r.token.key
    is_name = r.peek().kind is Kind.END
    if is_name:
        return "forward", 1
    if word in _SINGLE:
        r.advance()
        r.accept_any("from", "in")
        return _SINGLE[word]
    if word in ("absolute", "relative") and (
        r.peek().kind is Kind.INTEGER or r.peek().key in ("+", "-")
    ):
        r.advance()
        return word, _count_before_name(r)
    direction = r.accept_any("forward", "backward") or "forward"
    if r.accept("all"):
        r.accept_any("from", "in")
        return direction, None
    if pieces.at_number(r):
        return direction, _count_before_name(r)
    r.accept_any("from", "in")
    return direction, 1


def _count_before_name(r: ChangeReader) -> int:
    count = r.signed_integer()
    r.accept_any("from", "in")
    return count


def close(r: ChangeReader) -> Statement:
    r.expect("close")
    return CloseCursor(None if r.accept("all") else r.name())


def listen(r: ChangeReader) -> Statement:
    r.expect("listen")
    return Listen(r.name())


def unlisten(r: ChangeReader) -> Statement:
    r.expect("unlisten")
    return Unlisten(None if r.accept("*") else r.name())


def notify(r: ChangeReader) -> Statement:
    r.expect("notify")
    channel = r.name()
    return Notify(channel, r.string() if r.accept(",") else "")
