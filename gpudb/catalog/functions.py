"""The registry of function implementations.

What a function is called, takes and returns stands in pg_proc (the built-in catalog data); what
computes it is registered here by gpudb/exec/functions under the function's *key*: PostgreSQL's C
symbol (pg_proc.prosrc; unlike the name it is unique), such as ``int4pl`` or ``text_substr``.
This module never imports the bodies. A function without an implementation is refused by the
binder with 0A000.

Scalar bodies take an EvaluationContext and argument Columns and return a Column (see
exec/evaluation.py). They are *strict* where pg_proc says so: the runner makes the result NULL
where an argument is NULL, and bodies may compute anything there. A body that may raise is
registered ``fallible``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Body = TypeVar("Body", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Example:
    """An SQL expression and PostgreSQL's text of its value (None = NULL); docs and tests use it."""

    expression: str
    expected: str | None


@dataclass(frozen=True, slots=True)
class Implementation:
    """What computes a function; ``body`` is a scalar or set body, an Aggregate or a window body."""

    key: str
    body: Any
    is_fallible: bool = False
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnFunction:
    """A function of gpudb itself, without a row in PostgreSQL's pg_proc."""

    name: str
    key: str
    argument_oids: tuple[int, ...]
    result_oid: int
    is_strict: bool = True
    volatility: str = "i"
    returns_set: bool = False
    schema: str = "gpudb"


SCALARS: dict[str, Implementation] = {}
SETS: dict[str, Implementation] = {}
AGGREGATES: dict[str, Implementation] = {}
WINDOWS: dict[str, Implementation] = {}
OWN: list[OwnFunction] = []


def _register(
    registry: dict[str, Implementation], keys: tuple[str, ...], fallible: bool,
    examples: tuple[tuple[str, str | None], ...],
) -> Callable[[Body], Body]:
    def add(body: Body) -> Body:
        for key in keys:
            assert key not in registry, f"{key} is registered twice"
            registry[key] = Implementation(
                key, body, fallible, tuple(Example(*example) for example in examples)
            )
        return body

    return add


def scalar(
    *keys: str, fallible: bool = False, examples: tuple[tuple[str, str | None], ...] = ()
) -> Callable[[Body], Body]:
    """Register ``body(context, *columns) -> Column`` under PostgreSQL's C symbols ``keys``."""
    return _register(SCALARS, keys, fallible, examples)


def set_returning(
    *keys: str, fallible: bool = False, examples: tuple[tuple[str, str | None], ...] = ()
) -> Callable[[Body], Body]:
    """Register ``body(context, *columns) -> (counts_R, columns)``: how many rows each input row
    makes (int64 R) and the output columns, row after row.
    """
    return _register(SETS, keys, fallible, examples)


def aggregate(
    *keys: str, fallible: bool = False, examples: tuple[tuple[str, str | None], ...] = ()
) -> Callable[[Body], Body]:
    """Register an exec.functions.aggregates.Aggregate class under keys.

    pg_proc.prosrc of every aggregate is ``aggregate_dummy``: the key of an aggregate is its name
    and argument types as pg_proc writes them, such as ``sum(int4)``, ``count()``, ``avg(numeric)``,
    ``count(any)``, ``string_agg(text,text)``.
    """
    return _register(AGGREGATES, keys, fallible, examples)


def window(
    *keys: str, fallible: bool = False, examples: tuple[tuple[str, str | None], ...] = ()
) -> Callable[[Body], Body]:
    """Register a window function's body (exec.operators.window says how it is called)."""
    return _register(WINDOWS, keys, fallible, examples)


def is_implemented(key: str) -> bool:
    """Whether a body is registered under the key, of any kind."""
    return key in SCALARS or key in SETS or key in AGGREGATES or key in WINDOWS


def is_fallible(key: str) -> bool:
    """Whether the function may raise; unknown keys may."""
    found = SCALARS.get(key) or SETS.get(key) or AGGREGATES.get(key) or WINDOWS.get(key)
    return True if found is None else found.is_fallible
