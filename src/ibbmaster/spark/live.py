"""The place of a stream of a running primary, and the schema made by its statements until then.

A primary does not send again what is before a position: offsets carry the tables.
"""

from collections.abc import Mapping
from dataclasses import replace

from ibbmaster.errors import SourceError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.capture.client import expect_reached, groups_between, logged_position, oldest_position
from ibbmaster.logs.log.group_content import TableFilter
from ibbmaster.logs.log.group_folding import GroupFolding
from ibbmaster.position import NOWHERE, LogPosition
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableKind, TableVersion
from ibbmaster.schema.render import create_table
from ibbmaster.schema.versions import NO_VERSIONS, TableVersions
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.tables.arrow.live import (
    LiveSource,
    Offset,
    TableTexts,
    address,
    decode_offset,
    encode_offset,
    live_range,
    position_of_option,
    read_history,
    tables_of,
)
from ibbmaster.tables.arrow.plan import OF_ROWS, ReadTask, selected_versions, selection_of, tasks_between
from ibbmaster.tables.arrow.read_options import ReadOptions
from ibbmaster.tables.arrow.schema_reading import declared_texts, schema_of_texts
from ibbmaster.tables.arrow.shape import ShapeField, TableFields
from .tracking import Limits, ReadBatch, lag_of, log_oldest, of_version

PRINTED_AS = 110800  # offsets have the SHOW CREATE TABLE of this version
BEHIND = (  # of a primary that ends before the stream's place
    "the stream is at {wanted}, and the primary has logged {has}: it lost its end, lags, or is another one; go on with "
    "the one that has it, or with a new checkpoint"
)


def texts_before(options: ReadOptions, position: GtidPosition) -> TableTexts:
    """The tables that a typed stream must know where it begins, if none are declared."""
    if options.table is None or options.table in options.declarations or not len(position):
        return {}
    try:
        history = read_history(options, live_range(str(oldest_position(address(options))), str(position)))
    except SourceError:
        return {}
    return _texts(options, history, None)


class LiveSchema:
    """The schema after the offset where a stream's run begins; it grows with what the primary sends. Groups are
    numbered from there: `passed` counts them up to another offset."""

    def __init__(self, options: ReadOptions, start: GtidPosition, texts: TableTexts, began: GtidPosition) -> None:
        kept = {name: one for name, one in options.declarations.items() if parse_table_name(name) not in texts}
        self.options = replace(options, declarations=kept)
        told = {name: text for name, text in texts.items() if text is not None}
        self._named = {*texts, *map(parse_table_name, kept)}
        history = SchemaHistory(schema_of_texts({**declared_texts(kept), **told}))
        self._folding = GroupFolding(history, takes_rows=options.table is not None)
        self._position, self._count = start, 0
        self._passed = {str(start): 0}
        self.fold_to(began)
        self._began = self._place(self._count)

    def fold_to(self, end: GtidPosition) -> None:
        if _reaches(self._position, end):
            return
        log_range = live_range(str(self._position), str(end), passed=self._count)
        for group in LiveSource(self.options).groups_in(log_range):
            self._folding.fold(group)
            self._count += 1
        self._position = end
        self._passed[str(end)] = self._count

    def note(self, position: GtidPosition, after: GtidPosition, count: int) -> None:
        """A position is this many groups after a known one."""
        self._passed[str(position)] = self._passed[str(after)] + count

    def passed(self, position: GtidPosition, after: GtidPosition) -> int:
        """Groups from the run's beginning to a position behind a known one."""
        if str(position) not in self._passed:
            log_range = live_range(str(after), str(position))
            self.note(position, after, sum(1 for _ in LiveSource(self.options).groups_in(log_range)))
        return self._passed[str(position)]

    def versions(self) -> TableVersions:
        return selected_versions(self.options, self._folding.history, self._began, goes_on=True)

    def texts(self, position: GtidPosition, after: GtidPosition) -> TableTexts:
        """The tables after a position, as far as statements changed them since the stream began."""
        place = self._place(self.passed(position, after))
        found = _texts(self.options, self._folding.history, place)
        known = self._folding.history.at(place).tables
        gone = (name for name in self._named if name not in found and not isinstance(known.get(name), TableVersion))
        return {**found, **dict.fromkeys(gone)}

    def fields(self, fields: tuple[ShapeField, ...]) -> tuple[ShapeField, ...]:
        """The DataFrame's columns, as this schema knows them. Raises ConfigurationError: they have other names now."""
        if not isinstance(fields, TableFields) or fields.shape.version is None:
            return fields
        versions = self.versions()
        newest = versions.newest(self._began)
        if not isinstance(newest, TableVersion) and newest is versions.newest():
            self._folding.history.take_rows(self._began, "", fields.shape.schema)
            newest = self.versions().newest(self._began)
        return of_version(fields, newest)

    @staticmethod
    def _place(passed: int) -> SchemaPlace:
        return SchemaPlace(LogPosition(NOWHERE.file_no, passed + 1), 0)


