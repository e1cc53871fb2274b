"""Each fault reaches the wire as it was asked for, at the place it names; and nothing else changes there."""

from __future__ import annotations

import struct
import zlib

import pymysql
import pytest
import trio
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import MariadbGtidEvent, XidEvent
from tests.tap import framed, listen_in, serving, tap

from ibbmaster.event.types import EventType
from ibbmaster.testkit.action import ACTIONS
from ibbmaster.testkit.fault_stage import Faults

LOGGED = ["engine", "classic"]
EOF_PACKET = b"\xfe\x00\x00\x02\x00"
TYPES = {
    "opening rotate": EventType.ROTATE,
    "opening format description": EventType.FORMAT_DESCRIPTION,
    "opening gtid list": EventType.GTID_LIST,
    "gtid": EventType.GTID,
    "annotate": EventType.ANNOTATE_ROWS,
    "table map": EventType.TABLE_MAP,
    "rows": EventType.WRITE_ROWS_V1,
    "event": None,
}
_plain: dict[str, list[bytes]] = {}


async def plain(log):
    """The packets of a dump without any fault."""
    if log not in _plain:
        _plain[log] = (await tap(None, log)).packets
    return _plain[log]


def nth(packets, moment, number=1):
    """Where the nth event of a kind is; found by types alone."""
    if moment == "commit":
        begins = [index for index, packet in enumerate(packets) if packet[0] == 0 and packet[5] == EventType.GTID]
        return begins[number] - 1
    wanted = TYPES[moment]
    found = [index for index, packet in enumerate(packets) if packet[0] == 0 and wanted in (None, packet[5])]
    return found[number - 1]


def group_of(packets, number):
    """From where to where the nth group is."""
    begins = [index for index, packet in enumerate(packets) if packet[0] == 0 and packet[5] == EventType.GTID]
    return begins[number - 1], begins[number]


@pytest.mark.parametrize("log", LOGGED)
async def test_without_a_due_fault_every_byte_is_as_it_was(log):
    unhappened = Faults()
    unhappened.add("after gtid", action="cut", gtid="99-99-99")
    unhappened.add("before rows 100000", action="stall", seconds=3600)
    expected = await tap(None, log)
    for faults in (Faults(), unhappened):
        found = await tap(faults, log)
        assert (found.data, found.end) == (expected.data, expected.end)
        assert faults.done == []
    assert len(unhappened.pending) == 2


PLACES = [
    *("opening format description", "gtid", "gtid 2", "annotate", "table map", "table map 3", "rows", "rows 7", "commit"),
    *("commit 2", "event 5"),
]


@pytest.mark.parametrize(("by", "end"), [("reset", "reset"), ("end", "end"), ("silence", "silence")])
@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_cut_comes_exactly_where_it_was_asked_for(side, by, end):
    packets = await plain("classic")
    for place in ["opening rotate", "opening gtid list", *PLACES]:
        if by == "silence" and place not in ("gtid 2", "commit"):
            continue  # each costs the time that shows the silence
        moment, number = place.rstrip(" 0123456789"), int(place.split()[-1]) if place[-1].isdigit() else 1
        where = nth(packets, moment, number) + (side == "after")
        faults = Faults()
        faults.add(f"{side} {place}", action="cut", by=by)
        expected = framed(packets[:where])
        found = await tap(faults, "classic", until=len(expected))
        assert (found.data, found.end) == (expected, end), place
        assert [record.sent_bytes for record in faults.done] == [len(expected)]


@pytest.mark.parametrize("log", LOGGED)
@pytest.mark.parametrize(("place", "gone"), [(1, 1), (19, 19), (-1, -1)])
async def test_a_cut_inside_an_event_leaves_as_many_bytes_of_it(log, place, gone):
    packets = await plain(log)
    where = nth(packets, "table map", 2)
    faults = Faults()
    faults.add(f"inside table map 2 at byte {place}", action="cut", by="end")
    event = packets[where][1:]
    sent = framed(packets[: where + 1])
    assert (await tap(faults, log)).data == sent[: len(sent) - len(event) + len(event[:gone])]


@pytest.mark.parametrize("byte", [0, 2, 3, 4, 5])
async def test_a_cut_inside_a_packet_counts_its_header(byte):
    packets = await plain("engine")
    faults = Faults()
    faults.add(f"inside packet 3 at byte {byte}", action="cut", by="end")
    assert (await tap(faults)).data == framed(packets)[: len(framed(packets[:2])) + byte]


async def test_a_place_in_a_group_is_counted_there():
    packets = await plain("engine")
    seq_no, domain_id = struct.unpack_from("<QI", packets[group_of(packets, 15)[0]], 20)
    (server_id,) = struct.unpack_from("<I", packets[group_of(packets, 15)[0]], 6)
    faults = Faults()
    faults.add("before rows 1", action="cut", by="end", gtid=f"{domain_id}-{server_id}-{seq_no}")
    begin, end = group_of(packets, 15)
    where = begin + nth(packets[begin:end], "rows")
    assert (await tap(faults)).data == framed(packets[:where])


