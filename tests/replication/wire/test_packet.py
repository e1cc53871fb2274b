import random
from collections.abc import Callable
from typing import Any

import pytest

from ibbmaster.errors import LocalProtocolError, PacketOrderError, PacketTooLargeError, RemoteProtocolError
from ibbmaster.replication.wire.packet import (
    PACKET_PAYLOAD_MAX,
    PacketReader,
    PacketStream,
    frame_packets,
    frame_payloads,
)

OK = bytes.fromhex("00 00 00 02 00 00 00")
FRAMED_OK = bytes.fromhex("07 00 00 01 00 00 00 02 00 00 00")  # dump-protocol, transcript of a registration
MAX_HEADER = b"\xff\xff\xff"


def read_all(reader: PacketReader) -> list[bytes]:
    return list(iter(reader.next_payload, None))


FRAMED = {  # payload and its number: its packet, and the number after it
    "behind its length and number": (OK, 1, FRAMED_OK, 2),
    "alone although it is empty": (b"", 3, b"\x00\x00\x00\x03", 4),
    "before 0 if its number is 255": (b"a", 255, b"\x01\x00\x00\xffa", 0),
    "whole if it is below the maximum": (bytes((1 << 24) - 2), 0, b"\xfe\xff\xff\x00" + bytes((1 << 24) - 2), 1),
}


@pytest.mark.parametrize("how", FRAMED)
def test_a_payload_goes_out(how: str) -> None:
    payload, number, framed, after = FRAMED[how]
    assert frame_packets(payload, number) == (framed, after)


def test_several_payloads_are_numbered_in_a_row() -> None:
    assert frame_payloads([b"a", b"bc"], 255) == (b"\x01\x00\x00\xffa\x02\x00\x00\x00bc", 1)


@pytest.mark.parametrize("count", [1, 2])
def test_a_payload_of_whole_packets_is_closed_by_an_empty_one(count: int) -> None:
    frame, sequence = frame_packets(bytes(count * PACKET_PAYLOAD_MAX), 7)
    assert frame[:4] == MAX_HEADER + b"\x07"
    assert frame[-4:] == bytes([0, 0, 0, 7 + count])
    assert len(frame) == count * (4 + PACKET_PAYLOAD_MAX) + 4
    assert sequence == 8 + count


def test_an_event_of_17_million_bytes_is_split_as_a_real_primary_splits_it() -> None:
    stream = PacketStream(sequence=25)
    frame = stream.frame_events([bytes(17_000_042)])
    assert frame[:5] == MAX_HEADER + b"\x19\x00"
    second = 4 + PACKET_PAYLOAD_MAX
    assert frame[second : second + 4] == (222_828).to_bytes(3, "little") + b"\x1a"
    assert len(frame) == second + 4 + 222_828
    assert stream.sequence == 27


def test_recorded_large_events_have_the_packets_we_would_send(find_packet: Callable[..., Any]) -> None:
    first = find_packet("big_event.11.8-to-11.8", "event WRITE_ROWS_V1 ts=1795210029 server_id=1 size=17825834")
    stream = PacketStream(sequence=(first.sequence - 1) & 0xFF)
    stream.begin(17825834 + 1)
    assert first.size == 17825834 + 1 - PACKET_PAYLOAD_MAX
    assert [bytes(part) for part in stream.add(bytes(17825835)) if len(part) == 4] == [
        MAX_HEADER + bytes([first.sequence - 1]),
        first.size.to_bytes(3, "little") + bytes([first.sequence]),
    ]


@pytest.mark.parametrize(
    "sizes",
    [
        *((1,), (1, PACKET_PAYLOAD_MAX - 2), (1, PACKET_PAYLOAD_MAX - 1), (PACKET_PAYLOAD_MAX, 1)),
        *((PACKET_PAYLOAD_MAX - 5, 0, 10), (2 * PACKET_PAYLOAD_MAX,), (1, 2 * PACKET_PAYLOAD_MAX, 7)),
    ],
    ids=str,
)
def test_pieces_give_the_packets_of_the_whole_payload(sizes: tuple[int, ...]) -> None:
    pieces = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    whole = b"".join(pieces)
    stream = PacketStream(sequence=254)
    stream.begin(len(whole))
    framed = b"".join(bytes(part) for piece in pieces for part in stream.add(piece))
    assert (framed, stream.sequence) == frame_packets(whole, 254)


def test_neither_a_payload_inside_another_nor_a_piece_longer_than_its_rest_is_taken() -> None:
    stream = PacketStream()
    stream.begin(2)
    assert b"".join(stream.add(b"a")) == b"\x02\x00\x00\x01a"
    with pytest.raises(LocalProtocolError):
        stream.begin(1)
    with pytest.raises(LocalProtocolError):
        list(stream.add(b"bc"))


