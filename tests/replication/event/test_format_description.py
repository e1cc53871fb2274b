"""FORMAT_DESCRIPTION events: those of real servers, open files among them, and what is refused."""

import struct
import zlib

import pytest

from ibbmaster.errors import EventError
from ibbmaster.replication.event import format_description as formats
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, encode_event
from ibbmaster.replication.event.types import EventFlag, EventType
from tests.damage import flipped


@pytest.fixture(scope="module")
def described(sample_events):
    return [event for event in sample_events if event[4] == EventType.FORMAT_DESCRIPTION]


def altered(event: bytes, offset: int, data: bytes) -> bytes:
    event = event[:offset] + data + event[offset + len(data) : -4]
    return event + struct.pack("<I", zlib.crc32(event[:17] + bytes([event[17] & ~EventFlag.IN_USE]) + event[18:]))


def test_the_description_is_what_was_asked_for():
    value = formats.describe_format(
        "11.8.6-MariaDB", type_count=171, algorithm=formats.ChecksumAlgorithm.CRC32, created=7
    )
    event = formats.encode_format_description(value, server_id=9, log_pos=256)

    assert formats.decode_format_description(event) == value
    assert event[21 : 21 + 15] == b"11.8.6-MariaDB\0"


def test_the_flag_of_a_file_in_use_is_not_in_the_checksum(described):
    event = described[0]
    opened = event[:17] + bytes([event[17] ^ EventFlag.IN_USE]) + event[18:]

    assert formats.decode_format_description(opened) == formats.decode_format_description(event)


def test_a_cut_event_is_refused(described):
    for size in range(len(described[0])):
        with pytest.raises(EventError):
            formats.decode_format_description(described[0][:size])


def test_a_flipped_bit_is_seen(described):
    event = described[0]
    for damaged in flipped(event, step=3):
        if damaged[17] & EventFlag.IN_USE == event[17] & EventFlag.IN_USE:
            with pytest.raises(EventError):
                formats.decode_format_description(damaged)


@pytest.mark.parametrize(
    ("version", "has_trailer"),
    [
        *((name, False) for name in ("5.0.83-log", "5.1.42-MariaDB-log", "5.2.14-MariaDB", "5.5.62", "5.6.0-m4")),
        *((name, True) for name in ("5.6.1", "5.3.0-MariaDB", "10.11.19-MariaDB", "unknown")),
    ],
)
def test_servers_that_know_no_checksums_say_nothing_of_them(version, has_trailer):
    value = formats.describe_format(version, type_count=27)
    event = formats.encode_format_description(value, server_id=9, log_pos=256)

    short = encode_event(event_type=EventType.FORMAT_DESCRIPTION, body=event[EVENT_HEADER_SIZE:-5], server_id=9)

    assert formats.decode_format_description(event if has_trailer else short) == value
    if not has_trailer:
        assert not formats.has_checksums(short[:-5] + b"\1" + short[-4:])  # it is the size of a type
    else:
        assert formats.has_checksums(altered(event, len(event) - 5, b"\1"))
        with pytest.raises(EventError):
            formats.decode_format_description(short)


@pytest.mark.parametrize(
    ("offset", "data", "problem"),
    [
        (19, b"\x03\0", "of version 3 with headers of 19 bytes: expected 4 and 19"),
        (75, b"\x14", "of version 4 with headers of 20 bytes"),
        (-5, b"\x02", "checksum algorithm 2 is unknown"),
        (4, b"\x03", "event type 3, expected 15"),
    ],
)
def test_another_layout_is_refused(described, offset, data, problem):
    event = described[0]
    with pytest.raises(EventError, match=problem):
        formats.decode_format_description(altered(event, offset % len(event), data))


def test_a_checksum_that_is_wrong_is_said(described):
    *_, damaged = flipped(described[0])
    with pytest.raises(EventError, match="FORMAT_DESCRIPTION has a wrong checksum"):
        formats.decode_format_description(damaged)
