"""The values of sequences: outside of transactions, never given out twice.

As in PostgreSQL, values are reserved durably ahead of use (LOGGED_AHEAD), so that nextval costs
no disk write most of the time; a crash skips what was reserved.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import apsw

from gpudb import errors
from gpudb.catalog.objects import Persistence, Relation, SequenceOptions
from gpudb.catalog.sqlite import run, transaction

LOGGED_AHEAD = 32


@dataclass(slots=True)
class _State:
    last_value: int
    is_called: bool
    reserved: int = 0
    is_durable: bool = True


class Sequences:
    """Values of all sequences of a store."""

    def __init__(self, connection: apsw.Connection, lock: threading.RLock) -> None:
        self._connection = connection
        self._lock = lock
        self._states: dict[int, _State] = {}

    def _state(self, sequence: Relation) -> _State:
        found = self._states.get(sequence.oid)
        if found is None:
            found = self._states[sequence.oid] = self._read(sequence)
        return found

    def _read(self, sequence: Relation) -> _State:
        options = _options(sequence)
        if sequence.persistence == Persistence.TEMPORARY:
            return _State(options.start, False, is_durable=False)
        rows = run(
            self._connection,
            "SELECT last_value, is_called FROM sequence WHERE oid = ?",
            (sequence.oid,),
        )
        if not rows:  # created by the running transaction: its row comes with the commit
            return _State(options.start, False, is_durable=False)
        return _State(rows[0][0], bool(rows[0][1]))

    def next_value(self, sequence: Relation) -> int:
        """nextval; SequenceGeneratorLimitExceeded (2200H) past the end without CYCLE."""
        return self.next_values(sequence, 1)[0]

    def next_values(self, sequence: Relation, count: int) -> list[int]:
        """The next ``count`` values at once, as that many calls of nextval would give them."""
        with self._lock:
            state = self._state(sequence)
            values = []
            for _ in range(count):
                if state.is_called:
                    state.last_value = _advance(sequence, state.last_value)
                state.is_called = True
                values.append(state.last_value)
            if state.is_durable and state.reserved < count:
                self._reserve(sequence, state)
            else:
                state.reserved -= count
            return values

    def _reserve(self, sequence: Relation, state: _State) -> None:
        value = state.last_value
        reserved = 0
        for _ in range(LOGGED_AHEAD):
            try:
                value = _advance(sequence, value)
            except errors.SequenceGeneratorLimitExceeded:
                break
            reserved += 1
        self._write(sequence.oid, value, True)
        state.reserved = reserved

    def set_value(self, sequence: Relation, value: int, *, is_called: bool = True) -> None:
        """setval and RESTART; NumericValueOutOfRange (22003) outside of the bounds."""
        options = _options(sequence)
        if not options.minimum <= value <= options.maximum:
            raise errors.NumericValueOutOfRange(
                f'setval: value {value} is out of bounds for sequence "{sequence.name}" '
                f"({options.minimum}..{options.maximum})"
            )
        with self._lock:
            state = self._state(sequence)
            state.last_value, state.is_called, state.reserved = value, is_called, 0
            if state.is_durable:
                self._write(sequence.oid, value, is_called)

    def current(self, sequence: Relation) -> tuple[int, bool]:
        """(last_value, is_called), as SELECT from the sequence shows them."""
        with self._lock:
            state = self._state(sequence)
            return state.last_value, state.is_called

    def created(self, oid: int) -> None:
        """The row of a new sequence was committed with its ``current`` value."""
        with self._lock:
            state = self._states.get(oid)
            if state is not None:
                state.is_durable, state.reserved = True, 0

    def forget(self, oid: int) -> None:
        """Drop the state of a sequence that was dropped."""
        with self._lock:
            self._states.pop(oid, None)

    def flush(self) -> None:
        """Write exact values, so that an orderly stop skips none."""
        with self._lock:
            for oid, state in self._states.items():
                if state.is_durable and state.reserved:
                    self._write(oid, state.last_value, state.is_called)
                    state.reserved = 0

    def _write(self, oid: int, value: int, is_called: bool) -> None:
        with transaction(self._connection, self._lock):
            run(
                self._connection,
                "UPDATE sequence SET last_value = ?, is_called = ? WHERE oid = ?",
                (value, int(is_called), oid),
            )


def _options(sequence: Relation) -> SequenceOptions:
    if sequence.sequence is None:
        raise errors.WrongObjectType(f'"{sequence.name}" is not a sequence')
    return sequence.sequence


def _advance(sequence: Relation, value: int) -> int:
    options = _options(sequence)
    following = value + options.increment
    if options.minimum <= following <= options.maximum:
        return following
    is_up = options.increment > 0
    if options.cycles:
        return options.minimum if is_up else options.maximum
    end, bound = ("maximum", options.maximum) if is_up else ("minimum", options.minimum)
    raise errors.SequenceGeneratorLimitExceeded(
        f'nextval: reached {end} value of sequence "{sequence.name}" ({bound})'
    )
