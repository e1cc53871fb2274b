"""Plain groups of traditional binlog files made into commit records, in batches."""

from __future__ import annotations

from collections.abc import Iterable

from ibbmaster.classic.roles import kernel_roles
from ibbmaster.classic.window import EventWindow
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import PAIR_COLUMNS, Conversion, noted_gtids
from ibbmaster.store.writer import BinlogWriter

PAIRS_MAX = 256
FAILURES_MAX = 6
RECORD_BYTES_MAX = 1 << 18  # a longer group takes the reference path, where it costs little


class GroupConverter:
    """Takes groups from a window on a traditional file and appends them to a log, while they are plain.

    Attributes:
        group_count, event_bytes: what was taken so far.
    """

    def __init__(self, writer: BinlogWriter, kernels: Kernels) -> None:
        import numpy as np

        self.group_count = 0
        self.event_bytes = 0
        self._numpy = np
        self._writer = writer
        self._kernels = kernels
        self._numbers = np.zeros(Conversion.SIZE, dtype=np.int64)
        self._pairs = np.zeros((PAIRS_MAX, PAIR_COLUMNS), dtype=np.int64)
        self._failures = 0  # in a row
        self._to_skip = 0  # groups, where none was plain lately
        self._scratch = np.empty(RECORD_BYTES_MAX, dtype=np.uint8)

    def take(self, window: EventWindow, known: Iterable[Gtid]) -> tuple[Gtid, ...]:
        """Convert the groups at the beginning of a window, of pairs that are known; returns the last GTID of each.

        Only groups that are newer than all of their domain are taken.

        Raises:
            StoreError: the log cannot be written.
        """
        if self._to_skip:
            self._to_skip -= 1
            return ()
        numbers, pairs = self._numbers, self._pairs
        count = 0
        for gtid in known:
            if count < PAIRS_MAX:
                highest = self._writer.highest_seq_no(gtid.domain_id)
                pairs[count] = gtid.domain_id, gtid.server_id, highest - (highest >> 63 << 64), 0  # of its whole domain
                count += 1
        if not count:
            return ()
        numbers[:] = 0
        numbers[Conversion.READ_AT], numbers[Conversion.SOURCE_OFFSET] = window.position, window.block_offset
        numbers[Conversion.CHECKSUM_BYTES], numbers[Conversion.PAIRS] = window.checksum_size, count
        numbers[Conversion.RECORD_MAX] = self._writer.limits.inline_size_max
        source = self._numpy.frombuffer(window.block, dtype=self._numpy.uint8)
        pages, numbers[Conversion.WRITE_AT], numbers[Conversion.WRITE_END] = self._writer.room()
        self._kernels.convert_groups(
            source,
            len(window.block),
            numbers,
            pairs,
            kernel_roles(),
            self._scratch,
            self._numpy.frombuffer(pages, dtype=self._numpy.uint8),
        )
        taken = noted_gtids(pairs[:count].tolist())
        if taken:
            self._writer.placed(int(numbers[Conversion.WRITE_AT]), taken)
        self._failures = 0 if taken else min(self._failures + 1, FAILURES_MAX)
        self._to_skip = 2**self._failures - 1 if self._failures > 2 else 0
        window.position = int(numbers[Conversion.READ_AT])
        self.group_count += int(numbers[Conversion.NOTED])
        self.event_bytes += int(numbers[Conversion.EVENT_BYTES])
        return taken
