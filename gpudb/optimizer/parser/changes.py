"""INSERT, UPDATE, DELETE and MERGE."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from gpudb.optimizer.lexer import Token
from gpudb.optimizer.parser.queries import QueryReader


class ChangeReader(QueryReader):
    """Grammar rules for data-modifying statements; the whole query grammar's last class."""

    def preparable(self) -> exp.Expression:
        """A query or a data-modifying statement, with its WITH clause."""
        start = self.token
        mark = self.index
        with_clause = None
        if start.key == "with":
            with_clause = self.with_clause()
            if self.token.key not in _CHANGES:
                self.seek(mark)
                return self.query()
        rule = _CHANGES.get(self.token.key)
        if rule is None:
            return self.query()
        node = rule(self)
        if with_clause is not None:
            node.set("with_", with_clause)
        return node

    # --- INSERT ---

    def insert(self) -> exp.Expression:
        start = self.advance()
        self.expect("into")
        table = self._insert_table()
        parts: dict[str, Any] = {"this": table, "columns": []}
        if self.token.key == "(" and not self.opens_query():
            parts["columns"] = self._target_columns()
        if self.accept("overriding"):
            parts["overriding"] = self.choose("user", "system")
            self.expect("value")
        if self.token.key == "default" and len(parts) == 2 and not parts["columns"]:
            self.expect("default", "values")
        else:
            if not self.at_query_word():
                self.fail()
            parts["expression"] = self.query()
        if self.token.key == "on":
            parts["conflict"] = self._on_conflict()
        self._returning(parts)
        return self.mark(exp.Insert(**parts), start, start)

    def _insert_table(self) -> exp.Expression:
        """The target's name, AS before its alias; no ONLY."""
        start = self.token
        name = self.table_name()
        table = exp.Table(
            this=name.name, db=name.schema or None, catalog=name.database or None, only=False
        )
        node = self.mark(table, start, start)
        alias_start = self.token
        if self.accept("as"):
            alias = exp.TableAlias(this=self.name(), columns=[])
            node.set("alias", self.mark(alias, alias_start, alias_start))
        return node

    def _target_table(self) -> exp.Expression:
        node = self.relation()
        start = self.token
        name = None
        if self.accept("as") or (self._at_alias() and start.key != "set"):
            name = self.name()
        if name is not None:
            node.set("alias", self.mark(exp.TableAlias(this=name, columns=[]), start, start))
        return node

    def _target_columns(self) -> list[exp.Expression]:
        self.expect("(")
        found = [self._set_target()]
        while self.accept(","):
            found.append(self._set_target())
        self.expect(")")
        return found

    def _set_target(self) -> exp.Expression:
        """A column to assign, with fields and subscripts behind it."""
        start = self.token
        node = self.mark(exp.Column(this=self.name()), start, start)
        return self.indirection(node, start)

    def _on_conflict(self) -> exp.Expression:
        start = self.advance()
        self.expect("conflict")
        parts: dict[str, Any] = {}
        if self.accept("on"):
            self.expect("constraint")
            parts["constraint"] = self.name()
        elif self.accept("("):
            keys = [self._conflict_key()]
            while self.accept(","):
                keys.append(self._conflict_key())
            self.expect(")")
            parts["conflict_keys"] = keys
            if self.accept("where"):
                parts["index_predicate"] = self.expression()
        self.expect("do")
        parts["action"] = self.choose("nothing", "update")
        if parts["action"] == "update":
            self.expect("set")
            parts["expressions"] = self.assignments()
            if self.accept("where"):
                parts["where"] = self.expression()
        return self.mark(exp.OnConflict(**parts), start, start)

    def _conflict_key(self) -> exp.Expression:
        """A column, call or parenthesized expression; collation and operator class are noted."""
        start = self.token
        node: exp.Expression = exp.Ordered(this=self.primary())
        if self.accept("collate"):
            node.args["collation"] = self.qualified_name()
        if self.at_column_name():
            node.args["operator_class"] = self.qualified_name()
        if self.accept_any("asc", "desc", "nulls"):
            self.refuse(start, "ASC/DESC is not allowed in ON CONFLICT clause")
        return self.mark(node, start, start)

    # --- UPDATE and DELETE ---

    def update(self) -> exp.Expression:
        start = self.advance()
        parts: dict[str, Any] = {"this": self._target_table()}
        self.expect("set")
        parts["expressions"] = self.assignments()
        if self.accept("from"):
            parts["from_"] = self.from_list()
        self._condition(parts)
        self._returning(parts)
        return self.mark(exp.Update(**parts), start, start)

    def assignments(self) -> list[exp.Expression]:
        """``column = value`` and ``(column, ...) = row`` as EQ nodes."""
        found = [self._assignment()]
        while self.accept(","):
            found.append(self._assignment())
        return found

    def _assignment(self) -> exp.Expression:
        start = self.token
        target: exp.Expression
        if start.key == "(":
            columns = self._target_columns()
            target = self.mark(exp.Tuple(expressions=columns, explicit=False), start, start)
        else:
            target = self._set_target()
        at = self.token
        self.expect("=")
        return self.mark(exp.EQ(this=target, expression=self.expression()), start, at)

    def delete(self) -> exp.Expression:
        start = self.advance()
        self.expect("from")
        parts: dict[str, Any] = {"this": self._target_table()}
        if self.accept("using"):
            parts["using"] = self.from_list()
        self._condition(parts)
        self._returning(parts)
        return self.mark(exp.Delete(**parts), start, start)

    def _condition(self, parts: dict[str, Any]) -> None:
        if not self.accept("where"):
            return
        if self.at("current", "of"):
            self.refuse(self.token, "WHERE CURRENT OF is not supported")
        parts["where"] = self.expression()

    def _returning(self, parts: dict[str, Any]) -> None:
        if self.accept("returning"):
            parts["returning"] = self.targets()

    # --- MERGE ---

    def merge(self) -> exp.Expression:
        start = self.advance()
        self.expect("into")
        table = self._target_table()
        self.expect("using")
        source = self.from_item()
        self.expect("on")
        condition = self.expression()
        whens: list[exp.Expression] = []
        while self.token.key == "when":
            whens.append(self._when())
        if not whens:
            self.fail()
        node = exp.Merge(this=table, using=source, on=condition, whens=whens)
        return self.mark(node, start, start)

    def _when(self) -> exp.Expression:
        start = self.advance()
        matched = not self.accept("not")
        self.expect("matched")
        condition = self.expression() if self.accept("and") else None
        self.expect("then")
        then = self._merge_action(matched)
        node = exp.When(matched=matched, condition=condition, then=then)
        return self.mark(node, start, start)

    def _merge_action(self, matched: bool) -> exp.Expression:
        start = self.token
        if self.accept("do"):
            self.expect("nothing")
            return self.mark(exp.Var(this="nothing"), start, start)
        if matched:
            if self.choose("update", "delete") == "delete":
                return self.mark(exp.Var(this="delete"), start, start)
            self.expect("set")
            return self.mark(exp.Update(expressions=self.assignments()), start, start)
        self.expect("insert")
        return self._merge_insert(start)

    def _merge_insert(self, start: Token) -> exp.Expression:
        parts: dict[str, Any] = {"columns": []}
        if self.token.key == "(":
            parts["columns"] = self._target_columns()
        if self.accept("overriding"):
            parts["overriding"] = self.choose("user", "system")
            self.expect("value")
        if not self.accept("default", "values"):
            values = self.token
            self.expect("values")
            row_start = self.token
            self.expect("(")
            row = self.mark(exp.Tuple(expressions=self.expressions()), row_start, row_start)
            self.expect(")")
            parts["expression"] = self.mark(exp.Values(expressions=[row]), values, values)
        return self.mark(exp.Insert(**parts), start, start)


_CHANGES = {
    "insert": ChangeReader.insert,
    "update": ChangeReader.update,
    "delete": ChangeReader.delete,
    "merge": ChangeReader.merge,
}
