"""Where a stream of a running primary is."""

from __future__ import annotations

from collections.abc import Mapping

from ibbmaster.arrow.live import address, live_range
from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.capture.client import groups_between, logged_position
from ibbmaster.errors import SourceError
from ibbmaster.gtid import GtidPosition
from ibbmaster.log.log_range import LogRange
from ibbmaster.position import NOWHERE
from ibbmaster.schema.versions import NO_VERSIONS, TableVersions
from ibbmaster.spark.offset import Offset, decode_offset, encode_offset, position_of_option
from ibbmaster.spark.tracking import Limits


class LiveTracker:
    """Where a stream is, on the driver; as `tracking.OffsetTracker`."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._primary = address(options)
        self._target: GtidPosition | None = None

    def close(self) -> None:
        """Nothing is kept open."""

    def initial(self) -> Offset:
        text = self._options.starting_offsets.strip()
        if text.lower() == "latest":
            return self.latest()
        if text.lower() == "earliest":
            return encode_offset(GtidPosition(), NOWHERE)
        return encode_offset(position_of_option(text), NOWHERE)

    def latest(self) -> Offset:
        return encode_offset(logged_position(self._primary), NOWHERE)

    def versions(self, end: Mapping[str, object]) -> TableVersions:
        """Nothing: a primary sends its statements, and not those from before."""
        return NO_VERSIONS

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
        if limits.groups_max is None and limits.bytes_max is None:
            return encode_offset(end, NOWHERE)
        gtids = dict(position)
        size = 0
        for count, group in enumerate(groups_between(self._primary, position, end)):
            length = len(group.gtid_event) + sum(len(piece) for piece in group.body)
            is_full = limits.groups_max is not None and count >= limits.groups_max
            if count and (is_full or (limits.bytes_max is not None and size >= limits.bytes_max)):
                break
            assert group.gtid is not None
            gtids[group.gtid.domain_id] = group.gtid
            size += length
        return encode_offset(GtidPosition(gtids.values()), NOWHERE)

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

    def ranges(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[LogRange]:
        return [live_range(str(decode_offset(start)), str(decode_offset(end)))]
