"""What the source says about a node: its text, position, the name of its output column."""

from __future__ import annotations

from sqlglot import exp

from gpudb.optimizer.statements.nodes.base import TypeName

UNNAMED = "?column?"
_FIXED: dict[type[exp.Expression], str] = {
    exp.Coalesce: "coalesce",
    exp.Greatest: "greatest",
    exp.Least: "least",
    exp.Nullif: "nullif",
    exp.Exists: "exists",
    exp.Array: "array",
    exp.Grouping: "grouping",
}


def position(node: exp.Expression) -> int:
    """Where PostgreSQL reports errors of the node: characters from 1, 0 when unknown.

    An operator's position is its symbol, a cast's its ``::``, a call's its name.
    """
    span = node.meta.get("span")
    return 0 if span is None else int(span[0]) + 1


def start_position(node: exp.Expression) -> int:
    """Where the node's text starts (PostgreSQL's exprLocation): characters from 1, 0 unknown."""
    span = node.meta.get("span")
    return 0 if span is None else int(span[1]) + 1


def source_text(node: exp.Expression, message: str) -> str:
    """The node's own text in the whole message that it was parsed from."""
    span = node.meta.get("span")
    return "" if span is None else message[span[1] : span[2]]


def function_name(node: exp.Expression) -> tuple[str, str]:
    """Schema ("" when not qualified) and name of a call as written, folded.

    Calls from SQL syntax (EXTRACT, TRIM ...) come as their pg_catalog functions.
    """
    assert isinstance(node, exp.Anonymous), node
    return node.args.get("schema") or "", node.args["this"]


def type_name(node: exp.Expression) -> TypeName:
    """The type of a Cast or of a ColumnDef."""
    is_definition = isinstance(node, exp.ColumnDef)
    kind = node.args["kind"] if is_definition else node.args["to"].args["kind"]
    assert isinstance(kind, TypeName)
    return kind


def output_name(node: exp.Expression) -> str:
    """The name PostgreSQL gives a target: its label, or by FigureColname's rules."""
    if isinstance(node, exp.Alias):
        return str(node.args["alias"])
    return _figure(node)[0] or UNNAMED


def _figure(node: exp.Expression) -> tuple[str, int]:
    """A name and how much it counts: 2 for a real name, 1 for a type's or CASE's, 0 for none."""
    fixed = _FIXED.get(type(node))
    if fixed is not None:
        return fixed, 2
    if isinstance(node, exp.Column):
        this = node.args["this"]
        return (this if isinstance(this, str) else node.args["table"], 2)
    if isinstance(node, exp.Anonymous):
        return node.args["this"], 2
    if isinstance(node, exp.Dot):
        field = node.args["expression"]
        is_star = isinstance(field, exp.Star)
        return _figure(node.args["this"]) if is_star else (field.args["this"], 2)
    if isinstance(node, exp.Bracket | exp.Collate):
        return _figure(node.args["this"])
    if isinstance(node, exp.Cast):
        inner = _figure(node.args["this"])
        return inner if inner[1] > 1 else (type_name(node).name, 1)
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        inner = ("", 0) if default is None else _figure(default)
        return inner if inner[1] > 1 else ("case", 1)
    if isinstance(node, exp.Subquery):
        return _figure_subquery(node.args["this"])
    if isinstance(node, exp.Tuple):
        return "row", 2
    if isinstance(node, exp.Var):
        return ("", 0) if node.args["this"] == "default" else (node.args["this"], 2)
    return "", 0


def _figure_subquery(query: exp.Expression) -> tuple[str, int]:
    while isinstance(query, exp.SetOperation):
        query = query.args["this"]
    if isinstance(query, exp.Values):
        return "column1", 2
    targets = query.args.get("expressions") or []
    if not targets:
        return "", 0
    first = targets[0]
    if isinstance(first, exp.Alias):
        return first.args["alias"], 2
    return _figure(first)
