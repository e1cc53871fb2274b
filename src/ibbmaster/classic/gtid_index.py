"""The GTID index that a server keeps beside a traditional file: what was logged up to some of its offsets.

Layout of `FILE.idx`, little-endian: pages of one size, each with a header of 4 bytes (the first has 12 more before it)
and a CRC-32 of the rest in its last 4 bytes. Nodes of a tree are written as they are filled, the root last; a node that
does not fit into a page goes on in the next. A record is a number of GTIDs plus 1, an offset, and the GTIDs that were
logged since the record before it; nothing is divided by the end of a page. In an inner node a page number, plus 1, of a
child stands before, between and after the records.

Source: MariaDB 11.8, gtid_index.h and gtid_index.cc.
"""

from __future__ import annotations

import contextlib
import stat
import struct
import threading
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ibbmaster.classic.groups import LARGE_EVENT_SIZE, ClassicFileReader
from ibbmaster.classic.series import ClassicSource
from ibbmaster.classic.window import CHECKSUM_RESIDUE
from ibbmaster.errors import ClassicFormatError, StoreError
from ibbmaster.event.gtid_event import FIXED
from ibbmaster.event.header import EVENT_HEADER_SIZE, HEADER
from ibbmaster.event.types import EventType
from ibbmaster.gtid import Gtid

SUFFIX = ".idx"
MAGIC = bytes((254, 254, 12, 1))
MAJOR_VERSION = 1
FILE_HEADER = struct.Struct("<4sBBxxI")  # magic, version as two numbers, size of a page
PAGE_HEADER_SIZE = 4
PAGE_SIZE_MIN, PAGE_SIZE_MAX = 64, 1 << 24
NODE_BYTES_MAX = 1 << 24
IS_LEAF, IS_CONTINUED, IS_LAST, IS_ROOT = 1, 2, 4, 8  # flags of a page
RECORD = struct.Struct("<II")  # number of GTIDs plus 1, offset
GTID = struct.Struct("<IIQ")  # domain, server, sequence number
CHILD = struct.Struct("<I")
CHECKSUM = struct.Struct("<I")
LEVELS_MAX = 20
NODES_KEPT_MAX = 64  # each with a hundred records or two: some 3 MB in all
LOGGED_MAX = 10_000  # GTIDs, over all records of a node
AROUND_GROUPS = (EventType.ROTATE, EventType.STOP, EventType.BINLOG_CHECKPOINT)


Stamp = tuple[int, ...]


class FoundPlace(NamedTuple):
    """An offset between groups, and what its file has before it: the last GTID of each pair, those logged last last.

    `following` are those up to the next record, likewise; None if there is no other.
    """

    offset: int
    gtids: tuple[Gtid, ...]
    following: tuple[Gtid, ...] | None = None


def find_place(reader: ClassicFileReader, is_wanted: Callable[[Sequence[Gtid]], bool]) -> FoundPlace | None:
    """The last place of a file up to which all that it has is wanted, as the index beside it says.

    None where there is no index, or it is damaged, not finished, or of another file: then there is nothing to say.

    Raises:
        BlockingIOError: the reader reads only what is in memory, and the index is not.
    """
    file, head = reader.file, reader.head
    path = file.path.with_name(f"{file.path.name}{SUFFIX}")
    if reader.window.source.descriptor is None or head.state is None:
        return None
    try:
        stamp = _stamp_of(path)
        if stamp is None:
            return None
        only_cached = reader.window.source.only_cached
        with contextlib.closing(ClassicSource(replace(file, path=path), only_cached=only_cached)) as source:
            index = GtidIndex(source.read, source.size_bytes, path.name, _KEPT.nodes_of(stamp))
            before = set(index.first.gtids)
            if before != set(head.state):
                return None
            place = index.find(lambda gtids: is_wanted([gtid for gtid in gtids if gtid not in before]))
        place = place._replace(gtids=tuple(gtid for gtid in place.gtids if gtid not in before))
        return place if place.gtids and _is_between_groups(reader, place) else None
    except (ClassicFormatError, StoreError):
        return None


