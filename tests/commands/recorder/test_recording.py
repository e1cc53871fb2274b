"""What was recorded beside a primary is played again: byte for byte, fault for fault; and no secret is in it."""

import contextlib
import hashlib
import itertools
import random
import socket
import threading
import time
from pathlib import Path
from typing import ClassVar

import pymysql
import pytest
import trio

import ibbmaster
from ibbmaster.commands.recorder.conversation import DumpPiece
from ibbmaster.commands.recorder.recorded_connection import LIVE_S, RecordedConnection
from ibbmaster.commands.recorder.recorded_dump import RecordedDump
from ibbmaster.commands.recorder.recording import Recording, profile_of_stream
from ibbmaster.errors import ConfigurationError, DiskFullError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.logs.capture.client import PrimaryAddress, groups_between, logged_position
from ibbmaster.replication.event.format_description import (
    ChecksumAlgorithm,
    FormatDescription,
    encode_format_description,
)
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.header import append_checksum, resized
from ibbmaster.replication.wire.command import BinlogDump
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.testkit import FixturePrimary
from ibbmaster.testkit.fault import PlannedFault
from ibbmaster.testkit.scenario import read_scenario
from tests.case_table import rows_of
from tests.machinery.events import make_event, split_events
from tests.recorded import recording
from tests.tap import STARTED_AT, Tapped, listen_in

PROFILES = ["engine", "compat", "classic-10.11", "classic-11.8"]
ALL = 1 << 40  # wait for the end, or for silence
HEARTBEAT = "SET @master_heartbeat_period = 50000000"  # 50 ms
TIMEOUT_S = 60.0
FORMAT = encode_format_description(
    FormatDescription(
        server_version="11.8.2-MariaDB",
        created=0,
        post_header_sizes=bytes(171),
        checksum_algorithm=ChecksumAlgorithm.CRC32,
    ),
    server_id=3,
)


def write(primary, count=5):
    table = primary.table("shop.orders", id="int primary key", note="varchar(20)")
    for number in range(count):
        with primary.transaction() as transaction:
            transaction.annotate(f"INSERT number {number}")
            table.insert(id=number, note="x" * number)
    return table


@contextlib.contextmanager
def recorded(directory, count=5, faults=(), **options):
    with FixturePrimary(server_id=3, **options) as primary:
        write(primary, count)
        for line in faults:
            primary.faults.add_fault(PlannedFault.parse(line))
        with recording(primary.port, directory) as recorder:
            yield primary, recorder


def faults_in(directory):
    return read_scenario(directory / "scenario.toml").faults


def timed(directory, monkeypatch):
    moments = [0.0]
    monkeypatch.setattr(Recording, "now", lambda _: moments[-1])
    made = Recording(directory, "nowhere")
    made.primary_answered()
    return made, moments


def set_started(primary):
    primary._running._primary._parts.facts.started_at = STARTED_AT


def heard(port, **how):
    try:
        found = listen_in(port, **how)
        return found if found.data else Tapped(data=b"gone", end="refused", seconds=0)
    except pymysql.MySQLError as error:
        told = b"gone" if error.args[0] in (2003, 2006, 2013) else repr(error.args).encode()
        return Tapped(data=told, end="refused", seconds=0)


def play(directory, hear, *, at_once=True, **options):
    scenario = read_scenario(directory / "scenario.toml")
    with (scenario.at_once() if at_once else scenario).serving(**options) as primary:
        set_started(primary)
        found = hear(primary.port)
        primary.verify()
        return found, primary.faults


FAULTS = {where: faults for where, *faults in rows_of(__file__, "faults")}


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
def test_what_went_wrong_goes_wrong_again_byte_for_byte(faults, tmp_path):
    def hear(port):
        if "eof" in faults[0]:  # to one that waits; who does not wait is told the end in any case
            return [heard(port, until=ALL)]
        return [heard(port, position=start) for start in ("", "", "", "0-3-4")]

    with recorded(tmp_path / "r", faults=faults, profile="classic-11.8") as (primary, recorder):
        set_started(primary)
        first = hear(recorder.port)
        assert primary.faults.pending == ()
    again, found = play(tmp_path / "r", hear)
    assert [(one.end, one.data) for one in again] == [(one.end, one.data) for one in first], recorder.text
    assert found.pending == ()


