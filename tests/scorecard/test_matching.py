import re
from dataclasses import replace
from typing import Any

import pytest

from ibbmaster.replication.event.rows.encoding import encode_table_map, written_table
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster_scorecard.journal import ToldEvent
from ibbmaster_scorecard.matching import LoggedChange, LoggedGroup, Matching, is_same_type
from tests.case_table import cases_beside, data_beside
from .stories import change, logged, told

COLUMNS = ("id", "total", "note")


def matched(groups: list[LoggedGroup], events: list[ToldEvent]) -> Matching:
    matching = Matching(groups)
    for number, event in enumerate(events):
        matching.take(number, event)
    return matching


def is_found(wanted: LoggedChange, after: Any, before: Any = None) -> bool:
    event = ToldEvent(what="change", table=wanted.table, kind=wanted.kind, before=before, after=after)
    matching = matched([LoggedGroup(gtid="0-3-1", changes=(wanted,))], [event])
    return matching.flaws() == [] and matching.missing_behind() == []


_DATA = data_beside(__file__)
IMAGES = _DATA["images"]  # a row of three columns: as it is told, whether the log has names, whether it is right


@pytest.mark.parametrize(("told_image", "has_names", "is_right"), IMAGES.values(), ids=IMAGES)
def test_an_image_is_the_one_that_was_logged(told_image, has_names, is_right):
    row = {"id": 1, "total": None, "note": "x"}
    wanted = LoggedChange(table="t.a", kind="insert", after=row, columns=COLUMNS, has_names=has_names)
    assert is_found(wanted, told_image) is is_right


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"id": 1}, {"total": 7}),
        ({"id": 1, "total": None, "note": None}, {"id": None, "total": 7, "note": None}),
        ([1], [7]),
        ([1, None, None], [None, 7, None]),
    ],
)
def test_images_with_some_columns_may_be_told_with_or_without_the_others(before, after):
    wanted = LoggedChange(table="t.a", kind="update", before={"id": 1}, after={"total": 7}, columns=COLUMNS)
    assert is_found(wanted, after, before)
    assert not is_found(wanted, after, None)
    assert not is_found(wanted, before, before)


def test_equal_rows_are_taken_one_after_the_other():
    groups = [LoggedGroup(gtid=f"0-3-{number}", changes=(change(1), change(1))) for number in (1, 2)]
    once = matched(groups, told("begin 1\nchange 1\nchange 1\ncommit 1\nbegin 2\nchange 1\nchange 1\ncommit 2"))
    assert (once.flaws(), once.missing_behind(), once.repeats()) == ([], [], ([], True))
    short = matched(groups, told("begin 1\nchange 1\nchange 1\ncommit 1\nbegin 2\nchange 1"))
    assert len(short.missing_behind()) == 1
    again = matched(
        groups, told("begin 1\nchange 1\nbegin 1\nchange 1\nchange 1\ncommit 1\nbegin 2\nchange 1\nchange 1")
    )
    assert (len(again.repeats()[0]), again.repeats()[1]) == (1, False)
    assert again.flaws() == []


def test_a_statement_is_found_in_what_is_told_of_it_and_others_are_nothing():
    groups = [LoggedGroup(gtid="0-3-1", changes=(LoggedChange(sql="UPDATE t\n SET a = 1"), change(1)))]
    assert matched(groups, told("statement /* c */ UPDATE t SET a = 1 \nchange 1")).flaws() == []
    (flaw,) = matched(groups, told("statement UPDATE t SET a = 2\nchange 1")).flaws()
    assert flaw.text == "0-3-1 statement UPDATE t SET a = 1 is missing"
    assert matched(logged(1), told("statement CREATE TABLE t (a int)\nchange 1")).flaws() == []


def test_what_the_primary_has_lost_or_only_prepared_may_come_or_not():
    first, second, third = logged(1, 1, 1)
    groups = [first, replace(second, is_required=False), third]
    for story in ("change 1\nchange 3", "change 1\nchange 2\nchange 3"):
        matching = matched(groups, told(story))
        assert (matching.flaws(), matching.missing_behind()) == ([], [])
    story = told("begin 1\nchange 1\nbegin 2\nchange 2\ncommit 2")
    first, second = logged(1, 1)
    assert [flaw.text for flaw in matched([first, second], story).flaws()] == ["the commit of 0-3-1 is missing"]
    assert matched([replace(first, is_prepared=True), second], story).flaws() == []


