"""Many dumps that wait at the end of a log: each gets what it would get alone, whoever gets it first."""

import contextlib
import random
import socket
import ssl
from collections import Counter

import pytest
import trio
import trio.testing

from ibbmaster.kernel import loading
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.primary.server import dumping
from ibbmaster.primary.server.certificate import make_certificate
from ibbmaster.primary.server.client_stream import PlainStream, Sender
from ibbmaster.primary.server.dumping import DumpSender, LogEnd
from ibbmaster.primary.server.tls_stream import TlsStream
from ibbmaster.primary.streaming import shared
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.primary.streaming.source import BlockSource
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.events import XID_EVENT, make_event, new_group
from tests.machinery.sent_counter import SentCounter

EOF = bytes.fromhex("fe00000200")
TLS_EACH = 5  # of so many dumps the first is encrypted
REQUESTS = [{}, {"has_semi_sync": True}, {"wants_annotate_rows": False}]


class Store(BinlogStore):
    def __init__(self, directory) -> None:
        super().__init__(RealDisk(directory), StoreOptions(max_file_bytes=1 << 20, redo_bytes=16 << 20))
        self.seq_no = 0

    def commit(self, size: int, *, events: int = 1) -> None:
        self.seq_no += 1
        body = [make_event(160, 1, b"SELECT 1"), *[make_event(23, 1, bytes(size))] * events, XID_EVENT]
        self.write_direct(*new_group(self.seq_no, *body, domain_id=self.seq_no % 2))


class Waiting:
    """Dumps of one log that wait; those of `lazy` do not read until they are asked to."""

    def __init__(self, make, store, count: int, *, heartbeat_s: float = 0.0, requests=REQUESTS) -> None:
        self.store = store
        self.log_end = LogEnd()
        self.shared = SharedBlocks()
        self.counters = [SentCounter() if number % 3 == 2 else None for number in range(count)]
        self.dumps = []
        for number in range(count):
            dump = make(store, heartbeat_s=heartbeat_s, jump=lambda: None, **requests[number // 2 % len(requests)])
            dump.log_end = self.log_end
            groups = store.groups(store.seek(dump.session._request.position))
            dump._source = BlockSource(groups, dump.session, self.shared)
            self.dumps.append(dump)
        self.sinks = {}
        self.lazy: set[int] = set()
        self.reading = trio.Event()

    @contextlib.asynccontextmanager
    async def running(self, run=None):
        """All of them, until each has been ended."""
        async with trio.open_nursery() as nursery:
            for number in range(len(self.dumps)):
                nursery.start_soon(run or self.run, number)
            yield

    async def run(self, number: int) -> None:
        dump = self.dumps[number]
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 15)
        streams = [trio.SocketStream(trio.socket.from_stdlib_socket(one)) for one in (ours, theirs)]
        async with streams[0], streams[1], trio.open_nursery() as nursery:
            limiter = trio.CapacityLimiter(1)
            nursery.start_soon(self._receive, number, self._client(number, streams[1]))
            sender = Sender(await self._secured(number, streams[0], limiter))
            self.sinks[number] = sender.sink
            with contextlib.closing(dump._source), self.log_end.reading():
                counter = self.counters[number]
                one = DumpSender(dump._source, dump.session, self.log_end, dump.connection, sender, counter)
                await one.begin()
                await one.run(limiter)
            await streams[0].aclose()

    def _client(self, number: int, stream: trio.SocketStream) -> trio.abc.ReceiveStream:
        if number % TLS_EACH:
            return stream
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return trio.SSLStream(stream, context, https_compatible=True)  # which may just end

    async def _secured(self, number: int, stream: trio.SocketStream, limiter: trio.CapacityLimiter):
        if number % TLS_EACH:
            return PlainStream(stream)
        secured = TlsStream(stream, make_certificate().context, limiter)
        await secured.do_handshake()
        return secured

    async def _receive(self, number: int, stream: trio.abc.ReceiveStream) -> None:
        async for data in stream:
            self.dumps[number].stream += data
            if number in self.lazy:
                await self.reading.wait()

    def go_on(self) -> None:
        self.reading.set()
        self.reading = trio.Event()

    async def grow(self, size: int | None = None) -> None:
        """Have all that read get what is new, and a group of this size first."""
        if size is not None:
            await trio.to_thread.run_sync(self.store.commit, size)
        for number, dump in enumerate(self.dumps):
            if number not in self.lazy:
                await dump.wait_until_idle()
        self.log_end.announce()
        for number, dump in enumerate(self.dumps):
            await trio.testing.wait_all_tasks_blocked()
            if number not in self.lazy:
                await dump.wait_until_idle()

    async def end(self) -> None:
        self.lazy.clear()
        self.reading.set()
        for dump in self.dumps:
            await dump.wait_until_idle()
        for dump in self.dumps:
            dump.end()


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path) as store:
        store.commit(100)
        yield store


