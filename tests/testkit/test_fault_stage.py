import contextlib
import gc
import pathlib
import socket
import struct
import time
import zlib

import pymysql
import pytest
import trio

from ibbmaster.errors import ConfigurationError
from ibbmaster.replication.event.types import EventType
from ibbmaster.testkit.action import ACTIONS
from ibbmaster.testkit.fault_stage import Faults
from ibbmaster.testkit.primary import FixturePrimary
from tests.machinery.events import event_offsets
from tests.tap import LOGS, ask, ask_for_dump, connect, framed, listen_in, serving, tap

LOGGED = ["engine", "classic"]
EOF_PACKET = b"\xfe\x00\x00\x02\x00"
EOF_OF_SESSION = b"\xfe\x00\x00\x00\x00"  # whose client has turned AUTOCOMMIT off
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
ARTIFICIAL = 0x20
EDITED = [
    *("opening rotate", "opening format description", "opening gtid list", "annotate 2", "table map 4", "rows"),
    *("commit 3", "file end 2", "format description 3", "event 4"),
]
_plain: dict[str, list[bytes]] = {}


def planned(place, *, seed=0, **how):
    faults = Faults(seed)
    faults.add(place, **how)
    return faults


async def plain(log):
    if log not in _plain:
        _plain[log] = (await tap(None, log)).packets
    return _plain[log]


def nth(packets, landmark, number=1):
    """Where the nth event of a kind is; found by types alone."""
    if landmark == "commit":
        begins = [index for index, packet in enumerate(packets) if packet[0] == 0 and packet[5] == EventType.GTID]
        return begins[number] - 1
    if landmark == "file end":  # no artificial ROTATE, which begins a file
        ends = [index for index, packet in enumerate(packets) if packet[5:6] == b"\4" and not packet[18] & ARTIFICIAL]
        return ends[number - 1]
    if landmark == "format description":
        return nth(packets, "opening format description", number + 1)
    wanted = TYPES[landmark]
    found = [index for index, packet in enumerate(packets) if packet[0] == 0 and wanted in (None, packet[5])]
    return found[number - 1]


def counted(place):
    return place.rstrip(" 0123456789"), int(place.split()[-1]) if place[-1].isdigit() else 1


def group_of(packets, number):
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


@pytest.mark.parametrize("byte", [0, 2, 3, 4, 5])
async def test_a_cut_inside_a_packet_counts_its_header(byte):
    packets = await plain("engine")
    faults = planned(f"inside packet 3 at byte {byte}", action="cut", by="end")
    assert (await tap(faults)).data == framed(packets)[: len(framed(packets[:2])) + byte]


async def test_a_place_in_a_group_is_counted_there():
    packets = await plain("engine")
    seq_no, domain_id = struct.unpack_from("<QI", packets[group_of(packets, 15)[0]], 20)
    (server_id,) = struct.unpack_from("<I", packets[group_of(packets, 15)[0]], 6)
    faults = planned("before rows 1", action="cut", by="end", gtid=f"{domain_id}-{server_id}-{seq_no}")
    begin, end = group_of(packets, 15)
    where = begin + nth(packets[begin:end], "rows")
    assert (await tap(faults)).data == framed(packets[:where])


def altered(event, **how):
    fields = list(struct.unpack_from("<IBIIIH", event))
    for index, name in enumerate(["timestamp", "event_type", "server_id", "size", "log_pos", "flags"]):
        fields[index] = how.get(name, fields[index])
    changed = struct.pack("<IBIIIH", *fields) + event[19:-4]
    return changed + struct.pack("<I", zlib.crc32(changed))


