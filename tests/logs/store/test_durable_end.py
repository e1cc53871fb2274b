from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.store.durable_end import PENDING_MAX, DurableEnd, LogStep
from ibbmaster.position import LogPosition


def step(lsn, gtid=None, dropped=()):
    return LogStep(lsn, LogPosition(0, lsn), () if gtid is None else (Gtid.parse(gtid),), dropped)


def test_the_end_moves_over_what_is_durable_and_no_further():
    state = GtidState.parse("0-1-1,7-1-1")
    end = DurableEnd(LogPosition(0, 5), state)
    given = end.snapshot()[1]
    for one in (step(10, "0-1-2"), step(20, None, (7,)), step(30, "0-2-3")):
        end.add(one)
    assert end.is_behind
    end.advance(9)
    assert end.snapshot()[0] == LogPosition(0, 5)
    end.advance(29)
    assert (end.snapshot()[0], str(end.snapshot()[1])) == (LogPosition(0, 20), "0-1-2")
    end.advance(30)
    assert (str(end.snapshot()[1]), end.is_behind) == ("0-1-2,0-2-3", False)
    assert str(state) == str(given) == "0-1-1,7-1-1", "what was given away stays as it was"


def test_a_move_is_told_once_and_nobody_waits_where_it_has_moved():
    end = DurableEnd(LogPosition(0, 5), GtidState())
    assert not end.has_moved()
    end.add(step(10))
    end.wait(60, lambda: False)  # something waits to become durable that can
    end.advance(10)
    end.wait(60, lambda: True)
    assert (end.has_moved(), end.has_moved()) == (True, False)
    end.restart(LogPosition(3, 0), GtidState())
    assert end.has_moved()


def test_there_is_an_end_of_waiting_steps():
    end = DurableEnd(LogPosition(0, 0), GtidState())
    for lsn in range(1, PENDING_MAX + 1):
        end.add(step(lsn))
    assert not end.is_far_behind
    end.add(step(PENDING_MAX + 1))
    assert end.is_far_behind


def test_who_wants_to_be_told_hears_of_each_move_and_of_nothing_else():
    end = DurableEnd(LogPosition(0, 5), GtidState())
    seen: list[LogPosition] = []
    forget = end.tell(lambda: seen.append(end.snapshot()[0]))  # the lock is free by then, and the end moved
    end.add(step(10))
    end.add(step(20))
    end.advance(9)
    assert seen == []
    end.advance(20)
    end.advance(20)
    end.restart(LogPosition(0, 1), GtidState())
    forget()
    end.add(step(30))
    end.advance(30)
    assert seen == [LogPosition(0, 20), LogPosition(0, 1)]
