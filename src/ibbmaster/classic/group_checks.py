"""Plain groups of traditional files, checked by a kernel, as many as a window has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ibbmaster.classic.roles import kernel_roles
from ibbmaster.classic.window import EventWindow
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import PAIR_COLUMNS, Conversion, Field, noted_gtids

PAIRS_MAX = 256
FAILURES_MAX = 6


class CheckedGroups(NamedTuple):
    """What was checked: the last GTID of each domain and server, how many groups, and bytes of their events."""

    gtids: tuple[Gtid, ...]
    groups: int
    event_bytes: int


class GroupChecks:
    """Takes groups from a window on a traditional file in which all is right. `ClassicFileReader` reads the others."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._numbers = np.zeros(Conversion.SIZE, dtype=np.int64)
        self._pairs = np.zeros((PAIRS_MAX, PAIR_COLUMNS), dtype=np.int64)
        self._failures = 0  # in a row
        self._to_skip = 0  # groups, where none was plain lately

    def take(self, window: EventWindow) -> CheckedGroups | None:
        """Check the groups at the beginning of a window, and move it after them; None if there is no plain one."""
        if self._to_skip:
            self._to_skip -= 1
            return None
        numbers, state = self._numbers, np.zeros(int(Field.SIZE), dtype=np.int64)
        numbers[Conversion.READ_AT], numbers[Conversion.SOURCE_OFFSET] = window.position, window.block_offset
        numbers[Conversion.CHECKSUM_BYTES] = window.checksum_size
        source = np.frombuffer(window.block, dtype=np.uint8)
        self._kernels.check_classic_groups(source, len(source), numbers, kernel_roles(), self._pairs, state)
        count = int(state[Field.GROUPS])
        self._failures = 0 if count else min(self._failures + 1, FAILURES_MAX)
        self._to_skip = 2**self._failures - 1 if self._failures > 2 else 0
        if not count:
            return None
        window.position = int(numbers[Conversion.READ_AT])
        return CheckedGroups(noted_gtids(self._pairs, int(state[Field.PAIRS])), count, int(state[Field.OUT]))
