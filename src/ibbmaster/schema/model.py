"""Databases, tables and columns as DDL defines them; frozen, so that versions share what did not change.

Names are compared as a primary with lower_case_table_names=0 does: databases and tables exactly,
columns and indexes without regard to case.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from ibbmaster.event.column_types.kind import SqlType as SqlType
from ibbmaster.position import LogPosition
from ibbmaster.sqltext.table_name import printed_table

AUTO_INCREMENT = "AUTO_INCREMENT"  # the option: the next number, as DDL has it
NUMBER_DIGITS = 20  # of the largest one
UNKNOWN_VALUE = "?"  # as `first_value`: an ALTER TABLE gave old rows values that no statement gives


class SchemaPlace(NamedTuple):
    """A place between the events of a log; compares in its order. `position` is where a group begins, `event_no` counts
    its events from the GTID event, which is 0: a statement changes the schema for the events after its own."""

    position: LogPosition
    event_no: int


class RowPeriod(enum.Enum):
    """Which end of a row's time in a system-versioned table a column has."""

    START = "START"
    END = "END"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """One column of one version of a table.

    Attributes:
        id: the same in all versions of a table, through RENAME and CHANGE; a column that is dropped
            and added again is another one.
        default: what stands after DEFAULT, an expression or a literal as SQL; None without one.
            DEFAULT NULL, written or implied by a nullable column, is `NULL`.
        first_value: what rows hold in it that were written before the column was added, as SQL;
            None where no ALTER TABLE added it, UNKNOWN_VALUE where the log does not say it. It never
            changes afterwards, other than `default`.
        filled_size: bytes up to which values were filled with zeros while it was BINARY.
        on_update: what stands after ON UPDATE.
        expression: of a generated column, without the brackets around it.
        is_hidden: added by WITH SYSTEM VERSIONING alone, or by a unique index of long columns for their
            hash: in TABLE_MAP events, and not among the columns of SELECT * or SHOW.
        check: the column's own CHECK, without the brackets around it.
    """

    id: int
    name: str
    type: SqlType
    is_nullable: bool = True
    default: str | None = None
    first_value: str | None = None
    filled_size: int = 0
    on_update: str | None = None
    is_auto_increment: bool = False
    expression: str | None = None
    is_stored: bool = False
    is_invisible: bool = False
    is_unversioned: bool = False
    period: RowPeriod | None = None
    is_hidden: bool = False
    comment: str = ""
    check: str | None = None

    @property
    def is_internal(self) -> bool:
        """Whether it is the hash of a unique index of long columns, which no statement can name."""
        return self.is_hidden and self.period is None

    @property
    def is_computed(self) -> bool:
        """Whether the server computes its values from those of other columns."""
        return self.expression is not None or self.is_internal


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPart:
    """A column of an index; `length` is of a prefix: characters of texts, bytes of others."""

    column_id: int
    length: int | None = None
    is_descending: bool = False


class IndexKind(enum.Enum):
    """What an index is, in the words of SHOW CREATE TABLE."""

    PRIMARY = "PRIMARY KEY"
    UNIQUE = "UNIQUE KEY"
    PLAIN = "KEY"
    FULLTEXT = "FULLTEXT KEY"
    SPATIAL = "SPATIAL KEY"
    VECTOR = "VECTOR KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableIndex:
    """An index; the primary key is called PRIMARY. `options` stand after it as SHOW CREATE TABLE prints them.
    `is_of_foreign_key`: made by the server for a foreign key, and gone once another index does its work."""

    name: str
    kind: IndexKind
    parts: tuple[IndexPart, ...]
    algorithm: str | None = None  # after USING
    is_ignored: bool = False
    comment: str = ""
    options: tuple[tuple[str, str], ...] = ()
    without_overlaps: str | None = None  # the period
    is_of_foreign_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignConstraint:
    """FOREIGN KEY … REFERENCES. The rules are RESTRICT, CASCADE, SET NULL, NO ACTION or SET DEFAULT."""

    name: str
    column_ids: tuple[int, ...]
    parent_database: str
    parent_table: str
    parent_columns: tuple[str, ...]
    on_delete: str = "RESTRICT"
    on_update: str = "RESTRICT"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckConstraint:
    """A CHECK of the table, not of one column."""

    name: str
    expression: str


