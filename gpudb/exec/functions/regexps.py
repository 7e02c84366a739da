"""Regular expressions: PostgreSQL's advanced syntax on the ``regex`` library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import regex

from gpudb import errors, sqltype
from gpudb.catalog.types import ArrayValue
from gpudb.exec.functions.pattern import similar_to_regex
from gpudb.exec.functions.rowwise import rowwise
from gpudb.exec.functions.sets import rowset

_PATTERNS_MAX = 1024
_CLASSES = {
    "alpha": r"\p{L}", "digit": "0-9", "alnum": r"\p{L}\p{N}", "upper": r"\p{Lu}",
    "lower": r"\p{Ll}", "space": r"\s", "punct": r"!-/:-@\[-`{-~", "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f", "graph": r"!-~\u00a1-\U0010ffff",
    "print": r" -~\u00a0-\U0010ffff", "xdigit": "0-9A-Fa-f", "word": r"\w", "ascii": r"\x00-\x7f",
}
_ESCAPES = {
    "m": r"\b(?=\w)", "M": r"\b(?<=\w)", "y": r"\b", "Y": r"\B", "A": r"\A", "Z": r"\Z",
    "d": "[0-9]", "D": "[^0-9]", "s": r"\s", "S": r"\S", "w": r"\w", "W": r"\W", "B": r"\\",
    "a": r"\x07", "b": r"\x08", "e": r"\x1b", "f": r"\f", "n": r"\n", "r": r"\r", "t": r"\t",
    "v": r"\v",
}


@dataclass(frozen=True, slots=True)
class Flags:
    """The options of PostgreSQL's regexp functions."""

    ignores_case: bool = False
    newline_anchors: bool = False
    newline_stops: bool = False
    is_expanded: bool = False
    is_literal: bool = False
    is_global: bool = False


def parse_flags(text: str, *, allows_global: bool, function: str = "") -> Flags:
    """The flags of a letters' string; 22023 for an unknown one."""
    found: dict[str, bool] = {}
    for letter in text:
        match letter:
            case "i":
                found["ignores_case"] = True
            case "c":
                found["ignores_case"] = False
            case "n" | "m":
                found["newline_anchors"] = found["newline_stops"] = True
            case "p":
                found["newline_anchors"], found["newline_stops"] = False, True
            case "w":
                found["newline_anchors"], found["newline_stops"] = True, False
            case "s":
                found["newline_anchors"] = found["newline_stops"] = False
            case "x":
                found["is_expanded"] = True
            case "t":
                found["is_expanded"] = False
            case "q":
                found["is_literal"] = True
            case "b" | "e":
                pass
            case "g" if allows_global:
                found["is_global"] = True
            case "g":
                raise errors.InvalidParameterValue(
                    f'{function} does not support the "global" option'
                )
            case _:
                raise errors.InvalidParameterValue(
                    f'invalid regular expression option: "{letter}"'
                )
    return Flags(**found)


def _invalid(reason: str) -> errors.SqlError:
    return errors.InvalidRegularExpression(f"invalid regular expression: {reason}")


