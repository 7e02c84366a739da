"""SQL errors: one class per SQLSTATE.

The names are PostgreSQL's condition names (appendix A of its manual) in camel case. Code raises
the class that names the condition (``raise errors.UndefinedColumn(...)``), worded as PostgreSQL
words the message; the session turns it into an ErrorResponse. Everything that is not an SqlError
is a defect of gpudb and reaches the client as XX000.
"""

from __future__ import annotations

from typing import ClassVar


class SqlError(Exception):
    """An error with the fields of PostgreSQL's ErrorResponse.

    ``position`` counts characters from 1 in the statement's text; 0 means unknown.
    """

    sqlstate: ClassVar[str] = "XX000"
    severity: ClassVar[str] = "ERROR"

    def __init__(
        self,
        message: str,
        *,
        detail: str = "",
        hint: str = "",
        position: int = 0,
        context: str = "",
        schema: str = "",
        table: str = "",
        column: str = "",
        data_type: str = "",
        constraint: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
        self.context = context
        self.schema = schema
        self.table = table
        self.column = column
        self.data_type = data_type
        self.constraint = constraint

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, dict(self.__dict__)))


def _rebuild(kind: type[SqlError], message: str, fields: dict[str, object]) -> SqlError:
    error = kind(message)
    error.__dict__.update(fields)
    return error


def by_sqlstate(code: str) -> type[SqlError]:
    """The class of an SQLSTATE; SqlError itself for a code without a class."""
    return _BY_SQLSTATE.get(code, SqlError)


class ConnectionException(SqlError):
    sqlstate = "08000"


class ConnectionDoesNotExist(SqlError):
    sqlstate = "08003"


class ConnectionFailure(SqlError):
    sqlstate = "08006"


class SqlclientUnableToEstablishSqlconnection(SqlError):
    sqlstate = "08001"


class SqlserverRejectedEstablishmentOfSqlconnection(SqlError):
    sqlstate = "08004"


class TransactionResolutionUnknown(SqlError):
    sqlstate = "08007"


class ProtocolViolation(SqlError):
    sqlstate = "08P01"


class FeatureNotSupported(SqlError):
    sqlstate = "0A000"


class CardinalityViolation(SqlError):
    sqlstate = "21000"


class DataException(SqlError):
    sqlstate = "22000"


class ArraySubscriptError(SqlError):
    sqlstate = "2202E"


class CharacterNotInRepertoire(SqlError):
    sqlstate = "22021"


class DatetimeFieldOverflow(SqlError):
    sqlstate = "22008"


class DivisionByZero(SqlError):
    sqlstate = "22012"


class ErrorInAssignment(SqlError):
    sqlstate = "22005"


class EscapeCharacterConflict(SqlError):
    sqlstate = "2200B"


class IndicatorOverflow(SqlError):
    sqlstate = "22022"


class IntervalFieldOverflow(SqlError):
    sqlstate = "22015"


class InvalidArgumentForLogarithm(SqlError):
    sqlstate = "2201E"


class InvalidArgumentForNtileFunction(SqlError):
    sqlstate = "22014"


class InvalidArgumentForNthValueFunction(SqlError):
    sqlstate = "22016"


class InvalidArgumentForPowerFunction(SqlError):
    sqlstate = "2201F"


class InvalidArgumentForWidthBucketFunction(SqlError):
    sqlstate = "2201G"


class InvalidCharacterValueForCast(SqlError):
    sqlstate = "22018"


class InvalidDatetimeFormat(SqlError):
    sqlstate = "22007"


class InvalidEscapeCharacter(SqlError):
    sqlstate = "22019"


class InvalidEscapeOctet(SqlError):
    sqlstate = "2200D"


class InvalidEscapeSequence(SqlError):
    sqlstate = "22025"


class NonstandardUseOfEscapeCharacter(SqlError):
    sqlstate = "22P06"


class InvalidIndicatorParameterValue(SqlError):
    sqlstate = "22010"


class InvalidParameterValue(SqlError):
    sqlstate = "22023"


class InvalidPrecedingOrFollowingSize(SqlError):
    sqlstate = "22013"


class InvalidRegularExpression(SqlError):
    sqlstate = "2201B"


class InvalidRowCountInLimitClause(SqlError):
    sqlstate = "2201W"


class InvalidRowCountInResultOffsetClause(SqlError):
    sqlstate = "2201X"


class InvalidTablesampleArgument(SqlError):
    sqlstate = "2202H"


class InvalidTablesampleRepeat(SqlError):
    sqlstate = "2202G"


class InvalidTimeZoneDisplacementValue(SqlError):
    sqlstate = "22009"


class InvalidUseOfEscapeCharacter(SqlError):
    sqlstate = "2200C"


class MostSpecificTypeMismatch(SqlError):
    sqlstate = "2200G"


class NullValueNotAllowed(SqlError):
    sqlstate = "22004"


class NullValueNoIndicatorParameter(SqlError):
    sqlstate = "22002"


