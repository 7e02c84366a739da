"""The eager runner: programs over batches with torch operations, on any device.

Every step yields a Column of the batch's rows or a constant. A guard's mask is made when the first
step asks for it. Errors of active rows go to the slot; ``run`` raises the lowest row's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gpudb import errors, sqltype
from gpudb.catalog import functions, types
from gpudb.catalog.types.base import ArrayValue, RecordValue
from gpudb.column import (
    Column,
    all_valid,
    boolean_column,
    expand,
    from_values,
    host_column,
    null_column,
    take_rows,
    to_values,
    validity,
)
from gpudb.exec.context import QueryContext
from gpudb.exec.evaluation import ErrorSlot, EvaluationContext
from gpudb.exec.functions import conversion
from gpudb.exec.functions.rowwise import relabelled
from gpudb.exec.program import Guard, Op, Program, Step, Test
from gpudb.exec.session_values import session_value
from gpudb.exec.subscripts import element, slice_of
from gpudb.expr import Cast, Function, Truth
from gpudb.kernels import order
from gpudb.kernels.select import choose
from gpudb.sqltype import BOOLEAN, SqlType


def constant_column(type: SqlType, value: Any, snapshot: Any = None) -> Column:
    """A constant of a host value."""
    kind = types.get(type.oid, snapshot).layout
    return null_column(type, kind) if value is None else from_values(type, kind, [value])


class Runner:
    """A program bound to a query: run it on one batch after the other, from one thread."""

    def __init__(self, program: Program, query: QueryContext) -> None:
        self.program = program
        self.query = query
        self._constants: dict[int, Column] = {}

    def run(
        self, columns: Sequence[Column], rows: int, *, row_offset: int = 0
    ) -> list[Column]:
        """The outputs for ``rows`` rows; columns have that many rows or one. Raises SqlError."""
        evaluation = _Evaluation(self, columns, rows, row_offset)
        found = [evaluation.column(number) for number in self.program.outputs]
        if evaluation.errors.error is not None:
            raise evaluation.errors.error
        return found

    def constant(self, number: int, step: Step) -> Column:
        """The column of a literal, parameter or session value, made once."""
        found = self._constants.get(number)
        if found is None:
            match step.op:
                case Op.LITERAL:
                    value = step.payload
                case Op.PARAMETER:
                    value = self.query.parameters[step.payload - 1]
                case _:
                    value = session_value(step.payload, step.type, self.query)
            found = constant_column(step.type, value, self.query.snapshot)
            self._constants[number] = found
        return found


class _Evaluation:
    """One run over one batch."""

    def __init__(
        self, runner: Runner, columns: Sequence[Column], rows: int, row_offset: int
    ) -> None:
        self.runner = runner
        self.program = runner.program
        self.query = runner.query
        self.inputs = columns
        self.rows = rows
        self.row_offset = row_offset
        self.errors = ErrorSlot()
        self.device = columns[0].device if columns else torch.device("cpu")
        self._columns: dict[int, Column] = {}
        self._masks: dict[int, Tensor | None] = {-1: None}

    def column(self, number: int) -> Column:
        found = self._columns.get(number)
        if found is None:
            step = self.program.steps[number]
            found = self._columns[number] = _OPERATIONS[step.op](self, number, step)
        return found

    def mask(self, guard: int) -> Tensor | None:
        """The active rows of a guard, bool (R or 1); None = all."""
        if guard in self._masks:
            return self._masks[guard]
        item: Guard = self.program.guards[guard]
        parent = self.mask(item.parent)
        mask = _test(self.column(item.node), item.test)
        found = mask if parent is None else parent & mask
        self._masks[guard] = found
        return found

    def context(self, step: Step, valid: Tensor | None) -> EvaluationContext:
        """The context of a step's evaluation: active where its guard is open and nothing is NULL."""
        active = self.mask(step.guard)
        if valid is not None:
            active = valid if active is None else active & valid
        return EvaluationContext(
            self.query, self.rows, active, self.device, self.errors, self.row_offset,
            step.position,
        )

    def call(self, function: Function, step: Step, arguments: Sequence[Column]) -> Column:
        """A scalar function with NULL propagation."""
        return call_scalar(
            function, arguments, functools.partial(self.context, step), step.type
        )


