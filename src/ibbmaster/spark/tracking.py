"""How far a stream has read, and where its next batch ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ibbmaster.arrow.plan import (
    OF_ROWS,
    ReadTask,
    logged_schema,
    open_log,
    selected_versions,
    selection_of,
    tasks_between,
)
from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.arrow.schema_reading import readable_history
from ibbmaster.arrow.shape import ShapeField
from ibbmaster.errors import PositionPurgedError
from ibbmaster.gtid import GtidPosition
from ibbmaster.log.locating import ReadStart, resume
from ibbmaster.log.log_range import WHOLE_FILE, LogRange
from ibbmaster.log.strictness import damage_handler
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.schema.model import SchemaPlace
from ibbmaster.schema.versions import NO_VERSIONS, TableVersions
from ibbmaster.spark.offset import Offset, decode_offset, encode_offset, position_of_option


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one batch may take; a first group is always taken. None: as much as there is."""

    bytes_max: int | None = None  # of the log, so what lies out of band counts where it was written
    groups_max: int | None = None
    files_max: int | None = None

    @property
    def are_set(self) -> bool:
        return (self.bytes_max, self.groups_max, self.files_max) != (None, None, None)


class OffsetTracker:
    """Where a stream is, on the driver: knows the place of each offset it gave out, and finds that of others."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._log = open_log(options)
        self._on_fault = damage_handler(is_strict=options.is_strict)
        self._points: dict[str, ReadStart] = {}
        self._target: LogPosition | None = None
        self._counted = self._log.with_left_out  # a batch ends after a group, also one of which nothing comes
        self._schema = logged_schema(options, self._log.with_past)
        self._began = SchemaPlace(self._log.end(), 0)  # which table is read is what its name means here

    def close(self) -> None:
        """Give back descriptors."""
        self._log.close()

    def initial(self) -> Offset:
        """The offset a new stream begins at, by the option `startingOffsets`.

        Raises:
            ConfigurationError: the option is neither earliest nor latest nor a position.
            PositionError: the position is not in the log.
        """
        text = self._options.starting_offsets.strip()
        if text.lower() == "earliest":
            return self._give(self._log.start_of_file().state.position(), ReadStart(self._first_point(), {}))
        if text.lower() == "latest":
            return self.latest()
        position = position_of_option(text)
        return self._give(position, self._find(position))

    def latest(self) -> Offset:
        """The offset after everything that can be read now."""
        return self._give(self._log.state().position(), ReadStart(self._log.end(), {}))

    def freeze(self) -> None:
        """From now on behave as if the log did not grow."""
        self._target = self._log.end()

    def next(self, start: Mapping[str, object], limits: Limits) -> Offset:
        """The offset at the end of the batch that begins at `start`; `start` itself if there is nothing new.

        Raises:
            PositionPurgedError: what the stream needs next is no longer there.
            FormatError: the log is damaged there.
        """
        since = self.point(start)
        begin = since.begin
        end = self._log.end() if self._target is None else self._target
        gtids = dict(decode_offset(start))
        point, count = begin, 0
        for log_range in self._log.ranges(begin, end, size=WHOLE_FILE):
            if limits.files_max is not None and count and log_range.file_no - begin.file_no >= limits.files_max:
                break
            for group in self._counted.groups_in(log_range, on_fault=self._on_fault):
                if group.gtid is None or not since.lacks(group):
                    continue
                if count and self._is_enough(begin, group.start, count, limits):
                    return self._give(GtidPosition(gtids.values()), since._replace(begin=point))
                gtids[group.gtid.domain_id] = group.gtid
                count += 1
                point = group.start._replace(offset=group.start.offset + 1)
        if not count:
            return dict(start)  # type: ignore[arg-type]
        return self._give(GtidPosition(gtids.values()), since._replace(begin=point))

    def point(self, offset: Mapping[str, object]) -> ReadStart:
        """The place of an offset in the log."""
        position = decode_offset(offset)
        found = self._points.get(str(position))
        if found is None:
            found = self._points[str(position)] = self._find(position)
        return found

    def ranges(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[LogRange]:
        """The ranges of the log between two offsets."""
        return self._log.ranges(self.point(start).begin, self.point(end).begin, size=self._options.partition_bytes)

    def tasks(
        self, start: Mapping[str, object], end: Mapping[str, object], fields: tuple[ShapeField, ...]
    ) -> list[ReadTask]:
        """What reads a batch: of some domains, its start may have groups of a later place already."""
        starts = tuple(self.point(start).starts.items())
        ranges = self.ranges(start, end)
        return tasks_between(self._options, fields, selection_of(self._options, starts), ranges, self.versions())

    def versions(self) -> TableVersions:
        """The versions of the tables that options ask for; what came since the last call is folded."""
        if self._options.granularity not in OF_ROWS:
            return NO_VERSIONS
        if self._on_fault is not None:
            history = readable_history(
                self._log.with_past, self._options.declarations, self._on_fault, self._options.name_case
            )
        else:
            history = self._schema.history()
        return selected_versions(self._options, history, self._began, goes_on=True)

    def _is_enough(self, begin: LogPosition, place: LogPosition, count: int, limits: Limits) -> bool:
        """Whether a batch that has `count` groups must not take the one at `place`."""
        if limits.groups_max is not None and count >= limits.groups_max:
            return True
        return limits.bytes_max is not None and self._distance(begin, place) >= limits.bytes_max

    def _distance(self, begin: LogPosition, end: LogPosition) -> int:
        """Bytes of the log between two points."""
        if begin.file_no == end.file_no:
            return end.offset - begin.offset
        between = range(begin.file_no, end.file_no)
        sizes = sum(file.size for file in self._log.files() if file.file_no in between)
        return sizes - begin.offset + end.offset

    def _find(self, position: GtidPosition) -> ReadStart:
        """The place of a position; the oldest there is if it is purged and data loss is no failure."""
        first = ReadStart(self._first_point(), {})
        if not len(position) and not len(self._log.start_of_file().state):
            return first
        try:
            return resume(self._log, position, on_fault=self._on_fault)
        except PositionPurgedError:
            if self._options.is_strict:
                raise
            return first

    def _first_point(self) -> LogPosition:
        return LogPosition(self._log.files()[0].file_no, LOG_START.offset)

    def _give(self, position: GtidPosition, point: ReadStart) -> Offset:
        self._points[str(position)] = point
        return encode_offset(position, point.begin)
