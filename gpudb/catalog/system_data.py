"""Rows about table data, statistics, models and time zones."""

from __future__ import annotations

import datetime
import decimal
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Sequence

from gpudb.catalog import builtin
from gpudb.catalog.catalog import CatalogSnapshot, has_storage
from gpudb.catalog.objects import (
    ColumnStatistics,
    Relation,
    RelationStatistics,
    SegmentColumn,
)
from gpudb.catalog.system_relations import Row
from gpudb.catalog.types.base import ArrayValue, HostValue

_TEXT = 25
_FLOAT4 = 700
_FLOAT8 = 701
_NUMERIC = 1700
_BOOL = 16
_BYTEA = 17
_INTEGERS = frozenset((20, 21, 23, 26, 1082, 1083, 1114, 1184))
_STRINGS = frozenset((25, 1042, 1043, 19, 18, 114))
NEGATIVE_DISTINCT_FROM = 0.1
"""Above this share of the rows PostgreSQL writes n_distinct as minus the share."""


def segments(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation, data in snapshot.tables_with_data().items():
        for segment in data.segments:
            vector = data.deletes.get(segment.id)
            yield (
                relation,
                segment.id,
                segment.row0,
                segment.rows,
                0 if vector is None else vector.rows,
                segment.size_bytes,
                segment.level,
                segment.path,
                segment.image is not None,
            )


def _shown(value: float | bytes | None) -> str | None:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return None if value is None else str(value)


def _segment_column(relation: int, segment: int, column: SegmentColumn) -> Row:
    return (
        relation,
        segment,
        column.attnum,
        column.encoding,
        sum(buffer.stored for buffer in column.buffers),
        column.nulls,
        column.distinct,
        _shown(column.low),
        _shown(column.high),
        column.zones is not None,
    )


def segment_columns(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation, data in snapshot.tables_with_data().items():
        for segment in data.segments:
            for column in segment.columns:
                yield _segment_column(relation, segment.id, column)


def models(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for model in snapshot.models():
        options = tuple(f"{name}={value}" for name, value in model.options)
        yield (
            model.oid,
            model.schema,
            model.name,
            model.owner,
            model.architecture,
            model.state,
            model.path,
            ArrayValue.of(_TEXT, options) if options else None,
        )


def _tables(snapshot: CatalogSnapshot) -> Iterator[tuple[str, Relation]]:
    for relation in snapshot.relations():
        schema = snapshot.schema_by_oid(relation.schema)
        if has_storage(relation) and schema is not None:
            yield schema.name, relation


def pg_stat_all_tables(snapshot: CatalogSnapshot) -> Iterator[Row]:
    """Row counts are exact; nothing counts scans or vacuums here (a provider may)."""
    for schema, relation in _tables(snapshot):
        data = snapshot.data(relation.oid)
        statistics = snapshot.statistics(relation.oid)
        analyzed = statistics.analyzed_at or None if statistics is not None else None
        deleted = sum(vector.rows for vector in data.deletes.values())
        counters = (0, 0, 0, 0, 0, 0, 0, 0, data.rows(), deleted, 0, 0)
        times = (None, None, analyzed, None)
        counts = (0, 0, int(analyzed is not None), 0)
        yield (relation.oid, schema, relation.name, *counters, *times, *counts)


# Statistics


def host_value(value: float | bytes, type_oid: int, scale: int) -> HostValue:
    """The host value of a bound or common value of a column; None where its domain is another.

    ``scale`` is the number of decimals of scaled integers (numeric).
    """
    if isinstance(value, bytes):
        if type_oid in _STRINGS:
            return value.decode(errors="replace")
        return value if type_oid == _BYTEA else None
    if type_oid == _BOOL:
        return bool(value)
    if type_oid in (_FLOAT4, _FLOAT8):
        return float(value)
    if type_oid == _NUMERIC and isinstance(value, int):
        return decimal.Decimal(value).scaleb(-scale, decimal.Context(prec=decimal.MAX_PREC))
    return value if type_oid in _INTEGERS else None


def _value_array(
    values: Sequence[int | float | bytes], type_oid: int, scale: int
) -> ArrayValue | None:
    converted = tuple(host_value(value, type_oid, scale) for value in values)
    if not converted or None in converted:
        return None
    return ArrayValue.of(type_oid, converted)


def _distinct(statistics: ColumnStatistics, rows: float) -> float:
    if rows > 0 and statistics.distinct > NEGATIVE_DISTINCT_FROM * rows:
        return -min(1.0, statistics.distinct / rows)
    return statistics.distinct


def _stats_row(
    head: tuple[str, str, str],
    type_oid: int,
    table: RelationStatistics,
    column: ColumnStatistics,
) -> Row:
    common = _value_array(column.common_values, type_oid, column.scale)
    fractions = None
    if common is not None:
        fractions = ArrayValue.of(_FLOAT4, column.common_fractions)
    return (
        *head,
        False,
        column.null_fraction,
        round(column.average_width),
        _distinct(column, table.rows),
        common,
        fractions,
        _value_array(column.histogram, type_oid, column.scale),
        column.correlation,
        None,
        None,
        None,
    )


def pg_stats(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for schema, relation in _tables(snapshot):
        statistics = snapshot.statistics(relation.oid)
        if statistics is None:
            continue
        for column in relation.live_columns():
            found = statistics.column(column.attnum)
            if found is not None:
                head = (schema, relation.name, column.name)
                yield _stats_row(head, column.type_oid, statistics, found)


# Time zones


def _interval(seconds: int) -> tuple[int, int, int]:
    return (0, 0, seconds * 1_000_000)


def pg_timezone_abbrevs(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for abbreviation, seconds, is_daylight in builtin.timezone_abbreviations():
        yield (abbreviation, _interval(seconds), is_daylight)


def pg_timezone_names(snapshot: CatalogSnapshot) -> Iterator[Row]:
    """The zones of the system's tzdata, with their offsets now."""
    now = datetime.datetime.now(datetime.UTC)
    for name in sorted(zoneinfo.available_timezones()):
        local = now.astimezone(zoneinfo.ZoneInfo(name))
        offset, daylight = local.utcoffset(), local.dst()
        seconds = int(offset.total_seconds()) if offset is not None else 0
        yield (name, local.tzname(), _interval(seconds), bool(daylight))


def pg_stat_database(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for database in snapshot.databases():
        counts = (0,) * 13
        times = (0.0, 0.0, 0.0, 0.0, 0.0)
        yield (
            database.oid,
            database.name,
            0,
            *counts,
            None,
            None,
            *times,
            0,
            0,
            0,
            0,
            None,
        )


SOURCES: dict[str, Callable[[CatalogSnapshot], Iterable[Row]]] = {
    "gpudb.segments": segments,
    "gpudb.segment_columns": segment_columns,
    "gpudb.models": models,
    "pg_catalog.pg_stat_all_tables": pg_stat_all_tables,
    "pg_catalog.pg_stats": pg_stats,
    "pg_catalog.pg_timezone_abbrevs": pg_timezone_abbrevs,
    "pg_catalog.pg_timezone_names": pg_timezone_names,
    "pg_catalog.pg_stat_database": pg_stat_database,
}
