"""Decides whether a log really ends where nothing was written: protocol/ibb/record.md."""

import contextlib
import threading
import time
from collections.abc import Callable

from ibbmaster.errors import ChunkError, FormatError, IbbMasterError, MissingFileError
from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import is_zero
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.ibb.chunk import ChunkEnd, RecordType
from ibbmaster.storage.ibb.file_header import decode_file_header
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE, is_blank, verify_page
from ibbmaster.storage.ibb.scan import last_chunk
from .pages import PageReader

BLOCK_PAGES = 64
STILL_S = 0.5  # between two looks behind a writer that stands
PATIENCE_S = 5.0  # pages of a writer may reach the disk in another order
NEAR_PAGES = 256  # after the end, looked at again when the file was changed
STEP_PAGES = 1024  # of those farther away, at a time
FORGOTTEN_S = 60.0  # a reader's stop, noted anew if it matters


def cut_error(disk: ReadDisk, file_no: int) -> ChunkError | None:
    """The error for a file that lost its end, else None. Raises ChecksumError, HeaderError: a page is damaged."""
    pages = PageReader(disk, readahead_pages_max=1)
    header = pages.header(file_no)
    if header is None:
        return None
    size = disk.size(format_file_name(file_no))
    size_pages = size // PAGE_SIZE
    if size >= header.size_pages * PAGE_SIZE:
        return None
    last = pages.page(file_no, size_pages - 1) if size_pages > 1 and not size % PAGE_SIZE else None
    if last is not None and is_ended(last, file_no=file_no, page_no=size_pages - 1):
        return None
    return ChunkError(
        LogPosition.on_page(file_no, size_pages),
        f"the file has {size} bytes, its header says {header.size_pages * PAGE_SIZE}, and no FLUSH has ended it here: "
        "what was behind is lost; take this file from a backup",
    )


def check_not_cut(disk: ReadDisk, file_no: int) -> None:
    if (error := cut_error(disk, file_no)) is not None:
        raise error


def is_ended(page: memoryview, *, file_no: int, page_no: int) -> bool:
    """Whether a page is not full, so nothing followed it, or FLUSH filled it with a dummy record or filler."""
    try:
        last, end = last_chunk(page, file_no=file_no, page_no=page_no)
    except FormatError:
        return True  # who reads the page meets the same
    return (
        end is ChunkEnd.NO_DATA or last is None or last.record_type == RecordType.DUMMY or last.end_offset < DATA_SIZE
    )


def page_behind(disk: ReadDisk, end: LogPosition, *, pages_max: int | None = None) -> LogPosition | None:
    """The first page after `end`, in its file and the next one, that has data; `end` if its own page has. Holes cost
    nothing; `pages_max` limits the pages, and leaves out the next file."""
    found = page_behind_in_file(disk, end, pages_max)
    return found if found is not None or pages_max is not None else _in_next_file(disk, end)


def page_behind_in_file(disk: ReadDisk, end: LogPosition, pages_max: int | None = None) -> LogPosition | None:
    """As `page_behind`, in the file of `end` alone."""
    if end.page_offset:
        page = disk.read(format_file_name(end.file_no), end.page_no * PAGE_SIZE, PAGE_SIZE)
        if not is_zero(page[end.page_offset : DATA_SIZE]):
            return end
    first = LogPosition.on_page(end.file_no, end.page_no + bool(end.page_offset))
    return first_data(disk, first, pages_max=pages_max)


