"""EXPLAIN: a physical plan as PostgreSQL's text tree or as JSON.

Expressions are printed as SQL, columns by name (by alias and name in VERBOSE or where the plan
reads several relations). ``metrics`` of a node, if given, are what EXPLAIN ANALYZE measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpudb.optimizer import physical
from gpudb.optimizer.deparse import Names, deparse, sort_key
from gpudb.optimizer.logical import JoinKind, SetKind
from gpudb.optimizer.physical import AggregateMode, Physical
from gpudb.tree import children


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    """What one node did; ``seconds`` are summed over workers."""

    rows: int = 0
    seconds: float = 0.0
    bytes: int = 0
    batches: int = 0
    device: str = ""
    runner: str = ""
    notes: tuple[str, ...] = ()


Metrics = Mapping[int, NodeMetrics]
"""By ordinal: the node's place in ``ordinals``."""


def ordinals(plan: Physical) -> dict[int, int]:
    """The ordinal of each node, by id(): parents first, inputs in field order."""
    found: dict[int, int] = {}
    stack = [plan]
    while stack:
        node = stack.pop()
        found[id(node)] = len(found)
        stack.extend(reversed(tuple(children(node, Physical))))
    return found


@dataclass(frozen=True, slots=True)
class Options:
    costs: bool = True
    verbose: bool = False


_JOIN_NAMES = {
    JoinKind.INNER: "",
    JoinKind.LEFT: " Left",
    JoinKind.RIGHT: " Right",
    JoinKind.FULL: " Full",
    JoinKind.SEMI: " Semi",
    JoinKind.ANTI: " Anti",
    JoinKind.MARK: " Mark",
    JoinKind.SINGLE: " Single",
}


def _relation(verb: str, name: str, alias: str) -> str:
    return f"{verb} on {name}" + (f" {alias}" if alias and alias != name else "")


def _set_title(node: physical.SetOperation) -> str:
    if node.kind is SetKind.UNION:
        return "Append"
    return f"HashSetOp {node.kind.value}" + (" All" if node.is_all else "")


def _aggregate_title(node: physical.HashAggregate) -> str:
    prefix = {
        AggregateMode.SINGLE: "",
        AggregateMode.PARTIAL: "Partial ",
        AggregateMode.FINAL: "Finalize ",
    }[node.mode]
    if node.grouping_sets:
        return prefix + "MixedAggregate"
    return prefix + ("HashAggregate" if node.keys else "Aggregate")


def _join_title(verb: str, kind: JoinKind) -> str:
    needs_word = verb == "Hash" or kind is not JoinKind.INNER
    return f"{verb}{_JOIN_NAMES[kind]}{' Join' if needs_word else ''}"


_TITLES: dict[type[Physical], Callable[[Any], str]] = {
    physical.TableScan: lambda n: _relation("Seq Scan", n.name, n.alias),
    physical.SystemScan: lambda n: _relation("Catalog Scan", n.name, n.alias),
    physical.FileScan: lambda n: f"{n.format.capitalize()} Scan on {', '.join(n.paths[:3])}",
    physical.ValuesScan: lambda n: "Values Scan" if n.fields or len(n.rows) != 1 else "Result",
    physical.FunctionScan: lambda n: "Function Scan",
    physical.Filter: lambda n: "Filter",
    physical.Project: lambda n: "Project",
    physical.ProjectSet: lambda n: "ProjectSet",
    physical.HashJoin: lambda n: _join_title("Hash", n.kind),
    physical.NestedLoopJoin: lambda n: _join_title("Nested Loop", n.kind),
    physical.HashAggregate: _aggregate_title,
    physical.Sort: lambda n: "Sort",
    physical.TopN: lambda n: "Top-N Sort",
    physical.Limit: lambda n: "Limit",
    physical.DistinctOn: lambda n: "Unique",
    physical.Window: lambda n: "WindowAgg",
    physical.SetOperation: _set_title,
    physical.RecursiveUnion: lambda n: "Recursive Union",
    physical.WorkTableScan: lambda n: "WorkTable Scan",
    physical.With: lambda n: "With",
    physical.SharedScan: lambda n: f"CTE Scan on {n.name or 'shared'} {n.id}",
    physical.Exchange: lambda n: f"Exchange {n.distribution.value}",
    physical.Transfer: lambda n: f"Transfer to {n.device}",
    physical.InsertRows: lambda n: _relation("Insert", n.name, ""),
    physical.DeleteRows: lambda n: _relation("Delete", n.name, ""),
    physical.UpdateRows: lambda n: _relation("Update", n.name, ""),
}


