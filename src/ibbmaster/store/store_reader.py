"""A reader of a store that is written meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from ibbmaster.errors import PositionPurgedError
from ibbmaster.event.group import EventGroup
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

    def next_group(self) -> EventGroup | None:
        """The next durable group, or None at the durable end; then ask again later.

        Raises:
            PositionPurgedError: the log was reset since the reader was made.
        """
        if self._resets() != self._began_at:
            raise PositionPurgedError("the log was reset while it was read")
        return self._reader.next_group()