class _Translator:
    """Rewrites an advanced regular expression into the syntax of ``regex``."""

    def __init__(self, pattern: str, flags: Flags) -> None:
        self.pattern = pattern
        self.flags = flags
        self.at = 0
        self.parts: list[str] = []
        self.depth = 0
        self.has_lazy = False
        self.has_branch = False

    def run(self) -> str:
        while self.at < len(self.pattern):
            character = self.pattern[self.at]
            self.at += 1
            self._one(character)
        if self.depth:
            raise _invalid("parentheses () not balanced")
        return "".join(self.parts)

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _one(self, character: str) -> None:
        match character:
            case "\\":
                self.parts.append(self._escape(in_bracket=False))
            case "[":
                self.parts.append(self._bracket())
            case "^":
                self.parts.append("(?m:^)" if self.flags.newline_anchors else r"\A")
            case "$":
                self.parts.append("(?m:$)" if self.flags.newline_anchors else r"\Z")
            case ".":
                self.parts.append("[^\n]" if self.flags.newline_stops else "(?s:.)")
            case "(":
                self._open()
            case ")":
                if self.depth:
                    self.depth -= 1
                    self.parts.append(")")
                else:
                    raise _invalid("parentheses () not balanced")
            case "|":
                self.has_branch = True
                self.parts.append("|")
            case "*" | "+" | "?":
                self._quantifier(character)
            case "{":
                self._bound()
            case _:
                self._plain(character)

    def _plain(self, character: str) -> None:
        if self.flags.is_expanded and character.isspace():
            return
        if self.flags.is_expanded and character == "#":
            end = self.pattern.find("\n", self.at)
            self.at = len(self.pattern) if end < 0 else end + 1
            return
        self.parts.append(regex.escape(character, special_only=True))

    def _open(self) -> None:
        self.depth += 1
        for prefix in ("?:", "?=", "?!", "?<=", "?<!"):
            if self.pattern.startswith(prefix, self.at):
                self.at += len(prefix)
                self.parts.append("(" + prefix)
                return
        if self.pattern.startswith("?#", self.at):
            end = self.pattern.find(")", self.at)
            if end < 0:
                raise _invalid("parentheses () not balanced")
            self.at = end + 1
            self.depth -= 1
            return
        self.parts.append("(")

    def _quantifier(self, text: str) -> None:
        if not self.parts or self.parts[-1] in ("(", "|", "(?:") or (
            self.parts[-1] and self.parts[-1][-1:] in "*+?" and len(self.parts[-1]) <= 2
            and self.parts[-1][0] in "*+?{"
        ):
            raise _invalid("quantifier operand invalid")
        if self._peek() == "?":
            self.at += 1
            self.has_lazy = True
            text += "?"
        self.parts.append(text)

    def _bound(self) -> None:
        match = regex.compile(r"([0-9]+)(?:(,)([0-9]*))?\}").match(self.pattern, self.at)
        if match is None:
            if self._peek().isdigit():
                raise _invalid("invalid repetition count(s)")
            self.parts.append(r"\{")
            return
        low, high = int(match[1]), int(match[3]) if match[3] else None
        if low > 255 or (high is not None and (high > 255 or high < low)):
            raise _invalid("invalid repetition count(s)")
        self.at = match.end()
        self._quantifier("{" + match[0])

    def _escape(self, *, in_bracket: bool) -> str:
        if self.at >= len(self.pattern):
            raise _invalid("invalid escape \\ sequence")
        letter = self.pattern[self.at]
        self.at += 1
        if letter in "uUx":
            return self._code_point({"u": 4, "U": 8, "x": 8}[letter])
        if letter.isdigit() and not in_bracket and letter != "0":
            return f"(?:\\{letter})"
        if letter == "0":
            return r"\x00"
        if letter == "c":
            self.at += 1
            return str(regex.escape(chr(ord(self.pattern[self.at - 1]) & 31)))
        found = _ESCAPES.get(letter)
        if in_bracket and letter in "dsw":
            return {"d": "0-9", "s": r"\s", "w": r"\w"}[letter]
        if found is not None:
            return found
        if letter.isalnum():
            raise _invalid("invalid escape \\ sequence")
        return "\\" + letter

    def _code_point(self, width: int) -> str:
        match = regex.compile(f"[0-9a-fA-F]{{1,{width}}}").match(self.pattern, self.at)
        if match is None:
            raise _invalid("invalid escape \\ sequence")
        self.at = match.end()
        return str(regex.escape(chr(int(match[0], 16))))

    def _bracket(self) -> str:
        pattern = self.pattern
        for edge, text in (("[[:<:]]", r"\b(?=\w)"), ("[[:>:]]", r"\b(?<=\w)")):
            if pattern.startswith(edge, self.at - 1):
                self.at += len(edge) - 1
                return text
        parts = ["["]
        if self._peek() == "^":
            parts.append("^" + ("\n" if self.flags.newline_stops else ""))
            self.at += 1
        is_first = True
        while True:
            if self.at >= len(pattern):
                raise _invalid("brackets [] not balanced")
            character = pattern[self.at]
            self.at += 1
            if character == "]" and not is_first:
                return "".join(parts) + "]"
            is_first = False
            if character == "[" and self._peek() and self._peek() in ":.=":
                parts.append(self._named())
            elif character == "\\":
                parts.append(self._escape(in_bracket=True))
            elif character == "-":
                parts.append(self._dash(parts))
            else:
                parts.append("\\" + character if character in "[]&|~^" else character)

    def _dash(self, parts: list[str]) -> str:
        is_range = self._peek() != "]" and len(parts) > 1
        return "-" if is_range else r"\-"

    def _named(self) -> str:
        mark = self.pattern[self.at]
        end = self.pattern.find(mark + "]", self.at + 1)
        if end < 0:
            raise _invalid("brackets [] not balanced")
        name = self.pattern[self.at + 1 : end]
        self.at = end + 2
        if mark != ":":
            return str(regex.escape(name))
        if name not in _CLASSES:
            raise _invalid("invalid character class")
        return _CLASSES[name]