class TableKind(enum.Enum):
    """What TABLE_TYPE of information_schema has."""

    BASE = "BASE TABLE"
    SEQUENCE = "SEQUENCE"
    VIEW = "VIEW"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """A table as it is from one place of the log to another.

    Attributes:
        generation: grows with CREATE, DROP, TRUNCATE and DROP DATABASE, which leave no row of before;
            RENAME and ALTER keep it.
        since: after the statement that made this version; None: from before the log begins.
        is_created_in_log: its CREATE is in the log, so that every row it ever had is, too.
        options: ENGINE, COMMENT, ROW_FORMAT and their like, by name in capitals, in the order of SHOW CREATE TABLE.
        partitioning: what stands after PARTITION BY, as written.
        text: of a view or a sequence, the statement that made it.
        undefined_because: why no statement defines it; empty if one does. Its columns are then those that its rows
            name, as statements have changed them since, and nothing else is known of it.
    """

    database: str
    name: str
    kind: TableKind = TableKind.BASE
    columns: tuple[TableColumn, ...] = ()
    indexes: tuple[TableIndex, ...] = ()
    foreign_keys: tuple[ForeignConstraint, ...] = ()
    checks: tuple[CheckConstraint, ...] = ()
    charset: str = "utf8mb4"
    collation: str = "utf8mb4_general_ci"
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    is_versioned: bool = False
    periods: tuple[tuple[str, str, str], ...] = ()  # name, column it starts with, column it ends with
    partitioning: str | None = None
    generation: int = 0
    since: SchemaPlace | None = None
    gtid: str | None = None  # of the group that made this version
    is_created_in_log: bool = False
    text: str | None = None
    undefined_because: str = ""

    @property
    def full_name(self) -> str:
        return printed_table(self.database, self.name)

    @property
    def shown(self) -> TableVersion:
        """The same without internal columns, which are its last ones: what readers of its rows get."""
        if not self.columns or not self.columns[-1].is_internal:
            return self
        return replace(self, columns=tuple(one for one in self.columns if not one.is_internal))

    @property
    def primary_key(self) -> TableIndex | None:
        """What identifies its rows by declaration."""
        return next((index for index in self.indexes if index.kind is IndexKind.PRIMARY), None)

    @property
    def comment(self) -> str:
        return self.options.get("COMMENT", "")

    @property
    def auto_increment(self) -> int | None:
        """The next number that DDL has set; None where it says none. Rows from since then may be beyond it."""
        written = self.options.get(AUTO_INCREMENT, "")
        number = int(written) if written.isascii() and written.isdecimal() and len(written) <= NUMBER_DIGITS else 0
        return number if number > 1 else None

    def column(self, name: str) -> TableColumn | None:
        """A column by its name in any case."""
        wanted = name.lower()
        return next((column for column in self.columns if column.name.lower() == wanted), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownTable:
    """A table that is there, and whose columns cannot be determined from `since` on.

    `reason` is for people and ends in what would help; `gtid` names the group where that shows.

    `generation` is as of `TableVersion`; 0: the table was there before the log, and no statement had
    named it. Then `was` is its name there, database and table, if it had another.
    """

    database: str
    name: str
    since: SchemaPlace | None
    gtid: str | None
    reason: str
    generation: int = 0
    was: tuple[str, str] | None = None

    @property
    def full_name(self) -> str:
        return printed_table(self.database, self.name)

    @property
    def undefined_because(self) -> str:
        """As that of `TableVersion`."""
        return self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseVersion:
    """A database with what its new tables inherit."""

    name: str
    charset: str = "utf8mb4"
    collation: str = "utf8mb4_general_ci"
    comment: str = ""
