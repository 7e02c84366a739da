"""Function calls, casts, literals, and the SQL standard's calls with grammar of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NoReturn

from sqlglot import exp

from gpudb import errors
from gpudb.optimizer.lexer import Kind, Token
from gpudb.optimizer.parser.typenames import TypeReader
from gpudb.optimizer.statements.nodes.base import QualifiedName, TypeName

EXPRESSION_DEPTH_MAX = 150
"""Nesting of expressions and queries; deeper ones fail like PostgreSQL's stack limit (54001)."""
_FRAME_SIDES = ("preceding", "following")
_FRAME_KINDS = frozenset(("range", "rows", "groups"))

_QUERY_WORDS = frozenset(("select", "values", "with", "table"))
_AFTER_QUERY = frozenset(
    (")", "union", "intersect", "except", "order", "limit", "offset", "fetch", "for")
)


class CallReader(TypeReader):
    """Grammar rules for calls. Nodes carry ``meta["span"]``: (position of the node as
    PostgreSQL reports it, start, end), characters from 0 in the whole message."""

    special_calls: ClassVar[frozenset[str]] = frozenset(
        [
            "cast",
            "coalesce",
            "greatest",
            "least",
            "nullif",
            "extract",
            "overlay",
            "position",
            "substring",
            "trim",
            "treat",
            "normalize",
            "collation",
            "xmlconcat",
            "xmlelement",
            "xmlexists",
            "xmlforest",
            "xmlparse",
            "xmlpi",
            "xmlroot",
            "xmlserialize",
        ]
    )
    depth = 0
    bare_call: Token | None = None
    """Where a call in FROM starts: FILTER and OVER behind it would be its alias."""
    _closings: dict[int, int] | None = None

    def expression(self) -> exp.Expression:
        raise NotImplementedError

    def b_expression(self) -> exp.Expression:
        raise NotImplementedError

    def expressions(self) -> list[exp.Expression]:
        raise NotImplementedError

    def query(self) -> exp.Expression:
        raise NotImplementedError

    def opens_query(self) -> bool:
        """Whether the parenthesis at the cursor encloses a query as a whole.

        ``((select 1) + 2)`` does not: after the innermost query only what continues a query may
        follow.
        """
        if self.token.key != "(":
            return False
        innermost = self.index
        while self.tokens[innermost + 1].key == "(":
            innermost += 1
        first = self.tokens[innermost + 1].key
        if first not in _QUERY_WORDS:
            return False
        for index in range(innermost, self.index, -1):
            closing = self._closing_parenthesis(index)
            if closing < 0 or self.tokens[closing + 1].key not in _AFTER_QUERY:
                return False
        return True

    def _closing_parenthesis(self, opening: int) -> int:
        """The index of the parenthesis that closes the one at ``opening``, -1 for none."""
        if self._closings is None:
            self._closings = {}
            waiting: list[int] = []
            for index, token in enumerate(self.tokens):
                if token.key == "(":
                    waiting.append(index)
                elif token.key == ")" and waiting:
                    self._closings[waiting.pop()] = index
        return self._closings.get(opening, -1)

    def parenthesized_query(self) -> exp.Expression:
        self.expect("(")
        query = self.query()
        self.expect(")")
        return query

    # --- nodes ---

    def mark(self, node: exp.Expression, start: Token, at: Token) -> exp.Expression:
        """Note where a node stands: from ``start`` to the last token taken, reported ``at``."""
        end = self.tokens[self.index - 1].end
        shift = self.shift
        node.meta["span"] = (at.start + shift, start.start + shift, end + shift)
        return node

    def enter(self) -> None:
        self.depth += 1
        if self.depth > EXPRESSION_DEPTH_MAX:
            raise errors.StatementTooComplex(
                "stack depth limit exceeded",
                hint=f"Expressions may be nested {EXPRESSION_DEPTH_MAX} levels deep.",
            )

    def leave(self) -> None:
        self.depth -= 1

    def literal(self, token: Token) -> exp.Expression:
        """The constant of a token already taken."""
        kind = token.kind
        node: exp.Expression
        if kind is Kind.BITS:
            node = exp.BitString(this=token.value)
        elif kind is Kind.HEX:
            node = exp.HexString(this=token.value)
        elif token.key == "national":
            node = self.cast(self.string_node(token, token.value), TypeName("bpchar", "pg_catalog"))
        else:
            node = exp.Literal(this=token.value, is_string=kind is Kind.STRING)
        return self.mark(node, token, token)

    def string_node(self, token: Token, value: str) -> exp.Expression:
        return self.mark(exp.Literal(this=value, is_string=True), token, token)

    def cast(self, node: exp.Expression, type_name: TypeName) -> exp.Expression:
        """A Cast to the type (``type_name()`` of gpudb.optimizer.parser reads it back)."""
        return exp.Cast(this=node, to=exp.DataType(this=exp.DType.USERDEFINED, kind=type_name))

    def constant_of(self, type_name: TypeName, start: Token) -> exp.Expression:
        """A typed literal whose string comes next, with an interval's fields behind it."""
        token = self.advance()
        is_interval = (type_name.schema, type_name.name) == ("pg_catalog", "interval")
        if is_interval and not type_name.modifiers:
            fields, precision = self.interval_fields()
            type_name = replace(type_name, fields=fields, modifiers=precision)
        node = self.cast(self.string_node(token, token.value), type_name)
        return self.mark(node, start, start)

    def typed_literal(
        self, parts: list[str], modifiers: tuple[str, ...], start: Token
    ) -> exp.Expression:
        """``int8 '3'``: a constant of a type that is no key word."""
        schema = parts[-2] if len(parts) > 1 else ""
        name = TypeName(parts[-1], schema, modifiers, position=self.position(start))
        token = self.advance()
        return self.mark(self.cast(self.string_node(token, token.value), name), start, start)

    def syntax_call(self, name: str, operands: list[exp.Expression]) -> exp.Expression:
        """A call of a pg_catalog function that came from SQL syntax."""
        return exp.Anonymous(this=name, schema="pg_catalog", expressions=operands, syntax=True)

    # --- general calls ---

    def call(self, name: QualifiedName, start: Token) -> exp.Expression:
        """A function call from its opening parenthesis on, with FILTER, OVER and the rest."""
        if len(name.parts) > 3:
            raise self.error_at(start, f"improper qualified name (too many dotted names): {name}")
        arguments: dict[str, Any] = {"this": name.name, "schema": name.schema}
        self.advance()
        self._arguments(arguments)
        self.expect(")")
        if self.token.kind is Kind.STRING and self._may_be_type(arguments):
            modifiers = tuple(_modifier_text(item) for item in arguments["expressions"])
            return self.typed_literal(list(name.parts), modifiers, start)
        if start is not self.bare_call:
            self._call_clauses(arguments)
        return self.mark(exp.Anonymous(**arguments), start, start)

    def _may_be_type(self, arguments: dict[str, Any]) -> bool:
        items = arguments["expressions"]
        return bool(items) and not {"star", "distinct", "variadic", "order"} & arguments.keys()

    def _arguments(self, arguments: dict[str, Any]) -> None:
        """What stands between a call's parentheses."""
        arguments["expressions"] = items = []
        if self.token.key == ")":
            return
        if self.accept("*"):
            arguments["star"] = True
            return
        quantifier = self.accept_any("all", "distinct")
        if quantifier == "distinct":
            arguments["distinct"] = True
        while True:
            if not quantifier and self.accept("variadic"):
                arguments["variadic"] = True
            items.append(self._argument())
            if arguments.get("variadic") or not self.accept(","):
                break
        if self.token.key == "order":
            arguments["order"] = self.order_by()

    def _argument(self) -> exp.Expression:
        start = self.token
        if start.kind in (Kind.WORD, Kind.QUOTED) and self.peek().key in ("=>", ":="):
            name = self.type_or_function_name()
            self.advance()
            return self.mark(exp.Kwarg(this=name, expression=self.expression()), start, start)
        return self.expression()

    def _call_clauses(self, arguments: dict[str, Any]) -> None:
        if self.at("within", "group"):
            at = self.token
            if "order" in arguments:
                raise self.error_at(at, "cannot use multiple ORDER BY clauses with WITHIN GROUP")
            if arguments.get("distinct"):
                raise self.error_at(at, "cannot use DISTINCT with WITHIN GROUP")
            if arguments.get("variadic"):
                raise self.error_at(at, "cannot use VARIADIC with WITHIN GROUP")
            self.expect("within", "group", "(")
            if self.token.key != "order":
                self.fail()
            arguments["within_group"] = self.order_by()
            self.expect(")")
        if self.at("filter", "("):
            self.expect("filter", "(", "where")
            arguments["filter"] = self.expression()
            self.expect(")")
        if self.token.key == "over":
            self.advance()
            start = self.token
            if self.token.key == "(":
                arguments["over"] = self.window_definition(start)
            else:
                window = exp.Window(alias=self.name(), is_reference=True)
                arguments["over"] = self.mark(window, start, start)

    # --- ordering and windows ---

    def order_by(self) -> list[exp.Expression]:
        """ORDER BY with its list."""
        self.expect("order", "by")
        found = [self._ordered()]
        while self.accept(","):
            found.append(self._ordered())
        return found

    def _ordered(self) -> exp.Expression:
        start = self.token
        node = exp.Ordered(this=self.expression(), desc=False, nulls_first=None, operator=None)
        if self.accept("using"):
            node.set("operator", self._using_operator())
        elif self.accept_any("asc", "desc") == "desc":
            node.set("desc", True)
        if self.accept("nulls"):
            node.args["nulls_first"] = self.choose("first", "last") == "first"
        return self.mark(node, start, start)

    def _using_operator(self) -> str:
        if self.accept("operator", "("):
            while self.token.kind is not Kind.OPERATOR:
                self.name()
                self.expect(".")
            name = self.advance().key
            self.expect(")")
            return name
        if self.token.kind is not Kind.OPERATOR:
            self.fail()
        return self.advance().key

    def window_definition(self, start: Token) -> exp.Expression:
        """A parenthesized window specification."""
        self.expect("(")
        base = None
        if self.at_column_name() and not self._at_window_clause():
            base = self.name()
        partition: list[exp.Expression] = []
        if self.accept("partition"):
            self.expect("by")
            partition = self.expressions()
        order = self.order_by() if self.token.key == "order" else []
        frame = self._frame() if self.token.key in _FRAME_KINDS else None
        self.expect(")")
        node = exp.Window(base=base, partition_by=partition, order=order, spec=frame)
        return self.mark(node, start, start)

    def _at_window_clause(self) -> bool:
        key = self.token.key
        if key == "partition":
            return self.peek().key == "by"
        return key in _FRAME_KINDS and self.peek().key not in (
            ")",
            "partition",
            "order",
        )

    def _frame(self) -> exp.Expression:
        start = self.advance()
        frame: dict[str, Any] = {"kind": start.key}
        if self.accept("between"):
            first = self.token
            frame["start"], frame["start_side"] = self._frame_bound()
            self.expect("and")
            last = self.token
            frame["end"], frame["end_side"] = self._frame_bound()
            self._check_frame(frame, first, last)
        else:
            bound = self.token
            frame["start"], frame["start_side"] = self._frame_bound()
            frame["end"], frame["end_side"] = None, "current row"
            if frame["start_side"] == "following":
                self._fail_frame(
                    bound,
                    "frame starting from following row cannot end with current row",
                )
            self._check_frame(frame, bound, bound)
        if self.accept("exclude"):
            word = self.choose("current", "group", "ties", "no")
            if word == "current":
                self.expect("row")
                word = "current row"
            elif word == "no":
                self.expect("others")
            frame["exclude"] = None if word == "no" else word
        return self.mark(exp.WindowSpec(**frame), start, start)

    def _frame_bound(self) -> tuple[exp.Expression | None, str]:
        if self.at("unbounded", "preceding") or self.at("unbounded", "following"):
            self.advance()
            return None, "unbounded " + self.choose(*_FRAME_SIDES)
        if self.accept("current", "row"):
            return None, "current row"
        value = self.expression()
        return value, self.choose(*_FRAME_SIDES)

    def _check_frame(self, frame: dict[str, Any], first: Token, last: Token) -> None:
        start_side, end_side = frame["start_side"], frame["end_side"]
        if start_side == "unbounded following":
            self._fail_frame(first, "frame start cannot be UNBOUNDED FOLLOWING")
        if end_side == "unbounded preceding":
            self._fail_frame(last, "frame end cannot be UNBOUNDED PRECEDING")
        if start_side == "current row" and end_side == "preceding":
            self._fail_frame(last, "frame starting from current row cannot have preceding rows")
        if start_side == "following" and end_side in ("preceding", "current row"):
            self._fail_frame(last, "frame starting from following row cannot have preceding rows")

    def _fail_frame(self, at: Token, message: str) -> NoReturn:
        raise errors.WindowingError(message, position=self.position(at))

    # --- calls with a grammar of their own ---

    def special_call(self) -> exp.Expression:
        start = self.token
        key = start.key
        if key.startswith("xml"):
            self.refuse(start, "unsupported XML feature")
        self.advance()
        if key == "collation":
            self.expect("for")
        self.expect("(")
        node = self._special_body(key, start)
        self.expect(")")
        return self.mark(node, start, start)

    def _special_body(self, key: str, start: Token) -> exp.Expression:
        if key == "cast" or key == "treat":
            operand = self.expression()
            self.expect("as")
            if key == "treat":
                return self.syntax_call(self.type_name().name, [operand])
            return self.cast(operand, self.type_name())
        if key == "coalesce":
            return exp.Coalesce(expressions=self.expressions())
        if key == "greatest":
            return exp.Greatest(expressions=self.expressions())
        if key == "least":
            return exp.Least(expressions=self.expressions())
        if key == "nullif":
            first = self.expression()
            self.expect(",")
            return exp.Nullif(this=first, expression=self.expression())
        if key == "extract":
            return self._extract()
        if key == "position":
            needle = self.b_expression()
            self.expect("in")
            return self.syntax_call("position", [self.b_expression(), needle])
        if key == "trim":
            return self._trim()
        if key == "normalize":
            return self._normalize()
        if key == "collation":
            return self.syntax_call("pg_collation_for", [self.expression()])
        return self._overlay() if key == "overlay" else self._substring()

    def _extract(self) -> exp.Expression:
        token = self.token
        if token.kind not in (Kind.WORD, Kind.QUOTED, Kind.STRING):
            self.fail()
        self.advance()
        self.expect("from")
        return self.syntax_call(
            "extract", [self.string_node(token, token.value), self.expression()]
        )

    def _trim(self) -> exp.Expression:
        side = self.accept_any("both", "leading", "trailing")
        name = {"leading": "ltrim", "trailing": "rtrim"}.get(side, "btrim")
        if self.accept("from"):
            return self.syntax_call(name, self.expressions())
        first = self.expression()
        if self.accept("from"):
            return self.syntax_call(name, [*self.expressions(), first])
        operands = [first]
        while self.accept(","):
            operands.append(self.expression())
        return self.syntax_call(name, operands)

    def _normalize(self) -> exp.Expression:
        operands = [self.expression()]
        if self.accept(","):
            form = self.token
            self.choose("nfc", "nfd", "nfkc", "nfkd")
            operands.append(self.string_node(form, form.key.upper()))
        return self.syntax_call("normalize", operands)

    def _overlay(self) -> exp.Expression:
        first = self._first_operand()
        if first is not None and self.accept("placing"):
            operands = [first, self.expression()]
            self.expect("from")
            operands.append(self.expression())
            if self.accept("for"):
                operands.append(self.expression())
            return self.syntax_call("overlay", operands)
        return self._plain_call("overlay", first)

    def _substring(self) -> exp.Expression:
        """SUBSTRING with FROM and FOR in either order, SIMILAR, or as a plain call."""
        first = self._first_operand()
        if first is not None:
            if self.accept("similar"):
                pattern = self.expression()
                self.expect("escape")
                return self.syntax_call("substring", [first, pattern, self.expression()])
            if self.token.key in ("from", "for"):
                return self.syntax_call("substring", [first, *self._substring_bounds()])
        return self._plain_call("substring", first)

    def _substring_bounds(self) -> list[exp.Expression]:
        at = self.token
        start = length = None
        while (word := self.accept_any("from", "for")) != "":
            if word == "from" and start is None:
                start = self.expression()
            elif word == "for" and length is None:
                length = self.expression()
            else:
                self.fail(at)
        if length is None:
            assert start is not None
            return [start]
        if start is None:
            start = self.mark(exp.Literal(this="1", is_string=False), at, at)
            length = self.cast(length, TypeName("int4", "pg_catalog"))
        return [start, length]

    def _first_operand(self) -> exp.Expression | None:
        return None if self.token.key == ")" else self._argument()

    def _plain_call(self, name: str, first: exp.Expression | None) -> exp.Expression:
        """The function of that name called with a comma list (name looked up as usual)."""
        operands = [] if first is None else [first]
        while first is not None and self.accept(","):
            operands.append(self._argument())
        return exp.Anonymous(this=name, schema="", expressions=operands)


def _modifier_text(node: exp.Expression) -> str:
    return str(node.args.get("this", ""))
