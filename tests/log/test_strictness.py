"""A hole in a log: refused, or read around."""

import pytest

from ibbmaster.errors import MissingFileError, StoreError
from ibbmaster.gtid import GtidPosition
from ibbmaster.log.locating import locate
from ibbmaster.log.log_range import WHOLE_FILE
from ibbmaster.log.strictness import LenientDirectory, StrictDirectory, damage_handler, open_directory
from ibbmaster.position import LOG_START


@pytest.fixture
def disk(new_log, event):
    """Files 0 to 4 of four pages, each with some groups of one domain."""
    log, seq_no = new_log(size_pages=4), 0
    while (log.appender.file_no, log.appender.page_no) < (4, 3):
        seq_no += 1
        log.commit(f"0-1-{seq_no}", event(5000))
    return log.disk


def gtids_in(log, *, is_strict):
    """File and GTID of each group."""
    on_fault = damage_handler(is_strict=is_strict)
    ranges = log.ranges(LOG_START, log.end(), size=WHOLE_FILE)
    return [(group.start.file_no, group.gtid) for one in ranges for group in log.groups_in(one, on_fault=on_fault)]


def test_a_log_without_one_of_its_files_is_refused_or_read_without_its_groups(disk):
    whole = gtids_in(StrictDirectory(disk), is_strict=True)
    del disk.files["binlog-000001.ibb"]

    strict, lenient = StrictDirectory(disk), LenientDirectory(disk)

    for question in (strict.end, strict.state, strict.files, strict.start_of_file):
        with pytest.raises(MissingFileError, match=r"binlog-000001\.ibb is missing"):
            question()
    assert [file.file_no for file in lenient.files()] == [0, 2, 3, 4]
    left = gtids_in(lenient, is_strict=False)
    assert {file_no for file_no, _ in left} == {0, 2, 3, 4}
    assert [one for one in left if one[0] > 0] == [one for one in whole if one[0] > 1]
    assert str(lenient.state()) == str(whole[-1][1])
    file_no, gtid = left[-2]
    assert locate(lenient, GtidPosition([gtid]), on_fault=damage_handler(is_strict=False))[0].file_no == file_no


def test_a_directory_without_files_is_no_log_in_either_way(tmp_path):
    for is_strict in (True, False):
        with pytest.raises(StoreError, match="no binlog files"):
            open_directory(tmp_path, is_strict=is_strict).end()
