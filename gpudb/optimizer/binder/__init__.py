"""The binder: syntax trees and a catalog snapshot to logical plans.

``bind_query`` gives every name a column id, every expression PostgreSQL's type, every call the
function that PostgreSQL's rules choose, and refuses with 0A000 what gpudb cannot run. Modules
follow the grammar: ``queries`` (WITH, LIMIT) calls ``select``, ``sets`` and ``changes``;
``from_clause`` and ``table_functions`` make the scope (``scope``); ``expressions`` binds a node
by its kind with the help of ``operators``, ``calls``, ``aggregates``, ``windows``,
``subqueries`` and ``composites``; ``coercion`` converts.

- An aggregate, window call or set-returning call in an expression becomes a reference to a
  column of its level's Aggregate, Window or ProjectSet (``Scope``).
- Correlated references are the outer columns' ids; every scope knows which it captured.
- Unknown literals and parameters keep type UNKNOWN until their place gives them one.
"""

from __future__ import annotations

from gpudb.optimizer.binder.context import BindContext, BoundQuery, FileColumns
from gpudb.optimizer.binder.entry import (
    bind_query,
    bind_scalar,
    bound_columns,
    resolve_type_name,
)

__all__ = [
    "BindContext",
    "BoundQuery",
    "FileColumns",
    "bind_query",
    "bind_scalar",
    "bound_columns",
    "resolve_type_name",
]
