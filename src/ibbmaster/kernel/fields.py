"""What the kernels and their callers share: the places in their arguments, and the numbers of the format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from ibbmaster.event.gtid_event import GTID_EVENT_SIZE_MIN, GTID_FLAGS_OFFSET
from ibbmaster.event.header import EVENT_HEADER_SIZE
from ibbmaster.event.types import EventType
from ibbmaster.gtid import Gtid
from ibbmaster.ibb.chunk import CHUNK_HEADER_SIZE, CHUNK_SIZE_MIN, RecordType
from ibbmaster.ibb.chunk import CONT as _CONT
from ibbmaster.ibb.chunk import FILLER as _FILLER
from ibbmaster.ibb.chunk import LAST as _LAST
from ibbmaster.ibb.page import DATA_SIZE

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    # Items lie one behind the other. See `ibbmaster.kernel.shapes`.
    Bytes = npt.NDArray[np.uint8]
    ByteRows = npt.NDArray[np.uint8]
    Numbers = npt.NDArray[np.int64]  # one for each place of an enumeration
    NumberRows = npt.NDArray[np.int64]  # a row for each thing
    Shorts = npt.NDArray[np.int32]
    ShortRows = npt.NDArray[np.int32]

CONT, LAST, FILLER = int(_CONT), int(_LAST), int(_FILLER)
TYPE_MASK = 0x3F
COMMIT, OOB_DATA = int(RecordType.COMMIT), int(RecordType.OOB_DATA)
GTID_STATE, DUMMY = int(RecordType.GTID_STATE), int(RecordType.DUMMY)
KNOWN_TYPES = sum(1 << int(record_type) for record_type in RecordType)
CHUNK_HEADER = int(CHUNK_HEADER_SIZE)
CHUNKS_PER_PAGE_MAX = int(DATA_SIZE) // int(CHUNK_SIZE_MIN)
GTID_EVENT, ANNOTATE_ROWS = int(EventType.GTID), int(EventType.ANNOTATE_ROWS)
PARTIAL_ROW_DATA, NO_EVENT = int(EventType.PARTIAL_ROW_DATA), -1
EVENT_HEADER = int(EVENT_HEADER_SIZE)
GTID_EVENT_MIN = int(GTID_EVENT_SIZE_MIN)
GROUP_BEGIN = int(GTID_FLAGS_OFFSET) + 1  # bytes of a GTID event that identify its group
EVENT_MAX = 1 << 30
PACKET_MAX = 0xFFFFFF
SEGMENT_MIN = 8192  # bytes: shorter pieces are copied faster than sent by themselves
SMALL_EVENT = 256  # bytes: up to here, copies of 32 bytes are faster than a call
LEAVES_OUT_ANNOTATE, LEAVES_OUT_MARKED = 1, 2  # filters
CONTINUES, ENDS, MAY_END, NOT_INSIDE = range(4)  # roles: what an event does to its group; the text of some decides


class Field(IntEnum):
    """Places in the state that a kernel is given and leaves: where in the pages it is, and what it has made."""

    PAGE = 0  # index of the current page in the block
    OFFSET = 1  # on that page, of a chunk
    OUT = 2  # bytes in the output
    SEQUENCE = 3  # of the next packet
    FILTERS = 4
    PREFIX_SIZE = 5  # 1, or 3 with the header of semi-synchronous replication
    GROUPS = 6  # framed by this call
    PAIRS = 7  # (domain, server) pairs that were logged since it was 0
    VERIFIED = 8  # pages, from the first on, whose checksum is known to be right
    END = 9  # in the pages: no chunk that begins there or later is looked at; 0 for none
    RUN = 10  # in the pages: where the out-of-band records begin that the block ends in; -1 for none
    EVENT_LEFT = 11  # bytes that the current event still lacks
    HEAD_HELD = 12  # bytes of an event header that was cut
    PACKET_LEFT = 13  # bytes that fit into the current packet
    EMPTY_TAIL = 14  # the current payload ends with an empty packet
    IS_DROPPED = 15  # the current event is left out
    TO_SKIP = 16  # bytes from the current chunk on that are no events, or were framed
    SKIP_TYPE = 17  # of the record that continues with the current chunk, -1 for none
    NESTED_TYPE = 18  # of the one inside that record that continues, -1 for none
    NOTED = 19  # GTIDs that were noted since it was 0
    SEGMENTS = 20  # pieces of the source that belong between those of the output
    SEGMENT_BYTES = 21  # in those pieces
    STEPS_BACK = 22  # groups noted whose number was not above the one before of their pair
    DUE = 23  # page of the block that a state record has to begin; -1 for none
    SIZE = 24


class ChunkColumn(IntEnum):
    """Columns of the table of chunks."""

    START = 0  # of its header in the pages
    SIZE = 1  # bytes of data
    TYPE = 2  # its type byte
    COLUMNS = 3


class Framing(NamedTuple):
    """What framing works on, besides the pages."""

    state: Numbers  # see Field
    head: Bytes  # the beginning of an event whose header is cut
    begin: Bytes  # that of a commit record, likewise
    prefix: Bytes  # of each event
    pairs: NumberRows  # see `noted_gtids`
    table: ShortRows  # see ChunkColumn
    out: Bytes  # packets
    segments: NumberRows  # where in `out` a piece of the pages belongs, where it begins there, its bytes


class Sending(NamedTuple):
    """What sending what was framed works on."""

    progress: Numbers  # see Progress
    vectors: NumberRows  # addresses and sizes of its pieces
    rest: Bytes  # what the socket does not take


class Roles(NamedTuple):
    """The role of each event type in groups of traditional files."""

    transaction: Bytes
    standalone: Bytes  # behind a GTID event with the flag STANDALONE


class Checking(NamedTuple):
    """What checking works on, besides the pages."""

    state: Numbers  # see Field
    table: ShortRows  # see ChunkColumn; for one page
    pairs: NumberRows  # see PairColumn
    found: NumberRows  # see Found
    scratch: Bytes  # how a commit record in several chunks begins, and an event header there that is cut


class Collecting(NamedTuple):
    """What collecting works on, besides the pages."""

    state: Numbers  # see Field
    table: ShortRows  # see ChunkColumn; for one page
    groups: NumberRows  # see GroupColumn
    data: Bytes  # of their events


class KnownTables(NamedTuple):
    """What row events are read with."""

    open_tables: NumberRows  # see OpenColumn
    store: Bytes  # see MapColumn and VariantColumn
    maps: NumberRows  # see MapColumn
    map_count: int
    map_at: int  # where in a TABLE_MAP event the bytes begin by which its table is known
    variants: NumberRows  # see VariantColumn
    variant_count: int
    is_other: Bytes  # by type of event, whether it is an OTHER_EVENT; may be empty


class ValueOp(IntEnum):
    """How a stored value becomes part of a row of an answer."""

    COPY = 0  # the bytes behind their length
    PAD = 1  # and zeros behind them, up to FIRST bytes
    BYTES = 2  # each byte as text number FIRST + byte says
    CHOICE = 3  # text number FIRST + value; SECOND: how many there are
    CONSTANT = 4  # text number FIRST, or NULL if that is -1
    SIDE = 5  # the next text of side number FIRST
    INTEGER = 6  # FIRST: it has a sign; SECOND: digits, with zeros in front
    YEAR = 7  # FIRST: digits
    DECIMAL = (
        8  # FIRST: digits, SECOND: of them behind the point; THIRD: to be shown there; FOURTH: as SECOND of INTEGER
    )
    DATE = 9
    DATETIME = 10  # FIRST: digits of a second, SECOND: to be shown
    TIME = 11  # as DATETIME
    TIMESTAMP = 12  # as DATETIME
    # of the binary protocol
    FIXED = 13  # the bytes alone
    NUMBER = 14  # FIRST: it has a sign; SECOND: bytes
    YEAR_NUMBER = 15
    DATE_PARTS = 16
    DATETIME_PARTS = 17  # FIRST: digits of a second
    TIME_PARTS = 18  # as DATETIME_PARTS
    TIMESTAMP_PARTS = 19  # as DATETIME_PARTS


class ValueColumn(IntEnum):
    """What is known of each column of an answer, for rows of one layout."""

    OP = 0  # ValueOp
    PLACE = 1  # of the stored column
    FIRST = 2
    SECOND = 3
    THIRD = 4
    FOURTH = 5
    COLUMNS = 6


class LayoutColumn(IntEnum):
    """What is known of each layout of stored rows."""

    FIRST = 0  # of its stored columns; -1: it is not known
    COUNT = 1
    VALUES = 2  # the first of its ValueColumns
    BOUND = 3  # bytes that a row of an answer takes at most, beside ...
    FACTOR = 4  # ... so many times the bytes of the stored one
    COLUMNS = 5


class AnswerField(IntEnum):
    """Places in the state of an answer."""

    NEXT = 0  # row of those that are wanted
    END = 1  # rows that are wanted
    SEQUENCE = 2  # of the next packet
    OUT = 3  # bytes in the output
    SHOWN = 4  # columns of the answer
    IS_BINARY = 5
    ZONE_S = 6  # seconds that TIMESTAMPs are shown east of UTC
    SIDE_START = 7  # the row that the first text of each side is of
    SIZE = 8


class AnswerStatus(IntEnum):
    """Why no more rows were written."""

    END = 0
    FULL = 1
    FALLBACK = 2  # the next row is one for the reference


class AnswerPlan(NamedTuple):
    """How stored rows become rows of an answer."""

    layouts: NumberRows  # see LayoutColumn
    stored: NumberRows  # by column: bytes of its values, or -1; and bytes of the length before them
    values: NumberRows  # see ValueColumn
    offsets: Numbers  # of each text in ...
    texts: Bytes
    side_offsets: NumberRows  # by side and row, in ...
    sides: Bytes


class Decoded(NamedTuple):
    """What rows become."""

    values: NumberRows  # a row for each slot of `StepColumn.SLOT`
    valid: ByteRows  # whether a value is there
    row_groups: Numbers  # in which group a row is
    row_kinds: Numbers  # of which kind of row event, and which image
    event_sizes: Numbers  # by kind of row event: bytes of those that were read to their end, counted on


class FileRange(NamedTuple):
    """Which part of a file is collected."""

    file_no: int
    block_offset: int  # where in the file the block begins
    end_offset: int  # of the groups that are wanted


PAIR_COLUMNS = 4  # domain, server, last sequence number, and which of all that were noted it was, 0 for none


def noted_gtids(pairs: Iterable[Sequence[int]]) -> tuple[Gtid, ...]:
    """The last GTID of each pair that a kernel has noted, from its rows.

    Domains are in the order in which they came, servers in that of their last groups:
    logged like this, they leave the same state as all groups one by one.
    """
    rows = [row for row in pairs if row[3]]
    if len(rows) > 1:
        first = {row[0]: index for index, row in reversed(list(enumerate(rows)))}
        rows.sort(key=lambda row: (first[row[0]], row[3]))
    return tuple(Gtid(domain_id=row[0], server_id=row[1], seq_no=row[2] % 2**64) for row in rows)


def last_gtids(groups: Any) -> list[Gtid]:
    """The last GTID of each (domain, server) pair of groups, see GroupColumn; in the order of `noted_gtids`."""
    import numpy as np

    if not len(groups):
        return []
    last = [len(groups) - 1]
    if (groups[:, : GroupColumn.SEQ_NO] != groups[0, : GroupColumn.SEQ_NO]).any():
        domains = groups[:, GroupColumn.DOMAIN]
        _, from_end = np.unique((domains << 32 | groups[:, GroupColumn.SERVER])[::-1], return_index=True)
        last = sorted((len(groups) - 1 - from_end).tolist())
        first = dict(zip(*(found.tolist() for found in np.unique(domains, return_index=True)), strict=True))
        last.sort(key=lambda row: first[int(domains[row])])
    found = (groups[row, : GroupColumn.SEQ_NO + 1].tolist() for row in last)
    return [
        Gtid(domain_id=domain_id, server_id=server_id, seq_no=seq_no % 2**64) for domain_id, server_id, seq_no in found
    ]


class Status(IntEnum):
    """Why a kernel stopped."""

    NEED_MORE = 0  # the block has no more pages
    NO_DATA = 1  # nothing was written here yet
    FALLBACK = 2  # what comes next is for the reference path
    FULL = 3  # the output, or the table of chunks, has no more room
    BAD_PAGE = 4  # the checksum of the current page is wrong
    DONE = 5  # the record, the bytes, or the range ends here


class Progress(IntEnum):
    """Places in the numbers that a pump is given and leaves."""

    FILE_OFFSET = 0  # of the current page
    BUDGET = 1  # bytes; end after them
    FRAMED = 2  # bytes of packets
    REST = 3  # bytes that the socket did not take
    NODE = 4  # index of the current node
    IS_BEGUN = 5  # whether FILE_OFFSET and the state are of a place inside that node
    VERIFIED_FROM = 6  # file offset of the pages whose checksums are known to be right
    VERIFIED_TO = 7
    END = 8  # file offset where what may be sent ends, though the file goes on; 0 for none
    COMMIT = 9  # file offset of the commit record that ends a way; 0 for none
    HAS_MORE = 10  # whether there are more nodes than those at hand
    KNOWN_BEGIN = 11  # file offset where a way begins whose commit record is known, and of that; 0 for none
    KNOWN_COMMIT = 12
    SIZE = 13


class NodeScan(IntEnum):
    """Places in the numbers that a scan for out-of-band nodes is given and leaves."""

    FILE_NO = 0  # in which all of them lie
    FIRST = 1  # file offset of node 0
    NODES = 2  # of the stream
    NEXT = 3  # number of the node that comes next
    PATH = 4  # nodes that are left: rows of the path
    SIZE = 5


class UnreadNodeColumn(IntEnum):
    """Columns of the nodes that a scan has still to read, or to give; the last row is the next."""

    PLACE = 0  # file offset
    NUMBER = 1  # -1 where it does not follow from the parent
    IS_LEFTMOST = 2  # reached from the last node by left steps alone
    HEADER_SIZE = 3  # bytes, once all that comes before it stands behind it
    COLUMNS = 4


class NodeColumn(IntEnum):
    """Columns of the nodes that were found."""

    FILE_NO = 0
    PLACE = 1  # file offset
    HEADER_SIZE = 2  # bytes before the events
    COLUMNS = 3


NODE_HEADER_NUMBERS = 6  # its number, file and place of the left node, those of the right one, bytes of the header


NODE_HEAD_MIN = 64  # bytes in which the header of a node is, unless the record is shorter


class Found(IntEnum):
    """Columns of the out-of-band nodes and state records that a check has found."""

    PAGE = 0  # index in the block
    OFFSET = 1  # of the record on that page
    SIZE = 2  # bytes of the whole record
    FIRST_SIZE = 3  # bytes of its first chunk
    TYPE = 4  # of the record
    COLUMNS = 5


class PairColumn(IntEnum):
    """Columns of the pairs that a check has found; the first ones are those of `noted_gtids`."""

    DOMAIN = 0
    SERVER = 1
    LAST = 2  # sequence number, as if it had a sign
    TURN = 3  # of all groups
    FIRST = 4  # sequence number
    FIRST_PAGE = 5  # index in the block
    FIRST_OFFSET = 6  # of the commit record on that page
    LAST_PAGE = 7
    LAST_OFFSET = 8
    COLUMNS = 9


class GroupColumn(IntEnum):
    """Columns of the groups that were collected."""

    DOMAIN = 0
    SERVER = 1
    SEQ_NO = 2  # as if it had a sign
    TIMESTAMP = 3  # seconds since 1970
    FILE_NO = 4
    FILE_OFFSET = 5  # of the commit record
    END_FILE_NO = 6
    END_OFFSET = 7  # behind the commit record
    START = 8  # of its events in the data
    END = 9
    FIRST_NUMBER = 10  # of its first event here: not 0 in a group that is cut
    COLUMNS = 11


class EventColumn(IntEnum):
    """Columns of the events that were collected."""

    START = 0  # in the data
    SIZE = 1
    GROUP = 2  # row of the groups
    NUMBER = 3  # in its group
    COLUMNS = 4


class RowOp(IntEnum):
    """How a value is read from a row, with two arguments, into one slot or two that follow each other."""

    SKIP_FIXED = 0  # bytes
    SKIP_PREFIXED = 1  # bytes of the length
    INTEGER = 2  # bytes, whether it has a sign
    BIG_ENDIAN = 3  # bytes
    FLOAT = 4  # its bits
    DOUBLE = 5  # its bits
    YEAR = 6
    DECIMAL = 7  # digits, scale; two slots, the lower half of a number of 128 bits first
    DATE = 8  # days since 1970
    DATETIME = 9  # digits of a second; microseconds since 1970
    TIMESTAMP = 10  # the same
    RAW_FIXED = 11  # bytes; two slots: where they are, and how many
    RAW_PREFIXED = 12  # bytes of the length; the same


class TextOp(IntEnum):
    """How a value is shown as text, of at most TEXT_SIZES bytes."""

    UUID = 0
    INET4 = 1
    INET6 = 2
    TIME = 3


TEXT_SIZES = (36, 15, 39, len("-1023:63:63.999999"))


class StepColumn(IntEnum):
    """Columns of the steps that read an image of a row, one for each column it has."""

    OP = 0
    FIRST = 1  # arguments
    SECOND = 2
    SLOT = 3
    SIZE = 4  # bytes of the value, or of its length
    COLUMNS = 5


class MapColumn(IntEnum):
    """Columns of the tables that are known, each by the bytes of its TABLE_MAP."""

    START = 0  # of these bytes in the store of bytes
    SIZE = 1
    IS_WANTED = 2
    COLUMNS = 3


class VariantColumn(IntEnum):
    """Columns of the kinds of row events: of a table, with the same columns in their images."""

    MAP = 0  # row of the tables
    KIND = 1  # see CHANGE_KINDS
    COLUMN_COUNT = 2
    BITS_START = 3  # of the columns present, in the store of bytes
    BITS_SIZE = 4
    FIRST_STEP = 5  # of the image, or of that before an update
    STEPS = 6
    AFTER_FIRST_STEP = 7
    AFTER_STEPS = 8
    COLUMNS = 9


class RowField(IntEnum):
    """Places in the state of a reading of row events."""

    EVENT = 0  # the current one
    OFFSET = 1  # in the data where the next row of that event begins; 0 before the first
    ROWS = 2  # or changes that are in the output
    GROUP = 3  # of the current event
    OPEN = 4  # tables that this group has named
    TABLE = 5  # whose rows are in the output; ANY_TABLE: of all
    TURN = 6  # counts groups: which entries of the open tables are those of this one
    OUT = 7  # bytes of images
    SIZE = 8


INSERT, DELETE, UPDATE_BEFORE, UPDATE_AFTER = range(4)
CHANGE_TYPES = ("insert", "delete", "update_preimage", "update_postimage")
OPEN_TABLES_MIN = 256  # for how many there is room at first; a power of two
ANY_TABLE = -2
KIND_BITS = 2  # the lowest of what is noted of a row; above them is the kind of row event


class OpenColumn(IntEnum):
    """Columns of the tables that a group has named: a hash table that is at most half full, by table id."""

    ID = 0
    MAP = 1  # row of the tables
    TURN = 2  # of the group that has named it: those of other groups are free places
    COLUMNS = 3


class RowStatus(IntEnum):
    """Why a reading of row events stopped."""

    END = 0  # of the events
    FULL = 1  # the output has no more room
    NEW_MAP = 2  # a table that is not known
    NEW_VARIANT = 3  # a kind of row event that is not known
    BAD = 4  # the reference says what is wrong
    NEW_TABLE = 5  # rows of another table than TABLE
    MANY_TABLES = 6  # the hash table of those that the group has named is half full
    BY_REFERENCE = 7  # what is left of a row event is for the reference
    OTHER_EVENT = 8  # so is an event of another type
    ROWS = 9  # there are some: kernels go on


class LineOp(IntEnum):
    """What a step of a line writes after its text."""

    TEXT = 0  # nothing
    HEAD = 1  # what is the same in all lines of a group: number of the head
    NUMBER = 2  # which line of its group it is, counted on
    GTID = 3  # of the group, in heads alone, as are the next ones
    MOMENT = 4  # when it was committed, as 2026-01-31T12:00:00Z
    GROUP = 5  # one of `GroupColumn`, times a number
    NOTE = 6  # what is known of the group besides
    SIDE = 7  # a text that was made before, also for NULL: which of them
    INTEGER = 8  # whether it has a sign, and what it is divided by
    DECIMAL = 9  # digits, scale
    DATE = 10
    DATETIME = 11  # digits of a second
    TIMESTAMP = 12  # the same, and the letter before the clock: with a T none is all zeros
    TIME = 13  # digits of a second
    UUID = 14  # bytes
    INET4 = 15  # the same
    INET6 = 16  # the same
    UTF8 = 17  # as a string of JSON has it
    LETTERS = 18  # single bytes: where their 256 texts begin among the choices
    BASE64 = 19  # bytes that it is filled up to
    CHOICE = 20  # where its texts begin among the choices, and how many there are
    UNSCALED = 21  # a DECIMAL that was read as a number: the bytes of its digits without the point, as base64


class LineColumn(IntEnum):
    """Columns of the steps of lines. Their texts are in the store; NULL is written without OPENING and CLOSING."""

    OP = 0
    START = 1  # of the text in front
    SIZE = 2
    SLOT = 3  # of the value
    IS_AFTER = 4  # whether it is in the row after
    FIRST = 5  # arguments
    SECOND = 6
    OPENING = 7  # of the text before a value
    OPENING_SIZE = 8
    CLOSING = 9  # of the text after it
    CLOSING_SIZE = 10
    NULL = 11  # of the text that stands for NULL
    NULL_SIZE = 12
    COLUMNS = 13


class LineField(IntEnum):
    """Places in the state of a writing of lines."""

    ROW = 0  # the next one
    ROWS = 1  # the first that is not wanted
    OUT = 2  # bytes in the output
    GROUP = 3  # of the line before; -1 for none
    NUMBER = 4  # lines that this group has
    GROUPS = 5  # that have heads
    STEP = 6  # whose value is for the reference
    SIDE_ROW = 7  # where the texts begin that were made before
    SIZE = 8


class LineStatus(IntEnum):
    """Why a writing of lines stopped."""

    END = 0  # of the rows
    FULL = 1  # the next line has no room
    FALLBACK = 2  # a value is for the reference


class LinePlan(NamedTuple):
    """How lines are written."""

    programs: NumberRows  # the first step and how many, for each kind of row event
    steps: NumberRows  # see LineColumn
    store: Bytes  # of texts
    choices: NumberRows  # where a text begins in the store, and its bytes; -1: there is none
    head_offsets: Numbers  # of each head, group after group
    heads: Bytes
    side_offsets: NumberRows  # a row for each column of texts that were made before
    sides: Bytes


class KeyOp(IntEnum):
    """How the stored bytes of a value become a part of a key. The reference: `ibbmaster.fold.stored`."""

    UNSIGNED = 0  # 8 bytes, the highest first
    SIGNED = 1  # the same, from the lowest number on
    REVERSED = 2
    TIME = 3  # 3 bytes, the highest first, from the lowest number on
    FLOATING = 4
    FIXED = 5  # as they are
    TEXT = 6  # with an end
    PADDED_TEXT = 7  # without spaces before its end


class KeyColumn(IntEnum):
    """Columns of the parts of keys."""

    PLACE = 0  # of the value in its image
    OP = 1
    IS_DESCENDING = 2
    COLUMNS = 3


class ImageColumn(IntEnum):
    """Columns of the columns of images."""

    SIZE = 0  # bytes of each value, -1: its length is before it
    LENGTH_SIZE = 1  # bytes of that length
    COLUMNS = 2


class ChangeVariantColumn(IntEnum):
    """Columns of the kinds of row events whose images are kept; the first ones are those of `VariantColumn`."""

    FIRST_COLUMN = int(VariantColumn.FIRST_STEP)  # of the image, or of that before an update
    COLUMN_COUNT = int(VariantColumn.STEPS)
    AFTER_FIRST_COLUMN = int(VariantColumn.AFTER_FIRST_STEP)
    AFTER_COLUMN_COUNT = int(VariantColumn.AFTER_STEPS)
    FIRST_PART = int(VariantColumn.COLUMNS)  # of the key in these images
    AFTER_FIRST_PART = 10
    PART_COUNT = 11
    LAYOUT = 12  # of the images that are kept
    IS_BY_REFERENCE = 13
    COLUMNS = 14


class ChangeOp(IntEnum):
    """What happens to the row of a key."""

    INSERT = 0
    REPLACE = 1  # its image is another one
    DELETE = 2


KEY_MAX = 64  # bytes of a key; one that is longer is for the reference
ROW_HEAD = 6  # bytes before an image that is kept: its size, its layout


class ChangedTables(NamedTuple):
    """How changes of rows are collected."""

    columns: NumberRows  # see ImageColumn
    parts: NumberRows  # see KeyColumn
    spans: NumberRows  # room: a row for each column of an image


class KeptChanges(NamedTuple):
    """Changes in the order of the log, each with its row of the maps."""

    maps: Numbers
    ops: Numbers  # see ChangeOp
    places: Numbers  # of the new image among the images
    key_sizes: Numbers
    keys: Bytes  # KEY_MAX for each, filled up with zeros
    images: Bytes  # each behind its head


class Conversion(IntEnum):
    """Places in the numbers that a conversion is given and leaves."""

    READ_AT = 0  # in the source; moved
    SOURCE_OFFSET = 1  # of the source's first byte in its file
    CHECKSUM_BYTES = 2  # at the end of each event
    WRITE_AT = 3  # in the pages; moved
    WRITE_END = 4  # pages from here on are not for this call
    RECORD_MAX = 5  # bytes of a record
    PAIRS = 6  # that are known: others are for the reference
    NOTED = 7  # groups, counted on; the last of each pair has its number
    EVENT_BYTES = 8  # written, counted on
    SIZE = 9


class LongGroup(IntEnum):
    """Places in what is known of a group of a traditional file that is read piece by piece."""

    KIND = 0  # 0 before its GTID event
    ROLE = 1  # of the current event
    LEFT = 2  # bytes that this still lacks, its checksum among them; 0 between events
    CHECKSUM = 3  # of what was read of it
    BYTES = 4  # of its events, without checksums
    SIZE = 5


class PlacedField(IntEnum):
    """Places in the numbers that a writing of traditional files is given and leaves."""

    OUT = 0  # bytes in the output; moved
    FILE_OFFSET = 1  # where the next event begins in its file; moved
    FILE_MAX = 2  # no group begins there, or after it
    CHECKSUM_BYTES = 3  # after each event
    SAYS_ALL = 4  # whether each event says where it ends, and not only the first and the last of a group
    TYPE_MAX = 5  # the highest type of an event that the server knows
    SIZE = 6
