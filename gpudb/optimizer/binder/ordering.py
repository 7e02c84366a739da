"""Sort keys: direction, NULLS placement, USING operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb.expr import Expr, SortKey
from gpudb.optimizer.binder import coercion, operators
from gpudb.optimizer.parser import start_position

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

_USING = {"<": False, ">": True, "~<~": False, "~>~": True}


def sort_key(binder: Binder, value: Expr, node: exp.Expression) -> SortKey:
    """The key of an Ordered node over its bound expression."""
    at = start_position(node.args["this"])
    value = coercion.settled(binder, value)
    is_descending = bool(node.args.get("desc"))
    operator = node.args.get("operator")
    if operator:
        if operator not in _USING:
            raise errors.WrongObjectType(
                f"operator {operator} is not a valid ordering operator",
                hint='Ordering operators must be "<" or ">" members of btree operator'
                " families.",
                position=at,
            )
        is_descending = _USING[operator]
    operators.require_order(binder, value, at)
    nulls_first = node.args.get("nulls_first")
    if nulls_first is None:
        nulls_first = is_descending
    return SortKey(value, is_descending, bool(nulls_first))
