"""Columns as a TABLE_MAP event describes them."""

import dataclasses
import enum
from dataclasses import dataclass

from ibbmaster.sqltext.table_name import printed_table

HASH_COLUMN = "DB_ROW_HASH_"  # with a number: the name of what a unique index of long columns adds


class ColumnType(enum.IntEnum):
    """MariaDB's codes; each stands for all precisions. 2: the format since 10.1."""

    DECIMAL = 0  # before MySQL 5.0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


class ValueKind(enum.Enum):
    """The values of a column in Python."""

    INTEGER = "integer"  # int
    YEAR = "year"  # int; 0 is the zero year
    FLOAT = "float"  # float
    DECIMAL = "decimal"  # decimal.Decimal with all its digits
    BIT = "bit"  # int
    DATE = "date"  # str, YYYY-MM-DD; parts may be zero
    TIME = "time"  # str, [-]hh:mm:ss[.f], up to ±838:59:59
    DATETIME = "datetime"  # str, YYYY-MM-DD hh:mm:ss[.f]
    TIMESTAMP = "timestamp"  # str, as DATETIME, in UTC; all zeros for the zero time
    TEXT = "text"  # str
    BINARY = "binary"  # bytes; also text of a character set that is not known
    ENUM = "enum"  # str, '' for the error value; int if the labels are not known
    SET = "set"  # str, labels joined by commas; int, a bit a label, if they are not known
    GEOMETRY = "geometry"  # bytes: SRID (4, little-endian) and WKB
    UUID = "uuid"  # str
    INET4 = "inet4"  # str
    INET6 = "inet6"  # str
    VECTOR = "vector"  # tuple of float


LABELLED = (ColumnType.SET, ColumnType.ENUM)  # in rows, and after STRING in a TABLE_MAP
COMPRESSED = (ColumnType.VARCHAR_COMPRESSED, ColumnType.BLOB_COMPRESSED)
LETTERS = (ValueKind.TEXT, ValueKind.ENUM, ValueKind.SET)  # those with a character set


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """None: the event lacks it. `metadata`: as a number. `size`: the most bytes of a value (texts, blobs: of its
    length, 1 to 4), bits, or digits; `scale`: digits after the point, also of temporal types."""

    name: str  # '@1', '@2' and so on where the event has no names
    type: int  # ColumnType, ENUM and SET apart
    metadata: int
    kind: ValueKind
    size: int = 0
    scale: int = 0
    is_nullable: bool = True
    is_unsigned: bool | None = None
    charset: str | None = None
    labels: tuple[str, ...] | None = None
    geometry_type: int | None = None
    is_internal: bool = False  # kept for an index: no statement can name it, and nothing shows it

    @property
    def is_fixed_length(self) -> bool:
        """CHAR or BINARY, or stored as these: without its filling."""
        return self.type == ColumnType.STRING

    @property
    def is_blob(self) -> bool:
        """BLOB or TEXT: `size` is that of the length before a value."""
        return self.type in (ColumnType.BLOB, ColumnType.BLOB_COMPRESSED)

    @property
    def is_compressed(self) -> bool:
        """A byte before each value names its compression."""
        return self.type in COMPRESSED

    @property
    def is_single_precision(self) -> bool:
        return self.type == ColumnType.FLOAT

    @property
    def may_renew_itself(self) -> bool:
        """ON UPDATE is possible: statements may change it without naming it."""
        return self.kind in (ValueKind.DATETIME, ValueKind.TIMESTAMP)

    @property
    def has_old_format(self) -> bool:
        """A clock in the format before MariaDB 10.1."""
        return self.type in (ColumnType.TIME, ColumnType.DATETIME, ColumnType.TIMESTAMP)

    @property
    def type_name(self) -> str:
        """For people."""
        name = ColumnType(self.type).name if self.type in ColumnType.__members__.values() else f"type {self.type}"
        return f"{name}({self.metadata})" if self.metadata else name


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """A table as one TABLE_MAP event describes it."""

    table_id: int
    database: str
    table: str
    columns: tuple[Column, ...]
    primary_key: tuple[int, ...] = ()  # column numbers, from 0; empty where the event does not say
    has_names: bool = False

    @property
    def name(self) -> str:
        return printed_table(self.database, self.table)

    @property
    def shown(self) -> "TableSchema":
        """Without internal columns, which are its last ones: readers of its rows get this."""
        if not self.columns or not self.columns[-1].is_internal:
            return self
        return dataclasses.replace(self, columns=tuple(one for one in self.columns if not one.is_internal))

    def with_internal(self) -> "TableSchema":
        """Its last columns are marked as internal if they are called and stored like that."""
        columns = list(self.columns)
        for number in range(len(columns) - 1, 0, -1):
            if not _looks_internal(columns[number]):
                break
            columns[number] = dataclasses.replace(columns[number], is_internal=True)
        return dataclasses.replace(self, columns=tuple(columns))


def _looks_internal(column: Column) -> bool:
    is_hash = column.type == ColumnType.LONGLONG and column.is_nullable
    return is_hash and column.name.startswith(HASH_COLUMN) and column.name.removeprefix(HASH_COLUMN).isdecimal()
