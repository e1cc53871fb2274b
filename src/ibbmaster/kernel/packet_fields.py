"""As `fields`, of the kernels that change packets and leave some out."""

from __future__ import annotations

from enum import IntEnum

AS_STORED, EVERY, BORDERS = range(3)  # events that get a place in a file
OLD_SERVER, OLD_DOMAIN, STEP, LATER, COMMIT_BITS = range(5)  # what a row of numbers of a change is about
EMPTIED_MAX = 256  # bytes of the packets of an emptied group, and what may be written after them
OPEN_MAX = 64  # tables of a group
CHOSEN_DOMAIN, CHOSEN_SERVER = range(2)  # what a row of numbers of leaving out is about
UNKNOWN, KEPT, LEFT_OUT, DOUBTFUL = range(4)  # what becomes of events of a table


class ChangeOf(IntEnum):  # the state of a change
    SEQUENCE, PREFIX_SIZE = 0, 1  # of the next packet; in front of each event
    FILTERS = 2
    LOG_POS = 3  # AS_STORED, EVERY or BORDERS
    CHECKSUM_BYTES = 4  # that each event gets
    POSITION, LAST_POSITION = 5, 6  # of the next event in the file that is made, and of the event before
    SIZE = 7


class FilterField(IntEnum):  # the state of leaving out
    SEQUENCE, PREFIX_SIZE = 0, 1  # of the next packet; in front of each event
    READ_AT = 2  # in the source: a group begins there
    OUT = 3  # bytes of packets
    BY_TABLE = 4  # tables decide; else groups are left as they are, or emptied
    TABLE_AT = 5  # the TABLE_MAP event of a table that is not known
    SIZE = 6


# Columns of the table of known tables: open addressing by the CRC-32 of a name, BYTES is 0 where nothing is. OFFSET
# is that of database and table among the names, as a TABLE_MAP has them.
TableRow = IntEnum("TableRow", "HASH OFFSET BYTES VERDICT COLUMNS", start=0)


class FilterStatus(IntEnum):  # why it stopped
    DONE = 0
    GROUP = 1  # at READ_AT a group begins that the caller has to decide
    TABLE = 2  # of a table it is not known what becomes of its events
    WRONG = 3  # something is not as it should be, or there is no room
