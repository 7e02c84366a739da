"""= <> < <= > >= and the btree comparisons of every type.

Keys are made from PostgreSQL's naming: a prefix per pair of types, a suffix per operator
(int4eq, text_lt, date_eq_timestamp). Narrow integers are compared as they are stored: a constant
is brought into the column's encoding instead.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gpudb import sqltype
from gpudb.catalog import types
from gpudb.catalog.functions import scalar
from gpudb.catalog.types import zones
from gpudb.catalog.types.calendar import DAY_MICROSECONDS
from gpudb.column import (
    Column,
    all_valid,
    boolean_column,
    byte_strings,
    expand,
    integer_column,
    integers,
    to_values,
    unscaled_integers,
)
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.rowwise import entrywise, evaluate
from gpudb.kernels import decimal as decimals
from gpudb.kernels import text as texts
from gpudb.layout import Kind
from gpudb.sqltype import BOOLEAN, SqlType

Sign = Callable[[Column, Column], Tensor]
"""int8 (R): -1, 0 or 1 as the left value is less, equal or greater."""

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}
_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _compare(name: str, left: Any, right: Any) -> Tensor:
    """A comparison of tensors (or a tensor and a number); numpy is faster on the CPU."""
    compare = _OPERATORS[name]
    device = left.device if isinstance(left, Tensor) else right.device
    if device.type != "cpu":
        return compare(left, right)  # type: ignore[no-any-return]
    one = left.numpy() if isinstance(left, Tensor) else left
    two = right.numpy() if isinstance(right, Tensor) else right
    return torch.from_numpy(np.asarray(compare(one, two)))


# --- integers, dates, times ---


def compare_integers(name: str, left: Column, right: Column) -> Tensor:
    """bool (R) of a comparison of INT columns."""
    if right.rows == 1 and left.rows != 1:
        return _compare_with_constant(name, left, int(integers(right)[0]))
    if left.rows == 1 and right.rows != 1:
        return _compare_with_constant(_MIRRORED[name], right, int(integers(left)[0]))
    if left.base == right.base and left.step == right.step > 0:
        return _compare(name, left.data[0], right.data[0])
    return _compare(name, integers(left), integers(right))


def _compare_with_constant(name: str, column: Column, constant: int) -> Tensor:
    """Stored elements against the constant in their encoding: x = base + step * element."""
    values = column.data[0]
    info = torch.iinfo(values.dtype)
    quotient, rest = divmod(constant - column.base, column.step)
    if rest:
        if name in ("eq", "ne"):
            return torch.full_like(values, name == "ne", dtype=torch.bool)
        name = "le" if name in ("le", "lt") else "gt"
    if column.step < 0:
        return _compare(name, integers(column), constant)
    if not info.min <= quotient <= info.max:
        is_below = quotient < info.min
        verdict = name in (("ne", "gt", "ge") if is_below else ("ne", "lt", "le"))
        return torch.full_like(values, verdict, dtype=torch.bool)
    if values.device.type != "cpu":
        return _compare(name, values, quotient)
    numbers = values.numpy()
    return torch.from_numpy(_OPERATORS[name](numbers, numbers.dtype.type(quotient)))


def compare_booleans(name: str, left: Column, right: Column) -> Tensor:
    return _compare(name, left.data[0].to(torch.uint8), right.data[0].to(torch.uint8))


# --- floats: NaN equals itself and is the greatest ---


def compare_floats(name: str, left: Column, right: Column) -> Tensor:
    one, two = left.data[0], right.data[0]
    if one.dtype != two.dtype:
        one, two = one.to(torch.float64), two.to(torch.float64)
    first, second = one.isnan(), two.isnan()
    if not bool(first.any()) and not bool(second.any()):
        return _compare(name, one, two)
    match name:
        case "eq":
            return (one == two) | (first & second)
        case "ne":
            return ~((one == two) | (first & second))
        case "lt":
            return (one < two) | (second & ~first)
        case "ge":
            return ~((one < two) | (second & ~first))
        case "gt":
            return (one > two) | (first & ~second)
        case _:
            return ~((one > two) | (first & ~second))


# --- everything else goes by a sign ---


def _by_sign(sign: Sign) -> Callable[[str, Column, Column], Tensor]:
    def compare(name: str, left: Column, right: Column) -> Tensor:
        return _compare(name, sign(left, right), 0)

    return compare


def text_sign(left: Column, right: Column) -> Tensor:
    """Byte order (collation C)."""
    return texts.compare(left, right)


def compare_texts(name: str, left: Column, right: Column) -> Tensor:
    """Text by bytes; once per entry where a dictionary meets a constant."""
    if right.rows == 1 and left.layout.kind is Kind.DICTIONARY and left.rows != 1:
        return _compare_entries(name, left, right)
    if left.rows == 1 and right.layout.kind is Kind.DICTIONARY and right.rows != 1:
        return _compare_entries(_MIRRORED[name], right, left)
    same = left.dictionary is not None and left.dictionary is right.dictionary
    if same and left.dictionary is not None and (
        left.dictionary.is_sorted or name in ("eq", "ne")
    ):
        return _compare(name, left.data[0], right.data[0])
    if name in ("eq", "ne"):
        equal = texts.equal(left, right)
        return equal if name == "eq" else ~equal
    return _compare(name, texts.compare(left, right), 0)


def _compare_entries(name: str, column: Column, constant: Column) -> Tensor:
    wanted = byte_strings(constant)[0]
    compare = _OPERATORS[name]
    return entrywise(
        column, lambda entries: np.fromiter((compare(e, wanted) for e in entries), bool)
    )


def numeric_sign(left: Column, right: Column) -> Tensor:
    return decimals.compare(left, right)


def compare_numerics(name: str, left: Column, right: Column) -> Tensor:
    plain = left.layout.kind is Kind.DECIMAL and right.layout.kind is Kind.DECIMAL
    if plain and right.rows == 1 and left.rows != 1:
        return _compare_decimal(name, left, right)
    if plain and left.rows == 1 and right.rows != 1:
        return _compare_decimal(_MIRRORED[name], right, left)
    if plain and left.scale == right.scale:
        return compare_integers(name, left, right)
    return _compare(name, decimals.compare(left, right), 0)


def _compare_decimal(name: str, column: Column, constant: Column) -> Tensor:
    """A decimal column against a constant brought to its scale."""
    value = unscaled_integers(constant)[0]
    shift = column.scale - constant.scale
    if shift >= 0:
        return _compare_with_constant(name, column, value * 10**shift)
    quotient, rest = divmod(value, 10**-shift)
    if rest:
        if name in ("eq", "ne"):
            return torch.full((column.rows,), name == "ne", device=column.device)
        name = "le" if name in ("le", "lt") else "gt"
    return _compare_with_constant(name, column, quotient)


def interval_sign(left: Column, right: Column) -> Tensor:
    """By the span with 30-day months; 128-bit where it leaves int64."""
    one, two = _days_and_rest(left), _days_and_rest(right)
    days = torch.sign(one[0] - two[0])
    rest = torch.sign(one[1] - two[1])
    return torch.where(days != 0, days, rest).to(torch.int8)


def _days_and_rest(column: Column) -> tuple[Tensor, Tensor]:
    months, days, micros = column.data
    whole = torch.div(micros, DAY_MICROSECONDS, rounding_mode="floor")
    total = months.to(torch.int64) * 30 + days + whole
    return total, micros - whole * DAY_MICROSECONDS


def uuid_sign(left: Column, right: Column) -> Tensor:
    """Unsigned, big-endian."""
    flip = -(2**63)
    high = _sign_of(left.data[0] ^ flip, right.data[0] ^ flip)
    low = _sign_of(left.data[1] ^ flip, right.data[1] ^ flip)
    return torch.where(high != 0, high, low)


def _sign_of(left: Tensor, right: Tensor) -> Tensor:
    return (left > right).to(torch.int8) - (left < right).to(torch.int8)


def object_sign(left: Column, right: Column, snapshot: Any = None) -> Tensor:
    """By the types' sort keys; 0 where a value is NULL. Enums and composites need the snapshot."""
    rows = max(left.rows, right.rows)
    one, two = types.get(left.type.oid, snapshot), types.get(right.type.oid, snapshot)
    signs = np.zeros(rows, np.int8)
    pairs = zip(to_values(expand(left, rows)), to_values(expand(right, rows)), strict=True)
    for row, (a, b) in enumerate(pairs):
        if a is not None and b is not None:
            first, second = one.sort_key(a), two.sort_key(b)
            signs[row] = (first > second) - (first < second)
    return torch.from_numpy(signs)


