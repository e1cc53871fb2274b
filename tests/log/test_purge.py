"""Which files a purge takes."""

import pytest

from ibbmaster.errors import StoreError
from ibbmaster.log.purge import PurgeRequest, choose_files

FILES = [(number, 100, 1000.0 + number) for number in range(5, 10)]


def choose(request, *, needed=9, oob=None):
    references = oob or {}
    return choose_files(FILES, request, needed=needed, oob_file_no=lambda number: references.get(number, number))


def test_to_a_file_takes_those_before_it():
    assert choose(PurgeRequest(to_file_no=7)).file_nos == (5, 6)


def test_to_a_file_that_is_gone_takes_nothing():
    assert choose(PurgeRequest(to_file_no=3)).file_nos == ()


def test_to_a_file_that_never_was_is_refused():
    with pytest.raises(StoreError, match=r"unknown target binlog: binlog-000010\.ibb"):
        choose(PurgeRequest(to_file_no=10))


def test_before_a_moment_takes_those_last_written_earlier():
    assert choose(PurgeRequest(before=1007.0)).file_nos == (5, 6)


@pytest.mark.parametrize(("total", "gone"), [(500, ()), (499, (5,)), (250, (5, 6, 7)), (0, (5, 6, 7, 8))])
def test_by_size_takes_the_oldest_until_the_rest_is_small_enough(total, gone):
    result = choose(PurgeRequest(total_bytes=total))
    assert result.file_nos == gone
    assert (result.kept is not None) == (total == 0)


def test_what_somebody_needs_stays_and_is_named():
    result = choose(PurgeRequest(to_file_no=9), needed=6)
    assert result.file_nos == (5,)
    assert result.kept.startswith("binlog-000006.ibb is in use")


def test_what_the_groups_of_a_kept_file_need_stays():
    assert choose(PurgeRequest(to_file_no=8), oob={9: 7}).file_nos == (5, 6)


def test_so_does_what_the_groups_of_that_one_need():
    assert choose(PurgeRequest(to_file_no=8), oob={9: 7, 7: 6}).file_nos == (5,)


def test_what_the_groups_of_a_file_that_goes_need_does_not_matter():
    assert choose(PurgeRequest(to_file_no=8), oob={6: 5}).file_nos == (5, 6, 7)
