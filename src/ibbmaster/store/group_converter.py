"""Plain groups of traditional binlog files made into commit records many at a time, without a look at each."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

from ibbmaster.gtid import Gtid
from ibbmaster.store.classic_file import STANDALONE_ROLES, TRANSACTION_ROLES
from ibbmaster.store.classic_window import EventWindow
from ibbmaster.store.writer import BinlogWriter

PAIRS_MAX = 256
FAILURES_MAX = 6
RECORD_BYTES_MAX = 1 << 18  # a longer group takes the slow way, where it costs little


class GroupConverter:
    """Takes groups from a window on a traditional file and appends them to a log, as far as they are plain.

    Attributes:
        group_count, event_bytes: what was taken so far.
    """

    def __init__(self, writer: BinlogWriter, kernels: ModuleType) -> None:
        import numpy as np

        from ibbmaster.kernel.converting import Conversion

        self.group_count = 0
        self.event_bytes = 0
        self._numpy = np
        self._field = Conversion
        self._writer = writer
        self._kernels = kernels
        self._numbers = np.zeros(Conversion.SIZE, dtype=np.int64)
        self._pairs = np.zeros((PAIRS_MAX, 4), dtype=np.int64)
        self._roles = [
            np.frombuffer(bytearray(roles), dtype=np.uint8) for roles in (TRANSACTION_ROLES, STANDALONE_ROLES)
        ]
        self._failures = 0  # in a row
        self._to_skip = 0  # groups, where none was plain lately
        self._scratch = np.empty(RECORD_BYTES_MAX, dtype=np.uint8)

    def take(self, window: EventWindow, known: Iterable[Gtid]) -> tuple[Gtid, ...]:
        """Convert the groups at the begin of a window, of pairs that are known; returns the last GTID of each.

        Raises:
            StoreError: the log cannot be written.
        """
        if self._to_skip:
            self._to_skip -= 1
            return ()
        numbers, field, pairs = self._numbers, self._field, self._pairs
        count = 0
        for gtid in known:
            if count < PAIRS_MAX:
                pairs[count] = gtid.domain_id, gtid.server_id, 0, 0
                count += 1
        if not count:
            return ()
        numbers[:] = 0
        numbers[field.READ_AT], numbers[field.SOURCE_OFFSET] = window.position, window.block_offset
        numbers[field.CHECKSUM_BYTES], numbers[field.PAIRS] = window.checksum_size, count
        numbers[field.RECORD_MAX] = self._writer.shape.inline_size_max
        source = self._numpy.frombuffer(window.block, dtype=self._numpy.uint8)
        taken: tuple[Gtid, ...] = ()

        def work(batch: bytearray, start: int, end: int) -> tuple[int, tuple[Gtid, ...]]:
            nonlocal taken
            numbers[field.WRITE_AT], numbers[field.WRITE_END] = start, end
            before = int(numbers[field.NOTED])
            pages = self._numpy.frombuffer(batch, dtype=self._numpy.uint8)
            self._kernels.convert_groups(source, len(window.block), numbers, pairs, *self._roles, self._scratch, pages)
            rows = sorted((row for row in pairs[:count].tolist() if row[3] > before), key=lambda row: row[3])
            taken = tuple(Gtid(domain_id=row[0], server_id=row[1], seq_no=row[2] % 2**64) for row in rows)
            return int(numbers[field.WRITE_AT]), taken

        self._writer.fill(work)
        self._failures = 0 if taken else min(self._failures + 1, FAILURES_MAX)
        self._to_skip = 2**self._failures - 1 if self._failures > 2 else 0
        window.position = int(numbers[field.READ_AT])
        self.group_count += int(numbers[field.NOTED])
        self.event_bytes += int(numbers[field.EVENT_BYTES])
        return taken
