"""What a session says about itself: versions, names, settings, locks, sequences of ids, sleep."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Protocol

import torch

from gpudb import errors, sqltype
from gpudb.catalog import types
from gpudb.catalog.functions import scalar
from gpudb.catalog.search_path import SearchPath
from gpudb.catalog.type_system import TypeSystem
from gpudb.catalog.types import ArrayValue
from gpudb.column import Column, from_values, integer_column, to_values, validity
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import column_of, rowwise
from gpudb.sqltype import SqlType

SERVER_VERSION = "15.18"
_SLEEP_STEP_SECONDS = 0.01


class SettingsStore(Protocol):
    """The session's settings."""

    def show(self, name: str) -> str: ...

    def is_known(self, name: str) -> bool: ...

    def assign(self, name: str, text: str, *, is_local: bool = False) -> None: ...


class SessionFacts(Protocol):
    """What functions ask of context.query.session (None in detached evaluation)."""

    process_id: int
    database_oid: int
    settings: SettingsStore
    query_text: str
    sequence_values: dict[int, int]
    last_sequence: int

    def path(self) -> SearchPath: ...


def session_of(context: EvaluationContext) -> SessionFacts:
    """The session; 0A000 where there is none."""
    session: SessionFacts | None = context.query.session
    if session is None:
        raise errors.FeatureNotSupported("this function needs a session")
    return session


def path_of(context: EvaluationContext) -> SearchPath:
    """The effective search path."""
    return session_of(context).path()


def constant(type_oid: int, value: Any) -> Column:
    """A one-row column."""
    return column_of(SqlType(type_oid), [value])


def facts(
    *keys: str, result: int
) -> Callable[[Callable[[EvaluationContext], Any]], Callable[[EvaluationContext], Any]]:
    """Register a function without arguments whose value is one for the statement."""

    def register(
        function: Callable[[EvaluationContext], Any],
    ) -> Callable[[EvaluationContext], Any]:
        def body(context: EvaluationContext) -> Column:
            return constant(result, function(context))

        scalar(*keys)(body)
        return function

    return register


def version_text() -> str:
    return f"PostgreSQL {SERVER_VERSION} (gpudb)"


facts("pgsql_version", result=sqltype.TEXT)(lambda context: version_text())
facts("current_database", result=sqltype.NAME)(lambda context: context.query.database)
facts("current_user", result=sqltype.NAME)(lambda context: context.query.user)
facts("session_user", result=sqltype.NAME)(lambda context: context.query.session_user)
facts("getdatabaseencoding", "pg_client_encoding", result=sqltype.NAME)(lambda context: "UTF8")
facts("pg_is_in_recovery", "pg_is_wal_replay_paused", result=sqltype.BOOL)(lambda context: False)
facts("pg_jit_available", result=sqltype.BOOL)(lambda context: False)
facts("pg_my_temp_schema", result=sqltype.OID)(
    lambda context: getattr(context.query.session, "temporary_schema", 0)
)
facts("pg_notification_queue_usage", result=sqltype.FLOAT8)(lambda context: 0.0)
facts("pg_trigger_depth", result=sqltype.INT4)(lambda context: 0)
facts("pg_postmaster_start_time", "pg_conf_load_time", result=sqltype.TIMESTAMPTZ)(
    lambda context: getattr(context.query.session, "backend_started", 0)
)
facts("inet_client_addr", "inet_server_addr", result=sqltype.INET)(lambda context: None)
facts("inet_client_port", "inet_server_port", result=sqltype.INT4)(lambda context: None)
facts("pg_current_logfile", result=sqltype.TEXT)(lambda context: None)


@facts("pg_backend_pid", result=sqltype.INT4)
def backend_pid(context: EvaluationContext) -> int:
    return session_of(context).process_id


@facts("current_query", result=sqltype.TEXT)
def current_query(context: EvaluationContext) -> str:
    return session_of(context).query_text


