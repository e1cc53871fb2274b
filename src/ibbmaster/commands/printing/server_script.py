"""A log as a script for a server: statements as logged, rows as BINLOG statements.

The `mariadb` client needs `--binary-mode`, and a `--max-allowed-packet` as large as the largest statement.
"""

import base64
import dataclasses
import struct
from collections.abc import Iterator
from pathlib import Path

from ibbmaster.api.group import Change, Event, Group
from ibbmaster.errors import EventError, StoreError
from ibbmaster.facts import rows_of
from ibbmaster.logs.log.large_rows import large_rows
from ibbmaster.replication.event.format_description import describe_format, encode_format_description
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, decode_gtid_event
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET, decode_event_header
from ibbmaster.replication.event.query import (
    STATUS_ALTER_FLAGS,
    STATUS_COLLATIONS,
    STATUS_TIME_ZONE,
    Query,
    decode_query,
    status_variables,
)
from ibbmaster.replication.event.rows.charset import charset_of
from ibbmaster.replication.event.rows.column import TableSchema
from ibbmaster.replication.event.rows.partial import PlainRows
from ibbmaster.replication.event.statement.given import LoggedVariable, decode_intvar, decode_rand, decode_user_var
from ibbmaster.replication.event.statement.logged import (
    FILE_NUMBER,
    ROLLBACK_ALTER,
    START_ALTER,
    STATUS_CHARSET,
    STATUS_FLAGS,
    STATUS_MICROSECONDS,
    STATUS_SQL_MODE,
    decode_load_data,
)
from ibbmaster.replication.event.table_map import FLAG_STATEMENT_END, ROW_EVENT_TYPES, TABLE_ID_SIZE
from ibbmaster.replication.event.types import TYPE_COUNT_CLASSIC, EventFlag, EventType
from ibbmaster.schema.collations import collation_name
from ibbmaster.sizes import time_text
from ibbmaster.sqltext.quoting import quoted, quoted_name
from .content import Printer

STATUS_AUTO_INCREMENT = 3  # increment and offset, 2 bytes each
STATUS_TIME_NAMES = 7  # 2 bytes: number of the locale
STATUS_DATABASE_COLLATION = 8  # 2 bytes
NO_CHARSETS = struct.pack("<HHH", 33, 33, 8)  # a server's, before statements had it
OF_FLAGS = [(name, int(bit), int(on)) for name, bit, on in rows_of(__package__, "flags")]
DELIMITER = b"/*!*/;"
LINE_SIZE = 57  # bytes of events in a line of base64, which has 76 letters
BINLOG_BYTES = 1 << 20  # of events in one BINLOG statement, or one event
FRAGMENT_BYTES = 6 << 20  # of an event: more is given in two parts, so that each fits into a packet of 16 MiB
ROWS_FLAGS = EVENT_HEADER_SIZE + TABLE_ID_SIZE  # where a row event has its flags
SERVER_VERSION = "11.8.6-MariaDB-log"  # of rows of unknown writers
BEGIN_LINES = b"SET @@session.pseudo_slave_mode=1;\nSET @@session.autocommit=1, @@session.completion_type=0;\n"
END_LINES = b"DELIMITER ;\nSET @@session.pseudo_slave_mode=0;\n"
DROPS = (b"DROP TABLE", b"DROP TEMPORARY TABLE")
DROPS_SIZE = max(map(len, DROPS))
LOADS = (EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK, EventType.DELETE_FILE)
REPLACE = 2


