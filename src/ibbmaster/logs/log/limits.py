"""Sizes of a log: of its files, between state records, and of records."""

from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import GtidState
from ibbmaster.storage.ibb.chunk import CHUNK_DATA_MAX, CHUNK_HEADER_SIZE, CHUNK_SIZE_MIN
from ibbmaster.storage.ibb.file_header import SIZE_PAGES_MAX, SIZE_PAGES_MIN
from ibbmaster.storage.ibb.oob import HEADER_SIZE_MAX
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE

MAX_FILE_BYTES = 1 << 30
STATE_INTERVAL_BYTES = 2 << 20
OOB_PIECE_BYTES = 512 << 10
PAIR_SIZE_MAX = 5 + 5 + 9  # bytes of a (domain, server, number) in a state record


class LogLimits:
    """The sizes of the options, adapted to the number of pairs in the GTID state: no record spans more than two files.

    Bytes of the largest record, of a group in one record, of a piece of a larger one, of a state record; `next_file`
    has pages and interval. All are at hand, as each commit needs them. Raises ConfigurationError: a size the format
    does not allow."""

    def __init__(
        self,
        *,
        max_file_bytes: int = MAX_FILE_BYTES,
        state_interval_bytes: int = STATE_INTERVAL_BYTES,
        oob_piece_bytes: int = OOB_PIECE_BYTES,
        spill_bytes: int = OOB_PIECE_BYTES,
    ) -> None:
        self._size_pages = _file_size_pages(max_file_bytes)
        self._interval_pages = _interval_pages(state_interval_bytes)
        if oob_piece_bytes <= HEADER_SIZE_MAX or spill_bytes < 0:
            raise ConfigurationError(f"out-of-band pieces of {oob_piece_bytes} bytes, groups of {spill_bytes} bytes")
        self._wanted_record_size = min(oob_piece_bytes, self._size_pages * PAGE_SIZE // 2)
        self._spill_size = spill_bytes
        self._pair_count = 0
        self._limit_records()

    def count_pairs(self, state: GtidState) -> None:
        self._pair_count = len(state)
        self._limit_records()

    def add_pair(self) -> None:
        self._pair_count += 1
        self._limit_records()

    def _limit_records(self) -> None:
        """Keep records so short that the rest of one, begun in the active file, fits into the next."""
        self.state_size_max = 2 * 9 + self._pair_count * PAIR_SIZE_MAX
        interval_pages = self._interval_pages
        while interval_pages * DATA_SIZE < 4 * self.state_size_max:
            interval_pages *= 2  # or a file would hold little but states
        state_chunks = -(-self.state_size_max // CHUNK_DATA_MAX)
        size_pages = max(self._size_pages, SIZE_PAGES_MIN * state_chunks)
        self.next_file = size_pages, interval_pages
        state_count = 1 + size_pages // interval_pages
        room = (size_pages - 1) * (DATA_SIZE - CHUNK_HEADER_SIZE - CHUNK_SIZE_MIN)
        room -= state_count * (self.state_size_max + state_chunks * CHUNK_HEADER_SIZE)
        self.record_size_max = min(self._wanted_record_size, room)
        self.inline_size_max = min(self._spill_size, self.record_size_max)
        self.piece_size_max = self.record_size_max - HEADER_SIZE_MAX


def _file_size_pages(max_file_bytes: int) -> int:
    size_pages = max_file_bytes // PAGE_SIZE
    if not SIZE_PAGES_MIN <= size_pages <= SIZE_PAGES_MAX:
        raise ConfigurationError(
            f"files of {max_file_bytes} bytes: a file has {SIZE_PAGES_MIN * PAGE_SIZE} bytes at least, "
            f"and {SIZE_PAGES_MAX * PAGE_SIZE} at most"
        )
    return size_pages


def _interval_pages(state_interval_bytes: int) -> int:
    """A file without inner states is readable, but MariaDB's own search divides by the interval in its header."""
    interval_pages = state_interval_bytes // PAGE_SIZE
    is_whole = interval_pages > 0 and interval_pages * PAGE_SIZE == state_interval_bytes
    if not is_whole or interval_pages & (interval_pages - 1):
        raise ConfigurationError(
            f"a GTID state every {state_interval_bytes} bytes: it must be {PAGE_SIZE} times a power of two"
        )
    return interval_pages
