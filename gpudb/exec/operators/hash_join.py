"""Joins on equal keys: the build side is kept with a table of its keys, probe batches look up.

The table numbers distinct keys (kernels.group.KeyTable: direct addressing where the keys' domain is
small, hashing otherwise); duplicates hang off it as row lists. Whether keys are unique is seen on
the finished build side, never assumed. A finished build publishes its keys' bounds, and a bitmap
of them, as a filter for the probe side's scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gpudb.column import Batch, Column, compact, expand, integers, take_rows
from gpudb.exec.builder import Builder, Stream, builds
from gpudb.exec.eager import Runner
from gpudb.exec.operators.collect import CollectSink
from gpudb.exec.operators.joins import KEEPS_BUILD, Join, Mask, Pairs, Rows, ranges
from gpudb.exec.operators.scan import BITMAP_DOMAIN_MAX, DynamicFilter
from gpudb.exec.pipeline import Branch, LazySource
from gpudb.kernels.concat import concat
from gpudb.kernels.group import KeyTable
from gpudb.kernels.hash_table import row_lists
from gpudb.layout import Kind
from gpudb.optimizer.logical import Field, JoinKind
from gpudb.optimizer.physical import HashJoin

NULL_AWARE_PAIRS_MAX = 1 << 22
"""Pairs of rows compared at a time where NULLs could match."""


class BuildSink(CollectSink):
    """The build side of a hash join."""

    def __init__(self, builder: Builder, node: HashJoin, fields: tuple[Field, ...]) -> None:
        super().__init__(builder, fields, "the build side of a join")
        self._runner = builder.runner(node.build_keys, fields)
        self._null_safe = node.null_safe or (False,) * len(node.build_keys)
        self._key_pieces: list[tuple[tuple[Column, ...], int]] = []
        self._filters = [
            (builder.filters[number], key) for number, key in node.dynamic_filters
        ]
        self._join: HashJoinProbe | None = None
        self.keys: tuple[Column, ...] = ()
        self.table = KeyTable(0)
        self.is_unique = True
        self.first_rows: Rows = np.empty(0, np.int64)
        self.offsets: Rows = np.zeros(1, np.int64)
        self.row_lists: Rows = np.empty(0, np.int64)
        self.has_null_keys = False

    def serve(self, join: HashJoinProbe) -> None:
        """Tell which probe will use the build side."""
        self._join = join

    def prepare(self, batch: Batch) -> Any:
        plain = compact(batch)
        return plain, self._runner.evaluate(plain)

    def push(self, item: Any) -> bool:
        batch, keys = item
        self._key_pieces.append((keys, batch.rows))
        return super().push(batch)

    def finish(self) -> None:
        super().finish()
        width = len(self._null_safe)
        self.table = KeyTable(width, expected_rows=self.rows)
        if self.rows:
            self.keys = tuple(
                expand(concat([(k[i], n) for k, n in self._key_pieces]), self.rows)
                for i in range(width)
            )
            self._number()
        self._key_pieces = []
        self._publish()
        if self._join is not None:
            self._join.prepare_marks()
        if self.metrics is not None:
            self.metrics.details["Build Rows"] = self.rows
            self.metrics.bytes += self.table.bytes

    def _number(self) -> None:
        """Number the keys and list the rows of each."""
        mask = comparable(self.keys, self._null_safe, self.rows)
        self.has_null_keys = mask is not None
        rows = np.arange(self.rows) if mask is None else np.flatnonzero(mask)
        keys = self.keys
        if mask is not None:
            index = torch.from_numpy(rows)
            keys = tuple(take_rows(k, index, self.rows) for k in keys)
        ids, first = self.table.insert(keys, len(rows))
        self.first_rows = rows[first]
        self.is_unique = len(first) == len(rows)
        if self.is_unique:
            return
        if self._join is not None and self._join.is_test:
            return
        self.offsets, listed = row_lists(ids, len(first))
        self.row_lists = listed if mask is None else rows[listed]

    def _publish(self) -> None:
        for target, number in self._filters:
            target.is_empty = not self.rows
            if self.rows:
                fill_filter(target, self.keys[number])
            target.is_ready = True


def fill_filter(target: DynamicFilter, key: Column) -> None:
    """The bounds of a key column's valid integers, and the bitmap of a small domain."""
    if key.layout.kind is not Kind.INT:
        return
    values = integers(key)
    if key.valid is not None:
        values = values[key.valid]
    if not values.shape[0]:
        target.is_empty = True
        return
    low, high = int(values.min()), int(values.max())
    target.low, target.high = low, high
    domain = high - low + 1
    if domain <= min(BITMAP_DOMAIN_MAX, 64 * max(values.shape[0], 1024)):
        bitmap = torch.zeros(domain, dtype=torch.bool)
        bitmap[values - low] = True
        target.bitmap = bitmap


