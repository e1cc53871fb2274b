"""What a DDL statement says, before anything is known of the tables that it names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ibbmaster.event.column_types.integer import BIGINT
from ibbmaster.schema.model import IndexKind, RowPeriod, TableKind
from ibbmaster.sqltext.table_name import TableName


class NotUnderstoodError(ValueError):
    """A statement, or a part of one, that cannot be read; the text says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CharsetClause:
    """CHARACTER SET, COLLATE and BINARY as written; `DEFAULT` is the word."""

    charset: str | None = None
    collation: str | None = None
    is_binary: bool = False


NO_CHARSET = CharsetClause()


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeClause:
    """A type with its aliases resolved, but for what depends on character sets."""

    word: str  # as information_schema calls it; of TEXT(n) and BLOB(n) `text` and `blob` with a length
    length: int | None = None
    scale: int | None = None
    is_unsigned: bool = False
    is_zerofill: bool = False
    labels: tuple[str, ...] = ()
    charset: CharsetClause = NO_CHARSET
    is_compressed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignDefinition:
    """FOREIGN KEY. `name` follows CONSTRAINT, `index_name` in front of the columns."""

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
    """A column; what is not written is None."""

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
    """A column of an index."""

    name: str
    length: int | None
    is_descending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDefinition:
    """An index; `name` is None where the server gives it one."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDefinition:
    """CHECK of a table."""

    name: str | None
    expression: str
    is_conditional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodDefinition:
    """PERIOD FOR; that of system versioning is called SYSTEM_TIME."""

    name: str
    start: str
    end: str


Definition = NewColumn | IndexDefinition | ForeignDefinition | CheckDefinition | PeriodDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """What stands after the columns of a table. `partitioning` is None where nothing is said."""

    charset: CharsetClause = NO_CHARSET
    named: Mapping[str, str] = field(default_factory=dict)
    is_versioned: bool = False
    partitioning: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """CREATE TABLE; `selects` if its columns are also those of a query. `problem` says what of it was not understood:
    then its columns are not known."""

    table: TableName
    is_temporary: bool = False
    replaces: bool = False
    is_conditional: bool = False
    definitions: tuple[Definition, ...] = ()
    like: TableName | None = None
    options: TableOptions
    selects: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddDefinition:
    """ADD. `after` is the column that it stands after, '' if it is the first one."""

    definition: Definition
    after: str | None = None
    is_conditional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RedefineColumn:
    """CHANGE and MODIFY."""

    name: str
    definition: NewColumn
    after: str | None = None
    is_conditional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamePart:
    """RENAME of a column, or of an index."""

    is_column: bool
    name: str
    to: str
    is_conditional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetColumnDefault:
    """ALTER COLUMN … SET DEFAULT, or DROP DEFAULT, which is None."""

    name: str
    default: str | None
    is_conditional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePart:
    """DROP of a `column`, `index`, `foreign key`, `constraint`, `check` or `period`."""

    what: str
    name: str
    is_conditional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreIndex:
    name: str
    is_ignored: bool
    is_conditional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertCharset:
    charset: CharsetClause


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions:
    options: TableOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterVersioning:
    is_versioned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitions:
    """A clause that changes partitions: its words, and what is written after them."""

    verb: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitTable:
    """CONVERT PARTITION … TO TABLE, and CONVERT TABLE … TO PARTITION, after which the other table is gone."""

    other: TableName
    is_gone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterRows:
    """A clause that changes or removes rows, or exchanges them with `other`, and changes no column; its words.
    `partitions` are the names of those that it is about, in lower case: () for ALL, None where it names none."""

    what: str
    other: TableName | None = None
    partitions: tuple[str, ...] | None = None


AlterClause = (
    AddDefinition
    | RedefineColumn
    | RenamePart
    | SetColumnDefault
    | RemovePart
    | IgnoreIndex
    | ConvertCharset
    | SetOptions
    | AlterVersioning
    | AlterPartitions
    | SplitTable
    | AlterRows
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """ALTER TABLE, CREATE INDEX, DROP INDEX; `to` is its new name. `problem` says what of it was not understood: then
    nothing of it is known, but for all `others` that it may name."""

    table: TableName
    clauses: tuple[AlterClause, ...] = ()
    to: TableName | None = None
    is_conditional: bool = False
    problem: str | None = None
    others: tuple[TableName, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTables:
    """DROP TABLE, DROP VIEW, DROP SEQUENCE: of the tables that it names it drops those of its kind. `kind` is BASE for
    DROP TABLE, which also drops sequences."""

    tables: tuple[TableName, ...]
    kind: TableKind = TableKind.BASE
    is_temporary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateTable:
    table: TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTables:
    """RENAME TABLE: pairs, in order."""

    pairs: tuple[tuple[TableName, TableName], ...]
    is_conditional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """CREATE VIEW, ALTER VIEW."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSequence:
    """ALTER SEQUENCE: its values change, its columns do not."""

    table: TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase:
    """CREATE DATABASE, and ALTER DATABASE, where what is not written stays."""

    name: str
    charset: CharsetClause
    comment: str | None
    replaces: bool = False
    is_conditional: bool = False
    alters: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDatabase:
    """DROP DATABASE."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NameProgram:
    """CREATE, ALTER and DROP of a trigger, a function, a procedure, an event or a package."""

    kind: str
    name: TableName
    table: TableName | None = None  # of a trigger
    to: TableName | None = None  # what ALTER EVENT calls it
    is_conditional: bool = False
    is_dropped: bool = False
    alters: bool = False


DdlStatement = (
    CreateTable
    | AlterTable
    | DropTables
    | TruncateTable
    | RenameTables
    | CreateView
    | CreateSequence
    | AlterSequence
    | CreateDatabase
    | RemoveDatabase
    | NameProgram
)
