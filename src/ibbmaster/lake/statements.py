"""The effects of statements on tables, which XA transactions took effect, and changes in that order."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ibbmaster.errors import ClassicFormatError, EventError, FormatError
from ibbmaster.kernel.fields import EventColumn, GroupColumn
from ibbmaster.logs.log.group_content import OF_XA, group_events, xid_text
from ibbmaster.replication.event.gtid_event import GTID_FLAGS_OFFSET, GtidFlag
from ibbmaster.replication.event.header import TYPE_OFFSET, decode_event_header
from ibbmaster.replication.event.statement.logged import STATEMENT_TYPES, decode_statement
from ibbmaster.replication.event.statement.savepoint import savepoint_step
from ibbmaster.replication.event.table_map import ROW_EVENT_TYPES
from ibbmaster.replication.event.types import EventType
from ibbmaster.rows.effects import LOST, Effect, WrittenTables, effects_of
from ibbmaster.schema.ddl import statement_cursor
from ibbmaster.tables.arrow.collecting import event_batches
from ibbmaster.tables.arrow.event_batch import in_group, wanted_groups
from ibbmaster.tables.arrow.plan import ReadTask, find_fields, load_kernels, open_task, plan_tasks
from ibbmaster.tables.arrow.read_options import Granularity, ReadOptions
from ibbmaster.tables.arrow.reading import read_task
from ibbmaster.tables.arrow.shape import arrow_schema
from ibbmaster.tables.arrow.staging import expect_log

ROWS = frozenset(map(int, (*ROW_EVENT_TYPES, EventType.PARTIAL_ROW_DATA)))
SECOND_US = 1_000_000
LOGGED_TYPES = frozenset(map(int, (*STATEMENT_TYPES, *LOST)))


class Logged(NamedTuple):
    """What a group says beyond rows; compares in the order of the log."""

    file_no: int
    file_offset: int  # of the group
    event_no: int
    gtid: str
    timestamp: int
    has_rows_before: bool = False
    effects: tuple[Effect, ...] = ()
    xid: str | None = None  # of the XA transaction that it prepares, or ends, see `verb`
    verb: str = ""  # XA PREPARE, XA COMMIT, XA ROLLBACK; ROLLBACK of rows before it

    @property
    def place(self) -> tuple[int, int]:
        return self.file_no, self.file_offset


def logged_statements(options: ReadOptions) -> list[Logged]:
    options = replace(options, granularity=Granularity.GROUPS, table=None, tables=(), columns=())
    return sorted(one for task in plan_tasks(options, find_fields(options)) for one in statements_of(task))


def statements_of(task: ReadTask) -> list[Logged]:
    """Raises EventError: a statement is damaged; it names the group; FormatError: a file is damaged; StoreError: the
    log is not there."""
    expect_log(task.options, task.log_range, is_strict=True)
    kernels = load_kernels(task.options)
    with closing(open_task(task)) as source:
        found = _Found()
        if kernels is None:
            for group in source.groups_in(task.log_range):
                timestamp = decode_event_header(group.gtid_event).timestamp
                if group.gtid is None or not task.selection.takes(group.gtid, group.start, timestamp):
                    continue
                try:
                    has_rows = False
                    for number, event in enumerate(group_events(group)):
                        head = (*group.start, number, str(group.gtid), timestamp)
                        has_rows |= event[TYPE_OFFSET] in ROWS
                        found.take(head, event, has_rows)
                except (EventError, FormatError, ClassicFormatError) as error:
                    raise in_group(error, group, source.file_name) from error
        else:
            found.take_batches(event_batches(source, task.log_range, kernels, is_strict=task.options.is_strict), task)
    return found.finish()


class _Found:
    def __init__(self) -> None:
        self.logged: list[Logged] = []
        self._told: dict[Effect, Logged | None] = {}  # changes since anything else; the last ones again
        self._xid: str | None = None  # of the last XA group

    def take(self, head: tuple[int, int, int, str, int], event: bytes, has_rows: bool) -> None:
        """`head` has the first five fields of the event's `Logged`; it `has_rows` if rows precede it."""
        event_type = event[TYPE_OFFSET]
        if event_type == EventType.GTID:
            self._xid = xid_text(event)
            if self._xid is not None and event[GTID_FLAGS_OFFSET] & GtidFlag.PREPARED_XA:
                self.logged.append(Logged(*head, xid=self._xid, verb="XA PREPARE"))
        elif event_type in STATEMENT_TYPES:
            statement = decode_statement(event)
            words = statement.text[:40].upper().split()
            if words[:2] in (["XA", "COMMIT"], ["XA", "ROLLBACK"]):
                self.logged.append(Logged(*head, xid=self._xid, verb=" ".join(words[:2])))
                return
            cursor = statement_cursor(statement.text, statement.sql_mode, statement.server_version)
            step = savepoint_step(cursor)
            if has_rows and step is not None and step.is_rollback:
                self.logged.append(Logged(*head, has_rows, verb="ROLLBACK"))
            effects = effects_of(statement, cursor)
            if effects:
                self._log(Logged(*head, has_rows, effects))
        elif (lost := LOST.get(event_type)) is not None:
            self.logged.append(Logged(*head, has_rows, (lost,)))

    def _log(self, one: Logged) -> None:
        """Keep the first and the last of equal changes with nothing else between them: there may be millions."""
        if not isinstance(one.effects[0], WrittenTables):
            self.finish()
        elif one.effects[0] in self._told:
            self._told[one.effects[0]] = one
            return
        else:
            self._told[one.effects[0]] = None
        self.logged.append(one)

    def finish(self) -> list[Logged]:
        self.logged += [one for one in self._told.values() if one is not None]
        self._told.clear()
        return self.logged

    def take_batches(self, batches: Iterable[Any], task: ReadTask) -> None:
        """As `take`, of many events at once."""
        last: tuple[int, ...] = ()  # the last batch's last group
        had_rows = False
        for batch in batches:
            wanted = wanted_groups(batch.groups, task.selection)
            types = batch.data[batch.events[:, EventColumn.START] + TYPE_OFFSET]
            owners = batch.events[:, EventColumn.GROUP]
            row_events = np.flatnonzero(np.isin(types, list(ROWS)))
            flags = batch.data[batch.events[:, EventColumn.START] + GTID_FLAGS_OFFSET]
            is_logged = np.isin(types, list(LOGGED_TYPES)) | ((types == EventType.GTID) & (flags & OF_XA != 0))
            if not len(batch.groups):
                continue
            ends_with = len(batch.groups) - 1
            goes_on = batch.identity(0) == last
            for number in np.flatnonzero(is_logged & wanted[owners]).tolist():
                group = int(owners[number])
                row = batch.groups[group]
                head = (
                    int(row[GroupColumn.FILE_NO]),
                    int(row[GroupColumn.FILE_OFFSET]),
                    int(batch.events[number, EventColumn.NUMBER]),
                    batch.gtid(group),
                    int(row[GroupColumn.TIMESTAMP]),
                )
                first_row = int(np.searchsorted(row_events, np.searchsorted(owners, group)))
                has_rows = first_row < len(row_events) and row_events[first_row] < number
                with batch.naming_group(number):
                    self.take(head, batch.event(number), bool(has_rows) or (not group and goes_on and had_rows))
            ends_with_rows = bool(len(row_events)) and int(owners[row_events[-1]]) == ends_with
            had_rows = ends_with_rows or (not ends_with and goes_on and had_rows)
            last = batch.identity(-1)


