"""Statements of events, with the session's settings they depend on, and LOAD DATA. Layout: protocol/event/others.md."""

import struct
from dataclasses import dataclass
from typing import NamedTuple, Unpack

from ibbmaster.errors import EventError
from ibbmaster.storage.codec.buffer import Buffer
from .. import query as queries
from ..header import EVENT_HEADER_SIZE, HeaderFields, decode_event_header, encode_event
from ..rows.charset import CODECS, charset_of
from ..types import EventType

FILE_NUMBER = struct.Struct("<I")  # with which the events of a file begin
FILE = struct.Struct("<IIIB")  # behind the fixed part of a QUERY: number, start and end, duplicates
STATUS_FLAGS = 0  # 4 bytes: options of the session
STATUS_SQL_MODE = 1  # 8 bytes
STATUS_MICROSECONDS = 128  # 3 bytes: of the begin of a statement that depends on them
STATUS_CHARSET = 4  # collation of the client, of the connection, of the server: 2 bytes each
START_ALTER, ROLLBACK_ALTER = 0x02, 0x08  # flags of a two-phase ALTER without effect
STATEMENT_TYPES = (EventType.QUERY, EventType.QUERY_COMPRESSED, EventType.EXECUTE_LOAD_QUERY)
BAD_TABLE, WRONG_OBJECT, IS_VIEW, UNKNOWN_VIEW = 1051, 1347, 1965, 4092
DROPS_THE_REST = frozenset((BAD_TABLE, WRONG_OBJECT, IS_VIEW, UNKNOWN_VIEW))
"""Errors of a DROP whose tables or views were missing, or of another kind: the others are gone."""


@dataclass(frozen=True, slots=True)
class LoadData:
    """`start` and `end`: the bytes of its text from LOCAL or INFILE up to INTO, which a replica replaces with a file of
    its own. `duplicates`: 1 skips new rows with a known key, 2 replaces the old ones."""

    query: queries.Query
    number: int
    start: int
    end: int
    duplicates: int


def decode_load_data(event: bytes) -> LoadData:
    """An EXECUTE_LOAD_QUERY event without checksum. Raises EventError: a part runs over the end, or the name of the
    file lies outside the text. Source: MariaDB 12.3, log_event.cc, Execute_load_query_log_event."""
    fixed_end = EVENT_HEADER_SIZE + queries.FIXED.size
    if len(event) < fixed_end + FILE.size:
        raise EventError(f"EXECUTE_LOAD_QUERY of {len(event)} bytes, expected at least {fixed_end + FILE.size}")
    body = event[EVENT_HEADER_SIZE:fixed_end] + event[fixed_end + FILE.size :]
    query = queries.decode_query(encode_event(event_type=EventType.QUERY, body=body, server_id=0))
    number, start, end, duplicates = FILE.unpack_from(event, fixed_end)
    if not start <= end <= len(query.text):
        raise EventError(f"LOAD DATA of {len(query.text)} bytes that names its file in bytes {start} to {end}")
    return LoadData(query, number, start, end, duplicates)


def encode_load_data(value: LoadData, **header: Unpack[HeaderFields]) -> bytes:
    body = queries.encode_query(value.query, server_id=0)[EVENT_HEADER_SIZE:]
    file = FILE.pack(value.number, value.start, value.end, value.duplicates)
    return encode_event(
        event_type=EventType.EXECUTE_LOAD_QUERY,
        body=body[: queries.FIXED.size] + file + body[queries.FIXED.size :],
        **header,
    )


class LoggedStatement(NamedTuple):
    """`has_effect` is false for a statement that has only begun, or was rolled back. None: not logged.

    Attributes:
        server_collation: the number of `collation_server`, of new databases.
        collations: pairs of numbers: a character set's own default collation, and its replacement here.
        flags: options of the session, as in FLAGS2.
        microseconds: beyond the second in which it began.
        error_code: of a statement that failed on the server after it had changed something; else 0.
        server_version: of the server that wrote it, as 110806; set by readers, as no statement has it.
        time_zone: of the session, if the statement depends on it.
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
    """Of a whole QUERY, QUERY_COMPRESSED or EXECUTE_LOAD_QUERY event without checksum. Raises EventError: another type,
    or a part runs over the end. Source: MariaDB 12.3, log_event.cc, Query_log_event."""
    header = decode_event_header(event)
    is_load = header.event_type == EventType.EXECUTE_LOAD_QUERY
    query = decode_load_data(bytes(event)).query if is_load else queries.decode_query(event)
    variables = dict(queries.status_variables(query.status))
    flags = variables.get(queries.STATUS_ALTER_FLAGS, b"\0")[0]
    charsets = variables.get(STATUS_CHARSET)
    client, connection, server = struct.unpack_from("<HHH", charsets) if charsets else (None, None, None)
    return LoggedStatement(
        text=query.text.decode(text_codec(charsets), "replace"),
        database=query.database.decode("utf-8", "replace"),
        thread_id=query.thread_id,
        sql_mode=int.from_bytes(variables.get(STATUS_SQL_MODE, b""), "little"),
        has_effect=not flags & (START_ALTER | ROLLBACK_ALTER),
        server_collation=server,
        collations=tuple(struct.iter_unpack("<HH", variables.get(queries.STATUS_COLLATIONS, b"\0")[1:])),
        flags=int.from_bytes(variables[STATUS_FLAGS], "little") if STATUS_FLAGS in variables else None,
        microseconds=int.from_bytes(variables.get(STATUS_MICROSECONDS, b""), "little"),
        error_code=query.error_code,
        client_collation=client,
        connection_collation=connection,
        time_zone=variables.get(queries.STATUS_TIME_ZONE, b"")[1:].decode("utf-8", "replace"),
    )


def text_codec(charsets: bytes | None) -> str:
    """Python's name of the character set of a client's text, by status variable `STATUS_CHARSET`."""
    name = charset_of(struct.unpack_from("<H", charsets)[0]) if charsets else None
    return CODECS.get(name or "utf8mb4") or "utf_8"


def failed(verb: str, error_code: int) -> str:
    return f"{verb} that failed with error {error_code} on the server"
