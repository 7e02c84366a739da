"""The functions that rules put into plans themselves, as pg_proc has them."""

from __future__ import annotations

from gpudb.expr import Function, Volatility
from gpudb.sqltype import (
    ANYARRAY,
    ANYENUM,
    ANYNONARRAY,
    BOOL,
    BPCHAR,
    BYTEA,
    CHAR,
    CID,
    DATE,
    FIRST_USER_OID,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    NAME,
    NUMERIC,
    OID,
    OIDVECTOR,
    RECORD,
    REG_TYPES,
    TEXT,
    TID,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UUID,
    VARCHAR,
    XID,
)

_EQUALITIES: dict[int, tuple[int, str]] = {
    BOOL: (60, "booleq"),
    BYTEA: (1948, "byteaeq"),
    CHAR: (61, "chareq"),
    NAME: (62, "nameeq"),
    INT8: (467, "int8eq"),
    INT2: (63, "int2eq"),
    INT4: (65, "int4eq"),
    TEXT: (67, "texteq"),
    VARCHAR: (67, "texteq"),
    OID: (184, "oideq"),
    TID: (1292, "tideq"),
    XID: (68, "xideq"),
    CID: (69, "cideq"),
    OIDVECTOR: (679, "oidvectoreq"),
    FLOAT4: (287, "float4eq"),
    FLOAT8: (293, "float8eq"),
    BPCHAR: (1048, "bpchareq"),
    DATE: (1086, "date_eq"),
    TIME: (1145, "time_eq"),
    TIMESTAMP: (2052, "timestamp_eq"),
    TIMESTAMPTZ: (1152, "timestamp_eq"),
    INTERVAL: (1162, "interval_eq"),
    TIMETZ: (1352, "timetz_eq"),
    NUMERIC: (1718, "numeric_eq"),
    RECORD: (2981, "record_eq"),
    ANYARRAY: (744, "array_eq"),
    UUID: (2956, "uuid_eq"),
    ANYENUM: (3508, "enum_eq"),
    JSONB: (4043, "jsonb_eq"),
}
"""pg_proc OID and symbol of each type's = operator, by the operand's type."""

ROW_NUMBER = Function(
    3100, "row_number", "window_row_number", (), INT8, False, Volatility.IMMUTABLE, False
)
RANK = Function(3101, "rank", "window_rank", (), INT8, False, Volatility.IMMUTABLE, False)
INT8_LE = Function(
    471, "int8le", "int8le", (INT8, INT8), BOOL, True, Volatility.IMMUTABLE, False, "<="
)
INT8_GT = Function(
    470, "int8gt", "int8gt", (INT8, INT8), BOOL, True, Volatility.IMMUTABLE, False, ">"
)
INT8_PL = Function(
    463, "int8pl", "int8pl", (INT8, INT8), INT8, True, Volatility.IMMUTABLE, True, "+"
)


def equality_of(oid: int, *, is_array: bool = False) -> Function | None:
    """The = of two values of a type; None for a type without one (json, xml, point)."""
    operand = ANYARRAY if is_array else OID if oid in REG_TYPES else oid
    found = _EQUALITIES.get(operand)
    if found is None and oid >= FIRST_USER_OID:
        operand, found = ANYENUM, _EQUALITIES[ANYENUM]
    if found is None:
        return None
    return Function(
        found[0], found[1], found[1], (operand, operand), BOOL, True, Volatility.IMMUTABLE,
        False, "=",
    )


def array_agg(element_oid: int, array_oid: int) -> Function:
    """array_agg over elements, or over arrays where element and result type are the same."""
    if element_oid == array_oid:
        return Function(
            4053, "array_agg", "array_agg(anyarray)", (ANYARRAY,), array_oid, False,
            Volatility.IMMUTABLE, True,
        )
    return Function(
        2335, "array_agg", "array_agg(anynonarray)", (ANYNONARRAY,), array_oid, False,
        Volatility.IMMUTABLE, False,
    )
