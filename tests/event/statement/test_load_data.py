"""A statement that loads a file, and where its text names that file."""

import dataclasses

import pytest
from lanes.replay import CLASSIC, raw_events

from ibbmaster.errors import EventError
from ibbmaster.event.header import decode_event_header
from ibbmaster.event.query import FIXED
from ibbmaster.event.statement.load_data import FILE, decode_load_data, encode_load_data
from ibbmaster.event.types import EventType

LOGGED = [
    event
    for version in ("10.11", "11.8")
    for event in raw_events(CLASSIC / version / "statement")
    if event[4] == EventType.EXECUTE_LOAD_QUERY
]


@pytest.mark.parametrize("event", LOGGED)
def test_a_logged_one_is_written_as_it_was_read(event):
    load, header = decode_load_data(event), decode_event_header(event)
    named = load.query.text[load.start : load.end]
    assert named.split()[0] in (b"LOCAL", b"INFILE")
    assert named.endswith(b"INTO")
    assert load.query.text[load.end :].startswith(b" TABLE")
    assert event == encode_load_data(
        load, server_id=header.server_id, timestamp=header.timestamp, log_pos=header.log_pos, flags=header.flags
    )


@pytest.mark.parametrize("event", LOGGED[:1])
def test_none_that_is_cut_or_names_its_file_elsewhere_is_read(event):
    for size in range(19, 19 + FIXED.size + FILE.size):
        with pytest.raises(EventError):
            decode_load_data(event[:size])
    load = decode_load_data(event)
    size = len(load.query.text)
    for start, end in ((load.end + 1, load.end), (0, size + 1), (size + 1, size + 2)):
        with pytest.raises(EventError, match=f"names its file in bytes {start} to {end}"):
            decode_load_data(encode_load_data(dataclasses.replace(load, start=start, end=end), server_id=1))
