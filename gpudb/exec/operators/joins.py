"""What all joins share: pairs of probe and build rows become output batches of every join kind.

A join gives *candidate pairs* for a probe batch, in probe order, at most batch_rows at a time; the
rest of the condition is evaluated on them; what each kind makes of matches and of rows without
one is decided here. NULL in a condition counts as no match, except for a mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from gpudb import errors
from gpudb.column import Batch, Column, boolean_column, null_column, take_rows
from gpudb.exec.builder import Builder
from gpudb.exec.conversions import data_type
from gpudb.exec.eager import Runner, selected
from gpudb.exec.operators.collect import CollectSink
from gpudb.exec.pipeline import Operator, Piece
from gpudb.kernels.gather import gather_or_null
from gpudb.kernels.select import rows_of, true_mask
from gpudb.optimizer.logical import Field, JoinKind
from gpudb.sqltype import BOOLEAN

Rows = npt.NDArray[np.int64]
Pairs = tuple[Rows, Rows]
"""Row numbers of the probe batch's selected rows, and of the build side."""
Mask = npt.NDArray[np.bool_]

KEEPS_PROBE = frozenset({JoinKind.LEFT, JoinKind.FULL, JoinKind.SINGLE})
KEEPS_BUILD = frozenset({JoinKind.RIGHT, JoinKind.FULL})


class Join(Operator):
    """A probe: subclasses give candidate pairs."""

    def __init__(
        self,
        builder: Builder,
        *,
        kind: JoinKind,
        fields: tuple[tuple[Field, ...], tuple[Field, ...]],
        build: CollectSink,
        residual: Runner | None,
        is_build_left: bool,
    ) -> None:
        self.kind = kind
        self.build = build
        self.residual = residual
        self.batch_rows = builder.batch_rows
        self._context = builder.context
        self._probe_fields, self._build_fields = fields
        self._is_build_left = is_build_left
        self._matched: Mask | None = None

    def candidates(self, batch: Batch) -> Iterator[Pairs]:
        """Pairs that the keys allow, in probe order, at most batch_rows at a time."""
        raise NotImplementedError

    # One batch

    def push(self, batch: Batch) -> Iterator[Batch]:
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK):
            yield from self._push_test(batch)
            return
        keeps = self.kind in KEEPS_PROBE
        counts = np.zeros(batch.rows if keeps else 0, np.int64)
        made = 0
        for probe_rows, build_rows in self.candidates(batch):
            probe_rows, build_rows = self._passing(batch, probe_rows, build_rows)
            if not len(probe_rows):
                continue
            if keeps:
                counts += np.bincount(probe_rows, minlength=batch.rows)
                self._check_single(counts)
            if self.kind in KEEPS_BUILD:
                self._mark_build(build_rows)
            yield self.output(batch, probe_rows, build_rows, made)
            made += len(probe_rows)
        if keeps:
            alone = np.flatnonzero(counts == 0)
            if len(alone):
                yield self.output(batch, alone, np.full(len(alone), -1), made)

    def _check_single(self, counts: Rows) -> None:
        if self.kind is JoinKind.SINGLE and len(counts) and int(counts.max()) > 1:
            raise errors.CardinalityViolation(
                "more than one row returned by a subquery used as an expression"
            )

    def _push_test(self, batch: Batch) -> Iterator[Batch]:
        """SEMI, ANTI and MARK: whether some pair passes."""
        matched = np.zeros(batch.rows, bool)
        unknown = np.zeros(batch.rows, bool)
        for probe_rows, build_rows in self.candidates(batch):
            if self.residual is not None:
                true, null = self._test(batch, probe_rows, build_rows)
                unknown[probe_rows[null]] = True
                probe_rows = probe_rows[true]
            matched[probe_rows] = True
        yield from self.tested(batch, matched, unknown)

    def tested(self, batch: Batch, matched: Mask, unknown: Mask) -> Iterator[Batch]:
        """The output of SEMI, ANTI or MARK from which rows matched (or perhaps did)."""
        if self.kind is JoinKind.MARK:
            valid = matched | ~unknown
            mark = boolean_column(
                BOOLEAN, torch.from_numpy(matched),
                None if valid.all() else torch.from_numpy(valid),
            )
            yield with_column(batch, mark)
            return
        wanted = matched if self.kind is JoinKind.SEMI else ~matched
        if wanted.all():
            yield batch
        elif wanted.any():
            yield selected(batch, torch.from_numpy(np.flatnonzero(wanted)))

    # The rest of the condition

    def _passing(self, batch: Batch, probe_rows: Rows, build_rows: Rows) -> Pairs:
        if self.residual is None or not len(probe_rows):
            return probe_rows, build_rows
        true, _ = self._test(batch, probe_rows, build_rows)
        return probe_rows[true], build_rows[true]

    def _test(self, batch: Batch, probe_rows: Rows, build_rows: Rows) -> tuple[Rows, Rows]:
        """Which pairs are true and which are NULL under the residual condition."""
        assert self.residual is not None
        pairs = self._pair_batch(batch, probe_rows, build_rows)
        result = self.residual.evaluate(pairs)[0]
        true = rows_of(true_mask(result, pairs.rows)).numpy()
        if result.valid is None:
            return true, np.empty(0, np.int64)
        valid = result.valid.expand(pairs.rows)
        return true, rows_of(~valid).numpy()

    def _pair_batch(self, batch: Batch, probe_rows: Rows, build_rows: Rows) -> Batch:
        """The pairs as rows (probe fields, then build fields); only what is read is gathered."""
        assert self.residual is not None
        wanted = set(self.residual.program.inputs)
        placeholder = boolean_column(BOOLEAN, torch.zeros(1, dtype=torch.bool))
        index = self._probe_index(batch, probe_rows)
        build_index = torch.from_numpy(build_rows)
        width = len(batch.columns)
        columns: list[Column] = []
        for number, column in enumerate(batch.columns):
            columns.append(
                take_rows(column, index, batch.capacity) if number in wanted else placeholder
            )
        for number, column in enumerate(self.build.columns):
            columns.append(
                take_rows(column, build_index, self.build.rows)
                if width + number in wanted else placeholder
            )
        count = len(probe_rows)
        return Batch(tuple(columns), count, count, None, batch.sequence)

    def _probe_index(self, batch: Batch, rows: Rows) -> torch.Tensor:
        index = torch.from_numpy(rows)
        return index if batch.selection is None else batch.selection.index_select(0, index)

    # Output

    def output(self, batch: Batch, probe_rows: Rows, build_rows: Rows, made: int) -> Batch:
        """The joined rows of pairs; -1 among ``build_rows`` makes NULLs."""
        count = len(probe_rows)
        sequence = (batch.sequence[0], batch.sequence[1] + made)
        index = torch.from_numpy(build_rows)
        if count and build_rows.min() < 0:
            build = tuple(gather_or_null(c, index) for c in self.build.columns)
        else:
            build = tuple(take_rows(c, index, self.build.rows) for c in self.build.columns)
        is_whole = count == batch.rows == batch.capacity and batch.selection is None and (
            count < 2 or bool((np.diff(probe_rows) == 1).all())
        )
        if is_whole:
            probe = batch.columns
        else:
            own = self._probe_index(batch, probe_rows)
            probe = tuple(take_rows(c, own, batch.capacity) for c in batch.columns)
        columns = (*build, *probe) if self._is_build_left else (*probe, *build)
        return Batch.of(columns, count, sequence)

    # Unmatched build rows

    def _mark_build(self, rows: Rows) -> None:
        if self._matched is None:
            self._matched = np.zeros(self.build.rows, bool)
        self._matched[rows] = True

    def prepare_marks(self) -> None:
        """Make the flags of matched build rows before workers share them."""
        if self.kind in KEEPS_BUILD:
            self._matched = np.zeros(self.build.rows, bool)

    def unmatched(self) -> Iterator[Piece]:
        """The build rows without a match, with NULLs for the probe side."""
        matched = self._matched
        alone = np.arange(self.build.rows) if matched is None else np.flatnonzero(~matched)
        for number, start in enumerate(range(0, len(alone), self.batch_rows)):
            rows = alone[start : start + self.batch_rows]

            def piece(number: int = number, rows: Rows = rows) -> Iterator[Batch]:
                index = torch.from_numpy(rows)
                build = tuple(take_rows(c, index, self.build.rows) for c in self.build.columns)
                probe = tuple(
                    null_column(
                        f.type, data_type(f.type.oid, self._context).layout, len(rows)
                    )
                    for f in self._probe_fields
                )
                columns = (*build, *probe) if self._is_build_left else (*probe, *build)
                yield Batch.of(columns, len(rows), (number, 0))

            yield piece


