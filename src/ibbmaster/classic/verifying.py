"""What is wrong with traditional files: each by itself, and whether each continues the one before."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from ibbmaster.classic.continuing import continued, missing_between
from ibbmaster.classic.following import FollowedFiles
from ibbmaster.classic.groups import ClassicFileReader
from ibbmaster.classic.series import ClassicFile
from ibbmaster.errors import EventError, GapError, IbbMasterError
from ibbmaster.event.group import EventGroup
from ibbmaster.event.rows.partial import FragmentChecks
from ibbmaster.event.split import EventSplitter
from ibbmaster.gtid import GtidState
from ibbmaster.log.fault import Fault, Severity, Totals
from ibbmaster.position import NamedPosition


def verify_files(series: FollowedFiles, totals: Totals, on_bytes: Callable[[int], object]) -> Iterator[Fault]:
    """The faults of all files, in order; `on_bytes` is called with the size of what was read.

    What was logged before a file is compared with what the files before it hold. After a fault
    it is known again at the next file, where only the number of the file shows a gap.
    """
    before: ClassicFile | None = None
    state: GtidState | None = None  # at the end of the file before; None if that is not known
    for file in series.from_file(0):
        try:
            with contextlib.closing(ClassicFileReader(file)) as reader:
                try:
                    if before is not None and state is not None:
                        state, notice = continued(before, state, file, reader.head)
                        if notice is not None:
                            yield Fault(problem=notice, severity=Severity.NOTE)
                    elif before is not None:
                        yield from _missing(before, file)
                except GapError as error:
                    yield Fault(problem=str(error))
                state = (reader.head.state or GtidState()).copy()
                for group in reader.groups():
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
    if before.number is not None and file.number is not None and file.number > before.number + 1:
        yield Fault(problem=f"{file.name}: {missing_between(before, file)}")
