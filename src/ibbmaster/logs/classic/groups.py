"""One file of a traditional binlog, cut into event groups as an engine binlog stores them.

Each event loses its checksum (its size field shrinks by as much), and its `log_pos` becomes 0. Events that describe the
file (FORMAT_DESCRIPTION, GTID_LIST, BINLOG_CHECKPOINT, ROTATE, STOP) are left out.

Invariants:
- Where a file has checksums, an event comes only after its checksum was verified; of an event above `LARGE_EVENT_SIZE`
  the pieces come first and the verdict last (test_each_flipped_bit_of_a_file_with_checksums_is_found,
  test_a_damaged_large_event_is_found_when_its_group_is_read).
- Of a file that the server has not closed, only complete groups come
  (test_of_a_file_in_use_an_unfinished_group_is_left_out_with_a_notice,
  test_a_large_group_of_a_file_in_use_is_delivered_only_if_it_is_complete).
- Memory does not depend on the size of an event or a group (test_memory_does_not_grow_with_an_event)."""

import zlib
from collections.abc import Callable, Iterator

from ibbmaster.errors import EventError
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.fields import CONTINUES, ENDS, MAY_END, NOT_INSIDE
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup, GroupBoundary
from ibbmaster.replication.event.gtid_event import FIXED, GtidFlag, decode_gtid_event, has_plain_fields
from ibbmaster.replication.event.header import (
    CHECKSUM_SIZE,
    EVENT_HEADER_SIZE,
    HEADER,
    SIZE_OFFSET,
    EventHeader,
    without_checksum,
)
from ibbmaster.replication.event.types import EventType, type_name
from ibbmaster.storage.codec.buffer import Buffer
from .head import read_head
from .roles import KNOWN_TYPES, MYSQL_GTID_TYPES, STANDALONE_ROLES, TRANSACTION_ROLES
from .series import ClassicFile, ClassicSource
from .window import CHECKSUM_RESIDUE, SIZE_AND_LOG_POS, EventWindow, Truncated

GROUP_BUFFER_SIZE = 1 << 18  # bytes: a shorter group comes in one piece
LARGE_EVENT_SIZE = 1 << 19  # bytes: of a larger event memory never holds all

# Plain integers: comparing with enumeration members takes a third of the time of a small group.
_GTID = int(EventType.GTID)
_IS_STANDALONE = int(GtidFlag.STANDALONE)

TRANSACTION = GroupBoundary(0)
ENDING_TYPES = frozenset({EventType.ROTATE, EventType.STOP})
_BEHIND_ANY_FILE = 1 << 64
CUT_SHORT = "the file ends inside what begins here"


