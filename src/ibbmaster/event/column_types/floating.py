"""FLOAT and DOUBLE."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from ibbmaster.errors import EventError
from ibbmaster.event.column_types.kind import ColumnKind, DeclaredType, Layout, WrittenType
from ibbmaster.event.rows.attributes import is_unsigned
from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.value import Encode, Value

_LAYOUTS = {ColumnType.FLOAT: struct.Struct("<f"), ColumnType.DOUBLE: struct.Struct("<d")}


class Floating(ColumnKind):
    """Numbers of IEEE 754, little-endian; the metadata is their size."""

    values = dict.fromkeys(_LAYOUTS, ValueKind.FLOAT)
    words = frozenset(("float", "double", "real"))
    metadata_sizes = dict.fromkeys(_LAYOUTS, 1)
    has_sign = True

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> Layout:
        if metadata != _LAYOUTS[column_type].size:
            raise EventError(f"{where} has floats of {metadata} bytes")
        return Layout(column_type)

    def fixed_size(self, column: Column) -> int:
        return _LAYOUTS[ColumnType(column.type)].size

    def keeps_values(self, old: Column, new: Column) -> bool:
        if new.kind is not ValueKind.FLOAT or new.type not in (old.type, ColumnType.DOUBLE):
            return False
        if new.is_unsigned and not old.is_unsigned:
            return False
        return not new.size or (old.size, old.scale, old.type) == (new.size, new.scale, new.type)

    def declare(self, column: Column, declared: DeclaredType) -> dict[str, Any]:
        sign = {"is_unsigned": is_unsigned(declared.text)} if column.is_unsigned is None else {}
        if declared.length is None or "," not in (declared.inside or ""):
            return sign
        return {**sign, "size": declared.length, "scale": declared.scale}  # which values are rounded to

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        unpack = _LAYOUTS[ColumnType(column.type)].unpack
        return lambda data: unpack(data)[0]

    def write(self, declared: DeclaredType) -> WrittenType:
        kind = ColumnType.FLOAT if declared.word == "float" else ColumnType.DOUBLE
        layout = _LAYOUTS[kind]
        return WrittenType(kind, bytes([layout.size]), _encoder(layout), is_unsigned(declared.text))


def _encoder(layout: struct.Struct) -> Encode:
    def encode(value: object) -> bytes:
        try:
            return bytes(layout.pack(float(value)))  # type: ignore[arg-type]
        except (OverflowError, TypeError, struct.error):
            raise ValueError(f"{value!r} does not fit") from None

    return encode
