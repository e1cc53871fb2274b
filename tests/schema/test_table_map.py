"""TABLE_MAP events of real servers beside the DDL in front of them: columns, types, sizes, names, labels, signs."""

import pytest

from ibbmaster.event.gtid_event import decode_gtid_event
from ibbmaster.event.rows.table_schema import decode_table_schema
from ibbmaster.event.statement.logged import decode_statement
from ibbmaster.event.types import EventType
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.table_map import derived_table, disagreement
from tests.event.conftest import CAPTURES, events_of
from tests.schema.conftest import column_text, place


def told(capture):
    """Each TABLE_MAP of a capture with what the history of the DDL before it says, and both at the end."""
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
        assert derived is not None
        assert disagreement(derived, schema) is None
        for own, other in zip(derived.columns, table.columns, strict=True):
            if (own.type.word, own.type.length) != (other.type.word, other.type.length):
                differing.add((column_text(own).split()[1], column_text(other).split()[1]))
    assert differing == {  # what a TABLE_MAP event does not tell apart
        *(("binary(16)", "inet6"), ("binary(16)", "uuid"), ("binary(4)", "inet4"), ("double", "double(20,5)")),
        *(("float", "float(7,3)"), ("int(10)", "int(7)"), ("tinyint(4)", "tinyint(1)")),
    }