def call_scalar(
    function: Function,
    arguments: Sequence[Column],
    context_of: Callable[[Tensor | None], EvaluationContext],
    type: SqlType,
) -> Column:
    """``function`` over argument columns; NULL arguments make NULL results where it is strict."""
    found = functions.SCALARS.get(function.key)
    if found is None:
        raise errors.FeatureNotSupported(f"function {function.name} is not supported")
    if not function.is_strict:
        return _typed(found.body(context_of(None), *arguments), type)
    valid = all_valid(*arguments)
    context = context_of(valid)
    if valid is not None and not bool(valid.any()):
        rows = max((a.rows for a in arguments), default=1)
        kind = types.get(type.oid, context.query.snapshot).layout
        return null_column(type, kind, rows)
    result: Column = found.body(context, *arguments)
    if valid is not None:
        own = result.valid
        if valid.shape[0] > result.rows:
            result = expand(result, valid.shape[0])
        result = replace(result, valid=valid if own is None else own & valid)
    return _typed(result, type)


def _typed(column: Column, type: SqlType) -> Column:
    return column if column.type == type else replace(column, type=type)


def _test(column: Column, test: Test) -> Tensor:
    if test is Test.NULL:
        if column.valid is None:
            return torch.zeros(1, dtype=torch.bool, device=column.device)
        return ~column.valid
    value, valid = column.data[0], column.valid
    match test:
        case Test.TRUE:
            return value if valid is None else value & valid
        case Test.NOT_TRUE:
            return ~value if valid is None else ~(value & valid)
    return value if valid is None else value | ~valid


def _input(run: _Evaluation, _: int, step: Step) -> Column:
    return run.inputs[step.payload]


def _constant(run: _Evaluation, number: int, step: Step) -> Column:
    return run.runner.constant(number, step)


def _call(run: _Evaluation, _: int, step: Step) -> Column:
    return run.call(step.payload, step, [run.column(a) for a in step.arguments])


def _cast(run: _Evaluation, _: int, step: Step) -> Column:
    node: Cast = step.payload
    column = run.column(step.arguments[0])
    target = node.type
    if node.function is not None:
        extra: list[Column] = []
        if len(node.function.argument_oids) > 1:
            extra.append(constant_column(sqltype.INTEGER, target.typmod))
        if len(node.function.argument_oids) > 2:
            extra.append(constant_column(BOOLEAN, node.is_explicit))
        found = run.call(node.function, step, [column, *extra])
    elif node.is_text_io:
        context = run.context(step, column.valid)
        if column.type.oid in sqltype.STRINGS or column.type.oid in _TEXT_LIKE:
            found = conversion.from_text(context, column, target)
        elif target.oid in sqltype.STRINGS:
            found = conversion.to_text(context, column, target)
        else:
            text = conversion.to_text(context, column, sqltype.TEXT_TYPE)
            found = conversion.from_text(context, text, target)
        if column.valid is not None and found.valid is None:
            found = replace(found, valid=column.valid)
    else:
        found = relabelled(column, SqlType(target.oid))
    if target.typmod >= 0 and node.argument.type != target:
        context = run.context(step, found.valid)
        found = conversion.with_modifier(context, found, target, is_explicit=node.is_explicit)
    return _typed(found, target)


_TEXT_LIKE = frozenset({sqltype.UNKNOWN, sqltype.CSTRING})


def _and(run: _Evaluation, _: int, step: Step) -> Column:
    """False if some argument is false, else NULL if some is NULL, else true."""
    falses: Tensor | None = None
    nulls: Tensor | None = None
    for argument in step.arguments:
        column = run.column(argument)
        value, valid = column.data[0], column.valid
        false = ~value if valid is None else ~value & valid
        falses = false if falses is None else falses | false
        if valid is not None:
            nulls = ~valid if nulls is None else nulls | ~valid
    assert falses is not None
    return boolean_column(BOOLEAN, ~falses, None if nulls is None else falses | ~nulls)


