"""Reads whole event groups in commit order, and what lies out of band on demand."""

import functools
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ibbmaster.errors import ChunkError, EventError, RecordError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.gtid_event import decode_gtid
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, decode_event_header
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.ibb.chunk import CHUNK_HEADER_SIZE, LAST, Chunk, RecordType
from ibbmaster.storage.ibb.commit import HEADER_SIZE_MAX, OobStream, decode_commit_header
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.gtid_state import decode_gtid_state
from ibbmaster.storage.ibb.scan import NESTABLE, Misplaced
from .cursor import ChunkCursor
from .end_check import EndWatch, check_not_cut, check_reached
from .out_of_band import OutOfBandReader
from .pages import PageReader
from .states import FULL_STATE_PAGE, check_continuation, read_state_record

COMMIT_HELD_MAX = 1 << 20  # a longer commit record is read twice: to see that it is whole, and to hand it over
GLANCE = struct.Struct("<9xI10xQI")  # server, number and domain of a commit record whose header is one byte
GLANCE_SIZE = GLANCE.size
EVENT_SIZE_MAX = (1 << 30) + (1 << 20)  # a row of 1 GiB, the most MariaDB takes, and what is around it
GTID_EVENT_SIZE_MAX = 64 * 1024  # padded ones have a few KB
HEAD_SIZE = HEADER_SIZE_MAX + GTID_EVENT_SIZE_MAX  # of a record, held to judge how it begins


