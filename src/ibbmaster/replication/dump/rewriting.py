"""Each event on its way to one replica: left out, replaced, or passed on with its new header. Filters in MariaDB's
order: ANNOTATE_ROWS that were not requested, GTID events and events between groups that the replica does not know,
marked ones."""

import enum
import struct
import zlib
from typing import NamedTuple

from ibbmaster.errors import EventError
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.replication.event.group import GroupBoundary
from ibbmaster.replication.event.gtid_event import FIXED as GTID_FIXED
from ibbmaster.replication.event.gtid_event import GtidFlag
from ibbmaster.replication.event.header import (
    CHECKSUM,
    CHECKSUM_SIZE,
    EVENT_HEADER_SIZE,
    HEADER,
    SIZE,
    SIZE_OFFSET,
    TYPE_OFFSET,
    EventHeader,
    append_checksum,
    decode_event_header,
)
from ibbmaster.replication.event.types import EventFlag, EventType
from .error import DumpError
from .profile import LogPosRule, Profile
from .request import DumpRequest

CAPABILITY_ANNOTATE = 1  # each value includes the lower ones
CAPABILITY_TOLERATES_HOLES = 2
CAPABILITY_BINLOG_CHECKPOINT = 3
CAPABILITY_GTID = 4

FIRST_POSITION = 4  # of the first event of a traditional file
LOG_POS_MASK = 0xFFFFFFFF
FLAGS_HIGH_OFFSET = 18
SKIP_REPLICATION_BIT = EventFlag.SKIP_REPLICATION >> 8

QUERY_FIXED = struct.Struct("<IIBHH")  # thread id, seconds, database size, error code, status size
QUERY_SIZE_MIN = EVENT_HEADER_SIZE + QUERY_FIXED.size + 2  # end of the empty database, one byte of text
PADDING_VARIABLE = b"\xff"  # a status variable that means nothing, and takes the rest of the status
BEGIN = b"BEGIN"
BEGIN_SIZE_MIN = QUERY_SIZE_MIN - 1 + len(BEGIN)
DUMMY_TEXT = "# Dummy event replacing event type {} that slave cannot handle."
DUMMY_VARIABLE = b"!dummyvar"
USER_VAR_SIZE_MIN = EVENT_HEADER_SIZE + 6  # size of the name, one byte of name, "is NULL"


class _Action(enum.Enum):
    LEAVE_OUT = enum.auto()
    DUMMY = enum.auto()
    BEGIN = enum.auto()


class LargeEvent(NamedTuple):
    """It goes out as `head`, then the rest of its bytes or blanks, then its CRC."""

    head: bytes
    size: int  # on the wire, checksum included
    is_replaced: bool  # nothing of the event's own bytes goes out, but blanks up to its size
    has_checksum: bool


class LogPositions(NamedTuple):
    """Of the next event and the one before in a traditional file made of a dump."""

    next: int
    last: int


class Made(NamedTuple):
    log_pos_rule: LogPosRule
    has_checksums: bool


class Selection(NamedTuple):
    """Which events of a log go out, each after `prefix`: as in an engine binlog; with `is_stored` as in a traditional
    file; with `made` as in a file made of them. In the latter two `log_positions` are counted."""

    leaves_out_annotate: bool
    leaves_out_marked: bool
    prefix: bytes
    log_positions: LogPositions | None = None
    is_stored: bool = False
    made: Made | None = None

    def behind(self, log_positions: LogPositions | None) -> "Selection":
        return self._replace(log_positions=log_positions)


