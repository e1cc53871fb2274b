"""The tables of protocol/event against the code, so that neither can drift."""

import pytest

from ibbmaster.replication.event import control, format_description, query
from ibbmaster.replication.event.gtid_event import FIXED
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, EventHeader, encode_event
from ibbmaster.replication.event.rows.table_schema import METADATA_SIZES
from ibbmaster.replication.event.types import EventType, post_header_sizes
from tests.protocol.documents import places_of, read_tables


def table(document, heading):
    return read_tables(f"protocol/event/{document}", heading)[0]


def test_the_common_header_has_the_fields_of_the_table():
    header = EventHeader(timestamp=1, event_type=2, server_id=3, size=EVENT_HEADER_SIZE, log_pos=4, flags=5)
    event = encode_event(event_type=2, body=b"", server_id=3, timestamp=1, log_pos=4, flags=5)
    names = {"type": "event_type", "server id": "server_id"}
    found = {
        names.get(field, field): int.from_bytes(event[start : start + size], "little")
        for field, (start, size) in places_of(table("header.md", "Layout")).items()
    }
    assert found == header._asdict()


@pytest.mark.parametrize("type_count", [171, 172])
def test_types_and_their_post_headers_are_those_of_the_table(type_count):
    sizes = post_header_sizes(type_count)
    for row in table("header.md", "Types"):
        event_type = int(row["Type"])
        assert EventType(event_type).name == row["Name"]
        if event_type <= type_count:
            assert sizes[event_type - 1] == (57 + type_count if event_type == 15 else int(row["Post-header"]))


def test_the_fixed_part_of_a_gtid_event_has_the_sizes_of_the_table():
    assert sum(int(row["Size"]) for row in table("gtid.md", "Layout")[:3]) == FIXED.size
    assert FIXED.pack(0x0102030405060708, 0x0A0B0C0D, 0xEE).hex() == "08070605040302010d0c0b0aee"


LAYOUTS = {  # heading: the struct of its fixed fields, or the size before what follows
    "FORMAT_DESCRIPTION": format_description.FIXED.size,
    "GTID_LIST": control.LIST_COUNT.size,
    "ROTATE": control.ROTATE_POSITION.size,
    "QUERY": query.FIXED.size,
    "XID": control.XID_NUMBER.size,
    "BINLOG_CHECKPOINT": control.CHECKPOINT_NAME_SIZE.size,
}


@pytest.mark.parametrize("heading", LAYOUTS)
def test_fixed_parts_have_the_sizes_of_the_table(heading):
    fields = places_of(table("others.md", heading)).values()
    assert sum(size for _, size in fields) == LAYOUTS[heading]
    assert max(start + size for start, size in fields) == LAYOUTS[heading]


def test_a_heartbeat_far_into_a_file_begins_with_its_position():
    event = control.encode_heartbeat("f", 5 << 30, server_id=1)
    assert event[13:17] == bytes(4)
    assert event[19:] == (5 << 30).to_bytes(8, "little") + b"f"


def test_column_types_have_the_metadata_of_the_table():
    rows = table("rows.md", "Column types")
    found = {row["Type"]: (int(row["Code"]), int(row["Metadata bytes"])) for row in rows}
    assert found == {kind.name: (int(kind), size) for kind, size in METADATA_SIZES.items()}
