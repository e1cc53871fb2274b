"""A kernel frames or skips groups of a traditional file, one window at a time."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Framing
from ibbmaster.kernel.fields import PAIR_COLUMNS, Field, Status, noted_gtids
from ibbmaster.kernel.loading import kernels
from ibbmaster.kernel.plain_memory import NOTHING, RowTable, numbers, rows_in, scratch
from ibbmaster.position import LogPosition
from .roles import kernel_roles

if TYPE_CHECKING:
    from ibbmaster.kernel.calls import Kernels
    from .binlog import ClassicGroups

WINDOW_BYTES = 1 << 20
SKIPPED_BYTES = (1 << 14, 1 << 17, WINDOW_BYTES)  # at first few, as skipping may end there
PAIRS_MAX = 64
ALL = NOTHING  # up to no GTID
PART_FIELDS = [  # with which the kernel continues inside a group; `ClassicPart` needs this order
    Field.KIND,
    Field.IS_LARGE,
    Field.IS_DROPPED,
    Field.PACKET_LEFT,
    Field.EVENT_LEFT,
    Field.EMPTY_TAIL,
    Field.IS_LAST,
    Field.PAYLOAD_LEFT,
    Field.CHECKSUM,
]


class FileFraming:
    """Calls of a kernel from an offset of a file on; it skips groups unless `out` of `framing` has room. `offset`: of
    the next group, or the next byte of one in parts. Between groups it stops at `file_end`, if not 0."""

    file_end = 0

    def __init__(self, groups: ClassicGroups, kernels: Kernels, window: Any, framing: Framing, offset: int) -> None:
        self.state = state = framing.state
        state[Field.CHECKSUM_BYTES] = groups.window.checksum_size
        state[Field.FILE_SIZE] = groups.window.source.size_bytes
        state[Field.PASSES_OVER] = not len(framing.out)
        self.offset = offset
        self.framing = framing
        self._groups = groups
        self._kernels = kernels
        self._window = window
        self._begin = self.place
        self._status = int(Status.NEED_MORE)

    @property
    def place(self) -> tuple[int, tuple[int, ...]]:
        """Offset, and the fields of a part; none between groups."""
        return self.offset, tuple(self.state[place] for place in PART_FIELDS) if self.state[Field.KIND] else ()

    @property
    def has_advanced(self) -> bool:
        return self.place != self._begin

    @property
    def gtids(self) -> tuple[Gtid, ...]:
        return noted_gtids(rows_in(self.framing.pairs, self.state[Field.PAIRS]))

    @property
    def is_in_order(self) -> bool:
        return not self.state[Field.STEPS_BACK]

    @property
    def is_in_parts(self) -> bool:
        return bool(self.state[Field.IN_PARTS])

    def go_in_parts(self) -> None:
        self.state[Field.IN_PARTS] = 1

    def stay(self) -> None:
        self.offset = self._begin[0]
        for place, value in zip(PART_FIELDS, self._begin[1] or repeat(0), strict=False):
            self.state[place] = value

    @property
    def is_at_window_end(self) -> bool:
        return self._status == Status.NEED_MORE

    @property
    def is_stopped(self) -> bool:
        """The last call ended before something wrong, or undecided."""
        return self._status == Status.FALLBACK

    def advance(self, size: int, skips: Any = ALL) -> bool:
        """Frame from `size` bytes, or a longer group; returns whether that is too long. Raises ClassicFormatError."""
        before, state = self.place, self.state
        while True:
            found = self._groups.read_into(self.offset, memoryview(self._window)[:size])
            if self.file_end and not self.is_in_parts:
                found = max(0, min(found, self.file_end - self.offset))
            state[Field.READ_AT], state[Field.SOURCE_OFFSET] = 0, self.offset
            status = self._status = self._kernels.frame_classic(
                self._window, found, self.framing, kernel_roles(), skips
            )
            self.offset += int(state[Field.READ_AT])
            if self.place != before:
                return False
            if status != Status.NEED_MORE or found < size or size == WINDOW_BYTES:
                return status == Status.FULL or (status == Status.NEED_MORE and found == WINDOW_BYTES)
            size = WINDOW_BYTES

    def skip(self, skips: Any = ALL) -> None:
        """Skip the groups in a window, at first a small one, or one longer group. Raises as `advance`."""
        if self.advance(SKIPPED_BYTES[0], skips):
            self.skip_group(skips)
            return
        if not self.has_advanced:
            return
        for size in SKIPPED_BYTES[1:]:
            if not self.is_at_window_end:
                return
            self.advance(size, skips)

    def skip_group(self, skips: Any = ALL) -> None:
        self.go_in_parts()
        while True:
            before = self.place
            self.advance(WINDOW_BYTES, skips)
            if self.place == before:
                self.stay()
                return
            if not self.state[Field.KIND]:
                return


def skip_groups(groups: ClassicGroups, kernels: Kernels) -> None:
    """Skip groups in a file, up to one that a kernel leaves to the reference. Raises ClassicFormatError."""
    window, pairs, prefix = scratch(WINDOW_BYTES), RowTable(PAIRS_MAX, PAIR_COLUMNS).memory, scratch(8)
    while groups.is_in_file:
        state = numbers(Field.SIZE)
        buffers = Framing(state, NOTHING, NOTHING, prefix, pairs, NOTHING, NOTHING, NOTHING)
        framing = FileFraming(groups, kernels, window, buffers, groups.position.offset)
        framing.skip()
        if not framing.has_advanced:
            return
        groups.continue_at(LogPosition(groups.position.file_no, framing.offset), framing.gtids)


def read_all(groups: ClassicGroups) -> None:
    while (group := groups.next_group()) is not None:
        ready = kernels()
        if ready is not None and group.gtid is not None:
            skip_groups(groups, ready)
