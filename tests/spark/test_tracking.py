import pytest

from ibbmaster.gtid import GtidPosition
from ibbmaster.position import LogPosition
from ibbmaster.spark.tracking import ReadBatch, lag_of


def lag(reached, logged, time=100.0, **given):
    return lag_of(ReadBatch(GtidPosition.parse(reached), LogPosition(1, 2), time), GtidPosition.parse(logged), **given)


@pytest.mark.parametrize(
    ("reached", "logged", "groups"),
    [
        ("0-1-5", "0-1-9", 4),
        ("0-1-5,1-1-7", "1-2-9,0-1-5", 2),
        ("", "0-1-9,3-1-1", 10),
        ("0-1-9", "0-1-5", 0),  # it was reset meanwhile: the next batch says so
    ],
)
def test_groups_are_those_between_the_sequence_numbers_of_each_domain(reached, logged, groups):
    expected = {"groups": groups, "bytes": 77 if groups else 0, "seconds": 30 if groups else 0}
    assert lag(reached, logged, now=130.5, size=77) == expected


def test_what_is_not_known_is_left_out_and_no_number():
    assert lag("0-1-5", "0-1-6", now=130.0) == {"groups": 1, "seconds": 30}
    assert lag("0-1-5", "0-1-6", None, now=130.0) == {"groups": 1}
    assert lag("0-1-5", "0-1-6", now=90.0, size=-1) == {"groups": 1, "bytes": 0, "seconds": 0}