class ChunkChecks(NamedTuple):
    """Check all that is skipped, and may raise. `record` takes type, first `HEAD_SIZE` bytes, place and completeness of
    a record that is no commit record; `rest` the data and place of a chunk whose record began before."""

    record: Callable[[int, bytes, LogPosition, bool], None]
    rest: Callable[[bytes, LogPosition], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredGroup(EventGroup):
    """A group with out-of-band parts: `payload` comes first, then the streams, and `body` is both."""

    payload: bytes
    streams: tuple[OobStream, ...]


class EventGroupReader:
    """Reads the groups after a place in the log. Not thread-safe.

    It skips the rest of a record at the beginning of the page, and reads none that begins at `end` or later. `state` is
    what was surely logged before; each file must begin with the state after the groups before it. `end_watch` judges
    the places where nothing is written yet; `at_step_back`, which may raise, hears where sequence numbers go back;
    `other_checks` judge what is skipped."""

    def __init__(
        self,
        disk: ReadDisk,
        *,
        file_no: int,
        page_no: int,
        state: GtidState | None = None,
        end: LogPosition | None = None,
        end_watch: EndWatch | None = None,
        at_step_back: Callable[[LogPosition], None] | None = None,
        other_checks: ChunkChecks | None = None,
    ) -> None:
        self.stopped_at: LogPosition | None = None  # where nothing is written yet, if that is why no group came
        self._end = end
        self._end_watch = end_watch
        self._at_step_back = at_step_back
        self._other_checks = other_checks
        self._last = GtidState() if state is None else state.copy()  # of each pair, as far as is known
        self._last_gtid: Gtid | None = None
        self._pages = PageReader(disk)
        self._cursor = ChunkCursor(self._pages, file_no=file_no, page_no=page_no)
        self._cursor.on_file = self._enter_file
        self._cursor.checks_filler = other_checks is not None
        self._inside_type = -1
        self._is_inside_other = False  # a record that is no commit record is skipped
        self._has_seen_group = False  # before, the rest of an earlier record may come
        self._may_begin_inside = True
        self._state = None if state is None else state.copy()
        self._base = GtidState() if state is None else state.copy()  # with which the current file begins
        self._behind: ChunkCursor | None = None  # the last commit record, if it is read chunk by chunk

    @functools.cached_property
    def _out_of_band(self) -> OutOfBandReader:
        return OutOfBandReader(self._pages.disk)

    @property
    def position(self) -> LogPosition:
        return (self._behind or self._cursor).position

    @property
    def may_begin_inside(self) -> bool:
        return self._may_begin_inside and not self._has_seen_group

    @property
    def disk(self) -> ReadDisk:
        return self._pages.disk

    def check_log(self) -> None: ...

    def close(self) -> None: ...

    def continue_at(
        self,
        position: LogPosition,
        gtids: Iterable[Gtid],
        *,
        head: Buffer | None = None,
        is_inside_record: bool = False,
        record_type: int = -1,
    ) -> None:
        """Continue at a position in the same file, up to which the caller has read; `gtids` are the last of each pair,
        `head` the first `GLANCE_SIZE` bytes passed, `record_type` that of the record there, if known."""
        self._inside_type = record_type
        self._behind = None
        begin, gtids = self._cursor.position, tuple(gtids)
        if head is None:
            head = self.disk.read(format_file_name(begin.file_no), begin.offset, GLANCE_SIZE)
        for gtid in dict.fromkeys((*_first_gtid(head), *gtids)):  # a group alone is first and last
            self._log_in_order(gtid, begin)
        self._cursor.go_to(ChunkCursor.at(self._pages, position))
        for gtid in gtids:
            self._has_seen_group = True
            if self._state is not None:
                self._state.log(gtid)
        self._may_begin_inside = is_inside_record or not self._has_seen_group

    def next_group(self, *, only_cached: bool = False) -> EventGroup | None:
        """The next group, or None at the visible end; then call again later. Invalidates the body of the group before.
        After errors the reader stays. Raises BlockingIOError: with `only_cached`, no whole group is in memory and in
        the current file; FormatError: the group is damaged; StoreError: a file cannot be read."""
        self._pages.only_cached = only_cached
        try:
            group = self._next_group()
            watch = self._end_watch
            if group is not None or watch is None or self.stopped_at is None:
                return group
            known_end = watch.known_end()
            if known_end is not None and self.stopped_at < known_end:
                group = self._next_group()  # the end may have moved meanwhile; what is before it now can be read
            if group is None and self.stopped_at is not None:
                watch.check(self.stopped_at, known_end, after=self._last_gtid)
            return group
        finally:
            self._pages.only_cached = False

    def next_group_at_once(self) -> EventGroup:
        group = self.next_group(only_cached=True)
        assert group is not None, "only a look shows the end"
        return group

    log_identity = 0

    @property
    def expects_more(self) -> bool:
        """After no group: whether more is known to be there, and only not readable yet."""
        return (
            self._end_watch is not None
            and self.stopped_at is not None
            and self._end_watch.expects_more(self.stopped_at)
        )

    def check_reached(self, end: LogPosition) -> None:
        check_reached(self.disk, self.stopped_at, end, after=self._last_gtid)

    def _next_group(self) -> EventGroup | None:
        self.stopped_at = None
        cursor = self._cursor
        inside: ChunkCursor | None = None  # before the rest of an unfinished record
        if self._behind is not None:
            cursor.go_to(self._behind)
            self._behind = None
        while True:
            start = cursor.fork()
            self._is_inside_other = False
            try:
                chunk = cursor.next_chunk()
                if chunk is None:
                    self._wait(inside or start)  # later this would not look inside a record
                    return None
                if self._end is not None and cursor.ref_of(chunk) >= self._end:
                    cursor.go_to(inside or start)
                    return None
                if self._inside_type >= 0:
                    self._check_inside(chunk)
                if not chunk.is_first:
                    if not self._may_begin_inside:
                        raise ChunkError(cursor.ref_of(chunk), Misplaced.NOT_BEGUN.value)
                    if self._other_checks is not None:
                        self._other_checks.rest(bytes(chunk.data), cursor.ref_of(chunk))
                    inside = None if chunk.is_last else inside or start
                    continue
                if chunk.record_type == RecordType.COMMIT:
                    group = self._group(chunk)
                    if group is None:
                        self._wait(start)
                        return None
                    if type(group) is StoredGroup or self._behind is not None or group.end.file_no != start.file_no:
                        self._check_may_wait()
                    if group.gtid is not None:
                        self._log_in_order(group.gtid, start.position)
                    self._has_seen_group, self._may_begin_inside = True, False
                    if self._state is not None and group.gtid is not None:
                        self._state.log(group.gtid)
                    if group.end.file_no != group.start.file_no:
                        self._check_file_begin(cursor.file_no)
                    return group
                if self._other_checks is not None:
                    self._judge(chunk, self._other_checks)
                if chunk.record_type == RecordType.GTID_STATE and cursor.page_no == FULL_STATE_PAGE:
                    if not self._check_full_state(chunk):
                        self._wait(start)
                        return None
                    continue
                self._is_inside_other = True
                if not chunk.is_last and not cursor.skip_record(chunk):
                    self._wait(start)
                    return None
                self._is_inside_other = False
            except BaseException as error:
                cursor.go_to(inside or start if isinstance(error, BlockingIOError) else start)
                self._behind = None
                raise

    def _judge(self, first: Chunk, checks: ChunkChecks) -> None:
        head, is_last = bytearray(), False
        for chunk in self._cursor.fork().chunks_of(first):
            head += chunk.data
            is_last = chunk.is_last
            if len(head) >= HEAD_SIZE:
                break
        if is_last or len(head) >= HEAD_SIZE:
            checks.record(first.record_type, bytes(head), self._cursor.ref_of(first), is_last)

    def _check_inside(self, chunk: Chunk) -> None:
        location = self._cursor.ref_of(chunk)
        if chunk.record_type == self._inside_type:
            if chunk.is_first:
                raise ChunkError(location, Misplaced.NOT_ENDED.value)
            if chunk.is_last:
                self._inside_type = -1
        elif chunk.record_type not in NESTABLE:
            problem = Misplaced.INSIDE.value.format(found=chunk.record_type, record=self._inside_type)
            raise ChunkError(location, problem)

    def _log_in_order(self, gtid: Gtid, position: LogPosition) -> None:
        if self._at_step_back is not None and gtid.seq_no <= (self._last.seq_no(gtid.domain_id, gtid.server_id) or 0):
            self._at_step_back(position)
        self._last.log(gtid)
        self._last_gtid = gtid

    def _wait(self, start: ChunkCursor) -> None:
        self._check_may_wait()
        self.stopped_at = self._cursor.position
        self._cursor.go_to(start)

    def _check_may_wait(self) -> None:
        if self._pages.only_cached:
            raise BlockingIOError(f"{self.disk}: more than a group in memory has to be read at {self._cursor.position}")

    def _enter_file(self, file_no: int) -> None:
        """Inside a commit record the state of the file counts that group, so it is compared later."""
        self._check_may_wait()
        check_not_cut(self.disk, file_no - 1)
        if self._is_inside_other:
            self._check_file_begin(file_no)

    def _check_file_begin(self, file_no: int) -> None:
        record = read_state_record(PageReader(self.disk, readahead_pages_max=1), file_no, FULL_STATE_PAGE)
        if record is not None:
            self._begin_file(GtidState(record.gtids), LogPosition.on_page(file_no, FULL_STATE_PAGE))

    def _begin_file(self, found: GtidState, location: LogPosition) -> None:
        if self._state is not None:
            check_continuation(found, self._state, location, base=self._base)
        self._state, self._base, self._last = found, found.copy(), found.copy()

    def _check_full_state(self, first: Chunk) -> bool:
        """False if it is not whole yet."""
        ref = self._cursor.ref_of(first)
        chunks = list(self._cursor.chunks_of(first))
        if not chunks[-1].is_last:
            return False
        found = GtidState(decode_gtid_state(b"".join(chunk.data for chunk in chunks), ref).gtids)
        self._begin_file(found, ref)
        return True

    def _group(self, first: Chunk) -> EventGroup | None:
        cursor = self._cursor
        ref = cursor.ref_of(first)
        pieces: list[memoryview] = [first.data]
        if first.is_last:
            end = cursor
        else:
            held = len(first.data)
            before_rest = cursor.fork()
            is_whole, is_held = False, True
            chunks = cursor.chunks_of(first)
            next(chunks)
            for chunk in chunks:
                is_whole = chunk.is_last
                held += len(chunk.data)
                is_held = held <= COMMIT_HELD_MAX
                if is_held:
                    pieces.append(chunk.data)
            if not is_whole:
                return None
            end = cursor.fork()
            if not is_held:
                cursor.go_to(before_rest)
                return self._long_group(ref, first, end)
        head = bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)
        return self._assemble(ref, head, iter(()), end.position)

    def _long_group(self, ref: LogPosition, first: Chunk, end: ChunkCursor) -> EventGroup:
        """As `_group`, for a record too long to hold: reads its chunks again."""
        chunks = self._cursor.chunks_of(first)
        head = bytearray()
        for chunk in chunks:
            head += chunk.data
            if len(head) >= HEAD_SIZE:
                break
        self._behind = end
        return self._assemble(ref, bytes(head), chunks, end.position)

    def _assemble(self, ref: LogPosition, head: bytes, rest: Iterator[Chunk], end: LogPosition) -> EventGroup:
        header, size = decode_commit_header(head, ref)
        gtid, event_end = decode_first_event(head, size, ref)
        payload = head[event_end:]
        common: dict[str, Any] = {
            "gtid": gtid,
            "gtid_event": head[size:event_end],
            "body": self._body(payload, rest, header.streams, ref),
            "start": ref,
            "end": end,
        }
        if not header.streams or self._behind is not None:
            return EventGroup(**common)
        return StoredGroup(**common, payload=payload, streams=header.streams)

    def _body(
        self, head: bytes, rest: Iterator[Chunk], streams: tuple[OobStream, ...], ref: LogPosition
    ) -> Iterator[Buffer]:
        if head:
            yield head
        for chunk in rest:
            yield chunk.data
        for stream in streams:
            yield from self._out_of_band.data(stream, ref)


