"""Immutable trees: what expressions, logical plans and physical plans share.

A node is a frozen dataclass. Fields may hold nodes, tuples of nodes, or *parts*: small nodes
that are neither expression nor plan (a sort key, an aggregate item) and are looked through.
``kind`` names the class of interest: ``children(plan, Plan)`` are the inputs of a plan,
``children(plan, Expr)`` the expressions it holds. A walk over expressions never enters the plan
of a subquery, and a walk over plans never enters expressions: crossing is explicit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

N = TypeVar("N", bound="Node")


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """A node of a tree; a direct subclass that is neither Expr nor Plan is a part."""

    is_part: ClassVar[bool] = True


_FIELD_NAMES: dict[type, tuple[str, ...]] = {}


def _field_names(cls: type[Node]) -> tuple[str, ...]:
    names = _FIELD_NAMES.get(cls)
    if names is None:
        names = _FIELD_NAMES[cls] = tuple(field.name for field in dataclasses.fields(cls))
    return names


def _within(value: Any, kind: type[N]) -> Iterator[N]:
    if isinstance(value, Node):
        if isinstance(value, kind):
            yield value
        elif value.is_part:
            yield from children(value, kind)
    elif type(value) is tuple:
        for item in value:
            yield from _within(item, kind)


def children(node: Node, kind: type[N]) -> Iterator[N]:
    """The nearest nodes of ``kind`` below ``node``, in field order."""
    for name in _field_names(type(node)):
        value = getattr(node, name)
        if value is not None:
            yield from _within(value, kind)


def walk(node: Node, kind: type[N]) -> Iterator[N]:
    """All nodes of ``kind`` at and below ``node``, parents first."""
    if isinstance(node, kind):
        yield node
    for child in children(node, kind):
        yield from walk(child, kind)


def _mapped(value: Any, kind: type[N], function: Callable[[N], Node]) -> Any:
    if isinstance(value, Node):
        if isinstance(value, kind):
            return function(value)
        return map_children(value, kind, function) if value.is_part else value
    if type(value) is tuple:
        items = tuple(_mapped(item, kind, function) for item in value)
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return items
    return value


def map_children(node: Any, kind: type[N], function: Callable[[N], Node]) -> Any:
    """``node`` with ``function`` applied to each nearest child of ``kind``; itself if unchanged."""
    changes: dict[str, Any] = {}
    for name in _field_names(type(node)):
        old = getattr(node, name)
        if isinstance(old, Node) or type(old) is tuple:
            new = _mapped(old, kind, function)
            if new is not old:
                changes[name] = new
    return dataclasses.replace(node, **changes) if changes else node


def transform(node: Any, kind: type[N], function: Callable[[N], Node]) -> Any:
    """``node`` rebuilt bottom-up: ``function`` sees each node of ``kind`` after its children."""
    rebuilt = map_children(node, kind, lambda child: transform(child, kind, function))
    return function(rebuilt) if isinstance(rebuilt, kind) else rebuilt
