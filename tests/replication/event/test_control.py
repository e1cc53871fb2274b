"""The events of a few fields each: read as they were written, and refused where they are cut."""

import struct

import pytest

from ibbmaster.errors import EventError
from ibbmaster.gtid import Gtid
from ibbmaster.replication.event import control
from ibbmaster.replication.event.header import decode_event_header, encode_event, has_valid_checksum
from ibbmaster.replication.event.types import EventType
from tests.machinery.client_wire import decode_heartbeat

GTIDS = (Gtid(domain_id=0, server_id=1, seq_no=2), Gtid(domain_id=3, server_id=2**32 - 1, seq_no=2**64 - 1))
CASES = {  # by protocol/event/others.md: decode, encode, value, type, body, how much of it must be there
    "ROTATE": (
        *(control.decode_rotate, control.encode_rotate, control.Rotate(file_name="log.000002", position=4)),
        *(EventType.ROTATE, struct.pack("<Q", 4) + b"log.000002", 8),
    ),
    "XID": (control.decode_xid, control.encode_xid, 258, EventType.XID, struct.pack("<Q", 258), 8),
    "BINLOG_CHECKPOINT": (
        *(control.decode_binlog_checkpoint, control.encode_binlog_checkpoint, "log.000002"),
        *(EventType.BINLOG_CHECKPOINT, b"\x0a\0\0\0log.000002", 14),
    ),
    "GTID_LIST": (
        *(
            control.decode_gtid_list,
            control.encode_gtid_list,
            control.GtidList(gtids=GTIDS, flags=control.FLAG_UNTIL_REACHED),
        ),
        *(EventType.GTID_LIST, struct.pack("<IIIQIIQ", 2 | 1 << 28, 0, 1, 2, 3, 2**32 - 1, 2**64 - 1), 36),
    ),
    "an empty GTID_LIST": (
        *(control.decode_gtid_list, control.encode_gtid_list, control.GtidList(gtids=())),
        *(EventType.GTID_LIST, bytes(6), 4),
    ),
}


@pytest.mark.parametrize(("decode", "encode", "value", "event_type", "body", "_"), CASES.values(), ids=CASES)
def test_decoding_and_encoding_agree(decode, encode, value, event_type, body, _):
    event = encode_event(event_type=event_type, body=body, server_id=5, log_pos=9)

    assert decode(event) == value
    assert encode(value, server_id=5, log_pos=9) == event


@pytest.mark.parametrize(("decode", "_", "value", "event_type", "body", "size_min"), CASES.values(), ids=CASES)
def test_a_cut_event_and_one_of_another_type_are_refused(decode, _, value, event_type, body, size_min):
    event = encode_event(event_type=event_type, body=body, server_id=5)
    for size in range(len(event)):
        with pytest.raises(EventError):
            decode(event[:size])
    for size in range(size_min):
        with pytest.raises(EventError, match=event_type.name):
            decode(encode_event(event_type=event_type, body=body[:size], server_id=5))
    with pytest.raises(EventError, match="event type 3, expected"):
        decode(encode_event(event_type=EventType.STOP, body=body, server_id=5))


@pytest.mark.parametrize(
    ("position", "body"), [(4, b"log"), (2**32 - 1, b"log"), (2**32, struct.pack("<Q", 2**32) + b"log")]
)
def test_a_heartbeat_has_its_position_in_the_header_or_beyond_4_gib_in_the_body(position, body):
    event = control.encode_heartbeat("log", position, server_id=1)

    assert event[19:] == body
    assert decode_heartbeat(event) == ("log", position)
    assert decode_event_header(event).log_pos == (position if position < 2**32 else 0)


def test_a_heartbeat_without_any_position_is_refused():
    for size in range(8):
        with pytest.raises(EventError, match=f"HEARTBEAT without log_pos has a body of {size} bytes"):
            decode_heartbeat(encode_event(event_type=EventType.HEARTBEAT, body=bytes(size), server_id=1))


def test_a_file_name_that_is_no_text_survives():
    value = control.Rotate(file_name=b"log\xff".decode("utf-8", "surrogateescape"), position=4)
    event = control.encode_rotate(value, server_id=1)
    assert event.endswith(b"log\xff")
    assert control.decode_rotate(event) == value


def test_a_stop_is_nothing_but_a_header():
    assert control.encode_stop(server_id=1, log_pos=19) == encode_event(
        event_type=EventType.STOP, body=b"", server_id=1, log_pos=19
    )


def test_made_up_events_carry_a_checksum_where_the_replica_wants_one():
    for event in (
        control.encode_rotate(control.Rotate(file_name="log", position=4), server_id=1, with_checksum=True),
        control.encode_heartbeat("log", 4, server_id=1, with_checksum=True),
        control.encode_gtid_list(control.GtidList(gtids=GTIDS), server_id=1, with_checksum=True),
        control.encode_binlog_checkpoint("log", server_id=1, with_checksum=True),
    ):
        assert has_valid_checksum(event)
