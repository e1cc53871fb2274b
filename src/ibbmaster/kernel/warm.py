"""All kernels, compiled: what the rest of the program calls."""

from __future__ import annotations

import numpy as np

from ibbmaster.kernel.crc32c import PAGE, first_bad_page
from ibbmaster.kernel.framing import Field, frame_bytes, frame_groups, frame_record, renumber
from ibbmaster.kernel.pump import Progress, pump, pump_nodes

__all__ = ["first_bad_page", "frame_bytes", "frame_groups", "frame_record", "pump", "pump_nodes", "renumber", "warm_up"]


def warm_up() -> None:
    """Call each kernel once, so that none is compiled while somebody waits."""
    block = np.zeros(PAGE, dtype=np.uint8)
    state = np.zeros(int(Field.SIZE), dtype=np.int64)
    state[Field.SKIP_TYPE] = state[Field.NESTED_TYPE] = -1
    state[Field.PREFIX_SIZE] = 1
    head, prefix = np.zeros(32, dtype=np.uint8), np.zeros(3, dtype=np.uint8)
    pairs = np.zeros((4, 3), dtype=np.int64)
    out = np.zeros(256, dtype=np.uint8)
    first_bad_page(block, 1)
    frame_groups(block, 1, state, head, prefix, pairs, out.copy(), out)
    frame_bytes(block, 0, 0, state, head, prefix, out)
    frame_record(block, 0, state, head, prefix, out)
    renumber(out, 0, 0, 0)
    progress = np.zeros(int(Progress.SIZE), dtype=np.int64)
    wanted = np.zeros(1, dtype=np.int64)
    pump(-1, -1, progress, block, state, head, prefix, pairs, out.copy(), out, wanted)
    pump_nodes(-1, -1, progress, np.zeros((0, 2), dtype=np.int64), block, state, head, prefix, out, wanted)
