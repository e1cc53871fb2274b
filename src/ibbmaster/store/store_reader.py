"""A reader of a store that is written meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ibbmaster.errors import PositionPurgedError
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import Gtid
from ibbmaster.store.disk import Disk
from ibbmaster.store.event_groups import EventGroupReader


class StoreReader:
    """Groups for one reader. The store purges nothing that it needs, for as long as the reader exists."""

    def __init__(self, reader: EventGroupReader, *, resets: Callable[[], int]) -> None:
        self._reader = reader
        self._resets = resets
        self._began_at = resets()

    @property
    def file_no(self) -> int:
        """The file it is in."""
        return self._reader.place[0]

    @property
    def place(self) -> tuple[int, int]:
        return self._reader.place

    @property
    def disk(self) -> Disk:
        return self._reader.disk

    def check_log(self) -> None:
        """Whether this is still the log that the reader began with.

        Raises:
            PositionPurgedError: the log was reset since.
        """
        if self._resets() != self._began_at:
            raise PositionPurgedError("the log was reset while it was read")

    def pass_over(self, file_no: int, file_offset: int, gtids: Iterable[Gtid], *, is_inside_record: bool) -> None:
        self._reader.pass_over(file_no, file_offset, gtids, is_inside_record=is_inside_record)

    def next_group(self) -> EventGroup | None:
        """The next durable group, or None at the durable end; then ask again later.

        Raises:
            PositionPurgedError: the log was reset since the reader was made.
        """
        self.check_log()
        return self._reader.next_group()
