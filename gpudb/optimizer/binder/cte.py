"""WITH: common tables, shared or expanded in place, recursive and data-modifying ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb.optimizer import logical
from gpudb.optimizer.binder import recursion
from gpudb.optimizer.binder.from_clause import distinct_names
from gpudb.optimizer.binder.scope import Scope
from gpudb.optimizer.parser import position

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

CHANGES = (exp.Insert, exp.Update, exp.Delete, exp.Merge)


@dataclass(slots=True)
class CommonTable:
    """A WITH item. ``is_inlined``: its plan stands where it is referred to (once, or anew each
    time); otherwise references are SharedRefs of ``id``. ``work_table`` is set while the
    recursive term is bound.
    """

    name: str
    node: exp.Expression
    scope: Scope
    id: int
    names: tuple[str, ...] = ()
    plan: logical.Plan | None = None
    is_inlined: bool = False
    is_used: bool = False
    work_table: tuple[logical.Field, ...] | None = None
    work_references: int = 0
    is_change: bool = False


def find(scope: Scope, name: str) -> CommonTable | None:
    """The WITH item of that name at the nearest level."""
    level: Scope | None = scope
    while level is not None:
        found = level.tables.get(name)
        if found is not None:
            return found
        level = level.parent
    return None


def bind_with(
    binder: Binder, scope: Scope, owner: exp.Expression, *, is_top: bool
) -> tuple[logical.SharedDefinition, ...]:
    """Bind the WITH clause of ``owner``; the definitions that are shared, in order."""
    clause = owner.args["with_"]
    nodes: list[exp.Expression] = clause.args["expressions"]
    seen: set[str] = set()
    for node in nodes:
        name = node.args["alias"].args["this"]
        if name in seen:
            raise errors.DuplicateAlias(
                f'WITH query name "{name}" specified more than once', position=position(node)
            )
        seen.add(name)
    is_recursive = bool(clause.args.get("recursive"))
    if is_recursive:
        nodes = recursion.ordered(nodes)
    definitions = []
    for node in nodes:
        item = CommonTable(node.args["alias"].args["this"], node, scope, binder.new_id())
        item.is_change = isinstance(node.args["this"], CHANGES)
        if item.is_change and not is_top:
            raise errors.FeatureNotSupported(
                "WITH clause containing a data-modifying statement must be at the top level",
                position=position(node),
            )
        volatile_before = binder.volatile_count
        if is_recursive and recursion.refers_to(node.args["this"], item.name):
            recursion.bind(binder, item)
        else:
            item.plan = _bind_body(binder, item)
        is_volatile = binder.volatile_count > volatile_before
        scope.tables[item.name] = item
        item.is_inlined = _is_inlined(item, owner, is_volatile)
        assert item.plan is not None
        is_wanted = item.is_change or recursion.count_references(owner, item.name) > 0
        if not item.is_inlined and is_wanted:
            definitions.append(logical.SharedDefinition(item.id, item.plan, item.name))
    return tuple(definitions)


def _is_inlined(item: CommonTable, owner: exp.Expression, is_volatile: bool) -> bool:
    """PostgreSQL's rule: used once, or NOT MATERIALIZED; no volatile functions, not recursive."""
    materialized = item.node.args.get("materialized")
    if item.is_change or is_volatile or materialized is True:
        return False
    if isinstance(item.plan, logical.Recursive):
        return False
    return materialized is False or recursion.count_references(owner, item.name) == 1


def _bind_body(binder: Binder, item: CommonTable) -> logical.Plan:
    from gpudb.optimizer.binder import queries

    inner = Scope(parent=item.scope)
    with binder.deeper():
        plan = queries.bind(binder, inner, item.node.args["this"]).plan
    plan = distinct_names(binder, plan)
    names = item.node.args["alias"].args.get("columns") or ()
    item.names = column_names(item, plan, names)
    binder.note_captured(plan, frozenset(inner.captured))
    return plan


def column_names(
    item: CommonTable, plan: logical.Plan, names: list[str] | tuple[str, ...]
) -> tuple[str, ...]:
    """The item's column names: the aliases, then the query's own."""
    if len(names) > len(plan.fields):
        raise errors.InvalidColumnReference(
            f'WITH query "{item.name}" has {len(plan.fields)} columns available but'
            f" {len(names)} columns specified",
            position=position(item.node),
        )
    own = tuple(field.name for field in plan.fields)
    return (*names, *own[len(names) :])


def reference(binder: Binder, item: CommonTable, at: int) -> logical.Plan:
    """The rows of a WITH item under new (or, the first time in place, its own) columns."""
    if item.work_table is not None:
        item.work_references += 1
        fields = tuple(binder.field(f.name, f.type) for f in item.work_table)
        return logical.WorkTable(item.id, fields)
    if item.is_change and item.plan is not None and not item.plan.fields:
        raise errors.FeatureNotSupported(
            f'WITH query "{item.name}" does not have a RETURNING clause', position=at
        )
    assert item.plan is not None
    if not item.is_inlined:
        fields = tuple(
            binder.field(name, field.type, *binder.origins.get(field.id, (0, 0)))
            for name, field in zip(item.names, item.plan.fields, strict=True)
        )
        return logical.SharedRef(item.id, fields)
    plan = _bind_body(binder, item) if item.is_used else item.plan
    item.is_used = True
    captured = binder.captured(plan)
    assignments = tuple(
        logical.Assignment(
            logical.Field(f.id, name, f.type, f.table_oid, f.attnum), f.ref
        )
        for name, f in zip(item.names, plan.fields, strict=True)
    )
    if any(a.field.name != f.name for a, f in zip(assignments, plan.fields, strict=True)):
        plan = logical.Project(plan, assignments)
        binder.note_captured(plan, captured)
    return plan
