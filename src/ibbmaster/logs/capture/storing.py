"""Stores the groups of a dump, from the bytes of its packets: whole, in order, each durable before it is acknowledged.

A sync is for all that has come by then: it is done before this waits for more bytes, or after many groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from ibbmaster.errors import GtidOrderError, StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.replication.event.control import decode_rotate
from ibbmaster.replication.event.gtid_event import GTID_EVENT_SIZE_MIN, decode_gtid
from ibbmaster.replication.event.header import (
    EVENT_HEADER_SIZE,
    FLAGS_OFFSET,
    LOG_POS_OFFSET,
    LOG_POS_SIZE,
    EventHeader,
    decode_event_header,
)
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.codec.buffer import Buffer
from .byte_pipe import BytePipe
from .client import PacketWindow, dumped, groups_of

GROUPS_PER_SYNC = 4096
NO_POS = bytes(LOG_POS_SIZE)  # places in files of the primary say nothing here


class GroupStore(Protocol):
    """The log that follows, see `BinlogStore`."""

    @property
    def current_state(self) -> GtidState: ...
    def state(self) -> GtidState: ...
    def write_direct_ordered(self, gtid: Gtid | None, gtid_event: Buffer, body: Iterable[Buffer]) -> Any: ...
    def group_commit_ordered(self, last: Any) -> None: ...
    def sync(self) -> None: ...


class BulkStore(Protocol):
    """What stores many groups in one piece, see `GroupConverter`."""

    group_count: int
    last_at: int
    answer_at: int
    is_cut: bool
    ticket: Any

    def take(self, window: PacketWindow, is_known: Callable[[int], bool]) -> Sequence[Gtid]: ...


class Acknowledgement(NamedTuple):
    """The place in its log that a primary with semi-synchronous replication waits for."""

    file_name: bytes
    position: int


class Stored(NamedTuple):
    """What has become durable since the last time."""

    groups: int = 0
    last_gtid: Gtid | None = None
    last_timestamp: int = 0
    acknowledgements: tuple[Acknowledgement, ...] = ()
    is_at_end: bool = False  # the primary has nothing more


class EndedError(Exception):
    """Nothing more comes."""


def expect_newer(state: GtidState, gtid: Gtid) -> None:
    """Raises GtidOrderError: a server has gone back in its numbers. Then a position does not say what comes after it:
    MariaDB looks for the first number of that server that is as high. Numbers of several servers in a domain may
    cross."""
    last = state.seq_no(gtid.domain_id, gtid.server_id)
    if last is not None and gtid.seq_no <= last:
        raise GtidOrderError(
            f"the primary sends {gtid}, and this log has {gtid.domain_id}-{gtid.server_id}-{last} already: a server "
            "that goes back in its numbers (gtid_strict_mode=OFF) cannot be followed exactly; nothing was logged"
        )


class StoredDump:
    """Stores one dump, and calls `report` with what has become durable."""

    def __init__(
        self, store: GroupStore, bulk: BulkStore | None, pipe: BytePipe, report: Callable[[Stored], None]
    ) -> None:
        self._store = store
        self._bulk = bulk
        self._pipe = pipe
        self._report = report
        self._file_name = b""  # of the primary
        self._is_inside = False
        self._ticket: Any = None  # of the last group that is not durable yet
        self._stored = Stored()

    def run(self, *, has_checksums: bool, has_heads: bool) -> bool:
        """Store what comes; whether the primary has ended the dump. Raises EventError: the primary sends something
        else than events; SourceError, pymysql.Error: it refuses; StoreError: the log cannot be written."""
        last = 0, False

        def events() -> Iterator[tuple[EventHeader, bytes]]:
            nonlocal last
            for header, event, is_wanted in dumped(
                self._receive, has_checksums=has_checksums, has_heads=has_heads, take=self._take
            ):
                if header.event_type == EventType.ROTATE:
                    self._file_name = decode_rotate(event).file_name.encode(errors="surrogateescape")
                elif header.event_type == EventType.HEARTBEAT and not self._is_inside:
                    # A commit may wait for a group that was stored before this connection, and is not sent again.
                    confirmed = Acknowledgement(event[EVENT_HEADER_SIZE:], header.log_pos)
                    self._commit((confirmed,) if has_heads else (), is_at_end=True)
                last = header.log_pos, is_wanted
                yield header, b"".join((event[:LOG_POS_OFFSET], NO_POS, event[FLAGS_OFFSET:]))

        try:
            for group in groups_of(events()):
                assert group.gtid is not None
                self._is_inside = True
                expect_newer(self._store.current_state, group.gtid)
                ticket = self._store.write_direct_ordered(group.gtid, group.gtid_event, group.body)
                self._is_inside = False
                position, is_wanted = last
                wanted = (Acknowledgement(self._file_name, position),) if is_wanted else ()
                self._note(1, group.gtid, group.gtid_event, ticket, wanted)
            self._commit()
            return True
        except EndedError:
            return False
        except StoreError:
            raise
        except BaseException:
            self._commit()  # what came before
            raise

    def _receive(self) -> bytes:
        if self._pipe.is_empty:
            self._commit()
        data = self._pipe.next()
        if not data:
            raise EndedError
        return data

    def _take(self, window: PacketWindow) -> bool:
        if self._is_inside or self._bulk is None or not window.may_begin_group():
            return False
        before = self._bulk.group_count
        try:
            taken = self._bulk.take(window, lambda domain_id: True)
        except EndedError:
            return False  # the reference says what is wrong with the rest, if something is
        if taken:
            window.is_cut = self._bulk.is_cut
            at = self._bulk.last_at
            event = bytes(window.block[at : at + GTID_EVENT_SIZE_MIN])
            gtid, _ = decode_gtid(decode_event_header(event), event)
            wanted: tuple[Acknowledgement, ...] = ()
            if at := self._bulk.answer_at:  # the primary takes it for all before, too
                log_pos = window.block[at + LOG_POS_OFFSET : at + FLAGS_OFFSET]
                wanted = (Acknowledgement(self._file_name, int.from_bytes(log_pos, "little")),)
            self._note(self._bulk.group_count - before, gtid, event, self._bulk.ticket, wanted)
        return bool(taken)

    def _note(
        self, count: int, gtid: Gtid, event: Buffer, ticket: Any, wanted: tuple[Acknowledgement, ...] = ()
    ) -> None:
        self._ticket = ticket
        timestamp = int.from_bytes(event[:4], "little")
        before = self._stored
        self._stored = Stored(before.groups + count, gtid, timestamp, before.acknowledgements + wanted)
        if self._stored.groups >= GROUPS_PER_SYNC:
            self._commit()

    def _commit(self, confirmed: tuple[Acknowledgement, ...] = (), *, is_at_end: bool = False) -> None:
        """Make durable what is stored, and report it, perhaps with places in the log of the primary before which all is
        stored."""
        stored, self._stored = self._stored, Stored()
        if stored.groups:
            self._store.group_commit_ordered(self._ticket)
        if stored.acknowledgements or confirmed:
            self._store.sync()  # whatever durability the log has
        if stored.groups or confirmed or is_at_end:
            acknowledgements = stored.acknowledgements + confirmed
            self._report(stored._replace(acknowledgements=acknowledgements, is_at_end=is_at_end))
