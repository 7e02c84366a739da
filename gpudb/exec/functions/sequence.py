"""nextval, currval, lastval, setval."""

from __future__ import annotations

from typing import Any

from gpudb import errors
from gpudb.catalog.objects import Relation
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.catalog_info import names_of, snapshot_of
from gpudb.exec.functions.rowwise import rowwise
from gpudb.exec.functions.system import session_of


def _sequence(context: EvaluationContext, oid: int) -> Relation:
    """The sequence of an OID; 42809 for another kind of relation."""
    found = snapshot_of(context).relation_by_oid(oid)
    if found is None:
        raise errors.UndefinedTable(f"could not open relation with OID {oid}")
    if found.sequence is None:
        raise errors.WrongObjectType(f'"{found.name}" is not a sequence')
    return found


def _values(context: EvaluationContext) -> Any:
    """The store of sequence values."""
    session: Any = session_of(context)
    return session.database.store.sequences


@rowwise("nextval_oid", needs_context=True, is_volatile=True)
def next_value(context: EvaluationContext, oid: int) -> int:
    session = session_of(context)
    value = int(_values(context).next_value(_sequence(context, oid)))
    session.sequence_values[oid] = value
    session.last_sequence = oid
    return value


@rowwise("currval_oid", needs_context=True, is_volatile=True)
def current_value(context: EvaluationContext, oid: int) -> int:
    found = session_of(context).sequence_values.get(oid)
    if found is None:
        name = names_of(context).relation_text(oid)
        raise errors.ObjectNotInPrerequisiteState(
            f'currval of sequence "{name}" is not yet defined in this session'
        )
    return found


@rowwise("lastval", needs_context=True, is_volatile=True)
def last_value(context: EvaluationContext) -> int:
    session = session_of(context)
    if not session.last_sequence:
        raise errors.ObjectNotInPrerequisiteState(
            "lastval is not yet defined in this session"
        )
    return session.sequence_values[session.last_sequence]


@rowwise("setval_oid", "setval3_oid", needs_context=True, is_volatile=True)
def set_value(
    context: EvaluationContext, oid: int, value: int, is_called: bool = True
) -> int:
    _values(context).set_value(_sequence(context, oid), value, is_called=is_called)
    if is_called:
        session_of(context).sequence_values[oid] = value
    return value


@rowwise("pg_sequence_last_value", needs_context=True, is_volatile=True)
def last_written(context: EvaluationContext, oid: int) -> int | None:
    value, is_called = _values(context).current(_sequence(context, oid))
    return int(value) if is_called else None
