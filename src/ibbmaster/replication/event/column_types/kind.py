"""Base class of column kinds, one module a kind. Other rooms translate a kind's answers, which are names, once."""

import enum
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar, NamedTuple

from ibbmaster.errors import ConfigurationError
from ibbmaster.sqltext import literals
from ibbmaster.sqltext.quoting import quoted_text
from ..rows.attributes import is_unsigned
from ..rows.column import Column, ColumnType, ValueKind
from ..rows.value import Convert, Encode, Reader, Value, fixed, prefixed

_NUMBERS = re.compile(r"\s*(\d+)\s*(?:,\s*(\d+)\s*)?", re.ASCII)
_DECLARED = re.compile(
    r"\s*(?P<word>[a-z0-9]+)\s*(?:\((?P<inside>(?:[^()']|'(?:[^']|'')*')*)\))?.*", re.IGNORECASE | re.DOTALL
)
LENGTH_MAX = (1 << 32) - 1

Literal = str | Decimal | bytes | int
Text = Callable[[bytes], bytes]
"""From the stored bytes of a value, without its length, to its text. Raises ValueError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlType:
    """A column's type with every alias resolved.

    Attributes:
        word: DATA_TYPE of information_schema: `int`, `varchar`, `enum`, `longtext`, …
        length: the first number in brackets: characters, bytes, bits, digits, or the width to show; None where SHOW
            CREATE TABLE has no brackets.
        scale: digits after the point, also of temporal types; None where none are written.
        label_bytes: the labels as a server keeps them, a letter of Latin-1 for each byte, where CONVERT TO CHARACTER
            SET has changed their letters.
        charset, collation: of texts, ENUM and SET.
    """

    word: str
    length: int | None = None
    scale: int | None = None
    is_unsigned: bool = False
    is_zerofill: bool = False
    labels: tuple[str, ...] = ()
    label_bytes: tuple[str, ...] = ()
    charset: str | None = None
    collation: str | None = None
    is_compressed: bool = False


class StoredText(NamedTuple):
    """`unit`: bytes of the longest character."""

    charset: str = "utf8mb4"
    collation: int = 45  # utf8mb4_general_ci
    unit: int = 4


class TextSettings(NamedTuple):
    """A session's character set of texts (None, binary: as stored), and seconds east of UTC."""

    charset: str | None = None
    time_zone_s: int = 0


class DeclaredType(NamedTuple):
    """A type as CREATE TABLE writes it; `where`: for errors. Only written ones have `storage` and `is_compressed`."""

    where: str
    text: str
    word: str
    inside: str | None  # its brackets: `length`, `scale`
    storage: StoredText = StoredText()
    is_compressed: bool = False

    @property
    def length(self) -> int | None:
        match = _NUMBERS.fullmatch(self.inside or "")
        return None if match is None else int(match[1])

    @property
    def scale(self) -> int:
        match = _NUMBERS.fullmatch(self.inside or "")
        return 0 if match is None else int(match[2] or 0)

    def expect(self, column: Column, is_possible: bool) -> None:
        """Raises ConfigurationError: no such column can be of this type."""
        if not is_possible:
            problem = f"declared as {self.text!r}, but the binlog has it as {column.type_name}"
            raise ConfigurationError(f"{self.where}: {problem}")


def read_declared(where: str, text: str) -> DeclaredType:
    """Raises ConfigurationError: it does not begin with a word."""
    match = _DECLARED.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"{where}: {text!r} is no column type")
    return DeclaredType(where, text, match["word"].lower(), match["inside"])


class Grammar(enum.Enum):
    """What DDL allows after the word of a type."""

    WORD = "nothing, or a length"
    NUMBER = "a width and a sign"
    FRACTION = "digits, those after the point, and a sign"
    CLOCK = "digits of a second"
    LABELS = "labels"
    SPATIAL = "a reference system"


class Layout(NamedTuple):
    """What the metadata block knows of a column: type, `Column.size`, `Column.scale`."""

    type: int
    size: int = 0
    scale: int = 0


@dataclass(frozen=True)
class WrittenType:
    """`metadata`: its bytes in the metadata block; `encode` takes a value that is not NULL."""

    type: ColumnType
    metadata: bytes
    encode: Encode
    is_unsigned: bool | None = None  # of numbers
    collation: int | None = None  # of strings
    labels: tuple[bytes, ...] = ()  # of ENUM and SET, as they are stored
    geometry_type: int | None = None


class TypeSizes(NamedTuple):
    """CHARACTER_MAXIMUM_LENGTH up to DATETIME_PRECISION of information_schema.COLUMNS."""

    letters: int | None = None
    octets: int | None = None
    precision: int | None = None
    scale: int | None = None
    moment: int | None = None


class ResultType(NamedTuple):
    """Of a column of a result set; `flags`, as `ColumnFlag` names them, without sign and collation."""

    type: int
    length: int
    decimals: int = 0
    flags: tuple[str, ...] = ()
    is_text: bool = False  # the length is in characters, which are sent in another character set


