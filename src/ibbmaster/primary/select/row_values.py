"""Rows of an answer out of stored images, as the wire has them: the reference of `fast_rows`.

VIRTUAL columns over a TIMESTAMP: a log has the values that the writer saw, a server computes them in the time zone of
each reader. The common forms are computed here; others are refused.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from ibbmaster.replication.event.column_types.floating import Floating
from ibbmaster.replication.event.column_types.kind import TextSettings
from ibbmaster.replication.event.column_types.registry import BY_NAME, kind_of
from ibbmaster.replication.wire.binary_row import ROW_BIT, ROW_MARK, encode_binary_value
from ibbmaster.replication.wire.packet import frame_packets
from ibbmaster.replication.wire.response import ColumnDefinition
from ibbmaster.schema.model import TableColumn, TableVersion
from ibbmaster.sqltext.cursor import END
from ibbmaster.sqltext.token import Token, TokenKind, tokens, words
from ibbmaster.storage.codec import lenenc
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.tables.fold.kept_rows import HEAD
from ibbmaster.tables.fold.row_conversion import first_value
from ibbmaster.tables.fold.stored import StoredColumn, StoredLayout, StoredLayouts

Change = Callable[[bytes], bytes]
"""Makes the text of a VIRTUAL column of that of a TIMESTAMP in the session's time zone."""

#: Functions whose values depend on the session or the time, whatever their arguments.
OF_THE_SESSION = words(
    "NOW CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP SYSDATE CURDATE CURRENT_DATE CURTIME CURRENT_TIME UTC_DATE "
    "UTC_TIME UTC_TIMESTAMP FROM_UNIXTIME USER CURRENT_USER SESSION_USER SYSTEM_USER CURRENT_ROLE DATABASE SCHEMA "
    "CONNECTION_ID RAND UUID UUID_SHORT SYS_GUID"
)
_WITHOUT_BRACKETS = words("CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP CURRENT_DATE CURRENT_TIME CURRENT_USER")
_PARTS = {  # of a moment, and where they are in its text
    "YEAR": slice(0, 4),
    "MONTH": slice(5, 7),
    "DAY": slice(8, 10),
    "DAYOFMONTH": slice(8, 10),
    "HOUR": slice(11, 13),
    "MINUTE": slice(14, 16),
    "SECOND": slice(17, 19),
}
_DATE = slice(0, 10)


@dataclass(frozen=True, slots=True)
class LocalColumn:
    """None: it is not known here."""

    source: TableColumn | None = None
    change: Change | None = None


def local_columns(table: TableVersion) -> Mapping[int, LocalColumn]:
    """The VIRTUAL columns whose values each reader sees otherwise, by their ids."""
    names = {column.name.lower(): column for column in table.columns}
    found: dict[int, LocalColumn] = {}
    computed = [column for column in table.columns if column.expression is not None and not column.is_stored]
    for _ in computed:  # one may be over any other
        before = len(found)
        for column in computed:
            parts = list(tokens(column.expression or ""))
            if column.id not in found and _is_local(parts, names, found):
                found[column.id] = _read(parts, column, names)
        if len(found) == before:
            break
    return found


def _is_local(parts: Sequence[Token], names: Mapping[str, TableColumn], found: Mapping[int, object]) -> bool:
    for number, (part, following) in enumerate(zip(parts, [*parts[1:], END], strict=True)):
        if part.kind is TokenKind.WORD and part.text.upper() in OF_THE_SESSION:
            if following.is_sign("(") or part.text.upper() in _WITHOUT_BRACKETS:
                return True
        elif part.kind in (TokenKind.WORD, TokenKind.NAME) and (column := names.get(part.text.lower())) is not None:
            if column.id in found:
                return True
            is_same_everywhere = number > 1 and parts[number - 2].is_word("UNIX_TIMESTAMP") and following.is_sign(")")
            if BY_NAME[column.type.word].is_zoned and not is_same_everywhere:
                return True
    return False


def _read(parts: list[Token], target: TableColumn, names: Mapping[str, TableColumn]) -> LocalColumn:
    while len(parts) > 1 and parts[0].is_sign("(") and parts[-1].is_sign(")"):
        parts = parts[1:-1]
    function = ""
    if len(parts) == 4 and parts[1].is_sign("(") and parts[3].is_sign(")"):
        function, parts = parts[0].text.upper(), parts[2:3]
    source = names.get(parts[0].text.lower()) if len(parts) == 1 else None
    if source is None or not BY_NAME[source.type.word].is_zoned:
        return LocalColumn()
    change = _change(function, source, target)
    return LocalColumn() if change is None else LocalColumn(source, change)


