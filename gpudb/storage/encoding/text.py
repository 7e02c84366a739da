"""Text and bytes: a sorted dictionary with narrow codes, or lengths and one byte buffer.

A dictionary is taken when it has at most DICTIONARY_ENTRIES_MAX entries and saves a quarter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from gpudb.column import Column
from gpudb.layout import Dictionary, Kind, Layout
from gpudb.result import HostColumn
from gpudb.storage.encoding.base import (
    Encoded,
    Parameters,
    Stored,
    column_of,
    flat,
    null_count,
)

NAME = "text"
DICTIONARY_ENTRIES_MAX = 32768
"""Codes of 2 bytes are signed."""
SAMPLE_ROWS = 8192
_CODES: dict[int, Any] = {1: np.uint8, 2: np.int16, 4: np.int32}
BOUND_BYTES_MAX = 64
"""Longer bounds are cut: low by truncation, high dropped when it can't be rounded up."""


def encode(column: HostColumn) -> Encoded | None:
    if column.layout.kind is Kind.DICTIONARY:
        return _encode_codes(column)
    if column.layout.kind is not Kind.TEXT:
        return None
    lengths, data = _packed(column)
    nulls = null_count(column)
    found = _dictionary(lengths, data, column)
    if found is not None:
        codes, entries = found
        return _encode_dictionary(codes, entries, nulls, column)
    width = 1 if int(lengths.max(initial=0)) < 256 else 4
    parameters = Parameters(Kind.TEXT.value, width)
    buffers = (flat(lengths.astype(np.uint8 if width == 1 else np.int32)), data)
    return Encoded(NAME, parameters, buffers, nulls)


def _packed(column: HostColumn) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Lengths (0 where NULL) and the bytes of the rows, one after the other."""
    starts, lengths, data = column.data
    lengths = lengths.astype(np.int64)
    if column.valid is not None:
        lengths = np.where(column.valid, lengths, 0)
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    packed_starts = ends - lengths
    if np.array_equal(starts - starts[0], packed_starts):
        return lengths, np.ascontiguousarray(data[int(starts[0]) : int(starts[0]) + total])
    positions = np.arange(total, dtype=np.int64)
    positions += np.repeat(starts - packed_starts, lengths)
    return lengths, data[positions]


def _dictionary(
    lengths: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], column: HostColumn
) -> tuple[npt.NDArray[Any], list[bytes]] | None:
    rows = len(lengths)
    ends = np.zeros(rows + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    array = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(data)]
    )
    sample = array.slice(0, SAMPLE_ROWS)
    if rows > SAMPLE_ROWS and len(sample.unique()) > SAMPLE_ROWS // 2:
        return None
    encoded = array.dictionary_encode()
    entries: list[bytes] = encoded.dictionary.to_pylist()
    size = sum(map(len, entries)) + 8 * len(entries) + rows * (1 if len(entries) <= 256 else 2)
    if len(entries) > DICTIONARY_ENTRIES_MAX or size > 0.75 * (len(data) + rows):
        return None
    return encoded.indices.to_numpy(zero_copy_only=False), entries


def _encode_codes(column: HostColumn) -> Encoded:
    """A dictionary column: keep the entries that occur."""
    assert column.dictionary is not None
    codes = column.data[0].astype(np.int64)
    if column.valid is not None:
        codes = np.where(column.valid, codes, codes[np.argmax(column.valid)])
    used, inverse = np.unique(codes, return_inverse=True)
    values = column.dictionary.values()
    entries = [values[code] for code in used.tolist()]
    return _encode_dictionary(inverse, entries, null_count(column), column)


def _encode_dictionary(
    codes: npt.NDArray[Any], entries: list[bytes], nulls: int, column: HostColumn
) -> Encoded:
    if nulls:
        assert column.valid is not None
        used = np.zeros(len(entries), np.bool_)
        used[codes[column.valid]] = True
        entries, codes = _keep_used(codes, entries, used, column.valid)
    order = sorted(range(len(entries)), key=entries.__getitem__)
    rank = np.empty(len(entries), np.int32)
    rank[order] = np.arange(len(entries), dtype=np.int32)
    width = 1 if len(entries) <= 256 else 2 if len(entries) <= DICTIONARY_ENTRIES_MAX else 4
    dictionary = Dictionary.of([entries[i] for i in order], is_sorted=True)
    parameters = Parameters(
        Kind.DICTIONARY.value, width, is_sorted=True, entries=len(entries)
    )
    buffers = (
        flat(rank[codes].astype(_CODES[width])), flat(dictionary.offsets), flat(dictionary.data),
    )
    low, high = _bounds(entries[order[0]], entries[order[-1]])
    return Encoded(NAME, parameters, buffers, nulls, low, high, distinct=len(entries))


def _keep_used(
    codes: npt.NDArray[Any], entries: list[bytes], used: npt.NDArray[np.bool_],
    valid: npt.NDArray[np.bool_],
) -> tuple[list[bytes], npt.NDArray[Any]]:
    renumbered = np.cumsum(used) - 1
    kept = [entry for entry, keep in zip(entries, used.tolist(), strict=True) if keep]
    return kept, np.where(valid, renumbered[codes], 0)


def _bounds(low: bytes, high: bytes) -> tuple[bytes | None, bytes | None]:
    return low[:BOUND_BYTES_MAX], high if len(high) <= BOUND_BYTES_MAX else None


def decode(stored: Stored) -> Column:
    parameters = stored.parameters
    if parameters.kind == Kind.DICTIONARY.value:
        codes = torch.from_numpy(stored.buffers[0].view(_CODES[parameters.width]))[: stored.rows]
        offsets = stored.buffers[1].view(np.int64)[: parameters.entries + 1]
        data = stored.buffers[2][: int(offsets[-1])]
        dictionary = Dictionary(offsets, data, parameters.is_sorted)
        layout = Layout(Kind.DICTIONARY, parameters.width)
        return column_of(stored, layout, (codes,), dictionary=dictionary)
    narrow = stored.buffers[0].view(np.uint8 if parameters.width == 1 else np.int32)
    lengths = narrow[: stored.rows].astype(np.int32)
    starts = np.zeros(stored.rows, np.int64)
    np.cumsum(lengths[:-1], out=starts[1:])
    tensors = (
        torch.from_numpy(starts), torch.from_numpy(lengths), torch.from_numpy(stored.buffers[1]),
    )
    return column_of(stored, Layout(Kind.TEXT), tensors)