def _stamp_of(path: Path) -> Stamp | None:
    """Another one once a file is another, or has been written to; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    is_file = stat.S_ISREG(found.st_mode)
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns) if is_file else None


class _Node(NamedTuple):
    """A node that was read: the records in it, and what lies between them.

    `logged` has for each record the last GTID of each pair that was logged up to there, in this node; None where
    numbers step back, so that it would not say what comes before.
    """

    offsets: list[int]
    gtids: list[tuple[Gtid, ...]]
    children: list[int]  # one more than records; none in a leaf
    logged: list[tuple[Gtid, ...]] | None

    def wanted_count(self, is_wanted: Callable[[Sequence[Gtid]], bool]) -> int:
        """How many records, from the first on, have nothing but what is wanted."""
        if self.logged is not None:
            return bisect_left(self.logged, True, key=lambda gtids: not is_wanted(gtids))
        return next((at for at, gtids in enumerate(self.gtids) if not is_wanted(gtids)), len(self.gtids))


class _KeptNodes:
    """Nodes of indexes that were read lately, for who comes again: a server finishes an index, and never changes it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nodes: dict[Stamp, dict[int, _Node]] = {}

    def nodes_of(self, stamp: Stamp) -> dict[int, _Node]:
        """What is kept of an index, by the page where a node begins; what is added is kept, too."""
        with self._lock:
            if sum(map(len, self._nodes.values())) > NODES_KEPT_MAX or len(self._nodes) > NODES_KEPT_MAX:
                self._nodes.clear()
            return self._nodes.setdefault(stamp, {})


_KEPT = _KeptNodes()


def _is_between_groups(reader: ClassicFileReader, place: FoundPlace) -> bool:
    """Whether a group that the index has next, or what is between groups, begins at a place.

    The index may be of a file that was here before: it says nothing of one with other groups at the same offsets.
    """
    source, offset = reader.window.source, place.offset
    head = source.read(offset, EVENT_HEADER_SIZE + FIXED.size)
    if offset <= reader.head.state_offset or len(head) < EVENT_HEADER_SIZE:
        return False
    _, event_type, server_id, size, log_pos, _ = HEADER.unpack_from(head)
    if log_pos != (offset + size) & 0xFFFFFFFF or not EVENT_HEADER_SIZE <= size <= LARGE_EVENT_SIZE:
        return False
    if reader.head.has_checksums and zlib.crc32(source.read(offset, size)) != CHECKSUM_RESIDUE:
        return False
    if event_type != EventType.GTID:
        return event_type in AROUND_GROUPS
    if len(head) < EVENT_HEADER_SIZE + FIXED.size:
        return False
    seq_no, domain_id, _ = FIXED.unpack_from(head, EVENT_HEADER_SIZE)
    before, after = (
        [gtid.seq_no for gtid in gtids or () if (gtid.domain_id, gtid.server_id) == (domain_id, server_id)]
        for gtids in (place.gtids, place.following)
    )
    return all(number < seq_no for number in before) and (
        place.following is None or any(number >= seq_no for number in after)
    )


class GtidIndex:
    """Finds places in a file by the index beside it.

    `read` gives up to a number of bytes of the index from an offset on, `name` is for errors.

    Raises:
        ClassicFormatError: it is not an index, of another version, or not finished; also where something is damaged.
    """

    def __init__(
        self, read: Callable[[int, int], bytes], size_bytes: int, name: str, nodes: dict[int, _Node] | None = None
    ) -> None:
        """`nodes` are those that were read before; what is read is added."""
        self._nodes: dict[int, _Node] = {} if nodes is None else nodes
        self._read = read
        self._name = name
        header = read(0, FILE_HEADER.size)
        if len(header) < FILE_HEADER.size:
            raise self._error(0, f"{len(header)} bytes are not an index")
        magic, major, _, page_size = FILE_HEADER.unpack(header)
        self._page_size = int(page_size)
        if magic != MAGIC or major != MAJOR_VERSION:
            raise self._error(0, "not a GTID index of a version that is known")
        if not PAGE_SIZE_MIN <= self._page_size <= PAGE_SIZE_MAX or size_bytes % self._page_size:
            raise self._error(12, f"{size_bytes} bytes are not whole pages of {self._page_size} bytes")
        self._page_count: int = size_bytes // self._page_size
        self.first = self._first_place()

    def find(self, is_wanted: Callable[[Sequence[Gtid]], bool]) -> FoundPlace:
        """The last place up to which all that was logged is wanted, or the first.

        Of a pair of domain and server whose numbers grow, it hears of some GTIDs: one is wanted only if those before
        it are.

        Raises:
            ClassicFormatError: what is looked at is damaged.
        """
        page_no = self._root()
        logged: dict[tuple[int, int], Gtid] = {}
        found, following = self.first.offset, None
        for _ in range(LEVELS_MAX):
            node = self._node(page_no)
            count = node.wanted_count(is_wanted)
            following = node.gtids[count] if count < len(node.gtids) else following
            if count:
                found = node.offsets[count - 1]
                passed = node.gtids[:count] if node.logged is None else node.logged[count - 1 : count]
                _log(logged, chain.from_iterable(passed))
            if not node.children:
                return FoundPlace(found, tuple(logged.values()), following)
            child = node.children[count]
            if child >= page_no:  # children are written before their parents
                raise self.damage(page_no, f"page {child} is not before the page that points at it")
            page_no = child
        raise self.damage(page_no, f"more than {LEVELS_MAX} levels")

    def _node(self, page_no: int) -> _Node:
        """The node that begins on a page."""
        if page_no not in self._nodes:
            records = _Records(self, page_no)
            children = [] if records.is_leaf else [records.child()]
            offsets, gtids = [], []
            for offset, logged in records:
                offsets.append(offset)
                gtids.append(tuple(logged))
                if children:
                    children.append(records.child())
            self._nodes[page_no] = _Node(offsets, gtids, children, _logged_up_to(gtids))
        return self._nodes[page_no]

    def page(self, number: int) -> tuple[int, bytes]:
        """Flags of a page, and what is in it."""
        offset = number * self._page_size
        data = self._read(offset, self._page_size)
        if len(data) < self._page_size:
            raise self._error(offset, "the index ends inside this page")
        end = self._page_size - CHECKSUM.size
        if CHECKSUM.unpack_from(data, end)[0] != zlib.crc32(data[:end]):
            raise self._error(offset, "the checksum of this page is wrong")
        start = 0 if number else FILE_HEADER.size
        flags = data[start]
        return flags, data[start + PAGE_HEADER_SIZE : end]

    def damage(self, page_no: int, problem: str) -> ClassicFormatError:
        """What to raise for a page."""
        return self._error(page_no * self._page_size, problem)

    def _error(self, offset: int, problem: str) -> ClassicFormatError:
        return ClassicFormatError(self._name, offset, problem)

    def _first_place(self) -> FoundPlace:
        """That of the state with which the file begins."""
        node = self._node(0)
        if not node.offsets:
            raise self._error(0, "an index without a first record")
        return FoundPlace(node.offsets[0], node.gtids[0])

    def _root(self) -> int:
        """The number of the first page of the last node."""
        number = self._page_count - 1
        flags, _ = self.page(number)
        if not flags & IS_ROOT or not flags & IS_LAST:
            raise self._error(number * self._page_size, "no root: the index is not finished")
        while flags & IS_CONTINUED and number:
            number -= 1
            flags, _ = self.page(number)
        return number


