import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.log.limits import LogLimits
from ibbmaster.storage.ibb.page import PAGE_SIZE


def test_a_log_gets_what_was_asked_for():
    assert LogLimits().next_file == ((1 << 30) // PAGE_SIZE, (2 << 20) // PAGE_SIZE)
    assert LogLimits(max_file_bytes=4 * PAGE_SIZE, state_interval_bytes=PAGE_SIZE).next_file == (4, 1)
    limits = LogLimits(oob_piece_bytes=100_000, spill_bytes=50_000)
    assert limits.inline_size_max == 50_000
    assert limits.piece_size_max < limits.record_size_max == 100_000


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"max_file_bytes": 4 * PAGE_SIZE - 1}, "a file has 65536 bytes at least"),
        ({"max_file_bytes": 2**32 * PAGE_SIZE}, "at most"),
        ({"state_interval_bytes": 0}, "it must be 16384 times a power of two"),
        ({"state_interval_bytes": 3 * PAGE_SIZE}, "it must be 16384 times a power of two"),
        ({"state_interval_bytes": PAGE_SIZE + 1}, "it must be 16384 times a power of two"),
        ({"oob_piece_bytes": 10}, "out-of-band pieces of 10 bytes"),
        ({"spill_bytes": -1}, "groups of -1 bytes"),
    ],
)
def test_what_the_format_does_not_allow_is_refused(options, problem):
    with pytest.raises(ConfigurationError, match=problem):
        LogLimits(**options)


def test_files_and_intervals_grow_with_the_state_and_records_stay_within_two_files():
    limits = LogLimits(max_file_bytes=4 * PAGE_SIZE, state_interval_bytes=PAGE_SIZE)
    before = (limits.next_file, limits.record_size_max)
    limits.count_pairs(GtidState(Gtid(domain_id=number, server_id=1, seq_no=1) for number in range(5000)))
    pages, interval = limits.next_file

    assert pages > before[0][0]
    assert interval & (interval - 1) == 0
    assert interval * PAGE_SIZE > limits.state_size_max
    assert limits.record_size_max > 0
    for _ in range(2000):
        limits.add_pair()
    assert limits.next_file[0] > pages
