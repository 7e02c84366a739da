"""CREATE SEQUENCE, ALTER SEQUENCE and the options both share with identity columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog.changes import Create, Replace
from gpudb.catalog.objects import Relation, RelationKind, SequenceOptions
from gpudb.commands import Done, Result, handles, naming
from gpudb.optimizer.statements import nodes

if TYPE_CHECKING:
    from gpudb.session import Session

_LIMITS = {t.INT2: 2**15, t.INT4: 2**31, t.INT8: 2**63}


def sequence_options(
    options: Sequence[nodes.Option], type_oid: int, base: SequenceOptions | None = None
) -> SequenceOptions:
    """The options applied to ``base`` (or the defaults of the type); 22023, 42601."""
    given = {option.name: option.value for option in options}
    limit = _LIMITS[type_oid]

    def number(name: str, default: int) -> int:
        value = given.get(name)
        return default if value is None else int(str(value))

    old = base or SequenceOptions(type_oid)
    increment = number("increment", old.increment)
    if increment == 0:
        raise errors.InvalidParameterValue("INCREMENT must not be zero")
    ascending = increment > 0
    if base is None:
        old = replace(
            old,
            minimum=1 if ascending else -limit,
            maximum=limit - 1 if ascending else -1,
        )
    minimum, maximum = number("minvalue", old.minimum), number("maxvalue", old.maximum)
    if "minvalue" in given and given["minvalue"] is None:
        minimum = 1 if ascending else -limit
    if "maxvalue" in given and given["maxvalue"] is None:
        maximum = limit - 1 if ascending else -1
    for name, value in (("MAXVALUE", maximum), ("MINVALUE", minimum)):
        if not -limit <= value < limit:
            shown = {t.INT2: "smallint", t.INT4: "integer", t.INT8: "bigint"}[type_oid]
            raise errors.InvalidParameterValue(
                f"{name} ({value}) is out of range for sequence data type {shown}"
            )
    if minimum >= maximum:
        raise errors.InvalidParameterValue(
            f"MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})"
        )
    default_start = old.start if base is not None else (minimum if ascending else maximum)
    start = number("start", default_start)
    if start < minimum:
        raise errors.InvalidParameterValue(
            f"START value ({start}) cannot be less than MINVALUE ({minimum})"
        )
    if start > maximum:
        raise errors.InvalidParameterValue(
            f"START value ({start}) cannot be greater than MAXVALUE ({maximum})"
        )
    cache = number("cache", old.cache)
    if cache <= 0:
        raise errors.InvalidParameterValue(f"CACHE ({cache}) must be greater than zero")
    cycles = given["cycle"] != "off" if "cycle" in given else old.cycles
    return replace(
        old, type_oid=type_oid, start=start, increment=increment, minimum=minimum,
        maximum=maximum, cache=cache, cycles=cycles,
    )


def _type_oid(session: Session, options: Sequence[nodes.Option], default: int) -> int:
    for option in options:
        if option.name == "as":
            found = session.database.type_from_text(session, str(option.value)).oid
            if found not in _LIMITS:
                raise errors.InvalidParameterValue(
                    "sequence type must be smallint, integer, or bigint"
                )
            return int(found)
    return default


@handles(nodes.CreateSequence)
def create_sequence(session: Session, statement: nodes.CreateSequence) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)
    schema = naming.creation_schema(session, statement.name, statement.persistence)
    name = statement.name.name
    if statement.if_not_exists and session.catalog.relation_in(schema, name) is not None:
        session.notice("NOTICE", "42P07", f'relation "{name}" already exists, skipping')
        return Done(statement.tag)
    oid = _type_oid(session, statement.options, t.INT8)
    options = sequence_options(statement.options, oid)
    owner = session.catalog.role(session.user).oid
    relation = Relation(
        session.database.store.allocate_oid(), schema, name, RelationKind.SEQUENCE, (), owner,
        naming.persistence_letter(statement.persistence), sequence=options,
    )
    session.transaction.change(Create(relation))
    return Done(statement.tag)


@handles(nodes.AlterSequence)
def alter_sequence(session: Session, statement: nodes.AlterSequence) -> Result:
    assert session.transaction is not None
    session.transaction.require_writable(statement.tag)
    found = naming.find_relation(session, statement.name)
    if found is None and statement.if_exists:
        session.notice(
            "NOTICE", "00000", f'relation "{statement.name.name}" does not exist, skipping'
        )
        return Done(statement.tag)
    relation = naming.require_relation(session, statement.name)
    if relation.sequence is None:
        raise errors.WrongObjectType(f'"{relation.name}" is not a sequence')
    naming.require_owner(session, relation)
    oid = _type_oid(session, statement.options, relation.sequence.type_oid)
    options = sequence_options(statement.options, oid, relation.sequence)
    session.transaction.change(Replace(replace(relation, sequence=options)))
    for option in statement.options:
        if option.name == "restart":
            value = options.start if option.value is None else int(str(option.value))
            session.database.store.sequences.set_value(relation, value, is_called=False)
    return Done(statement.tag)
