"""The progress of a stream, and the end of its next batch."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ibbmaster.errors import ConfigurationError, PositionError, PositionPurgedError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.classic.engine import ClassicRange
from ibbmaster.logs.log.directory import damage_handler
from ibbmaster.logs.log.locating import ReadStart, resume
from ibbmaster.logs.log.log_range import WHOLE_FILE, LogRange
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.rows.shape import SchemaMode
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.schema.versions import NO_VERSIONS, TableState, TableVersions
from ibbmaster.storage.ibb.file_name import parse_file_name
from ibbmaster.tables.arrow.live import Offset, decode_offset, encode_offset, position_of_option
from ibbmaster.tables.arrow.plan import (
    OF_ROWS,
    ReadTask,
    logged_schema,
    needs_rows,
    open_log,
    readable_history_of,
    selected_versions,
    selection_of,
    tasks_between,
)
from ibbmaster.tables.arrow.read_options import ReadOptions
from ibbmaster.tables.arrow.shape import ShapeField, TableFields

log = logging.getLogger(__name__)


PAIRS_MAX = 3  # tries to read end and state together
AFTER_PURGE = (
    "what comes next for this stream is gone from here: let it go on with a log that has it, or with "
    "failOnDataLoss=false from the oldest file there is, or begin anew with another checkpoint"
)


class Limits(NamedTuple):
    bytes_max: int | None = None  # of the log; out-of-band data count where they lie
    groups_max: int | None = None
    files_max: int | None = None


class OffsetTracker:
    """The place of a stream, on the driver: keeps that of each offset given out, and finds that of others."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._on_fault = damage_handler(is_strict=options.is_strict)
        self._target: tuple[LogPosition, GtidState] | None = None
        self._reached: ReadBatch | None = None
        self._open()

    def _open(self) -> None:
        options = self._options
        self._log = open_log(options)
        self._resets = self._log.start_of_file().resets
        self._points: dict[str, ReadStart] = {}
        self._boundaries: dict[
            LogPosition, int
        ] = {}  # of traditional files: where a group begins, at a point or before
        self._counted = self._log.with_left_out  # a batch also ends after a group that leaves nothing
        self._schema = logged_schema(options, self._log.with_past)
        self._began = SchemaPlace(self._log.end(), 0)  # a name means the table it means here

    def close(self) -> None:
        self._log.close()

    def initial(self) -> Offset:
        """The first offset, by option `startingOffsets`. Raises ConfigurationError: it is neither earliest nor latest
        nor a position; PositionError: the position is not in the log."""
        text = self._options.starting_offsets.strip()
        if text.lower() == "earliest":
            position = self._log.start_of_file().state.position()
            log_oldest(self._options.path, position)
            return self._give(position, ReadStart(self._first_point(), {}))
        if text.lower() == "latest":
            return self.logged()
        position = position_of_option(text)
        return self._give(position, self._find(position))

    def logged(self) -> Offset:
        end, state = self._logged()
        return self._give(state.position(), ReadStart(end, {}))

    def latest(self, *, now: float) -> Offset:
        """With the lag of the last batch."""
        state, end = self._log.state(), self._log.end()
        offset = self._encoded(state.position(), end)
        if self._reached is not None:
            size = self._distance(self._reached.point, end)
            offset["lag"] = lag_of(self._reached, state.position(), now=now, size=size)
        return offset

    def freeze(self) -> None:
        self._target = self._logged()

    def next(self, start: Mapping[str, object], limits: Limits) -> Offset:
        """The end of the batch that begins at `start`; `start` if nothing is new. Raises PositionPurgedError: the log
        has lost what the stream needs next; FormatError, ClassicFormatError: the log is damaged there."""
        since = self.point(start)
        begin, position = since.begin, decode_offset(start)
        end, state = self._target or self._logged()
        ranges = self._ranges(begin, end, size=WHOLE_FILE)
        gtids = dict(position)
        if self._takes_all(ranges, limits):
            reached = GtidPosition((gtids | dict(state.position())).values())
            if str(reached) != str(position):
                self._reached = ReadBatch(reached, end, None)
                return self._give(reached, since._replace(begin=end))
            ranges = []
        last: EventGroup | None = None
        point, count = begin, 0
        for log_range in ranges:
            if limits.files_max is not None and count and log_range.file_no - begin.file_no >= limits.files_max:
                break
            if isinstance(log_range, ClassicRange) and log_range.file_no != begin.file_no:
                self._check_continued(log_range, GtidPosition(gtids.values()))
            for group in self._counted.groups_in(log_range, on_fault=self._on_fault):
                if group.gtid is None or not since.lacks(group) or group.start >= end:
                    continue
                if count and self._is_enough(begin, group.start, count, limits):
                    return self._reach(start, GtidPosition(gtids.values()), since._replace(begin=point), last)
                gtids[group.gtid.domain_id] = group.gtid
                last = group
                count += 1
                point = group.start._replace(offset=group.start.offset + 1)
        return self._reach(start, GtidPosition(gtids.values()), since._replace(begin=point), last)

    def _takes_all(self, ranges: Sequence[LogRange], limits: Limits) -> bool:
        """Whether a batch has all there is, and its readers check that: then nobody looks at groups before."""
        is_plain = self._on_fault is None and not self._options.stages
        return is_plain and limits == Limits() and not any(isinstance(one, ClassicRange) for one in ranges)

    def _reach(
        self, start: Mapping[str, object], position: GtidPosition, end: ReadStart, last: EventGroup | None
    ) -> Offset:
        if last is None:
            self._reached = ReadBatch(position, end.begin, None)
            return dict(start)  # type: ignore[arg-type]
        self._reached = ReadBatch(position, end.begin, decode_event_header(last.gtid_event).timestamp)
        self._boundaries = {end.begin: last.start.offset}
        return self._give(position, end)

    def _check_continued(self, log_range: ClassicRange, position: GtidPosition) -> None:
        """A traditional file's head has the position before it. Raises PositionError: groups are missing in front of
        it."""
        if self._options.stages or self._on_fault is not None:
            return
        head = self._log.start_of_file(log_range.file_no).state
        if missing := head.domains_beyond(position):
            logged = ", ".join(str(head.latest(domain)) for domain in missing)
            raise PositionError(
                f"{log_range.file_name} begins after {logged}, and the files before it end at [{position}]: groups are "
                "missing between them; option failOnDataLoss=false goes on without"
            )

    def point(self, offset: Mapping[str, object]) -> ReadStart:
        self._look()
        position = decode_offset(offset)
        found = self._points.get(str(position))
        if found is None:
            found = self._points[str(position)] = self._find(position)
        return found

    def _look(self) -> None:
        """Begin anew where other files replaced those there were: only positions mean the same."""
        if self._log.start_of_file().resets == self._resets:
            return
        self._log.close()
        self._open()
        if self._target is not None:
            self.freeze()

    def ranges(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[LogRange]:
        return self._ranges(self.point(start).begin, self.point(end).begin, size=self._options.partition_bytes)

    def _ranges(self, begin: LogPosition, end: LogPosition, *, size: int) -> list[LogRange]:
        ranges = self._log.ranges(begin, end, size=size)
        boundary = self._boundaries.get(begin)
        if boundary is not None and ranges and isinstance(ranges[0], ClassicRange):
            ranges[0] = replace(ranges[0], group_offset=boundary)
        return ranges

    def tasks(
        self, start: Mapping[str, object], end: Mapping[str, object], fields: tuple[ShapeField, ...]
    ) -> list[ReadTask]:
        """In some domains the start may have groups of a later place."""
        starts = tuple(self.point(start).starts.items())
        ranges = self.ranges(start, end)
        versions = self.versions()
        if isinstance(fields, TableFields) and fields.shape.version is None and fields.shape.mode is SchemaMode.LATEST:
            fields = of_version(fields, versions.newest(self._began))
        return tasks_between(self._options, fields, selection_of(self._options, starts), ranges, versions)

    def versions(self) -> TableVersions:
        if self._options.granularity not in OF_ROWS:
            return NO_VERSIONS
        if self._on_fault is not None:
            history = readable_history_of(self._options, self._log.with_past, self._on_fault, goes_on=True)
        else:
            history = self._schema.history(partial(needs_rows, self._options, goes_on=True))
        return selected_versions(self._options, history, self._began, goes_on=True)

    def _is_enough(self, begin: LogPosition, place: LogPosition, count: int, limits: Limits) -> bool:
        if limits.groups_max is not None and count >= limits.groups_max:
            return True
        return limits.bytes_max is not None and self._distance(begin, place) >= limits.bytes_max

    def _distance(self, begin: LogPosition, end: LogPosition) -> int:
        if begin.file_no == end.file_no:
            return end.offset - begin.offset
        between = range(begin.file_no, end.file_no)
        sizes = sum(file.size for file in self._log.files() if file.file_no in between)
        return sizes - begin.offset + end.offset

    def _logged(self) -> tuple[LogPosition, GtidState]:
        """The log's end, and its state there; of traditional files that of the last whole group."""
        for _ in range(PAIRS_MAX):
            state, end = self._log.state(), self._log.end()
            if self._log.state() == state:
                return end, state
        return self._find(state.position()).begin, state

    def _find(self, position: GtidPosition) -> ReadStart:
        """The oldest place if the position is purged and data loss is no failure."""
        first = ReadStart(self._first_point(), {})
        if not len(position) and not len(self._log.start_of_file().state):
            return first
        try:
            return resume(self._log, position, on_fault=self._on_fault)
        except PositionPurgedError as error:
            if self._options.is_strict:
                raise PositionPurgedError(f"{error}; {AFTER_PURGE}") from None
            return first

    def _first_point(self) -> LogPosition:
        return LogPosition(self._log.files()[0].file_no, LOG_START.offset)

    def _give(self, position: GtidPosition, point: ReadStart) -> Offset:
        self._points[str(position)] = point
        return self._encoded(position, point.begin)

    def _encoded(self, position: GtidPosition, point: LogPosition) -> Offset:
        name = self._log.file_name(point.file_no)
        return encode_offset(position, point, file_name=name if parse_file_name(name) is None else None)


def of_version(fields: TableFields, newest: TableState | None) -> TableFields:
    """The DataFrame's columns, as those of the table that the stream's schema knows where it began. Raises
    ConfigurationError: they have other names there."""
    known = newest if isinstance(newest, TableVersion) else None
    if known is not None and [one.name for one in known.columns] != [one.name for one in fields.shape.columns]:
        raise ConfigurationError(
            f"{known.full_name}: its columns are others than the DataFrame has, since GTID {known.gtid}: "
            "start the stream again, with option schema as the table is now, if you give it"
        )
    return TableFields.of(fields, replace(fields.shape, version=known))


def log_oldest(where: str, position: GtidPosition) -> None:
    if len(position):
        log.warning("%s: the stream begins after GTID %s, the oldest position that is there", where, position)


class ReadBatch(NamedTuple):
    """The last planned batch, by its end."""

    position: GtidPosition
    point: LogPosition
    time: float | None  # of its last group, in seconds since 1970; None without one


def lag_of(reached: ReadBatch, logged: GtidPosition, *, now: float, size: int | None = None) -> dict[str, int]:
    """What is logged after a batch, as `groups`, `bytes` and `seconds`. Groups are counted by sequence numbers, skipped
    ones included. `size` is in bytes, None if unknown, as of a primary. Seconds are those since the batch's last group
    was logged, 0 if nothing followed."""
    groups = 0
    for gtid in logged.values():
        last = reached.position.get(gtid.domain_id)
        groups += max(gtid.seq_no - (0 if last is None else last.seq_no), 0)
    found = {"groups": groups}
    if size is not None:
        found["bytes"] = max(size, 0) if groups else 0
    if not groups:
        found["seconds"] = 0
    elif reached.time is not None:
        found["seconds"] = max(int(now - reached.time), 0)
    return found