class SessionSettings:
    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self.client_charset = ""

    def changed(self, **values: object) -> str | None:
        """`SET` of variables with other values; None without any."""
        news = {name: str(value) for name, value in values.items() if self._known.get(name) != str(value)}
        self._known |= news
        return "SET " + ", ".join(f"@@session.{name}={value}" for name, value in news.items()) if news else None

    def for_query(self, query: Query, timestamp: int) -> Iterator[str]:
        """What a statement needs beside its database, a statement each. Raises EventError: status variables run over
        their end. Source: MariaDB 12.3, log_event_client.cc, Query_log_event::print_query_header(), and what 10.11 and
        11.8 print."""
        given = dict(status_variables(query.status))
        microseconds = int.from_bytes(given.get(STATUS_MICROSECONDS, b""), "little")
        yield f"SET TIMESTAMP={timestamp}" + (f".{microseconds:06d}" if microseconds else "")
        client, connection, server = struct.unpack("<HHH", given.get(STATUS_CHARSET, NO_CHARSETS))
        self.client_charset = charset_of(client) or "utf8mb4"
        increment, offset = struct.unpack("<HH", given.get(STATUS_AUTO_INCREMENT, b"\1\0\1\0"))
        database_collation = given.get(STATUS_DATABASE_COLLATION)
        wanted: dict[str, object] = {"pseudo_thread_id": query.thread_id}
        if STATUS_FLAGS in given:
            flags = int.from_bytes(given[STATUS_FLAGS], "little")
            wanted |= {name: flags >> bit & 1 ^ 1 ^ on for name, bit, on in OF_FLAGS}
        if STATUS_SQL_MODE in given:
            wanted["sql_mode"] = int.from_bytes(given[STATUS_SQL_MODE], "little")
        wanted |= {
            "auto_increment_increment": increment,
            "auto_increment_offset": offset,
            "character_set_client": client,
            "collation_connection": connection,
            "collation_server": server,
            "lc_time_names": int.from_bytes(given.get(STATUS_TIME_NAMES, b""), "little"),
            "collation_database": (
                "DEFAULT" if database_collation is None else int.from_bytes(database_collation, "little")
            ),
        }
        if STATUS_TIME_ZONE in given:
            wanted["time_zone"] = quoted(given[STATUS_TIME_ZONE][1:].decode("utf-8", "replace"))
        if (statement := self.changed(**wanted)) is not None:
            yield statement
        yield from self._default_collations(given.get(STATUS_COLLATIONS, b"\0"))

    def _default_collations(self, value: bytes) -> Iterator[str]:
        """Unknown to a server before 11.2."""
        pairs = [(charset_of(first), collation_name(second)) for first, second in struct.iter_unpack("<HH", value[1:])]
        text = ",".join(f"{charset}={collation}" for charset, collation in pairs)
        if self._known.get("character_set_collations", "") != text:
            self._known["character_set_collations"] = text
            yield f"/*M!110200 SET @@session.character_set_collations={quoted(text)} */"


def user_variable(variable: LoggedVariable) -> str:
    value = variable.value
    if value is None:
        text = "NULL"
    elif isinstance(value, bytes):
        charset, collation = charset_of(variable.collation), collation_name(variable.collation)
        text = f"_{charset or 'binary'} X'{value.hex()}'" + (
            f" COLLATE {quoted_name(collation)}" if charset and collation else ""
        )
    elif isinstance(value, float):
        text = f"{value:.17e}"
    else:
        text = str(value) if isinstance(value, int) else f"{value:f}"
    return f"SET @{quoted_name(variable.name)}:={text}"