@facts("current_schema", result=sqltype.NAME)
def current_schema(context: EvaluationContext) -> str | None:
    path = path_of(context)
    implicit = {"pg_catalog", "pg_temp"}
    for oid in path.schemas:
        schema = context.query.snapshot.schema_by_oid(oid)
        if schema is not None and schema.name not in implicit:
            return str(schema.name)
    return None


@rowwise("current_schemas", needs_context=True)
def current_schemas(context: EvaluationContext, with_implicit: bool) -> ArrayValue:
    names = []
    for oid in path_of(context).schemas:
        schema = context.query.snapshot.schema_by_oid(oid)
        if schema is not None and (with_implicit or schema.name != "pg_catalog"):
            names.append(schema.name)
    return ArrayValue.of(sqltype.NAME, tuple(names))


# --- settings ---


@rowwise("show_config_by_name", "show_config_by_name_missing_ok", needs_context=True)
def current_setting(context: EvaluationContext, name: str, missing_ok: bool = False) -> Any:
    settings = session_of(context).settings
    try:
        return settings.show(name)
    except errors.UndefinedObject:
        if missing_ok:
            return None
        raise


@rowwise("set_config_by_name", needs_context=True, is_volatile=True)
def set_config(
    context: EvaluationContext, name: str | None, value: str | None, is_local: bool | None
) -> str:
    if name is None:
        raise errors.NullValueNotAllowed("SET requires parameter name")
    settings = session_of(context).settings
    if value is None:
        raise errors.FeatureNotSupported("set_config with a NULL value is not supported")
    settings.assign(name, value, is_local=bool(is_local))
    return settings.show(name)


# --- types and values ---


@scalar("pg_typeof", examples=(("pg_typeof(33)", "integer"),))
def type_of(context: EvaluationContext, column: Column) -> Column:
    return constant(sqltype.REGTYPE, column.type.oid)


@rowwise("format_type", needs_context=True, examples=(("format_type(23, NULL)", "integer"),))
def format_type(context: EvaluationContext, oid: int | None, typmod: int | None) -> str | None:
    """The SQL name of a type; qualified where its name alone doesn't find it."""
    if oid is None:
        return None
    snapshot = context.query.snapshot
    if oid == sqltype.BPCHAR and typmod == -1:
        return "bpchar"
    if oid == sqltype.CHAR:
        return '"char"'
    if oid < sqltype.FIRST_USER_OID or snapshot is None or context.query.session is None:
        return types.format_type(oid, -1 if typmod is None else typmod, snapshot)
    return TypeSystem(snapshot, path_of(context)).name(oid)


@scalar("pg_num_nulls", examples=(("num_nulls(1, NULL, 2)", "1"),))
def count_nulls(context: EvaluationContext, *columns: Column) -> Column:
    return _count(context, columns, nulls=True)


@scalar("pg_num_nonnulls", examples=(("num_nonnulls(1, NULL, 2)", "2"),))
def count_values(context: EvaluationContext, *columns: Column) -> Column:
    return _count(context, columns, nulls=False)


def _count(context: EvaluationContext, columns: tuple[Column, ...], *, nulls: bool) -> Column:
    total = torch.zeros(context.rows, dtype=torch.int32)
    for column in columns:
        is_valid = validity(column, context.rows)
        total = total + (~is_valid if nulls else is_valid).to(torch.int32)
    return integer_column(SqlType(sqltype.INT4), total, lo=0, hi=len(columns))


@scalar("pg_column_size")
def column_size(context: EvaluationContext, column: Column) -> Column:
    """Bytes of the value as PostgreSQL would store it (without compression)."""
    data_type = types.get(column.type.oid, context.query.snapshot)
    settings = context.query.types
    sizes: list[int | None] = []
    for value in to_values(column):
        if value is None:
            sizes.append(None)
        elif data_type.length > 0:
            sizes.append(data_type.length)
        else:
            sizes.append(len(data_type.send(value, settings)) + 4)
    return from_values(SqlType(sqltype.INT4), types.get(sqltype.INT4).layout, sizes)


