"""The implementations of PostgreSQL's functions, one module an area; ``load`` registers them."""

from __future__ import annotations

import importlib

MODULES = (
    "access",
    "addresses",
    "aggregates",
    "aggregates_ordered",
    "aggregates_statistics",
    "arithmetic",
    "array",
    "catalog_info",
    "catalog_objects",
    "comparison",
    "concat",
    "conversion",
    "document",
    "document_build",
    "encoding",
    "formatting",
    "math",
    "number_format",
    "numeric",
    "pattern",
    "regexps",
    "sequence",
    "sets",
    "system",
    "text",
    "timefields",
    "timestamps",
    "windows",
    "wire_forms",
)
"""Every module of the package that registers functions."""


def load() -> None:
    """Import every module, so that its functions stand in catalog.functions."""
    for name in MODULES:
        importlib.import_module(f"gpudb.exec.functions.{name}")
