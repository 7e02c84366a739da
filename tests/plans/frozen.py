"""The TPC-H tables without rows, and statistics of scale factor 0.1 frozen in a file, so that
plans depend on the optimizer alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gpudb
from gpudb.catalog.objects import ColumnStatistics
from gpudb.expr import Expr, Literal
from gpudb.optimizer import explain, statements
from gpudb.optimizer.optimizer import optimize
from gpudb.planning import CatalogStatistics

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def _value(item: Any) -> Any:
    return item["b"].encode() if isinstance(item, dict) else item


def _column(attnum: int, known: dict[str, Any]) -> ColumnStatistics:
    return ColumnStatistics(
        attnum,
        null_fraction=known["nulls"],
        distinct=known["distinct"],
        average_width=known["width"],
        low=_value(known["low"]),
        high=_value(known["high"]),
        common_values=tuple(_value(item) for item in known["common"]),
        common_fractions=tuple(known["fractions"]),
        histogram=tuple(_value(item) for item in known["histogram"]),
    )


class FrozenStatistics(CatalogStatistics):
    """The catalog's facts with sizes and column statistics from the file."""

    def __init__(self, snapshot: Any, known: dict[str, Any]) -> None:
        super().__init__(snapshot)
        self._relations = snapshot
        self._known = known

    def rows(self, table_oid: int) -> float | None:
        found = self._known.get(self.table_name(table_oid))
        return None if found is None else found["rows"]

    def column(self, table_oid: int, attnum: int) -> ColumnStatistics | None:
        relation = self._relations.relation_by_oid(table_oid)
        column = None if relation is None else relation.column_by_attnum(attnum)
        if relation is None or column is None or relation.name not in self._known:
            return None
        return _column(attnum, self._known[relation.name]["columns"][column.name])


class Explainer:
    """Plans of statements over the TPC-H tables."""

    def __init__(self, directory: Path) -> None:
        self._connection = gpudb.connect(str(directory))
        self._connection.cursor().execute((ROOT / "tpch" / "schema.sql").read_text())
        self._connection.commit()
        self._known = json.loads((HERE / "tpch_statistics.json").read_text())
        self._session = self._connection.session
        self._database = self._connection._database
        self._session.start_transaction()

    def close(self) -> None:
        self._connection.rollback()
        self._connection.close()

    def text(self, query: str) -> str:
        """The plan without costs."""
        statement = statements.parse(query)[0]
        bound = self._database.planner.bind(self._session, statement, ())
        frozen = FrozenStatistics(self._session.catalog, self._known)

        def fold(expression: Expr) -> Literal | None:
            return self._database.fold(self._session, expression)

        plan = optimize(bound.plan, frozen, self._session.settings, fold=fold)
        return explain.text(plan, options=explain.Options(costs=False))
