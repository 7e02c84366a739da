"""Runs programs with torch operations, on any device: the reference.

A Runner belongs to one program and one query. ``evaluate`` computes the outputs for a batch:
only the columns that the program reads are gathered through the batch's selection, guards narrow
the rows that may raise, and the error of the lowest active row is raised once per batch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gpudb import errors
from gpudb.catalog import functions
from gpudb.column import (
    Batch,
    Column,
    all_valid,
    boolean_column,
    expand,
    from_values,
    null_column,
    slice_rows,
    take_rows,
    to_values,
)
from gpudb.exec import conversions, structures
from gpudb.exec.context import QueryContext
from gpudb.exec.evaluation import ErrorSlot, EvaluationContext
from gpudb.exec.program import Op, Program, Step, Test, compile_program
from gpudb.expr import BooleanTest, DistinctFrom, Expr, Function, InList, Truth
from gpudb.kernels import order
from gpudb.kernels.select import choose, is_all, is_any, rows_of, true_mask
from gpudb.sqltype import BOOLEAN, SqlType

_SEQUENCE_BITS = 40


def row_offset(batch: Batch) -> int:
    """A number for the batch's first row that no other row of the source has."""
    return (batch.sequence[0] << _SEQUENCE_BITS) + batch.sequence[1]


class Runner:
    """A program bound to a query: constants are made once."""

    def __init__(self, program: Program, context: QueryContext) -> None:
        self.program = program
        self.context = context
        self._constants: dict[int, Column] = {}
        self._memo: dict[object, Column] = {}

    def evaluate(self, batch: Batch, active: Tensor | None = None) -> tuple[Column, ...]:
        """The outputs, each of ``batch.rows`` rows or one row (a constant)."""
        run = _Run(self, batch, active)
        outputs = tuple(run.value(number) for number in self.program.outputs)
        if run.slot.error is not None:
            raise run.slot.error
        return outputs

    def constant(self, number: int, step: Step) -> Column:
        """The column of a literal, parameter or session value."""
        found = self._constants.get(number)
        if found is None:
            value = step.payload
            if step.op is Op.PARAMETER:
                if step.payload > len(self.context.parameters):
                    raise errors.UndefinedParameter(f"there is no parameter ${step.payload}")
                value = self.context.parameters[step.payload - 1]
            elif step.op is Op.SESSION:
                value = conversions.session_value(step.payload, step.type, self.context)
            kind = conversions.data_type(step.type.oid, self.context).layout
            if value is None:
                found = null_column(step.type, kind)
            else:
                found = from_values(step.type, kind, [value])
            self._constants[number] = found
        return found


