import pytest

from ibbmaster.logs.log.log_range import GroupSelection
from ibbmaster.position import LogPosition
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
