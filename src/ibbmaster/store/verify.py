"""Everything that can be wrong in a directory of binlog files, each fault with its place.

Reads every page once, in order, and goes on behind damage at the next page. What a fault
has made unknown is not compared: the GTID state is known again at the next file.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ibbmaster.errors import EventError, FormatError, IbbMasterError, Location, StoreError
from ibbmaster.event.split import EventSplitter
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.ibb.chunk import CHUNK_SIZE_MIN, FILLER, Chunk, ChunkEnd, RecordType, next_chunk
from ibbmaster.ibb.commit import HEADER_SIZE_MAX, decode_commit_header
from ibbmaster.ibb.file_header import FileHeader, decode_file_header
from ibbmaster.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.ibb.gtid_state import decode_gtid_state
from ibbmaster.ibb.oob import decode_oob_node
from ibbmaster.ibb.page import DATA_SIZE, PAGE_SIZE, is_blank, verify_page
from ibbmaster.ibb.record import RecordRef
from ibbmaster.ibb.xa import decode_xa_complete, decode_xa_prepare
from ibbmaster.kernel.loading import kernels
from ibbmaster.store.cursor import NESTABLE
from ibbmaster.store.disk import Disk
from ibbmaster.store.event_groups import GTID_EVENT_SIZE_MAX, decode_first_event
from ibbmaster.store.out_of_band import OutOfBandReader
from ibbmaster.store.page_checks import Checked, PageChecks, node_head
from ibbmaster.store.states import FULL_STATE_PAGE

BLOCK_PAGES = 128
BLANK_BLOCK = bytes(BLOCK_PAGES * PAGE_SIZE)
HEAD_SIZE = HEADER_SIZE_MAX + GTID_EVENT_SIZE_MAX  # of a record, held to judge how it begins
STATE_SIZE_MAX = 64 << 20  # of a GTID state record: some millions of pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong; `location` is None for what concerns a whole file or the directory."""

    problem: str
    location: Location | None = None

    def __str__(self) -> str:
        return self.problem if self.location is None else f"{self.location}: {self.problem}"


@dataclass(slots=True)
class Totals:
    """What was read."""

    files: int = 0
    pages: int = 0
    groups: int = 0
    oob_records: int = 0

    def add(self, other: Totals) -> None:
        """Count what was read elsewhere."""
        self.files += other.files
        self.pages += other.pages
        self.groups += other.groups
        self.oob_records += other.oob_records


