"""Bound expressions as SQL text, for EXPLAIN. Not meant to be parsed again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gpudb import expr
from gpudb.catalog import types
from gpudb.catalog.types.base import TypeContext
from gpudb.expr import Expr, SortKey
from gpudb.optimizer import physical
from gpudb.optimizer.physical import Physical
from gpudb.sqltype import NUMBERS, SqlType
from gpudb.tree import walk


@dataclass(slots=True)
class Names:
    """What columns are called: by id, qualified where several relations are read."""

    by_id: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Physical) -> Names:
        names = cls()
        nodes = list(walk(plan, Physical))
        scans = [n for n in nodes if isinstance(n, physical.TableScan | physical.SystemScan)]
        for scan in scans:
            prefix = f"{scan.alias or scan.name}." if len(scans) > 1 else ""
            for item in scan.fields:
                names.by_id[item.id] = prefix + quoted(item.name)
        for node in nodes:
            for item in node.fields:
                names.by_id.setdefault(item.id, quoted(item.name) if item.name else f"#{item.id}")
        return names

    def column(self, id_: int, name: str = "") -> str:
        return self.by_id.get(id_) or name or f"#{id_}"


def quoted(name: str) -> str:
    """An identifier, quoted unless it is plain lower case."""
    plain = name.isascii() and name.isidentifier() and name == name.lower()
    return name if plain or name.startswith("?") else '"' + name.replace('"', '""') + '"'


def type_name(type_: SqlType) -> str:
    """The type as casts write it."""
    if not types.is_known(type_.oid):
        return f"type {type_.oid}"
    return types.format_type(type_.oid, type_.typmod)


def _literal(node: expr.Literal) -> str:
    value = node.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if node.type.oid in NUMBERS:
        return str(value)
    if not types.is_known(node.type.oid):
        return repr(value)
    written = types.get(node.type.oid).format(value, TypeContext())
    return "'" + written.replace("'", "''") + f"'::{type_name(node.type)}"


def _joined(items: Iterable[Expr], names: Names, between: str = ", ") -> str:
    return between.join(deparse(item, names) for item in items)


def _call(node: expr.Call, names: Names) -> str:
    operator = node.function.operator
    if operator and len(node.arguments) == 2:
        left, right = (deparse(item, names) for item in node.arguments)
        return f"({left} {operator} {right})"
    if operator and len(node.arguments) == 1:
        return f"({operator} {deparse(node.arguments[0], names)})"
    return f"{node.function.name}({_joined(node.arguments, names)})"


def sort_key(key: SortKey, names: Names) -> str:
    """A key of an ordering; what is not the default is said."""
    text = deparse(key.expression, names)
    if key.is_descending:
        text += " DESC"
    if key.nulls_first != key.is_descending:
        text += " NULLS FIRST" if key.nulls_first else " NULLS LAST"
    return text


def _aggregate(node: expr.AggregateCall, names: Names) -> str:
    inside = "*" if node.is_star else _joined(node.arguments, names)
    if node.is_distinct:
        inside = "DISTINCT " + inside
    if node.order_by:
        inside += " ORDER BY " + ", ".join(sort_key(key, names) for key in node.order_by)
    text = f"{node.function.name}({inside})"
    if node.filter is not None:
        text += f" FILTER (WHERE {deparse(node.filter, names)})"
    return text


def _case(node: expr.Case, names: Names) -> str:
    arms = "".join(
        f" WHEN {deparse(arm.condition, names)} THEN {deparse(arm.result, names)}"
        for arm in node.arms
    )
    default = "" if node.default is None else f" ELSE {deparse(node.default, names)}"
    return f"CASE{arms}{default} END"


def _negated(is_negated: bool) -> str:
    return "NOT " if is_negated else ""


def _subscript(node: expr.Subscript, names: Names) -> str:
    def bound(item: Expr | None) -> str:
        return "" if item is None else deparse(item, names)

    if node.uppers is None:
        inside = "".join(f"[{bound(item)}]" for item in node.lowers)
    else:
        pairs = zip(node.lowers, node.uppers, strict=True)
        inside = "".join(f"[{bound(low)}:{bound(high)}]" for low, high in pairs)
    return deparse(node.argument, names) + inside


def deparse(node: Expr, names: Names) -> str:
    """The expression's text."""
    match node:
        case expr.ColumnRef():
            return names.column(node.id, node.name)
        case expr.Literal():
            return _literal(node)
        case expr.Call():
            return _call(node, names)
        case expr.And():
            return f"({_joined(node.arguments, names, ' AND ')})"
        case expr.Or():
            return f"({_joined(node.arguments, names, ' OR ')})"
        case expr.Not():
            return f"(NOT {deparse(node.argument, names)})"
        case expr.Case():
            return _case(node, names)
        case expr.AggregateCall():
            return _aggregate(node, names)
        case _:
            return _deparse_more(node, names)


def _deparse_more(node: Expr, names: Names) -> str:
    match node:
        case expr.Parameter():
            return f"${node.index}"
        case expr.Cast():
            return f"({deparse(node.argument, names)})::{type_name(node.type)}"
        case expr.IsNull():
            return f"({deparse(node.argument, names)} IS {_negated(node.is_negated)}NULL)"
        case expr.BooleanTest():
            truth = _negated(node.is_negated) + node.truth.value
            return f"({deparse(node.argument, names)} IS {truth})"
        case expr.DistinctFrom():
            word = f"IS {_negated(node.is_negated)}DISTINCT FROM"
            return f"({deparse(node.left, names)} {word} {deparse(node.right, names)})"
        case expr.Coalesce():
            return f"COALESCE({_joined(node.arguments, names)})"
        case expr.Extreme():
            name = "GREATEST" if node.is_greatest else "LEAST"
            return f"{name}({_joined(node.arguments, names)})"
        case expr.InList():
            return f"({deparse(node.argument, names)} IN ({_joined(node.items, names)}))"
        case expr.ArrayComparison():
            word = "ANY" if node.is_any else "ALL"
            left, right = deparse(node.argument, names), deparse(node.array, names)
            return f"({left} {node.function.operator} {word} ({right}))"
        case expr.ArrayConstruct():
            return f"ARRAY[{_joined(node.items, names)}]"
        case expr.RowConstruct():
            return f"ROW({_joined(node.items, names)})"
        case expr.Subscript():
            return _subscript(node, names)
        case _:
            return _deparse_rare(node, names)


def _deparse_rare(node: Expr, names: Names) -> str:
    match node:
        case expr.FieldSelect():
            return f"({deparse(node.argument, names)}).f{node.index + 1}"
        case expr.SessionValue():
            return node.name.upper()
        case expr.Grouping():
            return f"GROUPING({_joined(node.arguments, names)})"
        case expr.WindowCall():
            inside = "*" if node.is_star else _joined(node.arguments, names)
            return f"{node.function.name}({inside}) OVER (?)"
        case expr.Subquery():
            return f"(SubPlan {node.kind.value})"
        case _:
            unknown: Any = node
            raise AssertionError(f"no text for {type(unknown).__name__}")
