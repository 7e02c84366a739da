"""Rules for the parameters of functions, in their definition and where others name them."""

from __future__ import annotations

from gpudb.optimizer.lexer import Kind
from gpudb.optimizer.parser import ChangeReader
from gpudb.optimizer.statements.nodes import Parameter, Slice, TypeName

_MODES = ("in", "out", "inout", "variadic")


def parameters(r: ChangeReader) -> tuple[Parameter, ...]:
    """``([mode] [name] type [DEFAULT value], ...)``"""
    r.expect("(")
    found: list[Parameter] = []
    if r.token.key != ")":
        found.append(_parameter(r))
        while r.accept(","):
            found.append(_parameter(r))
    r.expect(")")
    return tuple(found)


def argument_types(r: ChangeReader, *, is_aggregate: bool = False) -> tuple[TypeName, ...]:
    """The input types of a parameter list; an aggregate's may be ``*`` and have ORDER BY."""
    if not is_aggregate:
        return _inputs(parameters(r))
    r.expect("(")
    if r.accept("*"):
        r.expect(")")
        return ()
    found: list[Parameter] = []
    if not r.at("order", "by"):
        found.append(_parameter(r))
        while r.accept(","):
            found.append(_parameter(r))
    if r.accept("order", "by"):
        found.append(_parameter(r))
        while r.accept(","):
            found.append(_parameter(r))
    r.expect(")")
    return _inputs(tuple(found))


def _inputs(found: tuple[Parameter, ...]) -> tuple[TypeName, ...]:
    return tuple(parameter.type for parameter in found if parameter.mode != "out")


def table_columns(r: ChangeReader) -> tuple[Parameter, ...]:
    """The columns of RETURNS TABLE (...)."""
    r.expect("(")
    found: list[Parameter] = []
    while True:
        name = r.type_or_function_name()
        found.append(Parameter(name, r.type_name(), "table"))
        if not r.accept(","):
            break
    r.expect(")")
    return tuple(found)


def _parameter(r: ChangeReader) -> Parameter:
    mode = r.accept_any(*_MODES)
    name = ""
    if _at_name_and_type(r):
        name = r.type_or_function_name()
        mode = mode or r.accept_any(*_MODES)
    if mode == "in" and r.accept("out"):
        mode = "inout"
    kind = r.type_name()
    default = None
    if r.accept("default") or r.accept("="):
        default = _default(r)
    return Parameter(name, kind, mode or "in", default)


def _at_name_and_type(r: ChangeReader) -> bool:
    """Whether a name stands before the type: two words in a row that are no type together."""
    following = r.peek()
    if following.kind not in (Kind.WORD, Kind.QUOTED):
        return False
    if r.token.key in ("double", "setof") or following.key in ("default", "array"):
        return False
    if r.token.key in ("character", "char", "bit", "national") and following.key in (
        "varying",
        "character",
        "char",
    ):
        return False
    if r.token.key in ("time", "timestamp") and following.key in ("with", "without"):
        return False
    return r.token.key != "interval" or following.key not in (
        "year",
        "month",
        "day",
        "hour",
        "minute",
        "second",
    )


def _default(r: ChangeReader) -> Slice:
    start = r.token
    r.expression()
    return r.slice_from(start)
