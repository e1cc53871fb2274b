"""All events of a traditional binlog from a place on, as a primary sends them, and as they come."""

import contextlib
from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import partial

from ibbmaster.errors import GapError, IbbMasterError, LogResetError, PositionPurgedError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.storage.codec.buffer import Buffer
from .binlog import ClassicGroups
from .following import FollowedFiles, told_if_purged
from .groups import CUT_SHORT
from .head import continued, is_gap, missing_between
from .series import FIRST_EVENT_OFFSET, ClassicFile, ClassicSource
from .stored_file import StoredFileReader


class StoredGroups(ClassicGroups):
    """Every group with its events as stored, and every other event as one without GTID. At the end `next_group` returns
    None, and more once the files grow. `offset` is that of the first event after the first FORMAT_DESCRIPTION; with
    `knows_state` it is between groups, and `state` is what was logged there."""

    def __init__(
        self,
        series: FollowedFiles,
        position: LogPosition,
        state: GtidState,
        offset: int = FIRST_EVENT_OFFSET,
        *,
        knows_state: bool = False,
    ) -> None:
        self._series = series
        self._resets, self._life = series.picture.resets, series.picture.life
        self._state = state.copy()
        self._knows_state = knows_state or offset <= FIRST_EVENT_OFFSET
        self._is_between = False
        self._was_gone = False  # a file, since the last call began
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

    def check_log(self) -> None:
        self._series.check(self._resets)

    def next_group(self) -> EventGroup | None:
        """The next group or other event; None at the end of the log, for now. Raises ClassicFormatError: a file is
        damaged, or ends inside something and will not grow; GapError: a file does not continue the one before;
        MissingEventError: no event begins at the first offset; PositionPurgedError: the log was reset."""
        self.check_log()
        self._was_gone = False
        try:
            if self._current is None:
                self._begin_here()
            while True:
                item = next(self._items)
                if item is not None:
                    if item.gtid is not None:
                        self._state.log(item.gtid)
                    self.position = item.end
                    return replace(item, body=self._checked(item.body))
                if not self._go_on():
                    if self._current is not None:
                        self._series.note_unfinished(self._file.unfinished())
                    return None
        except IbbMasterError as error:
            has_nothing = self.position.offset <= FIRST_EVENT_OFFSET
            if (isinstance(error, StoreError) and has_nothing) or not self._has_to_wait():
                raise
            self._leave()
            return None

    def _has_to_wait(self) -> bool:
        """Whether the file only begins again, or was gone for a moment. Raises LogResetError."""
        self._series.look()
        self.check_log()
        return self._was_gone or self._series.waits(self.position.file_no, self._life)

    def _stands(self, index: int, only_cached: bool) -> bool:
        stands = self._series.stands(index, self._life, self._resets, only_cached)
        if self._current is not None and self._file.file.index == index:
            stands = stands and self._moved_to() is None
        self._was_gone |= not stands
        return stands

    def _checked(self, body: Iterator[Buffer]) -> Iterator[Buffer]:
        try:
            yield from body
        except IbbMasterError as error:
            if self._has_to_wait():  # inside a group: its replica must come back
                raise LogResetError(str(error)) from None
            raise

    def next_group_at_once(self) -> EventGroup:
        """As in `CachedEventGroups`, from the head of a file or a place between groups on."""
        self._series.stands(self.position.file_no, self._life, self._resets, True)
        if not self._knows_state:
            raise BlockingIOError("what comes first may be no group, and long")
        try:
            if self._current is None:
                self._begin_here(only_cached=True)
            with self.reading(only_cached=True):
                item = next(self._items)
            if item is None or not self._file.is_at_group_end:
                raise BlockingIOError("there is no more in this file, or a long group")
        except BlockingIOError:
            if self._current is not None:
                self._items = self._file.items_from(self.position.offset)
            raise
        except IbbMasterError as error:
            self.check_log()
            self._leave()
            raise BlockingIOError(str(error)) from None  # `next_group` raises it, or waits
        if item.gtid is not None:
            self._state.log(item.gtid)
        self.position = item.end
        return item

    def _go_on(self) -> bool:
        if self._has_moved():
            return True
        reader = self._current
        if reader is None or reader.file.index >= self._series.picture.last.index:
            return False
        behind = self._series.file(reader.file.index + 1)
        if reader.may_grow:
            reader.complete()  # it may have grown before the next file was made
            return True
        if (cut := reader.cut_error()) is not None:
            raise cut
        before, state = reader.file, self._state
        if not reader.has_ended and self._series.picture.file(before.index) is None:
            raise LogResetError(f"{before.name} was removed before its end was seen")
        reader.close()
        self._begin(behind, FIRST_EVENT_OFFSET)
        head = self._file.head
        if self._knows_state:
            try:
                self._state, _ = continued(before, state, behind, head)
            except GapError as error:
                if self._series.picture.file(before.index) is None:  # removed before the next one was seen
                    raise LogResetError(str(error)) from None
                raise
        elif is_gap(before, behind):
            gap = missing_between(before, behind)
            raise GapError(behind.name, head.state_offset, gap, gap)
        elif head.state is not None:
            self._state, self._knows_state = head.state.copy(), True
        return True

    def _has_moved(self) -> bool:
        if (now := self._moved_to()) is None:
            return False
        self._leave()
        if self._series.waits(now.index, self._life):
            return False
        self._begin_here()
        return True

    def _moved_to(self) -> ClassicFile | None:
        """Objects have only their names."""
        source, now = self._file.window.source, self._series.picture.file(self._file.file.index)
        return None if now is None or source.descriptor is None or now.stamp.file == source.stamp.file else now

    def _leave(self) -> None:
        if self._current is not None:
            self._is_between = not self._current.is_lead_in
            self._current.close()
            self._current, self._items = None, iter(())

    def _begin_here(self, *, only_cached: bool = False) -> None:
        file, has_head = self._series.file(self.position.file_no), self.position.offset > FIRST_EVENT_OFFSET
        self._begin(file, self.position.offset if has_head else self._first_offset, only_cached=only_cached)
        if has_head:
            next(self._items)

    def _begin(self, file: ClassicFile, offset: int, *, only_cached: bool = False) -> None:
        is_last = file.index == self._series.last.index
        try:
            with told_if_purged(file):
                self._current = StoredFileReader(
                    file,
                    offset,
                    source=ClassicSource(file, only_cached=only_cached, stands=partial(self._stands, file.index)),
                    may_grow=is_last,
                    is_between_groups=self._is_between or self._knows_state,
                )
        except PositionPurgedError:  # the last file is never purged
            self._was_gone |= self._series.look(only_cached=only_cached).last.index == file.index
            raise
        source = self._current.window.source
        source.only_cached = False
        if not is_last and source.stamp[:2] != file.stamp[:2]:
            self._series.doubt()
            self.check_log()
        self._items = self._current.items()

    is_stored = True

    @property
    def log_identity(self) -> Hashable:
        if self._current is None or self._series.waits(self.position.file_no, self._life):
            return None
        return "as stored", self._resets, self._current.file.life

    @contextlib.contextmanager
    def group_at(self, position: LogPosition) -> Iterator[EventGroup]:
        with contextlib.closing(StoredFileReader(self._file.file, position.offset, is_between_groups=True)) as reader:
            items = reader.items()
            next(items)  # the FORMAT_DESCRIPTION
            group = next(items)
            if group is None:
                raise reader.window.error(position.offset, CUT_SHORT)
            yield group

    @property
    def _open_file(self) -> StoredFileReader | None:
        return self._current

    @property
    def _file(self) -> StoredFileReader:
        assert self._current is not None
        return self._current
