"""What the planner asks of the catalog: sizes and column statistics (estimates), keys (facts)."""

from __future__ import annotations

from typing import Protocol

from gpudb.catalog.objects import ColumnStatistics


class StatisticsSource(Protocol):
    """Answers for one snapshot; OIDs are pg_class's, attnums count from 1.

    ``unique_keys`` and ``is_not_null`` state what is enforced: rewrites rest on them. All else is
    an estimate. ``rows`` is None for a table never loaded nor analyzed.
    """

    def rows(self, table_oid: int) -> float | None: ...

    def column(self, table_oid: int, attnum: int) -> ColumnStatistics | None: ...

    def unique_keys(self, table_oid: int) -> tuple[tuple[int, ...], ...]: ...

    def is_not_null(self, table_oid: int, attnum: int) -> bool: ...

    def is_system(self, table_oid: int) -> bool: ...

    def table_name(self, table_oid: int) -> str: ...


class NoStatistics:
    """A source that knows nothing: every table is stored and of default size."""

    def rows(self, table_oid: int) -> float | None:
        return None

    def column(self, table_oid: int, attnum: int) -> ColumnStatistics | None:
        return None

    def unique_keys(self, table_oid: int) -> tuple[tuple[int, ...], ...]:
        return ()

    def is_not_null(self, table_oid: int, attnum: int) -> bool:
        return False

    def is_system(self, table_oid: int) -> bool:
        return False

    def table_name(self, table_oid: int) -> str:
        return ""