def compare_objects(name: str, left: Column, right: Column, snapshot: Any = None) -> Tensor:
    return _compare(name, object_sign(left, right, snapshot), 0)


# --- dates and timestamps among each other ---


def _compare_dates(name: str, left: Column, right: Column) -> Tensor | None:
    """A comparison of a date column with a constant timestamp as one of days; None if not so."""
    if left.type.oid == sqltype.TIMESTAMP and left.rows == 1:
        return _compare_dates(_MIRRORED[name], right, left)
    if left.type.oid != sqltype.DATE or left.rows == 1 or right.rows != 1:
        return None
    if right.type.oid != sqltype.TIMESTAMP or left.lo is None or left.hi is None:
        return None
    moment = int(integers(right)[0])
    if max(abs(left.lo), abs(left.hi)) >= 10**8 or abs(moment) >= 10**8 * DAY_MICROSECONDS:
        return None
    day, rest = divmod(moment, DAY_MICROSECONDS)
    if rest:
        if name in ("eq", "ne"):
            return torch.full((left.rows,), name == "ne", device=left.device)
        name = "le" if name in ("le", "lt") else "gt"
    return _compare_with_constant(name, left, day)


def _microseconds(context: EvaluationContext, column: Column, *, to_utc: bool) -> Tensor:
    """A date or timestamp in microseconds; ``to_utc``: seen from the session's zone."""
    values = integers(column)
    low, high = -(2**63), 2**63 - 1
    if column.type.oid == sqltype.DATE:
        infinite_low, infinite_high = values == -(2**31), values == 2**31 - 1
        safe = values.clamp(-(10**8) - 6 * 10**6, 10**8 + 6 * 10**6)
        values = safe * DAY_MICROSECONDS
        values = torch.where(infinite_low, low, torch.where(infinite_high, high, values))
    if not to_utc or column.type.oid == sqltype.TIMESTAMPTZ:
        return values
    seconds = torch.div(values, 1_000_000, rounding_mode="floor").cpu().numpy()
    offsets = torch.from_numpy(zones.offsets_of_local(context.query.types.time_zone, seconds))
    is_infinite = (values == low) | (values == high)
    return torch.where(is_infinite, values, values - offsets.to(values.device) * 1_000_000)


