import zlib

import pytest

from ibbmaster.errors import EventError
from ibbmaster.replication.event.header import (
    EventHeader,
    append_checksum,
    decode_body,
    decode_event_header,
    encode_event,
    has_valid_checksum,
)
from tests.damage import flipped

STOP = bytes.fromhex("78563412 03 01000000 13000000 00010000 4000")  # a STOP event, by protocol/event/header.md
HEADER = EventHeader(timestamp=0x12345678, event_type=3, server_id=1, size=19, log_pos=256, flags=0x40)


def test_decoding_and_encoding_agree():
    assert decode_event_header(STOP) == decode_event_header(b"..." + STOP, 3) == HEADER
    assert encode_event(event_type=3, body=b"", server_id=1, timestamp=0x12345678, log_pos=256, flags=0x40) == STOP


def test_a_cut_header_is_refused():
    for size in range(19):
        with pytest.raises(EventError, match=f"event header of {size} bytes, expected 19"):
            decode_event_header(STOP[:size])


def test_an_event_smaller_than_its_header_is_refused():
    with pytest.raises(EventError, match="event size 18 does not even hold the event header"):
        decode_event_header(STOP[:9] + b"\x12" + STOP[10:])


def test_the_size_counts_the_checksum():
    event = encode_event(event_type=2, body=b"body", server_id=7, with_checksum=True)

    assert decode_event_header(event).size == len(event) == 19 + 4 + 4
    assert event[-4:] == zlib.crc32(event[:-4]).to_bytes(4, "little")
    assert has_valid_checksum(event)


def test_a_flipped_bit_makes_the_checksum_wrong():
    event = append_checksum(encode_event(event_type=2, body=b"body", server_id=7))
    assert not any(map(has_valid_checksum, flipped(event)))


def test_what_is_too_short_for_a_checksum_has_none():
    assert not any(has_valid_checksum(STOP[:size]) for size in range(20))


def test_a_body_is_that_of_one_type_and_of_the_whole_event():
    assert decode_body(STOP, 3) == (HEADER, b"")
    with pytest.raises(EventError, match="event type 3, expected 16"):
        decode_body(STOP, 16)
    with pytest.raises(EventError, match="event of 20 bytes says it has 19"):
        decode_body(STOP + b"x", 3)