def groups_of(port, start="", end=None, user="repl", password=""):
    """What this project's own client reads: the bytes of each group, but for the positions of its events."""
    primary = PrimaryAddress(host="127.0.0.1", port=port, user=user, password=password, uses_tls=False, server_id=9)
    end = logged_position(primary) if end is None else end
    found = {}
    for group in groups_between(primary, GtidPosition.parse(start), end):
        events = split_events(group.gtid_event + b"".join(map(bytes, group.body)))
        found[str(group.gtid)] = b"".join(event[:13] + bytes(4) + event[17:] for event in events)
    return found


@pytest.mark.parametrize("profile", PROFILES)
def test_the_groups_of_a_stream_of_any_shape_are_the_same_again(profile, tmp_path):
    with FixturePrimary(profile=profile, server_id=3) as primary:
        write(primary)
        primary.xa_commit(prepared(primary))
        with recording(primary.port, tmp_path / "r") as recorder:
            first = groups_of(recorder.port, "0-3-3")
        expected = groups_of(primary.port, "0-3-3")
    assert list(first) == list(expected)[: len(first)]
    assert first == expected
    again, _ = play(tmp_path / "r", lambda port: groups_of(port, "0-3-3"), at_once=False)
    assert again == first
    assert logged(tmp_path / "r") == list(first.items())
    with ibbmaster.open(tmp_path / "r" / "log") as log:
        assert [fault for fault in log.verify() if fault.is_damage] == []


def prepared(primary):
    with primary.transaction() as transaction:
        primary.table("shop.orders").insert(id=90)
        transaction.prepare("xa")
    return "xa"


def test_a_group_whose_checksum_was_wrong_is_logged_as_it_came_right_later(tmp_path):
    fault = "alter at rows; gtid=0-3-4; byte=-6; bits=3"
    with recorded(tmp_path / "r", 2, [fault], profile="classic-11.8") as (primary, recorder):
        spoilt, right = heard(recorder.port), heard(recorder.port, position="0-3-3")
        rows = [row.after for group in primary.log.groups() for _, row in group.rows()]
    assert spoilt.data != right.data
    assert "at rows 1" in recorder.text
    with ibbmaster.open(tmp_path / "r" / "log") as log:
        assert [row.after for group in log.groups() for _, row in group.rows()] == rows


def test_an_event_in_pieces_is_logged_whole(memory_path, monkeypatch):
    monkeypatch.setattr("ibbmaster.commands.recorder.conversation.PIECE_MAX", 5000)
    for profile in ("engine", "classic-11.8"):
        with FixturePrimary(profile=profile, server_id=3) as primary:
            table = primary.table("shop.blobs", id="int primary key", data="longblob")
            table.insert(id=1, data=b"first" * 7000)
            primary.ddl("CREATE TABLE shop.t (a int) /*" + "x" * 20_000 + "*/")
            table.insert(id=2, data=b"second" * 3_000_000)
            expected = groups_of(primary.port)
            with recording(primary.port, memory_path / profile) as recorder:
                assert groups_of(recorder.port) == expected
        assert logged(memory_path / profile) == list(expected.items())


def logged(directory):
    with ibbmaster.open(directory / "log") as log:
        return [(str(group.gtid), b"".join(event.data for event in group.events())) for group in log.groups()]


def group_of(gtid, *bodies):
    head = encode_gtid_event(GtidEvent(gtid=gtid, flags=GtidFlag.TRANSACTIONAL))
    return [head, *(make_event(160, 3, body) for body in bodies), make_event(16, 3, bytes(8))]


