"""Whether a GTID may follow what is logged, and what a group is whose GTID may not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import DuplicateGtidError, EventError, FormatError, GtidOrderError, PositionError, StoreError
from ibbmaster.event.essence import OF_REPLICA, Essence, Sums, first_difference
from ibbmaster.event.group import EventGroup
from ibbmaster.event.split import events_of
from ibbmaster.event.types import type_name
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.ibb.commit import decode_commit_header
from ibbmaster.log.event_groups import EVENT_SIZE_MAX
from ibbmaster.log.interface import LogEngine, groups_from
from ibbmaster.log.large_rows import large_rows
from ibbmaster.log.out_of_band import OutOfBandReader
from ibbmaster.position import LogPosition

KEPT_BYTES_MAX = 1 << 20  # of a group's events; those of a longer one are summed while they are read
DIGEST_SIZE = 16
ESSENCE = Essence(OF_REPLICA, large_rows())
BEHIND = LogPosition(2**32, 0)  # where a record would be that was refused


def is_newer(state: GtidState, gtid: Gtid) -> bool:
    """Whether a GTID is newer than all of its domain, on any server."""
    highest = state.highest_seq_no(gtid.domain_id)
    return highest is None or gtid.seq_no > highest


def check_order(state: GtidState, gtid: Gtid) -> None:
    """Raise GtidOrderError if a group's GTID is not newer than all of its domain. Source: MariaDB 12.3, rpl_gtid.cc,
    rpl_binlog_state::check_strict_sequence()."""
    if not is_newer(state, gtid):
        highest = state.highest_seq_no(gtid.domain_id)
        raise GtidOrderError(
            f"GTID {gtid} is out of order: domain {gtid.domain_id} has sequence numbers up to {highest}, so the next "
            f"must be {(highest or 0) + 1} or more; nothing was logged (gtid_strict=False takes any GTID)"
        )


def explain_order(
    error: GtidOrderError, gtid: Gtid, record: Buffer, log: LogEngine, out_of_band: OutOfBandReader
) -> GtidOrderError:
    """The error for a refused commit record: whether the log has the same group, or another of that GTID. Everything
    that is logged must be durable."""
    try:
        group = find_group(log, gtid)
        if group is None:
            return error
        here, there = Content.of(group), Content(_events(record, out_of_band))
        place = place_of(log, group.start)
        if here.is_same(there):
            return DuplicateGtidError(
                f"GTID {gtid} is in the log already, with the same events, at {place}: "
                "the group was fed twice, or as a replica has logged it; nothing was logged"
            )
        return GtidOrderError(
            f"GTID {gtid} is in the log already, with other events, at {place} ({here.difference(there)}): "
            "two histories meet here; nothing was logged"
        )
    except (EventError, FormatError, PositionError, StoreError):
        return error  # what cannot be read cannot be compared


def place_of(log: LogEngine, position: LogPosition) -> str:
    """A place in the files of a log, for people."""
    return f"{log.file_name(position.file_no)} offset {position.offset}"


def find_group(log: LogEngine, gtid: Gtid) -> EventGroup | None:
    """The group of a GTID; None if the log does not have it. Raises FormatError, StoreError: the log cannot be read
    there; PositionPurgedError: its file has gone."""
    state = log.state()
    if (state.seq_no(gtid.domain_id, gtid.server_id) or 0) < gtid.seq_no:
        return None
    others = [other for other in state.position().values() if other.domain_id != gtid.domain_id]
    before = Gtid(domain_id=gtid.domain_id, server_id=gtid.server_id, seq_no=gtid.seq_no - 1)
    plan = log.seek(GtidPosition([*others, before] if before.seq_no > 0 else others))
    for group in groups_from(log, plan):
        if group.gtid == gtid:
            return group
        if group.gtid is not None and group.gtid.domain_id == gtid.domain_id and group.gtid.seq_no > gtid.seq_no:
            return None
    return None


def _events(record: Buffer, out_of_band: OutOfBandReader) -> Iterator[Buffer]:
    header, size = decode_commit_header(bytes(record), BEHIND.location)
    yield bytes(record)[size:]
    for stream in header.streams:
        yield from out_of_band.data(stream, BEHIND)


class Content:
    """The comparable content of a group, as a server or a replica logs it; read once. Raises EventError: an event is
    damaged; for a short group only when it is compared with other bytes."""

    def __init__(self, pieces: Iterable[Buffer]) -> None:
        """The bytes of all events, the GTID event first, cut anywhere."""
        self._data: bytes | None = None
        self._sums: Sums | None = None
        kept: list[bytes] = []
        size, pieces = 0, iter(pieces)
        for piece in pieces:
            kept.append(bytes(piece))
            size += len(piece)
            if size > KEPT_BYTES_MAX:
                self._sums = ESSENCE.sums(events_of(chain(kept, pieces), size_max=EVENT_SIZE_MAX))
                return
        self._data = b"".join(kept)

    @classmethod
    def of(cls, group: EventGroup) -> Content:
        return cls(chain((group.gtid_event,), group.body))

    @property
    def sums(self) -> Sums:
        if self._sums is None:
            assert self._data is not None
            self._sums = ESSENCE.sums(events_of((self._data,), size_max=EVENT_SIZE_MAX))
        return self._sums

    @property
    def digest(self) -> bytes:
        return hashlib.blake2b(b"".join(one for _, one in self.sums), digest_size=DIGEST_SIZE).digest()

    def is_same(self, other: Content) -> bool:
        """Whether both are one transaction."""
        return (self._data is not None and self._data == other._data) or self.sums == other.sums

    def difference(self, other: Content) -> str:
        """The first event that differs, for people."""
        number = first_difference(self.sums, other.sums) or 0
        mine, theirs = (type_name(one.sums[number][0]) if number < len(one.sums) else "" for one in (self, other))
        if mine == theirs:
            return f"event {number}, {mine}, differs"
        return f"event {number} is {theirs or 'not there'}, {mine or 'nothing'} was expected"
