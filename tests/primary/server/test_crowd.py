"""Crowds by themselves, with members that do nothing but count; what real dumps get is in test_growth."""

import contextlib
import socket

import pytest

from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.primary.server import dumping
from ibbmaster.primary.server.dumping import LogEnd
from ibbmaster.primary.streaming.block import Block, FramingState, Groups, Packets
from ibbmaster.primary.streaming.shared import EndProbe, shared_step
from ibbmaster.primary.streaming.sink import SocketSink
from ibbmaster.replication.wire.packet import PacketReader, frame_payloads

FIRST = 20_000


class Log:
    """Steps from place to place, one for each number."""

    def __init__(self, log_end: LogEnd) -> None:
        self.log_end = log_end
        self.end = 0  # the last place: nothing is new there
        self.probe: EndProbe | None = None  # of who leads

    def payloads(self, number: int, size: int = 10) -> list[bytes]:
        return [b"%d" % number * size, b"end"]

    def step(self, number: int, sequence: int, size: int = 10) -> None:
        data, _ = frame_payloads(self.payloads(number, size), sequence & 0xFF)
        before, after = (FramingState(LogPosition(0, FIRST + each)) for each in (number, number + 1))
        gtids = (Gtid(domain_id=0, server_id=1, seq_no=number + 1),)
        block = Block(Packets(data), before, after, Groups(gtids))
        self.log_end.steps[number] = shared_step([block], sequence, number + 1, self.probe)


