"""Reports every fault in a directory: continues after damage at the next page, and compares nothing that a fault made
unknown."""

import functools
import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, NamedTuple

from ibbmaster.errors import ChunkError, FormatError, IbbMasterError, StoreError
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.loading import kernels
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import is_zero
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.disk.local import expect
from ibbmaster.storage.disk.reading_ahead import PieceReader
from ibbmaster.storage.ibb.chunk import CHUNK_SIZE_MIN, FILLER, Chunk, ChunkEnd, RecordType, next_chunk
from ibbmaster.storage.ibb.file_header import FileHeader, decode_file_header
from ibbmaster.storage.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.storage.ibb.oob import decode_oob_node
from ibbmaster.storage.ibb.page import CHECKSUM, DATA_SIZE, PAGE_SIZE, is_blank, verify_page
from .end_check import check_not_cut
from .fault import Fault, Totals
from .other_records import check_other_record
from .page_checks import Checked, PageChecks
from .record_checks import OrderChecks, RecordChecks

JOINT_PAGES = 2  # of a file that another thread reads: its state, and a page more
BLOCK_PAGES = 128
AHEAD_BYTES = 8 << 20  # that the system is asked to read
BLANK_BLOCK = bytes(BLOCK_PAGES * PAGE_SIZE)


class FoundPages(NamedTuple):
    data: memoryview
    page_count: int
    verified: int  # first pages with a right checksum

    def checksums(self) -> bytes:
        words = self.data.cast("I")
        step = PAGE_SIZE // words.itemsize
        return words[step - 1 :: step].tobytes()


class BlockReader:
    """The pages of one file in order, many at once; kernels verify each while the core has it in its cache: reading
    ahead would cost a quarter more CPU. Raises StoreError, also from `read`."""

    def __init__(self, disk: ReadDisk, name: str, kernels: Kernels | None, *, block_pages: int) -> None:
        self._disk = disk
        self._name = name
        self._kernels = kernels
        descriptor = None if kernels is None else disk.open(name)
        self._file = None if descriptor is None else open(descriptor, "rb", buffering=0)  # noqa: SIM115
        self._blocks = PieceReader(
            self._fill, block_bytes=block_pages * PAGE_SIZE, kept_max=block_pages * PAGE_SIZE, helper=None
        )
        self._expected_end = 0  # the system has earlier bytes, or was asked to read them
        self._is_verified = True  # all of the block before

    def close(self) -> None:
        self._blocks.close()
        if self._file is not None:
            self._file.close()

    def read(self, page_no: int) -> FoundPages:
        """`page_no` may be in the block before; no pages at the end of the file."""
        data, kept_bytes, verified = self._blocks.at(page_no * PAGE_SIZE)
        count, kept = len(data) // PAGE_SIZE, kept_bytes // PAGE_SIZE
        known = kept + verified if self._is_verified or not kept else 0
        self._is_verified = known == count
        return FoundPages(data, count, known)

    def _fill(self, offset: int, target: memoryview) -> tuple[int, int]:
        if self._file is not None and self._kernels is not None:
            pages: Any = target
            descriptor = self._file.fileno()
            begin, end = max(self._expected_end, offset), offset + len(target) + AHEAD_BYTES
            if end > begin:
                expect(descriptor, begin, end - begin)
                self._expected_end = end
            count, verified = self._kernels.read_pages(descriptor, offset, pages)
            if count:
                return count * PAGE_SIZE, verified
        size = self._disk.read_into(self._name, offset, target) or 0
        return size // PAGE_SIZE * PAGE_SIZE, 0


