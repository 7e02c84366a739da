"""Utility commands: one handler a statement class, called by the session.

A handler takes the session and the statement and returns what the client gets: ``Done`` with a
command tag, ``Rows`` with a stream, or a COPY outcome. Handlers register with ``@handles``;
MODULES lists the modules, ``load`` imports them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from gpudb.optimizer.statements import nodes
from gpudb.result import ResultField, ResultStream

if TYPE_CHECKING:
    from gpudb.session import Session

MODULES = (
    "variables", "transactions", "cursors", "prepared", "tables", "definition", "alteration",
    "roles", "copy", "explain", "maintenance", "messages",
)


@dataclass(frozen=True, slots=True)
class Done:
    """A command without rows and its tag."""

    tag: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows and how their number makes the tag, such as ``SELECT 3``."""

    fields: tuple[ResultField, ...]
    stream: ResultStream
    tag: Callable[[int], str]


Result = Done | Rows | Any
"""Also the wire's CopyInOutcome and CopyOutOutcome."""

Handler = Callable[["Session", Any], Result]
H = TypeVar("H", bound=Callable[..., Any])
HANDLERS: dict[type, Handler] = {}
Describer = Callable[["Session", Any], "tuple[ResultField, ...] | None"]
D = TypeVar("D", bound=Callable[..., Any])
DESCRIBERS: dict[type, Describer] = {}
"""What a statement returns, before it runs; for those that return rows."""


def handles(*statements: type) -> Callable[[H], H]:
    """Register a handler for statement classes."""

    def add(handler: H) -> H:
        for statement in statements:
            assert statement not in HANDLERS, statement
            HANDLERS[statement] = handler
        return handler

    return add


def describes(*statements: type) -> Callable[[D], D]:
    """Register what tells the result fields of statement classes."""

    def add(describer: D) -> D:
        for statement in statements:
            DESCRIBERS[statement] = describer
        return describer

    return add


def inner_query(statement: Any) -> nodes.QueryStatement | None:
    """The query of a utility statement that takes parameters (DECLARE, EXPLAIN, ... AS)."""
    match statement:
        case nodes.QueryStatement():
            return statement
        case nodes.Explain():
            return inner_query(statement.statement)
        case nodes.DeclareCursor() | nodes.CreateTableAs():
            return inner_query(statement.query)
    return None


def load() -> None:
    """Import every module of commands, once."""
    for module in MODULES:
        importlib.import_module(f"gpudb.commands.{module}")
