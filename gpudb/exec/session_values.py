"""current_date, current_user and their like: constants of a statement."""

from __future__ import annotations

from typing import Any

from gpudb import errors, sqltype
from gpudb.catalog import types
from gpudb.catalog.types import zones
from gpudb.exec.context import QueryContext
from gpudb.sqltype import SqlType

_DAY = 86_400_000_000


def session_value(name: str, type: SqlType, query: QueryContext) -> Any:
    """The host value of ``name`` (see expr.SessionValue) as ``type``; NULL for no schema."""
    match name:
        case "current_user" | "current_role" | "user":
            return query.user
        case "session_user":
            return query.session_user
        case "current_catalog":
            return query.database
        case "current_schema":
            return _current_schema(query)
        case "current_timestamp":
            return _rounded(query.now_microseconds, type)
    local = query.now_microseconds + _offset_microseconds(query)
    match name:
        case "localtimestamp":
            return _rounded(local, type)
        case "current_date":
            return local // _DAY
        case "localtime":
            return _rounded(local % _DAY, type)
        case "current_time":
            west = -_offset_microseconds(query) // 1_000_000
            return (_rounded(local % _DAY, type), west)
    raise errors.FeatureNotSupported(f"{name} is not supported")


def _offset_microseconds(query: QueryContext) -> int:
    seconds = query.now_microseconds // 1_000_000
    return zones.offset_at(query.types.time_zone, seconds) * 1_000_000


def _rounded(value: int, type: SqlType) -> int:
    if type.typmod < 0 or type.oid == sqltype.TIMETZ:
        return value
    codec = types.get(type.oid)
    return int(codec.apply_typmod(value, type.typmod, is_explicit=True))


def _current_schema(query: QueryContext) -> str | None:
    for name in query.search_path:
        wanted = query.user if name == "$user" else name
        if query.snapshot.schema(wanted) is not None:
            return wanted
    return None