@pytest.fixture
def steps(monkeypatch):
    """How many dumps took the step of another, and what was asked of sources meanwhile."""
    assert loading.load() is not None
    monkeypatch.setattr(shared, "kernels", loading.load)
    count, send, next_block = Counter(), dumping.Crowd.send, BlockSource.next_block

    def sent(self, step):
        count["steps"] += len(self)
        return send(self, step)

    def asked(self, *args, **options):
        count["asked"] += 1
        return next_block(self, *args, **options)

    monkeypatch.setattr(dumping.Crowd, "send", sent)
    monkeypatch.setattr(BlockSource, "next_block", asked)
    return count


def type_of(payload: bytes) -> int:
    """The type of its event, with the header of semi-synchronous replication or without; -1 for none."""
    if payload[0]:
        return -1
    return payload[5 + (2 if payload[1] == 0xEF else 0)]


def without_heartbeats(payloads: list[bytes]) -> list[bytes]:
    return [bytes(payload) for payload in payloads if type_of(payload) != EventType.HEARTBEAT]


async def alone(waiting_dump, store, **request) -> list[bytes]:
    dump = waiting_dump(store, heartbeat_s=0.0, jump=lambda: None, **request)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(dump.run)
        await dump.wait_until_idle()
        dump.end()
    return without_heartbeats(dump.payloads())


