import contextlib
import dataclasses
import gc
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
import trio

from ibbmaster.kernel import loading
from ibbmaster.logs.classic import series
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.group_writer import GroupWriter
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.followed import FollowedDirectory
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.logs.store.store_reader import StoreReader
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.primary.server.client_stream import Sender
from ibbmaster.primary.server.dumping import DumpSender
from ibbmaster.primary.server.registry import EndReason
from ibbmaster.primary.streaming import block_cache, shared
from ibbmaster.primary.streaming.block import Block, plain_block
from ibbmaster.primary.streaming.large_group import LargeGroup
from ibbmaster.primary.streaming.page_blocks import PageBlocks
from ibbmaster.primary.streaming.source import BlockSource
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.dump.session import DumpSession
from ibbmaster.replication.event.control import decode_gtid_list, decode_rotate
from ibbmaster.replication.event.header import encode_event
from ibbmaster.replication.event.types import EventType
from ibbmaster.replication.wire.capability import SERVER_DEFAULT, Capability
from ibbmaster.replication.wire.handshake import decode_greeting
from ibbmaster.replication.wire.packet import PacketReader
from ibbmaster.storage.disk.local import RealDisk
from tests.damage import flip
from tests.machinery.client_wire import answer_native, decode_heartbeat
from tests.machinery.events import XID_EVENT, gtid_of, make_event, new_group
from tests.machinery.memory import resident_bytes
from tests.machinery.sent_counter import SentCounter
from tests.machinery.simulated_disk import SimulatedDisk
from tests.primary.streaming.test_sink import Doubling, First

EOF = bytes.fromhex("fe00000200")