class RowReading(NamedTuple):
    """A kernel's `RowOp` with two arguments, and `what` it returns: a number, text or bytes; shown: bytes to become
    text; code, value: what encodes a value."""

    op: str
    first: int = 0
    second: int = 0
    what: str = "number"


Step = tuple[str, int, int, int, int]  # a `ValueOp` and its arguments
COPY: Step = ("COPY", 0, 0, 0, 0)


class ColumnKind(ABC):
    """Types that are alike, an instance a word. A value has `fixed_size` bytes, or `length_size` bytes of length."""

    values: Mapping[ColumnType, ValueKind] = {}  # of values, by type
    content: ClassVar[ValueKind | None] = None  # of values, where only the declared type shows it
    metadata_sizes: ClassVar[Mapping[ColumnType, int]] = {}  # bytes in the metadata block
    big_endian: ClassVar[frozenset[ColumnType]] = frozenset()  # types whose metadata has the high byte first
    has_sign: ClassVar[bool] = False  # a bit in the field SIGNEDNESS
    has_collation: ClassVar[bool] = False  # a number in the fields DEFAULT_CHARSET or COLUMN_CHARSET

    word: str = ""
    names: tuple[str, ...] = ()  # synonyms in declarations
    ddl_names: tuple[str, ...] = ()  # and only in DDL
    codes: tuple[ColumnType, ...] = ()  # the types that a TABLE_MAP may have, the newest first
    in_oracle: str = ""  # its word under Oracle's sql_mode
    grammar: Grammar = Grammar.WORD
    zero: str = "''"  # as `zero_of` gives it
    size: int | None = None  # bytes of each value, if all columns agree
    frame: str = "string"  # Spark's type in a DataFrame, if all columns agree
    key: str = ""  # as `key_op` gives it; likewise `line` and `step`
    line: tuple[str, int, int] = ("SIDE", 0, 0)
    step: Step | None = None
    family: str = "OPAQUE"
    key_size: int = 8  # bytes in an index
    is_integer: ClassVar[bool] = False
    is_exact: ClassVar[bool] = False  # has a fixed number of digits after the point, or none
    is_number: ClassVar[bool] = False  # a column of texts takes its values as shown
    has_day: ClassVar[bool] = False
    is_zoned: ClassVar[bool] = False  # values in UTC, shown in the time zone of a session
    is_clock: ClassVar[bool] = False  # has digits of a second
    is_large: bool = False  # TEXT or BLOB: an index has a prefix of it
    is_varying: bool = False  # rows have no fixed length
    is_string: bool = False  # CHAR, VARCHAR, BINARY or VARBINARY
    has_letters: bool = False
    twin: str | None = None  # the word of the same type with bytes for letters
    has_name: ClassVar[bool] = False  # a result set names the type: its number is not unique
    compares_size: ClassVar[bool] = False  # a TABLE_MAP must have the size of `size_of`
    has_scale: ClassVar[bool] = False  # a TABLE_MAP has digits after the point of its newest type
    is_shown_as_text: ClassVar[bool] = False  # values are text, whatever is stored
    is_ordered: ClassVar[bool] = True  # as the bytes of rows are
    keeps_default: ClassVar[bool] = True  # as written; else in the form of `literal`

    @property
    def has_prefixes(self) -> bool:
        return self.is_large or self.is_string

    def __init__(self, word: str = "", *codes: ColumnType, names: str = "", ddl_names: str = "") -> None:
        self.word, self.codes = word, codes
        self.names, self.ddl_names = tuple(names.split()), tuple(ddl_names.split())

    # In a TABLE_MAP, and in rows

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> Layout:
        """`raw`: a column's metadata, `metadata`: as a number. Raises EventError: no column has it."""
        return Layout(column_type)

    def fixed_size(self, column: Column) -> int | None:
        """None if a length precedes each value."""
        return self.size

    def length_size(self, column: Column) -> int:
        return 0

    @abstractmethod
    def convert(self, column: Column) -> Convert:
        """From the bytes of a value to a `ValueKind`; raises ValueError for bytes that make none."""

    def keeps_values(self, old: Column, new: Column) -> bool:
        """Whether every value is the same value in another column of any kind."""
        return (old.kind, old.type, old.size, old.scale) == (new.kind, new.type, new.size, new.scale)

    def reader(self, column: Column) -> Reader:
        size = self.fixed_size(column)
        if size is not None:
            return fixed(size, self.convert(column))
        return prefixed(self.length_size(column), self.convert(column))

    # As DDL declares it

    def declare(self, column: Column, declared: DeclaredType) -> dict[str, Any]:
        """Fields of `Column` that a TABLE_MAP lacks. Raises ConfigurationError: no such column can be of this type."""
        return {}

    def write(self, declared: DeclaredType) -> WrittenType | None:
        """None if such a column cannot be written. Raises ConfigurationError: there is no such type."""
        return None

    def length_of(self, written: int | None) -> int | None:
        return None

    def size_of(self, sql: SqlType) -> int | None:
        """`Column.size`, if known."""
        return None

    def derived(self, column: Column, unit: int | None) -> tuple[str, int | None, int | None]:
        """Word, length and scale in a TABLE_MAP; `unit`: bytes of a character, if any."""
        return self.word, None, column.scale or None

    def sizes(self, sql: SqlType) -> TypeSizes:
        return TypeSizes()

    def zero_of(self, sql: SqlType) -> str:
        """The SQL value of older rows in a new NOT NULL column without a default."""
        return self.zero

    def shows_alike(self, column: Column, old: SqlType, new: SqlType) -> bool:
        """Whether stored values that both types have look the same."""
        return True

    # Literals and texts

    def literal(self, sql: SqlType, value: Literal, version: int) -> str:
        """A default as SHOW CREATE TABLE prints it. Raises ValueError, ArithmeticError."""
        return quoted_text(text_of(value))

    def kept_literal(self, sql: SqlType, value: Literal, written: str) -> str:
        """A default as a server keeps it."""
        return written if self.keeps_default else self.literal(sql, value, 0)

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        """A constant's bytes, without their length. Raises ValueError: the column cannot hold it."""
        raise ValueError(f"constants of type {sql.word} are not known")

    def key_value(self, column: Column, sql: SqlType, value: literals.Value, zone_s: int) -> literals.Value:
        """The stored value that equals a literal; None: not compared so. Raises ValueError."""
        return None

    def shown(self, column: Column, sql: SqlType, settings: TextSettings) -> Text:
        """From stored values to the text of the column's current type."""
        read = self.convert(column)
        return lambda data: str(read(data)).encode()

    def fitted(self, value: Value, column: Column) -> Value:
        """A computed value as the column stores it; None where that is not certain."""
        return None

    # In result sets, DataFrames and kernels

    @abstractmethod
    def result(self, sql: SqlType) -> ResultType: ...

    def digits(self, sql: SqlType) -> int:
        return 0

    def frame_type(self, column: Column, *, keeps_zeros: bool) -> str:
        """Spark's type; `keeps_zeros`: moments such as 0000-00-00 are values."""
        return self.frame

    def reading(self, column: Column, frame_type: str) -> RowReading:
        """How a kernel reads what becomes a cell of `frame_type`, or text."""
        size = self.fixed_size(column)
        if size is None:
            return RowReading("RAW_PREFIXED", self.length_size(column), 0, "value")
        return RowReading("RAW_FIXED", size, 0, "value")

    def text_op(self, column: Column) -> tuple[str, int]:
        """The `TextOp` for values read as `shown`, with their bytes or digits."""
        raise ValueError("values of this type are not shown so")

    def line_op(self, column: Column) -> tuple[str, int, int]:
        """The `LineOp` with its arguments; SIDE: the reference writes the values."""
        return self.line

    def key_op(self, column: Column) -> str:
        """The `KeyOp` that turns values into parts of keys."""
        return self.key or ("TEXT" if self.fixed_size(column) is None else "FIXED")

    def answer(self, column: Column, sql: SqlType, *, is_binary: bool) -> Step | None:
        """The `ValueOp` for an answer; None: the reference makes it, or letters decide."""
        return self.step


