"""One file of a traditional binlog from an event on, every event as the file has it: what a primary sends of it.

Nothing is taken off or left out. Outside of groups, as in the head, or from a place inside one to its end, each event
comes as an `EventGroup` without GTID. The FORMAT_DESCRIPTION always comes first, and ends where reading begins.

Invariants:
- An event comes only if it is whole and, where the file has checksums, right; of an event above `LARGE_EVENT_SIZE` the
  verdict comes last (test_what_a_copier_appends_and_the_files_that_follow_come_when_they_are_there).
- Of a file that may grow, only whole groups come (test_a_long_group_comes_once_all_of_it_is_there)."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ibbmaster.errors import ClassicFormatError, MissingEventError
from ibbmaster.kernel.fields import ENDS, MAY_END, NOT_INSIDE
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, HEADER, EventHeader
from ibbmaster.replication.event.types import EventType, type_name
from ibbmaster.storage.codec.buffer import Buffer
from .groups import CUT_SHORT, ENDING_TYPES, LARGE_EVENT_SIZE, TRANSACTION, ClassicFileReader
from .head import GTID_LIST_SIZE_MAX, FileHead, is_marked_in_use
from .roles import KNOWN_TYPES, TRANSACTION_ROLES
from .series import FIRST_EVENT_OFFSET, ClassicFile, ClassicSource
from .window import Truncated

EVENT_SIZE_MAX = 1 << 30  # bytes: no primary sends a larger event
QUERY_SIZE_MAX = 1 << 16
#: A replica stops at the last one.
AROUND_TYPES = ENDING_TYPES | {EventType.GTID_LIST, EventType.BINLOG_CHECKPOINT, EventType.INCIDENT}


class StoredFileReader(ClassicFileReader):
    """All there is in a file, from an offset on, at which an event begins if it `is_between_groups`. More may come
    while it `may_grow`; `has_ended`: its last event was given. Raises as `read_head`."""

    def __init__(
        self,
        file: ClassicFile,
        offset: int = FIRST_EVENT_OFFSET,
        *,
        source: ClassicSource | None = None,
        may_grow: bool = False,
        is_between_groups: bool = False,
    ) -> None:
        super().__init__(file, source=source, is_stored=True)
        self._first_offset = FIRST_EVENT_OFFSET + len(self.head.format_description)
        self._offset = offset if offset > FIRST_EVENT_OFFSET else self._first_offset
        self.is_lead_in = not is_between_groups and self._offset != self._first_offset
        self._walk = (0, 0)  # of an incomplete group: its begin, and how much is there
        self.has_ended = False
        try:
            # its server may have ended the file, and packs none that it still writes
            self.may_grow = may_grow and not self.window.source.is_packed and self.end_type() is None
        except BlockingIOError:
            self.close()
            raise
        self.is_marked_in_use = self.window.is_in_use  # as far as is known
        self.window.is_in_use |= self.may_grow

    def complete(self) -> None:
        """No more will come: what is cut at the end stays so."""
        self.may_grow = False
        self.is_marked_in_use = self.is_marked_in_use and is_marked_in_use(self.window.source)
        self.window.is_in_use = self.is_marked_in_use

    def items_from(self, offset: int) -> Iterator[EventGroup | None]:
        """As `items`, without the first, from an offset between groups on."""
        assert not self.is_lead_in
        self._offset, self.is_at_group_end, self._is_passed_over = offset, True, False
        items = self.items()
        next(items)
        return items

    def items(self) -> Iterator[EventGroup | None]:
        """Yield every group and every other event; None whenever nothing more is there, and the caller may ask again.
        Raises ClassicFormatError: the file is damaged; MissingEventError: no event begins at the first offset."""
        window = self.window
        window.go_to(self._offset)
        yield self._item(self.head.format_description, FIRST_EVENT_OFFSET)
        while True:
            offset = window.offset
            try:
                if not window.has_more():
                    raise Truncated
                if self.is_lead_in and offset == self._offset:
                    self._expect_event()
                event_type = window.peek_type()
                if is_group := event_type == EventType.GTID:
                    item = self._group(offset, window.read_event(LARGE_EVENT_SIZE, is_stored=True)[1])
                else:
                    item = self._event(event_type, offset)
            except Truncated:
                window.go_to(offset)
                yield None
                continue
            self.is_lead_in = self.is_lead_in and not is_group
            yield item
            self._pass_over(item)
            self.has_ended = event_type in ENDING_TYPES

    def _event(self, event_type: int, offset: int) -> EventGroup:
        window = self.window
        if self.has_ended:
            raise window.error(offset, "bytes after the event that ends the file")
        size = window.peek_size()
        may_be_free = not self.head.knows_gtids and TRANSACTION_ROLES[event_type] != NOT_INSIDE
        if not (self.is_lead_in or event_type in AROUND_TYPES or may_be_free):
            self._ends_file(event_type, offset)  # says what is wrong
        if size <= LARGE_EVENT_SIZE or event_type == EventType.GTID_LIST:
            _, event = window.read_event(GTID_LIST_SIZE_MAX, is_stored=True)
            return self._item(event, offset)
        if offset + size > window.source.size_bytes:
            raise Truncated
        pieces = self._read_large_event(size)
        header = bytes(next(pieces))
        return self._item(header, offset, pieces, offset + size)

    def _item(self, event: bytes, offset: int, body: Iterable[Buffer] = (), end: int | None = None) -> EventGroup:
        file_no = self.file.index
        start, behind = LogPosition(file_no, offset), LogPosition(file_no, self.window.offset if end is None else end)
        return EventGroup(gtid=None, gtid_event=event, body=iter(body), start=start, end=behind)

    def end_type(self) -> EventType | None:
        """The type of the last event, if it is a STOP, or a ROTATE to a name as long; None of a packed file."""
        source, checksum_size = self.window.source, self.window.checksum_size
        if source.is_packed:
            return None
        size_bytes = source.size_bytes
        for event_type, body_size in ((EventType.STOP, 0), (EventType.ROTATE, 8 + len(self.file.own_name.encode()))):
            size = EVENT_HEADER_SIZE + body_size + checksum_size
            found = source.read(max(size_bytes - size, 0), EVENT_HEADER_SIZE)
            if len(found) == EVENT_HEADER_SIZE:
                _, found_type, _, found_size, log_pos, _ = HEADER.unpack(found)
                if (found_type, found_size, log_pos) == (event_type, size, size_bytes & 0xFFFFFFFF):
                    return event_type
        return None

    def _expect_event(self) -> None:
        """Raises MissingEventError: none begins at a client's first offset; Truncated: it is not whole yet."""
        window, offset = self.window, self._offset
        name = self.file.name
        try:
            window.require(EVENT_HEADER_SIZE)
        except Truncated:
            if self.may_grow and self._is_border(offset):
                raise
            problem = "the file ends here, inside the header of an event"
            raise MissingEventError(name, offset, problem, None, True) from None
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

    def _long_group_end(self, group_at: int, behind_gtid: int, roles: bytes) -> int:
        """Of a packed file, how far it was read. Continues where the file ended before."""
        window, source = self.window, self.window.source
        if source.is_packed:
            return super()._long_group_end(group_at, behind_gtid, roles)
        at = self._walk[1] if self._walk[0] == group_at else behind_gtid
        size_bytes = source.size_bytes
        while at + EVENT_HEADER_SIZE <= size_bytes:
            header = EventHeader._make(HEADER.unpack(source.read(at, EVENT_HEADER_SIZE)))
            if header.size < EVENT_HEADER_SIZE:
                return at  # damage: reading it says so
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
        """The error for a file that ends inside something and does not grow."""
        window = self.window
        if not window.has_more() or self.is_marked_in_use:
            return None
        return window.error(window.offset, CUT_SHORT)

    def unfinished(self) -> str | None:
        """A remark for users on the cut end of the last file."""
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
            f"{self.file.name} offset {offset}: {CUT_SHORT}{size}: {cause}; dumps wait for the rest. "
            "`ibbmaster verify` tells whether all before it is right"
        )


class StoredFileState(NamedTuple):
    file: ClassicFile
    head: FileHead
    is_marked_in_use: bool
    end: EventType | None  # as `StoredFileReader.end_type`


def file_state(file: ClassicFile) -> StoredFileState:
    """Raises as `read_head`."""
    with contextlib.closing(StoredFileReader(file)) as reader:
        return StoredFileState(file, reader.head, reader.is_marked_in_use, reader.end_type())