def completions(statements: Iterable[Logged]) -> Iterator[tuple[tuple[int, int], Logged | None]]:
    """The places of prepared XA transactions, and the statements that committed them, if any."""
    prepared: dict[str, tuple[int, int]] = {}
    found: dict[tuple[int, int], Logged | None] = {}
    for one in statements:
        if one.xid is None:
            continue
        if one.verb == "XA PREPARE":
            prepared[one.xid] = one.place
            found[one.place] = None
        elif one.xid in prepared:
            place = prepared.pop(one.xid)
            if one.verb == "XA COMMIT":
                found[place] = one
    yield from found.items()


def read_table(options: ReadOptions) -> pa.Table:
    fields = find_fields(options)
    batches = [batch for task in plan_tasks(options, fields) for batch in read_task(task)]
    return pa.Table.from_batches(batches, schema=arrow_schema(fields))


def effective(changes: pa.Table, statements: Iterable[Logged]) -> pa.Table:
    """Changes that took effect, each at the group that caused it: those of XA transactions later."""
    prepared = dict(completions(statements))
    if not prepared:
        return changes
    places = zip(changes["_file_no"].to_pylist(), changes["_offset"].to_pylist(), strict=True)
    ends = [prepared.get(place, place) for place in places]
    changes = changes.filter(pa.array([end is not None for end in ends], pa.bool_()))
    moved = [end if isinstance(end, Logged) else None for end in ends if end is not None]
    values: dict[str, list[int | str | None]] = {
        "_file_no": [one and one.file_no for one in moved],
        "_offset": [one and one.file_offset for one in moved],
        "_commit_ts": [one and one.timestamp * SECOND_US for one in moved],
        "_gtid": [one and one.gtid for one in moved],
    }
    for name, column in values.items():
        if name not in changes.column_names:
            continue
        old = changes[name].combine_chunks()
        new = pa.array(column, old.type)
        changes = changes.set_column(changes.column_names.index(name), name, new.fill_null(old))
    return changes.sort_by([(name, "ascending") for name in ("_file_no", "_offset", "_change_no")])


def after(changes: pa.Table, place: tuple[int, int]) -> pa.Table:
    kept = are_after(changes, place)
    return changes if kept.all() else changes.filter(pa.array(kept))


def are_after(changes: pa.Table, place: tuple[int, int]) -> Any:
    files, offsets = changes["_file_no"].to_numpy(), changes["_offset"].to_numpy()
    return (files > place[0]) | ((files == place[0]) & (offsets > place[1]))
