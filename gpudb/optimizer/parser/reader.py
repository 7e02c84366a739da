"""A cursor over tokens: what every grammar rule is written with."""

from __future__ import annotations

from typing import NoReturn

from gpudb import errors
from gpudb.optimizer.keywords import NEEDS_AS, NOT_COLUMN, NOT_FUNCTION, RESERVED
from gpudb.optimizer.lexer import Kind, Token, syntax_error
from gpudb.optimizer.statements.nodes.base import QualifiedName, Slice

INT4_MAX = 2**31 - 1


class Reader:
    """Tokens of one statement, an END token last, and the text they come from.

    ``shift`` is added to every offset that leaves the reader: the place of ``text`` in the whole
    message.
    """

    def __init__(self, text: str, tokens: list[Token], shift: int = 0) -> None:
        self.text = text
        self.tokens = tokens
        self.index = 0
        self.shift = shift
        self.token = tokens[0]

    # --- moving ---

    def advance(self) -> Token:
        """The current token; the cursor moves to the next one."""
        token = self.token
        if token.kind is not Kind.END:
            self.index += 1
            self.token = self.tokens[self.index]
        return token

    def seek(self, index: int) -> None:
        self.index = index
        self.token = self.tokens[index]

    def peek(self, ahead: int = 1) -> Token:
        index = self.index + ahead
        return self.tokens[index] if index < len(self.tokens) else self.tokens[-1]

    def at(self, *keys: str) -> bool:
        """Whether the next tokens are these key words or symbols."""
        if self.token.key != keys[0]:
            return False
        return all(self.peek(i).key == keys[i] for i in range(1, len(keys)))

    def accept(self, *keys: str) -> bool:
        """Take these key words or symbols when they come next."""
        if self.token.key != keys[0] or not keys[0]:
            return False
        if len(keys) > 1 and not self.at(*keys):
            return False
        for _ in keys:
            self.advance()
        return True

    def expect(self, *keys: str) -> None:
        """Take these key words or symbols, or fail at the first that differs."""
        for key in keys:
            if self.token.key != key:
                self.fail()
            self.advance()

    def choose(self, *keys: str) -> str:
        """Take one of the key words and return it, or fail."""
        key = self.token.key
        if key not in keys or not key:
            self.fail()
        self.advance()
        return key

    def accept_any(self, *keys: str) -> str:
        """Take one of the key words and return it, or ""."""
        key = self.token.key
        if not key or key not in keys:
            return ""
        self.advance()
        return key

    def at_end(self) -> bool:
        return self.token.kind is Kind.END

    def expect_end(self) -> None:
        if self.token.kind is not Kind.END:
            self.fail()

    # --- errors and slices ---

    def fail(self, token: Token | None = None) -> NoReturn:
        """Raise PostgreSQL's syntax error at a token, the current one by default."""
        raise self.failure(token)

    def failure(self, token: Token | None = None) -> errors.SyntaxError:
        """The syntax error that fail() raises."""
        error = syntax_error(self.text, token or self.token)
        error.position += self.shift
        return error

    def error_at(self, token: Token, message: str) -> errors.SyntaxError:
        return errors.SyntaxError(message, position=self.position(token))

    def refuse(self, token: Token, message: str) -> NoReturn:
        """Raise FeatureNotSupported (0A000) at a token."""
        raise errors.FeatureNotSupported(message, position=self.position(token))

    def position(self, token: Token) -> int:
        """Characters from 1 in the whole message."""
        return token.start + self.shift + 1

    def slice_from(self, start: Token) -> Slice:
        """The source from a token up to the last one taken."""
        end = self.tokens[self.index - 1].end if self.index else start.start
        return Slice(self.text[start.start : max(end, start.start)], start.start + self.shift)

    # --- names ---

    def at_column_name(self) -> bool:
        """Whether a ColId comes next."""
        token = self.token
        return token.kind is Kind.QUOTED or (
            token.kind is Kind.WORD and token.key not in NOT_COLUMN
        )

    def name(self) -> str:
        """A column, table, schema or role name (PostgreSQL's ColId)."""
        token = self.token
        if token.kind is Kind.WORD:
            if token.key in NOT_COLUMN:
                self.fail()
        elif token.kind is not Kind.QUOTED:
            self.fail()
        self.advance()
        return token.value

    def label(self) -> str:
        """Any word (ColLabel): after AS and after a dot."""
        token = self.token
        if token.kind is not Kind.WORD and token.kind is not Kind.QUOTED:
            self.fail()
        self.advance()
        return token.value

    def at_bare_label(self) -> bool:
        token = self.token
        return token.kind is Kind.QUOTED or (token.kind is Kind.WORD and token.key not in NEEDS_AS)

    def type_or_function_name(self) -> str:
        token = self.token
        if token.kind is Kind.WORD:
            if token.key in NOT_FUNCTION:
                self.fail()
        elif token.kind is not Kind.QUOTED:
            self.fail()
        self.advance()
        return token.value

    def non_reserved(self) -> str:
        """A word that is not reserved (NonReservedWord), or a quoted name."""
        token = self.token
        if token.kind is Kind.WORD:
            if token.key in RESERVED:
                self.fail()
        elif token.kind is not Kind.QUOTED:
            self.fail()
        self.advance()
        return token.value

    def non_reserved_or_string(self) -> str:
        if self.token.kind is Kind.STRING:
            return self.advance().value
        return self.non_reserved()

    def qualified_name(self) -> QualifiedName:
        """ColId with any number of ``.label``."""
        start = self.token
        parts = [self.name()]
        while self.token.key == ".":
            self.advance()
            parts.append(self.label())
        return QualifiedName(tuple(parts), self.position(start))

    def table_name(self) -> QualifiedName:
        """A qualified name of at most three parts."""
        start = self.token
        name = self.qualified_name()
        if len(name.parts) > 3:
            raise self.error_at(start, f"improper qualified name (too many dotted names): {name}")
        return name

    def names(self) -> tuple[str, ...]:
        """``name [, ...]``"""
        found = [self.name()]
        while self.accept(","):
            found.append(self.name())
        return tuple(found)

    def parenthesized_names(self) -> tuple[str, ...]:
        self.expect("(")
        found = self.names()
        self.expect(")")
        return found

    # --- constants ---

    def string(self) -> str:
        if self.token.kind is not Kind.STRING:
            self.fail()
        return self.advance().value

    def unsigned_integer(self) -> int:
        """An integer constant that fits int4 (PostgreSQL's Iconst)."""
        token = self.token
        if token.kind is not Kind.INTEGER or int(token.value) > INT4_MAX:
            self.fail()
        self.advance()
        return int(token.value)

    def signed_integer(self) -> int:
        sign = self.accept_any("+", "-")
        value = self.unsigned_integer()
        return -value if sign == "-" else value

    def number_text(self) -> str:
        """A signed number's text."""
        sign = self.accept_any("+", "-")
        if self.token.kind not in (Kind.INTEGER, Kind.DECIMAL):
            self.fail()
        value = self.advance().value
        return "-" + value if sign == "-" else value
