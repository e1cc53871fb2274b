"""Which version of a table is in force at a place, and what rows say against it."""

from __future__ import annotations

import dataclasses

import pytest

from ibbmaster.event.rows.column import Column, ColumnType, TableSchema, ValueKind
from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import TableVersion, UnknownTable
from tests.schema.conftest import logged, place


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


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ((number("a"),), "rows of 1 columns, by its DDL it has 2"),
        ((number("a"), number("x")), "column 2 (b) is called 'x' in its rows"),
        (
            (number("a"), dataclasses.replace(number("b"), type=ColumnType.LONGLONG)),
            "column 2 (b) is a LONGLONG and not int in its rows",
        ),
        ((number("a"), number("b", is_unsigned=True)), "column 2 (b) is unsigned in its rows"),
    ],
)
def test_rows_that_contradict_their_ddl_make_the_table_unknown(folded, columns, problem):
    folded.run("CREATE TABLE t (a INT, b INT)", "ALTER TABLE t ADD c INT")
    folded.add_table_map(place(1, 4), "0-1-1", rows_of(*columns))
    table = folded.table_at("d", "t", place(1, 4))
    assert isinstance(table, UnknownTable)
    assert problem in table.reason
    assert folded.disagreements == [f"GTID 0-1-1: table d.t: {problem}"]
    assert isinstance(folded.table_at("d", "t", place(1, 3)), TableVersion)


def test_rows_that_agree_change_nothing(folded):
    folded.run("CREATE TABLE t (a INT, b INT UNSIGNED)")
    folded.add_table_map(place(2, 2), "0-1-2", rows_of(number("a", is_unsigned=False), number("b", is_unsigned=True)))
    folded.add_table_map(place(2, 3), "0-1-2", rows_of(number("@1"), number("@2"), has_names=False))
    assert (len(folded.versions("d", "t")), folded.disagreements) == (1, [])


def test_a_table_from_before_the_log_is_what_its_rows_tell(folded):
    folded.add_table_map(place(1, 2), "0-1-1", rows_of(number("a"), number("b"), primary_key=(0,)))
    assert [column.name for column in folded.known().columns] == ["a", "b"]
    assert folded.table_at("d", "t", place(1, 1)) is None
    folded.count = 1
    folded.run("ALTER TABLE t DROP b")
    assert [column.name for column in folded.known().columns] == ["a"]


def test_rows_without_names_do_not_tell_it(folded):
    folded.add_table_map(place(1, 2), "0-1-1", rows_of(number("@1"), has_names=False))
    table = folded.table_at("d", "t")
    assert isinstance(table, UnknownTable)
    assert table.reason.startswith("its rows come before its CREATE TABLE in the log; give its CREATE TABLE")
