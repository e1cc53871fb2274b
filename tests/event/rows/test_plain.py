"""Row events as they were before a server packed or cut them."""

from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.errors import EventError
from ibbmaster.event.rows.large import LargeRows
from ibbmaster.event.rows.partial import encode_fragments
from ibbmaster.event.rows.plain import NOT_PLAIN, PlainRows
from ibbmaster.event.table_map import ROW_EVENT_TYPES

CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic" / "11.8"


def row_events(name):
    with ibbmaster.open(CLASSIC / name) as log:
        events = [event.data for group in log for event in group.events()]
    return [event for event in events if event[4] in ROW_EVENT_TYPES]


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
