"""What rules share while one statement is rewritten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpudb.expr import Expr, Literal
from gpudb.optimizer.logical import Field, Plan
from gpudb.optimizer.statistics import StatisticsSource
from gpudb.sqltype import SqlType

DISABLED_SETTING = "gpudb.disabled_rules"
FIRST_ID = 1 << 20
"""Ids that rules give out count from here: a binder never comes this far."""


@dataclass(slots=True)
class RuleContext:
    """``fold`` evaluates an immutable call on constants, None where it would raise."""

    statistics: StatisticsSource
    next_id: int
    fold: Callable[[Expr], Literal | None] | None = None
    disabled: frozenset[str] = frozenset()
    trace: list[tuple[str, Plan]] | None = None
    guards: set[int] = field(default_factory=set)
    """Columns made by remove_subqueries: where one is not true, a subquery must not run."""

    @classmethod
    def of(
        cls,
        plan: Plan,
        statistics: StatisticsSource,
        settings: Mapping[str, Any],
        *,
        fold: Callable[[Expr], Literal | None] | None = None,
        trace: list[tuple[str, Plan]] | None = None,
    ) -> RuleContext:
        names = str(settings.get(DISABLED_SETTING) or "")
        disabled = frozenset(name.strip() for name in names.split(",") if name.strip())
        return cls(statistics, FIRST_ID, fold, disabled, trace)

    def new_id(self) -> int:
        """A field or shared-plan id that the statement does not use yet."""
        found = self.next_id
        self.next_id += 1
        return found

    def new_field(self, name: str, type_: SqlType) -> Field:
        return Field(self.new_id(), name, type_)

    def copy_of(self, source: Field) -> Field:
        """A new field like ``source``."""
        return Field(self.new_id(), source.name, source.type, source.table_oid, source.attnum)

    def record(self, rule: str, before: Plan, after: Plan) -> None:
        if self.trace is not None and before is not after and before != after:
            self.trace.append((rule, after))
