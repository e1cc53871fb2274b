import pytest

from ibbmaster.errors import EventError
from ibbmaster.replication.event.table_map import ROW_EVENT_TYPES, TableMap, decode_rows_header, decode_table_map
from ibbmaster.replication.event.types import EventType
from tests.replication.event.conftest import event_of

TABLE = bytes.fromhex("070000000000 0100 04 73686f70 00 01 74 00 02 03 0f")
UPDATE = bytes.fromhex("070000000000 0100 09 ff01 fe00") + b"rows"
UPDATE_V2 = bytes.fromhex("070000000000 0000 0500 616263 09 ff01 fe00") + b"rows"


def test_a_table_map_says_what_a_table_id_stands_for():
    assert decode_table_map(event_of(EventType.TABLE_MAP, TABLE + b"metadata")) == TableMap(
        table_id=7, flags=1, database=b"shop", table=b"t", column_types=b"\x03\x0f", types_end=39
    )


def test_a_row_event_says_where_its_rows_are():
    event = event_of(EventType.UPDATE_ROWS_V1, UPDATE)
    head = decode_rows_header(event)

    assert (head.table_id, head.column_count) == (7, 9)
    assert (head.columns_present, head.columns_after) == (b"\xff\x01", b"\xfe\x00")
    assert event[head.rows_offset :] == b"rows"
    assert head.ends_statement
    assert not head.is_compressed


def test_the_second_version_has_extra_data():
    event = event_of(EventType.UPDATE_ROWS_COMPRESSED, UPDATE_V2)
    head = decode_rows_header(event)

    assert (head.extra, head.is_compressed, head.ends_statement) == (b"abc", True, False)
    assert event[head.rows_offset :] == b"rows"


def test_only_updates_have_columns_of_after_the_change():
    assert decode_rows_header(event_of(EventType.WRITE_ROWS_V1, UPDATE)).columns_after == b""


@pytest.mark.parametrize(
    ("decode", "event_type", "body", "size_min"),
    [
        (decode_table_map, EventType.TABLE_MAP, TABLE, len(TABLE)),
        (decode_rows_header, EventType.UPDATE_ROWS_V1, UPDATE, len(UPDATE) - 4),
        (decode_rows_header, EventType.UPDATE_ROWS, UPDATE_V2, len(UPDATE_V2) - 4),
    ],
)
def test_an_event_that_ends_inside_its_head_is_refused(decode, event_type, body, size_min):
    for size in range(size_min):
        with pytest.raises(EventError, match=r"TABLE_MAP|row event"):
            decode(event_of(event_type, body[:size]))
    decode(event_of(event_type, body[:size_min]))


def test_what_is_no_row_event_is_refused():
    for event_type in set(range(256)) - ROW_EVENT_TYPES:
        with pytest.raises(EventError, match=f"event type {event_type}, expected a row event"):
            decode_rows_header(event_of(event_type, UPDATE))


def test_a_name_ends_with_a_zero_and_extra_data_counts_its_size():
    with pytest.raises(EventError, match="a name without its closing zero"):
        decode_table_map(event_of(EventType.TABLE_MAP, TABLE.replace(b"shop\0", b"shop\1")))
    with pytest.raises(EventError, match="extra data of 1 bytes, expected at least 2"):
        decode_rows_header(event_of(EventType.UPDATE_ROWS, UPDATE_V2[:8] + b"\1\0" + UPDATE_V2[10:]))
