"""One file of a traditional binlog, cut into event groups as an engine binlog stores them.

What is changed in an event: its checksum is taken off (and its length field reduced by as
much), and its `log_pos` becomes 0. What is left out: the events that describe the file and
not a group (FORMAT_DESCRIPTION, GTID_LIST, BINLOG_CHECKPOINT, ROTATE, STOP).

Invariants:
- An event is delivered only after its checksum, where the file has them, was verified; of
  an event larger than `LARGE_EVENT_SIZE` the pieces come first and the verdict last.
- A group of a file that a crashed server left is delivered only if it is complete.
- Memory does not depend on the size of an event or a group.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import chain

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import ClassicFormatError, EventError
from ibbmaster.event.format_description import decode_format_description
from ibbmaster.event.group import EventGroup
from ibbmaster.event.gtid_event import decode_gtid_event
from ibbmaster.event.gtid_list import decode_gtid_list
from ibbmaster.event.types import EventType
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.store.classic_series import MAGIC, XZ_MAGIC, ClassicFile, ClassicSource

BLOCK_SIZE = 1 << 20  # bytes read at once
HEAD_BLOCK_SIZE = 1 << 14  # ... when only the head of a file is wanted
GROUP_BUFFER_SIZE = 1 << 18  # bytes: a group up to this size is delivered in one piece
LARGE_EVENT_SIZE = 1 << 19  # bytes: an event above this size is never held as a whole
EVENT_SIZE_MAX = (1 << 30) + (1 << 16)  # bytes: max_allowed_packet ends at 1 GiB

_HEADER = struct.Struct("<IBIIIH")  # timestamp, type, server id, size, log_pos, flags
_HEADER_SIZE = _HEADER.size
_SIZE_AND_LOG_POS = struct.Struct("<II")
_SIZE_OFFSET = 9
_FLAGS_OFFSET = 17
_GTID_BODY = struct.Struct("<QIB")  # seq_no, domain id, flags2
_IN_USE = 0x01  # flag of a FORMAT_DESCRIPTION: the server has not closed the file
_IS_STANDALONE = 0x01  # flags2 of a GTID event
_CHECKSUM_SIZE = 4
_CHECKSUM_RESIDUE = 0x2144DF1C  # CRC-32 of any bytes and their own CRC-32 behind them

# What an event does to the group it stands in; indexed by event type.
_GOES_ON, _ENDS, _MAY_END, _ENDS_STANDALONE, _NOT_INSIDE, _UNKNOWN = range(6)
_ROWS_EVENTS = (
    *(EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V1, EventType.DELETE_ROWS_V1),
    *(EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS),
    *(EventType.WRITE_ROWS_COMPRESSED_V1, EventType.UPDATE_ROWS_COMPRESSED_V1, EventType.DELETE_ROWS_COMPRESSED_V1),
    *(EventType.WRITE_ROWS_COMPRESSED, EventType.UPDATE_ROWS_COMPRESSED, EventType.DELETE_ROWS_COMPRESSED),
)


class _Truncated(Exception):  # noqa: N818  # never leaves this module
    """The file ends inside an event or a group."""


class ClassicFileReader:
    """The event groups of one file, in order; reading begins with its head.

    Raises:
        ClassicFormatError: the file does not begin as a traditional binlog of MariaDB, or
            it is encrypted.

    Attributes:
        start_state: what its GTID_LIST says was logged before this file; None if the file
            ends before its GTID_LIST.
        start_state_offset: where that event stands.
        is_in_use: whether the server has not closed the file: it runs or it crashed.
        is_restart: whether a start of the server began this file.
        notices: what a user should know about this file, one sentence each.
    """
