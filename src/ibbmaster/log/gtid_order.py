"""Whether a GTID may follow what is logged, and what a group is whose GTID may not."""

from __future__ import annotations

from collections.abc import Iterator

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import DuplicateGtidError, EventError, FormatError, GtidOrderError, PositionError, StoreError
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.ibb.commit import decode_commit_header
from ibbmaster.log.interface import LogEngine
from ibbmaster.log.out_of_band import OutOfBandReader
from ibbmaster.log.sameness import Content
from ibbmaster.position import LogPosition

BEHIND = LogPosition(2**32, 0)  # where a record would be that was refused


def is_newer(state: GtidState, gtid: Gtid) -> bool:
    """Whether a GTID is newer than all of its domain, whichever server logged them."""
    highest = state.highest_seq_no(gtid.domain_id)
    return highest is None or gtid.seq_no > highest


def check_order(state: GtidState, gtid: Gtid) -> None:
    """Whether a group may be logged.

    Raises GtidOrderError: its GTID is not newer than all of its domain.

    Source: MariaDB 12.3, rpl_gtid.cc, rpl_binlog_state::check_strict_sequence().
    """
    if not is_newer(state, gtid):
        highest = state.highest_seq_no(gtid.domain_id)
        raise GtidOrderError(
            f"GTID {gtid} is out of order: domain {gtid.domain_id} has sequence numbers up to {highest}, so the next "
            f"must be {(highest or 0) + 1} or more; nothing was logged (gtid_strict=False takes any GTID)"
        )


def explain_order(
    error: GtidOrderError, gtid: Gtid, record: Buffer, log: LogEngine, out_of_band: OutOfBandReader
) -> GtidOrderError:
    """The error for a commit record that was refused: whether the log has the same group, or another of that GTID.

    Everything that is logged must be durable.
    """
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
    """The group of a GTID; None if the log does not have it any more, or never had.

    Raises:
        FormatError, StoreError: the log cannot be read there.
        PositionPurgedError: its file is gone.
    """
    state = log.state()
    if (state.seq_no(gtid.domain_id, gtid.server_id) or 0) < gtid.seq_no:
        return None
    others = [other for other in state.position().values() if other.domain_id != gtid.domain_id]
    before = Gtid(domain_id=gtid.domain_id, server_id=gtid.server_id, seq_no=gtid.seq_no - 1)
    groups = log.groups(log.seek(GtidPosition([*others, before] if before.seq_no > 0 else others)))
    while (group := groups.next_group()) is not None:
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
