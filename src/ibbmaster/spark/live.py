"""Where a stream of a running primary is."""

from __future__ import annotations

from collections.abc import Mapping

from ibbmaster.arrow.live import address, live_range
from ibbmaster.arrow.plan import OF_ROWS, ReadTask, selection_of, tasks_between
from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.arrow.shape import ShapeField
from ibbmaster.capture.client import groups_between, logged_position, oldest_position
from ibbmaster.errors import SourceError
from ibbmaster.event.header import decode_event_header
from ibbmaster.gtid import GtidPosition
from ibbmaster.position import NOWHERE
from ibbmaster.schema.versions import NO_VERSIONS
from ibbmaster.spark.lag import ReadBatch, lag_of
from ibbmaster.spark.live_schema import LiveSchema, texts_before
from ibbmaster.spark.offset import Offset, decode_offset, encode_offset, position_of_option, tables_of
from ibbmaster.spark.tracking import Limits, log_oldest


class LiveTracker:
    """Where a stream is, on the driver; as `tracking.OffsetTracker`."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._primary = address(options)
        self._target: GtidPosition | None = None
        self._reached: ReadBatch | None = None
        self._schema: LiveSchema | None = None  # of a stream of rows, once it has begun

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
        """As that of `OffsetTracker`; not of rows, whose offsets say what tables are."""
        return encode_offset(logged_position(self._primary), NOWHERE)

    def latest(self, *, now: float) -> Offset:
        """As that of `OffsetTracker`; nothing says how many bytes a primary has still to send."""
        logged = logged_position(self._primary)
        offset = encode_offset(logged, NOWHERE)
        if self._reached is not None:
            offset["lag"] = lag_of(self._reached, logged, now=now)
        return offset

    def _schema_from(self, start: Mapping[str, object]) -> LiveSchema:
        """What tables are from an offset on: of the first one that is asked for, and of those that follow it."""
        if self._schema is None:
            position = decode_offset(start)
            began = position if self._options.table is None else logged_position(self._primary)
            self._schema = LiveSchema(self._options, position, tables_of(start), began)
        return self._schema

    def _offset(self, start: Mapping[str, object], end: GtidPosition, count: int | None = None) -> Offset:
        """The offset of `end`, a number of groups after `start`."""
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
        """The offset at the end of the batch that begins at `start`; with limits the groups are read to count them.

        Raises:
            SourceError: the primary cannot be reached, refuses, or has logged less than `start`.
        """
        position = decode_offset(start)
        end = logged_position(self._primary) if self._target is None else self._target
        self._check_reached(position, end)
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

    def _check_reached(self, start: GtidPosition, end: GtidPosition) -> None:
        """A dump up to an end that is in front of its start is empty and no error: a stream would go back unnoticed."""
        for gtid in start.values():
            found = end.get(gtid.domain_id)
            if found is None or found.seq_no < gtid.seq_no:
                logged = found or f"nothing of domain {gtid.domain_id}"
                raise SourceError(
                    f"{self._primary}: the stream is at {gtid}, and the primary has logged {logged}: it lost its end, "
                    "lags, or is another one; go on with the one that has it, or with a new checkpoint"
                )

    def tasks(
        self, start: Mapping[str, object], end: Mapping[str, object], fields: tuple[ShapeField, ...]
    ) -> list[ReadTask]:
        """What reads a batch: one range, for a primary sends in order."""
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
