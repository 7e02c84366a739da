"""Rows of user relations in pg_class, pg_attribute, pg_type, pg_constraint, pg_index, ...

Every source yields tuples in PostgreSQL 15's column order. Where PostgreSQL keeps a parse tree
(pg_node_tree), the SQL text stands: pg_get_expr() returns it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from gpudb.catalog import builtin
from gpudb.catalog.catalog import CatalogSnapshot
from gpudb.catalog.objects import (
    Acl,
    ColumnDef,
    Constraint,
    ConstraintKind,
    DomainType,
    EnumType,
    IndexDefinition,
    IndexKey,
    Relation,
    RelationKind,
)
from gpudb.catalog.privileges import format_item
from gpudb.catalog.type_entries import TypeEntry
from gpudb.catalog.types.base import ArrayValue, HostValue

Row = tuple[HostValue, ...]

HEAP = 2
BTREE = 403
PAGE_BYTES = 8192
COMPATIBLE_TRANSACTION = 3
"""What relfrozenxid, xmin and the like show: PostgreSQL's first normal transaction id."""

_ACLITEM = 1033
_TEXT = 25
_INT2 = 21
_OID = 26
_SYSTEM_COLUMNS = (
    (-1, "ctid", 27),
    (-2, "xmin", 28),
    (-3, "cmin", 29),
    (-4, "xmax", 28),
    (-5, "cmax", 29),
    (-6, "tableoid", 26),
)


def vector(element: int, items: Iterable[int]) -> ArrayValue:
    """An int2vector or oidvector: subscripts start at 0."""
    values = tuple(items)
    return ArrayValue(element, values, (len(values),), (0,)) if values else ArrayValue(element, ())


def acl_value(snapshot: CatalogSnapshot, acl: Acl) -> ArrayValue | None:
    """aclitem[] or NULL for default privileges."""
    if acl is None:
        return None
    return ArrayValue.of(_ACLITEM, tuple(format_item(snapshot, item) for item in acl))


def visible_schemas(snapshot: CatalogSnapshot) -> frozenset[int]:
    return frozenset(schema.oid for schema in snapshot.schemas())


# Types


@cache
def _builtin_physical() -> dict[int, tuple[int, bool, str, str, int]]:
    table = builtin.table("pg_type")
    names = ("typlen", "typbyval", "typalign", "typstorage", "typcollation")
    columns = [table.column(name).to_pylist() for name in names]
    oids = table.column("oid").to_pylist()
    return dict(zip(oids, zip(*columns, strict=True), strict=True))


def physical(snapshot: CatalogSnapshot, oid: int) -> tuple[int, bool, str, str, int]:
    """(typlen, typbyval, typalign, typstorage, typcollation) of any type."""
    known = _builtin_physical().get(oid)
    if known is not None:
        return known
    entry = snapshot.type(oid)
    if entry is None:
        return (-1, False, "i", "x", 0)
    if entry.kind == "d":
        length, by_value, align, storage, collation = physical(snapshot, entry.base_type)
        own = entry.source.collation if isinstance(entry.source, DomainType) else 0
        return (length, by_value, align, storage, own or collation)
    if entry.kind == "e":
        return (4, True, "i", "p", 0)
    if entry.is_array:
        _, _, align, _, collation = physical(snapshot, entry.element)
        return (-1, False, "d" if align == "d" else "i", "x", collation)
    return (-1, False, "d", "x", 0)


_INPUT_FUNCTIONS = {
    "array": ("array_in", "array_out", "array_recv", "array_send"),
    "c": ("record_in", "record_out", "record_recv", "record_send"),
    "e": ("enum_in", "enum_out", "enum_recv", "enum_send"),
}


@cache
def _builtin_io() -> dict[int, tuple[int, int]]:
    table = builtin.table("pg_type")
    names = ("oid", "typoutput", "typsend")
    return {
        o: (a, b) for o, a, b in zip(*(table.column(n).to_pylist() for n in names), strict=True)
    }


