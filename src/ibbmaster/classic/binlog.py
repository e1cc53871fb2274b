"""A traditional binlog, many files long, as one stream of event groups.

The files must continue each other: what a file's GTID_LIST says was logged before it must be what the files before it
hold. So nothing is missing in the middle, and the state before the first group is known.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from ibbmaster.classic.groups import ClassicFileReader
from ibbmaster.classic.head import continued, head_of
from ibbmaster.classic.series import ClassicFile
from ibbmaster.classic.window import EventWindow
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LogPosition


class ClassicReader:
    """Reads the event groups of traditional binlog files in the order in which they were logged.

    The head of each file is read at once, so that a file that cannot be read at all is found before any work is done.

    Attributes:
        files: the files in order.
        initial_state: what was logged before the first group.
        state: what was logged up to the last group that was yielded.
        notices: what a user should know, one sentence each; grows while groups are read.
        restart_count: how often a server start began a file, the first file not counted.

    Raises ClassicFormatError: a file does not begin as a traditional binlog of MariaDB, or it is encrypted.
    """

    def __init__(self, files: tuple[ClassicFile, ...], initial_state: GtidState | None = None) -> None:
        """Read these files; with `initial_state` their heads were read before."""
        self.files = files
        self.notices: list[str] = []
        self.restart_count = 0
        self._bytes_read = 0  # of the files that are behind us
        self.current: ClassicFileReader | None = None  # of the last group that was yielded
        if initial_state is None:
            states = [head_of(file).state for file in self.files]
            initial_state = states[0] or GtidState()
        self.initial_state = initial_state
        self.state = self.initial_state.copy()

    @property
    def file_names(self) -> list[str]:
        """As the server named them, in order."""
        return [file.name for file in self.files]

    def place(self, position: LogPosition) -> str:
        """Where a group is, for people."""
        return f"{self.files[position.file_no].name} offset {position.offset}"

    def from_file(self, file_no: int) -> ClassicReader:
        """A reader from this file on; of all, if its head does not say what was logged before."""
        state = head_of(self.files[file_no]).state
        return ClassicReader(self.files if state is None else self.files[file_no:], state)

    @property
    def size_bytes(self) -> int:
        """The size of all files on disk."""
        return sum(file.size_bytes for file in self.files)

    @property
    def bytes_read(self) -> int:
        """How much of them was read so far."""
        return self._bytes_read + (self.current.bytes_read if self.current else 0)

    def groups(self, take: Callable[[EventWindow], tuple[Gtid, ...]] | None = None) -> Generator[EventGroup]:
        """Every event group, to be called once; each body must be read, or dropped, before the next group.

        `take` is called first, between groups: it may read whole ones itself, by moving the
        window, and returns the last GTID of each (domain, server) pair.

        Raises ClassicFormatError: a file is damaged, ends inside a group although the server had closed it, or does not
        continue the one before.
        """

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
                self._bytes_read += reader.bytes_read
                self.current = None
                reader.close()
            before = file