def _register_mixed_dates() -> None:
    names = {"date": sqltype.DATE, "timestamp": sqltype.TIMESTAMP,
             "timestamptz": sqltype.TIMESTAMPTZ}
    for left in names:
        for right in names:
            if left != right:
                _register_mixed(left, right)


def _register_mixed(left: str, right: str) -> None:
    to_utc = "timestamptz" in (left, right)

    def moments(context: EvaluationContext, one: Column, two: Column) -> tuple[Tensor, Tensor]:
        return (
            _microseconds(context, one, to_utc=to_utc),
            _microseconds(context, two, to_utc=to_utc),
        )

    for name in _OPERATORS:

        def body(
            context: EvaluationContext, one: Column, two: Column, *, name: str = name
        ) -> Column:
            verdicts = None if to_utc else _compare_dates(name, one, two)
            if verdicts is None:
                verdicts = _compare(name, *moments(context, one, two))
            return boolean_column(BOOLEAN, verdicts, all_valid(one, two))

        scalar(f"{left}_{name}_{right}")(body)

    def compare(context: EvaluationContext, one: Column, two: Column) -> Column:
        signs = _sign_of(*moments(context, one, two)).to(torch.int16)
        return integer_column(SqlType(sqltype.INT4), signs, all_valid(one, two), lo=-1, hi=1)

    scalar(f"{left}_cmp_{right}")(compare)


