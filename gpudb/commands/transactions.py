"""BEGIN, COMMIT, ROLLBACK, savepoints, SET TRANSACTION."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudb import errors
from gpudb.commands import Done, Result, handles
from gpudb.optimizer.statements import nodes

if TYPE_CHECKING:
    from gpudb.session import Session


def _apply_modes(session: Session, modes: nodes.TransactionModes) -> None:
    transaction = session.transaction
    assert transaction is not None
    if modes.isolation is not None:
        if transaction.catalog.permanent:
            raise errors.ActiveSqlTransaction(
                "SET TRANSACTION ISOLATION LEVEL must be called before any query"
            )
        transaction.isolation = modes.isolation
        session.settings.assign("transaction_isolation", modes.isolation, is_local=True)
    if modes.is_read_only is not None:
        transaction.is_read_only = modes.is_read_only
        flag = "on" if modes.is_read_only else "off"
        session.settings.assign("transaction_read_only", flag, is_local=True)
    if modes.is_deferrable is not None:
        flag = "on" if modes.is_deferrable else "off"
        session.settings.assign("transaction_deferrable", flag, is_local=True)


@handles(nodes.Begin)
def begin(session: Session, statement: nodes.Begin) -> Result:
    if session.is_block:
        session.notice("WARNING", "25001", "there is already a transaction in progress")
    session.is_block = True
    _apply_modes(session, statement.modes)
    return Done(statement.tag)


@handles(nodes.Commit)
def commit(session: Session, statement: nodes.Commit) -> Result:
    if not session.is_block:
        _outside(session, "COMMIT", chain=statement.chain)
    tag = "ROLLBACK" if session.is_failed else statement.tag
    _end(session, is_commit=not session.is_failed, chain=statement.chain)
    return Done(tag)


@handles(nodes.Rollback)
def rollback(session: Session, statement: nodes.Rollback) -> Result:
    if not session.is_block:
        _outside(session, "ROLLBACK", chain=statement.chain)
    _end(session, is_commit=False, chain=statement.chain)
    return Done(statement.tag)


def _outside(session: Session, command: str, *, chain: bool) -> None:
    if chain:
        raise errors.NoActiveSqlTransaction(
            f"{command} AND CHAIN can only be used in transaction blocks"
        )
    session.notice("WARNING", "25P01", "there is no transaction in progress")


def _end(session: Session, *, is_commit: bool, chain: bool) -> None:
    old = session.transaction
    session.end_block(is_commit=is_commit)
    if chain:
        transaction = session.start_transaction()
        session.is_block = True
        if old is not None:
            transaction.isolation = old.isolation
            transaction.is_read_only = old.is_read_only


def _require_block(session: Session, command: str) -> None:
    if not session.is_block and not session.is_multiple:
        raise errors.NoActiveSqlTransaction(f"{command} can only be used in transaction blocks")


@handles(nodes.Savepoint)
def savepoint(session: Session, statement: nodes.Savepoint) -> Result:
    _require_block(session, "SAVEPOINT")
    assert session.transaction is not None
    session.transaction.savepoint(statement.name)
    session.settings.begin(statement.name)
    return Done(statement.tag)


@handles(nodes.ReleaseSavepoint)
def release_savepoint(session: Session, statement: nodes.ReleaseSavepoint) -> Result:
    _require_block(session, "RELEASE SAVEPOINT")
    assert session.transaction is not None
    session.transaction.release(statement.name)
    session.settings.release(statement.name)
    return Done(statement.tag)


@handles(nodes.RollbackToSavepoint)
def rollback_to_savepoint(session: Session, statement: nodes.RollbackToSavepoint) -> Result:
    _require_block(session, "ROLLBACK TO SAVEPOINT")
    assert session.transaction is not None
    session.transaction.rollback_to(statement.name)
    session.settings.rollback_to(statement.name)
    session.is_failed = False
    return Done(statement.tag)


@handles(nodes.SetTransaction)
def set_transaction(session: Session, statement: nodes.SetTransaction) -> Result:
    modes = statement.modes
    if not statement.is_session:
        if not session.is_block:
            session.notice(
                "WARNING", "25P01", "SET TRANSACTION can only be used in transaction blocks"
            )
        _apply_modes(session, modes)
        return Done(statement.tag)
    if modes.isolation is not None:
        session.settings.assign("default_transaction_isolation", modes.isolation)
    if modes.is_read_only is not None:
        flag = "on" if modes.is_read_only else "off"
        session.settings.assign("default_transaction_read_only", flag)
    if modes.is_deferrable is not None:
        flag = "on" if modes.is_deferrable else "off"
        session.settings.assign("default_transaction_deferrable", flag)
    return Done(statement.tag)


@handles(nodes.SetConstraints)
def set_constraints(session: Session, statement: nodes.SetConstraints) -> Result:
    if not session.is_block:
        session.notice(
            "WARNING", "25P01", "SET CONSTRAINTS can only be used in transaction blocks"
        )
    return Done(statement.tag)
