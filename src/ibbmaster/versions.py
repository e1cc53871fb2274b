"""The differences between versions of MariaDB, in one table with names. The document: protocol/versions.md. A version
is a number, as in conditional comments: 110806 is 11.8.6. Of an unknown version, 0, nothing holds."""

import enum
import functools
import re

END = 1_000_000  # beyond every version
MYSQL_KNOWS_CHECKSUMS = 50_601  # a version of MySQL, whose numbers say nothing of MariaDB's
_VERSION = re.compile(r"(\d{1,2})\.(\d{1,2})(?:\.(\d{1,2}))?(?!\d)", re.ASCII)


class Difference(enum.Enum):
    """Behaviour of servers from the first version on, and before the second."""

    KNOWS_CHECKSUMS = 50_300, END, "FORMAT_DESCRIPTION names a checksum algorithm, and ends with a checksum"
    KNOWS_GTIDS = (100_002, END, "each transaction is in a group that a GTID event begins")
    GREETS_AS_OLD = (
        100_000,
        110_000,
        "the greeting has `5.5.5-` before the version, for clients that know no larger major number",
    )
    SUPER_ADMINISTRATES = 100_000, 110_000, "SUPER includes BINLOG ADMIN and REPLICATION MASTER ADMIN"
    STREAMS_AS_OLD = 100_000, 110_000, "traditional files are served as 10.11 does, later ones as 11.8"
    INVISIBLE_IS_LAST = 110_000, END, "SHOW CREATE TABLE has INVISIBLE behind DEFAULT"
    HEX_DEFAULTS = 110_000, END, "defaults of BINARY and VARBINARY are printed as `x'41'`"
    TELLS_INDEX_ALGORITHM = 110_000, END, "INDEX_TYPE is the algorithm that the definition names"
    SHOWS_NEGATIVE_ZERO = 110_000, END, "a DOUBLE that is computed may be `-0`"
    UCA_1400_IS_DEFAULT = (
        110_500,
        END,
        "Unicode character sets have collations of UCA 14.0 by default; QUERY events tell it, GTID events the thread",
    )
    HISTORY_ENDS_IN_2106 = 110_500, END, "ROW END of rows that hold is in 2106, before that in 2038"
    NOW_IS_TIMESTAMP = 110_600, END, "NOW() and FROM_UNIXTIME() are TIMESTAMPs, before that DATETIMEs"
    STATUS_HAS_GTID = 120_300, END, "SHOW MASTER STATUS has Gtid_Binlog_Pos"
    BINLOG_IN_ENGINE = 120_300, END, "the binlog may be in the storage engine, and its stream has the shape of that"
    LARGE_ROW_EVENTS = 130_000, END, "`binlog_row_event_max_size` is 64 KiB, before that 8 KiB"
    REVERSED_COMMENTS = 130_000, END, "`/*!!N … */` is code for servers older than N"
    UTF8_IS_UTF8MB4 = 130_100, END, "`utf8` is utf8mb4, before that utf8mb3"

    def __init__(self, since: int, until: int, meaning: str) -> None:
        self.since, self.until, self.meaning = since, until, meaning

    def holds(self, version: int) -> bool:
        return self.since <= version < self.until


@functools.lru_cache(16)
def version_number(text: str) -> int:
    """The number of the version at the begin of a text, as in "11.8.6-MariaDB-log"; 0 without one."""
    match = _VERSION.match(text)
    return 0 if match is None else int(match[1]) * 10_000 + int(match[2]) * 100 + int(match[3] or 0)


def knows_checksums(server_version: str) -> bool:
    """Whether a server of this version, MariaDB or MySQL, knows checksums of events; unknown versions do."""
    number = version_number(server_version)
    is_mariadb = "MariaDB" in server_version
    return not number or (Difference.KNOWS_CHECKSUMS.holds(number) if is_mariadb else number >= MYSQL_KNOWS_CHECKSUMS)
