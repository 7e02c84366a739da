"""Utility statements as frozen dataclasses: what the session and the catalog execute.

Names are already folded, unquoted and cut to 63 bytes. Expressions and queries inside a statement
stay source text with its offset (`Slice`); the query parser reads them later. ``tag`` is the
command tag of CommandComplete; statements whose tag carries a count or depends on execution give
its first words.
"""

from __future__ import annotations

from gpudb.optimizer.statements.nodes.base import (
    Empty,
    Option,
    QualifiedName,
    QueryStatement,
    Relation,
    Slice,
    TypeName,
    Unsupported,
)
from gpudb.optimizer.statements.nodes.definition import (
    AlterDatabase,
    AlterDefaultPrivileges,
    AlterRole,
    AlterSequence,
    AlterSystem,
    CreateDatabase,
    CreateDomain,
    CreateExtension,
    CreateFunction,
    CreateRole,
    CreateSchema,
    CreateSequence,
    CreateType,
    DropOwned,
    Grant,
    GrantRole,
    Parameter,
    Privilege,
    ReassignOwned,
)
from gpudb.optimizer.statements.nodes.model import (
    AlterModel,
    ControlTraining,
    CopyModel,
    EvaluateModel,
    ModelFeature,
    ModelOption,
    TrainModel,
    TuneParameter,
    VerifyModel,
)
from gpudb.optimizer.statements.nodes.relation import (
    AlterAction,
    AlterOwner,
    AlterSchema,
    AlterTable,
    ColumnDefinition,
    Comment,
    Constraint,
    CreateIndex,
    CreateTable,
    CreateTableAs,
    CreateView,
    Drop,
    IndexElement,
    LikeClause,
    ObjectName,
    References,
    RefreshMaterializedView,
    Rename,
    SecurityLabel,
    TableElement,
    Truncate,
)
from gpudb.optimizer.statements.nodes.session import (
    Begin,
    Call,
    Checkpoint,
    CloseCursor,
    Cluster,
    Commit,
    Copy,
    Deallocate,
    DeclareCursor,
    Discard,
    Do,
    Execute,
    Explain,
    Fetch,
    Listen,
    Load,
    Lock,
    Notify,
    Prepare,
    PreparedTransaction,
    Reindex,
    ReleaseSavepoint,
    ResetVariable,
    Rollback,
    RollbackToSavepoint,
    Savepoint,
    SetConstraints,
    SetTransaction,
    SetTransactionSnapshot,
    SetVariable,
    ShowVariable,
    TransactionModes,
    Unlisten,
    Vacuum,
)

Statement = (
    QueryStatement
    | Empty
    | Unsupported
    | Begin
    | Commit
    | Rollback
    | Savepoint
    | ReleaseSavepoint
    | RollbackToSavepoint
    | PreparedTransaction
    | SetTransaction
    | SetTransactionSnapshot
    | SetConstraints
    | SetVariable
    | ResetVariable
    | ShowVariable
    | Discard
    | Prepare
    | Execute
    | Deallocate
    | DeclareCursor
    | Fetch
    | CloseCursor
    | Listen
    | Notify
    | Unlisten
    | Lock
    | Vacuum
    | Reindex
    | Cluster
    | Checkpoint
    | Load
    | Do
    | Call
    | Copy
    | Explain
    | CreateTable
    | CreateTableAs
    | CreateView
    | RefreshMaterializedView
    | CreateIndex
    | AlterTable
    | Rename
    | AlterOwner
    | AlterSchema
    | Drop
    | Truncate
    | Comment
    | SecurityLabel
    | CreateSchema
    | CreateDatabase
    | AlterDatabase
    | CreateSequence
    | AlterSequence
    | CreateType
    | CreateDomain
    | CreateFunction
    | CreateExtension
    | CreateRole
    | AlterRole
    | AlterSystem
    | Grant
    | GrantRole
    | AlterDefaultPrivileges
    | DropOwned
    | ReassignOwned
    | TrainModel
    | EvaluateModel
    | VerifyModel
    | ControlTraining
    | AlterModel
    | CopyModel
)

__all__ = [
    "AlterAction",
    "AlterDatabase",
    "AlterDefaultPrivileges",
    "AlterModel",
    "AlterOwner",
    "AlterRole",
    "AlterSchema",
    "AlterSequence",
    "AlterSystem",
    "AlterTable",
    "Begin",
    "Call",
    "Checkpoint",
    "CloseCursor",
    "Cluster",
    "ColumnDefinition",
    "Comment",
    "Commit",
    "Constraint",
    "ControlTraining",
    "Copy",
    "CopyModel",
    "CreateDatabase",
    "CreateDomain",
    "CreateExtension",
    "CreateFunction",
    "CreateIndex",
    "CreateRole",
    "CreateSchema",
    "CreateSequence",
    "CreateTable",
    "CreateTableAs",
    "CreateType",
    "CreateView",
    "Deallocate",
    "DeclareCursor",
    "Discard",
    "Do",
    "Drop",
    "DropOwned",
    "Empty",
    "EvaluateModel",
    "Execute",
    "Explain",
    "Fetch",
    "Grant",
    "GrantRole",
    "IndexElement",
    "LikeClause",
    "Listen",
    "Load",
    "Lock",
    "ModelFeature",
    "ModelOption",
    "Notify",
    "ObjectName",
    "Option",
    "Parameter",
    "Prepare",
    "PreparedTransaction",
    "Privilege",
    "QualifiedName",
    "QueryStatement",
    "ReassignOwned",
    "References",
    "RefreshMaterializedView",
    "Reindex",
    "Relation",
    "ReleaseSavepoint",
    "Rename",
    "ResetVariable",
    "Rollback",
    "RollbackToSavepoint",
    "Savepoint",
    "SecurityLabel",
    "SetConstraints",
    "SetTransaction",
    "SetTransactionSnapshot",
    "SetVariable",
    "ShowVariable",
    "Slice",
    "Statement",
    "TableElement",
    "TrainModel",
    "TransactionModes",
    "Truncate",
    "TuneParameter",
    "TypeName",
    "Unlisten",
    "Unsupported",
    "Vacuum",
    "VerifyModel",
]
