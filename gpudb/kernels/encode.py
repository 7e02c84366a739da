"""Texts and binary forms of whole columns, as byte matrices (numpy).

Every function takes arrays of R values and gives ``Slots``: a matrix of bytes (R, W) and, for
each row, the range of its columns that is the value. Rows the caller masks as NULL must hold
something harmless (0). The forms are PostgreSQL's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

_POWERS = np.array([10**n for n in range(20)], np.uint64)
POWERS_OF_TEN = np.array([10**n for n in range(19)], np.int64)

FIRST_DAY = -730119
"""0001-01-01, in days since 2000-01-01."""
LAST_DAY = 2921939
"""9999-12-31: the years between these have four digits and no BC."""
DAY_MICROSECONDS = 86_400_000_000
INT32_LIMIT = 1 << 31


def _digit_table() -> npt.NDArray[np.uint32]:
    """The four ASCII digits of 0 to 9999, each in one uint32."""
    numbers = np.arange(10_000)
    digits = np.stack([numbers // 10**n % 10 for n in (3, 2, 1, 0)], axis=1) + 48
    return np.ascontiguousarray(digits.astype(np.uint8)).view(np.uint32).ravel()


def _hex_table() -> npt.NDArray[np.uint16]:
    """The two lower-case hexadecimal digits of each byte, in one uint16."""
    pairs = b"".join(b"%02x" % byte for byte in range(256))
    return np.frombuffer(pairs, np.uint16)


_DIGITS4 = _digit_table()
_DIGITS2 = np.ascontiguousarray(_DIGITS4[:100].view(np.uint8).reshape(-1, 4)[:, 2:])
_HEX = _hex_table()
# Zeros at the end of four digits; none at all takes the point away too.
_TRAILING_ZEROS = sum(
    (np.arange(10_000) % 10**zeros == 0).astype(np.int16) for zeros in range(1, 5)
)
_TRAILING_ZEROS[0] = 5


@dataclass(frozen=True, slots=True)
class Slots:
    """A value a row: bytes [first, last) of the row of ``matrix``; int = the same in every row."""

    matrix: Bytes
    first: Array | int
    last: Array | int

    def lengths(self) -> Array | int:
        return self.last - self.first


def whole(matrix: Bytes) -> Slots:
    """Slots that are all value."""
    return Slots(matrix, 0, matrix.shape[1])


# --- numbers in text ----------------------------------------------------------------------------


def integer_text(values: npt.NDArray[np.int64], least_digits: int = 1) -> Slots:
    """Decimal digits with a minus sign, right-aligned; at least ``least_digits`` of them."""
    negative = values < 0
    has_negative = bool(negative.any())
    magnitudes = np.abs(values).view(np.uint64) if has_negative else values.view(np.uint64)
    highest = int(magnitudes.max()) if len(values) else 0
    most_digits = max(len(str(highest)), least_digits)
    groups = (most_digits + has_negative + 3) // 4
    matrix = _digit_groups(magnitudes, groups, highest)
    digits = _digit_counts(magnitudes, len(str(highest)), least_digits)
    width = 4 * groups
    first = width - digits
    if has_negative:
        rows = np.flatnonzero(negative)
        first[rows] -= 1
        matrix[rows, first[rows]] = 45
    return Slots(matrix, first, width)


def _digit_groups(magnitudes: npt.NDArray[np.uint64], groups: int, highest: int) -> Bytes:
    rest: Array = magnitudes.astype(np.uint32) if highest < 1 << 32 else magnitudes
    matrix = np.empty((len(magnitudes), groups), np.uint32)
    for group in range(groups - 1, -1, -1):
        quotient = rest // 10_000
        matrix[:, group] = _DIGITS4[rest - quotient * 10_000]
        rest = quotient
    return matrix.view(np.uint8)


def _digit_counts(
    magnitudes: npt.NDArray[np.uint64], most: int, least: int
) -> npt.NDArray[np.int16]:
    counts = np.full(len(magnitudes), least, np.int16)
    for digits in range(least, most):
        counts += magnitudes >= _POWERS[digits]
    return counts


def decimal_text(
    values: npt.NDArray[np.int64], scale: int, shown: npt.NDArray[np.int16] | None = None
) -> Slots:
    """Scaled integers with a point before the last ``scale`` digits.

    ``shown`` (R), at most ``scale``, is how many decimals a row displays.
    """
    if scale == 0:
        return integer_text(values)
    plain = integer_text(values, scale + 1)
    width = plain.matrix.shape[1]
    matrix = np.empty((len(values), width + 1), np.uint8)
    matrix[:, : width - scale] = plain.matrix[:, : width - scale]
    matrix[:, width - scale] = 46
    matrix[:, width - scale + 1 :] = plain.matrix[:, width - scale :]
    if shown is None:
        return Slots(matrix, plain.first, width + 1)
    last = (width + 1 - scale + shown.astype(np.int16) - (shown == 0)).astype(np.int16)
    return Slots(matrix, plain.first, last)


FLOAT_DECIMALS_MAX = 12
"""Decimals up to which a float is tried as a scaled integer before its row goes the slow way."""
PLAIN_FLOAT_MIN = 1e-4
PLAIN_FLOAT_END = 1e15
"""Doubles from the one up to the other are written without an exponent."""


def short_decimals(
    values: npt.NDArray[np.float64], *, is_single: bool = False
) -> tuple[Array, Array, Array]:
    """Floats that are short decimals: scaled integers, their decimals, and which rows they are.

    A double that equals n / 10**d, correctly rounded, with abs(n) < 10**15 has no other decimal of
    up to 15 digits, so n's digits are the shortest that read back as the value (6 digits for
    single precision). d is minimal. Below these limits PostgreSQL writes no exponent.
    """
    limit = 10**6 if is_single else 10**15
    rows = len(values)
    scaled = np.zeros(rows, np.int64)
    decimals = np.zeros(rows, np.int16)
    is_short = np.zeros(rows, np.bool_)
    magnitudes = np.abs(values)
    plain = (magnitudes < limit) & ((magnitudes >= PLAIN_FLOAT_MIN) | (values == 0))
    plain &= ~((values == 0) & np.signbit(values))
    left = np.flatnonzero(plain)
    for digits in range(FLOAT_DECIMALS_MAX + 1):
        if not len(left):
            break
        tried = values[left]
        power = 10.0**digits
        rounded = np.rint(tried * power)
        back = rounded / power
        if is_single:
            back = back.astype(np.float32).astype(np.float64)
        hits = (back == tried) & (np.abs(rounded) < limit)
        found = left[hits]
        scaled[found] = rounded[hits].astype(np.int64)
        decimals[found] = digits
        is_short[found] = True
        left = left[~hits]
        if digits == 4 and len(left) * 2 > rows:  # mostly full-length floats: stop trying
            break
    return scaled, decimals, is_short


def float_text(
    values: npt.NDArray[np.float64], *, is_single: bool = False
) -> tuple[Slots, npt.NDArray[np.bool_]]:
    """Shortest texts of the rows whose flag is set; the other rows need the slow way."""
    scaled, decimals, is_short = short_decimals(values, is_single=is_single)
    scale = int(decimals.max()) if len(values) else 0
    if scale == 0:
        return integer_text(scaled), is_short
    powers = POWERS_OF_TEN[scale - decimals]
    is_short &= np.abs(scaled) <= np.iinfo(np.int64).max // powers
    lifted = np.where(is_short, scaled, 0) * powers
    return decimal_text(lifted, scale, decimals), is_short


# --- dates and times in text --------------------------------------------------------------------


def date_text(days: npt.NDArray[np.int64]) -> Slots:
    """ISO dates; every day within FIRST_DAY and LAST_DAY."""
    low, high = (int(days.min()), int(days.max())) if len(days) else (0, 0)
    if high - low < len(days):
        table = _date_matrix(np.arange(low, high + 1))
        return whole(table[days - low])
    return whole(_date_matrix(days))


def _date_matrix(days: npt.NDArray[np.int64]) -> Bytes:
    """YYYY-MM-DD; the calendar is computed from 0000-03-01 in eras of 400 years."""
    shifted = (days + 730_425).astype(np.uint32)
    era = shifted // 146_097
    day_of_era = shifted - era * 146_097
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month = np.where(month < 10, month + 3, month - 9)
    year = year_of_era + era * 400 + (month <= 2)
    matrix = np.full((len(days), 10), 45, np.uint8)
    matrix[:, :4] = _DIGITS4[year].view(np.uint8).reshape(-1, 4)
    matrix[:, 5:7] = _DIGITS2[month]
    matrix[:, 8:] = _DIGITS2[day]
    return matrix


def time_text(microseconds: npt.NDArray[np.int64]) -> Slots:
    """HH:MM:SS and up to six decimals without trailing zeros; 24:00:00 is allowed."""
    whole_seconds = microseconds.view(np.uint64) // np.uint64(1_000_000)
    fraction = (microseconds - whole_seconds.view(np.int64) * 1_000_000).astype(np.uint32)
    seconds = whole_seconds.astype(np.uint32)
    minutes = seconds // 60
    hours = minutes // 60
    has_fraction = bool(fraction.any())
    matrix = np.full((len(seconds), 15 if has_fraction else 8), 58, np.uint8)
    matrix[:, 0:2] = _DIGITS2[hours]
    matrix[:, 3:5] = _DIGITS2[minutes - hours * 60]
    matrix[:, 6:8] = _DIGITS2[seconds - minutes * 60]
    if not has_fraction:
        return whole(matrix)
    matrix[:, 8] = 46
    high = fraction // 100
    low = fraction - high * 100
    matrix[:, 9:13] = _DIGITS4[high].view(np.uint8).reshape(-1, 4)
    matrix[:, 13:15] = _DIGITS2[low]
    last = 15 - np.where(low == 0, 2 + _TRAILING_ZEROS[high], _TRAILING_ZEROS[low])
    return Slots(matrix, 0, last.astype(np.int16))


def timestamp_text(microseconds: npt.NDArray[np.int64]) -> Slots:
    """ISO date, a space, the time; every row's day within FIRST_DAY and LAST_DAY."""
    days = microseconds // DAY_MICROSECONDS
    time = time_text(microseconds - days * DAY_MICROSECONDS)
    matrix = np.empty((len(days), 11 + time.matrix.shape[1]), np.uint8)
    matrix[:, :10] = date_text(days).matrix
    matrix[:, 10] = 32
    matrix[:, 11:] = time.matrix
    return Slots(matrix, 0, time.last + 11)


