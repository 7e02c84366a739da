"""encode and decode, character set conversion, single bits and bytes; bit strings; uuid."""

from __future__ import annotations

import base64
import binascii
import re
import uuid

import torch

from gpudb import errors, sqltype
from gpudb.catalog.functions import scalar
from gpudb.catalog.types.strings import decode_utf8, parse_escaped, parse_hex
from gpudb.column import Column
from gpudb.exec.evaluation import EvaluationContext
from gpudb.exec.functions.math import random_words
from gpudb.exec.functions.rowwise import rowwise
from gpudb.layout import UUID
from gpudb.sqltype import SqlType


def _unknown(name: str) -> errors.SqlError:
    return errors.InvalidParameterValue(f'unrecognized encoding: "{name}"')


_ESCAPES = [
    "\\\\" if code == 0x5C else f"\\{code:03o}" if code == 0 or code > 0x7F else chr(code)
    for code in range(256)
]


@rowwise("binary_encode", examples=(("encode('123\\000\\001', 'base64')", "MTIzAAE="),))
def encode(value: bytes, name: str) -> str:
    match name.lower():
        case "hex":
            return value.hex()
        case "escape":
            return "".join(map(_ESCAPES.__getitem__, value))
        case "base64":
            text = base64.b64encode(value).decode()
            return "\n".join(text[i : i + 76] for i in range(0, len(text), 76))
        case _:
            raise _unknown(name)


@rowwise("binary_decode", examples=(("decode('MTIzAAE=', 'base64')", "\\x3132330001"),))
def decode(text: str, name: str) -> bytes:
    match name.lower():
        case "hex":
            return parse_hex(text)
        case "escape":
            return parse_escaped(text)
        case "base64":
            return _from_base64(text)
        case _:
            raise _unknown(name)


def _from_base64(text: str) -> bytes:
    digits = re.sub(r"[ \t\n\r]", "", text)
    for character in digits:
        if not re.fullmatch(r"[A-Za-z0-9+/=]", character):
            raise errors.InvalidParameterValue(
                f'invalid symbol "{character}" found while decoding base64 sequence'
            )
    try:
        return base64.b64decode(digits, validate=True)
    except binascii.Error:
        raise errors.InvalidParameterValue(
            "invalid base64 end sequence",
            hint="Input data is missing padding, is truncated, or is otherwise corrupted.",
        ) from None


_CODECS = {"utf8": "utf-8", "unicode": "utf-8", "latin1": "latin-1", "iso88591": "latin-1",
           "sqlascii": "utf-8", "latin9": "iso8859-15", "win1252": "cp1252", "win1251": "cp1251",
           "win1250": "cp1250", "koi8r": "koi8-r", "eucjp": "euc_jp", "sjis": "shift_jis"}


def _codec(name: str, role: str) -> str:
    found = _CODECS.get(name.lower().replace("-", "").replace("_", ""))
    if found is None:
        raise errors.InvalidParameterValue(f'invalid {role} encoding name "{name}"')
    return found


@rowwise("pg_convert_from")
def convert_from(value: bytes, name: str) -> str:
    codec = _codec(name, "source")
    return decode_utf8(value) if codec == "utf-8" else value.decode(codec, "replace")


@rowwise("pg_convert_to")
def convert_to(text: str, name: str) -> bytes:
    try:
        return text.encode(_codec(name, "destination"))
    except UnicodeEncodeError as problem:
        raw = text[problem.start].encode().hex(" ")
        shown = " ".join(f"0x{byte}" for byte in raw.split())
        raise errors.UntranslatableCharacter(
            f'character with byte sequence {shown} in encoding "UTF8" has no equivalent in '
            f'encoding "{name.upper()}"'
        ) from None


@rowwise("pg_convert")
def convert(value: bytes, source: str, target: str) -> bytes:
    return convert_to(convert_from(value, source), target)


# --- bits and bytes of bytea ---


def _index_error(index: int, size: int) -> errors.SqlError:
    return errors.ArraySubscriptError(f"index {index} out of valid range, 0..{size - 1}")


@rowwise("byteaGetByte")
def get_byte(value: bytes, index: int) -> int:
    if not 0 <= index < len(value):
        raise _index_error(index, len(value))
    return value[index]


