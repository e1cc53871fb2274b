import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.logs.store.redo_log import SEGMENT_BYTES_MIN
from ibbmaster.logs.store.store_options import StoreOptions


def test_sizes_of_a_store_are_those_of_its_log():
    limits = StoreOptions(max_file_bytes=1 << 20, state_interval_bytes=1 << 16, spill_bytes=5000).log_limits()
    assert (limits.next_file, limits.inline_size_max) == ((64, 4), 5000)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (StoreOptions(redo_bytes=2 * SEGMENT_BYTES_MIN - 1), "a redo log of .* bytes: at least"),
        (StoreOptions(max_file_bytes=1), "files of 1 bytes"),
    ],
)
def test_a_size_that_is_out_of_bounds_is_refused(options, problem):
    with pytest.raises(ConfigurationError, match=problem):
        options.log_limits()
