"""What frames files for dumps has to give: one interface for pages, and whatever else groups lie in."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol

from ibbmaster.dump.rewriting import Selection
from ibbmaster.errors import IbbMasterError
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.streaming.block import Block, Mark


class BlockShape(NamedTuple):
    """How packets are to be framed: without waiting for a disk or a lock; more for many readers, or few, and soon."""

    only_cached: bool
    is_shared: bool = False
    is_short: bool = False


class BlockMaker(Protocol):
    """What an implementation has to give: blocks of packets from files, from any mark on, for any dump.

    It keeps nothing of where a dump is: whatever it needs to continue stands in `Block.after`,
    a mark of its own type that compares by value and is part of a key. One for each dump;
    what dumps share is in the cache. None always means that the reference way has to continue,
    or with `only_cached`, on the event loop, that this would wait for a disk or a lock.

    - A block begins at `at`, which it repeats in `before`, and ends at a place that depends on
      the file alone, so that all dumps meet there. With an empty `Block` it has only skipped.
    - Marks between groups are those that the reference way can continue from: `FramingState` with
      the position after a group. A mark inside a group has `is_inside_group`, and the position
      of the group's begin; from it only the maker can continue, so it raises what is wrong there.
    - `gtids` has the last GTID of each (domain, server) pair whose group begins in the block.
    - Where the groups of the files come only up to a place, no block has one that begins there or later.
    - Nothing of a damaged group is framed: the reference way names the damage.
    """

    def identity(self, at: Mark, *, only_cached: bool) -> Hashable:
        """What distinguishes the file of a mark from one that had its name before; None where no block can begin."""

    def frame(self, at: Mark, selection: Selection, sequence: int, wanted: BlockShape) -> Block | None:
        """The packets from a mark on, the first of which has the number `sequence`.

        Raises:
            FormatError, BrokenGroupError: what is inside a group is damaged, or does not make up events.
            DumpError: an event is larger than MariaDB sends.
            StoreError: a file cannot be read.
        """

    def renumbered(self, block: Block, was: int, sequence: int) -> Block:
        """The same block with other packet numbers."""

    def skip(self, at: Mark, limits: Iterable[Gtid], *, only_cached: bool) -> Block | None:
        """A block without packets, after groups that come before the limit of their domain.

        It ends before the first group that is a limit or has none.
        """

    def large_group(self, group: EventGroup) -> Mark | None:
        """Where a group begins that the reference way has read, if it can be framed in parts; None if it need not.

        None here: who does not say more leaves large groups to the reference way.
        """
        return None

    def known_group(self, at: Mark) -> tuple[Gtid, Mark] | None:
        """The group that begins at a mark, if another dump has read it and is in it, and where it begins; here none."""
        return None

    def pump(self, socket: int) -> AbstractContextManager[BlockPump]:
        """What sends to a socket for one visit of a worker thread; here nothing goes from a file to it unseen."""
        return nullcontext(AbsentPump())


class BrokenGroupError(Exception):
    """A group that was begun cannot be read on; `error` says why."""

    def __init__(self, group: EventGroup, error: IbbMasterError) -> None:
        super().__init__(str(error))
        self.group = group
        self.error = error


class BlockPump(Protocol):
    """Reads, frames and sends for one visit of a worker thread."""

    def send(self, at: Mark, selection: Selection, sequence: int) -> Block | None:
        """Send from a mark on; returns what the socket did not take, a block that ends after all of it.

        Its `framed_bytes` count what was sent, too. None, or a block that ends where it
        begins, where nothing goes in this way.

        Raises:
            StoreError: the file cannot be opened or read.
            PositionPurgedError: the log was reset.
        """

    def commit_ahead(self, at: Mark) -> LogPosition | None:
        """Where a group is committed whose parts begin at a mark; None if none was found there.

        What lies between was not checked: the pump does that while it sends the group, which has to be begun next;
        if it is not, `check_way` must be called. By default there is none: everything was checked.
        """
        return None

    def check_way(self) -> None:
        """Check what `commit_ahead` has gone over.

        Raises:
            FormatError: it is damaged.
            StoreError: the file cannot be read.
        """
        return


class AbsentPump(BlockPump):
    """Nothing goes from a file to a socket without being looked at."""

    def send(self, at: Mark, selection: Selection, sequence: int) -> Block | None:
        return None
