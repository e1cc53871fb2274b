"""Databases, tables and columns of DDL; frozen, so versions share parts. Names of columns and indexes ignore case."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from ibbmaster.position import LogPosition
from ibbmaster.replication.event.column_types.kind import SqlType as SqlType
from ibbmaster.sqltext.table_name import printed_table

AUTO_INCREMENT = "AUTO_INCREMENT"  # the option with the next number
NUMBER_DIGITS = 20
UNKNOWN_VALUE = "?"  # as `first_value`: no statement says what ALTER TABLE gave old rows


class SchemaPlace(NamedTuple):
    """A place between events, in the log's order: a group's beginning, and the number of an event in it, 0 for the GTID
    event. A statement changes the schema for the events after its own."""

    position: LogPosition
    event_no: int


class RowPeriod(enum.Enum):
    """Which end of a row's time a system-versioned table's column holds."""

    START = "START"
    END = "END"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """One column of one version of a table.

    Attributes:
        id: the same in all versions, through RENAME and CHANGE; a column dropped and added again gets another one.
        default: after DEFAULT as SQL, `NULL` also where a nullable column implies it; None without one.
        first_value: the value, as SQL, of rows older than the column, UNKNOWN_VALUE where the log does not say it; None
            if no ALTER TABLE added it. Unlike `default` it never changes.
        filled_size: bytes up to which values were filled with zeros while it was BINARY.
        expression, check: of a generated column, and of its own CHECK, without brackets.
        is_hidden: added by WITH SYSTEM VERSIONING alone, or for the hash of a unique index of long columns: TABLE_MAP
            events have it, SELECT * and SHOW do not.
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
        """Whether it is the hash of a unique index of long columns: no statement can name it."""
        return self.is_hidden and self.period is None

    @property
    def is_computed(self) -> bool:
        return self.expression is not None or self.is_internal


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPart:
    """`length` is of a prefix: characters of texts, bytes of other types."""

    column_id: int
    length: int | None = None
    is_descending: bool = False


class IndexKind(enum.Enum):
    """As in SHOW CREATE TABLE."""

    PRIMARY = "PRIMARY KEY"
    UNIQUE = "UNIQUE KEY"
    PLAIN = "KEY"
    FULLTEXT = "FULLTEXT KEY"
    SPATIAL = "SPATIAL KEY"
    VECTOR = "VECTOR KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableIndex:
    """The primary key is called PRIMARY. `options` follow it in SHOW CREATE TABLE. `is_of_foreign_key`: the server made
    it for a foreign key, and drops it once another index does its work."""

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
    """Rules: RESTRICT, CASCADE, SET NULL, NO ACTION, SET DEFAULT."""

    name: str
    column_ids: tuple[int, ...]
    parent_database: str
    parent_table: str
    parent_columns: tuple[str, ...]
    on_delete: str = "RESTRICT"
    on_update: str = "RESTRICT"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckConstraint:
    """Of the table, not of one column."""

    name: str
    expression: str


class TableKind(enum.Enum):
    """TABLE_TYPE of information_schema."""

    BASE = "BASE TABLE"
    SEQUENCE = "SEQUENCE"
    VIEW = "VIEW"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """A table between two places of the log.

    Attributes:
        generation: grows with CREATE, DROP, TRUNCATE and DROP DATABASE, which leave no older row.
        since: the place after the statement that made this version; None: from before the log begins.
        is_created_in_log: the log has its CREATE, and so every row it ever had.
        options: ENGINE, COMMENT, ROW_FORMAT and so on, by name in capitals, in the order of SHOW CREATE TABLE.
        partitioning: the text after PARTITION BY.
        text: the statement that made a view or a sequence.
        undefined_because: why no statement defines it; empty if one does. Then only columns are known, named by rows,
            and as later statements changed them.
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
    periods: tuple[tuple[str, str, str], ...] = ()
    partitioning: str | None = None
    generation: int = 0
    since: SchemaPlace | None = None
    gtid: str | None = None
    is_created_in_log: bool = False
    text: str | None = None
    undefined_because: str = ""

    @property
    def full_name(self) -> str:
        return printed_table(self.database, self.name)

    @property
    def shown(self) -> "TableVersion":
        """Without internal columns, which are its last ones: readers of its rows get this."""
        if not self.columns or not self.columns[-1].is_internal:
            return self
        return replace(self, columns=tuple(one for one in self.columns if not one.is_internal))

    @property
    def primary_key(self) -> TableIndex | None:
        return next((index for index in self.indexes if index.kind is IndexKind.PRIMARY), None)

    @property
    def comment(self) -> str:
        return self.options.get("COMMENT", "")

    @property
    def auto_increment(self) -> int | None:
        """The next number of DDL, if any; rows since then may be beyond it."""
        written = self.options.get(AUTO_INCREMENT, "")
        number = int(written) if written.isascii() and written.isdecimal() and len(written) <= NUMBER_DIGITS else 0
        return number if number > 1 else None

    def column(self, name: str) -> TableColumn | None:
        """In any case."""
        wanted = name.lower()
        return next((column for column in self.columns if column.name.lower() == wanted), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownTable:
    """An existing table with unknown columns from `since` on.

    `reason` is for people and ends in a remedy; `gtid` names the group that shows it. `generation` as in
    `TableVersion`; 0: the table is older than the log, and no statement had named it. Then `was` is its older name,
    database and table, if it had another.
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
        return self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseVersion:
    name: str
    charset: str = "utf8mb4"
    collation: str = "utf8mb4_general_ci"
    comment: str = ""
