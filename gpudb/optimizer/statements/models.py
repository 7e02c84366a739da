"""Rules for gpudb's own statements on models: TRAIN, EVALUATE, VERIFY, ALTER, COPY MODEL."""

from __future__ import annotations

from typing import Any

from gpudb.optimizer.lexer import Kind
from gpudb.optimizer.parser import ChangeReader
from gpudb.optimizer.statements import maintenance, pieces
from gpudb.optimizer.statements.nodes import (
    AlterModel,
    ControlTraining,
    CopyModel,
    EvaluateModel,
    ModelFeature,
    ModelOption,
    QueryStatement,
    Slice,
    Statement,
    TrainModel,
    TuneParameter,
    VerifyModel,
)


def train(r: ChangeReader) -> Statement:
    r.expect("train", "model")
    parts: dict[str, Any] = {}
    if pieces.if_not_exists(r):
        parts["if_not_exists"] = True
    elif r.accept("or", "new"):
        r.expect("version")
        parts["or_new_version"] = True
    parts["name"] = r.table_name()
    _train_source(r, parts)
    if r.accept("predict"):
        parts["predict"] = r.names()
    if r.accept("transform"):
        parts["transform"] = _transform(r)
    r.expect("on")
    parts["query"] = training_set(r)
    if r.accept("validate"):
        r.expect("on")
        parts["validate"] = training_set(r)
    elif r.accept("split"):
        parts["split"] = model_options(r)
    if r.accept("using"):
        parts["engine"] = r.name()
        parts["engine_options"] = model_options(r) if r.token.key == "(" else ()
    if r.accept("with"):
        parts["options"] = model_options(r)
    if r.accept("tune"):
        _tune(r, parts)
    mode = r.accept_any("wait", "async")
    return TrainModel(**parts, mode=mode or "wait")


def _train_source(r: ChangeReader, parts: dict[str, Any]) -> None:
    if r.accept("as"):
        parts["architecture"] = r.type_or_function_name()
        parts["architecture_options"] = model_options(r) if r.token.key == "(" else ()
    elif r.accept("from", "model"):
        parts["from_model"] = r.table_name()
        parts["from_version"] = _version(r)
    else:
        r.expect("from", "file")
        parts["from_file"] = r.string()


def training_set(r: ChangeReader) -> QueryStatement:
    """A table's name (as TABLE name) or a query in parentheses."""
    if r.token.key == "(":
        return pieces.parenthesized_query(r)
    start = r.token
    r.table_name()
    source = r.slice_from(start)
    return QueryStatement(Slice(f"TABLE {source.text}", source.offset), "table")


def _version(r: ChangeReader) -> int | None:
    return r.unsigned_integer() if r.accept("version") else None


def _transform(r: ChangeReader) -> tuple[ModelFeature, ...]:
    r.expect("(")
    found: list[ModelFeature] = []
    while True:
        expression = pieces.expression_slice(r)
        r.expect("as")
        found.append(ModelFeature(expression, r.label()))
        if not r.accept(","):
            break
    r.expect(")")
    return tuple(found)


def model_options(r: ChangeReader) -> tuple[ModelOption, ...]:
    """``(name [=] value, ...)``; a value is a constant, a word, ``$n`` or a list of those."""
    r.expect("(")
    found: list[ModelOption] = []
    while r.token.key != ")":
        start = r.token
        name = r.label()
        r.accept("=")
        value = None if r.token.key in (",", ")") else _model_value(r)
        found.append(ModelOption(name, value, r.position(start)))
        if not r.accept(","):
            break
        if r.token.key == ")":
            r.fail()
    r.expect(")")
    return tuple(found)


def _model_value(r: ChangeReader) -> str | tuple[str, ...]:
    if not r.accept("("):
        return _model_constant(r)
    items = [_model_constant(r)]
    while r.accept(","):
        items.append(_model_constant(r))
    r.expect(")")
    return tuple(items)


def _model_constant(r: ChangeReader) -> str:
    token = r.token
    if token.kind is Kind.PARAMETER:
        return "$" + r.advance().value
    if token.kind in (Kind.STRING, Kind.WORD, Kind.QUOTED):
        return r.advance().value
    return r.number_text()


def _tune(r: ChangeReader, parts: dict[str, Any]) -> None:
    r.expect("(")
    found: list[TuneParameter] = []
    while True:
        name = r.name()
        r.expect("=>")
        kind = r.choose("range", "choice")
        r.expect("(")
        values = [_model_constant(r)]
        while r.accept(","):
            values.append(_model_constant(r))
        r.expect(")")
        found.append(TuneParameter(name, kind, tuple(values)))
        if not r.accept(","):
            break
    r.expect(")", "trials")
    parts["tune"] = tuple(found)
    parts["trials"] = r.unsigned_integer()
    r.expect("optimize")
    parts["optimize"] = r.name()


def evaluate(r: ChangeReader) -> Statement:
    r.expect("evaluate", "model")
    name = r.table_name()
    version = _version(r)
    r.expect("on")
    query = training_set(r)
    options = model_options(r) if r.accept("with") else ()
    return EvaluateModel(name, query, version, options)


def verify(r: ChangeReader) -> Statement:
    r.expect("verify", "model")
    name = r.table_name()
    version = _version(r)
    steps = r.unsigned_integer() if r.accept("steps") else None
    return VerifyModel(name, version, steps)


def control(r: ChangeReader) -> Statement:
    action = r.choose("cancel", "pause", "resume")
    r.expect("training")
    token = r.token
    if token.kind in (Kind.STRING, Kind.INTEGER, Kind.QUOTED):
        return ControlTraining(action, r.advance().value)
    return ControlTraining(action, r.name())


def alter_model(r: ChangeReader) -> Statement | None:
    """The actions of ALTER MODEL after its name that no other object has."""
    start = r.index
    name = r.table_name()
    if r.accept("set", "default"):
        r.expect("version")
        return AlterModel(name, "default version", r.unsigned_integer())
    if r.accept("set", "alias"):
        alias = r.name()
        r.expect("for", "version")
        return AlterModel(name, "alias", r.unsigned_integer(), alias)
    if r.at("set", "("):
        r.advance()
        return AlterModel(name, "set options", options=model_options(r))
    r.seek(start)
    return None


def copy_model(r: ChangeReader) -> Statement:
    r.expect("copy", "model")
    name = r.table_name()
    version = _version(r)
    is_from = r.choose("to", "from") == "from"
    file, _ = maintenance.copy_file(r)
    options = pieces.generic_options(r) if r.token.key == "(" else ()
    return CopyModel(name, is_from, version, file, options)
