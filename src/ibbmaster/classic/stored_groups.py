"""All there is in the files of a traditional binlog from a place on, as a primary sends it, and as it comes."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Iterator

from ibbmaster.classic.continuing import continued, missing_between
from ibbmaster.classic.following import FollowedFiles, told_if_purged
from ibbmaster.classic.read_groups import ClassicGroups
from ibbmaster.classic.series import FIRST_EVENT_OFFSET, ClassicFile
from ibbmaster.classic.stored_file import StoredFileReader
from ibbmaster.errors import GapError, PositionPurgedError
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LogPosition


class StoredGroups(ClassicGroups):
    """Every group with its events as they are stored, and every other event as one without GTID.

    At the end of what is there it gives nothing, and more once more is there: in the last file, or in one
    that follows. `offset` is that of the first event after the first FORMAT_DESCRIPTION.
    """

    def __init__(
        self,
        series: FollowedFiles,
        position: LogPosition,
        state: GtidState,
        offset: int = FIRST_EVENT_OFFSET,
        *,
        knows_state: bool = False,
    ) -> None:
        """Begin in the file of a position; with `knows_state` between groups, and `state` is what was logged there."""
        self._series = series
        self._resets = series.resets
        self._state = state.copy()
        self._knows_state = knows_state or offset <= FIRST_EVENT_OFFSET
        self._current: StoredFileReader | None = None
        self._items: Iterator[EventGroup | None] = iter(())
        self.position = position
        self._first_offset = offset

    def close(self) -> None:
        if self._current is not None:
            self._current.close()
        self._items = iter(())

    @property
    def state(self) -> GtidState:
        return self._state

    def is_of(self, resets: int) -> bool:
        """Whether these are groups of the log after this number of resets."""
        return self._resets == resets

    def check_log(self) -> None:
        if self._series.resets != self._resets:
            raise PositionPurgedError("the files there were have been replaced by others: the log was reset")

    def next_group(self) -> EventGroup | None:
        """The next group or other event, or None at the end of what is there.

        Raises:
            ClassicFormatError: a file is damaged, or ends inside of something and will not be continued.
            GapError: a file does not continue the one before.
            MissingEventError: no event begins at the offset to begin at.
            PositionPurgedError: the log was reset.
        """
        self.check_log()
        if self._current is None:
            self._begin(self._series.file(self.position.file_no), self._first_offset)
        while True:
            item = next(self._items)
            if item is not None:
                if item.gtid is not None:
                    self._state.log(item.gtid)
                self.position = item.end
                return item
            if not self._go_on():
                self._series.note_unfinished(self._file.unfinished())
                return None

    def next_group_at_once(self) -> EventGroup:
        """As `CachedEventGroups` has it, from the head of a file on, or a place between groups."""
        self.check_log()
        if not self._knows_state:
            raise BlockingIOError("what comes first may be no group, and long")
        if self._current is None:
            self._begin(self._series.file(self.position.file_no), self._first_offset, only_cached=True)
        try:
            with self.reading(only_cached=True):
                item = next(self._items)
            if item is None or not self._file.is_at_group_end:
                raise BlockingIOError("there is no more in this file, or a long group")
        except BlockingIOError:
            self._items = self._file.items_from(self.position.offset)
            raise
        if item.gtid is not None:
            self._state.log(item.gtid)
        self.position = item.end
        return item

    def _go_on(self) -> bool:
        """Whether to read on where nothing more was there."""
        reader = self._file
        behind = self._file_behind()
        if behind is None:
            return False
        if reader.may_grow:
            reader.complete()  # what has come before the next file was made is still to be read
            return True
        if (cut := reader.cut_error()) is not None:
            raise cut
        before, state = reader.file, self._state
        reader.close()
        self._begin(behind, FIRST_EVENT_OFFSET)
        head = self._file.head
        if self._knows_state:
            self._state, _ = continued(before, state, behind, head)
        elif behind.number is not None and before.number is not None and behind.number > before.number + 1:
            gap = missing_between(before, behind)
            raise GapError(behind.name, head.state_offset, gap, gap)
        elif head.state is not None:
            self._state, self._knows_state = head.state.copy(), True
        return True

    def _file_behind(self) -> ClassicFile | None:
        try:
            return self._series.file(self._file.file.index + 1)
        except KeyError:
            return None

    def _begin(self, file: ClassicFile, offset: int, *, only_cached: bool = False) -> None:
        is_last, is_between = file.index == self._series.last.index, self._knows_state
        with told_if_purged(file):
            self._current = StoredFileReader(
                file, offset, may_grow=is_last, is_between_groups=is_between, only_cached=only_cached
            )
        self._current.window.source.only_cached = False
        self._items = self._current.items()

    # For callers that read groups themselves

    @property
    def is_in_file(self) -> bool:
        """Whether what was read ends at `position`, between groups."""
        file = self._current
        return file is not None and file.is_at_group_end and file.window.offset == self.position.offset

    is_stored = True

    @property
    def log_identity(self) -> Hashable:
        return "as stored", self._resets

    @property
    def is_in_use(self) -> bool:
        return self._file.window.is_in_use

    def log(self, gtids: Iterable[Gtid]) -> None:
        for gtid in gtids:
            self._state.log(gtid)

    @contextlib.contextmanager
    def group_at(self, position: LogPosition) -> Iterator[EventGroup]:
        with contextlib.closing(StoredFileReader(self._file.file, position.offset, is_between_groups=True)) as reader:
            items = reader.items()
            next(items)  # the FORMAT_DESCRIPTION
            group = next(items)
            if group is None:
                raise reader.window.error(position.offset, "the file ends inside what begins here")
            yield group

    @property
    def _file(self) -> StoredFileReader:
        assert self._current is not None
        return self._current
