"""A model of the served stream: many dumps of a log that grows, under a clock and a schedule that follow from a seed.

Whatever falls due, is killed, cut or purged meanwhile, each replica gets every group of the
log that it lacks, once, in order, in one piece and byte by byte, and nothing else inside one.
"""

import contextlib
import random
import ssl
import sys
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ibbmaster.errors import PositionPurgedError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.kernel import loading
from ibbmaster.logs.log.purge import PurgeRequest
from ibbmaster.logs.store.store_options import Durability, StoreOptions
from ibbmaster.primary.server.certificate import make_certificate
from ibbmaster.primary.server.client_stream import PlainStream, Sender
from ibbmaster.primary.server.dumping import DumpSender, LogEnd
from ibbmaster.primary.server.registry import EndReason, Registry, Session
from ibbmaster.primary.server.tls_stream import TlsStream
from ibbmaster.primary.streaming import block_cache, shared
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.primary.streaming.source import BlockSource
from ibbmaster.replication.dump.error import DumpError
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.dump.request import DumpRequest
from ibbmaster.replication.dump.session import DumpSession
from ibbmaster.replication.event.types import EventType
from ibbmaster.replication.wire.packet import PacketReader
from tests.machinery.dump_sessions import session_of
from tests.machinery.random_log import MARKED, GroupFeeder
from tests.machinery.stores import new_store

PAGE_SIZE = 16384
SIZES = (0, 30, 300, 3000, PAGE_SIZE, 70_000, 300_000)
ANNOTATE, ROWS, XID = EventType.ANNOTATE_ROWS, EventType.WRITE_ROWS_V1, EventType.XID
OF_GROUPS = {EventType.GTID, ANNOTATE, ROWS, XID}
EOF = bytes.fromhex("fe00000200")
SAMPLE = 8  # seeds of a short run
STEPS = 40


def new_feeder(directory, rng):
    options = StoreOptions(
        durability=Durability.LATER,
        max_file_bytes=rng.choice([8, 24, 96]) * PAGE_SIZE,
        state_interval_bytes=rng.choice([2, 8, 256]) * PAGE_SIZE,
        oob_piece_bytes=40_000,
        spill_bytes=rng.choice([20_000, 60_000]),
        redo_bytes=8 << 20,
    )
    return GroupFeeder(new_store(directory, options), rng, SIZES)


@dataclass(eq=False)
class Replica:
    server_id: int
    profile: str
    options: dict[str, Any]
    position: dict[int, Gtid]
    until: dict[int, Gtid] | None
    transport: str
    received: int = 0  # groups of those it must get
    heartbeats: int = 0
    connection: Session | None = None  # while it is connected
    session: DumpSession | None = None
    was_ended: bool = False  # by the server, before its UNTIL
    is_lost: bool = False  # what it needs was purged
    cut_after: int | None = None  # bytes of this connection
    start: dict[int, Gtid] = field(default_factory=dict)  # where it began, to say what it must get

    def must_get(self, groups):
        """What of the log it lacks at its first connection."""
        left = None if self.until is None else dict(self.until)
        if left is not None:
            left = {d: g for d, g in left.items() if d not in self.start or self.start[d].seq_no < g.seq_no}
        for gtid, events in groups:
            if left is not None and not left:
                return
            limit = None if left is None else left.get(gtid.domain_id)
            is_new = gtid.domain_id not in self.start or gtid.seq_no > self.start[gtid.domain_id].seq_no
            if is_new and (left is None or limit is not None):
                yield gtid, events
            if left is not None and gtid == limit:
                del left[gtid.domain_id]

    def keeps(self, event):
        if event[4] == ANNOTATE and not self.options["wants_annotate_rows"]:
            return False
        return not (self.options["leaves_out_marked"] and int.from_bytes(event[17:19], "little") & MARKED)


