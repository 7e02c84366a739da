"""Plans reshaped without changing their rows: exact columns, renamed copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpudb.expr import ColumnRef, Expr, Literal
from gpudb.optimizer import logical
from gpudb.optimizer.logical import Assignment, Field, Plan
from gpudb.optimizer.rules.context import RuleContext
from gpudb.tree import Node, children, map_children

POSITIONAL = (
    logical.SetOperation,
    logical.Recursive,
    logical.Insert,
    logical.Distinct,
)
"""Nodes that read their inputs' columns by position, or as a whole."""


def has_columns(plan: Plan, fields: Sequence[Field]) -> bool:
    """Whether the plan yields exactly these columns, in order."""
    have = plan.fields
    return len(have) == len(fields) and all(
        one.id == other.id for one, other in zip(have, fields, strict=True)
    )


def passed(fields: Sequence[Field]) -> tuple[Assignment, ...]:
    """Assignments that pass columns on unchanged."""
    return tuple(Assignment(item, item.ref) for item in fields)


def exactly(plan: Plan, fields: Sequence[Field]) -> Plan:
    """The plan yielding exactly ``fields``, in order."""
    if has_columns(plan, fields):
        return plan
    return logical.Project(plan, passed(fields))


def with_values(plan: Plan, added: Sequence[Assignment]) -> Plan:
    """The plan with computed columns besides its own."""
    if not added:
        return plan
    return logical.Project(plan, (*passed(plan.fields), *added))


def exact_inputs(before: Plan, after: Plan) -> Plan:
    """``after`` (``before`` with rewritten inputs) where columns count: exact again."""
    if before is after or not isinstance(after, (*POSITIONAL, logical.With)):
        return after
    if isinstance(after, logical.With):
        assert isinstance(before, logical.With)
        definitions = tuple(
            logical.SharedDefinition(new.id, exactly(new.plan, old.plan.fields), new.name)
            for old, new in zip(before.definitions, after.definitions, strict=True)
        )
        return logical.With(definitions, after.input)
    wanted = iter([child.fields for child in before.inputs])
    changed = map_children(after, Plan, lambda child: exactly(child, next(wanted)))
    assert isinstance(changed, Plan)
    return changed


def fresh_copy(plan: Plan, context: RuleContext) -> tuple[Plan, dict[int, Field]]:
    """The plan with new ids for all it produces, and the new field for each old id."""
    renamed: dict[int, Field] = {}
    shared: dict[int, int] = {}
    _collect(plan, renamed, shared, context)
    copied = _rename(plan, renamed, shared)
    assert isinstance(copied, Plan)
    return copied, renamed


def _collect(
    node: Node, renamed: dict[int, Field], shared: dict[int, int], context: RuleContext
) -> None:
    if isinstance(node, Field):
        if node.id not in renamed:
            renamed[node.id] = context.copy_of(node)
        return
    if isinstance(node, logical.SharedDefinition | logical.Recursive):
        shared[node.id] = context.new_id()
    if isinstance(node, Literal | ColumnRef):
        return
    for child in children(node, Node):
        _collect(child, renamed, shared, context)


def _rename(node: Any, renamed: Mapping[int, Field], shared: Mapping[int, int]) -> Any:
    if isinstance(node, Field):
        return renamed.get(node.id, node)
    if isinstance(node, ColumnRef):
        found = renamed.get(node.id)
        return node if found is None else ColumnRef(found.id, node.type, node.name)
    if isinstance(node, Literal):
        return node
    changed = map_children(node, Node, lambda child: _rename(child, renamed, shared))
    return _renumber(changed, shared)


def _renumber(node: Any, shared: Mapping[int, int]) -> Any:
    match node:
        case logical.SharedDefinition() if node.id in shared:
            return logical.SharedDefinition(shared[node.id], node.plan, node.name)
        case logical.SharedRef() if node.id in shared:
            return logical.SharedRef(shared[node.id], node.columns)
        case logical.WorkTable() if node.id in shared:
            return logical.WorkTable(shared[node.id], node.columns)
        case logical.Recursive() if node.id in shared:
            return logical.Recursive(
                shared[node.id], node.base, node.step, node.is_all, node.columns
            )
        case _:
            return node


def substitute_plan(plan: Any, mapping: Mapping[int, Expr]) -> Any:
    """A plan whose free columns in ``mapping`` are replaced, subqueries included."""
    if isinstance(plan, ColumnRef):
        return mapping.get(plan.id, plan)
    if isinstance(plan, Literal | Field):
        return plan
    return map_children(plan, Node, lambda child: substitute_plan(child, mapping))