@pytest.mark.parametrize("prefix", [b"\x00", b"\x00\xef\x00"], ids=["plain", "semi-sync"])
@pytest.mark.parametrize("sequence", [0, 1, 200, 255])
def test_many_events_at_once_are_framed_as_one_by_one(prefix: bytes, sequence: int, rng: random.Random) -> None:
    events = [rng.randbytes(rng.choice([19, 40, 255, 256, 70_000])) for _ in range(300)]
    at_once, one_by_one = PacketStream(sequence), PacketStream(sequence)
    framed = at_once.frame_events([memoryview(event) for event in events], prefix)
    assert framed == b"".join(one_by_one.frame(prefix + event) for event in events)
    assert at_once.frame_events([], prefix) == b""
    assert at_once.sequence == one_by_one.sequence


def test_a_reader_gives_payloads_up_to_its_limit_and_counts_their_numbers() -> None:
    reader = PacketReader(limit=len(OK), next_sequence=1)
    reader.receive_data(FRAMED_OK + b"\x00\x00\x00\x02")
    assert read_all(reader) == [OK, b""]
    assert reader.next_sequence == 3
    assert not reader.unread_size


def test_what_a_reader_holds_begins_with_a_packet_once_all_of_it_is_there() -> None:
    reader = PacketReader(limit=100)
    seen = []
    for byte in b"\x01\0\0\0\x01":
        reader.receive_data(bytes([byte]))
        seen.append(reader.begins_with(b"\x01\0\0\0\x01"))
    assert seen == [False, False, False, False, True]
    assert reader.next_payload() == b"\x01"
    assert not reader.begins_with(b"\x01\0\0\0\x01")


def test_a_cut_packet_is_no_packet_yet() -> None:
    for size in range(len(FRAMED_OK)):
        reader = PacketReader(limit=100, next_sequence=1)
        reader.receive_data(FRAMED_OK[:size])
        assert reader.next_payload() is None
        assert reader.unread_size == size


@pytest.mark.parametrize("size", [PACKET_PAYLOAD_MAX - 1, PACKET_PAYLOAD_MAX, PACKET_PAYLOAD_MAX + 5])
def test_a_reader_joins_what_the_framing_split(size: int) -> None:
    payload = b"x" * size
    frame, sequence = frame_packets(payload, 0)
    reader = PacketReader(limit=size)
    payloads = []
    for offset in range(0, len(frame), 1 << 20):
        reader.receive_data(frame[offset : offset + (1 << 20)])
        payloads += read_all(reader)
    assert (payloads, reader.next_sequence) == ([payload], sequence)
    assert reader.is_between_payloads


@pytest.mark.parametrize(
    ("limit", "data", "error"),
    [
        (65536, MAX_HEADER + b"\x01", "16777215"),
        (PACKET_PAYLOAD_MAX + 10, MAX_HEADER + b"\x01" + bytes(PACKET_PAYLOAD_MAX) + b"\x0b\x00\x00\x02", "16777226"),
        (6, FRAMED_OK[:4], "7 bytes"),
        (100, b"\x07\x00\x00\x02", "number 2, expected 1"),
    ],
    ids=["too large", "too large by what came before", "too large by a byte", "out of order"],
)
def test_a_packet_is_refused_by_its_header_alone(limit: int, data: bytes, error: str) -> None:
    reader = PacketReader(limit=limit, next_sequence=1)
    reader.receive_data(data)
    with pytest.raises(PacketOrderError if "expected" in error else PacketTooLargeError, match=error):
        reader.next_payload()


def test_a_damaged_packet_is_a_payload_or_an_error_and_nothing_else(damaged: Callable[..., Any]) -> None:
    for data in damaged(FRAMED_OK):
        reader = PacketReader(limit=100, next_sequence=1)
        reader.receive_data(data)
        try:
            payloads = read_all(reader)
        except RemoteProtocolError:
            continue
        assert sum(4 + len(payload) for payload in payloads) + reader.unread_size == len(data)


def test_random_bytes_never_make_a_reader_keep_more_than_it_may(rng: random.Random) -> None:
    for _ in range(2000):
        reader = PacketReader(limit=500)
        try:
            for _ in range(20):
                reader.receive_data(rng.randbytes(rng.randrange(60)))
                read_all(reader)
                assert reader.unread_size <= 500 + 4
        except RemoteProtocolError:
            pass


def test_an_owner_may_cut_payloads_itself_and_says_how_far_it_has_come():
    reader = PacketReader(limit=100, next_sequence=1)
    frames, after = frame_payloads([b"one", b"two", b"three"], 1)
    reader.receive_data(frames)
    reader.forget(len(frame_packets(b"one", 1)[0]), 2)
    assert reader.next_payload() == b"two"
    assert bytes(reader.unread) == frame_packets(b"three", 3)[0]
    reader.forget(len(reader.unread), after)
    assert reader.next_payload() is None