# --- registration ---

Comparer = Callable[[str, Column, Column], Tensor]


def _bound(compare: Comparer, context: EvaluationContext) -> Comparer:
    """The comparison, of objects with the snapshot of the query."""
    if compare is not compare_objects:
        return compare
    return functools.partial(compare_objects, snapshot=context.query.snapshot)


def _register(keys: dict[str, str], compare: Comparer) -> None:
    """Register a body under each operator's key."""
    for name, key in keys.items():

        def body(
            context: EvaluationContext, left: Column, right: Column, *, name: str = name
        ) -> Column:
            verdicts = _bound(compare, context)(name, left, right)
            return boolean_column(BOOLEAN, verdicts, all_valid(left, right))

        scalar(key)(body)


def _register_order(keys: tuple[str, ...], compare: Comparer) -> None:
    """Register a btree support function: -1, 0, 1."""

    def body(context: EvaluationContext, left: Column, right: Column) -> Column:
        bound = _bound(compare, context)
        signs = bound("gt", left, right).to(torch.int8) - bound("lt", left, right).to(torch.int8)
        return integer_column(
            SqlType(sqltype.INT4), signs.to(torch.int16), all_valid(left, right), lo=-1, hi=1
        )

    for key in keys:
        scalar(key)(body)


def _register_extremes(larger: str, smaller: str, compare: Comparer) -> None:
    for key, name in ((larger, "gt"), (smaller, "lt")):

        def body(
            context: EvaluationContext, left: Column, right: Column, *, name: str = name
        ) -> Column:
            return choose(context, _bound(compare, context)(name, left, right), left, right)

        scalar(key)(body)


def choose(
    context: EvaluationContext, condition: Tensor, left: Column, right: Column
) -> Column:
    """Rows of ``left`` where the condition holds, of ``right`` elsewhere (same type)."""
    if left.layout.kind is Kind.INT and right.layout.kind is Kind.INT:
        values = torch.where(condition, integers(left), integers(right))
        return integer_column(left.type, values, all_valid(left, right))
    if left.layout == right.layout and left.layout.kind is Kind.FLOAT:
        data = torch.where(condition, left.data[0], right.data[0])
        return Column(left.type, left.layout, (data,), all_valid(left, right))
    rows = max(left.rows, right.rows)
    picks = expand(boolean_column(BOOLEAN, condition), rows)
    plain = EvaluationContext(context.query, rows)
    return evaluate(
        plain, lambda pick, a, b: a if pick else b, (picks, left, right), left.type
    )


def _plain(prefix: str) -> dict[str, str]:
    return {name: f"{prefix}{name}" for name in _OPERATORS}


def _lined(prefix: str) -> dict[str, str]:
    return {name: f"{prefix}_{name}" for name in _OPERATORS}


