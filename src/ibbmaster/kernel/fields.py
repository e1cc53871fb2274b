"""What the framing kernels and their callers share: the state of a framing, and the numbers of the format."""

from __future__ import annotations

from enum import IntEnum

from ibbmaster.event.types import EventType
from ibbmaster.ibb.chunk import CONT as _CONT
from ibbmaster.ibb.chunk import FILLER as _FILLER
from ibbmaster.ibb.chunk import LAST as _LAST
from ibbmaster.ibb.chunk import RecordType

CONT, LAST, FILLER = int(_CONT), int(_LAST), int(_FILLER)
TYPE_MASK = 0x3F
COMMIT, OOB_DATA = int(RecordType.COMMIT), int(RecordType.OOB_DATA)
GTID_STATE, DUMMY = int(RecordType.GTID_STATE), int(RecordType.DUMMY)
KNOWN_TYPES = sum(1 << int(record_type) for record_type in RecordType)
GTID_EVENT, ANNOTATE_ROWS = int(EventType.GTID), int(EventType.ANNOTATE_ROWS)
EVENT_HEADER = 19
GTID_EVENT_MIN = EVENT_HEADER + 13
EVENT_MAX = 1 << 30
PACKET_MAX = 0xFFFFFF
SEGMENT_MIN = 8192  # bytes: shorter pieces are copied faster than sent by themselves
SMALL_EVENT = 256  # bytes: up to here, copies of 32 bytes are faster than a call
LEAVES_OUT_ANNOTATE, LEAVES_OUT_MARKED = 1, 2  # filters


class Field(IntEnum):
    """Places in the state of a framing: what a call is given and what it leaves."""

    PAGE = 0  # index of the page at hand in the block
    OFFSET = 1  # on that page
    OUT = 2  # bytes in the output
    SEQUENCE = 3  # of the next packet
    FILTERS = 4
    PREFIX_SIZE = 5  # 1, or 3 with the header of semi-synchronous replication
    SKIP_TYPE = 6  # of the record that is being passed over, -1 for none
    GROUPS = 7  # framed by this call
    EVENTS = 8  # the same
    PAIRS = 9  # (domain, server) pairs that were logged since it was 0
    EVENT_LEFT = 10  # bytes that the event under way still lacks
    HEAD_HELD = 11  # bytes of an event header that was cut
    PACKET_LEFT = 12  # bytes that fit into the packet under way
    EMPTY_TAIL = 13  # the payload under way ends with an empty packet
    IS_DROPPED = 14  # the event under way is left out
    CHUNK_LEFT = 15  # bytes of the chunk at hand that were not taken yet
    IS_LAST = 16  # that chunk ends its record
    TO_SKIP = 17  # bytes of the record that are no events
    NESTED_TYPE = 18  # of the record inside the one at hand, -1 for none
    IS_FIRST = 19  # the chunk that comes next begins the record
    NOTED = 20  # GTIDs that were noted since it was 0
    SEGMENTS = 21  # pieces of the source that belong between those of the output
    SIZE = 22


PAIR_COLUMNS = 4  # domain, server, last sequence number, and which of all that were noted it was


class Status(IntEnum):
    """Why a kernel stopped."""

    NEED_MORE = 0  # the block has no more pages
    NO_DATA = 1  # nothing was written here yet
    CAREFUL = 2  # what comes next is for the careful path
    FULL = 3  # the output has no more room
    BAD_PAGE = 4  # the checksum of the page at hand is wrong
    DONE = 5  # the record, or the bytes, are framed


S_PAGE, S_OFFSET, S_OUT, S_SEQUENCE = int(Field.PAGE), int(Field.OFFSET), int(Field.OUT), int(Field.SEQUENCE)
S_FILTERS, S_PREFIX, S_SKIP_TYPE = int(Field.FILTERS), int(Field.PREFIX_SIZE), int(Field.SKIP_TYPE)
S_GROUPS, S_EVENTS, S_PAIRS = int(Field.GROUPS), int(Field.EVENTS), int(Field.PAIRS)
S_EVENT_LEFT, S_HEAD_HELD, S_PACKET_LEFT = int(Field.EVENT_LEFT), int(Field.HEAD_HELD), int(Field.PACKET_LEFT)
S_EMPTY_TAIL, S_IS_DROPPED = int(Field.EMPTY_TAIL), int(Field.IS_DROPPED)
S_CHUNK_LEFT, S_IS_LAST, S_TO_SKIP = int(Field.CHUNK_LEFT), int(Field.IS_LAST), int(Field.TO_SKIP)
S_NESTED_TYPE, S_IS_FIRST = int(Field.NESTED_TYPE), int(Field.IS_FIRST)
S_NOTED, S_SEGMENTS = int(Field.NOTED), int(Field.SEGMENTS)
NEED_MORE, NO_DATA, CAREFUL = int(Status.NEED_MORE), int(Status.NO_DATA), int(Status.CAREFUL)
FULL, BAD_PAGE, DONE = int(Status.FULL), int(Status.BAD_PAGE), int(Status.DONE)
