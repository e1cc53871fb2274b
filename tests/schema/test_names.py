"""What a version of a table adds to a TABLE_MAP, and what contradicts one."""

import dataclasses

import pytest

from ibbmaster.arrow.read_options import ZeroDates
from ibbmaster.arrow.shape import column_type
from ibbmaster.errors import EventError
from ibbmaster.event.rows.column import ValueKind
from ibbmaster.schema.model import SqlType, UnknownTable
from ibbmaster.schema.names import column_of, named, unknown_names
from tests.schema.conftest import type_of
from tests.table_versions import INT, TEXT, column, named_by_event, nameless, place, version

DECLARED = "tinyint, int unsigned, bigint, decimal(12,4), double, year, date, datetime(3), timestamp, time(2)"
DECLARED += ", varchar(20), char(9), varbinary(30), mediumtext, blob"


@pytest.mark.parametrize("declared", DECLARED.split(", "))
def test_a_version_tells_of_a_nameless_column_what_full_metadata_does(declared) -> None:
    event = named_by_event({"id": "int", "c": declared}).columns[1]
    table = version(column(1, "id"), column(2, "c", type_of(declared)))

    told = named(nameless({"id": "int", "c": declared}), table).columns[1]
    assert (told.name, told.kind, told.size, told.scale) == ("c", event.kind, event.size, event.scale)
    assert column_type(told, ZeroDates.NULL) == column_type(event, ZeroDates.NULL)
    assert dataclasses.replace(told, metadata=0) == dataclasses.replace(column_of(table.columns[1]), metadata=0)


def test_a_version_tells_the_key_and_which_columns_may_be_null() -> None:
    table = version(column(2, "name", TEXT), column(1, "id", is_nullable=False), key=1)

    found = named(nameless({"a": "varchar(20)", "b": "int"}), table)
    assert found.primary_key == (1,)
    assert [one.is_nullable for one in found.columns] == [True, False]
    assert found.has_names


def test_labels_and_kinds_that_no_metadata_tells_come_from_the_version() -> None:
    uuid = SqlType(word="uuid")
    enum = SqlType(word="enum", labels=("a", "it's"), charset="latin1")

    assert column_of(column(1, "u", uuid)).kind is ValueKind.UUID
    assert column_of(column(1, "e", enum)).labels == ("a", "it's")
    assert column_of(column(1, "t", SqlType(word="varchar", length=3, charset="latin1"))).size == 3


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"id": "int"}, "rows of 1 columns, by its DDL it has 2"),
        ({"id": "int", "name": "int"}, r"column 2 \(name\) is a LONG and not varchar in its rows"),
        ({"id": "int", "name": "varchar(21)"}, r"column 2 \(name\) is a VARCHAR\(84\) and not varchar of 80 bytes"),
    ],
)
def test_what_contradicts_names_table_gtid_and_remedy(columns, problem) -> None:
    table = version(column(1, "id"), column(2, "name", TEXT), since=place(7))

    with pytest.raises(EventError, match=rf"^db\.t: {problem}.* since GTID 0-1-7; declare the table with option"):
        named(nameless(columns), table)


def test_names_and_signs_of_the_event_go_before_the_version() -> None:
    with pytest.raises(EventError, match=r"column 1 \(id\) is called 'a' in its rows since the log begins"):
        named(named_by_event({"a": "int"}), version(column(1, "id")))
    with pytest.raises(EventError, match="is unsigned in its rows"):
        named(named_by_event({"id": "int unsigned"}), version(column(1, "id", INT)))


def test_an_unknown_table_says_since_when_and_why() -> None:
    table = UnknownTable(database="db", name="t", since=place(3), gtid="0-1-3", reason="a statement; give --schema")

    assert str(unknown_names(table)) == "db.t: its columns are not known since GTID 0-1-3: a statement; give --schema"
