"""What other statements are made of: names, types, slices of source, queries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Slice:
    """A piece of source text and where it starts: characters from 0 in the whole message."""

    text: str
    offset: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class QualifiedName:
    """A possibly qualified object name; ``position`` counts characters from 1, 0 when unknown."""

    parts: tuple[str, ...]
    position: int = field(default=0, compare=False)

    @property
    def name(self) -> str:
        return self.parts[-1]

    @property
    def schema(self) -> str:
        """The schema, or "" when the name is not qualified."""
        return self.parts[-2] if len(self.parts) > 1 else ""

    @property
    def database(self) -> str:
        return self.parts[-3] if len(self.parts) > 2 else ""

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as written. Key-word types come as their catalog name in schema pg_catalog.

    ``modifiers`` are the texts between parentheses; ``bounds`` has an entry per array dimension
    (-1 without a size); ``fields`` holds an interval's fields ("year to month"), else "".
    """

    name: str
    schema: str = ""
    modifiers: tuple[str, ...] = ()
    bounds: tuple[int, ...] = ()
    is_set: bool = False
    fields: str = ""
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as target or in a list; ``only`` for ONLY t, ``columns`` where a list may follow."""

    name: QualifiedName
    only: bool = False
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    """``name [value]``. ``value`` is the value's text (strings unquoted), a tuple for a
    parenthesized list, None where none was given."""

    name: str
    value: str | tuple[str, ...] | None = None
    position: int = field(default=0, compare=False)


# --- queries ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueryStatement:
    """A query or DML statement, left to the query parser.

    ``kind`` is select, values, table, insert, update, delete or merge (that of the main statement
    under WITH).
    """

    query: Slice
    kind: str

    @property
    def tag(self) -> str:
        return _QUERY_TAGS[self.kind]


_QUERY_TAGS = {
    "select": "SELECT",
    "values": "SELECT",
    "table": "SELECT",
    "insert": "INSERT",
    "update": "UPDATE",
    "delete": "DELETE",
    "merge": "MERGE",
}


@dataclass(frozen=True, slots=True)
class Empty:
    """No statement: nothing but spaces, comments and semicolons."""

    tag: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A statement that PostgreSQL has and gpudb refuses with 0A000; ``what`` names it."""

    what: str

    @property
    def tag(self) -> str:
        return self.what