class Member:
    """A dump that leads by writing what comes, if it may."""

    def __init__(self, log: Log, log_end: LogEnd, *, sequence: int = 0, has_stage: bool = False) -> None:
        self.ours, self.theirs = socket.socketpair()
        for one in (self.ours, self.theirs):
            one.setblocking(False)
        self.first_sequence = sequence
        self.sink, self.sequence, self.has_stage = SocketSink(self.ours.fileno()), sequence, has_stage
        self._log, self._log_end = log, log_end
        self.at = 0  # the place up to which it was brought
        self.may_follow = True
        self.led = 0
        self.woken: list[tuple[int, bytes | None]] = []  # how many steps it had missed, and the rest of one
        self.followed: list[int] = []
        self._received = bytearray()

    def wait(self, place: int | None) -> None:
        self._log_end.join(self, place)

    def follow(self, missed) -> bool:
        block = missed.steps.block
        assert block.before == FramingState(LogPosition(0, FIRST + self.at)), "it is brought from where it was"
        steps = block.end.offset - FIRST - self.at
        assert missed.sequence == (self.sequence + 2 * steps) & 0xFF
        self.at, self.sequence = self.at + steps, missed.sequence
        self.followed.append(steps)
        return self.may_follow

    def lead(self, place, missed) -> None:
        if missed is not None:
            self.follow(missed)
        if self.at == self._log.end:
            self.wait(place)
            return
        if self.has_stage:
            self.wake_up(None)
            return
        self.led += 1
        self._log.step(self.at, self.sequence)
        step = self._log.log_end.steps[self.at]
        self.ours.send(step.numbered(self.sequence))
        self.at, self.sequence = self.at + 1, (self.sequence + 2) & 0xFF
        self.wait(step.after)

    def wake_up(self, missed, rest=None) -> None:
        self.woken.append((0 if missed is None else missed.steps.block.end.offset - FIRST - self.at, rest))
        if missed is not None:
            self.follow(missed)

    def receive(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := self.theirs.recv(1 << 16):
                self._received += data

    def payloads(self) -> list[bytes]:
        self.receive()
        reader = PacketReader(limit=1 << 30, next_sequence=self.first_sequence)
        reader.receive_data(self._received)
        return list(iter(reader.next_payload, None))


@pytest.fixture
def log(log_end):
    return Log(log_end)


@pytest.fixture
def log_end():
    return LogEnd()


@pytest.fixture
def join(log, log_end):
    members = []

    def join(place=0, **options):
        members.append(Member(log, log_end, **options))
        members[-1].wait(place)
        return members[-1]

    yield join
    for member in members:
        member.ours.close()
        member.theirs.close()


@pytest.fixture
def grow(log, log_end):
    def grow():
        log.end += 1
        log_end.announce()

    return grow


@pytest.fixture(autouse=True)
def at_noon(monkeypatch):
    monkeypatch.setattr(dumping.trio, "current_time", lambda: 12.0)


def test_one_leads_and_all_get_the_same_with_their_own_numbers(log, join, grow):
    members = [join(sequence=number) for number in (0, 0, 255, 254, 7, 255)]
    for _ in range(5):
        grow()
    assert sum(member.led for member in members) == 5
    for member in members:
        assert member.payloads() == [payload for number in range(5) for payload in log.payloads(number)]


def test_those_whose_place_is_not_known_lead_and_then_wait_with_the_others(join, grow):
    members = [join(place=None) for _ in range(3)]
    grow()
    assert [member.led for member in members] == [1, 1, 1]
    grow()
    assert sum(member.led for member in members) == 4


def test_a_step_of_an_earlier_growth_is_taken_by_nobody(log, join, grow):
    log.step(0, 0)
    member = join()
    grow()
    assert member.led == 1


def test_who_leaves_takes_along_what_it_has_missed(log, log_end, join, grow):
    members = [join(sequence=number) for number in range(3)]
    for _ in range(2):
        grow()
    late = [member for member in members if not member.led]
    missed = log_end.leave(late[0])
    assert missed.sent_at == 12.0
    late[0].follow(missed)
    assert late[0].at == 2
    grow()
    assert len(late[0].payloads()) == 4
    assert [len(member.payloads()) for member in members if member is not late[0]] == [6, 6]


def test_who_comes_later_has_missed_nothing(log, join, grow):
    members = [join() for _ in range(4)]
    for number in range(1, 3 * dumping.STEPS_MIN):
        grow()
        if number % 10 == 0:
            members.append(join(place=number, sequence=number))
            members[-1].at = number
    assert all(member.at + 2 * dumping.STEPS_MIN > number for member in members)
    assert len(members[-1].payloads()) == 2 * (number - members[-1].first_sequence)


@pytest.mark.parametrize("count", [2, 100])
def test_members_are_brought_up_a_few_at_a_time_and_old_steps_forgotten(log_end, join, grow, count):
    members = [join() for _ in range(count)]
    most = 0
    for _ in range(10 * dumping.STEPS_MIN):  # with one who leads in each
        before = sum(len(member.followed) for member in members)
        grow()
        for member in members:
            member.receive()
        most = max(most, sum(len(member.followed) for member in members) - before)
        (one,) = log_end._crowds.values()
        assert len(one._steps) <= 2 * dumping.STEPS_MIN
    assert most <= count / dumping.STEPS_MIN + 2
    rounds = 10 * dumping.STEPS_MIN
    assert sum(len(member.followed) for member in members) <= rounds + count * rounds / dumping.STEPS_MIN


def test_dumps_with_a_stage_are_woken_for_each_step_and_no_others(join, grow):
    leader, plain, staged = join(), join(), join(has_stage=True)
    grow()
    assert staged.woken == [(0, None)]
    assert staged.payloads() == []
    assert not leader.woken + plain.woken


def test_a_stage_at_a_place_where_it_is_alone_leaves_no_crowd(log_end, join, grow):
    leader, staged = join(), join(has_stage=True)
    grow()
    assert staged.woken == [(0, None)]
    assert list(log_end._crowds) == [leader.at] == [1]
    assert len(log_end) == 1


def test_who_cannot_follow_is_woken(join, grow):
    members = [join() for _ in range(3)]
    broken = members[1]
    broken.may_follow = False
    broken.lead = lambda place, missed: broken.wake_up(missed)
    for _ in range(3 * dumping.STEPS_MIN):
        grow()
    assert len(broken.woken) == 1
    assert len(members[0].payloads()) == len(members[2].payloads()) == 6 * dumping.STEPS_MIN


@pytest.mark.parametrize("counts", [(1, 5), (5, 1)])
def test_crowds_that_come_to_the_same_place_are_one(log, log_end, join, grow, counts):
    """One waits where the other gets to."""
    here, there = ([join(place=place) for _ in range(count)] for place, count in zip((0, 1), counts, strict=True))
    for member in there:
        member.at = 1
    grow()
    assert len(log_end._crowds) == 1
    assert len(log_end) == 6
    before = sum(member.led for member in here + there)
    grow()
    assert sum(member.led for member in here + there) == before + 1
    assert {len(member.payloads()) for member in here} == {4}
    assert {len(member.payloads()) for member in there} == {2}


def test_who_relies_on_a_look_at_the_end_says_so(log, join, grow):
    join()
    log.probe = EndProbe((1, LogPosition(0, FIRST + 1)))
    grow()
    assert not log.probe.has_others
    join(place=1).at = 1
    grow()
    assert log.probe.has_others


def test_all_are_woken_where_nothing_more_comes(log, log_end, join, grow):
    members = [join(), join(), join(place=None)]
    grow()
    log_end.is_over = lambda: True
    log_end.announce()
    assert [len(member.woken) for member in members] == [1, 1, 1]
    assert [member.at for member in members] == [1, 1, 1]
    assert len(log_end) == 0
