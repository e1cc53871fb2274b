"""STOP: the server was shut down in order. It has no body."""

from __future__ import annotations

from ibbmaster.event.header import encode_event
from ibbmaster.event.types import EventType


def encode_stop(*, server_id: int, timestamp: int = 0, log_pos: int = 0, flags: int = 0) -> bytes:
    """The whole event."""
    return encode_event(
        event_type=EventType.STOP, body=b"", server_id=server_id, timestamp=timestamp, log_pos=log_pos, flags=flags
    )
