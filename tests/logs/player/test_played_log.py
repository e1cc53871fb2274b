import math
import random
import threading
import time

import pytest

import ibbmaster
from ibbmaster.errors import ConfigurationError, IbbMasterError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.player import played_log
from ibbmaster.logs.player.played_log import Pace, PlayedLog
from ibbmaster.replication.event.types import EventType
from tests.built_logs import FIXTURES
from tests.logs.stages.test_engine import sent_gtids
from tests.tap import ask_for_dump

LATE_S = 1.0  # that a machine may be busy with something else


class Clock:
    now = 5000.0

    def __call__(self):
        return self.now


def played(name, pace, clock, **options):
    log = ibbmaster.open(FIXTURES / name)
    return PlayedLog(log.through(until=str(log.position)).engine, Pace(factor=pace), clock, **options)


def times_of(name):
    with ibbmaster.open(FIXTURES / name) as log:
        return [(group.timestamp, group.gtid) for group in log]


def test_a_recording_without_end_goes_as_far_as_it_is_read_and_a_round_more(monkeypatch):
    monkeypatch.setattr(played_log, "ADVANCE_MAX", 7)
    with ibbmaster.open(FIXTURES / "ibb/types") as opened:
        log = opened.played("max", rounds=None).player
        size = len(times_of("ibb/types"))
        for round_no in range(4):
            for _ in range(size):
                log.advance()
            assert log.count == size * max(1, round_no)
            groups = log.groups(log.start_of_file())
            assert None not in [groups.next_group() for _ in range(size * round_no + 1)]
            groups.close()
        assert not log.is_over


def read_all(groups):
    found = []
    while (group := groups.next_group()) is not None:
        if group.gtid is not None:
            assert sum(len(piece) for piece in group.body) > 0
            found.append(group.gtid)
    return found


@pytest.mark.parametrize("name", ["ibb/domains", "classic/10.11/domains", "classic/11.8/chained"])
@pytest.mark.parametrize("pace", [0.5, 1, 10])
def test_each_group_comes_when_it_is_due(name, pace, dumped):
    rng = random.Random(random.random())
    clock, recorded = Clock(), times_of(name)
    log = played(name, pace, clock)
    first = recorded[0][0]
    early, got = log.groups(log.start_of_file()), []
    while not log.is_over:
        due = [gtid for time, gtid in recorded if (time - first) / pace <= clock.now - 5000]
        got += read_all(early)
        assert got == due
        assert log.state() == GtidState(due)
        late, _ = dumped(log, GtidState().position(), waits_at_end=False)
        assert sent_gtids(late) == due, "who comes late gets what was logged meanwhile"
        clock.now += rng.choice([0.1, 0.4, 1.3]) / pace
    assert got + read_all(early) == [gtid for _, gtid in recorded]


def test_the_clock_of_a_recording_may_begin_with_its_first_reader():
    clock = Clock()
    log = played("ibb/domains", 1, clock, starts_when_read=True)
    clock.now += 1000
    assert not log.advance()
    assert (str(log.state()), log.last_gtid) == ("", None)
    groups = log.groups(log.start_of_file())
    recorded = times_of("ibb/domains")
    assert read_all(groups) == [gtid for time, gtid in recorded if time == recorded[0][0]]


def test_step_by_step_each_step_logs_one_group():
    log = played("ibb/types", 0, Clock())
    groups, recorded = log.groups(log.start_of_file()), [gtid for _, gtid in times_of("ibb/types")]
    assert read_all(groups) == []
    log.step()
    assert read_all(groups) == recorded[:1]
    log.step(3)
    assert read_all(groups) == recorded[1:4]
    log.step(10**9)
    assert read_all(groups) == recorded[4:]
    assert log.is_over


def test_a_clock_that_was_set_back_stops_no_recording():
    """The last group of this log is years older than those before it."""
    clock, recorded = Clock(), times_of("ibb/types")
    assert recorded[-1][0] < recorded[0][0]
    log = played("ibb/types", 1, clock)
    clock.now += max(time for time, _ in recorded) - recorded[0][0]
    assert log.is_over
    assert read_all(log.groups(log.start_of_file())) == [gtid for _, gtid in recorded]


def test_who_waits_is_woken_when_the_next_group_is_due():
    log = played("ibb/types", 0, Clock())
    assert not log.wait_for_growth(0.0)
    timer = threading.Timer(0.05, log.step)
    timer.start()
    assert log.wait_for_growth(30.0)
    timer.join()
    assert log.count >= 1


