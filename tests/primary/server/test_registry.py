import logging

import pytest
import trio

from ibbmaster.primary.server.registry import (
    GRACE_S,
    REFUSALS_PAUSE_MAX_S,
    REFUSALS_REMEMBERED_MAX,
    EndReason,
    Refusals,
    Registry,
)


@pytest.fixture
def registry():
    return Registry()


def test_each_connection_has_a_number_of_its_own_also_after_others_have_gone(registry):
    first = registry.open("a", 1.0)
    registry.close(first)
    second = registry.open("b", 2.0)

    assert (first.connection_id, second.connection_id, len(registry)) == (1, 2, 1)
    assert (registry.get(1), registry.get(2), list(registry)) == (None, second, [second])
    registry.close(first)  # a second time does no harm


def test_a_connection_says_what_it_does(registry):
    session = registry.open("a", 1.0)
    assert (session.command, session.user) == ("Connect", "unauthenticated user")
    session.note("Query", "answering", 5.0)
    assert (session.command, session.state, session.since) == ("Query", "answering", 5.0)


async def test_a_newer_dump_of_a_server_ends_the_older_ones(registry, autojump_clock):
    older, newer, other = (registry.open("a", 1.0) for _ in range(3))
    registry.begin_dump(older, 5)
    registry.begin_dump(newer, 5)
    registry.begin_dump(other, 6)
    with trio.CancelScope() as older.waiting:
        registry.end_dumps_of(5, but=newer)
        await trio.sleep_forever()

    assert [session.end_reason for session in (older, newer, other)] == [EndReason.NEWER_DUMP, None, None]
    assert older.scope.deadline == trio.current_time() + GRACE_S


async def test_a_dump_that_is_over_is_no_longer_looked_for(registry):
    older, newer = registry.open("a", 1.0), registry.open("a", 1.0)
    registry.begin_dump(older, 5)
    registry.begin_dump(newer, 5)
    registry.close(newer)
    assert newer.dump_server_id == 5  # as it was, for who asks
    registry.end_dumps_of(5, but=registry.open("a", 1.0))
    assert (older.end_reason, newer.end_reason) == (EndReason.NEWER_DUMP, None)
    registry.close(older)
    assert not registry._dumps


async def test_who_does_not_read_holds_up_a_stop_for_a_second_and_later_reasons_change_nothing(
    registry, autojump_clock
):
    session = registry.open("a", 1.0)
    with session.scope:
        session.end_dump(EndReason.SHUTDOWN)
        deadline = session.scope.deadline
        await trio.sleep_forever()
    assert trio.current_time() <= 1.0 + 1e-6
    session.end_dump(EndReason.KILL_QUERY)
    assert (session.end_reason, session.scope.deadline) == (EndReason.SHUTDOWN, deadline)


async def test_kill_cuts_a_connection_and_kill_query_ends_its_dump(registry):
    dumping, idle = registry.open("a", 1.0), registry.open("a", 1.0)
    registry.begin_dump(dumping, 5)
    registry.kill(dumping.connection_id, query_only=True)
    registry.kill(idle.connection_id, query_only=True)
    registry.kill(99, query_only=False)
    assert (dumping.end_reason, idle.end_reason) == (EndReason.KILL_QUERY, None)
    assert not idle.scope.cancel_called
    registry.kill(idle.connection_id, query_only=False)
    assert idle.scope.cancel_called


async def test_room_is_made_by_who_waits_longest_of_the_address_that_has_most(registry):
    hosts = {name: f"2001:db8::{ord(name):x}" if name.isupper() else "10.0.0.2" for name in "ABabcC"}  # one network
    sessions = {name: registry.open(host, 1.0) for name, host in hosts.items()}
    sessions["a"].is_in = True
    gone = {"a"}
    for name in ("A", "B", "b", "c", "C"):
        assert registry.make_room()
        assert {one for one in sessions if sessions[one].scope.cancel_called} | {"a"} == (gone := gone | {name})
    assert not registry.make_room()
    assert (registry.dropped, sessions["a"].scope.cancel_called) == (5, False)


def test_of_refusals_that_are_alike_the_first_is_logged_and_then_how_many_there_were_in_growing_pauses():
    now = 0.0
    refusals = Refusals(lambda: now)
    lines = {}
    for second in range(86_400):
        now = float(second)
        level, text = refusals.level_of(("10.0.0.7", "0-1-9"))
        if level == logging.WARNING:
            lines[second] = text
    assert list(lines)[:6] == [0, 60, 180, 420, 900, 1860]
    assert list(lines.values())[:3] == ["", *(f" ({count} more like this since its last line)" for count in (59, 119))]
    assert len(lines) < 86_400 / REFUSALS_PAUSE_MAX_S + 10
    assert refusals.level_of(("10.0.0.7", "0-1-10")) == (logging.WARNING, "")


def test_refusals_of_many_are_forgotten():
    refusals = Refusals(lambda: 0.0)
    for number in range(REFUSALS_REMEMBERED_MAX + 1):
        assert refusals.level_of(number) == (logging.WARNING, "")
    assert refusals.level_of(0) == (logging.WARNING, "")
    assert refusals.level_of(REFUSALS_REMEMBERED_MAX) == (logging.DEBUG, "")
