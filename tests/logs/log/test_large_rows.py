import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.logs.log.large_rows import large_rows, parse_row_event_max
from ibbmaster.replication.event.rows.large import SIZE_MAX
from ibbmaster.storage.disk.spool import Spool


def test_large_ones_are_in_temporary_files_up_to_a_number_or_a_size_as_people_write_it():
    assert large_rows().hold is Spool
    assert (large_rows().size_max, large_rows(100).size_max) == (SIZE_MAX, 100)
    found = [parse_row_event_max(given) for given in (None, 100, "512M", "4294967295", "4G")]
    assert found == [None, 100, 512 << 20, SIZE_MAX, SIZE_MAX]


@pytest.mark.parametrize(
    ("given", "problem"), [("much", "'much' is not a size"), ("5G", "at most 4294967295"), (19, "more than 19")]
)
def test_what_is_no_limit_is_refused(given, problem):
    with pytest.raises(ConfigurationError, match=problem):
        parse_row_event_max(given)
