"""What the kernels and their callers share: places in states and rows, and numbers of both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any

from ibbmaster.gtid import Gtid
from ibbmaster.storage.ibb.chunk import CHUNK_SIZE_MIN
from ibbmaster.storage.ibb.page import DATA_SIZE

CHUNKS_PER_PAGE_MAX = int(DATA_SIZE) // int(CHUNK_SIZE_MIN)
PACKET_MAX = 0xFFFFFF
LEAVES_OUT_ANNOTATE, LEAVES_OUT_MARKED = 1, 2  # filters
CONTINUES, ENDS, MAY_END, NOT_INSIDE = range(4)  # roles: what an event does to its group; the text of some decides

# Rows of tables, by their columns.

# A chunk: where its header is in the pages, bytes of data, its type byte
ChunkColumn = IntEnum("ChunkColumn", "START SIZE TYPE COLUMNS", start=0)
# A column of an answer, for rows of one layout: ValueOp, the stored column, arguments
ValueColumn = IntEnum("ValueColumn", "OP PLACE FIRST SECOND THIRD FOURTH COLUMNS", start=0)
# A node that was found: file, file offset, bytes before the events
NodeColumn = IntEnum("NodeColumn", "FILE_NO PLACE HEADER_SIZE COLUMNS", start=0)
# An out-of-band node or state record that a check has found: the page in the block, the offset there, bytes of it and
# of its first chunk, its type
Found = IntEnum("Found", "PAGE OFFSET SIZE FIRST_SIZE TYPE COLUMNS", start=0)
# A (domain, server) pair: its last sequence number, and which of all that were noted it was, 0 for none. A check adds
# the first number, and where in the pages both commit records begin.
PairColumn = IntEnum("PairColumn", "DOMAIN SERVER LAST TURN FIRST FIRST_PLACE LAST_PLACE COLUMNS", start=0)
# An event that was collected: START in the data, row of the GROUP, and NUMBER in that group
EventColumn = IntEnum("EventColumn", "START SIZE GROUP NUMBER COLUMNS", start=0)
# A step that reads one column of an image: RowOp, arguments, slot, and bytes of the value, or of its length
StepColumn = IntEnum("StepColumn", "OP FIRST SECOND SLOT SIZE COLUMNS", start=0)
# A table that is known by the bytes of its TABLE_MAP: where they are in the store
MapColumn = IntEnum("MapColumn", "START SIZE IS_WANTED COLUMNS", start=0)
# A table that a group has named, in a hash table by ID that is at most half full. MAP is the row of the tables, TURN
# that of the group: places of other turns are free.
OpenColumn = IntEnum("OpenColumn", "ID MAP TURN COLUMNS", start=0)
# A part of a key: which value of the image, KeyOp, and whether high ones come first
KeyColumn = IntEnum("KeyColumn", "PLACE OP IS_DESCENDING COLUMNS", start=0)
# A column of images: bytes of each value, or -1 and bytes of the length before it
ImageColumn = IntEnum("ImageColumn", "SIZE LENGTH_SIZE COLUMNS", start=0)
PAIR_COLUMNS = int(PairColumn.COLUMNS)

# Why rows stopped: none are left, there is no room, or the next one is for the reference
AnswerStatus = IntEnum("AnswerStatus", "END FULL FALLBACK", start=0)
# Why lines stopped: no rows are left, the next has no room, or a value is for the reference
LineStatus = IntEnum("LineStatus", "END FULL FALLBACK", start=0)
# What happens to the row of a key
ChangeOp = IntEnum("ChangeOp", "INSERT REPLACE DELETE", start=0)


class Field(IntEnum):  # where in the pages a kernel is, and what it has made; given and left by each
    PAGE, OFFSET = 0, 1  # index of the current page in the block; on that page, of a chunk
    OUT = 2  # bytes in the output
    SEQUENCE = 3  # of the next packet
    FILTERS = 4
    PREFIX_SIZE = 5  # 1, or 3 with the header of semi-synchronous replication
    GROUPS = 6  # framed by this call
    PAIRS, NOTED = 7, 8  # (domain, server) pairs that were logged since it was 0; GTIDs, likewise
    STEPS_BACK = 9  # groups noted whose number was not above the one before of their pair
    VERIFIED = 10  # pages, from the first on, whose checksum is known to be right
    END = 11  # in the pages: no chunk that begins there or later is looked at; 0 for none
    RUN = 12  # in the pages: where the out-of-band records begin that the block ends in; -1 for none
    EVENT_LEFT, HEAD_HELD = 13, 14  # bytes that the current event still lacks; of an event header that was cut
    PACKET_LEFT = 15  # bytes that fit into the current packet
    EMPTY_TAIL = 16  # the current payload ends with an empty packet
    IS_DROPPED = 17  # the current event is left out
    TO_SKIP = 18  # bytes from the current chunk on that are no events, or were framed
    SKIP_TYPE, NESTED_TYPE = 19, 20  # of the record that continues with the current chunk, and inside it; -1 for none
    SEGMENTS, SEGMENT_BYTES = 21, 22  # pieces of the source that belong between those of the output
    DUE = 23  # page of the block that a state record has to begin; -1 for none
    # of a framing of traditional files
    READ_AT = 24  # in the source: where the next group begins, or the next event if they come in parts; moved
    SOURCE_OFFSET = 25  # of the source's first byte in its file
    CHECKSUM_BYTES = 26  # of each event in the file
    IS_STORED = 27  # events go out as they are, checksums too; else as an engine's stream has them
    POSITION, LAST_POSITION = 28, 29  # of the next event, as the replica counts; the one before
    PASSES_OVER = 30  # nothing goes out
    IN_PARTS, MAY_BE_IN_PARTS = 31, 32  # one group, as far as it is here; a pump may go so
    KIND, GROUP_OFFSET = 33, 34  # of the current group, 0 for none; in its file
    IS_LARGE, IS_LAST = 35, 36  # an event is framed in pieces, and ends its group
    PAYLOAD_LEFT = 37  # bytes of it that are still to go out
    CHECKSUM = 38  # of its bytes that were read
    FILE_SIZE = 39  # bytes; no event goes out in parts that ends after it
    SIZE = 40


class ValueOp(IntEnum):  # how a stored value becomes part of an answer's row, by the columns FIRST to FOURTH
    COPY = 0  # the bytes behind their length
    PAD = 1  # and zeros behind them, up to FIRST bytes
    BYTES = 2  # each byte as text number FIRST + byte says
    CHOICE = 3  # text number FIRST + value; SECOND: how many there are
    CONSTANT = 4  # text number FIRST, or NULL if that is -1
    SIDE = 5  # the next text of side number FIRST
    INTEGER = 6  # FIRST: it has a sign; SECOND: digits, with zeros in front
    YEAR = 7  # FIRST: digits
    DECIMAL = 8  # FIRST: digits, SECOND: behind the point; THIRD: to be shown there; FOURTH: as SECOND of INTEGER
    DATE = 9
    DATETIME, TIME, TIMESTAMP = 10, 11, 12  # FIRST: digits of a second, SECOND: to be shown
    # of the binary protocol
    FIXED = 13  # the bytes alone
    NUMBER = 14  # FIRST: it has a sign; SECOND: bytes
    YEAR_NUMBER, DATE_PARTS = 15, 16
    DATETIME_PARTS, TIME_PARTS, TIMESTAMP_PARTS = 17, 18, 19  # FIRST: digits of a second


class LayoutColumn(IntEnum):  # a layout of stored rows
    FIRST, COUNT = 0, 1  # of its stored columns; -1: it is not known
    VALUES = 2  # the first of its ValueColumns
    BOUND, FACTOR = 3, 4  # at most BOUND bytes and FACTOR times the stored row in a row of an answer
    COLUMNS = 5


class AnswerField(IntEnum):  # the state of an answer
    NEXT, END = 0, 1  # row of those that are wanted, and behind the last one
    SEQUENCE = 2  # of the next packet
    OUT = 3  # bytes in the output
    SHOWN = 4  # columns of the answer
    IS_BINARY = 5
    ZONE_S = 6  # seconds that TIMESTAMPs are shown east of UTC
    SIDE_START = 7  # the row that the first text of each side is of
    SIZE = 8


def noted_gtids(pairs: Iterable[Sequence[int]]) -> tuple[Gtid, ...]:
    """The last GTID of each pair that a kernel has noted. Domains are in the order in which they came, servers in that
    of their last groups: logged like this, they leave the same state as all groups one by one."""
    rows = [row for row in pairs if row[3]]
    if len(rows) > 1:
        first = {row[0]: index for index, row in reversed(list(enumerate(rows)))}
        rows.sort(key=lambda row: (first[row[0]], row[3]))
    return tuple(Gtid(domain_id=row[0], server_id=row[1], seq_no=row[2] % 2**64) for row in rows)


def last_gtids(groups: Any) -> tuple[Gtid, ...]:
    """The last GTID of each (domain, server) pair of groups, see GroupColumn; in the order of `noted_gtids`."""
    import numpy as np

    count = len(groups)
    pairs = groups[:, GroupColumn.DOMAIN] << 32 | groups[:, GroupColumn.SERVER]
    last = [count - 1] if count else []
    if count and (pairs != pairs[0]).any():
        _, begin = np.unique(pairs, return_index=True)
        _, from_end = np.unique(pairs[::-1], return_index=True)
        last = (count - 1 - from_end)[begin.argsort()].tolist()
    return noted_gtids([*groups[row, : GroupColumn.SEQ_NO + 1].tolist(), row + 1] for row in last)


class Status(IntEnum):  # why a kernel stopped
    NEED_MORE = 0  # the block has no more pages
    NO_DATA = 1  # nothing was written here yet
    FALLBACK = 2  # what comes next is for the reference path
    FULL = 3  # the output, or the table of chunks, has no more room
    BAD_PAGE = 4  # the checksum of the current page is wrong
    DONE = 5  # the record, the bytes, or the range ends here


class Progress(IntEnum):  # the state of a pump
    FILE_OFFSET = 0  # of the current page
    BUDGET = 1  # bytes; end after them
    FRAMED = 2  # bytes of packets
    REST = 3  # bytes that the socket did not take
    NODE = 4  # index of the current node
    IS_BEGUN = 5  # whether FILE_OFFSET and the state are of a place inside that node
    VERIFIED_FROM, VERIFIED_TO = 6, 7  # file offsets of the pages whose checksums are known to be right
    END = 8  # file offset where what may be sent ends, though the file goes on; 0 for none
    COMMIT = 9  # file offset of the commit record that ends a way; 0 for none
    HAS_MORE = 10  # whether there are more nodes than those at hand
    KNOWN_BEGIN, KNOWN_COMMIT = 11, 12  # file offsets of a way and its commit record that are known; 0 for none
    FILE, SOCKET = 13, 14  # descriptors
    SIZE = 15


class NodeScan(IntEnum):  # the state of a scan for out-of-band nodes
    FILE_NO = 0  # in which all of them lie
    FIRST = 1  # file offset of node 0
    NODES, NEXT = 2, 3  # of the stream; number of the one that comes next
    PATH = 4  # nodes that are left: rows of the path
    SIZE = 5


class UnreadNodeColumn(IntEnum):  # a node that a scan has still to read, or to give; the last row is the next
    PLACE, NUMBER = 0, 1  # file offset; -1 where the number does not follow from the parent
    IS_LEFTMOST = 2  # reached from the last node by left steps alone
    HEADER_SIZE = 3  # bytes, once all that comes before it stands behind it
    COLUMNS = 4


NODE_HEADER_NUMBERS = 6  # its number, file and place of the left node, those of the right one, bytes of the header
NODE_HEAD_MIN = 64  # bytes in which the header of a node is, unless the record is shorter


class GroupColumn(IntEnum):  # a group that was collected
    DOMAIN, SERVER, SEQ_NO = range(3)  # the last one as if it had a sign
    TIMESTAMP = 3  # seconds since 1970
    FILE_NO, FILE_OFFSET, END_FILE_NO, END_OFFSET = 4, 5, 6, 7  # of the commit record, and behind it
    START, END = 8, 9  # of its events in the data
    FIRST_NUMBER = 10  # of its first event here: not 0 in a group that is cut
    COLUMNS = 11


class RowOp(IntEnum):  # how a value is read from a row, with two arguments, into one slot or two that follow each other
    SKIP_FIXED, SKIP_PREFIXED = 0, 1  # bytes; bytes of the length
    INTEGER, BIG_ENDIAN = 2, 3  # bytes; of the first, whether it has a sign
    FLOAT, DOUBLE = 4, 5  # their bits
    YEAR = 6
    DECIMAL = 7  # digits, scale; two slots, the lower half of a number of 128 bits first
    DATE = 8  # days since 1970
    DATETIME, TIMESTAMP = 9, 10  # digits of a second; microseconds since 1970
    RAW_FIXED, RAW_PREFIXED = 11, 12  # as SKIP_FIXED and SKIP_PREFIXED; two slots: where the bytes are, and how many


class TextOp(IntEnum):  # how a value is shown as text, of at most TEXT_SIZES bytes
    UUID, INET4, INET6, TIME, DATE, DATETIME, TIMESTAMP = range(7)


TEXT_SIZES = (36, 15, 39, len("-1023:63:63.999999"), 10, 26, 26)


class VariantColumn(IntEnum):  # a kind of row events: of a table, with the same columns in their images
    MAP = 0  # row of the tables
    KIND = 1  # INSERT, DELETE or UPDATE_BEFORE
    COLUMN_COUNT = 2
    BITS_START, BITS_SIZE = 3, 4  # of the columns present, in the store of bytes
    FIRST_STEP, STEPS = 5, 6  # of the image, or of that before an update
    AFTER_FIRST_STEP, AFTER_STEPS = 7, 8
    # where images are kept, their columns are in place of steps
    FIRST_PART, AFTER_FIRST_PART, PART_COUNT = 9, 10, 11  # of the keys in these images
    LAYOUT = 12  # of the images that are kept
    IS_BY_REFERENCE = 13
    COLUMNS = 14


class RowField(IntEnum):  # the state of a reading of row events
    EVENT = 0  # the current one
    OFFSET = 1  # in the data where the next row of that event begins; 0 before the first
    ROWS, OUT = 2, 3  # or changes that are in the output; bytes of images
    GROUP = 4  # of the current event
    OPEN = 5  # tables that this group has named
    TABLE = 6  # whose rows are in the output; ANY_TABLE: of all
    TURN = 7  # counts groups: which entries of the open tables are those of this one
    SIZE = 8


INSERT, DELETE, UPDATE_BEFORE, UPDATE_AFTER = range(4)
CHANGE_TYPES = ("insert", "delete", "update_preimage", "update_postimage")
OPEN_TABLES_MIN = 256  # for how many there is room at first; a power of two
ANY_TABLE = -2
KIND_BITS = 2  # the lowest of what is noted of a row; above them is the kind of row event


class RowStatus(IntEnum):  # why a reading of row events stopped
    END = 0  # of the events
    FULL = 1  # the output has no more room
    NEW_MAP, NEW_VARIANT = 2, 3  # a table, or a kind of row event, that is not known
    BAD = 4  # the reference says what is wrong
    NEW_TABLE = 5  # rows of another table than TABLE
    MANY_TABLES = 6  # the hash table of those that the group has named is half full
    BY_REFERENCE, OTHER_EVENT = 7, 8  # for the reference: what is left of a row event, an event of another type
    ROWS = 9  # there are some: kernels go on


class LineOp(IntEnum):  # what a step of a line writes after its text
    TEXT = 0  # nothing
    HEAD = 1  # what is the same in all lines of a group: number of the head
    NUMBER = 2  # which line of its group it is, counted on
    GTID, MOMENT = 3, 4  # of the group, in heads alone, as are the next two; when it was committed, in UTC with T and Z
    GROUP = 5  # one of `GroupColumn`, times a number
    NOTE = 6  # what is known of the group besides
    SIDE = 7  # a text that was made before, also for NULL: which of them
    INTEGER = 8  # whether it has a sign, and what it is divided by
    DECIMAL = 9  # digits, scale
    UUID, INET4, INET6 = 10, 11, 12  # bytes; from here on as TextOp
    TIME, DATE, DATETIME = 13, 14, 15  # digits of a second
    TIMESTAMP = 16  # the same, and the letter before the clock: with a T none is all zeros
    UTF8 = 17  # as a string of JSON has it
    LETTERS = 18  # single bytes: where their 256 texts begin among the choices
    BASE64 = 19  # bytes that it is filled up to
    CHOICE = 20  # where its texts begin among the choices, and how many there are
    UNSCALED = 21  # a DECIMAL that was read as a number: the bytes of its digits without the point, as base64


class LineColumn(IntEnum):  # a step of lines; its texts are in the store; NULL is written without OPENING and CLOSING
    OP = 0
    START, SIZE = 1, 2  # of the text in front
    SLOT, IS_AFTER = 3, 4  # of the value, and whether it is in the row after
    FIRST, SECOND = 5, 6  # arguments
    OPENING, OPENING_SIZE = 7, 8  # of the text before a value
    CLOSING, CLOSING_SIZE = 9, 10  # of the text after it
    NULL, NULL_SIZE = 11, 12  # of the text that stands for NULL
    COLUMNS = 13


class LineField(IntEnum):  # the state of a writing of lines
    ROW, ROWS = 0, 1  # the next one, and the first that is not wanted
    OUT = 2  # bytes in the output
    GROUP, NUMBER = 3, 4  # of the line before, -1 for none; lines that this group has
    GROUPS = 5  # that have heads
    STEP = 6  # whose value is for the reference
    SIDE_ROW = 7  # where the texts begin that were made before
    SIZE = 8


class KeyOp(IntEnum):
    """How the stored bytes of a value become a part of a key. The reference: `ibbmaster.tables.fold.stored`."""

    UNSIGNED, SIGNED = 0, 1  # 8 bytes, the highest first; from the lowest number on
    REVERSED = 2
    TIME = 3  # 3 bytes, the highest first, from the lowest number on
    FLOATING = 4
    FIXED = 5  # as they are
    TEXT, PADDED_TEXT = 6, 7  # with an end; without spaces before it


KEY_MAX = 64  # bytes of a key; a longer one is for the reference


class Conversion(IntEnum):  # the state of a conversion
    READ_AT, SOURCE_OFFSET = 0, 1  # in the source, moved; of its first byte in its file
    CHECKSUM_BYTES = 2  # at the end of each event
    WRITE_AT, WRITE_END = 3, 4  # in the pages; the first is moved, and what is behind the second is not for this call
    RECORD_MAX = 5  # bytes of a record
    PAIRS = 6  # that are known: others are for the reference
    NOTED = 7  # groups, counted on; the last of each pair has its number
    EVENT_BYTES = 8  # written, counted on
    SIZE = 9


class PlacedField(IntEnum):  # the state of a writing of traditional files
    OUT, FILE_OFFSET = 0, 1  # bytes in the output, and where the next event begins in its file; both are moved
    FILE_MAX = 2  # no group begins there, or after it
    CHECKSUM_BYTES = 3  # after each event
    SAYS_ALL = 4  # whether each event says where it ends, and not only the first and the last of a group
    TYPE_MAX = 5  # the highest type of an event that the server knows
    SIZE = 6
