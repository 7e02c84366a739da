"""One query of any form below its WITH clause, and LIMIT and OFFSET of all forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb.expr import Expr, Literal
from gpudb.optimizer import logical
from gpudb.optimizer.binder import coercion, cte, expressions
from gpudb.optimizer.binder.scope import Clause, Scope
from gpudb.optimizer.parser import position, start_position

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound query: its plan, whose fields are just the output columns."""

    plan: logical.Plan


def bind(
    binder: Binder,
    scope: Scope,
    node: exp.Expression,
    *,
    keep_unknown: bool = False,
    is_top: bool = False,
) -> Bound:
    """Bind a query in its own scope; ``keep_unknown`` leaves literals for the place above."""
    from gpudb.optimizer.binder import changes, select, sets

    definitions: tuple[logical.SharedDefinition, ...] = ()
    if node.args.get("with_") is not None:
        definitions = cte.bind_with(binder, scope, node, is_top=is_top)
    plan: logical.Plan
    if isinstance(node, exp.Select):
        plan = select.bind_select(binder, scope, node, keep_unknown=keep_unknown)
    elif isinstance(node, exp.Values):
        plan = sets.bind_values(binder, scope, node, keep_unknown=keep_unknown)
    elif isinstance(node, exp.SetOperation):
        plan = sets.bind_set_operation(binder, scope, node, keep_unknown=keep_unknown)
    elif isinstance(node, exp.Subquery):
        return bind(binder, scope, node.args["this"], keep_unknown=keep_unknown)
    else:
        plan = changes.bind(binder, scope, node)
    if definitions:
        plan = logical.With(definitions, plan)
    return Bound(plan)


def limited(
    binder: Binder, scope: Scope, node: exp.Expression, plan: logical.Plan
) -> logical.Plan:
    """The plan under the query's LIMIT, OFFSET and FETCH."""
    limit_node, offset_node = node.args.get("limit"), node.args.get("offset")
    if limit_node is None and offset_node is None:
        return plan
    with_ties = bool(node.args.get("limit_with_ties"))
    offset = _count(binder, scope, offset_node, Clause.OFFSET)
    limit = _count(binder, scope, limit_node, Clause.LIMIT)
    if with_ties and isinstance(limit, Literal) and limit.value is None:
        raise errors.InvalidRowCountInLimitClause(
            "row count cannot be null in FETCH FIRST ... WITH TIES clause"
        )
    limit, offset = _given(limit), _given(offset)
    if limit is None and offset is None:
        return plan
    return logical.Limit(plan, limit, offset, with_ties)


def _given(value: Expr | None) -> Expr | None:
    """None for a NULL count: no limit."""
    return None if isinstance(value, Literal) and value.value is None else value


def _count(
    binder: Binder, scope: Scope, node: exp.Expression | None, clause: Clause
) -> Expr | None:
    if node is None:
        return None
    with binder.clause(scope, clause):
        value = expressions.bind(binder, scope, node)
    value = coercion.bigint(binder, value, clause.value, start_position(node))
    if any(binder.owner(id_) is scope for id_ in binder.references(value)):
        raise errors.InvalidColumnReference(
            f"argument of {clause.value} must not contain variables",
            position=start_position(node) or position(node),
        )
    if isinstance(value, Literal) and value.value is not None and value.value < 0:
        if clause is Clause.LIMIT:
            raise errors.InvalidRowCountInLimitClause("LIMIT must not be negative")
        raise errors.InvalidRowCountInResultOffsetClause("OFFSET must not be negative")
    return value
