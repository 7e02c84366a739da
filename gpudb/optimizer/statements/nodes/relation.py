"""Statements that define tables, views, indexes, and those on any object."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gpudb.optimizer.statements.nodes.base import (
    Option,
    QualifiedName,
    QueryStatement,
    Relation,
    Slice,
    TypeName,
)
from gpudb.optimizer.statements.nodes.session import (
    Execute,
)


@dataclass(frozen=True, slots=True)
class References:
    """A foreign key's target; ``match`` simple, full or partial; actions in lower case."""

    table: QualifiedName
    columns: tuple[str, ...] = ()
    match: str = "simple"
    on_delete: str = "no action"
    on_update: str = "no action"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A column or table constraint.

    ``kind``: not null, null, default, check, unique, primary key, references, foreign key,
    generated (stored expression), identity, exclude, using index. ``expression`` belongs to
    default, check, generated, exclude; ``columns`` to keys (empty on a column); ``identity`` is
    always or by default; ``options`` are WITH (...) or the identity's sequence options.
    """

    kind: str
    name: str = ""
    expression: Slice | None = None
    columns: tuple[str, ...] = ()
    references: References | None = None
    identity: str = ""
    index: str = ""
    include: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    nulls_not_distinct: bool = False
    deferrable: bool | None = None
    initially_deferred: bool | None = None
    not_valid: bool = False
    no_inherit: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """``type`` is None in CREATE TABLE OF and PARTITION OF, where it comes from elsewhere."""

    name: str
    type: TypeName | None
    constraints: tuple[Constraint, ...] = ()
    collation: QualifiedName | None = None
    storage: str = ""
    compression: str = ""
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class LikeClause:
    """LIKE t; ``including`` are the words after INCLUDING that no EXCLUDING took back."""

    table: QualifiedName
    including: frozenset[str] = frozenset()


TableElement = ColumnDefinition | Constraint | LikeClause


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``persistence`` is permanent, temporary or unlogged; ``on_commit`` preserve, delete, drop.

    ``partition_by`` and ``partition_of`` keep the clause's text.
    """

    name: QualifiedName
    elements: tuple[TableElement, ...] = ()
    persistence: str = "permanent"
    if_not_exists: bool = False
    inherits: tuple[QualifiedName, ...] = ()
    of_type: QualifiedName | None = None
    partition_of: QualifiedName | None = None
    partition_bound: Slice | None = None
    partition_by: Slice | None = None
    access_method: str = ""
    options: tuple[Option, ...] = ()
    on_commit: str = ""
    tablespace: str = ""
    tag: ClassVar[str] = "CREATE TABLE"


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """CREATE TABLE AS, SELECT INTO, CREATE MATERIALIZED VIEW. ``query`` may be an Execute.

    SELECT INTO keeps the query's text with the INTO clause blanked, so positions hold.
    """

    name: QualifiedName
    query: QueryStatement | Execute
    columns: tuple[str, ...] = ()
    persistence: str = "permanent"
    if_not_exists: bool = False
    is_materialized_view: bool = False
    is_select_into: bool = False
    access_method: str = ""
    options: tuple[Option, ...] = ()
    on_commit: str = ""
    tablespace: str = ""
    with_data: bool = True

    @property
    def tag(self) -> str:
        """The tag with WITH NO DATA; with data it is SELECT and the count."""
        return "CREATE MATERIALIZED VIEW" if self.is_materialized_view else "CREATE TABLE AS"


@dataclass(frozen=True, slots=True)
class CreateView:
    """``check_option`` is "", local or cascaded."""

    name: QualifiedName
    query: QueryStatement
    columns: tuple[str, ...] = ()
    or_replace: bool = False
    is_temporary: bool = False
    is_recursive: bool = False
    options: tuple[Option, ...] = ()
    check_option: str = ""
    tag: ClassVar[str] = "CREATE VIEW"


@dataclass(frozen=True, slots=True)
class RefreshMaterializedView:
    name: QualifiedName
    concurrently: bool = False
    with_data: bool = True
    tag: ClassVar[str] = "REFRESH MATERIALIZED VIEW"


@dataclass(frozen=True, slots=True)
class IndexElement:
    """``column`` for a plain column, else ``expression``. ``nulls_first`` None = by order."""

    column: str = ""
    expression: Slice | None = None
    collation: QualifiedName | None = None
    operator_class: QualifiedName | None = None
    is_descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class CreateIndex:
    name: str
    table: Relation
    elements: tuple[IndexElement, ...]
    method: str = "btree"
    is_unique: bool = False
    concurrently: bool = False
    if_not_exists: bool = False
    include: tuple[str, ...] = ()
    nulls_not_distinct: bool = False
    options: tuple[Option, ...] = ()
    tablespace: str = ""
    where: Slice | None = None
    tag: ClassVar[str] = "CREATE INDEX"