def with_column(batch: Batch, column: Column) -> Batch:
    """The batch with a column over its selected rows added."""
    if batch.selection is None and batch.capacity == batch.rows:
        return replace(batch, columns=(*batch.columns, column))
    from gpudb.column import compact

    plain = compact(batch)
    return Batch.of((*plain.columns, column), plain.rows, batch.sequence)


def ranges(starts: Rows, counts: Rows, batch_rows: int) -> Iterator[Pairs]:
    """(row, position) for positions [starts[row], starts[row] + counts[row]) of every row.

    At most ``batch_rows`` at a time; a row may be cut.
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    for first in range(0, total, batch_rows):
        last = min(first + batch_rows, total)
        row_from = int(np.searchsorted(ends, first, "right"))
        row_to = int(np.searchsorted(ends, last, "left")) + 1
        part = counts[row_from:row_to].copy()
        begin = starts[row_from:row_to].copy()
        skipped = first - (int(ends[row_from]) - int(counts[row_from]))
        begin[0] += skipped
        part[0] -= skipped
        part[-1] -= int(ends[row_to - 1]) - last
        count = last - first
        rows = np.repeat(np.arange(row_from, row_to), part)
        shift = np.repeat(begin - (np.cumsum(part) - part), part)
        yield rows, np.arange(count) + shift


def joint_positions(
    probe: Sequence[Field], build: Sequence[Field]
) -> tuple[Field, ...]:
    """The fields that a residual condition reads, in the order of pairs."""
    return (*probe, *build)
