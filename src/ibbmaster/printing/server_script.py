"""A log as a script that a server runs: statements as they were logged, rows as BINLOG statements.

What the `mariadb` client needs: `--binary-mode`, and a `--max-allowed-packet` as large as the largest statement.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

from ibbmaster.api.group import Change, Event, Group
from ibbmaster.errors import EventError
from ibbmaster.event.format_description import describe_format, encode_format_description
from ibbmaster.event.gtid_event import GtidEvent, GtidFlag, decode_gtid_event
from ibbmaster.event.header import EVENT_HEADER_SIZE, decode_event_header
from ibbmaster.event.query import STATUS_ALTER_FLAGS, Query, decode_query, status_variables
from ibbmaster.event.rows.column import TableSchema
from ibbmaster.event.rows.plain import PlainRows
from ibbmaster.event.statement.given import decode_intvar, decode_rand, decode_user_var
from ibbmaster.event.statement.logged import ROLLBACK_ALTER, START_ALTER
from ibbmaster.event.table_map import FLAG_STATEMENT_END, ROW_EVENT_TYPES, TABLE_ID_SIZE
from ibbmaster.event.types import TYPE_COUNT_CLASSIC, EventFlag, EventType
from ibbmaster.log.large_rows import large_rows
from ibbmaster.printing.json_lines import time_text
from ibbmaster.printing.load_files import LoadFiles
from ibbmaster.printing.session_settings import SessionSettings, user_variable
from ibbmaster.sqltext.quoting import quoted_name

DELIMITER = b"/*!*/;"
LINE_SIZE = 57  # bytes of events in a line of base64, which has 76 letters
BINLOG_BYTES = 1 << 20  # of events in one BINLOG statement, if one event does not have more
FRAGMENT_BYTES = 6 << 20  # of an event: what has more is given in two parts, so that each fits into a packet of 16 MiB
ROWS_FLAGS = EVENT_HEADER_SIZE + TABLE_ID_SIZE  # where a row event has its flags
SERVER_VERSION = "11.8.6-MariaDB-log"  # of rows whose log does not say who wrote them
BEGIN_LINES = b"SET @@session.pseudo_slave_mode=1;\nSET @@session.autocommit=1, @@session.completion_type=0;\n"
END_LINES = b"DELIMITER ;\nSET @@session.pseudo_slave_mode=0;\n"
DROPS = (b"DROP TABLE", b"DROP TEMPORARY TABLE")
DROPS_SIZE = max(map(len, DROPS))
LOADS = (EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK, EventType.DELETE_FILE)  # what comes before the statement


class ServerScript:
    """Prints groups for a server to run; knows what was set, so groups come in the order of the log."""

    delimiter = DELIMITER

    def __init__(
        self, server_version: str | None = None, row_event_max: int | None = None, load_files: Path | None = None
    ) -> None:
        """`server_version` is of who wrote the rows; `row_event_max` bounds one row event, put together.

        `load_files` is a directory for the data of LOAD DATA in statement format, which is refused without it.
        """
        self._loads = LoadFiles(load_files)
        self._version = server_version or SERVER_VERSION
        self._row_event_max = row_event_max
        self.settings = SessionSettings()
        self._database: bytes | None = None
        self._has_format = False

    def statement(self, text: str | bytes) -> bytes:
        """A statement with a delimiter that is not in it."""
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        if self.delimiter not in data:
            gap = b"" if self.delimiter == b";" and not (b"--" in data or b"#" in data) else b"\n"
            return data + gap + self.delimiter + b"\n"
        number = next(number for number in range(len(data)) if b"/*!%d*/;" % number not in data)
        other = b"/*!%d*/;" % number
        return b"DELIMITER " + other + b"\n" + data + b"\n" + other + b"\nDELIMITER " + self.delimiter + b"\n"

    def begin(self) -> bytes:
        """What comes before the first group."""
        return BEGIN_LINES + b"DELIMITER " + self.delimiter + b"\n"

    def end(self) -> bytes:
        """What comes after the last group."""
        return END_LINES

    def group(self, group: Group) -> Iterator[bytes]:
        """The statements of a group.

        Raises:
            EventError: an event is damaged, or cannot be said as a statement.
        """
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
        """What a group does, in order: here events, rows included."""
        return group.events()

    def _row(self, table: TableSchema, change: Change) -> bytes:
        """The statement that changes a row, where rows are no events."""
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
        """Events that give something to the statement that follows; others say nothing to a server."""
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
        if query.text[:DROPS_SIZE].upper().startswith(DROPS):  # a replica ignores tables that are missing
            settings += filter(None, [self.settings.changed(sql_if_exists=1)])
        for setting in settings:
            yield self.statement(setting)
        yield self.statement(_failing(query.text, query.error_code) if query.error_code else query.text)

    def _client_charset(self) -> bytes:
        """Has the client read what follows in the character set of the session."""
        return f"/*!\\C {self.settings.client_charset} */".encode() + self.delimiter + b"\n"

    def _rows(self, statements: Iterator[list[bytes]]) -> Iterator[bytes]:
        for events in statements:
            if not self._has_format:
                self._has_format = True
                described = describe_format(self._version, type_count=TYPE_COUNT_CLASSIC)
                yield (
                    b"BINLOG '\n" + _lines(encode_format_description(described, server_id=1)) + b"'" + DELIMITER + b"\n"
                )
            yield from _binlog(b"".join(events))


class _RowStatements:
    """Puts row events into statements that each have their TABLE_MAPs, and not much more than `BINLOG_BYTES`."""

    def __init__(self) -> None:
        self.maps: list[bytes] = []
        self._rows: list[bytes] = []
        self._size = 0

    def take(self, event: bytes) -> Iterator[list[bytes]]:
        """One more row event; gives a statement when it is due."""
        flags = int.from_bytes(event[ROWS_FLAGS : ROWS_FLAGS + 2], "little")
        if self._size + len(event) > BINLOG_BYTES:
            yield from self._statement()
        self._rows.append(event)
        self._size += len(event)
        if flags & FLAG_STATEMENT_END:
            yield from self._statement()
            self.maps.clear()

    def finish(self) -> Iterator[list[bytes]]:
        """The statement that was begun, if one was."""
        yield from self._statement()
        self.maps.clear()

    def _statement(self) -> Iterator[list[bytes]]:
        """All that was taken. A server closes its tables after each BINLOG statement, so the last event ends one."""
        if not self._rows:
            return
        last = bytearray(self._rows.pop())
        last[ROWS_FLAGS] |= FLAG_STATEMENT_END
        yield [*self.maps, *self._rows, bytes(last)]
        self._rows.clear()
        self._size = 0


def _failing(text: bytes, error_code: int) -> bytes:
    """A statement that failed with an error after it had changed something, and shall not end the script."""
    return b"BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR %d BEGIN END;\n%s;\nEND" % (error_code, text)


def _binlog(events: bytes) -> Iterator[bytes]:
    """A BINLOG statement; of what is too much for one packet, in two parts."""
    if len(events) <= FRAGMENT_BYTES:
        yield b"BINLOG '\n" + _lines(events) + b"'" + DELIMITER + b"\n"
        return
    middle = len(events) // 2 // LINE_SIZE * LINE_SIZE
    for number, part in enumerate((events[:middle], events[middle:])):
        yield b"SET @binlog_fragment_%d='" % number + _lines(part) + b"'" + DELIMITER + b"\n"
    yield b"BINLOG @binlog_fragment_0, @binlog_fragment_1" + DELIMITER + b"\n"


def _lines(data: bytes) -> bytes:
    return base64.encodebytes(data)
