"""Rules for the actions of ALTER TABLE and its relatives."""

from __future__ import annotations

from gpudb.optimizer.parser import ChangeReader
from gpudb.optimizer.statements import pieces, tables
from gpudb.optimizer.statements.nodes import (
    AlterAction,
    AlterTable,
    Constraint,
    Option,
    Relation,
    Statement,
)
from gpudb.optimizer.statements.sequences import sequence_option, sequence_options


def alter_table(r: ChangeReader, kind: str, target: Relation, if_exists: bool) -> Statement:
    """The comma-separated actions after the relation's name."""
    actions = [_action(r, kind)]
    while r.accept(","):
        actions.append(_action(r, kind))
    return AlterTable(kind, target, tuple(actions), if_exists)


def _action(r: ChangeReader, kind: str) -> AlterAction:
    start = r.token
    word = r.choose(*_ACTIONS)
    at = r.position(start)
    if word == "add":
        return _add(r, kind, at)
    if word == "drop":
        return _drop(r, kind, at)
    if word == "alter":
        return _alter(r, kind, at)
    if word == "set":
        return _set(r, at)
    if word == "reset":
        return AlterAction("reset options", options=pieces.definition_list(r), position=at)
    if word == "owner":
        r.expect("to")
        return AlterAction("owner", value=pieces.role_name(r), position=at)
    if word == "validate":
        r.expect("constraint")
        return AlterAction("validate constraint", name=r.name(), position=at)
    if word in ("enable", "disable", "force"):
        return _switch(r, word, at)
    return _rest(r, word, at)


_ACTIONS = (
    "add",
    "drop",
    "alter",
    "set",
    "reset",
    "owner",
    "validate",
    "enable",
    "disable",
    "force",
    "no",
    "inherit",
    "of",
    "not",
    "cluster",
    "replica",
    "attach",
    "detach",
    "options",
)


def _add(r: ChangeReader, kind: str, at: int) -> AlterAction:
    if kind == "type":
        r.expect("attribute")
        definition = tables.column_definition(r)
        return AlterAction(
            "add attribute",
            definition=definition,
            cascade=pieces.drop_behavior(r),
            position=at,
        )
    if r.token.key in (
        "constraint",
        "check",
        "unique",
        "primary",
        "exclude",
        "foreign",
    ):
        if kind == "domain":
            return AlterAction("add constraint", constraint=domain_constraint(r), position=at)
        constraint = tables.table_constraint(r)
        return AlterAction("add constraint", constraint=constraint, position=at)
    r.accept("column")
    exists_ok = pieces.if_not_exists(r)
    definition = tables.column_definition(r)
    return AlterAction("add column", definition=definition, if_not_exists=exists_ok, position=at)


def domain_constraint(r: ChangeReader) -> Constraint:
    """[CONSTRAINT name] CHECK (...) [NOT VALID] of ALTER DOMAIN ADD."""
    return tables.table_constraint(r)


def _drop(r: ChangeReader, kind: str, at: int) -> AlterAction:
    if kind == "domain" and r.token.key in ("default", "not"):
        if r.accept("default"):
            return AlterAction("drop default", position=at)
        r.expect("not", "null")
        return AlterAction("drop not null", position=at)
    if r.accept("constraint"):
        what = "drop constraint"
    elif kind == "type":
        r.expect("attribute")
        what = "drop attribute"
    else:
        r.accept("column")
        what = "drop column"
    exists = pieces.if_exists(r)
    name = r.name()
    cascade = pieces.drop_behavior(r)
    return AlterAction(what, name=name, if_exists=exists, cascade=cascade, position=at)


def _alter(r: ChangeReader, kind: str, at: int) -> AlterAction:
    if r.accept("constraint"):
        name = r.name()
        constraint = tables.attributes(r, Constraint("alter"))
        return AlterAction("alter constraint", name=name, constraint=constraint, position=at)
    if kind == "type":
        r.expect("attribute")
    else:
        r.accept("column")
    name = str(r.unsigned_integer()) if pieces.at_number(r) else r.name()
    if r.token.key == "type" or r.at("set", "data"):
        return _alter_type(r, name, kind, at)
    word = r.choose("set", "drop", "add", "reset", "restart")
    if word == "set":
        return _alter_set(r, name, at)
    if word == "drop":
        return _alter_drop(r, name, at)
    if word == "reset":
        options = pieces.definition_list(r)
        return AlterAction("reset column options", name=name, options=options, position=at)
    if word == "restart":
        value = None
        if r.accept("with") or pieces.at_number(r):
            value = r.number_text()
        options = (Option("restart", value), *_identity_options(r))
        return AlterAction("set identity", name=name, options=options, position=at)
    r.expect("generated")
    when = "always" if r.choose("always", "by") == "always" else "by default"
    if when != "always":
        r.expect("default")
    r.expect("as", "identity")
    options = sequence_options(r, parenthesized=True) if r.token.key == "(" else ()
    constraint = Constraint("identity", identity=when, options=options)
    return AlterAction("add identity", name=name, constraint=constraint, position=at)


