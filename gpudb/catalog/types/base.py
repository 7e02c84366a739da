"""What a data type is: its pg_type row, its host values, its text and binary forms, its layout.

A *host value* is the Python value of one SQL value, the same everywhere (literals, parameters,
catalog rows, object columns):

=========================================  ====================================================
type                                       host value (NULL is None)
=========================================  ====================================================
boolean                                    bool
int2/4/8, oid, xid, reg*                   int
float4/8                                   float (float4 already rounded to single precision)
numeric                                    decimal.Decimal (exponent = -display scale; NaN, +-Inf)
text, varchar, bpchar, name, "char", json  str (bpchar without its trailing padding)
jsonb                                      str in PostgreSQL's canonical form
bytea                                      bytes
date                                       int, days since 2000-01-01 (+-infinity: int32 limits)
time                                       int, microseconds since midnight
timetz                                     (microseconds, zone seconds west of Greenwich)
timestamp, timestamptz                     int, microseconds since 2000-01-01 (UTC);
                                           +-infinity: int64 limits
interval                                   (months, days, microseconds)
uuid                                       bytes (16)
bit, varbit                                str of 0 and 1
arrays                                     ArrayValue
composite, record                          RecordValue
enum                                       str (the label)
void                                       None
=========================================  ====================================================

Text forms depend on settings (time zone, DateStyle ...): they take a TypeContext.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

from gpudb import errors, layout
from gpudb.layout import Layout

HostValue = Any
"""See the table above; None is NULL."""


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """An array: ``items`` flat in row-major order; no dimensions for the empty array."""

    element_oid: int
    items: tuple[HostValue, ...]
    lengths: tuple[int, ...] = ()
    lower_bounds: tuple[int, ...] = ()

    @classmethod
    def of(cls, element_oid: int, items: tuple[HostValue, ...]) -> ArrayValue:
        """A one-dimensional array from 1; empty without dimensions."""
        return cls(element_oid, items, (len(items),), (1,)) if items else cls(element_oid, ())


@dataclass(frozen=True, slots=True)
class RecordValue:
    """A row value: type OIDs and host values of its fields."""

    type_oids: tuple[int, ...]
    values: tuple[HostValue, ...]


@dataclass(frozen=True, slots=True)
class TypeContext:
    """The settings and look-ups that text input and output depend on.

    ``lookup`` gives the catalog's part: ``lookup(kind, key)`` with kind among regclass, regproc,
    regprocedure, regoper, regoperator, regtype, regnamespace, regrole, enum; a str key asks for
    the OID (or raises the SqlError PostgreSQL would), an int key for the text (None = unknown).
    """

    time_zone: datetime.tzinfo = field(default_factory=lambda: ZoneInfo("UTC"))
    date_style: str = "ISO"
    date_order: str = "MDY"
    interval_style: str = "postgres"
    extra_float_digits: int = 1
    bytea_output: str = "hex"
    now_microseconds: int = 0
    lookup: Callable[[str, str | int], Any] | None = None


class DataType:
    """One type; subclasses in the family files give the codecs.

    ``layout`` is the widest physical layout a column of this type takes; scans may deliver
    narrower ones of the same kind, DICTIONARY for TEXT, and DECIMAL/DECIMAL128/HOST for numeric.
    """

    def __init__(
        self,
        oid: int,
        name: str,
        sql_name: str,
        *,
        array_oid: int = 0,
        length: int = -1,
        category: str = "U",
        is_preferred: bool = False,
        layout: Layout = layout.HOST,
        element_oid: int = 0,
    ) -> None:
        self.oid = oid
        self.name = name
        self.sql_name = sql_name
        self.array_oid = array_oid
        self.length = length
        self.category = category
        self.is_preferred = is_preferred
        self.layout = layout
        self.element_oid = element_oid

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        """The value that ``text`` denotes, coerced to ``typmod``; 22P02, 22003, 22007, 22008."""
        raise errors.FeatureNotSupported(f"cannot accept a value of type {self.sql_name}")

    def format(self, value: HostValue, context: TypeContext) -> str:
        """PostgreSQL's output text of a value."""
        raise errors.FeatureNotSupported(f"cannot display a value of type {self.sql_name}")

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        """The value of PostgreSQL's binary form; 22P03 for a wrong one."""
        raise errors.UndefinedFunction(
            f"no binary input function available for type {self.sql_name}"
        )

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        """PostgreSQL's binary form of a value."""
        raise errors.UndefinedFunction(
            f"no binary output function available for type {self.sql_name}"
        )

    def typmod_in(self, modifiers: tuple[int | str, ...]) -> int:
        """The type modifier for ``name(modifiers)``."""
        raise errors.SyntaxError(f'type modifier is not allowed for type "{self.sql_name}"')

    def typmod_out(self, typmod: int) -> str:
        """The text after the type name, such as ``(10,2)``; empty for -1."""
        return ""

    def apply_typmod(self, value: HostValue, typmod: int, *, is_explicit: bool) -> HostValue:
        """The value coerced to a length, precision or scale; 22001, 22003 when it can't be."""
        return value

    def sort_key(self, value: HostValue) -> Any:
        """A Python key that orders and equates host values as PostgreSQL's default btree does."""
        return value
