"""Versions of tables by place, and how little of them is sent to who reads rows."""

import pickle
from types import MappingProxyType

from ibbmaster.position import LogPosition
from ibbmaster.schema.model import UnknownTable
from ibbmaster.schema.versions import TableVersions
from tests.table_versions import column, place, version

FIRST = version(column(1, "a"))
SECOND = version(column(1, "b"), since=place(10, 1))
LOST = UnknownTable(database="db", name="t", since=place(20), gtid="0-1-20", reason="nobody knows")
VERSIONS = TableVersions({("db", "t"): [FIRST, SECOND, LOST]})


def test_the_version_at_a_place_is_the_last_one_made_in_front_of_it() -> None:
    assert VERSIONS.at("db", "t", place(10)).columns[0].name == "a"
    assert VERSIONS.at("db", "t", place(10, 2)).columns[0].name == "b"
    assert VERSIONS.at("db", "t", place(25)) is LOST
    assert VERSIONS.at("db", "other", place(10)) is None
    assert TableVersions({("db", "t"): [SECOND]}).at("db", "t", place(5)) is None


def test_a_range_has_the_versions_that_hold_in_it() -> None:
    assert VERSIONS.boundaries() == [place(10, 1), place(20)]
    assert [one.since for one in VERSIONS.between(LogPosition(0, 11), LogPosition(0, 15)).of("db", "t")] == [
        place(10, 1)
    ]
    assert VERSIONS.between(LogPosition(0, 0), LogPosition(0, 5)).last("db", "t").since is None


def test_ranges_between_which_nothing_changes_share_their_versions() -> None:
    starts = [LogPosition(0, offset) for offset in range(30)]
    parts = [VERSIONS.between(start, end) for start in starts for end in starts if start < end]
    assert len({id(one) for one in parts}) == 6  # in front of, between and behind two places, and over one or both
    assert VERSIONS.between(LogPosition(0, 0), LogPosition(0, 20)).of("db", "t") == VERSIONS.of("db", "t")


def test_what_is_sent_is_what_rows_need() -> None:
    long = "x" * 100_000
    table = version(
        column(1, "a"), options=MappingProxyType({"COMMENT": long}), text=long, partitioning=long, since=place(3)
    )
    data = pickle.dumps(TableVersions({("db", "t"): [table]}))

    assert len(data) < 2000
    assert pickle.loads(data).at("db", "t", place(4)).primary_key is not None