def _io_functions(snapshot: CatalogSnapshot, entry: TypeEntry) -> tuple[int, int, int, int]:
    if entry.kind == "d":
        base = entry
        while base.kind == "d":
            found = snapshot.type(base.base_type)
            if found is None:
                break
            base = found
        known = _builtin_io().get(base.oid)
        output, send = known if known is not None else _io_functions(snapshot, base)[1::2]
        return (
            builtin.function_oid("domain_in"),
            output,
            builtin.function_oid("domain_recv"),
            send,
        )
    names = _INPUT_FUNCTIONS["array" if entry.is_array else entry.kind]
    first, second, third, fourth = (builtin.function_oid(name) for name in names)
    return (first, second, third, fourth)


def pg_type(snapshot: CatalogSnapshot) -> Iterator[Row]:
    schemas = visible_schemas(snapshot)
    for entry in sorted(snapshot.types(), key=lambda t: t.oid):
        if entry.schema in schemas:
            yield _type_row(snapshot, entry)


def _type_row(snapshot: CatalogSnapshot, entry: TypeEntry) -> Row:
    length, by_value, align, storage, collation = physical(snapshot, entry.oid)
    function = builtin.function_oid
    domain = entry.source if isinstance(entry.source, DomainType) else None
    has_acl = isinstance(entry.source, EnumType | DomainType)
    acl = entry.source.acl if has_acl and entry.source is not None else None
    return (
        entry.oid,
        entry.name,
        entry.schema,
        entry.owner,
        length,
        by_value,
        entry.kind,
        entry.category,
        False,
        True,
        entry.delimiter,
        entry.relation,
        function("array_subscript_handler") if entry.is_array else 0,
        entry.element,
        entry.array,
        *_io_functions(snapshot, entry),
        0,
        0,
        function("array_typanalyze") if entry.is_array else 0,
        align,
        storage,
        domain.not_null if domain else False,
        entry.base_type,
        entry.typmod,
        domain.dimensions if domain else 0,
        collation,
        domain.default if domain else None,
        domain.default if domain else None,
        acl_value(snapshot, acl),
    )


