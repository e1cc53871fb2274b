"""Plain groups of traditional files, checked by a kernel, as many as follow each other."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any, NamedTuple

from ibbmaster.classic.roles import kernel_roles
from ibbmaster.classic.window import EventWindow
from ibbmaster.disk.reading_ahead import PieceReader
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import GROUP_BEGIN, PAIR_COLUMNS, Conversion, Field, LongGroup, Status, noted_gtids
from ibbmaster.kernel.plain_memory import RowTable, numbers, scratch

PAIRS_MAX = 256
FAILURES_MAX = 6
BLOCK_BYTES = 2 << 20  # read at once
LONG_BYTES = BLOCK_BYTES // 8  # of a group that continues after a block: what is not read and checked a second time


class CheckedGroups(NamedTuple):
    """What was checked: the last GTID of each domain and server, how many groups, and bytes of their events."""

    gtids: tuple[Gtid, ...]
    groups: int
    event_bytes: int


class GroupChecks:
    """Takes groups of one traditional file in which all is right. `ClassicFileReader` reads the others.

    `helper` reads ahead. Close it.
    """

    def __init__(self, kernels: Kernels, helper: Executor | None) -> None:
        self._kernels = kernels
        self._helper = helper
        self._numbers = numbers(Conversion.SIZE)
        self._head = scratch(GROUP_BEGIN)
        self._pairs = RowTable(PAIRS_MAX, PAIR_COLUMNS)
        self._blocks: PieceReader | None = None
        self._block, self._block_offset = memoryview(b""), 0  # what was read last, and where that is in the file
        self._failures = 0  # in a row
        self._to_skip = 0  # groups, where none was plain lately

    def close(self) -> None:
        """Read nothing any more."""
        if self._blocks is not None:
            self._blocks.close()

    def take(self, window: EventWindow) -> Iterator[CheckedGroups]:
        """Check the groups at the beginning of a window, and move it after them; nothing if there is no plain one."""
        if self._to_skip:
            self._to_skip -= 1
            return
        has_any = False
        for checked in self._take_here(window) if window.source.descriptor is None else self._take_far(window):
            has_any = True
            yield checked
        self._failures = 0 if has_any else min(self._failures + 1, FAILURES_MAX)
        self._to_skip = 2**self._failures - 1 if self._failures > 2 else 0

    def _take_here(self, window: EventWindow) -> Iterator[CheckedGroups]:
        """Those in the block that the window has: of a packed file, which only the window may read."""
        end, checked, _ = self._check(
            memoryview(window.block), window.position, window.block_offset, window.checksum_size
        )
        if checked is not None:
            window.position = end
            yield checked

    def _take_far(self, window: EventWindow) -> Iterator[CheckedGroups]:
        """Those that follow, as far as they are plain, in blocks of our own: the window's are made anew each time."""
        offset = window.offset
        if self._blocks is None or not self._block_offset <= offset <= self._block_offset + len(self._block):
            self._read(window, offset)
        while True:
            start = offset - self._block_offset
            end, checked, is_cut = self._check(self._block, start, self._block_offset, window.checksum_size)
            if checked is not None:
                offset = self._block_offset + end
                window.go_to(offset)
                yield checked
            if not is_cut:
                return
            if len(self._block) - end < LONG_BYTES:
                if not self._read(window, offset):
                    return
            elif (long := self._check_long(window, offset)) is not None:
                offset, checked = long
                window.go_to(offset)
                yield checked
            else:
                return

    def _check_long(self, window: EventWindow, offset: int) -> tuple[int, CheckedGroups] | None:
        """Where the group that begins in the block ends, read block by block, and what it is.

        None if it is for the reference, or the file has no more of it.
        """
        here, state, group = self._numbers, numbers(Field.SIZE), numbers(LongGroup.SIZE)
        pairs, head = self._pairs, self._head
        while True:
            here[Conversion.READ_AT], here[Conversion.SOURCE_OFFSET] = offset - self._block_offset, self._block_offset
            block: Any = self._block
            status = self._kernels.check_long_group(
                block, len(block), here, kernel_roles(), group, head, pairs.memory, state
            )
            offset = self._block_offset + here[Conversion.READ_AT]
            if status == Status.DONE:
                gtids = noted_gtids(pairs.rows(state[Field.PAIRS]))
                return offset, CheckedGroups(gtids, 1, state[Field.OUT])
            wants_all = len(block) - here[Conversion.READ_AT] > BLOCK_BYTES  # of an event that no block can have
            if status != Status.NEED_MORE or wants_all or not self._read(window, offset):
                return None

    def _read(self, window: EventWindow, offset: int) -> bool:
        """Have a block that begins at an offset, and whether it has more than the one before."""
        if self._blocks is None:
            source = window.source
            self._blocks = PieceReader(
                lambda at, target: (source.read_into(at, target), 0),
                block_bytes=BLOCK_BYTES,
                kept_max=BLOCK_BYTES,
                helper=self._helper,
            )
        found = self._blocks.at(offset)
        self._block, self._block_offset = found.data, offset
        return len(found.data) > found.kept

    def _check(
        self, block: Any, start: int, block_offset: int, checksum_bytes: int
    ) -> tuple[int, CheckedGroups | None, bool]:
        """Where the plain groups end that follow a place in a block, what they are, and whether one is cut there."""
        state, here = numbers(Field.SIZE), self._numbers
        here[Conversion.READ_AT], here[Conversion.SOURCE_OFFSET] = start, block_offset
        here[Conversion.CHECKSUM_BYTES] = checksum_bytes
        pairs = self._pairs
        is_cut = self._kernels.check_classic_groups(block, len(block), here, kernel_roles(), pairs.memory, state)
        gtids = noted_gtids(pairs.rows(state[Field.PAIRS]))
        count = state[Field.GROUPS]
        checked = CheckedGroups(gtids, count, state[Field.OUT]) if count else None
        return here[Conversion.READ_AT], checked, bool(is_cut)
