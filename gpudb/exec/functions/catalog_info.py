"""Questions about catalog objects: visibility, definitions, sizes, comments, names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from gpudb import errors, sqltype
from gpudb.catalog import builtin, types
from gpudb.catalog.catalog import CatalogSnapshot
from gpudb.catalog.object_names import ObjectNames
from gpudb.catalog.objects import Constraint, Relation
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import rowwise
from gpudb.exec.functions.sets import rowset
from gpudb.exec.functions.system import path_of
from gpudb.exec.functions.text import quote_identifier
from gpudb.optimizer.keywords import CATEGORY_NAMES, KEY_WORDS


def snapshot_of(context: EvaluationContext) -> CatalogSnapshot:
    snapshot: CatalogSnapshot | None = context.query.snapshot
    if snapshot is None:
        raise errors.FeatureNotSupported("this function needs a catalog")
    return snapshot


def names_of(context: EvaluationContext) -> ObjectNames:
    return ObjectNames(snapshot_of(context), path_of(context))


# --- visibility ---


def _visible(key: str, test: Callable[[ObjectNames, int], bool | None]) -> None:
    def body(context: EvaluationContext, oid: int) -> bool | None:
        return test(names_of(context), oid)

    rowwise(key, needs_context=True)(body)


_visible("pg_table_is_visible", ObjectNames.relation_is_visible)
_visible("pg_type_is_visible", ObjectNames.type_is_visible)
_visible("pg_function_is_visible", ObjectNames.function_is_visible)
_visible("pg_operator_is_visible", ObjectNames.operator_is_visible)
for _kind in ("collation", "conversion", "opclass", "opfamily", "ts_config", "ts_dict",
              "ts_parser", "ts_template"):
    rowwise(f"pg_{_kind}_is_visible", result=sqltype.BOOL)(lambda oid: True)
rowwise("pg_statistics_obj_is_visible", result=sqltype.BOOL)(lambda oid: None)
rowwise("pg_is_other_temp_schema", result=sqltype.BOOL)(lambda oid: False)


# --- names ---


@rowwise("pg_get_userbyid", needs_context=True)
def role_name(context: EvaluationContext, oid: int) -> str:
    found = snapshot_of(context).role_by_oid(oid)
    return found.name if found is not None else f"unknown (OID={oid})"


def _register_name_lookups() -> None:
    kinds = ("regclass", "regproc", "regprocedure", "regoper", "regoperator", "regtype",
             "regnamespace", "regrole", "regcollation")
    for kind in kinds:

        def body(context: EvaluationContext, name: str, *, kind: str = kind) -> int | None:
            try:
                return int(names_of(context).lookup(kind, name))
            except (errors.UndefinedTable, errors.UndefinedFunction, errors.UndefinedObject,
                    errors.InvalidSchemaName, errors.AmbiguousFunction):
                return None

        rowwise(f"to_{kind}", needs_context=True)(body)


_register_name_lookups()


# --- definitions ---


@rowwise("pg_get_expr", "pg_get_expr_ext")
def expression_text(tree: str, relation: int, pretty: bool = False) -> str:
    """The catalog keeps the SQL text itself in place of PostgreSQL's tree."""
    return tree


@rowwise("pg_get_viewdef", "pg_get_viewdef_ext", "pg_get_viewdef_wrap", needs_context=True)
def view_definition(context: EvaluationContext, oid: int, *_: Any) -> str | None:
    found = snapshot_of(context).relation_by_oid(oid)
    if found is None or found.kind not in ("v", "m") or found.definition is None:
        return None
    text = found.definition.rstrip()
    return (text if text.endswith(";") else text + ";")


@rowwise("pg_get_viewdef_name", "pg_get_viewdef_name_ext", needs_context=True)
def view_definition_by_name(context: EvaluationContext, name: str, *_: Any) -> str | None:
    oid = names_of(context).relation_oid(name)
    found: str | None = view_definition(context, oid)
    return found


def _columns(relation: Relation, attnums: Iterable[int]) -> str:
    found = []
    for attnum in attnums:
        column = relation.column_by_attnum(attnum)
        found.append(quote_identifier(column.name) if column is not None else "?")
    return ", ".join(found)