class _Run:
    """One evaluation of a program."""

    def __init__(self, runner: Runner, batch: Batch, active: Tensor | None) -> None:
        self.runner = runner
        self.batch = batch
        self.slot = ErrorSlot()
        self._values: dict[int, Column] = {}
        self._masks: dict[int, Tensor | None] = {-1: active}
        self._offset = row_offset(batch)

    @property
    def rows(self) -> int:
        return self.batch.rows

    def context(self, guard: int, position: int = 0) -> EvaluationContext:
        return EvaluationContext(
            self.runner.context, self.rows, self.mask(guard), errors=self.slot,
            row_offset=self._offset, position=position,
        )

    def mask(self, guard: int) -> Tensor | None:
        """The rows where a guard is open: bool (R or 1), None = all."""
        if guard in self._masks:
            return self._masks[guard]
        item = self.runner.program.guards[guard]
        outer = self.mask(item.parent)
        here = _passes(self.value(item.node), item.test)
        found = here if outer is None else outer & here
        self._masks[guard] = found
        return found

    def value(self, number: int) -> Column:
        found = self._values.get(number)
        if found is None:
            step = self.runner.program.steps[number]
            found = self._values[number] = self._compute(number, step)
        return found

    def _compute(self, number: int, step: Step) -> Column:
        if step.op is Op.INPUT:
            return self._input(step.payload)
        if step.op in (Op.LITERAL, Op.PARAMETER, Op.SESSION):
            return self.runner.constant(number, step)
        if step.guard != -1:
            mask = self.mask(step.guard)
            if mask is not None and not is_any(mask):
                kind = conversions.data_type(step.type.oid, self.runner.context).layout
                return null_column(step.type, kind)
        if step.op is Op.CASE:
            return self._case(step)
        if step.op is Op.COALESCE:
            return self._coalesce(step)
        arguments = [self.value(item) for item in step.arguments]
        context = self.context(step.guard, step.position)
        return _OPERATIONS[step.op](context, step, arguments)

    def _input(self, position: int) -> Column:
        column = self.batch.columns[position]
        if column.rows == 1 and (self.rows != 1 or self.batch.selection is None):
            return column
        if self.batch.selection is not None:
            return take_rows(column, self.batch.selection, self.batch.capacity)
        return column if column.rows == self.rows else slice_rows(column, 0, self.rows)

    def _case(self, step: Step) -> Column:
        """The result of the first true condition; arms that no row takes are not computed."""
        pairs = list(zip(step.arguments[::2], step.arguments[1::2], strict=False))
        choice = torch.zeros(self.rows, dtype=torch.int64)
        columns: list[Column] = []
        left = torch.ones(self.rows, dtype=torch.bool)
        for condition, result in pairs:
            here = true_mask(self.value(condition), self.rows) & left
            if not is_any(here):
                continue
            choice = torch.where(here, len(columns), choice)
            columns.append(self.value(result))
            left = left & ~here
            if not is_any(left):
                break
        if is_any(left) or not columns:
            choice = torch.where(left, len(columns), choice)
            if step.payload:
                columns.append(self.value(step.arguments[-1]))
            else:
                kind = conversions.data_type(step.type.oid, self.runner.context).layout
                columns.append(null_column(step.type, kind))
        return _merged(columns, choice, self.rows, step)

    def _coalesce(self, step: Step) -> Column:
        choice = torch.zeros(self.rows, dtype=torch.int64)
        columns: list[Column] = []
        left = torch.ones(self.rows, dtype=torch.bool)
        for argument in step.arguments:
            column = self.value(argument)
            choice = torch.where(left, len(columns), choice)
            columns.append(column)
            if column.valid is None:
                break
            left = left & ~column.valid
            if not is_any(left):
                break
        return _merged(columns, choice, self.rows, step)


def _merged(columns: Sequence[Column], choice: Tensor, rows: int, step: Step) -> Column:
    if len(columns) == 1 or rows == 0:
        return replace(columns[0], type=step.type)
    return replace(choose(columns, choice, rows), type=step.type)


def _passes(column: Column, test: Test) -> Tensor:
    if test is Test.NULL:
        if column.valid is None:
            return torch.zeros(1, dtype=torch.bool)
        return ~column.valid
    value = column.data[0]
    if test is Test.NOT_FALSE:
        return value if column.valid is None else value | ~column.valid
    true = value if column.valid is None else value & column.valid
    return true if test is Test.TRUE else ~true


# --- operations ------------------------------------------------------------


def _call(context: EvaluationContext, step: Step, arguments: Sequence[Column]) -> Column:
    return call(context, step.payload, arguments, step)


def call(
    context: EvaluationContext, function: Function, arguments: Sequence[Column], step: Step
) -> Column:
    """A scalar function over columns, NULL where a strict one has a NULL argument."""
    body = functions.SCALARS.get(function.key)
    if body is None:
        raise errors.FeatureNotSupported(f"function {function.name} is not supported")
    if not function.is_strict:
        result: Column = body.body(context, *arguments)
        return replace(result, type=step.type)
    valid = all_valid(*arguments)
    if valid is not None and valid.shape[0] == 1:
        if not bool(valid[0]):
            kind = conversions.data_type(step.type.oid, context.query).layout
            return null_column(step.type, kind)
        valid = None
    result = body.body(context.narrowed(valid), *arguments)
    return strictly(result, valid, step.type)


