"""The interface of what frames files for dumps."""

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
    """How packets are to be framed: without waiting for a disk or a lock; more for many readers; or few, and soon."""

    only_cached: bool
    is_shared: bool = False
    is_short: bool = False


class BlockMaker(Protocol):
    """Makes blocks of packets from files, from any mark on; one for each dump.

    It keeps no place of a dump: a mark of its own type, `Block.after`, has all it needs to continue. Dumps share what
    is in the cache. None always means that the reference way has to continue; with `only_cached`, on the event loop,
    that this would wait for a disk or a lock.

    - A block begins at `at`, repeated in `before`, and ends at a place that depends on the file alone: all dumps meet
      there. An empty `Block` has only skipped.
    - The reference way can continue from marks between groups: `FramingState` with the position after a group. Inside a
      group `position` is its begin, and only the maker can continue: it raises what is wrong there.
    - `find_end` may limit the groups of the files: no block has one that begins there or later.
    - Nothing of a damaged group is framed: the reference way names the damage.
    """

    def identity(self, at: Mark, *, only_cached: bool) -> Hashable:
        """What distinguishes the file of a mark from an earlier one of its name; None where no block can begin."""

    def frame(self, at: Mark, selection: Selection, sequence: int, wanted: BlockShape) -> Block | None:
        """The packets from a mark on; `sequence` numbers the first.

        Raises:
            FormatError, BrokenGroupError: the inside of a group is damaged, or does not make up events.
            DumpError: an event is larger than MariaDB sends.
            StoreError: a file cannot be read.
        """

    def renumbered(self, block: Block, was: int, sequence: int) -> Block:
        """The same block with other packet numbers."""

    def skip(self, at: Mark, limits: Iterable[Gtid], *, only_cached: bool) -> Block | None:
        """A block without packets, up to the first group that is the limit of its domain, or has none."""

    def large_group(self, group: EventGroup) -> Mark | None:
        """The begin of a group that the reference way has read, if it is to be framed in parts."""
        return None

    def known_group(self, at: Mark) -> tuple[Gtid, Mark] | None:
        """The group at a mark, and its begin, if another dump has read it and is in it."""
        return None

    def pump(self, socket: int) -> AbstractContextManager[BlockPump]:
        """What sends to a socket for one visit of a worker thread."""
        return nullcontext(AbsentPump())


class BrokenGroupError(Exception):
    """A group that was begun cannot be read on."""

    def __init__(self, group: EventGroup, error: IbbMasterError) -> None:
        super().__init__(str(error))
        self.group = group
        self.error = error


class BlockPump(Protocol):
    """Reads, frames and sends for one visit of a worker thread."""

    def send(self, at: Mark, selection: Selection, sequence: int) -> Block | None:
        """Send from a mark on; returns what the socket did not take, a block that ends after all of it.

        None, or a block that ends where it begins, if nothing goes in this way. Raises StoreError: the file cannot be
        read; PositionPurgedError: the log was reset.
        """

    def commit_ahead(self, at: Mark) -> LogPosition | None:
        """The commit record of a group whose parts begin at a mark; None if none was found there.

        The pump checks the way there while it sends the group, which has to begin next; else call `check_way`.
        """
        return None

    def check_way(self) -> None:
        """Check the way to `commit_ahead`. Raises FormatError: it is damaged; StoreError: the file cannot be read."""
        return


class AbsentPump(BlockPump):
    """Sends nothing: all packets are looked at."""

    def send(self, at: Mark, selection: Selection, sequence: int) -> Block | None:
        return None