def begun_dump(recording, state):
    dump = RecordedDump(recording, BinlogDump(position=4, flags=0, server_id=9, file_name=""), state)
    dump.take(DumpPiece(data=b"\0" + FORMAT, is_first=True, is_last=True))
    return dump


@pytest.mark.parametrize("seed", range(6))
def test_whatever_came_wrong_the_log_has_each_group_once_as_it_came_right(tmp_path, seed):
    rng, state, groups = random.Random(seed), GtidState(), []
    for _ in range(30):
        domain_id, server_id = rng.randrange(2), rng.choice((1, 2))
        seq_no = (state.seq_no(domain_id, server_id) or (0 if server_id == 1 else 50)) + 1
        gtid = Gtid(domain_id=domain_id, server_id=server_id, seq_no=seq_no)
        bodies = [rng.randbytes(rng.choice((30, 700, 2500, 6000))) for _ in range(rng.randrange(1, 5))]
        groups.append((gtid, state.copy(), group_of(gtid, *bodies)))
        state.log(gtid)
    recording = Recording(tmp_path / "r", "nowhere")
    begun, wrong_ones = 0, 0
    while begun < len(groups):
        dump = begun_dump(recording, groups[begun][1])
        wrong = begun + rng.randrange(8)
        for number, (_, _, events) in enumerate(groups[begun:], start=begun):
            spoilt = rng.randrange(1, len(events)) if number == wrong else -1
            for place, event in enumerate(events):
                for piece in pieces_of(rng, event, is_spoilt=place == spoilt):
                    dump.take(piece)
            if number == wrong:
                wrong_ones += 1
                break
        begun = number + (number != wrong)
        dump.drop()
    recording.close()
    assert not recording.problem
    assert wrong_ones
    assert logged(tmp_path / "r") == [(str(gtid), b"".join(events)) for gtid, _, events in groups]


def test_a_group_whose_checksum_was_wrong_is_logged_as_it_came_where_its_consumer_goes_on(tmp_path):
    rng = random.Random(1)
    recording = Recording(tmp_path / "r", "nowhere")
    dump = begun_dump(recording, GtidState())
    came = []
    for seq_no in (1, 2, 3):
        for event in group_of(Gtid(domain_id=0, server_id=1, seq_no=seq_no), bytes(100)):
            (piece,) = pieces_of(rng, event, is_spoilt=seq_no == 2 and len(event) > 100)
            dump.take(piece)
            came.append(piece.data[20:-4])
    dump.drop()
    recording.close()
    assert not recording.problem
    with ibbmaster.open(tmp_path / "r" / "log") as log:
        assert [event.data[19:] for group in log.groups() for event in group.events()] == came


def test_a_log_begins_where_the_first_dump_did_though_another_began_before_its_first_group(tmp_path):
    rng, recording = random.Random(1), Recording(tmp_path / "r", "nowhere")
    dumps = [begun_dump(recording, GtidState.parse(start)) for start in ("0-1-5", "0-1-2")]
    gtid = Gtid.parse("0-1-6")
    for event in group_of(gtid, bytes(100)):
        dumps[0].take(*pieces_of(rng, event, is_spoilt=False))
    recording.close()
    assert not recording.problem
    with ibbmaster.open(tmp_path / "r" / "log") as log:
        assert str(log.engine.start_of_file().state) == "0-1-5"
        assert [group.gtid for group in log.groups()] == [gtid]


def test_a_group_that_is_left_out_holds_no_room_in_the_log(tmp_path):
    rng, recording = random.Random(1), Recording(tmp_path / "r", "nowhere")
    dump = begun_dump(recording, GtidState())
    for number, event in enumerate(group_of(Gtid.parse("0-1-1"), *[bytes(1900)] * 400)):
        dump.take(*pieces_of(rng, event, is_spoilt=number == 1))
    store = recording._log.store
    assert store.status().open_groups == 1
    dump.drop()
    assert store.status().open_groups == 0
    recording.close()


