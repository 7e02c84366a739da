"""CREATE TABLE's elements turned into catalog objects: columns, constraints, indexes, sequences."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog.changes import Change, Create
from gpudb.catalog.objects import (
    ColumnDef,
    Constraint,
    ConstraintKind,
    IndexDefinition,
    IndexKey,
    Relation,
    RelationKind,
    SequenceOptions,
)
from gpudb.commands import naming
from gpudb.commands.sequences import sequence_options
from gpudb.optimizer.statements import nodes

if TYPE_CHECKING:
    from gpudb.session import Session

COLUMNS_MAX = 1600
BTREE_METHOD = 403
SERIALS = {
    "smallserial": t.INT2, "serial2": t.INT2, "serial": t.INT4, "serial4": t.INT4,
    "bigserial": t.INT8, "serial8": t.INT8,
}
_ACTIONS = {
    "no action": "a", "restrict": "r", "cascade": "c", "set null": "n", "set default": "d",
}
_MATCHES = {"simple": "s", "full": "f", "partial": "p"}


@dataclass(slots=True)
class TableBuilder:
    """Collects what CREATE TABLE makes. ``oid`` and ``schema`` of the table are known already."""

    session: Session
    oid: int
    schema: int
    name: str
    persistence: str
    owner: int
    columns: list[ColumnDef] = field(default_factory=list)
    constraints: list[tuple[nodes.Constraint, str]] = field(default_factory=list)
    sequences: list[Change] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)

    def allocate(self) -> int:
        return self.session.database.store.allocate_oid()

    # Columns

    def add_column(self, definition: nodes.ColumnDefinition) -> None:
        """A column with its inline constraints; 42701, 42704, 42P16, 42601."""
        if any(c.name == definition.name for c in self.columns):
            raise errors.DuplicateColumn(
                f'column "{definition.name}" specified more than once',
                position=definition.position,
            )
        if len(self.columns) >= COLUMNS_MAX:
            raise errors.TooManyColumns(f"tables can have at most {COLUMNS_MAX} columns")
        attnum = len(self.columns) + 1
        assert definition.type is not None
        serial = SERIALS.get(definition.type.name) if not definition.type.schema else None
        if serial is not None and not definition.type.bounds:
            column = ColumnDef(attnum, definition.name, serial, not_null=True)
            column = self._own_sequence(column, SequenceOptions(serial, maximum=_limit(serial)))
        else:
            type = self.session.database.type_name(self.session, definition.type)
            self._check_pseudo_type(type.oid, definition.name)
            column = ColumnDef(
                attnum, definition.name, type.oid, type.typmod,
                dimensions=len(definition.type.bounds), collation=_collation(type.oid),
            )
        for constraint in definition.constraints:
            column = self._inline(column, constraint)
        self.columns.append(column)

    def _check_pseudo_type(self, oid: int, name: str) -> None:
        entry = self.session.catalog.type(oid)
        if entry is not None and entry.kind == "p":
            raise errors.InvalidTableDefinition(
                f'column "{name}" has pseudo-type {entry.name}'
            )

    def _inline(self, column: ColumnDef, constraint: nodes.Constraint) -> ColumnDef:
        match constraint.kind:
            case "not null":
                return replace(column, not_null=True)
            case "null":
                if column.not_null:
                    raise errors.SyntaxError(
                        f'conflicting NULL/NOT NULL declarations for column "{column.name}" of '
                        f'table "{self.name}"'
                    )
                return column
            case "default":
                if column.default is not None:
                    raise errors.SyntaxError(
                        f'multiple default values specified for column "{column.name}" of '
                        f'table "{self.name}"'
                    )
                assert constraint.expression is not None
                return replace(
                    column, default=constraint.expression.text, default_oid=self.allocate()
                )
            case "generated":
                assert constraint.expression is not None
                return replace(
                    column, default=constraint.expression.text, default_oid=self.allocate(),
                    generated="s",
                )
            case "identity":
                if column.type_oid not in t.INTEGERS:
                    raise errors.InvalidParameterValue(
                        "identity column type must be smallint, integer, or bigint"
                    )
                options = sequence_options(constraint.options, column.type_oid)
                letter = "a" if constraint.identity == "always" else "d"
                column = self._own_sequence(column, replace(options, is_identity=True))
                return replace(column, identity=letter, not_null=True, default=None, default_oid=0)
            case "primary key":
                self.constraints.append((constraint, column.name))
                return replace(column, not_null=True)
        self.constraints.append((constraint, column.name))
        return column

    def _own_sequence(self, column: ColumnDef, options: SequenceOptions) -> ColumnDef:
        """A sequence that belongs to the column, and its nextval default."""
        oid = self.allocate()
        name = self._fresh(self.name, column.name, "seq")
        sequence = Relation(
            oid, self.schema, name, RelationKind.SEQUENCE, (), self.owner, self.persistence,
            sequence=replace(options, owner_table=self.oid, owner_column=column.attnum),
        )
        self.sequences.append(Create(sequence))
        schema = self.session.catalog.schema_by_oid(self.schema)
        shown = name if schema.name == "public" else f"{schema.name}.{name}"
        return replace(
            column, default=f"nextval('{shown}'::regclass)", default_oid=self.allocate()
        )

    def _fresh(self, *parts: str) -> str:
        number = 0
        name = naming.fresh_name(self.session, self.schema, *parts)
        while name in self.taken:
            number += 1
            name = naming.fresh_name(self.session, self.schema, *parts[:-1], f"{parts[-1]}{number}")
        self.taken.add(name)
        return name

    # Constraints

    def relation(self, **fields: object) -> Relation:
        """The table itself; NOT NULL of primary key columns included."""
        for constraint, column in self.constraints:
            if constraint.kind == "primary key":
                names = constraint.columns or (column,)
                self.columns = [
                    replace(c, not_null=True) if c.name in names else c for c in self.columns
                ]
        return Relation(
            self.oid, self.schema, self.name, RelationKind.TABLE, tuple(self.columns), self.owner,
            self.persistence, row_type=self.allocate(), array_type=self.allocate(),
            **fields,  # type: ignore[arg-type]
        )

    def changes(self, table: Relation) -> list[Change]:
        """What creates the table: sequences, itself, constraints with their indexes."""
        found: list[Change] = [*self.sequences, Create(table)]
        keys = [c for c, _ in self.constraints if c.kind == "primary key"]
        if len(keys) > 1:
            raise errors.InvalidTableDefinition(
                f'multiple primary keys for table "{self.name}" are not allowed'
            )
        for constraint, column in self.constraints:
            found += self.constraint_changes(table, constraint, column)
        return found

    def constraint_changes(
        self, table: Relation, constraint: nodes.Constraint, column: str = ""
    ) -> list[Change]:
        """The Constraint object (and index) of one constraint of the table."""
        names = constraint.columns or ((column,) if column else ())
        match constraint.kind:
            case "primary key" | "unique":
                return self._key(table, constraint, names)
            case "check":
                return [self._check(table, constraint, column)]
            case "foreign key" | "references":
                return [self._foreign_key(table, constraint, names)]
        raise errors.FeatureNotSupported(f"{constraint.kind} constraints are not supported")

    def _attnums(self, table: Relation, names: tuple[str, ...]) -> tuple[int, ...]:
        found = []
        for name in names:
            column = table.column(name)
            if column is None:
                raise errors.UndefinedColumn(
                    f'column "{name}" named in key does not exist'
                )
            if column.attnum in found:
                raise errors.DuplicateColumn(f'column "{name}" appears twice in key')
            found.append(column.attnum)
        return tuple(found)

    def _key(
        self, table: Relation, constraint: nodes.Constraint, names: tuple[str, ...]
    ) -> list[Change]:
        is_primary = constraint.kind == "primary key"
        attnums = self._attnums(table, names)
        parts = (self.name, "pkey") if is_primary else (self.name, *names, "key")
        name = constraint.name or self._fresh(*parts)
        index_oid, oid = self.allocate(), self.allocate()
        keys = tuple(IndexKey(attnum) for attnum in attnums)
        index = Relation(
            index_oid, self.schema, name, RelationKind.INDEX, self._index_columns(table, attnums),
            self.owner, self.persistence,
            index=IndexDefinition(
                table.oid, BTREE_METHOD, keys, is_unique=True, is_primary=is_primary,
                nulls_not_distinct=constraint.nulls_not_distinct, constraint=oid,
            ),
        )
        kind = ConstraintKind.PRIMARY_KEY if is_primary else ConstraintKind.UNIQUE
        made = Constraint(
            oid, self.schema, name, kind, table.oid, columns=attnums, index=index_oid,
            is_deferrable=bool(constraint.deferrable),
            is_deferred=bool(constraint.initially_deferred), no_inherit=True,
        )
        return [Create(index), Create(made)]

    def _index_columns(self, table: Relation, attnums: tuple[int, ...]) -> tuple[ColumnDef, ...]:
        columns = []
        for position, attnum in enumerate(attnums, 1):
            column = table.column_by_attnum(attnum)
            assert column is not None
            columns.append(
                ColumnDef(position, column.name, column.type_oid, column.typmod,
                          collation=column.collation)
            )
        return tuple(columns)

    def _check(self, table: Relation, constraint: nodes.Constraint, column: str) -> Change:
        assert constraint.expression is not None
        text = constraint.expression.text
        attnums = self.session.database.check_columns(self.session, table, constraint.expression)
        single = len(attnums) == 1
        named = table.column_by_attnum(attnums[0]) if single else None
        parts = (self.name, named.name, "check") if named is not None else (self.name, "check")
        name = constraint.name or self._fresh(*parts)
        return Create(
            Constraint(
                self.allocate(), self.schema, name, ConstraintKind.CHECK, table.oid,
                columns=attnums, check=text, no_inherit=constraint.no_inherit,
                is_validated=not constraint.not_valid,
            )
        )

    def _foreign_key(
        self, table: Relation, constraint: nodes.Constraint, names: tuple[str, ...]
    ) -> Change:
        target = constraint.references
        assert target is not None
        parent = table if target.table.parts == (self.name,) else naming.require_relation(
            self.session, target.table
        )
        for action in (target.on_delete, target.on_update):
            if action not in ("no action", "restrict"):
                raise errors.FeatureNotSupported(
                    f"foreign keys with {action.upper()} are not supported"
                )
        attnums = self._attnums(table, names)
        referenced = self._referenced(parent, target, len(attnums))
        name = constraint.name or self._fresh(self.name, *names, "fkey")
        return Create(
            Constraint(
                self.allocate(), self.schema, name, ConstraintKind.FOREIGN_KEY, table.oid,
                columns=attnums, referenced_table=parent.oid, referenced_columns=referenced,
                on_update=_ACTIONS[target.on_update], on_delete=_ACTIONS[target.on_delete],
                match=_MATCHES[target.match], is_deferrable=bool(constraint.deferrable),
                is_deferred=bool(constraint.initially_deferred),
                is_validated=not constraint.not_valid,
            )
        )

    def _referenced(
        self, parent: Relation, target: nodes.References, count: int
    ) -> tuple[int, ...]:
        keys = [
            c for c in self.session.catalog.constraints(parent.oid)
            if c.kind in (ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE)
        ]
        if not target.columns:
            primary = next((c for c in keys if c.kind == ConstraintKind.PRIMARY_KEY), None)
            if primary is None:
                own = next((c for c, _ in self.constraints if c.kind == "primary key"), None)
                if parent.oid == self.oid and own is not None:
                    column = next(n for c, n in self.constraints if c is own)
                    return self._attnums(parent, own.columns or (column,))
                raise errors.UndefinedObject(
                    f'there is no primary key for referenced table "{parent.name}"'
                )
            found: tuple[int, ...] = primary.columns
        else:
            found = tuple(_parent_attnum(parent, name) for name in target.columns)
            if parent.oid != self.oid and not any(set(c.columns) == set(found) for c in keys):
                raise errors.InvalidForeignKey(
                    "there is no unique constraint matching given keys for referenced table "
                    f'"{parent.name}"'
                )
        if len(found) != count:
            raise errors.InvalidForeignKey(
                "number of referencing and referenced columns for foreign key disagree"
            )
        return found


def _parent_attnum(parent: Relation, name: str) -> int:
    column = parent.column(name)
    if column is None:
        raise errors.UndefinedColumn(
            f'column "{name}" referenced in foreign key constraint does not exist'
        )
    return column.attnum


def _limit(oid: int) -> int:
    return {t.INT2: 2**15 - 1, t.INT4: 2**31 - 1}.get(oid, 2**63 - 1)


def _collation(oid: int) -> int:
    if oid == t.NAME:
        return 950
    return 100 if oid in (t.TEXT, t.VARCHAR, t.BPCHAR) else 0
