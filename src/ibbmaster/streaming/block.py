"""A run of packets that is ready to be sent, and what its reader has to know to continue after it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple, Protocol, Required, TypedDict

from ibbmaster.codec.buffer import Buffer
from ibbmaster.dump.error import not_continuous
from ibbmaster.dump.rewriting import LogPositions
from ibbmaster.gtid import Gtid
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.position import LogPosition

SMALL = 32 * 1024  # bytes: fewer do not keep a whole buffer
OVERHEAD = 2048  # bytes: a block without packets, its key and what they refer to

Key = tuple[Hashable, ...]


class Mark(Hashable, Protocol):
    """Where a block begins or ends: who frames from there on needs to know no more. Hashable; `str` is for errors."""

    @property
    def position(self) -> LogPosition:
        """Where a reader continues; inside a group that is where the group begins."""

    @property
    def is_inside_group(self) -> bool:
        """Whether a group has begun whose end is still to come; only who made the mark can continue from there."""


class FramingState(NamedTuple):
    """Between records, or inside one that is skipped (types other than -1)."""

    position: LogPosition
    skip_type: int = -1
    nested_type: int = -1

    @property
    def is_inside_group(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{format_file_name(max(self.position.file_no, 0))} offset {self.position.offset}"


def file_end(end: LogPosition | None, at: LogPosition) -> int:
    """The offset of an end in the file of a place: 0 where the end is none, or in a later file; else 1 at least."""
    if end is None or end.file_no > at.file_no:
        return 0
    return max(1, end.offset) if end.file_no == at.file_no else 1


class Marks(TypedDict, total=False):
    """What a reader has to know of a block besides its packets: see `Block`."""

    before: Required[Mark]
    after: Required[Mark]
    gtids: tuple[Gtid, ...]
    is_in_order: bool
    is_stopped: bool
    stored_gtids: tuple[Gtid, ...] | None
    head: bytes | None
    is_inside_event: bool
    log_positions: LogPositions | None
    framed_bytes: int | None


class BufferPool(Protocol):
    """What lends the memory of blocks."""

    def release(self, buffer: Any) -> None: ...


class Block:
    """Packets, the first and last of which may be cut. Immutable, and its own owner.

    They may lie in a buffer of a pool, which goes back with the block.
    """

    __slots__ = (
        "_buffer",
        "_pool",
        "_size",
        "after",
        "before",
        "framed_bytes",
        "gtids",
        "head",
        "is_in_order",
        "is_inside_event",
        "is_stopped",
        "log_positions",
        "sequence_after",
        "stored_gtids",
    )

    def __init__(
        self,
        buffer: Any,
        pool: BufferPool | None,
        size: int,
        *,
        sequence_after: int = 0,
        before: Mark,
        after: Mark,
        gtids: tuple[Gtid, ...] = (),
        is_in_order: bool = True,
        is_stopped: bool = False,
        stored_gtids: tuple[Gtid, ...] | None = None,
        head: bytes | None = None,
        is_inside_event: bool = False,
        log_positions: LogPositions | None = None,
        framed_bytes: int | None = None,
    ) -> None:
        self._buffer = buffer
        self._pool = pool
        self._size = size
        self.sequence_after = sequence_after  # the number of the packet that comes next
        self.before = before  # where it begins
        self.after = after
        self.gtids = gtids  # the last one of each (domain, server) pair whose group begins here
        self.is_in_order = is_in_order  # numbers of each pair grow, so its last one is its highest
        self.is_stopped = is_stopped  # without packets: what comes next is not skipped
        self.stored_gtids = gtids if stored_gtids is None else stored_gtids  # of the same groups, as the log has them
        self.head = head  # of the log where it begins, if known: enough to say which group that is
        self.is_inside_event = is_inside_event  # a part of an event has gone out, and the rest has not
        self.log_positions = log_positions  # after it, where they are counted
        self.framed_bytes = size if framed_bytes is None else framed_bytes  # and what a pump has sent of them

    def __len__(self) -> int:
        """Bytes of packets."""
        return self._size

    @property
    def begin(self) -> LogPosition:
        """Where it begins; inside a group that is where the group does."""
        return self.before.position

    @property
    def end(self) -> LogPosition:
        """Where it ends; inside a group that is where the group begins."""
        return self.after.position

    @property
    def begins_inside_group(self) -> bool:
        return self.before.is_inside_group

    @property
    def ends_inside_group(self) -> bool:
        return self.after.is_inside_group

    @property
    def held_bytes(self) -> int:
        """Memory that it takes."""
        return OVERHEAD + len(self._buffer)

    def data(self) -> Buffer:
        """The packets; good for as long as the block is kept."""
        return memoryview(self._buffer)[: self._size]

    def __del__(self) -> None:
        if self._pool is not None:
            self._pool.release(self._buffer)


def plain_block(data: Buffer, at: Mark) -> Block:
    """Packets that end where the log was read to before."""
    return Block(data, None, len(data), before=at, after=at)


def skipped_block(
    before: Mark,
    after: Mark,
    gtids: tuple[Gtid, ...],
    head: bytes | None = b"",
    *,
    stored_gtids: tuple[Gtid, ...] | None = None,
    is_in_order: bool = True,
    is_stopped: bool = False,
) -> Block:
    """No packets of what lies between two marks."""
    marks = Marks(before=before, after=after, gtids=gtids, stored_gtids=stored_gtids, head=head)
    marks["is_in_order"], marks["is_stopped"] = is_in_order, is_stopped
    return Block(b"", None, 0, **marks)


def check_continues(block: Block, at: Mark) -> None:
    """Whether a block begins at a place. Raises DumpError: it does not, so something would be lost or come twice."""
    if block.before != at:
        raise not_continuous(str(at), str(block.before))


def joined(pieces: Sequence[Block]) -> Block:
    """Blocks that follow each other as one. Raises DumpError: they do not follow each other."""
    return _of_all(pieces, b"".join(piece.data() for piece in pieces), pieces[-1].sequence_after)


def sent_block(pieces: Sequence[Block], sequence: int) -> Block:
    """No packets, as those of all these blocks went out; `sequence` is the number of the one that comes next.

    Raises DumpError: they do not follow each other.
    """
    return _of_all(pieces, b"", sequence, _last_where_they_grow)


def last_of_pairs(gtids: Iterable[Gtid]) -> tuple[Gtid, ...]:
    """The last GTID of each (domain, server) pair, which leave the same state as all, in the order of `noted_gtids`.

    Domains are in the order in which they came, servers in that of their last groups.
    """
    last: dict[int, dict[int, Gtid]] = {}
    for gtid in gtids:
        servers = last.setdefault(gtid.domain_id, {})
        servers.pop(gtid.server_id, None)
        servers[gtid.server_id] = gtid
    return tuple(chain.from_iterable(servers.values() for servers in last.values()))


def _last_where_they_grow(gtids: Iterable[Gtid]) -> tuple[Gtid, ...]:
    """Those of `last_of_pairs`, or all where the numbers of a pair do not grow."""
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
        check_continues(other, one.after)
    return Block(
        data,
        None,
        len(data),
        sequence_after=sequence,
        before=first.before,
        after=last.after,
        gtids=gtids_of(chain.from_iterable(piece.gtids for piece in pieces)),
        stored_gtids=gtids_of(chain.from_iterable(piece.stored_gtids for piece in pieces)),
        head=first.head,
        is_inside_event=last.is_inside_event,
        log_positions=last.log_positions,
        framed_bytes=sum(piece.framed_bytes for piece in pieces),
    )