def strictly(result: Column, valid: Tensor | None, type_: SqlType) -> Column:
    """A function's result, NULL besides where ``valid`` (bool R) is false."""
    if valid is None:
        return replace(result, type=type_)
    if result.rows == 1 and valid.shape[0] != 1:
        result = expand(result, valid.shape[0])
    both = valid if result.valid is None else result.valid & valid
    return replace(result, type=type_, valid=both)


def _cast(context: EvaluationContext, step: Step, arguments: Sequence[Column]) -> Column:
    return conversions.cast(context, step.payload, arguments[0])


def _and(context: EvaluationContext, step: Step, arguments: Sequence[Column]) -> Column:
    return _connected(arguments, is_and=True)


def _or(context: EvaluationContext, step: Step, arguments: Sequence[Column]) -> Column:
    return _connected(arguments, is_and=False)


def _connected(arguments: Sequence[Column], *, is_and: bool) -> Column:
    if all(column.valid is None for column in arguments):
        combine = torch.logical_and if is_and else torch.logical_or
        return boolean_column(BOOLEAN, functools.reduce(combine, (c.data[0] for c in arguments)))
    decided: Tensor | None = None
    unknown: Tensor | None = None
    for column in arguments:
        here = ~column.data[0] if is_and else column.data[0]
        if column.valid is not None:
            here = here & column.valid
            unknown = ~column.valid if unknown is None else unknown | ~column.valid
        decided = here if decided is None else decided | here
    assert decided is not None and unknown is not None
    valid = decided | ~unknown
    value = (~decided if is_and else decided).expand(valid.shape[0])
    return boolean_column(BOOLEAN, value, valid)


def _not(context: EvaluationContext, step: Step, arguments: Sequence[Column]) -> Column:
    return boolean_column(BOOLEAN, ~arguments[0].data[0], arguments[0].valid)


def _is_null(context: EvaluationContext, step: Step, arguments: Sequence[Column]) -> Column:
    valid = arguments[0].valid
    if valid is None:
        return boolean_column(BOOLEAN, torch.tensor([bool(step.payload)]))
    return boolean_column(BOOLEAN, valid if step.payload else ~valid)


def _boolean_test(context: EvaluationContext, step: Step, arguments: Sequence[Column]) -> Column:
    node: BooleanTest = step.payload
    column = arguments[0]
    if node.truth is Truth.UNKNOWN:
        known = torch.ones(1, dtype=torch.bool) if column.valid is None else column.valid
        holds = ~known
    else:
        value = column.data[0] if node.truth is Truth.TRUE else ~column.data[0]
        holds = value if column.valid is None else value & column.valid
    return boolean_column(BOOLEAN, ~holds if node.is_negated else holds)


def _distinct(context: EvaluationContext, step: Step, arguments: Sequence[Column]) -> Column:
    node: DistinctFrom = step.payload
    left, right = arguments
    equal = call(context, node.equality, arguments, replace(step, type=BOOLEAN))
    same = true_mask(equal, equal.rows)
    both_null = torch.zeros(1, dtype=torch.bool)
    if left.valid is not None and right.valid is not None:
        both_null = ~left.valid & ~right.valid
    same = same | both_null
    return boolean_column(BOOLEAN, same if node.is_negated else ~same)


def _extreme(context: EvaluationContext, step: Step, arguments: Sequence[Column]) -> Column:
    rows = structures.joint_rows(context, arguments)
    best = arguments[0]
    for column in arguments[1:]:
        sign = order.compare(column, best, rows)
        better = sign > 0 if step.payload else sign < 0
        if best.valid is not None:
            better = better | ~best.valid
        if column.valid is not None:
            better = better & column.valid
        best = choose([best, column], better.expand(rows).to(torch.int64), rows)
    return replace(best, type=step.type)


