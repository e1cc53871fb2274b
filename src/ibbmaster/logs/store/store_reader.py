"""A reader of a store that grows meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Unpack

from ibbmaster.errors import IbbMasterError, LogResetError, PositionPurgedError
from ibbmaster.gtid import Gtid
from ibbmaster.logs.log.event_groups import EventGroupReader
from ibbmaster.logs.log.interface import ReadPart
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.ibb.file_name import format_file_name


class StoreReader:
    """Groups for one reader, for which the store purges nothing until it is closed: then it calls `closed` with the
    reader. `resets` counts the resets of the log, `began_at` is that count when the plan of the reader was made."""

    def __init__(
        self,
        reader: EventGroupReader,
        *,
        resets: Callable[[], int],
        began_at: int,
        closed: Callable[[StoreReader], None],
    ) -> None:
        self._reader = reader
        self._resets = resets
        self._began_at = began_at
        self._closed = closed
        self._group_file_no: int | None = None  # of the last group, whose body may still be read
        self.is_purged = False  # its first file was about to be removed

    @property
    def file_no(self) -> int:
        file_no, group_file_no = self._reader.position.file_no, self._group_file_no
        return file_no if group_file_no is None else min(file_no, group_file_no)

    @property
    def position(self) -> LogPosition:
        return self._reader.position

    @property
    def disk(self) -> ReadDisk:
        return self._reader.disk

    @property
    def log_identity(self) -> Hashable:
        return self._began_at

    @property
    def expects_more(self) -> bool:
        return self._reader.expects_more

    @property
    def may_begin_inside(self) -> bool:
        return self._reader.may_begin_inside

    def close(self) -> None:
        self._closed(self)

    def check_log(self) -> None:
        """Raises PositionPurgedError: the log was reset since the reader began, or the file to begin with purged."""
        if self.is_purged:
            raise PositionPurgedError(f"{format_file_name(self.file_no)} was purged before it could be read")
        if self._resets() != self._began_at:
            raise LogResetError("the log was reset while it was read")

    def continue_at(self, position: LogPosition, gtids: Iterable[Gtid], **known: Unpack[ReadPart]) -> None:
        self._reader.continue_at(position, gtids, **known)
        self._group_file_no = None

    def next_group(self, *, only_cached: bool = False) -> EventGroup | None:
        """Raises BlockingIOError: with `only_cached`, it would have to wait, and read no group; PositionPurgedError,
        also from a body: the log was reset since the reader was made."""
        before = self._reader.position.file_no
        try:
            group = self._reader.next_group(only_cached=only_cached)
        except IbbMasterError:
            self.check_log()
            raise
        self.check_log()  # only now it covers what was read
        self._group_file_no = None if group is None else before
        return group if group is None else replace(group, body=self._checked(group.body))

    def next_group_at_once(self) -> EventGroup:
        group = self.next_group(only_cached=True)
        assert group is not None, "only a look shows the end"
        return group

    def _checked(self, body: Iterator[Buffer]) -> Iterator[Buffer]:
        """Some pieces are read only now; a log that began anew has files of the same names."""
        try:
            for piece in body:
                self.check_log()
                yield piece
        except IbbMasterError:
            self.check_log()
            raise
        self.check_log()  # the end of the body was read, too