@pytest.mark.parametrize("seed", range(4))
async def test_each_of_many_gets_what_one_alone_gets(waiting_dump, mock_clock, monkeypatch, store, steps, seed):
    rng = random.Random(seed)
    waiting = Waiting(waiting_dump, store, 14, heartbeat_s=5.0)
    async with waiting.running():
        for round_no in range(90):
            for _ in range(rng.choice([1, 1, 1, 1, 3])):
                size, events = rng.choice([(50, 1), (50, 1), (9000, 1), (100, 40), (50_000, 1)])
                await trio.to_thread.run_sync(lambda size=size, events=events: store.commit(size, events=events))
            if round_no == 30:
                waiting.lazy = {3, 8}
            if round_no == 60:
                waiting.lazy = set()
                waiting.reading.set()
            if rng.random() < 0.2:
                mock_clock.jump(rng.choice([1.0, 6.0]))
            await waiting.grow()
        await waiting.end()
    monkeypatch.setattr(shared, "kernels", lambda: None)
    expected = [await alone(waiting_dump, store, **request) for request in REQUESTS]
    for number, dump in enumerate(waiting.dumps):
        payloads = dump.payloads()  # whose numbers follow each other
        assert payloads[-1] == EOF
        assert without_heartbeats(payloads) == expected[number // 2 % len(REQUESTS)]
        counter = waiting.counters[number]
        assert counter is None or counter.sent_bytes == len(dump.stream)
    assert steps["steps"] > 300


async def test_small_groups_are_asked_for_by_one_of_each_kind(waiting_dump, store, steps):
    rounds, count = 3 * dumping.STEPS_MIN, 24
    waiting = Waiting(waiting_dump, store, count)
    async with waiting.running():
        await waiting.grow()
        steps.clear()
        for _ in range(rounds):
            await waiting.grow(100)
        assert steps["steps"] > 0.8 * rounds * (count - len(REQUESTS))
        await waiting.end()


async def test_heartbeats_come_a_period_after_the_last_group_and_name_its_end(waiting_dump, mock_clock, store, steps):
    waiting = Waiting(waiting_dump, store, 10, heartbeat_s=5.0, requests=[{}])
    async with waiting.running():
        await waiting.grow()
        for _ in range(10):
            mock_clock.jump(3.0)  # less than a period
            await trio.testing.wait_all_tasks_blocked()
            for _ in range(3):
                await waiting.grow(100)
        assert steps["steps"] > 100
        kinds = [Counter(map(type_of, dump.payloads())) for dump in waiting.dumps]
        assert not any(kind[EventType.HEARTBEAT] for kind in kinds)
        end = store.end()
        mock_clock.jump(5.1)
        await trio.testing.wait_all_tasks_blocked()
        for dump in waiting.dumps:
            await dump.wait_until_idle()
            assert type_of(dump.payloads()[-1]) == EventType.HEARTBEAT
            assert dump.session._position == end
        await waiting.end()


async def test_after_a_heartbeat_they_wait_where_they_are_and_not_each_alone(waiting_dump, mock_clock, store, steps):
    count = 24
    waiting = Waiting(waiting_dump, store, count, heartbeat_s=5.0, requests=[{}])
    async with waiting.running():
        await waiting.grow()
        mock_clock.jump(5.1)
        await trio.testing.wait_all_tasks_blocked()
        for dump in waiting.dumps:
            await dump.wait_until_idle()
        steps.clear()
        await waiting.grow(100)
        without_stage = waiting.counters.count(None)  # those with one are woken if they come first
        assert steps["steps"] >= without_stage - 1
        await waiting.end()


@pytest.mark.parametrize("is_cut", [True, False], ids=["cut off", "ended"])
async def test_who_is_ended_before_the_log_grows_gets_nothing_more(waiting_dump, store, steps, is_cut):
    """Though its task has not run yet: who cuts it off may close its socket."""
    waiting = Waiting(waiting_dump, store, 4, requests=[{}])
    scopes = [trio.CancelScope() for _ in waiting.dumps]

    async def run(number: int) -> None:
        with scopes[number]:
            await waiting.run(number)

    async with waiting.running(run):
        for _ in range(3):
            await waiting.grow(100)
        one = waiting.dumps[2]
        before = one.payloads()
        await trio.to_thread.run_sync(store.commit, 100)
        for dump in waiting.dumps:
            await dump.wait_until_idle()
        steps.clear()
        if is_cut:
            scopes[2].cancel()
        else:
            one.end()
        waiting.log_end.announce()
        await trio.testing.wait_all_tasks_blocked()
        assert steps["steps"] >= 2
        assert one.payloads() == (before if is_cut else [*before, EOF])
        for dump in waiting.dumps:
            if dump is not one:
                await dump.wait_until_idle()
                dump.end()
    assert len(waiting.dumps[0].payloads()) > len(before) + 1


async def test_what_fails_where_the_log_grows_is_met_by_each_dump(waiting_dump, store, steps):
    waiting = Waiting(waiting_dump, store, 3, requests=[{}])
    failed = []

    async def run(number: int) -> None:
        try:
            await waiting.run(number)
        except* OSError as errors:
            failed.append(errors)

    def fail() -> bool:
        raise OSError("no such disk")

    async with waiting.running(run):
        await waiting.grow()
        waiting.log_end.is_over = fail
        waiting.log_end.announce()
    assert len(failed) == 3


async def test_a_stage_that_fails_ends_its_own_dump_and_no_other(waiting_dump, monkeypatch, store, steps):
    waiting = Waiting(waiting_dump, store, 6, requests=[{}])
    failed = []

    def fail(*_) -> None:
        raise OSError("no such stage")

    async def run(number: int) -> None:
        try:
            await waiting.run(number)
        except* OSError:
            failed.append(number)

    async with waiting.running(run):
        for _ in range(3):
            await waiting.grow(100)
        monkeypatch.setattr(waiting.counters[5], "pass_on", fail)
        await trio.to_thread.run_sync(store.commit, 100)
        waiting.log_end.announce()
        await trio.testing.wait_all_tasks_blocked()
        assert failed == [5]
        for dump in waiting.dumps[:5]:
            await dump.wait_until_idle()
            dump.end()
    assert len({tuple(dump.payloads()) for dump in waiting.dumps[:5]}) == 1


async def test_one_that_has_to_wait_for_its_socket_goes_on_where_it_was_cut(waiting_dump, store, steps):
    waiting = Waiting(waiting_dump, store, TLS_EACH + 1)
    async with waiting.running():
        await waiting.grow()
        waiting.lazy = {1, TLS_EACH}
        for _ in range(40):
            await waiting.grow(9000)
        for number in waiting.lazy:
            assert len(waiting.dumps[number].stream) < len(waiting.dumps[number - 1].stream)
        await waiting.end()
    for number in (1, TLS_EACH):
        assert waiting.dumps[number].payloads() == waiting.dumps[number - 1].payloads()


@pytest.mark.parametrize("number", [0, TLS_EACH], ids=["who leads", "another"])
async def test_what_is_encrypted_and_not_taken_goes_out_though_nothing_follows(waiting_dump, store, steps, number):
    waiting = Waiting(waiting_dump, store, number + 1, requests=[{}])
    async with waiting.running():
        while len(waiting.log_end) <= number or len(waiting.log_end._crowds) > 1:
            await trio.to_thread.run_sync(store.commit, 100)
            await waiting.grow()  # until all wait at one place
        waiting.lazy = {number}
        while waiting.sinks[number].is_flushed:
            await waiting.grow(9000)
        waiting.lazy.clear()
        waiting.reading.set()
        while not waiting.sinks[number].is_flushed:
            await trio.lowlevel.checkpoint()
        await waiting.end()
    expected = await alone(waiting_dump, store)
    assert without_heartbeats(waiting.dumps[number].payloads()) == expected


async def test_what_a_thread_encrypted_goes_out_though_the_log_ends_there(waiting_dump, tmp_path, monkeypatch, steps):
    pump, left = BlockSource.pump, []

    def pump_to_one_who_does_not_read(source, sink):
        waiting.lazy = {0}
        try:
            found = pump(source, sink)
            left.append((len(found[0]), sink.is_flushed))
            return found
        finally:
            waiting.lazy.clear()
            trio.from_thread.run_sync(waiting.go_on)

    monkeypatch.setattr(BlockSource, "pump", pump_to_one_who_does_not_read)
    with Store(tmp_path) as store:
        for _ in range(60):
            store.commit(9000)
        waiting = Waiting(waiting_dump, store, 1, requests=[{}])
        async with waiting.running():
            await waiting.dumps[0].wait_until_idle()
            assert (0, False) in left
            while not waiting.sinks[0].is_flushed:
                await trio.lowlevel.checkpoint()
            await waiting.end()
        expected = await alone(waiting_dump, store)
    assert without_heartbeats(waiting.dumps[0].payloads()) == expected


async def test_parts_of_a_group_under_way_are_passed_by_all_that_wait(waiting_dump, store, steps):
    waiting = Waiting(waiting_dump, store, 6, requests=[{}])
    under_way = store.open_group()

    def commit_behind_parts() -> None:
        under_way.write(make_event(23, 1, bytes(70_000)))
        store.commit(100)

    async with waiting.running():
        await waiting.grow()
        for _ in range(2 * dumping.STEPS_MIN):
            await trio.to_thread.run_sync(commit_behind_parts)
            await waiting.grow()
        await waiting.end()
    under_way.abandon()
    expected = await alone(waiting_dump, store)
    assert steps["steps"] > 0
    for dump in waiting.dumps:
        assert without_heartbeats(dump.payloads()) == expected
