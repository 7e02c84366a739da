"""Expressions: operator precedence exactly PostgreSQL's, trees of sqlglot nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from gpudb.optimizer.keywords import NOT_COLUMN, NOT_FUNCTION, RESERVED
from gpudb.optimizer.lexer import Kind, Token
from gpudb.optimizer.parser.calls import CallReader
from gpudb.optimizer.statements.nodes.base import QualifiedName

# Binding powers of PostgreSQL's grammar, weakest first.
_OR, _AND, _NOT, _IS, _COMPARE, _IN, _PATTERN, _OPERATOR, _ADD, _MULTIPLY, _POWER = range(1, 12)
_AT, _COLLATE, _SIGN = 12, 13, 14

_SYMBOL_POWER = {
    "<": _COMPARE,
    ">": _COMPARE,
    "=": _COMPARE,
    "<=": _COMPARE,
    ">=": _COMPARE,
    "<>": _COMPARE,
    "+": _ADD,
    "-": _ADD,
    "*": _MULTIPLY,
    "/": _MULTIPLY,
    "%": _MULTIPLY,
    "^": _POWER,
}
_WORD_POWER = {
    "or": _OR,
    "and": _AND,
    "is": _IS,
    "isnull": _IS,
    "notnull": _IS,
    "between": _IN,
    "in": _IN,
    "like": _IN,
    "ilike": _IN,
    "similar": _IN,
    "operator": _OPERATOR,
    "at": _AT,
    "collate": _COLLATE,
}
_AFTER_NOT = frozenset(("between", "in", "like", "ilike", "similar"))
_PLAIN_CONSTANTS = frozenset((Kind.INTEGER, Kind.DECIMAL, Kind.STRING))
_NEEDS_NEXT = {"at": "time", "operator": "(", "similar": "to"}
"""Words that are operators only before another word."""
_QUANTIFIERS = frozenset(("any", "some", "all"))
_PATTERNS: dict[str, type[exp.Expression]] = {
    "like": exp.Like,
    "ilike": exp.ILike,
    "similar": exp.SimilarTo,
}
_IN_B_EXPRESSION = frozenset(("operator", "is"))
_NORMAL_FORMS = frozenset(("nfc", "nfd", "nfkc", "nfkd"))


class ExpressionReader(CallReader):
    """Grammar rules for expressions (a_expr, and b_expr where AND and IN would be ambiguous)."""

    def expression(self) -> exp.Expression:
        """An a_expr."""
        token = self.token
        if token.kind in _PLAIN_CONSTANTS:
            following = self.tokens[self.index + 1].key
            if following == "," or following == ")":
                self.advance()
                return self.literal(token)
        return self._operators(0, full=True)

    def b_expression(self) -> exp.Expression:
        """A b_expr: no AND, OR, NOT, IN, LIKE, BETWEEN, COLLATE, AT, IS NULL."""
        return self._operators(0, full=False)

    def expressions(self) -> list[exp.Expression]:
        found = [self.expression()]
        while self.accept(","):
            found.append(self.expression())
        return found

    # --- precedence climbing ---

    def _power(self, full: bool) -> int:
        """The binding power of the operator that comes next, 0 for none."""
        token = self.token
        if token.kind is Kind.OPERATOR:
            if token.key == "=>":
                return 0
            return _SYMBOL_POWER.get(token.key, _OPERATOR)
        if token.kind is not Kind.WORD:
            return 0
        key = token.key
        if key == "not":
            return _IN if full and self.peek().key in _AFTER_NOT else 0
        power = _WORD_POWER.get(key, 0)
        if not power or (not full and key not in _IN_B_EXPRESSION):
            return 0
        if key in _NEEDS_NEXT and self.peek().key != _NEEDS_NEXT[key]:
            return 0
        if not full and key == "is" and not self._is_allowed_in_b():
            return 0
        return power

    def _is_allowed_in_b(self) -> bool:
        after = self.peek(2).key if self.peek().key == "not" else self.peek().key
        return after in ("distinct", "document")

    def _operators(self, weakest: int, *, full: bool) -> exp.Expression:
        self.enter()
        start = self.token
        left = self._prefixed(start, full=full)
        while True:
            power = self._power(full)
            if power <= weakest:
                break
            operator = self.token
            left, is_chainable = self._infix(left, start, power, full=full)
            if not is_chainable and self._power(full) == power:
                self.fail()
            self.mark(left, start, operator)
        self.leave()
        return left

    def _prefixed(self, start: Token, *, full: bool) -> exp.Expression:
        key = start.key
        if key == "not" and full:
            self.advance()
            return self.mark(exp.Not(this=self._operators(_NOT - 1, full=True)), start, start)
        if start.kind is Kind.OPERATOR:
            return self._prefix_operator(start, full=full)
        if key == "operator" and self.peek().key == "(":
            schema, name = self._qualified_operator()
            operand = self._operators(_OPERATOR, full=full)
            return self._operation(start, None, name, operand, schema)
        return self._typecasts(self.primary(), start)

    def _prefix_operator(self, start: Token, *, full: bool) -> exp.Expression:
        key = start.key
        if key not in ("+", "-"):
            if key in _SYMBOL_POWER or key == "=>":
                self.fail()
            self.advance()
            return self._operation(start, None, key, self._operators(_OPERATOR, full=full))
        self.advance()
        operand = self._operators(_SIGN, full=full)
        if key == "-" and type(operand) is exp.Literal and not operand.args["is_string"]:
            text = operand.args["this"]
            negated = text[1:] if text.startswith("-") else "-" + text
            return self.mark(exp.Literal(this=negated, is_string=False), start, start)
        return self._operation(start, None, key, operand)

    def _operation(
        self,
        start: Token,
        left: exp.Expression | None,
        name: str,
        right: exp.Expression,
        schema: str = "",
    ) -> exp.Expression:
        node = exp.Operator(this=left, operator=name, schema=schema, expression=right)
        return self.mark(node, start, start)

    def _typecasts(self, node: exp.Expression, start: Token) -> exp.Expression:
        while self.token.key == "::":
            at = self.advance()
            node = self.mark(self.cast(node, self.type_name()), start, at)
        return node

    def _infix(
        self, left: exp.Expression, start: Token, power: int, *, full: bool
    ) -> tuple[exp.Expression, bool]:
        """The operation at the cursor with its right side, and whether its like may follow."""
        token = self.token
        if token.kind is Kind.OPERATOR:
            self.advance()
            right = self._right_side(power, full=full)
            node = exp.Operator(this=left, operator=token.key, schema="", expression=right)
            is_quantified = isinstance(right, (exp.Any, exp.All))
            return node, power != _COMPARE or is_quantified
        if power in (_AND, _OR):
            return self._connected(left, start, power), True
        if power == _IS:
            return self._is_test(left, full=full)
        if power == _IN:
            return self._set_or_pattern(left)
        self_key = token.key
        if self_key == "operator":
            schema, name = self._qualified_operator()
            right = self._right_side(_OPERATOR, full=full)
            return exp.Operator(this=left, operator=name, schema=schema, expression=right), True
        self.advance()
        if self_key == "collate":
            return exp.Collate(this=left, collation=self.qualified_name()), True
        self.expect("time", "zone")
        zone = self._operators(_AT, full=full)
        return self.syntax_call("timezone", [zone, left]), True

    def _right_side(self, power: int, *, full: bool) -> exp.Expression:
        if self.token.key in _QUANTIFIERS and full:
            return self._quantified()
        return self._operators(power, full=full)

    def _quantified(self) -> exp.Expression:
        """ANY, SOME or ALL over a subquery or an array."""
        word = self.advance()
        is_query = self.opens_query()
        self.expect("(")
        operand = self.query() if is_query else self.expression()
        self.expect(")")
        kind = exp.All if word.key == "all" else exp.Any
        return self.mark(kind(this=operand), word, word)

    def _connected(self, left: exp.Expression, start: Token, power: int) -> exp.Expression:
        """AND or OR over all operands of a chain (one flat node)."""
        key = self.token.key
        kind: type[exp.Expression] = exp.And if power == _AND else exp.Or
        operands = [left]
        while self.accept(key):
            operands.append(self._operators(power, full=True))
        return kind(expressions=operands)

    def _qualified_operator(self) -> tuple[str, str]:
        """OPERATOR(schema.name)"""
        self.expect("operator", "(")
        schema = ""
        while self.token.kind is not Kind.OPERATOR:
            schema = self.name()
            self.expect(".")
        name = self.advance().key
        self.expect(")")
        return schema, name

    # --- tests ---

    def _is_test(self, left: exp.Expression, *, full: bool) -> tuple[exp.Expression, bool]:
        word = self.advance().key
        if word == "isnull" or word == "notnull":
            return exp.Is(this=left, test="null", negated=word == "notnull"), True
        negated = self.accept("not")
        if self.accept("distinct", "from"):
            right = self._operators(_IS, full=full)
            kind: type[exp.Expression] = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return kind(this=left, expression=right), False
        token = self.token
        if token.key == "document":
            self.refuse(token, "unsupported XML feature")
        if token.key in _NORMAL_FORMS and self.peek().key == "normalized":
            form = [self.string_node(self.advance(), token.key.upper())]
            self.advance()
            return self._normalized(left, form, negated), True
        if self.accept("normalized"):
            return self._normalized(left, [], negated), True
        test = self.choose("null", "true", "false", "unknown")
        return exp.Is(this=left, test=test, negated=negated), True

    def _normalized(
        self, left: exp.Expression, form: list[exp.Expression], negated: bool
    ) -> exp.Expression:
        call = self.syntax_call("is_normalized", [left, *form])
        return exp.Not(this=call) if negated else call

    def _set_or_pattern(self, left: exp.Expression) -> tuple[exp.Expression, bool]:
        negated = self.accept("not")
        word = self.advance().key
        if word == "in":
            return self._in(left, negated), True
        if word == "between":
            symmetric = self.accept("symmetric")
            if not symmetric:
                self.accept("asymmetric")
            low = self.b_expression()
            self.expect("and")
            high = self._operators(_IN, full=True)
            node = exp.Between(this=left, low=low, high=high, symmetric=symmetric, negated=negated)
            return node, False
        if word == "similar":
            self.expect("to")
        kind = _PATTERNS[word]
        if word != "similar" and self.token.key in _QUANTIFIERS:
            return kind(this=left, expression=self._quantified(), negated=negated), True
        pattern = self._operators(_IN, full=True)
        escape = self._operators(_IN, full=True) if self.accept("escape") else None
        return kind(this=left, expression=pattern, escape=escape, negated=negated), False

    def _in(self, left: exp.Expression, negated: bool) -> exp.Expression:
        if self.opens_query():
            return exp.In(this=left, query=self.parenthesized_query(), negated=negated)
        self.expect("(")
        items = self.expressions()
        self.expect(")")
        return exp.In(this=left, expressions=items, negated=negated)

    # --- operands ---

    def primary(self) -> exp.Expression:
        """A c_expr: constant, parameter, column, call, parenthesized or special form."""
        token = self.token
        kind = token.kind
        if kind is Kind.WORD:
            rule = _WORDS.get(token.key)
            if rule is not None:
                return rule(self)
            if token.key in self.special_calls and self.peek().key == "(":
                return self.special_call()
            if self.at_keyword_type():
                typed = self._keyword_typed_literal()
                if typed is not None:
                    return typed
            return self._name_or_call()
        if kind is Kind.QUOTED:
            return self._name_or_call()
        if kind in (Kind.INTEGER, Kind.DECIMAL, Kind.STRING, Kind.BITS, Kind.HEX):
            self.advance()
            return self.literal(token)
        if kind is Kind.PARAMETER:
            return self._parameter()
        if token.key == "(":
            return self._parenthesized()
        raise self.failure()

    def _parameter(self) -> exp.Expression:
        token = self.advance()
        node = self.mark(exp.Parameter(this=int(token.value)), token, token)
        return self.indirection(node, token)

    def _parenthesized(self) -> exp.Expression:
        start = self.token
        if self.opens_query():
            query = exp.Subquery(this=self.parenthesized_query())
            return self.indirection(self.mark(query, start, start), start)
        self.advance()
        first = self.expression()
        if self.token.key != ",":
            self.expect(")")
            return self.indirection(first, start)
        items = [first]
        while self.accept(","):
            items.append(self.expression())
        self.expect(")")
        node = self.mark(exp.Tuple(expressions=items, explicit=False), start, start)
        return self._overlaps(node, start)

    def _overlaps(self, left: exp.Expression, start: Token) -> exp.Expression:
        if self.token.key != "overlaps":
            return left
        at = self.advance()
        other_start = self.token
        right = self.primary()
        if type(right) is not exp.Tuple:
            self.fail()
        for row, side, token in ((left, "left", start), (right, "right", other_start)):
            if len(row.args["expressions"]) != 2:
                raise self.error_at(
                    token,
                    f"wrong number of parameters on {side} side of OVERLAPS expression",
                )
        operands = [*left.args["expressions"], *right.args["expressions"]]
        return self.mark(self.syntax_call("overlaps", operands), start, at)

    def indirection(self, node: exp.Expression, start: Token) -> exp.Expression:
        """Subscripts and fields behind an operand."""
        while self.token.key in ("[", "."):
            if self.token.key == "[":
                subscripts = [self._subscript()]
                while self.token.key == "[":
                    subscripts.append(self._subscript())
                node = self.mark(exp.Bracket(this=node, expressions=subscripts), start, start)
                continue
            at = self.advance()
            if self.accept("*"):
                node = self.mark(exp.Dot(this=node, expression=exp.Star()), start, at)
                if self.token.key in (".", "["):
                    raise self.error_at(start, 'improper use of "*"')
                return node
            field = exp.Identifier(this=self.label())
            node = self.mark(exp.Dot(this=node, expression=field), start, at)
        return node

    def _subscript(self) -> exp.Expression:
        self.expect("[")
        lower = upper = None
        if self.token.key != ":":
            lower = self.expression()
            if self.accept("]"):
                return lower
        self.expect(":")
        if self.token.key != "]":
            upper = self.expression()
        self.expect("]")
        return exp.Slice(this=lower, expression=upper)

    # --- names ---

    def _name_or_call(self) -> exp.Expression:
        start = self.token
        following = self.tokens[self.index + 1]
        if following.key not in (".", "(", "[") and following.kind is not Kind.STRING:
            if start.key in NOT_COLUMN and start.key not in RESERVED:
                self.fail(following)
            return self.mark(exp.Column(this=self.name()), start, start)
        if following.kind is Kind.STRING and start.key in NOT_FUNCTION:
            self.name()
            self.fail()
        parts = self._name_parts(start)
        key = self.token.key
        if key == "(" and parts[-1] != "*":
            return self.call(QualifiedName(tuple(parts), self.position(start)), start)
        if self.token.kind is Kind.STRING and parts[-1] != "*":
            return self.typed_literal(parts, (), start)
        if start.kind is Kind.WORD and start.key in NOT_COLUMN:
            self.fail(following if len(parts) == 1 else start)
        node = self.mark(self.column(parts, start), start, start)
        return node if parts[-1] == "*" else self.indirection(node, start)

    def _name_parts(self, start: Token) -> list[str]:
        """Names joined by dots; "*" as last part stands for all columns."""
        is_word = start.kind is Kind.WORD
        if self.peek().key == ".":
            parts = [self.name()]
        elif (is_word and start.key in NOT_COLUMN) or self.peek().key == "(":
            parts = [self.type_or_function_name()]
        else:
            parts = [self.name()]
        while self.token.key == ".":
            self.advance()
            if self.accept("*"):
                parts.append("*")
                if self.token.key in (".", "["):
                    raise self.error_at(start, 'improper use of "*"')
                break
            parts.append(self.label())
        return parts

    def column(self, parts: list[str], start: Token) -> exp.Expression:
        """A column reference; Star as its name stands for all columns of the table."""
        if len(parts) > 4:
            raise self.error_at(
                start,
                f"improper qualified name (too many dotted names): {'.'.join(parts)}",
            )
        this: Any = exp.Star() if parts[-1] == "*" else parts[-1]
        names = dict(zip(("table", "db", "catalog"), reversed(parts[:-1]), strict=False))
        return exp.Column(this=this, **names)

    def _keyword_typed_literal(self) -> exp.Expression | None:
        """``timestamp(3) with time zone '...'``; None when the word is a name after all."""
        start = self.token
        mark = self.index
        ahead = self.peek()
        plain = ahead.kind is Kind.STRING
        if (
            not plain
            and ahead.key not in ("(", "varying", "with", "without", "precision")
            and (start.key != "national")
        ):
            return None
        type_name = self.keyword_type(is_constant=True)
        if self.token.kind is not Kind.STRING:
            if self.index > mark + 1:
                self.fail()
            self.seek(mark)
            return None
        return self.constant_of(type_name, start)

    # --- special forms by their first word ---

    def _case(self) -> exp.Expression:
        start = self.advance()
        subject = None if self.token.key == "when" else self.expression()
        arms = []
        self_at = self.token
        while self.accept("when"):
            condition = self.expression()
            self.expect("then")
            arms.append(self.mark(exp.If(this=condition, true=self.expression()), self_at, self_at))
            self_at = self.token
        if not arms:
            self.fail()
        default = self.expression() if self.accept("else") else None
        self.expect("end")
        return self.mark(exp.Case(this=subject, ifs=arms, default=default), start, start)

    def _array(self) -> exp.Expression:
        start = self.advance()
        if self.token.key == "[":
            return self._array_items(start)
        return self.mark(exp.Array(query=self.parenthesized_query(), expressions=[]), start, start)

    def _array_items(self, start: Token) -> exp.Expression:
        self.enter()
        self.expect("[")
        items: list[exp.Expression] = []
        while self.token.key != "]":
            nested = self.token
            items.append(self._array_items(nested) if nested.key == "[" else self.expression())
            if self.token.key != "]":
                self.expect(",")
                if self.token.key == "]":
                    self.fail()
        self.expect("]")
        self.leave()
        return self.mark(exp.Array(expressions=items), start, start)

    def _row(self) -> exp.Expression:
        if self.peek().key != "(":
            return self._name_or_call()
        start = self.advance()
        self.expect("(")
        items = [] if self.token.key == ")" else self.expressions()
        self.expect(")")
        node = self.mark(exp.Tuple(expressions=items, explicit=True), start, start)
        return self._overlaps(node, start)

    def _exists(self) -> exp.Expression:
        start = self.token
        if self.peek().key != "(":
            return self._name_or_call()
        self.advance()
        return self.mark(exp.Exists(this=self.parenthesized_query()), start, start)

    def _collation(self) -> exp.Expression:
        return self.special_call() if self.peek().key == "for" else self._name_or_call()

    def _null(self) -> exp.Expression:
        token = self.advance()
        return self.mark(exp.Null(), token, token)

    def _boolean(self) -> exp.Expression:
        token = self.advance()
        return self.mark(exp.Boolean(this=token.key == "true"), token, token)

    def _current(self) -> exp.Expression:
        """CURRENT_DATE, CURRENT_USER and their like, with a precision where one may stand."""
        token = self.token
        if token.key == "current_schema" and self.peek().key == "(":
            return self._name_or_call()
        self.advance()
        precision = None
        if token.key in _WITH_PRECISION and self.accept("("):
            precision = self.unsigned_integer()
            self.expect(")")
        return self.mark(exp.Var(this=token.key, precision=precision), token, token)

    def _default(self) -> exp.Expression:
        token = self.advance()
        return self.mark(exp.Var(this="default"), token, token)

    def _grouping(self) -> exp.Expression:
        if self.peek().key != "(":
            return self._name_or_call()
        start = self.advance()
        self.expect("(")
        items = self.expressions()
        self.expect(")")
        return self.mark(exp.Grouping(expressions=items), start, start)


_WITH_PRECISION = frozenset(("current_time", "current_timestamp", "localtime", "localtimestamp"))
_CURRENT = (
    "current_date",
    *sorted(_WITH_PRECISION),
    "current_role",
    "current_user",
    "session_user",
    "user",
    "current_catalog",
    "current_schema",
)
_Rule = Callable[[ExpressionReader], exp.Expression]
_WORDS: dict[str, _Rule] = {
    "case": ExpressionReader._case,
    "array": ExpressionReader._array,
    "row": ExpressionReader._row,
    "exists": ExpressionReader._exists,
    "collation": ExpressionReader._collation,
    "null": ExpressionReader._null,
    "true": ExpressionReader._boolean,
    "false": ExpressionReader._boolean,
    "default": ExpressionReader._default,
    "grouping": ExpressionReader._grouping,
    **dict.fromkeys(_CURRENT, ExpressionReader._current),
}
