"""DECLARE, FETCH, MOVE, CLOSE: SQL cursors over portals.

A cursor position is the number of rows at or before it: 0 before the first row, N + 1 after the
last of N. A cursor without SCROLL reads its query forward only; others keep what they read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpudb import errors
from gpudb.catalog.store import now_microseconds
from gpudb.commands import Done, Result, Rows, describes, handles
from gpudb.optimizer.statements import nodes
from gpudb.portal import Portal
from gpudb.result import HostBatch, ResultField, ResultStream

if TYPE_CHECKING:
    from gpudb.session import Session


@handles(nodes.DeclareCursor)
def declare(session: Session, statement: nodes.DeclareCursor) -> Result:
    if not statement.hold and not session.is_block and not session.is_multiple:
        raise errors.NoActiveSqlTransaction(
            "DECLARE CURSOR can only be used in transaction blocks"
        )
    if statement.query.kind not in ("select", "values", "table"):
        raise errors.FeatureNotSupported("DECLARE CURSOR must be a query without side effects")
    if statement.name in session.portals:
        raise errors.DuplicateCursor(f'cursor "{statement.name}" already exists')
    parameters, oids = session.bound_parameters
    rows = session.run(
        statement.query, session.query_text, parameters, parameter_oids=oids
    )
    portal = Portal(
        statement.name, statement.query, session.query_text,
        is_scrollable=statement.scroll is not False, is_holdable=statement.hold,
        is_binary=statement.is_binary, is_sql_cursor=True,
        created_microseconds=now_microseconds(),
    )
    portal.start(rows)
    session.portals[statement.name] = portal
    return Done(statement.tag)


@handles(nodes.Fetch)
def fetch(session: Session, statement: nodes.Fetch) -> Result:
    portal = session.find_portal(statement.cursor, what="cursor")
    session.start_portal(portal)
    if portal.rows is None:
        raise errors.ObjectNotInPrerequisiteState(f'portal "{portal.name}" cannot be run')
    batches = list(_fetch(portal, statement))
    count = sum(batch.rows for batch in batches)
    if statement.is_move:
        return Done(f"MOVE {count}")
    assert portal.fields is not None
    stream = ResultStream.of(portal.fields, batches)
    return Rows(portal.fields, stream, lambda _: f"FETCH {count}")


def _fetch(portal: Portal, statement: nodes.Fetch) -> Iterator[HostBatch]:
    count = statement.count
    match statement.direction:
        case "forward":
            if count is not None and count < 0:
                return _backward(portal, -count)
            return _forward(portal, count)
        case "backward":
            if count is not None and count < 0:
                return _forward(portal, -count)
            return _backward(portal, count)
        case "absolute":
            return _absolute(portal, count or 0)
    return _relative(portal, count or 0)


def _forward(portal: Portal, count: int | None) -> Iterator[HostBatch]:
    if count == 0:
        return _again(portal)
    return portal.take(0 if count is None else count)


def _backward(portal: Portal, count: int | None) -> Iterator[HostBatch]:
    if count == 0:
        return _again(portal)
    portal.require_scroll()
    return portal.take_back(count)


def _again(portal: Portal) -> Iterator[HostBatch]:
    """FETCH 0: the current row once more."""
    portal.require_scroll()
    return portal.current()


def _absolute(portal: Portal, row: int) -> Iterator[HostBatch]:
    if row < 0:
        portal.require_scroll()
        return portal.at(portal.count() + 1 + row)
    if row < portal.position or portal.is_scrollable:
        portal.require_scroll()
        return portal.at(row)
    return _relative(portal, row - portal.position)


def _relative(portal: Portal, offset: int) -> Iterator[HostBatch]:
    if offset <= 0 or portal.is_scrollable:
        portal.require_scroll()
        return portal.at(portal.position + offset)
    for _ in portal.take(offset - 1) if offset > 1 else ():
        continue
    return portal.take(1)


@handles(nodes.CloseCursor)
def close(session: Session, statement: nodes.CloseCursor) -> Result:
    if statement.name is None:
        for portal in session.portals.values():
            portal.close()
        session.portals.clear()
    else:
        session.find_portal(statement.name, what="cursor")
        session.close_portal(statement.name)
    return Done(statement.tag)


@describes(nodes.Fetch)
def fetch_fields(session: Session, statement: nodes.Fetch) -> tuple[ResultField, ...] | None:
    if statement.is_move:
        return None
    return session.find_portal(statement.cursor, what="cursor").fields
