import dataclasses

import pytest

from ibbmaster.errors import EventError
from ibbmaster.replication.event.gtid_event import decode_gtid_event
from ibbmaster.replication.event.rows.column import ValueKind
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.replication.event.statement.logged import decode_statement
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SqlType, TableVersion, UnknownTable
from ibbmaster.schema.names import column_of, derived_table, disagreement, named, unknown_names
from ibbmaster.tables.arrow.read_options import ZeroDates
from ibbmaster.tables.arrow.shape import column_type
from tests.replication.event.conftest import CAPTURES, events_of
from tests.schema.conftest import column_text, type_of
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


def told(capture):
    history = SchemaHistory()
    start, gtid = 0, ""
    for number, event in enumerate(events_of(capture)):
        match event[4]:
            case EventType.GTID:
                start, gtid = number, str(decode_gtid_event(event).gtid)
            case EventType.QUERY | EventType.QUERY_COMPRESSED if gtid:
                history.add(place(start, number - start), gtid, 0, decode_statement(event))
            case EventType.TABLE_MAP:
                yield history, place(start, number - start), gtid, decode_table_schema(event)
            case EventType.STOP:
                history.add_restart()


@pytest.mark.parametrize("capture", CAPTURES)
def test_at_each_table_map_the_table_is_known_as_the_event_has_it(capture):
    count = 0
    for history, at, gtid, schema in told(capture):
        table = history.table_at(schema.database, schema.table, at)
        assert isinstance(table, TableVersion), (gtid, schema.name)
        assert disagreement(table, schema) is None, gtid
        history.take_rows(at, gtid, schema)
        assert history.table_at(schema.database, schema.table, at) is table
        count += 1
    assert count
    assert history.disagreements == []


def test_a_table_out_of_its_table_map_alone_has_the_columns_of_its_ddl():
    differing = set()
    for history, at, gtid, schema in told("11.8/types-full-crc32"):
        table = history.table_at(schema.database, schema.table, at)
        derived = derived_table(schema, at, gtid, lambda: 0)
        assert isinstance(table, TableVersion)
        assert disagreement(derived, schema) is None
        for own, other in zip(derived.columns, table.columns, strict=True):
            if (own.type.word, own.type.length) != (other.type.word, other.type.length):
                differing.add((column_text(own).split()[1], column_text(other).split()[1]))
    assert differing == {  # what a TABLE_MAP event does not tell apart
        *(("binary(16)", "inet6"), ("binary(16)", "uuid"), ("binary(4)", "inet4"), ("double", "double(20,5)")),
        *(("float", "float(7,3)"), ("int(10)", "int(7)"), ("tinyint(4)", "tinyint(1)")),
    }
