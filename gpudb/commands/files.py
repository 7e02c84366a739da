"""Files on the server: who may read and write them, and their columns for read_parquet/read_csv."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpudb import errors
from gpudb.optimizer.binder.context import FileColumns
from gpudb.storage import external

if TYPE_CHECKING:
    from gpudb.session import Session


def allowed_paths(session: Session, pattern: str, *, must_exist: bool = True) -> tuple[str, ...]:
    """The files of a path or glob that the session may use; 42501, 58P01."""
    if not session.is_superuser():
        raise errors.InsufficientPrivilege(
            "permission denied to access files of the server",
            detail="Only superusers may read and write files of the server.",
        )
    roots = [r.strip() for r in session.settings.text("gpudb.file_roots").split(",") if r.strip()]
    return external.resolve(pattern, roots, must_exist=must_exist)


def schema_reader(session: Session) -> Callable[..., FileColumns]:
    """What the binder asks for the columns of a file."""

    def read(format: str, pattern: str, options: tuple[tuple[str, str], ...]) -> FileColumns:
        paths = allowed_paths(session, pattern)
        columns = external.columns_of(external.schema(format, paths, dict(options)))
        return FileColumns(paths, tuple((name, type.oid, type.typmod) for name, type in columns))

    return read