_EMBEDDED = regex.compile(r"\(\?([a-z]+)\)")


@lru_cache(_PATTERNS_MAX)
def compiled(pattern: str, flags: Flags) -> Any:
    """The compiled form of an advanced regular expression; 2201B."""
    if pattern.startswith("***="):
        pattern, flags = pattern[4:], Flags(flags.ignores_case, is_literal=True)
    elif pattern.startswith("***:"):
        pattern = pattern[4:]
    embedded = None if flags.is_literal else _EMBEDDED.match(pattern)
    if embedded is not None:
        extra = parse_flags(embedded[1], allows_global=False)
        flags = Flags(
            extra.ignores_case or (flags.ignores_case and "c" not in embedded[1]),
            extra.newline_anchors or flags.newline_anchors,
            extra.newline_stops or flags.newline_stops,
            extra.is_expanded or flags.is_expanded, extra.is_literal, flags.is_global,
        )
        pattern = pattern[embedded.end() :]
    options = regex.V0 | (regex.IGNORECASE if flags.ignores_case else 0)
    if flags.is_literal:
        return regex.compile(regex.escape(pattern), options)
    translator = _Translator(pattern, flags)
    source = translator.run()
    if translator.has_branch and not translator.has_lazy:
        options |= regex.POSIX
    try:
        return regex.compile(source, options)
    except regex.error as problem:
        raise _invalid(str(problem)) from None


_PLAIN = Flags()
_FOLDED = Flags(ignores_case=True)


def _matcher(flags: Flags, *, negated: bool) -> Callable[[str, str], bool]:
    def matches(text: str, pattern: str) -> bool:
        return (compiled(pattern, flags).search(text) is not None) != negated

    return matches


for _prefix in ("text", "name"):
    rowwise(f"{_prefix}regexeq", result=sqltype.BOOL)(_matcher(_PLAIN, negated=False))
    rowwise(f"{_prefix}regexne", result=sqltype.BOOL)(_matcher(_PLAIN, negated=True))
    rowwise(f"{_prefix}icregexeq", result=sqltype.BOOL)(_matcher(_FOLDED, negated=False))
    rowwise(f"{_prefix}icregexne", result=sqltype.BOOL)(_matcher(_FOLDED, negated=True))


@rowwise("textregexsubstr", examples=(("substring('foobar' from 'o.b')", "oob"),))
def substring_of(text: str, pattern: str) -> str | None:
    """The first match, or what its first parenthesis matched."""
    found = compiled(pattern, _PLAIN).search(text)
    if found is None:
        return None
    result: str | None = found[1] if found.re.groups else found[0]
    return result


@rowwise("substring(text,text,text)", result=sqltype.TEXT)
def substring_similar(text: str, pattern: str, escape: str) -> str | None:
    return substring_of(text, similar_to_regex(pattern, escape))


# --- replace ---


