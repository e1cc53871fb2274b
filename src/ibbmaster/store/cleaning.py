"""Forgetting what a recovery rolled back, little by little, while the store serves.

The decision is durable before; what is left is to go through what the transaction wrote
out of band, to tell how much of each file is garbage, and then to let go of the files.
That takes time in proportion to the transaction, so nobody waits for it. It can be
interrupted anywhere and is begun anew by the next start.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator

from ibbmaster.disk.interface import ReadDisk
from ibbmaster.errors import IbbMasterError
from ibbmaster.log.out_of_band import FoundNode, OutOfBandReader
from ibbmaster.store.redo_record import XaEntry

log = logging.getLogger(__name__)

NODES_PER_STEP = 8  # a few milliseconds


class Cleaning:
    """`next_entry` gives a transaction that was rolled back and is not forgotten yet, `finished` forgets it.

    `garbage` counts the records of each file, by its number, that no group refers to.
    """

    def __init__(
        self,
        disk: ReadDisk,
        next_entry: Callable[[], XaEntry | None],
        finished: Callable[[XaEntry], None],
    ) -> None:
        self._disk = disk
        self._next_entry = next_entry
        self._finished = finished
        self._entry: XaEntry | None = None
        self._nodes: Iterator[FoundNode] = iter(())
        self.garbage: Counter[int] = Counter()

    def step(self) -> bool:
        """Do a little; whether there is more to do.

        Raises:
            StoreError: the log cannot be written.
        """
        if self._entry is None:
            self._entry = self._next_entry()
            if self._entry is None:
                return False
            stream = self._entry.stream
            self._nodes = iter(()) if stream is None else OutOfBandReader(self._disk).nodes(stream)
        try:
            for _ in range(NODES_PER_STEP):
                node = next(self._nodes, None)
                if node is None:
                    break
                self.garbage[node.position.file_no] += 1
            else:
                return True
        except IbbMasterError as error:  # garbage that cannot be read is garbage all the same
            log.warning("cannot go through what a transaction left behind: %s", error)
        self._finished(self._entry)
        self._entry = None
        return True