_ACTIONS = {"r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}


def constraint_text(context: EvaluationContext, constraint: Constraint) -> str:
    """The clause that would make the constraint."""
    snapshot = snapshot_of(context)
    relation = snapshot.relation_by_oid(constraint.relation)
    suffix = ""
    if constraint.is_deferrable:
        suffix += " DEFERRABLE" + (" INITIALLY DEFERRED" if constraint.is_deferred else "")
    if not constraint.is_validated:
        suffix += " NOT VALID"
    if constraint.kind == "c":
        inherit = " NO INHERIT" if constraint.no_inherit else ""
        return f"CHECK (({_unwrapped(constraint.check or '')})){inherit}{suffix}"
    assert relation is not None
    listed = _columns(relation, constraint.columns)
    if constraint.kind in ("p", "u"):
        word = "PRIMARY KEY" if constraint.kind == "p" else "UNIQUE"
        return f"{word} ({listed}){suffix}"
    return _foreign_key_text(context, constraint, listed) + suffix


def _unwrapped(text: str) -> str:
    """The text without parentheses around the whole of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and place < len(text) - 1:
            return text
    return _unwrapped(text[1:-1])


def _foreign_key_text(context: EvaluationContext, constraint: Constraint, listed: str) -> str:
    target = snapshot_of(context).relation_by_oid(constraint.referenced_table)
    name = names_of(context).relation_text(constraint.referenced_table) or "?"
    columns = "" if target is None else _columns(target, constraint.referenced_columns)
    text = f"FOREIGN KEY ({listed}) REFERENCES {name}({columns})"
    text += " MATCH FULL" if constraint.match == "f" else ""
    if constraint.on_update in _ACTIONS:
        text += f" ON UPDATE {_ACTIONS[constraint.on_update]}"
    if constraint.on_delete in _ACTIONS:
        text += f" ON DELETE {_ACTIONS[constraint.on_delete]}"
    return text


@rowwise("pg_get_constraintdef", "pg_get_constraintdef_ext", needs_context=True)
def constraint_definition(context: EvaluationContext, oid: int, *_: Any) -> str | None:
    found = snapshot_of(context).constraint_by_oid(oid)
    return None if found is None else constraint_text(context, found)


@cache
def _builtin_indexes() -> dict[int, tuple[int, bool, tuple[int, ...]]]:
    """(table, unique, key columns) of the system catalogs' indexes."""
    rows = builtin.table("pg_index").select(["indexrelid", "indrelid", "indisunique", "indkey"])
    return {
        index: (table, unique, tuple(keys))
        for index, table, unique, keys in zip(
            *(column.to_pylist() for column in rows.columns), strict=True
        )
    }


def _builtin_index(
    context: EvaluationContext, index: Relation, column: int, *, pretty: bool
) -> str | None:
    found = _builtin_indexes().get(index.oid)
    table = None if found is None else snapshot_of(context).relation_by_oid(found[0])
    if found is None or table is None:
        return None
    if column:
        return _columns(table, found[2][column - 1 : column])
    unique = "UNIQUE " if found[1] else ""
    on = _qualified(snapshot_of(context), table, context, pretty=pretty)
    return (
        f"CREATE {unique}INDEX {quote_identifier(index.name)} ON {on} "
        f"USING btree ({_columns(table, found[2])})"
    )


@rowwise("pg_get_indexdef", "pg_get_indexdef_ext", needs_context=True)
def index_definition(
    context: EvaluationContext, oid: int, column: int = 0, pretty: bool = False
) -> str | None:
    """The CREATE INDEX statement, or the text of one key."""
    snapshot = snapshot_of(context)
    index = snapshot.relation_by_oid(oid)
    if index is not None and index.is_system:
        return _builtin_index(context, index, column, pretty=pretty)
    if index is None or index.index is None:
        return None
    definition = index.index
    table = snapshot.relation_by_oid(definition.table)
    if table is None:
        return None
    keys = []
    for key in definition.keys:
        text = key.expression or _columns(table, (key.attnum,))
        order = " DESC" if key.is_descending else ""
        if key.nulls_first != key.is_descending:
            order += " NULLS FIRST" if key.nulls_first else " NULLS LAST"
        keys.append((text, order))
    if column:
        return keys[column - 1][0] if column <= len(keys) else ""
    unique = "UNIQUE " if definition.is_unique else ""
    table_name = _qualified(snapshot, table, context, pretty=pretty)
    listed = ", ".join(text + order for text, order in keys)
    text = (
        f"CREATE {unique}INDEX {quote_identifier(index.name)} ON {table_name} "
        f"USING btree ({listed})"
    )
    if definition.included:
        text += f" INCLUDE ({_columns(table, definition.included)})"
    if definition.nulls_not_distinct:
        text += " NULLS NOT DISTINCT"
    return text + (f" WHERE {definition.predicate}" if definition.predicate else "")


def _qualified(
    snapshot: CatalogSnapshot, relation: Relation, context: EvaluationContext, *, pretty: bool
) -> str:
    if pretty:
        return names_of(context).relation_text(relation.oid) or quote_identifier(relation.name)
    schema = snapshot.schema_by_oid(relation.schema)
    prefix = "" if schema is None else quote_identifier(schema.name) + "."
    return prefix + quote_identifier(relation.name)


def _function_texts(part: int) -> Callable[[int], str | None]:
    def text(oid: int) -> str | None:
        found = builtin.function_texts().get(oid)
        return None if found is None else found[part]

    return text


@rowwise("pg_get_function_arguments", needs_context=True)
def function_arguments(context: EvaluationContext, oid: int) -> str | None:
    return _user_arguments(context, oid, 0)


@rowwise("pg_get_function_identity_arguments", needs_context=True)
def function_identity_arguments(context: EvaluationContext, oid: int) -> str | None:
    return _user_arguments(context, oid, 1)


@rowwise("pg_get_function_result", needs_context=True)
def function_result(context: EvaluationContext, oid: int) -> str | None:
    found = snapshot_of(context).function_by_oid(oid)
    if found is None:
        return _function_texts(2)(oid)
    name = types.format_type(found.return_type, -1, snapshot_of(context))
    return f"SETOF {name}" if found.returns_set else name


def _user_arguments(context: EvaluationContext, oid: int, part: int) -> str | None:
    found = snapshot_of(context).function_by_oid(oid)
    if found is None:
        return _function_texts(part)(oid)
    texts = []
    for argument in found.arguments:
        if part == 1 and argument.mode in "ot":
            continue
        mode = {"o": "OUT ", "b": "INOUT ", "v": "VARIADIC "}.get(argument.mode, "")
        name = f"{quote_identifier(argument.name)} " if argument.name else ""
        type_name = types.format_type(argument.type_oid, -1, snapshot_of(context))
        default = f" DEFAULT {argument.default}" if argument.default and part == 0 else ""
        texts.append(f"{mode}{name}{type_name}{default}")
    return ", ".join(texts)


@rowwise("pg_get_serial_sequence", needs_context=True)
def serial_sequence(context: EvaluationContext, table: str, column: str) -> str | None:
    snapshot = snapshot_of(context)
    oid = names_of(context).relation_oid(table)
    relation = snapshot.relation_by_oid(oid)
    found = None if relation is None else relation.column(column)
    if relation is None or found is None:
        name = relation.name if relation else table
        raise errors.UndefinedColumn(
            f'column "{column}" of relation "{name}" does not exist'
        )
    for other in snapshot.relations():
        options = other.sequence
        if options is not None and (options.owner_table, options.owner_column) == (
            oid, found.attnum
        ):
            return _qualified(snapshot, other, context, pretty=False)
    return None


for _key in ("pg_get_partkeydef", "pg_get_partition_constraintdef", "pg_get_ruledef",
             "pg_get_ruledef_ext", "pg_get_triggerdef", "pg_get_triggerdef_ext",
             "pg_get_statisticsobjdef", "pg_get_statisticsobjdef_columns",
             "pg_get_function_sqlbody", "pg_tablespace_location",
             "pg_collation_actual_version", "pg_database_collation_actual_version",
             "pg_relation_filepath", "pg_indexam_progress_phasename"):
    rowwise(_key, result=sqltype.TEXT)(lambda *arguments: None)
rowwise("pg_get_function_arg_default", result=sqltype.TEXT)(lambda oid, number: None)
rowwise("pg_relation_filenode", result=sqltype.OID)(lambda oid: oid)
rowwise("pg_get_replica_identity_index", result=sqltype.REGCLASS)(lambda oid: None)
rowwise("pg_relation_is_publishable", result=sqltype.BOOL)(lambda oid: False)
rowwise("row_security_active", "row_security_active_name", result=sqltype.BOOL)(
    lambda relation: False
)


@rowwise("pg_relation_is_updatable", needs_context=True)
def is_updatable(context: EvaluationContext, oid: int, *_: Any) -> int:
    """Bits of the events a relation takes: 28 = INSERT, UPDATE and DELETE."""
    found = snapshot_of(context).relation_by_oid(oid)
    return 28 if found is not None and found.kind == "r" else 0


@rowwise("pg_column_is_updatable", needs_context=True)
def column_is_updatable(context: EvaluationContext, oid: int, *_: Any) -> bool:
    return bool(is_updatable(context, oid))


# --- sizes ---


def relation_size(context: EvaluationContext, oid: int) -> int | None:
    snapshot = snapshot_of(context)
    if snapshot.relation_by_oid(oid) is None:
        return None
    return snapshot.data(oid).size_bytes()


@rowwise("pg_relation_size", needs_context=True)
def main_size(context: EvaluationContext, oid: int, fork: str) -> int | None:
    return relation_size(context, oid) if fork == "main" else 0


@rowwise("pg_relation_size(regclass)", "pg_table_size", "pg_total_relation_size",
         needs_context=True, result=sqltype.INT8)
def table_size(context: EvaluationContext, oid: int) -> int | None:
    return relation_size(context, oid)


rowwise("pg_indexes_size", result=sqltype.INT8)(lambda oid: 0)


def _database_size(context: EvaluationContext) -> int:
    data = snapshot_of(context).tables_with_data()
    return sum(item.size_bytes() for item in data.values())


@rowwise("pg_database_size_oid", "pg_database_size_name", "pg_tablespace_size_oid",
         "pg_tablespace_size_name", needs_context=True)
def database_size(context: EvaluationContext, which: Any) -> int:
    return _database_size(context)


# --- comments ---


def _comment(context: EvaluationContext, oid: int, catalog: str | None, subid: int) -> str | None:
    snapshot = snapshot_of(context)
    if catalog is not None:
        relation = snapshot.relation("pg_catalog", catalog)
        return None if relation is None else snapshot.comment(relation.oid, oid, subid)
    for (_, found, sub), comment in snapshot.comments().items():
        if found == oid and sub == subid:
            return str(comment.text)
    for class_id in (1259, 1255, 1247, 2615, 1262):
        text = snapshot.comment(class_id, oid, subid)
        if text is not None:
            return text
    return None


@rowwise("obj_description(oid,name)", "shobj_description(oid,name)", "obj_description(oid)",
         needs_context=True, result=sqltype.TEXT)
def object_comment(context: EvaluationContext, oid: int, catalog: str | None = None) -> Any:
    return _comment(context, oid, catalog, 0)


@rowwise("col_description(oid,int4)", needs_context=True, result=sqltype.TEXT)
def column_comment(context: EvaluationContext, oid: int, attnum: int) -> str | None:
    return _comment(context, oid, "pg_class", attnum)


# --- sets ---


@rowset("pg_get_keywords", results=(sqltype.TEXT, sqltype.CHAR, sqltype.BOOL, sqltype.TEXT,
                                    sqltype.TEXT))
def keywords() -> Iterable[tuple[Any, ...]]:
    for word in KEY_WORDS.values():
        label = "can be bare label" if word.bare_label else "requires AS"
        yield word.word, word.category, word.bare_label, CATEGORY_NAMES[word.category], label


@rowset("pg_options_to_table", results=(sqltype.TEXT, sqltype.TEXT))
def options_to_table(options: Any) -> Iterable[tuple[str, str | None]]:
    for option in options.items:
        name, found, value = option.partition("=")
        yield name, value if found else None


@rowset("pg_partition_ancestors", results=(sqltype.REGCLASS,))
def partition_ancestors(oid: int) -> Iterable[int]:
    return ()


rowset("pg_listening_channels", results=(sqltype.TEXT,), needs_context=True)(
    lambda context: sorted(getattr(context.query.session, "channels", ()))
)
