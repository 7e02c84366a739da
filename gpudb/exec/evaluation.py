"""How scalar bodies are called: the context of one evaluation and its error slot.

A body is called for a batch of ``rows`` rows with Columns of that many rows or of one row
(constants). It computes whole columns. Only *active* rows may raise: rows that the enclosing CASE
arm, AND/OR, filter, selection and NULL propagation leave over. A body never raises for data: it
reports to the error slot, which keeps the lowest active row, and goes on with any value there;
the runner raises once per batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gpudb.errors import SqlError

if TYPE_CHECKING:
    from gpudb.exec.context import QueryContext


@dataclass(slots=True)
class ErrorSlot:
    """The error of the lowest active row so far; ``row`` counts within the batch."""

    row: int = -1
    error: SqlError | None = None

    def report(self, row: int, error: SqlError) -> None:
        if self.error is None or row < self.row:
            self.row, self.error = row, error


@dataclass(slots=True)
class EvaluationContext:
    """``active`` bool (R), None = all rows of the batch are active. ``row_offset`` counts the rows
    of the statement before this batch (for volatile functions: seed and row make the value).
    """

    query: QueryContext
    rows: int
    active: Tensor | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    errors: ErrorSlot = field(default_factory=ErrorSlot)
    row_offset: int = 0
    position: int = 0

    def narrowed(self, mask: Tensor | None) -> EvaluationContext:
        """The same context with only the rows of ``mask`` (bool R or 1) active besides."""
        if mask is None:
            return self
        active = mask if self.active is None else self.active & mask
        return EvaluationContext(
            self.query, self.rows, active, self.device, self.errors, self.row_offset, self.position
        )

    def report_where(self, bad: Tensor, error: SqlError) -> None:
        """Report ``error`` for the lowest active row of ``bad`` (bool R or 1), if there is one."""
        if self.active is not None:
            bad = bad & self.active
        if self.rows and bool(bad.any()):
            row = int(bad.to(torch.uint8).argmax()) if bad.shape[0] > 1 else 0
            self._report(row, error)

    def report_row(self, row: int, error: SqlError) -> None:
        """Report ``error`` for one row, if it is active."""
        if self.is_active(row):
            self._report(row, error)

    def is_active(self, row: int) -> bool:
        if self.active is None:
            return self.rows > 0
        return bool(self.active[row if self.active.shape[0] > 1 else 0])

    def _report(self, row: int, error: SqlError) -> None:
        if self.position and not error.position:
            error.position = 0
        self.errors.report(row, error)