class _Explainer:
    def __init__(self, plan: Physical, metrics: Metrics | None, options: Options) -> None:
        self.options = options
        self.metrics = metrics
        self.ordinals = ordinals(plan)
        self.names = Names.of(plan)

    def title(self, node: Physical) -> str:
        return _TITLES[type(node)](node)

    def measured(self, node: Physical) -> NodeMetrics | None:
        return None if self.metrics is None else self.metrics.get(self.ordinals[id(node)])

    def details(self, node: Physical) -> list[tuple[str, Any]]:
        """Labelled properties of a node."""
        found: list[tuple[str, Any]] = []
        if self.options.verbose:
            found.append(("Output", [self.names.column(item.id) for item in node.fields]))
        found.extend(self._own_details(node))
        return found

    def _list(self, expressions: Any) -> list[str]:
        return [deparse(item, self.names) for item in expressions]

    def _all(self, predicates: Any) -> str:
        parts = self._list(predicates)
        return parts[0] if len(parts) == 1 else "(" + " AND ".join(parts) + ")"

    def _own_details(self, node: Physical) -> list[tuple[str, Any]]:
        match node:
            case physical.TableScan() | physical.SystemScan() | physical.FileScan():
                return self._scan(node)
            case physical.Filter():
                return [("Filter", self._all(node.predicates))]
            case physical.Project():
                return self._project(node)
            case physical.HashJoin():
                return self._hash_join(node)
            case physical.NestedLoopJoin():
                text_ = deparse(node.condition, self.names)
                return [] if text_ == "true" else [("Join Filter", text_)]
            case physical.HashAggregate():
                return self._aggregate(node)
            case physical.Sort() | physical.TopN():
                return [("Sort Key", [sort_key(key, self.names) for key in node.keys])]
            case physical.Window():
                return self._window(node)
            case physical.FunctionScan():
                return [("Function Call", self._list(node.calls))]
            case physical.DistinctOn():
                return [("Key", self._list(node.on))]
            case _:
                return []

    def _scan(self, node: Any) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        if node.filters:
            found.append(("Filter", self._all(node.filters)))
        if isinstance(node, physical.TableScan):
            if node.zone_filters and self.options.verbose:
                found.append(("Zone Filter", self._all(node.zone_filters)))
            if node.dynamic_filters:
                listed = [f"{self.names.column(c)} in ${f}" for f, c in node.dynamic_filters]
                found.append(("Dynamic Filter", listed))
        return found

    def _project(self, node: physical.Project) -> list[tuple[str, Any]]:
        if self.options.verbose:
            return [("Expressions", self._list(item.expression for item in node.assignments))]
        return []

    def _hash_join(self, node: physical.HashJoin) -> list[tuple[str, Any]]:
        parts = []
        for one, other, null_safe in zip(
            node.probe_keys, node.build_keys, node.null_safe, strict=True
        ):
            operator = "IS NOT DISTINCT FROM" if null_safe else "="
            sides = deparse(one, self.names), deparse(other, self.names)
            parts.append(f"({sides[0]} {operator} {sides[1]})")
        text_ = parts[0] if len(parts) == 1 else "(" + " AND ".join(parts) + ")"
        found: list[tuple[str, Any]] = [("Hash Cond", text_)]
        if node.residual is not None:
            found.append(("Join Filter", deparse(node.residual, self.names)))
        if node.is_null_aware:
            found.append(("Null Aware", True))
        if node.dynamic_filters:
            found.append(("Publishes", [f"${item}" for item, _ in node.dynamic_filters]))
        return found

    def _aggregate(self, node: physical.HashAggregate) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        keys = self._list(item.expression for item in node.keys)
        if node.grouping_sets:
            for chosen in node.grouping_sets:
                found.append(("Group Key", [keys[index] for index in chosen]))
        elif keys:
            found.append(("Group Key", keys))
        if node.items and self.options.verbose:
            found.append(("Aggregates", self._list(item.call for item in node.items)))
        return found

    def _window(self, node: physical.Window) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        if node.partition_by:
            found.append(("Partition By", self._list(node.partition_by)))
        if node.order_by:
            found.append(("Order By", [sort_key(key, self.names) for key in node.order_by]))
        return found


