"""Decides whether groups may be added to a log. A group that it has is skipped if it is the same transaction, also
where another server has logged it as a replica; the log keeps its copy."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from ibbmaster.errors import DuplicateGtidError, EventError, FormatError, GtidOrderError, PositionError, StoreError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.essence import OF_REPLICA, Essence, Sums, first_difference
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.split import events_of
from ibbmaster.replication.event.types import type_name
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.ibb.commit import decode_commit_header
from .event_groups import EVENT_SIZE_MAX
from .interface import EventGroups, LogEngine, ReadPlan, groups_from
from .large_rows import large_rows
from .out_of_band import OutOfBandReader

KEPT_BYTES_MAX = 1 << 20  # of a group's events; more are summed while read
DIGEST_SIZE = 16
ESSENCE = Essence(OF_REPLICA, large_rows())
BEHIND = LogPosition(2**32, 0)  # of a refused record
AHEAD_MAX = 1_000_000  # groups read before they come, in another order of domains
ADVICE = (
    "they do not continue it, and nothing was written. `ibbmaster diff --ignore replica` compares both; what is of "
    "another history goes into a directory of its own"
)


def is_newer(state: GtidState, gtid: Gtid) -> bool:
    highest = state.highest_seq_no(gtid.domain_id)
    return highest is None or gtid.seq_no > highest


def check_order(state: GtidState, gtid: Gtid) -> None:
    """Raises GtidOrderError: not `is_newer`. Source: MariaDB 12.3, rpl_binlog_state::check_strict_sequence()."""
    if not is_newer(state, gtid):
        highest = state.highest_seq_no(gtid.domain_id)
        raise GtidOrderError(
            f"GTID {gtid} is out of order: domain {gtid.domain_id} has sequence numbers up to {highest}, so the next "
            f"must be {(highest or 0) + 1} or more; nothing was logged (gtid_strict=False takes any GTID)"
        )


def explain_order(
    error: GtidOrderError, gtid: Gtid, record: Buffer, log: LogEngine, out_of_band: OutOfBandReader
) -> GtidOrderError:
    """The error for a refused commit record: whether the durable log has the same group, or another one."""
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
    return f"{log.file_name(position.file_no)} offset {position.offset}"


def find_group(log: LogEngine, gtid: Gtid) -> EventGroup | None:
    """The group of a GTID; None if the log does not have it. Raises FormatError: the log is damaged;
    PositionPurgedError: what is before it is gone; StoreError: the log cannot be read."""
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
    header, size = decode_commit_header(bytes(record), BEHIND)
    yield bytes(record)[size:]
    for stream in header.streams:
        yield from out_of_band.data(stream, BEHIND)


class Content:
    """The comparable content of a group, as a server or a replica logs it, from the bytes of all events, cut anywhere;
    read once. Raises EventError: an event is damaged; of a short group only when it is compared."""

    def __init__(self, pieces: Iterable[Buffer]) -> None:
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
        return (self._data is not None and self._data == other._data) or self.sums == other.sums

    def difference(self, other: Content) -> str:
        number = first_difference(self.sums, other.sums) or 0
        mine, theirs = (type_name(one.sums[number][0]) if number < len(one.sums) else "" for one in (self, other))
        if mine == theirs:
            return f"event {number}, {mine}, differs"
        return f"event {number} is {theirs or 'not there'}, {mine or 'nothing'} was expected"


class _Waiting(NamedTuple):
    start: LogPosition
    digest: bytes


class Overlap:
    """Compares what comes with the log, domain by domain; reads each group of the log once, in order. It joins a domain
    once both have the same last group and as much of each server. What was logged before the oldest file is not
    compared. `logged` is what the log has, `before` what precedes the first group that comes."""

    def __init__(
        self, log: LogEngine, logged: GtidState, before: GtidState, place: Callable[[LogPosition], str] = str
    ) -> None:
        self.joined: set[int] = set()
        self._log, self._logged = log, logged.copy()
        self._before, self._came = before.copy(), before.copy()
        self._place = place
        self._groups: EventGroups | None = None
        self._unknown = GtidState()  # what was logged before the oldest file of the log
        self._numbers_rise = True  # in each domain of the log, as far as is known
        self._ahead: dict[Gtid, list[_Waiting]] = {}
        self._first: dict[int, LogPosition] = {}  # of each domain the first group that has come
        self._domains = {*logged.domain_ids, *before.domain_ids}
        for domain_id in self._domains:
            self._is_joined(domain_id)
        self.is_complete = self.joined == self._domains

    def close(self) -> None:
        if self._groups is not None:
            self._groups.close()

    def has(self, group: EventGroup, *, compares: bool = True) -> bool:
        """Whether the log already has the next group that comes; reads its body if it `compares`. Raises EventError:
        its events are damaged; FormatError: the log is damaged; StoreError: the log has another group of that GTID, or
        none and does not end right before it, or has one that did not come."""
        gtid = group.gtid
        assert gtid is not None
        if self._is_joined(gtid.domain_id):
            return False
        if not _covers(self._logged, gtid):
            raise self._parting(gtid, group.start)
        if compares:
            self._compare(gtid, group)
        self._came.log(gtid)
        if self._is_joined(gtid.domain_id):
            self._expect_none_left(gtid.domain_id)
            self.is_complete = self.joined >= self._domains
        return True

    def finish(self) -> None:
        """No more groups come. Raises StoreError: the log has one that did not come, though later ones did."""
        for domain_id in self._first:
            self._expect_none_left(domain_id)
        self.close()

    def _is_joined(self, domain_id: int) -> bool:
        if domain_id not in self.joined and self._meets(domain_id):
            self.joined.add(domain_id)
        return domain_id in self.joined

    def _meets(self, domain_id: int) -> bool:
        latest = self._logged.latest(domain_id)
        if latest != self._came.latest(domain_id):
            return False
        logged, came = self._logged.servers(domain_id), self._came.servers(domain_id)
        return latest is None or all(
            logged[server] == came[server] if server in logged and server in came else seq_no < latest.seq_no
            for server, seq_no in {**logged, **came}.items()
        )

    def _compare(self, gtid: Gtid, group: EventGroup) -> None:
        self._open()
        if _covers(self._unknown, gtid):
            return
        try:
            content = Content.of(group)
            start, is_same = self._found(gtid, content)
        except EventError as error:
            raise EventError(f"group {gtid} at {self._place(group.start)}: {error}") from None
        if not is_same:
            here = find_group(self._log, gtid)
            what = f": {Content.of(here).difference(content)}" if here is not None and here.start == start else ""
            raise StoreError(
                f"the log has another group {gtid}, at {place_of(self._log, start)}, than what is added, at "
                f"{self._place(group.start)}{what}; {ADVICE}"
            )
        self._first.setdefault(gtid.domain_id, start)

    def _found(self, gtid: Gtid, content: Content) -> tuple[LogPosition, bool]:
        if (waiting := self._ahead.get(gtid)) is not None:
            start, digest = waiting.pop(0)
            if not waiting:
                del self._ahead[gtid]
            return start, digest == content.digest
        if (found := self._read_to(gtid)) is not None:
            return found.start, Content.of(found).is_same(content)
        if not self._numbers_rise:
            raise StoreError(f"what is added has {gtid}, which the log does not have; {ADVICE}")
        self._numbers_rise = False  # what was skipped for its number is looked at, too
        self._read_from(self._log.start_of_file())
        return self._found(gtid, content)

    def _open(self) -> None:
        if self._groups is None:
            self._unknown = self._log.start_of_file().state
            self._read_from(self._start())

    def _start(self) -> ReadPlan:
        for file in reversed(self._log.files()):
            plan = self._log.start_of_file(file.file_no)
            if plan.is_begun and all(_covers(self._before, gtid) for gtid in plan.state):
                return plan
        return self._log.start_of_file()

    def _read_from(self, plan: ReadPlan) -> None:
        self.close()
        self._groups = self._log.groups(plan)
        self._ahead.clear()

    def _read_to(self, gtid: Gtid) -> EventGroup | None:
        """The groups before it wait, but those logged before what comes."""
        assert self._groups is not None
        while (group := self._groups.next_group()) is not None:
            found = group.gtid
            if found == gtid:
                return group
            if found is not None and not (self._numbers_rise and self._is_before(found, gtid)):
                self._ahead.setdefault(found, []).append(_Waiting(group.start, Content.of(group).digest))
                if len(self._ahead) > AHEAD_MAX:
                    raise StoreError(f"group {gtid} was not found among {AHEAD_MAX} groups of the log; {ADVICE}")
        return None

    def _is_before(self, found: Gtid, gtid: Gtid) -> bool:
        is_first = found.domain_id == gtid.domain_id and found.domain_id not in self._first
        return _covers(self._before, found) or (is_first and found.seq_no < gtid.seq_no)

    def _expect_none_left(self, domain_id: int) -> None:
        first = self._first.get(domain_id)
        if first is None or not self._numbers_rise:
            return
        for gtid, (waiting, *_) in self._ahead.items():
            is_over = domain_id in self.joined or _covers(self._came, gtid)
            if gtid.domain_id == domain_id and waiting.start > first and is_over:
                raise StoreError(
                    f"the log has {gtid}, at {place_of(self._log, waiting.start)}, which is missing in what is added, "
                    f"though that goes up to {self._came.latest(domain_id)}; {ADVICE}"
                )

    def _parting(self, gtid: Gtid, start: LogPosition) -> StoreError:
        """The error for a group that the log lacks, before its domain is joined."""
        self._open()
        where, next_one = self._place(start), self._next_in(gtid.domain_id)
        if next_one is not None:
            here, there = next_one
            return StoreError(
                f"what is added goes on with {gtid}, at {where}, and the log with {there}, at "
                f"{place_of(self._log, here)}: two histories part here; {ADVICE}"
            )
        logged, came = (
            GtidState(one for one in state if one.domain_id == gtid.domain_id) for state in (self._logged, self._came)
        )
        return StoreError(
            f"the log ends at GTID state [{logged}] in domain {gtid.domain_id}, but before {gtid}, at {where}, what is "
            f"added is at [{came}]: what is between is missing; {ADVICE}"
        )

    def _next_in(self, domain_id: int) -> tuple[LogPosition, Gtid] | None:
        waiting = [
            (one.start, gtid)
            for gtid, (one, *_) in self._ahead.items()
            if gtid.domain_id == domain_id and not _covers(self._came, gtid)
        ]
        if waiting:
            return min(waiting, key=lambda one: one[0])
        assert self._groups is not None
        while (group := self._groups.next_group()) is not None:
            if (gtid := group.gtid) is not None and gtid.domain_id == domain_id and not _covers(self._came, gtid):
                return group.start, gtid
        return None


def _covers(state: GtidState, gtid: Gtid) -> bool:
    return (state.seq_no(gtid.domain_id, gtid.server_id) or -1) >= gtid.seq_no
