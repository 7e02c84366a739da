"""EXPLAIN: the plan of a statement, with what happened when it ran (ANALYZE)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpudb import errors, settings
from gpudb.commands import Result, describes, handles
from gpudb.commands.prepared import execute_arguments
from gpudb.commands.rows import rows_of
from gpudb.optimizer import explain
from gpudb.optimizer.statements import nodes
from gpudb.result import ResultField
from gpudb.sqltype import JSON, TEXT

if TYPE_CHECKING:
    from gpudb.planning import Planned
    from gpudb.session import Session

FORMATS = {"text": TEXT, "json": JSON}
_FLAGS = ("analyze", "verbose", "costs", "settings", "buffers", "wal", "timing", "summary", "rules")


@dataclass(slots=True)
class _Options:
    format: str
    flags: dict[str, bool]


def _options(statement: nodes.Explain) -> _Options:
    flags = {"costs": True}
    format = "text"
    for option in statement.options:
        name, value = option.name.lower(), option.value
        if name == "format":
            format = str(value).lower()
            if format not in ("text", "json", "xml", "yaml"):
                raise errors.InvalidParameterValue(
                    f'unrecognized value for EXPLAIN option "format": "{value}"',
                    position=option.position,
                )
            if format not in FORMATS:
                raise errors.FeatureNotSupported(f"EXPLAIN (FORMAT {format}) is not supported")
        elif name in _FLAGS:
            flag = True if value is None else settings.parse_bool(str(value))
            if flag is None:
                raise errors.SyntaxError(f"{name} requires a Boolean value")
            flags[name] = flag
        else:
            raise errors.SyntaxError(
                f'unrecognized EXPLAIN option "{option.name}"', position=option.position
            )
    return _Options(format, flags)


def _query_of(statement: Any) -> nodes.QueryStatement:
    match statement:
        case nodes.QueryStatement():
            return statement
        case nodes.DeclareCursor() | nodes.CreateTableAs() if isinstance(
            statement.query, nodes.QueryStatement
        ):
            return statement.query
    raise errors.FeatureNotSupported(f"EXPLAIN {statement.tag} is not supported")


@describes(nodes.Explain)
def explain_fields(_: Session, statement: nodes.Explain) -> tuple[ResultField, ...]:
    return (ResultField("QUERY PLAN", FORMATS[_options(statement).format]),)


@handles(nodes.Explain)
def explain_statement(session: Session, statement: nodes.Explain) -> Result:
    options = _options(statement)
    inner = statement.statement
    parameters, parameter_oids = session.bound_parameters
    if isinstance(inner, nodes.Execute):
        parameters = execute_arguments(session, inner)
        prepared = session.find_prepared(inner.name)
        parameter_oids = prepared.parameter_oids
        inner = prepared.statement
    started = time.perf_counter()
    planned = session.database.planner.plan(session, _query_of(inner), parameter_oids)
    planning_ms = (time.perf_counter() - started) * 1000
    metrics = None
    execution_ms = 0.0
    if options.flags.get("analyze"):
        metrics, execution_ms = _run(session, planned, parameters)
    shown = explain.Options(
        costs=options.flags["costs"], verbose=options.flags.get("verbose", False)
    )
    summary = options.flags.get("summary", metrics is not None)
    fields = explain_fields(session, statement)
    if options.format == "json":
        figures = {"Planning Time": round(planning_ms, 3)} if summary else {}
        if metrics is not None and summary:
            figures["Execution Time"] = round(execution_ms, 3)
        document = explain.as_json(planned.physical, metrics, options=shown, extra=figures)
        return rows_of(fields, [(document,)], tag="EXPLAIN")
    lines = explain.text(planned.physical, metrics, options=shown).splitlines()
    if summary:
        lines.append(f"Planning Time: {planning_ms:.3f} ms")
    if metrics is not None and summary:
        lines.append(f"Execution Time: {execution_ms:.3f} ms")
    return rows_of(fields, [(line,) for line in lines], tag="EXPLAIN")


def _run(session: Session, planned: Planned, parameters: tuple[Any, ...]) -> tuple[Any, float]:
    """Run the plan, drop its rows; the metrics and the milliseconds."""
    context = session.query_context(parameters)
    started = time.perf_counter()
    stream = session.database.executor.run(planned.physical, context, planned.bound.fields)
    for _ in stream:
        continue
    elapsed_ms = (time.perf_counter() - started) * 1000
    return session.database.executor.metrics(context), elapsed_ms
