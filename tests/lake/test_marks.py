"""Marks of a log: another log with the same GTIDs is told by when their groups were written."""

from __future__ import annotations

from contextlib import closing

import pytest

from ibbmaster.arrow.plan import end_of, open_log
from ibbmaster.errors import PositionError
from ibbmaster.lake.marks import expect_same, marks_at
from ibbmaster.spark.options import parse_options


@pytest.mark.parametrize("position", ["", "0-1-20", "0-1-93"])
def test_a_log_is_told_from_another_one_by_the_times_of_its_last_groups(fixtures, position) -> None:
    options = parse_options({"path": str(fixtures / "ibb/xa-and-ddl")})
    with closing(open_log(options)) as log:
        end = end_of(position, options, log)
        marks = marks_at(log, position, end)
        assert [gtid for gtid, _ in marks.values()] == ([position] if position else [])
        expect_same(log, marks, position, end)
        for domain, (gtid, seconds) in marks.items():
            with pytest.raises(PositionError, match=f"^GTID {gtid} is another group in this log than in that of the"):
                expect_same(log, marks | {domain: (gtid, seconds + 1)}, position, end)


def test_domains_of_which_no_group_is_near_have_no_marks(grow) -> None:
    options = parse_options({"path": str(grow(9))})
    with closing(open_log(options)) as log:
        position = str(log.state().position())
        marks = marks_at(log, position, end_of(position, options, log))
    assert marks
    assert {gtid for gtid, _ in marks.values()} <= set(position.split(","))
