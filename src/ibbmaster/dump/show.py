"""Answers to SHOW: tables with MariaDB's columns. Table: protocol/wire/replica-dialog.md."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from ibbmaster.dump.statement import Show
from ibbmaster.dump.variables import ServerFacts, shown, variable, variable_names
from ibbmaster.wire.response import COLLATION_BINARY, ColumnDefinition, ColumnType, Err, Response, ResultSet

NOT_NULL, UNSIGNED, BINARY = 0x0001, 0x0020, 0x0080
UNSIGNED_NUMBER = NOT_NULL | UNSIGNED | BINARY


def text_column(name: str, length: int, flags: int = NOT_NULL, decimals: int = 0) -> ColumnDefinition:
    """A column of strings."""
    return ColumnDefinition(name=name, column_type=ColumnType.VAR_STRING, length=length, flags=flags, decimals=decimals)


def number_column(name: str, column_type: ColumnType, length: int, flags: int = UNSIGNED_NUMBER) -> ColumnDefinition:
    """A column of numbers."""
    return ColumnDefinition(
        name=name, column_type=column_type, length=length, flags=flags, collation_id=COLLATION_BINARY
    )


LONG, LONGLONG = ColumnType.LONG, ColumnType.LONGLONG
FILE_SIZE_COLUMNS = (text_column("Log_name", 1020), number_column("File_size", LONGLONG, 20))
STATUS_COLUMNS = (
    text_column("File", 2048),
    number_column("Position", LONGLONG, 20),
    text_column("Binlog_Do_DB", 1020),
    text_column("Binlog_Ignore_DB", 1020),
)
EVENT_COLUMNS = (
    text_column("Log_name", 80),
    number_column("Pos", LONGLONG, 21),
    text_column("Event_type", 80),
    number_column("Server_id", LONG, 10),
    number_column("End_log_pos", LONGLONG, 21),
    text_column("Info", 80),
)
HOST_COLUMNS = (
    number_column("Server_id", LONG, 10),
    text_column("Host", 80),
    number_column("Port", LONG, 7),
    number_column("Master_id", LONG, 10),
)
PROCESS_COLUMNS = (
    number_column("Id", LONGLONG, 11, NOT_NULL | BINARY),
    text_column("User", 512),
    text_column("Host", 256),
    text_column("db", 256, 0),
    text_column("Command", 64),
    number_column("Time", LONG, 7, NOT_NULL | BINARY),
    text_column("State", 120, 0),
    text_column("Info", 400, 0),
    number_column("Progress", ColumnType.DOUBLE, 7, NOT_NULL | BINARY),
)
WARNING_COLUMNS = (
    text_column("Level", 28),
    number_column("Code", LONG, 4),
    text_column("Message", 2048),
)
NO_TARGET_LOG = Err(code=1373, sqlstate="HY000", text="Target log not found in binlog index")


def answer_show(show: Show, facts: ServerFacts, *, user: str, host: str, last_error: Err | None) -> Response:
    """The answer to one SHOW statement; what an emulator does not have is an empty table."""
    match show.what:
        case "VARIABLES":
            names = _chosen(show, variable_names(facts))
            return _variables([(name, shown(variable(facts, name))) for name in names], "SESSION_VARIABLES")
        case "STATUS":
            status = {"Ssl_version": "", "Threads_connected": len(facts.processes()), "Uptime": facts.uptime_s()}
            return _variables([(name, status[name]) for name in _chosen(show, list(status))], "SESSION_STATUS")
        case "BINARY LOGS" | "MASTER LOGS":
            return _table(FILE_SIZE_COLUMNS, facts.binary_logs())
        case "MASTER STATUS" | "BINLOG STATUS":
            return _table(STATUS_COLUMNS, [(*facts.binlog_end(), "", "")])
        case "BINLOG EVENTS":
            return _binlog_events(show, facts)
        case "SLAVE HOSTS" | "REPLICA HOSTS":
            hosts = [(server_id, name, port, facts.server_id) for server_id, name, port in facts.replica_hosts()]
            return _table(HOST_COLUMNS, hosts)
        case "PROCESSLIST":
            rows = [
                (row.connection_id, row.user, row.host, None, row.command, row.seconds, row.state, None, "0.000")
                for row in facts.processes()
            ]
            return _table(PROCESS_COLUMNS, rows)
        case "WARNINGS" | "ERRORS":
            return _table(WARNING_COLUMNS, [] if last_error is None else [("Error", last_error.code, last_error.text)])
        case "GRANTS":
            name = f"`{user}`@`{host}`"
            return _table(
                (text_column(f"Grants for {user}@{host}", 1024),), [(f"GRANT REPLICATION SLAVE ON *.* TO {name}",)]
            )
        case "DATABASES" | "SCHEMAS":
            return _table((text_column("Database", 256),), [("information_schema",)])
        case _:
            return _table((text_column(show.what.title().replace(" ", "_"), 256),), [])


def like(pattern: str, text: str) -> bool:
    """LIKE without regard to case: % any letters, _ one letter, backslash takes the next as it is."""
    parts = re.findall(r"\\.|%+|.", pattern.lower(), re.DOTALL)
    states = {0}  # places in `parts` that match what was read so far: linear, whatever the pattern
    for letter in itertools.chain(text.lower(), (None,)):
        pending, reached = list(states), set()
        while pending:
            place = pending.pop()
            if place in reached:
                continue
            reached.add(place)
            if place < len(parts) and parts[place][0] == "%":
                pending.append(place + 1)
        if letter is None:
            return len(parts) in reached
        states = set()
        for place in reached:
            if place == len(parts):
                continue
            part = parts[place]
            if part[0] == "%":
                states.add(place)
            elif part == "_" or part[-1] == letter:
                states.add(place + 1)
    return False


def _chosen(show: Show, names: Sequence[str]) -> list[str]:
    if show.pattern is not None:
        return [name for name in names if like(show.pattern, name)]
    if show.names is not None:
        wanted = {name.lower() for name in show.names}
        return [name for name in names if name.lower() in wanted]
    return list(names)


def _variables(rows: Iterable[Sequence[object]], table: str) -> ResultSet:
    columns = tuple(
        ColumnDefinition(
            name=name,
            column_type=ColumnType.VAR_STRING,
            length=length,
            flags=0x1001,
            schema="information_schema",
            table=table,
            original_table=table,
            original_name=name.upper() if name != "Value" else "VARIABLE_VALUE",
        )
        for name, length in (("Variable_name", 256), ("Value", 16384))
    )
    return _table(columns, rows)


def _binlog_events(show: Show, facts: ServerFacts) -> Response:
    try:
        events = facts.binlog_events(show.file_name, show.offset or 0)
    except KeyError:
        return NO_TARGET_LOG
    rows: Iterator[tuple[object, ...]] = (
        (event.file_name, 0, event.event_type, event.server_id, 0, event.info) for event in events
    )
    if show.limit is not None:
        first, count = show.limit
        rows = itertools.islice(rows, first, first + count)
    return _table(EVENT_COLUMNS, rows)


def _table(columns: tuple[ColumnDefinition, ...], rows: Iterable[Sequence[object]]) -> ResultSet:
    return ResultSet(columns=columns, rows=(tuple(map(_value, row)) for row in rows))


def _value(value: object) -> bytes | None:
    return None if value is None else str(value).encode("utf-8", "surrogateescape")