# --- bytes --------------------------------------------------------------------------------------


def gather_bytes(
    data: Bytes, start: npt.NDArray[np.int64], length: npt.NDArray[np.int32], width: int
) -> Slots:
    """Byte strings of at most ``width`` bytes, left-aligned; start + length lie in ``data``."""
    if not width or not len(data):
        return Slots(np.empty((len(start), 0), np.uint8), 0, 0)
    room = len(data) - width
    if room < 0 or bool((start > room).any()):  # windows would reach past the end
        columns = np.arange(width)
        matrix = data[np.minimum(start[:, None] + columns, len(data) - 1)]
    else:
        windows = np.lib.stride_tricks.as_strided(
            data, (room + 1, width), (1, 1), writeable=False
        )
        matrix = windows[start]
    return Slots(matrix, 0, length.astype(np.int16))


def hex_text(raw: Slots) -> Slots:
    r"""``\x`` and two digits a byte; ``raw`` is left-aligned (first = 0 in every row)."""
    rows, width = raw.matrix.shape
    matrix = np.empty((rows, 2 + 2 * width), np.uint8)
    matrix[:, 0] = 92
    matrix[:, 1] = 120
    matrix[:, 2:] = _HEX[raw.matrix].view(np.uint8).reshape(rows, 2 * width)
    return Slots(matrix, 0, 2 * raw.last + 2)


