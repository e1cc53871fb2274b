import random

import pytest

from ibbmaster.errors import EventError
from ibbmaster.replication.event.header import encode_event
from ibbmaster.replication.event.split import EventSplitter, event_heads

SIZES = (0, 1, 40, 300, 19)
EVENTS = [encode_event(event_type=160, body=bytes([n]) * size, server_id=n) for n, size in enumerate(SIZES)]
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
