"""A traditional binlog of many files as one stream of event groups.

The GTID_LIST of each file must name what the files before it hold: so nothing is missing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from typing import Unpack

from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.log.interface import ReadPart
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.types import EventType
from .groups import CUT_SHORT, ClassicFileReader
from .head import continued, head_of
from .series import ClassicFile
from .window import EventWindow


class ClassicReader:
    """Reads the event groups of traditional files in order; first the head of each, to find an unreadable one before
    any work, unless `initial_state`, the GTID state before all, is known. `state` is that after the last group.
    `notices` are for users; `restart_count` counts files that a server start began, but the first. Raises as
    `read_head`."""

    def __init__(self, files: Sequence[ClassicFile], initial_state: GtidState | None = None) -> None:
        self.files = files
        self.notices: list[str] = []
        self.restart_count = 0
        self._bytes_read = 0  # of the files before the current one
        self.current: ClassicFileReader | None = None
        if initial_state is None:
            states = [head_of(file).state for file in files]
            initial_state = states[0] or GtidState()
        self.initial_state, self.state = initial_state, initial_state.copy()

    @property
    def file_names(self) -> list[str]:
        return [file.name for file in self.files]

    def place(self, position: LogPosition) -> str:
        return f"{self.files[position.file_no].name} offset {position.offset}"

    def from_file(self, file_no: int) -> ClassicReader:
        """A reader from this file on; of all files, if its head does not have the state."""
        state = head_of(self.files[file_no]).state
        return ClassicReader(self.files if state is None else self.files[file_no:], state)

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def bytes_read(self) -> int:
        return self._bytes_read + (self.current.window.source.bytes_read if self.current else 0)

    def groups(self, take: Callable[[EventWindow], tuple[Gtid, ...]] | None = None) -> Generator[EventGroup]:
        """Yield every event group, once. Each body must be read, or dropped, before the next group. Between groups
        `take` may read whole groups itself by moving the window; it returns the last GTID of each (domain, server)
        pair. Raises ClassicFormatError: a file is damaged, ends inside a group, or does not continue the one before."""

        def take_and_log(window: EventWindow) -> bool:
            taken = take(window) if take is not None else ()
            for gtid in taken:
                self.state.log(gtid)
            return bool(taken)

        before: ClassicFile | None = None
        for file in self.files:
            reader = self.current = ClassicFileReader(file)
            try:
                if before is not None:
                    self.state, notice = continued(before, self.state, file, reader.head)
                    self.notices += [] if notice is None else [notice]
                    self.restart_count += reader.head.is_restart
                for group in reader.groups(take and take_and_log):
                    assert group.gtid is not None
                    self.state.log(group.gtid)
                    yield group
                if reader.notice:
                    self.notices.append(reader.notice)
            finally:
                self._bytes_read += reader.window.source.bytes_read
                self.current = None
                reader.close()
            before = file


class ClassicGroups:
    def __init__(self, reader: ClassicReader, position: LogPosition) -> None:
        self._reader = reader
        self._groups = reader.groups()
        self.position = position

    def close(self) -> None:
        self._groups.close()

    @property
    def state(self) -> GtidState:
        return self._reader.state

    def next_group(self) -> EventGroup | None:
        group = next(self._groups, None)
        if group is not None:
            self.position = group.end
        return group

    # For kernels, which read groups from the file of the last group.

    @property
    def is_in_file(self) -> bool:
        """Whether a file is open, and read up to `position`; not after a group that came in pieces."""
        file = self._open_file
        return file is not None and file.is_at_group_end and file.window.offset == self.position.offset

    is_stored = False  # as in a file, also those outside of groups

    @property
    def log_identity(self) -> Hashable:
        return "traditional"

    @property
    def is_cut(self) -> bool:
        return not self._file.is_at_group_end

    @property
    def window(self) -> EventWindow:
        return self._file.window

    def read_into(self, offset: int, target: memoryview) -> int:
        return self.window.source.read_into(offset, target)

    @contextlib.contextmanager
    def reading(self, *, only_cached: bool) -> Iterator[None]:
        """While `only_cached`, reading the file raises BlockingIOError where it would have to wait."""
        source = self.window.source
        source.only_cached = only_cached
        try:
            yield
        finally:
            source.only_cached = False

    @property
    def is_before_other(self) -> bool:
        return self.window.is_known_before_other_than(EventType.GTID)

    def check_log(self) -> None: ...

    def continue_at(self, position: LogPosition, gtids: Iterable[Gtid], **_: Unpack[ReadPart]) -> None:
        self._file.continue_at(position.offset)
        self.log(gtids)
        self.position = position

    def log(self, gtids: Iterable[Gtid]) -> None:
        for gtid in gtids:
            self.state.log(gtid)

    @contextlib.contextmanager
    def group_at(self, position: LogPosition) -> Iterator[EventGroup]:
        """The group at a position of the same file, by another reader. Raises ClassicFormatError: it is damaged."""
        with contextlib.closing(ClassicFileReader(self._file.file)) as reader:
            reader.window.go_to(position.offset)
            group = next(reader.groups(), None)
            if group is None:
                raise reader.window.error(position.offset, CUT_SHORT)
            yield group

    @property
    def _open_file(self) -> ClassicFileReader | None:
        return self._reader.current

    @property
    def _file(self) -> ClassicFileReader:
        assert self._open_file is not None
        return self._open_file
