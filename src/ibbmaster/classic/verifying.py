"""What is wrong with traditional files: each by itself, and whether each continues the one before."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING

from ibbmaster.classic.continuing import continued, missing_between
from ibbmaster.classic.following import FollowedFiles
from ibbmaster.classic.groups import ClassicFileReader
from ibbmaster.classic.head import FileHead
from ibbmaster.classic.series import ClassicFile, classic_file, has_head, index_lines, index_path, listed_name
from ibbmaster.classic.stored_file import file_state
from ibbmaster.classic.window import EventWindow
from ibbmaster.codec.printable import printable
from ibbmaster.errors import EventError, GapError, IbbMasterError, StoreError
from ibbmaster.event.group import EventGroup
from ibbmaster.event.rows.partial import FragmentChecks
from ibbmaster.event.split import EventSplitter
from ibbmaster.event.types import EventType
from ibbmaster.gtid import GtidState
from ibbmaster.kernel.loading import kernels
from ibbmaster.kernel.parts import KernelSet
from ibbmaster.log.fault import Fault, Severity, Totals
from ibbmaster.position import NamedPosition

if TYPE_CHECKING:
    from ibbmaster.classic.group_checks import GroupChecks

UNLISTED_MAX = 20  # files that an index names and that are not there, each a note


def verify_files(
    series: FollowedFiles, totals: Totals, on_bytes: Callable[[int], object], *, jobs: int = 1
) -> Iterator[Fault]:
    """The faults of all files, in order; `on_bytes` is called with the size of what was read.

    With more than one job another thread reads ahead.

    What was logged before a file is compared with what the files before it hold. After a fault
    it is known again at the next file, where only the number of the file shows a gap.
    """
    with contextlib.ExitStack() as stack:
        helper = None
        if jobs > 1:
            helper = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="ibbmaster-verify"))
        yield from _faults(series, totals, on_bytes, helper)


def _faults(
    series: FollowedFiles, totals: Totals, on_bytes: Callable[[int], object], helper: Executor | None
) -> Iterator[Fault]:
    before: ClassicFile | None = None
    version = ""  # of the server that wrote the file before
    state: GtidState | None = None  # at the end of the file before; None if that is not known
    for file in series.from_file(0):
        try:
            with (
                contextlib.closing(_Quickly(totals, on_bytes, helper)) as quickly,
                contextlib.closing(ClassicFileReader(file)) as reader,
            ):
                try:
                    if before is not None and state is not None:
                        state, notice = continued(before, state, file, reader.head)
                        if notice is not None:
                            yield Fault(problem=notice, severity=Severity.NOTE)
                        yield from _empty_files(before, file)
                        yield from _other_server(before, version, file, reader.head)
                    elif before is not None:
                        yield from _missing(before, file)
                except GapError as error:
                    yield Fault(problem=str(error))
                state = (reader.head.state or GtidState()).copy()
                version = reader.head.server_version
                for group in reader.groups(quickly.into(state)):
                    assert group.gtid is not None
                    state.log(group.gtid)
                    totals.groups += 1
                    problem = _wrong_fragments(group, on_bytes)
                    if problem is not None:
                        place = NamedPosition.in_file(group.start, file.name)
                        yield Fault(problem=f"{place}: group {group.gtid}: {problem}")
                if reader.notice is not None:
                    yield Fault(problem=reader.notice, severity=Severity.NOTE)
        except IbbMasterError as error:
            yield Fault(problem=str(error))
            state = None
        totals.files += 1
        before = file
    yield from _files_elsewhere(series)


class _Quickly:
    """Checks and counts plain groups of a file, if the kernels are ready."""

    def __init__(self, totals: Totals, on_bytes: Callable[[int], object], helper: Executor | None) -> None:
        self._totals = totals
        self._on_bytes = on_bytes
        self._checks: GroupChecks | None = None
        if (ready := kernels(KernelSet.VERIFY)) is not None:
            from ibbmaster.classic.group_checks import GroupChecks

            self._checks = GroupChecks(ready, helper)

    def close(self) -> None:
        if self._checks is not None:
            self._checks.close()

    def into(self, state: GtidState) -> Callable[[EventWindow], bool] | None:
        """What takes groups from a window and logs them; returns whether there were any."""
        if self._checks is None:
            return None
        checks = self._checks

        def take(window: EventWindow) -> bool:
            has_any = False
            for checked in checks.take(window):
                has_any = True
                for gtid in checked.gtids:
                    state.log(gtid)
                self._totals.groups += checked.groups
                self._on_bytes(checked.event_bytes)
            return has_any

        return take


def _empty_files(before: ClassicFile, file: ClassicFile) -> Iterator[Fault]:
    """Files whose numbers are missing, although no group is."""
    if _is_gap(before, file):
        problem = f"files between {before.name} and {file.name} are not here; no event group is missing"
        yield Fault(problem=f"{file.name}: {problem}", severity=Severity.NOTE)


def _other_server(before: ClassicFile, version: str, file: ClassicFile, head: FileHead) -> Iterator[Fault]:
    """A file of another version, which only a server that was started writes."""
    if version and head.server_version != version and not head.is_restart:
        yield Fault(
            problem=f"{file.name}: MariaDB {printable(head.server_version)} wrote it, and {printable(version)} "
            f"{before.name}, without a start of a server between them: they are not of one binlog"
        )


def _files_elsewhere(series: FollowedFiles) -> Iterator[Fault]:
    """Files that an index beside these names, or that must come after the last one."""
    files, last = series.from_file(0), series.last
    yield from _not_begun(last)
    if not series.takes_more:
        return
    unlisted = _named_in_index(last) - {file.name for file in files}
    for name in sorted(unlisted)[:UNLISTED_MAX]:
        problem = f"{index_path(last).name} names {printable(name)}, which is not here"
        yield Fault(problem=problem, severity=Severity.NOTE)
    with contextlib.suppress(IbbMasterError):
        if not unlisted and file_state(last).end is EventType.ROTATE:
            problem = f"{last.name}: its server went on in another file after it, which is not here"
            yield Fault(problem=problem, severity=Severity.NOTE)


def _not_begun(last: ClassicFile) -> Iterator[Fault]:
    """The file after the last one, where it has not even a whole head."""
    if last.number is None:
        return
    base, _, digits = last.name.rpartition(".")
    with contextlib.suppress(StoreError):
        after = classic_file(last.path.with_name(f"{base}.{last.number + 1:0{len(digits)}}"))
        if not has_head(after):
            problem = f"{after.name}: {after.size_bytes} bytes, not even a whole head: left out"
            yield Fault(problem=problem, severity=Severity.NOTE)


def _named_in_index(last: ClassicFile) -> set[str]:
    """The names in the index beside a file; none if there is no index that can be read."""
    try:
        return {listed_name(line) for line in index_lines(index_path(last))}
    except StoreError:
        return set()


def _wrong_fragments(group: EventGroup, on_bytes: Callable[[int], object]) -> str | None:
    """Read a group to its end; what is wrong with row events in fragments there."""
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


def _missing(before: ClassicFile, file: ClassicFile) -> Iterator[Fault]:
    """A gap in the numbers of two files, where nothing else shows it."""
    if _is_gap(before, file):
        yield Fault(problem=f"{file.name}: {missing_between(before, file)}")


def _is_gap(before: ClassicFile, file: ClassicFile) -> bool:
    return before.number is not None and file.number is not None and file.number > before.number + 1
