import random

import pytest

from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.log.record_checks import Fit, GroupsOfFile
from tests.case_table import rows_of


def groups(base, *logged):
    found = GroupsOfFile(GtidState.parse(base))
    for gtid in logged:
        found.log(Gtid.parse(gtid))
    return found


FITS = rows_of(__file__, "fits")


@pytest.mark.parametrize(("kind", "found", "fit"), FITS, ids=[f"{kind} {found}" for kind, found, _ in FITS])
def test_a_state_fits_the_groups_before_it(kind, found, fit):
    state = GtidState.parse(found.strip("-"))
    if kind == "differential":
        assert groups("5-1-9", "0-1-1", "1-1-1", "0-2-2", "0-1-3").fit_of_differential(state) is Fit[fit]
    else:
        assert groups("0-1-5,4-1-4,5-1-9", "0-1-6", "1-1-1", "0-1-7").fit_of_next_file(state) is Fit[fit]


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
