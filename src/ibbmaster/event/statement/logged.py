"""The statement in an event, with what its session had set that gives it its meaning."""

from __future__ import annotations

import struct
from typing import NamedTuple

from ibbmaster.codec.buffer import Buffer
from ibbmaster.event.header import decode_event_header
from ibbmaster.event.query import (
    STATUS_ALTER_FLAGS,
    STATUS_COLLATIONS,
    STATUS_TIME_ZONE,
    decode_query,
    status_variables,
)
from ibbmaster.event.rows.charset import CODECS, charset_of
from ibbmaster.event.statement.load_data import decode_load_data
from ibbmaster.event.types import EventType

STATUS_FLAGS = 0  # 4 bytes: options of the session
STATUS_SQL_MODE = 1  # 8 bytes
STATUS_MICROSECONDS = 128  # 3 bytes: of when the statement began, if that matters to it
STATUS_CHARSET = 4  # collation of the client, of the connection, of the server: 2 bytes each
START_ALTER, ROLLBACK_ALTER = 0x02, 0x08  # of the flags of a two-phase ALTER: nothing has changed
STATEMENT_TYPES = (EventType.QUERY, EventType.QUERY_COMPRESSED, EventType.EXECUTE_LOAD_QUERY)
BAD_TABLE, WRONG_OBJECT, IS_VIEW, UNKNOWN_VIEW = 1051, 1347, 1965, 4092
DROPS_THE_REST = frozenset((BAD_TABLE, WRONG_OBJECT, IS_VIEW, UNKNOWN_VIEW))
"""Errors of a DROP of which some tables or views were missing, or something else: the others are gone."""


class LoggedStatement(NamedTuple):
    """A statement that has taken effect; `has_effect` is false for one that has only begun, or was rolled back.

    Attributes:
        server_collation: the number of `collation_server`, which a new database gets; None if it is not told.
        collations: pairs of numbers: a character set's own default collation, and the one that stands for it here.
        flags: options of the session, as FLAGS2 has them; None if they are not told.
        microseconds: beyond the second in which it began.
        error_code: what the statement failed with on the server that logged it, after it had changed something; 0 if
            it did not fail.
        server_version: of the server that wrote it, as 110806; no statement says it itself.
        client_collation, connection_collation: numbers; None if they are not told.
        time_zone: the session's, where the statement depends on it.
    """

    text: str
    database: str
    thread_id: int
    sql_mode: int
    has_effect: bool
    server_collation: int | None = None
    collations: tuple[tuple[int, int], ...] = ()
    flags: int | None = None
    microseconds: int = 0
    error_code: int = 0
    server_version: int | None = None
    client_collation: int | None = None
    connection_collation: int | None = None
    time_zone: str = ""


def decode_statement(event: Buffer) -> LoggedStatement:
    """Read the statement of a whole QUERY, QUERY_COMPRESSED or EXECUTE_LOAD_QUERY event without checksum.

    Raises EventError: another type, or a part runs over the end.

    Source: MariaDB 12.3, log_event.cc, Query_log_event and Execute_load_query_log_event.
    """
    header = decode_event_header(event)
    is_load = header.event_type == EventType.EXECUTE_LOAD_QUERY
    query = decode_load_data(bytes(event)).query if is_load else decode_query(event)
    variables = dict(status_variables(query.status))
    flags = variables.get(STATUS_ALTER_FLAGS, b"\0")[0]
    charsets = variables.get(STATUS_CHARSET)
    client, connection, server = struct.unpack_from("<HHH", charsets) if charsets else (None, None, None)
    return LoggedStatement(
        text=_decoded(query.text, charsets),
        database=query.database.decode("utf-8", "replace"),
        thread_id=query.thread_id,
        sql_mode=int.from_bytes(variables.get(STATUS_SQL_MODE, b""), "little"),
        has_effect=not flags & (START_ALTER | ROLLBACK_ALTER),
        server_collation=server,
        collations=tuple(struct.iter_unpack("<HH", variables.get(STATUS_COLLATIONS, b"\0")[1:])),
        flags=int.from_bytes(variables[STATUS_FLAGS], "little") if STATUS_FLAGS in variables else None,
        microseconds=int.from_bytes(variables.get(STATUS_MICROSECONDS, b""), "little"),
        error_code=query.error_code,
        client_collation=client,
        connection_collation=connection,
        time_zone=variables.get(STATUS_TIME_ZONE, b"")[1:].decode("utf-8", "replace"),
    )


def text_codec(charsets: bytes | None) -> str:
    """Python's name of the character set in which a client has sent its text, by status variable `STATUS_CHARSET`."""
    name = charset_of(struct.unpack_from("<H", charsets)[0]) if charsets else None
    return CODECS.get(name or "utf8mb4") or "utf_8"


def _decoded(text: bytes, charsets: bytes | None) -> str:
    """The text in the character set of the client that has sent it."""
    return text.decode(text_codec(charsets), "replace")


def failed(verb: str, error_code: int) -> str:
    """How a reason calls a statement of which nobody knows what it has done."""
    return f"{verb} that failed with error {error_code} on the server"