def _expansion(replacement: str) -> Callable[[Any], str]:
    """How a replacement text with \\1 and \\& is filled from a match."""
    parts = regex.split(r"(\\[0-9&\\])", replacement)

    def expand(match: Any) -> str:
        texts = []
        for part in parts:
            if len(part) == 2 and part[0] == "\\":
                texts.append(_reference(match, part[1]))
            else:
                texts.append(part)
        return "".join(texts)

    return expand


def _reference(match: Any, mark: str) -> str:
    if mark == "\\":
        return "\\"
    if mark in "&0":
        return match[0] if mark == "&" else "\\0"
    number = int(mark)
    return (match[number] or "") if number <= match.re.groups else ""


def _replaced(
    text: str, pattern: str, replacement: str, flags: Flags, *, start: int = 1, nth: int = 1
) -> str:
    """The text with the nth match (0: all of them) from character ``start`` on replaced."""
    expression = compiled(pattern, flags)
    expand = _expansion(replacement)
    parts, end = [text[: start - 1]], start - 1
    for count, match in enumerate(expression.finditer(text, start - 1), 1):
        if nth in (0, count):
            parts.extend((text[end : match.start()], expand(match)))
            end = match.end()
            if nth:
                break
    return "".join(parts) + text[end:]


@rowwise("textregexreplace_noopt", examples=(("regexp_replace('foobar', 'o', 'X')", "fXobar"),))
def replace_first(text: str, pattern: str, replacement: str) -> str:
    return _replaced(text, pattern, replacement, _PLAIN)


@rowwise(
    "textregexreplace", examples=(("regexp_replace('foobar', 'o', 'X', 'g')", "fXXbar"),)
)
def replace_flagged(text: str, pattern: str, replacement: str, flags: str) -> str:
    if flags[:1].isdigit():
        raise errors.InvalidParameterValue(
            f'invalid regular expression option: "{flags[0]}"',
            hint="If you meant to use regexp_replace() with a start parameter, cast the fourth "
            "argument to integer explicitly.",
        )
    found = parse_flags(flags, allows_global=True)
    return _replaced(text, pattern, replacement, found, nth=0 if found.is_global else 1)


@rowwise(
    "textregexreplace_extended", "textregexreplace_extended_no_flags",
    "textregexreplace_extended_no_n",
)
def replace_extended(
    text: str, pattern: str, replacement: str, start: int, nth: int = 1, flags: str = ""
) -> str:
    _check_positive("start", start)
    _check_natural("n", nth)
    found = parse_flags(flags, allows_global=True)
    return _replaced(text, pattern, replacement, found, start=start, nth=nth)


def _check_positive(name: str, value: int) -> None:
    if value <= 0:
        raise errors.InvalidParameterValue(f'invalid value for parameter "{name}": {value}')


def _check_natural(name: str, value: int) -> None:
    if value < 0:
        raise errors.InvalidParameterValue(f'invalid value for parameter "{name}": {value}')


# --- match, split, count ---


def _groups(match: Any) -> ArrayValue:
    items = match.groups() if match.re.groups else (match[0],)
    return ArrayValue.of(sqltype.TEXT, tuple(items))


@rowwise(
    "regexp_match", "regexp_match_no_flags",
    examples=(("regexp_match('foobarbequebaz', '(bar)(beque)')", "{bar,beque}"),),
)
def match_first(text: str, pattern: str, flags: str = "") -> ArrayValue | None:
    if "g" in flags:
        raise errors.InvalidParameterValue(
            'regexp_match() does not support the "global" option',
            hint="Use the regexp_matches function instead.",
        )
    found = compiled(pattern, parse_flags(flags, allows_global=False)).search(text)
    return None if found is None else _groups(found)


def _matches(text: str, pattern: str, flags: str = "") -> Iterator[ArrayValue]:
    found = parse_flags(flags, allows_global=True)
    for match in compiled(pattern, found).finditer(text):
        yield _groups(match)
        if not found.is_global:
            break


rowset("regexp_matches", "regexp_matches_no_flags", results=(sqltype.TEXT_ARRAY,))(_matches)


