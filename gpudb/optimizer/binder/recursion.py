"""WITH RECURSIVE: order of the items, the recursive term, PostgreSQL's restrictions on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from gpudb import errors
from gpudb.optimizer import logical
from gpudb.optimizer.binder.scope import Scope
from gpudb.optimizer.parser import position, start_position
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.cte import CommonTable
    from gpudb.optimizer.binder.state import Binder


def tables(node: exp.Expression) -> Iterator[exp.Expression]:
    """The unqualified table names below a node."""
    for table in node.find_all(exp.Table):
        if table.args.get("db") is None:
            yield table


def count_references(node: exp.Expression, name: str) -> int:
    """How often the name stands for a table below the node."""
    return sum(table.args["this"] == name for table in tables(node))


def refers_to(node: exp.Expression, name: str) -> bool:
    return any(table.args["this"] == name for table in tables(node))


def ordered(nodes: list[exp.Expression]) -> list[exp.Expression]:
    """The items with each after those it refers to. 0A000 for mutual recursion."""
    by_name = {node.args["alias"].args["this"]: node for node in nodes}
    found: list[exp.Expression] = []
    active: list[str] = []

    def visit(name: str) -> None:
        node = by_name[name]
        if node in found:
            return
        active.append(name)
        for table in tables(node.args["this"]):
            other = table.args["this"]
            if other == name or other not in by_name:
                continue
            if other in active:
                raise errors.FeatureNotSupported(
                    "mutual recursion between WITH items is not implemented",
                    position=position(by_name[active[0]]),
                )
            visit(other)
        active.pop()
        if not any(node is item for item in found):
            found.append(node)

    for name in by_name:
        if not any(by_name[name] is item for item in found):
            visit(name)
    return found


def bind(binder: Binder, item: CommonTable) -> None:
    """Bind a self-referring item. Raises InvalidRecursion (42P19)."""
    from gpudb.optimizer.binder import cte, queries

    body = item.node.args["this"]
    _check_form(item, body)
    base_node, step_node = body.args["this"], body.args["expression"]
    scope = Scope(parent=item.scope)
    definitions: tuple[logical.SharedDefinition, ...] = ()
    if body.args.get("with_") is not None:
        definitions = cte.bind_with(binder, scope, body, is_top=False)
    base_scope = Scope(parent=scope)
    base = queries.bind(binder, base_scope, base_node).plan
    aliases = item.node.args["alias"].args.get("columns") or ()
    item.names = cte.column_names(item, base, aliases)
    item.work_table = tuple(
        binder.field(name, field.type)
        for name, field in zip(item.names, base.fields, strict=True)
    )
    fields = item.work_table
    scope.tables[item.name] = item
    step_scope = Scope(parent=scope)
    step = queries.bind(binder, step_scope, step_node, keep_unknown=True).plan
    item.work_table = None
    del scope.tables[item.name]
    is_all = not body.args.get("distinct")
    first = base_node.args.get("expressions") or [base_node]
    step = _fit(binder, item, base, step, start_position(first[0]))
    columns = tuple(binder.field(f.name, f.type) for f in fields)
    if not is_all:
        for column in columns:
            _require_hashable(binder, column)
    plan: logical.Plan = logical.Recursive(item.id, base, step, is_all, columns)
    captured = frozenset(scope.captured)
    if definitions:
        plan = logical.With(definitions, plan)
    binder.note_captured(plan, captured)
    item.plan = plan


def _require_hashable(binder: Binder, column: logical.Field) -> None:
    from gpudb.optimizer.binder import operators

    operators.equality(binder, column.type.oid)


def _fit(
    binder: Binder, item: CommonTable, base: logical.Plan, step: logical.Plan, at: int
) -> logical.Plan:
    """The recursive term with the column types of the other one."""
    from gpudb.optimizer.binder import sets

    if len(step.fields) != len(base.fields):
        raise errors.SyntaxError(
            "each UNION query must have the same number of columns", position=at
        )
    for number, (left, right) in enumerate(zip(base.fields, step.fields, strict=True), 1):
        common = binder.types.common([left.type.oid, right.type.oid], "UNION")
        typmod = left.type.typmod if right.type.typmod == left.type.typmod else -1
        if common != left.type.oid or typmod != left.type.typmod:
            own = _type_text(binder, left.type)
            overall = _type_text(binder, SqlType(common, typmod))
            raise errors.DatatypeMismatch(
                f'recursive query "{item.name}" column {number} has type {own} in'
                f" non-recursive term but type {overall} overall",
                hint="Cast the output of the non-recursive term to the correct type.",
                position=at,
            )
    return sets.with_types(binder, step, [field.type for field in base.fields], "UNION", at)


def _type_text(binder: Binder, type_: SqlType) -> str:
    from gpudb.catalog import types

    return types.format_type(type_.oid, type_.typmod, binder.snapshot)


def _check_form(item: CommonTable, body: exp.Expression) -> None:
    name = item.name
    at = position(item.node)
    if not isinstance(body, exp.Union):
        raise errors.InvalidRecursion(
            f'recursive query "{name}" does not have the form non-recursive-term'
            " UNION [ALL] recursive-term",
            position=at,
        )
    left, right = body.args["this"], body.args["expression"]
    if refers_to(left, name):
        raise errors.InvalidRecursion(
            f'recursive reference to query "{name}" must not appear within its'
            " non-recursive term",
            position=at,
        )
    for key, what in (("order", "ORDER BY"), ("offset", "OFFSET"), ("limit", "LIMIT")):
        if body.args.get(key):
            raise errors.FeatureNotSupported(
                f"{what} in a recursive query is not implemented", position=at
            )
    if body.args.get("locks"):
        raise errors.FeatureNotSupported(
            "FOR UPDATE/SHARE in a recursive query is not implemented", position=at
        )
    references = [t for t in tables(right) if t.args["this"] == name]
    if len(references) > 1:
        raise errors.InvalidRecursion(
            f'recursive reference to query "{name}" must not appear more than once',
            position=position(references[1]),
        )
    if references:
        _check_place(name, references[0], right)


def _check_place(name: str, reference: exp.Expression, term: exp.Expression) -> None:
    """Where the reference must not stand: outer joins' nullable sides, subqueries, EXCEPT."""
    node: Any = reference
    at = position(reference)
    where = ""
    while node is not term:
        parent: Any = node.parent
        if parent is None:
            return
        if isinstance(parent, exp.Join):
            is_right = parent.args["this"] is node
            nullable = {"left": is_right, "right": not is_right, "full": True}
            if nullable.get(parent.args["kind"], False):
                where = "an outer join"
        elif isinstance(parent, exp.Except | exp.Intersect):
            is_right = parent.args["expression"] is node
            if isinstance(parent, exp.Except) and is_right:
                where = "EXCEPT"
            elif isinstance(parent, exp.Intersect) and not parent.args.get("distinct"):
                where = "INTERSECT" if is_right else ""
        elif _is_expression_subquery(parent):
            where = "a subquery"
        if where:
            raise errors.InvalidRecursion(
                f'recursive reference to query "{name}" must not appear within {where}',
                position=at,
            )
        node = parent


def _is_expression_subquery(node: exp.Expression) -> bool:
    if isinstance(node, exp.Exists | exp.In | exp.Any | exp.All | exp.Array):
        return True
    if not isinstance(node, exp.Subquery):
        return False
    return node.args.get("alias") is None


def refuse_aggregates(at: int) -> None:
    """42P19 for aggregates in a recursive term that reads the working table."""
    raise errors.InvalidRecursion(
        "aggregate functions are not allowed in a recursive query's recursive term",
        position=at,
    )
