"""Arrays of every type: PostgreSQL's text with braces and quotes, its binary form."""

from __future__ import annotations

import math
import re
import struct
from typing import Any, NoReturn

from gpudb import errors, layout, sqltype
from gpudb.catalog.types.base import ArrayValue, DataType, HostValue, TypeContext
from gpudb.catalog.types.integers import syntax_error

DIMENSIONS_MAX = 6
ITEMS_MAX = 134217727
_SPACES = " \t\n\r\v\f"
_BOUND = re.compile(r"\[\s*([+-]?[0-9]+)\s*(?::\s*([+-]?[0-9]+)\s*)?\]", re.ASCII)


def _malformed(text: str, detail: str) -> errors.SqlError:
    return errors.InvalidTextRepresentation(f'malformed array literal: "{text}"', detail=detail)


class _ArrayReader:
    """Reads the braces of an array literal into nested shape and flat items."""

    def __init__(self, text: str, at: int, delimiter: str) -> None:
        self.text = text
        self.at = at
        self.delimiter = delimiter
        self.items: list[str | None] = []
        self.lengths: list[int] = []

    def fail(self, detail: str) -> NoReturn:
        raise _malformed(self.text, detail)

    def unexpected(self, what: str) -> NoReturn:
        self.fail(f"Unexpected {what}.")

    def skip(self) -> str:
        """The next character that is no space; empty at the end."""
        while self.at < len(self.text) and self.text[self.at] in _SPACES:
            self.at += 1
        return self.text[self.at : self.at + 1]

    def read(self) -> None:
        self._level(0)
        if self.skip():
            self.fail("Junk after closing right brace.")

    def _level(self, depth: int) -> int:
        if depth >= DIMENSIONS_MAX:
            raise errors.ProgramLimitExceeded(
                f"number of array dimensions ({depth + 1}) exceeds the maximum allowed "
                f"({DIMENSIONS_MAX})"
            )
        self.at += 1
        count = 0
        if self.skip() == "}":
            if len(self.lengths) > depth:
                self.unexpected('"}" character')
            self.at += 1
            self._note(depth, 0)
            return 0
        while True:
            self._item(depth)
            count += 1
            following = self.skip()
            self.at += 1
            if following == "}":
                break
            if following != self.delimiter:
                self.fail("Unexpected end of input.") if not following else self.unexpected(
                    "array element"
                )
        self._note(depth, count)
        return count

    def _note(self, depth: int, count: int) -> None:
        while len(self.lengths) <= depth:
            self.lengths.append(-1)
        if self.lengths[depth] not in (-1, count):
            self.fail("Multidimensional arrays must have sub-arrays with matching dimensions.")
        self.lengths[depth] = count

    def _item(self, depth: int) -> None:
        character = self.skip()
        is_nested = character == "{"
        if len(self.lengths) > depth + 1 and not is_nested:
            self.unexpected("array element")
        if is_nested:
            if self.items and len(self.lengths) <= depth + 1:
                self.unexpected('"{" character')
            self._level(depth + 1)
        elif character == '"':
            self.items.append(self._quoted())
        else:
            self.items.append(self._bare())

    def _quoted(self) -> str:
        parts: list[str] = []
        self.at += 1
        while True:
            if self.at >= len(self.text):
                self.fail("Unexpected end of input.")
            character = self.text[self.at]
            self.at += 1
            if character == '"':
                break
            if character == "\\":
                character = self.text[self.at : self.at + 1]
                self.at += 1
            parts.append(character)
        following = self.skip()
        if following not in (self.delimiter, "}", ""):
            self.unexpected("array element")
        return "".join(parts)

    def _bare(self) -> str | None:
        parts: list[str] = []
        kept = 0
        has_escape = False
        while True:
            if self.at >= len(self.text):
                self.fail("Unexpected end of input.")
            character = self.text[self.at]
            if character in (self.delimiter, "}"):
                break
            if character == '"':
                self.unexpected("array element")
            if character == "{":
                self.unexpected('"{" character')
            if character == "\\":
                self.at += 1
                character = self.text[self.at : self.at + 1]
                has_escape = True
                kept = len(parts) + 1
            elif character not in _SPACES:
                kept = len(parts) + 1
            parts.append(character)
            self.at += 1
        word = "".join(parts[:kept])
        if not word:
            self.unexpected(f'"{self.text[self.at]}" character')
        return None if word.upper() == "NULL" and not has_escape else word


