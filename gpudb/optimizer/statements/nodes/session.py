"""Statements about the session: transactions, settings, cursors, COPY, maintenance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gpudb.optimizer.statements.nodes.base import (
    Option,
    QualifiedName,
    QueryStatement,
    Relation,
    Slice,
    TypeName,
)

if TYPE_CHECKING:
    from gpudb.optimizer.statements.nodes import Statement


# --- transactions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TransactionModes:
    """None where a mode is not given; ``isolation`` as ``read committed``."""

    isolation: str | None = None
    is_read_only: bool | None = None
    is_deferrable: bool | None = None


@dataclass(frozen=True, slots=True)
class Begin:
    modes: TransactionModes = TransactionModes()
    is_start: bool = False

    @property
    def tag(self) -> str:
        return "START TRANSACTION" if self.is_start else "BEGIN"


@dataclass(frozen=True, slots=True)
class Commit:
    chain: bool = False
    tag: ClassVar[str] = "COMMIT"


@dataclass(frozen=True, slots=True)
class Rollback:
    chain: bool = False
    tag: ClassVar[str] = "ROLLBACK"


@dataclass(frozen=True, slots=True)
class Savepoint:
    name: str
    tag: ClassVar[str] = "SAVEPOINT"


@dataclass(frozen=True, slots=True)
class ReleaseSavepoint:
    name: str
    tag: ClassVar[str] = "RELEASE"


@dataclass(frozen=True, slots=True)
class RollbackToSavepoint:
    name: str
    tag: ClassVar[str] = "ROLLBACK"


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """PREPARE TRANSACTION, COMMIT PREPARED or ROLLBACK PREPARED, as ``action`` says."""

    action: str
    gid: str

    @property
    def tag(self) -> str:
        return self.action


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """SET TRANSACTION, or SET SESSION CHARACTERISTICS when ``is_session``."""

    modes: TransactionModes
    is_session: bool = False
    tag: ClassVar[str] = "SET"


@dataclass(frozen=True, slots=True)
class SetTransactionSnapshot:
    snapshot: str
    tag: ClassVar[str] = "SET"


@dataclass(frozen=True, slots=True)
class SetConstraints:
    """``names`` None stands for ALL."""

    names: tuple[QualifiedName, ...] | None
    is_deferred: bool
    tag: ClassVar[str] = "SET CONSTRAINTS"


# --- settings -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetVariable:
    """SET name. ``values`` None stands for DEFAULT; strings are unquoted.

    TIME ZONE becomes timezone, NAMES client_encoding, SCHEMA search_path, ROLE role, SESSION
    AUTHORIZATION session_authorization, SEED seed, XML OPTION xmloption. An interval zone comes as
    ``INTERVAL '...' fields`` with ``is_interval``.
    """

    name: str
    values: tuple[str, ...] | None
    is_local: bool = False
    is_interval: bool = False
    from_current: bool = False
    tag: ClassVar[str] = "SET"


@dataclass(frozen=True, slots=True)
class ResetVariable:
    """``name`` None stands for ALL."""

    name: str | None
    tag: ClassVar[str] = "RESET"


@dataclass(frozen=True, slots=True)
class ShowVariable:
    """``name`` None stands for ALL."""

    name: str | None
    tag: ClassVar[str] = "SHOW"


@dataclass(frozen=True, slots=True)
class Discard:
    """``target`` is all, plans, sequences or temp."""

    target: str

    @property
    def tag(self) -> str:
        return f"DISCARD {self.target.upper()}"


# --- prepared statements and cursors ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepare:
    name: str
    types: tuple[TypeName, ...]
    statement: QueryStatement
    tag: ClassVar[str] = "PREPARE"


@dataclass(frozen=True, slots=True)
class Execute:
    """EXECUTE; the tag is that of the statement executed."""

    name: str
    arguments: tuple[Slice, ...]
    tag: ClassVar[str] = "EXECUTE"


@dataclass(frozen=True, slots=True)
class Deallocate:
    """``name`` None stands for ALL."""

    name: str | None

    @property
    def tag(self) -> str:
        return "DEALLOCATE ALL" if self.name is None else "DEALLOCATE"


@dataclass(frozen=True, slots=True)
class DeclareCursor:
    """``scroll`` and ``insensitive`` are None where neither form was written."""

    name: str
    query: QueryStatement
    is_binary: bool = False
    scroll: bool | None = None
    insensitive: bool | None = None
    hold: bool = False
    tag: ClassVar[str] = "DECLARE CURSOR"


@dataclass(frozen=True, slots=True)
class Fetch:
    """FETCH or MOVE. ``direction``: forward, backward, absolute, relative; ``count`` None: ALL.

    NEXT is forward 1, PRIOR backward 1, FIRST absolute 1, LAST absolute -1.
    """

    cursor: str
    direction: str = "forward"
    count: int | None = 1
    is_move: bool = False

    @property
    def tag(self) -> str:
        return "MOVE" if self.is_move else "FETCH"


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """``name`` None stands for ALL."""

    name: str | None

    @property
    def tag(self) -> str:
        return "CLOSE CURSOR ALL" if self.name is None else "CLOSE CURSOR"


# --- maintenance and messages -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listen:
    channel: str
    tag: ClassVar[str] = "LISTEN"


@dataclass(frozen=True, slots=True)
class Notify:
    channel: str
    payload: str = ""
    tag: ClassVar[str] = "NOTIFY"


@dataclass(frozen=True, slots=True)
class Unlisten:
    """``channel`` None stands for ``*``."""

    channel: str | None
    tag: ClassVar[str] = "UNLISTEN"


@dataclass(frozen=True, slots=True)
class Lock:
    """``mode`` as ``access exclusive``."""

    tables: tuple[Relation, ...]
    mode: str = "access exclusive"
    nowait: bool = False
    tag: ClassVar[str] = "LOCK TABLE"


@dataclass(frozen=True, slots=True)
class Vacuum:
    """VACUUM, or ANALYZE when ``is_analyze``. Old-style words become options."""

    options: tuple[Option, ...] = ()
    tables: tuple[Relation, ...] = ()
    is_analyze: bool = False

    @property
    def tag(self) -> str:
        return "ANALYZE" if self.is_analyze else "VACUUM"


@dataclass(frozen=True, slots=True)
class Reindex:
    """``kind`` is index, table, schema, database or system."""

    kind: str
    name: QualifiedName | None
    options: tuple[Option, ...] = ()
    tag: ClassVar[str] = "REINDEX"


@dataclass(frozen=True, slots=True)
class Cluster:
    table: QualifiedName | None = None
    index: str = ""
    options: tuple[Option, ...] = ()
    tag: ClassVar[str] = "CLUSTER"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    tag: ClassVar[str] = "CHECKPOINT"


@dataclass(frozen=True, slots=True)
class Load:
    file: str
    tag: ClassVar[str] = "LOAD"


@dataclass(frozen=True, slots=True)
class Do:
    language: str
    body: str
    tag: ClassVar[str] = "DO"


@dataclass(frozen=True, slots=True)
class Call:
    """``call`` is the text of the call expression."""

    procedure: QualifiedName
    call: Slice
    tag: ClassVar[str] = "CALL"


# --- COPY and EXPLAIN ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Copy:
    """COPY in all syntaxes; old ones become the same options as new ones.

    Exactly one of ``table`` and ``query`` is given. ``file`` None stands for STDIN or STDOUT.
    """

    table: QualifiedName | None
    query: QueryStatement | None
    columns: tuple[str, ...]
    is_from: bool
    file: str | None = None
    is_program: bool = False
    options: tuple[Option, ...] = ()
    where: Slice | None = None
    tag: ClassVar[str] = "COPY"


@dataclass(frozen=True, slots=True)
class Explain:
    """Options in lower case; ANALYZE and VERBOSE of the old syntax become options."""

    options: tuple[Option, ...]
    statement: Statement
    tag: ClassVar[str] = "EXPLAIN"