def _reaches(position: GtidPosition, end: GtidPosition) -> bool:
    found = {gtid.domain_id: gtid.seq_no for gtid in position.values()}
    return all(found.get(gtid.domain_id, -1) >= gtid.seq_no for gtid in end.values())


def _texts(options: ReadOptions, history: SchemaHistory, place: SchemaPlace | None) -> TableTexts:
    """The tables that a stream may meet, except those still as declared."""
    found: TableTexts = {}
    takes = TableFilter(options.tables).takes
    for name, table in history.at(place).tables.items():
        is_wanted = takes(name) if options.table is None else name[0] == parse_table_name(options.table)[0]
        is_declared = table.since is None and table.full_name in options.declarations
        if not is_wanted or is_declared or table.undefined_because:
            continue
        if isinstance(table, TableVersion) and table.kind is not TableKind.VIEW:
            found[name] = create_table(table, PRINTED_AS)
    return found


class LiveTracker:
    """On the driver; as `tracking.OffsetTracker`."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._primary = address(options)
        self._target: GtidPosition | None = None
        self._reached: ReadBatch | None = None
        self._schema: LiveSchema | None = None

    def close(self) -> None:
        """Nothing is kept open."""

    def initial(self) -> Offset:
        text = self._options.starting_offsets.strip()
        if text.lower() == "earliest":
            oldest = oldest_position(self._primary)
            log_oldest(str(self._primary), oldest)
            return encode_offset(oldest, NOWHERE)
        position = logged_position(self._primary) if text.lower() == "latest" else position_of_option(text)
        return encode_offset(position, NOWHERE, texts_before(self._options, position))

    def logged(self) -> Offset:
        """Not of rows, whose offsets have tables."""
        return encode_offset(logged_position(self._primary), NOWHERE)

    def latest(self, *, now: float) -> Offset:
        """Without the bytes that a primary has still to send."""
        logged = logged_position(self._primary)
        offset = encode_offset(logged, NOWHERE)
        if self._reached is not None:
            offset["lag"] = lag_of(self._reached, logged, now=now)
        return offset

    def _schema_from(self, start: Mapping[str, object]) -> LiveSchema:
        if self._schema is None:
            position = decode_offset(start)
            began = position if self._options.table is None else logged_position(self._primary)
            self._schema = LiveSchema(self._options, position, tables_of(start), began)
        return self._schema

    def _offset(self, start: Mapping[str, object], end: GtidPosition, count: int | None = None) -> Offset:
        if self._options.granularity not in OF_ROWS:
            return encode_offset(end, NOWHERE)
        schema = self._schema_from(start)
        schema.fold_to(end)
        if count is not None:
            schema.note(end, decode_offset(start), count)
        return encode_offset(end, NOWHERE, schema.texts(end, decode_offset(start)))

    def freeze(self) -> None:
        self._target = logged_position(self._primary)

    def next(self, start: Mapping[str, object], limits: Limits) -> Offset:
        """With limits the groups are read to count them. Raises SourceError: the primary cannot be reached, refuses, or
        has logged less than `start`."""
        position = decode_offset(start)
        end = logged_position(self._primary) if self._target is None else self._target
        expect_reached(self._primary, end, position, BEHIND)  # such a dump is empty: the stream would go back
        self._reached = ReadBatch(end, NOWHERE, None)
        if str(position) == str(end):
            return dict(start)  # type: ignore[arg-type]
        if limits.groups_max is None and limits.bytes_max is None:
            return self._offset(start, end)
        gtids = dict(position)
        size = count = timestamp = 0
        for group in groups_between(self._primary, position, end):
            length = len(group.gtid_event) + sum(len(piece) for piece in group.body)
            is_full = limits.groups_max is not None and count >= limits.groups_max
            if count and (is_full or (limits.bytes_max is not None and size >= limits.bytes_max)):
                break
            assert group.gtid is not None
            gtids[group.gtid.domain_id] = group.gtid
            size += length
            count += 1
            timestamp = decode_event_header(group.gtid_event).timestamp
        self._reached = ReadBatch(GtidPosition(gtids.values()), NOWHERE, timestamp)
        return self._offset(start, self._reached.position, count)

    def tasks(
        self, start: Mapping[str, object], end: Mapping[str, object], fields: tuple[ShapeField, ...]
    ) -> list[ReadTask]:
        first, last = decode_offset(start), decode_offset(end)
        options, versions, passed = self._options, NO_VERSIONS, 0
        if options.granularity in OF_ROWS:
            schema = self._schema_from(start)
            schema.fold_to(last)
            schema.passed(last, first)  # the next batch begins there
            options, versions, passed = schema.options, schema.versions(), schema.passed(first, first)
            fields = schema.fields(fields)
        log_range = live_range(str(first), str(last), passed=passed)
        return tasks_between(options, fields, selection_of(options), [log_range], versions)
