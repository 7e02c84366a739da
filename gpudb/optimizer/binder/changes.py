"""INSERT, UPDATE, DELETE and MERGE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb.optimizer import logical
from gpudb.optimizer.binder.scope import Scope

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder


def bind(binder: Binder, scope: Scope, node: exp.Expression) -> logical.Plan:
    del binder, scope
    raise errors.FeatureNotSupported(f"{type(node).__name__.upper()} is not supported")