def _bounds(text: str) -> tuple[list[tuple[int, int]], int]:
    """The explicit dimensions ``[l:u]...=`` before the braces and where the braces begin."""
    at = 0
    found: list[tuple[int, int]] = []
    while at < len(text) and text[at] in _SPACES:
        at += 1
    while at < len(text) and text[at] == "[":
        match = _BOUND.match(text, at)
        if match is None:
            raise _malformed(text, '"[" must introduce explicitly-specified array dimensions.')
        lower, upper = (int(match[1]), int(match[2])) if match[2] else (1, int(match[1]))
        if upper < lower:
            raise errors.ArraySubscriptError("upper bound cannot be less than lower bound")
        found.append((lower, upper))
        at = match.end()
    if found:
        while at < len(text) and text[at] in _SPACES:
            at += 1
        if text[at : at + 1] != "=":
            raise _malformed(text, 'Missing "=" after array dimensions.')
        at += 1
        while at < len(text) and text[at] in _SPACES:
            at += 1
        if text[at : at + 1] != "{":
            raise _malformed(text, 'Array contents must start with "{".')
    elif text[at : at + 1] != "{":
        raise _malformed(
            text, 'Array value must start with "{" or dimension information.'
        )
    return found, at


def _needs_quotes(text: str, delimiter: str) -> bool:
    if not text or text.upper() == "NULL":
        return True
    return any(c in '"\\{}' or c == delimiter or c in _SPACES for c in text)


class ArrayType(DataType):
    """An array of ``element``."""

    def __init__(self, oid: int, element: DataType, *, delimiter: str = ",") -> None:
        super().__init__(
            oid, "_" + element.name[:62], element.sql_name + "[]", category="A",
            layout=layout.HOST, element_oid=element.oid,
        )
        self.element = element
        self.delimiter = delimiter

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        bounds, at = _bounds(text)
        reader = _ArrayReader(text, at, self.delimiter)
        reader.read()
        lengths = tuple(reader.lengths)
        if bounds and tuple(u - low + 1 for low, u in bounds) != lengths:
            raise _malformed(text, "Specified array dimensions do not match array contents.")
        items = tuple(
            None if item is None else self.element.parse(item, typmod, context)
            for item in reader.items
        )
        if not items:
            return ArrayValue(self.element.oid, ())
        lowers = tuple(low for low, _ in bounds) or (1,) * len(lengths)
        return ArrayValue(self.element.oid, items, lengths, lowers)

    def format(self, value: HostValue, context: TypeContext) -> str:
        if not value.items:
            return "{}"
        texts = [self._item(item, context) for item in value.items]
        for length in reversed(value.lengths):
            texts = [
                "{" + self.delimiter.join(texts[i : i + length]) + "}"
                for i in range(0, len(texts), length)
            ]
        if any(low != 1 for low in value.lower_bounds):
            pairs = zip(value.lower_bounds, value.lengths, strict=True)
            return "".join(f"[{low}:{low + n - 1}]" for low, n in pairs) + "=" + texts[0]
        return texts[0]

    def _item(self, item: Any, context: TypeContext) -> str:
        if item is None:
            return "NULL"
        text = self.element.format(item, context)
        if not _needs_quotes(text, self.delimiter):
            return text
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        if len(raw) < 12:
            raise errors.ProtocolViolation("insufficient data left in message")
        dimensions, flags, element_oid = struct.unpack(">iiI", raw[:12])
        if not 0 <= dimensions <= DIMENSIONS_MAX:
            raise errors.ProgramLimitExceeded(
                f"number of array dimensions ({dimensions}) exceeds the maximum allowed "
                f"({DIMENSIONS_MAX})"
            )
        if flags not in (0, 1):
            raise errors.InvalidBinaryRepresentation("invalid array flags")
        if element_oid != self.element.oid:
            raise errors.DatatypeMismatch("wrong element type")
        at = 12 + 8 * dimensions
        if len(raw) < at:
            raise errors.ProtocolViolation("insufficient data left in message")
        shape = struct.unpack(f">{2 * dimensions}i", raw[12:at])
        lengths, lowers = shape[::2], shape[1::2]
        count = math.prod(lengths) if dimensions else 0
        if any(n < 0 for n in lengths) or count > ITEMS_MAX:
            raise errors.ProgramLimitExceeded(
                f"array size exceeds the maximum allowed ({ITEMS_MAX})"
            )
        items = self._receive_items(raw, at, count, typmod, context)
        if not items:
            return ArrayValue(self.element.oid, ())
        return ArrayValue(self.element.oid, items, lengths, lowers)

    def _receive_items(
        self, raw: bytes, at: int, count: int, typmod: int, context: TypeContext
    ) -> tuple[HostValue, ...]:
        items: list[HostValue] = []
        for _ in range(count):
            if len(raw) < at + 4:
                raise errors.ProtocolViolation("insufficient data left in message")
            (length,) = struct.unpack(">i", raw[at : at + 4])
            at += 4
            if length < 0:
                items.append(None)
                continue
            if len(raw) < at + length:
                raise errors.InvalidBinaryRepresentation("insufficient data left in message")
            items.append(self.element.receive(raw[at : at + length], typmod, context))
            at += length
        if at != len(raw):
            raise errors.InvalidBinaryRepresentation("incorrect binary data format")
        return tuple(items)

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        has_null = any(item is None for item in value.items)
        parts = [struct.pack(">iiI", len(value.lengths), has_null, self.element.oid)]
        for length, lower in zip(value.lengths, value.lower_bounds, strict=True):
            parts.append(struct.pack(">ii", length, lower))
        for item in value.items:
            if item is None:
                parts.append(b"\xff\xff\xff\xff")
            else:
                raw = self.element.send(item, context)
                parts.append(struct.pack(">i", len(raw)) + raw)
        return b"".join(parts)

    def typmod_in(self, modifiers: tuple[int | str, ...]) -> int:
        return self.element.typmod_in(modifiers)

    def typmod_out(self, typmod: int) -> str:
        return self.element.typmod_out(typmod)

    def apply_typmod(self, value: HostValue, typmod: int, *, is_explicit: bool) -> HostValue:
        items = tuple(
            None if i is None else self.element.apply_typmod(i, typmod, is_explicit=is_explicit)
            for i in value.items
        )
        return ArrayValue(value.element_oid, items, value.lengths, value.lower_bounds)

    def sort_key(self, value: HostValue) -> Any:
        """Elements in order (NULL last), then the number of them, then the dimensions."""
        keys = tuple(
            (True,) if i is None else (False, self.element.sort_key(i)) for i in value.items
        )
        return keys, len(value.lengths), value.lengths, value.lower_bounds