class RawReplica:
    """A client that speaks just enough to dump, and shows every packet."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._reader = PacketReader(limit=1 << 26)

    async def packet(self) -> bytes | None:
        """The next payload; None when the server has closed."""
        while (payload := self._reader.next_payload()) is None:
            data = await self.stream.receive_some()
            if not data:
                return None
            self._reader.receive_data(data)
        return payload

    async def send(self, payload: bytes, sequence: int = 0) -> None:
        self._reader.next_sequence = sequence + 1
        await self.stream.send_all(len(payload).to_bytes(3, "little") + bytes([sequence]) + payload)

    async def log_in(self) -> None:
        greeting = decode_greeting(await self.packet())
        capabilities = SERVER_DEFAULT & ~Capability.CONNECT_ATTRIBUTES & ~Capability.CONNECT_WITH_DB
        fixed = struct.pack("<IIB23s", int(capabilities) & 0xFFFFFFFF, 1 << 24, 45, b"")
        answer = answer_native("replpw", greeting.seed)
        await self.send(fixed + b"repl\0" + bytes([len(answer)]) + answer + b"mysql_native_password\0", 1)
        assert (await self.packet())[0] == 0

    async def query(self, sql: str) -> None:
        await self.send(b"\x03" + sql.encode())
        assert (await self.packet())[0] == 0

    async def register(self, *, server_id: int = 2) -> None:
        await self.send(b"\x15" + struct.pack("<I", server_id) + bytes(3) + struct.pack("<HII", 3306, 0, 0))
        assert (await self.packet())[0] == 0

    async def dump(
        self,
        *,
        server_id: int = 2,
        flags: int = 0,
        position: str = "",
        heartbeat_s: float = 0,
        file_name: str = "",
        checksum: str | None = None,
    ) -> None:
        if checksum is not None:
            await self.query(f"SET @master_binlog_checksum='{checksum}'")
        await self.query(f"SET @mariadb_slave_capability=4, @slave_connect_state='{position}'")
        await self.query(f"SET @master_heartbeat_period={int(heartbeat_s * 1e9)}")
        await self.send(b"\x12" + struct.pack("<IHI", 4, flags, server_id) + file_name.encode())

    async def event_types(self, count: int) -> list[int]:
        return [(await self.packet())[5] for _ in range(count)]

    async def rest(self) -> list[bytes]:
        """All payloads up to an EOF, or until the server has closed."""
        payloads = []
        while (payload := await self.packet()) not in (EOF, None):
            payloads.append(payload)
        return payloads


@pytest.fixture
async def connect():
    replicas = []

    async def connect(port: int) -> RawReplica:
        replica = RawReplica(await trio.open_tcp_stream("127.0.0.1", port))
        replicas.append(replica)
        await replica.log_in()
        return replica

    yield connect
    for replica in replicas:
        await trio.aclose_forcefully(replica.stream)


@pytest.fixture
def begin(connect):
    async def begin(port: int, count: int = 0, **request) -> RawReplica:
        replica = await connect(port)
        await replica.dump(**request)
        await replica.event_types(count)
        return replica

    return begin


class Growing:
    def __init__(self, directory, *, max_file_bytes: int = 65536) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.writer = BinlogWriter(RealDisk(directory), max_file_bytes=max_file_bytes, oob_piece_bytes=16384)
        self.seq_no = 0

    def commit(self, count: int = 1, events: Iterable[bytes] = (XID_EVENT,)) -> None:
        for _ in range(count):
            self.seq_no += 1
            self.writer.write_group(*new_group(self.seq_no, *events))
        self.writer.flush()


@pytest.fixture
def growing(tmp_path):
    log = Growing(tmp_path / "log")
    log.commit()
    return log


GROUP = [EventType.GTID, EventType.XID]


async def test_many_that_wait_get_each_group_and_few_are_woken_for_it(serving, begin, tmp_path, monkeypatch):
    assert loading.load() is not None
    growing, waits = Growing(tmp_path / "log", max_file_bytes=64 << 20), Counter()
    growing.commit()
    wait = DumpSender._wait_at_end

    async def counted(sender):
        waits[sender] += 1
        await wait(sender)

    monkeypatch.setattr(DumpSender, "_wait_at_end", counted)
    group = [GROUP[0], 23, GROUP[1]]
    body = [make_event(23, 1, bytes(10_000)), XID_EVENT]
    async with serving(growing.directory) as (_, port):
        *readers, lazy, gone = [await begin(port, 3, server_id=100 + number) for number in range(12)]
        for round_no in range(40):
            if round_no == 5:
                await trio.aclose_forcefully(gone.stream)
            await trio.to_thread.run_sync(growing.commit, 1, body)
            for replica in readers:
                assert await replica.event_types(3) == group
        assert await lazy.event_types(3 * 40) == group * 40
    assert sum(waits.values()) < 40 * len(readers) / 2, waits.values()


# As mysql-test/suite/binlog_in_engine/rpl_semi_sync_slave_reply_fail.test
@pytest.mark.parametrize("reply", [b"", b"\xef" + bytes(8) + b"log", b"\x05\x00"], ids=["none", "whole", "broken off"])
async def test_what_a_semi_synchronous_replica_replies_or_does_not_delays_no_group(serving, connect, growing, reply):
    async with serving(growing.directory) as (_, port):
        replica = await connect(port)
        await replica.query("SET @rpl_semi_sync_slave=1")
        await replica.dump()
        for count in (1, 3):
            for _ in range(2 * count + (count == 1)):
                assert (await replica.packet())[:3] == b"\0\xef\0"  # and no reply is asked for
            await replica.stream.send_all(reply)
            await trio.to_thread.run_sync(growing.commit, 3)


class CutAtOnce(SentCounter):
    async def pass_on(self, block, send):
        raise trio.BrokenResourceError("cut")


@pytest.mark.parametrize("cuts", [0, 2])
async def test_what_was_logged_while_no_replica_was_there_comes_to_one_that_comes_back(serving, begin, tmp_path, cuts):
    loading.load()
    stages = iter([SentCounter, *cuts * [CutAtOnce], SentCounter])
    with BinlogStore(RealDisk(tmp_path)) as store:

        def commit(seq_no):
            store.write_direct(*new_group(seq_no, XID_EVENT))

        commit(1)
        async with serving(store, stages=(lambda session: next(stages)(),)) as (primary, port):

            async def nobody_is_there():
                while len(primary.registry):
                    await trio.sleep(0)

            first = await begin(port, position="0-1-1", heartbeat_s=0.05)
            while (await first.packet())[5] != EventType.HEARTBEAT:
                pass  # then it is at the end, and the primary knows where that is
            await first.stream.aclose()
            await nobody_is_there()
            await trio.to_thread.run_sync(commit, 2)
            for _ in range(cuts):
                assert await (await begin(port, position="0-1-1")).packet() is None
                await nobody_is_there()
            back = await begin(port, position="0-1-1", heartbeat_s=30)  # that comes only if nothing else does
            while (event_type := (await back.packet())[5]) not in (EventType.GTID, EventType.HEARTBEAT):
                pass
            assert event_type == EventType.GTID


@pytest.mark.parametrize("reader", ["the store", "a directory", "a directory that is followed"])
async def test_a_dump_by_file_of_one_that_is_ready_but_empty_gets_what_it_will_hold(serving, connect, tmp_path, reader):
    profile = dataclasses.replace(PROFILES["engine"], requires_gtid=False, opens_with_gtid_list=True)
    options = StoreOptions(max_file_bytes=1 << 17, state_interval_bytes=1 << 15, redo_bytes=1 << 20)
    with BinlogStore(RealDisk(tmp_path), options) as store:

        def commit(*seq_nos):
            for seq_no in seq_nos:
                store.write_direct(*new_group(seq_no, XID_EVENT))
            store.checkpoint()

        commit(1, 2)
        store.prepare_next_file()
        assert (store.end().file_no, len(store.files())) == (0, 2)
        log = {
            "the store": lambda: store,
            "a directory": lambda: BinlogDirectory(RealDisk(tmp_path)),
            "a directory that is followed": lambda: FollowedDirectory(RealDisk(tmp_path)),
        }[reader]()
        async with serving(log, profile=profile) as (_, port):
            replica = await connect(port)
            await replica.query("SET @mariadb_slave_capability=4")
            await replica.send(b"\x12" + struct.pack("<IHI", 4, 0, 2) + b"binlog-000001.ibb")
            await replica.packet()  # FORMAT_DESCRIPTION
            assert decode_gtid_list((await replica.packet())[1:]).gtids == (gtid_of(2),)
            await trio.to_thread.run_sync(commit, 3, 4)  # to the file before, so to those who read that
            await trio.to_thread.run_sync(store.flush)
            await trio.to_thread.run_sync(commit, 5, 6)
            events = [await replica.packet() for _ in range(4)]
        assert [event[5] for event in events] == 2 * GROUP
        assert [int.from_bytes(event[20:28], "little") for event in events[::2]] == [5, 6]


# As mysql-test/suite/binlog_in_engine/rpl_heartbeat.test
async def test_an_idle_replica_gets_a_heartbeat_with_file_and_place(serving, begin, growing):
    async with serving(growing.directory) as (_, port):
        heartbeat = await (await begin(port, 3, heartbeat_s=0.05)).packet()
        assert heartbeat[5] == EventType.HEARTBEAT
        assert heartbeat[20:] == b"binlog-000000.ibb"
        assert int.from_bytes(heartbeat[14:18], "little") >= 16384


async def test_a_large_transaction_that_is_not_committed_yet_silences_no_heartbeat(serving, begin, tmp_path):
    assert loading.load() is not None
    event = encode_event(event_type=EventType.WRITE_ROWS_V1, body=bytes(40_000), server_id=1)
    growing = Growing(tmp_path / "log", max_file_bytes=64 << 20)
    growing.commit()
    async with serving(growing.directory) as (_, port), trio.open_nursery() as nursery:
        replica = await begin(port, 3, heartbeat_s=0.3)
        group = GroupWriter(growing.writer)

        async def grow() -> None:
            while True:
                group.write(event)
                growing.writer.flush()
                await trio.sleep(0.02)

        nursery.start_soon(grow)
        assert await replica.event_types(3) == [EventType.HEARTBEAT] * 3
        nursery.cancel_scope.cancel()
    group.abandon()


@pytest.mark.parametrize("has_kernels", [True, False], ids=["fast", "careful"])
@pytest.mark.parametrize("sizes", [(600_000, 600_000), (600_000, 300), (300, 600_000), (600_000,)], ids=str)
async def test_a_heartbeat_that_falls_due_while_a_group_is_begun_waits_for_its_end(
    waiting_dump, mock_clock, monkeypatch, sizes, has_kernels
):
    monkeypatch.setattr(shared, "kernels", loading.load if has_kernels else lambda: None)
    store = BinlogStore(SimulatedDisk(), StoreOptions(max_file_bytes=8 << 20, spill_bytes=60_000, redo_bytes=16 << 20))
    dump = waiting_dump(store, heartbeat_s=0.2, jump=lambda: mock_clock.jump(0.5))
    events = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(dump.run)
        for seq_no in range(1, 21):
            group = new_group(seq_no, make_event(23, 1, bytes(sizes[seq_no % len(sizes)])), XID_EVENT)
            store.write_direct(*group)
            events += [group[1], *group[2]]
            if seq_no % len(sizes) == 0:
                await dump.grow()
        mock_clock.jump(0.5)
        await dump.wait_until_idle()
        dump.end()
    *packets, last = dump.payloads()
    assert last == EOF
    types = [packet[5] for packet in packets]
    assert [packet[1:] for packet in packets if packet[5] in (EventType.GTID, 23, EventType.XID)] == events
    begun = [index for index, event_type in enumerate(types) if event_type == EventType.GTID]
    assert [types[index : index + 3] for index in begun] == [[EventType.GTID, 23, EventType.XID]] * 20
    assert EventType.HEARTBEAT in types


# As mysql-test/suite/binlog_in_engine/rpl_master_stop.test
@pytest.mark.parametrize("is_stopped", [False, True])
async def test_a_dump_that_does_not_wait_or_whose_primary_stops_ends_with_eof(serving, begin, growing, is_stopped):
    async with serving(growing.directory) as (primary, port):
        replica = await begin(port, 3, flags=0 if is_stopped else 1)
        if is_stopped:
            primary.stop()
        assert (await replica.packet(), await replica.packet()) == (EOF, None)


@pytest.mark.parametrize("version", ["10.11", "11.8"])
async def test_a_dump_ends_with_the_status_of_its_session_as_that_of_a_real_server(serving, connect, growing, version):
    """The recorded client had said SET AUTOCOMMIT = 0."""
    recorded = (
        (Path(__file__).parents[3] / "fixtures" / "wire" / f"pymysqlreplication_gtid.py-to-{version}.jsonl")
        .read_text()
        .splitlines()
    )
    sent = [line for line in map(json.loads, recorded) if line.get("dir") == "S>C" and line["conn"] == 1]
    assert sent[-1]["meaning"].startswith("EOF")
    async with serving(growing.directory) as (_, port):
        for autocommit, last in ((0, bytes.fromhex(sent[-1]["hex"])), (1, EOF)):
            replica = await connect(port)
            await replica.query(f"SET AUTOCOMMIT = {autocommit}")
            await replica.dump(flags=1)
            await replica.event_types(3)
            assert await replica.packet() == last


async def test_a_newer_dump_of_the_same_server_id_ends_the_older(serving, begin, growing):
    async with serving(growing.directory) as (_, port):
        older = await begin(port, 3, server_id=7)
        newer = await begin(port, server_id=7)
        assert (await older.packet())[:3] == b"\xff" + (4052).to_bytes(2, "little")
        assert await older.packet() is None
        assert await newer.event_types(3) == [EventType.FORMAT_DESCRIPTION, *GROUP]


async def test_kill_closes_a_dump_and_kill_query_ends_it_in_order(serving, ask, begin, growing):
    async with serving(growing.directory) as (primary, port):
        for verb, last in (("KILL", None), ("KILL QUERY", EOF)):
            replica = await begin(port, 3, server_id=9)
            (connection_id,) = [session.connection_id for session in primary.registry if session.dump_server_id == 9]
            await ask(port, f"{verb} {connection_id}")
            assert await replica.packet() == last
            while any(session.dump_server_id == 9 for session in primary.registry):
                await trio.lowlevel.checkpoint()


async def test_a_purged_position_is_refused_with_1236_and_the_session_is_closed(serving, begin, growing):
    await trio.to_thread.run_sync(growing.commit, 2000)  # several files
    (growing.directory / "binlog-000000.ibb").unlink()
    async with serving(growing.directory) as (_, port):
        refusal = await (await begin(port)).packet()
        assert refusal[:3] == b"\xff" + (1236).to_bytes(2, "little")
        assert b"Could not find GTID state requested by slave in any binlog files" in refusal


async def opening(port, connect, *, heartbeat_s: float = 0, **request: str) -> list[bytes]:
    """What a registered replica hears first, heartbeats included if it waits for one."""
    replica = await connect(port)
    await replica.register()
    await replica.dump(heartbeat_s=heartbeat_s, **request)
    events = [(await replica.packet())[1:]]
    while heartbeat_s and events[-1][4] != EventType.HEARTBEAT:
        events.append((await replica.packet())[1:])
    return events


# As mysql-test/suite/binlog_in_engine/binlog_file_pos.test
@pytest.mark.parametrize("profile", ["engine", "compat"])
async def test_a_replica_that_connects_again_hears_the_file_name_it_knows(serving, connect, growing, profile):
    await trio.to_thread.run_sync(growing.commit, 2000)  # over files
    async with serving(growing.directory, profile=profile) as (_, port):
        (first,) = await opening(port, connect)
        (elsewhere,) = await opening(port, connect, position="0-1-1990")
        events = await opening(port, connect, position="0-1-1990", file_name="binlog-000000.ibb", heartbeat_s=0.01)
    assert decode_rotate(first).file_name == "binlog-000000.ibb"
    assert decode_rotate(elsewhere).file_name != "binlog-000000.ibb"
    assert decode_rotate(events[0]).file_name == "binlog-000000.ibb"
    file_name, position = decode_heartbeat(events[-1])
    assert (file_name, position >= sum(map(len, events[1:-1]))) == ("binlog-000000.ibb", True)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_damaged_page_ends_a_dump_with_an_error_naming_it_and_harms_no_other(serving, begin, growing, profile):
    await trio.to_thread.run_sync(growing.commit, 2000)
    path = growing.directory / "binlog-000001.ibb"
    async with serving(growing.directory, profile=profile) as (_, port):
        flip(path, 40000)
        *_, last = await (await begin(port, server_id=3, checksum="CRC32")).rest()
        assert last[:3] == b"\xff" + (1236).to_bytes(2, "little")
        assert b"event read from binlog did not pass crc check (binlog-000001.ibb page 2 offset " in last
        other = await begin(port, server_id=4, position="0-1-1990", checksum="CRC32")
        assert EventType.FORMAT_DESCRIPTION in (await other.event_types(2))


@pytest.mark.parametrize("profile", ["classic-10.11", "engine"])
async def test_damage_in_a_traditional_file_is_told_with_its_place(serving, begin, fixtures, tmp_path, profile):
    shutil.copytree(fixtures / "classic/10.11/domains", tmp_path, dirs_exist_ok=True)
    path = tmp_path / "binlog.000003"
    engine = ClassicBinlog([tmp_path])
    engine.state()
    flip(path, 1500)
    async with serving(engine, profile=profile) as (_, port):
        *_, last = await (await begin(port, checksum="CRC32")).rest()
        assert last[:3] == b"\xff" + (1236).to_bytes(2, "little")
        place = re.search(rb"\(binlog\.000003 offset ([0-9]+)\)", last)
        assert place is not None, last
        assert int(place[1]) <= 1500


async def test_a_last_file_that_is_cut_is_logged_once_and_then_followed(serving, begin, fixtures, tmp_path, caplog):
    data = (fixtures / "classic/10.11/domains/binlog.000001").read_bytes()
    path = tmp_path / "binlog.000001"
    path.write_bytes(data[:-100])

    def told():
        return [record.message for record in caplog.records if "ends inside" in record.message]

    async with serving(ClassicBinlog([tmp_path]), profile="classic-10.11") as (_, port):
        replicas = [await begin(port, server_id=number, checksum="CRC32") for number in (10, 11)]
        while not told():
            await trio.sleep(0.01)
        with path.open("ab") as file:
            file.write(data[-100:-60])
        while len(told()) < 2:
            await trio.sleep(0.01)
        with path.open("ab") as file:
            file.write(data[-60:])
        for replica in replicas:
            left = 25  # transactions
            while left:
                left -= (await replica.packet())[5] == EventType.XID
    assert len(told()) == 2
    (place,) = {message.partition(": ")[0] for message in told()}
    assert re.fullmatch(r"binlog\.000001 offset [0-9]+", place)


async def test_a_replica_that_reads_traditional_files_keeps_no_other_waiting(serving, begin, fixtures, monkeypatch):
    loading.load()
    waits, may_go_on = threading.Event(), threading.Event()
    read_into = series.ClassicSource.read_into

    def read(source, offset, target):
        if not source.only_cached and not waits.is_set():
            waits.set()
            assert may_go_on.wait(60)
        return read_into(source, offset, target)

    engine = ClassicBinlog([fixtures / "classic/10.11/types-full-crc32"])
    engine.state()
    monkeypatch.setattr(series, "fill", lambda *place, only_cached: None)  # nothing is in memory
    monkeypatch.setattr(series.ClassicSource, "read_into", read)

    async with serving(engine, profile="classic-10.11") as (_, port):
        first = await begin(port, server_id=10, flags=1, checksum="CRC32")
        assert await trio.to_thread.run_sync(waits.wait, 60)
        try:
            payloads = await (await begin(port, server_id=11, flags=1, checksum="CRC32")).rest()
        finally:
            may_go_on.set()
        assert await first.rest() == payloads
        assert len(payloads) > 500


@pytest.fixture
def no_collector():
    """Only references that are counted give anything back."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def left_behind() -> list[str]:
    """What dumps are made of and must not outlive them."""
    kinds = (BlockSource, PageBlocks, DumpSession, StoreReader, LargeGroup, Block, Sender, trio.SSLStream)
    return [type(thing).__name__ for thing in gc.get_objects() if issubclass(type(thing), kinds)]