def _change(function: str, source: TableColumn, target: TableColumn) -> Change | None:
    kind = BY_NAME[target.type.word]
    if not function and kind.has_day and kind.is_clock:
        return bytes if (source.type.scale or 0) == (target.type.scale or 0) else None
    if function in ("", "DATE") and kind.has_day and not kind.is_clock:
        return lambda text: text[_DATE]
    if function in _PARTS and kind.is_integer and not target.type.is_zerofill:
        place = _PARTS[function]
        return lambda text: b"%d" % int(text[place])
    return None


BLOCK_SIZE = 1 << 20  # bytes of one block, about
NULL = bytes((lenenc.NULL,))
Encode = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of an answer: of the table, or the same text in every row (None: NULL). `change` computes it from the
    text of a column."""

    definition: ColumnDefinition
    column: TableColumn | None = None
    own: StoredColumn | None = None  # how the version of the table itself would store it
    text: bytes | None = None
    change: Change | None = None


class RowValues:
    """Encodes rows for the text protocol or the binary one. `used`: the layouts that rows may have."""

    def __init__(
        self,
        columns: Sequence[ShownColumn],
        layouts: StoredLayouts,
        shown: TextSettings,
        *,
        is_binary: bool,
        used: Collection[int] = (),
    ) -> None:
        self.used_layouts = [layouts[number] for number in sorted(used)]
        self.columns = columns
        self.shown = shown
        self.is_binary = is_binary
        self.layouts = layouts
        self._plans: dict[int, list[tuple[int | None, Encode | None, bytes | None]]] = {}

    def payload(self, layout_no: int, image: bytes) -> bytes:
        """Raises ValueError: a value cannot be shown."""
        layout = self.layouts[layout_no]
        plan = self._plans.get(layout_no)
        if plan is None:
            plan = self._plans[layout_no] = [self.step(column, layout) for column in self.columns]
        spans, _ = layout.spans(image)
        values: list[bytes | None] = []
        for place, encode, constant in plan:
            span = None if place is None else spans[place]
            if place is None or encode is None:
                values.append(constant)
            else:
                values.append(None if span is None else encode(image[span[0] : span[1]]))
        return (
            _binary_row(values) if self.is_binary else b"".join([NULL if value is None else value for value in values])
        )

    def step(self, column: ShownColumn, layout: StoredLayout) -> tuple[int | None, Encode | None, bytes | None]:
        """Where a column's value is in an image and how it is encoded; or what it is in each row."""
        if column.column is None or column.own is None:
            text = column.text
            return None, None, None if text is None else self._encoded(column, text)
        place = layout.places.get(column.column.id)
        if place is None:
            value = first_value(column.column, column.own)
            return None, None, None if value is None else self.encode(column, column.own)(value)
        return place, self.encode(column, layout.columns[place]), None

    def encode(self, column: ShownColumn, stored: StoredColumn) -> Encode:
        assert column.column is not None
        own = kind_of(stored.column)
        text = own.shown(stored.column, column.column.type, self.shown)
        kind = column.definition.column_type
        if (change := column.change) is not None:
            return lambda data: self._encoded(column, change(text(data)))
        if not self.is_binary:
            return lambda data: lenenc.encode_bytes(text(data))
        if isinstance(own, Floating) and own.word == column.column.type.word:
            return bytes
        return lambda data: encode_binary_value(kind, text(data))

    def _encoded(self, column: ShownColumn, text: bytes) -> bytes:
        if self.is_binary:
            return encode_binary_value(column.definition.column_type, text)
        return lenenc.encode_bytes(text)


def _binary_row(values: Sequence[bytes | None]) -> bytes:
    nulls = bytearray((len(values) + ROW_BIT + 7) // 8)
    for number, value in enumerate(values, ROW_BIT):
        if value is None:
            nulls[number // 8] |= 1 << number % 8
    return ROW_MARK + bytes(nulls) + b"".join([value for value in values if value is not None])


class Writer:
    def __init__(self, data: Buffer, places: array[int], values: RowValues) -> None:
        self._data = data
        self._places = places
        self._values = values
        self._next = 0

    def write(self, sequence: int) -> tuple[Buffer, int] | None:
        """Packets of more rows, and the number behind them; None at the end. Raises ValueError: a value cannot be
        shown."""
        out = bytearray()
        while self._next < len(self._places) and len(out) < BLOCK_SIZE:
            packets, sequence = frame_packets(self.payload(), sequence)
            out += packets
        return (out, sequence) if out else None

    def payload(self) -> bytes:
        place = self._places[self._next]
        size, layout_no = HEAD.unpack_from(self._data, place)
        start = place + HEAD.size
        self._next += 1
        return self._values.payload(layout_no, bytes(self._data[start : start + size]))