class ServerScript(Printer):
    """Knows what was set, so groups come in the log's order."""

    delimiter = DELIMITER

    def __init__(
        self, server_version: str | None = None, row_event_max: int | None = None, load_files: Path | None = None
    ) -> None:
        """`server_version` is that of the rows' writer; `row_event_max` bounds one row event, joined. `load_files` is a
        directory for the data of LOAD DATA in statement format, refused without it."""
        self._loads = LoadFiles(load_files)
        self._version = server_version or SERVER_VERSION
        self._row_event_max = row_event_max
        self.settings = SessionSettings()
        self._database: bytes | None = None
        self._has_format = False

    def statement(self, text: str | bytes) -> bytes:
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        if self.delimiter not in data:
            gap = b"" if self.delimiter == b";" and not (b"--" in data or b"#" in data) else b"\n"
            return data + gap + self.delimiter + b"\n"
        number = next(number for number in range(len(data)) if b"/*!%d*/;" % number not in data)
        other = b"/*!%d*/;" % number
        return b"DELIMITER " + other + b"\n" + data + b"\n" + other + b"\nDELIMITER " + self.delimiter + b"\n"

    def begin(self) -> bytes:
        return BEGIN_LINES + b"DELIMITER " + self.delimiter + b"\n"

    def end(self) -> bytes:
        return END_LINES

    def group(self, group: Group) -> Iterator[bytes]:
        """Raises EventError: an event is damaged, or cannot be said as a statement."""
        items = self._items(group)
        self._loads.begin(str(group.gtid))
        try:
            first = next(items)
            assert isinstance(first, Event)  # every group begins with its GTID event
            head = decode_gtid_event(first.data)
            yield from self._head(group, head)
            yield from self._events(items)
            if head.flags & GtidFlag.PREPARED_XA:
                yield self.statement(f"XA PREPARE {head.xid}")
        except EventError as error:
            raise EventError(f"group {group.gtid}: {error}") from None

    def _head(self, group: Group, head: GtidEvent) -> Iterator[bytes]:
        gtid = head.gtid
        yield f"# {gtid}, {time_text(group.timestamp)}\n".encode()
        where = self.settings.changed(gtid_domain_id=gtid.domain_id, server_id=gtid.server_id)
        if where is not None:
            yield self.statement(where)
        yield self.statement(f"SET @@session.gtid_seq_no={gtid.seq_no}")
        if head.flags & GtidFlag.PREPARED_XA:
            yield self.statement(f"XA START {head.xid}")
        elif not head.flags & GtidFlag.STANDALONE:
            yield self.statement("START TRANSACTION")

    def _items(self, group: Group) -> Iterator[Event | tuple[TableSchema, Change]]:
        """Here events, rows included."""
        return group.events()

    def _row(self, table: TableSchema, change: Change) -> bytes:
        raise AssertionError("rows are events here")

    def _events(self, items: Iterator[Event | tuple[TableSchema, Change]]) -> Iterator[bytes]:
        rows = _RowStatements()
        plain = PlainRows(large_rows(self._row_event_max))
        for item in items:
            if not isinstance(item, Event):
                yield self._row(*item)
                continue
            event = plain.whole_event(item.data)
            if event is None:
                continue
            header = decode_event_header(event)
            match header.event_type:
                case EventType.TABLE_MAP:
                    rows.maps.append(event)
                case kind if kind in ROW_EVENT_TYPES:
                    yield from self._rows(rows.take(event))
                case EventType.QUERY | EventType.QUERY_COMPRESSED:
                    yield from self._rows(rows.finish())
                    yield from self._query(decode_query(event), header.timestamp, header.flags)
                case EventType.EXECUTE_LOAD_QUERY:
                    yield from self._query(self._loads.statement(event), header.timestamp, header.flags)
                case EventType.XID:
                    yield from self._rows(rows.finish())
                    yield self.statement("COMMIT")
                case _:
                    yield from self._other(header.event_type, event)
        plain.finish()
        yield from self._rows(rows.finish())

    def _other(self, event_type: int, event: bytes) -> Iterator[bytes]:
        """Events that prepare the next statement; others mean nothing to a server."""
        match event_type:
            case EventType.INTVAR:
                name, value = decode_intvar(event)
                yield self.statement(f"SET {name.upper()}={value}")
            case EventType.RAND:
                first, second = decode_rand(event)
                yield self.statement(f"SET @@RAND_SEED1={first}, @@RAND_SEED2={second}")
            case EventType.USER_VAR:
                yield self.statement(user_variable(decode_user_var(event)))
            case kind if kind in LOADS:
                self._loads.take(event)
            case EventType.INCIDENT:
                raise EventError("an incident: the server that wrote the log says that events are missing here")

    def _query(self, query: Query, timestamp: int, flags: int) -> Iterator[bytes]:
        alter_flags = dict(status_variables(query.status)).get(STATUS_ALTER_FLAGS, b"\0")[0]
        if alter_flags & (START_ALTER | ROLLBACK_ALTER):
            yield b"# ALTER TABLE in two phases: this group changes nothing\n"
            return
        if query.database and not flags & EventFlag.SUPPRESS_USE and query.database != self._database:
            self._database = query.database
            yield self.statement(f"USE {quoted_name(query.database.decode('utf-8', 'surrogateescape'))}")
        charset = self.settings.client_charset
        settings = list(self.settings.for_query(query, timestamp))
        if self.settings.client_charset != charset:
            yield self._client_charset()
        if query.text[:DROPS_SIZE].upper().startswith(DROPS):
            settings += filter(None, [self.settings.changed(sql_if_exists=1)])
        for setting in settings:
            yield self.statement(setting)
        text = query.text
        if query.error_code:  # it failed after a change, and must not end the script
            handler = b"BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR %d BEGIN END;\n%s;\nEND"
            text = handler % (query.error_code, text)
        yield self.statement(text)

    def _client_charset(self) -> bytes:
        return f"/*!\\C {self.settings.client_charset} */".encode() + self.delimiter + b"\n"

    def _rows(self, statements: Iterator[list[bytes]]) -> Iterator[bytes]:
        for events in statements:
            if not self._has_format:
                self._has_format = True
                described = describe_format(self._version, type_count=TYPE_COUNT_CLASSIC)
                yield (
                    b"BINLOG '\n"
                    + base64.encodebytes(encode_format_description(described, server_id=1))
                    + b"'"
                    + DELIMITER
                    + b"\n"
                )
            yield from _binlog(b"".join(events))


