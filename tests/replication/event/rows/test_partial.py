import io
import random
import re
import struct

import pytest
from lanes.replay import CLASSIC, raw_events

from ibbmaster.errors import EventError
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, encode_event
from ibbmaster.replication.event.rows.large import LargeRows
from ibbmaster.replication.event.rows.partial import NOT_PLAIN, FragmentChecks, PartialRows, PlainRows, encode_fragments
from ibbmaster.replication.event.split import EventSplitter
from ibbmaster.replication.event.table_map import ROW_EVENT_TYPES
from ibbmaster.replication.event.types import EventType

HEAD = encode_event(event_type=EventType.WRITE_ROWS_V1, body=bytes(1024), server_id=1)[:EVENT_HEADER_SIZE]
WHOLE = HEAD + bytes(range(256)) * 4


class Kept(io.BytesIO):
    whole = io.BytesIO.getvalue


def fragment(count: int, number: int, data: bytes, *, size: int | None = None) -> bytes:
    """By protocol/event/rows.md: count, number, flags, and on the first the size of the whole."""
    body = struct.pack("<IIB", count, number, size is not None)
    body += struct.pack("<Q", size) if size is not None else b""
    return encode_event(event_type=EventType.PARTIAL_ROW_DATA, body=body + data, server_id=1)


def found_by_checks(events: list[bytes], piece_size: int = 7) -> str:
    checks, splitter = FragmentChecks(), EventSplitter()
    data = b"".join(events)
    try:
        for start in range(0, len(data), piece_size):
            for part in splitter.feed(data[start : start + piece_size]):
                checks.take(part)
        checks.finish()
    except EventError as error:
        return str(error)
    return ""


QUERY = encode_event(event_type=EventType.QUERY, body=b"a", server_id=1)


def cut(whole: bytes, cuts: list[int]) -> list[bytes]:
    ends = [*cuts, len(whole)]
    parts = [whole[start:end] for start, end in zip([0, *cuts], ends, strict=True)]
    return [
        fragment(len(parts), number, part, size=len(whole) if number == 1 else None)
        for number, part in enumerate(parts, 1)
    ]


@pytest.mark.parametrize("kept_max", [0, 100, 1 << 20])
def test_fragments_cut_anywhere_give_the_row_event_and_then_the_next(kept_max):
    rows = PartialRows(LargeRows(Kept, kept_max=kept_max))
    for _ in range(50):
        *parts, last = cut(WHOLE, sorted(random.sample(range(len(WHOLE)), random.randrange(5))))
        for part in parts:
            assert rows.take(part) is None
            assert rows.is_open
        assert rows.take(last) == WHOLE
        assert not rows.is_open


def test_a_cut_event_is_refused():
    first = cut(WHOLE, [5])[0]
    for size in range(19 + 17):
        with pytest.raises(EventError):
            PartialRows(LargeRows(Kept)).take(
                encode_event(event_type=EventType.PARTIAL_ROW_DATA, body=first[19:size], server_id=1)
            )


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([fragment(2, 2, b"a", size=9)], "row event fragment 2 of 2, expected 1"),
        ([fragment(3, 1, b"a", size=9), fragment(3, 3, b"a")], "row event fragment 3 of 3, expected 2"),
        ([fragment(0, 1, b"a", size=9)], "row event fragment 1 of 0"),
        ([fragment(1, 1, b"a", size=9)], "fragments of 1 bytes, expected 9"),
        ([fragment(2, 1, b"a")], "row event fragments of more than 0 bytes"),
        ([fragment(2, 1, b"abc", size=4), fragment(2, 2, b"de")], "row event fragments of more than 4 bytes"),
        ([fragment(2, 1, b"a", size=2**32)], "row event fragments of more than 4294967295 bytes"),
        ([fragment(2, 1, b"a", size=9), fragment(2, 1, b"a", size=9)], "row event fragment 1 of 2, expected 2"),
        ([fragment(3, 1, b"a", size=9), fragment(2, 2, b"a")], "fragment 2 of 2, the ones before were of 3"),
        ([fragment(2, 1, b"a", size=9), fragment(2, 2, b"a", size=2)], "with the size of the whole, which is on the"),
        ([fragment(1, 1, QUERY, size=len(QUERY))], "fragments of an event of type 2, expected a row event"),
        ([fragment(1, 1, b"short", size=5)], "event header of 5 bytes, expected 19"),
        ([fragment(1, 1, WHOLE[:-1], size=len(WHOLE) - 1)], "fragments of 1042 bytes, and an event that says .* 1043"),
    ],
)
def test_fragments_that_make_no_row_event_are_refused(parts, problem):
    rows = PartialRows(LargeRows(Kept))
    *good, bad = parts
    for part in good:
        rows.take(part)
    with pytest.raises(EventError, match=problem):
        rows.take(bad)
    assert re.search(problem, found_by_checks(parts))


