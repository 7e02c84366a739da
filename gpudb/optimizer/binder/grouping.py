"""GROUP BY: keys, grouping sets, and the rule that other columns must not appear bare."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from gpudb import errors
from gpudb.expr import ColumnRef, Expr, Grouping, Literal, Subquery
from gpudb.optimizer import logical
from gpudb.optimizer.binder import operators, plan_rewrite
from gpudb.optimizer.binder.scope import Item, Scope
from gpudb.optimizer.parser import start_position
from gpudb.tree import map_children

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder
    from gpudb.optimizer.binder.targets import Targets

GROUPING_SETS_MAX = 4096
CUBE_ELEMENTS_MAX = 12


@dataclass(slots=True)
class Groups:
    """The keys of GROUP BY in order, and the sets of key numbers (None without set syntax)."""

    keys: list[Expr] = field(default_factory=list)
    sets: list[tuple[int, ...]] | None = None

    def number(self, key: Expr) -> int:
        for number, known in enumerate(self.keys):
            if known == key:
                return number
        self.keys.append(key)
        return len(self.keys) - 1


_Sets = list[tuple[int, ...]]


def bind_groups(
    binder: Binder, scope: Scope, node: exp.Expression, targets: Targets
) -> Groups:
    """The keys and grouping sets of a SELECT's GROUP BY."""
    groups = Groups()
    parts: list[_Sets] = []
    has_sets = False
    for item in node.args["group"]:
        has_sets |= isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets) or (
            isinstance(item, exp.Tuple) and not item.args["expressions"]
        )
        parts.append(_item_sets(binder, scope, item, groups, targets))
    if not has_sets:
        return groups
    count = 1
    for part in parts:
        count *= len(part)
        if count > GROUPING_SETS_MAX:
            raise errors.StatementTooComplex(
                f"too many grouping sets present (maximum {GROUPING_SETS_MAX})",
                position=start_position(node.args["group"][0]),
            )
    sets = [
        tuple(sorted(set(itertools.chain.from_iterable(choice))))
        for choice in itertools.product(*parts)
    ]
    if node.args.get("group_distinct"):
        sets = list(dict.fromkeys(sets))
    groups.sets = sets
    return groups


def _item_sets(
    binder: Binder, scope: Scope, node: exp.Expression, groups: Groups, targets: Targets
) -> _Sets:
    """The grouping sets of one item; a plain key is one set."""
    if isinstance(node, exp.GroupingSets):
        return [
            part
            for item in node.args["expressions"]
            for part in _item_sets(binder, scope, item, groups, targets)
        ]
    if isinstance(node, exp.Rollup | exp.Cube):
        elements = [
            _keys(binder, scope, item, groups, targets) for item in node.args["expressions"]
        ]
        if isinstance(node, exp.Rollup):
            return [
                tuple(itertools.chain.from_iterable(elements[:count]))
                for count in range(len(elements), -1, -1)
            ]
        if len(elements) > CUBE_ELEMENTS_MAX:
            raise errors.TooManyColumns(
                f"CUBE is limited to {CUBE_ELEMENTS_MAX} elements",
                position=start_position(node),
            )
        return [
            tuple(itertools.chain.from_iterable(choice))
            for count in range(len(elements), -1, -1)
            for choice in itertools.combinations(elements, count)
        ]
    return [_keys(binder, scope, node, groups, targets)]


def _keys(
    binder: Binder, scope: Scope, node: exp.Expression, groups: Groups, targets: Targets
) -> tuple[int, ...]:
    if isinstance(node, exp.Tuple) and not node.args.get("explicit"):
        return tuple(
            number
            for item in node.args["expressions"]
            for number in _keys(binder, scope, item, groups, targets)
        )
    value = targets.group_key(binder, scope, node)
    _check_key(binder, scope, value)
    operators.require_equality(binder, value, start_position(node))
    return (groups.number(value),)


def _check_key(binder: Binder, scope: Scope, value: Expr) -> None:
    ids = binder.references(value)
    for id_ in ids & scope.aggregate_ids.keys():
        raise errors.GroupingError(
            "aggregate functions are not allowed in GROUP BY",
            position=scope.aggregate_ids[id_],
        )
    for id_ in ids & scope.window_ids.keys():
        raise errors.WindowingError(
            "window functions are not allowed in GROUP BY", position=scope.window_ids[id_]
        )


