"""The hash of a key by logical value: one definition for exchange and placement on disk.

Equal SQL values hash equally whatever their type of the same kind, layout or display: int2 =
int8, 1.0 = 1.00, -0.0 = 0.0, NaN = NaN, a dictionary code = its text, char(n) without trailing
blanks. Placement rests on these numbers: tests freeze them. Tables that live only for one
statement (kernels.hash_table) compare exact key words instead and may hash as they like.

The classes, and the bytes or integers that are hashed:

=====================  ==================================================================
integers, dates ...    the value as int64
boolean                0 or 1
numeric                unscaled integer without trailing zeros and its scale
float4, float8         float64 bits, one zero and one NaN; int-valued numbers are not special
text, bytea            the bytes
interval               the span in microseconds (a month = 30 days) as 128 bits
uuid                   its two halves
others                 the bytes of the text form
=====================  ==================================================================
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Hashes = npt.NDArray[np.uint64]

_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
NULL_HASH = np.uint64(0x2545F4914F6CDD1D)
_NAN_BITS = np.int64(0x7FF8000000000000)
_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_MASK = 2**64 - 1


def mix(words: Words) -> Hashes:
    """SplitMix64's finalizer over 64-bit words (R)."""
    with np.errstate(over="ignore"):
        x = words + _GOLDEN
        x = (x ^ (x >> np.uint64(30))) * _MULTIPLIER_1
        x = (x ^ (x >> np.uint64(27))) * _MULTIPLIER_2
        return x ^ (x >> np.uint64(31))


def combine(first: Hashes, second: Hashes) -> Hashes:
    """The hash of a pair, in order."""
    with np.errstate(over="ignore"):
        return mix(first * np.uint64(31) + second)


def hash_integers(values: npt.NDArray[np.int64]) -> Hashes:
    return mix(values.view(np.uint64))


def float_words(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """float64 as int64 bits that are equal exactly where SQL calls the numbers equal."""
    bits = (values + 0.0).view(np.int64)
    bits = np.where(values == 0, np.int64(0), bits)
    return np.where(np.isnan(values), _NAN_BITS, bits)


def hash_floats(values: npt.NDArray[np.float64]) -> Hashes:
    return hash_integers(float_words(values))


def hash_decimal(value: decimal.Decimal) -> int:
    """The hash of a numeric: display zeros do not count."""
    if not value.is_finite():
        return hash_bytes(b"NaN" if value.is_nan() else b"inf" if value > 0 else b"-inf")
    sign, digits, exponent = value.normalize(_EXACT).as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits)))
    return hash_unscaled(-unscaled if sign else unscaled, -exponent)


_EXACT = decimal.Context(prec=200_000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def hash_unscaled(unscaled: int, scale: int) -> int:
    """The hash of unscaled / 10**scale."""
    if unscaled == 0:
        scale = 0
    while unscaled and unscaled % 10 == 0:
        unscaled //= 10
        scale -= 1
    if -(2**63) <= unscaled < 2**63:
        first = hash_integers(np.array([unscaled], np.int64))
    else:
        first = np.array([hash_bytes(str(unscaled).encode())], np.uint64)
    return int(combine(first, hash_integers(np.array([scale], np.int64)))[0])


def hash_bytes(value: bytes) -> int:
    """FNV-1a over the bytes, then mixed."""
    state = _FNV_OFFSET
    for byte in value:
        state = ((state ^ byte) * _FNV_PRIME) & _MASK
    return int(mix(np.array([state], np.uint64))[0])


def hash_texts(values: Sequence[bytes]) -> Hashes:
    """The hashes of byte strings (R)."""
    return np.fromiter((hash_bytes(v) for v in values), np.uint64, len(values))


def interval_span(months: int, days: int, microseconds: int) -> int:
    """What PostgreSQL compares intervals by: microseconds, a month being 30 days."""
    return ((months * 30 + days) * 86_400_000_000) + microseconds


def partition(hashes: Hashes, count: int) -> npt.NDArray[np.int64]:
    """Which of ``count`` partitions each hash belongs to."""
    scaled = (hashes >> np.uint64(32)) * np.uint64(count)
    return (scaled >> np.uint64(32)).astype(np.int64)
