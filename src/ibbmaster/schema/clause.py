"""DDL statements as written, before anything is known of the tables that they name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ibbmaster.replication.event.column_types.integer import BIGINT
from ibbmaster.sqltext.table_name import TableName
from .model import IndexKind, RowPeriod, TableKind


class NotUnderstoodError(ValueError):
    """A part of a statement that cannot be read; the text names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CharsetClause:
    """As written; `DEFAULT` is the word."""

    charset: str | None = None
    collation: str | None = None
    is_binary: bool = False


NO_CHARSET = CharsetClause()


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeClause:
    """A type with its aliases resolved, but for what depends on character sets."""

    word: str  # as in information_schema; of TEXT(n) and BLOB(n) `text` and `blob` with a length
    length: int | None = None
    scale: int | None = None
    is_unsigned: bool = False
    is_zerofill: bool = False
    labels: tuple[str, ...] = ()
    charset: CharsetClause = NO_CHARSET
    is_compressed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignDefinition:
    """`name` follows CONSTRAINT, `index_name` comes before the columns."""

    name: str | None
    index_name: str | None
    columns: tuple[str, ...]
    parent: TableName
    parent_columns: tuple[str, ...]
    on_delete: str
    on_update: str
    is_conditional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewColumn:
    """What is not written is None."""

    name: str
    type: TypeClause
    is_nullable: bool | None = None
    default: str | None = None
    on_update: str | None = None
    is_auto_increment: bool = False
    expression: str | None = None
    is_stored: bool = False
    is_invisible: bool = False
    is_unversioned: bool = False
    period: RowPeriod | None = None
    comment: str = ""
    check: str | None = None
    keys: tuple[IndexKind, ...] = ()
    reference: ForeignDefinition | None = None


class PartDefinition(NamedTuple):
    name: str
    length: int | None
    is_descending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDefinition:
    """`name` is None where the server gives one."""

    kind: IndexKind
    name: str | None
    parts: tuple[PartDefinition, ...]
    algorithm: str | None = None
    is_ignored: bool = False
    comment: str = ""
    options: tuple[tuple[str, str], ...] = ()
    without_overlaps: str | None = None
    is_conditional: bool = False
    is_of_foreign_key: bool = False


class CheckDefinition(NamedTuple):
    name: str | None
    expression: str
    is_conditional: bool = False


class PeriodDefinition(NamedTuple):
    """That of system versioning is called SYSTEM_TIME."""

    name: str
    start: str
    end: str


Definition = NewColumn | IndexDefinition | ForeignDefinition | CheckDefinition | PeriodDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """`partitioning` is None without any."""

    charset: CharsetClause = NO_CHARSET
    named: Mapping[str, str] = field(default_factory=dict)
    is_versioned: bool = False
    partitioning: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """`selects`: a query also gives columns. `problem`: the unreadable part, which leaves columns unknown."""

    table: TableName
    is_temporary: bool = False
    replaces: bool = False
    is_conditional: bool = False
    definitions: tuple[Definition, ...] = ()
    like: TableName | None = None
    options: TableOptions
    selects: bool = False
    problem: str | None = None


class AddDefinition(NamedTuple):
    definition: Definition
    after: str | None = None
    is_conditional: bool = False


class RedefineColumn(NamedTuple):
    name: str
    definition: NewColumn
    after: str | None = None
    is_conditional: bool = False


class RenamePart(NamedTuple):
    is_column: bool
    name: str
    to: str
    is_conditional: bool = False


class SetColumnDefault(NamedTuple):
    """Or DROP DEFAULT, which is None."""

    name: str
    default: str | None
    is_conditional: bool = False


class RemovePart(NamedTuple):
    """DROP of a `column`, `index`, `foreign key`, `constraint`, `check` or `period`."""

    what: str
    name: str
    is_conditional: bool = False


class IgnoreIndex(NamedTuple):
    name: str
    is_ignored: bool
    is_conditional: bool = False


class ConvertCharset(NamedTuple):
    charset: CharsetClause


class SetOptions(NamedTuple):
    options: TableOptions


class AlterVersioning(NamedTuple):
    is_versioned: bool


class AlterPartitions(NamedTuple):
    """Its words, and the text after them."""

    verb: str
    text: str


class SplitTable(NamedTuple):
    """CONVERT PARTITION … TO TABLE, and CONVERT TABLE … TO PARTITION, which ends the other table (`is_gone`)."""

    other: TableName
    is_gone: bool


class AlterRows(NamedTuple):
    """It changes, removes or exchanges rows alone. `partitions`: names in lower case; () for ALL; None without."""

    what: str  # its words
    other: TableName | None = None
    partitions: tuple[str, ...] | None = None


_OfParts = AddDefinition | RedefineColumn | RenamePart | SetColumnDefault | RemovePart | IgnoreIndex
AlterClause = _OfParts | ConvertCharset | SetOptions | AlterVersioning | AlterPartitions | SplitTable | AlterRows


class AlterTable(NamedTuple):
    """Also CREATE INDEX, DROP INDEX. `problem`: unreadable, so only `others` are known: all tables it may name."""

    table: TableName
    clauses: tuple[AlterClause, ...] = ()
    to: TableName | None = None  # its new name
    is_conditional: bool = False
    problem: str | None = None
    others: tuple[TableName, ...] = ()


class DropTables(NamedTuple):
    """Drops tables of its kind; DROP TABLE, whose `kind` is BASE, also sequences."""

    tables: tuple[TableName, ...]
    kind: TableKind = TableKind.BASE
    is_temporary: bool = False


class TruncateTable(NamedTuple):
    table: TableName


class RenameTables(NamedTuple):
    pairs: tuple[tuple[TableName, TableName], ...]
    is_conditional: bool = False


class CreateView(NamedTuple):
    """Also ALTER VIEW."""

    table: TableName
    text: str
    is_conditional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSequence:
    table: TableName
    text: str
    is_temporary: bool
    is_conditional: bool
    replaces: bool
    word: str = BIGINT.word  # of its values' type
    is_unsigned: bool = False
    options: TableOptions = TableOptions()
    problem: str | None = None  # what of it was not understood


class AlterSequence(NamedTuple):
    """Changes values, but no columns."""

    table: TableName


class CreateDatabase(NamedTuple):
    name: str
    charset: CharsetClause
    comment: str | None
    replaces: bool = False
    is_conditional: bool = False
    alters: bool = False


class RemoveDatabase(NamedTuple):
    name: str


class NameProgram(NamedTuple):
    kind: str
    name: TableName
    table: TableName | None = None  # of a trigger
    to: TableName | None = None  # the new name of ALTER EVENT
    is_conditional: bool = False
    is_dropped: bool = False
    alters: bool = False


_OfTables = CreateTable | AlterTable | DropTables | TruncateTable | RenameTables
_OfOthers = CreateView | CreateSequence | AlterSequence | CreateDatabase | RemoveDatabase | NameProgram
DdlStatement = _OfTables | _OfOthers