class ClassicFileReader:
    """The event groups of one file, in order; reads its head at once. `notice` is for users, about the end of the file;
    `window` has its bytes; `is_at_group_end`: the last group was read to its end. Raises as `read_head`."""

    def __init__(
        self, file: ClassicFile, *, source: ClassicSource | None = None, is_stored: bool = False, reads_on: bool = False
    ) -> None:
        """With `is_stored`, events come as the file has them, checksum and all; `reads_on` as in `EventWindow`. The
        reader closes `source`, the bytes of the file, which it opens itself if not given."""
        self.file = file
        self._is_stored = is_stored
        self.notice: str | None = None
        self.window = EventWindow(source or ClassicSource(file), reads_on=reads_on)
        self.is_at_group_end = True
        self._is_passed_over = False  # the rest of the group that was yielded last
        self._groups_end = 0
        self._complete_end: int | None = None  # of a file in use: where its last whole group ends
        try:
            self.head = read_head(self.window)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.window.close()

    def continue_at(self, offset: int) -> None:
        """Continue between groups, after a yielded one: the caller has read what is before this offset."""
        self.window.go_to(offset)
        self._is_passed_over = self.is_at_group_end = True

    def groups(self, take: Callable[[EventWindow], bool] | None = None) -> Iterator[EventGroup]:
        """Yield every event group; call this once. Between groups `take` may read whole groups itself by moving the
        window; it returns whether it did. Raises ClassicFormatError, also from a body that comes in pieces: the file is
        damaged, or ends inside a group although the server had closed it."""
        window = self.window
        offset = window.offset
        try:
            while window.has_more():
                if take is not None and self.head.state is not None and take(window):
                    self._groups_end = window.offset
                    continue
                offset = window.offset
                event_type, event = window.read_event(LARGE_EVENT_SIZE)
                if event_type == _GTID:
                    group = self._group(offset, event)
                    yield group
                    self._pass_over(group)
                    self._groups_end = window.offset
                elif self._ends_file(event_type, offset):
                    return
        except Truncated:
            if not window.is_in_use:
                raise window.error(offset, CUT_SHORT) from None
            self.notice = (
                f"{self.file.name} offset {offset}: the server had not finished what begins here, it is left out"
            )

    def _pass_over(self, group: EventGroup) -> None:
        if not self._is_passed_over:
            for _ in group.body:
                pass
        self._is_passed_over = False

    def _group(self, offset: int, event: bytes) -> EventGroup:
        """Raises Truncated: the file is in use, and lacks a part of the group."""
        window = self.window
        behind_gtid = window.offset
        plain = without_checksum(event, window.checksum_size) if self._is_stored else event
        gtid, flags = self._decode_gtid(plain, offset)
        roles = STANDALONE_ROLES if flags & _IS_STANDALONE else TRANSACTION_ROLES
        self.is_at_group_end = False
        body = self._read_body(roles)
        first = next(body)
        is_whole = self.is_at_group_end
        end = window.offset if is_whole else self._long_group_end(offset, behind_gtid, roles)
        return EventGroup(
            gtid=gtid,
            gtid_event=event,
            body=iter((first,)) if is_whole else self._rest_of_body(first, body, offset),
            start=LogPosition(self.file.index, offset),
            end=LogPosition(self.file.index, end),
        )

    def _long_group_end(self, group_at: int, behind_gtid: int, roles: bytes) -> int:
        """How far it was read. Raises Truncated: as `_group`."""
        if self.window.is_in_use and group_at >= self._find_complete_end():
            raise Truncated
        return self.window.offset

    def _ends_file(self, event_type: int, offset: int) -> bool:
        window = self.window
        if event_type == EventType.BINLOG_CHECKPOINT:
            return False
        if event_type in ENDING_TYPES:
            if window.has_more():
                raise window.error(window.offset, f"bytes after the {type_name(event_type)} event that ends the file")
            return True
        if event_type == EventType.INCIDENT:
            raise window.error(
                offset,
                "an INCIDENT event: the server may have lost events here, so a replica of this log could not be right; "
                "import the files before this one, and begin anew with those after it",
            )
        if event_type in MYSQL_GTID_TYPES:
            raise window.error(offset, "a GTID of MySQL: only binlogs of MariaDB can be read")
        if not self.head.knows_gtids:
            problem = f"{type_name(event_type)} event of a server without GTIDs, {self.head.server_version}"
            raise window.error(offset, f"{problem}: such a log can be served by file and position, and nothing else")
        raise window.error(offset, f"{type_name(event_type)} event outside of an event group")

    def _decode_gtid(self, event: bytes, offset: int) -> tuple[Gtid, int]:
        window = self.window
        if self.head.state is None:
            raise window.error(offset, "an event group, but no GTID_LIST event before it tells what was logged earlier")
        if has_plain_fields(event):
            seq_no, domain_id, flags = FIXED.unpack_from(event, EVENT_HEADER_SIZE)
            server_id = int.from_bytes(event[5:9], "little")
            return Gtid(domain_id=domain_id, server_id=server_id, seq_no=seq_no), flags
        try:
            decoded = decode_gtid_event(event)
        except EventError as error:
            raise window.error(offset, str(error)) from None
        return decoded.gtid, int(decoded.flags)

    def _read_body(self, roles: bytes) -> Iterator[Buffer]:
        """Yield the events after the GTID event in pieces of about `GROUP_BUFFER_SIZE`. `is_at_group_end` becomes true
        before the last piece, so a group of one piece is read and verified then."""
        window = self.window
        unpack, pack_into, crc32 = HEADER.unpack_from, SIZE_AND_LOG_POS.pack_into, zlib.crc32
        checksum_size = window.checksum_size
        size_min = EVENT_HEADER_SIZE + checksum_size
        is_stored = self._is_stored
        taken_off = 0 if is_stored else checksum_size
        block, view, position = window.block, window.view, window.position
        limit = len(block)
        body = bytearray()
        role = CONTINUES
        while role != ENDS:
            if limit - position < EVENT_HEADER_SIZE:
                window.position = position
                window.require(EVENT_HEADER_SIZE)
                block, view, position = window.block, window.view, window.position
                limit = len(block)
            _, event_type, _, size, log_pos, _ = unpack(block, position)
            end = position + size
            if end > limit or size < size_min:
                window.position = position
                size = window.peek_size()  # raises if the size is impossible
                if size > LARGE_EVENT_SIZE:
                    if body:
                        yield body
                        body = bytearray()
                    if self._role(roles, event_type) == ENDS:  # a text of that size ends no transaction
                        role = ENDS
                    yield from self._read_large_event(size)
                else:
                    window.require(size)
                block, view, position = window.block, window.view, window.position
                limit = len(block)
                if size > LARGE_EVENT_SIZE:
                    continue
                end = position + size
            if log_pos and log_pos != (window.block_offset + end) & 0xFFFFFFFF:
                window.position = position
                window.check_log_pos(log_pos, size)
            if checksum_size and crc32(view[position:end]) != CHECKSUM_RESIDUE:
                window.position = position
                raise window.checksum_error(view[position:end])
            if role := roles[event_type]:
                window.position = position
                role = self._role(roles, event_type)
                if role == MAY_END:
                    header = EventHeader._make(unpack(block, position))
                    ends = TRANSACTION.ends_with(header, view[position : end - checksum_size])
                    role = ENDS if ends else CONTINUES
            start = len(body)
            body += view[position : end - taken_off]
            if not is_stored:
                pack_into(body, start + SIZE_OFFSET, size - checksum_size, 0)
            position = end
            if start >= GROUP_BUFFER_SIZE and role != ENDS:
                window.position = position
                yield body
                body = bytearray()
        window.position = position
        self.is_at_group_end = True
        yield body

    def _rest_of_body(self, first: Buffer, rest: Iterator[Buffer], offset: int) -> Iterator[Buffer]:
        yield first
        try:
            yield from rest
        except Truncated:
            if self._complete_end == _BEHIND_ANY_FILE:
                raise  # `groups` ends with the group before
            raise self.window.error(offset, CUT_SHORT) from None

    def _role(self, roles: bytes, event_type: int) -> int:
        window = self.window
        role = roles[event_type]
        if role == NOT_INSIDE:
            problem = "where the event group before it has not ended" if event_type in KNOWN_TYPES else "is unknown"
            raise window.error(window.offset, f"{type_name(event_type)} event {problem}")
        return role

    def _read_large_event(self, size: int) -> Iterator[Buffer]:
        window = self.window
        header = bytearray(window.view[window.position : window.position + EVENT_HEADER_SIZE])
        window.check_log_pos(HEADER.unpack_from(header)[4], size)
        offset = window.offset
        has_checksum = bool(window.checksum_size)
        checksum = zlib.crc32(header)
        if not self._is_stored:
            SIZE_AND_LOG_POS.pack_into(header, SIZE_OFFSET, size - window.checksum_size, 0)
        window.position += EVENT_HEADER_SIZE
        left = size - EVENT_HEADER_SIZE - window.checksum_size
        yield header
        while left:
            if window.position == len(window.block) and not window.extend():
                raise Truncated
            piece = window.view[window.position : window.position + left]
            if has_checksum:
                checksum = zlib.crc32(piece, checksum)
            window.position += len(piece)
            left -= len(piece)
            yield piece
        if has_checksum:
            window.require(CHECKSUM_SIZE)
            stored = window.view[window.position : window.position + CHECKSUM_SIZE]
            if int.from_bytes(stored, "little") != checksum:
                raise window.wrong_checksum(offset, stored, checksum)
            window.position += CHECKSUM_SIZE
            if self._is_stored:
                yield bytes(stored)

    def _find_complete_end(self) -> int:
        if self._complete_end is None:
            other = ClassicFileReader(self.file)
            other._complete_end = _BEHIND_ANY_FILE
            try:
                for _ in other.groups():
                    pass
            finally:
                other.close()
            self._complete_end = other._groups_end
        return self._complete_end
