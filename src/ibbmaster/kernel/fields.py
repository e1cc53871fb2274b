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
# A record that a check has found: the page in the block, the offset there, bytes of it and of its first chunk, its type
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
# A table that a group has named, in a hash table by ID, at most half full. MAP is the row of the tables, TURN that of
# the group: places of other turns are free.
OpenColumn = IntEnum("OpenColumn", "ID MAP TURN COLUMNS", start=0)
# A part of a key: which value of the image, KeyOp, and whether high ones come first
KeyColumn = IntEnum("KeyColumn", "PLACE OP IS_DESCENDING COLUMNS", start=0)
# A column of images: bytes of each value, or -1 and bytes of the length before it
ImageColumn = IntEnum("ImageColumn", "SIZE LENGTH_SIZE COLUMNS", start=0)
PAIR_COLUMNS = int(PairColumn.COLUMNS)

# Why rows or lines stopped: none are left, there is no room, or the next one is for the reference
OutStatus = IntEnum("OutStatus", "END FULL FALLBACK", start=0)
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
    END = 11  # in the pages: later chunks are not looked at; 0 for none
    RUN = 12  # in the pages: where the out-of-band records begin that the block ends in; -1 for none
    EVENT_LEFT, HEAD_HELD = 13, 14  # bytes that the current event lacks; of a cut event header
    PACKET_LEFT = 15  # bytes that fit into the current packet
    EMPTY_TAIL = 16  # the current payload ends with an empty packet
    IS_DROPPED = 17  # the current event is left out
    TO_SKIP = 18  # bytes from the current chunk on that are no events, or were framed
    SKIP_TYPE, NESTED_TYPE = 19, 20  # of the record that continues with the current chunk, and inside it; -1 for none
    SEGMENTS, SEGMENT_BYTES = 21, 22  # pieces of the source that belong between those of the output
    DUE = 23  # page of the block that a state record has to begin; -1 for none
    # of a framing of traditional files
    READ_AT = 24  # in the source: the next group, or event of one in parts; moved
    SOURCE_OFFSET = 25  # of the source's first byte in its file
    CHECKSUM_BYTES = 26  # of each event in the file
    IS_STORED = 27  # events go out as they are; else as an engine's stream has them
    POSITION, LAST_POSITION = 28, 29  # of the next event, as the replica counts; the one before
    PASSES_OVER = 30  # nothing goes out
    IN_PARTS, MAY_BE_IN_PARTS = 31, 32  # one group, as far as it is here
    KIND, GROUP_OFFSET = 33, 34  # of the current group, 0 for none; in its file
    IS_LARGE, IS_LAST = 35, 36  # an event is framed in pieces, and ends its group
    PAYLOAD_LEFT, CHECKSUM = 37, 38  # bytes of it to go out; of those that were read
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


# A layout of stored rows: FIRST (-1: it is not known) and COUNT of its stored columns, the first of its ValueColumns. A
# row of an answer has at most BOUND bytes and FACTOR times the stored row.
LayoutColumn = IntEnum("LayoutColumn", "FIRST COUNT VALUES BOUND FACTOR COLUMNS", start=0)
# The state of an answer: NEXT to END of the wanted rows, the next packet's number, bytes in the output, columns SHOWN.
# TIMESTAMPs are shown ZONE_S seconds east of UTC; the first text of each side is of the row SIDE_START.
AnswerField = IntEnum("AnswerField", "NEXT END SEQUENCE OUT SHOWN IS_BINARY ZONE_S SIDE_START SIZE", start=0)


def noted_gtids(pairs: Iterable[Sequence[int]]) -> tuple[Gtid, ...]:
    """The last GTID of each pair that a kernel has noted. Domains are in the order in which they came, servers in that
    of their last groups: logged so, they leave the state that all groups leave."""
    rows = [row for row in pairs if row[3]]
    if len(rows) > 1:
        first = {row[0]: index for index, row in reversed(list(enumerate(rows)))}
        rows.sort(key=lambda row: (first[row[0]], row[3]))
    return tuple(Gtid(domain_id=row[0], server_id=row[1], seq_no=row[2] % 2**64) for row in rows)