def test_nothing_comes_between_fragments():
    first, second = cut(WHOLE, [500])
    rows = PartialRows(LargeRows(Kept))
    assert rows.whole_event(QUERY) == QUERY
    assert rows.whole_event(first) is None
    with pytest.raises(EventError, match="fragment 2 of 2 is missing"):
        rows.whole_event(QUERY)
    with pytest.raises(EventError, match="ends inside the fragments of a row event: fragment 2 of 2 is missing"):
        rows.finish()
    assert rows.whole_event(second) == WHOLE
    rows.finish()


@pytest.mark.parametrize("fragment_bytes", [1, 19, 500, len(WHOLE) - 1, len(WHOLE)])
def test_what_is_cut_is_put_together_again(fragment_bytes):
    parts = list(encode_fragments(WHOLE, fragment_bytes))
    assert len(parts) == -(-len(WHOLE) // fragment_bytes)
    rows = PartialRows(LargeRows(Kept))
    *first, last = [rows.whole_event(part) for part in parts]
    assert first == [None] * len(first)
    assert last == WHOLE
    if len(parts) > 1:
        assert parts == cut(WHOLE, list(range(fragment_bytes, len(WHOLE), fragment_bytes)))


def found_by_reading(events: list[bytes]) -> str:
    rows = PartialRows(LargeRows(Kept))
    try:
        for event in events:
            rows.whole_event(event)
        rows.finish()
    except EventError as error:
        return str(error)
    return ""


def test_checks_find_what_a_reader_stops_at_whatever_happened_to_the_fragments():
    rng = random.Random(random.randrange(2**32))
    problems = set()
    for _ in range(300):
        events = [QUERY, *encode_fragments(WHOLE, rng.choice((19, 200, 600))), QUERY, *encode_fragments(WHOLE, 300)]
        for _ in range(rng.randrange(3)):
            at, other = rng.randrange(len(events)), rng.randrange(len(events))
            match rng.randrange(4):
                case 0:
                    del events[at]
                case 1:
                    events.insert(other, events[at])
                case 2:
                    events[at], events[other % len(events)] = events[other % len(events)], events[at]
                case 3 if len(events[at]) > 37:  # in the head of a fragment, behind the header of the event
                    place = rng.randrange(19, 37)
                    events[at] = events[at][:place] + bytes([rng.randrange(256)]) + events[at][place + 1 :]
        problem = found_by_reading(events)
        assert found_by_checks(events, rng.randrange(1, 400)) == problem
        problems.add(re.sub(r"\d+", "N", problem))
    assert len(problems) > 4


def test_a_row_event_that_is_larger_than_it_may_be_is_refused_at_its_first_fragment():
    first, *_ = encode_fragments(WHOLE, 100)
    assert PartialRows(LargeRows(Kept, size_max=len(WHOLE))).take(first) is None
    with pytest.raises(EventError, match="a row event of 1043 bytes, put together or unpacked, and at most 1042 are"):
        PartialRows(LargeRows(Kept, size_max=len(WHOLE) - 1)).take(first)


def row_events(name):
    return [event for event in raw_events(CLASSIC / "11.8" / name) if event[4] in ROW_EVENT_TYPES]


def test_compressed_events_become_those_of_a_server_that_does_not_compress():
    packed = row_events("types-noblob-compressed")
    assert sum(event[4] in NOT_PLAIN for event in packed) > 50
    for event in packed:
        plain = PlainRows().whole_event(event)
        assert plain[4] not in NOT_PLAIN
        assert int.from_bytes(plain[9:13], "little") == len(plain)
        assert (plain is event) == (event[4] not in NOT_PLAIN)


def test_fragments_become_the_event_and_a_lost_one_is_an_error():
    event = max(row_events("types-full-crc32"), key=len)
    first, *others = encode_fragments(event, len(event) // 3)
    plain = PlainRows()
    assert plain.whole_event(first) is None
    assert plain.is_open
    with pytest.raises(EventError):
        plain.finish()
    plain = PlainRows()
    *begun, whole = (plain.whole_event(part) for part in (first, *others))
    assert (set(begun), whole, plain.is_open) == ({None}, event, False)


def test_rows_that_unpack_to_more_than_they_may_are_refused():
    event = next(event for event in row_events("types-noblob-compressed") if event[4] in NOT_PLAIN)
    with pytest.raises(EventError):
        PlainRows(LargeRows(size_max=30)).whole_event(event)
