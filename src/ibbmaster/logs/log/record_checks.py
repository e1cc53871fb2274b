"""Checks the records of a log. What states restarts of MariaDB leave is in protocol/ibb/gtid-state.md."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ibbmaster.errors import EventError, FormatError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.rows.partial import FragmentChecks
from ibbmaster.replication.event.split import EventSplitter
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.ibb.chunk import CHUNK_HEADER_SIZE, Chunk, ChunkEnd, RecordType
from ibbmaster.storage.ibb.commit import decode_commit_header
from ibbmaster.storage.ibb.file_header import FileHeader
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.gtid_state import decode_gtid_state, encode_gtid_state
from ibbmaster.storage.ibb.page import DATA_SIZE
from ibbmaster.storage.ibb.scan import NESTABLE, Misplaced, Nesting
from .event_groups import HEAD_SIZE, decode_first_event
from .fault import Fault, Totals
from .other_records import check_other_record, check_rest
from .out_of_band import OutOfBandReader
from .page_checks import PassedNodes
from .states import FULL_STATE_PAGE

Pair = tuple[int, int]  # domain and server

STATE_SIZE_MAX = 64 << 20  # of a GTID state record: some millions of pairs
NAMED_MAX = 20  # in one file; more are counted
HELD_MAX = 1000  # of which the first are named


@dataclass(slots=True)
class _Back:
    gtid: Gtid
    location: LogPosition
    earlier: tuple[int, LogPosition]
    is_decided: bool = False  # a state record after it was compared
    is_contradicted: bool = False  # and says something else than the groups


class OrderChecks:
    """Sequence numbers that go back or repeat: a misplaced page, or a primary that permits them. The states decide, or
    a page that exists twice: `find_copy` returns another page with the same bytes as one already read, if any."""

    def __init__(self, find_copy: Callable[[LogPosition], LogPosition | None]) -> None:
        self._find_copy = find_copy
        self._last: dict[tuple[int, int], tuple[int, LogPosition]] = {}
        self._backs: list[_Back] = []
        self._unheld = 0

    def begin_file(self, state: GtidState, location: LogPosition) -> None:
        self._last = {(gtid.domain_id, gtid.server_id): (gtid.seq_no, location) for gtid in state}

    def log(self, gtid: Gtid, location: LogPosition) -> None:
        pair = gtid.domain_id, gtid.server_id
        earlier = self._last.get(pair)
        if earlier is not None and gtid.seq_no <= earlier[0]:
            if len(self._backs) < HELD_MAX:
                self._backs.append(_Back(gtid, location, earlier))
            else:
                self._unheld += 1
        self._last[pair] = gtid.seq_no, location

    def decide(self, *, is_contradicted: bool) -> None:
        for back in self._backs:
            if not back.is_decided:
                back.is_decided, back.is_contradicted = True, is_contradicted

    def lose_track(self) -> None:
        self._last.clear()

    def finish_file(self) -> Iterator[Fault]:
        """Report what was found; every page of the file was read, and the state that follows it."""
        backs = sorted(self._backs, key=lambda back: back.location)
        for back in backs[:NAMED_MAX]:
            seq_no, place = back.earlier
            problem = f"group {back.gtid} comes behind number {seq_no} of its domain and server at {place}"
            copies = ((page, self._find_copy(page)) for page in (back.location, place))
            copy = next(((page, other) for page, other in copies if other is not None), None)
            if copy is not None:
                page, other = copy
                why = f"{_page(page)} is {_page(other)} once more: a page was written to the wrong place"
            elif back.is_contradicted:
                why = "the next GTID state contradicts the groups: pages stand in the wrong places, or are older images"
            else:
                why = "no GTID state contradicts that; a primary without gtid_strict_mode logs so, too"
            is_damage = copy is not None or back.is_contradicted
            yield Fault(f"{problem}: {why}", back.location, is_damage, is_misplaced=True)
        if (more := len(backs[NAMED_MAX:]) + self._unheld) > 0:
            name = format_file_name(backs[-1].location.file_no)
            yield Fault(
                f"{name}: {more} more groups come behind higher numbers",
                is_damage=any(back.is_contradicted for back in backs),
            )
        self._backs.clear()
        self._unheld = 0


def _page(location: LogPosition) -> str:
    return f"{format_file_name(location.file_no)} page {location.page_no}"


@dataclass(slots=True)
class _Record:
    record_type: int
    ref: LogPosition
    head: bytearray = field(default_factory=bytearray)
    is_open: bool = False
    events: EventSplitter | None = None
    fragments: FragmentChecks = field(default_factory=FragmentChecks)
    gtid: Gtid | None = None


class RecordChecks:
    def __init__(self, disk: ReadDisk, totals: Totals, order: OrderChecks) -> None:
        self.header: FileHeader | None = None  # of the current file, None if it cannot be read
        self.is_lost = True  # what comes next may be inside a record
        self.passed = PassedNodes()
        self._totals = totals
        self._out_of_band = OutOfBandReader(disk)
        self._nesting = Nesting()
        self._records: list[_Record] = []  # the current ones: the second is nested in the first
        self._order = order
        self._groups: GroupsOfFile | None = None  # None: what was logged is not known
        self._state_end: tuple[int, int, int] | None = None  # file, page and offset after the last state record
        self._waiting_states: list[tuple[LogPosition, bytes]] = []  # in a commit record whose GTID is not known yet

    @property
    def open_record(self) -> LogPosition | None:
        return self._records[0].ref if self._records else None

    def lose_track(self) -> None:
        self._nesting = Nesting()
        self._records.clear()
        self._waiting_states.clear()
        self._groups = None
        self._order.lose_track()
        self.is_lost = True

    def take_chunk(self, chunk: Chunk, ref: LogPosition) -> Iterator[Fault]:
        problem = self._nesting.take(chunk)
        if problem is Misplaced.NOT_BEGUN:
            if not self.is_lost:
                yield Fault(problem.value, ref)
                return
            try:
                check_rest(bytes(chunk.data), ref)
            except FormatError as error:
                yield Fault.of(error)
            return
        if problem is not None:
            yield Fault(self._misplaced(chunk, problem), ref)
            self.lose_track()
            return
        if not chunk.is_first:
            record = self._records[-1]
        else:
            record = _Record(chunk.record_type, ref)
            if not self._records and chunk.record_type not in NESTABLE:  # these may be inside one that began earlier
                self.is_lost = False
            self._records.append(record)
        yield from self._add(record, chunk, ref)
        if chunk.is_last:
            self._records.pop()

    def _misplaced(self, chunk: Chunk, problem: Misplaced) -> str:
        record = self._records[-1]
        if problem in (Misplaced.INSIDE, Misplaced.NESTED_NOT_BEGUN):
            return "a " + Misplaced.INSIDE.value.format(found=chunk.record_type, record=record.record_type)
        return f"a record begins before the one at {record.ref} has ended"

    def _add(self, record: _Record, chunk: Chunk, ref: LogPosition) -> Iterator[Fault]:
        if record.record_type == RecordType.GTID_STATE:
            self._state_end = ref.file_no, ref.page_no, chunk.end_offset
        try:
            if record.is_open:
                self._pass_events(record, chunk.data)
            else:
                record.head += chunk.data
                limit = STATE_SIZE_MAX if record.record_type == RecordType.GTID_STATE else HEAD_SIZE
                if chunk.is_last or len(record.head) >= limit:
                    record.is_open = True
                    yield from self._open(record, is_whole=chunk.is_last)
            if chunk.is_last and record.events is not None:
                record.events.finish()
                record.fragments.finish()
        except FormatError as error:
            yield Fault.of(error)
        except EventError as error:
            of_group = "" if record.gtid is None else f" of group {record.gtid}"
            yield Fault(f"commit record{of_group}: {error}", record.ref)
            record.events = None

    def _pass_events(self, record: _Record, data: memoryview) -> None:
        if record.events is not None:
            for part in record.events.feed(data):
                record.fragments.take(part)

    def _open(self, record: _Record, *, is_whole: bool) -> Iterator[Fault]:
        head = record.head
        match record.record_type:
            case RecordType.COMMIT:
                yield from self._open_commit(record)
            case RecordType.GTID_STATE:
                outer = self._records[0]
                if outer is not record and outer.record_type == RecordType.COMMIT and not outer.is_open:
                    # It counts the GTID of the commit record that it interrupts, which is not known yet.
                    self._waiting_states.append((record.ref, bytes(head)))
                else:
                    yield from self._check_state(record.ref, head)
            case _:
                self._totals.oob_records += record.record_type == RecordType.OOB_DATA
                check_other_record(record.record_type, bytes(head), record.ref, is_whole)

    def take_state(self, data: bytes, ref: LogPosition) -> Iterator[Fault]:
        """Check a state record of one chunk, after the groups before it and the one it interrupts."""
        self._state_end = ref.file_no, ref.page_no, ref.page_offset + CHUNK_HEADER_SIZE + len(data)
        try:
            yield from self._check_state(ref, data)
        except FormatError as error:
            yield Fault.of(error)

    def _open_commit(self, record: _Record) -> Iterator[Fault]:
        ref, head = record.ref, bytes(record.head)
        header, size = decode_commit_header(head, ref)
        gtid, event_end = decode_first_event(head, size, ref)
        self._totals.groups += 1
        record.gtid = gtid
        if gtid is not None:
            self._order.log(gtid, ref)
            self.log_last(gtid)
        for state_ref, data in self._waiting_states:
            yield from self._check_state(state_ref, data)
        self._waiting_states.clear()
        events = EventSplitter()
        have_passed = self.passed.are_whole_events(header.streams)
        for stream in header.streams:
            if self.header is not None and stream.first.file_no < self.header.oob_file_no:
                yield _too_old(ref, stream.first, self.header)
            if have_passed:
                continue
            try:
                for piece in self._out_of_band.data(stream, ref):
                    for part in events.feed(piece):
                        record.fragments.take(part)
            except FormatError as error:
                yield Fault(f"the out-of-band data of group {gtid}: {error}", ref)
                return
        events.finish()
        if header.streams and event_end != len(head):
            yield Fault("events both in the commit record and out of band", ref)
        record.events = EventSplitter()
        self._pass_events(record, memoryview(head)[event_end:])

    def log_last(self, gtid: Gtid) -> None:
        if self._groups is not None:
            self._groups.log(gtid)

    def check_page_begin(self, found: Chunk | ChunkEnd, page: LogPosition) -> Iterator[Fault]:
        if self.header is None or self.is_lost or page.page_no <= FULL_STATE_PAGE or not isinstance(found, Chunk):
            return
        interval = self.header.state_interval_pages
        is_due = interval > 0 and page.page_no % interval == 0
        if found.record_type == RecordType.GTID_STATE:
            if found.is_first and not is_due:
                yield Fault("a GTID state record on a page where none is due", page)
        elif is_due and self._has_room_for_state(page):
            yield Fault("the GTID state record that is due on this page is missing", page)

    def _has_room_for_state(self, page: LogPosition) -> bool:
        if self.header is None or self._groups is None:
            return False
        if self._state_end == (page.file_no, page.page_no - 1, DATA_SIZE):
            return False  # the one before has just ended, and no other is tried
        size = len(encode_gtid_state(self._groups.differential, self.header.file_no))
        return page.page_no + -(-size // DATA_SIZE) < self.header.size_pages

    def _check_state(self, ref: LogPosition, data: bytes | bytearray) -> Iterator[Fault]:
        found = GtidState(decode_gtid_state(data, ref).gtids)
        if ref.page_offset:
            yield Fault("a GTID state record that does not begin a page", ref)
        if ref.page_no == FULL_STATE_PAGE:
            yield from self._check_full_state(ref, found)
        elif self._groups is not None:
            fit = self._groups.fit_of_differential(found)
            self._order.decide(is_contradicted=fit is Fit.WRONG)
            if fit is not Fit.EQUAL:
                computed = _text(self._groups.differential)
                says = f"differential GTID state is [{_text(found)}], the groups of this file come to [{computed}]"
                yield _misfit(ref, fit, says)

    def _check_full_state(self, ref: LogPosition, found: GtidState) -> Iterator[Fault]:
        state = None if self._groups is None else self._groups.state
        is_very_first = ref.file_no == 0 and not len(found)
        if self._groups is not None and not is_very_first:
            fit = self._groups.fit_of_next_file(found)
            self._order.decide(is_contradicted=fit is Fit.WRONG)
            if fit is not Fit.EQUAL:
                says = f"GTID state is [{_text(found)}], the groups come to [{_text(self._groups.state)}]"
                yield _misfit(ref, fit, says)
        yield from self._order.finish_file()
        begins_with = state if state is not None and is_very_first else found
        self._groups = GroupsOfFile(begins_with)
        self._order.begin_file(begins_with, ref)


def _too_old(ref: LogPosition, first: LogPosition, header: FileHeader) -> Fault:
    """After a restart MariaDB names the oldest file as the XA reference only."""
    oldest = format_file_name(header.oob_file_no)
    problem = f"refers to {first}, but the file header says nothing older than {oldest} is needed"
    if header.xa_file_no is None or first.file_no < header.xa_file_no:
        return Fault(problem, ref)
    why = "after a restart MariaDB counts prepared XA transactions in the XA reference alone"
    return Fault(f"{problem}: {why}", ref, is_damage=False)


def _text(state: GtidState) -> str:
    return ",".join(map(str, sorted(state, key=lambda gtid: gtid.domain_id)))


def _misfit(ref: LogPosition, fit: Fit, problem: str) -> Fault:
    if fit is Fit.WRONG:
        return Fault(problem, ref)
    why = "MariaDB forgets pairs that it logged before a restart in the middle of a file"
    return Fault(f"{problem}: {why}", ref, is_damage=False)


class Fit(enum.Enum):
    EQUAL = "the state is what the groups come to"
    FORGOTTEN = "it lacks what MariaDB forgets when it restarts"
    WRONG = "it contradicts the groups"


class GroupsOfFile:
    """What was logged since a file began: the state then and now, and the order of the pairs."""

    def __init__(self, base: GtidState) -> None:
        self.base = base.copy()
        self.state = base.copy()
        self._logged: dict[Pair, Gtid] = {}  # the pair that was logged last comes last

    def log(self, gtid: Gtid) -> None:
        self.state.log(gtid)
        pair = gtid.domain_id, gtid.server_id
        self._logged.pop(pair, None)
        self._logged[pair] = gtid

    @property
    def differential(self) -> GtidState:
        return GtidState(self._logged.values())

    def fit_of_differential(self, found: GtidState) -> Fit:
        return _fit(found, GtidState(), list(self._logged.values()))

    def fit_of_next_file(self, found: GtidState) -> Fit:
        """Compare the full state of the next file, which may lack whole domains without groups here."""
        base = self.base.copy()
        logged_domains = {domain_id for domain_id, _ in self._logged}
        for domain_id in base.domain_ids:
            if not found.servers(domain_id) and domain_id not in logged_domains:
                base.drop_domain(domain_id)  # FLUSH BINARY LOGS DELETE_DOMAIN_ID
        return _fit(found, base, list(self._logged.values()))


def _fit(found: GtidState, base: GtidState, logged: list[Gtid]) -> Fit:
    if found == _state_of(base, logged):
        return Fit.EQUAL
    forgotten = 0
    for index, gtid in enumerate(logged):
        if found.seq_no(gtid.domain_id, gtid.server_id) != gtid.seq_no:
            forgotten = index + 1
    return Fit.FORGOTTEN if forgotten and found == _state_of(base, logged[forgotten:]) else Fit.WRONG


def _state_of(base: GtidState, logged: Iterable[Gtid]) -> GtidState:
    state = base.copy()
    for gtid in logged:
        state.log(gtid)
    return state