def verify(
    disk: Disk,
    totals: Totals,
    *,
    others: Sequence[Disk] = (),
    on_pages: Callable[[int], object] = lambda count: None,
) -> Iterator[Fault]:
    """Yield every fault of a directory, in the order of the files.

    `others` are the same directory, once for each further thread that shall check a part of
    the log at the same time. `totals` counts along; `on_pages` hears how many more pages
    were read.

    Raises:
        StoreError: there are no binlog files, or the directory cannot be read.
    """
    numbers = sorted(number for name in disk.list() if (number := parse_file_name(name)) is not None)
    if not numbers:
        raise StoreError(f"{disk}: no binlog files (binlog-000000.ibb and so on)")
    disks = [disk, *others][: len(numbers)]
    count = len(disks)
    starts = [len(numbers) * part // count for part in range(count)] + [len(numbers)]
    parts = [numbers[start : end + 1] for start, end in itertools.pairwise(starts)]  # and the first of the next part

    def check(part: list[int], index: int) -> tuple[list[Fault], Totals]:
        part_totals = Totals()
        verifier = _Verifier(disks[index], part_totals, on_pages)
        return list(verifier.check_files(part, is_last=index == count - 1)), part_totals

    if count == 1:
        yield from _Verifier(disk, totals, on_pages).check_files(numbers, is_last=True)
        return
    told: set[Fault] = set()  # what is wrong where two parts meet may be found by both
    with ThreadPoolExecutor(count, thread_name_prefix="ibbmaster-verify") as executor:
        for faults, part_totals in executor.map(check, parts, range(count)):
            yield from (fault for fault in faults if fault not in told)
            told = set(faults)
            totals.add(part_totals)


class _Record:
    """One record while its chunks come in. Its head is held; the events behind it are checked as they pass."""

    def __init__(self, record_type: int, ref: RecordRef) -> None:
        self.record_type = record_type
        self.ref = ref
        self.head = bytearray()
        self.is_open = False  # the head was judged
        self.events: EventSplitter | None = None


class _Verifier:
    """What is known while the pages pass."""

    def __init__(self, disk: Disk, totals: Totals, on_pages: Callable[[int], object]) -> None:
        self._disk = disk
        self._totals = totals
        self._on_pages = on_pages
        self._out_of_band = OutOfBandReader(disk)
        self._record: _Record | None = None
        self._nested: _Record | None = None
        self._state: GtidState | None = None  # what was logged; None: not known
        self._differential: GtidState | None = None
        self._waiting_states: list[tuple[RecordRef, bytes]] = []  # inside a commit record whose GTID is not known yet
        self._header: FileHeader | None = None
        self._is_lost = True  # the next page may begin inside a record
        self._is_joint = False  # the file at hand is another verifier's, but for its begin
        self._checks: PageChecks | None = None  # once the kernels are ready
        self._was_blank = False  # the file before was pre-allocated and never used

    def lose_track(self) -> None:
        """Forget what a fault has made doubtful."""
        self._record = self._nested = None
        self._waiting_states.clear()
        self._state = self._differential = None
        self._is_lost = True

    def check_files(self, numbers: list[int], *, is_last: bool) -> Iterator[Fault]:
        """Check files in order; unless they are the last, the last one only to where the one before it has ended."""
        for index, file_no in enumerate(numbers):
            is_joint = not is_last and index == len(numbers) - 1
            if index and file_no != numbers[index - 1] + 1:
                missing = format_file_name(numbers[index - 1] + 1)
                yield Fault(problem=f"{missing} is missing before {format_file_name(file_no)}")
                self.lose_track()
            try:
                self._is_joint = is_joint
                yield from self.check_file(file_no)
            except IbbMasterError as error:
                yield Fault(problem=str(error))
                self.lose_track()
        if is_last:
            yield from self.finish()

    def finish(self) -> Iterator[Fault]:
        """The log ends here."""
        if self._record is not None:
            yield Fault(location=self._record.ref.location, problem="the log ends inside this record")

    def check_file(self, file_no: int) -> Iterator[Fault]:
        name = format_file_name(file_no)
        size = self._disk.size(name)
        self._totals.files += not self._is_joint
        if size % PAGE_SIZE:
            yield Fault(problem=f"{name}: {size} bytes are no whole number of pages of {PAGE_SIZE} bytes")
        header_page = self._disk.read(name, 0, PAGE_SIZE)
        header = None
        try:
            header = decode_file_header(header_page, file_no=file_no)
            if len(header_page) == PAGE_SIZE:
                verify_page(header_page, Location(file_no=file_no, page_no=0))
        except FormatError as error:
            yield Fault(location=error.location, problem=error.problem)
            self.lose_track()
        self._count_pages(1)
        is_blank_file = header is None and is_blank(header_page)
        if self._was_blank and not is_blank_file:
            yield Fault(problem=f"{name}: the file before it was never used")
        self._was_blank = is_blank_file
        if header is not None and size > header.size_pages * PAGE_SIZE:
            yield Fault(problem=f"{name}: {size // PAGE_SIZE} pages, but its header says {header.size_pages}")
        self._header = header
        yield from self._check_pages(file_no, name, is_blank_file=is_blank_file)

    def _check_pages(self, file_no: int, name: str, *, is_blank_file: bool) -> Iterator[Fault]:
        ended_at: Location | None = None
        has_complained = False
        page_no, offset = 1, 0
        block = bytearray(BLOCK_PAGES * PAGE_SIZE)
        while (count := self._read_pages(name, page_no, block)) > 0:
            if count == BLOCK_PAGES and not offset and block == BLANK_BLOCK:
                ended_at = ended_at or Location(file_no=file_no, page_no=page_no)
                page_no += BLOCK_PAGES
                self._count_pages(BLOCK_PAGES)
                continue
            if self._checks is None and (ready := kernels()) is not None:
                self._checks = PageChecks(ready)
            index = 0
            while index < count:
                if self._is_joint and (index or offset) and self._record is None and self._nested is None:
                    return
                if (
                    self._checks is not None
                    and not self._is_joint
                    and self._is_between_records
                    and ended_at is None
                    and not is_blank_file
                ):
                    checked = self._checks.check(block, count, index, offset)
                    yield from self._take_checked(checked, block, Location(file_no=file_no, page_no=page_no))
                    index, offset = checked.page, checked.offset
                    if index == count or (index and checked.is_cut):
                        break  # with the next block, which begins with what is at hand
                page = bytes(block[index * PAGE_SIZE : (index + 1) * PAGE_SIZE])
                location = Location(file_no=file_no, page_no=page_no + index)
                if not offset:
                    if is_blank(page):
                        ended_at = ended_at or location
                        index += 1
                        continue
                    try:
                        verify_page(page, location)
                    except FormatError as error:
                        yield Fault(location=error.location, problem=error.problem)
                        self.lose_track()
                        index += 1
                        continue
                    if (is_blank_file or ended_at is not None) and not has_complained:
                        has_complained = True
                        where = (
                            "behind the header of an unused file" if is_blank_file else f"behind its end at {ended_at}"
                        )
                        yield Fault(location=location, problem=f"data {where}")
                        self.lose_track()
                ended, offset = yield from self._check_page(memoryview(page), file_no, location.page_no, offset)
                if ended is not None and ended_at is None:
                    ended_at = ended
                index += not offset
            page_no += index
            self._count_pages(index)

    def _read_pages(self, name: str, page_no: int, block: bytearray) -> int:
        """Fill a block; returns how many whole pages there are."""
        return (self._disk.read_into(name, page_no * PAGE_SIZE, memoryview(block)) or 0) // PAGE_SIZE

    @property
    def _is_between_records(self) -> bool:
        return self._record is None and self._nested is None and not self._is_lost

    def _take_checked(self, checked: Checked, block: bytearray, first: Location) -> Iterator[Fault]:
        """Note what was checked at once, in a block that begins with page `first`."""
        self._totals.groups += checked.groups
        self._totals.oob_records += len(checked.nodes)
        for gtid in checked.gtids:
            self._log(gtid)
        for node in checked.nodes:
            page, offset, size, _ = node
            location = Location(file_no=first.file_no, page_no=first.page_no + page, page_offset=offset)
            try:
                _, header_size = decode_oob_node(node_head(block, node), location)
                if header_size == size:
                    yield Fault(location=location, problem="an out-of-band record without data")
            except FormatError as error:
                yield Fault(location=error.location, problem=error.problem)

    def _count_pages(self, count: int) -> None:
        if self._is_joint:
            return
        self._totals.pages += count
        self._on_pages(count)

    def _check_page(
        self, page: memoryview, file_no: int, page_no: int, offset: int
    ) -> Generator[Fault, None, tuple[Location | None, int]]:
        """The chunks of one page from a place on.

        Returns where its data ends, if that is before the page does; and where to go on, 0
        for the next page: behind the first record, if others can be checked faster.
        """
        while True:
            here = Location(file_no=file_no, page_no=page_no, page_offset=offset)
            try:
                found = next_chunk(page, offset, file_no=file_no, page_no=page_no)
                if found is ChunkEnd.PAGE_FULL:
                    yield from self._check_filler(page, here)
                    return None, 0
                if found is ChunkEnd.NO_DATA:
                    if any(page[offset:DATA_SIZE]):
                        yield Fault(location=here, problem="bytes that are not zero behind the end of data")
                    return here, 0
                assert isinstance(found, Chunk)
                ref = RecordRef(file_no, page_no * PAGE_SIZE + offset)
                yield from self._take_chunk(found, ref)
                offset = found.end_offset
                if self._is_joint and self._record is None and self._nested is None:
                    return None, offset
                if self._checks is not None and self._is_between_records:
                    return None, offset
            except FormatError as error:
                yield Fault(location=error.location, problem=error.problem)
                self.lose_track()
                return None, 0

    def _check_filler(self, page: memoryview, here: Location) -> Iterator[Fault]:
        rest = bytes(page[here.page_offset : DATA_SIZE])
        if len(rest) >= CHUNK_SIZE_MIN:
            problem = f"{len(rest)} bytes of filler: at most {CHUNK_SIZE_MIN - 1} can be needed"
            yield Fault(location=here, problem=problem)
        elif rest.strip(bytes((FILLER,))).strip(b"\0"):
            yield Fault(location=here, problem=f"filler is {rest.hex(' ')}, expected ff")

    def _take_chunk(self, chunk: Chunk, ref: RecordRef) -> Iterator[Fault]:
        if self._nested is not None:
            yield from self._continue(self._nested, chunk, ref)
            if chunk.is_last:
                self._nested = None
        elif self._record is None:
            if not chunk.is_first:
                if not self._is_lost:
                    yield Fault(location=ref.location, problem="a record continues that has not begun")
                return
            if chunk.record_type not in NESTABLE:  # one of those may stand inside a record that began earlier
                self._is_lost = False
            self._record = _Record(chunk.record_type, ref)
            yield from self._add(self._record, chunk)
            if chunk.is_last:
                self._record = None
        elif chunk.record_type != self._record.record_type:
            if chunk.record_type not in NESTABLE or not chunk.is_first:
                inside = f"inside one of type {self._record.record_type}"
                yield Fault(location=ref.location, problem=f"a record of type {chunk.record_type} {inside}")
                self.lose_track()
                return
            nested = _Record(chunk.record_type, ref)
            yield from self._add(nested, chunk)
            self._nested = None if chunk.is_last else nested
        else:
            yield from self._continue(self._record, chunk, ref)
            if chunk.is_last:
                self._record = None

    def _continue(self, record: _Record, chunk: Chunk, ref: RecordRef) -> Iterator[Fault]:
        if chunk.is_first or chunk.record_type != record.record_type:
            yield Fault(location=ref.location, problem=f"a record begins before the one at {record.ref} has ended")
            self.lose_track()
            return
        yield from self._add(record, chunk)

    def _add(self, record: _Record, chunk: Chunk) -> Iterator[Fault]:
        """Take the data of one chunk; judge the record's head once it is there."""
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
        except FormatError as error:
            yield Fault(location=error.location, problem=error.problem)
        except EventError as error:
            yield Fault(location=record.ref.location, problem=f"commit record: {error}")
            record.events = None

    def _pass_events(self, record: _Record, data: memoryview) -> None:
        if record.events is not None:
            for _ in record.events.feed(data):
                pass

    def _open(self, record: _Record, *, is_whole: bool) -> Iterator[Fault]:
        head, location = record.head, record.ref.location
        match record.record_type:
            case RecordType.COMMIT:
                yield from self._open_commit(record)
            case RecordType.GTID_STATE:
                if self._is_inside_unknown_commit(record):
                    self._waiting_states.append((record.ref, bytes(head)))
                else:
                    yield from self._check_state(record.ref, head)
            case RecordType.OOB_DATA:
                self._totals.oob_records += 1
                _, size = decode_oob_node(head, location)
                if is_whole and size == len(head):
                    yield Fault(location=location, problem="an out-of-band record without data")
            case RecordType.XA_PREPARE:
                decode_xa_prepare(head, location)
            case RecordType.XA_COMPLETE:
                decode_xa_complete(head, location)
            case RecordType.DUMMY:
                if head.strip(bytes((FILLER,))):
                    yield Fault(location=location, problem="a dummy record with other bytes than ff")

    def _is_inside_unknown_commit(self, record: _Record) -> bool:
        """Whether a state record interrupts a commit record whose GTID it counts, but we do not know yet."""
        outer = self._record
        return (
            outer is not None and outer is not record and outer.record_type == RecordType.COMMIT and not outer.is_open
        )

    def _open_commit(self, record: _Record) -> Iterator[Fault]:
        ref, head = record.ref, bytes(record.head)
        header, size = decode_commit_header(head, ref.location)
        gtid, event_end = decode_first_event(head, size, ref)
        self._totals.groups += 1
        if gtid is not None:
            self._log(gtid)
        for state_ref, data in self._waiting_states:
            yield from self._check_state(state_ref, data)
        self._waiting_states.clear()
        events = EventSplitter()
        for stream in header.streams:
            if self._header is not None and stream.first.file_no < self._header.oob_file_no:
                oldest = format_file_name(self._header.oob_file_no)
                problem = f"refers to {stream.first}, but the file header says nothing older than {oldest} is needed"
                yield Fault(location=ref.location, problem=problem)
            try:
                for piece in self._out_of_band.data(stream, ref):
                    for _ in events.feed(piece):
                        pass
            except FormatError as error:
                yield Fault(location=ref.location, problem=f"the out-of-band data of group {gtid}: {error}")
                return
        events.finish()
        if header.streams and event_end != len(head):
            yield Fault(location=ref.location, problem="events both in the commit record and out of band")
        record.events = EventSplitter()
        self._pass_events(record, memoryview(head)[event_end:])

    def _log(self, gtid: Gtid) -> None:
        for state in (self._state, self._differential):
            if state is not None:
                state.log(gtid)

    def _check_state(self, ref: RecordRef, data: bytes | bytearray) -> Iterator[Fault]:
        """Compare a state record with what the groups before it come to."""
        found = GtidState(decode_gtid_state(data, ref.location).gtids)
        if ref.page_offset:
            yield Fault(location=ref.location, problem="a GTID state record that does not begin a page")
        if ref.page_no == FULL_STATE_PAGE:
            is_very_first = ref.file_no == 0 and not len(found)
            if self._state is not None and found != self._state and not is_very_first:
                problem = f"GTID state is [{found}], the groups come to [{self._state}]"
                yield Fault(location=ref.location, problem=problem)
            if self._state is None or not is_very_first:
                self._state = found
            self._differential = GtidState()
        elif self._differential is not None and found != self._differential:
            computed = self._differential
            problem = f"differential GTID state is [{found}], the groups of this file come to [{computed}]"
            yield Fault(location=ref.location, problem=problem)
