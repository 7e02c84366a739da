"""Statements on models: gpudb's own grammar."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gpudb.optimizer.statements.nodes.base import (
    Option,
    QualifiedName,
    QueryStatement,
    Slice,
)


@dataclass(frozen=True, slots=True)
class ModelOption:
    """``name value``; values are constants' texts, ``$n``, or a tuple for a list in parentheses."""

    name: str
    value: str | tuple[str, ...] | None
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ModelFeature:
    """One entry of TRANSFORM: an expression and the column it becomes."""

    expression: Slice
    name: str


@dataclass(frozen=True, slots=True)
class TuneParameter:
    """``kind`` is range or choice; ``values`` the texts between the parentheses."""

    name: str
    kind: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrainModel:
    """TRAIN MODEL. Source: ``architecture`` (AS), or ``from_model`` (+ version), or ``from_file``.

    ``query`` is the training set; a bare table becomes TABLE name. ``engine`` is tiles or torch.
    ``split`` are the options of SPLIT (...). ``mode`` is wait or async.
    """

    name: QualifiedName
    query: QueryStatement
    architecture: str = ""
    architecture_options: tuple[ModelOption, ...] = ()
    from_model: QualifiedName | None = None
    from_version: int | None = None
    from_file: str = ""
    predict: tuple[str, ...] = ()
    transform: tuple[ModelFeature, ...] = ()
    validate: QueryStatement | None = None
    split: tuple[ModelOption, ...] = ()
    engine: str = "tiles"
    engine_options: tuple[ModelOption, ...] = ()
    options: tuple[ModelOption, ...] = ()
    tune: tuple[TuneParameter, ...] = ()
    trials: int | None = None
    optimize: str = ""
    mode: str = "wait"
    if_not_exists: bool = False
    or_new_version: bool = False
    tag: ClassVar[str] = "TRAIN MODEL"


@dataclass(frozen=True, slots=True)
class EvaluateModel:
    name: QualifiedName
    query: QueryStatement
    version: int | None = None
    options: tuple[ModelOption, ...] = ()
    tag: ClassVar[str] = "EVALUATE MODEL"


@dataclass(frozen=True, slots=True)
class VerifyModel:
    name: QualifiedName
    version: int | None = None
    steps: int | None = None
    tag: ClassVar[str] = "VERIFY MODEL"


@dataclass(frozen=True, slots=True)
class ControlTraining:
    """``action`` is cancel, pause or resume."""

    action: str
    run_id: str

    @property
    def tag(self) -> str:
        return f"{self.action.upper()} TRAINING"


@dataclass(frozen=True, slots=True)
class AlterModel:
    """``action`` is default version, alias or set options. RENAME, OWNER, SET SCHEMA are the
    general statements with kind model."""

    name: QualifiedName
    action: str
    version: int | None = None
    alias: str = ""
    options: tuple[ModelOption, ...] = ()
    tag: ClassVar[str] = "ALTER MODEL"


@dataclass(frozen=True, slots=True)
class CopyModel:
    name: QualifiedName
    is_from: bool
    version: int | None = None
    file: str | None = None
    options: tuple[Option, ...] = ()
    tag: ClassVar[str] = "COPY MODEL"
