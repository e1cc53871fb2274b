"""What a session must have set for a logged statement to do what it did: as SET statements, of what has changed."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ibbmaster.event.query import STATUS_COLLATIONS, STATUS_TIME_ZONE, Query, status_variables
from ibbmaster.event.rows.charset import charset_of
from ibbmaster.event.statement.given import LoggedVariable
from ibbmaster.event.statement.logged import STATUS_CHARSET, STATUS_FLAGS, STATUS_MICROSECONDS, STATUS_SQL_MODE
from ibbmaster.schema.collations import collation_name
from ibbmaster.sqltext.quoting import quoted, quoted_name

STATUS_AUTO_INCREMENT = 3  # increment and offset, 2 bytes each
STATUS_TIME_NAMES = 7  # 2 bytes: number of the locale
STATUS_DATABASE_COLLATION = 8  # 2 bytes
NO_CHARSETS = struct.pack("<HHH", 33, 33, 8)  # what a server had before statements said it
#: Variables by the bit of FLAGS2 that stands for them, and the bit's value for ON.
OF_FLAGS = (
    ("foreign_key_checks", 26, 0),
    ("sql_auto_is_null", 14, 1),
    ("unique_checks", 27, 0),
    ("check_constraint_checks", 15, 0),
    ("sql_if_exists", 28, 1),
    ("explicit_defaults_for_timestamp", 24, 1),
    ("system_versioning_insert_history", 30, 1),
)


class SessionSettings:
    """Remembers what was set, as the session that runs the statements does."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self.client_charset = ""  # in which the texts of statements are

    def changed(self, **values: object) -> str | None:
        """`SET` of the variables that are not as they shall be; None if all are."""
        news = {name: str(value) for name, value in values.items() if self._known.get(name) != str(value)}
        self._known |= news
        return "SET " + ", ".join(f"@@session.{name}={value}" for name, value in news.items()) if news else None

    def for_query(self, query: Query, timestamp: int) -> Iterator[str]:
        """What a statement needs beside its database, a statement each.

        Raises:
            EventError: its status variables run over their end.

        Source: MariaDB 12.3, log_event_client.cc, Query_log_event::print_query_header(), and what 10.11 and 11.8 print.
        """
        given = dict(status_variables(query.status))
        microseconds = int.from_bytes(given.get(STATUS_MICROSECONDS, b""), "little")
        yield f"SET TIMESTAMP={timestamp}" + (f".{microseconds:06d}" if microseconds else "")
        charsets = given.get(STATUS_CHARSET, NO_CHARSETS)
        client, connection, server = struct.unpack("<HHH", charsets)
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
        """Which collation a character set's own default stands for; a server of before 11.2 does not know it."""
        pairs = [(charset_of(first), collation_name(second)) for first, second in struct.iter_unpack("<HH", value[1:])]
        text = ",".join(f"{charset}={collation}" for charset, collation in pairs)
        if self._known.get("character_set_collations", "") != text:
            self._known["character_set_collations"] = text
            yield f"/*M!110200 SET @@session.character_set_collations={quoted(text)} */"


def user_variable(variable: LoggedVariable) -> str:
    """`SET` of a user variable, with the type and character set that it had."""
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