def _in_list(context: EvaluationContext, step: Step, arguments: Sequence[Column]) -> Column:
    node: InList = step.payload
    argument, *items = arguments
    found = structures.in_constants(argument, items)
    if found is not None:
        return found
    parts = []
    for item in items:
        parts.append(call(context, node.equality, (argument, item), replace(step, type=BOOLEAN)))
    return _connected(parts, is_and=False)


def _array_comparison(
    context: EvaluationContext, step: Step, arguments: Sequence[Column]
) -> Column:
    argument, array = arguments
    function: Function = step.payload.function
    as_boolean = replace(step, type=BOOLEAN)

    def compare(inner: EvaluationContext, left: Column, right: Column) -> Column:
        return call(inner, function, (left, right), as_boolean)

    is_any = step.payload.is_any
    if array.rows == 1:
        value = to_values(array)[0]
        if value is None:
            return null_column(BOOLEAN, boolean_column(BOOLEAN, torch.zeros(1)).layout)
        if not value.items:
            return boolean_column(BOOLEAN, torch.tensor([not is_any]))
        items = structures.item_columns(value, context)
        fast = (
            structures.in_constants(argument, items) if is_any and function.operator == "="
            else None
        )
        if fast is not None:
            return fast
        return _connected([compare(context, argument, item) for item in items], is_and=not is_any)
    return structures.compare_elements(context, argument, array, compare, is_any=is_any)


_OPERATIONS: dict[Op, Callable[[EvaluationContext, Step, Sequence[Column]], Column]] = {
    Op.CALL: _call,
    Op.CAST: _cast,
    Op.AND: _and,
    Op.OR: _or,
    Op.NOT: _not,
    Op.IS_NULL: _is_null,
    Op.BOOLEAN_TEST: _boolean_test,
    Op.DISTINCT: _distinct,
    Op.EXTREME: _extreme,
    Op.IN_LIST: _in_list,
    Op.ARRAY_COMPARISON: _array_comparison,
    Op.ARRAY: structures.array_construct,
    Op.SUBSCRIPT: structures.subscript,
    Op.ROW: structures.row_construct,
    Op.FIELD: structures.field_select,
}


# --- predicates and single expressions ------------------------------------------------------------


class Predicates:
    """Conjuncts evaluated one after the other, each on the survivors of those before it."""

    def __init__(
        self, conjuncts: Sequence[Expr], positions: dict[int, int], context: QueryContext
    ) -> None:
        self._runners = [
            Runner(compile_program([item], positions), context) for item in conjuncts
        ]
        self.inputs = sorted({i for r in self._runners for i in r.program.inputs})

    def select(self, batch: Batch) -> Batch:
        """The batch with only the rows for which all conjuncts are true selected."""
        for runner in self._runners:
            if not batch.rows:
                break
            batch = narrowed(batch, runner.evaluate(batch)[0])
        return batch


def narrowed(batch: Batch, condition: Column) -> Batch:
    """The batch with only the rows selected where a BOOL column over its rows is true."""
    mask = true_mask(condition, condition.rows)
    if condition.rows == 1 and batch.rows != 1:
        if bool(mask[0]):
            return batch
        return replace(batch, rows=0, selection=torch.zeros(0, dtype=torch.int64))
    if is_all(mask):
        return batch
    return selected(batch, rows_of(mask))


def selected(batch: Batch, rows: Tensor) -> Batch:
    """The batch with only ``rows`` (numbers within its present rows) selected."""
    index = rows if batch.selection is None else batch.selection.index_select(0, rows)
    return replace(batch, rows=index.shape[0], selection=index)


ONE_ROW = Batch((), 1, 1)


def evaluate_constant(expression: Expr, context: QueryContext) -> object:
    """The host value of an expression without columns; raises what it raises."""
    runner = Runner(compile_program([expression], {}), context)
    return to_values(runner.evaluate(ONE_ROW)[0])[0]