def _alter_type(r: ChangeReader, name: str, kind: str, at: int) -> AlterAction:
    r.accept("set", "data")
    r.expect("type")
    new_type = r.type_name()
    collation = pieces.collation(r)
    using = None
    cascade = False
    if kind == "type":
        cascade = pieces.drop_behavior(r)
    elif r.accept("using"):
        using = pieces.expression_slice(r)
    what = "alter attribute" if kind == "type" else "alter column type"
    return AlterAction(
        what,
        name=name,
        type=new_type,
        collation=collation,
        expression=using,
        cascade=cascade,
        position=at,
    )


def _alter_set(r: ChangeReader, name: str, at: int) -> AlterAction:
    if r.token.key == "(":
        options = pieces.definition_list(r)
        return AlterAction("set column options", name=name, options=options, position=at)
    word = r.token.key
    if word == "default":
        r.advance()
        expression = pieces.expression_slice(r)
        return AlterAction("set default", name=name, expression=expression, position=at)
    if r.accept("not", "null"):
        return AlterAction("set not null", name=name, position=at)
    if r.accept("statistics"):
        value = str(r.signed_integer())
        return AlterAction("set statistics", name=name, value=value, position=at)
    if r.accept_any("storage", "compression"):
        value = r.accept_any("default") or r.name()
        return AlterAction(f"set {word}", name=name, value=value, position=at)
    r.seek(r.index - 1)
    return AlterAction("set identity", name=name, options=_identity_options(r), position=at)


def _identity_options(r: ChangeReader) -> tuple[Option, ...]:
    """SET GENERATED ..., SET sequence_option, RESTART ..., as many as follow."""
    found: list[Option] = []
    while r.token.key in ("set", "restart"):
        if r.token.key == "restart":
            found.append(sequence_option(r))
            continue
        r.advance()
        if r.accept("generated"):
            when = r.choose("always", "by")
            if when == "by":
                r.expect("default")
            found.append(Option("generated", "always" if when == "always" else "by default"))
        else:
            found.append(sequence_option(r))
    return tuple(found)


def _alter_drop(r: ChangeReader, name: str, at: int) -> AlterAction:
    word = r.choose("default", "not", "identity", "expression")
    exists = False
    if word == "not":
        r.expect("null")
        word = "not null"
    elif word != "default":
        exists = pieces.if_exists(r)
    return AlterAction(f"drop {word}", name=name, if_exists=exists, position=at)


def _set(r: ChangeReader, at: int) -> AlterAction:
    if r.token.key == "(":
        return AlterAction("set options", options=pieces.definition_list(r), position=at)
    if r.accept("default"):
        expression = pieces.expression_slice(r)
        return AlterAction("set default", expression=expression, position=at)
    if r.accept("not", "null"):
        return AlterAction("set not null", position=at)
    word = r.choose("tablespace", "logged", "unlogged", "access", "without", "schema")
    if word in ("logged", "unlogged"):
        return AlterAction(f"set {word}", position=at)
    if word == "without":
        return AlterAction("set without " + r.choose("oids", "cluster"), position=at)
    if word == "access":
        r.expect("method")
        word = "access method"
    return AlterAction(f"set {word}", value=r.name(), position=at)


def _switch(r: ChangeReader, word: str, at: int) -> AlterAction:
    """ENABLE, DISABLE, FORCE of triggers, rules, row level security."""
    if word == "force" or r.token.key == "row":
        r.expect("row", "level", "security")
        return AlterAction(f"{word} row level security", position=at)
    mode = ""
    if word == "enable":
        mode = r.accept_any("always", "replica")
    what = r.choose("trigger", "rule")
    value = r.accept_any("all", "user") or r.name()
    kind = " ".join(part for part in (word, mode, what) if part)
    return AlterAction(kind, value=value, position=at)


def _rest(r: ChangeReader, word: str, at: int) -> AlterAction:
    if word == "no":
        if r.accept("force"):
            r.expect("row", "level", "security")
            return AlterAction("no force row level security", position=at)
        r.expect("inherit")
        return AlterAction("no inherit", table=r.table_name(), position=at)
    if word == "inherit":
        return AlterAction("inherit", table=r.table_name(), position=at)
    if word == "of":
        return AlterAction("of", table=r.qualified_name(), position=at)
    if word == "not":
        r.expect("of")
        return AlterAction("not of", position=at)
    if word == "cluster":
        r.expect("on")
        return AlterAction("cluster on", value=r.name(), position=at)
    if word == "replica":
        r.expect("identity")
        value = r.choose("nothing", "full", "default", "using")
        if value == "using":
            r.expect("index")
            value = "using index " + r.name()
        return AlterAction("replica identity", value=value, position=at)
    if word == "options":
        pieces.skip_parentheses(r)
        return AlterAction("options", position=at)
    return _partition_action(r, word, at)


def _partition_action(r: ChangeReader, word: str, at: int) -> AlterAction:
    r.expect("partition")
    table = r.table_name()
    if word == "detach":
        value = r.accept_any("concurrently", "finalize")
        return AlterAction("detach partition", table=table, value=value, position=at)
    bound = None if r.at_end() else tables.partition_bound(r)
    return AlterAction("attach partition", table=table, expression=bound, position=at)