def _or(run: _Evaluation, _: int, step: Step) -> Column:
    """True if some argument is true, else NULL if some is NULL, else false."""
    trues: Tensor | None = None
    nulls: Tensor | None = None
    for argument in step.arguments:
        column = run.column(argument)
        value, valid = column.data[0], column.valid
        true = value if valid is None else value & valid
        trues = true if trues is None else trues | true
        if valid is not None:
            nulls = ~valid if nulls is None else nulls | ~valid
    assert trues is not None
    return boolean_column(BOOLEAN, trues, None if nulls is None else trues | ~nulls)


def _not(run: _Evaluation, _: int, step: Step) -> Column:
    column = run.column(step.arguments[0])
    return boolean_column(BOOLEAN, ~column.data[0], column.valid)


def _is_null(run: _Evaluation, _: int, step: Step) -> Column:
    column = run.column(step.arguments[0])
    if column.valid is None:
        value = torch.full((1,), bool(step.payload), device=column.device)
        return boolean_column(BOOLEAN, value)
    return boolean_column(BOOLEAN, column.valid if step.payload else ~column.valid)


def _boolean_test(run: _Evaluation, _: int, step: Step) -> Column:
    column = run.column(step.arguments[0])
    value, valid = column.data[0], column.valid
    match step.payload.truth:
        case Truth.TRUE:
            found = value if valid is None else value & valid
        case Truth.FALSE:
            found = ~value if valid is None else ~value & valid
        case _:
            found = torch.zeros(1, dtype=torch.bool) if valid is None else ~valid
    return boolean_column(BOOLEAN, ~found if step.payload.is_negated else found)


def _distinct(run: _Evaluation, _: int, step: Step) -> Column:
    left, right = (run.column(a) for a in step.arguments)
    equal = run.call(step.payload.equality, replace_type(step, BOOLEAN), [left, right])
    same = _test(equal, Test.TRUE)
    if left.valid is not None and right.valid is not None:
        same = same | (~left.valid & ~right.valid)
    return boolean_column(BOOLEAN, same if step.payload.is_negated else ~same)


def replace_type(step: Step, type: SqlType) -> Step:
    """The step with another result type."""
    return replace(step, type=type)


def _case(run: _Evaluation, _: int, step: Step) -> Column:
    arms = step.arguments[:-1] if step.payload else step.arguments
    results: list[Column] = []
    choice: Tensor | None = None
    taken: Tensor | None = None
    for number in range(0, len(arms), 2):
        condition = _test(run.column(arms[number]), Test.TRUE)
        if taken is not None:
            condition = condition & ~taken
        results.append(run.column(arms[number + 1]))
        index = torch.where(condition, len(results) - 1, -1)
        choice = index if choice is None else torch.where(condition, index, choice)
        taken = condition if taken is None else taken | condition
    assert choice is not None
    results.append(
        run.column(step.arguments[-1]) if step.payload else _null(run, step.type)
    )
    choice = torch.where(choice < 0, len(results) - 1, choice)
    return _chosen(run, step, results, choice)


def _null(run: _Evaluation, type: SqlType) -> Column:
    return null_column(type, types.get(type.oid, run.query.snapshot).layout)


def _chosen(
    run: _Evaluation, step: Step, results: Sequence[Column], choice: Tensor
) -> Column:
    rows = max(choice.shape[0], *(c.rows for c in results))
    typed = [_typed(column, step.type) for column in results]
    if choice.shape[0] != rows:
        choice = choice.expand(rows)
    return _typed(choose(typed, choice.contiguous(), rows), step.type)


def _coalesce(run: _Evaluation, _: int, step: Step) -> Column:
    results: list[Column] = []
    choice: Tensor | None = None
    for argument in step.arguments:
        column = run.column(argument)
        results.append(column)
        number = len(results) - 1
        if choice is None:
            choice = torch.where(_validity(column), 0, -1)
        else:
            choice = torch.where((choice < 0) & _validity(column), number, choice)
        if column.valid is None:
            break
    assert choice is not None
    choice = torch.where(choice < 0, len(results) - 1, choice)
    return _chosen(run, step, results, choice)


