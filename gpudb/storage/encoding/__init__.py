"""Encodings: a column of one segment as narrow plain buffers that torch computes on directly.

An encoding is chosen by the data (``encode``) and recorded by name with its parameters, so that
``decode`` needs nothing else. To add one: a module with ``NAME``, ``encode`` (None when the column
is not its kind) and ``decode``, listed in MODULES in the order of preference.
"""

from __future__ import annotations

from collections.abc import Callable

from gpudb.column import Column
from gpudb.result import HostColumn
from gpudb.storage.encoding import constant, fixed, host, integer, text
from gpudb.storage.encoding.base import Encoded, Parameters, Stored, encode_validity

MODULES = (constant, integer, fixed, text, host)
_ENCODERS: tuple[Callable[[HostColumn], Encoded | None], ...] = tuple(
    module.encode for module in MODULES
)
_DECODERS: dict[str, Callable[[Stored], Column]] = {
    module.NAME: module.decode for module in MODULES
}

__all__ = ["MODULES", "Encoded", "Parameters", "Stored", "decode", "encode"]


def encode(column: HostColumn) -> Encoded:
    """The column (at least one row) in the first encoding that takes its layout."""
    found = (encoder(column) for encoder in _ENCODERS)
    encoded = next(item for item in found if item is not None)
    bitmap = encode_validity(column)
    return encoded if bitmap is None else encoded.with_validity(bitmap)


def decode(name: str, stored: Stored) -> Column:
    """The column over the loaded buffers; shares their memory where the layout allows."""
    return _DECODERS[name](stored)