def test_a_recording_that_cannot_be_read_on_is_an_error_where_that_is(tmp_path):
    for path in (FIXTURES / "classic/10.11/domains").glob("binlog.0*"):
        data = bytearray(path.read_bytes())
        if path.name == "binlog.000002":
            data[len(data) // 2] ^= 1
        (tmp_path / path.name).write_bytes(data)
    with ibbmaster.open(tmp_path) as whole:
        log = PlayedLog(whole.through(until=str(whole.position)).engine, Pace(factor=math.inf), Clock())
        groups = log.groups(log.start_of_file())
        with pytest.raises(IbbMasterError):
            read_all(groups)


def test_tables_are_those_of_the_moment_also_where_the_recording_begins_later():
    """Of what comes before the part all is known, of what comes in it what is logged by now."""
    with ibbmaster.open(FIXTURES / "ibb/xa-and-ddl") as log:
        recording = log.through(after="0-1-20", until="0-1-60").played("step")
        recording.player.start()
        recording.player.step(5)
        past = recording.player.with_past
        found = [
            group.gtid.seq_no
            for one in past.ranges(past.start_of_file().position, past.end(), size=1)
            for group in past.groups_in(one)
        ]
        assert found == list(range(1, 26))
        assert read_all(past.groups(past.start_of_file()))[-1].seq_no == 25
        assert past.state() == recording.state
        assert [file.name for file in past.files()] == [file.name for file in log.files][:1]


def test_what_is_appended_later_is_no_part_of_the_recording(tmp_path):
    with ibbmaster.create(tmp_path / "log") as log:
        log.append("0-1-1", ["INSERT INTO t VALUES (1)"])
        recording = log.played("max")
        log.append("0-1-2", ["INSERT INTO t VALUES (2)"])
        assert [str(group.gtid) for group in recording] == ["0-1-1"]
        assert recording.player.is_over


@pytest.mark.parametrize(("options", "text"), [({"pace": "slow"}, "pace 'slow'"), ({"rounds": 0}, "0 rounds")])
def test_what_cannot_be_played_is_refused(options, text, tmp_path):
    with ibbmaster.open(FIXTURES / "ibb/types") as log, pytest.raises(ConfigurationError, match=text):
        log.played(**options)
    with ibbmaster.open(tmp_path) as empty, pytest.raises(ConfigurationError, match="no transaction to play"):
        empty.played()


@pytest.mark.parametrize("pace", [1, 10])
def test_a_client_gets_each_group_in_its_time(pace, pytestconfig):
    """Over a socket and by the real clock: none comes early, and the last one no more than a twentieth late."""
    seconds = pytestconfig.getoption("--pace-seconds")
    of_domain = [(moment, gtid) for moment, gtid in times_of("ibb/domains") if gtid.domain_id == 2]
    recorded = [(moment, gtid) for moment, gtid in of_domain if moment - of_domain[0][0] < seconds * pace]
    length = recorded[-1][0] - recorded[0][0] + 1
    rounds = max(1, round(seconds * pace / length))
    with ibbmaster.open(FIXTURES / "ibb/domains") as log:
        recording = log.through(until=str(recorded[-1][1])).played(f"x{pace}", rounds=rounds, starts_when_read=True)
        wanted = (rounds * length - 1) / pace
        with ibbmaster.serve(recording, tls="off", at_end="close") as primary:
            begun = time.monotonic()
            connection, came = ask_for_dump(primary.port), []
            while (payload := connection._read_packet().get_all_data())[0] == 0:
                if payload[5] == EventType.GTID:
                    came.append((time.monotonic(), int.from_bytes(payload[1:5], "little")))
            connection._force_close()
    assert len(came) == rounds * len(recorded)
    for number, (moment, timestamp) in enumerate(came):
        assert moment - begun >= (timestamp - recorded[0][0]) / pace - 0.01, number
    assert came[-1][0] - begun <= wanted * 1.05 + LATE_S


@pytest.mark.parametrize(
    ("text", "factor"),
    [("original", 1.0), ("x10", 10.0), ("×2.5", 2.5), ("X0.5", 0.5), ("4x", 4.0), ("max", math.inf), ("step", 0.0)],
)
def test_a_pace_is_a_word_or_a_factor(text, factor):
    assert Pace.parse(text).factor == factor


@pytest.mark.parametrize("text", ["", "10", "x0", "x", "x-1", "fast", "xinf", "x1e9"])
def test_what_is_no_pace_is_refused(text):
    with pytest.raises(ConfigurationError, match="expected original, max, step, or a factor as x10"):
        Pace.parse(text)
