"""The events of many small files in order: each is read at once, and the pages of several are collected together.

A log of ten thousand files costs by the file. What is not plain is for `event_batches`, the reference.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ibbmaster.errors import FormatError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.kernel.calls import FileRange, Kernels
from ibbmaster.kernel.fields import Field, GroupColumn, Status, last_gtids
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.end_check import is_ended
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.logs.log.log_range import LogRange
from ibbmaster.logs.log.states import FULL_STATE_PAGE, check_continuation
from ibbmaster.position import LogPosition
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.disk.page_memory import page_memory
from ibbmaster.storage.ibb.chunk import Chunk, RecordType, next_chunk
from ibbmaster.storage.ibb.file_header import decode_file_header
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.gtid_state import decode_gtid_state
from ibbmaster.storage.ibb.page import PAGE_SIZE, verify_page
from .collecting import ClassicBatches, CollectingRoom, event_batches
from .event_batch import EventBatch

SMALL_BYTES = 1 << 20  # of a file that is read at once
BLOCK_BYTES = 4 << 20  # of pages that are collected together
PAGES_MAX = (BLOCK_BYTES + 2 * SMALL_BYTES) // PAGE_SIZE
ENDLESS = 1 << 62


def batches_of_ranges(source: LogEngine, ranges: Sequence[LogRange], kernels: Kernels) -> Iterator[EventBatch]:
    """The events of consecutive ranges; a batch may span files. Errors as `event_batches`."""
    if isinstance(source, ClassicBinlog):
        yield from ClassicBatches(source, ranges, kernels)
    elif isinstance(source, BinlogDirectory):
        yield from _SmallFiles(source, kernels).batches(ranges)
    else:
        for log_range in ranges:
            yield from event_batches(source, log_range, kernels)


class _Begin(NamedTuple):
    file_no: int
    found: tuple[Gtid, ...]


class _SmallFiles:
    """Reads whole small `.ibb` files into one block, without headers, as records go on in the next file. Invariant:
    each file begins with the state after the groups before it, as far as known, or is an error."""

    def __init__(self, log: BinlogDirectory, kernels: Kernels) -> None:
        self._log = log
        self._disk: ReadDisk = log.disk
        self._kernels = kernels
        self._room = CollectingRoom(kernels, log.file_name)
        memory = page_memory(PAGES_MAX * PAGE_SIZE)
        self._view = memoryview(memory)
        self._block: Any = np.frombuffer(memory, dtype=np.uint8)
        self._file_nos: list[int] = []  # of each page in the block
        self._page_nos: list[int] = []
        self._begins: list[_Begin] = []  # not compared yet
        self._checked = 0  # groups of the room that are in the state
        self._forget_state()
        self._resume: LogPosition | None = None  # where the reference's last group ended

    def batches(self, ranges: Iterable[LogRange]) -> Iterator[EventBatch]:
        for log_range in ranges:
            if self._is_small(log_range) and self._add(log_range):
                if self._pages * PAGE_SIZE >= BLOCK_BYTES:
                    yield from self._collected()
            else:
                yield from self._finished()
                yield from self._by_reference(log_range)
                self._forget_state()  # the reference compares a file with the next one
        yield from self._finished()
        if self._room.count:
            yield self._room.taken()

    def _is_small(self, log_range: LogRange) -> bool:
        is_first_page = log_range.start_offset == PAGE_SIZE
        return is_first_page and log_range.end_offset <= SMALL_BYTES and not log_range.end_offset % PAGE_SIZE

    def _add(self, log_range: LogRange) -> bool:
        """Read a file behind the pages that are there; False if it is for the reference."""
        file_no, start = log_range.file_no, self._pages * PAGE_SIZE
        name, size = format_file_name(file_no), log_range.end_offset
        if self._disk.read_into(name, 0, self._view[start : start + size]) != size:
            return False
        page_count = size // PAGE_SIZE - 1
        try:
            header = decode_file_header(self._view[start : start + PAGE_SIZE], file_no=file_no)
            if header is None:
                return False
            last = self._view[start + size - PAGE_SIZE : start + size]
            if size < header.size_pages * PAGE_SIZE and not is_ended(last, file_no=file_no, page_no=page_count):
                return False  # no FLUSH has ended it
            verify_page(bytes(self._view[start : start + PAGE_SIZE]), LogPosition.on_page(file_no, 0))
            first = next_chunk(self._view[start + PAGE_SIZE : start + 2 * PAGE_SIZE], 0, file_no=file_no, page_no=1)
            if not isinstance(first, Chunk) or first.record_type != RecordType.GTID_STATE:
                return False
            if not (first.is_first and first.is_last):
                return False
            state = decode_gtid_state(first.data, LogPosition.on_page(file_no, FULL_STATE_PAGE))
        except FormatError:
            return False
        self._view[start : start + size - PAGE_SIZE] = self._view[start + PAGE_SIZE : start + size]
        if not self._pages and self._resume is not None:
            if self._resume.file_no == file_no:
                self._kernel_at(self._resume.page_no - 1, self._resume.page_offset)
            self._resume = None
        self._file_nos += [file_no] * page_count
        self._page_nos += range(FULL_STATE_PAGE, FULL_STATE_PAGE + page_count)
        self._begins.append(_Begin(file_no, state.gtids))
        return True

    def _kernel_at(self, page: int, offset: int) -> None:
        state = self._room.state
        state[Field.PAGE], state[Field.OFFSET] = page, offset
        state[Field.SKIP_TYPE] = state[Field.NESTED_TYPE] = -1

    def _collected(self) -> Iterator[EventBatch]:
        while self._pages:
            first_new = self._room.count
            status = self._kernels.collect_table(
                self._block, self._pages, self._room.collecting, FileRange(0, 0, ENDLESS)
            )
            self._place(first_new)
            if status == Status.NEED_MORE:
                self._check_begins(self._file_no())
                self._drop(min(int(self._room.state[Field.PAGE]), self._pages))
                return
            if status == Status.FULL and self._room.count:
                self._check_begins(self._file_no())
                yield self._room.taken()
                self._checked = 0
                continue
            yield from self._past()

    def _finished(self) -> Iterator[EventBatch]:
        yield from self._collected()
        while self._pages:
            yield from self._past()
            yield from self._collected()

    def _past(self) -> Iterator[EventBatch]:
        file_no, page = self._file_no(), int(self._room.state[Field.PAGE])
        first, behind = bisect_left(self._file_nos, file_no), bisect_right(self._file_nos, file_no)
        start = (self._page_nos[first] + page - first) * PAGE_SIZE + int(self._room.state[Field.OFFSET])
        end = (self._page_nos[behind - 1] + 1) * PAGE_SIZE
        self._check_begins(file_no)
        yield from self._by_reference(LogRange(file_no=file_no, start_offset=start, end_offset=end))
        self._drop(behind)
        resume = self._resume
        if not self._pages or resume is None or resume.file_no != self._file_nos[0]:
            self._kernel_at(0, 0)
        else:
            self._kernel_at(resume.page_no - FULL_STATE_PAGE, resume.page_offset)
        if self._pages:
            self._resume = None

    def _by_reference(self, log_range: LogRange) -> Iterator[EventBatch]:
        if self._room.count:
            yield self._room.taken()
            self._checked = 0
        self._resume = None
        for batch in event_batches(self._log, log_range, self._kernels):
            for gtid in last_gtids(batch.groups):
                self._state.log(gtid)
            if len(batch.groups):
                row = batch.groups[-1]
                self._resume = LogPosition(int(row[GroupColumn.END_FILE_NO]), int(row[GroupColumn.END_OFFSET]))
            yield batch
        if not self._pages:
            self._kernel_at(0, 0)

    # The block ----------------------------------------------------------------------------------

    @property
    def _pages(self) -> int:
        return len(self._file_nos)

    def _file_no(self) -> int:
        return self._file_nos[min(int(self._room.state[Field.PAGE]), self._pages - 1)]

    def _place(self, first: int) -> None:
        groups = self._room.groups[first : self._room.count]
        file_nos, page_nos = np.array(self._file_nos, dtype=np.int64), np.array(self._page_nos, dtype=np.int64)
        for number, offset in (
            (GroupColumn.FILE_NO, GroupColumn.FILE_OFFSET),
            (GroupColumn.END_FILE_NO, GroupColumn.END_OFFSET),  # in front of the checksum of a page
        ):
            pages = groups[:, offset] // PAGE_SIZE
            groups[:, number] = file_nos[pages]
            groups[:, offset] += (page_nos[pages] - pages) * PAGE_SIZE

    def _drop(self, count: int) -> None:
        left = self._pages - count
        self._view[: left * PAGE_SIZE] = self._view[count * PAGE_SIZE : self._pages * PAGE_SIZE]
        del self._file_nos[:count], self._page_nos[:count]
        self._room.state[Field.PAGE] = 0

    def _forget_state(self) -> None:
        self._base, self._state = GtidState(), GtidState()  # at a file's beginning, and after what was read of it

    # States -------------------------------------------------------------------------------------

    def _check_begins(self, last: int) -> None:
        """Compare the beginnings of files up to number `last` with the groups before them. Raises RecordError: a file
        begins after other groups."""
        groups = self._room.groups[: self._room.count]
        while self._begins and self._begins[0].file_no <= last:
            begin = self._begins.pop(0)
            self._log_up_to(groups, int(np.searchsorted(groups[:, GroupColumn.FILE_NO], begin.file_no)))
            location = LogPosition.on_page(begin.file_no, FULL_STATE_PAGE)
            check_continuation(begin.found, self._state, location, base=self._base, is_complete=False)
            self._base, self._state = GtidState(begin.found), GtidState(begin.found)
        self._log_up_to(groups, len(groups))

    def _log_up_to(self, groups: Any, end: int) -> None:
        if end > self._checked:
            for gtid in last_gtids(groups[self._checked : end]):
                self._state.log(gtid)
            self._checked = end
