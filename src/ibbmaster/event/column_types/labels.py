"""ENUM and SET: numbers that stand for labels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ibbmaster.errors import ConfigurationError
from ibbmaster.event.column_types.kind import ColumnKind, DeclaredType, WrittenType
from ibbmaster.event.rows.charset import encode_text
from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.value import Encode, Value

ENUM_LABELS_MAX = 65535
SET_LABELS_MAX = 64

_LABEL = re.compile(r"\s*'((?:[^']|'')*)'\s*(?:,|$)")
_WORDS = {"enum": ColumnType.ENUM, "set": ColumnType.SET}


class Labels(ColumnKind):
    """ENUM: the number of a label from 1; SET: a bit a label. A TABLE_MAP has them as STRING in its types."""

    values = {ColumnType.ENUM: ValueKind.ENUM, ColumnType.SET: ValueKind.SET}
    words = frozenset(_WORDS)
    metadata_sizes = {ColumnType.ENUM: 2, ColumnType.SET: 2}
    big_endian = frozenset(metadata_sizes)

    def fixed_size(self, column: Column) -> int:
        return column.size

    def keeps_values(self, old: Column, new: Column) -> bool:
        return new.kind is old.kind and set(old.labels or ()) <= set(new.labels or ())

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        if column.labels is None:
            return lambda data: int.from_bytes(data, "little")
        return (_enum if column.type == ColumnType.ENUM else _set)(column.labels)

    def declare(self, column: Column, declared: DeclaredType) -> dict[str, Any]:
        declared.expect(column, column.type == _WORDS[declared.word])
        if column.labels is not None and column.charset is not None:  # else those of the event cannot be read
            return {}
        return {"labels": _labels(declared)}

    def write(self, declared: DeclaredType) -> WrittenType:
        kind, labels = _WORDS[declared.word], _labels(declared)
        count_max = ENUM_LABELS_MAX if kind == ColumnType.ENUM else SET_LABELS_MAX
        if not 0 < len(labels) <= count_max:
            problem = f"{len(labels)} labels, expected 1 to {count_max}"
            raise ConfigurationError(f"{declared.where}: {declared.text!r} has {problem}")
        if kind == ColumnType.ENUM:
            size = 1 if len(labels) < 256 else 2
            encode = _enum_encoder(labels, size)
        else:
            size = (len(labels) + 7) // 8
            size = size if size <= 4 else 8
            encode = _set_encoder(labels, size)
        charset, collation, _ = declared.storage
        stored = tuple(_stored(declared.where, label, charset) for label in labels)
        return WrittenType(ColumnType.STRING, bytes([kind, size]), encode, collation=collation, labels=stored)


def _stored(where: str, label: str, charset: str) -> bytes:
    try:
        return encode_text(label, charset)
    except ValueError as error:
        raise ConfigurationError(f"{where}: {error}") from None


def _labels(declared: DeclaredType) -> tuple[str, ...]:
    return tuple(label.replace("''", "'") for label in _LABEL.findall(declared.inside or ""))


def _enum_encoder(labels: tuple[str, ...], size: int) -> Encode:
    numbers = {"": 0, **{label: number for number, label in enumerate(labels, 1)}}

    def encode(value: object) -> bytes:
        number = value if isinstance(value, int) else numbers.get(str(value))
        if number is None or not 0 <= number <= len(labels):
            raise ValueError(f"{value!r} is no label of it")
        return number.to_bytes(size, "little")

    return encode


def _set_encoder(labels: tuple[str, ...], size: int) -> Encode:
    bits = {label: 1 << number for number, label in enumerate(labels)}

    def encode(value: object) -> bytes:
        if not isinstance(value, int):
            chosen = [label for label in str(value).split(",") if label]
            unknown = next((label for label in chosen if label not in bits), None)
            if unknown is not None:
                raise ValueError(f"{unknown!r} is no label of it")
            value = sum(bits[label] for label in set(chosen))
        if value >> len(labels):
            raise ValueError(f"{value:#x} has more than {len(labels)} labels")
        return value.to_bytes(size, "little")

    return encode


def _enum(labels: tuple[str, ...]) -> Callable[[bytes], Value]:
    known = ("", *labels)

    def read(data: bytes) -> Value:
        number = int.from_bytes(data, "little")
        if number >= len(known):
            raise ValueError(f"label {number} of {len(labels)}")
        return known[number]

    return read


def _set(labels: tuple[str, ...]) -> Callable[[bytes], Value]:
    def read(data: bytes) -> Value:
        bits = int.from_bytes(data, "little")
        if bits >> len(labels):
            raise ValueError(f"set {bits:#x} of {len(labels)} labels")
        return ",".join(label for number, label in enumerate(labels) if bits >> number & 1)

    return read
