"""Which states fit the groups before them, and which are what MariaDB leaves after a restart."""

import random

import pytest

from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.log.record_checks import Fit, GroupsOfFile


def groups(base, *logged):
    found = GroupsOfFile(GtidState.parse(base))
    for gtid in logged:
        found.log(Gtid.parse(gtid))
    return found


DIFFERENTIALS = {  # what is found: how it fits 0-1-1, 1-1-1, 0-2-2, 0-1-3 behind [5-1-9]
    "1-1-1,0-2-2,0-1-3": Fit.EQUAL,
    "0-2-2,0-1-3,1-1-1": Fit.EQUAL,
    "0-2-2,0-1-3": Fit.FORGOTTEN,
    "0-1-3": Fit.FORGOTTEN,
    "": Fit.FORGOTTEN,
    "1-1-1,0-1-3": Fit.WRONG,  # 0-2-2 is younger than 1-1-1
    "1-1-1,0-2-2": Fit.WRONG,
    "1-1-1,0-1-3,0-2-2": Fit.WRONG,
    "1-1-1,0-2-2,0-1-2": Fit.WRONG,
    "1-1-1,0-2-2,0-1-4": Fit.WRONG,
    "5-1-9,1-1-1,0-2-2,0-1-3": Fit.WRONG,
}


@pytest.mark.parametrize(("found", "fit"), DIFFERENTIALS.items(), ids=DIFFERENTIALS.keys())
def test_differential_states(found, fit):
    assert groups("5-1-9", "0-1-1", "1-1-1", "0-2-2", "0-1-3").fit_of_differential(GtidState.parse(found)) is fit


FULL = {  # what is found: how it fits 0-1-6, 1-1-1, 0-1-7 behind [0-1-5,4-1-4,5-1-9]
    "0-1-7,1-1-1,4-1-4,5-1-9": Fit.EQUAL,
    "0-1-7,1-1-1,4-1-4": Fit.EQUAL,  # domain 5 was deleted
    "0-1-7,1-1-1": Fit.EQUAL,  # and domain 4
    "0-1-7,4-1-4,5-1-9": Fit.FORGOTTEN,
    "0-1-5,4-1-4,5-1-9": Fit.FORGOTTEN,
    "0-1-5,1-1-1,4-1-4,5-1-9": Fit.WRONG,  # 0-1-7 is younger than 1-1-1
    "0-1-6,4-1-4,5-1-9": Fit.WRONG,
    "1-1-1,4-1-4,5-1-9": Fit.WRONG,  # what was there when the file began is never forgotten
    "0-1-8,1-1-1,4-1-4,5-1-9": Fit.WRONG,
    "0-1-7,1-1-1,4-1-3,5-1-9": Fit.WRONG,
    "0-1-7,1-1-1,4-1-4,5-1-9,6-1-1": Fit.WRONG,
}


@pytest.mark.parametrize(("found", "fit"), FULL.items(), ids=FULL.keys())
def test_full_states_of_the_next_file(found, fit):
    assert groups("0-1-5,4-1-4,5-1-9", "0-1-6", "1-1-1", "0-1-7").fit_of_next_file(GtidState.parse(found)) is fit


@pytest.mark.parametrize("seed", range(50))
def test_whatever_is_logged_before_a_restart_may_be_forgotten(seed):
    """The differential of a server that begins anew in the middle, beside all groups of the file."""
    rng = random.Random(seed)
    logged, restarted = groups("", *()), GroupsOfFile(GtidState())
    for index in range(rng.randint(2, 30)):
        gtid = Gtid(domain_id=rng.randrange(3), server_id=rng.randrange(1, 4), seq_no=index + 1)
        logged.log(gtid)
        if index == 8:
            restarted = GroupsOfFile(GtidState())
        restarted.log(gtid)
    assert logged.fit_of_differential(restarted.differential) in (Fit.EQUAL, Fit.FORGOTTEN)
