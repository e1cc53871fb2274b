"""Readers of a store that is written meanwhile, and of the stream a replica would get of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ibbmaster.errors import IbbMasterError
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.primary.streaming.source import BlockSource
from ibbmaster.replication.dump.request import DumpRequest
from ibbmaster.replication.event.types import EventType
from ibbmaster.replication.wire.packet import PacketReader
from tests.machinery.dump_sessions import session_of
from tests.machinery.events import split_events
from tests.machinery.ledger import GtidKey
from tests.machinery.log_checker import CheckError, FoundLog

if TYPE_CHECKING:
    from tests.machinery.life import Life

ARTIFICIAL = {EventType.ROTATE, EventType.FORMAT_DESCRIPTION, EventType.HEARTBEAT, EventType.GTID_LIST}
TYPE_OFFSET = 4
WAIT_S = 0.02


class StreamReader:
    """Reads everything from the oldest file on, as a library does or, with `is_replica`, as a server's dump."""

    def __init__(self, life: Life, *, is_replica: bool) -> None:
        self._life = life
        self._is_replica = is_replica
        self._keys: list[GtidKey] = []  # since the log was begun, or reset

    def run(self) -> None:
        while True:
            ledger = self._life.ledger
            reset_count = ledger.reset_count - (ledger.doomed is not None)  # one that continues counts as a later one
            self._keys = []
            try:
                for key, events, file_no in self._dump() if self._is_replica else self._groups():
                    self._take(key, events, file_no)
                return
            except (IbbMasterError, KeyError):
                if ledger.reset_count == reset_count and self._keys:
                    raise
                if self._life.is_complete and self._life.has_failed and ledger.doomed is not None:
                    return  # there is no log any more: the disk has failed in the middle of a reset
                self._life.scheduler.wait("the log after a reset", lambda: False, WAIT_S)

    def check_complete(self, found: FoundLog) -> None:
        """Whether this has read what the log holds: all of it, but for what was purged of one or the other."""
        keys = [group.gtid for group in found.groups]
        count = min(len(keys), len(self._keys))
        if self._keys[len(self._keys) - count :] != keys[len(keys) - count :]:
            raise CheckError(f"a reader has got {self._keys[-5:]}, and the log ends with {keys[-5:]}")

    def check_durable(self) -> None:
        """Whether this has read all that was acknowledged as durable: of a log that is written no further."""
        ledger = self._life.ledger
        if ledger.doomed is not None:
            return
        for fed in ledger.required(is_kill=False):
            is_purged = fed.file_no is not None and fed.file_no < ledger.purge_to
            if fed.key not in self._keys and not (is_purged or fed.is_gone or fed.may_be_gone):
                raise CheckError(f"a reader has not got group {fed.key}, which was acknowledged")

    def _take(self, key: GtidKey, events: bytes, file_no: int | None) -> None:
        fed = self._life.ledger.fed.get(key)
        if fed is None or _comparable(events) != _comparable(fed.events):
            raise CheckError(f"a reader has got group {key}, which was not fed so: {len(events)} bytes")
        if key in self._keys:
            raise CheckError(f"a reader has got group {key} twice")
        self._keys.append(key)
        fed.is_sent = True
        if fed.file_no is None and not fed.may_be_gone:
            fed.file_no = file_no

    def _groups(self) -> Iterator[tuple[GtidKey, bytes, int | None]]:
        life, store = self._life, self._life.store
        reader = store.groups(store.start_of_file())
        while True:
            is_complete = life.is_complete
            group = reader.next_group()
            if group is None:
                if is_complete:
                    return
                store.wait_for_growth(WAIT_S)
                continue
            assert group.gtid is not None
            key = (group.gtid.domain_id, group.gtid.server_id, group.gtid.seq_no)
            yield key, bytes(group.gtid_event) + b"".join(map(bytes, group.body)), group.start.file_no

    def _dump(self) -> Iterator[tuple[GtidKey, bytes, int | None]]:
        life, store = self._life, self._life.store
        position = store.start_of_file().state.position()
        request = DumpRequest(
            replica_server_id=9, position=position, capability=4, wants_annotate_rows=True, heartbeat_period_s=0.05
        )
        session, plan = session_of(store, request)
        source = BlockSource(store.groups(plan), session, SharedBlocks())
        stream = _Stream()
        session.start()
        stream.packets.receive_data(session.data_to_send())
        generation = 0
        while True:
            is_complete = life.is_complete
            block = source.next_block(generation, may_wait=False)
            if block is None:
                block = source.next_block(generation, may_wait=True)
                source.end_probe()
            assert block is not None
            size = len(block)
            stream.packets.receive_data(block.data())
            for key, events in stream.groups():
                yield key, events, None
            if size:
                session.sent()
            elif session.error is not None or session.is_finished:  # a reset ends it in order
                raise IbbMasterError(str(session.error or "the dump has ended"))
            elif source.is_at_end:
                if is_complete:
                    break
                session.reached_end(now=life.scheduler.now)
                generation += store.wait_for_growth(WAIT_S)
                generation += 1  # others may have taken the growth for themselves
                session.advance_clock(now=life.scheduler.now)
        for key, events in stream.rest():
            yield key, events, None


class _Stream:
    def __init__(self) -> None:
        self.packets = PacketReader(limit=1 << 26, next_sequence=1)
        self._group: bytearray | None = None

    def groups(self) -> Iterator[tuple[GtidKey, bytes]]:
        """Those whose end is known, as another one has begun."""
        while (payload := self.packets.next_payload()) is not None:
            if payload[0]:
                continue  # EOF or an error; the session reports it, too
            event = payload[1:]
            if event[TYPE_OFFSET] == EventType.GTID:
                yield from self.rest()
                self._group = bytearray(event)
            elif event[TYPE_OFFSET] not in ARTIFICIAL:
                if self._group is None:
                    raise CheckError(f"an event of type {event[TYPE_OFFSET]} before any group")
                self._group += event

    def rest(self) -> Iterator[tuple[GtidKey, bytes]]:
        if self._group is not None:
            events, self._group = bytes(self._group), None
            seq_no, domain_id = int.from_bytes(events[19:27], "little"), int.from_bytes(events[27:31], "little")
            yield (domain_id, int.from_bytes(events[5:9], "little"), seq_no), events


def _comparable(events: bytes) -> bytes:
    """Events without their `log_pos`, which the server counts anew."""
    return b"".join(event[:13] + bytes(4) + event[17:] for event in split_events(events))
