"""What is to be known of a type of columns, so that one module holds all of it.

The rooms above ask a kind, and translate what it says once for all of them: steps of kernels, flags of result sets
and families of values come by their names there.
"""

from __future__ import annotations

import enum
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar, NamedTuple

from ibbmaster.errors import ConfigurationError
from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.value import Encode, Reader, Value, fixed, prefixed
from ibbmaster.sqltext import literals
from ibbmaster.sqltext.quoting import quoted_text

_NUMBERS = re.compile(r"\s*(\d+)\s*(?:,\s*(\d+)\s*)?", re.ASCII)
_DECLARED = re.compile(
    r"\s*(?P<word>[a-z0-9]+)\s*(?:\((?P<inside>(?:[^()']|'(?:[^']|'')*')*)\))?.*", re.IGNORECASE | re.DOTALL
)
LENGTH_MAX = (1 << 32) - 1

Literal = str | Decimal | bytes | int
Text = Callable[[bytes], bytes]
"""Takes the stored bytes of a value, without its length; gives its text. Raises ValueError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlType:
    """A column's type with every alias resolved.

    Attributes:
        word: as DATA_TYPE of information_schema has it: `int`, `varchar`, `enum`, `longtext`, …
        length: the first number in its brackets: characters, bytes, bits, digits, or the width
            to show; None where SHOW CREATE TABLE has no brackets.
        scale: digits after the point, also of temporal types; None where none are written.
        labels: of ENUM and SET.
        label_bytes: what a server has kept of them, a letter of Latin-1 for each byte, where CONVERT TO CHARACTER SET
            has made other letters of it.
        charset, collation: of texts, ENUM and SET; None for others.
        is_compressed: COMPRESSED, which the server prints as a comment.
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
    """How the text of a column is stored: its character set, its collation's number, bytes of the longest character."""

    charset: str = "utf8mb4"
    collation: int = 45  # utf8mb4_general_ci
    unit: int = 4


class TextSettings(NamedTuple):
    """What a session has set: the character set of texts (None, binary: as stored), and seconds east of UTC."""

    charset: str | None = None
    time_zone_s: int = 0


class DeclaredType(NamedTuple):
    """A type as CREATE TABLE writes it; `where` names its column in errors. `storage` and `is_compressed` are of
    columns that are written."""

    where: str
    text: str
    word: str  # in lower case
    inside: str | None  # the brackets after it
    storage: StoredText = StoredText()
    is_compressed: bool = False

    @property
    def length(self) -> int | None:
        """The first number in the brackets."""
        match = None if self.inside is None else _NUMBERS.fullmatch(self.inside)
        return None if match is None else int(match[1])

    @property
    def scale(self) -> int:
        """The second number in the brackets; 0 if there is none."""
        match = None if self.inside is None else _NUMBERS.fullmatch(self.inside)
        return int(match[2] or 0) if match is not None else 0

    def expect(self, column: Column, is_possible: bool) -> None:
        """See that a column may be of this type. Raises ConfigurationError: it may not."""
        if not is_possible:
            problem = f"declared as {self.text!r}, but the binlog has it as {column.type_name}"
            raise ConfigurationError(f"{self.where}: {problem}")


def read_declared(where: str, text: str) -> DeclaredType:
    """Take a type apart. Raises ConfigurationError: it does not begin with a word."""
    match = _DECLARED.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"{where}: {text!r} is no column type")
    return DeclaredType(where, text, match["word"].lower(), match["inside"])


class Grammar(enum.Enum):
    """What DDL writes after the word of a type."""

    WORD = "nothing, or a length"
    NUMBER = "a width and a sign"
    FRACTION = "digits, those after the point, and a sign"
    CLOCK = "digits of a second"
    LABELS = "labels"
    SPATIAL = "a reference system"


class Layout(NamedTuple):
    """What the metadata block says of a column: its type, and `Column.size` and `Column.scale`."""

    type: int
    size: int = 0
    scale: int = 0


