"""The data types: one file a family; a type's record gives its pg_type row, codecs and layout."""

from __future__ import annotations

from gpudb.catalog.types.base import ArrayValue, DataType, HostValue, RecordValue, TypeContext

__all__ = ["ArrayValue", "DataType", "HostValue", "RecordValue", "TypeContext"]
