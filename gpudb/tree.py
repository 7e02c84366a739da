"""Immutable trees: what expressions, logical plans and physical plans share.

A node is a frozen dataclass. Fields may hold nodes, tuples of nodes, or *parts*: small nodes
that are neither expression nor plan (a sort key, an aggregate item) and are looked through.
``kind`` names the class of interest: ``children(plan, Plan)`` are the inputs of a plan,
``children(plan, Expr)`` the expressions it holds. A walk over expressions never enters the plan
of a subquery, and a walk over plans never enters expressions: crossing is explicit.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

N = TypeVar("N", bound="Node")


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """A node of a tree; a direct subclass that is neither Expr nor Plan is a part."""

    is_part: ClassVar[bool] = True


_PLAIN_TYPES = frozenset({
    "AggregateMode", "BoundKind", "Distribution", "Estimate", "FrameExclusion", "FrameUnit",
    "Function", "JoinKind", "None", "SetKind", "SqlType", "SubqueryKind", "Truth", "bool", "float",
    "int", "str", "tuple",
})
"""Words of annotations whose values hold no nodes: walks leave such fields out."""

_FIELD_NAMES: dict[type, tuple[str, ...]] = {}
_NODE_FIELDS: dict[type, tuple[str, ...]] = {}


def _node_fields(cls: type[Node]) -> tuple[str, ...]:
    """The names of the fields that may hold nodes."""
    names = _NODE_FIELDS.get(cls)
    if names is None:
        fields = dataclasses.fields(cls)
        _FIELD_NAMES[cls] = tuple(field.name for field in fields)
        names = _NODE_FIELDS[cls] = tuple(
            field.name for field in fields
            if not set(re.findall(r"\w+", str(field.type))) <= _PLAIN_TYPES
        )
    return names


def _gather(node: Node, kind: type[N], found: list[N]) -> None:
    for name in _NODE_FIELDS.get(type(node)) or _node_fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, kind):
            found.append(value)
        elif type(value) is tuple:
            _gather_items(value, kind, found)
        elif isinstance(value, Node) and value.is_part:
            _gather(value, kind, found)


def _gather_items(items: tuple[Any, ...], kind: type[N], found: list[N]) -> None:
    for item in items:
        if isinstance(item, kind):
            found.append(item)
        elif type(item) is tuple:
            _gather_items(item, kind, found)
        elif isinstance(item, Node) and item.is_part:
            _gather(item, kind, found)


def children(node: Node, kind: type[N]) -> Iterator[N]:
    """The nearest nodes of ``kind`` below ``node``, in field order."""
    found: list[N] = []
    _gather(node, kind, found)
    return iter(found)


def walk(node: Node, kind: type[N]) -> Iterator[N]:
    """All nodes of ``kind`` at and below ``node``, parents first."""
    if isinstance(node, kind):
        yield node
    for child in children(node, kind):
        yield from walk(child, kind)


def _mapped(value: Any, kind: type[N], function: Callable[[N], Node]) -> Any:
    if isinstance(value, kind):
        return function(value)
    if type(value) is tuple:
        for place, item in enumerate(value):
            new = _mapped(item, kind, function)
            if new is not item:
                rest = (_mapped(other, kind, function) for other in value[place + 1 :])
                return (*value[:place], new, *rest)
        return value
    if isinstance(value, Node) and value.is_part:
        return map_children(value, kind, function)
    return value


def map_children(node: Any, kind: type[N], function: Callable[[N], Node]) -> Any:
    """``node`` with ``function`` applied to each nearest child of ``kind``; itself if unchanged."""
    cls = type(node)
    changes: dict[str, Any] | None = None
    for name in _NODE_FIELDS.get(cls) or _node_fields(cls):
        old = getattr(node, name)
        if old is None:
            continue
        new = _mapped(old, kind, function)
        if new is not old:
            changes = changes or {}
            changes[name] = new
    if changes is None:
        return node
    return cls(**{
        name: changes[name] if name in changes else getattr(node, name)
        for name in _FIELD_NAMES[cls]
    })


def transform(node: Any, kind: type[N], function: Callable[[N], Node]) -> Any:
    """``node`` rebuilt bottom-up: ``function`` sees each node of ``kind`` after its children."""
    rebuilt = map_children(node, kind, lambda child: transform(child, kind, function))
    return function(rebuilt) if isinstance(rebuilt, kind) else rebuilt