def _log(logged: dict[tuple[int, int], Gtid], gtids: Iterable[Gtid]) -> bool:
    """Note GTIDs, those of a pair that was logged last last; whether the numbers of each pair have grown."""
    has_grown = True
    for gtid in gtids:
        pair = gtid.domain_id, gtid.server_id
        before = logged.pop(pair, None)
        has_grown &= before is None or before.seq_no < gtid.seq_no
        logged[pair] = gtid
    return has_grown


def _logged_up_to(records: Iterable[Sequence[Gtid]]) -> list[tuple[Gtid, ...]] | None:
    """As `_Node` has it; None also for very many pairs."""
    logged: dict[tuple[int, int], Gtid] = {}
    found: list[tuple[Gtid, ...]] = []
    size = 0
    for gtids in records:
        if not _log(logged, gtids) or (size := size + len(logged)) > LOGGED_MAX:
            return None
        found.append(tuple(logged.values()))
    return found


class _Records:
    """The records of one node, in order."""

    def __init__(self, index: GtidIndex, first_page: int) -> None:
        self._index = index
        self._page_no = first_page
        flags, self._data = index.page(first_page)
        self._flags, self._position = flags, 0
        self.is_leaf = bool(flags & IS_LEAF)
        self._bytes = 0

    def __iter__(self) -> Iterator[tuple[int, list[Gtid]]]:
        while True:
            if not self._has(RECORD.size):
                return
            count, offset = RECORD.unpack(self._take(RECORD.size))
            if not count:
                return
            gtids = []
            for _ in range(count - 1):
                domain_id, server_id, seq_no = GTID.unpack(self._take(GTID.size))
                gtids.append(Gtid(domain_id=domain_id, server_id=server_id, seq_no=seq_no))
            yield offset, gtids

    def child(self) -> int:
        """The page of the child that comes next."""
        (number,) = CHILD.unpack(self._take(CHILD.size))
        if not number:
            raise self._index.damage(self._page_no, "a page number is missing")
        return int(number) - 1

    def _has(self, size: int) -> bool:
        """Whether there is room for something of a size: in this page, or the next of the node."""
        return self._position + size <= len(self._data) or not self._flags & IS_LAST

    def _take(self, size: int) -> bytes:
        if self._position + size > len(self._data):
            if self._flags & IS_LAST or self._bytes > NODE_BYTES_MAX:
                raise self._index.damage(self._page_no, "a record leaves its node")
            self._page_no, self._position = self._page_no + 1, 0
            self._flags, self._data = self._index.page(self._page_no)
            if not self._flags & IS_CONTINUED:
                raise self._index.damage(self._page_no, "a record leaves its node")
            self._bytes += len(self._data)
        start = self._position
        self._position += size
        return self._data[start : self._position]
