"""Plain groups of traditional binlog files made into commit records, in batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ibbmaster.classic.roles import kernel_roles
from ibbmaster.classic.window import EventWindow
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import PAIR_COLUMNS, Conversion, noted_gtids
from ibbmaster.kernel.plain_memory import RowTable, numbers, scratch
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
        self.group_count = 0
        self.event_bytes = 0
        self._writer = writer
        self._kernels = kernels
        self._numbers = numbers(Conversion.SIZE)
        self._pairs = RowTable(PAIRS_MAX, PAIR_COLUMNS)
        self._failures = 0  # in a row
        self._to_skip = 0  # groups, where none was plain lately
        self._scratch = scratch(RECORD_BYTES_MAX)
        seal: Any = kernels.seal_pages
        writer.seal_with(seal)

    def take(self, window: EventWindow, known: Iterable[Gtid]) -> tuple[Gtid, ...]:
        """Convert the groups at the beginning of a window, of pairs that are known; returns the last GTID of each.

        Only groups that are newer than all of their domain are taken.

        Raises StoreError: the log cannot be written.
        """
        if self._to_skip:
            self._to_skip -= 1
            return ()
        here, pairs = self._numbers, self._pairs.memory
        count = 0
        for gtid in known:
            if count < PAIRS_MAX:
                highest = self._writer.highest_seq_no(gtid.domain_id)  # of its whole domain
                row = gtid.domain_id, gtid.server_id, highest - (highest >> 63 << 64), 0
                for column, number in enumerate(row):
                    pairs[count, column] = number
                count += 1
        if not count:
            return ()
        self._convert(window, count)
        if not here[Conversion.NOTED] and len(window.block) - window.position < RECORD_BYTES_MAX and window.extend():
            self._convert(window, count)  # a group that was cut
        taken = noted_gtids(self._pairs.rows(count))
        if taken:
            self._writer.placed(here[Conversion.WRITE_AT], taken)
        self._failures = 0 if taken else min(self._failures + 1, FAILURES_MAX)
        self._to_skip = 2**self._failures - 1 if self._failures > 2 else 0
        window.position = here[Conversion.READ_AT]
        self.group_count += here[Conversion.NOTED]
        self.event_bytes += here[Conversion.EVENT_BYTES]
        return taken

    def _convert(self, window: EventWindow, count: int) -> None:
        """Place the groups of a window that are of the first `count` pairs."""
        here, pairs = self._numbers, self._pairs.memory
        here[:] = numbers(Conversion.SIZE)
        here[Conversion.READ_AT], here[Conversion.SOURCE_OFFSET] = window.position, window.block_offset
        here[Conversion.CHECKSUM_BYTES], here[Conversion.PAIRS] = window.checksum_size, count
        here[Conversion.RECORD_MAX] = self._writer.limits.inline_size_max
        source: Any = memoryview(window.block)
        pages: Any
        pages, here[Conversion.WRITE_AT], here[Conversion.WRITE_END] = self._writer.room()
        self._kernels.convert_groups(source, len(source), here, pairs, kernel_roles(), self._scratch, pages)