class WrittenType(NamedTuple):
    """How a column is written. `metadata` are its bytes in the metadata block."""

    type: ColumnType
    metadata: bytes
    encode: Encode
    is_unsigned: bool | None = None  # None for what is no number
    collation: int | None = None  # None for what is no string
    labels: tuple[bytes, ...] = ()  # of ENUM and SET, as they are stored
    geometry_type: int | None = None


class TypeSizes(NamedTuple):
    """What COLUMNS of information_schema says of a type: CHARACTER_MAXIMUM_LENGTH up to DATETIME_PRECISION."""

    letters: int | None = None
    octets: int | None = None
    precision: int | None = None
    scale: int | None = None
    moment: int | None = None


class ResultType(NamedTuple):
    """What a result set says of a column; `flags`, as `ColumnFlag` names them, beside those of sign and collation."""

    type: int
    length: int
    decimals: int = 0
    flags: tuple[str, ...] = ()
    is_text: bool = False  # whether the length is in characters, which are sent in another character set


class RowReading(NamedTuple):
    """How a kernel reads values out of rows: its `RowOp` with two arguments, and what its numbers are then.

    `what` is number, text, or bytes; shown: bytes of which the kernel makes text; code: a number that encodes a value;
    value: bytes that do.
    """

    op: str
    first: int = 0
    second: int = 0
    what: str = "number"


Step = tuple[str, int, int, int, int]  # a `ValueOp` and its arguments
COPY: Step = ("COPY", 0, 0, 0, 0)


