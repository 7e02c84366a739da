"""Constraints: checked when a statement has written, by queries over what it wrote.

NOT NULL is read off the new segments' NULL counts. CHECK and the child side of FOREIGN KEY look at
the new segments only: the query runs on a snapshot that shows nothing else of the table. UNIQUE
groups the rows within the bounds of the new keys, which zone maps narrow down.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gpudb import errors
from gpudb.catalog import types
from gpudb.catalog.changes import EndSegments
from gpudb.catalog.objects import ColumnDef, Constraint, ConstraintKind, Relation, SegmentRef
from gpudb.layout import Kind

if TYPE_CHECKING:
    from gpudb.session import Session

_KEYS = (ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def table_name(snapshot: Any, relation: Relation) -> str:
    """The qualified, quoted name of a relation."""
    schema = snapshot.schema_by_oid(relation.schema)
    return f"{quoted(schema.name)}.{quoted(relation.name)}"


def enforce(session: Session, table_oid: int, added: tuple[SegmentRef, ...]) -> None:
    """Check what a statement added to a table; 23502, 23514, 23505, 23503."""
    snapshot = session.catalog
    table = snapshot.relation_by_oid(table_oid)
    check_not_null(session, table, added)
    if not added:
        return
    for constraint in snapshot.constraints(table_oid):
        check(session, table, constraint, added)


def enforce_removed(session: Session, table_oid: int) -> None:
    """Check that nothing references rows that a statement deleted or changed; 23503."""
    snapshot = session.catalog
    parent = snapshot.relation_by_oid(table_oid)
    for constraint in snapshot.foreign_keys_to(table_oid):
        child = snapshot.relation_by_oid(constraint.relation)
        rows = _orphans(session, child, constraint, snapshot)
        if rows:
            raise errors.ForeignKeyViolation(
                f'update or delete on table "{parent.name}" violates foreign key constraint '
                f'"{constraint.name}" on table "{child.name}"',
                detail=f"Key {_key(parent, constraint.referenced_columns, rows[0])} is still "
                f'referenced from table "{child.name}".',
                constraint=constraint.name, table=child.name,
            )


def check_not_null(session: Session, table: Relation, added: Iterable[SegmentRef]) -> None:
    """23502 when a NOT NULL column of the new segments holds a NULL."""
    for column in table.live_columns():
        if not column.not_null:
            continue
        for segment in added:
            stored = segment.column(column.attnum)
            if stored is not None and stored.nulls:
                snapshot = _only(session.catalog, table.oid, added)
                name = table_name(session.catalog, table)
                rows = session.database.query(
                    session, f"SELECT * FROM {name} WHERE {quoted(column.name)} IS NULL LIMIT 1",
                    snapshot=snapshot,
                )
                raise errors.NotNullViolation(
                    f'null value in column "{column.name}" of relation "{table.name}" violates '
                    "not-null constraint",
                    detail=f"Failing row contains ({_shown(rows[0])}).",
                    table=table.name, column=column.name,
                )


def check(
    session: Session,
    table: Relation,
    constraint: Constraint,
    added: tuple[SegmentRef, ...] | None = None,
) -> None:
    """Check one constraint against new segments, or the whole table; 23514, 23505, 23503."""
    if constraint.kind in _KEYS:
        _check_key(session, table, constraint, added)
    elif constraint.kind == ConstraintKind.CHECK:
        _check_expression(session, table, constraint, added)
    elif constraint.kind == ConstraintKind.FOREIGN_KEY:
        _check_reference(session, table, constraint, added)


def _only(snapshot: Any, table_oid: int, added: Iterable[SegmentRef]) -> Any:
    """The snapshot in which the table has just the added segments."""
    kept = {segment.id for segment in added}
    others = tuple(s.id for s in snapshot.data(table_oid).segments if s.id not in kept)
    return snapshot.apply((EndSegments(table_oid, others),)) if others else snapshot


def _check_key(
    session: Session,
    table: Relation,
    constraint: Constraint,
    added: tuple[SegmentRef, ...] | None,
) -> None:
    columns = [table.column_by_attnum(attnum) for attnum in constraint.columns]
    names = [quoted(c.name) for c in columns if c is not None]
    tests = [f"{name} IS NOT NULL" for name in names]
    if added is not None:
        tests += [test for c in columns if c is not None for test in _bounds(session, c, added)]
    listed = ", ".join(names)
    rows = session.database.query(
        session,
        f"SELECT {listed} FROM {table_name(session.catalog, table)} WHERE {' AND '.join(tests)} "
        f"GROUP BY {listed} HAVING count(*) > 1 LIMIT 1",
    )
    if not rows:
        return
    key = _key(table, constraint.columns, rows[0])
    if added is None:
        raise errors.UniqueViolation(
            f'could not create unique index "{constraint.name}"',
            detail=f"Key {key} is duplicated.", constraint=constraint.name, table=table.name,
        )
    raise errors.UniqueViolation(
        f'duplicate key value violates unique constraint "{constraint.name}"',
        detail=f"Key {key} already exists.", constraint=constraint.name, table=table.name,
    )


def _bounds(session: Session, column: ColumnDef, added: tuple[SegmentRef, ...]) -> list[str]:
    """Range conditions on a key column from the new segments, for columns stored as integers."""
    codec = types.get(column.type_oid, session.catalog)
    stored = [segment.column(column.attnum) for segment in added]
    if codec.layout.kind is not Kind.INT or any(s is None for s in stored):
        return []
    lows = [s.low for s in stored if s is not None and s.low is not None]
    highs = [s.high for s in stored if s is not None and s.high is not None]
    if not lows or not highs:
        return []
    context = types.TypeContext()
    literals = [codec.format(value, context) for value in (min(lows), max(highs))]
    name = quoted(column.name)
    return [f"{name} BETWEEN '{literals[0]}' AND '{literals[1]}'"]


def _check_expression(
    session: Session,
    table: Relation,
    constraint: Constraint,
    added: tuple[SegmentRef, ...] | None,
) -> None:
    snapshot = None if added is None else _only(session.catalog, table.oid, added)
    rows = session.database.query(
        session,
        f"SELECT * FROM {table_name(session.catalog, table)} "
        f"WHERE NOT ({constraint.check}) LIMIT 1",
        snapshot=snapshot,
    )
    if not rows:
        return
    if added is None:
        raise errors.CheckViolation(
            f'check constraint "{constraint.name}" of relation "{table.name}" is violated by '
            "some row", constraint=constraint.name, table=table.name,
        )
    raise errors.CheckViolation(
        f'new row for relation "{table.name}" violates check constraint "{constraint.name}"',
        detail=f"Failing row contains ({_shown(rows[0])}).",
        constraint=constraint.name, table=table.name,
    )


def _check_reference(
    session: Session,
    table: Relation,
    constraint: Constraint,
    added: tuple[SegmentRef, ...] | None,
) -> None:
    is_self = constraint.referenced_table == table.oid
    narrow = added is not None and not is_self
    snapshot = _only(session.catalog, table.oid, added or ()) if narrow else session.catalog
    rows = _orphans(session, table, constraint, snapshot)
    if rows:
        parent = session.catalog.relation_by_oid(constraint.referenced_table)
        raise errors.ForeignKeyViolation(
            f'insert or update on table "{table.name}" violates foreign key constraint '
            f'"{constraint.name}"',
            detail=f"Key {_key(table, constraint.columns, rows[0])} is not present in table "
            f'"{parent.name}".',
            constraint=constraint.name, table=table.name,
        )


def _orphans(
    session: Session, child: Relation, constraint: Constraint, snapshot: Any
) -> list[tuple[str | None, ...]]:
    """A child row's key without a parent, if there is one."""
    parent = session.catalog.relation_by_oid(constraint.referenced_table)
    own = [quoted(_name(child, attnum)) for attnum in constraint.columns]
    other = [quoted(_name(parent, attnum)) for attnum in constraint.referenced_columns]
    present = " AND ".join(f"c.{name} IS NOT NULL" for name in own)
    match = " AND ".join(f"p.{p} = c.{c}" for p, c in zip(other, own, strict=True))
    listed = ", ".join(f"c.{name}" for name in own)
    return session.database.query(
        session,
        f"SELECT {listed} FROM {table_name(snapshot, child)} c WHERE {present} AND NOT EXISTS "
        f"(SELECT 1 FROM {table_name(snapshot, parent)} p WHERE {match}) LIMIT 1",
        snapshot=snapshot,
    )


def _name(table: Relation, attnum: int) -> str:
    column = table.column_by_attnum(attnum)
    assert column is not None
    return column.name


def _key(table: Relation, attnums: tuple[int, ...], row: tuple[str | None, ...]) -> str:
    names = ", ".join(_name(table, attnum) for attnum in attnums)
    return f"({names})=({_shown(row)})"


def _shown(row: tuple[str | None, ...]) -> str:
    return ", ".join("null" if value is None else value for value in row)