@pytest.mark.parametrize(
    "ending", ["end of the log", "leaves", "is reset", "KILL", "KILL QUERY", "newer", "error", "stop"]
)
async def test_a_dump_that_is_over_leaves_nothing_behind_also_without_the_collector(
    serving, begin, ask, no_collector, monkeypatch, tmp_path, ending
):
    loading.load()
    monkeypatch.setattr(block_cache, "READERS_OF_SHARED", 2)
    options = StoreOptions(max_file_bytes=4 << 20, state_interval_bytes=1 << 20, spill_bytes=60_000)
    store = BinlogStore(RealDisk(tmp_path), options)
    for seq_no in range(1, 2001):
        rows = make_event(23, 1, bytes(100_000 if seq_no % 100 == 0 else 1000))
        ticket = store.write_direct_ordered(*new_group(seq_no, rows, XID_EVENT))
    store.group_commit_ordered(ticket)
    before = Counter(left_behind())  # by tests of something else
    async with serving(store) as (primary, port):
        flags = 1 if ending == "end of the log" else 0
        replicas = [await begin(port, 2, server_id=number, flags=flags) for number in range(20, 24)]
        assert "PageBlocks" in left_behind()
        sessions = [session for session in primary.registry if session.dump_server_id]
        assert len(sessions) == 4
        match ending:
            case "leaves":
                for replica in replicas:
                    await replica.stream.aclose()
            case "is reset":
                for replica in replicas:
                    replica.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    await trio.aclose_forcefully(replica.stream)
            case "KILL" | "KILL QUERY":
                await ask(port, *(f"{ending} {session.connection_id}" for session in sessions))
            case "newer":
                primary.registry.end_dumps_of(20, but=None)
                for session in sessions:
                    session.end_dump(EndReason.NEWER_DUMP)
            case "error":
                store.reset()
            case "stop":
                primary.stop()
        for replica in replicas:
            with contextlib.suppress(trio.ClosedResourceError, trio.BrokenResourceError):
                while await replica.packet() is not None:
                    pass
            await trio.aclose_forcefully(replica.stream)
        while any(session.dump_server_id for session in primary.registry):
            await trio.sleep(0.01)
        with trio.move_on_after(60):  # a worker thread lets go of what it has handed over a moment later
            while not Counter(left_behind()) <= before:
                await trio.sleep(0.01)
        assert Counter(left_behind()) <= before
        assert not primary._parts.shared_blocks._cache._readers
        assert not store._readers


