"""Tokens of PostgreSQL 15's SQL, and the split of a message into statements.

One compiled regular expression finds the tokens; strings, identifiers and operators that need
more than their text are finished by small functions. Positions are characters from 0 in the text
(errors count from 1). standard_conforming_strings is always on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum

from gpudb import errors

IDENTIFIER_BYTES_MAX = 63
"""Bytes of a name that count (PostgreSQL's NAMEDATALEN - 1)."""
COMMENT_DEPTH_MAX = 10_000
"""Nesting of comments that is followed before the statement is refused."""


class Kind(IntEnum):
    """What a token is. WORD is an unquoted identifier or key word, SYMBOL a single character."""

    END = 0
    WORD = 1
    QUOTED = 2
    STRING = 3
    BITS = 4
    HEX = 5
    INTEGER = 6
    DECIMAL = 7
    PARAMETER = 8
    OPERATOR = 9
    SYMBOL = 10


class Token:
    """A token. Not frozen: hundreds are made per statement.

    ``key`` is what grammar rules compare: the folded word of a WORD, the text of an OPERATOR or
    SYMBOL, else "". ``value`` is the name, the string's content, the number's text.
    """

    __slots__ = ("end", "key", "kind", "start", "value")

    def __init__(self, kind: Kind, key: str, value: str, start: int, end: int) -> None:
        self.kind = kind
        self.key = key
        self.value = value
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"Token({self.kind.name}, {self.key!r}, {self.value!r}, {self.start}, {self.end})"


_WORD = r"[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*"
_NUMBER = r"(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_TOKEN = re.compile(
    rf"""
    (?:[ \t\n\r\f]++|--[^\n\r]*+)*+
  (?:
    (?P<word>(?![eEbBxXnN]'|[uU]&['"]){_WORD})
  | (?P<symbol>[,()\[\];] | \.(?![.0-9]))
  | (?P<string>'[^']*+(?:''[^']*+)*+')
  | (?P<number>{_NUMBER})
  | (?P<cast>::|:=|\.\.)
  | (?P<comment>/\*)
  | (?P<operator>[~!@\#^&|`?+\-*/%<>=]+)
  | (?P<quoted>"[^"]*+(?:""[^"]*+)*+")
  | (?P<parameter>\$[0-9]+)
  | (?P<dollar>\$(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)?\$)
  | (?P<escaped>[eE]'(?:[^'\\]|''|\\.)*+')
  | (?P<prefixed>[bBxXnN]'[^']*+(?:''[^']*+)*+')
  | (?P<unicode>[uU]&'[^']*+(?:''[^']*+)*+')
  | (?P<uquoted>[uU]&"[^"]*+(?:""[^"]*+)*+")
  | (?P<end>\Z)
  | (?P<other>.)
  )
    """,
    re.VERBOSE | re.DOTALL,
)
_CONTINUED = re.compile(
    r"(?:[ \t\f]|--[^\n\r]*+)*+[\n\r](?:[ \t\n\r\f]|--[^\n\r]*+[\n\r])*+'((?:[^']|'')*+)'"
)
_CONTINUED_ESCAPED = re.compile(
    r"(?:[ \t\f]|--[^\n\r]*+)*+[\n\r](?:[ \t\n\r\f]|--[^\n\r]*+[\n\r])*+"
    r"'((?:[^'\\]|''|\\.)*+)'",
    re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")
_JUNK_NUMBER = re.compile(rf"[eE][+-]|{_WORD}")
_PARAMETER_END = re.compile(_WORD)
_SPACE = re.compile(r"(?:[ \t\n\r\f]++|--[^\n\r]*+)++")
_LETTERS_TO_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_SIGN_KEEPERS = frozenset("~!@#^&|`?%")


def syntax_error(text: str, token: Token) -> errors.SyntaxError:
    """PostgreSQL's ``syntax error at or near`` for a token of ``text``."""
    if token.start == len(text) or (token.kind is Kind.END and token.start == token.end):
        return errors.SyntaxError("syntax error at end of input", position=token.start + 1)
    near = text[token.start : token.end]
    return errors.SyntaxError(f'syntax error at or near "{near}"', position=token.start + 1)


def tokenize(text: str) -> list[Token]:
    """The tokens of a whole message, an END token last.

    Raises SyntaxError (42601) and the errors of broken escapes (22021, 22025, 22P02).
    """
    tokens, error = tokenize_to_error(text)
    if error is not None:
        raise error
    return tokens


def tokenize_to_error(text: str) -> tuple[list[Token], errors.SqlError | None]:
    """The tokens up to the first that is broken, and its error.

    PostgreSQL reads tokens as its grammar asks for them: a syntax error before a broken token
    is reported first. The END token stands where the broken one starts.
    """
    tokens: list[Token] = []
    try:
        return _tokenize(text, tokens), None
    except errors.SqlError as error:
        start = max(error.position - 1, tokens[-1].end if tokens else 0)
        tokens.append(Token(Kind.END, "", "", start, start))
        return tokens, error


def _tokenize(text: str, tokens: list[Token]) -> list[Token]:
    add = tokens.append
    match = _TOKEN.match
    position = 0
    end = len(text)
    has_unicode = False
    while position < end:
        found = match(text, position)
        assert found is not None
        group = found.lastgroup
        assert group is not None
        start, position = found.span(group)
        if group == "word":
            key = text[start:position]
            key = key.lower() if key.isascii() else key.translate(_LETTERS_TO_LOWER)
            add(Token(Kind.WORD, key, key if len(key) < 16 else _cut(key), start, position))
        elif group == "symbol":
            key = text[start]
            add(Token(Kind.SYMBOL, key, key, start, position))
        elif group == "comment":
            position = _skip_comment(text, start)
        elif group != "end":
            token = _FINISH[group](text, start, position)
            position = token.end
            add(token)
            has_unicode = has_unicode or group in ("unicode", "uquoted")
    add(Token(Kind.END, "", "", end, end))
    return _decode_unicode(text, tokens) if has_unicode else tokens


def split(tokens: list[Token]) -> list[list[Token]]:
    """The statements' tokens, each closed by an END token where its semicolon stands.

    A semicolon in parentheses or in a BEGIN ATOMIC body does not end a statement; empty
    statements are left out.
    """
    statements: list[list[Token]] = []
    current: list[Token] = []
    depth = 0
    body = 0
    for token in tokens:
        key = token.key
        if token.kind is Kind.END or (key == ";" and depth <= 0 and body == 0):
            if current:
                current.append(Token(Kind.END, "", "", token.start, token.end))
                statements.append(current)
            current = []
            depth = 0
            body = 0
            continue
        if key == "(":
            depth += 1
        elif key == ")":
            depth -= 1
        elif (body and key == "case") or (
            key == "atomic" and current and current[-1].key == "begin"
        ):
            body += 1
        elif body and key == "end":
            body -= 1
        current.append(token)
    return statements


def _cut(name: str) -> str:
    """The name cut to 63 bytes, at a character's border."""
    if len(name) * 4 <= IDENTIFIER_BYTES_MAX:
        return name
    data = name.encode("utf-8", "surrogatepass")
    if len(data) <= IDENTIFIER_BYTES_MAX:
        return name
    return data[:IDENTIFIER_BYTES_MAX].decode("utf-8", "ignore")


def cut_name(name: str) -> str:
    """A name as an identifier holds it: at most 63 bytes."""
    return _cut(name)


def _near(message: str, text: str, start: int, end: int) -> errors.SyntaxError:
    return errors.SyntaxError(f'{message} at or near "{text[start:end]}"', position=start + 1)


def _skip_comment(text: str, start: int) -> int:
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
        if depth > COMMENT_DEPTH_MAX:
            raise errors.StatementTooComplex("comments are nested too deeply")
    raise _near("unterminated /* comment", text, start, len(text))


# --- numbers, parameters, operators ---------------------------------------------------------------


def _number(text: str, start: int, end: int) -> Token:
    junk = _JUNK_NUMBER.match(text, end)
    if junk is not None:
        raise _near("trailing junk after numeric literal", text, start, junk.end())
    value = text[start:end]
    kind = Kind.INTEGER if value.isdigit() else Kind.DECIMAL
    return Token(kind, "", value, start, end)


def _parameter(text: str, start: int, end: int) -> Token:
    junk = _PARAMETER_END.match(text, end)
    if junk is not None:
        raise _near("trailing junk after parameter", text, start, junk.end())
    return Token(Kind.PARAMETER, "", text[start + 1 : end], start, end)


def _mark(text: str, start: int, end: int) -> Token:
    return Token(Kind.SYMBOL, text[start:end], text[start:end], start, end)


def _operator(text: str, start: int, end: int) -> Token:
    """An operator by PostgreSQL's rule: cut at a comment, no trailing sign without ~!@#^&|`?%."""
    name = text[start:end]
    if len(name) > 1:
        for opener in ("/*", "--"):
            at = name.find(opener)
            if at > 0:
                name = name[:at]
        while len(name) > 1 and name[-1] in "+-" and not _SIGN_KEEPERS.intersection(name):
            name = name[:-1]
    if len(name) > IDENTIFIER_BYTES_MAX:
        raise _near("operator too long", text, start, start + len(name))
    key = "<>" if name == "!=" else name
    return Token(Kind.OPERATOR, key, key, start, start + len(name))


# --- strings --------------------------------------------------------------------------------------


def _string(text: str, start: int, end: int) -> Token:
    value, end = _continued(text, end, text[start + 1 : end - 1])
    return Token(Kind.STRING, "", value.replace("''", "'"), start, end)


def _continued(text: str, end: int, value: str) -> tuple[str, int]:
    """The raw content with further segments on following lines, and where the last one ends."""
    following = text[end : end + 1]
    if following not in ("\n", "\r", " ", "\t", "\f", "-"):
        return value, end
    while (more := _CONTINUED.match(text, end)) is not None:
        value += more.group(1)
        end = more.end()
    space = _SPACE.match(text, end)
    if space is None or text[space.end() : space.end() + 1] != "'":
        return value, end
    if any(c in "\n\r" for c in space.group()) and text.find("'", space.end() + 1) < 0:
        raise _near("unterminated quoted string", text, end, len(text))
    return value, end


def _dollar(text: str, start: int, end: int) -> Token:
    mark = text[start:end]
    close = text.find(mark, end)
    if close < 0:
        raise _near("unterminated dollar-quoted string", text, start, len(text))
    return Token(Kind.STRING, "", text[end:close], start, close + len(mark))


def _prefixed(text: str, start: int, end: int) -> Token:
    value, end = _continued(text, end, text[start + 2 : end - 1])
    letter = text[start].lower()
    if letter == "n":
        return Token(Kind.STRING, "national", value.replace("''", "'"), start, end)
    digits, name, kind = ("01", "binary", Kind.BITS)
    if letter == "x":
        digits, name, kind = ("0123456789abcdefABCDEF", "hexadecimal", Kind.HEX)
    for character in value:
        if character not in digits:
            raise errors.InvalidTextRepresentation(
                f'"{character}" is not a valid {name} digit', position=start + 1
            )
    return Token(kind, "", value, start, end)


_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))|''",
    re.DOTALL,
)
_LETTER_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _escaped(text: str, start: int, end: int) -> Token:
    """An E'' string. Byte escapes are joined with their neighbours and must be valid UTF-8."""
    raw = text[start + 2 : end - 1]
    offset = start + 2
    while (more := _CONTINUED_ESCAPED.match(text, end)) is not None:
        raw += more.group(1)
        end = more.end()
    if "\\" not in raw:
        return Token(Kind.STRING, "", raw.replace("''", "'"), start, end)
    data = bytearray()
    last = 0
    high = 0
    for found in _ESCAPE.finditer(raw):
        data += raw[last : found.start()].encode("utf-8")
        at = offset + found.start()
        if high and (found.start() != last or not (found.group(1) or found.group(2))):
            raise _bad_pair(text, offset + last)
        last = found.end()
        high = _add_escape(data, found, high, text=text, position=at)
    if high:
        raise _bad_pair(text, offset + last)
    data += raw[last:].encode("utf-8")
    return Token(Kind.STRING, "", _decode(bytes(data)), start, end)


