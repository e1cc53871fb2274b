"""Finds the way to where a dump will begin while its replica still talks, so that the first event comes sooner.

A replica says where it is some statements before it asks for a dump. What is found is kept by the log, for all dumps.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator

from ibbmaster.dump.request import DumpRequest
from ibbmaster.errors import IbbMasterError
from ibbmaster.log.interface import LogEngine
from ibbmaster.server.dump_opening import DumpStart
from ibbmaster.streaming.shared import SharedBlocks
from ibbmaster.streaming.source import BlockSource

POSITION_VARIABLE = b"slave_connect_state"
REMEMBERED_MAX = 256  # statements: many replicas that come back at once say the same


class LookAhead:
    """That of one primary."""

    def __init__(self, shared_blocks: SharedBlocks) -> None:
        self._shared_blocks = shared_blocks
        self._said: OrderedDict[int, None] = OrderedDict()

    def is_new(self, sql: bytes) -> bool:
        """Whether a statement says where a dump is to begin, and none did lately that was the same."""
        if POSITION_VARIABLE not in sql:
            return False
        key = hash(sql)  # of a statement that may be long; another one with the same is only not looked for
        is_new = key not in self._said
        self._said[key] = None
        self._said.move_to_end(key)
        if len(self._said) > REMEMBERED_MAX:
            self._said.popitem(last=False)
        return is_new

    def find_way(self, open_dump: Callable[[], DumpStart]) -> None:
        """Find it as far as it is in memory; a dump meets the same errors, and reports them."""
        with contextlib.suppress(IbbMasterError, BlockingIOError), self._begun(open_dump) as source:
            source.look_ahead()

    def walk_last_file(
        self, engine: LogEngine, open_dump: Callable[[DumpRequest], DumpStart]
    ) -> Generator[None, None, None]:
        """Find the ways to places all over a traditional file, of which nothing else is known, in steps.

        Not of one that is packed, which takes long. Reads the file: for a worker thread.
        """
        with contextlib.suppress(IbbMasterError):
            if engine.files()[-1].is_packed:
                return
            request = DumpRequest(replica_server_id=0, position=engine.state().position(), knows_checksums=True)
            with self._begun(lambda: open_dump(request)) as source:
                yield from source.walk()

    @contextlib.contextmanager
    def _begun(self, open_dump: Callable[[], DumpStart]) -> Iterator[BlockSource]:
        opened = open_dump()
        with contextlib.closing(BlockSource(opened.groups, opened.dump, self._shared_blocks)) as source:
            opened.dump.start()
            yield source
