"""The write side of a directory of `.ibb` files.

Invariants:
- A group is either wholly in its commit record, or all of it but the GTID event is out of band.
- No record reaches over more than two files, whatever the file size and the GTID state.
- One file is ready ahead of the active one; the file after it is made only when the file
  before the active one is complete and synced.
- Each full page is written once. The last, partly filled page is written by `flush`, and
  again as it grows.
- After an error of the disk nothing is written any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.ibb.appender import Appender, FileShape, PageChange, References
from ibbmaster.ibb.chunk import CHUNK_DATA_MAX, CHUNK_HEADER_SIZE, CHUNK_SIZE_MIN, RecordType
from ibbmaster.ibb.commit import HEADER_SIZE_USUAL, CommitHeader, encode_commit_header
from ibbmaster.ibb.file_header import SIZE_PAGES_MAX, SIZE_PAGES_MIN
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.oob import HEADER_SIZE_MAX, OobForest, encode_oob_node
from ibbmaster.ibb.page import DATA_SIZE, PAGE_SIZE
from ibbmaster.ibb.record import RecordRef
from ibbmaster.store.continuation import find_continuation
from ibbmaster.store.disk import Disk
from ibbmaster.store.page_writer import PageWriter

MAX_FILE_BYTES = 1 << 30
STATE_INTERVAL_BYTES = 2 << 20
OOB_PIECE_BYTES = 512 << 10
NO_STREAM = encode_commit_header(CommitHeader())
PAIR_SIZE_MAX = 5 + 5 + 9  # bytes of a (domain, server, number) in a state record


class BinlogWriter:
    """Appends event groups to the log in a directory; begins it, or goes on where it ends.

    `initial_state` is what was logged before the first group of a new log. Groups up to
    `spill_bytes` are written at once, larger ones in pieces of at most `oob_piece_bytes`
    while they come. With `is_sparse` a new file takes no room on the disk until it is
    filled.

    Not thread-safe. What was written is durable after `flush` or `close`.

    Raises:
        ConfigurationError: a size the format does not allow.
        FormatError: what is in the directory is damaged where it must be read.
        StoreError: it cannot be written, or the log in it cannot be continued.
    """

    def __init__(
        self,
        disk: Disk,
        *,
        initial_state: GtidState | None = None,
        max_file_bytes: int = MAX_FILE_BYTES,
        state_interval_bytes: int = STATE_INTERVAL_BYTES,
        oob_piece_bytes: int = OOB_PIECE_BYTES,
        spill_bytes: int = OOB_PIECE_BYTES,
        is_sparse: bool = False,
    ) -> None:
        self._disk = disk
        self._size_pages = _file_size_pages(max_file_bytes)
        self._interval_pages = _interval_pages(state_interval_bytes)
        if oob_piece_bytes <= HEADER_SIZE_MAX or spill_bytes < 0:
            raise ConfigurationError(f"out-of-band pieces of {oob_piece_bytes} bytes, groups of {spill_bytes} bytes")
        self._record_size_max = min(oob_piece_bytes, self._size_pages * PAGE_SIZE // 2)
        self._spill_size = spill_bytes
        self._is_sparse = is_sparse
        self._open_groups: dict[GroupWriter, int] = {}  # the file of its first piece
        self._next_lsn = 0
        self._failure: StoreError | None = None
        self._is_closed = False
        end = find_continuation(disk)
        state = end.state if end is not None else initial_state or GtidState()
        self._pair_count = len(state)
        if end is None:
            self._pages = PageWriter(disk, 0)
            self._appender = Appender(file_no=0, next_shape=self._next_shape, references=self._references, state=state)
        else:
            file_no, size_pages = end.header.file_no, max(end.size_pages, end.header.size_pages)
            self._next_lsn = end.header.start_lsn + size_pages * PAGE_SIZE
            self._pages = PageWriter(disk, file_no, page_no=end.page_no, page_offset=end.page_offset)
            self._appender = Appender(
                file_no=file_no,
                next_shape=self._next_shape,
                references=self._references,
                state=state,
                page_no=end.page_no,
                page_offset=end.page_offset,
                shape=FileShape(
                    size_pages=size_pages,
                    state_interval_pages=end.header.state_interval_pages,
                    start_lsn=end.header.start_lsn,
                ),
                differential=end.differential,
            )
            if end.size_pages < size_pages:  # cut by a flush whose next file was lost
                self._disk.allocate(format_file_name(file_no), size_pages * PAGE_SIZE)
        self._limit_records()
        if end is None:
            _, changes = self._appender.flush()  # header and state, so that the directory holds a log from now on
            self._write(changes)
            self.flush()
        self._make_file(self._appender.file_no + 1)

    @property
    def state(self) -> GtidState:
        """What is logged so far; a copy."""
        return self._appender.state.copy()

    @property
    def end(self) -> tuple[int, int]:
        """Number of the active file, and the first byte behind the last record in it."""
        return self._appender.file_no, self._appender.page_no * PAGE_SIZE + self._appender.page_offset

    def write_group(self, gtid: Gtid | None, gtid_event: Buffer, body: Iterable[Buffer]) -> RecordRef:
        """Append one group: its GTID event, and the bytes of all others, cut anywhere.

        The pieces of `body` must not change until this returns. Without `gtid`, the event is
        the FORMAT_DESCRIPTION a server logs when it starts. An error of `body` itself leaves
        the log without the group.

        Raises:
            StoreError: the disk fails, or has failed before.
        """
        parts: list[Buffer] = [NO_STREAM, gtid_event]
        size = len(NO_STREAM) + len(gtid_event)
        pieces = iter(body)
        for piece in pieces:
            parts.append(piece)
            size += len(piece)
            if size > self._inline_size_max:
                break
        else:
            return self._commit(b"".join(parts), gtid)
        group = self.open_group()
        try:
            for piece in parts[2:]:
                group.write(piece)
            for piece in pieces:
                group.write(piece)
        except BaseException:
            group.abandon()
            raise
        return group.commit(gtid, gtid_event)

    def open_group(self) -> GroupWriter:
        """Begin a group whose size is not known yet; several may be open at once."""
        return GroupWriter(self)

    def flush(self) -> None:
        """Make everything durable that was committed.

        Raises:
            StoreError: the disk fails, or has failed before.
        """
        self._check_usable()
        try:
            self._pages.write_out()
            self._pages.sync()
        except StoreError as error:
            self._failure = error
            raise

    def close(self) -> None:
        """Flush, and give up what is open; a second call does nothing."""
        if self._is_closed:
            return
        if self._failure is None:
            self.flush()
        self._is_closed = True

    def __enter__(self) -> BinlogWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # For GroupWriter ----------------------------------------------------------------------

    @property
    def _inline_size_max(self) -> int:
        return min(self._spill_size, self._record_limit)

    @property
    def _piece_size_max(self) -> int:
        return self._record_limit - HEADER_SIZE_MAX

    def _commit(self, record: Buffer, gtid: Gtid | None) -> RecordRef:
        if gtid is not None and self._appender.state.seq_no(gtid.domain_id, gtid.server_id) is None:
            self._pair_count += 1
            self._limit_records()
        return self._append(RecordType.COMMIT, record, gtid)

    def _append(self, record_type: RecordType, data: Buffer, gtid: Gtid | None = None) -> RecordRef:
        self._check_usable()
        if len(data) > self._record_limit:
            raise StoreError(f"a record of {len(data)} bytes: with this file size it can have {self._record_limit}")
        try:
            ref, changes = self._appender.append(record_type, data, gtid)
            self._write(changes)
        except BaseException as error:  # the appender is ahead of the files now
            self._failure = error if isinstance(error, StoreError) else StoreError(f"interrupted by {error!r}")
            raise
        return ref

    @property
    def _next_record_file_no(self) -> int:
        """The file in which the next record will begin."""
        appender = self._appender
        pages_left = appender.shape.size_pages - appender.page_no
        is_full = pages_left == 0 or (pages_left == 1 and DATA_SIZE - appender.page_offset < CHUNK_SIZE_MIN)
        return appender.file_no + is_full

    # Files --------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        if self._failure is not None:
            raise StoreError(f"the log was not written any further after an error: {self._failure}")
        if self._is_closed:
            raise StoreError("the log was closed")

    def _write(self, changes: list[PageChange]) -> None:
        for change in changes:
            if change.file_no != self._pages.file_no:
                self._pages.write_out()
                self._pages.sync()
                self._pages = PageWriter(self._disk, change.file_no)
                self._make_file(change.file_no + 1)
            self._pages.place(change)

    def _references(self) -> References:
        return References(oob_file_no=min(self._open_groups.values(), default=None), xa_file_no=None)

    def _next_shape(self, file_no: int) -> FileShape:
        """What the appender is to know of a file it is about to begin."""
        size_pages, interval_pages = self._wanted_shape()
        size_pages = self._make_file(file_no, size_pages)
        shape = FileShape(size_pages=size_pages, state_interval_pages=interval_pages, start_lsn=self._next_lsn)
        self._next_lsn += size_pages * PAGE_SIZE  # any number that never decreases will do
        return shape

    def _make_file(self, file_no: int, size_pages: int | None = None) -> int:
        """Have an empty file of at least this size; returns the size it has."""
        name = format_file_name(file_no)
        size = (size_pages or self._wanted_shape()[0]) * PAGE_SIZE
        if name in self._disk.list():
            size = max(size, self._disk.size(name) // PAGE_SIZE * PAGE_SIZE)
        else:
            self._disk.create(name)
        if self._disk.size(name) != size:
            if self._is_sparse:
                self._disk.truncate(name, size)
            else:
                self._disk.allocate(name, size)
            self._disk.sync_dir()
        return size // PAGE_SIZE

    def _wanted_shape(self) -> tuple[int, int]:
        """Pages and interval of the next file: what was asked for, or more for a large GTID state."""
        state_size = self._state_size_max
        interval_pages = self._interval_pages
        while interval_pages and interval_pages * DATA_SIZE < 4 * state_size:
            interval_pages *= 2  # or a file would hold little but states
        state_pages = -(-state_size // CHUNK_DATA_MAX)
        return max(self._size_pages, SIZE_PAGES_MIN * state_pages), interval_pages

    @property
    def _state_size_max(self) -> int:
        return 2 * 9 + self._pair_count * PAIR_SIZE_MAX

    def _limit_records(self) -> None:
        """Keep records so short that the rest of one, begun in the active file, fits into the next."""
        size_pages, interval_pages = self._wanted_shape()
        state_count = 1 + (size_pages // interval_pages if interval_pages else 0)
        state_chunks = -(-self._state_size_max // CHUNK_DATA_MAX)
        room = (size_pages - 1) * (DATA_SIZE - CHUNK_HEADER_SIZE - CHUNK_SIZE_MIN)
        room -= state_count * (self._state_size_max + state_chunks * CHUNK_HEADER_SIZE)
        self._record_limit = min(self._record_size_max, room)


class GroupWriter:
    """One group on its way into the log, in pieces; holds about two pieces of it.

    A group that stays small becomes one record. Of a larger one every byte but the GTID
    event goes out of band, while it comes.
    """

    def __init__(self, writer: BinlogWriter) -> None:
        self._writer = writer
        self._buffer = bytearray()
        self._forest = OobForest()
        self._is_open = True

    def write(self, data: Buffer) -> None:
        """Take the next bytes of the events after the GTID event."""
        self._check_open()
        self._buffer += data
        writer = self._writer
        if len(self._buffer) > writer._inline_size_max:
            self._spill(writer._piece_size_max)

    def commit(self, gtid: Gtid | None, gtid_event: Buffer) -> RecordRef:
        """Log the group; returns where its commit record is."""
        self._check_open()
        inline_size = len(NO_STREAM) + len(gtid_event) + len(self._buffer)
        if self._forest.stream() is not None or inline_size > self._writer._inline_size_max:
            self._spill(1)
        stream = self._forest.stream()
        if stream is None:
            record = b"".join((NO_STREAM, gtid_event, self._buffer))
        else:
            header = encode_commit_header(CommitHeader(streams=(stream,)))
            assert len(header) <= HEADER_SIZE_USUAL
            record = header + gtid_event
        ref = self._writer._commit(record, gtid)
        self._close()
        return ref

    def abandon(self) -> None:
        """Give the group up; pieces that are in the log already stay there as garbage."""
        if self._is_open:
            self._close()

    def _spill(self, rest_max: int) -> None:
        """Write pieces until fewer than `rest_max` bytes are left."""
        writer = self._writer
        done = 0
        while len(self._buffer) - done >= rest_max:
            size = min(len(self._buffer) - done, writer._piece_size_max)
            with memoryview(self._buffer) as view:
                record = encode_oob_node(self._forest.next_node()) + view[done : done + size]
            # Before the record: if it reaches into the next file, that file's header counts this group already.
            first_file_no = writer._open_groups.setdefault(self, writer._next_record_file_no)
            ref = writer._append(RecordType.OOB_DATA, record)
            assert ref.file_no >= first_file_no
            self._forest.add(ref)
            done += size
        del self._buffer[:done]

    def _close(self) -> None:
        self._is_open = False
        self._buffer = bytearray()
        self._writer._open_groups.pop(self, None)

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreError("the group was committed or given up before")


def _file_size_pages(max_file_bytes: int) -> int:
    size_pages = max_file_bytes // PAGE_SIZE
    if not SIZE_PAGES_MIN <= size_pages <= SIZE_PAGES_MAX:
        raise ConfigurationError(
            f"files of {max_file_bytes} bytes: a file has {SIZE_PAGES_MIN * PAGE_SIZE} bytes at least, "
            f"and {SIZE_PAGES_MAX * PAGE_SIZE} at most"
        )
    return size_pages


def _interval_pages(state_interval_bytes: int) -> int:
    interval_pages = state_interval_bytes // PAGE_SIZE
    if state_interval_bytes and (
        interval_pages * PAGE_SIZE != state_interval_bytes or interval_pages & (interval_pages - 1)
    ):
        raise ConfigurationError(
            f"a GTID state every {state_interval_bytes} bytes: it must be {PAGE_SIZE} times a power of two, or 0"
        )
    return interval_pages
