"""The events of one group in order, with joined fragments and the table of each row event."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ibbmaster.errors import EventError
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET
from ibbmaster.replication.event.rows.large import LargeRows
from ibbmaster.replication.event.rows.partial import PartialRows
from ibbmaster.replication.event.table_map import ROW_EVENT_TYPES, TABLE_ID_SIZE
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.codec.buffer import Buffer

TABLE_ID = slice(EVENT_HEADER_SIZE, EVENT_HEADER_SIZE + TABLE_ID_SIZE)

Table = TypeVar("Table")


def walk(
    events: Iterable[bytes], large: LargeRows, table_of: Callable[[bytes, int], Table | None]
) -> Iterator[tuple[int, bytes, Table | None]]:
    """Number (0 is the GTID event), bytes and table of each event except TABLE_MAP; other events than rows have None.
    `table_of` makes a table of a TABLE_MAP event and its number, or None, which skips its rows. Raises EventError: a
    row event without a TABLE_MAP, or with incomplete fragments."""
    tables: dict[bytes, Table | None] = {}
    partial = PartialRows(large)
    for number, part in enumerate(events):
        event = partial.whole_event(part)
        if event is None:
            continue
        if event[TYPE_OFFSET] == EventType.TABLE_MAP:
            tables[event[TABLE_ID]] = table_of(event, number)
        elif event[TYPE_OFFSET] in ROW_EVENT_TYPES:
            if event[TABLE_ID] not in tables:
                raise unmapped(event)
            table = tables[event[TABLE_ID]]
            if table is not None:
                yield number, event, table
        else:
            yield number, event, None
    partial.finish()


def unmapped(event: Buffer) -> EventError:
    table_id = int.from_bytes(event[TABLE_ID], "little")
    return EventError(f"row event of table {table_id}, which no TABLE_MAP of its group names")