@rowwise("byteaSetByte")
def set_byte(value: bytes, index: int, new: int) -> bytes:
    if not 0 <= index < len(value):
        raise _index_error(index, len(value))
    return value[:index] + bytes([new & 255]) + value[index + 1 :]


@rowwise("byteaGetBit")
def get_bit(value: bytes, index: int) -> int:
    if not 0 <= index < 8 * len(value):
        raise _index_error(index, 8 * len(value))
    return value[index // 8] >> (index % 8) & 1


@rowwise("byteaSetBit")
def set_bit(value: bytes, index: int, new: int) -> bytes:
    if not 0 <= index < 8 * len(value):
        raise _index_error(index, 8 * len(value))
    if new not in (0, 1):
        raise errors.InvalidParameterValue("new bit must be 0 or 1")
    found = bytearray(value)
    mask = 1 << (index % 8)
    found[index // 8] = found[index // 8] & ~mask | (mask if new else 0)
    return bytes(found)


rowwise("bytea_bit_count")(lambda value: int.from_bytes(value, "big").bit_count())


# --- bit strings ---

_OPERATORS = {"bit_and": ("AND", int.__and__), "bit_or": ("OR", int.__or__),
              "bitxor": ("XOR", int.__xor__)}
for _key, (_name, _operation) in _OPERATORS.items():

    def _combine(
        left: str, right: str, _name: str = _name, _operation: object = _operation
    ) -> str:
        if len(left) != len(right):
            raise errors.StringDataLengthMismatch(
                f"cannot {_name} bit strings of different sizes"
            )
        if not left:
            return ""
        assert callable(_operation)
        return f"{_operation(int(left, 2), int(right, 2)):0{len(left)}b}"

    rowwise(_key)(_combine)


@rowwise("bitnot")
def invert(value: str) -> str:
    return value.translate({48: "1", 49: "0"})


@rowwise("bitshiftleft")
def shift_left(value: str, count: int) -> str:
    if count < 0:
        return shift_right(value, -count)
    return value[count:].ljust(len(value), "0")


@rowwise("bitshiftright")
def shift_right(value: str, count: int) -> str:
    if count < 0:
        return shift_left(value, -count)
    return value[: max(len(value) - count, 0)].rjust(len(value), "0")


rowwise("bitlength", "bit_length(bit)", result=sqltype.INT4)(len)
rowwise("bitoctetlength")(lambda value: -(-len(value) // 8))
rowwise("bit_bit_count")(lambda value: value.count("1"))


@rowwise("bitgetbit")
def bit_at(value: str, index: int) -> int:
    if not 0 <= index < len(value):
        raise errors.ArraySubscriptError(
            f"bit index {index} out of valid range (0..{len(value) - 1})"
        )
    return int(value[index])


@rowwise("bitsetbit")
def with_bit(value: str, index: int, new: int) -> str:
    bit_at(value, index)
    if new not in (0, 1):
        raise errors.InvalidParameterValue("new bit must be 0 or 1")
    return value[:index] + str(new) + value[index + 1 :]


def _bits_of(value: int, length: int) -> str:
    return f"{value & ((1 << max(length, 64)) - 1):0{max(length, 64)}b}"[-max(length, 1):]


rowwise("bitfromint4", "bitfromint8", result=sqltype.BIT)(_bits_of)


def _integer_of(value: str, bits: int, name: str) -> int:
    if len(value) > bits:
        raise errors.NumericValueOutOfRange(f"{name} out of range")
    number = int(value or "0", 2)
    return number - (1 << bits) if number >> (bits - 1) else number


rowwise("bittoint4")(lambda value: _integer_of(value, 32, "integer"))
rowwise("bittoint8")(lambda value: _integer_of(value, 64, "bigint"))


# --- uuid ---


@scalar("gen_random_uuid")
def random_uuid(context: EvaluationContext) -> Column:
    """A version 4 UUID per row."""
    rows = max(context.rows, 1)
    base = uuid.uuid4().int & (2**63 - 1)
    high = torch.from_numpy(random_words(base, context.row_offset, rows).view("int64"))
    low = torch.from_numpy(random_words(base >> 7, context.row_offset, rows).view("int64"))
    high = (high & ~0xF000) | 0x4000
    low = (low & 0x3FFFFFFFFFFFFFFF) | -(2**63)
    return Column(SqlType(sqltype.UUID), UUID, (high, low))
