"""PREPARE, EXECUTE, DEALLOCATE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpudb import errors
from gpudb.commands import Done, Result, describes, handles
from gpudb.optimizer.statements import nodes
from gpudb.result import ResultField

if TYPE_CHECKING:
    from gpudb.session import Session


@handles(nodes.Prepare)
def prepare(session: Session, statement: nodes.Prepare) -> Result:
    if statement.name in session.prepared:
        raise errors.DuplicatePreparedStatement(
            f'prepared statement "{statement.name}" already exists'
        )
    oids = tuple(session.database.type_name(session, item).oid for item in statement.types)
    prepared = session.prepare(statement.name, session.query_text, statement.statement, oids)
    prepared.is_from_sql = True
    session.prepared[statement.name] = prepared
    return Done(statement.tag)


def execute_arguments(session: Session, statement: nodes.Execute) -> tuple[Any, ...]:
    """The host values of EXECUTE's arguments, coerced to the statement's parameter types."""
    prepared = session.find_prepared(statement.name)
    wanted, given = len(prepared.parameter_oids), len(statement.arguments)
    if wanted != given:
        raise errors.SyntaxError(
            f'wrong number of parameters for prepared statement "{statement.name}"',
            detail=f"Expected {wanted} parameters but got {given}.",
        )
    return tuple(
        session.database.evaluate(session, argument, oid)
        for argument, oid in zip(statement.arguments, prepared.parameter_oids, strict=True)
    )


@handles(nodes.Execute)
def execute(session: Session, statement: nodes.Execute) -> Result:
    prepared = session.find_prepared(statement.name)
    parameters = execute_arguments(session, statement)
    return session.run(
        prepared.statement, prepared.text, parameters, parameter_oids=prepared.parameter_oids
    )


@handles(nodes.Deallocate)
def deallocate(session: Session, statement: nodes.Deallocate) -> Result:
    if statement.name is None:
        session.prepared.clear()
    else:
        session.find_prepared(statement.name)
        del session.prepared[statement.name]
    return Done(statement.tag)


@describes(nodes.Execute)
def execute_fields(session: Session, statement: nodes.Execute) -> tuple[ResultField, ...] | None:
    return session.find_prepared(statement.name).fields
