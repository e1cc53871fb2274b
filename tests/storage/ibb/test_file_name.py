import random

import pytest

from ibbmaster.storage.ibb.file_name import FILE_NO_MAX, format_file_name, parse_file_name


def test_a_number_has_one_name():
    some = (random.randrange(2 ** random.randrange(1, 64)) for _ in range(300))
    for file_no in (0, 7, 999_999, 1_000_000, 2**32, FILE_NO_MAX, *some):
        assert parse_file_name(format_file_name(file_no)) == file_no


@pytest.mark.parametrize(
    "name",
    [
        *("binlog-00001.ibb", "binlog-0000001.ibb", "binlog-000001.ibb.tmp", "binlog-000001.IBB", "xbinlog-000001.ibb"),
        *("binlog--00001.ibb", "binlog-000001.ibb\n", ""),
        "binlog-00000١.ibb",  # a digit, but of another script
        *(f"binlog-{FILE_NO_MAX + 1}.ibb", "binlog-99999999999999999999.ibb"),
    ],
)
def test_another_spelling_is_no_file_of_the_log(name):
    assert parse_file_name(name) is None
