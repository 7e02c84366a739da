"""Queries: SELECT, VALUES, TABLE, set operations, WITH, and what stands in FROM."""

from __future__ import annotations

from typing import Any, NoReturn

from sqlglot import exp

from gpudb import errors
from gpudb.optimizer.keywords import NOT_COLUMN, NOT_FUNCTION, RESERVED
from gpudb.optimizer.lexer import Kind, Token
from gpudb.optimizer.parser.expressions import ExpressionReader
from gpudb.optimizer.statements.nodes.base import QualifiedName

_SET_OPERATIONS: dict[str, type[exp.Expression]] = {
    "union": exp.Union,
    "except": exp.Except,
    "intersect": exp.Intersect,
}
_JOIN_WORDS = frozenset(("join", "cross", "inner", "left", "right", "full", "natural"))
_LOCK_STRENGTHS = {
    ("update",): "update",
    ("no", "key", "update"): "no key update",
    ("share",): "share",
    ("key", "share"): "key share",
}


class QueryReader(ExpressionReader):
    """Grammar rules for queries."""

    into_refusal = ""
    """What the statement around says of SELECT INTO (0A000); "" for the general 42601."""

    def query(self) -> exp.Expression:
        """A SelectStmt with or without parentheses around it."""
        self.enter()
        start = self.token
        with_clause = self.with_clause() if start.key == "with" else None
        body = self._set_operation(start, 0)
        self._query_options(body)
        if with_clause is not None:
            self.attach_with(body, with_clause, start)
        self.leave()
        return body

    def attach_with(self, body: exp.Expression, clause: exp.Expression, start: Token) -> None:
        if body.args.get("with_") is not None:
            raise self.error_at(start, "multiple WITH clauses not allowed")
        body.set("with_", clause)

    def at_query_word(self) -> bool:
        return self.token.key in ("select", "values", "with", "table", "(")

    # --- set operations ---

    def _set_operation(self, start: Token, weakest: int) -> exp.Expression:
        left = self._simple_query()
        while True:
            key = self.token.key
            power = 2 if key == "intersect" else 1
            if key not in _SET_OPERATIONS or power <= weakest:
                return left
            at = self.advance()
            quantifier = self.accept_any("all", "distinct")
            right = self._set_operation(self.token, power)
            node = _SET_OPERATIONS[key](this=left, expression=right, distinct=quantifier != "all")
            left = self.mark(node, start, at)

    def _simple_query(self) -> exp.Expression:
        start = self.token
        if start.key == "select":
            return self._select(start)
        if start.key == "values":
            return self._values(start)
        if start.key == "table":
            self.advance()
            table = self.relation()
            star = self.mark(exp.Star(), start, start)
            return self.mark(exp.Select(expressions=[star], from_=[table]), start, start)
        if start.key != "(":
            self.fail()
        return self.parenthesized_query()

    def _values(self, start: Token) -> exp.Expression:
        self.advance()
        rows: list[exp.Expression] = []
        while True:
            row_start = self.token
            self.expect("(")
            items = self.expressions()
            self.expect(")")
            rows.append(self.mark(exp.Tuple(expressions=items), row_start, row_start))
            if not self.accept(","):
                break
        return self.mark(exp.Values(expressions=rows), start, start)

    # --- SELECT ---

    def _select(self, start: Token) -> exp.Expression:
        self.advance()
        parts: dict[str, Any] = {}
        if self.accept("distinct"):
            on = None
            if self.accept("on"):
                self.expect("(")
                on = self.expressions()
                self.expect(")")
            parts["distinct"] = exp.Distinct(on=on)
        else:
            self.accept("all")
        has_targets = "distinct" in parts or not self._at_empty_targets()
        parts["expressions"] = self.targets() if has_targets else []
        if self.token.key == "into":
            self._refuse_into()
        if self.accept("from"):
            parts["from_"] = self.from_list()
        if self.accept("where"):
            parts["where"] = self.expression()
        if self.token.key == "group":
            self._group_by(parts)
        if self.accept("having"):
            parts["having"] = self.expression()
        if self.accept("window"):
            parts["windows"] = self._window_clause()
        return self.mark(exp.Select(**parts), start, start)

    def _refuse_into(self) -> NoReturn:
        """INTO where no table can be made; the top-level clause is read before queries are."""
        self.advance()
        self.accept_any("local", "global")
        self.accept_any("temp", "temporary", "unlogged")
        self.accept("table")
        if self.into_refusal:
            raise errors.FeatureNotSupported(self.into_refusal)
        raise self.error_at(self.token, "SELECT ... INTO is not allowed here")

    def _at_empty_targets(self) -> bool:
        token = self.token
        if token.kind is Kind.END:
            return True
        return token.key in _AFTER_TARGETS

    def targets(self) -> list[exp.Expression]:
        """A target list: expressions, ``expression AS label``, stars."""
        found = [self._target()]
        while self.accept(","):
            found.append(self._target())
        return found

    def _target(self) -> exp.Expression:
        start = self.token
        if start.key == "*":
            self.advance()
            return self.mark(exp.Star(), start, start)
        value = self.expression()
        if self.accept("as"):
            label = self.label()
        elif self.at_bare_label():
            label = self.advance().value
        else:
            return value
        return self.mark(exp.Alias(this=value, alias=label), start, start)

    def _group_by(self, parts: dict[str, Any]) -> None:
        self.expect("group", "by")
        if self.accept_any("all", "distinct") == "distinct":
            parts["group_distinct"] = True
        found = [self._group_item()]
        while self.accept(","):
            found.append(self._group_item())
        parts["group"] = found

    def _group_item(self) -> exp.Expression:
        start = self.token
        if start.key in ("rollup", "cube") and self.peek().key == "(":
            self.advance()
            self.expect("(")
            items = self.expressions()
            self.expect(")")
            kind = exp.Rollup if start.key == "rollup" else exp.Cube
            return self.mark(kind(expressions=items), start, start)
        if self.at("grouping", "sets"):
            self.expect("grouping", "sets", "(")
            sets = [self._group_item()]
            while self.accept(","):
                sets.append(self._group_item())
            self.expect(")")
            return self.mark(exp.GroupingSets(expressions=sets), start, start)
        if self.at("(", ")"):
            self.expect("(", ")")
            return self.mark(exp.Tuple(expressions=[], explicit=False), start, start)
        return self.expression()

    def _window_clause(self) -> list[exp.Expression]:
        found: list[exp.Expression] = []
        while True:
            start = self.token
            name = self.name()
            self.expect("as")
            window = self.window_definition(start)
            window.set("alias", name)
            found.append(window)
            if not self.accept(","):
                return found

    # --- what follows a query ---

    def _query_options(self, body: exp.Expression) -> None:
        """ORDER BY, LIMIT, OFFSET, FETCH and FOR, in PostgreSQL's orders."""
        at = self.token
        if at.key == "order":
            if body.args.get("order"):
                raise self.error_at(self.peek(2), "multiple ORDER BY clauses not allowed")
            body.set("order", self.order_by())
        seen: set[str] = set()
        while True:
            key = self.token.key
            group = _OPTION_GROUPS.get(key, "")
            if not group:
                return
            if group in seen:
                self.fail()
            seen.add(group)
            getattr(self, f"_{group}_option")(body)

    def _limit_option(self, body: exp.Expression) -> None:
        at = self.token
        if body.args.get("limit") is not None:
            raise self.error_at(at, "multiple LIMIT clauses not allowed")
        if self.accept("fetch"):
            self._fetch(body)
            return
        self.advance()
        limit: exp.Expression | None = None
        if not self.accept("all"):
            limit = self.expression()
        if self.token.key == ",":
            raise self.error_at(at, "LIMIT #,# syntax is not supported")
        body.set("limit", limit)

    def _offset_option(self, body: exp.Expression) -> None:
        at = self.advance()
        if body.args.get("offset") is not None:
            raise self.error_at(at, "multiple OFFSET clauses not allowed")
        body.set("offset", self.expression())
        self.accept_any("row", "rows")

    def _fetch(self, body: exp.Expression) -> None:
        """FETCH FIRST n ROWS ONLY | WITH TIES, from the word after FETCH."""
        self.choose("first", "next")
        token = self.token
        if token.key in ("row", "rows"):
            count: exp.Expression = self.mark(exp.Literal(this="1", is_string=False), token, token)
        elif token.key in ("+", "-"):
            sign = self.advance()
            number = self.number_text()
            text = "-" + number if sign.key == "-" else number
            count = self.mark(exp.Literal(this=text, is_string=False), token, token)
        else:
            count = self.primary()
        self.choose("row", "rows")
        body.set("limit", count)
        if self.accept("with"):
            self.expect("ties")
            if not body.args.get("order"):
                raise self.error_at(token, "WITH TIES cannot be specified without ORDER BY clause")
            body.args["limit_with_ties"] = True
        else:
            self.expect("only")

    def _locking_option(self, body: exp.Expression) -> None:
        locks: list[exp.Expression] = []
        while self.token.key == "for":
            start = self.advance()
            if self.accept("read"):
                self.expect("only")
                continue
            words: list[str] = []
            while self.token.key in ("update", "no", "key", "share"):
                words.append(self.advance().key)
            strength = _LOCK_STRENGTHS.get(tuple(words))
            if strength is None:
                self.fail()
            tables: list[QualifiedName] = []
            if self.accept("of"):
                tables.append(self.table_name())
                while self.accept(","):
                    tables.append(self.table_name())
            wait = self.accept_any("nowait", "skip")
            if wait == "skip":
                self.expect("locked")
            lock = exp.Lock(update=True, strength=strength, tables=tuple(tables), wait=wait)
            locks.append(self.mark(lock, start, start))
        body.set("locks", locks)

    # --- WITH ---

    def with_clause(self) -> exp.Expression:
        start = self.advance()
        recursive = self.peek().key not in ("(", "as") and self.accept("recursive")
        found = [self._common_table()]
        while self.accept(","):
            found.append(self._common_table())
        return self.mark(exp.With(expressions=found, recursive=recursive), start, start)

    def _common_table(self) -> exp.Expression:
        start = self.token
        name = self.name()
        columns = list(self.parenthesized_names()) if self.token.key == "(" else []
        self.expect("as")
        materialized: bool | None = None
        if self.accept("materialized"):
            materialized = True
        elif self.accept("not", "materialized"):
            materialized = False
        self.expect("(")
        body = self.preparable()
        self.expect(")")
        alias = exp.TableAlias(this=name, columns=columns)
        node = exp.CTE(this=body, alias=alias, materialized=materialized)
        if self.token.key == "search":
            self.refuse(self.token, "SEARCH clause is not supported")
        if self.token.key == "cycle":
            self.refuse(self.token, "CYCLE clause is not supported")
        return self.mark(node, start, start)

    def preparable(self) -> exp.Expression:
        """A query or a data-modifying statement."""
        raise NotImplementedError

    # --- FROM ---

    def from_list(self) -> list[exp.Expression]:
        found = [self.from_item()]
        while self.accept(","):
            found.append(self.from_item())
        return found

    def from_item(self) -> exp.Expression:
        """A table reference with all joins behind it."""
        self.enter()
        start = self.token
        left = self._from_primary()
        while self.token.key in _JOIN_WORDS:
            left = self._join(left, start)
        self.leave()
        return left

    def _join(self, left: exp.Expression, start: Token) -> exp.Expression:
        at = self.token
        if self.accept("cross"):
            self.expect("join")
            right = self._from_primary()
            return self.mark(exp.Join(left=left, this=right, kind="cross"), start, at)
        natural = self.accept("natural")
        kind = self.accept_any("inner", "left", "right", "full") or "inner"
        if kind != "inner":
            self.accept("outer")
        self.expect("join")
        right_start = self.token
        right = self._from_primary()
        node = exp.Join(left=left, this=right, kind=kind, natural=natural)
        if natural:
            return self.mark(node, start, at)
        while self.token.key in _JOIN_WORDS:
            right = self._join(right, right_start)
            node.set("this", right)
        if self.accept("using"):
            node.args["using"] = list(self.parenthesized_names())
            if self.accept("as"):
                node.args["using_alias"] = self.name()
        else:
            self.expect("on")
            node.set("on", self.expression())
        return self.mark(node, start, at)

    def _from_primary(self) -> exp.Expression:
        start = self.token
        key = start.key
        if key == "lateral":
            self.advance()
            if self.token.key == "(":
                return self._derived(start, lateral=True)
            return self._from_function(start, lateral=True)
        if key == "(":
            if self.opens_query():
                return self._derived(start, lateral=False)
            self.advance()
            item = self.from_item()
            if type(item) is not exp.Join:
                self.fail()
            self.expect(")")
            alias = self._alias()
            if alias is not None:
                item.set("alias", alias)
            return item
        if key == "rows" and self.peek().key == "from" and self.peek(2).key == "(":
            return self._from_function(start, lateral=False)
        if key == "xmltable":
            self.refuse(start, "unsupported XML feature")
        if self._at_call():
            return self._from_function(start, lateral=False)
        return self.aliased_relation()

    def _at_call(self) -> bool:
        """Whether a function call comes next rather than a table's name."""
        token = self.token
        if token.kind not in (Kind.WORD, Kind.QUOTED):
            return False
        if token.key in RESERVED:
            return token.key in _VALUE_FUNCTIONS or token.key == "cast"
        if self.at("collation", "for"):
            return True
        ahead = 1
        while self.peek(ahead).key == ".":
            ahead += 2
        is_table_word = ahead == 1 and token.key in _TABLE_WORDS
        return self.peek(ahead).key == "(" and not is_table_word

    def _derived(self, start: Token, *, lateral: bool) -> exp.Expression:
        """A subquery in FROM."""
        opening = self.token
        query = self.parenthesized_query()
        alias = self._alias()
        if alias is None:
            what = "VALUES" if type(query) is exp.Values else "subquery"
            example = "(VALUES ...)" if what == "VALUES" else "(SELECT ...)"
            error = self.error_at(opening, f"{what} in FROM must have an alias")
            error.hint = f"For example, FROM {example} [AS] foo."
            raise error
        node = exp.Subquery(this=query, lateral=lateral, alias=alias)
        return self.mark(node, start, start)

    def _from_function(self, start: Token, *, lateral: bool) -> exp.Expression:
        functions: list[exp.Expression] = []
        rows_from = self.accept("rows", "from")
        if rows_from:
            self.expect("(")
            while True:
                function = self._function()
                if self.accept("as"):
                    self.expect("(")
                    function.args["definitions"] = self._column_definitions()
                functions.append(function)
                if not self.accept(","):
                    break
            self.expect(")")
        else:
            functions.append(self._function())
        ordinality = self.accept("with", "ordinality")
        node = exp.TableFromRows(
            expressions=functions,
            lateral=lateral,
            rows_from=rows_from,
            ordinality=ordinality,
            alias=self._function_alias(),
        )
        return self.mark(node, start, start)

    def _function(self) -> exp.Expression:
        """A call without FILTER and OVER: what may stand in FROM."""
        start = self.bare_call = self.token
        node = self.primary()
        if isinstance(node, (exp.Column, exp.Literal, exp.Subquery, exp.Tuple)):
            self.fail(start)
        return node

    def _function_alias(self) -> exp.Expression | None:
        """An alias that may carry column definitions: ``AS t(a int, b text)``, ``AS (a int)``."""
        start = self.token
        if self.at("as", "("):
            self.expect("as", "(")
            return self._definitions_alias(None, start)
        if not self.accept("as") and not self._at_alias():
            return None
        name = self.name()
        if self.token.key != "(":
            return self.mark(exp.TableAlias(this=name, columns=[]), start, start)
        if self.peek(2).key in (",", ")"):
            columns = list(self.parenthesized_names())
            return self.mark(exp.TableAlias(this=name, columns=columns), start, start)
        self.expect("(")
        return self._definitions_alias(name, start)

    def _definitions_alias(self, name: str | None, start: Token) -> exp.Expression:
        definitions = self._column_definitions()
        node = exp.TableAlias(this=name, columns=[], definitions=definitions)
        return self.mark(node, start, start)

    def _column_definitions(self) -> list[exp.Expression]:
        found: list[exp.Expression] = []
        while True:
            start = self.token
            column = exp.ColumnDef(this=self.name(), kind=self.type_name())
            if self.accept("collate"):
                column.args["collation"] = self.qualified_name()
            found.append(self.mark(column, start, start))
            if not self.accept(","):
                break
        self.expect(")")
        return found

    def _at_alias(self) -> bool:
        token = self.token
        if token.kind is Kind.QUOTED:
            return True
        return token.kind is Kind.WORD and token.key not in NOT_COLUMN

    def _alias(self) -> exp.Expression | None:
        """``[AS] name [(column, ...)]``"""
        start = self.token
        if not self.accept("as") and not self._at_alias():
            return None
        name = self.name()
        columns = list(self.parenthesized_names()) if self.token.key == "(" else []
        return self.mark(exp.TableAlias(this=name, columns=columns), start, start)

    def aliased_relation(self) -> exp.Expression:
        """A table with alias and TABLESAMPLE."""
        node = self.relation()
        start = self.token
        alias = self._alias()
        if alias is not None:
            node.set("alias", alias)
        if self.token.key == "tablesample":
            at = self.advance()
            method = self.qualified_name()
            self.expect("(")
            arguments = self.expressions()
            self.expect(")")
            seed = None
            if self.accept("repeatable"):
                self.expect("(")
                seed = self.expression()
                self.expect(")")
            sample = exp.TableSample(method=method, expressions=arguments, seed=seed)
            node.set("sample", self.mark(sample, start, at))
        return node

    def relation(self) -> exp.Expression:
        """A table's name with ONLY or ``*``, no alias."""
        start = self.token
        only = self.accept("only")
        enclosed = only and self.accept("(")
        name_token = self.token
        name = self.table_name()
        if enclosed:
            self.expect(")")
        elif not only:
            self.accept("*")
        node = exp.Table(
            this=name.name,
            db=name.schema or None,
            catalog=name.database or None,
            only=only,
        )
        return self.mark(node, start, name_token)


_AFTER_TARGETS = frozenset(
    [
        "from",
        "where",
        "group",
        "having",
        "window",
        "union",
        "intersect",
        "except",
        "order",
        "limit",
        "offset",
        "fetch",
        "for",
        "into",
        ")",
        ";",
    ]
)
_OPTION_GROUPS = {
    "limit": "limit",
    "fetch": "limit",
    "offset": "offset",
    "for": "locking",
}
_VALUE_FUNCTIONS = frozenset(
    [
        "current_date",
        "current_time",
        "current_timestamp",
        "localtime",
        "localtimestamp",
        "current_role",
        "current_user",
        "session_user",
        "user",
        "current_catalog",
        "current_schema",
    ]
)
_TABLE_WORDS = NOT_FUNCTION - NOT_COLUMN - QueryReader.special_calls
"""Words that name a table even before a parenthesis."""
