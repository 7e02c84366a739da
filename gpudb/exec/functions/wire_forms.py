"""The send functions: the binary form of a value as bytea."""

from __future__ import annotations

from gpudb import sqltype
from gpudb.catalog import types
from gpudb.catalog.functions import scalar
from gpudb.column import Column
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import evaluate
from gpudb.sqltype import SqlType

_PLAIN = (
    "bool", "bpchar", "bytea", "char", "cid", "float4", "float8", "int2", "int2vector", "int4",
    "int8", "name", "oid", "oidvector", "regclass", "regcollation", "regnamespace", "regoper",
    "regoperator", "regproc", "regprocedure", "regrole", "regtype", "text", "tid", "varchar",
    "xid", "xid8",
)
_LINED = (
    "anyarray", "anycompatiblearray", "array", "bit", "cash", "cidr", "date", "enum", "inet",
    "interval", "json", "jsonb", "macaddr", "macaddr8", "numeric", "pg_lsn", "pg_node_tree",
    "record", "time", "timestamp", "timestamptz", "timetz", "uuid", "varbit", "void",
)


@scalar(
    *(f"{name}send" for name in _PLAIN), *(f"{name}_send" for name in _LINED),
    examples=(("int4send(5)", "\\x00000005"),),
)
def send(context: EvaluationContext, column: Column) -> Column:
    data_type = types.get(column.type.oid, context.query.snapshot)
    settings = context.query.types
    return evaluate(
        context, lambda value: data_type.send(value, settings), (column,),
        SqlType(sqltype.BYTEA),
    )
