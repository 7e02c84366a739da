"""Functions in FROM: set-returning and scalar calls, ROWS FROM, ORDINALITY, data files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb import sqltype as t
from gpudb.expr import Call, Expr, Literal
from gpudb.optimizer import logical
from gpudb.optimizer.binder import calls, coercion, composites, expressions, typenames
from gpudb.optimizer.binder.from_clause import Source, alias_of, named_columns, own_columns
from gpudb.optimizer.binder.scope import Clause, Item, Scope
from gpudb.optimizer.parser import output_name, position, type_name
from gpudb.sqltype import RECORD, SqlType

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder

_FILES = {"read_parquet": "parquet", "read_csv": "csv"}
Columns = tuple[tuple[str, SqlType], ...]


def bind(binder: Binder, scope: Scope, node: exp.Expression) -> Source:
    """A function (or ROWS FROM) as a table."""
    alias, names = alias_of(node)
    functions = node.args["expressions"]
    if len(functions) == 1:
        file_format = _file_format(functions[0])
        if file_format:
            return _bind_file(binder, scope, node, file_format)
    definitions = None
    if node.args.get("alias") is not None:
        definitions = node.args["alias"].args.get("definitions")
    bound: list[tuple[Expr, Columns, bool]] = []
    scope_before = scope.is_lateral_active
    scope.is_lateral_active = True
    try:
        for function in functions:
            own = function.args.get("definitions") or definitions
            bound.extend(_bind_function(binder, scope, function, own, alias))
    finally:
        scope.is_lateral_active = scope_before
    is_single = len(bound) == 1
    is_scalar = is_single and bound[0][2] and not node.args.get("ordinality")
    if is_single and bound[0][2] and alias and not bound[0][1][0][0].startswith("\0"):
        bound[0] = (bound[0][0], ((alias, bound[0][1][0][1]),), True)
    outputs = tuple(
        tuple(binder.field(name.lstrip("\0"), type_) for name, type_ in columns)
        for _, columns, _ in bound
    )
    ordinality = binder.field("ordinality", t.BIGINT) if node.args.get("ordinality") else None
    expressions_ = tuple(value for value, _, _ in bound)
    plan = logical.TableFunction(expressions_, outputs, ordinality)
    shown = alias or output_name(functions[0])
    own_columns(binder, scope, shown, plan.fields)
    visible = named_columns(plan.fields, names, shown)
    row_type = RECORD
    if is_single and not bound[0][2] and ordinality is None:
        row_type = bound[0][0].type.oid
    item = Item(shown, visible, row_type=row_type, is_scalar=is_scalar)
    outer: set[int] = set()
    for value in expressions_:
        outer |= binder.references(value)
    return Source(plan, [item], visible, outer)


def _bind_function(
    binder: Binder,
    scope: Scope,
    node: exp.Expression,
    definitions: list[exp.Expression] | None,
    alias: str,
) -> list[tuple[Expr, Columns, bool]]:
    """The call, its columns, whether it yields a plain value; several for unnest(a, b)."""
    del alias
    if (
        isinstance(node, exp.Anonymous)
        and node.args["this"] == "unnest"
        and len(node.args["expressions"]) > 1
    ):
        found = []
        for argument in node.args["expressions"]:
            single = exp.Anonymous(this="unnest", schema="pg_catalog", expressions=[])
            single.args["expressions"] = [argument]
            single.meta.update(node.meta)
            found.extend(_bind_function(binder, scope, single, None, ""))
        return found
    with binder.clause(scope, Clause.FROM_FUNCTION):
        if isinstance(node, exp.Anonymous):
            value = calls.bind_table_call(binder, scope, node)
        else:
            value = coercion.settled(binder, expressions.bind(binder, scope, node))
    columns, is_plain = _columns(binder, value, node, definitions)
    return [(value, columns, is_plain)]


def _columns(
    binder: Binder,
    value: Expr,
    node: exp.Expression,
    definitions: list[exp.Expression] | None,
) -> tuple[Columns, bool]:
    """The output columns of a call; a name that starts with NUL is not replaced by an alias."""
    at = position(node)
    fields = composites.row_fields(binder, value)
    is_record = value.type.oid == RECORD
    if definitions is not None:
        if not is_record:
            raise errors.SyntaxError(
                "a column definition list is only allowed for functions returning"
                ' "record"',
                position=position(definitions[0]),
            )
        if fields is not None:
            raise errors.SyntaxError(
                "a column definition list is redundant for a function with OUT parameters",
                position=position(definitions[0]),
            )
        return _defined(binder, definitions), False
    if fields is not None:
        return fields, False
    if is_record:
        raise errors.SyntaxError(
            'a column definition list is required for functions returning "record"',
            position=at,
        )
    name = output_name(node)
    if isinstance(value, Call):
        outputs = binder.single_outputs.get(value.function.oid)
        if outputs:
            name = "\0" + outputs
    return ((name, value.type),), True


def _defined(binder: Binder, definitions: list[exp.Expression]) -> Columns:
    columns: list[tuple[str, SqlType]] = []
    for definition in definitions:
        name = definition.args["this"]
        if any(name == known for known, _ in columns):
            raise errors.DuplicateColumn(
                f'column name "{name}" specified more than once',
                position=position(definition),
            )
        columns.append((name, typenames.resolve(binder, type_name(definition))))
    return tuple(columns)


# Data files


def _file_format(node: exp.Expression) -> str:
    if not isinstance(node, exp.Anonymous) or node.args.get("schema") not in (None, "", "gpudb"):
        return ""
    return _FILES.get(node.args["this"], "")


def _bind_file(
    binder: Binder, scope: Scope, node: exp.Expression, file_format: str
) -> Source:
    """read_parquet('glob', option => value ...): its columns come from the files."""
    call = node.args["expressions"][0]
    at = position(call)
    if binder.context.file_schema is None:
        raise errors.FeatureNotSupported(
            f"{call.args['this']} is not supported here", position=at
        )
    patterns: list[str] = []
    options: list[tuple[str, str]] = []
    for item in call.args["expressions"]:
        if isinstance(item, exp.Kwarg):
            options.append((item.args["this"], _constant(binder, item.args["expression"])))
        else:
            patterns.append(_constant(binder, item))
    if len(patterns) != 1:
        raise errors.UndefinedFunction(
            f"{call.args['this']} takes one path and named options", position=at
        )
    found = binder.context.file_schema(file_format, patterns[0], tuple(options))
    fields = tuple(
        binder.field(name, SqlType(oid, typmod)) for name, oid, typmod in found.columns
    )
    plan: logical.Plan = logical.FileScan(file_format, found.paths, fields, tuple(options))
    alias, names = alias_of(node)
    shown = alias or call.args["this"]
    own_columns(binder, scope, shown, fields)
    visible = named_columns(fields, names, shown)
    return Source(plan, [Item(shown, visible)], visible)


def _constant(binder: Binder, node: exp.Expression) -> str:
    value = expressions.bind(binder, Scope(), node)
    if not isinstance(value, Literal) or value.value is None:
        raise errors.FeatureNotSupported(
            "paths and options of data files must be constants", position=position(node)
        )
    if isinstance(value.value, bool):
        return "true" if value.value else "false"
    return str(value.value)