class Stream:
    def __init__(self, replica, groups):
        self._replica = replica
        self._groups = groups
        self._packets = PacketReader(limit=1 << 26, next_sequence=1)
        self._events: list[bytes] = []  # of the group under way
        self._wanted: list[bytes] = []
        self._gtid: Gtid | None = None
        self.last_word: bytes | None = None
        self._log_pos = 0

    @property
    def is_inside_group(self):
        return self._gtid is not None

    def receive(self, data):
        self._packets.receive_data(data)
        while (payload := self._packets.next_payload()) is not None:
            assert self.last_word is None, "something follows the last word"
            if payload[0] == 0:
                self._take(payload[3 if self._replica.options["has_semi_sync"] else 1 :])
            else:
                assert payload == EOF or payload[0] == 0xFF
                self.last_word = payload

    def _take(self, event):
        replica = self._replica
        kind = event[4]
        if PROFILES[replica.profile].event_checksum.value and kind != EventType.FORMAT_DESCRIPTION:
            is_rotate = kind == EventType.ROTATE and event[17] & 0x20
            if not is_rotate:  # the artificial one has a checksum of its own rules
                assert zlib.crc32(event[:-4]) == int.from_bytes(event[-4:], "little")
            event = event[:9] + (len(event) - 4).to_bytes(4, "little") + event[13:-4]
        if kind not in OF_GROUPS:
            assert self._gtid is None, f"{EventType(kind).name} inside a group"
            replica.heartbeats += kind == EventType.HEARTBEAT
            return
        if replica.profile not in ("engine", "compat"):
            event = event[:13] + bytes(4) + event[17:]  # positions in files that are made up
        if self._gtid is None:
            position = replica.received
            must_get = list(self._replica.must_get(self._groups()))
            assert position < len(must_get), f"a group behind what it must get: {event[:40].hex()}"
            self._gtid, events = must_get[position]
            self._wanted = [wanted for wanted in events if replica.keeps(wanted)]
        self._events.append(event)
        index = len(self._events) - 1
        assert event == self._wanted[index], (str(self._gtid), index, event[:40].hex(), self._wanted[index][:40].hex())
        if len(self._events) == len(self._wanted):
            replica.received += 1
            replica.position[self._gtid.domain_id] = self._gtid
            self._gtid = None
            self._events.clear()