class NumericValueOutOfRange(SqlError):
    sqlstate = "22003"


class SequenceGeneratorLimitExceeded(SqlError):
    sqlstate = "2200H"


class StringDataLengthMismatch(SqlError):
    sqlstate = "22026"


class StringDataRightTruncation(SqlError):
    sqlstate = "22001"


class SubstringError(SqlError):
    sqlstate = "22011"


class TrimError(SqlError):
    sqlstate = "22027"


class UnterminatedCString(SqlError):
    sqlstate = "22024"


class ZeroLengthCharacterString(SqlError):
    sqlstate = "2200F"


class FloatingPointException(SqlError):
    sqlstate = "22P01"


class InvalidTextRepresentation(SqlError):
    sqlstate = "22P02"


class InvalidBinaryRepresentation(SqlError):
    sqlstate = "22P03"


class BadCopyFileFormat(SqlError):
    sqlstate = "22P04"


class UntranslatableCharacter(SqlError):
    sqlstate = "22P05"


class IntegrityConstraintViolation(SqlError):
    sqlstate = "23000"


class RestrictViolation(SqlError):
    sqlstate = "23001"


class NotNullViolation(SqlError):
    sqlstate = "23502"


class ForeignKeyViolation(SqlError):
    sqlstate = "23503"


class UniqueViolation(SqlError):
    sqlstate = "23505"


class CheckViolation(SqlError):
    sqlstate = "23514"


class ExclusionViolation(SqlError):
    sqlstate = "23P01"


class InvalidCursorState(SqlError):
    sqlstate = "24000"


class InvalidTransactionState(SqlError):
    sqlstate = "25000"


class ActiveSqlTransaction(SqlError):
    sqlstate = "25001"


class BranchTransactionAlreadyActive(SqlError):
    sqlstate = "25002"


class HeldCursorRequiresSameIsolationLevel(SqlError):
    sqlstate = "25008"


class InappropriateAccessModeForBranchTransaction(SqlError):
    sqlstate = "25003"


class InappropriateIsolationLevelForBranchTransaction(SqlError):
    sqlstate = "25004"


class NoActiveSqlTransactionForBranchTransaction(SqlError):
    sqlstate = "25005"


class ReadOnlySqlTransaction(SqlError):
    sqlstate = "25006"


class SchemaAndDataStatementMixingNotSupported(SqlError):
    sqlstate = "25007"


class NoActiveSqlTransaction(SqlError):
    sqlstate = "25P01"


class InFailedSqlTransaction(SqlError):
    sqlstate = "25P02"


class IdleInTransactionSessionTimeout(SqlError):
    sqlstate = "25P03"


class InvalidSqlStatementName(SqlError):
    sqlstate = "26000"


class InvalidGrantor(SqlError):
    sqlstate = "0L000"


class InvalidGrantOperation(SqlError):
    sqlstate = "0LP01"


class InvalidAuthorizationSpecification(SqlError):
    sqlstate = "28000"


class InvalidPassword(SqlError):
    sqlstate = "28P01"


class DependentPrivilegeDescriptorsStillExist(SqlError):
    sqlstate = "2B000"


class DependentObjectsStillExist(SqlError):
    sqlstate = "2BP01"


class InvalidTransactionTermination(SqlError):
    sqlstate = "2D000"


class InvalidCursorName(SqlError):
    sqlstate = "34000"


class SavepointException(SqlError):
    sqlstate = "3B000"


class InvalidSavepointSpecification(SqlError):
    sqlstate = "3B001"


class InvalidCatalogName(SqlError):
    sqlstate = "3D000"


class InvalidSchemaName(SqlError):
    sqlstate = "3F000"


class TransactionRollback(SqlError):
    sqlstate = "40000"


class TransactionIntegrityConstraintViolation(SqlError):
    sqlstate = "40002"


class SerializationFailure(SqlError):
    sqlstate = "40001"


class StatementCompletionUnknown(SqlError):
    sqlstate = "40003"


class DeadlockDetected(SqlError):
    sqlstate = "40P01"


class SyntaxErrorOrAccessRuleViolation(SqlError):
    sqlstate = "42000"


class SyntaxError(SqlError):
    sqlstate = "42601"


class InsufficientPrivilege(SqlError):
    sqlstate = "42501"


class CannotCoerce(SqlError):
    sqlstate = "42846"


class GroupingError(SqlError):
    sqlstate = "42803"


class WindowingError(SqlError):
    sqlstate = "42P20"


class InvalidRecursion(SqlError):
    sqlstate = "42P19"


class InvalidForeignKey(SqlError):
    sqlstate = "42830"


class InvalidName(SqlError):
    sqlstate = "42602"


class NameTooLong(SqlError):
    sqlstate = "42622"


class ReservedName(SqlError):
    sqlstate = "42939"


class DatatypeMismatch(SqlError):
    sqlstate = "42804"


class IndeterminateDatatype(SqlError):
    sqlstate = "42P18"


class CollationMismatch(SqlError):
    sqlstate = "42P21"


