"""LISTEN, NOTIFY, UNLISTEN: messages between the sessions of one server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudb import errors
from gpudb.commands import Done, Result, handles
from gpudb.optimizer.statements import nodes

if TYPE_CHECKING:
    from gpudb.session import Session

PAYLOAD_BYTES_MAX = 7999
"""PostgreSQL's limit."""
CHANNEL_BYTES_MAX = 63


@handles(nodes.Listen)
def listen(session: Session, statement: nodes.Listen) -> Result:
    assert session.transaction is not None
    session.transaction.on_commit.append(lambda: session.channels.add(statement.channel))
    return Done(statement.tag)


@handles(nodes.Unlisten)
def unlisten(session: Session, statement: nodes.Unlisten) -> Result:
    assert session.transaction is not None
    if statement.channel is None:
        session.transaction.on_commit.append(session.channels.clear)
    else:
        channel = statement.channel
        session.transaction.on_commit.append(lambda: session.channels.discard(channel))
    return Done(statement.tag)


def notify(session: Session, channel: str, payload: str) -> None:
    """Queue a message; it is sent when the transaction commits, equal ones once."""
    if not channel:
        raise errors.InvalidParameterValue("channel name cannot be empty")
    if len(channel.encode()) > CHANNEL_BYTES_MAX:
        raise errors.InvalidParameterValue("channel name too long")
    if len(payload.encode()) > PAYLOAD_BYTES_MAX:
        raise errors.InvalidParameterValue("payload string too long")
    assert session.transaction is not None
    session.transaction.on_commit.append(
        lambda: session.database.notify(session.process_id, channel, payload)
    )


@handles(nodes.Notify)
def notify_command(session: Session, statement: nodes.Notify) -> Result:
    notify(session, statement.channel, statement.payload)
    return Done(statement.tag)
