"""Templates of dates and times: the patterns of to_char, to_date and to_timestamp."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_TEMPLATES_MAX = 256

PATTERNS = (
    "SSSSS", "SSSS", "IYYY", "IDDD", "YYYY", "Y,YYY", "MONTH", "Month", "month", "HH24", "HH12",
    "A.M.", "P.M.", "a.m.", "p.m.", "A.D.", "B.C.", "a.d.", "b.c.", "IYY", "YYY", "MON", "Mon",
    "mon", "DAY", "Day", "day", "DDD", "TZH", "TZM", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6",
    "HH", "MI", "SS", "MS", "US", "AM", "PM", "am", "pm", "AD", "BC", "ad", "bc", "YY", "IY",
    "MM", "DY", "Dy", "dy", "DD", "ID", "WW", "IW", "CC", "RM", "rm", "TZ", "tz", "OF", "Y", "I",
    "D", "W", "J", "Q",
)
_CASE_SENSITIVE = frozenset({
    "MONTH", "Month", "month", "MON", "Mon", "mon", "DAY", "Day", "day", "DY", "Dy", "dy", "RM",
    "rm", "TZ", "tz", "AM", "PM", "am", "pm", "A.M.", "P.M.", "a.m.", "p.m.", "AD", "BC", "ad",
    "bc", "A.D.", "B.C.", "a.d.", "b.c.",
})


@dataclass(frozen=True, slots=True)
class Token:
    """A pattern, or literal text (``pattern`` empty)."""

    pattern: str
    text: str = ""
    fills: bool = True
    ordinal: str = ""


def _pattern_at(template: str, at: int) -> str:
    for pattern in PATTERNS:
        piece = template[at : at + len(pattern)]
        if piece == pattern:
            return pattern
        if piece.upper() == pattern and pattern not in _CASE_SENSITIVE and (
            pattern.isupper() or pattern == "Y,YYY"
        ):
            return pattern
    return ""


@lru_cache(_TEMPLATES_MAX)
def tokens(template: str) -> tuple[Token, ...]:
    """The patterns and literal texts of a template."""
    found: list[Token] = []
    at = 0
    fills = True
    while at < len(template):
        prefix = template[at : at + 2].upper()
        if prefix in ("FM", "TM", "FX") and (prefix != "FX" or at == 0):
            fills = fills and prefix != "FM"
            at += 2
            continue
        pattern = _pattern_at(template, at)
        if pattern:
            at += len(pattern)
            ordinal = template[at : at + 2]
            if ordinal not in ("TH", "th"):
                ordinal = ""
            at += len(ordinal)
            found.append(Token(pattern, fills=fills, ordinal=ordinal))
            fills = True
            continue
        text, at = _literal(template, at)
        found.append(Token("", text))
    return tuple(found)


def _literal(template: str, at: int) -> tuple[str, int]:
    if template[at] == '"':
        match = re.compile(r'"((?:[^"\\]|\\.)*)"?', re.DOTALL).match(template, at)
        assert match is not None
        return re.sub(r"\\(.)", r"\1", match[1]), match.end()
    if template[at] == "\\" and at + 1 < len(template):
        return template[at + 1], at + 2
    return template[at], at + 1


def ordinal(number: int, form: str) -> str:
    """st, nd, rd or th."""
    size = abs(number)
    if 11 <= size % 100 <= 13:
        suffix = "th"
    else:
        suffix = {1: "st", 2: "nd", 3: "rd"}.get(size % 10, "th")
    return suffix.upper() if form == "TH" else suffix


ROMAN_MONTHS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
