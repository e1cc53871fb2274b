"""ENUM and SET: numbers that stand for labels."""

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, AnyStr

from ibbmaster.errors import ConfigurationError
from ibbmaster.sqltext import literals
from ibbmaster.sqltext.quoting import quoted, quoted_text
from ..rows.charset import character_size, encode_text, encoded
from ..rows.column import Column, ColumnType, ValueKind
from ..rows.value import Convert, Encode, Value
from . import kind as kinds
from .kind import ColumnKind, SqlType
from .strings import SHOWN_DEFAULT, wanted_charset

WRITTEN_MAX, WRITTEN_SIZE_MAX = 1 << 12, 1 << 10  # texts whose bytes are kept, and characters of each
_LABEL = re.compile(r"\s*'((?:[^']|'')*)'\s*(?:,|$)")


class Labels(ColumnKind):
    """Numbers that stand for labels; STRING among the types of a TABLE_MAP."""

    grammar = kinds.Grammar.LABELS
    has_letters = True
    keeps_default = False
    key = "REVERSED"
    labels_max: int

    def __init__(self, word: str, code: ColumnType, kind: ValueKind) -> None:
        super().__init__(word, code)
        self.values, self.metadata_sizes = {code: kind}, {code: 2}  # type: ignore[misc]
        self.big_endian = frozenset((code,))  # type: ignore[misc]
        self.family = code.name

    def fixed_size(self, column: Column) -> int:
        return column.size

    def keeps_values(self, old: Column, new: Column) -> bool:
        return new.kind is old.kind and set(old.labels or ()) <= set(new.labels or ())

    def convert(self, column: Column) -> Convert:
        if column.labels is None:
            return lambda data: int.from_bytes(data, "little")
        return self._reader(column.labels, ",", len(column.labels))

    @abstractmethod
    def _reader(self, labels: Sequence[AnyStr], comma: AnyStr, count: int) -> Callable[[bytes], AnyStr]: ...

    @abstractmethod
    def _bytes_of(self, count: int) -> int: ...

    @abstractmethod
    def _parts(self, text: str) -> list[str]: ...

    @abstractmethod
    def _number(self, places: Sequence[int]) -> int:
        """Stored, of labels at these places, from 0."""

    def _encoder(self, labels: tuple[str, ...], size: int) -> Encode:
        known = {label.rstrip().casefold(): place for place, label in reversed(list(enumerate(labels)))}
        known |= {label: place for place, label in enumerate(labels)}
        most = self._number(range(len(labels)))
        plain = {label: self._number([place]).to_bytes(size, "little") for place, label in enumerate(labels)}

        def encode(value: object) -> bytes:
            if isinstance(value, str) and value in plain:
                return plain[value]
            if isinstance(value, int | float | Decimal):
                number = kinds.whole_of(str(value))
            else:
                parts = self._parts(str(value)) if value != "" or "" in labels else []
                places = [known.get(part, known.get(part.rstrip().casefold(), -1)) for part in parts]
                number = -1 if -1 in places else self._number(places)
            if not 0 <= number <= most:
                raise ValueError(f"{value!r} is no label of it")
            data = number.to_bytes(size, "little")
            if isinstance(value, str) and len(value) <= WRITTEN_SIZE_MAX and len(plain) < WRITTEN_MAX:
                plain[value] = data
            return data

        return encode

    def declare(self, column: Column, declared: kinds.DeclaredType) -> dict[str, Any]:
        declared.expect(column, column.type == self.codes[0])
        if column.labels is not None and column.charset is not None:  # else those of the event cannot be read
            return {}
        return {"labels": _labels(declared)}

    def write(self, declared: kinds.DeclaredType) -> kinds.WrittenType:
        labels = _labels(declared)
        if not 0 < len(labels) <= self.labels_max:
            problem = f"{len(labels)} labels, expected 1 to {self.labels_max}"
            raise ConfigurationError(f"{declared.where}: {declared.text!r} has {problem}")
        size = self._bytes_of(len(labels))
        charset, collation, _ = declared.storage
        stored = tuple(_stored(declared.where, label, charset) for label in labels)
        metadata, encode = bytes([self.codes[0], size]), self._encoder(labels, size)
        return kinds.WrittenType(ColumnType.STRING, metadata, encode, collation=collation, labels=stored)

    def size_of(self, sql: SqlType) -> int | None:
        return self._bytes_of(len(sql.labels))

    def shows_alike(self, column: Column, old: SqlType, new: SqlType) -> bool:
        return new.labels[: len(old.labels)] == old.labels

    def sizes(self, sql: SqlType) -> kinds.TypeSizes:
        letters = max(self.digits(sql), 0)
        return kinds.TypeSizes(letters, letters * character_size(sql.charset))

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        return self._encoder(sql.labels, column.size)(value)

    def fitted(self, value: Value, column: Column) -> Value:
        if not isinstance(value, str):
            return None
        order = column.labels or ()
        labels = [_label(part, order) for part in self._parts(value)]
        return None if None in labels else ",".join(label for label in order if label in labels)

    def shown(self, column: Column, sql: SqlType, settings: kinds.TextSettings) -> kinds.Text:
        charset = wanted_charset(sql, settings.charset) or SHOWN_DEFAULT
        charset = SHOWN_DEFAULT if sql.charset == "binary" else charset  # bytes have no letters: as written
        labels = [encoded(label, charset) for label in sql.labels]
        return self._reader(labels, encoded(",", charset), len(labels))

    def result(self, sql: SqlType) -> kinds.ResultType:
        is_text = sql.charset != "binary"
        flags = (self.codes[0].name,) if is_text else (self.codes[0].name, "BINARY")
        return kinds.ResultType(ColumnType.STRING, self.digits(sql), 0, flags, is_text)

    def frame_type(self, column: Column, *, keeps_zeros: bool) -> str:
        return "string" if column.labels is not None else "int" if self.labels_max > 64 else "decimal(20,0)"

    def reading(self, column: Column, frame_type: str) -> kinds.RowReading:
        return kinds.RowReading("INTEGER", column.size, 0, "code")


