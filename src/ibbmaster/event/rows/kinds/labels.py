"""ENUM and SET: numbers that stand for labels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.kinds.kind import ColumnKind, DeclaredType
from ibbmaster.event.rows.value import Value

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

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        if column.labels is None:
            return lambda data: int.from_bytes(data, "little")
        return (_enum if column.type == ColumnType.ENUM else _set)(column.labels)

    def declare(self, column: Column, declared: DeclaredType) -> dict[str, Any]:
        declared.expect(column, column.type == _WORDS[declared.word])
        if column.labels is not None and column.charset is not None:  # else those of the event cannot be read
            return {}
        return {"labels": tuple(label.replace("''", "'") for label in _LABEL.findall(declared.inside or ""))}


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
