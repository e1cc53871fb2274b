"""Tables that every server has, as SQLite gets them: of information_schema, and what else is there without a log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

from ibbmaster.dialogue.conversion import integer_of, text_of
from ibbmaster.dialogue.relation import Relation
from ibbmaster.event.rows.charset import character_size
from ibbmaster.expr import kinds, values
from ibbmaster.expr.comparing import cached
from ibbmaster.expr.kinds import EXACT_NAMES, Kind, Type
from ibbmaster.expr.scalars import Slot
from ibbmaster.expr.weights import key_of
from ibbmaster.schema.collations import sent_collation_number
from ibbmaster.wire.response import ColumnDefinition, FieldType
from ibbmaster.work import check_wanted

COLLATION, CHARSET = "utf8mb3_general_ci", "utf8mb3"
LETTER_SIZE = 4  # bytes of a letter in the lengths of definitions
ROWS_BETWEEN_LOOKS = 1 << 10
#: Columns that a server compares exactly, as the names of files.
_EXACT = frozenset(
    f"{of}_{what}"
    for of in ("TABLE", "CONSTRAINT", "INDEX", "REFERENCED_TABLE", "TRIGGER", "EVENT_OBJECT", "ROUTINE", "EVENT")
    for what in ("SCHEMA", "NAME", "TABLE")
) - {"CONSTRAINT_NAME", "INDEX_NAME", "TRIGGER_NAME", "ROUTINE_NAME", "EVENT_NAME"} | {"SCHEMA_NAME"}
_DIGITS = {FieldType.TINY: 3, FieldType.SHORT: 5, FieldType.LONG: 10, FieldType.LONGLONG: 19}
_BLOBS = (FieldType.BLOB, FieldType.LONG_BLOB)


def listed_type(column: ColumnDefinition, *, folds: bool) -> Type:
    """The type of a column's values; where capitals do not matter in names, all texts are compared alike."""
    field = FieldType(column.column_type)
    is_nullable = not column.flags & kinds.NOT_NULL
    is_unsigned = bool(column.flags & kinds.UNSIGNED)
    base: dict[str, Any] = {"is_nullable": is_nullable, "column": column}
    if field in _DIGITS:
        digits = column.length if is_unsigned and field is FieldType.LONGLONG else _DIGITS[field]
        return Type(
            kind=Kind.INT, length=column.length, digits=digits, is_unsigned=is_unsigned, field=field, **base,
        )  # fmt: skip
    match field:
        case FieldType.NEWDECIMAL:
            return Type(
                kind=Kind.DECIMAL, length=column.length, digits=column.length - 2, decimals=column.decimals, **base
            )
        case FieldType.DOUBLE | FieldType.FLOAT:
            return kinds.changed(kinds.real(decimals=column.decimals), **base)
        case FieldType.DATETIME:
            return kinds.changed(kinds.moment(column.decimals), **base)
    is_exact = column.name.upper() in _EXACT and not folds
    return Type(
        kind=Kind.TEXT, length=column.length // LETTER_SIZE, collation=EXACT_NAMES if is_exact else COLLATION,
        charset=CHARSET, is_blob=field in _BLOBS, **base,
    )  # fmt: skip


class ServerTable:
    """One such table of one query."""

    def __init__(
        self, number: int, alias: str, relation: Relation, charset: str | None, collation_id: int, *, folds: bool
    ) -> None:
        """`alias` is what SQL calls it, `charset` what texts are sent in; None sends them as they are stored."""
        self.name = f"s{number}"
        self._alias = alias
        self._relation = relation
        self._columns = [_sent(column, charset, collation_id) for column in relation.columns]
        self._types = [listed_type(column, folds=folds) for column in self._columns]
        self._keys: dict[int, str] = {}  # of columns of texts that are compared: their collations
        self._wanted: dict[int, tuple[str, str]] = {}  # what columns are to be equal to, and by which collation

    def slots(self) -> Iterator[tuple[str, Slot]]:
        """The name of each column, and how SQL knows it."""
        for place, (column, kind) in enumerate(zip(self._columns, self._types, strict=True)):
            yield column.name, Slot(f"{self._alias}.c{place}", kind, table=self.name)

    def key_column(self, slot: Slot) -> str:
        """The column beside a text that compares as it does."""
        place = int(slot.sql.removeprefix(f"{self._alias}.c"))
        self._keys[place] = str(slot.type.collation)
        return f"{self._alias}.k{place}"

    def restrict(self, slot: Slot, text: str) -> None:
        """Load only rows in which a column compares equal to a text."""
        self._wanted[int(slot.sql.removeprefix(f"{self._alias}.c"))] = text, str(slot.type.collation)

    def load(self, sql: str) -> tuple[str, str, Iterator[tuple[Any, ...]]]:
        """The statements that make and fill the table for a query, and the rows for the second one."""
        found = {int(place) for place in re.findall(rf"\b{self._alias}\.c(\d+)\b", sql)}
        places = sorted(found | self._keys.keys()) or [0]
        names = [f"c{place}" for place in places] + [f"k{place}" for place in self._keys]
        marks = ", ".join("?" * len(names))
        made = f"CREATE TABLE {self.name} ({', '.join(names)})"
        return made, f"INSERT INTO {self.name} VALUES ({marks})", self._rows(places)

    def _rows(self, places: list[int]) -> Iterator[tuple[Any, ...]]:
        stores = [(place, storing(self._types[place])) for place in places]
        keys = [(places.index(place), cached(key_of(collation))) for place, collation in self._keys.items()]
        given_rows = self._relation.rows
        for place, (text, collation) in self._wanted.items():
            is_wanted = _equal_to(text, cached(key_of(collation)))
            given_rows = [given for given in given_rows if is_wanted(given[place])]
        for count, given in enumerate(given_rows):
            if not count % ROWS_BETWEEN_LOOKS:
                check_wanted()
            row: list[Any] = [None if given[place] is None else store(given[place]) for place, store in stores]
            row += [None if row[index] is None else key(row[index]) for index, key in keys]
            yield tuple(row)


def _sent(column: ColumnDefinition, charset: str | None, collation_id: int) -> ColumnDefinition:
    """A definition for texts that are sent in a character set."""
    if FieldType(column.column_type) not in (FieldType.VAR_STRING, *_BLOBS):
        return column
    number = collation_id if charset is not None else sent_collation_number(COLLATION) or collation_id
    length = column.length // LETTER_SIZE * character_size(charset if charset not in (None, "binary") else CHARSET)
    return replace(column, collation_id=number, length=column.length if charset == "utf8mb4" else length)


def storing(kind: Type) -> Callable[[Any], Any]:
    """What makes of a value what SQLite has of it."""
    match kind.kind:
        case Kind.INT:
            bias = values.WIDE if kind.is_wide else 0
            return lambda value: (value if type(value) is int else integer_of(value) or 0) - bias
        case Kind.DECIMAL:
            return lambda value: values.store_decimal(Decimal(text_of(value)), kind.decimals)
        case Kind.DOUBLE:
            return float
        case Kind.DATETIME:
            return text_of
    return _whole_text


def _equal_to(text: str, key: Callable[[str], bytes]) -> Callable[[Any], bool]:
    """Whether values compare equal to a text; NULL does not."""
    wanted = key(text)
    return lambda value: value is not None and (value == text or key(text_of(value)) == wanted)


def _whole_text(value: Any) -> str:
    """A text without halves of letters, which SQLite does not take."""
    text = text_of(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
