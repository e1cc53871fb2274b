"""Where the bytes of a record go: the writer's side of pages, chunks, state records and file ends. Rules:
protocol/ibb/record.md.

Pure: an `Appender` says which bytes to place in which page, never to change any; its caller writes them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import PAGE_SIZE, LogPosition
from ibbmaster.storage.codec.buffer import Buffer
from .chunk import CHUNK_DATA_MAX, CHUNK_HEADER_SIZE, CHUNK_SIZE_MIN, FILLER, RecordType, encode_chunk
from .file_header import SIZE_PAGES_MAX, SIZE_PAGES_MIN, FileHeader, encode_file_header
from .gtid_state import encode_gtid_state
from .page import DATA_SIZE


class PageChange(NamedTuple):
    """On page 0 the whole sealed header page."""

    file_no: int
    page_no: int
    page_offset: int
    data: bytes


class References(NamedTuple):
    """The oldest files still needed, as headers and state records store them."""

    oob_file_no: int | None  # by an uncommitted group with out-of-band data; None: none
    xa_file_no: int | None  # by a pending XA transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class FileShape:
    size_pages: int
    state_interval_pages: int
    start_lsn: int

    def __post_init__(self) -> None:
        assert SIZE_PAGES_MIN <= self.size_pages <= SIZE_PAGES_MAX, self.size_pages


class Appended(NamedTuple):
    """Where a record begins, and the changes to write for it."""

    ref: LogPosition
    changes: list[PageChange]


class Appender:
    """Appends records to a log; `file_no`, `page_no`, `page_offset` are the next write position.

    A fresh file is at page 0, offset 0: its header and full GTID state come with its first record. To continue a file
    with data, pass the position after it, the `shape` in its header, and the GTIDs logged since page 1
    (`differential`). `next_shape` is asked for each new file, `references` for each header and state record."""

    def __init__(
        self,
        *,
        file_no: int,
        next_shape: Callable[[int], FileShape],
        references: Callable[[], References],
        state: GtidState,
        page_no: int = 0,
        page_offset: int = 0,
        shape: FileShape | None = None,
        differential: GtidState | None = None,
    ) -> None:
        self.file_no = file_no
        self.page_no = page_no
        self.page_offset = page_offset
        self.state = state.copy()
        self.differential = GtidState() if differential is None else differential.copy()
        self._next_shape = next_shape
        self._references = references
        self.shape = next_shape(file_no) if shape is None else shape

    @property
    def next_record_file_no(self) -> int:
        pages_left = self.shape.size_pages - self.page_no
        is_full = pages_left == 0 or (pages_left == 1 and DATA_SIZE - self.page_offset < CHUNK_SIZE_MIN)
        return self.file_no + is_full

    @property
    def end(self) -> LogPosition:
        return LogPosition(self.file_no, self.page_no * PAGE_SIZE + self.page_offset)

    def append(self, record_type: RecordType, data: Buffer, gtid: Gtid | None = None) -> Appended:
        """Place one record; a commit record brings the GTID it logs, logged from its first byte on: a state record
        before it lacks the GTID, one inside it has it. Source: MariaDB 12.3, fsp_binlog.cc, fsp_binlog_write_rec()."""
        size = len(data)
        assert size > 0
        changes: list[PageChange] = []
        ref: LogPosition | None = None
        done = 0
        while done < size:
            if not self.page_offset:
                self._open_page(changes)
            room = DATA_SIZE - self.page_offset
            if room < CHUNK_SIZE_MIN:
                if room:
                    self._place(changes, bytes([FILLER]) * room)
                self._next_page()
                continue
            is_first = ref is None
            if ref is None:
                ref = LogPosition(self.file_no, self.page_no * PAGE_SIZE + self.page_offset)
                if gtid is not None:
                    self.state.log(gtid)
                    self.differential.log(gtid)
            piece = data[done : done + room - CHUNK_HEADER_SIZE]
            done += len(piece)
            self._place(changes, encode_chunk(record_type, piece, is_first=is_first, is_last=done == size))
        assert ref is not None
        assert ref.file_no + 1 >= self.file_no, "a record spans more than two files"
        return Appended(ref, changes)

    def append_inside(self, record_type: RecordType, data: Buffer, gtid: Gtid) -> bytes | None:
        """As `append`, for a record that fits into its page as one chunk, with nothing due before it. Returns the
        chunk, which goes to the former write position; None if it changed nothing."""
        end = self.page_offset + CHUNK_HEADER_SIZE + len(data)
        if not self.page_offset or end >= DATA_SIZE:
            return None
        self.state.log(gtid)
        self.differential.log(gtid)
        self.page_offset = end
        return encode_chunk(record_type, data, is_first=True, is_last=True)

    @property
    def plain_end(self) -> int:
        """The page before which only records go, from the position on; the current page if a header or state is due."""
        interval = self.shape.state_interval_pages
        if not self.page_offset and (self.page_no <= 1 or (interval and self.page_no % interval == 0)):
            return self.page_no
        next_state = (self.page_no // interval + 1) * interval if interval else self.shape.size_pages
        return min(next_state, self.shape.size_pages)

    def continue_at(self, page_no: int, page_offset: int, gtids: Iterable[Gtid]) -> None:
        """Continue after commit records placed by a kernel, before `plain_end`, with the last GTID of each pair."""
        assert page_no <= self.plain_end
        self.page_no, self.page_offset = page_no, page_offset
        for gtid in gtids:
            self.state.log(gtid)
            self.differential.log(gtid)

    def flush(self) -> tuple[int, list[PageChange]]:
        """End the current file after its last page: (pages it keeps, changes to write). It begins the next file at
        once, with header and full state, and leaves a file alone that has not begun. Source: MariaDB 12.3,
        innodb_binlog.cc, innodb_binlog_flush(); corner cases as the format description recommends."""
        changes: list[PageChange] = []
        if self.page_no == 0:
            self._open_page(changes)
            return self.shape.size_pages, changes
        kept = min(self.page_no + 1, self.shape.size_pages)
        if self.page_no < self.shape.size_pages:  # else it is exactly full: nothing to cut, nothing to fill
            if self.page_offset == 0:
                self._open_page(changes)
            room = DATA_SIZE - self.page_offset
            if self.page_offset == 0 and self.page_no >= kept:
                pass  # a long state record has filled the last page it needed
            elif room < CHUNK_SIZE_MIN:
                self._place(changes, bytes([FILLER]) * room)
            else:
                dummy = bytes([FILLER]) * (room - CHUNK_HEADER_SIZE)
                self._place(changes, encode_chunk(RecordType.DUMMY, dummy, is_first=True, is_last=True))
            kept = self.page_no if self.page_offset == 0 else self.page_no + 1
        self._next_file()
        self._open_page(changes)
        return kept, changes

    def drop_domain(self, domain_id: int) -> None:
        """The next file's full state omits it."""
        self.state.drop_domain(domain_id)

    def _open_page(self, changes: list[PageChange]) -> None:
        """At a page start: move to the next file if this one is full, place header and state if due."""
        if self.page_offset:
            return
        if self.page_no == self.shape.size_pages:
            self._next_file()
        if self.page_no == 0:
            references = self._references()
            header = FileHeader(
                file_no=self.file_no,
                size_pages=self.shape.size_pages,
                start_lsn=self.shape.start_lsn,
                state_interval_pages=self.shape.state_interval_pages,
                oob_file_no=self.file_no if references.oob_file_no is None else references.oob_file_no,
                xa_file_no=references.xa_file_no,
            )
            changes.append(PageChange(self.file_no, 0, 0, encode_file_header(header)))
            self.page_no = 1
        if self.page_no == 1:
            self.differential = GtidState()
            # File 0 omits a state of one pair with number 1, so that a replica may start before it.
            is_first = self.file_no == 0 and [gtid.seq_no for gtid in self.state] == [1]
            self._place_state(changes, GtidState() if is_first else self.state)
        elif self.shape.state_interval_pages and self.page_no % self.shape.state_interval_pages == 0:
            self._place_state(changes, self.differential)

    def _place_state(self, changes: list[PageChange], state: GtidState) -> None:
        """Unless it would reach the file's last page, as the full one on page 1 never does."""
        data = encode_gtid_state(state, self._references().xa_file_no)
        if self.page_no + -(-len(data) // DATA_SIZE) >= self.shape.size_pages:
            return
        for start in range(0, len(data), CHUNK_DATA_MAX):
            piece = data[start : start + CHUNK_DATA_MAX]
            is_last = start + len(piece) == len(data)
            chunk = encode_chunk(RecordType.GTID_STATE, piece, is_first=start == 0, is_last=is_last)
            self._place(changes, chunk)

    def _place(self, changes: list[PageChange], data: bytes) -> None:
        changes.append(PageChange(self.file_no, self.page_no, self.page_offset, data))
        self.page_offset += len(data)
        assert self.page_offset <= DATA_SIZE
        if self.page_offset == DATA_SIZE:
            self._next_page()

    def _next_page(self) -> None:
        if self.page_offset:
            self.page_no += 1
            self.page_offset = 0

    def _next_file(self) -> None:
        self.file_no += 1
        self.page_no = self.page_offset = 0
        self.shape = self._next_shape(self.file_no)