class ColumnKind(ABC):
    """Types that are alike; of each word there is an instance. Those of one kind are in one module, and nowhere else.

    A value has either as many bytes as `fixed_size` says, or a length of `length_size` bytes
    before it; `convert` takes the bytes, and raises ValueError where they make no value.
    """

    values: Mapping[ColumnType, ValueKind] = {}  # the types, and what their values are
    content: ClassVar[ValueKind | None] = None  # what its values are where only the declared type says that
    metadata_sizes: ClassVar[Mapping[ColumnType, int]] = {}  # bytes in the metadata block; others have none
    big_endian: ClassVar[frozenset[ColumnType]] = frozenset()  # types whose metadata has the high byte first
    has_sign: ClassVar[bool] = False  # a bit in the field SIGNEDNESS
    has_collation: ClassVar[bool] = False  # a number in the fields DEFAULT_CHARSET or COLUMN_CHARSET

    word: str = ""  # as DATA_TYPE of information_schema has it
    names: tuple[str, ...] = ()  # other words for it in declarations
    ddl_names: tuple[str, ...] = ()  # and in DDL alone
    codes: tuple[ColumnType, ...] = ()  # the types that a TABLE_MAP may have, the newest first
    in_oracle: str = ""  # the word of what Oracle's sql_mode makes of it
    grammar: Grammar = Grammar.WORD
    zero: str = "''"  # as `zero_of` gives it
    size: int | None = None  # bytes of each value, where all columns have the same
    frame: str = "string"  # Spark's name of its values in a DataFrame, where all columns have the same
    key: str = ""  # as `key_op` gives it; likewise `line` and `step`
    line: tuple[str, int, int] = ("SIDE", 0, 0)
    step: Step | None = None
    family: str = "OPAQUE"  # the `Kind` of its values in expressions
    key_size: int = 8  # bytes in an index
    is_integer: ClassVar[bool] = False
    is_exact: ClassVar[bool] = False  # whole, or with a fixed number of digits after the point
    is_number: ClassVar[bool] = False  # of which a column of texts takes the text that is shown
    has_day: ClassVar[bool] = False
    is_zoned: ClassVar[bool] = False  # its values are of UTC, and shown in the time zone of a session
    is_clock: ClassVar[bool] = False  # a moment or a time, with digits of a second
    is_large: bool = False  # TEXT or BLOB: an index has the beginning of it
    is_varying: bool = False  # rows are of no fixed length
    is_string: bool = False  # CHAR, VARCHAR, BINARY or VARBINARY
    has_letters: bool = False  # in a character set
    twin: str | None = None  # the word of the same type with bytes for letters
    has_name: ClassVar[bool] = False  # a result set names the type, whose number others have, too
    compares_size: ClassVar[bool] = False  # a TABLE_MAP must have the size that `size_of` gives
    has_scale: ClassVar[bool] = False  # a TABLE_MAP has digits after the point, of the newest of its types
    is_shown_as_text: ClassVar[bool] = False  # its values are text, whatever is stored
    is_ordered: ClassVar[bool] = True  # as the bytes of rows are, which need not be those of a server's key
    keeps_default: ClassVar[bool] = True  # as it is written; else `literal` says how

    @property
    def has_prefixes(self) -> bool:
        """Whether an index may be of the beginning of such a column."""
        return self.is_large or self.is_string

    def __init__(self, word: str = "", *codes: ColumnType, names: str = "", ddl_names: str = "") -> None:
        self.word, self.codes = word, codes
        self.names, self.ddl_names = tuple(names.split()), tuple(ddl_names.split())

    # In a TABLE_MAP, and in rows ------------------------------------------------------------------

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> Layout:
        """What the metadata of a column says; `raw` are its bytes, `metadata` the number that they are. Raises
        EventError: no column has such metadata."""
        return Layout(column_type)

    def fixed_size(self, column: Column) -> int | None:
        """Bytes of each value; None where a length precedes it."""
        return self.size

    def length_size(self, column: Column) -> int:
        """Bytes of the length before a value; 0 where there is none."""
        return 0

    @abstractmethod
    def convert(self, column: Column) -> Callable[[bytes], Value]:
        """How the bytes of a value become what `ValueKind` says."""

    def keeps_values(self, old: Column, new: Column) -> bool:
        """Whether every value of a column of this kind is the same value in another column, of whatever kind."""
        return (old.kind, old.type, old.size, old.scale) == (new.kind, new.type, new.size, new.scale)

    def reader(self, column: Column) -> Reader:
        """How values are read out of rows."""
        size = self.fixed_size(column)
        if size is not None:
            return fixed(size, self.convert(column))
        return prefixed(self.length_size(column), self.convert(column))

    # As DDL declares it ---------------------------------------------------------------------------

    def declare(self, column: Column, declared: DeclaredType) -> dict[str, Any]:
        """What a declared type says of a column that its TABLE_MAP does not: fields of `Column`. Raises
        ConfigurationError: the column cannot be of this type."""
        return {}

    def write(self, declared: DeclaredType) -> WrittenType | None:
        """How a column of a declared type is written; None if that cannot be done. Raises ConfigurationError: there is
        no such type."""
        return None

    def length_of(self, written: int | None) -> int | None:
        """The length that a type has of which DDL has written this one, or none."""
        return None

    def size_of(self, sql: SqlType) -> int | None:
        """`Column.size` of a column, if it is known."""
        return None

    def derived(self, column: Column, unit: int | None) -> tuple[str, int | None, int | None]:
        """The word, length and scale that a TABLE_MAP gives; `unit` are bytes of a character, None without any."""
        return self.word, None, column.scale or None

    def sizes(self, sql: SqlType) -> TypeSizes:
        """What information_schema says of a column."""
        return TypeSizes()

    def zero_of(self, sql: SqlType) -> str:
        """What NOT NULL columns without a default hold in rows that were there before, as SQL."""
        return self.zero

    def shows_alike(self, column: Column, old: SqlType, new: SqlType) -> bool:
        """Whether stored values, which the new type has, too, are shown as its own are."""
        return True

    # Literals and texts ---------------------------------------------------------------------------

    def literal(self, sql: SqlType, value: Literal, version: int) -> str:
        """The literal of a default as SHOW CREATE TABLE prints it. Raises ValueError, ArithmeticError: it is none."""
        return quoted_text(text_of(value))

    def kept_literal(self, sql: SqlType, value: Literal, written: str) -> str:
        """The literal of a default as a server keeps it."""
        return written if self.keeps_default else self.literal(sql, value, 0)

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        """The bytes of a constant, without their length. Raises ValueError: the column cannot hold it."""
        raise ValueError(f"constants of type {sql.word} are not known")

    def key_value(self, column: Column, sql: SqlType, value: literals.Value, zone_s: int) -> literals.Value:
        """What a literal has stored where they are equal; None where values are not compared so. Raises ValueError:
        nothing is."""
        return None

    def shown(self, column: Column, sql: SqlType, settings: TextSettings) -> Text:
        """How stored values are shown where the column has a type now."""
        read = self.convert(column)
        return lambda data: str(read(data)).encode()

    def fitted(self, value: Value, column: Column) -> Value:
        """What a column makes of a value that is computed; None where that cannot be sql."""
        return None

    # In result sets, DataFrames and kernels -------------------------------------------------------

    @abstractmethod
    def result(self, sql: SqlType) -> ResultType:
        """The column of a result set."""

    def digits(self, sql: SqlType) -> int:
        """Digits, or characters, that values have in expressions."""
        return 0

    def frame_type(self, column: Column, *, keeps_zeros: bool) -> str:
        """Spark's name of its values in a DataFrame; `keeps_zeros`: moments such as 0000-00-00 are values."""
        return self.frame

    def reading(self, column: Column, frame_type: str) -> RowReading:
        """How a kernel reads values that become such cells, those of `frame_type` or text."""
        size = self.fixed_size(column)
        if size is None:
            return RowReading("RAW_PREFIXED", self.length_size(column), 0, "value")
        return RowReading("RAW_FIXED", size, 0, "value")

    def text_op(self, column: Column) -> tuple[str, int]:
        """The kernel's `TextOp` for what it reads as `shown`, and how many bytes or digits it takes."""
        raise ValueError("values of this type are not shown so")

    def line_op(self, column: Column) -> tuple[str, int, int]:
        """The kernel's `LineOp`, with its arguments; SIDE: the reference writes them."""
        return self.line

    def key_op(self, column: Column) -> str:
        """The `KeyOp` that makes parts of keys of values."""
        return self.key or ("TEXT" if self.fixed_size(column) is None else "FIXED")

    def answer(self, column: Column, sql: SqlType, *, is_binary: bool) -> Step | None:
        """The `ValueOp` that makes values of an answer; None: the reference does, or it depends on letters."""
        return self.step