def first_data(disk: ReadDisk, first: LogPosition, *, pages_max: int | None = None) -> LogPosition | None:
    name, page_no = format_file_name(first.file_no), first.page_no
    while pages_max is None or page_no < first.page_no + pages_max:
        page_no = max(page_no, disk.next_data(name, page_no * PAGE_SIZE) // PAGE_SIZE)
        block = disk.read(name, page_no * PAGE_SIZE, BLOCK_PAGES * PAGE_SIZE)
        if not block:
            break
        if not is_zero(block):
            while is_zero(block[:PAGE_SIZE]):
                block = block[PAGE_SIZE:]
                page_no += 1
            return LogPosition.on_page(first.file_no, page_no)
        page_no += BLOCK_PAGES
    return None


def gap_error(end: LogPosition, found: LogPosition, *, after: Gtid | None = None) -> ChunkError:
    """The error where the log stops, after the group `after`, and continues at `found`."""
    last = "" if after is None else f"; the last group before it is {after}"
    if found == end:
        return ChunkError(end, f"nothing was written here, but there are bytes behind it on the same page{last}")
    return ChunkError(
        end,
        f"nothing was written here, but {format_file_name(found.file_no)} page {found.page_no} has data: what belongs "
        f"in between is lost; take this file from a backup{last}",
    )


def check_reached(
    disk: ReadDisk, stopped_at: LogPosition | None, end: LogPosition, *, after: Gtid | None = None
) -> None:
    """Raises ChunkError, MissingFileError: a reader stopped, unless at None, before the log's known `end`."""
    if stopped_at is None or stopped_at >= end:
        return
    if (name := format_file_name(stopped_at.file_no)) not in disk.list():
        raise MissingFileError(f"{disk}: {name} is missing: the log reaches to {end}")
    found = page_behind_in_file(disk, stopped_at)
    if found is not None and found < end:
        raise gap_error(stopped_at, found, after=after)
    raise short_error(stopped_at, end, "" if after is None else f"; the last group before it is {after}")


def short_error(stopped_at: LogPosition, end: LogPosition, more: str = "") -> ChunkError:
    """The error where nothing is written before the known `end` of the log; `more` ends the text."""
    return ChunkError(
        stopped_at,
        f"nothing is written here, but the log reaches to {end}: what belongs in between is lost; "
        f"take this file from a backup{more}",
    )


class _Look:
    def __init__(self, disk: ReadDisk) -> None:
        self._disk = disk
        self.end: LogPosition | None = None
        self.next_at = 0.0
        self.found: LogPosition | None = None
        self.found_at = 0.0
        self.cut: ChunkError | None = None
        self._modified_at: float | None = None  # when the nearest pages were looked at
        self._looked_to = LogPosition.on_page(-1, 0)  # earlier pages of the file were looked at

    def move(self, end: LogPosition, now: float, next_at: float) -> None:
        self.end, self._modified_at, self.cut = end, None, None
        self.next_at = next_at
        if end.file_no != self._looked_to.file_no:
            self._looked_to = LogPosition.on_page(end.file_no, end.page_no)
        self.found_at = now
        if self.found is not None and self.found <= end:
            self.found = None

    def look(self, end: LogPosition, now: float) -> None:
        found = self._next_found(end)
        if self.found is None and found is not None:
            self.found, self.found_at = found, now

    def _next_found(self, end: LogPosition) -> LogPosition | None:
        name = format_file_name(end.file_no)
        found = None
        modified_at = self._disk.modified_at(name)
        if modified_at != self._modified_at:
            self._modified_at = modified_at
            found = page_behind_in_file(self._disk, end, NEAR_PAGES) or _in_next_file(self._disk, end, NEAR_PAGES)
            self.cut = cut_error(self._disk, end.file_no)
        first = self._looked_to
        page_no = self._disk.next_data(name, first.page_no * PAGE_SIZE) // PAGE_SIZE
        first = LogPosition.on_page(end.file_no, max(page_no, first.page_no, end.page_no + 1))
        self._looked_to = LogPosition.on_page(end.file_no, first.page_no + STEP_PAGES)
        return found or first_data(self._disk, first, pages_max=STEP_PAGES)


def _in_next_file(disk: ReadDisk, end: LogPosition, pages_max: int | None = None) -> LogPosition | None:
    first = LogPosition.on_page(end.file_no + 1, 0)
    return first_data(disk, first, pages_max=pages_max) if format_file_name(first.file_no) in disk.list() else None


class EndWatch:
    """Judges the places where readers of a log find nothing. Thread-safe.

    A reader that finds nothing before the `known_end` has met damage: at once if the log's owner knows it
    (`is_certain`), or the file was not written for a while; otherwise later, since pages of another process may arrive
    in another order. Unless it is certain, readers look behind an end that does not move: once at every page of its
    file, and at the nearest again whenever the file was changed. A reader in a file that has not begun does not move
    that end. `clock` measures seconds, `now` seconds since 1970, as files have them."""

    def __init__(
        self,
        disk: ReadDisk,
        *,
        known_end: Callable[[], LogPosition | None] = lambda: None,
        is_certain: bool = False,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.known_end = known_end
        self._disk = disk
        self._is_certain = is_certain
        self._clock = clock
        self._now = now
        self._lock = threading.Lock()
        self._at_end = _Look(disk)
        self._ahead = _Look(disk)  # in a file that is ready before it is needed
        self._short: dict[LogPosition, float] = {}  # readers' stops before the known end, and since when

    def check(self, end: LogPosition, known_end: LogPosition | None = None, *, after: Gtid | None = None) -> None:
        """A reader found nothing at `end`, having asked for the `known_end`. Raises ChunkError, MissingFileError."""
        if known_end is not None and end < known_end:
            if self._is_certain or self._is_over(end):
                check_reached(self._disk, end, known_end, after=after)
        elif not self._is_certain:
            with contextlib.suppress(MissingFileError):  # there is no log yet, or it was purged or reset
                self._look_behind(end, after)

    def expects_more(self, end: LogPosition) -> bool:
        """Whether more comes after a place where a reader found nothing: `check` will say so later."""
        known_end = self.known_end()
        if known_end is not None and end < known_end:
            return True
        if self._is_certain:
            return False
        try:
            found = page_behind_in_file(self._disk, end, STEP_PAGES) or _in_next_file(self._disk, end, NEAR_PAGES)
            return found is not None or cut_error(self._disk, end.file_no) is not None
        except MissingFileError:
            return False  # there is no log yet, or it was purged or reset

    def is_due(self) -> bool:
        """Whether a reader that stopped before the known end would get an error for damage now."""
        now = self._clock()
        with self._lock:
            return any(now - since >= PATIENCE_S for since in self._short.values())

    def _is_over(self, end: LogPosition) -> bool:
        if self._is_quiet(end.file_no):
            return True
        now = self._clock()
        with self._lock:
            self._short = {place: since for place, since in self._short.items() if now - since < FORGOTTEN_S}
            return now - self._short.setdefault(end, now) >= PATIENCE_S

    def _is_quiet(self, file_no: int) -> bool:
        try:
            return abs(self._now() - self._disk.modified_at(format_file_name(file_no))) >= PATIENCE_S
        except IbbMasterError:
            return True

    def _look_behind(self, end: LogPosition, after: Gtid | None) -> None:
        if not self._lock.acquire(blocking=False):
            return  # another reader looks
        try:
            now = self._clock()
            look = self._ahead if self._is_unbegun(end.file_no) else self._at_end
            if look.end is None or end > look.end:
                look.move(end, now, now if self._is_quiet(end.file_no) else now + STILL_S)
            if end != look.end:
                return  # it will come to where others are
            if now >= look.next_at:
                look.next_at = now + STILL_S
                look.look(end, now)
            if now - look.found_at >= PATIENCE_S or self._is_quiet(end.file_no):
                if look.found is not None:
                    raise gap_error(end, look.found, after=after)
                if look.cut is not None:
                    raise look.cut
        finally:
            self._lock.release()

    def _is_unbegun(self, file_no: int) -> bool:
        if self._at_end.end is not None and self._at_end.end.file_no == file_no:
            return False
        return is_blank(self._disk.read(format_file_name(file_no), 0, PAGE_SIZE))


def check_unbroken(disk: ReadDisk, end: LogPosition) -> None:
    """Check that the pages of a file up to the end of the log are sound and full: about 0.5 s per gigabyte in memory.
    Only `verify` recognises a page of another place. Raises FormatError: a page is damaged, lost, or older."""
    name, file_no = format_file_name(end.file_no), end.file_no
    for first in range(0, end.page_no, BLOCK_PAGES):
        count = min(BLOCK_PAGES, end.page_no - first)
        block = disk.read(name, first * PAGE_SIZE, count * PAGE_SIZE)
        for index in range(count):
            page = block[index * PAGE_SIZE : (index + 1) * PAGE_SIZE]
            location = LogPosition.on_page(file_no, first + index)
            if len(page) < PAGE_SIZE:
                raise _lost(location, end)
            verify_page(page, location)
            if location.page_no == 0:
                decode_file_header(page, file_no=file_no)
            elif not page[DATA_SIZE - 1]:
                last, end_of_page = last_chunk(memoryview(page), file_no=file_no, page_no=location.page_no)
                if end_of_page is not ChunkEnd.PAGE_FULL:
                    stop = LogPosition.on_page(file_no, location.page_no, last.end_offset if last else 0)
                    raise _lost(stop, end)


def _lost(location: LogPosition, end: LogPosition) -> ChunkError:
    return short_error(location, end, ", or save the rest with `ibbmaster recover DIR --salvage NEWDIR`")
