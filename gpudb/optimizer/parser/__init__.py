"""The query parser: tokens to sqlglot expression trees, faithful to PostgreSQL's grammar.

The grammar rules are recursive-descent over our own tokens; sqlglot gives the node classes. (Its
compiled classes cannot be subclassed, and its parser drops what PostgreSQL keeps apart: operator
precedence, function names, NULLS FIRST from its absence, subscript bases.) Trees are cached and
shared: read them, never change them. The tree's conventions, in docs/internals/syntax-tree.md:

- Names are folded strings, not Identifier nodes: ``column.name``, ``column.table``, ``table.db``.
- Operators are ``exp.Operator(this=left | None, operator, schema, expression=right)``.
- Calls are ``exp.Anonymous`` carrying everything of a call (distinct, filter, over ...).
- Parentheses leave no node; positions are in ``meta["span"]``, read by the functions here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from sqlglot import exp

from gpudb import errors
from gpudb.optimizer.lexer import Token, tokenize
from gpudb.optimizer.parser.changes import ChangeReader
from gpudb.optimizer.parser.naming import (
    UNNAMED,
    function_name,
    output_name,
    position,
    source_text,
    start_position,
    type_name,
)
from gpudb.optimizer.statements.nodes.base import Slice, TypeName

CACHED_TREES_MAX = 256
CACHED_TEXT_MAX = 64 * 1024
"""Characters of a text whose tree is kept."""

_Key = tuple[str, int, str]


class TreeCache:
    """The latest trees by source text, offset and rule."""

    def __init__(self, size: int = CACHED_TREES_MAX) -> None:
        self._trees: OrderedDict[_Key, exp.Expression] = OrderedDict()
        self._size = size

    def __len__(self) -> int:
        return len(self._trees)

    def get(self, key: _Key) -> exp.Expression | None:
        tree = self._trees.get(key)
        if tree is not None:
            try:
                self._trees.move_to_end(key)
            except KeyError:
                return tree
        return tree

    def put(self, key: _Key, tree: exp.Expression) -> None:
        if len(key[0]) > CACHED_TEXT_MAX:
            return
        self._trees[key] = tree
        while len(self._trees) > self._size:
            self._trees.popitem(last=False)


TREES = TreeCache()


def parse_query(source: Slice | str) -> exp.Expression:
    """The tree of a query or DML statement.

    Raises SyntaxError (42601) as PostgreSQL words it, FeatureNotSupported (0A000).
    """
    return _parse(source, "query", ChangeReader.preparable)


def parse_expression(source: Slice | str) -> exp.Expression:
    """The tree of one expression."""
    return _parse(source, "expression", ChangeReader.expression)


def parse_expressions(source: Slice | str) -> list[exp.Expression]:
    """The trees of a comma-separated list of expressions."""
    node = _parse(source, "list", _expression_list)
    items: list[exp.Expression] = node.args["expressions"]
    return items


def parse_type(text: str) -> TypeName:
    """A type's name from text, as ``::regtype`` and format strings give it."""
    reader = ChangeReader(text, tokenize(text))
    found = reader.type_name()
    reader.expect_end()
    return found


def reader_for(text: str, tokens: list[Token], shift: int = 0) -> ChangeReader:
    """A reader that knows every rule, over tokens already made."""
    return ChangeReader(text, tokens, shift)


def remember(source: Slice, tree: exp.Expression) -> None:
    """Keep the tree of a query that another parser has already read."""
    TREES.put((source.text, source.offset, "query"), tree)


def _expression_list(reader: ChangeReader) -> exp.Expression:
    return exp.Tuple(expressions=reader.expressions())


def _parse(
    source: Slice | str, name: str, rule: Callable[[ChangeReader], exp.Expression]
) -> exp.Expression:
    text, offset = (source, 0) if isinstance(source, str) else (source.text, source.offset)
    key = (text, offset, name)
    tree = TREES.get(key)
    if tree is not None:
        return tree
    reader = ChangeReader(text, tokenize(text), offset)
    try:
        tree = rule(reader)
    except RecursionError:
        raise errors.StatementTooComplex("stack depth limit exceeded") from None
    if reader.at(";"):
        reader.advance()
    reader.expect_end()
    TREES.put(key, tree)
    return tree


__all__ = [
    "UNNAMED",
    "ChangeReader",
    "TreeCache",
    "function_name",
    "output_name",
    "parse_expression",
    "parse_expressions",
    "parse_query",
    "parse_type",
    "position",
    "reader_for",
    "remember",
    "source_text",
    "start_position",
    "type_name",
]
