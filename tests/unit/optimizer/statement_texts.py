"""Texts parsed into statements: what the statement tests share."""

from __future__ import annotations

from gpudb.optimizer import statements
from gpudb.optimizer.statements.nodes import (
    QualifiedName,
    QueryStatement,
    Slice,
    Statement,
)


def parse(text: str) -> Statement:
    (statement,) = statements.parse(text)
    return statement


def name(*parts: str) -> QualifiedName:
    return QualifiedName(parts)


def query(text: str, kind: str = "select") -> QueryStatement:
    return QueryStatement(Slice(text), kind)
