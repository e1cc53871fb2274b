"""What statements say of how their server compares names."""

import pytest

from ibbmaster.schema.model import TableVersion, UnknownTable
from ibbmaster.schema.name_case import NameCase
from tests.schema.conftest import Folded, place

MADE = "CREATE TABLE Three (a INT)"
COUNTED_AS_ONE = (
    "ALTER TABLE three ADD b INT",
    "TRUNCATE TABLE THREE",
    "RENAME TABLE three TO four",
    "CREATE TABLE five LIKE three",
    "CREATE INDEX i ON three (a)",
)
SAY_NOTHING = (
    "ALTER TABLE IF EXISTS three ADD b INT",
    "DROP TABLE IF EXISTS three",
    "CREATE TABLE other (a INT)",
    "ALTER TABLE Three ADD b INT",
    "CREATE TABLE IF NOT EXISTS three (b INT)",
    "CREATE OR REPLACE TABLE three (b INT)",
    "CREATE TEMPORARY TABLE three (b INT)",
)


def found(history):
    return history.fold.finder.found


@pytest.mark.parametrize("statement", COUNTED_AS_ONE)
def test_a_table_that_is_there_in_other_letters_only_says_that_letters_do_not_matter(folded, statement):
    assert found(folded.run(MADE, statement)) is NameCase.LOWER


@pytest.mark.parametrize("statement", SAY_NOTHING)
def test_what_may_be_of_either_kind_says_nothing(folded, statement):
    assert found(folded.run(MADE, statement)) is None


def test_two_tables_that_differ_in_letters_only_say_that_these_matter(folded):
    assert found(folded.run(MADE, "CREATE TABLE three (b INT)")) is NameCase.EXACT


def test_a_table_that_may_have_been_dropped_in_other_letters_says_nothing_later(folded):
    assert found(folded.run(MADE, "DROP TABLE IF EXISTS three", "CREATE TABLE THREE (b INT)")) is None


def test_where_the_log_may_lack_tables_both_are_unknown_with_the_remedy():
    history = Folded(is_whole=False).run(MADE, "ALTER TABLE three ADD b INT")
    assert found(history) is None
    for name, other in (("Three", "d.three"), ("three", "d.Three")):
        table = history.table_at("d", name)
        assert isinstance(table, UnknownTable)
        assert other in table.reason
        assert "lower_case_table_names" in table.reason


def test_after_two_tables_a_missing_third_spelling_is_refused(folded):
    folded.run(MADE, "CREATE TABLE three (b INT)", "ALTER TABLE THREE ADD c INT")
    assert found(folded) is NameCase.EXACT
    assert {type(folded.table_at("d", name)) for name in ("Three", "three", "THREE")} == {UnknownTable}


def test_rows_of_a_table_in_other_letters_are_refused_while_nothing_is_known(folded):
    folded.run(MADE)
    table = folded.table_at("d", "three")
    assert isinstance(table, UnknownTable)
    assert "d.Three" in table.reason
    assert isinstance(folded.table_at("d", "Three"), TableVersion)
    assert folded.table_at("d", "four") is None
    folded.fix_case()
    assert folded.table_at("d", "three") is None


def test_a_table_in_other_letters_stands_in_the_way_only_once_it_is_there():
    history = Folded().run("CREATE TABLE t (a INT)", MADE)
    found = [history.table_at("d", "three", place(number)) for number in (1, 2, 3)]
    assert [type(one) for one in found] == [type(None), type(None), UnknownTable]