def _validity(column: Column) -> Tensor:
    if column.valid is None:
        return torch.ones(1, dtype=torch.bool, device=column.device)
    return column.valid


def _extreme(run: _Evaluation, _: int, step: Step) -> Column:
    """GREATEST, LEAST: pairwise, NULLs ignored."""
    found = run.column(step.arguments[0])
    for argument in step.arguments[1:]:
        other = run.column(argument)
        rows = max(found.rows, other.rows)
        sign = order.compare(expand(found, rows), expand(other, rows), rows)
        takes_other = sign < 0 if step.payload else sign > 0
        if other.valid is not None:
            takes_other = takes_other & validity(other, rows)
        if found.valid is not None:
            takes_other = takes_other | ~validity(found, rows) & validity(other, rows)
        found = _chosen(run, step, [found, other], takes_other.to(torch.int64))
    return found


def _in_list(run: _Evaluation, _: int, step: Step) -> Column:
    argument, *items = (run.column(a) for a in step.arguments)
    trues: Tensor | None = None
    nulls: Tensor | None = None
    equality = replace_type(step, BOOLEAN)
    for item in items:
        equal = run.call(step.payload.equality, equality, [argument, item])
        true = _test(equal, Test.TRUE)
        trues = true if trues is None else trues | true
        if equal.valid is not None:
            nulls = ~equal.valid if nulls is None else nulls | ~equal.valid
    assert trues is not None
    return boolean_column(BOOLEAN, trues, None if nulls is None else trues | ~nulls)


def _array_comparison(run: _Evaluation, _: int, step: Step) -> Column:
    """argument op ANY/ALL (array): all pairs at once, then reduced by row."""
    argument, array = (run.column(a) for a in step.arguments)
    rows = max(argument.rows, array.rows)
    arrays: list[ArrayValue | None] = to_values(expand(array, rows) if array.rows > 1 else array)
    if array.rows == 1:
        return _constant_array(run, step, argument, arrays[0])
    owners, items = [], []
    for row, value in enumerate(arrays):
        if value is not None:
            owners.extend([row] * len(value.items))
            items.extend(value.items)
    index = torch.tensor(owners, dtype=torch.int64)
    oid = step.payload.function.argument_oids[1]
    element = types.get(array.type.oid, run.query.snapshot).element_oid or oid
    item_type = SqlType(element)
    kind = types.get(element, run.query.snapshot).layout
    right = from_values(item_type, kind, items)
    left = take_rows(expand(argument, rows), index, rows)
    equal = call_scalar(
        step.payload.function, [left, right],
        lambda valid: EvaluationContext(run.query, len(items), valid, run.device, run.errors),
        BOOLEAN,
    )
    decisive = _test(equal, Test.TRUE) if step.payload.is_any else ~_test_not_false(equal)
    decisive = decisive.expand(len(items))
    unknown = torch.zeros(len(items), dtype=torch.bool) if equal.valid is None else (
        ~equal.valid.expand(len(items))
    )
    hit = torch.zeros(rows, dtype=torch.bool).scatter_(0, index[decisive], True)
    maybe = torch.zeros(rows, dtype=torch.bool).scatter_(0, index[unknown], True)
    present = validity(array, rows)
    value = hit if step.payload.is_any else ~hit
    return boolean_column(BOOLEAN, value, (hit | ~maybe) & present)


def _test_not_false(column: Column) -> Tensor:
    value, valid = column.data[0], column.valid
    return value if valid is None else value | ~valid


def _constant_array(
    run: _Evaluation, step: Step, argument: Column, array: ArrayValue | None
) -> Column:
    if array is None:
        return _null(run, BOOLEAN)
    if not array.items:
        value = torch.full((1,), not step.payload.is_any)
        return boolean_column(BOOLEAN, value)
    trues: Tensor | None = None
    nulls: Tensor | None = None
    for item in array.items:
        column = constant_column(SqlType(array.element_oid), item, run.query.snapshot)
        equal = run.call(step.payload.function, replace_type(step, BOOLEAN), [argument, column])
        decisive = _test(equal, Test.TRUE) if step.payload.is_any else ~_test_not_false(equal)
        trues = decisive if trues is None else trues | decisive
        if equal.valid is not None:
            nulls = ~equal.valid if nulls is None else nulls | ~equal.valid
    assert trues is not None
    valid = None if nulls is None else trues | ~nulls
    return boolean_column(BOOLEAN, trues if step.payload.is_any else ~trues, valid)