def test_what_broke_off_seconds_before_a_primary_ends_is_a_fault_of_its_own(tmp_path, monkeypatch):
    recording, moments = timed(tmp_path / "r", monkeypatch)
    for dump, at in enumerate((10.0, 12.0, 12.5), start=1):
        moments.append(at)
        recording.add_fault({"place": "after gtid", "gtid": f"0-3-{dump}", "action": "cut"}, dump=dump)
    moments.append(13.0)
    recording.primary_refused()
    moments.append(15.0)
    recording.primary_answered()
    recording.close()
    faults = faults_in(tmp_path / "r")
    assert list(map(str, faults)) == ["cut after gtid of 0-3-1", "crash after gtid of 0-3-3"]
    assert faults[1].action.closed_s == 2.5


@pytest.mark.parametrize("comes_back", [True, False], ids=["and comes back", "and stays away"])
@pytest.mark.parametrize(
    ("ends", "action"),
    [("cut", "crash"), ("cut cut", "crash"), ("eof", "restart"), ("eof cut", "restart"), ("cut eof", "restart")],
)
def test_a_primary_has_ended_in_order_if_one_of_its_connections_has(tmp_path, monkeypatch, ends, action, comes_back):
    """One that a signal ends says so to dumps that wait, and cuts who is busy."""
    recording, moments = timed(tmp_path / "r", monkeypatch)
    for dump, end in enumerate(ends.split(), start=1):
        moments.append(10.0 + dump / 10)
        recording.add_fault({"place": "after gtid", "gtid": f"0-3-{dump}", "action": end}, dump=dump)
    ended = moments[-1]
    moments.append(ended + 0.1)
    recording.add_fault({"place": "before login", "action": "cut"})  # and one that had no dump yet
    moments.append(11.0)
    recording.primary_refused()
    moments.append(ended + 2.5)
    if comes_back:
        recording.primary_answered()
    recording.close()
    (fault,) = faults_in(tmp_path / "r")
    assert (str(fault), fault.action.closed_s) == (f"{action} after gtid of 0-3-{len(ends.split())}", 2.5)


def pieces_of(rng, event, *, is_spoilt):
    data = bytearray(append_checksum(resized(event + bytes(4))[:-4]))
    if is_spoilt:
        data[rng.randrange(19, len(data))] ^= 4  # behind the header
    cuts = [] if len(data) < 2000 else sorted(rng.sample(range(60, len(data)), rng.randint(1, 3)))
    for first, end in itertools.pairwise([0, *cuts, len(data)]):
        prefix = b"" if first else b"\0"
        yield DumpPiece(data=prefix + bytes(data[first:end]), is_first=not first, is_last=end == len(data))


def test_live_groups_come_again_at_their_time_and_not_before(tmp_path):
    with FixturePrimary(server_id=3) as primary:
        table = write(primary)
        with recording(primary.port, tmp_path / "r") as recorder:
            listener = threading.Thread(target=heard, args=(recorder.port,), kwargs={"until": ALL}, daemon=True)
            listener.start()
            wait_until(lambda: recorder.recording.group_count >= 7)
            while not recorder.recording.is_live:  # it heard of nothing for so long only if it was not busy itself
                last = recorder.recording.group_count
                time.sleep(LIVE_S + 0.1)
                table.insert(id=last + 3)
                wait_until(lambda last=last: recorder.recording.group_count > last)
            time.sleep(LIVE_S)
            table.insert(id=last + 4)
            wait_until(lambda: recorder.recording.group_count == last + 2)
            primary.stop()
            listener.join(TIMEOUT_S)
    scenario = read_scenario(tmp_path / "r" / "scenario.toml")
    times = {group.what: group.at for group in scenario.groups}
    history, first, second = (f"0-3-{last + number}" for number in range(3))
    assert list(times) == [history, first, second]
    assert times[history] is None
    assert LIVE_S <= times[first] <= times[second] - LIVE_S
    with scenario.serving() as again:
        assert str(again.log.position) == history
        time.sleep(LIVE_S)  # its times count from the first connection on
        assert str(again.log.position) == history
        begun = time.monotonic()
        assert len(groups_of(again.port)) >= last
        wait_until(lambda: str(again.log.position) == second)
        assert time.monotonic() - begun >= times[second]
        assert len(groups_of(again.port)) == last + 2
    with scenario.at_once().serving() as again:
        assert str(again.log.position) == second


