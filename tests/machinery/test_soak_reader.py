"""What a reader of a soak finds wrong, and what it does not."""

import pytest

from ibbmaster.dump.artificial import heartbeat
from tests.machinery.soak_log import body_of, gtid_event_of, gtid_of
from tests.machinery.soak_reader import GroupChecker

SEED = 4


def group(seq_no, *, domain_id=0, has_xid=True):
    gtid = gtid_of(domain_id, seq_no)
    return [gtid_event_of(gtid), *body_of(SEED, gtid, has_xid=has_xid)]


def faults_of(*connections):
    """What is wrong with the events of one connection after the other, in one line."""
    checker = GroupChecker("reader", SEED)
    for number, events in enumerate(connections):
        checker.begin(number)
        for event in events:
            checker.receive_event(event)
    checker.finish()
    return "; ".join(checker.faults)


ONE_TO_FIVE = [event for seq_no in range(1, 6) for event in group(seq_no)]


def test_every_group_once_in_the_order_of_its_domain_is_right():
    beat = heartbeat("binlog-000000.ibb", 4, server_id=1, with_checksum=False)
    assert faults_of([*ONE_TO_FIVE, beat, *group(1, domain_id=3), *group(6, has_xid=False)]) == ""


@pytest.mark.parametrize("received", range(len(ONE_TO_FIVE)))
def test_a_connection_may_be_lost_behind_any_event(received):
    starts = [index for index, event in enumerate(ONE_TO_FIVE[: received + 1]) if event[4] == 162]
    again = ONE_TO_FIVE[starts[-1] :]
    assert faults_of(ONE_TO_FIVE[:received], again) == ""


WRONG = {
    "a lost group": ([*group(1), *group(3)], "0-1-3 comes behind 0-1-1: without 0-1-2 to 0-1-2", "lost: 0-1-2"),
    "two groups in the wrong order": ([*group(1), *group(3), *group(2)], "0-1-2 comes late, behind 0-1-3", ""),
    "a group twice": ([*group(1), *group(2), *group(2)], "0-1-2 comes twice", ""),
    "a lost event": ([*group(1), *group(2), *group(3)[:1], *group(3)[2:]], "events that are not those it was", ""),
    "another event": ([*group(1), *group(2), *group(3)[:2], *group(4)[1:]], "events that are not those it was", ""),
    "a group inside another": ([*group(1), *group(2), *group(3)[:2], *group(4)], "0-1-4 begins inside 0-1-3", ""),
    "an event outside of groups": ([*group(1), *group(3)[1:]], "outside of a group", ""),
}


@pytest.mark.parametrize(("events", "fault", "at_end"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_with_its_gtids(events, fault, at_end):
    found = faults_of(events)
    assert fault in found
    assert at_end in found
    assert "connection 0, from [" in found


def test_a_group_that_comes_again_with_other_events_is_wrong():
    first = [*group(1), *group(2), *group(3)[:1], group(4)[1]]
    assert "0-1-3 comes again with other events: a replica counts those it has" in faults_of(first, group(3))