def _first_gtid(head: Buffer) -> tuple[Gtid, ...]:
    if len(head) < GLANCE_SIZE or CHUNK_HEADER_SIZE + int.from_bytes(head[1:3], "little") < GLANCE_SIZE:
        return ()  # it goes on in another chunk
    if head[0] & ~LAST != RecordType.COMMIT or head[3] or head[8] != EventType.GTID:
        return ()
    server_id, seq_no, domain_id = GLANCE.unpack_from(head)
    return (Gtid(domain_id=domain_id, server_id=server_id, seq_no=seq_no),)


def decode_first_event(head: bytes, start: int, ref: LogPosition) -> tuple[Gtid | None, int]:
    """The GTID of a commit record, and where its first event ends. Raises RecordError: it is another event."""
    try:
        header = decode_event_header(head, start)
        end = start + header.size
        if end > len(head):
            raise EventError(f"the first event of {header.size} bytes does not fit into the record")
        if header.event_type == EventType.GTID:
            gtid, _ = decode_gtid(header, memoryview(head)[start:end])
            return gtid, end
        if header.event_type != EventType.FORMAT_DESCRIPTION:
            raise EventError(f"the first event has type {header.event_type}, expected a GTID event")
        if end != len(head):
            raise EventError(f"{len(head) - end} bytes behind a FORMAT_DESCRIPTION event")
    except EventError as error:
        raise RecordError(ref, f"commit record: {error}") from None
    assert end >= start + EVENT_HEADER_SIZE
    return None, end
