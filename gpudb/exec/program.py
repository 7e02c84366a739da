"""Programs: the expressions of a pipeline stage as a small typed graph. Torch-free.

``compile_program`` turns expressions over a row's fields into nodes in evaluation order: equal
subexpressions share a node, literals and parameters are arguments of the run and not of the
graph's shape. A *guard* says on which rows a node is active: a CASE arm where its condition is
true and no earlier one was, a later argument of AND where no earlier one is false, and so on. Only
active rows may raise. Nodes that cannot raise are computed for all rows and are shared between
guards; fallible ones are shared within a guard.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpudb import errors
from gpudb.expr import (
    And,
    ArrayComparison,
    ArrayConstruct,
    BooleanTest,
    Call,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    DistinctFrom,
    Expr,
    Extreme,
    FieldSelect,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    Parameter,
    RowConstruct,
    SessionValue,
    Subscript,
    Volatility,
)
from gpudb.sqltype import BOOLEAN, SqlType
from gpudb.tree import children, walk

DEPTH_MAX = 2000
"""Levels of nested expressions."""


class Op(enum.Enum):
    """What a node computes; ``payload`` of the node says the rest."""

    INPUT = "input"
    LITERAL = "literal"
    PARAMETER = "parameter"
    SESSION = "session"
    CALL = "call"
    CAST = "cast"
    AND = "and"
    OR = "or"
    NOT = "not"
    IS_NULL = "is null"
    BOOLEAN_TEST = "boolean test"
    DISTINCT = "distinct"
    CASE = "case"
    COALESCE = "coalesce"
    EXTREME = "extreme"
    IN_LIST = "in list"
    ARRAY_COMPARISON = "array comparison"
    ARRAY = "array"
    SUBSCRIPT = "subscript"
    ROW = "row"
    FIELD = "field"


class Test(enum.Enum):
    """On which rows of a condition a guard is open."""

    TRUE = "true"
    NOT_TRUE = "not true"
    NOT_FALSE = "not false"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Guard:
    """Active rows: those of ``parent`` (a guard, -1 = all) where ``node`` passes ``test``."""

    parent: int
    node: int
    test: Test


@dataclass(frozen=True, slots=True)
class Step:
    """A node: the operation, argument nodes, its expression (for the operation's details)."""

    op: Op
    arguments: tuple[int, ...]
    type: SqlType
    payload: Any = None
    guard: int = -1
    is_fallible: bool = False
    position: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """``steps`` in evaluation order; ``outputs`` are steps; ``inputs`` the field positions read."""

    steps: tuple[Step, ...]
    guards: tuple[Guard, ...]
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]


def is_volatile(expression: Expr) -> bool:
    """Whether some function in the expression is volatile."""
    return any(
        isinstance(node, Call) and node.function.volatility is Volatility.VOLATILE
        for node in walk(expression, Expr)
    )


_FALLIBLE_OPS = frozenset({Op.CAST, Op.ARRAY_COMPARISON, Op.IN_LIST, Op.SUBSCRIPT, Op.DISTINCT})


