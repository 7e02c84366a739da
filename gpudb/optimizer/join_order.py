"""Join order: dynamic programming over connected sets of relations, greedy above ten.

A *region* is a maximal tree of inner, semi and anti joins and filters. Its inner inputs are
relations; a semi or anti join is a relation too, which may only be joined last-side-on to a set
that holds the relations its condition reads (so it works like a filter). LEFT, SINGLE and MARK
joins neither add nor remove rows of their left side in a way that helps: they are *tails*,
applied in their order after the region's own joins, with the predicates that read them. FULL
joins, and outer joins whose columns an inner join above reads, are barriers: relations of their
own. Enumeration follows Moerkotte and Neumann, "Analysis of Two Existing and One New Dynamic
Programming Algorithm" (VLDB 2006), DPccp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gpudb import expr
from gpudb.expr import Expr, Function, conjuncts, references
from gpudb.optimizer import cost, joins, physical
from gpudb.optimizer.estimate import Estimator
from gpudb.optimizer.logical import Field, Filter, Join, JoinKind, Plan, field_ids
from gpudb.optimizer.physical import Estimate, Physical
from gpudb.optimizer.properties import (
    conjoin,
    equality_sides,
    is_true,
    is_volatile,
    may_raise,
)
from gpudb.sqltype import BOOLEAN

EXHAUSTIVE_RELATIONS = 10
"""Up to this many relations the order is found by dynamic programming."""

_TAILS = frozenset({JoinKind.LEFT, JoinKind.SINGLE, JoinKind.MARK})


@dataclass(slots=True)
class Relation:
    """An input of the region; a reducer (semi, anti) has a condition and what it needs."""

    plan: Physical
    kind: JoinKind = JoinKind.INNER
    condition: Expr | None = None
    required: int = 0


@dataclass(slots=True)
class Tail:
    kind: JoinKind
    plan: Physical
    condition: Expr
    mark: Field | None
    bit: int


@dataclass(slots=True)
class Predicate:
    expression: Expr
    mask: int


@dataclass(slots=True)
class EqualityClass:
    """Columns known equal, by relation bit; ``function`` is their equality."""

    members: list[tuple[int, expr.ColumnRef]]
    function: Function
    columns: dict[int, expr.ColumnRef] = field(default_factory=dict)
    mask: int = 0


@dataclass(slots=True)
class Candidate:
    cost: float
    rows: float
    left: int = 0
    right: int = 0


@dataclass(slots=True)
class Region:
    """Bits number relations and tails alike; ``owners`` maps a field id to its bit."""

    relations: dict[int, Relation] = field(default_factory=dict)
    tails: list[Tail] = field(default_factory=list)
    predicates: list[Predicate] = field(default_factory=list)
    owners: dict[int, int] = field(default_factory=dict)
    tail_bits: int = 0
    used: int = 0

    def next_bit(self) -> int:
        bit = self.used + 1
        self.used |= bit
        return bit

    def mask_of(self, ids: frozenset[int]) -> int:
        mask = 0
        for item in ids:
            mask |= self.owners.get(item, 0)
        return mask


def is_region(plan: Plan) -> bool:
    """Whether a plan is a join, or filters over one."""
    while isinstance(plan, Filter):
        if is_volatile(plan.predicate):
            return False
        plan = plan.input
    return isinstance(plan, Join) and plan.kind is not JoinKind.FULL


class Collector:
    """Takes a logical region apart; ``plan_input`` plans what lies below it."""

    def __init__(self, plan_input: Callable[[Plan], Physical]) -> None:
        self.region = Region()
        self.plan_input = plan_input

    def collect(self, plan: Plan) -> Region:
        self._visit(plan)
        return self.region

    def _visit(self, plan: Plan) -> int:
        if not is_region(plan):
            return self._relation(plan)
        if isinstance(plan, Filter):
            mask = self._visit(plan.input)
            self._add_predicates(plan.predicate, mask)
            return mask
        assert isinstance(plan, Join)
        if plan.kind is JoinKind.RIGHT:
            swapped = Join(JoinKind.LEFT, plan.right, plan.left, plan.condition)
            return self._visit_outer(swapped)
        if plan.kind is JoinKind.INNER:
            read = references(plan.condition)
            mask = self._visit_side(plan.left, read) | self._visit_side(plan.right, read)
            self._add_predicates(plan.condition, mask)
            return mask
        return self._visit_outer(plan)

    def _visit_side(self, plan: Plan, read: frozenset[int]) -> int:
        """A side of an inner join: a barrier where the join reads what an outer join adds."""
        below: Plan = plan
        while is_region(below):
            while isinstance(below, Filter):
                below = below.input
            assert isinstance(below, Join)
            if below.kind in (JoinKind.LEFT, JoinKind.SINGLE):
                if read & field_ids(below.right):
                    return self._relation(plan)
            elif below.kind is JoinKind.MARK:
                if below.mark is not None and below.mark.id in read:
                    return self._relation(plan)
            elif below.kind is JoinKind.RIGHT:
                return self._relation(plan)
            elif below.kind is JoinKind.INNER:
                break
            below = below.left
        return self._visit(plan)

    def _relation(self, plan: Plan) -> int:
        bit = self.region.next_bit()
        planned = self.plan_input(plan)
        self.region.relations[bit] = Relation(planned)
        for item in planned.fields:
            self.region.owners[item.id] = bit
        return bit

    def _visit_outer(self, plan: Join) -> int:
        mask = self._visit(plan.left)
        right = self.plan_input(plan.right)
        bit = self.region.next_bit()
        needed = self.region.mask_of(references(plan.condition)) & mask
        if plan.kind in joins.REDUCERS and not needed & self.region.tail_bits:
            if not needed or may_raise(plan.condition):
                needed = mask & ~self.region.tail_bits
            if not mask & self.region.tail_bits or needed:
                relation = Relation(right, plan.kind, plan.condition, needed)
                self.region.relations[bit] = relation
                return mask | bit
        self.region.tails.append(Tail(plan.kind, right, plan.condition, plan.mark, bit))
        self.region.tail_bits |= bit
        if plan.kind is JoinKind.MARK and plan.mark is not None:
            self.region.owners[plan.mark.id] = bit
        elif plan.kind not in joins.REDUCERS:
            for item in right.fields:
                self.region.owners[item.id] = bit
        return mask | bit

    def _add_predicates(self, condition: Expr, mask: int) -> None:
        for part in conjuncts(condition):
            if is_true(part):
                continue
            needed = mask if may_raise(part) else self.region.mask_of(references(part))
            self.region.predicates.append(Predicate(part, needed or mask & -mask))


def _bits(mask: int) -> Iterator[int]:
    while mask:
        bit = mask & -mask
        yield bit
        mask ^= bit


def _lowest(mask: int) -> int:
    return mask & -mask


def _commonest(groups: list[EqualityClass], side: int) -> int:
    """The relation of ``side`` that most of the classes have a column of."""
    best, most = 0, 0
    for bit in _bits(side):
        count = sum(1 for group in groups if group.mask & bit)
        if count > most:
            best, most = bit, count
    return best


class JoinOrder:
    """Finds the cheapest order of one region and builds it."""

    def __init__(self, region: Region, estimator: Estimator) -> None:
        self.estimator = estimator
        self.relations = region.relations
        self.tails = region.tails
        self.region = region
        self.all = 0
        for bit in region.relations:
            self.all |= bit
        self.classes: list[EqualityClass] = []
        self.predicates: list[Predicate] = []
        self.late: list[Predicate] = []
        self.adjacent: dict[int, int] = dict.fromkeys(region.relations, 0)
        self.best: dict[int, Candidate] = {}
        self._sort_predicates()
        self._connect()

    def _sort_predicates(self) -> None:
        groups: dict[int, EqualityClass] = {}
        for predicate in self.region.predicates:
            if predicate.mask & ~self.all:
                self.late.append(predicate)
            elif predicate.mask & (predicate.mask - 1) == 0:
                self._filter_relation(predicate)
            elif not self._add_to_class(groups, predicate):
                self.predicates.append(predicate)
        unique = {id(group): group for group in groups.values()}
        self.classes = list(unique.values())
        for group in self.classes:
            self._equate_within_relation(group)

    def _filter_relation(self, predicate: Predicate) -> None:
        relation = self.relations[predicate.mask]
        if relation.kind is not JoinKind.INNER:
            self.late.append(predicate)
            return
        relation.plan = filtered(self.estimator, relation.plan, (predicate.expression,))

    def _add_to_class(self, groups: dict[int, EqualityClass], predicate: Predicate) -> bool:
        sides = equality_sides(predicate.expression)
        if sides is None or not isinstance(predicate.expression, expr.Call):
            return False
        left, right = sides
        if not isinstance(left, expr.ColumnRef) or not isinstance(right, expr.ColumnRef):
            return False
        function = predicate.expression.function
        if function.argument_oids[0] != function.argument_oids[1]:
            return False
        owners = self.region.owners
        found = [groups[c.id] for c in (left, right) if c.id in groups]
        if any(group.function.oid != function.oid for group in found):
            return False
        group = found[0] if found else EqualityClass([], function)
        if len(found) == 2 and found[1] is not group:
            group.members.extend(found[1].members)
        for column in (left, right):
            if column.id not in groups:
                group.members.append((owners[column.id], column))
        for _, column in group.members:
            groups[column.id] = group
        return True

    def _equate_within_relation(self, group: EqualityClass) -> None:
        seen: dict[int, expr.ColumnRef] = {}
        for bit, column in group.members:
            if bit in seen:
                same = expr.Call(group.function, (seen[bit], column), BOOLEAN)
                self._filter_relation(Predicate(same, bit))
            else:
                seen[bit] = column
        group.columns = seen
        for bit in seen:
            group.mask |= bit

    def _connect(self) -> None:
        for group in self.classes:
            self._make_clique(group.mask)
        for predicate in self.predicates:
            if predicate.mask.bit_count() == 2:
                self._make_clique(predicate.mask)
        for bit, relation in self.relations.items():
            if relation.kind in joins.REDUCERS:
                self._make_clique(relation.required)
                for other in _bits(relation.required):
                    self.adjacent[bit] |= other
                    self.adjacent[other] |= bit

    def _make_clique(self, mask: int) -> None:
        for bit in _bits(mask):
            self.adjacent[bit] |= mask & ~bit

    def build(self) -> Physical:
        for bit, relation in self.relations.items():
            if relation.kind is JoinKind.INNER:
                self.best[bit] = Candidate(0.0, relation.plan.estimate.rows)
        if len(self.relations) <= EXHAUSTIVE_RELATIONS:
            self._enumerate()
        if self.all not in self.best:
            self._join_greedily()
        plan = self._physical(self.all)
        return self._add_tails(plan)

    def _neighbours(self, mask: int) -> int:
        found = 0
        for bit in _bits(mask):
            found |= self.adjacent[bit]
        return found & ~mask

    def _enumerate(self) -> None:
        """All connected pairs of disjoint connected sets, smaller ones first."""
        pairs: list[tuple[int, int]] = []
        for bit in sorted(self.relations, reverse=True):
            self._emit(bit, pairs)
            self._grow(bit, bit * 2 - 1, pairs)
        pairs.sort(key=lambda pair: (pair[0] | pair[1]).bit_count())
        for left, right in pairs:
            self._consider(left, right)

    def _grow(self, mask: int, excluded: int, pairs: list[tuple[int, int]]) -> None:
        border = self._neighbours(mask) & ~excluded
        subset = border
        while subset:
            self._emit(mask | subset, pairs)
            subset = (subset - 1) & border
        subset = border
        while subset:
            self._grow(mask | subset, excluded | border, pairs)
            subset = (subset - 1) & border

    def _emit(self, mask: int, pairs: list[tuple[int, int]]) -> None:
        excluded = (mask & -mask) * 2 - 1 | mask
        border = self._neighbours(mask) & ~excluded
        for bit in sorted(_bits(border), reverse=True):
            pairs.append((mask, bit))
            self._grow_complement(mask, bit, excluded | (border & (bit * 2 - 1)), pairs)

    def _grow_complement(
        self, mask: int, other: int, excluded: int, pairs: list[tuple[int, int]]
    ) -> None:
        border = self._neighbours(other) & ~excluded
        subset = border
        while subset:
            pairs.append((mask, other | subset))
            subset = (subset - 1) & border
        subset = border
        while subset:
            self._grow_complement(mask, other | subset, excluded | border, pairs)
            subset = (subset - 1) & border

    def _reducer(self, mask: int) -> Relation | None:
        relation = self.relations.get(mask)
        return relation if relation is not None and relation.kind in joins.REDUCERS else None

    def _consider(self, left: int, right: int) -> bool:
        if self._reducer(left) is not None:
            left, right = right, left
        reducer = self._reducer(right)
        one, other = self.best.get(left), self.best.get(right)
        if one is None or (reducer is None and other is None):
            return False
        if reducer is not None:
            if reducer.required & ~left:
                return False
            candidate = self._reduced(left, right, one, reducer)
        else:
            assert other is not None
            candidate = self._joined(left, right, one, other)
        known = self.best.get(left | right)
        if known is None or candidate.cost < known.cost:
            self.best[left | right] = candidate
        return True

    def _reduced(self, left: int, right: int, one: Candidate, reducer: Relation) -> Candidate:
        known = self.best.get(left | right)
        build = reducer.plan.estimate.rows
        parts = self._reducer_keys(left, reducer)
        if known is not None:
            rows = known.rows
        else:
            share = 1.0
            for outer, inner, _ in parts.keys:
                share *= self.estimator.match_fraction(outer, inner, one.rows, build)
            share = min(max(share * (0.5 if parts.rest else 1.0), 0.01), 0.99)
            rows = one.rows * (share if reducer.kind is JoinKind.SEMI else 1.0 - share)
        own = joins.reducer_cost(one.rows, build, rows, parts)
        return Candidate(one.cost + own, rows, left, right)

    def _reducer_keys(self, left: int, reducer: Relation) -> joins.Condition:
        assert reducer.condition is not None
        left_ids = frozenset(
            item for item, owner in self.region.owners.items() if owner & left
        )
        return joins.take_apart(reducer.condition, left_ids, joins.ids_of(reducer.plan))

    def _joined(self, left: int, right: int, one: Candidate, other: Candidate) -> Candidate:
        known = self.best.get(left | right)
        keys = self._class_keys(left, right)
        new = self._new_predicates(left, right)
        rows = known.rows if known is not None else self._rows(one, other, keys, new)
        is_hashed = bool(keys) or any(equality_sides(item.expression) for item in new)
        small, large = sorted((one.rows, other.rows))
        own = (cost.hash_join if is_hashed else cost.nested_loop)(large, small, rows)
        return Candidate(one.cost + other.cost + own, rows, left, right)

    def _rows(
        self,
        one: Candidate,
        other: Candidate,
        keys: list[tuple[EqualityClass, int, int, Expr, Expr]],
        new: list[Predicate],
    ) -> float:
        pairs: dict[tuple[int, int], list[tuple[Expr, Expr, bool]]] = {}
        for _, left_bit, right_bit, left, right in keys:
            pairs.setdefault((left_bit, right_bit), []).append((left, right, False))
        share = 1.0
        for (left_bit, right_bit), columns in pairs.items():
            share *= joins.key_selectivity(
                self.estimator,
                columns,
                self._base_rows(left_bit),
                self._base_rows(right_bit),
            )
        if new:
            share *= self.estimator.selectivity_of_all([item.expression for item in new])
        return max(one.rows * other.rows * share, 1e-3)

    def _base_rows(self, bit: int) -> float:
        plan = self.relations[bit].plan
        if isinstance(plan, physical.TableScan | physical.SystemScan):
            return self.estimator.table_rows(plan.table_oid)
        return plan.estimate.rows

    def _class_keys(
        self, left: int, right: int
    ) -> list[tuple[EqualityClass, int, int, Expr, Expr]]:
        """A key for each class with columns on both sides; of the same relations where possible,
        so that the keys of one pair of relations are estimated together.
        """
        shared = [g for g in self.classes if g.mask & left and g.mask & right]
        if not shared:
            return []
        left_bit = right_bit = 0
        if len(shared) > 1:
            left_bit = _commonest(shared, left)
            right_bit = _commonest(shared, right)
        found: list[tuple[EqualityClass, int, int, Expr, Expr]] = []
        for group in shared:
            one = group.mask & left_bit or _lowest(group.mask & left)
            other = group.mask & right_bit or _lowest(group.mask & right)
            found.append((group, one, other, group.columns[one], group.columns[other]))
        return found

    def _new_predicates(self, left: int, right: int) -> list[Predicate]:
        both = left | right
        return [
            item
            for item in self.predicates
            if not item.mask & ~both and item.mask & ~left and item.mask & ~right
        ]

    def _join_greedily(self) -> None:
        """Join the pair with the fewest result rows, connected pairs before cross products."""
        parts = list(self.relations)
        while len(parts) > 1:
            pair = self._best_pair(parts, connected=True) or self._best_pair(parts, connected=False)
            assert pair is not None, "a semi join lacks the relations it reads"
            parts = [part for part in parts if part not in pair]
            parts.append(pair[0] | pair[1])

    def _best_pair(self, parts: list[int], *, connected: bool) -> tuple[int, int] | None:
        found: tuple[int, int] | None = None
        fewest = 0.0
        for index, left in enumerate(parts):
            near = self._neighbours(left)
            for right in parts[index + 1 :]:
                if connected and not near & right:
                    continue
                if not self._consider(left, right):
                    continue
                rows = self.best[left | right].rows
                if found is None or rows < fewest:
                    found, fewest = (left, right), rows
        return found

    def _physical(self, mask: int) -> Physical:
        if mask in self.relations:
            return self.relations[mask].plan
        chosen = self.best[mask]
        left = self._physical(chosen.left)
        reducer = self._reducer(chosen.right)
        if reducer is not None:
            assert reducer.condition is not None
            kind, condition = reducer.kind, reducer.condition
            right = reducer.plan
        else:
            kind, right = JoinKind.INNER, self._physical(chosen.right)
            condition = self._condition(chosen.left, chosen.right)
        joined = joins.join(self.estimator, kind, left, right, condition, rows=chosen.rows)
        new = self._new_predicates(chosen.left, chosen.right)
        above = tuple(item.expression for item in new) if reducer is not None else tuple(
            self._guarded(chosen.left, chosen.right)
        )
        return filtered(self.estimator, joined, above) if above else joined

    def _guarded(self, left: int, right: int) -> list[Expr]:
        """Predicates that may raise and stand beside others: they see only rows that pass those.

        (A conjunction would evaluate them where an earlier part is NULL.)
        """
        new = [item.expression for item in self._new_predicates(left, right)]
        unsafe = [item for item in new if may_raise(item)]
        is_alone = len(unsafe) == 1 and len(new) == 1 and not self._class_keys(left, right)
        return [] if is_alone else unsafe

    def _condition(self, left: int, right: int) -> Expr:
        parts: list[Expr] = [
            expr.Call(group.function, (one, other), BOOLEAN)
            for group, _, _, one, other in self._class_keys(left, right)
        ]
        above = self._guarded(left, right)
        new = [item.expression for item in self._new_predicates(left, right)]
        parts.extend(item for item in new if item not in above)
        return conjoin(parts)

    def _add_tails(self, plan: Physical) -> Physical:
        have = self.all
        waiting = [item for item in self.late if item.mask & ~self.all]
        for tail in self.tails:
            plan = joins.join(
                self.estimator, tail.kind, plan, tail.plan, tail.condition, tail.mark
            )
            have |= tail.bit
            ready = tuple(item.expression for item in waiting if not item.mask & ~have)
            waiting = [item for item in waiting if item.mask & ~have]
            if ready:
                plan = filtered(self.estimator, plan, ready)
        assert not waiting, "a predicate reads what its region does not yield"
        return plan


def filtered(estimator: Estimator, plan: Physical, predicates: tuple[Expr, ...]) -> Physical:
    """``plan`` with a filter, merged into one below it."""
    if isinstance(plan, physical.Filter):
        predicates = (*plan.predicates, *predicates)
        plan = plan.input
    rows = plan.estimate.rows * estimator.selectivity_of_all(predicates)
    rows = max(rows, min(1.0, plan.estimate.rows))
    width = plan.estimate.bytes / plan.estimate.rows if plan.estimate.rows else 0.0
    own = cost.filter(plan.estimate.rows, len(predicates))
    estimate = Estimate(rows, rows * width, plan.estimate.cost + own)
    return physical.Filter(plan, predicates, estimate)


def order_joins(
    plan: Plan, estimator: Estimator, plan_input: Callable[[Plan], Physical]
) -> Physical:
    """The physical plan of a region; columns come in an order of its own."""
    region = Collector(plan_input).collect(plan)
    return JoinOrder(region, estimator).build()