def _add_escape(
    data: bytearray, found: re.Match[str], high: int, *, text: str, position: int
) -> int:
    """Append one escape; returns the first half of a surrogate pair that waits for its second."""
    four, eight, hexadecimal, octal, letter = found.groups()
    if four or eight:
        code = int(four or eight, 16)
        if high:
            if not 0xDC00 <= code <= 0xDFFF:
                raise _bad_pair(text, position)
            code = 0x10000 + ((high & 0x3FF) << 10) + (code & 0x3FF)
        elif 0xD800 <= code <= 0xDBFF:
            return code
        elif 0xDC00 <= code <= 0xDFFF:
            raise _bad_pair(text, position)
        if code == 0 or code > 0x10FFFF:
            raise _near(
                "invalid Unicode escape value",
                text,
                position,
                position + found.end() - found.start(),
            )
        data += chr(code).encode("utf-8")
    elif hexadecimal or octal:
        data.append(int(hexadecimal, 16) if hexadecimal else int(octal, 8) & 0xFF)
    elif letter in ("u", "U"):
        raise errors.InvalidEscapeSequence(
            "invalid Unicode escape",
            hint="Unicode escapes must be \\uXXXX or \\UXXXXXXXX.",
            position=position + 1,
        )
    else:
        plain = "'" if letter is None else _LETTER_ESCAPES.get(letter, letter)
        data += plain.encode("utf-8")
    return 0


