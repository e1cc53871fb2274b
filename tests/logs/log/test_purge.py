import pytest

from ibbmaster.errors import StoreError
from ibbmaster.logs.log.purge import PurgeRequest, choose_files

FILES = [(number, 100, 1000.0 + number) for number in range(5, 10)]


def choose(request, *, needed=9, oob=None):
    references = oob or {}
    return choose_files(FILES, request, needed=needed, oob_file_no=lambda number: references.get(number, number))


TAKEN = {  # what is asked for, which file those of another one need, and what goes
    "to a file those before it": (PurgeRequest(to_file_no=7), {}, (5, 6)),
    "to a file that is gone nothing": (PurgeRequest(to_file_no=3), {}, ()),
    "before a moment those last written earlier": (PurgeRequest(before=1007.0), {}, (5, 6)),
    "not what the groups of a kept file need": (PurgeRequest(to_file_no=8), {9: 7}, (5, 6)),
    "nor what the groups of that one need": (PurgeRequest(to_file_no=8), {9: 7, 7: 6}, (5,)),
    "also what only the groups of a file that goes need": (PurgeRequest(to_file_no=8), {6: 5}, (5, 6, 7)),
}


@pytest.mark.parametrize(("request_", "oob", "gone"), TAKEN.values(), ids=TAKEN)
def test_a_purge_takes(request_, oob, gone):
    assert choose(request_, oob=oob).file_nos == gone


def test_to_a_file_that_never_was_is_refused():
    with pytest.raises(StoreError, match=r"unknown target binlog: binlog-000010\.ibb"):
        choose(PurgeRequest(to_file_no=10))


@pytest.mark.parametrize(("total", "gone"), [(500, ()), (499, (5,)), (250, (5, 6, 7)), (0, (5, 6, 7, 8))])
def test_by_size_takes_the_oldest_until_the_rest_is_small_enough(total, gone):
    result = choose(PurgeRequest(total_bytes=total))
    assert result.file_nos == gone
    assert (result.kept is not None) == (total == 0)


def test_what_somebody_needs_stays_and_is_named():
    result = choose(PurgeRequest(to_file_no=9), needed=6)
    assert result.file_nos == (5,)
    assert result.kept.startswith("binlog-000006.ibb is in use")