def last_gtids(groups: Any) -> tuple[Gtid, ...]:
    """The last GTID of each pair of groups, see GroupColumn; in the order of `noted_gtids`."""
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
    BUDGET, FRAMED, REST = 1, 2, 3  # bytes: end after them; of packets; that the socket did not take
    NODE, IS_BEGUN = 4, 5  # index of the current node; whether FILE_OFFSET and the state are inside it
    VERIFIED_FROM, VERIFIED_TO = 6, 7  # file offsets of pages that are known to be right
    END = 8  # file offset where sending ends, though the file goes on; 0 for none
    COMMIT = 9  # file offset of the commit record that ends a way; 0 for none
    HAS_MORE = 10  # nodes than those at hand
    KNOWN_BEGIN, KNOWN_COMMIT = 11, 12  # file offsets of a known way and its commit record; 0 for none
    FILE, SOCKET = 13, 14  # descriptors
    SIZE = 15


# The state of a scan for out-of-band nodes: the file of all, file offset of node 0, NODES of the stream, number of the
# NEXT, and rows of the PATH: nodes that are left
NodeScan = IntEnum("NodeScan", "FILE_NO FIRST NODES NEXT PATH SIZE", start=0)
# A node that a scan has still to read, or to give; the last row is the next: file offset, NUMBER (-1 where it does not
# follow from the parent), whether left steps alone led there, and bytes of its header once all before it is behind it
UnreadNodeColumn = IntEnum("UnreadNodeColumn", "PLACE NUMBER IS_LEFTMOST HEADER_SIZE COLUMNS", start=0)
NODE_HEADER_NUMBERS = 6  # its number, file and place of the left node and of the right one, bytes of the header
NODE_HEAD_MIN = 64  # bytes with the header of a node, unless the record is shorter


class GroupColumn(IntEnum):  # a group that was collected
    DOMAIN, SERVER, SEQ_NO = range(3)  # the last one as if it had a sign
    TIMESTAMP = 3  # seconds since 1970
    FILE_NO, FILE_OFFSET, END_FILE_NO, END_OFFSET = 4, 5, 6, 7  # of the commit record, and behind it
    START, END = 8, 9  # of its events in the data
    FIRST_NUMBER = 10  # of its first event here: not 0 in a group that is cut
    COLUMNS = 11


class RowOp(IntEnum):  # how a value is read, with two arguments, into a slot or two
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
    MAP, KIND, COLUMN_COUNT = 0, 1, 2  # row of the tables; INSERT, DELETE or UPDATE_BEFORE
    BITS_START, BITS_SIZE = 3, 4  # of the columns present, in the store of bytes
    FIRST_STEP, STEPS = 5, 6  # of the image, or of that before an update
    AFTER_FIRST_STEP, AFTER_STEPS = 7, 8
    # where images are kept, their columns are in place of steps
    FIRST_PART, AFTER_FIRST_PART, PART_COUNT = 9, 10, 11  # of the keys in these images
    LAYOUT, IS_BY_REFERENCE = 12, 13  # of the images that are kept
    COLUMNS = 14


class RowField(IntEnum):  # the state of a reading of row events
    EVENT, OFFSET = 0, 1  # the current one; in the data where its next row begins, 0 before the first
    ROWS, OUT = 2, 3  # or changes that are in the output; bytes of images
    GROUP, OPEN = 4, 5  # of the current event; tables that it has named
    TABLE = 6  # whose rows are in the output; ANY_TABLE: of all
    TURN = 7  # counts groups: which open tables are those of this one
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
    NEW_TABLE, MANY_TABLES = 5, 6  # rows of another table than TABLE; the hash table is half full
    BY_REFERENCE, OTHER_EVENT = 7, 8  # for the reference: the rest of a row event, an event of another type
    ROWS = 9  # there are some: kernels go on


class LineOp(IntEnum):  # what a step of a line writes after its text
    TEXT = 0  # nothing
    HEAD, NUMBER = 1, 2  # what all lines of a group share: number of the head; which line it is, counted on
    GTID, MOMENT = 3, 4  # of the group, in heads alone, as the next two; when it was committed, in UTC with T and Z
    GROUP, NOTE = 5, 6  # one of `GroupColumn`, times a number; what is known of the group besides
    SIDE = 7  # a text that was made before, also for NULL: which of them
    INTEGER, DECIMAL = 8, 9  # whether it has a sign, and what it is divided by; digits, scale
    UUID, INET4, INET6 = 10, 11, 12  # bytes; from here on as TextOp
    TIME, DATE, DATETIME = 13, 14, 15  # digits of a second
    TIMESTAMP = 16  # the same, and the letter before the clock: with a T none is all zeros
    UTF8, LETTERS = 17, 18  # as a string of JSON has it; single bytes: where their 256 texts begin among the choices
    BASE64 = 19  # bytes that it is filled up to
    CHOICE = 20  # where its texts begin among the choices, and how many there are
    UNSCALED = 21  # a DECIMAL that was read as a number: its digits without the point as base64