def test_the_same_gtid_of_two_primaries_is_two_groups():
    first, lost, marker = logged(1, 1, 1)
    groups = [first, replace(lost, is_required=False), replace(marker, gtid=lost.gtid)]
    of_both = "begin 1\nchange 1\ncommit 1\nbegin 2\nchange {}\ncommit 2\n"
    matching = matched(groups, told(of_both.format(2) + of_both.format(3)))
    assert matching.flaws() == []
    assert matching.repeats() == (["0-3-1 insert shop.orders id=1 total=1.00 came twice"], True)


def test_a_large_group_that_comes_again_is_found_again():
    count = 3000
    changes = "\n".join(f"change {number}" for number in range(1, count + 1))
    matching = matched(logged(count, 1), told(f"begin 1\n{changes}\nbegin 1\n{changes}\ncommit 1\nchange {count + 1}"))
    assert matching.flaws() == []
    assert (len(matching.repeats()[0]), matching.repeats()[1]) == (count, True)


def test_first_lines_are_those_by_which_a_change_came_also_many_in_another_order():
    assert matched(logged(2), told("change 1\nchange 1\nchange 2")).first() == (0, 2)
    groups = logged(*[1] * 10_000)
    story = [ToldEvent(what="change", table="shop.orders", kind="insert", after={"id": -1}) for _ in range(2000)]
    assert matched(groups, story).missing_behind() != []


def test_a_group_told_under_the_gtid_of_a_later_one_makes_no_other_late():
    story = "begin 3\nchange 1\ncommit 3\nbegin 2\nchange 2\ncommit 2\nbegin 3\nchange 3\ncommit 3"
    flaws = matched(logged(1, 1, 1), told(story)).flaws()
    assert {flaw.text for flaw in flaws} == {"0-3-1 insert shop.orders id=1 total=1.00 was told as 0-3-3"}


def test_a_group_that_goes_on_after_a_restart_is_committed_as_a_whole_or_not():
    story = (
        "begin 1\nchange 1\nchange 2\nfatal reset\nrestart\nbegin 1\nchange 3\ncommit 1\nbegin 2\nchange 4\ncommit 2"
    )
    assert matched(logged(3, 1), told(story)).flaws() == []
    story = "begin 1\nchange 1\nfatal reset\nrestart\nbegin 1\nchange 2\nbegin 2\nchange 3\ncommit 2"
    assert [flaw.text for flaw in matched(logged(2, 1), told(story)).flaws()] == ["the commit of 0-3-1 is missing"]


TABLES = {  # what a library tells of a table, and what is wrong with it
    "all of it": ({"columns": COLUMNS, "key": ("id",), "types": (3, 246, 15)}, ""),
    "all of it in the words of SQL": ({"types": ("int(11)", "DECIMAL(10,2)", "varchar(40)")}, ""),
    "nothing": ({}, ""),
    "a name that it made up": ({"columns": ("id", "total", "UNKNOWN_COL2")}, "was told with columns"),
    "no key": ({"key": ()}, r"was told with the key \[\] instead of \['id'\]"),
    "another key": ({"key": ("total",)}, "was told with the key"),
    "another type": ({"types": (3, 246, 252)}, r"was told with the types \[3, 246, 252\] instead of LONG, NEWDECIMAL"),
    "another type in the words of SQL": ({"types": ("int", "decimal(10,3)", "varchar(40)")}, "was told with the types"),
    "a type too few": ({"types": (3, 246)}, "was told with the types"),
}


@pytest.mark.parametrize(("keys", "flaw"), TABLES.values(), ids=TABLES)
def test_what_is_told_of_a_table_is_compared_with_the_log(keys, flaw):
    declared = dict(zip(COLUMNS, ("int", "decimal(10,2)", "varchar(40)"), strict=True))
    table = encode_table_map(written_table("shop.orders", declared, table_id=1), server_id=1)
    wanted = replace(change(1), columns=COLUMNS, key=("id",), types=decode_table_schema(table).columns)
    told_table = ToldEvent(what="table", table=wanted.table, **keys)
    matching = matched([LoggedGroup(gtid="0-3-1", changes=(wanted,))], [told_table, told_table, *told("change 1")])
    assert matching.flaws() == []
    assert [re.search(flaw, one.text) is not None for one in matching.metadata_flaws()] == [True] * bool(flaw)


CASES = cases_beside(__file__)


@pytest.mark.parametrize(("declared", "told", "is_same"), CASES.values(), ids=CASES)
def test_a_type_is_the_one_that_was_logged(declared, told, is_same):
    table = written_table("shop.t", {"a": declared}, table_id=1)
    (column,) = decode_table_schema(encode_table_map(table, server_id=1)).columns
    assert is_same_type(column, int(told) if told.isdigit() else told) is (is_same == "yes")
