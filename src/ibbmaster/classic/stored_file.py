"""One file of a traditional binlog from an event on, every event as the file has it: what a primary sends of it.

Nothing is taken off and nothing is left out. What is not a group is given event by event, as an `EventGroup` without
GTID: the head of the file, what stands between groups and after them, and from a place inside a group all that is left
of that. The first is always the FORMAT_DESCRIPTION, and it ends where the reader begins to read.

Invariants:
- An event is given only if all of it is there and, where the file has checksums, is right; of
  one above `LARGE_EVENT_SIZE` the verdict comes last
  (test_what_a_copier_appends_and_the_files_that_follow_come_when_they_are_there).
- A group of a file that may grow is given only if all of it is there
  (test_a_long_group_comes_once_all_of_it_is_there).
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ibbmaster.classic.groups import ENDING_TYPES, LARGE_EVENT_SIZE, TRANSACTION, ClassicFileReader
from ibbmaster.classic.head import GTID_LIST_SIZE_MAX, FileHead, is_marked_in_use
from ibbmaster.classic.roles import KNOWN_TYPES, STANDALONE_ROLES, TRANSACTION_ROLES
from ibbmaster.classic.series import FIRST_EVENT_OFFSET, ClassicFile
from ibbmaster.classic.window import Truncated
from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import ClassicFormatError, MissingEventError
from ibbmaster.event.group import EventGroup
from ibbmaster.event.gtid_event import GtidFlag
from ibbmaster.event.header import EVENT_HEADER_SIZE, HEADER, EventHeader, without_checksum
from ibbmaster.event.types import EventType, type_name
from ibbmaster.kernel.fields import ENDS, MAY_END, NOT_INSIDE
from ibbmaster.position import LogPosition

EVENT_SIZE_MAX = 1 << 30  # bytes: no primary sends an event that is larger
QUERY_SIZE_MAX = 1 << 16  # bytes of a QUERY that can end a group
_CUT = "the file ends inside what begins here"
#: A replica stops at the last one.
AROUND_TYPES = ENDING_TYPES | {EventType.GTID_LIST, EventType.BINLOG_CHECKPOINT, EventType.INCIDENT}


class StoredFileReader(ClassicFileReader):
    """All there is in a file, from an offset on.

    Attributes:
        may_grow: whether more of the file may come; who looks at the directory keeps it right.
        has_ended: its last event was given.

    Raises ClassicFormatError: the file does not begin as a traditional binlog of MariaDB, or it is encrypted.
    """

    def __init__(
        self,
        file: ClassicFile,
        offset: int = FIRST_EVENT_OFFSET,
        *,
        may_grow: bool = False,
        is_between_groups: bool = False,
        only_cached: bool = False,
        stands: Callable[[bool], bool] = lambda only_cached: True,
    ) -> None:
        """Begin at an offset; where it is not known to be `is_between_groups`, an event may begin there or not.
        `only_cached` is as `ClassicFileReader` has it, `stands` as `ClassicSource`."""
        super().__init__(file, is_stored=True, only_cached=only_cached, stands=stands)
        self._first_offset = FIRST_EVENT_OFFSET + len(self.head.format_description)
        self._offset = offset if offset > FIRST_EVENT_OFFSET else self._first_offset
        self._is_lead_in = not is_between_groups and self._offset != self._first_offset
        self._walk = (0, 0)  # of the group that was not all there: where it begins, and how much of it is there
        self.has_ended = False
        try:
            # its server may have ended the file; one that is still written is not packed
            self.may_grow = may_grow and not self.window.source.is_packed and self.end_type() is None
        except BlockingIOError:
            self.close()
            raise
        self.is_marked_in_use = self.window.is_in_use  # its server has not closed it, as far as is known
        self.window.is_in_use |= self.may_grow

    def complete(self) -> None:
        """No more of it will come: what is cut at its end stays so."""
        self.may_grow = False
        self.is_marked_in_use = self.is_marked_in_use and is_marked_in_use(self.window.source)
        self.window.is_in_use = self.is_marked_in_use

    @property
    def is_between_groups(self) -> bool:
        """Whether what comes next is known to be no event inside of a group."""
        return not self._is_lead_in

    def items_from(self, offset: int) -> Iterator[EventGroup | None]:
        """As `items`, without the first, from an offset between groups on."""
        assert not self._is_lead_in
        self._offset, self.is_at_group_end, self._is_passed_over = offset, True, False
        items = self.items()
        next(items)
        return items

    def items(self) -> Iterator[EventGroup | None]:
        """Every group and every other event; None whenever nothing more is there: then go on, or not.
        Raises ClassicFormatError: the file is damaged; MissingEventError: no event begins at the first offset."""
        window = self.window
        window.go_to(self._offset)
        yield self._item(self.head.format_description, FIRST_EVENT_OFFSET)
        is_lead_in = self._is_lead_in
        while True:
            offset = window.offset
            try:
                if not window.has_more():
                    raise Truncated
                if is_lead_in and offset == self._offset:
                    self._expect_event()
                event_type = window.peek_type()
                is_group = event_type == EventType.GTID
                item = self._group(offset) if is_group else self._event(event_type, offset, is_lead_in=is_lead_in)
            except Truncated:
                window.go_to(offset)
                yield None
                continue
            self._is_lead_in = is_lead_in = is_lead_in and not is_group
            yield item
            if not self._is_passed_over:
                for _ in item.body:  # what the caller did not want
                    pass
            self._is_passed_over = False
            self.has_ended = event_type in ENDING_TYPES

    # What is given -----------------------------------------------------------------------

    def _group(self, offset: int) -> EventGroup:
        window = self.window
        _, event = window.read_event(LARGE_EVENT_SIZE, is_stored=True)
        gtid, flags = self._decode_gtid(without_checksum(event, window.checksum_size), offset)
        roles = STANDALONE_ROLES if flags & GtidFlag.STANDALONE else TRANSACTION_ROLES
        self.is_at_group_end = False
        body = self._read_body(roles)
        first = next(body)
        is_whole = self.is_at_group_end
        end = window.offset if is_whole else self._group_end(offset, offset + len(event), roles)
        return EventGroup(
            gtid=gtid,
            gtid_event=event,
            body=iter((first,)) if is_whole else self._rest_of_body(first, body, offset),
            start=LogPosition(self.file.index, offset),
            end=LogPosition(self.file.index, end),
        )

    def _event(self, event_type: int, offset: int, *, is_lead_in: bool) -> EventGroup:
        """An event that is in no group, or is of one that began before the first offset."""
        window = self.window
        if self.has_ended:
            raise window.error(offset, "bytes after the event that ends the file")
        size = window.peek_size()
        if not is_lead_in:
            self._expect_around(event_type, offset)
        if size <= LARGE_EVENT_SIZE or event_type == EventType.GTID_LIST:
            _, event = window.read_event(GTID_LIST_SIZE_MAX, is_stored=True)
            return self._item(event, offset)
        if offset + size > window.source.size_bytes:
            raise Truncated
        pieces = self._read_large_event(size)
        header = bytes(next(pieces))
        return self._item(header, offset, pieces, offset + size)

    def _expect_around(self, event_type: int, offset: int) -> None:
        is_free = not self.head.knows_gtids and TRANSACTION_ROLES[event_type] != NOT_INSIDE
        if event_type not in AROUND_TYPES and not is_free:
            self._ends_file(event_type, offset)  # says what is wrong

    def _item(self, event: bytes, offset: int, body: Iterable[Buffer] = (), end: int | None = None) -> EventGroup:
        """What is no group; without `end` all of it was read."""
        file_no, end = self.file.index, self.window.offset if end is None else end
        start = LogPosition(file_no, offset)
        return EventGroup(gtid=None, gtid_event=event, body=iter(body), start=start, end=LogPosition(file_no, end))

    # What is there -----------------------------------------------------------------------

    def end_type(self) -> EventType | None:
        """The type of the last event, if it is a STOP, or a ROTATE to a name as long; None of a packed file."""
        source, checksum_size = self.window.source, self.window.checksum_size
        if source.is_packed:
            return None
        size_bytes = source.size_bytes
        for event_type, body_size in ((EventType.STOP, 0), (EventType.ROTATE, 8 + len(self.file.name.encode()))):
            size = EVENT_HEADER_SIZE + body_size + checksum_size
            found = source.read(max(size_bytes - size, 0), EVENT_HEADER_SIZE)
            if len(found) == EVENT_HEADER_SIZE:
                _, found_type, _, found_size, log_pos, _ = HEADER.unpack(found)
                if (found_type, found_size, log_pos) == (event_type, size, size_bytes & 0xFFFFFFFF):
                    return event_type
        return None

    def _expect_event(self) -> None:
        """Whether an event begins at the first offset, which a client has named.
        Raises MissingEventError: none does; Truncated: it has not come whole yet."""
        window, offset = self.window, self._offset
        name = self.file.name
        try:
            window.require(EVENT_HEADER_SIZE)
        except Truncated:
            if self.may_grow and self._is_border(offset):
                raise
            raise MissingEventError(
                name, offset, "the file ends here, inside the header of an event", None, True
            ) from None
        _, event_type, _, size, log_pos, _ = HEADER.unpack_from(window.block, window.position)
        end = offset + size
        is_cut = end > window.source.size_bytes
        is_to_come = is_cut and log_pos == end & 0xFFFFFFFF and self.may_grow
        if size < EVENT_HEADER_SIZE + window.checksum_size or size > EVENT_SIZE_MAX or (is_cut and not is_to_come):
            problem = f"no event begins here: it would have {size} bytes"
        elif event_type not in KNOWN_TYPES:
            problem = f"no event begins here: it would be {type_name(event_type)}"
        elif log_pos and log_pos != end & 0xFFFFFFFF:
            problem = f"no event begins here: it would end at {end}, and says {log_pos}"
        elif not window.checksum_size and not self._is_border(offset):
            problem = "this lies inside an event"
        else:
            return
        raise MissingEventError(name, offset, problem, size, is_cut)

    def _is_border(self, offset: int) -> bool:
        """Whether an event begins at an offset, as the sizes of those before it say."""
        at, source = self._first_offset, self.window.source
        data, data_at = b"", at
        while at < offset:
            if at + EVENT_HEADER_SIZE > data_at + len(data):
                data, data_at = source.read(at, LARGE_EVENT_SIZE), at
            if len(data) < EVENT_HEADER_SIZE:
                return False
            size = HEADER.unpack_from(data, at - data_at)[3]
            at += max(size, EVENT_HEADER_SIZE)
        return at == offset

    def _group_end(self, group_at: int, behind_gtid: int, roles: bytes) -> int:
        """Where a group ends that is long, and not read yet; of a packed file how far it was read. Continues where it
        found the end of the file before. Raises Truncated: not all of it is there, and the file is in use."""
        window, source = self.window, self.window.source
        if source.is_packed:
            if window.is_in_use and group_at >= self._find_complete_end():
                raise Truncated
            return window.offset
        at = self._walk[1] if self._walk[0] == group_at else behind_gtid
        size_bytes = source.size_bytes
        while at + EVENT_HEADER_SIZE <= size_bytes:
            header = EventHeader._make(HEADER.unpack(source.read(at, EVENT_HEADER_SIZE)))
            if header.size < EVENT_HEADER_SIZE:
                return at  # damage: who reads it says so
            if at + header.size > size_bytes:
                break
            role = roles[header.event_type]
            if role == MAY_END and header.size <= QUERY_SIZE_MAX:
                event = source.read(at, header.size - window.checksum_size)
                role = ENDS if TRANSACTION.ends_with(header, event) else role
            at += header.size
            if role == ENDS:
                return at
        self._walk = group_at, at
        if window.is_in_use:
            raise Truncated
        return at

    def cut_error(self) -> ClassicFormatError | None:
        """What to raise where the file ends inside something and no more of it comes; None if it is as it should be."""
        window = self.window
        if not window.has_more() or self.is_marked_in_use:
            return None
        return window.error(window.offset, _CUT)

    def unfinished(self) -> str | None:
        """What a user should know of the end of a file that is the last; None if nothing is cut."""
        window = self.window
        if not window.has_more():
            return None
        offset = window.offset
        if self.is_marked_in_use:
            cause = "it is still being written, or its server crashed"
        else:
            cause = "a copy of it is still under way, or was cut short"
        size = "" if window.source.is_packed else f", after {window.source.size_bytes - offset} bytes of it"
        return (
            f"{self.file.name} offset {offset}: {_CUT}{size}: {cause}; dumps wait for the rest. "
            "`ibbmaster verify` tells whether all before it is right"
        )


class StoredFileState(NamedTuple):
    """A file as its head and its end have it."""

    file: ClassicFile
    head: FileHead
    is_marked_in_use: bool  # its server has not closed it, as far as it says
    end: EventType | None  # the type of its last event if that is a STOP or ROTATE; not looked at in a packed file


def file_state(file: ClassicFile) -> StoredFileState:
    """Look at the head and the end of a file.
    Raises ClassicFormatError: the file does not begin as a traditional binlog of MariaDB, or it is encrypted."""
    with contextlib.closing(StoredFileReader(file)) as reader:
        return StoredFileState(file, reader.head, reader.is_marked_in_use, reader.end_type())
