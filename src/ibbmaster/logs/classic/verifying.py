"""The faults of traditional files."""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from ibbmaster.errors import EventError, GapError, IbbMasterError, StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.kernel.calls import Framing, Kernels
from ibbmaster.kernel.fields import PAIR_COLUMNS, Field, Status, noted_gtids
from ibbmaster.kernel.loading import kernels
from ibbmaster.kernel.plain_memory import NOTHING, RowTable, numbers, scratch
from ibbmaster.logs.log.fault import Fault, Totals
from ibbmaster.position import NamedPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.rows.partial import FragmentChecks
from ibbmaster.replication.event.split import EventSplitter
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.codec.printable import printable
from ibbmaster.storage.disk.reading_ahead import PieceReader
from .following import FollowedFiles
from .groups import ClassicFileReader
from .head import FileHead, continued, is_begun, is_gap, missing_between
from .roles import kernel_roles
from .series import ClassicFile, classic_file, index_lines, index_path, listed_name
from .stored_file import file_state
from .window import EventWindow

PAIRS_MAX = 256
FAILURES_MAX = 6
BLOCK_BYTES = 2 << 20
LONG_BYTES = BLOCK_BYTES // 8  # of a group's begin, to be checked only once
UNLISTED_MAX = 20  # of the missing files that an index names


class CheckedGroups(NamedTuple):
    """The last GTID of each (domain, server) pair, and the checked groups and event bytes."""

    gtids: tuple[Gtid, ...]
    groups: int
    event_bytes: int


class GroupChecks:
    def __init__(self, kernels: Kernels, helper: Executor | None) -> None:
        self._kernels = kernels
        self._helper = helper
        self._pairs = RowTable(PAIRS_MAX, PAIR_COLUMNS)
        self._blocks: PieceReader | None = None
        self._block, self._block_offset = memoryview(b""), 0
        self._failures = 0
        self._to_skip = 0

    def close(self) -> None:
        if self._blocks is not None:
            self._blocks.close()

    def take(self, window: EventWindow) -> Iterator[CheckedGroups]:
        """Check the groups at the beginning of a window, and move it after them; nothing unless the first is plain."""
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
        """In the block of the window, as only that may read a packed file."""
        end, checked, _ = self._check(
            memoryview(window.block), window.position, window.block_offset, window.checksum_size
        )
        if checked is not None:
            window.position = end
            yield checked

    def _take_far(self, window: EventWindow) -> Iterator[CheckedGroups]:
        """The window would make a new block each time."""
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
        """None: it is for the reference, or the file ends in it."""
        framing = self._framing(window.checksum_size, in_parts=True)
        while True:
            block = self._block
            end, checked, status = self._take_groups(block, offset - self._block_offset, self._block_offset, framing)
            offset = self._block_offset + end
            if status == Status.DONE:
                return offset, checked
            wants_all = len(block) - end > BLOCK_BYTES  # for an event that no block can hold
            if status != Status.NEED_MORE or wants_all or not self._read(window, offset):
                return None

    def _read(self, window: EventWindow, offset: int) -> bool:
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
        framing = self._framing(checksum_bytes)
        end, checked, status = self._take_groups(block, start, block_offset, framing)
        return end, checked if checked.groups else None, status == Status.NEED_MORE

    def _framing(self, checksum_bytes: int, *, in_parts: bool = False) -> Framing:
        state = numbers(Field.SIZE)
        state[Field.PASSES_OVER], state[Field.CHECKSUM_BYTES], state[Field.IN_PARTS] = 1, checksum_bytes, in_parts
        state[Field.FILE_SIZE] = 1 << 62  # the end of the file is seen where it is read
        return Framing(state, NOTHING, NOTHING, scratch(8), self._pairs.memory, NOTHING, NOTHING, NOTHING)

    def _take_groups(
        self, block: Any, start: int, block_offset: int, framing: Framing
    ) -> tuple[int, CheckedGroups, int]:
        state = framing.state
        state[Field.READ_AT], state[Field.SOURCE_OFFSET] = start, block_offset
        status = self._kernels.check_groups(block, framing, kernel_roles(has_fragments=False))
        gtids = noted_gtids(self._pairs.rows(state[Field.PAIRS]))
        checked = CheckedGroups(gtids, state[Field.GROUPS], state[Field.POSITION])
        return state[Field.READ_AT], checked, status


def verify_files(
    series: FollowedFiles, totals: Totals, on_bytes: Callable[[int], object], *, jobs: int = 1
) -> Iterator[Fault]:
    """Calls `on_bytes` with sizes of what was read; with several jobs a thread reads ahead. The state at the head of a
    file must be that at the end of the files before it; after a fault only file numbers can show a gap."""
    if jobs < 2:
        yield from _faults(series, totals, on_bytes, None)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="ibbmaster-verify") as helper:
        yield from _faults(series, totals, on_bytes, helper)


