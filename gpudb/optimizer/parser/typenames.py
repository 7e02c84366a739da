"""Type names: PostgreSQL's Typename with its many spellings."""

from __future__ import annotations

from gpudb import errors
from gpudb.optimizer.lexer import Kind, Token
from gpudb.optimizer.parser.reader import Reader
from gpudb.optimizer.statements.nodes.base import TypeName

_SIMPLE = {
    "int": "int4",
    "integer": "int4",
    "smallint": "int2",
    "bigint": "int8",
    "real": "float4",
    "boolean": "bool",
}
_WITH_MODIFIERS = {"decimal": "numeric", "dec": "numeric", "numeric": "numeric"}
_CHARACTER = frozenset(("character", "char", "varchar", "national", "nchar"))
KEYWORD_TYPES = frozenset(
    {
        *_SIMPLE,
        *_WITH_MODIFIERS,
        *_CHARACTER,
        "float",
        "bit",
        "time",
        "timestamp",
        "interval",
    }
)
"""Key words that start a type of their own grammar (double needs PRECISION behind it)."""
_INTERVAL_FIELDS = {
    "year": ("month",),
    "month": (),
    "day": ("hour", "minute", "second"),
    "hour": ("minute", "second"),
    "minute": ("second",),
    "second": (),
}


class TypeReader(Reader):
    """Grammar rules for type names."""

    def at_keyword_type(self) -> bool:
        key = self.token.key
        return key in KEYWORD_TYPES or (key == "double" and self.peek().key == "precision")

    def type_name(self, *, allow_set: bool = True) -> TypeName:
        """A type with SETOF and array bounds. Raises SyntaxError; %TYPE is refused (0A000)."""
        is_set = allow_set and self.accept("setof")
        found = self.simple_type()
        bounds = self._array_bounds()
        if not bounds and not is_set:
            return found
        return TypeName(
            found.name,
            found.schema,
            found.modifiers,
            bounds,
            is_set,
            found.fields,
            position=found.position,
        )

    def simple_type(self) -> TypeName:
        """A type without SETOF and array bounds."""
        if self.at_keyword_type():
            return self.keyword_type(is_constant=False)
        start = self.token
        parts = [self.type_or_function_name()]
        while self.token.key == ".":
            self.advance()
            parts.append(self.label())
        if self.at("%", "type"):
            self.refuse(self.token, "type references with %TYPE are not supported")
        if len(parts) > 3:
            raise self.error_at(
                start,
                f"improper qualified name (too many dotted names): {'.'.join(parts)}",
            )
        schema = parts[-2] if len(parts) > 1 else ""
        return TypeName(parts[-1], schema, self._modifiers(), position=self.position(start))

    def keyword_type(self, *, is_constant: bool) -> TypeName:
        """A type spelled by key words; before a string constant the default length differs."""
        start = self.advance()
        key = start.key
        if key in _SIMPLE:
            return self._built(start, _SIMPLE[key])
        if key in _WITH_MODIFIERS:
            return self._built(start, _WITH_MODIFIERS[key], self._modifiers())
        if key == "float":
            return self._float(start)
        if key == "double":
            self.expect("precision")
            return self._built(start, "float8")
        if key == "bit":
            return self._bit(start, is_constant)
        if key in _CHARACTER:
            return self._character(start, is_constant)
        if key == "interval":
            return self._interval(start, is_constant)
        return self._time(start)

    def interval_fields(self) -> tuple[str, tuple[str, ...]]:
        """The fields after INTERVAL ("" for none) and the precision of SECOND."""
        first = self.token.key
        if first not in _INTERVAL_FIELDS:
            return "", ()
        self.advance()
        fields = first
        if self.token.key == "to" and _INTERVAL_FIELDS[first]:
            self.advance()
            last = self.choose(*_INTERVAL_FIELDS[first])
            fields = f"{first} to {last}"
        precision: tuple[str, ...] = ()
        if fields.endswith("second") and self.accept("("):
            precision = (str(self.unsigned_integer()),)
            self.expect(")")
        return fields, precision

    def _built(
        self, start: Token, name: str, modifiers: tuple[str, ...] = (), fields: str = ""
    ) -> TypeName:
        return TypeName(name, "pg_catalog", modifiers, fields=fields, position=self.position(start))

    def _array_bounds(self) -> tuple[int, ...]:
        if self.accept("array"):
            if not self.accept("["):
                return (-1,)
            size = self.unsigned_integer()
            self.expect("]")
            return (size,)
        bounds: list[int] = []
        while self.token.key == "[":
            self.advance()
            bounds.append(-1 if self.token.key == "]" else self.unsigned_integer())
            self.expect("]")
        return tuple(bounds)

    def _modifiers(self) -> tuple[str, ...]:
        """The parenthesized modifiers: constants or words."""
        if self.token.key != "(":
            return ()
        self.advance()
        found = [self._modifier()]
        while self.accept(","):
            found.append(self._modifier())
        self.expect(")")
        return tuple(found)

    def _modifier(self) -> str:
        token = self.token
        if token.kind in (Kind.STRING, Kind.WORD, Kind.QUOTED):
            return self.advance().value
        return self.number_text()

    def _float(self, start: Token) -> TypeName:
        if not self.accept("("):
            return self._built(start, "float8")
        size_token = self.token
        size = self.unsigned_integer()
        self.expect(")")
        if size < 1 or size > 53:
            bound = "at least 1 bit" if size < 1 else "less than 54 bits"
            raise errors.InvalidParameterValue(
                f"precision for type float must be {bound}",
                position=self.position(size_token),
            )
        return self._built(start, "float4" if size <= 24 else "float8")

    def _bit(self, start: Token, is_constant: bool) -> TypeName:
        if self.accept("varying"):
            return self._built(start, "varbit", self._modifiers())
        modifiers = self._modifiers()
        if not modifiers and not is_constant:
            modifiers = ("1",)
        return self._built(start, "bit", modifiers)

    def _character(self, start: Token, is_constant: bool) -> TypeName:
        is_varying = start.key == "varchar"
        if start.key == "national":
            self.choose("character", "char")
        if not is_varying:
            is_varying = self.accept("varying")
        modifiers: tuple[str, ...] = ()
        if self.accept("("):
            modifiers = (str(self.unsigned_integer()),)
            self.expect(")")
        if not modifiers and not is_varying and not is_constant:
            modifiers = ("1",)
        return self._built(start, "varchar" if is_varying else "bpchar", modifiers)

    def _time(self, start: Token) -> TypeName:
        modifiers: tuple[str, ...] = ()
        if self.accept("("):
            modifiers = (str(self.unsigned_integer()),)
            self.expect(")")
        zoned = False
        if self.at("with", "time"):
            self.expect("with", "time", "zone")
            zoned = True
        elif self.at("without", "time"):
            self.expect("without", "time", "zone")
        return self._built(start, start.key + ("tz" if zoned else ""), modifiers)

    def _interval(self, start: Token, is_constant: bool) -> TypeName:
        if self.accept("("):
            modifiers = (str(self.unsigned_integer()),)
            self.expect(")")
            return self._built(start, "interval", modifiers)
        if is_constant:
            return self._built(start, "interval")
        fields, precision = self.interval_fields()
        return self._built(start, "interval", precision, fields)
