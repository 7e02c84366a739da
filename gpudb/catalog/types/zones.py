"""Time zones: names, abbreviations, POSIX specifications and offsets at any time.

Offsets are seconds east of Greenwich. Seconds count from 2000-01-01 00:00.
"""

from __future__ import annotations

import datetime
import re
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import numpy.typing as npt

from gpudb.catalog import builtin
from gpudb.catalog.types.calendar import civil, days_of

Zone = datetime.tzinfo

_ZONES_MAX = 1024
_CYCLE_SECONDS = 146097 * 86400
_TABLE_START_YEAR, _TABLE_END_YEAR = 1840, 2440
_PROBE_DAYS = 8
_POSIX = re.compile(
    r"(?:<([A-Za-z0-9+-]+)>|([A-Za-z]{3,}|(?=[+-])))([+-]?)([0-9]{1,2})(?::([0-9]{2}))?(?::([0-9]{2}))?"
)


@cache
def _names() -> dict[str, str]:
    """Zone names by their lower-case spelling."""
    skipped = ("posix/", "right/", "posixrules", "localtime")
    return {n.lower(): n for n in available_timezones() if not n.startswith(skipped)}


def names() -> list[str]:
    """The names of all zones, sorted."""
    return sorted(_names().values())


@cache
def abbreviations() -> dict[str, tuple[int, bool]]:
    """PostgreSQL's default abbreviations, lower case: offset and whether it is daylight time."""
    table = builtin.table("timezone_abbrevs").to_pydict()
    rows = zip(table["abbrev"], table["utc_offset"], table["is_dst"], strict=True)
    return {abbrev.lower(): (int(offset), bool(dst)) for abbrev, offset, dst in rows}


@lru_cache(_ZONES_MAX)
def zone(name: str) -> Zone | None:
    """The zone of a name in any case, or of a POSIX specification; None when unknown."""
    found = _names().get(name.lower())
    if found is not None:
        return ZoneInfo(found)
    match = _POSIX.fullmatch(name)
    if match is None:
        return None
    seconds = int(match[4]) * 3600 + int(match[5] or 0) * 60 + int(match[6] or 0)
    if seconds >= 86400:
        return None
    east = seconds if match[3] == "-" else -seconds
    return fixed(east, match[1] or match[2].upper() or name)


def fixed(east: int, name: str | None = None) -> Zone:
    """A zone of a constant offset."""
    delta = datetime.timedelta(seconds=east)
    return datetime.timezone(delta) if name is None else datetime.timezone(delta, name)


def zone_name(of: Zone) -> str:
    """The name as SHOW TimeZone gives it."""
    if isinstance(of, ZoneInfo):
        return of.key
    name = of.tzname(None)
    return name or "UTC"


def _moment(seconds: int) -> datetime.datetime:
    """A datetime with the same rules: years beyond Python's are moved by 400-year cycles."""
    days, rest = divmod(seconds, 86400)
    year, month, day = civil(days)
    if year > 9990:
        year = (year - 2400) % 400 + 2400
    elif year < 2:
        year, month, day = 2, 1, 1
    hour, rest = divmod(rest, 3600)
    return datetime.datetime(year, month, day, hour, rest // 60, rest % 60)


def _seconds(delta: datetime.timedelta | None) -> int:
    return 0 if delta is None else int(delta.total_seconds())


def offset_at(of: Zone, seconds: int) -> int:
    """The offset at a moment in UTC."""
    if isinstance(of, datetime.timezone):
        return _seconds(of.utcoffset(None))
    moment = _moment(seconds).replace(tzinfo=datetime.UTC)
    return _seconds(moment.astimezone(of).utcoffset())


def offset_of_local(of: Zone, seconds: int) -> int:
    """The offset that a local time has; PostgreSQL's choice in gaps and overlaps.

    A time skipped in spring takes the offset before the change, one that comes twice the later:
    of the two possible offsets always the smaller.
    """
    if isinstance(of, datetime.timezone):
        return _seconds(of.utcoffset(None))
    moment = _moment(seconds).replace(tzinfo=of)
    return min(_seconds(moment.utcoffset()), _seconds(moment.replace(fold=1).utcoffset()))


def abbreviation_at(of: Zone, seconds: int) -> str:
    """The abbreviation in force at a moment in UTC, such as CET."""
    moment = _moment(seconds).replace(tzinfo=datetime.UTC)
    return moment.astimezone(of).tzname() or "UTC"


@lru_cache(64)
def transitions(of: Zone) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(first second in UTC, offset) of every stretch of one offset, from -infinity to 2440.

    Later moments repeat with the 400 years' cycle of the calendar (``fold_seconds``).
    """
    lowest = np.int64(-(2**62))
    start = days_of(_TABLE_START_YEAR, 1, 1) * 86400
    if isinstance(of, datetime.timezone):
        return np.array([lowest]), np.array([offset_at(of, 0)], np.int64)
    end = days_of(_TABLE_END_YEAR, 1, 1) * 86400
    starts, offsets = [int(lowest)], [offset_at(of, start)]
    before, step = start, _PROBE_DAYS * 86400
    while before < end:
        after = before + step
        if (offset := offset_at(of, after)) != offsets[-1]:
            low, high = before, after
            while high - low > 1:
                middle = (low + high) // 2
                if offset_at(of, middle) == offsets[-1]:
                    low = middle
                else:
                    high = middle
            starts.append(high)
            offsets.append(offset)
        before = after
    return np.array(starts, np.int64), np.array(offsets, np.int64)


def fold_seconds(seconds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Moments after 2400 moved back by whole cycles into the table's range."""
    limit = days_of(2400, 1, 1) * 86400
    cycles = np.where(seconds >= limit, (seconds - limit) // _CYCLE_SECONDS + 1, 0)
    return np.asarray(seconds - cycles * _CYCLE_SECONDS, np.int64)


def offsets_at(of: Zone, seconds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """``offset_at`` of many moments."""
    starts, offsets = transitions(of)
    if len(starts) == 1:
        return np.full(len(seconds), offsets[0], np.int64)
    return offsets[np.searchsorted(starts, fold_seconds(seconds), "right") - 1]


def offsets_of_local(of: Zone, seconds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """``offset_of_local`` of many local times."""
    starts, offsets = transitions(of)
    if len(starts) == 1:
        return np.full(len(seconds), offsets[0], np.int64)
    local_starts = np.concatenate([starts[:1], starts[1:] + offsets[1:]])
    return offsets[np.searchsorted(local_starts, fold_seconds(seconds), "right") - 1]
