"""Row events as changes of rows. Layout: protocol/event/rows.md."""

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ibbmaster.errors import EventError, UndecodableError
from ibbmaster.storage.codec.buffer import Buffer
from ..column_types.registry import value_reader
from ..header import TYPE_OFFSET
from ..query import unpack, unpacked_size
from ..table_map import ROW_EVENT_TYPES, RowsHeader, decode_rows_header
from ..types import EventType
from .column import Column, TableSchema
from .large import ALL_ROWS, LargeRows
from .value import BadValueError, Reader, Value

Span = tuple[int, int] | None  # where the bytes of a value are, without their length; None: it is NULL


class ChangeKind(enum.Enum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class Absent(enum.Enum):
    """Of a column that an image lacks (MINIMAL, NOBLOB, FULL_NODUP)."""

    ABSENT = "absent"


class RawValue(bytes):
    """An unreadable value, as stored; `problem` says why."""

    problem: str

    @classmethod
    def of(cls, error: BadValueError) -> "RawValue":
        made = cls(error.data)
        made.problem = str(error)
        return made


ABSENT: Final = Absent.ABSENT
Image = tuple[Value, ...]  # a value a column: None is NULL

_VERBS = {"WRITE": ChangeKind.INSERT, "UPDATE": ChangeKind.UPDATE, "DELETE": ChangeKind.DELETE}
KINDS = {EventType(one): _VERBS[EventType(one).name.partition("_")[0]] for one in ROW_EVENT_TYPES}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """Inserts have no `before`, deletes no `after`."""

    kind: ChangeKind
    before: Image | None
    after: Image | None


def rows_of(event: Buffer, header: RowsHeader, large: LargeRows = ALL_ROWS) -> tuple[bytes, int]:
    """The rows of an event, and the offset of the first. Uncompressed ones are not copied. Raises EventError: they do
    not unpack, or are too many."""
    if not header.is_compressed:
        return bytes(event) if isinstance(event, (bytearray, memoryview)) else event, header.rows_offset
    packed = memoryview(event)[header.rows_offset :]
    size, _ = unpacked_size(packed)
    large.check(header.rows_offset + size)
    return large.joined(unpack(packed), size), 0


def spans_of(data: bytes, offset: int, sizes: Sequence[tuple[int | None, int]]) -> tuple[list[Span], int]:
    """Where each value of an image lies, and the offset behind it, by the sizes of columns: fixed, or of the length in
    front of it. Raises EventError: the image ends too early."""
    start = offset
    offset += (len(sizes) + 7) // 8
    nulls = int.from_bytes(data[start:offset], "little")
    spans: list[Span] = []
    for fixed, prefix in sizes:
        if nulls & 1:
            spans.append(None)
        else:
            if fixed is None:
                end = offset + prefix
                fixed = int.from_bytes(data[offset:end], "little")
                offset = end
            spans.append((offset, offset + fixed))
            offset += fixed
        nulls >>= 1
    if offset > len(data):
        raise EventError(f"a row of {offset - start} bytes, of which {len(data) - start} are there")
    return spans, offset


class RowDecoder:
    """Reads the row events of one table and TABLE_MAP."""

    def __init__(
        self,
        schema: TableSchema,
        *,
        keeps_bytes: bool = False,
        reader_of: Callable[[Column], Reader] = value_reader,
        large: LargeRows = ALL_ROWS,
    ) -> None:
        self.stored = schema.columns  # those in row events
        self.schema = schema.shown  # the table with the columns of images, in this order
        self._shown_count = len(self.schema.columns)
        self._large = large
        self._reader_of = reader_of
        self._keeps_bytes = keeps_bytes  # of an unreadable value, instead of an error
        self._readers: list[Reader | None] = [None] * len(self.stored)
        self._plans: dict[bytes, list[tuple[int, Reader]]] = {}

    def changes(self, event: Buffer) -> Iterator[RowChange]:
        """The changes in a whole row event without checksum. Raises EventError: another type or table, or it ends
        inside a row; UndecodableError: an unreadable value, with table, column and type."""
        header = decode_rows_header(event)
        if header.table_id != self.schema.table_id:
            raise EventError(f"row event of table {header.table_id}, expected {self.schema.table_id}")
        self.expect_columns(header)
        kind = KINDS[EventType(event[TYPE_OFFSET])]
        data, offset = rows_of(event, header, self._large)
        return self._read(kind, header, data, offset)

    def expect_columns(self, header: RowsHeader) -> None:
        """Raises EventError: another number of columns."""
        if header.column_count != len(self.stored):
            found, columns = header.column_count, len(self.stored)
            raise EventError(f"row event of {found} columns, {self.schema.name} has {columns}")

    def _read(self, kind: ChangeKind, header: RowsHeader, data: bytes, offset: int) -> Iterator[RowChange]:
        first = self._plan(header.columns_present)
        second = self._plan(header.columns_after) if kind is ChangeKind.UPDATE else []
        end = len(data)
        if not first and not second and offset < end:
            raise EventError(f"row event of {self.schema.name} without columns, but {end - offset} bytes of rows")
        while offset < end:
            image, offset = self._image(first, data, offset)
            if kind is ChangeKind.INSERT:
                yield RowChange(kind=kind, before=None, after=image)
            elif kind is ChangeKind.DELETE:
                yield RowChange(kind=kind, before=image, after=None)
            else:
                after, offset = self._image(second, data, offset)
                yield RowChange(kind=kind, before=image, after=after)

    def _image(self, plan: list[tuple[int, Reader]], data: bytes, offset: int) -> tuple[Image, int]:
        values: list[Value] = [ABSENT] * len(self.stored)
        start = offset
        offset += (len(plan) + 7) // 8
        if offset > len(data):
            raise EventError(f"row event of {self.schema.name} ends inside the NULL bits of a row")
        nulls = int.from_bytes(data[start:offset], "little")
        for number, read in plan:
            try:
                if nulls & 1:
                    values[number] = None
                else:
                    values[number], offset = read(data, offset)
            except BadValueError as error:
                if not self._keeps_bytes:
                    raise self._undecodable(self.stored[number], str(error)) from None
                values[number], offset = RawValue.of(error), error.end
            except (ValueError, OverflowError) as error:
                raise self._undecodable(self.stored[number], str(error)) from None
            nulls >>= 1
        del values[self._shown_count :]
        return tuple(values), offset

    def _plan(self, present: bytes) -> list[tuple[int, Reader]]:
        plan = self._plans.get(present)
        if plan is None:
            bits = int.from_bytes(present, "little")
            numbers = [number for number in range(len(self.stored)) if bits >> number & 1]
            plan = self._plans[present] = [(number, self._reader(number)) for number in numbers]
        return plan

    def _reader(self, number: int) -> Reader:
        reader = self._readers[number]
        if reader is None:
            column = self.stored[number]
            reader_of = value_reader if column.is_internal else self._reader_of
            try:
                reader = self._readers[number] = reader_of(column)
            except ValueError as error:
                raise self._undecodable(column, str(error)) from None
        return reader

    def _undecodable(self, column: Column, problem: str) -> UndecodableError:
        return UndecodableError(self.schema.name, column.name, column.type_name, problem)