def wait_until(holds):
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_silence_is_a_stall_only_where_heartbeats_were_due(tmp_path):
    with FixturePrimary(server_id=3) as primary:
        write(primary, 1)
        primary.fault("before commit", gtid="0-3-3", action="stall", seconds=1.0, times=2)
        for number, statements in enumerate(((), (HEARTBEAT,))):
            with recording(primary.port, tmp_path / str(number)) as recorder:
                heard(recorder.port, statements=statements)
            faults = faults_in(tmp_path / str(number))
            assert [str(fault) for fault in faults] == ["stall after rows 1 of 0-3-3"][: len(statements)]
    assert LIVE_S < faults[0].action.seconds < 60  # a busy recorder begins to count late
    assert read_scenario(tmp_path / "1" / "scenario.toml").at_once().faults == ()


def test_a_consumer_that_leaves_a_silent_primary_was_left_alone(tmp_path):
    with recorded(tmp_path / "r", 1, ["cut after gtid; gtid=0-3-3; by=silence"]) as (_, recorder):
        heard(recorder.port, until=1, statements=(HEARTBEAT,))
        wait_until(lambda: recorder.recording.fault_count)
    (fault,) = faults_in(tmp_path / "r")
    assert (str(fault), fault.action.by) == ("cut after gtid of 0-3-3", "silence")


def test_a_consumer_that_leaves_is_no_fault(tmp_path):
    with recorded(tmp_path / "r") as (_, recorder):
        heard(recorder.port, until=1)
        wait_until(lambda: "left: " in recorder.recording.text())
    assert faults_in(tmp_path / "r") == ()


class Heard(RecordedConnection):
    calls: ClassVar[list[tuple[str, tuple[object, ...]]]] = []

    async def from_primary(self, data, waited_s, send):
        self.calls.append(("from_primary", (data, waited_s)))
        await super().from_primary(data, waited_s, send)

    async def from_client(self, data, send):
        self.calls.append(("from_client", (data,)))
        await super().from_client(data, send)


async def told(connection, calls):
    async def send(data):
        pass

    for name, arguments in calls:
        await getattr(connection, name)(*arguments, send)


ENDS = {"it closes": ("client_left", ("end", 0.0)), "it says so": ("from_client", (b"\x01\0\0\0\x01",))}


@pytest.mark.parametrize("leave", ENDS.values(), ids=ENDS)
def test_what_comes_behind_a_consumers_end_changes_nothing(leave, tmp_path, monkeypatch):
    """A primary notices late that a replica has gone, and ends its dump by an error that nobody sees."""
    monkeypatch.setattr("tests.recorded.RecordedConnection", Heard)
    monkeypatch.setattr(Heard, "calls", [])
    faults = [
        "stall inside rows at byte 20; gtid=0-3-4; seconds=0.2",  # bytes come in two pieces
        "error after rows; gtid=0-3-4; code=4052; text=a newer dump of the same server",
    ]
    with recorded(tmp_path / "r", 2, faults, profile="classic-11.8") as (_, recorder):
        heard(recorder.port, until=ALL, statements=(HEARTBEAT,))
        assert recorder.recording.fault_count >= 1
    dump = next(place for place, (_, args) in enumerate(Heard.calls) if args[0][4:5] == b"\x12")
    name, arguments = leave
    for place in range(dump + 1, len(Heard.calls)):
        made = Recording(tmp_path / f"{place}", "somewhere")

        async def follow(made=made, place=place):
            connection = RecordedConnection(made, trio.CapacityLimiter(1), "somebody")
            await connection.connected()
            await told(connection, Heard.calls[:place])
            if name == "client_left":
                await connection.client_left(*arguments)
            else:
                await told(connection, [leave])
            seen = made.fault_count, made.group_count, made.is_live, list(made._notes)
            await told(connection, Heard.calls[place:])
            await connection.primary_left("reset")
            assert (made.fault_count, made.group_count, made.is_live, list(made._notes)) == seen

        trio.run(follow)
        made.close()
        assert made.problem == ""