class LineColumn(IntEnum):  # a step of lines; its texts are in the store; NULL is written without OPENING and CLOSING
    OP, START, SIZE = 0, 1, 2  # the last two of the text in front
    SLOT, IS_AFTER = 3, 4  # of the value, and whether it is in the row after
    FIRST, SECOND = 5, 6  # arguments
    OPENING, OPENING_SIZE = 7, 8  # of the text before a value
    CLOSING, CLOSING_SIZE = 9, 10  # of the text after it
    NULL, NULL_SIZE = 11, 12  # of the text for NULL
    COLUMNS = 13


# The state of a writing of lines: the next ROW, the first that is not wanted, bytes in the output, GROUP of the line
# before (-1 for none) and lines that it has, GROUPS with heads, the STEP whose value is for the reference, the first
# row of sides
LineField = IntEnum("LineField", "ROW ROWS OUT GROUP NUMBER GROUPS STEP SIDE_ROW SIZE", start=0)


class KeyOp(IntEnum):  # how the stored bytes of a value become a part of a key
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
    WRITE_AT, WRITE_END = 3, 4  # in the pages, moved; where this call ends
    RECORD_MAX = 5  # bytes of a record
    PAIRS = 6  # that are known: others are for the reference
    NOTED, EVENT_BYTES = 7, 8  # groups and bytes written, counted on; the last group of each pair has its number
    NUMBER, LAST_AT = 9, 10  # in a plain dump of the next packet, counted on; of the last group in the source
    HEAD_BYTES = 11  # before each event: 0 in a file, 5 in a dump, 7 in one that is acknowledged
    ANSWER_AT = 12  # above 0: of the last event that ends a group and is to be acknowledged
    SIZE = 13


# The state of a writing of traditional files: bytes in the output, and where the next event begins in its file (both
# move); no group begins at FILE_MAX or later; whether all events say where they end, or only the first and the last
# of a group; the highest type of an event that the server knows
PlacedField = IntEnum("PlacedField", "OUT FILE_OFFSET FILE_MAX CHECKSUM_BYTES SAYS_ALL TYPE_MAX SIZE", start=0)

# Of the kernels that change packets, and of the one that leaves some out.

AS_STORED, EVERY, BORDERS = range(3)  # events that get a place in a file
OLD_SERVER, OLD_DOMAIN, STEP, LATER, COMMIT_BITS = range(5)  # what a row of numbers of a change is about
EMPTIED_MAX = 256  # bytes of the packets of an emptied group, and what may be written after them
OPEN_MAX = 64  # tables of a group
CHOSEN_DOMAIN, CHOSEN_SERVER = range(2)  # what a row of numbers of leaving out is about
UNKNOWN, KEPT, LEFT_OUT, DOUBTFUL = range(4)  # what becomes of events of a table
# Columns of the table of known tables: open addressing by the CRC-32 of a name, BYTES is 0 where nothing is. OFFSET
# is that of database and table among the names, as a TABLE_MAP has them.
TableRow = IntEnum("TableRow", "HASH OFFSET BYTES VERDICT COLUMNS", start=0)


class ChangeOf(IntEnum):  # the state of a change
    SEQUENCE, PREFIX_SIZE = 0, 1  # of the next packet; in front of each event
    FILTERS, LOG_POS = 2, 3  # the latter is AS_STORED, EVERY or BORDERS
    CHECKSUM_BYTES = 4  # that each event gets
    POSITION, LAST_POSITION = 5, 6  # of the next event in the file that is made, and of the event before
    SIZE = 7


class FilterField(IntEnum):  # the state of leaving out
    SEQUENCE, PREFIX_SIZE = 0, 1  # of the next packet; in front of each event
    READ_AT, OUT = 2, 3  # in the source: a group begins there; bytes of packets
    BY_TABLE = 4  # tables decide; else groups are left as they are, or emptied
    TABLE_AT = 5  # the TABLE_MAP event of a table that is not known
    SIZE = 6


class FilterStatus(IntEnum):  # why it stopped
    DONE = 0
    GROUP = 1  # the caller has to decide about the group at READ_AT
    TABLE = 2  # a table is not known
    WRONG = 3  # something is not as it should be, or there is no room