def _faults(
    series: FollowedFiles, totals: Totals, on_bytes: Callable[[int], object], helper: Executor | None
) -> Iterator[Fault]:
    before: ClassicFile | None = None
    version = ""  # of the file before
    state: GtidState | None = None  # at its end, if known
    for file in series.from_file(0):
        try:
            with contextlib.ExitStack() as stack:
                checks = None if (ready := kernels()) is None else GroupChecks(ready, helper)
                if checks is not None:
                    stack.callback(checks.close)
                reader = stack.enter_context(contextlib.closing(ClassicFileReader(file)))
                try:
                    if before is not None and state is not None:
                        state, notice = continued(before, state, file, reader.head)
                        if notice is not None:
                            yield Fault(problem=notice, is_damage=False)
                        yield from _empty_files(before, file)
                        yield from _other_server(before, version, file, reader.head)
                    elif before is not None and is_gap(before, file):
                        yield Fault(problem=f"{file.name}: {missing_between(before, file)}")
                except GapError as error:
                    yield Fault(problem=str(error))
                state = (reader.head.state or GtidState()).copy()
                version = reader.head.server_version
                take = None if checks is None else partial(_take, checks, state, totals, on_bytes)
                for group in reader.groups(take):
                    assert group.gtid is not None
                    state.log(group.gtid)
                    totals.groups += 1
                    problem = _wrong_fragments(group, on_bytes)
                    if problem is not None:
                        place = NamedPosition.in_file(group.start, file.name)
                        yield Fault(problem=f"{place}: group {group.gtid}: {problem}")
                if reader.notice is not None:
                    yield Fault(problem=reader.notice, is_damage=False)
        except IbbMasterError as error:
            yield Fault(problem=str(error))
            state = None
        totals.files += 1
        before = file
    yield from _files_elsewhere(series)


def _take(
    checks: GroupChecks, state: GtidState, totals: Totals, on_bytes: Callable[[int], object], window: EventWindow
) -> bool:
    has_any = False
    for checked in checks.take(window):
        has_any = True
        for gtid in checked.gtids:
            state.log(gtid)
        totals.groups += checked.groups
        on_bytes(checked.event_bytes)
    return has_any


def _empty_files(before: ClassicFile, file: ClassicFile) -> Iterator[Fault]:
    if is_gap(before, file):
        problem = f"files between {before.name} and {file.name} are not here; no event group is missing"
        yield Fault(problem=f"{file.name}: {problem}", is_damage=False)


def _other_server(before: ClassicFile, version: str, file: ClassicFile, head: FileHead) -> Iterator[Fault]:
    is_known = bool(version) and before.series_name == file.series_name
    if is_known and head.server_version != version and not head.is_restart:
        yield Fault(
            problem=f"{file.name}: MariaDB {printable(head.server_version)} wrote it, and {printable(version)} "
            f"{before.name}, without a start of a server between them: they are not of one binlog"
        )


def _files_elsewhere(series: FollowedFiles) -> Iterator[Fault]:
    files, last = series.from_file(0), series.last
    yield from _not_begun(last)
    if not series.takes_more:
        return
    unlisted = _named_in_index(last) - {file.own_name for file in files}
    for name in sorted(unlisted)[:UNLISTED_MAX]:
        problem = f"{index_path(last).name} names {printable(name)}, which is not here"
        yield Fault(problem=problem, is_damage=False)
    with contextlib.suppress(IbbMasterError):
        if not unlisted and file_state(last).end is EventType.ROTATE:
            problem = f"{last.name}: its server went on in another file after it, which is not here"
            yield Fault(problem=problem, is_damage=False)


def _not_begun(last: ClassicFile) -> Iterator[Fault]:
    if last.number is None:
        return
    base, _, digits = last.own_name.rpartition(".")
    with contextlib.suppress(StoreError):
        after = classic_file(last.path.with_name(f"{base}.{last.number + 1:0{len(digits)}}"))
        if not is_begun(after):
            problem = f"{after.name}: {after.size_bytes} bytes, not even a whole head: left out"
            yield Fault(problem=problem, is_damage=False)


def _named_in_index(last: ClassicFile) -> set[str]:
    try:
        return {listed_name(line) for line in index_lines(index_path(last))}
    except StoreError:
        return set()


def _wrong_fragments(group: EventGroup, on_bytes: Callable[[int], object]) -> str | None:
    events, fragments, problem = EventSplitter(), FragmentChecks(), None
    for piece in group.body:
        on_bytes(len(piece))
        if problem is not None:
            continue
        try:
            for part in events.feed(piece):
                fragments.take(part)
        except EventError as error:
            problem = str(error)
    if problem is None:
        try:
            fragments.finish()
        except EventError as error:
            problem = str(error)
    return problem