class GroupedScope:
    """Rewrites expressions over FROM's columns to expressions over an Aggregate's output."""

    def __init__(self, binder: Binder, scope: Scope, groups: Groups) -> None:
        self.binder = binder
        self.scope = scope
        self.groups = groups
        self.assignments: list[logical.Assignment] = []
        self._columns: dict[int, ColumnRef] = {}
        self._others: dict[Expr, ColumnRef] = {}
        self._inner_depth = 0
        for key in groups.keys:
            self._add_key(key)

    def _add_key(self, key: Expr) -> None:
        binder = self.binder
        if isinstance(key, ColumnRef) and self.groups.sets is None:
            table_oid, attnum = binder.origins.get(key.id, (0, 0))
            output = logical.Field(key.id, key.name, key.type, table_oid, attnum)
        else:
            name = key.name if isinstance(key, ColumnRef) else "key"
            output = binder.field_like(name, key)
            binder.own(self.scope, output.id, name)
        self.assignments.append(logical.Assignment(output, key))
        if isinstance(key, ColumnRef):
            self._columns[key.id] = output.ref
        else:
            self._others[key] = output.ref

    def rewrite(self, value: Expr) -> Expr:
        """The value over keys and aggregates. Raises GroupingError (42803)."""
        if self._others and not isinstance(value, ColumnRef | Literal):
            found = self._others.get(value)
            if found is not None:
                return found
        if isinstance(value, ColumnRef):
            return self._column(value)
        if isinstance(value, Literal):
            return value
        if isinstance(value, Subquery):
            return self._subquery(value)
        rewritten: Expr = map_children(value, Expr, self.rewrite)
        return rewritten

    def rewrite_outputs(self, values: Sequence[Expr]) -> list[Expr]:
        """The SELECT list's values rewritten.

        With grouping sets, the first constant that is a key is the one that GROUP BY names, and
        NULL in the sets without it; equal constants elsewhere stay constants.
        """
        named: dict[Expr, Expr] = {}
        if self.groups.sets is not None:
            named = {k: ref for k, ref in self._others.items() if isinstance(k, Literal)}
        return [
            named.pop(value) if isinstance(value, Literal) and value in named
            else self.rewrite(value)
            for value in values
        ]

    def _column(self, value: ColumnRef) -> Expr:
        found = self._columns.get(value.id)
        if found is not None:
            return value if found.id == value.id else found
        scope = self.scope
        if self.binder.owner(value.id) is not scope:
            return value
        if value.id in scope.aggregate_ids or value.id in scope.window_ids:
            return value
        if value.id in scope.set_ids:
            return value
        if self.groups.sets is None and self._is_dependent(value):
            self._add_key(value)
            return value
        label = self.binder.label(value.id)
        if self._inner_depth:
            raise errors.GroupingError(
                f'subquery uses ungrouped column "{label}" from outer query',
                position=self.binder.position(value),
            )
        raise errors.GroupingError(
            f'column "{label}" must appear in the GROUP BY clause or be used in an'
            " aggregate function",
            position=self.binder.position(value),
        )

    def _subquery(self, value: Subquery) -> Expr:
        """A subquery that reads grouped columns has them replaced all through its plan."""
        binder = self.binder
        assert isinstance(value.plan, logical.Plan)
        captured = binder.captured(value.plan)
        if not any(binder.owner(id_) is self.scope for id_ in captured):
            comparison = value.comparison
            if comparison is None:
                return value
            return replace(value, comparison=self.rewrite(comparison))
        self._inner_depth += 1
        plan = plan_rewrite.map_expressions(value.plan, self.rewrite)
        self._inner_depth -= 1
        if plan is not value.plan:
            renamed = {id_: ref.id for id_, ref in self._columns.items()}
            ids = {renamed.get(id_, id_) for id_ in captured}
            ids |= {ref.id for ref in self._others.values()}
            binder.note_captured(plan, frozenset(ids))
        comparison = value.comparison
        if comparison is not None:
            comparison = self.rewrite(comparison)
        return Subquery(value.kind, plan, value.type, comparison)

    def _is_dependent(self, value: ColumnRef) -> bool:
        """Whether the column follows from a primary key among the group keys."""
        item = self._item_of(value.id)
        if item is None or item.relation is None or not item.scan_key:
            return False
        key = self.binder.snapshot.primary_key(item.relation.oid)
        if key is None or key.is_deferrable:
            return False
        grouped = {
            self.binder.origins[column.expression.id][1]
            for column in item.columns
            if isinstance(column.expression, ColumnRef)
            and column.expression.id in self._columns
            and column.expression.id in self.binder.origins
        }
        return grouped.issuperset(key.columns)

    def _item_of(self, id_: int) -> Item | None:
        for item in self.scope.items:
            if item.relation is None:
                continue
            for column in item.columns:
                if isinstance(column.expression, ColumnRef) and column.expression.id == id_:
                    return item
        return None

    def items(self) -> tuple[logical.AggregateItem, ...]:
        """The aggregates, GROUPING's arguments turned into keys."""
        found = []
        for item in self.scope.aggregates.values():
            if isinstance(item.call, Grouping):
                item = replace(item, call=self._grouping(item.call, item.field.id))
            found.append(item)
        return tuple(found)

    def _grouping(self, call: Grouping, id_: int) -> Grouping:
        arguments = []
        for argument in call.arguments:
            if isinstance(argument, ColumnRef):
                key = self._columns.get(argument.id)
            else:
                key = self._others.get(argument)
            if key is None:
                raise errors.GroupingError(
                    "arguments to GROUPING must be grouping expressions of the associated"
                    " query level",
                    position=self.scope.aggregate_ids[id_],
                )
            arguments.append(key)
        return Grouping(tuple(arguments), call.type)

    def rewrite_call(self, call: Any) -> Any:
        """A window or set-returning call with its parts rewritten."""
        return map_children(call, Expr, self.rewrite)