def uuid_bytes(high: npt.NDArray[np.int64], low: npt.NDArray[np.int64]) -> Bytes:
    """The 16 bytes of UUIDs, big-endian (R, 16)."""
    return np.ascontiguousarray(np.stack((high, low), axis=1).astype(">i8")).view(np.uint8)


def uuid_text(high: npt.NDArray[np.int64], low: npt.NDArray[np.int64]) -> Slots:
    """Lower-case 8-4-4-4-12."""
    digits = _HEX[uuid_bytes(high, low)].view(np.uint8).reshape(-1, 32)
    matrix = np.full((len(high), 36), 45, np.uint8)
    for source, target, count in ((0, 0, 8), (8, 9, 4), (12, 14, 4), (16, 19, 4), (20, 24, 12)):
        matrix[:, target : target + count] = digits[:, source : source + count]
    return whole(matrix)


# --- binary forms -------------------------------------------------------------------------------


def big_endian(values: Array, dtype: str) -> Bytes:
    """The big-endian bytes of fixed-width values (R, width); ``dtype`` such as ``>i4``."""
    swapped = np.ascontiguousarray(values.astype(dtype))
    return swapped.view(np.uint8).reshape(len(values), swapped.dtype.itemsize)


def interval_bytes(months: Array, days: Array, microseconds: Array) -> Bytes:
    """Microseconds, days, months (R, 16)."""
    return np.concatenate(
        (big_endian(microseconds, ">i8"), big_endian(days, ">i4"), big_endian(months, ">i4")),
        axis=1,
    )


