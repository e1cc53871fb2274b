import pickle

import pytest

from ibbmaster.logs.log.log_range import GroupSelection, LogRange
from ibbmaster.position import LogPosition
from tests.machinery.events import gtid_of


def test_a_stretch_holds_what_begins_in_it():
    stretch = LogRange(file_no=2, start_offset=10, end_offset=20)
    inside = [LogPosition(2, 10), LogPosition(2, 19)]
    outside = [LogPosition(2, 9), LogPosition(2, 20), LogPosition(1, 15), LogPosition(3, 15)]

    assert all(map(stretch.holds, inside))
    assert not any(map(stretch.holds, outside))
    assert pickle.loads(pickle.dumps(stretch)) == stretch  # sent to other processes


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