def _bad_pair(text: str, position: int) -> errors.SyntaxError:
    return _near("invalid Unicode surrogate pair", text, position, position + 1)


def _decode(data: bytes) -> str:
    try:
        value = data.decode("utf-8")
    except UnicodeDecodeError as failure:
        bad = " ".join(
            f"0x{b:02x}" for b in data[failure.start : max(failure.end, failure.start + 1)]
        )
        raise _bad_encoding(bad) from None
    if "\0" in value:
        raise _bad_encoding("0x00")
    return value


def _bad_encoding(octets: str) -> errors.CharacterNotInRepertoire:
    return errors.CharacterNotInRepertoire(f'invalid byte sequence for encoding "UTF8": {octets}')


# --- identifiers ----------------------------------------------------------------------------------


def _quoted(text: str, start: int, end: int) -> Token:
    name = text[start + 1 : end - 1].replace('""', '"')
    if not name:
        raise _near("zero-length delimited identifier", text, start, end)
    return Token(Kind.QUOTED, "", _cut(name), start, end)


def _unicode_string(text: str, start: int, end: int) -> Token:
    value, end = _continued(text, end, text[start + 3 : end - 1])
    return Token(Kind.STRING, "u&", value.replace("''", "'"), start, end)


def _unicode_quoted(text: str, start: int, end: int) -> Token:
    name = text[start + 3 : end - 1].replace('""', '"')
    if not name:
        raise _near("zero-length delimited identifier", text, start, end)
    return Token(Kind.QUOTED, "u&", name, start, end)