class Alter(Doubling):
    async def pass_on(self, block, send) -> None:
        data = bytearray(block.data())
        data[-1] ^= 0xFF
        await send(plain_block(data, block.after))


async def received(port: int, connect) -> bytes:
    replica = await connect(port)
    await replica.query("SET @mariadb_slave_capability=4, @slave_connect_state=''")
    await replica.stream.send_all(b"\x0b\x00\x00\x00\x12" + struct.pack("<IHI", 4, 1, 2))
    data = bytearray()
    with contextlib.suppress(trio.BrokenResourceError):
        while not data.endswith(EOF) and (more := await replica.stream.receive_some()):
            data += more
    return bytes(data)


@pytest.mark.parametrize("has_kernels", [True, False], ids=["fast", "reference"])
async def test_what_goes_to_replicas_can_be_counted_altered_and_cut(
    serving, connect, growing, monkeypatch, has_kernels
):
    monkeypatch.setattr(shared, "kernels", loading.load if has_kernels else lambda: None)
    rows = encode_event(event_type=EventType.WRITE_ROWS_V1, body=bytes(200_000), server_id=1)
    await trio.to_thread.run_sync(growing.commit, 30, [rows])
    counters = []

    def count(connection):
        counters.append((connection.connection_id, SentCounter()))
        return counters[-1][1]

    async with serving(growing.directory) as (_, port):
        whole = await received(port, connect)
    assert len(whole) > 30 * 200_000
    async with serving(growing.directory, stages=(count,)) as (_, port):
        assert await received(port, connect) == whole
    assert [counter.sent_bytes for _, counter in counters] == [len(whole)]
    async with serving(growing.directory, stages=(lambda _: Alter(),)) as (_, port):
        altered = await received(port, connect)
    assert len(altered) == len(whole)
    wrong = [index for index, byte in enumerate(altered) if byte != whole[index]]
    assert 3 < len(wrong) < 1000
    assert all(altered[index] == whole[index] ^ 0xFF for index in wrong)
    for bytes_max in (3, 1_000_003):
        async with serving(growing.directory, stages=(lambda _, size=bytes_max: First(size),)) as (_, port):
            assert await received(port, connect) == whole[:bytes_max]