class Number(ColumnKind):
    has_sign = True
    is_number = True
    zero = "0"

    def declare(self, column: Column, declared: DeclaredType) -> dict[str, Any]:
        return {"is_unsigned": is_unsigned(declared.text)} if column.is_unsigned is None else {}


# Literals


def decimal_of(value: Literal) -> Decimal:
    """Raises ValueError."""
    if isinstance(value, bytes):
        return Decimal(int.from_bytes(value, "big"))
    try:
        return Decimal(value.strip() if isinstance(value, str) else value)
    except InvalidOperation:
        raise ValueError(value) from None


def text_of(value: Literal) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def whole_of(value: literals.Value) -> int:
    """Raises ValueError."""
    if isinstance(value, bytes):
        return int.from_bytes(value, "big")
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        raise ValueError(f"{value!r} is no number") from None
    if number != number.to_integral_value():
        raise ValueError(f"{value} is no whole number")
    return int(number)


def bytes_of(value: literals.Value) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


def bounded(number: int, bits: int) -> int:
    """Raises ValueError: it has more bits."""
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{number} does not fit into {bits} bits")
    return number


def zeros_of(sql: SqlType, width: int) -> int:
    return width if sql.is_zerofill else 0


def number_of(value: Value) -> Decimal | None:
    if isinstance(value, bytes) and len(value) <= 8:
        return Decimal(int.from_bytes(value, "big"))
    if isinstance(value, str) and _PLAIN.fullmatch(value.strip(" ")):
        return Decimal(value.strip(" "))
    return Decimal(value) if isinstance(value, int | Decimal) else None


_PLAIN = re.compile(r"[+-]?\d{1,65}(?:\.\d{1,38})?", re.ASCII)
