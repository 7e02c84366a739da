"""The values that columns take when none is given: DEFAULT, identity, a domain's default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog.objects import ColumnDef, DomainType, Relation, RelationKind
from gpudb.catalog.type_system import Context
from gpudb.expr import Expr, Literal
from gpudb.optimizer import parser
from gpudb.optimizer.binder import coercion, expressions
from gpudb.optimizer.binder.scope import Clause, Scope
from gpudb.sqltype import SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder


def value(binder: Binder, table: Relation, column: ColumnDef) -> Expr:
    """The column's default in its type; NULL without one."""
    target = SqlType(column.type_oid, column.typmod)
    if column.identity and column.default is None:
        found: Expr | None = _next_of_identity(binder, table, column)
    else:
        text = column.default
        if text is None:
            domain = binder.snapshot.user_type(column.type_oid)
            text = domain.default if isinstance(domain, DomainType) else None
        if text is None:
            return Literal(None, target)
        node = parser.parse_expression(text)
        found = expressions.bind(binder, Scope(clause=Clause.DEFAULT), node)
    assert found is not None
    converted = coercion.to_type(binder, found, target, Context.ASSIGNMENT)
    if converted is None:
        raise errors.DatatypeMismatch(
            f'column "{column.name}" is of type {binder.types.name(column.type_oid)} but'
            f" default expression is of type {binder.types.name(found.type.oid)}",
            hint="You will need to rewrite or cast the expression.",
        )
    return converted


def _next_of_identity(binder: Binder, table: Relation, column: ColumnDef) -> Expr:
    """nextval of the sequence that an identity column owns."""
    from gpudb.optimizer.binder import calls

    for relation in binder.snapshot.relations():
        options = relation.sequence
        if (
            relation.kind == RelationKind.SEQUENCE
            and options is not None
            and (options.owner_table, options.owner_column) == (table.oid, column.attnum)
        ):
            sequence = Literal(relation.oid, SqlType(t.REGCLASS))
            return calls.apply(binder, "nextval", [sequence], 0)
    raise errors.UndefinedObject(
        f'no owned sequence found for column "{column.name}"'
    )
