import threading

import pytest

from ibbmaster.work import BreakReason, BrokenOffError, Work, check_wanted, doing, holding, limit_work


def test_nobody_breaks_off_what_is_no_work():
    limit_work(0)
    check_wanted()


def test_work_ends_where_it_asks_and_the_first_reason_stays():
    work = Work(lambda: 0.0)
    with doing(work):
        check_wanted()
        work.break_off(BreakReason.LEFT)
        work.break_off(BreakReason.KILLED)
        with pytest.raises(BrokenOffError, match="the client has left") as caught:
            check_wanted()
    assert caught.value.reason is BreakReason.LEFT
    check_wanted()  # what comes behind it is another's


def test_its_time_is_counted_from_when_it_is_given():
    now = 5.0
    with doing(Work(lambda: now)):
        limit_work(2.0)
        now = 6.9
        check_wanted()
        limit_work(2.0)
        now = 8.8
        check_wanted()
        now = 8.9
        with pytest.raises(BrokenOffError, match="its time is over"):
            check_wanted()


def test_who_waits_for_a_lock_is_broken_off_too():
    lock = threading.Lock()
    work = Work(lambda: 0.0)
    with lock, doing(work):
        work.break_off(BreakReason.STOPPED)
        with pytest.raises(BrokenOffError), holding(lock):
            pass
    with holding(lock):
        assert lock.locked()
    assert not lock.locked()
