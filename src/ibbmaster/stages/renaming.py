"""Groups in which databases and tables have other names: in TABLE_MAP events, and in statements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import EventError, StageError
from ibbmaster.event.group import EventGroup, is_ending_query
from ibbmaster.event.header import EVENT_HEADER_SIZE, EventHeader, HeaderFields, encode_event
from ibbmaster.event.query import Query, decode_query, encode_query, status_variables
from ibbmaster.event.statement.load_data import decode_load_data, encode_load_data
from ibbmaster.event.statement.logged import STATUS_CHARSET, LoggedStatement, decode_statement, text_codec
from ibbmaster.event.table_map import NAME_SIZE_MAX, decode_table_map
from ibbmaster.event.types import EventType
from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.stages.event_stream import NAMES_OFFSET, EventStream, mapped_table
from ibbmaster.stages.name_map import NameMap
from ibbmaster.stages.stage import GroupTransform


class NameChange(GroupTransform):
    """Gives databases and tables other names. ANNOTATE_ROWS, which no server runs, keeps the text of its statement."""

    def __init__(self, names: NameMap) -> None:
        self._names = names
        self._known: dict[TableName, TableName] = {}  # as many as a log has tables

    def renamed(self, table: TableName) -> TableName:
        """The name that a table gets. Raises NotUnderstoodError: it cannot have one."""
        new = self._known.get(table)
        if new is None:
            new = self._known[table] = self._names.table(table)
        return new

    def pass_on(self, group: EventGroup) -> EventGroup | None:
        return EventGroup(
            gtid=group.gtid,
            gtid_event=group.gtid_event,
            body=self._body(EventStream(group.body), group),
            start=group.start,
            end=group.end,
        )

    def _body(self, events: EventStream, group: EventGroup) -> Iterator[Buffer]:
        while (header := events.next_event()) is not None:
            try:
                if header.event_type == EventType.TABLE_MAP:
                    yield self._table_map(header, events.whole())
                elif header.event_type in (EventType.QUERY, EventType.QUERY_COMPRESSED):
                    yield self._query(header, events.whole())
                elif header.event_type == EventType.EXECUTE_LOAD_QUERY:
                    yield self._load(header, events.whole())
                else:
                    yield from events.pieces()
            except NotUnderstoodError as error:
                raise StageError(f"group {group.gtid} cannot be renamed: {error}") from None

    def _table_map(self, header: EventHeader, event: bytes) -> bytes:
        old = mapped_table(event)
        new = self.renamed(old)
        if new == old:
            return event
        found = decode_table_map(event)
        rest = event[NAMES_OFFSET + len(found.database) + len(found.table) + 4 :]
        names = b"".join(_sized(name) for name in (new.database, new.name))
        return encode_event(
            event_type=header.event_type, body=event[EVENT_HEADER_SIZE:NAMES_OFFSET] + names + rest, **_head(header)
        )

    def _query(self, header: EventHeader, event: bytes) -> bytes:
        if is_ending_query(event):
            return event  # whatever database its session was in, it names nothing
        query = decode_query(event)
        changed = self._changed(query, decode_statement(event))
        return event if changed == query else encode_query(changed, **_head(header))

    def _load(self, header: EventHeader, event: bytes) -> bytes:
        load = decode_load_data(event)
        changed = self._changed(load.query, decode_statement(event))
        if changed == load.query:
            return event
        if changed.text[: load.end] != load.query.text[: load.end]:
            raise NotUnderstoodError("a LOAD DATA with a name that changes before that of its file")
        return encode_load_data(replace(load, query=changed), **_head(header))

    def _changed(self, query: Query, statement: LoggedStatement) -> Query:
        database = self._names.database(statement.database) if statement.database else ""
        text = self._names.text(statement)
        if (database, text) == (statement.database, statement.text):
            return query
        encoded = query.text
        if text != statement.text:
            codec = text_codec(dict(status_variables(query.status)).get(STATUS_CHARSET))
            if statement.text.encode(codec, "replace") != query.text:
                raise NotUnderstoodError(f"its text is not {codec}")
            encoded = text.encode(codec)
        return replace(query, database=database.encode(), text=encoded)


def _head(header: EventHeader) -> HeaderFields:
    return {
        "server_id": header.server_id,
        "timestamp": header.timestamp,
        "log_pos": header.log_pos,
        "flags": header.flags,
    }


def _sized(name: str) -> bytes:
    encoded = name.encode()
    if len(encoded) > NAME_SIZE_MAX:
        raise EventError(f"a name of {len(encoded)} bytes, at most {NAME_SIZE_MAX}")
    return bytes([len(encoded)]) + encoded + b"\0"
