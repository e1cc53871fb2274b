"""Reads all readable groups of a damaged log, and lists what cannot be read.

Reading resumes at the next place that certainly begins a record: on the same page, if its checksum is right and the
lengths of its chunks lead to the end of its data, else on the next page with data."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ibbmaster.errors import ChunkError, FormatError, IbbMasterError, RecordError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.storage.codec.buffer import is_zero
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.disk.overlay import OverlayDisk
from ibbmaster.storage.ibb.chunk import CHUNK_HEADER_SIZE, CHUNK_SIZE_MIN, FILLER, HEADER, Chunk, ChunkEnd, next_chunk
from ibbmaster.storage.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE
from ibbmaster.storage.ibb.scan import last_chunk, page_chunks
from .cursor import ChunkCursor
from .event_groups import ChunkChecks, EventGroupReader
from .other_records import check_other_record, check_rest
from .pages import PageReader
from .states import FULL_STATE_PAGE, check_continuation, read_state_record

CHUNK_CHECKS = ChunkChecks(check_other_record, check_rest)
PAGES_PER_LOOK = 64
PAGE_TRIES_MAX = 4  # each reads all of the page, and chance damages less


@dataclass(slots=True, kw_only=True)
class Loss:
    """Something unreadable, or without a place in the log: pages `first_page` to `last_page` of a file; without a file
    a group, or the whole redo log. `after` and `before` are the groups read around it."""

    reason: str
    file_name: str | None = None
    first_page: int = 0
    last_page: int = 0
    gtid: str | None = None
    after: str | None = None
    before: str | None = None

    def __str__(self) -> str:
        parts = []
        if self.file_name is not None:
            pages = f"page {self.first_page}"
            if self.last_page > self.first_page:
                pages = f"pages {self.first_page} to {self.last_page}"
            parts.append(f"{self.file_name} {pages}")
        if self.gtid is not None:
            parts.append(f"group {self.gtid}")
        around = ""
        if self.after is not None:
            around = f"; last group before it {self.after or 'none'}, first behind it {self.before or 'none'}"
        return f"{', '.join(parts)}{': ' if parts else ''}{self.reason}{around}"


class DamagedLog:
    """Reads a log; reports each loss to `lost` when found. `numbers` are those of its files."""

    def __init__(self, disk: ReadDisk, lost: Callable[[Loss], None]) -> None:
        self._disk = disk
        self._lost = lost
        self._noted: set[tuple[int, int, str]] = set()
        self._tries = (-1, -1, 0)  # of a page: how often reading began again on it
        self._state: GtidState | None = None  # what was logged so far, where nothing is missing
        self._base = GtidState()  # with which the file before began
        self.numbers = sorted(number for name in disk.list() if (number := parse_file_name(name)) is not None)

    @property
    def first(self) -> LogPosition | None:
        return LogPosition.on_page(self.numbers[0], FULL_STATE_PAGE) if self.numbers else None

    def group_at(self, group: EventGroup) -> EventGroup | None:
        reader = EventGroupReader(self._disk, file_no=group.start.file_no, page_no=FULL_STATE_PAGE)
        reader.continue_at(group.start, (), is_inside_record=False)
        return reader.next_group()

    def groups(self, start: LogPosition, *, end: LogPosition | None = None) -> Iterator[EventGroup]:
        """The groups that begin after the start of a page and before `end`; each body is read once."""
        for index, file_no in enumerate(self.numbers):
            if file_no < start.file_no or (end is not None and (file_no, PAGE_SIZE) >= end):
                continue
            if index and file_no > start.file_no:
                for missing in range(self.numbers[index - 1] + 1, file_no):
                    self._state = None
                    self._lost(Loss(reason=f"{format_file_name(missing)} is missing"))
            limit = LogPosition(file_no + 1, 0)
            page_no = start.page_no if file_no == start.file_no else FULL_STATE_PAGE
            yield from self._groups_of_file(file_no, page_no, limit if end is None else min(end, limit))

    def _groups_of_file(self, file_no: int, first_page: int, end: LogPosition) -> Iterator[EventGroup]:
        if first_page == FULL_STATE_PAGE:
            self._check_start(file_no)
        else:
            self._state = None
        gap_no, alone = self._last_gap(file_no), _Until(self._disk, file_no)
        began: LogPosition | None = LogPosition.on_page(file_no, first_page)
        given = -1  # offset of the last group that was yielded
        while began is not None and began < end:
            disk = self._disk if began.page_no > gap_no else alone
            reader = EventGroupReader(disk, file_no=file_no, page_no=began.page_no, end=end, other_checks=CHUNK_CHECKS)
            if began.page_offset:
                reader.continue_at(began, (), is_inside_record=False)
            problem: IbbMasterError | None = None
            while True:
                try:
                    group = reader.next_group()
                except RecordError as error:
                    if self._skip_record(reader, error):
                        continue
                    problem = error
                    break
                except IbbMasterError as error:
                    problem = error
                    break
                if group is None:
                    break
                if group.start.offset > given:
                    given = group.start.offset
                    if self._state is not None and group.gtid is not None:
                        self._state.log(group.gtid)
                    yield group
            began = self._resume(began, reader, problem, end)

    def _last_gap(self, file_no: int) -> int:
        """The last page without data before its end: a record may cross into the next file only after it."""
        name = format_file_name(file_no)
        size_pages = self._disk.size(name) // PAGE_SIZE
        for end in range(size_pages, FULL_STATE_PAGE, -PAGES_PER_LOOK):
            first = max(end - PAGES_PER_LOOK, FULL_STATE_PAGE)
            try:
                data = memoryview(self._disk.read(name, first * PAGE_SIZE, (end - first) * PAGE_SIZE))
            except StoreError:
                return end - 1
            for page_no in reversed(range(first, end)):
                start = (page_no - first) * PAGE_SIZE
                if not _is_full(data[start : start + PAGE_SIZE], file_no, page_no):
                    return page_no
        return FULL_STATE_PAGE - 1

    def _check_start(self, file_no: int) -> None:
        location = LogPosition.on_page(file_no, FULL_STATE_PAGE)
        found: GtidState | None = None
        try:
            record = read_state_record(PageReader(self._disk), file_no, FULL_STATE_PAGE)
            found = None if record is None else GtidState(record.gtids)
            if found is not None and self._state is not None:
                check_continuation(found, self._state, location, base=self._base)
        except RecordError as error:
            self._note(error.location, error.location.page_no, error.problem)
        except IbbMasterError:
            found = None  # the reader meets the same
        self._state, self._base = found, GtidState() if found is None else found.copy()

    def _skip_record(self, reader: EventGroupReader, error: RecordError) -> bool:
        location = error.location
        cursor = ChunkCursor.at(PageReader(self._disk), location)
        try:
            chunk = cursor.next_chunk()
            if chunk is None or not chunk.is_first or not cursor.skip_record(chunk):
                return False
        except IbbMasterError:
            return False
        is_here = cursor.file_no == location.file_no
        self._note(location, cursor.page_no if is_here else location.page_no, error.problem)
        if cursor.position <= reader.position:
            return False
        reader.continue_at(cursor.position, (), is_inside_record=False)
        return True

    def _resume(
        self, began: LogPosition, reader: EventGroupReader, problem: IbbMasterError | None, end: LogPosition
    ) -> LogPosition | None:
        file_no, at = began.file_no, reader.position
        if at.file_no != file_no:
            return None
        if problem is None:
            return self._behind_the_end(at, reader.stopped_at, end)
        location = LogPosition.on_page(file_no, max(at.page_no, began.page_no))
        if isinstance(problem, FormatError) and problem.location >= LogPosition.on_page(file_no, began.page_no):
            location = problem.location
        reason = problem.problem if isinstance(problem, FormatError) else str(problem)
        following: LogPosition | None = None
        if location.file_no == file_no:
            is_chunk = isinstance(problem, ChunkError)
            following = self._next_record(location, began) if is_chunk else None
            if following is None and is_chunk and location.page_no > began.page_no:
                following = LogPosition.on_page(file_no, location.page_no)  # what was before it is missing
            if following is None:
                following = self._next_page(file_no, max(location.page_no, began.page_no))
        self._note(location, _last_lost(location, following), reason)
        return following

    def _behind_the_end(self, at: LogPosition, stopped_at: LogPosition | None, end: LogPosition) -> LogPosition | None:
        """The next data after zeros; `at` is before a record without an end, or the zeros."""
        if at >= end or stopped_at is None:
            return None
        following: LogPosition | None = None
        if stopped_at.file_no == at.file_no:
            following = self._next_record(stopped_at, at) or self._next_page(at.file_no, stopped_at.page_no)
        if following is not None and following >= end:
            following = None
        is_inside = at.page_offset <= DATA_SIZE - CHUNK_SIZE_MIN and (  # a chunk begins there
            self._disk.read(format_file_name(at.file_no), at.offset, 1) not in (b"", b"\0", b"\xff")
        )
        page = self._disk.read(format_file_name(stopped_at.file_no), stopped_at.page_no * PAGE_SIZE, PAGE_SIZE)
        is_cut = not is_zero(page[stopped_at.page_offset : DATA_SIZE])
        if following is not None or is_inside or is_cut:
            reason = "zeros, and the log goes on behind them"
            if is_inside:
                reason = "a record without its end"
            elif following is None:
                reason = "zeros, and bytes behind them on the same page"
            first = LogPosition.on_page(at.file_no, at.page_no)
            last = stopped_at.page_no if following is None and stopped_at.file_no == at.file_no else at.page_no
            self._note(first, max(last, _last_lost(first, following)), reason)
        return following

    def _next_record(self, damaged: LogPosition, behind: LogPosition) -> LogPosition | None:
        """Where a record begins on the page of a wrong chunk, after a place, if all sizes of chunks lead to the end of
        its data."""
        file_no, page_no, tries = self._tries
        tries = tries + 1 if (file_no, page_no) == (damaged.file_no, damaged.page_no) else 1
        self._tries = (damaged.file_no, damaged.page_no, tries)
        if tries > PAGE_TRIES_MAX:
            return None
        page_of = {"file_no": damaged.file_no, "page_no": damaged.page_no}
        try:
            page = PageReader(self._disk).page(**page_of)
            offset = damaged.page_offset
            if page is None or offset > DATA_SIZE - CHUNK_SIZE_MIN:
                return None
            if not _is_chunk(page, offset):
                size = HEADER.unpack_from(page, offset)[1]
                offset += CHUNK_HEADER_SIZE + size
                if not size or offset > DATA_SIZE:
                    return None
            chunks = list(page_chunks(page, offset, **page_of))
        except FormatError:
            return None
        rest = page[chunks[-1].end_offset if chunks else offset : DATA_SIZE]
        if len(rest) >= CHUNK_SIZE_MIN and rest[0] != FILLER and not is_zero(rest):
            return None
        start = damaged.page_no * PAGE_SIZE
        places = (LogPosition(damaged.file_no, start + chunk.page_offset) for chunk in chunks if chunk.is_first)
        return next((place for place in places if place > behind), None)

    def _next_page(self, file_no: int, behind: int) -> LogPosition | None:
        name, page_no = format_file_name(file_no), behind + 1
        try:
            while True:
                page_no = max(page_no, self._disk.next_data(name, page_no * PAGE_SIZE) // PAGE_SIZE)
                data = self._disk.read(name, page_no * PAGE_SIZE, PAGES_PER_LOOK * PAGE_SIZE)
                if len(data) < PAGE_SIZE:
                    return None
                if not is_zero(data):
                    blank_pages = (len(data) - len(data.lstrip(b"\0"))) // PAGE_SIZE
                    return LogPosition.on_page(file_no, page_no + blank_pages)
                page_no += PAGES_PER_LOOK
        except StoreError:  # the reader meets the same, and continues after it
            return LogPosition.on_page(file_no, page_no) if page_no * PAGE_SIZE < self._disk.size(name) else None

    def _note(self, location: LogPosition, last_page: int, reason: str) -> None:
        self._state = None
        key = location.file_no, location.page_no, reason
        if key not in self._noted:
            self._noted.add(key)
            name, last_page = format_file_name(location.file_no), max(last_page, location.page_no)
            self._lost(Loss(reason=reason, file_name=name, first_page=location.page_no, last_page=last_page))


def _last_lost(first: LogPosition, following: LogPosition | None) -> int:
    if following is None:
        return first.page_no
    return following.page_no if following.page_offset else following.page_no - 1


def _is_chunk(page: memoryview, offset: int) -> bool:
    try:
        return isinstance(next_chunk(page, offset, file_no=0, page_no=0), Chunk)
    except ChunkError:
        return False


def _is_full(page: memoryview, file_no: int, page_no: int) -> bool:
    try:
        return last_chunk(page, file_no=file_no, page_no=page_no)[1] is ChunkEnd.PAGE_FULL
    except FormatError:
        return True  # the reader meets the same


class _Until(OverlayDisk):
    def __init__(self, disk: ReadDisk, last_file_no: int) -> None:
        super().__init__(disk)
        self._gone = {name for name in disk.list() if (parse_file_name(name) or 0) > last_file_no}