EDITS = {
    "alter": ({"byte": 20, "bits": 0x81}, lambda e: [e[:20] + bytes([e[20] ^ 0x81]) + e[21:]]),
    "alter the last byte": ({"action": "alter"}, lambda e: [e[:-1] + bytes([e[-1] ^ 1])]),
    "shorten": ({"count": 3}, lambda e: [e[:-3]]),
    "lengthen": ({"count": 3}, lambda e: [e + bytes(3)]),
    "drop": ({}, lambda e: []),
    "repeat": ({}, lambda e: [e, e]),
    "header": ({"server_id": 77}, lambda e: [altered(e, server_id=77)]),
    "header with a time": ({"action": "header", "timestamp": 0}, lambda e: [altered(e, timestamp=0)]),
    "header without a position": ({"action": "header", "log_pos": 0}, lambda e: [altered(e, log_pos=0)]),
    "header of another type": (
        {"action": "header", "event_type": 200, "flags": 8},
        lambda e: [altered(e, event_type=200, flags=8)],
    ),
    "checksum": ({}, lambda e: [e[:-1] + bytes([e[-1] ^ 255])]),
    "checksum missing": (
        {"action": "checksum", "be": "missing"},
        lambda e: [e[:9] + struct.pack("<I", len(e) - 4) + e[13:-4]],
    ),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("place", EDITED)
async def test_an_event_is_changed_and_all_others_are_only_numbered_anew(edit, place):
    given, change = EDITS[edit]
    packets = await plain("classic")
    where = nth(packets, *counted(place))
    faults = planned(f"at {place}", **{"action": edit, **given})
    expected = packets[:where] + [b"\0" + event for event in change(packets[where][1:])] + packets[where + 1 :]
    found = await tap(faults, "classic")
    assert (found.data, found.end) == (framed(expected), "end")
    assert [record.event for record in faults.done] == [packets[where][1:][:4096]]


AS_ASKED = b"\xff" + struct.pack("<H", 1236) + b"#HY000as the test says"
ENDINGS = {  # what is asked for, what is the last packet, and how the connection ends
    "cut": ({"action": "cut", "by": "end"}, [], "end"),
    "reset": ({"action": "cut", "by": "reset"}, [], "reset"),
    "silence": ({"action": "cut", "by": "silence"}, [], "silence"),
    "restart": ({"action": "restart"}, [EOF_OF_SESSION], "end"),
    "error": ({"action": "error", "text": "as the test says"}, [AS_ASKED], "end"),
    "eof": ({"action": "eof"}, [EOF_PACKET], "end"),
    "kill": ({"action": "kill", "query": False}, [], "end"),
    "kill query": ({"action": "kill", "query": True}, [EOF_OF_SESSION], "end"),
}


PLACES = {"classic": [*EDITED, "gtid", "gtid 2", "rows 7", "commit"], "engine": ["rows 3"]}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("log", LOGGED)
async def test_a_stream_ends_at_each_kind_of_place_as_it_was_asked_for(log, side, ending):
    given, last, end = ENDINGS[ending]
    packets = await plain(log)
    for place in ["gtid 2"] if ending == "silence" else PLACES[log]:  # silence costs the time that shows it
        where = nth(packets, *counted(place)) + (side == "after")
        faults = planned(f"{side} {place}", **given)
        expected = framed([*packets[:where], *last])
        found = await tap(faults, log, until=len(expected))
        assert (found.data, found.end) == (expected, end), place
        sent, *others = [record.sent_bytes for record in faults.done]
        assert (sent, others) == (len(framed(packets[:where])), [0] * (ending == "restart"))  # itself is noted


@pytest.mark.parametrize("byte", [1, 19, -1])
@pytest.mark.parametrize(("log", "places"), [("classic", EDITED), ("engine", ["table map 2"])])
async def test_a_stream_is_cut_inside_each_kind_of_event(log, places, byte):
    packets = await plain(log)
    for place in places:
        where = nth(packets, *counted(place))
        faults = planned(f"inside {place} at byte {byte}", action="cut", by="end")
        event, sent = packets[where][1:], framed(packets[: where + 1])
        assert (await tap(faults, log)).data == sent[: len(sent) - len(event) + len(event[:byte])], place


@pytest.mark.parametrize("begins_at", [EventType.GTID, EventType.TABLE_MAP])
async def test_a_dump_by_file_and_offset_has_its_faults_at_the_places_of_what_it_gets(begins_at):
    """From a group on, or from inside one: what is left of that is in no group, so no transaction ends there."""
    name = "binlog.000002"
    data = (LOGS["classic"] / name).read_bytes()
    _, begin, *_ = (offset for offset in event_offsets(data) if data[offset + 4] == begins_at)
    place = name, begin
    packets = (await tap(None, "classic", place=place)).packets
    stored = b"".join(packet[1:] for packet in packets[2:])
    assert stored.startswith(data[begin:])

    for at in ("opening rotate", "opening format description", "rows 2", "commit 3", "file end", "event 4"):
        where = nth(packets, *counted(at))
        for edit in ("drop", "alter", "checksum"):
            given, change = EDITS[edit]
            faults = planned(f"at {at}", **{"action": edit, **given})
            changed = [b"\0" + event for event in change(packets[where][1:])]
            found = await tap(faults, "classic", place=place)
            assert found.data == framed([*packets[:where], *changed, *packets[where + 1 :]]), at
        for given, last, end in [ENDINGS[ending] for ending in ENDINGS if ending != "silence"]:
            faults = planned(f"after {at}", **given)
            expected = framed([*packets[: where + 1], *last])
            found = await tap(faults, "classic", place=place, until=len(expected))
            assert (found.data, found.end) == (expected, end), at


async def test_a_checksum_nobody_expects_is_counted_and_what_needs_one_waits_for_it():
    packets = await plain("engine")
    faults = planned("at rows 2", action="checksum", be="unexpected")
    where = nth(packets, "rows", 2)
    event = packets[where][1:]
    longer = event[:9] + struct.pack("<I", len(event) + 4) + event[13:]
    longer += struct.pack("<I", zlib.crc32(longer))
    assert (await tap(faults)).data == framed([*packets[:where], b"\0" + longer, *packets[where + 1 :]])
    faults = planned("at rows", action="checksum", be="wrong")
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
    faults = planned("at gtid 4", action=action)
    assert (await tap(faults, log)).data == framed(packets[:begin] + changed + packets[after:])
    assert len(faults.done) == 1


async def test_a_cut_inside_a_repeated_group_happens_once():
    packets = await plain("engine")
    begin, end = group_of(packets, 4)
    faults = planned("at gtid 4", action="repeat")
    faults.add("after gtid 5", action="cut", by="end")
    expected = packets[:end] + packets[begin:end] + packets[end : end + 1]
    assert (await tap(faults)).data == framed(expected)


@pytest.mark.parametrize("event", ["rotate", "format", "heartbeat", "stop"])
@pytest.mark.parametrize("log", LOGGED)
async def test_an_event_nobody_expects_is_put_in(event, log):
    packets = await plain(log)
    faults = planned("after table map 2", action="insert", event=event, file="other.000009", position=4711)
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
        data = (await tap(planned(seed=seed, place="after commit 2", action="garbage", count=33))).data
        assert data[: len(before)] + data[len(before) + 33 :] == framed(packets)
        assert found.setdefault(seed, data) == data
    assert found[1] != found[2]


async def test_a_stall_holds_everything_back_for_its_time_and_bytes_drip():
    found = await tap(planned("before rows 2", action="stall", seconds=0.3))
    assert found.data == framed(await plain("engine"))
    assert found.seconds >= 0.3
    packets = await plain("engine")
    faults = planned("before gtid 11", action="drip", bytes_per_s=1000)
    faults.add("inside table map 2 at byte 9", action="drip", bytes_per_s=0)
    found = await tap(faults)
    dripped = len(framed(packets[: nth(packets, "table map", 2)])) - len(framed(packets[: nth(packets, "gtid", 11)]))
    assert found.data == framed(packets)
    assert found.seconds >= dripped / 1000


async def test_a_newer_dump_ends_this_one_at_its_place():
    packets = await plain("engine")
    found = await tap(planned("before commit 4", action="newer dump"))
    where = nth(packets, "commit", 4)
    assert found.packets[:where] == packets[:where]
    assert len(found.packets) == where + 1
    assert found.packets[where].startswith(b"\xff" + struct.pack("<H", 4052) + b"#HY000A slave with the same")


async def test_a_fault_happens_as_often_as_it_says_or_each_time():
    packets = await plain("engine")
    faults = planned("after gtid", action="cut", by="end", times=2)
    async with serving(faults) as port:
        taps = [await trio.to_thread.run_sync(listen_in, port) for _ in range(3)]
    cut = framed(packets[: nth(packets, "gtid") + 1])
    assert [found.data for found in taps] == [cut, cut, framed(packets)]
    packets = await plain("classic")
    found = await tap(planned("at event", action="header", log_pos=0, times="always"), "classic")
    assert found.data == framed([b"\0" + altered(p[1:], log_pos=0) if p[0] == 0 else p for p in packets])


async def test_a_fault_of_one_dump_or_one_replica_leaves_the_others_alone():
    packets = await plain("engine")
    faults = planned("after gtid", action="cut", by="end", connection=2)
    faults.add("before gtid", action="cut", by="end", replica=9)
    async with serving(faults) as port:
        taps = [await trio.to_thread.run_sync(lambda n=n: listen_in(port, server_id=n)) for n in (7, 7, 7, 9)]
    where = nth(packets, "gtid")
    assert [len(found.packets) for found in taps] == [len(packets), where + 1, len(packets), where]


class PlanningPrimary:
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


STEPS = [
    *("before handshake", "after handshake", "after greeting", "before login", "before statement", "after statement"),
    *("before registration", "after registration", "before dump"),
]


def converse(primary):
    """All steps of a conversation; gives a name for each that was taken."""
    taken = []
    connection = connect(primary)
    with contextlib.closing(connection):
        taken.append("login")
        assert ask(connection, "SELECT 17")
        taken.append("statement")
        connection._execute_command(0x15, struct.pack("<IBBBHII", 9, 0, 0, 0, 0, 0, 0))
        connection._read_ok_packet()
        taken.append("registration")
        connection._execute_command(0x12, struct.pack("<IHI", 4, 1, 9))
        if connection._read_packet().get_all_data()[:1] == b"\0":
            taken.append("dump")
    return taken


@pytest.mark.parametrize("by", ["reset", "end"])
@pytest.mark.parametrize("step", STEPS)
def test_a_connection_is_cut_at_each_step(step, by):
    with FixturePrimary(profile="classic-10.11") as primary:
        primary.fault(step, action="cut", by=by)
        with pytest.raises((pymysql.err.OperationalError, ConnectionError)):
            converse(primary)
        assert [str(record.fault) for record in primary.faults.done] == [f"cut {step}"]
        assert converse(primary) == ["login", "statement", "registration", "dump"]


def test_dumps_that_are_asked_for_are_counted_whatever_else_connects():
    with FixturePrimary() as primary:
        primary.fault("before dump", action="error", code=1105, connection=2)
        for is_refused in (False, True, False):
            with contextlib.closing(connect(primary)) as other:
                ask(other, "SELECT 1")
            assert (listen_in(primary.port).packets[-1][:1] == b"\xff") is is_refused
        assert [record.connection_id for record in primary.faults.done] == [4]


ANSWERED = ["before handshake", "before login", "after handshake", "before statement 2", "before registration"]


@pytest.mark.parametrize("step", [*ANSWERED, "before dump"])
def test_an_error_is_the_answer_to_what_was_asked(step):
    with FixturePrimary() as primary:
        primary.fault(step, action="error", code=1045, state="28000", text="not today")
        with pytest.raises(pymysql.err.OperationalError) as caught:
            converse(primary)
        assert caught.value.args == (1045, "not today")


def test_a_statement_is_found_by_its_text_and_answered_otherwise():
    with FixturePrimary(server_id=5) as primary:
        primary.fault("before statement", action="answer", sql="@@server_ID", value="99", times=2)
        primary.fault("before statement 2", action="error", sql="select 1", text="the second one")
        connection = connect(primary)
        assert ask(connection, "SELECT 1") == ((1,),)
        assert [ask(connection, "SELECT @@server_id")[0][0] for _ in range(3)] == ["99", "99", 5]
        with pytest.raises(pymysql.err.MySQLError, match="the second one"):
            ask(connection, "SELECT 1")
        assert ask(connection, "SELECT 1") == ((1,),)
        connection.close()


def test_a_dump_is_answered_by_its_end_and_a_login_takes_its_time():
    with FixturePrimary() as primary:
        primary.fault("before dump", action="eof")
        assert converse(primary) == ["login", "statement", "registration"]
    with FixturePrimary() as primary:
        primary.fault("before login", action="stall", seconds=0.2)
        begun = time.monotonic()
        connect(primary).close()
        assert time.monotonic() - begun >= 0.2


def test_silence_and_garbage_come_where_a_greeting_should():
    with FixturePrimary(faults=Faults(seed=3)) as primary:
        primary.fault("before handshake", action="cut", by="silence")
        with socket.create_connection((primary.host, primary.port)) as quiet:
            quiet.settimeout(0.2)
            with pytest.raises(TimeoutError):
                quiet.recv(1)
        primary.fault("before handshake", action="garbage", count=40)
        with socket.create_connection((primary.host, primary.port)) as noisy, noisy.makefile("rb") as file:
            assert file.read(40) == primary.faults.random_bytes(primary.faults.done[-1].fault, 40)
            assert file.read(5)[4] == 10  # the greeting, behind the header of its packet


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # PyMySQL forgets its socket
@pytest.mark.parametrize("given", [{"action": "cut"}, {"action": "garbage"}, {"action": "kill"}])
def test_tls_fails(given):
    with FixturePrimary(tls="auto") as primary:
        primary.fault("before tls", **given)
        with pytest.raises((pymysql.err.OperationalError, ConnectionError)):
            connect(primary, ssl_disabled=False, ssl={"ca": None, "check_hostname": False})
        gc.collect()  # the socket that PyMySQL has forgotten
        connect(primary, ssl_disabled=False, ssl={"ca": None, "check_hostname": False}).close()


def test_faults_are_planned_by_a_statement_only_where_that_is_allowed():
    with FixturePrimary(faults=Faults(takes_statements=True)) as primary:
        connection = connect(primary)
        ask(connection, "SET GLOBAL ibb_fault = 'cut after gtid; gtid=0-1-7; by=end'")
        ask(connection, "set global ibb_fault='error before statement; sql=t; text=it\\'s'")
        assert list(map(str, primary.faults.pending)) == ["cut after gtid of 0-1-7", "error before statement with 't'"]
        for wrong in ("cut after nothing", "cut", "crash; at=3", "x" * 9000):
            with pytest.raises(pymysql.err.MySQLError):
                ask(connection, f"SET GLOBAL ibb_fault = '{wrong}'")
        ask(connection, "SET GLOBAL ibb_fault = ''")
        assert primary.faults.pending == ()
        connection.close()
    with FixturePrimary() as primary:
        connection = connect(primary)
        with pytest.raises(pymysql.err.MySQLError):
            ask(connection, "SET GLOBAL ibb_fault = 'cut after gtid'")
        connection.close()


def test_heartbeats_fall_silent():
    with FixturePrimary() as primary:
        primary.table("shop.t", id="int primary key")
        primary.fault("after heartbeat 2", action="mute")
        primary.fault("before heartbeat 3", action="error", text="there is another one")
        primary.fault("after gtid 4", action="eof")
        types = []
        with contextlib.closing(
            ask_for_dump(primary.port, statements=["SET @master_heartbeat_period = 1000000"])
        ) as connection:
            while not (packet := connection._read_packet()).is_eof_packet():
                types.append(packet.get_all_data()[5])
                if types.count(EventType.HEARTBEAT) == 2 and types[-1] == EventType.HEARTBEAT:
                    primary.table("shop.t")
                    primary.ddl("CREATE TABLE shop.u (a INT)")
                    primary.ddl("CREATE TABLE shop.v (a INT)")
        assert types.count(EventType.HEARTBEAT) == 2


def test_every_action_has_a_test_here_or_among_the_incidents():
    tests = "".join(
        (pathlib.Path(__file__).parent / name).read_text()
        for name in ("test_fault_stage.py", "test_incident.py", "test_malformed.py")
    )
    assert [word for word in ACTIONS if f'"{word}"' not in tests and f'action="{word}"' not in tests] == []


def test_kill_query_interrupts_a_statement():
    with FixturePrimary() as primary:
        primary.fault("before statement", action="kill", query=True, sql="SELECT 17")
        with contextlib.closing(connect(primary)) as connection:
            with pytest.raises(pymysql.err.OperationalError) as caught:
                ask(connection, "SELECT 17")
            assert caught.value.args == (1317, "Query execution was interrupted")
            assert ask(connection, "SELECT 17") == ((17,),)


def test_a_replica_is_known_from_its_registration_on_and_what_has_a_time_needs_a_scenario():
    with FixturePrimary() as primary:
        for step in ("before registration", "before dump"):
            primary.fault(step, action="error", text=step, replica=9)
            primary.fault(step, action="error", text="another one", replica=10)
            with pytest.raises(pymysql.err.MySQLError, match=step):
                converse(primary)
    with FixturePrimary() as primary, pytest.raises(ConfigurationError, match="belongs into a scenario"):
        primary.faults.add(action="crash", at=1)
