"""What binding takes and yields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gpudb.catalog import functions
from gpudb.catalog.search_path import SearchPath
from gpudb.catalog.types.base import TypeContext
from gpudb.optimizer import logical
from gpudb.result import ResultField


@dataclass(frozen=True, slots=True)
class FileColumns:
    """What a data file holds: resolved paths and (name, type OID, typmod) of its columns."""

    paths: tuple[str, ...]
    columns: tuple[tuple[str, int, int], ...]


FileSchema = Callable[[str, str, tuple[tuple[str, str], ...]], FileColumns]
"""(format, path or glob, options) -> FileColumns; raises 42501, 58P01 and the format's errors."""


@dataclass(frozen=True, slots=True)
class BindContext:
    """What a statement is bound under.

    ``parameter_types`` are the OIDs the client declared, 0 = infer. ``type_context`` holds the
    settings that the text of literals depends on. ``file_schema`` reads the columns of a data
    file; without it read_parquet and read_csv are refused.
    """

    path: SearchPath
    user: str = "postgres"
    parameter_types: tuple[int, ...] = ()
    type_context: TypeContext = field(default_factory=TypeContext)
    file_schema: FileSchema | None = None
    is_implemented: Callable[[str], bool] = functions.is_implemented


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A bound statement.

    ``kind`` is select, insert, update, delete or merge. ``read`` and ``written`` are the OIDs of
    the relations named, for privileges: (relation, role that must hold them); role "" is the
    current user, a view's owner for what the view reads.
    """

    plan: logical.Plan
    fields: tuple[ResultField, ...]
    parameter_types: tuple[int, ...]
    kind: str
    has_returning: bool
    is_volatile: bool
    read: frozenset[int]
    written: frozenset[int]
    read_by_views: frozenset[tuple[int, int]] = frozenset()
    uses_session_values: bool = False
