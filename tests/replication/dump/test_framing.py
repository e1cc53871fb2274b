"""Packets do not depend on how a group is cut, and memory does not depend on how large it is."""

import itertools
import random
import tracemalloc
import zlib
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ibbmaster.errors import EventError
from ibbmaster.replication.dump.framing import BATCH_SIZE, EVENT_HELD_MAX, divide_events
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, HEADER
from ibbmaster.replication.event.types import EventType

PACKET_MAX = 0xFFFFFF
PIECE = bytes(range(256)) * 64  # 16 KiB


def random_events(rng: random.Random, make: SimpleNamespace) -> list[bytes]:
    sizes = (0, 1, 20, 500, 4000, 16_361, EVENT_HELD_MAX - 20, EVENT_HELD_MAX - 19, EVENT_HELD_MAX - 18, 150_000)
    kinds = (EventType.TABLE_MAP, EventType.WRITE_ROWS_V1, EventType.ANNOTATE_ROWS, EventType.QUERY)
    events = [
        make.event(rng.choice(kinds), rng.randbytes(rng.choice(sizes)), flags=rng.choice((0, 0x8000)))
        for _ in range(rng.randrange(12))
    ]
    return [*events, make.event(EventType.XID, bytes(8))]


def cut_anywhere(rng: random.Random, data: bytes) -> Iterator[bytes]:
    offset = 0
    while offset < len(data):
        size = rng.choice((0, 1, 5, 18, 19, 20, 100, 16_380, 70_000))
        yield data[offset : offset + size]
        offset += size


@pytest.mark.parametrize("seed", range(60))
def test_the_stream_is_the_same_however_a_group_is_cut(seed, make, converse) -> None:
    rng = random.Random(seed)
    for profile in ("engine", "classic-10.11", "classic-11.8"):
        for changes in (
            {},
            {"wants_annotate_rows": False},
            {"leaves_out_marked": True, "has_semi_sync": True},
            {"capability": rng.randrange(4), "wants_annotate_rows": False},
        ):
            events = random_events(rng, make)
            body = b"".join(events)
            streams = set()
            for pieces in ([body], events, cut_anywhere(rng, body), make.cut(body, rng.choice((1009, 16_380)))):
                dump = converse(make.request("", **changes), profile=profile)
                dump.send(make.group("0-1-1", pieces=pieces))
                streams.add(bytes(dump.stream))
            assert len(streams) == 1, f"seed {seed}"


@pytest.mark.parametrize("held", range(1, EVENT_HEADER_SIZE + 3))
def test_an_event_comes_whole_whose_header_a_batch_cuts(held, make, converse) -> None:
    """The batch ends with `held` bytes of the last event."""
    head_size = len(make.group("0-1-1").gtid_event)
    first = make.event(EventType.WRITE_ROWS_V1, bytes(BATCH_SIZE - head_size - held - len(make.event(0, b""))))
    last = make.event(EventType.XID, bytes(8))
    dump = converse(make.request(""))
    dump.events()
    dump.send(make.group("0-1-1", pieces=[first + last]))
    _, *found = dump.events()
    assert [(event[4], len(event)) for event in found] == [(event[4], len(event)) for event in (first, last)]


@pytest.mark.parametrize("changes", [{}, {"has_semi_sync": True}, {"wants_annotate_rows": False}])
def test_the_serving_path_and_the_careful_one_give_equal_bytes(make, converse, changes) -> None:
    fast, careful = (converse(make.request("", **changes)) for _ in range(2))
    careful.session._needs_no_care = False
    careful.session._rewriter.only_selects = False
    rng = random.Random(1)
    for number in range(1, 60):
        events = random_events(rng, make)
        for dump in (fast, careful):
            dump.send(make.group(f"0-1-{number}", *events))
    assert fast.stream == careful.stream


def test_many_small_events_are_joined_to_blocks(make, converse) -> None:
    body = make.event(EventType.WRITE_ROWS_V1, bytes(81)) * 5000
    dump = converse(make.request(""))
    pieces = [len(piece) for piece in dump.session.receive_group(make.group("0-1-1", pieces=make.cut(body, 16_380)))]
    assert all(BATCH_SIZE <= size < 2 * BATCH_SIZE for size in pieces[:-1])
    assert sum(pieces) == 5000 * 105 + 43


class Receiver:
    """Takes the packets of one group apart without keeping them: sizes of packets, CRC of each payload."""

    def __init__(self, sequence: int) -> None:
        self.sequence = self.first_sequence = sequence
        self.packet_sizes: list[int] = []
        self.payloads: list[tuple[int, int]] = []  # size, CRC-32
        self._head = b""
        self._left = 0
        self._size = self._crc = 0

    def take(self, pieces: Iterable[Any]) -> None:
        for piece in pieces:
            view = memoryview(piece)
            while len(view):
                if not self._left:
                    missing = 4 - len(self._head)
                    self._head += bytes(view[:missing])
                    view = view[missing:]
                    if len(self._head) == 4:
                        self._begin_packet()
                    continue
                data, view = view[: self._left], view[self._left :]
                self._left -= len(data)
                self._size += len(data)
                self._crc = zlib.crc32(data, self._crc)
                if not self._left and self.packet_sizes[-1] < PACKET_MAX:
                    self._end_payload()

    def _begin_packet(self) -> None:
        assert self._head[3] == self.sequence & 0xFF
        self.sequence += 1
        self._left = int.from_bytes(self._head[:3], "little")
        self._head = b""
        self.packet_sizes.append(self._left)
        if not self._left:
            self._end_payload()

    def _end_payload(self) -> None:
        self.payloads.append((self._size, self._crc))
        self._size = self._crc = 0

    @property
    def is_between_packets(self) -> bool:
        return not self._left and not self._head


