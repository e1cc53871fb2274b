"""Types of expressions as MariaDB determines them without a row, and the columns of results with such values."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ibbmaster.replication.event.rows.charset import character_size
from ibbmaster.replication.wire.refusal import not_supported
from ibbmaster.replication.wire.response import COLLATION_BINARY, ColumnDefinition, ColumnFlag, FieldType
from ibbmaster.schema.model import SqlType

PRECISION_MAX, SCALE_MAX = 65, 38
VARIABLE_MAX = 65_535  # bytes of the longest text that is no BLOB
LENGTH_MAX = (1 << 32) - 1
FLOATING = 31  # decimals of numbers without a fixed scale
NOT_FIXED = 39
UNSIGNED, BINARY, NOT_NULL = ColumnFlag.UNSIGNED, ColumnFlag.BINARY, ColumnFlag.NOT_NULL
INT_DIGITS_MAX = 9  # that any INT holds


class Family(enum.Enum):
    """Kinds of values; the comments say the type in Python, and in SQLite where that is another one."""

    NULL = "NULL"
    INT = "INT"  # int; BIGINT UNSIGNED less 2**63
    BIT = "BIT"  # int, as a BIGINT UNSIGNED
    YEAR = "YEAR"  # int
    DECIMAL = "DECIMAL"  # Decimal; 28 bytes that compare as it does
    DOUBLE = "DOUBLE"  # float
    FLOAT = "FLOAT"  # float
    TEXT = "TEXT"  # str
    BYTES = "BYTES"  # bytes
    ENUM = "ENUM"  # number of the label
    SET = "SET"  # bits of the labels
    DATE = "DATE"  # str, YYYY-MM-DD
    DATETIME = "DATETIME"  # str, YYYY-MM-DD hh:mm:ss[.f]; TIMESTAMP, too, as the session sees it
    TIME = "TIME"  # microseconds
    OPAQUE = "OPAQUE"  # str or bytes as they are shown: UUID, INET6, geometry, VECTOR


NUMBERS = frozenset((Family.INT, Family.BIT, Family.YEAR, Family.DECIMAL, Family.DOUBLE, Family.FLOAT))
INTEGERS = frozenset((Family.INT, Family.BIT, Family.YEAR))
REALS = frozenset((Family.DOUBLE, Family.FLOAT))
MOMENTS = frozenset((Family.DATE, Family.DATETIME, Family.TIME))
TEXTS = frozenset((Family.TEXT, Family.ENUM, Family.SET))


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueType:
    kind: Family
    length: int = 0  # of numbers the characters shown, of texts characters, of bytes bytes
    digits: int = 0  # of numbers the digits in all
    decimals: int = 0  # digits behind the point
    is_unsigned: bool = False
    is_nullable: bool = True
    collation: str | None = None  # of texts
    strength: int = 2  # of the collation, the least wins: 0 COLLATE, 2 column, 4 literal, 5 number
    labels: tuple[str, ...] = ()  # of ENUM and SET
    field: FieldType | None = None  # on the wire, where a column has a narrower one than expressions
    column: ColumnDefinition | None = None  # of an expression that is nothing but a column
    sql: SqlType | None = None
    is_blob: bool = False
    is_truth: bool = False  # the result of a comparison
    fraction: int = -1  # digits behind the point in computations, where these are more than those shown
    charset: str | None = None  # of a column's texts, where these hold no other letters

    @property
    def is_number(self) -> bool:
        return self.kind in NUMBERS

    @property
    def is_wide(self) -> bool:
        return self.kind in (Family.BIT, Family.SET) or (
            self.kind is Family.INT and self.is_unsigned and self.digits > 18
        )

    @property
    def scale(self) -> int:
        return max(self.fraction, self.decimals)

    def computed(self, **changes: Any) -> ValueType:
        return replace(self, column=None, sql=None, **changes)


NULL = ValueType(kind=Family.NULL)
EXACT_NAMES = "utf8mb3_names"  # of databases and tables: ordered as others, but equal only to themselves


def integer(
    digits: int, *, length: int | None = None, is_unsigned: bool = False, is_nullable: bool = True
) -> ValueType:
    """The field is an INT where the length is small enough."""
    length = digits + (not is_unsigned) if length is None else length
    field = FieldType.LONG if length <= INT_DIGITS_MAX else FieldType.LONGLONG
    return ValueType(
        kind=Family.INT, length=length, digits=digits, is_unsigned=is_unsigned, is_nullable=is_nullable, field=field
    )


def truth(*, is_nullable: bool = True) -> ValueType:
    return ValueType(kind=Family.INT, length=1, digits=1, field=FieldType.LONG, is_nullable=is_nullable, is_truth=True)


def decimal(digits: int, decimals: int, *, is_unsigned: bool = False, is_nullable: bool = True) -> ValueType:
    """Raises RefusedError: a server would cut digits behind the point."""
    if decimals > SCALE_MAX:
        raise not_supported(f"numbers with more than {SCALE_MAX} digits behind the point")
    digits = min(digits, PRECISION_MAX)
    length = digits + (decimals > 0) + (not is_unsigned and digits > 0)
    found = ValueType(kind=Family.DECIMAL, length=length, digits=digits, decimals=decimals, is_nullable=is_nullable)
    return replace(found, is_unsigned=is_unsigned)


def real(*, decimals: int = FLOATING, is_nullable: bool = True, length: int = 23) -> ValueType:
    return ValueType(kind=Family.DOUBLE, length=length, digits=17, decimals=decimals, is_nullable=is_nullable)


def shown_real(decimals: int, *, is_nullable: bool = True) -> ValueType:
    decimals = min(decimals, FLOATING)
    return real(decimals=decimals, is_nullable=is_nullable, length=23 if decimals == FLOATING else 17 + decimals)


def text(length: int, collation: str, *, strength: int = 4, is_nullable: bool = True) -> ValueType:
    return ValueType(kind=Family.TEXT, length=length, collation=collation, strength=strength, is_nullable=is_nullable)


def data(length: int, *, is_nullable: bool = True) -> ValueType:
    return ValueType(kind=Family.BYTES, length=length, is_nullable=is_nullable)


def date(*, is_nullable: bool = True) -> ValueType:
    return ValueType(kind=Family.DATE, length=10, digits=8, is_nullable=is_nullable)


def moment(decimals: int = 0, *, is_nullable: bool = True) -> ValueType:
    length = 19 + (decimals + 1 if decimals else 0)
    return ValueType(
        kind=Family.DATETIME, length=length, digits=14 + decimals, decimals=decimals, is_nullable=is_nullable
    )


def duration(decimals: int = 0, *, is_nullable: bool = True) -> ValueType:
    length = 10 + (decimals + 1 if decimals else 0)
    return ValueType(kind=Family.TIME, length=length, digits=7 + decimals, decimals=decimals, is_nullable=is_nullable)


def numeric_digits(kind: ValueType) -> int:
    """The most digits of a value as a number."""
    if kind.kind in MOMENTS or kind.is_number or kind.kind in (Family.ENUM, Family.SET):
        return kind.digits
    if kind.kind in TEXTS or kind.kind is Family.BYTES:
        return min(kind.length, PRECISION_MAX)
    return 0


_FIELDS = {
    Family.NULL: FieldType.NULL,
    Family.INT: FieldType.LONGLONG,
    Family.BIT: FieldType.BIT,
    Family.YEAR: FieldType.YEAR,
    Family.DECIMAL: FieldType.NEWDECIMAL,
    Family.DOUBLE: FieldType.DOUBLE,
    Family.FLOAT: FieldType.FLOAT,
    Family.TEXT: FieldType.VAR_STRING,
    Family.BYTES: FieldType.VAR_STRING,
    Family.ENUM: FieldType.STRING,
    Family.SET: FieldType.STRING,
    Family.DATE: FieldType.DATE,
    Family.DATETIME: FieldType.DATETIME,
    Family.TIME: FieldType.TIME,
}


def definition_of(kind: ValueType, name: str, charset: str | None, collation_id: int) -> ColumnDefinition:
    """The column of a result; texts are sent in a character set (None: their own)."""
    if kind.column is not None:
        return replace(kind.column, name=name)
    flags = 0 if kind.is_nullable else NOT_NULL
    field, length, decimals = kind.field or _FIELDS.get(kind.kind, FieldType.VAR_STRING), kind.length, kind.decimals
    collation = COLLATION_BINARY
    if kind.kind in TEXTS or (kind.kind is Family.OPAQUE and kind.collation is not None):
        field, decimals, collation = kind.field or FieldType.VAR_STRING, NOT_FIXED, collation_id
        if kind.is_blob or length * 4 > VARIABLE_MAX:
            field = FieldType.MEDIUM_BLOB if length * 4 < 1 << 24 else FieldType.LONG_BLOB
        length = min(length * character_size(charset if charset not in (None, "binary") else "utf8mb4"), LENGTH_MAX)
        flags |= BINARY if (kind.collation or "").endswith("_bin") else 0
    elif kind.kind is Family.BYTES:
        field = FieldType.BLOB if kind.is_blob or length > VARIABLE_MAX else FieldType.VAR_STRING
        length, decimals = min(length, LENGTH_MAX), NOT_FIXED
        flags |= BINARY
    else:
        flags |= BINARY | (UNSIGNED if kind.is_unsigned else 0)
    return ColumnDefinition(
        name=name, column_type=field, length=length, flags=flags, decimals=decimals, collation_id=collation
    )


def of_all(kinds: Sequence[ValueType]) -> ValueType:
    """The type that holds the values of each, as of CASE and COALESCE."""
    known = [kind for kind in kinds if kind.kind is not Family.NULL]
    is_nullable = any(kind.is_nullable for kind in kinds)
    if not known:
        return NULL
    if known != list(kinds[: len(known)]) and any(kind.kind is Family.INT and kind.is_unsigned for kind in known):
        raise not_supported("NULL beside whole numbers without a sign")
    if len(known) == 1 and known[0].kind is not Family.BIT:
        only = known[0].computed(is_nullable=is_nullable)
        return (
            replace(only, kind=Family.TEXT, labels=(), field=None) if only.kind in (Family.ENUM, Family.SET) else only
        )
    found = {kind.kind for kind in known}
    if found & {Family.OPAQUE, Family.BIT}:
        raise not_supported("values of such types in one column")
    if found == {Family.YEAR}:
        raise not_supported("a YEAR beside another one")
    if found <= NUMBERS:
        return _number_of_all(known, is_nullable)
    decimals = max(kind.decimals for kind in known)
    if found == {Family.DATE}:
        return date(is_nullable=is_nullable)
    if found <= {Family.DATE, Family.DATETIME}:
        fields = {kind.field for kind in known}
        field = FieldType.TIMESTAMP if fields == {FieldType.TIMESTAMP} else None
        return replace(moment(decimals, is_nullable=is_nullable), field=field)
    if found == {Family.TIME}:
        return duration(decimals, is_nullable=is_nullable)
    if Family.TIME in found:
        raise not_supported("moments and durations in one column")
    length = max(kind.length for kind in known)
    if found == {Family.BYTES}:
        return data(length, is_nullable=is_nullable)
    if found & {Family.BYTES, *REALS}:
        raise not_supported("texts and such values in one column")
    texts = [kind for kind in known if kind.kind in TEXTS]
    collation, strength = joint_collation(texts or known)
    is_char = bool(texts) and all(kind.kind is Family.TEXT and kind.field is FieldType.STRING for kind in texts)
    return replace(
        text(length, collation, strength=strength, is_nullable=is_nullable),
        is_blob=any(kind.is_blob for kind in known),
        field=FieldType.STRING if is_char else None,
    )


def _number_of_all(kinds: Sequence[ValueType], is_nullable: bool) -> ValueType:
    found = {kind.kind for kind in kinds}
    decimals = max(kind.decimals for kind in kinds)
    if found & REALS:
        if found == {Family.FLOAT}:
            return kinds[0].computed(is_nullable=is_nullable)
        if Family.FLOAT in found:
            raise not_supported("FLOAT and other numbers in one column")
        return real(is_nullable=is_nullable, decimals=decimals)
    whole = max(kind.digits - kind.decimals for kind in kinds)
    is_unsigned = all(kind.is_unsigned for kind in kinds)
    if Family.DECIMAL in found:
        return decimal(whole + decimals, decimals, is_unsigned=is_unsigned, is_nullable=is_nullable)
    if is_unsigned != any(kind.is_unsigned for kind in kinds):
        return decimal(whole, 0, is_nullable=is_nullable)
    field = max((kind.field or FieldType.LONGLONG for kind in kinds), key=_INTEGER_FIELDS.index)
    length = max(kind.length for kind in kinds)
    return replace(integer(whole, length=length, is_unsigned=is_unsigned, is_nullable=is_nullable), field=field)


_INTEGER_FIELDS = (FieldType.TINY, FieldType.SHORT, FieldType.INT24, FieldType.LONG, FieldType.LONGLONG)


def joint_collation(kinds: Sequence[ValueType]) -> tuple[str, int]:
    best = min(kind.strength for kind in kinds)
    strong = {kind.collation for kind in kinds if kind.strength == best}
    strong.discard(None)
    if strong == {EXACT_NAMES, "utf8mb3_general_ci"}:
        strong = {EXACT_NAMES}
    if len(strong) > 1:
        charsets = {str(name).split("_")[0] for name in strong}
        binary = [name for name in strong if str(name).endswith("_bin")]
        if len(charsets) == 1 and len(binary) == 1 and best == 2:
            return str(binary[0]), best
        if charsets == {"utf8mb3", "utf8mb4"} and len(wide := [one for one in strong if "utf8mb4" in str(one)]) == 1:
            return str(wide[0]), best
        raise not_supported("texts of several collations together: " + ", ".join(sorted(map(str, strong))))
    if not strong:
        return "utf8mb4_general_ci", 5
    (collation,) = strong
    return str(collation), best