# --- transactions, waiting, locks ---


@facts("pg_current_xact_id", "pg_current_xact_id_if_assigned", result=sqltype.INT8)
def transaction_id(context: EvaluationContext) -> int:
    """A number that grows with every committed state."""
    return int(getattr(context.query.snapshot, "id", 0)) + 1


def void() -> Column:
    """The value of a function that returns nothing."""
    return constant(sqltype.VOID, "")


@scalar("pg_sleep")
def sleep(context: EvaluationContext, seconds: Column) -> Column:
    """Waits, looking for cancellation meanwhile."""
    for value in to_values(seconds):
        until = time.monotonic() + max(float(value or 0.0), 0.0)
        while (rest := until - time.monotonic()) > 0:
            context.query.check()
            time.sleep(min(rest, _SLEEP_STEP_SECONDS))
    return void()


@scalar("pg_stat_clear_snapshot", "pg_stat_force_next_flush")
def do_nothing(context: EvaluationContext, *columns: Column) -> Column:
    return void()


# --- sizes as text ---

_SIZE_UNITS = (("bytes", 10240), ("kB", 20480), ("MB", 20480), ("GB", 20480), ("TB", 20480),
               ("PB", 0))


@rowwise("pg_size_pretty", examples=(("pg_size_pretty(1234567890::int8)", "1177 MB"),))
def size_text(size: int) -> str:
    """Rounded half up in the unit that keeps the number under 10240."""
    value = size
    for step, (unit, limit) in enumerate(_SIZE_UNITS):
        if not limit or abs(value) < limit:
            shown = value if step == 0 else (abs(value) + 1) // 2 * (1 if value >= 0 else -1)
            return f"{shown} {unit}"
        shift = 512 if step == 0 else 1024
        value = abs(value) // shift * (1 if value >= 0 else -1)
    raise AssertionError


@rowwise("pg_size_pretty_numeric")
def numeric_size_text(size: Decimal) -> str:
    if not size.is_finite():
        return f"{size} {_SIZE_UNITS[-1][0]}"
    return f"{size:f} bytes" if abs(size) < _SIZE_UNITS[0][1] else size_text(int(size))


@rowwise("pg_size_bytes", examples=(("pg_size_bytes('1.5 GB')", "1610612736"),))
def size_bytes(text: str) -> int:
    factors = {"": 1, "bytes": 1, "b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40,
               "pb": 2**50}
    word = text.strip()
    digits = word.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = word[len(digits) :].strip().lower()
    try:
        number = float(digits)
    except ValueError:
        raise errors.InvalidParameterValue(f'invalid size: "{text}"') from None
    if unit not in factors:
        raise errors.InvalidParameterValue(
            f'invalid size: "{text}"', detail=f'Invalid size unit: "{word[len(digits):].strip()}".',
            hint='Valid units are "bytes", "B", "kB", "MB", "GB", "TB", and "PB".',
        )
    return int(number * factors[unit])


_ENCODINGS: Mapping[int, str] = {0: "SQL_ASCII", 6: "UTF8", 8: "LATIN1"}


@rowwise("PG_encoding_to_char", examples=(("pg_encoding_to_char(6)", "UTF8"),))
def encoding_name(code: int) -> str:
    return _ENCODINGS.get(code, "")


@rowwise("PG_char_to_encoding")
def encoding_code(name: str) -> int:
    word = name.upper().replace("-", "").replace("_", "")
    codes = {text.replace("_", ""): code for code, text in _ENCODINGS.items()}
    return codes.get(word, 6 if word == "UNICODE" else -1)


@rowwise("pg_encoding_max_length_sql")
def encoding_length(code: int) -> int | None:
    return {0: 1, 6: 4, 8: 1}.get(code)