def large_event(size: int) -> Iterator[bytes]:
    yield HEADER.pack(0, EventType.WRITE_ROWS_V1, 1, size, 0, 0)
    left = size - 19
    while left:
        yield PIECE[:left]
        left -= min(left, len(PIECE))


SIZES = (16_777_213, 16_777_214, 16_777_215, 16_777_216, 2 * PACKET_MAX - 1, 2 * PACKET_MAX, 17_000_000)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("profile", "changes", "extra"),
    [("engine", {}, 1), ("engine", {"has_semi_sync": True}, 3), ("classic-11.8", {}, 5)],
    ids=["engine", "semi-sync", "classic"],
)
@pytest.mark.usefixtures("alone")
def test_an_event_of_16_mb_and_more_is_split_and_never_held(make, converse, size, profile, changes, extra) -> None:
    dump = converse(make.request("", **changes), profile=profile)
    receiver = Receiver(len(dump.payloads()) + 1)
    body = itertools.chain(large_event(size), [make.event(EventType.XID, bytes(8))])
    pieces = dump.session.receive_group(make.group("0-1-1", pieces=body))
    tracemalloc.start()
    receiver.take(pieces)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 256 * 1024
    assert receiver.is_between_packets
    full, rest = divmod(size + extra, PACKET_MAX)
    assert receiver.packet_sizes[1:-1] == [PACKET_MAX] * full + [rest]
    assert [found for found, _ in receiver.payloads] == [38 + extra, size + extra, 27 + extra]
    if profile == "engine":
        crc = zlib.crc32(b"\0" if extra == 1 else b"\0\xef\0")
        for piece in large_event(size):
            crc = zlib.crc32(piece, crc)
        assert receiver.payloads[1][1] == crc


def test_the_checksum_of_a_large_event_covers_its_new_header(make, converse) -> None:
    dump = converse(make.request(""), profile="classic-10.11")
    dump.send(make.group("0-1-1", pieces=large_event(17_000_000)))
    payload = dump.payloads()[-1]
    assert int.from_bytes(payload[10:14], "little") == len(payload) - 1 == 17_000_004
    assert zlib.crc32(memoryview(payload)[1:-4]) == int.from_bytes(payload[-4:], "little")


@pytest.mark.usefixtures("alone")
def test_a_huge_group_of_small_events_is_never_held(make, converse) -> None:
    block = make.event(EventType.WRITE_ROWS_V1, bytes(981)) * 16
    for profile in ("engine", "classic-11.8"):
        dump = converse(make.request(""), profile=profile)
        receiver = Receiver(len(dump.payloads()) + 1)
        pieces = dump.session.receive_group(make.group("0-1-1", pieces=(block for _ in range(500))))
        peak = 0
        tracemalloc.start()
        for piece in pieces:
            peak = max(peak, tracemalloc.get_traced_memory()[1])
            receiver.take([piece])
            receiver.payloads.clear()
            receiver.packet_sizes[:-1] = []
            tracemalloc.reset_peak()
        tracemalloc.stop()
        assert peak < 384 * 1024
        assert receiver.sequence - receiver.first_sequence == 8001


def test_events_are_divided_where_their_sizes_say_and_an_end_inside_one_is_refused(make) -> None:
    events = [make.event(EventType.QUERY, bytes(size)) for size in (0, 5, 100)]
    data = b"".join(events)
    whole = {sum(map(len, events[:count])): events[:count] for count in range(4)}
    for end in range(len(data) + 1):
        if end in whole:
            assert divide_events(data[:end]) == whole[end]
        else:
            with pytest.raises(EventError, match="inside an event"):
                divide_events(data[:end])


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_bit_never_gives_more_than_a_dump_error(seed, make, converse) -> None:
    rng = random.Random(seed)
    body = bytearray(b"".join(random_events(rng, make)[-4:]))
    for _ in range(40):
        body[rng.randrange(min(len(body), 400))] ^= 1 << rng.randrange(8)
        profile = rng.choice(("engine", "classic-10.11", "classic-11.8"))
        dump = converse(make.request("", capability=rng.randrange(5), leaves_out_marked=True), profile=profile)
        dump.receive(dump.session.receive_group(make.group("0-1-1", pieces=make.cut(bytes(body), 16_380))))
        assert dump.session.is_finished == (dump.session.error is not None)
