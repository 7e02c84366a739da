"""Input and output of every type, as PostgreSQL 15 answered (text_forms.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gpudb import errors
from gpudb.catalog import types
from gpudb.catalog.types import TypeContext
from gpudb.catalog.types.strings import padded

CASES = json.loads(Path(__file__).with_name("text_forms.json").read_text())
NAMES = {
    "char": ("bpchar", ()),
    "bit varying": ("varbit", ()),
    "time": ("time", ()),
    '"char"': ("char", ()),
}
INTERVALS = {
    "interval year to month": (6,),
    "interval day to second(2)": (0x1C08, 2),
    "interval minute to second": (0x1800,),
    "interval hour": (1 << 10,),
    "interval(1)": (0x7FFF, 1),
}


def resolve(sql_name: str) -> tuple[types.DataType, int]:
    """The type and the modifier of an SQL type name of the cases."""
    if sql_name in INTERVALS:
        found = types.by_name("interval")
        assert found is not None
        return found, found.typmod_in(INTERVALS[sql_name])
    base, _, rest = sql_name.partition("(")
    base = NAMES.get(base, (base, ()))[0]
    base = "_" + base[:-2] if base.endswith("[]") else base
    found = types.by_name(base)
    assert found is not None, sql_name
    modifiers = tuple(int(m) for m in rest.rstrip(")").split(",")) if rest else ()
    return found, found.typmod_in(modifiers) if modifiers else -1


def context(settings: dict[str, str]) -> TypeContext:
    style, _, order = settings.get("datestyle", "ISO, MDY").partition(", ")
    return TypeContext(
        ZoneInfo("America/Los_Angeles"),
        style,
        order,
        interval_style=settings.get("intervalstyle", "postgres"),
        extra_float_digits=int(settings.get("extra_float_digits", "1")),
        bytea_output=settings.get("bytea_output", "hex"),
        now_microseconds=820_000_000_000_000,
    )


def literal(data_type: types.DataType, typmod: int, text: str, settings: TypeContext) -> Any:
    """The value of ``'text'::type(n)``: only interval's input sees the modifier."""
    if data_type.name == "interval":
        return data_type.parse(text, typmod, settings)
    value = data_type.parse(text, -1, settings)
    return data_type.apply_typmod(value, typmod, is_explicit=True)


def answer(sql_name: str, settings: dict[str, str], text: str) -> list[str]:
    """What the type says, in the form of the cases."""
    data_type, typmod = resolve(sql_name)
    try:
        value = literal(data_type, typmod, text, context(settings))
    except errors.SqlError as problem:
        return [problem.sqlstate, problem.message, problem.detail, problem.context, problem.hint]
    shown = data_type.format(value, context(settings))
    return ["ok", padded(shown, typmod) if data_type.name == "bpchar" else shown]


@pytest.mark.parametrize(
    ("sql_name", "settings", "text", "expected"),
    CASES,
    ids=[f"{i}-{case[0]}-{case[2][:20]}" for i, case in enumerate(CASES)],
)
def test_text_form(sql_name: str, settings: dict[str, str], text: str, expected: list[str]) -> None:
    assert answer(sql_name, settings, text) == expected


@pytest.mark.parametrize(
    "case", [c for c in CASES if c[3][0] == "ok" and not c[1]], ids=lambda c: f"{c[0]}-{c[2][:20]}"
)
def test_binary_form_round_trips(case: Any) -> None:
    data_type, typmod = resolve(case[0])
    plain = context({})
    value = literal(data_type, typmod, case[2], plain)
    raw = data_type.send(value, plain)
    again = data_type.receive(raw, typmod, plain)
    assert data_type.format(again, plain) == data_type.format(value, plain)