class _Compiler:
    def __init__(self, positions: dict[int, int]) -> None:
        self.positions = positions
        self.steps: list[Step] = []
        self.guards: list[Guard] = []
        self._known: dict[Any, int] = {}
        self._guard_known: dict[Guard, int] = {}
        self._depth = 0

    def guard(self, parent: int, node: int, test: Test) -> int:
        item = Guard(parent, node, test)
        found = self._guard_known.get(item)
        if found is None:
            found = self._guard_known[item] = len(self.guards)
            self.guards.append(item)
        return found

    def add(self, expression: Expr, guard: int) -> int:
        """The step of an expression that is active where ``guard`` is open."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise errors.StatementTooComplex("stack depth limit exceeded")
        step, is_shared = self._step(expression, guard)
        self._depth -= 1
        key = (step.op, step.arguments, step.type, _payload_key(step), step.guard)
        if is_shared and key in self._known:
            return self._known[key]
        number = len(self.steps)
        self.steps.append(step)
        if is_shared:
            self._known[key] = number
        return number

    def _step(self, expression: Expr, guard: int) -> tuple[Step, bool]:
        op, arguments, payload = self._parts(expression, guard)
        volatile = (
            isinstance(expression, Call)
            and expression.function.volatility is Volatility.VOLATILE
        )
        fallible = _is_fallible(op, expression) or any(
            self.steps[a].is_fallible for a in arguments
        )
        position = getattr(expression, "position", 0)
        step = Step(
            op, arguments, expression.type, payload, guard if fallible or volatile else -1,
            fallible or volatile, position,
        )
        return step, not volatile

    def _all(self, expressions: Sequence[Expr], guard: int) -> tuple[int, ...]:
        return tuple(self.add(item, guard) for item in expressions)

    def _parts(self, node: Expr, guard: int) -> tuple[Op, tuple[int, ...], Any]:
        match node:
            case ColumnRef():
                return Op.INPUT, (), self.positions[node.id]
            case Literal():
                return Op.LITERAL, (), node.value
            case Parameter():
                return Op.PARAMETER, (), node.index
            case SessionValue():
                return Op.SESSION, (), node.name
            case Call():
                return Op.CALL, self._all(node.arguments, guard), node.function
            case Cast():
                return Op.CAST, (self.add(node.argument, guard),), node
            case And():
                return Op.AND, self._cascade(node.arguments, guard, Test.NOT_FALSE), None
            case Or():
                return Op.OR, self._cascade(node.arguments, guard, Test.NOT_TRUE), None
            case Not():
                return Op.NOT, (self.add(node.argument, guard),), None
            case IsNull():
                return Op.IS_NULL, (self.add(node.argument, guard),), node.is_negated
            case BooleanTest():
                return Op.BOOLEAN_TEST, (self.add(node.argument, guard),), node
            case DistinctFrom():
                return Op.DISTINCT, self._all((node.left, node.right), guard), node
            case Case():
                return Op.CASE, self._case(node, guard), node.default is not None
            case Coalesce():
                return Op.COALESCE, self._cascade(node.arguments, guard, Test.NULL), None
            case Extreme():
                return Op.EXTREME, self._all(node.arguments, guard), node.is_greatest
            case InList():
                return Op.IN_LIST, self._all((node.argument, *node.items), guard), node
            case _:
                return self._composite(node, guard)

    def _composite(self, node: Expr, guard: int) -> tuple[Op, tuple[int, ...], Any]:
        match node:
            case ArrayComparison():
                arguments = self._all((node.argument, node.array), guard)
                return Op.ARRAY_COMPARISON, arguments, node
            case ArrayConstruct():
                return Op.ARRAY, self._all(node.items, guard), node
            case Subscript():
                bounds = (*node.lowers, *(node.uppers or ()))
                present = [item for item in bounds if item is not None]
                return Op.SUBSCRIPT, self._all((node.argument, *present), guard), node
            case RowConstruct():
                return Op.ROW, self._all(node.items, guard), node
            case FieldSelect():
                return Op.FIELD, (self.add(node.argument, guard),), node
        raise errors.FeatureNotSupported(
            f"{type(node).__name__} is not supported in this place"
        )

    def _cascade(self, arguments: Sequence[Expr], guard: int, test: Test) -> tuple[int, ...]:
        found = []
        for item in arguments:
            number = self.add(item, guard)
            found.append(number)
            guard = self.guard(guard, number, test)
        return tuple(found)

    def _case(self, node: Case, guard: int) -> tuple[int, ...]:
        """condition, result, condition, result ... and the default."""
        found = []
        for arm in node.arms:
            condition = self.add(arm.condition, guard)
            found.append(condition)
            found.append(self.add(arm.result, self.guard(guard, condition, Test.TRUE)))
            guard = self.guard(guard, condition, Test.NOT_TRUE)
        if node.default is not None:
            found.append(self.add(node.default, guard))
        return tuple(found)


def _payload_key(step: Step) -> Any:
    """What tells payloads apart: 1.0 and 1.00 (or 0.0 and -0.0) are equal but not the same."""
    if step.op is Op.LITERAL:
        return repr(step.payload)
    return None if step.op in (Op.ROW, Op.ARRAY) else step.payload


def _is_fallible(op: Op, expression: Expr) -> bool:
    if isinstance(expression, Call):
        return expression.function.is_fallible
    if isinstance(expression, Cast):
        return (
            expression.is_text_io
            or expression.type.typmod != -1
            or (expression.function is not None and expression.function.is_fallible)
        )
    if isinstance(expression, (InList, DistinctFrom)):
        return expression.equality.is_fallible
    return op in _FALLIBLE_OPS


def compile_program(expressions: Sequence[Expr], positions: dict[int, int]) -> Program:
    """The program of expressions over a row whose field ``id`` is at ``positions[id]``."""
    compiler = _Compiler(positions)
    outputs = tuple(compiler.add(item, -1) for item in expressions)
    inputs = sorted({step.payload for step in compiler.steps if step.op is Op.INPUT})
    return Program(tuple(compiler.steps), tuple(compiler.guards), outputs, tuple(inputs))


def output_types(program: Program) -> tuple[SqlType, ...]:
    """The types of the outputs."""
    return tuple(program.steps[number].type for number in program.outputs)


def is_constant(expression: Expr) -> bool:
    """Whether an expression reads no column."""
    return not any(isinstance(node, ColumnRef) for node in walk(expression, Expr))


def is_predicate(expression: Expr) -> bool:
    return expression.type == BOOLEAN and not list(children(expression, Expr))