class VectorType(DataType):
    """int2vector and oidvector: numbers with blanks between; arrays from 0."""

    def __init__(self, oid: int, name: str, array_oid: int, element: DataType) -> None:
        super().__init__(
            oid, name, name, array_oid=array_oid, category="A", layout=layout.HOST,
            element_oid=element.oid,
        )
        self.element = element

    def parse(self, text: str, typmod: int, context: TypeContext) -> HostValue:
        words = text.split()
        try:
            items = tuple(self.element.parse(word, -1, context) for word in words)
        except errors.InvalidTextRepresentation:
            raise syntax_error(self.element.sql_name, text) from None
        return vector(self.element.oid, items)

    def format(self, value: HostValue, context: TypeContext) -> str:
        return " ".join(str(item) for item in value.items)

    def receive(self, raw: bytes, typmod: int, context: TypeContext) -> HostValue:
        found = ArrayType(self.oid, self.element).receive(raw, typmod, context)
        return vector(self.element.oid, found.items)

    def send(self, value: HostValue, context: TypeContext) -> bytes:
        shaped = vector(self.element.oid, value.items, is_shaped=True)
        return ArrayType(self.oid, self.element).send(shaped, context)

    def sort_key(self, value: HostValue) -> Any:
        return len(value.items), value.items


def vector(
    element_oid: int, items: tuple[HostValue, ...], *, is_shaped: bool = False
) -> ArrayValue:
    """An int2vector or oidvector; ``is_shaped``: with its one dimension even when empty."""
    if not items and not is_shaped:
        return ArrayValue(element_oid, ())
    return ArrayValue(element_oid, items, (len(items),), (0,))


def vector_types(element_of: dict[int, DataType]) -> tuple[DataType, ...]:
    return (
        VectorType(sqltype.INT2VECTOR, "int2vector", 1006, element_of[sqltype.INT2]),
        VectorType(sqltype.OIDVECTOR, "oidvector", 1013, element_of[sqltype.OID]),
    )
