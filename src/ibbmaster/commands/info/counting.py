"""Counts the content of a log, group by group; the reference of `ibbmaster.commands.info.fast_counting`."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ibbmaster.errors import EventError
from ibbmaster.logs.log.group_content import MAY_HOLD_DDL, QUERIES, group_events
from ibbmaster.logs.log.large_rows import large_rows
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.format_description import decode_format_description
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.gtid_event import GTID_FLAGS_OFFSET
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET, decode_event_header
from ibbmaster.replication.event.rows.changes import KINDS, rows_of, spans_of
from ibbmaster.replication.event.rows.column import TableSchema
from ibbmaster.replication.event.rows.large import LargeRows
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.replication.event.statement.logged import decode_statement
from ibbmaster.replication.event.table_map import decode_rows_header
from ibbmaster.replication.event.types import EventType
from ibbmaster.rows.walk import walk
from .statistics import GROUP_TABLES_MAX, ChangeSum, GroupSum, LogStatistics

if TYPE_CHECKING:
    from ibbmaster.schema.clause import DdlStatement
    from ibbmaster.sqltext.table_name import TableName

TABLES_KEPT = 10_000  # by the bytes of their TABLE_MAP events
NOT_OF_TABLES = "(no table)"  # DDL of databases, programs and accounts
NOT_UNDERSTOOD = "(not understood)"

Sizes = list[tuple[int | None, int]]  # bytes of each column's values; after None, of the length before one


class TableReading:
    """A table of a TABLE_MAP; `sizes` is None if a column's type is unknown."""

    def __init__(self, event: bytes) -> None:
        self.schema = decode_table_schema(event)
        self.name = self.schema.name
        self.sizes = sizes_of(self.schema)
        self._plans: dict[bytes, Sizes] = {}

    def rows_and_size(self, event: bytes, large: LargeRows) -> tuple[int, int]:
        """Rows, and bytes without compression. Raises EventError."""
        header = decode_rows_header(event)
        assert self.sizes is not None
        if header.column_count != len(self.sizes):
            raise EventError(f"row event of {header.column_count} columns, {self.name} has {len(self.sizes)}")
        data, offset = rows_of(event, header, large)
        plans = [self._plan(header.columns_present)]
        if header.columns_after:
            plans.append(self._plan(header.columns_after))
        if not any(plans) and offset < len(data):
            raise EventError(f"row event of {self.name} without columns, but {len(data) - offset} bytes of rows")
        size = header.rows_offset + len(data) - offset
        count = 0
        while offset < len(data):
            for plan in plans:
                _, offset = spans_of(data, offset, plan)
            count += 1
        return count, size

    def _plan(self, present: bytes) -> Sizes:
        plan = self._plans.get(present)
        if plan is None:
            assert self.sizes is not None
            bits = int.from_bytes(present, "little")
            plan = self._plans[present] = [size for number, size in enumerate(self.sizes) if bits >> number & 1]
        return plan


def sizes_of(schema: TableSchema) -> Sizes | None:
    try:
        kinds = [(kind_of(column), column) for column in schema.columns]
        return [(kind.fixed_size(column), kind.length_size(column)) for kind, column in kinds]
    except ValueError:
        return None


class GroupCounter:
    def __init__(self, statistics: LogStatistics) -> None:
        self.statistics = statistics
        self._large = large_rows()
        self._tables: dict[bytes, TableReading] = {}

    def take(self, group: EventGroup, file_name: Callable[[int], str]) -> None:
        """A group, or a server start. Raises EventError, which names the group, and errors of the file."""
        if group.gtid is None:
            take_start(self.statistics, group)
            return
        sums = _EventSums()
        try:
            for _, event, table in walk(sums.passed(group_events(group)), self._large, sums.by_map(self._table)):
                if table is not None:
                    self._take_rows(event, table)
                elif event[TYPE_OFFSET] in QUERIES and group.gtid_event[GTID_FLAGS_OFFSET] & MAY_HOLD_DDL:
                    take_statement(self.statistics, event)
        except EventError as error:
            place = f"{file_name(group.start.file_no)} offset {group.start.offset}"
            raise EventError(f"group {group.gtid} at {place}: {error}") from None
        for event_type, count in sums.counts.items():
            self.statistics.take_type(event_type, count, sums.sizes[event_type])
        self.statistics.take_group(
            GroupSum(
                size=sum(sums.sizes.values()),
                turn=-self.statistics.groups,
                gtid=group.gtid,
                timestamp=decode_event_header(group.gtid_event).timestamp,
                start=group.start,
                events=sum(sums.counts.values()),
                tables=shown_tables(sums.tables),
            )
        )

    def _table(self, event: bytes) -> TableReading:
        key = event[EVENT_HEADER_SIZE:]
        found = self._tables.get(key)
        if found is None:
            if len(self._tables) >= TABLES_KEPT:
                self._tables.clear()
            found = self._tables[key] = TableReading(event)
            note_table(self.statistics, found.schema, is_counted=found.sizes is not None)
        return found

    def _take_rows(self, event: bytes, table: TableReading) -> None:
        try:
            rows, size = table.rows_and_size(event, self._large)
        except EventError:
            self.statistics.table(table.name).is_counted = False
            return
        self.statistics.take_changes(table.name, ChangeSum(KINDS[EventType(event[TYPE_OFFSET])].value), rows, size)


class _EventSums:
    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.sizes: Counter[int] = Counter()
        self.tables: set[str] = set()

    def passed(self, events: Iterable[bytes]) -> Iterator[bytes]:
        for event in events:
            self.counts[event[TYPE_OFFSET]] += 1
            self.sizes[event[TYPE_OFFSET]] += len(event)
            yield event

    def by_map(self, table_of: Callable[[bytes], TableReading]) -> Callable[[bytes, int], TableReading | None]:
        def find(event: bytes, number: int) -> TableReading | None:
            table = table_of(event)
            self.tables.add(table.name)
            return None if table.sizes is None else table

        return find


def shown_tables(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names)[:GROUP_TABLES_MAX])


def note_table(statistics: LogStatistics, schema: TableSchema, *, is_counted: bool) -> None:
    found = statistics.table(schema.name)
    found.is_counted = found.is_counted and is_counted
    found.has_names = found.has_names and schema.has_names


def take_start(statistics: LogStatistics, group: EventGroup) -> None:
    with contextlib.suppress(EventError):
        statistics.servers[decode_format_description(group.gtid_event).server_version] += 1


def take_statement(statistics: LogStatistics, event: bytes) -> None:
    """Of a group that may hold DDL. Raises EventError: the event is damaged."""
    from ibbmaster.schema.clause import NotUnderstoodError
    from ibbmaster.schema.ddl import parse_ddl

    statement = decode_statement(event)
    if not statement.has_effect:
        return
    try:
        found = parse_ddl(statement.text, statement.database, statement.sql_mode)
    except NotUnderstoodError:
        names = [NOT_UNDERSTOOD]
    else:
        if found is None:
            return
        names = [str(name) for name in tables_of(found)] or [NOT_OF_TABLES]
    for name in dict.fromkeys(names):
        statistics.take_changes(name, ChangeSum.DDL, 1, len(event))


def tables_of(found: DdlStatement) -> Iterator[TableName]:
    from ibbmaster.schema.clause import CreateDatabase, DropTables, NameProgram, RemoveDatabase, RenameTables

    match found:
        case DropTables():
            yield from found.tables
        case RenameTables():
            yield from (old for old, _ in found.pairs)
        case CreateDatabase() | RemoveDatabase() | NameProgram():
            pass
        case _:
            yield found.table
