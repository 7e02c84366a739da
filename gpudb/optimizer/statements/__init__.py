"""Utility statements: dataclasses (`nodes`) and the recursive-descent parser that makes them.

`dispatch` reads a whole message; the first key word of each statement decides which rule reads
it. Queries and expressions in statements are read by the query parser's rules, so a syntax error
anywhere is raised before anything runs, and are kept as slices of the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpudb.optimizer.statements.dispatch import ParsedStatement
    from gpudb.optimizer.statements.nodes import Statement


def parse(text: str) -> tuple[Statement, ...]:
    """The statements of a message; see `dispatch.parse_script`."""
    return tuple(parsed.statement for parsed in parse_script(text))


def parse_script(text: str) -> tuple[ParsedStatement, ...]:
    """The statements of a message, each with its own text; see `dispatch.parse_script`."""
    # Imported late: the query parser, which dispatch needs, imports this package's nodes.
    from gpudb.optimizer.statements import dispatch

    return dispatch.parse_script(text)
