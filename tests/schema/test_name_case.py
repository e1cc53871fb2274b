import pickle

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.schema.ddl import parse_ddl
from ibbmaster.schema.model import TableVersion, UnknownTable
from ibbmaster.schema.name_case import NameCase, lower_name, parse_name_case
from ibbmaster.schema.versions import TableVersions
from tests.case_table import data_beside
from tests.schema.conftest import Folded, place

DATA = data_beside(__file__)


SPELLED = (
    "CREATE DATABASE Shop",
    "CREATE TABLE Shop.Orders (a INT PRIMARY KEY, b INT)",
    "ALTER TABLE SHOP.ORDERS ADD c INT",
    "CREATE TABLE shop.Child (x INT, FOREIGN KEY (x) REFERENCES shop.orderS (A))",
    "ALTER TABLE Shop.orders CHANGE a Key1 INT",
    "RENAME TABLE Shop.Child TO shop.Kid",
)


def names(history):
    return sorted(table.full_name for table in history.at().tables.values())


@pytest.mark.parametrize(
    ("case", "shown"), [(NameCase.LOWER, ["shop.kid", "shop.orders"]), (NameCase.KEPT, ["Shop.Kid", "Shop.Orders"])]
)
def test_names_that_differ_in_capitals_are_one_name(case, shown):
    history = Folded(case=case).run(*SPELLED)
    assert names(history) == shown
    assert history.columns("orders", "shop") == history.columns("ORDERS", "Shop")
    assert [column.name for column in history.known("Orders", "SHOP").columns] == ["Key1", "b", "c"]
    (key,) = history.known("kid", "shop").foreign_keys
    assert (key.parent_database, key.parent_table, key.parent_columns) == ("shop", "orders", ("Key1",))
    assert [one.name for one in history.at().databases.values()] == [shown[0].partition(".")[0]]
    catalog = history.at()
    assert catalog.table("SHOP", "ORDERS") is catalog.table("shop", "orders") is not None
    history.run("ALTER DATABASE SHOP COMMENT 'x'", "DROP DATABASE shoP")
    assert (names(history), dict(history.at().databases)) == ([], {})


def test_names_are_exact_where_that_is_said():
    history = Folded(case=NameCase.EXACT)
    history.run("CREATE TABLE t (a INT)", "CREATE TABLE T (b INT)", "ALTER TABLE T ADD c INT", "TRUNCATE TABLE t")
    assert names(history) == ["d.T", "d.t"]
    assert [len(history.known(name).columns) for name in "tT"] == [1, 2]


def test_a_sequence_a_view_a_trigger_and_a_copy_are_found_in_any_letters():
    history = Folded(case=NameCase.LOWER)
    history.run(
        "CREATE TABLE Tt (a INT)", "CREATE TABLE Copy LIKE TT", "CREATE SEQUENCE Sq", "CREATE VIEW Vv AS SELECT 1"
    )
    history.run("CREATE TRIGGER tr BEFORE INSERT ON TT FOR EACH ROW SET NEW.a = 1", "RENAME TABLE tT TO Uu, SQ TO S2")
    assert names(history) == ["d.copy", "d.s2", "d.uu", "d.vv"]
    assert {key: one.table for key, one in history.at().programs.items()} == {("d", "TRIGGER", "tr"): "uu"}


def test_versions_that_went_to_a_worker_are_found_in_any_letters():
    history = Folded(case=NameCase.LOWER).run("CREATE TABLE Tt (a INT)")
    versions = TableVersions({("d", "tt"): history.versions("d", "TT")}, history.case)
    for one in (versions, pickle.loads(pickle.dumps(versions)), versions.between(place(0).position, place(9).position)):
        found = one.at("D", "tT", place(2, 0))
        assert isinstance(found, TableVersion)
        assert found == one.of("D", "TT")[0]


def test_a_statement_that_names_none_is_left_as_it_is():
    statement = parse_ddl("CREATE FUNCTION F() RETURNS INT RETURN 1", "d")
    assert NameCase.LOWER.keys_of(statement) == statement
    assert NameCase.EXACT.keys_of(statement) is statement


@pytest.mark.parametrize(("name", "lower"), DATA["letters"])
def test_letters_are_those_of_an_old_unicode(name, lower):
    assert lower_name(name) == lower


def test_a_value_is_one_of_three():
    assert [parse_name_case("x", given) for given in (None, 0, 1, 2, "1", " 2 ")] == [None, 0, 1, 2, 1, 2]
    for wrong in (3, -1, "", "on", "1" * 100):
        with pytest.raises(ConfigurationError, match=r"^x is '.*', expected 0, 1 or 2$"):
            parse_name_case("x", wrong)


MADE = "CREATE TABLE Three (a INT)"


def found(history):
    return history.fold.finder.found


@pytest.mark.parametrize("statement", DATA["counted as one"])
def test_a_table_that_is_there_in_other_letters_only_says_that_letters_do_not_matter(folded, statement):
    assert found(folded.run(MADE, statement)) is NameCase.LOWER


@pytest.mark.parametrize("statement", DATA["say nothing"])
def test_what_may_be_of_either_kind_says_nothing(folded, statement):
    assert found(folded.run(MADE, statement)) is None


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
