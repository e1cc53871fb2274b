import pytest

from ibbmaster.errors import StoreError
from ibbmaster.logs.log.purge import PurgeRequest, choose_files

FILES = [(number, 100, 1000.0 + number) for number in range(5, 10)]


def choose(request, *, needed=9):
    return choose_files(FILES, request, needed=needed, oob_file_no=lambda number: number)


def test_a_file_that_never_was_is_refused_and_what_somebody_needs_stays():
    with pytest.raises(StoreError, match=r"unknown target binlog: binlog-000010\.ibb"):
        choose(PurgeRequest(to_file_no=10))
    result = choose(PurgeRequest(to_file_no=9), needed=6)
    assert result.file_nos == (5,)
    assert result.kept.startswith("binlog-000006.ibb is in use")
