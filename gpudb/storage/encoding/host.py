"""Values without a fixed layout (arrays, NaN decimals ...) in PostgreSQL's binary form.

Lengths and one byte buffer, as text; the objects are made again when the column is loaded.
"""

from __future__ import annotations

import numpy as np

from gpudb.catalog import types
from gpudb.catalog.types.base import TypeContext
from gpudb.column import Column
from gpudb.layout import HOST, Kind
from gpudb.result import HostColumn
from gpudb.storage.encoding.base import (
    Encoded,
    Parameters,
    Stored,
    column_of,
    flat,
    null_count,
)

NAME = "host"


def encode(column: HostColumn) -> Encoded | None:
    if column.layout.kind is not Kind.HOST:
        return None
    assert column.objects is not None
    codec = types.get(column.type_oid)
    context = TypeContext()
    valid = np.ones(column.rows, np.bool_) if column.valid is None else column.valid
    values = [
        codec.send(item, context) if ok else b""
        for item, ok in zip(column.objects, valid.tolist(), strict=True)
    ]
    lengths = np.fromiter(map(len, values), np.int32, len(values))
    data = np.frombuffer(b"".join(values), np.uint8)
    return Encoded(NAME, Parameters(Kind.HOST.value), (flat(lengths), data), null_count(column))


def decode(stored: Stored) -> Column:
    codec = types.get(stored.type.oid)
    context = TypeContext()
    lengths = stored.buffers[0].view(np.int32)[: stored.rows]
    ends = np.cumsum(lengths.astype(np.int64)).tolist()
    raw = stored.buffers[1].tobytes()
    valid = stored.valid()
    is_valid = [True] * stored.rows if valid is None else valid.tolist()
    objects = np.empty(stored.rows, object)
    start = 0
    for row, end in enumerate(ends):
        if is_valid[row]:
            objects[row] = codec.receive(raw[start:end], -1, context)
        start = end
    return column_of(stored, HOST, (), objects=objects)
