"""Bound, typed expressions: no names, no torch.

The binder makes them, rules rewrite them, the executor compiles them into programs. A column is
known by its id, unique within a statement; a function by its Function record, whose ``key`` is
PostgreSQL's C symbol (pg_proc.prosrc), under which exec/functions registers the implementation.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from gpudb.sqltype import BOOLEAN, SqlType
from gpudb.tree import Node, children


@dataclass(frozen=True, slots=True)
class Expr(Node):
    """An expression; every concrete class has a field or property ``type``."""

    is_part: ClassVar[bool] = False

    if TYPE_CHECKING:

        @property
        def type(self) -> SqlType: ...


@dataclass(frozen=True, slots=True)
class Predicate(Expr):
    """An expression of type boolean."""

    @property
    def type(self) -> SqlType:
        return BOOLEAN


class Volatility(enum.Enum):
    IMMUTABLE = "i"
    STABLE = "s"
    VOLATILE = "v"


@dataclass(frozen=True, slots=True)
class Function:
    """A resolved function: what planning needs to know of a pg_proc row.

    ``key`` names the implementation; ``operator`` is the operator's symbol when it was called as
    one; ``is_fallible`` says that it may raise, so that it must not be evaluated on rows where
    it is not active.
    """

    oid: int
    name: str
    key: str
    argument_oids: tuple[int, ...]
    result_oid: int
    is_strict: bool
    volatility: Volatility
    is_fallible: bool
    operator: str = ""
    returns_set: bool = False
    is_variadic: bool = False


@dataclass(frozen=True, slots=True)
class ColumnRef(Expr):
    """A column of an input; ``outer_level`` > 0 only until decorrelation."""

    id: int
    type: SqlType
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A constant; ``value`` is a host value (catalog.types.base), None for NULL.

    Equality tells 1.0 from 1.00 and 0.0 from -0.0: they display differently.
    """

    value: Any
    type: SqlType

    def __eq__(self, other: object) -> bool:
        if type(other) is not Literal or self.type != other.type:
            return False
        if self.value is other.value:
            return True
        is_exact = isinstance(self.value, str | int | bytes)
        return bool(self.value == other.value) and (
            is_exact or repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        return hash((self.type, self.value))


@dataclass(frozen=True, slots=True)
class Parameter(Expr):
    """$index, counted from 1."""

    index: int
    type: SqlType


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A scalar function or operator; arguments already have the declared types."""

    function: Function
    arguments: tuple[Expr, ...]
    type: SqlType
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """A conversion from the argument's type (and typmod) to ``type``.

    ``function`` is pg_cast's function, None for binary-coercible (relabelling) and for text
    conversions (``is_text_io``: output of the source, input of the target). A cast to the same
    OID with a typmod applies the length, precision or scale.
    """

    argument: Expr
    type: SqlType
    function: Function | None = None
    is_explicit: bool = False
    is_text_io: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class And(Predicate):
    """Three-valued conjunction; later arguments are active only where no earlier one is false."""

    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or(Predicate):
    """Three-valued disjunction; later arguments are active only where no earlier one is true."""

    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not(Predicate):
    argument: Expr


@dataclass(frozen=True, slots=True)
class IsNull(Predicate):
    """IS [NOT] NULL of a scalar (row values are expanded by the binder)."""

    argument: Expr
    is_negated: bool = False


class Truth(enum.Enum):
    TRUE = "TRUE"
    FALSE = "FALSE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class BooleanTest(Predicate):
    """IS [NOT] TRUE | FALSE | UNKNOWN; never NULL."""

    argument: Expr
    truth: Truth
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class DistinctFrom(Predicate):
    """IS [NOT] DISTINCT FROM by the given equality function; never NULL."""

    equality: Function
    left: Expr
    right: Expr
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class CaseArm(Node):
    condition: Expr
    result: Expr


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """Searched CASE (the simple form is bound to equality conditions); default None = NULL."""

    arms: tuple[CaseArm, ...]
    default: Expr | None
    type: SqlType


@dataclass(frozen=True, slots=True)
class Coalesce(Expr):
    arguments: tuple[Expr, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class Extreme(Expr):
    """GREATEST or LEAST by the type's default order, ignoring NULLs."""

    is_greatest: bool
    arguments: tuple[Expr, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class InList(Predicate):
    """argument = any of ``items`` (constant or not), NULLs three-valued; NOT IN is Not(InList)."""

    argument: Expr
    items: tuple[Expr, ...]
    equality: Function


@dataclass(frozen=True, slots=True)
class ArrayComparison(Predicate):
    """argument operator ANY (is_any) | ALL (array)."""

    argument: Expr
    array: Expr
    function: Function
    is_any: bool


@dataclass(frozen=True, slots=True)
class ArrayConstruct(Expr):
    """ARRAY[...]; ``is_nested``: the items are arrays and make one more dimension."""

    items: tuple[Expr, ...]
    type: SqlType
    is_nested: bool = False


@dataclass(frozen=True, slots=True)
class Subscript(Expr):
    """An array element, or a slice where ``uppers`` is given (bounds may be None)."""

    argument: Expr
    lowers: tuple[Expr | None, ...]
    uppers: tuple[Expr | None, ...] | None
    type: SqlType


@dataclass(frozen=True, slots=True)
class RowConstruct(Expr):
    """ROW(...) as a value; ``names`` are the fields' names."""

    items: tuple[Expr, ...]
    type: SqlType
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldSelect(Expr):
    """Field ``index`` (from 0) of a composite or record value."""

    argument: Expr
    index: int
    type: SqlType


@dataclass(frozen=True, slots=True)
class SessionValue(Expr):
    """current_date, current_timestamp(p), current_user ...: constant within a statement.

    ``name`` is lower case: current_date, current_time, current_timestamp, localtime,
    localtimestamp, current_role, current_user, user, session_user, current_catalog,
    current_schema.
    """

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class SortKey(Node):
    """One key of an ordering. NULLs are placed as said; NaN is the greatest number."""

    expression: Expr
    is_descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class AggregateCall(Expr):
    """An aggregate; ``direct`` are the direct arguments of ordered-set aggregates."""

    function: Function
    arguments: tuple[Expr, ...]
    type: SqlType
    is_distinct: bool = False
    filter: Expr | None = None
    order_by: tuple[SortKey, ...] = ()
    direct: tuple[Expr, ...] = ()
    is_star: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Grouping(Expr):
    """GROUPING(...) over keys of the enclosing aggregate."""

    arguments: tuple[Expr, ...]
    type: SqlType


class FrameUnit(enum.Enum):
    ROWS = "ROWS"
    RANGE = "RANGE"
    GROUPS = "GROUPS"


class BoundKind(enum.Enum):
    UNBOUNDED_PRECEDING = "UNBOUNDED PRECEDING"
    PRECEDING = "PRECEDING"
    CURRENT_ROW = "CURRENT ROW"
    FOLLOWING = "FOLLOWING"
    UNBOUNDED_FOLLOWING = "UNBOUNDED FOLLOWING"


class FrameExclusion(enum.Enum):
    NO_OTHERS = "NO OTHERS"
    CURRENT_ROW = "CURRENT ROW"
    GROUP = "GROUP"
    TIES = "TIES"


@dataclass(frozen=True, slots=True)
class FrameBound(Node):
    kind: BoundKind
    offset: Expr | None = None


@dataclass(frozen=True, slots=True)
class Frame(Node):
    unit: FrameUnit
    start: FrameBound
    end: FrameBound
    exclusion: FrameExclusion = FrameExclusion.NO_OTHERS


DEFAULT_FRAME = Frame(
    FrameUnit.RANGE,
    FrameBound(BoundKind.UNBOUNDED_PRECEDING),
    FrameBound(BoundKind.CURRENT_ROW),
)


@dataclass(frozen=True, slots=True)
class WindowCall(Expr):
    """A window function, or an aggregate used as one (``is_aggregate``)."""

    function: Function
    arguments: tuple[Expr, ...]
    type: SqlType
    partition_by: tuple[Expr, ...]
    order_by: tuple[SortKey, ...]
    frame: Frame
    is_aggregate: bool = False
    filter: Expr | None = None
    is_star: bool = False
    position: int = field(default=0, compare=False)


class SubqueryKind(enum.Enum):
    SCALAR = "scalar"  # one column, at most one row (21000 otherwise), NULL when empty
    EXISTS = "exists"
    ANY = "any"  # comparison with some row, three-valued
    ALL = "all"
    ARRAY = "array"  # ARRAY(SELECT ...)


@dataclass(frozen=True, slots=True)
class Subquery(Expr):
    """A subquery in an expression; decorrelation turns every one into a join.

    ``plan`` is a logical plan (kept opaque here); free column ids in it are the correlation.
    For ANY/ALL ``comparison`` is the whole test of one row, over ``plan``'s output columns and
    the outer columns.
    """

    kind: SubqueryKind
    plan: Node
    type: SqlType
    comparison: Expr | None = None


def references(expression: Node) -> frozenset[int]:
    """The ids of the columns an expression reads (not those inside subqueries' plans)."""
    found: set[int] = set()
    stack: list[Expr] = [expression] if isinstance(expression, Expr) else list(
        children(expression, Expr)
    )
    while stack:
        node = stack.pop()
        if isinstance(node, ColumnRef):
            found.add(node.id)
        else:
            stack.extend(children(node, Expr))
    return frozenset(found)


def conjuncts(expression: Expr) -> tuple[Expr, ...]:
    """The arguments of nested conjunctions, in order."""
    if isinstance(expression, And):
        return tuple(part for item in expression.arguments for part in conjuncts(item))
    return (expression,)


def conjunction(parts: tuple[Expr, ...]) -> Expr:
    """The conjunction of the parts; TRUE for none."""
    if not parts:
        return Literal(True, BOOLEAN)
    return parts[0] if len(parts) == 1 else And(parts)
