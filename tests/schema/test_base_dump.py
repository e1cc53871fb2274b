from pathlib import Path

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.schema.base_dump import expect_statement, read_base, read_rows
from ibbmaster.schema.history import SchemaHistory
from tests.case_table import data_beside
from tests.schema.conftest import column_text, logged, place

DUMP = Path(__file__).with_name("base_dump.sql").read_text()


def pieces(text, size):
    return (text[at : at + size] for at in range(0, len(text), size))


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_a_dump_has_tables_and_the_position_that_it_is_of(size):
    base = read_base(pieces(DUMP, size))
    assert str(base.position) == "0-1-100,1-2-3"
    assert set(base.catalog.tables) == {("shop", "item"), ("shop", "v")}
    assert base.catalog.databases["shop"].collation == "latin1_swedish_ci"
    columns = [column_text(column) for column in base.catalog.table("shop", "item").columns]
    name = "name varchar(20) latin1_swedish_ci default 'a;b -- c'"
    assert columns == ["id int(11) not null auto", name, "data blob default NULL"]


def test_a_position_in_a_comment_counts_too():
    text = DUMP.replace("SET GLOBAL", "-- SET GLOBAL") + "/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;\n"
    assert str(read_base([text]).position) == "0-1-100,1-2-3"


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_a_dump_has_rows(size):
    found = [(str(one.table), one.columns, list(one.rows)) for one in read_rows(pieces(DUMP, size))]
    rows = [("1", "it's; (x)", None), ("-2", "a'b\n/* no comment", b"a\\b"), ("3", "", b"\x00\xff")]
    assert found == [("shop.item", None, rows), ("shop.item", ("id", "name"), [("4", "VALUES (")])]


def test_statements_fold_on_from_a_base():
    history = SchemaHistory(read_base([DUMP]).catalog)
    history.add(place(1), "0-1-101", 0, logged("ALTER TABLE item ADD x INT", database="shop"))
    assert len({column.id for column in history.table_at("shop", "item").columns}) == 4
    assert len(history.table_at("shop", "item", place(1)).columns) == 3


def test_a_schema_may_be_create_statements_alone():
    tables = read_base(["USE d\nCREATE TABLE t (a INT);CREATE TABLE e.t (b INT);"]).catalog.tables
    assert set(tables) == {("d", "t"), ("e", "t")}
    assert set(read_base(["CREATE TABLE t (a INT)"], database="d").catalog.tables) == {("d", "t")}


CUT = [
    (DUMP[: DUMP.index("it\\'s")], 'the text ends inside a statement: "INSERT INTO `item`'),
    (DUMP[: DUMP.index("END ;;")], "the text ends behind a DELIMITER line, expected 'DELIMITER ;' later"),
    (DUMP.replace("0-1-100", "0-1-x"), "gtid_slave_pos: "),
]


@pytest.mark.parametrize(("text", "problem"), data_beside(__file__) + CUT)
def test_what_is_no_base_is_refused_in_a_line(text, problem):
    with pytest.raises(ConfigurationError) as caught:
        read_base([text])
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("INSERT INTO d.t SELECT 1;", "'INSERT INTO d.t SELECT 1': expected INSERT … VALUES (…)"),
        ("INSERT INTO d.t VALUES (NOW());", "INSERT INTO d.t: 'NOW())' where a literal was expected"),
        ("INSERT INTO d.t VALUES (1) ON DUPLICATE KEY UPDATE a = 1;", "behind its rows"),
    ],
)
def test_rows_that_are_no_literals_are_refused(text, problem):
    with pytest.raises(ConfigurationError) as caught:
        [list(one.rows) for one in read_rows([text])]
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "head",
    ["/*M!999999\\- enable the sandbox mode */ \n-- MariaDB dump\n\n/*!40101 SET @a=1 */;", "CREATE TABLE d", ""],
)
def test_the_first_words_tell_what_is_a_dump(head: str) -> None:
    expect_statement(head)


def test_the_first_words_tell_what_is_none() -> None:
    with pytest.raises(ConfigurationError, match="'# A title text': expected a statement of SQL"):
        expect_statement("# A title\n\ntext")
