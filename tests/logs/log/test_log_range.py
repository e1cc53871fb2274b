import pytest

from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.logs.log.fault import Fault, Totals
from ibbmaster.logs.log.large_rows import large_rows, parse_row_event_max
from ibbmaster.logs.log.log_range import GroupSelection
from ibbmaster.logs.log.purge import PurgeRequest, choose_files
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.rows.large import SIZE_MAX
from ibbmaster.storage.disk.spool import Spool
from tests.machinery.events import gtid_of

HERE = LogPosition(1, 50)
LIMITS = {
    "nothing": ({}, True),
    "its domain": ({"domains": frozenset({0, 7})}, True),
    "another domain": ({"domains": frozenset({7})}, False),
    "a start at it": ({"starts": ((0, HERE),)}, True),
    "a start behind it": ({"starts": ((0, LogPosition(1, 51)),)}, False),
    "a start of another domain": ({"starts": ((7, LogPosition(9, 0)),)}, True),
    "an end at it": ({"ends": ((0, HERE),)}, False),
    "an end behind it": ({"ends": ((0, LogPosition(1, 51)),)}, True),
    "ends without its domain": ({"ends": ((7, LogPosition(9, 0)),)}, False),
    "no end at all": ({"ends": ()}, False),
    "a time before it": ({"start_time": 100.0}, True),
    "a time behind it": ({"start_time": 100.5}, False),
    "an end at its time": ({"end_time": 100.0}, False),
    "an end behind its time": ({"end_time": 100.5}, True),
}


@pytest.mark.parametrize(("limits", "is_wanted"), LIMITS.values(), ids=LIMITS)
def test_a_group_is_wanted_unless_something_excludes_it(limits, is_wanted):
    assert GroupSelection(**limits).takes(gtid_of(5), HERE, 100) is is_wanted


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


def test_a_fault_begins_with_its_place_and_what_was_read_in_parts_is_counted_together():
    damage = Fault(problem="lost", location=LogPosition.on_page(1, 2, 3))
    note = Fault(problem="odd", is_damage=False)

    assert (str(damage), damage.is_damage) == ("binlog-000001.ibb page 2 offset 3: lost", True)
    assert (str(note), note.is_damage) == ("note: odd", False)
    totals = Totals(files=1, pages=2, groups=3, oob_records=4)
    totals.add(Totals(files=10, pages=20, groups=30, oob_records=40))
    assert totals == Totals(files=11, pages=22, groups=33, oob_records=44)


FILES = [(number, 100, 1000.0 + number) for number in range(5, 10)]


def choose(request, *, needed=9):
    return choose_files(FILES, request, needed=needed, oob_file_no=lambda number: number)


def test_a_file_that_never_was_is_refused_and_what_somebody_needs_stays():
    with pytest.raises(StoreError, match=r"unknown target binlog: binlog-000010\.ibb"):
        choose(PurgeRequest(to_file_no=10))
    result = choose(PurgeRequest(to_file_no=9), needed=6)
    assert result.file_nos == (5,)
    assert result.kept.startswith("binlog-000006.ibb is in use")