class _RowStatements:
    """Row events in statements with their TABLE_MAPs, of not much more than `BINLOG_BYTES`."""

    def __init__(self) -> None:
        self.maps: list[bytes] = []
        self._rows: list[bytes] = []
        self._size = 0

    def take(self, event: bytes) -> Iterator[list[bytes]]:
        flags = int.from_bytes(event[ROWS_FLAGS : ROWS_FLAGS + 2], "little")
        if self._size + len(event) > BINLOG_BYTES:
            yield from self._statement()
        self._rows.append(event)
        self._size += len(event)
        if flags & FLAG_STATEMENT_END:
            yield from self._statement()
            self.maps.clear()

    def finish(self) -> Iterator[list[bytes]]:
        yield from self._statement()
        self.maps.clear()

    def _statement(self) -> Iterator[list[bytes]]:
        """A server closes its tables after each BINLOG statement, so the last event ends one."""
        if not self._rows:
            return
        last = bytearray(self._rows.pop())
        last[ROWS_FLAGS] |= FLAG_STATEMENT_END
        yield [*self.maps, *self._rows, bytes(last)]
        self._rows.clear()
        self._size = 0


def _binlog(events: bytes) -> Iterator[bytes]:
    """In two parts if it is too large for one packet."""
    if len(events) <= FRAGMENT_BYTES:
        yield b"BINLOG '\n" + base64.encodebytes(events) + b"'" + DELIMITER + b"\n"
        return
    middle = len(events) // 2 // LINE_SIZE * LINE_SIZE
    for number, part in enumerate((events[:middle], events[middle:])):
        yield b"SET @binlog_fragment_%d='" % number + base64.encodebytes(part) + b"'" + DELIMITER + b"\n"
    yield b"BINLOG @binlog_fragment_0, @binlog_fragment_1" + DELIMITER + b"\n"


class LoadFiles:
    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._gtid = ""
        self._paths: dict[int, Path] = {}

    def begin(self, gtid: str) -> None:
        self._gtid = gtid
        self._paths.clear()

    def take(self, event: bytes) -> None:
        """An event that begins, continues or removes a file. Raises EventError, StoreError."""
        if self._directory is None:
            raise EventError("LOAD DATA in statement format, whose data no statement holds: name a directory for it")
        body = event[EVENT_HEADER_SIZE:]
        if len(body) < FILE_NUMBER.size:
            raise EventError(f"data of LOAD DATA in {len(body)} bytes")
        (number,) = FILE_NUMBER.unpack_from(body)
        begins = event[TYPE_OFFSET] == EventType.BEGIN_LOAD_QUERY
        if begins:
            self._paths[number] = (self._directory / f"load-{self._gtid}-{len(self._paths) + 1}").absolute()
        path = self._path(number)
        try:
            if event[TYPE_OFFSET] == EventType.DELETE_FILE:
                path.unlink(missing_ok=True)
                return
            self._directory.mkdir(parents=True, exist_ok=True)
            with path.open("wb" if begins else "ab") as file:
                file.write(body[FILE_NUMBER.size :])
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror}") from None

    def statement(self, event: bytes) -> Query:
        """An EXECUTE_LOAD_QUERY as the statement that loads its file. Raises EventError: it is damaged, or its file did
        not begin. Source: MariaDB 12.3, log_event_client.cc, Execute_load_query_log_event::print()."""
        load = decode_load_data(event)
        kept = b" REPLACE" if load.duplicates == REPLACE else b""
        name = f" LOCAL INFILE {quoted(str(self._path(load.number)))}".encode()
        text = load.query.text[: load.start] + name + kept + b" INTO" + load.query.text[load.end :]
        return dataclasses.replace(load.query, text=text)

    def _path(self, number: int) -> Path:
        if number not in self._paths:
            raise EventError(f"data of LOAD DATA in file {number}, which did not begin")
        return self._paths[number]