def _register_numbers() -> None:
    for pair in ("2", "4", "8", "24", "42", "28", "82", "48", "84"):
        _register(_plain(f"int{pair}"), compare_integers)
        _register_order((f"btint{pair}cmp",), compare_integers)
    for pair in ("4", "8", "48", "84"):
        _register(_plain(f"float{pair}"), compare_floats)
        _register_order((f"btfloat{pair}cmp",), compare_floats)
    _register(_lined("numeric"), compare_numerics)
    _register_order(("numeric_cmp",), compare_numerics)
    _register(_plain("oid"), compare_integers)
    _register_order(("btoidcmp",), compare_integers)
    _register(_lined("cash"), compare_integers)
    _register_order(("cash_cmp",), compare_integers)
    _register(_plain("xid8"), compare_integers)
    _register_order(("xid8cmp",), compare_integers)
    _register({"eq": "xideq", "ne": "xidneq"}, compare_integers)
    _register({"eq": "cideq"}, compare_integers)
    for prefix in ("int2", "int4", "int8", "oid"):
        _register_extremes(f"{prefix}larger", f"{prefix}smaller", compare_integers)
    for prefix in ("float4", "float8"):
        _register_extremes(f"{prefix}larger", f"{prefix}smaller", compare_floats)
    _register_extremes("numeric_larger", "numeric_smaller", compare_numerics)
    _register_extremes("cashlarger", "cashsmaller", compare_integers)
    _register_extremes("xid8_larger", "xid8_smaller", compare_integers)


def _register_texts() -> None:
    _register(
        {"eq": "texteq", "ne": "textne", "lt": "text_lt", "le": "text_le", "gt": "text_gt",
         "ge": "text_ge"},
        compare_texts,
    )
    _register_order(("bttextcmp", "bttext_pattern_cmp", "btnamecmp", "btnametextcmp",
                     "bttextnamecmp", "btcharcmp", "byteacmp", "bitcmp", "bpcharcmp",
                     "btbpchar_pattern_cmp"), compare_texts)
    for prefix in ("text_pattern", "bpchar_pattern"):
        _register({n: f"{prefix}_{n}" for n in ("lt", "le", "gt", "ge")}, compare_texts)
    for prefix in ("name", "char", "bytea", "bit", "bpchar"):
        _register(_plain(prefix), compare_texts)
    _register({n: f"name{n}text" for n in _OPERATORS}, compare_texts)
    _register({n: f"text{n}name" for n in _OPERATORS}, compare_texts)
    _register_extremes("text_larger", "text_smaller", compare_texts)
    _register_extremes("bpchar_larger", "bpchar_smaller", compare_texts)


def _register_times() -> None:
    for prefix in ("date", "time", "timestamp"):
        _register(_lined(prefix), compare_integers)
        _register_order((f"{prefix}_cmp",), compare_integers)
        _register_extremes(f"{prefix}_larger", f"{prefix}_smaller", compare_integers)
    for prefix, sign in (("interval", interval_sign), ("timetz", object_sign)):
        compare = _by_sign(sign)
        _register(_lined(prefix), compare)
        _register_order((f"{prefix}_cmp",), compare)
        _register_extremes(f"{prefix}_larger", f"{prefix}_smaller", compare)
    _register_mixed_dates()


def _register_others() -> None:
    _register(_plain("bool"), compare_booleans)
    _register_order(("btboolcmp",), compare_booleans)
    _register(_lined("uuid"), _by_sign(uuid_sign))
    _register_order(("uuid_cmp",), _by_sign(uuid_sign))
    for prefix in ("array", "record", "jsonb", "enum", "network", "macaddr", "macaddr8", "pg_lsn",
                   "record_image"):
        _register(_lined(prefix), compare_objects)
    _register(_plain("oidvector"), compare_objects)
    _register(_plain("tid"), compare_integers)
    _register_order(("bttidcmp",), compare_integers)
    _register({"eq": "aclitem_eq"}, compare_objects)
    _register_order(
        ("btarraycmp", "btrecordcmp", "btrecordimagecmp", "jsonb_cmp", "enum_cmp",
         "network_cmp", "macaddr_cmp", "macaddr8_cmp", "pg_lsn_cmp", "btoidvectorcmp"),
        compare_objects,
    )
    for prefix in ("array", "enum", "network", "pg_lsn"):
        _register_extremes(f"{prefix}_larger", f"{prefix}_smaller", compare_objects)
    _register_extremes("tidlarger", "tidsmaller", compare_integers)


def register() -> None:
    """Register every comparison."""
    _register_numbers()
    _register_texts()
    _register_times()
    _register_others()


register()