class Rewriter:
    """The rules of one dump. `position`: of the next event in a traditional file made of what passes. Events before
    `send_from` in the first file are left out."""

    def __init__(self, request: DumpRequest, profile: Profile, *, send_from: int = 0) -> None:
        self._sends_files = profile.sends_files
        self._has_checksums = profile.event_checksum is ChecksumAlgorithm.CRC32 and not profile.sends_files
        self._trailer_size = CHECKSUM_SIZE if self._has_checksums else 0
        self._stored_size = 0  # of the checksum that an event has
        self._log_pos_rule = profile.log_pos_rule
        self._actions = _actions(request)
        self._leaves_out_marked = request.leaves_out_marked
        self._leaves_out_annotate = self._actions.get(EventType.ANNOTATE_ROWS) is _Action.LEAVE_OUT
        self._tolerates_holes = request.capability >= CAPABILITY_TOLERATES_HOLES
        self._boundary = GroupBoundary(0)
        self._position_advice = request.position_advice
        self.send_from = send_from
        self.position = FIRST_POSITION
        self.last_position = FIRST_POSITION  # of the event seen last
        self._replaces_none = request.capability >= CAPABILITY_GTID
        # Each event goes out as it is, or not at all.
        self.only_selects = (
            not self._has_checksums
            and self._log_pos_rule is LogPosRule.STORED
            and self._replaces_none
            and not profile.rotates_with_files
        )
        #: `begin_group` has to be called.
        self.counts_borders = self._log_pos_rule is not LogPosRule.STORED
        #: Events become those of a traditional file.
        self.makes_events = not self.only_selects and not profile.sends_files and self._replaces_none
        self._made = Made(self._log_pos_rule, self._has_checksums) if self.makes_events else None
        self._selections: dict[bytes, Selection] = {}  # by prefix, where positions are not counted

    def begin_stored_file(self, size: int, *, has_checksums: bool) -> None:
        """Count on after the first event of a file, of this size; the next are as the file has them."""
        self.last_position, self.position = FIRST_POSITION, FIRST_POSITION + size
        self._stored_size = CHECKSUM_SIZE if has_checksums else 0

    def begin_at(self, position: int) -> None:
        self.position = position

    def read_header_at(self, position: int, size: int = EVENT_HEADER_SIZE) -> None:
        """Count nothing but the bytes of an event's header."""
        self.last_position, self.position = position, position + size

    def begin_file(self, format_description: bytes) -> None:
        self.last_position = FIRST_POSITION
        self.position = FIRST_POSITION + len(format_description)
        self._check_send_from(FIRST_POSITION)

    def begin_group(self, gtid_flags: int) -> None:
        """`gtid_flags` are of its GTID event."""
        self._boundary = GroupBoundary(gtid_flags)

    def selection(self, prefix: bytes) -> Selection | None:
        """The same rules for other senders; None if they are more than a choice."""
        if not self._replaces_none or self.position < self.send_from:
            return None
        if (known := self._selections.get(prefix)) is not None:
            return known
        selection = Selection(
            self._leaves_out_annotate,
            self._leaves_out_marked,
            prefix,
            None if self.only_selects else LogPositions(self.position, self.last_position),
            self._sends_files,
            self._made,
        )
        if self.only_selects:
            self._selections[prefix] = selection
        return selection

    def go_to(self, log_positions: LogPositions | None) -> None:
        if log_positions is not None:
            self.position, self.last_position = log_positions

    def select(self, events: list[bytes]) -> list[bytes]:
        if self._leaves_out_annotate:
            events = [event for event in events if event[TYPE_OFFSET] != EventType.ANNOTATE_ROWS]
        if self._leaves_out_marked:
            events = [event for event in events if not event[FLAGS_HIGH_OFFSET] & SKIP_REPLICATION_BIT]
        return events

    def rewrite(self, event: bytes, *, is_between_groups: bool = False) -> bytes | None:
        """None: it does not go out."""
        header = decode_event_header(event)
        has_log_pos = self._has_log_pos(header, event) or is_between_groups
        if not self._advance(header.size):
            return None
        action = self._actions.get(header.event_type)
        if action is not None:
            replacement = self._replacement(action, header, event)
            if replacement is None:
                return None
            event = replacement.ljust(header.size - self._stored_size)
            if self._stored_size:
                event = append_checksum(event)
        if self._is_left_out_as_marked(header):
            return None
        if self._sends_files:
            return event
        head = self._head(decode_event_header(event), has_log_pos=has_log_pos)
        event = head + event[EVENT_HEADER_SIZE:]
        return event + CHECKSUM.pack(zlib.crc32(event)) if self._has_checksums else event

    def rewrite_large(self, header: EventHeader) -> LargeEvent | None:
        """As `rewrite`, of an event that is not held as a whole."""
        has_log_pos = self._has_log_pos(header, b"")
        if not self._advance(header.size):
            return None
        action = self._actions.get(header.event_type)
        if action is _Action.LEAVE_OUT or self._is_left_out_as_marked(header):
            return None
        size = header.size + self._trailer_size
        if action is None and self._sends_files:
            return LargeEvent(HEADER.pack(*header), size, False, False)
        if action is None:
            head = self._head(header, has_log_pos=has_log_pos)
            return LargeEvent(head, size, False, self._has_checksums)
        dummy = self._replacement(_Action.DUMMY, header, b"")
        assert dummy is not None  # a large event has room
        if self._sends_files:
            return LargeEvent(dummy, size, True, bool(self._stored_size))
        head = self._head(decode_event_header(dummy), has_log_pos=has_log_pos) + dummy[EVENT_HEADER_SIZE:]
        return LargeEvent(head, size, True, self._has_checksums)

    def _replacement(self, action: _Action, header: EventHeader, event: bytes) -> bytes | None:
        room = header._replace(size=header.size - self._stored_size)
        found = None
        if action is _Action.BEGIN and not gtid_flags(event) & GtidFlag.STANDALONE:
            found = begin_for(room)
        elif action is _Action.DUMMY or (action is _Action.BEGIN and not self._tolerates_holes):
            found = dummy_for(room)
        if found is None:
            return None
        return found[:SIZE_OFFSET] + SIZE.pack(header.size) + found[SIZE_OFFSET + SIZE.size :]

    def _is_left_out_as_marked(self, header: EventHeader) -> bool:
        return self._leaves_out_marked and bool(header.flags & EventFlag.SKIP_REPLICATION)

    def _has_log_pos(self, header: EventHeader, event: bytes) -> bool:
        if self._log_pos_rule is LogPosRule.GROUP_BORDERS:
            return header.event_type == EventType.GTID or self._boundary.ends_with(header, event)
        return self._log_pos_rule is LogPosRule.EVERY

    def _advance(self, size: int) -> bool:
        self.last_position = self.position
        self.position += size + self._trailer_size
        return self._check_send_from(self.last_position)

    def _check_send_from(self, position: int) -> bool:
        if position >= self.send_from:
            return True
        if position < self.send_from < self.position:
            raise DumpError(
                "binlog truncated in the middle of event; consider out of disk space on master",
                f"the replica asks for offset {self.send_from}, which lies inside the event from {position} to "
                f"{self.position}: let it start at offset 4, or by GTID",
                advice=self._position_advice,
            )
        return False

    def _head(self, header: EventHeader, *, has_log_pos: bool) -> bytes:
        if self._log_pos_rule is LogPosRule.STORED:
            log_pos = header.log_pos
        else:
            log_pos = self.position & LOG_POS_MASK if has_log_pos else 0
        timestamp, event_type, server_id, size, _, flags = header
        return HEADER.pack(timestamp, event_type, server_id, size + self._trailer_size, log_pos, flags)