def _suffix(explainer: _Explainer, node: Physical) -> str:
    parts = []
    if explainer.options.costs:
        estimate = node.estimate
        width = estimate.bytes / estimate.rows if estimate.rows else 0.0
        parts.append(
            f"(cost={estimate.cost:.2f} rows={max(round(estimate.rows), 1)} width={round(width)})"
        )
    measured = explainer.measured(node)
    if measured is not None:
        where = "".join(f" {item}" for item in (measured.device, measured.runner) if item)
        parts.append(
            f"(actual time={measured.seconds * 1000:.3f} rows={measured.rows}"
            f" bytes={measured.bytes}{where})"
        )
    elif explainer.metrics is not None:
        parts.append("(never executed)")
    return "".join(f"  {part}" if index == 0 else f" {part}" for index, part in enumerate(parts))


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)


def _lines(explainer: _Explainer, node: Physical, indent: int, label: str) -> list[str]:
    arrow = " " * (indent - 4) + "->  " if indent else ""
    lines: list[str] = []
    if label:
        lines.append(" " * max(indent - 4, 2) + label)
        arrow = " " * max(indent - 2, 4) + "->  "
        indent = len(arrow)
    lines.append(arrow + explainer.title(node) + _suffix(explainer, node))
    margin = " " * (indent + 2)
    for name, value in explainer.details(node):
        lines.append(f"{margin}{name}: {_written(value)}")
    measured = explainer.measured(node)
    for note in measured.notes if measured is not None else ():
        lines.append(margin + note)
    if isinstance(node, physical.With):
        for item in node.shared:
            title = f"CTE {item.name or 'shared'} {item.id}"
            lines.extend(_lines(explainer, item.plan, indent + 6, title))
        return lines + _lines(explainer, node.input, indent + 6, "")
    for child in node.inputs:
        lines.extend(_lines(explainer, child, indent + 6, ""))
    return lines


def text(
    plan: Physical, metrics: Metrics | None = None, *, options: Options = Options()
) -> str:
    """The plan as PostgreSQL prints it, one node a line and its properties below."""
    return "\n".join(_lines(_Explainer(plan, metrics, options), plan, 0, ""))


def _object(explainer: _Explainer, node: Physical) -> dict[str, Any]:
    found: dict[str, Any] = {"Node Type": explainer.title(node)}
    if explainer.options.costs:
        rows = node.estimate.rows
        found["Total Cost"] = round(node.estimate.cost, 2)
        found["Plan Rows"] = max(round(rows), 1)
        found["Plan Width"] = round(node.estimate.bytes / rows) if rows else 0
    measured = explainer.measured(node)
    if measured is not None:
        found["Actual Total Time"] = round(measured.seconds * 1000, 3)
        found["Actual Rows"] = measured.rows
        found["Actual Bytes"] = measured.bytes
        found["Device"], found["Runner"] = measured.device, measured.runner
        if measured.notes:
            found["Notes"] = list(measured.notes)
    for name, value in explainer.details(node):
        if name in found and isinstance(found[name], list):
            found[name] = [found[name], value]
        else:
            found[name] = value
    inputs = [_object(explainer, child) for child in node.inputs]
    if inputs:
        found["Plans"] = inputs
    return found


def as_json(
    plan: Physical,
    metrics: Metrics | None = None,
    *,
    options: Options = Options(),
    extra: Mapping[str, Any] | None = None,
) -> str:
    """The plan as EXPLAIN (FORMAT JSON) gives it; ``extra`` are figures of the whole statement."""
    document: dict[str, Any] = {"Plan": _object(_Explainer(plan, metrics, options), plan)}
    document.update(extra or {})
    return json.dumps([document], indent=2, default=str)