def pg_enum(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for entry in snapshot.types():
        if isinstance(entry.source, EnumType) and entry.kind == "e":
            for label in entry.source.labels:
                yield (label.oid, entry.oid, label.sort_order, label.label)


# pg_class


def pg_class(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation in sorted(snapshot.relations(), key=lambda r: r.oid):
        yield _class_row(snapshot, relation)


def _size(snapshot: CatalogSnapshot, relation: Relation) -> tuple[int, float]:
    """(relpages, reltuples) as of the last ANALYZE or load."""
    if relation.kind == RelationKind.SEQUENCE:
        return (1, 1.0)
    if relation.kind == RelationKind.INDEX:
        return (1, 0.0)
    statistics = snapshot.statistics(relation.oid)
    if statistics is None:
        return (0, -1.0)
    return (-(-statistics.size_bytes // PAGE_BYTES), statistics.rows)


def _class_row(snapshot: CatalogSnapshot, relation: Relation) -> Row:
    kind = relation.kind
    is_view = kind in (RelationKind.VIEW, RelationKind.MATERIALIZED_VIEW)
    is_heap = kind in (RelationKind.TABLE, RelationKind.MATERIALIZED_VIEW)
    has_file = is_heap or kind in (RelationKind.INDEX, RelationKind.SEQUENCE)
    constraints = snapshot.constraints(relation.oid)
    has_triggers = bool(snapshot.foreign_keys_to(relation.oid)) or any(
        c.kind == ConstraintKind.FOREIGN_KEY for c in constraints
    )
    pages, tuples = _size(snapshot, relation)
    index = relation.index
    method = HEAP if is_heap else (index.method if index else 0)
    options = tuple(f"{name}={value}" for name, value in relation.options)
    natts = len(relation.columns) or (len(index.keys) if index else 0)
    return (
        relation.oid,
        relation.name,
        relation.schema,
        relation.row_type,
        relation.of_type,
        relation.owner,
        method,
        relation.oid if has_file else 0,
        0,
        pages,
        tuples,
        0,
        0,
        bool(snapshot.indexes(relation.oid)),
        False,
        str(relation.persistence),
        str(kind),
        natts,
        sum(1 for c in constraints if c.kind == ConstraintKind.CHECK),
        is_view,
        has_triggers,
        False,
        False,
        False,
        relation.is_populated,
        "d" if is_heap else "n",
        False,
        0,
        COMPATIBLE_TRANSACTION if is_heap else 0,
        1 if is_heap else 0,
        acl_value(snapshot, relation.acl),
        ArrayValue.of(_TEXT, options) if options else None,
        None,
    )


# pg_attribute


def pg_attribute(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation in sorted(snapshot.relations(), key=lambda r: r.oid):
        columns = relation.columns
        if relation.index is not None:
            columns = index_columns(snapshot, relation)
        if relation.kind in ("r", "m", "S"):
            yield from _system_attributes(relation.oid)
        for column in columns:
            yield _attribute_row(snapshot, relation, column)


def index_columns(snapshot: CatalogSnapshot, relation: Relation) -> tuple[ColumnDef, ...]:
    """The columns an index shows: its own, else named after the table's."""
    index = relation.index
    if relation.columns or index is None:
        return relation.columns
    table = snapshot.relation_by_oid(index.table)
    found = []
    numbers = [key.attnum for key in index.keys] + list(index.included)
    for position, attnum in enumerate(numbers, 1):
        source = table.column_by_attnum(attnum) if table is not None and attnum else None
        if source is None:
            found.append(ColumnDef(position, "expr", _TEXT))
        else:
            found.append(
                ColumnDef(
                    position,
                    source.name,
                    source.type_oid,
                    source.typmod,
                    collation=source.collation,
                )
            )
    return tuple(found)


def _system_attributes(relation: int) -> Iterator[Row]:
    for attnum, name, type_oid in _SYSTEM_COLUMNS:
        length, by_value, align, storage, _ = _builtin_physical()[type_oid]
        head = (relation, name, type_oid, 0, length, attnum, 0, -1, -1, by_value, align, storage)
        yield (*head, "", True, False, False, "", "", False, True, 0, 0, None, None, None, None)


def _dimensions(snapshot: CatalogSnapshot, column: ColumnDef) -> int:
    if column.dimensions:
        return column.dimensions
    entry = snapshot.type(column.type_oid)
    return 1 if entry is not None and entry.is_array else 0


def _attribute_row(snapshot: CatalogSnapshot, relation: Relation, column: ColumnDef) -> Row:
    name, type_oid = column.name, column.type_oid
    length, by_value, align, storage, collation = physical(snapshot, type_oid)
    if column.is_dropped:
        name, type_oid, collation = f"........pg.dropped.{column.attnum}........", 0, 0
    is_table = relation.kind in ("r", "m", "c", "v")
    return (
        relation.oid,
        name,
        type_oid,
        0 if column.is_dropped else column.statistics_target,
        length,
        column.attnum,
        0 if column.is_dropped else _dimensions(snapshot, column),
        -1,
        column.typmod,
        by_value,
        align,
        storage,
        "",
        column.not_null,
        _has_default(column),
        column.missing is not None and is_table,
        column.identity,
        column.generated,
        column.is_dropped,
        True,
        0,
        column.collation or collation,
        acl_value(snapshot, column.acl),
        None,
        None,
        None if column.missing is None else ArrayValue.of(column.type_oid, (column.missing,)),
    )


def _has_default(column: ColumnDef) -> bool:
    return column.default is not None and not column.identity and not column.is_dropped


def pg_attrdef(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation, column in _defaults(snapshot):
        yield (column.default_oid, relation.oid, column.attnum, column.default)


def _defaults(snapshot: CatalogSnapshot) -> Iterator[tuple[Relation, ColumnDef]]:
    for relation in snapshot.relations():
        for column in relation.columns:
            if _has_default(column):
                yield relation, column


# Constraints and indexes


@cache
def _default_classes() -> dict[tuple[int, int], tuple[int, int]]:
    """(opclass, opfamily) by (access method, input type)."""
    table = builtin.table("pg_opclass")
    names = ("oid", "opcmethod", "opcintype", "opcfamily", "opcdefault")
    columns = [table.column(name).to_pylist() for name in names]
    rows = zip(*columns, strict=True)
    return {(m, t): (o, f) for o, m, t, f, is_default in rows if is_default}


_BINARY_COMPATIBLE = {1043: 25, 650: 869, 24: 26, 2205: 26, 2206: 26}


def default_class(snapshot: CatalogSnapshot, method: int, type_oid: int) -> tuple[int, int]:
    """(operator class, operator family) of a type for an access method; zeros without one."""
    found = _default_classes().get((method, _BINARY_COMPATIBLE.get(type_oid, type_oid)))
    if found is not None:
        return found
    entry = snapshot.type(type_oid)
    if entry is None:
        return (0, 0)
    if entry.kind == "d":
        return default_class(snapshot, method, entry.base_type)
    generic = {"e": 3500, "c": 2249, "r": 3831, "m": 4537}.get(entry.kind, 0)
    if entry.is_array:
        generic = 2277
    return _default_classes().get((method, generic), (0, 0))


@cache
def _equality_operators() -> dict[tuple[int, int, int], int]:
    """btree equality by (family, left type, right type)."""
    table = builtin.table("pg_amop")
    names = ("amopfamily", "amoplefttype", "amoprighttype", "amopstrategy", "amopopr", "amopmethod")
    columns = [table.column(name).to_pylist() for name in names]
    rows = zip(*columns, strict=True)
    return {(f, a, b): o for f, a, b, s, o, m in rows if s == 3 and m == BTREE}


def _equality(snapshot: CatalogSnapshot, left: int, right: int) -> int:
    """The = operator between two column types, 0 when there is none in the btree family."""
    family = default_class(snapshot, BTREE, left)[1]
    types = [_BINARY_COMPATIBLE.get(oid, oid) for oid in (left, right)]
    return _equality_operators().get((family, types[0], types[1]), 0)


def _oid_array(values: list[int]) -> ArrayValue | None:
    return ArrayValue.of(_OID, tuple(values)) if values else None


def pg_constraint(snapshot: CatalogSnapshot) -> Iterator[Row]:
    schemas = visible_schemas(snapshot)
    for item in sorted(snapshot.all_constraints(), key=lambda c: c.oid):
        if item.schema in schemas:
            yield _constraint_row(snapshot, item)


def _key_operators(
    snapshot: CatalogSnapshot, item: Constraint
) -> tuple[ArrayValue | None, ArrayValue | None, ArrayValue | None]:
    table = snapshot.relation_by_oid(item.relation)
    target = snapshot.relation_by_oid(item.referenced_table)
    if table is None or target is None:
        return (None, None, None)
    pairs = []
    for own, other in zip(item.columns, item.referenced_columns, strict=True):
        column, key = table.column_by_attnum(own), target.column_by_attnum(other)
        if column is not None and key is not None:
            pairs.append((key.type_oid, column.type_oid))
    return (
        _oid_array([_equality(snapshot, key, own) for key, own in pairs]),
        _oid_array([_equality(snapshot, key, key) for key, _ in pairs]),
        _oid_array([_equality(snapshot, own, own) for _, own in pairs]),
    )


def _constraint_row(snapshot: CatalogSnapshot, item: Constraint) -> Row:
    is_foreign = item.kind == ConstraintKind.FOREIGN_KEY
    no_inherit = item.no_inherit or item.kind != ConstraintKind.CHECK
    operators = _key_operators(snapshot, item) if is_foreign else (None, None, None)
    return (
        item.oid,
        item.name,
        item.schema,
        str(item.kind),
        item.is_deferrable,
        item.is_deferred,
        item.is_validated,
        item.relation,
        item.domain,
        item.index,
        0,
        item.referenced_table,
        item.on_update if is_foreign else " ",
        item.on_delete if is_foreign else " ",
        item.match if is_foreign else " ",
        True,
        0,
        no_inherit,
        ArrayValue.of(_INT2, item.columns) if item.columns else None,
        ArrayValue.of(_INT2, item.referenced_columns) if is_foreign else None,
        *operators,
        None,
        None,
        item.check,
    )


def pg_index(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation in sorted(snapshot.relations(), key=lambda r: r.oid):
        if relation.index is not None:
            yield _index_row(snapshot, relation, relation.index)


def _index_row(snapshot: CatalogSnapshot, relation: Relation, index: IndexDefinition) -> Row:
    columns = index_columns(snapshot, relation)
    keys = len(index.keys)
    numbers = [key.attnum for key in index.keys] + list(index.included)
    constraint = snapshot.constraint_by_oid(index.constraint) if index.constraint else None
    expressions = [key.expression for key in index.keys if key.expression is not None]
    pairs = list(zip(index.keys, columns, strict=False))
    return (
        relation.oid,
        index.table,
        len(numbers),
        keys,
        index.is_unique,
        index.nulls_not_distinct,
        index.is_primary,
        False,
        constraint is None or not constraint.is_deferrable,
        False,
        True,
        False,
        True,
        True,
        False,
        vector(_INT2, numbers),
        vector(_OID, (_key_collation(snapshot, k, c) for k, c in pairs)),
        vector(_OID, (_key_class(snapshot, index, k, c) for k, c in pairs)),
        vector(_INT2, (_key_option(k) for k in index.keys)),
        ", ".join(expressions) if expressions else None,
        index.predicate,
    )


def _key_collation(snapshot: CatalogSnapshot, key: IndexKey, column: ColumnDef) -> int:
    return key.collation or column.collation or physical(snapshot, column.type_oid)[4]


def _key_class(
    snapshot: CatalogSnapshot, index: IndexDefinition, key: IndexKey, column: ColumnDef
) -> int:
    return key.operator_class or default_class(snapshot, index.method, column.type_oid)[0]


def _key_option(key: IndexKey) -> int:
    """Bit 0: descending, bit 1: NULLs first."""
    return int(key.is_descending) | int(key.nulls_first) << 1


# Sequences, views, comments


def pg_sequence(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation in snapshot.relations():
        s = relation.sequence
        if s is not None:
            yield (
                relation.oid,
                s.type_oid,
                s.start,
                s.increment,
                s.maximum,
                s.minimum,
                s.cache,
                s.cycles,
            )


def pg_rewrite(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation in snapshot.relations():
        if relation.definition is not None and relation.rule_oid:
            yield (relation.rule_oid, "_RETURN", relation.oid, "1", "O", True, "<>", "")


def pg_description(snapshot: CatalogSnapshot) -> Iterator[Row]:
    shared = (1260, 1262)
    for (class_id, oid, subid), comment in snapshot.comments().items():
        if class_id not in shared:
            yield (oid, class_id, subid, comment.text)


SOURCES: dict[str, Callable[[CatalogSnapshot], Iterable[Row]]] = {
    "pg_catalog.pg_class": pg_class,
    "pg_catalog.pg_attribute": pg_attribute,
    "pg_catalog.pg_type": pg_type,
    "pg_catalog.pg_enum": pg_enum,
    "pg_catalog.pg_attrdef": pg_attrdef,
    "pg_catalog.pg_constraint": pg_constraint,
    "pg_catalog.pg_index": pg_index,
    "pg_catalog.pg_sequence": pg_sequence,
    "pg_catalog.pg_rewrite": pg_rewrite,
    "pg_catalog.pg_description": pg_description,
}
