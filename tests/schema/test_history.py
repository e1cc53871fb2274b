import pytest

from ibbmaster.replication.event.rows.column import Column, ColumnType, TableSchema, ValueKind
from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.history import BEFORE, SchemaHistory
from ibbmaster.schema.model import TableVersion, UnknownTable
from ibbmaster.schema.versions import ranges_of
from tests.schema.conftest import Folded, logged, place


def number(name, **others):
    return Column(name=name, type=ColumnType.LONG, metadata=0, kind=ValueKind.INTEGER, **others)


def rows_of(*columns, has_names=True, table="t", primary_key=()):
    return TableSchema(
        table_id=1, database="d", table=table, columns=columns, has_names=has_names, primary_key=primary_key
    )


def test_a_statement_holds_for_what_stands_behind_it(folded):
    folded.run("CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT", "DROP TABLE t", "CREATE TABLE t (z INT)")

    def names(at):
        table = folded.table_at("d", "t", at)
        return None if table is None else [column.name for column in table.columns]

    assert names(place(1)) is None
    assert names(place(1, 2)) == names(place(2, 0)) == names(place(2)) == ["a"]
    assert names(place(2, 2)) == names(place(3, 1)) == ["a", "b"]
    assert (names(place(3, 2)), names(place(4, 2)), names(None)) == (None, ["z"], ["z"])
    assert [len(table.columns) for table in folded.versions("d", "t")] == [1, 2, 1]
    assert set(folded.at(place(3)).tables) == {("d", "t")}
    assert set(folded.at(place(4)).tables) == set()


def test_a_history_begins_with_a_base():
    base = SchemaCatalog(tables={("d", "t"): TableVersion(database="d", name="t")})
    history = SchemaHistory(base)
    assert history.table_at("d", "t", place(0, 0)) == base.table("d", "t")
    history.add(place(1), "0-1-1", 0, logged("ALTER TABLE t ADD x INT"))
    assert [len(table.columns) for table in history.versions("d", "t")] == [0, 1]


def test_rows_of_tables_that_statements_define_change_nothing(folded):
    folded.run("CREATE TABLE t (a INT, b INT UNSIGNED)")
    before = folded.known()
    for seen in (rows_of(number("a"), number("b")), rows_of(number("x")), rows_of(number("@1"), has_names=False)):
        folded.take_rows(place(2, 2), "0-1-2", seen)
    assert folded.known() is before
    assert (len(folded.versions("d", "t")), folded.disagreements) == (1, [])


def test_a_table_from_before_the_log_is_what_its_rows_name_and_statements_go_on_from_there(folded):
    folded.take_rows(place(3, 2), "0-1-1", rows_of(number("a"), number("b"), primary_key=(0,)))
    for at in (place(0, 0), None):
        table = folded.table_at("d", "t", at)
        assert isinstance(table, TableVersion)
        assert [column.name for column in table.columns] == ["a", "b"]
        assert (table.since, table.gtid, table.is_created_in_log) == (None, None, False)
        assert "its CREATE TABLE is not in the log" in table.undefined_because
    folded.count = 3
    folded.run("ALTER TABLE t DROP b, CHANGE a z INT")
    assert [column.name for column in folded.known().columns] == ["z"]
    assert {column.id for column in folded.known().columns} < {column.id for column in table.columns}
    assert folded.known().undefined_because == table.undefined_because


def test_rows_behind_a_statement_that_names_the_table_first_tell_it_from_there_on(folded):
    """ALTER TABLE may have come again and again in between, so what stands before them is not told."""
    folded.run("ALTER TABLE t ADD b INT", "ALTER TABLE t ADD c INT")
    folded.take_rows(place(3, 2), "0-1-3", rows_of(number("a"), number("b"), number("c")))
    versions = folded.versions("d", "t")
    assert [type(one) for one in versions] == [UnknownTable, UnknownTable, TableVersion]
    assert len({one.generation for one in versions}) == 1  # one table: its rows are looked for everywhere
    assert versions[0].generation
    assert isinstance(folded.table_at("d", "t", place(3, 1)), UnknownTable)
    assert isinstance(folded.table_at("d", "t", place(3, 2)), TableVersion)
    found = ranges_of(folded, ("d", "t"))
    for at in (BEFORE, place(0), place(1), place(2), place(3, 2), place(4)):
        assert any(one.holds(("d", "t"), at) for one in found)


def test_a_table_that_a_query_made_is_what_its_rows_name(folded):
    folded.run("CREATE TABLE t SELECT 1 AS a")
    folded.take_rows(place(1, 3), "0-1-1", rows_of(number("a")))
    assert [column.name for column in folded.known().columns] == ["a"]
    assert "a query" in folded.known().undefined_because


@pytest.mark.parametrize(
    "statements",
    [
        ("RENAME TABLE s TO t",),  # rows of s may say otherwise
        ("CREATE TABLE t (a INT)", "ALTER TABLE t FROBNICATE"),  # it was known better
        ("CREATE TABLE t (a INT)", "DROP TABLE t"),
    ],
)
def test_rows_do_not_tell_a_table_that_was_another_one(folded, statements):
    folded.run(*statements)
    before = folded.table_at("d", "t")
    folded.take_rows(place(4, 2), "0-1-4", rows_of(number("a")))
    assert folded.table_at("d", "t") is before


def test_rows_without_names_do_not_tell_it(folded):
    folded.take_rows(place(1, 2), "0-1-1", rows_of(number("@1"), has_names=False))
    assert folded.table_at("d", "t") is None


def test_rows_that_contradict_what_earlier_ones_told_make_the_table_unknown_for_good(folded):
    folded.take_rows(place(0, 2), "0-1-1", rows_of(number("a"), number("b")))
    folded.run("ALTER TABLE t DROP b")
    folded.take_rows(place(2, 2), "0-1-2", rows_of(number("a"), number("c")))
    table = folded.table_at("d", "t")
    assert isinstance(table, UnknownTable)
    assert "rows of 2 columns, by its DDL it has 1" in table.reason
    assert isinstance(folded.table_at("d", "t", place(2, 1)), TableVersion)
    folded.take_rows(place(3, 2), "0-1-3", rows_of(number("a"), number("c")))
    assert folded.table_at("d", "t") is table


def test_what_a_log_makes_is_none_of_the_tables_that_were_there_before():
    base = Folded().run("CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)").at()
    history = Folded(base).run("CREATE TABLE v (b INT)", "TRUNCATE TABLE t")
    assert len({*(history.known(name).generation for name in "tuv"), base.table("d", "t").generation}) == 4
