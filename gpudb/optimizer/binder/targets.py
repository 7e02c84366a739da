"""The target list, and what ORDER BY, GROUP BY and DISTINCT ON may mean by it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from gpudb import errors
from gpudb.expr import Expr
from gpudb.optimizer.binder import coercion, columns, composites, expressions
from gpudb.optimizer.binder.scope import Clause, Scope
from gpudb.optimizer.binder.state import COLUMNS_MAX
from gpudb.optimizer.parser import output_name, start_position

if TYPE_CHECKING:
    from gpudb.optimizer.binder.state import Binder


@dataclass(frozen=True, slots=True)
class Target:
    """An output column; a junk target is computed for sorting only."""

    name: str
    expression: Expr
    is_junk: bool = False


@dataclass(slots=True)
class Targets:
    items: list[Target] = field(default_factory=list)

    def visible(self) -> int:
        return sum(not item.is_junk for item in self.items)

    # References from other clauses

    def group_key(self, binder: Binder, scope: Scope, node: exp.Expression) -> Expr:
        """A key of GROUP BY: an input column, an output name or position, an expression."""
        with binder.clause(scope, Clause.GROUP_BY):
            name = _bare_name(node)
            if name is not None and not _is_local(binder, scope, name, node):
                number = self._by_name(name, node, "GROUP BY")
                if number is not None:
                    return self.settle(binder, number)
            number = self._by_position(node, "GROUP BY")
            if number is not None:
                return self.settle(binder, number)
            return coercion.settled(binder, expressions.bind(binder, scope, node))

    def entry(
        self, binder: Binder, scope: Scope, node: exp.Expression, clause: Clause
    ) -> int:
        """The number of the target that ORDER BY or DISTINCT ON means; junk is added."""
        name = _bare_name(node)
        if name is not None:
            number = self._by_name(name, node, clause.value)
            if number is not None:
                self.settle(binder, number)
                return number
        number = self._by_position(node, clause.value)
        if number is not None:
            self.settle(binder, number)
            return number
        with binder.clause(scope, clause):
            value = coercion.settled(binder, expressions.bind(binder, scope, node))
        for known, item in enumerate(self.items):
            if item.expression == value:
                return known
        self.items.append(Target("", value, is_junk=True))
        return len(self.items) - 1

    def _by_name(self, name: str, node: exp.Expression, what: str) -> int | None:
        found: int | None = None
        for number, item in enumerate(self.items):
            if item.is_junk or item.name != name:
                continue
            if found is None:
                found = number
            elif self.items[found].expression != item.expression:
                raise errors.AmbiguousColumn(
                    f'{what} "{name}" is ambiguous', position=start_position(node)
                )
        return found

    def _by_position(self, node: exp.Expression, what: str) -> int | None:
        if not isinstance(node, exp.Literal):
            return None
        text = node.args["this"]
        if node.args["is_string"] or not text.lstrip("-").isdigit():
            raise errors.SyntaxError(
                f"non-integer constant in {what}", position=start_position(node)
            )
        number = int(text)
        if not 0 < number <= self.visible():
            raise errors.InvalidColumnReference(
                f"{what} position {number} is not in select list",
                position=start_position(node),
            )
        return number - 1

    def settle(self, binder: Binder, number: int) -> Expr:
        """The target's expression, text where it was unknown."""
        item = self.items[number]
        value = coercion.settled(binder, item.expression)
        if value is not item.expression:
            self.items[number] = replace(item, expression=value)
        return value


def _bare_name(node: exp.Expression) -> str | None:
    if not isinstance(node, exp.Column) or node.args.get("table") is not None:
        return None
    name = node.args["this"]
    return name if isinstance(name, str) else None


def _is_local(binder: Binder, scope: Scope, name: str, node: exp.Expression) -> bool:
    found = scope.column_named(name)
    del binder
    if len(found) > 1 or (found and found[0][1] == -2):
        raise errors.AmbiguousColumn(
            f'column reference "{name}" is ambiguous', position=start_position(node)
        )
    return bool(found)


def bind_targets(
    binder: Binder,
    scope: Scope,
    nodes: list[exp.Expression],
    *,
    clause: Clause = Clause.TARGET,
    keep_unknown: bool = False,
) -> Targets:
    """The targets of SELECT or RETURNING, stars expanded."""
    targets = Targets()
    with binder.clause(scope, clause):
        for node in nodes:
            for name, value in _expanded(binder, scope, node):
                if not keep_unknown:
                    value = coercion.settled(binder, value)
                targets.items.append(Target(name, value))
    if len(targets.items) > COLUMNS_MAX:
        raise errors.TooManyColumns(
            f"target lists can have at most {COLUMNS_MAX} entries"
        )
    return targets


def _expanded(
    binder: Binder, scope: Scope, node: exp.Expression
) -> list[tuple[str, Expr]]:
    if isinstance(node, exp.Star):
        return columns.expand_star(binder, scope, node)
    if isinstance(node, exp.Column) and isinstance(node.args["this"], exp.Star):
        return columns.expand_star(binder, scope, node)
    if isinstance(node, exp.Dot) and isinstance(node.args["expression"], exp.Star):
        return composites.expand(binder, scope, node)
    inner = node.args["this"] if isinstance(node, exp.Alias) else node
    return [(output_name(node), expressions.bind(binder, scope, inner))]
