"""Every event of real servers is understood, and comes out of the encoders as it went in."""

import contextlib
from collections import Counter

import pytest

from ibbmaster.errors import EventError
from ibbmaster.replication.event import control
from ibbmaster.replication.event.describe import describe_event, event_type_name
from ibbmaster.replication.event.format_description import decode_format_description, encode_format_description
from ibbmaster.replication.event.group import GroupBoundary
from ibbmaster.replication.event.gtid_event import decode_gtid_event, encode_gtid_event
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.replication.event.query import decode_query, encode_query, status_variables
from ibbmaster.replication.event.table_map import ROW_EVENT_TYPES, decode_rows_header, decode_table_map
from ibbmaster.replication.event.types import EventType, post_header_sizes, type_name
from tests.damage import flipped
from tests.machinery.client_wire import decode_heartbeat

ROUND_TRIPS = {
    EventType.FORMAT_DESCRIPTION: (decode_format_description, encode_format_description),
    EventType.GTID_LIST: (control.decode_gtid_list, control.encode_gtid_list),
    EventType.QUERY: (decode_query, encode_query),
    EventType.XID: (control.decode_xid, control.encode_xid),
    EventType.ROTATE: (control.decode_rotate, control.encode_rotate),
    EventType.BINLOG_CHECKPOINT: (control.decode_binlog_checkpoint, control.encode_binlog_checkpoint),
}


def encoded_again(event: bytes) -> bytes | None:
    header = decode_event_header(event)
    stamps = {"timestamp": header.timestamp, "log_pos": header.log_pos, "flags": header.flags}
    if header.event_type == EventType.GTID:
        return encode_gtid_event(decode_gtid_event(event), **stamps)
    if header.event_type == EventType.STOP:
        return control.encode_stop(server_id=header.server_id, **stamps)
    if header.event_type not in ROUND_TRIPS:
        return None
    decode, encode = ROUND_TRIPS[EventType(header.event_type)]
    return encode(decode(event), server_id=header.server_id, **stamps)


def test_decoding_and_encoding_gives_the_same_bytes(events):
    for event in events:
        again = encoded_again(event)
        assert again is None or again == event, event.hex(" ")


def test_the_types_are_counted_as_the_server_counted_them(events, expected):
    assert Counter(type_name(event[4]) for event in events) == expected["events"]


def test_the_groups_end_where_the_server_ended_them(events, expected):
    groups, boundary = 0, None
    for event in events:
        header = decode_event_header(event)
        if header.event_type == EventType.GTID:
            assert boundary is None
            boundary = GroupBoundary(decode_gtid_event(event).flags)
        elif boundary is not None and boundary.ends_with(header, event):
            groups, boundary = groups + 1, None
    assert groups == expected["event_groups"]


def test_the_last_gtid_is_the_one_the_server_named(events, expected):
    gtids = [decode_gtid_event(event).gtid for event in events if event[4] == EventType.GTID]
    assert str(gtids[-1]) == expected["last_gtid"]


def test_rows_belong_to_the_table_mapped_before_them(events):
    tables = {}
    for event in events:
        if event[4] == EventType.TABLE_MAP:
            table_map = decode_table_map(event)
            tables[table_map.table_id] = table_map
        elif event[4] in ROW_EVENT_TYPES:
            rows = decode_rows_header(event)
            assert rows.column_count == len(tables[rows.table_id].column_types)
            assert rows.rows_offset <= len(event)


def test_status_variables_and_compressed_texts_are_read_to_their_end(events):
    for event in events:
        if event[4] in (EventType.QUERY, EventType.QUERY_COMPRESSED):
            query = decode_query(event)
            assert b"".join(bytes([code]) + value for code, value in status_variables(query.status)) == query.status
            assert query.text.isascii() or query.text


def test_every_event_has_a_line_for_people(events):
    for event in events:
        assert event_type_name(event[4])
        line = describe_event(event)
        assert line or event[4] not in (EventType.GTID, EventType.QUERY, EventType.TABLE_MAP, EventType.XID)


def test_the_announced_post_header_sizes_are_those_of_real_servers(events):
    for event in events:
        if event[4] == EventType.FORMAT_DESCRIPTION:
            assert decode_format_description(event).post_header_sizes == post_header_sizes(171)


DECODERS = [
    *(*(decode for decode, _ in ROUND_TRIPS.values()), decode_gtid_event, decode_heartbeat, decode_table_map),
    decode_rows_header,
]


@pytest.mark.parametrize("decode", DECODERS, ids=lambda decode: decode.__name__)
def test_cut_and_damaged_events_give_a_value_or_an_event_error(decode, sample_events):
    read = 0
    for event in sample_events[:150]:
        for variant in (*(event[:size] for size in range(0, len(event), 3)), *flipped(event, step=11)):
            with contextlib.suppress(EventError):
                decode(variant)
                read += 1
    assert read or decode in (decode_heartbeat, decode_format_description)  # not in files; always has a checksum
