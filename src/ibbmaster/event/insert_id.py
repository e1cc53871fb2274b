"""INTVAR: a number that the statement after it has got. Layout: protocol/event/others.md."""

from __future__ import annotations

import struct

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import EventError
from ibbmaster.event.header import EVENT_HEADER_SIZE

BODY = struct.Struct("<BQ")  # which number, and the number
INSERT_ID = 2


def decode_insert_id(event: Buffer) -> int | None:
    """The first number that AUTO_INCREMENT gives the statement after an INTVAR event; None: it is of another kind.

    Raises:
        EventError: the event is too short.

    Source: MariaDB 12.3, log_event.cc, Intvar_log_event::Intvar_log_event(const uchar *, …).
    """
    if len(event) < EVENT_HEADER_SIZE + BODY.size:
        raise EventError(f"INTVAR of {len(event)} bytes, expected {EVENT_HEADER_SIZE + BODY.size}")
    kind, number = BODY.unpack_from(event, EVENT_HEADER_SIZE)
    return number if kind == INSERT_ID else None
