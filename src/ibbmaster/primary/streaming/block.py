"""A run of packets, with all that its reader needs to continue after it; and the interface of its makers."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple, Protocol

from ibbmaster.errors import IbbMasterError
from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.replication.dump.error import not_continuous
from ibbmaster.replication.dump.rewriting import LogPositions, Selection
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.ibb.file_name import format_file_name

OVERHEAD = 2048  # bytes: a block without packets, its key and what they refer to

Key = tuple[Hashable, ...]
FindEnd = Callable[[], LogPosition | None]
"""The place up to which groups may be framed, if there is one."""


class Mark(Hashable, Protocol):
    """Where a block begins or ends: all that is needed to frame from there on. `str` is for errors."""

    @property
    def position(self) -> LogPosition:
        """Where a reader continues; inside a group, where that begins."""

    @property
    def is_inside_group(self) -> bool:
        """Then only the maker of the mark can continue there."""

    @property
    def is_inside_event(self) -> bool: ...


class FramingState(NamedTuple):
    """Between records, or inside one that is skipped (types other than -1)."""

    position: LogPosition
    skip_type: int = -1
    nested_type: int = -1

    @property
    def is_inside_group(self) -> bool:
        return False

    @property
    def is_inside_event(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{format_file_name(max(self.position.file_no, 0))} offset {self.position.offset}"


def file_end(end: LogPosition | None, at: LogPosition) -> int:
    """The offset of an end in the file of a place, 1 at least; 0 without an end, or if it is in a later file."""
    if end is None or end.file_no > at.file_no:
        return 0
    return max(1, end.offset) if end.file_no == at.file_no else 1


class BufferPool(Protocol):
    def release(self, buffer: Any) -> None: ...


class Packets:
    """Packets in memory that they own, the first and last of which may be cut. Immutable. The memory may be a longer
    buffer, which returns to its pool.
    """

    __slots__ = ("_pool", "buffer", "sent_bytes", "sequence", "size")

    def __init__(
        self,
        buffer: Any,
        size: int | None = None,
        sequence: int = 0,
        pool: BufferPool | None = None,
        sent_bytes: int = 0,
    ) -> None:
        """`sequence` is of the packet after these; a pump has sent `sent_bytes` of packets before them."""
        self.buffer = buffer
        self.size = len(buffer) if size is None else size
        self.sequence = sequence
        self.sent_bytes = sent_bytes
        self._pool = pool

    def __del__(self) -> None:
        if self._pool is not None:
            self._pool.release(self.buffer)


class Groups(NamedTuple):
    """The last GTID of each (domain, server) pair whose groups begin in a block."""

    gtids: tuple[Gtid, ...] = ()
    stored: tuple[Gtid, ...] | None = None  # as the log has them; None: the same
    is_in_order: bool = True  # the numbers of each pair grow, so its last one is its highest


NO_PACKETS, NO_GROUPS = Packets(b""), Groups()


@dataclass(slots=True, eq=False)
class Block:
    """Packets, and their part of the log. Immutable once another reader has seen it."""

    packets: Packets
    before: Mark
    after: Mark
    groups: Groups = NO_GROUPS
    head: bytes | None = None  # of the log where it begins, if known: enough to say which group that is
    log_positions: LogPositions | None = None  # after it, where they are counted
    is_stopped: bool = False  # without packets: what comes next is not skipped

    def __len__(self) -> int:
        return self.packets.size

    @property
    def begin(self) -> LogPosition:
        """Inside a group, where that begins; likewise `end`."""
        return self.before.position

    @property
    def end(self) -> LogPosition:
        return self.after.position

    @property
    def begins_inside_group(self) -> bool:
        return self.before.is_inside_group

    @property
    def ends_inside_group(self) -> bool:
        return self.after.is_inside_group

    @property
    def is_inside_event(self) -> bool:
        return self.after.is_inside_event

    @property
    def gtids(self) -> tuple[Gtid, ...]:
        return self.groups.gtids

    @property
    def stored_gtids(self) -> tuple[Gtid, ...]:
        return self.groups.gtids if self.groups.stored is None else self.groups.stored

    @property
    def sequence_after(self) -> int:
        return self.packets.sequence

    @property
    def framed_bytes(self) -> int:
        return self.packets.size + self.packets.sent_bytes

    @property
    def held_bytes(self) -> int:
        return OVERHEAD + len(self.packets.buffer)

    def data(self) -> Buffer:
        """Good while the block is kept."""
        return memoryview(self.packets.buffer)[: self.packets.size]


def plain_block(data: Buffer, at: Mark) -> Block:
    return Block(Packets(data), at, at)


def check_continues(block: Block, at: Mark) -> None:
    """Raises DumpError: a block does not begin at a place: something would be lost or come twice."""
    if block.before != at:
        raise not_continuous(str(at), str(block.before))


def joined(pieces: Sequence[Block]) -> Block:
    """Blocks as one. Raises DumpError: they do not follow each other."""
    return _of_all(pieces, b"".join(piece.data() for piece in pieces), pieces[-1].sequence_after)


def sent_block(pieces: Sequence[Block], sequence: int) -> Block:
    """As `joined`, without packets, of blocks that went out; `sequence` is of the packet after them."""
    return _of_all(pieces, b"", sequence, _last_where_they_grow)


def last_of_pairs(gtids: Iterable[Gtid]) -> tuple[Gtid, ...]:
    """The last GTID of each (domain, server) pair, which leave the same state as all, in the order of `noted_gtids`:
    domains as they came, servers by their last groups.
    """
    last: dict[int, dict[int, Gtid]] = {}
    for gtid in gtids:
        servers = last.setdefault(gtid.domain_id, {})
        servers.pop(gtid.server_id, None)
        servers[gtid.server_id] = gtid
    return tuple(chain.from_iterable(servers.values() for servers in last.values()))


def _last_where_they_grow(gtids: Iterable[Gtid]) -> tuple[Gtid, ...]:
    """As `last_of_pairs`, or all where the numbers of a pair do not grow."""
    gtids = tuple(gtids)
    numbers: dict[tuple[int, int], int] = {}
    for gtid in gtids:
        pair = gtid.domain_id, gtid.server_id
        if gtid.seq_no <= numbers.get(pair, -1):
            return gtids
        numbers[pair] = gtid.seq_no
    return last_of_pairs(gtids)


def _of_all(
    pieces: Sequence[Block], data: bytes, sequence: int, gtids_of: Callable[[Iterable[Gtid]], tuple[Gtid, ...]] = tuple
) -> Block:
    first, last = pieces[0], pieces[-1]
    for one, other in pairwise(pieces):
        if other.before is not one.after:
            check_continues(other, one.after)
    framed, begun = [piece.packets for piece in pieces], [piece.groups for piece in pieces]
    stored = None
    if any(groups.stored is not None for groups in begun):
        stored = gtids_of(chain.from_iterable(piece.stored_gtids for piece in pieces))
    groups = Groups(gtids_of(chain.from_iterable([each.gtids for each in begun])), stored)
    sent_bytes = sum([each.size + each.sent_bytes for each in framed]) - len(data)
    packets = Packets(data, len(data), sequence, sent_bytes=sent_bytes)
    return Block(packets, first.before, last.after, groups, first.head, last.log_positions)


class BlockShape(NamedTuple):
    """Framed without waiting for a disk or a lock; more for many readers; or few, and soon."""

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
        """Distinguishes the file of a mark from an earlier one of its name; None: no block can begin."""

    def frame(self, at: Mark, selection: Selection, sequence: int, wanted: BlockShape) -> Block | None:
        """From a mark on; `sequence` numbers the first packet. Raises FormatError, BrokenGroupError: the inside of a
        group is damaged, or does not make up events; DumpError: an event is larger than MariaDB sends; StoreError: a
        file cannot be read.
        """

    def renumbered(self, block: Block, was: int, sequence: int) -> Block: ...

    def skip(self, at: Mark, limits: Iterable[Gtid], *, only_cached: bool) -> Block | None:
        """A block without packets, up to the first group that is the limit of its domain, or has none."""

    def large_group(self, group: EventGroup) -> Mark | None:
        """The begin of a read group, if it is to be framed in parts."""
        return None

    def known_group(self, at: Mark) -> tuple[Gtid, Mark] | None:
        """The group at a mark that another dump has read and is in, and its begin."""
        return None

    def pump(self, socket: int) -> AbstractContextManager["BlockPump"]:
        """Sends to a socket for one visit of a worker thread."""
        return nullcontext(AbsentPump())


class BrokenGroupError(Exception):
    def __init__(self, group: EventGroup, error: IbbMasterError) -> None:
        super().__init__(str(error))
        self.group = group
        self.error = error


class BlockPump(Protocol):
    """Reads, frames and sends for one visit of a worker thread."""

    def send(self, at: Mark, selection: Selection, sequence: int) -> Block | None:
        """From a mark on; returns what the socket did not take, a block that ends after all of it. None, or a block
        that ends where it begins: nothing goes this way. Raises StoreError: the file cannot be read;
        PositionPurgedError: the log was reset.
        """

    def commit_ahead(self, at: Mark) -> LogPosition | None:
        """The commit record of a group whose parts begin at a mark, if found there. The pump checks the way there while
        it sends the group, which has to begin next; else call `check_way`.
        """
        return None

    def check_way(self) -> None:
        """Check the way to `commit_ahead`. Raises FormatError: it is damaged; StoreError: no file to read."""
        return


class AbsentPump(BlockPump):
    def send(self, at: Mark, selection: Selection, sequence: int) -> Block | None:
        return None
