"""Rules for sequences and their options."""

from __future__ import annotations

from gpudb.optimizer.parser import ChangeReader
from gpudb.optimizer.statements import pieces
from gpudb.optimizer.statements.nodes import (
    AlterSequence,
    CreateSequence,
    Option,
    Statement,
)

_STARTS = frozenset(
    (
        "as",
        "cache",
        "cycle",
        "no",
        "increment",
        "maxvalue",
        "minvalue",
        "owned",
        "sequence",
        "start",
        "restart",
    )
)


def sequence_options(r: ChangeReader, *, parenthesized: bool = False) -> tuple[Option, ...]:
    if parenthesized:
        r.expect("(")
    found: list[Option] = []
    while r.token.key in _STARTS:
        found.append(sequence_option(r))
    if parenthesized:
        if not found:
            r.fail()
        r.expect(")")
    return tuple(found)


def sequence_option(r: ChangeReader) -> Option:
    start = r.token
    at = r.position(start)
    word = r.choose(*_STARTS)
    if word == "as":
        return Option("as", r.type_name().name, at)
    if word == "cycle":
        return Option("cycle", None, at)
    if word == "no":
        return Option("no " + r.choose("maxvalue", "minvalue", "cycle"), None, at)
    if word == "owned":
        r.expect("by")
        return Option("owned by", str(r.qualified_name()), at)
    if word == "sequence":
        r.expect("name")
        return Option("sequence name", str(r.qualified_name()), at)
    if word == "increment":
        r.accept("by")
    elif word == "start":
        r.accept("with")
    elif word == "restart" and not r.accept("with") and not pieces.at_number(r):
        return Option("restart", None, at)
    return Option(word, r.number_text(), at)


def create_sequence(r: ChangeReader, persistence: str) -> Statement:
    """CREATE SEQUENCE from the word SEQUENCE on."""
    r.expect("sequence")
    exists_ok = pieces.if_not_exists(r)
    name = r.table_name()
    return CreateSequence(name, sequence_options(r), persistence, exists_ok)


def alter_sequence(r: ChangeReader) -> Statement:
    """ALTER SEQUENCE from its name on, with options."""
    exists = pieces.if_exists(r)
    name = r.table_name()
    start = r.token
    options = sequence_options(r)
    if not options:
        r.fail(start)
    return AlterSequence(name, options, exists)
