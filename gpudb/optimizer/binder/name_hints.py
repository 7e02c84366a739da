"""The errors for names that mean nothing, with PostgreSQL's hints at what was meant."""

from __future__ import annotations

from collections.abc import Iterator

from gpudb import errors
from gpudb.optimizer.binder.scope import Item, Scope

FUZZY_DISTANCE_MAX = 3
"""Edits within which another column's name is suggested (PostgreSQL's MAX_FUZZY_DISTANCE)."""
FUZZY_NAME_MAX = 63


def undefined_column(scope: Scope, table: str, name: str, at: int) -> errors.SqlError:
    """42703 with the hint that PostgreSQL gives."""
    shown = f"{table}.{name}" if table else f'"{name}"'
    return errors.UndefinedColumn(
        f"column {shown} does not exist",
        detail=_hidden_detail(scope, table, name),
        hint=_hint(scope, table, name),
        position=at,
    )


def missing_from_entry(scope: Scope, table: str, at: int) -> errors.SqlError:
    """42P01 for a qualifier that names no visible item of FROM."""
    for item in _all_items(scope):
        relation = item.relation
        if relation is not None and relation.name == table and item.name != table:
            if _is_visible(scope, item):
                return errors.UndefinedTable(
                    f'invalid reference to FROM-clause entry for table "{table}"',
                    hint=f'Perhaps you meant to reference the table alias "{item.name}".',
                    position=at,
                )
    if any(item.name == table for item in _all_items(scope)):
        return errors.UndefinedTable(
            f'invalid reference to FROM-clause entry for table "{table}"',
            hint=f'There is an entry for table "{table}",'
            " but it cannot be referenced from this part of the query.",
            position=at,
        )
    return errors.UndefinedTable(
        f'missing FROM-clause entry for table "{table}"', position=at
    )


def _all_items(scope: Scope) -> Iterator[Item]:
    level: Scope | None = scope
    while level is not None:
        yield from level.items
        yield from level.hidden
        level = level.parent


def _is_visible(scope: Scope, item: Item) -> bool:
    level: Scope | None = scope
    while level is not None:
        if any(item is other for other in level.items):
            return not item.is_lateral_only or level.is_lateral_active
        level = level.parent
    return False


def _hidden_detail(scope: Scope, table: str, name: str) -> str:
    for item in _all_items(scope):
        if item.name and (not table or item.name == table) and item.find(name) >= 0:
            return (
                f'There is a column named "{name}" in table "{item.name}",'
                " but it cannot be referenced from this part of the query."
            )
    return ""


def _hint(scope: Scope, table: str, name: str) -> str:
    if _hidden_detail(scope, table, name):
        return ""
    best = min(FUZZY_DISTANCE_MAX, len(name) // 2) + 1
    found: list[tuple[str, str]] = []
    level: Scope | None = scope
    while level is not None:
        for item in level.items:
            if not item.name:
                continue
            penalty = 0 if not table or item.name == table else _distance(table, item.name)
            for column in item.columns:
                if not column.name:
                    continue
                total = penalty + _distance(name, column.name)
                if total > len(name) // 2 or total > best:
                    continue
                if total < best:
                    best, found = total, []
                found.append((item.name, column.name))
        level = level.parent
    if len(found) == 1:
        return f'Perhaps you meant to reference the column "{found[0][0]}.{found[0][1]}".'
    if len(found) == 2:
        first, second = (f'"{a}.{b}"' for a, b in found)
        return f"Perhaps you meant to reference the column {first} or the column {second}."
    return ""


def _distance(left: str, right: str) -> int:
    """The Levenshtein distance, or a larger number where it exceeds FUZZY_DISTANCE_MAX."""
    if abs(len(left) - len(right)) > FUZZY_DISTANCE_MAX or len(left) > FUZZY_NAME_MAX:
        return FUZZY_DISTANCE_MAX + 1
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            cost = before + (a != b)
            before = row[j]
            row[j] = min(row[j] + 1, row[j - 1] + 1, cost)
    return row[-1]
