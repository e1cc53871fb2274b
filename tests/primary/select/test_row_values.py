"""VIRTUAL columns over TIMESTAMP; what a server gives in several time zones is compared in tests/interop."""

import pytest

from ibbmaster.position import LogPosition
from ibbmaster.primary.select.row_values import local_columns
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableVersion
from tests.case_table import data_beside
from tests.table_versions import logged_statement

MOMENT = b"2024-02-09 03:04:05"
#: Type and expression of columns, and their texts at that moment; None: they are not computed.
CASES = data_beside(__file__)


def made(*columns: str) -> TableVersion:
    history = SchemaHistory()
    own = ", ".join(f"g{number} {column}" for number, column in enumerate(columns))
    text = f"CREATE TABLE t (a INT, t TIMESTAMP NULL, d DATETIME, user INT, {own})"
    history.add(SchemaPlace(LogPosition(0, 0), 1), "0-1-1", 0, logged_statement(text))
    (table,) = history.versions("db", "t")
    assert isinstance(table, TableVersion)
    return table


@pytest.mark.parametrize(("column", "text"), CASES["local"].items(), ids=CASES["local"])
def test_a_column_is_computed_from_the_moment_that_the_reader_sees(column: str, text: str | None) -> None:
    table = made(column)
    found = local_columns(table)[table.columns[-1].id]

    assert (None if found.change is None else found.change(MOMENT).decode()) == text
    assert (found.source is None) == (text is None)


@pytest.mark.parametrize("column", CASES["the same for all"])
def test_a_column_that_is_the_same_for_all_readers_is_taken_from_the_log(column: str) -> None:
    assert local_columns(made(column)) == {}


def test_what_is_over_a_local_column_is_local_too_wherever_it_stands() -> None:
    table = made("INT AS (g2 + 1)", "INT AS (a)", "INT AS (hour(t))", "DATETIME AS (t) STORED", "DATE AS (g3)")
    ids = {column.id: column.name for column in table.columns}

    assert {ids[number] for number in local_columns(table)} == {"g0", "g2"}