def _decode_unicode(text: str, tokens: list[Token]) -> list[Token]:
    """Tokens with U& strings and names decoded and their UESCAPE clauses taken away."""
    kept: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        index += 1
        kept.append(token)
        if token.key != "u&" or token.kind not in (Kind.STRING, Kind.QUOTED):
            continue
        escape = "\\"
        end = token.end
        if tokens[index].key == "uescape":
            escape = _escape_character(text, tokens[index + 1])
            end = tokens[index + 1].end
            index += 2
        value = _decode_escapes(text, token, escape)
        if token.kind is Kind.QUOTED:
            value = _cut(value)
        kept[-1] = Token(token.kind, "", value, token.start, end)
    return kept


def _escape_character(text: str, token: Token) -> str:
    if token.kind is not Kind.STRING:
        message = "UESCAPE must be followed by a simple string literal"
        if token.kind is Kind.END:
            raise errors.SyntaxError(f"{message} at end of input", position=token.start + 1)
        raise _near(message, text, token.start, token.end)
    value = token.value
    if len(value) != 1 or value in "+'\" \t\n\r\f" or value in "0123456789abcdefABCDEF":
        raise _near("invalid Unicode escape character", text, token.start, token.end)
    return value


def _decode_escapes(text: str, token: Token, escape: str) -> str:
    raw = token.value
    if escape not in raw:
        return raw
    mark = re.escape(escape)
    pattern = re.compile(rf"{mark}(?:([0-9a-fA-F]{{4}})|\+([0-9a-fA-F]{{6}})|({mark})|)")
    parts: list[str] = []
    last = 0
    high = 0
    for found in pattern.finditer(raw):
        at = token.start + 3 + found.start()
        if high and found.start() != last:
            raise _plain_bad_pair(at)
        parts.append(raw[last : found.start()])
        last = found.end()
        high = _add_unicode(parts, found, high, position=at)
    if high:
        raise _plain_bad_pair(token.start + 3 + len(raw))
    parts.append(raw[last:])
    return "".join(parts)