# Literals -------------------------------------------------------------------------------------


def decimal_of(value: Literal) -> Decimal:
    """A literal as a number. Raises ValueError: it is none."""
    if isinstance(value, bytes):
        return Decimal(int.from_bytes(value, "big"))
    try:
        return Decimal(value.strip() if isinstance(value, str) else value)
    except InvalidOperation:
        raise ValueError(value) from None


def text_of(value: Literal) -> str:
    """A literal as a text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def whole_of(value: literals.Value) -> int:
    """A constant as a whole number. Raises ValueError: it is none."""
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
    """A constant as bytes."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


def bounded(number: int, bits: int) -> int:
    """A number of at most `bits` bits. Raises ValueError: it has more."""
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{number} does not fit into {bits} bits")
    return number


def zeros_of(sql: SqlType, width: int) -> int:
    """How many digits a number is filled up to."""
    return width if sql.is_zerofill else 0


def number_of(value: Value) -> Decimal | None:
    """A computed value as a number; None if it is none."""
    if isinstance(value, bytes) and len(value) <= 8:
        return Decimal(int.from_bytes(value, "big"))
    if isinstance(value, str) and _PLAIN.fullmatch(value.strip(" ")):
        return Decimal(value.strip(" "))
    return Decimal(value) if isinstance(value, int | Decimal) else None


_PLAIN = re.compile(r"[+-]?\d{1,65}(?:\.\d{1,38})?", re.ASCII)
