"""date, time, timetz, timestamp, timestamptz."""

from __future__ import annotations

import struct

from gpudb import errors, layout, sqltype
from gpudb.catalog.types import zones
from gpudb.catalog.types.base import DataType, HostValue, TypeContext
from gpudb.catalog.types.calendar import (
    DATE_END,
    DATE_INFINITY,
    DATE_MIN,
    DATE_MINUS_INFINITY,
    DAY_MICROSECONDS,
    JULIAN_OF_2000,
    TIMESTAMP_END,
    TIMESTAMP_INFINITY,
    TIMESTAMP_MIN,
    TIMESTAMP_MINUS_INFINITY,
)
from gpudb.catalog.types.datetime_fields import FieldError, Problem, refusal
from gpudb.catalog.types.datetime_input import Moment, decode, decode_time
from gpudb.catalog.types.datetime_text import (
    format_date,
    format_offset,
    format_time,
    format_timestamp,
)
from gpudb.catalog.types.integers import check_length
from gpudb.layout import Layout

PRECISION_MAX = 6
_EPOCH_DAYS = -10957


def round_microseconds(value: int, precision: int) -> int:
    """Rounded to ``precision`` decimals of a second, half away from zero; -1 = as it is."""
    if not 0 <= precision < PRECISION_MAX:
        return value
    unit: int = 10 ** (PRECISION_MAX - precision)
    shifted = abs(value) + unit // 2
    magnitude = shifted - shifted % unit
    return magnitude if value >= 0 else -magnitude


def _read(text: str, name: str, context: TypeContext, *, is_time: bool = False) -> Moment:
    try:
        return (decode_time if is_time else decode)(
            text, order=context.date_order, now=context.now_microseconds,
            session_zone=context.time_zone,
        )
    except FieldError as problem:
        raise refusal(problem.problem, text, name) from None


class PrecisionType(DataType):
    """A type with an optional precision of seconds."""

    def __init__(
        self, oid: int, name: str, sql_name: str, array_oid: int, *, length: int = 8,
        is_preferred: bool = False, kind: Layout = layout.INT64,
    ) -> None:
        super().__init__(
            oid, name, sql_name, array_oid=array_oid, length=length, category="D",
            is_preferred=is_preferred, layout=kind,
        )

    def typmod_in(self, modifiers: tuple[int | str, ...]) -> int:
        if len(modifiers) != 1:
            raise errors.InvalidParameterValue("invalid type modifier")
        precision = int(modifiers[0])
        if precision < 0:
            base = "TIMESTAMP" if self.name.startswith("timestamp") else "TIME"
            zone = " WITH TIME ZONE" if self.name.endswith("tz") else ""
            raise errors.InvalidParameterValue(
                f"{base}({precision}){zone} precision must not be negative"
            )
        return min(precision, PRECISION_MAX)

    def typmod_out(self, typmod: int) -> str:
        """``(p)``; PostgreSQL puts it inside of the name (see types.format_type)."""
        return f"({typmod})" if typmod >= 0 else ""


class DateType(DataType):
    def __init__(self) -> None:
        super().__init__(
            sqltype.DATE, "date", "date", array_oid=1182, length=4, category="D",
            layout=layout.INT32,
        )

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        moment = _read(text, "date", context)
        match moment.special:
            case "infinity":
                return DATE_INFINITY
            case "-infinity":
                return DATE_MINUS_INFINITY
            case "epoch":
                return _EPOCH_DAYS
        if not DATE_MIN <= moment.days < DATE_END:
            raise errors.DatetimeFieldOverflow(f'date out of range: "{text}"')
        return moment.days

    def format(self, value: HostValue, context: TypeContext) -> str:
        return format_date(value, context)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        check_length(raw, 4)
        days = int.from_bytes(raw, "big", signed=True)
        if not DATE_MIN <= days < DATE_END and days not in (DATE_INFINITY, DATE_MINUS_INFINITY):
            raise errors.DatetimeFieldOverflow("date out of range")
        return days

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return int(value).to_bytes(4, "big", signed=True)


class TimeType(PrecisionType):
    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        moment = _read(text, "time", context, is_time=True)
        if moment.zone is not None and not moment.has_date:
            raise refusal(Problem.FORMAT, text, "time")
        return round_microseconds(moment.microseconds, typmod)

    def format(self, value: HostValue, context: TypeContext) -> str:
        return format_time(value)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        check_length(raw, 8)
        value = int.from_bytes(raw, "big", signed=True)
        if not 0 <= value <= DAY_MICROSECONDS:
            raise errors.DatetimeFieldOverflow("time out of range")
        return round_microseconds(value, typmod)

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return int(value).to_bytes(8, "big", signed=True)

    def apply_typmod(self, value: HostValue, typmod: int, *, is_explicit: bool) -> HostValue:
        return round_microseconds(value, typmod)