@dataclass(frozen=True, slots=True)
class AlterAction:
    """One action of ALTER TABLE and of ALTER VIEW, INDEX, MATERIALIZED VIEW, TYPE, DOMAIN.

    ``kind`` is the action's words in lower case and decides which fields hold something:
    add column (definition, if_not_exists) · drop column (name, if_exists, cascade) ·
    alter column type (name, type, collation, expression of USING) · set default (name,
    expression) · drop default · set not null · drop not null · set statistics (name, value) ·
    set storage · set compression · set column options, reset column options (name, options) ·
    add identity (name, constraint) · set identity (name, options) · drop identity ·
    drop expression · add constraint (constraint) · drop constraint (name, if_exists, cascade) ·
    validate constraint (name) · alter constraint (name) · set options, reset options (options) ·
    owner (value) · set schema, set tablespace, set access method, cluster on, replica identity
    (value) · set logged, set unlogged, set without cluster, set without oids · inherit,
    no inherit (table) · of, not of · enable/disable trigger, rule, row level security, force,
    no force row level security (value) · attach partition, detach partition (table, expression) ·
    add attribute, drop attribute, alter attribute · add value (value, name, position_word).
    """

    kind: str
    name: str = ""
    definition: ColumnDefinition | None = None
    constraint: Constraint | None = None
    type: TypeName | None = None
    collation: QualifiedName | None = None
    expression: Slice | None = None
    options: tuple[Option, ...] = ()
    value: str = ""
    table: QualifiedName | None = None
    position_word: str = ""
    if_exists: bool = False
    if_not_exists: bool = False
    cascade: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE, VIEW, MATERIALIZED VIEW, INDEX, FOREIGN TABLE, TYPE or DOMAIN with actions.

    ``kind`` is ``table``, ``view``, ``materialized view``, ``index``, ``foreign table``, ``type``,
    ``domain``.
    """

    kind: str
    table: Relation
    actions: tuple[AlterAction, ...]
    if_exists: bool = False

    @property
    def tag(self) -> str:
        return f"ALTER {self.kind.upper()}"


@dataclass(frozen=True, slots=True)
class ObjectName:
    """An object of any kind as DROP, COMMENT, GRANT and ALTER name it.

    ``arguments`` is the text of a function's or aggregate's argument list (None when there is
    none), ``argument_types`` the input types in it; ``on`` the table of a constraint, trigger,
    rule, policy, or the access method after USING; ``text`` the whole source for kinds not read
    further (casts, operators, transforms, large objects), ``domain`` for a domain's constraint.
    """

    name: QualifiedName
    arguments: Slice | None = None
    on: QualifiedName | None = None
    text: str = ""
    argument_types: tuple[TypeName, ...] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Rename:
    """ALTER ... RENAME [COLUMN | CONSTRAINT | ATTRIBUTE | VALUE member] TO new_name.

    ``member_kind`` is "", column, constraint, attribute or value.
    """

    kind: str
    object: ObjectName
    new_name: str
    member_kind: str = ""
    member: str = ""
    if_exists: bool = False
    cascade: bool = False

    @property
    def tag(self) -> str:
        return f"ALTER {self.kind.upper()}"


@dataclass(frozen=True, slots=True)
class AlterOwner:
    """``owner`` may be current_user, current_role, session_user unquoted (``owner_is_keyword``)."""

    kind: str
    object: ObjectName
    owner: str
    owner_is_keyword: bool = False

    @property
    def tag(self) -> str:
        return f"ALTER {self.kind.upper()}"


@dataclass(frozen=True, slots=True)
class AlterSchema:
    """ALTER kind name SET SCHEMA schema."""

    kind: str
    object: ObjectName
    schema: str
    if_exists: bool = False

    @property
    def tag(self) -> str:
        return f"ALTER {self.kind.upper()}"


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP of every kind; ``kind`` as ``materialized view``."""

    kind: str
    objects: tuple[ObjectName, ...]
    if_exists: bool = False
    cascade: bool = False
    concurrently: bool = False
    version: int | None = None

    @property
    def tag(self) -> str:
        return f"DROP {self.kind.upper()}"


@dataclass(frozen=True, slots=True)
class Truncate:
    tables: tuple[Relation, ...]
    restart_identity: bool = False
    cascade: bool = False
    tag: ClassVar[str] = "TRUNCATE TABLE"


@dataclass(frozen=True, slots=True)
class Comment:
    """``comment`` None removes it. ``kind`` is ``column``, ``table``, ``constraint`` ..."""

    kind: str
    object: ObjectName
    comment: str | None
    tag: ClassVar[str] = "COMMENT"


@dataclass(frozen=True, slots=True)
class SecurityLabel:
    kind: str
    object: ObjectName
    label: str | None
    provider: str = ""
    tag: ClassVar[str] = "SECURITY LABEL"