def gtid_flags(event: bytes) -> int:
    """Of a GTID event. Raises EventError: it is too short."""
    if len(event) < EVENT_HEADER_SIZE + GTID_FIXED.size:
        raise EventError(f"GTID event of {len(event)} bytes, expected at least {EVENT_HEADER_SIZE + GTID_FIXED.size}")
    return int(GTID_FIXED.unpack_from(event, EVENT_HEADER_SIZE)[2])


def _actions(request: DumpRequest) -> dict[int, _Action]:
    """By event type, given what the replica understands; the others are passed on."""
    capability = request.capability
    unknown = _Action.LEAVE_OUT if capability >= CAPABILITY_TOLERATES_HOLES else _Action.DUMMY
    actions: dict[int, _Action] = {}
    if not request.wants_annotate_rows and capability != CAPABILITY_ANNOTATE:
        actions[EventType.ANNOTATE_ROWS] = unknown
    if capability < CAPABILITY_BINLOG_CHECKPOINT:
        actions[EventType.BINLOG_CHECKPOINT] = unknown
    if capability < CAPABILITY_GTID:
        actions[EventType.GTID_LIST] = unknown
        actions[EventType.GTID] = _Action.BEGIN
    return actions


def begin_for(header: EventHeader) -> bytes | None:
    """A QUERY `BEGIN` of the size of a GTID event; None if too small. Source: MariaDB 12.3,
    Query_log_event::begin_event()."""
    room = header.size - BEGIN_SIZE_MIN
    if room < 0:
        return None
    body = QUERY_FIXED.pack(0, 0, 0, 0, room) + PADDING_VARIABLE * room + b"\0" + BEGIN
    return _head_like(header, EventType.QUERY) + body


def dummy_for(header: EventHeader) -> bytes | None:
    """The beginning of an event without effect in place of any other; None if that is too small. The caller adds blanks
    up to `header.size`. Source: MariaDB 12.3, log_event_server.cc, Query_log_event::dummy_event()."""
    if header.size < USER_VAR_SIZE_MIN:
        return None
    if header.size < QUERY_SIZE_MIN:  # no room for a QUERY: set a user variable to NULL
        name = DUMMY_VARIABLE[: header.size - USER_VAR_SIZE_MIN + 1]
        return _head_like(header, EventType.USER_VAR) + len(name).to_bytes(4, "little") + name + b"\x01"
    text = DUMMY_TEXT.format(header.event_type).encode()[: header.size - QUERY_SIZE_MIN + 1]
    return _head_like(header, EventType.QUERY) + bytes(QUERY_FIXED.size + 1) + text


def _head_like(header: EventHeader, event_type: EventType) -> bytes:
    flags = header.flags & ~EventFlag.THREAD_SPECIFIC | EventFlag.SUPPRESS_USE
    return HEADER.pack(header.timestamp, event_type, header.server_id, header.size, header.log_pos, flags)
