"""Groups of traditional files that nobody wants to see one by one, only what they log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ibbmaster.classic.groups import STANDALONE_ROLES, TRANSACTION_ROLES
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.fields import PAIR_COLUMNS, Field, noted_gtids
from ibbmaster.position import LogPosition

if TYPE_CHECKING:
    from ibbmaster.classic.engine import ClassicGroups
    from ibbmaster.kernel.calls import Kernels

WINDOW_BYTES = 1 << 20
PAIRS_MAX = 64


class Passer:
    """Goes over whole groups of a file, verified, without a look at each."""

    def __init__(self, kernels: Kernels) -> None:
        import numpy as np

        from ibbmaster.kernel.classic_framing import ClassicField

        self._fields = ClassicField
        self._frame = kernels.frame_classic
        self._state = np.zeros(ClassicField.SIZE, dtype=np.int64)
        self._roles = (
            np.frombuffer(bytearray(TRANSACTION_ROLES), dtype=np.uint8),
            np.frombuffer(bytearray(STANDALONE_ROLES), dtype=np.uint8),
        )
        self._window: Any = np.empty(WINDOW_BYTES, dtype=np.uint8)
        self._pairs = np.zeros((PAIRS_MAX, PAIR_COLUMNS), dtype=np.int64)
        self._none = np.zeros((0, 3), dtype=np.int64)
        self._prefix = np.zeros(8, dtype=np.uint8)

    def pass_over(self, groups: ClassicGroups) -> Iterable[Gtid]:
        """Skip groups; returns the last GTID of each (domain, server) pair, none where a group has to be read.

        Raises:
            ClassicFormatError: packed data are damaged.
        """
        fields, state, position = self._fields, self._state, groups.position
        if not groups.is_in_file:
            return ()
        state[:] = 0
        state[fields.PASSES_OVER], state[fields.SOURCE_OFFSET] = 1, position.offset
        state[fields.CHECKSUM_BYTES] = groups.checksum_size
        size = groups.read_into(position.offset, memoryview(self._window))
        nothing = self._window[:0]
        self._frame(self._window, size, state, self._prefix, *self._roles, self._pairs, nothing, self._none, self._none)
        gtids = noted_gtids(self._pairs, state[Field.PAIRS])
        groups.pass_over(LogPosition(position.file_no, position.offset + int(state[fields.READ_AT])), gtids)
        return gtids
