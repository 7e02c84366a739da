"""What one transaction writes to tables: new segments and delete vectors, visible to itself.

Every change goes into the transaction's catalog (TransactionCatalog), so that its own statements
see it; files are deleted again when the transaction or the savepoint rolls back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpudb.catalog.catalog import TransactionCatalog
from gpudb.catalog.changes import AddSegments, SetDeletes
from gpudb.catalog.objects import DeleteVector, SegmentRef
from gpudb.storage.table import Storage, TableWriter, deleted_mask, split_row_ids

POSITIONS_MAX = 4096
"""More deleted rows of a segment than these are kept as a bitmap."""


@dataclass(slots=True)
class WriteSet:
    """The writes of a transaction; ``writers`` are all that were opened, for their files."""

    storage: Storage
    catalog: TransactionCatalog
    writers: list[TableWriter] = field(default_factory=list)

    def writer(self, table_oid: int) -> TableWriter:
        """A writer for new rows of a table; give its segments to ``add`` when it is finished."""
        relation = self.catalog.snapshot.relation_by_oid(table_oid)
        assert relation is not None, table_oid
        writer = self.storage.writer(relation)
        self.writers.append(writer)
        return writer

    def add(self, table_oid: int, segments: tuple[SegmentRef, ...]) -> None:
        """Make finished segments part of the table."""
        if segments:
            self.catalog.apply(AddSegments(table_oid, segments))

    def delete(self, table_oid: int, row_ids: npt.NDArray[np.int64], *, is_plain: bool) -> int:
        """Delete the rows of these ctids; the number of rows that were still there.

        ``is_plain``: a DELETE, which may merge with another one of other rows at commit.
        """
        count = 0
        for segment_id, positions in split_row_ids(row_ids).items():
            count += self._delete_in(table_oid, segment_id, positions, is_plain)
        return count

    def _delete_in(
        self, table_oid: int, segment_id: int, positions: npt.NDArray[np.int32], is_plain: bool
    ) -> int:
        data = self.catalog.snapshot.data(table_oid)
        segment = next(s for s in data.segments if s.id == segment_id)
        old = data.deletes.get(segment_id)
        mask = np.zeros(segment.rows, np.bool_)
        if old is not None:
            mask |= deleted_mask(old, segment.rows, self.storage.root)
        before = int(np.count_nonzero(mask))
        mask[positions] = True
        after = int(np.count_nonzero(mask))
        if after == before:
            return 0
        self.catalog.apply(SetDeletes(table_oid, segment_id, delete_vector(mask), is_plain))
        return after - before

    def discard_from(self, count: int) -> None:
        """Delete the files of all writers but the first ``count``."""
        for writer in self.writers[count:]:
            writer.discard()
        del self.writers[count:]


def delete_vector(mask: npt.NDArray[np.bool_]) -> DeleteVector:
    """The vector of a mask: positions when few, else a bitmap."""
    positions = np.flatnonzero(mask).astype(np.int32)
    if len(positions) <= POSITIONS_MAX:
        return DeleteVector(len(positions), "positions", positions.tobytes())
    bitmap = np.packbits(mask, bitorder="little")
    return DeleteVector(len(positions), "bitmap", bitmap.tobytes())
