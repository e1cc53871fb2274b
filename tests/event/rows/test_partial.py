"""Row events in fragments, put together again."""

from __future__ import annotations

import random
import struct

import pytest

from ibbmaster.errors import EventError
from ibbmaster.event.header import encode_event
from ibbmaster.event.rows.partial import PartialRows
from ibbmaster.event.types import EventType

WHOLE = bytes(range(256)) * 4


def fragment(count: int, number: int, data: bytes, *, size: int | None = None) -> bytes:
    """By protocol/event/rows.md: count, number, flags, and on the first the size of the whole."""
    body = struct.pack("<IIB", count, number, size is not None)
    body += struct.pack("<Q", size) if size is not None else b""
    return encode_event(event_type=EventType.PARTIAL_ROW_DATA, body=body + data, server_id=1)


def cut(whole: bytes, cuts: list[int]) -> list[bytes]:
    ends = [*cuts, len(whole)]
    parts = [whole[start:end] for start, end in zip([0, *cuts], ends, strict=True)]
    return [
        fragment(len(parts), number, part, size=len(whole) if number == 1 else None)
        for number, part in enumerate(parts, 1)
    ]


def test_fragments_cut_anywhere_give_the_row_event_and_then_the_next():
    rows = PartialRows()
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
            PartialRows().take(encode_event(event_type=EventType.PARTIAL_ROW_DATA, body=first[19:size], server_id=1))


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([fragment(2, 2, b"a", size=9)], "row event fragment 2 of 2, expected 1"),
        ([fragment(3, 1, b"a", size=9), fragment(3, 3, b"a")], "row event fragment 3 of 3, expected 2"),
        ([fragment(0, 1, b"a", size=9)], "row event fragment 1 of 0"),
        ([fragment(1, 1, b"a", size=9)], "fragments of 1 bytes, expected 9"),
        ([fragment(2, 1, b"a")], "row event fragments of more than 0 bytes"),
        ([fragment(2, 1, b"abc", size=4), fragment(2, 2, b"de")], "row event fragments of more than 4 bytes"),
        ([fragment(2, 1, b"a", size=2**30 + 1)], "row event fragments of more than 1073741824 bytes"),
    ],
)
def test_fragments_that_make_no_row_event_are_refused(parts, problem):
    rows = PartialRows()
    *good, bad = parts
    for part in good:
        rows.take(part)
    with pytest.raises(EventError, match=problem):
        rows.take(bad)
