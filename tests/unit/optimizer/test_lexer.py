"""The lexer: tokens, positions, PostgreSQL's errors, the split into statements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudb import errors
from gpudb.optimizer.keywords import KEY_WORDS, needs_quotes, quote_identifier
from gpudb.optimizer.lexer import Kind, split, tokenize


def values(text: str) -> list[str]:
    return [token.value for token in tokenize(text)[:-1]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SeLeCt Ärger", ["select", "Ärger"]),
        ('"A""b" "select"', ['A"b', "select"]),
        ("a$1 _x", ["a$1", "_x"]),
        ("$1,$2::int", ["1", ",", "2", "::", "int"]),
        ("1 1.5 .5 1. 1e10 1.5e-3 2.e5", ["1", "1.5", ".5", "1.", "1e10", "1.5e-3", "2.e5"]),
        ("1..2", ["1", "..", "2"]),
        ("a.b", ["a", ".", "b"]),
        ("'it''s'", ["it's"]),
        ("'a'\n  'b'", ["ab"]),
        ("'a' -- note\n 'b'", ["ab"]),
        (r"E'\n\t\\\'\x41\101\u00e9\U0001F600'", ["\n\t\\'AAé😀"]),
        (r"E'\ud83d\ude00'", ["😀"]),
        ("$$a'b$$ $x$ $$ $x$", ["a'b", " $$ "]),
        ("b'01' X'1f'", ["01", "1f"]),
        ("U&'d\\0061t\\+000061'", ["data"]),
        ("U&'d!0061!!' UESCAPE '!'", ["da!"]),
        ('U&"d\\0061"', ["da"]),
        ("a/* x /* y */ z */b--c\nd", ["a", "b", "d"]),
        ("a+-b", ["a", "+", "-", "b"]),
        ("@-1", ["@-", "1"]),
        ("a<>-1", ["a", "<>", "-", "1"]),
        ("a!=b", ["a", "<>", "b"]),
        ("5 !==- 3", ["5", "!==-", "3"]),
        ("a*/*c*/b", ["a", "*", "b"]),
        ("a--b", ["a"]),
        ("x=>y x:=y", ["x", "=>", "y", "x", ":=", "y"]),
        ("a[1:2]", ["a", "[", "1", ":", "2", "]"]),
        ("e'a' n'b' bx x1", ["a", "b", "bx", "x1"]),
    ],
)
def test_values(text: str, expected: list[str]) -> None:
    assert values(text) == expected


def test_names_are_cut_to_63_bytes() -> None:
    assert values("a" * 70) == ["a" * 63]
    assert values('"' + "é" * 40 + '"') == ["é" * 31]


def test_quoted_words_are_no_key_words() -> None:
    tokens = tokenize('select "select"')
    assert (tokens[0].key, tokens[1].key) == ("select", "")


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("select 'abc", 'unterminated quoted string at or near "\'abc"', 8),
        ("select 'a''b", "unterminated quoted string at or near \"'a''b\"", 8),
        ("select E'a''b\\'", "unterminated quoted string at or near \"E'a''b\\'\"", 8),
        ('select "abc', 'unterminated quoted identifier at or near ""abc"', 8),
        ('select "";', 'zero-length delimited identifier at or near """"', 8),
        ("select /* a /* b */", 'unterminated /* comment at or near "/* a /* b */"', 8),
        ("select $a$ x", 'unterminated dollar-quoted string at or near "$a$ x"', 8),
        ("select b'01", 'unterminated bit string literal at or near "b\'01"', 8),
        ("select x'ab", 'unterminated hexadecimal string literal at or near "x\'ab"', 8),
        ("select e'abc", 'unterminated quoted string at or near "e\'abc"', 8),
        ("select 1a", 'trailing junk after numeric literal at or near "1a"', 8),
        ("select 1.5e", 'trailing junk after numeric literal at or near "1.5e"', 8),
        ("select 1e+;", 'trailing junk after numeric literal at or near "1e+"', 8),
        ("select 1_000", 'trailing junk after numeric literal at or near "1_000"', 8),
        ("select $1a", 'trailing junk after parameter at or near "$1a"', 8),
        ("select u&'\\00zz'", "invalid Unicode escape", 11),
        ("select u&'\\d800'", "invalid Unicode surrogate pair", 16),
        (
            "select u&'a' uescape 'a'",
            "invalid Unicode escape character at or near \"'a'\"",
            22,
        ),
        (
            "select u&'x' uescape",
            "UESCAPE must be followed by a simple string literal at end of input",
            21,
        ),
    ],
)
def test_errors(text: str, message: str, position: int) -> None:
    with pytest.raises(errors.SyntaxError) as caught:
        tokenize(text)
    assert (caught.value.message, caught.value.position) == (message, position)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("b'012'", errors.InvalidTextRepresentation),
        ("x'0g'", errors.InvalidTextRepresentation),
        (r"E'\x80'", errors.CharacterNotInRepertoire),
        (r"E'\000'", errors.CharacterNotInRepertoire),
        (r"E'\u00zz'", errors.InvalidEscapeSequence),
    ],
)
def test_bad_contents(text: str, kind: type[errors.SqlError]) -> None:
    with pytest.raises(kind):
        tokenize(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (" ; ; -- x", 0),
        ("select 1; select 2", 2),
        ("select ';' ; select \";\" /* ; */", 2),
        ("create rule r as on insert to t do also (select 1; select 2); select 3", 2),
        (
            "create function f() returns int begin atomic select case when true then 1 end;"
            " select 2; end; select 3",
            2,
        ),
    ],
)
def test_split(text: str, count: int) -> None:
    assert len(split(tokenize(text))) == count


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8")))
def test_quoted_strings_round_trip(value: str) -> None:
    assert values("'" + value.replace("'", "''") + "'") == [value]


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=12))
def test_escape_strings_round_trip(value: str) -> None:
    escaped = "".join(f"\\U{ord(character):08x}" for character in value)
    assert values(f"E'{escaped}'") == [value]


@given(
    st.text(
        st.characters(exclude_characters="\0", codec="utf-8"),
        min_size=1,
        max_size=15,
    )
)
def test_identifiers_round_trip(name: str) -> None:
    assert values(quote_identifier(name)) == [name]


@given(st.text("abcXYZ019_ \n.,()[]'\"$:;+-*/<>=~!@#%^&|`?\\é", max_size=40))
def test_any_text_gives_tokens_or_an_sql_error(text: str) -> None:
    try:
        tokens = tokenize(text)
    except errors.SqlError as error:
        assert 0 <= error.position <= len(text) + 1
        return
    assert tokens[-1].kind is Kind.END
    ends = [token.end for token in tokens]
    assert ends == sorted(ends)
    for token in tokens:
        if token.kind is Kind.WORD and text.isascii():
            assert text[token.start : token.end].lower() == token.key


def test_time_is_linear() -> None:
    for text in (
        "'a' " + "-" * 5000,
        "'a'\n" + "--\n" * 2000,
        "E'" + "''" * 5000,
        '"' + '""' * 5000,
    ):
        try:
            tokenize(text)
        except errors.SyntaxError as error:
            assert error.position == 1


def test_key_words() -> None:
    assert len(KEY_WORDS) == 460
    assert KEY_WORDS["select"].category == "R"
    assert not KEY_WORDS["day"].bare_label
    assert KEY_WORDS["int"].category == "C"
    assert KEY_WORDS["left"].category == "T"
    assert not needs_quotes("abc_1")
    assert not needs_quotes("abort")
    for name in ("select", "int", "left", "Abc", "1a", "a b", "", "é", "a$"):
        assert needs_quotes(name)
