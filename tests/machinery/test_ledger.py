from types import SimpleNamespace

import pytest

from ibbmaster.position import LogPosition
from tests.machinery.ledger import GroupStage, Ledger
from tests.machinery.log_checker import CheckError


def found(*numbers, prepared=(), first_file_no=0, events=b"events"):
    groups = [SimpleNamespace(gtid=(0, 1, number), events=events, file_no=0) for number in numbers]
    return SimpleNamespace(groups=groups, prepared=dict.fromkeys(prepared), first_file_no=first_file_no)


def fed(count, *, durable=0):
    ledger = Ledger()
    for number in range(1, count + 1):
        group = ledger.begin_group((0, 1, number), b"events")
        ledger.note_logged(group, LogPosition(0, number))
        group.is_written = True
        group.is_durable = number <= durable
    return ledger


def check(ledger, log, *, is_kill=False):
    ledger.check(log, ledger.required(is_kill=is_kill), is_kill=is_kill)


@pytest.mark.parametrize("numbers", [(1, 2), (1, 2, 3), (1, 2, 3, 4)])
def test_a_crash_leaves_what_was_durable_and_perhaps_more(numbers):
    check(fed(4, durable=2), found(*numbers))


WRONG = {
    "what was durable is gone": (found(1), "group .* is missing"),
    "a hole": (found(1, 2, 4), "before another one that is there"),
    "another order": (found(1, 3, 2), "another order"),
    "twice": (found(1, 2, 2), "there twice"),
    "nobody fed it": (found(1, 2, 9), "was not fed so"),
    "other events": (found(1, 2, events=b"others"), "was not fed so"),
    "nobody prepared it": (found(1, 2, prepared=[b"x"]), "and nobody did so"),
}


@pytest.mark.parametrize(("log", "problem"), WRONG.values(), ids=WRONG)
def test_what_no_crash_leaves_is_found(log, problem):
    with pytest.raises(CheckError, match=problem):
        check(fed(4, durable=2), log)


def test_a_kill_leaves_all_that_was_written_a_loss_of_power_need_not():
    check(fed(3, durable=1), found(1))
    with pytest.raises(CheckError, match="is missing"):
        check(fed(3, durable=1), found(1), is_kill=True)


def test_what_a_reader_has_got_must_be_there():
    ledger = fed(2)
    ledger.fed[0, 1, 1].is_sent = True
    with pytest.raises(CheckError, match="acknowledged or sent"):
        check(ledger, found())


def test_what_was_purged_may_be_missing():
    ledger = fed(2, durable=2)
    ledger.purge_to = 1
    check(ledger, found(first_file_no=1))
    with pytest.raises(CheckError, match="is missing"):
        check(ledger, found(first_file_no=0))


@pytest.mark.parametrize("is_done", [True, False])
def test_a_reset_removes_all_or_nothing(is_done):
    ledger = fed(2, durable=2)
    ledger.begin_reset()
    check(ledger, found())
    check(ledger, found(1, 2))
    with pytest.raises(CheckError, match="is missing"):
        check(ledger, found(1))
    ledger.end_reset(is_done=is_done)
    with pytest.raises(CheckError):
        check(ledger, found(1, 2) if is_done else found())


def prepared(stage, *, is_durable=True):
    ledger = Ledger()
    item = ledger.begin_prepare(b"x")
    item.begin(stage)
    item.is_logged = item.is_durable = is_durable
    return ledger


@pytest.mark.parametrize(
    ("stage", "is_there", "problem"),
    [(GroupStage.PREPARED, False, "and is not any more"), (GroupStage.FINISHED, True, "and is prepared again")],
)
def test_a_prepared_transaction_is_there_until_it_is_finished(stage, is_there, problem):
    with pytest.raises(CheckError, match=problem):
        check(prepared(stage), found(prepared=[b"x"] if is_there else []))
    check(prepared(stage, is_durable=False), found(prepared=[b"x"] if is_there else []))
    check(prepared(stage), found(prepared=[] if is_there else [b"x"]))


def test_a_restart_takes_what_is_there_for_the_truth():
    ledger = fed(3, durable=1)
    ledger.restart(found(1, 2, prepared=[b"x"]))

    assert sorted(ledger.fed) == [(0, 1, 1), (0, 1, 2)]
    assert ledger.unsynced() == []
    assert list(ledger.steady().values()) == [GroupStage.PREPARED]
    with pytest.raises(CheckError):
        check(ledger, found(1, prepared=[b"x"]))