def _add_unicode(parts: list[str], found: re.Match[str], high: int, *, position: int) -> int:
    four, six, doubled = found.groups()
    if doubled:
        if high:
            raise _plain_bad_pair(position)
        parts.append(doubled)
        return 0
    if not four and not six:
        raise errors.SyntaxError(
            "invalid Unicode escape",
            hint="Unicode escapes must be \\XXXX or \\+XXXXXX.",
            position=position + 1,
        )
    code = int(four or six, 16)
    if code == 0 or code > 0x10FFFF:
        raise errors.SyntaxError("invalid Unicode escape value", position=position + 1)
    if high:
        if not 0xDC00 <= code <= 0xDFFF:
            raise _plain_bad_pair(position)
        code = 0x10000 + ((high & 0x3FF) << 10) + (code & 0x3FF)
    elif 0xD800 <= code <= 0xDBFF:
        return code
    elif 0xDC00 <= code <= 0xDFFF:
        raise _plain_bad_pair(position)
    parts.append(chr(code))
    return 0


def _plain_bad_pair(position: int) -> errors.SyntaxError:
    return errors.SyntaxError("invalid Unicode surrogate pair", position=position + 1)


def _other(text: str, start: int, end: int) -> Token:
    """A character that starts nothing: an unterminated quote, or a symbol the grammar refuses."""
    character = text[start]
    if character == "'":
        raise _near("unterminated quoted string", text, start, len(text))
    if character == '"':
        raise _near("unterminated quoted identifier", text, start, len(text))
    if character in "eEnNbBxXuU":
        what = "quoted string"
        if character in "bB":
            what = "bit string literal"
        elif character in "xX":
            what = "hexadecimal string literal"
        elif character in "nN":
            start += 1
        elif text[start + 1 : start + 3] == '&"':
            what = "quoted identifier"
        raise _near(f"unterminated {what}", text, start, len(text))
    return Token(Kind.SYMBOL, character, character, start, end)


_FINISH: dict[str, Callable[[str, int, int], Token]] = {
    "string": _string,
    "number": _number,
    "cast": _mark,
    "operator": _operator,
    "quoted": _quoted,
    "parameter": _parameter,
    "dollar": _dollar,
    "escaped": _escaped,
    "prefixed": _prefixed,
    "unicode": _unicode_string,
    "uquoted": _unicode_quoted,
    "other": _other,
}