@pytest.mark.parametrize(("incident", "action"), [("crash", "crash"), ("stop", "restart")])
def test_a_primary_that_was_away_is_away_again(incident, action, tmp_path):
    with recorded(tmp_path / "r") as (primary, recorder):
        listener = threading.Thread(target=heard, args=(recorder.port,), kwargs={"until": ALL}, daemon=True)
        listener.start()
        wait_until(lambda: recorder.recording.group_count == 7)
        getattr(primary._incidents, incident)()
        listener.join(TIMEOUT_S)
        assert heard(recorder.port).data == b"gone"
        primary.start()
        assert len(groups_of(recorder.port)) == 7
    (fault,) = faults_in(tmp_path / "r")
    assert str(fault) == f"{action} after commit of 0-3-7"
    assert fault.action.closed_s > 0
    again, faults = play(tmp_path / "r", lambda port: heard(port, until=ALL), at_once=False)
    assert again.end == ("reset" if action == "crash" else "end")
    assert [str(record.fault) for record in faults.done] == [str(fault)]


def test_tls_is_not_offered_and_who_insists_on_it_is_named(tmp_path, caplog):
    with recorded(tmp_path / "r", 1, tls="auto") as (_, recorder):
        with pymysql.connect(host="127.0.0.1", port=recorder.port, user="repl") as connection:
            assert not connection._secure  # it would take TLS
        with socket.create_connection(("127.0.0.1", recorder.port), timeout=TIMEOUT_S) as client:
            assert client.recv(1000)[4] == 10  # and leaves
        wait_until(lambda: "insist on TLS" in caplog.text)
    assert caplog.text.count("left before its login: it may insist on TLS") == 1
    assert "insist on TLS" in recorder.text


def test_no_secret_is_in_any_file(tmp_path):
    password, other = "s3cret of the login", "an0ther secret"
    hashed = "*" + hashlib.sha1(hashlib.sha1(other.encode()).digest()).hexdigest().upper()
    with FixturePrimary(server_id=3, profile="classic-11.8", password=password) as primary:
        write(primary, 1)
        primary.ddl(f"CREATE USER a IDENTIFIED BY '{other}'")
        primary.ddl(f"SET PASSWORD FOR a = '{hashed}'")
        with primary.transaction() as transaction:
            transaction.statement(f"UPDATE users SET password = '{other}'", database="shop")
        sql = f"CHANGE MASTER TO MASTER_PASSWORD = '{other}'"
        primary.fault("before statement", sql="CHANGE MASTER", action="error", code=1064, text=f"near '{other}'")
        with recording(primary.port, tmp_path / "r") as recorder:
            with pytest.raises(pymysql.Error):
                listen_in(recorder.port, password="a wr0ng one")
            with pytest.raises(pymysql.Error):
                listen_in(recorder.port, password=password, statements=[sql])
            first = groups_of(recorder.port, password=password)
            files = read_all(tmp_path / "r")
        files += read_all(tmp_path / "r")
    for secret in (password, other, hashed, "a wr0ng one"):
        scrambled = hashlib.sha1(secret.encode()).digest()
        for form in (secret.encode(), scrambled, hashlib.sha1(scrambled).digest(), scrambled.hex().encode()):
            assert form not in files
            assert form.upper() not in files
    assert "MASTER_PASSWORD = '***'" in recorder.text

    def hear_again(port):
        for _ in range(2):  # those that failed fail again
            heard(port, password="new")
        return groups_of(port, password="new")

    again, _ = play(tmp_path / "r", hear_again, password="new")
    assert list(again) == list(first)
    assert [len(data) for data in again.values()] == [len(data) for data in first.values()]