def _split(text: str, pattern: str, flags: str = "", *, function: str) -> list[str]:
    expression = compiled(pattern, parse_flags(flags, allows_global=False, function=function))
    parts, end = [], 0
    for match in expression.finditer(text):
        if match.end() == match.start() and match.start() in (0, len(text)):
            continue
        if match.end() == match.start() == end:
            continue
        parts.append(text[end : match.start()])
        end = match.end()
    parts.append(text[end:])
    return parts


@rowwise(
    "regexp_split_to_array", "regexp_split_to_array_no_flags",
    examples=(("regexp_split_to_array('hello world', '\\s+')", "{hello,world}"),),
)
def split_to_array(text: str, pattern: str, flags: str = "") -> ArrayValue:
    parts = _split(text, pattern, flags, function="regexp_split_to_array()")
    return ArrayValue.of(sqltype.TEXT, tuple(parts))


rowset("regexp_split_to_table", "regexp_split_to_table_no_flags", results=(sqltype.TEXT,))(
    lambda text, pattern, flags="": _split(
        text, pattern, flags, function="regexp_split_to_table()"
    )
)


@rowwise(
    "regexp_count", "regexp_count_no_flags", "regexp_count_no_start",
    examples=(("regexp_count('123456789012', '\\d\\d\\d', 2)", "3"),),
)
def count_matches(text: str, pattern: str, start: int = 1, flags: str = "") -> int:
    _check_positive("start", start)
    found = parse_flags(flags, allows_global=False, function="regexp_count()")
    return sum(1 for _ in compiled(pattern, found).finditer(text, start - 1))


@rowwise(
    "regexp_like", "regexp_like_no_flags", examples=(("regexp_like('Hello', 'hello', 'i')", "t"),)
)
def is_like(text: str, pattern: str, flags: str = "") -> bool:
    found = parse_flags(flags, allows_global=False, function="regexp_like()")
    return compiled(pattern, found).search(text) is not None


def _nth_match(text: str, pattern: str, start: int, nth: int, flags: str, name: str) -> Any:
    _check_positive("start", start)
    _check_positive("n", nth)
    found = parse_flags(flags, allows_global=False, function=name)
    for count, match in enumerate(compiled(pattern, found).finditer(text, start - 1), 1):
        if count == nth:
            return match
    return None


@rowwise(
    "regexp_instr", "regexp_instr_no_endoption", "regexp_instr_no_flags", "regexp_instr_no_n",
    "regexp_instr_no_start", "regexp_instr_no_subexpr",
    examples=(("regexp_instr('ABCDEF', 'c(.)(..)', 1, 1, 0, 'i')", "3"),),
)
def position_of_match(
    text: str, pattern: str, start: int = 1, nth: int = 1, end_option: int = 0, *rest: Any
) -> int:
    """``rest``: flags and the number of the group."""
    flags: str = rest[0] if rest else ""
    group: int = rest[1] if len(rest) > 1 else 0
    if end_option not in (0, 1):
        raise errors.InvalidParameterValue(
            f'invalid value for parameter "endoption": {end_option}'
        )
    _check_natural("subexpr", group)
    found = _nth_match(text, pattern, start, nth, flags, "regexp_instr()")
    if found is None or group > found.re.groups or found.start(group) < 0:
        return 0
    return int(found.end(group) if end_option else found.start(group)) + 1


@rowwise(
    "regexp_substr", "regexp_substr_no_flags", "regexp_substr_no_n", "regexp_substr_no_start",
    "regexp_substr_no_subexpr", examples=(("regexp_substr('ABCDEF', 'c(.)', 1, 1, 'i')", "CD"),),
)
def match_text(
    text: str, pattern: str, start: int = 1, nth: int = 1, flags: str = "", group: int = 0
) -> str | None:
    _check_natural("subexpr", group)
    found = _nth_match(text, pattern, start, nth, flags, "regexp_substr()")
    if found is None or group > found.re.groups:
        return None
    result: str | None = found[group]
    return result