def altered(event, **how):
    """An event with other header fields, its checksum made anew."""
    fields = list(struct.unpack_from("<IBIIIH", event))
    for index, name in enumerate(["timestamp", "event_type", "server_id", "size", "log_pos", "flags"]):
        fields[index] = how.get(name, fields[index])
    changed = struct.pack("<IBIIIH", *fields) + event[19:-4]
    return changed + struct.pack("<I", zlib.crc32(changed))


EDITS = {
    "alter": (dict(byte=20, bits=0x81), lambda e: [e[:20] + bytes([e[20] ^ 0x81]) + e[21:]]),
    "alter the last byte": (dict(action="alter"), lambda e: [e[:-1] + bytes([e[-1] ^ 1])]),
    "shorten": (dict(count=3), lambda e: [e[:-3]]),
    "lengthen": (dict(count=3), lambda e: [e + bytes(3)]),
    "drop": ({}, lambda e: []),
    "repeat": ({}, lambda e: [e, e]),
    "header": (dict(server_id=77), lambda e: [altered(e, server_id=77)]),
    "header with a time": (dict(action="header", timestamp=0), lambda e: [altered(e, timestamp=0)]),
    "header without a position": (dict(action="header", log_pos=0), lambda e: [altered(e, log_pos=0)]),
    "header of another type": (dict(action="header", event_type=200, flags=8), lambda e: [altered(e, event_type=200, flags=8)]),
    "checksum": ({}, lambda e: [e[:-1] + bytes([e[-1] ^ 255])]),
    "checksum missing": (
        dict(action="checksum", be="missing"),
        lambda e: [e[:9] + struct.pack("<I", len(e) - 4) + e[13:-4]],
    ),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("place", ["annotate 2", "table map 4", "rows", "commit 3", "opening format description"])
async def test_an_event_is_changed_and_all_others_are_only_numbered_anew(edit, place):
    given, change = EDITS[edit]
    packets = await plain("classic")
    where = nth(packets, place.rstrip(" 0123456789"), int(place.split()[-1]) if place[-1].isdigit() else 1)
    faults = Faults()
    faults.add(f"at {place}", **{"action": edit, **given})
    expected = packets[:where] + [b"\0" + event for event in change(packets[where][1:])] + packets[where + 1 :]
    found = await tap(faults, "classic")
    assert (found.data, found.end) == (framed(expected), "end")
    assert [record.event for record in faults.done] == [packets[where][1:][:4096]]


async def test_a_checksum_nobody_expects_is_counted_by_the_header():
    packets = await plain("engine")
    faults = Faults()
    faults.add("at rows 2", action="checksum", be="unexpected")
    where = nth(packets, "rows", 2)
    event = packets[where][1:]
    longer = event[:9] + struct.pack("<I", len(event) + 4) + event[13:]
    longer += struct.pack("<I", zlib.crc32(longer))
    assert (await tap(faults)).data == framed([*packets[:where], b"\0" + longer, *packets[where + 1 :]])


async def test_what_needs_a_checksum_waits_for_an_event_that_has_one():
    faults = Faults()
    faults.add("at rows", action="checksum", be="wrong")
    assert (await tap(faults)).data == framed(await plain("engine"))
    assert faults.done == []


@pytest.mark.parametrize("log", LOGGED)
@pytest.mark.parametrize("action", ["drop", "repeat", "swap"])
async def test_groups_are_left_out_repeated_and_swapped_whole(action, log):
    packets = await plain(log)
    begin, end = group_of(packets, 4)
    after = group_of(packets, 5)[1]
    one, other = packets[begin:end], packets[end:after]
    changed = {"drop": other, "repeat": one + one + other, "swap": other + one}[action]
    faults = Faults()
    faults.add("at gtid 4", action=action)
    assert (await tap(faults, log)).data == framed(packets[:begin] + changed + packets[after:])
    assert len(faults.done) == 1


async def test_a_cut_inside_a_repeated_group_happens_once():
    packets = await plain("engine")
    begin, end = group_of(packets, 4)
    faults = Faults()
    faults.add("at gtid 4", action="repeat")
    faults.add("after gtid 5", action="cut", by="end")
    expected = packets[:end] + packets[begin:end] + packets[end : end + 1]
    assert (await tap(faults)).data == framed(expected)


@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_dump_ends_by_the_packet_that_was_asked_for(side):
    packets = await plain("engine")
    where = nth(packets, "rows", 3) + (side == "after")
    error = b"\xff" + struct.pack("<H", 1236) + b"#HY000as the test says"
    for given, last in (({"action": "eof"}, EOF_PACKET), ({"action": "error", "text": "as the test says"}, error)):
        faults = Faults()
        faults.add(f"{side} rows 3", **given)
        found = await tap(faults)
        assert (found.data, found.end) == (framed([*packets[:where], last]), "end")


@pytest.mark.parametrize("event", ["rotate", "format", "heartbeat", "stop"])
@pytest.mark.parametrize("log", LOGGED)
async def test_an_event_nobody_expects_is_put_in(event, log):
    packets = await plain(log)
    faults = Faults()
    faults.add("after table map 2", action="insert", event=event, file="other.000009", position=4711)
    where = nth(packets, "table map", 2) + 1
    found = await tap(faults, log)
    put_in = found.packets[where]
    assert found.data == framed([*packets[:where], put_in, *packets[where:]])
    types = {"rotate": EventType.ROTATE, "format": EventType.FORMAT_DESCRIPTION, "heartbeat": EventType.HEARTBEAT}
    assert put_in[5] == types.get(event, EventType.STOP)
    body = put_in[1:]
    assert struct.unpack_from("<I", body, 9) == (len(body),)
    if log == "classic":
        assert zlib.crc32(body[:-4]) == struct.unpack("<I", body[-4:])[0]
        body = body[:-4]
    if event == "rotate":
        assert body[19:] == struct.pack("<Q", 4711) + b"other.000009"
    if event == "format":
        assert put_in == packets[nth(packets, "opening format description")]


async def test_garbage_comes_between_packets_and_is_that_of_the_seed():
    packets = await plain("engine")
    before = framed(packets[: nth(packets, "commit", 2) + 1])
    found = {}
    for seed in (1, 1, 2):
        faults = Faults(seed)
        faults.add("after commit 2", action="garbage", count=33)
        data = (await tap(faults)).data
        assert data[: len(before)] + data[len(before) + 33 :] == framed(packets)
        assert found.setdefault(seed, data) == data
    assert found[1] != found[2]


async def test_a_stall_holds_everything_back_for_its_time():
    faults = Faults()
    faults.add("before rows 2", action="stall", seconds=0.3)
    found = await tap(faults)
    assert found.data == framed(await plain("engine"))
    assert found.seconds >= 0.3


async def test_bytes_drip():
    packets = await plain("engine")
    faults = Faults()
    faults.add("before gtid 11", action="drip", bytes_per_s=1000)
    faults.add("inside table map 2 at byte 9", action="drip", bytes_per_s=0)
    found = await tap(faults)
    dripped = len(framed(packets[: nth(packets, "table map", 2)])) - len(framed(packets[: nth(packets, "gtid", 11)]))
    assert found.data == framed(packets)
    assert found.seconds >= dripped / 1000


@pytest.mark.parametrize(("given", "end"), [({"query": False}, []), ({"query": True}, [EOF_PACKET])])
async def test_a_kill_comes_at_its_place(given, end):
    packets = await plain("engine")
    faults = Faults()
    faults.add("after rows 2", action="kill", **given)
    found = await tap(faults)
    assert (found.data, found.end) == (framed([*packets[: nth(packets, "rows", 2) + 1], *end]), "end")


async def test_a_newer_dump_ends_this_one_at_its_place():
    packets = await plain("engine")
    faults = Faults()
    faults.add("before commit 4", action="newer dump")
    found = await tap(faults)
    where = nth(packets, "commit", 4)
    assert found.packets[:where] == packets[:where]
    assert len(found.packets) == where + 1
    assert found.packets[where].startswith(b"\xff" + struct.pack("<H", 4052) + b"#HY000A slave with the same")


async def test_a_fault_happens_as_often_as_it_says():
    packets = await plain("engine")
    faults = Faults()
    faults.add("after gtid", action="cut", by="end", times=2)
    async with serving(faults) as port:
        taps = [await trio.to_thread.run_sync(listen_in, port) for _ in range(3)]
    cut = framed(packets[: nth(packets, "gtid") + 1])
    assert [found.data for found in taps] == [cut, cut, framed(packets)]


async def test_a_fault_of_one_dump_or_one_replica_leaves_the_others_alone():
    packets = await plain("engine")
    faults = Faults()
    faults.add("after gtid", action="cut", by="end", connection=2)
    faults.add("before gtid", action="cut", by="end", replica=9)
    async with serving(faults) as port:
        taps = [await trio.to_thread.run_sync(lambda n=n: listen_in(port, server_id=n)) for n in (7, 7, 7, 9)]
    where = nth(packets, "gtid")
    assert [len(found.packets) for found in taps] == [len(packets), where + 1, len(packets), where]


async def test_always_is_each_time():
    packets = await plain("classic")
    faults = Faults()
    faults.add("at event", action="header", log_pos=0, times="always")
    found = await tap(faults, "classic")
    assert found.data == framed([b"\0" + altered(p[1:], log_pos=0) if p[0] == 0 else p for p in packets])


class PlanningPrimary:
    """Plans another fault when it is to purge."""

    def __init__(self, faults):
        self.faults = faults

    def purge(self):
        self.faults.add("after rows 3", action="cut", by="end")


async def test_a_fault_that_is_planned_while_a_dump_runs_happens_in_it():
    packets = await plain("engine")
    faults = Faults()
    faults.attach(PlanningPrimary(faults))
    faults.add("before rows 2", action="purge")
    found = await tap(faults)
    assert found.data == framed(packets[: nth(packets, "rows", 3) + 1])
    assert [record.fault.action.word for record in faults.done] == ["purge", "cut"]