class World:
    def __init__(self, seed, directory, tls):
        self.rng = random.Random(seed)
        self.feeder = new_feeder(directory, self.rng)
        self.clock = MockClock()
        self.log_end = LogEnd()  # growth is announced by hand
        self.registry = Registry()
        self.shared = SharedBlocks()
        self.pumps = trio.CapacityLimiter(4)
        self.replicas: list[Replica] = []
        self.tls = tls
        self.kernel_chance = self.rng.choice([0.0, 0.02, 0.3, 1.0])  # of each look whether they are ready
        self._ready = loading.load()
        self._count = 0

    def kernels(self, *parts):
        """They may become ready at any moment, also in the middle of a group."""
        return self._ready if self.rng.random() < self.kernel_chance else None

    async def in_a_thread(self, work, *arguments, **_):
        """As `trio.to_thread.run_sync`, in this thread: others have turns before and after, and time passes."""
        await self.pause()
        result = work(*arguments)
        await self.pause()
        return result

    async def pause(self):
        if self.rng.random() < 0.3:
            self.clock.jump(self.rng.choice([0.0005, 0.002, 0.03, 1.5]))
        for _ in range(self.rng.randrange(3)):
            await trio.lowlevel.checkpoint()

    def feed(self):
        for _ in range(self.rng.randrange(1, 9)):
            self.feeder.step()
        self.feeder.store.sync()
        if self.rng.random() < 0.3:
            self.feeder.store.checkpoint()

    # What happens

    async def run(self):
        async with trio.open_nursery() as nursery:
            for _ in range(self.rng.choice([1, 2, 6, 10])):
                self.add_replica()
            for _ in range(STEPS):
                await self.step(nursery)
            await self.bring_home(nursery)
            nursery.cancel_scope.cancel()

    async def step(self, nursery):
        rng = self.rng
        for replica in self.replicas:
            if replica.connection is None and rng.random() < 0.5:
                self.connect(replica, nursery)
        match rng.randrange(12):
            case 0 if self.connected():
                self.cut(rng.choice(self.connected()))
            case 1 if self.connected():
                replica = rng.choice(self.connected())
                replica.was_ended = True
                replica.connection.end_dump(rng.choice(list(EndReason)))
            case 2 if self.connected():
                self.registry.kill(rng.choice(self.connected()).connection.connection_id, query_only=False)
            case 3:
                self.clock.jump(rng.choice([0.001, 0.5, 5.0]))
            case 4 if rng.random() < 0.3:
                self.feeder.store.flush()
                self.log_end.announce()
            case 5 if rng.random() < 0.3:
                self.feeder.store.purge(PurgeRequest(total_bytes=1))
            case 6:
                await wait_all_tasks_blocked()
            case 7:
                self.add_replica()
            case 8 if rng.random() < 0.1:
                await self.reset()
            case _:
                self.feed()
                self.log_end.announce()
        for _ in range(rng.randrange(20)):
            await trio.lowlevel.checkpoint()

    def connected(self):
        return [replica for replica in self.replicas if replica.connection is not None]

    def cut(self, replica):
        replica.cut_after = self.rng.choice([0, 10, 3000, 100_000])

    async def reset(self):
        self.feeder.give_up_open()
        self.feeder.store.reset()
        self.feeder.groups = []
        if self.rng.random() < 0.5:
            self.feed()  # at the old places, before anybody has looked
        old, self.replicas = self.replicas, []
        self.log_end.announce()
        while any(replica.connection is not None for replica in old):
            await trio.lowlevel.checkpoint()
            self.clock.jump(0.1)
        for _ in old:
            self.add_replica()

    def add_replica(self):
        rng = self.rng
        self._count += 1
        groups = self.feeder.groups
        position: dict[int, Gtid] = {}
        if groups and rng.random() < 0.5:
            position = {gtid.domain_id: gtid for gtid, _ in groups[: rng.randrange(len(groups) + 1)]}
        until = None
        if groups and rng.random() < 0.15:
            until = {gtid.domain_id: gtid for gtid, _ in groups[: rng.randrange(1, len(groups) + 1)]}
        self.replicas.append(
            Replica(
                server_id=100 + self._count,
                profile=rng.choice(["engine"] * 4 + ["compat", "classic-11.8", "classic-10.11"]),
                options={
                    "wants_annotate_rows": rng.random() < 0.7,
                    "leaves_out_marked": rng.random() < 0.2,
                    "has_semi_sync": rng.random() < 0.2,
                    "heartbeat_period_s": rng.choice([0.0, 0.001, 0.02, 1.0, 30.0]),
                },
                position=dict(position),
                start=position,
                until=until,
                transport=rng.choice(["socket"] * 5 + ["tls"]),
            )
        )

    async def bring_home(self, nursery):
        await self.serve_all(nursery)
        waiting = {replica: (replica.connection, replica.heartbeats) for replica in self.connected()}
        self.clock.jump(30.1)
        await self.serve_all(nursery)
        for replica, (connection, heartbeats) in waiting.items():
            if replica.connection is connection and replica.options["heartbeat_period_s"]:
                assert replica.heartbeats > heartbeats, "no heartbeat in time"
        for replica in self.replicas:
            expected = len(list(replica.must_get(self.feeder.groups)))
            assert replica.is_lost or replica.received == expected, (replica.server_id, replica.received, expected)
        for replica in self.connected():
            replica.was_ended = True
            replica.connection.end_dump(EndReason.SHUTDOWN)
        while self.connected():
            await trio.lowlevel.checkpoint()

    async def serve_all(self, nursery):
        while True:
            for replica in self.replicas:
                replica.cut_after = None
                if replica.connection is None and not replica.is_lost:
                    wanted = len(list(replica.must_get(self.feeder.groups)))
                    if replica.until is None or replica.received < wanted:
                        self.connect(replica, nursery)
            await wait_all_tasks_blocked()
            if all(
                replica.is_lost
                or (replica.connection is not None and replica.connection.waiting is not None)
                or (replica.connection is None and replica.until is not None)
                for replica in self.replicas
            ):
                return
            self.clock.jump(0.01)  # who waits for a socket in vain

    async def cut_everywhere(self, cuts):
        """A new replica for each byte at which a stream can be cut, or `cuts` of them; each comes back once."""
        for _ in range(6):
            self.feed()
        async with trio.open_nursery() as nursery:
            self.add_replica()
            (whole,) = self.replicas
            whole.position, whole.start, whole.until = {}, {}, None
            whole.options["heartbeat_period_s"] = 0.0
            await self.serve_all(nursery)
            size = whole.session._framer.size_sent
            for place in sorted(self.rng.sample(range(size), min(cuts, size))):
                replica = replace(whole, position={}, received=0, connection=None, session=None)
                self.replicas = [replica]
                self.connect(replica, nursery)
                replica.cut_after = place + 1
                while replica.connection is not None and replica.cut_after != 0:
                    await trio.lowlevel.checkpoint()
                replica.connection = None  # the old dump may be there still
                await self.serve_all(nursery)
                assert replica.received == len(self.feeder.groups), place
                replica.connection.scope.cancel()
            nursery.cancel_scope.cancel()

    # One dump

    def connect(self, replica, nursery):
        replica.cut_after = None
        replica.was_ended = False
        replica.connection = self.registry.open("here", 0.0)
        nursery.start_soon(self.serve, replica)

    async def serve(self, replica):
        connection = replica.connection
        assert connection is not None
        feeder, store = self.feeder, self.feeder.store
        groups = feeder.groups
        stream, session = Stream(replica, lambda: groups), None
        try:
            if replica not in self.replicas:
                return  # it knew a log that was reset meanwhile
            request = DumpRequest(
                replica_server_id=replica.server_id,
                position=GtidPosition(replica.position.values()),
                until=None if replica.until is None else GtidPosition(replica.until.values()),
                capability=4,
                knows_checksums=True,
                **replica.options,
            )
            session, place = session_of(store, request, PROFILES[replica.profile])
            replica.session = session
            with connection.scope, contextlib.closing(BlockSource(store.groups(place), session, self.shared)) as one:
                await self.move(replica, one, session, stream)
        except (PositionPurgedError, DumpError):  # what it needs next was purged, or the log was reset
            replica.is_lost = True
        finally:
            self.registry.close(connection)
            if replica.connection is connection:
                replica.connection = None
        if session is None:
            return
        if session.error is not None and session.error.code == 1236:
            assert groups is not feeder.groups, session.error  # after a reset only: an open dump holds its files
        if stream.last_word == EOF and groups is feeder.groups:  # a reset ends it in order, too
            assert replica.was_ended or replica.until is not None
            assert replica.was_ended or replica.received == len(list(replica.must_get(groups)))

    async def move(self, replica, source, session, stream):
        connection, ours, theirs = await self.transport(replica.transport)
        gone = (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError)
        assert replica.connection is not None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.read, replica, theirs, stream, nursery.cancel_scope)
                with contextlib.suppress(*gone):
                    sender = DumpSender(source, session, self.log_end, replica.connection, Sender(ours))
                    await sender.begin()
                    await sender.run(self.pumps)
                await trio.aclose_forcefully(connection)
        finally:
            with trio.CancelScope(shield=True):
                for one in (connection, theirs):
                    await trio.aclose_forcefully(one)

    async def transport(self, kind):
        one, other = trio.socket.socketpair()
        one.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_SNDBUF, self.rng.choice([5_000, 60_000, 1 << 20]))
        connection, client = trio.SocketStream(one), trio.SocketStream(other)
        if kind == "socket":
            return connection, PlainStream(connection), client
        secure = TlsStream(connection, self.tls[0], self.pumps)
        reading = trio.SSLStream(client, self.tls[1], server_hostname="here", https_compatible=True)
        try:
            async with trio.open_nursery() as nursery:
                for stream in (secure, reading):
                    nursery.start_soon(stream.do_handshake)
        except BaseException:  # the server ended the connection
            one.close()
            other.close()
            raise
        return connection, secure, reading

    async def read(self, replica, theirs, stream, scope):
        rng = self.rng
        async with theirs:
            with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError):
                while True:
                    data = await theirs.receive_some(rng.choice([100, 5000, 1 << 20]))
                    if not data:
                        return
                    if replica.cut_after is not None:
                        data = data[: replica.cut_after]
                        replica.cut_after -= len(data)
                    stream.receive(bytes(data))
                    if replica.cut_after == 0:
                        break
                    if rng.random() < 0.05:
                        for _ in range(rng.randrange(30)):
                            await trio.lowlevel.checkpoint()
        if rng.random() < 0.7:
            scope.cancel()


