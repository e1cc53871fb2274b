"""Work done before dumps would wait for it: kernels, the end of the log, and ways to places in it. A replica names its
position some statements before its dump: the way there is found meanwhile, for all dumps.
"""

import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator

import trio

from ibbmaster.errors import IbbMasterError
from ibbmaster.kernel.loading import load
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.primary.streaming.shared import SharedBlocks, import_makers
from ibbmaster.primary.streaming.source import BlockSource
from ibbmaster.replication.dump.request import DumpRequest
from .dump_opening import DumpStart

log = logging.getLogger(__name__)

WAIT_S = 2.0  # of a dump: kernels and NumPy load in a tenth of that on an idle machine
POSITION_VARIABLE = b"slave_connect_state"
REMEMBERED_MAX = 256  # statements: replicas that come back together say the same


class Preparation:
    """Loads the kernels, and finds the end of the log with them. A traditional file has to be walked for that: it
    `holds_dumps`. In `.ibb` files the way is short.
    """

    def __init__(
        self,
        engine: LogEngine,
        *,
        has_kernels: bool,
        holds_dumps: bool,
        walk: Callable[[], Generator[None, None, None]] | None = None,
    ) -> None:
        """`walk` runs in a worker thread while dumps begin; it may end after any of its steps."""
        self._engine = engine
        self._walk = walk
        self._has_kernels = has_kernels
        self._is_done = trio.Event()
        if not holds_dumps:
            self._is_done.set()

    async def run(self) -> None:
        if self._has_kernels:
            await trio.to_thread.run_sync(self._prepare, abandon_on_cancel=True)
        self._is_done.set()
        if self._has_kernels and self._walk is not None:
            try:
                await trio.to_thread.run_sync(_go_in_steps, self._walk)
            except Exception:  # dumps do without
                log.exception("what is known of the last file is not all that could be")

    async def wait(self) -> None:
        """Until a dump may begin."""
        if not self._is_done.is_set():
            with trio.move_on_after(WAIT_S):
                await self._is_done.wait()

    def _prepare(self) -> None:
        if load() is not None:
            import_makers()
            with contextlib.suppress(IbbMasterError):  # a dump reports it
                self._engine.state()


def _go_in_steps(walk: Callable[[], Generator[None, None, None]]) -> None:
    with contextlib.closing(walk()) as steps:
        for _ in steps:
            trio.from_thread.check_cancelled()


class LookAhead:
    def __init__(self, shared_blocks: SharedBlocks) -> None:
        self._shared_blocks = shared_blocks
        self._said: OrderedDict[int, None] = OrderedDict()

    def is_new(self, sql: bytes) -> bool:
        """Whether a statement announces a position, for the first time in a while."""
        if POSITION_VARIABLE not in sql:
            return False
        key = hash(sql)  # a collision costs only a look ahead
        is_new = key not in self._said
        self._said[key] = None
        self._said.move_to_end(key)
        if len(self._said) > REMEMBERED_MAX:
            self._said.popitem(last=False)
        return is_new

    def find_way(self, open_dump: Callable[[], DumpStart]) -> None:
        """As far as it is in memory; the dump reports errors."""
        with contextlib.suppress(IbbMasterError, BlockingIOError), self._begun(open_dump) as source:
            source.look_ahead()

    def walk_last_file(
        self, engine: LogEngine, open_dump: Callable[[DumpRequest], DumpStart]
    ) -> Generator[None, None, None]:
        """In a worker thread, in steps, find ways to places all over the last traditional file, if it is not packed."""
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
