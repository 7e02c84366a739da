"""A compact picture of syntax trees, so that tests can state their shape on one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlglot import exp

from gpudb.optimizer.statements.nodes.base import QualifiedName, TypeName


def _type(found: TypeName) -> str:
    text = (
        found.schema + "." if found.schema != "pg_catalog" and found.schema else ""
    ) + found.name
    if found.modifiers:
        text += f"({','.join(found.modifiers)})"
    if found.fields:
        text += f" {found.fields}"
    return (
        ("setof " if found.is_set else "")
        + text
        + "".join("[]" if bound < 0 else f"[{bound}]" for bound in found.bounds)
    )


def picture(node: Any) -> str:
    """The tree as an s-expression."""
    if isinstance(node, list | tuple):
        return "[" + " ".join(picture(item) for item in node) + "]"
    if isinstance(node, TypeName):
        return _type(node)
    if isinstance(node, QualifiedName):
        return str(node)
    if not isinstance(node, exp.Expression):
        return str(node)
    args = {key: value for key, value in node.args.items() if value not in (None, False, "", [])}
    if isinstance(node, exp.Column):
        names = [args.get(part) for part in ("catalog", "db", "table")]
        this = args["this"] if isinstance(args["this"], str) else "*"
        return ".".join([name for name in names if name] + [this])
    if isinstance(node, exp.Literal):
        return repr(args.get("this", "")) if args.get("is_string") else args["this"]
    if isinstance(node, exp.Operator):
        operands = [args["this"]] if "this" in args else []
        operator = (args["schema"] + "." if "schema" in args else "") + args["operator"]
        return f"({operator} {' '.join(picture(item) for item in [*operands, args['expression']])})"
    if isinstance(node, exp.DataType):
        return picture(args["kind"])
    if isinstance(node, exp.Star):
        return "*"
    parts = []
    for key, value in args.items():
        if key in ("this", "expression", "expressions"):
            parts.append(picture(value))
        elif value is True:
            parts.append(key)
        else:
            parts.append(f"{key}={picture(value)}")
    return f"({type(node).__name__.lower()}{''.join(' ' + part for part in parts)})"


@pytest.fixture
def show() -> Callable[[Any], str]:
    return picture
