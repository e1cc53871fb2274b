"""Groups as rows of a DataFrame, from batches of events: one row a group, also if it lies in several batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ibbmaster.arrow.arrays import group_array, place_array
from ibbmaster.arrow.event_batch import IDENTITY, EventBatch
from ibbmaster.arrow.shape import GROUP_FIELDS, ShapeField, arrow_type
from ibbmaster.event.gtid_event import GTID_FLAGS_OFFSET
from ibbmaster.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET
from ibbmaster.event.types import EventType
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import EventColumn, GroupColumn
from ibbmaster.log.group_content import OF_XA, TableFilter, query_texts, table_name, xid_text
from ibbmaster.sqltext.table_name import parse_table_name

if TYPE_CHECKING:
    import pyarrow as pa

NAMES_MAX = 10_000  # of tables, remembered by the bytes of their TABLE_MAP
OF_GROUPS = {field.name for field in GROUP_FIELDS}
QUERIES = (int(EventType.QUERY), int(EventType.QUERY_COMPRESSED))


class GroupColumns:
    """Collects what the columns hold of each group."""

    def __init__(self, fields: tuple[ShapeField, ...], tables: TableFilter, kernels: Kernels) -> None:
        self._fields = fields
        self._tables = tables
        self._kernels = kernels
        self._names: dict[bytes, str] = {}
        self._open: tuple[Any, _Sums] | None = None  # the last group, which may continue in the next batch

    def record_batches(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        """The groups that are complete now; the last one may continue. Raises EventError: an event is damaged; the text
        names the group."""
        sums = _Sums.of(batch)
        self._read_texts(batch, sums)
        groups = batch.groups
        present = np.flatnonzero(sums.events)
        if not len(present):
            return
        groups, sums = groups[present].copy(), sums.taken(present)
        if self._open is not None:
            last, held = self._open
            if (last[0, IDENTITY] == groups[0, IDENTITY]).all():
                held.add(sums)
                sums.replace_first(held)
            else:
                yield from self._batch(last, held)
        self._open = groups[-1:], sums.taken(np.array([len(groups) - 1]))
        if len(groups) > 1:
            yield from self._batch(groups[:-1], sums.taken(np.arange(len(groups) - 1)))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The last group."""
        if self._open is not None:
            yield from self._batch(*self._open)
            self._open = None

    def _read_texts(self, batch: EventBatch, sums: _Sums) -> None:
        """Tables, the first statement and the XA transaction of each group."""
        types = batch.data[batch.events[:, EventColumn.START] + TYPE_OFFSET]
        owners = batch.events[:, EventColumn.GROUP]
        for number in np.flatnonzero(types == EventType.TABLE_MAP).tolist():
            event = batch.event(number)
            key = event[EVENT_HEADER_SIZE:]
            name = self._names.get(key)
            if name is None:
                if len(self._names) >= NAMES_MAX:
                    self._names.clear()
                name = self._names[key] = str(self._told(batch, number, table_name, event))
            sums.texts[owners[number]].tables.setdefault(name)
        for number in np.flatnonzero(np.isin(types, QUERIES)).tolist():
            texts = sums.texts[owners[number]]
            if texts.query is None:
                texts.query, texts.database = self._told(batch, number, query_texts, batch.event(number))
        flags = batch.data[batch.events[:, EventColumn.START] + GTID_FLAGS_OFFSET]
        for number in np.flatnonzero((types == EventType.GTID) & (flags & OF_XA != 0)).tolist():
            sums.texts[owners[number]].xid = self._told(batch, number, xid_text, batch.event(number))

    def _told(self, batch: EventBatch, number: int, read: Any, event: bytes) -> Any:
        with batch.naming_group(number):
            return read(event)

    def _batch(self, groups: Any, sums: _Sums) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if self._tables.patterns:
            wanted = np.array(
                [any(map(self._tables.takes, map(parse_table_name, texts.tables))) for texts in sums.texts], dtype=bool
            )
            groups, sums = groups[wanted], sums.taken(np.flatnonzero(wanted))
            if not len(groups):
                return
        whole = EventBatch(None, groups, None)
        rows = np.arange(len(groups))
        own = {
            "end_file_no": lambda: place_array(groups, rows, GroupColumn.END_FILE_NO),
            "end_offset": lambda: place_array(groups, rows, GroupColumn.END_OFFSET),
            "events": lambda: pa.array(sums.events.astype(np.int32)),
            "bytes": lambda: pa.array(sums.bytes),
            "tables": lambda: pa.array([list(texts.tables) for texts in sums.texts], pa.list_(pa.string())),
            "query": lambda: pa.array([texts.query for texts in sums.texts], pa.string()),
            "database": lambda: pa.array([texts.database for texts in sums.texts], pa.string()),
            "xid": lambda: pa.array([texts.xid for texts in sums.texts], pa.string()),
        }
        arrays = [
            group_array(field.name, whole, rows, self._kernels) if field.name in OF_GROUPS else own[field.name]()
            for field in self._fields
        ]
        schema = pa.schema([pa.field(field.name, arrow_type(field.type)) for field in self._fields])
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass(slots=True)
class _Texts:
    """What a group says in words."""

    tables: dict[str, None] = field(default_factory=dict)  # a set in order
    query: str | None = None
    database: str | None = None
    xid: str | None = None


class _Sums:
    """What the events of each group of a batch come to."""

    def __init__(self, events: Any, size: Any, texts: list[_Texts]) -> None:
        self.events = events
        self.bytes = size
        self.texts = texts

    @classmethod
    def of(cls, batch: EventBatch) -> _Sums:
        count = len(batch.groups)
        owners = batch.events[:, EventColumn.GROUP]
        sizes = np.zeros(count, dtype=np.int64)
        np.add.at(sizes, owners, batch.events[:, EventColumn.SIZE])
        return cls(np.bincount(owners, minlength=count), sizes, [_Texts() for _ in range(count)])

    def taken(self, places: Any) -> _Sums:
        """Those of some groups."""
        return _Sums(self.events[places], self.bytes[places], [self.texts[number] for number in places.tolist()])

    def add(self, more: _Sums) -> None:
        """Add the first group of `more` to the only one here."""
        self.events = self.events + more.events[:1]
        self.bytes = self.bytes + more.bytes[:1]
        texts, others = self.texts[0], more.texts[0]
        texts.tables |= others.tables
        if texts.query is None:
            texts.query, texts.database = others.query, others.database

    def replace_first(self, one: _Sums) -> None:
        self.events[0], self.bytes[0], self.texts[0] = one.events[0], one.bytes[0], one.texts[0]
