"""The groups of traditional files for one reader, from the head of a file on."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Iterator

from ibbmaster.classic.binlog import ClassicReader
from ibbmaster.classic.groups import ClassicFileReader
from ibbmaster.codec.buffer import Buffer
from ibbmaster.event.group import EventGroup
from ibbmaster.event.types import EventType
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LogPosition


class ClassicGroups:
    """The groups from the head of a file on, for one reader."""

    def __init__(self, reader: ClassicReader, position: LogPosition) -> None:
        self._reader = reader
        self._groups = reader.groups()
        self.position = position

    def close(self) -> None:
        """Close the file."""
        self._groups.close()

    @property
    def state(self) -> GtidState:
        """What is logged up to the last group that was read."""
        return self._reader.state

    def next_group(self) -> EventGroup | None:
        """The next group, or None at the end of the last file."""
        group = next(self._groups, None)
        if group is not None:
            self.position = group.end
        return group

    # For callers that read groups themselves, from the file of the last group.

    @property
    def is_in_file(self) -> bool:
        """Whether a file is open, and read up to `position`; not after a group that came in pieces."""
        file = self._reader.current
        return file is not None and file.is_at_group_end and file.window.offset == self.position.offset

    is_stored = False  # each event as a file has it, and also those that are in no group

    @property
    def log_identity(self) -> Hashable:
        """What distinguishes the files from others of the same names."""
        return "traditional"

    @property
    def is_cut(self) -> bool:
        """Whether the last group was not read as a whole."""
        return not self._file.is_at_group_end

    @property
    def is_in_use(self) -> bool:
        """Whether its server has not closed the file: what it ends with may be no whole group."""
        return self._file.is_in_use

    @property
    def checksum_size(self) -> int:
        """Bytes of the checksum at the end of each event."""
        return self._file.window.checksum_size

    @property
    def descriptor(self) -> int | None:
        """Of the open file, if its bytes are those of the binlog."""
        return self._file.window.source.descriptor

    @property
    def file_size(self) -> int:
        """In bytes; of a packed file more than any has."""
        return self._file.window.source.size_bytes

    def read_into(self, offset: int, target: memoryview) -> int:
        """Fill `target` from the file, to its end at most; returns how many bytes that were.
        Raises ClassicFormatError: a packed file is damaged or cut short."""
        return self._file.window.source.read_into(offset, target)

    @contextlib.contextmanager
    def reading(self, *, only_cached: bool) -> Iterator[None]:
        """With `only_cached`, reading the current file raises BlockingIOError where it would have to wait."""
        source = self._file.window.source
        source.only_cached = only_cached
        try:
            yield
        finally:
            source.only_cached = False

    @property
    def is_before_other(self) -> bool:
        """Whether something that is no group is known to come next in the current file."""
        return self._file.window.is_known_before_other_than(EventType.GTID)

    def check_log(self) -> None:
        """The files are those that were found at first."""

    def continue_at(
        self,
        position: LogPosition,
        gtids: Iterable[Gtid],
        *,
        head: Buffer | None = None,
        is_inside_record: bool = False,
        record_type: int = -1,
    ) -> None:
        """Continue between groups of the same file; `gtids` are the last of each pair on the way."""
        self._file.continue_at(position.offset)
        self.log(gtids)
        self.position = position

    def log(self, gtids: Iterable[Gtid]) -> None:
        """Note groups that were skipped."""
        for gtid in gtids:
            self._reader.state.log(gtid)

    @contextlib.contextmanager
    def group_at(self, position: LogPosition) -> Iterator[EventGroup]:
        """The group at a position of the same file, by a reader of its own.
        Raises ClassicFormatError: it is damaged."""
        with contextlib.closing(ClassicFileReader(self._file.file)) as reader:
            reader.window.go_to(position.offset)
            group = next(reader.groups(), None)
            if group is None:
                raise reader.window.error(position.offset, "the file ends inside what begins here")
            yield group

    @property
    def _file(self) -> ClassicFileReader:
        assert self._reader.current is not None
        return self._reader.current
