"""Ways to commit records: which comes next, and that they are bounded."""

import pytest

from ibbmaster.streaming import known_ways
from ibbmaster.streaming.known_ways import NO_WAY, KnownWay, KnownWays

FIRST, SECOND = KnownWay(20_000, 90_000), KnownWay(100_000, 300_000)


@pytest.fixture
def ways():
    known = KnownWays()
    for way in (SECOND, FIRST, SECOND):
        known.note("one", way)
    return known


@pytest.mark.parametrize(
    ("offset", "way"), [(0, FIRST), (20_000, FIRST), (20_001, SECOND), (100_000, SECOND), (100_001, NO_WAY)]
)
def test_the_way_that_begins_next_is_found_in_its_file(ways, offset, way):
    assert ways.next_from("one", offset, 0) == way
    assert ways.next_from("another", offset, 0) == NO_WAY


def test_a_way_that_ends_after_what_may_be_sent_is_not_known(ways):
    assert ways.next_from("one", 0, 90_001) == FIRST
    assert ways.next_from("one", 0, 90_000) == NO_WAY


def test_what_was_wrong_is_forgotten_with_all_of_its_file(ways):
    ways.note("another", FIRST)
    ways.forget("one")
    ways.forget("one")
    assert ways.next_from("one", 0, 0) == NO_WAY
    assert ways.next_from("another", 0, 0) == FIRST
    assert len(ways) == 1


def test_files_that_were_read_long_ago_are_forgotten(ways, monkeypatch):
    monkeypatch.setattr(known_ways, "WAYS_MAX", 5)
    for number in range(3):
        ways.note("another", KnownWay(number, number + 10))
    assert len(ways) == 5
    ways.note("one", KnownWay(400_000, 500_000))
    assert len(ways) == 3
    assert ways.next_from("another", 0, 0) == NO_WAY
    assert ways.next_from("one", 0, 0) == FIRST
    for number in range(9):
        ways.note("long", KnownWay(number, number + 10))
        assert len(ways) <= 5