class EnumLabels(Labels):
    """The number of a label from 1."""

    labels_max = 65535
    line = ("CHOICE", 0, 0)

    def _reader(self, labels: Sequence[AnyStr], comma: AnyStr, count: int) -> Callable[[bytes], AnyStr]:
        known = [comma[:0]]
        known.extend(labels)

        def read(data: bytes) -> AnyStr:
            number = int.from_bytes(data, "little")
            if number > count:
                raise ValueError(f"label {number} of {count}")
            return known[number]

        return read

    def _bytes_of(self, count: int) -> int:
        return 1 if count < 256 else 2

    def _parts(self, text: str) -> list[str]:
        return [text]

    def _number(self, places: Sequence[int]) -> int:
        return max(places, default=-1) + 1

    def digits(self, sql: SqlType) -> int:
        return max(map(len, sql.labels), default=0)

    def literal(self, sql: SqlType, value: kinds.Literal, version: int) -> str:
        text = kinds.text_of(value)
        return quoted_text(next((label for label in sql.labels if label.lower() == text.lower().rstrip(" ")), text))

    def answer(self, column: Column, sql: SqlType, *, is_binary: bool) -> kinds.Step | None:
        return "CHOICE", 0, len(sql.labels) + 1, 0, 0

    def zero_of(self, sql: SqlType) -> str:
        return quoted(sql.labels[0]) if sql.labels else "''"


class SetLabels(Labels):
    """A bit a label."""

    labels_max = 64

    def _reader(self, labels: Sequence[AnyStr], comma: AnyStr, count: int) -> Callable[[bytes], AnyStr]:
        def read(data: bytes) -> AnyStr:
            bits = int.from_bytes(data, "little")
            if bits >> count:
                raise ValueError(f"set {bits:#x} of {count} labels")
            return comma.join(label for number, label in enumerate(labels) if bits >> number & 1)

        return read

    def _bytes_of(self, count: int) -> int:
        size = (count + 7) // 8
        return size if size <= 4 else 8

    def _parts(self, text: str) -> list[str]:
        return text.split(",") if text else []

    def _number(self, places: Sequence[int]) -> int:
        return sum(1 << place for place in set(places))

    def digits(self, sql: SqlType) -> int:
        return sum(map(len, sql.labels)) + len(sql.labels) - 1

    def literal(self, sql: SqlType, value: kinds.Literal, version: int) -> str:
        wanted = {part.lower() for part in kinds.text_of(value).split(",")}
        return quoted_text(",".join(label for label in sql.labels if label.lower() in wanted))


def _stored(where: str, label: str, charset: str) -> bytes:
    try:
        return encode_text(label, charset)
    except ValueError as error:
        raise ConfigurationError(f"{where}: {error}") from None


def _labels(declared: kinds.DeclaredType) -> tuple[str, ...]:
    return tuple(label.replace("''", "'") for label in _LABEL.findall(declared.inside or ""))


def _label(text: str, labels: tuple[str, ...]) -> str | None:
    """By its text, or the only one that differs just in case."""
    if text in labels:
        return text
    alike = [label for label in labels if label.lower() == text.lower()]
    return alike[0] if len(alike) == 1 else None


KINDS = (EnumLabels("enum", ColumnType.ENUM, ValueKind.ENUM), SetLabels("set", ColumnType.SET, ValueKind.SET))