def numeric_bytes(
    values: npt.NDArray[np.int64], scale: int, shown: npt.NDArray[np.int16] | None = None
) -> tuple[Slots, Slots]:
    """numeric's binary form: a header (R, 8), then base-10000 digits without outer zeros.

    Scaled integers with ``scale`` (at most 18) decimals, of which a row displays ``shown``.
    """
    magnitudes = np.abs(values).view(np.uint64)
    power = np.uint64(10**scale)
    integral = magnitudes // power
    after = (scale + 3) // 4
    groups_before = 5
    groups = np.empty((len(values), groups_before + after), np.int64)
    rest = integral
    for group in range(groups_before - 1, -1, -1):
        quotient = rest // np.uint64(10_000)
        groups[:, group] = (rest - quotient * np.uint64(10_000)).astype(np.int64)
        rest = quotient
    _fraction_groups(magnitudes - integral * power, scale, groups[:, groups_before:])
    is_set = groups != 0
    any_set = is_set.any(axis=1)
    first = np.where(any_set, is_set.argmax(axis=1), 0).astype(np.int16)
    end = groups.shape[1] - is_set[:, ::-1].argmax(axis=1)
    last = np.where(any_set, end, 0).astype(np.int16)
    header = np.empty((len(values), 4), ">i2")
    header[:, 0] = last - first
    header[:, 1] = np.where(any_set, groups_before - 1 - first, 0)
    header[:, 2] = np.where(values < 0, 0x4000, 0)
    header[:, 3] = scale if shown is None else shown
    digits = np.ascontiguousarray(groups.astype(">i2")).view(np.uint8)
    return whole(header.view(np.uint8)), Slots(digits, 2 * first, 2 * last)


def _fraction_groups(fraction: npt.NDArray[np.uint64], scale: int, groups: Array) -> None:
    """Write the base-10000 digits after the point; the last is filled up with zeros."""
    rest = fraction
    left = scale
    for group in range(groups.shape[1]):
        width = min(4, left)
        left -= width
        power = np.uint64(10**left)
        digits = rest // power
        rest = rest - digits * power
        groups[:, group] = digits.astype(np.int64) * 10 ** (4 - width)