def comparable(
    keys: Sequence[Column], null_safe: Sequence[bool], rows: int
) -> Mask | None:
    """The rows without a NULL in a key that is not null-safe; None = all."""
    found: npt.NDArray[np.bool_] | None = None
    for key, safe in zip(keys, null_safe, strict=True):
        if key.valid is not None and not safe:
            valid = key.valid.expand(rows).numpy()
            found = valid if found is None else found & valid
    return None if found is None or found.all() else found


class HashJoinProbe(Join):
    """Looks the keys of probe batches up."""

    def __init__(
        self, builder: Builder, node: HashJoin, *, probe_fields: tuple[Field, ...],
        build_fields: tuple[Field, ...], build: BuildSink, residual: Runner | None,
    ) -> None:
        super().__init__(
            builder, kind=node.kind, fields=(probe_fields, build_fields), build=build,
            residual=residual, is_build_left=node.is_build_left,
        )
        self._side = build
        self._keys = builder.runner(node.probe_keys, probe_fields)
        self._null_safe = node.null_safe or (False,) * len(node.probe_keys)
        self._is_null_aware = node.is_null_aware
        self._single_tables: list[tuple[KeyTable, Rows]] = []
        self.is_test = residual is None and self.kind in (
            JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK
        )
        """Only whether a key occurs matters, not in which rows."""

    def push(self, batch: Batch) -> Iterator[Batch]:
        if self.residual is None:
            yield from self._push_equal(batch)
        elif self._is_null_aware and self.kind is JoinKind.MARK:
            yield from self._push_null_aware(batch)
        else:
            yield from super().push(batch)

    def find(self, batch: Batch) -> tuple[tuple[Column, ...], Rows]:
        """The keys of the batch's rows, and the number of each key, -1 for none."""
        keys = tuple(expand(k, batch.rows) for k in self._keys.evaluate(batch))
        ids = self._side.table.find(keys, batch.rows)
        mask = comparable(keys, self._null_safe, batch.rows)
        return keys, ids if mask is None else np.where(mask, ids, -1)

    def candidates(self, batch: Batch) -> Iterator[Pairs]:
        _, ids = self.find(batch)
        yield from self._pairs(ids)

    def _pairs(self, ids: Rows) -> Iterator[Pairs]:
        side = self._side
        found = np.flatnonzero(ids >= 0)
        if not len(found):
            return
        own = ids[found]
        if side.is_unique:
            yield found, side.first_rows[own]
            return
        starts = side.offsets[own]
        counts = side.offsets[own + 1] - starts
        for rows, positions in ranges(starts, counts, self.batch_rows):
            yield found[rows], side.row_lists[positions]

    # Without further conditions

    def _push_equal(self, batch: Batch) -> Iterator[Batch]:
        keys, ids = self.find(batch)
        if self.kind is JoinKind.MARK and self._is_null_aware:
            yield from self._push_null_aware(batch, keys, ids)
        elif self.kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK):
            yield from self.tested(batch, ids >= 0, np.zeros(batch.rows, bool))
        elif self.kind in (JoinKind.LEFT, JoinKind.FULL, JoinKind.SINGLE):
            yield from self._push_left(batch, ids)
        else:
            made = 0
            for probe_rows, build_rows in self._pairs(ids):
                if self.kind in KEEPS_BUILD:
                    self._mark_build(build_rows)
                yield self.output(batch, probe_rows, build_rows, made)
                made += len(probe_rows)

    def _push_left(self, batch: Batch, ids: Rows) -> Iterator[Batch]:
        """All probe rows, in their order."""
        side = self._side
        rows = np.arange(batch.rows)
        if side.is_unique:
            build_rows = np.full(batch.rows, -1)
            hit = ids >= 0
            build_rows[hit] = side.first_rows[ids[hit]]
            if self.kind in KEEPS_BUILD:
                self._mark_build(build_rows[hit])
            yield self.output(batch, rows, build_rows, 0)
            return
        safe = np.maximum(ids, 0)
        starts = np.where(ids >= 0, side.offsets[safe], -1)
        counts = np.where(ids >= 0, side.offsets[safe + 1] - side.offsets[safe], 1)
        if self.kind is JoinKind.SINGLE:
            self._check_single(counts)
        made = 0
        for probe_rows, positions in ranges(starts, counts, self.batch_rows):
            build_rows = np.where(positions < 0, -1, side.row_lists[positions])
            if self.kind in KEEPS_BUILD:
                self._mark_build(build_rows[build_rows >= 0])
            yield self.output(batch, probe_rows, build_rows, made)
            made += len(probe_rows)

    # IN with NULLs

    def _push_null_aware(
        self,
        batch: Batch,
        keys: tuple[Column, ...] | None = None,
        ids: Rows | None = None,
    ) -> Iterator[Batch]:
        if keys is None or ids is None:
            keys, ids = self.find(batch)
        matched = np.zeros(batch.rows, bool)
        unknown = np.zeros(batch.rows, bool)
        if self.residual is None:
            matched = ids >= 0
        else:
            for probe_rows, build_rows in self._pairs(ids):
                true, null = self._test(batch, probe_rows, build_rows)
                matched[probe_rows[true]] = True
                unknown[probe_rows[null]] = True
        self._could_match(batch, keys, matched, unknown)
        yield from self.tested(batch, matched, unknown)

    def _could_match(
        self, batch: Batch, keys: tuple[Column, ...], matched: Mask, unknown: Mask
    ) -> None:
        """Set ``unknown`` for rows that equal some build row but for NULLs in either."""
        side = self._side
        if not side.rows:
            return
        is_null = ~_all_valid(keys, batch.rows)
        build_null = ~_all_valid(side.keys, side.rows)
        open_rows = np.flatnonzero(~matched & ~unknown)
        groups = (
            (open_rows[is_null[open_rows]], np.arange(side.rows)),
            (open_rows[~is_null[open_rows]], np.flatnonzero(build_null)),
        )
        if len(keys) == 1 and self.residual is None:
            unknown[groups[0][0]] = True
            if build_null.any():
                unknown[groups[1][0]] = True
            return
        for probe_rows, build_rows in groups:
            self._compare_rows(batch, keys, (probe_rows, build_rows), unknown)

    def _compare_rows(
        self, batch: Batch, keys: tuple[Column, ...], rows: Pairs, unknown: Mask
    ) -> None:
        probe_rows, build_rows = rows
        if not len(probe_rows) or not len(build_rows):
            return
        if not self._single_tables:
            self._single_tables = [_single(key, self._side.rows) for key in self._side.keys]
        step = max(1, NULL_AWARE_PAIRS_MAX // len(build_rows))
        for start in range(0, len(probe_rows), step):
            part = probe_rows[start : start + step]
            equal = np.ones((len(part), len(build_rows)), bool)
            index = torch.from_numpy(part)
            for key, build_key, (table, numbers) in zip(
                keys, self._side.keys, self._single_tables, strict=True
            ):
                own = take_rows(key, index, batch.rows)
                found = table.find([own], len(part))
                here = found[:, None] == numbers[build_rows][None, :]
                here |= ~_all_valid([own], len(part))[:, None]
                here |= ~_all_valid([build_key], self._side.rows)[build_rows][None, :]
                equal &= here
            left, right = np.nonzero(equal)
            if self.residual is not None and len(left):
                true, null = self._test(batch, part[left], build_rows[right])
                left = left[np.concatenate((true, null))]
            unknown[part[left]] = True


def _all_valid(keys: Sequence[Column], rows: int) -> Mask:
    found = np.ones(rows, bool)
    for key in keys:
        if key.valid is not None:
            found &= key.valid.expand(rows).numpy()
    return found


def _single(key: Column, rows: int) -> tuple[KeyTable, Rows]:
    table = KeyTable(1, expected_rows=rows)
    ids, _ = table.insert([key], rows)
    return table, ids


@builds(HashJoin)
def build_hash_join(builder: Builder, node: HashJoin) -> Stream:
    for number, _ in node.dynamic_filters:
        builder.filters[number] = DynamicFilter()
    build_stream = builder.build(node.build)
    side = BuildSink(builder, node, build_stream.fields)
    builder.close(build_stream, side)
    stream = builder.build(node.probe)
    residual = None
    if node.residual is not None:
        fields = (*stream.fields, *build_stream.fields)
        residual = builder.runner([node.residual], fields)
    probe = HashJoinProbe(
        builder, node, probe_fields=stream.fields, build_fields=build_stream.fields,
        build=side, residual=residual,
    )
    side.serve(probe)
    output = stream.then(probe, node.fields)
    if node.kind in KEEPS_BUILD:
        output.branches.append(Branch(LazySource(probe.unmatched), is_barrier=True))
    return output
