"""Which schemas a name without a schema is looked up in.

Source: PostgreSQL manual, "The Schema Search Path".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpudb import errors
from gpudb.catalog.objects import SCHEMA_PG_CATALOG

if TYPE_CHECKING:
    from gpudb.catalog.catalog import CatalogSnapshot

TEMPORARY_ALIAS = "pg_temp"
USER_PLACEHOLDER = "$user"


@dataclass(frozen=True, slots=True)
class SearchPath:
    """``schemas`` is the order of lookup with the implicit pg_temp and pg_catalog in front.

    ``explicit`` holds those that the setting names (current_schemas(false)); ``creation`` is
    where CREATE without a schema puts things, 0 when the setting names no existing schema.
    """

    schemas: tuple[int, ...]
    explicit: tuple[int, ...]
    creation: int = 0
    temporary: int = 0

    def function_schemas(self) -> tuple[int, ...]:
        """Functions and operators are never found in the temporary schema."""
        return tuple(s for s in self.schemas if s != self.temporary)


def resolve(
    snapshot: CatalogSnapshot, names: Iterable[str], *, user: str, temporary: int = 0
) -> SearchPath:
    """The effective path of a search_path setting; names of missing schemas are skipped.

    ``temporary`` is the OID of the session's own temporary schema, 0 before it has one.
    """
    explicit: list[int] = []
    creation = 0
    for name in names:
        if name == TEMPORARY_ALIAS:
            oid = temporary
        else:
            schema = snapshot.schema(user if name == USER_PLACEHOLDER else name)
            oid = 0 if schema is None else schema.oid
        if oid and oid not in explicit:
            explicit.append(oid)
            creation = creation or oid
    schemas = list(explicit)
    if SCHEMA_PG_CATALOG not in schemas:
        schemas.insert(0, SCHEMA_PG_CATALOG)
    if temporary and temporary not in schemas:
        schemas.insert(0, temporary)
    shown = tuple(s for s in explicit if s != temporary)
    return SearchPath(tuple(schemas), shown, creation, temporary)


def split_names(text: str) -> tuple[str, ...]:
    """The names of a search_path setting: comma-separated, folded unless quoted; 22023."""
    names = []
    position = 0
    pattern = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s,"]+))\s*(,|$)')
    while position < len(text.rstrip()):
        match = pattern.match(text, position)
        if match is None:
            raise errors.InvalidParameterValue(
                f'invalid value for parameter "search_path": "{text}"',
                detail="List syntax is invalid.",
            )
        quoted, plain, _ = match.groups()
        names.append(plain.lower() if quoted is None else quoted.replace('""', '"'))
        position = match.end()
    return tuple(names)
