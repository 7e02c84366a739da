"""gpudb: an analytical SQL database that PostgreSQL clients connect to.

``gpudb.connect(directory)`` opens a data directory in this process (DB-API 2.0). Importing the
package loads nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gpudb.embedded import Connection


def connect(directory: str, **options: Any) -> Connection:
    """A connection to a data directory; see gpudb.embedded.connect."""
    from gpudb import embedded

    return embedded.connect(directory, **options)
