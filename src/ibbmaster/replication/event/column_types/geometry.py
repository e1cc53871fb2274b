"""GEOMETRY and its kinds: the number of a reference system and WKB, after a length."""

from typing import Any

from ibbmaster.errors import EventError
from ibbmaster.sqltext import literals
from ..rows.charset import BINARY_COLLATION
from ..rows.column import Column, ColumnType, ValueKind
from ..rows.value import Convert
from . import kind as kinds
from .kind import ColumnKind, SqlType
from .strings import BYTES, string_encoder

PREFIX = 4  # bytes of the length


class Geometry(ColumnKind):
    """`number`: in the metadata of a TABLE_MAP; 0 holds all the others."""

    values = {ColumnType.GEOMETRY: ValueKind.GEOMETRY}
    metadata_sizes = {ColumnType.GEOMETRY: 1}
    has_collation = True
    grammar = kinds.Grammar.SPATIAL
    frame = "binary"
    line = ("BASE64", 0, 0)
    step = kinds.COPY

    def __init__(self, word: str, number: int, ddl_names: str = "") -> None:
        super().__init__(word, ColumnType.GEOMETRY, ddl_names=ddl_names)
        self._number = number
        self.has_name = bool(number)  # type: ignore[misc]

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> kinds.Layout:
        if not 1 <= metadata <= PREFIX:
            raise EventError(f"{where} has lengths of {metadata} bytes")
        return kinds.Layout(column_type, metadata)

    def length_size(self, column: Column) -> int:
        return column.size

    def convert(self, column: Column) -> Convert:
        return bytes

    def declare(self, column: Column, declared: kinds.DeclaredType) -> dict[str, Any]:
        declared.expect(column, column.type == ColumnType.GEOMETRY)
        return {}

    def write(self, declared: kinds.DeclaredType) -> kinds.WrittenType:
        encode = string_encoder(PREFIX, kinds.LENGTH_MAX, BYTES)
        metadata = bytes([PREFIX])
        return kinds.WrittenType(
            ColumnType.GEOMETRY, metadata, encode, collation=BINARY_COLLATION, geometry_type=self._number
        )

    def size_of(self, sql: SqlType) -> int | None:
        return PREFIX

    def derived(self, column: Column, unit: int | None) -> tuple[str, int | None, int | None]:
        number = column.geometry_type or 0
        return (KINDS[number] if number < len(KINDS) else self).word, None, column.scale or None

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        return kinds.bytes_of(value)

    def shown(self, column: Column, sql: SqlType, settings: kinds.TextSettings) -> kinds.Text:
        return bytes

    def result(self, sql: SqlType) -> kinds.ResultType:
        return kinds.ResultType(ColumnType.GEOMETRY, kinds.LENGTH_MAX, 0, ("BINARY", "BLOB"))

    def reading(self, column: Column, frame_type: str) -> kinds.RowReading:
        return kinds.RowReading("RAW_PREFIXED", column.size, 0, "bytes")


GEOMETRY = Geometry("geometry", 0)
KINDS = (
    GEOMETRY,
    Geometry("point", 1),
    Geometry("linestring", 2),
    Geometry("polygon", 3),
    Geometry("multipoint", 4),
    Geometry("multilinestring", 5),
    Geometry("multipolygon", 6),
    Geometry("geometrycollection", 7, ddl_names="geomcollection"),
)
