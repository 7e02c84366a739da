"""Overload resolution: which function or operator a call means.

PostgreSQL's algorithm (manual, chapter "Type Conversion"; parse_func.c and parse_oper.c): an exact
match, else the candidates that the arguments can be converted to, narrowed by exact matches,
preferred types, categories of unknown literals, and the type of the known arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpudb import errors
from gpudb import sqltype as t
from gpudb.catalog import signatures
from gpudb.catalog.signatures import OperatorSignature, Signature
from gpudb.catalog.type_system import Context, Path, TypeSystem

if TYPE_CHECKING:
    from gpudb.catalog.catalog import CatalogSnapshot
    from gpudb.catalog.search_path import SearchPath

ARGUMENTS_MAX = 100
"""Arguments of one call (PostgreSQL's FUNC_MAX_ARGS)."""
RESOLVERS_MAX = 16
"""Resolvers kept, one per catalog version and search path."""


@dataclass(frozen=True, slots=True)
class ResolvedFunction:
    """The chosen function and how the call's arguments go in.

    ``types`` are the argument types with polymorphic ones replaced, in parameter order;
    ``sources`` the index of the actual argument for each, None where the default is taken.
    ``packed`` > 0: that many last arguments become one array (VARIADIC); ``types`` then has the
    element type for each of them. ``cast_to``: the call is a cast written as a function.
    """

    signature: Signature
    types: tuple[int, ...]
    result: int
    sources: tuple[int | None, ...]
    packed: int = 0
    cast_to: int = 0


@dataclass(frozen=True, slots=True)
class ResolvedOperator:
    """``left`` and ``right`` are the types to convert the operands to; left 0 for a prefix."""

    signature: OperatorSignature
    function: Signature
    left: int
    right: int
    result: int


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A function shaped to the call: ``types`` per actual argument or default, in order."""

    signature: Signature
    types: tuple[int, ...]
    sources: tuple[int | None, ...]
    packed: int = 0
    depth: int = 0

    @property
    def default_count(self) -> int:
        return sum(source is None for source in self.sources)


class Resolver:
    """Resolves calls at one catalog version and search path; answers are kept."""

    def __init__(self, snapshot: CatalogSnapshot, path: SearchPath) -> None:
        self.snapshot = snapshot
        self.path = path
        self.types = TypeSystem(snapshot, path)
        self._functions: dict[tuple[object, ...], ResolvedFunction] = {}
        self._operators: dict[tuple[str, int, int], ResolvedOperator] = {}

    # Functions

    def function(
        self,
        name: str,
        arguments: tuple[int, ...],
        *,
        schema: str = "",
        argument_names: tuple[str, ...] = (),
        is_variadic: bool = False,
    ) -> ResolvedFunction:
        """The function of a call; ``argument_names`` name the last arguments.

        Raises UndefinedFunction (42883) and AmbiguousFunction (42725).
        """
        key = (name, arguments, schema, argument_names, is_variadic)
        found = self._functions.get(key)
        if found is None:
            shown = f"{schema}.{name}" if schema else name
            candidates = self._candidates(name, arguments, schema, argument_names, is_variadic)
            found = self._choose(shown, candidates, arguments, argument_names)
            self._functions[key] = found
        return found

    def _candidates(
        self,
        name: str,
        arguments: tuple[int, ...],
        schema: str,
        argument_names: tuple[str, ...],
        is_variadic: bool,
    ) -> list[_Candidate]:
        schemas = signatures.search_schemas(self.snapshot, schema, self.path)
        if schemas is None:
            raise errors.InvalidSchemaName(f'schema "{schema}" does not exist')
        order = {oid: depth for depth, oid in enumerate(schemas)}
        shaped: dict[tuple[int, ...], _Candidate] = {}
        for signature in signatures.functions_named(self.snapshot, name, schemas):
            candidate = _shape(signature, len(arguments), argument_names, is_variadic)
            if candidate is None:
                continue
            candidate = replace(candidate, depth=order[signature.schema])
            by_actual = _by_actual(candidate, len(arguments))
            other = shaped.get(by_actual)
            if other is None or _is_nearer(candidate, other):
                shaped[by_actual] = candidate
        return list(shaped.values())

    def _choose(
        self,
        shown: str,
        candidates: list[_Candidate],
        arguments: tuple[int, ...],
        argument_names: tuple[str, ...],
    ) -> ResolvedFunction:
        by_types = {_by_actual(c, len(arguments)): c for c in candidates}
        exact = by_types.get(arguments)
        if exact is None and len(arguments) == 1 and not argument_names:
            cast = self._cast_call(shown, arguments[0])
            if cast is not None:
                return cast
        chosen: tuple[int, ...] | None = arguments if exact is not None else None
        if chosen is None:
            possible = [
                types for types in by_types if self.types.can_coerce_all(arguments, types)
            ]
            if not possible:
                raise errors.UndefinedFunction(
                    f"function {self._call_text(shown, arguments, argument_names)} does not exist",
                    hint="No function matches the given name and argument types."
                    " You might need to add explicit type casts.",
                )
            chosen = possible[0] if len(possible) == 1 else self._select(arguments, possible)
        if chosen is None:
            raise errors.AmbiguousFunction(
                f"function {self._call_text(shown, arguments, argument_names)} is not unique",
                hint="Could not choose a best candidate function."
                " You might need to add explicit type casts.",
            )
        return self._finish(by_types[chosen], arguments)

    def _finish(self, candidate: _Candidate, arguments: tuple[int, ...]) -> ResolvedFunction:
        actual = tuple(
            candidate.types[i] if source is None else arguments[source]
            for i, source in enumerate(candidate.sources)
        )
        signature = candidate.signature
        types, result = self.settle(actual, candidate.types, signature.result)
        return ResolvedFunction(signature, types, result, candidate.sources, candidate.packed)

    def settle(
        self, actual: tuple[int, ...], declared: tuple[int, ...], result: int
    ) -> tuple[tuple[int, ...], int]:
        """The argument and result types with polymorphic types replaced by actual ones."""
        if not any(d in t.POLYMORPHIC for d in (*declared, result)):
            return declared, result
        found = self.types.polymorphic(actual, declared, result)
        if found is None:
            raise errors.DatatypeMismatch("could not determine polymorphic type")
        types, result = found
        for target in types:
            if target in t.POLYMORPHIC and target != t.ANYARRAY:
                raise errors.DatatypeMismatch(
                    "could not determine polymorphic type because input has type unknown"
                )
            if target == t.ANYARRAY and t.ANYARRAY not in actual:
                raise errors.DatatypeMismatch(
                    "could not determine polymorphic type because input has type unknown"
                )
        return types, result

    def _cast_call(self, name: str, argument: int) -> ResolvedFunction | None:
        """``type(value)`` as a cast, where PostgreSQL allows it."""
        entry = self.snapshot.resolve_type(name, self.path)
        if entry is None or entry.kind not in "bdecrm":
            return None
        is_cast = argument == t.UNKNOWN
        if not is_cast:
            conversion = self.types.conversion(argument, entry.oid, Context.EXPLICIT)
            if conversion is not None and conversion.path is Path.RELABEL:
                is_cast = True
            elif conversion is not None and conversion.path is Path.TEXT_IO:
                is_composite = argument == t.RECORD or self.types.is_composite(argument)
                is_cast = not (is_composite and self.types.category(entry.oid) == "S")
        if not is_cast:
            return None
        signature = Signature(0, name, entry.schema, "f", (argument,), entry.oid, "")
        return ResolvedFunction(signature, (argument,), entry.oid, (0,), cast_to=entry.oid)

    def _call_text(
        self, name: str, arguments: tuple[int, ...], argument_names: tuple[str, ...]
    ) -> str:
        first_named = len(arguments) - len(argument_names)
        parts = []
        for i, oid in enumerate(arguments):
            label = f"{argument_names[i - first_named]} => " if i >= first_named else ""
            parts.append(label + self.types.name(oid))
        return f"{name}({', '.join(parts)})"

    # Operators

    def operator(self, name: str, left: int, right: int) -> ResolvedOperator:
        """The operator; ``left`` 0 for a prefix operator.

        Raises UndefinedFunction (42883) and AmbiguousFunction (42725).
        """
        key = (name, left, right)
        found = self._operators.get(key)
        if found is None:
            found = self._operators[key] = self._operator(name, left, right)
        return found

    def find_operator(self, name: str, left: int, right: int) -> ResolvedOperator | None:
        """As ``operator``, None where it raises."""
        try:
            return self.operator(name, left, right)
        except (errors.UndefinedFunction, errors.AmbiguousFunction):
            return None

    def _operator(self, name: str, left: int, right: int) -> ResolvedOperator:
        found = {
            (o.left, o.right): o
            for o in signatures.operators_named(name)
            if bool(o.left) == bool(left)
        }
        types = self._exact_operator(found, left, right)
        if types is None:
            actual = (left, right) if left else (right,)
            possible: list[tuple[int, ...]] = [
                candidate if left else candidate[1:]
                for candidate in found
                if self.types.can_coerce_all(actual, candidate if left else candidate[1:])
            ]
            if not possible:
                raise self._no_operator(name, left, right)
            chosen = possible[0] if len(possible) == 1 else self._select(actual, possible)
            if chosen is None:
                raise errors.AmbiguousFunction(
                    f"operator is not unique: {self._operation_text(name, left, right)}",
                    hint="Could not choose a best candidate operator."
                    " You might need to add explicit type casts.",
                )
            types = (chosen[0], chosen[1]) if left else (0, chosen[0])
        signature = found[types]
        actual = (left, right) if left else (right,)
        declared = types if left else types[1:]
        settled, result = self.settle(actual, declared, signature.result)
        function = signatures.function_by_oid(signature.function)
        return ResolvedOperator(
            signature, function, settled[0] if left else 0, settled[-1], result
        )

    def _exact_operator(
        self, found: dict[tuple[int, int], OperatorSignature], left: int, right: int
    ) -> tuple[int, int] | None:
        """An operator of just these types; an unknown side is taken for the other side's type."""
        if not left:
            return (0, right) if (0, right) in found else None
        was_unknown = True
        if left == t.UNKNOWN and right != t.UNKNOWN:
            left = right
        elif right == t.UNKNOWN and left != t.UNKNOWN:
            right = left
        else:
            was_unknown = False
        if (left, right) in found:
            return (left, right)
        if was_unknown:
            base = self.types.base(left)
            if base != left and (base, base) in found:
                return (base, base)
        return None

    def _no_operator(self, name: str, left: int, right: int) -> errors.SqlError:
        hint = (
            "No operator matches the given name and argument types."
            " You might need to add explicit type casts."
            if left
            else "No operator matches the given name and argument type."
            " You might need to add an explicit type cast."
        )
        shown = self._operation_text(name, left, right)
        return errors.UndefinedFunction(f"operator does not exist: {shown}", hint=hint)

    def _operation_text(self, name: str, left: int, right: int) -> str:
        text = f"{name} {self.types.name(right)}"
        return f"{self.types.name(left)} {text}" if left else text

    # Choosing among several

    def _select(
        self, arguments: tuple[int, ...], candidates: list[tuple[int, ...]]
    ) -> tuple[int, ...] | None:
        """The best of the possible candidates, None when there is no single best."""
        types = self.types
        bases = tuple(oid if oid == t.UNKNOWN else types.base(oid) for oid in arguments)
        known = [i for i, oid in enumerate(bases) if oid != t.UNKNOWN]
        unknown = [i for i, oid in enumerate(bases) if oid == t.UNKNOWN]
        candidates = _best(candidates, lambda c: sum(c[i] == bases[i] for i in known))
        if len(candidates) == 1:
            return candidates[0]
        categories = {i: types.category(bases[i]) for i in known}

        def matches(candidate: tuple[int, ...]) -> int:
            return sum(
                candidate[i] == bases[i]
                or (
                    types.is_preferred(candidate[i])
                    and types.category(candidate[i]) == categories[i]
                )
                for i in known
            )

        candidates = _best(candidates, matches)
        if len(candidates) == 1:
            return candidates[0]
        if not unknown:
            return None
        candidates = self._by_category(candidates, unknown)
        if len(candidates) == 1:
            return candidates[0]
        known_types = {bases[i] for i in known}
        if len(known_types) == 1:
            assumed = tuple(known_types) * len(bases)
            fitting = [c for c in candidates if types.can_coerce_all(assumed, c)]
            if len(fitting) == 1:
                return fitting[0]
        return None

    def _by_category(
        self, candidates: list[tuple[int, ...]], unknown: list[int]
    ) -> list[tuple[int, ...]]:
        """The candidates whose types at unknown literals are of the category to assume there."""
        types = self.types
        chosen: dict[int, tuple[str, bool]] = {}
        for i in unknown:
            category = ""
            has_preferred = has_conflict = False
            for candidate in candidates:
                own = types.category(candidate[i])
                is_preferred = types.is_preferred(candidate[i])
                if not category:
                    category, has_preferred = own, is_preferred
                elif own == category:
                    has_preferred |= is_preferred
                elif own == "S":
                    category, has_preferred = own, is_preferred
                else:
                    has_conflict = True
            if has_conflict and category != "S":
                return candidates
            chosen[i] = (category, has_preferred)
        kept = [
            candidate
            for candidate in candidates
            if all(
                types.category(candidate[i]) == category
                and (types.is_preferred(candidate[i]) or not has_preferred)
                for i, (category, has_preferred) in chosen.items()
            )
        ]
        return kept or candidates


def _best(
    candidates: list[tuple[int, ...]], score: Callable[[tuple[int, ...]], int]
) -> list[tuple[int, ...]]:
    scores = [score(candidate) for candidate in candidates]
    top = max(scores)
    return [c for c, s in zip(candidates, scores, strict=True) if s == top]


def _by_actual(candidate: _Candidate, count: int) -> tuple[int, ...]:
    """The candidate's types in the order of the call's arguments."""
    found = [0] * count
    for oid, source in zip(candidate.types, candidate.sources, strict=True):
        if source is not None:
            found[source] = oid
    return tuple(found)


def _is_nearer(candidate: _Candidate, other: _Candidate) -> bool:
    """Whether it wins over one with the same types: nearer, no VARIADIC, fewer defaults."""
    if candidate.depth != other.depth:
        return candidate.depth < other.depth
    if bool(candidate.packed) != bool(other.packed):
        return not candidate.packed
    return candidate.default_count < other.default_count


def _shape(
    signature: Signature, count: int, argument_names: tuple[str, ...], is_variadic: bool
) -> _Candidate | None:
    """The signature fitted to ``count`` arguments, None when it takes another number."""
    declared = signature.arguments
    if argument_names:
        return _shape_named(signature, count, argument_names, is_variadic)
    if signature.variadic and not is_variadic and count >= len(declared):
        fixed = len(declared) - 1
        packed = 0 if signature.variadic == t.ANY else count - fixed
        types = declared[:fixed] + (signature.variadic,) * (count - fixed)
        return _Candidate(signature, types, tuple(range(count)), packed)
    if is_variadic and not signature.variadic:
        return None
    missing = len(declared) - count
    if missing < 0 or missing > len(signature.defaults):
        return None
    sources: tuple[int | None, ...] = (*range(count), *(None,) * missing)
    return _Candidate(signature, declared, sources)


def _shape_named(
    signature: Signature, count: int, argument_names: tuple[str, ...], is_variadic: bool
) -> _Candidate | None:
    declared = signature.arguments
    if signature.variadic and not is_variadic:
        return None
    if count > len(declared) or len(signature.names) != len(declared):
        return None
    positional = count - len(argument_names)
    sources: list[int | None] = [*range(positional), *(None,) * (len(declared) - positional)]
    for number, name in enumerate(argument_names):
        if name not in signature.names:
            return None
        place = signature.names.index(name)
        if sources[place] is not None:
            return None
        sources[place] = positional + number
    first_default = len(declared) - len(signature.defaults)
    if any(source is None for source in sources[:first_default]):
        return None
    return _Candidate(signature, declared, tuple(sources))


_RESOLVERS: dict[tuple[int, int, SearchPath], Resolver] = {}


def resolver(snapshot: CatalogSnapshot, path: SearchPath) -> Resolver:
    """The resolver of a catalog version and search path, kept for the next statement."""
    key = (snapshot.version, snapshot.database, path)
    found = _RESOLVERS.get(key)
    if found is None:
        while len(_RESOLVERS) >= RESOLVERS_MAX:
            del _RESOLVERS[next(iter(_RESOLVERS))]
        found = _RESOLVERS[key] = Resolver(snapshot, path)
    return found


def check_count(arguments: Sequence[object]) -> None:
    """54023 for more arguments than a function may have."""
    if len(arguments) > ARGUMENTS_MAX:
        raise errors.TooManyArguments(
            f"cannot pass more than {ARGUMENTS_MAX} arguments to a function"
        )