def verify(
    disk: ReadDisk,
    totals: Totals,
    *,
    others: Sequence[ReadDisk] = (),
    on_pages: Callable[[int], object] = lambda count: None,
) -> Iterator[Fault]:
    """Yield every fault of a directory, in the order of the files. `others` are the same directory, one for each
    further thread. `on_pages` hears of the pages read. Raises StoreError: there are no binlog files, or no such
    directory."""
    numbers = sorted(number for name in disk.list() if (number := parse_file_name(name)) is not None)
    if not numbers:
        raise StoreError(f"{disk}: no binlog files (binlog-000000.ibb and so on)")
    disks = [disk, *others][: len(numbers)]
    if len(disks) == 1:
        yield from _Verifier(disk, totals, on_pages).check_files(numbers, is_last=True)
        return
    check = functools.partial(verify_part, on_pages=on_pages)
    starts = [len(numbers) * part // len(disks) for part in range(len(disks))] + [len(numbers)]
    parts = [Part(numbers[start : end + 1], end == len(numbers)) for start, end in itertools.pairwise(starts)]
    reported: set[Fault] = set()
    with ThreadPoolExecutor(len(disks), thread_name_prefix="ibbmaster-verify") as threads:
        for faults, part_totals in threads.map(check, disks, parts):
            yield from (fault for fault in faults if fault not in reported)
            reported = set(faults)
            totals.add(part_totals)


class Part(NamedTuple):
    """Files to check by themselves; unless they are the last, the final one only where the others end."""

    numbers: list[int]
    is_last: bool


def verify_part(
    disk: ReadDisk, part: Part, *, on_pages: Callable[[int], object] = lambda count: None
) -> tuple[list[Fault], Totals]:
    """Both neighbours may report a fault where two parts meet."""
    totals = Totals()
    verifier = _Verifier(disk, totals, on_pages)
    return list(verifier.check_files(part.numbers, is_last=part.is_last)), totals


class _Verifier:
    def __init__(self, disk: ReadDisk, totals: Totals, on_pages: Callable[[int], object]) -> None:
        self._disk = disk
        self._totals = totals
        self._on_pages = on_pages
        self._order = OrderChecks(self._copy_of)
        self._records = RecordChecks(disk, totals, self._order)
        self._checksums: dict[int, dict[int, bytes]] = {}  # of this file and the one before, by the first page
        self._checks: PageChecks | None = None
        self._header: FileHeader | None = None  # of the file before the current one
        self._is_joint = False  # the file is another verifier's, except its beginning
        self._is_blank_file = False
        self._ended_at: LogPosition | None = None
        self._has_complained = False

    def check_files(self, numbers: list[int], *, is_last: bool) -> Iterator[Fault]:
        for index, file_no in enumerate(numbers):
            self._is_joint = not is_last and index == len(numbers) - 1
            if index and file_no != numbers[index - 1] + 1:
                missing = format_file_name(numbers[index - 1] + 1)
                yield Fault(f"{missing} is missing before {format_file_name(file_no)}")
                self._records.lose_track()
            try:
                yield from self.check_file(file_no)
            except IbbMasterError as error:
                yield Fault(str(error))
                self._records.lose_track()
        yield from self._order.finish_file()
        if is_last and self._records.open_record is not None:
            yield Fault("the log ends inside this record", self._records.open_record)

    def check_file(self, file_no: int) -> Iterator[Fault]:
        name = format_file_name(file_no)
        size = self._disk.size(name)
        self._totals.files += not self._is_joint
        if size % PAGE_SIZE:
            yield Fault(f"{name}: {size} bytes are no whole number of pages of {PAGE_SIZE} bytes")
        header_page = self._disk.read(name, 0, PAGE_SIZE)
        header = None
        try:
            header = decode_file_header(header_page, file_no=file_no)
            if len(header_page) == PAGE_SIZE:
                verify_page(header_page, LogPosition.on_page(file_no, 0))
        except FormatError as error:
            yield self._lost(error)
        self._count_pages(1)
        was_blank, self._is_blank_file = self._is_blank_file, header is None and is_blank(header_page)
        if was_blank and not self._is_blank_file:
            yield Fault(f"{name}: the file before it was never used")
        before, self._header = self._header, header
        is_next = before is not None and before.file_no == file_no - 1
        if is_next and before and header and header.start_lsn < before.start_lsn:
            # Source: MariaDB 12.3, fsp_binlog.cc: a header has the LSN of InnoDB, which continues over restarts.
            problem = f"the file was begun at LSN {header.start_lsn}, and the one before it at LSN {before.start_lsn}"
            why = "one of the two is of another server, or of an earlier log"
            yield Fault(f"{problem}: {why}", LogPosition.on_page(file_no, 0))
        if header is not None and size > header.size_pages * PAGE_SIZE:
            problem = f"{name}: {size // PAGE_SIZE} pages, but its header says {header.size_pages}"
            is_closed = format_file_name(file_no + 1) in self._disk.list()
            if is_closed and size == (header.size_pages + 1) * PAGE_SIZE:
                why = "MariaDB's FLUSH leaves an extra page in a file that is full"
                yield Fault(f"{problem}: {why}", is_damage=False)
            else:
                yield Fault(problem)
        if header is not None and size < header.size_pages * PAGE_SIZE:
            try:
                check_not_cut(self._disk, file_no)
            except ChunkError as error:
                yield Fault.of(error)
            except FormatError:
                pass  # of the last page: it is checked with the others
        self._checksums = {number: kept for number, kept in self._checksums.items() if number == file_no - 1}
        self._checksums[file_no] = {}
        self._records.header = header
        self._ended_at, self._has_complained = None, False
        yield from self._check_pages(file_no, name)

    def _check_pages(self, file_no: int, name: str) -> Iterator[Fault]:
        page_no, offset = 1, 0
        checksums = self._checksums[file_no]
        block_pages = JOINT_PAGES if self._is_joint else BLOCK_PAGES
        with closing(BlockReader(self._disk, name, kernels(), block_pages=block_pages)) as reader:
            while True:
                first = LogPosition.on_page(file_no, page_no)
                blank = 0 if offset else self._disk.next_data(name, page_no * PAGE_SIZE) // PAGE_SIZE - page_no
                passed: int | None = blank
                if blank > 0:
                    self._ended_at = self._ended_at or first
                else:
                    block = reader.read(page_no)
                    if not block.page_count:
                        return
                    checksums[page_no] = block.checksums()
                    passed, offset = yield from self._check_block(block, first, offset)
                if passed is None:
                    return
                page_no += passed
                self._count_pages(passed)

    def _check_block(
        self, read: FoundPages, first: LogPosition, offset: int
    ) -> Generator[Fault, None, tuple[int | None, int]]:
        """Check the pages of a block from an offset in the first one on. Returns how many pages it passed and the
        offset in the next one; None where another verifier continues."""
        block, count = read.data, read.page_count
        if not offset and count == BLOCK_PAGES and not block[0] and bytes(block) == BLANK_BLOCK:
            self._ended_at = self._ended_at or first
            return count, 0
        index = 0
        while index < count:
            if self._is_joint and (first.page_no + index > 1 or offset) and self._records.open_record is None:
                return None, offset
            if (many := self._checks_of_many()) is not None:
                due = self._next_due(first.page_no + index, offset) - first.page_no
                checked = many.check(block, count, index, offset, verified=read.verified, due=due)
                yield from self._take_checked(checked, block, first)
                index, offset = checked.page, checked.offset
                if index == count or (index and checked.is_cut):
                    break  # with the next block, which begins with the current record
                if checked.is_after_state:
                    continue
            page = bytes(block[index * PAGE_SIZE : (index + 1) * PAGE_SIZE])
            location = LogPosition.on_page(first.file_no, first.page_no + index)
            if offset or (yield from self._begin_page(page, location)):
                offset = yield from self._check_page(memoryview(page), location, offset)
            index += not offset
        return index, offset

    def _checks_of_many(self) -> PageChecks | None:
        if self._checks is None and (ready := kernels()) is not None:
            self._checks = PageChecks(ready)
        is_expected = self._ended_at is None and not self._is_blank_file and not self._is_joint
        return self._checks if is_expected and self._is_between_records else None

    def _next_due(self, page_no: int, offset: int) -> int:
        header = self._records.header
        interval = 0 if header is None else header.state_interval_pages
        return -(-(page_no + bool(offset)) // interval) * interval if interval else 1 << 32

    def _copy_of(self, location: LogPosition) -> LogPosition | None:
        checksums = {
            page_no: kept[at : at + CHECKSUM.size]
            for first, kept in self._checksums.get(location.file_no, {}).items()
            for page_no, at in zip(itertools.count(first), range(0, len(kept), CHECKSUM.size))
        }
        name, wanted = format_file_name(location.file_no), checksums.get(location.page_no)
        page: bytes | None = None
        for page_no, checksum in checksums.items():
            if checksum == wanted and page_no != location.page_no:
                page = page or self._disk.read(name, location.page_no * PAGE_SIZE, PAGE_SIZE)
                if self._disk.read(name, page_no * PAGE_SIZE, PAGE_SIZE) == page:
                    return LogPosition.on_page(location.file_no, page_no)
        return None

    @property
    def _is_between_records(self) -> bool:
        return self._records.open_record is None and not self._records.is_lost

    def _begin_page(self, page: bytes, location: LogPosition) -> Generator[Fault, None, bool]:
        if is_blank(page):
            self._ended_at = self._ended_at or location
            return False
        try:
            verify_page(page, location)
        except FormatError as error:
            yield self._lost(error)
            return False
        if (self._is_blank_file or self._ended_at is not None) and not self._has_complained:
            self._has_complained = True
            place = "the header of an unused file" if self._is_blank_file else f"its end at {self._ended_at}"
            yield Fault(f"data behind {place}", location)
            self._records.lose_track()
        return True

    def _take_checked(self, checked: Checked, block: memoryview, first: LogPosition) -> Iterator[Fault]:
        self._totals.groups += checked.groups
        for gtid, page, offset in checked.ends_of_pairs:
            location = LogPosition.on_page(first.file_no, first.page_no + page, offset)
            self._order.log(gtid, location)
        for gtid in checked.gtids:
            self._records.log_last(gtid)
        for found in checked.found:
            ref = LogPosition(first.file_no, (first.page_no + found.page) * PAGE_SIZE + found.offset)
            head = found.head(block)
            if found.record_type == RecordType.GTID_STATE:
                yield from self._records.take_state(head, ref)
                continue
            self._totals.oob_records += 1
            try:
                check_other_record(RecordType.OOB_DATA, head, ref, len(head) == found.size)
                if self._checks is not None:
                    node, size = decode_oob_node(head, ref)
                    self._records.passed.take(ref, node, functools.partial(self._checks.split, block, found, size))
            except FormatError as error:
                yield Fault.of(error)

    def _count_pages(self, count: int) -> None:
        if self._is_joint:
            return
        self._totals.pages += count
        self._on_pages(count)

    def _check_page(self, page: memoryview, location: LogPosition, offset: int) -> Generator[Fault, None, int]:
        """Check the chunks of a page from a place on; returns where kernels can continue, 0 for the next page."""
        file_no, page_no = location.file_no, location.page_no
        while True:
            here = LogPosition.on_page(file_no, page_no, offset)
            try:
                found = next_chunk(page, offset, file_no=file_no, page_no=page_no)
                if not offset:
                    yield from self._records.check_page_begin(found, here)
                if found is ChunkEnd.PAGE_FULL:
                    yield from self._check_filler(page, here)
                    return 0
                if found is ChunkEnd.NO_DATA:
                    if not is_zero(page[offset:DATA_SIZE]):
                        yield Fault("bytes that are not zero behind the end of data", here)
                    self._ended_at = self._ended_at or here
                    return 0
                assert isinstance(found, Chunk)
                yield from self._records.take_chunk(found, LogPosition(file_no, page_no * PAGE_SIZE + offset))
                offset = found.end_offset
                is_free = self._records.open_record is None if self._is_joint else self._is_between_records
                if is_free and (self._is_joint or self._checks is not None):
                    return offset
            except FormatError as error:
                yield self._lost(error)
                return 0

    def _lost(self, error: FormatError) -> Fault:
        self._records.lose_track()
        return Fault.of(error)

    def _check_filler(self, page: memoryview, here: LogPosition) -> Iterator[Fault]:
        rest = bytes(page[here.page_offset : DATA_SIZE])
        if len(rest) >= CHUNK_SIZE_MIN:
            yield Fault(f"{len(rest)} bytes of filler: at most {CHUNK_SIZE_MIN - 1} can be needed", here)
        elif rest.strip(bytes((FILLER,))).strip(b"\0"):
            yield Fault(f"filler is {rest.hex(' ')}, expected ff", here)
