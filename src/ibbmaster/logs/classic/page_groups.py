"""Groups of `.ibb` files, which a kernel collects by the thousand; the reader takes the others by its `next_group`."""

from typing import Any

import numpy as np

from ibbmaster.kernel.calls import Collecting, FileRange, Kernels
from ibbmaster.kernel.fields import CHUNKS_PER_PAGE_MAX, ChunkColumn, Field, GroupColumn, last_gtids
from ibbmaster.logs.log.interface import PagedEventGroups
from ibbmaster.logs.log.log_range import WHOLE_FILE
from ibbmaster.position import NOWHERE, LogPosition
from ibbmaster.storage.disk.page_memory import page_memory
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE

BLOCK_PAGES = 64
GROUPS_MAX = 1 << 15


class PageGroups:
    """Collects groups up to a place in the log; `data` and `groups` (see GroupColumn) last until the next call."""

    def __init__(self, reader: PagedEventGroups, end: LogPosition, kernels: Kernels) -> None:
        self._reader = reader
        self._end = end
        self._kernels = kernels
        self._position, self._inside = NOWHERE, (-1, -1)
        self._state = np.zeros(Field.SIZE, dtype=np.int64)
        self._block: Any = np.frombuffer(page_memory(BLOCK_PAGES * PAGE_SIZE), dtype=np.uint8)
        self._rows = np.zeros((GROUPS_MAX, GroupColumn.COLUMNS), dtype=np.int64)
        self.data: Any = np.empty((BLOCK_PAGES + 1) * PAGE_SIZE, dtype=np.uint8)
        self.groups: Any = self._rows[:0]
        table = np.empty((CHUNKS_PER_PAGE_MAX, ChunkColumn.COLUMNS), dtype=np.int32)
        self._collecting = Collecting(self._state, table, self._rows, self.data)

    def collect(self) -> bool:
        """Collect what follows the reader's position; False if `next_group` must read the next group."""
        position, state = self._reader.position, self._state
        if position.offset <= PAGE_SIZE or position >= self._end:
            return False
        inside = self._inside if position == self._position else (-1, -1)
        name = format_file_name(position.file_no)
        size = self._reader.disk.read_into(name, position.page_no * PAGE_SIZE, memoryview(self._block)) or 0
        state[Field.GROUPS] = state[Field.OUT] = state[Field.PAGE] = 0
        state[Field.OFFSET] = position.page_offset
        state[Field.SKIP_TYPE], state[Field.NESTED_TYPE] = inside
        end = self._end.offset if position.file_no == self._end.file_no else WHOLE_FILE
        file_range = FileRange(position.file_no, position.page_no * PAGE_SIZE, end)
        self._kernels.collect_table(self._block, size // PAGE_SIZE, self._collecting, file_range)
        page_no = position.page_no + int(state[Field.PAGE])
        after = LogPosition.on_page(position.file_no, page_no, int(state[Field.OFFSET]))
        if after == position:
            return False
        self.groups = self._rows[: state[Field.GROUPS]]
        self._inside = int(state[Field.SKIP_TYPE]), int(state[Field.NESTED_TYPE])
        self._reader.continue_at(after, last_gtids(self.groups), is_inside_record=self._inside[0] >= 0)
        self._position = after
        return True
