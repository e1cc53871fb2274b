"""INTVAR as a server writes it; each truncation is an error."""

from __future__ import annotations

import pytest

from ibbmaster.errors import EventError
from ibbmaster.event.header import EVENT_HEADER_SIZE, encode_event
from ibbmaster.event.insert_id import decode_insert_id
from ibbmaster.event.types import EventType


def intvar(body: bytes) -> bytes:
    return encode_event(event_type=EventType.INTVAR, body=body, server_id=1)


def test_only_an_insert_id_is_a_number_of_auto_increment() -> None:
    assert decode_insert_id(intvar(b"\x02" + (7).to_bytes(8, "little"))) == 7
    assert decode_insert_id(intvar(b"\x01" + (7).to_bytes(8, "little"))) is None


def test_a_shorter_event_is_none() -> None:
    event = intvar(b"\x02" + bytes(8))
    for size in range(EVENT_HEADER_SIZE, len(event)):
        with pytest.raises(EventError):
            decode_insert_id(event[:size])
