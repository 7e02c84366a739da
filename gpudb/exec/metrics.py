"""What EXPLAIN ANALYZE tells of a run: rows, batches and time of each operator of the plan."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from gpudb.column import Batch
from gpudb.optimizer.explain import NodeMetrics, ordinals
from gpudb.optimizer.physical import Physical


@dataclass(slots=True)
class OperatorMetrics:
    """``seconds`` is the operator's own time over all workers; ``runner`` what computed it."""

    rows: int = 0
    batches: int = 0
    seconds: float = 0.0
    bytes: int = 0
    runner: str = "eager"
    device: str = "cpu"
    details: dict[str, int | str] = field(default_factory=dict)

    def add(self, seconds: float, output: Batch | None) -> None:
        """Count a step that took ``seconds`` and made ``output``."""
        self.seconds += seconds
        if output is not None:
            self.rows += output.rows
            self.batches += 1


class QueryMetrics:
    """The metrics of one query by node of its plan."""

    def __init__(self) -> None:
        self._by_node: dict[int, OperatorMetrics] = {}
        self._nodes: list[Physical] = []
        self._lock = threading.Lock()
        self.workers = 1
        self.plan: Physical | None = None

    def of(self, node: Physical) -> OperatorMetrics:
        """The metrics of a node (by identity), made when first asked for."""
        with self._lock:
            found = self._by_node.get(id(node))
            if found is None:
                found = self._by_node[id(node)] = OperatorMetrics()
                self._nodes.append(node)
            return found

    def by_ordinal(self) -> dict[int, NodeMetrics]:
        """The metrics by the ordinal of a node in the plan, as EXPLAIN takes them."""
        if self.plan is None:
            return {}
        numbers = ordinals(self.plan)
        return {
            numbers[key]: NodeMetrics(
                m.rows, m.seconds, m.bytes, m.batches, m.device, m.runner,
                tuple(f"{name}: {value}" for name, value in m.details.items()),
            )
            for key, m in self._by_node.items()
            if key in numbers
        }

    def find(self, node: Physical) -> OperatorMetrics | None:
        """The metrics of a node that ran, None for one that did not."""
        return self._by_node.get(id(node))