def _array(run: _Evaluation, _: int, step: Step) -> Column:
    columns = [run.column(a) for a in step.arguments]
    rows = max((c.rows for c in columns), default=1)
    element = types.get(step.type.oid, run.query.snapshot).element_oid
    lists = [to_values(c, rows) for c in columns]
    made: list[ArrayValue] = []
    for items in zip(*lists, strict=True) if lists else [()] * rows:
        made.append(
            _nested(items, element) if step.payload.is_nested
            else ArrayValue.of(element, tuple(items))
        )
    return host_column(step.type, made)


def _nested(items: Sequence[Any], element: int) -> ArrayValue:
    present = [item for item in items if item is not None and item.items]
    if not present:
        return ArrayValue(element, ())
    lengths = present[0].lengths
    if len(present) != len(items) or any(item.lengths != lengths for item in present):
        raise errors.ArraySubscriptError(
            "multidimensional arrays must have array expressions with matching dimensions"
        )
    flat = tuple(value for item in present for value in item.items)
    return ArrayValue(
        element, flat, (len(items), *lengths), (1,) * (len(lengths) + 1)
    )


def _subscript(run: _Evaluation, _: int, step: Step) -> Column:
    node = step.payload
    columns = [run.column(a) for a in step.arguments]
    rows = max(c.rows for c in columns)
    arrays = to_values(columns[0], rows)
    bounds = iter([to_values(c, rows) for c in columns[1:]])
    lowers = [next(bounds) if b is not None else None for b in node.lowers]
    uppers = None if node.uppers is None else [
        next(bounds) if b is not None else None for b in node.uppers
    ]
    found = []
    for row, array in enumerate(arrays):
        low = [None if b is None else b[row] for b in lowers]
        if uppers is None:
            found.append(element(array, low))
        else:
            given = [b is not None for b in node.uppers]
            high = [None if b is None else b[row] for b in uppers]
            missing = [b is not None for b in node.lowers]
            found.append(slice_of(array, low, high, missing, given))
    kind = types.get(step.type.oid, run.query.snapshot).layout
    return from_values(step.type, kind, found)


def _row(run: _Evaluation, _: int, step: Step) -> Column:
    columns = [run.column(a) for a in step.arguments]
    rows = max((c.rows for c in columns), default=1)
    oids = tuple(c.type.oid for c in columns)
    lists = [to_values(c, rows) for c in columns]
    made = [
        RecordValue(oids, tuple(values))
        for values in (zip(*lists, strict=True) if lists else [()] * rows)
    ]
    return host_column(step.type, made)


def _field(run: _Evaluation, _: int, step: Step) -> Column:
    column = run.column(step.arguments[0])
    values = [
        None if record is None else record.values[step.payload.index]
        for record in to_values(column)
    ]
    return from_values(step.type, types.get(step.type.oid, run.query.snapshot).layout, values)


_OPERATIONS: dict[Op, Callable[[_Evaluation, int, Step], Column]] = {
    Op.INPUT: _input,
    Op.LITERAL: _constant,
    Op.PARAMETER: _constant,
    Op.SESSION: _constant,
    Op.CALL: _call,
    Op.CAST: _cast,
    Op.AND: _and,
    Op.OR: _or,
    Op.NOT: _not,
    Op.IS_NULL: _is_null,
    Op.BOOLEAN_TEST: _boolean_test,
    Op.DISTINCT: _distinct,
    Op.CASE: _case,
    Op.COALESCE: _coalesce,
    Op.EXTREME: _extreme,
    Op.IN_LIST: _in_list,
    Op.ARRAY_COMPARISON: _array_comparison,
    Op.ARRAY: _array,
    Op.SUBSCRIPT: _subscript,
    Op.ROW: _row,
    Op.FIELD: _field,
}