class TimetzType(PrecisionType):
    """(microseconds, seconds west of Greenwich)."""

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        moment = _read(text, "time with time zone", context, is_time=True)
        east = moment.offset
        if east is None:
            zone = moment.zone or context.time_zone
            if moment.zone is not None and not moment.has_date and not isinstance(
                zone, type(zones.fixed(0))
            ):
                raise refusal(Problem.FORMAT, text, "time with time zone")
            today = context.now_microseconds // DAY_MICROSECONDS
            days = moment.days if moment.has_date else today
            east = zones.offset_of_local(
                zone, days * 86400 + moment.microseconds // 1_000_000
            )
        return round_microseconds(moment.microseconds, typmod), -east

    def format(self, value: HostValue, context: TypeContext) -> str:
        return format_time(value[0]) + format_offset(-value[1])

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        check_length(raw, 12)
        time, west = struct.unpack(">qi", raw)
        if not 0 <= time <= DAY_MICROSECONDS:
            raise errors.DatetimeFieldOverflow("time out of range")
        if not -57600 < west < 57600:
            raise errors.InvalidTimeZoneDisplacementValue("time zone displacement out of range")
        return round_microseconds(time, typmod), west

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return struct.pack(">qi", *value)

    def apply_typmod(self, value: HostValue, typmod: int, *, is_explicit: bool) -> HostValue:
        return round_microseconds(value[0], typmod), value[1]

    def sort_key(self, value: HostValue) -> tuple[int, int]:
        return value[0] + value[1] * 1_000_000, value[1]


class TimestampType(PrecisionType):
    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        moment = _read(text, self._input_name, context)
        match moment.special:
            case "infinity":
                return TIMESTAMP_INFINITY
            case "-infinity":
                return TIMESTAMP_MINUS_INFINITY
            case "epoch":
                return _EPOCH_DAYS * DAY_MICROSECONDS
        value = moment.days * DAY_MICROSECONDS + moment.microseconds
        if self.oid == sqltype.TIMESTAMPTZ:
            value -= self._offset(moment, value, context) * 1_000_000
        value = round_microseconds(value, typmod)
        is_early = moment.days < -JULIAN_OF_2000
        if is_early or not TIMESTAMP_MIN <= value < TIMESTAMP_END:
            raise errors.DatetimeFieldOverflow(f'timestamp out of range: "{text}"')
        return value

    @property
    def _input_name(self) -> str:
        return "timestamp with time zone" if self.oid == sqltype.TIMESTAMPTZ else "timestamp"

    def _offset(self, moment: Moment, local: int, context: TypeContext) -> int:
        if moment.offset is not None:
            return moment.offset
        zone = moment.zone or context.time_zone
        return zones.offset_of_local(zone, local // 1_000_000)

    def format(self, value: HostValue, context: TypeContext) -> str:
        zone = context.time_zone if self.oid == sqltype.TIMESTAMPTZ else None
        return format_timestamp(value, context, zone=zone)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        check_length(raw, 8)
        value = int.from_bytes(raw, "big", signed=True)
        if value in (TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY):
            return value
        if not TIMESTAMP_MIN <= value < TIMESTAMP_END:
            raise errors.DatetimeFieldOverflow("timestamp out of range")
        return round_microseconds(value, typmod)

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        return int(value).to_bytes(8, "big", signed=True)

    def apply_typmod(self, value: HostValue, typmod: int, *, is_explicit: bool) -> HostValue:
        if value in (TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY):
            return value
        return round_microseconds(value, typmod)


TYPES: tuple[DataType, ...] = (
    DateType(),
    TimeType(sqltype.TIME, "time", "time without time zone", 1183),
    TimetzType(
        sqltype.TIMETZ, "timetz", "time with time zone", 1270, length=12, kind=layout.HOST
    ),
    TimestampType(sqltype.TIMESTAMP, "timestamp", "timestamp without time zone", 1115),
    TimestampType(
        sqltype.TIMESTAMPTZ, "timestamptz", "timestamp with time zone", 1185, is_preferred=True
    ),
)
