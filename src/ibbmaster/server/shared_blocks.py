"""What the dumps of one primary share: framed blocks, and where the log ends."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import trio

from ibbmaster.dump.session import DumpSession
from ibbmaster.errors import PositionPurgedError
from ibbmaster.event.group import EventGroup
from ibbmaster.kernel.loading import kernels
from ibbmaster.log.interface import EventGroups, PagedEventGroups
from ibbmaster.position import LogPosition

if TYPE_CHECKING:
    from types import ModuleType

    from ibbmaster.streaming.block import Block
    from ibbmaster.streaming.block_cache import BlockCache
    from ibbmaster.streaming.group_parts import GroupParts


PUMPS_MAX = (os.cpu_count() or 1) + 2  # threads that send: what more of them do is wait for each other


class Look:
    """Somebody is looking, in a worker thread, what comes at a position; others need not do so, too."""

    def __init__(self, generation: int, position: LogPosition) -> None:
        self.where = generation, position
        self.has_others = False  # somebody relies on it


class SharedBlocks:
    """One for each primary; it is closed when nobody reads any longer."""

    def __init__(self) -> None:
        self._cache: BlockCache | None = None
        self.pumps = trio.CapacityLimiter(PUMPS_MAX)
        self.known_end: tuple[int, LogPosition] | None = None  # and the follower's generation then
        self.look: Look | None = None  # the latest of those under way

    def close(self) -> None:
        """Let go of the blocks, and of the files in memory that some of them lie in."""
        if self._cache is not None:
            self._cache.clear()

    def reader(self, groups: EventGroups, session: DumpSession) -> FastReader | None:
        """A reader of blocks, or None: the kernels are not ready, or the groups do not lie in pages."""
        ready = kernels()
        if ready is None or not isinstance(groups, PagedEventGroups):
            return None
        if self._cache is None:
            from ibbmaster.streaming.block_cache import BlockCache

            self._cache = BlockCache()
        return FastReader(groups, session, self, self._cache, ready)


class FastReader:
    """The blocks of one dump, as far as its session lets others frame groups."""

    def __init__(
        self,
        groups: PagedEventGroups,
        session: DumpSession,
        shared: SharedBlocks,
        cache: BlockCache,
        ready: ModuleType,
    ) -> None:
        from ibbmaster.streaming.block_reader import BlockReader
        from ibbmaster.streaming.group_parts import GroupParts

        self._groups = groups
        self._session = session
        self._shared = shared
        self._cache = cache
        self._kernels = ready
        self._blocks = BlockReader(groups, cache, ready)
        cache.add_reader(self)
        self._make_parts = GroupParts
        self._parts: GroupParts | None = None  # of the group under way
        self._look: Look | None = None

    def close(self) -> None:
        """It reads no longer: others need not share with it."""
        self._cache.remove_reader(self)
        self._parts = None

    def next_block(self, *, only_cached: bool) -> Block | None:
        """Packets, perhaps none; None where the careful path must go on, or with `only_cached` would wait."""
        session = self._session
        selection = session.selection
        if self._parts is not None and not session.is_finished:
            return self._next_part(self._parts, only_cached=only_cached)
        if selection is None:
            return None
        self._check_position()
        block = self._blocks.next_block(
            selection, session.sequence, watched=session.watched_domain_ids, only_cached=only_cached
        )
        if block is None:
            return None
        session.receive_block(len(block), block.sequence_after, position=self._groups.position)
        return block

    def _check_position(self) -> None:
        """Whether reading goes on where the last block or group ended."""
        self._groups.check_log()  # a reset is no fault of ours
        self._session.check_position(self._groups.position)

    @property
    def may_go_on(self) -> bool:
        """Whether nothing has to be decided about the groups that come next."""
        return self._session.selection is not None and not self._blocks.needs_care

    def skip(self) -> bool:
        """Pass over groups that the replica has; whether there were any. For a worker thread."""
        limits = self._session.limits
        if not limits or self._parts is not None:
            return False
        self._check_position()
        gtids = self._blocks.skip(limits)
        self._session.receive_skipped(gtids, self._groups.position)
        return bool(gtids)

    @property
    def is_shared(self) -> bool:
        """Whether others want the same blocks."""
        return self._cache.is_shared

    def pump(self, socket: int) -> tuple[Block, int] | None:
        """Send many blocks; returns what the socket did not take, and how much it was in all.

        None where it does not go. Takes long: for a worker thread.
        """
        from ibbmaster.streaming.pumping import pump_blocks

        session = self._session
        selection = session.selection
        if self._parts is not None and not session.is_finished:
            return self._pump_parts(self._parts, socket)
        if selection is None or session.watched_domain_ids:
            return None
        self._check_position()
        pumped = pump_blocks(
            self._blocks,
            self._groups,
            self._cache.buffers,
            self._kernels,
            selection=selection,
            sequence=session.sequence,
            socket=socket,
        )
        if pumped is not None:
            rest, size = pumped
            assert rest.after is not None
            session.receive_block(size, rest.sequence_after, position=rest.after.position)
            with contextlib.suppress(PositionPurgedError):  # it went out already: the next block shall meet it
                self._blocks.pass_over(rest)
        return pumped

    def _pump_parts(self, parts: GroupParts, socket: int) -> tuple[Block, int] | None:
        pumped = parts.pump(self._session.sequence, socket, check_log=self._groups.check_log)
        if pumped is not None:
            self._note_part(parts, *pumped)
        return pumped

    def _note_part(self, parts: GroupParts, block: Block, size: int) -> None:
        """Tell the session of a part of a group."""
        self._session.receive_block(
            size,
            block.sequence_after,
            position=parts.group.end,
            is_part=not parts.is_finished,
            is_inside_event=block.is_inside_event,
        )
        if parts.is_finished:
            self._parts = None

    def begin_group(self, group: EventGroup) -> bool:
        """Take a group with a part out of band; False if it is another one, or something has to be decided."""
        from ibbmaster.log.event_groups import StoredGroup

        selection = self._session.selection
        if not isinstance(group, StoredGroup) or group.gtid is None or selection is None:
            return False
        if group.gtid.domain_id in self._session.watched_domain_ids:
            return False
        identity = self._blocks.identity(group.start.file_no)
        self._session.begin_group()
        self._parts = self._make_parts(self._groups.disk, group, identity, selection, self._cache, self._kernels)
        return True

    def _next_part(self, parts: GroupParts, *, only_cached: bool) -> Block | None:
        block = parts.next_part(self._session.sequence, only_cached=only_cached)
        if block is not None:
            self._groups.check_log()
            self._note_part(parts, block, len(block))
        return block

    def is_at_end(self, generation: int) -> bool:
        """Whether the log ended here when it last grew, or somebody is looking whether it does."""
        if self._parts is not None:
            return False
        where = generation, self._groups.position
        look = self._shared.look
        if look is not None and look.where == where and self._session.waits_at_end and self._session.selection:
            look.has_others = True
            return True
        return self._shared.known_end == where

    def begin_look(self, generation: int) -> None:
        """Tell others that this one looks what comes here; in the middle of a group it knows that."""
        if self._parts is None:
            self._look = self._shared.look = Look(generation, self._groups.position)

    def end_look(self) -> bool:
        """The look is over; whether others have to be told that the log does not end there."""
        look, self._look = self._look, None
        if look is None:
            return False
        if self._shared.look is look:
            self._shared.look = None
        return look.has_others and self._shared.known_end != look.where

    def note_end(self, generation: int) -> None:
        """Tell others that the log ends here."""
        self._shared.known_end = generation, self._groups.position