class IndeterminateCollation(SqlError):
    sqlstate = "42P22"


class WrongObjectType(SqlError):
    sqlstate = "42809"


class GeneratedAlways(SqlError):
    sqlstate = "428C9"


class UndefinedColumn(SqlError):
    sqlstate = "42703"


class UndefinedFunction(SqlError):
    sqlstate = "42883"


class UndefinedTable(SqlError):
    sqlstate = "42P01"


class UndefinedParameter(SqlError):
    sqlstate = "42P02"


class UndefinedObject(SqlError):
    sqlstate = "42704"


class DuplicateColumn(SqlError):
    sqlstate = "42701"


class DuplicateCursor(SqlError):
    sqlstate = "42P03"


class DuplicateDatabase(SqlError):
    sqlstate = "42P04"


class DuplicateFunction(SqlError):
    sqlstate = "42723"


class DuplicatePreparedStatement(SqlError):
    sqlstate = "42P05"


class DuplicateSchema(SqlError):
    sqlstate = "42P06"


class DuplicateTable(SqlError):
    sqlstate = "42P07"


class DuplicateAlias(SqlError):
    sqlstate = "42712"


class DuplicateObject(SqlError):
    sqlstate = "42710"


class AmbiguousColumn(SqlError):
    sqlstate = "42702"


class AmbiguousFunction(SqlError):
    sqlstate = "42725"


class AmbiguousParameter(SqlError):
    sqlstate = "42P08"


class AmbiguousAlias(SqlError):
    sqlstate = "42P09"


class InvalidColumnReference(SqlError):
    sqlstate = "42P10"


class InvalidColumnDefinition(SqlError):
    sqlstate = "42611"


class InvalidCursorDefinition(SqlError):
    sqlstate = "42P11"


class InvalidDatabaseDefinition(SqlError):
    sqlstate = "42P12"


class InvalidFunctionDefinition(SqlError):
    sqlstate = "42P13"


class InvalidPreparedStatementDefinition(SqlError):
    sqlstate = "42P14"


class InvalidSchemaDefinition(SqlError):
    sqlstate = "42P15"


class InvalidTableDefinition(SqlError):
    sqlstate = "42P16"


class InvalidObjectDefinition(SqlError):
    sqlstate = "42P17"


class WithCheckOptionViolation(SqlError):
    sqlstate = "44000"


class InsufficientResources(SqlError):
    sqlstate = "53000"


class DiskFull(SqlError):
    sqlstate = "53100"


class OutOfMemory(SqlError):
    sqlstate = "53200"


class TooManyConnections(SqlError):
    sqlstate = "53300"


class ConfigurationLimitExceeded(SqlError):
    sqlstate = "53400"


class ProgramLimitExceeded(SqlError):
    sqlstate = "54000"


class StatementTooComplex(SqlError):
    sqlstate = "54001"


class TooManyColumns(SqlError):
    sqlstate = "54011"


class TooManyArguments(SqlError):
    sqlstate = "54023"


class ObjectNotInPrerequisiteState(SqlError):
    sqlstate = "55000"


class ObjectInUse(SqlError):
    sqlstate = "55006"


class CantChangeRuntimeParam(SqlError):
    sqlstate = "55P02"


class LockNotAvailable(SqlError):
    sqlstate = "55P03"


class UnsafeNewEnumValueUsage(SqlError):
    sqlstate = "55P04"


class OperatorIntervention(SqlError):
    sqlstate = "57000"


class QueryCanceled(SqlError):
    sqlstate = "57014"


class AdminShutdown(SqlError):
    sqlstate = "57P01"


class CrashShutdown(SqlError):
    sqlstate = "57P02"


class CannotConnectNow(SqlError):
    sqlstate = "57P03"


class DatabaseDropped(SqlError):
    sqlstate = "57P04"


class IdleSessionTimeout(SqlError):
    sqlstate = "57P05"


class SystemError(SqlError):
    sqlstate = "58000"


class IoError(SqlError):
    sqlstate = "58030"


class UndefinedFile(SqlError):
    sqlstate = "58P01"


class DuplicateFile(SqlError):
    sqlstate = "58P02"


class ConfigFileError(SqlError):
    sqlstate = "F0000"


class LockFileExists(SqlError):
    sqlstate = "F0001"


class PlpgsqlError(SqlError):
    sqlstate = "P0000"


class RaiseException(SqlError):
    sqlstate = "P0001"


class NoDataFound(SqlError):
    sqlstate = "P0002"


class TooManyRows(SqlError):
    sqlstate = "P0003"


class AssertFailure(SqlError):
    sqlstate = "P0004"


class InternalError(SqlError):
    sqlstate = "XX000"


class DataCorrupted(SqlError):
    sqlstate = "XX001"


class IndexCorrupted(SqlError):
    sqlstate = "XX002"


_BY_SQLSTATE: dict[str, type[SqlError]] = {
    kind.sqlstate: kind for kind in SqlError.__subclasses__()
}