@pytest.fixture(scope="module")
def tls():
    client = ssl.create_default_context()
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    return make_certificate().context, client


@pytest.fixture
def world(monkeypatch, tls, tmp_path):
    if loading.load() is None:
        pytest.fail("the kernels cannot be loaded here")
    monkeypatch.setattr(trio._core._run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
    worlds = []

    def make(seed):
        directory = tmp_path / str(seed)
        directory.mkdir()
        world = World(seed, directory, tls)
        worlds.append(world)
        monkeypatch.setattr(trio._core._run, "_r", random.Random(seed))
        monkeypatch.setattr(trio.to_thread, "run_sync", world.in_a_thread)
        monkeypatch.setattr(shared, "kernels", world.kernels)
        monkeypatch.setattr(block_cache, "READERS_OF_SHARED", world.rng.choice([1, 3, 99]))
        return world

    yield make
    for world in worlds:
        world.feeder.give_up_open()
        world.feeder.store.close()


@pytest.mark.timeout(3600)
def test_every_replica_gets_every_group_once_in_order_and_whole(world, stream_seeds):
    for seed in stream_seeds(SAMPLE):
        one = world(seed)
        trio.run(one.run, clock=one.clock)


@pytest.mark.parametrize("transport", ["socket", "tls"])
@pytest.mark.parametrize("profile", ["engine", "classic-11.8"])
def test_a_replica_that_is_cut_at_any_byte_goes_on_with_the_group_it_lacks(
    world, stream_seeds, monkeypatch, request, profile, transport
):
    monkeypatch.setattr(sys.modules[__name__], "SIZES", (0, 30, 300))
    cuts = 40 if request.config.getoption("--stream-seeds") is None else 10**6
    for seed in stream_seeds(1):
        one = world(seed)
        add = one.add_replica

        def add_like_this(one=one, add=add):
            add()
            one.replicas[-1].profile, one.replicas[-1].transport = profile, transport

        monkeypatch.setattr(one, "add_replica", add_like_this)
        trio.run(one.cut_everywhere, cuts, clock=one.clock)