def read_all(directory):
    return b"".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


def test_a_full_disk_ends_the_recording_and_not_the_relay(tmp_path, monkeypatch, caplog):
    with FixturePrimary(server_id=3) as primary:
        write(primary, 3)
        made, written = RealDisk.write, []

        def write_until_full(self, *arguments):
            if Path(self.directory) == tmp_path / "r" / "log" and len(written) > 4:
                raise DiskFullError("binlog-000000.ibb: No space left on device")
            written.append(arguments)
            return made(self, *arguments)

        with contextlib.suppress(AssertionError), recording(primary.port, tmp_path / "r") as recorder:
            monkeypatch.setattr(RealDisk, "write", write_until_full)
            table = primary.table("shop.orders")
            for number in range(100, 140):
                table.insert(id=number)
                assert len(groups_of(recorder.port)) == number - 100 + 6
                if recorder.recording.problem:
                    break
        assert recorder.recording.problem
        monkeypatch.undo()
    assert "the recording ends here" in caplog.text
    assert "the recording ends here" in recorder.text
    assert not (tmp_path / "r" / "reserve").exists()


def test_a_recording_needs_a_directory_of_its_own(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigurationError, match="is not empty"):
        Recording(tmp_path, "somewhere")
    with pytest.raises(ConfigurationError, match="file"):
        Recording(tmp_path / "file" / "r", "somewhere")


def test_many_live_groups_come_together(tmp_path, monkeypatch):
    monkeypatch.setattr("ibbmaster.commands.recorder.recording.TIMES_MAX", 10)
    made = Recording(tmp_path / "r", "somewhere")
    made.is_live = True
    moments = iter(range(1, 1000))
    monkeypatch.setattr(made, "now", lambda: next(moments) / 100)
    with ibbmaster.create(tmp_path / "source") as source:
        for number in range(1, 200):
            source.append(Gtid.parse(f"0-1-{number}"), "INSERT INTO t VALUES (1)")
        for group in source.groups():
            copy = made.open_group(group.gtid, GtidState())
            for event in list(group.events())[1:]:
                copy.write(event.data)
            made.commit(copy, group.gtid, next(group.events()).data)
    made.close()
    scenario = read_scenario(tmp_path / "r" / "scenario.toml")
    assert 3 < len(scenario.groups) <= 11
    assert scenario.groups[-1].what == "0-1-199"
    with scenario.at_once().serving() as primary:
        assert len(groups_of(primary.port)) == 199


@pytest.mark.parametrize(("version", "shape", "profile"), rows_of(__file__, "profiles"))
def test_a_profile_is_found_by_version_and_shape(version, shape, profile):
    assert profile_of_stream(version, shape) == profile


def test_bytes_that_are_no_conversation_pass_and_are_said(tmp_path, caplog):
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        recorder = stack.enter_context(recording(listener.getsockname()[1], tmp_path / "r"))
        for hello in (b"SSH-2.0-hello\r\n", random.randbytes(100_000), b"\x05\0\0\0\x0aabcd"):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", recorder.port), timeout=TIMEOUT_S))
            server = stack.enter_context(listener.accept()[0])
            for one in (server, client):
                one.sendall(hello)
                one.shutdown(socket.SHUT_WR)
            assert read_to_end(client) == read_to_end(server) == hello
    assert "from here on passed on unread" in caplog.text
    read_scenario(tmp_path / "r" / "scenario.toml")


def read_to_end(one):
    return b"".join(iter(lambda: one.recv(1 << 16), b""))