async def test_a_replica_that_does_not_read_delays_nobody(serving, begin, growing):
    await trio.to_thread.run_sync(growing.commit, 20_000)
    async with serving(growing.directory) as (primary, port):
        await begin(port, server_id=3)
        reader = await begin(port, server_id=4, flags=1)
        assert await reader.event_types(1 + 2 * 20_001) == [EventType.FORMAT_DESCRIPTION, *GROUP * 20_001]
        primary.registry.kill(1, query_only=False)


@pytest.mark.parametrize("kernels", ["on", "off"])
async def test_a_stalled_replica_holds_less_than_two_mebibytes_whatever_the_group(memory_path, begin, kernels):
    """Measured on a server of its own: what thirty replicas in the middle of a large group add to ten others.

    What all share, 64 MiB at most whatever their number, is kept for the first ten already.
    """
    log = Growing(memory_path / "log")
    events = (encode_event(event_type=EventType.ANNOTATE_ROWS, body=bytes(1 << 20), server_id=1) for _ in range(64))
    log.commit(1, events)
    options = ["--listen", "127.0.0.1:0", "--json", "--password", "replpw", "--tls", "off", "-v"]
    command = [sys.executable, "-m", "ibbmaster", "serve", str(log.directory), *options]
    env, pipes = {**os.environ, loading.SWITCH: kernels}, {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = await trio.lowlevel.open_process(command, env=env, **pipes)
    try:
        port = json.loads(await process.stdout.receive_some())["port"]
        for server_id in range(40):
            if server_id == 10:
                before = resident_bytes(process.pid)
            await begin(port, 2 + server_id % 10, server_id=server_id + 1, flags=2)
        assert (resident_bytes(process.pid) - before) / 30 < 2 << 20
    finally:
        process.terminate()
        await process.wait()
        await process.stdout.aclose()
        await process.stderr.aclose()
