import random
import zlib

import pytest

from ibbmaster.errors import EventError
from ibbmaster.replication.event import header as headers
from ibbmaster.replication.event.group import GroupBoundary
from ibbmaster.replication.event.gtid_event import GtidFlag
from ibbmaster.replication.event.split import EventSplitter, event_heads
from ibbmaster.replication.event.types import (
    TYPE_COUNT_CLASSIC,
    TYPE_COUNT_ENGINE,
    EventType,
    post_header_sizes,
    type_name,
)
from tests.damage import flipped
from tests.replication.event.conftest import event_of, query

STOP = bytes.fromhex("78563412 03 01000000 13000000 00010000 4000")  # a STOP event, by protocol/event/header.md
HEADER = headers.EventHeader(timestamp=0x12345678, event_type=3, server_id=1, size=19, log_pos=256, flags=0x40)


def test_decoding_and_encoding_agree():
    assert headers.decode_event_header(STOP) == headers.decode_event_header(b"..." + STOP, 3) == HEADER
    assert (
        headers.encode_event(event_type=3, body=b"", server_id=1, timestamp=0x12345678, log_pos=256, flags=0x40) == STOP
    )


def test_a_cut_header_is_refused():
    for size in range(19):
        with pytest.raises(EventError, match=f"event header of {size} bytes, expected 19"):
            headers.decode_event_header(STOP[:size])


def test_an_event_smaller_than_its_header_is_refused():
    with pytest.raises(EventError, match="event size 18 does not even hold the event header"):
        headers.decode_event_header(STOP[:9] + b"\x12" + STOP[10:])


def test_the_size_counts_the_checksum():
    event = headers.encode_event(event_type=2, body=b"body", server_id=7, with_checksum=True)

    assert headers.decode_event_header(event).size == len(event) == 19 + 4 + 4
    assert event[-4:] == zlib.crc32(event[:-4]).to_bytes(4, "little")
    assert headers.has_valid_checksum(event)


def test_a_flipped_bit_makes_the_checksum_wrong():
    event = headers.append_checksum(headers.encode_event(event_type=2, body=b"body", server_id=7))
    assert not any(map(headers.has_valid_checksum, flipped(event)))


def test_what_is_too_short_for_a_checksum_has_none():
    assert not any(headers.has_valid_checksum(STOP[:size]) for size in range(20))


def test_a_body_is_that_of_one_type_and_of_the_whole_event():
    assert headers.decode_body(STOP, 3) == (HEADER, b"")
    with pytest.raises(EventError, match="event type 3, expected 16"):
        headers.decode_body(STOP, 16)
    with pytest.raises(EventError, match="event of 20 bytes says it has 19"):
        headers.decode_body(STOP + b"x", 3)


def test_a_server_of_the_engine_binlog_announces_one_type_more():
    classic, engine = post_header_sizes(TYPE_COUNT_CLASSIC), post_header_sizes(TYPE_COUNT_ENGINE)

    itself = EventType.FORMAT_DESCRIPTION - 1  # its own size counts the types
    assert engine[itself] == classic[itself] + 1
    assert engine[:itself] + engine[itself + 1 : -1] == classic[:itself] + classic[itself + 1 :]
    assert engine[-1] == 9


def test_each_type_has_a_name_also_one_that_is_not_known():
    assert type_name(EventType.GTID_LIST) == "GTID_LIST"
    assert type_name(250) == "type 250"


SIZES = (0, 1, 40, 300, 19)
EVENTS = [headers.encode_event(event_type=160, body=bytes([n]) * size, server_id=n) for n, size in enumerate(SIZES)]
STREAM = b"".join(EVENTS)


def joined(pieces):
    splitter = EventSplitter()
    events = []
    for piece in pieces:
        for part in splitter.feed(piece):
            if part.header is not None:
                assert len(part.data) >= 19
                events.append(b"")
            events[-1] += part.data
            if part.is_last:
                assert splitter.is_between_events or part.data
    splitter.finish()
    return events


def test_pieces_of_one_byte_change_nothing():
    assert joined([STREAM[n : n + 1] for n in range(len(STREAM))]) == EVENTS


@pytest.mark.parametrize("seed", range(20))
def test_random_pieces_change_nothing(seed):
    cuts = sorted(random.Random(seed).sample(range(len(STREAM)), 9))
    assert joined([STREAM[start:end] for start, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True)]) == EVENTS


def test_a_stream_that_ends_inside_an_event_is_refused():
    with pytest.raises(EventError, match="inside an event, 1 bytes early"):
        joined([STREAM[:-1]])
    with pytest.raises(EventError, match="inside an event header, after 7 bytes"):
        joined([STREAM + STREAM[:7]])


def test_a_size_smaller_than_the_header_is_refused():
    with pytest.raises(EventError, match="event size 18 does not even hold the event header"):
        joined([STREAM[:9] + (18).to_bytes(4, "little") + STREAM[13:]])


def test_the_heads_of_events_are_all_that_is_held():
    heads = event_heads(EVENTS[0], iter([STREAM[19:60], STREAM[60:]]), size_max=30)
    assert list(heads) == [event[:30] for event in EVENTS]


def ends(flags: int, event: bytes) -> bool:
    return GroupBoundary(flags).ends_with(headers.decode_event_header(event), event)


@pytest.mark.parametrize(
    ("event", "is_end"),
    [
        (event_of(EventType.XID, bytes(8)), True),
        (event_of(EventType.XA_PREPARE), True),
        (query(b"COMMIT"), True),
        (query(b"ROLLBACK", status=b"\1" * 300), True),
        (query(b"commit"), False),  # servers log it in capitals
        (query(b"ROLLBACK TO `s`"), False),
        (query(b"COMMIT" + b" " * 70_000), False),
        (query(b"INSERT INTO t VALUES (1)"), False),
        (event_of(EventType.QUERY, b"COMMIT"), False),  # too short for a QUERY
        (event_of(EventType.QUERY), False),
        (event_of(EventType.TABLE_MAP), False),
        (event_of(200), False),
    ],
)
def test_a_transaction_ends_with_its_commit_or_rollback(event, is_end):
    assert ends(GtidFlag.TRANSACTIONAL, event) is is_end


@pytest.mark.parametrize(
    ("event", "is_end"),
    [
        (query(b"CREATE TABLE t (a INT)"), True),
        (event_of(EventType.WRITE_ROWS_V1), True),
        (event_of(EventType.EXECUTE_LOAD_QUERY), True),
        *((event_of(kind), False) for kind in (EventType.INTVAR, EventType.RAND, EventType.USER_VAR)),
        *((event_of(kind), False) for kind in (EventType.TABLE_MAP, EventType.ANNOTATE_ROWS, EventType.APPEND_BLOCK)),
    ],
)
def test_a_group_that_stands_alone_ends_with_what_it_is_about(event, is_end):
    assert ends(GtidFlag.STANDALONE | GtidFlag.DDL, event) is is_end


def test_a_commit_is_seen_in_a_part_of_any_buffer():
    event = memoryview(bytearray(query(b"COMMIT")))
    assert ends(0, event)
    assert not any(ends(0, event[:size]) for size in range(19, len(event)))
